//! Record buffers: consecutive whole records of one BAM, CRAM or BINSEQ file, and the location of the reads in them.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::dna::complement_iupac;
use crate::error::{Error, RecordFault};
use crate::fastq::template_name;

use crate::record_counts::RecordCounts;
use crate::tags::{BamTagIter, CarriedTags, RecordStrandAndClipping};
use crate::umi::UmiOrMoleculeId;

/// Maximum length of a read name in SAM, in bytes (SAM specification, section 1.4).
const MAX_NAME_BYTES: usize = 254;
/// Maximum Phred quality that FASTQ can represent.
pub(super) const MAX_QUALITY: u8 = b'~' - b'!';

/// Flags of a record (SAM specification, section 1.4).
pub(super) mod flag {
    pub const PAIRED: u16 = 0x1;
    pub const REVERSE: u16 = 0x10;
    pub(crate) const FIRST_IN_TEMPLATE: u16 = 0x40;
    pub(crate) const LAST_IN_TEMPLATE: u16 = 0x80;
    pub const SECONDARY: u16 = 0x100;
    pub const SUPPLEMENTARY: u16 = 0x800;
}

/// Which read of its template a read is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReadNumber {
    First,
    Second,
    /// A read without a mate.
    Unpaired,
}

impl ReadNumber {
    fn from_flags(flags: u16) -> ReadNumber {
        match (flags & flag::PAIRED, flags & (flag::FIRST_IN_TEMPLATE | flag::LAST_IN_TEMPLATE)) {
            (flag::PAIRED, flag::FIRST_IN_TEMPLATE) => ReadNumber::First,
            (flag::PAIRED, flag::LAST_IN_TEMPLATE) => ReadNumber::Second,
            _ => ReadNumber::Unpaired,
        }
    }
}

/// How bases and qualities are stored in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SequenceEncoding {
    /// As in BAM: two bases per byte, qualities without offset. The bases are on the strand of the record.
    Bam(RecordStrandAndClipping),
    /// As in FASTQ: one byte per base, qualities with offset 33, on the sequenced strand.
    Ascii,
}

/// The fields of a record that describe a read; bases and qualities are on the strand of the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct SamFields<'a> {
    pub(super) flags: u16,
    pub(super) name: &'a [u8],
    /// Whether the record lacks hard-clipped bases of the read.
    pub(super) is_hard_clipped: bool,
    /// Bases as IUPAC codes (ASCII).
    pub(super) seq: &'a [u8],
    /// Qualities without offset; empty, or all 0xff, if there are none.
    pub(super) qual: &'a [u8],
    pub(super) umi: UmiOrMoleculeId<'a>,
    /// The carried tags, encoded as in BAM, with values in the order of sequencing.
    pub(super) tags: &'a [u8],
}

/// Location in [`RecordBuffer::bytes`] of the value of a [`UmiOrMoleculeId`]: start and length.
#[derive(Debug, Clone, Copy)]
enum UmiLocation {
    Missing,
    Bases(u32, u8),
    MoleculeId(u32, u8),
}

impl UmiLocation {
    /// Location of the value of `umi`, which starts at byte `at`.
    fn new(umi: UmiOrMoleculeId<'_>, at: u32) -> UmiLocation {
        match umi {
            UmiOrMoleculeId::Missing => UmiLocation::Missing,
            // The value is shorter than a name.
            UmiOrMoleculeId::Bases(value) => UmiLocation::Bases(at, value.len() as u8),
            UmiOrMoleculeId::MoleculeId(value) => UmiLocation::MoleculeId(at, value.len() as u8),
        }
    }
}

/// Location of a read in [`RecordBuffer::bytes`].
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadLocation {
    /// Index in the buffer of the record of this read, from 0.
    pub(super) record: u32,
    pub(super) read_number: ReadNumber,
    encoding: SequenceEncoding,
    /// Whether the read has no qualities.
    pub(super) lacks_qualities: bool,
    name: (u32, u8),
    umi: UmiLocation,
    bases: u32,
    seq: u32,
    qual: u32,
    /// Start and end of the tags; empty if no tags are carried.
    tags: (u32, u32),
}

