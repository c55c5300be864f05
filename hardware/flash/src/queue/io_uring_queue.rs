//! Page reads with io_uring.
//!
//! The kernel receives addresses to which it writes, which safe Rust cannot check. [`ReadBuffers`] records which page
//! buffers are lent to the kernel.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use genuma_machine::placement::MemoryPlacement;
use io_uring::{IoUring, opcode, types};

use super::read_buffers::ReadBuffers;
use super::{CompletedRead, PageReadQueue, QueueError};
use crate::format::{PAGE_BYTES, Page};

/// A queue of page reads on an io_uring of its own. The file is registered with the kernel, and the buffers too if the
/// kernel permits it.
pub(crate) struct IoUringQueue {
    ring: IoUring,
    buffers: ReadBuffers,
    /// Number of reads that were requested and are not complete.
    reads_in_flight: usize,
    /// Whether the buffers are registered with the kernel.
    has_registered_buffers: bool,
    /// The file that is read. The queue keeps it open, because the ring does not.
    _file: File,
}

impl std::fmt::Debug for IoUringQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("buffers", &self.buffers).field("under_way", &self.reads_in_flight).finish()
    }
}

impl IoUringQueue {
    /// Creates a queue for up to `depth` reads of `file` in flight.
    pub(crate) fn create(file: &File, depth: usize, at: &MemoryPlacement) -> Result<IoUringQueue, QueueError> {
        let file = file.try_clone()?;
        let entries = u32::try_from(depth).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // Completions are processed when this thread waits for them (Linux 6.1), so they do not interrupt it.
        let ring = match IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
            made => made,
        }?;
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        let buffers = ReadBuffers::allocate(depth, at)?;
        // SAFETY: the memory belongs to the queue and outlives the ring (fields are dropped in order). It is written
        // only by reads into pages that were lent to the kernel.
        let registered = unsafe { ring.submitter().register_buffers(&[buffers.as_iovec()]) }.is_ok();
        Ok(IoUringQueue { ring, buffers, reads_in_flight: 0, has_registered_buffers: registered, _file: file })
    }

    /// Submits the new reads to the kernel, and waits until `wanted` reads are complete.
    fn submit_and_wait(&mut self, wanted: usize) -> io::Result<()> {
        loop {
            match self.ring.submitter().submit_and_wait(wanted) {
                Ok(_) => return Ok(()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The kernel lacks a resource that reads in flight will free.
                    Some(libc::EAGAIN | libc::EBUSY) if !self.ring.completion().is_empty() => return Ok(()),
                    Some(libc::EAGAIN | libc::EBUSY) => std::thread::yield_now(),
                    _ => return Err(error),
                },
            }
        }
    }

    fn collect_completions(&mut self, done: &mut Vec<CompletedRead>) {
        for entry in self.ring.completion() {
            let slot = entry.user_data() as usize;
            // SAFETY: the kernel reports that this read is complete.
            unsafe { self.buffers.take_page_back(slot) };
            self.reads_in_flight -= 1;
            let read = usize::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result()));
            done.push(CompletedRead { slot, result: read });
        }
    }
}

impl PageReadQueue for IoUringQueue {
    fn request_page(&mut self, slot: usize, page: u64) {
        let address = self.buffers.lend_page_to_kernel(slot);
        let (file, offset) = (types::Fixed(0), page * PAGE_BYTES as u64);
        let entry = if self.has_registered_buffers {
            opcode::ReadFixed::new(file, address, PAGE_BYTES as u32, 0).offset(offset).build()
        } else {
            opcode::Read::new(file, address, PAGE_BYTES as u32).offset(offset).build()
        };
        // SAFETY: the page at `address` was lent to the kernel and stays mapped until the read is complete, because
        // `drop` waits for it.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        pushed.expect("the ring has a place for each slot");
        self.reads_in_flight += 1;
    }

    fn wait_for_reads(&mut self, done: &mut Vec<CompletedRead>) -> io::Result<()> {
        if self.reads_in_flight > 0 {
            self.submit_and_wait(super::min_completions_to_await(self.reads_in_flight))?;
            self.collect_completions(done);
        }
        Ok(())
    }

    fn page_in_slot(&self, slot: usize) -> &Page {
        self.buffers.borrow_page(slot)
    }
}

impl Drop for IoUringQueue {
    fn drop(&mut self) {
        let mut done = Vec::new();
        // If the kernel fails, nothing can be done here: closing the ring ends its reads.
        while self.reads_in_flight > 0 && self.submit_and_wait(self.reads_in_flight).is_ok() {
            self.collect_completions(&mut done);
        }
    }
}
