//! Reads of single pages, many under way at once.

mod buffers;
mod ring;
mod aio;
mod pread;

use std::fmt::Debug;
use std::fs::File;
use std::io;

use genuma_machine::placement::{self, Placement};

use crate::format::Page;
pub use aio::Aio;
pub use pread::Pread;
pub use ring::Ring;

/// How pages of entries are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// The first of io_uring, libaio and pread that the system permits.
    #[default]
    Auto,
    /// io_uring: asynchronous, with buffers and file known to the kernel beforehand.
    Ring,
    /// The kernel's older asynchronous calls, io_submit and io_getevents. Containers that forbid io_uring permit them.
    Aio,
    /// One pread after the other.
    Pread,
    /// Not at all: all pages are brought into memory when the table is opened.
    Memory,
}

impl Access {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Access::Auto => "auto",
            Access::Ring => "io_uring",
            Access::Aio => "libaio",
            Access::Pread => "pread",
            Access::Memory => "memory",
        }
    }
}

/// A read that has ended.
#[derive(Debug)]
pub struct Done {
    /// The buffer it went to.
    pub slot: usize,
    /// Bytes read, or why there are none.
    pub read: io::Result<usize>,
}

/// Reads of pages into buffers of its own. Numbers of pages are those of the file.
pub trait Queue: Debug {
    /// Asks for a page. It may not be read before [`Queue::wait`].
    ///
    /// # Panics
    /// When a read into the same slot is under way.
    fn push(&mut self, slot: usize, page: u64);

    /// Waits until some of the pages asked for are there, and notes them. With nothing asked for it returns at once.
    ///
    /// # Errors
    /// The kernel takes no more calls. All that is left to do is to drop the queue.
    fn wait(&mut self, done: &mut Vec<Done>) -> io::Result<()>;

    /// What was read into a slot.
    ///
    /// # Panics
    /// When a read into it is under way.
    fn page(&self, slot: usize) -> &Page;
}

/// How many of so many reads under way are waited for: a quarter. One by one costs a wake-up each, and the device works on the others
/// meanwhile.
fn batch(under_way: usize) -> usize {
    (under_way / 4).max(1)
}

/// Why a way of reading is not to be had.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The system does not let us.
    System(io::Error),
    /// There is no memory.
    Memory(placement::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Refusal::System(error)
    }
}

impl From<placement::Error> for Refusal {
    fn from(error: placement::Error) -> Self {
        Refusal::Memory(error)
    }
}

/// A queue of `depth` reads of `file`, with buffers placed as said.
pub fn make(access: Access, file: &File, depth: usize, at: &Placement) -> Result<Box<dyn Queue>, Refusal> {
    Ok(match access {
        Access::Ring => Box::new(Ring::new(file, depth, at)?),
        Access::Aio => Box::new(Aio::new(file, depth, at)?),
        _ => Box::new(Pread::new(file, depth, at)?),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use bytemuck::Zeroable;
    use genuma_machine::placement::{Pages, Policy};

    use super::*;
    use crate::format::PAGE;

    fn all(test: impl Fn(&str, Box<dyn Queue>), file: &File, depth: usize) {
        let at = Placement { policy: Policy::Local, pages: Pages::Base };
        for access in [Access::Ring, Access::Aio, Access::Pread] {
            match make(access, file, depth, &at) {
                Ok(queue) => test(access.name(), queue),
                Err(Refusal::System(error)) => {
                    writeln!(io::stderr(), "skipped: {}: {error}", access.name()).expect("stderr");
                }
                Err(Refusal::Memory(error)) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn every_way_reads_every_page_into_the_slot_it_was_asked_for() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let pages: Vec<Page> = (0..100).map(|page| Page([page; PAGE])).collect();
        fs::write(&path, bytemuck::cast_slice(&pages)).unwrap();
        let file = crate::file::open_direct(path.path()).unwrap();
        all(
            |name, mut queue| {
                let (mut free, mut at) = (vec![0, 1, 2, 3, 4, 5, 6], [0; 7]);
                let mut ahead: Vec<u64> = (0..300).map(|i| i * 37 % 100).collect();
                let (mut seen, mut done) = (0, Vec::new());
                while seen < 300 {
                    while let (Some(&page), Some(&slot)) = (ahead.last(), free.last()) {
                        queue.push(slot, page);
                        at[slot] = page;
                        ahead.pop();
                        free.pop();
                    }
                    queue.wait(&mut done).unwrap();
                    assert!(!done.is_empty());
                    for Done { slot, read } in done.drain(..) {
                        assert_eq!(read.unwrap(), PAGE, "{name}");
                        assert!(queue.page(slot).0.iter().all(|&byte| u64::from(byte) == at[slot]), "{name}");
                        free.push(slot);
                        seen += 1;
                    }
                }
                queue.wait(&mut done).unwrap();
                assert!(done.is_empty());
            },
            &file,
            7,
        );
    }

    #[test]
    fn a_page_after_the_end_is_short_and_a_queue_with_reads_under_way_may_be_dropped() {
        let path = tempfile::NamedTempFile::new().unwrap();
        fs::write(&path, bytemuck::bytes_of(&Page::zeroed())).unwrap();
        let file = crate::file::open_direct(path.path()).unwrap();
        all(
            |name, mut queue| {
                queue.push(0, 1);
                let mut done = Vec::new();
                queue.wait(&mut done).unwrap();
                assert_eq!(done[0].read.as_ref().unwrap(), &0, "{name}");
                queue.push(0, 0);
            },
            &file,
            2,
        );
    }
}
