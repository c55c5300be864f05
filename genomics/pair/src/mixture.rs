//! How much of a sample is another person's.
//!
//! At sites where the other sample has one allele only, a few reads with another one are errors, or another person's. Errors are about as frequent at every
//! site; another person has alleles of his own at about two thirds as many sites as the samples have two, where half of the contamination shows, and at some more sites, a sixth as many, where
//! all of it does (that is so of people whose alleles have frequencies as of neutral changes: Watterson 1975; KING's kinship of them is 0, Manichaikul 2010); a tumour has changes of
//! its own, in about one share of its reads or, of parts of its cells, in less. So the counts of sites by how many reads have a second allele tell all of them, at any depth and in any
//! species.

use serde::{Deserialize, Serialize};

use crate::interval::{Estimate, log_factorials};
use crate::roots::{DEPTHS, MINORS, RootTally};
use crate::sampled::told;

/// How much of a sample is foreign.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Contamination {
    /// The share of its DNA.
    pub share: Estimate,
    /// Sites that it rests on.
    pub sites: u64,
}

/// Shares that are looked at, of more the alleles of both are a mixture; and the finest that are, around the likeliest of them.
const SHARES: [f64; 24] = [
    0.0, 0.002, 0.004, 0.007, 0.01, 0.014, 0.018, 0.023, 0.028, 0.034, 0.04, 0.047, 0.054, 0.062, 0.07, 0.08,
    0.09, 0.1, 0.115, 0.13, 0.16, 0.2, 0.25, 0.3,
];
const FINE: u32 = 4;

/// A few of them.
const COARSE: [f64; 7] = [0.0, 0.008, 0.02, 0.04, 0.08, 0.13, 0.2];
/// How many sites there are, over those where the sample has two alleles, at which the other person has one of two alleles that this one lacks, and at which
/// both are.
pub(crate) const FOREIGN: [f64; 2] = [0.65, 0.175];
/// How far that may be from there: standard deviations of the logarithms, and how many of these are tried.
const VARIES: [f64; 2] = [0.08, 0.15];
const DENSER: [f64; 3] = [-1.4, 0.0, 1.4];
/// How likely a share is before anything is seen: one over the root of `1 + share / RARE`. Most samples have next to nothing.
const RARE: f64 = 0.02;
/// Changes of the sample's own, in the share of its sites of two alleles that they are; the share of the reads that have them; the part of them that parts of the
/// cells have, and how unlikely that is, in natural logarithms; the part that are transitions.
const OWN: [f64; 8] = [0.003, 0.01, 0.03, 0.07, 0.14, 0.28, 0.5, 0.9];
const READS: [f64; 8] = [0.08, 0.12, 0.17, 0.22, 0.28, 0.35, 0.42, 0.49];
const PARTLY: [f64; 3] = [0.0, 0.3, 0.6];
const UNLIKELY: [f64; 3] = [0.0, 0.5, 1.5];
const KINDS: usize = READS.len() * PARTLY.len();
const TRANSITIONS: [f64; 3] = [0.6, 0.45, 0.8];
/// Changes a base from which on more are less likely, as shares are.
const CHANGES: f64 = 2e-5;
/// Shares of the reads below which changes are of few cells.
const FEW: f64 = 0.15;
/// How unlikely a normal has changes of its own in so many reads, in natural logarithms.
const NORMAL: f64 = 6.0;
/// Ways of having changes that are looked at closely: the likeliest.
const LIKELIEST: usize = 5;
/// And so many beside each share of a few.
const BESIDE: usize = 2;
/// Fewest sites, and fewest of the sample's own sites of two alleles among as many: another person has about as many of his own. In less a few places where
/// the library or the genome is odd would be taken for another person.
const SITES: u64 = 20_000;
const HET: f64 = 250.0;
/// Wrong bases that a molecule more has too: of copies of which the copying was not seen, for each share of copies, and where bases are more often wrong. How many times more or
/// less there are is found out.
const TWICE: f64 = 0.03;
const TIMES: [f64; 3] = [0.5, 1.5, 4.0];
/// Standard deviation of the logarithm of that.
const TIMES_VARY: f64 = 0.7;
/// Substitutions that are so much more frequent than the rarest are left out: they are damage.
const DAMAGE: f64 = 1.8;
/// Where the other sample has a read of the second allele too: largest share of the sites that may be of a foreign person's alleles, and so many of the sample's own
/// reads that have it at most: where it has more the allele may be inherited, and the other sample happens to have few reads of it or has lost it.
const FOREIGN_MOST: f64 = 0.97;
const FEW_READS: usize = 2;
/// How often a site has a second allele for a reason that nobody thought of.
const UNKNOWN: f64 = 2e-7;

