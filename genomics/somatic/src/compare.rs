//! A tumour contig against the genome: where it lies, and what differs.

use std::collections::HashSet;

use genuma_align::Hit;
use genuma_reads::dna::revcomp;
use genuma_reads::fasta::Reference;
use serde::{Deserialize, Serialize};

use crate::affine::{self, Step};
use crate::assemble::{BELIEVED, Contig};
use crate::change::{Change, left_align};
use crate::pieces::{End, NEAR, Piece, best_pieces};
use crate::tract::LONGEST_UNIT;

/// A change, and the sequences a read is weighed against to tell whether it has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
const BEYOND: usize = 500;
/// An end of a contig this short may go unaligned without being taken for a breakpoint.
const LOOSE_END: usize = 12;

/// Bases of no repeat that stand between a changed base and the end of its contig, at least.
const BESIDE: usize = 5;
/// Bases from which a stretch that repeats a unit is more than chance.
const REPEATING: usize = 10;

/// How many bases from the first on repeat a unit.
fn repeats(bases: &[&u8]) -> usize {
    let run = |unit: usize| unit + bases.iter().zip(&bases[unit..]).take_while(|(a, b)| a == b).count();
    (1..=LONGEST_UNIT.min(bases.len())).map(run).filter(|&n| n >= REPEATING).max().unwrap_or(0)
}

/// Bases between two pieces that may have been turned round, at least, and how far beyond them in the genome is looked.
const SHORTEST_TURN: usize = 25;
const TURN_MARGIN: usize = 30;

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

/// A stretch of the genome, along or against it.
#[derive(Debug, Clone, Copy)]
struct Region {
    chrom: usize,
    forward: bool,
    start: usize,
    end: usize,
}

impl Region {
    fn bases(&self, genome: &Reference) -> Vec<u8> {
        let bases = &genome.contigs[self.chrom].seq[self.start..self.end];
        if self.forward { bases.to_vec() } else { revcomp(bases) }
    }

    /// The genome's positions of a range of its bases.
    fn in_genome(&self, range: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        if self.forward {
            self.start + range.start..self.start + range.end
        } else {
            self.end - range.end..self.end - range.start
        }
    }
}

/// A contig turned so that its longest piece runs with the genome.
struct Oriented<'a> {
    genome: &'a Reference,
    seq: Vec<u8>,
    novel: Vec<bool>,
    weight: Vec<u16>,
    depth: usize,
    pieces: Vec<Piece>,
}

/// A contig as compared: turned to run with the genome, and carried on by genome bases beyond both ends, so that a
/// read that sticks out of the contig still meets a sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The contig between its surroundings.
    pub seq: Vec<u8>,
    /// For each base, whether a tumour-only k-mer covers it.
    pub novel: Vec<bool>,
    /// For each base, the qualities of the tumour's reads that have it, summed up; none beyond the assembled bases.
    pub weight: Vec<u16>,
    /// Where the assembled bases lie in `seq`.
    pub assembled: std::ops::Range<usize>,
    /// Reads of the tumour that it was assembled from.
    pub depth: usize,
    /// What changed, in coordinates of `seq`.
    pub findings: Vec<Finding>,
    /// Where the contig's first and last piece lie: the sequence, and what to add to a contig coordinate to get one there. Nothing
    /// of a piece that runs against it.
    pub diagonals: [Option<(usize, i64)>; 2],
}

impl Compared {
    /// A contig that lies nowhere.
    pub fn unplaced(contig: &Contig) -> Compared {
        Compared {
            seq: contig.seq.clone(),
            novel: contig.novel.clone(),
            weight: contig.weight.clone(),
            assembled: 0..contig.seq.len(),
            depth: contig.reads.len(),
            findings: Vec::new(),
            diagonals: [None; 2],
        }
    }

    /// Whether one of the changes at least rests on bases better than what a few wrong ones are like. What takes many bases of the
    /// contig, or none, is no wrong base and is believed.
    pub fn is_well_read(&self) -> bool {
        let poor = |f: &Finding| f.at.len() == 1 && self.weight[f.at.start] < BELIEVED;
        !self.findings.iter().all(poor)
    }
}

/// The changes a contig shows.
pub fn compare(contig: &Contig, hits: &[Hit], genome: &Reference) -> Compared {
    let pieces = best_pieces(contig, hits, genome);
    let Some(longest) = pieces.iter().max_by_key(|p| p.query_len()).copied() else {
        return Compared::unplaced(contig);
    };
    let len = contig.seq.len();
    let flipped = !longest.forward;
    let mut oriented = Oriented {
        genome,
        seq: if flipped { revcomp(&contig.seq) } else { contig.seq.clone() },
        novel: contig.novel.clone(),
        weight: contig.weight.clone(),
        depth: contig.reads.len(),
        pieces,
    };
    if flipped {
        oriented.novel.reverse();
        oriented.weight.reverse();
        oriented.pieces = oriented.pieces.iter().map(|p| p.flipped(len)).collect();
        oriented.pieces.sort_by_key(|p| (p.query.0, p.query.1));
    }
    oriented.turn_gaps();
    let (findings, ends) = oriented.findings();
    oriented.surround(findings, ends)
}

