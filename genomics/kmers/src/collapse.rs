//! Collapses equal super-k-mers of a bin, so that the k-mers of what many reads share are looked up once.
//!
//! A small table with one place for each hash. Whoever is in a place stays when seen more than once; who was seen
//! once, likely by an error, makes room.

use crate::superkmer::Record;

/// Bytes of a place with counters of `S` samples.
pub const fn piece_bytes<const S: usize>() -> usize {
    size_of::<Piece<S>>()
}

/// A super-k-mer in the strand that is smaller, and how often each sample has it. A free place has no k-mers.
#[derive(Debug, Clone, Copy)]
struct Piece<const S: usize> {
    word: u128,
    kmers: u32,
    counts: [u32; S],
}

/// Super-k-mers on hold.
#[derive(Debug)]
pub struct Collapse<const S: usize> {
    k: u32,
    pieces: Vec<Piece<S>>,
}

impl<const S: usize> Collapse<S> {
    /// Holds up to `pieces` super-k-mers (rounded down to a power of two).
    pub fn new(k: u32, pieces: usize) -> Self {
        Self { k, pieces: vec![Piece::FREE; 1 << pieces.max(2).ilog2()] }
    }

    /// Takes a record in. Calls `out` with one that is to be counted now, and how often each sample has it.
    #[inline]
    pub fn take(&mut self, record: Record<'_>, mut out: impl FnMut(Record<'_>, [u32; S])) {
        let mut counts = [0; S];
        counts[record.sample] = 1;
        let word = record.word(self.k);
        let kmers = record.kmers as u32;
        let hash = (word >> 64) as u64 ^ (word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let bits = self.pieces.len().ilog2();
        let place = &mut self.pieces[(hash >> (64 - bits)) as usize];
        if (place.word, place.kmers) == (word, kmers) {
            let count = &mut place.counts[record.sample];
            *count = count.saturating_add(1);
        } else if place.counts.iter().fold(0u32, |sum, &n| sum.saturating_add(n)) <= 1 {
            let before = std::mem::replace(place, Piece { word, kmers, counts });
            before.release(&mut out);
        } else {
            out(record, counts);
        }
    }

    /// Calls `out` with every record still on hold, and forgets them.
    pub fn drain(&mut self, mut out: impl FnMut(Record<'_>, [u32; S])) {
        self.pieces.iter_mut().for_each(|piece| std::mem::replace(piece, Piece::FREE).release(&mut out));
    }
}

impl<const S: usize> Piece<S> {
    const FREE: Self = Self { word: 0, kmers: 0, counts: [0; S] };

    #[inline]
    fn release(&self, out: &mut impl FnMut(Record<'_>, [u32; S])) {
        if self.kmers > 0 {
            let bases = self.word.to_be_bytes();
            out(Record { sample: 0, kmers: self.kmers as usize, bases: &bases }, self.counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Random;
    use std::collections::BTreeMap;

    #[test]
    fn what_comes_out_adds_up_to_what_went_in() {
        let (mut random, mut expected, mut found) = (Random(1), BTreeMap::new(), BTreeMap::new());
        let mut collapse = Collapse::<2>::new(12, 4);
        let mut outs = 0;
        let mut out = |record: Record<'_>, counts: [u32; 2]| {
            outs += 1;
            record.for_each_key(12, |key| {
                let sum: &mut [u32; 2] = found.entry(key).or_default();
                (0..2).for_each(|i| sum[i] += counts[i]);
            });
        };
        for _ in 0..5000 {
            let bases = [(random.below(3) * random.below(30)) as u8; 20];
            let kmers = [1, 2, 5, 31, 32][random.below(5) as usize];
            let record = Record { sample: random.below(2) as usize, kmers, bases: &bases };
            record.for_each_key(12, |key| expected.entry(key).or_insert([0; 2])[record.sample] += 1);
            collapse.take(record, &mut out);
        }
        collapse.drain(&mut out);
        collapse.drain(&mut out);
        assert_eq!(found, expected);
        assert!(outs < 4900, "something was collapsed");
    }
}
