//! Decides whether two samples are from one person, from relatives or from two unrelated people.
//!
//! Deep samples: the genotypes of both samples are known at many sites. At sites where the normal is homozygous, the
//! tumour of another person may have another allele. In an unrelated person the share of reads with such alleles,
//! averaged over all sites, is half of the share of heterozygous sites; in a child it is a quarter, and in the same
//! person none, whatever alleles the tumour has lost.
//!
//! Shallow samples: reads are compared two by two at roots of low depth. If the samples are from one person, a read of
//! one sample and a read of the other differ as often as two reads of the same sample, whatever repeats and errors
//! there are.

use serde::{Deserialize, Serialize};

use crate::confidence_interval::{Estimate, MIN_DIVISOR, Z_SCORE_95_PERCENT};
use crate::site_tally::{ReadComparisonCounts, SiteCountsByGenotype, SiteTally};

/// Relationship of the two people from whom the samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Both samples are from one person.
    Same,
    /// The samples are from two relatives of first or second degree, such as parent and child, or siblings.
    Relatives,
    /// The samples are from two unrelated people.
    Unrelated,
    /// The samples are from two people; the data do not show whether they are relatives.
    Different,
    /// The samples are from one person or from close relatives, not from unrelated people.
    SameOrRelatives,
    /// The data do not decide: too few sites or comparisons of reads, or a difference that fits none of the other
    /// cases.
    Unknown,
}

impl Relation {
    /// The name in `summary.json` and in VCF headers.
    pub fn relation_name(self) -> &'static str {
        match self {
            Relation::Same => "same",
            Relation::Relatives => "relatives",
            Relation::Unrelated => "unrelated",
            Relation::Different => "different",
            Relation::SameOrRelatives => "same_or_relatives",
            Relation::Unknown => "unknown",
        }
    }
}

/// Result of the identity test of two samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IdentityResult {
    /// The relationship that the data support.
    pub relation: Relation,
    /// For shallow samples: rate of mismatches between reads of different samples minus the rate between reads of one
    /// sample, in mismatches per base. Otherwise: share of the tumour's reads, averaged over the sites, with an allele
    /// that the homozygous normal lacks. Both are about 0 if the samples are from one person.
    pub excess_mismatch_rate: Estimate,
    /// [`Self::excess_mismatch_rate`] relative to its expectation for two unrelated people: 0 for one person, about
    /// 0.5 for close relatives, 1 for unrelated people. `None` for shallow samples, whose heterozygous sites are
    /// unknown.
    pub genetic_distance: Option<Estimate>,
    /// Share of the examined sites that are heterozygous, in the normal and in the tumour. `None` for shallow samples.
    pub heterozygosity: Option<[f64; 2]>,
    /// Number of sites at which the genotypes of both samples are known. For shallow samples: number of comparisons of
    /// a read of the normal with a read of the tumour.
    pub sites: u64,
}

/// Unit of `SiteCountsByGenotype::foreign_share_sum`: what a site adds if all tumour reads have an allele that
/// the normal lacks.
const FOREIGN_SHARE_UNITS: f64 = 65_536.0;
/// Divisor for the variance of the mean of two samples: the sum of their variances is divided by 2².
const VARIANCE_DIVISOR_OF_MEAN: f64 = 4.0;

