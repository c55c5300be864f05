//! Energy that a run used: from the energy counters of the processors (RAPL), from the readings of a power meter, or
//! estimated from CPU time and memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Power in watts of one busy core in an estimate: the value that Green Algorithms (Lannelongue et al. 2021,
/// doi:10.1002/advs.202100707) takes for a processor that it does not know.
pub const WATTS_PER_BUSY_CORE: f64 = 12.0;
/// Power in watts of 10⁹ bytes of memory in an estimate, from the same publication.
pub const WATTS_PER_GB_OF_MEMORY: f64 = 0.3725;
/// Longest time in seconds without a reading of the power meter. If readings are further apart, or begin or end further
/// away from the run, the power in between is not known.
pub const MAX_SECONDS_BETWEEN_READINGS: f64 = 120.0;

/// How energy was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnergySource {
    /// Energy counters of the processors and their memory (RAPL), including work of other processes.
    Rapl,
    /// Readings of a power meter of the machine.
    PowerLog,
}

/// Estimates the energy in joules of `cpu_s` seconds of CPU time, and of `bytes` of memory that are held for `wall_s`
/// seconds.
pub fn estimate_energy_j(cpu_s: f64, bytes: f64, wall_s: f64) -> f64 {
    cpu_s * WATTS_PER_BUSY_CORE + bytes / 1e9 * WATTS_PER_GB_OF_MEMORY * wall_s
}

/// An energy counter of the kernel (powercap), in microjoules. It wraps to 0 after `max_uj`.
#[derive(Debug)]
pub(crate) struct EnergyCounter {
    path: PathBuf,
    max_uj: u64,
    last_uj: u64,
    used_uj: u64,
}

impl EnergyCounter {
    /// Opens the counter of a powercap zone; `None` if it cannot be read.
    fn open(zone: &Path) -> Option<EnergyCounter> {
        let path = zone.join("energy_uj");
        let last_uj = read_number(&path)?;
        let max_uj = read_number(&zone.join("max_energy_range_uj")).unwrap_or(u64::MAX);
        Some(EnergyCounter { path, max_uj, last_uj, used_uj: 0 })
    }

    /// Reads the counter.
    pub(crate) fn read(&mut self) {
        let Some(now) = read_number(&self.path) else { return };
        self.used_uj += match now.checked_sub(self.last_uj) {
            Some(more) => more,
            None => self.max_uj.saturating_sub(self.last_uj) + now,
        };
        self.last_uj = now;
    }

    /// Energy in joules from opening to the last reading.
    pub(crate) fn used_j(&self) -> f64 {
        self.used_uj as f64 / 1e6
    }
}

/// Opens the readable energy counters of processor packages (zones `intel-rapl:N` that are named `package-…`) and of
/// their memory (zones `intel-rapl:N:M` that are named `dram`). Zones of cores and of the graphics unit are parts of
/// their package; the zone `psys` contains packages.
pub(crate) fn open_energy_counters(folder: &Path) -> Vec<EnergyCounter> {
    // I/O error ignored: a system without energy counters.
    let zones = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_counted = |zone: &fs::DirEntry| {
        let is_rapl = zone.file_name().to_str().is_some_and(|name| name.starts_with("intel-rapl:"));
        // I/O error ignored: a zone without a name is not counted.
        let name = fs::read_to_string(zone.path().join("name")).unwrap_or_default();
        is_rapl && (name.starts_with("package") || name.trim() == "dram")
    };
    zones.filter(is_counted).filter_map(|zone| EnergyCounter::open(&zone.path())).collect()
}

fn read_number(path: &Path) -> Option<u64> {
    // I/O error ignored: a counter of the kernel that may be unreadable.
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Why the readings of a power meter cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PowerLogError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A line is not a reading.
    #[error("{path}, line {line}: {what}")]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// The readings leave a part of the run out.
    #[error(
        "{path}: no reading of the power for {gap_s:.0} s of the run; at most {MAX_SECONDS_BETWEEN_READINGS} s may lie between two"
    )]
    Gap {
        /// Path of the file.
        path: PathBuf,
        /// Length of the longest time without a reading, in seconds.
        gap_s: f64,
    },
}

/// A file of readings of a power meter, to which another program may append while the run lasts. A line is the time in
/// seconds since 1970 (UTC) and the power in watts, with spaces, a tab or a comma in between. Lines that are empty or start
/// with `#` are ignored.
#[derive(Debug, Clone)]
pub struct PowerLog {
    path: PathBuf,
}

