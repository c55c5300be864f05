//! Formatting of byte counts with binary units.

/// Bytes in a kibibyte.
pub(super) const KIB: u64 = 1 << 10;
/// Bytes in a mebibyte.
pub(super) const MIB: u64 = 1 << 20;
/// Bytes in a gibibyte.
pub(super) const GIB: u64 = 1 << 30;
/// Bytes in a tebibyte.
pub(crate) const TIB: u64 = 1 << 40;

const UNITS: [(u64, &str); 4] = [(TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];

/// Formats a byte count in the largest unit that it reaches, with one decimal if it is not a whole number, for
/// example `1.5 GiB`.
pub(super) fn format_size(bytes: u64) -> String {
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes.is_multiple_of(unit) => format!("{} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None if bytes == 0 => "0".to_owned(),
        None => format!("{bytes} B"),
    }
}

/// Formats a byte count in the largest unit in which it is a whole number, for example `1536 KiB`.
pub(super) fn format_exact_size(bytes: u64) -> String {
    match UNITS.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_put_in_words() {
        let words: Vec<String> = [0, 7, 1024, 1536, 3 * GIB, 16_000_000_000, 5 * TIB].map(format_size).to_vec();
        assert_eq!(words, ["0", "7 B", "1 KiB", "1.5 KiB", "3 GiB", "14.9 GiB", "5 TiB"]);
        let words: Vec<String> = [0, 1025, 1536 * KIB, 2048 * GIB].map(format_exact_size).to_vec();
        assert_eq!(words, ["0 B", "1025 B", "1536 KiB", "2 TiB"]);
    }
}
