//! Counts of the sites that the roots of a k-mer sketch show in both samples.
//!
//! A root is the middle of a k-mer. Its 16 counters give the number of molecules by the base before and the base after
//! the root, in each sample. So the positions before and after a root are sites at which both samples show their
//! alleles, without a reference. A position of the genome is seen as two sites: after the root on its left and before
//! the root on its right. Sites next to a tandem repeat, and sites with less than `MIN_SITE_DEPTH` molecules of a
//! sample, are not counted.

mod genotype;
mod read_comparison;
mod root_repeats;

use std::collections::BinaryHeap;

use genuma_kmers::RootCounters;
use genuma_kmers::encode::reverse_complement_kmer;
use serde::{Deserialize, Serialize};

use crate::error_threshold::min_count_above_errors_at_depth;
use crate::modal_depth::estimate_modal_depth;
use crate::sketch::{KmerSketch, SketchRootIndex};
pub(crate) use genotype::SiteCountsByGenotype;
use genotype::{TopAlleles, Zygosity, het_detection_probability};
pub use read_comparison::{MIN_DEPTH_WITHOUT_READ_COMPARISON, ReadComparisonCounts};
use root_repeats::has_tandem_repeat;
pub use root_repeats::{ends_in_tandem_repeat, has_near_copy};

/// Number of depth classes: depths 0 to 254, and 255 for all larger depths.
pub(crate) const NUM_DEPTH_CLASSES: usize = 256;
/// Number of classes of the minor allele count: 0 to 30 molecules, and 31 for more.
pub(crate) const NUM_MINOR_ALLELE_COUNT_CLASSES: usize = 32;
/// Minimum depth of each sample at a site to count its alleles. Chosen: at lower depth a heterozygous site often shows
/// one allele only.
pub(crate) const MIN_SITE_DEPTH: u32 = 8;
/// Sampling interval of uniform roots, at which all reads of both samples show the same base before and the same base
/// after the root: one in this many, chosen by hash, is tested for near copies and counted this many times. Chosen:
/// nearly all roots are uniform, and the test is slow; with a higher value the number of sites without a minor allele
/// is less exact.
const UNIFORM_ROOTS_PER_TEST: u64 = 16;
/// Divisor of the modal depth of both samples together: a root that differs from another one in one base, and has at
/// least this part of the modal depth, is a copy and no sequencing error. Chosen: a copy on one of two chromosomes has
/// half of the modal depth; with a higher value errors of very deep samples count as copies.
const COPY_DEPTH_DIVISOR: u32 = 4;
/// Maximum number of sites of one kind (heterozygous or somatic) that are kept in a list: those with the smallest
/// hashes. Chosen: enough for purity and segmentation, at bounded memory.
pub(crate) const MAX_LISTED_SITES: usize = 100_000;
/// Number of GC classes of roots, by the number of bases that are G or C. A root has at most 30 bases, so the last two
/// classes stay empty.
pub(crate) const NUM_GC_CLASSES: usize = 33;

/// The six classes of base substitutions, by the pyrimidine of the true base pair; each counts both strands.
pub const SUBSTITUTION_CLASS_NAMES: [&str; 6] = ["C>A", "C>G", "C>T", "T>A", "T>C", "T>G"];

/// A site with the numbers of molecules of two alleles in both samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TwoAlleleSite {
    /// Hash of the root, with one bit for the side of the root. The sites with the smallest hashes are kept.
    hash: u64,
    /// The root (canonical (k−2)-mer) next to the site, from which the position of the site on a reference can be
    /// found.
    pub root: u64,
    /// Number of molecules of the normal with the first and with the second allele.
    pub normal: [u32; 2],
    /// Number of molecules of the tumour with the first and with the second allele.
    pub tumour: [u32; 2],
}

/// A random sample of the sites of one kind: those with the smallest hashes, at most [`MAX_LISTED_SITES`].
#[derive(Debug, Clone, Default)]
struct SiteSample {
    sites: BinaryHeap<TwoAlleleSite>,
    /// Number of all sites of this kind, in the sample or not.
    num_offered: u64,
}

impl SiteSample {
    fn offer(&mut self, site: TwoAlleleSite) {
        self.num_offered += 1;
        if self.sites.len() < MAX_LISTED_SITES {
            self.sites.push(site);
        } else if self.sites.peek().is_some_and(|last| site < *last) {
            self.sites.pop();
            self.sites.push(site);
        }
    }

