//! An aligner's hits → the pieces of a contig, in contig order.

use std::cmp::Reverse;

use genuma_align::{CigarKind, Hit, Strand};
use genuma_kmers::encode::kmers;
use genuma_reads::dna::complement;
use genuma_reads::fasta::Reference;

use crate::assemble::Contig;
use crate::change::{Breakend, Side};
use crate::tract::LONGEST_UNIT;

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

/// Which end of a piece, along the contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Where the contig enters it.
    First,
    /// Where the contig leaves it.
    Last,
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

    /// The base of the genome that faces contig position `q` when the piece goes on without gaps from its `end`, and beyond it.
    pub(crate) fn faces(&self, q: usize, end: End) -> i64 {
        let ahead = match end {
            End::First => q as i64 - self.query.0 as i64,
            End::Last => q as i64 - self.query.1 as i64,
        };
        match (end, self.forward) {
            (End::First, true) => self.target.0 as i64 + ahead,
            (End::First, false) => self.target.1 as i64 - 1 - ahead,
            (End::Last, true) => self.target.1 as i64 + ahead,
            (End::Last, false) => self.target.0 as i64 - 1 - ahead,
        }
    }

    /// The genome's bases facing contig positions `range`, along the contig, gapless from the piece's `end`; fewer where the
    /// genome's sequence stops.
    pub(crate) fn facing(&self, range: std::ops::Range<usize>, end: End, genome: &Reference) -> Vec<u8> {
        let chrom = &genome.contigs[self.chrom].seq;
        let base = |q: usize| usize::try_from(self.faces(q, end)).ok().and_then(|i| chrom.get(i)).copied();
        let turned = |b: u8| if self.forward { b } else { complement(b) };
        range.filter_map(base).map(turned).collect()
    }

    /// The breakend of the genome where the piece, gapless from its `end`, is cut at contig position `q`: before that position when
    /// the contig leaves the piece there, from it on when it enters.
    pub(crate) fn breakend(&self, q: usize, end: End, genome: &Reference) -> Option<Breakend> {
        let (outermost, kept_before) = match end {
            End::Last => (q.checked_sub(1)?, true),
            End::First => (q, false),
        };
        let pos = usize::try_from(self.faces(outermost, end)).ok()?;
        let side = if kept_before == self.forward { Side::Left } else { Side::Right };
        (pos < genome.contigs[self.chrom].seq.len()).then_some(Breakend { chrom: self.chrom, pos, side })
    }

    /// The same piece of the contig read from its other strand.
    pub(crate) fn flipped(&self, len: usize) -> Piece {
        Piece { forward: !self.forward, query: (len - self.query.1, len - self.query.0), ..*self }
    }

    /// The stretches of one hit between its long gaps, each with its score: matching bases less four for a mismatch
    /// and six and one a base for a gap.
    fn of(hit: &Hit, seq: &[u8], genome: &Reference) -> Vec<(Piece, i32)> {
        let chrom = hit.tid;
        let target = &genome.contigs[chrom].seq;
        let forward = hit.strand == Strand::Forward;
        let (start, end) = (hit.query_start, hit.query_end);
        // CIGARs run along the genome: on the reverse strand the query is walked from its other end.
        let base = |q: usize| if forward { seq[start + q] } else { complement(seq[end - 1 - q]) };
        let place = |from: usize, to: usize| {
            if forward { (start + from, start + to) } else { (end - to, end - from) }
        };
        let (mut q, mut t) = (0usize, hit.ref_start);
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
            if op.kind == CigarKind::Match {
                for _ in 0..len {
                    score += if base(q) == target[t] { 1 } else { -4 };
                    (q, t) = (q + 1, t + 1);
                }
                continue;
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

/// A piece that may be part of the way.
struct Candidate {
    piece: Piece,
    /// Matching bases less four for a mismatch.
    score: i32,
    primary: bool,
    /// What the mates beyond the contig's ends add when this is its first piece, and when it is its last.
    mates: [i32; 2],
}

impl Candidate {
    /// All that speaks for the piece where it stands in a way.
    fn sum(&self, first: bool, last: bool) -> i32 {
        self.score + if first { self.mates[0] } else { 0 } + if last { self.mates[1] } else { 0 }
    }
}

/// The way through the hits' pieces that explains most of the contig, in contig order. Secondary hits take part:
/// in a repeat the true second half of a contig may lie in one. Where several places explain an end of the contig
/// nearly as well, the mates of its reads decide, which lie `beyond` the contig's ends. Each piece's `mapq` is set from
/// its margin over the best other place of the same stretch.
pub(crate) fn best_pieces(contig: &Contig, hits: &[Hit], genome: &Reference) -> Vec<Piece> {
    let mut candidates: Vec<Candidate> = hits
        .iter()
        .flat_map(|h| {
            Piece::of(h, &contig.seq, genome).into_iter().map(|(p, score)| (p, score, !h.is_secondary))
        })
        .filter(|(piece, score, _)| *score >= 15 && !is_repeat(&contig.seq[piece.query.0..piece.query.1]))
        .map(|(piece, score, primary)| Candidate { piece, score, primary, mates: [0; 2] })
        .collect();
    candidates.sort_by_key(|c| (c.piece.query, Reverse((c.primary, c.score)), c.piece.chrom, c.piece.target));
    candidates.dedup_by(|a, b| {
        (a.piece.query, a.piece.chrom, a.piece.target) == (b.piece.query, b.piece.chrom, b.piece.target)
    });
    let way = best_way(&candidates);
    let doubtful = |piece: Option<&Piece>| piece.is_some_and(|p| p.mapq < SURE);
    if doubtful(way.first()) || doubtful(way.last()) {
        let mut mates = contig.beyond.each_ref().map(|mates| Mates::new(mates));
        for candidate in &mut candidates {
            candidate.mates = [End::First, End::Last].map(|end| {
                let mates = &mut mates[usize::from(end == End::Last)];
                mates.bear_out(&candidate.piece, end, genome)
            });
        }
        return best_way(&candidates);
    }
    way
}

/// Bases of a piece that a tandem repeat must leave for it to lie in one place.
const OWN: usize = 24;

/// Whether a stretch is one tandem repeat but for a few bases: it fits wherever the unit is repeated, and best where that is longest.
fn is_repeat(seq: &[u8]) -> bool {
    (1..=LONGEST_UNIT.min(seq.len())).any(|unit| {
        let same = seq.iter().zip(&seq[unit..]).filter(|(a, b)| a == b).count();
        same + unit + OWN > seq.len() && same * 10 >= (seq.len() - unit) * 9
    })
}

/// Mapping quality under which the mates are asked.
const SURE: u8 = 60;
/// Bases beyond a piece within which the mates of its reads lie.
const MATE_REACH: usize = 800;
/// Bases of the words by which a mate is known, and one in how many of them is looked at.
const WORD: u32 = 21;
const WORD_STRIDE: usize = 4;
/// What one mate adds when all its words are there, in matching bases.
const MATE_SCORE: usize = 20;

/// Bits of the filter of words: most others do not pass.
const FILTER: u32 = 14;

/// Mates that lie beyond an end of a contig, by some words of each.
struct Mates {
    /// Of each word which mate has it, and whether it was met; in order.
    words: Vec<(u64, usize, bool)>,
    /// How many each mate has, and of them were met.
    counts: Vec<[usize; 2]>,
    filter: Vec<u64>,
}

fn bit(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER)) as usize
}

