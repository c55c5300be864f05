//! Depth of target intervals (exomes, panels) from marker k-mers, without alignment.
//!
//! A sample of the k-mers of each target (target markers) is counted when the k-mer counter passes each root, as for
//! the marker k-mers of contigs ([`genuma_pair::marker_kmers`]). A k-mer belongs to the target that contains its middle
//! base, so targets shorter than k have markers too. A k-mer is a marker only if the reference has it once and no other
//! marker has its root. The cost is linear in the bases of targets and reference and in the number of roots.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use genuma_kmers::RootCounters;
use genuma_kmers::encode::{kmer_mask, kmers};
use genuma_pair::marker_kmers::root_first_kmer_key_on_strand;
use genuma_reads::fasta::{FastaEvent, Reference, read_fasta_events};
use genuma_reads::targets::{Target, Targets};
use genuma_reads::{Error, TUMOUR_SAMPLE};
use genuma_work::ProgressCounters;
use serde::{Deserialize, Serialize};

use crate::kmer_lookup::KmerLookup;
use crate::kmer_map::KmerMap;
use crate::reference_kmers::count_reference_copies_up_to_two;

/// The option `--targets`: the file with target intervals, and their padding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetsOption {
    /// Path of the file with target intervals: BED or interval list.
    pub path: PathBuf,
    /// Number of bases by which targets are extended on both sides to decide which calls are written.
    pub padding_bp: usize,
}

impl TargetsOption {
    /// Reads the targets and checks them against a reference.
    ///
    /// # Errors
    /// The file cannot be read, is invalid, or does not fit the reference.
    pub fn read_targets(&self, genome: &Reference) -> Result<Targets, Error> {
        let contigs: Vec<_> = genome.contigs.iter().map(|contig| (contig.name.clone(), contig.seq.len())).collect();
        Targets::read_targets_file(&self.path, &contigs)
    }

    /// Reads the targets and checks them against a reference file, which is read but not kept in memory.
    ///
    /// # Errors
    /// A file cannot be read, or the targets are invalid or do not fit the reference.
    pub fn read_targets_for_reference_file(&self, reference: &Path) -> Result<Targets, Error> {
        let mut contigs: Vec<(String, usize)> = Vec::new();
        read_fasta_events(reference, |part| match part {
            FastaEvent::Header { name, .. } => contigs.push((String::from_utf8_lossy(name).into_owned(), 0)),
            FastaEvent::Bases(bases) => contigs.last_mut().into_iter().for_each(|contig| contig.1 += bases.len()),
        })?;
        Targets::read_targets_file(&self.path, &contigs)
    }
}

/// Maximum number of marker k-mers of all targets together; if the targets have more k-mers, these are sampled by their
/// hash. Chosen: a panel of 2 Mbp uses all its k-mers, an exome one in ten, and they take about 140 MB of memory for
/// two samples.
const MAX_SAMPLED_MARKERS: u64 = 1 << 22;
/// Number of k-mers that are tested as markers in each target even if k-mers are sampled, if it has as many. Chosen:
/// the median of fewer counts is imprecise.
const MIN_MARKERS_PER_TARGET: usize = 16;

/// Minimum depth at which a base counts as well covered: that of usual reports on exomes (Picard CollectHsMetrics
/// PCT_TARGET_BASES_20X).
pub const MIN_WELL_COVERED_DEPTH: f64 = 20.0;
/// Minimum depth of a k-mer in both samples at which its base is callable: the same as in calls without targets.
pub(crate) const MIN_CALLABLE_KMER_DEPTH: u16 = 8;
/// Depth below which a target has nearly no coverage in a sample. Chosen: no call is possible with fewer than two
/// molecules.
pub const MIN_COVERED_DEPTH: f64 = 2.0;

/// Maximum error rate for which the depth is corrected. Chosen: if the rate is higher, the errors are concentrated in
/// some reads.
const MAX_CORRECTED_ERROR_RATE: f64 = 0.01;

