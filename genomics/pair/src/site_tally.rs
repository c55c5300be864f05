//! Tally of the sites that the roots of a k-mer sketch show in both samples.
//!
//! A root is the middle of a k-mer. Its 16 counters say which base precedes it and which follows it in each sample.
//! So each side of a root is a site at which both samples show their alleles, without a reference. A place of the
//! genome is seen from two roots: the one before and the one after it.

use std::collections::BinaryHeap;

use genuma_kmers::RootCounters;
use genuma_kmers::encode::reverse_complement_kmer;
use genuma_reads::{NORMAL_SAMPLE, TUMOUR_SAMPLE};
use serde::{Deserialize, Serialize};

use crate::error_threshold::min_count_above_errors_at_depth;
use crate::interval::log_factorials;
use crate::modal_depth::estimate_modal_depth;
use crate::sketch::KmerSketch;

/// Number of depth classes: depths 0 to 254, and 255 for all deeper sites.
pub const NUM_DEPTH_CLASSES: usize = 256;
/// Number of classes of the minor allele count: 0 to 30, and 31 for more.
pub(crate) const NUM_MINOR_ALLELE_COUNT_CLASSES: usize = 32;
/// Roots with fewer occurrences than this in both samples together are used to compare reads two by two. Deeper
/// roots show the alleles themselves. Chosen.
pub const READ_COMPARISON_DEPTH_LIMIT: u32 = 48;
/// Minimum depth of each sample at a site to call alleles there. Chosen: below it a heterozygous site often shows one
/// allele only.
pub const MIN_SITE_DEPTH: u32 = 8;
/// Twice the number of sites of which one, chosen by hash, is tested for being in single-copy sequence. Chosen: the
/// test is slow.
const SINGLE_COPY_CHECK_INTERVAL: u64 = 128;
/// Maximum number of sites of a kind that are kept individually: those with the smallest hashes. Chosen: enough for
/// purity and segmentation, at bounded memory.
pub const MAX_LISTED_SITES: usize = 100_000;
/// Minimum number of reads per read with another allele at a homozygous site. Chosen: sequencing errors and
/// contamination give fewer other reads.
const HOM_READS_PER_OTHER: u32 = 8;
/// Number of GC classes: by the number of bases of the root that are G or C, 0 to 32.
pub const NUM_GC_CLASSES: usize = 33;

/// The six substitution classes, both strands together.
pub const SUBSTITUTION_CLASS_NAMES: [&str; 6] = ["C>A", "C>G", "C>T", "T>A", "T>C", "T>G"];

/// Number of comparisons of two reads that have the same root, and how many of them differ. The two reads are of
/// different molecules; they are not mates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadComparisonCounts {
    /// Number of comparisons within the normal, within the tumour, and between the samples.
    pub compared: [u64; 3],
    /// Number of comparisons whose reads differ in the base before or after the root, at roots without a near copy
    /// ([`has_near_copy`]).
    pub differing: [u64; 3],
}

impl ReadComparisonCounts {
    /// Compares all reads at a root two by two. Returns the depth of both samples together, and the comparisons.
    /// `shared_starts` is the number of comparisons within each sample whose reads start alike although they differ;
    /// they are duplicates with an error and are not counted.
    pub fn compare_reads_at_root(root: &RootCounters, shared_starts: [u32; 2]) -> (u32, ReadComparisonCounts) {
        let (mut depth, mut same, mut between) = ([0u32; 2], [0u64; 2], 0u64);
        for counts in &root.counts {
            for s in 0..2 {
                depth[s] = depth[s].saturating_add(counts[s]);
                same[s] += num_pairs(counts[s]);
            }
            between += u64::from(counts[0]) * u64::from(counts[1]);
        }
        let all = [num_pairs(depth[0]), num_pairs(depth[1]), u64::from(depth[0]) * u64::from(depth[1])];
        let alike = [same[0], same[1], between];
        let shared_starts = [shared_starts[0], shared_starts[1], 0].map(u64::from);
        let differ: [u64; 3] = std::array::from_fn(|i| (all[i] - alike[i]).saturating_sub(shared_starts[i]));
        let compared = std::array::from_fn(|i| alike[i] + differ[i]);
        (depth[0].saturating_add(depth[1]), ReadComparisonCounts { compared, differing: differ })
    }

