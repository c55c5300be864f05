//! Splits the changes of a contig into germline variants, which the normal's haplotype has, and somatic changes, which
//! arose in this haplotype.
//!
//! Compared with the reference, a germline indel and a somatic change a few bases apart may look like other changes.
//! For example, an insertion and a deletion of the same length may look like substitutions. The normal's reads show the
//! haplotype in which the somatic change arose. If they show it clearly, the contig is compared with this haplotype,
//! and the haplotype with the reference.

use std::ops::Range;

use genuma_reads::fasta::Reference;

use crate::affine_alignment::{self, Alignment, AlignmentOp};
use crate::aligned_contig::{AlignedContig, ContigChange, changes_with_contig_ranges};
use crate::change::{Change, left_align_allele};
use crate::explanation::{Explanation, ExplanationMethod};
use crate::locus::Locus;
use crate::normal_sequences;
use crate::recruit::RecruitedPair;

/// Maximum distance in bases, on the contig, of two changes that may together be a different, simpler change of the
/// normal's haplotype.
const MAX_NEIGHBOUR_DISTANCE_BASES: usize = 20;
/// Maximum length in bases of an insertion or deletion that may be a combination of a germline and a somatic indel.
/// Chosen: most germline indels are shorter, and copies of longer ones are events of their own.
const MAX_MERGED_INDEL_BASES: usize = 20;
/// Minimum number of bases at both ends of an alignment that must be aligned before a gap.
const MIN_END_MATCH_BASES: u32 = 12;
/// Number of genome bases on each side of the contig's position with which the haplotype is aligned.
const WINDOW_MARGIN_BASES: usize = 50;

/// A difference between two sequences: bases `query` of one replace bases `target` of the other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    query: Range<usize>,
    target: Range<usize>,
}

impl Edit {
    /// Number of bases by which the edit lengthens the sequence; negative if it shortens it.
    fn length_change(&self) -> i64 {
        self.query.len() as i64 - self.target.len() as i64
    }

    /// Whether the `target` range of this edit and the `query` range of `other` overlap.
    fn overlaps_query_of(&self, other: &Edit) -> bool {
        self.target.start < other.query.end && other.query.start < self.target.end
    }
}

/// Whether the small changes of a contig may have another explanation if the normal's haplotype is known: two of them
/// are near each other, or one is an indel that may combine a germline and a somatic indel. False for contigs with a
/// junction or novel sequence.
pub(crate) fn may_combine_germline_and_somatic_changes(contig: &AlignedContig) -> bool {
    let may_be_two = |change: &Change| match change {
        Change::Allele { reference, alternative, .. } => {
            let grown = reference.len().abs_diff(alternative.len());
            grown > 0 && (grown <= MAX_MERGED_INDEL_BASES || reference.len().min(alternative.len()) > 1)
        }
        _ => false,
    };
    let mut ranges: Vec<&Range<usize>> = contig.changes.iter().map(|f| &f.contig_range).collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    let are_near = |two: &[&Range<usize>]| two[1].start <= two[0].end + MAX_NEIGHBOUR_DISTANCE_BASES;
    contig.changes.iter().all(|f| matches!(f.change, Change::Allele { .. }))
        && (ranges.windows(2).any(are_near) || contig.changes.iter().any(|f| may_be_two(&f.change)))
}

/// Whether the changes `combined` of a contig may be a combination of the changes `split`. They may not if one of `split` is too long: in
/// a satellite the reads of the normal may be assembled without some of its copies, which looks like a long germline
/// deletion in which the tumour has an insertion.
fn may_be_combined<'a>(combined: &[ContigChange], split: impl IntoIterator<Item = &'a ContigChange>) -> bool {
    let longer_allele_bases = |found: &ContigChange| match &found.change {
        Change::Allele { reference, alternative, .. } => reference.len().max(alternative.len()),
        _ => 0,
    };
    let longest = combined.iter().map(longer_allele_bases).max().unwrap_or(0);
    // An indel has one base before it.
    split.into_iter().all(|found| longer_allele_bases(found) <= longest.max(MAX_MERGED_INDEL_BASES + 1))
}