/// Changes of the sample's own.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Own {
    /// Share of the sites.
    sites: f64,
    /// Which of [`READS`], and of [`PARTLY`].
    kind: usize,
    transitions: f64,
    /// Natural logarithm of how likely it is before anything is seen.
    prior: f64,
}

/// A sample, and what is known of the pair.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// 0 the normal, 1 the tumour.
    pub sample: usize,
    /// Molecules that cover a place, in it and in the other sample.
    pub usual: [f64; 2],
    /// Share of its pairs that are copies.
    pub copies: f64,
    /// Share of the sites at which the person has two alleles.
    pub het: f64,
    /// Share of the sites at which the sample has two alleles and the other one has lost one of them.
    pub lost: f64,
    /// Share of the other sample that is the same foreign person's.
    pub other: f64,
    /// Whether that is about known: then sites count at which both samples have some reads of an allele.
    pub both: bool,
}

/// Contamination of a sample; nothing where there are too few sites.
pub fn contamination(tally: &RootTally, known: &Known) -> Option<Contamination> {
    let &Known { sample, usual: [usual, beside], copies, het, lost, other, both } = known;
    let rows = rows(tally, sample, usual, both);
    // Each site is there once for each base that it could be taken for.
    let sites = rows.iter().flat_map(|row| &row.sites).sum::<f64>() / 3.0;
    if (sites as u64) < SITES || sites * het < HET {
        return None;
    }
    // The other sample shows one allele only, where it has two.
    let lost = lost + 2.0 * het * (beside * 0.5f64.ln()).exp();
    // A place is seen from both of its sides if both roots were sampled.
    let could = tally.could_share(sample);
    let all = Rows::new(&rows, copies, lost, 1.0 + tally.share, beside * other, could);
    let densities = |denser: f64| [0, 1].map(|i| het * FOREIGN[i] * (VARIES[i] * denser).exp());
    let prior = |share: f64| -(1.0 + share / RARE).ln() / 2.0;
    // The sample's own changes first, then what fits beside them.
    let coarse = COARSE.map(|share| (share, all.foreign(share)));
    let logs = |own: &Own| {
        coarse.each_ref().map(|(share, foreign)| {
            own.prior + all.likelihood(foreign, densities(0.0), own, TIMES[1]) + prior(*share)
        })
    };
    let mut near = likeliest(owns(het, sample == 0), logs);
    let other = TRANSITIONS.into_iter().filter(|share| *share != TRANSITIONS[0]);
    let others = other.flat_map(|transitions| near.iter().map(move |own| Own { transitions, ..*own }));
    near = likeliest(near.iter().copied().chain(others).collect(), logs);
    near.push(Own::NONE);
    let fit = |share: f64| {
        let foreign = all.foreign(share);
        let each = DENSER.iter().flat_map(|denser| TIMES.map(|times| (*denser, times)));
        let each = each.flat_map(|(denser, times)| near.iter().map(move |own| (denser, times, own)));
        let log = |(denser, times, own): (f64, f64, &Own)| {
            let apart = denser * denser + (times.ln() / TIMES_VARY).powi(2);
            all.likelihood(&foreign, densities(denser), own, times) + own.prior - apart / 2.0
        };
        (share, each.map(log).fold(f64::NEG_INFINITY, f64::max))
    };
    let mut profile: Vec<(f64, f64)> = SHARES.into_iter().map(fit).collect();
    let likely = profile.iter().map(|one| one.1).fold(f64::NEG_INFINITY, f64::max) - 4.0;
    let between: Vec<f64> = profile
        .windows(2)
        .filter(|two| two.iter().any(|one| one.1 > likely))
        .flat_map(|two| {
            let ([from, to], parts) = ([two[0].0, two[1].0], f64::from(FINE));
            (1..FINE).map(move |i| from + (to - from) * f64::from(i) / parts)
        })
        .collect();
    profile.extend(between.into_iter().map(fit));
    // Which of several explanations is told depends on what is usual; what may be, on what was seen alone.
    let usual: Vec<(f64, f64)> = profile.iter().map(|&(share, log)| (share, log + prior(share))).collect();
    let (seen, value) = (Estimate::of_profile(&profile)?, Estimate::of_profile(&usual)?.value);
    let share = Estimate { value, low: seen.low.min(value), high: seen.high.max(value) };
    Some(Contamination { share, sites: sites as u64 })
}

