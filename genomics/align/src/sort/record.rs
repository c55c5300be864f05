//! Reads the fields of an encoded BAM record in place (SAM specification, section 4.2).

use genuma_reads::BamTagIter;

use super::Error;

/// Bits of the FLAG field of a SAM record (section 1.4).
pub(crate) mod flag {
    /// The template has two reads.
    pub(crate) const PAIRED: u16 = 0x1;
    /// The read is not mapped.
    pub(crate) const UNMAPPED: u16 = 0x4;
    /// The mate is not mapped.
    pub(crate) const MATE_UNMAPPED: u16 = 0x8;
    /// The read is aligned to the reverse strand.
    pub(crate) const REVERSE: u16 = 0x10;
    /// The mate is aligned to the reverse strand.
    pub(crate) const MATE_REVERSE: u16 = 0x20;
    /// The record is of read 1.
    pub(crate) const READ1: u16 = 0x40;
    /// The record is of read 2.
    pub(crate) const READ2: u16 = 0x80;
    /// A secondary alignment: another possible placement of the read.
    pub(crate) const SECONDARY: u16 = 0x100;
    /// The read failed the quality control of the sequencer.
    pub(crate) const QC_FAIL: u16 = 0x200;
    /// A PCR or optical duplicate.
    pub(crate) const DUPLICATE: u16 = 0x400;
    /// The alignment is of a part of the read whose primary alignment is of another part.
    pub(crate) const SUPPLEMENTARY: u16 = 0x800;
}

/// Bytes of a BAM record before the read name, `block_size` included.
const FIXED_FIELDS_BYTES: usize = 36;

/// An encoded BAM record with its `block_size`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a>(&'a [u8]);

/// A CIGAR operation: length (bp) and operation code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BamCigarOp {
    pub(crate) len: u32,
    /// Operation code: index in `MIDNSHP=X`.
    pub(crate) kind: u8,
}

impl BamCigarOp {
    fn new(encoded: u32) -> BamCigarOp {
        BamCigarOp { len: encoded >> 4, kind: (encoded & 15) as u8 }
    }

    /// Whether the operation consumes the reference: M, D, N, =, X.
    pub(crate) fn consumes_reference(self) -> bool {
        matches!(self.kind, 0 | 2 | 3 | 7 | 8)
    }

