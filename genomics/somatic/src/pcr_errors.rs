//! Tells mutations from errors of early PCR cycles in amplicons, whose pairs do not show which of them are copies of one
//! molecule.
//!
//! An error of an early cycle is in all copies of one strand of one molecule: it has a low fraction, and only pairs of one
//! orientation have it. How frequent such errors are is learned from the calls themselves.

use crate::change::Change;
use crate::genotype::{AlleleSupport, ErrorFrequency, Filter};
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::locus::VariantCall;
use crate::mixture;

/// Numbers of pairs with an allele and of all pairs, for each orientation (F1R2, F2R1).
type PairCounts = [[u32; 2]; 2];

fn pair_counts(support: &AlleleSupport) -> PairCounts {
    let of = |alternative: u32, reference: u32| [alternative, alternative + reference];
    [
        of(support.first_forward, support.reference_first_forward),
        of(support.alternative - support.first_forward, support.reference - support.reference_first_forward),
    ]
}

/// Log-likelihood of `k` of `n` pairs with an allele of fraction `f`.
fn log_likelihood([k, n]: [u32; 2], f: f64) -> f64 {
    f64::from(k) * f.ln() + f64::from(n - k) * (1.0 - f).ln()
}

/// Natural logarithm of the mean of exp(`log_values`), weighted.
fn log_weighted_mean(log_values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let points: Vec<(f64, f64)> = log_values.collect();
    let highest = points.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = points.iter().map(|(weight, _)| weight).sum();
    let sum: f64 = points.iter().map(|(weight, value)| weight * (value - highest).exp()).sum();
    highest + (sum / total).ln()
}

/// Natural logarithm of the likelihood that an allele is an error of PCR, over the likelihood that it is a mutation.
fn pcr_error_log_ratio(counts: PairCounts) -> f64 {
    let p = &GENOTYPE_MODEL_PARAMS;
    let [first, second] = counts;
    let both = [first[0] + second[0], first[1] + second[1]];
    // docs/model/genotype.md (24)
    let steps = p.num_pcr_error_fractions;
    let uniform = (0..steps).map(|i| (i as f64 + 1.0 / 2.0) / steps as f64);
    let mutation = log_weighted_mean(uniform.map(|f| (1.0, log_likelihood(both, f))));
    let range = (p.max_pcr_error_fraction / p.min_pcr_error_fraction).ln();
    // Points with equal distances of their logarithms: the density 1/f² has the weight 1/f.
    let fraction = |i: usize| p.min_pcr_error_fraction * (range * (i as f64 + 1.0 / 2.0) / steps as f64).exp();
    let of_orientation = |own: [u32; 2], other: [u32; 2]| {
        let own = log_weighted_mean((0..steps).map(fraction).map(|f| (1.0 / f, log_likelihood(own, f))));
        own + log_likelihood(other, p.opposite_strand_error_probability)
    };
    let error = [of_orientation(first, second), of_orientation(second, first)];
    log_weighted_mean(error.into_iter().map(|one| (1.0, one))) - mutation
}

/// The log-likelihood ratio of a call. Of several tumours the one that is the least like an error counts.
fn call_log_ratio(call: &VariantCall) -> f64 {
    let genotype = &call.genotype;
    if genotype.tumours.is_empty() {
        return pcr_error_log_ratio(pair_counts(&genotype.tumour));
    }
    let each = genotype.tumours.iter().map(|tumour| pcr_error_log_ratio(pair_counts(&tumour.support)));
    each.fold(f64::INFINITY, f64::min)
}

/// Natural logarithm of the odds of errors of PCR over mutations, learned from the log-likelihood ratios of alleles.
fn learn_error_log_odds(log_ratios: &[f64]) -> f64 {
    let p = &GENOTYPE_MODEL_PARAMS;
    // docs/model/genotype.md (25)
    mixture::learn_log_odds(log_ratios, p.pcr_error_share, p.pcr_error_share_weight)
}

/// Limits the quality of calls that may be errors of PCR, and filters those below `min_quality`. Indels outside repeats and
/// junctions keep their quality: PCR hardly ever makes them.
pub(crate) fn limit_qualities(calls: &mut [VariantCall], min_quality: f64) {
    let is_small = |call: &VariantCall| {
        call.error_frequency == ErrorFrequency::Common && matches!(call.change, Change::Allele { .. })
    };
    let passes = |call: &VariantCall| call.genotype.filters.is_empty();
    let log_ratios: Vec<f64> = calls.iter().filter(|call| is_small(call) && passes(call)).map(call_log_ratio).collect();
    let error_log_odds = learn_error_log_odds(&log_ratios);
    for call in calls.iter_mut().filter(|call| is_small(call)) {
        let against_error = -call_log_ratio(call) - error_log_odds;
        let phred = (against_error * 10.0 / std::f64::consts::LN_10).clamp(0.0, GENOTYPE_MODEL_PARAMS.max_quality);
        let genotype = &mut call.genotype;
        genotype.quality = genotype.quality.min(phred);
        if genotype.quality < min_quality {
            genotype.filters.insert(Filter::LowQuality);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quality against an error of PCR of the allele with these counts, among `calls`.
    fn quality(counts: PairCounts, calls: &[PairCounts]) -> f64 {
        let log_ratios: Vec<f64> = calls.iter().copied().map(pcr_error_log_ratio).collect();
        (-pcr_error_log_ratio(counts) - learn_error_log_odds(&log_ratios)) * 10.0 / std::f64::consts::LN_10
    }

    #[test]
    fn an_allele_of_one_orientation_and_low_fraction_is_an_error() {
        // Mutations of 5 % and 25 %, and errors.
        let calls = [
            vec![[[30, 500], [22, 480]]; 20],
            vec![[[120, 500], [118, 480]]; 20],
            vec![[[9, 500], [0, 480]], [[0, 300], [5, 320]], [[13, 400], [0, 250]]],
        ]
        .concat();
        for error in [[[8, 500], [0, 480]], [[0, 500], [15, 480]], [[4, 180], [0, 180]], [[11, 46], [0, 39]]] {
            assert!(quality(error, &calls) < 8.0, "{error:?}: {}", quality(error, &calls));
        }
        for mutation in [[[12, 393], [19, 205]], [[30, 500], [22, 480]], [[37, 63], [3, 27]], [[8, 500], [9, 480]]] {
            assert!(quality(mutation, &calls) > 20.0, "{mutation:?}: {}", quality(mutation, &calls));
        }
    }

    #[test]
    fn alleles_pass_in_a_design_with_one_orientation() {
        let calls = [[[60, 500], [0, 0]], [[125, 500], [0, 0]], [[250, 500], [0, 0]]];
        for mutation in [[[25, 500], [0, 0]], [[60, 500], [0, 0]]] {
            assert!(quality(mutation, &calls) > 8.0, "{mutation:?}: {}", quality(mutation, &calls));
        }
    }

    #[test]
    fn the_share_of_errors_is_learned() {
        assert!((learn_error_log_odds(&[]) - (0.02f64 / 0.98).ln()).abs() < 1e-9);
        let mutations = vec![-20.0; 90];
        let errors = vec![6.0; 30];
        let learned = learn_error_log_odds(&[mutations, errors].concat());
        assert!((learned - (0.25f64 / 0.75).ln()).abs() < 0.3, "{learned}");
    }
}
