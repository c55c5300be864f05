//! Likelihoods of the molecules' votes under each explanation of an allele: mutation, error, germline variant, allele of
//! both samples (docs/model/genotype.md). All are natural logarithms.

use super::pool_votes_of_samples;
use super::result::AlleleSupport;
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::molecule_vote::MoleculeVote;
use crate::slippage::SlippageRate;

/// A product of likelihoods is multiplied further while it lies between this number and its reciprocal: far from the
/// limits of floating-point numbers.
const MIN_PRODUCT: f64 = 1e-100;

/// Likelihood ratios of the molecules of a sample for an allele. Molecules with the same ratio are counted together:
/// most have the largest or the smallest possible ratio, so that a deep sample has few different ones.
pub(super) struct MoleculeCountsByLikelihoodRatio {
    /// P(reads | allele) / P(reads | no allele), ascending, with the number of molecules.
    counts: Vec<(f64, f64)>,
    num_molecules: usize,
}

impl MoleculeCountsByLikelihoodRatio {
    /// Counts the molecules by the likelihood ratio of their votes.
    pub(super) fn from_votes(votes: &[MoleculeVote]) -> MoleculeCountsByLikelihoodRatio {
        /// Log-odds that differ by less than the inverse are the same but for rounding.
        const STEPS_PER_NAT: f64 = (1 << 20) as f64;
        let step_of = |vote: &MoleculeVote| (vote.log_odds * STEPS_PER_NAT).round() as i64;
        let mut steps: Vec<i64> = votes.iter().map(step_of).collect();
        steps.sort_unstable();
        let count = |same: &[i64]| ((same[0] as f64 / STEPS_PER_NAT).exp(), same.len() as f64);
        MoleculeCountsByLikelihoodRatio {
            counts: steps.chunk_by(|a, b| a == b).map(count).collect(),
            num_molecules: votes.len(),
        }
    }

    /// Natural logarithm of the likelihood if the share `f` of the molecules has the allele.
    pub(super) fn log_likelihood_at_fraction(&self, f: f64) -> f64 {
        // docs/model/genotype.md (1)
        let likelihood = |ratio: f64| (1.0 - f) + f * ratio;
        let (mut sum, mut product) = (0.0, 1.0);
        for &(ratio, count) in &self.counts {
            if count > 1.0 {
                sum += count * likelihood(ratio).ln();
                continue;
            }
            // The logarithm of a product of many likelihoods is one logarithm instead of many.
            product *= likelihood(ratio);
            if !(MIN_PRODUCT..1.0 / MIN_PRODUCT).contains(&product) {
                sum += f64::ln(product);
                product = 1.0;
            }
        }
        sum + product.ln()
    }

    /// Log-likelihood at the best-fitting share of molecules with the allele, which is at most `most`
    /// (expectation–maximisation; there is one maximum).
    fn fitted_log_likelihood(&self, most: f64) -> f64 {
        let mut f = 0.5 * most;
        for _ in 0..GENOTYPE_MODEL_PARAMS.num_fit_rounds {
            let expected: f64 = self
                .counts
                .iter()
                .map(|&(ratio, count)| {
                    let odds = f * ratio;
                    count * odds / ((1.0 - f) + odds)
                })
                .sum();
            // docs/model/genotype.md (2)
            f = (expected / self.num_molecules.max(1) as f64).min(most);
        }
        self.log_likelihood_at_fraction(f).max(self.log_likelihood_at_fraction(0.0))
    }
}

/// Log-likelihood (natural) of a sample's votes if the share `f` of its molecules has the allele.
pub(super) fn log_likelihood_at_fraction(votes: &[MoleculeVote], f: f64) -> f64 {
    votes.iter().map(|v| ((1.0 - f) + f * v.log_odds.exp()).ln()).sum()
}

/// Log-likelihood of the votes at the best-fitting share of molecules with the allele, which is at most `most`.
pub(super) fn fitted_log_likelihood(votes: &[MoleculeVote], most: f64) -> f64 {
    MoleculeCountsByLikelihoodRatio::from_votes(votes).fitted_log_likelihood(most)
}

