//! Reads in few bytes: bases in two bits each, qualities in as few as they need. Those of a large genome that wait in memory are packed, and those that
//! later passes read again.

use std::ops::Range;

use genuma_machine::processor::widest;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::batch::Mate;
use crate::dna::{self, base};

/// One read, kept. It is written packed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Read {
    /// Upper-case bases.
    pub seq: Vec<u8>,
    /// Phred qualities (no offset).
    pub qual: Vec<u8>,
}

impl Serialize for Read {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Packed::from(self).serialize(to)
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Packed, D::Error> {
        let bytes: serde_bytes::ByteBuf = Deserialize::deserialize(from)?;
        let whole = PackedRef::of(&bytes).is_some();
        whole.then(|| Packed(bytes.into_vec().into())).ok_or_else(|| D::Error::custom("no packed read"))
    }
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Read, D::Error> {
        let bytes: serde_bytes::ByteBuf = Deserialize::deserialize(from)?;
        let read = PackedRef::of(&bytes).map(|packed| packed.unpack());
        read.ok_or_else(|| D::Error::custom("no packed read"))
    }
}

impl Read {
    /// Copies a mate out of its batch.
    pub fn keep(mate: Mate<'_>) -> Read {
        Read {
            seq: mate.seq.to_ascii_uppercase(),
            qual: mate.qual.iter().map(|q| q.saturating_sub(33)).collect(),
        }
    }

    /// The same read seen from the other strand.
    pub fn reversed(&self) -> Read {
        Read { seq: dna::revcomp(&self.seq), qual: self.qual.iter().rev().copied().collect() }
    }
}

/// A read: bases in two bits each, qualities in as few as they need.
///
/// ```text
/// length (4 bytes), different qualities n (1 byte), these (n bytes) | bases, four a byte | qualities, 0, 1, 2 or 4 bits each, numbers of the
/// different ones, or 8 bits each with n = 0 | position (4 bytes) and letter of each that is none of ACGT
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packed(Box<[u8]>);

/// Different qualities up to which they are numbered.
const NUMBERED: usize = 16;
/// Bytes before the different qualities, and of an unknown base.
const HEAD: usize = 5;
const UNKNOWN: usize = 5;

/// Bits of the number of one of `n` qualities; all of it where they are not numbered.
fn bits(n: usize) -> usize {
    match n {
        0 => 8,
        1 => 0,
        2 => 1,
        3..=4 => 2,
        _ => 4,
    }
}

/// Bytes of a packed read of so many letters, so many of them none of ACGT, with so many different qualities.
pub(crate) fn packed_bytes(letters: u64, unknown: u64, kinds: usize) -> u64 {
    let kinds = if kinds > NUMBERED { 0 } else { kinds };
    let quals = (letters * bits(kinds) as u64).div_ceil(8);
    (HEAD + kinds) as u64 + letters.div_ceil(4) + quals + UNKNOWN as u64 * unknown
}

/// Whether a letter is one of four.
#[inline(always)]
fn is_base(letter: u8) -> bool {
    (letter == b'A') | (letter == b'C') | (letter == b'G') | (letter == b'T')
}

/// Letters that are packed at once.
const LANES: usize = 64;

/// Packs reads; keeps its memory between them.
#[derive(Debug, Default)]
pub struct Packer {
    /// The letters and the qualities in hand.
    letters: Lanes,
    quals: Lanes,
}

/// Bytes, filled up to whole lanes.
#[derive(Debug, Default)]
struct Lanes(Vec<[u8; LANES]>);

impl Packer {
    /// Appends a read to `out`, with any letters and as many qualities of any kind.
    pub fn pack(&mut self, seq: &[u8], qual: &[u8], out: &mut Vec<u8>) {
        widest(
            #[inline(always)]
            || self.pack_scalar(seq, qual, out),
        );
    }

