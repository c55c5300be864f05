//! Estimates with 95 % confidence intervals, from counts, likelihoods or standard deviations.

use serde::{Deserialize, Serialize};

/// Number of standard deviations on either side of the mean that enclose 95 % of a normal distribution.
pub(crate) const Z_SCORE_95_PERCENT: f64 = 1.96;

/// Drop of the log-likelihood from its maximum at the ends of a 95 % confidence interval of one parameter: half of the
/// 95 % quantile of the chi-squared distribution with one degree of freedom.
const LOG_DROP_95: f64 = 1.92;
/// Smallest probability whose logarithm is taken. Keeps logarithms finite where a model gives probability 0. If higher:
/// data that the model excludes are penalised less.
pub const MIN_PROBABILITY_FOR_LOG: f64 = 1e-300;
/// Smallest share or expected count whose logarithm is taken. Keeps the logarithm finite where a share is 0. If
/// higher: data with an allele of share 0 become likelier.
pub(crate) const MIN_SHARE_FOR_LOG: f64 = 1e-12;
/// Smallest divisor of a ratio. Keeps ratios finite where there are no data; larger than any rounding error.
pub(crate) const MIN_DIVISOR: f64 = 1e-9;
/// Offset of the variance-stabilising square root of a Poisson count (Anscombe 1948: 3/8).
const ANSCOMBE_OFFSET: f64 = 0.375;
/// Factor of `z2 / n²` in Wilson's interval (Wilson 1927).
const WILSON_FACTOR: f64 = 4.0;

/// An estimated value with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimated value, between `low` and `high`.
    pub value: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    pub high: f64,
}

impl Estimate {
    /// Creates an estimate with a normal 95 % confidence interval. The value and both ends are clamped to `[min, max]`.
    pub(crate) fn from_standard_deviation(value: f64, standard_deviation: f64, [min, max]: [f64; 2]) -> Estimate {
        let bound = |x: f64| x.clamp(min, max);
        Estimate {
            value: bound(value),
            low: bound(value - Z_SCORE_95_PERCENT * standard_deviation),
            high: bound(value + Z_SCORE_95_PERCENT * standard_deviation),
        }
    }

    /// Computes the maximum-likelihood estimate from pairs (value, natural-log likelihood). The interval encloses all
    /// values whose log-likelihood is less than 1.92 below the maximum (likelihood ratio test, one parameter). `None`
    /// if the profile is empty.
    pub fn from_likelihood_profile(profile: &[(f64, f64)]) -> Option<Estimate> {
        let &(value, best) = profile.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let likely = || profile.iter().filter(|(_, log)| *log > best - LOG_DROP_95).map(|(value, _)| *value);
        Some(Estimate { value, low: likely().fold(value, f64::min), high: likely().fold(value, f64::max) })
    }

