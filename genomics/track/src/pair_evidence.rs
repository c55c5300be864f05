//! Evidence of one read pair for one junction, compact enough to keep in memory for all pairs of thousands of
//! junctions.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use genuma_reads::{ReadPair, dna};
use genuma_somatic::molecule::{COMPARED_MATE_PREFIX_BP, PairForDuplicateSearch, hash_bytes, umi_key_of_name};

/// Maximum number of wrong bases near a change that are stored for a mate, and for a pair. Errors of pairs with more
/// are not counted.
pub(crate) const MAX_STORED_WRONG_BASES: usize = 4;
/// Number of pairs of one sample at one junction from which on the pairs are downsampled.
const DOWNSAMPLING_MIN_PAIRS: u32 = 1 << 16;
/// Number of first bases of each mate that are hashed for downsampling.
const HASHED_START_BASES: usize = 12;

/// A base near a change that differs from the reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WrongBase {
    /// Position of the base, counted from
    /// [`crate::tracked_junction::ERROR_COUNTING_BASES_PER_SIDE`] bases before the change.
    pub position: u8,
    /// Code of the wrong base that the read has: A 0, C 1, G 2, T 3.
    pub base: u8,
    /// Log-odds that the base was read correctly, in hundredths of natural-log units; if both mates have the base, the
    /// sum of both.
    pub log_odds: i16,
}

/// The first bases of both mates of a pair, which identify its molecule, with its UMIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MateStartsAndUmi {
    bases: [u64; 2],
    lengths: [u8; 2],
    /// UMI key of the read name ([`genuma_reads::umi::umi_key_of_name`]); 0 without UMIs.
    umi_key: u64,
}

impl MateStartsAndUmi {
    /// Packs the first bases of both mates of a pair, and takes the UMI key from the read name.
    pub(crate) fn pack_starts_of_pair(pair: &ReadPair<'_>) -> MateStartsAndUmi {
        let start = |seq: &[u8]| {
            let start = &seq[..seq.len().min(COMPARED_MATE_PREFIX_BP)];
            // A letter that is not a base counts as A, as one of the few differences that duplicates may have.
            let bases = start.iter().fold(0u64, |word, &b| word << 2 | u64::from(dna::encode_base(b) & 3));
            (bases, start.len() as u8)
        };
        let [one, two] = pair.mates.map(|mate| start(mate.seq));
        MateStartsAndUmi { bases: [one.0, two.0], lengths: [one.1, two.1], umi_key: umi_key_of_name(pair.name) }
    }

    /// Hash for downsampling, equal for all duplicates of a molecule unless their first bases have errors. It does not
    /// depend on the order of the mates.
    pub(crate) fn downsampling_hash(&self) -> u64 {
        let start = |i: usize| {
            let length = usize::from(self.lengths[i]).min(HASHED_START_BASES);
            let bases = self.bases[i] >> (2 * (usize::from(self.lengths[i]) - length));
            hash_bytes(&[&bases.to_le_bytes()[..], &[length as u8]].concat())
        };
        start(0).min(start(1))
    }
}

/// The first bases of both mates of a pair as ASCII letters, with its sample and UMI key.
pub(crate) struct MateStartLetters {
    sample: u8,
    umi_key: u64,
    bases: [[u8; COMPARED_MATE_PREFIX_BP]; 2],
    lengths: [u8; 2],
}

impl MateStartLetters {
    /// Unpacks the first bases of the mates of a pair to ASCII letters.
    pub(crate) fn unpack_start_letters(evidence: &JunctionPairEvidence) -> MateStartLetters {
        let MateStartsAndUmi { bases, lengths, umi_key } = evidence.starts;
        let letters = |i: usize| {
            let mut letters = [0; COMPARED_MATE_PREFIX_BP];
            let length = usize::from(lengths[i]);
            for (at, letter) in letters[..length].iter_mut().enumerate() {
                *letter = dna::decode_base((bases[i] >> (2 * (length - 1 - at))) as u8 & 3);
            }
            letters
        };
        MateStartLetters { sample: evidence.sample, umi_key, bases: [letters(0), letters(1)], lengths }
    }
}

impl PairForDuplicateSearch for MateStartLetters {
    fn sample(&self) -> u8 {
        self.sample
    }

    fn seqs(&self) -> [&[u8]; 2] {
        [0, 1].map(|i| &self.bases[i][..usize::from(self.lengths[i])])
    }

    fn umi_key(&self) -> u64 {
        self.umi_key
    }
}

/// Evidence of one read pair for one junction. Sorting by content makes the order independent of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JunctionPairEvidence {
    /// Index of the tracked junction.
    pub junction: u32,
    /// Index of the sample in `TrackingJob::samples`.
    pub sample: u8,
    /// First bases of both mates and UMIs, which identify the molecule.
    pub starts: MateStartsAndUmi,
    /// Whether read 1 has the orientation of the junction.
    pub first_forward: bool,
    /// Log-odds for the changed allele over the reference allele in the left and in the right frame, in hundredths of
    /// natural-log units; 0 without evidence, or if the mates contradict each other.
    pub log_odds: [i16; 2],
    /// Whether the mates support different alleles in one of the frames.
    pub is_contradictory: bool,
    /// Bit mask of the positions at which a reliable base equals the reference; bit 0 is
    /// [`crate::tracked_junction::ERROR_COUNTING_BASES_PER_SIDE`] bases before the change.
    pub reference_positions: u128,
    /// Wrong bases near the change, ascending by position; the first `num_wrong` entries are used.
    pub wrong_bases: [WrongBase; MAX_STORED_WRONG_BASES],
    /// Number of entries of `wrong_bases` that are used.
    pub(crate) num_wrong: u8,
}

