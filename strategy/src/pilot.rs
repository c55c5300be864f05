//! A race of short runs: which strategy to try next, when to stop, and what to say then.
//!
//! Nothing is run here. [`Race::next`] names a strategy, the caller runs a sample of the reads under it and
//! [`Race::record`]s the seconds; real runs and replayed ones are driven alike. After a first trial of each candidate
//! the next one goes where it is worth most: the knowledge gradient of Frazier, Powell and Dayanik (2008), less its price.

use std::f64::consts::{PI, SQRT_2};

use serde::{Deserialize, Serialize};

use crate::model::{Application, Machine, Prediction, predict};
use crate::strategy::{Memory, Strategy};

/// A strategy that may win.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The strategy.
    pub strategy: Strategy,
    /// What the model says of the whole run.
    pub(crate) prediction: Prediction,
}

/// What a race may cost, and what it assumes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Share of the reads that a trial aligns.
    pub sample: f64,
    /// Share of the run that trials may take beyond the first one of each candidate.
    pub budget: f64,
    /// Relative standard deviation of a trial, as far as trials have not shown it.
    pub noise: f64,
}

impl Default for Rules {
    /// 0.05% of the reads a trial, a hundredth of the run for trying again, trials within 12%.
    fn default() -> Self {
        Self { sample: 0.0005, budget: 0.01, noise: 0.12 }
    }
}

/// What came of a race.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What to run; the plain run if nothing is faster.
    pub strategy: Strategy,
    /// The plain run's time over this strategy's: 1 is no gain.
    pub gain: f64,
    /// The gain is above this in 39 of 40 cases, and
    pub low: f64,
    /// below this in 39 of 40.
    pub high: f64,
}

/// Trials that the noise assumed at first is worth.
const TRUST: f64 = 4.0;
/// Standard deviations of a normal distribution that 95% lie within.
const WITHIN: f64 = 1.96;

#[derive(Debug, Clone)]
struct Runner {
    candidate: Candidate,
    /// Logarithms of the seconds of the whole run that trials foretell.
    trials: Vec<f64>,
}

impl Runner {
    fn mean(&self) -> Option<f64> {
        let n = self.trials.len();
        (n > 0).then(|| self.trials.iter().sum::<f64>() / n as f64)
    }

    fn predicted(&self) -> f64 {
        self.candidate.prediction.seconds.ln()
    }
}

/// A race under way.
#[derive(Debug, Clone)]
pub(crate) struct Race {
    rules: Rules,
    runners: Vec<Runner>,
    /// Seconds spent after the first trial of each.
    spent: f64,
}

impl Race {
    /// A race of `candidates`, with the plain run first, whether or not it is among them.
    ///
    /// `plain` is the prediction of the plain run.
    pub fn new(candidates: &[Candidate], plain: Prediction, rules: Rules) -> Self {
        let plain = Candidate { strategy: Strategy::PLAIN, prediction: plain };
        let others = candidates.iter().copied().filter(|c| c.strategy != Strategy::PLAIN);
        let runners = std::iter::once(plain).chain(others);
        let runners = runners.map(|candidate| Runner { candidate, trials: Vec::new() }).collect();
        Self { rules, runners, spent: 0.0 }
    }

