//! Pipes as input. The first bytes of a pipe are examined without removing them: they decide how the pipe is read, and
//! a pipe can be read only once.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fstatfs};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, tee};

/// Name of the standard input in a list of files.
const STDIN: &str = "-";

/// Whether the path means the standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

/// Whether the path is a regular file, which can be read again and has a length; false for the standard input.
pub(crate) fn is_regular_file(path: &Path) -> io::Result<bool> {
    Ok(!is_stdin(path) && path.metadata()?.is_file())
}

/// Maximum number of bytes at the start of a pipe that are examined.
const MAX_PEEK_BYTES: usize = 4096;
/// Time after which a named pipe without a writer counts as empty.
const WRITER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two attempts to examine a pipe.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// File system type of unnamed pipes (`PIPEFS_MAGIC` in the kernel), reported by `statfs`.
const PIPEFS_MAGIC: u64 = 0x5049_5045;

/// Pipes that were examined, which stay open: closing the only reader of a named pipe would kill its writer
/// (SIGPIPE), and a reader that opens the pipe after its writer has closed it would not notice the end.
static OPEN_PIPES: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());

/// Returns the first bytes of a pipe as soon as `is_enough` accepts them, there are [`MAX_PEEK_BYTES`], or the input
/// ends; or the first [`MAX_PEEK_BYTES`] of a file that is the standard input. Returns no bytes for other files, and
/// for a named pipe that has no writer for [`WRITER_TIMEOUT`]. The bytes can still be read afterwards.
///
/// # Errors
/// The pipe cannot be opened or examined.
pub(crate) fn peek_first_bytes(path: &Path, is_enough: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let mut open = OPEN_PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    let at = match open.iter().position(|(other, _)| other == path) {
        Some(at) => at,
        None => {
            let file = if is_stdin(path) {
                File::from(io::stdin().as_fd().try_clone_to_owned()?)
            } else if path.metadata()?.file_type().is_fifo() {
                OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?
            } else {
                return Ok(Vec::new());
            };
            open.push((path.into(), file));
            open.len() - 1
        }
    };
    let file = &open[at].1;
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() {
        return peek_pipe(file, is_enough);
    }
    let mut head = Vec::new();
    if kind.is_file() {
        head.resize(MAX_PEEK_BYTES, 0);
        let mut file = file;
        let at = file.stream_position()?;
        let mut filled = 0;
        while filled < MAX_PEEK_BYTES {
            match file.read_at(&mut head[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        head.truncate(filled);
    }
    Ok(head)
}

/// A pipe that was examined before, as an open file; `None` for other paths.
///
/// # Errors
/// The file descriptor cannot be duplicated.
pub(crate) fn open_peeked_pipe(path: &Path) -> io::Result<Option<File>> {
    let open = OPEN_PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    open.iter().find(|(other, _)| other == path).map(|(_, file)| file.try_clone()).transpose()
}

fn peek_pipe(pipe: &File, is_enough: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let named = fstatfs(pipe)?.f_type as u64 != PIPEFS_MAGIC;
    let start = Instant::now();
    let mut head = Vec::new();
    loop {
        // Examined before the bytes, which a writer may complete between the two.
        let has_ended = has_no_writer(pipe)?;
        match tee_pipe(pipe, &mut head) {
            // The pipe has no writer, or not yet.
            Ok(()) if head.is_empty() && (!named || has_ended || start.elapsed() > WRITER_TIMEOUT) => {
                return Ok(head);
            }
            Ok(()) if head.is_empty() => sleep(POLL_INTERVAL),
            Ok(()) if head.len() >= MAX_PEEK_BYTES || is_enough(&head) || has_ended => return Ok(head),
            Ok(()) => sleep(POLL_INTERVAL),
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(pipe, PollFlags::IN)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            },
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Copies the bytes at the start of the pipe into `head` without removing them (tee(2)).
fn tee_pipe(pipe: &File, head: &mut Vec<u8>) -> Result<(), Errno> {
    head.clear();
    let to_errno = |e: io::Error| Errno::from_io_error(&e).unwrap_or(Errno::IO);
    let (mut copy, into): (PipeReader, PipeWriter) = io::pipe().map_err(to_errno)?;
    tee(pipe, &into, MAX_PEEK_BYTES, SpliceFlags::NONBLOCK)?;
    drop(into);
    copy.read_to_end(head).map_err(to_errno)?;
    Ok(())
}

/// Whether all writers have closed their end of the pipe.
fn has_no_writer(pipe: &File) -> io::Result<bool> {
    let mut one = [PollFd::new(pipe, PollFlags::IN)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut one, Some(&now))?;
    Ok(one[0].revents().contains(PollFlags::HUP))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn peeked_bytes_stay_in_the_pipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
        let text = "0123456789".repeat(20_000);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut pipe = OpenOptions::new().write(true).open(&path).expect("a pipe");
                // Write byte by byte first.
                for byte in &text.as_bytes()[..30] {
                    pipe.write_all(&[*byte]).expect("room");
                    sleep(Duration::from_millis(2));
                }
                pipe.write_all(&text.as_bytes()[30..]).expect("room");
            });
            for wanted in [1, 20, 4000] {
                let head = peek_first_bytes(&path, |head| head.len() >= wanted).expect("a pipe");
                assert!(head.len() >= wanted && text.as_bytes().starts_with(&head), "{wanted}");
            }
            let (mut pipe, mut all) = (open_peeked_pipe(&path).expect("a number").expect("a pipe"), Vec::new());
            while all.len() < text.len() {
                let mut some = [0; 4096];
                let n = pipe.read(&mut some).unwrap_or(0);
                all.extend_from_slice(&some[..n]);
            }
            let all = String::from_utf8(all).expect("text");
            assert!(all == text);
        });
        // Fewer bytes than requested if the input ends; nothing for a file that is not a pipe.
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"ab").expect("room");
        drop(writer);
        let reader = File::from(std::os::fd::OwnedFd::from(reader));
        assert_eq!(peek_pipe(&reader, |head| head.len() > 2).expect("a pipe"), b"ab");
        assert_eq!(peek_first_bytes(Path::new("/dev/null"), |_| true).expect("a device"), b"");
        assert!(peek_first_bytes(Path::new("/nowhere"), |_| true).is_err());
    }
}
