//! Tandem repeats that become longer or shorter when they are copied.
//!
//! The rates are those of libraries made by PCR: of molecules with a homopolymer of 10 bases 1.5% have another length, of
//! those with one of 20 bases 30%. That slips rise so with length, and that most lose units, is what Clarke et al.,
//! Molecular Pathology 2001, saw in products of PCR.

use super::counts::Counts;
use super::molecule::Molecule;
use crate::rng::Rng;
use crate::tandem::{self, Tract};

/// Units of a homopolymer and the rate of slips; in between the logarithm goes straight.
const HOMOPOLYMER: [(f64, f64); 7] =
    [(6.0, 0.0006), (8.0, 0.003), (10.0, 0.015), (12.0, 0.05), (15.0, 0.15), (20.0, 0.30), (40.0, 0.45)];
/// The same for two bases a unit.
const DINUCLEOTIDE: [(f64, f64); 5] = [(5.0, 0.001), (10.0, 0.03), (15.0, 0.12), (20.0, 0.22), (40.0, 0.40)];
/// Longer units slip that much less than two bases a unit.
const LONGER_UNITS: f64 = 1.0 / 3.0;
/// Part of the slips that PCR makes; the others are the sequencer's.
const PCR_PART: f64 = 0.8;
/// Share of the slips that lose units.
const LOSSES: f64 = 0.75;
/// Share of the slips by two units.
const DOUBLE: f64 = 0.1;
/// Highest rate, whatever the factor.
const HIGHEST: f64 = 0.9;
/// Lengths with a rate of their own, bases; longer tracts slip as one of this length.
const LENGTHS: usize = 256;

/// Where copying is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before sequencing: all copies of a molecule share the slip.
    Pcr,
    /// On the flow cell: each read for itself.
    Sequencing,
}

/// How often tracts slip at one stage.
#[derive(Debug)]
pub struct Slippage {
    /// By unit and length.
    rates: Vec<[f32; LENGTHS]>,
}

/// A change of a tract's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slip {
    /// The tract.
    pub tract: Tract,
    /// Units gained, or lost if negative.
    pub units: isize,
}

/// The share of molecules in which a tract has another length, after PCR and sequencing.
fn usual_rate(unit: usize, length: usize) -> f64 {
    let units = length as f64 / unit as f64;
    match unit {
        1 => interpolated(&HOMOPOLYMER, units),
        2 => interpolated(&DINUCLEOTIDE, units),
        _ => LONGER_UNITS * interpolated(&DINUCLEOTIDE, units),
    }
}

fn interpolated(anchors: &[(f64, f64)], x: f64) -> f64 {
    let right = anchors.partition_point(|a| a.0 < x).clamp(1, anchors.len() - 1);
    let ((x0, y0), (x1, y1)) = (anchors[right - 1], anchors[right]);
    let at = (x.min(anchors[anchors.len() - 1].0) - x0) / (x1 - x0);
    y0 * (y1 / y0).powf(at)
}

impl Slippage {
    /// Rates of a stage times `factor`; `None` when nothing slips.
    pub fn new(stage: Stage, factor: f64) -> Option<Self> {
        let part = if stage == Stage::Pcr { PCR_PART } else { 1.0 - PCR_PART };
        let rate = |unit, length| (factor * part * usual_rate(unit, length)).min(HIGHEST) as f32;
        let of_unit = |unit: usize| std::array::from_fn(|length| rate(unit, length));
        (factor > 0.0).then(|| Slippage { rates: (1..=tandem::LONGEST_UNIT).map(of_unit).collect() })
    }

    /// Whether and how a tract slips.
    pub fn draw(&self, tract: Tract, rng: &mut Rng) -> Option<Slip> {
        let length = tract.end - tract.start;
        // A read may end in the tract.
        if length < 2 * tract.unit {
            return None;
        }
        if !rng.chance(f64::from(self.rates[tract.unit - 1][length.min(LENGTHS - 1)])) {
            return None;
        }
        let units = if rng.chance(DOUBLE) { 2 } else { 1 };
        // One unit stays.
        let lost = units.min(length / tract.unit - 1) as isize;
        Some(Slip { tract, units: if rng.chance(LOSSES) { -lost } else { units as isize } })
    }

