//! Microsatellite instability: the share of tandem repeats whose length changed in the tumour.
//!
//! A length change in a repeat with frequent slippage needs more molecules for a call, and few reads span a long
//! repeat. So each repeat is weighted by the probability that a change of its length is called, and repeats with a
//! small probability are left out.

use std::collections::HashMap;

use genuma_pair::confidence_interval::Estimate;
use genuma_reads::fasta::Reference;
use genuma_reads::targets::Targets;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::event::Event;
use crate::genotype::MIN_CALL_MOLECULES_COMMON_ERROR;
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::slippage::SlippageModel;
use crate::tandem_repeat::MAX_SHORT_REPEAT_UNIT_BP;

/// Microsatellite instability of a tumour, with the numbers of repeats on which it is based.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MicrosatelliteInstability {
    /// Number of assessed repeats: repeats of the reference in which a length change would probably be called. Repeats
    /// of at least five copies of 1 to 6 bp, 10 to 80 bp long, are considered; with targets, only those in targets.
    pub tracts: u64,
    /// Number of considered repeats that are not assessed, because a length change would probably not be called.
    pub not_assessable: u64,
    /// Number of assessed repeats with a changed length, from calls that passed.
    pub unstable: u64,
    /// Estimated share of repeats with a changed length, corrected for changes that are not called.
    pub share: Estimate,
}

/// Properties of a tumour sample that determine whether a length change of a tandem repeat is detected.
#[derive(Debug, Clone, Copy)]
pub struct LengthChangeDetectionConditions<'a> {
    /// Modal depth of the tumour's k-mers (with targets, the median depth in them), without duplicates.
    pub kmer_depth: f64,
    /// Read length in bases.
    pub read_len_bases: usize,
    /// Share of tumour cells in the tumour sample, 0 to 1.
    pub purity: f64,
    /// Slippage rates of repeats.
    pub slippage: &'a SlippageModel,
    /// The targets and their padding in bases: repeats elsewhere are not considered. `None` considers all repeats.
    pub targets: Option<(&'a Targets, usize)>,
}

/// Length of the counted k-mers.
const COUNTED_K: usize = 31;

/// Parameters of the model of microsatellite instability. The formulas are those of
/// `docs/model/msi.md`.
#[derive(Debug)]
pub(crate) struct MsiModelParams {
    /// Minimum number of copies of the unit in a repeat that is considered. Unit: copies. Source: empirical; not
    /// fitted. If higher: fewer repeats.
    pub(crate) min_tract_copies: usize,
    /// Range of lengths of the repeats that are considered. Unit: bp. Source: empirical; not fitted. If higher: longer
    /// repeats.
    pub(crate) tract_bases: std::ops::RangeInclusive<usize>,
    /// Number of flanking bases, on both sides together, without which a read does not show the length of a repeat
    /// (formula 2). Unit: bases. Source: chosen (twice `min_read_flank_bases` of the slippage model). If higher: fewer
    /// reads span a repeat, lower call probability.
    pub(crate) flank_bases: usize,
    /// Minimum probability that a length change of a repeat is called; repeats with a lower probability are left out.
    /// Unit: probability. Source: empirical; not fitted. If higher: more repeats are left out.
    pub(crate) min_call_probability: f64,
    /// Relative error of the call probabilities, 1.96 standard deviations (formula 4). Unit: share of the probability.
    /// Source: fitted on simulated pairs. If higher: wider interval.
    pub(crate) call_probability_relative_error: f64,
    /// Minimum slippage rate that is assumed in the test whether a change would pass (formula 1). Unit: share of reads.
    /// Source: empirical; not fitted. If higher: more molecules are needed in short repeats.
    pub(crate) min_slippage_rate: f64,
    /// Maximum share of molecules with the change that is assumed in the test whether a change would pass (formula 1).
    /// Unit: share of molecules. Source: chosen (keeps the logarithm finite). If higher: no visible effect.
    pub(crate) max_tested_share: f64,
    /// Minimum log-likelihood ratio of a change over errors at which the change would pass (formula 1). Unit:
    /// natural-log units. Source: derived (prior odds and minimum quality of the genotype model). If higher: more
    /// molecules are needed.
    pub(crate) min_passing_log_ratio: f64,
}

