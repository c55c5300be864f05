//! Estimates with the intervals that they lie in.

use serde::{Deserialize, Serialize};

/// A value and the interval in which the truth is in 95 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// What is most likely.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Estimate {
    /// A value with a standard deviation, within bounds.
    pub fn within(value: f64, deviation: f64, [least, most]: [f64; 2]) -> Estimate {
        let bound = |x: f64| x.clamp(least, most);
        Estimate {
            value: bound(value),
            low: bound(value - 1.96 * deviation),
            high: bound(value + 1.96 * deviation),
        }
    }

    /// The best of values with their log-likelihoods, and those that are nearly as likely (1.92 less, for one parameter).
    pub fn of_profile(profile: &[(f64, f64)]) -> Option<Estimate> {
        let &(value, best) = profile.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let likely = || profile.iter().filter(|(_, log)| *log > best - 1.92).map(|(value, _)| *value);
        Some(Estimate { value, low: likely().fold(value, f64::min), high: likely().fold(value, f64::max) })
    }
}

/// Natural logarithms of the factorials up to `most`.
pub fn log_factorials(most: usize) -> Vec<f64> {
    let mut logs = vec![0.0; most + 1];
    (1..=most).for_each(|i| logs[i] = logs[i - 1] + (i as f64).ln());
    logs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_what_is_nearly_as_likely() {
        let parabola: Vec<(f64, f64)> =
            (0..100).map(|i| f64::from(i) / 100.0).map(|x| (x, -((x - 0.3) / 0.05).powi(2) / 2.0)).collect();
        let found = Estimate::of_profile(&parabola).expect("points");
        assert_eq!((found.value, found.low, found.high), (0.3, 0.21, 0.39));
        assert_eq!(Estimate::of_profile(&[]), None);
        assert_eq!(Estimate::within(0.01, 0.1, [0.0, 1.0]).low, 0.0);
        assert!((log_factorials(5)[5] - 120f64.ln()).abs() < 1e-12);
    }
}
