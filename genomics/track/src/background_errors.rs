//! Estimates from a sample itself how often errors look like a tracked change.
//!
//! Bases near the tracked substitutions should equal the reference. Molecules that differ from it went through the same
//! damage, PCR and sequencing as the tracked bases, and are counted by the same rules. Error rates are estimated for
//! each substitution, flanking bases and orientation of the pair. If a substitution has few observations, the rate of
//! the same substitution with any flanking bases is its prior; the prior of that rate is the rate of all substitutions.

use crate::change::ChangeClass;
use crate::molecules::{FlankErrorCounts, NUM_SUBSTITUTION_KINDS, WrongBaseSiteCounts, substitution_kind_index};
use crate::tracked_junction::TrackedJunction;

/// Weight of the prior rate, as a number of wrong bases (chosen). A larger value gives the less specific rate more
/// weight.
const PRIOR_WEIGHT_BASES: f64 = 3.0;
/// Prior for all substitutions: one error in this number of molecules (empirical). A larger value makes errors rarer in
/// samples with little data.
const PRIOR_MOLECULES_PER_ERROR: f64 = 2e4;
/// Weight of the sample's mean error rate, as a number of wrong bases, in the estimate of the error level near one
/// junction (chosen). With a larger value junctions differ less from the mean.
const LOCAL_PRIOR_WEIGHT_BASES: f64 = 3.0;
/// Error rate (share of molecules) of indels and junctions that do not change the length of a tandem repeat. Assumed,
/// not measured: `docs/evidence/2026-11-24-track.md`. A larger value needs more molecules for a detection.
const NON_REPEAT_INDEL_ERROR_RATE: f64 = 5e-6;
/// Share of the molecules with one wrong base whose next base is wrong too (empirical). A larger value needs more
/// molecules to detect adjacent substitutions.
const ADJACENT_ERROR_SHARE: f64 = 0.01;
/// Maximum number of sites from which the variation of error rates between positions is estimated.
const MAX_GAMMA_SHAPE_SITES: usize = 400_000;
/// Minimum and maximum shape of the gamma distribution of error rates between positions: 0.25 for very uneven rates, 20
/// for almost equal ones.
const GAMMA_SHAPE_RANGE: (f64, f64) = (0.25, 20.0);
/// Shape of the gamma distribution, between positions, of slippage rates and of errors of several adjacent bases, which
/// vary most (empirical).
const SLIPPAGE_RATE_GAMMA_SHAPE: f64 = 1.0;

/// Background error rates of one sample, measured on the bases near the tracked substitutions.
#[derive(Debug, Clone, PartialEq)]
pub struct BackgroundErrorRates {
    /// Error rate (share of molecules) by kind of substitution.
    rates: Vec<f64>,
    /// Shape of the gamma distribution of error rates between positions; a larger shape means more even rates.
    pub gamma_shape: f64,
    /// Number of molecules counted at flanking bases, summed over these bases, and number of wrong bases among them.
    pub flank_molecules: [u64; 2],
}

/// Rates at which errors make molecules without a tracked change look as if they had it, and their uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JunctionErrorRates {
    /// Share of molecules that look like the change by error: with read 1 oriented against the junction, and with read
    /// 1 oriented like it.
    pub rates: [f64; 2],
    /// Shape of the gamma distribution of these rates; a larger shape means less uncertainty.
    pub gamma_shape: f64,
}

/// The part of a [`FlankErrorCounts`] that is kept for its junction, in some hundred bytes: thousands of junctions have
/// it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CompactFlankErrorCounts {
    /// For each kind of substitution, the number of molecules in which it could have occurred: bytes if all are small.
    seen: KindCounts,
    /// Number of molecules with a wrong base.
    num_wrong: u64,
}

/// One number for each kind of substitution.
#[derive(Debug, Clone, PartialEq)]
enum KindCounts {
    Small(Box<[u8]>),
    Large(Box<[u32]>),
}

impl KindCounts {
    fn from_counts(counts: &[u32]) -> KindCounts {
        let small: Result<Box<[u8]>, _> = counts.iter().map(|&n| u8::try_from(n)).collect();
        small.map_or_else(|_| KindCounts::Large(counts.into()), KindCounts::Small)
    }

    fn count_of_kind(&self, kind: usize) -> u32 {
        match self {
            KindCounts::Small(counts) => counts[kind].into(),
            KindCounts::Large(counts) => counts[kind],
        }
    }
}

