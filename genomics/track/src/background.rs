//! How often errors alone make a change, as the sample itself shows it.
//!
//! Bases round the substitutions that are looked for have no reason to differ from the reference; molecules that differ there all the same went the same way through
//! damage, PCR and sequencing, and are counted by the same rules. By kind of substitution, the bases beside it, and the strand that read 1 shows; kinds of which
//! there is little to see lean on those with other bases beside, and those on all.

use crate::change::Class;
use crate::molecules::{KINDS, Spot, Watched, kind};
use crate::place::Place;

/// Wrong bases that a guess from less specific kinds counts for.
const GUESS: f64 = 3.0;
/// What is guessed before anything is seen: one error in so many molecules.
const BEFORE: f64 = 2e4;
/// Wrong bases round a place that count for the sample's mean, when it is asked whether a place errs more than others.
const LOCAL: f64 = 3.0;
/// Indels and junctions that errors make, where no tandem repeat changes its length.
const LENGTH_ERRORS: f64 = 5e-6;
/// Share of the molecules with one neighbouring base wrong that have the next wrong, too.
const NEXT_TOO: f64 = 0.01;
/// Spots by which it is told how much places differ.
const SPOTS: usize = 400_000;
/// Shape of the gamma distribution of a place's errors: most even, and least. Slips of repeats differ most.
const SHAPES: (f64, f64) = (0.25, 20.0);
const SLIPS: f64 = 1.0;

/// Errors of one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Background {
    /// By kind of substitution.
    rates: Vec<f64>,
    /// How even places are.
    pub shape: f64,
    /// Molecules at watched bases, and those of them that were wrong.
    pub watched: [u64; 2],
}

/// What errors do at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Local {
    /// Share of the molecules that errors give the change, by whether read 1 runs with the place.
    pub rates: [f64; 2],
    /// How even places of this kind are.
    pub shape: f64,
}

impl Background {
    /// Learns from the surroundings of all places.
    pub fn of<'a>(watched: impl Iterator<Item = &'a Watched> + Clone) -> Background {
        let (mut seen, mut wrong) = (vec![0u64; KINDS], vec![0u64; KINDS]);
        for w in watched.clone() {
            seen.iter_mut().zip(&w.seen).for_each(|(all, n)| *all += u64::from(*n));
            wrong.iter_mut().zip(&w.wrong).for_each(|(all, n)| *all += u64::from(*n));
        }
        // A kind without its neighbours: the base in the middle and what is read.
        let narrow = |k: usize| (k >> 2 & 3) << 2 | (k & 3);
        let sum = |of: &[u64], fits: &dyn Fn(usize) -> bool| {
            (0..KINDS).filter(|&k| fits(k)).map(|k| of[k]).sum::<u64>() as f64
        };
        let all = |of: &[u64]| sum(of, &|_| true);
        let lean = |wrong: f64, seen: f64, guess: f64| (wrong + GUESS) / (seen + GUESS / guess);
        // A molecule is watched for three bases at once.
        let any = (all(&wrong) + 1.0) / (all(&seen) + BEFORE);
        let rate = |k: usize| {
            let of = |counts: &[u64]| sum(counts, &|other| narrow(other) == narrow(k));
            let wider = lean(of(&wrong), of(&seen), any);
            lean(wrong[k] as f64, seen[k] as f64, wider)
        };
        let rates: Vec<f64> = (0..KINDS).map(rate).collect();
        let spots = watched.flat_map(|w| &w.cells).take(SPOTS);
        let shape = shape(spots, &rates);
        Background { rates, shape, watched: [seen.iter().sum::<u64>() / 3, wrong.iter().sum()] }
    }

    /// How much more often bases are wrong round this place than they are elsewhere, at least 1.
    fn factor(&self, watched: &Watched) -> f64 {
        let expected: f64 = watched.seen.iter().zip(&self.rates).map(|(&n, rate)| f64::from(n) * rate).sum();
        let found: f64 = watched.wrong.iter().map(|&n| f64::from(n)).sum();
        ((found + LOCAL) / (expected + LOCAL)).max(1.0)
    }

    /// What errors do at a place.
    pub fn at(&self, place: &Place, watched: Option<&Watched>) -> Local {
        let (Some(watched), Some((reference, cut)), true) = (watched, &place.left, place.is_substitution())
        else {
            return match place.repeat {
                Some((unit, length)) => Local { rates: [slips(unit, length); 2], shape: SLIPS },
                None => Local { rates: [LENGTH_ERRORS; 2], shape: self.shape },
            };
        };
        let factor = self.factor(watched);
        let rate = |base: usize, side: bool| {
            let context = [cut + base - 1, cut + base, cut + base + 1]
                .map(|at| reference.get(at).copied().unwrap_or(b'N'));
            let new = genuma_reads::dna::code(place.alternative[place.cuts[0] + base]);
            let kind = kind(context, new, side);
            kind.map_or(LENGTH_ERRORS, |k| self.rates[k])
        };
        let rates = [false, true].map(|side| {
            let differing = (0..place.inserted())
                .filter(|&b| reference.get(cut + b) != place.alternative.get(place.cuts[0] + b));
            let mut each: Vec<f64> = differing.map(|b| rate(b, side)).collect();
            each.sort_by(f64::total_cmp);
            // Several bases at once are wrong as seldom as the most seldom of them, and not by chance alone.
            let next: f64 = if each.len() > 1 { NEXT_TOO } else { 1.0 };
            (each.first().copied().unwrap_or(LENGTH_ERRORS) * factor * next).clamp(1e-7, 0.5)
        });
        Local { rates, shape: if place.class == Class::Snv { self.shape } else { SLIPS } }
    }
}

