//! Page reads with pread(2), one after the other. Supported by every system.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use genuma_machine::placement::{MemoryPlacement, PlacedSlice};

use super::{CompletedRead, PageReadQueue, QueueError};
use crate::format::{PAGE_BYTES, Page};

/// A queue of page reads with pread(2).
#[derive(Debug)]
pub(crate) struct PreadQueue {
    file: File,
    pages: PlacedSlice<Page>,
    pending_reads: Vec<(usize, u64)>,
}

impl PreadQueue {
    /// Creates a queue with `depth` slots.
    pub(crate) fn create(file: &File, depth: usize, at: &MemoryPlacement) -> Result<PreadQueue, QueueError> {
        Ok(PreadQueue {
            file: file.try_clone()?,
            pages: PlacedSlice::new_zeroed(depth, at)?,
            pending_reads: Vec::new(),
        })
    }
}

impl PageReadQueue for PreadQueue {
    fn request_page(&mut self, slot: usize, page: u64) {
        self.pending_reads.push((slot, page));
    }

    fn wait_for_reads(&mut self, done: &mut Vec<CompletedRead>) -> io::Result<()> {
        for (slot, page) in self.pending_reads.drain(..) {
            let bytes = &mut self.pages[slot].0;
            let read = loop {
                match self.file.read_at(bytes, page * PAGE_BYTES as u64) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            done.push(CompletedRead { slot, result: read });
        }
        Ok(())
    }

    fn page_in_slot(&self, slot: usize) -> &Page {
        &self.pages[slot]
    }
}
