//! The sequence of a derived chromosome, stored as a list of references to slices of other sequences. Bases are copied
//! only when they are requested.

use std::ops::Range;

use genuma_reads::dna;

use crate::item_end_index::ItemEndIndex;
use crate::variant::{ContigSpan, SequenceEdit};

/// The sequence of one derived chromosome: slices of reference, inserted and novel bases in chromosome order.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChromosomeSequence<'a> {
    slices: Vec<BaseSlice<'a>>,
    length: usize,
    slice_ends: ItemEndIndex,
}

#[derive(Debug, Clone, Copy)]
struct BaseSlice<'a> {
    /// First base of this slice on the chromosome, 0-based.
    start: usize,
    bases: &'a [u8],
    /// Whether the chromosome has the reverse complement of `bases`.
    reverse: bool,
}

impl<'a> ChromosomeSequence<'a> {
    /// Creates a sequence that consists of `bases`.
    pub(crate) fn from_bases(bases: &'a [u8]) -> Self {
        let mut sequence = ChromosomeSequence::default();
        sequence.append_bases_or_reverse_complement(bases, false);
        sequence
    }

    /// Appends `bases`, or their reverse complement if `reverse` is set.
    pub fn append_bases_or_reverse_complement(&mut self, bases: &'a [u8], reverse: bool) {
        if bases.is_empty() {
            return;
        }
        self.slices.push(BaseSlice { start: self.length, bases, reverse });
        self.length += bases.len();
        self.slice_ends.push_item_end(self.slices.len() - 1, self.length);
    }

    /// Appends a span of a contig to which `edits` are applied. The edits are sorted and do not overlap. If `reverse`
    /// is set, the reverse complement is appended.
    pub(crate) fn append_edited_span(
        &mut self,
        seq: &'a [u8],
        span: ContigSpan,
        edits: &[&'a SequenceEdit],
        reverse: bool,
    ) {
        if reverse {
            let mut end = span.end;
            for edit in edits.iter().rev() {
                self.append_bases_or_reverse_complement(&seq[edit.reference_end()..end], true);
                self.append_bases_or_reverse_complement(&edit.added, true);
                end = edit.position.pos;
            }
            self.append_bases_or_reverse_complement(&seq[span.start..end], true);
        } else {
            let mut start = span.start;
            for edit in edits {
                self.append_bases_or_reverse_complement(&seq[start..edit.position.pos], false);
                self.append_bases_or_reverse_complement(&edit.added, false);
                start = edit.reference_end();
            }
            self.append_bases_or_reverse_complement(&seq[start..span.end], false);
        }
    }

    /// Returns the length of the chromosome, bp.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns the index of the slice that contains the base at position `at`.
    fn find_slice(&self, at: usize) -> usize {
        self.slice_ends.find_item_ending_after(&self.slices, at, |slice| slice.start + slice.bases.len())
    }

    /// Returns the base at position `at` (0-based) of the derived chromosome.
    pub fn base_at(&self, at: usize) -> u8 {
        let BaseSlice { start, bases, reverse } = self.slices[self.find_slice(at)];
        if reverse { dna::complement(bases[bases.len() - 1 - (at - start)]) } else { bases[at - start] }
    }

    /// Iterates over the stored slices that make up a range of the chromosome. The flag is set if the chromosome has
    /// the reverse complement of the slice.
    pub(crate) fn iter_slices_in_range(&self, bases: Range<usize>) -> impl Iterator<Item = (&'a [u8], bool)> + '_ {
        let first = if bases.is_empty() { self.slices.len() } else { self.find_slice(bases.start) };
        self.slices[first..].iter().take_while(move |slice| slice.start < bases.end).map(move |slice| {
            let n = slice.bases.len();
            let (start, end) =
                (bases.start.max(slice.start) - slice.start, bases.end.min(slice.start + n) - slice.start);
            let piece = if slice.reverse { n - end..n - start } else { start..end };
            (&slice.bases[piece], slice.reverse)
        })
    }

    /// Returns a copy of the bases in a range of the chromosome.
    pub fn bases_in_range(&self, range: Range<usize>) -> Vec<u8> {
        let mut bases = Vec::with_capacity(range.len());
        for (piece, reverse) in self.iter_slices_in_range(range) {
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
    use crate::variant::GenomePosition;

    #[test]
    fn every_part_is_what_all_runs_one_by_one_spell() {
        let mut rng = Rng::from_seed_and_labels(1, &[]);
        let source: Vec<u8> = (0..20_000).map(|_| rng.draw_base(0.5)).collect();
        for round in 0..20 {
            let mut sequence = ChromosomeSequence::default();
            let mut spelled = vec![];
            for _ in 0..1 + rng.draw_below(60) {
                let start = rng.draw_below(source.len());
                let longest = if rng.draw_bernoulli(0.5) { 3 } else { 9_000 };
                let slice = &source[start..(start + rng.draw_below(longest)).min(source.len())];
                let reverse = rng.draw_bernoulli(0.5);
                sequence.append_bases_or_reverse_complement(slice, reverse);
                spelled.extend(if reverse { dna::reverse_complement(slice) } else { slice.to_vec() });
            }
            assert_eq!(sequence.len(), spelled.len());
            assert_eq!(sequence.bases_in_range(0..spelled.len()), spelled, "{round}");
            for _ in 0..200.min(spelled.len()) {
                let start = rng.draw_below(spelled.len());
                let end = (start + rng.draw_below(600)).min(spelled.len());
                assert_eq!(sequence.bases_in_range(start..end), spelled[start..end]);
                assert_eq!(sequence.base_at(start), spelled[start]);
            }
        }
        assert_eq!(ChromosomeSequence::from_bases(b"ACGT").bases_in_range(1..3), b"CG");
        assert_eq!(ChromosomeSequence::default().bases_in_range(0..0), b"");
    }

    #[test]
    fn edits_are_spelled_on_either_strand() {
        let seq = b"AACCAACCTTGG";
        let edit = |pos: usize, removed: &[u8], added: &[u8]| {
            let at = GenomePosition { contig: 0, pos };
            SequenceEdit { position: at, removed: removed.to_vec(), added: added.to_vec() }
        };
        let edits = [edit(4, b"A", b"G"), edit(6, b"CC", b""), edit(9, b"", b"AAA")];
        let span = ContigSpan { contig: 0, start: 2, end: 11 };
        let spell = |reverse| {
            let mut sequence = ChromosomeSequence::default();
            sequence.append_edited_span(seq, span, &edits.iter().collect::<Vec<_>>(), reverse);
            sequence.bases_in_range(0..sequence.len())
        };
        assert_eq!(spell(false), b"CCGATAAATG");
        assert_eq!(spell(true), dna::reverse_complement(b"CCGATAAATG"));
    }
}
