//! A race of short trials: chooses the strategy to try next, when to stop, and the winner.
//!
//! The race runs nothing itself. [`TrialRace::next_strategy_to_try`] names a strategy; the caller aligns a sample of
//! the reads under this strategy and records the time with [`TrialRace::record_trial`]. Real and simulated trials are
//! handled alike. After one trial of each candidate, the next trial goes to the candidate with the highest expected
//! benefit of another trial: the knowledge gradient of Frazier, Powell and Dayanik (2008), minus the time of the trial.

use std::f64::consts::{PI, SQRT_2};

use serde::{Deserialize, Serialize};

use crate::model::{ApplicationModel, MachineModel, RunPrediction, predict_run_time};
use crate::strategy::{InstanceMemoryPolicy, Strategy};

/// A candidate strategy of a race.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RaceCandidate {
    /// Number of instances and memory policy of this candidate.
    pub strategy: Strategy,
    /// Predicted time of the whole run.
    pub(crate) prediction: RunPrediction,
}

/// Rules of a race of trials: size of the sample, time budget, and assumed error of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RaceRules {
    /// Share of the reads that one trial aligns.
    pub sample: f64,
    /// Maximum time of all trials after the first trial of each candidate, as a share of the run time.
    pub budget: f64,
    /// Assumed relative standard deviation of the time of a trial, used until repeated trials give an estimate.
    pub noise: f64,
}

impl Default for RaceRules {
    /// Default: 0.05 % of the reads per trial, 1 % of the run time for repeated trials, 12 % noise.
    fn default() -> Self {
        Self { sample: 0.0005, budget: 0.01, noise: 0.12 }
    }
}

/// Strategy that won the race of trials, and the confidence interval of its gain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RaceVerdict {
    /// Fastest strategy; the plain run if nothing is faster.
    pub strategy: Strategy,
    /// Time of the plain run divided by the time of this strategy; 1 is no gain.
    pub gain: f64,
    /// Lower end of the 95 % confidence interval of the gain.
    pub low: f64,
    /// Upper end of the 95 % confidence interval of the gain.
    pub high: f64,
}

/// Number of trials to which the assumed noise [`RaceRules::noise`] is equivalent when the noise is estimated.
const PRIOR_NOISE_TRIALS: f64 = 4.0;
/// Number of standard deviations on both sides of the mean that contain 95 % of a normal distribution.
const NORMAL_95_SDS: f64 = 1.96;

#[derive(Debug, Clone)]
struct RacingStrategy {
    candidate: RaceCandidate,
    /// For each trial the logarithm of the time of the whole run in seconds, extrapolated from the trial.
    trials: Vec<f64>,
}

impl RacingStrategy {
    fn mean_log_time(&self) -> Option<f64> {
        let n = self.trials.len();
        (n > 0).then(|| self.trials.iter().sum::<f64>() / n as f64)
    }

    fn predicted_log_time(&self) -> f64 {
        self.candidate.prediction.seconds.ln()
    }
}

/// A race: the candidates with the times of their trials, from which the next trial and the winner are chosen.
#[derive(Debug, Clone)]
pub(crate) struct TrialRace {
    rules: RaceRules,
    runners: Vec<RacingStrategy>,
    /// Time of all trials after the first trial of each candidate, s.
    spent: f64,
}

impl TrialRace {
    /// Creates a race of `candidates`. The plain run is always the first candidate; `plain` is its prediction.
    pub(crate) fn of_candidates(candidates: &[RaceCandidate], plain: RunPrediction, rules: RaceRules) -> Self {
        let plain = RaceCandidate { strategy: Strategy::PLAIN_RUN, prediction: plain };
        let others = candidates.iter().copied().filter(|c| c.strategy != Strategy::PLAIN_RUN);
        let runners = std::iter::once(plain).chain(others);
        let runners = runners.map(|candidate| RacingStrategy { candidate, trials: Vec::new() }).collect();
        Self { rules, runners, spent: 0.0 }
    }

