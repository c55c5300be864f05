//! Index from the hash of a minimizer or of a k-mer to its positions in the strings.
//!
//! A hash belongs to a bucket; a bucket has about one entry on average. An entry consists of a fingerprint of the hash
//! and a position. The numbers of entries in the buckets are stored in unary code. For each group of buckets, the
//! number of entries before it is stored.

use crate::bits::{BitWriter, position_of_nth_set_bit, read_bits};
use crate::error::Error;
use crate::kmer_set::allocate_empty_vec;

/// Number of buckets in a group.
const BUCKETS_PER_GROUP: u64 = 32;
/// Bits of a fingerprint. With 8 bits, one in 256 entries of other hashes in the same bucket is mistaken for an entry
/// of the searched hash.
const FINGERPRINT_BITS: u32 = 8;
/// Maximum number of positions that the index of minimizers stores for a hash. A hash with more positions has one entry
/// without a position. The index of k-mers has no maximum.
pub(crate) const MAX_POSITIONS_PER_MINIMIZER: usize = 16;
/// Number of hash ranges whose entries are counted first, so that few passes fill the index.
const NUM_HASH_RANGES: usize = 1 << 12;

/// Index from hashes (of minimizers or k-mers) to positions in the strings.
#[derive(Debug, Default)]
pub(crate) struct HashPositionIndex {
    pub(crate) num_buckets: u64,
    pub(crate) num_entries: u64,
    /// Number of bits of a position. An entry with all of these bits set has no position.
    pub(crate) position_bits: u32,
    /// For each group of buckets the number of entries before it; the last value is the number of all entries.
    pub(crate) entries_before_group: Vec<u64>,
    /// Numbers of entries of the buckets in unary code: for each bucket, a one bit for each entry, then a zero bit.
    pub(crate) bucket_sizes: Vec<u64>,
    /// Packed entries: the fingerprint in the lowest bits, then the position.
    pub(crate) entries: Vec<u64>,
}

/// What the index stores for a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexEntry {
    /// One of the positions of the hash in the strings.
    Position(u64),
    /// The hash has more than [`MAX_POSITIONS_PER_MINIMIZER`] positions.
    ManyPositions,
}

impl HashPositionIndex {
    /// Number of words of the three arrays: entries before each group, bucket sizes, entries.
    pub(crate) fn array_lengths_in_words(num_buckets: u64, num_entries: u64, position_bits: u32) -> [u64; 3] {
        [
            num_buckets.div_ceil(BUCKETS_PER_GROUP) + 1,
            (num_entries + num_buckets).div_ceil(64),
            (num_entries * u64::from(position_bits + FINGERPRINT_BITS)).div_ceil(64),
        ]
    }

    /// Number of bits that positions among `num_bases` bases need, and one more value that marks an entry without a
    /// position.
    pub(crate) fn bits_needed_for_positions(num_bases: u64) -> u32 {
        u64::BITS - (num_bases + 1).leading_zeros()
    }

    /// Calls `each` with the entries of a hash until `each` returns `true`. Returns whether it did. The entries may
    /// include some of other hashes with the same fingerprint.
    #[inline]
    pub(crate) fn visit_entries_of_hash_until(&self, hash: u64, mut each: impl FnMut(IndexEntry) -> bool) -> bool {
        let (bucket, fingerprint) = bucket_of(hash, self.num_buckets);
        let (first, num) = self.entries_of_bucket(bucket);
        let width = self.position_bits + FINGERPRINT_BITS;
        let no_position = u64::MAX >> (64 - self.position_bits);
        (first..first + num).any(|entry| {
            let bits = read_bits(&self.entries, entry.wrapping_mul(u64::from(width)), width);
            bits & ((1 << FINGERPRINT_BITS) - 1) == fingerprint
                && each(match bits >> FINGERPRINT_BITS {
                    position if position == no_position => IndexEntry::ManyPositions,
                    position => IndexEntry::Position(position),
                })
        })
    }

