//! Runs a variant caller on intervals of the reference, one instance for each interval, and merges the records in the order
//! of the reference.
//!
//! ```text
//! intervals ─ queue ─ slot 1: instance ─ output ┐
//!                └─── slot 2: instance ─ output ┴ merger ─ VCF
//! ```
//!
//! A slot is a [`CpuSlot`] with one thread of genuma, which runs one instance after another. An instance writes a file in
//! the folder of the run.

mod callers;
mod input_files;
mod intervals;
mod mutect_stats;
mod read_index;
mod vcf_merge;

pub use callers::{CallerCommand, CallerCommandError};
pub use input_files::{CallerInput, InputError, WeightSource};
pub use intervals::{Contig, INTERVALS_PER_SLOT, Interval, MIN_INTERVAL_BP, Region, divide_regions};
pub use mutect_stats::{MutectStats, StatsError};
pub use vcf_merge::VcfError;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use genuma_machine::placement::MemoryPolicy;
use genuma_work::cost::measure_process_cost;
use genuma_work::counters::RunCounterRecorder;

use crate::cpu_layout::CpuSlot;
use crate::instance::{Instance, ProcessStreams, StderrLogging, format_failure, is_shutting_down};
use crate::page_placement::PagePlacement;
use crate::run::{self, InstanceSummary, IntervalCounts, RunSummary, join_thread, stop_resource_counters};

use callers::PlaceholderValues;
use intervals::format_region;
use vcf_merge::VcfMerger;

/// Default padding of an interval, bp: longer than reads and the windows in which callers assemble or align haplotypes.
pub const DEFAULT_PADDING_BP: u64 = 1000;

const VCF_BUFFER_BYTES: usize = 1 << 18;

/// Reason why a run by interval failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An instance failed, or the system.
    #[error(transparent)]
    Run(#[from] run::Error),
    /// The output of an instance cannot be merged.
    #[error("{instance_name}: {error}")]
    Vcf {
        /// Name of the instance.
        instance_name: String,
        /// What is wrong with its output.
        error: VcfError,
    },
    /// The `.stats` file of an instance of Mutect2 cannot be merged.
    #[error("{instance_name}: {error}")]
    Stats {
        /// Name of the instance.
        instance_name: String,
        /// What is wrong with the file.
        error: StatsError,
    },
}

/// Plan of a run by interval.
#[derive(Debug, Clone)]
pub struct IntervalRun<'a> {
    /// Command line of the caller.
    pub caller: &'a CallerCommand,
    /// Contigs of the reference.
    pub contigs: &'a [Contig],
    /// The intervals, in the order of the reference.
    pub intervals: &'a [Interval],
    /// What the balance of the intervals is based on.
    pub weight_source: WeightSource,
    /// Bases that an instance processes on both sides of its regions.
    pub padding_bp: u64,
    /// The slots; each runs one instance at a time.
    pub cpu_slots: &'a [CpuSlot],
    /// Existing folder for the files of the instances.
    pub folder: &'a Path,
    /// Lines that genuma adds to the header of the VCF.
    pub added_header: String,
    /// Where the standard error of instances is logged.
    pub stderr_logging: StderrLogging,
    /// Whether to count the resources that the instances and genuma use.
    pub has_counters: bool,
}

/// Intervals that are not started, outputs that are not merged, and running instances.
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    next_interval: usize,
    /// VCF of each finished instance.
    outputs: BTreeMap<usize, PathBuf>,
    /// Process of each slot that runs an instance.
    processes: BTreeMap<usize, u32>,
    error: Option<Error>,
    is_stopped: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next interval; `None` after the last one, and if the run has been stopped.
    fn take_interval(&self, num_intervals: usize) -> Option<usize> {
        let mut state = self.lock();
        if state.is_stopped || state.next_interval == num_intervals {
            return None;
        }
        state.next_interval += 1;
        Some(state.next_interval - 1)
    }

    /// Registers the process of a slot, and kills it if the run has been stopped.
    fn register_process(&self, slot: usize, process: u32) {
        let mut state = self.lock();
        state.processes.insert(slot, process);
        if state.is_stopped {
            Instance::kill_instance(process);
        }
    }

    fn finish_interval(&self, interval: usize, vcf: PathBuf) {
        self.lock().outputs.insert(interval, vcf);
        self.changed.notify_all();
    }

    /// Stops the run: kills all instances and starts no more. The first error is kept.
    fn stop(&self, error: Option<Error>) {
        let mut state = self.lock();
        if !state.is_stopped {
            state.is_stopped = true;
            state.error = error;
        }
        state.processes.values().copied().for_each(Instance::kill_instance);
        self.changed.notify_all();
    }

    /// Waits for the output of an interval; `None` if the run has been stopped.
    fn wait_for_output(&self, interval: usize) -> Option<PathBuf> {
        let mut state = self.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(vcf) = state.outputs.remove(&interval) {
                return Some(vcf);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Stops the run when a thread panics, so that no other thread waits for it.
struct StopOnPanic<'a>(&'a Queue);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop(None);
        }
    }
}

