//! The DNA sources of a sample: nuclear DNA of the patient, mitochondrial DNA, foreign DNA.

use super::amplicon_products::{AmpliconProducts, PrimerPair};
use super::capture::CapturedTargets;
use super::coverage::CoverageModel;
use super::fragments::{ChromosomePool, Fragment};
use crate::rng::Rng;

/// Attempts to draw a fragment that uneven coverage keeps.
const MAX_COVERAGE_TRIES: usize = 500;

/// Whose DNA a molecule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DnaSource {
    /// Nuclear DNA of the patient.
    Patient,
    /// DNA of another person or species.
    Foreign,
    /// Mitochondrial DNA.
    Mitochondrion,
}

/// How fragments are drawn.
#[derive(Debug)]
pub(crate) enum FragmentSampling<'a> {
    /// Uniformly from the whole genome.
    GenomeWide(ChromosomePool<'a>),
    /// From the surroundings of capture targets, in proportion to their efficiency.
    Targets(CapturedTargets<'a>),
    /// As amplicons: the products of primer pairs.
    Amplicons(AmpliconProducts<'a>),
}

/// One DNA source of a sample with its sampling method.
#[derive(Debug)]
pub(crate) struct DnaComponent<'a> {
    /// Weight of the source among the molecules.
    pub share: f64,
    /// Origin of the DNA.
    pub dna_source: DnaSource,
    /// How fragments are drawn.
    pub sampling: FragmentSampling<'a>,
}

/// All DNA sources of a sample, with uneven coverage.
#[derive(Debug)]
pub(crate) struct DnaPool<'a> {
    sources: Vec<DnaComponent<'a>>,
    coverage: Option<CoverageModel>,
}

/// A fragment and its DNA source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawnFragment<'a> {
    /// The fragment that was drawn.
    pub fragment: Fragment<'a>,
    /// Origin of the DNA.
    pub dna_source: DnaSource,
    /// Whether a target captured the fragment.
    pub(crate) captured: bool,
    /// Primers that replace the bases at both ends.
    pub(crate) primers: Option<PrimerPair<'a>>,
}

impl<'a> DnaComponent<'a> {
    fn draw_fragment(&self, length: usize, rng: &mut Rng) -> Fragment<'a> {
        match &self.sampling {
            FragmentSampling::GenomeWide(pool) => pool.draw_fragment(length, rng),
            FragmentSampling::Targets(captured) => captured.draw_fragment(length, rng),
            FragmentSampling::Amplicons(products) => products.draw_amplicon_product(rng).0,
        }
    }
}

impl<'a> DnaPool<'a> {
    /// Creates the pool from at least one source. Weights need not sum to 1.
    pub(crate) fn from_sources(sources: Vec<DnaComponent<'a>>, coverage: Option<CoverageModel>) -> Self {
        DnaPool { sources, coverage }
    }

    /// Draws a fragment of about `length` bases, or a product of any length.
    pub(crate) fn draw_fragment(&self, length: usize, rng: &mut Rng) -> DrawnFragment<'a> {
        let source = self.choose_source(rng);
        let dna_source = source.dna_source;
        if let FragmentSampling::Amplicons(products) = &source.sampling {
            let (fragment, primers) = products.draw_amplicon_product(rng);
            return DrawnFragment { fragment, dna_source, captured: false, primers: Some(primers) };
        }
        let captured = matches!(source.sampling, FragmentSampling::Targets(_));
        let fragment = self.draw_thinned_fragment(source, length, rng);
        DrawnFragment { fragment, dna_source, captured, primers: None }
    }

    /// Draws a genome-wide fragment from one DNA source.
    pub(crate) fn draw_fragment_of(&self, kind: DnaSource, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let anywhere =
            |s: &&DnaComponent| s.dna_source == kind && matches!(s.sampling, FragmentSampling::GenomeWide(_));
        let source = self.sources.iter().find(anywhere).unwrap_or(&self.sources[0]);
        self.draw_thinned_fragment(source, length, rng)
    }

    /// Draws a fragment of the same chromosome that begins at most `distance` bases from the start of another
    /// fragment.
    pub(crate) fn draw_fragment_near(
        &self,
        other: &Fragment<'a>,
        length: usize,
        distance: usize,
        rng: &mut Rng,
    ) -> Fragment<'a> {
        let chromosome = other.chromosome();
        let length = length.min(chromosome.sequence.len());
        let start = (other.start() + rng.draw_below(2 * distance + 1)).saturating_sub(distance);
        let start = start.min(chromosome.sequence.len() - length);
        Fragment::new(chromosome, start, start + length)
    }

    fn draw_thinned_fragment(&self, source: &DnaComponent<'a>, length: usize, rng: &mut Rng) -> Fragment<'a> {
        draw_fragment_by_coverage(|rng| source.draw_fragment(length, rng), self.coverage.as_ref(), rng)
    }

    fn choose_source(&self, rng: &mut Rng) -> &DnaComponent<'a> {
        if let [source] = &*self.sources {
            return source;
        }
        let mut left = rng.draw_unit_interval() * self.sources.iter().map(|s| s.share).sum::<f64>();
        let found = self.sources.iter().find(|s| {
            left -= s.share;
            left < 0.0
        });
        found.unwrap_or(&self.sources[0])
    }
}

/// Draws fragments until uneven coverage keeps one.
pub(crate) fn draw_fragment_by_coverage<'a>(
    draw: impl Fn(&mut Rng) -> Fragment<'a>,
    coverage: Option<&CoverageModel>,
    rng: &mut Rng,
) -> Fragment<'a> {
    let mut tries = 0;
    loop {
        let fragment = draw(rng);
        tries += 1;
        if tries == MAX_COVERAGE_TRIES || coverage.is_none_or(|c| c.keeps_fragment(&fragment, rng)) {
            return fragment;
        }
    }
}
