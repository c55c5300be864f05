//! What tells that a key is absent without looking for it: Bloom filters whose bits of a key are all in one cache line, one filter for each
//! [`GROUP`] pages of a table.
//!
//! Blocked Bloom filters: Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", 2007. A block is eight words, and a key
//! has one bit in each. Keys come in order, so that whoever writes a table adds to one group's blocks at a time, which a processor's own cache holds; and which
//! group a key would be in the upper levels of the index say, which it holds as well.

use std::mem;
use std::sync::{Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};
use genuma_machine::processor::{prefetch, widest};

use crate::hash::{below, hash};

/// Pages of a group.
pub const GROUP: u64 = 64;
/// The most blocks for each page: those of the most keys and bits.
pub const MOST: u64 = 64;
/// Words of a block.
const WORDS: usize = 8;
/// Bits of a hash that choose a bit of a word.
const BITS: u32 = u64::BITS.trailing_zeros();
/// Spreads a hash over the high bits once more: those that chose the block say nothing about the bits in it.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A cache line of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Block([u64; WORDS]);

impl Block {
    /// The bit of word `word`, from the highest bits down.
    #[inline(always)]
    fn bit(hash: u64, word: usize) -> u64 {
        (hash.wrapping_mul(SPREAD) >> (u64::BITS - BITS * (word as u32 + 1))) & u64::from(u64::BITS - 1)
    }

    #[inline(always)]
    fn add(&mut self, hash: u64) {
        for (word, bits) in self.0.iter_mut().enumerate() {
            *bits |= 1 << Block::bit(hash, word);
        }
    }

    /// All bits of another one, too.
    #[inline(always)]
    fn join(&mut self, other: &Block) {
        self.0.iter_mut().zip(other.0).for_each(|(bits, others)| *bits |= others);
    }

    /// Whether every word has its bit.
    #[inline(always)]
    fn has(&self, hash: u64) -> bool {
        let mut missing = 0;
        for (word, bits) in self.0.iter().enumerate() {
            missing |= (1 << Block::bit(hash, word)) & !bits;
        }
        missing == 0
    }
}

/// Where the blocks of groups lie: one group's after the other's, of all but the last the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Blocks for each page; 0 for no filter.
    pub each: u64,
    /// Pages of the table.
    pub pages: u64,
}

impl Layout {
    /// So many blocks for each of so many pages.
    pub fn new(each: u64, pages: u64) -> Layout {
        Layout { each, pages }
    }

    /// Blocks for each page, with so many bits for each of its entries.
    pub fn each(per_page: usize, bits: u32) -> u64 {
        (per_page as u64 * u64::from(bits)).div_ceil(512)
    }

    /// Groups that have blocks.
    pub fn groups(&self) -> u64 {
        if self.each == 0 { 0 } else { self.pages.div_ceil(GROUP) }
    }

    /// Of these so many have room in so many bytes.
    fn fit(&self, bytes: u64) -> u64 {
        bytes.checked_div(self.full() * size_of::<Block>() as u64).unwrap_or(0).min(self.groups())
    }

    /// The pages of a group.
    pub(crate) fn pages_of(&self, group: u64) -> std::ops::Range<u64> {
        group * GROUP..self.pages.min((group + 1) * GROUP)
    }

    /// Blocks of a group that has all of its pages.
    pub fn full(&self) -> u64 {
        self.each * GROUP
    }

    /// Blocks of a group: in the last one, as of the next power of two of pages, so that those of a whole group can be folded.
    pub fn of(&self, group: u64) -> u64 {
        let pages = self.pages_of(group);
        self.each * (pages.end - pages.start).next_power_of_two()
    }

    /// All blocks.
    pub fn blocks(&self) -> u64 {
        match self.groups().checked_sub(1) {
            Some(last) => last * self.full() + self.of(last),
            None => 0,
        }
    }

    /// The block of a hash in a group, counted from the first group's.
    #[inline(always)]
    pub fn block(&self, group: usize, hash: u64) -> usize {
        let own = if group as u64 + 1 == self.groups() { self.of(group as u64) } else { self.full() };
        group * self.full() as usize + below(hash, own as usize)
    }
}

/// The blocks of groups that are full or being filled, by several threads if need be. A bit is set whoever sets it, so that the order of keys does not show.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Blocks of a group.
    full: usize,
    /// Of the first groups those that have come; none of those that memory has no room for.
    kept: Vec<Mutex<Vec<Block>>>,
}