    /// Adds the comparisons of `other`.
    pub fn merge_comparison_counts(&mut self, other: &ReadComparisonCounts) {
        self.compared.iter_mut().zip(other.compared).for_each(|(a, b)| *a += b);
        self.differing.iter_mut().zip(other.differing).for_each(|(a, b)| *a += b);
    }
}

/// Counts of sites by the genotypes of both samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GenotypeCounts {
    /// Number of sites where the genotypes of both samples are clear.
    pub sites: u64,
    /// Number of sites where the normal is heterozygous.
    pub(crate) het_normal: u64,
    /// Number of sites where the tumour is heterozygous.
    pub(crate) het_tumour: u64,
    /// Number of sites where both samples are heterozygous with the same two alleles.
    pub(crate) het_both: u64,
    /// Number of sites where each sample is homozygous, with different alleles.
    pub opposite_homozygotes: u64,
    /// Sum over the sites where the normal is homozygous of the share of tumour reads with another allele of at least
    /// a fifth of the reads, in units of 1/65536.
    pub foreign_share_sum: u64,
}

impl GenotypeCounts {
    /// Adds the counts of `other`.
    pub fn merge_counts(&mut self, other: &GenotypeCounts) {
        self.sites += other.sites;
        self.het_normal += other.het_normal;
        self.het_tumour += other.het_tumour;
        self.het_both += other.het_both;
        self.opposite_homozygotes += other.opposite_homozygotes;
        self.foreign_share_sum += other.foreign_share_sum;
    }
}

/// A site with its read counts of two alleles in both samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AlleleSite {
    /// Hash of the root and the side; the sites with the smallest hashes are kept.
    hash: u64,
    /// The root (canonical (k−2)-mer) next to the site, by which the site can be located on a reference.
    pub root: u64,
    /// Number of molecules of the normal with the first and with the second allele.
    pub normal: [u32; 2],
    /// Number of molecules of the tumour with the first and with the second allele.
    pub tumour: [u32; 2],
}

/// A sample of the sites of one kind: those with the smallest hashes.
#[derive(Debug, Clone, Default)]
struct SiteSample {
    sites: BinaryHeap<AlleleSite>,
    /// Number of sites of the kind that the tally met, kept in the sample or not.
    num_offered: u64,
}

impl SiteSample {
    fn offer(&mut self, site: AlleleSite) {
        self.num_offered += 1;
        if self.sites.len() < MAX_LISTED_SITES {
            self.sites.push(site);
        } else if self.sites.peek().is_some_and(|last| site < *last) {
            self.sites.pop();
            self.sites.push(site);
        }
    }

    /// Returns the kept sites, sorted by hash.
    fn sorted(&self) -> Vec<AlleleSite> {
        let mut sites: Vec<AlleleSite> = self.sites.iter().copied().collect();
        sites.sort_unstable();
        sites
    }

    /// Kept sites divided by all sites of the kind that the tally met (0 to 1).
    fn kept_share(&self) -> f64 {
        self.sites.len() as f64 / f64::max(self.num_offered as f64, 1.0)
    }
}

/// Depth of a sample at the roots of one GC class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GcDepthSum {
    /// Number of roots in this GC class.
    pub roots: u64,
    /// Sum of the depths at these roots.
    pub depth_sum: u64,
}

