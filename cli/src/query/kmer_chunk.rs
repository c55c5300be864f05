//! K-mers of sequences that are looked up together.

use std::ops::Range;

use genuma_kmers::encode::KmerOnBothStrands;

/// A k-mer of a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct SequenceKmer {
    /// Index of the sequence in the batch.
    pub(super) sequence: usize,
    /// Position of the first base in the sequence, from 0.
    pub(super) start: usize,
    pub(super) kmer: KmerOnBothStrands,
}

/// Consecutive k-mers of one sequence in a chunk.
#[derive(Debug, Clone)]
pub(super) struct SequencePart {
    /// Index of the sequence in the batch.
    pub(super) sequence: usize,
    /// The k-mers in the chunk; empty for a sequence without k-mers.
    pub(super) kmers: Range<usize>,
    /// Whether the sequence has no k-mers after these.
    pub(super) is_last: bool,
}

/// K-mers of consecutive sequences of a batch that are looked up together. A sequence with many k-mers is in several
/// chunks.
#[derive(Debug, Default)]
pub(super) struct KmerChunk {
    pub(super) kmers: Vec<SequenceKmer>,
    /// The parts of the sequences, in the order of the k-mers. Sequences without k-mers are included.
    pub(super) parts: Vec<SequencePart>,
}

impl KmerChunk {
    /// Ends a part of a sequence: the k-mers that were added after the last part. `is_last`: whether the sequence has
    /// no further k-mers.
    pub(super) fn end_part(&mut self, sequence: usize, is_last: bool) {
        let start = self.parts.last().map_or(0, |part| part.kmers.end);
        self.parts.push(SequencePart { sequence, kmers: start..self.kmers.len(), is_last });
    }

    pub(super) fn clear(&mut self) {
        self.kmers.clear();
        self.parts.clear();
    }
}
