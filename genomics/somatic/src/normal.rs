//! Without a reference: the normal allele of each tumour contig, assembled from the normal's own reads.
//!
//! Normal reads are stacked on the contig by its left flank and, apart from that, by its right flank; each stack votes.
//! When the right flank turns up in the left stack, both are one sequence, and the change is a small one. When it does
//! not, the flanks lie in two places of the normal genome, and the contig joins them.

use genuma_align::{CigarKind, CigarOp, Hit, Strand};
use genuma_reads::NORMAL;
use genuma_reads::fasta;

use crate::columns::Columns;
use crate::locus::Locus;
use crate::packed::Read;
use crate::recruit::Kept;

/// The normal sequences of one tumour contig, and how the contig lies on them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Normals {
    /// One sequence, or one for each flank.
    pub seqs: Vec<Vec<u8>>,
    /// For each flank: its range on the contig, its sequence and where it starts there.
    pub flanks: Vec<Flank>,
}

/// A flank of a tumour contig on a normal sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flank {
    /// First base and one past the last on the contig.
    pub query: (usize, usize),
    /// Which of [`Normals::seqs`].
    pub seq: usize,
    /// Where it starts on that sequence.
    pub start: usize,
}

/// Bases of a flank that a read must cover to be stacked by it.
const HOLD: usize = 15;
/// Bases that must agree for two stacks to be one sequence.
const BRIDGE: usize = 24;

impl Normals {
    /// Flanks end where their sequences do: a stack may say nothing of the last bases of a flank.
    fn within(mut self) -> Normals {
        for Flank { query: (from, to), seq, start } in &mut self.flanks {
            *start = (*start).min(self.seqs[*seq].len());
            *to = (*to).clamp(*from, *from + self.seqs[*seq].len() - *start);
        }
        self
    }
}

/// Assembles the normal side of a contig.
pub fn assemble(locus: &Locus, pairs: &[Kept]) -> Normals {
    assembled(locus, pairs).within()
}

fn assembled(locus: &Locus, pairs: &[Kept]) -> Normals {
    let Locus { contig, recruits, .. } = locus;
    let (Some(first), Some(last)) =
        (contig.novel.iter().position(|&n| n), contig.novel.iter().rposition(|&n| n))
    else {
        return Normals::default();
    };
    let len = contig.seq.len();
    let middle = usize::midpoint(first, last + 1);
    // A change lies at least a k-mer less one inside the novel stretch; half of that is safe.
    let inside = ((last + 1 - first) / 4).min(12);
    let (left_end, right_start) = ((first + inside).min(middle), (last + 1 - inside).max(middle));
    let reads: Vec<(Vec<i32>, Read)> = recruits
        .iter()
        .filter(|r| pairs[r.pair as usize].sample == NORMAL)
        .map(|r| {
            let mut at = r.at.to_vec();
            at.dedup();
            (at, r.oriented(pairs))
        })
        .collect();
    let left = stack(&contig.seq, 0..left_end, &reads).map(|c| c.stretch(left_end as i32));
    let right = stack(&contig.seq, right_start..len, &reads).map(|c| c.stretch(right_start as i32));
    let flank = |from: usize, to: usize, seq: usize, at: i32| Flank {
        query: (from, to),
        seq,
        start: (from as i32 - at).max(0) as usize,
    };
    match (left, right) {
        (Some((l_at, l)), Some((r_at, r))) => {
            let l_flank = flank(l_at.max(0) as usize, left_end, 0, l_at);
            let in_right = (right_start as i32 - r_at).max(0) as usize;
            let bridge = r.get(in_right..in_right + BRIDGE);
            // The stack may end before its flank does.
            let after = ((left_end as i32 - l_at).max(0) as usize).min(l.len());
            let from = after.saturating_sub(BRIDGE);
            let meets = bridge.and_then(|b| l[from..].windows(BRIDGE).position(|w| w == b)).map(|x| x + from);
            match meets {
                Some(x) => {
                    let joined = [&l[..x], &r[in_right..]].concat();
                    let r_flank = Flank {
                        query: (right_start, len.min(right_start + r.len() - in_right)),
                        seq: 0,
                        start: x,
                    };
                    Normals { seqs: vec![joined], flanks: vec![l_flank, r_flank] }
                }
                None => {
                    let end = len.min((r_at + r.len() as i32).max(0) as usize);
                    let r_flank = flank(right_start.max(r_at.max(0) as usize), end, 1, r_at);
                    Normals { seqs: vec![l, r], flanks: vec![l_flank, r_flank] }
                }
            }
        }
        (Some((at, l)), None) => {
            Normals { flanks: vec![flank(at.max(0) as usize, left_end, 0, at)], seqs: vec![l] }
        }
        (None, Some((at, r))) => {
            let end = len.min((at + r.len() as i32).max(0) as usize);
            Normals { flanks: vec![flank(right_start, end, 0, at)], seqs: vec![r] }
        }
        (None, None) => Normals::default(),
    }
}

/// Stacks the reads that agree with a flank of the contig.
fn stack(contig: &[u8], flank: std::ops::Range<usize>, reads: &[(Vec<i32>, Read)]) -> Option<Columns> {
    let mut columns: Vec<(i32, Read)> = Vec::new();
    for (offsets, read) in reads {
        let fitting = offsets.iter().copied().find(|&at| {
            let from = (flank.start as i32).max(at);
            let to = (flank.end as i32).min(at + read.seq.len() as i32);
            let differing = (from..to)
                .filter(|&c| {
                    contig[c as usize] != read.seq[(c - at) as usize] && read.qual[(c - at) as usize] >= 15
                })
                .count();
            to - from >= HOLD as i32 && differing * 15 <= (to - from) as usize
        });
        if let Some(at) = fitting {
            columns.push((at, read.clone()));
        }
    }
    (columns.len() >= 3).then(|| Columns::vote(columns.iter().map(|(at, read)| (*at, read))))
}

/// Sequences and hits as an aligner would give them: the genome that the contigs are compared with.
pub fn genome(normals: &[Normals]) -> (fasta::Reference, Vec<Vec<Hit>>) {
    let mut contigs = Vec::new();
    let mut hits = Vec::with_capacity(normals.len());
    for (c, normal) in normals.iter().enumerate() {
        let base = contigs.len();
        for (i, seq) in normal.seqs.iter().enumerate() {
            let side = if normal.seqs.len() == 1 { "" } else { ["L", "R"][i] };
            contigs.push(fasta::Contig { name: format!("n{}{side}", c + 1), seq: seq.clone() });
        }
        hits.push(normal.flanks.iter().enumerate().map(|(i, f)| hit(f, base, i == 0)).collect());
    }
    (fasta::Reference::from_contigs(contigs), hits)
}

fn hit(flank: &Flank, base: usize, primary: bool) -> Hit {
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
        blen: len,
        mlen: len,
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
        let flank = |query, start| Flank { query, seq: 0, start };
        let flanks = vec![flank((5, 9), 2), flank((0, 10), 1), flank((3, 9), 20), flank((7, 4), 0)];
        let normals = Normals { seqs: vec![b"ACGTAC".to_vec()], flanks }.within();
        assert_eq!(normals.flanks, [flank((5, 9), 2), flank((0, 5), 1), flank((3, 3), 6), flank((7, 7), 0)]);
        let (genome, hits) = genome(&[normals]);
        for hit in &hits[0] {
            assert!(hit.ref_end <= genome.contigs[0].seq.len(), "{hit:?}");
        }
    }
}
