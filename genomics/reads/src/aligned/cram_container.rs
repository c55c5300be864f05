//! Layout of CRAM containers (CRAM format specification 3, sections 7 to 10): reads a container as bytes, and checks the
//! sizes and offsets in its headers before the decoder trusts them. Also reads what the decoder does not provide: the
//! MD5 sums of reference sequences, and which records store their qualities.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::ops::Range;

use crate::error::FileFault;
use crate::input_file::read_exactly;

use super::cram_block::{Block, CRC_BYTES, Fields, invalid, push_crc, push_itf8};
use super::cram_version::{CramVersion, FILE_DEFINITION_BYTES};

/// Number of records that any slice may have. A larger slice may have [`MAX_RECORDS_PER_BYTE`] records per byte of its
/// decompressed blocks: a record takes less than a byte only if it has no name, qualities and bases. Chosen.
const MIN_RECORD_LIMIT: u64 = 1 << 16;
/// Maximum number of records per byte of the decompressed blocks of a slice.
const MAX_RECORDS_PER_BYTE: u64 = 8;

/// Number of bytes of a container's length.
pub(super) const LENGTH_BYTES: usize = 4;

/// Bit of the CRAM flags of a record: all its qualities are stored.
const QUALITIES_ARE_STORED: i32 = 1;

/// Properties of a container that its headers state.
#[derive(Debug, Default)]
pub(super) struct ContainerHeaders {
    pub(super) slices: Vec<SliceHeader>,
    /// Whether bases are stored as differences from a reference that is not in the file.
    pub(super) requires_reference: bool,
    record_flags: RecordFlagsEncoding,
    /// Content ID of the external block that has only qualities of single bases (`QS`), if all qualities are there.
    qualities_block: Option<i32>,
    /// Content IDs of the blocks that have data series.
    block_ids: Vec<i32>,
}

/// Properties of a slice that its header states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SliceHeader {
    /// MD5 sum of the bases of the reference that the slice covers. `None` if it is not stored, as in slices with
    /// records of several sequences.
    pub(super) reference_md5: Option<[u8; 16]>,
    /// Content ID of the block with the bases of the reference; `None` if no reference is embedded in the slice.
    pub(super) embedded_reference: Option<i32>,
    num_records: usize,
}

/// Where the CRAM flags of the records are stored.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum RecordFlagsEncoding {
    /// All records have this value.
    Constant(i32),
    /// In the external block with this content ID, which has no other data.
    Block(i32),
    /// They are not stored, share a block with another data series, or have another encoding.
    #[default]
    Unknown,
}

/// Reads the next container, header and blocks, into `bytes`. Allocates only for bytes that the input has, even if the
/// header states a larger size.
///
/// # Errors
/// The input cannot be read, ends inside the container, or states an invalid size.
pub(super) fn read_container_bytes(
    input: &mut impl BufRead,
    version: CramVersion,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    let length = read_container_header(input, version, bytes)?;
    read_exactly(input, length, bytes)
}

/// Whether a CRAM file ends with a whole container. Reads only the headers of the containers.
pub(super) fn ends_with_whole_container(file: &File, version: CramVersion) -> io::Result<bool> {
    let file_bytes = file.metadata()?.len();
    let mut input = BufReader::new(file);
    input.seek(SeekFrom::Start(FILE_DEFINITION_BYTES))?;
    let (mut header, mut end) = (Vec::new(), FILE_DEFINITION_BYTES);
    while end < file_bytes {
        match read_container_header(&mut input, version, &mut header) {
            Ok(length) => end += header.len() as u64 + length,
            Err(e) if matches!(e.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) => {
                return Ok(false);
            }
            Err(e) => return Err(e),
        }
        input.seek(SeekFrom::Start(end))?;
    }
    Ok(end == file_bytes)
}

