//! Keeps track of the regions of the genome that already have variants, and draws random positions for new ones.

use std::collections::BTreeMap;

use crate::genome::Genome;
use crate::rng::Rng;
use crate::variant::{ContigSpan, GenomePosition};

/// Regions of a genome that already have variants: small intervals around variants and breakpoints, and the spans of
/// structural variants.
#[derive(Debug)]
pub(crate) struct OccupiedRegions<'a> {
    genome: &'a Genome,
    /// Occupied intervals of each contig, as map from start to end. They never overlap.
    occupied_intervals: Vec<BTreeMap<usize, usize>>,
    sv_spans: Vec<ContigSpan>,
    /// Spans in which random positions are drawn, each with the sum of the lengths up to its end. `None` allows the
    /// whole genome.
    allowed_spans: Option<Vec<(ContigSpan, usize)>>,
}

impl<'a> OccupiedRegions<'a> {
    /// Creates an object without occupied regions, in which random positions may be anywhere.
    pub(crate) fn empty(genome: &'a Genome) -> Self {
        OccupiedRegions {
            genome,
            occupied_intervals: vec![BTreeMap::new(); genome.seqs.len()],
            sv_spans: vec![],
            allowed_spans: None,
        }
    }

    /// Restricts random positions to `spans`, which are sorted and do not overlap. `None` or an empty list allows the
    /// whole genome again.
    pub(crate) fn restrict_draws_to_spans(&mut self, spans: Option<&[ContigSpan]>) {
        let mut sum = 0;
        let mut with_sum = |span: &ContigSpan| {
            sum += span.length_bp();
            (*span, sum)
        };
        self.allowed_spans = spans.filter(|s| !s.is_empty()).map(|s| s.iter().map(&mut with_sum).collect());
    }

    /// Returns whether a position is within the spans in which random positions are drawn.
    pub(crate) fn is_position_allowed(&self, at: GenomePosition) -> bool {
        let Some(spans) = &self.allowed_spans else { return true };
        let next = spans.partition_point(|(s, _)| (s.contig, s.end) <= (at.contig, at.pos));
        spans.get(next).is_some_and(|(s, _)| s.contig == at.contig && s.start <= at.pos)
    }

    /// Draws a position within the allowed spans; all their bases are equally likely. It may be occupied.
    pub(crate) fn draw_allowed_position(&self, rng: &mut Rng) -> GenomePosition {
        if let Some(spans) = &self.allowed_spans {
            let base = rng.draw_below(spans.last().map_or(1, |s| s.1));
            let (span, sum) = spans[spans.partition_point(|s| s.1 <= base).min(spans.len() - 1)];
            return GenomePosition { contig: span.contig, pos: span.end - (sum - base) };
        }
        let mut pos = rng.draw_below(self.genome.length_bp());
        for (contig, seq) in self.genome.seqs.iter().enumerate() {
            if pos < seq.len() {
                return GenomePosition { contig, pos };
            }
            pos -= seq.len();
        }
        unreachable!("a position below the genome's length lies in a contig")
    }

    /// Returns whether a variant can be placed at `span`: it is at least `gap` bp away from all occupied intervals, at
    /// least 1000 bp (on a short contig a tenth of its length) from the ends of the contig, and has no N within 50 bp.
    pub(crate) fn can_place_at_span(&self, span: ContigSpan, gap: usize) -> bool {
        let seq = &self.genome.seqs[span.contig];
        let margin = (seq.len() / 10).clamp(1, 1000);
        if span.start < margin || span.end + margin > seq.len() {
            return false;
        }
        let (near, far) = (span.start.saturating_sub(50), (span.end + 50).min(seq.len()));
        !seq[near..far].contains(&b'N') && !self.has_occupied_bases_near(span, gap)
    }

    /// Returns whether an occupied interval is less than `gap` bp away from `span`.
    pub(crate) fn has_occupied_bases_near(&self, span: ContigSpan, gap: usize) -> bool {
        let last_before = self.occupied_intervals[span.contig].range(..span.end + gap).next_back();
        last_before.is_some_and(|(_, &end)| end + gap > span.start)
    }

    /// Returns whether a position is inside the span of a structural variant. The ends of the span do not count.
    pub(crate) fn is_in_sv_span(&self, cut: GenomePosition) -> bool {
        self.sv_spans.iter().any(|b| b.contig == cut.contig && b.start < cut.pos && cut.pos < b.end)
    }

    /// Returns whether `span` overlaps the span of a structural variant.
    pub(crate) fn overlaps_sv_span(&self, span: ContigSpan) -> bool {
        self.sv_spans.iter().any(|b| b.contig == span.contig && b.start < span.end && span.start < b.end)
    }

    /// Adds a span to the occupied intervals. An empty span occupies one base.
    pub(crate) fn occupy_span(&mut self, span: ContigSpan) {
        self.occupied_intervals[span.contig].insert(span.start, span.end.max(span.start + 1));
    }

    /// Excludes further structural variants from the span of one. Small variants may still be placed in it.
    pub(crate) fn exclude_further_svs_from_span(&mut self, span: ContigSpan) {
        self.sv_spans.push(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_places_lie_where_they_are_wanted() {
        let genome = Genome::from_sequences(vec!["a".into(), "b".into()], vec![vec![b'A'; 100], vec![b'C'; 50]]);
        let mut ground = OccupiedRegions::empty(&genome);
        let span = |contig, start, end| ContigSpan { contig, start, end };
        let wanted = [span(0, 10, 12), span(0, 40, 45), span(1, 0, 3)];
        let mut rng = Rng::from_seed_and_labels(1, &[]);
        let mut drawn = |ground: &OccupiedRegions| -> std::collections::BTreeSet<GenomePosition> {
            (0..3000).map(|_| ground.draw_allowed_position(&mut rng)).collect()
        };
        assert_eq!(drawn(&ground).len(), 150);
        ground.restrict_draws_to_spans(Some(&wanted));
        let all: std::collections::BTreeSet<GenomePosition> =
            wanted.iter().flat_map(|s| (s.start..s.end).map(|pos| GenomePosition { contig: s.contig, pos })).collect();
        assert_eq!(drawn(&ground), all);
        let places = || (0..2).flat_map(|contig| (0..50).map(move |pos| GenomePosition { contig, pos }));
        assert!(places().all(|at| ground.is_position_allowed(at) == all.contains(&at)));
        ground.restrict_draws_to_spans(None);
        assert!(places().all(|at| ground.is_position_allowed(at)));
    }
}
