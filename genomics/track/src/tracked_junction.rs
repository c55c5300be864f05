//! Sequences of a tracked junction: the sequence with the change, and the reference sequence on both sides.
//!
//! A junction has two frames (coordinate systems). In the left frame reads are placed by their bases before the
//! junction, in the right frame by those after it. The reference continues differently from each side. So a read need
//! not cover both sides, and a read with an unknown variant on one side is placed by the other side.

use std::collections::BTreeSet;

use crate::change::{Breakend, ChangeClass, Junction, RetainedSide, TrackedChange};
use crate::reference_windows::{ReferenceWindow, ReferenceWindowRequest};

/// Number of bases on each side of a junction that its sequences contain.
pub(crate) const JUNCTION_FLANK_BASES: usize = 160;

/// A junction of a tracked change, with the sequences of both alleles.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrackedJunction {
    /// Index of the change in the list of tracked changes.
    pub change: usize,
    /// Class of the change: SNV, MNV, indel or structural variant.
    pub class: ChangeClass,
    /// The sequence with the change: left side, inserted bases, right side.
    pub alternative: Box<[u8]>,
    /// The sequences of the reference on both sides; where they overlap their bases are stored once.
    reference: Box<[u8]>,
    /// Positions in `alternative`: end of the left side, and start of the right side.
    pub side_bounds: [usize; 2],
    left: Option<ReferenceSide>,
    right: Option<ReferenceSide>,
    /// Number of reference bases between both sides, if the right side follows the left one within 50 bases. Otherwise
    /// `None`: the sides are separate loci.
    pub deleted_len: Option<usize>,
    /// Bit mask of the positions that tracked changes, this one included, affect; bit 0 is the position 64 bases before
    /// the junction in the left frame. 0 unless this change is a substitution.
    pub affected_positions: u128,
    /// If the change alters the length of a tandem repeat: length of its unit and of the repeat, in bases.
    pub repeat: Option<(usize, usize)>,
}

/// The reference on one side of a junction.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ReferenceSide {
    /// First position in [`TrackedJunction::reference`], and position after the last one.
    range: [u32; 2],
    /// Number of bases of the range before the junction.
    num_before: u32,
}

/// Number of positions on each side of a substitution at which errors are counted.
pub(crate) const ERROR_COUNTING_BASES_PER_SIDE: usize = 64;

impl TrackedJunction {
    /// Whether the change replaces bases by the same number of bases. On such a junction reads are placed only in the
    /// left frame.
    pub fn is_substitution(&self) -> bool {
        self.deleted_len == Some(self.side_bounds[1] - self.side_bounds[0])
    }

    /// The sequence of the left side as it continues in the reference, and its number of bases before the junction;
    /// `None` without a left side.
    pub fn left_reference_and_junction_offset(&self) -> Option<(&[u8], usize)> {
        self.left.map(|side| self.bases_of_side(side))
    }

    /// The sequence of the reference that ends with the right side, and its number of bases before the right side;
    /// `None` without a right side.
    pub fn right_reference_and_junction_offset(&self) -> Option<(&[u8], usize)> {
        self.right.map(|side| self.bases_of_side(side))
    }

    fn bases_of_side(&self, ReferenceSide { range: [from, to], num_before }: ReferenceSide) -> (&[u8], usize) {
        (&self.reference[from as usize..to as usize], num_before as usize)
    }

    /// Number of bases of `alternative` between the left and the right side.
    pub fn num_inserted_bases(&self) -> usize {
        self.side_bounds[1] - self.side_bounds[0]
    }
}

/// The ranges of the reference that a change needs: two for each junction, and one for the bases of REF.
pub(crate) fn list_window_requests_for_change(change: &TrackedChange) -> Vec<ReferenceWindowRequest> {
    let around = |end: &Breakend| ReferenceWindowRequest {
        chrom: end.chrom.clone(),
        from: end.pos.saturating_sub(JUNCTION_FLANK_BASES),
        to: end.pos + 1 + JUNCTION_FLANK_BASES,
    };
    let record = &change.record;
    let start = record.pos - 1;
    let own = ReferenceWindowRequest {
        chrom: record.chrom.clone(),
        from: start,
        to: start + change.expected_reference_bases().map_or(1, str::len),
    };
    let nothing = || ReferenceWindowRequest { chrom: record.chrom.clone(), from: start, to: start };
    let ends = change.junctions.iter().flat_map(|j| [&j.from, &j.to]);
    ends.map(|end| end.as_ref().map_or_else(nothing, around)).chain([own]).collect()
}

