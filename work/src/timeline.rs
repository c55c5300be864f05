//! Records what the process uses over time: CPU time, memory, bytes read and written, and energy where the machine
//! reports it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::cost::measure_process_cost;

/// Time between two samples at the start of a run.
const INITIAL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of samples. When there are more, every other sample is dropped and the interval is doubled.
const MAX_SAMPLES: usize = 2000;

/// Resources that the process had used up to one moment. Time, CPU time and bytes are counted from the start of the
/// timeline; resident memory is the amount at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct UsageSample {
    /// Wall-clock time since the recorder started, in seconds.
    #[serde(alias = "s")]
    pub elapsed_s: f64,
    /// CPU time of all threads in seconds.
    pub cpu_s: f64,
    /// Resident memory in bytes.
    pub resident_bytes: u64,
    /// Bytes read by system calls, from the disk or from the page cache.
    pub read_bytes: u64,
    /// Bytes written by system calls, to the disk or to the page cache.
    pub written_bytes: u64,
    /// Bytes that were read from a disk, not from the page cache.
    pub disk_read_bytes: u64,
    /// Bytes that were written to a disk, or are waiting in the page cache to be written.
    pub disk_written_bytes: u64,
}

/// Start of a unit of the run, on the timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitStart {
    /// Name of the unit, such as `count`.
    pub name: String,
    /// Resources that the process had used when the unit started.
    pub at: UsageSample,
}

/// Samples of the resources that a process used over time, and the starts of its units.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Units in the order of their start.
    pub units: Vec<UnitStart>,
    /// Samples in the order of time, a few thousand at most.
    pub samples: Vec<UsageSample>,
    /// Energy in joules that all processor packages of the machine used since the start, including work of other
    /// processes (RAPL). `None` if the machine does not report it.
    pub energy_j: Option<f64>,
}

/// Records a timeline in a thread until it is dropped.
#[derive(Debug)]
pub struct TimelineRecorder {
    state: Arc<Mutex<RecorderState>>,
    sampler: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug)]
struct RecorderState {
    start: Instant,
    usage_at_start: UsageSample,
    timeline: Timeline,
    energy_counters: Vec<EnergyCounter>,
}

impl TimelineRecorder {
    /// Starts to sample CPU time, memory and disk transfers of this process, and the energy of the machine, in a thread
    /// of its own. If that thread cannot be started, samples are taken only when a unit starts and at the end.
    pub fn start() -> TimelineRecorder {
        let (first, meters) = (process_usage(), energy_counters(Path::new("/sys/class/powercap")));
        let state = RecorderState {
            start: Instant::now(),
            usage_at_start: first,
            timeline: Timeline::default(),
            energy_counters: meters,
        };
        let state = Arc::new(Mutex::new(state));
        lock_state(&state).take_sample();
        let (stop, stopped) = channel::<()>();
        let sampled = state.clone();
        let sample = move || {
            let mut interval = INITIAL_INTERVAL;
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let mut state = lock_state(&sampled);
                state.take_sample();
                if drop_every_other(&mut state.timeline.samples, MAX_SAMPLES) {
                    interval *= 2;
                }
            }
        };
        // If the thread cannot be started, only the samples at unit starts are taken.
        let sampler = thread::Builder::new().name("timeline".into()).spawn(sample).ok();
        TimelineRecorder { state, sampler: sampler.map(|thread| (stop, thread)) }
    }

    /// Records that the unit `name` starts now.
    pub fn record_unit_start(&self, name: &str) {
        let mut state = lock_state(&self.state);
        let at = state.take_sample();
        state.timeline.units.push(UnitStart { name: name.to_owned(), at });
    }

    /// Takes a sample and returns the timeline up to now.
    pub fn timeline_until_now(&self) -> Timeline {
        let mut state = lock_state(&self.state);
        state.take_sample();
        state.timeline.clone()
    }
}

impl Drop for TimelineRecorder {
    fn drop(&mut self) {
        if let Some((stop, sampler)) = self.sampler.take() {
            drop(stop);
            // A panic of the sampling thread loses only samples.
            let _ = sampler.join();
        }
    }
}

impl RecorderState {
    /// Takes a sample and appends it to the timeline.
    fn take_sample(&mut self) -> UsageSample {
        let (now, first) = (process_usage(), &self.usage_at_start);
        let sample = UsageSample {
            elapsed_s: self.start.elapsed().as_secs_f64(),
            cpu_s: now.cpu_s - first.cpu_s,
            resident_bytes: now.resident_bytes,
            read_bytes: now.read_bytes.saturating_sub(first.read_bytes),
            written_bytes: now.written_bytes.saturating_sub(first.written_bytes),
            disk_read_bytes: now.disk_read_bytes.saturating_sub(first.disk_read_bytes),
            disk_written_bytes: now.disk_written_bytes.saturating_sub(first.disk_written_bytes),
        };
        self.timeline.samples.push(sample);
        self.energy_counters.iter_mut().for_each(EnergyCounter::read);
        let joules: f64 = self.energy_counters.iter().map(|meter| meter.used_uj as f64 / 1e6).sum();
        self.timeline.energy_j = (!self.energy_counters.is_empty()).then_some(joules);
        sample
    }
}

