//! What can go wrong in a farm, and where.

use std::any::Any;
use std::fmt;

use genuma_machine::placement;

use crate::Seat;

/// Why a farm stopped early. `E` is the error of the caller's own closures.
#[derive(Debug, thiserror::Error)]
pub enum Error<E> {
    /// There are no seats, or no tasks for them.
    #[error(
        "a farm needs at least one worker and one task for each: it was given {workers} and {tasks_per_worker}"
    )]
    Empty {
        /// Seats given.
        workers: usize,
        /// Tasks for each.
        tasks_per_worker: usize,
    },
    /// A worker cannot be where it should.
    #[error("worker {worker} cannot run on {seat}: {source}")]
    Seat {
        /// The worker, counted from 0.
        worker: usize,
        /// Where it should be.
        seat: Seat,
        /// Why it cannot.
        source: placement::Error,
    },
    /// The system gives no more threads.
    #[error("worker {worker} cannot start, run fewer: {source}")]
    Thread {
        /// The worker, counted from 0.
        worker: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// One of the closures returned an error.
    #[error("{place}: {source}")]
    Failed {
        /// Which one.
        place: Place,
        /// What it returned.
        source: E,
    },
    /// The source waits for a result to be handed on, and there is none to come.
    #[error("reading task {task}: the source waits for a result, but all {task} read before are handed on")]
    Standstill {
        /// The task that was to be read, counted from 0.
        task: u64,
    },
    /// One of the closures that workers call panicked.
    #[error("{place}: panicked: {message}")]
    Panicked {
        /// Which one.
        place: Place,
        /// What the panic said.
        message: String,
    },
}

/// A closure of a farm, and what it was busy with. Tasks and workers are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Making this worker's tasks.
    Tasks(usize),
    /// Making this worker's state.
    State(usize),
    /// Reading this task.
    Source(u64),
    /// Working on it.
    Work {
        /// The task.
        task: u64,
        /// The worker.
        worker: usize,
    },
    /// Handing it on.
    Sink(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tasks(worker) => write!(f, "making the tasks of worker {worker}"),
            Place::State(worker) => write!(f, "making the state of worker {worker}"),
            Place::Source(task) => write!(f, "reading task {task}"),
            Place::Work { task, worker } => write!(f, "task {task} on worker {worker}"),
            Place::Sink(task) => write!(f, "handing on task {task}"),
        }
    }
}

/// What a panic said, as far as it said it in words.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "something other than text".to_owned())
}