    /// Returns the sites in the sample, sorted by hash.
    fn sorted(&self) -> Vec<TwoAlleleSite> {
        let mut sites: Vec<TwoAlleleSite> = self.sites.iter().copied().collect();
        sites.sort_unstable();
        sites
    }

    /// Share of all sites of this kind that are in the sample (0 to 1).
    fn kept_share(&self) -> f64 {
        self.sites.len() as f64 / f64::max(self.num_offered as f64, 1.0)
    }
}

/// Sum of the depths of a sample over the roots of one GC class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GcDepthSum {
    /// Number of roots in this GC class.
    pub roots: u64,
    /// Sum over these roots of the depth, in molecules.
    pub depth_sum: u64,
}

/// Counts of sites in a k-mer sketch of a normal and a tumour. Tables of minor allele counts have the shape `[6
/// substitution classes × NUM_DEPTH_CLASSES × NUM_MINOR_ALLELE_COUNT_CLASSES]`.
#[derive(Debug, Clone)]
pub struct SiteTally {
    /// Share of all roots of the samples' k-mers that are in the sketch (0 to 1).
    pub sampled_share: f64,
    /// Number of roots (canonical (k−2)-mers) in the sketch.
    pub num_roots: u64,
    /// For each sample: lowest and highest depth (both inclusive) of a root that counts as single-copy.
    single_copy_depths: [(u32, u32); 2],
    /// Comparisons of two reads at roots, indexed by the depth of the root in both samples together.
    pub read_comparisons_by_depth: Vec<ReadComparisonCounts>,
    /// Genotype counts of both samples, indexed by the depth of the normal.
    pub(crate) genotypes_by_depth: Vec<SiteCountsByGenotype>,
    /// Number of sites at which the normal is homozygous, heterozygous, and unclear, indexed by the depth of the
    /// normal. The tumour's genotype does not matter.
    pub zygosities_by_depth: Vec<[u64; 3]>,
    /// For each sample: number of sites by substitution class, depth and minor allele count, where the other sample
    /// shows only one allele, and this allele is also the most frequent one in the sample. Each site counts three
    /// times, once for each base that could be the minor allele. At depths above 255, the count is scaled to depth 255.
    /// Only sites in single-copy sequence count: the root has single-copy depth in the other sample, no tandem repeat,
    /// and no near copy.
    pub minor_counts: [Vec<u64>; 2],
    /// Like [`Self::minor_counts`], for sites at which the other sample has exactly one read of the minor allele.
    pub shared_minor_counts: [Vec<u64>; 2],
    het_sample: SiteSample,
    somatic_sample: SiteSample,
    /// For each sample: sums of depths (each at most 255) by GC class, over the roots that are single-copy in the other
    /// sample.
    pub depth_by_gc: [Vec<GcDepthSum>; 2],
    /// For each sample: number of roots by depth, over the roots that are single-copy in the other sample.
    pub depth_histograms: [Vec<u64>; 2],
}

