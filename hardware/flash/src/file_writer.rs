//! Writes a table file on a separate thread, so that one buffer is filled while another is written. The buffers are
//! large and aligned, because each direct I/O write waits for the disk.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use bytemuck::Zeroable;
use genuma_machine::placement::{self, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice};
use genuma_work::publish::PartialFile;

use crate::Error;
use crate::file;
use crate::format::{self, FileSection, PAGE_BYTES, Page};

/// Number of pages in a write buffer: 1 MiB.
const PAGES_PER_WRITE: usize = 256;

/// Number of buffers: one is filled while the other is written.
const NUM_BUFFERS: usize = 2;

/// A buffer whose pages are to be written, and the number of its first page in the file.
struct FullBuffer {
    buffer: PlacedSlice<Page>,
    num_pages: usize,
    first_page: u64,
}

/// A section (index, filter or hot entries) that is being written after the pages of entries.
pub(crate) struct SectionInProgress {
    offset: u64,
    bytes: u64,
    checksum: format::SectionChecksum,
}

/// Queues of full and of empty write buffers of the writer thread, shared by several threads that fill buffers.
#[derive(Debug)]
pub(crate) struct SharedWriteBufferQueues<'s> {
    full_buffers: Sender<FullBuffer>,
    empty_buffers: Mutex<&'s mut Receiver<PlacedSlice<Page>>>,
}

impl SharedWriteBufferQueues<'_> {
    /// Allocates an additional buffer for a thread that fills pages.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn allocate_write_buffer() -> Result<PlacedSlice<Page>, placement::Error> {
        PlacedSlice::new_zeroed(
            PAGES_PER_WRITE,
            &MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base },
        )
    }

    /// Waits for a free buffer, queues the first `full` pages of `buffer` for writing at page `first` of the file, and
    /// replaces `buffer` by the free one, whose content is undefined. Returns false if the writer thread has ended.
    pub(crate) fn queue_pages_and_swap_buffer(&self, buffer: &mut PlacedSlice<Page>, full: usize, first: u64) -> bool {
        let Ok(next) = self.empty_buffers.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return false };
        let buffer = std::mem::replace(buffer, next);
        self.full_buffers.send(FullBuffer { buffer, num_pages: full, first_page: first }).is_ok()
    }
}

/// Writes the pages and sections of a table to a partial file, which must be published afterwards.
#[derive(Debug)]
pub(crate) struct TableFileWriter {
    partial: PartialFile,
    /// The buffer that is being filled. After the current page it contains zeros.
    buffer: PlacedSlice<Page>,
    /// Number of complete pages in the buffer.
    num_full_pages: usize,
    /// Number of pages of the file before this buffer.
    first_page: u64,
    /// Receives buffers that have been written and can be filled again.
    empty_buffers: Receiver<PlacedSlice<Page>>,
    writer_thread: WriterThread,
}

/// The thread that writes full buffers to the file.
#[derive(Debug)]
struct WriterThread {
    /// Channel of full buffers to the writer thread; `None` when no more buffers follow.
    full_buffers: Option<Sender<FullBuffer>>,
    thread: Option<JoinHandle<io::Result<File>>>,
}

impl WriterThread {
    /// Waits until all queued buffers are written, and returns the file.
    fn join(&mut self) -> io::Result<File> {
        self.full_buffers = None;
        let ended = self.thread.take().map(JoinHandle::join);
        let ended = ended.unwrap_or_else(|| Ok(Err(io::Error::other("an earlier write failed"))));
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        // An error has been reported already, or nobody needs it.
        let _ = self.join();
    }
}

impl TableFileWriter {
    /// Memory of all write buffers of one writer, in bytes.
    pub(crate) const WRITE_BUFFER_MEMORY_BYTES: u64 = (NUM_BUFFERS * PAGES_PER_WRITE * PAGE_BYTES) as u64;

