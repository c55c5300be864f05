//! Index from keys to pages: a search tree in memory whose nodes are cache lines.
//!
//! The lowest level has the first key of each page; each level above has every eighth key of the level below. The
//! position of a node follows from its number, so the tree has no pointers (the multilevel index of cadenelli2019,
//! section 5.2.2, with nodes of 8 instead of 64 keys). The keys of a batch are searched together, level by level, and
//! the cache lines of the next level are prefetched.

use std::ops::Range;

use genuma_machine::placement::{self, MemoryPlacement, PlacedSlice};
use genuma_machine::simd_and_prefetch::prefetch;

use crate::filter::FILTER_UNITS_PER_GROUP;

/// Number of keys in a node of the index: a cache line of 64 bytes.
const KEYS_PER_NODE: usize = 8;
/// Number of levels of the index below the level whose positions are page groups.
const LEVELS_BELOW_GROUPS: usize = 2;
const _: () = assert!((KEYS_PER_NODE * KEYS_PER_NODE) as u64 == FILTER_UNITS_PER_GROUP);
/// Maximum number of keys that are searched together.
pub(crate) const MAX_SEARCH_BATCH_KEYS: usize = 16;

/// Index in memory: the first keys of all pages, or of all filter groups of compact pages, and the levels of the search
/// tree above them.
#[derive(Debug)]
pub(crate) struct FirstKeyIndex {
    /// Keys of all levels, from the top level down. Each level is padded to whole nodes.
    keys: PlacedSlice<u64>,
    /// For each level, index in `keys` of its first key, and number of its keys.
    levels: Vec<(usize, usize)>,
}

impl FirstKeyIndex {
    /// Builds the index of a table with `pages` pages, at least one. `fill` must write the first key of each page.
    ///
    /// # Errors
    /// The error of `fill`, or no memory on the requested nodes.
    pub(crate) fn build<E: From<placement::Error>>(
        pages: usize,
        placement: &MemoryPlacement,
        fill: impl FnOnce(&mut [u64]) -> Result<(), E>,
    ) -> Result<FirstKeyIndex, E> {
        let mut lens = vec![pages];
        while lens[lens.len() - 1] > KEYS_PER_NODE {
            lens.push(lens[lens.len() - 1].div_ceil(KEYS_PER_NODE));
        }
        let mut levels = Vec::new();
        let mut start = 0;
        for &len in lens.iter().rev() {
            levels.push((start, len));
            start += len.next_multiple_of(KEYS_PER_NODE);
        }
        let mut keys: PlacedSlice<u64> = PlacedSlice::new_zeroed(start, placement)?;
        let (start, len) = levels[levels.len() - 1];
        fill(&mut keys[start..start + len])?;
        for level in (0..levels.len()).rev() {
            let (start, len) = levels[level];
            keys[start + len..start + len.next_multiple_of(KEYS_PER_NODE)].fill(u64::MAX);
            if level > 0 {
                let (above, _) = levels[level - 1];
                for (node, first) in (start..start + len).step_by(KEYS_PER_NODE).enumerate() {
                    keys[above + node] = keys[first];
                }
            }
        }
        Ok(FirstKeyIndex { keys, levels })
    }

    /// The first key of each page, ascending.
    pub(crate) fn first_keys(&self) -> &[u64] {
        let (start, len) = self.levels[self.levels.len() - 1];
        &self.keys[start..start + len]
    }

