//! How much of a sample is another person's.
//!
//! At sites where the other sample has one allele only, a few reads with another one are errors, or another person's. Errors are about as frequent at every
//! site; another person has an allele of his own at about as many sites as the samples have two, and there a share of the reads: half the
//! contamination, or all of it. So the counts of sites by how many reads have a second allele tell both, at any depth and in any species.

use serde::{Deserialize, Serialize};

use crate::interval::{Estimate, log_factorials};
use crate::roots::{DEPTHS, MINORS, RootTally};

/// How much of a sample is foreign.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Contamination {
    /// The share of its DNA.
    pub share: Estimate,
    /// Sites that it rests on.
    pub sites: u64,
}

/// Largest share looked for: of more the alleles of both are a mixture.
const MOST: f64 = 0.3;
/// Share of foreign reads among the alleles that differ, over the share of the sample's own sites of two alleles: of people and of made genomes, and how far
/// it may be from there (standard deviation of the logarithm).
const FOREIGN: (f64, f64) = (0.62, 0.22);
/// Most that the second allele may be of the reads: beyond it is a sample's own.
const SECOND: usize = 4;
/// Fewest sites, and fewest of the sample's own sites of two alleles among as many: another person has about as many of his own. In less a few places where
/// the library or the genome is odd would be taken for another person.
const SITES: u64 = 20_000;
const HET: f64 = 250.0;
/// Wrong bases that a copy has too of which the copying was not seen, for each share of copies.
const COPIED: f64 = 0.03;
/// Substitutions that are so much more frequent than the rarest are left out: they are damage.
const DAMAGE: f64 = 1.8;

/// Sites by how many of their reads have a second allele, of one substitution and depth.
struct Row {
    transition: bool,
    depth: usize,
    sites: Vec<f64>,
}

/// Contamination of a sample, 0 the normal and 1 the tumour, where `usual` reads cover a place, a share `copies` of its pairs are copies, and a share `het`
/// of its sites have two alleles; at a share `lost` of its sites the other sample has lost one of them.
pub fn contamination(
    tally: &RootTally,
    sample: usize,
    [usual, copies, het, lost]: [f64; 4],
) -> Option<Contamination> {
    let (from, to) = ((usual * 0.5).max(6.0) as usize, ((usual * 1.6) as usize + 1).min(DEPTHS - 1));
    let table = &tally.minor[sample];
    let row = |class: usize, depth: usize| &table[(class * DEPTHS + depth) * MINORS..][..MINORS];
    let rate = |class: usize| {
        let sum = (from..=to).fold([0.0; 2], |sum, depth| {
            let row = row(class, depth);
            [sum[0] + row[1] as f64, sum[1] + row.iter().sum::<u64>() as f64 * depth as f64]
        });
        sum[0] / sum[1].max(1.0)
    };
    let rates: Vec<f64> = (0..6).map(rate).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let rows: Vec<Row> = (0..6)
        .filter(|&class| rates[class] <= DAMAGE * least || rates[class] < 2e-4)
        .flat_map(|class| (from..=to).map(move |depth| (class, depth)))
        .map(|(class, depth)| Row {
            transition: class == 2 || class == 4,
            depth,
            sites: row(class, depth).iter().take(depth.div_ceil(SECOND)).map(|n| *n as f64).collect(),
        })
        .filter(|row| row.sites.iter().sum::<f64>() > 0.0)
        .collect();
    // Each site is there once for each base that it could be taken for.
    let sites = rows.iter().flat_map(|row| &row.sites).sum::<f64>() / 3.0;
    if (sites as u64) < SITES || sites * het < HET {
        return None;
    }
    let logs = log_factorials(DEPTHS);
    let fit = |share: f64| {
        // Over how many alleles the other person has that this one lacks.
        (-8..=8)
            .map(|i| f64::from(i) / 4.0)
            .map(|z| {
                let alleles = het * FOREIGN.0 * (FOREIGN.1 * z).exp();
                likelihood(&rows, &logs, share, alleles, copies, lost) - z * z / 2.0
            })
            .fold(f64::NEG_INFINITY, f64::max)
    };
    let points: Vec<f64> = (0..=40)
        .map(|i| f64::from(i) * 5e-4)
        .chain((1..=30).map(|i| 0.02 + f64::from(i) * 2e-3))
        .chain((1..=44).map(|i| 0.08 + f64::from(i) * 5e-3))
        .collect();
    let profile: Vec<(f64, f64)> = points.iter().filter(|c| **c <= MOST).map(|&c| (c, fit(c))).collect();
    Some(Contamination { share: Estimate::of_profile(&profile)?, sites: sites as u64 })
}

/// Log-likelihood of all rows. Each place is seen from two sides by much the same reads: half of it.
fn likelihood(rows: &[Row], logs: &[f64], share: f64, alleles: f64, copies: f64, lost: f64) -> f64 {
    let poisson = |mean: f64, m: usize| {
        if mean <= 0.0 { f64::from(m == 0) } else { (m as f64 * mean.ln() - mean - logs[m]).exp() }
    };
    // Where the other person differs he has one such allele of two twice as often as both, so half of the reads are of each kind of place; transitions are
    // twice as frequent as both transversions together.
    let [one, both] = [alleles, alleles / 2.0];
    let density = |transition: bool| if transition { 2.0 / 3.0 } else { 1.0 / 6.0 };
    let mut sum = 0.0;
    for (transition, own) in
        [true, false].into_iter().map(|t| (t, rows.iter().filter(move |row| row.transition == t)))
    {
        let own: Vec<&Row> = own.collect();
        let (mut single, mut reads) = (0.0, 0.0);
        for row in &own {
            let all: f64 = row.sites.iter().sum();
            let n = row.depth as f64;
            let foreign =
                density(transition) * (one * poisson(n * share / 2.0, 1) + both * poisson(n * share, 1));
            single += row.sites.get(1).copied().unwrap_or(0.0) - all * foreign;
            reads += all * n;
        }
        let error = (single / f64::max(reads, 1.0)).max(1e-7);
        for row in own {
            let n = row.depth as f64;
            let density = density(transition);
            for (m, &sites) in row.sites.iter().enumerate().filter(|(_, sites)| **sites > 0.0) {
                let mut wrong = poisson(n * error, m);
                if m == 2 {
                    wrong += COPIED * copies.max(0.01) * n * error;
                }
                let halves =
                    (logs[row.depth] - logs[m] - logs[row.depth - m] - n * std::f64::consts::LN_2).exp();
                let chance = (1.0 - density * (one + both)) * wrong
                    + density * (one * poisson(n * (share / 2.0 + error), m) + both * poisson(n * (share + error), m))
                    + density * lost * halves
                    // What nobody thought of, and the sample's own changes of few cells.
                    + if m >= 2 { 2e-7 } else { 0.0 };
                sum += sites * chance.max(1e-300).ln();
            }
        }
    }
    sum / 2.0
}
