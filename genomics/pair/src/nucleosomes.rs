//! Recognises cell-free DNA by the lengths of its fragments.
//!
//! Cell-free DNA is cut between nucleosomes. Most fragments are as long as the DNA around one nucleosome with its linker,
//! and of the shorter ones those a whole number of helix turns shorter are the most frequent (Snyder et al. 2016,
//! "Cell-free DNA comprises an in vivo nucleosome footprint"). Sheared or damaged DNA may have the same mean length, but
//! no length recurs in it.

use std::f64::consts::TAU;

/// Signs of nucleosomes in the fragment lengths of a library: the most frequent length, the share of mononucleosomes
/// and the period of about 10 bp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NucleosomePattern {
    /// Most frequent fragment length, in bp.
    pub(crate) mode_bp: usize,
    /// Share of the pairs whose fragment is about as long as the DNA around one nucleosome ([`MONONUCLEOSOME_BP`]).
    pub(crate) mononucleosome_share: f64,
    /// Amplitude of the counts of fragments within the nucleosome with the period of the helix, relative to their mean.
    pub(crate) period_amplitude: f64,
    /// Strength of the period: sum of squared deviations from a smooth trend that a sine of this period explains,
    /// relative to the mean squared deviation that remains (twice an F statistic).
    pub(crate) period_gain: f64,
}

/// Lengths of fragments around one nucleosome, in bp: the peak at 167 with both flanks. Chosen; the second peak begins
/// above 250.
const MONONUCLEOSOME_BP: std::ops::RangeInclusive<usize> = 120..=200;
/// Minimum share of the pairs with a fragment length in [`MONONUCLEOSOME_BP`]. Chosen: cell-free DNA has two thirds and more,
/// but reads of 100 bases measure fragments up to 180 bp only.
const MIN_MONONUCLEOSOME_SHARE: f64 = 0.5;
/// Most frequent lengths in cell-free DNA, in bp: 167 in most samples (Snyder et al. 2016). A wider range admits sheared
/// DNA of a similar length.
const CELL_FREE_MODE_BP: std::ops::RangeInclusive<usize> = 160..=175;
/// Number of neighbouring lengths on each side over which counts are averaged to find the most frequent length. Chosen.
const MODE_SMOOTHING_BP: usize = 2;
/// Range of fragment lengths, in bp, in which the period is measured: fragments that were cut within the nucleosome are
/// shorter than those of the peak at 167.
const CUT_NUCLEOSOME_BP: std::ops::Range<usize> = 80..145;
/// Period of fragment lengths of cell-free DNA, in bp: one turn of the DNA helix on the nucleosome (10.2 to 10.4). Over
/// six periods these values cannot be distinguished.
const HELIX_TURN_BP: f64 = 10.3;
/// Minimum amplitude of the period, relative to the mean count. Chosen: cell-free DNA has 0.1 and more; a lower value
/// admits lengths whose density has a sharp bend.
const MIN_PERIOD_AMPLITUDE: f64 = 0.05;
/// Minimum of [`NucleosomePattern::period_gain`] for cell-free DNA. Chosen: of libraries without a period some ten in a
/// million exceed it by chance.
const MIN_PERIOD_GAIN: f64 = 20.0;

impl NucleosomePattern {
    /// A library without fragments of known length.
    #[cfg(test)]
    pub(crate) const NO_FRAGMENTS: NucleosomePattern =
        NucleosomePattern { mode_bp: 0, mononucleosome_share: 0.0, period_amplitude: 0.0, period_gain: 0.0 };

    /// Describes fragment lengths: `counts[n]` of `pairs` pairs have a fragment of n bp. All other pairs have a fragment
    /// whose length is unknown.
    pub(crate) fn from_fragment_lengths(counts: &[u64], pairs: u64) -> NucleosomePattern {
        let count = |length: usize| counts.get(length).copied().unwrap_or(0);
        let smoothed = |mode: usize| -> u64 {
            (mode.saturating_sub(MODE_SMOOTHING_BP)..=mode + MODE_SMOOTHING_BP).map(count).sum()
        };
        let mode = (0..counts.len()).max_by_key(|&length| (smoothed(length), std::cmp::Reverse(length)));
        let share = MONONUCLEOSOME_BP.map(count).sum::<u64>() as f64 / pairs.max(1) as f64;
        let [amplitude, gain] = fit_period(CUT_NUCLEOSOME_BP.map(|length| (length as f64, count(length) as f64)));
        NucleosomePattern {
            mode_bp: mode.unwrap_or(0),
            mononucleosome_share: share,
            period_amplitude: amplitude,
            period_gain: gain,
        }
    }

