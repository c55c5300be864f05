//! Distinguishes mutations from errors of early PCR cycles in amplicons. There, read pairs do not show which of them
//! are duplicates of one molecule.
//!
//! An error of an early cycle is in all copies of one strand of one molecule: it has a low fraction, and only pairs of
//! one orientation have it. The frequency of such errors is learned from the calls themselves.

use crate::allele_kind_odds::{AlleleKindOdds, probability_of_log_odds};
use crate::change::Change;
use crate::genotype::{AlleleSupport, ErrorFrequency};
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::locus::VariantCall;

/// Number of pairs with an allele and number of all pairs, for each orientation (F1R2, F2R1).
type PairCounts = [[u32; 2]; 2];

fn pair_counts(support: &AlleleSupport) -> PairCounts {
    let of = |alternative: u32, reference: u32| [alternative, alternative + reference];
    [
        of(support.first_forward, support.reference_first_forward),
        of(support.alternative - support.first_forward, support.reference - support.reference_first_forward),
    ]
}

/// Natural-log likelihood of `k` of `n` pairs with an allele of fraction `f`.
fn log_likelihood([k, n]: [u32; 2], f: f64) -> f64 {
    f64::from(k) * f.ln() + f64::from(n - k) * (1.0 - f).ln()
}

/// Natural logarithm of the weighted mean of exp(value). `log_values` yields pairs of weight and value.
fn log_weighted_mean(log_values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let points: Vec<(f64, f64)> = log_values.collect();
    let highest = points.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = points.iter().map(|(weight, _)| weight).sum();
    let sum: f64 = points.iter().map(|(weight, value)| weight * (value - highest).exp()).sum();
    highest + (sum / total).ln()
}

/// Natural-log likelihood of `k` of `n` pairs of one orientation with an allele of fraction `f`, if the pairs are
/// copies of `num_templates` amplified molecules of that orientation (beta-binomial distribution).
fn log_likelihood_of_templates([k, n]: [u32; 2], f: f64, num_templates: f64) -> f64 {
    let (k, rest) = (f64::from(k), f64::from(n - k));
    let (with, without) = (num_templates * f, num_templates * (1.0 - f));
    let ln_beta = |a: f64, b: f64| libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    ln_beta(with + k, without + rest) - ln_beta(with, without)
}

/// Natural-log likelihood of the pair counts of a mutation of unknown fraction, if `num_templates` molecules of each
/// orientation were amplified.
fn mutation_log_likelihood(counts: PairCounts, num_templates: f64) -> f64 {
    let steps = GENOTYPE_MODEL_PARAMS.num_pcr_error_fractions;
    // docs/model/genotype.md (24)
    let fractions = (0..steps).map(|i| (i as f64 + 1.0 / 2.0) / steps as f64);
    let both = |f: f64| counts.map(|own| log_likelihood_of_templates(own, f, num_templates)).iter().sum();
    log_weighted_mean(fractions.map(|f| (1.0, both(f))))
}

/// Natural-log likelihood of the pair counts of a PCR error of unknown fraction, which is in one orientation only.
fn error_log_likelihood([first, second]: PairCounts) -> f64 {
    let p = &GENOTYPE_MODEL_PARAMS;
    let steps = p.num_pcr_error_fractions;
    let range = (p.max_pcr_error_fraction / p.min_pcr_error_fraction).ln();
    // Points with equal distances of their logarithms: the density 1/f² has the weight 1/f.
    let fraction = |i: usize| p.min_pcr_error_fraction * (range * (i as f64 + 1.0 / 2.0) / steps as f64).exp();
    // docs/model/genotype.md (24)
    let of_orientation = |own: [u32; 2], other: [u32; 2]| {
        let own = log_weighted_mean((0..steps).map(fraction).map(|f| (1.0 / f, log_likelihood(own, f))));
        own + log_likelihood(other, p.opposite_strand_error_probability)
    };
    let error = [of_orientation(first, second), of_orientation(second, first)];
    log_weighted_mean(error.into_iter().map(|one| (1.0, one)))
}

/// Pair counts of an allele in one tumour.
#[derive(Debug, Clone, Copy)]
struct TumourCounts {
    counts: PairCounts,
    /// Natural-log likelihood of these counts for a PCR error. It does not depend on the [`PcrErrorModel`].
    error: f64,
}

impl TumourCounts {
    fn from_counts(counts: PairCounts) -> TumourCounts {
        TumourCounts { counts, error: error_log_likelihood(counts) }
    }

    /// Pair counts of a call in each tumour.
    fn from_call(call: &VariantCall) -> Vec<TumourCounts> {
        let genotype = &call.genotype;
        let of = |support: &AlleleSupport| TumourCounts::from_counts(pair_counts(support));
        if genotype.tumours.is_empty() {
            return vec![of(&genotype.tumour)];
        }
        genotype.tumours.iter().map(|tumour| of(&tumour.support)).collect()
    }
}

/// Natural-log likelihoods of a call as a PCR error and as a mutation. With several tumours, those of the tumour that
/// is least like a PCR error.
fn log_likelihoods_of_call(tumours: &[TumourCounts], num_templates: f64) -> [f64; 2] {
    let each = tumours.iter().map(|tumour| [tumour.error, mutation_log_likelihood(tumour.counts, num_templates)]);
    each.min_by(|a, b| (a[0] - a[1]).total_cmp(&(b[0] - b[1]))).unwrap_or_default()
}

/// Model of PCR errors, learned from the calls.
#[derive(Debug, Clone, Copy)]
struct PcrErrorModel {
    /// Number of molecules of each orientation that were amplified at one position.
    num_templates: f64,
    /// Natural logarithm of the prior odds that an allele is a PCR error rather than a mutation.
    error_log_odds: f64,
}

