//! Counts by sequencing cycle, and disagreements between overlapping mates.

use genuma_reads::packed_bases::CodesAndPackedBases;
use genuma_reads::{Mate, dna};
use serde::{Deserialize, Serialize};

use super::overlap::first_mate_overlap_positions;

/// Number of sequencing cycles that are counted; later cycles are ignored.
pub(crate) const MAX_COUNTED_CYCLES: usize = 1024;
/// Number of distinct Phred qualities: 0 to 63; higher ones count as 63.
pub(crate) const NUM_QUALITIES: usize = 64;
/// Largest Phred quality of an unusable base: Illumina gives such a base quality 2.
const MAX_UNUSABLE_QUALITY: usize = 2;
/// Units of `expected_errors` in one expected error: the sums are in billionths of an error.
pub(crate) const UNITS_PER_EXPECTED_ERROR: f64 = 1e9;

/// Counts of the bases and qualities of one cycle of one mate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SingleCycleTally {
    /// Number of bases A, C, G, T, and of other letters.
    pub base_counts: [u64; 5],
    /// Sum of the Phred qualities of all bases of the cycle.
    pub quality_sum: u64,
    /// Number of bases with quality 30 or more.
    pub q30_bases: u64,
    /// Number of bases with a quality above 2.
    pub usable_bases: u64,
    /// Number of errors expected from the qualities of the usable bases, in billionths of an error.
    pub expected_errors: u64,
    /// Number of bases of this cycle that were compared with the other mate of their pair.
    pub compared_bases: u64,
    /// Number of errors among the compared bases, in halves: a wrong base counts 2; if both bases have the same
    /// quality, each counts 1.
    pub error_halves: u64,
}

impl SingleCycleTally {
    fn add(&mut self, other: &SingleCycleTally) {
        self.base_counts.iter_mut().zip(other.base_counts).for_each(|(sum, n)| *sum += n);
        self.quality_sum += other.quality_sum;
        self.q30_bases += other.q30_bases;
        self.usable_bases += other.usable_bases;
        self.expected_errors += other.expected_errors;
        self.compared_bases += other.compared_bases;
        self.error_halves += other.error_halves;
    }

    /// Number of bases that were read in this cycle, N included.
    pub fn num_bases_in_cycle(&self) -> u64 {
        self.base_counts.iter().sum()
    }
}

/// Disagreements between the two mates of a pair where they overlap. Errors are counted in halves: if two bases of
/// equal quality differ, either may be wrong, and each counts one half.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MateDisagreements {
    /// Number of bases compared, counted in both mates.
    pub compared_bases: u64,
    /// Number of errors, in halves: 2 for each pair of bases that disagree.
    pub error_halves: u64,
    /// Sum over pairs of the squared number of disagreements. It measures how much errors cluster in pairs of poor
    /// quality.
    pub squared_errors: u64,
    /// Number of errors in halves, by true base and read base (A, C, G, T).
    pub substitutions: [[u64; 4]; 4],
    /// For each Phred quality: number of bases compared, and number of errors in halves.
    pub(crate) by_quality: Vec<[u64; 2]>,
    /// Number of errors expected from the qualities of the compared bases, in billionths of an error.
    pub expected_errors: u64,
}

impl MateDisagreements {
    fn add(&mut self, other: &MateDisagreements) {
        self.compared_bases += other.compared_bases;
        self.error_halves += other.error_halves;
        self.squared_errors += other.squared_errors;
        self.expected_errors += other.expected_errors;
        for (sum, n) in self.substitutions.as_flattened_mut().iter_mut().zip(other.substitutions.as_flattened()) {
            *sum += n;
        }
        self.by_quality.resize(self.by_quality.len().max(other.by_quality.len()), [0; 2]);
        for (sum, n) in self.by_quality.iter_mut().zip(&other.by_quality) {
            sum.iter_mut().zip(n).for_each(|(sum, n)| *sum += n);
        }
    }
}

/// Counts of all cycles of both mates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CycleTalliesAndDisagreements {
    /// Counts of each cycle of read 1 and of read 2, from the first cycle on.
    pub by_mate: [Vec<SingleCycleTally>; 2],
    /// Disagreements between overlapping mates.
    pub(crate) disagreements: MateDisagreements,
}

/// Error probability of a random base: three of four are wrong.
pub(crate) const RANDOM_BASE_ERROR_PROBABILITY: f64 = 0.75;

/// Error probability of each Phred quality, in billionths (at most 3/4).
#[derive(Debug, Clone)]
pub(crate) struct ErrorProbabilityByQuality([u64; NUM_QUALITIES]);

