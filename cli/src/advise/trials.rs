//! Trial runs of strategies on a sample of the reads, by the same code as `genuma run`.

use std::io::sink;
use std::sync::Arc;
use std::time::Instant;

use genuma_machine::Topology;
use genuma_reads::ProgressCounters;
use genuma_strategy::advisor::TrialResult;
use genuma_strategy::instance::StderrLogging;
use genuma_strategy::invocation::{ReadDependence, ReadFiles};
use genuma_strategy::merge::HeaderProgram;
use genuma_strategy::model::{ApplicationModel, MachineModel, RunPrediction};
use genuma_strategy::read_sample::ReadSample;
use genuma_strategy::run::RunPlan;
use genuma_strategy::{Invocation, Strategy, cpu_layout, index_replicas};
use tracing::info;

use crate::external_aligner::plain_run_command;

/// Time that the plain run should take to align the first sample (s).
const TARGET_ALIGNING_S: f64 = 2.0;
/// Minimum time that a sample must take to align (s): a shorter trial is repeated with a larger sample, unless the
/// sample is the whole input. Empirical.
const MIN_ALIGNING_S: f64 = 0.5;
/// Factor by which the sample grows when a trial was too short.
const SAMPLE_GROWTH: u64 = 4;
/// Maximum number of samples that one trial tries.
const MAX_SAMPLES_PER_TRIAL: u32 = 4;
/// Minimum reads of a sample for each instance, so that all instances work from the first quarter of the sample on:
/// reads are dealt out in chunks of 400,000 bases.
const MIN_READS_PER_INSTANCE: u64 = 32_000;
/// Minimum number of blocks per instance in the first quarter of a sample, for aligners that process reads in blocks.
const MIN_BLOCKS_PER_INSTANCE: u64 = 2;
/// Divisor of a sample's number of reads that gives the number of reads in its first part: one quarter of the sample.
const FIRST_PART_DIVISOR: u64 = 4;
/// Minimum size of a block of reads (bases).
const MIN_BLOCK_BASES: u64 = 50_000;
/// Minimum share of a sample's time that counts as aligning. It limits the estimate when most of the time is spent on
/// loading the index.
const MIN_ALIGNING_SHARE: f64 = 0.05;

/// Number of reads of a trial, and the expected time of the trial (s). Each trial loads the index twice.
pub(crate) fn trial_size_and_time(
    app: &ApplicationModel,
    plain: RunPrediction,
    max_instances: u32,
    machine: &MachineModel,
) -> (u64, f64) {
    let read_s = plain.seconds / app.reads;
    let reads =
        (TARGET_ALIGNING_S / read_s).max((MIN_READS_PER_INSTANCE * u64::from(max_instances)) as f64).min(app.reads);
    let load_s = app.index_bytes as f64 / (machine.load_gbs * 1e9);
    (reads as u64, (1.0 + 1.0 / FIRST_PART_DIVISOR as f64) * reads * read_s + 2.0 * load_s)
}

/// How many reads the trials align, and how much time they may take.
pub(crate) struct TrialSettings {
    /// Number of reads of the whole run.
    pub(crate) run_reads: f64,
    /// Maximum number of instances of any strategy.
    pub(crate) max_instances: u32,
    /// Share of the run's time that trials may take.
    pub(crate) time_share: f64,
    /// Number of reads of the first sample.
    pub(crate) sample_reads: u64,
}

/// Runs the aligner under strategies on a sample of the reads.
pub(crate) struct TrialRunner<'a> {
    invocation: &'a Invocation,
    topology: &'a Topology,
    threads: usize,
    max_instances: u32,
    /// Number of reads of the whole run.
    run_reads: f64,
    /// Share of the run's time that trials may take.
    time_share: f64,
    sample: ReadSample,
    /// Whether the sample is known to be large enough, so that later trials do not enlarge it.
    sample_is_large_enough: bool,
}

impl<'a> TrialRunner<'a> {
    /// Prepares the trials: copies the first reads to temporary files.
    pub(crate) fn prepare(
        invocation: &'a Invocation,
        topology: &'a Topology,
        threads: usize,
        settings: &TrialSettings,
    ) -> anyhow::Result<Self> {
        let &TrialSettings { run_reads, max_instances, time_share, sample_reads: sample } = settings;
        let sample = ReadSample::take_first_reads(&invocation.reads, &invocation.aligned, sample)?;
        Ok(Self {
            invocation,
            topology,
            threads,
            max_instances,
            run_reads,
            time_share,
            sample,
            sample_is_large_enough: false,
        })
    }

