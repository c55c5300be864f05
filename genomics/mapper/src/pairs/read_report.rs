//! What is reported of a read: its primary placement, further segments, and their mapping qualities.

use std::ops::Range;

use super::TemplateRead;
use crate::bases::base_code_at;
use crate::mapper::{MappedReads, count_examined_disjoint_seeds};
use crate::mapping_quality;
use crate::options::ScoringOptions;
use crate::placement::Placement;

/// What is reported of a read: all its placements, and the segments that become records.
#[derive(Debug, Default)]
pub struct ReadReport {
    /// All placements of the read that were found: those in the primary assembly, the best first, then those on ALT
    /// contigs, the best first.
    pub placements: Vec<Placement>,
    /// Reported segments of the read: the primary segment, then segments of other bases of the read, then segments on
    /// ALT contigs that are better than these.
    pub segments: Vec<ReportedSegment>,
    /// For each placement the number of the best placement of the same bases (possibly itself), ALT contigs included;
    /// empty if the read has no placement on an ALT contig.
    pub best_of_same_bases: Vec<usize>,
}

/// A placement of a read that becomes a record: the primary or a supplementary alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedSegment {
    /// Index of the segment's placement in [`ReadReport::placements`].
    pub place: usize,
    /// Phred-scaled probability that the position is wrong (MAPQ), 0 to 60.
    pub mapq: u8,
    /// Best score of another placement of the same bases (tag XS of bwa); 0 if there is none.
    pub next_score: i32,
    /// Score of the best placement of the same bases, if it is on an ALT contig and better than this segment's
    /// placement; otherwise 0.
    pub alt_score: i32,
}

/// Whether the read is split: another placement in the primary assembly has different bases of the read than the best
/// placement.
pub(super) fn is_split_read(read: &TemplateRead, options: &ScoringOptions) -> bool {
    let Some((best, others)) = read.placements.split_first() else { return false };
    let piece = |place: &Placement| !place.is_on_alt && place.score >= options.min_score;
    others.iter().any(|place| piece(place) && place.covers_mostly_different_bases(best, read.length))
}

/// Upper bound of the mapping quality of a placement of a read. Unaligned bases lower it unless another placement
/// aligns them. It is 0 for a homopolymer.
pub(super) fn segment_mapq_upper_bound(
    mapped: &MappedReads,
    read: &TemplateRead,
    which: usize,
    options: &ScoringOptions,
) -> i32 {
    let place = &read.placements[which];
    if is_mostly_homopolymer(mapped, read, place, options) {
        return 0;
    }
    let most = mapping_quality::mapq_bound_by_aligned_share(place, read.length);
    let explains =
        |other: &Placement| other.score >= options.min_score && place.covers_mostly_different_bases(other, read.length);
    if most < mapping_quality::MAX_MAPQ && read.placements.iter().any(explains) {
        mapping_quality::MAX_MAPQ
    } else {
        most
    }
}

/// Whether most of the score of a placement of a part of a read is that of a homopolymer, and the rest is too little to
/// report. Such bases follow the adapter where a fragment is shorter than the read, and match any homopolymer of the
/// reference.
pub(super) fn is_mostly_homopolymer(
    mapped: &MappedReads,
    read: &TemplateRead,
    place: &Placement,
    options: &ScoringOptions,
) -> bool {
    if mapping_quality::mapq_bound_by_aligned_share(place, read.length) == mapping_quality::MAX_MAPQ {
        return false;
    }
    let (from, to) = place.aligned_range_as_sequenced(read.length);
    let strand = mapped.packed.read_strand(read.number, false);
    let of_homopolymer = homopolymer_score(strand.words, from..to, options);
    2 * of_homopolymer > place.score && place.score - of_homopolymer < options.min_score
}

/// Score of the best ungapped alignment of a part of `bases` of a packed sequence to a homopolymer.
fn homopolymer_score(words: &[u64], bases: Range<usize>, options: &ScoringOptions) -> i32 {
    let mut ending_here = [0; 4];
    let mut best = 0;
    for at in bases {
        let base = usize::from(base_code_at(words, at));
        for (i, score) in ending_here.iter_mut().enumerate() {
            let gain = if i == base { options.match_score } else { -options.mismatch_penalty };
            *score = (*score + gain).max(0);
        }
        best = best.max(ending_here[base]);
    }
    best
}

