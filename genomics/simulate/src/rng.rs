//! A random number generator whose bits are the same on every machine and for any number of threads.

/// The SplitMix64 random number generator (Steele, Lea, Flood, OOPSLA 2014). Any seed is suitable.
#[derive(Debug, Clone)]
pub struct Rng(u64);

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix_bits(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Purpose of a random number stream. Each purpose has its own stream, so that changing one part of a simulation does
/// not change the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RandomStream {
    Genome,
    Somatic,
    Germline,
    /// Reads of the tumour sample.
    Tumour,
    /// Reads of the normal sample.
    Normal,
    /// Copy-number changes and the variants within amplifications.
    CopyNumbers,
    /// Variant clusters and multi-nucleotide variants.
    LinkedVariants,
    Targets,
    /// The part of the uneven coverage that is the same in all samples.
    Coverage,
    /// The sequence of the mitochondrial genome.
    Mitochondrion,
    /// Variants of the mitochondrial genome.
    MitochondrialVariants,
    /// Germline variants of another person whose reads contaminate the samples.
    ForeignPerson,
    /// Mitochondrial variants of another person.
    ForeignMitochondrion,
    /// Foreign sequences inserted into the tumour's genome.
    Integrations,
    /// Somatic length changes of tandem repeats.
    Microsatellites,
    /// Lengths, primers and efficiencies of the amplicons.
    Amplicons,
}

impl Rng {
    /// Creates the generator of the random stream with this seed and these labels, such as a purpose and a block
    /// number. Streams with different labels are independent, so threads may process blocks in any order.
    pub(crate) fn from_seed_and_labels(seed: u64, labels: &[u64]) -> Self {
        let start = mix_bits(seed.wrapping_add(GOLDEN_GAMMA));
        Rng(labels.iter().fold(start, |s, &l| mix_bits(s ^ mix_bits(l.wrapping_add(GOLDEN_GAMMA)))))
    }

    /// Draws 64 random bits.
    #[inline]
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_GAMMA);
        mix_bits(self.0)
    }

    /// Draws a uniform integer in `0..n`; `n` must not be 0.
    #[inline]
    pub(crate) fn draw_below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// Draws a uniform number in `[0, 1)`.
    #[inline]
    pub(crate) fn draw_unit_interval(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws `true` with probability `p`.
    #[inline]
    pub(crate) fn draw_bernoulli(&mut self, p: f64) -> bool {
        self.draw_unit_interval() < p
    }

    /// Draws from the geometric distribution: the number of failures before the first success, which has probability
    /// `p`; the largest integer if `p` is 0.
    pub(crate) fn draw_geometric(&mut self, p: f64) -> usize {
        if p <= 0.0 {
            return usize::MAX;
        }
        // The conversion saturates at the largest integer.
        ((1.0 - self.draw_unit_interval()).ln() / (-p.min(1.0 - 1e-12)).ln_1p()) as usize
    }

    /// Draws from the normal distribution (Box–Muller).
    pub(crate) fn draw_gaussian(&mut self, mean: f64, sd: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.draw_unit_interval()).ln()).sqrt();
        mean + sd * radius * (std::f64::consts::TAU * self.draw_unit_interval()).cos()
    }

    /// Draws from the Poisson distribution (Knuth's multiplication); `mean` must be below 700.
    pub(crate) fn draw_poisson(&mut self, mean: f64) -> usize {
        let (limit, mut product, mut count) = ((-mean).exp(), self.draw_unit_interval(), 0);
        while product > limit {
            product *= self.draw_unit_interval();
            count += 1;
        }
        count
    }

    /// Draws an integer in `low..=high` whose logarithm is uniformly distributed: 50–500 is as likely as 500–5000.
    pub(crate) fn draw_log_uniform(&mut self, low: usize, high: usize) -> usize {
        let (a, b) = ((low as f64).ln(), (high as f64 + 1.0).ln());
        ((a + (b - a) * self.draw_unit_interval()).exp() as usize).clamp(low, high)
    }

    /// Draws one of `items` uniformly.
    pub(crate) fn choose_item<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.draw_below(items.len())]
    }

    /// Puts items into a random order (Fisher-Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.draw_below(last + 1));
        }
    }

    /// Draws a random base, which is G or C with probability `gc`.
    pub(crate) fn draw_base(&mut self, gc: f64) -> u8 {
        let pair = if self.draw_bernoulli(gc) { b"GC" } else { b"AT" };
        pair[self.draw_below(2)]
    }

    /// Draws one of the three bases other than `base`.
    pub(crate) fn draw_other_base(&mut self, base: u8) -> u8 {
        let others: Vec<u8> = b"ACGT".iter().copied().filter(|&b| b != base).collect();
        *self.choose_item(&others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_repeatable_and_apart() {
        let draw = |seed, labels: &[u64]| Rng::from_seed_and_labels(seed, labels).next_u64();
        assert_eq!(draw(1, &[2, 3]), draw(1, &[2, 3]));
        assert_ne!(draw(1, &[2, 3]), draw(1, &[3, 2]));
        assert_ne!(draw(1, &[2, 3]), draw(2, &[2, 3]));
    }

    #[test]
    fn moments_are_right() {
        let mut rng = Rng::from_seed_and_labels(7, &[]);
        let n = 100_000;
        let mean = (0..n).map(|_| rng.draw_gaussian(400.0, 60.0)).sum::<f64>() / f64::from(n);
        assert!((mean - 400.0).abs() < 1.0, "{mean}");
        let ones = (0..n).filter(|_| rng.draw_bernoulli(0.25)).count() as f64 / f64::from(n);
        assert!((ones - 0.25).abs() < 0.01, "{ones}");
        let skipped = (0..n).map(|_| rng.draw_geometric(0.01) as f64).sum::<f64>() / f64::from(n);
        assert!((skipped - 99.0).abs() < 1.5, "{skipped}");
        let events = (0..n).map(|_| rng.draw_poisson(3.0) as f64).sum::<f64>() / f64::from(n);
        assert!((events - 3.0).abs() < 0.03, "{events}");
        assert_eq!((rng.draw_geometric(0.0), rng.draw_geometric(1.0)), (usize::MAX, 0));
        assert!((0..n).all(|_| (1..=50).contains(&rng.draw_log_uniform(1, 50))));
    }
}
