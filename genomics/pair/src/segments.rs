//! Segmentation of the genome into stretches of one copy number each, by the depth ratio of tumour to normal and by the
//! allelic balance.
//!
//! Each contig is divided into bins with about the same number of roots. Of all ways to join neighbouring bins to
//! segments the likeliest one is chosen, with a fixed penalty per breakpoint (optimal partitioning, Jackson 2005).

use crate::beta_binomial::{BetaBinomial, NUM_MINOR_SHARE_STEPS};
use crate::confidence_interval::{MIN_DIVISOR, MIN_PROBABILITY_FOR_LOG};
use crate::purity_params::PURITY_PARAMS;
use crate::root_depths::RootDepth;
use crate::site_tally::TwoAlleleSite;

/// Index of a contig and 0-based position on it; `None` if the position is unknown.
pub(crate) type OptionalGenomePosition = Option<(u32, u32)>;

/// Natural-log likelihood of each minor allele share of the grid from 0 to one half.
pub(crate) type MinorShareLogLikelihoods = [f64; NUM_MINOR_SHARE_STEPS + 1];

/// A stretch of the genome with one copy number.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// Index of the contig, first and last position of the segment (0-based, both inclusive).
    pub span: (u32, u32, u32),
    /// Number of single-copy roots in the segment; proportional to its length.
    pub weight: f64,
    /// Number of tumour read pairs per normal read pair in this segment.
    pub depth_ratio: f64,
    /// Variance of the depth ratio by chance, relative to its square, for a segment whose depth ratio is that of the
    /// whole genome.
    pub ratio_variance: f64,
    /// Natural-log likelihood of each minor allele share of the grid from 0 to one half.
    pub minor_share_log_likelihoods: MinorShareLogLikelihoods,
    /// Number of heterozygous sites; a genome position that two roots show counts once.
    pub het_sites: f64,
}

/// Cache of the log-likelihoods of minor allele shares, indexed by the allele counts of a site. The counts have a
/// beta-binomial distribution, because molecules are not counted without error.
pub(crate) struct MinorShareLikelihoodCache {
    distribution: BetaBinomial,
    cache: Vec<Option<Box<MinorShareLogLikelihoods>>>,
}

impl MinorShareLikelihoodCache {
    /// Creates an empty cache for sites of at most `max_depth` reads. `overdispersion` is the variance of the allele
    /// share beyond binomial, as a fraction of the largest possible variance.
    pub(crate) fn with_max_site_depth(max_depth: usize, overdispersion: f64) -> MinorShareLikelihoodCache {
        let known = vec![None; (max_depth + 1) * (max_depth + 1)];
        MinorShareLikelihoodCache {
            distribution: BetaBinomial::with_max_trials(max_depth, overdispersion),
            cache: known,
        }
    }

    fn logs_for(&mut self, [a, b]: [u32; 2]) -> &MinorShareLogLikelihoods {
        let (k, n) = (a.min(b) as usize, (a + b) as usize);
        let draws = &self.distribution;
        self.cache[k * (draws.max_n + 1) + n].get_or_insert_with(|| {
            Box::new(std::array::from_fn(|i| {
                // docs/model/purity_ploidy.md (3)
                let both = draws.log_pmf(i, k, n).exp() + draws.log_pmf(2 * NUM_MINOR_SHARE_STEPS - i, k, n).exp();
                let both = both * if 2 * k == n { 0.5 } else { 1.0 };
                ((1.0 - PURITY_PARAMS.outlier_site_share) * both
                    + PURITY_PARAMS.outlier_site_share * 2.0 / (n + 2) as f64)
                    .ln()
            }))
        })
    }
}

