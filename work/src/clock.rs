//! What work costs: time by the clock, processor time, memory.

use std::fs;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::usage;

/// Cost of one unit of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitCost {
    /// Its name.
    pub name: String,
    /// Seconds by the clock.
    pub wall_s: f64,
    /// Seconds of processor time, all threads.
    pub cpu_s: f64,
    /// Highest resident memory of the process so far, bytes.
    pub peak_bytes: u64,
    /// Whether it was taken from an earlier run.
    pub resumed: bool,
}

/// What this process has cost so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessCost {
    /// Seconds of processor time, all threads.
    pub cpu_s: f64,
    /// Those of child processes that it has waited for.
    pub children_s: f64,
    /// Highest resident memory, bytes.
    pub peak_bytes: u64,
}

/// What this process has cost so far (proc_pid_stat(5), fields 14 to 17; `VmHWM` of proc_pid_status(5)).
pub fn process_cost() -> ProcessCost {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return called() };
    // The fields are counted behind the command name, which may hold anything but a closing parenthesis.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    // Linux reports them in clock ticks of 1/100 s on every architecture it runs on.
    let seconds = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0) / 100.0;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    ProcessCost {
        cpu_s: seconds(11) + seconds(12),
        children_s: seconds(13) + seconds(14),
        peak_bytes: peak.map_or_else(|| usage::own().1, |kib| kib * 1024),
    }
}

/// The same, without `/proc`.
fn called() -> ProcessCost {
    let (cpu_s, peak_bytes) = usage::own();
    ProcessCost { cpu_s, children_s: usage::children_s(), peak_bytes }
}

/// Takes the cost of what happens after it was started.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: Instant,
    cpu_s: f64,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Clock {
        Clock { wall: Instant::now(), cpu_s: process_cost().cpu_s }
    }

    /// What it has cost since, under a name.
    pub fn cost(self, name: &str) -> UnitCost {
        let ProcessCost { cpu_s, peak_bytes, .. } = process_cost();
        let wall_s = self.wall.elapsed().as_secs_f64();
        UnitCost { name: name.to_owned(), wall_s, cpu_s: cpu_s - self.cpu_s, peak_bytes, resumed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_calls_tell_the_same() {
        let filled = vec![1_u8; 64 << 20];
        let sum: u64 = (0..20).flat_map(|_| &filled).map(|&byte| u64::from(std::hint::black_box(byte))).sum();
        assert_eq!(sum, 20 * (64 << 20));
        let (files, call) = (process_cost(), called());
        assert!(call.cpu_s > 0.0 && (files.cpu_s - call.cpu_s).abs() < 0.5, "{files:?} {call:?}");
        // The kernel counts pages a batch late.
        assert!(call.peak_bytes + (4 << 20) >= files.peak_bytes, "{files:?} {call:?}");
        assert!(files.peak_bytes >= 64 << 20, "{files:?}");
    }
}
