//! Chooses the strategy for a program on a machine: drops infeasible candidates, predicts run times, runs trials and
//! decides.
//!
//! The advisor runs nothing itself. [`advise_strategy`] asks its caller for trials, so that real and simulated trials
//! are treated alike.

use serde::Serialize;

use crate::model::{ApplicationModel, MachineModel, RunPrediction, predict_run_time};
use crate::strategy::Strategy;
use crate::trial_race::{
    RaceCandidate, RaceRules, RaceVerdict, TrialRace, rank_strategies_by_predicted_time, select_race_candidates,
};

/// Input of the advisor: the program, the machine, the threads, the candidate strategies and the time limit of trials.
#[derive(Debug)]
pub struct AdviceRequest<'a> {
    /// Nodes, latencies and bandwidths of the machine.
    pub machine: &'a MachineModel,
    /// Model of the aligner with its index and its reads.
    pub app: ApplicationModel,
    /// Threads of all instances together.
    pub threads: u32,
    /// Candidate strategies. The plain run is always included.
    pub strategies: &'a [Strategy],
    /// Share of the predicted time of the plain run that all trials together may take, including index loading; `None`
    /// for no trials.
    pub budget: Option<f64>,
}

/// A strategy that is not feasible.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RefusedStrategy {
    /// Number of instances and memory policy.
    pub strategy: Strategy,
    /// Why the strategy cannot be used on this machine, for the user.
    pub why: String,
}

/// Result of a trial: a sample of the reads aligned under a strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialResult {
    /// Time per read in seconds, without loading the index.
    pub seconds_per_read: f64,
    /// Total time of the trial in seconds.
    pub spent_s: f64,
}

/// A strategy with its predicted time, and the times of its trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConsideredStrategy {
    /// Number of instances and memory policy.
    pub strategy: Strategy,
    /// Predicted time of the whole run. If trials were run, the prediction uses the model calibrated to the first
    /// trial.
    pub predicted: RunPrediction,
    /// Time of the whole run as extrapolated from each trial, without loading the index, s.
    pub measured: Vec<f64>,
}

/// Reason why the advisor ran no more trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStopReason {
    /// No trial is useful, because only the plain run is feasible.
    NoChoice,
    /// No trials were requested.
    #[serde(rename = "not_wanted")]
    NoTrialsRequested,
    /// The first trial was expected to take longer than the time budget.
    #[serde(rename = "too_short")]
    FirstTrialTooLong,
    /// Another trial was expected to exceed the time budget of all trials.
    #[serde(rename = "spent")]
    BudgetUsedUp,
    /// Another trial would have taken more time than it was expected to save, or the maximum number of trials was
    /// reached.
    #[serde(rename = "clear")]
    NoTrialWorthwhile,
}

/// Recommendation of the advisor: the chosen strategy, all strategies with their times, and why trials ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Number of instances and memory policy that are recommended.
    pub strategy: Strategy,
    /// Verdict on the fastest strategy; the gain of the plain run is 1.
    pub verdict: RaceVerdict,
    /// Feasible strategies by predicted time, the fastest first. The plain run is always included: as the last one if
    /// it is predicted not to fit in memory.
    pub considered: Vec<ConsideredStrategy>,
    /// Strategies that are not feasible.
    pub refused: Vec<RefusedStrategy>,
    /// Maximum time of all trials together, s.
    pub budget_s: f64,
    /// Time that all trials together took, s.
    pub spent_s: f64,
    /// Reason why the advisor ran no more trials.
    pub stopped: TrialStopReason,
}

/// Minimum gain for which a strategy is advised instead of the plain run (chosen). The gain is the time of the plain
/// run divided by the time of the strategy.
pub(crate) const MIN_WORTHWHILE_GAIN: f64 = 1.02;
/// Maximum number of trials of one recommendation.
const MAX_TRIALS: usize = 64;

impl Advice {
    /// Returns mean, minimum and maximum over the trials of a strategy: each trial extrapolated to the time of the
    /// whole run, s. `None` without trials.
    pub fn mean_and_range_of_trials_s(&self, strategy: Strategy) -> Option<[f64; 3]> {
        let of = self.considered.iter().find(|one| one.strategy == strategy)?;
        let n = of.measured.len() as f64;
        let least = of.measured.iter().copied().fold(f64::INFINITY, f64::min);
        let most = of.measured.iter().copied().fold(0.0, f64::max);
        (n > 0.0).then(|| [of.measured.iter().sum::<f64>() / n, least, most])
    }

    /// Returns the number of trials of all strategies.
    pub fn num_trials(&self) -> usize {
        self.considered.iter().map(|one| one.measured.len()).sum()
    }
}

