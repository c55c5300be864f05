//! Explains a contig by copies of the sequence next to it, such as units of a minisatellite.

use super::junctions::MIN_NOVEL_END_BP;
use super::{ContigChange, GenomeRegion, MAX_UNALIGNED_END_BASES, OrientedContig};
use crate::contig_segments::{ContigSegment, MAX_JOINED_SEGMENT_DISTANCE_BP};
use crate::event_model;
use crate::minisatellite::find_imperfect_minisatellites;

/// Minimum number of bases at each end of a contig that must be copied from one range of the genome if the contig is
/// explained by copies. Fewer bases match by chance.
const MIN_COPIED_END_BASES: usize = 25;

impl OrientedContig<'_> {
    /// The region of the genome around the longest segment from which the contig may be copied; `None` if the segment
    /// is on the reverse strand.
    pub(super) fn region_of_possible_copies(&self) -> Option<GenomeRegion> {
        let longest = self.segments.iter().max_by_key(|p| p.query_len()).filter(|p| p.forward)?;
        let start = longest.target.0.saturating_sub(longest.query.0 + MAX_JOINED_SEGMENT_DISTANCE_BP);
        let after = self.seq.len() - longest.query.1 + MAX_JOINED_SEGMENT_DISTANCE_BP;
        let end = (longest.target.1 + after).min(self.chrom(longest).len());
        Some(GenomeRegion { chrom: longest.chrom, forward: true, start, end })
    }

    /// Whether the region from which the contig may be copied has a minisatellite.
    pub(super) fn is_near_minisatellite(&self) -> bool {
        self.region_of_possible_copies()
            .is_some_and(|region| !find_imperfect_minisatellites(&region.bases(self.genome)).is_empty())
    }

    /// Cost of the unaligned ends that are too long to ignore but too short for novel sequence, if they may be a gained
    /// unit of a minisatellite; otherwise 0. `ends` are the segments at the contig's two ends.
    pub(super) fn cost_of_short_unaligned_ends(&self, [first, last]: &[ContigSegment; 2]) -> i32 {
        let short = |len: &usize| (MAX_UNALIGNED_END_BASES + 1..MIN_NOVEL_END_BP).contains(len);
        let mut unaligned = [first.query.0, self.seq.len() - last.query.1].into_iter().filter(short).peekable();
        if unaligned.peek().is_none() || !self.is_near_minisatellite() {
            return 0;
        }
        unaligned.map(event_model::cost_of_unaligned_end).sum()
    }

    /// Explains the contig by ranges copied from the genome around its longest segment. `None` if `cost`, the cost of
    /// the explanation found before, is too low for a better one, or if an end of the contig is not copied from this
    /// region.
    pub(super) fn explain_by_nearby_copies(&self, cost: i32) -> Option<(Vec<ContigChange>, [ContigSegment; 2])> {
        if cost < event_model::MIN_COST_TO_SEARCH_ALTERNATIVES_AT_MINISATELLITE
            || cost < event_model::MIN_COST_TO_SEARCH_ALTERNATIVES && !self.is_near_minisatellite()
        {
            return None;
        }
        let region = self.region_of_possible_copies()?;
        self.changes_from_cheapest_copying(region, &region.bases(self.genome))
    }

    /// The changes that follow from the cheapest way to copy the contig from a region of the genome. `None` if an end
    /// of the contig is not copied from there, or if the contig is too short to show a whole copy and the stretches are
    /// not just two with a junction between them.
    pub(super) fn changes_from_cheapest_copying(
        &self,
        region: GenomeRegion,
        bases: &[u8],
    ) -> Option<(Vec<ContigChange>, [ContigSegment; 2])> {
        let mut stretches = event_model::find_cheapest_copied_stretches(&self.seq, bases);
        event_model::move_first_jump_right(&mut stretches, &self.seq, bases, MIN_COPIED_END_BASES);
        let mapq = self.segments.iter().map(|p| p.mapq).max().unwrap_or(0);
        let segment = |s: &event_model::CopiedStretch| ContigSegment {
            chrom: region.chrom,
            forward: true,
            query: (s.query_start, s.query_end()),
            target: (region.start + s.target_start, region.start + s.target_end()),
            mapq,
        };
        let ends = [segment(stretches.first()?), segment(stretches.last()?)];
        let query = (ends[0].query.0, ends[1].query.1);
        let is_unaligned = query.0.max(self.seq.len() - query.1) > MAX_UNALIGNED_END_BASES;
        if is_unaligned || ends.iter().any(|segment| segment.query_len() < MIN_COPIED_END_BASES) {
            return None;
        }
        if let Some(alignment) = event_model::alignment_from_copied_stretches(&stretches, MAX_UNALIGNED_END_BASES) {
            return Some((self.changes_of_alignment(&alignment, region, bases, query, mapq, true), ends));
        }
        let [a, b] = &stretches[..] else { return None };
        let junction = self.find_junction(&segment(a), &segment(b))?;
        let is_outside = |f: &ContigChange| {
            f.contig_range.end <= junction.contig_range.start || f.contig_range.start >= junction.contig_range.end
        };
        let small = ends.iter().flat_map(|segment| self.changes_in_segment(segment)).filter(is_outside);
        let found = small.chain([junction.clone()]).collect();
        Some((found, ends))
    }
}
