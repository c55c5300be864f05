//! Records → a container with one slice (CRAM specification 3.1, sections 8.5 and 10).

use std::collections::HashMap;

use md5::{Digest, Md5};

use super::Near;
use super::block::{Codec, Coders, Container, Kind, Reach};
use super::number::{itf8, ltf8};
use super::series::{Series, Values};
use crate::sort::Error;
use crate::sort::record::{Record, flag};

/// Bits of the flags of CRAM.
mod cram_flag {
    pub(super) const QUALITIES: i32 = 1;
    /// What is known of the mate is written out.
    pub(super) const DETACHED: i32 = 2;
    /// The mate follows in this slice, and says the rest.
    pub(super) const MATE_FOLLOWS: i32 = 4;
    pub(super) const NO_BASES: i32 = 8;
}

/// Letters of the 4-bit bases.
const LETTERS: &[u8; 16] = b"=ACMGRSVTWYHKDBN";

/// What a record has to do with its mate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mate {
    Detached,
    /// So many records lie between.
    Follows(i32),
    Precedes,
}

/// A line of the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) reach: Reach,
    /// Where the slice begins behind the header of its container, and its bytes.
    pub(super) slice: usize,
    pub(super) bytes: usize,
}

/// Makes containers; one for each thread.
pub(super) struct Encoder<'a> {
    near: Near<'a>,
    /// Read groups by their names.
    groups: &'a HashMap<Vec<u8>, i32>,
    values: Values,
    coders: Coders,
    bases: Vec<u8>,
    slice: Vec<u8>,
    blocks: Vec<u8>,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(near: Near<'a>, groups: &'a HashMap<Vec<u8>, i32>) -> Encoder<'a> {
        Encoder {
            near,
            groups,
            values: Values::default(),
            coders: Coders::new(),
            bases: Vec::new(),
            slice: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Appends the container of `data`, records one after the other of which `before` stand before them in the file, and its lines of the
    /// index.
    pub(super) fn container(
        &mut self,
        data: &[u8],
        before: u64,
        out: &mut Vec<u8>,
        lines: &mut Vec<Line>,
    ) -> Result<(), Error> {
        let mut records = Vec::new();
        let mut at = 0;
        while at < data.len() {
            let record = Record::at(&data[at..]);
            at += record.bytes().len();
            records.push(record);
        }
        let mates = mates(&records);
        let reaches = reaches(&records);
        let reach = match reaches[..] {
            [only] => only,
            _ => Reach { sequence: Reach::SEVERAL, start: 0, span: 0 },
        };
        let deltas = reach.sequence != Reach::SEVERAL;
        self.values.clear();
        let mut last = reach.start;
        for (record, &mate) in records.iter().zip(&mates) {
            let position = record.position() + 1;
            if !deltas {
                self.values.number(Series::Sequence, sequence(*record));
            }
            self.values.number(Series::Position, if deltas { position - last } else { position });
            last = position;
            self.record(*record, mate)?;
        }

        self.blocks.clear();
        self.values.header(deltas, &mut self.coders, &mut self.blocks);
        let landmark = self.blocks.len();
        let mut ids = Vec::new();
        self.slice.clear();
        self.coders.block(Kind::Core, 0, Codec::Stored, &[], &mut self.slice);
        self.values.blocks(&mut self.coders, &mut ids, &mut self.slice);

        let mut header = Vec::new();
        reach.write(&mut header);
        itf8(&mut header, records.len() as i32);
        ltf8(&mut header, before);
        itf8(&mut header, ids.len() as i32 + 1);
        itf8(&mut header, ids.len() as i32);
        ids.iter().for_each(|&id| itf8(&mut header, id));
        // No reference within the file.
        itf8(&mut header, -1);
        header.extend_from_slice(&self.digest(reach)?);
        self.coders.block(Kind::Slice, 0, Codec::Stored, &header, &mut self.blocks);
        self.blocks.extend_from_slice(&self.slice);

        let bytes = self.blocks.len() - landmark;
        lines.extend(reaches.into_iter().map(|reach| Line { reach, slice: landmark, bytes }));
        let bases = records.iter().map(|record| record.letters() as u64).sum();
        let container = Container {
            bytes: self.blocks.len(),
            reach,
            records: records.len(),
            before,
            bases,
            blocks: ids.len() + 3,
            slice: Some(landmark),
        };
        container.write(out);
        out.extend_from_slice(&self.blocks);
        Ok(())
    }

    /// Sum of the stretch of the reference that a slice is read with.
    fn digest(&mut self, reach: Reach) -> Result<[u8; 16], Error> {
        if reach.sequence < 0 {
            return Ok([0; 16]);
        }
        let reference = self.near.bases(reach.sequence as u32)?;
        let from = (reach.start as usize).saturating_sub(1).min(reference.len());
        let to = (from + reach.span as usize).min(reference.len());
        Ok(Md5::digest(&reference[from..to]).into())
    }

    /// All of a record but where it stands.
    fn record(&mut self, record: Record<'_>, mate: Mate) -> Result<(), Error> {
        let Encoder { near, groups, values, bases, .. } = self;
        let on = record.sequence().filter(|_| !record.is(flag::UNMAPPED));
        let unknown = record.letters() == 0;
        let qualities = record.qualities().first().is_some_and(|&quality| quality != 0xff);
        // Without bases the length is that of the CIGAR.
        let length = match unknown && on.is_some() {
            true => {
                record.cigar().filter(|op| matches!(op.kind, 0 | 1 | 4 | 7 | 8)).map(|op| op.len as i32).sum()
            }
            false => record.letters() as i32,
        };
        values.number(Series::Flags, i32::from(record.flags()));
        let mut flags = if qualities { cram_flag::QUALITIES } else { 0 };
        flags |= match mate {
            Mate::Detached => cram_flag::DETACHED,
            Mate::Follows(_) => cram_flag::MATE_FOLLOWS,
            Mate::Precedes => 0,
        };
        flags |= if unknown { cram_flag::NO_BASES } else { 0 };
        values.number(Series::CramFlags, flags);
        values.number(Series::Length, length);
        let group = record.tag(*b"RG").and_then(|value| match value {
            [b'Z', id @ .., 0] => groups.get(id).copied(),
            _ => None,
        });
        values.number(Series::Group, group.unwrap_or(-1));
        let name = values.bytes(Series::Name);
        name.extend_from_slice(record.name());
        name.push(0);
        match mate {
            Mate::Detached => {
                let bit = |of: u16, is: i32| if record.is(of) { is } else { 0 };
                values.number(Series::MateFlags, bit(flag::MATE_REVERSE, 1) | bit(flag::MATE_UNMAPPED, 2));
                values.number(Series::MateSequence, record.next_sequence());
                values.number(Series::MatePosition, record.next_position() + 1);
                values.number(Series::TemplateLength, record.template_length());
            }
            Mate::Follows(between) => values.number(Series::NextFragment, between),
            Mate::Precedes => {}
        }
        for tag in record.tags() {
            let (tag, value) = tag.ok_or(Error::Record { what: "has tags that cannot be read" })?;
            let told = (tag == *b"RG" && group.is_some()) || (tag == *b"CG" && record.has_long_cigar());
            if !told {
                values.tag(tag, value[0], &value[1..]);
            }
        }
        values.end_tags();

        bases.clear();
        record.push_bases(LETTERS, bases);
        if let Some(on) = on {
            features(record, bases, near.bases(on)?, values);
            values.number(Series::MappingQuality, i32::from(record.mapping_quality()));
        } else {
            values.bytes(Series::Base).extend_from_slice(bases);
        }
        if qualities {
            values.bytes(Series::Quality).extend_from_slice(record.qualities());
        }
        Ok(())
    }
}

