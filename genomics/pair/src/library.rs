//! Metrics of a sequencing library from its reads alone: read lengths, qualities, errors, insert sizes, duplicates,
//! telomeres.
//!
//! The metrics use each read pair both before and after trimming. Lengths and telomeres are counted over all pairs,
//! duplicates over the pairs with sampled duplicate keys. Single bases are examined in some tens of thousands of pairs,
//! which are sampled by a hash of their names. The sample depends on the set of all pairs and on their expected number,
//! not on threads or the order of the pairs.
//!
//! Damage before amplification is in both mates and in all duplicates, so overlapping mates do not show it. A call
//! estimates damage from the reads at its sites.

pub mod duplicates;
mod cycles;
pub mod metrics;
mod overlap;
mod telomere;

use genuma_reads::ReadPair;
use genuma_reads::packed_bases::{CodesAndPackedBases, PackedBases};
use serde::{Deserialize, Serialize};

use cycles::{CycleTalliesAndDisagreements, ErrorProbabilityByQuality};
use duplicates::{DUPLICATE_KEY_BASES_PER_MATE, DuplicateKeyCounts, hash_two_words};

use crate::nucleosomes::NucleosomePattern;
pub use metrics::LibraryMetrics;

/// Maximum number of pairs that are examined base by base in one sampling level.
const MAX_PAIRS_PER_LEVEL: u64 = 1 << 14;
/// Number of sampling levels; each has half as many pairs as the level before it.
const NUM_SAMPLING_LEVELS: usize = 32;
/// Largest read length that is counted separately, in bases; longer reads are counted as this length.
const MAX_TRACKED_LENGTH: usize = 1024;

/// Counts from the sampled pairs, which are examined base by base.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct DetailTally {
    pairs: u64,
    cycles: CycleTalliesAndDisagreements,
    /// Number of pairs by fragment length in bp, for pairs whose mates overlap.
    fragment_lengths: Vec<u64>,
}

impl DetailTally {
    fn add(&mut self, other: &DetailTally) {
        self.pairs += other.pairs;
        self.cycles.merge_tallies(&other.cycles);
        add_counts(&mut self.fragment_lengths, &other.fragment_lengths);
    }
}

/// Adds `others` to `sums` element by element; `sums` grows as needed.
fn add_counts(sums: &mut Vec<u64>, others: &[u64]) {
    sums.resize(sums.len().max(others.len()), 0);
    sums.iter_mut().zip(others).for_each(|(sum, n)| *sum += n);
}

/// Increments `row[at]`; the row grows as needed.
fn increment(row: &mut Vec<u64>, at: usize) {
    if row.len() <= at {
        row.resize(at + 1, 0);
    }
    row[at] += 1;
}

/// Counts of the sampled pairs by sampling level. The level of a pair is the number of trailing zeros of its hash. When
/// a level has too many pairs, this level and all lower ones are dropped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct SampledDetails {
    min_level: usize,
    levels: Vec<DetailTally>,
}

impl SampledDetails {
    /// Creates empty counts. `pairs` is the expected number of pairs: levels that would be dropped later are left out
    /// from the start.
    fn with_expected_pairs(pairs: u64) -> SampledDetails {
        let too_many = |level: &usize| pairs >> (level + 1) > MAX_PAIRS_PER_LEVEL + MAX_PAIRS_PER_LEVEL / 2;
        SampledDetails { min_level: (0..NUM_SAMPLING_LEVELS - 1).take_while(too_many).count(), levels: Vec::new() }
    }

    /// Returns the counts to which a pair with this hash is added, or `None` if the pair is not sampled.
    #[inline]
    fn tally_for(&mut self, hash: u64) -> Option<&mut DetailTally> {
        let level = (hash.trailing_zeros() as usize).min(NUM_SAMPLING_LEVELS - 1);
        if level < self.min_level {
            return None;
        }
        if self.levels.len() <= level {
            self.levels.resize(level + 1, DetailTally::default());
        }
        if self.levels[level].pairs >= MAX_PAIRS_PER_LEVEL && level + 1 < NUM_SAMPLING_LEVELS {
            self.drop_levels(level);
            return None;
        }
        Some(&mut self.levels[level])
    }

