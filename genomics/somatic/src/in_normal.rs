//! The share of the normal's cells that are the tumour's, from alleles that the tumour clearly has ([`crate::own_alleles`]).
//!
//! The tumour's counts tell how frequent each allele is there (a mixture of fractions, of which only those counts are seen that are frequent enough). In
//! the normal it has `ratio` times that, beside the errors that the normal's bases have anywhere, and is seen up to a known bound only, below which hardly an
//! inherited allele is. What is as frequent in both samples for other reasons, as in a repeat, is a second kind, if there is any. The ratio that makes all counts likeliest, times the tumour's purity, is the share.

use std::collections::HashMap;

use genuma_pair::interval::{Estimate, log_factorials};
use genuma_pair::tumour::Clone;

use crate::own_alleles::{OwnAlleles, Seen, least, most};

/// Why nothing is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untold {
    /// The tumour has too few alleles of its own.
    Few,
    /// How pure the tumour is, is not known.
    Purity,
    /// The normal has so much of the tumour's alleles that they look inherited.
    Much,
}

impl Untold {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Untold::Few => "too few changes that the normal clearly lacks",
            Untold::Purity => "the tumour's purity is not known",
            Untold::Much => "the normal has so much of it that the tumour's changes look inherited",
        }
    }
}

/// Fewest alleles, each seen at two roots.
const ALLELES: u64 = 10;
/// How many roots say as much as one: both of an allele are of mostly the same reads.
const ROOTS: f64 = 2.0;
/// Times by which counts may vary more than draws do if most molecules count once.
const SINGLE_MOLECULES: f64 = 1.5;
/// Times the usual depth of the normal up to which a root stands in one place of the genome.
const SINGLE: f64 = 2.0;
/// Ratios that are tried, and up to which value one is believed: half of what is inherited, beyond which counts are not looked at.
const RATIOS: (usize, f64) = (300, 0.5);
const BELIEVED: f64 = 0.4;
/// Fractions of the tumour's alleles that are told apart, and rounds by which they are weighed.
const FRACTIONS: usize = 48;
const ROUNDS: usize = 60;
/// Rounds by which the share of what both samples have alike is weighed, at each ratio; and by how much (logarithm) it has to explain the counts better.
const FEW_ROUNDS: usize = 8;
const BETTER: f64 = 4.0;
/// Rounds by which it is found how many counts a molecule makes.
const ROUNDS_OF_VARIABLE: usize = 12;
/// Share of what is looked at that may be inherited alleles of which the normal happens to have few reads.
const LEAK: f64 = 0.002;

/// Alleles that are alike in all that matters.
struct Cell {
    /// Of the normal, as if each were of a molecule of its own.
    normal: [f64; 2],
    /// Most that are looked at, and all, of the normal: whole ones.
    bound: [usize; 2],
    /// In the tumour: what it is likely to be, and what is seen of it.
    fraction: f64,
    seen: f64,
    error: f64,
    roots: f64,
}

/// The share of the normal's cells that are the tumour's. `usual` is how often the normal has a k-mer of one place.
pub fn share(own: &OwnAlleles, usual: f64, clone: Option<&Clone>) -> Result<Estimate, Untold> {
    let ratio = ratio(own, usual)?;
    let Some(purity) = clone.and_then(|clone| clone.purity) else { return Err(Untold::Purity) };
    let copies = clone.and_then(|clone| clone.ploidy).map_or(2.0, |ploidy| ploidy.value);
    // A tumour cell may have more of the genome than a healthy one.
    let of = |ratio: f64, purity: f64| {
        let beyond = copies - 2.0;
        let product = ratio * purity;
        (2.0 * product / (2.0 + beyond * (purity - product))).min(1.0)
    };
    let value = of(ratio.value, purity.value);
    // What is uncertain of both adds up.
    let end = |of_ratio: f64, of_purity: f64| (of_ratio - value).hypot(of_purity - value);
    let low = value - end(of(ratio.low, purity.value), of(ratio.value, purity.low));
    let high = value + end(of(ratio.high, purity.value), of(ratio.value, purity.high));
    Ok(Estimate { value, low: low.max(0.0), high: high.min(1.0) })
}