/// Number of the sequence that a record stands at, or [`Reach::NONE`].
fn sequence(record: Record<'_>) -> i32 {
    record.sequence().map_or(Reach::NONE, |sequence| sequence as i32)
}

/// What differs from the reference: positions are those of the read, from 1, as distances.
fn features(record: Record<'_>, bases: &[u8], reference: &[u8], values: &mut Values) {
    let (mut at, mut there) = (0usize, record.position().max(0) as usize);
    let (mut count, mut last) = (0, 0);
    let mut feature = |values: &mut Values, code: u8, at: usize| {
        values.byte(Series::FeatureCode, code);
        values.number(Series::FeaturePosition, (at + 1 - last) as i32);
        last = at + 1;
        count += 1;
    };
    let read = |from: usize, length: usize| bases.get(from..from + length);
    let text = |values: &mut Values, series: Series, from: usize, length: usize| {
        let out = values.bytes(series);
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
                    match (other.and_then(letter), letter(base)) {
                        (Some(of), Some(is)) => {
                            feature(values, b'X', at + i);
                            values.byte(Series::Substitution, is - u8::from(is > of));
                        }
                        _ => {
                            feature(values, b'b', at + i);
                            values.bytes(Series::Stretch).extend_from_slice(&[base, 0]);
                        }
                    }
                }
                at += length;
                there += length;
            }
            1 => {
                feature(values, b'I', at);
                text(values, Series::Inserted, at, length);
                at += length;
            }
            4 => {
                feature(values, b'S', at);
                text(values, Series::SoftClip, at, length);
                at += length;
            }
            2 => {
                feature(values, b'D', at);
                values.number(Series::Deleted, length as i32);
                there += length;
            }
            3 => {
                feature(values, b'N', at);
                values.number(Series::Skipped, length as i32);
                there += length;
            }
            5 => {
                feature(values, b'H', at);
                values.number(Series::HardClip, length as i32);
            }
            _ => {
                feature(values, b'P', at);
                values.number(Series::Padding, length as i32);
            }
        }
    }
    values.number(Series::Features, count);
}

