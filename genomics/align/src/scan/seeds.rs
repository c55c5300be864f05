//! Seeds (closed syncmers) of the sequences, and lookup of the seeds of a reference among them.

use genuma_machine::simd_and_prefetch::prefetch;
use genuma_reads::dna::{NOT_A_BASE_CODE, encode_base};

/// Length of a seed (bp).
pub(super) const SEED_BP: usize = 19;
/// Length (bp) of the s-mers of a seed. A 19-mer is a seed if the first or the last of its five 15-mers has the
/// smallest hash (closed syncmer: Edgar 2021). On average two of five 19-mers are seeds, the same ones on both
/// strands, and at least one of any four neighbours is a seed. So any exact match of 22 bases contains a seed.
const SMER_BP: usize = 15;
const SMERS_PER_SEED: usize = SEED_BP - SMER_BP + 1;

const SEED_MASK: u64 = (1 << (2 * SEED_BP)) - 1;
const SMER_MASK: u64 = (1 << (2 * SMER_BP)) - 1;
/// Odd multiplier of the hash function; distinct k-mers get distinct hashes.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// Minimum number of bits per distinct seed of the filter (one-hash Bloom filter) that is tested before the index; the
/// size is the next larger power of two. At most one in this number of k-mers that are not in the index passes it.
const FILTER_BITS_PER_SEED: usize = 16;
/// Minimum mean number of distinct seeds in a bucket; the number of buckets is a power of two.
const MIN_MEAN_SEEDS_PER_BUCKET: usize = 4;

/// A seed at a position of a sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seed {
    /// Hash of the canonical k-mer, equal on both strands.
    pub(super) hash: u64,
    /// Position of the first base of the seed in the bases that were searched.
    pub(super) at: u32,
    /// Whether the canonical k-mer is the reverse complement of the seed.
    pub(super) reverse: bool,
}

/// Number of seeds that are passed to the callback together.
const SEEDS_PER_BATCH: usize = 256;

/// Passes all seeds of `bases` to `each`, in order and in batches. k-mers with an unknown base are skipped.
#[inline(always)]
pub(super) fn for_each_seed_batch(bases: &[u8], mut each: impl FnMut(&[Seed])) {
    let (mut forward, mut backward, mut known) = (0u64, 0u64, 0usize);
    // Hashes of the s-mers that end at the last bases, the newest last.
    let mut parts = [0u64; SMERS_PER_SEED];
    let (mut some, mut n) = ([Seed::default(); SEEDS_PER_BATCH], 0);
    for (end, &base) in (1u32..).zip(bases) {
        let code = encode_base(base);
        if code == NOT_A_BASE_CODE {
            known = 0;
            continue;
        }
        forward = (forward << 2 | u64::from(code)) & SEED_MASK;
        backward = backward >> 2 | u64::from(3 - code) << (2 * (SEED_BP - 1));
        known += 1;
        // The newest bases are the lowest bits of one strand and the highest bits of the other.
        let part = (forward & SMER_MASK).min(backward >> (2 * (SEED_BP - SMER_BP)));
        let [_, b, c, d, e] = parts;
        let inner = c.min(d).min(e);
        parts = [b, c, d, e, part.wrapping_mul(HASH_MULTIPLIER)];
        // Whether a k-mer is a seed is unpredictable, so that the code avoids branches.
        let hash = forward.min(backward).wrapping_mul(HASH_MULTIPLIER);
        some[n] = Seed { hash, at: end.wrapping_sub(SEED_BP as u32), reverse: backward < forward };
        n += usize::from(known >= SEED_BP && b.min(parts[SMERS_PER_SEED - 1]) <= inner);
        if n == SEEDS_PER_BATCH {
            each(&some);
            n = 0;
        }
    }
    each(&some[..n]);
}

/// An occurrence of a seed in the query sequences, which are joined end to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeedPosition {
    hash: u64,
    /// Position of the first base in the concatenated sequences, shifted left by one. The lowest bit is set if the
    /// canonical k-mer is the reverse complement.
    at: u32,
    sequence: u32,
}

impl SeedPosition {
    /// The occurrence of a seed in sequence number `sequence`.
    pub(super) fn from_seed_in_sequence(seed: Seed, sequence: u32) -> SeedPosition {
        SeedPosition { hash: seed.hash, at: seed.at << 1 | u32::from(seed.reverse), sequence }
    }

