//! A place of a read: where it lies, and how much of it.

/// An alignment of a read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Packed base at which base 0 of the read would lie, reckoned from its first aligned base.
    pub left: u64,
    /// The same reckoned from its last aligned base: another one where there are gaps.
    pub right: u64,
    /// Aligned is the reverse complement.
    pub reverse: bool,
    /// It is on an ALT contig.
    pub alt: bool,
    /// First aligned base of the read as it lies on the reference's strand.
    pub from: u16,
    /// The base behind the last one.
    pub to: u16,
    /// A base of the read that lies on its sequence of the reference.
    pub anchor: u16,
    /// Score.
    pub score: i32,
    /// Score less what clips cost.
    pub total: i32,
    /// What the total could be with a gap, at most.
    pub most: i32,
    /// It was found beside its mate, not by a seed.
    pub sought: bool,
    /// It was aligned with all gaps that could help.
    pub mended: bool,
    /// Its diagonals are those of an alignment with gaps, not of seeds.
    pub formed: bool,
    /// Where its operations begin among those of all, if it has gaps.
    pub cigar: u32,
    /// How many operations: none where all aligned bases lie on one diagonal.
    pub operations: u16,
}

impl Place {
    /// The packed base of the first aligned base.
    #[inline(always)]
    pub fn start(&self) -> u64 {
        self.left + u64::from(self.from)
    }

    /// The packed base behind that of the last aligned base.
    #[inline(always)]
    pub fn end(&self) -> u64 {
        self.right + u64::from(self.to)
    }

    /// Whether it is of other bases of the read than `other`: less than half of the shorter one is shared.
    pub fn elsewhere(&self, other: &Place, length: usize) -> bool {
        2 * self.overlap(other, length) < self.aligned().min(other.aligned())
    }

    /// Bases of the read that two alignments share, in the order of sequencing; of a read of `length`.
    pub fn overlap(&self, other: &Place, length: usize) -> usize {
        let (a, b) = (self.sequenced(length), other.sequenced(length));
        a.1.min(b.1).saturating_sub(a.0.max(b.0))
    }

    /// First aligned base and the one behind the last, in the order of sequencing.
    pub fn sequenced(&self, length: usize) -> (usize, usize) {
        let (from, to) = (usize::from(self.from), usize::from(self.to));
        if self.reverse { (length - to, length - from) } else { (from, to) }
    }

    /// Aligned bases of the read.
    pub fn aligned(&self) -> usize {
        usize::from(self.to - self.from)
    }

    /// Whether both begin or end on one diagonal: then they are two forms of one alignment.
    #[inline(always)]
    pub fn alike(&self, other: &Place) -> bool {
        self.reverse == other.reverse
            && (self.left == other.left
                || self.right == other.right
                || self.left == other.right
                || self.right == other.left)
    }
}
