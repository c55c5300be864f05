//! A partial file, written from its start to its end in large aligned pieces, by a thread of its own: past the kernel's cache a write
//! takes as long as the disk does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use bytemuck::Zeroable;
use genuma_machine::placement::{Pages, Placed, Placement, Policy};

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

/// The partial file. Dropped before it is finished, it is removed.
#[derive(Debug)]
pub(crate) struct Sink {
    path: PathBuf,
    partial: PathBuf,
    finished: bool,
    /// Zero from the page that is being filled on.
    buffer: Placed<Page>,
    /// Pages of the buffer that are full.
    full: usize,
    /// Pages before those of the buffer.
    before: u64,
    /// Gone when all has been handed over.
    pieces: Option<Sender<Piece>>,
    /// Written buffers, zero again.
    empty: Receiver<Placed<Page>>,
    /// Writes, and gives the file back.
    writing: Option<JoinHandle<io::Result<fs::File>>>,
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
        let Some(name) = path.file_name() else {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a file name")));
        };
        let partial = path.with_file_name(format!(".{}.partial", name.to_string_lossy()));
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
        let file = file::create_direct(&partial).map_err(failed)?;
        let write = move || {
            for Piece { mut buffer, full, first } in to_write {
                file::write_pages(&file, &buffer[..full], first)?;
                buffer[..full].fill(Page::zeroed());
                if written.send(buffer).is_err() {
                    break;
                }
            }
            Ok(file)
        };
        let writing = thread::Builder::new().name("table".to_owned()).spawn(write).map_err(|source| {
            // Nothing better can be done with a failure here than to leave the empty file.
            let _ = fs::remove_file(&partial);
            failed(source)
        })?;
        let (pieces, writing) = (Some(pieces), Some(writing));
        let path = path.to_path_buf();
        Ok(Sink { path, partial, finished: false, buffer, full: 0, before: 0, pieces, empty, writing })
    }

    /// What the file will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The page that is being filled, zero at first.
    #[inline]
    pub fn page(&mut self) -> &mut Page {
        &mut self.buffer[self.full]
    }

    /// Its number in the file.
    pub fn page_number(&self) -> u64 {
        self.before + self.full as u64
    }

    /// Goes on to the next page.
    ///
    /// # Errors
    /// The disk is full or refuses.
    pub fn next_page(&mut self) -> Result<(), Error> {
        self.full += 1;
        if self.full == self.buffer.len() { self.hand_over() } else { Ok(()) }
    }

    /// Has the full pages written.
    fn hand_over(&mut self) -> Result<(), Error> {
        let Ok(next) = self.empty.recv() else { return self.end().map(drop) };
        let piece = Piece {
            buffer: std::mem::replace(&mut self.buffer, next),
            full: std::mem::take(&mut self.full),
            first: self.before,
        };
        self.before += piece.full as u64;
        let taken = self.pieces.as_ref().is_some_and(|pieces| pieces.send(piece).is_ok());
        if taken { Ok(()) } else { self.end().map(drop) }
    }

    /// Waits until all is written that was handed over.
    fn end(&mut self) -> Result<fs::File, Error> {
        self.pieces = None;
        let ended = self.writing.take().map(JoinHandle::join);
        let ended = ended.unwrap_or_else(|| Ok(Err(io::Error::other("writing failed before"))));
        let ended = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    /// Writes bytes from the start of a page on, and fills their last page with zeros.
    ///
    /// # Errors
    /// The disk is full or refuses.
    pub fn section(&mut self, pieces: &[&[u8]]) -> Result<Section, Error> {
        let offset = self.page_number() * PAGE as u64;
        let mut checksum = format::Checksum::default();
        let mut at = 0;
        for mut bytes in pieces.iter().copied() {
            checksum.add(bytes);
            while !bytes.is_empty() {
                let (now, rest) = bytes.split_at(bytes.len().min(PAGE - at));
                self.page().0[at..at + now.len()].copy_from_slice(now);
                (at, bytes) = (at + now.len(), rest);
                if at == PAGE {
                    self.next_page()?;
                    at = 0;
                }
            }
        }
        if at > 0 {
            self.next_page()?;
        }
        let bytes = pieces.iter().map(|bytes| bytes.len() as u64).sum();
        Ok(Section { offset, bytes, checksum: checksum.finish() })
    }

    /// Writes the header, and gives the file its name when all of it is on the disk.
    ///
    /// # Errors
    /// The disk is full or refuses.
    pub fn finish(mut self, header: &Page) -> Result<(), Error> {
        self.hand_over()?;
        let file = self.end()?;
        self.buffer[0] = *header;
        let done = file::write_pages(&file, &self.buffer[..1], 0)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&self.partial, &self.path));
        done.map_err(|source| Error::Write { path: self.path.clone(), source })?;
        self.finished = true;
        // The new name itself is safe only once the folder is on the disk.
        file::sync_folder(&self.path).map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if !self.finished {
            // What failed was told, or nobody asks.
            let _ = self.end();
            // Nothing better can be done with a failure here than to leave the partial file.
            let _ = fs::remove_file(&self.partial);
        }
    }
}
