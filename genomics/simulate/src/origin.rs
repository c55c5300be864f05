//! Which bases of the reference the bases of a chromosome come from.

use std::ops::Range;

use crate::marks::Marks;
use crate::variant::{Cut, Edit, Span};

/// Longest stretch of the reference that a small deletion may take out of a mate (bp); a longer one is a breakpoint.
const LONGEST_GAP: usize = 50;

/// Bases of a chromosome that lie in the reference side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Where it begins on the chromosome.
    pub at: usize,
    /// The bases of the reference; as many as of the chromosome.
    pub span: Span,
    /// Whether they are read from the last to the first.
    pub reverse: bool,
}

impl Stretch {
    /// Where bases of the reference, those of the stretch among them, lie on the chromosome.
    pub fn image(&self, of: Span) -> Range<usize> {
        let (start, end) = (of.start.max(self.span.start), of.end.min(self.span.end));
        if self.reverse {
            self.at + self.span.end - end..self.at + self.span.end - start
        } else {
            self.at + start - self.span.start..self.at + end - self.span.start
        }
    }
}

/// Stretches of one chromosome in its order. What lies between them is novel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origins {
    stretches: Vec<Stretch>,
    length: usize,
    marks: Marks,
}

/// Bases of the reference and the strand that reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From the first to the last base.
    pub span: Span,
    /// Whether they are read from the last to the first.
    pub reverse: bool,
}

impl Origins {
    /// Adds bases that the reference lacks.
    pub fn novel(&mut self, length: usize) {
        self.length += length;
    }

    /// Adds a span of the reference with `edits` in it, turned round if `reverse`.
    pub fn reference(&mut self, span: Span, edits: &[&Edit], reverse: bool) {
        let mut from = span.start;
        // Kept bases, and the novel ones behind them.
        let mut parts: Vec<(Span, usize)> = vec![];
        for edit in edits.iter().filter(|e| e.removed.len() != e.added.len()) {
            parts.push((Span { start: from, end: edit.at.pos, ..span }, edit.added.len()));
            from = edit.end();
        }
        parts.push((Span { start: from, ..span }, 0));
        if reverse {
            for &(kept, added) in parts.iter().rev() {
                self.novel(added);
                self.stretch(kept, reverse);
            }
        } else {
            for &(kept, added) in &parts {
                self.stretch(kept, reverse);
                self.novel(added);
            }
        }
    }

    fn stretch(&mut self, span: Span, reverse: bool) {
        if span.length() > 0 {
            self.stretches.push(Stretch { at: self.length, span, reverse });
            self.length += span.length();
            self.marks.push(self.stretches.len() - 1, self.length);
        }
    }

    /// The stretches in the order of the chromosome.
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// The stretches that some bases of the chromosome lie in, in its order.
    pub fn within(&self, bases: Range<usize>) -> impl Iterator<Item = &Stretch> {
        let first = self.beyond(bases.start).min(self.stretches.len());
        self.stretches[first..].iter().take_while(move |s| s.at < bases.end)
    }

    /// The number of the first stretch that ends beyond a base.
    fn beyond(&self, base: usize) -> usize {
        self.marks.find(&self.stretches, base, |s| s.at + s.span.length())
    }

    /// Where a base of the chromosome comes from; `None` when it is novel.
    pub(crate) fn locate(&self, base: usize) -> Option<Cut> {
        let stretch = self.stretches.get(self.beyond(base))?;
        let into = base.checked_sub(stretch.at)?;
        let pos = if stretch.reverse { stretch.span.end - 1 - into } else { stretch.span.start + into };
        Some(Cut { contig: stretch.span.contig, pos })
    }

