//! The values of records, each kind in a series of its own (CRAM specification 3.1, section 8.4), and the header that says how they lie.

use std::collections::BTreeMap;
use std::collections::HashMap;

use super::block::{Codec, Coders, Kind};
use super::number::itf8;
use super::rans::Order;

/// A series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Series {
    Flags,
    CramFlags,
    Sequence,
    Length,
    Position,
    Group,
    Name,
    MateFlags,
    MateSequence,
    MatePosition,
    TemplateLength,
    NextFragment,
    Tags,
    Features,
    FeatureCode,
    FeaturePosition,
    Deleted,
    Stretch,
    Substitution,
    Inserted,
    Skipped,
    Padding,
    HardClip,
    SoftClip,
    MappingQuality,
    Base,
    Quality,
}

/// How values are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Numbers, or bytes.
    Plain,
    /// Bytes up to a zero.
    Text,
}

/// Name in the file, form, and what it is coded with: what came out smallest, or all but, of reads of 150 bases (docs/align.md).
const SERIES: [(&[u8; 2], Form, Codec); 27] = {
    use Codec::{Gzip, Rans};
    use Form::{Plain, Text};
    use Order::{One, Zero};
    [
        (b"BF", Plain, Rans(One)),
        (b"CF", Plain, Rans(One)),
        (b"RI", Plain, Rans(One)),
        (b"RL", Plain, Rans(One)),
        (b"AP", Plain, Rans(Zero)),
        (b"RG", Plain, Rans(One)),
        (b"RN", Text, Gzip),
        (b"MF", Plain, Rans(One)),
        (b"NS", Plain, Rans(One)),
        (b"NP", Plain, Gzip),
        (b"TS", Plain, Gzip),
        (b"NF", Plain, Gzip),
        (b"TL", Plain, Rans(One)),
        (b"FN", Plain, Rans(Zero)),
        (b"FC", Plain, Rans(One)),
        (b"FP", Plain, Rans(Zero)),
        (b"DL", Plain, Rans(Zero)),
        (b"BB", Text, Gzip),
        (b"BS", Plain, Rans(Zero)),
        (b"IN", Text, Rans(One)),
        (b"RS", Plain, Rans(Zero)),
        (b"PD", Plain, Rans(Zero)),
        (b"HC", Plain, Rans(Zero)),
        (b"SC", Text, Rans(One)),
        (b"MQ", Plain, Rans(One)),
        (b"BA", Plain, Rans(One)),
        (b"QS", Plain, Rans(One)),
    ]
};

/// What ends a text tag: no byte of one.
const TAB: u8 = b'\t';

/// Codecs of the encodings (section 8.4.1 and 13).
const EXTERNAL: i32 = 1;
const HUFFMAN: i32 = 3;
const ARRAY_OF_LENGTH: i32 = 4;
const ARRAY_TO_STOP: i32 = 5;

/// The values of one slice.
#[derive(Default)]
pub(super) struct Values {
    series: [Vec<u8>; SERIES.len()],
    /// By tag and type, such as `NMC`.
    tags: BTreeMap<[u8; 3], Vec<u8>>,
    /// Which tags records have, each list once.
    lists: Vec<u8>,
    numbers: HashMap<Vec<u8>, i32>,
    /// Of the record under way.
    list: Vec<u8>,
}

impl Values {
    /// Forgets all values.
    pub(super) fn clear(&mut self) {
        self.series.iter_mut().for_each(Vec::clear);
        // Tags are kept with their room; the ones without values are not written.
        self.tags.values_mut().for_each(Vec::clear);
        self.lists.clear();
        self.numbers.clear();
    }

    #[inline]
    pub(super) fn number(&mut self, series: Series, value: i32) {
        itf8(&mut self.series[series as usize], value);
    }

    #[inline]
    pub(super) fn byte(&mut self, series: Series, value: u8) {
        self.series[series as usize].push(value);
    }

    /// Appends plain bytes.
    #[inline]
    pub(super) fn bytes(&mut self, series: Series) -> &mut Vec<u8> {
        &mut self.series[series as usize]
    }

    /// A tag of the record under way, its value as BAM has it.
    pub(super) fn tag(&mut self, tag: [u8; 2], kind: u8, value: &[u8]) {
        let key = [tag[0], tag[1], kind];
        self.list.extend_from_slice(&key);
        let out = self.tags.entry(key).or_default();
        if kind == b'B' {
            itf8(out, value.len() as i32);
        }
        out.extend_from_slice(value);
        if matches!(kind, b'Z' | b'H') {
            out.push(TAB);
        }
    }

