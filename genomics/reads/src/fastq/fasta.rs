//! Divides a FASTA file into blocks. The lines of each sequence are joined, so that records have four lines as in
//! FASTQ.

use std::ops::Deref;

use crate::error::{Error, RecordFault};
use genuma_work::ProgressCounters;

use super::{BlockLimits, FastqBlock, FastqReader, decompression_error};

impl<M: Deref<Target = ProgressCounters>> FastqReader<M> {
    /// Moves the next FASTA records into `block`, as records of four lines, up to a limit.
    pub(super) fn fill_fasta_block(&mut self, block: &mut FastqBlock, limit: BlockLimits) {
        block.clear_and_start_with_bytes(self.header_mark, self.records, &[]);
        match self.join_lines(block, limit) {
            Ok(more) => block.has_more = more,
            Err(e) => {
                block.fault = Some(e);
                block.truncate_records(block.num_records());
            }
        }
    }

    /// Appends records to the block until the limit is reached. Returns false at the end of the file.
    fn join_lines(&mut self, block: &mut FastqBlock, limit: BlockLimits) -> Result<bool, Error> {
        let mut open = false;
        loop {
            let text = &self.carry_over[self.carry_over_pos..];
            let header = !self.is_in_sequence_line && text.first() == Some(&b'>');
            if header && open {
                end_record(block);
                open = false;
            }
            let full = block.num_records() >= limit.records || block.used_bytes >= limit.bytes;
            if header && full && block.num_records() >= 2 && block.num_records().is_multiple_of(2) {
                return Ok(true);
            }
            if let Some(n) = memchr::memchr(b'\n', text) {
                let line = text[..n].strip_suffix(b"\r").unwrap_or(&text[..n]);
                block.append_bytes(line);
                self.carry_over_pos += n + 1;
                self.is_in_sequence_line = false;
                if header {
                    block.append_line_feed();
                    open = true;
                }
                continue;
            }
            // The line continues in the next chunk. Append its bases now, but keep a final `\r`, which may be part of
            // the line end.
            if !header {
                let part = text.strip_suffix(b"\r").unwrap_or(text);
                self.is_in_sequence_line |= !part.is_empty();
                block.append_bytes(part);
                self.carry_over_pos += part.len();
            }
            let record = block.num_records_before + block.num_records() as u64 + 1;
            if block.used_bytes - block.end_of_last_whole_record() + self.carry_over.len() - self.carry_over_pos
                > self.max_record_bytes
            {
                return Err(Error::error_in_record(&self.path, record, RecordFault::TooLong(self.max_record_bytes)));
            }
            if self.refill().map_err(|damage| decompression_error(&self.path, record, damage))? {
                continue;
            }
            // End of the file: only a header or a `\r` may be left.
            if header {
                let line = &self.carry_over[self.carry_over_pos..];
                block.append_bytes(line.strip_suffix(b"\r").unwrap_or(line));
                block.append_line_feed();
                open = true;
            }
            self.carry_over_pos = self.carry_over.len();
            if open {
                end_record(block);
            }
            return Ok(false);
        }
    }

    /// Decompresses the next chunk and appends it to the carry-over; false at the end of the file.
    pub(super) fn refill(&mut self) -> Result<bool, super::DecompressError> {
        let left = self.carry_over.len() - self.carry_over_pos;
        self.carry_over.copy_within(self.carry_over_pos.., 0);
        self.carry_over_pos = 0;
        self.carry_over.resize(left + self.chunk_bytes, 0);
        let filled = self.decompressor.fill_buffer(&mut self.carry_over[left..]);
        self.carry_over.truncate(left + filled.as_ref().copied().unwrap_or(0));
        filled.map(|n| n > 0)
    }
}

/// Ends the line of bases, and appends the two empty lines that replace the `+` line and the qualities.
fn end_record(block: &mut FastqBlock) {
    (0..3).for_each(|_| block.append_line_feed());
}