    #[cold]
    fn drop_levels(&mut self, level: usize) {
        self.min_level = self.min_level.max(level + 1);
        self.levels.iter_mut().take(level + 1).for_each(|detail| *detail = DetailTally::default());
    }

    fn add(&mut self, other: &SampledDetails) {
        self.levels.resize(self.levels.len().max(other.levels.len()), DetailTally::default());
        self.levels.iter_mut().zip(&other.levels).for_each(|(sum, detail)| sum.add(detail));
        self.min_level = self.min_level.max(other.min_level);
        let full =
            self.levels.iter().take(NUM_SAMPLING_LEVELS - 1).rposition(|detail| detail.pairs > MAX_PAIRS_PER_LEVEL);
        let forgotten = self.min_level.checked_sub(1).max(full);
        forgotten.into_iter().for_each(|level| self.drop_levels(level));
    }

    fn sum_of_levels(&self) -> DetailTally {
        let mut all = DetailTally::default();
        self.levels.iter().for_each(|detail| all.add(detail));
        all
    }
}

/// Counts of the read pairs of one sample, from which its library metrics are computed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LibraryTally {
    num_pairs: u64,
    num_bases: u64,
    /// Number of reads by length in bases (0 for a missing mate), for read 1 and for read 2.
    lengths: [Vec<u64>; 2],
    /// Number of pairs with a mate that has fewer bases after trimming than the duplicate key needs; single reads
    /// count, too.
    short_pairs: u64,
    duplicate_keys: DuplicateKeyCounts,
    /// Duplicate keys of reads without mates: hashes of the first bases of a single read.
    single_read_keys: DuplicateKeyCounts,
    /// Number of pairs with each telomere motif, by index in `TELOMERE_MOTIFS`. A pair counts for one motif only.
    telomere_pairs: [u64; telomere::TELOMERE_MOTIFS.len()],
    details: SampledDetails,
}

impl LibraryTally {
    /// Number of read pairs that were tallied, duplicates included; a single read counts as a pair.
    pub fn num_pairs(&self) -> u64 {
        self.num_pairs
    }

    /// Number of bases of all reads, before trimming.
    pub fn num_bases(&self) -> u64 {
        self.num_bases
    }

    /// Median over all pairs of the number of pairs with the same two fragment ends; 0 without pairs. If most reads
    /// have no mates: median over these reads of the number of reads with the same start.
    pub(crate) fn weighted_median_pairs_per_fragment(&self) -> u32 {
        let num_pairs =
            |keys: &DuplicateKeyCounts| keys.sampling_factor() * keys.summarise_pairs_and_keys().pairs as f64;
        let has_mates = num_pairs(&self.duplicate_keys) >= num_pairs(&self.single_read_keys);
        let keys = if has_mates { &self.duplicate_keys } else { &self.single_read_keys };
        keys.weighted_median_pairs_per_key()
    }

    /// Computes the features of the fragment lengths of the sampled pairs that show cell-free DNA. A fragment length is
    /// known only if the mates overlap.
    pub(crate) fn nucleosome_pattern(&self) -> NucleosomePattern {
        let detail = self.details.sum_of_levels();
        NucleosomePattern::from_fragment_lengths(&detail.fragment_lengths, detail.pairs)
    }

    /// Adds the counts of another thread.
    pub fn merge_tally(&mut self, other: &LibraryTally) {
        self.num_pairs += other.num_pairs;
        self.num_bases += other.num_bases;
        self.lengths.iter_mut().zip(&other.lengths).for_each(|(sums, others)| add_counts(sums, others));
        self.short_pairs += other.short_pairs;
        self.duplicate_keys.merge_counts(&other.duplicate_keys);
        self.single_read_keys.merge_counts(&other.single_read_keys);
        self.telomere_pairs.iter_mut().zip(other.telomere_pairs).for_each(|(sum, n)| *sum += n);
        self.details.add(&other.details);
    }
}

/// A read pair before and after trimming.
#[derive(Debug, Clone, Copy)]
pub struct RawAndTrimmedPair<'a> {
    /// The read pair before trimming.
    pub raw: ReadPair<'a>,
    /// The read pair after trimming.
    pub trimmed: ReadPair<'a>,
    /// Bases of both mates at two bits a base; they may extend beyond the trimmed ends.
    pub packed: [PackedBases<'a>; 2],
}

