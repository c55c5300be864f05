//! The distance between mates, estimated from the pairs of a block as minibwa does it (`mb_pestat` in its `pe.c`).
//!
//! Written again because it has to see a whole block while the hits of that block lie with many workers: each piece
//! gives the few numbers that matter. A test holds it against the original.

use super::ffi::{Hit, Insert, Opts};

/// Distances (bp) of mates that each have one certain place, by orientation: FF, FR, RF, RR.
pub(super) type Distances = [Vec<u32>; 4];

/// Pairs of a block under which nothing is estimated.
const FEWEST_PAIRS: u64 = 20;
/// Distances of an orientation under which it counts as absent, and their share of the commonest one.
const FEWEST: usize = 20;
const SMALLEST_SHARE: f64 = 0.05;
/// Smallest mapping quality of a mate that counts.
const SURE: i32 = 10;
/// In quartile ranges beyond the quartiles: what counts for mean and deviation, and what is a proper pair.
const OUTLIER: f64 = 2.0;
const PROPER: f64 = 3.0;
/// In deviations from the mean: what is a proper pair at least.
const DEVIATIONS: f64 = 4.0;

/// The one primary hit, if its place is sure.
fn certain(hits: &[Hit]) -> Option<&Hit> {
    let mut primary = hits.iter().filter(|h| h.get().id == h.get().parent);
    let only = primary.next()?;
    (primary.next().is_none() && only.get().mapq >= SURE).then_some(only)
}

/// Adds what a pair says.
pub(super) fn add(distances: &mut Distances, mates: [&[Hit]; 2], opts: &Opts) {
    let [Some(one), Some(two)] = mates.map(certain) else { return };
    if one.get().tid != two.get().tid {
        return;
    }
    let end = |hit: &Hit| if hit.reverse() { hit.get().te } else { hit.get().ts };
    let (a, b) = (end(one), end(two));
    let distance = a.abs_diff(b);
    if distance < opts.get().max_pe_ins.max(0) as u64 {
        let strands = usize::from(one.reverse()) << 1 | usize::from(two.reverse());
        distances[if a < b { strands } else { strands ^ 3 }].push(distance as u32);
    }
}

/// What a block of that many pairs says.
pub(super) fn inserts(pairs: u64, mut distances: Distances, opts: &Opts) -> [Insert; 4] {
    if pairs < FEWEST_PAIRS {
        let opts = opts.get();
        let told = Insert {
            low: opts.pe_lo,
            high: opts.pe_hi,
            failed: 0,
            mean: f64::from(opts.pe_avg),
            deviation: f64::from(opts.pe_std),
        };
        return std::array::from_fn(
            |i| if i == 1 { told } else { Insert { failed: 1, ..Insert::default() } },
        );
    }
    let most = distances.iter().map(Vec::len).max().unwrap_or(0);
    distances.each_mut().map(|found| insert(found, most))
}

fn insert(found: &mut [u32], most: usize) -> Insert {
    if found.len() < FEWEST || (found.len() as f64) < most as f64 * SMALLEST_SHARE {
        return Insert { failed: 1, ..Insert::default() };
    }
    found.sort_unstable();
    let n = found.len() as f64;
    let quantile = |q: f64| f64::from(found[(q * n + 0.499) as usize]);
    let (lower, upper) = (quantile(0.25), quantile(0.75));
    let range = upper - lower;
    let low = ((lower - OUTLIER * range + 0.499) as i32).max(1);
    let high = (upper + OUTLIER * range + 0.499) as i32;
    let inside =
        || found.iter().map(|&d| i64::from(d)).filter(|d| (i64::from(low)..=i64::from(high)).contains(d));
    let count = inside().count() as f64;
    let mean = inside().fold(0.0, |sum, d| sum + d as f64) / count;
    let variance = inside().fold(0.0, |sum, d| sum + (d as f64 - mean) * (d as f64 - mean)) / count;
    let deviation = variance.sqrt();
    let mut low = (lower - PROPER * range + 0.499) as i32;
    let mut high = (upper + PROPER * range + 0.499) as i32;
    if f64::from(low) > mean - DEVIATIONS * deviation {
        low = (mean - DEVIATIONS * deviation + 0.499) as i32;
    }
    if f64::from(high) < mean + DEVIATIONS * deviation {
        high = (mean + DEVIATIONS * deviation + 0.499) as i32;
    }
    Insert { low: low.max(1), high, failed: 0, mean, deviation }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ffi::oracle;
    use super::*;

    fn distances() -> impl Strategy<Value = Distances> {
        let normal = (50u32..3000, 1u32..300)
            .prop_flat_map(|(middle, spread)| prop::collection::vec(middle..middle + spread, 0..400));
        let any = prop::collection::vec(0u32..10_000, 0..60);
        let one = (normal, any).prop_map(|(mut a, b)| {
            a.extend(b);
            a
        });
        [one.clone(), one.clone(), one.clone(), one]
    }

    proptest! {
        /// Pair by pair the same distances, and from them the same estimate to the last bit.
        #[test]
        fn it_is_what_minibwa_estimates(distances in distances()) {
            let opts = Opts::new(None);
            let pairs: u64 = distances.iter().map(|d| d.len() as u64).sum();
            prop_assume!(pairs >= FEWEST_PAIRS);
            let (theirs, seen) = oracle::estimate(&opts, &distances);
            prop_assert_eq!(&seen, &distances);
            let ours = inserts(pairs, distances, &opts);
            for (a, b) in ours.iter().zip(&theirs) {
                if a.failed == 0 || b.failed == 0 {
                    prop_assert_eq!(a, b);
                }
            }
        }
    }

    #[test]
    fn few_pairs_leave_the_defaults() {
        let opts = Opts::new(None);
        let few = inserts(FEWEST_PAIRS - 1, [vec![], vec![300; 19], vec![], vec![]], &opts);
        assert_eq!((few[1].low, few[1].high, few[1].mean, few[1].deviation), (50, 800, 400.0, 100.0));
        assert_eq!(few.map(|i| i.failed), [1, 0, 1, 1]);
    }
}
