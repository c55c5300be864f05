//! Blocked Bloom filter that detects most absent keys without reading flash. All bits of a key are in one cache line.
//! The table has one filter for each group of [`FILTER_UNITS_PER_GROUP`] pages, or of
//! [`ENTRIES_PER_COMPACT_FILTER_GROUP`] entries with compact pages.
//!
//! Blocked Bloom filters: Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", 2007. A block
//! is eight words, and a key has one bit in each word. Keys arrive in order, so a writer fills the blocks of one
//! group at a time, which fit in the processor's cache. The upper levels of the index, which fit in the cache, too,
//! give the group of a key.

mod filter_layout;

use std::mem;
use std::sync::{Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};
use genuma_machine::simd_and_prefetch::{prefetch, run_with_widest_simd};

use crate::hash::{hash_key, map_hash_to_range};

pub(crate) use filter_layout::FilterLayout;

/// Number of filter units that share one Bloom filter. A unit is a page, or 256 entries in a table with compact pages.
pub(crate) const FILTER_UNITS_PER_GROUP: u64 = 64;
/// Number of entries that share one Bloom filter in a table with compact pages, whose pages have different numbers of
/// entries.
pub(crate) const ENTRIES_PER_COMPACT_FILTER_GROUP: u64 = 1 << 14;
/// Maximum number of filter blocks per filter unit, reached with the most keys per unit and the most bits per key.
pub(crate) const MAX_FILTER_BLOCKS_PER_UNIT: u64 = 64;
/// Number of 64-bit words in a block.
const WORDS_PER_BLOCK: usize = 8;
/// Number of hash bits that select one bit of a word.
const HASH_BITS_PER_WORD: u32 = u64::BITS.trailing_zeros();
/// Multiplier that mixes a hash once more, because the hash bits that selected the block are equal for all keys of the
/// block.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A block of the Bloom filter: 512 bits in one cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct BloomBlock([u64; WORDS_PER_BLOCK]);

impl BloomBlock {
    /// Index of the bit that a hash sets in word number `word` of its block: consecutive hash bits, the highest first.
    #[inline(always)]
    fn bit_index(hash: u64, word: usize) -> u64 {
        (hash.wrapping_mul(HASH_MULTIPLIER) >> (u64::BITS - HASH_BITS_PER_WORD * (word as u32 + 1)))
            & u64::from(u64::BITS - 1)
    }

    #[inline(always)]
    fn add(&mut self, hash: u64) {
        for (word, bits) in self.0.iter_mut().enumerate() {
            *bits |= 1 << BloomBlock::bit_index(hash, word);
        }
    }

    /// Sets all bits of this block that are set in the other block.
    #[inline(always)]
    fn union_with(&mut self, other: &BloomBlock) {
        self.0.iter_mut().zip(other.0).for_each(|(bits, others)| *bits |= others);
    }

    /// Whether all bits of a hash are set in the block.
    #[inline(always)]
    fn may_contain(&self, hash: u64) -> bool {
        let mut missing = 0;
        for (word, bits) in self.0.iter().enumerate() {
            missing |= (1 << BloomBlock::bit_index(hash, word)) & !bits;
        }
        missing == 0
    }
}

/// The filter blocks of all groups while one or several threads write the table. The order in which keys are added does
/// not matter.
#[derive(Debug)]
pub(crate) struct FilterBlocksOfAllGroups {
    blocks_per_full_group: usize,
    /// Number of entries of a full group.
    entries_per_group: u64,
    /// Filter blocks of the first groups, as many as fit in memory; the blocks of a group are empty as long as it has
    /// no keys.
    kept: Vec<Mutex<Vec<BloomBlock>>>,
}

impl FilterBlocksOfAllGroups {
    /// Creates storage for the filter blocks of a table of at most `most.units` filter units, with `entries_per_group`
    /// entries in each group. Stores only the first groups, as many as fit in `bytes` bytes.
    pub(crate) fn new_for_groups_that_fit(
        most: FilterLayout,
        entries_per_group: u64,
        bytes: u64,
    ) -> FilterBlocksOfAllGroups {
        let kept = (0..most.num_groups_that_fit(bytes)).map(|_| Mutex::default()).collect();
        FilterBlocksOfAllGroups {
            blocks_per_full_group: most.blocks_per_full_group() as usize,
            entries_per_group,
            kept,
        }
    }

    /// Maximum memory in bytes of the stored filter blocks if the limit is `bytes`.
    pub(crate) fn max_stored_bytes(most: FilterLayout, bytes: u64) -> u64 {
        let each =
            most.blocks_per_full_group() * size_of::<BloomBlock>() as u64 + size_of::<Mutex<Vec<BloomBlock>>>() as u64;
        most.num_groups_that_fit(bytes) * each
    }

    /// Creates a builder for one thread.
    pub(crate) fn new_group_builder(&self) -> FilterGroupBuilder {
        FilterGroupBuilder { group: 0, is_dirty: false, blocks: vec![BloomBlock::zeroed(); self.blocks_per_full_group] }
    }

