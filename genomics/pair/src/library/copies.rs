//! Copies among pairs: keys by which copies of a molecule are equal, counted in a share of their space that memory has room for.
//!
//! A key is a hash of how both mates begin. Keys under a bound are kept and counted; when there are too many the bound is halved. Which are
//! kept at last depends on all keys together, not on who saw them or when.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use genuma_reads::packed::Packed;
use serde::{Deserialize, Serialize};

/// Bases at the start of each mate that make the key.
pub const START: usize = 24;
/// Most keys that are kept.
const MOST: usize = 1 << 16;

/// What is a hash already.
#[derive(Debug, Default, Clone)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        // Keys that are kept are small: their highest bits, by which the table tells them apart, are nothing.
        self.0.rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = (self.0 << 8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// How many pairs have each of the keys under a bound.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Copies {
    /// How often the bound was halved: one key in two to the power of this is kept.
    halved: u32,
    keys: HashMap<u64, u32, BuildHasherDefault<AsItIs>>,
}

/// Spreads the bits of two words over one (the finaliser of MurmurHash3).
#[inline(always)]
pub fn mix(a: u64, b: u64) -> u64 {
    let mut x = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.rotate_left(29);
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

impl Copies {
    /// For so many pairs, about: the bound begins where it will be under at last. A quarter of the pairs may be copies of others: of more, fewer keys are kept.
    pub fn expecting(pairs: u64) -> Copies {
        let keys = pairs - pairs / 4;
        Copies {
            halved: (0..64).take_while(|halved| keys >> halved > MOST as u64).count() as u32,
            ..Copies::default()
        }
    }

    /// Counts a pair by how its mates begin, whichever comes first; both must have [`START`] bases.
    #[inline]
    pub fn see(&mut self, mates: [Packed<'_>; 2]) {
        let [one, two] = mates.map(|mate| mate.word(0) >> (64 - 2 * START));
        let key = mix(one.min(two), one.max(two));
        if key <= u64::MAX >> self.halved {
            self.count(key, 1);
        }
    }

    fn count(&mut self, key: u64, pairs: u32) {
        let here = self.keys.entry(key).or_default();
        *here = here.saturating_add(pairs);
        if self.keys.len() > MOST {
            self.halve(self.halved + 1);
        }
    }

    #[cold]
    fn halve(&mut self, halved: u32) {
        self.halved = halved.max(self.halved);
        let bound = u64::MAX >> self.halved;
        self.keys.retain(|key, _| *key <= bound);
        if self.keys.len() > MOST {
            self.halve(self.halved + 1);
        }
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &Copies) {
        self.halve(other.halved);
        for (&key, &pairs) in &other.keys {
            if key <= u64::MAX >> self.halved {
                self.count(key, pairs);
            }
        }
    }

    /// Of how many keys one is kept.
    pub fn drawn(&self) -> f64 {
        f64::from(self.halved).exp2()
    }

    /// Pairs with the keys that are kept, how many keys these are, and pairs whose key another has too.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts { pairs: 0, keys: self.keys.len() as u64, repeated: 0 };
        for &n in self.keys.values() {
            counts.pairs += u64::from(n);
            counts.repeated += if n > 1 { u64::from(n) } else { 0 };
        }
        counts
    }
}

/// What is counted of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Pairs.
    pub pairs: u64,
    /// Keys.
    pub keys: u64,
    /// Pairs whose key another pair has too.
    pub repeated: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_depends_on_all_keys_not_on_who_saw_them() {
        // A quarter of the keys twice.
        let keys: Vec<u64> =
            (0..600_000u64).map(|i| mix(i - if i % 4 == 0 { i.min(1) } else { 0 }, 7)).collect();
        let split = |parts: usize, backwards: bool| {
            let mut tallies: Vec<Copies> = vec![Copies::default(); parts];
            for (i, &key) in keys.iter().enumerate() {
                let tally = &mut tallies[i * 7 % parts];
                if key <= u64::MAX >> tally.halved {
                    tally.count(key, 1);
                }
            }
            if backwards {
                tallies.reverse();
            }
            let mut all = Copies::default();
            tallies.iter().for_each(|tally| all.add(tally));
            all
        };
        let whole = split(1, false);
        assert_eq!(whole, split(3, false));
        assert_eq!(whole, split(11, true));
        let counts = whole.counts();
        assert!(counts.keys <= MOST as u64 && counts.keys > MOST as u64 / 3);
        let copies = (counts.pairs - counts.keys) as f64 / counts.pairs as f64;
        assert!((copies - 0.25).abs() < 0.01, "{copies}");
    }
}
