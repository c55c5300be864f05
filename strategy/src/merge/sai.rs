//! Parses the suffix array intervals of `bwa aln`: a header, then for each read the number of intervals and the
//! intervals.
//!
//! Layout of bwa 0.7 (`bwtaln.h`, `gap_opt_t` and `bwt_aln1_t`): `SAI`, a byte 1, 16 words of 4 bytes (the 14th is
//! the number of threads); an interval has 24 bytes.

use std::sync::Arc;

use crate::batching::InstanceBatch;

use super::{AlignerOutputError, AlignerOutputReceiver, read_name_to_text};

const MAGIC: &[u8] = b"SAI\x01";
const HEADER_BYTES: usize = 68;
const THREADS_OFFSET: usize = 56;
const INTERVAL_BYTES: usize = 24;
/// Upper bound of the number of intervals of a read; more means an invalid file.
const MAX_INTERVALS_PER_READ: u32 = 1 << 26;

/// Parser of the `.sai` output of one process.
pub(crate) struct SaiParser {
    /// Threads of the plain run, written to the header.
    threads: usize,
    /// Bytes that have not been parsed yet.
    rest: Vec<u8>,
    header_done: bool,
    index: usize,
    open: Option<Arc<InstanceBatch>>,
    /// Number of reads of the open batch that have been parsed.
    reads: u64,
    /// Number of reads of the open batch whose intervals an earlier process delivered already.
    skip: u64,
}

impl SaiParser {
    /// Creates a parser that writes `threads` as the number of threads to the header.
    pub(crate) fn new(threads: usize) -> Self {
        SaiParser { threads, rest: Vec::new(), header_done: false, index: 0, open: None, reads: 0, skip: 0 }
    }

    /// Parses the next bytes of the output of the process and delivers the intervals of each read to its batch.
    pub(crate) fn parse_bytes(
        &mut self,
        bytes: &[u8],
        given: &impl AlignerOutputReceiver,
    ) -> Result<(), AlignerOutputError> {
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        if !self.header_done {
            if self.rest.len() < HEADER_BYTES {
                return Ok(());
            }
            if !self.rest.starts_with(MAGIC) {
                return Err(AlignerOutputError::InvalidFormat {
                    format: ".sai",
                    what: "it does not start with the magic bytes".to_owned(),
                });
            }
            let mut header = self.rest[..HEADER_BYTES].to_vec();
            header[THREADS_OFFSET..THREADS_OFFSET + 4].copy_from_slice(&(self.threads as u32).to_le_bytes());
            given.accept_header(header)?;
            (self.header_done, at) = (true, HEADER_BYTES);
        }
        let mut start = at;
        while let Some(head) = self.rest.get(at..at + 4) {
            let intervals = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            if intervals > MAX_INTERVALS_PER_READ {
                let what = format!("{intervals} intervals of one read");
                return Err(AlignerOutputError::InvalidFormat { format: ".sai", what });
            }
            let end = at + 4 + intervals as usize * INTERVAL_BYTES;
            if end > self.rest.len() {
                break;
            }
            let batch = match &self.open {
                Some(batch) => Arc::clone(batch),
                None => {
                    let batch = given.assigned_batch(self.index).ok_or(AlignerOutputError::TooManyRecords)?;
                    self.skip = batch.num_templates_delivered_to_merger() as u64;
                    self.open = Some(Arc::clone(&batch));
                    batch
                }
            };
            at = end;
            self.reads += 1;
            if self.reads <= self.skip {
                start = at;
            }
            if self.reads == batch.wait_for_num_reads() {
                given.deliver_records(&batch, self.rest[start..at].to_vec(), true);
                (self.open, self.reads, start) = (None, 0, at);
                self.index += 1;
            }
        }
        if let Some(batch) = &self.open
            && at > start
        {
            batch.set_num_templates_delivered_to_merger(self.reads as usize);
            given.deliver_records(batch, self.rest[start..at].to_vec(), false);
        }
        self.rest.drain(..at);
        Ok(())
    }

    /// Returns whether the process has written its header.
    pub(crate) fn has_parsed_header(&self) -> bool {
        self.header_done
    }

    /// Checks that the output is complete, after the process ended successfully.
    pub(crate) fn finish_parsing(&mut self, given: &impl AlignerOutputReceiver) -> Result<(), AlignerOutputError> {
        let open = self.open.take().or_else(|| given.assigned_batch(self.index));
        match (self.rest.is_empty(), open) {
            (true, None) => Ok(()),
            (true, Some(batch)) => {
                let first = batch
                    .wait_for_chunk(0)
                    .map_or_else(String::new, |chunk| read_name_to_text(chunk.name_of_template(0)));
                Err(AlignerOutputError::MissingRecords { templates: batch.wait_for_num_reads() - self.reads, first })
            }
            (false, _) => {
                Err(AlignerOutputError::InvalidFormat { format: ".sai", what: "it ends within a read".to_owned() })
            }
        }
    }
}