/// One reading: time in seconds since 1970, power in watts.
type Reading = (f64, f64);

impl PowerLog {
    /// Opens a file, and checks the lines that it has now.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not a reading.
    pub fn open(path: &Path) -> Result<PowerLog, PowerLogError> {
        let log = PowerLog { path: path.to_owned() };
        log.readings()?;
        Ok(log)
    }

    /// Energy in joules used from `start_s` up to each of `times_s`, all in seconds since 1970 and in ascending order.
    /// Between two readings the power changes linearly; before the first and after the last it is constant.
    ///
    /// # Errors
    /// The file cannot be read, a line is not a reading, or readings are missing.
    pub(crate) fn energy_j_at(&self, start_s: f64, times_s: &[f64]) -> Result<Vec<f64>, PowerLogError> {
        let Some(&end_s) = times_s.last() else { return Ok(Vec::new()) };
        let mut readings = self.readings()?;
        readings.sort_by(|a, b| a.0.total_cmp(&b.0));
        let gap_s = longest_gap_s(&readings, start_s, end_s);
        if gap_s > MAX_SECONDS_BETWEEN_READINGS {
            return Err(PowerLogError::Gap { path: self.path.clone(), gap_s });
        }
        let mut energy_j = Vec::with_capacity(times_s.len());
        let (mut total_j, mut last_s, mut next) = (0.0, start_s, 0);
        for &time_s in times_s {
            while next < readings.len() && readings[next].0 <= time_s {
                let reading_s = readings[next].0;
                if reading_s > last_s {
                    total_j += energy_between_j(&readings, next, last_s, reading_s);
                    last_s = reading_s;
                }
                next += 1;
            }
            total_j += energy_between_j(&readings, next, last_s, time_s);
            last_s = last_s.max(time_s);
            energy_j.push(total_j);
        }
        Ok(energy_j)
    }

    fn readings(&self) -> Result<Vec<Reading>, PowerLogError> {
        let text =
            fs::read_to_string(&self.path).map_err(|source| PowerLogError::Read { path: self.path.clone(), source })?;
        // A last line without its end may still be being written.
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut readings = Vec::new();
        for (i, line) in complete.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let invalid = |what| PowerLogError::Line { path: self.path.clone(), line: i + 1, what };
            let mut fields = line.split([' ', '\t', ',']).filter(|field| !field.is_empty());
            let mut number = || fields.next()?.parse::<f64>().ok().filter(|n| n.is_finite());
            let reading = number().zip(number());
            let reading = reading.ok_or_else(|| invalid("not a time in seconds since 1970 and a power in watts"))?;
            if fields.next().is_some() {
                return Err(invalid("more than a time and a power"));
            }
            if reading.1 < 0.0 {
                return Err(invalid("negative power"));
            }
            readings.push(reading);
        }
        Ok(readings)
    }
}

/// Energy in joules from `from_s` to `to_s`, which have no reading in between: `next` is the index of the first reading
/// after both, or at `to_s`.
fn energy_between_j(readings: &[Reading], next: usize, from_s: f64, to_s: f64) -> f64 {
    let before = next.checked_sub(1).and_then(|i| readings.get(i));
    let power_w = |time_s: f64| match (before, readings.get(next)) {
        (Some(a), Some(b)) if b.0 > a.0 => a.1 + (b.1 - a.1) * (time_s - a.0) / (b.0 - a.0),
        (Some(only), _) | (None, Some(only)) => only.1,
        (None, None) => 0.0,
    };
    (to_s - from_s).max(0.0) * (power_w(from_s) + power_w(to_s)) / 2.0
}