/// The differences that an alignment shows. `None` if a gap is near an end of the alignment.
fn edits_of_alignment(query: &[u8], target: &[u8], alignment: &Alignment) -> Option<Vec<Edit>> {
    let is_held = |op: Option<&AlignmentOp>| matches!(op, Some(AlignmentOp::Match(n)) if *n >= MIN_END_MATCH_BASES);
    if !is_held(alignment.ops.first()) || !is_held(alignment.ops.last()) {
        return None;
    }
    let (mut q, mut t) = (0, alignment.start);
    let mut edits: Vec<Edit> = Vec::new();
    for op in &alignment.ops {
        let (in_query, in_target) = match *op {
            AlignmentOp::Match(n) => (n as usize, n as usize),
            AlignmentOp::Insert(n) => (n as usize, 0),
            AlignmentOp::Delete(n) => (0, n as usize),
        };
        if let AlignmentOp::Match(_) = op {
            let differs = |i: &usize| query[q + i] != target[t + i];
            edits.extend(
                (0..in_query).filter(differs).map(|i| Edit { query: q + i..q + i + 1, target: t + i..t + i + 1 }),
            );
        } else {
            edits.push(Edit { query: q..q + in_query, target: t..t + in_target });
        }
        (q, t) = (q + in_query, t + in_target);
    }
    Some(edits)
}

/// Shifts an insertion or deletion by one base to the left (or to the right) if the resulting sequence stays the same.
fn shift_by_one_base(edit: &Edit, query: &[u8], target: &[u8], left: bool) -> Option<Edit> {
    let (bases, range) = match (edit.query.is_empty(), edit.target.is_empty()) {
        (true, false) => (target, &edit.target),
        (false, true) => (query, &edit.query),
        _ => return None,
    };
    let moved = |range: &Range<usize>| {
        if left {
            Some(range.start.checked_sub(1)?..range.end.checked_sub(1)?)
        } else {
            Some(range.start + 1..range.end + 1)
        }
    };
    let same = if left {
        bases.get(range.start.checked_sub(1)?) == bases.get(range.end - 1)
    } else {
        bases.get(range.end).is_some() && bases.get(range.end) == bases.get(range.start)
    };
    same.then_some(())?;
    Some(Edit { query: moved(&edit.query)?, target: moved(&edit.target)? })
}

/// Shifts an edit to the leftmost equivalent position for which `is_allowed` is true.
fn shift_leftmost(edit: &Edit, query: &[u8], target: &[u8], is_allowed: impl Fn(&Edit) -> bool) -> Option<Edit> {
    let mut edit = edit.clone();
    while let Some(next) = shift_by_one_base(&edit, query, target, true) {
        edit = next;
    }
    while !is_allowed(&edit) {
        edit = shift_by_one_base(&edit, query, target, false)?;
    }
    Some(edit)
}

/// The normal's haplotype along a contig, with the contig and the genome bases with which it is compared.
struct GermlineHaplotype<'a> {
    /// Bases of the contig that the haplotype covers; `contig_start` is the index of the first of them.
    contig: &'a [u8],
    contig_start: usize,
    /// Bases of the haplotype.
    haplotype: &'a [u8],
    chrom: usize,
    chrom_seq: &'a [u8],
    /// Genome position of the first base of `window`, the genome bases with which the haplotype is aligned.
    window_start: usize,
    window: &'a [u8],
}

