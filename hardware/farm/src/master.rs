//! A master: reads tasks, gives each to the least loaded worker, and passes results to the sink in order.

use std::hint::spin_loop;

use genuma_machine::placement::pin;
use rtrb::{Consumer, Producer};

use crate::reorder_buffer::ReorderBuffer;
use crate::shared::{MasterSleeper, NumberedSource, SharedSourceAndSink};
use crate::task_granularity::TaskGranularity;
use crate::worker::{StartedWorker, TaskEnvelope, TaskFailure, WorkerSignals};
use crate::{CpuSlot, Error, FailedClosure, SourceStatus};

/// Maximum number of results passed to the sink before a master checks its rings again; and number of tasks read,
/// rounded up to whole handovers.
const MAX_TASKS_PER_BURST: usize = 16;

/// A master's connection to one worker: the two rings, the free tasks, and the number of tasks at the worker.
pub(crate) struct WorkerConnection<'a, T, E> {
    task_ring: Producer<Box<TaskEnvelope<T, E>>>,
    result_ring: Consumer<Box<TaskEnvelope<T, E>>>,
    /// Tasks of the worker that are at the master and empty.
    free_tasks: Vec<Box<TaskEnvelope<T, E>>>,
    /// Number of the worker's tasks that are in a ring or being processed.
    num_tasks_at_worker: usize,
    /// Number of results that the worker has returned.
    num_results: u64,
    /// Total number of results at which the worker wakes the master.
    wake_at_results: u64,
    /// Maximum number of tasks that may be at the worker for now.
    max_tasks_at_worker: usize,
    /// Index of the worker in the whole farm.
    worker: usize,
    cpu_slot: CpuSlot,
    signals: &'a WorkerSignals,
}

impl<'a, T, E> WorkerConnection<'a, T, E> {
    /// Creates the connection to a worker that has started.
    pub(crate) fn new(
        worker: usize,
        cpu_slot: CpuSlot,
        ready: StartedWorker<T, E>,
        signals: &'a WorkerSignals,
    ) -> Self {
        let StartedWorker { task_ring: out, result_ring: back, tasks: free } = ready;
        WorkerConnection {
            task_ring: out,
            result_ring: back,
            free_tasks: free,
            num_tasks_at_worker: 0,
            num_results: 0,
            wake_at_results: 0,
            max_tasks_at_worker: 0,
            worker,
            cpu_slot,
            signals,
        }
    }

    fn can_take_task(&self) -> bool {
        self.num_tasks_at_worker < self.max_tasks_at_worker && !self.free_tasks.is_empty()
    }

    /// Whether the worker has returned as many results as the master waits for, or at least one and a task has failed.
    fn should_wake_master(&self) -> bool {
        let results = self.result_ring.slots() as u64;
        results > 0 && (self.num_results + results >= self.wake_at_results || self.signals.has_task_failed())
    }
}

/// A master: fills the tasks of its workers, and passes on their results in input order.
pub(crate) struct Master<'a, T, E, I, O> {
    /// Index of this master among all masters.
    index: usize,
    shared: &'a SharedSourceAndSink<'a, I, O>,
    sleeper: &'a MasterSleeper,
    workers: Vec<WorkerConnection<'a, T, E>>,
    reorder_buffer: ReorderBuffer<Box<TaskEnvelope<T, E>>>,
    /// Index, among this master's workers, of the worker that a task was given to; indexed by the task number modulo
    /// the length, a power of two.
    worker_of_task: Vec<u32>,
    /// Error of the source, and the number of the task that it should have filled.
    source_error: Option<(u64, Error<E>)>,
    /// Number of results collected.
    num_results: u64,
    pace: TaskGranularity,
    /// Number of times that the master checks for results before it sleeps.
    spins: u32,
    /// Number of times that the master slept.
    sleeps: u64,
}

/// Result of one master after it has ended.
pub(crate) struct MasterResult<E> {
    /// The error that stopped the master, with the number of the task at which it occurred; `None` without an error.
    pub(crate) error: Option<(u64, Error<E>)>,
    /// Number of times that the master slept.
    pub(crate) sleeps: u64,
}

/// Guard of the master with this index that stops the other masters when a closure of the caller panics in this master.
struct AbortOnPanic<'a, I, O>(&'a SharedSourceAndSink<'a, I, O>, usize);

impl<I, O> Drop for AbortOnPanic<'_, I, O> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abort_masters(self.1);
        }
    }
}

