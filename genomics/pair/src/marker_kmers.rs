//! Marker k-mers: sampled k-mers of each contig of the reference and of each screened sequence, whose counts show how
//! many copies of the sequence a sample has.
//!
//! Only k-mers whose root has a small hash can be markers, so that most roots of the reads are rejected by one
//! multiplication. Up to 4096 markers are kept per sequence: those with the smallest hashes, which are spread randomly
//! over the sequence. A k-mer is not a marker if it occurs twice in a sequence or in two contigs. A k-mer of the
//! reference is no marker of a screened sequence, and a k-mer of several screened sequences is a marker of the first
//! only. Markers in repeats that the reference lacks are outliers, which the estimates leave out.

pub mod contig_copies_and_screen;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use genuma_kmers::RootCounters;
use genuma_kmers::encode::kmer_mask;
use genuma_reads::fasta::{FastaEvent, read_fasta_events};
use genuma_reads::{Error, dna};
use serde::{Deserialize, Serialize};

/// Negative binary logarithm of the share of roots that may belong to a marker (4: one root in 16).
const SAMPLED_HASH_BITS: u32 = 4;
/// Maximum number of markers of one sequence. Chosen: enough for a precise depth, at bounded memory.
const MAX_MARKERS_PER_SEQUENCE: usize = 4096;
/// Maximum number of contigs with markers: the longest contigs. Organelles are kept in addition.
const MAX_CONTIGS: usize = 512;
/// Maximum number of markers of all screened sequences together.
const MAX_SCREEN_MARKERS: usize = 1 << 21;
const FILTER_BITS_PER_MARKER: usize = 16;

/// Type of a sequence that has marker k-mers: a contig, an organelle, or a screened sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkerSequenceKind {
    /// A contig of the reference that is not an organelle, such as a chromosome.
    Contig,
    /// The genome of a mitochondrion or plastid, of which a cell has many copies.
    Organelle,
    /// A sequence that the samples are screened for, such as a virus.
    Screened,
}

/// Contig names of mitochondria and plastids, in lower case.
const ORGANELLE_NAMES: [&str; 9] = ["chrm", "mt", "m", "chrmt", "mito", "pt", "chrpt", "chrc", "mitochondrion"];

fn kind_from_name(name: &str) -> MarkerSequenceKind {
    let name = name.to_ascii_lowercase();
    if ORGANELLE_NAMES.contains(&&name[..]) { MarkerSequenceKind::Organelle } else { MarkerSequenceKind::Contig }
}

