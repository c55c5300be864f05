//! Whoever watches a call: progress on stderr, and the timeline.

use std::sync::Arc;

use genuma_reads::Meter;
use genuma_work::Watch;
use genuma_work::timeline::{Recorder, Timeline};

use crate::memory;
use crate::progress::Progress;

/// Tells both of each unit.
pub(crate) struct Watched {
    progress: Progress,
    recorder: Recorder,
}

impl Watched {
    /// Begins to watch.
    pub(crate) fn start() -> Watched {
        Watched { progress: Progress::start(), recorder: Recorder::start() }
    }

    /// What the call has used so far.
    pub(crate) fn timeline(&self) -> Timeline {
        self.recorder.timeline()
    }
}

impl Watch for Watched {
    fn begins(&self, name: &str, meter: Option<Arc<Meter>>) {
        // A unit reckons with what is left of `--memory`.
        memory::give_back();
        self.recorder.begins(name);
        self.progress.begins(name, meter);
    }
}
