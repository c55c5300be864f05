//! Cutting FASTA into blocks: the lines of each sequence are joined, so that the rest of the crate sees records of four
//! lines.

use std::ops::Deref;

use crate::error::{Error, RecordFault};
use genuma_work::Meter;

use super::{Block, Limit, Stream, damaged};

impl<M: Deref<Target = Meter>> Stream<M> {
    pub(super) fn cut_fasta(&mut self, block: &mut Block, limit: Limit) {
        block.start(self.mark, self.records, &[]);
        match self.join_lines(block, limit) {
            Ok(more) => block.more = more,
            Err(e) => {
                block.fault = Some(e);
                block.truncate(block.records());
            }
        }
    }

    /// Joins lines to records until the limit is met; false at the end of the file.
    fn join_lines(&mut self, block: &mut Block, limit: Limit) -> Result<bool, Error> {
        let mut open = false;
        loop {
            let text = &self.rest[self.at..];
            let header = !self.within && text.first() == Some(&b'>');
            if header && open {
                end_record(block);
                open = false;
            }
            let full = block.records() >= limit.records || block.filled >= limit.bytes;
            if header && full && block.records() >= 2 && block.records().is_multiple_of(2) {
                return Ok(true);
            }
            if let Some(n) = memchr::memchr(b'\n', text) {
                let line = text[..n].strip_suffix(b"\r").unwrap_or(&text[..n]);
                block.append(line);
                self.at += n + 1;
                self.within = false;
                if header {
                    block.end_line();
                    open = true;
                }
                continue;
            }
            // The line goes on in the next chunk. Its bases need not wait for that, but a `\r` may end it.
            if !header {
                let part = text.strip_suffix(b"\r").unwrap_or(text);
                self.within |= !part.is_empty();
                block.append(part);
                self.at += part.len();
            }
            let record = block.before + block.records() as u64 + 1;
            if block.filled - block.whole() + self.rest.len() - self.at > self.longest {
                return Err(Error::record(&self.path, record, RecordFault::TooLong(self.longest)));
            }
            if self.refill().map_err(|damage| damaged(&self.path, record, damage))? {
                continue;
            }
            // The end of the file: nothing is left of it but a header, or a `\r`.
            if header {
                let line = &self.rest[self.at..];
                block.append(line.strip_suffix(b"\r").unwrap_or(line));
                block.end_line();
                open = true;
            }
            self.at = self.rest.len();
            if open {
                end_record(block);
            }
            return Ok(false);
        }
    }

    /// Decompresses the next chunk behind what is left of the last; false at the end of the file.
    fn refill(&mut self) -> Result<bool, super::Damage> {
        let left = self.rest.len() - self.at;
        self.rest.copy_within(self.at.., 0);
        self.at = 0;
        self.rest.resize(left + self.chunk, 0);
        let filled = self.inflate.fill(&mut self.rest[left..]);
        self.rest.truncate(left + filled.as_ref().copied().unwrap_or(0));
        filled.map(|n| n > 0)
    }
}

/// Ends the bases of a record, and the two lines that FASTA has not.
fn end_record(block: &mut Block) {
    (0..3).for_each(|_| block.end_line());
}
