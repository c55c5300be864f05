//! Selects the seeds of a sequence: 25-mers around an open syncmer (Edgar 2021; Shaw and Yu 2022).
//!
//! A 25-mer is a seed if, of its nine consecutive 15-mers, the middle one has the smallest hash. That depends only on
//! the 23 middle bases, so a read and the reference select the same seeds on either strand. One k-mer in nine is a
//! seed.

use crate::bases::{reverse_complement_word, word_starting_at_base};

/// Length of a seed (bp).
pub(crate) const SEED_BP: usize = 25;
/// Length (bp) of the short k-mers (s-mers) whose hashes are compared.
const SMER_BP: usize = 15;
/// Number of consecutive s-mers that are compared.
const SMERS_PER_WINDOW: usize = 9;
/// Number of bases in the middle of a k-mer that decide whether the k-mer is a seed.
const WINDOW_BP: usize = SMER_BP + SMERS_PER_WINDOW - 1;
/// Number of bases of a seed before the window of bases that decides whether it is a seed.
const WINDOW_OFFSET: usize = (SEED_BP - WINDOW_BP) / 2;

/// Mask of the bits of a packed seed.
const SEED_MASK: u64 = (1 << (2 * SEED_BP)) - 1;
const SMER_MASK: u64 = (1 << (2 * SMER_BP)) - 1;

/// A seed: its position, its hash, and the strand of the hashed k-mer, which is the smaller number of the packed k-mer
/// and its reverse complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Syncmer {
    /// Position of the first base of the seed, counted from the start of the searched range.
    pub at: u32,
    /// Whether the hash is that of the reverse complement of the k-mer.
    pub reverse: bool,
    /// 64-bit hash of the smaller of the k-mer and its reverse complement.
    pub hash: u64,
}

/// Finds seeds; holds reusable buffers.
#[derive(Debug, Default, Clone)]
pub(crate) struct SyncmerFinder {
    hashes: Vec<u32>,
    chosen: Vec<u32>,
}

#[inline(always)]
fn hash(kmer: u64) -> u64 {
    let h = kmer.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let h = (h ^ (h >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let h = (h ^ (h >> 32)).wrapping_mul(0xa0761d6478bd642f);
    h ^ (h >> 29)
}

impl SyncmerFinder {
    /// Passes the seeds in bases `from..to` of the packed sequence `words` to `each`, in order. `words` must have one
    /// more word after the last base. `from` must be a multiple of 16.
    #[inline(always)]
    pub(crate) fn find_seeds(&mut self, words: &[u64], from: usize, to: usize, mut each: impl FnMut(Syncmer)) {
        debug_assert!(from.is_multiple_of(16));
        if to < from + SEED_BP {
            return;
        }
        let length = to - from;
        let short = length - SMER_BP + 1;
        let rounds = short.div_ceil(16);
        self.hashes.clear();
        self.hashes.resize(16 * rounds + 16, 0);
        for (round, out) in self.hashes.as_chunks_mut::<16>().0[..rounds].iter_mut().enumerate() {
            let forward = word_starting_at_base(words, from + 16 * round);
            let backward = reverse_complement_word(forward);
            for (i, out) in out.iter_mut().enumerate() {
                let i = 2 * i as u64;
                let one = (forward >> i) & SMER_MASK;
                let other = (backward >> (34 - i)) & SMER_MASK;
                let kmer = (one as u32).min(other as u32);
                let h = kmer.wrapping_mul(0x9e37_79b1);
                let h = (h ^ (h >> 15)).wrapping_mul(0x85eb_ca77);
                *out = h ^ (h >> 13);
            }
        }
        let spans = length - WINDOW_BP + 1;
        self.chosen.clear();
        self.chosen.resize(spans + 1, 0);
        let mut n = 0;
        let h = &self.hashes[..spans + SMERS_PER_WINDOW - 1];
        // For sixteen windows at a time: whether the middle hash is smaller than all others.
        let mut start = 0;
        while start < spans {
            let end = (start + 16).min(spans);
            let mut less = [0u8; 16];
            if end - start == 16 {
                let h: &[u32; 24] = h[start..start + 24].first_chunk().expect("24 hashes");
                for i in 0..16 {
                    let least = h[i].min(h[i + 1]).min(h[i + 2]).min(h[i + 3]);
                    let least = least.min(h[i + 5]).min(h[i + 6]).min(h[i + 7]).min(h[i + 8]);
                    less[i] = u8::from(h[i + 4] < least);
                }
            } else {
                for i in 0..end - start {
                    let h = &h[start + i..start + i + SMERS_PER_WINDOW];
                    let least = h[..4].iter().chain(&h[5..]).fold(u32::MAX, |a, &b| a.min(b));
                    less[i] = u8::from(h[4] < least);
                }
            }
            for (i, less) in less.iter().enumerate() {
                self.chosen[n] = (start + i) as u32;
                n += usize::from(*less);
            }
            start = end;
        }
        for &span in &self.chosen[..n] {
            let span = span as usize;
            if span < WINDOW_OFFSET || span - WINDOW_OFFSET + SEED_BP > length {
                continue;
            }
            let at = span - WINDOW_OFFSET;
            let kmer = word_starting_at_base(words, from + at) & SEED_MASK;
            let other = reverse_complement_word(kmer) >> (64 - 2 * SEED_BP);
            each(Syncmer { at: at as u32, reverse: kmer > other, hash: hash(kmer.min(other)) });
        }
    }
}

#[cfg(test)]
mod tests {
    use genuma_machine::simd_and_prefetch::SimdLevel;

    use super::*;
    use crate::bases::PackedReadBatch;

    fn random(length: usize, mut state: u64) -> Vec<u8> {
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                b"ACGT"[(state >> 62) as usize]
            })
            .collect()
    }

    fn seeds(words: &[u64], length: usize, vectors: SimdLevel) -> Vec<Syncmer> {
        let mut padded = words.to_vec();
        padded.extend([0; 2]);
        let mut found = Vec::new();
        let mut finder = SyncmerFinder::default();
        vectors.run_at_level(
            #[inline(always)]
            || finder.find_seeds(&padded, 0, length, |seed| found.push(seed)),
        );
        found
    }

    #[test]
    fn both_strands_have_the_same_seeds_with_any_instructions() {
        for length in (0..400).chain([5000]) {
            let mut packed = PackedReadBatch::default();
            packed.push_read(&random(length, length as u64));
            let found = seeds(packed.read_strand(0, false).words, length, SimdLevel::available_simd_levels()[0]);
            for &vectors in SimdLevel::available_simd_levels() {
                assert_eq!(seeds(packed.read_strand(0, false).words, length, vectors), found);
            }
            let mut turned = seeds(packed.read_strand(0, true).words, length, SimdLevel::widest_available());
            turned.reverse();
            for seed in &mut turned {
                seed.at = (length - SEED_BP) as u32 - seed.at;
                seed.reverse = !seed.reverse;
            }
            assert_eq!(turned, found, "{length}");
            if length == 5000 {
                assert!((450..650).contains(&found.len()), "{}", found.len());
            }
        }
    }
}
