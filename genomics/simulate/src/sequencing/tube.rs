//! What is in the tube, and which of it becomes molecules: the patient's DNA, mitochondria, other people's.

use super::capture::Captured;
use super::coverage::Coverage;
use super::fragments::{Fragment, Pool};
use crate::rng::Rng;

/// Times a fragment is looked for that coverage does not thin out.
const TRIES: usize = 500;

/// Whose a molecule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The patient's, of the nucleus.
    Patient,
    /// Another person's or species'.
    Foreign,
    /// A mitochondrion's.
    Mitochondrion,
}

/// How fragments are drawn.
#[derive(Debug)]
pub enum Sampling<'a> {
    /// Every place alike.
    Anywhere(Pool<'a>),
    /// At targets.
    Targets(Captured<'a>),
}

/// One kind of DNA, drawn in one way.
#[derive(Debug)]
pub struct Source<'a> {
    /// Its part of the molecules.
    pub share: f64,
    /// Whose it is.
    pub kind: Kind,
    /// How fragments are drawn.
    pub sampling: Sampling<'a>,
}

/// All sources of a sample.
#[derive(Debug)]
pub struct Tube<'a> {
    sources: Vec<Source<'a>>,
    coverage: Option<Coverage>,
}

/// A fragment and where it was drawn from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn<'a> {
    /// The fragment.
    pub fragment: Fragment<'a>,
    /// Whose it is.
    pub kind: Kind,
    /// Whether a target caught it.
    pub(crate) captured: bool,
}

impl<'a> Source<'a> {
    fn fragment(&self, length: usize, rng: &mut Rng) -> Fragment<'a> {
        match &self.sampling {
            Sampling::Anywhere(pool) => pool.fragment(length, rng),
            Sampling::Targets(captured) => captured.fragment(length, rng),
        }
    }
}

impl<'a> Tube<'a> {
    /// Sources with their shares, which need not sum up to 1; there must be one at least.
    pub fn new(sources: Vec<Source<'a>>, coverage: Option<Coverage>) -> Self {
        Tube { sources, coverage }
    }

    /// A random fragment of about `length` bases.
    pub fn fragment(&self, length: usize, rng: &mut Rng) -> Drawn<'a> {
        let source = self.source(rng);
        let captured = matches!(source.sampling, Sampling::Targets(_));
        Drawn { fragment: self.kept(source, length, rng), kind: source.kind, captured }
    }

    /// A random fragment of a kind of DNA.
    pub(crate) fn fragment_of(&self, kind: Kind, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let anywhere = |s: &&Source| s.kind == kind && matches!(s.sampling, Sampling::Anywhere(_));
        let source = self.sources.iter().find(anywhere).unwrap_or(&self.sources[0]);
        self.kept(source, length, rng)
    }

    /// A fragment of the same chromosome that begins up to `distance` bases from where another one does.
    pub(crate) fn fragment_near(
        &self,
        other: &Fragment<'a>,
        length: usize,
        distance: usize,
        rng: &mut Rng,
    ) -> Fragment<'a> {
        let chromosome = other.chromosome();
        let length = length.min(chromosome.sequence.len());
        let start = (other.start() + rng.below(2 * distance + 1)).saturating_sub(distance);
        let start = start.min(chromosome.sequence.len() - length);
        Fragment::new(chromosome, start, start + length)
    }

    fn kept(&self, source: &Source<'a>, length: usize, rng: &mut Rng) -> Fragment<'a> {
        kept(|rng| source.fragment(length, rng), self.coverage.as_ref(), rng)
    }

    fn source(&self, rng: &mut Rng) -> &Source<'a> {
        if let [source] = &*self.sources {
            return source;
        }
        let mut left = rng.unit() * self.sources.iter().map(|s| s.share).sum::<f64>();
        let found = self.sources.iter().find(|s| {
            left -= s.share;
            left < 0.0
        });
        found.unwrap_or(&self.sources[0])
    }
}

/// A fragment that coverage does not thin out.
pub fn kept<'a>(
    draw: impl Fn(&mut Rng) -> Fragment<'a>,
    coverage: Option<&Coverage>,
    rng: &mut Rng,
) -> Fragment<'a> {
    let mut tries = 0;
    loop {
        let fragment = draw(rng);
        tries += 1;
        if tries == TRIES || coverage.is_none_or(|c| c.keeps(&fragment, rng)) {
            return fragment;
        }
    }
}