/// How even spots are beyond what chance makes: only unevenness that is beyond doubt is taken for such.
fn shape<'a>(spots: impl Iterator<Item = &'a Spot>, rates: &[f64]) -> f64 {
    let (mut squares, mut beyond, mut chance) = (0.0, 0.0, 0.0);
    for spot in spots {
        let mean: f64 =
            [0, 1].map(|i| f64::from(spot.seen[i]) * rates[usize::from(spot.kinds[i])]).iter().sum();
        squares += mean * mean;
        beyond += (f64::from(spot.wrong) - mean).powi(2) - mean;
        chance += mean + 2.0 * mean * mean;
    }
    let surely = beyond - chance.sqrt();
    if surely <= 0.0 { SHAPES.1 } else { (squares / surely).clamp(SHAPES.0, SHAPES.1) }
}

/// Share of the molecules of which a repeat of `length` bases slips by a unit, as PCR and sequencers do it; twice as often as they usually do.
fn slips(unit: usize, length: usize) -> f64 {
    /// Homopolymers, and repeats of longer units by the copies that slip as much as a homopolymer of so many.
    const USUAL: [(f64, f64); 6] =
        [(3.0, 1e-5), (6.0, 4e-4), (8.0, 3e-3), (10.0, 0.015), (12.0, 0.05), (15.0, 0.15)];
    let copies = length as f64 / unit as f64 * if unit == 1 { 1.0 } else { 1.1 };
    let usual = match USUAL.iter().position(|u| u.0 >= copies) {
        Some(0) => USUAL[0].1,
        Some(i) => {
            let [(a, one), (b, other)] = [USUAL[i - 1], USUAL[i]];
            (one.ln() + (other.ln() - one.ln()) * (copies - a) / (b - a)).exp()
        }
        None => 0.3,
    };
    (2.0 * usual).min(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(seen: u32, wrong: impl Fn(usize) -> u32) -> Watched {
        Watched { seen: vec![seen; KINDS], wrong: (0..KINDS).map(wrong).collect(), cells: vec![] }
    }

    #[test]
    fn kinds_have_rates_of_their_own_where_there_is_enough_to_see() {
        // C>T in CpG (A C G > T) is frequent, all else is not.
        let damaged = kind(*b"ACG", 3, true).unwrap();
        let much = watched(100_000, |k| if k == damaged { 600 } else { 5 });
        let of = Background::of([&much].into_iter());
        assert!((of.rates[damaged] / 6e-3 - 1.0).abs() < 0.1, "{}", of.rates[damaged]);
        let other = kind(*b"AAG", 3, true).unwrap();
        assert!((4e-5..8e-5).contains(&of.rates[other]), "{}", of.rates[other]);
        // The other strand shows the same as G>A.
        assert_eq!(kind(*b"CGT", 0, false), Some(damaged));
        assert_ne!(kind(*b"CGT", 0, true), Some(damaged));
        assert_eq!(kind(*b"CNT", 0, true), None);
        // Of little one cannot tell, and of nothing one guesses.
        let little = watched(20, |k| u32::from(k == damaged));
        let guess = Background::of([&little].into_iter());
        assert!(guess.rates[damaged] < 1e-3 && guess.rates[damaged] > guess.rates[other]);
        let nothing = Background::of(std::iter::empty());
        assert!(nothing.rates.iter().all(|rate| (1e-5..1e-3).contains(rate)));
    }

    #[test]
    fn a_place_that_errs_more_than_others_is_told_by_its_surroundings() {
        let usual: Vec<Watched> = (0..50).map(|_| watched(2000, |k| u32::from(k % 8 == 0))).collect();
        let bad = watched(2000, |_| 2);
        let of = Background::of(usual.iter());
        assert!(of.factor(&usual[0]) < 1.2 && of.factor(&bad) > 8.0, "{}", of.factor(&bad));
    }

    #[test]
    fn spots_that_differ_more_than_by_chance_are_uneven() {
        let rates = vec![1e-3; KINDS];
        let spot = |wrong: u32| Spot { seen: [1000, 1000], kinds: [0, 0], wrong };
        let even: Vec<Spot> = (0..4000).map(|i| spot([0, 1, 2, 2, 3, 4, 1, 3][i % 8])).collect();
        let uneven: Vec<Spot> = (0..4000).map(|i| spot(if i % 10 == 0 { 20 } else { 0 })).collect();
        assert_eq!(shape(even.iter(), &rates), SHAPES.1);
        assert!(shape(uneven.iter(), &rates) < 0.3);
    }

    #[test]
    fn longer_repeats_slip_more() {
        let rates = [(1, 4), (1, 6), (1, 9), (1, 12), (1, 30)].map(|(unit, length)| slips(unit, length));
        assert!(rates.windows(2).all(|w| w[0] < w[1]) && rates[4] <= 0.6, "{rates:?}");
        assert!(slips(2, 12) < slips(1, 8) && slips(2, 24) > slips(1, 10));
    }
}
