//! K-mer sketch of a pair of samples: counts of a sample of the k-mers of both, from bases of good quality only.
//!
//! The joint counters of all k-mers contain so many sequencing errors that a contamination of 1 % is not visible. The
//! sketch counts some of the k-mers a second time, more precisely: only k-mers whose bases all have good quality, once
//! per read pair even if its mates overlap, and once for all PCR duplicates of a molecule. A k-mer is counted if its
//! root (its middle k−2 bases) is sampled.
//!
//! Whether a root is sampled depends on its sequence alone. For each two bases at the same distance from the middle,
//! one bit says whether exactly one of them is strong (C or G); this bit is the same on both strands. The first bits
//! must equal a fixed pattern; 64 positions are tested at once. When the table of k-mers is full, the sampling level
//! rises: one more bit must match, and about half of the roots are dropped. So the final sketch depends neither on the
//! order of the reads nor on the number of threads or shards.

mod builder;
mod count_table;
mod mate_kmers;
mod molecules;
mod params;
mod pattern;

use genuma_kmers::RootCounters;
use serde::{Deserialize, Serialize};

pub use builder::{SketchBuilder, SketchWriter};
use count_table::KmerKeyAndCounts;
pub(crate) use molecules::probabilities_of_counted_molecules;
use molecules::{PairAndMoleculeCount, estimate_molecules};
pub use params::SketchParams;
pub use pattern::SketchRootSampling;

/// Minimum number of read pairs, summed over k-mers with 4 to 16 read pairs each, to estimate the duplicate share.
/// Chosen; with a higher value more small samples have no estimate (0).
const MIN_DUPLICATE_PAIRS: f64 = 1000.0;

/// Hash of a k-mer key that distributes keys over the slots. It is not safe against keys chosen by an adversary.
#[inline(always)]
fn hash_key(key: u64) -> u64 {
    let x = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

/// A finished k-mer sketch: k-mers with their counts, sorted by k-mer key (root, base before, base after).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KmerSketch {
    params: SketchParams,
    /// Sampling level: one root in 2^level is in the sketch.
    level: u32,
    counts: Vec<KmerKeyAndCounts>,
}

/// Index of the roots of a sketch with a minimum number of read pairs, for membership tests. Most tested roots are
/// absent; a bit filter (Bloom filter) rejects those quickly.
#[derive(Debug)]
pub(crate) struct SketchRootIndex<'a> {
    counts: &'a [KmerKeyAndCounts],
    /// Minimum number of read pairs of both samples together.
    min_pairs: u32,
    /// Bit filter with 16 bits per root.
    filter: Vec<u64>,
}

/// Iterates over the roots of sorted k-mers, each with its k-mers.
fn kmers_by_root(kmers: &[KmerKeyAndCounts]) -> impl Iterator<Item = &[KmerKeyAndCounts]> {
    kmers.chunk_by(|a, b| a.0 >> 4 == b.0 >> 4)
}

/// Number of read pairs of both samples in these k-mers together.
fn sum_pairs(kmers: &[KmerKeyAndCounts]) -> u32 {
    kmers.iter().flat_map(|(_, seen)| seen).fold(0, |sum, counts| sum.saturating_add(counts.pairs))
}

impl SketchRootIndex<'_> {
    /// Index of the word and mask of the bit of a root in the filter.
    #[inline(always)]
    fn filter_bit(&self, root: u64) -> (usize, u64) {
        let hash = hash_key(root);
        (((u128::from(hash) * self.filter.len() as u128) >> 64) as usize, 1 << (hash & 63))
    }

    /// Whether this canonical root is in the sketch with the minimum number of read pairs.
    #[inline]
    pub(crate) fn contains(&self, root: u64) -> bool {
        let (word, bit) = self.filter_bit(root);
        self.filter[word] & bit > 0 && {
            let from = self.counts.partition_point(|count| count.0 >> 4 < root);
            let own = kmers_by_root(&self.counts[from..]).next().unwrap_or_default();
            own.first().is_some_and(|first| first.0 >> 4 == root) && sum_pairs(own) >= self.min_pairs
        }
    }
}

impl KmerSketch {
    /// Share of all roots of the samples' k-mers that are in the sketch (0 to 1): 1 / 2^level.
    pub fn sampled_root_share(&self) -> f64 {
        (-f64::from(self.level)).exp2()
    }

    /// Length of a root in bases, k−2.
    pub(crate) fn num_root_bases(&self) -> u32 {
        self.params.k - 2
    }

    /// Returns the length of the roots, and the number of pattern bits by which they were sampled.
    pub(crate) fn root_sampling(&self) -> SketchRootSampling {
        SketchRootSampling { root_bases: self.num_root_bases(), pattern_level: self.level }
    }