/// Mapping quality of placement number `which` of a read, from the read alone.
pub(super) fn bounded_mapq_without_mate(
    mapped: &MappedReads,
    read: &TemplateRead,
    which: usize,
    options: &ScoringOptions,
) -> i32 {
    let rivals = mapping_quality::find_best_rival_score_and_count(&read.placements, which, read.length, options);
    let place = &read.placements[which];
    // Seeds in other parts of the read say nothing about this segment.
    let (from, to) = place.aligned_range_as_sequenced(read.length);
    let sure = if to - from == read.length {
        read.mapping_ranges.examined_seeds
    } else {
        count_examined_disjoint_seeds(
            mapped.seed_starts_of_read(read.number),
            mapped.deferred_lists_of_read(read.number),
            from..to,
        )
    };
    mapping_quality::placement_mapq_without_mate(place, rivals, sure, read.deferred, read.length, options)
        .min(segment_mapq_upper_bound(mapped, read, which, options))
}

impl ReadReport {
    /// Chooses the reported segments: the placement `primary` with its mapping quality, the best placement of other
    /// bases of the read, and better placements on ALT contigs. If the score of the primary placement is too low, the
    /// best placement on an ALT contig becomes primary. `paired` is set if the primary placements of both mates were
    /// chosen together.
    pub(super) fn choose_reported_segments(
        &mut self,
        mapped: &MappedReads,
        read: &TemplateRead,
        primary: Option<(usize, i32)>,
        paired: bool,
        options: &ScoringOptions,
    ) {
        self.segments.clear();
        self.best_of_same_bases.clear();
        let placements = &self.placements;
        let good = |which: usize| placements.get(which).is_some_and(|place| place.score >= options.min_score);
        let assembled = placements.partition_point(|place| !place.is_on_alt);
        let instead =
            || good(assembled).then(|| (assembled, bounded_mapq_without_mate(mapped, read, assembled, options)));
        let primary = primary.filter(|&(which, _)| good(which)).or_else(instead);
        let Some((primary, quality)) = primary else { return };
        let next = |which| {
            mapping_quality::find_best_rival_score_and_count(placements, which, read.length, options).best.unwrap_or(0)
        };
        let piece =
            |place, quality: i32| ReportedSegment { place, mapq: quality as u8, next_score: next(place), alt_score: 0 };
        self.segments.push(piece(primary, quality));
        for (i, place) in placements[..assembled].iter().enumerate() {
            let elsewhere =
                |piece: &ReportedSegment| place.covers_mostly_different_bases(&placements[piece.place], read.length);
            if place.score >= options.min_score && self.segments.iter().all(elsewhere) {
                self.segments.push(piece(i, bounded_mapq_without_mate(mapped, read, i, options).min(quality)));
            }
        }
        if assembled == placements.len() {
            return;
        }
        self.best_of_same_bases = best_of_same_bases(placements, read.length);
        for piece in &mut self.segments {
            let leader = &placements[self.best_of_same_bases[piece.place]];
            piece.alt_score = if leader.is_on_alt && !placements[piece.place].is_on_alt { leader.score } else { 0 };
        }
        // As in bwa: only the best ALT placement of a proper pair.
        let most = if paired { assembled + 1 } else { placements.len() };
        for (i, place) in placements.iter().enumerate().take(most).skip(assembled) {
            if self.best_of_same_bases[i] == i && i != primary && place.score >= options.min_score {
                // Its mapping quality compares it with all others, the primary placement included.
                self.segments.push(piece(i, bounded_mapq_without_mate(mapped, read, i, options)));
            }
        }
        // A placement that became primary because of its mate replaces a better one.
        let leader = self.best_of_same_bases[primary];
        if !placements[leader].is_on_alt && leader != primary {
            for other in self.best_of_same_bases.iter_mut().filter(|other| **other == leader) {
                *other = primary;
            }
        }
    }
}

/// For each placement the number of the best placement of the same bases. Of placements with equal scores, the one in
/// the primary assembly is best.
fn best_of_same_bases(placements: &[Placement], length: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..placements.len()).collect();
    order.sort_by_key(|&i| (-placements[i].score, placements[i].is_on_alt));
    let (mut best_of_same_bases, mut found) = (vec![0; placements.len()], Vec::new());
    for i in order {
        let leader = found
            .iter()
            .copied()
            .find(|&leader| !placements[i].covers_mostly_different_bases(&placements[leader], length));
        best_of_same_bases[i] = leader.unwrap_or(i);
        if leader.is_none() {
            found.push(i);
        }
    }
    best_of_same_bases
}
