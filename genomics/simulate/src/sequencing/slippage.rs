//! Slippage: length changes of tandem repeats when they are copied.
//!
//! The rates match PCR-amplified libraries: 1.5 % of the molecules with a homopolymer of 10 bases have another length,
//! and 30 % of those with a homopolymer of 20 bases. The increase with length, and the excess of losses over gains,
//! follow Clarke et al., Molecular Pathology 2001.

use super::molecule::Molecule;
use super::read_counts::ReadAndArtefactCounts;
use crate::rng::Rng;
use crate::tandem_repeats::{self, TandemRepeat};

/// Homopolymers: length in bases, and share of molecules with another length. Between these lengths rates are
/// interpolated on a logarithmic scale.
const HOMOPOLYMER_RATES: [(f64, f64); 7] =
    [(6.0, 0.0006), (8.0, 0.003), (10.0, 0.015), (12.0, 0.05), (15.0, 0.15), (20.0, 0.30), (40.0, 0.45)];
/// Dinucleotide repeats: number of units, and share of molecules with another length.
const DINUCLEOTIDE_RATES: [(f64, f64); 5] = [(5.0, 0.001), (10.0, 0.03), (15.0, 0.12), (20.0, 0.22), (40.0, 0.40)];
/// Slippage rate of repeats with longer units, relative to dinucleotide repeats with the same number of units.
const LONGER_UNIT_FACTOR: f64 = 1.0 / 3.0;
/// Share of the slips that PCR makes; sequencing makes the rest.
const PCR_SLIP_SHARE: f64 = 0.8;
/// Share of the slips that remove units; the others add units.
const UNIT_LOSS_SHARE: f64 = 0.75;
/// Share of the slips that remove or add two units instead of one.
const TWO_UNIT_SHARE: f64 = 0.1;
/// Largest slippage rate of a tandem repeat in one stage, also after multiplication by the factor of
/// [`SlippageModel::for_stage`].
const MAX_SLIP_RATE: f64 = 0.9;
/// Number of repeat lengths (in bases) with a tabulated rate. Longer repeats have the rate of the longest tabulated
/// one.
const TABULATED_LENGTHS: usize = 256;

/// Step of the laboratory at which slippage happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlippageStage {
    /// PCR: all duplicates of a molecule share the slip.
    Pcr,
    /// Sequencing: each read slips independently.
    Sequencing,
}

/// Slippage rates of PCR or of sequencing.
#[derive(Debug)]
pub(super) struct SlippageModel {
    /// Slippage rates, indexed by unit length and repeat length in bases.
    rates: Vec<[f32; TABULATED_LENGTHS]>,
}

/// A slippage error: a length change of one tandem repeat by whole units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RepeatSlip {
    /// The tandem repeat before the change.
    pub repeat: TandemRepeat,
    /// Number of units added (negative: removed).
    pub units: isize,
}

/// Returns the share of molecules in which a tandem repeat has another length after PCR and sequencing together.
fn total_slip_rate(unit: usize, length: usize) -> f64 {
    let units = length as f64 / unit as f64;
    match unit {
        1 => interpolate_log(&HOMOPOLYMER_RATES, units),
        2 => interpolate_log(&DINUCLEOTIDE_RATES, units),
        _ => LONGER_UNIT_FACTOR * interpolate_log(&DINUCLEOTIDE_RATES, units),
    }
}

fn interpolate_log(anchors: &[(f64, f64)], x: f64) -> f64 {
    let right = anchors.partition_point(|a| a.0 < x).clamp(1, anchors.len() - 1);
    let ((x0, y0), (x1, y1)) = (anchors[right - 1], anchors[right]);
    let at = (x.min(anchors[anchors.len() - 1].0) - x0) / (x1 - x0);
    y0 * (y1 / y0).powf(at)
}

impl SlippageModel {
    /// Creates the rates of one stage, multiplied by `factor`; `None` if the factor is 0.
    pub(super) fn for_stage(stage: SlippageStage, factor: f64) -> Option<Self> {
        let part = if stage == SlippageStage::Pcr { PCR_SLIP_SHARE } else { 1.0 - PCR_SLIP_SHARE };
        let rate = |unit, length| (factor * part * total_slip_rate(unit, length)).min(MAX_SLIP_RATE) as f32;
        let of_unit = |unit: usize| std::array::from_fn(|length| rate(unit, length));
        (factor > 0.0).then(|| SlippageModel { rates: (1..=tandem_repeats::MAX_REPEAT_UNIT_BP).map(of_unit).collect() })
    }

    /// Draws whether the length of a tandem repeat changes, and by how many units; `None` if it does not change.
    pub(super) fn draw_slip(&self, repeat: TandemRepeat, rng: &mut Rng) -> Option<RepeatSlip> {
        let length = repeat.end - repeat.start;
        // A read may end within the tandem repeat.
        if length < 2 * repeat.unit {
            return None;
        }
        if !rng.draw_bernoulli(f64::from(self.rates[repeat.unit - 1][length.min(TABULATED_LENGTHS - 1)])) {
            return None;
        }
        let units = if rng.draw_bernoulli(TWO_UNIT_SHARE) { 2 } else { 1 };
        // At least one unit stays.
        let lost = units.min(length / repeat.unit - 1) as isize;
        Some(RepeatSlip { repeat, units: if rng.draw_bernoulli(UNIT_LOSS_SHARE) { -lost } else { units as isize } })
    }

