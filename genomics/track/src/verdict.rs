//! Decides from molecule counts and error rates whether each change, and tumour DNA in the sample, is detected.

use serde::Serialize;

use crate::background_errors::JunctionErrorRates;
use crate::molecules::MoleculeCounts;
use crate::statistics::{WeightedObservedAndExpected, binomial_confidence_interval, weighted_sum_p_value};

/// Maximum p-value at which a change, or tumour DNA in a sample, is detected. The p-value is the probability that
/// errors alone give as many molecules. A larger value gives more true and more false detections.
pub(crate) const MAX_DETECTION_P_VALUE: f64 = 1e-3;
/// Minimum number of molecules with tracked changes at which a change, or tumour DNA in a sample, is detected.
pub(crate) const MIN_MOLECULES_FOR_DETECTION: u64 = 2;
/// Allele fraction in the first tumour if the VCF file does not contain it: that of a change in all cells on one of two
/// copies.
const DEFAULT_ALLELE_FRACTION: f64 = 0.5;
/// Tumour fraction, relative to the first tumour, for which the weights of molecules are optimal (chosen). A smaller
/// value gives changes with rare errors more weight.
const WEIGHTING_TUMOUR_FRACTION: f64 = 1e-3;
/// Minimum lower confidence limit of the allele fraction at which a change may be germline, if the fraction of the
/// other changes is below [`MAX_OTHER_CHANGES_FRACTION`].
const MIN_GERMLINE_FRACTION: f64 = 0.2;
/// Maximum allele fraction of the other changes at which a frequent change counts as germline (empirical).
const MAX_OTHER_CHANGES_FRACTION: f64 = 0.02;
/// Minimum number of other changes with which the frequent changes are compared; there must also be at least as many
/// other changes as frequent ones.
const MIN_OTHER_CHANGES: usize = 5;
/// Weight of the estimated error rate, as a number of molecules, when it is combined with the molecule counts of the
/// patient's normal (chosen).
const NORMAL_PRIOR_MOLECULES: f64 = 3.0;

/// Verdict on one change in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    /// The change is detected: more molecules have it than errors explain.
    Found,
    /// Some molecules have the change, but errors may explain them.
    Unsure,
    /// No molecule of the sample has the change.
    NotSeen,
    /// The sample has no informative molecules at the change.
    NoMolecules,
    /// The patient's normal sample has the change too, so it is not somatic.
    InNormal,
    /// The change is as frequent as a germline variant while the other changes are rare. It is not used for the
    /// sample's result.
    StandsOut,
}

impl ChangeVerdict {
    /// Name of the verdict in tables.
    pub fn verdict_name(self) -> &'static str {
        match self {
            ChangeVerdict::Found => "found",
            ChangeVerdict::Unsure => "unsure",
            ChangeVerdict::NotSeen => "not_seen",
            ChangeVerdict::NoMolecules => "no_molecules",
            ChangeVerdict::InNormal => "in_normal",
            ChangeVerdict::StandsOut => "stands_out",
        }
    }

    /// Whether the change is used for the sample's result.
    fn counts_for_sample(self) -> bool {
        !matches!(self, ChangeVerdict::NoMolecules | ChangeVerdict::InNormal | ChangeVerdict::StandsOut)
    }
}

