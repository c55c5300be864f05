//! Runs the instances of an aligner: distributes reads on request and merges the records into the order of the reads.
//!
//! ```text
//!                           ┌ pipes ─ instance 1 ─ pipe ─ reader ┐
//! files ─ batch cutter ─ broker ─ pipes ─ instance 2 ─ pipe ─ reader ─ broker ─ merger ─ output
//!                           └ ...                                ┘
//! ```
//!
//! Each instance has one supervising thread, one thread per input pipe, and one for its standard error.

mod batch_broker;
mod placement_sampler;
mod read_feeder;
mod supervisor;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use genuma_reads::{ProgressCounters, ReadStream, RecordCounts, StreamLane, StreamOptions};
use genuma_work::cost::measure_process_cost;
use genuma_work::counters::{NumaBalancingCounters, ProcessCounters, RunCounterRecorder};
use serde::Serialize;

use crate::batching::{BatchCutter, TEXT_CHUNK_LIMITS, lanes_of_read_files};
use crate::cpu_layout::CpuSlot;
use crate::instance::{self, StderrLogging};
use crate::invocation::{Invocation, ReadDependence};
use crate::memory_pages::{HugePageUse, MemoryPages};
use crate::merge::{AlignerOutputError, GenumaPgLine};
use crate::page_placement::{BytesByNode, PagePlacement};
use crate::strategy::Strategy;
use crate::thread_placement::ThreadPlacement;

use batch_broker::{BatchBroker, MergerAction};
use supervisor::InstanceSupervisor;

/// Estimated bytes of a record per base of its read: two for bases and qualities, the rest for tags and positions.
const RECORD_BYTES_PER_BASE: u64 = 4;
/// Bytes of records that may wait for their turn to be written, however small the blocks are.
const MIN_WAITING_RECORD_BYTES: u64 = 256 << 20;

/// Number of blocks that an instance may have in addition to one per thread: one that it reads and one that it writes.
/// More blocks would leave other instances idle. An instance that has read all of its blocks and written no records may
/// get another one. Aligners without blocks may read any number of reads before they write records.
const EXTRA_BLOCKS: usize = 2;

/// Plan of a run: strategy, CPU slots and command lines.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// Number of instances and memory policy of the run.
    pub strategy: Strategy,
    /// Why the strategy was chosen.
    pub why: String,
    /// CPU slot of each instance.
    pub cpu_slots: Vec<CpuSlot>,
    /// Command line of each instance. They differ only in the path of the index.
    pub invocations: Vec<Invocation>,
    /// Threads of the plain run.
    pub threads: usize,
    /// Command line of the plain run, which the SAM header shows instead of that of an instance.
    pub plain: Vec<String>,
    /// The `@PG` line that genuma adds to the header.
    pub genuma: GenumaPgLine,
    /// Where the standard error of instances is logged.
    pub stderr_logging: StderrLogging,
    /// Whether to count the resources that the instances and genuma use.
    pub has_counters: bool,
}

/// Reads, time, CPU time and memory placement of a finished run.
#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    /// Number of reads that the instances aligned; a pair has two reads. `None` for a program that is not an aligner.
    pub reads: Option<u64>,
    /// Exit code of a program that is not an aligner; `None` for an aligner.
    pub exit_code: Option<i32>,
    /// Wall-clock time of the run, s.
    pub wall_s: f64,
    /// CPU time of the instances, s.
    pub instances_cpu_s: f64,
    /// CPU time of genuma itself, s.
    pub own_cpu_s: f64,
    /// One entry for each instance, in the order of their numbers; in a run by interval for each slot.
    pub instances: Vec<InstanceSummary>,
    /// The intervals of a run by interval; `None` for other runs.
    pub intervals: Option<IntervalCounts>,
    /// For each input file of aligned reads: its path and the counts of its records.
    pub aligned: Vec<(PathBuf, RecordCounts)>,
    /// Counters of genuma itself; `None` unless counters were requested.
    pub own_counters: Option<ProcessCounters>,
    /// NUMA balancing counters of the whole machine; `None` unless counters were requested.
    pub machine_counters: Option<NumaBalancingCounters>,
}

/// Number and balance of the intervals of a run by interval.
#[derive(Debug, Clone, Serialize)]
pub struct IntervalCounts {
    /// Number of intervals.
    pub num_intervals: usize,
    /// Number of instances that run at the same time.
    pub num_slots: usize,
    /// What the lengths of the intervals are balanced by: `reads` or `length`.
    pub balanced_by: &'static str,
    /// Bases that each instance processed on both sides of its interval.
    pub padding_bp: u64,
    /// Number of records in the output.
    pub num_records: u64,
    /// Time of the instance that took longest, s.
    pub longest_interval_s: f64,
    /// Share of the time of all slots in which they ran an instance.
    pub busy_share: f64,
}

