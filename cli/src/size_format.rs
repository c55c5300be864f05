//! Parses and formats sizes in bytes and numbers of bases.

/// Parses a size in bytes: `8G`, `512M`, `1.5G`, `64k`, `8GiB` or a plain number. The letters are powers of 1024.
///
/// # Errors
/// The text is not a size; the message names the accepted form.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let fault = || format!("'{text}' is not a size: write a number and K, M, G or T, such as 8G");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| fault())?;
    let unit = text[digits..].to_ascii_uppercase();
    let power = match unit.trim_end_matches('B').trim_end_matches('I') {
        "" if !unit.contains('I') => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return Err(fault()),
    };
    Ok((number * 1024f64.powi(power)) as u64)
}

/// Formats bytes with two or three digits: `1.5 GiB`, `512 MiB`.
pub(crate) fn format_bytes(bytes: u64) -> String {
    let (size, unit) = match bytes {
        b if b >= 1 << 30 => (b as f64 / (1u64 << 30) as f64, "GiB"),
        b => (b as f64 / (1u64 << 20) as f64, "MiB"),
    };
    if size < 10.0 { format!("{size:.1} {unit}") } else { format!("{size:.0} {unit}") }
}

/// Formats bytes as the value of an option, rounded up to 0.1G or 1M: `1.6G`, `512M`.
pub(crate) fn format_bytes_as_option_value(bytes: u64) -> String {
    if bytes >= 1 << 30 {
        let tenths = (u128::from(bytes) * 10).div_ceil(1 << 30);
        return match tenths % 10 {
            0 => format!("{}G", tenths / 10),
            rest => format!("{}.{rest}G", tenths / 10),
        };
    }
    format!("{}M", bytes.div_ceil(1 << 20))
}

/// Formats a number of bases: `3.0 Mbases`, `90 Gbases`. The letters are powers of 1000.
pub(crate) fn format_bases(bases: u64) -> String {
    let (number, unit) = match bases {
        b if b >= 1_000_000_000 => (b as f64 / 1e9, "Gbases"),
        b => (b as f64 / 1e6, "Mbases"),
    };
    if number < 10.0 { format!("{number:.1} {unit}") } else { format!("{number:.0} {unit}") }
}

/// Parses a number of bases: `3.1G`, `25M`, `800k` or a plain whole number. The letters are powers of 1000.
///
/// # Errors
/// The text is not a number of bases, or zero; the message names the accepted form.
pub(crate) fn parse_bases(text: &str) -> Result<u64, String> {
    let fault = || format!("'{text}' is not a number of bases: write a number and k, M or G, such as 3.1G");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| fault())?;
    let power = match &text[digits..].to_ascii_uppercase()[..] {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        _ => return Err(fault()),
    };
    let bases = (number * 1000f64.powi(power)).round();
    let whole = power > 0 || !text.contains('.');
    if whole && (1.0..1e15).contains(&bases) { Ok(bases as u64) } else { Err(fault()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_understood() {
        let cases = [("0", 0), ("1000", 1000), ("64k", 64 << 10), ("512M", 512 << 20), ("8G", 8 << 30)];
        let more = [("1.5G", 3 << 29), ("8GB", 8 << 30), ("8gib", 8 << 30), ("2T", 2 << 40), ("7b", 7)];
        for (text, bytes) in cases.into_iter().chain(more) {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "8X", "-1G", "8 G", "1.2.3G", "8iB", "8GG"] {
            assert!(parse_bytes(text).unwrap_err().contains("such as 8G"), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown() {
        assert_eq!(format_bytes(3 << 29), "1.5 GiB");
        assert_eq!(format_bytes(512 << 20), "512 MiB");
        assert_eq!(format_bases(2_999_400), "3.0 Mbases");
        assert_eq!(format_bases(90_200_000_000), "90 Gbases");
        for (bytes, text) in [(1, "1M"), (512 << 20, "512M"), (3 << 29, "1.5G"), (1 << 34, "16G")] {
            assert_eq!(format_bytes_as_option_value(bytes), text);
        }
        for bytes in [12_345_678, (1 << 30) + 1, 987_654_321_987] {
            assert!(parse_bytes(&format_bytes_as_option_value(bytes)).unwrap() >= bytes, "{bytes}");
        }
    }

    #[test]
    fn bases_are_understood() {
        let cases = [("3.1G", 3_100_000_000), ("25M", 25_000_000), ("800k", 800_000), ("7", 7)];
        cases.into_iter().for_each(|(text, bases)| assert_eq!(parse_bases(text), Ok(bases), "{text}"));
        for text in ["", "G", "0", "1.5", "3.1GB", "-1G", "1e9", "3T", "1 M", "3,1G", "9999999G"] {
            assert!(parse_bases(text).unwrap_err().contains("such as 3.1G"), "{text}");
        }
    }
}