    /// Whether the operation is a clip: S or H.
    pub(crate) fn is_clip(self) -> bool {
        matches!(self.kind, 4 | 5)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Length (bytes) of the first record in `bytes`, with its `block_size`.
pub(crate) fn first_record_len(bytes: &[u8]) -> usize {
    4 + u32_at(bytes, 0) as usize
}

/// Sets the duplicate flag of the first record in `bytes`.
pub(crate) fn set_duplicate_flag(bytes: &mut [u8]) {
    bytes[19] |= (flag::DUPLICATE >> 8) as u8;
}

impl<'a> Record<'a> {
    /// The first record in `bytes`. The bytes must have been checked by [`Record::check_and_split_first`].
    pub(crate) fn first_of_checked_bytes(bytes: &'a [u8]) -> Record<'a> {
        Record(&bytes[..first_record_len(bytes)])
    }

    /// Splits the first record off `bytes`, and checks that its fields fit its size.
    pub(crate) fn check_and_split_first(bytes: &'a [u8]) -> Result<(Record<'a>, &'a [u8]), Error> {
        let size = bytes.get(..4).map_or(usize::MAX, first_record_len);
        let cut = Error::Record { what: "is cut short" };
        let (record, rest) = bytes.split_at_checked(size).ok_or(cut)?;
        if size < FIXED_FIELDS_BYTES {
            return Err(Error::Record { what: "is too short for its fixed fields" });
        }
        let record = Record(record);
        let name = usize::from(record.0[12]);
        let sequence = record.num_bases().div_ceil(2).saturating_add(record.num_bases());
        if name == 0 || FIXED_FIELDS_BYTES + name + 4 * record.num_cigar_ops() + sequence > size {
            return Err(Error::Record { what: "is shorter than its name, CIGAR, sequence and qualities" });
        }
        Ok((record, rest))
    }

    /// The encoded record with its `block_size`.
    pub(crate) fn encoded_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Index of the reference sequence; `None` for a record without a position.
    pub(crate) fn sequence_index(self) -> Option<u32> {
        Some(u32_at(self.0, 4)).filter(|&s| s as i32 >= 0)
    }

    /// First aligned base, 0-based; −1 for a record without a position.
    pub(crate) fn position(self) -> i32 {
        u32_at(self.0, 8) as i32
    }

    /// The FLAG field.
    pub(crate) fn flags(self) -> u16 {
        u16_at(self.0, 18)
    }

    /// Whether any bit of `flags` is set.
    pub(crate) fn has_any_flag(self, flags: u16) -> bool {
        self.flags() & flags != 0
    }

    fn num_cigar_ops(self) -> usize {
        usize::from(u16_at(self.0, 16))
    }

    /// Number of bases in the record (without hard-clipped bases).
    pub(crate) fn num_bases(self) -> usize {
        u32_at(self.0, 20) as usize
    }

    /// Appends the bases of the record as letters. `letters` gives the letter of each 4-bit code.
    pub(crate) fn append_bases_as_letters(self, letters: &[u8; 16], out: &mut Vec<u8>) {
        let at = self.cigar_offset() + 4 * self.num_cigar_ops();
        let packed = &self.0[at..at + self.num_bases().div_ceil(2)];
        let end = out.len() + self.num_bases();
        out.extend(packed.iter().flat_map(|b| [letters[usize::from(b >> 4)], letters[usize::from(b & 15)]]));
        out.truncate(end);
    }

    /// The MAPQ field (Phred).
    pub(crate) fn mapping_quality(self) -> u8 {
        self.0[13]
    }

    /// Index of the reference sequence of the mate; −1 without a mate position.
    pub(crate) fn mate_sequence_index(self) -> i32 {
        u32_at(self.0, 24) as i32
    }

    /// First aligned base of the mate, 0-based; −1 without a mate position.
    pub(crate) fn mate_position(self) -> i32 {
        u32_at(self.0, 28) as i32
    }

    /// Signed template length (TLEN).
    pub(crate) fn template_length(self) -> i32 {
        u32_at(self.0, 32) as i32
    }

    /// Read name without the NUL at its end.
    pub(crate) fn name(self) -> &'a [u8] {
        &self.0[FIXED_FIELDS_BYTES..FIXED_FIELDS_BYTES + usize::from(self.0[12]) - 1]
    }

    fn cigar_offset(self) -> usize {
        FIXED_FIELDS_BYTES + usize::from(self.0[12])
    }

    /// Phred qualities without offset, one for each base; all 255 if the qualities are missing.
    pub(crate) fn qualities(self) -> &'a [u8] {
        let at = self.cigar_offset() + 4 * self.num_cigar_ops() + self.num_bases().div_ceil(2);
        &self.0[at..at + self.num_bases()]
    }

    /// Whether the CIGAR is in the `CG` tag because it is too long for its field (section 4.2.2).
    pub(crate) fn has_cigar_in_cg_tag(self) -> bool {
        self.long_cigar().is_some()
    }

    fn long_cigar(self) -> Option<&'a [u8]> {
        let at = self.cigar_offset();
        let is_placeholder = self.num_cigar_ops() == 2 && self.0[at] & 15 == 4 && self.0[at + 4] & 15 == 3;
        if !is_placeholder {
            return None;
        }
        self.typed_tag_value(*b"CG").filter(|t| t.starts_with(b"BI")).and_then(|t| t.get(6..))
    }

    /// The CIGAR operations, from the `CG` tag if the CIGAR was too long for its field.
    pub(crate) fn cigar(self) -> impl DoubleEndedIterator<Item = BamCigarOp> + Clone + 'a {
        let at = self.cigar_offset();
        let words = self.long_cigar().unwrap_or(&self.0[at..at + 4 * self.num_cigar_ops()]);
        words.chunks_exact(4).map(|w| BamCigarOp::new(u32_at(w, 0)))
    }

    /// Number of reference bases that the alignment covers.
    pub(crate) fn ref_span_bp(self) -> u64 {
        let at = self.cigar_offset();
        let words = self.0[at..at + 4 * self.num_cigar_ops()].chunks_exact(4);
        words
            .map(|w| BamCigarOp::new(u32_at(w, 0)))
            .filter(|op| op.consumes_reference())
            .map(|op| u64::from(op.len))
            .sum()
    }

    /// Type and value of the tag `name` as encoded; `None` if the record lacks the tag, or if this or an earlier tag is
    /// damaged.
    pub(crate) fn typed_tag_value(self, name: [u8; 2]) -> Option<&'a [u8]> {
        self.tags().map_while(|tag| tag).find(|(tag, _)| *tag == name).map(|(_, value)| value)
    }

    /// All tags, each with its type and value as encoded. The last item is `None` if a tag is damaged; the tags after
    /// it are lost.
    pub(crate) fn tags(self) -> impl Iterator<Item = Option<([u8; 2], &'a [u8])>> {
        let at = self.cigar_offset() + 4 * self.num_cigar_ops() + self.num_bases().div_ceil(2) + self.num_bases();
        BamTagIter::from_tag_bytes(&self.0[at..]).map(|tag| tag.ok().map(|tag| (tag.name(), tag.typed_value())))
    }

    /// Sort key of `samtools sort`: reference sequence, position, strand. Records without a reference sequence come
    /// last.
    pub(crate) fn sort_key(self) -> u64 {
        let sequence = u64::from(u32_at(self.0, 4)) & 0x7fff_ffff;
        let position = u64::from((self.position() as u32).wrapping_add(1));
        sequence << 33 | position << 1 | u64::from(self.has_any_flag(flag::REVERSE))
    }
}
