//! Checks of FASTQ records, of read names, and of mates.

use std::path::Path;

use crate::error::{ByteForDisplay, Error, RecordFault};
use crate::inline_umi::UmiExtractor;
use crate::pair_batch::{Mate, PairBatch};

use super::block::FastqBlock;

/// Maximum length of a read name in SAM, in bytes (SAM specification, section 1.4).
const MAX_NAME_BYTES: usize = 254;

/// The fields of a FASTQ record whose format has been checked.
pub(crate) struct FastqRecord<'a> {
    /// The header line without its first byte (`@` or `>`).
    pub(crate) header: &'a [u8],
    /// First word of the header.
    pub(crate) first_word: &'a [u8],
    /// First word without a final `/1` or `/2`.
    pub(crate) name: &'a [u8],
    /// `1` or `2` if the header says which read of the template the record is; otherwise `None`.
    pub(crate) read_number: Option<u8>,
    /// The rest of the header line after the first word and one blank.
    pub(crate) comment: &'a [u8],
    pub(crate) mate: Mate<'a>,
}

/// Where a record is: its block, its index in the block, and the path of the file.
#[derive(Clone, Copy)]
pub(crate) struct FastqRecordPosition<'a> {
    pub(crate) block: &'a FastqBlock,
    pub(crate) path: &'a Path,
    pub(crate) index: usize,
}

impl<'a> FastqRecordPosition<'a> {
    /// Creates the error for a fault in this record, with file and record number.
    pub(crate) fn error_in_record(&self, fault: RecordFault) -> Error {
        Error::error_in_record(self.path, self.block.num_records_before + self.index as u64 + 1, fault)
    }

    /// Whether the record is the last of the file and its last line has no line end, so that the file may be
    /// truncated.
    fn may_be_truncated(&self) -> bool {
        let FastqBlock { lacks_final_newline: unterminated, used_bytes: filled, .. } = *self.block;
        unterminated && self.index + 1 == self.block.num_records() && self.block.end_of_last_whole_record() == filled
    }

    /// Checks the record as far as the mate is not needed: lines, lengths, bases and qualities, but not the name.
    fn check_record(&self) -> Result<(), Error> {
        let [header, seq, plus, qual] = self.block.record_lines(self.index);
        let first = |line: &[u8]| ByteForDisplay(line.first().copied().unwrap_or(b'\n'));
        if !header.starts_with(&[self.block.header_mark]) {
            return Err(self.error_in_record(RecordFault::MissingHeaderMark(first(header))));
        }
        if self.block.header_mark == b'@' {
            if !plus.starts_with(b"+") {
                if !plus.is_empty() && plus.iter().all(|&b| is_read_base(b)) {
                    return Err(self.error_in_record(RecordFault::SeveralSequenceLines));
                }
                return Err(self.error_in_record(RecordFault::MissingPlusLine(first(plus))));
            }
            if seq.len() != qual.len() {
                if self.may_be_truncated() && qual.len() < seq.len() {
                    return Err(self.error_in_record(RecordFault::Truncated));
                }
                return Err(self.error_in_record(RecordFault::LengthMismatch { seq: seq.len(), qual: qual.len() }));
            }
        }
        if !seq.iter().fold(true, |ok, &b| ok & is_upper_case_acgtn(b))
            && let Some(&b) = seq.iter().find(|&&b| !is_read_base(b))
        {
            return Err(self.error_in_record(RecordFault::InvalidBase(ByteForDisplay(b))));
        }
        if !qual.iter().fold(true, |ok, &q| ok & is_graphic_ascii(q)) {
            let bad = qual.iter().find(|&&q| !is_graphic_ascii(q)).map_or(0, |&q| q);
            return Err(self.error_in_record(RecordFault::InvalidQuality(ByteForDisplay(bad))));
        }
        Ok(())
    }

    /// Checks that the name is valid in SAM.
    fn check_name(&self) -> Result<(), Error> {
        let FastqRecord { first_word: word, name, .. } = self.split_into_fields();
        if name.is_empty() {
            return Err(self.error_in_record(RecordFault::MissingName));
        }
        if word.len() > MAX_NAME_BYTES {
            return Err(
                self.error_in_record(RecordFault::NameTooLong { name_bytes: word.len(), max_bytes: MAX_NAME_BYTES })
            );
        }
        match word.iter().find(|&&b| !is_graphic_ascii(b)) {
            Some(&b) => Err(self.error_in_record(RecordFault::InvalidNameByte(ByteForDisplay(b)))),
            None => Ok(()),
        }
    }

