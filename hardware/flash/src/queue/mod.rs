//! Queues of page reads that keep many reads in flight.

mod read_buffers;
mod io_uring_queue;
mod linux_aio_queue;
mod pread_queue;

use std::fmt::Debug;
use std::fs::File;
use std::io;

use genuma_machine::placement::{self, MemoryPlacement};

use crate::format::Page;
pub(crate) use io_uring_queue::IoUringQueue;
pub(crate) use linux_aio_queue::LinuxAioQueue;
pub(crate) use pread_queue::PreadQueue;

/// Method by which pages are read from a table file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageReadMethod {
    /// Automatic: the first of io_uring, Linux AIO and pread that the system permits.
    #[default]
    Auto,
    /// io_uring: asynchronous reads with a registered file and, if the kernel permits it, registered buffers.
    IoUring,
    /// Linux AIO (io_submit and io_getevents): asynchronous reads. Permitted in containers that forbid io_uring.
    LinuxAio,
    /// pread(2): one synchronous read after the other.
    Pread,
    /// Copies from memory: all pages are loaded when the table is opened.
    Memory,
}

impl PageReadMethod {
    /// Name of the method, such as `io_uring`.
    pub fn method_name(self) -> &'static str {
        match self {
            PageReadMethod::Auto => "auto",
            PageReadMethod::IoUring => "io_uring",
            PageReadMethod::LinuxAio => "libaio",
            PageReadMethod::Pread => "pread",
            PageReadMethod::Memory => "memory",
        }
    }
}

/// A page read that is complete.
#[derive(Debug)]
pub(crate) struct CompletedRead {
    /// Slot into whose buffer the page was read.
    pub slot: usize,
    /// Number of bytes read, or the error of the read.
    pub result: io::Result<usize>,
}

/// A queue of page reads into buffers that the queue owns; each buffer is a slot. Page numbers count from the start of
/// the file.
pub(crate) trait PageReadQueue: Debug {
    /// Requests that a page is read into a slot. The read may start only when [`PageReadQueue::wait_for_reads`] is
    /// called.
    ///
    /// # Panics
    /// When a read into the same slot is in flight.
    fn request_page(&mut self, slot: usize, page: u64);

    /// Waits until some of the requested reads are complete, and appends them to `done`. Returns at once if nothing was
    /// requested.
    ///
    /// # Errors
    /// The kernel accepts no more calls. The queue must be dropped.
    fn wait_for_reads(&mut self, done: &mut Vec<CompletedRead>) -> io::Result<()>;

    /// The page that was read into a slot.
    ///
    /// # Panics
    /// When a read into the slot is in flight.
    fn page_in_slot(&self, slot: usize) -> &Page;
}

/// Number of reads to wait for if `under_way` are in flight: a quarter. Waiting for each single read would cost one
/// wake-up per read; meanwhile the device works on the others.
fn min_completions_to_await(under_way: usize) -> usize {
    (under_way / 4).max(1)
}

/// Why a queue could not be created.
#[derive(Debug)]
pub(crate) enum QueueError {
    /// The system does not permit this method of reading.
    System(io::Error),
    /// The memory for the read buffers cannot be allocated.
    Memory(placement::Error),
}

impl From<io::Error> for QueueError {
    fn from(error: io::Error) -> Self {
        QueueError::System(error)
    }
}

impl From<placement::Error> for QueueError {
    fn from(error: placement::Error) -> Self {
        QueueError::Memory(error)
    }
}

/// Opens a queue for up to `depth` reads of `file` in flight, with the buffers in memory placed as `at` says. The
/// methods `Auto` and `Memory` open a queue with pread.
pub(crate) fn open_page_read_queue(
    access: PageReadMethod,
    file: &File,
    depth: usize,
    at: &MemoryPlacement,
) -> Result<Box<dyn PageReadQueue>, QueueError> {
    Ok(match access {
        PageReadMethod::IoUring => Box::new(IoUringQueue::create(file, depth, at)?),
        PageReadMethod::LinuxAio => Box::new(LinuxAioQueue::create(file, depth, at)?),
        _ => Box::new(PreadQueue::create(file, depth, at)?),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use bytemuck::Zeroable;
    use genuma_machine::placement::{MemoryPolicy, PageSize};

    use super::*;
    use crate::format::PAGE_BYTES;

    fn all(test: impl Fn(&str, Box<dyn PageReadQueue>), file: &File, depth: usize) {
        let at = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base };
        for access in [PageReadMethod::IoUring, PageReadMethod::LinuxAio, PageReadMethod::Pread] {
            match open_page_read_queue(access, file, depth, &at) {
                Ok(queue) => test(access.method_name(), queue),
                Err(QueueError::System(error)) => {
                    writeln!(io::stderr(), "skipped: {}: {error}", access.method_name()).expect("stderr");
                }
                Err(QueueError::Memory(error)) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn every_way_reads_every_page_into_the_slot_it_was_asked_for() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let pages: Vec<Page> = (0..100).map(|page| Page([page; PAGE_BYTES])).collect();
        fs::write(&path, bytemuck::cast_slice(&pages)).unwrap();
        let file = crate::file::open_for_direct_reading(path.path()).unwrap();
        all(
            |name, mut queue| {
                let (mut free, mut at) = (vec![0, 1, 2, 3, 4, 5, 6], [0; 7]);
                let mut ahead: Vec<u64> = (0..300).map(|i| i * 37 % 100).collect();
                let (mut seen, mut done) = (0, Vec::new());
                while seen < 300 {
                    while let (Some(&page), Some(&slot)) = (ahead.last(), free.last()) {
                        queue.request_page(slot, page);
                        at[slot] = page;
                        ahead.pop();
                        free.pop();
                    }
                    queue.wait_for_reads(&mut done).unwrap();
                    assert!(!done.is_empty());
                    for CompletedRead { slot, result: read } in done.drain(..) {
                        assert_eq!(read.unwrap(), PAGE_BYTES, "{name}");
                        assert!(queue.page_in_slot(slot).0.iter().all(|&byte| u64::from(byte) == at[slot]), "{name}");
                        free.push(slot);
                        seen += 1;
                    }
                }
                queue.wait_for_reads(&mut done).unwrap();
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
        let file = crate::file::open_for_direct_reading(path.path()).unwrap();
        all(
            |name, mut queue| {
                queue.request_page(0, 1);
                let mut done = Vec::new();
                queue.wait_for_reads(&mut done).unwrap();
                assert_eq!(done[0].result.as_ref().unwrap(), &0, "{name}");
                queue.request_page(0, 0);
            },
            &file,
            2,
        );
    }
}
