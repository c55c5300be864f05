//! Reads packed into few bytes: two bits per base, and as few bits per quality as the read needs. Reads that wait for
//! their mates, and reads that are kept for later passes, are packed.

use std::ops::Range;

use genuma_machine::simd_and_prefetch::run_with_widest_simd;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::dna::{self, decode_base};
use crate::pair_batch::Mate;

/// A read that owns its bases and qualities. It is serialised in packed form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct OwnedRead {
    /// Bases in upper case.
    pub seq: Vec<u8>,
    /// Phred qualities without offset.
    pub qual: Vec<u8>,
}

impl Serialize for OwnedRead {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        PackedRead::from(self).serialize(to)
    }
}

impl Serialize for PackedRead {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for PackedRead {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PackedRead, D::Error> {
        let bytes: serde_bytes::ByteBuf = Deserialize::deserialize(from)?;
        let is_valid = PackedReadRef::from_packed_bytes(&bytes).is_some();
        is_valid.then(|| PackedRead(bytes.into_vec().into())).ok_or_else(|| D::Error::custom("no packed read"))
    }
}

impl<'de> Deserialize<'de> for OwnedRead {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<OwnedRead, D::Error> {
        let bytes: serde_bytes::ByteBuf = Deserialize::deserialize(from)?;
        let read = PackedReadRef::from_packed_bytes(&bytes).map(|packed| packed.unpack());
        read.ok_or_else(|| D::Error::custom("no packed read"))
    }
}

impl OwnedRead {
    /// Copies a mate out of its batch: bases in upper case, Phred qualities without offset.
    pub fn copy_mate_to_owned_read(mate: Mate<'_>) -> OwnedRead {
        OwnedRead { seq: mate.seq.to_ascii_uppercase(), qual: mate.qual.iter().map(|q| q.saturating_sub(33)).collect() }
    }

    /// The read as seen from the other strand: bases reverse-complemented, qualities reversed.
    pub fn reverse_complement(&self) -> OwnedRead {
        OwnedRead { seq: dna::reverse_complement(&self.seq), qual: self.qual.iter().rev().copied().collect() }
    }
}

/// A read packed into few bytes.
///
/// ```text
/// number of bases (4 bytes), number n of distinct qualities (1 byte), these qualities (n bytes) | bases, four per byte |
/// qualities: indices into the distinct qualities, 0, 1, 2 or 4 bits each; or 8 bits each if n = 0 |
/// exceptions: position (4 bytes) and byte of each letter other than A, C, G or T
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackedRead(Box<[u8]>);

/// Maximum number of distinct qualities that are stored as indices.
const MAX_INDEXED_QUALITIES: usize = 16;
/// Number of bytes of a packed read before the distinct qualities.
const HEADER_BYTES: usize = 5;
/// Number of bytes of an exception: position and letter of a base other than A, C, G or T.
const EXCEPTION_BYTES: usize = 5;

/// Number of bits per quality in a packed read with `n` distinct qualities: the size of an index into them, or 8 if
/// `n` is 0, where the qualities are stored directly.
fn bits_per_quality(n: usize) -> usize {
    match n {
        0 => 8,
        1 => 0,
        2 => 1,
        3..=4 => 2,
        _ => 4,
    }
}

/// Size in bytes of a packed read with this number of bases, of exceptions (bases other than A, C, G and T), and of
/// distinct qualities.
pub(crate) fn packed_read_len_bytes(letters: u64, num_exceptions: u64, num_qualities: usize) -> u64 {
    let kinds = if num_qualities > MAX_INDEXED_QUALITIES { 0 } else { num_qualities };
    let quals = (letters * bits_per_quality(kinds) as u64).div_ceil(8);
    (HEADER_BYTES + kinds) as u64 + letters.div_ceil(4) + quals + EXCEPTION_BYTES as u64 * num_exceptions
}

/// Whether a letter is A, C, G or T.
#[inline(always)]
fn is_base(letter: u8) -> bool {
    (letter == b'A') | (letter == b'C') | (letter == b'G') | (letter == b'T')
}

/// Number of bases that are packed in one step.
const BYTES_PER_STEP: usize = 64;

/// Packs reads. The memory is reused for all reads.
#[derive(Debug, Default)]
pub(crate) struct ReadPacker {
    /// The letters and qualities of the current read.
    letters: PaddedBytes,
    quals: PaddedBytes,
}

/// Bytes that are padded to a multiple of [`BYTES_PER_STEP`].
#[derive(Debug, Default)]
struct PaddedBytes(Vec<[u8; BYTES_PER_STEP]>);

impl ReadPacker {
    /// Appends a packed read to `out`. Any letters and qualities are accepted, but `qual` must be as long as `seq`.
    pub fn pack(&mut self, seq: &[u8], qual: &[u8], out: &mut Vec<u8>) {
        run_with_widest_simd(
            #[inline(always)]
            || self.pack_scalar(seq, qual, out),
        );
    }

