//! p-values of weighted counts, and confidence intervals of proportions.

use libm::lgamma;

/// Regularised incomplete beta function: probability that a variable with the distribution Beta(a, b) is below `x`.
pub(crate) fn regularised_incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The continued fraction converges fast only on this side of the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - regularised_incomplete_beta(b, a, 1.0 - x);
    }
    let front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    let away = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    // Lentz's algorithm for the continued fraction.
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut h = d;
    for m in (1..300).map(f64::from) {
        for step in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + step * d);
            c = away(1.0 + step / c);
            h *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-12 {
            break;
        }
    }
    (front.exp() * h / a).min(1.0)
}

/// Finds `x` in 0..1 with `f(x) = level` for an increasing function `f`, by bisection.
fn solve_increasing(level: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if f(middle) < level { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// 95% confidence interval (Clopper and Pearson 1934) of a proportion if `found` of `total` observations have the
/// property. Returns the lower and the upper limit.
pub(crate) fn binomial_confidence_interval(found: u64, total: u64) -> [f64; 2] {
    let (x, n) = (found as f64, total as f64);
    let low =
        if found == 0 { 0.0 } else { solve_increasing(0.025, |p| regularised_incomplete_beta(x, n - x + 1.0, p)) };
    let high =
        if found >= total { 1.0 } else { solve_increasing(0.975, |p| regularised_incomplete_beta(x + 1.0, n - x, p)) };
    [low, high]
}

/// A count of molecules with the number expected from errors and a weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WeightedObservedAndExpected {
    /// Number of molecules expected from errors alone.
    pub expected: f64,
    /// Weight of one molecule in the weighted sum, at least 0.
    pub weight: f64,
    /// Number of molecules observed with the change.
    pub found: u64,
    /// Shape of the gamma distribution that describes the uncertainty of `expected`; a large number means that
    /// `expected` is exact.
    pub gamma_shape: f64,
}

/// Number of integer steps to which the largest weight is rounded.
const WEIGHT_STEPS: f64 = 16.0;
/// Largest weighted sum, in steps, for which the p-value is computed exactly.
const MAX_EXACT_SUM: usize = 4096;
/// Largest expected number of molecules for which the p-value is computed exactly.
const MAX_EXACT_EXPECTED: f64 = 500.0;
/// Smallest p-value that the exact computation resolves.
const MIN_EXACT_PROBABILITY: f64 = 1e-9;

/// p-value of the observed weighted sum: the probability that errors alone give this sum or a larger one. Exact except
/// for the rounding of weights. If the computation would take long, or the p-value is very small, it returns an upper
/// bound.
pub(crate) fn weighted_sum_p_value(cells: &[WeightedObservedAndExpected]) -> f64 {
    let heaviest = cells.iter().map(|c| c.weight).fold(0.0, f64::max);
    if heaviest <= 0.0 {
        return 1.0;
    }
    let steps: Vec<(usize, &WeightedObservedAndExpected)> =
        cells.iter().map(|c| ((c.weight / heaviest * WEIGHT_STEPS).round() as usize, c)).filter(|c| c.0 > 0).collect();
    let sum: usize = steps.iter().map(|(w, c)| w * c.found as usize).sum();
    if sum == 0 {
        return 1.0;
    }
    let expected: f64 = steps.iter().map(|(_, c)| c.expected).sum();
    let bound = chernoff_bound(&steps, sum as f64);
    if sum > MAX_EXACT_SUM || expected > MAX_EXACT_EXPECTED {
        return bound;
    }
    let exact = 1.0 - probability_below(&steps, sum);
    if exact > MIN_EXACT_PROBABILITY { exact.min(1.0) } else { bound.min(MIN_EXACT_PROBABILITY) }
}

/// Probability that errors alone give a weighted sum below `sum`.
///
/// A count with a gamma distributed expectation is a Poisson number of groups, few of which have more than one
/// member. The groups of all counts form one compound Poisson process, whose sums are computed recursively (Panjer
/// 1981).
fn probability_below(steps: &[(usize, &WeightedObservedAndExpected)], sum: usize) -> f64 {
    let mut groups = vec![0.0; sum];
    let mut rate = 0.0;
    for (weight, cell) in steps {
        let q = cell.expected / (cell.gamma_shape + cell.expected);
        rate += -cell.gamma_shape * (-q).ln_1p();
        let mut power = 1.0;
        for (size, total) in (1..).map(|size| (size, size * weight)).take_while(|g| g.1 < sum) {
            power *= q;
            groups[total] += cell.gamma_shape * power / size as f64;
        }
    }
    let mut p = vec![(-rate).exp()];
    for n in 1..sum {
        let next: f64 = (1..=n).map(|m| m as f64 * groups[m] * p[n - m]).sum();
        p.push(next / n as f64);
    }
    p.iter().sum()
}

/// Chernoff's upper bound of the probability that errors alone give a weighted sum of at least `sum`.
fn chernoff_bound(steps: &[(usize, &WeightedObservedAndExpected)], sum: f64) -> f64 {
    // Logarithm of the mean of exp(s * sum), less s times the observed sum: the minimum over s is the logarithm of
    // the bound.
    let at = |s: f64| -> f64 {
        let of = |(w, c): &(usize, &WeightedObservedAndExpected)| {
            let grown = c.expected / c.gamma_shape * (s * *w as f64).exp_m1();
            if grown < 1.0 { -c.gamma_shape * (-grown).ln_1p() } else { f64::INFINITY }
        };
        steps.iter().map(of).sum::<f64>() - s * sum
    };
    // The function is convex: ternary search on an interval that contains the minimum.
    let (mut low, mut high) = (0.0, 40.0 / WEIGHT_STEPS);
    for _ in 0..200 {
        let (one, two) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if at(one) <= at(two) { high = two } else { low = one }
    }
    at(low).min(0.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_tables() {
        let near = |found: [f64; 2], wanted: [f64; 2]| {
            assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 2e-4), "{found:?}");
        };
        near(binomial_confidence_interval(0, 10), [0.0, 0.3085]);
        near(binomial_confidence_interval(1, 10), [0.0025, 0.4450]);
        near(binomial_confidence_interval(5, 10), [0.1871, 0.8129]);
        near(binomial_confidence_interval(10, 10), [0.6915, 1.0]);
        near(binomial_confidence_interval(3, 2000), [0.00031, 0.00438]);
        near(binomial_confidence_interval(0, 0), [0.0, 1.0]);
    }

    fn cell(expected: f64, weight: f64, found: u64, gamma_shape: f64) -> WeightedObservedAndExpected {
        WeightedObservedAndExpected { expected, weight, found, gamma_shape }
    }

    #[test]
    fn tails_of_one_cell_are_poissons_and_wider_where_cells_are_uneven() {
        let poisson = |mean: f64, from: u64| {
            let mut term = (-mean).exp();
            let mut sum = 0.0;
            for i in 0..from {
                sum += term;
                term *= mean / (i + 1) as f64;
            }
            1.0 - sum
        };
        for (mean, found) in [(0.05, 1), (0.5, 2), (3.0, 9), (40.0, 60)] {
            let p = weighted_sum_p_value(&[cell(mean, 2.5, found, 1e9)]);
            assert!((p / poisson(mean, found) - 1.0).abs() < 1e-4, "{mean} {found}: {p}");
            assert!(found == 1 || weighted_sum_p_value(&[cell(mean, 1.0, found, 2.0)]) > p);
        }
        assert_eq!(weighted_sum_p_value(&[cell(0.5, 1.0, 0, 10.0)]), 1.0);
        assert_eq!(weighted_sum_p_value(&[]), 1.0);
        // Far in the tail, and for large sums, a bound: small, but never rounded to 0.
        let far = weighted_sum_p_value(&[cell(1.0, 1.0, 40, 1e9)]);
        assert!(far > 0.0 && far < 1e-40, "{far}");
        let many = weighted_sum_p_value(&[cell(2000.0, 1.0, 2200, 1e9)]);
        assert!((1e-6..1e-3).contains(&many), "{many}");
    }

    #[test]
    fn what_weighs_more_says_more() {
        let quiet = |found| [cell(0.2, 1.0, found, 1e9), cell(5.0, 0.1, 5, 1e9)];
        let (none, three) = (weighted_sum_p_value(&quiet(0)), weighted_sum_p_value(&quiet(3)));
        assert!(none > 0.4 && three < 0.01, "{none} {three}");
        // As many more of the frequent count are weak evidence.
        let loud = weighted_sum_p_value(&[cell(0.2, 1.0, 0, 1e9), cell(5.0, 0.1, 8, 1e9)]);
        assert!(loud > 0.1, "{loud}");
    }
}