impl Default for ErrorProbabilityByQuality {
    fn default() -> Self {
        // Qualities 0 and 1 would give more than 3/4, which is the error rate of random bases.
        ErrorProbabilityByQuality(std::array::from_fn(|q| {
            (UNITS_PER_EXPECTED_ERROR * 10f64.powf(-(q as f64) / 10.0).min(RANDOM_BASE_ERROR_PROBABILITY)).round()
                as u64
        }))
    }
}

fn quality_of_letter(letter: u8) -> usize {
    usize::from(letter.saturating_sub(b'!')).min(NUM_QUALITIES - 1)
}

impl CycleTalliesAndDisagreements {
    /// Counts the bases and qualities of a read pair before trimming.
    pub(crate) fn count_bases_and_qualities(&mut self, mates: [Mate<'_>; 2], chances: &ErrorProbabilityByQuality) {
        for (cycles, mate) in self.by_mate.iter_mut().zip(mates) {
            let seen = mate.seq.len().min(MAX_COUNTED_CYCLES);
            if cycles.len() < seen {
                cycles.resize(seen, SingleCycleTally::default());
            }
            for ((cycle, &base), &letter) in cycles.iter_mut().zip(mate.seq).zip(mate.qual) {
                let quality = quality_of_letter(letter);
                cycle.base_counts[usize::from(dna::encode_base(base))] += 1;
                cycle.quality_sum += quality as u64;
                cycle.q30_bases += u64::from(quality >= 30);
                cycle.usable_bases += u64::from(quality > MAX_UNUSABLE_QUALITY);
                cycle.expected_errors += if quality > MAX_UNUSABLE_QUALITY { chances.0[quality] } else { 0 };
            }
        }
    }

    /// Compares the trimmed mates of a pair where they overlap, and counts the disagreements. `fragment` is the length
    /// of their fragment in bases.
    pub(crate) fn compare_overlapping_mates(
        &mut self,
        codes: [&CodesAndPackedBases; 2],
        mates: [Mate<'_>; 2],
        fragment: usize,
        chances: &ErrorProbabilityByQuality,
    ) {
        let [one, two] = codes.map(CodesAndPackedBases::codes);
        let [of_one, of_two] = &mut self.by_mate;
        let disagreements = &mut self.disagreements;
        disagreements.by_quality.resize(NUM_QUALITIES, [0; 2]);
        let mut wrong = 0;
        for i in first_mate_overlap_positions(one.len(), two.len(), fragment) {
            let j = fragment - 1 - i;
            let (a, b) = (one[i], two[j]);
            if a >= 4 || b >= 4 || i.max(j) >= MAX_COUNTED_CYCLES {
                continue;
            }
            let [p, q] = [quality_of_letter(mates[0].qual[i]), quality_of_letter(mates[1].qual[j])];
            disagreements.compared_bases += 2;
            disagreements.expected_errors += chances.0[p] + chances.0[q];
            of_one[i].compared_bases += 1;
            of_two[j].compared_bases += 1;
            disagreements.by_quality[p][0] += 1;
            disagreements.by_quality[q][0] += 1;
            if a == b ^ 3 {
                continue;
            }
            wrong += 1;
            let [halves_of_one, halves_of_two] = match p.cmp(&q) {
                std::cmp::Ordering::Less => [2, 0],
                std::cmp::Ordering::Equal => [1, 1],
                std::cmp::Ordering::Greater => [0, 2],
            };
            disagreements.error_halves += 2;
            of_one[i].error_halves += halves_of_one;
            of_two[j].error_halves += halves_of_two;
            disagreements.by_quality[p][1] += halves_of_one;
            disagreements.by_quality[q][1] += halves_of_two;
            disagreements.substitutions[usize::from(b ^ 3)][usize::from(a)] += halves_of_one;
            disagreements.substitutions[usize::from(a ^ 3)][usize::from(b)] += halves_of_two;
        }
        disagreements.squared_errors += wrong * wrong;
    }

    /// Adds the counts of another thread.
    pub(crate) fn merge_tallies(&mut self, other: &CycleTalliesAndDisagreements) {
        for (cycles, others) in self.by_mate.iter_mut().zip(&other.by_mate) {
            cycles.resize(cycles.len().max(others.len()), SingleCycleTally::default());
            cycles.iter_mut().zip(others).for_each(|(sum, cycle)| sum.add(cycle));
        }
        self.disagreements.add(&other.disagreements);
    }
}
