//! A partial file, written from its start to its end in large aligned pieces, by a thread of its own: past the kernel's cache a write
//! takes as long as the disk does.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use bytemuck::Zeroable;
use genuma_machine::placement::{self, Pages, Placed, Placement, Policy};
use genuma_work::publish::Partial;

use crate::Error;
use crate::file;
use crate::format::{self, PAGE, Page, Section};

/// Pages written at once: 1 MiB.
const AT_ONCE: usize = 256;

/// Buffers: one is filled while the other is written.
const BUFFERS: usize = 2;

/// A buffer with full pages, and the number of the first in the file.
struct Piece {
    buffer: Placed<Page>,
    full: usize,
    first: u64,
}

/// A part after the pages that is being written.
pub(crate) struct Part {
    offset: u64,
    bytes: u64,
    checksum: format::Checksum,
}

/// Ways to the thread that writes, for several threads that fill buffers.
#[derive(Debug)]
pub(crate) struct Ways<'s> {
    pieces: Sender<Piece>,
    empty: Mutex<&'s mut Receiver<Placed<Page>>>,
}

impl Ways<'_> {
    /// A buffer more, for one thread.
    ///
    /// # Errors
    /// There is no memory.
    pub fn buffer() -> Result<Placed<Page>, placement::Error> {
        Placed::zeroed(AT_ONCE, &Placement { policy: Policy::Local, pages: Pages::Base })
    }

    /// Has so many pages of a buffer written, and puts another in its place, with anything in it. Whether that could be done.
    pub fn write(&self, buffer: &mut Placed<Page>, full: usize, first: u64) -> bool {
        let Ok(next) = self.empty.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return false };
        let buffer = std::mem::replace(buffer, next);
        self.pieces.send(Piece { buffer, full, first }).is_ok()
    }
}

/// The file, which is partial until it is published.
#[derive(Debug)]
pub(crate) struct Sink {
    partial: Partial,
    /// Zero from the page that is being filled on.
    buffer: Placed<Page>,
    /// Pages of the buffer that are full.
    full: usize,
    /// Pages before those of the buffer.
    before: u64,
    /// Written buffers.
    empty: Receiver<Placed<Page>>,
    writing: Writing,
}

/// The thread that writes, and gives the file back.
#[derive(Debug)]
struct Writing {
    /// Gone when all has been handed over.
    pieces: Option<Sender<Piece>>,
    thread: Option<JoinHandle<io::Result<File>>>,
}

impl Writing {
    /// Waits until all is written that was handed over.
    fn end(&mut self) -> io::Result<File> {
        self.pieces = None;
        let ended = self.thread.take().map(JoinHandle::join);
        let ended = ended.unwrap_or_else(|| Ok(Err(io::Error::other("writing failed before"))));
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // What failed was told, or nobody asks.
        let _ = self.end();
    }
}

impl Sink {
    /// Bytes of all buffers.
    pub const MEMORY: u64 = (BUFFERS * AT_ONCE * PAGE) as u64;

    /// Starts the partial file of what will be `path`, beside it.
    ///
    /// # Errors
    /// There is no memory, or the file cannot be made.
    pub fn create(path: &Path) -> Result<Sink, Error> {
        let failed = |source| Error::Write { path: path.to_path_buf(), source };
        let partial = Partial::create(path)?;
        let no_file = || failed(io::Error::other("a table has to be a file, not a pipe or a device"));
        let file = file::write_direct(partial.waits_at().ok_or_else(no_file)?).map_err(failed)?;
        let at = Placement { policy: Policy::Local, pages: Pages::Base };
        let buffer = || {
            Placed::zeroed(AT_ONCE, &at).map_err(|source| Error::Memory { path: path.to_path_buf(), source })
        };
        let (pieces, to_write) = channel::<Piece>();
        let (written, empty) = channel();
        for _ in 1..BUFFERS {
            // The other end is in this function.
            let _ = written.send(buffer()?);
        }
        let buffer = buffer()?;
        let write = move || {
            for Piece { buffer, full, first } in to_write {
                file::write_pages(&file, &buffer[..full], first)?;
                if written.send(buffer).is_err() {
                    break;
                }
            }
            Ok(file)
        };
        let thread = thread::Builder::new().name("table".to_owned()).spawn(write).map_err(failed)?;
        let writing = Writing { pieces: Some(pieces), thread: Some(thread) };
        Ok(Sink { partial, buffer, full: 0, before: 0, empty, writing })
    }

    /// What the file will be.
    pub fn path(&self) -> &Path {
        self.partial.path()
    }

    /// The page that is being filled, zero at first.
    #[inline]
    pub fn page(&mut self) -> &mut Page {
        &mut self.buffer[self.full]
    }

    /// Its number in the file.
    pub(crate) fn page_number(&self) -> u64 {
        self.before + self.full as u64
    }

