//! Shows progress on stderr: bars on a terminal, otherwise a log line every ten seconds.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use genuma_reads::ProgressCounters;
use genuma_work::ProgressListener;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tracing::{enabled, info};

/// Interval of progress lines in the log if stderr is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Interval of updates of a progress bar.
const FRAME_INTERVAL: Duration = Duration::from_millis(200);

/// The progress bars of this process; hidden if stderr is not a terminal.
static PROGRESS_BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Runs `write`, which may write to stderr, while the progress bars are hidden.
pub(crate) fn with_hidden_progress_bars<T>(write: impl FnOnce() -> T) -> T {
    PROGRESS_BARS.suspend(write)
}

/// Shows on stderr which unit of a run is running, and how much of it is done. Dropping the value ends the display.
pub(crate) struct UnitProgressDisplay {
    unit: Arc<Mutex<Option<RunningUnit>>>,
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

/// Shows on stderr the progress of measurements whose duration is known from their plan. Dropping the value ends the
/// display.
pub(crate) struct MeasurementProgressDisplay {
    total_s: f64,
    started: Instant,
    /// `None` if progress is shown as log lines.
    bar: Option<ProgressBar>,
    /// Time at which the last progress line was logged.
    last_line: Mutex<Option<Instant>>,
}

impl MeasurementProgressDisplay {
    /// Starts the display for measurements that take `all_s` seconds in total. Nothing is shown if logging is quiet.
    pub(crate) fn start(all_s: f64) -> Self {
        let shown = enabled!(tracing::Level::INFO) && !PROGRESS_BARS.is_hidden();
        let bar = shown.then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {percent}% {elapsed}, {eta} left {msg:44!}");
            let bar = ProgressBar::new(1000);
            PROGRESS_BARS.add(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
        });
        MeasurementProgressDisplay { total_s: all_s, started: Instant::now(), bar, last_line: Mutex::new(None) }
    }

    /// Updates the display: measurements that take `done_s` seconds are done, and `next` is the name of the next one.
    pub(crate) fn show_measurement_step(&self, done_s: f64, next: &str) {
        let share = (done_s / self.total_s.max(1e-9)).min(1.0);
        if let Some(bar) = &self.bar {
            bar.set_position((share * 1000.0) as u64);
            bar.set_message(next.to_owned());
            return;
        }
        let mut line = self.last_line.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if line.is_none_or(|last| last.elapsed() >= LINE_INTERVAL) {
            *line = Some(Instant::now());
            let elapsed_s = self.started.elapsed().as_secs_f64();
            let left = match share {
                0.0 => String::new(),
                share => format!(", about {:.0} s left", elapsed_s * (1.0 / share - 1.0)),
            };
            info!("{:.0}% done after {elapsed_s:.0} s{left}: {next}", 100.0 * share);
        }
    }
}

impl Drop for MeasurementProgressDisplay {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

struct RunningUnit {
    name: String,
    meter: Option<Arc<ProgressCounters>>,
    started: Instant,
    /// `None` if progress is shown as log lines.
    bar: Option<ProgressBar>,
}

impl UnitProgressDisplay {
    /// Starts the display. Nothing is shown if logging is quiet.
    pub(crate) fn start() -> Self {
        let unit = Arc::new(Mutex::new(None));
        let quiet = !enabled!(tracing::Level::INFO);
        let ticker = (!quiet).then(|| {
            let (stop, stopped) = channel::<()>();
            let unit = unit.clone();
            let pause = if PROGRESS_BARS.is_hidden() { LINE_INTERVAL } else { FRAME_INTERVAL };
            let tick = move || {
                while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    if let Some(unit) = &*lock_unit(&unit) {
                        unit.show();
                    }
                }
            };
            // If no thread can be started, only the start and end of units are shown.
            thread::Builder::new().spawn(tick).ok().map(|thread| (stop, thread))
        });
        UnitProgressDisplay { unit, ticker: ticker.flatten() }
    }

    /// Ends the running unit: removes its progress bar and logs how long it took.
    fn end(&self) {
        if let Some(unit) = lock_unit(&self.unit).take() {
            unit.end();
        }
    }
}

impl ProgressListener for UnitProgressDisplay {
    fn unit_started(&self, name: &str, meter: Option<Arc<ProgressCounters>>) {
        if self.ticker.is_none() {
            return;
        }
        self.end();
        let bar = (!PROGRESS_BARS.is_hidden()).then(|| PROGRESS_BARS.add(make_bar(name, meter.is_some())));
        if bar.is_none() {
            info!("{name} begins");
        }
        *lock_unit(&self.unit) = Some(RunningUnit { name: name.to_owned(), meter, started: Instant::now(), bar });
    }
}

impl Drop for UnitProgressDisplay {
    fn drop(&mut self) {
        self.end();
        if let Some((stop, ticker)) = self.ticker.take() {
            drop(stop);
            // A panicked ticker thread has nothing more to show.
            let _ = ticker.join();
        }
    }
}

impl RunningUnit {
    fn show(&self) {
        let (done, total, what) =
            self.meter.as_ref().map_or((0, 0, ""), |m| (m.bytes_done(), m.bytes_total(), m.counted_contents()));
        match &self.bar {
            Some(bar) if self.meter.is_some() => {
                bar.set_length(total);
                bar.set_position(done);
            }
            Some(bar) => bar.tick(),
            None => info!("{}{}", self.name, progress_text(done, total, what, self.started.elapsed())),
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        info!("{} took {:.1} s", self.name, self.started.elapsed().as_secs_f64());
    }
}

/// Formats the progress of a unit: `: 1.2 of 4.8 GB of reads, 60 MB/s, 60 s left`. `done` and `total` are in bytes.
fn progress_text(done: u64, total: u64, what: &str, since: Duration) -> String {
    let seconds = since.as_secs_f64();
    if total == 0 {
        return format!(": {seconds:.0} s so far");
    }
    let rate = done as f64 / seconds.max(1e-3);
    let left = match (done, total.saturating_sub(done)) {
        (_, 0) => "all read, still processing".to_owned(),
        (0, _) => "time left unknown".to_owned(),
        (_, rest) => format!("{:.0} s left", rest as f64 / rate),
    };
    format!(": {:.2} of {:.2} GB of {what}, {:.0} MB/s, {left}", done as f64 / 1e9, total as f64 / 1e9, rate / 1e6)
}

fn make_bar(name: &str, metered: bool) -> ProgressBar {
    let (bar, template) = if metered {
        (
            ProgressBar::new(0),
            "{prefix:>9} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec}, {eta} left",
        )
    } else {
        (ProgressBar::no_length(), "{prefix:>9} {spinner} {elapsed}")
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_prefix(name.to_owned())
}

fn lock_unit(unit: &Mutex<Option<RunningUnit>>) -> MutexGuard<'_, Option<RunningUnit>> {
    unit.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_rate_and_time_left() {
        let ten = Duration::from_secs(10);
        assert_eq!(
            progress_text(1_000_000_000, 4_000_000_000, "reads", ten),
            ": 1.00 of 4.00 GB of reads, 100 MB/s, 30 s left"
        );
        assert_eq!(
            progress_text(0, 4_000_000_000, "reads", ten),
            ": 0.00 of 4.00 GB of reads, 0 MB/s, time left unknown"
        );
        let all = progress_text(4_000_000_000, 4_000_000_000, "reads", ten);
        assert_eq!(all, ": 4.00 of 4.00 GB of reads, 400 MB/s, all read, still processing");
        assert_eq!(progress_text(0, 0, "reads", ten), ": 10 s so far");
    }
}
