//! How many tasks a worker is given at once.

use std::time::{Duration, Instant};

/// What a worker is to have to do, at least, when it is woken for it. Waking costs a few microseconds.
const STRETCH: Duration = Duration::from_micros(50);

/// Results between two looks at the clock, at least.
const RESULTS: u64 = 32;

/// Watches how fast results come. From that follows how many tasks make [`STRETCH`]: short tasks are given out by dozens,
/// long ones singly, so that no worker has several while another has none.
pub(crate) struct Pace {
    /// Threads that work at the same time.
    abreast: u32,
    /// At most so many.
    most: usize,
    since: Instant,
    results: u64,
    grain: usize,
}

impl Pace {
    /// For so many workers at work at the same time, with so many tasks each.
    pub(crate) fn new(abreast: usize, tasks_per_worker: usize) -> Self {
        let most = (tasks_per_worker / 2).max(1);
        Pace { abreast: abreast as u32, most, since: Instant::now(), results: 0, grain: 1 }
    }

    /// How many tasks to give at once.
    pub(crate) fn grain(&self) -> usize {
        self.grain
    }

    /// Takes note that there have been so many results in all.
    pub(crate) fn watch(&mut self, results: u64) {
        if results - self.results < RESULTS {
            return;
        }
        let now = Instant::now();
        self.note(now - self.since, results - self.results);
        (self.since, self.results) = (now, results);
    }

    /// So many results took so long. Where reading is what takes long, tasks seem longer than they are: then giving them out singly is right, too.
    fn note(&mut self, time: Duration, results: u64) {
        let task = time * self.abreast / results as u32;
        let grain = STRETCH.as_nanos() / task.as_nanos().max(1);
        self.grain = (grain as usize).clamp(1, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_tasks_by_dozens_and_long_ones_singly() {
        let mut pace = Pace::new(2, 64);
        assert_eq!(pace.grain(), 1, "nothing is known yet");
        for (microseconds, grain) in [(1, 32), (4, 12), (30, 1), (1000, 1), (2, 25)] {
            // Two at a time: a hundred tasks take the time of fifty.
            pace.note(Duration::from_micros(microseconds) * 50, 100);
            assert_eq!(pace.grain(), grain, "{microseconds} us");
        }
        pace.note(Duration::ZERO, 100);
        assert_eq!(pace.grain(), 32, "a clock that stands still");
    }

    #[test]
    fn never_more_than_half_of_a_workers_tasks() {
        for (tasks, grain) in [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4)] {
            let mut pace = Pace::new(8, tasks);
            pace.note(Duration::from_nanos(10), 1000);
            assert_eq!(pace.grain(), grain, "{tasks} tasks");
        }
    }
}
