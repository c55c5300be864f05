//! Random numbers that are the same on every machine and for every number of threads.

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): one multiplication chain a number, any seed is good.
#[derive(Debug, Clone)]
pub struct Rng(u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What the random streams of a simulation are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// A made genome.
    Genome,
    /// Somatic variants.
    Somatic,
    /// Germline variants.
    Germline,
    /// Reads of the tumour sample.
    Tumour,
    /// Reads of the normal sample.
    Normal,
    /// Copy numbers, and what comes with them.
    Copies,
    /// Clusters and substitutions of several bases.
    Linked,
    /// Targets of capture.
    Targets,
    /// What the samples' coverage has in common.
    Coverage,
    /// The mitochondrial genome.
    Mitochondrion,
    /// Its variants.
    MitochondrialVariants,
    /// Another person.
    Foreign,
    /// The other person's mitochondrial genome.
    ForeignMitochondrion,
    /// Foreign sequence in the tumour's genome.
    Integrated,
    /// Tandem repeats of another length.
    Unstable,
}

impl Rng {
    /// The stream of `seed` for one purpose (`labels`: what it is for, and which part of it). Streams do not
    /// depend on each other, so work may be dealt to threads in any order.
    pub fn stream(seed: u64, labels: &[u64]) -> Self {
        let start = mix(seed.wrapping_add(GOLDEN));
        Rng(labels.iter().fold(start, |s, &l| mix(s ^ mix(l.wrapping_add(GOLDEN)))))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in `0..n`; `n` must not be 0.
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Uniform in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// How many things stay as they are before the next one that changes, when each changes with probability `p`.
    pub fn skip(&mut self, p: f64) -> usize {
        if p <= 0.0 {
            return usize::MAX;
        }
        // The float saturates at the largest integer.
        ((1.0 - self.unit()).ln() / (-p.min(1.0 - 1e-12)).ln_1p()) as usize
    }

    /// Normally distributed (Box–Muller).
    pub fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        mean + sd * radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// An integer in `low..=high` whose logarithm is uniform: as many of 50–500 as of 500–5000.
    pub(crate) fn log_uniform(&mut self, low: usize, high: usize) -> usize {
        let (a, b) = ((low as f64).ln(), (high as f64 + 1.0).ln());
        ((a + (b - a) * self.unit()).exp() as usize).clamp(low, high)
    }

    /// One of `items`.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A random base, G or C with probability `gc`.
    pub fn base(&mut self, gc: f64) -> u8 {
        let pair = if self.chance(gc) { b"GC" } else { b"AT" };
        pair[self.below(2)]
    }

    /// A random base other than `base`.
    pub(crate) fn other_base(&mut self, base: u8) -> u8 {
        let others: Vec<u8> = b"ACGT".iter().copied().filter(|&b| b != base).collect();
        *self.pick(&others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_repeatable_and_apart() {
        let draw = |seed, labels: &[u64]| Rng::stream(seed, labels).bits();
        assert_eq!(draw(1, &[2, 3]), draw(1, &[2, 3]));
        assert_ne!(draw(1, &[2, 3]), draw(1, &[3, 2]));
        assert_ne!(draw(1, &[2, 3]), draw(2, &[2, 3]));
    }

    #[test]
    fn moments_are_right() {
        let mut rng = Rng::stream(7, &[]);
        let n = 100_000;
        let mean = (0..n).map(|_| rng.normal(400.0, 60.0)).sum::<f64>() / f64::from(n);
        assert!((mean - 400.0).abs() < 1.0, "{mean}");
        let ones = (0..n).filter(|_| rng.chance(0.25)).count() as f64 / f64::from(n);
        assert!((ones - 0.25).abs() < 0.01, "{ones}");
        let skipped = (0..n).map(|_| rng.skip(0.01) as f64).sum::<f64>() / f64::from(n);
        assert!((skipped - 99.0).abs() < 1.5, "{skipped}");
        assert_eq!((rng.skip(0.0), rng.skip(1.0)), (usize::MAX, 0));
        assert!((0..n).all(|_| (1..=50).contains(&rng.log_uniform(1, 50))));
    }
}