impl Mates {
    /// Of reads that run with the contig.
    fn new(mates: &[Vec<u8>]) -> Mates {
        let mut words = Vec::new();
        let mut counts = vec![[0; 2]; mates.len()];
        let mut filter = vec![0; (1 << FILTER) / 64];
        for (m, mate) in mates.iter().enumerate() {
            for (_, kmer) in kmers(mate, WORD).filter(|(at, _)| at % WORD_STRIDE == 0) {
                words.push((kmer.forward, m, false));
                counts[m][0] += 1;
                filter[bit(kmer.forward) / 64] |= 1 << (bit(kmer.forward) % 64);
            }
        }
        words.sort_unstable();
        Mates { words, counts, filter }
    }

    /// What they say for a piece beyond its `end`: their score as far as their words stand there.
    fn bear_out(&mut self, piece: &Piece, end: End, genome: &Reference) -> i32 {
        if self.counts.is_empty() {
            return 0;
        }
        let moved = Piece { query: (piece.query.0 + MATE_REACH, piece.query.1 + MATE_REACH), ..*piece };
        let range = match end {
            End::First => moved.query.0 - MATE_REACH..moved.query.0 + MATE_REACH / 4,
            End::Last => moved.query.1 - MATE_REACH / 4..moved.query.1 + MATE_REACH,
        };
        self.words.iter_mut().for_each(|(_, _, met)| *met = false);
        self.counts.iter_mut().for_each(|[_, met]| *met = 0);
        for (_, kmer) in kmers(&moved.facing(range, end, genome), WORD) {
            let word = kmer.forward;
            if self.filter[bit(word) / 64] >> (bit(word) % 64) & 1 == 0 {
                continue;
            }
            let first = self.words.partition_point(|(other, ..)| *other < word);
            for (_, mate, met) in self.words[first..].iter_mut().take_while(|(other, ..)| *other == word) {
                self.counts[*mate][1] += usize::from(!std::mem::replace(met, true));
            }
        }
        self.counts.iter().map(|[all, met]| met * MATE_SCORE / all.max(&1)).sum::<usize>() as i32
    }
}

/// The best way through candidates sorted by where they begin.
fn best_way(candidates: &[Candidate]) -> Vec<Piece> {
    // best[i]: score of the best way that goes through candidate i so far, and the candidate before it.
    let mut best: Vec<(i32, Option<usize>)> = Vec::with_capacity(candidates.len());
    for (i, candidate) in candidates.iter().enumerate() {
        let piece = &candidate.piece;
        // Equal ways are told apart in favour of what the aligner calls primary.
        let primary = i32::from(candidate.primary);
        let mut here = (candidate.sum(true, false) * 8 + primary, None);
        let own = candidate.score * 8 + primary;
        for (j, Candidate { piece: before, .. }) in candidates[..i].iter().enumerate() {
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
    let ended = |i: usize| best[i].0 + candidates[i].mates[1] * 8;
    let mut at = (0..best.len()).max_by_key(|&i| (ended(i), Reverse(i)));
    while let Some(i) = at {
        let mut piece = candidates[i].piece;
        // Where it stands decides which mates speak for it and for its rivals.
        let (first, last) = (best[i].1.is_none(), way.is_empty());
        let rival = candidates
            .iter()
            .enumerate()
            .filter(|&(j, Candidate { piece: other, .. })| {
                let shared =
                    other.query.1.min(piece.query.1).saturating_sub(other.query.0.max(piece.query.0));
                let elsewhere = (other.chrom, other.forward, other.diagonal())
                    != (piece.chrom, piece.forward, piece.diagonal());
                j != i && elsewhere && shared * 10 >= piece.query_len() * 8
            })
            .map(|(_, rival)| rival.sum(first, last))
            .max();
        piece.mapq = rival.map_or(60, |r| (candidates[i].sum(first, last) - r).clamp(0, 20) * 3) as u8;
        way.push(piece);
        at = best[i].1;
    }
    way.reverse();
    way
}