    /// Lets the tracts of a molecule slip.
    pub fn slip(&self, molecule: &mut Molecule, rng: &mut Rng, counts: &mut Counts) {
        let drawn = molecule.tracts.iter().filter_map(|&t| self.draw(t, rng));
        let mut slips: Vec<Slip> = drawn.collect();
        if slips.is_empty() {
            return;
        }
        counts.pcr_slips += slips.len() as u64;
        if molecule.read_backwards(0) {
            let n = molecule.len();
            slips.iter_mut().for_each(|slip| slip.tract = turned(slip.tract, n));
        }
        slips.sort_unstable_by_key(|slip| std::cmp::Reverse(slip.tract.start));
        for slip in &slips {
            slip.apply(molecule.strand());
            molecule.slipped(slip.tract.start, slip.gained());
        }
        molecule.tracts.clear();
        let strand = std::mem::take(molecule.strand());
        tandem::find_tracts(&strand, &mut molecule.tracts);
        *molecule.strand() = strand;
    }
}

impl Slip {
    /// Bases gained, or lost if negative.
    pub fn gained(&self) -> isize {
        self.units * self.tract.unit as isize
    }

    /// Changes the length of the tract.
    pub fn apply(&self, bases: &mut Vec<u8>) {
        let Tract { start, unit, .. } = self.tract;
        let changed = unit * self.units.unsigned_abs();
        if self.units < 0 {
            bases.drain(start..(start + changed).min(bases.len()));
        } else {
            let units: Vec<u8> = bases[start..start + unit].iter().copied().cycle().take(changed).collect();
            bases.splice(start..start, units);
        }
    }
}

/// The tract as the other strand of `n` bases has it.
pub fn turned(tract: Tract, n: usize) -> Tract {
    Tract { start: n - tract.end, end: n - tract.start, ..tract }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_libraries_made_by_pcr() {
        for (unit, units, rate) in [
            (1, 8, 0.003),
            (1, 10, 0.015),
            (1, 12, 0.05),
            (1, 15, 0.15),
            (1, 20, 0.3),
            (2, 10, 0.03),
            (2, 15, 0.12),
        ] {
            assert!((usual_rate(unit, unit * units) / rate - 1.0).abs() < 1e-9);
        }
        assert!((usual_rate(3, 30) - 0.01).abs() < 1e-9);
        assert!((usual_rate(1, 90) - 0.45).abs() < 1e-9);
        let rates = (6..40).map(|n| usual_rate(1, n));
        assert!(rates.is_sorted());
    }

    #[test]
    fn slips_are_as_frequent_as_asked_and_mostly_losses() {
        let mut rng = Rng::stream(6, &[]);
        let tract = Tract { start: 5, end: 17, unit: 1 };
        let count = |stage, rng: &mut Rng| {
            let slippage = Slippage::new(stage, 1.0).unwrap();
            (0..200_000).filter_map(|_| slippage.draw(tract, rng)).collect::<Vec<_>>()
        };
        let slips = count(Stage::Pcr, &mut rng);
        assert!((slips.len() as f64 / 8000.0 - 1.0).abs() < 0.05, "{}", slips.len());
        let lost = slips.iter().filter(|s| s.units < 0).count() as f64 / slips.len() as f64;
        assert!((lost - 0.75).abs() < 0.02, "{lost}");
        let double = slips.iter().filter(|s| s.units.abs() == 2).count() as f64 / slips.len() as f64;
        assert!((double - 0.1).abs() < 0.02, "{double}");
        let in_sequencing = count(Stage::Sequencing, &mut rng).len() as f64;
        assert!((in_sequencing / 2000.0 - 1.0).abs() < 0.1, "{in_sequencing}");
        assert!(Slippage::new(Stage::Pcr, 0.0).is_none());
    }

    #[test]
    fn slips_change_whole_units() {
        let slipped = |units| {
            let mut bases = b"GGTACACACACACATT".to_vec();
            let slip = Slip { tract: Tract { start: 3, end: 14, unit: 2 }, units };
            slip.apply(&mut bases);
            assert_eq!(bases.len() as isize, 16 + slip.gained());
            String::from_utf8(bases).unwrap()
        };
        assert_eq!([slipped(-1), slipped(2)], ["GGTACACACACATT", "GGTACACACACACACACATT"]);
        assert_eq!(turned(Tract { start: 3, end: 14, unit: 2 }, 16), Tract { start: 2, end: 13, unit: 2 });
    }
}
