//! An application's numbers from measured runs of it on a machine.

mod simplex;

use crate::model::{Application, Machine, predict};
use crate::strategy::Strategy;

/// A measured run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Which of the workloads.
    pub(crate) workload: usize,
    /// What was chosen.
    pub strategy: Strategy,
    /// Threads of all instances together.
    pub threads: u32,
    /// Seconds that it took.
    pub seconds: f64,
}

/// What is known of a workload without running it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Bytes that a thread needs besides.
    pub(crate) private_bytes: u64,
    /// Reads of the run.
    pub reads: f64,
}

/// Where the search begins, and whither a number goes on which the runs say nothing.
const TYPICAL: Typical = Typical { handovers: 1.0, bytes_per_touch: 128.0, cpu: 200e-6, touches: 300.0 };
/// Standard deviation of the logarithms around the typical ones.
const WIDE: f64 = 1.5;
/// Standard deviation of the logarithm of measured to predicted seconds.
const RESIDUAL: f64 = 0.25;

struct Typical {
    handovers: f64,
    bytes_per_touch: f64,
    cpu: f64,
    touches: f64,
}

/// One application for each workload; all of them run the same program.
pub fn fit(machine: &Machine, workloads: &[Workload], runs: &[Observation]) -> Vec<Application> {
    let mut typical = vec![TYPICAL.handovers.ln(), TYPICAL.bytes_per_touch.ln()];
    for _ in workloads {
        typical.extend([TYPICAL.cpu.ln(), TYPICAL.touches.ln()]);
    }
    let cost = |numbers: &[f64]| {
        let apps = applications(workloads, numbers, 0.0);
        let away: f64 = numbers.iter().zip(&typical).map(|(n, t)| ((n - t) / WIDE).powi(2)).sum();
        let misses = runs.iter().filter_map(|run| miss(machine, &apps, run));
        misses.map(|miss| robust(miss / RESIDUAL)).sum::<f64>() + away
    };
    let mut best: Option<(f64, Vec<f64>)> = None;
    for start in starts(&typical) {
        let found = simplex::minimise(&cost, &start);
        if best.as_ref().is_none_or(|(least, _)| found.0 < *least) {
            best = Some(found);
        }
    }
    let numbers = best.map_or(typical.clone(), |(_, numbers)| numbers);
    let apps = applications(workloads, &numbers, 0.0);
    let misses: Vec<f64> = runs.iter().filter_map(|run| miss(machine, &apps, run)).collect();
    let freedom = misses.len().saturating_sub(numbers.len()).max(1) as f64;
    let spread = (misses.iter().map(|miss| miss * miss).sum::<f64>() / freedom).sqrt();
    applications(workloads, &numbers, spread)
}

fn starts(typical: &[f64]) -> Vec<Vec<f64>> {
    let far = 2.0;
    let mut all = vec![typical.to_vec()];
    for (lock, memory) in [(-far, far), (far, -far), (-far, -far)] {
        let mut start = typical.to_vec();
        start[0] += lock;
        for touches in start[2..].iter_mut().skip(1).step_by(2) {
            *touches += memory;
        }
        all.push(start);
    }
    all
}

fn applications(workloads: &[Workload], numbers: &[f64], spread: f64) -> Vec<Application> {
    let of = |(workload, own): (&Workload, &[f64])| Application {
        index_bytes: workload.index_bytes,
        private_bytes: workload.private_bytes,
        reads: workload.reads,
        cpu: own[0].exp(),
        touches: own[1].exp(),
        bytes_per_touch: numbers[1].exp(),
        handovers: numbers[0].exp(),
        spread,
    };
    workloads.iter().zip(numbers[2..].chunks(2)).map(of).collect()
}

fn miss(machine: &Machine, apps: &[Application], run: &Observation) -> Option<f64> {
    let predicted = predict(machine, &apps[run.workload], &run.strategy, run.threads).ok()?;
    Some((run.seconds / predicted.seconds).ln())
}

/// Square near nought, straight far from it: a run gone wrong does not decide.
fn robust(miss: f64) -> f64 {
    2.0 * ((1.0 + miss * miss).sqrt() - 1.0)
}

#[cfg(test)]
mod tests;