/// Result for one change in one sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeResult {
    /// Index of the change in the list of tracked changes.
    #[serde(skip)]
    pub change: usize,
    /// Number of molecules with the change.
    pub changed: u64,
    /// Number of informative molecules: with or without the change.
    pub molecules: u64,
    /// Allele fraction: share of the informative molecules that have the change.
    pub fraction: f64,
    /// Lower end of the 95% confidence interval of `fraction`.
    pub low: f64,
    /// Upper end of the 95% confidence interval of `fraction`.
    pub high: f64,
    /// Expected share of the informative molecules that look like the change by error.
    pub error_rate: f64,
    /// Expected number of molecules that look like the change by error.
    pub expected: f64,
    /// p-value: probability that errors alone give a weighted sum of molecules with the change as large as the observed
    /// one. A molecule has more weight the rarer errors are at its junction and orientation.
    pub p: f64,
    /// Whether the change is detected.
    pub verdict: ChangeVerdict,
    /// Number of duplicate pairs.
    pub duplicates: u64,
    /// Number of molecules whose reads support different alleles.
    pub contradictory: u64,
    /// Number of molecules with too little evidence for an allele.
    pub unclear: u64,
    /// Downsampling factor: n if one pair in n was used; the largest of the change's junctions.
    pub downsampling_factor: u32,
    /// Molecule counts of each junction and orientation, from which the sample's result is computed.
    #[serde(skip)]
    evidence: Vec<JunctionCounts>,
}

/// Molecule counts and error rate of one junction for pairs of one orientation.
#[derive(Debug, Clone, Copy, PartialEq)]
struct JunctionCounts {
    found: u64,
    all: f64,
    rate: f64,
    gamma_shape: f64,
}

/// An estimated value with its 95% confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Maximum-likelihood estimate, between `low` and `high`.
    pub value: f64,
    /// Lower end of the 95% confidence interval.
    pub low: f64,
    /// Upper end of the 95% confidence interval.
    pub high: f64,
}

/// Result for one sample, computed from the used changes: the tracked changes with informative molecules, except those
/// with the verdict [`ChangeVerdict::InNormal`] or [`ChangeVerdict::StandsOut`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleResult {
    /// Number of used changes.
    pub changes: usize,
    /// Number of molecules that have a used change.
    pub changed: u64,
    /// Number of informative molecules at the used changes: with or without the change.
    pub molecules: u64,
    /// Expected number of molecules that look like a used change by error.
    pub expected: f64,
    /// p-value: probability that errors alone give a weighted sum of molecules as large as the observed one. A molecule
    /// has more weight the rarer the errors are that look like its change.
    pub p: f64,
    /// Whether tumour DNA is detected in the sample.
    pub detected: bool,
    /// Amount of tumour DNA relative to the first tumour sample. For changes whose allele fraction in that sample is
    /// unknown, a pure tumour is assumed.
    pub relative: Estimate,
    /// Share of tumour cells in the sample, assuming that the changes are in all tumour cells on one of two copies.
    pub tumour_fraction: Estimate,
}

/// Molecule counts and error rates of one sample at one junction: the input of [`judge_change`].
pub(crate) struct JunctionObservations<'a> {
    /// Numbers of molecules with and without the change.
    pub molecules: &'a MoleculeCounts,
    /// Rates at which errors look like the change, and their uncertainty.
    pub error_rates: JunctionErrorRates,
    /// Downsampling factor: n if one pair in n was used.
    pub downsampling_factor: u32,
}

/// Expected number of errors at a junction, and the weight of a molecule: the log-likelihood ratio (natural) of tumour
/// DNA over an error. `share` is the allele fraction of the change in the first tumour.
fn weighted_count(of: &JunctionCounts, share: f64) -> WeightedObservedAndExpected {
    let expected = (of.all * of.rate).max(1e-12);
    let weight = if of.all > 0.0 { (1.0 + WEIGHTING_TUMOUR_FRACTION * share / of.rate).ln() } else { 0.0 };
    WeightedObservedAndExpected { expected, weight, found: of.found, gamma_shape: of.gamma_shape }
}