/// How frequent the tumour's alleles are in the normal, over how frequent they are in the tumour.
fn ratio(own: &OwnAlleles, usual: f64) -> Result<Estimate, Untold> {
    let variable = variable(own, usual);
    // Counts of single molecules, a few of which count twice, are taken as they are: only the interval is wider.
    let molecule = if variable < SINGLE_MOLECULES { 1.0 } else { variable };
    let says = variable / molecule * ROOTS;
    let cells = cells(own, usual, molecule);
    if cells.iter().map(|cell| cell.roots).sum::<f64>() < (2 * ALLELES) as f64 {
        return Err(Untold::Few);
    }
    let deepest = cells.iter().map(|cell| cell.bound[1]).max().unwrap_or(0);
    let logs = log_factorials(deepest);
    let ratios = (0..=RATIOS.0).rev().map(|i| RATIOS.1 * (i as f64 / RATIOS.0 as f64).powf(1.5));
    // What is as frequent in both, where there is any: from the highest ratio on, as there hardly anything has to be.
    let alike: Vec<f64> = cells.iter().map(|cell| cell.log(cell.seen, &logs)).collect();
    let mut share = 0.01;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for ratio in ratios {
        let own: Vec<f64> =
            cells.iter().map(|c| c.log((ratio * c.fraction + c.error).min(0.99), &logs)).collect();
        alone.push((ratio, cells.iter().zip(&own).map(|(cell, own)| cell.roots * own).sum::<f64>() / says));
        let mut log = 0.0;
        for _ in 0..FEW_ROUNDS {
            let mut found = [0.0; 2];
            log = 0.0;
            for ((cell, own), alike) in cells.iter().zip(&own).zip(&alike) {
                let most = own.max(*alike);
                let [own, alike] = [(1.0 - share) * (own - most).exp(), share * (alike - most).exp()];
                log += cell.roots * (most + (own + alike).ln());
                found[0] += cell.roots * alike / (own + alike);
                found[1] += cell.roots;
            }
            share = (found[0] / found[1]).clamp(1e-5, 0.9);
        }
        beside.push((ratio, log / says));
    }
    let best = |profile: &[(f64, f64)]| profile.iter().map(|at| at.1).fold(f64::NEG_INFINITY, f64::max);
    let profile = if best(&beside) > best(&alone) + BETTER { beside } else { alone };
    let ratio = Estimate::of_profile(&profile).ok_or(Untold::Few)?;
    if ratio.value > BELIEVED || ratio.high >= RATIOS.1 { Err(Untold::Much) } else { Ok(ratio) }
}

impl Cell {
    /// How likely so many of the normal are (logarithm), but for what does not depend on the fraction, if it has the allele in such a fraction and only counts
    /// up to the bound are looked at.
    fn log(&self, fraction: f64, logs: &[f64]) -> f64 {
        let [of, all] = self.normal;
        of * fraction.ln() + (all - of) * (1.0 - fraction).ln() - below(self.bound, fraction, logs).ln()
    }
}

/// The probability of up to so many of so many draws.
fn below([most, all]: [usize; 2], share: f64, logs: &[f64]) -> f64 {
    let (yes, no) = (share.ln(), (1.0 - share).ln());
    let log = |k: usize| logs[all] - logs[k] - logs[all - k] + k as f64 * yes + (all - k) as f64 * no;
    (0..=most.min(all)).map(|k| log(k).exp()).sum::<f64>().clamp(1e-300, 1.0)
}

