//! Filter for the ranges of a sequence that may contain one of a set of k-mers: a Bloom filter of the seeds of these
//! k-mers, which are shorter.
//!
//! Only every twelfth position of a sequence is tested: each k-mer contains a seed that begins at such a position. So a
//! read of 150 bases has 11 filter queries and 120 k-mers, and no k-mer is missed.

use std::ops::Range;

use genuma_machine::simd_and_prefetch::prefetch;
use genuma_reads::packed_bases::{PackedBases, WORD_BASES};

use crate::encode::reverse_complement_kmer;

/// Minimum length of a seed in bases, so that few other positions of a genome have the same.
const MIN_SEED_BASES: u32 = 16;
/// Maximum number of seeds of a k-mer, and so the maximum distance of tested positions. Chosen: a larger distance makes
/// fewer tests, but seeds are shorter and candidate ranges are longer.
const MAX_SEEDS_PER_KMER: u32 = 12;

/// Minimum and maximum number of filter bits for each k-mer. K-mers that overlap have seeds in common.
const MIN_BITS_PER_KMER: usize = 16;
const MAX_BITS_PER_KMER: usize = 64;
/// The filter is enlarged if more than one of this number of bits is set.
const BITS_PER_SET_BIT: usize = 5;

/// Number of positions that are tested together, so that their filter words are prefetched in parallel.
const SEEDS_PER_BATCH: usize = 32;
/// Number of k-mers that are inserted together, so that the filter words of their seeds are prefetched in parallel.
const KMERS_PER_BATCH: usize = 8;

/// Bloom filter of the seeds of a set of k-mers.
#[derive(Debug)]
pub struct SeedFilter {
    k: u32,
    /// Length of a seed in bases.
    seed_bases: u32,
    /// The Bloom filter, with two bits of one word per seed; the number of words is a power of two.
    words: Vec<u64>,
    shift: u32,
}

impl SeedFilter {
    /// Builds the filter for `kmers` of `k` bases (17 to 32), canonical or not. Both strands of each k-mer pass the
    /// filter.
    pub fn from_kmers(k: u32, kmers: &[u64]) -> Self {
        let num_words = |bits_per_kmer: usize| (kmers.len() * bits_per_kmer / 64).next_power_of_two().max(16);
        let seed_bases = MIN_SEED_BASES.max((k + 1).saturating_sub(MAX_SEEDS_PER_KMER));
        let mut words = num_words(MIN_BITS_PER_KMER);
        loop {
            let mut filter = Self { k, seed_bases, words: vec![0; words], shift: 64 - words.trailing_zeros() };
            kmers.chunks(KMERS_PER_BATCH).for_each(|batch| filter.insert_kmers(batch));
            let set_bits: usize = filter.words.iter().map(|word| word.count_ones() as usize).sum();
            if set_bits * BITS_PER_SET_BIT <= words * 64 || words >= num_words(MAX_BITS_PER_KMER) {
                return filter;
            }
            words *= 2;
        }
    }

    /// Inserts at most [`KMERS_PER_BATCH`] k-mers.
    fn insert_kmers(&mut self, kmers: &[u64]) {
        let mut hashes = [0; KMERS_PER_BATCH * MAX_SEEDS_PER_KMER as usize];
        let seeds_per_kmer = self.seeds_per_kmer();
        for (&kmer, hashes) in kmers.iter().zip(hashes.chunks_mut(seeds_per_kmer)) {
            let bases = kmer << (64 - 2 * self.k);
            for (at, hash) in hashes.iter_mut().enumerate() {
                *hash = self.hash_seed(bases << (2 * at));
                self.prefetch_word(*hash);
            }
        }
        for &hash in &hashes[..kmers.len() * seeds_per_kmer] {
            let (word, bits) = self.filter_position(hash);
            self.words[word] |= bits;
        }
    }

    /// Number of seeds of a k-mer, which is also the distance of the tested positions.
    fn seeds_per_kmer(&self) -> usize {
        (self.k + 1 - self.seed_bases) as usize
    }

