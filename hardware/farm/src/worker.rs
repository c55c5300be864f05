//! A worker: makes its tasks and its state where it runs, then works on whatever its ring brings.

use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use genuma_machine::placement::pin;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::error::message;
use crate::sleep::{Alarm, Sleeper};
use crate::sync::{AtomicBool, Ordering};
use crate::{Error, Place, Seat};

/// A task on its way, with what the farm has to know of it.
pub(crate) struct Job<T, E> {
    /// The caller's part.
    pub(crate) task: T,
    /// Its place in the input.
    pub(crate) number: u64,
    /// The worker it belongs to, by its place among its master's.
    pub(crate) lane: usize,
    /// What went wrong with it.
    pub(crate) fault: Option<Fault<E>>,
}

/// Why a task has no result.
pub(crate) enum Fault<E> {
    Failed(E),
    Panicked(String),
}

/// What a worker and its master know of each other besides the rings; two cache lines, as lines are fetched in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Wire {
    /// The worker's sleep.
    pub(crate) sleeper: Sleeper,
    /// When to wake the master.
    pub(crate) alarm: Alarm,
    /// Set for the worker to end after the task it is at.
    stop: AtomicBool,
    /// Set by the worker when a task has no result.
    failed: AtomicBool,
}

impl Wire {
    /// Makes the worker end after the task it is at, or wherever it sleeps.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.sleeper.wake();
    }

    /// Whether a task of this worker failed. After a panic it returns no more, so the master cannot wait for a number of
    /// results.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A worker that is ready, as its master sees it.
pub(crate) struct Ready<T, E> {
    /// The way to it.
    pub(crate) out: Producer<Box<Job<T, E>>>,
    /// The way back.
    pub(crate) back: Consumer<Box<Job<T, E>>>,
    /// Its tasks.
    pub(crate) tasks: Vec<Box<Job<T, E>>>,
}

/// What a worker did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worked {
    /// Where it was put.
    pub seat: Seat,
    /// The CPU it ran on at last, as the kernel says.
    pub cpu: u32,
    /// That CPU's node.
    pub node: u32,
    /// Tasks it worked on.
    pub tasks: u64,
    /// Time it spent on them, time it was not running included; only of farms that are [`Farm::timed`].
    pub busy: Option<Duration>,
    /// How often it slept.
    pub(crate) sleeps: u64,
}

/// How a worker works, apart from what it works on.
pub(crate) struct Bench<'a> {
    /// The worker, counted from 0 over the whole farm.
    pub(crate) worker: usize,
    /// The worker, counted from 0 among its master's.
    pub(crate) lane: usize,
    pub(crate) seat: Seat,
    pub(crate) tasks: usize,
    pub(crate) wire: &'a Wire,
    pub(crate) master: &'a Sleeper,
    /// How often to look for a task before sleeping.
    pub(crate) spins: u32,
    /// Whether to time each task.
    pub(crate) timed: bool,
}