/// Tally of a k-mer sketch of two samples. Tables of minor allele counts have the shape `[6 substitution classes ×
/// NUM_DEPTH_CLASSES × NUM_MINOR_ALLELE_COUNT_CLASSES]`.
#[derive(Debug, Clone)]
pub struct SiteTally {
    /// Share of all roots of the genome that the sketch contains.
    pub sampled_share: f64,
    /// Number of roots (canonical (k−2)-mers) in the sketch.
    pub num_roots: u64,
    /// For each sample the range of depths, both ends included, at which a root counts as single-copy.
    single_copy_depths: [(u32, u32); 2],
    /// Comparisons of two reads, by the depth of the root in both samples together.
    pub read_comparisons_by_depth: Vec<ReadComparisonCounts>,
    /// Genotype counts, by the normal's depth.
    pub(crate) genotypes_by_depth: Vec<GenotypeCounts>,
    /// Number of sites where the normal is homozygous, heterozygous, and unclear, by the normal's depth and
    /// regardless of the tumour.
    pub zygosities_by_depth: Vec<[u64; 3]>,
    /// For each sample the number of sites by substitution class, depth and count of the minor allele, where the
    /// other sample shows one allele only and it is the most frequent of this sample. Each site counts three times,
    /// once for each base that could be the minor allele.
    pub minor_counts: [Vec<u64>; 2],
    /// Like [`Self::minor_counts`], for sites where the other sample has exactly one read of the minor allele, at
    /// single-copy roots without a tandem repeat and without a near copy.
    pub shared_minor_counts: [Vec<u64>; 2],
    /// For each sample, from a subset of the sites: the number of sites that would be in
    /// [`Self::shared_minor_counts`] if the other sample had one read of the allele, and the number of sites tested.
    pub single_copy_checks: [[u64; 2]; 2],
    het_sample: SiteSample,
    somatic_sample: SiteSample,
    /// Depth of each sample by GC class, at roots that are single-copy in the other sample.
    pub depth_by_gc: [Vec<GcDepthSum>; 2],
    /// For each sample the number of roots by depth, at roots that are single-copy in the other sample.
    pub depth_histograms: [Vec<u64>; 2],
}

impl Default for SiteTally {
    fn default() -> SiteTally {
        SiteTally {
            sampled_share: 1.0,
            num_roots: 0,
            single_copy_depths: [(1, u32::MAX); 2],
            read_comparisons_by_depth: vec![ReadComparisonCounts::default(); READ_COMPARISON_DEPTH_LIMIT as usize],
            genotypes_by_depth: vec![GenotypeCounts::default(); NUM_DEPTH_CLASSES],
            zygosities_by_depth: vec![[0; 3]; NUM_DEPTH_CLASSES],
            minor_counts: [(); 2].map(|()| vec![0; 6 * NUM_DEPTH_CLASSES * NUM_MINOR_ALLELE_COUNT_CLASSES]),
            shared_minor_counts: [(); 2].map(|()| vec![0; 6 * NUM_DEPTH_CLASSES * NUM_MINOR_ALLELE_COUNT_CLASSES]),
            single_copy_checks: [[0; 2]; 2],
            het_sample: SiteSample::default(),
            somatic_sample: SiteSample::default(),
            depth_by_gc: [(); 2].map(|()| vec![GcDepthSum::default(); NUM_GC_CLASSES]),
            depth_histograms: [(); 2].map(|()| vec![0; NUM_DEPTH_CLASSES]),
        }
    }
}

