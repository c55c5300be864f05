//! Assembles the normal allele of each tumour contig from the normal's own reads, for calling without a reference.
//!
//! Normal reads are stacked on the contig by its left flank and, separately, by its right flank. The consensus of each
//! stack is one normal sequence. If one of these sequences contains the other flank, both are joined to one sequence,
//! and the change is small. Otherwise the flanks belong to two loci of the normal's genome that the contig joins.

use std::borrow::Cow;
use std::ops::Range;

use genuma_align::{CigarKind, CigarOp, Hit, Strand};
use genuma_reads::NORMAL_SAMPLE;
use genuma_reads::fasta;

use crate::aligned_contig::AlignedContig;
use crate::gapless_stack::GaplessStack;
use crate::packed::OwnedRead;
use crate::read_placement::PlacedRead;
use crate::recruit::RecruitedPair;

/// The normal sequences of one tumour contig, and the positions of the contig's flanks on them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NormalSequences {
    /// The normal sequence across the change, or one sequence for each flank if they could not be joined.
    pub seqs: Vec<Vec<u8>>,
    /// The aligned flanks of the contig, left flank first.
    pub flanks: Vec<AlignedFlank>,
}

/// A flank of a tumour contig, aligned without gaps to a normal sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlignedFlank {
    /// Range of the flank on the contig: first base, and one past the last.
    pub query: (usize, usize),
    /// Index of the sequence in [`NormalSequences::seqs`].
    pub seq: usize,
    /// Position of the flank's first base on the normal sequence.
    pub start: usize,
}

/// Minimum number of reads in a stack.
const MIN_STACKED_READS: usize = 3;
/// Minimum number of bases of the flank that a read in its stack covers.
const MIN_FLANK_BASES: usize = 15;
/// Number of bases beside one flank that must occur unchanged in the other stack's sequence, so that both sequences are
/// joined there.
const BRIDGE_BP: usize = 24;

impl NormalSequences {
    /// Shortens flanks that extend beyond the end of their normal sequence.
    fn clamp_flanks(mut self) -> NormalSequences {
        for AlignedFlank { query: (from, to), seq, start } in &mut self.flanks {
            *start = (*start).min(self.seqs[*seq].len());
            *to = (*to).clamp(*from, *from + self.seqs[*seq].len() - *start);
        }
        self
    }
}

/// Assembles the normal sequences of a contig from all normal reads that agree with its flanks. Empty if the contig has
/// no novel sequence, or if fewer than three reads agree with either flank. `reads` are the reads placed on the contig.
pub fn assemble_normal_sequences(
    contig: &AlignedContig,
    reads: &[PlacedRead],
    pairs: &[RecruitedPair],
) -> NormalSequences {
    stack_and_join(contig, reads, pairs, StackedReads::All).clamp_flanks()
}

/// Assembles the normal sequences of the haplotype on which the contig's changes arose, from the normal reads that
/// agree with the contig farthest beyond a flank. If the normal is heterozygous, reads of its other haplotype disagree
/// nearer to the flank.
pub(crate) fn assemble_normal_haplotype_of_contig(
    contig: &AlignedContig,
    reads: &[PlacedRead],
    pairs: &[RecruitedPair],
) -> NormalSequences {
    stack_and_join(contig, reads, pairs, StackedReads::LongestAgreement).clamp_flanks()
}

