//! Maps the bases of a derived chromosome to the reference positions from which they come.

use std::ops::Range;

use crate::item_end_index::ItemEndIndex;
use crate::variant::{ContigSpan, GenomePosition, SequenceEdit};

/// Longest deletion that the placement of a mate may span, bp. A longer distance on the reference counts as a
/// breakpoint.
const MAX_DELETION_IN_MATE_BP: usize = 50;

/// A range of a chromosome whose bases are consecutive in the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReferenceSegment {
    /// First base on the chromosome, 0-based.
    pub start: usize,
    /// The reference bases from which this range comes; both have the same length.
    pub span: ContigSpan,
    /// Whether the chromosome has the reverse complement of the reference.
    pub reverse: bool,
}

impl ReferenceSegment {
    /// Returns the range of the chromosome that comes from the reference bases `of`, clipped to this segment.
    pub(crate) fn chromosome_range_of_reference_span(&self, of: ContigSpan) -> Range<usize> {
        let (start, end) = (of.start.max(self.span.start), of.end.min(self.span.end));
        if self.reverse {
            self.start + self.span.end - end..self.start + self.span.end - start
        } else {
            self.start + start - self.span.start..self.start + end - self.span.start
        }
    }
}

/// The reference segments of one chromosome, in chromosome order. Bases between two segments are novel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReferenceOrigins {
    segments: Vec<ReferenceSegment>,
    length: usize,
    segment_ends: ItemEndIndex,
}

/// Placement of a stretch of bases on the reference: span and strand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReferencePlacement {
    /// The span on the reference.
    pub span: ContigSpan,
    /// Whether the bases are on the reverse strand of the reference.
    pub reverse: bool,
}

impl ReferenceOrigins {
    /// Appends `length` novel bases, which the reference lacks, to the end of the chromosome.
    pub(crate) fn append_novel_length_bp(&mut self, length: usize) {
        self.length += length;
    }

    /// Appends a span of the reference to the end of the chromosome, with `edits` applied; reverse complemented if
    /// `reverse` is set. Bases that an indel adds are novel; substituted bases count as those of the reference.
    pub(crate) fn append_edited_reference_span(&mut self, span: ContigSpan, edits: &[&SequenceEdit], reverse: bool) {
        let mut from = span.start;
        // Kept reference bases, and the number of novel bases behind them.
        let mut parts: Vec<(ContigSpan, usize)> = vec![];
        for edit in edits.iter().filter(|e| e.removed.len() != e.added.len()) {
            parts.push((ContigSpan { start: from, end: edit.position.pos, ..span }, edit.added.len()));
            from = edit.reference_end();
        }
        parts.push((ContigSpan { start: from, ..span }, 0));
        if reverse {
            for &(kept, added) in parts.iter().rev() {
                self.append_novel_length_bp(added);
                self.push_segment(kept, reverse);
            }
        } else {
            for &(kept, added) in &parts {
                self.push_segment(kept, reverse);
                self.append_novel_length_bp(added);
            }
        }
    }

    fn push_segment(&mut self, span: ContigSpan, reverse: bool) {
        if span.length_bp() > 0 {
            self.segments.push(ReferenceSegment { start: self.length, span, reverse });
            self.length += span.length_bp();
            self.segment_ends.push_item_end(self.segments.len() - 1, self.length);
        }
    }

    /// Returns all reference segments in chromosome order.
    pub(crate) fn all_segments(&self) -> &[ReferenceSegment] {
        &self.segments
    }

    /// Iterates over the reference segments that overlap a range of the chromosome, in chromosome order.
    pub(crate) fn overlapping_segments(&self, bases: Range<usize>) -> impl Iterator<Item = &ReferenceSegment> {
        let first = self.find_segment(bases.start).min(self.segments.len());
        self.segments[first..].iter().take_while(move |s| s.start < bases.end)
    }

    /// Finds reference bases on the chromosome. For each copy of each base, calls `each` with the index of the base in
    /// `sorted`, its position on the chromosome, and whether the chromosome has the reverse complement there. `sorted`
    /// are the positions to the left of the bases.
    pub(crate) fn for_each_copy_of_bases(&self, sorted: &[GenomePosition], mut each: impl FnMut(usize, usize, bool)) {
        for segment in &self.segments {
            let ContigSpan { contig, start, end } = segment.span;
            let first = sorted.partition_point(|at| *at < GenomePosition { contig, pos: start });
            let inside = sorted[first..].iter().take_while(|at| **at < GenomePosition { contig, pos: end });
            for (i, at) in inside.enumerate() {
                let base = ContigSpan { contig, start: at.pos, end: at.pos + 1 };
                each(first + i, segment.chromosome_range_of_reference_span(base).start, segment.reverse);
            }
        }
    }

    /// Returns the index of the first segment that ends after a chromosome base.
    fn find_segment(&self, base: usize) -> usize {
        self.segment_ends.find_item_ending_after(&self.segments, base, |s| s.start + s.span.length_bp())
    }

    /// Returns the reference position from which a chromosome base comes, or `None` if the base is novel.
    pub(crate) fn reference_position_of_base(&self, base: usize) -> Option<GenomePosition> {
        let stretch = self.segments.get(self.find_segment(base))?;
        let into = base.checked_sub(stretch.start)?;
        let pos = if stretch.reverse { stretch.span.end - 1 - into } else { stretch.span.start + into };
        Some(GenomePosition { contig: stretch.span.contig, pos })
    }

