//! The reads that carry interesting k-mers.

use genuma_kmers::encode::kmers;
use genuma_reads::{Mate, Pair};
use serde::{Deserialize, Serialize};

use crate::kmer_map::KmerMap;

/// Where an interesting k-mer stands in a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KmerHit {
    /// Start of the k-mer in the read as sequenced.
    pub at: u32,
    /// Rank of the k-mer in the list of interesting ones.
    pub rank: u32,
    /// Whether the canonical strand is the read's own.
    pub forward: bool,
}

/// One read, kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Read {
    /// Upper-case bases.
    #[serde(with = "serde_bytes")]
    pub seq: Vec<u8>,
    /// Phred qualities (no offset).
    #[serde(with = "serde_bytes")]
    pub qual: Vec<u8>,
}

impl Read {
    /// Copies a mate out of its batch.
    pub fn keep(mate: Mate<'_>) -> Read {
        Read {
            seq: mate.seq.to_ascii_uppercase(),
            qual: mate.qual.iter().map(|q| q.saturating_sub(33)).collect(),
        }
    }

    /// The same read seen from the other strand.
    pub fn reversed(&self) -> Read {
        Read { seq: genuma_reads::dna::revcomp(&self.seq), qual: self.qual.iter().rev().copied().collect() }
    }
}

/// A pair kept because one of its mates carries interesting k-mers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labelled {
    /// Template name.
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    /// Which sample it is from.
    pub sample: u8,
    /// The mates.
    pub mates: [Read; 2],
    /// Interesting k-mers of each mate, in read order.
    pub hits: [Vec<KmerHit>; 2],
}

/// The interesting k-mers of one read, appended to `out`.
pub fn hits(seq: &[u8], k: u32, map: &KmerMap, out: &mut Vec<KmerHit>) {
    for (at, kmer) in kmers(seq, k) {
        let canonical = kmer.canonical();
        if let Some(rank) = map.get(canonical) {
            out.push(KmerHit { at: at as u32, rank, forward: canonical == kmer.forward });
        }
    }
}

/// Finds the k-mers of `map` in both mates; `found` is overwritten. Says whether there is any.
pub fn search(pair: Pair<'_>, k: u32, map: &KmerMap, found: &mut [Vec<KmerHit>; 2]) -> bool {
    for (mate, found) in pair.mates.iter().zip(found.iter_mut()) {
        found.clear();
        hits(mate.seq, k, map, found);
    }
    found.iter().any(|h| !h.is_empty())
}

impl Labelled {
    /// Copies a pair out of its batch, with what was found in it.
    pub fn keep(pair: Pair<'_>, sample: u8, hits: &[Vec<KmerHit>; 2]) -> Labelled {
        Labelled { name: pair.name.to_vec(), sample, mates: pair.mates.map(Read::keep), hits: hits.clone() }
    }
}