impl Groups {
    /// For the groups of up to so many pages, as many of the first as `bytes` have room for.
    pub fn new(most: Layout, bytes: u64) -> Groups {
        let kept = (0..most.fit(bytes)).map(|_| Mutex::default()).collect();
        Groups { full: most.full() as usize, kept }
    }

    /// Bytes of the blocks of so many pages at most, when there are so many.
    pub fn memory(most: Layout, bytes: u64) -> u64 {
        let each = most.full() * size_of::<Block>() as u64 + size_of::<Mutex<Vec<Block>>>() as u64;
        most.fit(bytes) * each
    }

    /// For one thread.
    pub fn filling(&self) -> Filling {
        Filling { group: 0, any: false, blocks: vec![Block::zeroed(); self.full] }
    }

    /// The blocks of a group, if they were kept, of which so many are wanted.
    pub fn take(&mut self, group: u64, blocks: u64) -> Option<Vec<Block>> {
        let kept = self.kept.get_mut(group as usize)?.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut kept = mem::take(kept);
        fold(&mut kept, blocks as usize);
        Some(kept)
    }
}

/// What one thread adds to a group.
#[derive(Debug)]
pub struct Filling {
    group: u64,
    /// Whether anything was added.
    any: bool,
    blocks: Vec<Block>,
}

impl Filling {
    /// Goes on with the keys of this page, counted from 0.
    #[inline]
    pub fn page(&mut self, groups: &Groups, page: u64) {
        if page / GROUP != self.group {
            self.hand_over(groups);
            self.group = page / GROUP;
        }
    }

    /// Adds keys of the page.
    #[inline]
    pub fn add(&mut self, keys: &[u64]) {
        let blocks = &mut self.blocks[..];
        if blocks.is_empty() {
            return;
        }
        self.any = true;
        widest(
            #[inline(always)]
            || {
                for &key in keys {
                    let hash = hash(key);
                    blocks[below(hash, blocks.len())].add(hash);
                }
            },
        );
    }

    /// Adds a key of the page.
    #[inline]
    pub(crate) fn add_one(&mut self, key: u64) {
        let (hash, all) = (hash(key), self.blocks.len());
        if let Some(block) = self.blocks.get_mut(below(hash, all)) {
            block.add(hash);
            self.any = true;
        }
    }

    /// Hands over what was added.
    pub fn hand_over(&mut self, groups: &Groups) {
        if !mem::take(&mut self.any) {
            return;
        }
        if let Some(kept) = groups.kept.get(self.group as usize) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.is_empty() {
                *kept = mem::replace(&mut self.blocks, vec![Block::zeroed(); groups.full]);
                return;
            }
            kept.iter_mut().zip(&self.blocks).for_each(|(block, more)| block.join(more));
        }
        self.blocks.fill(Block::zeroed());
    }

    /// The blocks of what was added, of which so many are wanted.
    pub fn folded(mut self, blocks: u64) -> Vec<Block> {
        fold(&mut self.blocks, blocks as usize);
        self.blocks
    }
}

/// Makes so many blocks of a power of two times as many: a hash belongs to the same ones as if it had been so few from the beginning ([`below`]).
fn fold(blocks: &mut Vec<Block>, wanted: usize) {
    let together = blocks.len().checked_div(wanted).unwrap_or(1);
    if together > 1 {
        for to in 0..wanted {
            let (first, others) = (blocks[to * together], to * together + 1..(to + 1) * together);
            let joined = blocks[others].iter().fold(first, |mut all, block| {
                all.join(block);
                all
            });
            blocks[to] = joined;
        }
        blocks.truncate(wanted);
    }
}

/// Asks for a block.
#[inline(always)]
pub fn fetch(blocks: &[Block], block: usize) {
    if let Some(block) = blocks.get(block) {
        prefetch(block);
    }
}

/// For each hash, whose block is known, whether a key of it may be there. A filter without blocks knows nothing.
pub fn sieve(blocks: &[Block], places: &[usize], hashes: &[u64], may: &mut [bool]) {
    widest(
        #[inline(always)]
        || sieve_scalar(blocks, places, hashes, may),
    );
}

