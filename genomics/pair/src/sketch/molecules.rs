//! Numbers of read pairs and of molecules that contain a k-mer.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// Number of read pairs and of molecules of one sample that contain a k-mer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub(super) struct PairAndMoleculeCount {
    /// Number of read pairs that contain the k-mer.
    pub(super) pairs: u32,
    /// A set of 32 bits, from which molecules are counted: each read pair sets the bit that a hash of its read starts
    /// selects. Duplicates of one molecule set the same bit.
    pub(super) start_bits: u32,
}

/// Number of bits of the set into which the read starts of molecules are hashed.
const NUM_START_BITS: f64 = 32.0;

impl PairAndMoleculeCount {
    /// The count of one read pair; the low five bits of `begin`, a hash of its read starts, select its bit.
    #[inline]
    pub(super) fn of_one_pair(begin: u64) -> PairAndMoleculeCount {
        PairAndMoleculeCount { pairs: 1, start_bits: 1 << (begin & 31) }
    }

    /// Adds the count of other read pairs with the same k-mer.
    #[inline(always)]
    pub(super) fn merge_count(&mut self, other: PairAndMoleculeCount) {
        self.pairs = self.pairs.saturating_add(other.pairs);
        self.start_bits |= other.start_bits;
    }

    /// Expected number of molecules for the number of set bits: −32·ln(1 − bits/32), which corrects for different
    /// molecules that set the same bit. `None` if more than 16 bits are set.
    pub(super) fn unrounded_molecules_if_few_bits(self) -> Option<f64> {
        static BY_BITS: LazyLock<[f64; 17]> =
            LazyLock::new(|| std::array::from_fn(|bits| -NUM_START_BITS * (1.0 - bits as f64 / NUM_START_BITS).ln()));
        BY_BITS.get(self.start_bits.count_ones() as usize).copied()
    }

    /// Number of molecules, at most the number of read pairs. `None` if more than 16 bits are set, because the estimate
    /// is then imprecise.
    pub(super) fn num_molecules_if_few_bits(self) -> Option<u32> {
        self.unrounded_molecules_if_few_bits().map(|molecules| (molecules.round() as u32).min(self.pairs))
    }
}

/// Largest number of molecules for which [`probabilities_of_counted_molecules`] has a row, and largest number of set
/// bits (read starts are hashed to 32 bits) from which molecules are counted. Above, the number is read pairs × (1 −
/// duplicate share).
pub(super) const MAX_MOLECULES_IN_PROBABILITY_TABLE: usize = 16;

/// Probabilities `[true number of molecules][counted number]` without PCR duplicates. The counted number is that of
/// [`PairAndMoleculeCount::num_molecules_if_few_bits`]. It may be smaller than the true one, because the read starts of
/// two molecules may set the same bit.
pub(crate) fn probabilities_of_counted_molecules()
-> &'static [[f64; MAX_MOLECULES_IN_PROBABILITY_TABLE + 1]; MAX_MOLECULES_IN_PROBABILITY_TABLE + 1] {
    static CHANCES: LazyLock<[[f64; MAX_MOLECULES_IN_PROBABILITY_TABLE + 1]; MAX_MOLECULES_IN_PROBABILITY_TABLE + 1]> =
        LazyLock::new(|| {
            let mut chances = [[0.0; MAX_MOLECULES_IN_PROBABILITY_TABLE + 1]; MAX_MOLECULES_IN_PROBABILITY_TABLE + 1];
            // Probability of each number of set bits.
            let mut bits = [0.0; MAX_MOLECULES_IN_PROBABILITY_TABLE + 1];
            bits[0] = 1.0;
            for (pairs, own) in chances.iter_mut().enumerate() {
                for (set, chance) in bits.iter().enumerate() {
                    let seen = PairAndMoleculeCount { pairs: pairs as u32, start_bits: ((1u64 << set) - 1) as u32 };
                    own[seen.num_molecules_if_few_bits().map_or(pairs, |molecules| molecules as usize)] += chance;
                }
                let same = |set: usize| set as f64 / NUM_START_BITS;
                let fewer = |set: usize| set.checked_sub(1).map_or(0.0, |one| bits[one] * (1.0 - same(one)));
                bits = std::array::from_fn(|set| bits[set] * same(set) + fewer(set));
            }
            chances
        });
    &CHANCES
}

/// Estimated number of molecules with a k-mer. If too many start bits are set, it is the number of read pairs times one
/// minus `duplicate_share`.
pub(super) fn estimate_molecules(count: PairAndMoleculeCount, duplicate_share: f64) -> u32 {
    count
        .num_molecules_if_few_bits()
        .unwrap_or_else(|| (f64::from(count.pairs) * (1.0 - duplicate_share)).round() as u32)
}