    /// Index of the first entry of a bucket, and number of its entries.
    #[inline]
    fn entries_of_bucket(&self, bucket: u64) -> (u64, u64) {
        let group = bucket / BUCKETS_PER_GROUP;
        // The minimum matters only for a damaged file.
        let before = self.entries_before_group.get(group as usize).map_or(0, |&before| before.min(self.num_entries));
        let group_start = before + group * BUCKETS_PER_GROUP;
        let mut at = group_start;
        let mut buckets_left = (bucket % BUCKETS_PER_GROUP) as u32;
        while buckets_left > 0 {
            let zeros = !read_bits(&self.bucket_sizes, at, 64);
            let num_zeros = zeros.count_ones();
            if num_zeros < buckets_left {
                buckets_left -= num_zeros;
                at += 64;
            } else {
                at += u64::from(position_of_nth_set_bit(zeros, buckets_left - 1)) + 1;
                break;
            }
        }
        let first = before + (at - group_start) - bucket % BUCKETS_PER_GROUP;
        let mut num = 0;
        loop {
            let ones = read_bits(&self.bucket_sizes, at + num, 64).trailing_ones();
            num += u64::from(ones);
            if ones < 64 {
                return (first, num);
            }
        }
    }
}

/// Bucket and fingerprint of a hash. Buckets are in the order of the hashes.
#[inline]
fn bucket_of(hash: u64, num_buckets: u64) -> (u64, u64) {
    let product = u128::from(hash) * u128::from(num_buckets);
    ((product >> 64) as u64, product as u64 >> (64 - FINGERPRINT_BITS))
}

/// Function that calls its argument with each hash and its position, in the same order each time.
pub(crate) type HashPositionSource<'a> = dyn Fn(&mut dyn FnMut(u64, u64)) + 'a;

/// A new index, and in ascending order the hashes that have more positions than the index stores for a hash.
#[derive(Debug)]
pub(crate) struct IndexAndFrequentHashes {
    pub(crate) index: HashPositionIndex,
    pub(crate) frequent_hashes: Vec<u64>,
}

/// Builds an index in several passes over the hashes. A hash with more than `max_positions` positions gets one entry
/// without a position. The entries of one pass take at most `memory_bytes` bytes, unless one hash range takes more.
///
/// # Errors
/// The system has no memory left.
pub(crate) fn build_hash_position_index(
    scan: &HashPositionSource<'_>,
    position_bits: u32,
    max_positions: usize,
    memory_bytes: u64,
) -> Result<IndexAndFrequentHashes, Error> {
    let mut range_sizes = vec![0u64; NUM_HASH_RANGES];
    scan(&mut |hash, _| range_sizes[hash_range(hash)] += 1);
    let num_positions: u64 = range_sizes.iter().sum();
    let mut writer = IndexWriter::new(num_positions.max(1), position_bits, max_positions);
    let max_entries = memory_bytes / size_of::<(u64, u64)>() as u64;
    let mut range = 0;
    while range < NUM_HASH_RANGES {
        let (first, mut num) = (range, range_sizes[range]);
        range += 1;
        while range < NUM_HASH_RANGES && num + range_sizes[range] <= max_entries {
            num += range_sizes[range];
            range += 1;
        }
        let mut entries = allocate_empty_vec(num)?;
        scan(&mut |hash, position| {
            if (first..range).contains(&hash_range(hash)) {
                entries.push((hash, position));
            }
        });
        entries.sort_unstable();
        entries.dedup();
        entries.chunk_by(|a, b| a.0 == b.0).for_each(|positions| writer.push_hash(positions));
    }
    Ok(writer.finish())
}

fn hash_range(hash: u64) -> usize {
    (hash >> (64 - NUM_HASH_RANGES.ilog2())) as usize
}

struct IndexWriter {
    index: HashPositionIndex,
    max_positions: usize,
    sizes: BitWriter,
    entries: BitWriter,
    /// Bucket of the last entry that was written.
    bucket: u64,
    frequent_hashes: Vec<u64>,
}

impl IndexWriter {
    fn new(num_buckets: u64, position_bits: u32, max_positions: usize) -> IndexWriter {
        let entries_before_group = vec![0];
        let index =
            HashPositionIndex { num_buckets, position_bits, entries_before_group, ..HashPositionIndex::default() };
        let (sizes, entries) = (BitWriter::default(), BitWriter::default());
        IndexWriter { index, max_positions, sizes, entries, bucket: 0, frequent_hashes: Vec::new() }
    }

