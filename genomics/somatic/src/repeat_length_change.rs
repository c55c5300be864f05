//! Evidence for a length change of a tandem repeat, from the repeat lengths that the reads show.

use crate::aligned_contig::AlignedContig;
use crate::change::{self, Change};
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::minisatellite::MAX_MINISATELLITE_UNIT_BP;
use crate::read_likelihood::ReadLikelihoods;
use crate::read_placement::PlacedRead;
use crate::recruit::RecruitedPair;
use crate::sequencing_errors::ErrorModel;
use crate::slippage::{self, RepeatRange, SlippageRate};
use crate::tandem_repeat::MAX_SHORT_REPEAT_UNIT_BP;
use genuma_reads::NORMAL_SAMPLE;

/// A change of a contig that lengthens or shortens a tandem repeat by whole units, with the read counts of the repeat's
/// lengths.
#[derive(Debug, Clone)]
pub(crate) struct RepeatLengthChange<'a> {
    contig: &'a [u8],
    /// Range of the repeat on the contig, with the tumour's length.
    pub repeat: RepeatRange,
    /// Length of the repeat in the tumour, in bases.
    pub tumour_len: usize,
    /// Lengths of the repeat in bases: those of the normal's alleles (usually one or two; the length before the change
    /// if its reads show none), and of other tumour alleles with more reads.
    pub other_lens: Vec<usize>,
    /// Number of the normal's reads that show a length of the repeat, and number of those that show the tumour's
    /// length.
    normal_reads: [f64; 2],
    /// Share of the tumour's reads that show the tumour's length.
    tumour_share: f64,
    /// Number of the normal's reads with a length that is none of the normal's alleles.
    normal_slipped_reads: f64,
    /// Number of tumour reads with the length of another allele, and number of tumour reads whose length changed in the
    /// opposite direction.
    tumour_other_reads: [f64; 2],
}

/// Length of the shortest unit that gives the bases when it is repeated a whole number of times; `None` if that unit is
/// longer than those of minisatellites.
fn repeat_unit_len(bases: &[u8]) -> Option<usize> {
    (1..=MAX_MINISATELLITE_UNIT_BP.min(bases.len()))
        .find(|u| bases.len().is_multiple_of(*u) && bases.iter().zip(&bases[*u..]).all(|(a, b)| a == b))
}

/// Whether change `f` of a contig removes or adds whole units of a tandem repeat that has enough copies of its unit,
/// before or after the change, for slippage.
pub(crate) fn is_length_change_of_slipping_repeat(contig: &AlignedContig, f: usize) -> bool {
    changed_units(contig, f).is_some_and(|(repeat, before)| {
        repeat.length_bp().max(before) >= slippage::SLIPPAGE_MODEL_PARAMS.min_slipping_copies * repeat.unit
    })
}

/// If change `f` substitutes a base next to a long homopolymer by the homopolymer's base: the orientation on the contig
/// of the reads that pass the homopolymer first. Phasing makes their next base the homopolymer's more often than any
/// other base is wrong.
pub(crate) fn orientation_with_phasing_errors(contig: &AlignedContig, f: usize) -> Option<bool> {
    let change = &contig.changes[f];
    let at = change.contig_range.start;
    if !change::is_substitution(&change.change) || change.contig_range.len() != 1 {
        return None;
    }
    let base = *contig.seq.get(at)?;
    let before = change.left_normal.get(..at)?.iter().rev().take_while(|&&b| b == base).count();
    let after = change.left_normal.get(at + 1..)?.iter().take_while(|&&b| b == base).count();
    (before.max(after) >= GENOTYPE_MODEL_PARAMS.min_phasing_homopolymer_bases).then_some(before > after)
}

/// The tandem repeat whose length change `f` of a contig alters, and the length of the repeat in bases before the
/// change. `None` if the repeat is too short to use lengths as evidence. For minisatellites, in which slippage is rare,
/// reads are compared with haplotypes instead.
pub(crate) fn repeat_and_length_before_change(contig: &AlignedContig, f: usize) -> Option<(RepeatRange, usize)> {
    let (repeat, before) = changed_units(contig, f)?;
    let long = repeat.length_bp().max(before) / repeat.unit;
    (repeat.unit <= MAX_SHORT_REPEAT_UNIT_BP
        && long >= slippage::SLIPPAGE_MODEL_PARAMS.min_evidence_copies[usize::from(repeat.unit > 1)]
        && before >= repeat.unit)
        .then_some((repeat, before))
}