/// Longest time in seconds between two readings, or between an end of the run and the reading nearest to it, of sorted
/// readings.
fn longest_gap_s(readings: &[Reading], start: f64, end: f64) -> f64 {
    let readings_s = || readings.iter().map(|reading| reading.0);
    let before = readings_s().rfind(|&time| time <= start);
    let inside = readings_s().filter(|&time| time > start && time < end);
    let after = readings_s().find(|&time| time >= end);
    let times: Vec<f64> = before.into_iter().chain(inside).chain(after).collect();
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return end - start };
    let between = times.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
    between.max(first - start).max(end - last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power_log(text: &str) -> (tempfile::TempDir, PowerLog) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("power.tsv");
        fs::write(&path, text).unwrap();
        (folder, PowerLog { path })
    }

    #[test]
    fn packages_and_memory_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let write = |zone: &str, name: &str, uj: u64| {
            let zone = folder.path().join(zone);
            fs::create_dir_all(&zone).unwrap();
            fs::write(zone.join("name"), format!("{name}\n")).unwrap();
            fs::write(zone.join("energy_uj"), format!("{uj}\n")).unwrap();
            fs::write(zone.join("max_energy_range_uj"), "10000\n").unwrap();
        };
        write("intel-rapl:0", "package-0", 5000);
        write("intel-rapl:1", "package-1", 9000);
        write("intel-rapl:2", "psys", 1);
        write("intel-rapl:0:0", "core", 1);
        write("intel-rapl:0:1", "dram", 100);
        write("intel-rapl", "package-9", 1);
        write("intel-rapl-mmio:0", "package-0", 1);
        let mut counters = open_energy_counters(folder.path());
        assert_eq!(counters.len(), 3);
        write("intel-rapl:0", "package-0", 7000);
        write("intel-rapl:1", "package-1", 500);
        write("intel-rapl:0:1", "dram", 130);
        write("intel-rapl:2", "psys", 9000);
        counters.iter_mut().for_each(EnergyCounter::read);
        let used_j: f64 = counters.iter().map(EnergyCounter::used_j).sum();
        assert!((used_j - (2000.0 + 1500.0 + 30.0) / 1e6).abs() < 1e-12);
        assert!(open_energy_counters(&folder.path().join("none")).is_empty());
    }

    #[test]
    fn power_is_integrated_over_time() {
        let (_folder, log) = power_log("# time\twatts\n110 100\n100,100\n\n120\t200\n");
        // 10 s before the first reading, then constant, then rising, then 5 s after the last.
        let energy_j = log.energy_j_at(90.0, &[105.0, 110.0, 115.0, 125.0]).unwrap();
        let expected = [1500.0, 2000.0, 2625.0, 4500.0];
        assert!(energy_j.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{energy_j:?}");
        // Both ends lie between the same two readings.
        let energy_j = log.energy_j_at(112.0, &[114.0]).unwrap();
        assert!((energy_j[0] - 260.0).abs() < 1e-9, "{energy_j:?}");
        assert!(log.energy_j_at(0.0, &[]).unwrap().is_empty());
    }

    #[test]
    fn missing_readings_are_an_error() {
        let (_folder, log) = power_log("100 50\n400 50\n");
        let gap = |start_s: f64, end_s: f64| match log.energy_j_at(start_s, &[end_s]) {
            Err(PowerLogError::Gap { gap_s, .. }) => Some(gap_s),
            Ok(_) => None,
            Err(other) => panic!("{other}"),
        };
        assert_eq!(gap(100.0, 400.0), Some(300.0));
        assert_eq!(gap(200.0, 210.0), Some(300.0));
        assert_eq!(gap(390.0, 450.0), Some(300.0));
        assert_eq!(gap(400.0, 510.0), None);
        assert_eq!(gap(600.0, 700.0), Some(300.0));
        let (_folder, empty) = power_log("");
        assert!(empty.energy_j_at(0.0, &[300.0]).is_err());
    }

    #[test]
    fn invalid_lines_are_errors() {
        for (text, message) in [
            ("1 2\nx 3\n", "line 2: not a time"),
            ("1\n", "line 1: not a time"),
            ("1 2 3\n", "line 1: more than"),
            ("1 -2\n", "line 1: negative"),
            ("1 inf\n", "line 1: not a time"),
        ] {
            let (_folder, log) = power_log(text);
            let error = PowerLog::open(&log.path).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        assert!(PowerLog::open(Path::new("/nonexistent/power")).is_err());
        // The last line is not complete.
        let (_folder, log) = power_log("1 2\n3");
        assert_eq!(log.readings().unwrap(), [(1.0, 2.0)]);
    }

    #[test]
    fn estimates_are_those_of_green_algorithms() {
        // 10 cores at full use for one hour with 64 GB: 10 x 12 W + 64 x 0.3725 W = 143.84 W.
        let kwh = estimate_energy_j(36_000.0, 64e9, 3600.0) / 3.6e6;
        assert!((kwh - 0.143_84).abs() < 1e-9);
    }
}
