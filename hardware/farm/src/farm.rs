//! Putting a farm together and taking it apart.

use std::sync::mpsc;
use std::thread::{self, Builder};

use genuma_machine::IdSet;
use genuma_machine::placement::pin;

use crate::desk::{Desk, Post};
use crate::master::{Ended, Lane, Master};
use crate::worker::{Bench, Wire, Worked};
use crate::{Error, Next, Seat};

/// Looks at a ring before a thread sleeps, about 20 µs of them.
const SPINS: u32 = 1000;

/// A number of workers and the tasks they have.
#[derive(Debug, Clone)]
pub struct Farm {
    seats: Vec<Seat>,
    tasks_per_worker: usize,
    timed: bool,
}

/// What a farm did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Tasks read, worked on and handed on.
    pub tasks: u64,
    /// Tasks that were ever made: workers × tasks per worker.
    pub made: usize,
    /// Masters.
    pub masters: usize,
    /// How often a master slept.
    pub(crate) master_sleeps: u64,
    /// Each worker, in the order of the seats.
    pub workers: Vec<Worked>,
}

/// What a farm's masters did: tasks handed on, and how often masters slept.
type Mastered<E> = Result<(u64, u64), Error<E>>;

/// Stops all workers however the master ends.
struct Stop<'a>(&'a [Wire]);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(Wire::stop);
    }
}

impl Farm {
    /// A farm with a worker on each seat. Threads may share a CPU.
    pub fn new(seats: Vec<Seat>) -> Self {
        Farm { seats, tasks_per_worker: 256, timed: false }
    }

    /// How many tasks each worker has; 256 unless set.
    ///
    /// A worker with `n` tasks goes on for `n` tasks while a slow one elsewhere holds up the order, so give more than the
    /// slowest task is slower than the others. Where tasks take a microsecond, several dozen are also what a worker needs to
    /// have in its ring while its master is busy. Where they are large and equally long, 4 do.
    #[must_use]
    pub fn tasks_per_worker(mut self, tasks: usize) -> Self {
        self.tasks_per_worker = tasks;
        self
    }

    /// Whether to time each task, which costs some 50 ns a task. Off unless set.
    #[must_use]
    pub fn timed(mut self, timed: bool) -> Self {
        self.timed = timed;
        self
    }

    /// Tasks the farm makes: workers × tasks per worker. It bounds its memory, and how far reading is ahead of handing on.
    pub fn tasks(&self) -> usize {
        self.seats.len() * self.tasks_per_worker
    }

