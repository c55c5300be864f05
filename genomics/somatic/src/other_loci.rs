//! The other loci of the reference to which a contig aligns: paralogs and other members of a repeat family.

use std::cmp::Reverse;
use std::ops::Range;

use genuma_align::{Hit, Strand};
use serde::{Deserialize, Serialize};

use crate::contig_segments::{ContigSegment, MAX_JOINED_SEGMENT_DISTANCE_BP, overlaps_own_locus};

/// Maximum number of other loci that are kept for a contig.
pub const MAX_LISTED_LOCI: usize = 3;
/// Minimum share (numerator, denominator) of the bases of one of the contig's own segments that another locus covers.
/// Chosen: many contigs have a short match elsewhere, which says nothing about their origin.
const MIN_COVERED_SHARE: [usize; 2] = [1, 2];

/// Another locus of the reference to which a contig aligns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherLocus {
    /// Index of the reference sequence.
    pub chrom: usize,
    /// Range of the aligned bases of the reference (0-based).
    pub range: Range<usize>,
    /// Whether the contig, in the orientation of its longest segment on the forward strand, aligns to the forward
    /// strand here.
    pub forward: bool,
    /// Number of matching bases.
    pub matching_bases: u32,
    /// Number of alignment columns: matches, mismatches, inserted and deleted bases.
    pub alignment_columns: u32,
}

impl OtherLocus {
    fn from_hit(hit: &Hit, is_contig_reversed: bool) -> OtherLocus {
        OtherLocus {
            chrom: hit.tid,
            range: hit.ref_start..hit.ref_end,
            forward: (hit.strand == Strand::Forward) != is_contig_reversed,
            matching_bases: hit.matching_bases as u32,
            alignment_columns: hit.alignment_columns as u32,
        }
    }

    /// Share of matching bases among the alignment columns, from 0 to 1.
    pub fn identity(&self) -> f64 {
        f64::from(self.matching_bases) / f64::from(self.alignment_columns.max(1))
    }
}

/// The other loci of the reference to which a contig aligns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherLoci {
    /// The loci with the best alignment scores, best first, at most [`MAX_LISTED_LOCI`].
    pub best: Vec<OtherLocus>,
    /// Number of other loci that were found, including those in `best`.
    pub num_found: u32,
}

impl OtherLoci {
    /// Selects the other loci among the hits of a contig. `own` are the segments aligned to the contig's own locus; hits
    /// that overlap one of them on the reference are not other loci. Hits near a better hit are at the same locus.
    pub(crate) fn from_hits(hits: &[Hit], own: &[ContigSegment]) -> OtherLoci {
        let is_contig_reversed = own.iter().max_by_key(|s| s.query_len()).is_some_and(|longest| !longest.forward);
        let mut others: Vec<&Hit> =
            hits.iter().filter(|hit| !overlaps_own_locus(hit, own) && covers_own_segment(hit, own)).collect();
        others.sort_by_key(|hit| (Reverse(hit.score), hit.tid, hit.ref_start));
        let mut found: Vec<&Hit> = Vec::new();
        for hit in others {
            let is_found = |better: &&Hit| {
                better.tid == hit.tid
                    && better.ref_start <= hit.ref_end + MAX_JOINED_SEGMENT_DISTANCE_BP
                    && hit.ref_start <= better.ref_end + MAX_JOINED_SEGMENT_DISTANCE_BP
            };
            if !found.iter().any(is_found) {
                found.push(hit);
            }
        }
        OtherLoci {
            best: found.iter().take(MAX_LISTED_LOCI).map(|hit| OtherLocus::from_hit(hit, is_contig_reversed)).collect(),
            num_found: found.len() as u32,
        }
    }
}

/// Whether a hit aligns enough bases of one of the contig's own segments.
fn covers_own_segment(hit: &Hit, own: &[ContigSegment]) -> bool {
    let [numerator, denominator] = MIN_COVERED_SHARE;
    own.iter().any(|s| {
        let shared = hit.query_end.min(s.query.1).saturating_sub(hit.query_start.max(s.query.0));
        shared * denominator >= s.query_len() * numerator
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hit of contig bases `query` at position `start` of sequence `tid`. Its score is its number of matching bases
    /// minus four times that of other bases.
    fn hit(tid: usize, start: usize, query: Range<usize>, strand: Strand, mismatches: usize) -> Hit {
        let len = query.len();
        Hit {
            tid,
            ref_start: start,
            ref_end: start + len,
            query_start: query.start,
            query_end: query.end,
            strand,
            mapq: 0,
            score: len as i32 - 5 * mismatches as i32,
            alignment_columns: len,
            matching_bases: len - mismatches,
            proper_pair: false,
            is_primary: false,
            is_secondary: true,
            cigar: Vec::new(),
        }
    }

    fn segment(start: usize, query: (usize, usize), forward: bool) -> ContigSegment {
        ContigSegment { chrom: 0, forward, query, target: (start, start + query.1 - query.0), mapq: 60 }
    }

    /// Sequence, start, strand and matching bases of each listed locus, and the number of loci found.
    fn listed(hits: &[Hit], own: &[ContigSegment]) -> (Vec<(usize, usize, bool, u32)>, u32) {
        let found = OtherLoci::from_hits(hits, own);
        let list = found.best.iter().map(|l| (l.chrom, l.range.start, l.forward, l.matching_bases)).collect();
        (list, found.num_found)
    }

    #[test]
    fn the_best_other_loci_are_listed_by_score() {
        let [forward, reverse] = [Strand::Forward, Strand::Reverse];
        let own = [segment(1_000, (0, 200), true)];
        let hits = [
            hit(0, 1_000, 0..200, forward, 0),
            hit(0, 1_150, 0..200, forward, 1),
            hit(1, 500, 0..200, forward, 12),
            hit(2, 700, 20..200, reverse, 2),
            hit(1, 620, 0..200, forward, 14),
            hit(0, 9_000, 0..200, forward, 9),
            hit(3, 100, 0..200, forward, 20),
            hit(3, 900, 0..200, forward, 21),
            hit(3, 5_000, 0..99, forward, 0),
        ];
        let best = vec![(2, 700, false, 178), (0, 9_000, true, 191), (1, 500, true, 188)];
        // Hits at the contig's own locus, further hits of a locus and a short match do not count.
        assert_eq!(listed(&hits, &own), (best, 4));
        assert!((OtherLoci::from_hits(&hits, &own).best[0].identity() - 178.0 / 180.0).abs() < 1e-12);
        assert_eq!(listed(&hits[..2], &own), (Vec::new(), 0));
        assert_eq!(listed(&hits, &[]), (Vec::new(), 0));
    }

    #[test]
    fn the_strand_is_that_of_the_contig_along_its_longest_segment() {
        let own = [segment(1_000, (0, 60), true), segment(5_000, (60, 200), false)];
        let hits = [hit(2, 500, 0..60, Strand::Reverse, 0), hit(1, 900, 60..200, Strand::Forward, 3)];
        assert_eq!(listed(&hits, &own), (vec![(1, 900, false, 137), (2, 500, true, 60)], 2));
    }
}
