//! Counts the molecules that show the unchanged allele at the ends of a tandem duplication, a deletion, another
//! insertion or a junction.
//!
//! A read shows the unchanged allele of a tandem duplication only if it contains the whole duplicated stretch. No read
//! does if the stretch is as long as the reads. But each chromosome, with or without the duplication, has each end of
//! the stretch once: the bases before its first base, and the bases after its last base. So the molecules that cross an
//! end estimate the depth of all alleles, and those that cross the junction between both copies the depth of the
//! duplication (`docs/model/genotype.md`, formula 16).

use crate::aligned_contig::{AlignedContig, ContigChange};
use crate::change::Change;
use crate::event_model;
use crate::packed::OwnedRead;
use crate::sequencing_errors::ERROR_MODEL_PARAMS;

/// Minimum length in bp of a tandem duplication, a deletion or another insertion whose two ends are examined
/// separately. Nearly all reads that cover a shorter one contain it completely, with flanks.
const MIN_CHANGE_WITH_TWO_ENDS_BP: usize = 20;
/// Minimum share (numerator, denominator) of the bases of an insertion that copy the neighbouring sequence in a tandem
/// duplication. The other bases are between the copies.
const MIN_COPIED_SHARE: [usize; 2] = [1, 2];
/// Minimum number of bases that a read must have on each side of an end of the duplicated stretch to cross it.
const MIN_BASES_BESIDE_END: usize = 2;
/// Number of bases on each side of an end of the duplicated stretch that are compared with the read.
const COMPARED_BASES: usize = 20;
/// Maximum number of mismatches of good quality among the compared bases.
const MAX_DIFFERENCES: usize = 2;

/// One end of a duplicated or deleted stretch, as a position in a sequence without the change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AlleleEnd<'a> {
    /// The sequence around this end without the change.
    normal: &'a [u8],
    /// Index in `normal` of the first base after the end.
    at: usize,
}

/// Both ends of a duplicated or deleted stretch. A molecule without the change crosses them in the unchanged sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnchangedAlleleEnds<'a> {
    ends: [AlleleEnd<'a>; 2],
    /// Number of bases by which the position of both ends is ambiguous (microhomology).
    homology: usize,
    /// For each end, the number to add to a contig coordinate to get the coordinate in the sequence without the change.
    shifts: [i32; 2],
    /// Whether the change is a junction in the contig, so that the contig shows no second copy and a molecule of the
    /// unchanged allele may cross either end.
    pub(crate) is_junction: bool,
}

