//! Detects whether other programs use the machine, from the kernel's pressure stall information (PSI) and load average.

use std::fs;
use std::path::Path;
use std::time::Instant;

/// Maximum share of the time (percent) in which tasks wait for a CPU, for a machine that counts as idle. Chosen: the
/// measurement never has more threads than CPUs, so its threads wait only because of other programs.
const MAX_CPU_PRESSURE_PERCENT: f64 = 5.0;
/// Maximum load average (1 minute) per CPU, for a machine that counts as idle. Chosen: programs on a tenth of the CPUs
/// can take a noticeable share of the memory bandwidth.
const MAX_LOAD_PER_CPU: f64 = 0.1;
/// A load average up to this value never counts as too high, however few CPUs the machine has. Chosen: the login and
/// the shell that started the measurement cause some load.
const ALWAYS_ALLOWED_LOAD: f64 = 0.5;

/// Describes the load of a machine with `num_cpus` CPUs: its CPU pressure if that is high, otherwise its load average.
/// `None` if both are low or unknown. `root` is `/`, or another folder in tests.
pub(super) fn describe_current_load(root: &Path, num_cpus: usize) -> Option<String> {
    let pressure = read_pressure(root).map(|pressure| pressure.average_percent);
    if let Some(percent) = pressure.filter(|&percent| percent > MAX_CPU_PRESSURE_PERCENT) {
        return Some(format!("tasks waited for a CPU in {percent:.0} % of the last 10 seconds"));
    }
    // I/O error ignored: a file of the kernel that may be absent.
    let text = fs::read_to_string(root.join("proc/loadavg")).ok()?;
    let load: f64 = text.split(' ').next()?.parse().ok()?;
    let max_load = ALWAYS_ALLOWED_LOAD.max(MAX_LOAD_PER_CPU * num_cpus as f64);
    (load > max_load).then(|| format!("the load average is {load:.1} on {num_cpus} CPUs"))
}

/// CPU pressure of the machine (`/proc/pressure/cpu`, line `some`).
struct CpuPressure {
    /// Share of the last 10 seconds in which at least one task waited for a CPU, in percent.
    average_percent: f64,
    /// Total time since the start of the machine in which at least one task waited for a CPU (µs).
    total_us: f64,
}

fn read_pressure(root: &Path) -> Option<CpuPressure> {
    // I/O error ignored: a file of the kernel that may be absent.
    let text = fs::read_to_string(root.join("proc/pressure/cpu")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let value = |key: &str| line.split(' ').find_map(|field| field.strip_prefix(key)?.parse().ok());
    Some(CpuPressure { average_percent: value("avg10=")?, total_us: value("total=")? })
}

/// Measures for which share of the time tasks wait for a CPU, from the creation of this value on.
pub(super) struct CpuPressureMeter {
    start: Instant,
    total_us: Option<f64>,
}

impl CpuPressureMeter {
    /// Starts the measurement.
    pub(super) fn start() -> CpuPressureMeter {
        let total_us = read_pressure(Path::new("/")).map(|pressure| pressure.total_us);
        CpuPressureMeter { start: Instant::now(), total_us }
    }

    /// Describes the load since the start of the measurement. `None` if the machine was idle apart from this process,
    /// or if the kernel reports no CPU pressure.
    pub(super) fn describe_load_since_start(&self) -> Option<String> {
        let waited_us = read_pressure(Path::new("/"))?.total_us - self.total_us?;
        let percent = waited_us / 1e4 / self.start.elapsed().as_secs_f64();
        (percent > MAX_CPU_PRESSURE_PERCENT)
            .then(|| format!("tasks waited for a CPU in {percent:.0} % of the time of the measurement"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_read_from_pressure_and_load_average() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join("proc").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(describe_current_load(root.path(), 4), None, "a kernel that reports nothing");
        write("loadavg", "0.45 0.30 0.20 1/300 4321\n");
        assert_eq!(describe_current_load(root.path(), 4), None);
        write("loadavg", "3.21 0.30 0.20 1/300 4321\n");
        assert_eq!(describe_current_load(root.path(), 64), None);
        assert_eq!(describe_current_load(root.path(), 4).unwrap(), "the load average is 3.2 on 4 CPUs");
        let pressure = |percent: f64| {
            format!(
                "some avg10={percent:.2} avg60=0.10 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
            )
        };
        write("loadavg", "0.00 0.30 0.20 1/300 4321\n");
        write("pressure/cpu", &pressure(4.9));
        assert_eq!(describe_current_load(root.path(), 4), None);
        write("pressure/cpu", &pressure(98.6));
        assert_eq!(
            describe_current_load(root.path(), 64).unwrap(),
            "tasks waited for a CPU in 99 % of the last 10 seconds"
        );
    }
}
