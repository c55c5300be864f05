//! Evidence of a molecule for or against a change, and of all molecules for two changes on one haplotype.

use crate::genotype_params::GENOTYPE_MODEL_PARAMS;

/// Evidence of one molecule, or of one read, for or against a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoleculeVote {
    /// Index of the representative pair of the molecule among the recruited pairs.
    pub pair: u32,
    /// Natural logarithm of P(reads | tumour allele) / P(reads | normal allele).
    pub log_odds: f64,
    /// Whether the read with the strongest evidence has the same orientation as the contig.
    pub forward: bool,
    /// Whether read 1 of the pair has the contig's orientation and read 2 the opposite one (F1R2).
    pub is_f1r2: bool,
    /// Distance in bases of the change from the nearer end of the read with the strongest evidence.
    pub distance_from_end: u16,
    /// Median Phred quality of the bases at the change in the read with the strongest evidence.
    pub quality: u8,
    /// Number of duplicates of the pair in the molecule.
    pub duplicates: u16,
    /// Whether the molecule counts in the allele fraction. If an allele has two ends at which molecules show it, only
    /// as many molecules count as cross one end.
    pub counts_in_fraction: bool,
}

impl MoleculeVote {
    /// Whether the molecule supports the tumour allele.
    pub fn supports_tumour_allele(&self) -> bool {
        self.log_odds > GENOTYPE_MODEL_PARAMS.min_support_log_odds
    }

    /// Whether the molecule supports the normal allele.
    pub fn supports_normal_allele(&self) -> bool {
        self.log_odds < -GENOTYPE_MODEL_PARAMS.min_support_log_odds
    }
}

/// Numbers of molecules that have both, or only one, of two changes of a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TwoChangeMoleculeCounts {
    /// Number of molecules that have both changes.
    pub both: u32,
    /// Number of molecules with only the first change, and with only the second.
    pub only_one: [u32; 2],
}

/// Minimum number of molecules with both changes for the conclusion that the changes belong together.
const MIN_MOLECULES_WITH_BOTH: u32 = 2;
/// For this number of molecules with both changes, one molecule with only one of the changes is attributed to a wrong
/// base. One such molecule is always tolerated.
const MOLECULES_PER_MISREAD: u32 = 10;

impl TwoChangeMoleculeCounts {
    /// Counts the molecules from the votes of one sample on two changes of a contig, each sorted by pair.
    pub fn from_votes(first: &[MoleculeVote], second: &[MoleculeVote]) -> TwoChangeMoleculeCounts {
        let mut shared = TwoChangeMoleculeCounts::default();
        let mut second = second.iter().peekable();
        for a in first {
            while second.next_if(|b| b.pair < a.pair).is_some() {}
            let Some(b) = second.next_if(|b| b.pair == a.pair) else { continue };
            shared.both += u32::from(a.supports_tumour_allele() && b.supports_tumour_allele());
            shared.only_one[0] += u32::from(a.supports_tumour_allele() && b.supports_normal_allele());
            shared.only_one[1] += u32::from(a.supports_normal_allele() && b.supports_tumour_allele());
        }
        shared
    }

    /// Adds the counts of another sample.
    pub fn merge_counts(&mut self, other: &TwoChangeMoleculeCounts) {
        self.both += other.both;
        self.only_one[0] += other.only_one[0];
        self.only_one[1] += other.only_one[1];
    }

    /// Whether both changes arose in one event: at least [`MIN_MOLECULES_WITH_BOTH`] molecules have both, and only as
    /// many as errors explain have one alone. If one change were older, or germline, many molecules would have it
    /// alone.
    pub fn arose_in_one_event(&self) -> bool {
        self.both >= MIN_MOLECULES_WITH_BOTH
            && self.only_one[0].max(self.only_one[1]) <= 1 + self.both / MOLECULES_PER_MISREAD
    }

    /// Whether both changes are on one haplotype: of the molecules with the rarer change, most have the other change
    /// too.
    pub fn is_in_phase(&self) -> bool {
        self.both >= MIN_MOLECULES_WITH_BOTH && self.both > self.only_one[0].min(self.only_one[1])
    }
}

#[cfg(test)]
impl MoleculeVote {
    /// A vote of a good pair for tests.
    pub(crate) fn for_test(pair: u32, log_odds: f64) -> MoleculeVote {
        MoleculeVote {
            pair,
            log_odds,
            forward: true,
            is_f1r2: true,
            distance_from_end: 50,
            quality: 37,
            duplicates: 0,
            counts_in_fraction: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(pair: u32, log_odds: f64) -> MoleculeVote {
        MoleculeVote::for_test(pair, log_odds)
    }

    #[test]
    fn molecules_are_those_that_tell_both() {
        let votes = |of: &[(u32, f64)]| of.iter().map(|&(pair, odds)| vote(pair, odds)).collect::<Vec<_>>();
        let first = votes(&[(1, 9.0), (2, 9.0), (4, -9.0), (5, 9.0), (6, 1.0), (9, 9.0)]);
        let second = votes(&[(0, 9.0), (2, 9.0), (3, 9.0), (4, 9.0), (5, -9.0), (6, 9.0), (9, 0.5)]);
        assert_eq!(
            TwoChangeMoleculeCounts::from_votes(&first, &second),
            TwoChangeMoleculeCounts { both: 1, only_one: [1, 1] }
        );
        assert_eq!(TwoChangeMoleculeCounts::from_votes(&first, &[]), TwoChangeMoleculeCounts::default());
        let mut sum = TwoChangeMoleculeCounts { both: 3, only_one: [0, 2] };
        sum.merge_counts(&TwoChangeMoleculeCounts::from_votes(&first, &second));
        assert_eq!(sum, TwoChangeMoleculeCounts { both: 4, only_one: [1, 3] });
    }

    #[test]
    fn changes_at_once_have_no_molecules_of_their_own() {
        let shared = |both, first, second| TwoChangeMoleculeCounts { both, only_one: [first, second] };
        for (both, first, second) in [(2, 0, 0), (3, 1, 0), (8, 1, 1), (20, 3, 2), (100, 11, 5)] {
            assert!(shared(both, first, second).arose_in_one_event());
        }
        for (both, first, second) in [(0, 0, 0), (1, 0, 0), (3, 2, 0), (20, 0, 4), (100, 12, 0)] {
            assert!(!shared(both, first, second).arose_in_one_event());
        }
    }
}
