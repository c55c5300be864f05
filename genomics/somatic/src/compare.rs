//! A tumour contig against the genome: where it lies, and what differs.

use genuma_align::Hit;
use genuma_reads::dna::revcomp;
use genuma_reads::fasta::Reference;

use crate::affine::{self, Step};
use crate::assemble::Contig;
use crate::change::{Breakend, Change, Side, left_align};
use crate::pieces::{NEAR, Piece, best_pieces};

/// A change, and the sequences a read is weighed against to tell whether it has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What changed.
    pub change: Change,
    /// The changed stretch of the contig (empty range for a deletion).
    pub at: std::ops::Range<usize>,
    /// The sequence without the change that shares the contig's left flank: equal coordinates left of `at`.
    pub left_normal: Vec<u8>,
    /// The sequence without the change that shares the contig's right flank.
    pub right_normal: Vec<u8>,
    /// What to add to a contig coordinate right of `at` to get one in `right_normal`.
    pub right_shift: i32,
    /// How surely the contig lies where it was put: three times the bases by which it beats the next best place, at
    /// most 60; the lesser of two for a junction.
    pub mapq: u8,
}

/// Bases of the genome shown beyond a breakpoint to a read that does not cross it.
const BEYOND: usize = 300;
/// An end of a contig this short may go unaligned without being taken for a breakpoint.
const LOOSE_END: usize = 12;

/// How far two sequences agree side by side, by the best score of matches less four a mismatch.
fn on_diagonal<'a>(query: impl Iterator<Item = &'a u8>, target: impl Iterator<Item = &'a u8>) -> usize {
    let (mut score, mut best, mut len) = (0i32, 0i32, 0usize);
    for (i, (q, t)) in query.zip(target).enumerate() {
        score += if q == t { 1 } else { -4 };
        if score > best {
            (best, len) = (score, i + 1);
        }
        if score < best - 20 {
            break;
        }
    }
    len
}

/// A contig turned so that its first piece runs with the genome.
struct Oriented<'a> {
    genome: &'a Reference,
    seq: Vec<u8>,
    novel: Vec<bool>,
    pieces: Vec<Piece>,
}

/// A contig as compared: turned to run with the genome, and carried on by genome bases beyond both ends, so that a
/// read that sticks out of the contig still meets a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// The contig between its surroundings.
    pub seq: Vec<u8>,
    /// For each base, whether a tumour-only k-mer covers it.
    pub novel: Vec<bool>,
    /// Where the assembled bases lie in `seq`.
    pub assembled: std::ops::Range<usize>,
    /// What changed, in coordinates of `seq`.
    pub findings: Vec<Finding>,
}

impl Compared {
    /// A contig that lies nowhere.
    pub fn unplaced(contig: &Contig) -> Compared {
        Compared {
            seq: contig.seq.clone(),
            novel: contig.novel.clone(),
            assembled: 0..contig.seq.len(),
            findings: Vec::new(),
        }
    }
}

/// The changes a contig shows.
pub fn compare(contig: &Contig, hits: &[Hit], genome: &Reference) -> Compared {
    let pieces = best_pieces(&contig.seq, hits, genome);
    let Some(longest) = pieces.iter().max_by_key(|p| p.query_len()).copied() else {
        return Compared::unplaced(contig);
    };
    let len = contig.seq.len();
    let flipped = !longest.forward;
    let mut oriented = Oriented {
        genome,
        seq: if flipped { revcomp(&contig.seq) } else { contig.seq.clone() },
        novel: contig.novel.clone(),
        pieces,
    };
    if flipped {
        oriented.novel.reverse();
        oriented.pieces = oriented.pieces.iter().map(|p| p.flipped(len)).collect();
        oriented.pieces.sort_by_key(|p| (p.query.0, p.query.1));
    }
    let (findings, ends) = oriented.findings();
    oriented.surround(findings, ends)
}

