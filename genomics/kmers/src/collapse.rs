//! Collapses equal super-k-mers of a bin, so that the k-mers of what many reads share are looked up once.
//!
//! A small table with one place for each hash. Whoever is in a place stays when seen more than once; who was seen
//! once, likely by an error, makes room.

use genuma_machine::processor::prefetch;

use crate::superkmer::Record;

/// Bytes of a place with counters of `S` samples.
pub(crate) const fn piece_bytes<const S: usize>() -> usize {
    size_of::<Piece<S>>()
}

/// Super-k-mers that wait while their places are fetched.
const WAITING: usize = 32;

/// A super-k-mer in the strand that is smaller, and how often each sample has it. A free place has no k-mers.
#[derive(Debug, Clone, Copy)]
pub struct Piece<const S: usize> {
    /// Its bases, see [`Record::word`].
    pub word: u128,
    /// Number of k-mers.
    pub kmers: u32,
    /// How often each sample has it.
    pub counts: [u32; S],
}

/// Super-k-mers on hold.
#[derive(Debug)]
pub(crate) struct Collapse<const S: usize> {
    k: u32,
    pieces: Vec<Piece<S>>,
    /// Places and super-k-mers that are to be taken in.
    waiting: Vec<(usize, Piece<S>)>,
}

impl<const S: usize> Collapse<S> {
    /// Holds up to `pieces` super-k-mers (rounded down to a power of two).
    pub fn new(k: u32, pieces: usize) -> Self {
        let pieces = vec![Piece::FREE; 1 << pieces.max(2).ilog2()];
        Self { k, pieces, waiting: Vec::with_capacity(WAITING) }
    }

    /// Takes a record in. Calls `out` with super-k-mers that are to be counted now.
    #[inline]
    pub fn take(&mut self, record: Record<'_>, out: impl FnMut(&Piece<S>)) {
        let mut counts = [0; S];
        counts[record.sample] = 1;
        let word = record.word(self.k);
        let hash = (word >> 64) as u64 ^ (word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let place = (hash >> (64 - self.pieces.len().ilog2())) as usize;
        prefetch(&self.pieces[place]);
        self.waiting.push((place, Piece { word, kmers: record.kmers as u32, counts }));
        if self.waiting.len() == WAITING {
            self.settle(out);
        }
    }

    fn settle(&mut self, mut out: impl FnMut(&Piece<S>)) {
        let Self { pieces, waiting, .. } = self;
        for (place, piece) in waiting.drain(..) {
            let held = &mut pieces[place];
            let fewer = held.counts.iter().fold(0u32, |sum, &n| sum.saturating_add(n)) <= 1;
            if (held.word, held.kmers) == (piece.word, piece.kmers) {
                for (sum, n) in held.counts.iter_mut().zip(piece.counts) {
                    *sum = sum.saturating_add(n);
                }
            } else if fewer {
                std::mem::replace(held, piece).release(&mut out);
            } else {
                out(&piece);
            }
        }
    }

    /// Calls `out` with every super-k-mer still on hold, and forgets them.
    pub fn drain(&mut self, mut out: impl FnMut(&Piece<S>)) {
        self.settle(&mut out);
        self.pieces.iter_mut().for_each(|piece| std::mem::replace(piece, Piece::FREE).release(&mut out));
    }
}

impl<const S: usize> Piece<S> {
    const FREE: Self = Self { word: 0, kmers: 0, counts: [0; S] };

    #[inline]
    fn release(&self, out: &mut impl FnMut(&Self)) {
        if self.kmers > 0 {
            out(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::superkmer::Keys;
    use crate::tests::Random;
    use std::collections::BTreeMap;

    #[test]
    fn what_comes_out_adds_up_to_what_went_in() {
        let (mut random, mut expected, mut found) = (Random(1), BTreeMap::new(), BTreeMap::new());
        let mut collapse = Collapse::<2>::new(12, 4);
        let mut outs = 0;
        let mut out = |piece: &Piece<2>| {
            outs += 1;
            for &key in Keys::default().of(piece.word, piece.kmers as usize, 12) {
                let sum: &mut [u32; 2] = found.entry(key).or_default();
                (0..2).for_each(|i| sum[i] += piece.counts[i]);
            }
        };
        for _ in 0..5000 {
            let bases = [(random.below(3) * random.below(30)) as u8; 20];
            let kmers = [1, 2, 5, 31, 32][random.below(5) as usize];
            let record = Record { sample: random.below(2) as usize, kmers, bases: &bases };
            for &key in Keys::default().of(record.word(12), kmers, 12) {
                expected.entry(key).or_insert([0; 2])[record.sample] += 1;
            }
            collapse.take(record, &mut out);
        }
        collapse.drain(&mut out);
        collapse.drain(&mut out);
        assert_eq!(found, expected);
        assert!(outs < 4900, "something was collapsed");
    }
}