    /// Whether the lengths are those of cell-free DNA.
    pub(crate) fn is_cell_free(&self) -> bool {
        CELL_FREE_MODE_BP.contains(&self.mode_bp)
            && self.mononucleosome_share >= MIN_MONONUCLEOSOME_SHARE
            && self.period_amplitude >= MIN_PERIOD_AMPLITUDE
            && self.period_gain >= MIN_PERIOD_GAIN
    }

    /// Explains by which fragment lengths the sample was recognised as cell-free DNA.
    pub(crate) fn describe_cell_free_evidence(&self) -> String {
        format!(
            "{:.0}% of the fragments have {} to {} bp, most often {} bp, and the number of shorter ones rises and falls \
             every 10 bp, as DNA around nucleosomes",
            100.0 * self.mononucleosome_share,
            MONONUCLEOSOME_BP.start(),
            MONONUCLEOSOME_BP.end(),
            self.mode_bp
        )
    }
}

/// Number of terms of the trend of the log-counts: a cubic polynomial.
const NUM_TREND_TERMS: usize = 4;
/// Number of terms of trend and period.
const NUM_TERMS: usize = NUM_TREND_TERMS + 2;

/// Smallest pivot of the normal equations, relative to the sum of the counts, that is not rounding error. Chosen; a higher value
/// finds no period in few lengths.
const MIN_RELATIVE_PIVOT: f64 = 1e-9;