    /// Size of the index in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&self.keys[..])
    }

    /// For up to [`MAX_SEARCH_BATCH_KEYS`] keys, finds the last group of [`FILTER_UNITS_PER_GROUP`] pages whose first
    /// key is at most the key. No key may be below the first key of the table.
    #[inline(always)]
    pub(crate) fn find_page_groups(&self, keys: &[u64], groups: &mut [usize; MAX_SEARCH_BATCH_KEYS]) {
        groups.fill(0);
        self.descend(0..self.levels.len().saturating_sub(LEVELS_BELOW_GROUPS), keys, groups);
    }

    /// For each key, finds the last page whose first key is at most the key. Searches all levels of the index. No key
    /// may be below the first key of the table.
    #[inline(always)]
    pub(crate) fn find_pages_from_top(&self, keys: &[u64], pages: &mut [usize; MAX_SEARCH_BATCH_KEYS]) {
        pages.fill(0);
        self.descend(0..self.levels.len(), keys, pages);
    }

    /// For each key, finds the last page whose first key is at most the key. `groups` must contain the result of
    /// [`FirstKeyIndex::find_page_groups`] for these keys, and is replaced by the numbers of the pages.
    #[inline(always)]
    pub(crate) fn find_pages_from_groups(&self, keys: &[u64], groups: &mut [usize; MAX_SEARCH_BATCH_KEYS]) {
        self.descend(self.levels.len().saturating_sub(LEVELS_BELOW_GROUPS)..self.levels.len(), keys, groups);
    }

    /// Searches some consecutive levels. `places` contains positions in the level above them and is replaced by
    /// positions in the last of them.
    #[inline(always)]
    fn descend(&self, levels: Range<usize>, keys: &[u64], places: &mut [usize; MAX_SEARCH_BATCH_KEYS]) {
        assert!(keys.len() <= MAX_SEARCH_BATCH_KEYS);
        for level in levels {
            let (start, len) = self.levels[level];
            let next = self.levels.get(level + 1);
            for (&key, place) in keys.iter().zip(&mut *places) {
                let node = &self.keys[start + *place * KEYS_PER_NODE..][..KEYS_PER_NODE];
                // One bit per key instead of a search: no branch mispredictions, and one comparison with wide
                // vectors.
                let bit = |(i, &first): (usize, &u64)| u8::from(first <= key) << i;
                let bits = node.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit);
                let below = bits.count_ones() as usize;
                // The largest key is not below the padding of the last node.
                *place = (*place * KEYS_PER_NODE + below - 1).min(len - 1);
                if let Some(&(start, _)) = next {
                    prefetch(&self.keys[start + *place * KEYS_PER_NODE]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use genuma_machine::placement::{MemoryPolicy, PageSize};

    use super::*;

    fn index(firsts: &[u64]) -> FirstKeyIndex {
        let placement = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base };
        let fill = |keys: &mut [u64]| {
            keys.copy_from_slice(firsts);
            Ok::<(), placement::Error>(())
        };
        FirstKeyIndex::build(firsts.len(), &placement, fill).unwrap()
    }

    #[test]
    fn finds_what_a_search_of_all_pages_finds() {
        for pages in [1, 2, 7, 8, 9, 63, 64, 65, 511, 512, 513, 4097] {
            let firsts: Vec<u64> = (0..pages).map(|page: u64| 3 + page * page * 5).collect();
            let index = index(&firsts);
            assert_eq!(index.first_keys(), firsts);
            let asked = firsts.iter().flat_map(|&first| [first.max(4) - 1, first, first + 1]);
            let asked: Vec<u64> = asked.chain([u64::MAX - 1, u64::MAX]).collect();
            for keys in asked.chunks(MAX_SEARCH_BATCH_KEYS) {
                let mut groups = [0; MAX_SEARCH_BATCH_KEYS];
                index.find_page_groups(keys, &mut groups);
                let mut found = groups;
                index.find_pages_from_groups(keys, &mut found);
                let mut from_top = [0; MAX_SEARCH_BATCH_KEYS];
                index.find_pages_from_top(keys, &mut from_top);
                assert_eq!(from_top[..keys.len()], found[..keys.len()]);
                for (i, &key) in keys.iter().enumerate() {
                    let page = firsts.partition_point(|&first| first <= key) - 1;
                    assert_eq!((groups[i], found[i]), (page / 64, page), "{pages} pages, {key}");
                }
            }
        }
    }

    #[test]
    fn the_largest_key_may_start_a_page() {
        let index = index(&[0, 9, u64::MAX]);
        let mut found = [0; MAX_SEARCH_BATCH_KEYS];
        index.find_pages_from_groups(&[0, 8, 9, u64::MAX - 1, u64::MAX], &mut found);
        assert_eq!(found[..5], [0, 0, 1, 1, 2]);
    }
}
