//! A placement of a read: its position on the reference and the aligned part of the read.

/// An alignment of a read to the reference. Base numbers and `anchor` are those of the oriented read: the read as
/// sequenced, or its reverse complement if `reverse` is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placement {
    /// Packed position at which base 0 of the oriented read would be, extrapolated without gaps from the first aligned
    /// base.
    pub left: u64,
    /// Packed position at which base 0 of the oriented read would be, extrapolated without gaps from the last aligned
    /// base. It differs from `left` by the lengths of the gaps.
    pub right: u64,
    /// Whether the reverse complement of the read is aligned.
    pub reverse: bool,
    /// Whether the placement is on an ALT contig.
    pub is_on_alt: bool,
    /// Number of the first aligned base of the oriented read.
    pub from: u16,
    /// End (exclusive) of the aligned bases of the oriented read.
    pub to: u16,
    /// Number of a base of the oriented read that is on the same reference sequence as the placement.
    pub anchor: u16,
    /// Best score of a part of the alignment, without clip penalties: as in bwa, a mismatch near an end of the read
    /// costs no more than clipping would.
    pub score: i32,
    /// Score of the whole alignment minus clip penalties.
    pub net_score: i32,
    /// Upper bound of the net score that an alignment with gaps could have.
    pub max_gapped_score: i32,
    /// Whether the placement was found by mate rescue instead of a seed.
    pub is_rescued: bool,
    /// Whether an alignment with all gaps of up to [`crate::gapped::MAX_GAP_BP`] that could raise the score has been
    /// tried.
    pub all_gaps_tried: bool,
    /// Whether the placement is the result of a gapped alignment; `left` and `right` may then differ from the seed's
    /// diagonal.
    pub is_gapped_alignment: bool,
    /// Index of the first CIGAR operation in the list of the operations of all placements, if there are gaps.
    pub cigar_start: u32,
    /// Number of CIGAR operations; 0 if the alignment has no gaps.
    pub num_cigar_ops: u16,
}

impl Placement {
    /// Packed position of the first aligned reference base.
    #[inline(always)]
    pub fn ref_start(&self) -> u64 {
        self.left + u64::from(self.from)
    }

    /// Packed position of the end (exclusive) of the aligned reference bases.
    #[inline(always)]
    pub fn ref_end(&self) -> u64 {
        self.right + u64::from(self.to)
    }

    /// Whether the placements align different bases of the read: they have less than half of the bases of the shorter
    /// one in common.
    pub fn covers_mostly_different_bases(&self, other: &Placement, length: usize) -> bool {
        2 * self.count_shared_read_bases(other, length) < self.num_aligned_bases().min(other.num_aligned_bases())
    }

    /// Number of bases of a read of `length` bases that both placements align, at any positions.
    pub(crate) fn count_shared_read_bases(&self, other: &Placement, length: usize) -> usize {
        let (a, b) = (self.aligned_range_as_sequenced(length), other.aligned_range_as_sequenced(length));
        a.1.min(b.1).saturating_sub(a.0.max(b.0))
    }

    /// Range of the aligned bases of a read of `length` bases, numbered as sequenced: first base and end (exclusive).
    pub(crate) fn aligned_range_as_sequenced(&self, length: usize) -> (usize, usize) {
        let (from, to) = (usize::from(self.from), usize::from(self.to));
        if self.reverse { (length - to, length - from) } else { (from, to) }
    }

    /// Number of aligned bases of the read.
    pub(crate) fn num_aligned_bases(&self) -> usize {
        usize::from(self.to - self.from)
    }

    /// Whether two placements begin or end on the same diagonal, so that they are two versions of one alignment.
    #[inline(always)]
    pub(crate) fn begins_or_ends_on_same_diagonal(&self, other: &Placement) -> bool {
        self.reverse == other.reverse
            && (self.left == other.left
                || self.right == other.right
                || self.left == other.right
                || self.right == other.left)
    }
}