    /// Builds an index for tests whether a root is in the sketch with at least `min_pairs` read pairs of both samples
    /// together.
    pub(crate) fn build_root_index(&self, min_pairs: u32) -> SketchRootIndex<'_> {
        let frequent = || kmers_by_root(&self.counts).filter(|own| sum_pairs(own) >= min_pairs);
        let words = (frequent().count() / 4).max(1);
        let mut index = SketchRootIndex { counts: &self.counts, min_pairs, filter: vec![0; words] };
        for own in frequent() {
            let (word, bit) = index.filter_bit(own[0].0 >> 4);
            index.filter[word] |= bit;
        }
        index
    }

    /// Estimates the share of the read pairs of each sample that are PCR duplicates, from k-mers in 4 to 16 read pairs.
    /// Deeper k-mers have more molecules than the start bits can count. 0 if there are too few such k-mers.
    pub(crate) fn duplicate_shares(&self) -> [f64; 2] {
        [0, 1].map(|s| {
            let counted = self.counts.iter().map(|(_, seen)| seen[s]).filter(|seen| (4..=16).contains(&seen.pairs));
            let sum = counted.fold([0.0; 2], |sum, seen| match seen.unrounded_molecules_if_few_bits() {
                Some(molecules) => [sum[0] + f64::from(seen.pairs), sum[1] + molecules],
                None => sum,
            });
            if sum[0] < MIN_DUPLICATE_PAIRS { 0.0 } else { (1.0 - sum[1] / sum[0]).max(0.0) }
        })
    }

    /// Iterates over the roots, each with its number of read pairs and its number of molecules in both samples. The
    /// number of read pairs is proportional to the depth; the number of molecules is less precise for deep roots.
    pub(crate) fn pairs_and_molecules_by_root(&self) -> impl Iterator<Item = (u64, [u32; 2], [u32; 2])> + '_ {
        let copies = self.duplicate_shares();
        kmers_by_root(&self.counts).map(move |own| {
            let sum = |of: &dyn Fn(PairAndMoleculeCount, usize) -> u32| {
                [0, 1].map(|s| own.iter().fold(0u32, |sum, (_, seen)| sum.saturating_add(of(seen[s], s))))
            };
            (own[0].0 >> 4, sum(&|seen, _| seen.pairs), sum(&|seen, s| estimate_molecules(seen, copies[s])))
        })
    }

    /// Iterates over the roots with their 16 counters per sample, in read pairs (duplicates included).
    pub(crate) fn root_counters_in_read_pairs(&self) -> impl Iterator<Item = RootCounters> + '_ {
        kmers_by_root(&self.counts).map(|own| {
            let mut counts = [[0; 2]; 16];
            own.iter().for_each(|(key, seen)| counts[(key & 15) as usize] = seen.map(|of_sample| of_sample.pairs));
            RootCounters { root: own[0].0 >> 4, counts }
        })
    }

    /// From now on counts each read pair of a sample as a molecule of its own. This is for libraries with fixed
    /// fragment ends, in which different molecules start alike.
    pub fn treat_pairs_as_molecules(&mut self, sample: usize) {
        for (_, seen) in &mut self.counts {
            // As many bits as pairs.
            let counts = &mut seen[sample];
            counts.start_bits = u32::MAX.checked_shl(counts.pairs).map_or(u32::MAX, |others| !others);
        }
    }

    /// Iterates over the roots with their 16 counters per sample, in molecules.
    pub fn root_counters_in_molecules(&self) -> impl Iterator<Item = RootCounters> + '_ {
        self.molecule_counters_with_shared_starts().map(|(root, _)| root)
    }

    /// Iterates over the roots with their 16 counters per sample, in molecules. The array is for each sample the number
    /// of pairs of molecules that start alike but have different bases before or after the root: duplicates with a
    /// sequencing error, or coincidences. Duplicates without an error are one molecule.
    pub fn molecule_counters_with_shared_starts(&self) -> impl Iterator<Item = (RootCounters, [u32; 2])> + '_ {
        let copies = self.duplicate_shares();
        kmers_by_root(&self.counts).map(move |own| {
            let mut counts = [[0; 2]; 16];
            let mut twice = [0; 2];
            for (i, (key, seen)) in own.iter().enumerate() {
                counts[(key & 15) as usize] =
                    [estimate_molecules(seen[0], copies[0]), estimate_molecules(seen[1], copies[1])];
                for (_, before) in &own[..i] {
                    twice
                        .iter_mut()
                        .enumerate()
                        .for_each(|(s, n)| *n += (before[s].start_bits & seen[s].start_bits).count_ones());
                }
            }
            (RootCounters { root: own[0].0 >> 4, counts }, twice)
        })
    }
}

#[cfg(test)]
mod tests;
