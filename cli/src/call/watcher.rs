//! Follows a running call: shows its progress on stderr, and records its use of CPU, memory and disk over time.

use std::sync::{Arc, Mutex, PoisonError};

use genuma_reads::ProgressCounters;
use genuma_work::ProgressListener;
use genuma_work::counters::{RunCounterRecorder, RunCounters};
use genuma_work::energy::PowerLog;
use genuma_work::timeline::{Timeline, TimelineRecorder};
use tracing::warn;

use crate::allocator;
use crate::progress::UnitProgressDisplay;

/// Listener that passes the start of each unit of a call on to the progress display and to the timeline recorder. It
/// first returns free memory to the system.
pub(crate) struct CallWatcher {
    progress: UnitProgressDisplay,
    recorder: TimelineRecorder,
    counting: Mutex<Option<RunCounterRecorder>>,
}

impl CallWatcher {
    /// Starts the progress display and the timeline recorder. `counting`: the recorder of resource counters
    /// (`--counters`), which has run since the command started. `power_log`: readings of a power meter (`--power-log`).
    pub(crate) fn start(counting: Option<RunCounterRecorder>, power_log: Option<PowerLog>) -> CallWatcher {
        CallWatcher {
            progress: UnitProgressDisplay::start(),
            recorder: TimelineRecorder::start(power_log),
            counting: Mutex::new(counting),
        }
    }

    /// Stops the recorder of resource counters and returns the counters; `None` if they were not requested, or were
    /// returned before.
    pub(crate) fn stop_and_take_counters(&self) -> Option<RunCounters> {
        let counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner).take();
        counting.map(RunCounterRecorder::finish)
    }

    /// Returns the use of CPU, memory, disk and energy from the start of the call up to now. Logs a warning if the power
    /// log cannot be used.
    pub(crate) fn timeline(&self) -> Timeline {
        let (timeline, unusable) = self.recorder.timeline_until_now();
        if let Some(error) = unusable {
            warn!("the energy of this call is not that of --power-log: {error}");
        }
        timeline
    }
}

impl ProgressListener for CallWatcher {
    fn unit_started(&self, name: &str, meter: Option<Arc<ProgressCounters>>) {
        // The unit plans with the memory that is left of `--memory`.
        allocator::return_free_memory_to_system();
        self.recorder.record_unit_start(name);
        self.progress.unit_started(name, meter);
    }
}