/// Chooses a strategy for the program that `question` describes. `refuse` returns the reason if a strategy is
/// impossible for a cause outside the performance model, else `None`. `expected_s` returns the expected time of the
/// first trial, which is a plain run, in seconds, including index loading. `run` runs a trial.
///
/// # Errors
/// Returns the first error of `run`.
pub fn advise_strategy<E>(
    question: &AdviceRequest<'_>,
    refuse: impl Fn(Strategy) -> Option<String>,
    expected_s: impl FnOnce(&ApplicationModel, RunPrediction) -> f64,
    mut run: impl FnMut(Strategy) -> Result<TrialResult, E>,
) -> Result<Advice, E> {
    let AdviceRequest { machine, threads, .. } = *question;
    let (feasible, refused) = select_feasible_strategies(question, refuse);
    let plain = |app: &ApplicationModel| predict_plain_run(machine, app, threads);
    let mut app = question.app;
    let mut foretold = plain(&app);
    let mut spending = TrialBudget { budget_s: question.budget.unwrap_or(0.0) * foretold.seconds, spent_s: 0.0 };
    let mut first = None;
    let mut stopped = match (feasible.len(), question.budget) {
        (1, _) => TrialStopReason::NoChoice,
        (_, None) => TrialStopReason::NoTrialsRequested,
        _ => TrialStopReason::FirstTrialTooLong,
    };
    if stopped == TrialStopReason::FirstTrialTooLong && spending.can_afford(expected_s(&app, foretold)) {
        let trial = run(Strategy::PLAIN_RUN)?;
        spending.spent_s += trial.spent_s;
        app = app.calibrate_to_measured_run(machine, threads, trial.seconds_per_read);
        foretold = plain(&app);
        spending.budget_s = question.budget.unwrap_or(0.0) * foretold.seconds;
        first = Some(trial);
    }
    let ranked = rank_strategies_by_predicted_time(machine, &app, &feasible, threads);
    // This function keeps the budget itself; the price of a trial is that of the first one.
    let sample = first.map_or(RaceRules::default().sample, |trial| {
        (trial.spent_s / foretold.seconds).clamp(RaceRules::default().sample, 1.0)
    });
    let rules = RaceRules { budget: f64::INFINITY, sample, ..RaceRules::default() };
    let mut race = TrialRace::of_candidates(&select_race_candidates(&ranked), foretold, rules);
    let mut considered: Vec<ConsideredStrategy> = ranked.iter().map(ConsideredStrategy::from_candidate).collect();
    if !ranked.iter().any(|one| one.strategy == Strategy::PLAIN_RUN) {
        let plain = RaceCandidate { strategy: Strategy::PLAIN_RUN, prediction: foretold };
        considered.push(ConsideredStrategy::from_candidate(&plain));
    }
    let mut note = |race: &mut TrialRace, strategy: Strategy, trial: TrialResult| {
        let whole_s = trial.seconds_per_read * app.reads;
        race.record_trial(strategy, whole_s * rules.sample);
        if let Some(one) = considered.iter_mut().find(|one| one.strategy == strategy) {
            one.measured.push(whole_s);
        }
    };
    if let Some(trial) = first {
        note(&mut race, Strategy::PLAIN_RUN, trial);
        let mut longest_s = trial.spent_s;
        stopped = TrialStopReason::NoTrialWorthwhile;
        for _ in 1..MAX_TRIALS {
            let Some(strategy) = race.next_strategy_to_try() else { break };
            if !spending.can_afford(longest_s) {
                stopped = TrialStopReason::BudgetUsedUp;
                break;
            }
            let trial = run(strategy)?;
            spending.spent_s += trial.spent_s;
            longest_s = longest_s.max(trial.spent_s);
            note(&mut race, strategy, trial);
        }
    }
    let verdict = race.verdict_so_far();
    let strategy = if verdict.gain >= MIN_WORTHWHILE_GAIN { verdict.strategy } else { Strategy::PLAIN_RUN };
    let TrialBudget { budget_s, spent_s } = spending;
    Ok(Advice { strategy, verdict, considered, refused, budget_s, spent_s, stopped })
}

/// Returns the strategies that are possible and can be predicted, the plain run first, and the others with the reason.
fn select_feasible_strategies(
    question: &AdviceRequest<'_>,
    refuse: impl Fn(Strategy) -> Option<String>,
) -> (Vec<Strategy>, Vec<RefusedStrategy>) {
    let AdviceRequest { machine, threads, .. } = *question;
    let mut refused = Vec::new();
    let mut feasible = vec![Strategy::PLAIN_RUN];
    for &strategy in question.strategies.iter().filter(|strategy| **strategy != Strategy::PLAIN_RUN) {
        let unpredicted = || predict_run_time(machine, &question.app, &strategy, threads).err().map(|e| e.to_string());
        match refuse(strategy).or_else(unpredicted) {
            Some(why) => refused.push(RefusedStrategy { strategy, why }),
            None => feasible.push(strategy),
        }
    }
    (feasible, refused)
}

/// Predicts the plain run, even if it does not fit in memory: it is what a user without genuma would run.
fn predict_plain_run(machine: &MachineModel, app: &ApplicationModel, threads: u32) -> RunPrediction {
    let fits = |app: &ApplicationModel| predict_run_time(machine, app, &Strategy::PLAIN_RUN, threads);
    let smaller = || fits(&ApplicationModel { index_bytes: 0, private_bytes: 0, ..*app });
    let none = RunPrediction { seconds: f64::NAN, low: f64::NAN, high: f64::NAN };
    fits(app).or_else(|_| smaller()).unwrap_or(none)
}

struct TrialBudget {
    budget_s: f64,
    spent_s: f64,
}

impl TrialBudget {
    fn can_afford(&self, seconds: f64) -> bool {
        self.spent_s + seconds <= self.budget_s
    }
}

impl ConsideredStrategy {
    fn from_candidate(candidate: &RaceCandidate) -> Self {
        Self { strategy: candidate.strategy, predicted: candidate.prediction, measured: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
