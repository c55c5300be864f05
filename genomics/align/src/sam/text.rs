//! Converts a BAM record to a line of SAM text.

use super::bam_record::FIXED_FIELDS_BYTES;
use super::{BASE_LETTERS, CIGAR_LETTERS, Contigs, Error};

/// The two base letters that each byte of the 4-bit base field stands for.
const BASE_LETTER_PAIRS: [[u8; 2]; 256] = {
    let mut pairs = [[0; 2]; 256];
    let mut i = 0;
    while i < 256 {
        pairs[i] = [BASE_LETTERS[i >> 4], BASE_LETTERS[i & 15]];
        i += 1;
    }
    pairs
};

/// Appends the SAM line of `record`, which includes its `block_size`, and a line end.
///
/// # Errors
/// The bytes are not a valid BAM record, or the record refers to a sequence that is not in `contigs`; `out` is then
/// unchanged.
pub fn write_sam_line(record: &[u8], contigs: &Contigs, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    write_fields(record, contigs, out).inspect_err(|_| out.truncate(start))
}

/// Reads fields from the front of a BAM record.
struct FieldCursor<'a>(&'a [u8]);

impl<'a> FieldCursor<'a> {
    fn take_bytes(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) =
            self.0.split_at_checked(n).ok_or(Error::InvalidBamRecord("the record ends within a field"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) =
            self.0.split_first_chunk().ok_or(Error::InvalidBamRecord("the record ends within a field"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn take_text(&mut self) -> Result<&'a [u8], Error> {
        let end = memchr::memchr(0, self.0).ok_or(Error::InvalidBamRecord("a text tag has no NUL at its end"))?;
        let text = self.take_bytes(end)?;
        self.0 = &self.0[1..];
        Ok(text)
    }
}

fn write_int(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes all fields of the SAM line, separated by tabs.
fn write_fields(record: &[u8], contigs: &Contigs, out: &mut Vec<u8>) -> Result<(), Error> {
    let head: &[u8; FIXED_FIELDS_BYTES] =
        record.first_chunk().ok_or(Error::InvalidBamRecord("shorter than its fixed fields"))?;
    let int = |at: usize| i32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let short = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    if int(0) as u32 as usize != record.len() - 4 {
        return Err(Error::InvalidBamRecord("block_size does not match the number of bytes"));
    }
    let (bases, operations) = (int(20) as u32 as usize, usize::from(short(16)));
    let mut fields = FieldCursor(&record[FIXED_FIELDS_BYTES..]);
    let name = fields.take_bytes(usize::from(head[12]))?.split_last().ok_or(Error::InvalidBamRecord("no name"))?.1;
    let cigar = fields.take_bytes(4 * operations)?;
    let seq = fields.take_bytes(bases.div_ceil(2))?;
    let qual = fields.take_bytes(bases)?;
    // A CIGAR with too many operations is stored in the `CG` tag (section 4.2.2).
    let has_placeholder_cigar =
        operations == 2 && cigar[..4] == ((bases as u32) << 4 | 4).to_le_bytes() && cigar[4] & 15 == 3 && bases > 0;
    let long = if has_placeholder_cigar { find_cg_tag(FieldCursor(fields.0))? } else { None };

    let tab = |out: &mut Vec<u8>| out.push(b'\t');
    out.extend_from_slice(name);
    tab(out);
    write_int(out, short(18));
    tab(out);
    write_contig_name(int(4), contigs, out)?;
    tab(out);
    write_int(out, i64::from(int(8)) + 1);
    tab(out);
    write_int(out, head[13]);
    tab(out);
    write_cigar(long.unwrap_or(cigar), out)?;
    tab(out);
    match int(24) {
        next if next >= 0 && next == int(4) => out.push(b'='),
        next => write_contig_name(next, contigs, out)?,
    }
    tab(out);
    write_int(out, i64::from(int(28)) + 1);
    tab(out);
    write_int(out, int(32));
    tab(out);
    if bases == 0 {
        out.extend_from_slice(b"*\t*");
    } else {
        let at = out.len();
        out.resize(at + 2 * seq.len(), 0);
        for (letters, byte) in out[at..].chunks_exact_mut(2).zip(seq) {
            letters.copy_from_slice(&BASE_LETTER_PAIRS[usize::from(*byte)]);
        }
        out.truncate(at + bases);
        tab(out);
        match qual[0] {
            0xff => out.push(b'*'),
            _ => out.extend(qual.iter().map(|q| q.wrapping_add(33))),
        }
    }
    while !fields.0.is_empty() {
        let from = out.len();
        let tag: [u8; 3] = fields.take_array()?;
        out.extend_from_slice(&[b'\t', tag[0], tag[1], b':']);
        write_tag_value(tag[2], &mut fields, out)?;
        if long.is_some() && tag[..2] == *b"CG" {
            out.truncate(from);
        }
    }
    out.push(b'\n');
    Ok(())
}

/// Writes the name of a reference sequence, or `*` for number −1.
fn write_contig_name(number: i32, contigs: &Contigs, out: &mut Vec<u8>) -> Result<(), Error> {
    if number == -1 {
        out.push(b'*');
    } else {
        let name = contigs.contig_name(number).ok_or(Error::InvalidBamRecord("its sequence is not in the header"))?;
        out.extend_from_slice(name.as_bytes());
    }
    Ok(())
}

fn write_cigar(cigar: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    if cigar.is_empty() {
        out.push(b'*');
    }
    for operation in cigar.chunks_exact(4) {
        let operation = u32::from_le_bytes([operation[0], operation[1], operation[2], operation[3]]);
        write_int(out, operation >> 4);
        let letter = CIGAR_LETTERS.get(operation as usize & 15);
        out.push(*letter.ok_or(Error::InvalidBamRecord("an unknown CIGAR operation"))?);
    }
    Ok(())
}

/// The bytes of the CIGAR in the tag `CG`; `None` if the record does not have this tag.
fn find_cg_tag(mut tags: FieldCursor<'_>) -> Result<Option<&[u8]>, Error> {
    while !tags.0.is_empty() {
        let tag: [u8; 3] = tags.take_array()?;
        match tag[2] {
            b'Z' | b'H' => drop(tags.take_text()?),
            b'B' => {
                let [kind] = tags.take_array()?;
                let items = u32::from_le_bytes(tags.take_array()?) as usize;
                let bytes = tags.take_bytes(items.saturating_mul(tag_value_bytes(kind)?))?;
                if tag == *b"CGB" && kind == b'I' {
                    return Ok(Some(bytes));
                }
            }
            kind => drop(tags.take_bytes(tag_value_bytes(kind)?)?),
        }
    }
    Ok(None)
}

/// Number of bytes of a tag value whose BAM type is a number or a character.
fn tag_value_bytes(kind: u8) -> Result<usize, Error> {
    match kind {
        b'A' | b'c' | b'C' => Ok(1),
        b's' | b'S' => Ok(2),
        b'i' | b'I' | b'f' => Ok(4),
        _ => Err(Error::InvalidBamRecord("a tag of an unknown type")),
    }
}

/// Writes the SAM type letter and the value of a tag whose BAM type is `kind`.
fn write_tag_value(kind: u8, fields: &mut FieldCursor<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match kind {
        b'A' => {
            let [letter] = fields.take_array()?;
            out.extend_from_slice(&[b'A', b':', letter]);
        }
        b'Z' | b'H' => {
            out.extend_from_slice(&[kind, b':']);
            out.extend_from_slice(fields.take_text()?);
        }
        b'f' => {
            out.extend_from_slice(b"f:");
            write_number(kind, fields, out)?;
        }
        b'B' => {
            let [kind] = fields.take_array()?;
            let items = u32::from_le_bytes(fields.take_array()?);
            out.extend_from_slice(&[b'B', b':', kind]);
            for _ in 0..items {
                out.push(b',');
                write_number(kind, fields, out)?;
            }
        }
        _ => {
            out.extend_from_slice(b"i:");
            write_number(kind, fields, out)?;
        }
    }
    Ok(())
}

/// Writes one number of the BAM type `kind` as text.
fn write_number(kind: u8, fields: &mut FieldCursor<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match kind {
        b'c' => write_int(out, i8::from_le_bytes(fields.take_array()?)),
        b'C' => write_int(out, u8::from_le_bytes(fields.take_array()?)),
        b's' => write_int(out, i16::from_le_bytes(fields.take_array()?)),
        b'S' => write_int(out, u16::from_le_bytes(fields.take_array()?)),
        b'i' => write_int(out, i32::from_le_bytes(fields.take_array()?)),
        b'I' => write_int(out, u32::from_le_bytes(fields.take_array()?)),
        b'f' => {
            use std::io::Write as _;
            let value = f32::from_le_bytes(fields.take_array()?);
            // The shortest text that parses to the same number. Writing to a vector cannot fail.
            let _ = match value.abs() {
                0.0 | 1e-4..1e9 => write!(out, "{value}"),
                _ => write!(out, "{value:e}"),
            };
        }
        _ => return Err(Error::InvalidBamRecord("a tag of an unknown type")),
    }
    Ok(())
}
