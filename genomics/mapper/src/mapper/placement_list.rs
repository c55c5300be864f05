//! The list of the placements of a read: which are kept, and which are aligned with gaps.

use super::{
    MAX_GAPPED_PLACEMENTS, MAX_KEPT_SCORE_DEFICIT, MAX_PLACEMENTS, MAX_RIVAL_SCORE_DEFICIT, MIN_GAP_GAIN,
    POOR_SCORE_DEFICIT,
};
use crate::gapped::GappedJob;
use crate::options::ScoringOptions;
use crate::placement::Placement;

/// Requests gapped alignments of those sorted placements, from number `first` on, that gaps may improve. A placement
/// whose score with gaps would be more than `behind` below the best is left out, unless it is the best one on an ALT
/// contig, or even the best placement has a poor score. Requests at most [`MAX_GAPPED_PLACEMENTS`] alignments.
#[inline(always)]
pub(crate) fn add_gapped_jobs(
    options: &ScoringOptions,
    read: usize,
    length: usize,
    placements: &[Placement],
    first: usize,
    behind: i32,
    jobs: &mut Vec<GappedJob>,
) {
    let best = |placements: &[Placement]| placements.first().map_or(i32::MIN / 2, |place| place.net_score);
    let best = best(&placements[first..]);
    let bad = best <= length as i32 * options.match_score - POOR_SCORE_DEFICIT * options.match_score;
    let mut n = 0;
    for (i, place) in placements.iter().enumerate().skip(first) {
        let first_alt = place.is_on_alt && i > first && !placements[i - 1].is_on_alt;
        // If even the best placement is poor, any competitor of similar score may be the one that a gap improves.
        let all_gaps_tried = bad && place.net_score >= best - MAX_RIVAL_SCORE_DEFICIT * options.match_score;
        let rival = i > first && !first_alt && !all_gaps_tried;
        let worth_it = first_alt
            || all_gaps_tried
            || place.max_gapped_score >= place.net_score + MIN_GAP_GAIN * options.match_score;
        if i > first && (!all_gaps_tried && place.max_gapped_score < best - behind || !worth_it) {
            continue;
        }
        // Another diagonal of the same alignment; the band of the better one contains it.
        let known = (placements[first..i].iter())
            .any(|other| other.reverse == place.reverse && other.left.abs_diff(place.left) < 8);
        if known {
            continue;
        }
        jobs.extend(GappedJob::for_placement(read as u32, i as u32, place, length, rival, options));
        n += 1;
        if n == MAX_GAPPED_PLACEMENTS {
            break;
        }
    }
}

/// Sorts placements: those in the primary assembly before those on ALT contigs, the best first. Drops placements with
/// poor scores and placements that share a diagonal with a better one. Returns whether good placements were dropped
/// because there were too many.
#[inline(always)]
pub(crate) fn sort_and_filter_placements(
    options: &ScoringOptions,
    length: usize,
    placements: &mut Vec<Placement>,
) -> bool {
    if placements.len() < 2 {
        return false;
    }
    placements.sort_unstable_by_key(|place| (place.is_on_alt, -place.score, place.left, place.reverse));
    let near = placements[0].score - MAX_KEPT_SCORE_DEFICIT * options.match_score;
    let (mut kept, mut gapped, mut crowded) = (0, false, false);
    for i in 0..placements.len() {
        let place = placements[i];
        // A placement of other bases of the read is compared with the best placement of these bases.
        let same = |other: &&Placement| !place.covers_mostly_different_bases(other, length);
        let matters = place.score >= near
            || place.score >= options.min_score
                && placements[..kept]
                    .iter()
                    .find(same)
                    .is_none_or(|best| place.score >= best.score - MAX_KEPT_SCORE_DEFICIT * options.match_score);
        // A rescued placement is kept in any case.
        let room = kept < MAX_PLACEMENTS || place.is_rescued;
        if !matters || !room {
            crowded |= matters;
            continue;
        }
        // Seeds give each diagonal only once.
        let gaps = place.is_gapped_alignment;
        let form = (gapped || gaps || place.is_rescued)
            && placements[..kept].iter().any(|other| other.begins_or_ends_on_same_diagonal(&place));
        if !form {
            placements[kept] = place;
            kept += 1;
            gapped |= gaps || place.is_rescued;
        }
    }
    placements.truncate(kept);
    crowded
}
