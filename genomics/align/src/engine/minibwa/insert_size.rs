//! Estimates the insert sizes of a block of pairs as minibwa does (`mb_pestat` in its `pe.c`).
//!
//! Implemented again because the hits of a block are on several workers: each batch contributes only its insert
//! sizes. A test compares the estimate with that of minibwa.

use super::ffi::{Hit, InsertSizeRange, MappingOptions};

/// Insert sizes (bp) of pairs in which each mate has one unique hit, by orientation: FF, FR, RF, RR.
pub(super) type InsertSizesByOrientation = [Vec<u32>; 4];

/// Minimum number of pairs in a block for an estimate; minibwa's value.
const MIN_BLOCK_PAIRS: u64 = 20;
/// Minimum number of pairs with an orientation; minibwa's value.
const MIN_ORIENTATION_PAIRS: usize = 20;
/// Minimum number of pairs with an orientation, as a share of the most common orientation; minibwa's value.
const MIN_ORIENTATION_SHARE: f64 = 0.05;
/// Minimum mapping quality of a mate that counts; minibwa's value.
const MIN_MAPQ: i32 = 10;
/// Insert sizes farther from the quartiles than this many interquartile ranges do not count for mean and standard
/// deviation; minibwa's value.
const OUTLIER_QUARTILE_RANGES: f64 = 2.0;
/// Insert sizes farther from the quartiles than this many interquartile ranges are not proper pairs; minibwa's value.
const PROPER_QUARTILE_RANGES: f64 = 3.0;
/// Insert sizes within this many standard deviations of the mean are proper pairs in any case; minibwa's value.
const MIN_PROPER_STD_DEVS: f64 = 4.0;

/// The primary hit of a read, if the read has only one and the mapping quality of the hit is high enough.
fn unique_hit(hits: &[Hit]) -> Option<&Hit> {
    let mut primary = hits.iter().filter(|h| h.raw_hit().id == h.raw_hit().parent);
    let only = primary.next()?;
    (primary.next().is_none() && only.raw_hit().mapq >= MIN_MAPQ).then_some(only)
}

/// Adds the insert size of a pair, if both mates have a unique hit.
pub(super) fn add_pair(insert_sizes: &mut InsertSizesByOrientation, mates: [&[Hit]; 2], opts: &MappingOptions) {
    let [Some(one), Some(two)] = mates.map(unique_hit) else { return };
    if one.raw_hit().tid != two.raw_hit().tid {
        return;
    }
    let end = |hit: &Hit| if hit.is_reverse() { hit.raw_hit().te } else { hit.raw_hit().ts };
    let (a, b) = (end(one), end(two));
    let distance = a.abs_diff(b);
    if distance < opts.raw_options().max_pe_ins.max(0) as u64 {
        let strands = usize::from(one.is_reverse()) << 1 | usize::from(two.is_reverse());
        insert_sizes[if a < b { strands } else { strands ^ 3 }].push(distance as u32);
    }
}

/// Estimates the insert sizes of a block of `pairs` pairs, by orientation.
pub(super) fn estimate_insert_sizes(
    pairs: u64,
    mut insert_sizes: InsertSizesByOrientation,
    opts: &MappingOptions,
) -> [InsertSizeRange; 4] {
    if pairs < MIN_BLOCK_PAIRS {
        let opts = opts.raw_options();
        let default_range = InsertSizeRange {
            low: opts.pe_lo,
            high: opts.pe_hi,
            failed: 0,
            mean: f64::from(opts.pe_avg),
            deviation: f64::from(opts.pe_std),
        };
        return std::array::from_fn(|i| {
            if i == 1 { default_range } else { InsertSizeRange { failed: 1, ..InsertSizeRange::default() } }
        });
    }
    let most = insert_sizes.iter().map(Vec::len).max().unwrap_or(0);
    insert_sizes.each_mut().map(|found| estimate_orientation(found, most))
}

fn estimate_orientation(found: &mut [u32], most: usize) -> InsertSizeRange {
    if found.len() < MIN_ORIENTATION_PAIRS || (found.len() as f64) < most as f64 * MIN_ORIENTATION_SHARE {
        return InsertSizeRange { failed: 1, ..InsertSizeRange::default() };
    }
    found.sort_unstable();
    let n = found.len() as f64;
    let quantile = |q: f64| f64::from(found[(q * n + 0.499) as usize]);
    let (lower, upper) = (quantile(0.25), quantile(0.75));
    let range = upper - lower;
    let low = ((lower - OUTLIER_QUARTILE_RANGES * range + 0.499) as i32).max(1);
    let high = (upper + OUTLIER_QUARTILE_RANGES * range + 0.499) as i32;
    let inside = || found.iter().map(|&d| i64::from(d)).filter(|d| (i64::from(low)..=i64::from(high)).contains(d));
    let count = inside().count() as f64;
    let mean = inside().fold(0.0, |sum, d| sum + d as f64) / count;
    let variance = inside().fold(0.0, |sum, d| sum + (d as f64 - mean) * (d as f64 - mean)) / count;
    let deviation = variance.sqrt();
    let mut low = (lower - PROPER_QUARTILE_RANGES * range + 0.499) as i32;
    let mut high = (upper + PROPER_QUARTILE_RANGES * range + 0.499) as i32;
    if f64::from(low) > mean - MIN_PROPER_STD_DEVS * deviation {
        low = (mean - MIN_PROPER_STD_DEVS * deviation + 0.499) as i32;
    }
    if f64::from(high) < mean + MIN_PROPER_STD_DEVS * deviation {
        high = (mean + MIN_PROPER_STD_DEVS * deviation + 0.499) as i32;
    }
    InsertSizeRange { low: low.max(1), high, failed: 0, mean, deviation }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ffi::oracle;
    use super::*;

    fn insert_sizes() -> impl Strategy<Value = InsertSizesByOrientation> {
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
        /// The same insert sizes for each pair, and the same estimate to the last bit.
        #[test]
        fn it_is_what_minibwa_estimates(insert_sizes in insert_sizes()) {
            let opts = MappingOptions::new(None);
            let pairs: u64 = insert_sizes.iter().map(|d| d.len() as u64).sum();
            prop_assume!(pairs >= MIN_BLOCK_PAIRS);
            let (theirs, seen) = oracle::estimate(&opts, &insert_sizes);
            prop_assert_eq!(&seen, &insert_sizes);
            let ours = estimate_insert_sizes(pairs, insert_sizes, &opts);
            for (a, b) in ours.iter().zip(&theirs) {
                if a.failed == 0 || b.failed == 0 {
                    prop_assert_eq!(a, b);
                }
            }
        }
    }

    #[test]
    fn few_pairs_leave_the_defaults() {
        let opts = MappingOptions::new(None);
        let few = estimate_insert_sizes(MIN_BLOCK_PAIRS - 1, [vec![], vec![300; 19], vec![], vec![]], &opts);
        assert_eq!((few[1].low, few[1].high, few[1].mean, few[1].deviation), (50, 800, 400.0, 100.0));
        assert_eq!(few.map(|i| i.failed), [1, 0, 1, 1]);
    }
}