/// Sums of the counts at the flanks of all junctions, which are added in the order of the junctions.
#[derive(Debug)]
pub(crate) struct FlankErrorSums {
    seen: Vec<u64>,
    wrong: Vec<u64>,
    /// The counts of the first [`MAX_GAMMA_SHAPE_SITES`] sites.
    sites: Vec<WrongBaseSiteCounts>,
}

impl FlankErrorSums {
    /// Sums of no junction.
    pub(crate) fn zero_sums() -> FlankErrorSums {
        let zero = vec![0; NUM_SUBSTITUTION_KINDS];
        FlankErrorSums { seen: zero.clone(), wrong: zero, sites: Vec::new() }
    }

    /// Adds the counts of the next junction. Returns what [`BackgroundErrorRates::error_rates_of_junction`] needs of
    /// them.
    pub(crate) fn add_and_compact_flank_counts(&mut self, counts: &FlankErrorCounts) -> CompactFlankErrorCounts {
        self.seen.iter_mut().zip(&counts.seen).for_each(|(all, n)| *all += u64::from(*n));
        self.wrong.iter_mut().zip(&counts.wrong).for_each(|(all, n)| *all += u64::from(*n));
        self.sites.extend(counts.sites.iter().take(MAX_GAMMA_SHAPE_SITES - self.sites.len()));
        let num_wrong = counts.wrong.iter().map(|&n| u64::from(n)).sum();
        CompactFlankErrorCounts { seen: KindCounts::from_counts(&counts.seen), num_wrong }
    }
}

impl BackgroundErrorRates {
    /// Estimates the error rates from the counts at the flanks of all junctions.
    pub(crate) fn estimate_from_flank_sums(
        FlankErrorSums { seen, wrong, sites }: FlankErrorSums,
    ) -> BackgroundErrorRates {
        // A kind without its flanking bases: the middle base and the read base.
        let narrow = |k: usize| (k >> 2 & 3) << 2 | (k & 3);
        let sum = |of: &[u64], fits: &dyn Fn(usize) -> bool| {
            (0..NUM_SUBSTITUTION_KINDS).filter(|&k| fits(k)).map(|k| of[k]).sum::<u64>() as f64
        };
        let all = |of: &[u64]| sum(of, &|_| true);
        let lean =
            |wrong: f64, seen: f64, guess: f64| (wrong + PRIOR_WEIGHT_BASES) / (seen + PRIOR_WEIGHT_BASES / guess);
        // Each molecule is counted for three possible substitutions.
        let any = (all(&wrong) + 1.0) / (all(&seen) + PRIOR_MOLECULES_PER_ERROR);
        let rate = |k: usize| {
            let of = |counts: &[u64]| sum(counts, &|other| narrow(other) == narrow(k));
            let wider = lean(of(&wrong), of(&seen), any);
            lean(wrong[k] as f64, seen[k] as f64, wider)
        };
        let rates: Vec<f64> = (0..NUM_SUBSTITUTION_KINDS).map(rate).collect();
        let gamma_shape = estimate_shape(sites.iter(), &rates);
        BackgroundErrorRates { rates, gamma_shape, flank_molecules: [seen.iter().sum::<u64>() / 3, wrong.iter().sum()] }
    }

    /// Ratio of the error rate near one junction to that of all junctions, at least 1.
    fn local_error_factor(&self, flank_counts: &CompactFlankErrorCounts) -> f64 {
        let kinds = self.rates.iter().enumerate();
        let expected: f64 = kinds.map(|(k, rate)| f64::from(flank_counts.seen.count_of_kind(k)) * rate).sum();
        let found = flank_counts.num_wrong as f64;
        ((found + LOCAL_PRIOR_WEIGHT_BASES) / (expected + LOCAL_PRIOR_WEIGHT_BASES)).max(1.0)
    }