impl<'a> UnchangedAlleleEnds<'a> {
    /// The ends of the stretch that change `f` duplicates in tandem; `None` if `f` is neither an insertion of at least
    /// [`MIN_CHANGE_WITH_TWO_ENDS_BP`] that copies the bases next to it, nor the junction of a tandem duplication.
    pub(crate) fn ends_of_tandem_duplication(
        f: &'a ContigChange,
        contig: &'a AlignedContig,
    ) -> Option<UnchangedAlleleEnds<'a>> {
        match &f.change {
            Change::Junction { ends, homology, .. } if event_model::are_ends_of_tandem_duplication(ends) => {
                // The contig may show both copies.
                if let Some(stretch) = UnchangedAlleleEnds::from_insertion(f, &contig.seq) {
                    return Some(stretch);
                }
                let after = usize::try_from(f.contig_range.end as i32 + f.right_shift).ok()?;
                let ends = [
                    AlleleEnd { normal: &f.right_normal, at: after },
                    AlleleEnd { normal: &f.left_normal, at: f.contig_range.start },
                ];
                Some(UnchangedAlleleEnds { ends, homology: *homology, shifts: [f.right_shift, 0], is_junction: true })
            }
            Change::Allele { .. } => UnchangedAlleleEnds::from_insertion(f, &contig.seq),
            _ => None,
        }
    }

    /// The ends of the stretch next to an insertion that the insertion copies; `None` if it copies too little.
    fn from_insertion(f: &'a ContigChange, seq: &[u8]) -> Option<UnchangedAlleleEnds<'a>> {
        let (at, len) = (&f.contig_range, f.contig_range.len());
        if len < MIN_CHANGE_WITH_TWO_ENDS_BP || f.right_shift != -(i32::try_from(len).ok()?) {
            return None;
        }
        let [before, after] = event_model::num_copied_bases_at_insertion(seq, at);
        let copied = before + after;
        if copied * MIN_COPIED_SHARE[1] < len * MIN_COPIED_SHARE[0] {
            return None;
        }
        let homology = copied.saturating_sub(len);
        let start = at.start - before;
        let ends = [start, start + copied - homology].map(|at| AlleleEnd { normal: &f.left_normal, at });
        Some(UnchangedAlleleEnds { ends, homology, shifts: [0, f.right_shift], is_junction: false })
    }

    /// Bases around both ends in the sequences without the change, up to `reach` bases on each side of an end.
    pub(crate) fn bases_around_ends(&self, reach: usize) -> [&'a [u8]; 2] {
        self.ends.each_ref().map(|end| {
            let to = (end.at + reach).min(end.normal.len());
            end.normal.get(end.at.saturating_sub(reach)..to).unwrap_or_default()
        })
    }

    /// For each end of the stretch, how far the read extends across it: the smaller of its numbers of bases before and
    /// after the end. `None` if the read does not cross the end, or does not match the sequence without the change
    /// there. `offsets` are the contig positions at which the read may start.
    pub(crate) fn read_overhangs_at_ends(&self, read: &OwnedRead, offsets: &[i32]) -> [Option<usize>; 2] {
        let starts = || offsets.iter().flat_map(|offset| self.shifts.map(|shift| offset + shift));
        self.ends.each_ref().map(|end| starts().find_map(|start| self.bases_beside_end(end, read, start)))
    }

    fn bases_beside_end(&self, end: &AlleleEnd<'_>, read: &OwnedRead, start: i32) -> Option<usize> {
        let place = usize::try_from(end.at as i32 - start).ok()?;
        let after = read.seq.len().checked_sub(place + self.homology)?;
        let beside = place.min(after);
        if beside < MIN_BASES_BESIDE_END {
            return None;
        }
        let from = place.saturating_sub(COMPARED_BASES);
        let to = (place + self.homology + COMPARED_BASES).min(read.seq.len());
        let in_normal = usize::try_from(start + from as i32).ok()?;
        let normal = end.normal.get(in_normal..in_normal + to - from)?;
        let differs = |i: &usize| {
            read.seq[*i] != normal[i - from]
                && read.seq[*i] != b'N'
                && read.qual[*i] >= ERROR_MODEL_PARAMS.min_mismatch_quality
        };
        let is_close =
            |i: &usize| i + MIN_BASES_BESIDE_END >= place && *i < place + self.homology + MIN_BASES_BESIDE_END;
        let differing = (from..to).filter(differs).count();
        let fits = differing <= MAX_DIFFERENCES && !(from..to).filter(is_close).any(|i| differs(&i));
        fits.then_some(beside)
    }
}

/// The ends of a deletion of at least [`MIN_CHANGE_WITH_TWO_ENDS_BP`] bases, or of a junction that is no tandem
/// duplication, in the unchanged sequence. `None` for other changes.
pub(crate) fn ends_of_deletion_or_junction(f: &ContigChange) -> Option<UnchangedAlleleEnds<'_>> {
    let homology = match &f.change {
        Change::Junction { ends, homology, .. } if !event_model::are_ends_of_tandem_duplication(ends) => *homology,
        Change::Allele { .. } if f.right_shift >= MIN_CHANGE_WITH_TWO_ENDS_BP as i32 => 0,
        _ => return None,
    };
    let after = usize::try_from(f.contig_range.end as i32 + f.right_shift).ok()?;
    let ends = [
        AlleleEnd { normal: &f.left_normal, at: f.contig_range.start },
        AlleleEnd { normal: &f.right_normal, at: after },
    ];
    Some(UnchangedAlleleEnds { ends, homology, shifts: [0, f.right_shift], is_junction: true })
}

/// Whether change `f` inserts at least [`MIN_CHANGE_WITH_TWO_ENDS_BP`] bases, so that a molecule may cross only one end
/// of the insertion.
pub(crate) fn is_long_insertion(f: &ContigChange) -> bool {
    matches!(f.change, Change::Allele { .. }) && f.right_shift <= -(MIN_CHANGE_WITH_TWO_ENDS_BP as i32)
}

/// For the start and the end of the inserted bases, whether a read of `read_len` bases that begins at contig position
/// `start` crosses it.
pub(crate) fn are_insertion_ends_crossed(f: &ContigChange, start: i32, read_len: usize) -> [bool; 2] {
    let beside = MIN_BASES_BESIDE_END as i32;
    [f.contig_range.start, f.contig_range.end]
        .map(|end| start + beside <= end as i32 && start + read_len as i32 >= end as i32 + beside)
}

