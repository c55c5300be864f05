//! Converts a line of SAM text to a BAM record.

use super::bam_record::push_int_tag_value;
use super::{CIGAR_LETTERS, Contigs, Error, FixedFields, NO_POSITION, RecordBuilder};

/// Appends the BAM record of a SAM line, with `block_size` first. The line end is optional.
///
/// # Errors
/// The line violates the format or names a sequence that is not in `contigs`; `out` is then unchanged.
pub fn parse_sam_line(line: &[u8], contigs: &Contigs, out: &mut Vec<u8>) -> Result<(), Error> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let start = out.len();
    parse_record(line, contigs, out).map_err(|failure| {
        out.truncate(start);
        match failure {
            ParseFailure::InvalidLine(reason) => {
                let name = line.split(|&b| b == b'\t').next().unwrap_or_default();
                Error::SamLine { name: String::from_utf8_lossy(name).into_owned(), reason }
            }
            ParseFailure::Error(error) => error,
        }
    })
}

/// Appends the tags of a SAM text (for example `NM:i:0`, separated by tabs) to an unfinished record.
pub(crate) fn parse_and_push_tags(text: &[u8], record: &mut RecordBuilder<'_>) -> Result<(), String> {
    text.split(|&b| b == b'\t').try_for_each(|field| parse_tag(field, record.output_buffer_mut()))
}

/// Why a SAM line cannot be parsed: a reason without the read name, or a complete error.
enum ParseFailure {
    InvalidLine(String),
    Error(Error),
}

impl From<String> for ParseFailure {
    fn from(reason: String) -> Self {
        ParseFailure::InvalidLine(reason)
    }
}

impl From<Error> for ParseFailure {
    fn from(error: Error) -> Self {
        ParseFailure::Error(error)
    }
}

/// The text of a field in quotes for an error message, shortened to 40 letters.
fn quote_field(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field);
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("'{}...'", &text[..at]),
        None => format!("'{text}'"),
    }
}

/// Parses a decimal integer with an optional sign. `field_name` is used in the error message.
fn parse_int<T: TryFrom<i64>>(field: &[u8], field_name: &str) -> Result<T, String> {
    let invalid = || format!("{field_name} {} is not a valid number", quote_field(field));
    let (negative, digits) = match field {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, field),
    };
    if digits.is_empty() || digits.len() > 18 {
        return Err(invalid());
    }
    let mut value = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(invalid());
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    T::try_from(if negative { -value } else { value }).map_err(|_| invalid())
}

fn parse_record(line: &[u8], contigs: &Contigs, out: &mut Vec<u8>) -> Result<(), ParseFailure> {
    let mut fields = line.split(|&b| b == b'\t');
    let mut next = |field_name: &str| fields.next().ok_or_else(|| format!("the line ends before its {field_name}"));
    let name = next("name")?;
    let flag: u16 = parse_int(next("FLAG")?, "FLAG")?;
    let sequence = |field: &[u8]| match field {
        b"*" => Ok(NO_POSITION.0),
        _ => contigs.contig_index(field).ok_or_else(|| format!("sequence {} is not in the header", quote_field(field))),
    };
    let rname = sequence(next("RNAME")?)?;
    let pos = parse_int::<i32>(next("POS")?, "POS")?.saturating_sub(1);
    let mapq = parse_int(next("MAPQ")?, "MAPQ")?;
    let cigar = next("CIGAR")?;
    let rnext = match next("RNEXT")? {
        b"=" => rname,
        field => sequence(field)?,
    };
    let pnext = parse_int::<i32>(next("PNEXT")?, "PNEXT")?.saturating_sub(1);
    let template_length = parse_int(next("TLEN")?, "TLEN")?;
    let fixed = FixedFields { flag, position: (rname, pos), mapq, mate_position: (rnext, pnext), template_length };
    let (seq, qual) = (next("SEQ")?, next("QUAL")?);

    let mut record = RecordBuilder::begin_record(out, name, fixed)?;
    if cigar != b"*" {
        parse_cigar(cigar, &mut record)?;
    }
    record.append_bases_as_bam_codes(if seq == b"*" { b"" } else { seq }, false);
    if qual != b"*" && qual.len() != record.num_bases() {
        let (bases, qualities) = (record.num_bases(), qual.len());
        return Err(format!("{bases} bases and {qualities} qualities").into());
    }
    // A single quality of 9 (`*`) cannot be distinguished from missing qualities and counts as missing, as in
    // samtools.
    record.push_qualities(if qual == b"*" { b"" } else { qual }, false);
    for field in fields {
        parse_tag(field, record.output_buffer_mut())?;
    }
    record.finish_record();
    Ok(())
}