impl Oriented<'_> {
    /// Looks in the gap between two pieces of one strand for what stands there in the genome turned round: a short inversion, which
    /// aligners carry on through.
    fn turn_gaps(&mut self) {
        let mut turned = Vec::new();
        for two in self.pieces.windows(2) {
            let (a, b) = (&two[0], &two[1]);
            let (start, end) = (a.query.1, b.query.0);
            let (low, high) = if a.forward { (a.target.1, b.target.0) } else { (b.target.1, a.target.0) };
            let alike = a.chrom == b.chrom && a.forward == b.forward && high >= low && high - low <= NEAR;
            if !alike || end < start + SHORTEST_TURN {
                continue;
            }
            let chrom = &self.genome.contigs[a.chrom].seq;
            let from = low.saturating_sub(TURN_MARGIN);
            let window = &chrom[from..(high + TURN_MARGIN).min(chrom.len())];
            let gap = &self.seq[start..end];
            let gap = if a.forward { revcomp(gap) } else { gap.to_vec() };
            let alignment = affine::fit(&gap, window);
            if alignment.score >= 8 * gap.len() as i32 {
                let at = from + alignment.start;
                let target = (at, at + alignment.target_len());
                turned.push(Piece { forward: !a.forward, query: (start, end), target, ..*a });
            }
        }
        self.pieces.extend(turned);
        self.pieces.sort_by_key(|p| (p.query.0, p.query.1));
    }

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
        found.retain(|f| self.is_novel(&f.at) && self.is_held(f));
        // Where two pieces overlap both may show a change.
        let mut seen = HashSet::new();
        found.retain(|f| seen.insert(f.change.clone()));
        (found, [first, last])
    }

    /// Puts genome bases before and after the contig and the sequences its findings are weighed against. An end that
    /// lies nowhere stays as it is.
    fn surround(self, findings: Vec<Finding>, [first, last]: [Piece; 2]) -> Compared {
        let (first, last) = (&first, &last);
        let len = self.seq.len();
        let before = if first.query.0 <= LOOSE_END { self.before(first, 0) } else { Vec::new() };
        let after = if len - last.query.1 <= LOOSE_END { self.after(last, len) } else { Vec::new() };
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
        let mut weight = vec![0; pad + len + after.len()];
        weight[pad..pad + len].copy_from_slice(&self.weight);
        let diagonal = |piece: &Piece, end: End| {
            piece.forward.then(|| (piece.chrom, piece.faces(pad, end) - 2 * pad as i64))
        };
        Compared {
            seq: [&before[..], &self.seq, &after[..]].concat(),
            novel,
            weight,
            assembled: pad..pad + len,
            depth: self.depth,
            findings,
            diagonals: [diagonal(first, End::First), diagonal(last, End::Last)],
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

    /// Whether the contig goes on far enough on both sides of a small change to tell it from a breakpoint just there, or from another
    /// length of a repeat that the contig ends in.
    fn is_held(&self, f: &Finding) -> bool {
        let Change::Allele { reference, alternative, .. } = &f.change else { return true };
        let least = if reference.len() == alternative.len() { BESIDE } else { LOOSE_END };
        let before = self.seq[..f.at.start].iter().rev();
        let after = self.seq[f.at.end..].iter();
        let held = |flank: &[&u8]| flank.len() >= least && flank.len() - repeats(flank) >= BESIDE;
        held(&before.collect::<Vec<_>>()) && held(&after.collect::<Vec<_>>())
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
        let region = Region { chrom: first.chrom, forward: true, start, end };
        let bases = &chrom[start..end];
        let alignment = affine::fit(&self.seq, bases);
        // A loose end or a second piece that the alignment cannot explain by a gap is a breakpoint.
        if (loose || self.pieces.len() > 1) && !self.explains(&alignment, bases) {
            return None;
        }
        let mapq = self.pieces.iter().map(|p| p.mapq).max().unwrap_or(0);
        let mut found = self.differences(&alignment, region, bases, (0, self.seq.len()), mapq);
        found.retain(|f| self.is_novel(&f.at) && self.is_held(f));
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
        if a.chrom != b.chrom || a.forward != b.forward {
            return None;
        }
        let (first, second) = if a.forward { (a, b) } else { (b, a) };
        let near = second.target.0 + 20 >= first.target.1 && second.target.0 <= first.target.1 + NEAR;
        if !near {
            return None;
        }
        let region = Region {
            chrom: a.chrom,
            forward: a.forward,
            start: first.target.0,
            end: second.target.1.max(first.target.0),
        };
        Some(self.alleles(region, (a.query.0, b.query.1), a.mapq.min(b.mapq)))
    }

    /// Small changes inside one piece of a contig in several.
    fn alleles_of(&self, piece: &Piece) -> Vec<Finding> {
        let &Piece { chrom, forward, target: (start, end), .. } = piece;
        self.alleles(Region { chrom, forward, start, end }, piece.query, piece.mapq)
    }

    /// The differences of `seq[from..to]` from a region of the genome.
    fn alleles(&self, region: Region, query: (usize, usize), mapq: u8) -> Vec<Finding> {
        let bases = region.bases(self.genome);
        let alignment = affine::fit(&self.seq[query.0..query.1], &bases);
        self.differences(&alignment, region, &bases, query, mapq)
    }

    /// Reads the differences of `seq[from..to]` off its alignment against a region of the genome, of those `bases`.
    fn differences(
        &self,
        alignment: &affine::Alignment,
        region: Region,
        bases: &[u8],
        (from, to): (usize, usize),
        mapq: u8,
    ) -> Vec<Finding> {
        let target = &self.genome.contigs[region.chrom].seq;
        let (mut q, mut t) = (from, alignment.start);
        let mut found = Vec::new();
        let mut add = |q: std::ops::Range<usize>, t: std::ops::Range<usize>| {
            // A gap at the very end of a contig is the end of the contig.
            if q.start == from && t.is_empty() || q.end == to && t.is_empty() {
                return;
            }
            let in_genome = region.in_genome(&t);
            let alternative = &self.seq[q.clone()];
            let alternative = if region.forward { alternative.to_vec() } else { revcomp(alternative) };
            let reference = &target[in_genome.clone()];
            if reference.iter().chain(&alternative).any(|b| !b"ACGT".contains(b)) {
                return;
            }
            let (pos, reference, alternative) = left_align(target, in_genome.start, reference, &alternative);
            let normal = [&self.seq[..q.start], &bases[t.clone()], &self.seq[q.end..]].concat();
            found.push(Finding {
                right_shift: t.len() as i32 - q.len() as i32,
                change: Change::Allele { chrom: region.chrom, pos, reference, alternative },
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
                        if self.seq[q] != bases[t] {
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

    /// Genome bases as the contig would go on from position `q` after a piece.
    fn after(&self, piece: &Piece, q: usize) -> Vec<u8> {
        piece.facing(q..q + BEYOND, End::Last, self.genome)
    }

    /// Genome bases as they would lead up to contig position `q` before a piece.
    fn before(&self, piece: &Piece, q: usize) -> Vec<u8> {
        // Positions before the contig's first base are negative: the piece is looked at from further on.
        let shifted = Piece { query: (piece.query.0 + BEYOND, piece.query.1 + BEYOND), ..*piece };
        shifted.facing(q..q + BEYOND, End::First, self.genome)
    }

    /// Bases at one end of a piece that lie on one diagonal.
    fn gapless(&self, piece: &Piece, end: End) -> usize {
        let (from, to) = piece.query;
        let genome = piece.facing(from..to, end, self.genome);
        let contig = &self.seq[from..to];
        match end {
            End::First => on_diagonal(contig.iter(), genome.iter()),
            End::Last => on_diagonal(contig.iter().rev(), genome.iter().rev()),
        }
    }

    /// The junction between two pieces: the split of the contig that both explain best.
    fn junction(&self, a: &Piece, b: &Piece) -> Option<Finding> {
        const REACH: usize = 60;
        // Only as far as the pieces run gapless up to the junction: beyond a gap their diagonals are others.
        let lo = a.query.1.min(b.query.0).saturating_sub(REACH).max(a.query.1 - self.gapless(a, End::Last));
        let hi = (a.query.1.max(b.query.0) + REACH).min(b.query.0 + self.gapless(b, End::First));
        if lo >= hi {
            return None;
        }
        let stretch = &self.seq[lo..hi];
        let follow = a.facing(lo..hi, End::Last, self.genome);
        let precede = b.facing(lo..hi, End::First, self.genome);
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
        let leave = |q: usize| a.breakend(q, End::Last, self.genome);
        let enter = |q: usize| b.breakend(q, End::First, self.genome);
        let first = if leave(lo + exit)? <= enter(lo + entry)? { a } else { b };
        let shift = if first.forward { 0 } else { homology };
        let (q0, q1) = (lo + exit + shift, lo + entry + shift);
        let (leave, enter) = (leave(q0)?, enter(q1)?);
        let inserted = self.seq[q0..q1].to_vec();
        let (ends, inserted) =
            if leave <= enter { ([leave, enter], inserted) } else { ([enter, leave], revcomp(&inserted)) };
        let left_normal = [&self.seq[..q0], &self.after(a, q0)[..]].concat();
        let before = self.before(b, q1);
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
            && let Some(end) = last.breakend(last.query.1, End::Last, self.genome)
        {
            let q = last.query.1;
            let normal = [&self.seq[..q], &self.after(last, q)[..]].concat();
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
            && let Some(end) = first.breakend(first.query.0, End::First, self.genome)
        {
            let q = first.query.0;
            let before = self.before(first, q);
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
