//! Hash function of keys. A hash selects the block of the filter, the bits in the block, the slot of a hot entry, and
//! the set of a cached entry.

use genuma_work::hash::mix_bits;

/// 64-bit hash of a key: the finaliser of MurmurHash3.
#[inline(always)]
pub(crate) fn hash_key(key: u64) -> u64 {
    mix_bits(key)
}

/// Maps a hash to a number below `n`, using its high bits (Lemire, "Fast random integer generation in an interval",
/// 2019).
#[inline(always)]
pub(crate) fn map_hash_to_range(hash: u64, n: usize) -> usize {
    ((u128::from(hash) * n as u128) >> 64) as usize
}