/// Bytes of a marker in memory without its counts: a k-mer, up to four slots and four filter bytes of the map, and a
/// counter slot.
const MARKER_BYTES: usize = 8 + 16 + 4 + 1;

fn hash_kmer(kmer: u64) -> u64 {
    let x = kmer.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// A k-mer of a target that becomes a marker if it occurs once in the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CandidateMarker {
    target: u32,
    hash: u64,
    kmer: u64,
    /// k-mer key of the marker: its root, with the first and the last base in the lowest four bits.
    key: u64,
}

/// The marker k-mers of all targets with their counts in all samples.
#[derive(Debug)]
pub struct TargetMarkers {
    /// The root of each marker, by k-mer rank.
    roots: KmerMap,
    /// For each marker, by k-mer rank, which of the 16 counters of its root is that of the marker.
    slots: Vec<u8>,
    /// Counts by sample, then by k-mer rank of the marker.
    counts: Vec<Vec<AtomicU16>>,
    /// Number of markers of each target. The k-mer ranks are in the order of the targets.
    markers_per_target: Vec<u32>,
}

/// Counts of the target markers in one partition of the k-mer space, or in several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetMarkerCounts {
    markers_per_target: Vec<u32>,
    /// Counts by sample and marker.
    counts: Vec<Vec<u16>>,
}

impl TargetMarkerCounts {
    /// Adds the counts of another partition. Returns false, and adds nothing, if the markers differ.
    #[must_use]
    pub(crate) fn merge_partition_counts(&mut self, other: &TargetMarkerCounts) -> bool {
        if self.markers_per_target != other.markers_per_target || self.counts.len() != other.counts.len() {
            return false;
        }
        let pairs = self.counts.iter_mut().zip(&other.counts).flat_map(|(sum, part)| sum.iter_mut().zip(part));
        pairs.for_each(|(sum, part)| *sum = sum.saturating_add(*part));
        true
    }
}

impl TargetMarkers {
    /// Selects the marker k-mers of the targets, with counters for `num_samples` samples.
    ///
    /// # Errors
    /// The reference cannot be read.
    pub(crate) fn select_markers(
        targets: &Targets,
        reference: &Path,
        k: u32,
        num_samples: usize,
        threads: usize,
    ) -> Result<TargetMarkers, Error> {
        let mut candidates = read_candidates(targets, reference, k)?;
        candidates.sort_unstable();
        let mut searched: Vec<u64> = candidates.iter().map(|candidate| candidate.kmer).collect();
        searched.sort_unstable();
        searched.dedup();
        let lookup = KmerLookup::from_kmer_iter(k, searched.iter().copied());
        let meter = Arc::new(ProgressCounters::new("the reference"));
        let copies = count_reference_copies_up_to_two(reference, &lookup, threads, &meter)?;
        candidates
            .retain(|candidate| lookup.rank_of_kmer(candidate.kmer).is_some_and(|rank| copies[rank as usize] == 1));
        drop((lookup, searched, copies));
        // A root identifies one marker.
        let mut roots: Vec<u64> = candidates.iter().map(|candidate| candidate.key >> 4).collect();
        roots.sort_unstable();
        let shared: Vec<u64> = roots.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0]).collect();
        candidates.retain(|candidate| shared.binary_search(&(candidate.key >> 4)).is_err());
        let mut markers_per_target = vec![0; targets.intervals.len()];
        candidates.iter().for_each(|candidate| markers_per_target[candidate.target as usize] += 1);
        let roots: Vec<u64> = candidates.iter().map(|candidate| candidate.key >> 4).collect();
        Ok(TargetMarkers {
            roots: KmerMap::from_kmers(roots),
            slots: candidates.iter().map(|candidate| (candidate.key & 15) as u8).collect(),
            counts: (0..num_samples).map(|_| candidates.iter().map(|_| AtomicU16::new(0)).collect()).collect(),
            markers_per_target,
        })
    }

    /// Approximate memory of the markers and counts in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.slots.len() * (MARKER_BYTES + 2 * self.counts.len())) as u64
    }

    /// Stores the counts of the marker with this root, at most 65,535, if there is one. Each root must be passed once.
    #[inline]
    pub(crate) fn record_marker_counts_of_root<const S: usize>(&self, root: &RootCounters<S>) {
        if let Some(rank) = self.roots.rank_of_kmer(root.root) {
            let seen = root.counts[usize::from(self.slots[rank as usize])];
            for (counts, n) in self.counts.iter().zip(seen) {
                counts[rank as usize].store(n.min(u32::from(u16::MAX)) as u16, Relaxed);
            }
        }
    }

    /// Returns the counts stored since the last call and sets them to 0.
    pub(crate) fn take_recorded_counts(&self) -> TargetMarkerCounts {
        let take = |counts: &Vec<AtomicU16>| counts.iter().map(|count| count.swap(0, Relaxed)).collect();
        TargetMarkerCounts {
            markers_per_target: self.markers_per_target.clone(),
            counts: self.counts.iter().map(take).collect(),
        }
    }
}

