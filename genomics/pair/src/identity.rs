//! Of one person, of relatives, or of two people?
//!
//! Where both samples are deep the alleles of each site are known. Two reads of one person differ at half of its heterozygous sites; what the tumour has
//! where the normal has one allele only comes on top, and is half of what heterozygous sites are in a stranger, a quarter in a child, and nothing in
//! the same person, whatever the tumour has lost. Where they are shallow pairs of reads are compared at roots that few reads have: those between the samples
//! differ as often as those within them if the samples are of one person, whatever repeats and errors there are.

use serde::{Deserialize, Serialize};

use crate::interval::Estimate;
use crate::roots::{Draws, Genotypes, RootTally};

/// Who the samples are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Of one person.
    Same,
    /// Of two people who are close relatives: parent and child, siblings.
    Relatives,
    /// Of two people.
    Strangers,
    /// Not of one person; whether of relatives cannot be told.
    Different,
    /// Of one person or of close relatives, not of two people who are not related; which of the two cannot be told.
    SameOrRelatives,
    /// There is too little that both samples show.
    Unknown,
}

/// What both samples say about who they are of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The verdict.
    pub relation: Relation,
    /// How much more the samples differ from one another than each from itself, in differing bases of a read each. 0 for one person.
    pub excess: Estimate,
    /// The same over what it would be for two people who are not related: 0 for one person, about a half for close relatives, 1 for strangers. Only where
    /// heterozygous sites can be told.
    pub distance: Option<Estimate>,
    /// The share of sites that are heterozygous in each sample, where that can be told.
    pub heterozygous: Option<[f64; 2]>,
    /// Sites at which both samples' alleles are known; pairs of reads that were compared if there are none.
    pub sites: u64,
}

/// Fewest sites of two alleles by which relation is measured.
const HET: u64 = 24;
/// Of all sites.
const SITES: u64 = 5_000;
/// Distance up to which the samples are of one person: a tumour has changes of its own, and may hold a few cells of others.
const SAME: f64 = 0.25;
/// Kinship above which the samples are of one person however many changes the tumour has: between the 0.5 of one person and the 0.25 of relatives (KING's bound for
/// samples of one person). What the tumour has lost makes it smaller.
const ONE: f64 = 0.354;
/// Kinship above which two people are relatives (KING, Manichaikul 2010: 0.25 for parent and child and for siblings, 0 for strangers).
const KIN: f64 = 0.09;
/// How much more pairs of reads vary than draws would: a place is seen from two sides, and reads of it are in several pairs.
const STANDARD: f64 = 2.0;

impl Identity {
    /// Whether nothing speaks against one person.
    pub fn is_pair(&self) -> bool {
        matches!(self.relation, Relation::Same | Relation::SameOrRelatives | Relation::Unknown)
    }

    /// From the tally, where roots of single places have about so many reads in the normal and in the tumour.
    pub fn of(tally: &RootTally, usual: [f64; 2]) -> Identity {
        let (from, to) = ((usual[0] * 0.5) as usize, (usual[0] * 1.7) as usize + 1);
        let mut all = Genotypes::default();
        tally.genotypes.iter().take(to).skip(from).for_each(|own| all.add(own));
        if all.sites >= SITES && all.het_normal >= HET {
            by_alleles(&all)
        } else {
            Identity::shallow(&tally.draws, usual[0] + usual[1])
        }
    }

    /// From pairs of reads alone, by occurrences of their root in both samples, where both together usually have so many: roots that more reads have are of
    /// repeats.
    pub fn shallow(draws: &[Draws], usual: f64) -> Identity {
        by_draws(draws, ((usual * 1.5) as usize).max(4))
    }
}

fn by_alleles(all: &Genotypes) -> Identity {
    let share = |count: u64| count as f64 / all.sites as f64;
    // Each place is seen from two sides by much the same reads: as many again in variance.
    let deviation = |count: u64| (2.0 * (count.max(1)) as f64).sqrt() / all.sites as f64;
    let heterozygous = [share(all.het_normal), share(all.het_tumour)];
    let excess = all.foreign as f64 / 65_536.0 / all.sites as f64;
    // Sums of shares: as if of so many sites of one half.
    let few = deviation((all.foreign / 32_768).max(1)) / 2.0;
    let half = heterozygous[0] / 2.0;
    let distance = excess / half;
    let spread = distance
        * ((few / excess.max(1e-9)).powi(2) + (deviation(all.het_normal) / heterozygous[0]).powi(2)).sqrt();
    let kinship =
        (all.het_both as f64 - 2.0 * all.opposite as f64) / (all.het_normal + all.het_tumour) as f64;
    let relation = match distance {
        d if d - 1.96 * spread < SAME && d < 1.5 * SAME => Relation::Same,
        _ if kinship > ONE => Relation::Same,
        _ if kinship > KIN => Relation::Relatives,
        _ => Relation::Strangers,
    };
    Identity {
        relation,
        excess: Estimate::within(excess, few, [0.0, 1.0]),
        distance: Some(Estimate::within(distance, spread, [0.0, f64::INFINITY])),
        heterozygous: Some(heterozygous),
        sites: all.sites,
    }
}