/// Log-likelihood of the votes if no molecule has the allele. The slippage rate may be higher than its estimate: the
/// best-fitting rate is used, with a penalty for its distance from the estimate. Otherwise a rate 1.5 times the
/// estimate would look like an allele at a depth of hundreds.
pub(super) fn error_log_likelihood(votes: &[MoleculeVote], error_probability: f64, slips: SlippageRate) -> f64 {
    let votes = MoleculeCountsByLikelihoodRatio::from_votes(votes);
    let best_at_rate = votes.log_likelihood_at_fraction(error_probability);
    if slips.rate == 0.0 {
        return best_at_rate;
    }
    let deviating = |step: usize| {
        let deviations = step as f64 / GENOTYPE_MODEL_PARAMS.rate_steps_per_deviation as f64;
        let more = slips.rate * ((slips.log_spread * deviations).exp() - 1.0);
        // docs/model/genotype.md (3)
        votes.log_likelihood_at_fraction((error_probability + more).min(0.5)) - deviations.powi(2) / 2.0
    };
    (1..=GENOTYPE_MODEL_PARAMS.max_rate_deviations * GENOTYPE_MODEL_PARAMS.rate_steps_per_deviation)
        .map(deviating)
        .fold(best_at_rate, f64::max)
}

/// Log-likelihood of the votes, averaged over allele fractions with the prior density `weight`.
pub(super) fn log_likelihood_averaged_over_fractions(votes: &[MoleculeVote], weight: impl Fn(f64) -> f64) -> f64 {
    let votes = MoleculeCountsByLikelihoodRatio::from_votes(votes);
    average_over_fractions(votes.num_molecules, weight, |f| votes.log_likelihood_at_fraction(f))
}

/// Log-likelihood of the votes of normal and tumours if all of them have the allele at the same unknown fraction, which
/// is below that of a germline variant.
pub(super) fn shared_low_fraction_log_likelihood(normal: &[MoleculeVote], tumours: &[MoleculeVote]) -> f64 {
    // docs/model/genotype.md (21)
    let most = GENOTYPE_MODEL_PARAMS.max_shared_fraction;
    let weight = |f: f64| f64::from(f < most);
    let [normal, tumours] = [normal, tumours].map(MoleculeCountsByLikelihoodRatio::from_votes);
    let num_molecules = normal.num_molecules + tumours.num_molecules;
    most.ln()
        + average_over_fractions(num_molecules, weight, |f| {
            normal.log_likelihood_at_fraction(f) + tumours.log_likelihood_at_fraction(f)
        })
}

/// Log-likelihood of the votes of normal and tumours if reads of one orientation show the allele by error, in both
/// samples with the same unknown rate.
pub(super) fn phasing_error_log_likelihood(normal: &[MoleculeVote], tumours: &[MoleculeVote], is_forward: bool) -> f64 {
    // docs/model/genotype.md (26)
    let of_strand =
        |votes: &[MoleculeVote]| votes.iter().filter(|v| v.forward == is_forward).copied().collect::<Vec<_>>();
    shared_low_fraction_log_likelihood(&of_strand(normal), &of_strand(tumours))
}

/// Natural logarithm of a likelihood of `num_molecules` molecules, averaged over allele fractions with prior `weight`.
fn average_over_fractions(
    num_molecules: usize,
    weight: impl Fn(f64) -> f64,
    log_likelihood: impl Fn(f64) -> f64,
) -> f64 {
    // Even steps of the arcsine of the square root of a fraction: the likelihood of n molecules has the standard
    // deviation 1/(2 sqrt(n)) there, whatever the fraction is.
    let steps_per_unit = 2.0 * (num_molecules as f64).sqrt() * GENOTYPE_MODEL_PARAMS.fractions_per_deviation;
    let num_fractions =
        ((std::f64::consts::FRAC_PI_2 * steps_per_unit).ceil() as usize).max(GENOTYPE_MODEL_PARAMS.num_fractions);
    let points: Vec<(f64, f64)> = (0..num_fractions)
        .map(|i| (i as f64 + 0.5) / num_fractions as f64 * std::f64::consts::FRAC_PI_2)
        .map(|angle| (angle.sin().powi(2), (2.0 * angle).sin()))
        .map(|(f, step)| (weight(f) * step, f))
        .filter(|&(weight, _)| weight > 0.0)
        .map(|(weight, f)| (weight, log_likelihood(f)))
        .collect();
    let total: f64 = points.iter().map(|p| p.0).sum();
    let highest = points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    // docs/model/genotype.md (4)
    highest + (points.iter().map(|p| p.0 * (p.1 - highest).exp()).sum::<f64>() / total).ln()
}

/// Prior density of the allele fraction `f` of a heterozygous germline variant in the tumour: concentrated around one
/// half.
pub(super) fn germline_fraction_density(f: f64) -> f64 {
    // A normal distribution as wide as that of 40 molecules.
    let bell = (-(f - 0.5).powi(2) / (2.0 * GENOTYPE_MODEL_PARAMS.germline_fraction_sd.powi(2))).exp()
        / (GENOTYPE_MODEL_PARAMS.germline_fraction_sd * (2.0 * std::f64::consts::PI).sqrt());
    // docs/model/genotype.md (5)
    (1.0 - GENOTYPE_MODEL_PARAMS.shifted_fraction_share) * bell + GENOTYPE_MODEL_PARAMS.shifted_fraction_share
}