/// Drops every other sample if there are more than `max_samples`. Returns whether samples were dropped.
fn drop_every_other(samples: &mut Vec<UsageSample>, max_samples: usize) -> bool {
    let too_many = samples.len() > max_samples;
    if too_many {
        let mut kept = false;
        samples.retain(|_| {
            kept = !kept;
            kept
        });
    }
    too_many
}

/// Resident memory of this process in bytes (`VmRSS`, proc_pid_status(5)); `None` where `/proc` is not available.
pub fn own_resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    Some(kib?.parse::<u64>().ok()? * 1024)
}

/// Resources that the process has used since it started (proc_pid_status(5), proc_pid_io(5)).
fn process_usage() -> UsageSample {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let field = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0);
    UsageSample {
        elapsed_s: 0.0,
        cpu_s: measure_process_cost().cpu_s,
        resident_bytes: own_resident_bytes().unwrap_or(0),
        read_bytes: field("rchar:"),
        written_bytes: field("wchar:"),
        disk_read_bytes: field("read_bytes:"),
        disk_written_bytes: field("write_bytes:"),
    }
}

/// The energy counter of one processor package, in microjoules. The counter wraps to 0 after `max_uj`.
#[derive(Debug)]
struct EnergyCounter {
    path: PathBuf,
    max_uj: u64,
    last_uj: u64,
    used_uj: u64,
}

impl EnergyCounter {
    fn read(&mut self) {
        let Some(now) = read_number(&self.path) else { return };
        self.used_uj += match now.checked_sub(self.last_uj) {
            Some(more) => more,
            None => self.max_uj.saturating_sub(self.last_uj) + now,
        };
        self.last_uj = now;
    }
}

fn read_number(path: &Path) -> Option<u64> {
    // I/O error ignored: a counter of the kernel that may be unreadable.
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The readable energy counters of all packages: zones `intel-rapl:N`. Subzones have a second number and are skipped.
fn energy_counters(folder: &Path) -> Vec<EnergyCounter> {
    // I/O error ignored: a system without energy counters.
    let zones = fs::read_dir(folder).into_iter().flatten().flatten();
    let package = |zone: &fs::DirEntry| {
        let name = zone.file_name().into_string().unwrap_or_default();
        let read_number = name.strip_prefix("intel-rapl:").unwrap_or_default();
        !read_number.is_empty() && read_number.bytes().all(|b| b.is_ascii_digit())
    };
    let meter = |zone: fs::DirEntry| {
        let path = zone.path().join("energy_uj");
        let last = read_number(&path)?;
        let largest = read_number(&zone.path().join("max_energy_range_uj")).unwrap_or(u64::MAX);
        Some(EnergyCounter { path, max_uj: largest, last_uj: last, used_uj: 0 })
    };
    zones.filter(package).filter_map(meter).collect()
}

fn lock_state(state: &Mutex<RecorderState>) -> MutexGuard<'_, RecorderState> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_recorded() {
        let recorder = TimelineRecorder::start();
        recorder.record_unit_start("one");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, vec![1; 1 << 20]).unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), 1 << 20);
        recorder.record_unit_start("two");
        let Timeline { units, samples, .. } = recorder.timeline_until_now();
        let names: Vec<&str> = units.iter().map(|unit| &unit.name[..]).collect();
        assert_eq!(names, ["one", "two"]);
        let (one, two) = (units[0].at, units[1].at);
        assert!(two.read_bytes - one.read_bytes >= 1 << 20 && two.written_bytes - one.written_bytes >= 1 << 20);
        assert!(samples.len() >= 4 && samples.iter().all(|sample| sample.resident_bytes > 0));
        assert!(samples.windows(2).all(|two| two[0].elapsed_s <= two[1].elapsed_s && two[0].cpu_s <= two[1].cpu_s));
    }

    #[test]
    fn many_samples_are_thinned() {
        let mut samples: Vec<UsageSample> =
            (0..10).map(|i| UsageSample { elapsed_s: f64::from(i), ..UsageSample::default() }).collect();
        assert!(!drop_every_other(&mut samples, 10));
        assert!(drop_every_other(&mut samples, 9));
        assert!(samples.iter().map(|sample| sample.elapsed_s).eq([0.0, 2.0, 4.0, 6.0, 8.0]));
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
        let mut meters = energy_counters(folder.path());
        assert_eq!(meters.len(), 2);
        write("intel-rapl:0", 7000);
        write("intel-rapl:1", 500);
        meters.iter_mut().for_each(EnergyCounter::read);
        assert_eq!(meters.iter().map(|meter| meter.used_uj).sum::<u64>(), 2000 + 1500);
        assert!(super::energy_counters(&folder.path().join("none")).is_empty());
    }
}