/// Consecutive whole records of one BAM, CRAM or BINSEQ file, and the reads among them.
#[derive(Debug, Default)]
pub(crate) struct RecordBuffer {
    /// Records encoded as in BAM, each with its length before it; for CRAM and BINSEQ, the fields of the reads.
    pub(super) bytes: Vec<u8>,
    /// Number of bytes of `bytes` that are in use. The rest is allocated memory for reuse.
    pub(super) used_bytes: usize,
    /// Number of records of the file before the buffer.
    pub(super) num_records_before: u64,
    pub(super) reads: Vec<ReadLocation>,
    /// Whether UMIs are read from the tags `RX` and `MI`.
    pub(super) uses_umi_tags: bool,
    /// The tags that are carried with the reads; `None` for no tags.
    pub(super) carried_tags: Option<Arc<CarriedTags>>,
}

/// The two bases in a byte of BAM bases, in the order of sequencing, for records on the forward and on the reverse
/// strand.
const BASES_OF_BYTE: [[[u8; 2]; 256]; 2] = {
    let (here, there) = (b"=ACMGRSVTWYHKDBN", b"=TGKCYSBAWRDMHVN");
    let mut letters = [[[0; 2]; 256]; 2];
    let mut byte = 0;
    while byte < 256 {
        letters[0][byte] = [here[byte >> 4], here[byte & 15]];
        letters[1][byte] = [there[byte & 15], there[byte >> 4]];
        byte += 1;
    }
    letters
};

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Name of a record without a name (SAM specification, section 1.4). Its read is named by the number of the record.
const NO_NAME: &[u8] = b"*";

/// Number of bytes of a BAM record before its name, without its length field.
pub(super) const BAM_FIXED_FIELDS_BYTES: usize = 32;

impl RecordBuffer {
    /// Finds the reads among the BAM records in the buffer, and counts the records.
    ///
    /// # Errors
    /// The first record that violates the specification.
    pub(super) fn find_reads(&mut self, path: &Path, counts: &mut RecordCounts) -> Result<(), Error> {
        self.reads.clear();
        let (mut at, mut record) = (0, 0);
        let mut names_end = self.used_bytes;
        while at < self.used_bytes {
            // The buffer has only whole records.
            let end = at + 4 + u32_at(&self.bytes, at) as usize;
            let found = self.parse_read(at + 4..end, record, counts);
            let found =
                found.map_err(|fault| Error::error_in_record(path, self.record_number_in_file(record), fault))?;
            if let Some(mut read) = found {
                if self.name(&read) == NO_NAME {
                    read.name = self.append_record_number(record, &mut names_end);
                }
                self.reads.push(read);
            }
            (at, record) = (end, record + 1);
        }
        counts.records += u64::from(record);
        Ok(())
    }

    /// Writes the number of a record to `bytes` from byte `end` on, which is after the records. Returns its location,
    /// and moves `end` behind it.
    fn append_record_number(&mut self, record: u32, end: &mut usize) -> (u32, u8) {
        let (number, start) = (self.record_number_in_file(record).to_string(), *end);
        self.bytes.truncate(start);
        self.bytes.extend_from_slice(number.as_bytes());
        *end = self.bytes.len();
        (start as u32, number.len() as u8)
    }

    /// Number of bytes of the records in the buffer.
    pub(super) fn len_bytes(&self) -> usize {
        self.used_bytes.max(if self.used_bytes == 0 { self.bytes.len() } else { 0 })
    }

    /// Number of a record in its file, counted from 1.
    pub(super) fn record_number_in_file(&self, record: u32) -> u64 {
        self.num_records_before + u64::from(record) + 1
    }