    /// Runs one strategy. The first call enlarges the sample until the trial takes long enough, or until the next
    /// sample would exceed the time budget.
    pub(crate) fn run_trial(&mut self, strategy: Strategy) -> anyhow::Result<TrialResult> {
        let mut spent_s = 0.0;
        let mut samples = 1;
        loop {
            let trial = self.run_once(strategy)?;
            spent_s += trial.spent_s;
            let aligning_s = trial.read_s * self.sample.reads as f64;
            let is_whole_input = self.sample.estimated_total_reads <= self.sample.reads as f64;
            let next_s = SAMPLE_GROWTH as f64 * trial.spent_s;
            let affordable = spent_s + next_s <= self.time_share * trial.read_s * self.run_reads;
            if self.sample_is_large_enough
                || is_whole_input
                || aligning_s >= MIN_ALIGNING_S
                || samples == MAX_SAMPLES_PER_TRIAL
                || !affordable
            {
                self.sample_is_large_enough = true;
                info!("{strategy}: {} reads in {aligning_s:.2} s", self.sample.reads);
                return Ok(TrialResult { spent_s, ..trial });
            }
            self.sample = ReadSample::take_first_reads(
                &self.invocation.reads,
                &self.invocation.aligned,
                self.sample.reads * SAMPLE_GROWTH,
            )?;
            samples += 1;
        }
    }

    /// Aligns the first quarter of the sample and then the whole sample. Both include loading the index, so the
    /// difference is the time of aligning.
    fn run_once(&self, strategy: Strategy) -> anyhow::Result<TrialResult> {
        let start = Instant::now();
        let sample = &self.sample;
        let mut invocation = self.invocation.clone();
        shorten_blocks(
            &mut invocation.depends,
            self.threads,
            sample.bases / (FIRST_PART_DIVISOR * MIN_BLOCKS_PER_INSTANCE * u64::from(self.max_instances)),
        );
        let cpu_slots = cpu_layout::assign_cpu_slots(&strategy, self.topology, self.threads)?;
        let prepared = index_replicas::prepare_index(&invocation, strategy, &cpu_slots)?;
        let mut plan = RunPlan {
            strategy,
            why: "a trial".to_owned(),
            cpu_slots,
            invocations: prepared.invocations,
            threads: self.threads,
            plain: plain_run_command(&invocation, self.threads),
            genuma: HeaderProgram {
                name: "genuma".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                line: String::new(),
            },
            stderr_logging: StderrLogging::Debug,
            has_counters: false,
        };
        let mut seconds = |reads: &ReadFiles| {
            for invocation in &mut plan.invocations {
                invocation.reads = reads.clone();
            }
            anyhow::Ok(plan.run_instances(Arc::new(ProgressCounters::default()), &mut sink())?.wall_s)
        };
        let (part_s, part_reads) = match sample.part_reads {
            0 => (0.0, 0),
            reads => (seconds(&sample.part)?, reads),
        };
        let whole_s = seconds(&sample.whole)?;
        let aligning_s = (whole_s - part_s).max(MIN_ALIGNING_SHARE * whole_s);
        let reads = sample.reads.saturating_sub(part_reads).max(1);
        Ok(TrialResult { read_s: aligning_s / reads as f64, spent_s: start.elapsed().as_secs_f64() })
    }
}

/// Makes the aligner's blocks of reads small enough for all instances to get some. The records may then differ, but
/// they are discarded.
fn shorten_blocks(depends: &mut ReadDependence, threads: usize, max_block_bases: u64) {
    let block = depends.block_bases(threads);
    if let (ReadDependence::Blocks { bases, per_thread, .. }, Some(block)) = (depends, block) {
        *bases = block.min(max_block_bases.max(MIN_BLOCK_BASES));
        *per_thread = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_get_shorter_never_longer() {
        let blocks =
            |bases, per_thread| ReadDependence::Blocks { bases, per_thread, even: true, min_reads: 0, numbered: true };
        for (mut depends, most, block) in [
            (blocks(10_000_000, true), 1_000_000, 1_000_000),
            (blocks(10_000_000, true), 10, MIN_BLOCK_BASES),
            (blocks(1_000, false), 1_000_000, 1_000),
        ] {
            shorten_blocks(&mut depends, 4, most);
            assert_eq!(depends.block_bases(64), Some(block));
        }
        let mut nothing = ReadDependence::Nothing;
        shorten_blocks(&mut nothing, 4, 10);
        assert_eq!(nothing, ReadDependence::Nothing);
    }
}
