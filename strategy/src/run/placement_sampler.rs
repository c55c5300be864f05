//! Samples on which nodes the memory of a process is, and on which CPUs its threads run.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::page_placement::{self, AlignerIndexFiles, PagePlacement};
use crate::thread_placement::{self, ThreadPlacement};

/// Time after the first sample until the second. The interval doubles after each sample.
const FIRST_SAMPLING_INTERVAL: Duration = Duration::from_secs(2);

/// Placement of the memory and the threads of a process in the last sample.
#[derive(Debug, Default)]
pub(super) struct PlacementSample {
    /// Memory by node; `None` before the first sample, and if the kernel does not report the nodes of pages.
    pub pages: Option<PagePlacement>,
    /// CPUs of the threads; `None` before the first sample.
    pub threads: Option<ThreadPlacement>,
    /// Time of the last sample that was taken while the process wrote records, and the interval to the next sample.
    sampled: Option<(Instant, Duration)>,
}

/// Samples the placement of a process: once when the process has read all its input but not its end, so that it cannot
/// have ended, and repeatedly while it writes records.
#[derive(Debug)]
pub(super) struct PlacementSampler {
    group: u32,
    index: AlignerIndexFiles,
    sample: Mutex<PlacementSample>,
}

impl PlacementSampler {
    /// Creates a sampler of process group `group`, whose processes load the index with these files.
    pub(super) fn new(group: u32, index: AlignerIndexFiles) -> Self {
        PlacementSampler { group, index, sample: Mutex::default() }
    }

    fn lock_sample(&self) -> MutexGuard<'_, PlacementSample> {
        self.sample.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a sample with the memory by node has been taken.
    pub(super) fn has_sample(&self) -> bool {
        self.lock_sample().pages.is_some()
    }

    /// Takes a sample if there is none yet. Call it when the process has read all its input, but before its input is
    /// closed.
    pub(super) fn sample_before_end_of_input(&self) {
        let mut sample = self.lock_sample();
        if sample.pages.is_none() {
            sample.update(self);
        }
    }

    /// Takes a sample if the process has written its first records, or if the interval since the last sample is over.
    pub(super) fn sample_if_due_after_records(&self) {
        let now = Instant::now();
        let mut sample = self.lock_sample();
        let next = match sample.sampled {
            None => FIRST_SAMPLING_INTERVAL,
            Some((then, after)) if now.duration_since(then) >= after => after * 2,
            Some(_) => return,
        };
        sample.sampled = Some((now, next));
        sample.update(self);
    }

    /// Returns the last sample.
    pub(super) fn into_sample(self) -> PlacementSample {
        self.sample.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlacementSample {
    fn update(&mut self, sampler: &PlacementSampler) {
        let found = page_placement::page_placement_of_group(sampler.group, &sampler.index);
        self.pages = match (self.pages.take(), found) {
            (Some(before), Some(later)) => Some(before.later_sample_unless_index_freed(later)),
            (before, later) => later.or(before),
        };
        self.threads = thread_placement::thread_placement_of_group(sampler.group).or(self.threads.take());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_sample_of_a_process_is_kept_after_its_end() {
        let mut process =
            Command::new("cat").stdin(std::process::Stdio::piped()).process_group(0).spawn().expect("cat");
        let sampler = PlacementSampler::new(process.id(), AlignerIndexFiles::of_index(None));
        sampler.sample_before_end_of_input();
        drop(process.stdin.take());
        assert!(process.wait().expect("its exit status").success());
        sampler.sample_if_due_after_records();
        // Kernels without NUMA support do not report pages.
        assert_eq!(sampler.has_sample(), fs::metadata("/proc/self/numa_maps").is_ok());
        let sample = sampler.into_sample();
        assert!(sample.threads.is_some_and(|threads| threads.number == 1));
    }
}
