//! Second pass over both samples: every pair that overlaps a change, whichever allele it has.
//!
//! A contig's shared k-mers next to its novel stretch stand in both alleles; its novel k-mers stand in the tumour's
//! only. Pairs that carry either are kept for the contig. Shared k-mers that turn out to be over-abundant are repeats
//! and recruit nothing.

use std::sync::atomic::{AtomicU32, Ordering};

use genuma_kmers::encode::kmers;
use genuma_reads::Pair;

use crate::compare::Compared;
use crate::kmer_map::KmerMap;
use crate::label::{self, KmerHit, Labelled, Read};

/// Shared k-mers are taken from this many bases beyond the novel stretch.
const REACH: usize = 40;

/// Only one k-mer in so many recruits: a read that covers the change has several all the same.
const STRIDE: usize = 4;

/// Where a recruiting k-mer stands on a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    rank: u32,
    contig: u32,
    at: u32,
    forward: bool,
}

/// The recruiting k-mers of all contigs.
#[derive(Debug)]
pub struct Index {
    k: u32,
    map: KmerMap,
    /// Sorted by rank.
    sites: Vec<Site>,
    distinct: usize,
    most: u32,
}

/// How often each recruiting k-mer was met, counted by all threads; no further once it is known as a repeat.
#[derive(Debug)]
pub struct Seen(Vec<AtomicU32>);

impl Seen {
    /// Nothing met yet.
    pub fn new(index: &Index) -> Seen {
        Seen((0..index.distinct).map(|_| AtomicU32::new(0)).collect())
    }

    /// The counts, by rank.
    pub fn into_counts(self) -> Vec<u32> {
        self.0.into_iter().map(AtomicU32::into_inner).collect()
    }
}

/// Offsets kept of a read on a contig.
pub const OFFSETS: usize = 3;

/// A read laid on a contig by its k-mers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recruit {
    /// Index among the recruited pairs.
    pub pair: u32,
    /// Which mate.
    pub mate: u8,
    /// Whether the read runs with the contig.
    pub forward: bool,
    /// Contig positions of the oriented read's first base, by its k-mers, most votes first: they differ where an
    /// insertion or deletion lies between, or where the contig has a sequence twice. Unused places repeat the first.
    pub at: [i32; OFFSETS],
}

impl Recruit {
    /// The read, turned to run with the contig.
    pub fn oriented(&self, pairs: &[Labelled]) -> Read {
        let read = &pairs[self.pair as usize].mates[self.mate as usize];
        if self.forward { read.clone() } else { read.reversed() }
    }
}

impl Index {
    /// Indexes the novel stretches of `contigs` and their surroundings. A k-mer seen more than `most` times in the
    /// reads is a repeat.
    pub fn new(contigs: &[Compared], k: u32, most: u32) -> Index {
        let mut entries: Vec<(u64, Site)> = Vec::new();
        for (c, contig) in contigs.iter().enumerate() {
            let reach = near_novel(&contig.novel, REACH);
            for (at, kmer) in kmers(&contig.seq, k).filter(|(at, _)| at % STRIDE == 0) {
                let canonical = kmer.canonical();
                if reach[at..at + k as usize].iter().all(|&n| n) && kmer.forward != kmer.reverse {
                    let forward = canonical == kmer.forward;
                    entries.push((canonical, Site { rank: 0, contig: c as u32, at: at as u32, forward }));
                }
            }
        }
        entries.sort_unstable();
        let mut distinct: Vec<u64> = entries.iter().map(|e| e.0).collect();
        distinct.dedup();
        let mut rank = 0u32;
        let mut sites = Vec::with_capacity(entries.len());
        for (i, (kmer, site)) in entries.iter().enumerate() {
            if i > 0 && entries[i - 1].0 != *kmer {
                rank += 1;
            }
            sites.push(Site { rank, ..*site });
        }
        Index { k, distinct: distinct.len(), map: KmerMap::new(distinct.into_iter()), sites, most }
    }

    /// Keeps the pair if a mate carries a recruiting k-mer that is not known as a repeat yet.
    pub fn recruit(
        &self,
        pair: Pair<'_>,
        sample: u8,
        seen: &Seen,
        scratch: &mut [Vec<KmerHit>; 2],
    ) -> Option<Labelled> {
        if !label::search(pair, self.k, &self.map, scratch) {
            return None;
        }
        let mut useful = false;
        for hit in scratch.iter().flatten() {
            let seen = &seen.0[hit.rank as usize];
            // A repeat is only read: its counter would wander between the caches of all threads.
            useful |=
                seen.load(Ordering::Relaxed) <= self.most && seen.fetch_add(1, Ordering::Relaxed) < self.most;
        }
        useful.then(|| Labelled::keep(pair, sample, scratch))
    }

    /// Lays the recruited pairs on their contigs: for each contig its reads, in the order of `pairs`. k-mers `seen`
    /// too often lay nothing.
    pub fn lay(&self, pairs: &[Labelled], seen: &[u32], contigs: usize) -> Vec<Vec<Recruit>> {
        let mut laid: Vec<Vec<Recruit>> = vec![Vec::new(); contigs];
        let mut offsets: Vec<(u32, bool, i32)> = Vec::new();
        for (p, pair) in pairs.iter().enumerate() {
            for mate in [0u8, 1] {
                let len = pair.mates[mate as usize].seq.len() as i32;
                offsets.clear();
                for hit in pair.hits[mate as usize].iter().filter(|h| seen[h.rank as usize] <= self.most) {
                    for site in self.sites_of(hit.rank) {
                        let forward = hit.forward == site.forward;
                        let at = if forward { hit.at as i32 } else { len - self.k as i32 - hit.at as i32 };
                        offsets.push((site.contig, forward, site.at as i32 - at));
                    }
                }
                offsets.sort_unstable();
                for same in offsets.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
                    let mut votes: Vec<(usize, i32)> =
                        same.chunk_by(|a, b| a.2 == b.2).map(|v| (v.len(), v[0].2)).collect();
                    votes.sort_unstable_by_key(|&(n, at)| (std::cmp::Reverse(n), at));
                    let at = std::array::from_fn(|i| votes.get(i).unwrap_or(&votes[0]).1);
                    let (contig, forward, _) = same[0];
                    laid[contig as usize].push(Recruit { pair: p as u32, mate, forward, at });
                }
            }
        }
        laid
    }

    fn sites_of(&self, rank: u32) -> &[Site] {
        let from = self.sites.partition_point(|s| s.rank < rank);
        let to = self.sites.partition_point(|s| s.rank <= rank);
        &self.sites[from..to]
    }
}

/// Marks the bases within `reach` of a novel one.
fn near_novel(novel: &[bool], reach: usize) -> Vec<bool> {
    let mut near = vec![false; novel.len()];
    for (i, _) in novel.iter().enumerate().filter(|(_, n)| **n) {
        let range = i.saturating_sub(reach)..(i + reach + 1).min(novel.len());
        near[range].fill(true);
    }
    near
}