    /// Where bases of the chromosome come from; `None` when they are all novel, or have a breakpoint among them.
    pub fn place(&self, bases: Range<usize>) -> Option<Place> {
        let first = self.beyond(bases.start);
        let mut place: Option<Place> = None;
        for stretch in self.stretches[first..].iter().take_while(|s| s.at < bases.end) {
            let skipped = bases.start.saturating_sub(stretch.at);
            let left_over = (stretch.at + stretch.span.length()).saturating_sub(bases.end);
            let (front, back) = if stretch.reverse { (left_over, skipped) } else { (skipped, left_over) };
            let span =
                Span { start: stretch.span.start + front, end: stretch.span.end - back, ..stretch.span };
            place = Some(match place {
                None => Place { span, reverse: stretch.reverse },
                Some(before) => before.joined(span, stretch.reverse)?,
            });
        }
        place
    }
}

impl Place {
    /// This place and the one that is read right after it, unless a breakpoint lies between them.
    fn joined(self, next: Span, reverse: bool) -> Option<Place> {
        if self.reverse != reverse || self.span.contig != next.contig {
            return None;
        }
        let (low, high) = if reverse { (next, self.span) } else { (self.span, next) };
        let gap = high.start.checked_sub(low.end)?;
        let span = Span { start: low.start, end: high.end, ..low };
        (gap <= LONGEST_GAP).then_some(Place { span, reverse })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::Cut;

    fn span(start: usize, end: usize) -> Span {
        Span { contig: 1, start, end }
    }

    fn edit(pos: usize, removed: usize, added: usize) -> Edit {
        Edit { at: Cut { contig: 1, pos }, removed: vec![b'A'; removed], added: vec![b'C'; added] }
    }

    #[test]
    fn places_count_what_edits_add_and_take() {
        let edits = [edit(110, 1, 1), edit(120, 5, 0), edit(150, 0, 7)];
        let mut origins = Origins::default();
        origins.reference(span(100, 200), &edits.iter().collect::<Vec<_>>(), false);
        assert_eq!(origins.length, 102);
        let place = |bases| origins.place(bases).map(|p| (p.span.start, p.span.end, p.reverse));
        assert_eq!(place(0..20), Some((100, 120, false)));
        assert_eq!(place(10..30), Some((110, 135, false)));
        assert_eq!(place(20..30), Some((125, 135, false)));
        assert_eq!(place(40..60), Some((145, 158, false)));
        assert_eq!(place(46..60), Some((150, 158, false)));
        assert_eq!(place(45..52), None);
        let located = |base| origins.locate(base).map(|at| (at.contig, at.pos));
        assert_eq!([0, 20, 44, 52, 101].map(located), [100, 125, 149, 150, 199].map(|pos| Some((1, pos))));
        assert_eq!([45, 51, 102].map(located), [None; 3]);
        assert_eq!(origins.stretches()[1].image(span(100, 130)), 20..25);
        // The same turned round: base 0 is base 199 of the reference.
        let mut turned = Origins::default();
        turned.reference(span(100, 200), &edits.iter().collect::<Vec<_>>(), true);
        for bases in [0..20, 10..30, 40..60, 45..50, 90..102] {
            let mirrored = origins.place(102 - bases.end..102 - bases.start);
            assert_eq!(turned.place(bases), mirrored.map(|p| Place { reverse: true, ..p }));
        }
        assert!((0..102).all(|base| turned.locate(base) == origins.locate(101 - base)));
        assert_eq!(turned.stretches()[1].image(span(100, 130)), 77..82);
    }

    #[test]
    fn breakpoints_have_no_place() {
        let mut origins = Origins::default();
        origins.reference(span(0, 100), &[], false);
        origins.reference(span(100, 200), &[], true);
        origins.reference(span(251, 300), &[], false);
        origins.reference(span(350, 400), &[], false);
        origins.reference(span(390, 450), &[], false);
        assert!(origins.place(80..100).is_some() && origins.place(80..101).is_none());
        assert!(origins.place(190..201).is_none());
        assert_eq!(
            origins.place(240..250),
            Some(Place { span: Span { contig: 1, ..span(291, 351) }, reverse: false })
        );
        assert!(origins.place(290..300).is_none());
    }
}
