//! A worker: allocates its tasks and its state on its CPU, then processes the tasks that arrive in its ring.

use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use genuma_machine::placement::pin;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::error::panic_message;
use crate::sleep::{MasterWakeThreshold, Sleeper};
use crate::sync::{AtomicBool, Ordering};
use crate::{CpuSlot, Error, FailedClosure};

/// A task object with what the farm records about it: its number, its worker and its failure.
pub(crate) struct TaskEnvelope<T, E> {
    pub(crate) task: T,
    /// Number of the task in the input.
    pub(crate) number: u64,
    /// Index of the worker that owns the task, among the workers of its master.
    pub(crate) worker_index: usize,
    /// Why processing the task failed, if it did.
    pub(crate) failure: Option<TaskFailure<E>>,
}

/// Why a task has no result: the closure returned an error, or it panicked.
pub(crate) enum TaskFailure<E> {
    Failed(E),
    Panicked(String),
}

/// Flags and wake-ups between a worker and its master, apart from the rings. Takes two cache lines, because the
/// processor fetches lines in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct WorkerSignals {
    /// Sleep state of the worker.
    pub(crate) sleeper: Sleeper,
    /// Number of results at which the worker wakes the master.
    pub(crate) master_waker: MasterWakeThreshold,
    /// Whether the farm has requested that the worker end after its current task.
    is_stopped: AtomicBool,
    /// Whether a task of the worker has failed. Set by the worker.
    has_failed: AtomicBool,
}

impl WorkerSignals {
    /// Makes the worker end after its current task, and wakes it if it sleeps.
    pub(crate) fn request_stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.sleeper.wake_thread();
    }

    /// Whether a task of this worker failed. After a panic the worker returns no more results, so the master must not
    /// wait for a number of results.
    pub(crate) fn has_task_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// A worker that has started: its rings and its tasks, for the master.
pub(crate) struct StartedWorker<T, E> {
    /// Ring from the master to the worker.
    pub(crate) task_ring: Producer<Box<TaskEnvelope<T, E>>>,
    /// Ring from the worker to the master.
    pub(crate) result_ring: Consumer<Box<TaskEnvelope<T, E>>>,
    /// All task objects of the worker.
    pub(crate) tasks: Vec<Box<TaskEnvelope<T, E>>>,
}

/// Statistics of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSummary {
    /// CPU slot that the worker was assigned to.
    pub cpu_slot: CpuSlot,
    /// CPU that the worker ran on when it ended.
    pub cpu: u32,
    /// NUMA node of that CPU.
    pub node: u32,
    /// Number of tasks that the worker processed.
    pub tasks: u64,
    /// Time spent on the tasks, including time when the thread was not scheduled. `None` unless enabled by
    /// [`Farm::with_task_timing`](crate::Farm::with_task_timing).
    pub busy_time: Option<Duration>,
    /// Number of times that the worker slept.
    pub(crate) sleeps: u64,
}

/// CPU slot, signals and settings with which a worker thread starts; independent of the task type.
pub(crate) struct WorkerSetup<'a> {
    /// Index of the worker in the whole farm, from 0.
    pub(crate) worker: usize,
    /// Index of the worker among the workers of its master, from 0.
    pub(crate) index_at_master: usize,
    pub(crate) cpu_slot: CpuSlot,
    /// Number of task objects that the worker allocates.
    pub(crate) num_tasks: usize,
    pub(crate) signals: &'a WorkerSignals,
    /// The thread of the worker's master, to wake it.
    pub(crate) master: &'a Sleeper,
    /// Number of times that the worker checks for a task before it sleeps.
    pub(crate) spins_before_sleep: u32,
    /// Whether to measure the time of each task.
    pub(crate) is_timed: bool,
}

