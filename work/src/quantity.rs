//! Formats quantities for people: counts, sizes, durations, energies. Parses sizes that people write.

/// Formats an integer with thousands separators: `12,345`.
pub fn group_thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a number with its noun in the singular or the plural: `1 call`, `2 calls`.
pub fn format_count_with_noun(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", group_thousands(n), if n == 1 { "" } else { "s" })
}

/// Formats a count of 10,000 or more with two or three digits and an SI prefix: `1.2 M`, `334 M`. Smaller counts are
/// whole numbers: `1,234`.
pub fn format_with_si_prefix(n: f64) -> String {
    let (scaled, prefix) = match n {
        n if n >= 1e12 => (n / 1e12, " T"),
        n if n >= 1e9 => (n / 1e9, " G"),
        n if n >= 1e6 => (n / 1e6, " M"),
        n if n >= 1e4 => (n / 1e3, " k"),
        n => return group_thousands(n as u64),
    };
    if scaled >= 100.0 { format!("{scaled:.0}{prefix}") } else { format!("{scaled:.1}{prefix}") }
}

/// Formats bytes with binary prefixes: `32 KiB`, `1.5 GiB`.
pub fn format_bytes(n: u64) -> String {
    let (unit, name) = match n {
        0..1024 => return format!("{n} B"),
        1024..0x10_0000 => (1024.0, "KiB"),
        0x10_0000..0x4000_0000 => (1024.0 * 1024.0, "MiB"),
        0x4000_0000..0x100_0000_0000 => (1024.0 * 1024.0 * 1024.0, "GiB"),
        _ => (1024.0 * 1024.0 * 1024.0 * 1024.0, "TiB"),
    };
    let scaled = n as f64 / unit;
    let whole = scaled >= 100.0 || (scaled - scaled.round()).abs() < 0.05;
    if whole { format!("{scaled:.0} {name}") } else { format!("{scaled:.1} {name}") }
}

/// Formats a measured quantity with three digits: `1.13`, `12.4`, `105`, `1,234`.
pub fn format_three_digits(n: f64) -> String {
    match n.abs() {
        size if size >= 999.5 => group_thousands(n.max(0.0).round() as u64),
        size if size >= 99.95 => format!("{n:.0}"),
        size if size >= 9.995 => format!("{n:.1}"),
        _ => format!("{n:.2}"),
    }
}

/// Formats seconds since 1970 as a date and time: `2026-11-21 08:07 UTC`.
pub fn format_date_and_time(seconds: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    // Later times are shown as the last minute of the year 9999.
    let seconds = seconds.min(253_402_300_799);
    let (mut days, mut year) = (seconds / 86_400, 1970);
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let minutes = seconds % 86_400 / 60;
    format!("{year}-{month:02}-{:02} {:02}:{:02} UTC", days + 1, minutes / 60, minutes % 60)
}

/// Formats seconds as `8.5 s`, `3 min 12 s` or `2 h 05 min`.
pub fn format_duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{:.1} s", seconds.max(0.0)),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats an energy in joules: `12 J`, `3.4 Wh`, `1.23 kWh`.
pub fn format_energy(joules: f64) -> String {
    match joules {
        j if j < 3600.0 => format!("{j:.0} J"),
        j if j < 3.6e6 => format!("{} Wh", format_three_digits(j / 3600.0)),
        j => format!("{} kWh", format_three_digits(j / 3.6e6)),
    }
}

/// Parses a size in bytes: `8G`, `512M`, `1.5G`, `64k`, `8GiB` or a plain number. The letters are powers of 1024.
///
/// # Errors
/// The text is not a size; the message names the accepted form.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
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

/// Formats bytes as the value of an option, rounded up to 0.1G or 1M: `1.6G`, `512M`.
pub fn format_bytes_as_option_value(bytes: u64) -> String {
    if bytes >= 1 << 30 {
        let tenths = (u128::from(bytes) * 10).div_ceil(1 << 30);
        return match tenths % 10 {
            0 => format!("{}G", tenths / 10),
            rest => format!("{}.{rest}G", tenths / 10),
        };
    }
    format!("{}M", bytes.div_ceil(1 << 20))
}

/// Parses a number from 0 to 10⁹.
///
/// # Errors
/// The text is not such a number; the message names the accepted form.
pub fn parse_non_negative_number(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..=1e9).contains(&number) => Ok(number),
        _ => Err("give a number from 0 on".into()),
    }
}

/// Formats a number of bases: `3.0 Mbases`, `90 Gbases`. The letters are powers of 1000.
pub fn format_bases(bases: u64) -> String {
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
pub fn parse_bases(text: &str) -> Result<u64, String> {
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
    fn numbers_read_well() {
        assert_eq!([0, 999, 1000, 1234567].map(group_thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            (format_count_with_noun(1, "call"), format_count_with_noun(2000, "call")),
            ("1 call".into(), "2,000 calls".into())
        );
        assert_eq!(
            [12.0, 9999.0, 12345.0, 334e6, 1.66e9].map(format_with_si_prefix),
            ["12", "9,999", "12.3 k", "334 M", "1.7 G"]
        );
        assert_eq!(
            [0.04, 8.53, 59.7, 192.4, 7500.0].map(format_duration),
            ["0.0 s", "8.5 s", "1 min 00 s", "3 min 12 s", "2 h 05 min"]
        );
        assert_eq!([12.4, 7200.0, 4.5e6].map(format_energy), ["12 J", "2.00 Wh", "1.25 kWh"]);
        assert_eq!(
            [800, 32 << 10, 1 << 20, 25_149_046_784, 3 << 39].map(format_bytes),
            ["800 B", "32 KiB", "1 MiB", "23.4 GiB", "1.5 TiB"]
        );
        assert_eq!(
            [0.0, 1.126, 9.996, 12.44, 104.6, 1234.0].map(format_three_digits),
            ["0.00", "1.13", "10.0", "12.4", "105", "1,234"]
        );
        assert_eq!(
            [0, 951_782_340, 1_735_689_599, 1_795_248_420].map(format_date_and_time),
            ["1970-01-01 00:00 UTC", "2000-02-28 23:59 UTC", "2024-12-31 23:59 UTC", "2026-11-21 08:07 UTC"]
        );
    }

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
