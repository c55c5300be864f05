//! Wrong bases that recur: at the same places of the genome in every library, more in one than in another.

use super::counts::Counts;
use super::fragments::Fragment;
use super::molecule::Molecule;
use crate::rng::Rng;
use crate::variant::{Cut, Span};
use genuma_reads::dna;

/// Molecules that show a wrong base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strand {
    /// All of them alike.
    Both,
    /// Those whose read 1 runs with the reference.
    Forward,
    /// Those whose read 1 runs against it.
    Reverse,
}

impl Strand {
    /// As the VCF has it.
    pub fn name(self) -> &'static str {
        match self {
            Strand::Both => "both",
            Strand::Forward => "forward",
            Strand::Reverse => "reverse",
        }
    }
}

/// A place where libraries show a base that the DNA does not have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recurrent {
    /// The base of the reference.
    pub at: Cut,
    /// What the reference has there.
    pub normal: u8,
    /// What is shown.
    pub wrong: u8,
    /// Share of the molecules, of those of its strand, in the mean over libraries.
    pub share: f64,
    /// Which molecules.
    pub strand: Strand,
}

/// How much libraries differ: the standard deviation of the logarithm of a share.
const SPREAD: f64 = 0.7;
/// The most that a library shows.
const MOST: f64 = 0.6;

/// The places as one library shows them.
#[derive(Debug)]
pub struct Shown {
    places: Vec<Recurrent>,
}

impl Shown {
    /// Draws how much a library shows of each place.
    pub fn new(places: &[Recurrent], rng: &mut Rng) -> Self {
        let shown = |place: &Recurrent| {
            // So that the mean over libraries is the place's share.
            let factor = rng.normal(-SPREAD * SPREAD / 2.0, SPREAD).exp();
            Recurrent { share: (place.share * factor).min(MOST), ..*place }
        };
        Shown { places: places.iter().map(shown).collect() }
    }

    /// Shows wrong bases in a molecule that is a fragment as it is, from its end if `reverse`.
    pub(crate) fn strike(
        &self,
        molecule: &mut Molecule,
        fragment: &Fragment,
        reverse: bool,
        rng: &mut Rng,
        counts: &mut Counts,
    ) {
        let (start, end) = (fragment.start(), fragment.start() + fragment.len());
        for stretch in fragment.chromosome().origins.within(start..end) {
            let from = self
                .places
                .partition_point(|p| p.at < Cut { contig: stretch.span.contig, pos: stretch.span.start });
            let here = self.places[from..].iter();
            for place in
                here.take_while(|p| p.at.contig == stretch.span.contig && p.at.pos < stretch.span.end)
            {
                let at = stretch
                    .image(Span { contig: place.at.contig, start: place.at.pos, end: place.at.pos + 1 })
                    .start;
                if !(start..end).contains(&at) {
                    continue;
                }
                let against = stretch.reverse != reverse;
                let struck = match place.strand {
                    Strand::Both => true,
                    Strand::Forward => !against,
                    Strand::Reverse => against,
                };
                if !struck || !rng.chance(place.share) {
                    continue;
                }
                let at = if reverse { end - 1 - at } else { at - start };
                let read = |base: u8| if against { dna::complement(base) } else { base };
                // Who has another base there shows that.
                if molecule.base(at) == read(place.normal) {
                    molecule.strand()[at] = read(place.wrong);
                    counts.recurrent_errors += 1;
                }
            }
        }
    }
}
