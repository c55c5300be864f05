//! The haplotypes with which the reads of a locus are compared: the tumour contig, and the contig without some of its
//! changes.
//!
//! A contig may have several changes. A read of the normal has none of them, a read of a subclone some of them. Both
//! would fit poorly to a sequence that lacks only one change. Therefore the haplotypes are: all small changes, none of
//! them, all except each change, and, unless there are many, each change alone; and all of these for each side of a
//! junction, and for each sequence between two junctions, as they continue in the normal.

use std::ops::Range;

use crate::affine_alignment;
use crate::aligned_contig::{AlignedContig, ContigChange};
use crate::change::{self, Change};

/// Maximum number of small changes of a contig for which haplotypes with only one of the changes are also made.
pub(crate) const MAX_CHANGES_FOR_SINGLE_CHANGE_HAPLOTYPES: usize = 6;

/// A sequence from which reads of a locus may come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Haplotype {
    /// Bases of the haplotype.
    pub seq: Vec<u8>,
    /// For each change of the contig, whether the haplotype has it; `None` if the haplotype does not cover its
    /// position.
    pub has_change: Vec<Option<bool>>,
    /// Numbers to add to a contig coordinate to get the coordinate in `seq`: one for each gapless stretch, sorted,
    /// without duplicates.
    pub shifts: Vec<i32>,
    /// An earlier haplotype of the same length and shifts, by index, and the range of `seq` beyond which both
    /// are equal. A read placed outside the range is as likely on both.
    pub equal_outside: Option<(usize, Range<usize>)>,
}

impl Haplotype {
    /// The range of `seq` outside of which this haplotype equals `other`; `None` if their lengths or shifts differ.
    fn range_differing_from(&self, other: &Haplotype) -> Option<Range<usize>> {
        if self.shifts != other.shifts || self.seq.len() != other.seq.len() {
            return None;
        }
        let differs = |(a, b): (&u8, &u8)| a != b;
        let start = self.seq.iter().zip(&other.seq).position(differs)?;
        let end = self.seq.iter().zip(&other.seq).rposition(differs)? + 1;
        Some(start..end)
    }
}

/// For each of `num_changes` changes, the indices of the haplotypes that differ in it from the haplotype to which they
/// are otherwise equal ([`Haplotype::equal_outside`]).
pub(crate) fn haplotype_indices_by_differing_change(haplotypes: &[Haplotype], num_changes: usize) -> Vec<Vec<usize>> {
    let mut by_change = vec![Vec::new(); num_changes];
    for (h, haplotype) in haplotypes.iter().enumerate() {
        let Some((other, _)) = haplotype.equal_outside else { continue };
        let both = haplotype.has_change.iter().zip(&haplotypes[other].has_change);
        let differing = by_change.iter_mut().zip(both).filter(|(_, (own, other))| own != other);
        differing.for_each(|(of_change, _)| of_change.push(h));
    }
    by_change
}

/// Number of bases on each side of a change in which a rival contig is compared with the contig. The rival has the
/// change if these bases are identical.
const RIVAL_WINDOW_BASES: usize = 30;

/// A rival contig (another contig of the same locus) as a haplotype from which the reads of this contig may come;
/// `None` if the contigs have no common diagonal.
///
/// A sequencing error that two reads share creates a second contig with all changes of the true allele and one more.
/// If the reads of the true allele are compared with both contigs, they do not support the error.
pub fn haplotype_of_rival_contig(contig: &AlignedContig, rival: &AlignedContig) -> Option<Haplotype> {
    let mut shifts = Vec::new();
    for (chrom, own) in contig.diagonals.into_iter().flatten() {
        for (_, other) in rival.diagonals.into_iter().flatten().filter(|d| d.0 == chrom) {
            shifts.extend(i32::try_from(own - other));
        }
    }
    shifts.sort_unstable();
    shifts.dedup();
    if shifts.is_empty() {
        return None;
    }
    let shows = |f: &ContigChange| {
        let window = f.contig_range.start.saturating_sub(RIVAL_WINDOW_BASES)
            ..(f.contig_range.end + RIVAL_WINDOW_BASES).min(contig.seq.len());
        let there = |shift: i32| {
            let start = usize::try_from(window.start as i32 + shift).ok()?;
            rival.seq.get(start..start + window.len())
        };
        let same =
            rival.changes.iter().any(|other| change::are_changes_equal_within_tolerance(&other.change, &f.change))
                || shifts.iter().any(|&shift| there(shift) == Some(&contig.seq[window.clone()]));
        let reaches = |&shift: &i32| {
            f.contig_range.start as i32 + shift >= 0 && f.contig_range.start as i32 + shift <= rival.seq.len() as i32
        };
        (same || shifts.iter().any(reaches)).then_some(same)
    };
    let has = contig.changes.iter().map(shows).collect();
    Some(Haplotype { seq: rival.seq.clone(), has_change: has, shifts, equal_outside: None })
}