/// The alleles by what matters of them, of which so many counts stand for a molecule.
fn cells(own: &OwnAlleles, usual: f64, variable: f64) -> Vec<Cell> {
    let errors = own.errors();
    let single = |seen: &Seen| f64::from(seen.normal[1]) <= SINGLE * usual;
    let whole = |n: u32| (f64::from(n) / variable).round() as usize;
    // Inherited alleles, of which there are many more, have few reads in the normal by chance: the fewest reads that are no such.
    let inherited: u64 = inherited(own, usual).map(|(_, of)| of[0]).sum();
    let few = |seen: &Seen| seen.normal[0] * 8 <= seen.normal[1] && single(seen);
    let all: u64 = own.seen.iter().filter(|(seen, _)| few(seen)).map(|(_, roots)| roots).sum();
    let leak = LEAK * all as f64 / inherited.max(1) as f64;
    let deepest = own.seen.iter().map(|(seen, _)| whole(seen.normal[1])).max().unwrap_or(0);
    let logs = log_factorials(deepest);
    let mut bounds: HashMap<usize, Option<usize>> = HashMap::new();
    let mut bound = |depth: usize| {
        let find = || (0..=depth / 4).take_while(|&n| below([n, depth], 0.5, &logs) <= leak).last();
        *bounds.entry(depth).or_insert_with(find)
    };
    let bounded = |(seen, roots): &(Seen, u64)| {
        let depth = whole(seen.normal[1]);
        // Up to where all are looked at that stand for so many.
        let most = (f64::from(most(seen.normal[1], seen.tumour) + 1) / variable - 0.5) as usize;
        let most = most.min(bound(depth)?);
        (single(seen) && whole(seen.normal[0]) <= most).then_some((*seen, *roots, [most, depth]))
    };
    let seen: Vec<(Seen, u64, [usize; 2])> = own.seen.iter().filter_map(bounded).collect();
    let mut by_tumour: Vec<([u32; 2], f64)> = seen.iter().map(|(s, n, _)| (s.tumour, *n as f64)).collect();
    by_tumour.sort_by_key(|(tumour, _)| *tumour);
    by_tumour.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0.0 };
        same
    });
    let fractions = fractions(&by_tumour, variable);
    let cell = |&(seen, roots, bound): &(Seen, u64, [usize; 2])| {
        let at = by_tumour.partition_point(|(tumour, _)| *tumour < seen.tumour);
        Cell {
            normal: seen.normal.map(|n| f64::from(n) / variable),
            bound,
            fraction: fractions[at],
            seen: (f64::from(seen.tumour[0]) / f64::from(seen.tumour[1])).min(0.9),
            error: errors[usize::from(seen.class)].max(1e-6),
            roots: roots as f64,
        }
    };
    seen.iter().map(cell).collect()
}

/// For each pair of counts of the tumour the allele's fraction there that is to be expected, of a mixture of fractions that makes all counts likeliest when
/// only those are seen that are frequent enough.
fn fractions(counts: &[([u32; 2], f64)], variable: f64) -> Vec<f64> {
    let grid: Vec<f64> = (1..=FRACTIONS).map(|i| i as f64 / FRACTIONS as f64).collect();
    let whole = |n: u32| (f64::from(n) / variable).round() as usize;
    let deepest = counts.iter().map(|(tumour, _)| whole(tumour[1])).max().unwrap_or(0);
    let logs = log_factorials(deepest + 1);
    let likely: Vec<Vec<f64>> = counts
        .iter()
        .map(|([of, all], _)| {
            let [own, others] = [*of, all - of].map(|n| f64::from(n) / variable);
            let bound = whole(least(*all)).max(1) - 1;
            let log = |f: f64| {
                // Nothing has all of the reads but for errors.
                let f = f.min(0.995);
                // Those that are too seldom are not seen.
                let seen = 1.0 - below([bound, whole(*all)], f, &logs);
                own * f.ln() + others * (1.0 - f).ln() - seen.max(1e-6).ln()
            };
            let logs: Vec<f64> = grid.iter().map(|&f| log(f)).collect();
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            logs.iter().map(|log| (log - most).exp()).collect()
        })
        .collect();
    let mut weights = vec![1.0 / FRACTIONS as f64; FRACTIONS];
    let all: f64 = counts.iter().map(|(_, roots)| roots).sum();
    for _ in 0..ROUNDS {
        let mut found = vec![0.0; FRACTIONS];
        for (likely, (_, roots)) in likely.iter().zip(counts) {
            let sum: f64 = likely.iter().zip(&weights).map(|(l, w)| l * w).sum();
            let each = roots / sum.max(f64::MIN_POSITIVE) / all;
            found.iter_mut().zip(likely.iter().zip(&weights)).for_each(|(f, (l, w))| *f += each * l * w);
        }
        weights = found;
    }
    let expected = |likely: &Vec<f64>| {
        let weighed = || likely.iter().zip(&weights).map(|(l, w)| l * w);
        weighed().zip(&grid).map(|(p, f)| p * f).sum::<f64>() / weighed().sum::<f64>().max(f64::MIN_POSITIVE)
    };
    likely.iter().map(expected).collect()
}