/// CPUs, memory policy, batches and processes of one instance.
#[derive(Debug, Clone, Default, Serialize)]
pub struct InstanceSummary {
    /// CPUs on which the instance ran.
    pub cpus: String,
    /// Memory nodes of the CPUs of the instance.
    pub nodes: String,
    /// Number of threads that the instance was started with.
    pub threads: usize,
    /// Requested memory policy; `None` for the kernel's default.
    pub policy: Option<String>,
    /// Requested size of memory pages.
    pub requested_pages: MemoryPages,
    /// Memory in huge pages, in the sample with the most memory. `None` if no page size was requested, without a sample,
    /// and if the kernel does not report it.
    pub huge_pages: Option<HugePageUse>,
    /// Number of batches assigned to the instance. A batch that is assigned again after a process died counts again. In a
    /// run by interval the number of intervals.
    pub batches: u64,
    /// Number of processes started for the instance: more than one if some died.
    pub processes: u32,
    /// Placement of the instance's pages in the last sample. `None` without a sample, for example if the instance ended
    /// early or the kernel does not report the nodes of pages.
    pub pages: Option<PagePlacement>,
    /// Whether the index was on the requested nodes in the last sample. `None` if no policy was requested, without a
    /// sample, and for a program that is not an aligner.
    pub as_asked: Option<bool>,
    /// Placement of the instance's threads in the last sample. `None` without a sample, and for a program that is not
    /// an aligner.
    pub threads_found: Option<ThreadPlacement>,
    /// Counters of the processes of the instance; `None` unless counters were requested.
    pub counters: Option<ProcessCounters>,
}

/// Reason why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reads cannot be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// An instance cannot be started.
    #[error(transparent)]
    Start(#[from] instance::StartError),
    /// A process of an instance ended with an error or by a signal.
    #[error("{instance_name} {exit_reason}{}", format_last_lines(stderr_lines))]
    Died {
        /// Name of the instance.
        instance_name: String,
        /// How the process ended.
        exit_reason: String,
        /// Last lines of the standard error of the process.
        stderr_lines: Vec<String>,
    },
    /// The output of an instance is invalid.
    #[error("{instance_name}: {output_error}{}", format_last_lines(stderr_lines))]
    Output {
        /// Name of the instance.
        instance_name: String,
        /// Error in the output of the instance.
        output_error: AlignerOutputError,
        /// Last lines of the standard error of the process.
        stderr_lines: Vec<String>,
    },
    /// The strategy has several instances, but the aligner allows only one.
    #[error(
        "{strategy}: {aligner} aligns each read depending on the reads before it, so only one instance is possible: use --strategy default"
    )]
    OnlyOneInstancePossible {
        /// Name of the aligner.
        aligner: String,
        /// The strategy that the user chose with `--strategy`.
        strategy: Strategy,
    },
    /// The operating system reported an error.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed.
        what: String,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Write(io::Error),
}

fn format_last_lines(stderr_lines: &[String]) -> String {
    match stderr_lines {
        [] => "; it wrote no error output".to_owned(),
        _ => format!("; its last error output: {}", stderr_lines.join(" | ")),
    }
}

