//! Samples where the memory and the threads of a process are.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::page_placement::{self, AlignerIndexFiles, PagePlacement};
use crate::thread_placement::{self, ThreadPlacement};

/// Time after the first sample until the second. The interval doubles after each sample.
const FIRST_SAMPLING_INTERVAL: Duration = Duration::from_secs(2);

/// Placement of the memory and the threads of a process.
#[derive(Debug, Default)]
pub(super) struct PlacementSample {
    pub pages: Option<PagePlacement>,
    pub threads: Option<ThreadPlacement>,
    /// When the last sample after records was taken, and the interval to the next.
    sampled: Option<(Instant, Duration)>,
}

/// Samples the placement of a process: at the end of its input, when it cannot have ended yet, and while it writes
/// records.
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

    /// Returns whether a sample was taken while the process ran.
    pub(super) fn has_sample(&self) -> bool {
        self.lock_sample().pages.is_some()
    }

    /// Samples if there is no sample yet. To be called when the process has read all its input, but not the end of it.
    pub(super) fn sample_before_end_of_input(&self) {
        let mut sample = self.lock_sample();
        if sample.pages.is_none() {
            sample.update(self);
        }
    }

    /// Samples if the process has written its first records, or if the interval since the last sample is over.
    pub(super) fn sample_after_records(&self) {
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

    /// Returns the sample.
    pub(super) fn into_sample(self) -> PlacementSample {
        self.sample.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PlacementSample {
    fn update(&mut self, sampler: &PlacementSampler) {
        let found = page_placement::page_placement_of_group(sampler.group, &sampler.index);
        self.pages = match (self.pages.take(), found) {
            (Some(before), Some(later)) => Some(before.later_sample_with_index(later)),
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
        sampler.sample_after_records();
        // Kernels without NUMA support do not report pages.
        assert_eq!(sampler.has_sample(), fs::metadata("/proc/self/numa_maps").is_ok());
        let sample = sampler.into_sample();
        assert!(sample.threads.is_some_and(|threads| threads.number == 1));
    }
}
