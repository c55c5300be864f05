//! Errors of a farm and the stage in which they occurred.

use std::any::Any;
use std::fmt;

use genuma_machine::placement;

use crate::CpuSlot;

/// Why a farm stopped early. `E` is the error type of the caller's closures.
#[derive(Debug, thiserror::Error)]
pub enum Error<E> {
    /// The farm has no workers, or no tasks per worker.
    #[error("a farm needs at least one worker and one task for each: it was given {workers} and {tasks_per_worker}")]
    NoWorkersOrTasks {
        /// Requested number of workers.
        workers: usize,
        /// Requested number of tasks per worker.
        tasks_per_worker: usize,
    },
    /// A worker cannot be pinned to its CPU.
    #[error("worker {worker} cannot run on {cpu_slot}: {source}")]
    CannotPinWorker {
        /// Index of the worker, from 0.
        worker: usize,
        /// The CPU slot of the worker.
        cpu_slot: CpuSlot,
        /// Why the worker could not be pinned.
        source: placement::Error,
    },
    /// The system cannot start another thread.
    #[error("cannot start thread {worker}: {source}; lower --threads")]
    CannotStartThread {
        /// Index of the worker, from 0.
        worker: usize,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// A closure of the caller returned an error.
    #[error("{stage}: {source}")]
    ClosureFailed {
        /// The closure that failed, and for which task or worker.
        stage: FailedClosure,
        /// Error that the closure returned.
        source: E,
    },
    /// The source waits for a result, but the results of all tasks that it filled have already been passed to the sink.
    #[error(
        "internal error, please report: reading task {task}: the source waits for a result, but the results of all {task} earlier tasks have been passed on"
    )]
    SourceDeadlock {
        /// Number of the task that the source should fill, from 0.
        task: u64,
    },
    /// A closure that workers call panicked.
    #[error("{stage}: panicked: {message}")]
    ClosurePanicked {
        /// The closure that panicked, and for which task or worker.
        stage: FailedClosure,
        /// Text of the panic.
        message: String,
    },
}

/// The closure of the caller that a farm was calling, and the task or worker it was called for. Tasks and workers are
/// numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedClosure {
    /// The closure `make_task`, called for the worker with this index.
    MakeTasks(usize),
    /// The closure `make_state`, called for the worker with this index.
    MakeState(usize),
    /// The closure `source`, called to fill the task with this number.
    Source(u64),
    /// The closure `work`, called for a task.
    Work {
        /// Number of the task in the order of the source, from 0.
        task: u64,
        /// Index of the worker.
        worker: usize,
    },
    /// The closure `sink`, called for the result of the task with this number.
    Sink(u64),
}

impl fmt::Display for FailedClosure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailedClosure::MakeTasks(worker) => write!(f, "making the tasks of worker {worker}"),
            FailedClosure::MakeState(worker) => write!(f, "making the state of worker {worker}"),
            FailedClosure::Source(task) => write!(f, "reading task {task}"),
            FailedClosure::Work { task, worker } => write!(f, "task {task} on worker {worker}"),
            FailedClosure::Sink(task) => write!(f, "passing on task {task}"),
        }
    }
}

/// Message of a panic, from the payload that the panic passed on; a fixed text if the payload is not a string.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "something other than text".to_owned())
}