impl Default for SiteTally {
    fn default() -> SiteTally {
        SiteTally {
            sampled_share: 1.0,
            num_roots: 0,
            single_copy_depths: [(1, u32::MAX); 2],
            read_comparisons_by_depth: vec![
                ReadComparisonCounts::default();
                MIN_DEPTH_WITHOUT_READ_COMPARISON as usize
            ],
            genotypes_by_depth: vec![SiteCountsByGenotype::default(); NUM_DEPTH_CLASSES],
            zygosities_by_depth: vec![[0; 3]; NUM_DEPTH_CLASSES],
            minor_counts: [(); 2].map(|()| vec![0; 6 * NUM_DEPTH_CLASSES * NUM_MINOR_ALLELE_COUNT_CLASSES]),
            shared_minor_counts: [(); 2].map(|()| vec![0; 6 * NUM_DEPTH_CLASSES * NUM_MINOR_ALLELE_COUNT_CLASSES]),
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

/// Smallest and largest depth of single-copy roots, in multiples of the modal depth. Chosen; a wider range admits
/// repeats and deletions.
const SINGLE_COPY_RANGE: [f64; 2] = [0.5, 1.6];
/// Largest depth of the sites from which the heterozygosity is measured, in multiples of the modal depth. Chosen: sites
/// in diverged repeat copies look heterozygous; a higher value admits more of them.
const MAX_HET_DEPTH_RATIO: f64 = 1.15;
/// Lower bound of the probability that a heterozygous site is recognised; the number of recognised sites is divided by
/// it. Chosen: keeps the quotient finite at low depth.
const MIN_DETECTION_PROBABILITY: f64 = 0.1;

/// Computes the range of depths (both ends inclusive) of single-copy roots in each sample: 0.5 to 1.6 times the modal
/// depth.
fn find_single_copy_depths(sampled: &KmerSketch) -> [(u32, u32); 2] {
    let mut depths = [(); 2].map(|()| vec![0; NUM_DEPTH_CLASSES]);
    for root in sampled.root_counters_in_molecules() {
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

/// Index in [`SUBSTITUTION_CLASS_NAMES`] of the substitution of `true_base` by `read_base` (codes 0 to 3: A, C, G, T).
/// Complementary substitutions have the same index.
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
    /// Counts the sites of all roots of a sketch.
    pub fn from_sketch(sampled: &KmerSketch) -> SiteTally {
        let mut tally = SiteTally {
            sampled_share: sampled.sampled_root_share(),
            single_copy_depths: find_single_copy_depths(sampled),
            ..SiteTally::default()
        };
        let bases = sampled.num_root_bases();
        // The lower ends of the ranges are half of the modal depth.
        let half_modal_depth: u32 = tally.single_copy_depths.iter().map(|(from, _)| from).sum();
        let all_roots = sampled.build_root_index(1);
        let copies = sampled.build_root_index(half_modal_depth.div_ceil(COPY_DEPTH_DIVISOR / 2));
        sampled.molecule_counters_with_shared_starts().for_each(|(root, shared_starts)| {
            let has_near = |index: &SketchRootIndex<'_>| has_near_copy(root.root, bases, |other| index.contains(other));
            tally.add_root(&root, shared_starts, bases, [&|| has_near(&all_roots), &|| has_near(&copies)])
        });
        tally
    }

    /// Counts a root and the sites before and after it. The two closures return whether another root that differs in
    /// one base exists, and whether one exists that is no sequencing error. A root that is its own reverse complement
    /// must not be passed, because its two sides cannot be distinguished.
    fn add_root(
        &mut self,
        root: &RootCounters,
        shared_starts: [u32; 2],
        bases: u32,
        [has_similar_root, has_copy]: [&dyn Fn() -> bool; 2],
    ) {
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
        if all < MIN_DEPTH_WITHOUT_READ_COMPARISON {
            if draws.differing != [0; 3] && has_similar_root() {
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
            // A sequencing error may turn the root of a copy into this one; then the neighbouring base of the copy
            // looks like a rare allele. A repeat with many copies has many such errors.
            let is_alone = || !has_tandem_repeat(root.root, bases) && !has_copy();
            let is_uniform = root.counts.iter().filter(|counts| **counts != [0; 2]).count() == 1;
            let represented_sites = match is_uniform {
                true if !(hash >> 32).is_multiple_of(UNIFORM_ROOTS_PER_TEST) => 0,
                true => UNIFORM_ROOTS_PER_TEST * u64::from(is_alone()),
                false => u64::from(is_alone()),
            };
            if !ends_in_tandem_repeat(reverse_complement_kmer(root.root, bases)) {
                self.add_site(&before, depth, represented_sites, root.root, hash & !1);
            }
            if !ends_in_tandem_repeat(root.root) {
                self.add_site(&behind, depth, represented_sites, root.root, hash | 1);
            }
        }
    }

    /// Counts the site before or after a root. `bases[b]` is the number of molecules with base b in each sample, and
    /// `depth` their sum. `represented_sites` is the number of sites that this one stands for in the counts of minor
    /// alleles; 0 if it is not counted there.
    fn add_site(&mut self, bases: &[[u32; 2]; 4], depth: [u32; 2], represented_sites: u64, root: u64, hash: u64) {
        let of = |sample: usize| bases.map(|c| c[sample]);
        let (normal, tumour) = (
            TopAlleles::select_two_most_frequent_bases(of(0), depth[0]),
            TopAlleles::select_two_most_frequent_bases(of(1), depth[1]),
        );
        self.count_genotypes(bases, depth, &normal, &tumour);
        if represented_sites > 0 {
            self.count_minor_alleles(0, [&normal, &tumour], bases, represented_sites);
            self.count_minor_alleles(1, [&tumour, &normal], bases, represented_sites);
        }
        self.offer_site(bases, depth, &normal, root, hash);
    }

    fn count_genotypes(&mut self, bases: &[[u32; 2]; 4], depth: [u32; 2], normal: &TopAlleles, tumour: &TopAlleles) {
        let at = &mut self.genotypes_by_depth[(depth[0] as usize).min(NUM_DEPTH_CLASSES - 1)];
        let (n, t) = (normal.zygosity(), tumour.zygosity());
        self.zygosities_by_depth[(depth[0] as usize).min(NUM_DEPTH_CLASSES - 1)][n as usize] += 1;
        if n != Zygosity::Unclear && t != Zygosity::Unclear {
            at.sites += 1;
            at.het_normal += u64::from(n == Zygosity::Heterozygous);
            at.het_tumour += u64::from(t == Zygosity::Heterozygous);
            let same = normal.unordered_allele_pair() == tumour.unordered_allele_pair();
            at.het_both += u64::from(n == Zygosity::Heterozygous && t == Zygosity::Heterozygous && same);
            at.opposite_homozygotes += u64::from(
                n == Zygosity::Homozygous && t == Zygosity::Homozygous && normal.first_base != tumour.first_base,
            );
            if n == Zygosity::Homozygous {
                // Share of the tumour's reads with other alleles, without alleles that are rare enough to be errors
                // or from few cells.
                let other = (0..4).filter(|&b| b != normal.first_base).map(|b| bases[b][1]);
                let often: u32 = other.filter(|&c| c * MIN_FOREIGN_SHARE_DIVISOR >= depth[1]).sum();
                at.foreign_share_sum += u64::from(often) * 65_536 / u64::from(depth[1]);
            }
        }
    }

    /// Counts the minor alleles of a sample at a site that represents `represented_sites` sites. `own` are the alleles
    /// of the sample, `other` those of the other sample.
    fn count_minor_alleles(
        &mut self,
        sample: usize,
        [own, other]: [&TopAlleles; 2],
        bases: &[[u32; 2]; 4],
        represented_sites: u64,
    ) {
        let (s, o) = (sample, 1 - sample);
        let (from, to) = self.single_copy_depths[o];
        if own.first_base != other.first_base || !(from..=to).contains(&other.depth) {
            return;
        }
        let depth = own.depth as usize;
        for b in (0..4).filter(|&b| b != own.first_base) {
            let other_reads = bases[b][o] as usize;
            let is_explained = other.counts[0] as usize + other_reads == other.depth as usize;
            let table = match other_reads {
                _ if !is_explained => continue,
                0 => &mut self.minor_counts[s],
                1 => &mut self.shared_minor_counts[s],
                _ => continue,
            };
            let count = bases[b][s] as usize;
            let (deep, minor) = match depth {
                ..NUM_DEPTH_CLASSES => (depth, count),
                _ => (NUM_DEPTH_CLASSES - 1, count * (NUM_DEPTH_CLASSES - 1) / depth),
            };
            let row = substitution_class_index(own.first_base, b) * NUM_DEPTH_CLASSES + deep;
            table[row * NUM_MINOR_ALLELE_COUNT_CLASSES + minor.min(NUM_MINOR_ALLELE_COUNT_CLASSES - 1)] +=
                represented_sites;
        }
    }

    /// Offers the site to the sample of heterozygous sites, or to that of somatic sites if the tumour has an allele
    /// that at most a quarter of the normal's reads have.
    fn offer_site(&mut self, bases: &[[u32; 2]; 4], depth: [u32; 2], normal: &TopAlleles, root: u64, hash: u64) {
        if normal.zygosity() == Zygosity::Heterozygous {
            let [a, b] = [normal.first_base, normal.second_base];
            let pair = |s: usize| [bases[a][s], bases[b][s]];
            self.het_sample.offer(TwoAlleleSite { hash, root, normal: pair(0), tumour: pair(1) });
        } else {
            // The allele other than the normal's most frequent one that most reads of the tumour have.
            let new = (0..4).filter(|&b| b != normal.first_base).max_by_key(|&b| bases[b][1]).unwrap_or(0);
            let [own, other] = [bases[new][0], bases[new][1]];
            let clear =
                f64::from(other) >= min_count_above_errors_at_depth(f64::from(depth[1])) && other >= MIN_SOMATIC_READS;
            if clear && own * 4 <= depth[0] && bases[normal.first_base][0] * 4 >= depth[0] * 3 {
                let first = |s: usize| [depth[s] - bases[new][s], bases[new][s]];
                self.somatic_sample.offer(TwoAlleleSite { hash, root, normal: first(0), tumour: first(1) });
            }
        }
    }

    /// Share of the sites of usual depth at which the normal is heterozygous. `modal_depth` is its modal depth in
    /// molecules. Only sites of 0.5 to 1.15 times this depth, and at least [`MIN_SITE_DEPTH`], are used, because sites
    /// in diverged repeat copies are deeper and look heterozygous. The result is corrected for heterozygous sites
    /// whose genotype is unclear by chance.
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

    /// For each sample: share of the sites with known genotypes in both samples at which this sample is heterozygous
    /// and the other one is not. The other sample may have lost an allele there.
    pub(crate) fn allele_loss_shares(&self) -> [f64; 2] {
        let sum = |of: fn(&SiteCountsByGenotype) -> u64| self.genotypes_by_depth.iter().map(of).sum::<u64>() as f64;
        let (sites, both) = (sum(|g| g.sites).max(1.0), sum(|g| g.het_both));
        [(sum(|g| g.het_normal) - both) / sites, (sum(|g| g.het_tumour) - both) / sites]
    }

    /// Sequencing errors per base of good quality, by substitution class, in a sample (0: normal, 1: tumour). A base
    /// counts as an error if one read of the sample has it, and the other sample shows only the most frequent base.
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

    /// Returns the sites at which the normal is heterozygous, sorted by hash (at most [`MAX_LISTED_SITES`]).
    pub(crate) fn sampled_het_sites(&self) -> Vec<TwoAlleleSite> {
        self.het_sample.sorted()
    }

    /// Returns the sites at which the tumour has an allele that at most a quarter of the normal's reads have, sorted by
    /// hash (at most [`MAX_LISTED_SITES`]). This allele is the second allele of the site; the first one stands for all
    /// other bases.
    pub(crate) fn sampled_somatic_sites(&self) -> Vec<TwoAlleleSite> {
        self.somatic_sample.sorted()
    }

    /// Number of homozygous and of heterozygous sites of the normal, indexed by the depth of the normal. The numbers
    /// are multiplied by the share of the somatic sites that [`Self::sampled_somatic_sites`] returns; heterozygous
    /// sites that are not recognised by chance are added in proportion.
    pub(crate) fn scaled_zygosity_counts_by_depth(&self) -> Vec<[f64; 2]> {
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

/// Minimum share of the tumour's reads that a foreign allele has, as a divisor of the depth (5: a fifth). Rarer alleles
/// may be errors or come from few cells. Chosen; a higher value admits rarer alleles.
const MIN_FOREIGN_SHARE_DIVISOR: u32 = 5;
/// Minimum number of tumour reads of an allele that only the tumour has. Chosen; with a higher value more rare changes
/// are lost and fewer errors are admitted.
const MIN_SOMATIC_READS: u32 = 4;

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
            tally.add_root(&root, [0; 2], 29, [&|| has_copies, &|| has_copies]);
        };
        let key = 0x1234_9a1c_7b2d_63e1;
        see(0, 1, key, false);
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
        for (sample, depth, without_minor_reads) in [(0, 12, 1), (1, 14, 0)] {
            let shared = &tally.shared_minor_counts[sample];
            assert_eq!([0, 1, 2].map(|minor| count(shared, depth, minor)), [without_minor_reads, 1, 1]);
            assert_eq!(shared.iter().sum::<u64>(), 2 + without_minor_reads);
        }
    }

    #[test]
    fn sites_without_minor_alleles_are_counted_by_a_subset_of_the_roots() {
        let mut tally = SiteTally { single_copy_depths: [(8, 20); 2], ..SiteTally::default() };
        let mut expected = 0;
        for i in 0..40_000_u64 {
            let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 6;
            let mut root = RootCounters { root: key, counts: [[0; 2]; 16] };
            root.counts[1] = [12, 14];
            let has_copy = i % 4 == 0;
            tally.add_root(&root, [0; 2], 29, [&|| false, &|| has_copy]);
            if !has_copy && !has_tandem_repeat(key, 29) {
                expected += 3 * u64::from(!ends_in_tandem_repeat(key))
                    + 3 * u64::from(!ends_in_tandem_repeat(reverse_complement_kmer(key, 29)));
            }
        }
        for counts in &tally.minor_counts {
            let counted: u64 = counts.iter().sum();
            assert!(counted.is_multiple_of(UNIFORM_ROOTS_PER_TEST) && counted.abs_diff(expected) < expected / 20);
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
