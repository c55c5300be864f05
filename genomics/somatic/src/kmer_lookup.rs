//! Finds the occurrences of up to some million k-mers in reads and in the genome.
//!
//! Most sequences contain none of the k-mers. Therefore a filter of seeds ([`genuma_kmers::SeedFilter`]) first finds the
//! stretches that may contain one, and k-mers are looked up only in these stretches.

use std::ops::Range;

use genuma_kmers::SeedFilter;
use genuma_kmers::encode::{KmerOnBothStrands, kmer_mask, kmers, reverse_complement_kmer};
use genuma_reads::packed_bases::{CodesAndPackedBases, PackedBases};
use serde::{Deserialize, Serialize};

use crate::kmer_map::{KmerMap, StartedKmerLookup};

/// Occurrence of a searched k-mer in a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KmerHit {
    /// 0-based position of the k-mer's first base in the read as sequenced.
    pub start: u32,
    /// Length in bp: k, or more for a repeat k-mer, which covers a tandem repeat with its flanks, or a part of it with
    /// one flank.
    pub span: u32,
    /// K-mer rank: index of the k-mer in the list of searched k-mers.
    pub rank: u32,
    /// Whether the read has the k-mer in canonical orientation; otherwise it has the reverse complement.
    pub forward: bool,
}

/// A set of distinct canonical k-mers to search for in sequences. The rank of a k-mer is its index in the list from
/// which the set was built.
#[derive(Debug)]
pub struct KmerLookup {
    k: u32,
    map: KmerMap,
    filter: SeedFilter,
}

/// Buffers with which one thread looks up the k-mers of sequences; reused for the next sequence.
#[derive(Debug, Default)]
pub struct KmerLookupBuffers {
    /// The current sequence.
    read: CodesAndPackedBases,
    /// k-mers of the current sequence whose lookup is not finished.
    pending: Vec<PendingLookup>,
}

/// A k-mer whose lookup is not finished, with its position and orientation in the sequence.
#[derive(Debug)]
struct PendingLookup {
    start: u32,
    forward: bool,
    kmer: StartedKmerLookup,
}

/// Number of k-mers that are looked up together, so that their cache lines are prefetched in parallel.
const LOOKUP_BATCH: usize = 128;

impl KmerLookup {
    /// Builds the lookup for `kmers`, which must be distinct, canonical and of `k` bases (17 to 32).
    pub fn from_kmer_iter(k: u32, kmers: impl Iterator<Item = u64>) -> KmerLookup {
        KmerLookup::from_kmers(k, kmers.collect())
    }

    /// Builds the lookup from distinct, canonical k-mers of `k` bases (17 to 32), without copying them.
    pub fn from_kmers(k: u32, kmers: Vec<u64>) -> KmerLookup {
        KmerLookup { k, filter: SeedFilter::from_kmers(k, &kmers), map: KmerMap::from_kmers(kmers) }
    }

    /// The k-mers by rank. Frees the memory of the lookup.
    pub fn into_kmers(self) -> Vec<u64> {
        self.map.into_kmers()
    }

    /// Number of k-mers in the set.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of the k-mers in bp.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// The k-mer with this rank.
    pub fn kmer_of_rank(&self, rank: u32) -> u64 {
        self.map.kmer_of_rank(rank)
    }

    /// The rank of a canonical k-mer; `None` if the set does not contain it.
    pub fn rank_of_kmer(&self, kmer: u64) -> Option<u32> {
        self.map.rank_of_kmer(kmer)
    }

    /// Finds the searched k-mers that a sequence contains, and appends their occurrences to `out` by position. Returns
    /// the packed bases of the sequence.
    pub fn find_kmers<'a>(
        &self,
        seq: &[u8],
        KmerLookupBuffers { read, pending }: &'a mut KmerLookupBuffers,
        out: &mut Vec<KmerHit>,
    ) -> PackedBases<'a> {
        read.encode_bases(seq, seq, 0);
        let packed = read.packed_bases();
        pending.clear();
        self.filter.for_each_candidate_range(packed, seq.len(), |range| {
            let mut start_lookup = |start: usize, kmer: KmerOnBothStrands| {
                if pending.len() == LOOKUP_BATCH {
                    self.finish_lookups(pending, out);
                }
                let (start, forward) = (start as u32, kmer.forward <= kmer.reverse);
                pending.push(PendingLookup { start, forward, kmer: self.map.start_lookup(kmer.canonical()) });
            };
            if packed.has_non_acgt {
                kmers(&seq[range.clone()], self.k).for_each(|(at, kmer)| start_lookup(range.start + at, kmer));
            } else {
                for_each_packed_kmer(packed, range, self.k, start_lookup);
            }
        });
        self.finish_lookups(pending, out);
        packed
    }

    /// Finishes the pending lookups and appends the k-mers that are in the set to `out`.
    fn finish_lookups(&self, pending: &mut Vec<PendingLookup>, out: &mut Vec<KmerHit>) {
        // By now the filter word is in the cache; then the slot of the table.
        pending.retain(|lookup| self.map.check_filter_and_prefetch_slot(&lookup.kmer));
        for PendingLookup { start, forward, kmer } in pending.drain(..) {
            out.extend(self.map.finish_lookup(&kmer).map(|rank| KmerHit { start, span: self.k, rank, forward }));
        }
    }
}

/// Calls `each` with the k-mers in a range of bases, which must be A, C, G and T, with their start and both strands.
#[inline]
fn for_each_packed_kmer(
    read: PackedBases<'_>,
    range: Range<usize>,
    k: u32,
    mut each: impl FnMut(usize, KmerOnBothStrands),
) {
    let kmer_at = |start: usize| read.word_from_base(start) >> (64 - 2 * k);
    // The reverse complement of the k-mer one base before the first.
    let mut reverse = reverse_complement_kmer(kmer_at(range.start), k) << 2 & kmer_mask(k);
    for start in range.start..range.end + 1 - k as usize {
        let forward = kmer_at(start);
        reverse = reverse >> 2 | (!forward & 3) << (2 * (k - 1));
        each(start, KmerOnBothStrands { forward, reverse });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::dna::reverse_complement;

    #[test]
    fn what_is_found_is_what_looking_at_every_kmer_finds() {
        let mut x = 7u64;
        let mut base = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        let mut seq: Vec<u8> = (0..30_000).map(|_| base()).collect();
        let copy = reverse_complement(&seq[100..400]);
        seq[20_000..20_300].copy_from_slice(&copy);
        let with_n = [&seq[..9_000], b"N", &seq[9_001..]].concat();
        for (k, seq) in [24, 31, 32].into_iter().flat_map(|k| [(k, &seq), (k, &with_n)]) {
            let mut searched: Vec<u64> = kmers(seq, k).step_by(97).map(|(_, kmer)| kmer.canonical()).collect();
            searched.sort_unstable();
            searched.dedup();
            let lookup = KmerLookup::from_kmer_iter(k, searched.iter().copied());
            let (mut found, mut scratch) = (Vec::new(), KmerLookupBuffers::default());
            lookup.find_kmers(seq, &mut scratch, &mut found);
            let expected: Vec<KmerHit> = kmers(seq, k)
                .filter_map(|(at, kmer)| {
                    let rank = searched.binary_search(&kmer.canonical()).ok()? as u32;
                    Some(KmerHit { start: at as u32, span: k, rank, forward: kmer.forward <= kmer.reverse })
                })
                .collect();
            assert!(found == expected && found.len() > searched.len());
            assert!(searched.iter().enumerate().all(|(rank, &kmer)| lookup.rank_of_kmer(kmer) == Some(rank as u32)));
        }
    }
}