/// Sum of the terms in ascending order, so that rounding does not depend on the order given.
pub(super) fn order_independent_sum(mut terms: Vec<f64>) -> f64 {
    terms.sort_by(f64::total_cmp);
    terms.into_iter().reduce(|sum, term| sum + term).unwrap_or(0.0)
}

/// Log-likelihood of the votes of a tumour that has the change at an unknown fraction. With several tumours, each has
/// the change with probability one half.
fn somatic_log_likelihood(tumour: &[MoleculeVote], several: bool) -> f64 {
    let present = log_likelihood_averaged_over_fractions(tumour, |_| 1.0);
    if !several {
        return present;
    }
    log_of_mean_likelihood(present, log_likelihood_at_fraction(tumour, 0.0))
}

/// Logarithm of the mean of two likelihoods, from their logarithms.
fn log_of_mean_likelihood(a: f64, b: f64) -> f64 {
    let most = a.max(b);
    most + (0.5 * ((a - most).exp() + (b - most).exp())).ln()
}

/// Log-likelihood of the votes of all tumours if the change is somatic. A clonal change of their common founder has a
/// fraction near one half in all tumours, like a germline variant. Therefore two models are averaged: independent
/// fractions, and one free fraction with all others near one half.
pub(super) fn joint_somatic_log_likelihood(tumours: &[Vec<MoleculeVote>]) -> f64 {
    let several = tumours.len() > 1;
    let apart = order_independent_sum(tumours.iter().map(|votes| somatic_log_likelihood(votes, several)).collect());
    if !several {
        return apart;
    }
    let alike: Vec<f64> =
        tumours.iter().map(|votes| log_likelihood_averaged_over_fractions(votes, germline_fraction_density)).collect();
    let free: Vec<f64> = tumours.iter().map(|votes| log_likelihood_averaged_over_fractions(votes, |_| 1.0)).collect();
    let of = |one: usize| {
        let terms = (0..tumours.len()).map(|other| if other == one { free[other] } else { alike[other] });
        order_independent_sum(terms.collect())
    };
    let mut founders: Vec<f64> = (0..tumours.len()).map(of).collect();
    founders.sort_by(f64::total_cmp);
    let most = founders.iter().copied().fold(apart, f64::max);
    let founder = founders.iter().map(|of| (of - most).exp()).sum::<f64>() / founders.len() as f64;
    log_of_mean_likelihood(apart, most + founder.ln())
}

/// Mean of the joint somatic likelihood of all tumours and of that of one fraction in all of them, for the comparison
/// with an allele that all samples share at one fraction: tumours of equal purity have a clonal change at one fraction,
/// too. With one tumour both are the same. `joint` is a log-likelihood of [`joint_somatic_log_likelihood`], `pooled` are
/// the votes of all tumours together.
pub(super) fn average_with_common_fraction(joint: f64, num_tumours: usize, pooled: &[MoleculeVote]) -> f64 {
    match num_tumours {
        1 => joint,
        _ => log_of_mean_likelihood(joint, log_likelihood_averaged_over_fractions(pooled, |_| 1.0)),
    }
}

/// Log-likelihood of the votes of all tumours at the best-fitting fractions. Each fraction after the first costs half
/// the logarithm of the number of molecules (BIC; Schwarz 1978). A tumour that does not gain this much has fraction 0;
/// otherwise the errors of several tumours would be explained one by one.
pub(super) fn fitted_log_likelihood_of_tumours(tumours: &[Vec<MoleculeVote>]) -> f64 {
    if let [one] = tumours {
        return fitted_log_likelihood(one, 1.0);
    }
    let molecules: usize = tumours.iter().map(Vec::len).sum();
    let cost = 0.5 * (molecules.max(1) as f64).ln();
    let none = order_independent_sum(tumours.iter().map(|votes| log_likelihood_at_fraction(votes, 0.0)).collect());
    let mut gains: Vec<f64> = tumours
        .iter()
        .map(|votes| fitted_log_likelihood(votes, 1.0) - log_likelihood_at_fraction(votes, 0.0))
        .collect();
    gains.sort_by(f64::total_cmp);
    let Some(first) = gains.pop() else { return none };
    // docs/model/genotype.md (6)
    none + first + order_independent_sum(gains.into_iter().map(|gain| (gain - cost).max(0.0)).collect())
}

/// Likelihood of the normal's votes if the normal does not have the allele, except for contamination with tumour DNA.
pub(super) struct NormalWithoutAlleleLikelihood {
    /// Largest allele fraction in the normal that contamination with tumour DNA causes.
    pub(super) max_contamination: f64,
    /// Log-likelihood of the normal's votes at the best-fitting contamination.
    pub(super) log_likelihood_contaminated: f64,
    /// Log-likelihood of the normal's votes, including the prior odds of a normal without tumour cells.
    pub(super) log_likelihood_with_prior: f64,
}

