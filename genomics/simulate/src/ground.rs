//! Which parts of the genome are taken, and random places that are free.

use std::collections::BTreeMap;

use crate::genome::Genome;
use crate::rng::Rng;
use crate::variant::{Cut, Span};

/// Bookkeeping of places: small intervals round variants and breakpoints, and the bodies of structural variants.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    genome: &'a Genome,
    /// Taken intervals of each contig: start → end. They never overlap.
    taken: Vec<BTreeMap<usize, usize>>,
    bodies: Vec<Span>,
    /// Where random places lie, with the bases up to the end of each; without it anywhere.
    wanted: Option<Vec<(Span, usize)>>,
}

impl<'a> Ground<'a> {
    /// Everything is free.
    pub fn new(genome: &'a Genome) -> Self {
        Ground { genome, taken: vec![BTreeMap::new(); genome.seqs.len()], bodies: vec![], wanted: None }
    }

    /// From now on random places lie in `spans` only, which are sorted and apart; without them anywhere again.
    pub fn want(&mut self, spans: Option<&[Span]>) {
        let mut sum = 0;
        let mut with_sum = |span: &Span| {
            sum += span.length();
            (*span, sum)
        };
        self.wanted = spans.filter(|s| !s.is_empty()).map(|s| s.iter().map(&mut with_sum).collect());
    }

    /// Whether random places may lie here.
    pub fn is_wanted(&self, at: Cut) -> bool {
        let Some(spans) = &self.wanted else { return true };
        let next = spans.partition_point(|(s, _)| (s.contig, s.end) <= (at.contig, at.pos));
        spans.get(next).is_some_and(|(s, _)| s.contig == at.contig && s.start <= at.pos)
    }

    /// A random place, every base of the genome, or of what is wanted of it, alike.
    pub fn random(&self, rng: &mut Rng) -> Cut {
        if let Some(spans) = &self.wanted {
            let base = rng.below(spans.last().map_or(1, |s| s.1));
            let (span, sum) = spans[spans.partition_point(|s| s.1 <= base).min(spans.len() - 1)];
            return Cut { contig: span.contig, pos: span.end - (sum - base) };
        }
        let mut pos = rng.below(self.genome.length());
        for (contig, seq) in self.genome.seqs.iter().enumerate() {
            if pos < seq.len() {
                return Cut { contig, pos };
            }
            pos -= seq.len();
        }
        unreachable!("a position below the genome's length lies in a contig")
    }

    /// Whether `span` stays `gap` away from everything taken, keeps off the contig's ends and has no N near.
    pub fn is_free(&self, span: Span, gap: usize) -> bool {
        let seq = &self.genome.seqs[span.contig];
        let margin = (seq.len() / 10).clamp(1, 1000);
        if span.start < margin || span.end + margin > seq.len() {
            return false;
        }
        let (near, far) = (span.start.saturating_sub(50), (span.end + 50).min(seq.len()));
        !seq[near..far].contains(&b'N') && !self.holds_taken(span, gap)
    }

    /// Whether something taken lies less than `gap` from `span`.
    pub(crate) fn holds_taken(&self, span: Span, gap: usize) -> bool {
        let last_before = self.taken[span.contig].range(..span.end + gap).next_back();
        last_before.is_some_and(|(_, &end)| end + gap > span.start)
    }

    /// Whether a cut lies in the body of a structural variant.
    pub(crate) fn in_body(&self, cut: Cut) -> bool {
        self.bodies.iter().any(|b| b.contig == cut.contig && b.start < cut.pos && cut.pos < b.end)
    }

    /// Whether `span` overlaps the body of a structural variant.
    pub(crate) fn overlaps_body(&self, span: Span) -> bool {
        self.bodies.iter().any(|b| b.contig == span.contig && b.start < span.end && span.start < b.end)
    }

    /// Takes a span.
    pub fn take(&mut self, span: Span) {
        self.taken[span.contig].insert(span.start, span.end.max(span.start + 1));
    }

    /// Remembers the body of a structural variant.
    pub(crate) fn take_body(&mut self, span: Span) {
        self.bodies.push(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_places_lie_where_they_are_wanted() {
        let genome = Genome::new(vec!["a".into(), "b".into()], vec![vec![b'A'; 100], vec![b'C'; 50]]);
        let mut ground = Ground::new(&genome);
        let span = |contig, start, end| Span { contig, start, end };
        let wanted = [span(0, 10, 12), span(0, 40, 45), span(1, 0, 3)];
        let mut rng = Rng::stream(1, &[]);
        let mut drawn = |ground: &Ground| -> std::collections::BTreeSet<Cut> {
            (0..3000).map(|_| ground.random(&mut rng)).collect()
        };
        assert_eq!(drawn(&ground).len(), 150);
        ground.want(Some(&wanted));
        let all: std::collections::BTreeSet<Cut> =
            wanted.iter().flat_map(|s| (s.start..s.end).map(|pos| Cut { contig: s.contig, pos })).collect();
        assert_eq!(drawn(&ground), all);
        let places = || (0..2).flat_map(|contig| (0..50).map(move |pos| Cut { contig, pos }));
        assert!(places().all(|at| ground.is_wanted(at) == all.contains(&at)));
        ground.want(None);
        assert!(places().all(|at| ground.is_wanted(at)));
    }
}
