//! Formats numbers for the report: shares, and estimates with their intervals.

use genuma_pair::confidence_interval::Estimate;

/// Returns the number of decimals, up to 5, that shows at least two significant digits of a number of this size; 0 for
/// 0.
fn decimals(size: f64) -> usize {
    if size > 0.0 { (1.0 - size.log10().floor()).clamp(0.0, 5.0) as usize } else { 0 }
}

/// Formats a share in percent, as `1.3 %`.
pub fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    format!("{percent:.0$}\u{a0}%", decimals(percent))
}

/// Formats a value with its interval, all with the same number of decimals. The interval is left out if it rounds to
/// the value.
fn format_interval(found: Estimate, unit: &str) -> String {
    let Estimate { value, low, high } = found;
    let digits = decimals(if value > 0.0 { value } else { high });
    let [value, low, high] = [value, low, high].map(|x| format!("{x:.digits$}"));
    if low == value && high == value {
        format!("{value}{unit}")
    } else {
        format!("{value}{unit} ({low}–\u{2060}{high})")
    }
}

/// Formats a share with its interval as `1.3 % (0.2–2.2)`.
pub fn format_share_with_interval(found: Estimate) -> String {
    format_interval(found.scale_by(100.0), "\u{a0}%")
}

/// Formats a number with its interval as `2.1 (1.9–2.2)`.
pub fn format_number_with_interval(found: Estimate) -> String {
    format_interval(found, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_as_many_digits_as_their_value() {
        let of = |value, low, high| format_share_with_interval(Estimate { value, low, high });
        assert_eq!(of(0.0131, 0.002, 0.022), "1.3\u{a0}% (0.2–\u{2060}2.2)");
        assert_eq!(of(0.64, 0.612, 0.67), "64\u{a0}% (61–\u{2060}67)");
        assert_eq!(of(0.0, 0.0, 0.0019), "0.00\u{a0}% (0.00–\u{2060}0.19)");
        assert_eq!(of(0.0, 0.0, 0.0), "0\u{a0}%");
        assert_eq!(format_number_with_interval(Estimate { value: 2.00004, low: 2.00004, high: 2.0016 }), "2.0");
        assert_eq!(
            (format_percent(0.0), format_percent(0.00273), format_percent(0.5)),
            ("0\u{a0}%".into(), "0.27\u{a0}%".into(), "50\u{a0}%".into())
        );
    }
}