fn hash_root(root: u64) -> u64 {
    let mixed = (root ^ (root >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Smallest and largest depth at which roots are single-copy, in multiples of the modal depth. Chosen; a wider range
/// admits repeats and deletions.
const SINGLE_COPY_RANGE: [f64; 2] = [0.5, 1.6];
/// Largest depth of the sites whose heterozygosity is measured, in multiples of the modal depth. Chosen: diverged copies
/// on one root look heterozygous; a higher value admits more of them.
const MAX_HET_DEPTH_RATIO: f64 = 1.15;
/// Lower bound of the probability to detect a heterozygous site, by which the number of detected sites is divided.
/// Chosen: keeps the quotient finite at low depth.
const MIN_DETECTION_PROBABILITY: f64 = 0.1;

/// Finds the range of depths of each sample, both ends included, at which roots are single-copy: 0.5 to 1.6 times the
/// modal depth.
fn find_single_copy_depths(sampled: &KmerSketch) -> [(u32, u32); 2] {
    let mut depths = [(); 2].map(|()| vec![0; NUM_DEPTH_CLASSES]);
    for root in sampled.root_counters() {
        let depth = root.counts.iter().fold([0u32; 2], |sum, c| [sum[0] + c[0], sum[1] + c[1]]);
        for s in 0..2 {
            // Sequencing errors occur in one sample only.
            if depth[1 - s] > 0 {
                depths[s][(depth[s] as usize).min(NUM_DEPTH_CLASSES - 1)] += 1;
            }
        }
    }
    depths.map(|own| {
        let modal_depth = estimate_modal_depth(&own);
        (
            ((modal_depth * SINGLE_COPY_RANGE[0]).floor() as u32).max(1),
            ((modal_depth * SINGLE_COPY_RANGE[1]).ceil() as u32).max(2),
        )
    })
}

/// Whether a root ends in a tandem repeat, in which polymerase slippage changes the following base: a homopolymer of
/// 5 bases, or 3 copies of a unit of 2 or 3 bases, or 11 bases of a unit of 4.
pub fn ends_in_tandem_repeat(root: u64) -> bool {
    [(1, 5), (2, 6), (3, 9), (4, 11)].iter().any(|&(unit, bases)| {
        let differ = root ^ (root >> (2 * unit));
        differ & (u64::MAX >> (64 - 2 * (bases - unit))) == 0
    })
}

/// Whether a root contains a tandem repeat anywhere: at least 7 bases that equal those one unit of 1 to 6 bases
/// earlier. Slipped molecules show the same false alleles next to it in both samples.
pub(crate) fn has_tandem_repeat(root: u64, bases: u32) -> bool {
    (1..=6).any(|unit| {
        let differ = root ^ (root >> (2 * unit));
        let alike = !(differ | differ >> 1) & 0x5555_5555_5555_5555 & (u64::MAX >> (64 - 2 * (bases - unit)));
        let two = alike & alike >> 2;
        let four = two & two >> 4;
        four & four >> 6 != 0
    })
}

/// Whether `is_there` contains another root that differs from `root` in one base. Such a root suggests a second,
/// diverged copy of the sequence in the genome, so that differing reads may come from the two copies. It does not
/// matter which sample has the root. Roots have `bases` bases.
pub fn has_near_copy(root: u64, bases: u32, is_there: impl Fn(u64) -> bool) -> bool {
    (0..bases).any(|at| {
        (1..4).any(|other| {
            let changed = root ^ (other << (2 * at));
            is_there(changed.min(reverse_complement_kmer(changed, bases)))
        })
    })
}

fn num_pairs(n: u32) -> u64 {
    u64::from(n) * u64::from(n.saturating_sub(1)) / 2
}

/// Index in [`SUBSTITUTION_CLASS_NAMES`] of the substitution of base `true_base` by base `read_base` (codes 0 to 3: A, C, G, T), both
/// strands together.
pub fn substitution_class_index(true_base: usize, read_base: usize) -> usize {
    let (true_base, read_base) =
        if true_base == 0 || true_base == 2 { (3 - true_base, 3 - read_base) } else { (true_base, read_base) };
    match (true_base, read_base) {
        (1, 0) => 0,
        (1, 2) => 1,
        (1, _) => 2,
        (_, 0) => 3,
        (_, 1) => 4,
        _ => 5,
    }
}

impl SiteTally {
    /// Tallies all roots of a sketch.
    pub fn from_sketch(sampled: &KmerSketch) -> SiteTally {
        let mut tally = SiteTally {
            sampled_share: sampled.sampled_root_share(),
            single_copy_depths: find_single_copy_depths(sampled),
            ..SiteTally::default()
        };
        let (bases, known) = (sampled.root_bases(), sampled.build_root_index());
        sampled.root_counters_with_shared_starts().for_each(|(root, copies)| {
            tally.add_root(&root, copies, bases, |root| has_near_copy(root, bases, |other| known.contains_root(other)))
        });
        tally
    }

    /// Adds a root. A root that is its own reverse complement must not be passed, because it has no defined sides.
    fn add_root(&mut self, root: &RootCounters, shared_starts: [u32; 2], bases: u32, has_copies: impl Fn(u64) -> bool) {
        let hash = hash_root(root.root);
        let (mut before, mut behind) = ([[0u32; 2]; 4], [[0u32; 2]; 4]);
        for (slot, counts) in root.counts.iter().enumerate() {
            for s in 0..2 {
                before[slot >> 2][s] += counts[s];
                behind[slot & 3][s] += counts[s];
            }
        }
        let depth = before.iter().fold([0u32; 2], |sum, c| [sum[0] + c[0], sum[1] + c[1]]);
        self.num_roots += 1;
        let (all, mut draws) = ReadComparisonCounts::compare_reads_at_root(root, shared_starts);
        if all < 2 {
            return;
        }
        if all < READ_COMPARISON_DEPTH_LIMIT {
            if draws.differing != [0; 3] && has_copies(root.root) {
                draws.differing = [0; 3];
            }
            self.read_comparisons_by_depth[all as usize].merge_comparison_counts(&draws);
        }
        let gc = (root.root ^ (root.root >> 1)) & 0x5555_5555_5555_5555;
        let gc = (gc.count_ones() as usize).min(NUM_GC_CLASSES - 1);
        for s in 0..2 {
            // Only single-copy roots of the other sample: a root that is rare there may be an error, a frequent one a
            // repeat.
            if depth[1 - s] >= self.single_copy_depths[1 - s].0 && depth[1 - s] <= self.single_copy_depths[1 - s].1 {
                let own = depth[s].min(NUM_DEPTH_CLASSES as u32 - 1);
                let coverage = &mut self.depth_by_gc[s][gc];
                coverage.roots += 1;
                coverage.depth_sum += u64::from(own);
                self.depth_histograms[s][own as usize] += 1;
            }
        }
        if depth[0] >= MIN_SITE_DEPTH && depth[1] >= MIN_SITE_DEPTH {
            // A sequencing error may turn the root of another place into this one; then both samples show the
            // neighbouring base of the other place.
            let is_alone = || !has_tandem_repeat(root.root, bases) && !has_copies(root.root);
            if !ends_in_tandem_repeat(reverse_complement_kmer(root.root, bases)) {
                self.add_site(&before, depth, is_alone, root.root, hash & !1);
            }
            if !ends_in_tandem_repeat(root.root) {
                self.add_site(&behind, depth, is_alone, root.root, hash | 1);
            }
        }
    }

    /// Adds the site on one side of a root. `bases[b]` is the count of base b in each sample. `is_single_copy` is
    /// only called where it matters, as it is slow.
    fn add_site(
        &mut self,
        bases: &[[u32; 2]; 4],
        depth: [u32; 2],
        is_single_copy: impl Fn() -> bool,
        root: u64,
        hash: u64,
    ) {
        let of = |sample: usize| bases.map(|c| c[sample]);
        let (normal, tumour) = (TopAlleles::from_counts(of(0), depth[0]), TopAlleles::from_counts(of(1), depth[1]));
        let at = &mut self.genotypes_by_depth[(depth[0] as usize).min(NUM_DEPTH_CLASSES - 1)];
        let (n, t) = (normal.zygosity(), tumour.zygosity());
        self.zygosities_by_depth[(depth[0] as usize).min(NUM_DEPTH_CLASSES - 1)][n as usize] += 1;
        if n != Zygosity::Unclear && t != Zygosity::Unclear {
            at.sites += 1;
            at.het_normal += u64::from(n == Zygosity::Heterozygous);
            at.het_tumour += u64::from(t == Zygosity::Heterozygous);
            let same = normal.sorted_bases() == tumour.sorted_bases();
            at.het_both += u64::from(n == Zygosity::Heterozygous && t == Zygosity::Heterozygous && same);
            at.opposite_homozygotes += u64::from(
                n == Zygosity::Homozygous && t == Zygosity::Homozygous && normal.first_base != tumour.first_base,
            );
            if n == Zygosity::Homozygous {
                // Share of the tumour's reads with other alleles, without alleles that are rare enough to be errors
                // or from few cells.
                let other = (0..4).filter(|&b| b != normal.first_base).map(|b| bases[b][1]);
                let often: u32 = other.filter(|&c| c * FOREIGN_READS_DIVISOR >= depth[1]).sum();
                at.foreign_share_sum += u64::from(often) * 65_536 / u64::from(depth[1]);
            }
        }
        for (s, own, other) in [(NORMAL_SAMPLE, &normal, &tumour), (TUMOUR_SAMPLE, &tumour, &normal)] {
            let s = usize::from(s);
            let o = 1 - s;
            if own.first_base != other.first_base {
                continue;
            }
            let known = self.single_copy_depths[o];
            let single = || (known.0..=known.1).contains(&other.depth) && is_single_copy();
            if hash % SINGLE_COPY_CHECK_INTERVAL < 2 {
                let [could, all] = &mut self.single_copy_checks[s];
                (*could, *all) = (*could + u64::from(single()), *all + 1);
            }
            let depth = own.depth as usize;
            for b in (0..4).filter(|&b| b != own.first_base) {
                let other_reads = bases[b][o] as usize;
                let is_explained = other.counts[0] as usize + other_reads == other.depth as usize;
                let table = match other_reads {
                    _ if !is_explained => continue,
                    0 => &mut self.minor_counts[s],
                    1 if single() => &mut self.shared_minor_counts[s],
                    _ => continue,
                };
                let count = bases[b][s] as usize;
                let (deep, minor) = match depth {
                    ..NUM_DEPTH_CLASSES => (depth, count),
                    _ => (NUM_DEPTH_CLASSES - 1, count * (NUM_DEPTH_CLASSES - 1) / depth),
                };
                let row = substitution_class_index(own.first_base, b) * NUM_DEPTH_CLASSES + deep;
                table[row * NUM_MINOR_ALLELE_COUNT_CLASSES + minor.min(NUM_MINOR_ALLELE_COUNT_CLASSES - 1)] += 1;
            }
        }
        if n == Zygosity::Heterozygous {
            let [a, b] = [normal.first_base, normal.second_base];
            let pair = |s: usize| [bases[a][s], bases[b][s]];
            self.het_sample.offer(AlleleSite { hash, root, normal: pair(0), tumour: pair(1) });
        } else {
            // An allele that the tumour has and the normal has hardly or not at all.
            let new = (0..4).filter(|&b| b != normal.first_base).max_by_key(|&b| bases[b][1]).unwrap_or(0);
            let [own, other] = [bases[new][0], bases[new][1]];
            let clear =
                f64::from(other) >= min_count_above_errors_at_depth(f64::from(depth[1])) && other >= MIN_SOMATIC_READS;
            if clear && own * 4 <= depth[0] && bases[normal.first_base][0] * 4 >= depth[0] * 3 {
                let first = |s: usize| [depth[s] - bases[new][s], bases[new][s]];
                self.somatic_sample.offer(AlleleSite { hash, root, normal: first(0), tumour: first(1) });
            }
        }
    }

    /// Share of a sample's sites that are in single-copy sequence, estimated from a sample of the sites. Only these can
    /// be in [`Self::shared_minor_counts`].
    pub(crate) fn single_copy_site_share(&self, sample: usize) -> f64 {
        // Never 0, because few sites may have been tested.
        let [could, all] = self.single_copy_checks[sample].map(|sites| sites as f64 + 1.0);
        could / all
    }

    /// Share of all sites at which the normal is heterozygous, where `modal_depth` is its modal depth in molecules.
    /// Only sites of at most 1.15 times the modal depth count, because diverged copies on one root look heterozygous.
    /// The result is corrected for heterozygous sites whose genotype is unclear by chance.
    pub(crate) fn heterozygosity(&self, modal_depth: f64) -> f64 {
        let to = (modal_depth * MAX_HET_DEPTH_RATIO) as usize + 1;
        let own = self
            .zygosities_by_depth
            .iter()
            .enumerate()
            .take(to)
            .skip((MIN_SITE_DEPTH as usize).max((modal_depth * 0.5) as usize));
        let (two, all) = own.fold((0.0, 0.0), |(two, all), (depth, counts)| {
            (two + counts[1] as f64 / het_detection_probability(depth as u32), all + counts.iter().sum::<u64>() as f64)
        });
        two / f64::max(all, 1.0)
    }

    /// For each sample: the share of the sites genotyped in both samples at which this sample is heterozygous and the
    /// other is not, because the other has lost an allele.
    pub fn allele_loss_shares(&self) -> [f64; 2] {
        let sum = |of: fn(&GenotypeCounts) -> u64| self.genotypes_by_depth.iter().map(of).sum::<u64>() as f64;
        let (sites, both) = (sum(|g| g.sites).max(1.0), sum(|g| g.het_both));
        [(sum(|g| g.het_normal) - both) / sites, (sum(|g| g.het_tumour) - both) / sites]
    }

    /// Error rate of a sample by substitution class: errors per base of good quality. An error is a base that one
    /// read shows alone, where all other reads and the other sample show one base.
    pub fn substitution_error_rates(&self, sample: usize) -> [f64; 6] {
        std::array::from_fn(|class| {
            let rows = self.minor_counts[sample][class * NUM_DEPTH_CLASSES * NUM_MINOR_ALLELE_COUNT_CLASSES..]
                [..NUM_DEPTH_CLASSES * NUM_MINOR_ALLELE_COUNT_CLASSES]
                .chunks(NUM_MINOR_ALLELE_COUNT_CLASSES);
            let sum = rows.enumerate().fold([0.0; 2], |sum, (depth, row)| {
                let all = row.iter().sum::<u64>() as f64;
                [sum[0] + row[1] as f64, sum[1] + all * depth as f64]
            });
            sum[0] / sum[1].max(1.0)
        })
    }

    /// Sites where the normal is heterozygous, sorted by hash.
    pub fn het_sites(&self) -> Vec<AlleleSite> {
        self.het_sample.sorted()
    }

    /// Sites where the tumour has an allele (the second) that the normal lacks or has in few reads, sorted by hash.
    pub fn somatic_sites(&self) -> Vec<AlleleSite> {
        self.somatic_sample.sorted()
    }

    /// Number of homozygous and of heterozygous sites of the normal, by the normal's depth. The numbers are scaled to
    /// the sites of [`Self::somatic_sites`], which may be a sample of all.
    pub(crate) fn zygosity_counts_by_depth(&self) -> Vec<[f64; 2]> {
        let kept = self.somatic_sample.kept_share();
        let each = self.zygosities_by_depth.iter().enumerate().map(|(depth, &[one, two, _])| {
            [
                one as f64 * kept,
                two as f64 * kept / het_detection_probability(depth as u32).max(MIN_DETECTION_PROBABILITY),
            ]
        });
        each.collect()
    }
}

/// Divisor of the tumour's depth that gives the minimum number of reads of a foreign allele: rarer alleles may be
/// errors or come from few cells. Chosen; a higher value admits rarer alleles.
const FOREIGN_READS_DIVISOR: u32 = 5;
/// Minimum number of tumour reads of an allele that only the tumour has. Chosen; a higher value loses rare changes
/// and admits fewer errors.
const MIN_SOMATIC_READS: u32 = 4;

/// Genotype of a sample at a site by its number of alleles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zygosity {
    Homozygous,
    Heterozygous,
    Unclear,
}

/// The two most frequent bases of a sample at a site.
struct TopAlleles {
    first_base: usize,
    second_base: usize,
    counts: [u32; 2],
    depth: u32,
}

/// Whether a site with these two allele counts and this total depth is surely heterozygous: the second allele has at
/// least 3 reads and a quarter of the depth, and both together seven eighths.
fn is_heterozygous([first, second]: [u32; 2], depth: u32) -> bool {
    second * 4 >= depth && second >= 3 && (first + second) * 8 >= depth * 7
}

/// Probability that a heterozygous site with balanced alleles is recognised as heterozygous at a depth.
fn het_detection_probability(depth: u32) -> f64 {
    let logs = log_factorials(depth as usize);
    let chance = |k: u32| {
        let choose = logs[depth as usize] - logs[k as usize] - logs[(depth - k) as usize];
        (choose - f64::from(depth) * std::f64::consts::LN_2).exp()
    };
    (0..=depth).filter(|&k| is_heterozygous([k.max(depth - k), k.min(depth - k)], depth)).map(chance).sum()
}

impl TopAlleles {
    fn from_counts(counts: [u32; 4], depth: u32) -> TopAlleles {
        let mut order = [0usize, 1, 2, 3];
        order.sort_by_key(|&b| std::cmp::Reverse(counts[b]));
        TopAlleles { first_base: order[0], second_base: order[1], counts: [counts[order[0]], counts[order[1]]], depth }
    }

    fn zygosity(&self) -> Zygosity {
        let [first, second] = self.counts;
        if second * HOM_READS_PER_OTHER <= self.depth
            && first * HOM_READS_PER_OTHER >= self.depth * (HOM_READS_PER_OTHER - 1)
        {
            Zygosity::Homozygous
        } else if is_heterozygous(self.counts, self.depth) {
            Zygosity::Heterozygous
        } else {
            Zygosity::Unclear
        }
    }

    fn sorted_bases(&self) -> (usize, usize) {
        (self.first_base.min(self.second_base), self.first_base.max(self.second_base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_copies_differ_in_one_base_on_either_strand() {
        let root = 0x1234_5678_9abc_u64;
        let there = |known: u64| move |root: u64| root == known;
        let changed = root ^ (2 << 20);
        assert!(has_near_copy(root, 29, there(changed.min(reverse_complement_kmer(changed, 29)))));
        let twice = changed ^ (1 << 6);
        assert!(!has_near_copy(root, 29, there(twice.min(reverse_complement_kmer(twice, 29)))));
        assert!(!has_near_copy(root, 29, there(root)));
    }

    #[test]
    fn tandem_repeats_are_found_at_any_position() {
        let root = |text: &str| text.bytes().fold(0, |all, base| all << 2 | dna(base));
        fn dna(base: u8) -> u64 {
            b"ACGT".iter().position(|own| *own == base).expect("a base") as u64
        }
        for (text, tandem) in [
            ("ACGGTCATTGCAACTGATCCGTAGGCTAT", false),
            ("AAAAAAAATGCAACTGATCCGTAGGCTAT", true),
            ("ACGGTCATTGCAACTGATCCGTTTTTTTT", true),
            ("ACGGTCATTTTTTTGATCCGTAGGCTATG", false),
            ("ACGGTCAGAGAGAGAGACCGTAGGCTATG", true),
            ("ACTAACTAACTAACTAACTAACTAACTAC", true),
            ("TCACTGAAACTGAAACTGAAGTCCATTGC", true),
        ] {
            assert_eq!((text.len(), has_tandem_repeat(root(text), 29)), (29, tandem), "{text}");
            assert_eq!(
                has_tandem_repeat(reverse_complement_kmer(root(text), 29), 29),
                tandem,
                "{text}, the other strand"
            );
        }
    }

    #[test]
    fn alleles_in_both_samples_are_tallied_separately() {
        let mut tally = SiteTally { single_copy_depths: [(8, 20); 2], ..SiteTally::default() };
        // Before the root all reads have A; after it C, and `normal` or `tumour` reads have G.
        let mut see = |normal: u32, tumour: u32, key: u64, has_copies: bool| {
            let mut root = RootCounters { root: key, counts: [[0; 2]; 16] };
            (root.counts[1], root.counts[2]) = ([12 - normal, 14 - tumour], [normal, tumour]);
            tally.add_root(&root, [0; 2], 29, |_| has_copies);
        };
        let key = 0x1234_9a1c_7b2d_63e1;
        see(0, 1, key, true);
        see(1, 2, key, false);
        see(1, 1, key, false);
        see(2, 1, key, false);
        see(2, 2, key, false);
        // Eight A in a row, then a root with a near copy.
        see(1, 1, key >> 16 << 16, false);
        see(1, 1, key, true);
        let count = |table: &[u64], depth: usize, minor: usize| {
            table[(substitution_class_index(1, 2) * NUM_DEPTH_CLASSES + depth) * NUM_MINOR_ALLELE_COUNT_CLASSES + minor]
        };
        assert_eq!(count(&tally.minor_counts[1], 14, 1), 1);
        for (sample, depth) in [(0, 12), (1, 14)] {
            assert_eq!([1, 2].map(|minor| count(&tally.shared_minor_counts[sample], depth, minor)), [1, 1]);
            assert_eq!(tally.shared_minor_counts[sample].iter().sum::<u64>(), 2);
        }
    }

    #[test]
    fn share_of_single_copy_sites_is_estimated_from_a_subset() {
        let mut tally = SiteTally { single_copy_depths: [(8, 20); 2], ..SiteTally::default() };
        for i in 0..20_000_u64 {
            let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 6;
            let mut root = RootCounters { root: key, counts: [[0; 2]; 16] };
            root.counts[1] = [12, 14];
            tally.add_root(&root, [0; 2], 29, |_| i % 4 == 0);
        }
        for (sample, [could, all]) in tally.single_copy_checks.into_iter().enumerate() {
            assert!((400..900).contains(&all), "{all} of 40000");
            // Some roots contain a tandem repeat.
            assert!((0.6..0.78).contains(&tally.single_copy_site_share(sample)), "{could} of {all}");
        }
    }

    #[test]
    fn molecules_with_equal_starts_are_not_compared() {
        let mut root = RootCounters { root: 5, counts: [[0; 2]; 16] };
        (root.counts[3], root.counts[9]) = ([2, 1], [1, 1]);
        let (all, apart) = ReadComparisonCounts::compare_reads_at_root(&root, [0, 0]);
        assert_eq!((all, apart.compared, apart.differing), (5, [3, 1, 6], [2, 1, 3]));
        let (_, copied) = ReadComparisonCounts::compare_reads_at_root(&root, [1, 1]);
        assert_eq!((copied.compared, copied.differing), ([2, 0, 6], [1, 0, 3]));
    }
}
