//! An alignment of a sequence, or of a part of it, to a reference.

/// The strand of the reference to which a sequence aligns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strand {
    /// The strand that the reference file contains.
    Forward,
    /// The reverse complement of the reference.
    Reverse,
}

/// Kind of a CIGAR operation. The numbers of the kinds are the operation codes of BAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CigarKind {
    /// Aligned bases, equal or different (M).
    Match,
    /// Bases of the sequence that the reference lacks (I).
    Ins,
    /// Bases of the reference that the sequence lacks (D).
    Del,
}

/// One CIGAR operation: its kind and its length (bp).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CigarOp {
    /// Match, insertion or deletion.
    pub kind: CigarKind,
    /// Length of the operation in bases.
    pub len: u32,
}

/// One alignment of a sequence, or of a part of it, to the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Index of the reference sequence (htslib: tid).
    pub tid: usize,
    /// First aligned base on the reference, 0-based.
    pub ref_start: usize,
    /// End of the alignment on the reference, exclusive.
    pub ref_end: usize,
    /// First aligned base of the sequence, 0-based, in the orientation in which the sequence was given.
    pub query_start: usize,
    /// End of the alignment in the sequence, exclusive.
    pub query_end: usize,
    /// Strand of the reference to which the sequence aligns.
    pub strand: Strand,
    /// Mapping quality (Phred).
    pub mapq: u8,
    /// Alignment score: match scores minus mismatch and gap penalties.
    pub score: i32,
    /// Number of alignment columns: matches, mismatches, inserted and deleted bases (PAF: alignment block length).
    pub alignment_columns: usize,
    /// Number of matching bases (PAF: residue matches).
    pub matching_bases: usize,
    /// Whether this hit and a hit of the mate were chosen as a proper pair; false for sequences without mates.
    pub proper_pair: bool,
    /// Whether this is the primary (best) alignment of the sequence.
    pub is_primary: bool,
    /// Whether a better hit that is not secondary aligns the same bases of the sequence (SAM flag 0x100).
    pub is_secondary: bool,
    /// CIGAR without clips, along the forward strand of the reference.
    pub cigar: Vec<CigarOp>,
}
