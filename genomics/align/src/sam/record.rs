//! Building the bytes of one record (SAM specification, section 4.2).

use super::{Error, LETTERS, MOST_OPERATIONS};

/// The number of a sequence that is none (`*`), and the position that goes with it.
pub(crate) const NO_PLACE: (i32, i32) = (-1, -1);

/// 4-bit code of each letter: either case, U as T, anything unknown as N.
pub(super) const CODES: [u8; 256] = {
    let mut codes = [15; 256];
    let mut i = 0;
    while i < 16 {
        codes[LETTERS[i] as usize] = i as u8;
        codes[LETTERS[i].to_ascii_lowercase() as usize] = i as u8;
        i += 1;
    }
    codes[b'U' as usize] = 8;
    codes[b'u' as usize] = 8;
    codes
};

/// The same for the complement: the bits of a code stand for A, C, G and T, so the complement is the code mirrored.
const COMPLEMENTS: [u8; 256] = {
    let mut codes = CODES;
    let mut i = 0;
    while i < 256 {
        codes[i] = codes[i].reverse_bits() >> 4;
        i += 1;
    }
    codes
};

/// Bytes of a record before its name, `block_size` included.
pub(super) const HEAD: usize = 36;

/// The fields of fixed size that the maker of a record has to say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed {
    pub flag: u16,
    /// Number of the sequence and 0-based position, or [`NO_PLACE`].
    pub place: (i32, i32),
    pub mapq: u8,
    /// The same for the mate.
    pub mate: (i32, i32),
    pub(crate) template_length: i32,
}