impl Own {
    const NONE: Own = Own { sites: 0.0, kind: 0, transitions: 0.5, prior: 0.0 };
}

/// Ways of having changes.
fn owns(het: f64, is_normal: bool) -> Vec<Own> {
    let mut all = Vec::new();
    for sites in OWN.map(|of| of * het) {
        for kind in 0..KINDS {
            let few = f64::from(u8::from(READS[kind / PARTLY.len()] < FEW));
            let few = few + UNLIKELY[kind % PARTLY.len()] + if is_normal { NORMAL } else { 0.0 };
            let prior = -(1.0 + sites / CHANGES).ln() / 2.0 - few;
            all.push(Own { sites, kind, transitions: TRANSITIONS[0], prior });
        }
    }
    all
}

/// The likeliest of them, and those that are likeliest beside each of some shares.
fn likeliest<const N: usize>(all: Vec<Own>, logs: impl Fn(&Own) -> [f64; N]) -> Vec<Own> {
    let all: Vec<([f64; N], Own)> = all.into_iter().map(|own| (logs(&own), own)).collect();
    let mut found: Vec<Own> = Vec::new();
    let mut take = |of: &dyn Fn(&[f64; N]) -> f64, most: usize| {
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by(|&a, &b| of(&all[b].0).total_cmp(&of(&all[a].0)));
        for own in order.into_iter().take(most).map(|i| all[i].1) {
            if !found.contains(&own) {
                found.push(own);
            }
        }
    };
    take(&|logs| logs.iter().copied().fold(f64::NEG_INFINITY, f64::max), LIKELIEST);
    (0..N).for_each(|share| take(&|logs| logs[share], BESIDE));
    found
}

/// Sites by how many of their reads have a second allele, of transitions or of transversions, and of one depth, where the other sample has so many reads of it: none or one.
struct Row {
    transition: bool,
    beside: usize,
    depth: usize,
    sites: Vec<f64>,
}

fn rows(tally: &RootTally, sample: usize, usual: f64, both: bool) -> Vec<Row> {
    let (from, to) = ((usual * 0.5).max(6.0) as usize, ((usual * 1.6) as usize + 1).min(DEPTHS - 1));
    let row = |beside: usize, class: usize, depth: usize| {
        let table = if beside == 0 { &tally.minor[sample] } else { &tally.shared[sample] };
        &table[(class * DEPTHS + depth) * MINORS..][..MINORS]
    };
    let rate = |class: usize| {
        let sum = (from..=to).fold([0.0; 2], |sum, depth| {
            let row = row(0, class, depth);
            [sum[0] + row[1] as f64, sum[1] + row.iter().sum::<u64>() as f64 * depth as f64]
        });
        sum[0] / sum[1].max(1.0)
    };
    let rates: Vec<f64> = (0..6).map(rate).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let sound: Vec<usize> =
        (0..6).filter(|&class| rates[class] <= DAMAGE * least || rates[class] < 2e-4).collect();
    [true, false]
        .into_iter()
        .flat_map(|transition| (0..=usize::from(both)).map(move |beside| (transition, beside)))
        .flat_map(|(transition, beside)| (from..=to).map(move |depth| (transition, beside, depth)))
        .map(|(transition, beside, depth)| {
            let own = || sound.iter().filter(|class| (**class == 2 || **class == 4) == transition);
            let most = if beside == 0 { MINORS - 1 } else { FEW_READS + 1 };
            let sites = (0..(depth / 2 + 1).min(most))
                .map(|m| own().map(|class| row(beside, *class, depth)[m] as f64).sum())
                .collect();
            Row { transition, beside, depth, sites }
        })
        .filter(|row| row.sites.iter().sum::<f64>() > 0.0)
        .collect()
}