impl Bench<'_> {
    /// Makes what is needed, says so to `ready`, and works until told to stop.
    pub(crate) fn run<T, S, E>(
        &self,
        make_task: impl Fn(&Seat) -> T,
        make_state: impl FnOnce(&Seat) -> Result<S, E>,
        work: impl Fn(&mut S, &mut T) -> Result<(), E>,
        ready: impl FnOnce(Result<Ready<T, E>, Error<E>>),
    ) -> Worked {
        let Bench { worker, seat, .. } = *self;
        // Dropped at the end: the thread is the farm's own, so where it may run afterwards does not matter.
        let _pinned = match seat.cpu.map(pin::to_cpu).transpose() {
            Ok(pinned) => pinned,
            Err(source) => {
                ready(Err(Error::Seat { worker, seat, source }));
                return self.worked(0, None, 0);
            }
        };
        let made = self.make_state(make_state).and_then(|state| Ok((state, self.make_tasks(make_task)?)));
        match made {
            Ok((state, tasks)) => {
                let (out, inbox) = RingBuffer::new(self.tasks);
                let (outbox, back) = RingBuffer::new(self.tasks);
                ready(Ok(Ready { out, back, tasks }));
                self.work(state, work, inbox, outbox)
            }
            Err(error) => {
                ready(Err(error));
                self.worked(0, None, 0)
            }
        }
    }

    fn make_state<S, E>(&self, make: impl FnOnce(&Seat) -> Result<S, E>) -> Result<S, Error<E>> {
        let place = Place::State(self.worker);
        match catch_unwind(AssertUnwindSafe(|| make(&self.seat))) {
            Ok(Ok(state)) => Ok(state),
            Ok(Err(source)) => Err(Error::Failed { place, source }),
            Err(panic) => Err(Error::Panicked { place, message: message(&*panic) }),
        }
    }

    fn make_tasks<T, E>(&self, make: impl Fn(&Seat) -> T) -> Result<Vec<Box<Job<T, E>>>, Error<E>> {
        let job = |_| Box::new(Job { task: make(&self.seat), number: 0, lane: self.lane, fault: None });
        catch_unwind(AssertUnwindSafe(|| (0..self.tasks).map(job).collect()))
            .map_err(|panic| Error::Panicked { place: Place::Tasks(self.worker), message: message(&*panic) })
    }

    fn work<T, S, E>(
        &self,
        mut state: S,
        work: impl Fn(&mut S, &mut T) -> Result<(), E>,
        mut inbox: Consumer<Box<Job<T, E>>>,
        mut outbox: Producer<Box<Job<T, E>>>,
    ) -> Worked {
        let (mut tasks, mut sleeps) = (0, 0);
        let mut busy = self.timed.then_some(Duration::ZERO);
        while let Some(mut job) = self.next(&mut inbox, &mut sleeps) {
            let start = self.timed.then(Instant::now);
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut state, &mut job.task)));
            if let (Some(busy), Some(start)) = (&mut busy, start) {
                *busy += start.elapsed();
            }
            let panicked = done.is_err();
            job.fault = match done {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(Fault::Failed(error)),
                Err(panic) => Some(Fault::Panicked(message(&*panic))),
            };
            let failed = job.fault.is_some();
            tasks += 1;
            outbox.push(job).expect("the ring back has room for all tasks of its worker");
            self.wire.alarm.ring(tasks, self.master);
            if failed {
                self.wire.failed.store(true, Ordering::Relaxed);
                self.master.wake();
            }
            // A panic may have left the state half changed: no further task sees it.
            if panicked {
                break;
            }
        }
        self.worked(tasks, busy, sleeps)
    }

    /// The next task; none when the worker is to stop.
    fn next<J>(&self, inbox: &mut Consumer<J>, sleeps: &mut u64) -> Option<J> {
        loop {
            if self.wire.stopped() {
                return None;
            }
            if let Ok(job) = inbox.pop() {
                return Some(job);
            }
            let came = (0..self.spins).any(|_| {
                spin_loop();
                !inbox.is_empty() || self.wire.stopped()
            });
            if !came {
                let slept = self.wire.sleeper.sleep_unless(|| !inbox.is_empty() || self.wire.stopped());
                *sleeps += u64::from(slept);
            }
        }
    }

    fn worked(&self, tasks: u64, busy: Option<Duration>, sleeps: u64) -> Worked {
        let here = pin::here();
        Worked { seat: self.seat, cpu: here.cpu, node: here.node, tasks, busy, sleeps }
    }
}

/// An empty buffer with room for so many bytes, all of whose pages the calling thread has written to. The kernel takes a page
/// from the node of the thread that first writes to it, so buffers of a task are made like this: with plain
/// `Vec::with_capacity` or `vec![0; n]` it would be the master, reading into it, who decides where they lie.
pub fn touched(bytes: usize) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(bytes);
    // Not 0: memory fresh from the kernel is zero already, which the allocator knows.
    buffer.resize(bytes, 1);
    std::hint::black_box(&mut buffer).clear();
    buffer
}