/// Rate at which reads of another allele show change `f`, if the change is a length change of a short homopolymer and
/// the library has length errors in these; otherwise `None`.
pub(crate) fn short_homopolymer_length_error_rate(
    contig: &AlignedContig,
    f: usize,
    errors: &ErrorModel,
) -> Option<SlippageRate> {
    let (repeat, before) = changed_units(contig, f).filter(|(repeat, _)| repeat.unit == 1)?;
    errors.short_homopolymers.length_error_rate(before, repeat.length_bp())
}

/// The tandem repeat from which change `f` removes units or to which it adds units, and the length of the repeat in
/// bases before the change; `None` if the change does neither.
fn changed_units(contig: &AlignedContig, f: usize) -> Option<(RepeatRange, usize)> {
    let contig_change = &contig.changes[f];
    if !matches!(contig_change.change, Change::Allele { .. }) {
        return None;
    }
    let (at, after) = (
        &contig_change.contig_range,
        usize::try_from(contig_change.contig_range.end as i32 + contig_change.right_shift).ok()?,
    );
    let normal = contig_change.left_normal.get(at.start..after)?;
    let (repeat, before) = match (at.len(), normal.len()) {
        (0, gone @ 1..) => {
            let unit = repeat_unit_len(normal)?;
            let repeat = RepeatRange::find_repeat_around(&contig_change.left_normal, at.start, unit);
            let on_contig = RepeatRange { end: repeat.end.checked_sub(gone)?, ..repeat };
            (on_contig, repeat.length_bp())
        }
        (new @ 1.., 0) => {
            let unit = repeat_unit_len(&contig.seq[at.clone()])?;
            let repeat = RepeatRange::find_repeat_around(&contig.seq, at.start, unit);
            (repeat, repeat.length_bp().checked_sub(new)?)
        }
        _ => return None,
    };
    Some((repeat, before))
}

impl<'a> RepeatLengthChange<'a> {
    /// If change `f` is a length change of a tandem repeat in which lengths are used as evidence
    /// ([`repeat_and_length_before_change`]), returns the change with the read counts of the repeat's lengths;
    /// otherwise `None`.
    pub fn detect_length_change(
        contig: &'a AlignedContig,
        f: usize,
        likelihoods: &[ReadLikelihoods<'_>],
        placed_reads: &[PlacedRead],
        pairs: &[RecruitedPair],
    ) -> Option<RepeatLengthChange<'a>> {
        let (repeat, before) = repeat_and_length_before_change(contig, f)?;
        let tumour = repeat.length_bp();
        let shown_in = |normal: bool| {
            let mut shown: Vec<usize> = likelihoods
                .iter()
                .filter(|w| (pairs[placed_reads[w.read_index].pair as usize].sample == NORMAL_SAMPLE) == normal)
                .filter_map(|w| repeat.length_in_read(&contig.seq, &w.read.seq, &placed_reads[w.read_index].offsets))
                .collect();
            shown.sort_unstable();
            shown
        };
        let shown = shown_in(true);
        let all = shown.len() as f64;
        let num_own = shown.iter().filter(|&&l| l == tumour).count() as f64;
        let germline = |same: &&[usize]| {
            same.len() >= 3 && same.len() as f64 >= slippage::SLIPPAGE_MODEL_PARAMS.min_germline_share * all
        };
        let mut others: Vec<usize> =
            shown.chunk_by(|a, b| a == b).filter(germline).map(|same| same[0]).filter(|&l| l != tumour).collect();
        if others.is_empty() {
            others.push(before);
        }
        let slipped = shown.iter().filter(|l| !others.contains(l)).count() as f64;
        // A read of another, more frequent tumour allele that slipped would count for this change, because its length
        // is closer to it than to the normal's.
        let in_tumour = shown_in(false);
        let with_it = in_tumour.iter().filter(|&&l| l == tumour).count();
        let more = |same: &&[usize]| same.len() > with_it && !others.contains(&same[0]);
        let rivals: Vec<usize> = in_tumour.chunk_by(|a, b| a == b).filter(more).map(|s| s[0]).collect();
        others.extend(rivals);
        let ends = others.iter().fold((usize::MAX, 0), |(least, most), &l| (least.min(l), most.max(l)));
        let other_side = |&&l: &&usize| if tumour < ends.0 { l > ends.1 } else { l < ends.0 };
        let count = |wanted: &dyn Fn(&&usize) -> bool| in_tumour.iter().filter(wanted).count() as f64;
        let beyond = [count(&|l| others.contains(l)), count(&other_side)];
        Some(RepeatLengthChange {
            contig: &contig.seq,
            repeat,
            tumour_len: tumour,
            other_lens: others,
            normal_reads: [all, num_own],
            tumour_share: with_it as f64 / in_tumour.len().max(1) as f64,
            normal_slipped_reads: slipped,
            tumour_other_reads: beyond,
        })
    }

