//! A process of an aligner: it is pinned to CPUs, has a memory policy, gets its reads through pipes, and its last lines
//! of standard error are kept.

mod pipe_pacing;

mod process_pipe;

mod parent_death;

mod stderr_logging;

pub(crate) use parent_death::kill_process_when_parent_thread_ends;
pub(crate) use pipe_pacing::PipePacing;
pub(crate) use process_pipe::ProcessPipe;
pub use stderr_logging::{STDERR_LOG_TARGET, StderrLogging};

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genuma_machine::placement::{ScopedMemoryPolicy, pin};
use genuma_work::counters::{ChildCounters, ProcessCounters, ResourceUsage, wait_for_child};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};

use crate::cpu_layout::CpuSlot;
use crate::invocation::{Invocation, ReadInputMode};
use crate::memory_pages::{HugePageSampler, HugePageUse, MemoryPages};
use crate::page_placement::process_ids_of_group;

/// Size of a pipe, bytes: the maximum for an unprivileged process (`/proc/sys/fs/pipe-max-size`).
const PIPE_BYTES: usize = 1 << 20;

/// Process groups of the running instances.
static LIVE_GROUPS: Mutex<LiveGroups> = Mutex::new(LiveGroups { closed: false, groups: BTreeSet::new() });

struct LiveGroups {
    /// Whether no more instances may be started.
    closed: bool,
    groups: BTreeSet<i32>,
}

fn lock_live_groups() -> MutexGuard<'static, LiveGroups> {
    LIVE_GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all instances that this process started, with all their children, and prevents new ones. Call it when the
/// process is about to exit.
pub fn kill_all_instances() {
    let mut live = lock_live_groups();
    live.closed = true;
    live.groups.iter().for_each(|&group| kill_group(group));
}

/// Returns whether [`kill_all_instances`] has been called.
pub(crate) fn is_shutting_down() -> bool {
    lock_live_groups().closed
}

fn kill_group(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        // The group may already be gone.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Waits until a child process ends, without reaping it: its ID stays reserved until another wait reaps it.
pub(crate) fn wait_for_exit_without_reaping(id: u32) {
    if let Some(pid) = Pid::from_raw(id as i32) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
    }
}

/// A running aligner process.
pub(crate) struct Instance {
    child: Child,
    /// Standard output of the process.
    pub stdout: Option<ProcessPipe<ChildStdout>>,
    /// Size of the standard output pipe, bytes.
    pub(crate) stdout_pipe_bytes: usize,
    /// Standard error of the process.
    pub stderr: Option<ProcessPipe<ChildStderr>>,
    /// Pipes through which the process gets its reads: one, or two for read 1 and read 2.
    pub(crate) input_pipes: Vec<ProcessPipe<PipeWriter>>,
    /// Command line, as started.
    pub command: Vec<OsString>,
    /// Paths of the input pipes, as they are in the command line; empty if the reads come on standard input.
    pub pipes: Vec<PathBuf>,
    /// Exit status and used resources of the process, once it has ended.
    ended: Option<(ExitStatus, ResourceUsage)>,
    counters: Option<ChildCounters>,
    /// Requested page size of the memory of the process.
    requested_pages: MemoryPages,
    huge_pages: Option<HugePageSampler>,
}

/// Starts instances from one command line.
pub(crate) struct InstanceLauncher<'a> {
    /// Command line of the instances.
    pub invocation: &'a Invocation,
    /// Number of bases in a block of reads of the plain run; 0 without blocks.
    pub block: u64,
    /// Whether to count the resources that the instance uses.
    pub has_counters: bool,
}

