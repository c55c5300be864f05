//! Predicts run times for several numbers of threads and memory strategies: the curves of lenis2015, lenis2017 and
//! lenis2018, for a machine on which the program has possibly never run.

use crate::model::{ApplicationModel, MachineModel, RunPrediction, predict_run_time};
use crate::strategy::Strategy;

/// Predicted run time of one strategy with one number of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPoint {
    /// Number of instances and memory policy.
    pub strategy: Strategy,
    /// Threads of all instances together.
    pub threads: u32,
    /// Predicted time of the whole run, or why the strategy is not possible with this number of threads.
    pub predicted: Result<RunPrediction, String>,
}

/// Returns the numbers of threads of a sweep: the powers of two up to the number of hardware threads of the machine,
/// the number of cores, the number of hardware threads, and `own_threads`.
pub fn list_sweep_thread_counts(machine: &MachineModel, own_threads: u32) -> Vec<u32> {
    let total = |of: fn(&crate::model::NodeModel) -> u32| machine.nodes.iter().map(of).sum::<u32>().max(1);
    let (cores, hardware_threads) = (total(|node| node.cores), total(|node| node.threads));
    let powers = (0..).map(|power| 1u32 << power).take_while(|&threads| threads < hardware_threads);
    let mut counts: Vec<u32> = powers.chain([cores, hardware_threads, own_threads.max(1)]).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Predicts the run time of each strategy with each number of threads.
pub fn predict_run_times_of_sweep(
    machine: &MachineModel,
    app: &ApplicationModel,
    strategies: &[Strategy],
    thread_counts: &[u32],
) -> Vec<SweepPoint> {
    let predict = |strategy: Strategy, threads: u32| {
        let predicted = predict_run_time(machine, app, &strategy, threads).map_err(|reason| reason.to_string());
        SweepPoint { strategy, threads, predicted }
    };
    strategies
        .iter()
        .flat_map(|&strategy| thread_counts.iter().map(move |&threads| predict(strategy, threads)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligner_model_params::find_aligner_model_params;
    use crate::replay::published_servers::published_server_model;

    #[test]
    fn curves_fall_with_threads_and_binding_wins_on_all_cores() {
        let machine = published_server_model("intel").expect("a server");
        let app = find_aligner_model_params("bwa mem").to_application_model(5_100_000_000, 22e6);
        let strategies = ["default", "interleave", "4xbind"].map(|word| word.parse().expect("a strategy"));
        let counts = list_sweep_thread_counts(&machine, 48);
        let hardware_threads: u32 = machine.nodes.iter().map(|node| node.threads).sum();
        assert!(
            counts.is_sorted() && counts.contains(&48) && counts.contains(&1) && counts.contains(&hardware_threads)
        );
        let points = predict_run_times_of_sweep(&machine, &app, &strategies, &counts);
        assert_eq!(points.len(), 3 * counts.len());
        let seconds = |strategy: Strategy, threads: u32| {
            let point = points.iter().find(|point| point.strategy == strategy && point.threads == threads)?;
            point.predicted.as_ref().ok().map(|predicted| predicted.seconds)
        };
        // Four instances need four threads; the reason is kept.
        assert_eq!(seconds(strategies[2], 2), None);
        let refused = points.iter().find(|point| point.strategy == strategies[2] && point.threads == 2);
        let reason = refused.and_then(|point| point.predicted.as_ref().err()).expect("a reason");
        assert!(reason.contains("more instances than threads"), "{reason}");
        for strategy in strategies {
            let curve: Vec<f64> = counts.iter().filter_map(|&threads| seconds(strategy, threads)).collect();
            assert!(curve[1] < curve[0] && curve[2] < curve[1], "{strategy}: {curve:?}");
        }
        assert!(seconds(strategies[2], hardware_threads) < seconds(strategies[0], hardware_threads));
    }
}
