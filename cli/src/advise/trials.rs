//! Strategies tried on a sample of the reads, by the machinery of `genuma run`.

use std::io::sink;
use std::sync::Arc;
use std::time::Instant;

use genuma_machine::Topology;
use genuma_reads::Meter;
use genuma_strategy::advisor::Trial;
use genuma_strategy::instance::Words;
use genuma_strategy::invocation::{Depends, Reads};
use genuma_strategy::merge::Program;
use genuma_strategy::model::{Application, Machine, Prediction};
use genuma_strategy::run::Plan;
use genuma_strategy::sample::Sample;
use genuma_strategy::{Invocation, Strategy, layout, replica};
use tracing::info;

use crate::aligner::plain;

/// Seconds that the plain run is to align the sample for.
const TRIAL_S: f64 = 2.0;
/// A sample that takes fewer seconds is too small, unless it is all there is.
const ENOUGH_S: f64 = 0.5;
/// How many times larger the next one is.
const LARGER: u64 = 4;
/// How many samples are taken at most.
const MOST_SAMPLES: u32 = 4;
/// Reads for each instance that a sample has at least, so that all of them are at work from its first quarter on: reads come
/// in pieces of 400,000 bases.
const FEWEST_READS: u64 = 32_000;
/// Blocks of the first quarter for each instance, where an aligner works in blocks.
const BLOCKS: u64 = 2;
/// The first quarter.
const PART: u64 = 4;
/// Bases (bp) of the smallest block.
const SMALLEST_BLOCK: u64 = 50_000;
/// What aligning is held to take of a sample's time at least, when loading hides it.
const LEAST_SHARE: f64 = 0.05;

/// Reads of a trial, and the seconds that it is expected to take: indexes are loaded twice.
pub(crate) fn expected(app: &Application, plain: Prediction, most: u32, machine: &Machine) -> (u64, f64) {
    let read_s = plain.seconds / app.reads;
    let reads = (TRIAL_S / read_s).max((FEWEST_READS * u64::from(most)) as f64).min(app.reads);
    let load_s = app.index_bytes as f64 / (machine.load_gbs * 1e9);
    (reads as u64, (1.0 + 1.0 / PART as f64) * reads * read_s + 2.0 * load_s)
}

/// What trials are to be like.
pub(crate) struct Wish {
    /// Reads of the run.
    pub(crate) reads: f64,
    /// Most instances of a strategy.
    pub(crate) most: u32,
    /// Share of the run that trials may take.
    pub(crate) budget: f64,
    /// Reads of the first sample.
    pub(crate) sample: u64,
}

/// Runs trials.
pub(crate) struct Trials<'a> {
    invocation: &'a Invocation,
    topology: &'a Topology,
    threads: usize,
    most: u32,
    /// Reads of the run.
    reads: f64,
    /// Share of the run that trials may take.
    budget: f64,
    sample: Sample,
    /// Whether the sample is known to be large enough.
    settled: bool,
}

impl<'a> Trials<'a> {
    /// Takes a sample.
    pub(crate) fn new(
        invocation: &'a Invocation,
        topology: &'a Topology,
        threads: usize,
        wish: &Wish,
    ) -> anyhow::Result<Self> {
        let &Wish { reads, most, budget, sample } = wish;
        let sample = Sample::take(&invocation.reads, &invocation.aligned, sample)?;
        Ok(Self { invocation, topology, threads, most, reads, budget, sample, settled: false })
    }

    /// Tries a strategy; the first time with larger and larger samples until one takes long enough, or the next would take
    /// more than the budget.
    pub(crate) fn run(&mut self, strategy: Strategy) -> anyhow::Result<Trial> {
        let mut spent_s = 0.0;
        let mut samples = 1;
        loop {
            let trial = self.once(strategy)?;
            spent_s += trial.spent_s;
            let aligning_s = trial.read_s * self.sample.reads as f64;
            let all = self.sample.total <= self.sample.reads as f64;
            let next_s = LARGER as f64 * trial.spent_s;
            let affordable = spent_s + next_s <= self.budget * trial.read_s * self.reads;
            if self.settled || all || aligning_s >= ENOUGH_S || samples == MOST_SAMPLES || !affordable {
                self.settled = true;
                info!("{strategy}: {} reads in {aligning_s:.2} s", self.sample.reads);
                return Ok(Trial { spent_s, ..trial });
            }
            self.sample =
                Sample::take(&self.invocation.reads, &self.invocation.aligned, self.sample.reads * LARGER)?;
            samples += 1;
        }
    }

    /// Aligns the first quarter and the whole of the sample: loading is in both, so the difference is aligning.
    fn once(&self, strategy: Strategy) -> anyhow::Result<Trial> {
        let start = Instant::now();
        let sample = &self.sample;
        let mut invocation = self.invocation.clone();
        shorten(&mut invocation.depends, self.threads, sample.bases / (PART * BLOCKS * u64::from(self.most)));
        let seats = layout::seats(&strategy, self.topology, self.threads)?;
        let prepared = replica::prepare(&invocation, strategy, &seats)?;
        let mut plan = Plan {
            strategy,
            why: "a trial".to_owned(),
            seats,
            invocations: prepared.invocations,
            threads: self.threads,
            plain: plain(&invocation, self.threads),
            genuma: Program {
                name: "genuma".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                line: String::new(),
            },
            words: Words::Logged,
        };
        let mut seconds = |reads: &Reads| {
            for invocation in &mut plan.invocations {
                invocation.reads = reads.clone();
            }
            anyhow::Ok(plan.run(Arc::new(Meter::default()), &mut sink())?.wall_s)
        };
        let (part_s, part_reads) = match sample.part_reads {
            0 => (0.0, 0),
            reads => (seconds(&sample.part)?, reads),
        };
        let whole_s = seconds(&sample.whole)?;
        let aligning_s = (whole_s - part_s).max(LEAST_SHARE * whole_s);
        let reads = sample.reads.saturating_sub(part_reads).max(1);
        Ok(Trial { read_s: aligning_s / reads as f64, spent_s: start.elapsed().as_secs_f64() })
    }
}

/// Makes blocks small enough for all instances to have some; the records, which may differ then, are thrown away.
fn shorten(depends: &mut Depends, threads: usize, most: u64) {
    let block = depends.block(threads);
    if let (Depends::Blocks { bases, per_thread, .. }, Some(block)) = (depends, block) {
        *bases = block.min(most.max(SMALLEST_BLOCK));
        *per_thread = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_get_shorter_never_longer() {
        let blocks = |bases, per_thread| Depends::Blocks {
            bases,
            per_thread,
            even: true,
            least_reads: 0,
            numbered: true,
        };
        for (mut depends, most, block) in [
            (blocks(10_000_000, true), 1_000_000, 1_000_000),
            (blocks(10_000_000, true), 10, SMALLEST_BLOCK),
            (blocks(1_000, false), 1_000_000, 1_000),
        ] {
            shorten(&mut depends, 4, most);
            assert_eq!(depends.block(64), Some(block));
        }
        let mut nothing = Depends::Nothing;
        shorten(&mut nothing, 4, 10);
        assert_eq!(nothing, Depends::Nothing);
    }
}
