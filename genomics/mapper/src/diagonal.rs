//! Where seeds say that a read lies, before anything was looked at.

use crate::options::LONGEST;

/// Bits of an anchor, of votes.
const ANCHOR_BITS: u32 = LONGEST.ilog2() + 1;
const VOTE_BITS: u32 = 10;
/// Bits that say nothing of where it is.
const ABOUT_BITS: u32 = ANCHOR_BITS + VOTE_BITS;

/// A read on a diagonal: its strand, the packed base of its base 0, where in it a seed begins that says so, and how many say so: in one number,
/// and in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagonal(u64);

impl Diagonal {
    /// Behind all others.
    pub const LAST: Diagonal = Diagonal(u64::MAX);

    /// A read that lies on packed bases from `left` on, reversed or not, as a seed at its base `anchor` says.
    #[inline(always)]
    pub fn new(left: u64, reverse: bool, anchor: u16) -> Diagonal {
        Diagonal(u64::from(reverse) << 63 | left << ABOUT_BITS | u64::from(anchor) << VOTE_BITS | 1)
    }

    /// Whether the read lies there reversed.
    #[inline(always)]
    pub fn reverse(self) -> bool {
        self.0 >> 63 == 1
    }

    /// The packed base of its base 0.
    #[inline(always)]
    pub fn left(self) -> u64 {
        self.0 << 1 >> (ABOUT_BITS + 1)
    }

    /// Where its seed begins.
    #[inline(always)]
    pub fn anchor(self) -> u16 {
        (self.0 >> VOTE_BITS & ((1 << ANCHOR_BITS) - 1)) as u16
    }

    /// How many seeds say so: 1023 at most.
    #[inline(always)]
    pub fn votes(self) -> u32 {
        (self.0 & ((1 << VOTE_BITS) - 1)) as u32
    }

    /// The same with so many votes.
    #[inline(always)]
    pub(crate) fn with_votes(self, votes: u32) -> Diagonal {
        let most = (1 << VOTE_BITS) - 1;
        Diagonal(self.0 & !most | u64::from(votes).min(most))
    }

    /// Whether both are the same but for their seeds.
    #[inline(always)]
    pub fn same(self, other: Diagonal) -> bool {
        (self.0 ^ other.0) >> ABOUT_BITS == 0
    }

    /// Whether they are on one strand and at most so many bases apart.
    #[inline(always)]
    pub fn near(self, other: Diagonal, bases: u64) -> bool {
        (self.0 >> ABOUT_BITS).abs_diff(other.0 >> ABOUT_BITS) <= bases
    }
}