impl InstanceLauncher<'_> {
    /// Starts an instance on its CPU slot. The process is killed when this thread ends.
    ///
    /// # Errors
    /// The program cannot be started, or the pipes, CPUs or memory policy are refused.
    pub(crate) fn start_instance(&self, cpu_slot: &CpuSlot) -> Result<Instance, StartError> {
        let pipe = || -> io::Result<(PipeReader, PipeWriter)> {
            let (reader, writer) = io::pipe()?;
            // A smaller pipe also works.
            let _ = fcntl_setpipe_size(&writer, PIPE_BYTES);
            Ok((reader, writer))
        };
        let feed = self.invocation.feed;
        let pipes: io::Result<Vec<_>> =
            (0..if feed == ReadInputMode::TwoFiles { 2 } else { 1 }).map(|_| pipe()).collect();
        let (mut readers, input_pipes): (Vec<_>, Vec<_>) = pipes.map_err(StartError::Pipe)?.into_iter().unzip();
        let named = match feed {
            ReadInputMode::Stdin => Vec::new(),
            _ => readers.iter().map(|r| PathBuf::from(format!("/proc/self/fd/{}", r.as_raw_fd()))).collect(),
        };
        let paths: Vec<&Path> = named.iter().map(PathBuf::as_path).collect();
        let words = self.invocation.build_instance_command(cpu_slot.threads, self.block, &paths);
        let stdin = if feed == ReadInputMode::Stdin { Stdio::from(readers.remove(0)) } else { Stdio::null() };
        let streams = ProcessStreams { stdin, stdout: Stdio::piped(), inherited: readers, input_pipes };
        let mut instance = streams.start_process(words, cpu_slot, self.has_counters)?;
        instance.pipes = named;
        Ok(instance)
    }
}

/// Standard input and output of a process, and further pipes from which it reads. Its standard error is a pipe.
pub(crate) struct ProcessStreams {
    /// Standard input.
    pub stdin: Stdio,
    /// Standard output.
    pub stdout: Stdio,
    /// Pipes that the process inherits, in addition to its standard streams.
    pub inherited: Vec<PipeReader>,
    /// The other ends of the pipes from which the process reads.
    pub input_pipes: Vec<PipeWriter>,
}

impl ProcessStreams {
    /// Streams of a process that reads nothing from genuma and writes to `stdout`.
    pub(crate) fn without_input(stdout: Stdio) -> ProcessStreams {
        ProcessStreams { stdin: Stdio::null(), stdout, inherited: Vec::new(), input_pipes: Vec::new() }
    }

    /// Starts a process with the command line `words` in its own process group, on the CPUs and with the memory policy
    /// of `cpu_slot`. It is killed when this thread ends.
    ///
    /// # Errors
    /// The program cannot be started, or the pipes, CPUs or memory policy are refused.
    pub(crate) fn start_process(
        self,
        words: Vec<OsString>,
        cpu_slot: &CpuSlot,
        has_counters: bool,
    ) -> Result<Instance, StartError> {
        let (program, arguments) = words.split_first().ok_or(StartError::NoProgram)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(self.stdin).stdout(self.stdout).stderr(Stdio::piped());
        command.process_group(0);
        kill_process_when_parent_thread_ends(&mut command);
        cpu_slot.pages.apply_to_command(&mut command);

        // A process inherits CPUs and memory policy of the starting thread. Start one process at a time, so that none
        // inherits the pipes of another and keeps them open.
        let mut live = lock_live_groups();
        if live.closed {
            return Err(StartError::ShuttingDown);
        }
        let _pinned = pin::pin_to_cpus(&cpu_slot.cpus)?;
        let _scoped = cpu_slot.policy.as_ref().map(ScopedMemoryPolicy::set_thread_policy).transpose()?;
        for reader in &self.inherited {
            fcntl_setfd(reader.as_fd(), FdFlags::empty()).map_err(|e| StartError::Pipe(e.into()))?;
        }
        let counters = has_counters.then(ChildCounters::for_next_child);
        let started = command.spawn();
        drop(self.inherited);
        let mut child = started
            .map_err(|source| StartError::Program { program: program.to_string_lossy().into_owned(), source })?;
        live.groups.insert(child.id() as i32);
        drop(live);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut instance = Instance {
            child,
            stdout: None,
            stdout_pipe_bytes: 0,
            stderr: None,
            input_pipes: Vec::new(),
            command: words,
            pipes: Vec::new(),
            ended: None,
            counters,
            requested_pages: cpu_slot.pages,
            huge_pages: None,
        };
        if let Some(stdout) = &stdout {
            let _ = fcntl_setpipe_size(stdout, PIPE_BYTES);
            instance.stdout_pipe_bytes = fcntl_getpipe_size(stdout).unwrap_or(0);
        }
        instance.attach_pipes(self.input_pipes, stdout, stderr).map_err(StartError::Pipe)?;
        Ok(instance)
    }
}

