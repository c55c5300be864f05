//! Sizes and positions of the filter blocks of a table.

use super::{BloomBlock, UNITS_PER_FILTER_GROUP};
use crate::hash::map_hash_to_range;

/// Sizes and positions of the filter blocks: those of each group, one group after the other. All groups but the last
/// have the same number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterLayout {
    /// Number of filter blocks per page (per 256 entries in a table with compact pages); 0 without a filter.
    pub blocks_per_page: u64,
    /// Number of pages of the table (number of units of 256 entries in a table with compact pages).
    pub pages: u64,
}

impl FilterLayout {
    /// Creates a layout with `each` filter blocks per page, for a table of `pages` pages.
    pub(crate) fn with_blocks_per_unit(each: u64, pages: u64) -> FilterLayout {
        FilterLayout { blocks_per_page: each, pages }
    }

    /// Number of filter blocks of 512 bits per page of `per_page` entries if the filter has `bits` bits per entry.
    pub(crate) fn compute_blocks_per_unit(per_page: usize, bits: u32) -> u64 {
        (per_page as u64 * u64::from(bits)).div_ceil(512)
    }

    /// Number of groups with filter blocks.
    pub(crate) fn num_groups(&self) -> u64 {
        if self.blocks_per_page == 0 { 0 } else { self.pages.div_ceil(UNITS_PER_FILTER_GROUP) }
    }

    /// Number of groups, at most all, whose filter blocks fit in `bytes` bytes; 0 without a filter.
    pub(super) fn num_groups_that_fit(&self, bytes: u64) -> u64 {
        bytes
            .checked_div(self.blocks_per_full_group() * size_of::<BloomBlock>() as u64)
            .unwrap_or(0)
            .min(self.num_groups())
    }

    /// Range of the pages (units of 256 entries in a table with compact pages) that belong to a group.
    pub(crate) fn filter_units_of_group(&self, group: u64) -> std::ops::Range<u64> {
        group * UNITS_PER_FILTER_GROUP..self.pages.min((group + 1) * UNITS_PER_FILTER_GROUP)
    }

    /// Number of filter blocks of a full group.
    pub(crate) fn blocks_per_full_group(&self) -> u64 {
        self.blocks_per_page * UNITS_PER_FILTER_GROUP
    }

    /// Number of filter blocks of a group. The last group has the number for the next power of two of its pages, so
    /// that the blocks of a full group can be folded to this number.
    pub(crate) fn num_blocks_of_group(&self, group: u64) -> u64 {
        let pages = self.filter_units_of_group(group);
        self.blocks_per_page * (pages.end - pages.start).next_power_of_two()
    }

    /// Total number of filter blocks of the table.
    pub(crate) fn num_blocks(&self) -> u64 {
        match self.num_groups().checked_sub(1) {
            Some(last) => last * self.blocks_per_full_group() + self.num_blocks_of_group(last),
            None => 0,
        }
    }

    /// Index, among the filter blocks of all groups, of the block for a key with this hash in group number `group`.
    #[inline(always)]
    pub(crate) fn block_index(&self, group: usize, hash: u64) -> usize {
        let own = if group as u64 + 1 == self.num_groups() {
            self.num_blocks_of_group(group as u64)
        } else {
            self.blocks_per_full_group()
        };
        group * self.blocks_per_full_group() as usize + map_hash_to_range(hash, own as usize)
    }
}
