//! Finds the positions at which the reads of recruited pairs may begin on a contig, by votes of k-mers that read and
//! contig share.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use genuma_kmers::encode::kmers;
use serde::{Deserialize, Serialize};

use crate::aligned_contig::AlignedContig;
use crate::change::Change;
use crate::kmer_map::KmerMap;
use crate::packed::OwnedRead;
use crate::recruit::RecruitedPair;

/// Length of the k-mers by which reads are placed: long enough to be rare on a contig, short enough to fit between
/// changes.
const PLACEMENT_K: u32 = 19;
/// Distance in bases between the k-mers of a read that are looked up.
const KMER_STRIDE: usize = 3;
/// Minimum number of shared k-mers (votes) for a read to be placed on a contig.
const MIN_KMER_VOTES: usize = 2;
/// Number of bases of the normal sequence beyond a junction on which reads are also placed.
const BASES_BEYOND_JUNCTION: usize = 250;
/// Maximum number of candidate offsets that are kept for a read on a contig.
pub(crate) const MAX_CANDIDATE_OFFSETS_PER_READ: usize = 4;

/// A read of a recruited pair with its candidate offsets on a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedRead {
    /// Index of the read's pair among the recruited pairs of the locus range.
    pub pair: u32,
    /// Which mate of the pair: 0 for read 1, 1 for read 2.
    pub mate: u8,
    /// Whether the read has the contig's orientation.
    pub forward: bool,
    /// Candidate contig positions of the oriented read's first base, sorted by descending number of votes. There are
    /// several at an insertion or deletion, or where the contig contains a sequence twice. Unused entries repeat the
    /// first.
    pub offsets: [i32; MAX_CANDIDATE_OFFSETS_PER_READ],
}

/// Candidate offsets of a read ([`PlacedRead::offsets`]) without repeated ones, in the same order.
pub(crate) fn distinct_offsets(offsets: &[i32]) -> impl Iterator<Item = i32> {
    offsets.iter().enumerate().filter(|(i, offset)| !offsets[..*i].contains(offset)).map(|(_, &offset)| offset)
}

impl PlacedRead {
    /// The read in the orientation of the contig, reverse-complemented if necessary.
    pub fn oriented_read<'a>(&self, pairs: &'a [RecruitedPair]) -> Cow<'a, OwnedRead> {
        let read = &pairs[self.pair as usize].mates[self.mate as usize];
        if self.forward { Cow::Borrowed(read) } else { Cow::Owned(read.reverse_complement()) }
    }

    /// Whether the read reaches a range of the contig, or the bases next to it, at any of its candidate offsets.
    pub fn reaches_contig_range(&self, contig_range: &Range<usize>, pairs: &[RecruitedPair]) -> bool {
        let read_len = pairs[self.pair as usize].mates[self.mate as usize].seq.len();
        self.offsets.iter().any(|&offset| read_reaches_range(offset.into(), read_len, contig_range))
    }

    /// Whether read 1 of the pair has the contig's orientation and read 2 the opposite one (F1R2).
    pub fn is_f1r2(&self) -> bool {
        (self.mate == 0) == self.forward
    }
}

/// Whether a read of `read_len` bases that starts at `start` reaches a range of the same sequence, or the bases next to
/// it.
pub(crate) fn read_reaches_range(start: i64, read_len: usize, range: &Range<usize>) -> bool {
    start <= range.end as i64 && start + read_len as i64 >= range.start as i64
}

/// The k-mers of a contig and of the normal sequences at its changes, with their positions in contig coordinates.
struct ContigKmers {
    map: KmerMap,
    /// For each k-mer occurrence: rank of the k-mer, contig position, whether the canonical strand is the contig's
    /// strand; sorted.
    sites: Vec<(u32, i32, bool)>,
    starts: Vec<u32>,
}

impl ContigKmers {
    fn new(contig: &AlignedContig) -> ContigKmers {
        let mut all: Vec<(u64, i32, bool)> = Vec::new();
        let mut take = |seq: &[u8], shift: i32| {
            for (at, kmer) in kmers(seq, PLACEMENT_K).filter(|(_, kmer)| kmer.forward != kmer.reverse) {
                let canonical = kmer.canonical();
                all.push((canonical, at as i32 + shift, canonical == kmer.forward));
            }
        };
        take(&contig.seq, 0);
        let before_k = PLACEMENT_K as usize - 1;
        for f in &contig.changes {
            // Of an allele only the k-mers across it, of a junction also the k-mers beyond it.
            let beyond = if matches!(f.change, Change::Allele { .. }) { before_k } else { BASES_BEYOND_JUNCTION };
            let after = usize::try_from(f.contig_range.end as i32 + f.right_shift).unwrap_or(0);
            let left =
                f.contig_range.start.saturating_sub(before_k)..(f.contig_range.start + beyond).min(f.left_normal.len());
            let right = after.saturating_sub(beyond)..(after + before_k).min(f.right_normal.len());
            for (normal, range, shift) in [(&f.left_normal, left, 0), (&f.right_normal, right, -f.right_shift)] {
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
        ContigKmers { map: KmerMap::from_kmers(kmers), sites, starts }
    }

    /// Overwrites `votes` with one vote (orientation, offset of the read on the contig) for each k-mer that the read
    /// and the contig share, sorted.
    fn collect_votes(&self, read: &OwnedRead, votes: &mut Vec<(bool, i32)>) {
        let last = (read.seq.len() + 1).saturating_sub(PLACEMENT_K as usize);
        votes.clear();
        for (at, kmer) in kmers(&read.seq, PLACEMENT_K).filter(|(at, _)| at % KMER_STRIDE == 0) {
            let Some(rank) = self.map.rank_of_kmer(kmer.canonical()) else { continue };
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

/// Places the reads of the pairs `members` on a contig. A read may be placed in both orientations. The result is sorted
/// by pair and mate.
pub fn place_reads(contig: &AlignedContig, members: &[u32], pairs: &[RecruitedPair]) -> Vec<PlacedRead> {
    let contig_kmers = ContigKmers::new(contig);
    let mut placed_reads = Vec::with_capacity(2 * members.len());
    let (mut votes, mut counted) = (Vec::new(), Vec::new());
    // In deep libraries most reads have the sequence of another read, and with it the same places.
    let mut ranges_by_seq: HashMap<&[u8], Range<usize>> = HashMap::new();
    for &pair in members {
        for (mate, read) in (0u8..).zip(&pairs[pair as usize].mates) {
            let vacant = match ranges_by_seq.entry(&read.seq) {
                Entry::Occupied(same) => {
                    for i in same.get().clone() {
                        placed_reads.push(PlacedRead { pair, mate, ..placed_reads[i] });
                    }
                    continue;
                }
                Entry::Vacant(vacant) => vacant,
            };
            let start = placed_reads.len();
            contig_kmers.collect_votes(read, &mut votes);
            for same in votes.chunk_by(|a, b| a.0 == b.0) {
                if same.len() < MIN_KMER_VOTES {
                    continue;
                }
                counted.clear();
                counted.extend(same.chunk_by(|a, b| a == b).map(|v| (std::cmp::Reverse(v.len()), v[0].1)));
                counted.sort_unstable();
                let at = std::array::from_fn(|i| counted.get(i).unwrap_or(&counted[0]).1);
                placed_reads.push(PlacedRead { pair, mate, forward: same[0].0, offsets: at });
            }
            vacant.insert(start..placed_reads.len());
        }
    }
    placed_reads
}