/// Hash of a root. Only roots whose highest [`SAMPLED_HASH_BITS`] hash bits are 0 can belong to a marker.
#[inline(always)]
fn hash_root(root: u64) -> u64 {
    root.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Mixes the bits of a root hash for the bit filter, because the highest bits of the hash of a marker are all 0.
#[inline(always)]
fn rehash(hash: u64) -> u64 {
    (hash ^ (hash >> 31)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[inline(always)]
fn is_sampled(hash: u64) -> bool {
    hash >> (64 - SAMPLED_HASH_BITS) == 0
}

/// Returns the k-mer key of a k-mer on this strand: its root (the middle k−2 bases), then the base before and the base
/// after the root. Reads are counted under the smaller of the keys of a k-mer and of its reverse complement.
#[inline]
pub fn root_first_kmer_key_on_strand(kmer: u64, k: u32) -> u64 {
    ((kmer >> 2) & kmer_mask(k - 2)) << 4 | (kmer >> (2 * k - 2)) << 2 | (kmer & 3)
}

/// A sequence with its candidate markers: k-mers that become markers unless they are shared or repeated.
#[derive(Debug)]
struct CandidateSequence {
    name: String,
    kind: MarkerSequenceKind,
    /// Number of bases, N included. `kmers` is the number of k-mers without N.
    bases: u64,
    kmers: u64,
    /// Number of times that the bound on the root hash was halved to limit the number of markers.
    halvings: u32,
    /// K-mer keys (root, first base, last base) of the candidate markers, and whether each occurred more than once.
    keys: Vec<(u64, bool)>,
}

impl CandidateSequence {
    fn new(name: &[u8], kind: MarkerSequenceKind) -> CandidateSequence {
        let name = String::from_utf8_lossy(name).into_owned();
        CandidateSequence { name, kind, bases: 0, kmers: 0, halvings: 0, keys: Vec::new() }
    }

    #[inline]
    fn push_key(&mut self, key: u64, hash: u64) {
        if hash <= (u64::MAX >> SAMPLED_HASH_BITS) >> self.halvings {
            self.keys.push((key, false));
            if self.keys.len() >= 2 * MAX_MARKERS_PER_SEQUENCE {
                self.deduplicate();
            }
        }
    }

    /// Sorts the candidate keys, merges keys that occurred more than once, and halves the bound while there are too
    /// many keys.
    fn deduplicate(&mut self) {
        self.keys.sort_unstable();
        self.keys.dedup_by(|next, kept| {
            let twice = next.0 == kept.0;
            kept.1 |= twice;
            twice
        });
        while self.keys.len() > MAX_MARKERS_PER_SEQUENCE {
            self.halve(self.halvings + 1);
        }
    }

    fn halve(&mut self, halved: u32) {
        self.halvings = halved;
        let bound = (u64::MAX >> SAMPLED_HASH_BITS) >> halved;
        self.keys.retain(|(key, _)| hash_root(key >> 4) <= bound);
    }
}

/// Selects candidate markers while the bases of sequences are read.
struct MarkerSelector {
    k: u32,
    sequences: Vec<CandidateSequence>,
    /// The k-mer that ends at the current base. `reverse` is its reverse complement, and `run_bases` the number of
    /// bases since the last N.
    forward: u64,
    reverse: u64,
    run_bases: u32,
}

impl MarkerSelector {
    fn new(k: u32) -> MarkerSelector {
        MarkerSelector { k, sequences: Vec::new(), forward: 0, reverse: 0, run_bases: 0 }
    }

    fn begin_sequence(&mut self, name: &[u8], kind: MarkerSequenceKind) {
        self.run_bases = 0;
        self.sequences.push(CandidateSequence::new(name, kind));
    }

    /// Adds bases to the last sequence. Calls `drawn` with the key and the root hash of each sampled k-mer.
    fn add_bases(&mut self, bases: &[u8], mut drawn: impl FnMut(u64, u64)) {
        let k = self.k;
        let (all, inner, top) = (kmer_mask(k), kmer_mask(k - 2), 2 * (k - 1));
        let Some(sequence) = self.sequences.last_mut() else { return };
        sequence.bases += bases.len() as u64;
        for &base in bases {
            let code = u64::from(dna::encode_base(base));
            if code > 3 {
                self.run_bases = 0;
                continue;
            }
            self.forward = ((self.forward << 2) | code) & all;
            self.reverse = (self.reverse >> 2) | ((3 - code) << top);
            self.run_bases += 1;
            if self.run_bases < k {
                continue;
            }
            sequence.kmers += 1;
            let root = ((self.forward >> 2) & inner).min((self.reverse >> 2) & inner);
            let hash = hash_root(root);
            if is_sampled(hash) {
                let key =
                    root_first_kmer_key_on_strand(self.forward, k).min(root_first_kmer_key_on_strand(self.reverse, k));
                sequence.push_key(key, hash);
                drawn(key, hash);
            }
        }
    }
}

/// Reads the sequences to screen for from a FASTA file, and selects their candidate markers.
fn read_screened(path: &Path, k: u32) -> Result<Vec<CandidateSequence>, Error> {
    let mut selector = MarkerSelector::new(k);
    // Number of markers so far, and the largest number of halvings that the total required.
    let (mut marks, mut halved) = (0, 0);
    read_fasta_events(path, |part| match part {
        FastaEvent::Header { name, .. } => {
            if let Some(last) = selector.sequences.last_mut() {
                last.deduplicate();
                marks += last.keys.len();
            }
            while marks > MAX_SCREEN_MARKERS {
                halved += 1;
                let over = selector.sequences.iter_mut().filter(|sequence| sequence.halvings < halved);
                over.for_each(|sequence| sequence.halve(halved));
                marks = selector.sequences.iter().map(|sequence| sequence.keys.len()).sum();
            }
            selector.begin_sequence(name, MarkerSequenceKind::Screened);
            if let Some(next) = selector.sequences.last_mut() {
                next.halvings = halved;
            }
        }
        FastaEvent::Bases(bases) => selector.add_bases(bases, |_, _| {}),
    })?;
    selector.sequences.iter_mut().for_each(CandidateSequence::deduplicate);
    Ok(selector.sequences)
}

/// Reads the contigs of the reference from a FASTA file and selects the candidate markers of the longest
/// ([`MAX_CONTIGS`]) and of all organelles. Also records which markers of the screened sequences the reference
/// contains.
fn read_contigs(path: &Path, k: u32, screened: &mut ScreenMarkers) -> Result<Vec<CandidateSequence>, Error> {
    let mut selector = MarkerSelector::new(k);
    read_fasta_events(path, |part| match part {
        FastaEvent::Header { name, .. } => {
            selector.sequences.last_mut().into_iter().for_each(CandidateSequence::deduplicate);
            if selector.sequences.len() >= 2 * MAX_CONTIGS {
                keep_longest(&mut selector.sequences);
            }
            selector.begin_sequence(name, kind_from_name(&String::from_utf8_lossy(name)));
        }
        FastaEvent::Bases(bases) if screened.is_empty() => selector.add_bases(bases, |_, _| {}),
        FastaEvent::Bases(bases) => selector.add_bases(bases, |key, hash| screened.mark_if_known(key, hash)),
    })?;
    selector.sequences.iter_mut().for_each(CandidateSequence::deduplicate);
    keep_longest(&mut selector.sequences);
    Ok(selector.sequences)
}

/// Keeps the longest contigs (of equal length, the first in file order) and all organelles.
fn keep_longest(sequences: &mut Vec<CandidateSequence>) {
    let mut lengths: Vec<(u64, usize)> =
        sequences.iter().enumerate().map(|(i, sequence)| (u64::MAX - sequence.bases, i)).collect();
    lengths.sort_unstable();
    let mut long = vec![false; sequences.len()];
    lengths.iter().take(MAX_CONTIGS).for_each(|&(_, i)| long[i] = true);
    let mut long = long.into_iter();
    sequences.retain(|sequence| long.next().unwrap_or(false) || sequence.kind == MarkerSequenceKind::Organelle);
}

/// Candidate markers of the screened sequences, and whether the reference contains them.
#[derive(Default)]
struct ScreenMarkers {
    /// K-mer keys of the markers, sorted, each with the index of its sequence.
    keys: Vec<(u64, u32)>,
    filter: RootFilter,
    in_reference: Vec<bool>,
}

impl ScreenMarkers {
    fn from_sequences(sequences: &[CandidateSequence]) -> ScreenMarkers {
        let mut keys: Vec<(u64, u32)> = (0..)
            .zip(sequences)
            .flat_map(|(i, sequence)| sequence.keys.iter().filter(|(_, twice)| !twice).map(move |(key, _)| (*key, i)))
            .collect();
        // A key of several sequences belongs to the first one.
        keys.sort_unstable();
        keys.dedup_by_key(|(key, _)| *key);
        let (filter, known) = (RootFilter::from_keys(keys.iter().map(|(key, _)| *key)), vec![false; keys.len()]);
        ScreenMarkers { keys, filter, in_reference: known }
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    #[inline]
    fn mark_if_known(&mut self, key: u64, hash: u64) {
        if self.filter.may_contain(hash)
            && let Ok(at) = self.keys.binary_search_by_key(&key, |(key, _)| *key)
        {
            self.in_reference[at] = true;
        }
    }
}

/// Bit filter (Bloom filter) of the roots that belong to a marker.
#[derive(Debug, Default)]
struct RootFilter {
    bits: Vec<u64>,
    shift: u32,
}

impl RootFilter {
    fn from_keys(keys: impl ExactSizeIterator<Item = u64>) -> RootFilter {
        let bits = (keys.len() * FILTER_BITS_PER_MARKER).next_power_of_two().max(64);
        let mut filter = RootFilter { bits: vec![0; bits / 64], shift: 64 - bits.ilog2() };
        keys.for_each(|key| {
            let bit = rehash(hash_root(key >> 4)) >> filter.shift;
            filter.bits[bit as usize / 64] |= 1 << (bit % 64);
        });
        filter
    }

    #[inline(always)]
    fn may_contain(&self, hash: u64) -> bool {
        let bit = rehash(hash) >> self.shift;
        self.bits[bit as usize / 64] >> (bit % 64) & 1 > 0
    }
}

/// The marker k-mers of all sequences, with their counts in the normal and the tumour.
#[derive(Debug)]
pub struct MarkerKmers {
    /// K-mer keys of the markers, sorted.
    keys: Vec<u64>,
    owners: Vec<u32>,
    counts: Vec<[AtomicU32; 2]>,
    /// Largest root hash of any marker.
    max_hash: u64,
    filter: RootFilter,
    /// The sequences that have markers; their counts are empty.
    sequences: Vec<SequenceMarkerCounts>,
}

/// A sequence and the counts of its marker k-mers in the normal and the tumour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceMarkerCounts {
    /// Name of the sequence: the first word of its FASTA header.
    pub name: String,
    /// Whether it is a contig, an organelle or a screened sequence.
    pub kind: MarkerSequenceKind,
    /// Length of the sequence in bases, N included.
    pub bases: u64,
    /// Number of k-mers of the sequence without N, repeated ones included.
    pub kmers: u64,
    /// Number of marker k-mers of the sequence.
    pub markers: u64,
    /// Number of candidate markers that are not used because the reference or an earlier screened sequence has them
    /// too.
    pub(crate) shared_markers: u64,
    /// Name of the earlier screened sequence that shares most candidate markers with this one; `None` if no earlier
    /// sequence shares any.
    pub most_similar: Option<String>,
    /// For the normal and the tumour: pairs (count, number of markers with this count), without markers of count 0.
    pub count_histograms: [Vec<(u32, u32)>; 2],
}

/// Counts of the marker k-mers of all sequences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkerTally {
    /// Contigs of the reference, then the screened sequences, each in file order.
    pub sequences: Vec<SequenceMarkerCounts>,
}

impl MarkerTally {
    /// Adds the counts of another partition of the k-mers. Returns false, without adding anything, if the markers
    /// differ.
    #[must_use]
    pub fn merge_partition_counts(&mut self, other: &MarkerTally) -> bool {
        let same = |(a, b): (&SequenceMarkerCounts, &SequenceMarkerCounts)| {
            (&a.name, a.markers, a.kmers) == (&b.name, b.markers, b.kmers)
        };
        if self.sequences.len() != other.sequences.len() || !self.sequences.iter().zip(&other.sequences).all(same) {
            return false;
        }
        let both = self.sequences.iter_mut().zip(&other.sequences);
        for (sum, part) in both.flat_map(|(sum, part)| sum.count_histograms.iter_mut().zip(&part.count_histograms)) {
            sum.extend(part);
            sum.sort_unstable();
            sum.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 += if same { next.1 } else { 0 };
                same
            });
        }
        true
    }
}