    /// Parses one record; `None` if it is secondary or supplementary.
    fn parse_read(
        &self,
        at: Range<usize>,
        record: u32,
        counts: &mut RecordCounts,
    ) -> Result<Option<ReadLocation>, RecordFault> {
        let (start, bytes) = (at.start, &self.bytes[at]);
        let (name_bytes, operations) = (usize::from(bytes[8]), usize::from(u16_at(bytes, 12)));
        let (flags, bases) = (u16_at(bytes, 14), u32_at(bytes, 16));
        let cigar = BAM_FIXED_FIELDS_BYTES + name_bytes;
        let seq = cigar + 4 * operations;
        let qual = seq.saturating_add((bases as usize).div_ceil(2));
        if qual.saturating_add(bases as usize) > bytes.len() {
            return Err(RecordFault::RecordCorrupt("its fields are longer than the record"));
        }
        let Some((0, name)) = bytes[BAM_FIXED_FIELDS_BYTES..cigar].split_last() else {
            return Err(RecordFault::RecordCorrupt("its name is not terminated"));
        };
        let operation = |i: usize| bytes[cigar + 4 * i] & 15;
        const HARD_CLIP: u8 = 5;
        let clipped = operations > 0 && [operation(0), operation(operations - 1)].contains(&HARD_CLIP);
        let quals = &bytes[qual..][..bases as usize];
        let tags = qual + bases as usize;
        let [rx, mi] = find_umi_tags(bytes, if self.uses_umi_tags { tags } else { bytes.len() })?;
        let carried = if self.carried_tags.is_some() { tags..bytes.len() } else { 0..0 };
        self.carried_tags.as_ref().map_or(Ok(()), |tags| tags.check_tags_of_record(&bytes[carried.clone()]))?;
        let value = |tag: &Option<Range<usize>>| tag.clone().map(|range| &bytes[range]);
        let umi = UmiOrMoleculeId::choose_from_rx_and_mi(value(&rx), value(&mi));
        let Some(PrimaryRead { name, read_number: which, lacks_qualities: plain }) =
            classify_record(flags, name, clipped, bases as usize, quals, umi, counts)?
        else {
            return Ok(None);
        };
        let place = |at: usize| (start + at) as u32;
        let umi_tag = if matches!(umi, UmiOrMoleculeId::MoleculeId(_)) { mi } else { rx };
        Ok(Some(ReadLocation {
            record,
            read_number: which,
            encoding: SequenceEncoding::Bam(RecordStrandAndClipping {
                is_reverse: flags & flag::REVERSE != 0,
                is_hard_clipped: clipped,
            }),
            lacks_qualities: plain,
            name: (place(BAM_FIXED_FIELDS_BYTES), name.len() as u8),
            umi: UmiLocation::new(umi, place(umi_tag.map_or(0, |range| range.start))),
            bases,
            seq: place(seq),
            qual: place(qual),
            tags: (place(carried.start), place(carried.end)),
        }))
    }

    /// Removes all records. `before` is the number of records of the file before those that will be added next.
    pub(super) fn reset(&mut self, before: u64) {
        (self.used_bytes, self.num_records_before) = (0, before);
        self.bytes.clear();
        self.reads.clear();
    }

