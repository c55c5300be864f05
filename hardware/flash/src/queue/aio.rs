//! Pages by io_submit and io_getevents, the calls under libaio.
//!
//! The kernel is given addresses to write to, which safe Rust cannot check; [`Buffers`] keeps account of them. The C library has no
//! wrapper, so the calls are made by number; structures are those of `include/uapi/linux/aio_abi.h`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use genuma_machine::placement::Placement;
use libc::{c_long, c_ulong};

use super::buffers::Buffers;
use super::{Done, Queue, Refusal};
use crate::format::{PAGE, Page};

/// `IOCB_CMD_PREAD`.
const PREAD: u16 = 0;

/// `struct iocb`, little-endian.
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

/// `struct io_event`.
#[derive(Debug, Clone, Default)]
#[repr(C)]
struct Event {
    data: u64,
    request: u64,
    result: i64,
    result2: i64,
}

/// See the module.
#[derive(Debug)]
pub struct Aio {
    context: c_ulong,
    buffers: Buffers,
    /// The request of each slot.
    requests: Vec<Iocb>,
    /// Slots whose requests are not yet handed over.
    asked: Vec<usize>,
    events: Vec<Event>,
    file: File,
}

fn checked(returned: c_long) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

impl Aio {
    /// A queue of `depth` reads.
    pub fn new(file: &File, depth: usize, at: &Placement) -> Result<Aio, Refusal> {
        let file = file.try_clone()?;
        let buffers = Buffers::new(depth, at)?;
        let mut context: c_ulong = 0;
        // SAFETY: the call writes the context's number.
        checked(unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) })?;
        let (requests, events) = (vec![Iocb::default(); depth], vec![Event::default(); depth]);
        Ok(Aio { context, buffers, requests, asked: Vec::new(), events, file })
    }

    /// Hands the requests over; the kernel may take only some.
    fn submit(&mut self) -> io::Result<()> {
        while !self.asked.is_empty() {
            let requests: Vec<*const Iocb> =
                self.asked.iter().map(|&slot| &raw const self.requests[slot]).collect();
            // SAFETY: the list is as long as said; the kernel copies each request, and writes to pages that were given to it.
            let taken = checked(unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, requests.len(), requests.as_ptr())
            });
            match taken {
                Ok(taken) => drop(self.asked.drain(..taken)),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The kernel is short of something that reads under way will give back.
                    Some(libc::EAGAIN) if self.buffers.out() > self.asked.len() => return Ok(()),
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Waits for some of `out` reads to end.
    fn reap(&mut self, out: usize, done: &mut Vec<Done>) -> io::Result<()> {
        let least = super::batch(out) as c_long;
        let forever = std::ptr::null::<libc::timespec>();
        let events = self.events.as_mut_ptr();
        let ended = loop {
            // SAFETY: `events` has room for as many as said.
            let ended = checked(unsafe {
                libc::syscall(libc::SYS_io_getevents, self.context, least, self.events.len(), events, forever)
            });
            match ended {
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                ended => break ended?,
            }
        };
        for event in &self.events[..ended] {
            let slot = event.data as usize;
            // SAFETY: the kernel says that this read has ended.
            unsafe { self.buffers.take_back(slot) };
            let read = usize::try_from(event.result);
            done.push(Done {
                slot,
                read: read.map_err(|_| io::Error::from_raw_os_error(-event.result as i32)),
            });
        }
        Ok(())
    }
}

impl Queue for Aio {
    fn push(&mut self, slot: usize, page: u64) {
        self.requests[slot] = Iocb {
            data: slot as u64,
            opcode: PREAD,
            file: self.file.as_raw_fd() as u32,
            buffer: self.buffers.give(slot) as u64,
            bytes: PAGE as u64,
            offset: (page * PAGE as u64) as i64,
            ..Iocb::default()
        };
        self.asked.push(slot);
    }

    fn wait(&mut self, done: &mut Vec<Done>) -> io::Result<()> {
        self.submit()?;
        match self.buffers.out() {
            0 => Ok(()),
            out => self.reap(out, done),
        }
    }

    fn page(&self, slot: usize) -> &Page {
        self.buffers.page(slot)
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: the context is ours; the call waits until no read of it is under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
