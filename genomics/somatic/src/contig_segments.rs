//! Converts the mapper's hits of a contig into segments, and selects the chain of segments that explains the contig.

use std::cmp::Reverse;

use genuma_align::{CigarKind, Hit, Strand};
use genuma_kmers::encode::kmers;
use genuma_reads::dna::complement;
use genuma_reads::fasta::Reference;

use crate::assemble::Contig;
use crate::change::{Breakend, RetainedSide};
use crate::tandem_repeat::MAX_SHORT_REPEAT_UNIT_BP;

/// Maximum distance in bp, on the genome, of two segments with the same order and orientation that are aligned as one.
pub(crate) const MAX_JOINED_SEGMENT_DISTANCE_BP: usize = 600;

/// One aligned segment of a contig: a range of the contig and a range of the genome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContigSegment {
    pub(crate) chrom: usize,
    pub(crate) forward: bool,
    pub(crate) query: (usize, usize),
    pub(crate) target: (usize, usize),
    pub(crate) mapq: u8,
}

/// End of a segment of a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentEnd {
    /// The end with the first base on the contig.
    First,
    /// The end with the last base on the contig.
    Last,
}

/// Minimum length in bases of a gap that splits a hit into two segments. Shorter gaps remain inside a segment.
const MIN_SPLITTING_GAP_BASES: u32 = 20;
/// Cost of a junction between two segments, in units of a matching base.
const JUNCTION_COST: i32 = 25;
/// Maximum overlap in bases of two consecutive segments on the contig: microhomology or chance matches.
const MAX_OVERLAP_BASES: usize = 60;

impl ContigSegment {
    /// Number of contig bases of the segment.
    pub(crate) fn query_len(&self) -> usize {
        self.query.1 - self.query.0
    }

    /// Genome coordinate minus contig coordinate (their sum on the reverse strand). It is equal for all segments of one
    /// gapless alignment.
    fn diagonal(&self) -> i64 {
        let (q, t) = (self.query, self.target.0 as i64);
        if self.forward { t - q.0 as i64 } else { t + q.1 as i64 }
    }

    /// The genome position aligned with contig position `q`, inside or outside the segment, if the alignment continues
    /// without gaps from one end of the segment.
    pub(crate) fn extrapolate_genome_position(&self, q: usize, end: SegmentEnd) -> i64 {
        let ahead = match end {
            SegmentEnd::First => q as i64 - self.query.0 as i64,
            SegmentEnd::Last => q as i64 - self.query.1 as i64,
        };
        match (end, self.forward) {
            (SegmentEnd::First, true) => self.target.0 as i64 + ahead,
            (SegmentEnd::First, false) => self.target.1 as i64 - 1 - ahead,
            (SegmentEnd::Last, true) => self.target.1 as i64 + ahead,
            (SegmentEnd::Last, false) => self.target.0 as i64 - 1 - ahead,
        }
    }

    /// The genome bases aligned with the contig range `range`, in the direction of the contig, if the alignment
    /// continues without gaps from one end of the segment. Returns fewer bases at the end of the chromosome.
    pub(crate) fn genome_bases_aligned_with(
        &self,
        range: std::ops::Range<usize>,
        end: SegmentEnd,
        genome: &Reference,
    ) -> Vec<u8> {
        let chrom = &genome.contigs[self.chrom].seq;
        let base = |q: usize| {
            usize::try_from(self.extrapolate_genome_position(q, end)).ok().and_then(|i| chrom.get(i)).copied()
        };
        let orient = |b: u8| if self.forward { b } else { complement(b) };
        range.filter_map(base).map(orient).collect()
    }

    /// The breakend on the genome if the segment is cut at contig position `q`. For [`SegmentEnd::Last`] the bases
    /// before `q` are kept, for [`SegmentEnd::First`] those from `q` on. `None` if the position is outside the
    /// chromosome.
    pub(crate) fn breakend_at_cut(&self, q: usize, end: SegmentEnd, genome: &Reference) -> Option<Breakend> {
        let (outermost, kept_before) = match end {
            SegmentEnd::Last => (q.checked_sub(1)?, true),
            SegmentEnd::First => (q, false),
        };
        let pos = usize::try_from(self.extrapolate_genome_position(outermost, end)).ok()?;
        let side = if kept_before == self.forward { RetainedSide::Left } else { RetainedSide::Right };
        (pos < genome.contigs[self.chrom].seq.len()).then_some(Breakend { chrom: self.chrom, pos, side })
    }

