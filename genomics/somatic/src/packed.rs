//! Reads in few bytes: a large genome has millions of pairs with interesting k-mers, all of them in memory until they are grouped.

use std::ops::Range;

use genuma_reads::Mate;
use genuma_reads::dna::{NOT_A_BASE, base, code};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Read, D::Error> {
        Packed::deserialize(from).map(|packed| packed.unpack())
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
        Packed::of_bytes(bytes.into_vec()).ok_or_else(|| D::Error::custom("no packed read"))
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
        Read { seq: genuma_reads::dna::revcomp(&self.seq), qual: self.qual.iter().rev().copied().collect() }
    }
}

/// A read: bases in two bits each, qualities in as few as they need.
///
/// ```text
/// length (4 bytes), different qualities n (1 byte), these (n bytes) | bases, four a byte | qualities, 0, 1, 2 or 4 bits each, numbers of the
/// different ones, or 8 bits each with n = 0 | position (4 bytes) and letter of each base that is none of four
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

/// Puts `values` of so many bits, which divide 8, one behind the other.
fn put(bytes: &mut [u8], bits: usize, mut values: impl ExactSizeIterator<Item = u8>) {
    if let Some(each) = 8usize.checked_div(bits) {
        for byte in bytes {
            *byte =
                (0..).zip(values.by_ref().take(each)).fold(0, |byte, (i, value)| byte | value << (i * bits));
        }
    }
}

/// What `letters` says of the first `n` values of so many bits.
fn get_all(bytes: &[u8], bits: usize, n: usize, letters: &[u8; 256]) -> Vec<u8> {
    if bits == 0 {
        return vec![letters[0]; n];
    }
    let (each, mask) = (8 / bits, 0xff >> (8 - bits));
    let mut out = Vec::with_capacity(bytes.len() * each);
    for &byte in bytes {
        out.extend((0..each).map(|i| letters[usize::from(byte >> (i * bits) & mask)]));
    }
    out.truncate(n);
    out
}

fn get(bytes: &[u8], at: usize, bits: usize) -> u8 {
    if bits == 0 { 0 } else { bytes[at * bits / 8] >> (at * bits % 8) & (0xff >> (8 - bits)) }
}

impl Packed {
    /// Upper-case `seq` and as many Phred qualities (no offset).
    pub fn new(seq: &[u8], qual: &[u8]) -> Packed {
        let mut there = [false; 256];
        qual.iter().for_each(|&q| there[usize::from(q)] = true);
        let mut kinds: Vec<u8> = (0..=255).filter(|&q| there[usize::from(q)]).collect();
        if kinds.len() > NUMBERED {
            kinds.clear();
        }
        let bits = bits(kinds.len());
        let unknown: Vec<(usize, u8)> =
            seq.iter().copied().enumerate().filter(|(_, b)| code(*b) == NOT_A_BASE).collect();
        let (letters, quals) = (HEAD + kinds.len(), seq.len().div_ceil(4));
        let rest = letters + quals + (qual.len() * bits).div_ceil(8);
        let mut bytes = vec![0; rest + UNKNOWN * unknown.len()];
        bytes[..4].copy_from_slice(&(seq.len() as u32).to_le_bytes());
        bytes[4] = kinds.len() as u8;
        bytes[HEAD..letters].copy_from_slice(&kinds);
        let (packed, others) = bytes[letters..].split_at_mut(quals);
        put(packed, 2, seq.iter().map(|&b| code(b) & 3));
        let mut numbers: [u8; 256] = std::array::from_fn(|q| q as u8);
        (0..).zip(&kinds).for_each(|(number, &q)| numbers[usize::from(q)] = number);
        put(others, bits, qual.iter().map(|&q| numbers[usize::from(q)]));
        for (entry, (at, letter)) in bytes[rest..].chunks_exact_mut(UNKNOWN).zip(unknown) {
            entry[..4].copy_from_slice(&(at as u32).to_le_bytes());
            entry[4] = letter;
        }
        Packed(bytes.into())
    }

    /// What was packed as these bytes, if they can be.
    fn of_bytes(bytes: Vec<u8>) -> Option<Packed> {
        let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        let kinds = usize::from(*bytes.get(HEAD - 1)?);
        let rest = HEAD + kinds + length.div_ceil(4) + (length * bits(kinds)).div_ceil(8);
        let unknown = bytes.get(rest..)?.chunks_exact(UNKNOWN);
        let within =
            |entry: &[u8]| entry.first_chunk().is_some_and(|at| (u32::from_le_bytes(*at) as usize) < length);
        let fits = kinds <= NUMBERED && unknown.remainder().is_empty() && unknown.into_iter().all(within);
        fits.then(|| Packed(bytes.into()))
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

    /// The different qualities, the packed bases, the packed qualities and the unknown bases.
    fn parts(&self) -> [&[u8]; 4] {
        let (n, kinds) = (self.len(), usize::from(self.0[4]));
        let (kinds, rest) = self.0[HEAD..].split_at(kinds);
        let (letters, rest) = rest.split_at(n.div_ceil(4));
        let (quals, unknown) = rest.split_at((n * bits(kinds.len())).div_ceil(8));
        [kinds, letters, quals, unknown]
    }

    /// Some of its bases.
    ///
    /// # Panics
    /// They are beyond its end.
    pub fn bases(&self, range: Range<usize>) -> Vec<u8> {
        let [_, letters, _, unknown] = self.parts();
        let mut seq: Vec<u8> = range.clone().map(|at| base(get(letters, at, 2))).collect();
        for entry in unknown.chunks_exact(UNKNOWN) {
            let at = u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]) as usize;
            if range.contains(&at) {
                seq[at - range.start] = entry[4];
            }
        }
        seq
    }

    /// All qualities.
    pub fn quals(&self) -> impl Iterator<Item = u8> {
        let [kinds, _, quals, _] = self.parts();
        let bits = bits(kinds.len());
        (0..self.len()).map(move |at| {
            let number = get(quals, at, bits);
            if kinds.is_empty() { number } else { kinds[usize::from(number)] }
        })
    }

    /// The quality of a base.
    ///
    /// # Panics
    /// It is beyond the end.
    pub fn qual(&self, at: usize) -> u8 {
        let [kinds, _, quals, _] = self.parts();
        let number = get(quals, at, bits(kinds.len()));
        if kinds.is_empty() { number } else { kinds[usize::from(number)] }
    }

    /// The read as it was.
    pub fn unpack(&self) -> Read {
        let [kinds, letters, quals, unknown] = self.parts();
        let (n, mut bases, mut numbered) = (self.len(), [0; 256], std::array::from_fn(|q| q as u8));
        (0..4).for_each(|code| bases[usize::from(code)] = base(code));
        numbered[..kinds.len()].copy_from_slice(kinds);
        let mut seq = get_all(letters, 2, n, &bases);
        for entry in unknown.chunks_exact(UNKNOWN) {
            seq[u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]) as usize] = entry[4];
        }
        Read { seq, qual: get_all(quals, bits(kinds.len()), n, &numbered) }
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
}
