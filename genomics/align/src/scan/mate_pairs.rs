//! Distance of mates, and selection of the best pair of their hits.

use super::ranking::{MAX_MAPQ, MIN_SCORE_MARGIN_FOR_MAX_MAPQ, set_mapq_and_primary_flags};
use crate::hit::{Hit, Strand};

/// Maximum distance (bp) between the outer ends of a proper pair if there are too few pairs to estimate it.
pub(crate) const FALLBACK_MAX_INSERT_SIZE_BP: usize = 1_000;

/// Score penalty of hits that do not form a proper pair; the default of bwa mem (`-U`).
const UNPAIRED_PENALTY: i32 = 17;

/// Minimum number of pairs from which the maximum mate distance is estimated.
const MIN_PAIRS_FOR_DISTANCE: usize = 20;

/// Insert size (bp) of the hits of two mates; `None` unless they face each other on the same reference sequence.
fn insert_size(one: &Hit, other: &Hit) -> Option<usize> {
    let (ahead, back) = match (one.strand, other.strand) {
        (Strand::Forward, Strand::Reverse) => (one, other),
        (Strand::Reverse, Strand::Forward) => (other, one),
        _ => return None,
    };
    (one.tid == other.tid && back.ref_start >= ahead.ref_start).then(|| back.ref_end - ahead.ref_start)
}

/// Estimates the maximum distance (bp) between the outer ends of a proper pair: upper quartile plus three times the
/// interquartile range, which counts as at least 30 bp. Only pairs count in which each mate has exactly one hit, the
/// mates face each other, and the distance is at most 10 kbp; `None` if there are too few of them.
pub(crate) fn estimate_max_insert_size(hits: &[[Vec<Hit>; 2]]) -> Option<usize> {
    let certain = |[one, two]: &[Vec<Hit>; 2]| match (&one[..], &two[..]) {
        ([one], [two]) => insert_size(one, two).filter(|&apart| apart <= 10 * FALLBACK_MAX_INSERT_SIZE_BP),
        _ => None,
    };
    let mut apart: Vec<usize> = hits.iter().filter_map(certain).collect();
    if apart.len() < MIN_PAIRS_FOR_DISTANCE {
        return None;
    }
    apart.sort_unstable();
    let (lower, upper) = (apart[apart.len() / 4], apart[apart.len() * 3 / 4]);
    Some(upper + 3 * (upper - lower).max(30))
}

/// Moves the hits of the best proper pair (of at most `max_distance` bp) to the front of the hits of each mate, marks
/// both as proper pair, and computes the mapping qualities and the primary and secondary flags again. Changes nothing
/// if no proper pair has a higher total score than the best hits of both mates minus the penalty for unpaired mates.
pub(crate) fn choose_best_pair_and_set_mapq(mates: &mut [Vec<Hit>; 2], max_distance: usize) {
    let [one, two] = &*mates;
    if one.is_empty() || two.is_empty() {
        return;
    }
    let fits = |x: usize, y: usize| insert_size(&one[x], &two[y]).is_some_and(|apart| apart <= max_distance);
    let all = (0..one.len()).flat_map(|x| (0..two.len()).map(move |y| (x, y)));
    let mut pairs: Vec<(i32, usize, usize)> =
        all.filter(|&(x, y)| fits(x, y)).map(|(x, y)| (-(one[x].score + two[y].score), x, y)).collect();
    pairs.sort_unstable();
    let apart = one[0].score + two[0].score - UNPAIRED_PENALTY;
    let Some(&(score, x, y)) = pairs.first().filter(|(score, ..)| -score > apart) else { return };
    let next = pairs.get(1).map_or(apart, |(next, ..)| apart.max(-next));
    let sure =
        ((-score - next).clamp(0, MIN_SCORE_MARGIN_FOR_MAX_MAPQ) * MAX_MAPQ / MIN_SCORE_MARGIN_FOR_MAX_MAPQ) as u8;
    for (hits, chosen) in mates.iter_mut().zip([x, y]) {
        hits[..=chosen].rotate_right(1);
        set_mapq_and_primary_flags(hits);
        let own = &mut hits[0];
        // A mate can raise the mapping quality by at most 40.
        own.mapq = own.mapq.max(sure.min(own.mapq + 40));
        own.proper_pair = true;
    }
}
