//! A diagonal: strand and position at which a read would lie if it matched the reference from a seed on without gaps.
//! No base has been compared yet.

use crate::options::MAX_READ_BP;

/// Number of bits of the anchor in a packed [`Diagonal`].
const ANCHOR_BITS: u32 = MAX_READ_BP.ilog2() + 1;
/// Number of bits of the seed count, the lowest bits of a packed [`Diagonal`].
const SEED_COUNT_BITS: u32 = 10;
/// Number of bits of anchor and seed count together, below the position in a packed [`Diagonal`].
const SUPPORT_BITS: u32 = ANCHOR_BITS + SEED_COUNT_BITS;

/// A diagonal of a read in one number, from the highest bits on: strand, packed position of base 0 of the read, anchor
/// (start of a seed in the read), and number of seeds on the diagonal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagonal(u64);

impl Diagonal {
    /// A value that sorts after all diagonals of reads.
    pub(crate) const AFTER_ALL_DIAGONALS: Diagonal = Diagonal(u64::MAX);

    /// Creates the diagonal of a read, or of its reverse complement if `reverse` is set, whose base 0 is at position
    /// `left` of the packed reference. It has one seed, which starts at base `anchor` of the oriented read.
    #[inline(always)]
    pub fn new(left: u64, reverse: bool, anchor: u16) -> Diagonal {
        Diagonal(u64::from(reverse) << 63 | left << SUPPORT_BITS | u64::from(anchor) << SEED_COUNT_BITS | 1)
    }

    /// Whether the diagonal is that of the reverse complement of the read.
    #[inline(always)]
    pub fn is_reverse(self) -> bool {
        self.0 >> 63 == 1
    }

    /// Packed position of base 0 of the oriented read.
    #[inline(always)]
    pub fn read_start_on_reference(self) -> u64 {
        self.0 << 1 >> (SUPPORT_BITS + 1)
    }

    /// Start (base number) of one of the seeds in the oriented read.
    #[inline(always)]
    pub fn anchor_start_in_read(self) -> u16 {
        (self.0 >> SEED_COUNT_BITS & ((1 << ANCHOR_BITS) - 1)) as u16
    }

    /// Packed position of the start of that seed.
    #[inline(always)]
    pub(crate) fn anchor_start_on_reference(self) -> u64 {
        self.read_start_on_reference() + u64::from(self.anchor_start_in_read())
    }

    /// Number of seeds on this diagonal, at most 1023.
    #[inline(always)]
    pub(crate) fn seed_count(self) -> u32 {
        (self.0 & ((1 << SEED_COUNT_BITS) - 1)) as u32
    }

    /// Returns the diagonal with `seed_count` seeds; more than 1023 are stored as 1023.
    #[inline(always)]
    pub(crate) fn with_seed_count(self, seed_count: u32) -> Diagonal {
        let most = (1 << SEED_COUNT_BITS) - 1;
        Diagonal(self.0 & !most | u64::from(seed_count).min(most))
    }

    /// Whether two diagonals have the same strand and position.
    #[inline(always)]
    pub(crate) fn is_same_diagonal(self, other: Diagonal) -> bool {
        (self.0 ^ other.0) >> SUPPORT_BITS == 0
    }

    /// Whether two diagonals are on the same strand and at most `bases` bases apart.
    #[inline(always)]
    pub(crate) fn is_near_diagonal(self, other: Diagonal, bases: u64) -> bool {
        (self.0 >> SUPPORT_BITS).abs_diff(other.0 >> SUPPORT_BITS) <= bases
    }
}