/// Mean number of molecules that cross one end of an allele. Of `num_votes` molecules with the allele, `crossing` were
/// seen to cross each of the ends, and `crossing_any` at least one. Returns `num_votes` if `crossing_any` is 0.
pub(crate) fn mean_molecules_crossing_one_end(num_votes: usize, crossing: [usize; 2], crossing_any: usize) -> usize {
    if crossing_any == 0 {
        return num_votes;
    }
    // docs/model/genotype.md (22)
    (num_votes * (crossing[0] + crossing[1])).div_ceil(2 * crossing_any)
}

/// Number of molecules with the unchanged allele: the mean number that cross an end of the stretch, less the number
/// with the duplication.
pub(crate) fn num_molecules_with_unchanged_allele(crossing: [usize; 2], num_duplicated: usize) -> usize {
    // docs/model/genotype.md (16)
    (crossing[0] + crossing[1]).div_ceil(2).saturating_sub(num_duplicated)
}

/// Whether item `i` is selected if `wanted` of `all` items are selected with even spacing.
pub(crate) fn is_evenly_selected(i: usize, all: usize, wanted: usize) -> bool {
    wanted >= all || (i + 1) * wanted / all > i * wanted / all
}

/// Selects `wanted` of the items with even spacing. The selection depends only on their order.
pub(crate) fn select_evenly_spaced<T>(items: Vec<T>, wanted: usize) -> Vec<T> {
    let all = items.len();
    items.into_iter().enumerate().filter(|(i, _)| is_evenly_selected(*i, all, wanted)).map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::Contig;
    use crate::change::{Breakend, RetainedSide};

    const LEFT: &[u8] = b"GATTACCTGAGTCCGTACGGATCTTAGCAACTGG";
    const STRETCH: &[u8] = b"CTTGCAGGTCAATCGCGTATTCCGAGATGCAAGC";
    const RIGHT: &[u8] = b"TAGACCAGTTGCCATAAGGTCGAACTTCGGATCA";

    fn contig_with(parts: &[&[u8]], change: ContigChange) -> AlignedContig {
        let seq = parts.concat();
        let contig = Contig {
            novel: vec![true; seq.len()],
            quality_sums: vec![90; seq.len()],
            seq,
            reads: Vec::new(),
            outer_mates: Default::default(),
        };
        AlignedContig { changes: vec![change], ..AlignedContig::from_unplaced_contig(&contig) }
    }

    fn insertion(at: std::ops::Range<usize>) -> ContigChange {
        let normal = [LEFT, STRETCH, RIGHT].concat();
        ContigChange {
            change: Change::Allele {
                chrom: 0,
                pos: 33,
                reference: b"G".to_vec(),
                alternative: vec![b'G'; at.len() + 1],
            },
            right_shift: -(at.len() as i32),
            contig_range: at,
            left_normal: normal.clone(),
            right_normal: normal,
            mapq: 60,
        }
    }

    fn read(parts: &[&[u8]]) -> OwnedRead {
        let seq = parts.concat();
        OwnedRead { qual: vec![37; seq.len()], seq }
    }

    #[test]
    fn ends_of_a_copied_insertion_are_found_wherever_it_is_aligned() {
        let (l, s) = (LEFT.len(), STRETCH.len());
        for filler in [&b""[..], b"ACA"] {
            let new = s + filler.len();
            for at in [l, l + s] {
                let contig = contig_with(&[LEFT, STRETCH, filler, STRETCH, RIGHT], insertion(at..at + new));
                let found = UnchangedAlleleEnds::ends_of_tandem_duplication(&contig.changes[0], &contig).unwrap();
                let ends = found.ends.each_ref().map(|end| end.at);
                assert!(ends[0].abs_diff(l) <= 1 && ends[1].abs_diff(l + s) <= 1, "{ends:?}");
                assert!(!found.is_junction);
                // Reads of either allele cross the ends; a read across the junction crosses neither.
                let crossed = |parts: &[&[u8]], offset: usize| {
                    found.read_overhangs_at_ends(&read(parts), &[offset as i32]).map(|beside| beside.is_some())
                };
                assert_eq!(crossed(&[&LEFT[10..], &STRETCH[..20]], 10), [true, false]);
                assert_eq!(crossed(&[&STRETCH[10..], &RIGHT[..20]], l + 10 + new), [false, true]);
                assert_eq!(crossed(&[&LEFT[10..], STRETCH, &RIGHT[..20]], 10), [true, true]);
                assert_eq!(crossed(&[&STRETCH[10..], filler, &STRETCH[..24]], l + 10), [false, false]);
                assert_eq!(crossed(&[&LEFT[10..]], 10), [false, false]);
            }
        }
        let other = contig_with(&[LEFT, STRETCH, RIGHT, STRETCH, RIGHT], insertion(34..68));
        assert_eq!(
            UnchangedAlleleEnds::ends_of_tandem_duplication(&other.changes[0], &other).map(|found| found.homology),
            None
        );
        let short = contig_with(&[LEFT, b"AC", STRETCH, RIGHT], insertion(34..36));
        assert_eq!(UnchangedAlleleEnds::ends_of_tandem_duplication(&short.changes[0], &short), None);
    }

    #[test]
    fn ends_of_a_junction_are_on_the_sequences_without_it() {
        let end = |pos, side| Breakend { chrom: 0, pos, side };
        let change = |ends| ContigChange {
            change: Change::Junction { ends, inserted: Vec::new(), homology: 0 },
            contig_range: 34..34,
            left_normal: [STRETCH, RIGHT].concat(),
            right_normal: [LEFT, STRETCH].concat(),
            right_shift: 0,
            mapq: 60,
        };
        let duplication = [end(1000, RetainedSide::Right), end(1299, RetainedSide::Left)];
        let contig = contig_with(&[STRETCH, STRETCH], change(duplication));
        let found = UnchangedAlleleEnds::ends_of_tandem_duplication(&contig.changes[0], &contig).unwrap();
        assert!(found.is_junction);
        let crossed = |parts: &[&[u8]]| found.read_overhangs_at_ends(&read(parts), &[4]).map(|beside| beside.is_some());
        assert_eq!(crossed(&[&STRETCH[4..], &RIGHT[..12]]), [false, true]);
        assert_eq!(crossed(&[&LEFT[4..], &STRETCH[..12]]), [true, false]);
        assert_eq!(crossed(&[&STRETCH[4..], &STRETCH[..12]]), [false, false]);
        assert_eq!(found.bases_around_ends(5)[1], [&STRETCH[29..], &RIGHT[..5]].concat());
        let deletion = [end(1000, RetainedSide::Left), end(1299, RetainedSide::Right)];
        let contig = contig_with(&[STRETCH, STRETCH], change(deletion));
        assert_eq!(UnchangedAlleleEnds::ends_of_tandem_duplication(&contig.changes[0], &contig), None);
    }

    #[test]
    fn molecules_at_both_ends_of_a_long_allele_count_as_those_of_one_end() {
        // 40 molecules at the start, 40 at the end, none at both.
        assert_eq!(mean_molecules_crossing_one_end(80, [40, 40], 80), 40);
        // All molecules cross both ends of a short allele.
        assert_eq!(mean_molecules_crossing_one_end(50, [50, 50], 50), 50);
        assert_eq!(mean_molecules_crossing_one_end(7, [0, 0], 0), 7);
        // A deletion of STRETCH: reads of the unchanged allele cross one end, a read of the deletion none.
        let mut deletion = insertion(LEFT.len()..LEFT.len());
        deletion.right_shift = STRETCH.len() as i32;
        let ends = ends_of_deletion_or_junction(&deletion).unwrap();
        let crossed = |parts: &[&[u8]], offset: i32| {
            ends.read_overhangs_at_ends(&read(parts), &[offset]).map(|beside| beside.is_some())
        };
        assert_eq!(crossed(&[&LEFT[10..], &STRETCH[..20]], 10), [true, false]);
        assert_eq!(crossed(&[&STRETCH[10..], &RIGHT[..20]], 10), [false, true]);
        assert_eq!(crossed(&[&LEFT[10..], &RIGHT[..20]], 10), [false, false]);
        assert!(ends_of_deletion_or_junction(&insertion(34..68)).is_none() && is_long_insertion(&insertion(34..68)));
        assert!(!is_long_insertion(&insertion(34..53)));
        assert_eq!(are_insertion_ends_crossed(&insertion(34..134), 0, 100), [true, false]);
        assert_eq!(are_insertion_ends_crossed(&insertion(34..134), 60, 100), [false, true]);
        assert_eq!(are_insertion_ends_crossed(&insertion(34..134), 0, 150), [true, true]);
    }

    #[test]
    fn unchanged_molecules_are_those_that_the_junction_lacks() {
        assert_eq!(num_molecules_with_unchanged_allele([101, 98], 20), 80);
        assert_eq!(num_molecules_with_unchanged_allele([10, 8], 20), 0);
        assert_eq!(select_evenly_spaced((0..10).collect(), 4), [2, 4, 7, 9]);
        assert_eq!(select_evenly_spaced(vec![1, 2], 3), [1, 2]);
        assert_eq!(select_evenly_spaced(vec![1, 2], 0), [0; 0]);
    }
}