/// Number of bases beside a haplotype's own bases that are aligned too, and number of further bases of the sequence with
/// which they are aligned.
const ALIGNED_MARGIN_BASES: usize = 30;

/// Minimum share (numerator, denominator) of the alignment score that the contig loses without a change, which a
/// haplotype with this change must lose too. Chosen: next to another indel of the same length a haplotype without the
/// change loses about half, because substitutions can take the place of both indels.
const MIN_LOST_SCORE_SHARE: [i32; 2] = [3, 4];

/// A haplotype of the normal: the contig with the bases `bases` instead of `range`. It has a change of the contig if its
/// alignment loses nearly as much score without this change as that of the contig itself.
pub(crate) fn haplotype_of_normal(contig: &AlignedContig, range: &Range<usize>, bases: &[u8]) -> Haplotype {
    let margin = ALIGNED_MARGIN_BASES;
    let seq = [&contig.seq[..range.start], bases, &contig.seq[range.end..]].concat();
    fn around(seq: &[u8], range: Range<usize>, margin: usize) -> &[u8] {
        &seq[range.start.saturating_sub(margin)..(range.end + margin).min(seq.len())]
    }
    let score = |query: &[u8], target: &[u8]| affine_alignment::align_whole_query(query, target).score;
    let own = around(&seq, range.start..range.start + bases.len(), margin);
    let of_contig = around(&contig.seq, range.clone(), margin);
    let contig_target = around(&contig.seq, range.clone(), 2 * margin);
    let (own_score, contig_score) = (score(own, contig_target), score(of_contig, contig_target));
    let has_change = |f: &ContigChange| {
        let is_inside = range.start <= f.contig_range.start && f.contig_range.end <= range.end;
        let end = usize::try_from(range.end as i32 + f.right_shift).ok().filter(|_| is_inside)?;
        let without = around(&f.left_normal, range.start..end.max(range.start), 2 * margin);
        let [numerator, denominator] = MIN_LOST_SCORE_SHARE;
        let lost_by_contig = contig_score - score(of_contig, without);
        Some((own_score - score(own, without)) * denominator >= lost_by_contig * numerator)
    };
    let mut shifts = vec![0, bases.len() as i32 - range.len() as i32];
    shifts.sort_unstable();
    shifts.dedup();
    Haplotype { has_change: contig.changes.iter().map(has_change).collect(), seq, shifts, equal_outside: None }
}

/// A small change of a contig that can be undone: `normal` replaces the contig bases `at`.
struct UndoableChange<'a> {
    change_index: usize,
    at: Range<usize>,
    normal: &'a [u8],
}

/// A stretch of the contig, extended by genome bases as in the normal.
#[derive(Default)]
struct ContigStretch<'a> {
    /// First contig position of the stretch, which is `from..to`.
    from: usize,
    to: usize,
    /// Genome bases before `from`; `after` has those after `to`. Present if a junction is there, so that the stretch
    /// continues as in the normal.
    before: Option<&'a [u8]>,
    after: Option<&'a [u8]>,
}

impl ContigStretch<'_> {
    /// Whether the stretch has change `f`, before small changes are undone; `None` if it does not cover the position of
    /// `f`. It lacks the junction at which it ends.
    fn has_change(&self, f: &ContigChange) -> Option<bool> {
        let parted = !matches!(f.change, Change::Allele { .. });
        // At its own junction the stretch continues as the normal does.
        let edge = self.after.is_some() && f.contig_range.start == self.to
            || self.before.is_some() && f.contig_range.end == self.from;
        match f.contig_range.start >= self.from && f.contig_range.end <= self.to {
            true => Some(!(parted && edge)),
            false => (parted && edge).then_some(false),
        }
    }
}