impl Oriented<'_> {
    /// The changes, and the pieces that hold the contig's two ends.
    fn findings(&self) -> (Vec<Finding>, [Piece; 2]) {
        let (first, last) = (self.pieces[0], self.pieces[self.pieces.len() - 1]);
        let mut found = Vec::new();
        if let Some(whole) = self.as_one(&first, &last) {
            return whole;
        }
        // What each piece explains: up to its junctions, not beyond, where it may run on by chance.
        let mut own: Vec<(usize, usize)> = self.pieces.iter().map(|p| p.query).collect();
        for (i, two) in self.pieces.windows(2).enumerate() {
            match self.as_one_between(&two[0], &two[1]) {
                Some(small) => found.extend(small),
                None => {
                    if let Some(junction) = self.junction(&two[0], &two[1]) {
                        own[i].1 = own[i].1.min(junction.at.start);
                        own[i + 1].0 = own[i + 1].0.max(junction.at.end);
                        found.push(junction);
                    }
                }
            }
        }
        for (piece, own) in self.pieces.iter().zip(own) {
            found.extend(
                self.alleles_of(piece).into_iter().filter(|f| f.at.start >= own.0 && f.at.end <= own.1),
            );
        }
        found.extend(self.novel_ends(&first, &last));
        found.retain(|f| self.is_novel(&f.at));
        (found, [first, last])
    }

    /// Puts genome bases before and after the contig and the sequences its findings are weighed against. An end that
    /// lies nowhere stays as it is.
    fn surround(self, findings: Vec<Finding>, [first, last]: [Piece; 2]) -> Compared {
        let (first, last) = (&first, &last);
        let len = self.seq.len();
        let before = if first.query.0 <= LOOSE_END { self.backward(first, 0, BEYOND) } else { Vec::new() };
        let after = if len - last.query.1 <= LOOSE_END { self.onward(last, len, BEYOND) } else { Vec::new() };
        let pad = before.len();
        let findings = findings
            .into_iter()
            .map(|f| {
                let joined = matches!(f.change, Change::Allele { .. });
                let left_normal =
                    [&before[..], &f.left_normal[..], if joined { &after[..] } else { &[] }].concat();
                let right_normal =
                    [if joined { &before[..] } else { &[] }, &f.right_normal[..], &after[..]].concat();
                Finding {
                    at: f.at.start + pad..f.at.end + pad,
                    right_shift: f.right_shift - if joined { 0 } else { pad as i32 },
                    left_normal,
                    right_normal,
                    ..f
                }
            })
            .collect();
        let mut novel = vec![false; pad + len + after.len()];
        novel[pad..pad + len].copy_from_slice(&self.novel);
        Compared {
            seq: [&before[..], &self.seq, &after[..]].concat(),
            novel,
            assembled: pad..pad + len,
            findings,
        }
    }

    fn chrom(&self, piece: &Piece) -> &[u8] {
        &self.genome.contigs[piece.chrom].seq
    }

    /// Whether a tumour-only k-mer covers the change.
    fn is_novel(&self, at: &std::ops::Range<usize>) -> bool {
        let range = at.start.saturating_sub(1)..(at.end + 1).min(self.novel.len());
        self.novel[range].iter().any(|&n| n)
    }

    /// The whole contig as one alignment, if first and last piece are in order and near each other.
    fn as_one(&self, first: &Piece, last: &Piece) -> Option<(Vec<Finding>, [Piece; 2])> {
        let in_order = first.chrom == last.chrom
            && first.forward
            && last.forward
            && last.target.1 >= first.target.0
            && last.target.1 - first.target.0 <= self.seq.len() + NEAR;
        if !in_order || self.pieces.iter().any(|p| p.chrom != first.chrom || !p.forward) {
            return None;
        }
        let (head, tail) = (first.query.0, self.seq.len() - last.query.1);
        let loose = head.max(tail) > LOOSE_END;
        let pad = if loose { NEAR } else { 50 };
        let chrom = self.chrom(first);
        let start = first.target.0.saturating_sub(head + pad);
        let end = (last.target.1 + tail + pad).min(chrom.len());
        let alignment = affine::fit(&self.seq, &chrom[start..end]);
        // A loose end or a second piece that the alignment cannot explain by a gap is a breakpoint.
        if (loose || self.pieces.len() > 1) && !self.explains(&alignment, &chrom[start..end]) {
            return None;
        }
        let mapq = self.pieces.iter().map(|p| p.mapq).max().unwrap_or(0);
        let mut found = self.alleles(&alignment, first.chrom, start, 0, self.seq.len(), mapq);
        found.retain(|f| self.is_novel(&f.at));
        let from = start + alignment.start;
        let query = (0, self.seq.len());
        let whole = Piece { query, target: (from, from + alignment.target_len()), mapq, ..*first };
        Some((found, [whole, whole]))
    }

    /// Whether an alignment has next to no mismatches and at most two gaps.
    fn explains(&self, alignment: &affine::Alignment, target: &[u8]) -> bool {
        let (mut q, mut t, mut differing, mut gaps) = (0, alignment.start, 0, 0);
        for step in &alignment.steps {
            match *step {
                Step::Match(n) => {
                    let n = n as usize;
                    differing +=
                        self.seq[q..q + n].iter().zip(&target[t..t + n]).filter(|(a, b)| a != b).count();
                    (q, t) = (q + n, t + n);
                }
                Step::Insert(n) => (q, gaps) = (q + n as usize, gaps + 1),
                Step::Delete(n) => (t, gaps) = (t + n as usize, gaps + 1),
            }
        }
        let ends_in_gap = [alignment.steps.first(), alignment.steps.last()]
            .iter()
            .any(|s| !matches!(s, Some(Step::Match(n)) if *n >= LOOSE_END as u32));
        gaps <= 2 && differing <= 2 + self.seq.len() / 50 && !ends_in_gap
    }

    /// Two neighbouring pieces of a longer contig as one alignment.
    fn as_one_between(&self, a: &Piece, b: &Piece) -> Option<Vec<Finding>> {
        let near = a.chrom == b.chrom
            && a.forward == b.forward
            && if a.forward {
                b.target.0 + 20 >= a.target.1 && b.target.0 <= a.target.1 + NEAR
            } else {
                a.target.0 + 20 >= b.target.1 && a.target.0 <= b.target.1 + NEAR
            };
        if !near || !a.forward {
            return None;
        }
        let alignment = affine::fit(
            &self.seq[a.query.0..b.query.1],
            &self.chrom(a)[a.target.0..b.target.1.max(a.target.0)],
        );
        Some(self.alleles(&alignment, a.chrom, a.target.0, a.query.0, b.query.1, a.mapq.min(b.mapq)))
    }

    /// Small changes inside one piece of a contig in several.
    fn alleles_of(&self, piece: &Piece) -> Vec<Finding> {
        if !piece.forward {
            return Vec::new();
        }
        let alignment = affine::fit(
            &self.seq[piece.query.0..piece.query.1],
            &self.chrom(piece)[piece.target.0..piece.target.1],
        );
        self.alleles(&alignment, piece.chrom, piece.target.0, piece.query.0, piece.query.1, piece.mapq)
    }

    /// Reads the differences off an alignment of `seq[from..to]` against the genome from `start` on.
    fn alleles(
        &self,
        alignment: &affine::Alignment,
        chrom: usize,
        start: usize,
        from: usize,
        to: usize,
        mapq: u8,
    ) -> Vec<Finding> {
        let target = &self.genome.contigs[chrom].seq;
        let (mut q, mut t) = (from, start + alignment.start);
        let mut found = Vec::new();
        let mut add = |q: std::ops::Range<usize>, t: std::ops::Range<usize>| {
            // A gap at the very end of a contig is the end of the contig.
            if q.start == from && t.is_empty() || q.end == to && t.is_empty() {
                return;
            }
            let (reference, alternative) = (&target[t.clone()], &self.seq[q.clone()]);
            if reference.iter().chain(alternative).any(|b| !b"ACGT".contains(b)) {
                return;
            }
            let (pos, reference, alternative) = left_align(target, t.start, reference, alternative);
            let normal = [&self.seq[..q.start], &target[t.clone()], &self.seq[q.end..]].concat();
            found.push(Finding {
                right_shift: t.len() as i32 - q.len() as i32,
                change: Change::Allele { chrom, pos, reference, alternative },
                at: q,
                left_normal: normal.clone(),
                right_normal: normal,
                mapq,
            });
        };
        for step in &alignment.steps {
            match *step {
                Step::Match(n) => {
                    for _ in 0..n {
                        if self.seq[q] != target[t] {
                            add(q..q + 1, t..t + 1);
                        }
                        (q, t) = (q + 1, t + 1);
                    }
                }
                Step::Insert(n) => {
                    add(q..q + n as usize, t..t);
                    q += n as usize;
                }
                Step::Delete(n) => {
                    add(q..q, t..t + n as usize);
                    t += n as usize;
                }
            }
        }
        found
    }

    /// Genome bases as the contig would go on after (or before) a piece: `n` bases beyond contig position `q`,
    /// gapless from the piece's end.
    fn onward(&self, piece: &Piece, q: usize, n: usize) -> Vec<u8> {
        let chrom = self.chrom(piece);
        if piece.forward {
            let t = (piece.target.1 as i64 + q as i64 - piece.query.1 as i64).clamp(0, chrom.len() as i64)
                as usize;
            chrom[t..(t + n).min(chrom.len())].to_vec()
        } else {
            let t = (piece.target.0 as i64 - (q as i64 - piece.query.1 as i64)).clamp(0, chrom.len() as i64)
                as usize;
            revcomp(&chrom[t.saturating_sub(n)..t])
        }
    }

    fn backward(&self, piece: &Piece, q: usize, n: usize) -> Vec<u8> {
        let chrom = self.chrom(piece);
        if piece.forward {
            let t = (piece.target.0 as i64 - (piece.query.0 as i64 - q as i64)).clamp(0, chrom.len() as i64)
                as usize;
            chrom[t.saturating_sub(n)..t].to_vec()
        } else {
            let t = (piece.target.1 as i64 + (piece.query.0 as i64 - q as i64)).clamp(0, chrom.len() as i64)
                as usize;
            revcomp(&chrom[t..(t + n).min(chrom.len())])
        }
    }

    /// Bases at the end of a piece that lie on one diagonal.
    fn gapless_tail(&self, piece: &Piece) -> usize {
        let genome = self.bases_of(piece);
        on_diagonal(self.seq[piece.query.0..piece.query.1].iter().rev(), genome.iter().rev())
    }

    /// Bases at the start of a piece that lie on one diagonal.
    fn gapless_head(&self, piece: &Piece) -> usize {
        let genome = self.bases_of(piece);
        on_diagonal(self.seq[piece.query.0..piece.query.1].iter(), genome.iter())
    }

    /// The genome's bases of a piece, along the contig.
    fn bases_of(&self, piece: &Piece) -> Vec<u8> {
        let bases = &self.chrom(piece)[piece.target.0..piece.target.1];
        if piece.forward { bases.to_vec() } else { revcomp(bases) }
    }

    /// The breakend where piece `a` is left at contig position `q` (first base not of the piece).
    fn leave(&self, a: &Piece, q: usize) -> Option<Breakend> {
        let ahead = q as i64 - a.query.1 as i64;
        let pos = if a.forward { a.target.1 as i64 + ahead - 1 } else { a.target.0 as i64 - ahead };
        let side = if a.forward { Side::Left } else { Side::Right };
        self.breakend(a, pos, side)
    }

    /// The breakend where piece `b` is entered at contig position `q` (its first base).
    fn enter(&self, b: &Piece, q: usize) -> Option<Breakend> {
        let ahead = q as i64 - b.query.0 as i64;
        let pos = if b.forward { b.target.0 as i64 + ahead } else { b.target.1 as i64 - 1 - ahead };
        let side = if b.forward { Side::Right } else { Side::Left };
        self.breakend(b, pos, side)
    }

    fn breakend(&self, piece: &Piece, pos: i64, side: Side) -> Option<Breakend> {
        let pos = usize::try_from(pos).ok().filter(|&p| p < self.chrom(piece).len())?;
        Some(Breakend { chrom: piece.chrom, pos, side })
    }

    /// The junction between two pieces: the split of the contig that both explain best.
    fn junction(&self, a: &Piece, b: &Piece) -> Option<Finding> {
        const REACH: usize = 60;
        // Only as far as the pieces run gapless up to the junction: beyond a gap their diagonals are others.
        let lo = a.query.1.min(b.query.0).saturating_sub(REACH).max(a.query.1 - self.gapless_tail(a));
        let hi = (a.query.1.max(b.query.0) + REACH).min(b.query.0 + self.gapless_head(b));
        if lo >= hi {
            return None;
        }
        let stretch = &self.seq[lo..hi];
        let follow = self.onward(a, lo, hi - lo);
        let precede = self.backward(b, hi, hi - lo);
        let agree = |x: Option<&u8>, y: u8| if x == Some(&y) { 1i32 } else { -4 };
        // left[i]: score of stretch[..i] following a; right[i]: of stretch[i..] leading into b.
        let mut left = vec![0i32; stretch.len() + 1];
        for i in 0..stretch.len() {
            left[i + 1] = left[i] + agree(follow.get(i), stretch[i]);
        }
        let mut right = vec![0i32; stretch.len() + 1];
        let lead = stretch.len() - precede.len().min(stretch.len());
        for i in (0..stretch.len()).rev() {
            right[i] = right[i + 1] + agree(i.checked_sub(lead).and_then(|x| precede.get(x)), stretch[i]);
        }
        // Best exit of a at or before each point, then the best entry of b: ties as far left as possible.
        let (mut exit, mut best) = (0usize, (i32::MIN, 0usize, 0usize));
        for entry in 0..=stretch.len() {
            if left[entry] > left[exit] {
                exit = entry;
            }
            let score = left[exit] + right[entry] - i32::from(entry > exit);
            if score > best.0 {
                best = (score, exit, entry);
            }
        }
        let (_, exit, entry) = best;
        let homology = (1..=stretch.len() - entry)
            .take_while(|&h| exit == entry && follow.get(entry + h - 1) == Some(&stretch[entry + h - 1]))
            .count();
        // The leftmost split of the contig is the leftmost on the first end, unless the contig runs against it there.
        let first = if self.leave(a, lo + exit)? <= self.enter(b, lo + entry)? { a } else { b };
        let shift = if first.forward { 0 } else { homology };
        let (q0, q1) = (lo + exit + shift, lo + entry + shift);
        let (leave, enter) = (self.leave(a, q0)?, self.enter(b, q1)?);
        let inserted = self.seq[q0..q1].to_vec();
        let (ends, inserted) =
            if leave <= enter { ([leave, enter], inserted) } else { ([enter, leave], revcomp(&inserted)) };
        let left_normal = [&self.seq[..q0], &self.onward(a, q0, BEYOND)[..]].concat();
        let before = self.backward(b, q1, BEYOND);
        let right_shift = before.len() as i32 - q1 as i32;
        let right_normal = [&before[..], &self.seq[q1..]].concat();
        Some(Finding {
            change: Change::Junction { ends, inserted, homology },
            at: q0..q1,
            left_normal,
            right_normal,
            right_shift,
            mapq: a.mapq.min(b.mapq),
        })
    }

    /// Contig ends that lie nowhere: sequence the genome lacks.
    fn novel_ends(&self, first: &Piece, last: &Piece) -> Vec<Finding> {
        const LEAST: usize = 25;
        let mut found = Vec::new();
        if self.seq.len() - last.query.1 >= LEAST
            && let Some(end) = self.leave(last, last.query.1)
        {
            let q = last.query.1;
            let normal = [&self.seq[..q], &self.onward(last, q, BEYOND)[..]].concat();
            found.push(Finding {
                change: Change::Novel { end, sequence: self.seq[q..].to_vec() },
                at: q..q,
                left_normal: normal.clone(),
                right_normal: normal,
                right_shift: 0,
                mapq: last.mapq,
            });
        }
        if first.query.0 >= LEAST
            && let Some(end) = self.enter(first, first.query.0)
        {
            let q = first.query.0;
            let before = self.backward(first, q, BEYOND);
            let right_shift = before.len() as i32 - q as i32;
            let normal = [&before[..], &self.seq[q..]].concat();
            found.push(Finding {
                change: Change::Novel { end, sequence: revcomp(&self.seq[..q]) },
                at: q..q,
                left_normal: normal.clone(),
                right_normal: normal,
                right_shift,
                mapq: first.mapq,
            });
        }
        found
    }
}
