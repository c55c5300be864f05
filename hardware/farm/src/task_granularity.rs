//! Chooses how many tasks a master gives to a worker at once, and how many tasks a worker may hold, from the measured
//! time per task.

use std::time::{Duration, Instant};

/// Minimum work, as time, that a worker gets when it is woken. Chosen: waking a thread costs a few microseconds.
const MIN_WORK_PER_WAKEUP: Duration = Duration::from_micros(50);

/// Maximum work, as time, that a worker holds: enough while a master is off its CPU for a moment. Chosen: tasks given
/// to one worker cannot move to another, so longer tasks are given out one by one.
const MAX_QUEUED_WORK: Duration = Duration::from_millis(2);

/// Minimum number of results between two time measurements.
const MIN_RESULTS_PER_MEASUREMENT: u64 = 32;

/// Minimum number of tasks that a worker may hold: one being processed and the next.
const MIN_TASKS_PER_WORKER: usize = 2;

/// Measures how fast results arrive. Computes from that how many tasks take [`MIN_WORK_PER_WAKEUP`] (the number to give
/// out at once) and how many take [`MAX_QUEUED_WORK`] (the number that a worker may hold). Short tasks are given out by
/// dozens, long tasks one by one, so that no worker holds several long tasks while another worker has none.
pub(crate) struct TaskGranularity {
    /// Number of workers that run at the same time.
    parallel_workers: u32,
    /// Number of task objects of a worker.
    tasks_per_worker: usize,
    last_measurement: Instant,
    results_at_last_measurement: u64,
    tasks_per_handover: usize,
    max_tasks_per_worker: usize,
}

impl TaskGranularity {
    /// Creates the measurement for `concurrent_workers` workers that run at the same time, with `tasks_per_worker` task
    /// objects each.
    pub(crate) fn new(concurrent_workers: usize, tasks_per_worker: usize) -> Self {
        let (concurrent_workers, tasks) = (concurrent_workers as u32, tasks_per_worker);
        TaskGranularity {
            parallel_workers: concurrent_workers,
            tasks_per_worker: tasks,
            last_measurement: Instant::now(),
            results_at_last_measurement: 0,
            tasks_per_handover: 1,
            max_tasks_per_worker: MIN_TASKS_PER_WORKER,
        }
    }

    /// Number of tasks to give a worker at once.
    pub(crate) fn tasks_per_handover(&self) -> usize {
        self.tasks_per_handover
    }

    /// Maximum number of tasks that a worker may hold.
    pub(crate) fn max_tasks_per_worker(&self) -> usize {
        self.max_tasks_per_worker
    }

    /// Measures the time per task when enough results have arrived. `results` is the total number so far. Returns
    /// whether the limits were updated.
    pub(crate) fn measure_and_update_limits(&mut self, results: u64) -> bool {
        if results - self.results_at_last_measurement < MIN_RESULTS_PER_MEASUREMENT {
            return false;
        }
        let now = Instant::now();
        self.update_from_duration(now - self.last_measurement, results - self.results_at_last_measurement);
        (self.last_measurement, self.results_at_last_measurement) = (now, results);
        true
    }

    /// Updates the limits from the time that the last `results` results took. If reading is the bottleneck, the time
    /// per task is overestimated; then giving tasks out one by one is right, too.
    fn update_from_duration(&mut self, time: Duration, results: u64) {
        let task = time * self.parallel_workers / results as u32;
        let tasks_in = |time: Duration| (time.as_nanos() / task.as_nanos().max(1)) as usize;
        self.tasks_per_handover = tasks_in(MIN_WORK_PER_WAKEUP).clamp(1, (self.tasks_per_worker / 2).max(1));
        self.max_tasks_per_worker =
            tasks_in(MAX_QUEUED_WORK).clamp(MIN_TASKS_PER_WORKER, self.tasks_per_worker.max(MIN_TASKS_PER_WORKER));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_tasks_by_dozens_and_long_ones_singly() {
        let mut pace = TaskGranularity::new(2, 256);
        assert_eq!((pace.tasks_per_handover(), pace.max_tasks_per_worker()), (1, 2), "nothing is known yet");
        for (microseconds, grain, stock) in
            [(1, 50, 256), (4, 12, 256), (10, 5, 200), (30, 1, 66), (1000, 1, 2), (9000, 1, 2), (2, 25, 256)]
        {
            // Two workers: a hundred tasks take the time of fifty.
            pace.update_from_duration(Duration::from_micros(microseconds) * 50, 100);
            assert_eq!((pace.tasks_per_handover(), pace.max_tasks_per_worker()), (grain, stock), "{microseconds} us");
        }
        pace.update_from_duration(Duration::ZERO, 100);
        assert_eq!((pace.tasks_per_handover(), pace.max_tasks_per_worker()), (128, 256), "a clock that stands still");
    }

    #[test]
    fn never_more_at_once_than_half_of_a_workers_tasks() {
        for (tasks, grain) in [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4)] {
            let mut pace = TaskGranularity::new(8, tasks);
            pace.update_from_duration(Duration::from_nanos(10), 1000);
            assert_eq!(pace.tasks_per_handover(), grain, "{tasks} tasks");
        }
    }

    #[test]
    fn the_clock_is_looked_at_now_and_then() {
        let mut pace = TaskGranularity::new(1, 64);
        assert_eq!([31, 32, 63, 64].map(|results| pace.measure_and_update_limits(results)), [false, true, false, true]);
    }
}
