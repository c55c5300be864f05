//! What is a pipe, and its first bytes, which stay in it: what is in it decides how it is read, and it can be read once.

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

/// Names the standard input in a list of files.
const STDIN: &str = "-";

/// Whether a file is the standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

/// Whether a file can be read again and has a length.
pub(crate) fn is_regular(path: &Path) -> io::Result<bool> {
    Ok(!is_stdin(path) && path.metadata()?.is_file())
}

/// Most bytes that are looked at.
const MOST: usize = 4096;
/// How long a pipe that has a name may have nobody who writes to it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked at meanwhile.
const OFTEN: Duration = Duration::from_millis(10);
/// What `statfs` says of a pipe without a name (`PIPEFS_MAGIC` of the kernel).
const PIPE_FS: u64 = 0x5049_5045;

/// Pipes that were looked at. They stay open until the end: the writer of a pipe with a name is killed when nobody has it open for reading any more, and who opens it
/// after its writer has gone does not learn of that.
static OPEN: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());

/// The first bytes of a pipe, or of a file that is the standard input, as soon as they are `enough`; fewer where there are no more. None of what is neither, and of a pipe with
/// a name that nobody writes to for [`PATIENCE`]. The bytes are still to be read afterwards.
///
/// # Errors
/// It cannot be opened or looked at.
pub(crate) fn peek(path: &Path, enough: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
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
        return in_pipe(file, enough);
    }
    let mut head = Vec::new();
    if kind.is_file() {
        head.resize(MOST, 0);
        let mut file = file;
        let at = file.stream_position()?;
        let mut filled = 0;
        while filled < MOST {
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

/// A pipe that was looked at, as it was opened then.
///
/// # Errors
/// The system gives it no other number.
pub(crate) fn opened(path: &Path) -> io::Result<Option<File>> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.iter().find(|(other, _)| other == path).map(|(_, file)| file.try_clone()).transpose()
}

fn in_pipe(pipe: &File, enough: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let named = fstatfs(pipe)?.f_type as u64 != PIPE_FS;
    let begun = Instant::now();
    let mut head = Vec::new();
    loop {
        match copied(pipe, &mut head) {
            // Nobody writes to it, or not yet.
            Ok(()) if head.is_empty() && (!named || over(pipe)? || begun.elapsed() > PATIENCE) => {
                return Ok(head);
            }
            Ok(()) if head.is_empty() => sleep(OFTEN),
            Ok(()) if head.len() >= MOST || enough(&head) || over(pipe)? => return Ok(head),
            Ok(()) => sleep(OFTEN),
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(pipe, PollFlags::IN)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            },
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Puts into `head` what lies at the beginning of the pipe.
fn copied(pipe: &File, head: &mut Vec<u8>) -> Result<(), Errno> {
    head.clear();
    let told = |e: io::Error| Errno::from_io_error(&e).unwrap_or(Errno::IO);
    let (mut copy, into): (PipeReader, PipeWriter) = io::pipe().map_err(told)?;
    tee(pipe, &into, MOST, SpliceFlags::NONBLOCK)?;
    drop(into);
    copy.read_to_end(head).map_err(told)?;
    Ok(())
}

/// Whether nobody will write to it any more.
fn over(pipe: &File) -> io::Result<bool> {
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
    fn what_was_looked_at_is_still_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
        let text = "0123456789".repeat(20_000);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut pipe = OpenOptions::new().write(true).open(&path).expect("a pipe");
                // Byte for byte at first.
                for byte in &text.as_bytes()[..30] {
                    pipe.write_all(&[*byte]).expect("room");
                    sleep(Duration::from_millis(2));
                }
                pipe.write_all(&text.as_bytes()[30..]).expect("room");
            });
            for wanted in [1, 20, 4000] {
                let head = peek(&path, |head| head.len() >= wanted).expect("a pipe");
                assert!(head.len() >= wanted && text.as_bytes().starts_with(&head), "{wanted}");
            }
            let (mut pipe, mut all) = (opened(&path).expect("a number").expect("a pipe"), Vec::new());
            while all.len() < text.len() {
                let mut some = [0; 4096];
                let n = pipe.read(&mut some).unwrap_or(0);
                all.extend_from_slice(&some[..n]);
            }
            let all = String::from_utf8(all).expect("text");
            assert!(all == text);
        });
        // There is no more than there is, and of a file that is no pipe there is nothing.
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"ab").expect("room");
        drop(writer);
        let reader = File::from(std::os::fd::OwnedFd::from(reader));
        assert_eq!(in_pipe(&reader, |head| head.len() > 2).expect("a pipe"), b"ab");
        assert_eq!(peek(Path::new("/dev/null"), |_| true).expect("a device"), b"");
        assert!(peek(Path::new("/nowhere"), |_| true).is_err());
    }
}
