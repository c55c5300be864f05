//! What a process used over time: processors, memory, bytes read and written, energy where the machine tells it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::clock::process_cost;

/// Between two samples at first.
const INTERVAL: Duration = Duration::from_secs(1);
/// Most samples: beyond them every other one is dropped, and the interval doubled.
const MOST: usize = 2000;

/// What the process had used at one time. Seconds, CPU seconds and bytes are those since its timeline began.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds by the clock.
    pub s: f64,
    /// CPU seconds, all threads.
    pub cpu_s: f64,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Bytes that were read by system calls, from the disk or from its cache.
    pub read_bytes: u64,
    /// Bytes that were written by system calls, to the disk or to its cache.
    pub written_bytes: u64,
    /// Bytes that came from the disk itself.
    pub disk_read_bytes: u64,
    /// Bytes that are bound for the disk itself.
    pub disk_written_bytes: u64,
}

/// When a unit began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Began {
    /// Its name.
    pub name: String,
    /// What the process had used then.
    pub at: Sample,
}

/// What a process used over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Units by the time they began.
    pub units: Vec<Began>,
    /// Samples by time, some thousand at most.
    pub samples: Vec<Sample>,
    /// Joules of all processors of the machine, where it tells (RAPL): others' work is in them, too.
    pub energy_j: Option<f64>,
}

/// Takes samples until it is dropped.
#[derive(Debug)]
pub struct Recorder {
    state: Arc<Mutex<State>>,
    sampler: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug)]
struct State {
    began: Instant,
    first: Sample,
    timeline: Timeline,
    meters: Vec<Meter>,
}

impl Recorder {
    /// Begins a timeline.
    pub fn start() -> Recorder {
        let (first, meters) = (used(), meters(Path::new("/sys/class/powercap")));
        let state = State { began: Instant::now(), first, timeline: Timeline::default(), meters };
        let state = Arc::new(Mutex::new(state));
        lock(&state).sample();
        let (stop, stopped) = channel::<()>();
        let sampled = state.clone();
        let sample = move || {
            let mut interval = INTERVAL;
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let mut state = lock(&sampled);
                state.sample();
                if thin(&mut state.timeline.samples, MOST) {
                    interval *= 2;
                }
            }
        };
        // Without a thread there are the samples of units' beginnings.
        let sampler = thread::Builder::new().name("timeline".into()).spawn(sample).ok();
        Recorder { state, sampler: sampler.map(|thread| (stop, thread)) }
    }

    /// A unit begins.
    pub fn begins(&self, name: &str) {
        let mut state = lock(&self.state);
        let at = state.sample();
        state.timeline.units.push(Began { name: name.to_owned(), at });
    }

    /// The timeline so far.
    pub fn timeline(&self) -> Timeline {
        let mut state = lock(&self.state);
        state.sample();
        state.timeline.clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some((stop, sampler)) = self.sampler.take() {
            drop(stop);
            // One that panicked has nothing more to tell.
            let _ = sampler.join();
        }
    }
}

impl State {
    /// Takes a sample.
    fn sample(&mut self) -> Sample {
        let (now, first) = (used(), &self.first);
        let sample = Sample {
            s: self.began.elapsed().as_secs_f64(),
            cpu_s: now.cpu_s - first.cpu_s,
            resident_bytes: now.resident_bytes,
            read_bytes: now.read_bytes.saturating_sub(first.read_bytes),
            written_bytes: now.written_bytes.saturating_sub(first.written_bytes),
            disk_read_bytes: now.disk_read_bytes.saturating_sub(first.disk_read_bytes),
            disk_written_bytes: now.disk_written_bytes.saturating_sub(first.disk_written_bytes),
        };
        self.timeline.samples.push(sample);
        self.meters.iter_mut().for_each(Meter::read);
        let joules: f64 = self.meters.iter().map(|meter| meter.used as f64 / 1e6).sum();
        self.timeline.energy_j = (!self.meters.is_empty()).then_some(joules);
        sample
    }
}

/// Drops every other sample if there are more than `most`.
fn thin(samples: &mut Vec<Sample>, most: usize) -> bool {
    let many = samples.len() > most;
    if many {
        let mut kept = false;
        samples.retain(|_| {
            kept = !kept;
            kept
        });
    }
    many
}