/// Estimates the overdispersion of the allele share at heterozygous sites of the normal, where its mean is one half.
/// `normal` are the counts of the two alleles; the sites were selected to have at least 3 reads, and a quarter of the
/// reads, of each allele.
pub(crate) fn estimate_overdispersion(normal: impl Iterator<Item = [u32; 2]>) -> f64 {
    let mut counts: Vec<Vec<f64>> = Vec::new();
    for [a, b] in normal {
        let (k, n) = (a.min(b) as usize, (a + b) as usize);
        if counts.len() <= n {
            counts.resize(n + 1, Vec::new());
        }
        let own = &mut counts[n];
        own.resize(n / 2 + 1, 0.0);
        own[k] += 1.0;
    }
    // Some sites are not heterozygous but in repeats, with any balance.
    let log = |varies: f64, odd: f64| -> f64 {
        let draws = BetaBinomial::with_max_trials(counts.len(), varies);
        let of = |(n, own): (usize, &Vec<f64>)| -> f64 {
            let chosen = |k: &usize| 4 * k >= n && *k >= 3;
            let each = |k: usize| draws.log_pmf(NUM_MINOR_SHARE_STEPS, k, n).exp() * if 2 * k == n { 1.0 } else { 2.0 };
            let all: f64 = (0..=n / 2).filter(chosen).map(each).sum();
            let any = odd / (0..=n / 2).filter(chosen).count().max(1) as f64;
            let seen = own.iter().enumerate().filter(|(k, sites)| chosen(k) && **sites > 0.0);
            seen.map(|(k, sites)| sites * ((1.0 - odd) * each(k) / all + any).max(MIN_PROBABILITY_FOR_LOG).ln()).sum()
        };
        counts.iter().enumerate().filter(|(_, own)| !own.is_empty()).map(of).sum()
    };
    // docs/model/purity_ploidy.md (5)
    let tried =
        (0..=60).map(|i| PURITY_PARAMS.overdispersion_grid[0] + PURITY_PARAMS.overdispersion_grid[1] * f64::from(i));
    let best = |varies: f64| {
        PURITY_PARAMS.repeat_site_share_grid.map(|odd| log(varies, odd)).into_iter().fold(f64::NEG_INFINITY, f64::max)
    };
    tried.map(|varies| (varies, best(varies))).max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |best| best.0)
}

/// A stretch of a contig that is not divided further by the segmentation.
struct DepthBin {
    start: u32,
    end: u32,
    roots: f64,
    depth: [f64; 2],
    minor_share_log_likelihoods: MinorShareLogLikelihoods,
    het_sites: f64,
}

/// Contig, position, and two counts there: depths of both samples, or reads of both alleles in the tumour.
type PlacedCounts = (u32, u32, [u32; 2]);

/// Division of the genome into segments with one copy number each.
pub(crate) struct Segmentation {
    /// Segments in the order of the reference.
    pub segments: Vec<Segment>,
    /// Bins that were joined to the segments, in the order of the reference.
    pub(crate) bins: Vec<Segment>,
}

/// Divides the genome into segments, from heterozygous sites and root depths with known positions. Contigs with fewer
/// roots than `PURITY_PARAMS.min_roots_per_bin` are left out. `root_bases` is the length of a root in bases.
pub(crate) fn segment_genome(
    het_sites: &[(TwoAlleleSite, OptionalGenomePosition)],
    root_depths: &[(RootDepth, OptionalGenomePosition)],
    share_table: &mut MinorShareLikelihoodCache,
    root_bases: u32,
) -> Segmentation {
    let mut roots: Vec<PlacedCounts> =
        root_depths.iter().filter_map(|(own, place)| place.map(|(contig, at)| (contig, at, own.depth))).collect();
    roots.sort_unstable();
    let mut sites: Vec<PlacedCounts> = het_sites
        .iter()
        .filter_map(|(site, place)| place.map(|(contig, at)| (contig, at, site.tumour)))
        .filter(|(.., [a, b])| a + b > 0)
        .collect();
    sites.sort_unstable();
    let weights = site_weights(&sites, root_bases);
    let span: f64 = roots.chunk_by(|a, b| a.0 == b.0).map(|own| f64::from(own[own.len() - 1].1 - own[0].1)).sum();
    let bins = ((span / PURITY_PARAMS.min_bases_per_bin) as usize).clamp(1, PURITY_PARAMS.max_bins);
    let each = roots.len().div_ceil(bins).max(PURITY_PARAMS.min_roots_per_bin);
    let mut by_contig: Vec<(u32, Vec<DepthBin>)> = Vec::new();
    for own in roots.chunk_by(|a, b| a.0 == b.0).filter(|own| own.len() >= PURITY_PARAMS.min_roots_per_bin) {
        let parts = (own.len() / each).max(1);
        let mut bins: Vec<DepthBin> = own.chunks(own.len().div_ceil(parts)).map(DepthBin::from_roots).collect();
        let contig = own[0].0;
        let from = sites.partition_point(|site| site.0 < contig);
        let to = sites.partition_point(|site| site.0 <= contig);
        for (site, weight) in sites[from..to].iter().zip(&weights[from..to]) {
            let at = bins.partition_point(|bin| bin.end < site.1).min(bins.len() - 1);
            let bin = &mut bins[at];
            bin.minor_share_log_likelihoods
                .iter_mut()
                .zip(share_table.logs_for(site.2))
                .for_each(|(sum, log)| *sum += weight * log);
            bin.het_sites += weight;
        }
        by_contig.push((contig, bins));
    }
    let chance = DepthNoise::from_bins(&by_contig);
    let single_bins = |(contig, bins): &(u32, Vec<DepthBin>)| -> Vec<Segment> {
        bins.iter().map(|bin| merge_bins(*contig, std::slice::from_ref(bin), &chance)).collect()
    };
    Segmentation {
        segments: by_contig.iter().flat_map(|(contig, bins)| segment_contig(*contig, bins, &chance)).collect(),
        bins: by_contig.iter().flat_map(single_bins).collect(),
    }
}

