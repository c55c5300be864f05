//! What all farms are given: tasks of a known length, and a sink that checks the order.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// What goes round.
#[derive(Debug, Default)]
pub struct Task {
    pub number: u64,
    pub steps: u64,
    pub result: u64,
}

/// A stream of tasks.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub name: &'static str,
    pub tasks: u64,
    /// Of a task, in microseconds.
    pub length: f64,
    /// Whether one task in 64, at random, takes 50 times as long.
    pub skewed: bool,
}

impl Load {
    /// The number of arithmetic steps of each task: not a time to wait for, because a thread that is off its CPU would get
    /// that time for nothing.
    fn steps(&self, number: u64) -> u64 {
        let steps = (self.length * steps_per_microsecond()) as u64;
        let long = self.skewed && mix(number).is_multiple_of(64);
        if long { steps * 50 } else { steps }
    }

    /// Reads and hands on; one for each run of a farm.
    pub fn stream(&self) -> Stream {
        Stream { load: *self, read: 0, handed_on: 0 }
    }

    /// CPU seconds of all its work.
    pub fn cpu_seconds(&self) -> f64 {
        let steps: u64 = (0..self.tasks).map(|number| self.steps(number)).sum();
        steps as f64 / steps_per_microsecond() / 1e6
    }
}

/// Source and sink of one run.
pub struct Stream {
    load: Load,
    read: u64,
    handed_on: u64,
}

impl Stream {
    /// Fills a task; false when there are no more.
    pub fn read(&mut self, task: &mut Task) -> bool {
        if self.read == self.load.tasks {
            return false;
        }
        *task = Task { number: self.read, steps: self.load.steps(self.read), result: 0 };
        self.read += 1;
        true
    }

    /// Takes a result.
    pub fn hand_on(&mut self, task: &Task) {
        assert_eq!(task.number, self.handed_on, "results are out of order");
        assert_ne!(task.result, 0, "a task was not worked on");
        self.handed_on += 1;
    }

    /// Checks that all went through.
    pub fn finish(&self) {
        assert_eq!(self.handed_on, self.load.tasks, "results are missing");
    }
}

/// Works on a task.
pub fn work(task: &mut Task) {
    task.result = run(task.number, task.steps) | 1;
}

/// A chain of multiplications, so that each step waits for the one before.
fn run(seed: u64, steps: u64) -> u64 {
    (0..black_box(steps)).fold(seed, |state, _| mix(state))
}

/// One step of splitmix64.
fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Measured once: the fastest of many tries, as others may be using the machine.
fn steps_per_microsecond() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let steps = 20_000;
        let microseconds = (0..500)
            .map(|seed| {
                let start = Instant::now();
                black_box(run(seed, steps));
                start.elapsed().as_secs_f64() * 1e6
            })
            .fold(f64::INFINITY, f64::min);
        steps as f64 / microseconds
    })
}
