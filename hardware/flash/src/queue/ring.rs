//! Pages by io_uring.
//!
//! The kernel is given addresses to write to, which safe Rust cannot check; [`Buffers`] keeps account of them.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use genuma_machine::placement::Placement;
use io_uring::{IoUring, opcode, types};

use super::buffers::Buffers;
use super::{Done, Queue, Refusal};
use crate::format::{PAGE, Page};

/// A ring of its own, with a file and buffers that the kernel knows.
pub struct Ring {
    ring: IoUring,
    buffers: Buffers,
    /// Reads that the kernel has or that wait to be handed to it.
    under_way: usize,
    /// Whether the kernel keeps the buffers mapped.
    registered: bool,
    /// The ring keeps no hold on it.
    _file: File,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("buffers", &self.buffers).field("under_way", &self.under_way).finish()
    }
}

impl Ring {
    /// A ring of `depth` reads.
    pub fn new(file: &File, depth: usize, at: &Placement) -> Result<Ring, Refusal> {
        let file = file.try_clone()?;
        let entries = u32::try_from(depth).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // Completions are dealt with when this thread asks for them (Linux 6.1): no interrupts of what it does meanwhile.
        let ring = match IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
            made => made,
        }?;
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        let buffers = Buffers::new(depth, at)?;
        // SAFETY: the memory is ours, lives longer than the ring (fields are dropped in order), and is written by reads into pages that
        // were given to the kernel only.
        let registered = unsafe { ring.submitter().register_buffers(&[buffers.memory()]) }.is_ok();
        Ok(Ring { ring, buffers, under_way: 0, registered, _file: file })
    }

    /// Hands new reads to the kernel, and waits for `wanted` to end.
    fn enter(&mut self, wanted: usize) -> io::Result<()> {
        loop {
            match self.ring.submitter().submit_and_wait(wanted) {
                Ok(_) => return Ok(()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The kernel is short of something that reads under way will give back.
                    Some(libc::EAGAIN | libc::EBUSY) if !self.ring.completion().is_empty() => return Ok(()),
                    Some(libc::EAGAIN | libc::EBUSY) => std::thread::yield_now(),
                    _ => return Err(error),
                },
            }
        }
    }

    /// Notes the reads that have ended.
    fn reap(&mut self, done: &mut Vec<Done>) {
        for entry in self.ring.completion() {
            let slot = entry.user_data() as usize;
            // SAFETY: the kernel says that this read has ended.
            unsafe { self.buffers.take_back(slot) };
            self.under_way -= 1;
            let read =
                usize::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result()));
            done.push(Done { slot, read });
        }
    }
}

impl Queue for Ring {
    fn push(&mut self, slot: usize, page: u64) {
        let address = self.buffers.give(slot);
        let (file, offset) = (types::Fixed(0), page * PAGE as u64);
        let entry = if self.registered {
            opcode::ReadFixed::new(file, address, PAGE as u32, 0).offset(offset).build()
        } else {
            opcode::Read::new(file, address, PAGE as u32).offset(offset).build()
        };
        // SAFETY: the page at `address` was given to the kernel, and stays mapped until the read has ended: `drop` waits for it.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        pushed.expect("the ring has a place for each slot");
        self.under_way += 1;
    }

    fn wait(&mut self, done: &mut Vec<Done>) -> io::Result<()> {
        if self.under_way > 0 {
            self.enter(super::batch(self.under_way))?;
            self.reap(done);
        }
        Ok(())
    }

    fn page(&self, slot: usize) -> &Page {
        self.buffers.page(slot)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut done = Vec::new();
        // Without the kernel's answer nothing can be done: the ring is closed next, which ends its reads.
        while self.under_way > 0 && self.enter(self.under_way).is_ok() {
            self.reap(&mut done);
        }
    }
}
