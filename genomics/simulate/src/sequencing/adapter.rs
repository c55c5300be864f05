//! What reads run into when their molecule ends: the adapter with the sample's index, and then nothing.

use super::params::Adapter;
use crate::rng::Rng;

/// Bases of an index.
const INDEX: usize = 8;

/// Sequence before and behind the index that each mate reads.
const TRUSEQ: [(&str, &str); 2] = [
    ("AGATCGGAAGAGCACACGTCTGAACTCCAGTCAC", "ATCTCGTATGCCGTCTTCTGCTTG"),
    ("AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGT", "GTGTAGATCTCGGTGGTCGCCGTATCATT"),
];
const NEXTERA: [(&str, &str); 2] = [
    ("CTGTCTCTTATACACATCTCCGAGCCCACGAGAC", "ATCTCGTATGCCGTCTTCTGCTTG"),
    ("CTGTCTCTTATACACATCTGACGCTGCCGACGA", "GTGTAGATCTCGGTGGTCGCCGTATCATT"),
];

/// The adapters of one sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Adapters {
    /// As each mate reads them.
    sequences: [Vec<u8>; 2],
}

impl Adapters {
    /// With indices that `rng` draws.
    pub fn new(kind: Adapter, rng: &mut Rng) -> Self {
        let parts = match kind {
            Adapter::Truseq => TRUSEQ,
            Adapter::Nextera => NEXTERA,
        };
        let with_index = |(before, behind): (&str, &str)| {
            let index: Vec<u8> = (0..INDEX).map(|_| rng.base(0.5)).collect();
            [before.as_bytes(), &index, behind.as_bytes()].concat()
        };
        Adapters { sequences: parts.map(with_index) }
    }

    /// Adds as much of the adapter as a read of `length` bases has room for.
    pub fn extend(&self, mate: usize, length: usize, bases: &mut Vec<u8>) {
        let room = length.saturating_sub(bases.len());
        bases.extend(self.sequences[mate].iter().take(room));
    }
}
