//! Decides for which contigs reads are recruited: only those with a change that can become a call.

use crate::aligned_contig::AlignedContig;
use crate::event::CallThresholds;
use crate::evidence::error_frequency_by_kind_of_change;
use crate::fold_back::is_fold_back_artefact_of_few_pairs;
use crate::genotype::ErrorFrequency;

/// Why no reads are recruited for a contig, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RejectReason {
    /// The contig has no change.
    NoChange,
    /// Only low-quality bases support the changes of the contig.
    LowQuality,
    /// All changes of the contig look like common errors, and the contig has fewer pairs than a call of such a change
    /// needs molecules in this library (see [`CallThresholds::min_molecules`]).
    TooFewPairs,
    /// The contig is a fold-back artefact of a few molecules, in a library with many such artefacts.
    FoldBack,
}

impl RejectReason {
    /// All reject reasons, in the order of the checks.
    pub const ALL_REJECT_REASONS: [RejectReason; 4] =
        [RejectReason::NoChange, RejectReason::LowQuality, RejectReason::TooFewPairs, RejectReason::FoldBack];

    /// Why a contig assembled from `pairs` pairs is rejected; `None` if reads are recruited for it.
    pub fn find_reject_reason(
        contig: &AlignedContig,
        pairs: usize,
        thresholds: &CallThresholds,
    ) -> Option<RejectReason> {
        let common = |f: usize| error_frequency_by_kind_of_change(contig, f) == ErrorFrequency::Common;
        if contig.changes.is_empty() {
            Some(RejectReason::NoChange)
        } else if !contig.has_change_with_good_bases() {
            Some(RejectReason::LowQuality)
        } else if pairs < thresholds.min_molecules && (0..contig.changes.len()).all(common) {
            Some(RejectReason::TooFewPairs)
        } else if thresholds.has_fold_back_artefacts && is_fold_back_artefact_of_few_pairs(contig, pairs) {
            Some(RejectReason::FoldBack)
        } else {
            None
        }
    }

    /// Name of the ledger line that counts the contigs with this reason.
    pub fn ledger_text(self) -> &'static str {
        match self {
            RejectReason::NoChange => "contigs without a change from the reference",
            RejectReason::LowQuality => "contigs whose changes are supported by low-quality bases only",
            RejectReason::TooFewPairs => {
                "contigs of two pairs whose changes need three: substitutions, length changes of repeats"
            }
            RejectReason::FoldBack => "contigs of a few fold-back molecules",
        }
    }

    /// Text that explains the reason for one contig, to append to the description of its change.
    pub fn text_for_one_contig(self) -> &'static str {
        match self {
            RejectReason::NoChange => "",
            RejectReason::LowQuality => "; its bases have too low quality",
            RejectReason::TooFewPairs => "; two pairs are too few for such a change",
            RejectReason::FoldBack => "; a few fold-back molecules, of which this library has many",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligned_contig::ContigChange;
    use crate::assemble::{Contig, ContigRead};
    use crate::change::Change;

    /// The reason for a contig of `pairs` pairs in which `new` replaces `old` after `before`; `quality` is the base
    /// quality of each pair.
    fn worth(before: &[u8], old: &[u8], new: &[u8], pairs: u32, quality: u16) -> Option<RejectReason> {
        let thresholds = CallThresholds::from_trim_counts(&Default::default(), 0, 8.0);
        worth_in_library(before, old, new, [pairs, quality.into()], &thresholds)
    }

    /// As [`worth`], with the thresholds of the library. `support` is the number of pairs and their base quality.
    fn worth_in_library(
        before: &[u8],
        old: &[u8],
        new: &[u8],
        support: [u32; 2],
        thresholds: &CallThresholds,
    ) -> Option<RejectReason> {
        let [pairs, quality] = support;
        let after = b"GATTACATTGCACGGTCA";
        let [normal, seq] = [old, new].map(|bases| [before, bases, after].concat());
        let reads = (0..pairs).map(|pair| ContigRead { pair, mate: 0, forward: true, start: 0 }).collect();
        let (novel, weight) = (vec![true; seq.len()], vec![(quality * pairs) as u16; seq.len()]);
        let contig = Contig { seq, novel, quality_sums: weight, reads, outer_mates: Default::default() };
        let mut compared = AlignedContig::from_unplaced_contig(&contig);
        let (reference, alternative) = ([b"T", old].concat(), [b"T", new].concat());
        if old != new {
            compared.changes.push(ContigChange {
                change: Change::Allele { chrom: 0, pos: 9, reference, alternative },
                contig_range: before.len()..before.len() + new.len(),
                left_normal: normal.clone(),
                right_normal: normal,
                right_shift: old.len() as i32 - new.len() as i32,
                mapq: 60,
            });
        }
        RejectReason::find_reject_reason(&compared, contig.num_pairs(), thresholds)
    }

    #[test]
    fn two_pairs_suffice_for_what_is_hardly_ever_an_error() {
        let (plain, run) = (b"CCTGATGCAT", b"CCTGAAAAAA");
        assert_eq!(worth(plain, b"A", b"A", 9, 37), Some(RejectReason::NoChange));
        assert_eq!(worth(plain, b"A", b"C", 2, 20), Some(RejectReason::LowQuality));
        assert_eq!(worth(plain, b"A", b"C", 2, 37), Some(RejectReason::TooFewPairs));
        assert_eq!(worth(plain, b"A", b"C", 3, 37), None);
        // A deleted base of a homopolymer, and deleted bases outside repeats.
        assert_eq!(worth(run, b"A", b"", 2, 37), Some(RejectReason::TooFewPairs));
        assert_eq!(worth(run, b"A", b"", 3, 37), None);
        assert_eq!(worth(plain, b"CGT", b"", 2, 37), None);
    }

    #[test]
    fn two_pairs_suffice_where_errors_are_measured_to_be_rare() {
        let library = |error_rate| CallThresholds {
            min_molecules: crate::genotype::min_call_molecules_common_error(error_rate),
            ..CallThresholds::from_trim_counts(&Default::default(), 0, 8.0)
        };
        let snv = |error_rate| worth_in_library(b"CCTGATGCAT", b"A", b"C", [2, 37], &library(error_rate));
        assert_eq!([None, Some(1e-4)].map(snv), [Some(RejectReason::TooFewPairs); 2]);
        assert_eq!(snv(Some(3e-6)), None);
    }
}
