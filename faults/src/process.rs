//! One run of the program under test, to its end or to the limit.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// What takes longer hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// How.
    pub how: How,
    /// All of it.
    pub stdout: Vec<u8>,
    /// All of it.
    pub stderr: String,
    /// Whether processes that it had started were still there a second after it.
    pub(crate) orphans: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By itself.
    Exit(i32),
    /// By a signal.
    Signal(i32),
    /// It did not, and was killed after [`LIMIT`].
    Hung,
}

/// A process that runs, with its output in files.
#[derive(Debug)]
pub struct Running<'a> {
    child: Child,
    log: &'a Path,
    name: &'static str,
    begun: Instant,
}

/// Starts a command in a process group of its own; its output goes to files in the folder `log`.
///
/// # Errors
/// It cannot be started.
pub fn start<'a>(mut command: Command, log: &'a Path, name: &'static str) -> io::Result<Running<'a>> {
    let file = |end: &str| File::create(log.join(format!("{name}.{end}")));
    command.stdin(Stdio::null()).stdout(file("stdout")?).stderr(file("stderr")?).process_group(0);
    Ok(Running { child: command.spawn()?, log, name, begun: Instant::now() })
}

impl Running<'_> {
    /// Waits for the end, and ends what is still there of the process's group.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn wait(mut self) -> io::Result<Ended> {
        let group = Pid::from_child(&self.child);
        // No waiting with a limit in the standard library: a run takes some 50 ms.
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break Some(status);
            }
            if self.begun.elapsed() > LIMIT {
                break None;
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        let orphans = status.is_some() && outlived(group);
        // An error says that nobody is left.
        let _ = kill_process_group(group, Signal::KILL);
        let how = match status {
            None => {
                self.child.wait()?;
                How::Hung
            }
            Some(status) => status.code().map_or(How::Signal(status.signal().unwrap_or(0)), How::Exit),
        };
        let output = |end: &str| fs::read(self.log.join(format!("{}.{end}", self.name)));
        let stderr = String::from_utf8_lossy(&output("stderr")?).into_owned();
        Ok(Ended { how, stdout: output("stdout")?, stderr, orphans })
    }
}

/// Whether a group has members, for a second: who has just been killed needs a moment.
fn outlived(group: Pid) -> bool {
    let there = || test_kill_process_group(group).is_ok();
    (0..100).all(|_| {
        let still = there();
        if still {
            std::thread::sleep(Duration::from_millis(10));
        }
        still
    })
}
