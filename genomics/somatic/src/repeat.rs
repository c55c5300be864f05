//! A change of length of a tandem repeat, weighed by the lengths that reads show.

use crate::change::Change;
use crate::compare::Compared;
use crate::errors::Errors;
use crate::lay::Recruit;
use crate::recruit::Kept;
use crate::slippage::{Rate, Repeat};
use crate::tract::LONGEST_UNIT;
use crate::weigh::Weighed;
use genuma_reads::NORMAL;

/// Copies of a unit from which its repeats are weighed by their length: homopolymers, longer units.
const COPIES: [usize; 2] = [6, 3];
/// Share of the normal's reads that show a germline allele's length, at least.
const GERMLINE: f64 = 0.2;
/// Reads that the general rate of slips counts for beside the normal's own reads at this place.
const GENERAL: f64 = 20.0;

/// A finding that makes a repeat longer or shorter by whole units.
#[derive(Debug, Clone)]
pub(crate) struct LengthChange<'a> {
    contig: &'a [u8],
    /// Where the repeat lies on the contig.
    pub repeat: Repeat,
    /// Its bases in the tumour.
    pub tumour: usize,
    /// Its bases in the normal, one length or two, and in other alleles of the tumour that more reads show.
    pub others: Vec<usize>,
    /// How many reads of the normal tell a length, and how many of them the tumour's.
    told: [f64; 2],
    /// Reads of the normal that tell another length than its alleles'.
    slipped: f64,
    /// Reads of the tumour that tell another allele's length, and those that tell neither that nor the change's, but one to the other side.
    beyond: [f64; 2],
}

/// The shortest unit that the bases repeat, if they are whole copies of one.
fn unit_of(bases: &[u8]) -> Option<usize> {
    (1..=LONGEST_UNIT.min(bases.len()))
        .find(|u| bases.len().is_multiple_of(*u) && bases.iter().zip(&bases[*u..]).all(|(a, b)| a == b))
}

/// Copies of a unit from which polymerases lose or gain one now and then.
const SLIPPING: usize = 3;

/// Whether finding `f` of a contig takes away or adds whole units where several stand in a row.
pub(crate) fn in_run(contig: &Compared, f: usize) -> bool {
    of_units(contig, f).is_some_and(|(repeat, before)| repeat.len().max(before) >= SLIPPING * repeat.unit)
}

/// The repeat whose length finding `f` of a contig changes, if that is long enough to tell by its length, and the bases it had before.
pub(crate) fn changed_repeat(contig: &Compared, f: usize) -> Option<(Repeat, usize)> {
    let (repeat, before) = of_units(contig, f)?;
    let long = repeat.len().max(before) / repeat.unit;
    (long >= COPIES[usize::from(repeat.unit > 1)] && before >= repeat.unit).then_some((repeat, before))
}

/// The units that finding `f` of a contig takes away or adds, with those beside them, and the bases they had before.
fn of_units(contig: &Compared, f: usize) -> Option<(Repeat, usize)> {
    let finding = &contig.findings[f];
    if !matches!(finding.change, Change::Allele { .. }) {
        return None;
    }
    let (at, after) = (&finding.at, usize::try_from(finding.at.end as i32 + finding.right_shift).ok()?);
    let normal = finding.left_normal.get(at.start..after)?;
    let (repeat, before) = match (at.len(), normal.len()) {
        (0, gone @ 1..) => {
            let unit = unit_of(normal)?;
            let repeat = Repeat::round(&finding.left_normal, at.start, unit);
            let on_contig = Repeat { end: repeat.end.checked_sub(gone)?, ..repeat };
            (on_contig, repeat.len())
        }
        (new @ 1.., 0) => {
            let unit = unit_of(&contig.seq[at.clone()])?;
            let repeat = Repeat::round(&contig.seq, at.start, unit);
            (repeat, repeat.len().checked_sub(new)?)
        }
        _ => return None,
    };
    Some((repeat, before))
}

