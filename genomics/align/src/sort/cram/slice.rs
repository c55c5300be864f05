//! Encodes records as a CRAM container with one slice (CRAM specification 3.1, sections 8.5 and 10).

use std::collections::HashMap;

use md5::{Digest, Md5};

use super::block::{BlockType, BlockWriter, Codec, ContainerHeader, ReferenceSpan};
use super::data_series::{DataSeries, SliceValues};
use super::itf8::{write_itf8, write_ltf8};
use super::{CramVersion, ThreadReference};
use crate::sort::Error;
use crate::sort::record::{Record, flag};

/// Bits of the CRAM compression flags (CF).
mod cram_flag {
    /// Flag of the data series `CF`: the qualities are stored as an array.
    pub(super) const HAS_QUALITIES_FLAG: i32 = 1;
    /// Flag of the data series `CF`: the mate information is stored in the record.
    pub(super) const DETACHED_MATE_FLAG: i32 = 2;
    /// Flag of the data series `CF`: the mate is a later record of the same slice, from which the mate fields are
    /// derived.
    pub(super) const MATE_FOLLOWS_FLAG: i32 = 4;
    /// Flag of the data series `CF`: the bases are unknown (`*`).
    pub(super) const NO_BASES_FLAG: i32 = 8;
}

/// Letters of the 4-bit base codes of BAM.
const BASE_LETTERS: &[u8; 16] = b"=ACMGRSVTWYHKDBN";

/// How the mate information of a record is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MateLink {
    Detached,
    /// The mate is in the same slice, after this number of other records.
    Follows(i32),
    Precedes,
}

/// An entry of the `.crai` index.
#[derive(Debug, Clone, Copy)]
pub(super) struct CraiEntry {
    pub(super) span: ReferenceSpan,
    /// Offset of the slice after the container header, and size of the slice (bytes).
    pub(super) slice_offset: usize,
    pub(super) slice_bytes: usize,
}

/// Encodes containers. Each thread has its own.
pub(super) struct ContainerEncoder<'a> {
    reference_cache: ThreadReference<'a>,
    /// Index in the header of each read group, by its ID.
    groups: &'a HashMap<Vec<u8>, i32>,
    values: SliceValues,
    block_writer: BlockWriter,
    bases: Vec<u8>,
    slice: Vec<u8>,
    blocks: Vec<u8>,
}

