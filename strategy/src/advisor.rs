//! Which strategy suits a program on a machine: candidates, those that cannot be had, predictions, trials, and what follows.
//!
//! Nothing is run here: [`advise`] asks its caller for trials, so that real ones and invented ones are heeded alike.

use serde::Serialize;

use crate::model::{Application, Machine, Prediction, predict};
use crate::pilot::{Candidate, Race, Rules, Verdict, rank, starters};
use crate::strategy::Strategy;

/// What is to be decided.
#[derive(Debug)]
pub struct Question<'a> {
    /// Where it runs.
    pub machine: &'a Machine,
    /// What runs.
    pub app: Application,
    /// Threads of all instances together.
    pub threads: u32,
    /// What may be chosen; the plain run is always thought of.
    pub strategies: &'a [Strategy],
    /// Share of the run that all trials together may take, loading of indexes counted; none for no trials.
    pub budget: Option<f64>,
}

/// A strategy that cannot be had.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refused {
    /// The strategy.
    pub strategy: Strategy,
    /// Why.
    pub why: String,
}

/// A sample of the reads, aligned under a strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Seconds for each read, loading of the index not counted.
    pub read_s: f64,
    /// Seconds that it took in all.
    pub spent_s: f64,
}

/// A strategy that was thought of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Considered {
    /// The strategy.
    pub strategy: Strategy,
    /// What the model says of the whole run; after the first trial it is set right by that.
    pub predicted: Prediction,
    /// Seconds of the whole run that each trial foretells, loading of the index not counted.
    pub measured: Vec<f64>,
}

/// Why there were no more trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// There is nothing but the plain run.
    NoChoice,
    /// None was wanted.
    NotWanted,
    /// The first would have taken more than the budget.
    TooShort,
    /// The budget was spent.
    Spent,
    /// Another one would not have been worth its time.
    Clear,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// What to run.
    pub strategy: Strategy,
    /// What the race says of the fastest; the gain of doing nothing is 1.
    pub verdict: Verdict,
    /// By predicted time, the least first.
    pub considered: Vec<Considered>,
    /// What cannot be had.
    pub refused: Vec<Refused>,
    /// Seconds that trials may take.
    pub budget_s: f64,
    /// Seconds that they took.
    pub spent_s: f64,
    /// Why there were no more.
    pub stopped: Stopped,
}

/// A gain below this is not worth a change.
pub const WORTH: f64 = 1.02;
/// Trials that a race has at most, should noise outlast a large budget.
const MOST_TRIALS: usize = 64;

impl Advice {
    /// Trials of a strategy, as seconds of the whole run: mean, least and most. None if it was not tried.
    pub fn measured(&self, strategy: Strategy) -> Option<[f64; 3]> {
        let of = self.considered.iter().find(|one| one.strategy == strategy)?;
        let n = of.measured.len() as f64;
        let least = of.measured.iter().copied().fold(f64::INFINITY, f64::min);
        let most = of.measured.iter().copied().fold(0.0, f64::max);
        (n > 0.0).then(|| [of.measured.iter().sum::<f64>() / n, least, most])
    }

    /// How many trials there were.
    pub fn trials(&self) -> usize {
        self.considered.iter().map(|one| one.measured.len()).sum()
    }
}

