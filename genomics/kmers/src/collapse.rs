//! Merges equal super-k-mers of a bin and adds up their counts, so that the k-mers of a sequence that many reads share
//! are looked up in the counter table once.
//!
//! A small table has one slot per hash. A super-k-mer that occurred more than once keeps its slot; one that occurred
//! once, probably with an error, is replaced.

use genuma_machine::simd_and_prefetch::prefetch;

use crate::superkmer::SuperKmerRecord;

/// Size in bytes of a counted super-k-mer with counters of `S` samples.
pub(crate) const fn counted_super_kmer_bytes<const S: usize>() -> usize {
    size_of::<CountedSuperKmer<S>>()
}

/// Number of super-k-mers whose slots are prefetched together before they are added.
const BATCH_SUPER_KMERS: usize = 32;

/// A super-k-mer with its number of occurrences in each sample. Its bases are those of the strand with the smaller
/// packed value. A slot with 0 k-mers is empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedSuperKmer<const S: usize> {
    /// Packed bases ([`SuperKmerRecord::canonical_bases_as_word`]).
    pub word: u128,
    /// Number of k-mers in the super-k-mer, whatever its number of occurrences.
    pub kmers: u32,
    /// Number of occurrences in each sample.
    pub counts: [u32; S],
}

/// Small hash table that merges equal super-k-mers and adds up their counts.
#[derive(Debug)]
pub(crate) struct SuperKmerCollapser<const S: usize> {
    k: u32,
    held: Vec<CountedSuperKmer<S>>,
    /// Super-k-mers to be added, each with its slot in the table.
    waiting: Vec<(usize, CountedSuperKmer<S>)>,
}

impl<const S: usize> SuperKmerCollapser<S> {
    /// Creates a table for super-k-mers of `k`-mers with `pieces` slots, rounded down to a power of two.
    pub(crate) fn with_num_slots(k: u32, pieces: usize) -> Self {
        let pieces = vec![CountedSuperKmer::EMPTY; 1 << pieces.max(2).ilog2()];
        Self { k, held: pieces, waiting: Vec::with_capacity(BATCH_SUPER_KMERS) }
    }

    /// Adds a record. Calls `out` with each super-k-mer that has no slot in the table any more, because its k-mers must
    /// be counted now.
    #[inline]
    pub(crate) fn add_record(&mut self, record: SuperKmerRecord<'_>, out: impl FnMut(&CountedSuperKmer<S>)) {
        let mut counts = [0; S];
        counts[record.sample] = 1;
        let word = record.canonical_bases_as_word(self.k);
        let hash = (word >> 64) as u64 ^ (word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let place = (hash >> (64 - self.held.len().ilog2())) as usize;
        prefetch(&self.held[place]);
        self.waiting.push((place, CountedSuperKmer { word, kmers: record.kmers as u32, counts }));
        if self.waiting.len() == BATCH_SUPER_KMERS {
            self.add_waiting(out);
        }
    }

    fn add_waiting(&mut self, mut out: impl FnMut(&CountedSuperKmer<S>)) {
        let Self { held: pieces, waiting, .. } = self;
        for (place, piece) in waiting.drain(..) {
            let held = &mut pieces[place];
            let fewer = held.counts.iter().fold(0u32, |sum, &n| sum.saturating_add(n)) <= 1;
            if (held.word, held.kmers) == (piece.word, piece.kmers) {
                for (sum, n) in held.counts.iter_mut().zip(piece.counts) {
                    *sum = sum.saturating_add(n);
                }
            } else if fewer {
                std::mem::replace(held, piece).emit_if_used(&mut out);
            } else {
                out(&piece);
            }
        }
    }

    /// Calls `out` with all super-k-mers that are left, and empties the table.
    pub(crate) fn drain_super_kmers(&mut self, mut out: impl FnMut(&CountedSuperKmer<S>)) {
        self.add_waiting(&mut out);
        self.held.iter_mut().for_each(|piece| std::mem::replace(piece, CountedSuperKmer::EMPTY).emit_if_used(&mut out));
    }
}

impl<const S: usize> CountedSuperKmer<S> {
    const EMPTY: Self = Self { word: 0, kmers: 0, counts: [0; S] };

    #[inline]
    fn emit_if_used(&self, out: &mut impl FnMut(&Self)) {
        if self.kmers > 0 {
            out(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::superkmer::KmerKeyBuffer;
    use crate::tests::Random;
    use std::collections::BTreeMap;

    #[test]
    fn collapsed_counts_add_up_to_the_input() {
        let (mut random, mut expected, mut found) = (Random(1), BTreeMap::new(), BTreeMap::new());
        let mut collapse = SuperKmerCollapser::<2>::with_num_slots(12, 4);
        let mut outs = 0;
        let mut out = |piece: &CountedSuperKmer<2>| {
            outs += 1;
            for &key in KmerKeyBuffer::default().compute_keys(piece.word, piece.kmers as usize, 12) {
                let sum: &mut [u32; 2] = found.entry(key).or_default();
                (0..2).for_each(|i| sum[i] += piece.counts[i]);
            }
        };
        for _ in 0..5000 {
            let bases = [(random.below(3) * random.below(30)) as u8; 20];
            let kmers = [1, 2, 5, 31, 32][random.below(5) as usize];
            let record = SuperKmerRecord { sample: random.below(2) as usize, kmers, bases: &bases };
            for &key in KmerKeyBuffer::default().compute_keys(record.canonical_bases_as_word(12), kmers, 12) {
                expected.entry(key).or_insert([0; 2])[record.sample] += 1;
            }
            collapse.add_record(record, &mut out);
        }
        collapse.drain_super_kmers(&mut out);
        collapse.drain_super_kmers(&mut out);
        assert_eq!(found, expected);
        assert!(outs < 4900, "something was collapsed");
    }
}
