//! Repetitions → median and spread.

use crate::profile::{Measured, Unit};

impl Measured {
    /// Sums up repetitions; `None` without any, or when one is not a number above zero.
    pub fn of(unit: Unit, repetitions: &[f64]) -> Option<Measured> {
        if repetitions.is_empty() || repetitions.iter().any(|x| !(x.is_finite() && *x > 0.0)) {
            return None;
        }
        let middle = median(repetitions);
        let distances: Vec<f64> = repetitions.iter().map(|x| (x - middle).abs()).collect();
        Some(Measured {
            unit,
            median: middle,
            min: repetitions.iter().copied().fold(f64::INFINITY, f64::min),
            max: repetitions.iter().copied().fold(0.0, f64::max),
            mad: median(&distances),
            repetitions: u32::try_from(repetitions.len()).unwrap_or(u32::MAX),
        })
    }

    /// The same quantity divided by a positive number.
    pub fn divided(&self, by: f64) -> Measured {
        Measured {
            median: self.median / by,
            min: self.min / by,
            max: self.max / by,
            mad: self.mad / by,
            ..*self
        }
    }
}

/// The middle value, or the mean of the two in the middle; 0 of none.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[half],
        _ => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_moves_the_maximum_only() {
        let calm = Measured::of(Unit::Nanoseconds, &[10.0, 12.0, 11.0, 9.0, 13.0]).expect("numbers");
        let noisy = Measured::of(Unit::Nanoseconds, &[10.0, 12.0, 11.0, 9.0, 900.0]).expect("numbers");
        assert_eq!((calm.median, calm.min, calm.max, calm.mad, calm.repetitions), (11.0, 9.0, 13.0, 1.0, 5));
        assert_eq!(noisy, Measured { max: 900.0, ..calm });
    }

    #[test]
    fn an_even_number_of_repetitions_has_its_middle_between_two() {
        let two = Measured::of(Unit::GigabytesPerSecond, &[4.0, 2.0]).expect("numbers");
        assert_eq!((two.median, two.mad), (3.0, 1.0));
        assert_eq!(two.divided(2.0), Measured { median: 1.5, min: 1.0, max: 2.0, mad: 0.5, ..two });
    }

    #[test]
    fn what_is_no_quantity_is_not_summed_up() {
        for bad in [&[][..], &[1.0, f64::NAN], &[f64::INFINITY], &[0.0], &[-1.0]] {
            assert_eq!(Measured::of(Unit::Nanoseconds, bad), None, "{bad:?}");
        }
    }
}
