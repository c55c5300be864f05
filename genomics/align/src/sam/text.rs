//! BAM record → SAM line.

use super::record::HEAD;
use super::{Contigs, Error, LETTERS, OPERATIONS};

/// The two letters of each byte of bases.
const PAIRS: [[u8; 2]; 256] = {
    let mut pairs = [[0; 2]; 256];
    let mut i = 0;
    while i < 256 {
        pairs[i] = [LETTERS[i >> 4], LETTERS[i & 15]];
        i += 1;
    }
    pairs
};

/// Appends the SAM line of `record` (with its `block_size`) and a line end.
///
/// # Errors
/// The bytes are no record, or name a sequence that is not in `contigs`; `out` is then as it was.
pub fn write_line(record: &[u8], contigs: &Contigs, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    line(record, contigs, out).inspect_err(|_| out.truncate(start))
}

/// Takes fields off the front of a record.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(Error::Record("it ends within a field"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Error::Record("it ends within a field"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn text(&mut self) -> Result<&'a [u8], Error> {
        let end = memchr::memchr(0, self.0).ok_or(Error::Record("a text without its end"))?;
        let text = self.take(end)?;
        self.0 = &self.0[1..];
        Ok(text)
    }
}

fn number(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn line(record: &[u8], contigs: &Contigs, out: &mut Vec<u8>) -> Result<(), Error> {
    let head: &[u8; HEAD] = record.first_chunk().ok_or(Error::Record("shorter than its fixed fields"))?;
    let int = |at: usize| i32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let short = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    if int(0) as u32 as usize != record.len() - 4 {
        return Err(Error::Record("its size is not that of its bytes"));
    }
    let (bases, operations) = (int(20) as u32 as usize, usize::from(short(16)));
    let mut fields = Cursor(&record[HEAD..]);
    let name = fields.take(usize::from(head[12]))?.split_last().ok_or(Error::Record("no name"))?.1;
    let cigar = fields.take(4 * operations)?;
    let seq = fields.take(bases.div_ceil(2))?;
    let qual = fields.take(bases)?;
    // An alignment of very many operations stands in a tag (section 4.2.2).
    let stands_in = operations == 2
        && cigar[..4] == ((bases as u32) << 4 | 4).to_le_bytes()
        && cigar[4] & 15 == 3
        && bases > 0;
    let long = if stands_in { long_cigar(Cursor(fields.0))? } else { None };

    let tab = |out: &mut Vec<u8>| out.push(b'\t');
    out.extend_from_slice(name);
    tab(out);
    number(out, short(18));
    tab(out);
    sequence(int(4), contigs, out)?;
    tab(out);
    number(out, i64::from(int(8)) + 1);
    tab(out);
    number(out, head[13]);
    tab(out);
    write_cigar(long.unwrap_or(cigar), out)?;
    tab(out);
    match int(24) {
        next if next >= 0 && next == int(4) => out.push(b'='),
        next => sequence(next, contigs, out)?,
    }
    tab(out);
    number(out, i64::from(int(28)) + 1);
    tab(out);
    number(out, int(32));
    tab(out);
    if bases == 0 {
        out.extend_from_slice(b"*\t*");
    } else {
        let at = out.len();
        out.resize(at + 2 * seq.len(), 0);
        for (letters, byte) in out[at..].chunks_exact_mut(2).zip(seq) {
            letters.copy_from_slice(&PAIRS[usize::from(*byte)]);
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
        let tag: [u8; 3] = fields.array()?;
        out.extend_from_slice(&[b'\t', tag[0], tag[1], b':']);
        value(tag[2], &mut fields, out)?;
        if long.is_some() && tag[..2] == *b"CG" {
            out.truncate(from);
        }
    }
    out.push(b'\n');
    Ok(())
}

fn sequence(number: i32, contigs: &Contigs, out: &mut Vec<u8>) -> Result<(), Error> {
    if number == -1 {
        out.push(b'*');
    } else {
        let name = contigs.name(number).ok_or(Error::Record("its sequence is not in the header"))?;
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
        number(out, operation >> 4);
        let letter = OPERATIONS.get(operation as usize & 15);
        out.push(*letter.ok_or(Error::Record("an unknown CIGAR operation"))?);
    }
    Ok(())
}

/// The operations in the tag `CG`, if there is one.
fn long_cigar(mut tags: Cursor<'_>) -> Result<Option<&[u8]>, Error> {
    while !tags.0.is_empty() {
        let tag: [u8; 3] = tags.array()?;
        match tag[2] {
            b'Z' | b'H' => drop(tags.text()?),
            b'B' => {
                let [kind] = tags.array()?;
                let items = u32::from_le_bytes(tags.array()?) as usize;
                let bytes = tags.take(items.saturating_mul(size(kind)?))?;
                if tag == *b"CGB" && kind == b'I' {
                    return Ok(Some(bytes));
                }
            }
            kind => drop(tags.take(size(kind)?)?),
        }
    }
    Ok(None)
}

/// Bytes of a number or letter of that type.
fn size(kind: u8) -> Result<usize, Error> {
    match kind {
        b'A' | b'c' | b'C' => Ok(1),
        b's' | b'S' => Ok(2),
        b'i' | b'I' | b'f' => Ok(4),
        _ => Err(Error::Record("a tag of an unknown type")),
    }
}

/// Type letter and value of a tag.
fn value(kind: u8, fields: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match kind {
        b'A' => {
            let [letter] = fields.array()?;
            out.extend_from_slice(&[b'A', b':', letter]);
        }
        b'Z' | b'H' => {
            out.extend_from_slice(&[kind, b':']);
            out.extend_from_slice(fields.text()?);
        }
        b'f' => {
            out.extend_from_slice(b"f:");
            item(kind, fields, out)?;
        }
        b'B' => {
            let [kind] = fields.array()?;
            let items = u32::from_le_bytes(fields.array()?);
            out.extend_from_slice(&[b'B', b':', kind]);
            for _ in 0..items {
                out.push(b',');
                item(kind, fields, out)?;
            }
        }
        _ => {
            out.extend_from_slice(b"i:");
            item(kind, fields, out)?;
        }
    }
    Ok(())
}

fn item(kind: u8, fields: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match kind {
        b'c' => number(out, i8::from_le_bytes(fields.array()?)),
        b'C' => number(out, u8::from_le_bytes(fields.array()?)),
        b's' => number(out, i16::from_le_bytes(fields.array()?)),
        b'S' => number(out, u16::from_le_bytes(fields.array()?)),
        b'i' => number(out, i32::from_le_bytes(fields.array()?)),
        b'I' => number(out, u32::from_le_bytes(fields.array()?)),
        b'f' => {
            use std::io::Write as _;
            let value = f32::from_le_bytes(fields.array()?);
            // The shortest text that reads back as the same number; writing to a vector cannot fail.
            let _ = match value.abs() {
                0.0 | 1e-4..1e9 => write!(out, "{value}"),
                _ => write!(out, "{value:e}"),
            };
        }
        _ => return Err(Error::Record("a tag of an unknown type")),
    }
    Ok(())
}