/// One record being appended to a buffer. The parts come in the order of the record: CIGAR, bases, qualities, tags.
///
/// Dropped before [`Builder::finish`] it leaves unfinished bytes; the caller then truncates the buffer.
pub(crate) struct Builder<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    /// Where the CIGAR begins.
    cigar: usize,
    operations: usize,
    /// Bases of the reference under the alignment.
    span: i64,
    bases: usize,
    fixed: Fixed,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, name: &[u8], fixed: Fixed) -> Result<Self, Error> {
        // An empty name is `*` in both forms.
        let name = if name.is_empty() { b"*" } else { name };
        let length = u8::try_from(name.len() + 1).map_err(|_| Error::Name(name.len()))?;
        let start = out.len();
        let mut head = [0; HEAD];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(4, &fixed.place.0.to_le_bytes());
        put(8, &fixed.place.1.to_le_bytes());
        put(12, &[length, fixed.mapq]);
        put(18, &fixed.flag.to_le_bytes());
        put(24, &fixed.mate.0.to_le_bytes());
        put(28, &fixed.mate.1.to_le_bytes());
        put(32, &fixed.template_length.to_le_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(name);
        out.push(0);
        let cigar = out.len();
        Ok(Builder { out, start, cigar, operations: 0, span: 0, bases: 0, fixed })
    }

    /// Appends an operation: its length << 4 | its code.
    pub(crate) fn operation(&mut self, operation: u32) {
        self.out.extend_from_slice(&operation.to_le_bytes());
        self.operations += 1;
        // M, D, N, = and X go along the reference.
        if 0b1_1000_1101 >> (operation & 15) & 1 == 1 {
            self.span += i64::from(operation >> 4);
        }
    }

    /// The bases (ASCII), reverse-complemented if the read lies on the other strand.
    pub(crate) fn bases(&mut self, seq: &[u8], reverse: bool) {
        self.bases = seq.len();
        let at = self.out.len();
        self.out.resize(at + seq.len().div_ceil(2), 0);
        let (whole, last) = self.out[at..].split_at_mut(seq.len() / 2);
        // The base that is left over when their number is odd is the last one of the record.
        if reverse {
            for (byte, pair) in whole.iter_mut().zip(seq.rchunks_exact(2)) {
                *byte = COMPLEMENTS[usize::from(pair[1])] << 4 | COMPLEMENTS[usize::from(pair[0])];
            }
            last.iter_mut().for_each(|byte| *byte = COMPLEMENTS[usize::from(seq[0])] << 4);
        } else {
            for (byte, pair) in whole.iter_mut().zip(seq.chunks_exact(2)) {
                *byte = CODES[usize::from(pair[0])] << 4 | CODES[usize::from(pair[1])];
            }
            last.iter_mut().for_each(|byte| *byte = CODES[usize::from(seq[seq.len() - 1])] << 4);
        }
    }

    /// The qualities (Phred + 33), as many as bases, or none at all.
    pub(crate) fn qualities(&mut self, qual: &[u8], reverse: bool) {
        if qual.len() != self.bases || qual.is_empty() {
            self.out.resize(self.out.len() + self.bases, 0xff);
        } else if reverse {
            self.out.extend(qual.iter().rev().map(|q| q.wrapping_sub(33)));
        } else {
            self.out.extend(qual.iter().map(|q| q.wrapping_sub(33)));
        }
    }

    /// An integer tag, in the smallest type that holds it.
    pub(crate) fn integer(&mut self, tag: &[u8; 2], value: i64) {
        self.out.extend_from_slice(tag);
        integer(self.out, value);
    }

    /// A tag of a number that is no integer (`f`).
    pub(crate) fn float(&mut self, tag: &[u8; 2], value: f32) {
        self.out.extend_from_slice(tag);
        self.out.push(b'f');
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// A text tag (`Z`) whose text `write` appends.
    pub(crate) fn text(&mut self, tag: &[u8; 2], write: impl FnOnce(&mut Vec<u8>)) {
        self.out.extend_from_slice(tag);
        self.out.push(b'Z');
        write(self.out);
        self.out.push(0);
    }

    /// The buffer, for a tag in another form.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Bases of the record so far.
    pub(super) fn length(&self) -> usize {
        self.bases
    }

    /// Completes the record.
    pub(crate) fn finish(self) {
        let Builder { out, start, cigar, mut operations, span, bases, fixed } = self;
        if operations > MOST_OPERATIONS {
            // The true CIGAR goes into a tag; one that covers read and reference takes its place (section 4.2.2).
            let end = cigar + 4 * operations;
            out.extend_from_slice(b"CGBI");
            out.extend_from_slice(&(operations as u32).to_le_bytes());
            out.extend_from_within(cigar..end);
            let stand_in = [(bases as u32) << 4 | 4, (span as u32) << 4 | 3].map(u32::to_le_bytes);
            out.splice(cigar..end, stand_in.concat());
            operations = 2;
        }
        let size = (out.len() - start - 4) as u32;
        let mut put = |at: usize, bytes: &[u8]| {
            out[start + at..start + at + bytes.len()].copy_from_slice(bytes);
        };
        put(0, &size.to_le_bytes());
        let span = if fixed.flag & 4 != 0 || span == 0 { 1 } else { span };
        put(14, &bin(i64::from(fixed.place.1), span).to_le_bytes());
        put(16, &(operations as u16).to_le_bytes());
        put(20, &(bases as u32).to_le_bytes());
    }
}

/// An integer with the letter of its type: the smallest one, unsigned when the value is not negative.
pub(super) fn integer(out: &mut Vec<u8>, value: i64) {
    match value {
        0..=0xff => out.extend_from_slice(&[b'C', value as u8]),
        0x100..=0xffff => {
            out.push(b'S');
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000.. => {
            out.push(b'I');
            out.extend_from_slice(&(value as u32).to_le_bytes());
        }
        -0x80..=-1 => out.extend_from_slice(&[b'c', value as u8]),
        -0x8000..=-0x81 => {
            out.push(b's');
            out.extend_from_slice(&(value as i16).to_le_bytes());
        }
        _ => {
            out.push(b'i');
            out.extend_from_slice(&(value as i32).to_le_bytes());
        }
    }
}

/// The smallest bin that holds `span` bases from `start` (section 5.3); a read without a place has bin 4680.
fn bin(start: i64, span: i64) -> u16 {
    let end = start + span - 1;
    let level = |shift: u32, first: i64| (start >> shift == end >> shift).then_some(first + (start >> shift));
    let bin = level(14, 4681)
        .or_else(|| level(17, 585))
        .or_else(|| level(20, 73))
        .or_else(|| level(23, 9))
        .or_else(|| level(26, 1));
    bin.unwrap_or(0) as u16
}