/// Sites of a row with so many reads of a second allele.
struct Cell {
    m: usize,
    sites: f64,
    /// The chance of an allele of one half, and of each kind of changes.
    half: f64,
    kinds: [f64; KINDS],
}

/// Chances of each number of molecules that are told to have the second allele, of `n` in all which have it with a chance of `p` each. With the logarithms of factorials.
fn chances(n: usize, p: f64, logs: &[f64]) -> [f64; MINORS] {
    let mut all = [0.0; MINORS];
    let (own, other) = (p.max(1e-12).ln(), (1.0 - p).ln());
    for k in 0..=n {
        let chance = (logs[n] - logs[k] - logs[n - k] + k as f64 * own + (n - k) as f64 * other).exp();
        match told().get(k) {
            Some(told) => all.iter_mut().zip(&told[..=k]).for_each(|(all, told)| *all += chance * told),
            None => all[k.min(MINORS - 1)] += chance,
        }
    }
    all
}

/// Chances of each number of molecules of a second allele, of some depth.
struct Shown {
    /// Of an allele of one half.
    half: [f64; MINORS],
    /// Of each kind of changes.
    kinds: Vec<[f64; KINDS]>,
}

impl Shown {
    fn of(n: usize, logs: &[f64]) -> Shown {
        // Of parts of the cells any is as likely.
        const PARTS: usize = 12;
        let each = READS.map(|share| {
            let mut some = [0.0; MINORS];
            for i in 0..PARTS {
                let part = chances(n, share * (i as f64 + 0.5) / PARTS as f64, logs);
                some.iter_mut().zip(part).for_each(|(sum, one)| *sum += one / PARTS as f64);
            }
            [chances(n, share, logs), some]
        });
        let kind = |m: usize, kind: usize| {
            let (both, partly) = (&each[kind / PARTLY.len()], PARTLY[kind % PARTLY.len()]);
            (1.0 - partly) * both[0][m] + partly * both[1][m]
        };
        let kinds = (0..MINORS).map(|m| std::array::from_fn(|i| kind(m, i))).collect();
        Shown { half: chances(n, 0.5, logs), kinds }
    }
}

/// Rows of transitions or of transversions, where the other sample has so many reads of the second allele.
struct Alike {
    transition: bool,
    beside: usize,
    /// How much more often a place is here if a foreign person has one of two alleles there, and two.
    foreign: [f64; 2],
    /// Depth, sites and cells of each row.
    rows: Vec<(usize, f64, Vec<Cell>)>,
}

/// All rows, with what of their likelihood does not change.
struct Rows {
    alike: Vec<Alike>,
    /// Wrong bases of a read, about, of transversions and of transitions.
    errors: [f64; 2],
    /// How many molecules more are wrong alike, for each that is, at the usual share of copies.
    twice: f64,
    lost: f64,
    /// How often each place is seen.
    seen: f64,
    /// Whether the other sample has a foreign person's reads, and sites count at which both samples have some.
    beside: bool,
    logs: Vec<f64>,
}

/// For each row and cell: how likely it is where a foreign person has one of two alleles, and two.
struct Foreign(Vec<[f64; 2]>);