impl GermlineHaplotype<'_> {
    /// Finds the differences between contig and haplotype (somatic), and between haplotype and genome (germline).
    /// `None` if they overlap.
    fn find_edits(&self) -> Option<[Vec<Edit>; 2]> {
        let of_contig = affine_alignment::align_whole_query(self.contig, self.haplotype);
        let of_haplotype = affine_alignment::align_whole_query(self.haplotype, self.window);
        let somatic = edits_of_alignment(self.contig, self.haplotype, &of_contig)?;
        let germline = edits_of_alignment(self.haplotype, self.window, &of_haplotype)?;
        let germline: Vec<Edit> = germline
            .iter()
            .map(|edit| shift_leftmost(edit, self.haplotype, self.window, |_| true))
            .collect::<Option<_>>()?;
        let is_apart = |edit: &Edit| !germline.iter().any(|other| edit.overlaps_query_of(other));
        let somatic: Vec<Edit> = somatic
            .iter()
            .map(|edit| shift_leftmost(edit, self.contig, self.haplotype, is_apart))
            .collect::<Option<_>>()?;
        Some([somatic, germline])
    }

    /// Converts a somatic difference to a change of the genome, without shifting it across germline differences.
    fn somatic_change(&self, edit: &Edit, germline: &[Edit]) -> Option<Change> {
        // Index in the window of the base aligned with the haplotype's first base.
        let offset = germline.first().map_or(0, |g| g.target.start as i64 - g.query.start as i64);
        let grown: i64 = germline.iter().filter(|g| g.query.end <= edit.target.start).map(Edit::length_change).sum();
        let pos = usize::try_from(self.window_start as i64 + offset + edit.target.start as i64 - grown).ok()?;
        let reference = self.chrom_seq.get(pos..pos + edit.target.len())?;
        if reference != &self.haplotype[edit.target.clone()] {
            return None;
        }
        let alternative = &self.contig[edit.query.clone()];
        if reference.iter().chain(alternative).any(|b| !b"ACGT".contains(b)) {
            return None;
        }
        let (pos, anchor) = if reference.len() == alternative.len() {
            (pos, &[][..])
        } else {
            (pos.checked_sub(1)?, self.chrom_seq.get(pos.checked_sub(1)?..pos)?)
        };
        Some(Change::Allele {
            chrom: self.chrom,
            pos,
            reference: [anchor, reference].concat(),
            alternative: [anchor, alternative].concat(),
        })
    }

    /// Converts a germline difference to a change of the genome; `None` if its bases are ambiguous.
    fn germline_change(&self, edit: &Edit) -> Option<Change> {
        let pos = self.window_start + edit.target.start;
        let (reference, alternative) = (&self.window[edit.target.clone()], &self.haplotype[edit.query.clone()]);
        if reference.iter().chain(alternative).any(|b| !b"ACGT".contains(b)) {
            return None;
        }
        let (pos, reference, alternative) = left_align_allele(self.chrom_seq, pos, reference, alternative);
        Some(Change::Allele { chrom: self.chrom, pos, reference, alternative })
    }

    /// The somatic and the germline changes of the whole contig `seq`. `None` if there are no somatic or no germline
    /// changes.
    fn contig_changes(&self, seq: &[u8], mapq: u8) -> Option<[Vec<ContigChange>; 2]> {
        let [somatic, germline] = self.find_edits()?;
        if somatic.is_empty() || germline.is_empty() {
            return None;
        }
        let new = |change: Change, in_contig: Range<usize>, normal_bases: &[u8]| {
            let range = self.contig_start + in_contig.start..self.contig_start + in_contig.end;
            let normal = [&seq[..range.start], normal_bases, &seq[range.end..]].concat();
            ContigChange {
                change,
                right_shift: normal_bases.len() as i32 - range.len() as i32,
                contig_range: range,
                left_normal: normal.clone(),
                right_normal: normal,
                mapq,
            }
        };
        let mut changes = [Vec::new(), Vec::new()];
        for edit in &somatic {
            let change = self.somatic_change(edit, &germline)?;
            changes[0].push(new(change, edit.query.clone(), &self.haplotype[edit.target.clone()]));
        }
        for edit in &germline {
            // Somatic edits before this one move it on the contig.
            let grown: i64 = somatic.iter().filter(|s| s.target.end <= edit.query.start).map(Edit::length_change).sum();
            let offset = somatic.first().map_or(0, |s| s.query.start as i64 - s.target.start as i64);
            let at = |q: usize| usize::try_from(q as i64 + offset + grown).ok();
            let range = at(edit.query.start)?..at(edit.query.end)?;
            let change = self.germline_change(edit)?;
            changes[1].push(new(change, range, &self.window[edit.target.clone()]));
        }
        Some(changes)
    }
}

