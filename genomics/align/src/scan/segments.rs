//! Segments of a sequence that align without gaps.

use std::ops::Range;

use super::MAX_HITS_PER_PART;
use super::extend::ScoredUngappedRange;

/// Minimum number of ungapped segments of a sequence at which dominated segments are dropped (see
/// [`drop_dominated_segments`]); after each time, the next number is at least twice that of the segments kept.
pub(super) const MIN_SEGMENTS_TO_DROP_DOMINATED: usize = 256;

/// A diagonal of the alignment matrix: reference position minus position in the (oriented) sequence, index of the
/// reference sequence, and whether the sequence is reverse-complemented.
pub(super) type ContigDiagonal = (i64, u32, bool);

/// A part of a sequence aligned to the reference without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UngappedSegment {
    /// Reference position minus position in the sequence, which is reverse-complemented if `reverse` is set. May be
    /// negative.
    pub(super) diagonal: i64,
    pub(super) sequence: u32,
    pub(super) chrom: u32,
    pub(super) reverse: bool,
    pub(super) scored_range: ScoredUngappedRange,
}

impl UngappedSegment {
    /// Sort key: the best score first, then the position.
    #[inline]
    pub(super) fn best_first_sort_key(&self) -> impl Ord + use<> {
        let UngappedSegment { chrom, reverse, diagonal, scored_range, .. } = *self;
        let Range { start, end } = scored_range.base_range();
        (-scored_range.score, chrom, diagonal, reverse, start, end)
    }

    /// Reference position of base `q` of the oriented sequence.
    #[inline]
    pub(super) fn ref_position_of_base(&self, q: usize) -> usize {
        (self.diagonal + q as i64) as usize
    }

    #[inline]
    pub(super) fn contig_diagonal(&self) -> ContigDiagonal {
        (self.diagonal, self.chrom, self.reverse)
    }

    /// The aligned bases, as positions in the sequence as it was given.
    #[inline]
    pub(super) fn query_range(&self, length: usize) -> Range<usize> {
        let Range { start: from, end: to } = self.scored_range.base_range();
        if self.reverse { length - to..length - from } else { from..to }
    }
}

pub(super) fn overlap_len(one: &Range<usize>, other: &Range<usize>) -> usize {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

/// Drops dominated segments: those that are part of a better segment on the same diagonal, and those of which four
/// fifths are covered by each of [`MAX_HITS_PER_PART`] better segments. Keeps the order of the others. Returns whether
/// a segment was dropped for the second reason.
pub(super) fn drop_dominated_segments(segments: &mut Vec<UngappedSegment>, length: usize) -> bool {
    let mut order: Vec<usize> = (0..segments.len()).collect();
    order.sort_unstable_by_key(|&i| segments[i].best_first_sort_key());
    // Segments that stay. They are stored contiguously because each further segment is compared with all of them.
    let mut kept: Vec<(ContigDiagonal, Range<usize>)> = Vec::new();
    let (mut drop, mut dropped_segments) = (vec![false; segments.len()], false);
    for i in order {
        let (diagonal, own) = (segments[i].contig_diagonal(), segments[i].query_range(length));
        let (mut better, mut part) = (0, false);
        for (other, bases) in &kept {
            let shared = overlap_len(&own, bases);
            part |= shared == own.len() && *other == diagonal;
            better += usize::from(shared * 5 >= own.len() * 4);
        }
        drop[i] = part || better >= MAX_HITS_PER_PART;
        dropped_segments |= drop[i] && !part;
        if !drop[i] {
            kept.push((diagonal, own));
        }
    }
    let mut dropped = drop.into_iter();
    segments.retain(|_| !dropped.next().unwrap_or(false));
    dropped_segments
}
