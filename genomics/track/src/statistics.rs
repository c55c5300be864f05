//! What chance makes: tails of counts, intervals of shares.

/// Natural logarithm of the gamma function, for `x` above 0 (Lanczos' series with seven terms).
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const C: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let tail = C.iter().zip(1..).fold(1.000_000_000_190_015, |sum, (c, i)| sum + c / (x + f64::from(i)));
    let t = x + 5.5;
    (x + 0.5) * t.ln() - t + (2.506_628_274_631_000_5 * tail / x).ln()
}

/// The regularised incomplete beta function: the share of a beta distribution below `x`.
pub(crate) fn beta_below(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges fast on this side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_below(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    let away = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    // Lentz' way through the continued fraction.
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

/// Where a function that rises over 0..1 reaches `level`.
fn reaches(level: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if f(middle) < level { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The interval that holds a share with 95%, of which `found` of `all` bear witness (Clopper and Pearson).
pub fn interval(found: u64, all: u64) -> [f64; 2] {
    let (x, n) = (found as f64, all as f64);
    let low = if found == 0 { 0.0 } else { reaches(0.025, |p| beta_below(x, n - x + 1.0, p)) };
    let high = if found >= all { 1.0 } else { reaches(0.975, |p| beta_below(x + 1.0, n - x, p)) };
    [low, high]
}

/// Counts that come together: how many are expected, what each weighs, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Expected by errors alone.
    pub expected: f64,
    /// Weight of one, 0 and up.
    pub weight: f64,
    /// Seen.
    pub found: u64,
    /// How even cells are: expectations are those of a gamma distribution of this shape (a large number: exact).
    pub shape: f64,
}

/// Steps into which the largest weight is divided.
const STEPS: f64 = 16.0;
/// Largest sum, in steps, and largest expectation for which the distribution is made step by step.
const LARGEST: usize = 4096;
const MOST_EXPECTED: f64 = 500.0;
/// A sum of many terms tells no smaller probability.
const EXACT: f64 = 1e-9;

/// Probability that errors alone make as large a weighted sum as was seen, or a larger one. Exact but for the rounding of weights, which both sides share; where that
/// would take long, or is very small, a bound above it.
pub fn tail(cells: &[Cell]) -> f64 {
    let heaviest = cells.iter().map(|c| c.weight).fold(0.0, f64::max);
    if heaviest <= 0.0 {
        return 1.0;
    }
    let steps: Vec<(usize, &Cell)> = cells
        .iter()
        .map(|c| ((c.weight / heaviest * STEPS).round() as usize, c))
        .filter(|c| c.0 > 0)
        .collect();
    let sum: usize = steps.iter().map(|(w, c)| w * c.found as usize).sum();
    if sum == 0 {
        return 1.0;
    }
    let expected: f64 = steps.iter().map(|(_, c)| c.expected).sum();
    let bound = bound(&steps, sum as f64);
    if sum > LARGEST || expected > MOST_EXPECTED {
        return bound;
    }
    let exact = 1.0 - below(&steps, sum);
    if exact > EXACT { exact.min(1.0) } else { bound.min(EXACT) }
}

/// Probability of a sum below `sum`.
///
/// A count whose expectation is gamma distributed is a Poisson number of groups of which few have more than one member; all groups of all
/// cells together are one such process, whose sums follow from each other (Panjer).
fn below(steps: &[(usize, &Cell)], sum: usize) -> f64 {
    let mut groups = vec![0.0; sum];
    let mut rate = 0.0;
    for (weight, cell) in steps {
        let q = cell.expected / (cell.shape + cell.expected);
        rate += -cell.shape * (-q).ln_1p();
        let mut power = 1.0;
        for (size, total) in (1..).map(|size| (size, size * weight)).take_while(|g| g.1 < sum) {
            power *= q;
            groups[total] += cell.shape * power / size as f64;
        }
    }
    let mut p = vec![(-rate).exp()];
    for n in 1..sum {
        let next: f64 = (1..=n).map(|m| m as f64 * groups[m] * p[n - m]).sum();
        p.push(next / n as f64);
    }
    p.iter().sum()
}

/// Chernoff's bound above the probability of a sum of `sum` or more.
fn bound(steps: &[(usize, &Cell)], sum: f64) -> f64 {
    // Logarithm of the mean of exp(s * sum), less s times what was seen: the least over s is the bound's logarithm.
    let at = |s: f64| -> f64 {
        let of = |(w, c): &(usize, &Cell)| {
            let grown = c.expected / c.shape * (s * *w as f64).exp_m1();
            if grown < 1.0 { -c.shape * (-grown).ln_1p() } else { f64::INFINITY }
        };
        steps.iter().map(of).sum::<f64>() - s * sum
    };
    // It is convex: thirds of an interval that surely holds the least.
    let (mut low, mut high) = (0.0, 40.0 / STEPS);
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
        near(interval(0, 10), [0.0, 0.3085]);
        near(interval(1, 10), [0.0025, 0.4450]);
        near(interval(5, 10), [0.1871, 0.8129]);
        near(interval(10, 10), [0.6915, 1.0]);
        near(interval(3, 2000), [0.00031, 0.00438]);
        near(interval(0, 0), [0.0, 1.0]);
    }

    fn cell(expected: f64, weight: f64, found: u64, shape: f64) -> Cell {
        Cell { expected, weight, found, shape }
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
            let p = tail(&[cell(mean, 2.5, found, 1e9)]);
            assert!((p / poisson(mean, found) - 1.0).abs() < 1e-4, "{mean} {found}: {p}");
            assert!(found == 1 || tail(&[cell(mean, 1.0, found, 2.0)]) > p);
        }
        assert_eq!(tail(&[cell(0.5, 1.0, 0, 10.0)]), 1.0);
        assert_eq!(tail(&[]), 1.0);
        // Far out and for large sums a bound: small, and never 0 by rounding.
        let far = tail(&[cell(1.0, 1.0, 40, 1e9)]);
        assert!(far > 0.0 && far < 1e-40, "{far}");
        let many = tail(&[cell(2000.0, 1.0, 2200, 1e9)]);
        assert!((1e-6..1e-3).contains(&many), "{many}");
    }

    #[test]
    fn what_weighs_more_says_more() {
        let quiet = |found| [cell(0.2, 1.0, found, 1e9), cell(5.0, 0.1, 5, 1e9)];
        let (none, three) = (tail(&quiet(0)), tail(&quiet(3)));
        assert!(none > 0.4 && three < 0.01, "{none} {three}");
        // Of the loud cell as many more say little.
        let loud = tail(&[cell(0.2, 1.0, 0, 1e9), cell(5.0, 0.1, 8, 1e9)]);
        assert!(loud > 0.1, "{loud}");
    }
}
