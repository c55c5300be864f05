//! How many tasks a worker is given at once, and how many it is to have.

use std::time::{Duration, Instant};

/// What a worker is to have to do, at least, when it is woken for it. Waking costs a few microseconds.
const STRETCH: Duration = Duration::from_micros(50);

/// What a worker is to have to do, at most: enough to stand a master that is off its CPU for a while. What it has is no
/// longer anybody else's, so tasks that take longer than this are given out when they are wanted.
const STOCK: Duration = Duration::from_millis(2);

/// Results between two looks at the clock, at least.
const RESULTS: u64 = 32;

/// Tasks a worker may have in any case: one at work and the next.
const LEAST: usize = 2;

/// Watches how fast results come. From that follows how many tasks make a [`STRETCH`] and a [`STOCK`]: short tasks are given
/// out by dozens, long ones singly, so that no worker has several while another has none.
pub(crate) struct Pace {
    /// Threads that work at the same time.
    abreast: u32,
    /// Tasks a worker can have.
    tasks: usize,
    since: Instant,
    results: u64,
    grain: usize,
    stock: usize,
}

impl Pace {
    /// For so many workers at work at the same time, with so many tasks each.
    pub(crate) fn new(abreast: usize, tasks_per_worker: usize) -> Self {
        let (abreast, tasks) = (abreast as u32, tasks_per_worker);
        Pace { abreast, tasks, since: Instant::now(), results: 0, grain: 1, stock: LEAST }
    }

    /// How many tasks to give at once.
    pub(crate) fn grain(&self) -> usize {
        self.grain
    }

    /// How many tasks a worker is to have at most.
    pub(crate) fn stock(&self) -> usize {
        self.stock
    }

    /// Takes note that there have been so many results in all. Gives whether anything follows from that.
    pub(crate) fn watch(&mut self, results: u64) -> bool {
        if results - self.results < RESULTS {
            return false;
        }
        let now = Instant::now();
        self.note(now - self.since, results - self.results);
        (self.since, self.results) = (now, results);
        true
    }

    /// So many results took so long. Where reading is what takes long, tasks seem longer than they are: then giving them out
    /// singly is right, too.
    fn note(&mut self, time: Duration, results: u64) {
        let task = time * self.abreast / results as u32;
        let tasks_in = |time: Duration| (time.as_nanos() / task.as_nanos().max(1)) as usize;
        self.grain = tasks_in(STRETCH).clamp(1, (self.tasks / 2).max(1));
        self.stock = tasks_in(STOCK).clamp(LEAST, self.tasks.max(LEAST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_tasks_by_dozens_and_long_ones_singly() {
        let mut pace = Pace::new(2, 256);
        assert_eq!((pace.grain(), pace.stock()), (1, 2), "nothing is known yet");
        for (microseconds, grain, stock) in
            [(1, 50, 256), (4, 12, 256), (10, 5, 200), (30, 1, 66), (1000, 1, 2), (9000, 1, 2), (2, 25, 256)]
        {
            // Two at a time: a hundred tasks take the time of fifty.
            pace.note(Duration::from_micros(microseconds) * 50, 100);
            assert_eq!((pace.grain(), pace.stock()), (grain, stock), "{microseconds} us");
        }
        pace.note(Duration::ZERO, 100);
        assert_eq!((pace.grain(), pace.stock()), (128, 256), "a clock that stands still");
    }

    #[test]
    fn never_more_at_once_than_half_of_a_workers_tasks() {
        for (tasks, grain) in [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4)] {
            let mut pace = Pace::new(8, tasks);
            pace.note(Duration::from_nanos(10), 1000);
            assert_eq!(pace.grain(), grain, "{tasks} tasks");
        }
    }

    #[test]
    fn the_clock_is_looked_at_now_and_then() {
        let mut pace = Pace::new(1, 64);
        assert_eq!([31, 32, 63, 64].map(|results| pace.watch(results)), [false, true, false, true]);
    }
}
