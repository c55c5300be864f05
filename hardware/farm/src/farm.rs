//! Builds a farm, starts its workers and masters, and joins them.

use std::sync::mpsc;
use std::thread::{self, Builder};

use genuma_machine::IdSet;
use genuma_machine::placement::pin;

use crate::master::{Master, MasterResult, WorkerConnection};
use crate::shared::{MasterSleeper, SharedSourceAndSink};
use crate::worker::{WorkerSetup, WorkerSignals, WorkerSummary};
use crate::{CpuSlot, Error, SourceStatus};

/// Number of times that a thread checks its ring before it sleeps; together about 20 µs. Chosen: longer than waking a
/// thread takes.
const SPINS_BEFORE_SLEEP: u32 = 1000;

/// Settings of a master-worker farm: CPU slots, number of tasks per worker, and whether tasks are timed.
#[derive(Debug, Clone)]
pub struct Farm {
    cpu_slots: Vec<CpuSlot>,
    tasks_per_worker: usize,
    is_timed: bool,
}

/// Statistics of a finished farm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarmSummary {
    /// Number of tasks read, processed and passed to the sink.
    pub tasks: u64,
    /// Number of task objects that were allocated: workers × tasks per worker.
    pub allocated_tasks: usize,
    /// Number of masters.
    pub num_masters: usize,
    /// Number of times that masters slept, all masters together.
    pub(crate) master_sleeps: u64,
    /// Statistics of each worker, in the order of the CPU slots.
    pub workers: Vec<WorkerSummary>,
}

/// Result of all masters: number of tasks passed to the sink, and number of times that masters slept.
type MastersResult<E> = Result<(u64, u64), Error<E>>;

/// Guard that stops all workers when it is dropped, whether the masters returned a result, an error, or panicked.
struct StopWorkersOnDrop<'a>(&'a [WorkerSignals]);

impl Drop for StopWorkersOnDrop<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(WorkerSignals::request_stop);
    }
}

impl Farm {
    /// Creates a farm with one worker per CPU slot. Several slots may have the same CPU.
    pub fn new(cpu_slots: Vec<CpuSlot>) -> Self {
        Farm { cpu_slots, tasks_per_worker: 256, is_timed: false }
    }

    /// Sets the number of task objects per worker; 256 by default.
    ///
    /// While a slow task on another worker holds up the output order, a worker can process at most this many tasks. So
    /// set `tasks` higher than the ratio of the longest to the mean task time. Where tasks take about a microsecond, a
    /// worker also needs several dozen tasks in its ring while its master is busy. Where tasks are long and of equal
    /// length, 4 are enough.
    #[must_use]
    pub fn with_tasks_per_worker(mut self, tasks: usize) -> Self {
        self.tasks_per_worker = tasks;
        self
    }

    /// Sets whether the time of each task is measured, which costs about 50 ns per task. Off by default.
    #[must_use]
    pub fn with_task_timing(mut self, timed: bool) -> Self {
        self.is_timed = timed;
        self
    }

    /// Number of task objects that the farm allocates: workers × tasks per worker. This number limits the memory of the
    /// farm, and the number of tasks that have been read but not passed to the sink.
    pub fn num_allocated_tasks(&self) -> usize {
        self.cpu_slots.len() * self.tasks_per_worker
    }