/// Reads the sampled k-mers of all targets from the reference file. One contig at a time is in memory.
fn read_candidates(targets: &Targets, reference: &Path, k: u32) -> Result<Vec<CandidateMarker>, Error> {
    let share = (MAX_SAMPLED_MARKERS as f64 / targets.num_bases().max(1) as f64).min(1.0);
    let sampler = MarkerSampler { k, max_hash: (share * u64::MAX as f64) as u64 };
    let mut of_contig: HashMap<usize, Vec<(u32, &Target)>> = HashMap::new();
    for (number, target) in (0..).zip(&targets.intervals) {
        of_contig.entry(target.contig).or_default().push((number, target));
    }
    let mut candidates = Vec::new();
    let mut add_contig = |contig: usize, seq: &[u8]| {
        for &(number, target) in of_contig.get(&contig).into_iter().flatten() {
            sampler.add_target(number, target, seq, &mut candidates);
        }
    };
    let (mut num_headers, mut seq) = (0, Vec::new());
    read_fasta_events(reference, |part| match part {
        FastaEvent::Header { .. } => {
            if num_headers > 0 {
                add_contig(num_headers - 1, &seq);
            }
            num_headers += 1;
            seq.clear();
        }
        FastaEvent::Bases(bases) => seq.extend_from_slice(bases),
    })?;
    add_contig(num_headers.max(1) - 1, &seq);
    Ok(candidates)
}

/// Rule by which the k-mers of targets are sampled.
struct MarkerSampler {
    k: u32,
    /// Maximum hash of a sampled k-mer.
    max_hash: u64,
}

impl MarkerSampler {
    /// Appends the sampled k-mers of target number `number` on the contig `seq` to `out`, in any order.
    fn add_target(&self, number: u32, target: &Target, seq: &[u8], out: &mut Vec<CandidateMarker>) {
        let before = out.len();
        self.add_kmers(number, target, seq, self.max_hash, out);
        if out.len() - before < MIN_MARKERS_PER_TARGET && self.max_hash < u64::MAX {
            out.truncate(before);
            self.add_kmers(number, target, seq, u64::MAX, out);
            out[before..].sort_unstable();
            out.truncate(before + MIN_MARKERS_PER_TARGET);
        }
    }

    fn add_kmers(&self, target: u32, interval: &Target, seq: &[u8], max_hash: u64, out: &mut Vec<CandidateMarker>) {
        let k = self.k as usize;
        // The middle base of the k-mers at these starts is in the target.
        let first = interval.start.saturating_sub(k / 2);
        let last = (interval.end - 1).saturating_sub(k / 2);
        let stretch = &seq[first.min(seq.len())..(last + k).min(seq.len())];
        for (_, kmer) in kmers(stretch, self.k) {
            let hash = hash_kmer(kmer.canonical());
            if hash <= max_hash {
                let key = root_first_kmer_key_on_strand(kmer.forward, self.k)
                    .min(root_first_kmer_key_on_strand(kmer.reverse, self.k));
                debug_assert!(key >> 4 <= kmer_mask(self.k - 2));
                out.push(CandidateMarker { target, hash, kmer: kmer.canonical(), key });
            }
        }
    }
}

