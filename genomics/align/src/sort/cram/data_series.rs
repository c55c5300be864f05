//! The data series of a slice (CRAM specification 3.1, section 8.4), and the compression header that describes their
//! encodings.

use std::collections::BTreeMap;
use std::collections::HashMap;

use super::block::{BlockType, BlockWriter, Codec};
use super::itf8::write_itf8;
use super::rans::ContextOrder;

/// A data series: one kind of value of the records, such as positions. Each is stored in its own block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum DataSeries {
    Flags,
    CramFlags,
    ReferenceId,
    ReadLength,
    Position,
    ReadGroup,
    ReadName,
    MateFlags,
    MateSequence,
    MatePosition,
    TemplateLength,
    NextFragment,
    TagList,
    FeatureCount,
    FeatureCode,
    FeaturePosition,
    DeletionLength,
    Bases,
    Substitution,
    InsertedBases,
    SkipLength,
    PaddingLength,
    HardClipLength,
    SoftClippedBases,
    MappingQuality,
    Base,
    Quality,
}

/// Encoding of the values of a data series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeriesEncoding {
    /// Integers (ITF8) or single bytes, one after the other.
    External,
    /// Byte arrays that end with a stop byte (zero).
    StopByte,
}

/// Two-letter name in the file, encoding and compression method of each series. The methods gave the smallest (or
/// nearly the smallest) files for reads of 150 bases (docs/evidence/2026-11-25-cram-writing.md).
const SERIES: [(&[u8; 2], SeriesEncoding, Codec); 27] = {
    use Codec::{Gzip, Names, Rans};
    use ContextOrder::{One, Zero};
    use SeriesEncoding::{External, StopByte};
    [
        (b"BF", External, Rans(One)),
        (b"CF", External, Rans(One)),
        (b"RI", External, Rans(One)),
        (b"RL", External, Rans(One)),
        (b"AP", External, Rans(Zero)),
        (b"RG", External, Rans(One)),
        (b"RN", StopByte, Names),
        (b"MF", External, Rans(One)),
        (b"NS", External, Rans(One)),
        (b"NP", External, Gzip),
        (b"TS", External, Gzip),
        (b"NF", External, Gzip),
        (b"TL", External, Rans(One)),
        (b"FN", External, Rans(Zero)),
        (b"FC", External, Rans(One)),
        (b"FP", External, Rans(Zero)),
        (b"DL", External, Rans(Zero)),
        (b"BB", StopByte, Gzip),
        (b"BS", External, Rans(Zero)),
        (b"IN", StopByte, Rans(One)),
        (b"RS", External, Rans(Zero)),
        (b"PD", External, Rans(Zero)),
        (b"HC", External, Rans(Zero)),
        (b"SC", StopByte, Rans(One)),
        (b"MQ", External, Rans(One)),
        (b"BA", External, Rans(One)),
        (b"QS", External, Rans(One)),
    ]
};

/// Stop byte of text tags: the values of these tags cannot contain a tab.
const TEXT_TAG_STOP_BYTE: u8 = b'\t';

/// Codec IDs of the encodings (sections 8.4.1 and 13).
const EXTERNAL_CODEC: i32 = 1;
const HUFFMAN_CODEC: i32 = 3;
const BYTE_ARRAY_LENGTH_CODEC: i32 = 4;
const BYTE_ARRAY_STOP_CODEC: i32 = 5;

/// The values of all records of a slice.
#[derive(Default)]
pub(super) struct SliceValues {
    series: [Vec<u8>; SERIES.len()],
    /// Tag values by tag and BAM type, for example `NMC`.
    tags: BTreeMap<[u8; 3], Vec<u8>>,
    /// The distinct lists of tags (name and type) that records have, each followed by a zero byte (CRAM: tag
    /// dictionary, TD).
    tag_lists: Vec<u8>,
    tag_list_numbers: HashMap<Vec<u8>, i32>,
    /// List of the tags of the current record.
    current_tag_list: Vec<u8>,
}

impl SliceValues {
    /// Removes all values and keeps the memory.
    pub(super) fn clear_values(&mut self) {
        self.series.iter_mut().for_each(Vec::clear);
        // Buffers of tags are kept for reuse; tags without values are not written.
        self.tags.values_mut().for_each(Vec::clear);
        self.tag_lists.clear();
        self.tag_list_numbers.clear();
    }

    /// Appends an integer to a series.
    #[inline]
    pub(super) fn push_int(&mut self, series: DataSeries, value: i32) {
        write_itf8(&mut self.series[series as usize], value);
    }

    /// Appends a byte to a series.
    #[inline]
    pub(super) fn push_byte(&mut self, series: DataSeries, value: u8) {
        self.series[series as usize].push(value);
    }

    /// The bytes of a series, to which the caller appends.
    #[inline]
    pub(super) fn series_bytes_mut(&mut self, series: DataSeries) -> &mut Vec<u8> {
        &mut self.series[series as usize]
    }

    /// Adds a tag of the current record. `kind` is its BAM type, `value` its value as in BAM.
    pub(super) fn push_tag(&mut self, tag: [u8; 2], kind: u8, value: &[u8]) {
        let key = [tag[0], tag[1], kind];
        self.current_tag_list.extend_from_slice(&key);
        let out = self.tags.entry(key).or_default();
        if kind == b'B' {
            write_itf8(out, value.len() as i32);
        }
        out.extend_from_slice(value);
        if matches!(kind, b'Z' | b'H') {
            out.push(TEXT_TAG_STOP_BYTE);
        }
    }

