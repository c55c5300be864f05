//! Where bytes come from: regular files, and pipes, which must not keep a thread that nobody needs any more.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Advice, OFlags, fadvise};
use rustix::io::Errno;

use crate::error::{Error, FileFault};
use crate::pipe::{is_regular, is_stdin, opened};
use crate::span::Span;
use genuma_work::Meter;

/// An open file, or a stretch of one, that counts what is read from it.
pub(crate) struct Source<M> {
    file: File,
    meter: M,
    /// Bytes of the stretch that are still to be read; absent for a whole file.
    left: Option<u64>,
    /// Present for anything but a regular file: its other end is dropped when nobody needs the bytes any more.
    stop: Option<Arc<PipeReader>>,
    /// What a pipe has to end with, and as many of its last bytes.
    end: &'static [u8],
    last: Vec<u8>,
}

impl<M: Deref<Target = Meter>> Source<M> {
    /// Opens a file, at the beginning of the stretch that is to be read; anything but a regular file only as a whole, and when there is a way to `stop` waiting
    /// for it.
    pub(crate) fn open(
        path: &Path,
        span: Option<Span>,
        meter: M,
        stop: Option<&Arc<PipeReader>>,
    ) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.into(), source };
        // Asked before opening, because opening a pipe that nobody writes to would wait for ever.
        if is_regular(path).map_err(unreadable)? {
            let mut file = File::open(path).map_err(unreadable)?;
            // Asks the kernel to read further ahead; what cannot do it reads on as before.
            let _ = fadvise(&file, 0, None, Advice::Sequential);
            if let Some(span) = span {
                let (was, is) = (span.size, file.metadata().map_err(unreadable)?.len());
                if was != is {
                    return Err(Error::file(path, FileFault::Resized { was, is }));
                }
                file.seek(SeekFrom::Start(span.from.byte)).map_err(unreadable)?;
            }
            return Ok(Source {
                file,
                meter,
                left: span.map(|span| span.bytes()),
                stop: None,
                end: &[],
                last: Vec::new(),
            });
        }
        let (Some(stop), None) = (stop, span) else {
            return Err(Error::file(path, FileFault::NotRegular));
        };
        let file = if let Some(file) = opened(path).map_err(unreadable)? {
            Ok(file)
        } else if is_stdin(path) {
            io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            let flags = OFlags::NONBLOCK.bits() as i32;
            OpenOptions::new().read(true).custom_flags(flags).open(path)
        };
        let (file, stop) = (file.map_err(unreadable)?, Some(stop.clone()));
        Ok(Source { file, meter, left: None, stop, end: &[], last: Vec::new() })
    }

    /// The same; if it is a pipe it is an error when it ends with anything else.
    pub(crate) fn ending(self, end: &'static [u8]) -> Self {
        Source { end: if self.stop.is_some() { end } else { &[] }, ..self }
    }

    /// Notes the last of what was read.
    fn note(&mut self, read: &[u8]) {
        let read = &read[read.len().saturating_sub(self.end.len())..];
        let kept = self.end.len() - read.len();
        self.last.drain(..self.last.len().saturating_sub(kept));
        self.last.extend_from_slice(read);
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Waits until there is something to read; false when nobody needs it any more.
    fn wait(&self, stop: &PipeReader) -> io::Result<bool> {
        let mut both = [PollFd::new(&self.file, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        loop {
            match poll(&mut both, None) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            if !both[1].revents().is_empty() {
                return Ok(false);
            }
            if !both[0].revents().is_empty() {
                return Ok(true);
            }
        }
    }
}

impl<M: Deref<Target = Meter>> Read for Source<M> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.left.map_or(buf.len(), |left| left.min(buf.len() as u64) as usize);
        let buf = &mut buf[..left];
        loop {
            if let Some(stop) = &self.stop
                && !self.wait(stop)?
            {
                return Ok(0);
            }
            match self.file.read(buf) {
                // Another reader of the same pipe was faster.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && self.stop.is_some() => {}
                Err(e) => return Err(e),
                Ok(0) if self.left.is_some() && !buf.is_empty() => {
                    let what = "the file ends before the slice of it that is read";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
                }
                Ok(0) if !buf.is_empty() && self.last != self.end => {
                    return Err(io::Error::other(FileFault::NoEnd));
                }
                Ok(n) => {
                    self.note(&buf[..n]);
                    self.left = self.left.map(|left| left - n as u64);
                    self.meter.add_bytes(n as u64);
                    return Ok(n);
                }
            }
        }
    }
}
