//! Learns from the alleles of a call the odds of one kind of allele over another, such as germline over somatic, shared
//! over mutation, or PCR error over mutation, by expectation–maximisation.

use crate::genotype_params::GENOTYPE_MODEL_PARAMS;

/// The probability of natural log-odds.
pub(crate) fn probability_of_log_odds(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// Odds of two kinds of alleles.
pub(crate) struct AlleleKindOdds {
    /// Natural logarithm of the odds that an allele is of the first kind.
    pub(crate) log_odds: f64,
    /// Expected number of alleles of each kind, including the prior ones.
    expected_counts: [f64; 2],
}

impl AlleleKindOdds {
    /// Learns the odds from the given alleles by expectation–maximisation. `log_ratios` has for each allele the
    /// natural-log likelihood ratio of the first kind over the second. `prior_share` is the prior share of the first
    /// kind; it weighs as much as `prior_weight` alleles.
    pub(crate) fn learn_odds(log_ratios: &[f64], prior_share: f64, prior_weight: f64) -> AlleleKindOdds {
        let total = log_ratios.len() as f64 + prior_weight;
        let prior = [prior_share * prior_weight, (1.0 - prior_share) * prior_weight];
        let mut odds = AlleleKindOdds { log_odds: (prior[0] / prior[1]).ln(), expected_counts: prior };
        for _ in 0..GENOTYPE_MODEL_PARAMS.num_fit_rounds {
            let first: f64 = log_ratios.iter().map(|&ratio| odds.probability(ratio)).sum::<f64>() + prior[0];
            odds = AlleleKindOdds { log_odds: (first / (total - first)).ln(), expected_counts: [first, total - first] };
        }
        odds
    }

    /// Probability that an allele with this log-likelihood ratio is of the first kind.
    fn probability(&self, log_ratio: f64) -> f64 {
        probability_of_log_odds(log_ratio + self.log_odds)
    }

    /// Natural logarithm of the odds according to all other alleles, for one of the alleles: an allele is no evidence
    /// for its own kind.
    pub(crate) fn leave_one_out_log_odds(&self, log_ratio: f64) -> f64 {
        let own = self.probability(log_ratio);
        ((self.expected_counts[0] - own) / (self.expected_counts[1] - (1.0 - own))).ln()
    }
}