    /// Error rates at one junction. `flank_counts` are the counts at its flanks. Only rates of substitutions are
    /// measured; for other changes the usual slippage rate of the repeat or a constant is assumed.
    pub(crate) fn error_rates_of_junction(
        &self,
        junction: &TrackedJunction,
        flank_counts: Option<&CompactFlankErrorCounts>,
    ) -> JunctionErrorRates {
        let (Some(flank_counts), Some((reference, cut)), true) =
            (flank_counts, junction.left_reference_and_junction_offset(), junction.is_substitution())
        else {
            return match junction.repeat {
                Some((unit, length)) => JunctionErrorRates {
                    rates: [repeat_slippage_rate(unit, length); 2],
                    gamma_shape: SLIPPAGE_RATE_GAMMA_SHAPE,
                },
                None => JunctionErrorRates { rates: [NON_REPEAT_INDEL_ERROR_RATE; 2], gamma_shape: self.gamma_shape },
            };
        };
        let factor = self.local_error_factor(flank_counts);
        let rate = |base: usize, side: bool| {
            let context =
                [cut + base - 1, cut + base, cut + base + 1].map(|at| reference.get(at).copied().unwrap_or(b'N'));
            let new = genuma_reads::dna::encode_base(junction.alternative[junction.side_bounds[0] + base]);
            let kind = substitution_kind_index(context, new, side);
            kind.map_or(NON_REPEAT_INDEL_ERROR_RATE, |k| self.rates[k])
        };
        let rates = [false, true].map(|side| {
            let differing = (0..junction.num_inserted_bases())
                .filter(|&b| reference.get(cut + b) != junction.alternative.get(junction.side_bounds[0] + b));
            let mut each: Vec<f64> = differing.map(|b| rate(b, side)).collect();
            each.sort_by(f64::total_cmp);
            // Several wrong bases at once are as rare as the rarest of them, but not independent.
            let next: f64 = if each.len() > 1 { ADJACENT_ERROR_SHARE } else { 1.0 };
            (each.first().copied().unwrap_or(NON_REPEAT_INDEL_ERROR_RATE) * factor * next).clamp(1e-7, 0.5)
        });
        JunctionErrorRates {
            rates,
            gamma_shape: if junction.class == ChangeClass::Snv { self.gamma_shape } else { SLIPPAGE_RATE_GAMMA_SHAPE },
        }
    }
}

/// Estimates the shape of the gamma distribution of error rates between positions. Only the variance between positions
/// beyond one standard deviation of chance counts.
fn estimate_shape<'a>(sites: impl Iterator<Item = &'a WrongBaseSiteCounts>, rates: &[f64]) -> f64 {
    let (mut squares, mut beyond, mut chance) = (0.0, 0.0, 0.0);
    for site in sites {
        let mean: f64 = [0, 1].map(|i| f64::from(site.molecules[i]) * rates[usize::from(site.kinds[i])]).iter().sum();
        squares += mean * mean;
        beyond += (f64::from(site.wrong) - mean).powi(2) - mean;
        chance += mean + 2.0 * mean * mean;
    }
    let surely = beyond - chance.sqrt();
    if surely <= 0.0 { GAMMA_SHAPE_RANGE.1 } else { (squares / surely).clamp(GAMMA_SHAPE_RANGE.0, GAMMA_SHAPE_RANGE.1) }
}

