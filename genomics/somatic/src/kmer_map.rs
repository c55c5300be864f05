//! Hash map from a few million k-mers to their ranks, mainly for lookups of k-mers that have passed the filter of
//! minimizers ([`crate::kmer_lookup`]).
//!
//! Nearly all k-mers that are looked up are absent, so a Bloom filter is tested first. Each k-mer sets three bits in
//! one 64-bit word, so that a test reads one cache line. With at least 16 bits for each k-mer, about one in a hundred
//! absent k-mers passes. For large genomes the filter and the table are larger than the CPU caches, so the cache lines
//! for a batch of lookups are prefetched. The table has at least one and a half times as many slots as k-mers, and
//! contains only ranks.

use genuma_kmers::prefetch;

/// Hash table from canonical k-mers to their ranks: their indices in the list from which the table was built.
#[derive(Debug, Default)]
pub(crate) struct KmerMap {
    filter: Vec<u64>,
    filter_shift: u32,
    /// The k-mers in the order in which they were given; the index is the rank.
    kmers: Vec<u64>,
    /// Slots of the hash table: k-mer ranks (indices in `kmers`), or [`EMPTY_SLOT`].
    slots: Vec<u32>,
}

const EMPTY_SLOT: u32 = u32::MAX;
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A lookup of a k-mer that was started and is not finished, so that memory can be prefetched.
#[derive(Debug, Clone, Copy)]
pub struct StartedKmerLookup {
    kmer: u64,
    hash: u64,
}

fn hash_kmer(kmer: u64) -> u64 {
    let x = kmer.wrapping_mul(HASH_MULTIPLIER);
    (x ^ (x >> 29)).wrapping_mul(HASH_MULTIPLIER)
}

/// The three bits of the Bloom filter that a hash value sets in its 64-bit word.
fn filter_bits(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63)
}

/// The first of `slots` slots that may hold a k-mer with this hash value: its share of all hash values.
fn first_slot(hash: u64, slots: usize) -> usize {
    ((u128::from(hash) * slots as u128) >> 64) as usize
}

/// The slot after `slot`, cyclically.
fn next_slot(slot: usize, slots: usize) -> usize {
    if slot + 1 == slots { 0 } else { slot + 1 }
}

impl KmerMap {
    /// Builds the map from distinct `kmers`. The rank of a k-mer is its index.
    pub fn from_kmers(kmers: Vec<u64>) -> KmerMap {
        let slots = (kmers.len() + kmers.len() / 2).max(64);
        let words = kmers.len().div_ceil(4).next_power_of_two().max(16);
        let mut map = KmerMap {
            filter: vec![0; words],
            filter_shift: 64 - words.trailing_zeros(),
            kmers,
            slots: vec![EMPTY_SLOT; slots],
        };
        for (rank, &kmer) in map.kmers.iter().enumerate() {
            let h = hash_kmer(kmer);
            map.filter[(h >> map.filter_shift) as usize] |= filter_bits(h);
            let mut at = first_slot(h, slots);
            while map.slots[at] != EMPTY_SLOT {
                at = next_slot(at, slots);
            }
            map.slots[at] = rank as u32;
        }
        map
    }

    /// The k-mer with this rank.
    pub(crate) fn kmer_of_rank(&self, rank: u32) -> u64 {
        self.kmers[rank as usize]
    }

    /// The k-mers of the map by rank; the rest of its memory is freed.
    pub(crate) fn into_kmers(self) -> Vec<u64> {
        self.kmers
    }

    /// Number of k-mers in the map.
    pub(crate) fn len(&self) -> usize {
        self.kmers.len()
    }

    /// The k-mer rank of a canonical k-mer; `None` if the map does not have it.
    #[inline]
    pub fn rank_of_kmer(&self, kmer: u64) -> Option<u32> {
        let query = StartedKmerLookup { kmer, hash: hash_kmer(kmer) };
        if self.check_filter_and_prefetch_slot(&query) { self.finish_lookup(&query) } else { None }
    }

    /// Starts the lookup of a canonical k-mer and prefetches its word of the Bloom filter.
    #[inline]
    pub fn start_lookup(&self, kmer: u64) -> StartedKmerLookup {
        let hash = hash_kmer(kmer);
        prefetch(&self.filter[(hash >> self.filter_shift) as usize]);
        StartedKmerLookup { kmer, hash }
    }

    /// Whether the map may contain the k-mer, according to the Bloom filter. If so, prefetches the slot of the hash
    /// table.
    #[inline]
    pub fn check_filter_and_prefetch_slot(&self, query: &StartedKmerLookup) -> bool {
        let hash = query.hash;
        let may = !self.filter[(hash >> self.filter_shift) as usize] & filter_bits(hash) == 0;
        if may {
            prefetch(&self.slots[first_slot(hash, self.slots.len())]);
        }
        may
    }

    /// The rank of a k-mer for which [`KmerMap::check_filter_and_prefetch_slot`] returned true; `None` if the map does
    /// not contain it.
    #[inline]
    pub fn finish_lookup(&self, query: &StartedKmerLookup) -> Option<u32> {
        self.probe_slots(query.kmer, query.hash)
    }

    #[inline]
    fn probe_slots(&self, kmer: u64, hash: u64) -> Option<u32> {
        let mut at = first_slot(hash, self.slots.len());
        loop {
            let rank = self.slots[at];
            if rank == EMPTY_SLOT {
                return None;
            }
            if self.kmers[rank as usize] == kmer {
                return Some(rank);
            }
            at = next_slot(at, self.slots.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_there_and_nothing_else() {
        for n in [0usize, 1, 31, 1000, 50_000] {
            let key = |i: usize| (i as u64).wrapping_mul(0x1234_5678_9abc_def1) >> 2;
            let map = KmerMap::from_kmers((0..n).map(key).collect());
            for i in 0..n {
                assert_eq!(map.rank_of_kmer(key(i)), Some(i as u32));
            }
            for i in n..n + 1000 {
                assert_eq!(map.rank_of_kmer(key(i)), None);
            }
        }
    }
}
