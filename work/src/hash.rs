//! Hash function of 64-bit words.

/// Mixes the bits of a word, so that each input bit flips each output bit with a probability of about one half
/// (finaliser of MurmurHash3). Different words have different hashes.
#[inline(always)]
pub fn mix_bits(word: u64) -> u64 {
    let word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}