impl Rows {
    /// In the other sample so many reads of a place are the foreign person's; where it has reads of the allele such a share of the sites `could` be in a row.
    fn new(rows: &[Row], copies: f64, lost: f64, seen: f64, other: f64, could: f64) -> Rows {
        let logs = log_factorials(DEPTHS);
        let mut shown: Vec<Option<Shown>> = (0..DEPTHS).map(|_| None).collect();
        for row in rows {
            shown[row.depth].get_or_insert_with(|| Shown::of(row.depth, &logs));
        }
        let cell = |n: usize, m: usize, sites: f64| {
            let (half, kinds) =
                shown[n].as_ref().map_or((0.0, [0.0; KINDS]), |own| (own.half[m], own.kinds[m]));
            Cell { m, sites, half, kinds }
        };
        let of_row = |row: &Row| {
            let seen = row.sites.iter().enumerate().filter(|(m, sites)| *m <= FEW_READS || **sites > 0.0);
            let cells = seen.map(|(m, sites)| cell(row.depth, m, *sites)).collect();
            (row.depth, row.sites.iter().sum(), cells)
        };
        let usual = |transition: bool| move |row: &&Row| row.transition == transition && row.beside == 0;
        let sites = |rows: &[&Row]| rows.iter().flat_map(|row| &row.sites).sum::<f64>();
        let error = |transition: bool| {
            let sum = rows.iter().filter(usual(transition)).fold([0.0; 2], |sum, row| {
                let all: f64 = row.sites.iter().sum();
                [sum[0] + row.sites.get(1).unwrap_or(&0.0), sum[1] + all * row.depth as f64]
            });
            sum[0] / f64::max(sum[1], 1.0)
        };
        let errors = [false, true].map(error);
        let poisson = |mean: f64, m: usize| (m as f64 * mean.max(1e-12).ln() - mean - logs[m]).exp();
        let alike = |own: &[&Row]| {
            let Row { transition, beside, .. } = *own[0];
            let all = |beside: usize| {
                let fit = |row: &&Row| row.transition == transition && row.beside == beside;
                sites(&rows.iter().filter(fit).collect::<Vec<_>>())
            };
            let share = |beside: usize| all(beside) / (all(0) + all(1));
            // The other sample's reads of a foreign person's allele, and its errors, beside what it has anywhere.
            // Of its errors those are left out that could not be here.
            let errors = share(1) / could;
            let could = if beside == 0 { 1.0 } else { could };
            let foreign = [0.5, 1.0].map(|of| could * poisson(of * other + errors, beside) / share(beside));
            let rows = own.iter().map(|row| of_row(row)).collect();
            Alike { transition, beside, foreign, rows }
        };
        let all: Vec<&Row> = rows.iter().collect();
        let beside = other > 0.0 && all.iter().any(|row| row.beside > 0);
        let alike =
            all.chunk_by(|a, b| (a.transition, a.beside) == (b.transition, b.beside)).map(alike).collect();
        Rows { alike, errors, twice: TWICE * copies.max(0.01), lost, seen, beside, logs }
    }

    /// What a share that is foreign shows.
    fn foreign(&self, share: f64) -> Foreign {
        let each = self.alike.iter().flat_map(|alike| {
            let error = self.errors[usize::from(alike.transition)];
            alike.rows.iter().flat_map(move |(n, _, cells)| {
                let [half, whole] = [share / 2.0, share].map(|share| chances(*n, share + error, &self.logs));
                cells.iter().map(move |cell| [half[cell.m], whole[cell.m]])
            })
        });
        Foreign(each.collect())
    }

    /// Log-likelihood with what is `foreign`, of a person who has one of two alleles at so many sites and two of two at others, and changes of the sample's own;
    /// with so many `times` as many molecules that are wrong alike. The foreign person is the other sample's, or another one, whichever is likelier.
    fn likelihood(&self, foreign: &Foreign, densities: [f64; 2], changes: &Own, times: f64) -> f64 {
        let of = |same| self.likelihood_of(foreign, densities, changes, times, same);
        if self.beside { of(true).max(of(false)) } else { of(true) }
    }