    /// Completes the tags of the current record: appends the index of its tag list to the series `TL`.
    pub(super) fn push_tag_list_index(&mut self) {
        let number = match self.tag_list_numbers.get(&self.current_tag_list) {
            Some(&number) => number,
            None => {
                let number = self.tag_list_numbers.len() as i32;
                self.tag_lists.extend_from_slice(&self.current_tag_list);
                self.tag_lists.push(0);
                self.tag_list_numbers.insert(self.current_tag_list.clone(), number);
                number
            }
        };
        self.current_tag_list.clear();
        self.push_int(DataSeries::TagList, number);
    }

    /// Writes the compression header block. `deltas` is whether alignment positions are stored as differences.
    pub(super) fn write_compression_header(&self, deltas: bool, block_writer: &mut BlockWriter, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        // Preservation map: read names are kept, the reference is required, and a substitution is coded by the index
        // of the base among ACGTN without the reference base.
        let mut map = Vec::new();
        write_itf8(&mut map, 5);
        map.extend_from_slice(&[b'R', b'N', 1, b'A', b'P', u8::from(deltas), b'R', b'R', 1]);
        map.extend_from_slice(b"SM\x1b\x1b\x1b\x1b\x1bTD");
        write_itf8(&mut map, self.tag_lists.len() as i32);
        map.extend_from_slice(&self.tag_lists);
        write_with_length(&mut data, &map);

        map.clear();
        let used = || (0..).zip(SERIES.iter().zip(&self.series)).filter(|(_, (_, values))| !values.is_empty());
        write_itf8(&mut map, used().count() as i32);
        for (number, ((name, form, _), _)) in used() {
            map.extend_from_slice(*name);
            match form {
                SeriesEncoding::External => write_external_encoding(&mut map, number + 1),
                SeriesEncoding::StopByte => write_stop_byte_encoding(&mut map, 0, number + 1),
            }
        }
        write_with_length(&mut data, &map);

        map.clear();
        let used = || self.tags.iter().filter(|(_, values)| !values.is_empty());
        write_itf8(&mut map, used().count() as i32);
        for (&key, _) in used() {
            write_itf8(&mut map, tag_block_id(key));
            let mut parameters = Vec::new();
            match fixed_tag_bytes(key[2]) {
                Some(bytes) => {
                    write_constant_encoding(&mut parameters, bytes);
                    write_external_encoding(&mut parameters, tag_block_id(key));
                }
                None if key[2] == b'B' => {
                    write_external_encoding(&mut parameters, tag_block_id(key));
                    write_external_encoding(&mut parameters, tag_block_id(key));
                }
                None => {
                    write_stop_byte_encoding(&mut map, TEXT_TAG_STOP_BYTE, tag_block_id(key));
                    continue;
                }
            }
            write_itf8(&mut map, BYTE_ARRAY_LENGTH_CODEC);
            write_with_length(&mut map, &parameters);
        }
        write_with_length(&mut data, &map);
        block_writer.write_block(BlockType::CompressionHeader, 0, Codec::Stored, &data, out);
    }

    /// Appends the blocks of all series and tags that have values to `out`, and their content IDs to `ids`.
    pub(super) fn write_series_and_tag_blocks(
        &self,
        block_writer: &mut BlockWriter,
        ids: &mut Vec<i32>,
        out: &mut Vec<u8>,
    ) {
        for (number, ((_, _, codec), values)) in (0..).zip(SERIES.iter().zip(&self.series)) {
            if !values.is_empty() {
                ids.push(number + 1);
                block_writer.write_block(BlockType::ExternalData, number + 1, *codec, values, out);
            }
        }
        for (&key, values) in self.tags.iter().filter(|(_, values)| !values.is_empty()) {
            ids.push(tag_block_id(key));
            let codec = if fixed_tag_bytes(key[2]).is_some() { Codec::Rans(ContextOrder::One) } else { Codec::Gzip };
            block_writer.write_block(BlockType::ExternalData, tag_block_id(key), codec, values, out);
        }
    }
}

/// Content ID of the block of a tag.
fn tag_block_id([a, b, kind]: [u8; 3]) -> i32 {
    i32::from(a) << 16 | i32::from(b) << 8 | i32::from(kind)
}

/// Number of bytes of a tag value of the BAM type `kind`; `None` for types without a fixed size.
fn fixed_tag_bytes(kind: u8) -> Option<i32> {
    match kind {
        b'A' | b'c' | b'C' => Some(1),
        b's' | b'S' => Some(2),
        b'i' | b'I' | b'f' => Some(4),
        _ => None,
    }
}

/// Appends the length of `data`, then `data`.
fn write_with_length(out: &mut Vec<u8>, data: &[u8]) {
    write_itf8(out, data.len() as i32);
    out.extend_from_slice(data);
}

fn write_external_encoding(out: &mut Vec<u8>, id: i32) {
    let mut parameters = Vec::new();
    write_itf8(&mut parameters, id);
    write_itf8(out, EXTERNAL_CODEC);
    write_with_length(out, &parameters);
}

fn write_stop_byte_encoding(out: &mut Vec<u8>, stop: u8, id: i32) {
    let mut parameters = vec![stop];
    write_itf8(&mut parameters, id);
    write_itf8(out, BYTE_ARRAY_STOP_CODEC);
    write_with_length(out, &parameters);
}

/// Appends the encoding of a value that is the same in all records, so that the records need no bits for it.
fn write_constant_encoding(out: &mut Vec<u8>, value: i32) {
    let mut parameters = Vec::new();
    [1, value, 1, 0].iter().for_each(|&n| write_itf8(&mut parameters, n));
    write_itf8(out, HUFFMAN_CODEC);
    write_with_length(out, &parameters);
}