    /// Appends the read of a record, on the sequenced strand, unless the record is secondary or supplementary.
    ///
    /// # Errors
    /// The record violates the specification.
    pub(super) fn push_read(
        &mut self,
        record: u32,
        of: SamFields<'_>,
        counts: &mut RecordCounts,
    ) -> Result<(), RecordFault> {
        let SamFields { flags, name, is_hard_clipped: clipped, seq, qual, umi, tags } = of;
        if !qual.is_empty() && qual.len() != seq.len() {
            return Err(RecordFault::LengthMismatch { seq: seq.len(), qual: qual.len() });
        }
        let Some(PrimaryRead { name, read_number: which, lacks_qualities: plain }) =
            classify_record(flags, name, clipped, seq.len(), qual, umi, counts)?
        else {
            return Ok(());
        };
        let number = (name == NO_NAME).then(|| self.record_number_in_file(record).to_string());
        let name = number.as_ref().map_or(name, |number| number.as_bytes());
        let bytes = &mut self.bytes;
        let mut place = |letters: &mut dyn Iterator<Item = u8>| {
            let at = bytes.len() as u32;
            bytes.extend(letters);
            at
        };
        let name_at = place(&mut name.iter().copied());
        let umi = UmiLocation::new(umi, place(&mut umi.read_name_suffix()[1].iter().copied()));
        let tags_at = place(&mut tags.iter().copied());
        let scores = qual.iter().map(|score| score.wrapping_add(b'!'));
        let (seq_at, qual_at) = if flags & flag::REVERSE != 0 {
            (place(&mut seq.iter().rev().map(|&base| complement_iupac(base))), place(&mut scores.rev()))
        } else {
            (place(&mut seq.iter().copied()), place(&mut { scores }))
        };
        let (name, bases) = ((name_at, name.len() as u8), seq.len() as u32);
        self.reads.push(ReadLocation {
            record,
            read_number: which,
            encoding: SequenceEncoding::Ascii,
            lacks_qualities: plain,
            name,
            umi,
            bases,
            seq: seq_at,
            qual: qual_at,
            tags: (tags_at, tags_at + tags.len() as u32),
        });
        Ok(())
    }

    /// Name of the template of a read.
    pub(super) fn name(&self, read: &ReadLocation) -> &[u8] {
        &self.bytes[read.name.0 as usize..][..usize::from(read.name.1)]
    }

    /// UMI or molecule identifier of a read, from the tags of its record.
    pub(super) fn umi(&self, read: &ReadLocation) -> UmiOrMoleculeId<'_> {
        let value = |at: u32, len: u8| &self.bytes[at as usize..][..usize::from(len)];
        match read.umi {
            UmiLocation::Missing => UmiOrMoleculeId::Missing,
            UmiLocation::Bases(at, len) => UmiOrMoleculeId::Bases(value(at, len)),
            UmiLocation::MoleculeId(at, len) => UmiOrMoleculeId::MoleculeId(value(at, len)),
        }
    }

    /// Appends the carried tags of a read, with values in the order of sequencing.
    pub(super) fn append_carried_tags(&self, read: &ReadLocation, out: &mut Vec<u8>) {
        let Some(carried) = &self.carried_tags else { return };
        let tags = &self.bytes[read.tags.0 as usize..read.tags.1 as usize];
        match read.encoding {
            // Valid: checked when the read was found.
            SequenceEncoding::Bam(strand) => carried.append_tags_as_sequenced(tags, strand, out),
            SequenceEncoding::Ascii => out.extend_from_slice(tags),
        }
    }

    /// Replaces `seq` and `qual` by the bases and qualities of a read as in FASTQ; `qual` is empty if the read has no
    /// qualities.
    pub(super) fn decode_read(&self, read: &ReadLocation, seq: &mut Vec<u8>, qual: &mut Vec<u8>) {
        let bases = read.bases as usize;
        let SequenceEncoding::Bam(RecordStrandAndClipping { is_reverse: reverse, .. }) = read.encoding else {
            let letters = |at: u32, n: usize| &self.bytes[at as usize..][..n];
            seq.clear();
            qual.clear();
            seq.extend_from_slice(letters(read.seq, bases));
            qual.extend_from_slice(letters(read.qual, if read.lacks_qualities { 0 } else { bases }));
            return;
        };
        let packed = &self.bytes[read.seq as usize..][..bases.div_ceil(2)];
        let quals = &self.bytes[read.qual as usize..][..if read.lacks_qualities { 0 } else { bases }];
        seq.clear();
        qual.clear();
        if reverse {
            // With an odd number of bases, the second half of the last byte is unused.
            let skip = usize::from(bases % 2 == 1);
            let letters = packed.iter().rev().map(|&two| BASES_OF_BYTE[1][usize::from(two)]);
            seq.extend(letters.flatten().skip(skip));
            qual.extend(quals.iter().rev().map(|&qual| qual + b'!'));
        } else {
            seq.extend(packed.iter().flat_map(|&two| BASES_OF_BYTE[0][usize::from(two)]));
            seq.truncate(bases);
            qual.extend(quals.iter().map(|&qual| qual + b'!'));
        }
    }

    /// The error for a fault in this read, with the path and the number of its record.
    pub(super) fn error_in_read(&self, read: &ReadLocation, path: &Path, fault: RecordFault) -> Error {
        Error::error_in_record(path, self.record_number_in_file(read.record), fault)
    }
}

