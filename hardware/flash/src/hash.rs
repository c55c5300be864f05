//! The hash of a key: which block of the filter it belongs to, which bits it has there, where it may be among the hot entries.

/// 64 bits in which every bit of the key shows: the finaliser of MurmurHash3.
#[inline(always)]
pub fn hash(key: u64) -> u64 {
    let mut x = key;
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// A number below `n` from the high bits of a hash, even if the hash is (Lemire, "Fast random integer generation in an interval", 2019).
#[inline(always)]
pub fn below(hash: u64, n: usize) -> usize {
    ((u128::from(hash) * n as u128) >> 64) as usize
}