/// Place among the letters that substitutions are told by.
fn letter(base: u8) -> Option<u8> {
    match base {
        b'A' => Some(0),
        b'C' => Some(1),
        b'G' => Some(2),
        b'T' => Some(3),
        b'N' => Some(4),
        _ => None,
    }
}

/// Mates of whom the later says nothing that does not follow from both. Programs reckon the length of a template in two ways, from its
/// outermost bases or between the ends that were read first: only pairs for which both are the same are taken.
fn mates(records: &[Record<'_>]) -> Vec<Mate> {
    let mut mates = vec![Mate::Detached; records.len()];
    let mut waiting: HashMap<&[u8], usize> = HashMap::with_capacity(records.len());
    let alone = flag::UNMAPPED | flag::MATE_UNMAPPED | flag::SECONDARY | flag::SUPPLEMENTARY;
    for (number, &record) in records.iter().enumerate() {
        if !record.is(flag::PAIRED) || record.is(alone) || record.next_sequence() != sequence(record) {
            continue;
        }
        let Some(first) = waiting.insert(record.name(), number) else { continue };
        let before = records[first];
        let ends = [flag::FIRST, flag::LAST].map(|end| (before.is(end), record.is(end)));
        let span = |record: Record<'_>| record.span().max(1) as i32;
        let length = record.position() + span(record) - before.position();
        let innards = ends == [(true, false), (false, true)] || ends == [(false, true), (true, false)];
        let inward = !before.is(flag::REVERSE) && record.is(flag::REVERSE);
        let told = before.is(flag::MATE_REVERSE) && !record.is(flag::MATE_REVERSE);
        let places =
            (before.next_position(), record.next_position()) == (record.position(), before.position());
        let lengths = (before.template_length(), record.template_length()) == (length, -length);
        let outermost = before.position() < record.position() && span(before) <= length;
        if sequence(before) == sequence(record) && innards && inward && told && places && lengths && outermost
        {
            mates[first] = Mate::Follows((number - first - 1) as i32);
            mates[number] = Mate::Precedes;
            waiting.remove(record.name());
        }
    }
    mates
}

/// Where the records lie, a stretch for each sequence.
fn reaches(records: &[Record<'_>]) -> Vec<Reach> {
    let mut reaches: Vec<Reach> = Vec::new();
    for &record in records {
        let sequence = sequence(record);
        if reaches.last().is_none_or(|reach| reach.sequence != sequence) {
            let start = if sequence < 0 { 0 } else { record.position() + 1 };
            reaches.push(Reach { sequence, start, span: 0 });
        }
        if let Some(reach) = reaches.last_mut()
            && sequence >= 0
        {
            let end = record.position() + record.span().max(1) as i32;
            reach.span = reach.span.max(end - reach.start + 1);
        }
    }
    reaches
}