/// What a slot did.
struct SlotResult {
    summary: InstanceSummary,
    busy_s: f64,
    longest_s: f64,
}

impl IntervalRun<'_> {
    /// Runs all instances and writes the merged VCF. Returns what the run did, and the merged `.stats` files of Mutect2 if
    /// the instances wrote them.
    ///
    /// # Errors
    /// An instance cannot be started, failed, or wrote output that cannot be merged; or the output cannot be written. All
    /// instances have ended when an error is returned.
    ///
    /// # Panics
    /// A thread panicked.
    pub fn run_instances(&self, out: &mut dyn Write) -> Result<(RunSummary, Option<MutectStats>), Error> {
        let (start, before) = (Instant::now(), measure_process_cost());
        let counters = self.has_counters.then(RunCounterRecorder::start);
        let queue = &Queue { state: Mutex::default(), changed: Condvar::new() };
        let mut merger = VcfMerger::new(out, self.contigs, self.added_header.clone());
        let (merged, slots) = thread::scope(|scope| {
            let run_slot = |slot| move || self.run_slot(queue, slot);
            let slots: Vec<_> = (0..self.cpu_slots.len()).map(|slot| scope.spawn(run_slot(slot))).collect();
            let merged = self.merge_outputs(queue, &mut merger);
            queue.stop(None);
            (merged, slots.into_iter().map(join_thread).collect::<Vec<_>>())
        });
        let num_records = merger.num_records;
        if let Some(error) = queue.lock().error.take() {
            return Err(error);
        }
        let mutect_stats = merged?;
        out.flush().map_err(run::Error::Write)?;
        let (cost, wall_s) = (measure_process_cost(), start.elapsed().as_secs_f64());
        let (own_counters, machine_counters) = stop_resource_counters(counters);
        let busy_s: f64 = slots.iter().map(|slot| slot.busy_s).sum();
        let summary = RunSummary {
            reads: None,
            exit_code: None,
            wall_s,
            instances_cpu_s: cost.children_cpu_s - before.children_cpu_s,
            own_cpu_s: cost.cpu_s - before.cpu_s,
            intervals: Some(IntervalCounts {
                num_intervals: self.intervals.len(),
                num_slots: self.cpu_slots.len(),
                balanced_by: self.weight_source.name(),
                padding_bp: self.padding_bp,
                num_records,
                longest_interval_s: slots.iter().map(|slot| slot.longest_s).fold(0.0, f64::max),
                busy_share: busy_s / (wall_s * slots.len().max(1) as f64).max(1e-9),
            }),
            instances: slots.into_iter().map(|slot| slot.summary).collect(),
            aligned: Vec::new(),
            own_counters,
            machine_counters,
        };
        Ok((summary, mutect_stats))
    }

    /// Merges the outputs in the order of the intervals. Ends early, without an error, if the run has been stopped. Returns
    /// the merged `.stats` files of Mutect2.
    fn merge_outputs(&self, queue: &Queue, merger: &mut VcfMerger) -> Result<Option<MutectStats>, Error> {
        let mut mutect_stats = None;
        for (index, interval) in self.intervals.iter().enumerate() {
            let Some(path) = queue.wait_for_output(index) else { return Ok(None) };
            let appended = File::open(&path)
                .map_err(VcfError::Read)
                .and_then(|vcf| merger.append_interval(BufReader::with_capacity(VCF_BUFFER_BYTES, vcf), interval));
            match appended {
                Ok(()) => {}
                Err(VcfError::Write(error)) => return Err(run::Error::Write(error).into()),
                Err(error) => return Err(Error::Vcf { instance_name: self.instance_name(index), error }),
            }
            let stats = format!("{}.stats", path.display());
            MutectStats::add_file(&mut mutect_stats, stats.as_ref(), interval, self.padding_bp, self.contigs)
                .map_err(|error| Error::Stats { instance_name: self.instance_name(index), error })?;
            // What is left is removed with the folder.
            let _ = fs::remove_file(path);
        }
        Ok(mutect_stats)
    }

    fn instance_name(&self, interval: usize) -> String {
        let name = self.intervals[interval].display_name(self.contigs);
        format!("interval {} of {}, {name} ({})", interval + 1, self.intervals.len(), self.caller.name)
    }

    /// Runs one instance after another in a slot.
    fn run_slot(&self, queue: &Queue, slot: usize) -> SlotResult {
        let _stop = StopOnPanic(queue);
        let cpu_slot = &self.cpu_slots[slot];
        let summary = InstanceSummary {
            cpus: cpu_slot.cpus.to_string(),
            nodes: cpu_slot.nodes.to_string(),
            threads: cpu_slot.threads,
            policy: cpu_slot.policy.as_ref().map(MemoryPolicy::to_string),
            requested_pages: cpu_slot.pages,
            ..InstanceSummary::default()
        };
        let mut done = SlotResult { summary, busy_s: 0.0, longest_s: 0.0 };
        while let Some(interval) = queue.take_interval(self.intervals.len()) {
            let start = Instant::now();
            match self.run_instance(queue, slot, interval, &mut done.summary) {
                Ok(vcf) => queue.finish_interval(interval, vcf),
                // The signal thread ends the process.
                Err(_) if is_shutting_down() => break,
                Err(error) => {
                    queue.stop(Some(error.into()));
                    break;
                }
            }
            let wall_s = start.elapsed().as_secs_f64();
            tracing::debug!("{} ended after {wall_s:.1} s", self.instance_name(interval));
            done.busy_s += wall_s;
            done.longest_s = done.longest_s.max(wall_s);
        }
        if let Some(counters) = &done.summary.counters {
            let all = counters.resident_bytes_by_node.clone();
            done.summary.pages = (!all.is_empty()).then(|| PagePlacement { all, ..PagePlacement::default() });
        }
        done
    }

    /// Runs the instance of an interval to its end. Returns the file of its VCF.
    fn run_instance(
        &self,
        queue: &Queue,
        slot: usize,
        interval: usize,
        summary: &mut InstanceSummary,
    ) -> Result<PathBuf, run::Error> {
        let system = |what: &str| {
            let what = format!("{}: {what}", self.folder.display());
            move |source| run::Error::System { what, source }
        };
        let [bed, vcf] = ["bed", "vcf"].map(|end| self.folder.join(format!("{}.{end}", interval + 1)));
        let padded = self.intervals[interval].padded_regions(self.padding_bp, self.contigs);
        fs::write(&bed, self.format_bed(&padded)).map_err(system("a BED file"))?;
        let name = padded.first().map(|region| format_region(region, self.contigs)).unwrap_or_default();
        let cpu_slot = &self.cpu_slots[slot];
        let values = PlaceholderValues { interval: &name, bed: &bed, vcf: &vcf, threads: cpu_slot.threads };
        let words = self.caller.build_instance_command(&values);
        let stdout = match self.caller.writes_file() {
            true => Stdio::null(),
            false => Stdio::from(File::create(&vcf).map_err(system("a VCF file"))?),
        };
        let streams = ProcessStreams::without_input(stdout);
        let mut instance = streams.start_process(words, cpu_slot, self.has_counters)?;
        queue.register_process(slot, instance.process_id());
        instance.start_resource_sampling();
        summary.batches += 1;
        summary.processes += 1;
        let ended = self.wait_for_instance(&mut instance, interval);
        // The process is reaped, so its number may belong to another one.
        queue.lock().processes.remove(&slot);
        if let Some(later) = instance.take_counters() {
            summary.counters = Some(match summary.counters.take() {
                Some(before) => before.add_counters_of_later_process(later),
                None => later,
            });
        }
        summary.huge_pages = instance.take_huge_page_use().or(summary.huge_pages);
        ended?;
        // What is left is removed with the folder.
        let _ = fs::remove_file(bed);
        Ok(vcf)
    }

    /// Logs the standard error of an instance until it ends.
    fn wait_for_instance(&self, instance: &mut Instance, interval: usize) -> Result<(), run::Error> {
        let (name, stderr) = (self.instance_name(interval), instance.stderr.take());
        let (status, stderr_lines): (io::Result<_>, Vec<String>) = thread::scope(|scope| {
            let name = &name;
            let heard = stderr.map(|stderr| scope.spawn(move || self.stderr_logging.log_stderr_lines(name, stderr)));
            (instance.wait_for_exit(), heard.map(join_thread).unwrap_or_default())
        });
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                Err(run::Error::Died { instance_name: name, exit_reason: format_failure(status), stderr_lines })
            }
            Err(source) => Err(run::Error::System { what: format!("waiting for {name}"), source }),
        }
    }

    fn format_bed(&self, regions: &[Region]) -> String {
        let line =
            |region: &Region| format!("{}\t{}\t{}\n", self.contigs[region.contig].name, region.start, region.end);
        regions.iter().map(line).collect()
    }
}
