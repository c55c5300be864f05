//! Sizes and positions of the filter blocks of a table.

use super::{BloomBlock, FILTER_UNITS_PER_GROUP};
use crate::hash::map_hash_to_range;

/// Sizes and positions of the filter blocks: those of each group, one group after the other. All groups but the last
/// have the same number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterLayout {
    /// Number of filter blocks per filter unit: per page, or per 256 entries in a table with compact pages. 0 without a
    /// filter.
    pub blocks_per_unit: u64,
    /// Number of filter units of the table.
    pub units: u64,
}

impl FilterLayout {
    /// Creates a layout with `blocks_per_unit` filter blocks per filter unit, for a table of `units` units.
    pub(crate) fn with_blocks_per_unit(blocks_per_unit: u64, units: u64) -> FilterLayout {
        FilterLayout { blocks_per_unit, units }
    }

    /// Number of filter blocks of 512 bits per filter unit of `unit_entries` entries if the filter has `bits` bits per
    /// entry.
    pub(crate) fn compute_blocks_per_unit(unit_entries: usize, bits: u32) -> u64 {
        (unit_entries as u64 * u64::from(bits)).div_ceil(512)
    }

    /// Number of groups with filter blocks.
    pub(crate) fn num_groups(&self) -> u64 {
        if self.blocks_per_unit == 0 { 0 } else { self.units.div_ceil(FILTER_UNITS_PER_GROUP) }
    }

    /// Number of groups, at most all, whose filter blocks fit in `bytes` bytes; 0 without a filter.
    pub(super) fn num_groups_that_fit(&self, bytes: u64) -> u64 {
        bytes
            .checked_div(self.blocks_per_full_group() * size_of::<BloomBlock>() as u64)
            .unwrap_or(0)
            .min(self.num_groups())
    }

    /// Range of the filter units that belong to a group.
    pub(crate) fn filter_units_of_group(&self, group: u64) -> std::ops::Range<u64> {
        group * FILTER_UNITS_PER_GROUP..self.units.min((group + 1) * FILTER_UNITS_PER_GROUP)
    }

    /// Number of filter blocks of a full group.
    pub(crate) fn blocks_per_full_group(&self) -> u64 {
        self.blocks_per_unit * FILTER_UNITS_PER_GROUP
    }

    /// Number of filter blocks of a group. The last group has the number for the next power of two of its filter
    /// units, so that the blocks of a full group can be folded to this number.
    pub(crate) fn num_blocks_of_group(&self, group: u64) -> u64 {
        let units = self.filter_units_of_group(group);
        self.blocks_per_unit * (units.end - units.start).next_power_of_two()
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
    pub(crate) fn block_index_of_hash(&self, group: usize, hash: u64) -> usize {
        let own = if group as u64 + 1 == self.num_groups() {
            self.num_blocks_of_group(group as u64)
        } else {
            self.blocks_per_full_group()
        };
        group * self.blocks_per_full_group() as usize + map_hash_to_range(hash, own as usize)
    }
}
