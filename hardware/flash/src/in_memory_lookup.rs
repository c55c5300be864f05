//! The part of a lookup that needs no flash: finds absent and hot keys, and the pages of all others.

use genuma_machine::processor::run_with_widest_simd;

use crate::filter;
use crate::hash::hash_key;
use crate::index::KEYS_PER_BATCH;
use crate::lookup_results::LookupResultsMut as Room;
use crate::table::Table;

/// A key that is neither hot nor known to be absent, so its page must be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageLookup {
    /// Page number, from 0.
    pub page: u64,
    /// Index of the key in the request.
    pub key_index: usize,
}

/// Number of keys that a reader looked up, and number of keys for which it read a page from flash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookupCounts {
    /// Number of keys that were looked up.
    pub keys: u64,
    /// Number of keys found absent by the key range or the filter.
    pub known_absent: u64,
    /// Number of keys found among the hot entries.
    pub hot_hits: u64,
    /// Number of pages read from flash.
    pub pages_read: u64,
}

/// Looks up `keys` in memory: writes the values of hot keys to `room`, and appends the keys whose page must be read to
/// `wanted`. `first` is the index of the first of `keys` in the request.
pub(crate) fn look_up_in_memory(
    table: &Table,
    first: usize,
    keys: &[u64],
    room: &mut Room<'_>,
    wanted: &mut Vec<PageLookup>,
    counted: &mut LookupCounts,
) {
    counted.keys += keys.len() as u64;
    let Some((least, most)) = table.min_and_max_key() else {
        counted.known_absent += keys.len() as u64;
        return;
    };
    let (mut now, mut next) = (HashedKeys::default(), HashedKeys::default());
    let mut may = [false; KEYS_PER_BATCH];
    let mut left = [0; KEYS_PER_BATCH];
    let mut chunks = keys.chunks(KEYS_PER_BATCH).peekable();
    next.hash_and_prefetch(table, chunks.peek().copied().unwrap_or_default(), least);
    for first in (first..).step_by(KEYS_PER_BATCH) {
        let Some(keys) = chunks.next() else { break };
        std::mem::swap(&mut now, &mut next);
        // The cache lines of the next keys are prefetched while these keys are processed.
        next.hash_and_prefetch(table, chunks.peek().copied().unwrap_or_default(), least);
        let HashedKeys { hashes, groups, blocks } = &now;
        let n = keys.len();
        filter::test_hashes_with_filter(&table.filter, &blocks[..n], &hashes[..n], &mut may[..n]);
        // Without a branch, because it would be unpredictable.
        let mut lefts = 0;
        for (number, (&key, &may)) in keys.iter().zip(&may).enumerate() {
            left[lefts] = number;
            lefts += usize::from((least <= key) & (key <= most) & may);
        }
        counted.known_absent += (n - lefts) as u64;
        let left = &left[..lefts];
        left.iter().for_each(|&number| table.hot.prefetch_slot(hashes[number]));
        let mut cold = UnresolvedKeys::default();
        for &number in left {
            match table.hot.get(keys[number], hashes[number]) {
                Some(value) => {
                    room.set_value(first + number, value);
                    counted.hot_hits += 1;
                }
                None => cold.push(keys[number], groups[number], first + number),
            }
        }
        cold.find_pages(table, wanted);
    }
}

/// Hashes, groups and filter blocks of a batch of keys whose filter lines are being prefetched.
#[derive(Default)]
struct HashedKeys {
    hashes: [u64; KEYS_PER_BATCH],
    /// Group of pages of each key.
    groups: [usize; KEYS_PER_BATCH],
    /// Filter block of each key.
    blocks: [usize; KEYS_PER_BATCH],
}

impl HashedKeys {
    /// Hashes the keys, finds their groups and prefetches their filter blocks. `least` is the smallest key of the
    /// table.
    #[inline(always)]
    fn hash_and_prefetch(&mut self, table: &Table, keys: &[u64], least: u64) {
        let mut inside = [0; KEYS_PER_BATCH];
        for (place, key) in inside.iter_mut().zip(keys) {
            *place = least.max(*key);
        }
        run_with_widest_simd(
            #[inline(always)]
            || match &table.group_index {
                Some(groups) => groups.find_pages_from_top(&inside[..keys.len()], &mut self.groups),
                None => table.index.find_groups(&inside[..keys.len()], &mut self.groups),
            },
        );
        for (i, &key) in keys.iter().enumerate() {
            self.hashes[i] = hash_key(key);
            self.blocks[i] = table.filter_layout.block_index(self.groups[i], self.hashes[i]);
            filter::prefetch_filter_block(&table.filter, self.blocks[i]);
        }
    }
}

/// Keys of a batch that must be looked up on their pages.
#[derive(Default)]
struct UnresolvedKeys {
    keys: [u64; KEYS_PER_BATCH],
    groups: [usize; KEYS_PER_BATCH],
    /// Index of each key in the request; `keys` has the keys in the same order.
    numbers: [usize; KEYS_PER_BATCH],
    len: usize,
}

impl UnresolvedKeys {
    #[inline(always)]
    fn push(&mut self, key: u64, group: usize, number: usize) {
        let at = self.len;
        (self.keys[at], self.groups[at], self.numbers[at]) = (key, group, number);
        self.len = at + 1;
    }

    /// Finds the pages of the keys and adds them to `wanted`.
    fn find_pages(mut self, table: &Table, wanted: &mut Vec<PageLookup>) {
        run_with_widest_simd(
            #[inline(always)]
            || match &table.group_index {
                Some(_) => table.index.find_pages_from_top(&self.keys[..self.len], &mut self.groups),
                None => table.index.find_pages(&self.keys[..self.len], &mut self.groups),
            },
        );
        let own = self.numbers.iter().zip(self.groups).take(self.len);
        wanted.extend(own.map(|(&key, page)| PageLookup { page: page as u64, key_index: key }));
    }
}