    /// Index of the sequence that has the seed.
    pub(super) fn sequence_index(self) -> usize {
        self.sequence as usize
    }

    /// Position of the seed's first base in the concatenated sequences that are searched.
    pub(super) fn position_in_joined_sequences(self) -> usize {
        (self.at >> 1) as usize
    }

    /// Whether the canonical k-mer is the reverse complement of the seed in the sequence.
    pub(super) fn is_canonical_reverse(self) -> bool {
        self.at & 1 == 1
    }
}

/// Index of the seeds of the sequences by hash.
#[derive(Debug)]
pub(super) struct SeedIndex {
    /// All occurrences, sorted by hash.
    positions: Vec<SeedPosition>,
    /// Hash of each distinct seed, sorted.
    hashes: Vec<u64>,
    first_positions: Vec<u32>,
    /// For each bucket (highest bits of the hash), the index of its first seed; one more item holds the number of
    /// seeds.
    bucket_starts: Vec<u32>,
    bucket_bits: u32,
    filter: Vec<u64>,
    filter_bits: u32,
}

/// Buffers of one thread for looking up seeds.
#[derive(Debug, Default)]
pub(super) struct SeedLookupBuffers {
    passed: Vec<Seed>,
    ranges: Vec<(usize, usize)>,
    matches: Vec<(usize, Seed)>,
}

