//! Uneven coverage: decides by GC content and position which fragments become part of the library.

use std::sync::Arc;

use super::fragments::Fragment;
use super::params::CoverageParams;
use crate::genome::Genome;
use crate::item_end_index::ItemEndIndex;
use crate::rng::Rng;
use crate::variant::GenomePosition;

/// GC content with the highest coverage.
const OPTIMAL_GC: f64 = 0.45;
/// Differences from the optimal GC content, below and above it, at which coverage falls to a third if `gc_bias` is 1.
const GC_WIDTH: (f64, f64) = (0.20, 0.25);
/// Minimum and maximum distance between two knots (points with a drawn value) of the coverage wave, bp.
const KNOT_SPACING_BP: (usize, usize) = (1_000, 5_000);
/// Share of the variance of the coverage wave that is the same in all samples.
const SHARED_VARIANCE: f64 = 0.7;
/// Largest deviation of the coverage wave from its mean, in standard deviations.
const MAX_DEVIATION_SDS: f64 = 2.5;

/// Uneven coverage of one sample: GC bias and coverage wave.
#[derive(Debug)]
pub(crate) struct CoverageModel {
    gc_bias: f64,
    coverage_wave: Option<CoverageWave>,
}

/// A coverage factor along the reference that changes every few kb and has a log-normal distribution.
#[derive(Debug)]
struct CoverageWave {
    /// Standard deviation of the natural logarithm of the factor.
    sd: f64,
    knots: Vec<ContigKnots>,
}

/// Knots of the coverage wave on one contig: position, and deviation of the log factor from its mean in standard
/// deviations. Values between two knots are interpolated.
#[derive(Debug, Default)]
struct ContigKnots {
    knots: Vec<(usize, f64)>,
    knot_index: ItemEndIndex,
}

impl CoverageModel {
    /// Creates the coverage model of one sample and draws its coverage wave. `shared` draws the part of the wave that
    /// is the same in all samples, `own` the rest. Returns `None` if the coverage is even.
    pub(crate) fn draw_coverage_model(params: &CoverageParams, genome: &Genome, shared: Rng, own: Rng) -> Option<Self> {
        let wave = (params.unevenness > 0.0).then(|| CoverageWave::new(params.unevenness, genome, shared, own));
        (params.gc_bias > 0.0 || wave.is_some())
            .then_some(CoverageModel { gc_bias: params.gc_bias, coverage_wave: wave })
    }

    /// Draws whether a fragment becomes part of the library.
    pub(crate) fn draw_whether_fragment_is_kept(&self, fragment: &Fragment, rng: &mut Rng) -> bool {
        let wave = self
            .coverage_wave
            .as_ref()
            .map_or(1.0, |wave| wave.relative_coverage(fragment.middle_reference_position()));
        let least = rng.draw_unit_interval();
        // GC bias can only reduce the probability: skip counting G and C if the fragment is already lost.
        least < wave && (self.gc_bias == 0.0 || least < self.gc_factor(fragment.count_gc(), fragment.len()) * wave)
    }

    /// Returns the coverage for `strong` bases G or C among `length` bases, relative to the optimal GC content.
    fn gc_factor(&self, strong: usize, length: usize) -> f64 {
        if length == 0 {
            return 1.0;
        }
        let off = strong as f64 / length as f64 - OPTIMAL_GC;
        let width = if off < 0.0 { GC_WIDTH.0 } else { GC_WIDTH.1 };
        (-self.gc_bias * 3f64.ln() * (off / width).powi(2)).exp()
    }
}

impl CoverageWave {
    fn new(cv: f64, genome: &Genome, mut shared: Rng, mut own: Rng) -> Self {
        let mut contig = |seq: &Arc<Vec<u8>>| {
            let ContigKnots { mut knots, knot_index: mut marks } = ContigKnots::default();
            let mut at = 0;
            loop {
                let common = SHARED_VARIANCE.sqrt() * shared.draw_gaussian(0.0, 1.0);
                let off = common + (1.0 - SHARED_VARIANCE).sqrt() * own.draw_gaussian(0.0, 1.0);
                knots.push((at, off.clamp(-MAX_DEVIATION_SDS, MAX_DEVIATION_SDS)));
                marks.push_item_end(knots.len() - 1, at);
                if at >= seq.len() {
                    return ContigKnots { knots, knot_index: marks };
                }
                at += KNOT_SPACING_BP.0 + shared.draw_below(KNOT_SPACING_BP.1 - KNOT_SPACING_BP.0 + 1);
            }
        };
        CoverageWave { sd: (1.0 + cv * cv).ln().sqrt(), knots: genome.seqs.iter().map(&mut contig).collect() }
    }

