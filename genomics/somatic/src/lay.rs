//! Recruited pairs on their contig: where each mate may begin there.

use genuma_kmers::encode::kmers;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::compare::Compared;
use crate::kmer_map::KmerMap;
use crate::packed::Read;
use crate::recruit::Kept;

/// Bases of the k-mers by which reads are laid: long enough to be rare on a contig, short enough to fit between changes.
const K: u32 = 19;
/// One k-mer of a read in so many is looked up.
const STRIDE: usize = 3;
/// Fewest k-mers that put a read somewhere.
const FEWEST: usize = 2;
/// Bases of the normal's sequence beyond a junction on which reads are laid too.
const BEYOND: usize = 250;
/// Offsets kept of a read on a contig.
pub(crate) const OFFSETS: usize = 4;

/// A read laid on a contig by its k-mers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    pub fn oriented(&self, pairs: &[Kept]) -> Read {
        let read = &pairs[self.pair as usize].mates[self.mate as usize];
        if self.forward { read.clone() } else { read.reversed() }
    }

    /// Whether read 1 of the pair runs with the contig, or read 2 against it (F1R2).
    pub fn first_forward(&self) -> bool {
        (self.mate == 0) == self.forward
    }
}

/// The k-mers of a contig and of what the normal has at its changes, in contig coordinates.
struct Places {
    map: KmerMap,
    /// Rank, position, whether the canonical strand runs with the contig; sorted.
    sites: Vec<(u32, i32, bool)>,
    starts: Vec<u32>,
}

impl Places {
    fn new(contig: &Compared) -> Places {
        let mut all: Vec<(u64, i32, bool)> = Vec::new();
        let mut take = |seq: &[u8], shift: i32| {
            for (at, kmer) in kmers(seq, K).filter(|(_, kmer)| kmer.forward != kmer.reverse) {
                let canonical = kmer.canonical();
                all.push((canonical, at as i32 + shift, canonical == kmer.forward));
            }
        };
        take(&contig.seq, 0);
        let before_k = K as usize - 1;
        for f in &contig.findings {
            // Of an allele only what crosses it, of a junction also what lies beyond.
            let beyond = if matches!(f.change, Change::Allele { .. }) { before_k } else { BEYOND };
            let after = usize::try_from(f.at.end as i32 + f.right_shift).unwrap_or(0);
            let left = f.at.start.saturating_sub(before_k)..(f.at.start + beyond).min(f.left_normal.len());
            let right = after.saturating_sub(beyond)..(after + before_k).min(f.right_normal.len());
            for (normal, range, shift) in
                [(&f.left_normal, left, 0), (&f.right_normal, right, -f.right_shift)]
            {
                if let Some(seq) = normal.get(range.clone()) {
                    take(seq, range.start as i32 + shift);
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        let (mut kmers, mut sites, mut starts) = (Vec::new(), Vec::with_capacity(all.len()), Vec::new());
        for (kmer, at, forward) in all {
            if kmers.last() != Some(&kmer) {
                kmers.push(kmer);
                starts.push(sites.len() as u32);
            }
            sites.push((kmers.len() as u32 - 1, at, forward));
        }
        starts.push(sites.len() as u32);
        Places { map: KmerMap::new(kmers.into_iter()), sites, starts }
    }

    /// Offsets of a read for each orientation, by votes.
    fn offsets(&self, read: &Read, votes: &mut Vec<(bool, i32)>) {
        let last = (read.seq.len() + 1).saturating_sub(K as usize);
        votes.clear();
        for (at, kmer) in kmers(&read.seq, K).filter(|(at, _)| at % STRIDE == 0) {
            let Some(rank) = self.map.get(kmer.canonical()) else { continue };
            let canonical = kmer.canonical() == kmer.forward;
            let range = self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize;
            for &(_, site, along) in &self.sites[range] {
                let forward = canonical == along;
                let at = if forward { at } else { last - 1 - at };
                votes.push((forward, site - at as i32));
            }
        }
        votes.sort_unstable();
    }
}

/// Lays the pairs `members` on a contig: its reads, by pair and mate.
pub fn lay(contig: &Compared, members: &[u32], pairs: &[Kept]) -> Vec<Recruit> {
    let places = Places::new(contig);
    let mut laid = Vec::with_capacity(2 * members.len());
    let (mut votes, mut counted) = (Vec::new(), Vec::new());
    for &pair in members {
        for (mate, read) in (0u8..).zip(&pairs[pair as usize].mates) {
            places.offsets(read, &mut votes);
            for same in votes.chunk_by(|a, b| a.0 == b.0) {
                if same.len() < FEWEST {
                    continue;
                }
                counted.clear();
                counted.extend(same.chunk_by(|a, b| a == b).map(|v| (std::cmp::Reverse(v.len()), v[0].1)));
                counted.sort_unstable();
                let at = std::array::from_fn(|i| counted.get(i).unwrap_or(&counted[0]).1);
                laid.push(Recruit { pair, mate, forward: same[0].0, at });
            }
        }
    }
    laid
}
