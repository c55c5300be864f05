//! Input files: regular files and pipes. A thread that waits for a pipe can be woken when its data is no longer
//! needed.

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
use crate::file_span::FileSpan;
use crate::pipe::{is_regular_file, is_stdin, open_peeked_pipe};
use genuma_work::ProgressCounters;

/// An open input file, or a span of a regular file. Counts the bytes that are read.
pub(crate) struct RawInputFile<M> {
    file: File,
    progress: M,
    /// Number of bytes of the span that are left to read; `None` for a whole file.
    bytes_left: Option<u64>,
    /// Internal pipe for inputs that are pipes or devices: a thread that waits for input is woken when the other end
    /// of this pipe is dropped. `None` for regular files.
    stop: Option<Arc<PipeReader>>,
    /// Bytes that must be at the end of a pipe. `last_bytes` are as many bytes that were read last.
    required_end: &'static [u8],
    last_bytes: Vec<u8>,
}

impl<M: Deref<Target = ProgressCounters>> RawInputFile<M> {
    /// Opens a file at the start of the span. A file that is not regular can be read only as a whole, and only if
    /// `stop` is present, so that waiting for input can be ended.
    pub(crate) fn open(
        path: &Path,
        span: Option<FileSpan>,
        progress: M,
        stop: Option<&Arc<PipeReader>>,
    ) -> Result<Self, Error> {
        let read_error = |source| Error::Read { path: path.into(), source };
        // Check before opening: opening a pipe without a writer would block for ever.
        if is_regular_file(path).map_err(read_error)? {
            let mut file = File::open(path).map_err(read_error)?;
            // Ask the kernel to read further ahead; a failure does no harm.
            let _ = fadvise(&file, 0, None, Advice::Sequential);
            if let Some(span) = span {
                let (was, is) = (span.file_bytes, file.metadata().map_err(read_error)?.len());
                if was != is {
                    return Err(Error::error_in_file(path, FileFault::SizeChanged { old_bytes: was, new_bytes: is }));
                }
                file.seek(SeekFrom::Start(span.start.file_offset)).map_err(read_error)?;
            }
            return Ok(RawInputFile {
                file,
                progress,
                bytes_left: span.map(|span| span.len_bytes()),
                stop: None,
                required_end: &[],
                last_bytes: Vec::new(),
            });
        }
        // I/O error ignored: what cannot be examined is reported when it is opened.
        if !is_stdin(path) && path.is_dir() {
            return Err(Error::error_in_file(path, FileFault::Folder));
        }
        let (Some(stop), None) = (stop, span) else {
            return Err(Error::error_in_file(path, FileFault::NotRegular));
        };
        let file = if let Some(file) = open_peeked_pipe(path).map_err(read_error)? {
            Ok(file)
        } else if is_stdin(path) {
            io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            let flags = OFlags::NONBLOCK.bits() as i32;
            OpenOptions::new().read(true).custom_flags(flags).open(path)
        };
        let (file, stop) = (file.map_err(read_error)?, Some(stop.clone()));
        Ok(RawInputFile { file, progress, bytes_left: None, stop, required_end: &[], last_bytes: Vec::new() })
    }

    /// Requires that the input, if it is a pipe, ends with the bytes `end`. Any other end is then an error.
    pub(crate) fn with_required_pipe_end(self, end: &'static [u8]) -> Self {
        RawInputFile { required_end: if self.stop.is_some() { end } else { &[] }, ..self }
    }

    /// Keeps the last bytes of the input for the comparison with `required_end`.
    fn keep_last_bytes(&mut self, read: &[u8]) {
        let read = &read[read.len().saturating_sub(self.required_end.len())..];
        let kept = self.required_end.len() - read.len();
        self.last_bytes.drain(..self.last_bytes.len().saturating_sub(kept));
        self.last_bytes.extend_from_slice(read);
    }

    /// The open file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Waits until bytes can be read. Returns false if the other end of `stop` was dropped.
    fn wait_readable(&self, stop: &PipeReader) -> io::Result<bool> {
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

impl<M: Deref<Target = ProgressCounters>> Read for RawInputFile<M> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes_left.map_or(buf.len(), |left| left.min(buf.len() as u64) as usize);
        let buf = &mut buf[..left];
        loop {
            if let Some(stop) = &self.stop
                && !self.wait_readable(stop)?
            {
                return Ok(0);
            }
            match self.file.read(buf) {
                // Another reader of the same pipe was faster.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && self.stop.is_some() => {}
                Err(e) => return Err(e),
                Ok(0) if self.bytes_left.is_some() && !buf.is_empty() => {
                    let what = "the file ends inside the slice";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
                }
                Ok(0) if !buf.is_empty() && self.last_bytes != self.required_end => {
                    return Err(io::Error::other(FileFault::MissingEofMarker));
                }
                Ok(n) => {
                    self.keep_last_bytes(&buf[..n]);
                    self.bytes_left = self.bytes_left.map(|left| left - n as u64);
                    self.progress.add_bytes(n as u64);
                    return Ok(n);
                }
            }
        }
    }
}

/// Appends `length` bytes of the input to `bytes`; of an input that ends before, the bytes that it has. Allocates only for
/// bytes that the input has.
///
/// # Errors
/// The input cannot be read, or ends before (`UnexpectedEof`).
pub(crate) fn read_exactly(input: &mut impl Read, length: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let read = input.by_ref().take(length).read_to_end(bytes)?;
    if read as u64 == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
