//! Filter for the ranges of a sequence that may contain one of a set of k-mers: ranges of k-mers whose roots have a
//! minimizer that a k-mer of the set has, too.
//!
//! A k-mer in a read has the same root, and so the same minimizer, on either strand. A read of 150 bases has about 16
//! minimizers and 120 k-mers, and minimizers are found with vector instructions. So one filter query covers seven
//! k-mers, and no k-mer is missed.

use genuma_machine::simd_and_prefetch::prefetch;
use genuma_reads::packed_bases::PackedBases;
use genuma_reads::{Mate, dna};

use crate::MAX_K;
use crate::superkmer::{QualityMaskingPacker, SuperKmer, SuperKmerCutter};

/// Length of the minimizers in bases: the maximum, so that few other positions of a genome share one. A root of 22
/// bases still contains seven of them.
const MINIMIZER_BASES: u32 = 16;

/// Minimum number of filter bits per minimizer.
const FILTER_BITS_PER_MINIMIZER: usize = 16;

/// Bloom filter of the minimizers of a set of k-mers.
#[derive(Debug)]
pub struct MinimizerFilter {
    k: u32,
    /// The Bloom filter, with two bits of one word per minimizer; the number of words is a power of two.
    words: Vec<u64>,
    shift: u32,
}

/// Scratch memory of a thread that uses a [`MinimizerFilter`].
#[derive(Debug)]
pub struct MinimizerFilterScratch {
    packer: QualityMaskingPacker,
    cutter: SuperKmerCutter,
    super_kmers: Vec<SuperKmer>,
}

/// Index of the filter word of a minimizer, and its bits in that word.
fn filter_position(minimizer: u32, shift: u32) -> (usize, u64) {
    // Minimizers are small numbers by selection, so they are hashed again.
    let spread = u64::from(minimizer ^ (minimizer >> 15)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((spread >> shift) as usize, 1 << (spread & 63) | 1 << (spread >> 6 & 63))
}

impl MinimizerFilter {
    /// Builds the filter for `kmers` of `k` bases (17 to 32), canonical or not. Both strands of each k-mer pass the
    /// filter.
    pub fn from_kmers(k: u32, kmers: impl Iterator<Item = u64>) -> Self {
        let mut sifter = MinimizerFilterScratch::allocate_for_kmer_length(k);
        let mut minimizers = Vec::with_capacity(kmers.size_hint().0);
        let mut letters = [0; MAX_K as usize];
        let letters = &mut letters[..k as usize];
        for kmer in kmers {
            (0..)
                .zip(letters.iter_mut().rev())
                .for_each(|(i, letter)| *letter = dna::decode_base((kmer >> (2 * i)) as u8 & 3));
            let read = sifter.packer.pack_and_mask_read(Mate { seq: letters, qual: letters });
            sifter.cutter.cut_into_super_kmers(read, |super_kmer| {
                // Adjacent super-k-mers of a k-mer often share the minimizer.
                if minimizers.last() != Some(&super_kmer.minimizer) {
                    minimizers.push(super_kmer.minimizer);
                }
            });
        }
        minimizers.sort_unstable();
        minimizers.dedup();
        let words = (minimizers.len() * FILTER_BITS_PER_MINIMIZER / 64).next_power_of_two().max(16);
        let mut sieve = Self { k, words: vec![0; words], shift: 64 - words.trailing_zeros() };
        for minimizer in minimizers {
            let (word, bits) = filter_position(minimizer, sieve.shift);
            sieve.words[word] |= bits;
        }
        sieve
    }

    /// Calls `each` with the ranges of `seq`, in order of their starts, that may contain one of the k-mers. Consecutive
    /// ranges may overlap by fewer than k − 1 bases. Each occurrence of a k-mer is completely inside one range. Bases
    /// other than A, C, G, T are in no range. Returns the packed bases of `seq`.
    #[inline]
    pub fn for_each_candidate_range<'a>(
        &self,
        seq: &[u8],
        scratch: &'a mut MinimizerFilterScratch,
        mut each: impl FnMut(std::ops::Range<usize>),
    ) -> PackedBases<'a> {
        let MinimizerFilterScratch { packer, cutter, super_kmers: pieces } = scratch;
        pieces.clear();
        let read = packer.pack_and_mask_read(Mate { seq, qual: seq });
        cutter.cut_into_super_kmers(read, |super_kmer| {
            prefetch(&self.words[filter_position(super_kmer.minimizer, self.shift).0]);
            pieces.push(super_kmer);
        });
        // First k-mer, and one past the last, of the range being extended.
        let mut open: Option<std::ops::Range<usize>> = None;
        let bases = |kmers: std::ops::Range<usize>| kmers.start..kmers.end + self.k as usize - 1;
        for super_kmer in pieces {
            let (word, bits) = filter_position(super_kmer.minimizer, self.shift);
            if self.words[word] & bits != bits {
                continue;
            }
            let end = super_kmer.start + super_kmer.kmers;
            match &mut open {
                Some(kmers) if kmers.end == super_kmer.start => kmers.end = end,
                _ => open.replace(super_kmer.start..end).into_iter().for_each(|kmers| each(bases(kmers))),
            }
        }
        open.into_iter().for_each(|kmers| each(bases(kmers)));
        read.packed_bases()
    }
}

impl MinimizerFilterScratch {
    /// Scratch memory for searching `k`-mers.
    pub fn allocate_for_kmer_length(k: u32) -> Self {
        let cutter = SuperKmerCutter::with_minimizer_length(k, MINIMIZER_BASES.min(k - 2));
        Self { packer: QualityMaskingPacker::with_min_base_quality(0), cutter, super_kmers: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::kmers;
    use crate::tests::random_bases;

    #[test]
    fn wanted_kmers_are_in_candidate_ranges_and_little_else_is() {
        for k in [24, 31, 32] {
            let mut seq = random_bases(200_000, u64::from(k));
            seq[777] = b'N';
            seq[5_000..5_040].fill(b'A');
            let all: Vec<(usize, u64)> = kmers(&seq, k).map(|(at, kmer)| (at, kmer.canonical())).collect();
            let wanted: Vec<(usize, u64)> = all.iter().copied().step_by(701).collect();
            let sieve = MinimizerFilter::from_kmers(k, wanted.iter().map(|w| w.1));
            for turned in [false, true] {
                let read = if turned { dna::reverse_complement(&seq) } else { seq.clone() };
                let mut sifter = MinimizerFilterScratch::allocate_for_kmer_length(k);
                let mut stretches = Vec::new();
                sieve.for_each_candidate_range(&read, &mut sifter, |stretch| stretches.push(stretch));
                assert!(stretches.windows(2).all(|two| two[0].start < two[1].start));
                for &(at, _) in &wanted {
                    let at = if turned { seq.len() - at - k as usize } else { at };
                    let within = |s: &std::ops::Range<usize>| s.start <= at && at + k as usize <= s.end;
                    assert!(stretches.iter().any(within), "k {k}, {at}, turned {turned}");
                }
                let sifted: usize = stretches.iter().map(|s| s.len() + 1 - k as usize).sum();
                assert!(sifted * 20 < seq.len(), "{sifted} k-mers of {}", seq.len());
                assert!(stretches.iter().all(|s| !read[s.clone()].contains(&b'N')));
            }
        }
        let nothing = MinimizerFilter::from_kmers(31, std::iter::empty());
        nothing.for_each_candidate_range(
            &random_bases(10_000, 1),
            &mut MinimizerFilterScratch::allocate_for_kmer_length(31),
            |_| panic!("nothing is looked for"),
        );
    }
}
