//! The DNA in the tube: chromosomes of several genomes, mixed.

use crate::origin::{Origins, Place};
use crate::rng::Rng;

/// Times a fragment without too many N is looked for.
const TRIES: usize = 200;

/// A chromosome of some cell.
#[derive(Debug)]
pub struct Chromosome {
    /// Its sequence.
    pub bases: Vec<u8>,
    /// Where in the reference its bases come from.
    pub origins: Origins,
}

/// A piece of a chromosome.
#[derive(Debug, Clone, Copy)]
pub struct Fragment<'a> {
    /// Its sequence.
    pub bases: &'a [u8],
    chromosome: &'a Chromosome,
    start: usize,
}

impl Fragment<'_> {
    /// Where its first or last `length` bases come from; `None` when that is no one place.
    pub fn end_place(&self, length: usize, last: bool) -> Option<Place> {
        let length = length.min(self.bases.len());
        let start = if last { self.start + self.bases.len() - length } else { self.start };
        self.chromosome.origins.place(start..start + length)
    }
}

/// Chromosomes weighted by how many cells carry them.
#[derive(Debug)]
pub struct Pool<'a> {
    chromosomes: Vec<&'a Chromosome>,
    /// Running sums of cells × bases.
    weights: Vec<f64>,
}

impl<'a> Pool<'a> {
    /// Mixes genomes; each comes with its share of the cells.
    pub fn new(genomes: &[(f64, &'a [Chromosome])], shortest: usize) -> Self {
        let (mut chromosomes, mut weights, mut sum) = (vec![], vec![], 0.0);
        for &(share, genome) in genomes.iter().filter(|g| g.0 > 0.0) {
            for chromosome in genome.iter().filter(|c| c.bases.len() >= shortest) {
                sum += share * chromosome.bases.len() as f64;
                chromosomes.push(chromosome);
                weights.push(sum);
            }
        }
        Pool { chromosomes, weights }
    }

    /// A random fragment of about `length` bases, shorter when its chromosome is.
    pub fn fragment(&self, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let mut tries = 0;
        loop {
            let fragment = self.anywhere(length, rng);
            let bases = fragment.bases;
            tries += 1;
            if tries == TRIES || (bases[0] != b'N' && bases[bases.len() - 1] != b'N') {
                return fragment;
            }
        }
    }

    fn anywhere(&self, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let last = self.weights.len() - 1;
        let at = rng.unit() * self.weights[last];
        let chromosome = self.chromosomes[self.weights.partition_point(|&w| w <= at).min(last)];
        let length = length.min(chromosome.bases.len());
        let start = rng.below(chromosome.bases.len() - length + 1);
        Fragment { bases: &chromosome.bases[start..start + length], chromosome, start }
    }
}