/// Parameters of the identity model. The formulas are those of `docs/model/identity.md`.
#[derive(Debug)]
pub(crate) struct IdentityModelParams {
    /// Minimum number of heterozygous sites of the normal to use genotypes. Unit: sites. Source: empirical; not fitted.
    /// If higher: more samples are compared by reads, two by two.
    pub(crate) min_het_sites: u64,
    /// Minimum number of sites with known genotypes to use genotypes. Unit: sites. Source: empirical; not fitted. If
    /// higher: more samples are compared by reads, two by two.
    pub(crate) min_sites: u64,
    /// Smallest and largest depth of the normal at the sites whose genotypes are used. Unit: multiples of the modal
    /// depth of the normal. Source: chosen (beyond it deletions and repeats are frequent). If higher: first value:
    /// fewer sites; second value: more repeats.
    pub(crate) depth_range: [f64; 2],
    /// Samples are from one person if the lower end of the 95 % interval of their genetic distance is below this value
    /// (formula 4). Unit: share of the distance of unrelated people. Source: chosen (a tumour has somatic changes and
    /// may be slightly contaminated). If higher: relatives are mistaken for one person.
    pub(crate) max_same_person_distance: f64,
    /// Factor of `max_same_person_distance` that gives the largest distance at which samples count as from one person
    /// if the distance is uncertain (formula 4). Unit: factor. Source: empirical; not fitted. If higher: relatives are
    /// mistaken for one person.
    pub(crate) same_person_distance_factor: f64,
    /// Kinship above which samples are from one person however many somatic changes the tumour has; LOH in the tumour
    /// lowers the kinship (formula 4). Unit: KING kinship, 0.5 for one person. Source: KING (Manichaikul 2010), bound
    /// for duplicates: halfway between 0.5 and 0.25 on a log scale. If higher: fewer tumours with many changes are
    /// matched with their normal.
    pub(crate) min_same_person_kinship: f64,
    /// Kinship above which two people are relatives (formula 4). Unit: KING kinship, 0.25 for first-degree relatives.
    /// Source: KING (Manichaikul 2010), near the bound 0.0884 of second-degree relatives. If higher: fewer relatives
    /// are reported.
    pub(crate) min_relatives_kinship: f64,
    /// Roots of more than this depth in both samples together are repeats and are left out of the comparison of reads.
    /// Unit: multiples of the modal depth of both samples together. Source: empirical; not fitted. If higher: more
    /// repeats are compared.
    pub(crate) max_depth_factor: f64,
    /// Smallest value of the depth up to which roots are compared by reads, two by two; applies if `max_depth_factor`
    /// gives less. Unit: reads. Source: empirical; not fitted. If higher: more repeats in very shallow samples.
    pub(crate) min_depth_bound: usize,
    /// Minimum number of comparisons of two reads of each kind at a depth to use this depth. Unit: comparisons. Source:
    /// empirical; not fitted. If higher: fewer depths are used.
    pub(crate) min_comparisons_per_depth: u64,
    /// Mismatch rate that is added to the observed one in the variance (formula 5). Unit: mismatches per base. Source:
    /// chosen (keeps the variance positive). If higher: depths without mismatches weigh less.
    pub(crate) min_mismatch_rate: f64,
    /// Factor by which the variance of the mismatch counts exceeds that of independent draws: a site is counted at the
    /// roots on both sides of it, and a read is in several comparisons (formula 5). Unit: factor. Source: empirical;
    /// not fitted. If higher: wider intervals, fewer decisions.
    pub(crate) comparison_variance_factor: f64,
    /// Minimum number of comparisons of two reads between the samples. Unit: comparisons. Source: empirical; not
    /// fitted. If higher: more shallow samples are undecided.
    pub(crate) min_read_comparisons: u64,
    /// Minimum excess of mismatches between samples of two unrelated people, and of close relatives (formula 7). Unit:
    /// mismatches per base. Source: empirical (unrelated people have 7e-4 and more, because each neighbouring base
    /// differs at half of the heterozygosity; relatives half of it). If higher: more pairs are called the same person.
    pub(crate) min_excess: [f64; 2],
    /// Minimum excess to call the samples different (formula 7). Unit: standard deviations. Source: chosen (about one
    /// false alarm in 2000). If higher: fewer samples are called different.
    pub(crate) min_excess_deviations: f64,
    /// Samples are different only if the excess is more than that of relatives over this divisor (formula 7). Unit:
    /// factor. Source: empirical; not fitted. If higher: more samples are called different.
    pub(crate) min_excess_divisor: f64,
    /// Standard deviations that are added to the excess before it is compared with the bounds of relatives and of one
    /// person (formula 7). Unit: standard deviations. Source: definition (one-sided 95 %). If higher: fewer decisions.
    pub(crate) one_sided_deviations: f64,
    /// Relatives have an excess of less than this share of the minimum of unrelated people (formula 7). Unit: factor.
    /// Source: chosen (five standard deviations in total). If higher: more unrelated people are called relatives.
    pub(crate) relatives_margin: f64,
    /// One person has an excess of less than this share of the minimum of relatives (formula 7). Unit: factor. Source:
    /// empirical; not fitted. If higher: more relatives are called one person.
    pub(crate) same_person_margin: f64,
    /// Maximum standard deviation of the excess to distinguish one person from close relatives (formula 7). Unit:
    /// mismatches per base. Source: empirical; not fitted. If higher: more shallow samples are decided and more
    /// relatives mistaken.
    pub(crate) max_same_person_deviation: f64,
    /// Standard deviations that are added to the excess before unrelated people are excluded (formula 7). Unit:
    /// standard deviations. Source: chosen (two-sided 95 %). If higher: fewer decisions.
    pub(crate) undecided_deviations: f64,
    /// Samples with an excess below this share of the minimum of unrelated people are from one person or relatives
    /// (formula 7). Unit: factor. Source: chosen (four standard deviations in total). If higher: more unrelated people
    /// are called one person or relatives.
    pub(crate) undecided_margin: f64,
}

