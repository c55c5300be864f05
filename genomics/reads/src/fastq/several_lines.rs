//! FASTQ records whose sequence and qualities take several lines. Their lines are joined, so that records have four
//! lines. As in `kseq.h` of klib, which aligners use, the qualities end with the line on which there are as many as
//! bases.

use std::ops::{Deref, Range};

use crate::error::{ByteForDisplay, Error, RecordFault};
use genuma_work::ProgressCounters;

use super::{BlockLimits, FastqBlock, FastqReader, decompression_error};

impl<M: Deref<Target = ProgressCounters>> FastqReader<M> {
    /// Moves the next records into `block`, and checks them. The first sequence of several lines, if such are accepted,
    /// starts the next block, and from there on lines are joined.
    pub(crate) fn fill_and_check_block(&mut self, block: &mut FastqBlock, limit: BlockLimits) {
        self.fill_block(block, limit);
        let read_fault = block.fault.take();
        block.truncate_at_first_invalid_record(&self.path);
        let has_several_lines =
            matches!(block.fault, Some(Error::Record { fault: RecordFault::SeveralSequenceLines, .. }));
        if !(has_several_lines && self.accepts_unusual_fastq) {
            block.fault = block.fault.take().or(read_fault);
            return;
        }
        block.truncate_records(block.num_records() & !1);
        let end = block.end_of_last_whole_record();
        self.carry_over.clear();
        self.carry_over.extend_from_slice(&block.bytes[end..block.used_bytes]);
        self.records = block.num_records_before + block.num_records() as u64;
        // The end of the file inside four lines may be the end of a record of more lines.
        self.pending_fault =
            read_fault.filter(|fault| !matches!(fault, Error::Record { fault: RecordFault::Truncated, .. }));
        self.joins_lines = true;
        (block.used_bytes, block.has_more, block.fault) = (end, true, None);
    }

    /// Moves the next records into `block`, with joined lines, up to a limit.
    pub(super) fn fill_block_with_joined_lines(&mut self, block: &mut FastqBlock, limit: BlockLimits) {
        block.clear_and_start_with_bytes(self.header_mark, self.records, &[]);
        block.has_more = loop {
            let records = block.num_records();
            let is_full = records >= limit.records || block.used_bytes >= limit.bytes;
            if is_full && records >= 2 && records.is_multiple_of(2) {
                break true;
            }
            match self.append_record_with_joined_lines(block) {
                Ok(true) => {}
                Ok(false) => break false,
                Err(fault) => {
                    block.truncate_records(block.num_records());
                    block.fault = Some(fault);
                    break false;
                }
            }
        };
    }

    /// Appends the next record to the block; false at the end of the file.
    fn append_record_with_joined_lines(&mut self, block: &mut FastqBlock) -> Result<bool, Error> {
        let record = block.num_records_before + block.num_records() as u64 + 1;
        let header = loop {
            match self.next_line(record, 0)? {
                None => return Ok(false),
                Some(line) if line.is_empty() => {}
                Some(line) => break line,
            }
        };
        let first = self.carry_over[header.start];
        if first != self.header_mark {
            let fault = RecordFault::MissingHeaderMark(ByteForDisplay(first));
            return Err(Error::error_in_record(&self.path, record, fault));
        }
        let record_start = block.used_bytes;
        block.append_bytes(&self.carry_over[header]);
        block.append_line_feed();
        let start = block.used_bytes;
        loop {
            let line = self.next_line_of_record(record, block.used_bytes - record_start)?;
            if self.carry_over[line.clone()].first() == Some(&b'+') {
                break;
            }
            block.append_bytes(&self.carry_over[line]);
        }
        let num_bases = block.used_bytes - start;
        block.append_line_feed();
        block.append_bytes(b"+");
        block.append_line_feed();
        let start = block.used_bytes;
        loop {
            let line = self.next_line_of_record(record, block.used_bytes - record_start)?;
            block.append_bytes(&self.carry_over[line]);
            if block.used_bytes - start >= num_bases {
                break;
            }
        }
        block.append_line_feed();
        Ok(true)
    }

    /// The next line, which must be there. `record_bytes` is the size of the record so far.
    fn next_line_of_record(&mut self, record: u64, record_bytes: usize) -> Result<Range<usize>, Error> {
        let line = self.next_line(record, record_bytes)?;
        line.ok_or_else(|| Error::error_in_record(&self.path, record, RecordFault::Truncated))
    }

    /// Where the next line is in `carry_over`, without its line end; `None` at the end of the file.
    fn next_line(&mut self, record: u64, record_bytes: usize) -> Result<Option<Range<usize>>, Error> {
        let mut scanned = self.carry_over_pos;
        let (line, next) = loop {
            let start = self.carry_over_pos;
            if let Some(at) = memchr::memchr(b'\n', &self.carry_over[scanned..]) {
                break (start..scanned + at, scanned + at + 1);
            }
            scanned = self.carry_over.len() - start;
            if record_bytes + scanned > self.max_record_bytes {
                return Err(Error::error_in_record(&self.path, record, RecordFault::TooLong(self.max_record_bytes)));
            }
            if let Some(fault) = self.pending_fault.take() {
                return Err(fault);
            }
            if !self.refill().map_err(|damage| decompression_error(&self.path, record, damage))? {
                if scanned == 0 {
                    return Ok(None);
                }
                break (0..scanned, scanned);
            }
        };
        self.carry_over_pos = next;
        let has_carriage_return = self.carry_over[line.clone()].last() == Some(&b'\r');
        Ok(Some(line.start..line.end - usize::from(has_carriage_return)))
    }
}
