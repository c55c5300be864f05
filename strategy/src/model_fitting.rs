//! Fits the performance model parameters of an aligner to measured runs on a machine.

mod simplex;

use crate::model::{ApplicationModel, MachineModel, predict_run_time};
use crate::strategy::Strategy;

/// A measured run of an aligner, to which model parameters are fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RunObservation {
    /// Index of the aligner with its data set in the list of workloads, from 0.
    pub(crate) workload: usize,
    /// Number of instances and memory policy of the run.
    pub strategy: Strategy,
    /// Threads of all instances together.
    pub threads: u32,
    /// Wall-clock time of the whole run, s.
    pub seconds: f64,
}

/// Sizes of the index, of the memory per thread and of the input of a program, which are known without running it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WorkloadSizes {
    /// Size of the index, bytes.
    pub index_bytes: u64,
    /// Memory per thread in addition to the index, bytes.
    pub(crate) private_bytes: u64,
    /// Number of reads of the run; a pair has two.
    pub reads: f64,
}

/// Typical parameters of an aligner: start of the search and mean of the prior (chosen).
const TYPICAL_APPLICATION: TypicalApplication =
    TypicalApplication { handovers: 1.0, bytes_per_touch: 128.0, cpu: 200e-6, touches: 300.0 };
/// Standard deviation of the prior of each log parameter (chosen; wide).
const PRIOR_LOG_SD: f64 = 1.5;
/// Assumed standard deviation of ln(measured / predicted time) (chosen).
const RESIDUAL_LOG_SD: f64 = 0.25;

struct TypicalApplication {
    handovers: f64,
    bytes_per_touch: f64,
    cpu: f64,
    touches: f64,
}

/// Fits one application model per workload. All workloads run the same program and share the parameters `handovers` and
/// `bytes_per_touch`. Runs of infeasible strategies are ignored.
pub(crate) fn fit_application_models(
    machine: &MachineModel,
    workloads: &[WorkloadSizes],
    runs: &[RunObservation],
) -> Vec<ApplicationModel> {
    let mut typical = vec![TYPICAL_APPLICATION.handovers.ln(), TYPICAL_APPLICATION.bytes_per_touch.ln()];
    for _ in workloads {
        typical.extend([TYPICAL_APPLICATION.cpu.ln(), TYPICAL_APPLICATION.touches.ln()]);
    }
    let cost = |numbers: &[f64]| {
        let apps = build_applications(workloads, numbers, 0.0);
        let away: f64 = numbers.iter().zip(&typical).map(|(n, t)| ((n - t) / PRIOR_LOG_SD).powi(2)).sum();
        let misses = runs.iter().filter_map(|run| log_time_ratio(machine, &apps, run));
        misses.map(|miss| robust_loss(miss / RESIDUAL_LOG_SD)).sum::<f64>() + away
    };
    let mut best: Option<(f64, Vec<f64>)> = None;
    for start in search_starts(&typical) {
        let found = simplex::minimise_cost(&cost, &start);
        if best.as_ref().is_none_or(|(least, _)| found.0 < *least) {
            best = Some(found);
        }
    }
    let numbers = best.map_or(typical.clone(), |(_, numbers)| numbers);
    let apps = build_applications(workloads, &numbers, 0.0);
    let misses: Vec<f64> = runs.iter().filter_map(|run| log_time_ratio(machine, &apps, run)).collect();
    let freedom = misses.len().saturating_sub(numbers.len()).max(1) as f64;
    let spread = (misses.iter().map(|miss| miss * miss).sum::<f64>() / freedom).sqrt();
    build_applications(workloads, &numbers, spread)
}

fn search_starts(typical: &[f64]) -> Vec<Vec<f64>> {
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

fn build_applications(workloads: &[WorkloadSizes], numbers: &[f64], spread: f64) -> Vec<ApplicationModel> {
    let of = |(workload, own): (&WorkloadSizes, &[f64])| ApplicationModel {
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

fn log_time_ratio(machine: &MachineModel, apps: &[ApplicationModel], run: &RunObservation) -> Option<f64> {
    let predicted = predict_run_time(machine, &apps[run.workload], &run.strategy, run.threads).ok()?;
    Some((run.seconds / predicted.seconds).ln())
}

/// Loss of a residual: quadratic near 0, linear far from 0, so that outliers have little influence.
fn robust_loss(miss: f64) -> f64 {
    2.0 * ((1.0 + miss * miss).sqrt() - 1.0)
}

#[cfg(test)]
mod tests;
