//! Builds the bytes of one BAM record (SAM specification, section 4.2).

use super::{BASE_LETTERS, Error, MAX_CIGAR_OPS};

/// Index of the reference sequence and position of a record without a position (SAM: RNAME `*`, POS 0).
pub(crate) const NO_POSITION: (i32, i32) = (-1, -1);

/// 4-bit BAM code of each base letter. Lower case is accepted, U counts as T, every unknown letter counts as N.
pub(super) const BAM_CODE_BY_BASE_LETTER: [u8; 256] = {
    let mut codes = [15; 256];
    let mut i = 0;
    while i < 16 {
        codes[BASE_LETTERS[i] as usize] = i as u8;
        codes[BASE_LETTERS[i].to_ascii_lowercase() as usize] = i as u8;
        i += 1;
    }
    codes[b'U' as usize] = 8;
    codes[b'u' as usize] = 8;
    codes
};

/// 4-bit BAM code of the complement of each base letter. The four bits of a code represent A, C, G and T, so the
/// complement is the code with reversed bit order.
const COMPLEMENT_CODES: [u8; 256] = {
    let mut codes = BAM_CODE_BY_BASE_LETTER;
    let mut i = 0;
    while i < 256 {
        codes[i] = codes[i].reverse_bits() >> 4;
        i += 1;
    }
    codes
};

/// Bytes of a BAM record before the read name, `block_size` included.
pub(super) const FIXED_FIELDS_BYTES: usize = 36;

/// The fields of fixed size of a BAM record that the caller sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedFields {
    pub flag: u16,
    /// Index of the reference sequence and 0-based position, or [`NO_POSITION`].
    pub position: (i32, i32),
    pub mapq: u8,
    /// Index of the reference sequence and 0-based position of the mate, or [`NO_POSITION`].
    pub mate_position: (i32, i32),
    pub(crate) template_length: i32,
}

/// Appends one BAM record to a buffer. The fields must be pushed in the order of a BAM record: CIGAR, bases,
/// qualities, tags.
///
/// A builder that is dropped before [`RecordBuilder::finish_record`] leaves an incomplete record; the caller then
/// truncates the buffer.
pub(crate) struct RecordBuilder<'a> {
    out: &'a mut Vec<u8>,
    record_start: usize,
    /// Offset in `out` at which the CIGAR begins.
    cigar_start: usize,
    num_cigar_ops: usize,
    /// Number of reference bases that the alignment covers.
    ref_span_bp: i64,
    num_bases: usize,
    fixed: FixedFields,
}