/// Name and read number of a primary record, and whether it lacks qualities.
struct PrimaryRead<'a> {
    name: &'a [u8],
    read_number: ReadNumber,
    lacks_qualities: bool,
}

/// Counts a record by kind. Returns name ([`NO_NAME`] if it has none) and read number of a primary record; `None` for
/// other records.
fn classify_record<'a>(
    flags: u16,
    name: &'a [u8],
    clipped: bool,
    bases: usize,
    quals: &[u8],
    umi: UmiOrMoleculeId<'_>,
    counts: &mut RecordCounts,
) -> Result<Option<PrimaryRead<'a>>, RecordFault> {
    if flags & flag::SECONDARY != 0 {
        counts.secondary += 1;
        return Ok(None);
    }
    if flags & flag::SUPPLEMENTARY != 0 {
        counts.supplementary += 1;
        return Ok(None);
    }
    // Mates are found by their name: a record without one is an unpaired read.
    let which = if name == NO_NAME { ReadNumber::Unpaired } else { ReadNumber::from_flags(flags) };
    // As in FASTQ: an unpaired read keeps `/1` in its name.
    let name = if which == ReadNumber::Unpaired { name } else { template_name(name) };
    match name {
        b"" => return Err(RecordFault::MissingName),
        name => {
            let name_bytes = name.len() + umi.read_name_suffix().map(<[u8]>::len).iter().sum::<usize>();
            if name_bytes > MAX_NAME_BYTES {
                return Err(RecordFault::NameTooLong { name_bytes, max_bytes: MAX_NAME_BYTES });
            }
        }
    }
    counts.with_umi += u64::from(umi != UmiOrMoleculeId::Missing);
    if clipped {
        counts.hard_clipped.add_read(name);
    }
    if which == ReadNumber::Unpaired {
        counts.unpaired += 1;
    }
    if bases == 0 {
        counts.without_bases.add_read(name);
    }
    let highest = quals.iter().fold(0, |highest, &qual| qual.max(highest));
    // Without qualities all bytes are 0xff (SAM specification, section 4.2).
    let plain = bases > 0 && (quals.is_empty() || (highest == 0xff && quals[0] == 0xff));
    if !plain && highest > MAX_QUALITY {
        return Err(RecordFault::RecordCorrupt("a quality is higher than 93"));
    }
    Ok(Some(PrimaryRead { name, read_number: which, lacks_qualities: plain }))
}

/// Byte ranges of the values of the tags `RX` and `MI` in a BAM record whose tags start at byte `at`; `None` for a
/// missing tag.
fn find_umi_tags(record: &[u8], mut at: usize) -> Result<[Option<Range<usize>>; 2], RecordFault> {
    let (mut rx, mut mi) = (None, None);
    for tag in BamTagIter::from_tag_bytes(&record[at..]) {
        let tag = tag?;
        let name_and_type = tag.name_and_type();
        // Without name and type, and without the zero byte at the end.
        let value = at + name_and_type.len()..at + tag.len_bytes() - 1;
        at += tag.len_bytes();
        match &name_and_type {
            b"RXZ" => rx = Some(value),
            b"MIZ" => mi = Some(value),
            _ => {}
        }
    }
    Ok([rx, mi])
}

/// Checks that a sequence has no `=`, which means "same base as the reference": the reference is not available here.
pub(super) fn check_no_equals_sign(seq: &[u8]) -> Result<(), RecordFault> {
    if seq.contains(&b'=') { Err(RecordFault::BaseOfReference) } else { Ok(()) }
}