    /// Returns the strategy to try next: a candidate without a trial if there is one. `None` if no further trial is
    /// expected to save more time than it takes, or if the time for trials is used up.
    pub(crate) fn next_strategy_to_try(&self) -> Option<Strategy> {
        if let Some(fresh) = self.runners.iter().find(|runner| runner.trials.is_empty()) {
            return Some(fresh.candidate.strategy);
        }
        let means = self.log_mean_times();
        let leader = index_of_min(&means)?;
        let noise = self.estimate_noise();
        let worth = |n: usize| {
            let rivals = means.iter().enumerate().filter(|(other, _)| *other != n);
            let rival = rivals.map(|(_, mean)| *mean).min_by(f64::total_cmp)?;
            let trials = self.runners[n].trials.len() as f64;
            // Expected shift of this mean by one more trial.
            let shift = noise / (trials * (trials + 1.0)).sqrt();
            let price = self.rules.sample * (means[n] - means[leader]).exp();
            Some(shift * expected_excess(-(means[n] - rival).abs() / shift) - price)
        };
        let all = (0..self.runners.len()).filter_map(|n| worth(n).map(|worth| (n, worth)));
        let (best, worth) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let price = self.rules.sample * means[best].exp();
        let affordable = self.spent + price <= self.rules.budget * means[leader].exp();
        (worth > 0.0 && affordable).then(|| self.runners[best].candidate.strategy)
    }

    /// Records that a trial of `strategy` aligned its sample in `seconds`, without loading the index. Unknown
    /// strategies and invalid times are ignored.
    pub(crate) fn record_trial(&mut self, strategy: Strategy, seconds: f64) {
        let sample = self.rules.sample;
        let runner = self.runners.iter_mut().find(|runner| runner.candidate.strategy == strategy);
        let Some(runner) = runner.filter(|_| seconds.is_finite() && seconds > 0.0) else { return };
        if !runner.trials.is_empty() {
            self.spent += seconds;
        }
        runner.trials.push((seconds / sample).ln());
    }

    /// Returns the winner according to the trials that have been recorded.
    pub(crate) fn verdict_so_far(&self) -> RaceVerdict {
        let means = self.log_mean_times();
        let best = index_of_min(&means).unwrap_or(0);
        let gain = means[0] - means[best];
        let off = if best == 0 {
            0.0
        } else {
            let (plain, chosen) = (&self.runners[0], &self.runners[best]);
            NORMAL_95_SDS * (self.log_time_variance(plain) + self.log_time_variance(chosen)).sqrt()
        };
        RaceVerdict {
            strategy: self.runners[best].candidate.strategy,
            gain: gain.exp(),
            low: (gain - off).exp(),
            high: (gain + off).exp(),
        }
    }

    /// Returns for each candidate the logarithm of the time of the whole run in seconds: the mean of its trials;
    /// without trials the prediction, corrected by the mean error of the predictions of candidates with trials.
    fn log_mean_times(&self) -> Vec<f64> {
        let off: Vec<f64> =
            self.runners.iter().filter_map(|r| Some(r.mean_log_time()? - r.predicted_log_time())).collect();
        let shift = if off.is_empty() { 0.0 } else { off.iter().sum::<f64>() / off.len() as f64 };
        self.runners
            .iter()
            .map(|runner| runner.mean_log_time().unwrap_or(runner.predicted_log_time() + shift))
            .collect()
    }

    /// Returns the variance of a candidate's logarithmic time from [`Self::log_mean_times`].
    fn log_time_variance(&self, runner: &RacingStrategy) -> f64 {
        match runner.trials.len() {
            0 => (runner.candidate.prediction.high / runner.candidate.prediction.seconds).ln().powi(2),
            n => self.estimate_noise().powi(2) / n as f64,
        }
    }

    /// Estimates the relative standard deviation of a trial's time from the assumed noise and from repeated trials.
    fn estimate_noise(&self) -> f64 {
        let mut squares = PRIOR_NOISE_TRIALS * self.rules.noise.powi(2);
        let mut weight = PRIOR_NOISE_TRIALS;
        for runner in self.runners.iter().filter(|runner| runner.trials.len() > 1) {
            let mean = runner.mean_log_time().unwrap_or_default();
            squares += runner.trials.iter().map(|trial| (trial - mean).powi(2)).sum::<f64>();
            weight += runner.trials.len() as f64 - 1.0;
        }
        (squares / weight).sqrt()
    }
}

