//! Pilots played with a table's times and its noise.

use super::Case;
use crate::pilot::{Candidate, Race, Rules, starters};
use crate::strategy::Strategy;

/// One race, from its first trial to its verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// What the race chose.
    pub strategy: Strategy,
    /// Time of that choice and of all trials over the best strategy's time, less 1.
    pub regret: f64,
    /// Time of the trials over the best strategy's time.
    pub cost: f64,
    /// How many trials there were.
    pub trials: u32,
}

/// Lets the best of `ranked` race on `case`. A trial takes its share of the published time, off by a factor whose
/// logarithm is normal with the published relative error; `seed` chooses the draws.
pub fn race(case: &Case, ranked: &[Candidate], rules: Rules, seed: u64) -> Outcome {
    let mut draws = Draws(seed);
    let plain = ranked.iter().find(|c| c.strategy == Strategy::PLAIN).or(ranked.first());
    let (best_strategy, best) = case.best();
    let Some(plain) = plain else {
        return Outcome { strategy: best_strategy, regret: f64::INFINITY, cost: 0.0, trials: 0 };
    };
    let mut race = Race::new(&starters(ranked), plain.prediction, rules);
    let (mut spent, mut trials) = (0.0, 0);
    while let Some(strategy) = race.next() {
        let Some(run) = case.run(strategy) else { break };
        let seconds = rules.sample * run.seconds * (run.error * draws.normal()).exp();
        race.record(strategy, seconds);
        spent += seconds;
        trials += 1;
    }
    let strategy = race.verdict().strategy;
    Outcome { strategy, regret: case.regret(strategy) + spent / best, cost: spent / best, trials }
}

/// Pseudo-random draws: SplitMix64 (Steele, Lea and Flood 2014).
struct Draws(u64);

impl Draws {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Above 0, up to 1.
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Normal, mean 0, standard deviation 1 (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.unit(), self.unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
