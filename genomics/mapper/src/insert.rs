//! How far mates are from each other, as bwa mem estimates it (Li 2013): from pairs that each have one certain place.

use crate::index::View;
use crate::mapper::Draft;
use crate::options::Options;
use crate::place::Place;

/// Distances (bp) by how the mates lie, the first on the reference being `+` or `-`, then the other: FF, FR, RF, RR.
pub type Distances = [Vec<u32>; 4];

/// Longest distance that is looked at (bp).
const FARTHEST: u64 = 10_000;
/// Fewest pairs of an orientation that count, and their share of the commonest.
const FEWEST: usize = 10;
const SMALLEST_SHARE: f64 = 0.05;
/// In quartile ranges beyond the quartiles: what counts for mean and deviation, and what is proper; in deviations from the mean: what is proper at least.
const OUTLIER: f64 = 2.0;
const PROPER: f64 = 3.0;
const DEVIATIONS: f64 = 4.0;

/// What pairs of one orientation are like.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// Least and greatest distance of a proper pair (bp).
    pub low: i64,
    /// See `low`.
    pub high: i64,
    /// Mean and standard deviation (bp).
    pub mean: f64,
    /// See `mean`.
    pub deviation: f64,
    /// What each distance from `low` on is worth: 0 at most.
    worth: Vec<i32>,
}

/// What a block of pairs says: an insert for each orientation that there is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inserts {
    /// FF, FR, RF, RR.
    pub all: [Option<Insert>; 4],
    /// The greatest distance of any (bp), less one.
    pub farthest: u64,
}

/// Distance between the ends of mates that were sequenced first (bp), and their orientation; of mates on one sequence. `ends` are those ends.
#[inline(always)]
fn between(ends: [u64; 2], reverse: [bool; 2]) -> (u64, usize) {
    let [a, b] = reverse.map(usize::from);
    let in_order = (ends[0], a) <= (ends[1], b);
    (ends[0].abs_diff(ends[1]) + 1, if in_order { a << 1 | b } else { b << 1 | a })
}

/// The packed base at which the first sequenced base of a read of that length lies, or would if it were not clipped.
#[inline(always)]
pub fn first_base(place: &Place, length: usize) -> u64 {
    if place.reverse { place.right + length as u64 - 1 } else { place.left }
}

/// The one place of a read, if it is certain.
fn certain<'a>(draft: &'a Draft, read: usize, options: &Options) -> Option<&'a Place> {
    let (best, others) = draft.of(read).split_first()?;
    let sure = draft.waiting_of(read).is_empty()
        && best.score >= options.least
        && others.iter().all(|other| 5 * other.score <= 4 * best.score);
    sure.then_some(best)
}

/// Adds what a pair says, of which `first` is the first read, if both have one certain place.
pub fn add(distances: &mut Distances, view: &View<'_>, draft: &Draft, first: usize, options: &Options) {
    let [Some(one), Some(two)] = [first, first + 1].map(|read| certain(draft, read, options)) else { return };
    let ends =
        [(one, first), (two, first + 1)].map(|(place, read)| first_base(place, draft.packed.length(read)));
    let (far, orientation) = between(ends, [one.reverse, two.reverse]);
    if far <= FARTHEST && view.contig_at(one.start()) == view.contig_at(two.start()) {
        distances[orientation].push(far as u32);
    }
}

impl Inserts {
    /// What the distances of a block say, with what a match is worth.
    pub fn new(mut distances: Distances, equal: i32) -> Inserts {
        let most = distances.iter().map(Vec::len).max().unwrap_or(0);
        let all = distances.each_mut().map(|found| insert(found, most, equal));
        let farthest = all.iter().flatten().map(|insert| insert.high as u64 - 1).max().unwrap_or(0);
        Inserts { all, farthest }
    }

    /// What the distance of mates is worth whose first sequenced bases lie there; none where they do not lie as mates do.
    #[inline(always)]
    pub fn worth(&self, ends: [u64; 2], reverse: [bool; 2]) -> Option<i32> {
        if ends[0].abs_diff(ends[1]) > self.farthest {
            return None;
        }
        let (far, orientation) = between(ends, reverse);
        let insert = self.all[orientation].as_ref()?;
        let far = far as i64;
        (far >= insert.low && far <= insert.high).then(|| insert.worth[(far - insert.low) as usize])
    }
}

fn insert(found: &mut [u32], most: usize, equal: i32) -> Option<Insert> {
    if found.len() < FEWEST || (found.len() as f64) < most as f64 * SMALLEST_SHARE {
        return None;
    }
    found.sort_unstable();
    let n = found.len() as f64;
    let quantile = |q: f64| f64::from(found[(q * n + 0.499) as usize]);
    let (lower, upper) = (quantile(0.25), quantile(0.75));
    let range = upper - lower;
    let inside =
        |d: &&u32| f64::from(**d) >= lower - OUTLIER * range && f64::from(**d) <= upper + OUTLIER * range;
    let count = found.iter().filter(inside).count() as f64;
    let mean = found.iter().filter(inside).map(|&d| f64::from(d)).sum::<f64>() / count;
    let variance = found.iter().filter(inside).map(|&d| (f64::from(d) - mean).powi(2)).sum::<f64>() / count;
    let deviation = variance.sqrt();
    let low = (lower - PROPER * range).min(mean - DEVIATIONS * deviation).round().max(1.0) as i64;
    let high = (upper + PROPER * range).max(mean + DEVIATIONS * deviation).round() as i64;
    // bwa's: the logarithm, to base 4, of how seldom a distance as unusual as this is.
    let worth = |far: i64| {
        let away = (far as f64 - mean).abs() / deviation.max(1.0) * std::f64::consts::FRAC_1_SQRT_2;
        let seldom = (2.0 * libm::erfc(away)).max(1e-30);
        (0.721 * libm::log(seldom) * f64::from(equal)).min(0.0).round().max(-30.0 * f64::from(equal)) as i32
    };
    Some(Insert { low, high, mean, deviation, worth: (low..=high).map(worth).collect() })
}
