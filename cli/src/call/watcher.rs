//! Observes a call: shows its progress on stderr, and records its resource use over time.

use std::sync::{Arc, Mutex, PoisonError};

use genuma_reads::ProgressCounters;
use genuma_work::ProgressListener;
use genuma_work::counters::{RunCounterRecorder, RunCounters};
use genuma_work::timeline::{Timeline, TimelineRecorder};

use crate::allocator;
use crate::progress::UnitProgressDisplay;

/// Reports the start of each unit to the progress display and to the timeline recorder.
pub(crate) struct CallWatcher {
    progress: UnitProgressDisplay,
    recorder: TimelineRecorder,
    counting: Mutex<Option<RunCounterRecorder>>,
}

impl CallWatcher {
    /// Starts the progress display and the timeline recorder. `counting` has begun with the command.
    pub(crate) fn start(counting: Option<RunCounterRecorder>) -> CallWatcher {
        CallWatcher {
            progress: UnitProgressDisplay::start(),
            recorder: TimelineRecorder::start(),
            counting: Mutex::new(counting),
        }
    }

    /// Ends counting and returns the counters; `None` if they were not requested.
    pub(crate) fn take_counters(&self) -> Option<RunCounters> {
        let counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner).take();
        counting.map(RunCounterRecorder::finish)
    }

    /// The resource use of the call up to now.
    pub(crate) fn timeline(&self) -> Timeline {
        self.recorder.timeline()
    }
}

impl ProgressListener for CallWatcher {
    fn unit_started(&self, name: &str, meter: Option<Arc<ProgressCounters>>) {
        // The unit plans with the memory that is left of `--memory`.
        allocator::return_free_memory();
        self.recorder.record_unit_start(name);
        self.progress.unit_started(name, meter);
    }
}
