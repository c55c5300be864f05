//! Samples counters of running processes from `/proc` in a thread.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::proc_files::{
    ThreadCounts, ThreadKey, add_resident_bytes_by_node, explain_missing_disk_wait, read_peak_resident_bytes,
    read_thread_counts,
};

/// Time until the first sample. Pauses double after each sample. With a higher value, short processes are not sampled.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Maximum pause between samples of the threads, unless a sample takes long. With a lower value, fewer short threads
/// are missed, for more CPU time (0.3 ms per sample with 100 processes on the machine).
const MAX_THREAD_PAUSE: Duration = Duration::from_secs(2);
/// Minimum ratio of the pause after a sample to the CPU time of the sample, so that all samples together take at most
/// 0.25 % of the time of one CPU, for threads and for memory each. With a higher value, there are fewer samples.
const PAUSE_PER_SAMPLE: u32 = 400;

/// Function that returns the IDs of the processes to sample.
type ProcessList = Box<dyn FnMut() -> Vec<u32> + Send>;

/// A thread that samples the threads and the memory of processes.
pub(super) struct ProcSampler {
    stop: mpsc::Sender<()>,
    thread: Result<JoinHandle<ProcSamples>, String>,
}

impl fmt::Debug for ProcSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcSampler").finish_non_exhaustive()
    }
}

/// Combined result of all samples.
#[derive(Debug, Clone)]
pub(super) struct ProcSamples {
    /// Last counts of each thread.
    threads: BTreeMap<ThreadKey, ThreadCounts>,
    /// Resident memory by node, bytes, in the sample with the most memory.
    pub(super) resident: BTreeMap<u32, u64>,
    /// Reason why no sample has the resident memory by node, if none has it.
    pub(super) why_not_resident: String,
    /// Peak resident memory of the largest process, bytes.
    pub(super) peak_bytes: Option<u64>,
}

impl Default for ProcSamples {
    fn default() -> ProcSamples {
        ProcSamples {
            threads: BTreeMap::new(),
            resident: BTreeMap::new(),
            why_not_resident: "the process ended before the first sample".to_owned(),
            peak_bytes: None,
        }
    }
}

fn thread_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn cpu_time_since(start: Duration) -> Duration {
    thread_cpu_time().saturating_sub(start)
}

impl ProcSampler {
    /// Starts sampling the memory of the processes that `processes` returns, and their threads if `needs_threads`.
    pub(super) fn start(mut processes: ProcessList, needs_threads: bool) -> ProcSampler {
        let (stop, stopped) = mpsc::channel();
        let sample = move || {
            let mut samples = ProcSamples::default();
            let (mut memory_pause, mut memory_due) = (FIRST_PAUSE, Instant::now() + FIRST_PAUSE);
            let mut pause = FIRST_PAUSE;
            loop {
                let wait = if needs_threads { pause } else { memory_due.saturating_duration_since(Instant::now()) };
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                let start = thread_cpu_time();
                let ids = processes();
                if needs_threads {
                    samples.add_threads(&ids);
                    pause = (pause * 2).min(MAX_THREAD_PAUSE).max(cpu_time_since(start) * PAUSE_PER_SAMPLE);
                }
                if Instant::now() >= memory_due {
                    let start = thread_cpu_time();
                    samples.add_memory(&ids);
                    memory_pause = (memory_pause * 2).max(cpu_time_since(start) * PAUSE_PER_SAMPLE);
                    memory_due = Instant::now() + memory_pause;
                }
            }
            // Processes that still run, such as this one.
            let ids = processes();
            if needs_threads {
                samples.add_threads(&ids);
            }
            samples.add_memory(&ids);
            samples
        };
        let thread = thread::Builder::new().name("counters".to_owned()).spawn(sample);
        ProcSampler { stop, thread: thread.map_err(|error| format!("the thread for samples cannot start: {error}")) }
    }

    /// Takes a last sample, ends the thread, and returns the combined result of all samples.
    pub(super) fn finish(self) -> ProcSamples {
        drop(self.stop);
        match self.thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(why) => ProcSamples { why_not_resident: why, ..ProcSamples::default() },
        }
    }
}

impl ProcSamples {
    fn add_threads(&mut self, processes: &[u32]) {
        for &process in processes {
            read_thread_counts(process, &mut self.threads);
        }
    }

    fn add_memory(&mut self, processes: &[u32]) {
        let mut by_node = BTreeMap::new();
        for &process in processes {
            self.peak_bytes = self.peak_bytes.max(read_peak_resident_bytes(process));
            match add_resident_bytes_by_node(process, &mut by_node) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    self.why_not_resident = format!("/proc/PID/numa_maps cannot be read: {error}");
                }
                Err(_) if !matches!(fs::exists("/proc/self/numa_maps"), Ok(true)) => {
                    self.why_not_resident = "the kernel has no /proc/PID/numa_maps".to_owned();
                }
                // A process that has ended has no file any more.
                Err(_) | Ok(()) => {}
            }
        }
        if by_node.values().sum::<u64>() > self.resident.values().sum::<u64>() {
            self.resident = by_node;
        }
    }

    /// Returns the number of moves of threads to another CPU in all samples. The error is the reason why it is missing.
    pub(super) fn num_thread_migrations(&self) -> Result<u64, String> {
        let seen: Vec<u64> = self.threads.values().filter_map(|thread| thread.migrations).collect();
        match (seen.is_empty(), self.threads.is_empty()) {
            (false, _) => Ok(seen.iter().sum()),
            (true, true) => Err("the process ended before the first sample of /proc".to_owned()),
            (true, false) => Err("/proc/PID/sched does not have them".to_owned()),
        }
    }

    /// Returns the time in ms that threads waited for disks in all samples. The error is the reason why it is missing.
    pub(super) fn disk_wait_ms(&self) -> Result<u64, String> {
        match explain_missing_disk_wait() {
            Some(why) => Err(why),
            None if self.threads.is_empty() => Err("the process ended before the first sample of /proc".to_owned()),
            None => Ok(self.threads.values().map(|thread| thread.disk_wait_ticks * 10).sum()),
        }
    }
}