impl<'a> RecordBuilder<'a> {
    /// Begins a record at the end of `out`.
    pub(crate) fn begin_record(out: &'a mut Vec<u8>, name: &[u8], fixed: FixedFields) -> Result<Self, Error> {
        // An empty name is written as `*` in both SAM and BAM.
        let name = if name.is_empty() { b"*" } else { name };
        let length = u8::try_from(name.len() + 1).map_err(|_| Error::NameTooLong(name.len()))?;
        let record_start = out.len();
        let mut head = [0; FIXED_FIELDS_BYTES];
        let mut write_at = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        write_at(4, &fixed.position.0.to_le_bytes());
        write_at(8, &fixed.position.1.to_le_bytes());
        write_at(12, &[length, fixed.mapq]);
        write_at(18, &fixed.flag.to_le_bytes());
        write_at(24, &fixed.mate_position.0.to_le_bytes());
        write_at(28, &fixed.mate_position.1.to_le_bytes());
        write_at(32, &fixed.template_length.to_le_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(name);
        out.push(0);
        let cigar_start = out.len();
        Ok(RecordBuilder { out, record_start, cigar_start, num_cigar_ops: 0, ref_span_bp: 0, num_bases: 0, fixed })
    }

    /// Appends a CIGAR operation, encoded as length << 4 | operation code.
    pub(crate) fn push_cigar_op(&mut self, operation: u32) {
        self.out.extend_from_slice(&operation.to_le_bytes());
        self.num_cigar_ops += 1;
        // The operations M, D, N, = and X consume the reference.
        if 0b1_1000_1101 >> (operation & 15) & 1 == 1 {
            self.ref_span_bp += i64::from(operation >> 4);
        }
    }

    /// Appends the bases (ASCII); reverse-complemented if `reverse` is set.
    pub(crate) fn append_bases_as_bam_codes(&mut self, seq: &[u8], reverse: bool) {
        self.num_bases = seq.len();
        let at = self.out.len();
        self.out.resize(at + seq.len().div_ceil(2), 0);
        let (whole, last) = self.out[at..].split_at_mut(seq.len() / 2);
        // With an odd number of bases, the last byte of the record holds only one base.
        if reverse {
            for (byte, pair) in whole.iter_mut().zip(seq.rchunks_exact(2)) {
                *byte = COMPLEMENT_CODES[usize::from(pair[1])] << 4 | COMPLEMENT_CODES[usize::from(pair[0])];
            }
            last.iter_mut().for_each(|byte| *byte = COMPLEMENT_CODES[usize::from(seq[0])] << 4);
        } else {
            for (byte, pair) in whole.iter_mut().zip(seq.chunks_exact(2)) {
                *byte =
                    BAM_CODE_BY_BASE_LETTER[usize::from(pair[0])] << 4 | BAM_CODE_BY_BASE_LETTER[usize::from(pair[1])];
            }
            last.iter_mut().for_each(|byte| *byte = BAM_CODE_BY_BASE_LETTER[usize::from(seq[seq.len() - 1])] << 4);
        }
    }

    /// Appends the qualities (Phred + 33); in reverse order if `reverse` is set. If their number differs from that of
    /// the bases, they are written as missing (0xff).
    pub(crate) fn push_qualities(&mut self, qual: &[u8], reverse: bool) {
        if qual.len() != self.num_bases || qual.is_empty() {
            self.out.resize(self.out.len() + self.num_bases, 0xff);
        } else if reverse {
            self.out.extend(qual.iter().rev().map(|q| q.wrapping_sub(33)));
        } else {
            self.out.extend(qual.iter().map(|q| q.wrapping_sub(33)));
        }
    }

    /// Appends an integer tag in the smallest type that holds the value.
    pub(crate) fn push_int_tag(&mut self, tag: &[u8; 2], value: i64) {
        self.out.extend_from_slice(tag);
        push_int_tag_value(self.out, value);
    }

    /// Appends a floating-point tag (type `f`).
    pub(crate) fn push_float_tag(&mut self, tag: &[u8; 2], value: f32) {
        self.out.extend_from_slice(tag);
        self.out.push(b'f');
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a text tag (type `Z`); `write` appends the text itself.
    pub(crate) fn push_text_tag(&mut self, tag: &[u8; 2], write: impl FnOnce(&mut Vec<u8>)) {
        self.out.extend_from_slice(tag);
        self.out.push(b'Z');
        write(self.out);
        self.out.push(0);
    }

    /// The output buffer, to which the caller may append a tag that has no function here.
    pub(crate) fn output_buffer_mut(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Number of bases pushed so far.
    pub(super) fn num_bases(&self) -> usize {
        self.num_bases
    }

    /// Completes the record: sets its size, bin and counts, and moves a CIGAR that is too long into the `CG` tag.
    pub(crate) fn finish_record(self) {
        let RecordBuilder { out, record_start, cigar_start, mut num_cigar_ops, ref_span_bp, num_bases, fixed } = self;
        if num_cigar_ops > MAX_CIGAR_OPS {
            // The real CIGAR goes into the `CG` tag. A placeholder that covers the read and the reference takes its
            // place (section 4.2.2).
            let end = cigar_start + 4 * num_cigar_ops;
            out.extend_from_slice(b"CGBI");
            out.extend_from_slice(&(num_cigar_ops as u32).to_le_bytes());
            out.extend_from_within(cigar_start..end);
            let placeholder = [(num_bases as u32) << 4 | 4, (ref_span_bp as u32) << 4 | 3].map(u32::to_le_bytes);
            out.splice(cigar_start..end, placeholder.concat());
            num_cigar_ops = 2;
        }
        let size = (out.len() - record_start - 4) as u32;
        let mut write_at = |at: usize, bytes: &[u8]| {
            out[record_start + at..record_start + at + bytes.len()].copy_from_slice(bytes);
        };
        write_at(0, &size.to_le_bytes());
        let span = if fixed.flag & 4 != 0 || ref_span_bp == 0 { 1 } else { ref_span_bp };
        write_at(14, &smallest_bin(i64::from(fixed.position.1), span).to_le_bytes());
        write_at(16, &(num_cigar_ops as u16).to_le_bytes());
        write_at(20, &(num_bases as u32).to_le_bytes());
    }
}

/// Appends the type letter and the bytes of an integer tag value. Uses the smallest type that holds the value,
/// unsigned if the value is not negative.
pub(super) fn push_int_tag_value(out: &mut Vec<u8>, value: i64) {
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

/// Number of the smallest BAI bin that contains the `span` bases from `start` on (section 5.3); 4680 for a record
/// without a position.
fn smallest_bin(start: i64, span: i64) -> u16 {
    let end = start + span - 1;
    let level = |shift: u32, first: i64| (start >> shift == end >> shift).then_some(first + (start >> shift));
    let bin = level(14, 4681)
        .or_else(|| level(17, 585))
        .or_else(|| level(20, 73))
        .or_else(|| level(23, 9))
        .or_else(|| level(26, 1));
    bin.unwrap_or(0) as u16
}