/// Properties of a sample's reads that determine the ratio of base depth to k-mer depth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DepthConversionReadProperties {
    /// Mean length of the reads after trimming, in bases.
    pub(crate) bases: f64,
    /// Sequencing errors per base, from overlapping mates; 0 if unknown.
    pub(crate) error_rate: f64,
}

/// Depth of one target in all samples. The vectors are indexed by sample, the normal first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetDepth {
    /// Number of marker k-mers. If it is 0, the depth is unknown: usually each k-mer of the target occurs several times
    /// in the reference.
    pub num_markers: u32,
    /// Base depth in each sample: the median k-mer depth of the markers, converted. Duplicates count.
    pub depths: Vec<f64>,
    /// For each sample the number of markers with a base depth of at least [`MIN_WELL_COVERED_DEPTH`].
    num_well_covered: Vec<u32>,
    /// For each tumour the number of markers that are callable: deep enough in this tumour and in the normal.
    num_callable: Vec<u32>,
}

impl TargetDepth {
    /// Whether at least one sample has nearly no coverage of the target. False if the depth is unknown.
    pub fn is_uncovered_in_any_sample(&self) -> bool {
        self.num_markers > 0 && self.depths.iter().any(|&depth| depth < MIN_COVERED_DEPTH)
    }
}

/// Depth of each target in each sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetDepths {
    /// Depth of each target, in the order of the targets.
    pub targets: Vec<TargetDepth>,
    /// For each sample, the ratio of base depth to k-mer depth: reads of L bases have L - k + 1 k-mers, and only k
    /// bases without an error are a k-mer of the target.
    pub base_per_kmer_depth: Vec<f64>,
}

impl TargetDepths {
    /// Computes the depths from the counts of the markers and the properties of each sample's reads.
    pub(crate) fn from_marker_counts(
        tally: &TargetMarkerCounts,
        reads: &[DepthConversionReadProperties],
        k: u32,
    ) -> TargetDepths {
        let factor = |&DepthConversionReadProperties { bases, error_rate }: &DepthConversionReadProperties| {
            let intact_share = (1.0 - error_rate.clamp(0.0, MAX_CORRECTED_ERROR_RATE)).powi(k as i32);
            bases.max(1.0) / (bases + 1.0 - f64::from(k)).max(1.0) / intact_share
        };
        let base_per_kmer_depth: Vec<f64> = reads.iter().map(factor).collect();
        let mut first = 0;
        let depth_of_target = |&num_markers: &u32| {
            let own = first..first + num_markers as usize;
            first = own.end;
            let counts: Vec<&[u16]> = tally.counts.iter().map(|counts| &counts[own.clone()]).collect();
            let each = || counts.iter().zip(&base_per_kmer_depth);
            let well_covered = |(counts, &factor): (&&[u16], &f64)| {
                counts.iter().filter(|&&count| f64::from(count) * factor >= MIN_WELL_COVERED_DEPTH).count() as u32
            };
            let (normal, tumours) = counts.split_at(counts.len().min(TUMOUR_SAMPLE.into()));
            let callable = |tumour: &&[u16]| {
                let both = normal.iter().flat_map(|normal| normal.iter()).zip(*tumour);
                both.filter(|(normal, tumour)| **normal.min(tumour) >= MIN_CALLABLE_KMER_DEPTH).count() as u32
            };
            TargetDepth {
                num_markers,
                depths: each().map(|(counts, &factor)| median(counts) * factor).collect(),
                num_well_covered: each().map(well_covered).collect(),
                num_callable: tumours.iter().map(callable).collect(),
            }
        };
        TargetDepths { targets: tally.markers_per_target.iter().map(depth_of_target).collect(), base_per_kmer_depth }
    }