    /// Splits a record into its fields. The record must be valid.
    pub(crate) fn split_into_fields(&self) -> FastqRecord<'a> {
        let [header, seq, _, qual] = self.block.record_lines(self.index);
        let header = header.get(1..).unwrap_or_default();
        let (word, comment) = split_header(header);
        let (name, number) = parse_template_name(word, comment);
        FastqRecord { header, first_word: word, name, read_number: number, comment, mate: Mate { seq, qual } }
    }

    fn check_and_parse(&self) -> Result<FastqRecord<'a>, Error> {
        self.check_record()?;
        Ok(self.split_into_fields())
    }
}

/// Whether the byte is an upper-case A, C, G, T or N, as in nearly all reads. Written without branches, so that the
/// compiler can vectorise it.
pub(super) fn is_upper_case_acgtn(b: u8) -> bool {
    (b == b'A') | (b == b'C') | (b == b'G') | (b == b'T') | (b == b'N')
}

const IUPAC: [bool; 256] = {
    let mut table = [false; 256];
    let letters = b"ACGTUNRYSWKMBDHV";
    let mut i = 0;
    while i < letters.len() {
        table[letters[i] as usize] = true;
        table[letters[i].to_ascii_lowercase() as usize] = true;
        i += 1;
    }
    table
};

/// Whether a byte is an IUPAC base code in either case.
pub(crate) fn is_iupac(b: u8) -> bool {
    IUPAC[b as usize]
}

/// Whether a byte may be in the sequence of a read: an IUPAC base code, or `.`, as early sequencers wrote N.
pub(crate) fn is_read_base(b: u8) -> bool {
    is_iupac(b) || b == b'.'
}

/// Whether a byte is in `!`..=`~`, the range of quality bytes and of bytes in names.
pub(crate) fn is_graphic_ascii(q: u8) -> bool {
    q.wrapping_sub(b'!') <= b'~' - b'!'
}

/// Splits a header, without its first byte, into its first word and the rest after one blank.
fn split_header(header: &[u8]) -> (&[u8], &[u8]) {
    let end = header.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(header.len());
    let (word, rest) = header.split_at(end);
    (word, rest.get(1..).unwrap_or_default())
}

/// Template name of a header without its first byte: the first word without a final `/1` or `/2`.
pub(crate) fn template_name(header: &[u8]) -> &[u8] {
    let (word, comment) = split_header(header);
    parse_template_name(word, comment).0
}

/// Splits a header into template name and read number. The header is `name/1`, `name 1:N:0:ACGT` (Casava 1.8), or only
/// a name.
fn parse_template_name<'a>(word: &'a [u8], comment: &[u8]) -> (&'a [u8], Option<u8>) {
    match (word, comment) {
        ([name @ .., b'/', number @ (b'1' | b'2')], _) => (name, Some(*number)),
        (_, [number @ (b'1' | b'2'), b':', ..]) => (word, Some(*number)),
        _ => (word, None),
    }
}

/// Pairs of suffixes by which the names of mates may differ, in addition to `/1` and `/2`: those of fastq-dump and
/// other converters, and those of libraries with three reads. A suffix is recognised only by comparing both names.
const MATE_SUFFIXES: [[&[u8]; 2]; 3] = [[b".1", b".2"], [b"_1", b"_2"], [b"", b"/3"]];

/// The template name of two mates whose names differ only in a pair of suffixes of [`MATE_SUFFIXES`]; otherwise
/// `None`.
fn name_without_mate_suffix<'a>(one: &FastqRecord<'a>, two: &FastqRecord<'_>) -> Option<&'a [u8]> {
    // A name that ends in `/3` is compared with one that had `/1`.
    MATE_SUFFIXES.iter().filter(|[first, _]| !first.is_empty() || one.read_number == Some(b'1')).find_map(
        |[first, second]| {
            let name = one.name.strip_suffix(*first)?;
            (two.name.strip_suffix(*second)? == name && !name.is_empty()).then_some(name)
        },
    )
}

/// Checks that two records are read 1 and read 2 of one template: their names are equal and their read numbers, if both
/// have one, are 1 and 2; or their names differ only in a pair of suffixes of [`MATE_SUFFIXES`]. Returns the template
/// name.
pub(crate) fn check_mates_and_return_name<'a>(
    positions: [FastqRecordPosition<'_>; 2],
    [one, two]: [&FastqRecord<'a>; 2],
) -> Result<&'a [u8], Error> {
    let text = |s: &[u8]| String::from_utf8_lossy(s).into_owned();
    let mate_path = || positions[1].path.to_path_buf();
    if one.name != two.name {
        if let Some(name) = name_without_mate_suffix(one, two) {
            return Ok(name);
        }
        let (name, mate) = (text(one.name), text(two.name));
        return Err(positions[0].error_in_record(RecordFault::MateNameMismatch { name, mate, mate_path: mate_path() }));
    }
    if let (Some(number), true) = (one.read_number, one.read_number == two.read_number) {
        let (name, number) = (text(one.name), number as char);
        return Err(positions[0].error_in_record(RecordFault::DuplicateMateNumber {
            name,
            number,
            mate_path: mate_path(),
        }));
    }
    if (one.read_number, two.read_number) == (Some(b'2'), Some(b'1')) {
        let fault = RecordFault::ExchangedMates { name: text(one.name), mate_path: mate_path() };
        return Err(positions[0].error_in_record(fault));
    }
    Ok(one.name)
}

