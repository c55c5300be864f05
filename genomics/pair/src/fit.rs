//! Purity, depth and states of copies that explain what segments and changes show.
//!
//! A segment in which tumour cells have `n` copies, `b` of the rarer allele, is `d (p n + 2 (1 - p)) / 2` times as deep as the normal, and a share `(p b + 1 - p) / (p n + 2 (1 - p))`
//! of its reads has that allele, where `p` is the share of tumour cells and `d` the ratio of depths at two copies (ASCAT, Van Loo 2010; ABSOLUTE, Carter 2012). Each segment is in some
//! state, more likely in a usual one; all of them in those of a genome that changed bit by bit, of one that was doubled as a whole, or of one with a large subclone, of which
//! the part of the cells is the same everywhere. A doubled genome and one with a subclone of half of the cells look alike: which it is then is what is likelier beforehand.

use std::ops::Range;

use crate::changes::Changes;
use crate::segments::{Balance, STEPS, Segment};
use crate::states::{State, partly, subclones, whole};

/// Purities that are looked at, from and to.
pub const PURITY: [f64; 2] = [0.05, 1.0];
/// Copies of the genome, on average, that are looked at.
const PLOIDY: [f64; 2] = [1.1, 6.5];
/// How likely a genome is to be doubled and yet explained about as well without. One that has not lost alleles before looks as one of less purity that was
/// not doubled, and few have not: of those that have, segments say enough to make up for it.
const DOUBLED: f64 = 0.01;
/// How likely a genome is to have a large subclone, and how likely a segment of such a one is to be in two states.
const SUBCLONE: f64 = 0.1;
const LARGE: f64 = 0.3;
/// Differences in log-likelihood beyond which a state does not count beside another.
const UNSEEN: f64 = 20.0;
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
    /// Share of the changes that are another person's alleles.
    pub foreign: f64,
}

/// What is to be explained.
pub struct Model<'a> {
    segments: &'a [Segment],
    changes: &'a Changes,
    /// Of all segments.
    mean: f64,
    weight: f64,
    /// Those of all genomes, and of those with a large subclone of each size.
    states: Vec<State>,
    common: Range<usize>,
    subclones: Vec<Range<usize>>,
}

/// Some of the states: which of them is the likeliest, the logarithm of how likely, and how likely all are beside it.
#[derive(Clone, Copy)]
struct Likely {
    best: usize,
    log: f64,
    sum: f64,
}

impl Likely {
    /// Of states with these logarithms.
    fn of(logs: impl Iterator<Item = (usize, f64)> + Clone) -> Likely {
        let none = (0, f64::NEG_INFINITY);
        let (best, most) = logs.clone().fold(none, |a, b| if b.1 > a.1 { b } else { a });
        let near = logs.map(|(_, log)| log - most).filter(|less| *less > -UNSEEN);
        Likely { best, log: most, sum: near.map(f64::exp).sum() }
    }

    fn times(self, log: f64) -> Likely {
        Likely { log: self.log + log, ..self }
    }

    /// Of either.
    fn or(self, other: Likely) -> Likely {
        let (more, less) = if self.log >= other.log { (self, other) } else { (other, self) };
        Likely { sum: more.sum + less.sum * (less.log - more.log).exp(), ..more }
    }

    /// Logarithm of how likely all are.
    fn all(self) -> f64 {
        self.log + self.sum.ln()
    }
}