    /// Computes the proportion `successes / trials` with Wilson's interval; `None` if there are no trials.
    pub fn from_binomial(successes: u64, trials: u64) -> Option<Estimate> {
        if trials == 0 {
            return None;
        }
        let (n, z2) = (trials as f64, Z_SCORE_95_PERCENT * Z_SCORE_95_PERCENT);
        let value = (successes as f64 / n).min(1.0);
        let middle = (value + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half =
            Z_SCORE_95_PERCENT / (1.0 + z2 / n) * (value * (1.0 - value) / n + z2 / (WILSON_FACTOR * n * n)).sqrt();
        Some(Estimate { value, low: (middle - half).clamp(0.0, value), high: (middle + half).clamp(value, 1.0) })
    }

    /// Computes the rate `events / exposure` of independent events, with a Poisson interval by the square-root
    /// transform; `None` if the exposure is not positive.
    pub fn rate_of_independent_events(events: u64, exposure: f64) -> Option<Estimate> {
        let n = events as f64;
        Self::from_overdispersed_events(n, n, exposure)
    }

    /// Computes the rate `events / exposure` of events that occur in clusters. `squares` is the sum of the squared
    /// cluster sizes; the larger it is, the wider is the interval. `None` if the exposure is not positive.
    pub(crate) fn rate_of_clustered_events(events: f64, squares: f64, exposure: f64) -> Option<Estimate> {
        Self::from_overdispersed_events(events, squares.max(events), exposure)
    }

    fn from_overdispersed_events(events: f64, squares: f64, exposure: f64) -> Option<Estimate> {
        if exposure <= 0.0 {
            return None;
        }
        // Mean cluster size, weighted by events: the effective number of independent events is smaller by this
        // factor.
        let size = if events > 0.0 { squares / events } else { 1.0 };
        let root = (events / size + ANSCOMBE_OFFSET).sqrt();
        let low = ((root - Z_SCORE_95_PERCENT / 2.0).max(0.0).powi(2) - ANSCOMBE_OFFSET).max(0.0) * size;
        let high = ((root + Z_SCORE_95_PERCENT / 2.0).powi(2)) * size;
        Some(Estimate { value: events / exposure, low: low.min(events) / exposure, high: high / exposure })
    }

    /// Computes the ratio of two rates of independent events, each given as (events, exposure); `None` if either rate
    /// is zero or undefined.
    pub(crate) fn ratio_of_event_rates(numerator: (u64, f64), denominator: (u64, f64)) -> Option<Estimate> {
        if numerator.0 == 0 || denominator.0 == 0 || numerator.1 <= 0.0 || denominator.1 <= 0.0 {
            return None;
        }
        let value = (numerator.0 as f64 / numerator.1) / (denominator.0 as f64 / denominator.1);
        let spread = (Z_SCORE_95_PERCENT * (1.0 / numerator.0 as f64 + 1.0 / denominator.0 as f64).sqrt()).exp();
        Some(Estimate { value, low: value / spread, high: value * spread })
    }

    /// Multiplies the value and both interval ends by a constant that has no uncertainty.
    pub fn scale_by(self, factor: f64) -> Estimate {
        Estimate { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    /// Applies a monotonically increasing function to the value and to both interval ends.
    pub(crate) fn apply_increasing_function(self, f: impl Fn(f64) -> f64) -> Estimate {
        Estimate { value: f(self.value), low: f(self.low), high: f(self.high) }
    }
}

/// Returns the natural logarithms of the factorials of 0 to `max`.
pub fn log_factorials(max: usize) -> Vec<f64> {
    let mut logs = vec![0.0; max + 1];
    (1..=max).for_each(|i| logs[i] = logs[i - 1] + (i as f64).ln());
    logs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reproducible random numbers from 0 to 1.
    fn random() -> impl FnMut() -> f64 {
        let mut seed = 5u64;
        move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn nineteen_of_twenty_intervals_contain_the_truth() {
        let mut random = random();
        for (n, truth) in [(40, 0.1), (400, 0.02), (1000, 0.4)] {
            let (mut shares, mut rates) = (0, 0);
            for _ in 0..2000 {
                let some = (0..n).filter(|_| random() < truth).count() as u64;
                let holds = |e: Option<Estimate>| e.is_some_and(|e| e.low <= truth && truth <= e.high);
                shares += usize::from(holds(Estimate::from_binomial(some, n)));
                // The interval of a proportion is narrower than that of a rate.
                rates += usize::from(holds(Estimate::rate_of_independent_events(some, n as f64)));
            }
            assert!((1840..=1980).contains(&shares), "{n} {truth}: {shares}");
            assert!((1840..=2000).contains(&rates), "{n} {truth}: {rates}");
        }
    }

    #[test]
    fn no_data_gives_no_estimate_and_clusters_widen_intervals() {
        assert_eq!(Estimate::from_binomial(0, 0), None);
        assert_eq!(Estimate::rate_of_independent_events(3, 0.0), None);
        assert_eq!(Estimate::ratio_of_event_rates((3, 1.0), (0, 1.0)), None);
        let none = Estimate::rate_of_independent_events(0, 100.0).unwrap();
        assert!(none.value == 0.0 && none.low == 0.0 && none.high > 0.02 && none.high < 0.04);
        let (alone, four) = (
            Estimate::rate_of_clustered_events(400.0, 400.0, 1e4),
            Estimate::rate_of_clustered_events(400.0, 1600.0, 1e4),
        );
        let width = |e: Option<Estimate>| e.map_or(0.0, |e| e.high - e.low);
        assert!((width(four) / width(alone) - 2.0).abs() < 0.1);
    }

    #[test]
    fn intervals_contain_values_of_similar_likelihood() {
        let parabola: Vec<(f64, f64)> =
            (0..100).map(|i| f64::from(i) / 100.0).map(|x| (x, -((x - 0.3) / 0.05).powi(2) / 2.0)).collect();
        let found = Estimate::from_likelihood_profile(&parabola).expect("points");
        assert_eq!((found.value, found.low, found.high), (0.3, 0.21, 0.39));
        assert_eq!(Estimate::from_likelihood_profile(&[]), None);
        assert_eq!(Estimate::from_standard_deviation(0.01, 0.1, [0.0, 1.0]).low, 0.0);
        assert!((log_factorials(5)[5] - 120f64.ln()).abs() < 1e-12);
    }
}