    /// Returns the reference placement of a range of the chromosome. `None` if all its bases are novel, or if it spans
    /// a breakpoint.
    pub(crate) fn reference_placement_of_range(&self, bases: Range<usize>) -> Option<ReferencePlacement> {
        let first = self.find_segment(bases.start);
        let mut place: Option<ReferencePlacement> = None;
        for stretch in self.segments[first..].iter().take_while(|s| s.start < bases.end) {
            let skipped = bases.start.saturating_sub(stretch.start);
            let left_over = (stretch.start + stretch.span.length_bp()).saturating_sub(bases.end);
            let (front, back) = if stretch.reverse { (left_over, skipped) } else { (skipped, left_over) };
            let span = ContigSpan { start: stretch.span.start + front, end: stretch.span.end - back, ..stretch.span };
            place = Some(match place {
                None => ReferencePlacement { span, reverse: stretch.reverse },
                Some(before) => before.joined_with(span, stretch.reverse)?,
            });
        }
        place
    }
}

impl ReferencePlacement {
    /// Extends this placement by the placement of the next segment on the chromosome; `None` if a breakpoint is between
    /// them.
    fn joined_with(self, next: ContigSpan, reverse: bool) -> Option<ReferencePlacement> {
        if self.reverse != reverse || self.span.contig != next.contig {
            return None;
        }
        let (low, high) = if reverse { (next, self.span) } else { (self.span, next) };
        let gap = high.start.checked_sub(low.end)?;
        let span = ContigSpan { start: low.start, end: high.end, ..low };
        (gap <= MAX_DELETION_IN_MATE_BP).then_some(ReferencePlacement { span, reverse })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::GenomePosition;

    fn span(start: usize, end: usize) -> ContigSpan {
        ContigSpan { contig: 1, start, end }
    }

    fn edit(pos: usize, removed: usize, added: usize) -> SequenceEdit {
        SequenceEdit {
            position: GenomePosition { contig: 1, pos },
            removed: vec![b'A'; removed],
            added: vec![b'C'; added],
        }
    }

    #[test]
    fn places_count_what_edits_add_and_take() {
        let edits = [edit(110, 1, 1), edit(120, 5, 0), edit(150, 0, 7)];
        let mut origins = ReferenceOrigins::default();
        origins.append_edited_reference_span(span(100, 200), &edits.iter().collect::<Vec<_>>(), false);
        assert_eq!(origins.length, 102);
        let place = |bases| origins.reference_placement_of_range(bases).map(|p| (p.span.start, p.span.end, p.reverse));
        assert_eq!(place(0..20), Some((100, 120, false)));
        assert_eq!(place(10..30), Some((110, 135, false)));
        assert_eq!(place(20..30), Some((125, 135, false)));
        assert_eq!(place(40..60), Some((145, 158, false)));
        assert_eq!(place(46..60), Some((150, 158, false)));
        assert_eq!(place(45..52), None);
        let located = |base| origins.reference_position_of_base(base).map(|at| (at.contig, at.pos));
        assert_eq!([0, 20, 44, 52, 101].map(located), [100, 125, 149, 150, 199].map(|pos| Some((1, pos))));
        assert_eq!([45, 51, 102].map(located), [None; 3]);
        assert_eq!(origins.all_segments()[1].chromosome_range_of_reference_span(span(100, 130)), 20..25);
        // The reverse complement of the same sequence: base 0 is base 199 of the reference.
        let mut turned = ReferenceOrigins::default();
        turned.append_edited_reference_span(span(100, 200), &edits.iter().collect::<Vec<_>>(), true);
        for bases in [0..20, 10..30, 40..60, 45..50, 90..102] {
            let mirrored = origins.reference_placement_of_range(102 - bases.end..102 - bases.start);
            assert_eq!(
                turned.reference_placement_of_range(bases),
                mirrored.map(|p| ReferencePlacement { reverse: true, ..p })
            );
        }
        assert!(
            (0..102)
                .all(|base| turned.reference_position_of_base(base) == origins.reference_position_of_base(101 - base))
        );
        assert_eq!(turned.all_segments()[1].chromosome_range_of_reference_span(span(100, 130)), 77..82);
    }

    #[test]
    fn breakpoints_have_no_place() {
        let mut origins = ReferenceOrigins::default();
        origins.append_edited_reference_span(span(0, 100), &[], false);
        origins.append_edited_reference_span(span(100, 200), &[], true);
        origins.append_edited_reference_span(span(251, 300), &[], false);
        origins.append_edited_reference_span(span(350, 400), &[], false);
        origins.append_edited_reference_span(span(390, 450), &[], false);
        assert!(
            origins.reference_placement_of_range(80..100).is_some()
                && origins.reference_placement_of_range(80..101).is_none()
        );
        assert!(origins.reference_placement_of_range(190..201).is_none());
        assert_eq!(
            origins.reference_placement_of_range(240..250),
            Some(ReferencePlacement { span: ContigSpan { contig: 1, ..span(291, 351) }, reverse: false })
        );
        assert!(origins.reference_placement_of_range(290..300).is_none());
    }
}