    /// Like [`ReadPacker::pack`], without a choice of vector instructions.
    #[inline(always)]
    fn pack_scalar(&mut self, seq: &[u8], qual: &[u8], out: &mut Vec<u8>) {
        let ReadPacker { letters, quals } = self;
        letters.load(seq, b'A');
        quals.load(qual, qual.first().copied().unwrap_or_default());
        let (kinds, n) = distinct_qualities(qual);
        out.extend_from_slice(&(seq.len() as u32).to_le_bytes());
        out.push(n as u8);
        out.extend_from_slice(&kinds[..n]);
        // [`dna::encode_base`] by arithmetic.
        letters.append_packed::<2>(seq.len(), out, |letters, codes| {
            for (code, letter) in codes.iter_mut().zip(letters) {
                *code = ((letter >> 1) ^ (letter >> 2)) & 3;
            }
        });
        let number = |quals: &[u8; BYTES_PER_STEP], numbers: &mut [u8; BYTES_PER_STEP]| {
            for &kind in &kinds[1..n] {
                for (number, &qual) in numbers.iter_mut().zip(quals) {
                    *number += u8::from(qual >= kind);
                }
            }
        };
        match bits_per_quality(n) {
            0 => {}
            1 => quals.append_packed::<1>(qual.len(), out, number),
            2 => quals.append_packed::<2>(qual.len(), out, number),
            4 => quals.append_packed::<4>(qual.len(), out, number),
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

impl PaddedBytes {
    #[inline(always)]
    fn load(&mut self, values: &[u8], filled: u8) {
        let (chunks, rest) = values.as_chunks();
        self.0.clear();
        self.0.extend_from_slice(chunks);
        if !rest.is_empty() {
            let mut last = [filled; BYTES_PER_STEP];
            last[..rest.len()].copy_from_slice(rest);
            self.0.push(last);
        }
    }

    /// Computes `values` numbers of `BITS` bits each from bytes with `number`, and appends them, packed.
    #[inline(always)]
    fn append_packed<const BITS: usize>(
        &self,
        values: usize,
        out: &mut Vec<u8>,
        number: impl Fn(&[u8; BYTES_PER_STEP], &mut [u8; BYTES_PER_STEP]),
    ) {
        let end = out.len() + (values * BITS).div_ceil(8);
        for values in &self.0 {
            let (mut numbers, mut packed) = ([0; BYTES_PER_STEP], [0; BYTES_PER_STEP]);
            number(values, &mut numbers);
            for (to, eight) in packed.chunks_exact_mut(BITS).zip(numbers.as_chunks().0) {
                to.copy_from_slice(&squeeze_bits::<BITS>(*eight).to_le_bytes()[..BITS]);
            }
            out.extend_from_slice(&packed[..BYTES_PER_STEP * BITS / 8]);
        }
        out.truncate(end);
    }
}

/// The distinct qualities in ascending order, and their number; the number is 0 if they are too many to be stored as
/// indices.
#[inline(always)]
fn distinct_qualities(quals: &[u8]) -> ([u8; MAX_INDEXED_QUALITIES], usize) {
    /// Lowest quality byte (Phred + 33).
    const LOWEST_QUALITY_BYTE: u8 = 33;
    let (mut present, mut any, mut beyond) = (0u64, 0, 0);
    for &qual in quals {
        present |= 1 << (qual % 64);
        any |= qual;
        beyond |= qual.wrapping_sub(LOWEST_QUALITY_BYTE);
    }
    // Values below 64, or quality bytes whose values are: each has its own bit of 64.
    let first = match () {
        () if any < 64 => 0,
        () if beyond < 64 => LOWEST_QUALITY_BYTE,
        () => return distinct_qualities_of_any_byte(quals),
    };
    let (mut kinds, n) = ([0; MAX_INDEXED_QUALITIES], present.count_ones() as usize);
    if n > MAX_INDEXED_QUALITIES {
        return (kinds, 0);
    }
    let mut present = present.rotate_right(first.into());
    for kind in &mut kinds[..n] {
        *kind = first + present.trailing_zeros() as u8;
        present &= present - 1;
    }
    (kinds, n)
}

/// Like [`distinct_qualities`], for quality bytes outside the range that sequencers write.
#[cold]
fn distinct_qualities_of_any_byte(quals: &[u8]) -> ([u8; MAX_INDEXED_QUALITIES], usize) {
    let mut present = [false; 256];
    quals.iter().for_each(|&qual| present[usize::from(qual)] = true);
    let (mut kinds, mut n) = ([0; MAX_INDEXED_QUALITIES], 0);
    for kind in (0..=255).filter(|&kind: &u8| present[usize::from(kind)]) {
        let Some(next) = kinds.get_mut(n) else { return (kinds, 0) };
        *next = kind;
        n += 1;
    }
    (kinds, n)
}

/// Packs eight numbers of `BITS` bits (1, 2 or 4) next to each other, the first in the lowest bits.
#[inline(always)]
fn squeeze_bits<const BITS: usize>(eight: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(eight);
    let two = (word | word >> (8 - BITS)) & (0x0001_0001_0001_0001 * ((1 << (2 * BITS)) - 1));
    let four = (two | two >> (16 - 2 * BITS)) & (0x0000_0001_0000_0001 * ((1 << (4 * BITS)) - 1));
    (four | four >> (32 - 4 * BITS)) & ((1 << (8 * BITS)) - 1)
}

/// Replaces `out` by `letters[value]` for each of `n` packed values of `bits` bits.
fn unpack_values(bytes: &[u8], bits: usize, n: usize, letters: &[u8; 256], out: &mut Vec<u8>) {
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

fn unpack_value(bytes: &[u8], at: usize, bits: usize) -> u8 {
    if bits == 0 { 0 } else { bytes[at * bits / 8] >> (at * bits % 8) & (0xff >> (8 - bits)) }
}

/// The four bases in each byte of packed bases.
const BASES_OF_BYTE: [[u8; 4]; 256] = {
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

/// The fields of a packed read, borrowed from its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedReadRef<'a> {
    len: usize,
    qualities: &'a [u8],
    packed_bases: &'a [u8],
    packed_quals: &'a [u8],
    exceptions: &'a [u8],
}

impl<'a> PackedReadRef<'a> {
    /// Splits the bytes of a packed read into its fields; `None` if the bytes are not exactly one packed read.
    pub fn from_packed_bytes(bytes: &'a [u8]) -> Option<PackedReadRef<'a>> {
        let (len, rest) = bytes.split_first_chunk()?;
        let (&n, rest) = rest.split_first()?;
        let (len, n) = (u32::from_le_bytes(*len) as usize, usize::from(n));
        let (kinds, rest) = rest.split_at_checked(n)?;
        let (letters, rest) = rest.split_at_checked(len.div_ceil(4))?;
        let (quals, unknown) = rest.split_at_checked(len.checked_mul(bits_per_quality(n))?.div_ceil(8))?;
        let packed =
            PackedReadRef { len, qualities: kinds, packed_bases: letters, packed_quals: quals, exceptions: unknown };
        let is_valid = unknown.len().is_multiple_of(EXCEPTION_BYTES);
        (n <= MAX_INDEXED_QUALITIES && is_valid && packed.exceptions().all(|(at, _)| at < len)).then_some(packed)
    }

    /// Positions and letters of the exceptions (bases other than A, C, G and T).
    fn exceptions(self) -> impl Iterator<Item = (usize, u8)> {
        let entry = |&[a, b, c, d, letter]: &[u8; EXCEPTION_BYTES]| (u32::from_le_bytes([a, b, c, d]) as usize, letter);
        self.exceptions.as_chunks().0.iter().map(entry)
    }

    /// Replaces the contents of `into` by the bases.
    pub fn unpack_bases(self, into: &mut Vec<u8>) {
        into.clear();
        into.reserve(4 * self.packed_bases.len());
        self.packed_bases.iter().for_each(|&byte| into.extend_from_slice(&BASES_OF_BYTE[usize::from(byte)]));
        into.truncate(self.len);
        self.exceptions().for_each(|(at, letter)| into[at] = letter);
    }

    /// Replaces the contents of `into` by the qualities.
    pub(crate) fn unpack_quals(self, into: &mut Vec<u8>) {
        let mut numbered = std::array::from_fn(|q| q as u8);
        numbered[..self.qualities.len()].copy_from_slice(self.qualities);
        unpack_values(self.packed_quals, bits_per_quality(self.qualities.len()), self.len, &numbered, into);
    }

    /// The quality byte of base `at`, as it was packed. `at` must be less than the number of bases; otherwise the call
    /// may panic.
    pub fn quality_at(self, at: usize) -> u8 {
        let number = unpack_value(self.packed_quals, at, bits_per_quality(self.qualities.len()));
        // Qualities that are not indexed are stored as they are.
        self.qualities.get(usize::from(number)).copied().unwrap_or(number)
    }

    /// Unpacks the read.
    pub fn unpack(self) -> OwnedRead {
        let mut read = OwnedRead::default();
        self.unpack_bases(&mut read.seq);
        self.unpack_quals(&mut read.qual);
        read
    }
}

impl PackedRead {
    /// Packs upper-case bases and as many Phred qualities without offset.
    pub fn new(seq: &[u8], qual: &[u8]) -> PackedRead {
        let mut bytes = Vec::new();
        ReadPacker::default().pack(seq, qual, &mut bytes);
        PackedRead(bytes.into())
    }

    /// Number of bases of the read, N included.
    pub fn len(&self) -> usize {
        u32::from_le_bytes([self.0[0], self.0[1], self.0[2], self.0[3]]) as usize
    }

    /// Whether the read has no bases.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of the packed read in bytes.
    pub fn len_bytes(&self) -> usize {
        self.0.len()
    }

    /// The fields of the packed read: length, bases, qualities, exceptions.
    fn as_packed_ref(&self) -> PackedReadRef<'_> {
        let (len, kinds) = (self.len(), usize::from(self.0[4]));
        let (kinds, rest) = self.0[HEADER_BYTES..].split_at(kinds);
        let (letters, rest) = rest.split_at(len.div_ceil(4));
        let (quals, unknown) = rest.split_at((len * bits_per_quality(kinds.len())).div_ceil(8));
        PackedReadRef { len, qualities: kinds, packed_bases: letters, packed_quals: quals, exceptions: unknown }
    }

    /// The bases in a range of positions, which must not extend over the end of the read; otherwise the call may panic.
    pub fn unpack_bases_in_range(&self, range: Range<usize>) -> Vec<u8> {
        let packed = self.as_packed_ref();
        let mut seq: Vec<u8> = range.clone().map(|at| decode_base(unpack_value(packed.packed_bases, at, 2))).collect();
        for (at, letter) in packed.exceptions().filter(|(at, _)| range.contains(at)) {
            seq[at - range.start] = letter;
        }
        seq
    }

    /// The Phred qualities of all bases, without offset, in read order.
    pub fn qualities(&self) -> impl Iterator<Item = u8> {
        let packed = self.as_packed_ref();
        (0..packed.len).map(move |at| packed.quality_at(at))
    }

    /// The Phred quality of base `at`, which must be less than the number of bases; otherwise the call may panic.
    pub fn quality_at(&self, at: usize) -> u8 {
        self.as_packed_ref().quality_at(at)
    }

    /// Unpacks the read.
    pub fn unpack(&self) -> OwnedRead {
        self.as_packed_ref().unpack()
    }
}

impl From<&OwnedRead> for PackedRead {
    fn from(read: &OwnedRead) -> PackedRead {
        PackedRead::new(&read.seq, &read.qual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_reads_unpack_unchanged() {
        let mut dice = 7u64;
        let mut roll = |n: u64| {
            dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (dice >> 33) % n
        };
        let mut sizes = Vec::new();
        for kinds in [1, 2, 3, 4, 5, 16, 17, 60, 250] {
            for length in [0, 1, 3, 4, 5, 31, 150, 251] {
                let seq: Vec<u8> =
                    (0..length).map(|_| if roll(40) == 0 { b'N' } else { b"ACGT"[roll(4) as usize] }).collect();
                let qual: Vec<u8> = (0..length).map(|_| roll(kinds) as u8).collect();
                let packed = PackedRead::new(&seq, &qual);
                assert_eq!(packed.unpack(), OwnedRead { seq: seq.clone(), qual: qual.clone() });
                assert_eq!((packed.len(), packed.is_empty()), (seq.len(), seq.is_empty()));
                for at in 0..seq.len() {
                    assert_eq!(packed.quality_at(at), qual[at]);
                    assert_eq!(packed.unpack_bases_in_range(at..seq.len()), seq[at..]);
                }
                assert_eq!(PackedRead::new(&seq, &qual), packed);
                if length == 150 && !seq.contains(&b'N') {
                    sizes.push((kinds, packed.0.len()));
                }
            }
        }
        let bytes = PackedRead::new(&[b'A'; 150], &[2, 11, 25, 37].repeat(38)[..150]).0.len();
        assert_eq!(bytes, 5 + 4 + 38 + 38, "{sizes:?}");
        let written = postcard::to_allocvec(&PackedRead::new(b"ACRT", &[30, 7, 30, 2]).unpack()).unwrap();
        assert_eq!(written.len(), 1 + 5 + 3 + 1 + 1 + 5);
        let read = |bytes: &[u8]| postcard::from_bytes::<OwnedRead>(bytes).ok();
        assert_eq!(read(&written), Some(OwnedRead { seq: b"ACRT".to_vec(), qual: vec![30, 7, 30, 2] }));
        for at in 0..written.len() {
            // Damaged bytes must not cause a panic.
            (0..=255).for_each(|byte| drop(read(&[&written[..at], &[byte], &written[at + 1..]].concat())));
            assert_eq!(read(&written[..at]), None);
        }
        let odd = PackedRead::new(b"ACRT", &[30; 4]);
        assert_eq!(odd.unpack().seq, b"ACRT");
    }

    #[test]
    fn vector_and_scalar_packing_agree() {
        let all: Vec<u8> = (0..=255).collect();
        for (seq, qual) in [
            (&b"ACGTNacgtn.-*"[..], &all[240..253]),
            (&all, &all),
            (&all[..70], &[255; 70]),
            (&[b'N'; 200], &[0, 255].repeat(100)),
            (b"", b""),
        ] {
            let [mut wide, mut scalar] = [b"before".to_vec(), b"before".to_vec()];
            ReadPacker::default().pack(seq, qual, &mut wide);
            ReadPacker::default().pack_scalar(seq, qual, &mut scalar);
            assert_eq!(wide, scalar);
            let packed = PackedReadRef::from_packed_bytes(&wide[6..]).unwrap();
            assert_eq!(packed.unpack(), OwnedRead { seq: seq.to_vec(), qual: qual.to_vec() });
            let unknown = seq.iter().filter(|&&letter| !is_base(letter)).count();
            let mut kinds = qual.to_vec();
            kinds.sort_unstable();
            kinds.dedup();
            let bytes = packed_read_len_bytes(seq.len() as u64, unknown as u64, kinds.len());
            assert_eq!(bytes, wide.len() as u64 - 6);
        }
    }
}
