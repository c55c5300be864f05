//! Estimation of the modal depth and the median depth from depth histograms.

/// Median of counts in which each count is weighted by itself: half of all counted items belong to counts at least this
/// large. `None` without counts.
pub(crate) fn self_weighted_median(mut counts: Vec<u32>) -> Option<u32> {
    counts.sort_unstable();
    let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let mut sum = 0;
    counts.into_iter().find(|&count| {
        sum += u64::from(count);
        2 * sum >= all
    })
}

/// Estimates the modal depth: the number of molecules that contain a root of single-copy sequence, at the peak of the
/// histogram.
///
/// `depth_histogram[d]` is the number of roots with depth d; the last entry also contains all deeper roots and is
/// ignored. Only roots that the other sample has too may be counted, so that sequencing errors do not matter. The
/// method finds the depth at which half of the occurrences (depth × roots) at depths of 2 and more are reached, then
/// takes the depth with most occurrences between half and twice that depth. Returns at least 1.
pub(crate) fn estimate_modal_depth(depth_histogram: &[u64]) -> f64 {
    // The median of the occurrences works for targeted panels too, whose histogram has no peak.
    let last = depth_histogram.len() - 1;
    let mass = |depth: usize| depth as u64 * depth_histogram[depth];
    let all: u64 = (2..last).map(mass).sum();
    let mut left = all / 2;
    let middle = (2..last).find(|&depth| {
        let found = mass(depth) > left;
        left = left.saturating_sub(mass(depth));
        found
    });
    let middle = middle.unwrap_or(1);
    // The peak, if there is one, is near the median.
    let peak = (middle / 2..(middle * 2).min(last)).max_by_key(|&depth| (mass(depth), std::cmp::Reverse(depth)));
    peak.unwrap_or(middle).max(1) as f64
}
