//! The DNA in the tube: chromosomes of several genomes, mixed.

use crate::rng::Rng;

/// Times a fragment without too many N is looked for.
const TRIES: usize = 200;

/// Chromosomes weighted by how many cells carry them.
#[derive(Debug)]
pub struct Pool<'a> {
    chromosomes: Vec<&'a [u8]>,
    /// Running sums of cells × bases.
    weights: Vec<f64>,
}

impl<'a> Pool<'a> {
    /// Mixes genomes; each comes with its share of the cells.
    pub fn new(genomes: &[(f64, &'a [Vec<u8>])], shortest: usize) -> Self {
        let (mut chromosomes, mut weights, mut sum) = (vec![], vec![], 0.0);
        for &(share, genome) in genomes.iter().filter(|g| g.0 > 0.0) {
            for chromosome in genome.iter().filter(|c| c.len() >= shortest) {
                sum += share * chromosome.len() as f64;
                chromosomes.push(chromosome.as_slice());
                weights.push(sum);
            }
        }
        Pool { chromosomes, weights }
    }

    /// A random fragment of about `length` bases, shorter when its chromosome is.
    pub fn fragment(&self, length: usize, rng: &mut Rng) -> &'a [u8] {
        let mut fragment: &[u8] = &[];
        for _ in 0..TRIES {
            let at = rng.unit() * self.weights[self.weights.len() - 1];
            let chromosome =
                self.chromosomes[self.weights.partition_point(|&w| w <= at).min(self.weights.len() - 1)];
            let length = length.min(chromosome.len());
            let start = rng.below(chromosome.len() - length + 1);
            fragment = &chromosome[start..start + length];
            if fragment[0] != b'N' && fragment[length - 1] != b'N' {
                break;
            }
        }
        fragment
    }
}
