//! A process of an aligner: pinned, its memory placed, its reads in pipes, its last words kept.

mod pace;

mod patience;

mod tied;

mod words;

pub(crate) use pace::Pace;
pub(crate) use patience::Patient;
pub use words::{WORDS, Words};

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genuma_machine::placement::{Scoped, pin};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};

use crate::invocation::{Feed, Invocation};
use crate::layout::Seat;

/// Bytes of a pipe: the most that an unprivileged process may ask for (`/proc/sys/fs/pipe-max-size`).
const PIPE: usize = 1 << 20;

/// Process groups of instances that live.
static LIVE: Mutex<Live> = Mutex::new(Live { closed: false, groups: BTreeSet::new() });

struct Live {
    /// No more may be started.
    closed: bool,
    groups: BTreeSet<i32>,
}

fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all instances of this process, and whatever they started, and lets none be started any more: for a process that is about to end.
pub fn kill_all() {
    let mut live = live();
    live.closed = true;
    live.groups.iter().for_each(|&group| kill_group(group));
}

/// Whether this process is about to end.
pub(crate) fn all_killed() -> bool {
    live().closed
}

fn kill_group(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        // Gone already, or about to.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// A living process.
pub(crate) struct Instance {
    child: Child,
    /// What it writes.
    pub stdout: Option<Patient<ChildStdout>>,
    /// What the pipe of that holds (bytes).
    pub(crate) stdout_holds: usize,
    /// What it says.
    pub stderr: Option<Patient<ChildStderr>>,
    /// Where its reads go: one pipe, or two.
    pub(crate) feeds: Vec<Patient<PipeWriter>>,
    /// Its command, as it was started.
    pub command: Vec<OsString>,
    /// The pipes, as its command names them.
    pub pipes: Vec<PathBuf>,
}

/// What an instance is started from.
pub(crate) struct Recipe<'a> {
    pub invocation: &'a Invocation,
    /// Bases (bp) of a block of the plain run, 0 if it has none.
    pub block: u64,
}

impl Recipe<'_> {
    /// Starts an instance on its seat. It is killed when this thread ends.
    ///
    /// # Errors
    /// The program, the pipes, or its place are refused.
    pub fn start(&self, seat: &Seat) -> Result<Instance, StartError> {
        let pipe = || -> io::Result<(PipeReader, PipeWriter)> {
            let (reader, writer) = io::pipe()?;
            // A smaller one works as well.
            let _ = fcntl_setpipe_size(&writer, PIPE);
            Ok((reader, writer))
        };
        let feed = self.invocation.feed;
        let pipes: io::Result<Vec<_>> = (0..if feed == Feed::Two { 2 } else { 1 }).map(|_| pipe()).collect();
        let (mut readers, feeds): (Vec<_>, Vec<_>) = pipes.map_err(StartError::Pipe)?.into_iter().unzip();
        let named = match feed {
            Feed::Stdin => Vec::new(),
            _ => readers.iter().map(|r| PathBuf::from(format!("/proc/self/fd/{}", r.as_raw_fd()))).collect(),
        };
        let paths: Vec<&Path> = named.iter().map(PathBuf::as_path).collect();
        let words = self.invocation.command(seat.threads, self.block, &paths);
        let (program, arguments) = words.split_first().ok_or(StartError::NoProgram)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        tied::to_this_thread(&mut command);
        if feed == Feed::Stdin {
            command.stdin(Stdio::from(readers.remove(0)));
        }

        // A process inherits CPUs and memory policy of the thread that starts it. One is started at a time, so that none inherits the
        // pipes of another and keeps them open.
        let mut live = live();
        if live.closed {
            return Err(StartError::Ending);
        }
        let _pinned = pin::to_cpus(&seat.cpus)?;
        let _scoped = seat.policy.as_ref().map(Scoped::new).transpose()?;
        for reader in &readers {
            fcntl_setfd(reader.as_fd(), FdFlags::empty()).map_err(|e| StartError::Pipe(e.into()))?;
        }
        let started = command.spawn();
        drop(readers);
        let mut child = started.map_err(|source| StartError::Program {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        live.groups.insert(child.id() as i32);
        drop(live);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut instance = Instance {
            child,
            stdout: None,
            stdout_holds: 0,
            stderr: None,
            feeds: Vec::new(),
            command: words,
            pipes: named,
        };
        if let Some(stdout) = &stdout {
            let _ = fcntl_setpipe_size(stdout, PIPE);
            instance.stdout_holds = fcntl_getpipe_size(stdout).unwrap_or(0);
        }
        let process: Option<Arc<OwnedFd>> = Pid::from_raw(instance.id() as i32)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            .map(Arc::new);
        let patient = || process.clone();
        let feeds = feeds.into_iter().map(|feed| Patient::new(feed, patient()));
        instance.feeds = feeds.collect::<io::Result<_>>().map_err(StartError::Pipe)?;
        instance.stdout =
            stdout.map(|out| Patient::new(out, patient())).transpose().map_err(StartError::Pipe)?;
        instance.stderr =
            stderr.map(|err| Patient::new(err, patient())).transpose().map_err(StartError::Pipe)?;
        Ok(instance)
    }
}

/// Why an instance cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The command is empty.
    #[error("no command is given")]
    NoProgram,
    /// The system has no pipe for it.
    #[error("a pipe for an instance: {0}")]
    Pipe(io::Error),
    /// The system refuses the program.
    #[error("{program}: cannot start: {source}")]
    Program {
        /// Its name.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// Its CPUs or its memory are refused.
    #[error(transparent)]
    Place(#[from] genuma_machine::placement::Error),
    /// This process is about to end.
    #[error("interrupted")]
    Ending,
}

impl Instance {
    /// The number of the process, which is that of its group as well.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end. What it started and left behind is killed.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let id = self.child.id() as i32;
        if let Some(pid) = Pid::from_raw(id) {
            // Its number stays its own until it is waited for a second time.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
        }
        let mut live = live();
        if live.groups.remove(&id) {
            kill_group(id);
        }
        self.child.wait()
    }

    /// Kills it and what it started.
    pub fn kill(id: u32) {
        // Under the lock: the number is not another process's while its group is listed.
        let live = live();
        if live.groups.contains(&(id as i32)) {
            kill_group(id as i32);
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        Instance::kill(self.id());
        // Nothing better can be done with a failure here.
        let _ = self.wait();
    }
}