    /// [`Packer::pack`], whatever the processor.
    #[inline(always)]
    fn pack_scalar(&mut self, seq: &[u8], qual: &[u8], out: &mut Vec<u8>) {
        let Packer { letters, quals } = self;
        letters.hold(seq, b'A');
        quals.hold(qual, qual.first().copied().unwrap_or_default());
        let (kinds, n) = kinds_of(qual);
        out.extend_from_slice(&(seq.len() as u32).to_le_bytes());
        out.push(n as u8);
        out.extend_from_slice(&kinds[..n]);
        // As `dna::code` by arithmetic.
        letters.put::<2>(seq.len(), out, |letters, codes| {
            for (code, letter) in codes.iter_mut().zip(letters) {
                *code = ((letter >> 1) ^ (letter >> 2)) & 3;
            }
        });
        let number = |quals: &[u8; LANES], numbers: &mut [u8; LANES]| {
            for &kind in &kinds[1..n] {
                for (number, &qual) in numbers.iter_mut().zip(quals) {
                    *number += u8::from(qual >= kind);
                }
            }
        };
        match bits(n) {
            0 => {}
            1 => quals.put::<1>(qual.len(), out, number),
            2 => quals.put::<2>(qual.len(), out, number),
            4 => quals.put::<4>(qual.len(), out, number),
            _ => out.extend_from_slice(qual),
        }
        if seq.iter().fold(false, |any, &letter| any | !is_base(letter)) {
            for (at, &letter) in (0u32..).zip(seq).filter(|(_, letter)| !is_base(**letter)) {
                out.extend_from_slice(&at.to_le_bytes());
                out.push(letter);
            }
        }
    }
}

impl Lanes {
    #[inline(always)]
    fn hold(&mut self, values: &[u8], filled: u8) {
        let (whole, rest) = values.as_chunks();
        self.0.clear();
        self.0.extend_from_slice(whole);
        if !rest.is_empty() {
            let mut last = [filled; LANES];
            last[..rest.len()].copy_from_slice(rest);
            self.0.push(last);
        }
    }

    /// Appends the numbers, of so many bits each, that `number` gives to what is held, which are `values`.
    #[inline(always)]
    fn put<const BITS: usize>(
        &self,
        values: usize,
        out: &mut Vec<u8>,
        number: impl Fn(&[u8; LANES], &mut [u8; LANES]),
    ) {
        let end = out.len() + (values * BITS).div_ceil(8);
        for values in &self.0 {
            let (mut numbers, mut packed) = ([0; LANES], [0; LANES]);
            number(values, &mut numbers);
            for (to, eight) in packed.chunks_exact_mut(BITS).zip(numbers.as_chunks().0) {
                to.copy_from_slice(&squeezed::<BITS>(*eight).to_le_bytes()[..BITS]);
            }
            out.extend_from_slice(&packed[..LANES * BITS / 8]);
        }
        out.truncate(end);
    }
}

/// The different qualities, ascending, and how many they are; none if they are too many to be numbered.
#[inline(always)]
fn kinds_of(quals: &[u8]) -> ([u8; NUMBERED], usize) {
    /// The first letter of a quality.
    const LETTER: u8 = 33;
    let (mut there, mut any, mut beyond) = (0u64, 0, 0);
    for &qual in quals {
        there |= 1 << (qual % 64);
        any |= qual;
        beyond |= qual.wrapping_sub(LETTER);
    }
    // Numbers below 64, or letters of such: no two have one bit.
    let first = match () {
        () if any < 64 => 0,
        () if beyond < 64 => LETTER,
        () => return many_kinds_of(quals),
    };
    let (mut kinds, n) = ([0; NUMBERED], there.count_ones() as usize);
    if n > NUMBERED {
        return (kinds, 0);
    }
    let mut there = there.rotate_right(first.into());
    for kind in &mut kinds[..n] {
        *kind = first + there.trailing_zeros() as u8;
        there &= there - 1;
    }
    (kinds, n)
}

/// The same of qualities that no sequencer writes.
#[cold]
fn many_kinds_of(quals: &[u8]) -> ([u8; NUMBERED], usize) {
    let mut there = [false; 256];
    quals.iter().for_each(|&qual| there[usize::from(qual)] = true);
    let (mut kinds, mut n) = ([0; NUMBERED], 0);
    for kind in (0..=255).filter(|&kind: &u8| there[usize::from(kind)]) {
        let Some(next) = kinds.get_mut(n) else { return (kinds, 0) };
        *next = kind;
        n += 1;
    }
    (kinds, n)
}

/// Eight numbers of so many bits (1, 2 or 4) behind each other, the first in the lowest bits.
#[inline(always)]
fn squeezed<const BITS: usize>(eight: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(eight);
    let two = (word | word >> (8 - BITS)) & (0x0001_0001_0001_0001 * ((1 << (2 * BITS)) - 1));
    let four = (two | two >> (16 - 2 * BITS)) & (0x0000_0001_0000_0001 * ((1 << (4 * BITS)) - 1));
    (four | four >> (32 - 4 * BITS)) & ((1 << (8 * BITS)) - 1)
}

