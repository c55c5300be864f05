//! Sizes in bytes, as people write and read them.

/// Reads `8G`, `512M`, `1.5G`, `64k`, `8GiB` or a plain number of bytes; the letters mean powers of 1024.
///
/// # Errors
/// Anything else; the message says what is understood.
pub fn parse(text: &str) -> Result<u64, String> {
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

/// `1.5 GiB`, `512 MiB`: as many digits as help.
pub fn show(bytes: u64) -> String {
    let (size, unit) = match bytes {
        b if b >= 1 << 30 => (b as f64 / (1u64 << 30) as f64, "GiB"),
        b => (b as f64 / (1u64 << 20) as f64, "MiB"),
    };
    if size < 10.0 { format!("{size:.1} {unit}") } else { format!("{size:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_understood() {
        let cases = [("0", 0), ("1000", 1000), ("64k", 64 << 10), ("512M", 512 << 20), ("8G", 8 << 30)];
        let more = [("1.5G", 3 << 29), ("8GB", 8 << 30), ("8gib", 8 << 30), ("2T", 2 << 40), ("7b", 7)];
        for (text, bytes) in cases.into_iter().chain(more) {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "8X", "-1G", "8 G", "1.2.3G", "8iB", "8GG"] {
            assert!(parse(text).unwrap_err().contains("such as 8G"), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown() {
        assert_eq!(show(3 << 29), "1.5 GiB");
        assert_eq!(show(512 << 20), "512 MiB");
    }
}