/// Bytes of memory that the process holds now, where the system tells it (proc_pid_status(5)).
pub fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    Some(kib?.parse::<u64>().ok()? * 1024)
}

/// What the process has used since it began (proc_pid_statm(5), proc_pid_io(5)).
fn used() -> Sample {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let field =
        |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0);
    Sample {
        s: 0.0,
        cpu_s: process_cost().cpu_s,
        resident_bytes: resident().unwrap_or(0),
        read_bytes: field("rchar:"),
        written_bytes: field("wchar:"),
        disk_read_bytes: field("read_bytes:"),
        disk_written_bytes: field("write_bytes:"),
    }
}

/// The energy counter of one processor package, in microjoules; it begins again at 0 beyond its largest value.
#[derive(Debug)]
struct Meter {
    path: PathBuf,
    largest: u64,
    last: u64,
    used: u64,
}

impl Meter {
    fn read(&mut self) {
        let Some(now) = number(&self.path) else { return };
        self.used += match now.checked_sub(self.last) {
            Some(more) => more,
            None => self.largest.saturating_sub(self.last) + now,
        };
        self.last = now;
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The counters of all packages that may be read: zones `intel-rapl:0` and so on, whose parts have a second number.
fn meters(folder: &Path) -> Vec<Meter> {
    let zones = fs::read_dir(folder).into_iter().flatten().flatten();
    let package = |zone: &fs::DirEntry| {
        let name = zone.file_name().into_string().unwrap_or_default();
        let number = name.strip_prefix("intel-rapl:").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    let meter = |zone: fs::DirEntry| {
        let path = zone.path().join("energy_uj");
        let last = number(&path)?;
        let largest = number(&zone.path().join("max_energy_range_uj")).unwrap_or(u64::MAX);
        Some(Meter { path, largest, last, used: 0 })
    };
    zones.filter(package).filter_map(meter).collect()
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_shows() {
        let recorder = Recorder::start();
        recorder.begins("one");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, vec![1; 1 << 20]).unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), 1 << 20);
        recorder.begins("two");
        let Timeline { units, samples, .. } = recorder.timeline();
        let names: Vec<&str> = units.iter().map(|unit| &unit.name[..]).collect();
        assert_eq!(names, ["one", "two"]);
        let (one, two) = (units[0].at, units[1].at);
        assert!(
            two.read_bytes - one.read_bytes >= 1 << 20 && two.written_bytes - one.written_bytes >= 1 << 20
        );
        assert!(samples.len() >= 4 && samples.iter().all(|sample| sample.resident_bytes > 0));
        assert!(samples.windows(2).all(|two| two[0].s <= two[1].s && two[0].cpu_s <= two[1].cpu_s));
    }

    #[test]
    fn many_samples_are_thinned() {
        let mut samples: Vec<Sample> =
            (0..10).map(|i| Sample { s: f64::from(i), ..Sample::default() }).collect();
        assert!(!thin(&mut samples, 10));
        assert!(thin(&mut samples, 9));
        assert!(samples.iter().map(|sample| sample.s).eq([0.0, 2.0, 4.0, 6.0, 8.0]));
    }

    #[test]
    fn energy_is_that_of_the_packages() {
        let folder = tempfile::tempdir().unwrap();
        let write = |zone: &str, uj: u64| {
            let zone = folder.path().join(zone);
            fs::create_dir_all(&zone).unwrap();
            fs::write(zone.join("energy_uj"), format!("{uj}\n")).unwrap();
            fs::write(zone.join("max_energy_range_uj"), "10000\n").unwrap();
        };
        write("intel-rapl:0", 5000);
        write("intel-rapl:1", 9000);
        write("intel-rapl:0:0", 1);
        write("intel-rapl", 1);
        let mut meters = meters(folder.path());
        assert_eq!(meters.len(), 2);
        write("intel-rapl:0", 7000);
        write("intel-rapl:1", 500);
        meters.iter_mut().for_each(Meter::read);
        assert_eq!(meters.iter().map(|meter| meter.used).sum::<u64>(), 2000 + 1500);
        assert!(super::meters(&folder.path().join("none")).is_empty());
    }
}
