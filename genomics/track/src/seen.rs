//! What one pair says of a place, small enough to keep for all pairs of thousands of places.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use genuma_reads::{Pair, dna};
use genuma_somatic::molecule::{Mates, PREFIX, lot};

/// Wrong bases near a change up to which a pair tells of errors.
pub(crate) const MOST_WRONG: usize = 4;
/// Pairs of a sample at a place from which it is thinned.
const DEEP: u32 = 1 << 16;
/// Bases by which pairs are drawn where a place is thinned.
const START: usize = 12;

/// A base that is not the reference's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wrong {
    /// Its position, from [`WATCHED`](crate::place::WATCHED) bases before the cut on.
    pub at: u8,
    /// Code of the base.
    pub base: u8,
    /// How sure it is, in hundredths of a natural logarithm.
    pub odds: i16,
}

/// How the mates of a pair begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Starts {
    bases: [u64; 2],
    lengths: [u8; 2],
}

impl Starts {
    /// Of the mates of a pair.
    pub fn of(pair: &Pair<'_>) -> Starts {
        let start = |seq: &[u8]| {
            let start = &seq[..seq.len().min(PREFIX)];
            // A letter that is no base counts as A: it is one of the few that copies may differ in.
            let bases = start.iter().fold(0u64, |word, &b| word << 2 | u64::from(dna::code(b) & 3));
            (bases, start.len() as u8)
        };
        let [one, two] = pair.mates.map(|mate| start(mate.seq));
        Starts { bases: [one.0, two.0], lengths: [one.1, two.1] }
    }

    /// A number that copies of a molecule have in common, but for wrong bases at its start.
    pub fn lot(&self) -> u64 {
        let start = |i: usize| {
            let length = usize::from(self.lengths[i]).min(START);
            let bases = self.bases[i] >> (2 * (usize::from(self.lengths[i]) - length));
            lot(&[&bases.to_le_bytes()[..], &[length as u8]].concat())
        };
        start(0).min(start(1))
    }
}

/// The same, as letters.
pub struct Letters {
    sample: u8,
    bases: [[u8; PREFIX]; 2],
    lengths: [u8; 2],
}

impl Letters {
    /// Of what a pair said.
    pub fn of(seen: &Seen) -> Letters {
        let Starts { bases, lengths } = seen.starts;
        let letters = |i: usize| {
            let mut letters = [0; PREFIX];
            let length = usize::from(lengths[i]);
            for (at, letter) in letters[..length].iter_mut().enumerate() {
                *letter = dna::base((bases[i] >> (2 * (length - 1 - at))) as u8 & 3);
            }
            letters
        };
        Letters { sample: seen.sample, bases: [letters(0), letters(1)], lengths }
    }
}

impl Mates for Letters {
    fn sample(&self) -> u8 {
        self.sample
    }

    fn seqs(&self) -> [&[u8]; 2] {
        [0, 1].map(|i| &self.bases[i][..usize::from(self.lengths[i])])
    }
}

/// What a pair says of a place. The order is one of contents, so that it does not show which thread saw a pair first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// Index of the place.
    pub place: u32,
    /// Which sample it is from.
    pub sample: u8,
    /// How its mates begin.
    pub starts: Starts,
    /// Whether read 1 runs with the place.
    pub first_forward: bool,
    /// Log-odds for the change in both frames, in hundredths; 0 where it says nothing.
    pub odds: [i16; 2],
    /// Whether its mates, or two frames, contradict each other.
    pub torn: bool,
    /// Positions with a good base that is the reference's, from [`WATCHED`](crate::place::WATCHED) bases before the cut on.
    pub good: u128,
    /// Wrong bases there, ascending, as many as `wrongs`.
    pub wrong: [Wrong; MOST_WRONG],
    /// How many wrong bases.
    pub(crate) wrongs: u8,
}

/// How many pairs each place was seen in, counted by all threads: [place][sample].
#[derive(Debug)]
pub struct Depths(Vec<Vec<AtomicU32>>);

fn level(pairs: u32) -> u32 {
    (pairs / DEEP).checked_ilog2().map_or(0, |log| log + 1)
}

impl Depths {
    /// Nothing seen yet.
    pub fn new(places: usize, samples: usize) -> Depths {
        Depths((0..places).map(|_| (0..samples).map(|_| AtomicU32::new(0)).collect()).collect())
    }

    fn keeps(lot: u64, pairs: u32) -> bool {
        lot & ((1u64 << level(pairs)) - 1) == 0
    }

    /// Counts a pair, and says whether it may be wanted in the end: thinning only becomes stricter.
    pub fn count(&self, seen: &Seen) -> bool {
        let before = self.0[seen.place as usize][usize::from(seen.sample)].fetch_add(1, Relaxed);
        Depths::keeps(seen.starts.lot(), before)
    }

    /// Whether a pair stays, when all were counted.
    pub fn stays(&self, seen: &Seen) -> bool {
        let all = self.0[seen.place as usize][usize::from(seen.sample)].load(Relaxed);
        Depths::keeps(seen.starts.lot(), all)
    }

    /// One pair in so many stays at a place.
    pub fn thinned(&self, place: usize, sample: usize) -> u32 {
        1 << level(self.0[place][sample].load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::Mate;

    fn starts(one: &[u8], two: &[u8]) -> Starts {
        let mate = |seq| Mate { seq, qual: seq };
        Starts::of(&Pair { name: b"x", mates: [mate(one), mate(two)] })
    }

    #[test]
    fn starts_are_kept_and_do_not_tell_mates_apart() {
        let (one, two) = (b"ACGTTGCATGCCGATAGCTAGGATCCATTAGCGG".to_vec(), b"TTGAC".to_vec());
        let seen = Seen {
            place: 0,
            sample: 3,
            starts: starts(&one, &two),
            first_forward: true,
            odds: [0; 2],
            torn: false,
            good: 0,
            wrong: Default::default(),
            wrongs: 0,
        };
        let letters = Letters::of(&seen);
        assert_eq!((letters.sample(), letters.seqs()), (3, [&one[..32], &two[..]]));
        assert_eq!(starts(&one, &two).lot(), starts(&two, &one).lot());
        assert_ne!(starts(&one, &two).lot(), starts(&one[3..], &two[1..]).lot());
        assert_eq!(starts(b"", b"").lot(), starts(b"", b"").lot());
    }

    #[test]
    fn who_stays_was_kept_before() {
        for lot in (0..1000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            for (few, many) in [(0, DEEP), (DEEP - 1, DEEP), (3 * DEEP, 9 * DEEP)] {
                assert!(Depths::keeps(lot, few) || !Depths::keeps(lot, many));
            }
        }
        assert_eq!([0, DEEP - 1, DEEP, 2 * DEEP, 4 * DEEP].map(level), [0, 0, 1, 2, 3]);
    }
}