/// Fewest pairs of reads between the samples.
const PAIRS: u64 = 20_000;
/// How much more often a read of one sample differs from one of the other than two reads of one sample, beside a root, where the samples are of two people: of those who are not
/// related at least (people have 0.0007 and more, as each of the bases on both sides differs half as often as an allele is heterozygous), and of close relatives, half
/// as much.
const LEAST: [f64; 2] = [5.5e-4, 2.8e-4];
/// Deviations by which the samples have to differ to be of two people.
const APART: f64 = 3.3;
/// Largest deviation with which close relatives are told from one person.
const SHARP: f64 = 6.5e-5;

fn by_draws(draws: &[Draws], most: usize) -> Identity {
    // Each class has errors and repeats of its own; those that say most count most.
    let (mut sum, mut weights, mut pairs) = (0.0, 0.0, 0);
    for own in draws.iter().take(most + 1).skip(2).filter(|own| own.pairs.iter().all(|pairs| *pairs >= 50)) {
        let rate = own.differ.iter().sum::<u64>() as f64 / own.pairs.iter().sum::<u64>() as f64;
        let [normal, tumour, between] = [0, 1, 2].map(|i| own.differ[i] as f64 / own.pairs[i] as f64);
        let [n, t, b] = own.pairs.map(|pairs| 1.0 / pairs as f64);
        let variance = STANDARD * (rate + 1e-6) * (b + (n + t) / 4.0);
        sum += (between - (normal + tumour) / 2.0) / variance;
        weights += 1.0 / variance;
        pairs += own.pairs[2];
    }
    let none = Estimate { value: 0.0, low: -1.0, high: 1.0 };
    let unknown = |excess| Identity {
        relation: Relation::Unknown,
        excess,
        distance: None,
        heterozygous: None,
        sites: pairs,
    };
    if pairs < PAIRS || weights == 0.0 {
        return unknown(none);
    }
    let (value, deviation) = (sum / weights, weights.powf(-0.5));
    let excess = Estimate::within(value, deviation, [-1.0, 1.0]);
    let is_apart = value > APART * deviation && value > LEAST[1] / 3.0;
    let relation = match () {
        // Below what strangers have at least, by five deviations in all.
        () if is_apart && value + 1.64 * deviation < LEAST[0] * 0.9 => Relation::Relatives,
        () if is_apart => Relation::Different,
        () if value + 1.64 * deviation < LEAST[1] * 0.7 && deviation < SHARP => Relation::Same,
        // Below what strangers have by four deviations in all.
        () if value + 2.0 * deviation < LEAST[0] * 0.75 => Relation::SameOrRelatives,
        () => return unknown(excess),
    };
    Identity { relation, ..unknown(excess) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws of two samples of so many times 20 Mbp at 0.5x, as simulated ones have them, with so much more between the samples; what differs is seen twice.
    fn draws(excess: f64, times: u64, random: &mut impl FnMut() -> f64) -> Vec<Draws> {
        let mut twice = |mean: f64| {
            let normal = (-2.0 * random().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * random()).cos();
            (2.0 * (mean / 2.0 + (mean / 2.0).sqrt() * normal).round()).max(0.0) as u64
        };
        let mut all = vec![Draws::default(); 8];
        for (reads, within, rate) in [(2, 280_000, 2.9e-3), (3, 130_000, 3.6e-3), (4, 36_000, 4.2e-3)] {
            let pairs = [within, within, 2 * within].map(|pairs| pairs * times);
            let rates = [rate, rate, rate + excess];
            let differ = std::array::from_fn(|i| twice(pairs[i] as f64 * rates[i]));
            all[reads] = Draws { pairs, differ };
        }
        all
    }

    #[test]
    fn shallow_samples_of_one_person_and_of_two_are_not_mistaken() {
        let mut seed = 11u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 11) as f64 / (1u64 << 53) as f64
        };
        // One person, a brother, and two people; of 20 Mbp at 0.5x, and of four and eight times as much.
        for (times, least) in [(1, [0, 800, 0, 0]), (4, [700, 0, 900, 600]), (8, [900, 0, 990, 900])] {
            let said = [0.0, 3.5e-4, 7e-4].map(|excess| {
                let mut said = [0; 5];
                for _ in 0..1000 {
                    let draws = draws(excess, times, &mut random);
                    said[match Identity::shallow(&draws, 1.0).relation {
                        Relation::Same => 0,
                        Relation::SameOrRelatives => 1,
                        Relation::Different => 2,
                        Relation::Relatives => 4,
                        _ => 3,
                    }] += 1;
                }
                said
            });
            let [one, brother, two] = said;
            assert!(
                one[2] + one[4] <= 1 && one[0] >= least[0] && one[0] + one[1] >= least[1],
                "{times} {said:?}"
            );
            assert!(brother[0] <= 1, "{times} {said:?}");
            assert!(two[0] + two[1] + two[4] == 0 && two[2] > 950, "{times} {said:?}");
            assert!(brother[2] + brother[4] >= least[2] && brother[4] >= least[3], "{times} {said:?}");
        }
    }
}
