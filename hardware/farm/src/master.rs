//! A master: reads tasks, gives them to the worker with the least to do, and hands their results on in order.

use std::hint::spin_loop;

use genuma_machine::placement::pin;
use rtrb::{Consumer, Producer};

use crate::desk::{Desk, Input, Post};
use crate::pace::Pace;
use crate::window::Window;
use crate::worker::{Fault, Job, Ready, Wire};
use crate::{Error, Next, Place, Seat};

/// Tasks read or handed on before a master looks at its rings again.
const BURST: usize = 16;

/// A worker as its master sees it.
pub(crate) struct Lane<'a, T, E> {
    out: Producer<Box<Job<T, E>>>,
    back: Consumer<Box<Job<T, E>>>,
    /// Its tasks that are here and empty.
    free: Vec<Box<Job<T, E>>>,
    /// Its tasks that are with it, in a ring or at work.
    away: usize,
    /// Results it has sent.
    returned: u64,
    /// Results that the master wants before it is woken, in all.
    wanted: u64,
    /// How many tasks may be with it for now.
    limit: usize,
    /// The worker, counted over the whole farm.
    worker: usize,
    seat: Seat,
    wire: &'a Wire,
}

impl<'a, T, E> Lane<'a, T, E> {
    /// The lane to a worker that is ready.
    pub(crate) fn new(worker: usize, seat: Seat, ready: Ready<T, E>, wire: &'a Wire) -> Self {
        let Ready { out, back, tasks: free } = ready;
        Lane { out, back, free, away: 0, returned: 0, wanted: 0, limit: 0, worker, seat, wire }
    }

    /// Whether the worker may be given a task.
    fn has_room(&self) -> bool {
        self.away < self.limit && !self.free.is_empty()
    }

    /// Whether as many results are there as the master wants to be woken for.
    fn rings(&self) -> bool {
        let results = self.back.slots() as u64;
        results > 0 && (self.returned + results >= self.wanted || self.wire.has_failed())
    }
}

/// A master at work.
pub(crate) struct Master<'a, T, E, I, O> {
    /// Its place among the masters.
    me: usize,
    desk: &'a Desk<'a, I, O>,
    post: &'a Post,
    lanes: Vec<Lane<'a, T, E>>,
    window: Window<Box<Job<T, E>>>,
    /// The lane a task was given to, by its number modulo the length, a power of two.
    given: Vec<u32>,
    /// What is wrong with the source, and the number of the task it stands for.
    broken: Option<(u64, Error<E>)>,
    /// Results collected.
    results: u64,
    pace: Pace,
    /// How often to look for results before sleeping.
    spins: u32,
    /// How often it slept.
    sleeps: u64,
}

/// How a master ended.
pub(crate) struct Ended<E> {
    /// What stopped it, with the number of the task.
    pub(crate) error: Option<(u64, Error<E>)>,
    /// How often it slept.
    pub(crate) sleeps: u64,
}

/// Stops the other masters when a closure of the caller panics in this one.
struct AbortOnPanic<'a, I, O>(&'a Desk<'a, I, O>, usize);

impl<I, O> Drop for AbortOnPanic<'_, I, O> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abort(self.1);
        }
    }
}

