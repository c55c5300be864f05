//! Adapter read-through: the adapter sequence, with the index of the sample, that a read contains if its molecule is
//! shorter than the read.

use super::params::AdapterType;
use crate::rng::Rng;

/// Length of a sample index (barcode), bp.
const INDEX_BP: usize = 8;

/// TruSeq adapter sequence before and after the index, as read 1 and read 2 contain it.
const TRUSEQ_FLANKS: [(&str, &str); 2] = [
    ("AGATCGGAAGAGCACACGTCTGAACTCCAGTCAC", "ATCTCGTATGCCGTCTTCTGCTTG"),
    ("AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGT", "GTGTAGATCTCGGTGGTCGCCGTATCATT"),
];
const NEXTERA_FLANKS: [(&str, &str); 2] = [
    ("CTGTCTCTTATACACATCTCCGAGCCCACGAGAC", "ATCTCGTATGCCGTCTTCTGCTTG"),
    ("CTGTCTCTTATACACATCTGACGCTGCCGACGA", "GTGTAGATCTCGGTGGTCGCCGTATCATT"),
];

/// The adapter sequences of a sample, with its indices, that follow the insert in read 1 and read 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SampleAdapters {
    /// Adapter sequences as read 1 and read 2 contain them.
    sequences: [Vec<u8>; 2],
}

impl SampleAdapters {
    /// Creates the adapters of a sample, with random indices.
    pub(super) fn with_random_indices(kind: AdapterType, rng: &mut Rng) -> Self {
        let parts = match kind {
            AdapterType::Truseq => TRUSEQ_FLANKS,
            AdapterType::Nextera => NEXTERA_FLANKS,
        };
        let with_index = |(before, behind): (&str, &str)| {
            let index: Vec<u8> = (0..INDEX_BP).map(|_| rng.draw_base(0.5)).collect();
            [before.as_bytes(), &index, behind.as_bytes()].concat()
        };
        SampleAdapters { sequences: parts.map(with_index) }
    }

    /// Appends the adapter sequence that read `mate` (0 or 1) contains, until `bases` has `length` bases or the adapter
    /// ends.
    pub(super) fn append_adapter(&self, mate: usize, length: usize, bases: &mut Vec<u8>) {
        let room = length.saturating_sub(bases.len());
        bases.extend(self.sequences[mate].iter().take(room));
    }
}