    /// The strategy to try next; none when no trial is worth its price any more, or the budget is spent.
    pub fn next(&self) -> Option<Strategy> {
        if let Some(fresh) = self.runners.iter().find(|runner| runner.trials.is_empty()) {
            return Some(fresh.candidate.strategy);
        }
        let means = self.means();
        let leader = least(&means)?;
        let noise = self.noise();
        let worth = |n: usize| {
            let rivals = means.iter().enumerate().filter(|(other, _)| *other != n);
            let rival = rivals.map(|(_, mean)| *mean).min_by(f64::total_cmp)?;
            let trials = self.runners[n].trials.len() as f64;
            // How far one more trial is expected to move this mean.
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

    /// A trial of `strategy` aligned its sample in `seconds`, loading of the index not counted. Strategies that are not
    /// in the race, and times that are none, are passed over.
    pub fn record(&mut self, strategy: Strategy, seconds: f64) {
        let sample = self.rules.sample;
        let runner = self.runners.iter_mut().find(|runner| runner.candidate.strategy == strategy);
        let Some(runner) = runner.filter(|_| seconds.is_finite() && seconds > 0.0) else { return };
        if !runner.trials.is_empty() {
            self.spent += seconds;
        }
        runner.trials.push((seconds / sample).ln());
    }

    /// What to run, as far as is known by now.
    pub fn verdict(&self) -> Verdict {
        let means = self.means();
        let best = least(&means).unwrap_or(0);
        let gain = means[0] - means[best];
        let off = if best == 0 {
            0.0
        } else {
            let (plain, chosen) = (&self.runners[0], &self.runners[best]);
            WITHIN * (self.variance(plain) + self.variance(chosen)).sqrt()
        };
        Verdict {
            strategy: self.runners[best].candidate.strategy,
            gain: gain.exp(),
            low: (gain - off).exp(),
            high: (gain + off).exp(),
        }
    }

    /// Logarithms of the whole run's seconds: measured, or predicted and shifted as the measured ones are on average.
    fn means(&self) -> Vec<f64> {
        let off: Vec<f64> = self.runners.iter().filter_map(|r| Some(r.mean()? - r.predicted())).collect();
        let shift = if off.is_empty() { 0.0 } else { off.iter().sum::<f64>() / off.len() as f64 };
        self.runners.iter().map(|runner| runner.mean().unwrap_or(runner.predicted() + shift)).collect()
    }

    /// Of the logarithm of a candidate's time: of its mean, or of the model where nothing was measured.
    fn variance(&self, runner: &Runner) -> f64 {
        match runner.trials.len() {
            0 => (runner.candidate.prediction.high / runner.candidate.prediction.seconds).ln().powi(2),
            n => self.noise().powi(2) / n as f64,
        }
    }

    /// Relative standard deviation of a trial: what was assumed, and what repeated trials showed.
    fn noise(&self) -> f64 {
        let mut squares = TRUST * self.rules.noise.powi(2);
        let mut weight = TRUST;
        for runner in self.runners.iter().filter(|runner| runner.trials.len() > 1) {
            let mean = runner.mean().unwrap_or_default();
            squares += runner.trials.iter().map(|trial| (trial - mean).powi(2)).sum::<f64>();
            weight += runner.trials.len() as f64 - 1.0;
        }
        (squares / weight).sqrt()
    }
}

/// Feasible ones of `strategies` by predicted time, the least first. Of strategies that the model cannot tell apart
/// the one that spreads memory is preferred, as it depends least on what else lies in a bank.
pub fn rank(machine: &Machine, app: &Application, strategies: &[Strategy], threads: u32) -> Vec<Candidate> {
    let candidate = |&strategy: &Strategy| {
        let prediction = predict(machine, app, &strategy, threads).ok()?;
        Some(Candidate { strategy, prediction })
    };
    let mut ranked: Vec<Candidate> = strategies.iter().filter_map(candidate).collect();
    let by_memory = [Memory::Interleave, Memory::Weighted, Memory::Bind, Memory::Local, Memory::Default];
    let place = |c: &Candidate| by_memory.iter().position(|memory| *memory == c.strategy.memory);
    // Hundredths of a per mille: what is nearer than that is equal but for rounding.
    let step = |c: &Candidate| (c.prediction.seconds.ln() * 1e5).round();
    ranked.sort_by(|a, b| {
        let by_time = step(a).total_cmp(&step(b));
        by_time.then(a.strategy.instances.cmp(&b.strategy.instances)).then(place(a).cmp(&place(b)))
    });
    ranked
}

/// How many strategies race, the plain run among them.
const STARTERS: usize = 4;

/// The best of the model's ranking to race beside the plain run. `ranked` is in order of preference. Strategies of as
/// many instances that the model cannot tell apart (interleaving on one node is binding) send the first of them.
pub(crate) fn starters(ranked: &[Candidate]) -> Vec<Candidate> {
    let mut chosen: Vec<Candidate> = Vec::new();
    for candidate in ranked.iter().filter(|c| c.strategy != Strategy::PLAIN) {
        let alike = |other: &Candidate| {
            let ratio = other.prediction.seconds / candidate.prediction.seconds;
            other.strategy.instances == candidate.strategy.instances && (ratio - 1.0).abs() < SAME
        };
        let plain_again = ranked.iter().any(|c| c.strategy == Strategy::PLAIN && alike(c));
        if !plain_again && !chosen.iter().any(alike) {
            chosen.push(*candidate);
        }
    }
    chosen.truncate(STARTERS - 1);
    chosen
}

/// Relative difference of predicted times below which the model does not tell strategies apart.
const SAME: f64 = 1e-3;

fn least(means: &[f64]) -> Option<usize> {
    (0..means.len()).min_by(|&a, &b| means[a].total_cmp(&means[b]))
}

/// Mean of what a standard normal variable exceeds `-z` by.
fn expected_excess(z: f64) -> f64 {
    z * normal_below(z) + (-z * z / 2.0).exp() / (2.0 * PI).sqrt()
}

/// Share of a standard normal distribution below `z`: Abramowitz and Stegun 7.1.26, to 1.5e-7.
fn normal_below(z: f64) -> f64 {
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

    fn candidate(word: &str, seconds: f64) -> Candidate {
        let prediction = Prediction { seconds, low: seconds / 1.3, high: seconds * 1.3 };
        Candidate { strategy: word.parse().unwrap(), prediction }
    }

    fn run(race: &mut Race, seconds: impl Fn(Strategy, usize) -> f64) -> usize {
        let mut trials = 0;
        while let Some(strategy) = race.next() {
            race.record(strategy, seconds(strategy, trials) * race.rules.sample);
            trials += 1;
        }
        trials
    }

    fn race() -> Race {
        let ranked = [candidate("interleave", 50.0), candidate("2xbind", 60.0), candidate("default", 100.0)];
        Race::new(&starters(&ranked), ranked[2].prediction, Rules::default())
    }

    #[test]
    fn the_normal_distribution() {
        for (z, below) in
            [(0.0, 0.5), (1.0, 0.841_344_7), (-1.0, 0.158_655_3), (1.96, 0.975_002_1), (-3.0, 0.001_349_9)]
        {
            assert!((normal_below(z) - below).abs() < 1e-6, "{z}");
        }
        assert!((expected_excess(0.0) - 0.398_942_3).abs() < 1e-6);
        assert!(expected_excess(-8.0).abs() < 1e-9);
    }

    #[test]
    fn clear_cases_need_one_trial_each() {
        let mut race = race();
        assert_eq!(race.next(), Some(Strategy::PLAIN));
        let trials = run(&mut race, |strategy, _| if strategy == Strategy::PLAIN { 20.0 } else { 90.0 });
        assert_eq!(trials, 3);
        let verdict = race.verdict();
        assert_eq!(verdict.strategy, Strategy::PLAIN);
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
        let verdict = race.verdict();
        assert_ne!(verdict.strategy, Strategy::PLAIN);
        assert!(verdict.low < verdict.gain && verdict.gain < verdict.high);
        assert!(verdict.low > 2.0 && verdict.high < 3.5, "{verdict:?}");
    }

    #[test]
    fn the_model_stands_in_for_what_was_not_tried() {
        let mut race = race();
        assert_eq!(race.verdict().strategy.to_string(), "interleave");
        assert!((race.verdict().gain - 2.0).abs() < 1e-9);
        // The machine is twice as fast as the model thought: the others are held to be so too.
        race.record(Strategy::PLAIN, 0.05);
        assert!((race.verdict().gain - 2.0).abs() < 1e-9);
        race.record("8xbind".parse().unwrap(), 1e-6);
        race.record(Strategy::PLAIN, f64::NAN);
        assert!((race.verdict().gain - 2.0).abs() < 1e-9);
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
        let words: Vec<String> = starters(&ranked).iter().map(|c| c.strategy.to_string()).collect();
        assert_eq!(words, ["4xinterleave", "8xbind", "2xbind"]);
        assert!(starters(&ranked[5..]).is_empty());
    }
}
