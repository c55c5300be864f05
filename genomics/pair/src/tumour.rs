//! How pure a tumour is, and how many copies of its genome its cells have.
//!
//! At each site where the normal has two alleles the tumour's reads show their balance and, beside the normal's, how many there are. Both follow from the
//! share of tumour cells and from how many copies of each allele these have; a genome is in few such states, so the sites of all of it, wherever they lie,
//! are a mixture of few kinds. Changes of the tumour alone have shares of reads that follow from the same numbers. The share of tumour cells, the depth of one
//! copy and the weights of the states are those that make all of it likeliest (as ABSOLUTE, Carter 2012, and ASCAT, Van Loo 2010, do by segments).

use serde::{Deserialize, Serialize};

use crate::interval::{Estimate, log_factorials};
use crate::roots::Site;

/// What the tumour is like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Clone {
    /// Share of the cells that are the tumour's; nothing if neither copies nor changes tell.
    pub purity: Option<Estimate>,
    /// Copies of the genome in a tumour cell, on average.
    pub ploidy: Option<Estimate>,
    /// Share of the genome of which one parent's copy is lost.
    pub lost: Option<f64>,
    /// Sites of two alleles that were looked at.
    pub sites: u64,
    /// Changes of the tumour that were looked at.
    pub changes: u64,
}

/// Copies of the one allele and of the other.
const STATES: [[u8; 2]; 12] =
    [[1, 1], [1, 0], [2, 0], [2, 1], [2, 2], [3, 0], [3, 1], [3, 2], [4, 1], [3, 3], [4, 2], [5, 1]];
/// Sites that are looked at, at most.
const SITES: usize = 6_000;
/// Fewest of them, and fewest changes, from which anything is told.
const FEWEST: (usize, usize) = (300, 12);
/// Fewest molecules of the normal at a place: below, which sites have two alleles is half chance, and what the tumour shows there too.
const SHALLOW: f64 = 10.0;
/// Share of sites that fit no state.
const ODD: f64 = 0.03;
/// Rounds by which the weights of states are found.
const ROUNDS: usize = 12;
/// What each copy more or less than two costs in log-likelihood: the simpler of two explanations is the likelier.
const COPIES: f64 = 30.0;

/// Sites side by side, which have their copies in common; or one alone, where nobody knows where it lies.
struct Seen {
    /// Of the tumour at each: the rarer allele and all.
    alleles: Vec<[u32; 2]>,
    /// Reads of the tumour.
    tumour: f64,
    /// Reads that as deep a normal would have, given what it has: the shape of a gamma distribution.
    shape: f64,
    /// Places.
    weight: f64,
}

/// Sites that are taken together.
const TOGETHER: usize = 40;
/// What the depth of such a stretch may be off, beyond chance.
const OFF: f64 = 0.03;

