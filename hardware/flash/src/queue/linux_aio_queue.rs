//! Page reads with io_submit(2) and io_getevents(2), the system calls behind libaio.
//!
//! The kernel receives addresses to which it writes, which safe Rust cannot check. [`ReadBuffers`] records which page
//! buffers are lent to the kernel. The C library has no wrappers, so the system calls are made by number. The
//! structures are those of `include/uapi/linux/aio_abi.h`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use genuma_machine::placement::MemoryPlacement;
use libc::{c_long, c_ulong};

use super::read_buffers::ReadBuffers;
use super::{CompletedRead, PageReadQueue, QueueError};
use crate::format::{PAGE_BYTES, Page};

/// `IOCB_CMD_PREAD` of the kernel: the operation pread.
const IOCB_CMD_PREAD: u16 = 0;

/// `struct iocb` of the kernel (little-endian layout): one request.
#[derive(Debug, Clone, Default)]
#[repr(C)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

/// `struct io_event` of the kernel: one completed request.
#[derive(Debug, Clone, Default)]
#[repr(C)]
struct IoEvent {
    data: u64,
    request: u64,
    result: i64,
    result2: i64,
}

/// A queue of page reads with Linux AIO (io_submit, io_getevents).
#[derive(Debug)]
pub(crate) struct LinuxAioQueue {
    context: c_ulong,
    buffers: ReadBuffers,
    /// For each slot, its request.
    requests: Vec<Iocb>,
    /// Slots whose requests have not been submitted yet.
    pending_slots: Vec<usize>,
    events: Vec<IoEvent>,
    file: File,
}

fn check_return_value(returned: c_long) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

impl LinuxAioQueue {
    /// Creates a queue for up to `depth` reads of `file` in flight.
    pub(crate) fn create(file: &File, depth: usize, at: &MemoryPlacement) -> Result<LinuxAioQueue, QueueError> {
        let file = file.try_clone()?;
        let buffers = ReadBuffers::allocate(depth, at)?;
        let mut context: c_ulong = 0;
        // SAFETY: the call writes the context ID.
        check_return_value(unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) })?;
        let (requests, events) = (vec![Iocb::default(); depth], vec![IoEvent::default(); depth]);
        Ok(LinuxAioQueue { context, buffers, requests, pending_slots: Vec::new(), events, file })
    }

    /// Submits the pending requests. Those that the kernel cannot accept before reads in flight are complete remain
    /// pending.
    fn submit(&mut self) -> io::Result<()> {
        while !self.pending_slots.is_empty() {
            let requests: Vec<*const Iocb> =
                self.pending_slots.iter().map(|&slot| &raw const self.requests[slot]).collect();
            // SAFETY: the list has the stated length. The kernel copies each request, and writes to pages that were
            // lent to it.
            let taken = check_return_value(unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, requests.len(), requests.as_ptr())
            });
            match taken {
                Ok(taken) => drop(self.pending_slots.drain(..taken)),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The kernel lacks a resource that reads in flight will free.
                    Some(libc::EAGAIN) if self.buffers.num_lent_pages() > self.pending_slots.len() => return Ok(()),
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Waits until some of the `out` reads in flight are complete, and appends them to `done`.
    fn collect_completions(&mut self, out: usize, done: &mut Vec<CompletedRead>) -> io::Result<()> {
        let least = super::min_completions_to_await(out) as c_long;
        let forever = std::ptr::null::<libc::timespec>();
        let events = self.events.as_mut_ptr();
        let ended = loop {
            // SAFETY: `events` has space for the stated number of events.
            let ended = check_return_value(unsafe {
                libc::syscall(libc::SYS_io_getevents, self.context, least, self.events.len(), events, forever)
            });
            match ended {
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                ended => break ended?,
            }
        };
        for event in &self.events[..ended] {
            let slot = event.data as usize;
            // SAFETY: the kernel reports that this read is complete.
            unsafe { self.buffers.take_page_back(slot) };
            let read = usize::try_from(event.result);
            done.push(CompletedRead {
                slot,
                result: read.map_err(|_| io::Error::from_raw_os_error(-event.result as i32)),
            });
        }
        Ok(())
    }
}

impl PageReadQueue for LinuxAioQueue {
    fn request_page(&mut self, slot: usize, page: u64) {
        self.requests[slot] = Iocb {
            data: slot as u64,
            opcode: IOCB_CMD_PREAD,
            file: self.file.as_raw_fd() as u32,
            buffer: self.buffers.lend_page_to_kernel(slot) as u64,
            bytes: PAGE_BYTES as u64,
            offset: (page * PAGE_BYTES as u64) as i64,
            ..Iocb::default()
        };
        self.pending_slots.push(slot);
    }

    fn wait_for_reads(&mut self, done: &mut Vec<CompletedRead>) -> io::Result<()> {
        self.submit()?;
        match self.buffers.num_lent_pages() {
            0 => Ok(()),
            out => self.collect_completions(out, done),
        }
    }

    fn page_in_slot(&self, slot: usize) -> &Page {
        self.buffers.borrow_page(slot)
    }
}

impl Drop for LinuxAioQueue {
    fn drop(&mut self) {
        // SAFETY: the context belongs to this queue; the call waits until none of its reads is in flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
