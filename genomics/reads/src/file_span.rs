//! Positions in the text of a file, and stretches (spans) of a file between two positions.
//!
//! A position in plain text is a byte. A position in BGZF is a block and a byte of the uncompressed block: a virtual
//! offset (SAM specification, section 4.1.1).

use std::fmt;

use serde::{Deserialize, Serialize};

/// A position in the uncompressed text of a file. Positions are ordered as in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct VirtualOffset {
    /// Offset in the file in bytes: in plain text of the position itself, in BGZF of the start of the block that has
    /// the position.
    pub file_offset: u64,
    /// In BGZF, number of uncompressed bytes of the block before the position; 0 in plain text.
    pub offset_in_block: u16,
}

impl fmt::Display for VirtualOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset_in_block {
            0 => write!(f, "byte {}", self.file_offset),
            within => write!(f, "byte {within} of the block at byte {}", self.file_offset),
        }
    }
}

/// A stretch of a file that consists of whole records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSpan {
    /// Position of the first byte.
    pub start: VirtualOffset,
    /// Position after the last byte; `None` for the end of the file.
    pub end: Option<VirtualOffset>,
    /// Size of the whole file in bytes when the span was chosen. A file that has another size now is refused.
    pub file_bytes: u64,
}

impl FileSpan {
    /// Number of bytes of the file that count as the span. In BGZF, the block in which the span starts counts
    /// completely, the block in which it ends does not, so that the lengths of consecutive spans add up to the file
    /// size.
    pub fn len_bytes(&self) -> u64 {
        self.end_file_offset().saturating_sub(self.start.file_offset)
    }

    /// Whether two spans of the same file have some text in common.
    pub(crate) fn overlaps(&self, other: &FileSpan) -> bool {
        let before = |one: &FileSpan, two: &FileSpan| one.end.is_some_and(|to| to <= two.start);
        !before(self, other) && !before(other, self)
    }

    /// Offset in the file, in bytes, at which the span ends; in BGZF the start of the block in which it ends.
    pub(crate) fn end_file_offset(&self) -> u64 {
        self.end.map_or(self.file_bytes, |to| to.file_offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_overlap_where_they_share_text() {
        let offset = |byte, within| VirtualOffset { file_offset: byte, offset_in_block: within };
        let span = |from, to| FileSpan { start: from, end: to, file_bytes: 100 };
        let first = span(offset(0, 0), Some(offset(40, 7)));
        let middle = span(offset(40, 7), Some(offset(40, 20)));
        let last = span(offset(40, 20), None);
        assert!(!first.overlaps(&middle) && !middle.overlaps(&last) && !last.overlaps(&first));
        let across = span(offset(40, 6), Some(offset(40, 8)));
        for other in [&first, &middle, &across] {
            assert!(across.overlaps(other) && other.overlaps(&across));
        }
        assert_eq!([first, middle, last].map(|span| span.len_bytes()), [40, 0, 60]);
        assert!(offset(39, 9) < offset(40, 0) && offset(40, 0) < offset(40, 1));
    }
}
