//! Prepares read pairs for k-mer counting.

use genuma_kmers::PreparePair;
use genuma_reads::packed_bases::PackedBases as Bases;
use genuma_reads::{ReadPair, TrimCounts, Trimmer};

use crate::tandem_repeat;

/// Prepares read pairs for counting: trims adapters, low-quality tails and poly-G tails, and adds the artificial k-mers
/// of tandem repeats ([`tandem_repeat`]).
#[derive(Debug)]
pub(crate) struct PairTrimmerAndRepeatEncoder {
    k: u32,
    /// One trimmer for each sample.
    trimmers: Vec<Trimmer>,
}

impl PairTrimmerAndRepeatEncoder {
    /// Creates the trimmers for `k`-mers of the given number of samples.
    pub fn new(k: u32, samples: usize) -> PairTrimmerAndRepeatEncoder {
        PairTrimmerAndRepeatEncoder { k, trimmers: (0..samples).map(|_| Trimmer::default()).collect() }
    }

    /// For each sample, the numbers of reads and bases that were trimmed.
    pub fn trim_counts(&self) -> impl Iterator<Item = TrimCounts> {
        self.trimmers.iter().map(Trimmer::counts)
    }

    /// Packed bases of both mates of the last pair of a sample: without low-quality tails, but with adapters and poly-G
    /// tails.
    pub fn packed_bases_of_last_pair(&self, sample: u8) -> [Bases<'_>; 2] {
        self.trimmers[usize::from(sample)].packed_mates_before_adapter_trimming()
    }
}

impl PreparePair for PairTrimmerAndRepeatEncoder {
    fn prepare<'a>(&mut self, pair: ReadPair<'a>, sample: u8, added: &mut Vec<u8>) -> ReadPair<'a> {
        let trimmer = &mut self.trimmers[usize::from(sample)];
        let pair = trimmer.trim_pair(pair);
        for (mate, packed) in pair.mates.iter().zip(trimmer.packed_mates_before_adapter_trimming()) {
            tandem_repeat::append_bases_of_repeat_kmers(mate.seq, packed, self.k, added);
        }
        pair
    }
}
