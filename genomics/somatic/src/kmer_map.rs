//! k-mer → small number, for a few million k-mers looked up wherever a sieve lets one expect any ([`crate::sought`]).
//!
//! Nearly all lookups miss, so a Bloom filter answers first: three bits of a k-mer, all in one word, so that one cache line tells. With 16
//! bits a k-mer and more it lets about one in a hundred others through. What a run of lookups needs is asked for before it is used, as
//! filter and table outgrow the caches on a large genome. The table holds ranks only: it has more than twice the places that it needs.

use genuma_kmers::prefetch;

/// An open-addressing table from canonical k-mers to their rank in the list it was built from.
#[derive(Debug, Default)]
pub(crate) struct KmerMap {
    filter: Vec<u64>,
    filter_shift: u32,
    /// By rank.
    kmers: Vec<u64>,
    /// Ranks.
    slots: Vec<u32>,
    slot_shift: u32,
}

const EMPTY: u32 = u32::MAX;
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A k-mer that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    kmer: u64,
    hash: u64,
}

fn hash(kmer: u64) -> u64 {
    let x = kmer.wrapping_mul(SPREAD);
    (x ^ (x >> 29)).wrapping_mul(SPREAD)
}

/// The bits of a hash in its word of the filter.
fn bits(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63)
}

impl KmerMap {
    /// Builds from `kmers`, which must be distinct; the value of each is its place in the iteration.
    pub fn new(kmers: impl ExactSizeIterator<Item = u64>) -> KmerMap {
        let slots = (kmers.len() * 2).next_power_of_two().max(64);
        let words = kmers.len().div_ceil(4).next_power_of_two().max(16);
        let mut map = KmerMap {
            filter: vec![0; words],
            filter_shift: 64 - words.trailing_zeros(),
            kmers: Vec::with_capacity(kmers.len()),
            slots: vec![EMPTY; slots],
            slot_shift: 64 - slots.trailing_zeros(),
        };
        for (rank, kmer) in kmers.enumerate() {
            let h = hash(kmer);
            map.filter[(h >> map.filter_shift) as usize] |= bits(h);
            let mut at = (h >> map.slot_shift) as usize;
            while map.slots[at] != EMPTY {
                at = (at + 1) & (slots - 1);
            }
            map.slots[at] = rank as u32;
            map.kmers.push(kmer);
        }
        map
    }

    /// How many k-mers there are.
    pub(crate) fn len(&self) -> usize {
        self.kmers.len()
    }

    /// The rank of a canonical k-mer.
    #[inline]
    pub fn get(&self, kmer: u64) -> Option<u32> {
        let asked = Asked { kmer, hash: hash(kmer) };
        if self.may_have(&asked) { self.answer(&asked) } else { None }
    }

    /// Asks for a canonical k-mer, of which the answer is wanted later: what it needs of the filter is fetched.
    #[inline]
    pub fn ask(&self, kmer: u64) -> Asked {
        let hash = hash(kmer);
        prefetch(&self.filter[(hash >> self.filter_shift) as usize]);
        Asked { kmer, hash }
    }

    /// Whether it may be there; what the answer needs of the table is fetched.
    #[inline]
    pub fn may_have(&self, asked: &Asked) -> bool {
        let hash = asked.hash;
        let may = !self.filter[(hash >> self.filter_shift) as usize] & bits(hash) == 0;
        if may {
            prefetch(&self.slots[(hash >> self.slot_shift) as usize]);
        }
        may
    }

    /// The rank of one that may be there.
    #[inline]
    pub fn answer(&self, asked: &Asked) -> Option<u32> {
        self.rank(asked.kmer, asked.hash)
    }

    #[inline]
    fn rank(&self, kmer: u64, hash: u64) -> Option<u32> {
        let mut at = (hash >> self.slot_shift) as usize;
        loop {
            let rank = self.slots[at];
            if rank == EMPTY {
                return None;
            }
            if self.kmers[rank as usize] == kmer {
                return Some(rank);
            }
            at = (at + 1) & (self.slots.len() - 1);
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
            let map = KmerMap::new((0..n).map(key));
            for i in 0..n {
                assert_eq!(map.get(key(i)), Some(i as u32));
            }
            for i in n..n + 1000 {
                assert_eq!(map.get(key(i)), None);
            }
        }
    }
}