/// Reason why an instance cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The command line is empty.
    #[error("no command is given")]
    NoProgram,
    /// The operating system cannot create a pipe.
    #[error("a pipe for an instance: {0}")]
    Pipe(io::Error),
    /// The operating system cannot start the program.
    #[error("{program}: cannot start: {source}")]
    Program {
        /// Name of the program.
        program: String,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// The thread cannot be pinned to the CPUs, or the memory policy cannot be set.
    #[error(transparent)]
    PlacementFailed(#[from] genuma_machine::placement::Error),
    /// This process is exiting, so no more instances are started.
    #[error("interrupted")]
    ShuttingDown,
}

impl Instance {
    /// Returns the process ID, which is also the ID of the process group.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Attaches the pipes to the process. Reading and writing end when the process ends, even if its children keep the
    /// pipes open.
    fn attach_pipes(
        &mut self,
        input_pipes: Vec<PipeWriter>,
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
    ) -> io::Result<()> {
        let process: Option<Arc<OwnedFd>> = Pid::from_raw(self.process_id() as i32)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            .map(Arc::new);
        let patient = || process.clone();
        self.input_pipes =
            input_pipes.into_iter().map(|feed| ProcessPipe::from_pipe(feed, patient())).collect::<io::Result<_>>()?;
        self.stdout = stdout.map(|out| ProcessPipe::from_pipe(out, patient())).transpose()?;
        self.stderr = stderr.map(|err| ProcessPipe::from_pipe(err, patient())).transpose()?;
        Ok(())
    }

    /// Starts the threads that sample the resources of the process, if counters were requested, and its huge pages, if
    /// a page size was requested. The calling thread must
    /// not be pinned to the CPUs of the instance, because the new threads inherit its affinity.
    pub(crate) fn start_resource_sampling(&mut self) {
        let group = self.process_id();
        if let Some(counters) = &mut self.counters {
            counters.start_sampling(move || process_ids_of_group(group));
        }
        if self.requested_pages != MemoryPages::Default {
            self.huge_pages = HugePageSampler::start(move || process_ids_of_group(group));
        }
    }

    /// Returns how much memory of the process was in huge pages; `None` if no page size was requested, or there is no
    /// sample.
    pub(crate) fn take_huge_page_use(&mut self) -> Option<HugePageUse> {
        self.huge_pages.take()?.finish()
    }

    /// Returns the resources that the process used; `None` if they were not counted, were already taken, or the process
    /// has not ended.
    pub(crate) fn take_counters(&mut self) -> Option<ProcessCounters> {
        let (_, usage) = self.ended?;
        self.counters.take().map(|counters| counters.finish(usage))
    }

    /// Waits until the process exits, then kills the processes of its group that are still running. Returns the exit
    /// status.
    pub(crate) fn wait_for_exit(&mut self) -> io::Result<ExitStatus> {
        if let Some((status, _)) = self.ended {
            return Ok(status);
        }
        let id = self.child.id() as i32;
        wait_for_exit_without_reaping(self.child.id());
        let mut live = lock_live_groups();
        if live.groups.remove(&id) {
            kill_group(id);
        }
        let ended = wait_for_child(self.child.id())?;
        self.ended = Some(ended);
        Ok(ended.0)
    }

    /// Kills the instance with the process ID `id` and all processes of its group. Does nothing if no running instance
    /// has this ID.
    pub(crate) fn kill_instance(id: u32) {
        // The lock makes sure that the ID still belongs to a listed instance.
        let live = lock_live_groups();
        if live.groups.contains(&(id as i32)) {
            kill_group(id as i32);
        }
    }
}

/// Returns how a process failed: its exit code, or the signal that killed it.
pub(crate) fn format_failure(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("was killed by signal {signal}"),
        None => format!("failed with exit code {}", status.code().unwrap_or(-1)),
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        Instance::kill_instance(self.process_id());
        // An error cannot be handled here.
        let _ = self.wait_for_exit();
    }
}
