//! Reads counters from `/proc`: of threads, of memory by node, and of the whole machine.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use serde::Serialize;

use super::CounterValue;
use crate::proc_parsing::{self, parse_resident_bytes_by_node, stat_fields_after_name};

/// Counters of the kernel for one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ThreadCounts {
    /// Number of moves to another CPU; `None` if the kernel does not report it.
    pub(super) migrations: Option<u64>,
    /// Time that the thread waited for disks, in clock ticks of 10 ms.
    pub(super) disk_wait_ticks: u64,
}

/// Identity of a thread: its ID and its start time. The start time is needed because the kernel reuses IDs.
pub(super) type ThreadKey = (u32, u64);

/// Reads the counts of all threads of a process into `counts`. Adds nothing if the process has ended.
pub(super) fn read_thread_counts(process: u32, counts: &mut BTreeMap<ThreadKey, ThreadCounts>) {
    for task in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        let Some(thread) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // I/O error ignored: the thread has ended.
        let Ok(stat) = fs::read_to_string(task.path().join("stat")) else { continue };
        let Some((start, disk_wait_ticks)) = parse_thread_stat(&stat) else { continue };
        // I/O error ignored: the kernel may lack the file; the count is then missing, with this reason.
        let sched = fs::read_to_string(task.path().join("sched")).ok();
        let migrations = sched.and_then(|sched| parse_migrations(&sched));
        counts.insert((thread, start), ThreadCounts { migrations, disk_wait_ticks });
    }
}

/// Parses the start time and the time waited for disks, both in clock ticks, from a `stat` file (proc_pid_stat(5),
/// fields 22 and 42).
fn parse_thread_stat(stat: &str) -> Option<(u64, u64)> {
    let fields: Vec<&str> = stat_fields_after_name(stat).collect();
    Some((fields.get(19)?.parse().ok()?, fields.get(39)?.parse().ok()?))
}

/// Parses the number of CPU migrations from `/proc/PID/task/TID/sched`: the line `se.nr_migrations : 5`.
fn parse_migrations(sched: &str) -> Option<u64> {
    let line = sched.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// Adds the resident memory of a process to the bytes by node.
///
/// # Errors
/// `numa_maps` cannot be read: the process has ended, the kernel has no NUMA support, or permission is denied.
pub(super) fn add_resident_bytes_by_node(process: u32, by_node: &mut BTreeMap<u32, u64>) -> io::Result<()> {
    let maps = fs::read_to_string(format!("/proc/{process}/numa_maps"))?;
    add_numa_maps(&maps, by_node);
    Ok(())
}

/// Adds the resident memory of all ranges of a `numa_maps` file.
fn add_numa_maps(maps: &str, by_node: &mut BTreeMap<u32, u64>) {
    for (node, bytes) in maps.lines().flat_map(parse_resident_bytes_by_node) {
        *by_node.entry(node).or_default() += bytes;
    }
}

/// Returns the peak resident memory of a process in bytes; `None` if it has ended.
pub(super) fn read_peak_resident_bytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    proc_parsing::parse_peak_resident_bytes(&status)
}

/// Returns the reason why the kernel does not report the time that threads waited for disks; `None` if it does.
pub(super) fn explain_missing_disk_wait() -> Option<String> {
    match fs::read_to_string("/proc/sys/kernel/task_delayacct") {
        Ok(on) if on.trim() != "0" => None,
        Ok(_) => Some("delay accounting is off: set kernel.task_delayacct to 1 before the run".to_owned()),
        Err(_) => Some("the kernel does not say whether delay accounting is on".to_owned()),
    }
}

/// Counters of the kernel's automatic NUMA balancing during a run, for all processes of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NumaBalancingCounters {
    /// NUMA hint faults: page faults that the kernel provokes to learn which node uses a page.
    pub numa_hint_faults: CounterValue,
    /// NUMA hint faults for pages on the node of the thread that faulted.
    pub numa_hint_faults_local: CounterValue,
    /// Pages that the kernel moved to another node because of hint faults.
    pub numa_pages_migrated: CounterValue,
}

