//! A gapless stack of reads: votes per column, and the consensus they make.

use std::ops::Range;

use genuma_reads::dna::code;

use crate::packed::Read;

/// Votes per column of a gapless stack of reads.
#[derive(Debug)]
pub(crate) struct Columns {
    /// Column of the first base, in the coordinates in which reads were stacked.
    pub(crate) start: i32,
    weight: Vec<[u32; 4]>,
    depth: Vec<u32>,
}

impl Columns {
    /// Stacks reads, each from its column on.
    pub(crate) fn vote<'a>(stack: impl Iterator<Item = (i32, &'a Read)> + Clone) -> Columns {
        let mut columns = Columns::wide_enough(stack.clone());
        stack.for_each(|(at, read)| columns.add(at, read));
        columns
    }

    /// Columns for reads, none of which has voted.
    pub(crate) fn wide_enough<'a>(stack: impl Iterator<Item = (i32, &'a Read)> + Clone) -> Columns {
        let start = stack.clone().map(|(at, _)| at).min().unwrap_or(0);
        let end = stack.map(|(at, r)| at + r.seq.len() as i32).max().unwrap_or(start);
        let width = (end - start) as usize;
        Columns { start, weight: vec![[0; 4]; width], depth: vec![0; width] }
    }

    /// Lets a read vote.
    pub(crate) fn add(&mut self, at: i32, read: &Read) {
        let from = (at - self.start) as usize;
        for (i, (&b, &q)) in read.seq.iter().zip(&read.qual).enumerate() {
            let code = code(b) as usize;
            if code < 4 {
                self.weight[from + i][code] += u32::from(q.clamp(2, 40));
                self.depth[from + i] += 1;
            }
        }
    }

    /// Bases of a read in columns for which others have voted.
    pub(crate) fn overlap(&self, at: i32, read: &Read) -> usize {
        let from = (at - self.start) as usize;
        self.depth[from..from + read.seq.len()].iter().filter(|&&depth| depth > 0).count()
    }

    /// Reads that cover a column, counted from the first.
    pub(crate) fn depth(&self, column: usize) -> u32 {
        self.depth[column]
    }

    /// Qualities of the reads that have a base in a column, counted from the first.
    pub(crate) fn weight_of(&self, column: usize, base: u8) -> u16 {
        let weight = self.weight[column].get(usize::from(code(base))).copied().unwrap_or(0);
        weight.min(u32::from(u16::MAX)) as u16
    }

    /// The base with the most weight in each column; N where nothing is known.
    pub(crate) fn consensus(&self) -> Vec<u8> {
        let best = |w: &[u32; 4]| {
            let top = *w.iter().max().unwrap_or(&0);
            if top == 0 { b'N' } else { b"ACGT"[w.iter().position(|&x| x == top).unwrap_or(0)] }
        };
        self.weight.iter().map(best).collect()
    }

    /// The consensus around a column that two reads or more agree on, and the column it starts at.
    pub(crate) fn stretch(&self, around: i32) -> (i32, Vec<u8>) {
        let at = (around - self.start).clamp(0, self.weight.len() as i32 - 1) as usize;
        let range = self.trusted(at.saturating_sub(1), 1);
        (self.start + range.start as i32, self.consensus()[range].to_vec())
    }

    /// Whether a read agrees with the majority but for a few errors.
    pub(crate) fn fits(&self, at: i32, read: &Read) -> bool {
        let from = (at - self.start) as usize;
        let differing = read
            .seq
            .iter()
            .zip(&read.qual)
            .zip(&self.weight[from..])
            .filter(|((b, q), w)| {
                let code = code(**b) as usize;
                let total: u32 = w.iter().sum();
                **q >= 15 && code < 4 && w[code] * 2 < total
            })
            .count();
        differing <= 3.max(read.seq.len() / 20)
    }

    /// The stretch around the seed that two reads or more agree on, at least 100 bases to each side if one read goes
    /// that far.
    pub(crate) fn trusted(&self, from: usize, k: usize) -> Range<usize> {
        const FLANK: usize = 100;
        let to = from + k;
        let good = |at: usize| {
            let w = &self.weight[at];
            let total: u32 = w.iter().sum();
            let top = *w.iter().max().unwrap_or(&0);
            self.depth[at] >= 2 && top * 10 >= total * 7
        };
        let single = |at: usize| self.weight[at].iter().any(|&w| w >= 20);
        let mut start = from;
        while start > 0 && (good(start - 1) || (from - start < FLANK && single(start - 1))) {
            start -= 1;
        }
        let mut end = to;
        while end < self.weight.len() && (good(end) || (end - to < FLANK && single(end))) {
            end += 1;
        }
        start..end
    }

    /// How far `range` goes from `seed` on without a place that no read reads across: there the reads of two places were stacked side by
    /// side. `stack` are the reads the columns were voted by.
    pub(crate) fn read_across<'a>(
        &self,
        range: Range<usize>,
        seed: Range<usize>,
        consensus: &[u8],
        stack: impl Iterator<Item = (i32, &'a Read)>,
    ) -> Range<usize> {
        // A read goes across a column that it agrees with for so many bases on both sides, but for one wrong base.
        const REACH: usize = 12;
        let mut across = vec![false; self.weight.len()];
        let mut wrong: Vec<u32> = Vec::new();
        for (at, read) in stack {
            let from = (at - self.start) as usize;
            let beside = &consensus[from..from + read.seq.len()];
            let mut sum = 0;
            wrong.clear();
            wrong.push(0);
            wrong.extend(read.seq.iter().zip(&read.qual).zip(beside).map(|((b, &q), c)| {
                sum += u32::from(b != c && q >= 15);
                sum
            }));
            for i in REACH..read.seq.len().saturating_sub(REACH) {
                across[from + i] |= wrong[i + REACH + 1] - wrong[i - REACH] <= 1;
            }
        }
        // Near the contig's ends no read goes further, and nothing can be stacked beside it.
        let start =
            (range.start + REACH..seed.start).rev().find(|&c| !across[c]).map_or(range.start, |c| c + 1);
        let end = (seed.end..range.end.saturating_sub(REACH)).find(|&c| !across[c]).unwrap_or(range.end);
        start..end
    }
}