    /// Creates the partial file for the future table at `path`, in the same folder.
    ///
    /// # Errors
    /// There is no memory, the file cannot be created or is a pipe or device, or no thread can be started.
    pub(crate) fn create(path: &Path) -> Result<TableFileWriter, Error> {
        let failed = |source| Error::Write { path: path.to_path_buf(), source };
        let partial = PartialFile::create(path)?;
        let no_file = || failed(io::Error::other("a table has to be a file, not a pipe or a device"));
        let file = file::open_for_direct_writing(partial.partial_path().ok_or_else(no_file)?).map_err(failed)?;
        let at = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base };
        let buffer = || {
            PlacedSlice::new_zeroed(PAGES_PER_WRITE, &at)
                .map_err(|source| Error::NotEnoughMemory { path: path.to_path_buf(), source })
        };
        let (pieces, to_write) = channel::<FullBuffer>();
        let (written, empty) = channel();
        for _ in 1..NUM_BUFFERS {
            // The receiver is in this function.
            let _ = written.send(buffer()?);
        }
        let buffer = buffer()?;
        let write = move || {
            for FullBuffer { buffer, num_pages: full, first_page: first } in to_write {
                file::write_pages(&file, &buffer[..full], first)?;
                if written.send(buffer).is_err() {
                    break;
                }
            }
            Ok(file)
        };
        let thread = thread::Builder::new().name("table".to_owned()).spawn(write).map_err(failed)?;
        let writing = WriterThread { full_buffers: Some(pieces), thread: Some(thread) };
        Ok(TableFileWriter {
            partial,
            buffer,
            num_full_pages: 0,
            first_page: 0,
            empty_buffers: empty,
            writer_thread: writing,
        })
    }

    /// Final path of the table.
    pub(crate) fn final_path(&self) -> &Path {
        self.partial.final_path()
    }

    /// The page that is being filled. A new page contains zeros.
    #[inline]
    pub(crate) fn current_page(&mut self) -> &mut Page {
        &mut self.buffer[self.num_full_pages]
    }

    /// Number of the page that is being filled, from 0, in the file.
    pub(crate) fn current_page_number(&self) -> u64 {
        self.first_page + self.num_full_pages as u64
    }

    /// Completes the current page and starts the next one.
    ///
    /// # Errors
    /// The disk is full or writing fails.
    pub(crate) fn finish_current_page(&mut self) -> Result<(), Error> {
        self.num_full_pages += 1;
        if self.num_full_pages == self.buffer.len() { self.write_full_pages() } else { Ok(()) }
    }

    /// Queues the complete pages of the buffer for writing.
    fn write_full_pages(&mut self) -> Result<(), Error> {
        let Ok(mut next) = self.empty_buffers.recv() else { return self.join_writer_thread().map(drop) };
        next.fill(Page::zeroed());
        let piece = FullBuffer {
            buffer: std::mem::replace(&mut self.buffer, next),
            num_pages: std::mem::take(&mut self.num_full_pages),
            first_page: self.first_page,
        };
        self.first_page += piece.num_pages as u64;
        let taken = self.writer_thread.full_buffers.as_ref().is_some_and(|pieces| pieces.send(piece).is_ok());
        if taken { Ok(()) } else { self.join_writer_thread().map(drop) }
    }

    /// Waits until all queued buffers are written, and returns the file.
    fn join_writer_thread(&mut self) -> Result<File, Error> {
        self.writer_thread.join().map_err(|source| Error::Write { path: self.final_path().to_path_buf(), source })
    }

    /// Queues all complete pages, and returns access to the writer thread for several threads that write the following
    /// pages.
    ///
    /// # Errors
    /// The disk is full or writing fails.
    pub(crate) fn share_writer_thread(&mut self) -> Result<SharedWriteBufferQueues<'_>, Error> {
        self.write_full_pages()?;
        match &self.writer_thread.full_buffers {
            Some(pieces) => Ok(SharedWriteBufferQueues {
                full_buffers: pieces.clone(),
                empty_buffers: Mutex::new(&mut self.empty_buffers),
            }),
            None => Err(self.join_writer_thread().err().unwrap_or_else(|| self.earlier_write_error())),
        }
    }

    /// Advances the current position by `pages` pages that other threads have written. `refused` is true if one of
    /// these threads could not queue its pages.
    ///
    /// # Errors
    /// `refused` is true: the disk is full or writing failed.
    pub(crate) fn skip_pages_of_other_threads(&mut self, pages: u64, refused: bool) -> Result<(), Error> {
        self.first_page += pages;
        if refused {
            Err(self.join_writer_thread().err().unwrap_or_else(|| self.earlier_write_error()))
        } else {
            Ok(())
        }
    }

    fn earlier_write_error(&self) -> Error {
        Error::Write { path: self.final_path().to_path_buf(), source: io::Error::other("an earlier write failed") }
    }

    /// Waits until all complete pages are written, and opens the file for reading.
    ///
    /// # Errors
    /// The disk is full, writing fails, or the file cannot be opened.
    pub(crate) fn reopen_for_reading(&mut self) -> Result<File, Error> {
        // A buffer comes back when it has been written. When all have been queued, all pages before them are written.
        for _ in 0..NUM_BUFFERS {
            self.write_full_pages()?;
        }
        let path = self.partial.partial_path().unwrap_or(self.final_path());
        file::open_for_direct_reading(path)
            .map_err(|source| Error::Open { path: self.final_path().to_path_buf(), source })
    }

    /// Begins a section at the start of the next page.
    pub(crate) fn begin_section(&self) -> SectionInProgress {
        SectionInProgress {
            offset: self.current_page_number() * PAGE_BYTES as u64,
            bytes: 0,
            checksum: format::SectionChecksum::default(),
        }
    }

    /// Appends bytes to an open section.
    ///
    /// # Errors
    /// The disk is full or writing fails.
    pub(crate) fn append_to_section(&mut self, part: &mut SectionInProgress, mut bytes: &[u8]) -> Result<(), Error> {
        part.checksum.add_bytes(bytes);
        while !bytes.is_empty() {
            let at = part.bytes as usize % PAGE_BYTES;
            let (now, rest) = bytes.split_at(bytes.len().min(PAGE_BYTES - at));
            self.current_page().0[at..at + now.len()].copy_from_slice(now);
            part.bytes += now.len() as u64;
            bytes = rest;
            if at + now.len() == PAGE_BYTES {
                self.finish_current_page()?;
            }
        }
        Ok(())
    }

    /// Ends a section. The rest of its last page is filled with zeros.
    ///
    /// # Errors
    /// The disk is full or writing fails.
    pub(crate) fn end_section(&mut self, part: &SectionInProgress) -> Result<FileSection, Error> {
        if !part.bytes.is_multiple_of(PAGE_BYTES as u64) {
            self.finish_current_page()?;
        }
        Ok(FileSection { offset: part.offset, bytes: part.bytes, checksum: part.checksum.checksum() })
    }

    /// Writes a section that consists of the given byte slices.
    ///
    /// # Errors
    /// The disk is full or writing fails.
    pub(crate) fn write_section(&mut self, pieces: &[&[u8]]) -> Result<FileSection, Error> {
        let mut part = self.begin_section();
        pieces.iter().try_for_each(|bytes| self.append_to_section(&mut part, bytes))?;
        self.end_section(&part)
    }

    /// Writes the header page and returns the complete partial file, which the caller must publish.
    ///
    /// # Errors
    /// The disk is full or writing fails.
    pub(crate) fn write_header_and_finish(mut self, header: &Page) -> Result<PartialFile, Error> {
        self.write_full_pages()?;
        let file = self.join_writer_thread()?;
        self.buffer[0] = *header;
        match file::write_pages(&file, &self.buffer[..1], 0) {
            Ok(()) => Ok(self.partial),
            Err(source) => Err(Error::Write { path: self.final_path().to_path_buf(), source }),
        }
    }
}
