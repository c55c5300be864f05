//! Trials: short runs of an aligner on a sample of the reads under one strategy each, by the same code as `genuma run`.

use std::io::sink;
use std::sync::Arc;
use std::time::Instant;

use genuma_machine::Topology;
use genuma_reads::ProgressCounters;
use genuma_strategy::advisor::TrialResult;
use genuma_strategy::instance::StderrLogging;
use genuma_strategy::invocation::{ReadDependence, ReadFiles};
use genuma_strategy::merge::GenumaPgLine;
use genuma_strategy::model::{ApplicationModel, MachineModel, RunPrediction};
use genuma_strategy::read_sample::ReadSample;
use genuma_strategy::run::RunPlan;
use genuma_strategy::{Invocation, Strategy, cpu_layout, index_replicas};
use tracing::info;

use crate::external_aligner::plain_run_command;

/// Time in which the plain run is expected to align the first sample of reads (s); determines the size of this sample,
/// which has at least [`MIN_READS_PER_INSTANCE`] for each instance if the input has as many.
const TARGET_ALIGNING_S: f64 = 2.0;
/// Minimum time of aligning a sample (s). A trial that takes less is repeated with a larger sample, unless the sample
/// is the whole input or a limit on trials is reached. Empirical.
const MIN_ALIGNING_S: f64 = 0.5;
/// Factor by which the sample grows when aligning it took too little time.
const SAMPLE_GROWTH: u64 = 4;
/// Maximum number of samples, each larger than the one before, that one trial aligns.
const MAX_SAMPLES_PER_TRIAL: u32 = 4;
/// Minimum number of reads of a sample for each instance. Reads are distributed in chunks of 400,000 bases, so that
/// with this number all instances get reads of the first quarter of the sample.
const MIN_READS_PER_INSTANCE: u64 = 32_000;
/// Minimum number of blocks of reads (bwa mem: chunk, -K) for each instance in the first quarter of a sample, for
/// aligners whose records depend on the blocks.
const MIN_BLOCKS_PER_INSTANCE: u64 = 2;
/// A trial first aligns a part of the sample: the number of reads in the sample divided by this number.
const FIRST_PART_DIVISOR: u64 = 4;
/// Minimum size to which trials reduce the aligner's blocks of reads (bases).
const MIN_BLOCK_BASES: u64 = 50_000;
/// Minimum share of the time of a trial that is attributed to aligning, not to loading the index. It is a lower bound
/// of the estimate if nearly all time is spent on loading the index.
const MIN_ALIGNING_SHARE: f64 = 0.05;

/// Returns the number of reads of the first sample of the trials, and the expected time of a trial of the plain run
/// with this sample (s). The time includes loading the index twice, because a trial first aligns a quarter of the
/// sample and then all of it.
pub(crate) fn estimate_trial_reads_and_time(
    app: &ApplicationModel,
    plain: RunPrediction,
    max_instances: u32,
    machine: &MachineModel,
) -> (u64, f64) {
    let seconds_per_read = plain.seconds / app.reads;
    let reads = (TARGET_ALIGNING_S / seconds_per_read)
        .max((MIN_READS_PER_INSTANCE * u64::from(max_instances)) as f64)
        .min(app.reads);
    let load_s = app.index_bytes as f64 / (machine.load_gbs * 1e9);
    (reads as u64, (1.0 + 1.0 / FIRST_PART_DIVISOR as f64) * reads * seconds_per_read + 2.0 * load_s)
}

/// Sizes and time limits of trials.
pub(crate) struct TrialSettings {
    /// Estimated number of reads of the whole run.
    pub(crate) run_reads: f64,
    /// Maximum number of instances of the strategies to choose from.
    pub(crate) max_instances: u32,
    /// Maximum share of the time of the whole run that trials may take.
    pub(crate) time_share: f64,
    /// Number of reads of the first sample of the trials.
    pub(crate) sample_reads: u64,
}

