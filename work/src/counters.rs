//! Counts resources that a set of processes used, with wait4(2), getrusage(2), perf events and samples of `/proc`. A
//! counter that is missing or may be too small has a note with the reason.
//!

mod perf_events;

mod proc_files;

mod sampler;

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use crate::cost::measure_process_cost;
use crate::rusage;
pub use crate::rusage::{ResourceUsage, wait_for_child};
use perf_events::{CountedProcesses, PerfCounts, PerfEvents};
pub use proc_files::NumaBalancingCounters;
use proc_files::{VmstatSnapshot, explain_missing_disk_wait};
use sampler::{ProcSampler, ProcSamples};

/// Value of a kernel counter, with a note if the value is missing, may be too small, or is estimated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CounterValue {
    /// The counted number; `None` if the system does not provide it.
    pub value: Option<u64>,
    /// Whether the value is a lower bound of the true number.
    pub at_least: bool,
    /// Why there is no number, why it may be too small, or how it was estimated.
    pub note: Option<String>,
}

impl CounterValue {
    /// Creates a value that the kernel reports exactly.
    pub fn with_exact_value(value: u64) -> CounterValue {
        CounterValue { value: Some(value), at_least: false, note: None }
    }

    /// Creates a lower bound of the true value. `note` is the reason why the value may be too small.
    pub fn with_lower_bound_and_reason(value: u64, note: impl Into<String>) -> CounterValue {
        CounterValue { value: Some(value), at_least: true, note: Some(note.into()) }
    }

    /// Creates a missing value. `note` is the reason why it is missing.
    pub fn missing_with_reason(note: impl Into<String>) -> CounterValue {
        CounterValue { value: None, at_least: false, note: Some(note.into()) }
    }

    /// Combines the counts of two processes with `add`. If one of the two is missing, the other one is a lower bound.
    fn combine(self, other: CounterValue, add: impl Fn(u64, u64) -> u64) -> CounterValue {
        let note = self.note.or(other.note);
        match (self.value, other.value) {
            (Some(a), Some(b)) => {
                CounterValue { value: Some(add(a, b)), at_least: self.at_least || other.at_least, note }
            }
            (None, None) => CounterValue { value: None, at_least: false, note },
            (one, two) => CounterValue { value: one.or(two), at_least: true, note },
        }
    }
}

/// Resources that a set of processes used: those of an instance of a program, or genuma itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessCounters {
    /// CPU time in user mode, s.
    pub user_cpu_s: f64,
    /// CPU time in the kernel, s.
    pub system_cpu_s: f64,
    /// Peak resident memory of the largest process, bytes.
    pub max_resident_bytes: CounterValue,
    /// Voluntary context switches: a thread waited for something.
    pub voluntary_switches: u64,
    /// Involuntary context switches: the kernel took the CPU from a thread that could have run on.
    pub involuntary_switches: u64,
    /// Number of times that the kernel moved a thread to another CPU.
    pub cpu_migrations: CounterValue,
    /// Page faults without access to a disk.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// Bytes read from disks.
    pub disk_read_bytes: CounterValue,
    /// Bytes written to disks.
    pub disk_write_bytes: CounterValue,
    /// Time that threads waited for disks, in ms, summed over all threads.
    pub disk_wait_ms: CounterValue,
    /// CPU cycles of all threads.
    pub cycles: CounterValue,
    /// Instructions executed by all threads.
    pub instructions: CounterValue,
    /// Misses of the last-level cache.
    pub llc_misses: CounterValue,
    /// Loads that were served by the memory of another NUMA node.
    pub remote_loads: CounterValue,
    /// Resident memory in bytes by NUMA node, in the sample with the most resident memory.
    pub resident_bytes_by_node: BTreeMap<u32, u64>,
    /// Reason why the resident memory by node is missing; `None` if it was sampled.
    pub resident_missing: Option<String>,
}

/// Whether some counters must come from samples of the threads: CPU migrations if there is no perf event for them, and
/// time waited for disks if the kernel measures it.
fn needs_thread_samples(perf: &PerfEvents) -> bool {
    !perf.counts_thread_migrations() || explain_missing_disk_wait().is_none()
}