impl<'a, T, E, I, O> Master<'a, T, E, I, O>
where
    I: FnMut(&mut T) -> Result<SourceStatus, E>,
    O: FnMut(&mut T) -> Result<(), E>,
{
    /// Creates the master with index `me` and its workers. `tasks` is the number of task objects of all masters; `cpus`
    /// is the number of CPUs that the process can use.
    pub(crate) fn new(
        me: usize,
        shared: &'a SharedSourceAndSink<'a, I, O>,
        post: &'a MasterSleeper,
        lanes: Vec<WorkerConnection<'a, T, E>>,
        tasks: usize,
        cpus: usize,
        spins: u32,
    ) -> Self {
        let window = ReorderBuffer::new(tasks);
        let given = vec![0; tasks.next_power_of_two()];
        let pace = TaskGranularity::new(lanes.len().min(cpus), lanes.first().map_or(1, |lane| lane.free_tasks.len()));
        Master {
            index: me,
            shared,
            sleeper: post,
            workers: lanes,
            reorder_buffer: window,
            worker_of_task: given,
            source_error: None,
            num_results: 0,
            pace,
            spins,
            sleeps: 0,
        }
    }

    /// Reads tasks and passes on results until everything is done or an error occurs.
    pub(crate) fn run_master(mut self) -> MasterResult<E> {
        let _abort = AbortOnPanic(self.shared, self.index);
        self.update_task_limits();
        let error = loop {
            if self.shared.are_masters_aborted() {
                break None;
            }
            self.collect_results();
            if let Err(error) = self.pass_results_in_order() {
                self.shared.abort_masters(self.index);
                break Some(error);
            }
            self.read_and_distribute();
            if self.is_done() {
                break None;
            }
            if !self.can_proceed() {
                self.wait_for_results();
            }
        };
        MasterResult { error: error.or(self.source_error), sleeps: self.sleeps }
    }

    fn is_done(&self) -> bool {
        self.shared.has_reading_ended()
            && self.reorder_buffer.is_empty()
            && self.workers.iter().all(|lane| lane.num_tasks_at_worker == 0)
    }

    /// Takes all results out of the rings.
    fn collect_results(&mut self) {
        for lane in &mut self.workers {
            if lane.num_tasks_at_worker == 0 {
                continue;
            }
            while let Ok(job) = lane.result_ring.pop() {
                lane.num_tasks_at_worker -= 1;
                lane.num_results += 1;
                self.num_results += 1;
                if job.failure.is_some() {
                    // All earlier tasks have been read. They are still waited for, because one of them may fail, too.
                    self.shared.end_reading(self.index);
                }
                self.reorder_buffer.insert(job.number, job);
            }
        }
    }

    /// Passes results to the sink, in input order, as long as the next result in order is at this master.
    fn pass_results_in_order(&mut self) -> Result<(), (u64, Error<E>)> {
        if !self.reorder_buffer.contains(self.shared.next_task_number_for_sink()) {
            return Ok(());
        }
        let Master { shared, reorder_buffer: window, workers: lanes, .. } = self;
        shared.pass_results_to_sink(self.index, |sink, first| {
            let mut next = first;
            while next < first + MAX_TASKS_PER_BURST as u64
                && let Some(mut job) = window.remove(next)
            {
                let lane = &mut lanes[job.worker_index];
                match job.failure.take() {
                    None => sink(&mut job.task)
                        .map_err(|source| (next, Error::ClosureFailed { stage: FailedClosure::Sink(next), source }))?,
                    Some(fault) => return Err((next, task_error(fault, next, lane.worker))),
                }
                lane.free_tasks.push(job);
                next += 1;
            }
            Ok(next)
        })
    }

    /// Reads tasks and gives them to workers.
    fn read_and_distribute(&mut self) {
        if !self.can_read() {
            return;
        }
        let (me, shared) = (self.index, self.shared);
        if self.pace.measure_and_update_limits(self.num_results) {
            self.update_task_limits();
        }
        // If another master is reading, this master can pass on results in the meantime.
        let _ = shared.try_read_tasks(me, |input| {
            let mut room = MAX_TASKS_PER_BURST;
            // The results that the source has seen include at least all before this one.
            let next_for_sink = shared.next_task_number_for_sink();
            while room > 0
                && !shared.has_reading_ended()
                && !shared.source_waits_for_result()
                && let Some(lane) = self.least_loaded_worker()
            {
                let share = self.pace.tasks_per_handover();
                for _ in 0..share {
                    if !self.read_task_for_worker(lane, input, next_for_sink) {
                        break;
                    }
                }
                self.workers[lane].signals.sleeper.wake_thread();
                room = room.saturating_sub(share);
            }
        });
    }

    /// The worker with the fewest tasks among those that can take a task.
    fn least_loaded_worker(&self) -> Option<usize> {
        let free = self.workers.iter().enumerate().filter(|(_, lane)| lane.can_take_task());
        free.min_by_key(|(_, lane)| lane.num_tasks_at_worker).map(|(lane, _)| lane)
    }

    /// Reads one task and gives it to worker number `lane`. `next_for_sink` is the number of the task whose result was
    /// due at the sink when reading began: results before it have been passed on. Returns false if the worker has no
    /// free task, the source has ended or failed, or it waits for a result.
    fn read_task_for_worker(&mut self, lane: usize, input: &mut NumberedSource<I>, next_for_sink: u64) -> bool {
        let number = input.next_task;
        let to = &mut self.workers[lane];
        if !to.can_take_task() {
            return false;
        }
        let mut job = to.free_tasks.pop().expect("there is room");
        match (input.source)(&mut job.task) {
            Ok(SourceStatus::Filled) => {}
            Ok(SourceStatus::WaitForResult) if next_for_sink < number => {
                to.free_tasks.push(job);
                self.shared.set_source_waits_for_result(next_for_sink);
                return false;
            }
            ended => {
                to.free_tasks.push(job);
                let wrong = match ended {
                    Err(source) => Some(Error::ClosureFailed { stage: FailedClosure::Source(number), source }),
                    Ok(SourceStatus::WaitForResult) => Some(Error::SourceDeadlock { task: number }),
                    Ok(_) => None,
                };
                self.source_error = wrong.map(|wrong| (number, wrong));
                self.shared.end_reading(self.index);
                return false;
            }
        }
        input.next_task += 1;
        job.number = number;
        let slot = number as usize & (self.worker_of_task.len() - 1);
        self.worker_of_task[slot] = lane as u32;
        self.shared.record_master_that_read_task(self.index, number);
        to.num_tasks_at_worker += 1;
        to.task_ring.push(job).expect("the ring has room for all tasks of its worker");
        true
    }

    /// Waits for results: checks the rings for a while, then sleeps until a worker or another master wakes this
    /// master.
    fn wait_for_results(&mut self) {
        let has_results =
            |lane: &WorkerConnection<'_, T, E>| lane.num_tasks_at_worker > 0 && !lane.result_ring.is_empty();
        for _ in 0..self.spins {
            spin_loop();
            if self.workers.iter().any(has_results) || self.can_proceed() {
                return;
            }
        }
        self.set_wake_thresholds();
        let slept = self
            .sleeper
            .0
            .sleep_unless(|| self.workers.iter().any(WorkerConnection::should_wake_master) || self.can_proceed());
        self.sleeps += u64::from(slept);
        self.update_task_limits();
    }

    /// Sets the maximum number of tasks per worker.
    ///
    /// Where threads share CPUs, a woken master runs only when the worker on its CPU has no more tasks. If the other
    /// workers had no more tasks than that one, they would be idle from then on. So the worker on the master's CPU
    /// gets half as many tasks as the others: it finishes first, and the master runs in time for the others.
    fn update_task_limits(&mut self) {
        let stock = self.pace.max_tasks_per_worker();
        let here = (self.spins == 0).then(|| pin::current_location().cpu);
        let shares = |lane: &WorkerConnection<'_, T, E>| here.is_some() && lane.cpu_slot.cpu == here;
        let alone = self.workers.iter().all(shares);
        for lane in &mut self.workers {
            lane.max_tasks_at_worker = if shares(lane) && !alone { stock / 2 } else { stock };
        }
    }

    /// Whether the master can do something without further results.
    fn can_proceed(&self) -> bool {
        self.reorder_buffer.contains(self.shared.next_task_number_for_sink())
            || self.can_read()
            || self.shared.are_masters_aborted()
            || self.is_done()
    }

    /// Whether a task can be read: the source has not ended and does not wait, no other master is reading, and a
    /// worker can take a task.
    fn can_read(&self) -> bool {
        !self.shared.has_reading_ended()
            && !self.shared.source_waits_for_result()
            && !self.shared.is_source_being_read()
            && self.workers.iter().any(WorkerConnection::can_take_task)
    }

    /// Sets the number of results at which each worker wakes the master: half of its tasks, so that master and worker
    /// do not spend their time on thread switches. If a worker has no task, or the source waits, the result of the next
    /// task in order is needed at once. That task is the first one at its worker, because a worker processes tasks in
    /// order and all earlier results have been passed on.
    fn set_wake_thresholds(&mut self) {
        let next = self.shared.next_task_number_for_sink();
        let held_up = self.shared.master_that_read_task(next) == Some(self.index)
            && !self.shared.has_reading_ended()
            && (self.shared.source_waits_for_result() || self.workers.iter().any(|lane| lane.num_tasks_at_worker == 0));
        let first = self.worker_of_task[next as usize & (self.worker_of_task.len() - 1)] as usize;
        for (index, lane) in self.workers.iter_mut().enumerate() {
            let enough = if held_up && index == first { 1 } else { (lane.num_tasks_at_worker / 2).max(1) };
            lane.wake_at_results = lane.num_results + enough as u64;
            lane.signals.master_waker.request_wake_at_num_results(lane.wake_at_results);
        }
    }
}

fn task_error<E>(fault: TaskFailure<E>, task: u64, worker: usize) -> Error<E> {
    let stage = FailedClosure::Work { task, worker };
    match fault {
        TaskFailure::Failed(source) => Error::ClosureFailed { stage, source },
        TaskFailure::Panicked(message) => Error::ClosurePanicked { stage, message },
    }
}
