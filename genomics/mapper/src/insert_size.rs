//! Estimates the distribution of insert sizes as bwa mem does (Li 2013): from pairs in which each mate has one clearly
//! best placement.

use crate::index::IndexView;
use crate::mapper::MappedReads;
use crate::options::ScoringOptions;
use crate::placement::Placement;

/// Insert sizes (bp) by orientation, the strand of the leftmost read first: FF, FR, RF, RR.
pub type InsertSizesByOrientation = [Vec<u32>; 4];

/// Maximum insert size that is counted (bp); the value of bwa.
const MAX_INSERT_SIZE_BP: u64 = 10_000;
/// Minimum number of pairs with an orientation for a distribution; the value of bwa.
const MIN_ORIENTATION_PAIRS: usize = 10;
/// Minimum number of pairs with an orientation for a distribution, as a share of the number of pairs with the most
/// common orientation; the value of bwa.
const MIN_ORIENTATION_SHARE: f64 = 0.05;
/// Insert sizes farther than this many interquartile ranges from the quartiles do not count for mean and standard
/// deviation; the value of bwa.
const OUTLIER_QUARTILE_RANGES: f64 = 2.0;
/// Pairs with insert sizes farther than this many interquartile ranges from the quartiles are not proper pairs; the
/// value of bwa.
const PROPER_QUARTILE_RANGES: f64 = 3.0;
/// Pairs with insert sizes within this many standard deviations of the mean are proper pairs in any case; the value of
/// bwa.
const MIN_PROPER_STD_DEVS: f64 = 4.0;

/// Distribution of the insert size of pairs with one orientation.
#[derive(Debug, Clone, PartialEq)]
pub struct InsertSizeModel {
    /// Minimum insert size of a proper pair (bp).
    pub low: i64,
    /// Maximum insert size of a proper pair (bp).
    pub high: i64,
    /// Mean insert size (bp).
    pub mean: f64,
    /// Standard deviation of the insert size (bp).
    pub deviation: f64,
    /// Score of each insert size from `low` to `high`, from -30 match scores to 0: the base-4 logarithm of twice the
    /// probability of an insert size that is at least as far from the mean, times the score of a match.
    scores: Vec<i32>,
}

/// Insert sizes of a block of pairs: one distribution for each orientation that is frequent enough.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InsertSizeModels {
    /// Distributions by orientation: FF, FR, RF, RR.
    pub by_orientation: [Option<InsertSizeModel>; 4],
    /// Maximum distance (bp) between the 5' ends of a proper pair: the maximum insert size minus one.
    pub max_distance: u64,
}

/// Insert size (bp) and index of the orientation (FF, FR, RF, RR) of mates on one sequence, from the packed positions
/// of their 5' ends and their strands.
#[inline(always)]
fn insert_size_and_orientation(ends: [u64; 2], reverse: [bool; 2]) -> (u64, usize) {
    let [a, b] = reverse.map(usize::from);
    let in_order = (ends[0], a) <= (ends[1], b);
    (ends[0].abs_diff(ends[1]) + 1, if in_order { a << 1 | b } else { b << 1 | a })
}

/// Packed position of the first sequenced base (5' end) of a read of this length, clipped bases included.
#[inline(always)]
pub fn five_prime_position(place: &Placement, length: usize) -> u64 {
    if place.reverse { place.right + length as u64 - 1 } else { place.left }
}

/// The best placement of a read, if it has the minimum score, all others have at most 80 % of its score and no position
/// list is deferred; otherwise `None`.
fn unique_placement<'a>(mapped: &'a MappedReads, read: usize, options: &ScoringOptions) -> Option<&'a Placement> {
    let (best, others) = mapped.placements_of_read(read).split_first()?;
    let sure = mapped.deferred_lists_of_read(read).is_empty()
        && best.score >= options.min_score
        && others.iter().all(|other| 5 * other.score <= 4 * best.score);
    sure.then_some(best)
}