/// Answers a question. `refuse` says why a strategy cannot be had, beyond what the model knows; `expected_s` is how long a
/// first trial should take, loading counted; `run` tries a strategy.
///
/// # Errors
/// Those of `run`.
pub fn advise<E>(
    question: &Question<'_>,
    refuse: impl Fn(Strategy) -> Option<String>,
    expected_s: impl FnOnce(&Application, Prediction) -> f64,
    mut run: impl FnMut(Strategy) -> Result<Trial, E>,
) -> Result<Advice, E> {
    let Question { machine, threads, .. } = *question;
    let mut refused = Vec::new();
    let mut feasible = vec![Strategy::PLAIN];
    for &strategy in question.strategies.iter().filter(|strategy| **strategy != Strategy::PLAIN) {
        let unpredicted = || predict(machine, &question.app, &strategy, threads).err().map(|e| e.to_string());
        match refuse(strategy).or_else(unpredicted) {
            Some(why) => refused.push(Refused { strategy, why }),
            None => feasible.push(strategy),
        }
    }
    let plain = |app: &Application| rough(machine, app, threads);
    let mut app = question.app;
    let mut foretold = plain(&app);
    let mut spending = Spending { budget_s: question.budget.unwrap_or(0.0) * foretold.seconds, spent_s: 0.0 };
    let mut first = None;
    let mut stopped = match (feasible.len(), question.budget) {
        (1, _) => Stopped::NoChoice,
        (_, None) => Stopped::NotWanted,
        _ => Stopped::TooShort,
    };
    if stopped == Stopped::TooShort && spending.affords(expected_s(&app, foretold)) {
        let trial = run(Strategy::PLAIN)?;
        spending.spent_s += trial.spent_s;
        app = app.calibrated(machine, threads, trial.read_s);
        foretold = plain(&app);
        spending.budget_s = question.budget.unwrap_or(0.0) * foretold.seconds;
        first = Some(trial);
    }
    let ranked = rank(machine, &app, &feasible, threads);
    // The budget is kept here; a trial's price is what the first one cost.
    let sample = first.map_or(Rules::default().sample, |trial| {
        (trial.spent_s / foretold.seconds).clamp(Rules::default().sample, 1.0)
    });
    let rules = Rules { budget: f64::INFINITY, sample, ..Rules::default() };
    let mut race = Race::new(&starters(&ranked), foretold, rules);
    let mut considered: Vec<Considered> = ranked.iter().map(Considered::of).collect();
    if !ranked.iter().any(|one| one.strategy == Strategy::PLAIN) {
        let plain = Candidate { strategy: Strategy::PLAIN, prediction: foretold };
        considered.push(Considered::of(&plain));
    }
    let mut note = |race: &mut Race, strategy: Strategy, trial: Trial| {
        let whole_s = trial.read_s * app.reads;
        race.record(strategy, whole_s * rules.sample);
        if let Some(one) = considered.iter_mut().find(|one| one.strategy == strategy) {
            one.measured.push(whole_s);
        }
    };
    if let Some(trial) = first {
        note(&mut race, Strategy::PLAIN, trial);
        let mut longest_s = trial.spent_s;
        stopped = Stopped::Clear;
        for _ in 1..MOST_TRIALS {
            let Some(strategy) = race.next() else { break };
            if !spending.affords(longest_s) {
                stopped = Stopped::Spent;
                break;
            }
            let trial = run(strategy)?;
            spending.spent_s += trial.spent_s;
            longest_s = longest_s.max(trial.spent_s);
            note(&mut race, strategy, trial);
        }
    }
    let verdict = race.verdict();
    let strategy = if verdict.gain >= WORTH { verdict.strategy } else { Strategy::PLAIN };
    let Spending { budget_s, spent_s } = spending;
    Ok(Advice { strategy, verdict, considered, refused, budget_s, spent_s, stopped })
}

/// The plain run, whether or not its memory is enough: it is what would be run anyway.
fn rough(machine: &Machine, app: &Application, threads: u32) -> Prediction {
    let fits = |app: &Application| predict(machine, app, &Strategy::PLAIN, threads);
    let smaller = || fits(&Application { index_bytes: 0, private_bytes: 0, ..*app });
    let none = Prediction { seconds: f64::NAN, low: f64::NAN, high: f64::NAN };
    fits(app).or_else(|_| smaller()).unwrap_or(none)
}

struct Spending {
    budget_s: f64,
    spent_s: f64,
}

impl Spending {
    fn affords(&self, seconds: f64) -> bool {
        self.spent_s + seconds <= self.budget_s
    }
}

impl Considered {
    fn of(candidate: &Candidate) -> Self {
        Self { strategy: candidate.strategy, predicted: candidate.prediction, measured: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