impl PcrErrorModel {
    /// Learns the model from the pair counts of calls, each with the counts of all tumours.
    fn learn(calls: &[&[TumourCounts]]) -> PcrErrorModel {
        let p = &GENOTYPE_MODEL_PARAMS;
        let num_steps = i32::from(p.num_template_doublings);
        let learned = (-num_steps..=num_steps).map(|step| {
            let num_templates = p.expected_templates * f64::from(step).exp2();
            let likelihoods: Vec<[f64; 2]> =
                calls.iter().map(|tumours| log_likelihoods_of_call(tumours, num_templates)).collect();
            let log_ratios: Vec<f64> = likelihoods.iter().map(|[error, mutation]| error - mutation).collect();
            let error_log_odds =
                AlleleKindOdds::learn_odds(&log_ratios, p.pcr_error_share, p.pcr_error_share_weight).log_odds;
            let share = probability_of_log_odds(error_log_odds);
            let either = |&[error, mutation]: &[f64; 2]| {
                log_weighted_mean([(share, error), (1.0 - share, mutation)].into_iter())
            };
            // docs/model/genotype.md (25)
            let prior = -0.5 * (f64::from(step) / p.templates_sd_doublings).powi(2);
            let log_likelihood = likelihoods.iter().map(either).sum::<f64>() + prior;
            (log_likelihood, PcrErrorModel { num_templates, error_log_odds })
        });
        let best = learned.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, model)| model);
        best.unwrap_or(PcrErrorModel { num_templates: p.expected_templates, error_log_odds: 0.0 })
    }

    /// Natural logarithm of the odds that an allele with these pair counts is a mutation rather than a PCR error.
    fn mutation_log_odds(self, tumours: &[TumourCounts]) -> f64 {
        let [error, mutation] = log_likelihoods_of_call(tumours, self.num_templates);
        mutation - error - self.error_log_odds
    }
}

/// Lowers the quality of calls that may be PCR errors, and filters those below `min_quality`. Indels outside repeats
/// and junctions keep their quality: PCR hardly ever makes them.
pub(crate) fn limit_quality_by_pcr_errors(calls: &mut [VariantCall], min_quality: f64) {
    let is_small = |call: &VariantCall| {
        call.error_frequency == ErrorFrequency::Common && matches!(call.change, Change::Allele { .. })
    };
    let small = calls.iter_mut().filter(|call| is_small(call));
    let mut small: Vec<(Vec<TumourCounts>, &mut VariantCall)> =
        small.map(|call| (TumourCounts::from_call(call), call)).collect();
    let passing = small.iter().filter(|(_, call)| call.genotype.filters.is_empty());
    let model = PcrErrorModel::learn(&passing.map(|(tumours, _)| &tumours[..]).collect::<Vec<_>>());
    for (tumours, call) in &mut small {
        call.genotype.limit_quality(model.mutation_log_odds(tumours), min_quality);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::genotype::phred_of_log_odds;

    /// The model of calls with one tumour.
    fn learn(calls: &[PairCounts]) -> PcrErrorModel {
        let calls: Vec<TumourCounts> = calls.iter().copied().map(TumourCounts::from_counts).collect();
        PcrErrorModel::learn(&calls.chunks(1).collect::<Vec<_>>())
    }

    /// Quality of the allele with these counts in the tumours.
    fn quality_of(model: PcrErrorModel, tumours: &[PairCounts]) -> f64 {
        let tumours: Vec<TumourCounts> = tumours.iter().copied().map(TumourCounts::from_counts).collect();
        phred_of_log_odds(model.mutation_log_odds(&tumours))
    }

    /// Quality against an error of PCR of the allele with these counts, among `calls`.
    fn quality(counts: PairCounts, calls: &[PairCounts]) -> f64 {
        quality_of(learn(calls), &[counts])
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
    fn the_share_of_errors_and_the_number_of_templates_are_learned() {
        let without_calls = learn(&[]);
        assert!((without_calls.error_log_odds - (0.02f64 / 0.98).ln()).abs() < 1e-9);
        assert_eq!(without_calls.num_templates, GENOTYPE_MODEL_PARAMS.expected_templates);
        let even = vec![[[50, 500], [50, 500]]; 30];
        let uneven = vec![[[10, 500], [90, 500]], [[120, 500], [25, 500]], [[60, 500], [190, 500]]];
        let errors = vec![[[15, 500], [0, 500]]; 10];
        let even = learn(&[even, errors.clone()].concat());
        let uneven = learn(&[vec![uneven; 10].concat(), errors].concat());
        assert!(uneven.num_templates < 80.0 && 300.0 < even.num_templates, "{uneven:?} {even:?}");
        let share = probability_of_log_odds(even.error_log_odds);
        assert!((share - 0.2).abs() < 0.06, "{share}");
        // An allele with few pairs of one orientation is a mutation if other alleles are as uneven.
        let counts = [[[3, 180], [27, 200]]];
        let [uneven, even] = [uneven, even].map(|model| quality_of(model, &counts));
        assert!(uneven > 15.0 && even < uneven);
    }

    #[test]
    fn of_several_tumours_the_one_least_like_an_error_counts() {
        let model = learn(&[]);
        let [error, mutation] = [[[12, 500], [0, 480]], [[60, 500], [52, 480]]];
        assert_eq!(quality_of(model, &[error, mutation]), quality_of(model, &[mutation]));
        assert!(quality_of(model, &[error]) < quality_of(model, &[mutation]));
    }
}