/// Adds the insert size of the mates with numbers `first` and `first` + 1, if each mate has one clearly best placement,
/// both are on the same sequence, and the insert size is at most [`MAX_INSERT_SIZE_BP`].
pub fn record_insert_size_if_unique(
    insert_sizes: &mut InsertSizesByOrientation,
    view: &IndexView<'_>,
    mapped: &MappedReads,
    first: usize,
    options: &ScoringOptions,
) {
    let [Some(one), Some(two)] = [first, first + 1].map(|read| unique_placement(mapped, read, options)) else { return };
    let ends = [(one, first), (two, first + 1)]
        .map(|(place, read)| five_prime_position(place, mapped.packed.read_length(read)));
    let (far, orientation) = insert_size_and_orientation(ends, [one.reverse, two.reverse]);
    if far <= MAX_INSERT_SIZE_BP && view.contig_index_at(one.ref_start()) == view.contig_index_at(two.ref_start()) {
        insert_sizes[orientation].push(far as u32);
    }
}

impl InsertSizeModels {
    /// Estimates the distributions from the insert sizes of a block. `match_score` is the alignment score of a matching
    /// base.
    pub fn estimate_from_insert_sizes(
        mut insert_sizes: InsertSizesByOrientation,
        match_score: i32,
    ) -> InsertSizeModels {
        let most = insert_sizes.iter().map(Vec::len).max().unwrap_or(0);
        let all = insert_sizes.each_mut().map(|found| fit_insert_sizes(found, most, match_score));
        let farthest = all.iter().flatten().map(|insert| insert.high as u64 - 1).max().unwrap_or(0);
        InsertSizeModels { by_orientation: all, max_distance: farthest }
    }

    /// Score of the insert size of two mates with 5' ends at packed positions `ends` on strands `reverse`; `None` if
    /// the mates are not a proper pair. Whether both are on one sequence is not checked.
    #[inline(always)]
    pub(crate) fn score_of_proper_insert_size(&self, ends: [u64; 2], reverse: [bool; 2]) -> Option<i32> {
        if ends[0].abs_diff(ends[1]) > self.max_distance {
            return None;
        }
        let (far, orientation) = insert_size_and_orientation(ends, reverse);
        let insert = self.by_orientation[orientation].as_ref()?;
        let far = far as i64;
        (far >= insert.low && far <= insert.high).then(|| insert.scores[(far - insert.low) as usize])
    }
}

fn fit_insert_sizes(found: &mut [u32], most: usize, match_score: i32) -> Option<InsertSizeModel> {
    if found.len() < MIN_ORIENTATION_PAIRS || (found.len() as f64) < most as f64 * MIN_ORIENTATION_SHARE {
        return None;
    }
    found.sort_unstable();
    let n = found.len() as f64;
    let quantile = |q: f64| f64::from(found[(q * n + 0.499) as usize]);
    let (lower, upper) = (quantile(0.25), quantile(0.75));
    let range = upper - lower;
    let inside = |d: &&u32| {
        f64::from(**d) >= lower - OUTLIER_QUARTILE_RANGES * range
            && f64::from(**d) <= upper + OUTLIER_QUARTILE_RANGES * range
    };
    let count = found.iter().filter(inside).count() as f64;
    let mean = found.iter().filter(inside).map(|&d| f64::from(d)).sum::<f64>() / count;
    let variance = found.iter().filter(inside).map(|&d| (f64::from(d) - mean).powi(2)).sum::<f64>() / count;
    let deviation = variance.sqrt();
    let low =
        (lower - PROPER_QUARTILE_RANGES * range).min(mean - MIN_PROPER_STD_DEVS * deviation).round().max(1.0) as i64;
    let high = (upper + PROPER_QUARTILE_RANGES * range).max(mean + MIN_PROPER_STD_DEVS * deviation).round() as i64;
    // As in bwa: logarithm to base 4 of twice the probability of an insert size at least as far from the mean.
    let worth = |far: i64| {
        let away = (far as f64 - mean).abs() / deviation.max(1.0) * std::f64::consts::FRAC_1_SQRT_2;
        let seldom = (2.0 * libm::erfc(away)).max(1e-30);
        (0.721 * libm::log(seldom) * f64::from(match_score)).min(0.0).round().max(-30.0 * f64::from(match_score)) as i32
    };
    Some(InsertSizeModel { low, high, mean, deviation, scores: (low..=high).map(worth).collect() })
}