    /// Hash of the seed at the start of `bases` (32 bases, the first in the highest bits), the same for both strands.
    #[inline]
    fn hash_seed(&self, bases: u64) -> u64 {
        let seed = bases >> (64 - 2 * self.seed_bases);
        seed.min(reverse_complement_kmer(seed, self.seed_bases)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Index of the filter word of a seed, and its bits in that word: from the highest bits of the hash, which depend on
    /// all bases.
    #[inline]
    fn filter_position(&self, hash: u64) -> (usize, u64) {
        let bit = |bits: u32| 1 << (hash >> (self.shift - bits) & 63);
        ((hash >> self.shift) as usize, bit(6) | bit(12))
    }

    /// Prefetches the filter word of a seed.
    #[inline]
    fn prefetch_word(&self, hash: u64) {
        prefetch(&self.words[self.filter_position(hash).0]);
    }

    /// Calls `each` with the ranges of a sequence, in order, that may contain one of the k-mers. `read` has its packed
    /// bases, `bases` is its length. Consecutive ranges may overlap by fewer than k − 1 bases. Each occurrence of a
    /// k-mer is completely inside one range. Ranges may contain bases other than A, C, G and T.
    #[inline]
    pub fn for_each_candidate_range(&self, read: PackedBases<'_>, bases: usize, mut each: impl FnMut(Range<usize>)) {
        let k = self.k as usize;
        let Some(last_kmer) = bases.checked_sub(k) else { return };
        let stride = self.seeds_per_kmer();
        let num_seeds = (bases - self.seed_bases as usize) / stride + 1;
        // First k-mer, and one past the last, of the range being extended.
        let mut open: Option<Range<usize>> = None;
        let mut hashes = [0; SEEDS_PER_BATCH];
        for batch in (0..num_seeds).step_by(SEEDS_PER_BATCH) {
            let hashes = &mut hashes[..SEEDS_PER_BATCH.min(num_seeds - batch)];
            for (number, hash) in (batch..).zip(hashes.iter_mut()) {
                *hash = self.hash_seed(read.word_from_base(number * stride));
                self.prefetch_word(*hash);
            }
            for (number, &hash) in (batch..).zip(hashes.iter()) {
                let (word, bits) = self.filter_position(hash);
                if self.words[word] & bits != bits {
                    continue;
                }
                // The k-mers that contain this seed.
                let (first, end) = ((number * stride + 1).saturating_sub(stride), (number * stride).min(last_kmer) + 1);
                match &mut open {
                    Some(kmers) if kmers.end == first => kmers.end = end,
                    _ => {
                        let closed = open.replace(first..end);
                        closed.into_iter().for_each(|kmers| each(kmers.start..kmers.end + k - 1));
                    }
                }
            }
        }
        open.into_iter().for_each(|kmers| each(kmers.start..kmers.end + k - 1));
    }
}

const _: () = assert!(crate::MAX_K as usize <= WORD_BASES);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::kmers;
    use crate::tests::random_bases;
    use genuma_reads::dna;
    use genuma_reads::packed_bases::CodesAndPackedBases;

    fn candidate_ranges(filter: &SeedFilter, seq: &[u8]) -> Vec<Range<usize>> {
        let (mut read, mut ranges) = (CodesAndPackedBases::default(), Vec::new());
        read.encode_bases(seq, seq, 0);
        filter.for_each_candidate_range(read.packed_bases(), seq.len(), |range| ranges.push(range));
        ranges
    }

    #[test]
    fn wanted_kmers_are_in_candidate_ranges_and_little_else_is() {
        for k in [17, 24, 31, 32] {
            let mut seq = random_bases(200_000, u64::from(k));
            seq[777] = b'N';
            seq[5_000..5_040].fill(b'A');
            let all: Vec<(usize, u64)> = kmers(&seq, k).map(|(at, kmer)| (at, kmer.canonical())).collect();
            let wanted: Vec<(usize, u64)> = all.iter().copied().step_by(701).collect();
            let filter = SeedFilter::from_kmers(k, &wanted.iter().map(|w| w.1).collect::<Vec<_>>());
            for turned in [false, true] {
                let read = if turned { dna::reverse_complement(&seq) } else { seq.clone() };
                let ranges = candidate_ranges(&filter, &read);
                assert!(ranges.windows(2).all(|two| two[0].end < two[1].start + k as usize - 1));
                for &(at, _) in &wanted {
                    let at = if turned { seq.len() - at - k as usize } else { at };
                    let within = |s: &Range<usize>| s.start <= at && at + k as usize <= s.end;
                    assert!(ranges.iter().any(within), "k {k}, {at}, turned {turned}");
                }
                let passed: usize = ranges.iter().map(|s| s.len() + 1 - k as usize).sum();
                assert!(passed * 10 < seq.len(), "{passed} k-mers of {}", seq.len());
            }
        }
        let nothing = SeedFilter::from_kmers(31, &[]);
        assert_eq!(candidate_ranges(&nothing, &random_bases(10_000, 1)), []);
    }

    #[test]
    fn each_kmer_of_a_short_sequence_is_in_a_range() {
        for k in [17, 24, 31, 32] {
            for len in 0..k as usize + 60 {
                let seq = random_bases(len, len as u64 + 1);
                let all: Vec<u64> = kmers(&seq, k).map(|(_, kmer)| kmer.canonical()).collect();
                let ranges = candidate_ranges(&SeedFilter::from_kmers(k, &all), &seq);
                let expected = (len >= k as usize).then_some(0..len);
                assert_eq!(ranges, Vec::from_iter(expected), "k {k}, {len} bases");
            }
        }
    }
}
