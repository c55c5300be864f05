//! Sorted k-mers in memory, in which the k-mers that overlap a given k-mer by k − 1 bases can be found.

use genuma_kmers::encode::{KmerOnBothStrands, kmer_mask};

use crate::error::Error;

/// Minimum mean number of k-mers for each value of the prefix by which k-mers are indexed; the mean is less than twice
/// this, except for the smallest k.
const MIN_MEAN_KMERS_PER_PREFIX: u64 = 8;

/// A sorted set of canonical k-mers. Each k-mer can be marked as taken, once.
#[derive(Debug)]
pub(crate) struct KmerSet {
    k: u32,
    keys: Vec<u64>,
    /// For each value of the prefix (the highest bits of a k-mer) the number of k-mers with a smaller prefix; the last
    /// entry is the number of all k-mers.
    prefix_starts: Vec<u64>,
    /// Number of bits to shift a k-mer to the right to get its prefix.
    prefix_shift: u32,
    taken: Vec<u64>,
}

impl KmerSet {
    /// Memory in bytes of a set of `num_kmers` k-mers.
    pub(crate) fn memory_bytes_for_kmers(k: u32, num_kmers: u64) -> u64 {
        8 * num_kmers + 8 * ((1 << prefix_bits(k, num_kmers)) + 1) + 8 * num_kmers.div_ceil(64)
    }

    /// Creates an empty set with memory for `num_kmers` k-mers.
    pub(crate) fn with_capacity(k: u32, num_kmers: u64) -> Result<KmerSet, Error> {
        let bits = prefix_bits(k, num_kmers);
        let keys = allocate_empty_vec(num_kmers)?;
        let mut prefix_starts = allocate_empty_vec((1 << bits) + 1)?;
        prefix_starts.push(0);
        let mut taken = allocate_empty_vec(num_kmers.div_ceil(64))?;
        taken.resize(num_kmers.div_ceil(64) as usize, 0);
        Ok(KmerSet { k, keys, prefix_starts, prefix_shift: 2 * k - bits, taken })
    }

    /// Adds a canonical k-mer, which must be larger than all k-mers added before.
    #[inline]
    pub(crate) fn push_kmer(&mut self, key: u64) {
        let prefix = self.prefix_of(key);
        while self.prefix_starts.len() <= prefix {
            self.prefix_starts.push(self.keys.len() as u64);
        }
        self.keys.push(key);
    }

    /// Completes the index of the prefixes after all k-mers have been added.
    pub(crate) fn complete_prefix_index(&mut self) {
        let num_prefixes = 1usize << (2 * self.k - self.prefix_shift);
        self.prefix_starts.resize(num_prefixes + 1, self.keys.len() as u64);
    }

    /// Number of k-mers in the set, whether or not they have been joined into a string of the dictionary.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The k-mer of rank `index` in ascending order, from 0.
    pub(crate) fn kmer_of_rank(&self, index: usize) -> u64 {
        self.keys[index]
    }

    /// The largest k-mer; `None` if the set is empty.
    pub(crate) fn last_kmer(&self) -> Option<u64> {
        self.keys.last().copied()
    }

    #[inline]
    fn prefix_of(&self, key: u64) -> usize {
        // A shift by 64 bits occurs for k = 32 and a single prefix.
        key.checked_shr(self.prefix_shift).unwrap_or(0) as usize
    }

    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        let prefix = self.prefix_of(key);
        let (start, end) = (self.prefix_starts[prefix] as usize, self.prefix_starts[prefix + 1] as usize);
        self.keys[start..end].binary_search(&key).ok().map(|at| start + at)
    }

    #[inline]
    fn is_taken(&self, index: usize) -> bool {
        self.taken[index / 64] >> (index % 64) & 1 == 1
    }

    /// Marks the k-mer at `index` as taken. Returns whether it was free.
    #[inline]
    pub(crate) fn mark_kmer_as_taken(&mut self, index: usize) -> bool {
        let free = !self.is_taken(index);
        self.taken[index / 64] |= 1 << (index % 64);
        free
    }

    /// Takes a free k-mer that begins with the last k − 1 bases of `kmer`, the one with the smallest last base. Returns
    /// it in the orientation of `kmer`, and its index; `None` if no such k-mer is free.
    #[inline]
    pub(crate) fn take_free_successor(&mut self, kmer: KmerOnBothStrands) -> Option<(KmerOnBothStrands, usize)> {
        for code in 0..4 {
            let next = shift_base_into_kmer(kmer, code, self.k);
            if let Some(index) = self.find(next.canonical())
                && self.mark_kmer_as_taken(index)
            {
                return Some((next, index));
            }
        }
        None
    }
}

/// Shifts a k-mer by one base: drops its first base and appends the base `code` (0 to 3).
#[inline]
pub(crate) fn shift_base_into_kmer(kmer: KmerOnBothStrands, code: u64, k: u32) -> KmerOnBothStrands {
    KmerOnBothStrands {
        forward: (kmer.forward << 2 | code) & kmer_mask(k),
        reverse: kmer.reverse >> 2 | (3 - code) << (2 * (k - 1)),
    }
}

fn prefix_bits(k: u32, num_kmers: u64) -> u32 {
    (num_kmers / MIN_MEAN_KMERS_PER_PREFIX).checked_ilog2().unwrap_or(0).min(2 * k)
}

/// An empty vector with memory for `entries` values.
pub(crate) fn allocate_empty_vec<T>(entries: u64) -> Result<Vec<T>, Error> {
    let mut reserved = Vec::new();
    let refused = |_| Error::NotEnoughMemory { needed_bytes: entries.saturating_mul(size_of::<T>() as u64) };
    reserved.try_reserve_exact(usize::try_from(entries).unwrap_or(usize::MAX)).map_err(refused)?;
    Ok(reserved)
}
