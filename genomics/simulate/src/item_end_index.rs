//! An index of sorted intervals that replaces a binary search over all of them.

use std::ops::Range;

/// Number of positions per entry of the index.
const BASES_PER_ENTRY: usize = 4096;

/// Index of items that are sorted by their end positions. For each block of 4096 positions it stores the first item
/// that ends after the start of the block.
///
/// A binary search over millions of items misses the CPU cache at each step. Two entries of this index reduce the
/// search to a few items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ItemEndIndex(Vec<u32>);

impl ItemEndIndex {
    /// Adds the item number `item`, which ends at position `end`. Items are added in order; ends must not decrease.
    pub(crate) fn push_item_end(&mut self, item: usize, end: usize) {
        self.0.resize(end.div_ceil(BASES_PER_ENTRY), item as u32);
    }

    /// Returns the number of the first item that ends after `at`, or `items.len()` if there is none. `end` returns the
    /// end position of an item.
    pub(crate) fn find_item_ending_after<T>(&self, items: &[T], at: usize, end: impl Fn(&T) -> usize) -> usize {
        let Range { start, end: last } = self.candidate_items(items.len(), at);
        start + items[start..last].partition_point(|item| end(item) <= at)
    }

    /// Returns a range of item numbers that contains, or directly precedes, the first item that ends after position
    /// `at`.
    fn candidate_items(&self, items: usize, at: usize) -> Range<usize> {
        let mark = |i: usize| self.0.get(i).map_or(items, |&item| item as usize);
        mark(at / BASES_PER_ENTRY)..mark(at / BASES_PER_ENTRY + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn marks_find_what_a_search_finds() {
        let mut rng = Rng::from_seed_and_labels(8, &[]);
        for longest in [2, 300, 5_000, 30_000] {
            let (mut ends, mut marks, mut end) = (vec![], ItemEndIndex::default(), 0);
            for item in 0..200 {
                end += rng.draw_below(longest);
                ends.push(end);
                marks.push_item_end(item, end);
            }
            for at in (0..end + 9_000).step_by(1 + end / 5_000).chain(ends.clone()) {
                let expected = ends.partition_point(|&end| end <= at);
                assert_eq!(marks.find_item_ending_after(&ends, at, |&end| end), expected, "{at} of {longest}");
            }
        }
        assert_eq!(ItemEndIndex::default().find_item_ending_after(&[], 5, |&end| end), 0);
    }
}