    /// Converts the segment to coordinates of the reverse-complemented contig of length `len`.
    pub(crate) fn in_reverse_complement_coordinates(&self, len: usize) -> ContigSegment {
        ContigSegment { forward: !self.forward, query: (len - self.query.1, len - self.query.0), ..*self }
    }

    /// Splits a hit of the mapper at its long gaps into segments, each with its score: +1 for a match, -4 for a
    /// mismatch, -6 for a gap and -1 for each of its bases.
    fn split_hit(hit: &Hit, seq: &[u8], genome: &Reference) -> Vec<(ContigSegment, i32)> {
        let chrom = hit.tid;
        let target = &genome.contigs[chrom].seq;
        let forward = hit.strand == Strand::Forward;
        let (start, end) = (hit.query_start, hit.query_end);
        // A CIGAR string follows the genome: on the reverse strand the query is read from its other end.
        let base = |q: usize| if forward { seq[start + q] } else { complement(seq[end - 1 - q]) };
        let place = |from: usize, to: usize| {
            if forward { (start + from, start + to) } else { (end - to, end - from) }
        };
        let (mut q, mut t) = (0usize, hit.ref_start);
        let (mut from, mut score) = ((q, t), 0i32);
        let mut segments = Vec::new();
        let mut close = |from: (usize, usize), to: (usize, usize), score: i32| {
            if to.0 > from.0 {
                let segment =
                    ContigSegment { chrom, forward, query: place(from.0, to.0), target: (from.1, to.1), mapq: 0 };
                segments.push((segment, score));
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
            let parts = op.len >= MIN_SPLITTING_GAP_BASES;
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
        segments
    }
}

/// A segment that may become part of the selected chain.
struct SegmentCandidate {
    segment: ContigSegment,
    /// Alignment score of the segment: +1 for each match, -4 for each mismatch, less the gap costs.
    score: i32,
    primary: bool,
    /// Scores that the mates beyond the contig's ends add if this segment is the first of the chain, and if it is the
    /// last.
    mate_scores: [i32; 2],
}

impl SegmentCandidate {
    /// Score of the segment in a chain, with the scores of mates if it is the first or the last segment.
    fn chain_score(&self, first: bool, last: bool) -> i32 {
        self.score + if first { self.mate_scores[0] } else { 0 } + if last { self.mate_scores[1] } else { 0 }
    }
}

/// Whether a hit overlaps one of a contig's own segments on the reference.
pub(crate) fn overlaps_own_locus(hit: &Hit, own: &[ContigSegment]) -> bool {
    own.iter().any(|s| s.chrom == hit.tid && s.target.0 < hit.ref_end && hit.ref_start < s.target.1)
}

/// Selects the chain of segments that explains most of the contig, in contig order. Secondary hits are candidates too,
/// because the second half of a contig in a repeat may be a secondary hit. If several positions explain an end of the
/// contig almost equally well, the mates of its reads beyond this end decide. The `mapq` of each segment is computed
/// from the score difference to the best alternative position of the same contig bases.
pub(crate) fn select_segments(contig: &Contig, hits: &[Hit], genome: &Reference) -> Vec<ContigSegment> {
    let mut candidates: Vec<SegmentCandidate> = hits
        .iter()
        .flat_map(|h| {
            ContigSegment::split_hit(h, &contig.seq, genome).into_iter().map(|(p, score)| (p, score, !h.is_secondary))
        })
        .filter(|(segment, score, _)| *score >= 15 && !is_tandem_repeat(&contig.seq[segment.query.0..segment.query.1]))
        .map(|(segment, score, primary)| SegmentCandidate { segment, score, primary, mate_scores: [0; 2] })
        .collect();
    candidates.sort_by_key(|c| (c.segment.query, Reverse((c.primary, c.score)), c.segment.chrom, c.segment.target));
    candidates.dedup_by(|a, b| {
        (a.segment.query, a.segment.chrom, a.segment.target) == (b.segment.query, b.segment.chrom, b.segment.target)
    });
    let chain = best_chain(&candidates);
    let doubtful = |segment: Option<&ContigSegment>| segment.is_some_and(|p| p.mapq < MIN_CERTAIN_MAPQ);
    if doubtful(chain.first()) || doubtful(chain.last()) {
        let mut mates = contig.outer_mates.each_ref().map(|mates| MateKmers::new(mates));
        for candidate in &mut candidates {
            candidate.mate_scores = [SegmentEnd::First, SegmentEnd::Last].map(|end| {
                let mates = &mut mates[usize::from(end == SegmentEnd::Last)];
                mates.score_segment(&candidate.segment, end, genome)
            });
        }
        return best_chain(&candidates);
    }
    chain
}

/// Minimum number of bases of a segment outside tandem repeats. A segment with fewer has no unique position.
const MIN_NON_REPEAT_BASES: usize = 24;

/// Whether a sequence is a tandem repeat except for fewer than [`MIN_NON_REPEAT_BASES`] bases. Such a sequence aligns
/// wherever its unit is repeated, best to the longest repeat.
fn is_tandem_repeat(seq: &[u8]) -> bool {
    (1..=MAX_SHORT_REPEAT_UNIT_BP.min(seq.len())).any(|unit| {
        let same = seq.iter().zip(&seq[unit..]).filter(|(a, b)| a == b).count();
        same + unit + MIN_NON_REPEAT_BASES > seq.len() && same * 10 >= (seq.len() - unit) * 9
    })
}

/// Minimum mapping quality of a certain position. Below it, mates of the reads are used to choose between positions.
const MIN_CERTAIN_MAPQ: u8 = 60;
/// Maximum distance in bases from a segment's end at which the mates of its reads are searched.
const MAX_MATE_DISTANCE: usize = 800;
/// Length in bases of the k-mers by which mates are found in the genome.
const MATE_KMER_LEN: u32 = 21;
/// Distance in bases between the starts of the k-mers of a mate that are indexed.
const MATE_KMER_STRIDE: usize = 4;
/// Score that one mate adds if all of its k-mers are found, in units of a matching base.
const MATE_SCORE: usize = 20;

/// Log2 of the number of bits of the k-mer filter.
const FILTER_BITS_LOG2: u32 = 14;

/// k-mers of the mates that lie beyond one end of a contig.
struct MateKmers {
    /// For each k-mer, sorted: its bases at 2 bits each, the index of its mate, and whether it was found in the genome.
    kmers: Vec<(u64, usize, bool)>,
    /// For each mate: its number of k-mers, and how many of them were found.
    counts: Vec<[usize; 2]>,
    filter: Vec<u64>,
}

fn filter_bit(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER_BITS_LOG2)) as usize
}

