//! Learns the odds of two kinds of alleles from all alleles of a call.

use crate::genotype_params::GENOTYPE_MODEL_PARAMS;

/// Natural logarithm of the odds that an allele is of the first of two kinds, learned from all alleles by
/// expectation–maximisation. `log_ratios` has for each allele the natural-log likelihood ratio of the first kind over
/// the second. `prior_share` is the prior share of the first kind; it weighs as much as `prior_weight` alleles.
pub(crate) fn learn_mixture_log_odds(log_ratios: &[f64], prior_share: f64, prior_weight: f64) -> f64 {
    let log_odds = |share: f64| (share / (1.0 - share)).ln();
    let mut share = prior_share;
    for _ in 0..GENOTYPE_MODEL_PARAMS.num_fit_rounds {
        let of_first_kind = |ratio: &f64| 1.0 / (1.0 + (-ratio - log_odds(share)).exp());
        let sum: f64 = log_ratios.iter().map(of_first_kind).sum();
        share = (sum + prior_share * prior_weight) / (log_ratios.len() as f64 + prior_weight);
    }
    log_odds(share)
}