    /// Removes and returns the blocks of a group, folded to `blocks` blocks. `None` if the group was not stored because
    /// of the memory limit.
    pub(crate) fn take_folded_group_blocks(&mut self, group: u64, blocks: u64) -> Option<Vec<BloomBlock>> {
        let kept = self.kept.get_mut(group as usize)?.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut kept = mem::take(kept);
        fold_blocks(&mut kept, blocks as usize);
        Some(kept)
    }
}

/// Builds the filter blocks of one group at a time. Each thread has its own builder.
#[derive(Debug)]
pub(crate) struct FilterGroupBuilder {
    group: u64,
    /// Whether a key was added since the builder was cleared.
    is_dirty: bool,
    blocks: Vec<BloomBlock>,
}

impl FilterGroupBuilder {
    /// Adds consecutive keys to the filter; the first of them is entry number `entry` of the table. Stores the blocks
    /// of a group in `groups` when the next group begins. Appends the number and first key of each group that begins
    /// among these keys to `begun`.
    pub(crate) fn add_keys_across_groups(
        &mut self,
        groups: &FilterBlocksOfAllGroups,
        mut entry: u64,
        mut keys: &[u64],
        begun: &mut Vec<(u64, u64)>,
    ) {
        while let Some(&first) = keys.first() {
            let (group, in_group) = (entry / groups.entries_per_group, entry % groups.entries_per_group);
            if group != self.group {
                self.merge_into_groups(groups);
                self.group = group;
            }
            if in_group == 0 {
                begun.push((group, first));
            }
            let fit = keys.len().min((groups.entries_per_group - in_group) as usize);
            self.add_keys_to_current_group(&keys[..fit]);
            (entry, keys) = (entry + fit as u64, &keys[fit..]);
        }
    }

    /// Adds keys to the filter of the current group.
    #[inline]
    pub(crate) fn add_keys_to_current_group(&mut self, keys: &[u64]) {
        let blocks = &mut self.blocks[..];
        if blocks.is_empty() {
            return;
        }
        self.is_dirty = true;
        run_with_widest_simd(
            #[inline(always)]
            || {
                for &key in keys {
                    let hash = hash_key(key);
                    blocks[map_hash_to_range(hash, blocks.len())].add(hash);
                }
            },
        );
    }

    /// Merges the blocks of the current group into the stored groups, and clears the builder.
    pub(crate) fn merge_into_groups(&mut self, groups: &FilterBlocksOfAllGroups) {
        if !mem::take(&mut self.is_dirty) {
            return;
        }
        if let Some(kept) = groups.kept.get(self.group as usize) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.is_empty() {
                *kept = mem::replace(&mut self.blocks, vec![BloomBlock::zeroed(); groups.blocks_per_full_group]);
                return;
            }
            kept.iter_mut().zip(&self.blocks).for_each(|(block, more)| block.union_with(more));
        }
        self.blocks.fill(BloomBlock::zeroed());
    }

    /// Returns the filter blocks of the current group, folded to `blocks` blocks.
    pub(crate) fn into_folded_blocks(mut self, blocks: u64) -> Vec<BloomBlock> {
        fold_blocks(&mut self.blocks, blocks as usize);
        self.blocks
    }
}

/// Merges the blocks into `wanted` blocks. The ratio of both numbers must be a power of two. Afterwards, each hash
/// selects a block as if there had been `wanted` blocks from the start (see [`map_hash_to_range`]).
fn fold_blocks(blocks: &mut Vec<BloomBlock>, wanted: usize) {
    let together = blocks.len().checked_div(wanted).unwrap_or(1);
    if together > 1 {
        for to in 0..wanted {
            let (first, others) = (blocks[to * together], to * together + 1..(to + 1) * together);
            let joined = blocks[others].iter().fold(first, |mut all, block| {
                all.union_with(block);
                all
            });
            blocks[to] = joined;
        }
        blocks.truncate(wanted);
    }
}

/// Prefetches the cache line of a filter block.
#[inline(always)]
pub(crate) fn prefetch_filter_block(blocks: &[BloomBlock], block: usize) {
    if let Some(block) = blocks.get(block) {
        prefetch(block);
    }
}

/// For each key, sets `may[i]` to whether the key with hash `hashes[i]` may be in the table, that is, whether filter
/// block number `places[i]` has all bits of the hash. Sets all to true if `blocks` is empty.
pub(crate) fn test_hashes_with_filter(blocks: &[BloomBlock], places: &[usize], hashes: &[u64], may: &mut [bool]) {
    run_with_widest_simd(
        #[inline(always)]
        || filter_keys_scalar(blocks, places, hashes, may),
    );
}