    /// Ends the tags of a record.
    pub(super) fn end_tags(&mut self) {
        let number = match self.numbers.get(&self.list) {
            Some(&number) => number,
            None => {
                let number = self.numbers.len() as i32;
                self.lists.extend_from_slice(&self.list);
                self.lists.push(0);
                self.numbers.insert(self.list.clone(), number);
                number
            }
        };
        self.list.clear();
        self.number(Series::Tags, number);
    }

    /// The block that says how the values lie. `deltas`: positions are distances.
    pub(super) fn header(&self, deltas: bool, coders: &mut Coders, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        // Names are kept, the reference is needed, a base is named by its place among ACGTN without that of the reference.
        let mut map = Vec::new();
        itf8(&mut map, 5);
        map.extend_from_slice(&[b'R', b'N', 1, b'A', b'P', u8::from(deltas), b'R', b'R', 1]);
        map.extend_from_slice(b"SM\x1b\x1b\x1b\x1b\x1bTD");
        itf8(&mut map, self.lists.len() as i32);
        map.extend_from_slice(&self.lists);
        part(&mut data, &map);

        map.clear();
        let used =
            || (0..).zip(SERIES.iter().zip(&self.series)).filter(|(_, (_, values))| !values.is_empty());
        itf8(&mut map, used().count() as i32);
        for (number, ((name, form, _), _)) in used() {
            map.extend_from_slice(*name);
            match form {
                Form::Plain => external(&mut map, number + 1),
                Form::Text => to_stop(&mut map, 0, number + 1),
            }
        }
        part(&mut data, &map);

        map.clear();
        let used = || self.tags.iter().filter(|(_, values)| !values.is_empty());
        itf8(&mut map, used().count() as i32);
        for (&key, _) in used() {
            itf8(&mut map, id(key));
            let mut parameters = Vec::new();
            match size(key[2]) {
                Some(bytes) => {
                    constant(&mut parameters, bytes);
                    external(&mut parameters, id(key));
                }
                None if key[2] == b'B' => {
                    external(&mut parameters, id(key));
                    external(&mut parameters, id(key));
                }
                None => {
                    to_stop(&mut map, TAB, id(key));
                    continue;
                }
            }
            itf8(&mut map, ARRAY_OF_LENGTH);
            part(&mut map, &parameters);
        }
        part(&mut data, &map);
        coders.block(Kind::Compression, 0, Codec::Stored, &data, out);
    }

    /// Appends the blocks of all values, and their numbers to `ids`.
    pub(super) fn blocks(&self, coders: &mut Coders, ids: &mut Vec<i32>, out: &mut Vec<u8>) {
        for (number, ((_, _, codec), values)) in (0..).zip(SERIES.iter().zip(&self.series)) {
            if !values.is_empty() {
                ids.push(number + 1);
                coders.block(Kind::Values, number + 1, *codec, values, out);
            }
        }
        for (&key, values) in self.tags.iter().filter(|(_, values)| !values.is_empty()) {
            ids.push(id(key));
            let codec = if size(key[2]).is_some() { Codec::Rans(Order::One) } else { Codec::Gzip };
            coders.block(Kind::Values, id(key), codec, values, out);
        }
    }
}

/// Number of a tag's block.
fn id([a, b, kind]: [u8; 3]) -> i32 {
    i32::from(a) << 16 | i32::from(b) << 8 | i32::from(kind)
}

/// Bytes of a tag's value, where its type says that.
fn size(kind: u8) -> Option<i32> {
    match kind {
        b'A' | b'c' | b'C' => Some(1),
        b's' | b'S' => Some(2),
        b'i' | b'I' | b'f' => Some(4),
        _ => None,
    }
}

/// `data` with its length before it.
fn part(out: &mut Vec<u8>, data: &[u8]) {
    itf8(out, data.len() as i32);
    out.extend_from_slice(data);
}

fn external(out: &mut Vec<u8>, id: i32) {
    let mut parameters = Vec::new();
    itf8(&mut parameters, id);
    itf8(out, EXTERNAL);
    part(out, &parameters);
}

fn to_stop(out: &mut Vec<u8>, stop: u8, id: i32) {
    let mut parameters = vec![stop];
    itf8(&mut parameters, id);
    itf8(out, ARRAY_TO_STOP);
    part(out, &parameters);
}

/// Always the same number, which takes no bits.
fn constant(out: &mut Vec<u8>, value: i32) {
    let mut parameters = Vec::new();
    [1, value, 1, 0].iter().for_each(|&n| itf8(&mut parameters, n));
    itf8(out, HUFFMAN);
    part(out, &parameters);
}