/// From sites of two alleles in the normal, each with where it lies in the genome if that is known, and from the tumour's own changes: its reads without and
/// with each. `usual` reads of the normal cover a place; their coefficient of variation beyond chance is `unevenness`.
pub fn clone(het: &[(Site, Option<(u32, u32)>)], changes: &[[u32; 2]], usual: f64, unevenness: f64) -> Clone {
    let fits = |site: &&(Site, Option<(u32, u32)>)| {
        let depth = f64::from(site.0.normal[0] + site.0.normal[1]);
        depth >= 0.6 * usual && depth <= 1.5 * usual && site.0.tumour[0] + site.0.tumour[1] > 0
    };
    let mut sites: Vec<&(Site, Option<(u32, u32)>)> = het.iter().filter(fits).collect();
    let placed = sites.iter().filter(|site| site.1.is_some()).count();
    // Places say more than sites alone.
    let together = placed * 2 > sites.len();
    if together {
        sites.retain(|site| site.1.is_some());
        sites.sort_by_key(|site| site.1);
    } else {
        sites.truncate(SITES);
    }
    let alike = 1.0 / unevenness.max(0.05).powi(2);
    let near = |a: &&(Site, Option<(u32, u32)>), b: &&(Site, Option<(u32, u32)>)| {
        together && a.1.map(|place| place.0) == b.1.map(|place| place.0)
    };
    let seen: Vec<Seen> = sites
        .chunk_by(near)
        .flat_map(|contig| {
            // Stretches of one contig, about alike in size.
            let parts = contig.len().div_ceil(TOGETHER).max(1);
            contig.chunks(contig.len().div_ceil(parts))
        })
        .map(|own| Seen {
            alleles: own
                .iter()
                .map(|s| [s.0.tumour[0].min(s.0.tumour[1]), s.0.tumour[0] + s.0.tumour[1]])
                .collect(),
            tumour: own.iter().map(|s| f64::from(s.0.tumour[0] + s.0.tumour[1])).sum(),
            shape: own.iter().map(|s| f64::from(s.0.normal[0] + s.0.normal[1]) + alike).sum(),
            // Each place is seen from two sides.
            weight: own.len() as f64 / 2.0,
        })
        .collect();
    let changes: Vec<[u32; 2]> = changes.iter().copied().filter(|c| c[1] >= LEAST).collect();
    let none = Clone {
        purity: None,
        ploidy: None,
        lost: None,
        sites: sites.len() as u64,
        changes: changes.len() as u64,
    };
    if sites.len() < FEWEST.0 || usual < SHALLOW {
        return none;
    }
    let deepest = seen.iter().flat_map(|s| &s.alleles).map(|a| a[1]).max().unwrap_or(0);
    let deepest = deepest.max(changes.iter().map(|c| c[0] + c[1]).max().unwrap_or(0));
    let variable = variability(sites.iter().map(|site| site.0.normal));
    let model = Model {
        variable,
        logs: log_factorials(deepest as usize),
        seen,
        changes,
        each: 1.0 / (1.0 + alike / usual),
    };
    let sum = |of: fn(&Seen) -> f64| model.seen.iter().map(of).sum::<f64>();
    let mean = sum(|s| s.tumour) / (sum(|s| s.shape) * model.each).max(1.0);
    // By purity, the best there is: first wherever, then beside the best.
    let mut tried: Vec<Fit> = Vec::new();
    for i in 1..=25 {
        let purity = f64::from(i) / 25.0;
        tried.extend((0..=32).map(|j| model.fit(purity, mean * (0.4 + f64::from(j) * 0.04))));
    }
    let best = *tried.iter().max_by(|a, b| a.log.total_cmp(&b.log)).unwrap_or(&Fit::default());
    for i in -8..=8 {
        let purity = best.purity + f64::from(i) / 200.0;
        if (0.02..=1.0).contains(&purity) {
            tried.extend((-6..=6).map(|j| model.fit(purity, best.diploid * (1.0 + f64::from(j) * 0.007))));
        }
    }
    let best = *tried.iter().max_by(|a, b| a.log.total_cmp(&b.log)).unwrap_or(&best);
    if 1.0 - best.even < 0.02 && model.changes.len() < FEWEST.1 {
        // Two copies everywhere say nothing of purity.
        let ploidy = Some(Estimate { value: 2.0, low: 2.0, high: 2.0 });
        return Clone { ploidy, lost: Some(0.0), ..none };
    }
    let profile = |of: fn(&Fit) -> f64| {
        Estimate::of_profile(&tried.iter().map(|fit| (of(fit), fit.log)).collect::<Vec<_>>())
    };
    Clone {
        purity: profile(|fit| fit.purity),
        ploidy: profile(|fit| fit.ploidy),
        lost: Some(best.lost),
        ..none
    }
}

/// The variance of the balance of two alleles in the normal, where it is one half, over that of draws; 1 at least. Of draws as those who chose the sites
/// have left them: a quarter of the reads for each allele, and three.
fn variability(normal: impl Iterator<Item = [u32; 2]>) -> f64 {
    let (mut found, mut expected) = (0.0, 0.0);
    let mut by_depth: Vec<u64> = Vec::new();
    for [a, b] in normal {
        let depth = (a + b) as usize;
        if by_depth.len() <= depth {
            by_depth.resize(depth + 1, 0);
        }
        by_depth[depth] += 1;
        found += (f64::from(a) - f64::from(b)).powi(2) / 4.0;
    }
    let logs = log_factorials(by_depth.len());
    for (n, sites) in by_depth.iter().enumerate().filter(|(_, sites)| **sites > 0) {
        let (mut sum, mut all) = (0.0, 0.0);
        for k in (0..=n).filter(|k| 4 * k.min(&(n - k)) >= n && *k.min(&(n - k)) >= 3) {
            let chance = (logs[n] - logs[k] - logs[n - k] - n as f64 * std::f64::consts::LN_2).exp();
            sum += chance * (k as f64 - n as f64 / 2.0).powi(2);
            all += chance;
        }
        expected += *sites as f64 * sum / f64::max(all, f64::MIN_POSITIVE);
    }
    if expected > 0.0 { f64::max(found / expected, 1.0) } else { 1.0 }
}

