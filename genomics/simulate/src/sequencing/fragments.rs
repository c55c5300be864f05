//! Draws random fragments from the chromosomes of a mixture of genomes.

use std::ops::Range;
use std::sync::Arc;

use crate::chromosome_sequence::ChromosomeSequence;
use crate::reference_origins::{ReferenceOrigins, ReferencePlacement};
use crate::rng::Rng;
use crate::variant::GenomePosition;

/// Maximum number of attempts to draw a fragment whose ends are not N.
const MAX_FRAGMENT_TRIES: usize = 200;

/// A chromosome of one kind of cell: sequence, reference positions and number of copies.
#[derive(Debug)]
pub(crate) struct CellChromosome<'a> {
    /// Sequence of the chromosome; a circular chromosome is stored twice in a row.
    pub sequence: ChromosomeSequence<'a>,
    /// Reference positions from which the chromosome's bases come.
    pub(crate) origins: ReferenceOrigins,
    /// Number of copies of the chromosome in a cell.
    pub copies: usize,
    pub(crate) circular: bool,
    /// Variants that the chromosome has, sorted by position; empty if molecules need not list them.
    pub(crate) carried_variants: Vec<CarriedVariant>,
}

/// A variant of the truth that a chromosome has, and its position there.
#[derive(Debug, Clone)]
pub(crate) struct CarriedVariant {
    /// Range of the chromosome that shows the variant, with one base on either side.
    pub bases: Range<usize>,
    /// Name of the variant: `CONTIG:POS:REF:ALT` of its VCF record.
    pub name: Arc<str>,
}

/// Genomes of several kinds of cells, each with the share of the cells that have it.
pub(crate) type GenomeMixture<'a> = Vec<(f64, &'a [CellChromosome<'a>])>;

/// A fragment of a chromosome: a DNA molecule before library preparation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fragment<'a> {
    chromosome: &'a CellChromosome<'a>,
    start: usize,
    end: usize,
}

impl<'a> Fragment<'a> {
    /// Creates the fragment `start..end` of a chromosome.
    pub(crate) fn new(chromosome: &'a CellChromosome<'a>, start: usize, end: usize) -> Self {
        Fragment { chromosome, start, end }
    }

    /// Returns the length of the fragment, bp.
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns a copy of the bases, on the forward strand of the chromosome.
    pub(crate) fn to_bases(self) -> Vec<u8> {
        self.chromosome.sequence.bases_in_range(self.start..self.end)
    }

    /// Returns the number of bases that are G or C.
    pub(crate) fn count_gc(&self) -> usize {
        // C and G differ in one bit. Sums of bytes vectorise better than sums of larger integers.
        let few = |bases: &[u8]| usize::from(bases.iter().map(|&b| u8::from(b | 4 == b'G')).sum::<u8>());
        let pieces = self.chromosome.sequence.iter_slices_in_range(self.start..self.end);
        pieces.flat_map(|(bases, _)| bases.chunks(usize::from(u8::MAX))).map(few).sum()
    }

    /// Returns the reference placement of the first (or, if `last`, the last) `length` bases. `None` if all of them are
    /// novel, or if they span a breakpoint.
    pub(crate) fn reference_placement_of_end_bases(&self, length: usize, last: bool) -> Option<ReferencePlacement> {
        let length = length.min(self.len());
        let start = if last { self.end - length } else { self.start };
        self.chromosome.origins.reference_placement_of_range(start..start + length)
    }

    /// Returns the part `start..end` of the fragment as a fragment.
    pub(crate) fn subfragment(&self, start: usize, end: usize) -> Self {
        Fragment::new(self.chromosome, self.start + start, self.start + end)
    }

    /// Lists the names of the variants that are within the fragment.
    pub(crate) fn list_names_of_carried_variants(&self) -> Vec<&'a str> {
        let variants = &self.chromosome.carried_variants;
        let first = variants.partition_point(|v| v.bases.start < self.start);
        let near = variants[first..].iter().take_while(|v| v.bases.start < self.end);
        near.filter(|v| v.bases.end <= self.end).map(|v| &*v.name).collect()
    }

    /// Returns the chromosome that contains the fragment.
    pub(crate) fn chromosome(&self) -> &'a CellChromosome<'a> {
        self.chromosome
    }

    /// Returns the position of the fragment's first base on its chromosome, 0-based.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Returns the reference position of the middle base; `None` if the base is novel.
    pub(crate) fn middle_reference_position(&self) -> Option<GenomePosition> {
        self.chromosome.origins.reference_position_of_base(self.start + self.len() / 2)
    }

    /// Returns whether the first and the last base are not N.
    pub(crate) fn begins_and_ends_without_n(&self) -> bool {
        let known = |at: usize| self.chromosome.sequence.base_at(at) != b'N';
        self.len() == 0 || (known(self.start) && known(self.end - 1))
    }
}

/// Chromosomes from which fragments are drawn, weighted by length and by number of cells and copies.
#[derive(Debug)]
pub(crate) struct ChromosomePool<'a> {
    chromosomes: Vec<&'a CellChromosome<'a>>,
    /// Cumulative weights of the chromosomes: share of the cells × copies × bases.
    weights: Vec<f64>,
}

impl<'a> ChromosomePool<'a> {
    /// Creates the pool of the chromosomes of several genomes, each given with its share of the cells. Chromosomes
    /// shorter than `shortest` bp are left out.
    pub(crate) fn from_genomes(genomes: &[(f64, &'a [CellChromosome<'a>])], shortest: usize) -> Self {
        let (mut chromosomes, mut weights, mut sum) = (vec![], vec![], 0.0);
        for &(share, genome) in genomes.iter().filter(|g| g.0 > 0.0) {
            for chromosome in genome.iter().filter(|c| c.sequence.len() >= shortest && c.copies > 0) {
                sum += share * chromosome.copies as f64 * chromosome.sequence.len() as f64;
                chromosomes.push(chromosome);
                weights.push(sum);
            }
        }
        ChromosomePool { chromosomes, weights }
    }

    /// Returns the mean number of bases per cell; 0 if the pool is empty.
    pub(crate) fn mean_bases_per_cell(&self) -> f64 {
        self.weights.last().copied().unwrap_or(0.0)
    }

    /// Draws a fragment of `length` bases, or the whole chromosome if that is shorter. Fragments with an N at an end
    /// are drawn again, at most [`MAX_FRAGMENT_TRIES`] times.
    pub(crate) fn draw_fragment(&self, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let mut tries = 0;
        loop {
            let fragment = self.draw_any_fragment(length, rng);
            tries += 1;
            if tries == MAX_FRAGMENT_TRIES || fragment.begins_and_ends_without_n() {
                return fragment;
            }
        }
    }

    fn draw_any_fragment(&self, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let last = self.weights.len() - 1;
        let at = rng.draw_unit_interval() * self.weights[last];
        let chromosome = self.chromosomes[self.weights.partition_point(|&w| w <= at).min(last)];
        let bases = chromosome.sequence.len();
        let length = length.min(bases);
        let starts = if chromosome.circular { bases / 2 } else { bases - length + 1 };
        let start = rng.draw_below(starts).min(bases - length);
        Fragment::new(chromosome, start, start + length)
    }
}
