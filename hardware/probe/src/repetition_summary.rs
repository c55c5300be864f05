//! Summarises repetitions of a measurement: median and spread.

use crate::profile::{Measurement, MeasurementUnit};

impl Measurement {
    /// Summarises repetitions. `None` if there are none, or if one is not a positive finite number.
    pub(crate) fn summarize_repetitions(unit: MeasurementUnit, repetitions: &[f64]) -> Option<Measurement> {
        if repetitions.is_empty() || repetitions.iter().any(|x| !(x.is_finite() && *x > 0.0)) {
            return None;
        }
        let middle = median(repetitions);
        let distances: Vec<f64> = repetitions.iter().map(|x| (x - middle).abs()).collect();
        Some(Measurement {
            unit,
            median: middle,
            min: repetitions.iter().copied().fold(f64::INFINITY, f64::min),
            max: repetitions.iter().copied().fold(0.0, f64::max),
            median_absolute_deviation: median(&distances),
            repetitions: u32::try_from(repetitions.len()).unwrap_or(u32::MAX),
        })
    }

    /// The measurement divided by a positive number.
    pub(crate) fn divide_values_by(&self, by: f64) -> Measurement {
        Measurement {
            median: self.median / by,
            min: self.min / by,
            max: self.max / by,
            median_absolute_deviation: self.median_absolute_deviation / by,
            ..*self
        }
    }
}

/// Median of the values: the mean of the two middle values if their number is even, 0 if there are none.
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
        let calm = Measurement::summarize_repetitions(MeasurementUnit::Nanoseconds, &[10.0, 12.0, 11.0, 9.0, 13.0])
            .expect("numbers");
        let noisy = Measurement::summarize_repetitions(MeasurementUnit::Nanoseconds, &[10.0, 12.0, 11.0, 9.0, 900.0])
            .expect("numbers");
        assert_eq!(
            (calm.median, calm.min, calm.max, calm.median_absolute_deviation, calm.repetitions),
            (11.0, 9.0, 13.0, 1.0, 5)
        );
        assert_eq!(noisy, Measurement { max: 900.0, ..calm });
    }

    #[test]
    fn an_even_number_of_repetitions_has_its_middle_between_two() {
        let two =
            Measurement::summarize_repetitions(MeasurementUnit::GigabytesPerSecond, &[4.0, 2.0]).expect("numbers");
        assert_eq!((two.median, two.median_absolute_deviation), (3.0, 1.0));
        assert_eq!(
            two.divide_values_by(2.0),
            Measurement { median: 1.5, min: 1.0, max: 2.0, median_absolute_deviation: 0.5, ..two }
        );
    }

    #[test]
    fn what_is_no_quantity_is_not_summed_up() {
        for bad in [&[][..], &[1.0, f64::NAN], &[f64::INFINITY], &[0.0], &[-1.0]] {
            assert_eq!(Measurement::summarize_repetitions(MeasurementUnit::Nanoseconds, bad), None, "{bad:?}");
        }
    }
}
