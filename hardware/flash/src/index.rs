//! Key → page, in memory: a tree whose nodes are cache lines.
//!
//! The lowest level is the first key of each page, each level above is every eighth of the one below, and a node's place follows from its
//! number, so there are no pointers (the multilevel index of cadenelli2019, section 5.2.2, with nodes of 8 keys instead of 64). Keys that are
//! looked up together go down the levels together, and each step's lines are asked for one level ahead.

use std::ops::Range;

use genuma_machine::placement::{self, Placed, Placement};
use genuma_machine::processor::prefetch;

use crate::filter::GROUP;

/// Keys of a node: a cache line of 64 bytes.
const NODE: usize = 8;
/// Levels below that of groups of pages.
const BELOW: usize = 2;
const _: () = assert!((NODE * NODE) as u64 == GROUP);
/// Keys that go down together.
pub const TOGETHER: usize = 16;

/// First keys of pages, and the levels above.
#[derive(Debug)]
pub struct Index {
    /// All levels, the top first; each is filled up to whole nodes.
    keys: Placed<u64>,
    /// Where each level starts, and how many keys it has.
    levels: Vec<(usize, usize)>,
}

impl Index {
    /// Room for the first keys of so many pages, at least one; `fill` writes them.
    ///
    /// # Errors
    /// What `fill` returns, or no memory where it was asked for.
    pub fn new<E: From<placement::Error>>(
        pages: usize,
        placement: &Placement,
        fill: impl FnOnce(&mut [u64]) -> Result<(), E>,
    ) -> Result<Index, E> {
        let mut lens = vec![pages];
        while lens[lens.len() - 1] > NODE {
            lens.push(lens[lens.len() - 1].div_ceil(NODE));
        }
        let mut levels = Vec::new();
        let mut start = 0;
        for &len in lens.iter().rev() {
            levels.push((start, len));
            start += len.next_multiple_of(NODE);
        }
        let mut keys: Placed<u64> = Placed::zeroed(start, placement)?;
        let (start, len) = levels[levels.len() - 1];
        fill(&mut keys[start..start + len])?;
        for level in (0..levels.len()).rev() {
            let (start, len) = levels[level];
            keys[start + len..start + len.next_multiple_of(NODE)].fill(u64::MAX);
            if level > 0 {
                let (above, _) = levels[level - 1];
                for (node, first) in (start..start + len).step_by(NODE).enumerate() {
                    keys[above + node] = keys[first];
                }
            }
        }
        Ok(Index { keys, levels })
    }

    /// First keys of the pages.
    pub fn first_keys(&self) -> &[u64] {
        let (start, len) = self.levels[self.levels.len() - 1];
        &self.keys[start..start + len]
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.keys[..])
    }

    /// Of [`GROUP`] pages each, the last group whose first key is not above the key, for up to [`TOGETHER`] keys, none of them below the first page's.
    #[inline(always)]
    pub fn groups(&self, keys: &[u64], groups: &mut [usize; TOGETHER]) {
        groups.fill(0);
        self.descend(0..self.levels.len().saturating_sub(BELOW), keys, groups);
    }

    /// The last page whose first key is not above the key, for such keys whose groups are known: these become pages.
    #[inline(always)]
    pub fn pages(&self, keys: &[u64], groups: &mut [usize; TOGETHER]) {
        self.descend(self.levels.len().saturating_sub(BELOW)..self.levels.len(), keys, groups);
    }

    /// Goes down some levels: what was a place above the first becomes one in the last.
    #[inline(always)]
    fn descend(&self, levels: Range<usize>, keys: &[u64], places: &mut [usize; TOGETHER]) {
        assert!(keys.len() <= TOGETHER);
        for level in levels {
            let (start, len) = self.levels[level];
            let next = self.levels.get(level + 1);
            for (&key, place) in keys.iter().zip(&mut *places) {
                let node = &self.keys[start + *place * NODE..][..NODE];
                // A bit for each instead of a search: nothing to mispredict, and one comparison where vectors are wide.
                let bit = |(i, &first): (usize, &u64)| u8::from(first <= key) << i;
                let bits = node.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit);
                let below = bits.count_ones() as usize;
                // The largest key is not below what fills the last node.
                *place = (*place * NODE + below - 1).min(len - 1);
                if let Some(&(start, _)) = next {
                    prefetch(&self.keys[start + *place * NODE]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use genuma_machine::placement::{Pages, Policy};

    use super::*;

    fn index(firsts: &[u64]) -> Index {
        let placement = Placement { policy: Policy::Local, pages: Pages::Base };
        let fill = |keys: &mut [u64]| {
            keys.copy_from_slice(firsts);
            Ok::<(), placement::Error>(())
        };
        Index::new(firsts.len(), &placement, fill).unwrap()
    }

    #[test]
    fn finds_what_a_search_of_all_pages_finds() {
        for pages in [1, 2, 7, 8, 9, 63, 64, 65, 511, 512, 513, 4097] {
            let firsts: Vec<u64> = (0..pages).map(|page: u64| 3 + page * page * 5).collect();
            let index = index(&firsts);
            assert_eq!(index.first_keys(), firsts);
            let asked = firsts.iter().flat_map(|&first| [first.max(4) - 1, first, first + 1]);
            let asked: Vec<u64> = asked.chain([u64::MAX - 1, u64::MAX]).collect();
            for keys in asked.chunks(TOGETHER) {
                let mut groups = [0; TOGETHER];
                index.groups(keys, &mut groups);
                let mut found = groups;
                index.pages(keys, &mut found);
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
        let mut found = [0; TOGETHER];
        index.pages(&[0, 8, 9, u64::MAX - 1, u64::MAX], &mut found);
        assert_eq!(found[..5], [0, 0, 1, 1, 2]);
    }
}
