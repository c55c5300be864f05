//! k-mer → small number, for a few million k-mers looked up once per base of the input.
//!
//! Nearly all lookups miss, so a bitmap of one bit per hash, small enough for the cache, answers first.

/// An open-addressing table from canonical k-mers to their rank in the list it was built from.
#[derive(Debug, Default)]
pub struct KmerMap {
    filter: Vec<u64>,
    filter_shift: u32,
    slots: Vec<(u64, u32)>,
    slot_shift: u32,
}

const EMPTY: u32 = u32::MAX;
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

fn hash(kmer: u64) -> u64 {
    let x = kmer.wrapping_mul(SPREAD);
    (x ^ (x >> 29)).wrapping_mul(SPREAD)
}

impl KmerMap {
    /// Builds from `kmers`, which must be distinct; the value of each is its place in the iteration.
    pub fn new(kmers: impl ExactSizeIterator<Item = u64>) -> KmerMap {
        let slots = (kmers.len() * 2).next_power_of_two().max(64);
        let bits = (kmers.len() * 16).next_power_of_two().max(1024);
        let mut map = KmerMap {
            filter: vec![0; bits / 64],
            filter_shift: 64 - bits.trailing_zeros(),
            slots: vec![(0, EMPTY); slots],
            slot_shift: 64 - slots.trailing_zeros(),
        };
        for (rank, kmer) in kmers.enumerate() {
            let h = hash(kmer);
            let bit = (h >> map.filter_shift) as usize;
            map.filter[bit / 64] |= 1 << (bit % 64);
            let mut at = (h >> map.slot_shift) as usize;
            while map.slots[at].1 != EMPTY {
                at = (at + 1) & (slots - 1);
            }
            map.slots[at] = (kmer, rank as u32);
        }
        map
    }

    /// The rank of a canonical k-mer.
    #[inline]
    pub fn get(&self, kmer: u64) -> Option<u32> {
        let h = hash(kmer);
        let bit = (h >> self.filter_shift) as usize;
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }
        let mut at = (h >> self.slot_shift) as usize;
        loop {
            let (key, rank) = self.slots[at];
            if rank == EMPTY {
                return None;
            }
            if key == kmer {
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