/// Values of the parameters of the model of microsatellite instability.
pub(crate) const MSI_MODEL_PARAMS: MsiModelParams = MsiModelParams {
    min_tract_copies: 5,
    tract_bases: 10..=80,
    flank_bases: 12,
    min_call_probability: 0.3,
    call_probability_relative_error: 0.09,
    min_slippage_rate: 1e-4,
    max_tested_share: 0.999,
    min_passing_log_ratio: GENOTYPE_MODEL_PARAMS.somatic_prior_log_odds
        + GENOTYPE_MODEL_PARAMS.min_quality * std::f64::consts::LN_10 / 10.0,
};

/// A tandem repeat in a sequence: start, end (exclusive) and unit length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RepeatTract {
    start: usize,
    end: usize,
    unit: usize,
}

/// Calls `each` with every tandem repeat of the sequence that is considered, by unit length. A repeat is reported with
/// its smallest unit only.
fn for_each_tract(seq: &[u8], mut each: impl FnMut(RepeatTract)) {
    for unit in 1..=MAX_SHORT_REPEAT_UNIT_BP {
        let least = (MSI_MODEL_PARAMS.min_tract_copies * unit).max(*MSI_MODEL_PARAMS.tract_bases.start());
        let repeats = |i: usize| seq[i] == seq[i - unit] && seq[i] != b'N';
        // A run of at least `run` bases contains a probed position.
        let run = least - unit;
        let (mut from, mut probe) = (unit, unit + run - 1);
        while probe < seq.len() {
            if !repeats(probe) {
                (from, probe) = (probe + 1, probe + run);
                continue;
            }
            let first = (from..probe).rev().find(|&i| !repeats(i)).map_or(from, |i| i + 1);
            let end = (probe + 1..seq.len()).find(|&i| !repeats(i)).unwrap_or(seq.len());
            let start = first - unit;
            let word = &seq[start..start + unit];
            let smaller = |u: usize| unit.is_multiple_of(u) && (u..unit).all(|i| word[i] == word[i - u]);
            if MSI_MODEL_PARAMS.tract_bases.contains(&(end - start)) && end - start >= least && !(1..unit).any(smaller)
            {
                each(RepeatTract { start, end, unit });
            }
            (from, probe) = (end + 1, end + run);
        }
    }
}

impl LengthChangeDetectionConditions<'_> {
    /// Probability that a length change by one unit, on half of the tumour cells' copies of the locus, is called in a
    /// repeat of `bases` bp.
    fn call_probability(&self, unit: usize, bases: usize) -> f64 {
        // docs/model/msi.md (2)
        let spans = self.read_len_bases.saturating_sub(bases + MSI_MODEL_PARAMS.flank_bases) as f64
            / (self.read_len_bases.max(COUNTED_K + 1) - COUNTED_K) as f64;
        let depth = self.kmer_depth * spans;
        let all = depth.round() as usize;
        let of_way = |slips: f64| {
            let slips = slips.max(MSI_MODEL_PARAMS.min_slippage_rate);
            let passes = |&k: &usize| {
                let (k, n) = (k as f64, all as f64);
                let share = (k / n).min(MSI_MODEL_PARAMS.max_tested_share);
                // docs/model/msi.md (1)
                share > slips
                    && k * (share / slips).ln() + (n - k) * ((1.0 - share) / (1.0 - slips)).ln()
                        >= MSI_MODEL_PARAMS.min_passing_log_ratio
            };
            let Some(fewest) = (MIN_CALL_MOLECULES_COMMON_ERROR..=all).find(passes) else { return 0.0 };
            // Molecule counts have a Poisson distribution.
            let mean = depth * self.purity / 2.0;
            let mut term = (-mean).exp();
            let mut below = 0.0;
            for k in 0..fewest {
                below += term;
                term *= mean / (k + 1) as f64;
            }
            1.0 - below
        };
        let [shorter, longer] = self.slippage.shortening_and_lengthening_rates(unit, bases);
        // docs/model/msi.md (3)
        (of_way(shorter.rate) + of_way(longer.rate)) / 2.0
    }
}

