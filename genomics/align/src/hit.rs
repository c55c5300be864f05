//! Where a sequence, or a part of it, lies on a reference.

/// The strand of the reference that a sequence is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strand {
    /// The one that the reference has.
    Forward,
    /// The other.
    Reverse,
}

/// What an operation of a CIGAR does, in the order of their numbers in BAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CigarKind {
    /// Bases side by side, equal or not.
    Match,
    /// Bases that the reference lacks.
    Ins,
    /// Bases that the sequence lacks.
    Del,
}

/// An operation of a CIGAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CigarOp {
    /// What it does.
    pub kind: CigarKind,
    /// With how many bases.
    pub len: u32,
}

/// A place that a sequence, or a part of it, is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Number of the reference's sequence.
    pub tid: usize,
    /// First base on the reference, from 0.
    pub ref_start: usize,
    /// One past the last.
    pub ref_end: usize,
    /// First base of the part, from 0, as the sequence was given.
    pub query_start: usize,
    /// One past the last.
    pub query_end: usize,
    /// Which strand.
    pub strand: Strand,
    /// Mapping quality.
    pub mapq: u8,
    /// Score of the alignment.
    pub score: i32,
    /// Columns of the alignment.
    pub blen: usize,
    /// Of these, bases that match.
    pub mlen: usize,
    /// Whether it and the one of the mate lie as mates do.
    pub proper_pair: bool,
    /// Whether it is the first choice.
    pub is_primary: bool,
    /// Whether it is another choice for a part that has a better one.
    pub is_secondary: bool,
    /// The alignment from start to end, along the reference.
    pub cigar: Vec<CigarOp>,
}
