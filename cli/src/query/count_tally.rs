//! Number of k-mers found and median count, for the k-mers of one sequence in one sample.

use std::collections::BTreeMap;

/// Number of counts that are kept one by one. Beyond it, they are added to the histogram.
const MAX_UNSORTED_COUNTS: usize = 1 << 16;

/// The counts of the k-mers of a sequence in one sample. The memory does not grow with the length of the sequence, but
/// with the number of distinct counts.
#[derive(Debug, Default)]
pub(super) struct CountTally {
    num_kmers: u64,
    num_found: u64,
    /// Counts that are not in the histogram yet.
    unsorted: Vec<u32>,
    /// Number of k-mers with each count.
    histogram: BTreeMap<u32, u64>,
}

impl CountTally {
    /// Adds the count of a k-mer, 0 if the sample does not have the k-mer.
    pub(super) fn push(&mut self, count: u32) {
        self.num_kmers += 1;
        self.num_found += u64::from(count > 0);
        if self.unsorted.len() == MAX_UNSORTED_COUNTS {
            self.move_counts_to_histogram();
        }
        self.unsorted.push(count);
    }

    fn move_counts_to_histogram(&mut self) {
        self.unsorted.sort_unstable();
        for equal in self.unsorted.chunk_by(|a, b| a == b) {
            *self.histogram.entry(equal[0]).or_insert(0) += equal.len() as u64;
        }
        self.unsorted.clear();
    }

    /// Number of k-mers.
    pub(super) fn num_kmers(&self) -> u64 {
        self.num_kmers
    }

    /// Number of k-mers that the sample has.
    pub(super) fn num_found(&self) -> u64 {
        self.num_found
    }

    /// Share of the k-mers that the sample has; `None` without k-mers.
    pub(super) fn share_found(&self) -> Option<f64> {
        (self.num_kmers > 0).then(|| self.num_found as f64 / self.num_kmers as f64)
    }

    /// Median of all counts, those of absent k-mers included; for an even number of k-mers the mean of the middle two.
    /// `None` without k-mers.
    pub(super) fn median(&mut self) -> Option<f64> {
        let upper = self.num_kmers / 2;
        let lower = self.num_kmers.checked_sub(1)? / 2;
        self.unsorted.sort_unstable();
        let [lower, upper] = if self.histogram.is_empty() {
            [lower, upper].map(|rank| self.unsorted[rank as usize])
        } else {
            self.move_counts_to_histogram();
            [lower, upper].map(|rank| self.count_with_rank(rank))
        };
        Some((f64::from(lower) + f64::from(upper)) / 2.0)
    }

    /// The count with `rank` counts before it in ascending order. All counts are in the histogram.
    fn count_with_rank(&self, rank: u64) -> u32 {
        let mut num_before = 0;
        let found = self.histogram.iter().find(|(_, num_kmers)| {
            num_before += **num_kmers;
            num_before > rank
        });
        found.map_or(0, |(count, _)| *count)
    }

    /// Removes all counts, and keeps the memory.
    pub(super) fn clear(&mut self) {
        (self.num_kmers, self.num_found) = (0, 0);
        self.unsorted.clear();
        self.histogram.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Median of counts that are sorted as a whole.
    fn plain_median(counts: &[u32]) -> Option<f64> {
        let mut sorted = counts.to_vec();
        sorted.sort_unstable();
        let middle = [(counts.len().checked_sub(1)?) / 2, counts.len() / 2].map(|rank| f64::from(sorted[rank]));
        Some((middle[0] + middle[1]) / 2.0)
    }

    #[test]
    fn medians_and_shares_are_those_of_all_counts() {
        let mut tally = CountTally::default();
        assert_eq!((tally.median(), tally.share_found()), (None, None));
        let count = |i: u64| {
            ((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % 90 / 2 * u32::from(!i.is_multiple_of(3))
        };
        for num_kmers in [1, 2, 3, 10, 65_535, 65_536, 65_537, 200_000, 200_001] {
            let counts: Vec<u32> = (0..num_kmers).map(count).collect();
            tally.clear();
            counts.iter().for_each(|&count| tally.push(count));
            let num_found = counts.iter().filter(|&&count| count > 0).count() as u64;
            assert_eq!((tally.num_kmers(), tally.num_found()), (num_kmers, num_found));
            assert_eq!(tally.share_found(), Some(num_found as f64 / num_kmers as f64));
            assert_eq!(tally.median(), plain_median(&counts), "{num_kmers} k-mers");
        }
        tally.clear();
        [u32::MAX, u32::MAX].into_iter().for_each(|count| tally.push(count));
        assert_eq!(tally.median(), Some(f64::from(u32::MAX)));
        tally.push(0);
        assert_eq!(tally.median(), Some(f64::from(u32::MAX)));
        [0, 0].into_iter().for_each(|count| tally.push(count));
        assert_eq!(tally.median(), Some(0.0));
    }
}