/// The bases of the normal's haplotypes instead of a range of the contig around its changes: that range and, for each
/// haplotype, the bases. Empty unless at least three reads of the normal disagree with the contig nearer to a flank than
/// at least three others, which means that the normal is heterozygous there. Sequences that do not reach the other flank
/// are left out.
pub(crate) fn assemble_heterozygous_haplotypes(
    contig: &AlignedContig,
    reads: &[PlacedRead],
    pairs: &[RecruitedPair],
) -> Option<(Range<usize>, Vec<Vec<u8>>)> {
    let range = range_around_changes(contig)?;
    let reads = oriented_normal_reads(reads, pairs);
    let (seq, len) = (&contig.seq, contig.seq.len());
    let index = |contig_pos: usize, start: i32| usize::try_from(contig_pos as i32 - start).ok();
    let after_left_flank = |(start, bases): (i32, Vec<u8>)| {
        let inside = bases.get(index(range.start, start)?..)?;
        let right_flank = seq.get(range.end..range.end + BRIDGE_BP)?;
        let end = inside.windows(BRIDGE_BP).position(|bases| bases == right_flank)?;
        Some(inside[..end].to_vec())
    };
    let before_right_flank = |(start, bases): (i32, Vec<u8>)| {
        let inside = bases.get(..index(range.end, start)?)?;
        let left_flank = seq.get(range.start.checked_sub(BRIDGE_BP)?..range.start)?;
        let begin = inside.windows(BRIDGE_BP).rposition(|bases| bases == left_flank)? + BRIDGE_BP;
        Some(inside[begin..].to_vec())
    };
    let mut haplotypes = Vec::new();
    for (flank, edge, is_left) in [(0..range.start, range.start, true), (range.end..len, range.end, false)] {
        let Some(fitting) = select_reads_of_flank(seq, &flank, &reads) else { continue };
        let SplitReads { farthest, earlier } = split_by_agreement(seq, &flank, fitting);
        if earlier.len() < MIN_STACKED_READS {
            continue;
        }
        for stacked in [earlier, farthest] {
            let stack = GaplessStack::sum_votes_of_reads(stacked.iter().copied());
            let consensus = stack.trusted_consensus_around(edge as i32);
            haplotypes.extend(if is_left { after_left_flank(consensus) } else { before_right_flank(consensus) });
        }
    }
    Some((range, haplotypes))
}

/// Which of the reads that agree with a flank are stacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StackedReads {
    All,
    /// Only the reads that agree with the contig farthest beyond the flank, and reads that end before they disagree.
    LongestAgreement,
}

/// The range of a contig that contains its changes; the bases before and after it are its flanks. `None` if the contig
/// has no novel sequence.
fn range_around_changes(contig: &AlignedContig) -> Option<Range<usize>> {
    let first = contig.novel.iter().position(|&n| n)?;
    let last = contig.novel.iter().rposition(|&n| n)?;
    let middle = usize::midpoint(first, last + 1);
    // The change is at least k-1 bases inside the novel stretch; half of that is safe.
    let inside = ((last + 1 - first) / 4).min(12);
    Some((first + inside).min(middle)..(last + 1 - inside).max(middle))
}

/// The reads of the normal in the orientation of the contig, with their candidate offsets.
fn oriented_normal_reads<'a>(
    reads: &'a [PlacedRead],
    pairs: &'a [RecruitedPair],
) -> Vec<(&'a [i32], Cow<'a, OwnedRead>)> {
    let of_normal = reads.iter().filter(|r| pairs[r.pair as usize].sample == NORMAL_SAMPLE);
    of_normal.map(|r| (&r.offsets[..], r.oriented_read(pairs))).collect()
}

