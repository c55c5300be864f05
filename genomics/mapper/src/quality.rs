//! How sure a place is: mapping qualities on bwa mem's scale (Li 2013), less what copies nobody looked at may hide.

use crate::options::Options;
use crate::place::Place;

/// The greatest quality.
pub const MOST: i32 = 60;
/// A rival's score at least: that of a seed by chance.
const BY_CHANCE: i32 = 19;
/// Differences that a place nobody looked at has besides those that are certain.
const ELSEWHERE: u16 = 4;
/// The same for a read alone, whose mate would have to fit there, too; twice as many where all places of its seeds were looked at.
const ALONE: u16 = 4;
/// Share of a read that has to be aligned for the greatest quality, and what is taken from it if nothing were.
const CLIPPED: f64 = 0.9;
const UNEXPLAINED: i32 = 20;
/// bwa's: points of quality a point of score is worth; aligned bases from which on a point is worth less.
const SLOPE: f64 = 6.02;
const SHORT: f64 = 50.0;
/// How much less, over the logarithm of the aligned bases: bwa has 3. Here a point says more, as places that nobody looked at are reckoned with.
const FACTOR: f64 = 3.4;

/// 10 log10 of a number of copies.
pub fn copies(n: u32) -> f64 {
    if n == 0 { 0.0 } else { 4.343 * libm::log(f64::from(n)) }
}

/// What speaks against a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rivals {
    /// The best score of another place of the same bases; none if there is no such place.
    pub best: Option<i32>,
    /// Places about as good as that.
    pub near: u32,
}

/// The rivals of place `of` of a read. Places on ALT contigs are none of one in the primary assembly.
pub fn rivals(places: &[Place], of: usize, length: usize, options: &Options) -> Rivals {
    let this = &places[of];
    let same = |other: &&Place| (this.alt || !other.alt) && !other.elsewhere(this, length);
    let others = || places.iter().enumerate().filter(|(i, _)| *i != of).map(|(_, other)| other).filter(same);
    let best = others().map(|other| other.score).max();
    let step = options.differs + options.equal + 1;
    let near = best.map_or(0, |best| others().filter(|other| other.score >= best - step).count() as u32);
    Rivals { best, near }
}

/// The score that a place could have which was not looked at, while so many seeds' places were that do not overlap.
pub fn unseen(sure: u16, length: usize, options: &Options) -> i32 {
    length as i32 * options.equal - (options.equal + options.differs) * i32::from(sure)
}

/// The same as it is likely: hardly any place has just one difference in each of those seeds and none elsewhere.
pub(crate) fn likely_unseen(sure: u16, copies: u32, length: usize, options: &Options) -> i32 {
    unseen(sure + elsewhere(copies), length, options)
}

/// Differences that a place which nobody looked at has at least besides those that are certain: one less for every
/// tenfold of copies, as the best of more has fewer.
fn elsewhere(copies: u32) -> u16 {
    ELSEWHERE.saturating_sub(copies.checked_ilog10().unwrap_or(0) as u16)
}

/// What the gaps of a place cost at least: as much as one gap between its first diagonal and its last one.
fn gaps(place: &Place, options: &Options) -> i32 {
    let longer = (place.right as i64 - place.left as i64) as i32;
    match longer {
        0 => 0,
        1.. => options.open[0] + options.extend[0] * longer,
        _ => options.open[1] - (options.extend[1] + options.equal) * longer,
    }
}

/// The quality of a place by what is known of its read alone; `sure`: its seeds that do not overlap and of which all places were looked at.
pub fn alone(
    place: &Place,
    rivals: Rivals,
    sure: u16,
    waiting: bool,
    length: usize,
    options: &Options,
) -> i32 {
    let mut next = rivals.best.unwrap_or(0).max(BY_CHANCE * options.equal);
    let near = if rivals.best.is_some_and(|best| best > BY_CHANCE * options.equal) { rivals.near } else { 0 };
    // Where no list waits, a place that was not found differs in all seeds, not only in some that do not overlap.
    let elsewhere = if waiting || sure == 0 { ALONE } else { 2 * ALONE };
    let elsewhere = usize::from(elsewhere) * place.aligned() / length;
    // Gaps cost such a place what they cost this one.
    let unseen = unseen(sure + elsewhere as u16, place.aligned(), options) - gaps(place, options);
    next = next.max(unseen);
    if next >= place.score {
        return 0;
    }
    let aligned = place.aligned() as f64;
    let (equal, lost) = (f64::from(options.equal), f64::from(options.equal + options.differs));
    let identity = 1.0 - (aligned * equal - f64::from(place.score)) / lost / aligned;
    let worth = if aligned < SHORT { 1.0 } else { FACTOR / libm::log(aligned) } * identity;
    let mut quality = (SLOPE * f64::from(place.score - next) / equal * worth * worth + 0.499) as i32;
    if near > 0 {
        quality -= (copies(near + 1) + 0.499) as i32;
    }
    quality.clamp(0, MOST)
}

/// The greatest quality of a place: bases that are not aligned are a difference that nothing explains.
pub fn most(place: &Place, length: usize) -> i32 {
    let aligned = (place.aligned() as f64 / (CLIPPED * length as f64)).min(1.0);
    MOST - (f64::from(UNEXPLAINED) * (1.0 - aligned)).ceil() as i32
}

/// The quality of a pair: `ahead` points better than the next one, with `near` pairs about as good as that.
pub fn of_pair(ahead: i32, near: u32, copied: f64, options: &Options) -> i32 {
    let mut quality = (SLOPE * f64::from(ahead) / f64::from(options.equal) + 0.499) as i32;
    if near > 0 {
        quality -= (copies(near + 1) + 0.499) as i32;
    }
    (quality - copied as i32).clamp(0, MOST)
}
