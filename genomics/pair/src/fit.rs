//! Purity, depth and states of copies that explain what segments and changes show.
//!
//! A segment in which tumour cells have `n` copies, `b` of the rarer allele, is `d (p n + 2 (1 - p)) / 2` times as deep as the normal, and a share `(p b + 1 - p) / (p n + 2 (1 - p))`
//! of its reads has that allele, where `p` is the share of tumour cells and `d` the ratio of depths at two copies (ASCAT, Van Loo 2010; ABSOLUTE, Carter 2012). Each segment is in some
//! state, more likely in a usual one; all of them in those of a genome that was doubled as a whole, or in those of one that was not.

use crate::changes::Changes;
use crate::segments::{Balance, STEPS, Segment};
use crate::states::{State, partly, whole};

/// Purities that are looked at, from and to.
pub const PURITY: [f64; 2] = [0.05, 1.0];
/// Copies of the genome, on average, that are looked at.
const PLOIDY: [f64; 2] = [1.1, 6.5];
/// How likely a genome is to be doubled and yet explained about as well without. One that has not lost alleles before looks as one of less purity that was
/// not doubled, and few have not: of those that have, segments say enough to make up for it.
const DOUBLED: f64 = 0.01;
/// How likely a segment is to be in no state that is known.
const ODD: f64 = 1e-4;
/// What depths of segments are off beyond chance: one of these, whichever fits.
const OFF: [f64; 5] = [0.003, 0.006, 0.012, 0.025, 0.05];

/// Purity and depth, and what follows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fit {
    /// Share of tumour cells.
    pub purity: f64,
    /// Reads of the tumour for each of the normal where both have two copies.
    pub diploid: f64,
    /// What depths are off.
    off: f64,
    /// Log-likelihood, with what is known before.
    pub log: f64,
    /// Copies of the genome.
    pub ploidy: f64,
    /// Share of it of which one parent's copy is lost.
    pub lost: f64,
    /// Share of it that has two copies, one of each parent.
    pub even: f64,
    /// Share of it that is in no state that is known.
    pub odd: f64,
}

/// What is to be explained.
pub struct Model<'a> {
    segments: &'a [Segment],
    changes: &'a Changes,
    /// Of all segments.
    mean: f64,
    weight: f64,
    whole: Vec<State>,
    all: Vec<State>,
}

