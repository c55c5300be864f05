//! The stacked reads of a seed k-mer, and their consensus.

use std::ops::Range;

use super::{ContigRead, MIN_INSERTION_BP};
use crate::branch_points::BranchPoints;
use crate::gapless_stack::GaplessStack;
use crate::packed::OwnedRead;

/// A read that is aligned to the seed of the contig to be assembled.
pub(super) struct StackedRead {
    pub(super) member: u32,
    pub(super) placement: ContigRead,
    /// The read in the orientation of the contig.
    pub(super) read: OwnedRead,
}

impl StackedRead {
    /// First column of the read in the stack, and the read.
    pub(super) fn first_column_and_read(&self) -> (i32, &OwnedRead) {
        (self.placement.start, &self.read)
    }
}

/// A stack of reads, the base votes of each column, and the consensus.
pub(super) struct StackConsensus<'a> {
    pub(super) stack: Vec<&'a StackedRead>,
    pub(super) columns: GaplessStack,
    pub(super) consensus: Vec<u8>,
}

impl<'a> StackConsensus<'a> {
    /// Stacks reads, removes those that disagree with the majority, and computes the consensus of the others.
    pub(super) fn stack_agreeing_reads(stack: Vec<&'a StackedRead>) -> StackConsensus<'a> {
        let columns =
            |stack: &[&StackedRead]| GaplessStack::sum_votes_of_reads(stack.iter().map(|s| s.first_column_and_read()));
        let all = columns(&stack);
        let (stack, others): (Vec<_>, Vec<_>) =
            stack.into_iter().partition(|s| all.read_agrees_with_majority(s.placement.start, &s.read));
        let columns = if others.is_empty() { all } else { columns(&stack) };
        StackConsensus { consensus: columns.consensus_bases(), stack, columns }
    }

    /// Keeps only reads that have at least `seed` bases (the length of the seed k-mer) within a range of the consensus.
    pub(super) fn keep_reads_overlapping_range(&mut self, range: &Range<usize>, seed: i32) {
        let mut columns =
            GaplessStack::empty_with_columns_for_reads(self.stack.iter().map(|s| s.first_column_and_read()));
        let (from, to) = (columns.start + range.start as i32, columns.start + range.end as i32);
        self.stack
            .retain(|s| (s.placement.start + s.read.seq.len() as i32).min(to) - s.placement.start.max(from) >= seed);
        self.stack.iter().for_each(|s| columns.add_votes_of_read(s.placement.start, &s.read));
        self.columns = columns;
    }
}

/// The consensus of a stack of reads, and where candidate k-mers are on it.
pub(super) struct SeedConsensus {
    /// Candidate k-mers on the consensus: number within the group, and range.
    pub(super) windows: Vec<(u32, Range<usize>)>,
    /// Range of the consensus that enough reads confirm.
    pub(super) range: Range<usize>,
    pub(super) seed: Range<usize>,
}

impl SeedConsensus {
    /// The range around the seed that overlapping or adjacent candidate k-mers cover.
    pub(super) fn novel_range(&self) -> Range<usize> {
        let mut windows: Vec<&Range<usize>> = self.windows.iter().map(|w| &w.1).collect();
        windows.sort_unstable_by_key(|w| w.start);
        let right = windows.iter().fold(self.seed.end, |end, w| if w.start <= end { end.max(w.end) } else { end });
        let left = windows
            .iter()
            .rev()
            .fold(self.seed.start, |start, w| if w.end >= start { start.min(w.start) } else { start });
        left..right
    }

    /// Whether a long insertion extends from the seed to the left or to the right.
    pub(super) fn has_long_insertion_at_seed(&self) -> bool {
        let new = self.novel_range();
        (self.seed.start - new.start).max(new.end - self.seed.end) >= MIN_INSERTION_BP
    }

    /// Finds the columns nearest to the seed at which reads within the consensus diverge from it.
    pub(super) fn find_branch_points_of_seed(
        &self,
        stacked_reads: &[StackedRead],
        consensus_of_stack: &StackConsensus<'_>,
    ) -> BranchPoints {
        let all = stacked_reads.iter().map(StackedRead::first_column_and_read).filter(|(at, read)| {
            let from = *at - consensus_of_stack.columns.start;
            from >= 0 && from as usize + read.seq.len() <= consensus_of_stack.consensus.len()
        });
        BranchPoints::find_branch_points(
            all,
            consensus_of_stack.columns.start,
            &consensus_of_stack.consensus,
            &self.seed,
        )
    }

    /// Whether the seed is at the border of repeated tumour sequence, which also occurs at other loci.
    pub(super) fn is_seed_at_border_of_repeat(
        &self,
        stacked_reads: &[StackedRead],
        consensus_of_stack: &StackConsensus<'_>,
    ) -> bool {
        self.has_long_insertion_at_seed()
            || self.find_branch_points_of_seed(stacked_reads, consensus_of_stack).within_seed
    }

    /// Whether reads diverge within the trusted range.
    pub(super) fn has_branch_in_trusted_range(
        &self,
        stacked_reads: &[StackedRead],
        consensus_of_stack: &StackConsensus<'_>,
    ) -> bool {
        let within = |c: usize| self.range.contains(&c);
        let BranchPoints { left, right, .. } = self.find_branch_points_of_seed(stacked_reads, consensus_of_stack);
        left.is_some_and(within) || right.is_some_and(within)
    }

    /// Cuts the consensus at the columns where reads diverge.
    pub(super) fn cut_at_branches(
        self,
        stacked_reads: &[StackedRead],
        consensus_of_stack: &StackConsensus<'_>,
    ) -> SeedConsensus {
        let BranchPoints { left, right, .. } = self.find_branch_points_of_seed(stacked_reads, consensus_of_stack);
        let range = self.range.start.max(left.unwrap_or(0))..self.range.end.min(right.unwrap_or(usize::MAX));
        let mut windows = self.windows;
        windows.retain(|(_, w)| w.start >= range.start && w.end <= range.end);
        SeedConsensus { windows, range, seed: self.seed }
    }
}
