//! Fields of an encoded BAM record (SAM specification, section 4.2), read where they lie.

use super::Error;

/// Bits of the FLAG field (section 1.4).
pub(crate) mod flag {
    pub(crate) const PAIRED: u16 = 0x1;
    pub(crate) const UNMAPPED: u16 = 0x4;
    pub(crate) const MATE_UNMAPPED: u16 = 0x8;
    pub(crate) const REVERSE: u16 = 0x10;
    pub(crate) const MATE_REVERSE: u16 = 0x20;
    pub(crate) const FIRST: u16 = 0x40;
    pub(crate) const LAST: u16 = 0x80;
    pub(crate) const SECONDARY: u16 = 0x100;
    pub(crate) const FAILED: u16 = 0x200;
    pub(crate) const DUPLICATE: u16 = 0x400;
    pub(crate) const SUPPLEMENTARY: u16 = 0x800;
}

/// Bytes of the fields before the name, `block_size` among them.
const FIXED: usize = 36;

/// An alignment, with its `block_size` before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a>(&'a [u8]);

/// An operation of a CIGAR: its length, and what it goes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) len: u32,
    /// Index in `MIDNSHP=X`.
    pub(crate) kind: u8,
}

impl Op {
    fn new(word: u32) -> Op {
        Op { len: word >> 4, kind: (word & 15) as u8 }
    }

    /// Whether it goes along the reference: M, D, N, =, X.
    pub(crate) fn spans(self) -> bool {
        matches!(self.kind, 0 | 2 | 3 | 7 | 8)
    }

    /// Whether it is a clip, S or H.
    pub(crate) fn clips(self) -> bool {
        matches!(self.kind, 4 | 5)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Bytes of the record that begins `bytes`, `block_size` included.
pub(crate) fn length(bytes: &[u8]) -> usize {
    4 + u32_at(bytes, 0) as usize
}

/// Sets the bit that says duplicate in the record that begins `bytes`.
pub(crate) fn mark(bytes: &mut [u8]) {
    bytes[19] |= (flag::DUPLICATE >> 8) as u8;
}

impl<'a> Record<'a> {
    /// The record that begins `bytes`, which must have been looked at by [`Record::first`] before.
    pub(crate) fn at(bytes: &'a [u8]) -> Record<'a> {
        Record(&bytes[..length(bytes)])
    }

    /// The record that begins `bytes`, and what follows.
    pub(crate) fn first(bytes: &'a [u8]) -> Result<(Record<'a>, &'a [u8]), Error> {
        let size = bytes.get(..4).map_or(usize::MAX, length);
        let cut = Error::Record { what: "is cut short" };
        let (record, rest) = bytes.split_at_checked(size).ok_or(cut)?;
        if size < FIXED {
            return Err(Error::Record { what: "is too short for its fixed fields" });
        }
        let record = Record(record);
        let name = usize::from(record.0[12]);
        let sequence = record.letters().div_ceil(2).saturating_add(record.letters());
        if name == 0 || FIXED + name + 4 * record.operations() + sequence > size {
            return Err(Error::Record { what: "is shorter than its name, CIGAR, sequence and qualities" });
        }
        Ok((record, rest))
    }

    /// The whole of it.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Index of the sequence it stands at.
    pub(crate) fn sequence(self) -> Option<u32> {
        Some(u32_at(self.0, 4)).filter(|&s| s as i32 >= 0)
    }

    /// First base, 0-based; -1 without a place.
    pub(crate) fn position(self) -> i32 {
        u32_at(self.0, 8) as i32
    }

    pub(crate) fn flags(self) -> u16 {
        u16_at(self.0, 18)
    }

    /// Whether any bit of `flags` is set.
    pub(crate) fn is(self, flags: u16) -> bool {
        self.flags() & flags != 0
    }

    fn operations(self) -> usize {
        usize::from(u16_at(self.0, 16))
    }

    /// Number of its bases.
    pub(crate) fn letters(self) -> usize {
        u32_at(self.0, 20) as usize
    }

    /// Appends its bases, each as one of `letters`.
    pub(crate) fn push_bases(self, letters: &[u8; 16], out: &mut Vec<u8>) {
        let at = self.after_name() + 4 * self.operations();
        let packed = &self.0[at..at + self.letters().div_ceil(2)];
        let end = out.len() + self.letters();
        out.extend(packed.iter().flat_map(|b| [letters[usize::from(b >> 4)], letters[usize::from(b & 15)]]));
        out.truncate(end);
    }

    pub(crate) fn mapping_quality(self) -> u8 {
        self.0[13]
    }

    /// Index of the sequence that its mate stands at; -1 without one.
    pub(crate) fn next_sequence(self) -> i32 {
        u32_at(self.0, 24) as i32
    }

    /// First base of its mate, 0-based; -1 without a place.
    pub(crate) fn next_position(self) -> i32 {
        u32_at(self.0, 28) as i32
    }

    /// Length of its template, bases, with a sign.
    pub(crate) fn template_length(self) -> i32 {
        u32_at(self.0, 32) as i32
    }

    /// Without the NUL that ends it.
    pub(crate) fn name(self) -> &'a [u8] {
        &self.0[FIXED..FIXED + usize::from(self.0[12]) - 1]
    }

    fn after_name(self) -> usize {
        FIXED + usize::from(self.0[12])
    }

    /// Phred qualities without offset, as many as bases; all 255 when there are none.
    pub(crate) fn qualities(self) -> &'a [u8] {
        let at = self.after_name() + 4 * self.operations() + self.letters().div_ceil(2);
        &self.0[at..at + self.letters()]
    }

    /// Whether the CIGAR is in a tag, as it is too long for the field (section 4.2.2).
    pub(crate) fn has_long_cigar(self) -> bool {
        self.long_cigar().is_some()
    }

    fn long_cigar(self) -> Option<&'a [u8]> {
        let at = self.after_name();
        let stands_in = self.operations() == 2 && self.0[at] & 15 == 4 && self.0[at + 4] & 15 == 3;
        if !stands_in {
            return None;
        }
        self.tag(*b"CG").filter(|t| t.starts_with(b"BI")).and_then(|t| t.get(6..))
    }

