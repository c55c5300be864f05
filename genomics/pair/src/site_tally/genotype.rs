//! Alleles and genotype that a sample shows at a site.

use crate::confidence_interval::log_factorials;

/// Minimum ratio of all reads to reads of other alleles at a homozygous site. Chosen: sequencing errors and
/// contamination give fewer reads of other alleles.
const MIN_HOM_DEPTH_PER_OTHER_READ: u32 = 8;

/// Numbers of sites by the genotypes of both samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SiteCountsByGenotype {
    /// Number of sites at which the genotypes of both samples are clear; the basis of all other counts.
    pub sites: u64,
    /// Number of sites at which the normal is heterozygous.
    pub(crate) het_normal: u64,
    /// Number of sites at which the tumour is heterozygous.
    pub(crate) het_tumour: u64,
    /// Number of sites at which both samples are heterozygous with the same two alleles.
    pub(crate) het_both: u64,
    /// Number of sites at which both samples are homozygous, with different alleles.
    pub opposite_homozygotes: u64,
    /// Sum over the sites at which the normal is homozygous of the share of tumour reads with other alleles, in units
    /// of 1/65536. Only alleles in at least a fifth of the tumour's reads count.
    pub foreign_share_sum: u64,
}

impl SiteCountsByGenotype {
    /// Adds the numbers of `other`.
    pub fn merge_counts(&mut self, other: &SiteCountsByGenotype) {
        self.sites += other.sites;
        self.het_normal += other.het_normal;
        self.het_tumour += other.het_tumour;
        self.het_both += other.het_both;
        self.opposite_homozygotes += other.opposite_homozygotes;
        self.foreign_share_sum += other.foreign_share_sum;
    }
}

/// Whether a sample shows one allele or two at a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zygosity {
    Homozygous,
    Heterozygous,
    Unclear,
}

/// The two most frequent bases of a sample at a site.
pub(super) struct TopAlleles {
    pub(super) first_base: usize,
    pub(super) second_base: usize,
    pub(super) counts: [u32; 2],
    pub(super) depth: u32,
}

/// Whether a site with these counts of its two most frequent alleles and this total depth is certainly heterozygous:
/// the second allele has at least 3 reads and a quarter of the depth, and both alleles together have seven eighths.
fn is_heterozygous([first, second]: [u32; 2], depth: u32) -> bool {
    second * 4 >= depth && second >= 3 && (first + second) * 8 >= depth * 7
}

/// Probability that a heterozygous site, whose alleles each have half of the reads on average, is recognised as
/// heterozygous at this depth.
pub(super) fn het_detection_probability(depth: u32) -> f64 {
    let logs = log_factorials(depth as usize);
    let chance = |k: u32| {
        let choose = logs[depth as usize] - logs[k as usize] - logs[(depth - k) as usize];
        (choose - f64::from(depth) * std::f64::consts::LN_2).exp()
    };
    (0..=depth).filter(|&k| is_heterozygous([k.max(depth - k), k.min(depth - k)], depth)).map(chance).sum()
}

impl TopAlleles {
    /// Selects the two bases with the highest counts; `counts` are those of A, C, G and T.
    pub(super) fn select_two_most_frequent_bases(counts: [u32; 4], depth: u32) -> TopAlleles {
        let mut order = [0usize, 1, 2, 3];
        order.sort_by_key(|&b| std::cmp::Reverse(counts[b]));
        TopAlleles { first_base: order[0], second_base: order[1], counts: [counts[order[0]], counts[order[1]]], depth }
    }

    /// Decides from the counts of the two bases whether the sample has one allele or two.
    pub(super) fn zygosity(&self) -> Zygosity {
        let [first, second] = self.counts;
        if second * MIN_HOM_DEPTH_PER_OTHER_READ <= self.depth
            && first * MIN_HOM_DEPTH_PER_OTHER_READ >= self.depth * (MIN_HOM_DEPTH_PER_OTHER_READ - 1)
        {
            Zygosity::Homozygous
        } else if is_heterozygous(self.counts, self.depth) {
            Zygosity::Heterozygous
        } else {
            Zygosity::Unclear
        }
    }

    /// The codes of the two most frequent bases, the smaller one first, to compare genotypes whichever allele is more
    /// frequent.
    pub(super) fn unordered_allele_pair(&self) -> (usize, usize) {
        (self.first_base.min(self.second_base), self.first_base.max(self.second_base))
    }
}