/// Values of the parameters of the identity model.
pub(crate) const IDENTITY_PARAMS: IdentityModelParams = IdentityModelParams {
    min_het_sites: 24,
    min_sites: 5_000,
    depth_range: [0.5, 1.7],
    max_same_person_distance: 0.25,
    same_person_distance_factor: 1.5,
    min_same_person_kinship: 0.354,
    min_relatives_kinship: 0.09,
    max_depth_factor: 1.5,
    min_depth_bound: 4,
    min_comparisons_per_depth: 50,
    min_mismatch_rate: 1e-6,
    comparison_variance_factor: 2.0,
    min_read_comparisons: 20_000,
    min_excess: [5.5e-4, 2.8e-4],
    min_excess_deviations: 3.3,
    min_excess_divisor: 3.0,
    one_sided_deviations: 1.64,
    relatives_margin: 0.9,
    same_person_margin: 0.7,
    max_same_person_deviation: 6.5e-5,
    undecided_deviations: 2.0,
    undecided_margin: 0.75,
};

impl IdentityResult {
    /// Whether the data are compatible with both samples being from one person.
    pub fn may_be_same_person(&self) -> bool {
        matches!(self.relation, Relation::Same | Relation::SameOrRelatives | Relation::Unknown)
    }

    /// Whether the samples are from two people, and the data are compatible with these being unrelated.
    pub fn are_two_people_maybe_unrelated(&self) -> bool {
        match self.relation {
            Relation::Unrelated | Relation::Different => true,
            Relation::Relatives => self.genetic_distance.is_some_and(|distance| distance.high >= 1.0),
            Relation::Same | Relation::SameOrRelatives | Relation::Unknown => false,
        }
    }

    /// Decides on the relationship from a tally of a k-mer sketch. Uses genotypes if there are enough sites, otherwise
    /// comparisons of two reads at a root. `modal_depths` are the modal depths of the normal and of the tumour, in
    /// molecules.
    pub fn decide_from_site_tally(tally: &SiteTally, modal_depths: [f64; 2]) -> IdentityResult {
        let (from, to) = (
            (modal_depths[0] * IDENTITY_PARAMS.depth_range[0]) as usize,
            (modal_depths[0] * IDENTITY_PARAMS.depth_range[1]) as usize + 1,
        );
        let mut all = SiteCountsByGenotype::default();
        tally.genotypes_by_depth.iter().take(to).skip(from).for_each(|own| all.merge_counts(own));
        if all.sites >= IDENTITY_PARAMS.min_sites && all.het_normal >= IDENTITY_PARAMS.min_het_sites {
            identity_from_genotypes(&all)
        } else {
            IdentityResult::decide_from_read_comparisons(
                &tally.read_comparisons_by_depth,
                modal_depths[0] + modal_depths[1],
            )
        }
    }