    /// The same of the one or of the other.
    fn likelihood_of(
        &self,
        foreign: &Foreign,
        [one, both]: [f64; 2],
        changes: &Own,
        times: f64,
        same: bool,
    ) -> f64 {
        let mut sum = 0.0;
        let mut from = 0;
        let mut usual = 0.0;
        for alike in &self.alike {
            // Of inherited alleles two thirds are transitions. There are two transversions for each site.
            let (density, own) = match alike.transition {
                true => (2.0 / 3.0, changes.transitions),
                false => (1.0 / 6.0, (1.0 - changes.transitions) / 2.0),
            };
            let of = if same { alike.foreign } else { [1.0; 2] };
            let [one, both] = [density * one * of[0], density * both * of[1]];
            let own = own * changes.sites;
            let foreign = &foreign.0[from..];
            from += alike.rows.iter().map(|(.., cells)| cells.len()).sum::<usize>();
            if alike.beside == 0 {
                let shares = [one, both, density * self.lost, own];
                let (log, error) = self.of_alike(alike, foreign, shares, changes.kind, times);
                usual = error;
                sum += log;
                continue;
            }
            let too_many = ((one + both) / FOREIGN_MOST).max(1.0);
            sum += self.of_few(alike, foreign, [one / too_many, both / too_many], times, usual);
        }
        sum / self.seen
    }

    /// The same of rows where the other sample has none of the second allele, and how often bases are wrong. Shares of the sites are those at which the foreign person has `one` of two
    /// alleles, and `both`; inherited ones that the other sample does not show (`lost`); and the sample's own changes.
    fn of_alike(
        &self,
        alike: &Alike,
        foreign: &[[f64; 2]],
        [one, both, lost, own]: [f64; 4],
        kind: usize,
        times: f64,
    ) -> (f64, f64) {
        let rest = 1.0 - one - both - lost - own;
        // What is single and of nobody, over the reads that there may be wrong.
        let mut error = self.errors[usize::from(alike.transition)];
        let (mut single, mut reads, mut at) = (0.0, 0.0, 0);
        for (n, all, cells) in &alike.rows {
            if let Some(cell) = cells.get(1) {
                let [half, whole] = foreign[at + 1];
                let theirs = one * half + both * whole + own * cell.kinds[kind];
                single += cell.sites - all * theirs;
                let n = *n as f64;
                reads += all * n * (-n * error).exp() * rest;
            }
            at += cells.len();
        }
        error = (single / f64::max(reads, 1.0)).max(1e-7);
        let (mut sum, mut from) = (0.0, 0);
        for (n, all, cells) in &alike.rows {
            let mean = *n as f64 * error;
            let mut wrong = (-mean).exp();
            let mut last = 0;
            let twice = times * self.twice * mean;
            for (cell, [half, whole]) in cells.iter().zip(&foreign[from..]) {
                while last < cell.m {
                    last += 1;
                    wrong *= mean / last as f64;
                }
                let (more, unknown) = match cell.m {
                    2 => (twice, UNKNOWN),
                    m => (0.0, if m > 2 { UNKNOWN } else { 0.0 }),
                };
                let chance = rest * (wrong + more)
                    + one * half
                    + both * whole
                    + lost * cell.half
                    + own * cell.kinds[kind]
                    + unknown;
                sum += cell.sites * chance.max(1e-300).ln();
            }
            from += cells.len();
            // All chances together are that many times one.
            sum -= all * (rest * twice + UNKNOWN * (n / 2).saturating_sub(2) as f64).ln_1p();
        }
        (sum, error)
    }