/// Decides whether a change is detected, from all of its junctions. `normal` is the result of the same change in the
/// patient's normal.
pub(crate) fn judge_change(
    index: usize,
    share: Option<f64>,
    observations: &[JunctionObservations<'_>],
    normal: Option<&ChangeResult>,
) -> ChangeResult {
    let mut evidence = Vec::with_capacity(2 * observations.len());
    for JunctionObservations { molecules: votes, error_rates: local, .. } in observations {
        for side in 0..2 {
            let mut rate = local.rates[side];
            if let Some(normal) = normal {
                let with_prior = normal.changed as f64 + NORMAL_PRIOR_MOLECULES;
                rate = rate.max(with_prior / (normal.molecules as f64 + NORMAL_PRIOR_MOLECULES / rate));
            }
            let found = u64::from(votes.changed[side]);
            evidence.push(JunctionCounts {
                found,
                all: found as f64 + votes.unchanged[side],
                rate,
                gamma_shape: local.gamma_shape,
            });
        }
    }
    let sum = |of: fn(&MoleculeCounts) -> u32| observations.iter().map(|g| u64::from(of(g.molecules))).sum::<u64>();
    let changed: u64 = observations.iter().map(|g| g.molecules.num_molecules_with_change()).sum();
    let molecules: u64 = observations.iter().map(|g| g.molecules.num_informative_molecules()).sum();
    let expected: f64 = evidence.iter().map(|e| e.all * e.rate).sum();
    let cells: Vec<WeightedObservedAndExpected> =
        evidence.iter().map(|e| weighted_count(e, share.unwrap_or(DEFAULT_ALLELE_FRACTION).max(0.01))).collect();
    let p = weighted_sum_p_value(&cells);
    let [low, high] = binomial_confidence_interval(changed, molecules);
    let verdict = match (changed, molecules) {
        (_, 0) => ChangeVerdict::NoMolecules,
        _ if normal.is_some_and(|n| matches!(n.verdict, ChangeVerdict::Found | ChangeVerdict::StandsOut)) => {
            ChangeVerdict::InNormal
        }
        (0, _) => ChangeVerdict::NotSeen,
        _ if p <= MAX_DETECTION_P_VALUE && changed >= MIN_MOLECULES_FOR_DETECTION => ChangeVerdict::Found,
        _ => ChangeVerdict::Unsure,
    };
    ChangeResult {
        change: index,
        changed,
        molecules,
        fraction: changed as f64 / molecules.max(1) as f64,
        low,
        high,
        error_rate: expected / evidence.iter().map(|e| e.all).sum::<f64>().max(1e-9),
        expected,
        p,
        verdict,
        duplicates: sum(|v| v.duplicates),
        contradictory: sum(|v| v.contradictory),
        unclear: sum(|v| v.unclear),
        downsampling_factor: observations.iter().map(|g| g.downsampling_factor).max().unwrap_or(1),
        evidence,
    }
}

/// Computes the result of a sample from those of its changes. `share` returns the allele fraction of a change in the
/// first tumour. Changes that look germline get the verdict [`ChangeVerdict::StandsOut`].
pub(crate) fn judge_sample(results: &mut [ChangeResult], share: impl Fn(usize) -> Option<f64>) -> SampleResult {
    let sums = |of: &[ChangeResult]| {
        let counting = || of.iter().filter(|t| t.verdict.counts_for_sample());
        (counting().map(|t| t.changed).sum::<u64>(), counting().map(|t| t.molecules).sum::<u64>(), counting().count())
    };
    let (changed, molecules, all) = sums(results);
    // Frequent changes are compared with the rest only, not with each other.
    let stands = |t: &ChangeResult| t.verdict == ChangeVerdict::Found && t.low >= MIN_GERMLINE_FRACTION;
    let frequent = results
        .iter()
        .filter(|t| stands(t))
        .fold((0, 0, 0), |sum, t| (sum.0 + t.changed, sum.1 + t.molecules, sum.2 + 1));
    let others = (changed - frequent.0) as f64 / (molecules - frequent.1).max(1) as f64;
    if all - frequent.2 >= MIN_OTHER_CHANGES.max(frequent.2) && others < MAX_OTHER_CHANGES_FRACTION {
        results.iter_mut().filter(|t| stands(t)).for_each(|t| t.verdict = ChangeVerdict::StandsOut);
    }
    let (changed, molecules, changes) = sums(results);
    let counting = || results.iter().filter(|t| t.verdict.counts_for_sample());
    let mut evidence: Vec<(JunctionCounts, f64)> = Vec::new();
    let mut shares = Vec::new();
    for t in counting() {
        let share = share(t.change).unwrap_or(DEFAULT_ALLELE_FRACTION).clamp(0.01, 1.0);
        shares.push(share);
        evidence.extend(t.evidence.iter().filter(|e| e.all > 0.0).map(|e| (*e, share)));
    }
    let cells: Vec<WeightedObservedAndExpected> = evidence.iter().map(|(e, share)| weighted_count(e, *share)).collect();
    let p = weighted_sum_p_value(&cells);
    shares.sort_by(f64::total_cmp);
    let median = shares.get(shares.len() / 2).copied().unwrap_or(DEFAULT_ALLELE_FRACTION);
    let relative = estimate_tumour_dna(&evidence);
    let then = (2.0 * median).min(1.0);
    let scaled = |x: f64| (x * then).min(1.0);
    SampleResult {
        changes,
        changed,
        molecules,
        expected: evidence.iter().map(|(e, _)| e.all * e.rate).sum(),
        p,
        detected: p <= MAX_DETECTION_P_VALUE && changed >= MIN_MOLECULES_FOR_DETECTION,
        tumour_fraction: Estimate {
            value: scaled(relative.value),
            low: scaled(relative.low),
            high: scaled(relative.high),
        },
        relative,
    }
}

/// Difference to the maximum log-likelihood at the ends of a 95% confidence interval: half of the 95% quantile of the
/// chi-squared distribution with one degree of freedom.
const LOG_LIKELIHOOD_DROP: f64 = 1.920_729;

/// Maximum-likelihood estimate, with confidence interval, of the amount of tumour DNA relative to the first tumour. The
/// expected count of a junction is that of errors plus the estimate times the allele fraction in the first tumour, per
/// molecule.
fn estimate_tumour_dna(evidence: &[(JunctionCounts, f64)]) -> Estimate {
    let largest = evidence.iter().map(|(_, share)| 1.0 / share).fold(1.0, f64::max);
    if evidence.is_empty() {
        return Estimate { value: 0.0, low: 0.0, high: largest };
    }
    let expected = |e: &JunctionCounts, share: f64, part: f64| e.all * (e.rate + part * share);
    let likelihood = |part: f64| -> f64 {
        let of = |(e, share): &(JunctionCounts, f64)| {
            let mean = expected(e, *share, part).max(1e-300);
            e.found as f64 * mean.ln() - mean
        };
        evidence.iter().map(of).sum()
    };
    let slope = |part: f64| -> f64 {
        let of = |(e, share): &(JunctionCounts, f64)| {
            e.all * share * (e.found as f64 / expected(e, *share, part).max(1e-300) - 1.0)
        };
        evidence.iter().map(of).sum()
    };
    // The derivative decreases monotonically.
    let zero = |f: &dyn Fn(f64) -> f64, mut low: f64, mut high: f64| {
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if f(middle) > 0.0 { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    };
    let value = if slope(0.0) <= 0.0 { 0.0 } else { zero(&slope, 0.0, largest) };
    let best = likelihood(value);
    let within = |part: f64| likelihood(part) - best + LOG_LIKELIHOOD_DROP;
    let low = if value == 0.0 || within(0.0) > 0.0 { 0.0 } else { zero(&|x| -within(x), 0.0, value) };
    let high = if within(largest) > 0.0 { largest } else { zero(&within, value, largest) };
    Estimate { value, low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn votes(changed: u32, unchanged: f64) -> MoleculeCounts {
        MoleculeCounts { changed: [changed, 0], unchanged: [unchanged / 2.0; 2], ..MoleculeCounts::default() }
    }

    fn tracked(index: usize, changed: u32, all: f64) -> ChangeResult {
        let votes = votes(changed, all - f64::from(changed));
        let local = JunctionErrorRates { rates: [1e-4; 2], gamma_shape: 20.0 };
        judge_change(
            index,
            Some(0.5),
            &[JunctionObservations { molecules: &votes, error_rates: local, downsampling_factor: 1 }],
            None,
        )
    }

    #[test]
    fn a_change_is_found_beyond_errors_only() {
        let verdicts = [(0, 0.0), (0, 30.0), (1, 30.0), (2, 30.0), (2, 20_000.0), (12, 20_000.0)]
            .map(|(changed, all)| tracked(0, changed, all).verdict);
        use ChangeVerdict::{Found, NoMolecules, NotSeen, Unsure};
        assert_eq!(verdicts, [NoMolecules, NotSeen, Unsure, Found, Unsure, Found]);
    }

    #[test]
    fn many_changes_together_tell_what_none_tells_alone() {
        let mut some: Vec<ChangeResult> = (0..50).map(|i| tracked(i, u32::from(i % 3 == 0), 1000.0)).collect();
        assert!(some.iter().all(|t| t.verdict != ChangeVerdict::Found));
        let all = judge_sample(&mut some, |_| Some(0.5));
        // 17 molecules of 50,000; errors give 5.
        assert!(all.detected && all.p < 1e-4 && all.changes == 50, "{all:?}");
        assert!((all.expected - 5.0).abs() < 0.01);
        let true_part = (17.0 - 5.0) / 50_000.0 / 0.5;
        assert!((all.relative.value / true_part - 1.0).abs() < 0.02, "{all:?}");
        assert!(all.relative.low < 0.5 * true_part && all.relative.high > 1.5 * true_part);
        assert_eq!(all.tumour_fraction, all.relative);
        let mut none: Vec<ChangeResult> = (0..50).map(|i| tracked(i, u32::from(i % 10 == 0), 1000.0)).collect();
        let none = judge_sample(&mut none, |_| Some(0.5));
        assert!(!none.detected && none.relative.low == 0.0 && none.relative.high > 0.0, "{none:?}");
    }

    #[test]
    fn what_is_as_frequent_as_the_germline_says_nothing_of_the_sample() {
        let mut some: Vec<ChangeResult> = (0..20).map(|i| tracked(i, if i == 3 { 490 } else { 0 }, 1000.0)).collect();
        let all = judge_sample(&mut some, |_| None);
        assert_eq!(some[3].verdict, ChangeVerdict::StandsOut);
        assert!(!all.detected && all.changes == 19);
        // A relapse has all changes.
        let mut relapse: Vec<ChangeResult> = (0..20).map(|i| tracked(i, 490, 1000.0)).collect();
        let all = judge_sample(&mut relapse, |_| None);
        assert!(all.detected && relapse.iter().all(|t| t.verdict == ChangeVerdict::Found));
        assert!((all.tumour_fraction.value - 0.98).abs() < 0.01);
    }

    #[test]
    fn the_normal_tells_what_is_no_tumours() {
        let normal = tracked(0, 40, 100.0);
        let votes = votes(400, 600.0);
        let local = JunctionErrorRates { rates: [1e-4; 2], gamma_shape: 20.0 };
        let given = || JunctionObservations { molecules: &votes, error_rates: local, downsampling_factor: 1 };
        assert_eq!(judge_change(0, None, &[given()], Some(&normal)).verdict, ChangeVerdict::InNormal);
        // Also if the change is marked as germline-like in the normal.
        let mut others: Vec<ChangeResult> = (0..20).map(|i| tracked(i, if i == 0 { 50 } else { 0 }, 100.0)).collect();
        judge_sample(&mut others, |_| None);
        assert_eq!(others[0].verdict, ChangeVerdict::StandsOut);
        assert_eq!(judge_change(0, None, &[given()], Some(&others[0])).verdict, ChangeVerdict::InNormal);
        let clean = tracked(0, 0, 100.0);
        assert_eq!(judge_change(0, None, &[given()], Some(&clean)).verdict, ChangeVerdict::Found);
    }
}
