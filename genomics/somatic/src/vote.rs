//! How one molecule sees a change, and how several molecules see two.

/// A molecule must favour an allele by this factor (natural logarithm) to be counted for it.
const CLEAR: f64 = 3.0;

/// How one molecule sees a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vote {
    /// The pair that stands for the molecule: an index among the recruited ones.
    pub pair: u32,
    /// Natural log of P(reads | tumour allele) / P(reads | normal allele).
    pub log_odds: f64,
    /// Whether the mate that says most runs with the contig.
    pub forward: bool,
    /// Whether read 1 of the pair runs with the contig, or read 2 against it.
    pub first_forward: bool,
    /// Distance of the change from the nearer end of that mate.
    pub from_end: u16,
    /// Phred quality of the bases that make the difference (median of them).
    pub quality: u8,
    /// Pairs of the molecule beyond the first.
    pub copies: u16,
}

impl Vote {
    /// For the tumour allele.
    pub fn alternative(&self) -> bool {
        self.log_odds > CLEAR
    }

    /// For the normal allele.
    pub fn reference(&self) -> bool {
        self.log_odds < -CLEAR
    }
}

/// Molecules that tell the alleles of two changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shared {
    /// Those with both changes.
    pub both: u32,
    /// Those with only the first, and with only the second.
    pub only: [u32; 2],
}

/// Fewest molecules that have two changes both.
const FEWEST: u32 = 2;
/// One for so many of them, beside one, may have only the first of two neighbouring changes by a wrong base, and as many only the second.
const MISREAD: u32 = 10;

impl Shared {
    /// From the votes of one sample on two changes of a contig, each in the order of their molecules.
    pub fn of(first: &[Vote], second: &[Vote]) -> Shared {
        let mut shared = Shared::default();
        let mut second = second.iter().peekable();
        for a in first {
            while second.next_if(|b| b.pair < a.pair).is_some() {}
            let Some(b) = second.next_if(|b| b.pair == a.pair) else { continue };
            shared.both += u32::from(a.alternative() && b.alternative());
            shared.only[0] += u32::from(a.alternative() && b.reference());
            shared.only[1] += u32::from(a.reference() && b.alternative());
        }
        shared
    }

    /// Adds those of another sample.
    pub fn add(&mut self, other: &Shared) {
        self.both += other.both;
        self.only[0] += other.only[0];
        self.only[1] += other.only[1];
    }

    /// Whether the two came about together: no molecule has one of them alone, but for errors. Were one of them older, or the
    /// germline's, many would have it alone.
    pub fn at_once(&self) -> bool {
        self.both >= FEWEST && self.only[0].max(self.only[1]) <= 1 + self.both / MISREAD
    }

    /// Whether the two lie on one haplotype: of the molecules with the rarer one, most have the other too.
    pub fn in_phase(&self) -> bool {
        self.both >= FEWEST && self.both > self.only[0].min(self.only[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(pair: u32, log_odds: f64) -> Vote {
        let (forward, first_forward) = (true, true);
        Vote { pair, log_odds, forward, first_forward, from_end: 50, quality: 37, copies: 0 }
    }

    #[test]
    fn molecules_are_those_that_tell_both() {
        let votes = |of: &[(u32, f64)]| of.iter().map(|&(pair, odds)| vote(pair, odds)).collect::<Vec<_>>();
        let first = votes(&[(1, 9.0), (2, 9.0), (4, -9.0), (5, 9.0), (6, 1.0), (9, 9.0)]);
        let second = votes(&[(0, 9.0), (2, 9.0), (3, 9.0), (4, 9.0), (5, -9.0), (6, 9.0), (9, 0.5)]);
        assert_eq!(Shared::of(&first, &second), Shared { both: 1, only: [1, 1] });
        assert_eq!(Shared::of(&first, &[]), Shared::default());
        let mut sum = Shared { both: 3, only: [0, 2] };
        sum.add(&Shared::of(&first, &second));
        assert_eq!(sum, Shared { both: 4, only: [1, 3] });
    }

    #[test]
    fn changes_at_once_have_no_molecules_of_their_own() {
        let shared = |both, first, second| Shared { both, only: [first, second] };
        for (both, first, second) in [(2, 0, 0), (3, 1, 0), (8, 1, 1), (20, 3, 2), (100, 11, 5)] {
            assert!(shared(both, first, second).at_once());
        }
        for (both, first, second) in [(0, 0, 0), (1, 0, 0), (3, 2, 0), (20, 0, 4), (100, 12, 0)] {
            assert!(!shared(both, first, second).at_once());
        }
    }
}
