//! Tandem repeats that have another length in the tumour: how many of those whose change would have been called.
//!
//! A change in a repeat that polymerases slip in often takes more molecules to be called, and a long repeat is spanned by few reads. So each tract counts
//! for as much as the chance that a change of it is called, and those where that is small are left out.

use std::collections::HashMap;

use genuma_pair::interval::Estimate;
use genuma_reads::fasta::Reference;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::event::Event;
use crate::genotype::{FEWEST_PAIRS, PRIOR};
use crate::slippage::Slippage;
use crate::tract::LONGEST_UNIT;

/// Tandem repeats whose length is another one in the tumour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// Tracts of the reference in which a change would mostly be called: of five copies of one to six bases and more, 10 to 80 bases.
    pub tracts: u64,
    /// Tracts of that kind in which it would mostly not be: they are not looked at.
    pub unseen: u64,
    /// Of `tracts` the changed ones, by calls that passed.
    pub unstable: u64,
    /// The share of the tracts that are changed, those too whose change is not called by chance.
    pub share: Estimate,
}

/// What decides whether a change is seen.
#[derive(Debug, Clone, Copy)]
pub struct Visible<'a> {
    /// How often the tumour has a k-mer of one place, without copies.
    pub kmers: f64,
    /// Bases of a read.
    pub read: usize,
    /// Share of the cells that are the tumour's.
    pub purity: f64,
    /// How often repeats slip.
    pub slippage: &'a Slippage,
}

/// Copies and bases of a tract.
const COPIES: usize = 5;
const BASES: std::ops::RangeInclusive<usize> = 10..=80;
/// Bases on both sides of a tract without which a read does not tell its length.
const FLANKS: usize = 12;
/// Bases of a k-mer.
const K: usize = 31;
/// Chance from which on a change would mostly be called.
const MOSTLY: f64 = 0.3;
/// What the chances that changes are called are off, in the share of themselves (1.96 standard deviations): as simulated pairs were.
const OFF: f64 = 0.09;
/// Log-likelihood ratio of a change over errors from which it passes: the prior odds, and a quality of 8.
const PASSES: f64 = PRIOR + 8.0 * std::f64::consts::LN_10 / 10.0;

/// A tract of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tract {
    start: usize,
    end: usize,
    unit: usize,
}

/// Calls `each` with every tract that may be counted, by unit. A tract has its smallest unit only.
fn tracts(seq: &[u8], mut each: impl FnMut(Tract)) {
    for unit in 1..=LONGEST_UNIT {
        let least = (COPIES * unit).max(*BASES.start());
        let repeats = |i: usize| seq[i] == seq[i - unit] && seq[i] != b'N';
        // A run of so many bases cannot lie between two that are looked at.
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
            if BASES.contains(&(end - start)) && end - start >= least && !(1..unit).any(smaller) {
                each(Tract { start, end, unit });
            }
            (from, probe) = (end + 1, end + run);
        }
    }
}

impl Visible<'_> {
    /// The chance that a change by one unit, in half of the tumour's copies, is called in a tract of so many bases.
    fn chance(&self, unit: usize, bases: usize) -> f64 {
        let spans = self.read.saturating_sub(bases + FLANKS) as f64 / (self.read.max(K + 1) - K) as f64;
        let depth = self.kmers * spans;
        let all = depth.round() as usize;
        let of_way = |slips: f64| {
            let slips = slips.max(1e-4);
            let passes = |&k: &usize| {
                let (k, n) = (k as f64, all as f64);
                let share = (k / n).min(0.999);
                share > slips
                    && k * (share / slips).ln() + (n - k) * ((1.0 - share) / (1.0 - slips)).ln() >= PASSES
            };
            let Some(fewest) = (FEWEST_PAIRS..=all).find(passes) else { return 0.0 };
            // Molecules come as Poisson has it.
            let mean = depth * self.purity / 2.0;
            let mut term = (-mean).exp();
            let mut below = 0.0;
            for k in 0..fewest {
                below += term;
                term *= mean / (k + 1) as f64;
            }
            1.0 - below
        };
        let [shorter, longer] = self.slippage.rates(unit, bases);
        (of_way(shorter.rate) + of_way(longer.rate)) / 2.0
    }
}

