//! Recurrent errors: the same wrong base at the same site in every library, in a share of the molecules that varies
//! between libraries.

use super::fragments::Fragment;
use super::molecule::Molecule;
use super::read_counts::ReadAndArtefactCounts;
use crate::rng::Rng;
use crate::variant::{ContigSpan, GenomePosition};
use genuma_reads::dna;

/// Strands whose molecules show a recurrent error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AffectedStrand {
    /// Molecules of both strands.
    Both,
    /// Molecules whose read 1 is on the forward strand.
    Forward,
    /// Molecules whose read 1 is on the reverse strand.
    Reverse,
}

impl AffectedStrand {
    /// Returns the value of the INFO field STRAND in the VCF file of recurrent errors.
    pub(crate) fn vcf_strand_value(self) -> &'static str {
        match self {
            AffectedStrand::Both => "both",
            AffectedStrand::Forward => "forward",
            AffectedStrand::Reverse => "reverse",
        }
    }
}

/// A site at which molecules of every library show a base that the DNA does not have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RecurrentError {
    /// Position of the site.
    pub position: GenomePosition,
    /// Base of the reference at the site, on the forward strand.
    pub reference_base: u8,
    /// Base that molecules with the error show, on the forward strand.
    pub error_base: u8,
    /// Share of the molecules (of the affected strand) that show the error (0 to 1): mean over libraries, or the share in
    /// one library in [`LibraryRecurrentErrors`].
    pub molecule_share: f64,
    /// Strand of read 1 of the molecules that show the error, or both strands.
    pub strand: AffectedStrand,
}

/// Standard deviation of the natural logarithm of the share between libraries.
const LOG_SHARE_SD: f64 = 0.7;
/// Largest share of molecules with the error in any library.
const MAX_MOLECULE_SHARE: f64 = 0.6;

/// Recurrent errors, with the share of molecules that show each of them in one library.
#[derive(Debug)]
pub(crate) struct LibraryRecurrentErrors {
    places: Vec<RecurrentError>,
}

impl LibraryRecurrentErrors {
    /// Draws the share of molecules in one library for each recurrent error.
    pub(crate) fn draw_molecule_shares(places: &[RecurrentError], rng: &mut Rng) -> Self {
        let shown = |place: &RecurrentError| {
            // The shift keeps the mean over libraries at the share of the site, except where the maximum limits it.
            let factor = rng.draw_gaussian(-LOG_SHARE_SD * LOG_SHARE_SD / 2.0, LOG_SHARE_SD).exp();
            RecurrentError { molecule_share: (place.molecule_share * factor).min(MAX_MOLECULE_SHARE), ..*place }
        };
        LibraryRecurrentErrors { places: places.iter().map(shown).collect() }
    }

    /// Adds recurrent errors to a molecule that consists of the whole `fragment`. If `reverse` is set, read 1 reads the
    /// reverse complement of the fragment.
    pub(crate) fn add_recurrent_errors(
        &self,
        molecule: &mut Molecule,
        fragment: &Fragment,
        reverse: bool,
        rng: &mut Rng,
        counts: &mut ReadAndArtefactCounts,
    ) {
        let (start, end) = (fragment.start(), fragment.start() + fragment.len());
        for stretch in fragment.chromosome().origins.overlapping_segments(start..end) {
            let from = self.places.partition_point(|p| {
                p.position < GenomePosition { contig: stretch.span.contig, pos: stretch.span.start }
            });
            let here = self.places[from..].iter();
            for place in
                here.take_while(|p| p.position.contig == stretch.span.contig && p.position.pos < stretch.span.end)
            {
                let at = stretch
                    .chromosome_range_of_reference_span(ContigSpan {
                        contig: place.position.contig,
                        start: place.position.pos,
                        end: place.position.pos + 1,
                    })
                    .start;
                if !(start..end).contains(&at) {
                    continue;
                }
                let against = stretch.reverse != reverse;
                let struck = match place.strand {
                    AffectedStrand::Both => true,
                    AffectedStrand::Forward => !against,
                    AffectedStrand::Reverse => against,
                };
                if !struck || !rng.draw_bernoulli(place.molecule_share) {
                    continue;
                }
                let at = if reverse { end - 1 - at } else { at - start };
                let read = |base: u8| if against { dna::complement(base) } else { base };
                // A molecule with another base at the site, such as a variant, shows that base.
                if molecule.base_of_read1_strand(at) == read(place.reference_base) {
                    molecule.read1_strand_mut()[at] = read(place.error_base);
                    counts.recurrent_errors += 1;
                }
            }
        }
    }
}