    /// Draws length changes for the tandem repeats of a molecule, and applies them.
    pub(super) fn apply_random_slips(
        &self,
        molecule: &mut Molecule,
        rng: &mut Rng,
        counts: &mut ReadAndArtefactCounts,
    ) {
        let drawn = molecule.repeats.iter().filter_map(|&t| self.draw_slip(t, rng));
        let mut slips: Vec<RepeatSlip> = drawn.collect();
        if slips.is_empty() {
            return;
        }
        counts.pcr_slips += slips.len() as u64;
        if molecule.mate_starts_at_stored_end(0) {
            let n = molecule.len();
            slips.iter_mut().for_each(|slip| slip.repeat = repeat_on_reverse_strand(slip.repeat, n));
        }
        slips.sort_unstable_by_key(|slip| std::cmp::Reverse(slip.repeat.start));
        for slip in &slips {
            slip.apply_slip_to_bases(molecule.read1_strand_mut());
            molecule.record_slip(slip.repeat.start, slip.bases_gained());
        }
        molecule.repeats.clear();
        let strand = std::mem::take(molecule.read1_strand_mut());
        tandem_repeats::append_tandem_repeats(&strand, &mut molecule.repeats);
        *molecule.read1_strand_mut() = strand;
    }
}

impl RepeatSlip {
    /// Returns the number of bases that the slip adds (negative: removes).
    pub(super) fn bases_gained(&self) -> isize {
        self.units * self.repeat.unit as isize
    }

    /// Applies the length change to a sequence that contains the repeat.
    pub(super) fn apply_slip_to_bases(&self, bases: &mut Vec<u8>) {
        let TandemRepeat { start, unit, .. } = self.repeat;
        let changed = unit * self.units.unsigned_abs();
        if self.units < 0 {
            bases.drain(start..(start + changed).min(bases.len()));
        } else {
            let units: Vec<u8> = bases[start..start + unit].iter().copied().cycle().take(changed).collect();
            bases.splice(start..start, units);
        }
    }
}

/// Returns the positions of a tandem repeat in the reverse complement of its sequence of `n` bases.
pub(super) fn repeat_on_reverse_strand(repeat: TandemRepeat, n: usize) -> TandemRepeat {
    TandemRepeat { start: n - repeat.end, end: n - repeat.start, ..repeat }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_libraries_made_by_pcr() {
        for (unit, units, rate) in
            [(1, 8, 0.003), (1, 10, 0.015), (1, 12, 0.05), (1, 15, 0.15), (1, 20, 0.3), (2, 10, 0.03), (2, 15, 0.12)]
        {
            assert!((total_slip_rate(unit, unit * units) / rate - 1.0).abs() < 1e-9);
        }
        assert!((total_slip_rate(3, 30) - 0.01).abs() < 1e-9);
        assert!((total_slip_rate(1, 90) - 0.45).abs() < 1e-9);
        let rates = (6..40).map(|n| total_slip_rate(1, n));
        assert!(rates.is_sorted());
    }

    #[test]
    fn slips_are_as_frequent_as_asked_and_mostly_losses() {
        let mut rng = Rng::from_seed_and_labels(6, &[]);
        let repeat = TandemRepeat { start: 5, end: 17, unit: 1 };
        let count = |stage, rng: &mut Rng| {
            let slippage = SlippageModel::for_stage(stage, 1.0).unwrap();
            (0..200_000).filter_map(|_| slippage.draw_slip(repeat, rng)).collect::<Vec<_>>()
        };
        let slips = count(SlippageStage::Pcr, &mut rng);
        assert!((slips.len() as f64 / 8000.0 - 1.0).abs() < 0.05, "{}", slips.len());
        let lost = slips.iter().filter(|s| s.units < 0).count() as f64 / slips.len() as f64;
        assert!((lost - 0.75).abs() < 0.02, "{lost}");
        let double = slips.iter().filter(|s| s.units.abs() == 2).count() as f64 / slips.len() as f64;
        assert!((double - 0.1).abs() < 0.02, "{double}");
        let in_sequencing = count(SlippageStage::Sequencing, &mut rng).len() as f64;
        assert!((in_sequencing / 2000.0 - 1.0).abs() < 0.1, "{in_sequencing}");
        assert!(SlippageModel::for_stage(SlippageStage::Pcr, 0.0).is_none());
    }

    #[test]
    fn slips_change_whole_units() {
        let slipped = |units| {
            let mut bases = b"GGTACACACACACATT".to_vec();
            let slip = RepeatSlip { repeat: TandemRepeat { start: 3, end: 14, unit: 2 }, units };
            slip.apply_slip_to_bases(&mut bases);
            assert_eq!(bases.len() as isize, 16 + slip.bases_gained());
            String::from_utf8(bases).unwrap()
        };
        assert_eq!([slipped(-1), slipped(2)], ["GGTACACACACATT", "GGTACACACACACACACATT"]);
        assert_eq!(
            repeat_on_reverse_strand(TandemRepeat { start: 3, end: 14, unit: 2 }, 16),
            TandemRepeat { start: 2, end: 13, unit: 2 }
        );
    }
}
