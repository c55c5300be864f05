//! Stretches of the genome, each with its own copies: by how deep the tumour is beside the normal, and by the balance of alleles.
//!
//! Each sequence is cut into bins that are about alike in roots. Of all ways to make stretches of them the likeliest is taken, where each end of a stretch has its
//! price (optimal partitioning, Jackson 2005).

use crate::depths::Deep;
use crate::interval::log_factorials;
use crate::roots::Site;

/// Where something lies in the genome, if that is known: sequence and base, from 0.
pub type Place = Option<(u32, u32)>;

/// Shares of the rarer allele that are told apart: 0 to one half in so many steps.
pub const STEPS: usize = 100;
/// Log-likelihoods of these shares.
pub(crate) type Balance = [f64; STEPS + 1];

/// Bins, at most, and bases of one and roots in one, at least.
const BINS: usize = 600;
const BASES: f64 = 4_000.0;
const ROOTS: usize = 25;
/// What each end of a stretch costs in log-likelihood.
const END: f64 = 13.0;
/// Steps of the share of the rarer allele by which stretches are found.
const COARSE: usize = 4;
/// Share of sites that are no sites of two alleles, or of wrong reads.
const ODD: f64 = 0.01;
/// Shares of the sites that may be no sites of two alleles, of which one is taken to tell how balances vary.
const REPEATS: [f64; 5] = [0.0, 0.03, 0.06, 0.1, 0.15];
/// Bases over which two places share reads.
const SHARED: f64 = 120.0;
/// Bins beside each other have some reads in common.
const COMMON: f64 = 1.2;

/// Sites side by side, which have their copies in common.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Sequence, first place and last.
    pub place: (u32, u32, u32),
    /// Roots: its share of the genome.
    pub weight: f64,
    /// Reads of the tumour for each of the normal.
    pub ratio: f64,
    /// The variance of that by chance where the ratio is that of the whole genome, over its square.
    pub variance: f64,
    /// How likely each share of the rarer allele is.
    pub balance: Balance,
    /// Places with two alleles.
    pub sites: f64,
}

/// How likely shares of the rarer allele are, by what a site shows: draws of shares that vary themselves (beta-binomial), as molecules are not counted without error.
pub struct Balances {
    draws: Draws,
    known: Vec<Option<Box<Balance>>>,
}

impl Balances {
    /// For sites that at most `deepest` reads cover, of a share whose variance is `varies` times the largest there is.
    pub fn new(deepest: usize, varies: f64) -> Balances {
        let known = vec![None; (deepest + 1) * (deepest + 1)];
        Balances { draws: Draws::new(deepest, varies), known }
    }

    fn of(&mut self, [a, b]: [u32; 2]) -> &Balance {
        let (k, n) = (a.min(b) as usize, (a + b) as usize);
        let draws = &self.draws;
        self.known[k * (draws.deepest + 1) + n].get_or_insert_with(|| {
            Box::new(std::array::from_fn(|i| {
                let both = draws.log(i, k, n).exp() + draws.log(2 * STEPS - i, k, n).exp();
                let both = both * if 2 * k == n { 0.5 } else { 1.0 };
                ((1.0 - ODD) * both + ODD * 2.0 / (n + 2) as f64).ln()
            }))
        })
    }
}

/// Log-likelihoods of draws of shares that vary.
pub struct Draws {
    deepest: usize,
    logs: Vec<f64>,
    /// For each share, of `2 * STEPS`, and each number: the sum of logarithms up to it.
    sums: Vec<Vec<f64>>,
}

impl Draws {
    /// Of so many at most, of shares whose variance is so much of the largest there is.
    pub fn new(deepest: usize, varies: f64) -> Draws {
        let sums_of = |share: f64| {
            let mut sum = 0.0;
            let mut sums = vec![0.0];
            for i in 0..deepest {
                sum += (share * (1.0 - varies) + i as f64 * varies).ln();
                sums.push(sum);
            }
            sums
        };
        // A wrong base now and then; the last is of all reads.
        let share = |i: usize| (i as f64 / (2 * STEPS) as f64).clamp(0.002, 0.998);
        let sums = (0..=2 * STEPS).map(|i| sums_of(share(i))).chain([sums_of(1.0)]).collect();
        Draws { deepest, logs: log_factorials(deepest), sums }
    }

    /// Of `k` among `n` where the share is `i` of `2 * STEPS`.
    pub fn log(&self, i: usize, k: usize, n: usize) -> f64 {
        let choose = self.logs[n] - self.logs[k] - self.logs[n - k];
        choose + self.sums[i][k] + self.sums[2 * STEPS - i][n - k] - self.sums[2 * STEPS + 1][n]
    }
}