impl WorkerSetup<'_> {
    /// Pins the thread, allocates the state and the tasks, reports the result to `ready`, and processes tasks until
    /// the worker is stopped or `work` panics.
    pub(crate) fn run_worker<T, S, E>(
        &self,
        make_task: impl Fn(&CpuSlot) -> T,
        make_state: impl FnOnce(&CpuSlot) -> Result<S, E>,
        work: impl Fn(&mut S, &mut T) -> Result<(), E>,
        ready: impl FnOnce(Result<StartedWorker<T, E>, Error<E>>),
    ) -> WorkerSummary {
        let WorkerSetup { worker, cpu_slot, .. } = *self;
        // Dropped at the end of the thread. The farm owns the thread, so its affinity does not matter afterwards.
        let _pinned = match cpu_slot.cpu.map(pin::pin_to_cpu).transpose() {
            Ok(pinned) => pinned,
            Err(source) => {
                ready(Err(Error::CannotPinWorker { worker, cpu_slot, source }));
                return self.summarize(0, None, 0);
            }
        };
        let made = self.make_state(make_state).and_then(|state| Ok((state, self.make_tasks(make_task)?)));
        match made {
            Ok((state, tasks)) => {
                let (out, inbox) = RingBuffer::new(self.num_tasks);
                let (outbox, back) = RingBuffer::new(self.num_tasks);
                ready(Ok(StartedWorker { task_ring: out, result_ring: back, tasks }));
                self.process_tasks(state, work, inbox, outbox)
            }
            Err(error) => {
                ready(Err(error));
                self.summarize(0, None, 0)
            }
        }
    }

    fn make_state<S, E>(&self, make: impl FnOnce(&CpuSlot) -> Result<S, E>) -> Result<S, Error<E>> {
        let stage = FailedClosure::MakeState(self.worker);
        match catch_unwind(AssertUnwindSafe(|| make(&self.cpu_slot))) {
            Ok(Ok(state)) => Ok(state),
            Ok(Err(source)) => Err(Error::ClosureFailed { stage, source }),
            Err(panic) => Err(Error::ClosurePanicked { stage, message: panic_message(&*panic) }),
        }
    }

    fn make_tasks<T, E>(&self, make: impl Fn(&CpuSlot) -> T) -> Result<Vec<Box<TaskEnvelope<T, E>>>, Error<E>> {
        let job = |_| {
            Box::new(TaskEnvelope {
                task: make(&self.cpu_slot),
                number: 0,
                worker_index: self.index_at_master,
                failure: None,
            })
        };
        catch_unwind(AssertUnwindSafe(|| (0..self.num_tasks).map(job).collect())).map_err(|panic| {
            Error::ClosurePanicked { stage: FailedClosure::MakeTasks(self.worker), message: panic_message(&*panic) }
        })
    }

    fn process_tasks<T, S, E>(
        &self,
        mut state: S,
        work: impl Fn(&mut S, &mut T) -> Result<(), E>,
        mut inbox: Consumer<Box<TaskEnvelope<T, E>>>,
        mut outbox: Producer<Box<TaskEnvelope<T, E>>>,
    ) -> WorkerSummary {
        let (mut tasks, mut sleeps) = (0, 0);
        let mut busy = self.is_timed.then_some(Duration::ZERO);
        while let Some(mut job) = self.next_task(&mut inbox, &mut sleeps) {
            let start = self.is_timed.then(Instant::now);
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut state, &mut job.task)));
            if let (Some(busy), Some(start)) = (&mut busy, start) {
                *busy += start.elapsed();
            }
            let panicked = done.is_err();
            job.failure = match done {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(TaskFailure::Failed(error)),
                Err(panic) => Some(TaskFailure::Panicked(panic_message(&*panic))),
            };
            let failed = job.failure.is_some();
            tasks += 1;
            outbox.push(job).expect("the ring back has room for all tasks of its worker");
            self.signals.master_waker.wake_if_num_results_reached(tasks, self.master);
            if failed {
                self.signals.has_failed.store(true, Ordering::Relaxed);
                self.master.wake_thread();
            }
            // A panic may leave the state inconsistent: no further task may use it.
            if panicked {
                break;
            }
        }
        self.summarize(tasks, busy, sleeps)
    }

    /// Waits for the next task. `None` when the worker is to stop.
    fn next_task<J>(&self, inbox: &mut Consumer<J>, sleeps: &mut u64) -> Option<J> {
        loop {
            if self.signals.is_stopped() {
                return None;
            }
            if let Ok(job) = inbox.pop() {
                return Some(job);
            }
            let came = (0..self.spins_before_sleep).any(|_| {
                spin_loop();
                !inbox.is_empty() || self.signals.is_stopped()
            });
            if !came {
                let slept = self.signals.sleeper.sleep_unless(|| !inbox.is_empty() || self.signals.is_stopped());
                *sleeps += u64::from(slept);
            }
        }
    }

    fn summarize(&self, tasks: u64, busy: Option<Duration>, sleeps: u64) -> WorkerSummary {
        let here = pin::current_location();
        WorkerSummary { cpu_slot: self.cpu_slot, cpu: here.cpu, node: here.node, tasks, busy_time: busy, sleeps }
    }
}

/// Allocates an empty buffer with capacity for `bytes` bytes and writes to all its pages on the calling thread. The
/// kernel places a page on the NUMA node of the thread that first writes to it. So use this function in `make_task` for
/// the buffers of a task: with plain `Vec::with_capacity` or `vec![0; n]` the pages would be on the node of the master,
/// which reads input into them.
pub fn allocate_touched_buffer(bytes: usize) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(bytes);
    // Not 0: the allocator would skip the writes, because fresh memory from the kernel is zero.
    buffer.resize(bytes, 1);
    std::hint::black_box(&mut buffer).clear();
    buffer
}
