//! The DNA in the tube: chromosomes of several genomes, mixed.

use crate::origin::{Origins, Place};
use crate::rng::Rng;
use crate::sequence::Sequence;
use crate::variant::Cut;

/// Times a fragment without too many N is looked for.
const TRIES: usize = 200;

/// A chromosome of some cell.
#[derive(Debug)]
pub struct Chromosome<'a> {
    /// Its sequence; if it is circular, twice.
    pub sequence: Sequence<'a>,
    /// Where in the reference its bases come from.
    pub(crate) origins: Origins,
    /// How often the cell has it.
    pub copies: usize,
    /// Whether it has no ends.
    pub(crate) circular: bool,
}

/// Genomes with the share of the cells that have them.
pub type Mixture<'a> = Vec<(f64, &'a [Chromosome<'a>])>;

/// A piece of a chromosome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fragment<'a> {
    chromosome: &'a Chromosome<'a>,
    start: usize,
    end: usize,
}

impl<'a> Fragment<'a> {
    /// Bases `start..end` of a chromosome.
    pub fn new(chromosome: &'a Chromosome<'a>, start: usize, end: usize) -> Self {
        Fragment { chromosome, start, end }
    }

    /// Its length, bp.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Spells its sequence.
    pub fn bases(&self) -> Vec<u8> {
        self.chromosome.sequence.bases(self.start..self.end)
    }

    /// How many of its bases are G or C.
    pub fn strong(&self) -> usize {
        // C and G differ in one bit. Sums of bytes take a processor far fewer steps than sums of larger numbers.
        let few = |bases: &[u8]| usize::from(bases.iter().map(|&b| u8::from(b | 4 == b'G')).sum::<u8>());
        let pieces = self.chromosome.sequence.pieces(self.start..self.end);
        pieces.flat_map(|(bases, _)| bases.chunks(usize::from(u8::MAX))).map(few).sum()
    }

    /// Where its first or last `length` bases come from; `None` when that is no one place.
    pub(crate) fn end_place(&self, length: usize, last: bool) -> Option<Place> {
        let length = length.min(self.len());
        let start = if last { self.end - length } else { self.start };
        self.chromosome.origins.place(start..start + length)
    }

    /// Its bases `start..end`.
    pub fn part(&self, start: usize, end: usize) -> Self {
        Fragment::new(self.chromosome, self.start + start, self.start + end)
    }

    /// The chromosome that it is of.
    pub fn chromosome(&self) -> &'a Chromosome<'a> {
        self.chromosome
    }

    /// Its first base on the chromosome.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Where its middle comes from; `None` when that is novel.
    pub fn middle(&self) -> Option<Cut> {
        self.chromosome.origins.locate(self.start + self.len() / 2)
    }

    /// Whether it begins and ends with bases that are known.
    pub(crate) fn has_known_ends(&self) -> bool {
        let known = |at: usize| self.chromosome.sequence.base(at) != b'N';
        self.len() == 0 || (known(self.start) && known(self.end - 1))
    }
}

/// Chromosomes weighted by how many cells carry them.
#[derive(Debug)]
pub struct Pool<'a> {
    chromosomes: Vec<&'a Chromosome<'a>>,
    /// Running sums of cells × bases.
    weights: Vec<f64>,
}

impl<'a> Pool<'a> {
    /// Mixes genomes; each comes with its share of the cells. Chromosomes shorter than `shortest` are left out.
    pub fn new(genomes: &[(f64, &'a [Chromosome<'a>])], shortest: usize) -> Self {
        let (mut chromosomes, mut weights, mut sum) = (vec![], vec![], 0.0);
        for &(share, genome) in genomes.iter().filter(|g| g.0 > 0.0) {
            for chromosome in genome.iter().filter(|c| c.sequence.len() >= shortest && c.copies > 0) {
                sum += share * chromosome.copies as f64 * chromosome.sequence.len() as f64;
                chromosomes.push(chromosome);
                weights.push(sum);
            }
        }
        Pool { chromosomes, weights }
    }

    /// Bases in an average cell; 0 when there is nothing to be sequenced.
    pub fn bases(&self) -> f64 {
        self.weights.last().copied().unwrap_or(0.0)
    }

    /// A random fragment of about `length` bases, shorter when its chromosome is.
    pub fn fragment(&self, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let mut tries = 0;
        loop {
            let fragment = self.anywhere(length, rng);
            tries += 1;
            if tries == TRIES || fragment.has_known_ends() {
                return fragment;
            }
        }
    }

    fn anywhere(&self, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let last = self.weights.len() - 1;
        let at = rng.unit() * self.weights[last];
        let chromosome = self.chromosomes[self.weights.partition_point(|&w| w <= at).min(last)];
        let bases = chromosome.sequence.len();
        let length = length.min(bases);
        let starts = if chromosome.circular { bases / 2 } else { bases - length + 1 };
        let start = rng.below(starts).min(bases - length);
        Fragment::new(chromosome, start, start + length)
    }
}