impl RunPlan {
    /// Checks that the aligner can run in as many instances as the strategy has.
    ///
    /// # Errors
    /// The strategy has several instances and each read's result depends on the reads before it.
    pub fn check_aligner_allows_several_instances(invocation: &Invocation, strategy: Strategy) -> Result<(), Error> {
        match (invocation.depends, strategy.instances) {
            (ReadDependence::AllEarlierReads, 2..) => {
                Err(Error::OnlyOneInstancePossible { aligner: invocation.aligner.clone(), strategy })
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of threads of the plain command line, 1 if it has none.
    fn plain_threads(&self, invocation: &Invocation) -> usize {
        let chosen = invocation.given.iter().any(|word| word.to_string_lossy().contains("{threads}"));
        invocation.threads.unwrap_or(if chosen { self.threads } else { 1 })
    }

    /// Runs all instances and writes the merged output. `meter` counts the reads for the display of progress.
    ///
    /// # Errors
    /// The reads cannot be read, an instance cannot be started, failed before its first record, died twice over the
    /// same reads (once, if results depend on all earlier reads) or wrote invalid output, or the output cannot be
    /// written. All instances have ended when an error is returned.
    ///
    /// # Panics
    /// The plan has no CPU slot, or not one command line per slot.
    pub fn run_instances(&self, meter: Arc<ProgressCounters>, out: &mut dyn Write) -> Result<RunSummary, Error> {
        assert!(
            !self.cpu_slots.is_empty() && self.cpu_slots.len() == self.invocations.len(),
            "one instance for each CPU slot"
        );
        let start = Instant::now();
        let before = measure_process_cost();
        let counters = self.has_counters.then(RunCounterRecorder::start);
        let invocation = &self.invocations[0];
        let inflaters = (self.threads / 8).clamp(1, 8);
        let options = StreamOptions {
            inflate_threads: inflaters,
            uses_whole_header_as_name: true,
            accepts_unusual_fastq: true,
            progress: meter,
            batches_ahead: 4,
            ..StreamOptions::new(TEXT_CHUNK_LIMITS)
        };
        let lanes = lanes_of_read_files(&invocation.reads, &invocation.aligned)?;
        let mut stream = ReadStream::open(&lanes, options)?;
        let block = invocation.depends.min_block_bases(self.threads);
        let instances = self.cpu_slots.len();
        let ahead = if block.is_some() { 1 } else { instances + 2 };
        let room = MIN_WAITING_RECORD_BYTES
            .max(block.unwrap_or(0).saturating_mul(2 * RECORD_BYTES_PER_BASE * instances as u64));
        let max_unfinished = |cpu_slot: &CpuSlot| block.map_or(usize::MAX, |_| cpu_slot.threads + EXTRA_BLOCKS);
        let broker = BatchBroker::new(ahead, room as usize, self.cpu_slots.iter().map(max_unfinished).collect());
        let mut dealer = BatchCutter::for_invocation(invocation, &lanes, self.threads);

        let (reads, written, instances) = thread::scope(|scope| {
            let keepers: Vec<_> = (0..instances)
                .map(|instance_index| {
                    let keeper = InstanceSupervisor { plan: self, broker: &broker, instance_index, block };
                    scope.spawn(move || keeper.supervise_instance())
                })
                .collect();
            let broker = &broker;
            let dealing = scope.spawn(move || {
                let _dealt = FinishOnDrop(broker);
                let fail = |error| broker.fail_run(Error::Reads(error));
                dealer.cut_batches(&mut stream, |batch| broker.add_batch(batch), fail)
            });
            let written = write_output(broker, out);
            if written.is_err() {
                broker.stop_run();
            }
            let instances = keepers.into_iter().map(join_thread).collect();
            (join_thread(dealing), written, instances)
        });
        if let Some(error) = broker.take_run_error() {
            return Err(error);
        }
        written.map_err(Error::Write)?;
        let cost = measure_process_cost();
        let (own_counters, machine_counters) = stop_resource_counters(counters);
        Ok(RunSummary {
            reads: Some(reads),
            exit_code: None,
            wall_s: start.elapsed().as_secs_f64(),
            instances_cpu_s: cost.children_cpu_s - before.children_cpu_s,
            own_cpu_s: cost.cpu_s - before.cpu_s,
            instances,
            intervals: None,
            aligned: record_counts_of_lanes(lanes),
            own_counters,
            machine_counters,
        })
    }
}

/// Stops the counters. Returns the resources that genuma itself used, and the counters of the machine.
pub(crate) fn stop_resource_counters(
    counting: Option<RunCounterRecorder>,
) -> (Option<ProcessCounters>, Option<NumaBalancingCounters>) {
    counting.map(RunCounterRecorder::finish).map(|counters| (counters.process, counters.machine)).unzip()
}

/// Returns the files of aligned reads with the counts of their records.
fn record_counts_of_lanes(lanes: Vec<StreamLane>) -> Vec<(PathBuf, RecordCounts)> {
    let aligned = lanes.into_iter().filter_map(StreamLane::into_aligned_input);
    aligned.filter_map(|aligned| Some((aligned.path.clone(), aligned.record_counts()?.clone()))).collect()
}

pub(crate) fn join_thread<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Marks the end of the batches on drop, also after a panic.
struct FinishOnDrop<'a>(&'a BatchBroker);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.mark_all_batches_added();
    }
}

/// Writes the merged output of the instances.
fn write_output(broker: &BatchBroker, out: &mut dyn Write) -> io::Result<()> {
    let mut header = false;
    loop {
        match broker.wait_for_merger_action(header) {
            MergerAction::Header(text) => {
                out.write_all(&text)?;
                header = true;
            }
            MergerAction::Records(pieces) => pieces.iter().try_for_each(|piece| out.write_all(piece))?,
            MergerAction::End => return out.flush(),
        }
    }
}

impl RunSummary {
    /// Returns the number of reads that were aligned per second of wall-clock time; `None` for a program that is not an
    /// aligner.
    pub fn reads_per_s(&self) -> Option<f64> {
        Some(self.reads? as f64 / self.wall_s.max(1e-3))
    }

    /// Returns the bytes by node of the indexes of all instances together. Instances whose pages were not sampled are
    /// left out.
    pub fn index_bytes_by_node(&self) -> BytesByNode {
        let mut sum = BTreeMap::new();
        for pages in self.instances.iter().filter_map(|instance| instance.pages.as_ref()) {
            for (&node, &bytes) in &pages.index {
                *sum.entry(node).or_default() += bytes;
            }
        }
        sum
    }
}