impl<'a> Model<'a> {
    /// Of segments and changes.
    pub fn new(segments: &'a [Segment], changes: &'a Changes) -> Model<'a> {
        let weight: f64 = segments.iter().map(|segment| segment.weight).sum();
        let mean =
            segments.iter().map(|segment| segment.weight * segment.ratio).sum::<f64>() / weight.max(1e-9);
        let whole = whole();
        let all = whole.iter().copied().chain(partly()).collect();
        Model { segments, changes, mean, weight, whole, all }
    }

    /// How good each purity and depth is; with the states that the segments are in only if `fully`, and of parts of the cells.
    pub fn fit(&self, purity: f64, diploid: f64, off: f64, fully: bool) -> Fit {
        let states = if fully { &self.all } else { &self.whole };
        let kinds: Vec<(usize, f64, f64)> = states
            .iter()
            .map(|state| {
                let [a, b] = state.copies.map(|copies| purity * copies + 1.0 - purity);
                let minor = a.min(b) / (a + b).max(1e-9);
                let at = (minor * 2.0 * STEPS as f64).min(STEPS as f64 - 1e-6);
                (at as usize, at.fract(), diploid * (a + b) / 2.0)
            })
            .collect();
        let mut sums = [(1.0 - DOUBLED).ln(), DOUBLED.ln()];
        let mut logs: Vec<f64> = vec![0.0; states.len()];
        let mut chosen: Vec<[(usize, f64, f64); 2]> = Vec::with_capacity(self.segments.len());
        for segment in self.segments {
            for (log, &(at, part, ratio)) in logs.iter_mut().zip(&kinds) {
                *log = segment.balance[at] * (1.0 - part)
                    + segment.balance[at + 1] * part
                    + self.depth(segment, ratio, off);
            }
            let odd = self.odd(segment);
            let best = std::array::from_fn(|doubled| {
                let with = || states.iter().zip(&logs).map(|(state, log)| state.prior[doubled] + log);
                let (i, most) =
                    with().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::NEG_INFINITY));
                let most = most.max(odd);
                let sum = with().map(|log| (log - most).exp()).sum::<f64>() + (odd - most).exp();
                sums[doubled] += most + sum.ln();
                (i, ((odd - most).exp() / sum), segment.weight)
            });
            chosen.push(best);
        }
        let doubled = usize::from(sums[1] > sums[0]);
        let mut fit = Fit { purity, diploid, off, log: sums[0].max(sums[1]), ..Fit::default() };
        let share = |weight: f64| weight / self.weight.max(1e-9);
        for (segment, best) in self.segments.iter().zip(&chosen) {
            let (i, odd, weight) = best[doubled];
            let state = &states[i];
            let [a, b] = state.copies;
            // Of what is in no state the depth still tells copies.
            let copies = (2.0 * segment.ratio / diploid - 2.0 * (1.0 - purity)) / purity;
            fit.ploidy += share(weight) * ((1.0 - odd) * (a + b) + odd * copies.max(0.0));
            fit.lost += share(weight) * (1.0 - odd) * state.lost;
            fit.odd += share(weight) * odd;
            fit.even += share(weight) * (1.0 - odd) * f64::from(u8::from(state.copies == [1.0, 1.0]));
        }
        if fully {
            let own: Vec<&State> = chosen.iter().map(|best| &states[best[doubled].0]).collect();
            let usual: Vec<(&State, f64)> = own
                .iter()
                .zip(self.segments)
                .map(|(state, segment)| (*state, share(segment.weight)))
                .collect();
            fit.log += self.changes.log(purity, &own, &usual);
        }
        fit
    }

    /// Natural logarithm of how likely a segment's depth is, where `ratio` is expected.
    fn depth(&self, segment: &Segment, ratio: f64, off: f64) -> f64 {
        // Half of the chance is the tumour's reads, of which there are fewer where copies are.
        let variance = segment.variance * (self.mean * ratio + ratio * ratio) / 2.0 + (off * ratio).powi(2);
        let variance = variance.max((0.003 * self.mean).powi(2));
        let away = segment.ratio - ratio;
        -away * away / (2.0 * variance) - (2.0 * std::f64::consts::PI * variance).ln() / 2.0
    }

    /// Of a segment in no state: any depth, any balance.
    fn odd(&self, segment: &Segment) -> f64 {
        ODD.ln() + mean_of(&segment.balance) - (3.0 * self.mean).max(1e-9).ln()
    }

    /// All that explain it about as well as can be: the best of each kind, the best first.
    pub fn best(&self) -> Vec<Fit> {
        let mut coarse: Vec<Fit> = Vec::new();
        let steps = 48;
        for i in 0..=steps {
            let purity = PURITY[0] + (PURITY[1] - PURITY[0]) * f64::from(i) / f64::from(steps);
            let [most, least] = PLOIDY.map(|ploidy| self.diploid(purity, ploidy));
            let parts = ((most / least).ln() / 0.012).ceil().max(1.0) as u32;
            let step = (most / least).ln() / f64::from(parts);
            coarse.extend(
                (0..=parts).map(|j| self.fit(purity, least * (step * f64::from(j)).exp(), 0.02, false)),
            );
        }
        coarse.sort_by(|a, b| b.log.total_cmp(&a.log));
        let mut chosen: Vec<Fit> = Vec::new();
        for fit in coarse {
            let like = |other: &Fit| {
                (fit.purity - other.purity).abs() < 0.07 && (fit.diploid / other.diploid).ln().abs() < 0.05
            };
            if chosen.len() < CANDIDATES && !chosen.iter().any(like) {
                chosen.push(fit);
            }
        }
        let mut found: Vec<Fit> = chosen.into_iter().map(|fit| self.climb(fit)).collect();
        found.sort_by(|a, b| b.log.total_cmp(&a.log));
        let mut kinds: Vec<Fit> = Vec::new();
        for fit in found {
            let like = |other: &Fit| {
                (fit.purity - other.purity).abs() < 0.02 && (fit.ploidy - other.ploidy).abs() < 0.1
            };
            if !kinds.iter().any(like) {
                kinds.push(fit);
            }
        }
        kinds
    }

    /// Depth at two copies, if the genome has so many.
    fn diploid(&self, purity: f64, ploidy: f64) -> f64 {
        2.0 * self.mean / (purity * ploidy + 2.0 * (1.0 - purity))
    }

    /// The best nearby.
    fn climb(&self, from: Fit) -> Fit {
        let mut best = Fit { log: f64::NEG_INFINITY, ..from };
        for off in OFF {
            let fit = self.fit(from.purity, from.diploid, off, true);
            if fit.log > best.log {
                best = fit;
            }
        }
        for halved in 0..5 {
            let by = 0.5f64.powi(halved);
            let mut again = 12;
            while again > 0 {
                again -= 1;
                let before = best.log;
                for (purity, depth) in [
                    (0.02, 0.0),
                    (-0.02, 0.0),
                    (0.0, 0.01),
                    (0.0, -0.01),
                    (0.02, -0.01),
                    (-0.02, 0.01),
                    (0.02, 0.01),
                    (-0.02, -0.01),
                ] {
                    let purity = (best.purity + purity * by).clamp(PURITY[0], PURITY[1]);
                    let fit = self.fit(purity, best.diploid * (1.0 + depth * by), best.off, true);
                    if fit.log > best.log + 1e-9 {
                        best = fit;
                    }
                }
                if best.log <= before {
                    break;
                }
            }
            for off in OFF {
                let fit = self.fit(best.purity, best.diploid, off, true);
                if fit.log > best.log {
                    best = fit;
                }
            }
        }
        best
    }

    /// Along the purity, from one that is good, as long as it is not `less` worse: the best of each.
    pub fn along(&self, from: Fit, less: f64) -> Vec<Fit> {
        let mut all = vec![from];
        for side in [-1.0, 1.0] {
            let mut last = from;
            loop {
                let purity = last.purity + side * STEP;
                if !(PURITY[0]..=PURITY[1]).contains(&purity) {
                    break;
                }
                let mut best = Fit { log: f64::NEG_INFINITY, ..last };
                // The depth of two copies such that the whole stays as deep, or near that.
                let whole = self.diploid(purity, last.ploidy);
                for start in [last.diploid, whole] {
                    for by in [-0.008, -0.004, -0.002, -0.001, 0.0, 0.001, 0.002, 0.004, 0.008] {
                        let fit = self.fit(purity, start * (1.0 + by), from.off, true);
                        if fit.log > best.log {
                            best = fit;
                        }
                    }
                }
                all.push(best);
                last = best;
                if best.log < from.log - less {
                    break;
                }
            }
        }
        all
    }
}

/// Kinds of explanation that are looked at closely.
const CANDIDATES: usize = 14;
/// Step of the purity.
const STEP: f64 = 0.005;

fn mean_of(balance: &Balance) -> f64 {
    let most = balance.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (balance.iter().map(|log| (log - most).exp()).sum::<f64>() / balance.len() as f64).ln() + most
}
