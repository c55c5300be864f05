//! A placement of a read: its position on the reference and the aligned part of the read.

/// An alignment of a read to the reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placement {
    /// Packed position of base 0 of the read, extrapolated from the first aligned base.
    pub left: u64,
    /// Packed position of base 0 of the read, extrapolated from the last aligned base. Differs from `left` if there
    /// are gaps.
    pub right: u64,
    /// Whether the reverse complement of the read is aligned.
    pub reverse: bool,
    /// Whether the placement is on an ALT contig.
    pub alt: bool,
    /// First aligned base of the oriented read.
    pub from: u16,
    /// End (exclusive) of the aligned bases in the read, oriented like the forward strand of the reference.
    pub to: u16,
    /// A base of the oriented read that is on the reference sequence of the placement.
    pub anchor: u16,
    /// Alignment score without clip penalties.
    pub score: i32,
    /// Alignment score minus clip penalties.
    pub net_score: i32,
    /// Upper bound of the net score with a gap.
    pub max_gapped_score: i32,
    /// Whether the placement was found by mate rescue instead of a seed.
    pub is_rescued: bool,
    /// Whether all gaps that could help have been tried.
    pub gaps_exhausted: bool,
    /// Whether `left` and `right` come from an alignment with gaps instead of a seed.
    pub is_gapped_form: bool,
    /// Start of the CIGAR operations in the list of all operations, if there are gaps.
    pub cigar_start: u32,
    /// Number of CIGAR operations; 0 if the alignment has no gaps.
    pub num_cigar_ops: u16,
}

impl Placement {
    /// Packed position of the first aligned base.
    #[inline(always)]
    pub fn start(&self) -> u64 {
        self.left + u64::from(self.from)
    }

    /// End of the aligned bases on the reference (packed, exclusive).
    #[inline(always)]
    pub fn end(&self) -> u64 {
        self.right + u64::from(self.to)
    }

    /// Whether both placements align different bases of the read: they share less than half of the bases of the
    /// shorter one.
    pub fn covers_different_bases(&self, other: &Placement, length: usize) -> bool {
        2 * self.num_shared_bases(other, length) < self.num_aligned_bases().min(other.num_aligned_bases())
    }

    /// Number of bases of a read of `length` bases that both placements align.
    pub fn num_shared_bases(&self, other: &Placement, length: usize) -> usize {
        let (a, b) = (self.aligned_range_as_sequenced(length), other.aligned_range_as_sequenced(length));
        a.1.min(b.1).saturating_sub(a.0.max(b.0))
    }

    /// Aligned range of the read as sequenced: first base and end (exclusive).
    pub fn aligned_range_as_sequenced(&self, length: usize) -> (usize, usize) {
        let (from, to) = (usize::from(self.from), usize::from(self.to));
        if self.reverse { (length - to, length - from) } else { (from, to) }
    }

    /// Number of aligned bases of the read.
    pub fn num_aligned_bases(&self) -> usize {
        usize::from(self.to - self.from)
    }

    /// Whether two placements begin or end on the same diagonal: then they are two forms of one alignment.
    #[inline(always)]
    pub fn shares_diagonal(&self, other: &Placement) -> bool {
        self.reverse == other.reverse
            && (self.left == other.left
                || self.right == other.right
                || self.left == other.right
                || self.right == other.left)
    }
}