    /// Decides on the relationship by comparing reads two by two at roots. `comparisons[d]` are the comparisons at
    /// roots with depth `d` in both samples together; `modal_depth` is the modal depth of both samples together. Roots
    /// deeper than `IDENTITY_PARAMS.max_depth_factor` times this depth (but at least `IDENTITY_PARAMS.min_depth_bound`)
    /// are left out as repeats.
    pub fn decide_from_read_comparisons(comparisons: &[ReadComparisonCounts], modal_depth: f64) -> IdentityResult {
        identity_from_read_comparisons(
            comparisons,
            ((modal_depth * IDENTITY_PARAMS.max_depth_factor) as usize).max(IDENTITY_PARAMS.min_depth_bound),
        )
    }
}

fn identity_from_genotypes(counts: &SiteCountsByGenotype) -> IdentityResult {
    let share = |count: u64| count as f64 / counts.sites as f64;
    // Each place is counted from two sides by nearly the same reads, which doubles the variance.
    let deviation = |count: u64| (2.0 * (count.max(1)) as f64).sqrt() / counts.sites as f64;
    let heterozygous = [share(counts.het_normal), share(counts.het_tumour)];
    // docs/model/identity.md (1)
    let excess = counts.foreign_share_sum as f64 / FOREIGN_SHARE_UNITS / counts.sites as f64;
    // A sum of shares has the variance of as many sites with a share of one half.
    let few = deviation((counts.foreign_share_sum / 32_768).max(1)) / 2.0;
    let half = heterozygous[0] / 2.0;
    // docs/model/identity.md (2)
    let distance = excess / half;
    let spread = distance
        * ((few / excess.max(MIN_DIVISOR)).powi(2) + (deviation(counts.het_normal) / heterozygous[0]).powi(2)).sqrt();
    // docs/model/identity.md (3)
    let kinship = (counts.het_both as f64 - 2.0 * counts.opposite_homozygotes as f64)
        / (counts.het_normal + counts.het_tumour) as f64;
    // docs/model/identity.md (4)
    let relation = match distance {
        d if d - Z_SCORE_95_PERCENT * spread < IDENTITY_PARAMS.max_same_person_distance
            && d < IDENTITY_PARAMS.same_person_distance_factor * IDENTITY_PARAMS.max_same_person_distance =>
        {
            Relation::Same
        }
        _ if kinship > IDENTITY_PARAMS.min_same_person_kinship => Relation::Same,
        _ if kinship > IDENTITY_PARAMS.min_relatives_kinship => Relation::Relatives,
        _ => Relation::Unrelated,
    };
    IdentityResult {
        relation,
        excess_mismatch_rate: Estimate::from_standard_deviation(excess, few, [0.0, 1.0]),
        genetic_distance: Some(Estimate::from_standard_deviation(distance, spread, [0.0, f64::INFINITY])),
        heterozygosity: Some(heterozygous),
        sites: counts.sites,
    }
}

