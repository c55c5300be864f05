//! Places found without a search through everything.

use std::ops::Range;

/// Bases from one mark to the next.
const STEP: usize = 4096;

/// For every so many bases the first of some items, which are sorted by their ends, that ends beyond there.
///
/// A search among millions of items misses the cache at every step; two marks leave a handful of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks(Vec<u32>);

impl Marks {
    /// Item number `item` ends at `end`, no earlier than the one before.
    pub fn push(&mut self, item: usize, end: usize) {
        self.0.resize(end.div_ceil(STEP), item as u32);
    }

    /// The number of the first of the `items` that ends beyond `at`: as many as there are, if none does.
    pub fn find<T>(&self, items: &[T], at: usize, end: impl Fn(&T) -> usize) -> usize {
        let Range { start, end: last } = self.candidates(items.len(), at);
        start + items[start..last].partition_point(|item| end(item) <= at)
    }

    /// The first item that ends beyond `at` is one of these, or the one behind them.
    fn candidates(&self, items: usize, at: usize) -> Range<usize> {
        let mark = |i: usize| self.0.get(i).map_or(items, |&item| item as usize);
        mark(at / STEP)..mark(at / STEP + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn marks_find_what_a_search_finds() {
        let mut rng = Rng::stream(8, &[]);
        for longest in [2, 300, 5_000, 30_000] {
            let (mut ends, mut marks, mut end) = (vec![], Marks::default(), 0);
            for item in 0..200 {
                end += rng.below(longest);
                ends.push(end);
                marks.push(item, end);
            }
            for at in (0..end + 9_000).step_by(1 + end / 5_000).chain(ends.clone()) {
                let expected = ends.partition_point(|&end| end <= at);
                assert_eq!(marks.find(&ends, at, |&end| end), expected, "{at} of {longest}");
            }
        }
        assert_eq!(Marks::default().find(&[], 5, |&end| end), 0);
    }
}
