//! The bases of a chromosome without a copy of them: runs of bases that lie elsewhere, spelled where they are asked for.

use std::ops::Range;

use genuma_reads::dna;

use crate::marks::Marks;
use crate::variant::{Edit, Span};

/// Runs of the reference, of what variants add, and of novel bases, in the order of a chromosome.
#[derive(Debug, Clone, Default)]
pub struct Sequence<'a> {
    runs: Vec<Run<'a>>,
    length: usize,
    marks: Marks,
}

#[derive(Debug, Clone, Copy)]
struct Run<'a> {
    /// Where it begins on the chromosome.
    at: usize,
    bases: &'a [u8],
    /// Whether the chromosome has the other strand.
    reverse: bool,
}

impl<'a> Sequence<'a> {
    /// Bases as they are.
    pub fn of(bases: &'a [u8]) -> Self {
        let mut sequence = Sequence::default();
        sequence.push(bases, false);
        sequence
    }

    /// Adds bases, or what pairs with them if `reverse`.
    pub fn push(&mut self, bases: &'a [u8], reverse: bool) {
        if bases.is_empty() {
            return;
        }
        self.runs.push(Run { at: self.length, bases, reverse });
        self.length += bases.len();
        self.marks.push(self.runs.len() - 1, self.length);
    }

    /// Adds a span of a contig with `edits` in it, which are sorted and apart, turned round if `reverse`.
    pub(crate) fn push_span(&mut self, seq: &'a [u8], span: Span, edits: &[&'a Edit], reverse: bool) {
        if reverse {
            let mut end = span.end;
            for edit in edits.iter().rev() {
                self.push(&seq[edit.end()..end], true);
                self.push(&edit.added, true);
                end = edit.at.pos;
            }
            self.push(&seq[span.start..end], true);
        } else {
            let mut start = span.start;
            for edit in edits {
                self.push(&seq[start..edit.at.pos], false);
                self.push(&edit.added, false);
                start = edit.end();
            }
            self.push(&seq[start..span.end], false);
        }
    }

    /// How many bases there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// The run that a base lies in.
    fn run(&self, at: usize) -> usize {
        self.marks.find(&self.runs, at, |run| run.at + run.bases.len())
    }

    /// One base.
    pub fn base(&self, at: usize) -> u8 {
        let Run { at: start, bases, reverse } = self.runs[self.run(at)];
        if reverse { dna::complement(bases[bases.len() - 1 - (at - start)]) } else { bases[at - start] }
    }

    /// What bases are spelled from, piece by piece, and whether the other strand of a piece is meant.
    pub fn pieces(&self, bases: Range<usize>) -> impl Iterator<Item = (&'a [u8], bool)> + '_ {
        let first = if bases.is_empty() { self.runs.len() } else { self.run(bases.start) };
        self.runs[first..].iter().take_while(move |run| run.at < bases.end).map(move |run| {
            let n = run.bases.len();
            let (start, end) = (bases.start.max(run.at) - run.at, bases.end.min(run.at + n) - run.at);
            let piece = if run.reverse { n - end..n - start } else { start..end };
            (&run.bases[piece], run.reverse)
        })
    }

    /// Spells bases.
    pub fn bases(&self, range: Range<usize>) -> Vec<u8> {
        let mut bases = Vec::with_capacity(range.len());
        for (piece, reverse) in self.pieces(range) {
            if reverse {
                bases.extend(piece.iter().rev().map(|&base| dna::complement(base)));
            } else {
                bases.extend_from_slice(piece);
            }
        }
        bases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::variant::Cut;

    #[test]
    fn every_part_is_what_all_runs_one_by_one_spell() {
        let mut rng = Rng::stream(1, &[]);
        let source: Vec<u8> = (0..20_000).map(|_| rng.base(0.5)).collect();
        for round in 0..20 {
            let mut sequence = Sequence::default();
            let mut spelled = vec![];
            for _ in 0..1 + rng.below(60) {
                let start = rng.below(source.len());
                let longest = if rng.chance(0.5) { 3 } else { 9_000 };
                let run = &source[start..(start + rng.below(longest)).min(source.len())];
                let reverse = rng.chance(0.5);
                sequence.push(run, reverse);
                spelled.extend(if reverse { dna::revcomp(run) } else { run.to_vec() });
            }
            assert_eq!(sequence.len(), spelled.len());
            assert_eq!(sequence.bases(0..spelled.len()), spelled, "{round}");
            for _ in 0..200.min(spelled.len()) {
                let start = rng.below(spelled.len());
                let end = (start + rng.below(600)).min(spelled.len());
                assert_eq!(sequence.bases(start..end), spelled[start..end]);
                assert_eq!(sequence.base(start), spelled[start]);
            }
        }
        assert_eq!(Sequence::of(b"ACGT").bases(1..3), b"CG");
        assert_eq!(Sequence::default().bases(0..0), b"");
    }

    #[test]
    fn edits_are_spelled_on_either_strand() {
        let seq = b"AACCAACCTTGG";
        let edit = |pos: usize, removed: &[u8], added: &[u8]| {
            let at = Cut { contig: 0, pos };
            Edit { at, removed: removed.to_vec(), added: added.to_vec() }
        };
        let edits = [edit(4, b"A", b"G"), edit(6, b"CC", b""), edit(9, b"", b"AAA")];
        let span = Span { contig: 0, start: 2, end: 11 };
        let spell = |reverse| {
            let mut sequence = Sequence::default();
            sequence.push_span(seq, span, &edits.iter().collect::<Vec<_>>(), reverse);
            sequence.bases(0..sequence.len())
        };
        assert_eq!(spell(false), b"CCGATAAATG");
        assert_eq!(spell(true), dna::revcomp(b"CCGATAAATG"));
    }
}
