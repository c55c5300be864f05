//! Recognises cell-free DNA by its fragment lengths.
//!
//! Cell-free DNA is cut between nucleosomes. Most fragments have the length of the DNA around one nucleosome with its
//! linker. Among shorter fragments, lengths that differ from it by whole turns of the DNA helix are the most frequent
//! (Snyder et al. 2016, "Cell-free DNA comprises an in vivo nucleosome footprint"). Sheared or damaged DNA may have the
//! same mean length, but its lengths have no such period.

use std::f64::consts::TAU;

/// Features of the fragment lengths of a library that show cell-free DNA: the most frequent length, the share of
/// mononucleosome fragments, and the period of about 10 bp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NucleosomePattern {
    /// Most frequent fragment length, in bp.
    pub(crate) mode_bp: usize,
    /// Share of the read pairs whose fragment is about as long as the DNA around one nucleosome
    /// ([`MONONUCLEOSOME_BP`]).
    pub(crate) mononucleosome_share: f64,
    /// Amplitude of the variation of fragment counts with the period of the DNA helix, relative to the mean count, for
    /// fragments shorter than a mononucleosome.
    pub(crate) period_amplitude: f64,
    /// Strength of the period: the sum of squares that a sine wave of this period explains beyond a smooth trend,
    /// divided by the mean squared residual. Twice an F statistic, because the wave has two parameters.
    pub(crate) period_gain: f64,
}

/// Fragment lengths of mononucleosomes, in bp: the peak at 167 with both flanks. Chosen; the dinucleosome peak begins
/// above 250.
const MONONUCLEOSOME_BP: std::ops::RangeInclusive<usize> = 120..=200;
/// Minimum share of read pairs with a fragment length in [`MONONUCLEOSOME_BP`] in cell-free DNA. Chosen: cell-free DNA
/// has two thirds and more, but pairs of 100-base reads measure fragments of up to about 180 bp only.
const MIN_MONONUCLEOSOME_SHARE: f64 = 0.5;
/// Range of the most frequent fragment length of cell-free DNA, in bp: 167 in most samples (Snyder et al. 2016). A
/// wider range admits sheared DNA of a similar length.
const CELL_FREE_MODE_BP: std::ops::RangeInclusive<usize> = 160..=175;
/// Number of neighbouring lengths on each side over which counts are averaged to find the most frequent length. Chosen.
const MODE_SMOOTHING_BP: usize = 2;
/// Range of fragment lengths, in bp, in which the period is measured: fragments cut within the nucleosome, shorter than
/// those of the peak at 167.
const CUT_NUCLEOSOME_BP: std::ops::Range<usize> = 80..145;
/// Period of the fragment lengths of cell-free DNA, in bp: one turn of the DNA helix on the nucleosome (10.2 to 10.4).
/// In the measured range, which has six periods, these values cannot be distinguished.
const HELIX_TURN_BP: f64 = 10.3;
/// Minimum of [`NucleosomePattern::period_amplitude`] for cell-free DNA. Chosen: cell-free DNA has 0.1 and more; a
/// lower value admits length distributions with a sharp bend.
const MIN_PERIOD_AMPLITUDE: f64 = 0.05;
/// Minimum of [`NucleosomePattern::period_gain`] for cell-free DNA. Chosen: of libraries without a period some ten in a
/// million exceed it by chance.
const MIN_PERIOD_GAIN: f64 = 20.0;

impl NucleosomePattern {
    /// Pattern of a library without fragments of known length.
    #[cfg(test)]
    pub(crate) const NO_FRAGMENTS: NucleosomePattern =
        NucleosomePattern { mode_bp: 0, mononucleosome_share: 0.0, period_amplitude: 0.0, period_gain: 0.0 };

    /// Computes the pattern from fragment lengths: `counts[n]` of the `pairs` read pairs have a fragment of n bp. The
    /// fragments of all other pairs have an unknown length.
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

    /// Whether the fragment lengths are those of cell-free DNA.
    pub(crate) fn is_cell_free(&self) -> bool {
        CELL_FREE_MODE_BP.contains(&self.mode_bp)
            && self.mononucleosome_share >= MIN_MONONUCLEOSOME_SHARE
            && self.period_amplitude >= MIN_PERIOD_AMPLITUDE
            && self.period_gain >= MIN_PERIOD_GAIN
    }

    /// Describes the fragment lengths by which the sample was recognised as cell-free DNA, as text.
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

/// Number of coefficients of the trend of the log-counts: a cubic polynomial.
const NUM_TREND_TERMS: usize = 4;
/// Number of coefficients of the trend and the period together.
const NUM_TERMS: usize = NUM_TREND_TERMS + 2;

/// Smallest pivot of the normal equations, relative to the sum of the counts, that is not a rounding error. Chosen;
/// with a higher value no period is found in samples with few distinct lengths.
const MIN_RELATIVE_PIVOT: f64 = 1e-9;

/// Fits a cubic trend and a sine wave of period [`HELIX_TURN_BP`] to the logarithms of fragment counts by weighted
/// least squares; a count has its inverse variance as weight. Returns the amplitude of the wave, and the sum of squares
/// that it explains relative to the mean squared residual. The residual is at least that of a Poisson distribution;
/// duplicates make it larger. `counts` are pairs of length and count.
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

    /// Plasma: a steep peak at 167 bp with a broad lower flank, on which the density varies by `amplitude` every 10.4
    /// bp, and one fragment in ten of two nucleosomes.
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
