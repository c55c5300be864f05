//! Distinguishes germline from somatic variants in a call without a normal: by the frequency of the allele in the
//! population, and by its fraction in the tumours. The fractions of germline variants differ from one half where copy
//! numbers changed. How much they differ in this tumour is learned from variants that are common in the population, or,
//! without known variants, from all passing ones.

use crate::allele_kind_odds::{AlleleKindOdds, probability_of_log_odds};
use crate::genotype::{Filter, GenotypingResult};
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::known_variants::PopulationFrequency;
use crate::locus::VariantCall;

/// Distribution of the fractions of heterozygous germline alleles in the tumours: a normal distribution around one
/// half, mixed with a uniform distribution for alleles whose copy number changed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct GermlineFractions {
    /// Index of the standard deviation of the normal distribution in `germline_fraction_sds`.
    sd: usize,
    /// Share of the germline alleles whose fraction may have any value, because copy numbers changed.
    shifted_share: f64,
}

/// Likelihoods of the read counts of an allele as a germline allele, relative to the likelihood with a uniformly
/// distributed fraction, which is that of a somatic allele.
#[derive(Debug, Clone, Copy)]
struct FractionLikelihoods {
    /// Relative likelihood of a heterozygous allele with a fraction near one half, for each standard deviation.
    near_half: [f64; NUM_SDS],
    /// Relative likelihood of a homozygous allele.
    homozygous: f64,
}

const NUM_SDS: usize = GENOTYPE_MODEL_PARAMS.germline_fraction_sds.len();

impl FractionLikelihoods {
    /// Computes the likelihoods for `alternative` of `depth` molecules with the allele.
    fn from_counts(alternative: u32, depth: u32) -> FractionLikelihoods {
        let p = &GENOTYPE_MODEL_PARAMS;
        let (k, others) = (f64::from(alternative), f64::from(depth - alternative));
        let log_likelihood = |f: f64| k * f.ln() + others * (1.0 - f).ln();
        let steps = p.num_tumour_only_fractions;
        let fractions = || (0..steps).map(|i| (i as f64 + 1.0 / 2.0) / steps as f64);
        let highest = fractions().map(log_likelihood).fold(f64::NEG_INFINITY, f64::max);
        let likelihood = |f: f64| (log_likelihood(f) - highest).exp();
        let uniform: f64 = fractions().map(likelihood).sum();
        // docs/model/genotype.md (17)
        let near_half = p.germline_fraction_sds.map(|sd| {
            let weight = |f: f64| (-((f - 1.0 / 2.0) / sd).powi(2) / 2.0).exp();
            let sum: f64 = fractions().map(weight).sum();
            let weighted: f64 = fractions().map(|f| weight(f) * likelihood(f)).sum();
            weighted / sum * steps as f64 / uniform
        });
        let homozygous = likelihood(p.homozygous_fraction) * steps as f64 / uniform;
        FractionLikelihoods { near_half, homozygous }
    }

    /// Computes the likelihoods for the tumours of a call. With several tumours, the smallest likelihoods count: those
    /// of the tumour whose fraction is least like that of a germline allele.
    fn from_genotype(genotype: &GenotypingResult) -> FractionLikelihoods {
        let one = [genotype.tumour];
        let several: Vec<_> = genotype.tumours.iter().map(|tumour| tumour.support).collect();
        let supports = if several.is_empty() { &one[..] } else { &several[..] };
        let smaller = |a: FractionLikelihoods, b: FractionLikelihoods| FractionLikelihoods {
            near_half: std::array::from_fn(|i| a.near_half[i].min(b.near_half[i])),
            homozygous: a.homozygous.min(b.homozygous),
        };
        let each = supports
            .iter()
            .map(|own| FractionLikelihoods::from_counts(own.alternative, own.num_informative_molecules()));
        each.reduce(smaller).unwrap_or(FractionLikelihoods { near_half: [1.0; NUM_SDS], homozygous: 1.0 })
    }

    /// Relative likelihood of the counts if the allele is germline, heterozygous or homozygous.
    fn germline(&self, fractions: GermlineFractions) -> f64 {
        // docs/model/genotype.md (18)
        let heterozygous = (1.0 - fractions.shifted_share) * self.near_half[fractions.sd] + fractions.shifted_share;
        heterozygous.max(self.homozygous)
    }
}

impl GermlineFractions {
    /// Learns the distribution from alleles that are probably heterozygous germline alleles.
    fn learn(alleles: &[FractionLikelihoods]) -> GermlineFractions {
        let p = &GENOTYPE_MODEL_PARAMS;
        let heterozygous: Vec<_> = alleles.iter().filter(|own| own.homozygous < own.near_half[NUM_SDS - 1]).collect();
        let fit = |sd: usize| {
            let mut share = p.shifted_fraction_share;
            for _ in 0..p.num_fit_rounds {
                let is_shifted = |own: &&FractionLikelihoods| share / (share + (1.0 - share) * own.near_half[sd]);
                let shifted: f64 = heterozygous.iter().map(is_shifted).sum();
                // docs/model/genotype.md (19)
                share = (shifted + p.shifted_fraction_share * p.shifted_share_weight)
                    / (heterozygous.len() as f64 + p.shifted_share_weight);
            }
            let fractions = GermlineFractions { sd, shifted_share: share };
            let log_likelihood: f64 = heterozygous.iter().map(|own| own.germline(fractions).ln()).sum();
            (fractions, log_likelihood)
        };
        // The widest first: without alleles it stays.
        let best = (0..NUM_SDS).rev().map(fit).reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map_or(GermlineFractions { sd: 0, shifted_share: p.shifted_fraction_share }, |best| best.0)
    }
}