/// Amplitude of the period [`HELIX_TURN_BP`] in the logarithms of `counts`, and what it explains relative to the mean
/// remaining deviation (weighted least squares; a count weighs its inverse variance). Duplicates make all deviations
/// larger than those of a Poisson distribution, which is the smallest mean that counts. `counts` are pairs of length and
/// count.
fn fit_period(counts: impl Iterator<Item = (f64, f64)>) -> [f64; 2] {
    let middle = (CUT_NUCLEOSOME_BP.start + CUT_NUCLEOSOME_BP.end) as f64 / 2.0;
    let half = (CUT_NUCLEOSOME_BP.end - CUT_NUCLEOSOME_BP.start) as f64 / 2.0;
    // The normal equations, with the sums for the response in the last column.
    let mut equations = [[0.0; NUM_TERMS + 1]; NUM_TERMS];
    let (mut remaining, mut num_lengths) = (0.0, 0usize);
    for (length, count) in counts.filter(|&(_, count)| count > 0.0) {
        let (x, angle) = ((length - middle) / half, TAU * length / HELIX_TURN_BP);
        let terms = [1.0, x, x * x, x * x * x, angle.cos(), angle.sin(), count.ln()];
        remaining += count * count.ln().powi(2);
        num_lengths += 1;
        for (row, term) in equations.iter_mut().zip(terms) {
            row.iter_mut().zip(terms).for_each(|(sum, other)| *sum += count * term * other);
        }
    }
    // Elimination in the order of the terms leaves in the last two rows what the period explains besides the trend.
    let mut gain = 0.0;
    for at in 0..NUM_TERMS {
        let pivot = equations[at][at];
        // Fewer lengths than terms.
        if pivot <= MIN_RELATIVE_PIVOT * equations[0][0].max(1.0) {
            return [0.0; 2];
        }
        let explained = equations[at][NUM_TERMS].powi(2) / pivot;
        remaining -= explained;
        if at >= NUM_TREND_TERMS {
            gain += explained;
        }
        let row = equations[at];
        for below in &mut equations[at + 1..] {
            let factor = below[at] / pivot;
            below.iter_mut().zip(row).for_each(|(value, other)| *value -= factor * other);
        }
    }
    let [.., cosine, sine] = equations;
    let sine_amplitude = sine[NUM_TERMS] / sine[NUM_TERMS - 1];
    let cosine_amplitude = (cosine[NUM_TERMS] - cosine[NUM_TERMS - 1] * sine_amplitude) / cosine[NUM_TERMS - 2];
    let dispersion = (remaining / num_lengths.saturating_sub(NUM_TERMS).max(1) as f64).max(1.0);
    [cosine_amplitude.hypot(sine_amplitude), gain / dispersion]
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        fn normal(&mut self, mean: f64, sd: f64) -> f64 {
            let (radius, angle) = ((-2.0 * (1.0 - self.uniform()).ln()).sqrt(), TAU * self.uniform());
            mean + sd * radius * angle.cos()
        }
    }

    /// The pattern of 8,000 pairs of reads of 150 bases, which show fragments up to 280 bp. `draw` returns a length.
    fn pattern(seed: u64, mut draw: impl FnMut(&mut Random) -> f64) -> NucleosomePattern {
        let (mut random, mut counts) = (Random(seed), vec![0; 281]);
        for _ in 0..8_000 {
            let length = draw(&mut random).max(30.0) as usize;
            if let Some(count) = counts.get_mut(length) {
                *count += 1;
            }
        }
        NucleosomePattern::from_fragment_lengths(&counts, 8_000)
    }

    /// Plasma: a steep peak at 167 bp with a broad lower flank, on which the density varies by `amplitude` every 10.4 bp,
    /// and one fragment in ten of two nucleosomes.
    fn plasma(random: &mut Random, amplitude: f64) -> f64 {
        if random.uniform() < 0.1 {
            return random.normal(330.0, 25.0);
        }
        loop {
            let flank = random.uniform() < 0.6;
            let length = if flank { random.normal(150.0, 28.0) } else { random.normal(168.0, 10.0) };
            let density = (1.0 + amplitude * (TAU * (length - 144.0) / 10.4).cos()) / (1.0 + amplitude);
            if length > 150.0 || random.uniform() < density {
                return length;
            }
        }
    }

    #[test]
    fn plasma_is_cell_free() {
        for (seed, amplitude) in [(1, 0.2), (2, 0.3), (3, 0.5)] {
            let pattern = pattern(seed, |random| plasma(random, amplitude));
            assert!(pattern.is_cell_free(), "{amplitude}: {pattern:?}");
            assert!((pattern.period_amplitude - amplitude).abs() < 0.15, "{amplitude}: {pattern:?}");
        }
    }

    #[test]
    fn sheared_and_damaged_dna_is_not_cell_free() {
        for seed in 0..20 {
            // Sheared to the same mean length, from narrow to wide; the narrow ones have most fragments around it.
            for sd in [9.0, 12.0, 20.0, 25.0, 35.0, 50.0] {
                let sheared = pattern(seed, |random| random.normal(167.0, sd));
                assert!(!sheared.is_cell_free(), "{sd}: {sheared:?}");
                assert!(sd > 35.0 || sheared.mononucleosome_share > 0.7, "{sd}: {sheared:?}");
            }
            // Fixed tissue: lengths of a log-normal distribution.
            for mean in [130.0f64, 165.0, 200.0] {
                let fixed = pattern(seed, |random| random.normal(mean.ln(), 0.3).exp());
                assert!(!fixed.is_cell_free(), "{mean}: {fixed:?}");
            }
            // The peak of plasma without the period.
            let smooth = pattern(seed, |random| plasma(random, 0.0));
            assert!(!smooth.is_cell_free(), "{smooth:?}");
        }
    }

    #[test]
    fn duplicates_make_no_period() {
        for seed in 0..200 {
            // Each molecule up to 30 times.
            let (mut length, mut copies) = (0.0, 0.0);
            let copied = pattern(seed, |random| {
                if copies < 1.0 {
                    (length, copies) = (random.normal(167.0, 20.0), 1.0 + 29.0 * random.uniform());
                }
                copies -= 1.0;
                length
            });
            assert!(!copied.is_cell_free(), "{seed}: {copied:?}");
        }
    }

    #[test]
    fn libraries_without_short_fragments_have_no_period() {
        let none = NucleosomePattern::from_fragment_lengths(&[], 0);
        assert_eq!((none, none.is_cell_free()), (NucleosomePattern::NO_FRAGMENTS, false));
        let long = pattern(1, |random| random.normal(400.0, 20.0));
        assert_eq!((long.period_amplitude, long.is_cell_free()), (0.0, false));
    }
}