/// Roots where the normal has two alleles, by how often it has them, of single places: in repeats alleles are not half and half.
fn inherited(own: &OwnAlleles, usual: f64) -> impl Iterator<Item = (usize, [u64; 2])> + '_ {
    let single = move |depth: usize| depth as f64 >= 0.5 * usual && depth as f64 <= 1.5 * usual;
    own.balance.iter().copied().enumerate().filter(move |(depth, of)| of[0] > 0 && single(*depth))
}

/// How many times more counts vary than draws of molecules do, as both mates and copies count; 1 at least. By the balance of two inherited alleles.
fn variable(own: &OwnAlleles, usual: f64) -> f64 {
    let logs = log_factorials(own.balance.len());
    // Of molecules, as those roots are chosen whose rarer allele has more than a quarter.
    let square = |n: usize| {
        let (mut sum, mut all) = (0.0, 0.0);
        for k in (0..=n).filter(|k| 4 * k.min(&(n - k)) > n) {
            let chance = (logs[n] - logs[k] - logs[n - k] - n as f64 * std::f64::consts::LN_2).exp();
            sum += chance * (2.0 * k as f64 - n as f64).powi(2);
            all += chance;
        }
        sum / f64::max(all, f64::MIN_POSITIVE)
    };
    let there = || inherited(own, usual);
    let found: f64 = there().map(|(_, of)| of[1] as f64).sum();
    let mut variable = 1.0;
    for _ in 0..ROUNDS_OF_VARIABLE {
        let molecules = |n: usize| (n as f64 / variable).round() as usize;
        let expected: f64 = there().map(|(n, of)| of[0] as f64 * square(molecules(n))).sum();
        if expected > 0.0 {
            variable = f64::max((found / expected).sqrt(), 1.0);
        }
    }
    variable
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 to 1, the same each time.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        fn binomial(&mut self, n: u32, p: f64) -> u32 {
            (0..n).map(|_| u32::from(self.next() < p)).sum()
        }
    }

    /// What a sample pair shows.
    struct Pair {
        depths: [u32; 2],
        purity: f64,
        /// Tumour cells in the normal.
        share: f64,
        changes: usize,
        inherited: usize,
        /// How often each molecule counts.
        copies: u32,
    }

    fn own(pair: &Pair, seed: u64) -> OwnAlleles {
        let mut random = Random(seed);
        for _ in 0..10 {
            random.next();
        }
        let (mut own, error, copies) = (OwnAlleles::default(), 0.001, pair.copies);
        own.wrong = [1000; 6];
        own.looked = [1_000_000; 2];
        own.balance = vec![[0; 2]; 1024];
        for i in 0..pair.changes + pair.inherited {
            let depths =
                pair.depths.map(|depth| depth - depth / 4 + (random.next() * f64::from(depth / 2)) as u32);
            let fractions =
                if i < pair.changes { [pair.share / 2.0 + error, pair.purity / 2.0] } else { [0.5, 0.5] };
            // Two roots, which three quarters of the reads have both.
            let draw = |random: &mut Random, s: usize, part: u32| {
                random.binomial(depths[s] * part / 4, fractions[s])
            };
            let both = [0, 1].map(|s| draw(&mut random, s, 3));
            for _ in 0..2 {
                let [normal, tumour] = [0, 1].map(|s| {
                    [
                        (both[s] + draw(&mut random, s, 1)) * copies,
                        (depths[s] * 3 / 4 + depths[s] / 4) * copies,
                    ]
                });
                if normal[0].min(normal[1] - normal[0]) * 4 > normal[1] {
                    own.balance[normal[1] as usize][0] += 1;
                    own.balance[normal[1] as usize][1] += u64::from(normal[1].abs_diff(2 * normal[0])).pow(2);
                }
                if tumour[0] >= least(tumour[1]) && normal[0] <= most(normal[1], tumour) {
                    own.seen.push((Seen { normal, tumour, class: 2 }, 1));
                }
            }
        }
        own.seen.sort_unstable();
        own
    }

    fn usual(pair: &Pair) -> f64 {
        f64::from(pair.depths[0] * pair.copies)
    }

    fn clone(purity: f64) -> Clone {
        let estimate = |value: f64| Some(Estimate { value, low: value, high: value });
        Clone {
            purity: estimate(purity),
            ploidy: estimate(2.0),
            lost: Some(0.0),
            also: Vec::new(),
            word: String::new(),
            sites: 3000,
            changes: 300,
            segments: 10,
        }
    }

    /// The mean of what is told, and how many of the intervals hold the truth.
    fn told(pair: &Pair, seeds: u64) -> (f64, usize) {
        let of =
            |seed| share(&own(pair, 1 + 1000 * seed), usual(pair), Some(&clone(pair.purity))).expect("told");
        let all: Vec<Estimate> = (0..seeds).map(of).collect();
        let holds = all.iter().filter(|e| e.low <= pair.share && pair.share <= e.high).count();
        (all.iter().map(|e| e.value).sum::<f64>() / seeds as f64, holds)
    }

    #[test]
    fn what_is_not_looked_at_does_not_show() {
        for (depths, purity, copies) in
            [([24, 24], 0.7, 1), ([24, 24], 0.4, 1), ([24, 80], 0.9, 1), ([24, 48], 0.6, 2)]
        {
            for share in [0.0, 0.01, 0.03, 0.06, 0.1] {
                let pair = Pair { depths, purity, share, changes: 300, inherited: 5000, copies };
                let (mean, holds) = told(&pair, 20);
                let off = f64::max(0.003, 0.08 * share);
                assert!((mean - share).abs() < off, "{depths:?}, {purity}, {copies}: {share} told {mean}");
                assert!(holds >= 16, "{depths:?}, {purity}, {copies}: {share} in {holds}");
            }
        }
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        let pair = |share, changes, purity| Pair {
            depths: [24, 24],
            purity,
            share,
            changes,
            inherited: 5000,
            copies: 1,
        };
        let told = |pair: &Pair| share(&own(pair, 7), usual(pair), Some(&clone(pair.purity)));
        assert_eq!(told(&Pair { inherited: 0, ..pair(0.02, 8, 0.7) }), Err(Untold::Few));
        assert_eq!(share(&own(&pair(0.02, 300, 0.7), 7), 24.0, None), Err(Untold::Purity));
        // As frequent in the normal as in the tumour.
        assert!(told(&pair(0.4, 300, 0.4)).is_err());
        let much = told(&pair(0.3, 300, 0.9)).expect("a third of the tumour's");
        assert!(much.low <= 0.3 && much.high >= 0.3, "{much:?}");
    }
}