/// The kept bases at a breakend, and the reference bases beyond it, both in the direction towards the junction.
fn breakend_sides(end: &Breakend, window: &ReferenceWindow<'_>) -> [Vec<u8>; 2] {
    let (before, behind) = match end.side {
        RetainedSide::Left => (
            end.pos + 1 - JUNCTION_FLANK_BASES.min(end.pos + 1)..end.pos + 1,
            end.pos + 1..end.pos + 1 + JUNCTION_FLANK_BASES,
        ),
        RetainedSide::Right => {
            (end.pos - JUNCTION_FLANK_BASES.min(end.pos)..end.pos, end.pos..end.pos + JUNCTION_FLANK_BASES)
        }
    };
    let (before, behind) =
        (window.bases_in_range(before.start, before.end), window.bases_in_range(behind.start, behind.end));
    match end.side {
        RetainedSide::Left => [before.to_vec(), behind.to_vec()],
        RetainedSide::Right => {
            [genuma_reads::dna::reverse_complement(behind), genuma_reads::dna::reverse_complement(before)]
        }
    }
}

/// Builds the sequences of a junction. `windows` are the bases of the reference at its two ends; `changed_positions`
/// are the positions on the reference sequence of `junction.from` that tracked changes affect.
pub(crate) fn build_tracked_junction(
    change: usize,
    known_change: &TrackedChange,
    junction: &Junction,
    windows: [ReferenceWindow<'_>; 2],
    changed_positions: &BTreeSet<usize>,
) -> TrackedJunction {
    let [from, to] = [&junction.from, &junction.to];
    let first = from.as_ref().map(|end| breakend_sides(end, &windows[0]));
    let second = to.as_ref().map(|end| {
        // Read away from the junction: reverse-complemented.
        let [kept, beyond] = breakend_sides(end, &windows[1]);
        [genuma_reads::dna::reverse_complement(&kept), genuma_reads::dna::reverse_complement(&beyond)]
    });
    let part = |side: &Option<[Vec<u8>; 2]>, i: usize| side.as_ref().map_or(Vec::new(), |s| s[i].clone());
    let cut = part(&first, 0).len();
    let alternative = [part(&first, 0), junction.inserted.clone(), part(&second, 0)].concat();
    let deleted_len = junction.num_deleted_bases_if_small();
    let left = first.map(|[kept, beyond]| ([&kept[..], &beyond].concat(), kept.len()));
    let right = second.map(|[kept, beyond]| ([&beyond[..], &kept].concat(), beyond.len()));
    let (reference, [left, right]) = join_sides(left, right, deleted_len);
    let mut junction_sequences = TrackedJunction {
        change,
        class: known_change.class,
        alternative: alternative.into(),
        reference,
        side_bounds: [cut, cut + junction.inserted.len()],
        left,
        right,
        deleted_len,
        affected_positions: 0,
        repeat: None,
    };
    if let (Some(from), true) = (from, junction_sequences.is_substitution()) {
        let first = (from.pos + 1) as i64 - ERROR_COUNTING_BASES_PER_SIDE as i64;
        for &pos in changed_positions.range((first.max(0) as usize)..(first + 128) as usize) {
            junction_sequences.affected_positions |= 1 << (pos as i64 - first);
        }
    }
    junction_sequences.repeat = find_changed_repeat(&junction_sequences);
    junction_sequences
}

/// Joins the reference sequences of both sides, each with its number of bases before the junction. If `deleted_len`
/// bases of one sequence are between the sides, their common bases are stored once.
fn join_sides(
    left: Option<(Vec<u8>, usize)>,
    right: Option<(Vec<u8>, usize)>,
    deleted_len: Option<usize>,
) -> (Box<[u8]>, [Option<ReferenceSide>; 2]) {
    let side = |from: usize, len: usize, num_before: usize| {
        let [from, to, num_before] = [from, from + len, num_before].map(|at| at as u32);
        ReferenceSide { range: [from, to], num_before }
    };
    let left_side = left.as_ref().map(|(seq, cut)| side(0, seq.len(), *cut));
    let (mut bases, left_cut) = left.unwrap_or_default();
    let Some((seq, cut)) = right else { return (bases.into(), [left_side, None]) };
    // Position of the first base of the right side's sequence in that of the left side.
    let start = deleted_len.and_then(|gap| (left_cut + gap).checked_sub(cut)).unwrap_or(bases.len()).min(bases.len());
    let num_shared = (bases.len() - start).min(seq.len());
    bases.extend_from_slice(&seq[num_shared..]);
    (bases.into(), [left_side, Some(side(start, seq.len(), cut))])
}

/// Finds the tandem repeat whose length the change alters: length of its unit, and length of the repeat in the longer
/// allele. `None` if there is none.
fn find_changed_repeat(junction_sequences: &TrackedJunction) -> Option<(usize, usize)> {
    let (gap, inserted, (seq, cut)) = (
        junction_sequences.deleted_len?,
        junction_sequences.num_inserted_bases(),
        junction_sequences.left_reference_and_junction_offset()?,
    );
    let (longer, from, changed) = match (gap, inserted) {
        (gap, 0) if gap > 0 => (seq, cut, gap),
        (0, inserted) if inserted > 0 => {
            (&*junction_sequences.alternative, junction_sequences.side_bounds[0], inserted)
        }
        _ => return None,
    };
    let bases = longer.get(from..from + changed)?;
    let unit = (1..=changed).find(|&p| changed % p == 0 && bases.iter().zip(&bases[p..]).all(|(a, b)| a == b))?;
    let repeats = |i: usize| longer[i] == longer[i + unit];
    let before = (0..from).rev().take_while(|&i| repeats(i)).count();
    let behind = (from..longer.len() - unit).take_while(|&i| repeats(i)).count();
    let length = before + behind + unit;
    (length > changed.max(unit) && length >= 2 * unit).then_some((unit, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::VcfAlleleRecord;

    /// 1 kb of random bases with a repeat of ten A at 500.
    fn genome() -> Vec<u8> {
        let mut x = 5u64;
        let mut seq: Vec<u8> = (0..1000)
            .map(|_| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                b"ACGT"[(x >> 62) as usize]
            })
            .collect();
        seq[499..511].copy_from_slice(b"CAAAAAAAAAAG");
        seq
    }

    fn places(record: VcfAlleleRecord, touched: &[usize]) -> Vec<TrackedJunction> {
        let change = TrackedChange::from_record(VcfAlleleRecord { chrom: "c".into(), ..record }).unwrap().unwrap();
        let genome = genome();
        let windows: Vec<ReferenceWindow<'_>> = list_window_requests_for_change(&change)
            .iter()
            .map(|w| ReferenceWindow { start: w.from, bases: &genome[w.from..w.to.min(1000)], is_present: true })
            .collect();
        let touched = touched.iter().copied().collect();
        let each = change.junctions.iter().enumerate();
        each.map(|(j, junction)| {
            build_tracked_junction(0, &change, junction, [windows[2 * j], windows[2 * j + 1]], &touched)
        })
        .collect()
    }

    #[test]
    fn alleles_are_spelled_with_what_stands_around_them() {
        let g = genome();
        let base = |pos: usize| (g[pos] as char).to_string();
        let other = if g[299] == b'A' { "C" } else { "A" };
        let snv =
            VcfAlleleRecord { pos: 300, reference: base(299), alternate: other.into(), ..VcfAlleleRecord::default() };
        let [place] = &places(snv, &[235, 290, 299, 362, 363])[..] else { panic!("one place") };
        assert!(place.is_substitution() && place.repeat.is_none());
        assert_eq!(*place.alternative, *[&g[139..299], other.as_bytes(), &g[300..460]].concat());
        assert_eq!(place.left_reference_and_junction_offset(), Some((&g[139..459], 160)));
        assert_eq!(place.right_reference_and_junction_offset(), Some((&g[140..460], 160)));
        assert_eq!(*place.reference, g[139..460]);
        assert_eq!(place.affected_positions, 1 | 1 << 55 | 1 << 64 | 1 << 127);
        // At the end of the sequence there are fewer bases.
        let last =
            VcfAlleleRecord { pos: 1000, reference: base(999), alternate: other.into(), ..VcfAlleleRecord::default() };
        let place = &places(last, &[])[0];
        assert_eq!((place.side_bounds, place.alternative.len()), ([160, 161], 161));
    }

    #[test]
    fn repeats_that_change_their_length_are_known() {
        let shorter =
            VcfAlleleRecord { pos: 500, reference: "CA".into(), alternate: "C".into(), ..VcfAlleleRecord::default() };
        assert_eq!(places(shorter, &[])[0].repeat, Some((1, 10)));
        let longer =
            VcfAlleleRecord { pos: 500, reference: "C".into(), alternate: "CAA".into(), ..VcfAlleleRecord::default() };
        assert_eq!(places(longer, &[])[0].repeat, Some((1, 12)));
        let novel = VcfAlleleRecord {
            pos: 500,
            reference: "C".into(),
            alternate: "CGTTGC".into(),
            ..VcfAlleleRecord::default()
        };
        assert_eq!(places(novel, &[])[0].repeat, None);
    }

    #[test]
    fn an_inversion_is_two_junctions_of_turned_sides() {
        let g = genome();
        let record = VcfAlleleRecord {
            pos: 300,
            reference: "N".into(),
            alternate: "<INV>".into(),
            end: Some(700),
            ..VcfAlleleRecord::default()
        };
        let [one, two] = &places(record, &[])[..] else { panic!("two places") };
        let turned = genuma_reads::dna::reverse_complement(&g[540..700]);
        assert_eq!(*one.alternative, *[&g[140..300], &turned].concat());
        assert_eq!(*one.left_reference_and_junction_offset().unwrap().0, g[140..460]);
        assert_eq!(
            *one.right_reference_and_junction_offset().unwrap().0,
            *genuma_reads::dna::reverse_complement(&g[540..860])
        );
        assert_eq!(*two.alternative, *[&genuma_reads::dna::reverse_complement(&g[300..460]), &g[700..860]].concat());
        assert!(one.deleted_len.is_none());
    }
}