/// Weight of each site: less than 1 if the same reads also show a neighbouring site. A heterozygous position gives two
/// sites, one root length apart.
fn site_weights(sites: &[PlacedCounts], root_bases: u32) -> Vec<f64> {
    let shared = |a: &PlacedCounts, b: &PlacedCounts| match a.1.abs_diff(b.1) {
        _ if a.0 != b.0 => 0.0,
        apart if apart <= root_bases + 1 => 1.0,
        apart => (1.0 - f64::from(apart - root_bases) / PURITY_PARAMS.read_sharing_bases).max(0.0),
    };
    let with = |site: &PlacedCounts, others: &mut dyn Iterator<Item = &PlacedCounts>| -> f64 {
        others.map(|other| shared(site, other)).take_while(|share| *share > 0.0).sum()
    };
    (0..sites.len())
        .map(|i| {
            let site = &sites[i];
            1.0 / (1.0 + with(site, &mut sites[..i].iter().rev()) + with(site, &mut sites[i + 1..].iter()))
        })
        .collect()
}

/// Noise of the ratio of tumour depth to normal depth between bins of the same copy number.
struct DepthNoise {
    /// Mean depth ratio of tumour to normal over the whole genome.
    mean_ratio: f64,
    /// Variance of the depth ratio measured at a single root, divided by the square of the ratio.
    root_variance: f64,
}

impl DepthNoise {
    /// Estimates the noise from the median difference of neighbouring bins. Few of these differences are at
    /// breakpoints, so the median excludes them.
    fn from_bins(by_contig: &[(u32, Vec<DepthBin>)]) -> DepthNoise {
        let bins = || by_contig.iter().flat_map(|(_, bins)| bins);
        let all = bins().fold([0.0; 2], |sum, bin| [sum[0] + bin.depth[0], sum[1] + bin.depth[1]]);
        let mean = (all[1] / f64::max(all[0], 1.0)).max(MIN_DIVISOR);
        let mut differences: Vec<f64> = by_contig
            .iter()
            .flat_map(|(_, bins)| bins.windows(2))
            .map(|two| {
                let [a, b] = [&two[0], &two[1]].map(|bin| bin.depth[1] / bin.depth[0].max(1.0));
                let each = 1.0 / two[0].roots + 1.0 / two[1].roots;
                (a - b).powi(2) / (mean * (a + b) / 2.0).max(MIN_DIVISOR) / each
            })
            .collect();
        differences.sort_unstable_by(f64::total_cmp);
        // The square of a standard normal deviate has the median 0.455.
        let median =
            differences.get(differences.len() / 2).map_or(0.0, |median| median / PURITY_PARAMS.median_squared_deviate);
        // The noise is at least that of counting, of places so far apart that they share no reads.
        let roots: f64 = bins().map(|bin| bin.roots).sum();
        let least = roots * (1.0 / all[0].max(1.0) + 1.0 / all[1].max(1.0));
        let each = if differences.len() < PURITY_PARAMS.min_bin_pairs {
            PURITY_PARAMS.few_bins_variance_factor * least
        } else {
            least
        };
        // docs/model/purity_ploidy.md (7)
        DepthNoise { mean_ratio: mean, root_variance: PURITY_PARAMS.neighbour_variance_factor * median.max(each) }
    }
}

impl DepthBin {
    fn from_roots(roots: &[PlacedCounts]) -> DepthBin {
        let depth = |s: usize| roots.iter().map(|root| f64::from(root.2[s])).sum();
        DepthBin {
            start: roots[0].1,
            end: roots[roots.len() - 1].1,
            roots: roots.len() as f64,
            depth: [depth(0), depth(1)],
            minor_share_log_likelihoods: [0.0; NUM_MINOR_SHARE_STEPS + 1],
            het_sites: 0.0,
        }
    }
}

