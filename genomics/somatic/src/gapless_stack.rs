//! A gapless stack: reads aligned to each other without gaps, with base votes and consensus of each column.

use std::ops::Range;

use genuma_reads::dna::encode_base;

use crate::packed::OwnedRead;

/// Base votes, weighted by quality (limited to 2 to 40), in each column of a stack of reads that are aligned to each
/// other without gaps.
#[derive(Debug)]
pub(crate) struct GaplessStack {
    /// Coordinate of the first column.
    pub(crate) start: i32,
    quality_sums: Vec<[u32; 4]>,
    depth: Vec<u32>,
}

impl GaplessStack {
    /// Stacks reads; each comes with the column of its first base.
    pub(crate) fn sum_votes_of_reads<'a>(stack: impl Iterator<Item = (i32, &'a OwnedRead)> + Clone) -> GaplessStack {
        let mut columns = GaplessStack::empty_with_columns_for_reads(stack.clone());
        stack.for_each(|(at, read)| columns.add_votes_of_read(at, read));
        columns
    }

    /// Creates an empty stack that is wide enough for the given reads.
    pub(crate) fn empty_with_columns_for_reads<'a>(
        stack: impl Iterator<Item = (i32, &'a OwnedRead)> + Clone,
    ) -> GaplessStack {
        let start = stack.clone().map(|(at, _)| at).min().unwrap_or(0);
        let end = stack.map(|(at, r)| at + r.seq.len() as i32).max().unwrap_or(start);
        let width = (end - start) as usize;
        GaplessStack { start, quality_sums: vec![[0; 4]; width], depth: vec![0; width] }
    }

    /// Adds the votes of a read whose first base is in column `at`.
    pub(crate) fn add_votes_of_read(&mut self, at: i32, read: &OwnedRead) {
        let columns = (at - self.start) as usize..(at - self.start) as usize + read.seq.len();
        let columns = self.quality_sums[columns.clone()].iter_mut().zip(&mut self.depth[columns]);
        for ((quality_sums, depth), (&b, &q)) in columns.zip(read.seq.iter().zip(&read.qual)) {
            if let Some(sum) = quality_sums.get_mut(usize::from(encode_base(b))) {
                *sum += u32::from(q.clamp(2, 40));
                *depth += 1;
            }
        }
    }

    /// Number of bases of a read, starting in column `at`, that are in columns with votes.
    pub(crate) fn num_bases_in_covered_columns(&self, at: i32, read: &OwnedRead) -> usize {
        let from = (at - self.start) as usize;
        self.depth[from..from + read.seq.len()].iter().filter(|&&depth| depth > 0).count()
    }

    /// Number of reads with a base in `column` (index from the first column).
    pub(crate) fn depth_at_column(&self, column: usize) -> u32 {
        self.depth[column]
    }

    /// Sum of the qualities of the reads that have `base` in `column` (index from the first column), at most 65,535.
    pub(crate) fn base_quality_sum(&self, column: usize, base: u8) -> u16 {
        let weight = self.quality_sums[column].get(usize::from(encode_base(base))).copied().unwrap_or(0);
        weight.min(u32::from(u16::MAX)) as u16
    }

    /// The base with the highest quality sum in each column; N for columns without votes.
    pub(crate) fn consensus_bases(&self) -> Vec<u8> {
        let best = |w: &[u32; 4]| {
            let top = *w.iter().max().unwrap_or(&0);
            if top == 0 { b'N' } else { b"ACGT"[w.iter().position(|&x| x == top).unwrap_or(0)] }
        };
        self.quality_sums.iter().map(best).collect()
    }

    /// The trusted consensus around a column ([`GaplessStack::trusted_columns`]): its first column, and its bases.
    pub(crate) fn trusted_consensus_around(&self, around: i32) -> (i32, Vec<u8>) {
        let at = (around - self.start).clamp(0, self.quality_sums.len() as i32 - 1) as usize;
        let range = self.trusted_columns(at.saturating_sub(1), 1);
        (self.start + range.start as i32, self.consensus_bases()[range].to_vec())
    }

    /// Whether a read that starts in column `at` agrees with the majority of the stack, except for a few errors.
    pub(crate) fn read_agrees_with_majority(&self, at: i32, read: &OwnedRead) -> bool {
        let from = (at - self.start) as usize;
        let differing = read
            .seq
            .iter()
            .zip(&read.qual)
            .zip(&self.quality_sums[from..])
            .filter(|((b, q), w)| {
                let code = encode_base(**b) as usize;
                let total: u32 = w.iter().sum();
                **q >= 15 && code < 4 && w[code] * 2 < total
            })
            .count();
        differing <= 3.max(read.seq.len() / 20)
    }

    /// Range of columns around the seed in which at least two reads agree; up to 100 bp on each side a single read
    /// suffices. `from` is the first column of the seed, `k` its length.
    pub(crate) fn trusted_columns(&self, from: usize, k: usize) -> Range<usize> {
        const FLANK: usize = 100;
        let to = from + k;
        let good = |at: usize| {
            let w = &self.quality_sums[at];
            let total: u32 = w.iter().sum();
            let top = *w.iter().max().unwrap_or(&0);
            self.depth[at] >= 2 && top * 10 >= total * 7
        };
        let single = |at: usize| self.quality_sums[at].iter().any(|&w| w >= 20);
        let mut start = from;
        while start > 0 && (good(start - 1) || (from - start < FLANK && single(start - 1))) {
            start -= 1;
        }
        let mut end = to;
        while end < self.quality_sums.len() && (good(end) || (end - to < FLANK && single(end))) {
            end += 1;
        }
        start..end
    }

    /// Shortens `range` to the columns around `seed` that are spanned by reads. If no read spans a column, reads of two
    /// loci were stacked side by side there. `stack` has the reads of this stack.
    pub(crate) fn limit_range_to_spanned_columns<'a>(
        &self,
        range: Range<usize>,
        seed: Range<usize>,
        consensus: &[u8],
        stack: impl Iterator<Item = (i32, &'a OwnedRead)>,
    ) -> Range<usize> {
        // A read spans a column if it agrees with the consensus over this many bases on both sides, except for one
        // error.
        const REACH: usize = 12;
        let mut across = vec![false; self.quality_sums.len()];
        let mut mismatch_sums: Vec<u32> = Vec::new();
        for (at, read) in stack {
            let from = (at - self.start) as usize;
            let consensus_part = &consensus[from..from + read.seq.len()];
            let mut sum = 0;
            mismatch_sums.clear();
            mismatch_sums.push(0);
            mismatch_sums.extend(read.seq.iter().zip(&read.qual).zip(consensus_part).map(|((b, &q), c)| {
                sum += u32::from(b != c && q >= 15);
                sum
            }));
            for i in REACH..read.seq.len().saturating_sub(REACH) {
                across[from + i] |= mismatch_sums[i + REACH + 1] - mismatch_sums[i - REACH] <= 1;
            }
        }
        // Near the ends of the contig no read extends further, so nothing can be joined there.
        let start = (range.start + REACH..seed.start).rev().find(|&c| !across[c]).map_or(range.start, |c| c + 1);
        let end = (seed.end..range.end.saturating_sub(REACH)).find(|&c| !across[c]).unwrap_or(range.end);
        start..end
    }
}
