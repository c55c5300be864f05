//! Progress on stderr: bars on a terminal, else a line now and then.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use genuma_reads::Meter;
use genuma_work::Watch;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tracing::{enabled, info};

/// Between two lines when stderr is not a terminal.
const LINE: Duration = Duration::from_secs(10);
/// Between two looks at the meter on a terminal.
const FRAME: Duration = Duration::from_millis(200);

/// The bars of this process; hidden when stderr is not a terminal.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Writes to stderr without tearing the bars.
pub(crate) fn above_bars<T>(write: impl FnOnce() -> T) -> T {
    BARS.suspend(write)
}

/// Shows which unit works and how far it is, until dropped.
pub(crate) struct Progress {
    unit: Arc<Mutex<Option<Unit>>>,
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

/// Shows how far a plan of known length is, until dropped.
pub(crate) struct Steps {
    all_s: f64,
    began: Instant,
    /// Absent when lines are written.
    bar: Option<ProgressBar>,
    /// When the last line was written.
    line: Mutex<Option<Instant>>,
}

impl Steps {
    /// Starts showing a plan of so many seconds, unless the user wants quiet.
    pub(crate) fn start(all_s: f64) -> Self {
        let shown = enabled!(tracing::Level::INFO) && !BARS.is_hidden();
        let bar = shown.then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {percent}% {elapsed}, {eta} left {msg:44!}");
            let bar = ProgressBar::new(1000);
            BARS.add(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
        });
        Steps { all_s, began: Instant::now(), bar, line: Mutex::new(None) }
    }

    /// So many seconds of the plan are done, and this is next.
    pub(crate) fn at(&self, done_s: f64, next: &str) {
        let share = (done_s / self.all_s.max(1e-9)).min(1.0);
        if let Some(bar) = &self.bar {
            bar.set_position((share * 1000.0) as u64);
            bar.set_message(next.to_owned());
            return;
        }
        let mut line = self.line.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if line.is_none_or(|last| last.elapsed() >= LINE) {
            *line = Some(Instant::now());
            let elapsed_s = self.began.elapsed().as_secs_f64();
            let left = match share {
                0.0 => String::new(),
                share => format!(", about {:.0} s left", elapsed_s * (1.0 / share - 1.0)),
            };
            info!("{:.0}% done after {elapsed_s:.0} s{left}: {next}", 100.0 * share);
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The unit at work.
struct Unit {
    name: String,
    meter: Option<Arc<Meter>>,
    began: Instant,
    /// Absent when lines are written.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts showing, unless the user wants quiet.
    pub(crate) fn start() -> Self {
        let unit = Arc::new(Mutex::new(None));
        let quiet = !enabled!(tracing::Level::INFO);
        let ticker = (!quiet).then(|| {
            let (stop, stopped) = channel::<()>();
            let unit = unit.clone();
            let pause = if BARS.is_hidden() { LINE } else { FRAME };
            let tick = move || {
                while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    if let Some(unit) = &*lock(&unit) {
                        unit.show();
                    }
                }
            };
            // Without a thread nothing is shown in between.
            thread::Builder::new().spawn(tick).ok().map(|thread| (stop, thread))
        });
        Progress { unit, ticker: ticker.flatten() }
    }

    /// The unit at work is done.
    fn end(&self) {
        if let Some(unit) = lock(&self.unit).take() {
            unit.end();
        }
    }
}

impl Watch for Progress {
    fn begins(&self, name: &str, meter: Option<Arc<Meter>>) {
        if self.ticker.is_none() {
            return;
        }
        self.end();
        let bar = (!BARS.is_hidden()).then(|| BARS.add(bar(name, meter.is_some())));
        if bar.is_none() {
            info!("{name} begins");
        }
        *lock(&self.unit) = Some(Unit { name: name.to_owned(), meter, began: Instant::now(), bar });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
        if let Some((stop, ticker)) = self.ticker.take() {
            drop(stop);
            // A ticker that panicked has nothing more to show.
            let _ = ticker.join();
        }
    }
}

impl Unit {
    fn show(&self) {
        let (done, total, what) =
            self.meter.as_ref().map_or((0, 0, ""), |m| (m.bytes_done(), m.bytes_total(), m.what()));
        match &self.bar {
            Some(bar) if self.meter.is_some() => {
                bar.set_length(total);
                bar.set_position(done);
            }
            Some(bar) => bar.tick(),
            None => info!("{}{}", self.name, line(done, total, what, self.began.elapsed())),
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        info!("{} took {:.1} s", self.name, self.began.elapsed().as_secs_f64());
    }
}

/// `: 1.2 of 4.8 GB of reads, 60 MB/s, 60 s left`.
fn line(done: u64, total: u64, what: &str, since: Duration) -> String {
    let seconds = since.as_secs_f64();
    if total == 0 {
        return format!(": {seconds:.0} s so far");
    }
    let rate = done as f64 / seconds.max(1e-3);
    let left = match (done, total.saturating_sub(done)) {
        (_, 0) => "all read, at work on it".to_owned(),
        (0, _) => "time left unknown".to_owned(),
        (_, rest) => format!("{:.0} s left", rest as f64 / rate),
    };
    format!(
        ": {:.2} of {:.2} GB of {what}, {:.0} MB/s, {left}",
        done as f64 / 1e9,
        total as f64 / 1e9,
        rate / 1e6
    )
}

fn bar(name: &str, metered: bool) -> ProgressBar {
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

fn lock(unit: &Mutex<Option<Unit>>) -> MutexGuard<'_, Option<Unit>> {
    unit.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_rate_and_time_left() {
        let ten = Duration::from_secs(10);
        assert_eq!(
            line(1_000_000_000, 4_000_000_000, "reads", ten),
            ": 1.00 of 4.00 GB of reads, 100 MB/s, 30 s left"
        );
        assert_eq!(
            line(0, 4_000_000_000, "reads", ten),
            ": 0.00 of 4.00 GB of reads, 0 MB/s, time left unknown"
        );
        let all = line(4_000_000_000, 4_000_000_000, "reads", ten);
        assert_eq!(all, ": 4.00 of 4.00 GB of reads, 400 MB/s, all read, at work on it");
        assert_eq!(line(0, 0, "reads", ten), ": 10 s so far");
    }
}