/// Finds the likeliest segmentation of one contig.
fn segment_contig(contig: u32, bins: &[DepthBin], chance: &DepthNoise) -> Vec<Segment> {
    const NUM_COARSE_STEPS: usize = NUM_MINOR_SHARE_STEPS / PURITY_PARAMS.coarse_minor_share_step + 1;
    // Prefix sums: of weights, of weighted ratios, of their squares, and of balances.
    let mut sums: Vec<([f64; 3], [f64; NUM_COARSE_STEPS])> = vec![([0.0; 3], [0.0; NUM_COARSE_STEPS])];
    for bin in bins {
        let ratio = bin.depth[1] / bin.depth[0].max(1.0) / chance.mean_ratio;
        let weight = bin.roots / chance.root_variance;
        let (mut depth, mut balance) = sums[sums.len() - 1];
        depth.iter_mut().zip([weight, weight * ratio, weight * ratio * ratio]).for_each(|(sum, x)| *sum += x);
        balance
            .iter_mut()
            .enumerate()
            .for_each(|(i, sum)| *sum += bin.minor_share_log_likelihoods[i * PURITY_PARAMS.coarse_minor_share_step]);
        sums.push((depth, balance));
    }
    // docs/model/purity_ploidy.md (6)
    let cost = |from: usize, to: usize| {
        let (a, b) = (&sums[from], &sums[to]);
        let [weight, sum, squares] = [0, 1, 2].map(|i| b.0[i] - a.0[i]);
        let depth = (squares - sum * sum / weight.max(MIN_DIVISOR)) / 2.0;
        let balance = a.1.iter().zip(&b.1).map(|(a, b)| b - a).fold(f64::NEG_INFINITY, f64::max);
        depth - balance + PURITY_PARAMS.breakpoint_penalty
    };
    let mut best: Vec<(f64, usize)> = vec![(0.0, 0)];
    for to in 1..=bins.len() {
        let ways = (0..to).map(|from| (best[from].0 + cost(from, to), from));
        best.push(ways.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0)));
    }
    let mut ends = vec![bins.len()];
    while ends[ends.len() - 1] > 0 {
        ends.push(best[ends[ends.len() - 1]].1);
    }
    ends.reverse();
    ends.windows(2).map(|ends| merge_bins(contig, &bins[ends[0]..ends[1]], chance)).collect()
}

/// Merges neighbouring bins into a segment.
fn merge_bins(contig: u32, bins: &[DepthBin], chance: &DepthNoise) -> Segment {
    let sum = |of: fn(&DepthBin) -> f64| bins.iter().map(of).sum::<f64>();
    let (weight, depth) = (sum(|bin| bin.roots), [sum(|bin| bin.depth[0]), sum(|bin| bin.depth[1])]);
    let mut balance = [0.0; NUM_MINOR_SHARE_STEPS + 1];
    bins.iter()
        .for_each(|bin| balance.iter_mut().zip(bin.minor_share_log_likelihoods).for_each(|(sum, log)| *sum += log));
    Segment {
        span: (contig, bins[0].start, bins[bins.len() - 1].end),
        weight,
        depth_ratio: depth[1] / depth[0].max(1.0),
        ratio_variance: chance.root_variance / weight,
        minor_share_log_likelihoods: smooth_minor_share_likelihood(&balance),
        het_sites: sum(|bin| bin.het_sites),
    }
}

/// Smooths the likelihood of minor allele shares with a standard deviation of half a percent, to allow for model error.
fn smooth_minor_share_likelihood(balance: &MinorShareLogLikelihoods) -> MinorShareLogLikelihoods {
    let most = balance.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    std::array::from_fn(|i| {
        // Beyond 0 and one half the share mirrors, as the other allele becomes the minor one.
        let at = |j: isize| {
            let j = j.unsigned_abs();
            (balance[if j > NUM_MINOR_SHARE_STEPS { 2 * NUM_MINOR_SHARE_STEPS - j } else { j }] - most).exp()
        };
        let i = i as isize;
        let both_sides = |by: usize| at(i - by as isize) + at(i + by as isize);
        let sum = PURITY_PARAMS.minor_share_smoothing_weights[0] * at(i)
            + (1..PURITY_PARAMS.minor_share_smoothing_weights.len())
                .map(|by| PURITY_PARAMS.minor_share_smoothing_weights[by] * both_sides(by))
                .sum::<f64>();
        sum.max(MIN_PROBABILITY_FOR_LOG).ln() + most
    })
}
