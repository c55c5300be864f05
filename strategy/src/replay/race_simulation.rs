//! Simulates races of trials from the published run times and their errors.

use super::PublishedCase;
use crate::strategy::Strategy;
use crate::trial_race::{RaceCandidate, RaceRules, TrialRace, select_race_candidates};

/// Result of one simulated race.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RaceOutcome {
    /// Strategy that the race chose.
    pub strategy: Strategy,
    /// Time of the chosen strategy plus the time of all trials, divided by the time of the fastest strategy, minus 1.
    pub regret: f64,
    /// Time of all trials divided by the time of the fastest strategy.
    pub cost: f64,
    /// Number of simulated trials until the race ended.
    pub trials: u32,
}

/// Simulates a race of the best strategies of `ranked` on `case`. The time of a trial is its share of the published
/// time, multiplied by a log-normal factor whose standard deviation is the published relative error. `seed` selects the
/// random numbers.
pub(crate) fn simulate_race(
    case: &PublishedCase,
    ranked: &[RaceCandidate],
    rules: RaceRules,
    seed: u64,
) -> RaceOutcome {
    let mut draws = RandomDraws(seed);
    let plain = ranked.iter().find(|c| c.strategy == Strategy::PLAIN_RUN).or(ranked.first());
    let (best_strategy, best) = case.fastest_strategy();
    let Some(plain) = plain else {
        return RaceOutcome { strategy: best_strategy, regret: f64::INFINITY, cost: 0.0, trials: 0 };
    };
    let mut race = TrialRace::of_candidates(&select_race_candidates(ranked), plain.prediction, rules);
    let (mut spent, mut trials) = (0.0, 0);
    while let Some(strategy) = race.next_strategy_to_try() {
        let Some(run) = case.measured_run(strategy) else { break };
        let seconds = rules.sample * run.seconds * (run.error * draws.normal()).exp();
        race.record_trial(strategy, seconds);
        spent += seconds;
        trials += 1;
    }
    let strategy = race.verdict_so_far().strategy;
    RaceOutcome { strategy, regret: case.relative_regret(strategy) + spent / best, cost: spent / best, trials }
}

/// Pseudo-random numbers: SplitMix64 (Steele, Lea and Flood 2014).
struct RandomDraws(u64);

impl RandomDraws {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a random number from the uniform distribution over (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns a random number from the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.unit(), self.unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