/// Runs trials: aligns a sample of the reads under a given strategy and measures the time.
pub(crate) struct TrialRunner<'a> {
    invocation: &'a Invocation,
    topology: &'a Topology,
    threads: usize,
    max_instances: u32,
    /// Estimated number of reads of the whole run.
    run_reads: f64,
    /// Maximum share of the time of the whole run that trials may take.
    time_share: f64,
    sample: ReadSample,
    /// Whether an earlier trial has shown that the sample is large enough. Later trials then do not enlarge the sample.
    sample_is_large_enough: bool,
}

impl<'a> TrialRunner<'a> {
    /// Copies the first reads of the input to temporary files. These reads are the sample that trials align.
    pub(crate) fn copy_first_reads_for_trials(
        invocation: &'a Invocation,
        topology: &'a Topology,
        threads: usize,
        settings: &TrialSettings,
    ) -> anyhow::Result<Self> {
        let &TrialSettings { run_reads, max_instances, time_share, sample_reads: sample } = settings;
        let sample = ReadSample::copy_first_reads_to_files(&invocation.reads, &invocation.aligned, sample)?;
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

    /// Aligns the sample under one strategy and returns the measured time. The first call repeats this with larger
    /// samples until aligning takes at least [`MIN_ALIGNING_S`], the sample is the whole input,
    /// [`MAX_SAMPLES_PER_TRIAL`] samples were aligned, or a larger sample would exceed the share of the run's time that
    /// trials may take.
    pub(crate) fn run_trial(&mut self, strategy: Strategy) -> anyhow::Result<TrialResult> {
        let mut spent_s = 0.0;
        let mut samples = 1;
        loop {
            let trial = self.measure_strategy(strategy)?;
            spent_s += trial.spent_s;
            let aligning_s = trial.seconds_per_read * self.sample.reads as f64;
            let is_whole_input = self.sample.estimated_total_reads <= self.sample.reads as f64;
            let next_s = SAMPLE_GROWTH as f64 * trial.spent_s;
            let affordable = spent_s + next_s <= self.time_share * trial.seconds_per_read * self.run_reads;
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
            self.sample = ReadSample::copy_first_reads_to_files(
                &self.invocation.reads,
                &self.invocation.aligned,
                self.sample.reads * SAMPLE_GROWTH,
            )?;
            samples += 1;
        }
    }

    /// Aligns the first quarter of the sample, then the whole sample. Each of the two runs loads the index, so the
    /// difference of their times is the time of aligning three quarters of the sample. If the quarter is empty, only
    /// the whole sample is aligned.
    fn measure_strategy(&self, strategy: Strategy) -> anyhow::Result<TrialResult> {
        let start = Instant::now();
        let sample = &self.sample;
        let mut invocation = self.invocation.clone();
        limit_block_size(
            &mut invocation.depends,
            self.threads,
            sample.bases / (FIRST_PART_DIVISOR * MIN_BLOCKS_PER_INSTANCE * u64::from(self.max_instances)),
        );
        let cpu_slots = cpu_layout::assign_cpu_slots(&strategy, self.topology, self.threads)?;
        let prepared = index_replicas::replicate_index_if_mapped(&invocation, strategy, &cpu_slots)?;
        let mut plan = RunPlan {
            strategy,
            why: "a trial".to_owned(),
            cpu_slots,
            invocations: prepared.invocations,
            threads: self.threads,
            plain: plain_run_command(&invocation, self.threads),
            genuma: GenumaPgLine {
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
        Ok(TrialResult { seconds_per_read: aligning_s / reads as f64, spent_s: start.elapsed().as_secs_f64() })
    }
}

/// Limits the size of the aligner's blocks of reads (bwa mem: chunk, -K) to `max_block_bases`, but not to less than
/// [`MIN_BLOCK_BASES`], so that each instance gets some blocks. The records may then differ from those of the real run,
/// but trials discard them.
fn limit_block_size(depends: &mut ReadDependence, threads: usize, max_block_bases: u64) {
    let block = depends.min_block_bases(threads);
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
            limit_block_size(&mut depends, 4, most);
            assert_eq!(depends.min_block_bases(64), Some(block));
        }
        let mut nothing = ReadDependence::Nothing;
        limit_block_size(&mut nothing, 4, 10);
        assert_eq!(nothing, ReadDependence::Nothing);
    }
}