/// What `letters` says of the first `n` values of so many bits.
fn get_all(bytes: &[u8], bits: usize, n: usize, letters: &[u8; 256], out: &mut Vec<u8>) {
    out.clear();
    if bits == 0 {
        out.resize(n, letters[0]);
        return;
    }
    let (each, mask) = (8 / bits, 0xff >> (8 - bits));
    for &byte in bytes {
        out.extend((0..each).map(|i| letters[usize::from(byte >> (i * bits) & mask)]));
    }
    out.truncate(n);
}

fn get(bytes: &[u8], at: usize, bits: usize) -> u8 {
    if bits == 0 { 0 } else { bytes[at * bits / 8] >> (at * bits % 8) & (0xff >> (8 - bits)) }
}

/// The four letters of each byte of packed bases.
const LETTERS: [[u8; 4]; 256] = {
    let mut letters = [[0; 4]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut i = 0;
        while i < 4 {
            letters[byte][i] = b"ACGT"[byte >> (2 * i) & 3];
            i += 1;
        }
        byte += 1;
    }
    letters
};

/// A packed read where it lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedRef<'a> {
    len: usize,
    /// The different qualities.
    kinds: &'a [u8],
    letters: &'a [u8],
    quals: &'a [u8],
    unknown: &'a [u8],
}

impl<'a> PackedRef<'a> {
    /// Of these bytes, all of them, if they can be one.
    pub fn of(bytes: &'a [u8]) -> Option<PackedRef<'a>> {
        let (len, rest) = bytes.split_first_chunk()?;
        let (&n, rest) = rest.split_first()?;
        let (len, n) = (u32::from_le_bytes(*len) as usize, usize::from(n));
        let (kinds, rest) = rest.split_at_checked(n)?;
        let (letters, rest) = rest.split_at_checked(len.div_ceil(4))?;
        let (quals, unknown) = rest.split_at_checked(len.checked_mul(bits(n))?.div_ceil(8))?;
        let packed = PackedRef { len, kinds, letters, quals, unknown };
        let whole = unknown.len().is_multiple_of(UNKNOWN);
        (n <= NUMBERED && whole && packed.unknown().all(|(at, _)| at < len)).then_some(packed)
    }

    /// Where letters stand that are none of four, and which.
    fn unknown(self) -> impl Iterator<Item = (usize, u8)> {
        let entry =
            |&[a, b, c, d, letter]: &[u8; UNKNOWN]| (u32::from_le_bytes([a, b, c, d]) as usize, letter);
        self.unknown.as_chunks().0.iter().map(entry)
    }

    /// Its letters, in place of what is in `into`.
    pub fn bases_into(self, into: &mut Vec<u8>) {
        into.clear();
        into.reserve(4 * self.letters.len());
        self.letters.iter().for_each(|&byte| into.extend_from_slice(&LETTERS[usize::from(byte)]));
        into.truncate(self.len);
        self.unknown().for_each(|(at, letter)| into[at] = letter);
    }

    /// Its qualities, in place of what is in `into`.
    pub fn quals_into(self, into: &mut Vec<u8>) {
        let mut numbered = std::array::from_fn(|q| q as u8);
        numbered[..self.kinds.len()].copy_from_slice(self.kinds);
        get_all(self.quals, bits(self.kinds.len()), self.len, &numbered, into);
    }

    /// The quality of a base.
    ///
    /// # Panics
    /// It is beyond the end.
    pub fn qual(self, at: usize) -> u8 {
        let number = get(self.quals, at, bits(self.kinds.len()));
        // Where they are not numbered it is one itself.
        self.kinds.get(usize::from(number)).copied().unwrap_or(number)
    }

    /// The read as it was.
    pub fn unpack(self) -> Read {
        let mut read = Read::default();
        self.bases_into(&mut read.seq);
        self.quals_into(&mut read.qual);
        read
    }
}

impl Packed {
    /// Upper-case `seq` and as many Phred qualities (no offset).
    pub fn new(seq: &[u8], qual: &[u8]) -> Packed {
        let mut bytes = Vec::new();
        Packer::default().pack(seq, qual, &mut bytes);
        Packed(bytes.into())
    }

    /// Bases.
    pub fn len(&self) -> usize {
        u32::from_le_bytes([self.0[0], self.0[1], self.0[2], self.0[3]]) as usize
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The read where it lies.
    fn parts(&self) -> PackedRef<'_> {
        let (len, kinds) = (self.len(), usize::from(self.0[4]));
        let (kinds, rest) = self.0[HEAD..].split_at(kinds);
        let (letters, rest) = rest.split_at(len.div_ceil(4));
        let (quals, unknown) = rest.split_at((len * bits(kinds.len())).div_ceil(8));
        PackedRef { len, kinds, letters, quals, unknown }
    }