/// Reads the header of the next container into `bytes`. Returns the number of bytes of its blocks.
fn read_container_header(input: &mut impl BufRead, version: CramVersion, bytes: &mut Vec<u8>) -> io::Result<u64> {
    bytes.clear();
    read_exactly(input, LENGTH_BYTES as u64, bytes)?;
    let length = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let length = u64::try_from(length).map_err(|_| invalid(format!("a container of {length} bytes")))?;
    // Reference sequence, start, span, number of records; record counter and number of bases; number of blocks.
    for _ in 0..4 {
        read_itf8_bytes(input, bytes)?;
    }
    if version.is_version_3() {
        read_ltf8_bytes(input, bytes)?;
    } else {
        read_itf8_bytes(input, bytes)?;
    }
    read_ltf8_bytes(input, bytes)?;
    read_itf8_bytes(input, bytes)?;
    let num_landmarks = read_itf8_bytes(input, bytes)?;
    if i64::from(num_landmarks) > length as i64 {
        return Err(invalid(format!("{num_landmarks} slices in a container of {length} bytes")));
    }
    for _ in 0..num_landmarks {
        read_itf8_bytes(input, bytes)?;
    }
    if version.is_version_3() {
        read_exactly(input, CRC_BYTES as u64, bytes)?;
    }
    Ok(length)
}