/// Natural logarithm of the odds that an allele is germline rather than somatic, learned from all alleles. `germline`
/// has the likelihood of each allele as germline, relative to that as somatic. `prior` is the natural logarithm of the
/// prior odds, which are the result without alleles.
fn learn_germline_log_odds(germline: &[f64], prior: f64) -> f64 {
    let log_ratios: Vec<f64> = germline.iter().map(|likelihood| likelihood.ln()).collect();
    let prior_share = probability_of_log_odds(prior);
    // docs/model/genotype.md (20)
    AlleleKindOdds::learn_odds(&log_ratios, prior_share, GENOTYPE_MODEL_PARAMS.germline_prior_weight).log_odds
}

/// Lowers the quality of calls without a normal to the evidence against a germline variant. Adds the filter
/// `low_quality` to calls whose quality, and `germline` to calls whose evidence against a germline variant, is below
/// `min_quality`.
pub(crate) fn limit_quality_by_germline_variants(calls: &mut [VariantCall], min_quality: f64) {
    let p = &GENOTYPE_MODEL_PARAMS;
    let likelihoods: Vec<FractionLikelihoods> =
        calls.iter().map(|call| FractionLikelihoods::from_genotype(&call.genotype)).collect();
    // Structural variants are not looked up. They have the odds of alleles that the known variants do not have.
    let has_known = calls.iter().any(|call| call.population_frequency != PopulationFrequency::NoKnownVariants);
    let any_unlisted = if has_known { PopulationFrequency::Unlisted } else { PopulationFrequency::NoKnownVariants };
    let is_certain = |call: &VariantCall| call.genotype.filters.is_empty();
    let is_common = |call: &VariantCall| match call.population_frequency {
        // Nearly all variants of a person are germline variants.
        PopulationFrequency::NoKnownVariants => !has_known,
        PopulationFrequency::Unlisted => false,
        PopulationFrequency::Listed(frequency) => frequency >= p.min_common_frequency,
    };
    let germline: Vec<FractionLikelihoods> = (calls.iter().zip(&likelihoods))
        .filter(|(call, _)| is_certain(call) && is_common(call))
        .map(|(_, likelihoods)| *likelihoods)
        .collect();
    let fractions = GermlineFractions::learn(&germline);
    let unlisted: Vec<f64> = (calls.iter().zip(&likelihoods))
        .filter(|(call, _)| is_certain(call) && call.population_frequency == any_unlisted)
        .map(|(_, likelihoods)| likelihoods.germline(fractions))
        .collect();
    let unlisted_prior = learn_germline_log_odds(
        &unlisted,
        any_unlisted.germline_prior_log_odds(GENOTYPE_MODEL_PARAMS.germline_log_odds),
    );
    for (call, likelihoods) in calls.iter_mut().zip(likelihoods) {
        let prior = match call.population_frequency {
            PopulationFrequency::Listed(_) => {
                call.population_frequency.germline_prior_log_odds(GENOTYPE_MODEL_PARAMS.germline_log_odds)
            }
            PopulationFrequency::NoKnownVariants | PopulationFrequency::Unlisted => unlisted_prior,
        };
        let against_germline = -likelihoods.germline(fractions).ln() - prior;
        let genotype = &mut call.genotype;
        if genotype.limit_quality(against_germline, min_quality) < min_quality {
            genotype.filters.insert(Filter::Germline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_odds_of_unlisted_alleles_are_learned() {
        let prior = PopulationFrequency::Unlisted.germline_prior_log_odds(GENOTYPE_MODEL_PARAMS.germline_log_odds);
        assert!((learn_germline_log_odds(&[], prior) - prior).abs() < 1e-9);
        // 150 alleles that are clearly somatic beside 50 that may be germline, and the other way round.
        let alleles = |somatic: usize, germline: usize| [vec![0.02; somatic], vec![6.0; germline]].concat();
        assert!(learn_germline_log_odds(&alleles(150, 50), prior) < prior - 1.0);
        assert!(learn_germline_log_odds(&alleles(10, 400), prior) > prior + 1.0);
    }

    #[test]
    fn the_distribution_of_germline_fractions_is_learned() {
        let alleles = |counts: &[(u32, u32)]| -> Vec<FractionLikelihoods> {
            counts.iter().map(|&(k, n)| FractionLikelihoods::from_counts(k, n)).collect()
        };
        let none = GermlineFractions::learn(&[]);
        assert_eq!(none.shifted_share, GENOTYPE_MODEL_PARAMS.shifted_fraction_share);
        // 400 alleles near one half, then as many of which one in four has another fraction.
        let even: Vec<(u32, u32)> = (0..400).map(|i| (46 + i % 9, 100)).collect();
        let learned = GermlineFractions::learn(&alleles(&even));
        assert!(learned.shifted_share < 0.03 && learned.sd < none.sd, "{learned:?}");
        let shifted: Vec<(u32, u32)> =
            even.iter().enumerate().map(|(i, one)| if i % 4 == 0 { (20, 100) } else { *one }).collect();
        let changed = GermlineFractions::learn(&alleles(&shifted));
        assert!((0.2..0.3).contains(&changed.shifted_share), "{changed:?}");
        // An allele with a fraction of 0.25 is more clearly somatic if copy numbers did not change.
        let allele = FractionLikelihoods::from_counts(25, 100);
        assert!(allele.germline(learned) * 5.0 < allele.germline(changed));
        // One half and one are the fractions of germline variants.
        for (alternative, depth, is_germline) in [(50, 100, true), (40, 100, true), (100, 100, true), (10, 100, false)]
        {
            let likelihood = FractionLikelihoods::from_counts(alternative, depth).germline(learned);
            assert_eq!(likelihood > 1.0, is_germline, "{alternative} of {depth}: {likelihood}");
        }
    }
}