/// Implementation of [`test_hashes_with_filter`], compiled for the instruction set of the caller.
#[inline(always)]
fn filter_keys_scalar(blocks: &[BloomBlock], places: &[usize], hashes: &[u64], may: &mut [bool]) {
    if blocks.is_empty() {
        may.fill(true);
        return;
    }
    for ((&hash, &place), may) in hashes.iter().zip(places).zip(may) {
        *may = blocks[place].may_contain(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_have(blocks: &[BloomBlock], place: usize, key: u64) -> bool {
        let (mut plain, mut native) = ([false], [false]);
        filter_keys_scalar(blocks, &[place], &[hash_key(key)], &mut plain);
        test_hashes_with_filter(blocks, &[place], &[hash_key(key)], &mut native);
        assert_eq!(plain, native);
        plain[0]
    }

    /// Keys of two kinds: consecutive numbers, and sorted k-mers that share all but their ends.
    fn keys(n: u64) -> impl Iterator<Item = u64> {
        (0..n).map(|i| if i % 2 == 0 { i } else { i << 40 })
    }

    /// Filter blocks of a table with these keys, built by several threads with a memory limit.
    fn made(
        keys: &[u64],
        per_page: usize,
        each: u64,
        threads: usize,
        bytes: u64,
    ) -> (FilterLayout, Vec<Option<Vec<BloomBlock>>>) {
        let layout = FilterLayout::with_blocks_per_unit(each, keys.len().div_ceil(per_page) as u64);
        let mut groups = FilterBlocksOfAllGroups::new_for_groups_that_fit(
            FilterLayout::with_blocks_per_unit(each, layout.units + 1000),
            64 * per_page as u64,
            bytes,
        );
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let groups = &groups;
                scope.spawn(move || {
                    let mut filling = groups.new_group_builder();
                    for (page, keys) in keys.chunks(per_page).enumerate().skip(thread).step_by(threads) {
                        let mut begun = Vec::new();
                        filling.add_keys_across_groups(groups, (page * per_page) as u64, keys, &mut begun);
                        let first = (page % 64 == 0).then(|| (page as u64 / 64, keys[0]));
                        assert_eq!(begun, Vec::from_iter(first));
                    }
                    filling.merge_into_groups(groups);
                });
            }
        });
        (
            layout,
            (0..layout.num_groups())
                .map(|group| groups.take_folded_group_blocks(group, layout.num_blocks_of_group(group)))
                .collect(),
        )
    }

    #[test]
    fn finds_all_and_little_else() {
        let n = 200_000;
        let own: Vec<u64> = keys(n).collect();
        for (bits, most) in [(8, 0.04), (12, 0.008), (16, 0.003)] {
            for per_page in [454, 100_000, 7] {
                let (layout, groups) =
                    made(&own, per_page, FilterLayout::compute_blocks_per_unit(per_page, bits), 1, u64::MAX);
                let blocks: Vec<BloomBlock> = groups.into_iter().flat_map(Option::unwrap).collect();
                assert_eq!(blocks.len() as u64, layout.num_blocks());
                let group = |i: usize| i / per_page / FILTER_UNITS_PER_GROUP as usize;
                let has =
                    |i: usize, key: u64| may_have(&blocks, layout.block_index_of_hash(group(i), hash_key(key)), key);
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
                let (_, other) = made(&own, per_page, 3, threads, room * layout.blocks_per_full_group() * 64);
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
            let groups = FilterBlocksOfAllGroups::new_for_groups_that_fit(
                FilterLayout::with_blocks_per_unit(11, 64),
                64,
                u64::MAX,
            );
            let mut filling = groups.new_group_builder();
            filling.add_keys_to_current_group(&own);
            let folded = filling.into_folded_blocks(11 * pages);
            let mut plain = vec![BloomBlock::zeroed(); 11 * pages as usize];
            own.iter().for_each(|&key| plain[map_hash_to_range(hash_key(key), 11 * pages as usize)].add(hash_key(key)));
            assert!(folded == plain, "{pages}");
        }
    }

    #[test]
    fn without_blocks_every_key_may_be_there() {
        prefetch_filter_block(&[], 3);
        assert!(may_have(&[], 0, 3));
        assert_eq!(
            (
                FilterLayout::with_blocks_per_unit(0, 70).num_blocks(),
                FilterLayout::with_blocks_per_unit(11, 0).num_blocks()
            ),
            (0, 0)
        );
        assert_eq!(
            (
                FilterLayout::with_blocks_per_unit(11, 1).num_blocks(),
                FilterLayout::with_blocks_per_unit(11, 64).num_blocks()
            ),
            (11, 704)
        );
        assert_eq!(
            (
                FilterLayout::with_blocks_per_unit(11, 65).num_blocks(),
                FilterLayout::with_blocks_per_unit(11, 67).num_blocks()
            ),
            (715, 748)
        );
        let groups =
            FilterBlocksOfAllGroups::new_for_groups_that_fit(FilterLayout::with_blocks_per_unit(0, 70), 64, u64::MAX);
        let mut filling = groups.new_group_builder();
        filling.add_keys_across_groups(&groups, 0, &[3], &mut Vec::new());
        filling.add_keys_across_groups(&groups, 1, &[4], &mut Vec::new());
        filling.merge_into_groups(&groups);
    }
}
