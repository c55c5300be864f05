//! Duplicate detection: counts read pairs by a key that is equal for duplicates of a molecule, for as many keys as fit
//! in memory.
//!
//! A key is a hash of the first bases of both mates. Only keys below a bound are kept; when there are too many, the
//! bound is halved. The keys that remain depend on the set of all keys, not on threads or the order of the pairs.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use genuma_reads::packed_bases::PackedBases;
use genuma_work::hash::mix_bits;
use serde::{Deserialize, Serialize};

use crate::modal_depth::self_weighted_median;

/// Number of bases at the start of each mate that are hashed to the duplicate key.
pub(crate) const DUPLICATE_KEY_BASES_PER_MATE: usize = 24;
/// Maximum number of distinct duplicate keys that are kept.
const MAX_KEYS: usize = 1 << 16;

/// Hasher that returns its input, because the keys are hashes already.
#[derive(Debug, Default, Clone)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        // Kept keys are small, so their highest bits, which the hash table uses, are 0; rotate them.
        self.0.rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = (self.0 << 8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Number of read pairs for each duplicate key. Only keys below a bound are kept; the bound is halved when there are
/// too many keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DuplicateKeyCounts {
    /// Number of times that the bound was halved: one key in 2^halvings is kept.
    halvings: u32,
    keys: HashMap<u64, u32, BuildHasherDefault<IdentityHasher>>,
}

/// Mixes two words into one hash (finaliser of MurmurHash3).
#[inline(always)]
pub(crate) fn hash_two_words(a: u64, b: u64) -> u64 {
    mix_bits(a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.rotate_left(29))
}

impl DuplicateKeyCounts {
    /// Counts a read pair under its duplicate key: a hash of the first [`DUPLICATE_KEY_BASES_PER_MATE`] bases of both
    /// mates, the same if the mates are swapped. Each mate must have at least that many bases.
    #[inline]
    pub fn add_pair(&mut self, mates: [PackedBases<'_>; 2]) {
        let [one, two] = mates.map(|mate| mate.word_from_base(0) >> (64 - 2 * DUPLICATE_KEY_BASES_PER_MATE));
        let key = hash_two_words(one.min(two), one.max(two));
        if key <= u64::MAX >> self.halvings {
            self.count_key(key, 1);
        }
    }

    fn count_key(&mut self, key: u64, pairs: u32) {
        let here = self.keys.entry(key).or_default();
        *here = here.saturating_add(pairs);
        if self.keys.len() > MAX_KEYS {
            self.halve(self.halvings + 1);
        }
    }

    #[cold]
    fn halve(&mut self, halved: u32) {
        self.halvings = halved.max(self.halvings);
        let bound = u64::MAX >> self.halvings;
        self.keys.retain(|key, _| *key <= bound);
        if self.keys.len() > MAX_KEYS {
            self.halve(self.halvings + 1);
        }
    }

    /// Adds the counts of another thread.
    pub fn merge_counts(&mut self, other: &DuplicateKeyCounts) {
        self.halve(other.halvings);
        for (&key, &pairs) in &other.keys {
            if key <= u64::MAX >> self.halvings {
                self.count_key(key, pairs);
            }
        }
    }

    /// Returns the sampling factor n: one duplicate key in n is kept.
    pub(crate) fn sampling_factor(&self) -> f64 {
        f64::from(self.halvings).exp2()
    }

    /// Median over all counted pairs of the number of pairs with the same key; 0 without pairs.
    pub(crate) fn weighted_median_pairs_per_key(&self) -> u32 {
        self_weighted_median(self.keys.values().copied().collect()).unwrap_or(0)
    }

    /// Summarises the kept keys: number of read pairs, number of distinct keys, and number of pairs whose key another
    /// pair has too.
    pub(crate) fn summarise_pairs_and_keys(&self) -> DuplicateKeySummary {
        let mut counts = DuplicateKeySummary { pairs: 0, keys: self.keys.len() as u64, repeated_pairs: 0 };
        for &n in self.keys.values() {
            counts.pairs += u64::from(n);
            counts.repeated_pairs += if n > 1 { u64::from(n) } else { 0 };
        }
        counts
    }
}

/// Numbers of read pairs and of distinct duplicate keys, and how many pairs share their key with another pair. Pairs
/// with the same key are duplicates, or start alike by coincidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DuplicateKeySummary {
    /// Number of read pairs whose duplicate key is among the kept keys.
    pub pairs: u64,
    /// Number of distinct duplicate keys among the kept keys.
    pub keys: u64,
    /// Number of counted pairs whose key another pair has too.
    pub repeated_pairs: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_keys_do_not_depend_on_the_division_of_the_pairs() {
        // A quarter of the keys occur twice.
        let keys: Vec<u64> =
            (0..600_000u64).map(|i| hash_two_words(i - if i % 4 == 0 { i.min(1) } else { 0 }, 7)).collect();
        let split = |parts: usize, backwards: bool| {
            let mut tallies: Vec<DuplicateKeyCounts> = vec![DuplicateKeyCounts::default(); parts];
            for (i, &key) in keys.iter().enumerate() {
                let tally = &mut tallies[i * 7 % parts];
                if key <= u64::MAX >> tally.halvings {
                    tally.count_key(key, 1);
                }
            }
            if backwards {
                tallies.reverse();
            }
            let mut all = DuplicateKeyCounts::default();
            tallies.iter().for_each(|tally| all.merge_counts(tally));
            all
        };
        let whole = split(1, false);
        assert_eq!(whole, split(3, false));
        assert_eq!(whole, split(11, true));
        let counts = whole.summarise_pairs_and_keys();
        assert!(counts.keys <= MAX_KEYS as u64 && counts.keys > MAX_KEYS as u64 / 3);
        let copies = (counts.pairs - counts.keys) as f64 / counts.pairs as f64;
        assert!((copies - 0.25).abs() < 0.01, "{copies}");
    }
}