/// Reads an ITF8 number, and appends its bytes to `bytes`.
fn read_itf8_bytes(input: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<i32> {
    let start = bytes.len();
    read_exactly(input, 1, bytes)?;
    read_exactly(input, u64::from(bytes[start].leading_ones().min(4)), bytes)?;
    Fields::new(&bytes[start..]).itf8()
}

/// Reads an LTF8 number, and appends its bytes to `bytes`.
fn read_ltf8_bytes(input: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<()> {
    let start = bytes.len();
    read_exactly(input, 1, bytes)?;
    read_exactly(input, u64::from(bytes[start].leading_ones()), bytes)
}

/// The header of a CRAM container, and the blocks that follow it.
struct ContainerHeader<'a> {
    /// The bytes of the numbers between the length and the landmarks.
    numbers: &'a [u8],
    /// Offsets in bytes at which the slices begin within the blocks of the container.
    landmarks: Vec<usize>,
    blocks: &'a [u8],
}

impl<'a> ContainerHeader<'a> {
    fn read(bytes: &'a [u8]) -> io::Result<Self> {
        let mut fields = Fields::new(bytes);
        fields.take(LENGTH_BYTES)?;
        // Reference sequence, start, span, number of records; record counter and number of bases; number of blocks.
        for _ in 0..4 {
            fields.itf8()?;
        }
        fields.skip_ltf8()?;
        fields.skip_ltf8()?;
        fields.itf8()?;
        let numbers = &bytes[LENGTH_BYTES..fields.at];
        let landmarks = (0..fields.size()?).map(|_| fields.size()).collect::<io::Result<_>>()?;
        fields.take(CRC_BYTES)?;
        Ok(ContainerHeader { numbers, landmarks, blocks: &bytes[fields.at..] })
    }
}

impl ContainerHeaders {
    /// Reads the headers in the bytes of a container. The layout of the end-of-file container is empty.
    ///
    /// # Errors
    /// An offset or a size is not inside the container; a slice has more records than any real one, or more than
    /// `max_slice_bytes` bytes in decompressed blocks.
    pub(super) fn from_container_bytes(bytes: &[u8], max_slice_bytes: u64) -> io::Result<ContainerHeaders> {
        let ContainerHeader { landmarks, blocks, .. } = ContainerHeader::read(bytes)?;
        let ends = landmarks.iter().skip(1).copied().chain([blocks.len()]);
        let ranges: Vec<Range<usize>> = landmarks.iter().zip(ends).map(|(start, end)| *start..end).collect();
        if ranges.iter().any(|range| range.start > range.end || range.end > blocks.len()) {
            return Err(invalid("a slice begins outside of its container"));
        }
        if ranges.is_empty() {
            return Ok(ContainerHeaders::default());
        }
        let slices = ranges.iter().map(|range| SliceHeader::read(&blocks[range.clone()], max_slice_bytes));
        let slices = slices.collect::<io::Result<_>>()?;
        let header = Block::read(&mut Fields::new(blocks), CramVersion::V3)?;
        let mut layout = ContainerHeaders { slices, requires_reference: true, ..ContainerHeaders::default() };
        if let Some(data) = header.data()? {
            let series = read_data_series(&data)?;
            layout.requires_reference = requires_reference(&data)?;
            layout.record_flags = RecordFlagsEncoding::from_series(&series);
            layout.qualities_block = find_qualities_block(&series);
            layout.block_ids = series.iter().filter_map(|series| series.block_id).collect();
        }
        Ok(layout)
    }

    /// Adds an empty block for each data series that has none. Writers omit the blocks of series without data, but the
    /// decoder requires a block for each series.
    pub(super) fn add_empty_blocks_of_missing_series(&self, blocks: &mut Vec<(i32, Cow<'_, [u8]>)>) {
        for id in &self.block_ids {
            if !blocks.iter().any(|(other, _)| other == id) {
                blocks.push((*id, Cow::Borrowed(&[])));
            }
        }
    }

    /// Adds 1 to each quality of a slice, so that 0, which the decoder returns for a quality that is not stored, has no
    /// other meaning. Returns whether it did: false if the qualities are not in one block of their own. `blocks` are the
    /// decompressed external blocks of the slice by content ID.
    pub(super) fn increment_qualities(&self, blocks: &mut [(i32, Cow<'_, [u8]>)]) -> bool {
        let block = blocks.iter_mut().find(|(content_id, _)| Some(*content_id) == self.qualities_block);
        let Some((_, qualities)) = block else { return false };
        qualities.to_mut().iter_mut().for_each(|quality| *quality = quality.wrapping_add(1));
        true
    }

    /// Returns for each record of a slice whether all its qualities are stored. `blocks` are the decompressed external
    /// blocks of the slice by content ID. `None` if this cannot be determined, for example because of an unusual
    /// encoding.
    pub(super) fn which_records_have_qualities(
        &self,
        slice: &SliceHeader,
        blocks: &[(i32, Cow<'_, [u8]>)],
    ) -> io::Result<Option<Vec<bool>>> {
        let is_stored = |flags: i32| flags & QUALITIES_ARE_STORED != 0;
        match self.record_flags {
            RecordFlagsEncoding::Unknown => Ok(None),
            RecordFlagsEncoding::Constant(flags) => Ok(Some(vec![is_stored(flags); slice.num_records])),
            RecordFlagsEncoding::Block(id) => {
                let Some((_, block)) = blocks.iter().find(|(content_id, _)| *content_id == id) else { return Ok(None) };
                let mut fields = Fields::new(block);
                (0..slice.num_records).map(|_| fields.itf8().map(is_stored)).collect::<io::Result<_>>().map(Some)
            }
        }
    }
}

impl SliceHeader {
    /// Reads the header of a slice and the headers of its blocks.
    fn read(bytes: &[u8], max_bytes: u64) -> io::Result<SliceHeader> {
        let mut blocks = Fields::new(bytes);
        let header = Block::read(&mut blocks, CramVersion::V3)?;
        let data = header.data()?.ok_or_else(|| invalid("the header of a slice is compressed"))?;
        let mut fields = Fields::new(&data);
        let (_reference, _start, _span) = (fields.itf8()?, fields.itf8()?, fields.itf8()?);
        let num_records = fields.size()?;
        fields.skip_ltf8()?;
        let num_blocks = fields.size()?;
        for _ in 0..fields.size()? {
            fields.itf8()?;
        }
        let embedded = fields.itf8()?;
        let mut md5 = [0; 16];
        md5.copy_from_slice(fields.take(16)?);
        let mut decompressed = 0;
        for _ in 0..num_blocks {
            decompressed += Block::read(&mut blocks, CramVersion::V3)?.header.decompressed_bytes as u64;
        }
        if decompressed > max_bytes {
            return Err(io::Error::other(FileFault::SliceTooLarge { slice_bytes: decompressed, max_bytes }));
        }
        if num_records as u64 > MIN_RECORD_LIMIT.max(MAX_RECORDS_PER_BYTE.saturating_mul(decompressed)) {
            return Err(invalid(format!("a slice of {num_records} records in {decompressed} bytes")));
        }
        Ok(SliceHeader {
            reference_md5: Some(md5).filter(|md5| *md5 != [0; 16]),
            embedded_reference: Some(embedded).filter(|id| *id >= 0),
            num_records,
        })
    }
}

/// Whether records need an external reference, according to the preservation map of a compression header (`RR`).
fn requires_reference(compression_header: &[u8]) -> io::Result<bool> {
    let mut fields = Fields::new(compression_header);
    let _map_bytes = fields.size()?;
    for _ in 0..fields.size()? {
        match fields.take(2)? {
            b"RR" => return Ok(fields.byte()? != 0),
            b"SM" => fields.take(5).map(drop)?,
            b"TD" => {
                let length = fields.size()?;
                fields.take(length)?;
            }
            _ => fields.take(1).map(drop)?,
        }
    }
    // Missing means true.
    Ok(true)
}

/// A data series and its encoding (CRAM specification, section 13).
struct DataSeries<'a> {
    key: &'a [u8],
    /// Content ID of the external block with its values, if the values are stored there one after the other.
    block_id: Option<i32>,
    /// The value of all records, if it is constant.
    constant: Option<i32>,
}

/// Reads the encodings of the data series in a compression header.
fn read_data_series(compression_header: &[u8]) -> io::Result<Vec<DataSeries<'_>>> {
    let (external, huffman) = (1, 3);
    let mut fields = Fields::new(compression_header);
    let preservation_map = fields.size()?;
    fields.take(preservation_map)?;
    let _map_bytes = fields.size()?;
    let mut all = Vec::new();
    for _ in 0..fields.size()? {
        let key = fields.take(2)?;
        let (encoding, length) = (fields.itf8()?, fields.size()?);
        let mut parameters = Fields::new(fields.take(length)?);
        let mut series = DataSeries { key, block_id: None, constant: None };
        if encoding == external {
            series.block_id = Some(parameters.itf8()?);
        } else if encoding == huffman && parameters.size()? == 1 {
            series.constant = Some(parameters.itf8()?);
        }
        all.push(series);
    }
    Ok(all)
}

/// Finds the block that has the values of `QS`, one after the other, and nothing else. `None` if there is none, or if
/// there are also qualities of stretches of bases (`QQ`), which are in another block.
fn find_qualities_block(all: &[DataSeries<'_>]) -> Option<i32> {
    let id = all.iter().find(|series| series.key == b"QS")?.block_id?;
    let is_alone = all.iter().filter(|series| series.block_id == Some(id)).count() == 1;
    (is_alone && !all.iter().any(|series| series.key == b"QQ")).then_some(id)
}

impl RecordFlagsEncoding {
    /// The encoding of the data series `CF`.
    fn from_series(all: &[DataSeries<'_>]) -> RecordFlagsEncoding {
        let Some(flags) = all.iter().find(|series| series.key == b"CF") else { return RecordFlagsEncoding::Unknown };
        let is_shared = all.iter().filter(|series| series.block_id == flags.block_id).count() > 1;
        match (flags.constant, flags.block_id) {
            (Some(flags), _) => RecordFlagsEncoding::Constant(flags),
            (None, Some(id)) if !is_shared => RecordFlagsEncoding::Block(id),
            _ => RecordFlagsEncoding::Unknown,
        }
    }
}

/// Adds the data series for bases and qualities (`BA`, `QS`) to the compression header of a container that lacks them,
/// and returns the new bytes of the container. Writers omit these series if no record has bases, but the decoder
/// requires them. `None` if the container has them or no slice, or if its compression header cannot be decompressed.
///
/// # Errors
/// The headers contradict themselves.
pub(super) fn add_missing_base_and_quality_series(bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    // Huffman codes of one symbol, N and "missing", of length 0.
    const BASES: (&[u8; 2], &[u8]) = (b"BA", &[3, 4, 1, b'N', 1, 0]);
    const QUALITIES: (&[u8; 2], &[u8]) = (b"QS", &[3, 5, 1, 0x80, 0xff, 1, 0]);
    let ContainerHeader { numbers, landmarks, blocks } = ContainerHeader::read(bytes)?;
    if landmarks.is_empty() {
        return Ok(None);
    }
    let mut fields = Fields::new(blocks);
    let header = Block::read(&mut fields, CramVersion::V3)?;
    let old_length = fields.at;
    let Some(data) = header.data()? else { return Ok(None) };
    let series = read_data_series(&data)?;
    let missing: Vec<_> =
        [BASES, QUALITIES].into_iter().filter(|(key, _)| !series.iter().any(|series| series.key == *key)).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let data = with_series(&data, series.len() + missing.len(), &missing)?;
    // A block of the same type, stored as it is.
    let mut block = vec![0, blocks[1], 0];
    push_itf8(&mut block, data.len());
    push_itf8(&mut block, data.len());
    block.extend(data);
    push_crc(&mut block, 0);
    let length = blocks.len() - old_length + block.len();
    let length = i32::try_from(length).ok().filter(|length| *length < 1 << 28);
    let length = length.ok_or_else(|| invalid("a container of 256 MiB of records without bases"))?;
    let mut new = Vec::with_capacity(bytes.len() + 64);
    new.extend(length.to_le_bytes());
    new.extend(numbers);
    push_itf8(&mut new, landmarks.len());
    landmarks.iter().for_each(|landmark| push_itf8(&mut new, landmark + block.len() - old_length));
    push_crc(&mut new, 0);
    new.extend(block);
    new.extend(&blocks[old_length..]);
    Ok(Some(new))
}

/// Returns a compression header to which the data series `added` are appended. `count` is the number of all series,
/// old and new.
fn with_series(header: &[u8], count: usize, added: &[(&[u8; 2], &[u8])]) -> io::Result<Vec<u8>> {
    let mut fields = Fields::new(header);
    let preservation_map = fields.size()?;
    fields.take(preservation_map)?;
    let before = fields.at;
    let length = fields.size()?;
    let mut own = Fields::new(fields.take(length)?);
    own.size()?;
    let mut series = Vec::new();
    push_itf8(&mut series, count);
    series.extend(&own.bytes[own.at..]);
    added.iter().for_each(|(key, encoding)| series.extend(key.iter().chain(*encoding)));
    let mut new = header[..before].to_vec();
    push_itf8(&mut new, series.len());
    new.extend(series);
    new.extend(&header[fields.at..]);
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_specified() {
        for (bytes, number) in [
            (&[0x00][..], 0),
            (&[0x7f], 127),
            (&[0x87, 0x55], 1877),
            (&[0xc7, 0x55, 0x99], 480_665),
            (&[0xe7, 0x55, 0x99, 0x66], 123_050_342),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], -1),
            (&[0xff, 0xff, 0xff, 0xff, 0x0e], -2),
        ] {
            assert_eq!(Fields::new(bytes).itf8().expect("a number"), number);
            let mut copied = Vec::new();
            assert_eq!(read_itf8_bytes(&mut &bytes[..], &mut copied).expect("a number"), number);
            assert_eq!(copied, bytes);
            let mut written = Vec::new();
            push_itf8(&mut written, number as u32 as usize);
            assert_eq!(written, bytes);
        }
        assert!(Fields::new(&[0xc7, 0x55]).itf8().is_err());
    }

    #[test]
    fn memory_grows_with_the_input_and_not_with_its_header() {
        // The header says 2 GiB, and the file has 100 bytes.
        let mut input = i32::MAX.to_le_bytes().to_vec();
        input.extend([0; 8]);
        input.extend([0; 100]);
        let mut bytes = Vec::new();
        let error = read_container_bytes(&mut &input[..], CramVersion::V3, &mut bytes).expect_err("truncated");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(bytes.capacity() < 1 << 16, "{}", bytes.capacity());
    }

    #[test]
    fn a_block_of_qualities_is_found_and_shifted() {
        let series = |key: &'static [u8], block_id| DataSeries { key, block_id, constant: None };
        let all = [series(b"QS", Some(12)), series(b"BA", Some(11))];
        assert_eq!(find_qualities_block(&all), Some(12));
        assert_eq!(find_qualities_block(&[series(b"QS", None)]), None);
        assert_eq!(find_qualities_block(&[series(b"QS", Some(12)), series(b"BA", Some(12))]), None);
        assert_eq!(find_qualities_block(&[series(b"QS", Some(12)), series(b"QQ", None)]), None);
        let layout = ContainerHeaders { qualities_block: Some(12), ..ContainerHeaders::default() };
        let mut blocks = [(11, Cow::Borrowed(&b"AC"[..])), (12, Cow::Borrowed(&[0, 40, 255][..]))];
        assert!(layout.increment_qualities(&mut blocks));
        assert_eq!((&*blocks[0].1, &*blocks[1].1), (&b"AC"[..], &[1, 41, 0][..]));
        assert!(!ContainerHeaders::default().increment_qualities(&mut blocks));
    }

    #[test]
    fn flags_of_records_are_found() {
        // Preservation map of one byte, then a map with CF as external block 26, and RL as external block 25.
        let header = |flags: &[u8], rl: u8| [&[1, 0, 99, 2][..], b"CF", flags, b"RL", &[1, 1, rl]].concat();
        let read = |header: Vec<u8>| RecordFlagsEncoding::from_series(&read_data_series(&header).expect("a header"));
        assert_eq!(read(header(&[1, 1, 26], 25)), RecordFlagsEncoding::Block(26));
        assert_eq!(read(header(&[1, 1, 26], 26)), RecordFlagsEncoding::Unknown);
        assert_eq!(read(header(&[3, 4, 1, 3, 1, 0], 25)), RecordFlagsEncoding::Constant(3));
        assert_eq!(read(header(&[3, 6, 2, 3, 1, 2, 1, 1], 25)), RecordFlagsEncoding::Unknown);
    }
}