    /// Natural-log odds of a read for the tumour's repeat length over the normal's; 0 if the read does not show the
    /// length.
    pub fn length_log_odds_of_read(
        &self,
        likelihoods: &ReadLikelihoods<'_>,
        offsets: &[i32],
        errors: &ErrorModel,
    ) -> f64 {
        let Some(shown) = self.length_in_read(likelihoods, offsets) else { return 0.0 };
        let of = |length: usize| errors.slippage.probability_of_shown_length(self.repeat.unit, length, shown);
        let other = if shown == self.tumour_len {
            self.slippage_rate_to_tumour_length(errors).rate
        } else {
            self.other_lens.iter().map(|&l| of(l)).fold(0.0, f64::max)
        };
        // docs/model/slippage.md (7)
        (of(self.tumour_len) / other).ln()
    }

    /// Rate at which reads of another allele show the tumour's length.
    pub fn slippage_rate_to_tumour_length(&self, errors: &ErrorModel) -> SlippageRate {
        let unit = self.repeat.unit;
        let slip = |&l: &usize| (errors.slippage.probability_of_shown_length(unit, l, self.tumour_len), l);
        let likeliest = self.other_lens.iter().map(slip).max_by(|a, b| a.0.total_cmp(&b.0));
        let (general, from) = likeliest.unwrap_or_default();
        let ways = errors.slippage.shortening_and_lengthening_rates(unit, from);
        let (direction, away) = if self.tumour_len < from { (ways[0], ways[1]) } else { (ways[1], ways[0]) };
        // The locus's own reads are the best estimate of its slippage: the normal's in both directions, the tumour's
        // away from the change. The rate of this class of repeats counts as many slips as its uncertainty is worth.
        let [all, num_own] = self.normal_reads;
        // Tumour cells in the normal show the tumour's length without slippage.
        let of_tumour_cells = (errors.tumour_in_normal_ratio * self.tumour_share * all).min(num_own);
        let num_own = num_own - of_tumour_cells;
        let [exact, others] = self.tumour_other_reads;
        let known = direction.log_spread.powi(-2);
        let expected = all * (direction.rate + away.rate) + (exact + others) * away.rate;
        let slipped = (self.normal_slipped_reads - of_tumour_cells).max(0.0) + others;
        // docs/model/slippage.md (8)
        let here = general * (known + slipped) / (known + expected);
        SlippageRate {
            rate: here.max(
                (here * slippage::SLIPPAGE_MODEL_PARAMS.general_rate_weight_reads + num_own)
                    / (slippage::SLIPPAGE_MODEL_PARAMS.general_rate_weight_reads + all),
            ),
            log_spread: (known + slipped).powf(-0.5),
        }
    }

    fn length_in_read(&self, likelihoods: &ReadLikelihoods<'_>, offsets: &[i32]) -> Option<usize> {
        // The best haplotype's own offset first: other offsets may belong to the other side of a change.
        let offsets = [&[likelihoods.start_on_likeliest_haplotype()], offsets].concat();
        self.repeat.length_in_read(self.contig, &likelihoods.read.seq, &offsets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_tells_how_it_slips() {
        let errors = ErrorModel::from_error_counts_and_slippage(&Default::default(), Default::default());
        let repeat = RepeatRange { start: 20, end: 68, unit: 2 };
        let slips = |told: [f64; 2], slipped: f64, beyond: [f64; 2]| {
            RepeatLengthChange {
                contig: b"",
                repeat,
                tumour_len: 48,
                other_lens: vec![50],
                normal_reads: told,
                tumour_share: 0.5,
                normal_slipped_reads: slipped,
                tumour_other_reads: beyond,
            }
            .slippage_rate_to_tumour_length(&errors)
        };
        let unknown = slips([0.0; 2], 0.0, [0.0; 2]);
        let [general, _] = errors.slippage.shortening_and_lengthening_rates(2, 50);
        assert!((unknown.rate - errors.slippage.probability_of_shown_length(2, 50, 48)).abs() < 1e-12);
        assert!((unknown.log_spread - general.log_spread).abs() < 1e-12);
        // Reads of either sample that never slip lower the rate; reads that slip raise it.
        let never = slips([30.0, 0.0], 0.0, [60.0, 0.0]);
        assert!(never.rate < unknown.rate / 2.0, "{never:?}, {unknown:?}");
        let often = slips([30.0, 0.0], 20.0, [40.0, 20.0]);
        assert!(often.rate > unknown.rate && often.log_spread < unknown.log_spread, "{often:?}, {unknown:?}");
        // Reads of the normal with the same change count most.
        assert!(slips([30.0, 6.0], 6.0, [60.0, 0.0]).rate > slips([30.0, 0.0], 6.0, [60.0, 0.0]).rate);
    }
}
