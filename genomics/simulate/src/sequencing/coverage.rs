//! How evenly molecules cover the genome: which of the fragments that are there become part of the library.

use std::sync::Arc;

use super::fragments::Fragment;
use super::params::CoverageParams;
use crate::genome::Genome;
use crate::marks::Marks;
use crate::rng::Rng;
use crate::variant::Cut;

/// GC content at which nothing is lost.
const BEST_GC: f64 = 0.45;
/// How far below and above it a fragment has a third of the coverage, at strength 1.
const GC_WIDTH: (f64, f64) = (0.20, 0.25);
/// Shortest and longest distance between two knots of the wave, bp.
const KNOTS: (usize, usize) = (1_000, 5_000);
/// Part of the wave's variance that is the same in all samples.
const SHARED: f64 = 0.7;
/// Farthest from the mean that the wave goes, standard deviations.
const CREST: f64 = 2.5;

/// Decides which fragments are kept.
#[derive(Debug)]
pub struct Coverage {
    gc_bias: f64,
    wave: Option<Wave>,
}

/// A coverage factor for each place of the reference, log-normal, that changes every few kb.
#[derive(Debug)]
struct Wave {
    /// Standard deviation of the factor's logarithm.
    sd: f64,
    /// For each contig places and, at each, how many standard deviations the logarithm is off.
    knots: Vec<Knots>,
}

/// Those of a contig.
#[derive(Debug, Default)]
struct Knots {
    knots: Vec<(usize, f64)>,
    marks: Marks,
}

impl Coverage {
    /// Bias of one sample: `shared` draws what all samples have in common, `own` the rest. `None` when all fragments are
    /// kept.
    pub fn new(params: &CoverageParams, genome: &Genome, shared: Rng, own: Rng) -> Option<Self> {
        let wave = (params.unevenness > 0.0).then(|| Wave::new(params.unevenness, genome, shared, own));
        (params.gc_bias > 0.0 || wave.is_some()).then_some(Coverage { gc_bias: params.gc_bias, wave })
    }

    /// Whether a fragment is kept.
    pub fn keeps(&self, fragment: &Fragment, rng: &mut Rng) -> bool {
        let wave = self.wave.as_ref().map_or(1.0, |wave| wave.factor(fragment.middle()));
        let least = rng.unit();
        // GC makes it less at most: the bases of a fragment that is lost anyway need not be looked at.
        least < wave
            && (self.gc_bias == 0.0 || least < self.gc_factor(fragment.strong(), fragment.len()) * wave)
    }

    /// Relative to the best GC content, of `length` bases of which so many are G or C.
    fn gc_factor(&self, strong: usize, length: usize) -> f64 {
        if length == 0 {
            return 1.0;
        }
        let off = strong as f64 / length as f64 - BEST_GC;
        let width = if off < 0.0 { GC_WIDTH.0 } else { GC_WIDTH.1 };
        (-self.gc_bias * 3f64.ln() * (off / width).powi(2)).exp()
    }
}

impl Wave {
    fn new(cv: f64, genome: &Genome, mut shared: Rng, mut own: Rng) -> Self {
        let mut contig = |seq: &Arc<Vec<u8>>| {
            let Knots { mut knots, mut marks } = Knots::default();
            let mut at = 0;
            loop {
                let common = SHARED.sqrt() * shared.normal(0.0, 1.0);
                let off = common + (1.0 - SHARED).sqrt() * own.normal(0.0, 1.0);
                knots.push((at, off.clamp(-CREST, CREST)));
                marks.push(knots.len() - 1, at);
                if at >= seq.len() {
                    return Knots { knots, marks };
                }
                at += KNOTS.0 + shared.below(KNOTS.1 - KNOTS.0 + 1);
            }
        };
        Wave { sd: (1.0 + cv * cv).ln().sqrt(), knots: genome.seqs.iter().map(&mut contig).collect() }
    }

    /// Relative to the highest crest; what is not of the reference is average.
    fn factor(&self, at: Option<Cut>) -> f64 {
        let mean = self.sd / 2.0;
        let off = at.and_then(|at| self.off(at)).unwrap_or(mean);
        (self.sd * (off - CREST)).exp()
    }

    /// Standard deviations that a place is off. Between knots their weights go along a quarter of a circle, so that the
    /// wave varies as much there as at the knots.
    fn off(&self, at: Cut) -> Option<f64> {
        let Knots { knots, marks } = self.knots.get(at.contig)?;
        let right = marks.find(knots, at.pos, |knot| knot.0);
        let (&(x0, z0), &(x1, z1)) = (knots.get(right.checked_sub(1)?)?, knots.get(right)?);
        let angle = std::f64::consts::FRAC_PI_2 * (at.pos - x0) as f64 / (x1 - x0) as f64;
        Some((angle.cos() * z0 + angle.sin() * z1).clamp(-CREST, CREST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn genome() -> Genome {
        let mut rng = Rng::stream(1, &[]);
        let names = vec!["a".into(), "b".into()];
        Genome::new(names, vec![(0..3_000_000).map(|_| rng.base(0.4)).collect(), vec![b'A'; 2_000]])
    }

    #[test]
    fn the_wave_varies_as_asked_and_samples_share_most_of_it() {
        let genome = genome();
        let wave = |own| Wave::new(0.3, &genome, Rng::stream(2, &[]), Rng::stream(own, &[]));
        let waves = [wave(3), wave(4)];
        let places = || (0..3_000_000).step_by(331);
        let factors = waves.each_ref().map(|wave| {
            let top = wave.sd * CREST;
            places().map(|pos| wave.factor(Some(Cut { contig: 0, pos })).ln() + top).collect::<Vec<f64>>()
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
        assert!(waves[0].factor(None) > 0.0 && waves[0].off(Cut { contig: 1, pos: 1999 }).is_some());
    }

    #[test]
    fn extreme_gc_has_a_third() {
        let coverage = Coverage { gc_bias: 1.0, wave: None };
        for (gc, factor) in [(45, 1.0), (25, 1.0 / 3.0), (70, 1.0 / 3.0)] {
            assert!((coverage.gc_factor(gc, 100) - factor).abs() < 1e-9, "{gc}");
        }
        assert!(coverage.gc_factor(10, 100) < 0.1);
        let rngs = || (Rng::stream(1, &[]), Rng::stream(2, &[]));
        let (shared, own) = rngs();
        assert!(Coverage::new(&CoverageParams::default(), &genome(), shared, own).is_none());
    }
}