/// Note of counters that come from samples of the threads in `/proc`.
const SAMPLED_THREADS: &str = "from samples of /proc, which miss threads that ended between two samples";

impl ProcessCounters {
    fn new(usage: ResourceUsage, perf: PerfCounts, samples: ProcSamples) -> ProcessCounters {
        let disk = |bytes: u64| match fs::exists("/proc/self/io") {
            Ok(true) => CounterValue::with_exact_value(bytes),
            _ => CounterValue::missing_with_reason("the kernel does not account for disk access (no /proc/self/io)"),
        };
        let PerfCounts { cycles, instructions, llc_misses, remote_loads, cpu_migrations } = perf;
        ProcessCounters {
            user_cpu_s: usage.user_cpu_s,
            system_cpu_s: usage.system_cpu_s,
            max_resident_bytes: CounterValue::with_exact_value(usage.max_resident_bytes),
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            // Exact by perf events; otherwise what the samples saw.
            cpu_migrations: match (cpu_migrations.value, samples.num_thread_migrations()) {
                (None, Ok(sampled)) => CounterValue::with_lower_bound_and_reason(sampled, SAMPLED_THREADS),
                (None, Err(why)) => CounterValue::missing_with_reason(format!(
                    "{}; {why}",
                    cpu_migrations.note.as_deref().unwrap_or_default()
                )),
                (Some(_), _) => cpu_migrations,
            },
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            disk_read_bytes: disk(usage.disk_read_bytes),
            disk_write_bytes: disk(usage.disk_write_bytes),
            disk_wait_ms: match samples.disk_wait_ms() {
                Ok(waited) => CounterValue::with_lower_bound_and_reason(waited, SAMPLED_THREADS),
                Err(why) => CounterValue::missing_with_reason(why),
            },
            cycles,
            instructions,
            llc_misses,
            remote_loads,
            resident_missing: samples.resident.is_empty().then(|| samples.why_not_resident.clone()),
            resident_bytes_by_node: samples.resident,
        }
    }

    /// Replaces the resident memory by node by that of another sample, if that sample has more memory.
    pub fn keep_larger_resident_sample(&mut self, by_node: &BTreeMap<u32, u64>) {
        if by_node.values().sum::<u64>() > self.resident_bytes_by_node.values().sum::<u64>() {
            self.resident_bytes_by_node.clone_from(by_node);
            self.resident_missing = None;
        }
    }

    /// Adds the counters of a later process of the same instance: sums of counts and times, the larger of two peaks,
    /// and the resident memory by node of the process that had more of it.
    #[must_use]
    pub fn add_counters_of_later_process(self, later: ProcessCounters) -> ProcessCounters {
        let total = |by_node: &BTreeMap<u32, u64>| by_node.values().sum::<u64>();
        let (resident, missing_value) = match total(&self.resident_bytes_by_node) > total(&later.resident_bytes_by_node)
        {
            true => (self.resident_bytes_by_node, self.resident_missing),
            false => (later.resident_bytes_by_node, later.resident_missing),
        };
        let sum = |one: CounterValue, two: CounterValue| one.combine(two, |a, b| a + b);
        ProcessCounters {
            user_cpu_s: self.user_cpu_s + later.user_cpu_s,
            system_cpu_s: self.system_cpu_s + later.system_cpu_s,
            max_resident_bytes: self.max_resident_bytes.combine(later.max_resident_bytes, u64::max),
            voluntary_switches: self.voluntary_switches + later.voluntary_switches,
            involuntary_switches: self.involuntary_switches + later.involuntary_switches,
            cpu_migrations: sum(self.cpu_migrations, later.cpu_migrations),
            minor_faults: self.minor_faults + later.minor_faults,
            major_faults: self.major_faults + later.major_faults,
            disk_read_bytes: sum(self.disk_read_bytes, later.disk_read_bytes),
            disk_write_bytes: sum(self.disk_write_bytes, later.disk_write_bytes),
            disk_wait_ms: sum(self.disk_wait_ms, later.disk_wait_ms),
            cycles: sum(self.cycles, later.cycles),
            instructions: sum(self.instructions, later.instructions),
            llc_misses: sum(self.llc_misses, later.llc_misses),
            remote_loads: sum(self.remote_loads, later.remote_loads),
            resident_bytes_by_node: resident,
            resident_missing: missing_value,
        }
    }
}

