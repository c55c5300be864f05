//! Determines which templates are duplicates, from the sorted read ends of all templates.

use std::cmp::Reverse;
use std::mem::replace;
use std::sync::Arc;

use super::super::Error;
use super::super::external_sorter::ExternalSorter;
use super::super::loser_tree::{InMemoryRun, LoserTree, MergedItem, SortItem, sort_items_by_key};
use super::super::spill_file::SortedRunFile;
use super::read_ends::{PairEndsSortItem, SingleReadEndSortItem};
use super::{BlockReadEnds, DuplicateFlags, MarkdupReadCounts};

/// Approximate set (Bloom filter with one hash) of the positions of single reads. The filter may report positions that
/// are not in the set. Only reads of pairs at a reported position are compared with single reads.
#[derive(Debug)]
struct PositionFilter {
    bits: Vec<u64>,
    shift: u32,
}

impl PositionFilter {
    /// Creates a filter of about `bytes` bytes.
    fn new(bytes: usize) -> PositionFilter {
        let bytes = bytes.clamp(1 << 10, 64 << 20).next_power_of_two();
        PositionFilter { bits: vec![0; bytes / 8], shift: 64 - (8 * bytes).ilog2() }
    }

    fn bit_position(&self, (position, kind): (u64, u32)) -> (usize, u64) {
        // Fibonacci hashing (Knuth, volume 3, section 6.4).
        let hash = (position ^ u64::from(kind).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bit = (hash ^ hash >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn insert(&mut self, position: (u64, u32)) {
        let (word, bit) = self.bit_position(position);
        self.bits[word] |= bit;
    }

    fn may_contain(&self, position: (u64, u32)) -> bool {
        let (word, bit) = self.bit_position(position);
        self.bits[word] & bit != 0
    }
}

/// Collects the read ends of all templates and determines the duplicates.
pub(crate) struct DuplicateFinder {
    pairs: ExternalSorter<PairEndsSortItem>,
    singles: ExternalSorter<SingleReadEndSortItem>,
    position_filter: PositionFilter,
}

/// Maximum size (bytes) of the positions that are sorted and stored together.
const MAX_BATCH_BYTES: usize = 1 << 20;

impl DuplicateFinder {
    /// Creates a finder with a memory budget of `budget` bytes. The flags of the result need additional memory.
    pub(crate) fn with_memory_budget(spill: &Arc<SortedRunFile>, budget: usize, threads: usize) -> DuplicateFinder {
        DuplicateFinder {
            pairs: ExternalSorter::with_memory_budget(spill, budget / 8 * 5, threads),
            singles: ExternalSorter::with_memory_budget(spill, budget / 4, threads),
            position_filter: PositionFilter::new(budget / 16),
        }
    }

    /// Adds the read ends of a block whose template ordinals count from `first_ordinal`.
    pub(crate) fn push_read_ends_of_block(&mut self, ends: BlockReadEnds, first_ordinal: u64) -> Result<(), Error> {
        let mut rest = &ends.singles[..];
        while !rest.is_empty() {
            self.position_filter.insert(SingleReadEndSortItem::duplicate_key(rest));
            rest = &rest[SingleReadEndSortItem::encoded_len(rest)..];
        }
        self.pairs.push_sorted_run(InMemoryRun { items: ends.pairs, first_ordinal })?;
        self.singles.push_sorted_run(InMemoryRun { items: ends.singles, first_ordinal })
    }

    /// Determines the duplicates among `templates` templates.
    pub(crate) fn find_duplicates(self, templates: u64) -> Result<(DuplicateFlags, MarkdupReadCounts), Error> {
        let DuplicateFinder { pairs, mut singles, position_filter } = self;
        let mut marker =
            DuplicateMarker { flags: DuplicateFlags::new(templates), counts: MarkdupReadCounts::default() };
        marker.mark_pairs(pairs.start_final_merge()?, &position_filter, &mut singles)?;
        marker.mark_singles(singles.start_final_merge()?)?;
        Ok((marker.flags, marker.counts))
    }
}

struct DuplicateMarker {
    flags: DuplicateFlags,
    counts: MarkdupReadCounts,
}

/// The read of a duplicate set that is the best so far.
#[derive(Debug, Default)]
struct BestRead {
    score: u32,
    ordinal: u64,
    last: bool,
    name: Vec<u8>,
}

impl DuplicateMarker {
    /// Marks all pairs except the best pair of each duplicate set. The left and the right reads are compared
    /// separately. Adds the reads of pairs that may have the position of a single read to `singles`.
    fn mark_pairs(
        &mut self,
        mut merge: LoserTree<PairEndsSortItem>,
        position_filter: &PositionFilter,
        singles: &mut ExternalSorter<SingleReadEndSortItem>,
    ) -> Result<(), Error> {
        let mut group = PairEndsSortItem::MAX_KEY;
        let mut best: [Option<BestRead>; 2] = [None, None];
        let mut positions = Vec::new();
        while let Some(MergedItem { ordinal, item }) = merge.next_merged_item()? {
            let key = PairEndsSortItem::key(item);
            if key != group {
                group = key;
                best = [None, None];
            }
            let (score, name) = (PairEndsSortItem::pair_quality_sum(item), PairEndsSortItem::read_name(item));
            for (side, (is_compared, last)) in PairEndsSortItem::compared_and_read2_flags(item).into_iter().enumerate()
            {
                if !is_compared {
                    continue;
                }
                self.counts.paired_reads += 1;
                let at = positions.len();
                PairEndsSortItem::push_item_of_pair_read(item, side, &mut positions);
                if !position_filter.may_contain(SingleReadEndSortItem::duplicate_key(&positions[at..])) {
                    positions.truncate(at);
                }
                let (duplicate, last) = match &mut best[side] {
                    None => {
                        best[side] = Some(BestRead { score, ordinal, last, name: name.to_vec() });
                        continue;
                    }
                    Some(b) if (score, Reverse(name)) > (b.score, Reverse(&b.name[..])) => {
                        b.score = score;
                        b.name.clear();
                        b.name.extend_from_slice(name);
                        (replace(&mut b.ordinal, ordinal), replace(&mut b.last, last))
                    }
                    Some(_) => (ordinal, last),
                };
                self.flags.set_duplicate(duplicate, last);
                self.counts.paired_duplicates += 1;
            }
            if positions.len() >= MAX_BATCH_BYTES {
                singles.push_sorted_run(InMemoryRun {
                    items: sort_items_by_key::<SingleReadEndSortItem>(&positions),
                    first_ordinal: 0,
                })?;
                positions.clear();
            }
        }
        singles.push_sorted_run(InMemoryRun {
            items: sort_items_by_key::<SingleReadEndSortItem>(&positions),
            first_ordinal: 0,
        })
    }

    /// Marks all single reads at the position of a read of a pair. At other positions, marks all single reads but the
    /// best.
    fn mark_singles(&mut self, mut merge: LoserTree<SingleReadEndSortItem>) -> Result<(), Error> {
        let mut group = None;
        let mut of_pair = false;
        let mut best = None;
        while let Some(MergedItem { ordinal, item }) = merge.next_merged_item()? {
            let position = SingleReadEndSortItem::duplicate_key(item);
            if group != Some(position) {
                (group, of_pair, best) = (Some(position), false, None);
            }
            if SingleReadEndSortItem::is_from_pair(item) {
                of_pair = true;
                continue;
            }
            self.counts.single_reads += 1;
            let this =
                (SingleReadEndSortItem::rank_among_duplicates(item), ordinal, SingleReadEndSortItem::is_read2(item));
            let duplicate = match &mut best {
                _ if of_pair => this,
                None => {
                    best = Some(this);
                    continue;
                }
                Some(b) if this.0 < b.0 => replace(b, this),
                Some(_) => this,
            };
            self.flags.set_duplicate(duplicate.1, duplicate.2);
            self.counts.single_duplicates += 1;
        }
        Ok(())
    }
}