/// Returns the feasible strategies sorted by predicted time, the fastest first. Strategies with equal predictions are
/// sorted by number of instances, then by memory policy: policies that spread memory over nodes come first, because
/// they depend least on other memory use.
pub(crate) fn rank_strategies_by_predicted_time(
    machine: &MachineModel,
    app: &ApplicationModel,
    strategies: &[Strategy],
    threads: u32,
) -> Vec<RaceCandidate> {
    let candidate = |&strategy: &Strategy| {
        let prediction = predict_run_time(machine, app, &strategy, threads).ok()?;
        Some(RaceCandidate { strategy, prediction })
    };
    let mut ranked: Vec<RaceCandidate> = strategies.iter().filter_map(candidate).collect();
    let by_memory = [
        InstanceMemoryPolicy::Interleave,
        InstanceMemoryPolicy::Weighted,
        InstanceMemoryPolicy::Bind,
        InstanceMemoryPolicy::Local,
        InstanceMemoryPolicy::Default,
    ];
    let place = |c: &RaceCandidate| by_memory.iter().position(|memory| *memory == c.strategy.memory);
    // Round to 1e-5 of the logarithm: smaller differences count as equal.
    let step = |c: &RaceCandidate| (c.prediction.seconds.ln() * 1e5).round();
    ranked.sort_by(|a, b| {
        let by_time = step(a).total_cmp(&step(b));
        by_time.then(a.strategy.instances.cmp(&b.strategy.instances)).then(place(a).cmp(&place(b)))
    });
    ranked
}

/// Maximum number of strategies in a race, including the plain run.
const MAX_RACING_STRATEGIES: usize = 4;

/// Selects the first strategies of `ranked`, which is sorted by preference, to race with the plain run. Of strategies
/// with equal numbers of instances and equal predictions, only the first is selected, and none if the plain run is one
/// of them: for example, interleaving over one node equals binding to it.
pub(crate) fn select_race_candidates(ranked: &[RaceCandidate]) -> Vec<RaceCandidate> {
    let mut chosen: Vec<RaceCandidate> = Vec::new();
    for candidate in ranked.iter().filter(|c| c.strategy != Strategy::PLAIN_RUN) {
        let alike = |other: &RaceCandidate| {
            let ratio = other.prediction.seconds / candidate.prediction.seconds;
            other.strategy.instances == candidate.strategy.instances && (ratio - 1.0).abs() < SAME_TIME_TOLERANCE
        };
        let plain_again = ranked.iter().any(|c| c.strategy == Strategy::PLAIN_RUN && alike(c));
        if !plain_again && !chosen.iter().any(alike) {
            chosen.push(*candidate);
        }
    }
    chosen.truncate(MAX_RACING_STRATEGIES - 1);
    chosen
}

/// Relative difference of predicted times below which two strategies count as equal.
const SAME_TIME_TOLERANCE: f64 = 1e-3;

fn index_of_min(means: &[f64]) -> Option<usize> {
    (0..means.len()).min_by(|&a, &b| means[a].total_cmp(&means[b]))
}

/// Returns the expected value of max(0, z + X) for a standard normal variable X.
fn expected_excess(z: f64) -> f64 {
    z * normal_cdf(z) + (-z * z / 2.0).exp() / (2.0 * PI).sqrt()
}