    /// Returns the coverage at a position relative to the maximum of the wave. Novel sequence, which has no position,
    /// and mitochondrial DNA get the mean coverage.
    fn relative_coverage(&self, at: Option<GenomePosition>) -> f64 {
        let mean = self.sd / 2.0;
        let off = at.and_then(|at| self.deviation_sds(at)).unwrap_or(mean);
        (self.sd * (off - MAX_DEVIATION_SDS)).exp()
    }

    /// Returns the deviation of the wave at a position, in standard deviations. Between two knots their values are
    /// weighted by a quarter circle, so that the variance is the same as at the knots.
    fn deviation_sds(&self, at: GenomePosition) -> Option<f64> {
        let ContigKnots { knots, knot_index: marks } = self.knots.get(at.contig)?;
        let right = marks.find_item_ending_after(knots, at.pos, |knot| knot.0);
        let (&(x0, z0), &(x1, z1)) = (knots.get(right.checked_sub(1)?)?, knots.get(right)?);
        let angle = std::f64::consts::FRAC_PI_2 * (at.pos - x0) as f64 / (x1 - x0) as f64;
        Some((angle.cos() * z0 + angle.sin() * z1).clamp(-MAX_DEVIATION_SDS, MAX_DEVIATION_SDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn genome() -> Genome {
        let mut rng = Rng::from_seed_and_labels(1, &[]);
        let names = vec!["a".into(), "b".into()];
        Genome::from_sequences(names, vec![(0..3_000_000).map(|_| rng.draw_base(0.4)).collect(), vec![b'A'; 2_000]])
    }

    #[test]
    fn the_wave_varies_as_asked_and_samples_share_most_of_it() {
        let genome = genome();
        let wave = |own| {
            CoverageWave::new(0.3, &genome, Rng::from_seed_and_labels(2, &[]), Rng::from_seed_and_labels(own, &[]))
        };
        let waves = [wave(3), wave(4)];
        let places = || (0..3_000_000).step_by(331);
        let factors = waves.each_ref().map(|wave| {
            let top = wave.sd * MAX_DEVIATION_SDS;
            places()
                .map(|pos| wave.relative_coverage(Some(GenomePosition { contig: 0, pos })).ln() + top)
                .collect::<Vec<f64>>()
        });
        let moments = |logs: &[f64]| {
            let n = logs.len() as f64;
            let mean = logs.iter().map(|l| l.exp()).sum::<f64>() / n;
            let variance = logs.iter().map(|l| (l.exp() - mean).powi(2)).sum::<f64>() / n;
            variance.sqrt() / mean
        };
        for logs in &factors {
            let cv = moments(logs);
            assert!((cv - 0.3).abs() < 0.03, "{cv}");
        }
        let n = factors[0].len() as f64;
        let product: f64 = factors[0].iter().zip(&factors[1]).map(|(a, b)| a * b).sum::<f64>() / n;
        let correlation = product / waves[0].sd.powi(2);
        assert!((correlation - 0.7).abs() < 0.08, "{correlation}");
        assert!(
            waves[0].relative_coverage(None) > 0.0
                && waves[0].deviation_sds(GenomePosition { contig: 1, pos: 1999 }).is_some()
        );
    }

    #[test]
    fn extreme_gc_has_a_third() {
        let coverage = CoverageModel { gc_bias: 1.0, coverage_wave: None };
        for (gc, factor) in [(45, 1.0), (25, 1.0 / 3.0), (70, 1.0 / 3.0)] {
            assert!((coverage.gc_factor(gc, 100) - factor).abs() < 1e-9, "{gc}");
        }
        assert!(coverage.gc_factor(10, 100) < 0.1);
        let rngs = || (Rng::from_seed_and_labels(1, &[]), Rng::from_seed_and_labels(2, &[]));
        let (shared, own) = rngs();
        assert!(CoverageModel::draw_coverage_model(&CoverageParams::default(), &genome(), shared, own).is_none());
    }
}