/// Number of read pairs of each junction and sample, counted by all threads.
#[derive(Debug)]
pub(crate) struct PairCountsByJunctionAndSample {
    /// The samples of the first junction, then those of the second one, and so on.
    num_pairs: Vec<AtomicU32>,
    num_samples: usize,
}

fn downsampling_level(pairs: u32) -> u32 {
    (pairs / DOWNSAMPLING_MIN_PAIRS).checked_ilog2().map_or(0, |log| log + 1)
}

impl PairCountsByJunctionAndSample {
    /// Creates counters that are all 0.
    pub(crate) fn zero_counts(num_junctions: usize, samples: usize) -> PairCountsByJunctionAndSample {
        let num_pairs = (0..num_junctions * samples).map(|_| AtomicU32::new(0)).collect();
        PairCountsByJunctionAndSample { num_pairs, num_samples: samples }
    }

    fn num_pairs(&self, junction: usize, sample: usize) -> &AtomicU32 {
        &self.num_pairs[junction * self.num_samples + sample]
    }

    fn passes_downsampling(hash: u64, pairs: u32) -> bool {
        hash & ((1u64 << downsampling_level(pairs)) - 1) == 0
    }

    /// Counts a read pair of a junction, and returns whether it should be kept for now. Call [`Self::is_pair_kept`]
    /// after all pairs were counted, because fewer pairs are kept the more there are.
    pub(crate) fn count_pair_and_test_downsampling(&self, evidence: &JunctionPairEvidence) -> bool {
        let before = self.num_pairs(evidence.junction as usize, evidence.sample.into()).fetch_add(1, Relaxed);
        PairCountsByJunctionAndSample::passes_downsampling(evidence.starts.downsampling_hash(), before)
    }

    /// Whether downsampling keeps a pair. Correct only after all pairs were counted.
    pub(crate) fn is_pair_kept(&self, evidence: &JunctionPairEvidence) -> bool {
        let all = self.num_pairs(evidence.junction as usize, evidence.sample.into()).load(Relaxed);
        PairCountsByJunctionAndSample::passes_downsampling(evidence.starts.downsampling_hash(), all)
    }

    /// Downsampling factor of a junction in a sample: n if one pair in n is kept.
    pub(crate) fn downsampling_factor(&self, junction: usize, sample: usize) -> u32 {
        1 << downsampling_level(self.num_pairs(junction, sample).load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::Mate;

    fn starts(one: &[u8], two: &[u8]) -> MateStartsAndUmi {
        let mate = |seq| Mate { seq, qual: seq };
        MateStartsAndUmi::pack_starts_of_pair(&ReadPair { name: b"x", mates: [mate(one), mate(two)] })
    }

    #[test]
    fn starts_are_kept_and_do_not_tell_mates_apart() {
        let (one, two) = (b"ACGTTGCATGCCGATAGCTAGGATCCATTAGCGG".to_vec(), b"TTGAC".to_vec());
        let seen = JunctionPairEvidence {
            junction: 0,
            sample: 3,
            starts: starts(&one, &two),
            first_forward: true,
            log_odds: [0; 2],
            is_contradictory: false,
            reference_positions: 0,
            wrong_bases: Default::default(),
            num_wrong: 0,
        };
        let letters = MateStartLetters::unpack_start_letters(&seen);
        assert_eq!((letters.sample(), letters.seqs()), (3, [&one[..32], &two[..]]));
        assert_eq!(starts(&one, &two).downsampling_hash(), starts(&two, &one).downsampling_hash());
        assert_ne!(starts(&one, &two).downsampling_hash(), starts(&one[3..], &two[1..]).downsampling_hash());
        assert_eq!(starts(b"", b"").downsampling_hash(), starts(b"", b"").downsampling_hash());
    }

    #[test]
    fn who_stays_was_kept_before() {
        for lot in (0..1000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            for (few, many) in [
                (0, DOWNSAMPLING_MIN_PAIRS),
                (DOWNSAMPLING_MIN_PAIRS - 1, DOWNSAMPLING_MIN_PAIRS),
                (3 * DOWNSAMPLING_MIN_PAIRS, 9 * DOWNSAMPLING_MIN_PAIRS),
            ] {
                assert!(
                    PairCountsByJunctionAndSample::passes_downsampling(lot, few)
                        || !PairCountsByJunctionAndSample::passes_downsampling(lot, many)
                );
            }
        }
        assert_eq!(
            [
                0,
                DOWNSAMPLING_MIN_PAIRS - 1,
                DOWNSAMPLING_MIN_PAIRS,
                2 * DOWNSAMPLING_MIN_PAIRS,
                4 * DOWNSAMPLING_MIN_PAIRS
            ]
            .map(downsampling_level),
            [0, 0, 1, 2, 3]
        );
    }
}
