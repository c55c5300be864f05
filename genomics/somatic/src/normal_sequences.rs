//! Assembles the normal allele of each tumour contig from the normal's own reads, for calling without a reference.
//!
//! Normal reads are stacked on the contig by its left flank and, separately, by its right flank. The consensus of
//! each stack is one normal sequence. If the right flank is found in the left stack, both are one sequence and the
//! change is small. Otherwise the flanks are two loci of the normal genome that the contig joins.

use genuma_align::{CigarKind, CigarOp, Hit, Strand};
use genuma_reads::NORMAL_SAMPLE;
use genuma_reads::fasta;

use crate::gapless_stack::GaplessStack;
use crate::locus::Locus;
use crate::packed::OwnedRead;
use crate::recruit::RecruitedPair;

/// The normal sequences of one tumour contig, and the alignment of the contig's flanks with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NormalSequences {
    /// One sequence, or one for each flank.
    pub seqs: Vec<Vec<u8>>,
    /// The aligned flanks of the contig, left flank first.
    pub flanks: Vec<AlignedFlank>,
}

/// A flank of a tumour contig aligned without gaps to a normal sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlignedFlank {
    /// First base on the contig, and one past the last.
    pub query: (usize, usize),
    /// Index of the sequence in [`NormalSequences::seqs`].
    pub seq: usize,
    /// Position of the flank's first base on that sequence.
    pub start: usize,
}

/// Minimum number of bases of a flank that a stacked read covers.
const MIN_FLANK_BASES: usize = 15;
/// Number of identical bases that join the two stacks into one sequence.
const MIN_BRIDGE_BASES: usize = 24;

impl NormalSequences {
    /// Shortens flanks that extend past their sequence.
    fn clamp_flanks(mut self) -> NormalSequences {
        for AlignedFlank { query: (from, to), seq, start } in &mut self.flanks {
            *start = (*start).min(self.seqs[*seq].len());
            *to = (*to).clamp(*from, *from + self.seqs[*seq].len() - *start);
        }
        self
    }
}

/// Assembles the normal sequences of a contig. Empty if the contig has no tumour-only k-mer.
pub fn assemble_normal(locus: &Locus, pairs: &[RecruitedPair]) -> NormalSequences {
    stack_and_join(locus, pairs).clamp_flanks()
}

fn stack_and_join(locus: &Locus, pairs: &[RecruitedPair]) -> NormalSequences {
    let Locus { contig, reads: placed_reads, .. } = locus;
    let (Some(first), Some(last)) = (contig.novel.iter().position(|&n| n), contig.novel.iter().rposition(|&n| n))
    else {
        return NormalSequences::default();
    };
    let len = contig.seq.len();
    let middle = usize::midpoint(first, last + 1);
    // The change is at least k-1 bases inside the novel stretch; half of that is safe.
    let inside = ((last + 1 - first) / 4).min(12);
    let (left_end, right_start) = ((first + inside).min(middle), (last + 1 - inside).max(middle));
    let reads: Vec<(Vec<i32>, OwnedRead)> = placed_reads
        .iter()
        .filter(|r| pairs[r.pair as usize].sample == NORMAL_SAMPLE)
        .map(|r| {
            let mut at = r.offsets.to_vec();
            at.dedup();
            (at, r.oriented_read(pairs))
        })
        .collect();
    let left = stack_reads(&contig.seq, 0..left_end, &reads).map(|c| c.trusted_consensus_around(left_end as i32));
    let right =
        stack_reads(&contig.seq, right_start..len, &reads).map(|c| c.trusted_consensus_around(right_start as i32));
    let flank = |from: usize, to: usize, seq: usize, at: i32| AlignedFlank {
        query: (from, to),
        seq,
        start: (from as i32 - at).max(0) as usize,
    };
    match (left, right) {
        (Some((l_at, l)), Some((r_at, r))) => {
            let l_flank = flank(l_at.max(0) as usize, left_end, 0, l_at);
            let in_right = (right_start as i32 - r_at).max(0) as usize;
            let bridge = r.get(in_right..in_right + MIN_BRIDGE_BASES);
            // The stack may end before its flank ends.
            let after = ((left_end as i32 - l_at).max(0) as usize).min(l.len());
            let from = after.saturating_sub(MIN_BRIDGE_BASES);
            let meets = bridge.and_then(|b| l[from..].windows(MIN_BRIDGE_BASES).position(|w| w == b)).map(|x| x + from);
            match meets {
                Some(x) => {
                    let joined = [&l[..x], &r[in_right..]].concat();
                    let r_flank = AlignedFlank {
                        query: (right_start, len.min(right_start + r.len() - in_right)),
                        seq: 0,
                        start: x,
                    };
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

/// Stacks the reads that agree with a flank of the contig. `None` with fewer than three reads.
fn stack_reads(contig: &[u8], flank: std::ops::Range<usize>, reads: &[(Vec<i32>, OwnedRead)]) -> Option<GaplessStack> {
    let mut columns: Vec<(i32, OwnedRead)> = Vec::new();
    for (offsets, read) in reads {
        let fitting = offsets.iter().copied().find(|&at| {
            let from = (flank.start as i32).max(at);
            let to = (flank.end as i32).min(at + read.seq.len() as i32);
            let differing = (from..to)
                .filter(|&c| contig[c as usize] != read.seq[(c - at) as usize] && read.qual[(c - at) as usize] >= 15)
                .count();
            to - from >= MIN_FLANK_BASES as i32 && differing * 15 <= (to - from) as usize
        });
        if let Some(at) = fitting {
            columns.push((at, read.clone()));
        }
    }
    (columns.len() >= 3).then(|| GaplessStack::from_reads(columns.iter().map(|(at, read)| (*at, read))))
}

/// Builds a reference of the assembled normal sequences, and the hits of each contig on it as a mapper would report
/// them.
pub fn build_normal_reference(normals: &[NormalSequences]) -> (fasta::Reference, Vec<Vec<Hit>>) {
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

    #[test]
    fn flanks_end_with_their_sequences() {
        let flank = |query, start| AlignedFlank { query, seq: 0, start };
        let flanks = vec![flank((5, 9), 2), flank((0, 10), 1), flank((3, 9), 20), flank((7, 4), 0)];
        let normals = NormalSequences { seqs: vec![b"ACGTAC".to_vec()], flanks }.clamp_flanks();
        assert_eq!(normals.flanks, [flank((5, 9), 2), flank((0, 5), 1), flank((3, 3), 6), flank((7, 7), 0)]);
        let (genome, hits) = build_normal_reference(&[normals]);
        for hit in &hits[0] {
            assert!(hit.ref_end <= genome.contigs[0].seq.len(), "{hit:?}");
        }
    }
}