    /// Number of target bases that are callable in one tumour and the normal. Tumour number 0 is the first.
    pub(crate) fn count_callable_bases(&self, targets: &Targets, tumour: usize) -> u64 {
        let callable = |(depth, bases): (&TargetDepth, f64)| {
            depth.num_callable.get(tumour).map_or(0.0, |&n| f64::from(n) / f64::from(depth.num_markers) * bases)
        };
        self.assessed(targets).map(callable).fold(0.0, |sum, bases| sum + bases).round() as u64
    }

    /// Median k-mer depth of a sample over the bases of the targets with a known depth.
    pub(crate) fn median_kmer_depth(&self, targets: &Targets, sample: usize) -> f64 {
        self.median_depth(targets, sample) / self.base_per_kmer_depth.get(sample).copied().unwrap_or(1.0)
    }

    /// Median base depth of a sample over the bases of the targets with a known depth.
    pub(crate) fn median_depth(&self, targets: &Targets, sample: usize) -> f64 {
        let mut depths: Vec<(f64, f64)> =
            self.assessed(targets).map(|(depth, bases)| (depth.depths[sample], bases)).collect();
        depths.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut left = depths.iter().map(|(_, bases)| bases).fold(0.0, |sum, bases| sum + bases) / 2.0;
        let middle = depths.iter().find(|(_, bases)| {
            left -= bases;
            left <= 0.0
        });
        middle.map_or(0.0, |(depth, _)| *depth)
    }

    /// Summary of the depth of all targets in one sample.
    pub(crate) fn summarise_target_depths(&self, targets: &Targets, sample: usize) -> TargetCoverage {
        let mut coverage =
            TargetCoverage { median_depth: self.median_depth(targets, sample), ..TargetCoverage::default() };
        let mut all = 0.0;
        for (depth, bases) in self.assessed(targets) {
            all += bases;
            coverage.mean_depth += depth.depths[sample] * bases;
            coverage.share_at_20x += f64::from(depth.num_well_covered[sample]) / f64::from(depth.num_markers) * bases;
            if depth.depths[sample] < MIN_COVERED_DEPTH {
                coverage.uncovered_targets += 1;
                coverage.uncovered_share += bases;
            }
        }
        if all > 0.0 {
            for sum in [&mut coverage.mean_depth, &mut coverage.share_at_20x, &mut coverage.uncovered_share] {
                *sum /= all;
            }
        }
        coverage
    }

    /// The targets with a known depth, each with its number of bases.
    fn assessed<'a>(&'a self, targets: &'a Targets) -> impl Iterator<Item = (&'a TargetDepth, f64)> + 'a {
        let all = self.targets.iter().zip(&targets.intervals);
        all.filter(|(depth, _)| depth.num_markers > 0).map(|(depth, target)| (depth, target.num_bases() as f64))
    }
}

/// Median of the counts; 0 if there are none.
fn median(counts: &[u16]) -> f64 {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => f64::from(sorted[n / 2]),
        n => (f64::from(sorted[n / 2 - 1]) + f64::from(sorted[n / 2])) / 2.0,
    }
}

/// Depth of all targets in one sample. Depths are base depths computed from k-mers, with duplicates. Shares are from 0
/// to 1, relative to the bases of the targets with a known depth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TargetCoverage {
    /// Mean depth over the bases of all targets with a known depth; each base has the median depth of its target.
    pub mean_depth: f64,
    /// Median depth over the bases of all targets with a known depth; each base has the median depth of its target.
    pub median_depth: f64,
    /// Share of the target bases with a depth of at least 20.
    pub share_at_20x: f64,
    /// Number of targets with nearly no coverage.
    pub uncovered_targets: u64,
    /// Share of the target bases that are in targets with nearly no coverage.
    pub uncovered_share: f64,
}