impl MarkerKmers {
    /// Selects the marker k-mers of the contigs of a reference and of sequences to screen for. Returns `None` if
    /// neither file is given or both are empty.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn select_markers(
        k: u32,
        reference: Option<&Path>,
        screen: Option<&Path>,
    ) -> Result<Option<MarkerKmers>, Error> {
        let others = screen.map_or(Ok(Vec::new()), |path| read_screened(path, k))?;
        let mut screened = ScreenMarkers::from_sequences(&others);
        let contigs = reference.map_or(Ok(Vec::new()), |path| read_contigs(path, k, &mut screened))?;
        Ok((!contigs.is_empty() || !others.is_empty()).then(|| MarkerKmers::new(contigs, others, screened)))
    }

    fn new(contigs: Vec<CandidateSequence>, others: Vec<CandidateSequence>, screened: ScreenMarkers) -> MarkerKmers {
        let mut all: Vec<(u64, u32)> = (0..)
            .zip(&contigs)
            .flat_map(|(i, sequence)| sequence.keys.iter().filter(|(_, twice)| !twice).map(move |(key, _)| (*key, i)))
            .collect();
        all.sort_unstable();
        // A k-mer of two contigs is a marker of neither.
        let mut keys: Vec<(u64, u32)> =
            all.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() == 1).map(|run| run[0]).collect();
        let first = contigs.len() as u32;
        let mut not_own = count_shared_markers(&others, &screened);
        let free = screened.keys.iter().zip(&screened.in_reference).filter(|(_, known)| !**known);
        keys.extend(free.map(|(&(key, i), _)| (key, first + i)));
        keys.sort_unstable();
        let mut marks = vec![0; contigs.len() + others.len()];
        keys.iter().for_each(|&(_, i)| marks[i as usize] += 1);
        let sequences = contigs.into_iter().chain(others).enumerate().map(|(i, sequence)| {
            let CandidateSequence { name, kind, bases, kmers, .. } = sequence;
            let (not_own, like) = i.checked_sub(first as usize).map_or((0, None), |i| std::mem::take(&mut not_own[i]));
            SequenceMarkerCounts {
                name,
                kind,
                bases,
                kmers,
                markers: marks[i],
                shared_markers: not_own,
                most_similar: like,
                count_histograms: Default::default(),
            }
        });
        let sequences = sequences.collect();
        let filter = RootFilter::from_keys(keys.iter().map(|(key, _)| *key).collect::<Vec<_>>().into_iter());
        let counts = keys.iter().map(|_| Default::default()).collect();
        let bound = keys.iter().map(|(key, _)| hash_root(key >> 4)).max().unwrap_or(0);
        let (keys, owners) = keys.into_iter().unzip();
        MarkerKmers { keys, owners, counts, max_hash: bound, filter, sequences }
    }

    /// Records the counts of the normal and the tumour (the first two samples) at a root, if the root belongs to a
    /// marker. Each root must be passed once.
    #[inline]
    pub fn record_root_counts<const S: usize>(&self, root: &RootCounters<S>) {
        let hash = hash_root(root.root);
        if hash <= self.max_hash && self.filter.may_contain(hash) {
            self.record_markers(root);
        }
    }

    #[inline(never)]
    fn record_markers<const S: usize>(&self, root: &RootCounters<S>) {
        let from = self.keys.partition_point(|key| key >> 4 < root.root);
        let own = self.keys[from..].iter().take_while(|key| **key >> 4 == root.root);
        for (key, counts) in own.zip(&self.counts[from..]) {
            let seen = root.counts[(key & 15) as usize];
            counts.iter().zip(seen).for_each(|(count, n)| count.store(n, Relaxed));
        }
    }

    /// Returns the counts recorded since the last call, and resets them to 0.
    pub fn take_recorded_counts(&self) -> MarkerTally {
        let mut seen: Vec<[HashMap<u32, u32>; 2]> = vec![Default::default(); self.sequences.len()];
        for (counts, &owner) in self.counts.iter().zip(&self.owners) {
            for (count, seen) in counts.iter().zip(&mut seen[owner as usize]) {
                let n = count.swap(0, Relaxed);
                if n > 0 {
                    *seen.entry(n).or_default() += 1;
                }
            }
        }
        let sequences = self.sequences.iter().zip(seen).map(|(sequence, seen)| {
            let seen = seen.map(|seen| {
                let mut seen: Vec<(u32, u32)> = seen.into_iter().collect();
                seen.sort_unstable();
                seen
            });
            SequenceMarkerCounts { count_histograms: seen, ..sequence.clone() }
        });
        MarkerTally { sequences: sequences.collect() }
    }
}

/// For each screened sequence: the number of its candidate markers that the reference or an earlier sequence has too,
/// and the name of the earlier sequence that shares most of them.
fn count_shared_markers(others: &[CandidateSequence], screened: &ScreenMarkers) -> Vec<(u64, Option<String>)> {
    let of = |(i, sequence): (usize, &CandidateSequence)| {
        let (mut known, mut before) = (0, HashMap::<u32, u64>::new());
        for (key, _) in sequence.keys.iter().filter(|(_, twice)| !twice) {
            let Ok(at) = screened.keys.binary_search_by_key(key, |(key, _)| *key) else { continue };
            match screened.keys[at].1 {
                _ if screened.in_reference[at] => known += 1,
                owner if owner as usize != i => *before.entry(owner).or_default() += 1,
                _ => {}
            }
        }
        let most = before.iter().max_by_key(|&(owner, n)| (*n, u32::MAX - owner));
        let like = most.map(|(&owner, _)| others[owner as usize].name.clone());
        (known + before.values().sum::<u64>(), like)
    };
    others.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests;
