//! Which parts of the genome are taken, and random places that are free.

use std::collections::BTreeMap;

use crate::genome::Genome;
use crate::rng::Rng;
use crate::variant::{Cut, Span};

/// Bookkeeping of places: small intervals round variants and breakpoints, and the bodies of structural variants.
#[derive(Debug)]
pub struct Ground<'a> {
    genome: &'a Genome,
    /// Taken intervals of each contig: start → end. They never overlap.
    taken: Vec<BTreeMap<usize, usize>>,
    bodies: Vec<Span>,
}

impl<'a> Ground<'a> {
    /// Everything is free.
    pub fn new(genome: &'a Genome) -> Self {
        Ground { genome, taken: vec![BTreeMap::new(); genome.seqs.len()], bodies: vec![] }
    }

    /// A random place, every base of the genome alike.
    pub fn random(&self, rng: &mut Rng) -> Cut {
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
    pub fn holds_taken(&self, span: Span, gap: usize) -> bool {
        let last_before = self.taken[span.contig].range(..span.end + gap).next_back();
        last_before.is_some_and(|(_, &end)| end + gap > span.start)
    }

    /// Whether a cut lies in the body of a structural variant.
    pub fn in_body(&self, cut: Cut) -> bool {
        self.bodies.iter().any(|b| b.contig == cut.contig && b.start < cut.pos && cut.pos < b.end)
    }

    /// Whether `span` overlaps the body of a structural variant.
    pub fn overlaps_body(&self, span: Span) -> bool {
        self.bodies.iter().any(|b| b.contig == span.contig && b.start < span.end && span.start < b.end)
    }

    /// Takes a span.
    pub fn take(&mut self, span: Span) {
        self.taken[span.contig].insert(span.start, span.end.max(span.start + 1));
    }

    /// Remembers the body of a structural variant.
    pub fn take_body(&mut self, span: Span) {
        self.bodies.push(span);
    }
}
