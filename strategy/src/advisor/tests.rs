//! Tests the advisor on described machines with invented trials.

use std::cell::RefCell;
use std::convert::Infallible;

use genuma_machine::Topology;
use genuma_machine::topology::{SyntheticMachine, TopologySource};

use super::*;
use crate::aligner_model_params::find_aligner_model_params;
use crate::cpu_layout::candidate_strategies;

fn topology(description: &str) -> Topology {
    description.parse::<SyntheticMachine>().unwrap().topology().unwrap()
}

/// Asks for advice on bwa mem with 3 Gbp and 200 million reads. `factor` is the ratio of predicted to measured time
/// of each strategy.
fn ask(
    description: &str,
    threads: u32,
    budget: Option<f64>,
    factor: impl Fn(Strategy) -> f64,
) -> (Advice, Vec<Strategy>) {
    let topology = topology(description);
    let machine = MachineModel::from_topology(&topology).unwrap();
    let app = find_aligner_model_params("bwa mem").to_application_model(5_100_000_000, 200e6);
    let strategies = candidate_strategies(&topology, threads as usize, 8);
    let question = AdviceRequest { machine: &machine, app, threads, strategies: &strategies, budget };
    let tried = RefCell::new(Vec::new());
    let run = |strategy: Strategy| {
        tried.borrow_mut().push(strategy);
        let seconds = predict_run_time(&machine, &app, &strategy, threads).unwrap().seconds;
        Ok::<TrialResult, Infallible>(TrialResult {
            seconds_per_read: factor(strategy) * seconds / app.reads,
            spent_s: 5.0,
        })
    };
    let Ok(advice) = advise_strategy(&question, |_| None, |_, _| 5.0, run);
    (advice, tried.into_inner())
}

const EIGHT: &str = "8 nodes x 8 cores, 128 GiB";

#[test]
fn one_node_leaves_nothing_to_choose_but_instances() {
    let (advice, tried) = ask("1 nodes x 1 cores, 64 GiB", 1, Some(0.1), |_| 1.0);
    assert_eq!((advice.strategy, advice.stopped), (Strategy::PLAIN_RUN, TrialStopReason::NoChoice));
    assert!(tried.is_empty() && advice.considered.len() == 1);
    assert_eq!((advice.verdict.gain, advice.spent_s), (1.0, 0.0));
}

#[test]
fn the_model_alone_spreads_memory_or_splits() {
    for (description, threads) in [("4 nodes x 16 cores, 256 GiB", 64), (EIGHT, 64)] {
        let (advice, tried) = ask(description, threads, None, |_| 1.0);
        assert!(tried.is_empty());
        assert_eq!(advice.stopped, TrialStopReason::NoTrialsRequested);
        assert_ne!(advice.strategy, Strategy::PLAIN_RUN, "{advice:?}");
        assert!(advice.verdict.low < advice.verdict.gain && advice.verdict.gain > 1.2);
        let times: Vec<f64> = advice.considered.iter().map(|one| one.predicted.seconds).collect();
        assert!(times.is_sorted_by(|a, b| a <= &(b * 1.0001)), "{times:?}");
    }
}

#[test]
fn trials_overrule_the_model() {
    // The plain run is better than predicted: all other strategies take ten times as long as predicted.
    let (advice, tried) = ask(EIGHT, 64, Some(0.5), |s| if s == Strategy::PLAIN_RUN { 1.0 } else { 10.0 });
    assert_eq!(tried[0], Strategy::PLAIN_RUN);
    assert!(tried.len() >= 4, "{tried:?}");
    assert_eq!((advice.strategy, advice.stopped), (Strategy::PLAIN_RUN, TrialStopReason::NoTrialWorthwhile));
    assert_eq!(advice.verdict.gain, 1.0);
    assert_eq!(advice.num_trials(), tried.len());
    assert!(advice.mean_and_range_of_trials_s(Strategy::PLAIN_RUN).is_some());
    // The first trial corrects the predictions.
    let plain = advice.considered.iter().find(|one| one.strategy == Strategy::PLAIN_RUN).unwrap();
    assert!((plain.predicted.seconds / plain.measured[0] - 1.0).abs() < 0.1, "{plain:?}");
}