    /// Reads tasks from `source`, processes them on the workers, and passes them to `sink` in the order of reading,
    /// until the source ends. The calling thread is the master.
    ///
    /// - `make_task` is called by each worker on its CPU, [`Self::with_tasks_per_worker`] times. For buffers on the
    ///   worker's NUMA node see [`allocate_touched_buffer`](crate::allocate_touched_buffer).
    /// - `make_state` is called once by each worker on its CPU.
    /// - `source` fills a task and returns true, or returns false at the end of the input; it may return a
    ///   [`SourceStatus`] instead. The task keeps its content from its last use: `source` or `sink` must clear it.
    /// - `work` is called by the worker that owns the task.
    /// - `sink` is called in the order of reading.
    ///
    /// # Errors
    /// The first error, in input order, that `source`, `work` or `sink` returns. Every task before that one went to
    /// `sink`, no task after it. An error of `make_state` and a panic of `work`, `make_task` or `make_state` are
    /// returned as errors, too. Other errors: the source waits for a result although all results have been passed to
    /// the sink, a worker cannot be pinned to its CPU, a thread cannot be started, or the farm has no workers or no
    /// tasks per worker.
    ///
    /// # Panics
    /// When `source` or `sink` panics, after the workers have ended.
    pub fn run_tasks<T, S, E, N>(
        &self,
        make_task: impl Fn(&CpuSlot) -> T + Sync,
        make_state: impl Fn(&CpuSlot) -> Result<S, E> + Sync,
        mut source: impl FnMut(&mut T) -> Result<N, E>,
        work: impl Fn(&mut S, &mut T) -> Result<(), E> + Sync,
        sink: impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<FarmSummary, Error<E>>
    where
        T: Send,
        E: Send,
        N: Into<SourceStatus>,
    {
        let posts = [MasterSleeper::default()];
        let masters = vec![0; self.cpu_slots.len()];
        let tasks = self.num_allocated_tasks();
        let source = |task: &mut T| source(task).map(Into::into);
        let shared = SharedSourceAndSink::new(source, sink, &posts, tasks);
        self.start_workers_and_run(make_task, make_state, work, &posts, &masters, |mut lanes| {
            let lanes = lanes.pop().expect("there is a master");
            let ended =
                Master::new(0, &shared, &posts[0], lanes, tasks, num_available_cpus(), self.spins_before_sleep(1))
                    .run_master();
            merge_master_results(vec![ended], shared.next_task_number_for_sink())
        })
    }

    /// Like [`Self::run_tasks`], with one master for each NUMA node that has workers. Masters use `source` and `sink`
    /// one at a time without waiting for each other, and keep the global order. Each master except the calling thread
    /// is an additional thread. A master is pinned to the CPUs of its workers, unless these are not pinned.
    ///
    /// Use this function when a single master cannot keep its workers busy. It does not help where `source` or `sink`
    /// is the bottleneck.
    ///
    /// # Errors
    /// As for [`Self::run_tasks`].
    ///
    /// # Panics
    /// As for [`Self::run_tasks`].
    pub fn run_tasks_with_master_per_node<T, S, E, N>(
        &self,
        make_task: impl Fn(&CpuSlot) -> T + Sync,
        make_state: impl Fn(&CpuSlot) -> Result<S, E> + Sync,
        mut source: impl FnMut(&mut T) -> Result<N, E> + Send,
        work: impl Fn(&mut S, &mut T) -> Result<(), E> + Sync,
        sink: impl FnMut(&mut T) -> Result<(), E> + Send,
    ) -> Result<FarmSummary, Error<E>>
    where
        T: Send,
        E: Send,
        N: Into<SourceStatus>,
    {
        let mut nodes: Vec<Option<u32>> = self.cpu_slots.iter().map(|cpu_slot| cpu_slot.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let master_of =
            |cpu_slot: &CpuSlot| nodes.binary_search(&cpu_slot.node).expect("the node of every CPU slot is listed");
        let masters: Vec<usize> = self.cpu_slots.iter().map(master_of).collect();
        let posts: Vec<MasterSleeper> = nodes.iter().map(|_| MasterSleeper::default()).collect();
        let cpus_of: Vec<IdSet> = nodes
            .iter()
            .map(|node| {
                self.cpu_slots
                    .iter()
                    .filter(|cpu_slot| cpu_slot.node == *node)
                    .filter_map(|cpu_slot| cpu_slot.cpu)
                    .collect()
            })
            .collect();
        let tasks = self.num_allocated_tasks();
        let source = |task: &mut T| source(task).map(Into::into);
        let shared = SharedSourceAndSink::new(source, sink, &posts, tasks);
        let (cpus, spins) = (num_available_cpus(), self.spins_before_sleep(posts.len()));
        self.start_workers_and_run(make_task, make_state, work, &posts, &masters, |lanes| {
            let master = |index: usize, lanes| {
                // The workers are pinned to these CPUs already, so pinning cannot fail.
                let _pinned = (!cpus_of[index].is_empty()).then(|| pin::pin_to_cpus(&cpus_of[index]));
                Master::new(index, &shared, &posts[index], lanes, tasks, cpus, spins).run_master()
            };
            let ended = thread::scope(|scope| {
                let mut lanes = lanes.into_iter();
                let first = lanes.next().expect("there is a master");
                let others: Vec<_> =
                    lanes.enumerate().map(|(other, lanes)| scope.spawn(move || master(other + 1, lanes))).collect();
                let mut ended = vec![master(0, first)];
                for other in others {
                    ended.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                }
                ended
            });
            merge_master_results(ended, shared.next_task_number_for_sink())
        })
    }

    /// Starts the workers, calls `run_masters` with each master's worker connections, and stops the workers.
    fn start_workers_and_run<T, S, E>(
        &self,
        make_task: impl Fn(&CpuSlot) -> T + Sync,
        make_state: impl Fn(&CpuSlot) -> Result<S, E> + Sync,
        work: impl Fn(&mut S, &mut T) -> Result<(), E> + Sync,
        posts: &[MasterSleeper],
        master_of: &[usize],
        run_masters: impl FnOnce(Vec<Vec<WorkerConnection<'_, T, E>>>) -> MastersResult<E>,
    ) -> Result<FarmSummary, Error<E>>
    where
        T: Send,
        E: Send,
    {
        if self.num_allocated_tasks() == 0 {
            let (workers, tasks_per_worker) = (self.cpu_slots.len(), self.tasks_per_worker);
            return Err(Error::NoWorkersOrTasks { workers, tasks_per_worker });
        }
        let wires: Vec<WorkerSignals> = self.cpu_slots.iter().map(|_| WorkerSignals::default()).collect();
        let (make_task, make_state, work) = (&make_task, &make_state, &work);
        thread::scope(|scope| {
            let stop = StopWorkersOnDrop(&wires);
            let (sender, ready) = mpsc::channel();
            let mut lane_of = vec![0; posts.len()];
            let mut workers = Vec::with_capacity(self.cpu_slots.len());
            for (worker, (&cpu_slot, signals)) in self.cpu_slots.iter().zip(&wires).enumerate() {
                let master = master_of[worker];
                let bench = WorkerSetup {
                    worker,
                    index_at_master: lane_of[master],
                    cpu_slot,
                    num_tasks: self.tasks_per_worker,
                    signals,
                    master: &posts[master].0,
                    spins_before_sleep: self.spins_before_sleep(posts.len()),
                    is_timed: self.is_timed,
                };
                lane_of[master] += 1;
                let sender = sender.clone();
                // The receiver is dropped only when another worker could not start; then this message is not needed.
                let say = move |ready| drop(sender.send((worker, ready)));
                let handle = Builder::new()
                    .name(format!("farm-{worker}"))
                    .spawn_scoped(scope, move || bench.run_worker(make_task, make_state, work, say))
                    .map_err(|source| Error::CannotStartThread { worker, source })?;
                workers.push(handle);
            }
            drop(sender);

            let mut lanes: Vec<Vec<WorkerConnection<'_, T, E>>> = posts.iter().map(|_| Vec::new()).collect();
            let mut made = 0;
            let mut all: Vec<_> = ready.iter().collect();
            all.sort_unstable_by_key(|&(worker, _)| worker);
            for (worker, ready) in all {
                let ready = ready?;
                made += ready.tasks.len();
                lanes[master_of[worker]].push(WorkerConnection::new(
                    worker,
                    self.cpu_slots[worker],
                    ready,
                    &wires[worker],
                ));
            }
            assert_eq!(made, self.num_allocated_tasks(), "a farm makes its tasks once");

            let (tasks, master_sleeps) = run_masters(lanes)?;
            drop(stop);
            let join = |worker: thread::ScopedJoinHandle<'_, WorkerSummary>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            let workers = workers.into_iter().map(join).collect();
            Ok(FarmSummary { tasks, allocated_tasks: made, num_masters: posts.len(), master_sleeps, workers })
        })
    }

    /// Number of times that a thread checks its ring before it sleeps. 0 if there are more threads than CPUs: spinning
    /// would then take CPU time from the threads whose results are waited for.
    fn spins_before_sleep(&self, masters: usize) -> u32 {
        if self.cpu_slots.len() + masters > num_available_cpus() { 0 } else { SPINS_BEFORE_SLEEP }
    }
}

/// Number of CPUs that this process can use at the same time.
fn num_available_cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Merges the results of the masters. `handed_on` is the number of tasks passed to the sink. Returns the error that is
/// first in input order, if there is one.
fn merge_master_results<E>(ended: Vec<MasterResult<E>>, handed_on: u64) -> MastersResult<E> {
    let sleeps = ended.iter().map(|master| master.sleeps).sum();
    let errors = ended.into_iter().filter_map(|master| master.error);
    match errors.min_by_key(|(number, _)| *number) {
        Some((_, error)) => Err(error),
        None => Ok((handed_on, sleeps)),
    }
}