impl<'a, T, E, I, O> Master<'a, T, E, I, O>
where
    I: FnMut(&mut T) -> Result<Next, E>,
    O: FnMut(&mut T) -> Result<(), E>,
{
    /// Master `me` over these lanes. `tasks` is the number of tasks of all masters; `cpus` is how many there are.
    pub(crate) fn new(
        me: usize,
        desk: &'a Desk<'a, I, O>,
        post: &'a Post,
        lanes: Vec<Lane<'a, T, E>>,
        tasks: usize,
        cpus: usize,
        spins: u32,
    ) -> Self {
        let window = Window::new(tasks);
        let given = vec![0; tasks.next_power_of_two()];
        let pace = Pace::new(lanes.len().min(cpus), lanes.first().map_or(1, |lane| lane.free.len()));
        Master { me, desk, post, lanes, window, given, broken: None, results: 0, pace, spins, sleeps: 0 }
    }

    /// Reads and hands on until all is done or something fails.
    pub(crate) fn run(mut self) -> Ended<E> {
        let _abort = AbortOnPanic(self.desk, self.me);
        self.set_limits();
        let error = loop {
            if self.desk.is_aborted() {
                break None;
            }
            self.collect();
            if let Err(error) = self.hand_on() {
                self.desk.abort(self.me);
                break Some(error);
            }
            self.read();
            if self.is_done() {
                break None;
            }
            if !self.may_go_on() {
                self.idle();
            }
        };
        Ended { error: error.or(self.broken), sleeps: self.sleeps }
    }

    fn is_done(&self) -> bool {
        self.desk.has_ended() && self.window.is_empty() && self.lanes.iter().all(|lane| lane.away == 0)
    }

    /// Takes all results out of the rings.
    fn collect(&mut self) {
        for lane in &mut self.lanes {
            if lane.away == 0 {
                continue;
            }
            while let Ok(job) = lane.back.pop() {
                lane.away -= 1;
                lane.returned += 1;
                self.results += 1;
                if job.fault.is_some() {
                    // Earlier tasks are all read already: they are waited for, as one of them may fail, too.
                    self.desk.end(self.me);
                }
                self.window.put(job.number, job);
            }
        }
    }

    /// Hands on results whose turn it is.
    fn hand_on(&mut self) -> Result<(), (u64, Error<E>)> {
        if !self.window.has(self.desk.next()) {
            return Ok(());
        }
        let Master { desk, window, lanes, .. } = self;
        desk.hand_on(self.me, |sink, first| {
            let mut next = first;
            while next < first + BURST as u64
                && let Some(mut job) = window.take(next)
            {
                let lane = &mut lanes[job.lane];
                match job.fault.take() {
                    None => sink(&mut job.task)
                        .map_err(|source| (next, Error::Failed { place: Place::Sink(next), source }))?,
                    Some(fault) => return Err((next, error_of(fault, next, lane.worker))),
                }
                lane.free.push(job);
                next += 1;
            }
            Ok(next)
        })
    }

    /// Reads tasks and gives them to workers.
    fn read(&mut self) {
        if !self.may_read() {
            return;
        }
        let (me, desk) = (self.me, self.desk);
        if self.pace.watch(self.results) {
            self.set_limits();
        }
        // When another is reading there may be results to see to meanwhile.
        let _ = desk.read(me, |input| {
            let mut room = BURST;
            // What the source knows of results is at least this.
            let next = desk.next();
            while room > 0
                && !desk.has_ended()
                && !desk.waits()
                && let Some(lane) = self.least_to_do()
            {
                let share = self.pace.grain();
                for _ in 0..share {
                    if !self.give(lane, input, next) {
                        break;
                    }
                }
                self.lanes[lane].wire.sleeper.wake();
                room = room.saturating_sub(share);
            }
        });
    }

    /// The lane with the fewest tasks away among those with a free task.
    fn least_to_do(&self) -> Option<usize> {
        let free = self.lanes.iter().enumerate().filter(|(_, lane)| lane.has_room());
        free.min_by_key(|(_, lane)| lane.away).map(|(lane, _)| lane)
    }

    /// Reads one task and gives it to a worker; `next` was to be handed on when reading began. False when there is no free
    /// task or nothing to read.
    fn give(&mut self, lane: usize, input: &mut Input<I>, next: u64) -> bool {
        let number = input.number;
        let to = &mut self.lanes[lane];
        if !to.has_room() {
            return false;
        }
        let mut job = to.free.pop().expect("there is room");
        match (input.source)(&mut job.task) {
            Ok(Next::Task) => {}
            Ok(Next::Later) if next < number => {
                to.free.push(job);
                self.desk.wait(next);
                return false;
            }
            ended => {
                to.free.push(job);
                let wrong = match ended {
                    Err(source) => Some(Error::Failed { place: Place::Source(number), source }),
                    Ok(Next::Later) => Some(Error::Standstill { task: number }),
                    Ok(_) => None,
                };
                self.broken = wrong.map(|wrong| (number, wrong));
                self.desk.end(self.me);
                return false;
            }
        }
        input.number += 1;
        job.number = number;
        let slot = number as usize & (self.given.len() - 1);
        self.given[slot] = lane as u32;
        self.desk.was_read(self.me, number);
        to.away += 1;
        to.out.push(job).expect("the ring has room for all tasks of its worker");
        true
    }

    /// Waits for results: looks a while, then sleeps until a worker or another master has something.
    fn idle(&mut self) {
        let has_results = |lane: &Lane<'_, T, E>| lane.away > 0 && !lane.back.is_empty();
        for _ in 0..self.spins {
            spin_loop();
            if self.lanes.iter().any(has_results) || self.may_go_on() {
                return;
            }
        }
        self.set_alarms();
        let slept = self.post.0.sleep_unless(|| self.lanes.iter().any(Lane::rings) || self.may_go_on());
        self.sleeps += u64::from(slept);
        self.set_limits();
    }

    /// Sets how many tasks each worker may have.
    ///
    /// Where threads share CPUs, a master that was woken runs only when the worker on its CPU has nothing left to do. If the
    /// others had no more to do than that one, they would be idle from then on. So the worker where the master runs gets half
    /// of what the others get: it is the first to be done, and the master is back in time for the others.
    fn set_limits(&mut self) {
        let stock = self.pace.stock();
        let here = (self.spins == 0).then(|| pin::here().cpu);
        let shares = |lane: &Lane<'_, T, E>| here.is_some() && lane.seat.cpu == here;
        let alone = self.lanes.iter().all(shares);
        for lane in &mut self.lanes {
            lane.limit = if shares(lane) && !alone { stock / 2 } else { stock };
        }
    }

    /// Whether there is something to do without any more results.
    fn may_go_on(&self) -> bool {
        self.window.has(self.desk.next()) || self.may_read() || self.desk.is_aborted() || self.is_done()
    }

    /// Whether there is something to read, room for it, and nobody else reading.
    fn may_read(&self) -> bool {
        !self.desk.has_ended()
            && !self.desk.waits()
            && !self.desk.is_being_read()
            && self.lanes.iter().any(Lane::has_room)
    }

    /// Asks each worker to wake the master when half of what it has to do is done, so that both have time for more than
    /// switching. When a worker has nothing to do, or the source waits, what holds them up is the task to be handed on next: that
    /// one is waited for at once. It is the first its worker has, as a worker takes tasks in order and all earlier ones are handed on.
    fn set_alarms(&mut self) {
        let next = self.desk.next();
        let held_up = self.desk.reader(next) == Some(self.me)
            && !self.desk.has_ended()
            && (self.desk.waits() || self.lanes.iter().any(|lane| lane.away == 0));
        let first = self.given[next as usize & (self.given.len() - 1)] as usize;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let enough = if held_up && index == first { 1 } else { (lane.away / 2).max(1) };
            lane.wanted = lane.returned + enough as u64;
            lane.wire.alarm.set(lane.wanted);
        }
    }
}

fn error_of<E>(fault: Fault<E>, task: u64, worker: usize) -> Error<E> {
    let place = Place::Work { task, worker };
    match fault {
        Fault::Failed(source) => Error::Failed { place, source },
        Fault::Panicked(message) => Error::Panicked { place, message },
    }
}
