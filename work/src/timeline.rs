//! Records what the process uses over time: CPU time, memory, bytes read and written, and energy.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::cost::measure_process_cost;
use crate::energy::{EnergyCounter, EnergySource, PowerLog, PowerLogError, estimate_energy_j, open_energy_counters};

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
    /// Measured energy in joules since the start; `None` if it is not measured.
    #[serde(default)]
    pub energy_j: Option<f64>,
    /// Energy in joules since the start, estimated from the CPU time and the memory of this process.
    #[serde(default)]
    pub estimated_energy_j: f64,
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
    /// Energy in joules that the machine used since the start, including work of other processes. `None` if there is
    /// neither a counter that can be read nor a power log.
    pub energy_j: Option<f64>,
    /// How `energy_j` was measured.
    #[serde(default)]
    pub energy_source: Option<EnergySource>,
    /// Energy in joules since the start, estimated from the CPU time and the memory of this process.
    #[serde(default)]
    pub estimated_energy_j: f64,
}

impl Timeline {
    /// Energy in joules that each unit used: measured, or estimated if it was not measured.
    pub fn unit_energy_j(&self) -> Vec<f64> {
        let used = |sample: &UsageSample| match self.energy_j {
            Some(_) => sample.energy_j.unwrap_or(0.0),
            None => sample.estimated_energy_j,
        };
        let ends = self.units.iter().skip(1).map(|next| &next.at).chain(self.samples.last());
        self.units.iter().zip(ends).map(|(unit, end)| (used(end) - used(&unit.at)).max(0.0)).collect()
    }

    /// Replaces the measured energy by that of a power log. `start` is the time when the timeline started.
    fn measure_energy_by_power_log(&mut self, log: &PowerLog, start: SystemTime) -> Result<(), PowerLogError> {
        let start_s = start.duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let mut moments: Vec<&mut UsageSample> =
            self.units.iter_mut().map(|unit| &mut unit.at).chain(&mut self.samples).collect();
        moments.sort_by(|a, b| a.elapsed_s.total_cmp(&b.elapsed_s));
        let times_s: Vec<f64> = moments.iter().map(|moment| start_s + moment.elapsed_s).collect();
        let energy_j = log.energy_j_at(start_s, &times_s)?;
        self.energy_j = energy_j.last().copied();
        self.energy_source = Some(EnergySource::PowerLog);
        moments.iter_mut().zip(energy_j).for_each(|(moment, joules)| moment.energy_j = Some(joules));
        Ok(())
    }
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
    start_time: SystemTime,
    usage_at_start: UsageSample,
    timeline: Timeline,
    energy_counters: Vec<EnergyCounter>,
    power_log: Option<PowerLog>,
}