    /// The CIGAR, wherever it is.
    pub(crate) fn cigar(self) -> impl DoubleEndedIterator<Item = Op> + Clone + 'a {
        let at = self.after_name();
        let words = self.long_cigar().unwrap_or(&self.0[at..at + 4 * self.operations()]);
        words.chunks_exact(4).map(|w| Op::new(u32_at(w, 0)))
    }

    /// Bases of the reference that it spans.
    pub(crate) fn span(self) -> u64 {
        let at = self.after_name();
        let words = self.0[at..at + 4 * self.operations()].chunks_exact(4);
        words.map(|w| Op::new(u32_at(w, 0))).filter(|op| op.spans()).map(|op| u64::from(op.len)).sum()
    }

    /// Type and value of a tag, as encoded; `None` too when the tags before it cannot be read.
    pub(crate) fn tag(self, wanted: [u8; 2]) -> Option<&'a [u8]> {
        self.tags().map_while(|tag| tag).find(|(tag, _)| *tag == wanted).map(|(_, value)| value)
    }

    /// Each tag, with its type and value as encoded. `None` is the last where what is left cannot be read.
    pub(crate) fn tags(self) -> impl Iterator<Item = Option<([u8; 2], &'a [u8])>> {
        let size = |kind| match kind {
            b'A' | b'c' | b'C' => Some(1),
            b's' | b'S' => Some(2),
            b'i' | b'I' | b'f' => Some(4),
            _ => None,
        };
        let next = move |bytes: &'a [u8]| {
            let [a, b, value @ ..] = bytes else { return None };
            let end = match value.first()? {
                b'Z' | b'H' => value.iter().position(|&c| c == 0)? + 1,
                b'B' => 6 + size(*value.get(1)?)? * u32_at(value.get(..6)?, 2) as usize,
                &kind => 1 + size(kind)?,
            };
            let (value, after) = value.split_at_checked(end)?;
            Some((([*a, *b], value), after))
        };
        let at = self.after_name() + 4 * self.operations() + self.letters().div_ceil(2) + self.letters();
        let mut rest = &self.0[at..];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let found = next(rest);
            rest = found.map_or(&[], |(_, after)| after);
            Some(found.map(|(tag, _)| tag))
        })
    }

    /// What `samtools sort` compares: sequence, position, strand; records without a sequence come last.
    pub(crate) fn key(self) -> u64 {
        let sequence = u64::from(u32_at(self.0, 4)) & 0x7fff_ffff;
        let position = u64::from((self.position() as u32).wrapping_add(1));
        sequence << 33 | position << 1 | u64::from(self.is(flag::REVERSE))
    }
}