/// Share of molecules in which a tandem repeat of `length` bases with units of `unit` bases slips by one unit during
/// PCR and sequencing: twice the usual rate.
fn repeat_slippage_rate(unit: usize, length: usize) -> f64 {
    /// Number of units of a homopolymer, and its usual slippage rate. Empirical.
    const HOMOPOLYMER_SLIPPAGE_RATES: [(f64, f64); 6] =
        [(3.0, 1e-5), (6.0, 4e-4), (8.0, 3e-3), (10.0, 0.015), (12.0, 0.05), (15.0, 0.15)];
    let copies = length as f64 / unit as f64 * if unit == 1 { 1.0 } else { 1.1 };
    let usual = match HOMOPOLYMER_SLIPPAGE_RATES.iter().position(|u| u.0 >= copies) {
        Some(0) => HOMOPOLYMER_SLIPPAGE_RATES[0].1,
        Some(i) => {
            let [(a, one), (b, other)] = [HOMOPOLYMER_SLIPPAGE_RATES[i - 1], HOMOPOLYMER_SLIPPAGE_RATES[i]];
            (one.ln() + (other.ln() - one.ln()) * (copies - a) / (b - a)).exp()
        }
        None => 0.3,
    };
    (2.0 * usual).min(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(seen: u32, wrong: impl Fn(usize) -> u32) -> FlankErrorCounts {
        FlankErrorCounts {
            seen: vec![seen; NUM_SUBSTITUTION_KINDS],
            wrong: (0..NUM_SUBSTITUTION_KINDS).map(wrong).collect(),
            sites: vec![],
        }
    }

    fn background(counts: &[FlankErrorCounts]) -> BackgroundErrorRates {
        let mut sums = FlankErrorSums::zero_sums();
        counts.iter().for_each(|counts| {
            sums.add_and_compact_flank_counts(counts);
        });
        BackgroundErrorRates::estimate_from_flank_sums(sums)
    }

    #[test]
    fn kinds_have_rates_of_their_own_where_there_is_enough_to_see() {
        // C>T in CpG (A C G > T) is frequent, other substitutions are rare.
        let damaged = substitution_kind_index(*b"ACG", 3, true).unwrap();
        let much = watched(100_000, |k| if k == damaged { 600 } else { 5 });
        let of = background(&[much]);
        assert!((of.rates[damaged] / 6e-3 - 1.0).abs() < 0.1, "{}", of.rates[damaged]);
        let other = substitution_kind_index(*b"AAG", 3, true).unwrap();
        assert!((4e-5..8e-5).contains(&of.rates[other]), "{}", of.rates[other]);
        // On the other strand this is G>A.
        assert_eq!(substitution_kind_index(*b"CGT", 0, false), Some(damaged));
        assert_ne!(substitution_kind_index(*b"CGT", 0, true), Some(damaged));
        assert_eq!(substitution_kind_index(*b"CNT", 0, true), None);
        // With few data the estimate is uncertain; without data it is the prior.
        let little = watched(20, |k| u32::from(k == damaged));
        let guess = background(&[little]);
        assert!(guess.rates[damaged] < 1e-3 && guess.rates[damaged] > guess.rates[other]);
        let nothing = background(&[]);
        assert!(nothing.rates.iter().all(|rate| (1e-5..1e-3).contains(rate)));
    }

    #[test]
    fn a_place_that_errs_more_than_others_is_told_by_its_surroundings() {
        let usual: Vec<FlankErrorCounts> = (0..50).map(|_| watched(2000, |k| u32::from(k % 8 == 0))).collect();
        let bad = watched(2000, |_| 2);
        let of = background(&usual);
        let [usual, bad] =
            [&usual[0], &bad].map(|counts| FlankErrorSums::zero_sums().add_and_compact_flank_counts(counts));
        assert!(
            of.local_error_factor(&usual) < 1.2 && of.local_error_factor(&bad) > 8.0,
            "{}",
            of.local_error_factor(&bad)
        );
        // Small numbers are stored as bytes and give the same factor.
        let few = FlankErrorSums::zero_sums().add_and_compact_flank_counts(&watched(255, |_| 2));
        let large =
            CompactFlankErrorCounts { seen: KindCounts::Large([255; NUM_SUBSTITUTION_KINDS].into()), ..few.clone() };
        assert!(matches!(few.seen, KindCounts::Small(_)) && matches!(bad.seen, KindCounts::Large(_)));
        assert_eq!(of.local_error_factor(&few), of.local_error_factor(&large));
    }

    #[test]
    fn spots_that_differ_more_than_by_chance_are_uneven() {
        let rates = vec![1e-3; NUM_SUBSTITUTION_KINDS];
        let spot = |wrong: u32| WrongBaseSiteCounts { molecules: [1000, 1000], kinds: [0, 0], wrong };
        let even: Vec<WrongBaseSiteCounts> = (0..4000).map(|i| spot([0, 1, 2, 2, 3, 4, 1, 3][i % 8])).collect();
        let uneven: Vec<WrongBaseSiteCounts> = (0..4000).map(|i| spot(if i % 10 == 0 { 20 } else { 0 })).collect();
        assert_eq!(estimate_shape(even.iter(), &rates), GAMMA_SHAPE_RANGE.1);
        assert!(estimate_shape(uneven.iter(), &rates) < 0.3);
    }

    #[test]
    fn longer_repeats_slip_more() {
        let rates = [(1, 4), (1, 6), (1, 9), (1, 12), (1, 30)].map(|(unit, length)| repeat_slippage_rate(unit, length));
        assert!(rates.windows(2).all(|w| w[0] < w[1]) && rates[4] <= 0.6, "{rates:?}");
        assert!(
            repeat_slippage_rate(2, 12) < repeat_slippage_rate(1, 8)
                && repeat_slippage_rate(2, 24) > repeat_slippage_rate(1, 10)
        );
    }
}
