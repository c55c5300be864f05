//! SAM line → BAM record.

use super::record::integer;
use super::{Builder, Contigs, Error, Fixed, NO_PLACE, OPERATIONS};

/// Appends the record of a SAM line (with or without its line end) to `out`, `block_size` first.
///
/// # Errors
/// The line breaks the format or names a sequence that is not in `contigs`; `out` is then as it was.
pub fn parse_line(line: &[u8], contigs: &Contigs, out: &mut Vec<u8>) -> Result<(), Error> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let start = out.len();
    parse(line, contigs, out).map_err(|failed| {
        out.truncate(start);
        match failed {
            Failed::What(what) => {
                let name = line.split(|&b| b == b'\t').next().unwrap_or_default();
                Error::Line { name: String::from_utf8_lossy(name).into_owned(), what }
            }
            Failed::Error(error) => error,
        }
    })
}

/// Appends the tags that a text has (`NM:i:0`, tab, ...) to a record under way.
pub(crate) fn parse_fields(text: &[u8], record: &mut Builder<'_>) -> Result<(), String> {
    text.split(|&b| b == b'\t').try_for_each(|field| tag(field, record.out()))
}

enum Failed {
    What(String),
    Error(Error),
}

impl From<String> for Failed {
    fn from(what: String) -> Self {
        Failed::What(what)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Error(error)
    }
}

fn shown(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field);
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("'{}...'", &text[..at]),
        None => format!("'{text}'"),
    }
}

/// A decimal number with an optional sign.
fn number<T: TryFrom<i64>>(field: &[u8], what: &str) -> Result<T, String> {
    let wrong = || format!("{what} {} is no number that fits", shown(field));
    let (negative, digits) = match field {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, field),
    };
    if digits.is_empty() || digits.len() > 18 {
        return Err(wrong());
    }
    let mut value = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(wrong());
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    T::try_from(if negative { -value } else { value }).map_err(|_| wrong())
}

fn parse(line: &[u8], contigs: &Contigs, out: &mut Vec<u8>) -> Result<(), Failed> {
    let mut fields = line.split(|&b| b == b'\t');
    let mut next = |what: &str| fields.next().ok_or_else(|| format!("it ends before its {what}"));
    let name = next("name")?;
    let flag: u16 = number(next("FLAG")?, "FLAG")?;
    let sequence = |field: &[u8]| match field {
        b"*" => Ok(NO_PLACE.0),
        _ => contigs.number(field).ok_or_else(|| format!("sequence {} is not in the header", shown(field))),
    };
    let rname = sequence(next("RNAME")?)?;
    let pos = number::<i32>(next("POS")?, "POS")?.saturating_sub(1);
    let mapq = number(next("MAPQ")?, "MAPQ")?;
    let cigar = next("CIGAR")?;
    let rnext = match next("RNEXT")? {
        b"=" => rname,
        field => sequence(field)?,
    };
    let pnext = number::<i32>(next("PNEXT")?, "PNEXT")?.saturating_sub(1);
    let template_length = number(next("TLEN")?, "TLEN")?;
    let fixed = Fixed { flag, place: (rname, pos), mapq, mate: (rnext, pnext), template_length };
    let (seq, qual) = (next("SEQ")?, next("QUAL")?);

    let mut record = Builder::new(out, name, fixed)?;
    if cigar != b"*" {
        parse_operations(cigar, &mut record)?;
    }
    record.bases(if seq == b"*" { b"" } else { seq }, false);
    if qual != b"*" && qual.len() != record.length() {
        let (bases, qualities) = (record.length(), qual.len());
        return Err(format!("{bases} bases and {qualities} qualities").into());
    }
    // A single quality of 9 looks like none, and is taken for none, as samtools does.
    record.qualities(if qual == b"*" { b"" } else { qual }, false);
    for field in fields {
        tag(field, record.out())?;
    }
    record.finish();
    Ok(())
}

/// Appends the operations of a CIGAR text to a record under way.
pub(crate) fn parse_operations(cigar: &[u8], record: &mut Builder<'_>) -> Result<(), String> {
    let wrong = || format!("CIGAR {} is none", shown(cigar));
    let (mut length, mut digits) = (0u32, 0);
    for &byte in cigar {
        if byte.is_ascii_digit() {
            length = length * 10 + u32::from(byte - b'0');
            digits += 1;
            // 28 bits are what BAM has for it.
            if length >= 1 << 28 {
                return Err(wrong());
            }
        } else {
            let code = OPERATIONS.iter().position(|&letter| letter == byte).ok_or_else(wrong)?;
            if digits == 0 {
                return Err(wrong());
            }
            record.operation(length << 4 | code as u32);
            (length, digits) = (0, 0);
        }
    }
    if digits > 0 || cigar.is_empty() { Err(wrong()) } else { Ok(()) }
}

/// `TAG:TYPE:VALUE` (section 1.5).
fn tag(field: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let wrong = || format!("{} is no tag", shown(field));
    let (head, value) = field.split_first_chunk::<5>().ok_or_else(wrong)?;
    let [a, b, b':', kind, b':'] = *head else { return Err(wrong()) };
    if !a.is_ascii_alphabetic() || !b.is_ascii_alphanumeric() {
        return Err(wrong());
    }
    out.extend_from_slice(&[a, b]);
    match kind {
        b'A' => {
            let [letter] = *value else { return Err(wrong()) };
            out.extend_from_slice(&[b'A', letter]);
        }
        b'i' => {
            let value: i64 = number(value, "tag")?;
            if !(i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value) {
                return Err(wrong());
            }
            integer(out, value);
        }
        b'f' => {
            out.push(b'f');
            out.extend_from_slice(&float(value).ok_or_else(wrong)?.to_le_bytes());
        }
        b'Z' | b'H' => {
            if memchr::memchr(0, value).is_some() {
                return Err(wrong());
            }
            out.push(kind);
            out.extend_from_slice(value);
            out.push(0);
        }
        b'B' => array(value, out).ok_or_else(wrong)?,
        _ => return Err(wrong()),
    }
    Ok(())
}

fn float(text: &[u8]) -> Option<f32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `TYPE,NUMBER,NUMBER...`
fn array(value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (&kind, items) = value.split_first()?;
    out.extend_from_slice(&[b'B', kind]);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut count = 0u32;
    if !items.is_empty() {
        for item in items.strip_prefix(b",")?.split(|&b| b == b',') {
            count += 1;
            match kind {
                b'c' => out.extend_from_slice(&number::<i8>(item, "").ok()?.to_le_bytes()),
                b'C' => out.extend_from_slice(&number::<u8>(item, "").ok()?.to_le_bytes()),
                b's' => out.extend_from_slice(&number::<i16>(item, "").ok()?.to_le_bytes()),
                b'S' => out.extend_from_slice(&number::<u16>(item, "").ok()?.to_le_bytes()),
                b'i' => out.extend_from_slice(&number::<i32>(item, "").ok()?.to_le_bytes()),
                b'I' => out.extend_from_slice(&number::<u32>(item, "").ok()?.to_le_bytes()),
                b'f' => out.extend_from_slice(&float(item)?.to_le_bytes()),
                _ => return None,
            }
        }
    }
    out[at..at + 4].copy_from_slice(&count.to_le_bytes());
    Some(())
}
