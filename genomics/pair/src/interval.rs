//! Estimates with the interval in which they lie in 95 of 100 cases.

use serde::{Deserialize, Serialize};

/// Standard deviations to either side that hold 95 %.
const SIDES: f64 = 1.96;

/// A number that was estimated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
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

    /// A share: `some` of `all` draws (Wilson's interval); `None` of nothing.
    pub fn share(some: u64, all: u64) -> Option<Estimate> {
        if all == 0 {
            return None;
        }
        let (n, z2) = (all as f64, SIDES * SIDES);
        let value = (some as f64 / n).min(1.0);
        let middle = (value + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = SIDES / (1.0 + z2 / n) * (value * (1.0 - value) / n + z2 / (4.0 * n * n)).sqrt();
        Some(Estimate {
            value,
            low: (middle - half).clamp(0.0, value),
            high: (middle + half).clamp(value, 1.0),
        })
    }

    /// A rate: so many independent events in `all` (Poisson's interval by the square root); `None` of nothing.
    pub fn rate(events: u64, all: f64) -> Option<Estimate> {
        let n = events as f64;
        Self::of_events(n, n, all)
    }

    /// A rate of events that come in clusters, of whose sizes the squares add up to `squares`.
    pub(crate) fn clustered(events: f64, squares: f64, all: f64) -> Option<Estimate> {
        Self::of_events(events, squares.max(events), all)
    }

    fn of_events(events: f64, squares: f64, all: f64) -> Option<Estimate> {
        if all <= 0.0 {
            return None;
        }
        // How many events a cluster has; so many times fewer are independent.
        let size = if events > 0.0 { squares / events } else { 1.0 };
        let root = (events / size + 0.375).sqrt();
        let low = ((root - SIDES / 2.0).max(0.0).powi(2) - 0.375).max(0.0) * size;
        let high = ((root + SIDES / 2.0).powi(2)) * size;
        Some(Estimate { value: events / all, low: low.min(events) / all, high: high / all })
    }

    /// The ratio of two rates of independent events; `None` where either has none.
    pub fn ratio(over: (u64, f64), under: (u64, f64)) -> Option<Estimate> {
        if over.0 == 0 || under.0 == 0 || over.1 <= 0.0 || under.1 <= 0.0 {
            return None;
        }
        let value = (over.0 as f64 / over.1) / (under.0 as f64 / under.1);
        let spread = (SIDES * (1.0 / over.0 as f64 + 1.0 / under.0 as f64).sqrt()).exp();
        Some(Estimate { value, low: value / spread, high: value * spread })
    }

    /// The same times something that is known.
    pub fn times(self, factor: f64) -> Estimate {
        Estimate { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    /// Each end and the value through a function that grows.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Estimate {
        Estimate { value: f(self.value), low: f(self.low), high: f(self.high) }
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

    /// Numbers from 0 to 1, the same each time.
    fn random() -> impl FnMut() -> f64 {
        let mut seed = 5u64;
        move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_truth() {
        let mut random = random();
        for (n, truth) in [(40, 0.1), (400, 0.02), (1000, 0.4)] {
            let (mut shares, mut rates) = (0, 0);
            for _ in 0..2000 {
                let some = (0..n).filter(|_| random() < truth).count() as u64;
                let holds = |e: Option<Estimate>| e.is_some_and(|e| e.low <= truth && truth <= e.high);
                shares += usize::from(holds(Estimate::share(some, n)));
                // A share is narrower than the rate's interval.
                rates += usize::from(holds(Estimate::rate(some, n as f64)));
            }
            assert!((1840..=1980).contains(&shares), "{n} {truth}: {shares}");
            assert!((1840..=2000).contains(&rates), "{n} {truth}: {rates}");
        }
    }

    #[test]
    fn of_nothing_nothing_is_said_and_clusters_widen() {
        assert_eq!(Estimate::share(0, 0), None);
        assert_eq!(Estimate::rate(3, 0.0), None);
        assert_eq!(Estimate::ratio((3, 1.0), (0, 1.0)), None);
        let none = Estimate::rate(0, 100.0).unwrap();
        assert!(none.value == 0.0 && none.low == 0.0 && none.high > 0.02 && none.high < 0.04);
        let (alone, four) = (Estimate::clustered(400.0, 400.0, 1e4), Estimate::clustered(400.0, 1600.0, 1e4));
        let width = |e: Option<Estimate>| e.map_or(0.0, |e| e.high - e.low);
        assert!((width(four) / width(alone) - 2.0).abs() < 0.1);
    }

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
