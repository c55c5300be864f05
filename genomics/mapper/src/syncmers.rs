//! Which k-mers of a sequence are looked up: those around an open syncmer (Edgar 2021; Shaw and Yu 2022).
//!
//! Of nine neighbouring 15-mers the middle one has the smallest hash: then the 25-mer round it is a seed. Whether it is one depends on
//! its own 23 middle bases only, so a read and the reference choose the same, whichever strand the read is from. One k-mer in nine is.

use crate::bases::{reverse_complement, window};

/// Bases of a seed.
pub const SEED: usize = 25;
/// Bases of the short k-mers whose hashes are compared.
const SHORT: usize = 15;
/// Short k-mers that are compared.
const WINDOW: usize = 9;
/// Bases that decide whether there is a seed round them.
const SPAN: usize = SHORT + WINDOW - 1;
/// Bases of a seed before those.
const BEFORE: usize = (SEED - SPAN) / 2;

/// Bits of a seed.
const SEED_BITS: u64 = (1 << (2 * SEED)) - 1;
const SHORT_BITS: u64 = (1 << (2 * SHORT)) - 1;

/// A seed: where it begins, the hash of the k-mer or of its reverse complement, whichever is the smaller number, and which it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Syncmer {
    /// Its first base.
    pub at: u32,
    /// The reverse complement was hashed.
    pub reverse: bool,
    /// Hash, all bits of use.
    pub hash: u64,
}

/// Buffers.
#[derive(Debug, Default, Clone)]
pub struct Finder {
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

impl Finder {
    /// Hands the seeds of bases `from..to` of `words` to `each`, in order. There is a word behind the last base.
    #[inline(always)]
    pub fn find(&mut self, words: &[u64], from: usize, to: usize, mut each: impl FnMut(Syncmer)) {
        debug_assert!(from.is_multiple_of(16));
        if to < from + SEED {
            return;
        }
        let length = to - from;
        let short = length - SHORT + 1;
        let rounds = short.div_ceil(16);
        self.hashes.clear();
        self.hashes.resize(16 * rounds + 16, 0);
        for (round, out) in self.hashes.as_chunks_mut::<16>().0[..rounds].iter_mut().enumerate() {
            let forward = window(words, from + 16 * round);
            let backward = reverse_complement(forward);
            for (i, out) in out.iter_mut().enumerate() {
                let i = 2 * i as u64;
                let one = (forward >> i) & SHORT_BITS;
                let other = (backward >> (34 - i)) & SHORT_BITS;
                let kmer = (one as u32).min(other as u32);
                let h = kmer.wrapping_mul(0x9e37_79b1);
                let h = (h ^ (h >> 15)).wrapping_mul(0x85eb_ca77);
                *out = h ^ (h >> 13);
            }
        }
        let spans = length - SPAN + 1;
        self.chosen.clear();
        self.chosen.resize(spans + 1, 0);
        let mut n = 0;
        let h = &self.hashes[..spans + WINDOW - 1];
        // Sixteen at a time: which are less than the least of their neighbours.
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
                    let h = &h[start + i..start + i + WINDOW];
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
            if span < BEFORE || span - BEFORE + SEED > length {
                continue;
            }
            let at = span - BEFORE;
            let kmer = window(words, from + at) & SEED_BITS;
            let other = reverse_complement(kmer) >> (64 - 2 * SEED);
            each(Syncmer { at: at as u32, reverse: kmer > other, hash: hash(kmer.min(other)) });
        }
    }
}

#[cfg(test)]
mod tests {
    use genuma_machine::processor::Vectors;

    use super::*;
    use crate::bases::Packed;

    fn random(length: usize, mut state: u64) -> Vec<u8> {
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                b"ACGT"[(state >> 62) as usize]
            })
            .collect()
    }

    fn seeds(words: &[u64], length: usize, vectors: Vectors) -> Vec<Syncmer> {
        let mut padded = words.to_vec();
        padded.extend([0; 2]);
        let mut found = Vec::new();
        let mut finder = Finder::default();
        vectors.run(
            #[inline(always)]
            || finder.find(&padded, 0, length, |seed| found.push(seed)),
        );
        found
    }

    #[test]
    fn both_strands_have_the_same_seeds_with_any_instructions() {
        for length in (0..400).chain([5000]) {
            let mut packed = Packed::default();
            packed.push(&random(length, length as u64));
            let found = seeds(packed.strand(0, false).words, length, Vectors::all()[0]);
            for &vectors in Vectors::all() {
                assert_eq!(seeds(packed.strand(0, false).words, length, vectors), found);
            }
            let mut turned = seeds(packed.strand(0, true).words, length, Vectors::widest());
            turned.reverse();
            for seed in &mut turned {
                seed.at = (length - SEED) as u32 - seed.at;
                seed.reverse = !seed.reverse;
            }
            assert_eq!(turned, found, "{length}");
            if length == 5000 {
                assert!((450..650).contains(&found.len()), "{}", found.len());
            }
        }
    }
}