impl<'a> LengthChange<'a> {
    /// What finding `f` changes, if it is the length of a repeat, and what the normal's reads say of that repeat.
    pub fn of(
        contig: &'a Compared,
        f: usize,
        weighed: &[Weighed],
        recruits: &[Recruit],
        pairs: &[Kept],
    ) -> Option<LengthChange<'a>> {
        let (repeat, before) = changed_repeat(contig, f)?;
        let tumour = repeat.len();
        let shown_in = |normal: bool| {
            let mut shown: Vec<usize> = weighed
                .iter()
                .filter(|w| (pairs[recruits[w.recruit].pair as usize].sample == NORMAL) == normal)
                .filter_map(|w| repeat.in_read(&contig.seq, &w.read.seq, &recruits[w.recruit].at))
                .collect();
            shown.sort_unstable();
            shown
        };
        let shown = shown_in(true);
        let all = shown.len() as f64;
        let own = shown.iter().filter(|&&l| l == tumour).count() as f64;
        let germline = |same: &&[usize]| same.len() >= 3 && same.len() as f64 >= GERMLINE * all;
        let mut others: Vec<usize> = shown
            .chunk_by(|a, b| a == b)
            .filter(germline)
            .map(|same| same[0])
            .filter(|&l| l != tumour)
            .collect();
        if others.is_empty() {
            others.push(before);
        }
        let slipped = shown.iter().filter(|l| !others.contains(l)).count() as f64;
        // A slip of another allele of the tumour would take its reads for its own, being nearer to them than the normal is.
        let in_tumour = shown_in(false);
        let with_it = in_tumour.iter().filter(|&&l| l == tumour).count();
        let more = |same: &&[usize]| same.len() > with_it && !others.contains(&same[0]);
        let rivals: Vec<usize> = in_tumour.chunk_by(|a, b| a == b).filter(more).map(|s| s[0]).collect();
        others.extend(rivals);
        let ends = others.iter().fold((usize::MAX, 0), |(least, most), &l| (least.min(l), most.max(l)));
        let other_side = |&&l: &&usize| if tumour < ends.0 { l > ends.1 } else { l < ends.0 };
        let count = |wanted: &dyn Fn(&&usize) -> bool| in_tumour.iter().filter(wanted).count() as f64;
        let beyond = [count(&|l| others.contains(l)), count(&other_side)];
        Some(LengthChange { contig: &contig.seq, repeat, tumour, others, told: [all, own], slipped, beyond })
    }

    /// Log-odds of a mate for the tumour's length: 0 when it does not show one.
    pub fn log_odds(&self, weighed: &Weighed, offsets: &[i32], errors: &Errors) -> f64 {
        let Some(shown) = self.in_read(weighed, offsets) else { return 0.0 };
        let of = |length: usize| errors.slippage.probability(self.repeat.unit, length, shown);
        let other = if shown == self.tumour {
            self.slips(errors).rate
        } else {
            self.others.iter().map(|&l| of(l)).fold(0.0, f64::max)
        };
        (of(self.tumour) / other).ln()
    }

    /// How often another allele's reads show the tumour's length.
    pub fn slips(&self, errors: &Errors) -> Rate {
        let unit = self.repeat.unit;
        let slip = |&l: &usize| (errors.slippage.probability(unit, l, self.tumour), l);
        let likeliest = self.others.iter().map(slip).max_by(|a, b| a.0.total_cmp(&b.0));
        let (general, from) = likeliest.unwrap_or_default();
        let ways = errors.slippage.rates(unit, from);
        let (way, away) = if self.tumour < from { (ways[0], ways[1]) } else { (ways[1], ways[0]) };
        // How this place slips is best told by its own reads, those of the normal either way, those of the tumour away from the change. What is
        // known of repeats of this kind counts for as many slips as make it as uncertain as it is.
        let [all, own] = self.told;
        let [exact, others] = self.beyond;
        let known = way.spread.powi(-2);
        let expected = all * (way.rate + away.rate) + (exact + others) * away.rate;
        let slipped = self.slipped + others;
        let here = general * (known + slipped) / (known + expected);
        Rate {
            rate: here.max((here * GENERAL + own) / (GENERAL + all)),
            spread: (known + slipped).powf(-0.5),
        }
    }

    fn in_read(&self, weighed: &Weighed, offsets: &[i32]) -> Option<usize> {
        // The best haplotype's own offset first: the others may belong to the far side of a change.
        let offsets = [&[weighed.at()], offsets].concat();
        self.repeat.in_read(self.contig, &weighed.read.seq, &offsets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_tells_how_it_slips() {
        let errors = Errors::of(&Default::default(), Default::default());
        let repeat = Repeat { start: 20, end: 68, unit: 2 };
        let slips = |told: [f64; 2], slipped: f64, beyond: [f64; 2]| {
            LengthChange { contig: b"", repeat, tumour: 48, others: vec![50], told, slipped, beyond }
                .slips(&errors)
        };
        let unknown = slips([0.0; 2], 0.0, [0.0; 2]);
        let [general, _] = errors.slippage.rates(2, 50);
        assert!((unknown.rate - errors.slippage.probability(2, 50, 48)).abs() < 1e-12);
        assert!((unknown.spread - general.spread).abs() < 1e-12);
        // Reads of either sample that never slip make it surer that those do not that show the change; reads that slip, the opposite.
        let never = slips([30.0, 0.0], 0.0, [60.0, 0.0]);
        assert!(never.rate < unknown.rate / 2.0, "{never:?}, {unknown:?}");
        let often = slips([30.0, 0.0], 20.0, [40.0, 20.0]);
        assert!(often.rate > unknown.rate && often.spread < unknown.spread, "{often:?}, {unknown:?}");
        // Those of the normal that show the very change count most.
        assert!(slips([30.0, 6.0], 6.0, [60.0, 0.0]).rate > slips([30.0, 0.0], 6.0, [60.0, 0.0]).rate);
    }
}
