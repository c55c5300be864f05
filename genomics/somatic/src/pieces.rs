//! An aligner's hits → the pieces of a contig, in contig order.

use genuma_align::{CigarKind, Hit, Strand};
use genuma_reads::dna::complement;
use genuma_reads::fasta::Reference;

/// Two pieces this near in the genome and in order are aligned as one.
pub(crate) const NEAR: usize = 600;

/// One aligned piece of a contig, in contig coordinates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) chrom: usize,
    pub(crate) forward: bool,
    pub(crate) query: (usize, usize),
    pub(crate) target: (usize, usize),
    pub(crate) mapq: u8,
}

/// A gap this long parts an alignment in two pieces; shorter ones stay inside.
const PARTING: u32 = 20;
/// What a jump between pieces costs, in matching bases.
const JUMP: i32 = 25;
/// Overlap of two neighbouring pieces on the contig that microhomology or chance explains.
const OVERLAP: usize = 60;

impl Piece {
    pub(crate) fn query_len(&self) -> usize {
        self.query.1 - self.query.0
    }

    /// The same for all pieces of one gapless placement.
    fn diagonal(&self) -> i64 {
        let (q, t) = (self.query, self.target.0 as i64);
        if self.forward { t - q.0 as i64 } else { t + q.1 as i64 }
    }

    /// The same piece of the contig read from its other strand.
    pub(crate) fn flipped(&self, len: usize) -> Piece {
        Piece { forward: !self.forward, query: (len - self.query.1, len - self.query.0), ..*self }
    }

    /// The stretches of one hit between its long gaps, each with its score: matching bases less four for a mismatch
    /// and six and one a base for a gap.
    fn of(hit: &Hit, seq: &[u8], genome: &Reference) -> Vec<(Piece, i32)> {
        let Ok(chrom) = usize::try_from(hit.tid) else { return Vec::new() };
        let target = &genome.contigs[chrom].seq;
        let forward = hit.strand == Strand::Forward;
        let (start, end) = (hit.query_start.max(0) as usize, hit.query_end.max(0) as usize);
        // CIGARs run along the genome: on the reverse strand the query is walked from its other end.
        let base = |q: usize| if forward { seq[start + q] } else { complement(seq[end - 1 - q]) };
        let place = |from: usize, to: usize| {
            if forward { (start + from, start + to) } else { (end - to, end - from) }
        };
        let (mut q, mut t) = (0usize, hit.ref_start.max(0) as usize);
        let (mut from, mut score) = ((q, t), 0i32);
        let mut pieces = Vec::new();
        let mut close = |from: (usize, usize), to: (usize, usize), score: i32| {
            if to.0 > from.0 {
                let piece =
                    Piece { chrom, forward, query: place(from.0, to.0), target: (from.1, to.1), mapq: 0 };
                pieces.push((piece, score));
            }
        };
        for op in &hit.cigar {
            let len = op.len as usize;
            match op.kind {
                CigarKind::Match | CigarKind::Eq | CigarKind::Diff => {
                    for _ in 0..len {
                        score += if base(q) == target[t] { 1 } else { -4 };
                        (q, t) = (q + 1, t + 1);
                    }
                    continue;
                }
                CigarKind::Ins | CigarKind::Del | CigarKind::RefSkip => {}
                _ => continue,
            }
            let parts = op.len >= PARTING;
            if parts {
                close(from, (q, t), score);
            }
            (q, t) = if op.kind == CigarKind::Ins { (q + len, t) } else { (q, t + len) };
            if parts {
                (from, score) = ((q, t), 0);
            } else {
                score -= 6 + op.len as i32;
            }
        }
        close(from, (q, t), score);
        pieces
    }
}

/// The way through the hits' pieces that explains most of the contig, in contig order. Secondary hits take part:
/// in a repeat the true second half of a contig may lie in one. Each piece's `mapq` is set from its margin over the
/// best other place of the same stretch.
pub(crate) fn best_pieces(seq: &[u8], hits: &[Hit], genome: &Reference) -> Vec<Piece> {
    let mut pieces: Vec<(Piece, i32, bool)> = hits
        .iter()
        .flat_map(|h| Piece::of(h, seq, genome).into_iter().map(|(p, score)| (p, score, !h.is_secondary)))
        .filter(|(_, score, _)| *score >= 15)
        .collect();
    pieces.sort_by_key(|(p, score, primary)| {
        (p.query, std::cmp::Reverse((*primary, *score)), p.chrom, p.target)
    });
    pieces.dedup_by(|a, b| a.0.query == b.0.query && a.0.chrom == b.0.chrom && a.0.target == b.0.target);
    // best[i]: score of the best way that ends with piece i, and the piece before it.
    let mut best: Vec<(i32, Option<usize>)> = Vec::with_capacity(pieces.len());
    for (i, (piece, score, primary)) in pieces.iter().enumerate() {
        // Equal ways are told apart in favour of what the aligner calls primary.
        let own = score * 8 + i32::from(*primary);
        let mut here = (own, None);
        for (j, (before, ..)) in pieces[..i].iter().enumerate() {
            let overlap = before.query.1.saturating_sub(piece.query.0);
            if overlap > OVERLAP || before.query.1 >= piece.query.1 || before.query.0 >= piece.query.0 {
                continue;
            }
            let near = piece.chrom == before.chrom
                && piece.forward == before.forward
                && piece.target.0.abs_diff(before.target.1).min(piece.target.1.abs_diff(before.target.0))
                    <= NEAR;
            let cost = if near { JUMP - 5 } else { JUMP };
            let total = best[j].0 + own - (overlap as i32 + cost) * 8;
            if total > here.0 {
                here = (total, Some(j));
            }
        }
        best.push(here);
    }
    let mut way = Vec::new();
    let mut at = (0..best.len()).max_by_key(|&i| (best[i].0, std::cmp::Reverse(i)));
    while let Some(i) = at {
        let (mut piece, score, _) = pieces[i];
        let rival = pieces
            .iter()
            .enumerate()
            .filter(|&(j, (other, ..))| {
                let shared =
                    other.query.1.min(piece.query.1).saturating_sub(other.query.0.max(piece.query.0));
                let elsewhere = (other.chrom, other.forward, other.diagonal())
                    != (piece.chrom, piece.forward, piece.diagonal());
                j != i && elsewhere && shared * 10 >= piece.query_len() * 8
            })
            .map(|(_, (_, score, _))| *score)
            .max();
        piece.mapq = rival.map_or(60, |r| (score - r).clamp(0, 20) * 3) as u8;
        way.push(piece);
        at = best[i].1;
    }
    way.reverse();
    way
}