    /// Some of its bases.
    ///
    /// # Panics
    /// They are beyond its end.
    pub fn bases(&self, range: Range<usize>) -> Vec<u8> {
        let packed = self.parts();
        let mut seq: Vec<u8> = range.clone().map(|at| base(get(packed.letters, at, 2))).collect();
        for (at, letter) in packed.unknown().filter(|(at, _)| range.contains(at)) {
            seq[at - range.start] = letter;
        }
        seq
    }

    /// All qualities.
    pub fn quals(&self) -> impl Iterator<Item = u8> {
        let packed = self.parts();
        (0..packed.len).map(move |at| packed.qual(at))
    }

    /// The quality of a base.
    ///
    /// # Panics
    /// It is beyond the end.
    pub fn qual(&self, at: usize) -> u8 {
        self.parts().qual(at)
    }

    /// The read as it was.
    pub fn unpack(&self) -> Read {
        self.parts().unpack()
    }
}

impl From<&Read> for Packed {
    fn from(read: &Read) -> Packed {
        Packed::new(&read.seq, &read.qual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_as_it_was() {
        let mut dice = 7u64;
        let mut roll = |n: u64| {
            dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (dice >> 33) % n
        };
        let mut sizes = Vec::new();
        for kinds in [1, 2, 3, 4, 5, 16, 17, 60, 250] {
            for length in [0, 1, 3, 4, 5, 31, 150, 251] {
                let seq: Vec<u8> = (0..length)
                    .map(|_| if roll(40) == 0 { b'N' } else { b"ACGT"[roll(4) as usize] })
                    .collect();
                let qual: Vec<u8> = (0..length).map(|_| roll(kinds) as u8).collect();
                let packed = Packed::new(&seq, &qual);
                assert_eq!(packed.unpack(), Read { seq: seq.clone(), qual: qual.clone() });
                assert_eq!((packed.len(), packed.is_empty()), (seq.len(), seq.is_empty()));
                for at in 0..seq.len() {
                    assert_eq!(packed.qual(at), qual[at]);
                    assert_eq!(packed.bases(at..seq.len()), seq[at..]);
                }
                assert_eq!(Packed::new(&seq, &qual), packed);
                if length == 150 && !seq.contains(&b'N') {
                    sizes.push((kinds, packed.0.len()));
                }
            }
        }
        let bytes = Packed::new(&[b'A'; 150], &[2, 11, 25, 37].repeat(38)[..150]).0.len();
        assert_eq!(bytes, 5 + 4 + 38 + 38, "{sizes:?}");
        let written = postcard::to_allocvec(&Packed::new(b"ACRT", &[30, 7, 30, 2]).unpack()).unwrap();
        assert_eq!(written.len(), 1 + 5 + 3 + 1 + 1 + 5);
        let read = |bytes: &[u8]| postcard::from_bytes::<Read>(bytes).ok();
        assert_eq!(read(&written), Some(Read { seq: b"ACRT".to_vec(), qual: vec![30, 7, 30, 2] }));
        for at in 0..written.len() {
            // Whatever is read, nothing goes wrong.
            (0..=255).for_each(|byte| drop(read(&[&written[..at], &[byte], &written[at + 1..]].concat())));
            assert_eq!(read(&written[..at]), None);
        }
        let odd = Packed::new(b"ACRT", &[30; 4]);
        assert_eq!(odd.unpack().seq, b"ACRT");
    }

    #[test]
    fn any_letters_and_qualities_are_packed_alike_by_all_processors() {
        let all: Vec<u8> = (0..=255).collect();
        for (seq, qual) in [
            (&b"ACGTNacgtn.-*"[..], &all[240..253]),
            (&all, &all),
            (&all[..70], &[255; 70]),
            (&[b'N'; 200], &[0, 255].repeat(100)),
            (b"", b""),
        ] {
            let [mut wide, mut scalar] = [b"before".to_vec(), b"before".to_vec()];
            Packer::default().pack(seq, qual, &mut wide);
            Packer::default().pack_scalar(seq, qual, &mut scalar);
            assert_eq!(wide, scalar);
            let packed = PackedRef::of(&wide[6..]).unwrap();
            assert_eq!(packed.unpack(), Read { seq: seq.to_vec(), qual: qual.to_vec() });
            let unknown = seq.iter().filter(|&&letter| !is_base(letter)).count();
            let mut kinds = qual.to_vec();
            kinds.sort_unstable();
            kinds.dedup();
            let bytes = packed_bytes(seq.len() as u64, unknown as u64, kinds.len());
            assert_eq!(bytes, wide.len() as u64 - 6);
        }
    }
}