/// [`sieve`], whatever the processor.
#[inline(always)]
fn sieve_scalar(blocks: &[Block], places: &[usize], hashes: &[u64], may: &mut [bool]) {
    if blocks.is_empty() {
        may.fill(true);
        return;
    }
    for ((&hash, &place), may) in hashes.iter().zip(places).zip(may) {
        *may = blocks[place].has(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_have(blocks: &[Block], place: usize, key: u64) -> bool {
        let (mut plain, mut native) = ([false], [false]);
        sieve_scalar(blocks, &[place], &[hash(key)], &mut plain);
        sieve(blocks, &[place], &[hash(key)], &mut native);
        assert_eq!(plain, native);
        plain[0]
    }

    /// Keys as different as neighbouring numbers, and as sorted k-mers that share all but their ends.
    fn keys(n: u64) -> impl Iterator<Item = u64> {
        (0..n).map(|i| if i % 2 == 0 { i } else { i << 40 })
    }

    /// The blocks of a table of these keys, so many to a page, by so many threads with so much memory for them.
    fn made(
        keys: &[u64],
        per_page: usize,
        each: u64,
        threads: usize,
        bytes: u64,
    ) -> (Layout, Vec<Option<Vec<Block>>>) {
        let layout = Layout::new(each, keys.len().div_ceil(per_page) as u64);
        let mut groups = Groups::new(Layout::new(each, layout.pages + 1000), bytes);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let groups = &groups;
                scope.spawn(move || {
                    let mut filling = groups.filling();
                    for (page, keys) in keys.chunks(per_page).enumerate().skip(thread).step_by(threads) {
                        filling.page(groups, page as u64);
                        let (one, others) = keys.split_first().unwrap();
                        filling.add_one(*one);
                        filling.add(others);
                    }
                    filling.hand_over(groups);
                });
            }
        });
        (layout, (0..layout.groups()).map(|group| groups.take(group, layout.of(group))).collect())
    }

    #[test]
    fn finds_all_and_little_else() {
        let n = 200_000;
        let own: Vec<u64> = keys(n).collect();
        for (bits, most) in [(8, 0.04), (12, 0.008), (16, 0.003)] {
            for per_page in [454, 100_000, 7] {
                let (layout, groups) = made(&own, per_page, Layout::each(per_page, bits), 1, u64::MAX);
                let blocks: Vec<Block> = groups.into_iter().flat_map(Option::unwrap).collect();
                assert_eq!(blocks.len() as u64, layout.blocks());
                let group = |i: usize| i / per_page / GROUP as usize;
                let has = |i: usize, key: u64| may_have(&blocks, layout.block(group(i), hash(key)), key);
                assert!(own.iter().enumerate().all(|(i, &key)| has(i, key)));
                let wrong = (0..own.len()).filter(|&i| has(i, (1 << 63) | i as u64)).count();
                assert!((wrong as f64) < most * n as f64, "{bits} bits, {per_page}: {wrong} of {n}");
            }
        }
    }

    #[test]
    fn several_threads_make_the_same_and_leave_out_what_has_no_room() {
        let own: Vec<u64> = keys(50_000).collect();
        for per_page in [1, 30, 700, 1000] {
            let (layout, plain) = made(&own, per_page, 3, 1, u64::MAX);
            assert!(plain.iter().all(Option::is_some));
            for (threads, room) in [(3, 1 << 40), (1, 2), (3, 2), (2, 0)] {
                let (_, other) = made(&own, per_page, 3, threads, room * layout.full() * 64);
                for (group, (a, b)) in plain.iter().zip(&other).enumerate() {
                    let kept = (group as u64) < room;
                    assert_eq!(b.is_some(), kept, "{threads} threads, room for {room}, group {group}");
                    assert!(!kept || a == b, "{threads} threads, room for {room}, group {group}");
                }
            }
        }
    }

    #[test]
    fn folded_blocks_are_those_of_so_few() {
        let own: Vec<u64> = keys(3000).collect();
        for pages in [1_u64, 2, 8, 32, 64] {
            let groups = Groups::new(Layout::new(11, 64), u64::MAX);
            let mut filling = groups.filling();
            filling.add(&own);
            let folded = filling.folded(11 * pages);
            let mut plain = vec![Block::zeroed(); 11 * pages as usize];
            own.iter().for_each(|&key| plain[below(hash(key), 11 * pages as usize)].add(hash(key)));
            assert!(folded == plain, "{pages}");
        }
    }

    #[test]
    fn without_blocks_every_key_may_be_there() {
        fetch(&[], 3);
        assert!(may_have(&[], 0, 3));
        assert_eq!((Layout::new(0, 70).blocks(), Layout::new(11, 0).blocks()), (0, 0));
        assert_eq!((Layout::new(11, 1).blocks(), Layout::new(11, 64).blocks()), (11, 704));
        assert_eq!((Layout::new(11, 65).blocks(), Layout::new(11, 67).blocks()), (715, 748));
        let groups = Groups::new(Layout::new(0, 70), u64::MAX);
        let mut filling = groups.filling();
        filling.add(&[3]);
        filling.add_one(4);
        filling.hand_over(&groups);
    }
}
