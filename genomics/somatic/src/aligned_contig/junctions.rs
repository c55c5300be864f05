//! Breakpoints of a contig: junctions between segments, short inversions, and ends with novel sequence.

use genuma_reads::dna::reverse_complement;

use super::{ContigChange, FLANKING_GENOME_BASES, OrientedContig};
use crate::affine_alignment;
use crate::change::Change;
use crate::contig_segments::{ContigSegment, MAX_JOINED_SEGMENT_DISTANCE_BP, SegmentEnd};

/// Minimum length in bases of an unaligned end that counts as novel sequence.
pub(super) const MIN_NOVEL_END_BP: usize = 25;
/// Minimum length in bases of a gap between two segments in which an inversion is searched.
const MIN_INVERTED_GAP_BASES: usize = 25;
/// Number of genome bases beyond both segments that are included in the search for an inversion.
const INVERSION_SEARCH_MARGIN_BASES: usize = 30;

/// Length of the longest prefix in which two sequences agree without gaps: the prefix with the highest score (+1 for a
/// match, -4 for a mismatch).
fn gapless_prefix_len<'a>(query: impl Iterator<Item = &'a u8>, target: impl Iterator<Item = &'a u8>) -> usize {
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

impl OrientedContig<'_> {
    /// Inserts segments of short inversions, through which mappers extend alignments: searches the gap between two
    /// segments on one strand for the reverse complement of the genome between them.
    pub(super) fn insert_segments_of_inversions(&mut self) {
        let mut inverted = Vec::new();
        for two in self.segments.windows(2) {
            let (a, b) = (&two[0], &two[1]);
            let (start, end) = (a.query.1, b.query.0);
            let (low, high) = if a.forward { (a.target.1, b.target.0) } else { (b.target.1, a.target.0) };
            let alike = a.chrom == b.chrom
                && a.forward == b.forward
                && high >= low
                && high - low <= MAX_JOINED_SEGMENT_DISTANCE_BP;
            if !alike || end < start + MIN_INVERTED_GAP_BASES {
                continue;
            }
            let chrom = &self.genome.contigs[a.chrom].seq;
            let from = low.saturating_sub(INVERSION_SEARCH_MARGIN_BASES);
            let window = &chrom[from..(high + INVERSION_SEARCH_MARGIN_BASES).min(chrom.len())];
            let gap = &self.seq[start..end];
            let gap = if a.forward { reverse_complement(gap) } else { gap.to_vec() };
            let alignment = affine_alignment::align_whole_query(&gap, window);
            if alignment.score >= 8 * gap.len() as i32 {
                let at = from + alignment.start;
                let target = (at, at + alignment.aligned_target_len());
                inverted.push(ContigSegment { forward: !a.forward, query: (start, end), target, ..*a });
            }
        }
        self.segments.extend(inverted);
        self.segments.sort_by_key(|p| (p.query.0, p.query.1));
    }

    /// The [`FLANKING_GENOME_BASES`] genome bases that follow the segment if it is continued without gaps from contig
    /// position `q` on.
    pub(super) fn extrapolate_genome_bases_after(&self, segment: &ContigSegment, q: usize) -> Vec<u8> {
        segment.genome_bases_aligned_with(q..q + FLANKING_GENOME_BASES, SegmentEnd::Last, self.genome)
    }

    /// The [`FLANKING_GENOME_BASES`] genome bases that precede contig position `q` if the segment is continued without
    /// gaps to the left.
    pub(super) fn extrapolate_genome_bases_before(&self, segment: &ContigSegment, q: usize) -> Vec<u8> {
        // Positions before the contig's first base would be negative: all coordinates are shifted.
        let shifted = ContigSegment {
            query: (segment.query.0 + FLANKING_GENOME_BASES, segment.query.1 + FLANKING_GENOME_BASES),
            ..*segment
        };
        shifted.genome_bases_aligned_with(q..q + FLANKING_GENOME_BASES, SegmentEnd::First, self.genome)
    }

    /// Number of bases at one end of a segment that align with the genome without gaps.
    pub(super) fn gapless_end_len(&self, segment: &ContigSegment, end: SegmentEnd) -> usize {
        let (from, to) = segment.query;
        let genome = segment.genome_bases_aligned_with(from..to, end, self.genome);
        let contig = &self.seq[from..to];
        match end {
            SegmentEnd::First => gapless_prefix_len(contig.iter(), genome.iter()),
            SegmentEnd::Last => gapless_prefix_len(contig.iter().rev(), genome.iter().rev()),
        }
    }

    /// Finds the junction between two segments: the position on the contig at which switching from the first to the
    /// second segment gives the highest score. `None` if the segments have no common range of such positions.
    pub(super) fn find_junction(&self, a: &ContigSegment, b: &ContigSegment) -> Option<ContigChange> {
        /// Number of bases on both sides of the segments' ends in which the position of the junction is searched.
        const JUNCTION_SEARCH_BASES: usize = 60;
        // The split is searched only where the segments have no gaps: beyond a gap their diagonal differs.
        let lo = a
            .query
            .1
            .min(b.query.0)
            .saturating_sub(JUNCTION_SEARCH_BASES)
            .max(a.query.1 - self.gapless_end_len(a, SegmentEnd::Last));
        let hi = (a.query.1.max(b.query.0) + JUNCTION_SEARCH_BASES)
            .min(b.query.0 + self.gapless_end_len(b, SegmentEnd::First));
        if lo >= hi {
            return None;
        }
        let stretch = &self.seq[lo..hi];
        let follow = a.genome_bases_aligned_with(lo..hi, SegmentEnd::Last, self.genome);
        let precede = b.genome_bases_aligned_with(lo..hi, SegmentEnd::First, self.genome);
        let agree = |x: Option<&u8>, y: u8| if x == Some(&y) { 1i32 } else { -4 };
        // left[i]: score of stretch[..i] as continuation of a; right[i]: score of stretch[i..] as the bases before b.
        let mut left = vec![0i32; stretch.len() + 1];
        for i in 0..stretch.len() {
            left[i + 1] = left[i] + agree(follow.get(i), stretch[i]);
        }
        let mut right = vec![0i32; stretch.len() + 1];
        let lead = stretch.len() - precede.len().min(stretch.len());
        for i in (0..stretch.len()).rev() {
            right[i] = right[i + 1] + agree(i.checked_sub(lead).and_then(|x| precede.get(x)), stretch[i]);
        }
        // For each start of b, the best end of a at or before it. Ties are resolved as far left as possible.
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
        // The leftmost split on the contig is the leftmost position of the first breakend unless the contig is on the
        // reverse strand there.
        let leave = |q: usize| a.breakend_at_cut(q, SegmentEnd::Last, self.genome);
        let enter = |q: usize| b.breakend_at_cut(q, SegmentEnd::First, self.genome);
        let first = if leave(lo + exit)? <= enter(lo + entry)? { a } else { b };
        let shift = if first.forward { 0 } else { homology };
        let (q0, q1) = (lo + exit + shift, lo + entry + shift);
        let (leave, enter) = (leave(q0)?, enter(q1)?);
        let inserted = self.seq[q0..q1].to_vec();
        let (ends, inserted) =
            if leave <= enter { ([leave, enter], inserted) } else { ([enter, leave], reverse_complement(&inserted)) };
        let left_normal = [&self.seq[..q0], &self.extrapolate_genome_bases_after(a, q0)[..]].concat();
        let before = self.extrapolate_genome_bases_before(b, q1);
        let right_shift = before.len() as i32 - q1 as i32;
        let right_normal = [&before[..], &self.seq[q1..]].concat();
        Some(ContigChange {
            change: Change::Junction { ends, inserted, homology },
            contig_range: q0..q1,
            left_normal,
            right_normal,
            right_shift,
            mapq: a.mapq.min(b.mapq),
        })
    }

    /// Finds unaligned ends of the contig that are novel sequence: those of at least [`MIN_NOVEL_END_BP`] bases.
    pub(super) fn find_novel_ends(&self, first: &ContigSegment, last: &ContigSegment) -> Vec<ContigChange> {
        let mut found = Vec::new();
        if self.seq.len() - last.query.1 >= MIN_NOVEL_END_BP
            && let Some(end) = last.breakend_at_cut(last.query.1, SegmentEnd::Last, self.genome)
        {
            let q = last.query.1;
            let normal = [&self.seq[..q], &self.extrapolate_genome_bases_after(last, q)[..]].concat();
            found.push(ContigChange {
                change: Change::Novel { end, sequence: self.seq[q..].to_vec() },
                contig_range: q..q,
                left_normal: normal.clone(),
                right_normal: normal,
                right_shift: 0,
                mapq: last.mapq,
            });
        }
        if first.query.0 >= MIN_NOVEL_END_BP
            && let Some(end) = first.breakend_at_cut(first.query.0, SegmentEnd::First, self.genome)
        {
            let q = first.query.0;
            let before = self.extrapolate_genome_bases_before(first, q);
            let right_shift = before.len() as i32 - q as i32;
            let normal = [&before[..], &self.seq[q..]].concat();
            found.push(ContigChange {
                change: Change::Novel { end, sequence: reverse_complement(&self.seq[..q]) },
                contig_range: q..q,
                left_normal: normal.clone(),
                right_normal: normal,
                right_shift,
                mapq: first.mapq,
            });
        }
        found
    }
}
