//! Predicted run times of each strategy with 1, 2, 4 ... threads, and their table (`--sweep`).

use std::fmt::Write;

use genuma_strategy::Strategy;
use genuma_strategy::advisor::Advice;
use genuma_strategy::sweep::{SweepPoint, list_sweep_thread_counts, predict_run_times_of_sweep};

use genuma_report::advice::AdvisedRun;

/// Predicts the run time of each strategy with several numbers of threads. The strategies are those of the advice,
/// including those that cannot be used for the run itself. If trials measured the plain run, the predictions are scaled
/// to its measured time.
pub(crate) fn predict_times_over_thread_counts(case: &AdvisedRun, advice: &Advice) -> Vec<SweepPoint> {
    let threads = u32::try_from(case.threads).unwrap_or(u32::MAX);
    let considered = advice.considered.iter().map(|one| one.strategy);
    let mut strategies: Vec<Strategy> = considered.chain(advice.refused.iter().map(|one| one.strategy)).collect();
    strategies.sort_unstable();
    let app = match advice.mean_and_range_of_trials_s(Strategy::PLAIN_RUN) {
        Some([seconds, ..]) => {
            case.application.calibrate_to_measured_run(&case.machine, threads, seconds / case.application.reads)
        }
        None => case.application,
    };
    predict_run_times_of_sweep(&case.machine, &app, &strategies, &list_sweep_thread_counts(&case.machine, threads))
}

/// Formats the predicted run times as CSV. The column `measured_s` is the mean of the trials with the run's own number
/// of threads, without the time of loading the index (s).
pub(crate) fn format_sweep_csv(points: &[SweepPoint], case: &AdvisedRun, advice: &Advice) -> String {
    let mut csv =
        "strategy,instances,memory_policy,threads,predicted_s,predicted_low_s,predicted_high_s,measured_s,not_possible\n"
            .to_owned();
    for point in points {
        let predicted = point.predicted.as_ref().ok();
        let seconds = |of: fn(&genuma_strategy::model::RunPrediction) -> f64| {
            predicted.map_or(String::new(), |predicted| format!("{:.3}", of(predicted)))
        };
        let is_own = point.threads as usize == case.threads;
        let measured = advice.mean_and_range_of_trials_s(point.strategy).filter(|_| is_own);
        let _ = writeln!(
            csv,
            "{},{},{},{},{},{},{},{},{}",
            point.strategy,
            point.strategy.instances,
            point.strategy.memory.policy_name(),
            point.threads,
            seconds(|predicted| predicted.seconds),
            seconds(|predicted| predicted.low),
            seconds(|predicted| predicted.high),
            measured.map_or(String::new(), |[mean, ..]| format!("{mean:.3}")),
            point
                .predicted
                .as_ref()
                .err()
                .map_or(String::new(), |reason| format!("\"{}\"", reason.replace('"', "\"\""))),
        );
    }
    csv
}
