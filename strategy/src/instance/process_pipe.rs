//! Pipes to and from a process that stop waiting once the process has exited. Children that the process left behind
//! may hold the pipes open for ever.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

/// Time that a pipe may stay idle after the process has exited. Until then another process, such as a filter between
/// the process and the pipe, may write its last output.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// One end of a pipe, and a pidfd of the process at the other end (pidfd_open(2)). Without pidfd support the pipe
/// waits until it is closed.
#[derive(Debug)]
pub(crate) struct ProcessPipe<T> {
    pipe: T,
    process: Option<Arc<OwnedFd>>,
}

impl<T: AsFd> ProcessPipe<T> {
    /// Creates the pipe end. `process` is the pidfd of the process at the other end; without it the pipe is blocking.
    ///
    /// # Errors
    /// The operating system cannot set the blocking mode of the pipe.
    pub(crate) fn from_pipe(pipe: T, process: Option<Arc<OwnedFd>>) -> io::Result<Self> {
        ioctl_fionbio(&pipe, process.is_some())?;
        Ok(ProcessPipe { pipe, process })
    }

    /// Returns the pipe without the process that holds its other end.
    pub(crate) fn pipe(&self) -> &T {
        &self.pipe
    }

    /// Waits until the pipe may be ready for `wanted`. Returns `false` if the process has exited and the grace period
    /// is over.
    fn wait_until_ready(&self, wanted: PollFlags) -> io::Result<bool> {
        let Some(process) = &self.process else { return Ok(true) };
        let mut both = [PollFd::new(&self.pipe, wanted), PollFd::new(process, PollFlags::IN)];
        retry_interrupted(|| poll(&mut both, None))?;
        if !both[0].revents().is_empty() {
            return Ok(true);
        }
        let grace = Timespec::try_from(GRACE_PERIOD).map_err(io::Error::other)?;
        Ok(retry_interrupted(|| poll(&mut both[..1], Some(&grace)))? > 0)
    }
}

/// Repeats a system call as long as signals interrupt it (`EINTR`).
fn retry_interrupted(mut call: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

impl<T: AsFd + Read> Read for ProcessPipe<T> {
    /// Reads from the pipe. Returns end of file also when the process has exited and the grace period is over.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.pipe.read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if !self.wait_until_ready(PollFlags::IN)? {
                return Ok(0);
            }
        }
    }
}

impl<T: AsFd + Write> Write for ProcessPipe<T> {
    /// Writes to the pipe. Returns `BrokenPipe` also when the process has exited and the grace period is over.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if !self.wait_until_ready(PollFlags::OUT)? {
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}
