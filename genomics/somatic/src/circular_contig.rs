//! Aligns contigs that cross the origin of a circular reference sequence, such as the mitochondrial genome.
//!
//! The bases before and after the origin are joined to one linear sequence, with which the contig is aligned.
//! Afterwards the positions of the changes are converted to positions of the circular sequence.

use genuma_align::Hit;
use genuma_reads::fasta::{self, Reference};

use crate::change::{Breakend, Change};
use crate::contig_segments::{ContigSegment, MAX_JOINED_SEGMENT_DISTANCE_BP};

/// Number of genome bases that are added to the length of a contig on each side of the origin, for its flanks and a gap
/// between its segments.
const MARGIN_BP: usize = 2 * MAX_JOINED_SEGMENT_DISTANCE_BP;
/// Maximum distance in bp between the origin and the end of a segment that may continue beyond the origin. A segment
/// may end early if the contig has a change near the origin.
const MAX_ORIGIN_DISTANCE_BP: usize = 60;

/// The bases on both sides of the origin of a circular reference sequence, joined to one linear sequence.
pub(crate) struct OriginWindow {
    /// Index of the circular sequence in the genome.
    chrom: usize,
    /// Length of the circular sequence in bp.
    length: usize,
    /// Number of bases on each side of the origin in the window.
    flank: usize,
    /// A genome that consists of the window: the last `flank` bases of the circular sequence, then its first `flank`
    /// bases.
    pub(crate) genome: Reference,
}

impl OriginWindow {
    /// The window for a contig of `len` bases with these segments. `None` unless all segments are near the origin of
    /// one circular sequence and at least one may continue beyond the origin.
    pub(crate) fn for_segments_near_origin(
        segments: &[ContigSegment],
        len: usize,
        genome: &Reference,
    ) -> Option<OriginWindow> {
        let chrom = segments.first()?.chrom;
        if !genome.is_circular(chrom) {
            return None;
        }
        let seq = &genome.contigs[chrom].seq;
        let flank = (len + MARGIN_BP).min(seq.len() / 2);
        let is_near = |s: &ContigSegment| s.chrom == chrom && (s.target.1 <= flank || s.target.0 + flank >= seq.len());
        let touches = |s: &ContigSegment| s.target.0.min(seq.len() - s.target.1) <= MAX_ORIGIN_DISTANCE_BP;
        if !segments.iter().all(is_near) || !segments.iter().any(touches) {
            return None;
        }
        let bases = [&seq[seq.len() - flank..], &seq[..flank]].concat();
        let window = fasta::Contig { name: genome.contigs[chrom].name.clone(), seq: bases };
        Some(OriginWindow { chrom, length: seq.len(), flank, genome: Reference::from_contigs(vec![window]) })
    }

    /// Converts the mapper's hits in the window from positions of the genome to positions of the window. Drops other
    /// hits.
    pub(crate) fn convert_hits_to_window(&self, hits: &[Hit]) -> Vec<Hit> {
        let convert = |hit: &Hit| {
            let start = if hit.ref_end <= self.flank {
                hit.ref_start + self.flank
            } else {
                (hit.ref_start + self.flank).checked_sub(self.length)?
            };
            let end = start + hit.ref_end - hit.ref_start;
            (hit.tid == self.chrom).then(|| Hit { tid: 0, ref_start: start, ref_end: end, ..hit.clone() })
        };
        hits.iter().filter_map(convert).collect()
    }

    /// Converts a position of the window to the position on the circular sequence.
    fn circular_position(&self, pos: usize) -> usize {
        if pos < self.flank { self.length - self.flank + pos } else { pos - self.flank }
    }

    /// Converts a change from positions of the window to the circular sequence. `None` for a deletion, substitution or
    /// junction across the origin, which VCF cannot represent.
    pub(crate) fn convert_change_from_window(&self, change: Change) -> Option<Change> {
        let convert_breakend =
            |end: Breakend| Breakend { chrom: self.chrom, pos: self.circular_position(end.pos), side: end.side };
        Some(match change {
            Change::Allele { pos, reference, .. } if pos < self.flank && pos + reference.len() > self.flank => {
                return None;
            }
            Change::Allele { pos, reference, alternative, .. } => {
                Change::Allele { chrom: self.chrom, pos: self.circular_position(pos), reference, alternative }
            }
            Change::Junction { ends: [a, b], .. } if (a.pos < self.flank) != (b.pos < self.flank) => return None,
            Change::Junction { ends, inserted, homology } => {
                Change::Junction { ends: ends.map(convert_breakend), inserted, homology }
            }
            Change::Novel { end, sequence } => Change::Novel { end: convert_breakend(end), sequence },
        })
    }

    /// Converts the diagonals of an aligned contig of `len` bases from the window to the circular sequence: for the
    /// first and the last segment, the chromosome index, and the number to add to a contig coordinate to get the genome
    /// position.
    pub(crate) fn convert_diagonals_from_window(
        &self,
        diagonals: [Option<(usize, i64)>; 2],
        len: usize,
    ) -> [Option<(usize, i64)>; 2] {
        let origin = self.flank as i64;
        let convert = |(_, shift): (usize, i64), at: i64| {
            let moved = if at + shift < origin { self.length as i64 - origin } else { -origin };
            (self.chrom, shift + moved)
        };
        [diagonals[0].map(|first| convert(first, 0)), diagonals[1].map(|last| convert(last, len as i64 - 1))]
    }
}