/// Fewest reads of a change.
const LEAST: u32 = 4;

struct Model {
    logs: Vec<f64>,
    seen: Vec<Seen>,
    changes: Vec<[u32; 2]>,
    /// How many times more the balance of alleles varies than chance alone would have it.
    variable: f64,
    /// Reads of the normal that each unit of shape stands for.
    each: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Fit {
    purity: f64,
    /// Reads of the tumour for each of the normal where both have two copies.
    diploid: f64,
    log: f64,
    ploidy: f64,
    lost: f64,
    even: f64,
}

impl Model {
    fn binomial(&self, k: u32, n: u32, p: f64) -> f64 {
        self.choose(k, n) + f64::from(k) * p.max(1e-12).ln() + f64::from(n - k) * (1.0 - p).max(1e-12).ln()
    }

    /// The likeliest weights of the states with such a purity and depth of two copies, and how likely all is then.
    fn fit(&self, purity: f64, diploid: f64) -> Fit {
        let healthy = 1.0 - purity;
        let kinds: Vec<(f64, f64)> = STATES
            .iter()
            .map(|state| {
                let [a, b] = state.map(|copies| purity * f64::from(copies) + healthy);
                // A wrong base now and then.
                ((b / (a + b).max(1e-9)).clamp(0.002, 0.5), diploid * (a + b) / 2.0)
            })
            .collect();
        // Logarithms, relative to the best of each stretch.
        let mut logs: Vec<([f64; STATES.len()], f64, f64)> = Vec::with_capacity(self.seen.len());
        for s in &self.seen {
            let mut chances = [0.0; STATES.len()];
            for (chance, &(minor, ratio)) in chances.iter_mut().zip(&kinds) {
                let (ln, no) = (minor.ln(), (1.0 - minor).ln());
                let mut balance = 0.0;
                for &[rare, all] in &s.alleles {
                    // As if of fewer reads, which chance alone would vary so.
                    let (a, b) = (f64::from(rare) / self.variable, f64::from(all - rare) / self.variable);
                    let [one, other] = [a * ln + b * no, b * ln + a * no];
                    let choose = self.choose(rare, all);
                    let more = one.max(other);
                    balance += choose
                        + if 2 * rare == all {
                            one
                        } else {
                            more + (1.0 + (one.min(other) - more).exp()).ln()
                        };
                }
                *chance = balance / 2.0 + self.depth(s, ratio);
            }
            let odd: f64 =
                s.alleles.iter().map(|[_, all]| (2.0 / f64::from(all + 2)).ln() / 2.0).sum::<f64>()
                    - (3.0 * s.tumour + 1.0).ln();
            let best = chances.iter().copied().fold(odd, f64::max);
            logs.push((chances.map(|chance| (chance - best).exp()), (odd - best).exp(), best));
        }
        let mut weights = [1.0 / STATES.len() as f64; STATES.len()];
        let all: f64 = self.seen.iter().map(|s| s.weight).sum();
        let mut log = 0.0;
        for _ in 0..ROUNDS {
            let mut sums = [1e-3; STATES.len()];
            log = 0.0;
            for (s, (chances, odd, best)) in self.seen.iter().zip(&logs) {
                let parts: [f64; STATES.len()] = std::array::from_fn(|i| weights[i] * chances[i]);
                let sum: f64 = parts.iter().sum::<f64>();
                let total = (1.0 - ODD) * sum + ODD * odd;
                log += best + total.max(1e-300).ln();
                let share = s.weight * (1.0 - ODD) / total.max(1e-300);
                sums.iter_mut().zip(parts).for_each(|(a, p)| *a += share * p);
            }
            let total: f64 = sums.iter().sum();
            weights = sums.map(|sum| sum / total);
        }
        let copies = |i: usize| f64::from(STATES[i][0] + STATES[i][1]);
        let ploidy: f64 = (0..STATES.len()).map(|i| weights[i] * copies(i)).sum();
        let lost = (0..STATES.len()).filter(|&i| STATES[i][1] == 0).map(|i| weights[i]).sum();
        log += self.changed(purity, &weights);
        let odd_copies: f64 = (0..STATES.len()).map(|i| weights[i] * (copies(i) - 2.0).abs()).sum();
        log -= COPIES * odd_copies * (all / 100.0).min(1.0)
            + 0.5 * weights.iter().filter(|w| **w > 0.02).count() as f64 * all.ln();
        Fit { purity, diploid, log, ploidy, lost, even: weights[0] }
    }

