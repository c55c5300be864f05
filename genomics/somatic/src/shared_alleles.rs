//! Learns from the small variants how frequent alleles are that normal and tumour share (positions with many errors,
//! copies of a sequence, mosaics) compared with mutations, and limits their qualities accordingly. Formula (27) of
//! `docs/model/genotype.md`.

use crate::allele_kind_odds::AlleleKindOdds;
use crate::change::is_small_variant;
use crate::genotype::QualityLimits;
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::locus::VariantCall;

/// Learns the odds of shared alleles over mutations, from the log-odds (natural) of each call over a shared allele.
fn learn_shared_odds(against_shared: &[f64]) -> AlleleKindOdds {
    let p = &GENOTYPE_MODEL_PARAMS;
    let log_ratios: Vec<f64> = against_shared.iter().map(|against| -against).collect();
    // docs/model/genotype.md (27)
    AlleleKindOdds::learn_odds(&log_ratios, p.shared_allele_share, p.shared_odds_weight)
}

/// Learns the odds of shared alleles over mutations from those small variants whose limits show no error and no
/// germline variant, and corrects the log-odds of all small variants over shared alleles. Where shared alleles are more
/// frequent than mutations, this limits the qualities. Small variants below `min_quality` get the filter `low_quality`.
pub(crate) fn limit_quality_by_shared_alleles(calls: &mut [VariantCall], min_quality: f64) {
    let is_allele = |limits: &QualityLimits| {
        limits.against_error > 0.0 && limits.against_germline > 0.0 && limits.against_shared.is_finite()
    };
    let against_shared: Vec<f64> = calls
        .iter()
        .filter(|call| is_small_variant(&call.change) && is_allele(&call.genotype.limits))
        .map(|call| call.genotype.limits.against_shared)
        .collect();
    let odds = learn_shared_odds(&against_shared);
    for genotype in calls.iter_mut().filter(|call| is_small_variant(&call.change)).map(|call| &mut call.genotype) {
        let log_odds = match is_allele(&genotype.limits) {
            true => odds.leave_one_out_log_odds(-genotype.limits.against_shared),
            false => odds.log_odds,
        };
        genotype.limits.against_shared -= log_odds;
        genotype.limit_quality(genotype.limits.against_shared, min_quality);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alleles_of_both_samples_lower_the_odds_of_mutations() {
        let log_odds = |against_shared: &[f64]| learn_shared_odds(against_shared).log_odds;
        let prior = log_odds(&[]);
        assert!(prior > 0.0);
        assert!(log_odds(&[12.0; 40]) < 0.0);
        assert!(log_odds(&[-6.0; 40]) > prior);
        let mixed = log_odds(&[vec![-6.0; 40], vec![12.0; 40]].concat());
        assert!(mixed < prior, "{mixed}");
    }
    #[test]
    fn a_single_allele_is_no_evidence_for_its_own_kind() {
        let single = learn_shared_odds(&[12.0]);
        assert!((single.leave_one_out_log_odds(-12.0) - learn_shared_odds(&[]).log_odds).abs() < 1e-9);
    }
}