impl Repeats {
    /// From calls that passed, of a tumour of which so much is visible.
    pub fn of<'a>(
        events: impl Iterator<Item = &'a Event>,
        genome: &Reference,
        visible: &Visible<'_>,
        threads: usize,
    ) -> Option<Repeats> {
        let counts = genuma_work::parallel::in_order(
            genome.contigs.len(),
            threads,
            || (),
            |(), i| {
                let mut found: HashMap<(usize, usize), u64> = HashMap::new();
                tracts(&genome.contigs[i].seq, |t| *found.entry((t.unit, t.end - t.start)).or_default() += 1);
                found
            },
        );
        let mut kinds: HashMap<(usize, usize), u64> = HashMap::new();
        counts.into_iter().flatten().for_each(|(kind, n)| *kinds.entry(kind).or_default() += n);
        let mut kinds: Vec<((usize, usize), u64)> = kinds.into_iter().collect();
        kinds.sort_unstable();
        let (mut all, mut unseen, mut expected) = (0, 0, 0.0);
        for &((unit, bases), n) in &kinds {
            let chance = visible.chance(unit, bases);
            if chance < MOSTLY {
                unseen += n;
            } else {
                all += n;
                expected += n as f64 * chance;
            }
        }
        let mut changed: Vec<(usize, usize)> = events
            .filter_map(|event| changed(event, genome))
            .filter(|(_, tract)| visible.chance(tract.unit, tract.end - tract.start) >= MOSTLY)
            .map(|(chrom, tract)| (chrom, tract.start))
            .collect();
        changed.sort_unstable();
        changed.dedup();
        let expected = expected.round() as u64;
        let unstable = changed.len() as u64;
        let chance = Estimate::share(unstable.min(expected), expected)?;
        let off = |bound: f64| ((bound - chance.value).powi(2) + (OFF * chance.value).powi(2)).sqrt();
        let share = Estimate {
            low: (chance.value - off(chance.low)).max(0.0),
            high: (chance.value + off(chance.high)).min(1.0),
            ..chance
        };
        Some(Repeats { tracts: all, unseen, unstable, share })
    }
}

/// The tract whose length a call changes: sequence and tract.
fn changed(event: &Event, genome: &Reference) -> Option<(usize, Tract)> {
    let Change::Allele { chrom, pos, reference, alternative } = &event.calls[0].change else { return None };
    let by = reference.len().abs_diff(alternative.len());
    if by == 0 {
        return None;
    }
    let seq = &genome.contigs[*chrom].seq;
    let from = pos.saturating_sub(2 * BASES.end());
    let around = &seq[from..(pos + reference.len() + 2 * BASES.end()).min(seq.len())];
    let mut found = None;
    tracts(around, |tract| {
        let (start, end) = (from + tract.start, from + tract.end);
        // Changes stand as far left as they can: at the base before the tract, or a part of a unit before that.
        let begins = start <= pos + 1 + tract.unit && *pos < start + tract.unit;
        if begins && by.is_multiple_of(tract.unit) && found.is_none() {
            found = Some((*chrom, Tract { start, end, ..tract }));
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
        tracts(text, |t| found.push((std::str::from_utf8(&text[t.start..t.end]).unwrap(), t.unit)));
        assert_eq!(found, [("AAAAAAAAAA", 1), ("CACACACACAC", 2), ("GACGACGACGACGAC", 3)]);
    }

    #[test]
    fn what_slips_often_or_is_long_is_seen_seldom() {
        let slippage = Slippage::default();
        let visible = Visible { kmers: 24.0, read: 150, purity: 0.7, slippage: &slippage };
        let chance = |unit, bases| visible.chance(unit, bases);
        assert!(chance(2, 12) > 0.9 && chance(1, 10) > 0.9, "{} {}", chance(2, 12), chance(1, 10));
        assert!(chance(1, 30) < 0.1 && chance(3, 15) > chance(3, 75), "{} {}", chance(1, 30), chance(3, 75));
        let impure = Visible { purity: 0.2, ..visible };
        assert!(impure.chance(2, 12) < 0.6);
    }
}
