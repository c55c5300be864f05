//! Where most of a sample's occurrences lie.

/// How often a sample has a root of a single place: where most of its occurrences lie. Of roots that the other sample has, so that errors do not count.
pub fn usual(depths: &[u64]) -> f64 {
    // A panel has no peak: what half of the occurrences lie below.
    let last = depths.len() - 1;
    let mass = |depth: usize| depth as u64 * depths[depth];
    let all: u64 = (2..last).map(mass).sum();
    let mut left = all / 2;
    let middle = (2..last).find(|&depth| {
        let found = mass(depth) > left;
        left = left.saturating_sub(mass(depth));
        found
    });
    let middle = middle.unwrap_or(1);
    // A peak there is beside it, if there is one.
    let peak =
        (middle / 2..(middle * 2).min(last)).max_by_key(|&depth| (mass(depth), std::cmp::Reverse(depth)));
    peak.unwrap_or(middle).max(1) as f64
}
