//! The DNA from which the molecules of a sample are drawn: nuclear DNA of the patient, mitochondrial DNA, foreign DNA.

use super::amplicon_products::{AmpliconProducts, PrimerPair};
use super::capture::TargetCopies;
use super::coverage::CoverageModel;
use super::fragments::{ChromosomePool, Fragment};
use crate::rng::Rng;

/// Maximum number of attempts to draw a fragment that the coverage model keeps.
const MAX_COVERAGE_TRIES: usize = 500;

/// Origin of a molecule's DNA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DnaSource {
    /// Nuclear DNA of the patient.
    Patient,
    /// DNA of another person or species.
    Foreign,
    /// Mitochondrial DNA.
    Mitochondrion,
}

/// Method by which fragments are drawn from a DNA source.
#[derive(Debug)]
pub(crate) enum FragmentSampling<'a> {
    /// Fragments start anywhere in the genome with equal probability.
    GenomeWide(ChromosomePool<'a>),
    /// Fragments overlap capture targets; their number is proportional to the capture efficiency.
    Targets(TargetCopies<'a>),
    /// Fragments are amplicons: the PCR products of primer pairs.
    Amplicons(AmpliconProducts<'a>),
}

/// One DNA source of a sample, its share, and the method by which fragments are drawn from it.
#[derive(Debug)]
pub(crate) struct DnaComponent<'a> {
    /// Weight with which the source is chosen for a molecule.
    pub share: f64,
    /// Origin of the DNA: patient, foreign or mitochondrial.
    pub dna_source: DnaSource,
    /// Method by which fragments are drawn from the source.
    pub sampling: FragmentSampling<'a>,
}

/// All DNA sources of a sample, together with its uneven coverage.
#[derive(Debug)]
pub(crate) struct DnaPool<'a> {
    sources: Vec<DnaComponent<'a>>,
    coverage: Option<CoverageModel>,
}

/// A fragment that was drawn from a DNA pool, with its origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawnFragment<'a> {
    /// The fragment that was drawn.
    pub fragment: Fragment<'a>,
    /// Origin of the DNA: patient, foreign or mitochondrial.
    pub dna_source: DnaSource,
    /// Whether the fragment was enriched by target capture.
    pub(crate) captured: bool,
    /// Primers that replace the bases at both ends of an amplicon; `None` for other fragments.
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
    /// Creates a pool of one or more DNA sources. Their weights need not sum to 1. `coverage` is `None` if the coverage
    /// is even.
    pub(crate) fn from_sources(sources: Vec<DnaComponent<'a>>, coverage: Option<CoverageModel>) -> Self {
        DnaPool { sources, coverage }
    }

    /// Draws a fragment of about `length` bases; PCR products have their own length.
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

    /// Draws a fragment from anywhere in the genome of one DNA source. If no fragments are drawn genome-wide from this
    /// source, the first component of the pool is used.
    pub(crate) fn draw_fragment_of_source(&self, kind: DnaSource, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let anywhere =
            |s: &&DnaComponent| s.dna_source == kind && matches!(s.sampling, FragmentSampling::GenomeWide(_));
        let source = self.sources.iter().find(anywhere).unwrap_or(&self.sources[0]);
        self.draw_thinned_fragment(source, length, rng)
    }

    /// Draws a fragment from the same chromosome as another one. Its start is at most `distance` bases from the start
    /// of the other.
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

/// Calls `draw` until the coverage model keeps the fragment, and returns this fragment: the first one if `coverage` is
/// `None`, and at the latest the one of attempt [`MAX_COVERAGE_TRIES`].
pub(crate) fn draw_fragment_by_coverage<'a>(
    draw: impl Fn(&mut Rng) -> Fragment<'a>,
    coverage: Option<&CoverageModel>,
    rng: &mut Rng,
) -> Fragment<'a> {
    let mut tries = 0;
    loop {
        let fragment = draw(rng);
        tries += 1;
        if tries == MAX_COVERAGE_TRIES || coverage.is_none_or(|c| c.draw_whether_fragment_is_kept(&fragment, rng)) {
            return fragment;
        }
    }
}