impl SeedIndex {
    /// Builds the index; there must be fewer than 2³¹ occurrences.
    pub(super) fn index_seed_positions(mut positions: Vec<SeedPosition>) -> SeedIndex {
        positions.sort_unstable();
        let (mut hashes, mut first_positions) = (Vec::new(), Vec::new());
        for (i, position) in positions.iter().enumerate() {
            if i == 0 || positions[i - 1].hash != position.hash {
                hashes.push(position.hash);
                first_positions.push(i as u32);
            }
        }
        let num_distinct_seeds = hashes.len();
        first_positions.push(positions.len() as u32);
        let bucket_bits = (num_distinct_seeds / MIN_MEAN_SEEDS_PER_BUCKET).max(2).ilog2();
        let filter_bits = (num_distinct_seeds * FILTER_BITS_PER_SEED).max(64).ilog2() + 1;
        let mut bucket_starts = vec![0; (1 << bucket_bits) + 1];
        let mut filter = vec![0u64; (1 << filter_bits) / 64];
        for hash in &hashes {
            bucket_starts[(hash >> (64 - bucket_bits)) as usize + 1] += 1;
            let bit = hash >> (64 - filter_bits);
            filter[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        for i in 1..bucket_starts.len() {
            bucket_starts[i] += bucket_starts[i - 1];
        }
        SeedIndex { positions, hashes, first_positions, bucket_starts, bucket_bits, filter, filter_bits }
    }

    /// Number of distinct seeds in the index.
    pub(super) fn num_distinct_seeds(&self) -> usize {
        self.hashes.len()
    }

    /// Calls `each` for each seed of `bases` that is in the index, with the number of the seed among the distinct
    /// seeds of the index.
    ///
    /// Each stage of the lookup is done for many seeds before the next stage, and prefetches the memory that the next
    /// stage needs.
    #[inline(always)]
    pub(super) fn for_each_indexed_seed(
        &self,
        scratch: &mut SeedLookupBuffers,
        bases: &[u8],
        mut each: impl FnMut(usize, Seed),
    ) {
        let SeedLookupBuffers { passed, ranges, matches } = scratch;
        let bit = |hash: u64| (hash >> (64 - self.filter_bits)) as usize;
        let bucket = |hash: u64| (hash >> (64 - self.bucket_bits)) as usize;
        for_each_seed_batch(bases, |seeds| {
            seeds.iter().for_each(|seed| prefetch(&self.filter[bit(seed.hash) / 64]));
            passed.clear();
            for &seed in seeds {
                let bit = bit(seed.hash);
                if self.filter[bit / 64] >> (bit % 64) & 1 == 1 {
                    prefetch(&self.bucket_starts[bucket(seed.hash)]);
                    passed.push(seed);
                }
            }
            ranges.clear();
            for seed in &*passed {
                let bucket = bucket(seed.hash);
                let range = (self.bucket_starts[bucket] as usize, self.bucket_starts[bucket + 1] as usize);
                if let Some(first) = self.hashes.get(range.0) {
                    prefetch(first);
                }
                ranges.push(range);
            }
            matches.clear();
            for (&seed, &(from, to)) in passed.iter().zip(&*ranges) {
                let here = &self.hashes[from..to];
                if let Some(n) = here.iter().position(|other| *other == seed.hash) {
                    prefetch(&self.first_positions[from + n]);
                    matches.push((from + n, seed));
                }
            }
            matches.iter().for_each(|&(number, seed)| each(number, seed));
        });
    }

    /// Occurrences of distinct seed `number` in the sequences.
    #[inline(always)]
    pub(super) fn positions_of_seed(&self, number: usize) -> &[SeedPosition] {
        &self.positions[self.first_positions[number] as usize..self.first_positions[number + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use genuma_reads::dna::reverse_complement;

    use super::*;
    use crate::scan::tests::TestRng;

    #[test]
    fn each_strand_says_the_same_and_unknown_bases_have_none() {
        let mut bases = TestRng(5).bases(300);
        bases[100] = b'N';
        bases[130] = b'r';
        let of = |bases: &[u8]| {
            let mut all = Vec::new();
            for_each_seed_batch(bases, |some| all.extend(some.iter().map(|s| (s.hash, s.at as usize, s.reverse))));
            all
        };
        let forward = of(&bases);
        // Two of five k-mers from 0, 101 and 131 on are seeds, and none is far from the next.
        assert!((80..140).contains(&forward.len()), "{}", forward.len());
        for known in [0..100, 101..130, 131..300] {
            let starts: Vec<usize> = forward.iter().map(|f| f.1).filter(|at| known.contains(at)).collect();
            let last = known.end - SEED_BP;
            let ends = [known.start].into_iter().chain(starts.iter().map(|at| at + 1));
            let gaps = ends.zip(starts.iter().copied().chain([last + 1])).map(|(from, to)| to - from);
            assert!(gaps.max().unwrap() <= 3 && starts.iter().all(|at| *at <= last), "{starts:?}");
        }
        let mut backward = of(&reverse_complement(&bases));
        backward.reverse();
        for (one, other) in forward.iter().zip(&backward) {
            assert_eq!((one.0, one.1, one.2), (other.0, 300 - SEED_BP - other.1, !other.2));
        }
    }

    #[test]
    fn what_is_there_is_found_and_nothing_else() {
        let mut rng = TestRng(6);
        let bases = [rng.bases(3000), rng.bases(40).repeat(20)].concat();
        let all = |seeds: &SeedIndex, bases: &[u8]| {
            let mut all = Vec::new();
            seeds.for_each_indexed_seed(&mut SeedLookupBuffers::default(), bases, |number, seed| {
                all.push((number, seed))
            });
            all
        };
        let of = |bases: &[u8]| {
            let mut all = Vec::new();
            for_each_seed_batch(bases, |some| all.extend_from_slice(some));
            all
        };
        let mut expected: BTreeMap<u64, Vec<Seed>> = BTreeMap::new();
        of(&bases).iter().for_each(|seed| expected.entry(seed.hash).or_default().push(*seed));
        let seeds = SeedIndex::index_seed_positions(
            of(&bases).into_iter().map(|seed| SeedPosition::from_seed_in_sequence(seed, 0)).collect(),
        );
        assert_eq!(seeds.num_distinct_seeds(), expected.len());
        let found = all(&seeds, &bases);
        assert_eq!(found.iter().map(|found| found.1).collect::<Vec<_>>(), of(&bases));
        for (number, seed) in found {
            let positions = seeds
                .positions_of_seed(number)
                .iter()
                .map(|p| (p.position_in_joined_sequences() as u32, p.is_canonical_reverse()));
            let there = expected[&seed.hash].iter().map(|seed| (seed.at, seed.reverse));
            assert!(positions.eq(there), "{seed:?}");
        }
        let others = [&rng.bases(2000), &bases[100..200], &rng.bases(2000)].concat();
        let here: Vec<Seed> = of(&others).into_iter().filter(|s| expected.contains_key(&s.hash)).collect();
        assert!(here.len() > 20);
        assert_eq!(all(&seeds, &others).into_iter().map(|found| found.1).collect::<Vec<_>>(), here);
        assert_eq!(all(&SeedIndex::index_seed_positions(Vec::new()), &bases), []);
    }
}