/// How much the share of an allele varies in the normal, where it is one half: its variance over the largest there is. Of sites as those who chose them have left
/// them: a quarter of the reads for each allele, and three.
pub(crate) fn varies(normal: impl Iterator<Item = [u32; 2]>) -> f64 {
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
    // Some are no sites of two alleles, but of repeats: of any balance.
    let log = |varies: f64, odd: f64| -> f64 {
        let draws = Draws::new(counts.len(), varies);
        let of = |(n, own): (usize, &Vec<f64>)| -> f64 {
            let chosen = |k: &usize| 4 * k >= n && *k >= 3;
            let each = |k: usize| draws.log(STEPS, k, n).exp() * if 2 * k == n { 1.0 } else { 2.0 };
            let all: f64 = (0..=n / 2).filter(chosen).map(each).sum();
            let any = odd / (0..=n / 2).filter(chosen).count().max(1) as f64;
            let seen = own.iter().enumerate().filter(|(k, sites)| chosen(k) && **sites > 0.0);
            seen.map(|(k, sites)| sites * ((1.0 - odd) * each(k) / all + any).max(1e-300).ln()).sum()
        };
        counts.iter().enumerate().filter(|(_, own)| !own.is_empty()).map(of).sum()
    };
    let tried = (0..=60).map(|i| 1e-4 + 0.004 * f64::from(i));
    let best =
        |varies: f64| REPEATS.map(|odd| log(varies, odd)).into_iter().fold(f64::NEG_INFINITY, f64::max);
    tried.map(|varies| (varies, best(varies))).max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |best| best.0)
}

/// A stretch that is looked at as a whole.
struct Bin {
    from: u32,
    to: u32,
    roots: f64,
    depth: [f64; 2],
    balance: Balance,
    sites: f64,
}

/// A place and what both samples, or the tumour's alleles, have there.
type At = (u32, u32, [u32; 2]);

/// Stretches of the genome from sites of two alleles and roots whose places are known. A root has so many bases.
pub fn segments(
    het: &[(Site, Place)],
    deep: &[(Deep, Place)],
    balances: &mut Balances,
    bases: u32,
) -> Vec<Segment> {
    let mut roots: Vec<At> =
        deep.iter().filter_map(|(own, place)| place.map(|(contig, at)| (contig, at, own.depth))).collect();
    roots.sort_unstable();
    let mut sites: Vec<At> = het
        .iter()
        .filter_map(|(site, place)| place.map(|(contig, at)| (contig, at, site.tumour)))
        .filter(|(.., [a, b])| a + b > 0)
        .collect();
    sites.sort_unstable();
    let weights = weights(&sites, bases);
    let span: f64 =
        roots.chunk_by(|a, b| a.0 == b.0).map(|own| f64::from(own[own.len() - 1].1 - own[0].1)).sum();
    let bins = ((span / BASES) as usize).clamp(1, BINS);
    let each = roots.len().div_ceil(bins).max(ROOTS);
    let mut by_contig: Vec<(u32, Vec<Bin>)> = Vec::new();
    for own in roots.chunk_by(|a, b| a.0 == b.0).filter(|own| own.len() >= ROOTS) {
        let parts = (own.len() / each).max(1);
        let mut bins: Vec<Bin> = own.chunks(own.len().div_ceil(parts)).map(Bin::of).collect();
        let contig = own[0].0;
        let from = sites.partition_point(|site| site.0 < contig);
        let to = sites.partition_point(|site| site.0 <= contig);
        for (site, weight) in sites[from..to].iter().zip(&weights[from..to]) {
            let at = bins.partition_point(|bin| bin.to < site.1).min(bins.len() - 1);
            let bin = &mut bins[at];
            bin.balance.iter_mut().zip(balances.of(site.2)).for_each(|(sum, log)| *sum += weight * log);
            bin.sites += weight;
        }
        by_contig.push((contig, bins));
    }
    let chance = Chance::of(&by_contig);
    by_contig.iter().flat_map(|(contig, bins)| cut(*contig, bins, &chance)).collect()
}

/// How much each site counts: less where the same reads show others. The two sides of a place are a root apart.
fn weights(sites: &[At], bases: u32) -> Vec<f64> {
    let shared = |a: &At, b: &At| match a.1.abs_diff(b.1) {
        _ if a.0 != b.0 => 0.0,
        apart if apart <= bases + 1 => 1.0,
        apart => (1.0 - f64::from(apart - bases) / SHARED).max(0.0),
    };
    let with = |site: &At, others: &mut dyn Iterator<Item = &At>| -> f64 {
        others.map(|other| shared(site, other)).take_while(|share| *share > 0.0).sum()
    };
    (0..sites.len())
        .map(|i| {
            let site = &sites[i];
            1.0 / (1.0 + with(site, &mut sites[..i].iter().rev()) + with(site, &mut sites[i + 1..].iter()))
        })
        .collect()
}

/// How much depths vary.
struct Chance {
    /// The ratio of depths of all of it.
    mean: f64,
    /// Variance of the ratio of one root, over its square.
    each: f64,
}

/// Fewest pairs of bins side by side from which it is learned.
const PAIRS: usize = 8;