impl MateKmers {
    /// Indexes the k-mers of mates, which must have the orientation of the contig.
    fn new(mates: &[Vec<u8>]) -> MateKmers {
        let mut words = Vec::new();
        let mut counts = vec![[0; 2]; mates.len()];
        let mut filter = vec![0; (1 << FILTER_BITS_LOG2) / 64];
        for (m, mate) in mates.iter().enumerate() {
            for (_, kmer) in kmers(mate, MATE_KMER_LEN).filter(|(at, _)| at % MATE_KMER_STRIDE == 0) {
                words.push((kmer.forward, m, false));
                counts[m][0] += 1;
                filter[filter_bit(kmer.forward) / 64] |= 1 << (filter_bit(kmer.forward) % 64);
            }
        }
        words.sort_unstable();
        MateKmers { kmers: words, counts, filter }
    }

    /// Score that the mates add to a segment: for each mate, the share of its k-mers that is found in the genome beyond
    /// the segment's `end`, times [`MATE_SCORE`].
    fn score_segment(&mut self, segment: &ContigSegment, end: SegmentEnd, genome: &Reference) -> i32 {
        if self.counts.is_empty() {
            return 0;
        }
        let moved = ContigSegment {
            query: (segment.query.0 + MAX_MATE_DISTANCE, segment.query.1 + MAX_MATE_DISTANCE),
            ..*segment
        };
        let range = match end {
            SegmentEnd::First => moved.query.0 - MAX_MATE_DISTANCE..moved.query.0 + MAX_MATE_DISTANCE / 4,
            SegmentEnd::Last => moved.query.1 - MAX_MATE_DISTANCE / 4..moved.query.1 + MAX_MATE_DISTANCE,
        };
        self.kmers.iter_mut().for_each(|(_, _, met)| *met = false);
        self.counts.iter_mut().for_each(|[_, met]| *met = 0);
        for (_, kmer) in kmers(&moved.genome_bases_aligned_with(range, end, genome), MATE_KMER_LEN) {
            let word = kmer.forward;
            if self.filter[filter_bit(word) / 64] >> (filter_bit(word) % 64) & 1 == 0 {
                continue;
            }
            let first = self.kmers.partition_point(|(other, ..)| *other < word);
            for (_, mate, met) in self.kmers[first..].iter_mut().take_while(|(other, ..)| *other == word) {
                self.counts[*mate][1] += usize::from(!std::mem::replace(met, true));
            }
        }
        self.counts.iter().map(|[all, met]| met * MATE_SCORE / all.max(&1)).sum::<usize>() as i32
    }
}

