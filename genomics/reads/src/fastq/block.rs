//! Blocks: consecutive whole records of one file, as they are cut from it.

use crate::error::Error;

/// Of a record.
pub(super) const LINES: usize = 4;

/// Consecutive whole records of one file, four lines each. A record of FASTA has its bases on one line and two empty
/// lines after it.
#[derive(Debug)]
pub(crate) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Bytes of `bytes` that are in use; the rest is room that keeps its pages.
    pub(super) filled: usize,
    /// Where each line ends (its `\n`), four a record.
    pub(super) ends: Vec<usize>,
    /// Records of the file before this block.
    pub(super) before: u64,
    /// What a header starts with: `@`, or `>` in FASTA.
    pub(super) mark: u8,
    /// The last line of the file has no line end and lies in this block.
    pub(super) unterminated: bool,
    /// The file may go on after this block.
    pub(crate) more: bool,
    /// What stopped the reading after the last record.
    pub(crate) fault: Option<Error>,
}

impl Default for Block {
    fn default() -> Self {
        let (bytes, ends) = (Vec::new(), Vec::new());
        Block { bytes, filled: 0, ends, before: 0, mark: b'@', unterminated: false, more: false, fault: None }
    }
}

impl Block {
    /// A block of no records that the first block follows.
    pub(crate) fn before_first() -> Self {
        Block { more: true, ..Block::default() }
    }

    /// A block of no records that ends its file with a fault.
    pub(crate) fn of_fault(fault: Error) -> Self {
        Block { fault: Some(fault), ..Block::default() }
    }

    pub(crate) fn records(&self) -> usize {
        self.ends.len() / LINES
    }

    /// Records of the file before the block.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    /// Empties the block and begins it with `rest`, what was read of the file after `before` records.
    pub(super) fn start(&mut self, mark: u8, before: u64, rest: &[u8]) {
        (self.mark, self.before, self.filled) = (mark, before, 0);
        (self.unterminated, self.more, self.fault) = (false, false, None);
        self.ends.clear();
        self.append(rest);
    }

    /// Makes room for `more` bytes.
    pub(super) fn reserve(&mut self, more: usize) {
        if self.bytes.len() < self.filled + more {
            self.bytes.resize(self.filled + more, 0);
        }
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.bytes[self.filled..][..bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    /// Ends a line here.
    pub(super) fn end_line(&mut self) {
        self.ends.push(self.filled);
        self.append(b"\n");
    }

    /// Where the last whole record ends in `bytes`.
    pub(super) fn whole(&self) -> usize {
        let lines = self.records() * LINES;
        if lines == 0 { 0 } else { self.ends[lines - 1] + 1 }
    }

    /// Keeps the first records only.
    pub(super) fn truncate(&mut self, records: usize) {
        self.ends.truncate(records * LINES);
    }

    /// The lines of the record at `i`, without line ends.
    pub(super) fn lines(&self, i: usize) -> [&[u8]; LINES] {
        let ends = &self.ends[i * LINES..(i + 1) * LINES];
        let mut start = if i == 0 { 0 } else { self.ends[i * LINES - 1] + 1 };
        std::array::from_fn(|line| {
            let text = &self.bytes[start..ends[line]];
            start = ends[line] + 1;
            text.strip_suffix(b"\r").unwrap_or(text)
        })
    }
}