/// All haplotypes of a contig with which reads are compared. The first is the contig itself.
pub fn haplotypes_of_contig(contig: &AlignedContig) -> Vec<Haplotype> {
    let whole = ContigStretch { to: contig.seq.len(), ..ContigStretch::default() };
    let (mut edits, mut frames) = (Vec::new(), vec![whole]);
    for (i, finding) in contig.changes.iter().enumerate() {
        match finding.change {
            Change::Allele { .. } => edits.extend(undoable_change(i, finding)),
            Change::Junction { .. } | Change::Novel { .. } => frames.extend(junction_sides(contig, finding)),
        }
    }
    frames.extend(sequences_between_junctions(contig));
    edits.sort_by_key(|e| (e.at.start, e.at.end));
    let mut all: Vec<Haplotype> = Vec::new();
    for frame in &frames {
        // The haplotype of this frame with all small changes.
        let mut with_all = None;
        for kept in kept_change_sets(edits.len()) {
            let mut haplotype = build_haplotype(contig, frame, &edits, &kept);
            let known = all.iter().position(|other| other.seq == haplotype.seq);
            let with_all = *with_all.get_or_insert(known.unwrap_or(all.len()));
            if known.is_none() {
                haplotype.equal_outside = all
                    .get(with_all)
                    .and_then(|other| haplotype.range_differing_from(other))
                    .map(|differing| (with_all, differing));
                all.push(haplotype);
            }
        }
    }
    all
}

fn undoable_change(finding: usize, f: &ContigChange) -> Option<UndoableChange<'_>> {
    let after = usize::try_from(f.contig_range.end as i32 + f.right_shift).ok()?;
    Some(UndoableChange {
        change_index: finding,
        at: f.contig_range.clone(),
        normal: f.left_normal.get(f.contig_range.start..after)?,
    })
}

/// The genome bases after the left side of a junction; `None` if its left side is not that of the contig.
fn genome_bases_after_left_side<'a>(contig: &AlignedContig, f: &'a ContigChange) -> Option<&'a [u8]> {
    let is_of_contig = f.left_normal.get(..f.contig_range.start) == contig.seq.get(..f.contig_range.start);
    is_of_contig.then(|| &f.left_normal[f.contig_range.start..])
}

/// The genome bases before the right side of a junction; `None` if its right side is not that of the contig.
fn genome_bases_before_right_side<'a>(contig: &AlignedContig, f: &'a ContigChange) -> Option<&'a [u8]> {
    let start = usize::try_from(f.contig_range.end as i32 + f.right_shift).unwrap_or(0);
    let is_of_contig = f.right_normal.get(start..) == contig.seq.get(f.contig_range.end..);
    is_of_contig.then(|| &f.right_normal[..start])
}

/// Both sides of a junction.
fn junction_sides<'a>(contig: &AlignedContig, f: &'a ContigChange) -> impl Iterator<Item = ContigStretch<'a>> {
    let left = genome_bases_after_left_side(contig, f).map(|after| ContigStretch {
        to: f.contig_range.start,
        after: Some(after),
        ..ContigStretch::default()
    });
    let right = genome_bases_before_right_side(contig, f).map(|before| ContigStretch {
        from: f.contig_range.end,
        to: contig.seq.len(),
        before: Some(before),
        after: None,
    });
    left.into_iter().chain(right)
}

/// The sequences between two neighbouring junctions, as at the place in the genome from which each was copied. A read of
/// the normal may contain such a sequence as a whole.
fn sequences_between_junctions(contig: &AlignedContig) -> Vec<ContigStretch<'_>> {
    let mut junctions: Vec<&ContigChange> =
        contig.changes.iter().filter(|f| matches!(f.change, Change::Junction { .. })).collect();
    junctions.sort_by_key(|f| (f.contig_range.start, f.contig_range.end));
    let mut stretches = Vec::new();
    for two in junctions.windows(2) {
        let (from, to) = (two[0].contig_range.end, two[1].contig_range.start);
        let before = genome_bases_before_right_side(contig, two[0]);
        let after = genome_bases_after_left_side(contig, two[1]);
        if from < to && before.is_some() && after.is_some() {
            stretches.push(ContigStretch { from, to, before, after });
        }
    }
    stretches
}

/// For each haplotype, which of `n` small changes it has.
fn kept_change_sets(n: usize) -> Vec<Vec<bool>> {
    let mut all = vec![vec![true; n], vec![false; n]];
    all.extend((0..n).map(|one| (0..n).map(|i| i != one).collect()));
    if n <= MAX_CHANGES_FOR_SINGLE_CHANGE_HAPLOTYPES {
        all.extend((0..n).map(|one| (0..n).map(|i| i == one).collect()));
    }
    all
}

