//! Numbers with their intervals, for people.

use genuma_pair::interval::Estimate;

/// Digits behind the point by which two or three of a number say something.
fn digits(size: f64) -> usize {
    if size > 0.0 { (1.0 - size.log10().floor()).clamp(0.0, 5.0) as usize } else { 0 }
}

/// A share as `1.3 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    format!("{percent:.0$}\u{a0}%", digits(percent))
}

/// A value and its ends, written alike and never parted at the dash; a value alone where the ends are no others.
fn with_ends(found: Estimate, unit: &str) -> String {
    let Estimate { value, low, high } = found;
    let digits = digits(if value > 0.0 { value } else { high });
    let [value, low, high] = [value, low, high].map(|x| format!("{x:.digits$}"));
    if low == value && high == value {
        format!("{value}{unit}")
    } else {
        format!("{value}{unit} ({low}–\u{2060}{high})")
    }
}

/// A share as `1.3 % (0.2–2.2)`.
pub(crate) fn share(found: Estimate) -> String {
    with_ends(found.times(100.0), "\u{a0}%")
}

/// A number as `2.1 (1.9–2.2)`.
pub(crate) fn number(found: Estimate) -> String {
    with_ends(found, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_as_many_digits_as_their_value() {
        let of = |value, low, high| share(Estimate { value, low, high });
        assert_eq!(of(0.0131, 0.002, 0.022), "1.3\u{a0}% (0.2–\u{2060}2.2)");
        assert_eq!(of(0.64, 0.612, 0.67), "64\u{a0}% (61–\u{2060}67)");
        assert_eq!(of(0.0, 0.0, 0.0019), "0.00\u{a0}% (0.00–\u{2060}0.19)");
        assert_eq!(of(0.0, 0.0, 0.0), "0\u{a0}%");
        assert_eq!(number(Estimate { value: 2.00004, low: 2.00004, high: 2.0016 }), "2.0");
        assert_eq!(
            (percent(0.0), percent(0.00273), percent(0.5)),
            ("0\u{a0}%".into(), "0.27\u{a0}%".into(), "50\u{a0}%".into())
        );
    }
}