/// Summary of the targets of a call, for `summary.json` and the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallTargetSummary {
    /// Path of the BED file or interval list, as the user gave it.
    pub path: String,
    /// Number of bases by which targets were extended on both sides to decide which calls are written.
    pub padding_bp: usize,
    /// Number of intervals in the file.
    pub intervals: u64,
    /// Number of targets after overlapping intervals were merged.
    pub targets: u64,
    /// Number of bases of the targets, without padding.
    pub bases: u64,
    /// Number of targets with an unknown depth: usually each of their k-mers occurs several times in the reference.
    pub not_assessed: u64,
    /// For each tumour, number of target bases that are callable in it and in the normal.
    pub callable_bases: Vec<u64>,
    /// Number of calls that were not written because they are outside the extended targets.
    pub calls_outside: u64,
    /// Depth of the targets in each sample, the normal first.
    pub samples: Vec<TargetCoverage>,
}

impl CallTargetSummary {
    /// The part of this summary that is about the normal and the tumour with sample number `sample`.
    pub(crate) fn summary_of_sample_pair(&self, sample: usize) -> CallTargetSummary {
        let callable = sample.checked_sub(TUMOUR_SAMPLE.into()).and_then(|tumour| self.callable_bases.get(tumour));
        CallTargetSummary {
            callable_bases: callable.into_iter().copied().collect(),
            samples: self.samples.first().into_iter().chain(self.samples.get(sample)).copied().collect(),
            ..self.clone()
        }
    }
}

/// The targets of a finished call, with their depths.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetsWithDepths {
    /// The targets on the reference, without padding.
    pub targets: Targets,
    /// Depth of each target in each sample.
    pub depths: TargetDepths,
    /// Coverage and callable bases of all targets, for `summary.json`, the report and MultiQC.
    pub summary: CallTargetSummary,
}

