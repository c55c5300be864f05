//! How much of a sample is another person's.
//!
//! At sites where the other sample has one allele only, a few reads with another one are errors, or another person's. Errors are about as frequent at every
//! site; another person has an allele of his own at about as many sites as the samples have two, and there a share of the reads: half the
//! contamination, or all of it; a tumour has changes of its own, in about one share of its reads. So the counts of sites by how many reads have a second allele tell all
//! of them, at any depth and in any species.

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
/// Changes of the sample's own, in the share of its sites of two alleles that they are, and the share of the reads that have them: a tumour's are tried.
const OWN: [f64; 8] = [0.0, 0.01, 0.03, 0.07, 0.14, 0.28, 0.5, 0.9];
const SHARES: [f64; 8] = [0.08, 0.12, 0.17, 0.22, 0.28, 0.35, 0.42, 0.49];
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
            sites: row(class, depth)
                .iter()
                .take((depth / 2 + 1).min(MINORS - 1))
                .map(|n| *n as f64)
                .collect(),
        })
        .filter(|row| row.sites.iter().sum::<f64>() > 0.0)
        .collect();
    // Each site is there once for each base that it could be taken for.
    let sites = rows.iter().flat_map(|row| &row.sites).sum::<f64>() / 3.0;
    if (sites as u64) < SITES || sites * het < HET {
        return None;
    }
    let all = Rows::new(&rows, copies, lost);
    // A normal has none, unless the samples are swapped.
    let own: Vec<(f64, f64)> = OWN[1..]
        .iter()
        .flat_map(|own| SHARES.map(|share| (own * het, share)))
        .chain([(0.0, SHARES[0])])
        .collect();
    let foreign = |z: f64| het * FOREIGN.0 * (FOREIGN.1 * z).exp();
    // The sample's own changes first, then what fits beside them: a few rounds of each.
    let coarse = [0.0, 0.004, 0.01, 0.02, 0.04, 0.07, 0.11, 0.17, 0.25];
    let mut at = (0.0, f64::NEG_INFINITY);
    let mut changes = own[0];
    for &one in &own {
        for share in coarse {
            let log = all.likelihood(share, foreign(0.0), one);
            if log > at.1 {
                (at, changes) = ((share, log), one);
            }
        }
    }
    // Beside the best, finer, as what is nearly as likely is told too.
    let near: Vec<(f64, f64)> = own
        .iter()
        .copied()
        .filter(|one| (one.1 - changes.1).abs() < 0.08 || one.0 == 0.0)
        .filter(|one| one.0 <= 2.2 * changes.0 + 0.011 * het && one.0 >= 0.4 * changes.0 - 0.011 * het)
        .collect();
    let fit = |share: f64| {
        // Over how many alleles the other person has that this one lacks.
        let each = (-4..=4).map(|i| f64::from(i) / 2.0).flat_map(|z| near.iter().map(move |one| (z, *one)));
        each.map(|(z, one)| all.likelihood(share, foreign(z), one) - z * z / 2.0)
            .fold(f64::NEG_INFINITY, f64::max)
    };
    let points: Vec<f64> = (0..=20)
        .map(|i| f64::from(i) * 1e-3)
        .chain((1..=30).map(|i| 0.02 + f64::from(i) * 2e-3))
        .chain((1..=22).map(|i| 0.08 + f64::from(i) * 1e-2))
        .collect();
    let profile: Vec<(f64, f64)> = points.iter().filter(|c| **c <= MOST).map(|&c| (c, fit(c))).collect();
    Some(Contamination { share: Estimate::of_profile(&profile)?, sites: sites as u64 })
}

/// All rows, with what of their likelihood does not change.
struct Rows<'a> {
    rows: &'a [Row],
    copies: f64,
    lost: f64,
    logs: Vec<f64>,
    /// For each row and second allele's count: the chance of an allele of one half, and of each of [`SHARES`].
    binomials: Vec<Vec<(f64, [f64; SHARES.len()])>>,
}

impl<'a> Rows<'a> {
    fn new(rows: &'a [Row], copies: f64, lost: f64) -> Rows<'a> {
        let logs = log_factorials(DEPTHS);
        let binomial = |m: usize, n: usize, p: f64| {
            let choose = logs[n] - logs[m] - logs[n - m];
            (choose + m as f64 * p.ln() + (n - m) as f64 * (1.0 - p).ln()).exp()
        };
        let binomials = rows
            .iter()
            .map(|row| {
                let one =
                    |m| (binomial(m, row.depth, 0.5), SHARES.map(|share| binomial(m, row.depth, share)));
                (0..row.sites.len()).map(one).collect()
            })
            .collect();
        Rows { rows, copies, lost, logs, binomials }
    }

    /// Log-likelihood with a foreign `share`, of a person who differs at so many sites, and changes of the sample's own: how many, in which share of the reads. Each
    /// place is seen from two sides by much the same reads: half of it.
    fn likelihood(&self, share: f64, alleles: f64, (changes, of): (f64, f64)) -> f64 {
        let poisson = |mean: f64, m: usize| match m {
            _ if mean <= 0.0 => f64::from(m == 0),
            0 => (-mean).exp(),
            1 => mean * (-mean).exp(),
            _ => (m as f64 * mean.ln() - mean - self.logs[m]).exp(),
        };
        // Where the other person differs he has one such allele of two twice as often as both, so half of the reads are of each kind of place; transitions are
        // twice as frequent as both transversions together.
        let [one, both] = [alleles, alleles / 2.0];
        let of = SHARES.iter().position(|known| *known == of).unwrap_or(0);
        let mut sum = 0.0;
        for transition in [true, false] {
            let (density, own) = if transition { (2.0 / 3.0, 0.5) } else { (1.0 / 6.0, 0.25) };
            let kind =
                || self.rows.iter().zip(&self.binomials).filter(|(row, _)| row.transition == transition);
            let (mut single, mut reads) = (0.0, 0.0);
            for (row, binomials) in kind() {
                let all: f64 = row.sites.iter().sum();
                let n = row.depth as f64;
                let foreign = density * (one * poisson(n * share / 2.0, 1) + both * poisson(n * share, 1));
                let changed = own * changes * binomials.get(1).map_or(0.0, |b| b.1[of]);
                single += row.sites.get(1).copied().unwrap_or(0.0) - all * (foreign + changed);
                reads += all * n;
            }
            let error = (single / f64::max(reads, 1.0)).max(1e-7);
            for (row, binomials) in kind() {
                let n = row.depth as f64;
                for (m, (&sites, (halves, shares))) in row.sites.iter().zip(binomials).enumerate() {
                    if sites == 0.0 {
                        continue;
                    }
                    let mut wrong = poisson(n * error, m);
                    if m == 2 {
                        wrong += COPIED * self.copies.max(0.01) * n * error;
                    }
                    let rest = 1.0 - density * (one + both) - own * changes;
                    let chance = rest * wrong
                        + density
                            * (one * poisson(n * (share / 2.0 + error), m) + both * poisson(n * (share + error), m))
                        + own * changes * shares[of]
                        + density * self.lost * halves
                        // What nobody thought of.
                        + if m >= 2 { 2e-7 } else { 0.0 };
                    sum += sites * chance.max(1e-300).ln();
                }
            }
        }
        sum / 2.0
    }
}