impl FastqBlock {
    /// Checks the format and the name of each record. Removes the first invalid record and all later ones from the
    /// block, and stores the error.
    pub(crate) fn truncate_at_first_invalid_record(&mut self, path: &Path) {
        for index in 0..self.num_records() {
            let place = FastqRecordPosition { block: self, path, index };
            if let Err(fault) = place.check_record().and_then(|()| place.check_name()) {
                self.truncate_records(index);
                (self.has_more, self.fault) = (false, Some(fault));
                return;
            }
        }
    }
}

/// Checks the records of two blocks, one of each mate file, and appends them to `batch` as pairs. `umis` moves UMIs to
/// the names.
pub(crate) fn append_pairs_of_two_files(
    blocks: &mut [FastqBlock; 2],
    paths: [&Path; 2],
    mut umis: Option<&mut UmiExtractor<'_>>,
    batch: &mut PairBatch,
) -> Result<(), Error> {
    let records = [0, 1].map(|mate| blocks[mate].num_records());
    let both = records[0].min(records[1]);
    for index in 0..both {
        let positions = [0, 1].map(|mate| FastqRecordPosition { block: &blocks[mate], path: paths[mate], index });
        append_pair(positions, umis.as_deref_mut(), batch)?;
    }
    if let Some(fault) = blocks.iter_mut().find_map(|block| block.fault.take()) {
        return Err(fault);
    }
    if records[0] == records[1] {
        return Ok(());
    }
    // Only the last block of a file has fewer records than requested, so the file with the shorter block ends here.
    let (short, long) = if records[0] < records[1] { (0, 1) } else { (1, 0) };
    Err(Error::MatesMissing {
        shorter_path: paths[short].into(),
        records: blocks[short].num_records_before + both as u64,
        slice_start: None,
        longer_path: paths[long].into(),
    })
}

/// Checks the records of a block of an interleaved file and appends them to `batch` as pairs. `umis` moves UMIs to the
/// names.
pub(crate) fn append_interleaved_pairs(
    block: &mut FastqBlock,
    path: &Path,
    mut umis: Option<&mut UmiExtractor<'_>>,
    batch: &mut PairBatch,
) -> Result<(), Error> {
    let records = block.num_records();
    for pair in 0..records / 2 {
        let positions = [2 * pair, 2 * pair + 1].map(|index| FastqRecordPosition { block, path, index });
        append_pair(positions, umis.as_deref_mut(), batch)?;
    }
    let mut alone = None;
    if records % 2 == 1 {
        let last = FastqRecordPosition { block, path, index: records - 1 };
        last.check_and_parse()?;
        alone = Some(last.error_in_record(RecordFault::MissingMate));
    }
    block.fault.take().or(alone).map_or(Ok(()), Err)
}

/// Checks the records of a block of unpaired reads and appends each to `batch`, with an empty read as its mate. `umis`
/// moves UMIs to the names.
pub(crate) fn append_single_reads(
    block: &mut FastqBlock,
    path: &Path,
    mut umis: Option<&mut UmiExtractor<'_>>,
    batch: &mut PairBatch,
) -> Result<(), Error> {
    for index in 0..block.num_records() {
        let record = FastqRecordPosition { block, path, index }.check_and_parse()?;
        match &mut umis {
            Some(umis) => umis.extract_umi_and_push_pair(record.name, [Some(record.mate), None], batch),
            None => batch.push(record.name, [record.mate, Mate::WITHOUT_BASES]),
        }
    }
    block.fault.take().map_or(Ok(()), Err)
}

fn append_pair(
    positions: [FastqRecordPosition<'_>; 2],
    umis: Option<&mut UmiExtractor<'_>>,
    batch: &mut PairBatch,
) -> Result<(), Error> {
    let [one, two] = [positions[0].check_and_parse()?, positions[1].check_and_parse()?];
    let name = check_mates_and_return_name(positions, [&one, &two])?;
    match umis {
        Some(umis) => umis.extract_umi_and_push_pair(name, [Some(one.mate), Some(two.mate)], batch),
        None => batch.push(name, [one.mate, two.mate]),
    }
    Ok(())
}