/// Appends the operations of a CIGAR text to an unfinished record.
fn parse_cigar(cigar: &[u8], record: &mut RecordBuilder<'_>) -> Result<(), String> {
    let invalid = || format!("CIGAR {} is not valid", quote_field(cigar));
    let (mut length, mut digits) = (0u32, 0);
    for &byte in cigar {
        if byte.is_ascii_digit() {
            length = length * 10 + u32::from(byte - b'0');
            digits += 1;
            // BAM stores the length of an operation in 28 bits.
            if length >= 1 << 28 {
                return Err(invalid());
            }
        } else {
            let code = CIGAR_LETTERS.iter().position(|&letter| letter == byte).ok_or_else(invalid)?;
            if digits == 0 {
                return Err(invalid());
            }
            record.push_cigar_op(length << 4 | code as u32);
            (length, digits) = (0, 0);
        }
    }
    if digits > 0 || cigar.is_empty() { Err(invalid()) } else { Ok(()) }
}

/// Parses one tag, `TAG:TYPE:VALUE` (section 1.5), and appends its BAM form.
fn parse_tag(field: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let invalid = || format!("{} is not a valid tag", quote_field(field));
    let (head, value) = field.split_first_chunk::<5>().ok_or_else(invalid)?;
    let [a, b, b':', kind, b':'] = *head else { return Err(invalid()) };
    if !a.is_ascii_alphabetic() || !b.is_ascii_alphanumeric() {
        return Err(invalid());
    }
    out.extend_from_slice(&[a, b]);
    match kind {
        b'A' => {
            let [letter] = *value else { return Err(invalid()) };
            out.extend_from_slice(&[b'A', letter]);
        }
        b'i' => {
            let value: i64 = parse_int(value, "tag")?;
            if !(i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value) {
                return Err(invalid());
            }
            push_int_tag_value(out, value);
        }
        b'f' => {
            out.push(b'f');
            out.extend_from_slice(&parse_float(value).ok_or_else(invalid)?.to_le_bytes());
        }
        b'Z' | b'H' => {
            if memchr::memchr(0, value).is_some() {
                return Err(invalid());
            }
            out.push(kind);
            out.extend_from_slice(value);
            out.push(0);
        }
        b'B' => parse_array(value, out).ok_or_else(invalid)?,
        _ => return Err(invalid()),
    }
    Ok(())
}

fn parse_float(text: &[u8]) -> Option<f32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses the value of an array tag, `TYPE,NUMBER,NUMBER...`, and appends its BAM form; `None` if the value is
/// invalid.
fn parse_array(value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (&kind, items) = value.split_first()?;
    out.extend_from_slice(&[b'B', kind]);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut count = 0u32;
    if !items.is_empty() {
        for item in items.strip_prefix(b",")?.split(|&b| b == b',') {
            count += 1;
            match kind {
                b'c' => out.extend_from_slice(&parse_int::<i8>(item, "").ok()?.to_le_bytes()),
                b'C' => out.extend_from_slice(&parse_int::<u8>(item, "").ok()?.to_le_bytes()),
                b's' => out.extend_from_slice(&parse_int::<i16>(item, "").ok()?.to_le_bytes()),
                b'S' => out.extend_from_slice(&parse_int::<u16>(item, "").ok()?.to_le_bytes()),
                b'i' => out.extend_from_slice(&parse_int::<i32>(item, "").ok()?.to_le_bytes()),
                b'I' => out.extend_from_slice(&parse_int::<u32>(item, "").ok()?.to_le_bytes()),
                b'f' => out.extend_from_slice(&parse_float(item)?.to_le_bytes()),
                _ => return None,
            }
        }
    }
    out[at..at + 4].copy_from_slice(&count.to_le_bytes());
    Some(())
}