fn identity_from_read_comparisons(comparisons: &[ReadComparisonCounts], max_depth: usize) -> IdentityResult {
    // Each depth class has its own rate of errors and repeats; classes are weighted by precision.
    let (mut sum, mut weights, mut pairs) = (0.0, 0.0, 0);
    for own in comparisons
        .iter()
        .take(max_depth + 1)
        .skip(2)
        .filter(|own| own.compared.iter().all(|compared| *compared >= IDENTITY_PARAMS.min_comparisons_per_depth))
    {
        let rate = own.differing.iter().sum::<u64>() as f64 / own.compared.iter().sum::<u64>() as f64;
        let [normal, tumour, between] = [0, 1, 2].map(|i| own.differing[i] as f64 / own.compared[i] as f64);
        let [n, t, b] = own.compared.map(|pairs| 1.0 / pairs as f64);
        // docs/model/identity.md (5)
        let variance = IDENTITY_PARAMS.comparison_variance_factor
            * (rate + IDENTITY_PARAMS.min_mismatch_rate)
            * (b + (n + t) / VARIANCE_DIVISOR_OF_MEAN);
        sum += (between - (normal + tumour) / 2.0) / variance;
        weights += 1.0 / variance;
        pairs += own.compared[2];
    }
    let none = Estimate { value: 0.0, low: -1.0, high: 1.0 };
    let unknown = |excess| IdentityResult {
        relation: Relation::Unknown,
        excess_mismatch_rate: excess,
        genetic_distance: None,
        heterozygosity: None,
        sites: pairs,
    };
    if pairs < IDENTITY_PARAMS.min_read_comparisons || weights == 0.0 {
        return unknown(none);
    }
    // docs/model/identity.md (6)
    let (value, deviation) = (sum / weights, weights.powf(-0.5));
    let excess = Estimate::from_standard_deviation(value, deviation, [-1.0, 1.0]);
    // docs/model/identity.md (7)
    let is_apart = value > IDENTITY_PARAMS.min_excess_deviations * deviation
        && value > IDENTITY_PARAMS.min_excess[1] / IDENTITY_PARAMS.min_excess_divisor;
    let relation = match () {
        // Below the minimum of unrelated people by five standard deviations in total.
        () if is_apart
            && value + IDENTITY_PARAMS.one_sided_deviations * deviation
                < IDENTITY_PARAMS.min_excess[0] * IDENTITY_PARAMS.relatives_margin =>
        {
            Relation::Relatives
        }
        () if is_apart => Relation::Different,
        () if value + IDENTITY_PARAMS.one_sided_deviations * deviation
            < IDENTITY_PARAMS.min_excess[1] * IDENTITY_PARAMS.same_person_margin
            && deviation < IDENTITY_PARAMS.max_same_person_deviation =>
        {
            Relation::Same
        }
        // Below the minimum of unrelated people by four standard deviations in total.
        () if value + IDENTITY_PARAMS.undecided_deviations * deviation
            < IDENTITY_PARAMS.min_excess[0] * IDENTITY_PARAMS.undecided_margin =>
        {
            Relation::SameOrRelatives
        }
        () => return unknown(excess),
    };
    IdentityResult { relation, ..unknown(excess) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Comparisons of two simulated samples of `times` × 20 Mbp at 0.5x, with an excess of mismatches between the
    /// samples; each difference is seen twice.
    fn draws(excess: f64, times: u64, random: &mut impl FnMut() -> f64) -> Vec<ReadComparisonCounts> {
        let mut twice = |mean: f64| {
            let normal = (-2.0 * random().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * random()).cos();
            (2.0 * (mean / 2.0 + (mean / 2.0).sqrt() * normal).round()).max(0.0) as u64
        };
        let mut all = vec![ReadComparisonCounts::default(); 8];
        for (reads, within, rate) in [(2, 280_000, 2.9e-3), (3, 130_000, 3.6e-3), (4, 36_000, 4.2e-3)] {
            let pairs = [within, within, 2 * within].map(|pairs| pairs * times);
            let rates = [rate, rate, rate + excess];
            let differ = std::array::from_fn(|i| twice(pairs[i] as f64 * rates[i]));
            all[reads] = ReadComparisonCounts { compared: pairs, differing: differ };
        }
        all
    }

    #[test]
    fn shallow_samples_of_one_person_and_of_two_are_distinguished() {
        let mut seed = 11u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 11) as f64 / (1u64 << 53) as f64
        };
        // One person, two siblings, and two unrelated people; 20 Mbp at 0.5x, and four and eight times as much.
        for (times, least) in [(1, [0, 800, 0, 0]), (4, [700, 0, 900, 600]), (8, [900, 0, 990, 900])] {
            let said = [0.0, 3.5e-4, 7e-4].map(|excess| {
                let mut said = [0; 5];
                for _ in 0..1000 {
                    let draws = draws(excess, times, &mut random);
                    said[match IdentityResult::decide_from_read_comparisons(&draws, 1.0).relation {
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
            assert!(one[2] + one[4] <= 1 && one[0] >= least[0] && one[0] + one[1] >= least[1], "{times} {said:?}");
            assert!(brother[0] <= 1, "{times} {said:?}");
            assert!(two[0] + two[1] + two[4] == 0 && two[2] > 950, "{times} {said:?}");
            assert!(brother[2] + brother[4] >= least[2] && brother[4] >= least[3], "{times} {said:?}");
        }
    }
}