fn stack_and_join(
    contig: &AlignedContig,
    reads: &[PlacedRead],
    pairs: &[RecruitedPair],
    stacked: StackedReads,
) -> NormalSequences {
    let Some(Range { start: left_end, end: right_start }) = range_around_changes(contig) else {
        return NormalSequences::default();
    };
    let len = contig.seq.len();
    let reads = oriented_normal_reads(reads, pairs);
    let stack = |flank: Range<usize>, edge: usize| {
        let (stack, num_excluded) = stack_reads(&contig.seq, flank, &reads, stacked)?;
        Some((stack.trusted_consensus_around(edge as i32), num_excluded))
    };
    let (left, right) = (stack(0..left_end, left_end), stack(right_start..len, right_start));
    // The sequence with the haplotype is that of the stack from which reads of another haplotype were excluded.
    let haplotype_is_right = match (&left, &right) {
        (Some((_, left)), Some((_, right))) => right > left,
        _ => false,
    };
    let (left, right) = (left.map(|(consensus, _)| consensus), right.map(|(consensus, _)| consensus));
    let flank = |from: usize, to: usize, seq: usize, at: i32| AlignedFlank {
        query: (from, to),
        seq,
        start: (from as i32 - at).max(0) as usize,
    };
    match (left, right) {
        (Some((l_at, l)), Some((r_at, r))) => {
            let l_flank = flank(l_at.max(0) as usize, left_end, 0, l_at);
            let in_right = (right_start as i32 - r_at).max(0) as usize;
            // The stack may end before its flank ends.
            let in_left = ((left_end as i32 - l_at).max(0) as usize).min(l.len());
            match join_sequences((&l, in_left), (&r, in_right), haplotype_is_right) {
                Some((joined, start)) => {
                    let query = (right_start, len.min(right_start + r.len() - in_right));
                    let r_flank = AlignedFlank { query, seq: 0, start };
                    NormalSequences { seqs: vec![joined], flanks: vec![l_flank, r_flank] }
                }
                None => {
                    let end = len.min((r_at + r.len() as i32).max(0) as usize);
                    let r_flank = flank(right_start.max(r_at.max(0) as usize), end, 1, r_at);
                    NormalSequences { seqs: vec![l, r], flanks: vec![l_flank, r_flank] }
                }
            }
        }
        (Some((at, l)), None) => {
            NormalSequences { flanks: vec![flank(at.max(0) as usize, left_end, 0, at)], seqs: vec![l] }
        }
        (None, Some((at, r))) => {
            let end = len.min((at + r.len() as i32).max(0) as usize);
            NormalSequences { flanks: vec![flank(right_start, end, 0, at)], seqs: vec![r] }
        }
        (None, None) => NormalSequences::default(),
    }
}

/// Joins the sequences of both stacks to one sequence if one of them contains the flank of the other. `in_left` is the
/// end of the left flank in `left`, `in_right` the start of the right flank in `right`. Returns the joined sequence and
/// the start of the right flank in it. If `prefers_right` is set and `right` contains the left flank, the bases between
/// the flanks are those of `right`.
fn join_sequences(
    (left, in_left): (&[u8], usize),
    (right, in_right): (&[u8], usize),
    prefers_right: bool,
) -> Option<(Vec<u8>, usize)> {
    let from = in_left.saturating_sub(BRIDGE_BP);
    let find_left_flank = || {
        let bridge = left.get(from..from + BRIDGE_BP).filter(|_| from + BRIDGE_BP == in_left)?;
        let at = right[..in_right.min(right.len())].windows(BRIDGE_BP).rposition(|w| w == bridge)?;
        Some(([&left[..from], &right[at..]].concat(), from + in_right - at))
    };
    let find_right_flank = || {
        let bridge = right.get(in_right..in_right + BRIDGE_BP)?;
        let at = from + left[from..].windows(BRIDGE_BP).position(|w| w == bridge)?;
        Some(([&left[..at], &right[in_right..]].concat(), at))
    };
    if prefers_right { find_left_flank().or_else(find_right_flank) } else { find_right_flank() }
}

/// A read, and the contig position of its first base.
type PositionedRead<'a> = (i32, &'a OwnedRead);

/// Selects the reads that agree with a flank of the contig. `None` if fewer than three do.
fn select_reads_of_flank<'a>(
    contig: &[u8],
    flank: &Range<usize>,
    reads: &'a [(&[i32], Cow<'_, OwnedRead>)],
) -> Option<Vec<PositionedRead<'a>>> {
    let mut fitting: Vec<PositionedRead<'a>> = Vec::new();
    for (offsets, read) in reads {
        let agrees = |&at: &i32| {
            let from = (flank.start as i32).max(at);
            let to = (flank.end as i32).min(at + read.seq.len() as i32);
            let differing = (from..to).filter(|&c| differs_from_contig(contig, c, at, read)).count();
            to - from >= MIN_FLANK_BASES as i32 && differing * 15 <= (to - from) as usize
        };
        // Unused offsets repeat the first.
        let other_offsets = offsets[1..].iter().filter(|&&at| at != offsets[0]);
        if let Some(at) = offsets[..1].iter().chain(other_offsets).copied().find(agrees) {
            fitting.push((at, read));
        }
    }
    (fitting.len() >= MIN_STACKED_READS).then_some(fitting)
}