    /// The same of rows where the other sample has a read of it, among the sites at which this one has [`FEW_READS`] at most. Bases are wrong `least` often, or more often where
    /// they are so in both samples.
    fn of_few(
        &self,
        alike: &Alike,
        foreign: &[[f64; 2]],
        [one, both]: [f64; 2],
        times: f64,
        least: f64,
    ) -> f64 {
        let rest = 1.0 - one - both;
        let (mut single, mut reads, mut at) = (0.0, 0.0, 0);
        for (n, all, cells) in &alike.rows {
            let [half, whole] = foreign[at + 1];
            single += cells[1].sites - all * (one * half + both * whole);
            reads += all * *n as f64 * rest;
            at += cells.len();
        }
        let error = (single / f64::max(reads, 1.0)).max(least);
        let (mut sum, mut from) = (0.0, 0);
        for (n, all, cells) in &alike.rows {
            let mean = *n as f64 * error;
            let wrong = [1.0, mean, mean * mean / 2.0 + times * self.twice * mean + UNKNOWN];
            let mut whole_row = 0.0;
            for ((cell, [half, whole]), wrong) in cells.iter().zip(&foreign[from..]).zip(wrong) {
                let chance = rest * wrong * (-mean).exp() + one * half + both * whole;
                whole_row += chance;
                sum += cell.sites * chance.max(1e-300).ln();
            }
            sum -= all * whole_row.max(1e-300).ln();
            from += cells.len();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HET: f64 = 7e-4;

    /// A sample of four million sites of a person, 20 molecules each, of which a share is of another one who is more or less diverse, and which has so many
    /// changes of its own in so many of its reads.
    fn told(share: f64, diverse: f64, changes: (f64, f64), seed: u64) -> Estimate {
        let tally = made(share, 0.0, diverse, changes, seed);
        contamination(&tally, &known(0.0, false)).expect("enough sites").share
    }

    fn known(other: f64, both: bool) -> Known {
        Known { sample: 1, usual: [20.0, 20.0], copies: 0.02, het: HET, lost: 0.0, other, both }
    }

    /// The same, where a share of the other sample is the same person's.
    fn made(share: f64, other: f64, diverse: f64, (changes, of): (f64, f64), seed: u64) -> RootTally {
        let mut seed = seed;
        let mut random = move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((seed ^ (seed >> 31)) >> 8) as f64 / (1u64 << 56) as f64
        };
        let logs = log_factorials(DEPTHS);
        let poisson = |mean: f64, k: usize| (k as f64 * mean.max(1e-300).ln() - mean - logs[k]).exp();
        let binomial = |m: usize, n: usize, p: f64| {
            (logs[n] - logs[m] - logs[n - m] + m as f64 * p.ln() + (n - m) as f64 * (1.0 - p).ln()).exp()
        };
        let mut tally = RootTally::default();
        tally.share = 0.01;
        for (class, n, beside) in (0..6)
            .flat_map(|class| (8..40).map(move |n| (class, n)))
            .flat_map(|(class, n)| (0..2).map(move |beside| (class, n, beside)))
        {
            // Half of the bases are of the pair that a class is of; two classes are transitions.
            let sites = 4e6 * poisson(20.0, n);
            let (inherited, own) =
                if class == 2 || class == 4 { (1.0 / 3.0, 0.25) } else { (1.0 / 12.0, 0.125) };
            let foreign = FOREIGN.map(|of| of * HET * diverse * inherited);
            const ERROR: f64 = 1.5e-4;
            let seen = |share: f64| poisson(20.0 * (share + ERROR), beside);
            for m in 0..=n / 2 {
                let mean = n as f64 * ERROR;
                let alike = if m == 2 { TWICE * 0.02 * mean } else { 0.0 };
                let odd = if m >= 2 { UNKNOWN } else { 0.0 };
                let chance = 0.5 * (poisson(mean, m) + alike + odd) * seen(0.0)
                    + foreign[0] * chances(n, share / 2.0 + ERROR, &logs)[m] * seen(other / 2.0)
                    + foreign[1] * chances(n, share + ERROR, &logs)[m] * seen(other)
                    + own * changes * binomial(m, n, of) * seen(0.0)
                    // Inherited alleles of which the other sample has few molecules.
                    + inherited * HET * binomial(m, n, 0.5) * binomial(beside, 20, 0.5);
                let expected = sites * chance;
                let normal =
                    (-2.0 * random().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * random()).cos();
                let seen = match expected {
                    0.0..3.0 => expected.floor() + f64::from(u8::from(random() < expected.fract())),
                    _ => (expected + expected.sqrt() * normal).round(),
                };
                let at = (class * DEPTHS + n) * MINORS + m.min(MINORS - 1);
                let table = if beside == 0 { &mut tally.minor[1] } else { &mut tally.shared[1] };
                table[at] += seen.max(0.0) as u64;
            }
        }
        tally
    }

    /// What the other sample has of the stranger hides some of what this one has, unless what both have counts.
    #[test]
    fn what_both_samples_have_of_a_stranger_counts() {
        for (i, (share, other)) in
            [(0.08, 0.08), (0.05, 0.1), (0.02, 0.05), (0.0, 0.06)].into_iter().enumerate()
        {
            let (mut off, mut wide) = ([0.0; 2], [0.0; 2]);
            for seed in 0..4 {
                let tally = made(share, other, 1.0, (2e-5, 0.35), 17 + 7 * i as u64 + seed);
                for both in [false, true] {
                    let found = contamination(&tally, &known(other, both)).expect("enough sites").share;
                    off[usize::from(both)] += (found.value - share) / 4.0;
                    wide[usize::from(both)] += (found.high - found.low) / 4.0;
                    let what = format!("{share} beside {other}, {both}: {found:?}");
                    assert!(found.low - 0.004 <= share && share <= found.high + 0.004, "{what}");
                }
            }
            assert!(off[1].abs() < 0.005, "{share} beside {other}: off by {off:?}");
            assert!(share == 0.0 || wide[1] < 0.95 * wide[0], "{share} beside {other}: {wide:?}");
        }
    }

    /// The other sample's stranger may be another one: here sites of the two have nothing in common.
    #[test]
    fn strangers_of_both_samples_may_be_two() {
        let (alone, beside) = (made(0.05, 0.0, 1.0, (2e-5, 0.35), 5), made(0.0, 0.08, 1.0, (0.0, 0.35), 6));
        let mut tally = alone;
        tally.shared[1].iter_mut().zip(&beside.shared[1]).for_each(|(sites, others)| *sites += others);
        let found = contamination(&tally, &known(0.08, true)).expect("enough sites").share;
        assert!((found.value - 0.05).abs() < 0.012, "{found:?}");
    }

    #[test]
    fn another_persons_share_is_told_whatever_his_diversity_and_ones_own_changes() {
        let (mut held, mut all, mut off) = (0, 0, 0.0);
        for (i, share) in [0.0, 0.01, 0.03, 0.05, 0.1].into_iter().enumerate() {
            for (j, (diverse, changes)) in
                [(1.0, (0.0, 0.3)), (1.08, (5e-6, 0.35)), (0.93, (2e-5, 0.3))].into_iter().enumerate()
            {
                let found = told(share, diverse, changes, (7 * i + j) as u64);
                let what = format!("{share} {diverse} {changes:?}: {found:?}");
                assert!((found.value - share).abs() < 0.006 + 0.12 * share, "{what}");
                held += u32::from(found.low <= share + 0.0005 && share - 0.0005 <= found.high);
                (all, off) = (all + 1, off + found.value - share);
            }
        }
        assert!(held + 2 >= all, "{held} of {all}");
        assert!((off / f64::from(all)).abs() < 0.003, "{off} in all");
    }

    #[test]
    fn changes_of_the_sample_are_no_foreign_alleles() {
        for (changes, of) in [(1e-4, 0.35), (3e-4, 0.25), (2e-4, 0.45)] {
            let found = told(0.0, 1.0, (changes, of), 7);
            assert!(found.value < 0.02 && found.low == 0.0, "{changes} {of}: {found:?}");
        }
    }
}