impl NormalWithoutAlleleLikelihood {
    /// Fits the contamination. `pooled` is the support in all tumours together; `in_normal` is the known ratio of the
    /// allele fraction in the normal to that in the tumour, or 0.
    pub(super) fn fit_contamination(
        normal: &[MoleculeVote],
        tumours: &[Vec<MoleculeVote>],
        pooled: AlleleSupport,
        in_normal: f64,
    ) -> NormalWithoutAlleleLikelihood {
        // The fraction of a tumour with few molecules is uncertain.
        let own = tumours
            .iter()
            .map(|votes| AlleleSupport::count_supporting_molecules(votes))
            .filter(|own| own.num_informative_molecules() >= GENOTYPE_MODEL_PARAMS.min_normal_depth);
        let most = own.map(|own| own.supporting_vote_share()).fold(pooled.supporting_vote_share(), f64::max);
        let ratio = GENOTYPE_MODEL_PARAMS.contamination_ratio.max(in_normal);
        // Contamination with tumour cells does not give the normal more of an allele than the tumour has.
        let max_contamination = GENOTYPE_MODEL_PARAMS.min_contamination.min(most).max(most * ratio);
        let log_likelihood_contaminated = fitted_log_likelihood(normal, max_contamination);
        // Most normals contain no tumour: contamination with tumour has to be likelier by the prior odds, unless it is
        // known.
        let pure_odds = if in_normal > 0.0 { 0.0 } else { GENOTYPE_MODEL_PARAMS.pure_normal_log_odds };
        // docs/model/genotype.md (7)
        let log_likelihood_with_prior =
            log_likelihood_at_fraction(normal, 0.0).max(log_likelihood_contaminated - pure_odds);
        NormalWithoutAlleleLikelihood { max_contamination, log_likelihood_contaminated, log_likelihood_with_prior }
    }
}

/// Log-likelihood ratio of a somatic allele over an allele that the normal and all tumours share. `in_normal` is the
/// known ratio of the allele fraction in the normal to that in the tumour, or 0.
pub(crate) fn somatic_over_shared_log_ratio(
    normal: &[MoleculeVote],
    tumours: &[Vec<MoleculeVote>],
    in_normal: f64,
) -> f64 {
    let pooled = pool_votes_of_samples(tumours);
    let support = AlleleSupport::count_supporting_molecules(&pooled);
    // docs/model/genotype.md (21)
    NormalWithoutAlleleLikelihood::fit_contamination(normal, tumours, support, in_normal).log_likelihood_with_prior
        + average_with_common_fraction(joint_somatic_log_likelihood(tumours), tumours.len(), &pooled)
        - shared_low_fraction_log_likelihood(normal, &pooled)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Votes of `depth` molecules. The first `alternative` support the change.
    fn votes(alternative: u32, depth: u32) -> Vec<MoleculeVote> {
        (0..depth).map(|pair| MoleculeVote::for_test(pair, if pair < alternative { 9.0 } else { -9.0 })).collect()
    }

    #[test]
    fn counting_equal_ratios_gives_the_likelihood_of_each_vote() {
        let votes = [votes(3, 40), vec![MoleculeVote::for_test(50, 1.5); 2]].concat();
        let counts = MoleculeCountsByLikelihoodRatio::from_votes(&votes);
        for f in [0.0, 0.01, 0.3, 0.99] {
            assert!((counts.log_likelihood_at_fraction(f) - log_likelihood_at_fraction(&votes, f)).abs() < 1e-4);
        }
        assert_eq!(counts.counts.len(), 3);
    }

    #[test]
    fn averages_are_exact_at_any_depth() {
        // The integral of a binomial likelihood over all fractions is that of the beta function.
        for (alternative, depth) in [(0, 0), (0, 30), (3, 30), (15, 30), (17, 5783), (2900, 5783)] {
            let log_binomial = |f: f64| {
                let term = |n: u32, p: f64| if n == 0 { 0.0 } else { f64::from(n) * p.ln() };
                term(alternative, f) + term(depth - alternative, 1.0 - f)
            };
            let average = average_over_fractions(depth as usize, |_| 1.0, log_binomial);
            let log_factorial = |n: u32| (1..=n).map(|i| f64::from(i).ln()).sum::<f64>();
            let exact = log_factorial(alternative) + log_factorial(depth - alternative) - log_factorial(depth + 1);
            assert!((average - exact).abs() < 0.02, "{alternative} of {depth}: {average}, {exact}");
        }
    }
}