fn build_haplotype(
    contig: &AlignedContig,
    frame: &ContigStretch,
    edits: &[UndoableChange],
    kept: &[bool],
) -> Haplotype {
    let mut has: Vec<Option<bool>> = contig.changes.iter().map(|f| frame.has_change(f)).collect();
    let mut seq = frame.before.unwrap_or_default().to_vec();
    let mut shifts = vec![seq.len() as i32 - frame.from as i32];
    let mut at = frame.from;
    let undone = edits
        .iter()
        .zip(kept)
        .filter(|(edit, kept)| !**kept && frame.has_change(&contig.changes[edit.change_index]).is_some());
    for (edit, _) in undone {
        // Of two overlapping changes only one can be undone.
        if edit.at.start < at {
            continue;
        }
        seq.extend_from_slice(&contig.seq[at..edit.at.start]);
        seq.extend_from_slice(edit.normal);
        at = edit.at.end;
        shifts.push(seq.len() as i32 - at as i32);
        has[edit.change_index] = Some(false);
    }
    seq.extend_from_slice(&contig.seq[at..frame.to]);
    seq.extend_from_slice(frame.after.unwrap_or_default());
    shifts.sort_unstable();
    shifts.dedup();
    Haplotype { seq, has_change: has, shifts, equal_outside: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::Contig;

    /// The change of `seq` in which the bases `normal` were replaced by the bases `range`.
    fn small_change(seq: &[u8], range: Range<usize>, normal: &[u8]) -> ContigChange {
        let without = [&seq[..range.start], normal, &seq[range.end..]].concat();
        ContigChange {
            change: Change::Allele {
                chrom: 0,
                pos: range.start,
                reference: normal.to_vec(),
                alternative: seq[range.clone()].to_vec(),
            },
            right_shift: normal.len() as i32 - range.len() as i32,
            contig_range: range,
            left_normal: without.clone(),
            right_normal: without,
            mapq: 60,
        }
    }

    #[test]
    fn a_haplotype_of_the_normal_has_the_changes_that_make_it_more_alike() {
        let left = b"GATTACCTGAGTCCGTACGGATCTTAGCAACTGGCATCATGGATTCCGTAACTGATCGGA".repeat(2);
        let right = b"ACATCTGACTGTAGATCGTGCTCCATTAGACCAGTTGCCATTGACCTGGATCAAGCTTCA".repeat(2);
        // The contig has a somatic insertion of CT, and a germline substitution of C by G that both haplotypes have.
        let (genome, middle) = (b"ATCCAAGTCTGACAGT", b"ATCCAAGTCCTTGAGAGT");
        let seq = [&left[..], middle, &right].concat();
        let at = left.len();
        let changes = vec![small_change(&seq, at + 9..at + 11, b""), small_change(&seq, at + 14..at + 15, b"C")];
        let unplaced = Contig {
            novel: vec![true; seq.len()],
            quality_sums: vec![40; seq.len()],
            seq,
            reads: Vec::new(),
            outer_mates: Default::default(),
        };
        let contig = AlignedContig { changes, ..AlignedContig::from_unplaced_contig(&unplaced) };
        let of_normal = |bases: &[u8]| haplotype_of_normal(&contig, &(at..at + middle.len()), bases);
        // The other haplotype has a germline insertion of AG instead.
        let other = of_normal(b"ATAGCCAAGTCTGAGAGT");
        assert_eq!(other.has_change, [Some(false), Some(true)]);
        assert_eq!(other.seq, [&left[..], b"ATAGCCAAGTCTGAGAGT", &right].concat());
        assert_eq!(other.shifts, [0]);
        assert_eq!(of_normal(genome).has_change, [Some(false); 2]);
        assert_eq!(of_normal(genome).shifts, [-2, 0]);
        // A germline insertion of the same length next to the somatic one.
        assert_eq!(of_normal(b"ATCCAAGAGTCTGAGAGT").has_change, [Some(false), Some(true)]);
        // A change outside of the replaced bases is not covered.
        let outside = haplotype_of_normal(&contig, &(at..at + 13), b"ATCCAAGTCTG");
        assert_eq!(outside.has_change, [Some(false), None]);
    }
}