/// Returns the cumulative distribution function of the standard normal distribution (Abramowitz and Stegun 7.1.26,
/// error below 1.5e-7).
fn normal_cdf(z: f64) -> f64 {
    let x = z.abs() / SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let sum = series.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    let tail = sum * (-x * x).exp() / 2.0;
    if z < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(word: &str, seconds: f64) -> RaceCandidate {
        let prediction = RunPrediction { seconds, low: seconds / 1.3, high: seconds * 1.3 };
        RaceCandidate { strategy: word.parse().unwrap(), prediction }
    }

    fn run(race: &mut TrialRace, seconds: impl Fn(Strategy, usize) -> f64) -> usize {
        let mut trials = 0;
        while let Some(strategy) = race.next_strategy_to_try() {
            race.record_trial(strategy, seconds(strategy, trials) * race.rules.sample);
            trials += 1;
        }
        trials
    }

    fn race() -> TrialRace {
        let ranked = [candidate("interleave", 50.0), candidate("2xbind", 60.0), candidate("default", 100.0)];
        TrialRace::of_candidates(&select_race_candidates(&ranked), ranked[2].prediction, RaceRules::default())
    }

    #[test]
    fn the_normal_distribution() {
        for (z, below) in
            [(0.0, 0.5), (1.0, 0.841_344_7), (-1.0, 0.158_655_3), (1.96, 0.975_002_1), (-3.0, 0.001_349_9)]
        {
            assert!((normal_cdf(z) - below).abs() < 1e-6, "{z}");
        }
        assert!((expected_excess(0.0) - 0.398_942_3).abs() < 1e-6);
        assert!(expected_excess(-8.0).abs() < 1e-9);
    }

    #[test]
    fn clear_cases_need_one_trial_each() {
        let mut race = race();
        assert_eq!(race.next_strategy_to_try(), Some(Strategy::PLAIN_RUN));
        let trials = run(&mut race, |strategy, _| if strategy == Strategy::PLAIN_RUN { 20.0 } else { 90.0 });
        assert_eq!(trials, 3);
        let verdict = race.verdict_so_far();
        assert_eq!(verdict.strategy, Strategy::PLAIN_RUN);
        assert_eq!((verdict.gain, verdict.low, verdict.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn close_cases_take_more_and_stay_within_the_budget() {
        let mut race = race();
        let wobble = |n: usize| [1.0, 1.1, 0.92, 1.03, 0.95][n % 5];
        let seconds = |strategy: Strategy, n: usize| match strategy.to_string().as_str() {
            "default" => 100.0,
            "interleave" => 41.0 * wobble(n),
            _ => 40.0 * wobble(n + 2),
        };
        let trials = run(&mut race, seconds);
        assert!(trials > 4, "{trials}");
        assert!(race.spent <= race.rules.budget * 45.0, "{}", race.spent);
        let verdict = race.verdict_so_far();
        assert_ne!(verdict.strategy, Strategy::PLAIN_RUN);
        assert!(verdict.low < verdict.gain && verdict.gain < verdict.high);
        assert!(verdict.low > 2.0 && verdict.high < 3.5, "{verdict:?}");
    }

    #[test]
    fn the_model_stands_in_for_what_was_not_tried() {
        let mut race = race();
        assert_eq!(race.verdict_so_far().strategy.to_string(), "interleave");
        assert!((race.verdict_so_far().gain - 2.0).abs() < 1e-9);
        // The machine is twice as fast as predicted, and the same is assumed for the other strategies.
        race.record_trial(Strategy::PLAIN_RUN, 0.05);
        assert!((race.verdict_so_far().gain - 2.0).abs() < 1e-9);
        race.record_trial("8xbind".parse().unwrap(), 1e-6);
        race.record_trial(Strategy::PLAIN_RUN, f64::NAN);
        assert!((race.verdict_so_far().gain - 2.0).abs() < 1e-9);
    }

    #[test]
    fn twins_send_one() {
        let ranked = [
            candidate("4xinterleave", 50.0),
            candidate("4xbind", 50.0),
            candidate("8xbind", 50.0),
            candidate("2xbind", 60.0),
            candidate("2xinterleave", 70.0),
            candidate("default", 90.0),
            candidate("local", 90.0),
        ];
        let words: Vec<String> = select_race_candidates(&ranked).iter().map(|c| c.strategy.to_string()).collect();
        assert_eq!(words, ["4xinterleave", "8xbind", "2xbind"]);
        assert!(select_race_candidates(&ranked[5..]).is_empty());
    }
}