#[test]
fn a_gain_is_found_and_stated() {
    let (advice, _) = ask(EIGHT, 64, Some(0.5), |s| if s.instances == 1 { 1.0 } else { 0.5 });
    assert!(advice.strategy.instances > 1, "{advice:?}");
    let RaceVerdict { gain, low, high, .. } = advice.verdict;
    assert!(1.0 < low && low < gain && gain < high, "{advice:?}");
}

#[test]
fn the_budget_holds() {
    let (without, _) = ask(EIGHT, 64, None, |_| 1.0);
    let run_s = without.considered.iter().find(|one| one.strategy == Strategy::PLAIN_RUN).unwrap().predicted.seconds;
    for trials in [0.5, 1.5, 2.5, 9.5] {
        let (advice, tried) = ask(EIGHT, 64, Some(trials * 5.0 / run_s), |_| 1.0);
        assert!(tried.len() as f64 <= trials, "{trials}: {tried:?}");
        assert!(advice.spent_s <= advice.budget_s * 1.05, "{advice:?}");
        if trials < 1.0 {
            assert_eq!((advice.stopped, tried.len()), (TrialStopReason::FirstTrialTooLong, 0));
        } else {
            assert!(!tried.is_empty());
        }
    }
}

#[test]
fn near_nothing_is_nothing() {
    let (advice, _) = ask(EIGHT, 64, Some(0.5), |_| 1.0);
    assert_ne!(advice.strategy, Strategy::PLAIN_RUN);
    // All strategies are within one percent of the plain run.
    let topology = topology(EIGHT);
    let machine = MachineModel::from_topology(&topology).unwrap();
    let app = find_aligner_model_params("bwa mem").to_application_model(5_100_000_000, 200e6);
    let strategies = candidate_strategies(&topology, 64, 8);
    let question = AdviceRequest { machine: &machine, app, threads: 64, strategies: &strategies, budget: Some(10.0) };
    let run = |strategy: Strategy| {
        let seconds_per_read = if strategy == Strategy::PLAIN_RUN { 1e-5 } else { 0.99e-5 };
        Ok::<TrialResult, Infallible>(TrialResult { seconds_per_read, spent_s: 1.0 })
    };
    let Ok(advice) = advise_strategy(&question, |_| None, |_, _| 1.0, run);
    assert_eq!(advice.strategy, Strategy::PLAIN_RUN);
    assert!(advice.verdict.gain < MIN_WORTHWHILE_GAIN && advice.num_trials() <= MAX_TRIALS, "{advice:?}");
}

#[test]
fn what_cannot_be_had_is_told_with_its_reason() {
    let topology = topology("4 nodes x 4 cores, 8 GiB");
    let machine = MachineModel::from_topology(&topology).unwrap();
    let app = find_aligner_model_params("snap-aligner paired").to_application_model(10_000_000_000, 1e6);
    let strategies = candidate_strategies(&topology, 16, 8);
    let question = AdviceRequest { machine: &machine, app, threads: 16, strategies: &strategies, budget: None };
    let refuse = |s: Strategy| (s.to_string() == "local").then(|| "not today".to_owned());
    let run = |_| Err::<TrialResult, &str>("no trial is wanted");
    let advice = advise_strategy(&question, refuse, |_, _| 1.0, run).unwrap();
    let why = |word: &str| advice.refused.iter().find(|r| r.strategy.to_string() == word).map(|r| r.why.as_str());
    assert_eq!(why("local"), Some("not today"));
    assert!(why("4xbind").is_some_and(|why| why.contains("needs 10.3 GB")), "{:?}", advice.refused);
    assert!(advice.considered.iter().all(|one| why(&one.strategy.to_string()).is_none()));
    assert!(advice.considered.iter().any(|one| one.strategy == Strategy::PLAIN_RUN));
}

#[test]
fn a_failed_trial_ends_it() {
    let topology = topology(EIGHT);
    let machine = MachineModel::from_topology(&topology).unwrap();
    let app = find_aligner_model_params("bwa mem").to_application_model(5_100_000_000, 200e6);
    let strategies = candidate_strategies(&topology, 64, 8);
    let question = AdviceRequest { machine: &machine, app, threads: 64, strategies: &strategies, budget: Some(1.0) };
    let run = |strategy: Strategy| match strategy {
        Strategy::PLAIN_RUN => Ok(TrialResult { seconds_per_read: 1e-5, spent_s: 1.0 }),
        other => Err(other.to_string()),
    };
    assert!(advise_strategy(&question, |_| None, |_, _| 1.0, run).is_err_and(|said| said != "default"));
}