/// Selects the chain with the highest score from candidates that are sorted by their start on the contig, and sets the
/// mapping qualities of its segments.
fn best_chain(candidates: &[SegmentCandidate]) -> Vec<ContigSegment> {
    // best[i]: score of the best chain that ends with candidate i, and the candidate before it.
    let mut best: Vec<(i32, Option<usize>)> = Vec::with_capacity(candidates.len());
    for (i, candidate) in candidates.iter().enumerate() {
        let segment = &candidate.segment;
        // Among equal chains, primary hits are preferred.
        let primary = i32::from(candidate.primary);
        let mut here = (candidate.chain_score(true, false) * 8 + primary, None);
        let own = candidate.score * 8 + primary;
        for (j, SegmentCandidate { segment: before, .. }) in candidates[..i].iter().enumerate() {
            let overlap = before.query.1.saturating_sub(segment.query.0);
            if overlap > MAX_OVERLAP_BASES || before.query.1 >= segment.query.1 || before.query.0 >= segment.query.0 {
                continue;
            }
            let near = segment.chrom == before.chrom
                && segment.forward == before.forward
                && segment.target.0.abs_diff(before.target.1).min(segment.target.1.abs_diff(before.target.0))
                    <= MAX_JOINED_SEGMENT_DISTANCE_BP;
            let cost = if near { JUNCTION_COST - 5 } else { JUNCTION_COST };
            let total = best[j].0 + own - (overlap as i32 + cost) * 8;
            if total > here.0 {
                here = (total, Some(j));
            }
        }
        best.push(here);
    }
    let mut chain = Vec::new();
    let ended = |i: usize| best[i].0 + candidates[i].mate_scores[1] * 8;
    let mut at = (0..best.len()).max_by_key(|&i| (ended(i), Reverse(i)));
    while let Some(i) = at {
        let mut segment = candidates[i].segment;
        // The position of the segment in the chain decides which mates count for it and for its alternatives.
        let (first, last) = (best[i].1.is_none(), chain.is_empty());
        let alternative = candidates
            .iter()
            .enumerate()
            .filter(|&(j, SegmentCandidate { segment: other, .. })| {
                let shared = other.query.1.min(segment.query.1).saturating_sub(other.query.0.max(segment.query.0));
                let elsewhere = (other.chrom, other.forward, other.diagonal())
                    != (segment.chrom, segment.forward, segment.diagonal());
                j != i && elsewhere && shared * 10 >= segment.query_len() * 8
            })
            .map(|(_, alternative)| alternative.chain_score(first, last))
            .max();
        segment.mapq = alternative.map_or(60, |r| (candidates[i].chain_score(first, last) - r).clamp(0, 20) * 3) as u8;
        chain.push(segment);
        at = best[i].1;
    }
    chain.reverse();
    chain
}
