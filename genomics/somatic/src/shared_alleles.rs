//! Learns from all calls how frequent alleles are that normal and tumour share (positions with many errors, copies of a
//! sequence, mosaics) compared with mutations, and limits the qualities accordingly. Formula (27) of
//! `docs/model/genotype.md`.

use crate::change::is_small_variant;
use crate::genotype::QualityLimits;
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::locus::VariantCall;
use crate::mixture;

/// Log-odds (natural) of shared alleles over mutations, from the log-odds of each call over a shared allele; at least
/// 0.
fn fit_log_odds(against_shared: &[f64]) -> f64 {
    let log_ratios: Vec<f64> = against_shared.iter().map(|against| -against).collect();
    // docs/model/genotype.md (27)
    mixture::learn_mixture_log_odds(&log_ratios, 0.5, GENOTYPE_MODEL_PARAMS.shared_odds_weight).max(0.0)
}

/// Limits the qualities of small changes by the learned odds. Calls below `min_quality` get the filter.
pub(crate) fn limit_quality_by_shared_alleles(calls: &mut [VariantCall], min_quality: f64) {
    let is_allele = |limits: &QualityLimits| {
        limits.against_error > 0.0 && limits.against_germline > 0.0 && limits.against_shared.is_finite()
    };
    let against_shared: Vec<f64> = calls
        .iter()
        .filter(|call| is_small_variant(&call.change) && is_allele(&call.genotype.limits))
        .map(|call| call.genotype.limits.against_shared)
        .collect();
    let log_odds = fit_log_odds(&against_shared);
    for call in calls.iter_mut().filter(|call| is_small_variant(&call.change)) {
        let log_odds_of_mutation = call.genotype.limits.against_shared - log_odds;
        call.genotype.limit_quality(log_odds_of_mutation, min_quality);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alleles_of_both_samples_lower_the_odds_of_mutations() {
        assert_eq!(fit_log_odds(&[]), 0.0);
        assert_eq!(fit_log_odds(&[12.0; 40]), 0.0);
        let shared = fit_log_odds(&[-6.0; 40]);
        assert!((2.0..2.4).contains(&shared), "{shared}");
        let mixed = fit_log_odds(&[vec![-6.0; 40], vec![12.0; 40]].concat());
        assert!(mixed < 0.1, "{mixed}");
    }
}
