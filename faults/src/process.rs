//! Runs the program under test until it exits or exceeds a time limit.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Maximum time of a run. A longer run is killed and counts as hanging.
pub(crate) const MAX_RUN_TIME: Duration = Duration::from_secs(30);

/// Exit status and output of a run.
#[derive(Debug, Clone)]
pub(crate) struct ProcessResult {
    /// How the process ended: exit code, signal or timeout.
    pub how: ExitKind,
    /// All bytes that the process wrote to standard output.
    pub stdout: Vec<u8>,
    /// All text that the process wrote to standard error; invalid UTF-8 is replaced.
    pub stderr: String,
    /// Whether processes that the run had started still ran one second after its end. False after a timeout.
    pub(crate) has_orphans: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitKind {
    /// The process exited with this exit code.
    Exit(i32),
    /// The signal with this number ended the process.
    Signal(i32),
    /// The process exceeded [`MAX_RUN_TIME`] and was killed.
    TimedOut,
}

/// A process that was started and not waited for yet. Its output goes to files.
#[derive(Debug)]
pub(crate) struct RunningProcess<'a> {
    child: Child,
    log: &'a Path,
    name: &'static str,
    begun: Instant,
}

/// Starts a command in its own process group. Its output goes to the files `name.stdout` and `name.stderr` in the
/// folder `log`.
///
/// # Errors
/// The files cannot be created, or the process cannot be started.
pub(crate) fn start_in_own_process_group<'a>(
    mut command: Command,
    log: &'a Path,
    name: &'static str,
) -> io::Result<RunningProcess<'a>> {
    let file = |end: &str| File::create(log.join(format!("{name}.{end}")));
    command.stdin(Stdio::null()).stdout(file("stdout")?).stderr(file("stderr")?).process_group(0);
    Ok(RunningProcess { child: command.spawn()?, log, name, begun: Instant::now() })
}

impl RunningProcess<'_> {
    /// Waits until the process exits or exceeds the time limit, then kills all that still runs of its process group.
    ///
    /// # Errors
    /// Waiting for the process fails, or its output cannot be read.
    pub fn wait_for_exit(mut self) -> io::Result<ProcessResult> {
        let group = Pid::from_child(&self.child);
        // The standard library has no wait with a timeout; a run takes about 50 ms.
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break Some(status);
            }
            if self.begun.elapsed() > MAX_RUN_TIME {
                break None;
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        let has_orphans = status.is_some() && has_survivors(group);
        // An error means that no process is left.
        let _ = kill_process_group(group, Signal::KILL);
        let how = match status {
            None => {
                self.child.wait()?;
                ExitKind::TimedOut
            }
            Some(status) => status.code().map_or(ExitKind::Signal(status.signal().unwrap_or(0)), ExitKind::Exit),
        };
        let output = |end: &str| fs::read(self.log.join(format!("{}.{end}", self.name)));
        let stderr = String::from_utf8_lossy(&output("stderr")?).into_owned();
        Ok(ProcessResult { how, stdout: output("stdout")?, stderr, has_orphans })
    }
}

/// Returns whether a process group has a member that has not ended. Zombies are not counted: when their parent has
/// ended too, they stay in the group until the init process waits for them, which may take long in a container.
fn has_running_member(group: Pid) -> bool {
    if test_kill_process_group(group).is_err() {
        return false;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let is_member = |process: fs::DirEntry| {
        // A process that has ended meanwhile has no file, and other entries are no processes.
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { return false };
        // After the name in parentheses: state, parent, process group.
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let state = fields.next();
        let process_group = fields.nth(1).and_then(|text| text.parse().ok());
        process_group == Some(group.as_raw_nonzero().get()) && !matches!(state, Some("Z" | "X"))
    };
    processes.flatten().any(is_member)
}

/// Returns whether a process group still has running members after one second. Killed processes need a moment to end.
fn has_survivors(group: Pid) -> bool {
    let there = || has_running_member(group);
    (0..100).all(|_| {
        let still = there();
        if still {
            std::thread::sleep(Duration::from_millis(10));
        }
        still
    })
}
