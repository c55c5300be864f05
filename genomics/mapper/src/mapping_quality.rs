//! Mapping qualities on the scale of bwa mem (Li 2013), lowered if similar copies in the reference were not examined.
//! The formulas are those of `docs/model/mapping_quality.md`.

use crate::options::ScoringOptions;
use crate::placement::Placement;

/// Maximum mapping quality (Phred).
pub const MAX_MAPQ: i32 = 60;
/// Score, in matches, that a competing placement has at least: that of a random seed match. Empirical.
const CHANCE_SCORE: i32 = 19;
/// Number of mismatches that a placement which was not examined is assumed to have in addition to one in each examined
/// seed. Empirical: lowering the number lowers mapping qualities in repeats.
const MIN_EXTRA_MISMATCHES: u16 = 4;
/// Number of mismatches that a placement of a single read which was not examined is assumed to have in addition to one
/// in each examined seed. Three times as many if all positions of its seeds were examined. Empirical.
const SINGLE_READ_EXTRA_MISMATCHES: u16 = 4;
/// Share of a read that must be aligned for the maximum mapping quality. Empirical.
const MIN_ALIGNED_SHARE: f64 = 0.9;
/// Amount by which the maximum mapping quality is reduced as the aligned share of the read approaches 0. Empirical.
const UNALIGNED_MAPQ_PENALTY: i32 = 20;
/// Factor that converts a score difference, in matches, into mapping quality; the value of bwa.
const MAPQ_PER_SCORE: f64 = 6.02;
/// Number of aligned bases (bp) above which score differences have a lower weight; the value of bwa.
const SHORT_ALIGNMENT_BP: f64 = 50.0;
/// Numerator of the weight of score differences in alignments longer than [`SHORT_ALIGNMENT_BP`]: this number divided
/// by the logarithm of the number of aligned bases; the value of bwa.
const LONG_ALIGNMENT_FACTOR: f64 = 3.0;
/// The same if the competing placement is one that was not examined, whose score is only an upper bound. Empirical.
const UNEXAMINED_LONG_ALIGNMENT_FACTOR: f64 = 3.4;

/// Amount by which `n` placements with nearly the same score lower the mapping quality: 10·log10 of `n`; 0 for none.
pub(crate) fn mapq_penalty_for_tied_placements(n: u32) -> f64 {
    if n == 0 { 0.0 } else { 4.343 * libm::log(f64::from(n)) }
}

/// Placements of a read that compete with one of its placements, because they align the same bases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BestRivalScoreAndCount {
    /// Best score of another placement of the same bases; `None` if there is none.
    pub best: Option<i32>,
    /// Number of placements whose score is at most a mismatch or a gap of one base below that of this placement.
    pub near: u32,
}

/// Finds the placements that compete with placement number `of` of a read. Placements on ALT contigs do not compete
/// with placements in the primary assembly.
pub(crate) fn find_best_rival_score_and_count(
    placements: &[Placement],
    of: usize,
    length: usize,
    options: &ScoringOptions,
) -> BestRivalScoreAndCount {
    let this = &placements[of];
    let same =
        |other: &&Placement| (this.is_on_alt || !other.is_on_alt) && !other.covers_mostly_different_bases(this, length);
    let others = || placements.iter().enumerate().filter(|(i, _)| *i != of).map(|(_, other)| other).filter(same);
    let best = others().map(|other| other.score).max();
    let step = (options.mismatch_penalty + options.match_score).max(options.min_gap_cost());
    let near = others().filter(|other| this.score - other.score <= step).count() as u32;
    BestRivalScoreAndCount { best, near }
}

/// Maximum score of a placement that was not examined: it has a mismatch in each of `examined_seeds` non-overlapping
/// seeds, because all positions of these seeds were examined.
pub(crate) fn max_score_of_unexamined_placement(examined_seeds: u16, length: usize, options: &ScoringOptions) -> i32 {
    length as i32 * options.match_score - (options.match_score + options.mismatch_penalty) * i32::from(examined_seeds)
}

/// Likely maximum score of a placement of the same bases as `place` that was not examined. Such a placement usually has
/// mismatches outside of the examined seeds, too, unless the read's sequence has many `copies`. Of the
/// `examined_seeds` of the read of `length` bases the aligned bases have their share.
pub(crate) fn likely_score_of_unexamined_placement(
    place: &Placement,
    examined_seeds: u16,
    copies: u32,
    length: usize,
    options: &ScoringOptions,
) -> i32 {
    let aligned = place.num_aligned_bases();
    let seeds = (usize::from(examined_seeds) * aligned / length) as u16;
    max_score_of_unexamined_placement(seeds + extra_mismatches(copies), aligned, options)
}

