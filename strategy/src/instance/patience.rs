//! Pipes to and from a process that is not waited for longer than it lives: what it started and left behind may hold them open for ever.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

/// How long a pipe may stay as it is once the process has ended: a filter behind it may have to write the last of its output yet.
const GRACE: Duration = Duration::from_secs(2);

/// An end of a pipe, and the process at its other end (pidfd_open(2)); none where the kernel has no such thing, which waits as long as the pipe
/// is open.
#[derive(Debug)]
pub(crate) struct Patient<T> {
    pipe: T,
    process: Option<Arc<OwnedFd>>,
}

impl<T: AsFd> Patient<T> {
    /// # Errors
    /// The system refuses to let the pipe be waited for.
    pub fn new(pipe: T, process: Option<Arc<OwnedFd>>) -> io::Result<Self> {
        ioctl_fionbio(&pipe, process.is_some())?;
        Ok(Patient { pipe, process })
    }

    /// The pipe.
    pub fn pipe(&self) -> &T {
        &self.pipe
    }

    /// Waits until the pipe, which was not, may be ready; false if the process has ended and nothing happens any more.
    fn ready(&self, wanted: PollFlags) -> io::Result<bool> {
        let Some(process) = &self.process else { return Ok(true) };
        let mut both = [PollFd::new(&self.pipe, wanted), PollFd::new(process, PollFlags::IN)];
        again(|| poll(&mut both, None))?;
        if !both[0].revents().is_empty() {
            return Ok(true);
        }
        let grace = Timespec::try_from(GRACE).map_err(io::Error::other)?;
        Ok(again(|| poll(&mut both[..1], Some(&grace)))? > 0)
    }
}

/// Until no signal interrupts.
fn again(mut call: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

impl<T: AsFd + Read> Read for Patient<T> {
    /// As of the pipe; at its end also when the process has ended and nothing comes any more.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.pipe.read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if !self.ready(PollFlags::IN)? {
                return Ok(0);
            }
        }
    }
}

impl<T: AsFd + Write> Write for Patient<T> {
    /// As to the pipe; nobody reads it either when the process has ended and nothing is taken any more.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if !self.ready(PollFlags::OUT)? {
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}
