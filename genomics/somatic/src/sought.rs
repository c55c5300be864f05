//! k-mers looked for in reads and in the genome: some millions, in a thousand times as many bases.
//!
//! Nearly nothing of what is looked at holds one. So a sieve of minimizers ([`genuma_kmers::Sieve`]) says first where one may be, and
//! only there each k-mer is looked up.

use genuma_kmers::encode::kmers;
use genuma_kmers::{Sieve, Sifter};
use genuma_reads::packed::Packed;
use serde::{Deserialize, Serialize};

use crate::kmer_map::{Asked, KmerMap};

/// Where a k-mer that is looked for stands in a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KmerHit {
    /// First base in the read as sequenced.
    pub at: u32,
    /// Bases: k, or more for a tandem repeat with its flanks.
    pub span: u32,
    /// Rank of the k-mer in the list of those looked for.
    pub rank: u32,
    /// Whether the canonical strand is the read's own.
    pub forward: bool,
}

/// Distinct canonical k-mers by their rank in the list they came in.
#[derive(Debug)]
pub struct Sought {
    k: u32,
    map: KmerMap,
    sieve: Sieve,
}

/// What a thread needs to look; keeps its memory between sequences.
#[derive(Debug)]
pub struct Looking {
    sifter: Sifter,
    /// k-mers of the sequence in hand that are looked up.
    asked: Vec<Place>,
}

/// A k-mer that is looked up, and where it stands as [`KmerHit`] says.
#[derive(Debug)]
struct Place {
    at: u32,
    forward: bool,
    kmer: Asked,
}

/// k-mers looked up together: their cache lines come while others are asked for.
const TOGETHER: usize = 128;

impl Looking {
    /// For `k`-mers.
    pub fn new(k: u32) -> Looking {
        Looking { sifter: Sifter::new(k), asked: Vec::new() }
    }
}

impl Sought {
    /// Looks for `kmers`, which must be distinct and canonical, of `k` bases (24 to 32).
    pub fn new(k: u32, kmers: impl ExactSizeIterator<Item = u64> + Clone) -> Sought {
        Sought { k, sieve: Sieve::new(k, kmers.clone()), map: KmerMap::new(kmers) }
    }

    /// How many k-mers are looked for.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of the k-mers.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// What a thread needs to look.
    pub fn looking(&self) -> Looking {
        Looking::new(self.k)
    }

    /// The rank of a canonical k-mer.
    pub fn rank(&self, kmer: u64) -> Option<u32> {
        self.map.get(kmer)
    }

    /// Those that a sequence holds, appended to `out` by position. Returns the sequence's packed bases.
    pub fn find<'a>(
        &self,
        seq: &[u8],
        Looking { sifter, asked }: &'a mut Looking,
        out: &mut Vec<KmerHit>,
    ) -> Packed<'a> {
        let Sought { k, map, sieve } = self;
        asked.clear();
        // When they are looked at what they need of the filter has come, and then what they need of the table.
        let mut look = |asked: &mut Vec<Place>| {
            asked.retain(|place| map.may_have(&place.kmer));
            for Place { at, forward, kmer } in asked.drain(..) {
                out.extend(map.answer(&kmer).map(|rank| KmerHit { at, span: *k, rank, forward }));
            }
        };
        let packed = sieve.sift(seq, sifter, |stretch| {
            let from = stretch.start;
            for (at, kmer) in kmers(&seq[stretch], *k) {
                if asked.len() == TOGETHER {
                    look(asked);
                }
                let (at, forward) = ((from + at) as u32, kmer.forward <= kmer.reverse);
                asked.push(Place { at, forward, kmer: map.ask(kmer.canonical()) });
            }
        });
        look(asked);
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::dna::revcomp;

    #[test]
    fn what_is_found_is_what_looking_at_every_kmer_finds() {
        let mut x = 7u64;
        let mut base = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        let mut seq: Vec<u8> = (0..30_000).map(|_| base()).collect();
        let copy = revcomp(&seq[100..400]);
        seq[20_000..20_300].copy_from_slice(&copy);
        seq[9_000] = b'N';
        for k in [24, 31, 32] {
            let mut wanted: Vec<u64> = kmers(&seq, k).step_by(97).map(|(_, kmer)| kmer.canonical()).collect();
            wanted.sort_unstable();
            wanted.dedup();
            let sought = Sought::new(k, wanted.iter().copied());
            let (mut found, mut looking) = (Vec::new(), sought.looking());
            sought.find(&seq, &mut looking, &mut found);
            let expected: Vec<KmerHit> = kmers(&seq, k)
                .filter_map(|(at, kmer)| {
                    let rank = wanted.binary_search(&kmer.canonical()).ok()? as u32;
                    Some(KmerHit { at: at as u32, span: k, rank, forward: kmer.forward <= kmer.reverse })
                })
                .collect();
            assert!(found == expected && found.len() > wanted.len());
            assert!(wanted.iter().enumerate().all(|(rank, &kmer)| sought.rank(kmer) == Some(rank as u32)));
        }
    }
}