/// Reads that agree with a flank, split by how far they agree with the contig beyond it.
struct SplitReads<'a> {
    /// Reads that agree farthest, and reads that end before they disagree; at least three.
    farthest: Vec<PositionedRead<'a>>,
    /// The other reads, which disagree nearer to the flank.
    earlier: Vec<PositionedRead<'a>>,
}

/// Splits the reads of a flank, which are at least three.
fn split_by_agreement<'a>(contig: &[u8], flank: &Range<usize>, reads: Vec<PositionedRead<'a>>) -> SplitReads<'a> {
    let agreements: Vec<Agreement> =
        reads.iter().map(|(at, read)| Agreement::beyond_flank(contig, flank, *at, read)).collect();
    let mut lengths: Vec<usize> = agreements.iter().map(|agreement| agreement.len).collect();
    lengths.sort_unstable();
    let longest = lengths[lengths.len() - MIN_STACKED_READS];
    let mut split = SplitReads { farthest: Vec::new(), earlier: Vec::new() };
    for (read, agreement) in reads.into_iter().zip(agreements) {
        let is_farthest = agreement.reaches_read_end || agreement.len >= longest;
        if is_farthest { &mut split.farthest } else { &mut split.earlier }.push(read);
    }
    split
}

/// Stacks the reads that agree with a flank of the contig. Also returns the number of reads that were left out because
/// they disagree with the contig nearer to the flank than others. `None` if fewer than three reads agree with the
/// flank.
fn stack_reads(
    contig: &[u8],
    flank: Range<usize>,
    reads: &[(&[i32], Cow<'_, OwnedRead>)],
    stacked: StackedReads,
) -> Option<(GaplessStack, usize)> {
    let fitting = select_reads_of_flank(contig, &flank, reads)?;
    let split = match stacked {
        StackedReads::All => SplitReads { farthest: fitting, earlier: Vec::new() },
        StackedReads::LongestAgreement => split_by_agreement(contig, &flank, fitting),
    };
    Some((GaplessStack::sum_votes_of_reads(split.farthest.iter().copied()), split.earlier.len()))
}

/// Whether a read whose first base is at contig position `at` has another base than the contig at contig position `c`,
/// with good quality.
fn differs_from_contig(contig: &[u8], c: i32, at: i32, read: &OwnedRead) -> bool {
    let in_read = (c - at) as usize;
    contig[c as usize] != read.seq[in_read] && read.qual[in_read] >= 15
}

/// How far a read agrees with the contig beyond a flank, towards the change: the number of bases.
struct Agreement {
    len: usize,
    /// Whether the read or the contig ends before they disagree.
    reaches_read_end: bool,
}

impl Agreement {
    fn beyond_flank(contig: &[u8], flank: &Range<usize>, at: i32, read: &OwnedRead) -> Agreement {
        let end = (at + read.seq.len() as i32).min(contig.len() as i32);
        let agrees = |c: &i32| !differs_from_contig(contig, *c, at, read);
        // A left flank begins at the contig's first base.
        let (len, all) = if flank.start == 0 {
            let beyond = flank.end as i32..end.max(flank.end as i32);
            (beyond.clone().take_while(agrees).count(), beyond.len())
        } else {
            let beyond = at.max(0).min(flank.start as i32)..flank.start as i32;
            (beyond.clone().rev().take_while(agrees).count(), beyond.len())
        };
        Agreement { len, reaches_read_end: len == all }
    }
}

/// Builds a reference of all normal sequences, and for each contig the hits of its flanks on it, as a mapper would
/// report them.
pub fn build_normal_reference_and_hits(normals: &[NormalSequences]) -> (fasta::Reference, Vec<Vec<Hit>>) {
    let mut contigs = Vec::new();
    let mut hits = Vec::with_capacity(normals.len());
    for (c, normal) in normals.iter().enumerate() {
        let base = contigs.len();
        for (i, seq) in normal.seqs.iter().enumerate() {
            let side = if normal.seqs.len() == 1 { "" } else { ["L", "R"][i] };
            contigs.push(fasta::Contig { name: format!("n{}{side}", c + 1), seq: seq.clone() });
        }
        hits.push(normal.flanks.iter().enumerate().map(|(i, f)| flank_to_hit(f, base, i == 0)).collect());
    }
    (fasta::Reference::from_contigs(contigs), hits)
}

fn flank_to_hit(flank: &AlignedFlank, base: usize, primary: bool) -> Hit {
    let len = flank.query.1.saturating_sub(flank.query.0);
    Hit {
        tid: base + flank.seq,
        ref_start: flank.start,
        ref_end: flank.start + len,
        query_start: flank.query.0,
        query_end: flank.query.1,
        strand: Strand::Forward,
        mapq: 60,
        score: len as i32,
        alignment_columns: len,
        matching_bases: len,
        proper_pair: false,
        is_primary: primary,
        is_secondary: false,
        cigar: vec![CigarOp { kind: CigarKind::Match, len: len as u32 }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_bases(n: usize) -> Vec<u8> {
        let mut x = 1u64;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 60) as usize & 3]
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn reads_of_the_other_haplotype_are_excluded() {
        let contig = random_bases(200);
        let other = |base: u8| if base == b'A' { b'C' } else { b'A' };
        // Both haplotypes lack the change at 100. One of them differs at 90, too.
        let mut own = contig.clone();
        own[100] = other(own[100]);
        let mut differing = own.clone();
        differing[90] = other(differing[90]);
        let read = |seq: &[u8]| (&[0][..], Cow::Owned(OwnedRead { seq: seq.to_vec(), qual: vec![30; seq.len()] }));
        let mut reads: Vec<_> = (0..4).map(|_| read(&own)).collect();
        reads.extend((0..5).map(|_| read(&differing)));
        let stacked = |flank, which| {
            let (stack, num_excluded) = stack_reads(&contig, flank, &reads, which).unwrap();
            (stack.trusted_consensus_around(80).1[90], num_excluded)
        };
        assert_eq!(stacked(0..80, StackedReads::LongestAgreement), (own[90], 5));
        assert_eq!(stacked(0..80, StackedReads::All), (differing[90], 0));
        let split = |flank: Range<usize>| {
            split_by_agreement(&contig, &flank, select_reads_of_flank(&contig, &flank, &reads).unwrap())
        };
        let SplitReads { farthest, earlier } = split(0..80);
        let stack = GaplessStack::sum_votes_of_reads(earlier.iter().copied());
        assert_eq!((stack.trusted_consensus_around(80).1[90], farthest.len()), (differing[90], 4));
        // From the right both disagree with the contig at its change.
        assert_eq!(stacked(120..200, StackedReads::LongestAgreement).1, 0);
        assert!(split(120..200).earlier.is_empty());
    }

    #[test]
    fn the_sequence_of_the_preferred_stack_joins_both_flanks() {
        let bases = random_bases(120);
        let mut left = bases.clone();
        left[60] = if left[60] == b'A' { b'C' } else { b'A' };
        assert_eq!(join_sequences((&left, 50), (&bases, 70), false), Some((left.clone(), 70)));
        assert_eq!(join_sequences((&left, 50), (&bases, 70), true), Some((bases.clone(), 70)));
        assert_eq!(join_sequences((&left[..50], 50), (&bases[70..], 0), true), None);
    }

    #[test]
    fn flanks_end_with_their_sequences() {
        let flank = |query, start| AlignedFlank { query, seq: 0, start };
        let flanks = vec![flank((5, 9), 2), flank((0, 10), 1), flank((3, 9), 20), flank((7, 4), 0)];
        let normals = NormalSequences { seqs: vec![b"ACGTAC".to_vec()], flanks }.clamp_flanks();
        assert_eq!(normals.flanks, [flank((5, 9), 2), flank((0, 5), 1), flank((3, 3), 6), flank((7, 7), 0)]);
        let (genome, hits) = build_normal_reference_and_hits(&[normals]);
        for hit in &hits[0] {
            assert!(hit.ref_end <= genome.contigs[0].seq.len(), "{hit:?}");
        }
    }
}