    /// Goes on to the next page.
    ///
    /// # Errors
    /// The disk is full or refuses.
    pub(crate) fn next_page(&mut self) -> Result<(), Error> {
        self.full += 1;
        if self.full == self.buffer.len() { self.hand_over() } else { Ok(()) }
    }

    /// Has the full pages written.
    fn hand_over(&mut self) -> Result<(), Error> {
        let Ok(mut next) = self.empty.recv() else { return self.end().map(drop) };
        next.fill(Page::zeroed());
        let piece = Piece {
            buffer: std::mem::replace(&mut self.buffer, next),
            full: std::mem::take(&mut self.full),
            first: self.before,
        };
        self.before += piece.full as u64;
        let taken = self.writing.pieces.as_ref().is_some_and(|pieces| pieces.send(piece).is_ok());
        if taken { Ok(()) } else { self.end().map(drop) }
    }

    /// Waits until all is written that was handed over.
    fn end(&mut self) -> Result<File, Error> {
        self.writing.end().map_err(|source| Error::Write { path: self.path().to_path_buf(), source })
    }

    /// Has all full pages written, and lets several threads write others.
    ///
    /// # Errors
    /// The disk is full or refuses.
    pub fn ways(&mut self) -> Result<Ways<'_>, Error> {
        self.hand_over()?;
        match &self.writing.pieces {
            Some(pieces) => Ok(Ways { pieces: pieces.clone(), empty: Mutex::new(&mut self.empty) }),
            None => Err(self.end().err().unwrap_or_else(|| self.ended())),
        }
    }

    /// Goes on after so many pages that other threads wrote; `refused` when they could not.
    ///
    /// # Errors
    /// The disk is full or refuses, to them already.
    pub fn skip(&mut self, pages: u64, refused: bool) -> Result<(), Error> {
        self.before += pages;
        if refused { Err(self.end().err().unwrap_or_else(|| self.ended())) } else { Ok(()) }
    }

    fn ended(&self) -> Error {
        Error::Write { path: self.path().to_path_buf(), source: io::Error::other("writing failed before") }
    }

    /// Waits until all full pages are written, and opens the file to read them again.
    ///
    /// # Errors
    /// The disk is full or refuses.
    pub fn written(&mut self) -> Result<File, Error> {
        // A buffer comes back when it is written: once all have gone, all before is.
        for _ in 0..BUFFERS {
            self.hand_over()?;
        }
        let path = self.partial.waits_at().unwrap_or(self.path());
        file::open_direct(path).map_err(|source| Error::Open { path: self.path().to_path_buf(), source })
    }

    /// Begins a part at the page that comes next.
    pub fn part(&self) -> Part {
        Part { offset: self.page_number() * PAGE as u64, bytes: 0, checksum: format::Checksum::default() }
    }

    /// Writes more bytes of a part.
    ///
    /// # Errors
    /// The disk is full or refuses.
    pub fn put(&mut self, part: &mut Part, mut bytes: &[u8]) -> Result<(), Error> {
        part.checksum.add(bytes);
        while !bytes.is_empty() {
            let at = part.bytes as usize % PAGE;
            let (now, rest) = bytes.split_at(bytes.len().min(PAGE - at));
            self.page().0[at..at + now.len()].copy_from_slice(now);
            part.bytes += now.len() as u64;
            bytes = rest;
            if at + now.len() == PAGE {
                self.next_page()?;
            }
        }
        Ok(())
    }

    /// Ends a part, and leaves zeros in the rest of its last page.
    ///
    /// # Errors
    /// The disk is full or refuses.
    pub(crate) fn end_part(&mut self, part: &Part) -> Result<Section, Error> {
        if !part.bytes.is_multiple_of(PAGE as u64) {
            self.next_page()?;
        }
        Ok(Section { offset: part.offset, bytes: part.bytes, checksum: part.checksum.finish() })
    }

    /// Writes a part whose bytes are there.
    ///
    /// # Errors
    /// The disk is full or refuses.
    pub fn section(&mut self, pieces: &[&[u8]]) -> Result<Section, Error> {
        let mut part = self.part();
        pieces.iter().try_for_each(|bytes| self.put(&mut part, bytes))?;
        self.end_part(&part)
    }

    /// Writes the header: what is left to be done is to publish.
    ///
    /// # Errors
    /// The disk is full or refuses.
    pub fn finish(mut self, header: &Page) -> Result<Partial, Error> {
        self.hand_over()?;
        let file = self.end()?;
        self.buffer[0] = *header;
        match file::write_pages(&file, &self.buffer[..1], 0) {
            Ok(()) => Ok(self.partial),
            Err(source) => Err(Error::Write { path: self.path().to_path_buf(), source }),
        }
    }
}