/// Counters of the next process that this thread starts, and of its children.
#[derive(Debug)]
pub struct ChildCounters {
    perf: PerfEvents,
    /// Peak resident memory of this process before the child is started, in bytes. The kernel counts this peak for the
    /// child, too.
    own_peak_bytes: u64,
    sampler: Option<ProcSampler>,
}

impl ChildCounters {
    /// Prepares the counters. Call it before the child process is started. Counting begins when the child executes its
    /// program.
    pub fn for_next_child() -> ChildCounters {
        let perf = PerfEvents::open(CountedProcesses::NextChild);
        ChildCounters { perf, own_peak_bytes: measure_process_cost().peak_bytes, sampler: None }
    }

    /// Starts to sample `/proc` for the child and its children. `processes` returns their IDs.
    pub fn start_sampling(&mut self, processes: impl FnMut() -> Vec<u32> + Send + 'static) {
        self.sampler = Some(ProcSampler::start(Box::new(processes), needs_thread_samples(&self.perf)));
    }

    /// Returns the counters after the child has ended. `usage` is what wait4(2) reported for the child.
    pub fn finish(self, usage: ResourceUsage) -> ProcessCounters {
        let samples = self.sampler.map(ProcSampler::finish).unwrap_or_default();
        let (own, sampled) = (self.own_peak_bytes, samples.peak_bytes);
        let mut counters = ProcessCounters::new(usage, self.perf.read_and_close(), samples);
        if usage.max_resident_bytes <= own {
            let why = "less than genuma itself had when it started the process, so from samples of /proc";
            counters.max_resident_bytes = match sampled {
                Some(bytes) => CounterValue::with_lower_bound_and_reason(bytes, why),
                None => CounterValue::missing_with_reason(
                    "the process ended before the first sample, and had less memory than genuma",
                ),
            };
        }
        counters
    }
}

/// Counters of the process that runs this code.
#[derive(Debug)]
struct OwnCounters {
    perf: PerfEvents,
    sampler: ProcSampler,
}

impl OwnCounters {
    /// Starts the counters. Perf events count this thread and the threads that it and its threads start from now on;
    /// other counters count from the start of the process.
    fn start() -> OwnCounters {
        let own = std::process::id();
        let perf = PerfEvents::open(CountedProcesses::ThisProcess);
        let sampler = ProcSampler::start(Box::new(move || vec![own]), needs_thread_samples(&perf));
        OwnCounters { perf, sampler }
    }

    /// Returns the counts up to now.
    fn finish(self) -> ProcessCounters {
        let samples = self.sampler.finish();
        let usage =
            ResourceUsage { max_resident_bytes: measure_process_cost().peak_bytes, ..rusage::usage_of_this_process() };
        ProcessCounters::new(usage, self.perf.read_and_close(), samples)
    }
}

/// Counters of a run in this process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunCounters {
    /// Counters of this process.
    pub process: ProcessCounters,
    /// NUMA counters of the whole machine during the run.
    pub machine: NumaBalancingCounters,
}

/// Counts the resources that this process and the machine use during a run.
#[derive(Debug)]
pub struct RunCounterRecorder {
    own: OwnCounters,
    machine: VmstatSnapshot,
}

impl RunCounterRecorder {
    /// Starts the counters. Counters of the machine and perf events count from now on; the other counters of this
    /// process, such as CPU time, count from the start of the process.
    pub fn start() -> RunCounterRecorder {
        RunCounterRecorder { own: OwnCounters::start(), machine: VmstatSnapshot::read_vmstat() }
    }

    /// Returns the counts up to now.
    pub fn finish(self) -> RunCounters {
        RunCounters {
            process: self.own.finish(),
            machine: self.machine.numa_balancing_counts_until(&VmstatSnapshot::read_vmstat()),
        }
    }
}

#[cfg(test)]
mod tests;
