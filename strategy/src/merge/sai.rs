//! Suffix array intervals of `bwa aln`: a header, then for each read a number and so many intervals.
//!
//! Layout of bwa 0.7 (`bwtaln.h`, `gap_opt_t` and `bwt_aln1_t`): `SAI`, a byte 1, 16 words of 4 bytes, of which the 14th is the number of
//! threads; an interval is 24 bytes.

use std::sync::Arc;

use crate::deal::Batch;

use super::{Fault, Given, shown};

const MAGIC: &[u8] = b"SAI\x01";
const HEADER: usize = 68;
const THREADS: usize = 56;
const INTERVAL: usize = 24;
/// More intervals than any read has.
const MOST: u32 = 1 << 26;

/// Takes the output of one process apart.
pub(crate) struct Sai {
    /// Threads of the plain run, which the header tells.
    threads: usize,
    /// Bytes that are not taken yet.
    rest: Vec<u8>,
    header_done: bool,
    index: usize,
    open: Option<Arc<Batch>>,
    /// Reads of the open batch taken.
    reads: u64,
    /// Of those, so many are with the merger since an earlier process.
    skip: u64,
}

impl Sai {
    pub fn new(threads: usize) -> Self {
        Sai { threads, rest: Vec::new(), header_done: false, index: 0, open: None, reads: 0, skip: 0 }
    }

    /// Takes what was read.
    pub fn take(&mut self, bytes: &[u8], given: &impl Given) -> Result<(), Fault> {
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        if !self.header_done {
            if self.rest.len() < HEADER {
                return Ok(());
            }
            if !self.rest.starts_with(MAGIC) {
                return Err(Fault::NoFormat { format: ".sai", what: "it starts otherwise".to_owned() });
            }
            let mut header = self.rest[..HEADER].to_vec();
            header[THREADS..THREADS + 4].copy_from_slice(&(self.threads as u32).to_le_bytes());
            given.header(header)?;
            (self.header_done, at) = (true, HEADER);
        }
        let mut start = at;
        while let Some(head) = self.rest.get(at..at + 4) {
            let intervals = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            if intervals > MOST {
                let what = format!("{intervals} intervals of one read");
                return Err(Fault::NoFormat { format: ".sai", what });
            }
            let end = at + 4 + intervals as usize * INTERVAL;
            if end > self.rest.len() {
                break;
            }
            let batch = match &self.open {
                Some(batch) => Arc::clone(batch),
                None => {
                    let batch = given.given(self.index).ok_or(Fault::Surplus)?;
                    self.skip = batch.delivered() as u64;
                    self.open = Some(Arc::clone(&batch));
                    batch
                }
            };
            at = end;
            self.reads += 1;
            if self.reads <= self.skip {
                start = at;
            }
            if self.reads == batch.reads() {
                given.deliver(&batch, self.rest[start..at].to_vec(), true);
                (self.open, self.reads, start) = (None, 0, at);
                self.index += 1;
            }
        }
        if let Some(batch) = &self.open
            && at > start
        {
            batch.deliver(self.reads as usize);
            given.deliver(batch, self.rest[start..at].to_vec(), false);
        }
        self.rest.drain(..at);
        Ok(())
    }

    /// Whether anything came.
    pub fn answered(&self) -> bool {
        self.header_done
    }

    /// The output has ended, and the process ended well.
    pub fn end(&mut self, given: &impl Given) -> Result<(), Fault> {
        let open = self.open.take().or_else(|| given.given(self.index));
        match (self.rest.is_empty(), open) {
            (true, None) => Ok(()),
            (true, Some(batch)) => {
                let first = batch.chunk(0).map_or_else(String::new, |chunk| shown(chunk.name(0)));
                Err(Fault::Missing { templates: batch.reads() - self.reads, first })
            }
            (false, _) => Err(Fault::NoFormat { format: ".sai", what: "it ends within a read".to_owned() }),
        }
    }
}