    /// Natural logarithm of how likely a stretch's depth is, where the tumour has `ratio` reads for each of the normal. How deep places are in both the normal's
    /// reads say, and that places differ little: a gamma distribution of which they are a draw.
    fn depth(&self, seen: &Seen, ratio: f64) -> f64 {
        // Two sides show the same reads.
        let (mean, tumour) = (ratio * seen.shape * self.each / 2.0, seen.tumour / 2.0);
        let variance = (mean + 2.0 * mean * mean / seen.shape + (OFF * mean).powi(2)).max(0.25);
        let off = tumour - mean;
        -off * off / (2.0 * variance) - (2.0 * std::f64::consts::PI * variance).ln() / 2.0
    }

    fn choose(&self, k: u32, n: u32) -> f64 {
        self.logs[n as usize] - self.logs[k as usize] - self.logs[(n - k) as usize]
    }

    /// How likely the shares of the changes' reads are.
    fn changed(&self, purity: f64, weights: &[f64; STATES.len()]) -> f64 {
        if self.changes.is_empty() {
            return 0.0;
        }
        let mut kinds: Vec<(f64, f64)> = Vec::new();
        for (state, weight) in STATES.iter().zip(weights).filter(|(_, weight)| **weight > 0.01) {
            let all = purity * f64::from(state[0] + state[1]) + 2.0 * (1.0 - purity);
            let most = state[0].max(1);
            for copies in 1..=most {
                // Most changes are younger than the copies.
                let share = if most == 1 {
                    1.0
                } else if copies == 1 {
                    0.65
                } else {
                    0.35 / f64::from(most - 1)
                };
                kinds.push((purity * f64::from(copies) / all.max(1e-9), weight * share));
            }
        }
        // Of some cells only: any share below that of all.
        const SUBCLONAL: f64 = 0.12;
        const ANY: f64 = 0.04;
        let grid: Vec<f64> = (1..=8).map(|i| purity / 2.0 * f64::from(i) / 8.5).collect();
        let mut log = 0.0;
        for &[without, with] in &self.changes {
            let n = without + with;
            let at = |share: f64| {
                let share = share.clamp(1e-4, 0.995);
                let missed: f64 = (0..LEAST.min(n + 1)).map(|k| self.binomial(k, n, share).exp()).sum();
                self.binomial(with, n, share).exp() / (1.0 - missed).max(1e-3)
            };
            let clonal: f64 = kinds.iter().map(|(share, weight)| weight * at(*share)).sum();
            let subclonal = grid.iter().map(|share| at(*share)).sum::<f64>() / grid.len() as f64;
            let chance = (1.0 - SUBCLONAL - ANY) * clonal + SUBCLONAL * subclonal + ANY / f64::from(n + 1);
            log += chance.max(1e-300).ln();
        }
        log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balances_vary_as_chance_has_it_or_more() {
        let mut x = 3u64;
        let mut chance = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 40) as f64 / (1u64 << 24) as f64
        };
        // Draws of one half, and of shares that lie about it.
        for (spread, low, high) in [(0.0, 1.0, 1.08), (0.25, 1.08, 3.0)] {
            let sites: Vec<[u32; 2]> = (0..20_000)
                .filter_map(|_| {
                    let share = 0.5 + spread * (chance() - 0.5);
                    let one = (0..30).filter(|_| chance() < share).count() as u32;
                    (4 * one.min(30 - one) >= 30).then_some([one, 30 - one])
                })
                .collect();
            let variable = variability(sites.into_iter());
            assert!((low..high).contains(&variable), "{spread}: {variable}");
        }
        assert_eq!(variability(std::iter::empty()), 1.0);
    }
}