impl Chance {
    /// From how bins side by side differ, which copies seldom make: the median of it.
    fn of(by_contig: &[(u32, Vec<Bin>)]) -> Chance {
        let bins = || by_contig.iter().flat_map(|(_, bins)| bins);
        let all = bins().fold([0.0; 2], |sum, bin| [sum[0] + bin.depth[0], sum[1] + bin.depth[1]]);
        let mean = (all[1] / f64::max(all[0], 1.0)).max(1e-9);
        let mut differences: Vec<f64> = by_contig
            .iter()
            .flat_map(|(_, bins)| bins.windows(2))
            .map(|two| {
                let [a, b] = [&two[0], &two[1]].map(|bin| bin.depth[1] / bin.depth[0].max(1.0));
                let each = 1.0 / two[0].roots + 1.0 / two[1].roots;
                (a - b).powi(2) / (mean * (a + b) / 2.0).max(1e-9) / each
            })
            .collect();
        differences.sort_unstable_by(f64::total_cmp);
        // Of a normal deviate squared the median is 0.455.
        let median = differences.get(differences.len() / 2).map_or(0.0, |median| median / 0.455);
        // It is not less than reads make it: of places so far apart that they share none.
        let roots: f64 = bins().map(|bin| bin.roots).sum();
        let least = roots * (1.0 / all[0].max(1.0) + 1.0 / all[1].max(1.0));
        let each = if differences.len() < PAIRS { 3.0 * least } else { least };
        Chance { mean, each: COMMON * median.max(each) }
    }
}

impl Bin {
    fn of(roots: &[At]) -> Bin {
        let depth = |s: usize| roots.iter().map(|root| f64::from(root.2[s])).sum();
        Bin {
            from: roots[0].1,
            to: roots[roots.len() - 1].1,
            roots: roots.len() as f64,
            depth: [depth(0), depth(1)],
            balance: [0.0; STEPS + 1],
            sites: 0.0,
        }
    }
}

/// The likeliest stretches of one sequence.
fn cut(contig: u32, bins: &[Bin], chance: &Chance) -> Vec<Segment> {
    const COARSES: usize = STEPS / COARSE + 1;
    // Sums of all before: of weights, of ratios, of their squares, and of balances.
    let mut sums: Vec<([f64; 3], [f64; COARSES])> = vec![([0.0; 3], [0.0; COARSES])];
    for bin in bins {
        let ratio = bin.depth[1] / bin.depth[0].max(1.0) / chance.mean;
        let weight = bin.roots / chance.each;
        let (mut depth, mut balance) = sums[sums.len() - 1];
        depth.iter_mut().zip([weight, weight * ratio, weight * ratio * ratio]).for_each(|(sum, x)| *sum += x);
        balance.iter_mut().enumerate().for_each(|(i, sum)| *sum += bin.balance[i * COARSE]);
        sums.push((depth, balance));
    }
    let cost = |from: usize, to: usize| {
        let (a, b) = (&sums[from], &sums[to]);
        let [weight, sum, squares] = [0, 1, 2].map(|i| b.0[i] - a.0[i]);
        let depth = (squares - sum * sum / weight.max(1e-9)) / 2.0;
        let balance = a.1.iter().zip(&b.1).map(|(a, b)| b - a).fold(f64::NEG_INFINITY, f64::max);
        depth - balance + END
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
    ends.windows(2).map(|ends| segment(contig, &bins[ends[0]..ends[1]], chance)).collect()
}

fn segment(contig: u32, bins: &[Bin], chance: &Chance) -> Segment {
    let sum = |of: fn(&Bin) -> f64| bins.iter().map(of).sum::<f64>();
    let (weight, depth) = (sum(|bin| bin.roots), [sum(|bin| bin.depth[0]), sum(|bin| bin.depth[1])]);
    let mut balance = [0.0; STEPS + 1];
    bins.iter().for_each(|bin| balance.iter_mut().zip(bin.balance).for_each(|(sum, log)| *sum += log));
    Segment {
        place: (contig, bins[0].from, bins[bins.len() - 1].to),
        weight,
        ratio: depth[1] / depth[0].max(1.0),
        variance: chance.each / weight,
        balance: blurred(&balance),
        sites: sum(|bin| bin.sites),
    }
}

/// Balances are off by half a percent, for whatever reason.
fn blurred(balance: &Balance) -> Balance {
    const KERNEL: [f64; 4] = [0.383, 0.242, 0.0606, 0.006];
    let most = balance.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    std::array::from_fn(|i| {
        // Below 0 and beyond one half is the other allele.
        let at = |j: isize| {
            let j = j.unsigned_abs();
            (balance[if j > STEPS { 2 * STEPS - j } else { j }] - most).exp()
        };
        let i = i as isize;
        let beside = |by: usize| at(i - by as isize) + at(i + by as isize);
        let sum = KERNEL[0] * at(i) + (1..KERNEL.len()).map(|by| KERNEL[by] * beside(by)).sum::<f64>();
        sum.max(1e-300).ln() + most
    })
}