/// Counts the read pairs that one thread reads, for all samples.
#[derive(Debug)]
pub struct LibraryTallyCollector {
    samples: Vec<LibraryTally>,
    codes: [CodesAndPackedBases; 2],
    error_probabilities: ErrorProbabilityByQuality,
}

impl LibraryTallyCollector {
    /// Creates empty counts for as many samples as `pairs` has entries. `pairs` are the expected numbers of pairs of
    /// each sample over all threads, 0 if unknown; they avoid the examination of pairs that would be dropped later. If
    /// a sample has far fewer pairs than expected, fewer pairs are examined base by base.
    pub fn with_expected_pairs(pairs: &[u64]) -> LibraryTallyCollector {
        let of = |pairs: &u64| LibraryTally {
            details: SampledDetails::with_expected_pairs(*pairs),
            ..LibraryTally::default()
        };
        LibraryTallyCollector {
            samples: pairs.iter().map(of).collect(),
            codes: Default::default(),
            error_probabilities: ErrorProbabilityByQuality::default(),
        }
    }

    /// Counts a read pair of a sample (0: normal, 1: first tumour, …).
    #[inline]
    pub fn add_pair(&mut self, pair: &RawAndTrimmedPair<'_>, sample: u8) {
        let RawAndTrimmedPair { raw, trimmed: cut, packed } = *pair;
        let tally = &mut self.samples[usize::from(sample)];
        tally.num_pairs += 1;
        for (lengths, mate) in tally.lengths.iter_mut().zip(raw.mates) {
            tally.num_bases += mate.seq.len() as u64;
            increment(lengths, mate.seq.len().min(MAX_TRACKED_LENGTH));
        }
        if cut.mates.iter().all(|mate| mate.seq.len() >= DUPLICATE_KEY_BASES_PER_MATE) {
            tally.duplicate_keys.add_pair(packed);
        } else {
            tally.short_pairs += 1;
            let single = [0, 1].into_iter().find(|&i| raw.mates[1 - i].seq.is_empty());
            if let Some(i) = single.filter(|&i| cut.mates[i].seq.len() >= DUPLICATE_KEY_BASES_PER_MATE) {
                tally.single_read_keys.add_pair([packed[i]; 2]);
            }
        }
        if let Some(motif) = telomere::find_telomere_motif_index(cut, packed) {
            tally.telomere_pairs[motif] += 1;
        }
        if let Some(detail) = tally.details.tally_for(hash_pair(raw)) {
            detail.pairs += 1;
            detail.cycles.count_bases_and_qualities(raw.mates, &self.error_probabilities);
            let [one, two] = &mut self.codes;
            one.encode_bases(cut.mates[0].seq, cut.mates[0].qual, 0);
            two.encode_bases(cut.mates[1].seq, cut.mates[1].qual, 0);
            if let Some(fragment) =
                overlap::fragment_length_from_overlap((one, cut.mates[0].qual), (two, cut.mates[1].qual))
            {
                increment(&mut detail.fragment_lengths, fragment.min(2 * MAX_TRACKED_LENGTH));
                detail.cycles.compare_overlapping_mates([one, two], cut.mates, fragment, &self.error_probabilities);
            }
        }
    }

    /// Counts of all samples, in sample order.
    pub fn tallies(&self) -> &[LibraryTally] {
        &self.samples
    }

    /// Returns the counts of all samples, in sample order.
    pub fn into_tallies(self) -> Vec<LibraryTally> {
        self.samples
    }
}

/// Hash by which pairs are sampled: of the read name, and of the first 8 bases of read 1 in case all names are equal.
#[inline]
fn hash_pair(pair: ReadPair<'_>) -> u64 {
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let mut last = [0; 8];
    let (words, rest) = pair.name.as_chunks::<8>();
    last[..rest.len()].copy_from_slice(rest);
    let all = words.iter().chain([&last]).chain(pair.mates[0].seq.first_chunk::<8>());
    let folded =
        all.fold(0, |hash: u64, bytes| (hash.rotate_left(23) ^ word(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    hash_two_words(folded, pair.name.len() as u64)
}

#[cfg(test)]
mod tests;