impl MicrosatelliteInstability {
    /// Estimates the microsatellite instability from calls that passed. `None` if no repeat of the reference can be
    /// assessed.
    pub fn estimate_microsatellite_instability<'a>(
        events: impl Iterator<Item = &'a Event>,
        genome: &Reference,
        conditions: &LengthChangeDetectionConditions<'_>,
        threads: usize,
    ) -> Option<MicrosatelliteInstability> {
        let counts = genuma_work::parallel::map_in_order(
            genome.contigs.len(),
            threads,
            || (),
            |(), i| {
                let mut found: HashMap<(usize, usize), u64> = HashMap::new();
                for_each_tract(&genome.contigs[i].seq, |t| {
                    if conditions
                        .targets
                        .is_none_or(|(targets, padding)| targets.any_padded_target_overlaps(i, t.start, t.end, padding))
                    {
                        *found.entry((t.unit, t.end - t.start)).or_default() += 1;
                    }
                });
                found
            },
        );
        let mut classes: HashMap<(usize, usize), u64> = HashMap::new();
        counts.into_iter().flatten().for_each(|(kind, n)| *classes.entry(kind).or_default() += n);
        let mut classes: Vec<((usize, usize), u64)> = classes.into_iter().collect();
        classes.sort_unstable();
        let (mut all, mut unseen, mut expected) = (0, 0, 0.0);
        for &((unit, bases), n) in &classes {
            let chance = conditions.call_probability(unit, bases);
            if chance < MSI_MODEL_PARAMS.min_call_probability {
                unseen += n;
            } else {
                all += n;
                expected += n as f64 * chance;
            }
        }
        let mut changed: Vec<(usize, usize)> = events
            .filter_map(|event| changed_tract(event, genome))
            .filter(|(_, tract)| {
                conditions.call_probability(tract.unit, tract.end - tract.start)
                    >= MSI_MODEL_PARAMS.min_call_probability
            })
            .map(|(chrom, tract)| (chrom, tract.start))
            .collect();
        changed.sort_unstable();
        changed.dedup();
        let expected = expected.round() as u64;
        let unstable = changed.len() as u64;
        let chance = Estimate::from_binomial(unstable.min(expected), expected)?;
        // docs/model/msi.md (4)
        let off = |bound: f64| {
            ((bound - chance.value).powi(2) + (MSI_MODEL_PARAMS.call_probability_relative_error * chance.value).powi(2))
                .sqrt()
        };
        let share = Estimate {
            low: (chance.value - off(chance.low)).max(0.0),
            high: (chance.value + off(chance.high)).min(1.0),
            ..chance
        };
        Some(MicrosatelliteInstability { tracts: all, not_assessable: unseen, unstable, share })
    }
}

/// The first examined repeat at whose start an event inserts or deletes a multiple of its unit length, with the index
/// of its reference sequence. The inserted or deleted bases are not compared with the unit. `None` for other events.
fn changed_tract(event: &Event, genome: &Reference) -> Option<(usize, RepeatTract)> {
    let Change::Allele { chrom, pos, reference, alternative } = &event.calls[0].change else { return None };
    let by = reference.len().abs_diff(alternative.len());
    if by == 0 {
        return None;
    }
    let seq = &genome.contigs[*chrom].seq;
    let from = pos.saturating_sub(2 * MSI_MODEL_PARAMS.tract_bases.end());
    let around = &seq[from..(pos + reference.len() + 2 * MSI_MODEL_PARAMS.tract_bases.end()).min(seq.len())];
    let mut found = None;
    for_each_tract(around, |tract| {
        let (start, end) = (from + tract.start, from + tract.end);
        // Changes are left-aligned: at the base before the repeat, or a part of a unit before it.
        let begins = start <= pos + 1 + tract.unit && *pos < start + tract.unit;
        if begins && by.is_multiple_of(tract.unit) && found.is_none() {
            found = Some((*chrom, RepeatTract { start, end, ..tract }));
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracts_are_those_of_five_copies_and_ten_bases() {
        let text = b"GCTAAAAAAAAAGTCACACACACACGTTAAAAAAAAAACTGACGACGACGACGACTT";
        let mut found = Vec::new();
        for_each_tract(text, |t| found.push((std::str::from_utf8(&text[t.start..t.end]).unwrap(), t.unit)));
        assert_eq!(found, [("AAAAAAAAAA", 1), ("CACACACACAC", 2), ("GACGACGACGACGAC", 3)]);
    }

    #[test]
    fn what_slips_often_or_is_long_is_seen_seldom() {
        let slippage = SlippageModel::default();
        let visible = LengthChangeDetectionConditions {
            kmer_depth: 24.0,
            read_len_bases: 150,
            purity: 0.7,
            slippage: &slippage,
            targets: None,
        };
        let chance = |unit, bases| visible.call_probability(unit, bases);
        assert!(chance(2, 12) > 0.9 && chance(1, 10) > 0.9, "{} {}", chance(2, 12), chance(1, 10));
        assert!(chance(1, 30) < 0.1 && chance(3, 15) > chance(3, 75), "{} {}", chance(1, 30), chance(3, 75));
        let impure = LengthChangeDetectionConditions { purity: 0.2, ..visible };
        assert!(impure.call_probability(2, 12) < 0.6);
    }
}