/// Text of `/proc/vmstat` at one moment.
#[derive(Debug, Clone)]
pub(super) struct VmstatSnapshot {
    vmstat: Result<String, String>,
}

impl VmstatSnapshot {
    /// Reads `/proc/vmstat`.
    pub(super) fn read_vmstat() -> VmstatSnapshot {
        let file = "/proc/vmstat";
        VmstatSnapshot { vmstat: fs::read_to_string(file).map_err(|error| format!("{file} cannot be read: {error}")) }
    }

    /// Returns the increase of the counters from this snapshot to the snapshot `end`.
    pub(super) fn numa_balancing_counts_until(&self, end: &VmstatSnapshot) -> NumaBalancingCounters {
        let balancing = fs::read_to_string("/proc/sys/kernel/numa_balancing");
        let off = match balancing.as_deref().map(str::trim) {
            Ok("0") => Some("automatic NUMA balancing is off (kernel.numa_balancing is 0)"),
            Ok(_) => None,
            Err(_) => Some("the kernel has no automatic NUMA balancing"),
        };
        let count = |name: &str| match off {
            Some(why) => CounterValue::missing_with_reason(why),
            None => self.difference(end, name),
        };
        NumaBalancingCounters {
            numa_hint_faults: count("numa_hint_faults"),
            numa_hint_faults_local: count("numa_hint_faults_local"),
            numa_pages_migrated: count("numa_pages_migrated"),
        }
    }

    fn difference(&self, end: &VmstatSnapshot, name: &str) -> CounterValue {
        match (&self.vmstat, &end.vmstat) {
            (Err(why), _) | (_, Err(why)) => CounterValue::missing_with_reason(why.clone()),
            (Ok(before), Ok(after)) => match (parse_vmstat(before, name), parse_vmstat(after, name)) {
                (Some(before), Some(after)) => CounterValue::with_exact_value(after.saturating_sub(before)),
                _ => CounterValue::missing_with_reason(format!("/proc/vmstat has no {name}")),
            },
        }
    }
}

/// Parses the value of one counter of `/proc/vmstat`, such as 12 in the line `numa_hint_faults 12`.
fn parse_vmstat(vmstat: &str, name: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_each_size_are_counted_by_node() {
        let mut by_node = BTreeMap::new();
        for line in [
            "7f00 interleave:0-1 anon=8 dirty=8 N0=4 N1=4 kernelpagesize_kB=4",
            "7f10 default file=/data/N0=9 mapped=3 N1=3 kernelpagesize_kB=2048",
            "7f20 default",
        ] {
            add_numa_maps(line, &mut by_node);
        }
        assert_eq!(by_node, BTreeMap::from([(0, 4 * 4096), (1, 4 * 4096 + 3 * (2 << 20))]));
    }

    #[test]
    fn a_thread_has_a_start_and_a_wait() {
        let stat = format!("7 (a ) name) S{} 12345{} 17 0", " 1".repeat(18), " 1".repeat(19));
        assert_eq!(parse_thread_stat(&stat), Some((12345, 17)));
        assert_eq!(parse_migrations("x\nse.nr_migrations      :       42\nnr_switches : 7\n"), Some(42));
        assert_eq!(parse_migrations("nr_switches : 7\n"), None);
    }

    #[test]
    fn differences_of_the_machine_are_by_exact_name() {
        let at = |text: &str| VmstatSnapshot { vmstat: Ok(text.to_owned()) };
        let (start, end) = (
            at("numa_hint_faults 5\nnuma_hint_faults_local 3\n"),
            at("numa_hint_faults 9\nnuma_hint_faults_local 4\n"),
        );
        assert_eq!(start.difference(&end, "numa_hint_faults"), CounterValue::with_exact_value(4));
        assert_eq!(start.difference(&end, "numa_hint_faults_local"), CounterValue::with_exact_value(1));
        assert_eq!(start.difference(&end, "numa_other").value, None);
        let unread = VmstatSnapshot { vmstat: Err("forbidden".to_owned()) };
        assert_eq!(unread.difference(&end, "numa_hint_faults"), CounterValue::missing_with_reason("forbidden"));
    }
}