impl TargetsWithDepths {
    /// Summarises the targets of a call. `calls_outside` is the number of calls that were not written because they are
    /// outside the targets.
    pub(crate) fn summarise_targets(
        option: &TargetsOption,
        targets: Targets,
        depths: TargetDepths,
        num_samples: usize,
        calls_outside: u64,
    ) -> TargetsWithDepths {
        let num_tumours = num_samples - usize::from(TUMOUR_SAMPLE);
        let summary = CallTargetSummary {
            path: option.path.display().to_string(),
            padding_bp: option.padding_bp,
            intervals: targets.num_intervals_read as u64,
            targets: targets.intervals.len() as u64,
            bases: targets.num_bases(),
            not_assessed: depths.targets.iter().filter(|depth| depth.num_markers == 0).count() as u64,
            callable_bases: (0..num_tumours).map(|tumour| depths.count_callable_bases(&targets, tumour)).collect(),
            calls_outside,
            samples: (0..num_samples).map(|sample| depths.summarise_target_depths(&targets, sample)).collect(),
        };
        TargetsWithDepths { targets, depths, summary }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u32 = 31;

    fn random_bases(n: usize) -> Vec<u8> {
        let mut x = 5u64;
        let mut base = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        (0..n).map(|_| base()).collect()
    }

    fn target(contig: usize, start: usize, end: usize) -> Target {
        Target { contig, start, end, name: String::new() }
    }

    /// Passes each root of a sequence with these counts of its k-mers, once.
    fn pass_roots(markers: &TargetMarkers, seq: &[u8], counts: [u32; 2]) {
        let mut roots: HashMap<u64, RootCounters<2>> = HashMap::new();
        for (_, kmer) in kmers(seq, K) {
            let key =
                root_first_kmer_key_on_strand(kmer.forward, K).min(root_first_kmer_key_on_strand(kmer.reverse, K));
            let root = roots.entry(key >> 4).or_insert(RootCounters { root: key >> 4, counts: [[0; 2]; 16] });
            root.counts[(key & 15) as usize] = counts;
        }
        roots.values().for_each(|root| markers.record_marker_counts_of_root(root));
    }

    #[test]
    fn markers_are_unique_kmers_whose_middle_base_is_in_the_target() {
        let seq = random_bases(6000);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genome.fa");
        // The second contig repeats bases 2000 to 2400 of the first.
        let repeat = [&random_bases(9000)[8000..], &seq[2000..2400]].concat();
        std::fs::write(&path, [b">a\n", &seq[..], b"\n>b\n", &repeat, b"\n"].concat()).unwrap();
        let targets = Targets::merge_overlapping_intervals(vec![
            target(0, 0, 100),
            target(0, 500, 501),
            target(0, 2050, 2350),
            target(0, 3000, 3500),
            target(1, 100, 300),
        ]);
        let markers = TargetMarkers::select_markers(&targets, &path, K, 2, 2).unwrap();
        // At the start of a contig the first 15 bases are the middle of no k-mer.
        assert_eq!(markers.markers_per_target, [85, 1, 0, 500, 200]);
        pass_roots(&markers, &seq[2900..3300], [40, 12]);
        let mut tally = markers.take_recorded_counts();
        pass_roots(&markers, &seq[3300 - 30..3600], [8, 7]);
        pass_roots(&markers, &seq[450..550], [1, 30]);
        assert!(tally.merge_partition_counts(&markers.take_recorded_counts()));
        assert!(
            !tally.merge_partition_counts(&TargetMarkerCounts {
                markers_per_target: vec![1],
                counts: vec![Vec::new(); 2]
            })
        );
        let depths = TargetDepths::from_marker_counts(
            &tally,
            &[DepthConversionReadProperties { bases: 60.0, error_rate: 0.0 }; 2],
            K,
        );
        assert_eq!(depths.base_per_kmer_depth, [2.0; 2]);
        let of = |number: usize| &depths.targets[number];
        assert_eq!((of(0).depths.clone(), of(1).depths.clone()), (vec![0.0; 2], vec![2.0, 60.0]));
        assert_eq!(
            (of(2).num_markers, of(2).is_uncovered_in_any_sample(), of(0).is_uncovered_in_any_sample()),
            (0, false, true)
        );
        assert!(!of(1).is_uncovered_in_any_sample() && !of(3).is_uncovered_in_any_sample());
        assert_eq!(of(3).depths, [80.0, 24.0]);
        // k-mers from 2985 to 3269 have the first counts.
        assert_eq!(of(3).num_well_covered, [285, 285]);
        assert_eq!(depths.count_callable_bases(&targets, 0), 285);
        let normal = depths.summarise_target_depths(&targets, 0);
        assert_eq!((normal.uncovered_targets, normal.median_depth), (2, 80.0));
        assert!((normal.mean_depth - (2.0 + 500.0 * 80.0) / 801.0).abs() < 1e-9, "{normal:?}");
        assert!((normal.uncovered_share - 300.0 / 801.0).abs() < 1e-9, "{normal:?}");
        assert!((normal.share_at_20x - 285.0 / 801.0).abs() < 1e-9, "{normal:?}");
    }

    #[test]
    fn large_targets_are_sampled_and_small_ones_keep_some_kmers() {
        let seq = random_bases(5000);
        let sampler = MarkerSampler { k: K, max_hash: u64::MAX / 20 };
        let count = |target: Target| {
            let mut out = Vec::new();
            sampler.add_target(7, &target, &seq, &mut out);
            assert!(out.iter().all(|candidate| candidate.target == 7));
            out.len()
        };
        let large = count(target(0, 100, 4900));
        assert!((150..350).contains(&large), "{large}");
        assert_eq!((count(target(0, 100, 200)), count(target(0, 100, 110))), (MIN_MARKERS_PER_TARGET, 10));
    }
}