/// Assumed number of mismatches of a placement that was not examined, outside of the examined seeds. It is one less for
/// each factor of ten in the number of copies, because the best of many copies has few mismatches.
fn extra_mismatches(copies: u32) -> u16 {
    MIN_EXTRA_MISMATCHES.saturating_sub(copies.checked_ilog10().unwrap_or(0) as u16)
}

/// Minimum penalty of the gaps of a placement: that of a single gap between its first and its last diagonal.
fn gap_cost(place: &Placement, options: &ScoringOptions) -> i32 {
    let longer = (place.right as i64 - place.left as i64) as i32;
    match longer {
        0 => 0,
        1.. => options.gap_open[0] + options.gap_extend[0] * longer,
        _ => options.gap_open[1] - (options.gap_extend[1] + options.match_score) * longer,
    }
}

/// Mapping quality of a placement from the read alone. `examined_seeds` is the number of non-overlapping seeds of the
/// read whose positions were all examined; `deferred` is set if position lists of other seeds were not examined.
pub(crate) fn placement_mapq_without_mate(
    place: &Placement,
    rivals: BestRivalScoreAndCount,
    examined_seeds: u16,
    deferred: bool,
    length: usize,
    options: &ScoringOptions,
) -> i32 {
    let mut next = rivals.best.unwrap_or(0).max(CHANCE_SCORE * options.match_score);
    let near = if rivals.best.is_some_and(|best| best > CHANCE_SCORE * options.match_score) { rivals.near } else { 0 };
    // Without deferred lists, a placement that was not found has mismatches in all seeds, not only in non-overlapping
    // ones.
    let elsewhere =
        if deferred || examined_seeds == 0 { SINGLE_READ_EXTRA_MISMATCHES } else { 3 * SINGLE_READ_EXTRA_MISMATCHES };
    let elsewhere = usize::from(elsewhere) * place.num_aligned_bases() / length;
    // The gaps of this placement would also cost the other one.
    let unseen =
        max_score_of_unexamined_placement(examined_seeds + elsewhere as u16, place.num_aligned_bases(), options)
            - gap_cost(place, options);
    // docs/model/mapping_quality.md (1)
    let factor = if unseen > next { UNEXAMINED_LONG_ALIGNMENT_FACTOR } else { LONG_ALIGNMENT_FACTOR };
    next = next.max(unseen);
    if next >= place.score {
        return 0;
    }
    let aligned = place.num_aligned_bases() as f64;
    let (equal, lost) = (f64::from(options.match_score), f64::from(options.match_score + options.mismatch_penalty));
    let identity = 1.0 - (aligned * equal - f64::from(place.score)) / lost / aligned;
    // docs/model/mapping_quality.md (2)
    let worth = if aligned < SHORT_ALIGNMENT_BP { 1.0 } else { factor / libm::log(aligned) } * identity;
    // docs/model/mapping_quality.md (3)
    let mut quality = (MAPQ_PER_SCORE * f64::from(place.score - next) / equal * worth * worth + 0.499) as i32;
    if near > 0 {
        quality -= (mapq_penalty_for_tied_placements(near + 1) + 0.499) as i32;
    }
    quality.clamp(0, MAX_MAPQ)
}

/// Upper bound of the mapping quality of a placement of a read of `length` bases. Unaligned bases lower it, because
/// they count as unexplained differences.
pub(crate) fn mapq_bound_by_aligned_share(placement: &Placement, length: usize) -> i32 {
    // docs/model/mapping_quality.md (4)
    let aligned = (placement.num_aligned_bases() as f64 / (MIN_ALIGNED_SHARE * length as f64)).min(1.0);
    MAX_MAPQ - (f64::from(UNALIGNED_MAPQ_PENALTY) * (1.0 - aligned)).ceil() as i32
}

/// Mapping quality of a pair of placements that scores `score_lead` points more than the second-best pair. `num_near`
/// pairs have nearly the score of the second-best pair; they and `tie_penalty` lower the quality.
pub(crate) fn pair_mapq(score_lead: i32, num_near: u32, tie_penalty: f64, options: &ScoringOptions) -> i32 {
    // docs/model/mapping_quality.md (5)
    let mut quality = (MAPQ_PER_SCORE * f64::from(score_lead) / f64::from(options.match_score) + 0.499) as i32;
    if num_near > 0 {
        quality -= (mapq_penalty_for_tied_placements(num_near + 1) + 0.499) as i32;
    }
    (quality - tie_penalty as i32).clamp(0, MAX_MAPQ)
}