    /// Ends all buckets before `bucket` that have not ended yet.
    fn move_to_bucket(&mut self, bucket: u64) {
        while self.bucket < bucket {
            self.sizes.push_bits(0, 1);
            self.bucket += 1;
            if self.bucket.is_multiple_of(BUCKETS_PER_GROUP) {
                self.index.entries_before_group.push(self.index.num_entries);
            }
        }
    }

    /// Appends the entries of a hash, which must be larger than all hashes before. `positions` contains the hash and
    /// each of its positions.
    fn push_hash(&mut self, positions: &[(u64, u64)]) {
        let hash = positions[0].0;
        let (bucket, fingerprint) = bucket_of(hash, self.index.num_buckets);
        self.move_to_bucket(bucket);
        if positions.len() > self.max_positions {
            self.frequent_hashes.push(hash);
            self.push_entry(fingerprint, u64::MAX >> (64 - self.index.position_bits));
        } else {
            positions.iter().for_each(|&(_, position)| self.push_entry(fingerprint, position));
        }
    }

    fn push_entry(&mut self, fingerprint: u64, position: u64) {
        self.sizes.push_bits(1, 1);
        self.entries.push_bits(fingerprint, FINGERPRINT_BITS);
        self.entries.push_bits(position, self.index.position_bits);
        self.index.num_entries += 1;
    }

    fn finish(mut self) -> IndexAndFrequentHashes {
        let num_buckets = self.index.num_buckets;
        self.move_to_bucket(num_buckets);
        let num_groups = num_buckets.div_ceil(BUCKETS_PER_GROUP) as usize;
        self.index.entries_before_group.resize(num_groups + 1, self.index.num_entries);
        let IndexWriter { mut index, sizes, entries, frequent_hashes, .. } = self;
        (index.bucket_sizes, index.entries) = (sizes.into_words(), entries.into_words());
        IndexAndFrequentHashes { index, frequent_hashes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_work::hash::mix_bits;

    #[test]
    fn positions_come_back_in_any_number_of_passes() {
        for (num_hashes, memory_bytes) in [(0, 1 << 20), (1, 1 << 20), (20_000, 1 << 30), (20_000, 1 << 14)] {
            // Hash i has 1 + i % 20 positions, a hash of 17 and more is frequent.
            let positions = |i: u64| (0..1 + i % 20).map(move |n| i * 20 + n);
            let scan = |each: &mut dyn FnMut(u64, u64)| {
                for i in 0..num_hashes {
                    positions(i).for_each(|position| each(mix_bits(i), position));
                    each(mix_bits(i), i * 20);
                }
            };
            let position_bits = HashPositionIndex::bits_needed_for_positions(num_hashes * 20);
            let built = build_hash_position_index(&scan, position_bits, MAX_POSITIONS_PER_MINIMIZER, memory_bytes)
                .expect("memory");
            let index = &built.index;
            let words = [&index.entries_before_group, &index.bucket_sizes, &index.entries].map(|w| w.len() as u64);
            assert_eq!(
                words,
                HashPositionIndex::array_lengths_in_words(index.num_buckets, index.num_entries, position_bits)
            );
            let mut frequent: Vec<u64> = (0..num_hashes).filter(|i| i % 20 >= 16).map(mix_bits).collect();
            frequent.sort_unstable();
            assert_eq!(built.frequent_hashes, frequent);
            let mut num_strange = 0;
            for i in 0..num_hashes {
                let mut found = Vec::new();
                assert!(!index.visit_entries_of_hash_until(mix_bits(i), |entry| {
                    found.push(entry);
                    false
                }));
                let own = |entry: &&IndexEntry| match entry {
                    IndexEntry::Position(position) => position / 20 == i,
                    IndexEntry::ManyPositions => i % 20 >= 16,
                };
                let expected = if i % 20 < 16 { 1 + i % 20 } else { 1 };
                let num_own = found.iter().filter(own).count() as u64;
                assert!(num_own == expected || i % 20 >= 16 && num_own > 1, "hash {i}: {found:?}");
                num_strange += found.len() - expected as usize;
            }
            assert!(num_strange <= num_hashes as usize / 20, "{num_strange} entries of other hashes");
        }
    }
}
