//! Blocks of FASTQ records: consecutive whole records of one file.

use crate::error::Error;

/// Number of lines of a FASTQ record.
pub(super) const LINES_PER_RECORD: usize = 4;

/// Consecutive whole records of one file, four lines each. A FASTA record is stored as header, bases on one line, and
/// two empty lines.
#[derive(Debug)]
pub(crate) struct FastqBlock {
    pub(super) bytes: Vec<u8>,
    /// Number of bytes of `bytes` that are in use. The rest is allocated memory for reuse.
    pub(super) used_bytes: usize,
    /// Position of each line end (`\n`), four per record.
    pub(super) line_ends: Vec<usize>,
    /// Number of records of the file before this block.
    pub(super) num_records_before: u64,
    /// First byte of a header: `@`, or `>` for FASTA.
    pub(super) header_mark: u8,
    /// Whether the block has the last line of the file and that line has no line end.
    pub(super) lacks_final_newline: bool,
    /// Whether the file may have further records after this block.
    pub(crate) has_more: bool,
    /// Error that occurred after the last record of the block; `None` without an error.
    pub(crate) fault: Option<Error>,
}

impl Default for FastqBlock {
    fn default() -> Self {
        let (bytes, ends) = (Vec::new(), Vec::new());
        FastqBlock {
            bytes,
            used_bytes: 0,
            line_ends: ends,
            num_records_before: 0,
            header_mark: b'@',
            lacks_final_newline: false,
            has_more: false,
            fault: None,
        }
    }
}

impl FastqBlock {
    /// An empty block that is used before the first block of a file has been read.
    pub(crate) fn new_before_first_block() -> Self {
        FastqBlock { has_more: true, ..FastqBlock::default() }
    }

    /// An empty block with an error, at which the file ends.
    pub(crate) fn new_with_error(fault: Error) -> Self {
        FastqBlock { fault: Some(fault), ..FastqBlock::default() }
    }

    /// Number of complete records in the block.
    pub(crate) fn num_records(&self) -> usize {
        self.line_ends.len() / LINES_PER_RECORD
    }

    /// Number of records of the file before this block.
    pub(crate) fn num_records_before(&self) -> u64 {
        self.num_records_before
    }

    /// Removes all records. `rest` are the bytes of the file after its first `before` records, with which the block
    /// now starts. `mark` is the first byte of a header.
    pub(super) fn clear_and_start_with_bytes(&mut self, mark: u8, before: u64, rest: &[u8]) {
        (self.header_mark, self.num_records_before, self.used_bytes) = (mark, before, 0);
        (self.lacks_final_newline, self.has_more, self.fault) = (false, false, None);
        self.line_ends.clear();
        self.append_bytes(rest);
    }

    /// Makes sure that `more` bytes fit into the block.
    pub(super) fn reserve(&mut self, more: usize) {
        if self.bytes.len() < self.used_bytes + more {
            self.bytes.resize(self.used_bytes + more, 0);
        }
    }

    /// Appends text to the block.
    pub(super) fn append_bytes(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.bytes[self.used_bytes..][..bytes.len()].copy_from_slice(bytes);
        self.used_bytes += bytes.len();
    }

    /// Appends a line feed to the text of the block.
    pub(super) fn append_line_feed(&mut self) {
        self.line_ends.push(self.used_bytes);
        self.append_bytes(b"\n");
    }

    /// Position in the text after the last whole record.
    pub(super) fn end_of_last_whole_record(&self) -> usize {
        let lines = self.num_records() * LINES_PER_RECORD;
        if lines == 0 { 0 } else { self.line_ends[lines - 1] + 1 }
    }

    /// Keeps only the first `records` records.
    pub(super) fn truncate_records(&mut self, records: usize) {
        self.line_ends.truncate(records * LINES_PER_RECORD);
    }

    /// The four lines of record `i`, without line ends.
    pub(super) fn record_lines(&self, i: usize) -> [&[u8]; LINES_PER_RECORD] {
        let ends = &self.line_ends[i * LINES_PER_RECORD..(i + 1) * LINES_PER_RECORD];
        let mut start = if i == 0 { 0 } else { self.line_ends[i * LINES_PER_RECORD - 1] + 1 };
        std::array::from_fn(|line| {
            let text = &self.bytes[start..ends[line]];
            start = ends[line] + 1;
            text.strip_suffix(b"\r").unwrap_or(text)
        })
    }
}
