//! Joins overlapping k-mers to long strings (simplitigs; Břinda et al. 2021,
//! <https://doi.org/10.1186/s13059-021-02297-z>). Each k-mer of a set occurs in exactly one string, once, on either
//! strand.
//!
//! Unlike a unitig, a simplitig continues where the de Bruijn graph branches. So there are fewer strings, and each
//! string costs k − 1 additional bases.

use genuma_kmers::encode::{KmerOnBothStrands, reverse_complement_kmer};

use crate::counts::DictionaryCountsBuilder;
use crate::error::Error;
use crate::kmer_set::KmerSet;
use crate::kmer_strings::KmerStrings;

/// Maximum number of k-mers by which a string is extended to the left; they are kept in memory until the string is
/// complete.
const MAX_LEFT_EXTENSION_KMERS: usize = 1 << 20;

/// The strings of a set of k-mers, and the counts in the order of the strings.
#[derive(Debug)]
pub(crate) struct StringsAndCounts {
    pub(crate) strings: KmerStrings,
    pub(crate) counts: DictionaryCountsBuilder,
}

/// Joins the k-mers of a set to strings. `rows` has the counts of each k-mer (one for each sample) in the order of the
/// set.
///
/// # Errors
/// Twice the memory of the strings and counts is more than `max_bytes`.
pub(crate) fn join_kmers_to_strings(
    mut set: KmerSet,
    k: u32,
    rows: &[u32],
    num_samples: usize,
    max_bytes: u64,
) -> Result<StringsAndCounts, Error> {
    let joined = StringsAndCounts {
        strings: KmerStrings::default(),
        counts: DictionaryCountsBuilder::with_num_samples(num_samples),
    };
    let mut joiner = Joiner { k, rows, num_samples, joined, left: Vec::new(), num_joined: 0 };
    for seed in 0..set.len() {
        if set.mark_kmer_as_taken(seed) {
            joiner.build_string(&mut set, seed);
            joiner.check_memory(set.len() as u64, max_bytes)?;
        }
    }
    let mut joined = joiner.joined;
    joined.strings.complete_string_start_counts();
    Ok(joined)
}

struct Joiner<'a> {
    k: u32,
    rows: &'a [u32],
    num_samples: usize,
    joined: StringsAndCounts,
    /// The seed and the k-mers to its left except the leftmost, from right to left. Each value contains the index of
    /// the k-mer and, in the lowest two bits, its last base in the string.
    left: Vec<u64>,
    num_joined: u64,
}

impl Joiner<'_> {
    /// Makes the string that contains the k-mer with index `seed`, by extending it in both directions.
    fn build_string(&mut self, set: &mut KmerSet, seed: usize) {
        let forward = set.kmer_of_rank(seed);
        let seed_kmer = KmerOnBothStrands { forward, reverse: reverse_complement_kmer(forward, self.k) };
        // To the left of a k-mer is to the right of its reverse complement.
        let mut leftmost = KmerOnBothStrands { forward: seed_kmer.reverse, reverse: seed_kmer.forward };
        let mut first = seed;
        self.left.clear();
        while self.left.len() < MAX_LEFT_EXTENSION_KMERS
            && let Some((next, index)) = set.take_free_successor(leftmost)
        {
            self.left.push((first as u64) << 2 | leftmost.reverse & 3);
            (leftmost, first) = (next, index);
        }
        self.joined.strings.begin_string();
        for place in (0..self.k).rev() {
            self.joined.strings.push_base(leftmost.reverse >> (2 * place) & 3);
        }
        self.push_counts(first);
        while let Some(next) = self.left.pop() {
            self.joined.strings.push_base(next & 3);
            self.push_counts((next >> 2) as usize);
        }
        let mut last = seed_kmer;
        while let Some((next, index)) = set.take_free_successor(last) {
            self.joined.strings.push_base(next.forward & 3);
            self.push_counts(index);
            last = next;
        }
    }

    fn push_counts(&mut self, index: usize) {
        self.num_joined += 1;
        self.joined.counts.push_counts(&self.rows[index * self.num_samples..][..self.num_samples]);
    }

    /// Returns an error if the strings and counts take too much memory. An array that grows temporarily exists twice.
    fn check_memory(&self, num_kmers: u64, max_bytes: u64) -> Result<(), Error> {
        let needed = 2 * (self.joined.strings.memory_bytes() + self.joined.counts.memory_bytes());
        if needed <= max_bytes {
            return Ok(());
        }
        let needed_bytes = (u128::from(needed) * u128::from(num_kmers) / u128::from(self.num_joined.max(1))) as u64;
        Err(Error::MemoryLimit { needed_bytes, allowed_bytes: max_bytes })
    }
}
