//! Stretches of files: from one place in a file to another.
//!
//! A place in plain text is a byte. A place in BGZF is a block and a byte of what the block holds, which is what the SAM specification
//! (section 4.1.1) calls a virtual offset.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place in the text of a file. Places of one file are ordered as their text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Offset {
    /// Byte of the file: of plain text the very one, of BGZF the first of a block.
    pub byte: u64,
    /// Bytes of the block's content that lie before the place; 0 in plain text.
    pub within: u16,
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.within {
            0 => write!(f, "byte {}", self.byte),
            within => write!(f, "byte {within} of what the block at byte {} holds", self.byte),
        }
    }
}

/// A stretch of a file that holds whole records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Where it begins.
    pub from: Offset,
    /// Where it ends: the first place that is no part of it. Absent when it goes on to the end of the file.
    pub to: Option<Offset>,
    /// Bytes that the whole file had on the disk when the place of the stretch in it was chosen: of a file that has another size now, nothing is read.
    pub size: u64,
}

impl Span {
    /// Bytes of the file from the beginning of the stretch to its end. Of BGZF, the block that it begins in counts whole, and that which it ends in does not:
    /// the stretches of a file are together as long as the file.
    pub fn bytes(&self) -> u64 {
        self.end().saturating_sub(self.from.byte)
    }

    /// Whether some of the text is in both of two stretches of one file.
    pub(crate) fn overlaps(&self, other: &Span) -> bool {
        let before = |one: &Span, two: &Span| one.to.is_some_and(|to| to <= two.from);
        !before(self, other) && !before(other, self)
    }

    /// The byte of the file that it ends at, or the block that it ends in.
    pub(crate) fn end(&self) -> u64 {
        self.to.map_or(self.size, |to| to.byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_overlap_where_they_share_text() {
        let offset = |byte, within| Offset { byte, within };
        let span = |from, to| Span { from, to, size: 100 };
        let first = span(offset(0, 0), Some(offset(40, 7)));
        let middle = span(offset(40, 7), Some(offset(40, 20)));
        let last = span(offset(40, 20), None);
        assert!(!first.overlaps(&middle) && !middle.overlaps(&last) && !last.overlaps(&first));
        let across = span(offset(40, 6), Some(offset(40, 8)));
        for other in [&first, &middle, &across] {
            assert!(across.overlaps(other) && other.overlaps(&across));
        }
        assert_eq!([first, middle, last].map(|span| span.bytes()), [40, 0, 60]);
        assert!(offset(39, 9) < offset(40, 0) && offset(40, 0) < offset(40, 1));
    }
}