impl<'a> ContainerEncoder<'a> {
    pub(super) fn new(
        reference_cache: ThreadReference<'a>,
        groups: &'a HashMap<Vec<u8>, i32>,
        version: CramVersion,
    ) -> ContainerEncoder<'a> {
        ContainerEncoder {
            reference_cache,
            groups,
            values: SliceValues::default(),
            block_writer: BlockWriter::new(version),
            bases: Vec::new(),
            slice: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Appends the container of the records in `data` to `out`, and its index entries to `lines`. `before` is the
    /// number of records of the file before the container.
    pub(super) fn encode_container(
        &mut self,
        data: &[u8],
        before: u64,
        out: &mut Vec<u8>,
        lines: &mut Vec<CraiEntry>,
    ) -> Result<(), Error> {
        let mut records = Vec::new();
        let mut at = 0;
        while at < data.len() {
            let record = Record::first_of_checked_bytes(&data[at..]);
            at += record.encoded_bytes().len();
            records.push(record);
        }
        let mates = link_mates(&records);
        let spans = reference_spans(&records);
        let span = match spans[..] {
            [only] => only,
            _ => ReferenceSpan { sequence: ReferenceSpan::MULTIPLE_REFERENCES_ID, start: 0, span: 0 },
        };
        let deltas = span.sequence != ReferenceSpan::MULTIPLE_REFERENCES_ID;
        self.values.clear_values();
        let mut last = span.start;
        for (record, &mate) in records.iter().zip(&mates) {
            let position = record.position() + 1;
            if !deltas {
                self.values.push_int(DataSeries::ReferenceId, sequence_number(*record));
            }
            self.values.push_int(DataSeries::Position, if deltas { position - last } else { position });
            last = position;
            self.encode_record(*record, mate)?;
        }

        self.blocks.clear();
        self.values.write_compression_header(deltas, &mut self.block_writer, &mut self.blocks);
        let landmark = self.blocks.len();
        let mut ids = Vec::new();
        self.slice.clear();
        self.block_writer.write_block(BlockType::CoreData, 0, Codec::Stored, &[], &mut self.slice);
        self.values.write_series_and_tag_blocks(&mut self.block_writer, &mut ids, &mut self.slice);

        let mut header = Vec::new();
        span.write_span(&mut header);
        write_itf8(&mut header, records.len() as i32);
        write_ltf8(&mut header, before);
        write_itf8(&mut header, ids.len() as i32 + 1);
        write_itf8(&mut header, ids.len() as i32);
        ids.iter().for_each(|&id| write_itf8(&mut header, id));
        // No embedded reference.
        write_itf8(&mut header, -1);
        header.extend_from_slice(&self.reference_md5(span)?);
        self.block_writer.write_block(BlockType::SliceHeader, 0, Codec::Stored, &header, &mut self.blocks);
        self.blocks.extend_from_slice(&self.slice);

        let bytes = self.blocks.len() - landmark;
        lines.extend(spans.into_iter().map(|span| CraiEntry { span, slice_offset: landmark, slice_bytes: bytes }));
        let bases = records.iter().map(|record| record.num_bases() as u64).sum();
        let container = ContainerHeader {
            bytes: self.blocks.len(),
            span,
            records: records.len(),
            record_counter: before,
            bases,
            blocks: ids.len() + 3,
            slice_offset: Some(landmark),
        };
        container.write_container_header(out);
        out.extend_from_slice(&self.blocks);
        Ok(())
    }

    /// MD5 sum of the reference bases that a slice covers; zeros if it covers several sequences or none.
    fn reference_md5(&mut self, span: ReferenceSpan) -> Result<[u8; 16], Error> {
        if span.sequence < 0 {
            return Ok([0; 16]);
        }
        let reference = self.reference_cache.bases(span.sequence as u32)?;
        let from = (span.start as usize).saturating_sub(1).min(reference.len());
        let to = (from + span.span as usize).min(reference.len());
        Ok(Md5::digest(&reference[from..to]).into())
    }

    /// Adds the values of all data series of a record, except its reference sequence and position, to the slice.
    fn encode_record(&mut self, record: Record<'_>, mate: MateLink) -> Result<(), Error> {
        let ContainerEncoder { reference_cache, groups, values, bases, .. } = self;
        let on = record.sequence_index().filter(|_| !record.has_any_flag(flag::UNMAPPED));
        let unknown = record.num_bases() == 0;
        let qualities = record.qualities().first().is_some_and(|&quality| quality != 0xff);
        // Without bases the length follows from the CIGAR.
        let length = match unknown && on.is_some() {
            true => record.cigar().filter(|op| matches!(op.kind, 0 | 1 | 4 | 7 | 8)).map(|op| op.len as i32).sum(),
            false => record.num_bases() as i32,
        };
        values.push_int(DataSeries::Flags, i32::from(record.flags()));
        let mut flags = if qualities { cram_flag::HAS_QUALITIES_FLAG } else { 0 };
        flags |= match mate {
            MateLink::Detached => cram_flag::DETACHED_MATE_FLAG,
            MateLink::Follows(_) => cram_flag::MATE_FOLLOWS_FLAG,
            MateLink::Precedes => 0,
        };
        flags |= if unknown { cram_flag::NO_BASES_FLAG } else { 0 };
        values.push_int(DataSeries::CramFlags, flags);
        values.push_int(DataSeries::ReadLength, length);
        let group = record.typed_tag_value(*b"RG").and_then(|value| match value {
            [b'Z', id @ .., 0] => groups.get(id).copied(),
            _ => None,
        });
        values.push_int(DataSeries::ReadGroup, group.unwrap_or(-1));
        let name = values.series_bytes_mut(DataSeries::ReadName);
        name.extend_from_slice(record.name());
        name.push(0);
        match mate {
            MateLink::Detached => {
                let bit = |of: u16, is: i32| if record.has_any_flag(of) { is } else { 0 };
                values.push_int(DataSeries::MateFlags, bit(flag::MATE_REVERSE, 1) | bit(flag::MATE_UNMAPPED, 2));
                values.push_int(DataSeries::MateSequence, record.mate_sequence_index());
                values.push_int(DataSeries::MatePosition, record.mate_position() + 1);
                values.push_int(DataSeries::TemplateLength, record.template_length());
            }
            MateLink::Follows(between) => values.push_int(DataSeries::NextFragment, between),
            MateLink::Precedes => {}
        }
        for tag in record.tags() {
            let (tag, value) = tag.ok_or(Error::Record { what: "has tags that cannot be read" })?;
            let is_implied = (tag == *b"RG" && group.is_some()) || (tag == *b"CG" && record.has_cigar_in_cg_tag());
            if !is_implied {
                values.push_tag(tag, value[0], &value[1..]);
            }
        }
        values.push_tag_list_index();

        bases.clear();
        record.append_bases_as_letters(BASE_LETTERS, bases);
        if let Some(on) = on {
            encode_features(record, bases, reference_cache.bases(on)?, values);
            values.push_int(DataSeries::MappingQuality, i32::from(record.mapping_quality()));
        } else {
            values.series_bytes_mut(DataSeries::Base).extend_from_slice(bases);
        }
        if qualities {
            values.series_bytes_mut(DataSeries::Quality).extend_from_slice(record.qualities());
        }
        Ok(())
    }
}

/// Index of the reference sequence of a record, or [`ReferenceSpan::UNMAPPED_REFERENCE_ID`].
fn sequence_number(record: Record<'_>) -> i32 {
    record.sequence_index().map_or(ReferenceSpan::UNMAPPED_REFERENCE_ID, |sequence| sequence as i32)
}

/// Adds the read features: the differences of the read from the reference. Each position in the read is stored as the
/// distance from the previous feature.
fn encode_features(record: Record<'_>, bases: &[u8], reference: &[u8], values: &mut SliceValues) {
    let (mut at, mut there) = (0usize, record.position().max(0) as usize);
    let (mut count, mut last) = (0, 0);
    let mut feature = |values: &mut SliceValues, code: u8, at: usize| {
        values.push_byte(DataSeries::FeatureCode, code);
        values.push_int(DataSeries::FeaturePosition, (at + 1 - last) as i32);
        last = at + 1;
        count += 1;
    };
    let read = |from: usize, length: usize| bases.get(from..from + length);
    let text = |values: &mut SliceValues, series: DataSeries, from: usize, length: usize| {
        let out = values.series_bytes_mut(series);
        match read(from, length) {
            Some(bases) => out.extend_from_slice(bases),
            None => out.resize(out.len() + length, b'N'),
        }
        out.push(0);
    };
    for op in record.cigar() {
        let length = op.len as usize;
        match op.kind {
            0 | 7 | 8 => {
                // Without bases nothing differs.
                for (i, &base) in read(at, length).unwrap_or_default().iter().enumerate() {
                    let other = reference.get(there + i).copied();
                    if other == Some(base) {
                        continue;
                    }
                    match (other.and_then(substitution_code), substitution_code(base)) {
                        (Some(of), Some(is)) => {
                            feature(values, b'X', at + i);
                            values.push_byte(DataSeries::Substitution, is - u8::from(is > of));
                        }
                        _ => {
                            feature(values, b'b', at + i);
                            values.series_bytes_mut(DataSeries::Bases).extend_from_slice(&[base, 0]);
                        }
                    }
                }
                at += length;
                there += length;
            }
            1 | 4 => {
                let (code, series) = match op.kind {
                    1 => (b'I', DataSeries::InsertedBases),
                    _ => (b'S', DataSeries::SoftClippedBases),
                };
                feature(values, code, at);
                text(values, series, at, length);
                at += length;
            }
            kind => {
                let (code, series) = match kind {
                    2 => (b'D', DataSeries::DeletionLength),
                    3 => (b'N', DataSeries::SkipLength),
                    5 => (b'H', DataSeries::HardClipLength),
                    _ => (b'P', DataSeries::PaddingLength),
                };
                feature(values, code, at);
                values.push_int(series, length as i32);
                if matches!(kind, 2 | 3) {
                    there += length;
                }
            }
        }
    }
    values.push_int(DataSeries::FeatureCount, count);
}

/// Index of a base among A, C, G, T and N, from which the substitution code is computed; `None` for other letters.
fn substitution_code(base: u8) -> Option<u8> {
    match base {
        b'A' => Some(0),
        b'C' => Some(1),
        b'G' => Some(2),
        b'T' => Some(3),
        b'N' => Some(4),
        _ => None,
    }
}

/// Finds mates in the same slice whose mate information can be derived from each other. Programs compute the template
/// length in two ways, from the outermost bases or between the 5' ends. Only pairs for which both ways agree are
/// linked.
fn link_mates(records: &[Record<'_>]) -> Vec<MateLink> {
    let mut mates = vec![MateLink::Detached; records.len()];
    let mut waiting: HashMap<&[u8], usize> = HashMap::with_capacity(records.len());
    let alone = flag::UNMAPPED | flag::MATE_UNMAPPED | flag::SECONDARY | flag::SUPPLEMENTARY;
    for (number, &record) in records.iter().enumerate() {
        if !record.has_any_flag(flag::PAIRED)
            || record.has_any_flag(alone)
            || record.mate_sequence_index() != sequence_number(record)
        {
            continue;
        }
        let Some(first) = waiting.insert(record.name(), number) else { continue };
        let before = records[first];
        let ends = [flag::READ1, flag::READ2].map(|end| (before.has_any_flag(end), record.has_any_flag(end)));
        let span = |record: Record<'_>| record.ref_span_bp().max(1) as i32;
        let length = record.position() + span(record) - before.position();
        let is_read1_and_read2 = ends == [(true, false), (false, true)] || ends == [(false, true), (true, false)];
        let is_inward = !before.has_any_flag(flag::REVERSE) && record.has_any_flag(flag::REVERSE);
        let strands_agree = before.has_any_flag(flag::MATE_REVERSE) && !record.has_any_flag(flag::MATE_REVERSE);
        let positions_agree =
            (before.mate_position(), record.mate_position()) == (record.position(), before.position());
        let lengths_agree = (before.template_length(), record.template_length()) == (length, -length);
        let is_outermost = before.position() < record.position() && span(before) <= length;
        if sequence_number(before) == sequence_number(record)
            && is_read1_and_read2
            && is_inward
            && strands_agree
            && positions_agree
            && lengths_agree
            && is_outermost
        {
            mates[first] = MateLink::Follows((number - first - 1) as i32);
            mates[number] = MateLink::Precedes;
            waiting.remove(record.name());
        }
    }
    mates
}

/// The reference span of the records of each sequence.
fn reference_spans(records: &[Record<'_>]) -> Vec<ReferenceSpan> {
    let mut spans: Vec<ReferenceSpan> = Vec::new();
    for &record in records {
        let sequence = sequence_number(record);
        if spans.last().is_none_or(|span| span.sequence != sequence) {
            let start = if sequence < 0 { 0 } else { record.position() + 1 };
            spans.push(ReferenceSpan { sequence, start, span: 0 });
        }
        if let Some(span) = spans.last_mut()
            && sequence >= 0
        {
            let end = record.position() + record.ref_span_bp().max(1) as i32;
            span.span = span.span.max(end - span.start + 1);
        }
    }
    spans
}