/// Splits the changes of a locus's contig into germline variants and somatic changes of the normal's haplotype. Returns
/// both in the order of the contig, as far as candidate k-mers cover them, and the explanation with its cost. `None` if
/// the normal's reads do not show a single haplotype along the contig, if this haplotype is that of the genome, if a
/// change is too long for a combination of both, or if the changes found before explain the contig better. Deletions of different lengths have equal costs; then the normal's
/// reads decide.
pub(crate) fn split_off_germline_changes(
    locus: &Locus,
    pairs: &[RecruitedPair],
    genome: &Reference,
) -> Option<(Vec<ContigChange>, Explanation)> {
    let contig = &locus.contig;
    let [(chrom, first), (other_chrom, last)] = [contig.diagonals[0]?, contig.diagonals[1]?];
    let normal = normal_sequences::assemble_normal_haplotype_of_contig(contig, &locus.reads, pairs);
    let ([haplotype], [left, right]) = (&normal.seqs[..], &normal.flanks[..]) else { return None };
    // Beyond the assembled bases the contig continues as the genome does, even where the haplotype has germline variants.
    let range = left.query.0.max(contig.assembled.start)..right.query.1.min(contig.assembled.end);
    let first_base = left.start + range.start - left.query.0;
    let haplotype = haplotype.get(first_base..(right.start + range.end).checked_sub(right.query.0)?)?;
    let chrom_seq = &genome.contigs.get(chrom)?.seq;
    let margin = WINDOW_MARGIN_BASES as i64;
    let start = usize::try_from((range.start as i64 + first - margin).max(0)).ok()?;
    let end = usize::try_from(range.end as i64 + last + margin).ok()?.min(chrom_seq.len());
    if chrom != other_chrom || start >= end || end - start > 2 * contig.seq.len() {
        return None;
    }
    let germline = GermlineHaplotype {
        contig: contig.seq.get(range.clone())?,
        contig_start: range.start,
        haplotype,
        chrom,
        chrom_seq,
        window_start: start,
        window: &chrom_seq[start..end],
    };
    let mapq = contig.changes.iter().map(|f| f.mapq).max()?;
    let explain = |changes: &[ContigChange]| {
        Explanation::from_changes(ExplanationMethod::NormalHaplotype, &contig.seq, changes_with_contig_ranges(changes))
    };
    let [somatic, germline] = germline.contig_changes(&contig.seq, mapq)?;
    if !may_be_combined(&contig.changes, somatic.iter().chain(&germline)) {
        return None;
    }
    let is_known = |f: &ContigChange| contig.changes.iter().any(|known| known.change == f.change);
    // docs/model/event.md (5)
    let explanation = explain(&somatic);
    if somatic.iter().all(is_known) || explanation.cost > explain(&contig.changes).cost {
        return None;
    }
    let mut changes = [somatic, germline].concat();
    changes.retain(|f| contig.range_touches_candidate_kmer(&f.contig_range));
    changes.sort_by_key(|f| (f.contig_range.start, f.contig_range.end));
    Some((changes, explanation))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: &[u8] = b"GATTACCTGAGTCCGTACGGATCTTAGCAACTGGCATCAT";
    const MIDDLE: &[u8] = b"TAAGTA";
    const RIGHT: &[u8] = b"ACATCTGACTGTAGATCGTGCTCCATTAGACCAGTTGCCA";

    /// The somatic and germline changes of a contig made of `contig`, in a person whose haplotype is `haplotype`.
    fn split(contig: &[&[u8]], haplotype: &[&[u8]]) -> Option<[Vec<Change>; 2]> {
        let (genome, contig, haplotype) = ([LEFT, MIDDLE, RIGHT].concat(), contig.concat(), haplotype.concat());
        let germline = GermlineHaplotype {
            contig: &contig,
            contig_start: 0,
            haplotype: &haplotype,
            chrom: 0,
            chrom_seq: &genome,
            window_start: 0,
            window: &genome,
        };
        let found = germline.contig_changes(&contig, 60)?;
        for f in found.iter().flatten() {
            let after = (f.contig_range.end as i32 + f.right_shift) as usize;
            assert_eq!(f.left_normal[after..], contig[f.contig_range.end..], "{f:?}");
        }
        Some(found.map(|changes| changes.into_iter().map(|f| f.change).collect()))
    }

    fn allele(pos: usize, reference: &[u8], alternative: &[u8]) -> Change {
        Change::Allele { chrom: 0, pos, reference: reference.to_vec(), alternative: alternative.to_vec() }
    }

    #[test]
    fn a_deletion_beside_a_germline_insertion_is_one_change_of_the_haplotype() {
        // Compared with the genome, the contig has three substitutions.
        let found = split(&[LEFT, b"GATC", b"TA", RIGHT], &[LEFT, b"GATC", MIDDLE, RIGHT]).unwrap();
        assert_eq!(found[0], [allele(39, b"TTAAG", b"T")]);
        assert_eq!(found[1].len(), 1);
        let Change::Allele { reference, alternative, .. } = &found[1][0] else { panic!("{found:?}") };
        assert_eq!((reference.len(), alternative.len()), (1, 5));
    }

    #[test]
    fn substitutions_beside_germline_changes_are_kept() {
        let mut mutated = RIGHT.to_vec();
        mutated[3] = b'G';
        let found = split(&[LEFT, b"GATC", MIDDLE, &mutated], &[LEFT, b"GATC", MIDDLE, RIGHT]).unwrap();
        assert_eq!(found[0], [allele(49, b"T", b"G")]);
        let found = split(&[&LEFT[..36], MIDDLE, &mutated], &[&LEFT[..36], MIDDLE, RIGHT]).unwrap();
        assert_eq!(found[0], [allele(49, b"T", b"G")]);
    }

    #[test]
    fn copies_of_a_satellite_that_the_normal_seems_to_lack_are_not_split_off() {
        let satellite = b"ATTCCATTCCATACCATTCGATTCC".repeat(2);
        let found = |change| ContigChange {
            change,
            contig_range: 0..0,
            left_normal: Vec::new(),
            right_normal: Vec::new(),
            right_shift: 0,
            mapq: 60,
        };
        let longer = [&b"A"[..], &satellite[..], b"ATTCC"].concat();
        let split = [found(allele(39, &longer[..51], b"A")), found(allele(39, b"A", &longer))];
        assert!(!may_be_combined(&[found(allele(60, b"C", b"CATTCC"))], &split));
        assert!(may_be_combined(&[found(allele(39, &longer, &longer[..40]))], &split));
    }

    #[test]
    fn nothing_is_split_without_changes_of_both_kinds() {
        assert_eq!(split(&[LEFT, RIGHT], &[LEFT, MIDDLE, RIGHT]), None);
        assert_eq!(split(&[LEFT, b"GATC", MIDDLE, RIGHT], &[LEFT, b"GATC", MIDDLE, RIGHT]), None);
        // The somatic change removes a part of the germline insertion.
        assert_eq!(split(&[LEFT, b"GA", &MIDDLE[2..], RIGHT], &[LEFT, b"GATC", MIDDLE, RIGHT]), None);
    }
}