    /// Reads tasks, works on them, hands them on in the order they were read, all until the source says there are no more.
    /// The calling thread is the master.
    ///
    /// - `make_task` is called by each worker on its seat, [`Self::tasks_per_worker`] times. For buffers that are to lie on
    ///   the worker's node see [`touched`](crate::touched).
    /// - `make_state` is called once by each worker on its seat.
    /// - `source` fills a task and gives true, or gives false when there is nothing more; or gives a [`Next`]. It finds in
    ///   the task what was left there: it is for `source` or `sink` to empty it.
    /// - `work` is called by the worker the task belongs to.
    /// - `sink` is called in the order of reading.
    ///
    /// # Errors
    /// The first, in the order of the input, of what `source`, `work` and `sink` return; everything before it went to
    /// `sink`, nothing after it. A panic of `work`, `make_task` or `make_state` is such an error, too, and so is a source
    /// that waits for results when none is to come. And when a worker cannot be where its seat says, or the farm has no
    /// workers.
    ///
    /// # Panics
    /// When `source` or `sink` panics, after the workers have ended.
    pub fn run<T, S, E, N>(
        &self,
        make_task: impl Fn(&Seat) -> T + Sync,
        make_state: impl Fn(&Seat) -> Result<S, E> + Sync,
        mut source: impl FnMut(&mut T) -> Result<N, E>,
        work: impl Fn(&mut S, &mut T) -> Result<(), E> + Sync,
        sink: impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<Summary, Error<E>>
    where
        T: Send,
        E: Send,
        N: Into<Next>,
    {
        let posts = [Post::default()];
        let masters = vec![0; self.seats.len()];
        let tasks = self.tasks();
        let source = |task: &mut T| source(task).map(Into::into);
        let desk = Desk::new(source, sink, &posts, tasks);
        self.launch(make_task, make_state, work, &posts, &masters, |mut lanes| {
            let lanes = lanes.pop().expect("there is a master");
            let ended = Master::new(0, &desk, &posts[0], lanes, tasks, cpus(), self.spins(1)).run();
            finish(vec![ended], desk.next())
        })
    }

    /// [`Self::run`] with a master for each node that workers sit on. Masters take turns at `source` and `sink`, never
    /// waiting for each other, and keep the order of the whole. Each but the calling thread is a thread more, and all are kept on their
    /// workers' CPUs.
    ///
    /// Use it when one master is too slow in moving tasks; where `source` or `sink` is what takes long, it changes nothing.
    ///
    /// # Errors
    /// As of [`Self::run`].
    ///
    /// # Panics
    /// As of [`Self::run`].
    pub fn run_masters<T, S, E, N>(
        &self,
        make_task: impl Fn(&Seat) -> T + Sync,
        make_state: impl Fn(&Seat) -> Result<S, E> + Sync,
        mut source: impl FnMut(&mut T) -> Result<N, E> + Send,
        work: impl Fn(&mut S, &mut T) -> Result<(), E> + Sync,
        sink: impl FnMut(&mut T) -> Result<(), E> + Send,
    ) -> Result<Summary, Error<E>>
    where
        T: Send,
        E: Send,
        N: Into<Next>,
    {
        let mut nodes: Vec<Option<u32>> = self.seats.iter().map(|seat| seat.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let master_of = |seat: &Seat| nodes.binary_search(&seat.node).expect("every seat's node is listed");
        let masters: Vec<usize> = self.seats.iter().map(master_of).collect();
        let posts: Vec<Post> = nodes.iter().map(|_| Post::default()).collect();
        let cpus_of: Vec<IdSet> = nodes
            .iter()
            .map(|node| {
                self.seats.iter().filter(|seat| seat.node == *node).filter_map(|seat| seat.cpu).collect()
            })
            .collect();
        let tasks = self.tasks();
        let source = |task: &mut T| source(task).map(Into::into);
        let desk = Desk::new(source, sink, &posts, tasks);
        let (cpus, spins) = (cpus(), self.spins(posts.len()));
        self.launch(make_task, make_state, work, &posts, &masters, |lanes| {
            let master = |me: usize, lanes| {
                // The workers are pinned to these CPUs already, so nothing can be wrong with them.
                let _pinned = (!cpus_of[me].is_empty()).then(|| pin::to_cpus(&cpus_of[me]));
                Master::new(me, &desk, &posts[me], lanes, tasks, cpus, spins).run()
            };
            let ended = thread::scope(|scope| {
                let mut lanes = lanes.into_iter();
                let first = lanes.next().expect("there is a master");
                let others: Vec<_> = lanes
                    .enumerate()
                    .map(|(other, lanes)| scope.spawn(move || master(other + 1, lanes)))
                    .collect();
                let mut ended = vec![master(0, first)];
                for other in others {
                    ended.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                }
                ended
            });
            finish(ended, desk.next())
        })
    }

    /// Starts the workers, lets `command` be the masters with their lanes, and ends the workers.
    fn launch<T, S, E>(
        &self,
        make_task: impl Fn(&Seat) -> T + Sync,
        make_state: impl Fn(&Seat) -> Result<S, E> + Sync,
        work: impl Fn(&mut S, &mut T) -> Result<(), E> + Sync,
        posts: &[Post],
        master_of: &[usize],
        command: impl FnOnce(Vec<Vec<Lane<'_, T, E>>>) -> Mastered<E>,
    ) -> Result<Summary, Error<E>>
    where
        T: Send,
        E: Send,
    {
        if self.tasks() == 0 {
            let (workers, tasks_per_worker) = (self.seats.len(), self.tasks_per_worker);
            return Err(Error::Empty { workers, tasks_per_worker });
        }
        let wires: Vec<Wire> = self.seats.iter().map(|_| Wire::default()).collect();
        let (make_task, make_state, work) = (&make_task, &make_state, &work);
        thread::scope(|scope| {
            let stop = Stop(&wires);
            let (sender, ready) = mpsc::channel();
            let mut lane_of = vec![0; posts.len()];
            let mut workers = Vec::with_capacity(self.seats.len());
            for (worker, (&seat, wire)) in self.seats.iter().zip(&wires).enumerate() {
                let master = master_of[worker];
                let bench = Bench {
                    worker,
                    lane: lane_of[master],
                    seat,
                    tasks: self.tasks_per_worker,
                    wire,
                    master: &posts[master].0,
                    spins: self.spins(posts.len()),
                    timed: self.timed,
                };
                lane_of[master] += 1;
                let sender = sender.clone();
                // The receiver is gone only when another worker could not start: then nobody cares for this one.
                let say = move |ready| drop(sender.send((worker, ready)));
                let handle = Builder::new()
                    .name(format!("farm-{worker}"))
                    .spawn_scoped(scope, move || bench.run(make_task, make_state, work, say))
                    .map_err(|source| Error::Thread { worker, source })?;
                workers.push(handle);
            }
            drop(sender);

            let mut lanes: Vec<Vec<Lane<'_, T, E>>> = posts.iter().map(|_| Vec::new()).collect();
            let mut made = 0;
            let mut all: Vec<_> = ready.iter().collect();
            all.sort_unstable_by_key(|&(worker, _)| worker);
            for (worker, ready) in all {
                let ready = ready?;
                made += ready.tasks.len();
                lanes[master_of[worker]].push(Lane::new(worker, self.seats[worker], ready, &wires[worker]));
            }
            assert_eq!(made, self.tasks(), "a farm makes its tasks once");

            let (tasks, master_sleeps) = command(lanes)?;
            drop(stop);
            let join = |worker: thread::ScopedJoinHandle<'_, Worked>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            let workers = workers.into_iter().map(join).collect();
            Ok(Summary { tasks, made, masters: posts.len(), master_sleeps, workers })
        })
    }

    /// How often to look before sleeping: looking is for those that have a CPU of their own, others take time from
    /// the threads they wait for.
    fn spins(&self, masters: usize) -> u32 {
        if self.seats.len() + masters > cpus() { 0 } else { SPINS }
    }
}

/// CPUs that this process may use at the same time.
fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What the masters did together; the error that comes first in the input, if there is one.
fn finish<E>(ended: Vec<Ended<E>>, handed_on: u64) -> Mastered<E> {
    let sleeps = ended.iter().map(|master| master.sleeps).sum();
    let errors = ended.into_iter().filter_map(|master| master.error);
    match errors.min_by_key(|(number, _)| *number) {
        Some((_, error)) => Err(error),
        None => Ok((handed_on, sleeps)),
    }
}
