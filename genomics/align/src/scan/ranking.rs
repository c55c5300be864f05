//! Order and mapping quality of the hits of a sequence.

use std::collections::HashSet;
use std::ops::Range;

use super::segments::overlap_len;
use crate::hit::{Hit, Strand};

/// Difference of the score to the second-best hit of the same bases at which a hit gets the maximum mapping quality.
/// Empirical.
pub(super) const MIN_SCORE_MARGIN_FOR_MAX_MAPQ: i32 = 20;

/// Maximum mapping quality (Phred).
pub(super) const MAX_MAPQ: i32 = 60;

pub(super) fn query_range(hit: &Hit) -> Range<usize> {
    hit.query_start..hit.query_end
}

/// Whether two hits have more than half of the bases of the shorter hit in common.
pub(super) fn covers_mostly_same_bases(one: &Hit, other: &Hit) -> bool {
    let (one, other) = (query_range(one), query_range(other));
    overlap_len(&one, &other) * 2 > one.len().min(other.len())
}

/// Sorts hits, the best first, removes duplicates, and sets the primary and secondary flags and the mapping quality.
pub(super) fn sort_deduplicate_and_set_mapq(hits: &mut Vec<Hit>) {
    hits.sort_by_key(|hit| (-hit.score, hit.tid, hit.ref_start, hit.ref_end, hit.strand == Strand::Reverse));
    let form = |hit: &Hit| (hit.tid, hit.strand == Strand::Reverse, hit.ref_start, hit.ref_end, hit.query_start);
    let mut already_covered = HashSet::new();
    hits.retain(|hit| already_covered.insert(form(hit)));
    set_mapq_and_primary_flags(hits);
}

/// Sets the primary and secondary flags and the mapping quality of sorted hits.
pub(super) fn set_mapq_and_primary_flags(hits: &mut [Hit]) {
    for i in 0..hits.len() {
        let (before, rest) = hits.split_at_mut(i);
        let Some((hit, behind)) = rest.split_first_mut() else { break };
        hit.is_primary = i == 0;
        hit.is_secondary = before.iter().any(|other| !other.is_secondary && covers_mostly_same_bases(hit, other));
        let rivals = before.iter().chain(&*behind).filter(|other| covers_mostly_same_bases(hit, other));
        let rival = rivals.map(|other| other.score).max();
        let margin = rival
            .map_or(MIN_SCORE_MARGIN_FOR_MAX_MAPQ, |rival| (hit.score - rival).clamp(0, MIN_SCORE_MARGIN_FOR_MAX_MAPQ));
        hit.mapq = (margin * MAX_MAPQ / MIN_SCORE_MARGIN_FOR_MAX_MAPQ) as u8;
    }
}