impl TimelineRecorder {
    /// Starts to sample CPU time, memory and disk transfers of this process, and the energy of the machine, in a thread
    /// of its own. If that thread cannot be started, samples are taken only when a unit starts and at the end. With a
    /// power log, the energy is that of the log.
    pub fn start(power_log: Option<PowerLog>) -> TimelineRecorder {
        let state = RecorderState {
            start: Instant::now(),
            start_time: SystemTime::now(),
            usage_at_start: process_usage(),
            timeline: Timeline::default(),
            energy_counters: open_energy_counters(Path::new("/sys/class/powercap")),
            power_log,
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

    /// Takes a sample and returns the timeline up to now, and why the power log could not be used, if so: the energy is
    /// then that of the counters.
    pub fn timeline_until_now(&self) -> (Timeline, Option<PowerLogError>) {
        let mut state = lock_state(&self.state);
        state.take_sample();
        let mut timeline = state.timeline.clone();
        let unusable =
            state.power_log.as_ref().and_then(|log| timeline.measure_energy_by_power_log(log, state.start_time).err());
        (timeline, unusable)
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
        let elapsed_s = self.start.elapsed().as_secs_f64();
        let cpu_s = now.cpu_s - first.cpu_s;
        let last = self.timeline.samples.last().copied().unwrap_or_default();
        let more_j = estimate_energy_j(cpu_s - last.cpu_s, now.resident_bytes as f64, elapsed_s - last.elapsed_s);
        self.energy_counters.iter_mut().for_each(EnergyCounter::read);
        let used_j = self.energy_counters.iter().map(EnergyCounter::used_j).sum();
        let sample = UsageSample {
            elapsed_s,
            cpu_s,
            resident_bytes: now.resident_bytes,
            read_bytes: now.read_bytes.saturating_sub(first.read_bytes),
            written_bytes: now.written_bytes.saturating_sub(first.written_bytes),
            disk_read_bytes: now.disk_read_bytes.saturating_sub(first.disk_read_bytes),
            disk_written_bytes: now.disk_written_bytes.saturating_sub(first.disk_written_bytes),
            energy_j: (!self.energy_counters.is_empty()).then_some(used_j),
            estimated_energy_j: last.estimated_energy_j + more_j,
        };
        self.timeline.samples.push(sample);
        self.timeline.energy_j = sample.energy_j;
        self.timeline.energy_source = sample.energy_j.map(|_| EnergySource::Rapl);
        self.timeline.estimated_energy_j = sample.estimated_energy_j;
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
        cpu_s: measure_process_cost().cpu_s,
        resident_bytes: own_resident_bytes().unwrap_or(0),
        read_bytes: field("rchar:"),
        written_bytes: field("wchar:"),
        disk_read_bytes: field("read_bytes:"),
        disk_written_bytes: field("write_bytes:"),
        ..UsageSample::default()
    }
}

fn lock_state(state: &Mutex<RecorderState>) -> MutexGuard<'_, RecorderState> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_recorded() {
        let recorder = TimelineRecorder::start(None);
        recorder.record_unit_start("one");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, vec![1; 1 << 20]).unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), 1 << 20);
        recorder.record_unit_start("two");
        let (Timeline { units, samples, .. }, _) = recorder.timeline_until_now();
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
    fn energy_of_units_is_that_of_the_power_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("power");
        fs::write(&path, "").unwrap();
        let recorder = TimelineRecorder::start(Some(PowerLog::open(&path).unwrap()));
        recorder.record_unit_start("one");
        let start_cpu_s = measure_process_cost().cpu_s;
        while measure_process_cost().cpu_s < start_cpu_s + 0.15 {
            std::hint::spin_loop();
        }
        recorder.record_unit_start("two");
        // The clock of the readings is that of the system.
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        fs::write(&path, format!("{} 1000\n{} 1000\n", now_s - 5, now_s + 5)).unwrap();
        let (timeline, unusable) = recorder.timeline_until_now();
        assert!(unusable.is_none(), "{unusable:?}");
        assert_eq!(timeline.energy_source, Some(EnergySource::PowerLog));
        // Times in seconds since 1970 are multiples of 0.24 µs in 64-bit floats: an error of 1 mJ at 1000 W.
        let end_s = timeline.samples.last().unwrap().elapsed_s;
        assert!((timeline.energy_j.unwrap() - 1000.0 * end_s).abs() < 1e-3, "{timeline:?}");
        let units = timeline.unit_energy_j();
        let one_s = timeline.units[1].at.elapsed_s - timeline.units[0].at.elapsed_s;
        assert!((units[0] - 1000.0 * one_s).abs() < 1e-3 && units.len() == 2, "{units:?}");
        assert!(timeline.samples.windows(2).all(|two| two[0].estimated_energy_j <= two[1].estimated_energy_j));
        // A busy core takes 12 W. CPU time is counted in 1/100 s.
        assert!(timeline.estimated_energy_j > 12.0 * 0.1, "{}", timeline.estimated_energy_j);
        // Without readings in time the counters count, if there are any.
        fs::write(&path, format!("{} 1000\n", now_s - 1000)).unwrap();
        let (timeline, unusable) = recorder.timeline_until_now();
        assert!(unusable.is_some_and(|error| error.to_string().contains("no reading")));
        assert_ne!(timeline.energy_source, Some(EnergySource::PowerLog));
    }
}