impl<'a> Model<'a> {
    /// Of segments and changes.
    pub fn new(segments: &'a [Segment], changes: &'a Changes) -> Model<'a> {
        let weight: f64 = segments.iter().map(|segment| segment.weight).sum();
        let mean =
            segments.iter().map(|segment| segment.weight * segment.ratio).sum::<f64>() / weight.max(1e-9);
        let mut states: Vec<State> = whole().into_iter().chain(partly()).collect();
        let common = 0..states.len();
        let subclones = subclones().into_iter().map(|own| {
            let from = states.len();
            states.extend(own);
            from..states.len()
        });
        let subclones = subclones.collect();
        Model { segments, changes, mean, weight, states, common, subclones }
    }

    /// How good a purity, a depth and what depths are off are; by the changes too if they are to be looked at.
    pub fn fit(&self, purity: f64, diploid: f64, off: f64, with_changes: bool) -> Fit {
        let expected = |state: &State| {
            let [a, b] = state.copies.map(|copies| purity * copies + 1.0 - purity);
            let minor = a.min(b) / (a + b).max(1e-9);
            let at = (minor * 2.0 * STEPS as f64).min(STEPS as f64 - 1e-6);
            (at as usize, at.fract(), diploid * (a + b) / 2.0)
        };
        let expected: Vec<(usize, f64, f64)> = self.states.iter().map(expected).collect();
        // Of each way in which the genome may have come about: how likely it is; and of each segment, state by state of it, the likeliest and how likely it is in none.
        let subclone = (SUBCLONE / self.subclones.len() as f64).ln();
        let mut sums = vec![(1.0 - DOUBLED).ln(), DOUBLED.ln()];
        sums.resize(2 + self.subclones.len(), subclone);
        let mut chosen: Vec<(usize, f64)> = Vec::with_capacity(self.segments.len() * sums.len());
        let mut logs: Vec<f64> = vec![0.0; self.states.len()];
        for segment in self.segments {
            for (log, &(at, part, ratio)) in logs.iter_mut().zip(&expected) {
                *log = segment.balance[at] * (1.0 - part)
                    + segment.balance[at + 1] * part
                    + self.depth(segment, ratio, off);
            }
            let of = |range: &Range<usize>, doubled: usize| {
                Likely::of(range.clone().map(|i| (i, self.states[i].prior[doubled] + logs[i])))
            };
            let plain = of(&self.common, 0);
            let rest = plain.times((1.0 - LARGE).ln());
            let subclones = self.subclones.iter().map(|range| of(range, 0).times(LARGE.ln()).or(rest));
            let odd = self.odd(segment);
            for (sum, likely) in
                sums.iter_mut().zip([plain, of(&self.common, 1)].into_iter().chain(subclones))
            {
                let all = likely.or(Likely { best: likely.best, log: odd, sum: 1.0 }).all();
                *sum += all;
                chosen.push((likely.best, (odd - all).exp()));
            }
        }
        let kinds = sums.iter().copied().enumerate();
        let (kind, log) = kinds.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
        let chosen: Vec<(&State, f64)> =
            chosen.chunks(sums.len()).map(|own| own[kind]).map(|(i, odd)| (&self.states[i], odd)).collect();
        let mut fit = Fit { purity, diploid, off, log, ..Fit::default() };
        let share = |weight: f64| weight / self.weight.max(1e-9);
        for (segment, &(state, odd)) in self.segments.iter().zip(&chosen) {
            let weight = share(segment.weight);
            let [a, b] = state.copies;
            // Of what is in no state the depth still tells copies.
            let copies = (2.0 * segment.ratio / diploid - 2.0 * (1.0 - purity)) / purity;
            fit.ploidy += weight * ((1.0 - odd) * (a + b) + odd * copies.max(0.0));
            fit.lost += weight * (1.0 - odd) * state.lost;
            fit.odd += weight * odd;
            fit.even += weight * (1.0 - odd) * f64::from(u8::from(state.copies == [1.0, 1.0]));
        }
        if with_changes {
            let own: Vec<&State> = chosen.iter().map(|(state, _)| *state).collect();
            let usual = own.iter().zip(self.segments).map(|(state, segment)| (*state, share(segment.weight)));
            let (log, foreign) = self.changes.log(purity, &own, &usual.collect::<Vec<_>>());
            fit.log += log;
            fit.foreign = foreign;
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
