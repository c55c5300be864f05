//! Cost of a unit of a run, or of the whole process: wall-clock time, CPU time and memory.

use std::fs;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::proc_parsing::{parse_peak_resident_bytes, stat_fields_after_name};
use crate::rusage;

/// Resources that one unit of a run used: wall time, CPU time and peak memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitCost {
    /// Name of the unit, such as `count`.
    pub name: String,
    /// Wall-clock time from the start to the end of the unit, in seconds.
    pub wall_s: f64,
    /// CPU time in seconds of all threads of the process while the unit ran.
    pub cpu_s: f64,
    /// Peak resident memory of the process so far (VmHWM), bytes.
    pub peak_bytes: u64,
    /// Whether the result of the unit was loaded from the work folder, where an earlier run stored it, instead of
    /// computed.
    pub resumed: bool,
}

/// Resources that this process has used since its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessCost {
    /// CPU time of all threads in seconds, user and system.
    pub cpu_s: f64,
    /// CPU time in seconds of terminated child processes that this process has waited for.
    pub children_cpu_s: f64,
    /// Peak resident memory in bytes.
    pub peak_bytes: u64,
}

/// Measures the CPU time and peak memory of this process (proc_pid_stat(5), fields 14 to 17; `VmHWM` of
/// proc_pid_status(5)).
pub fn measure_process_cost() -> ProcessCost {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return rusage_cost() };
    let fields: Vec<&str> = stat_fields_after_name(&stat).collect();
    // Linux reports CPU time in clock ticks of 1/100 s on all architectures.
    let seconds = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0) / 100.0;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ProcessCost {
        cpu_s: seconds(11) + seconds(12),
        children_cpu_s: seconds(13) + seconds(14),
        peak_bytes: parse_peak_resident_bytes(&status)
            .unwrap_or_else(|| rusage::usage_of_this_process().max_resident_bytes),
    }
}

/// Measures the same as [`measure_process_cost`], with getrusage(2), for systems where `/proc` is not mounted.
fn rusage_cost() -> ProcessCost {
    let own = rusage::usage_of_this_process();
    ProcessCost {
        cpu_s: own.total_cpu_s(),
        children_cpu_s: rusage::measure_children_cpu_s(),
        peak_bytes: own.max_resident_bytes,
    }
}

/// Measures the cost of one unit, from `start` to `stop`.
#[derive(Debug, Clone, Copy)]
pub struct CostTimer {
    wall: Instant,
    cpu_s: f64,
}

impl CostTimer {
    /// Starts to measure wall-clock time and CPU time of this process.
    pub fn start() -> CostTimer {
        CostTimer { wall: Instant::now(), cpu_s: measure_process_cost().cpu_s }
    }

    /// Returns the cost since the start, labelled with the name of the unit.
    pub fn stop(self, name: &str) -> UnitCost {
        let ProcessCost { cpu_s, peak_bytes, .. } = measure_process_cost();
        let wall_s = self.wall.elapsed().as_secs_f64();
        UnitCost { name: name.to_owned(), wall_s, cpu_s: cpu_s - self.cpu_s, peak_bytes, resumed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_and_getrusage_agree() {
        let filled = vec![1_u8; 64 << 20];
        let sum: u64 = (0..20).flat_map(|_| &filled).map(|&byte| u64::from(std::hint::black_box(byte))).sum();
        assert_eq!(sum, 20 * (64 << 20));
        let (files, call) = (measure_process_cost(), rusage_cost());
        assert!(call.cpu_s > 0.0 && (files.cpu_s - call.cpu_s).abs() < 0.5, "{files:?} {call:?}");
        // The kernel updates its page counts in batches, so allow a difference of 4 MiB.
        assert!(call.peak_bytes + (4 << 20) >= files.peak_bytes, "{files:?} {call:?}");
        assert!(files.peak_bytes >= 64 << 20, "{files:?}");
    }
}
