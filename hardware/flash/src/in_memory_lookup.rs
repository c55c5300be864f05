//! The part of a lookup that needs no read from flash: it detects absent keys, finds hot entries, and determines the
//! pages of all other keys.

use genuma_machine::simd_and_prefetch::run_with_widest_simd;

use crate::filter;
use crate::hash::hash_key;
use crate::index::MAX_SEARCH_BATCH_KEYS;
use crate::lookup_results::LookupResultsMut as ResultSlots;
use crate::table::Table;

/// A key that is neither a hot entry nor known to be absent, so that its page must be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingKeyLookup {
    /// Number of the page that has the key if the table has it, from 0.
    pub page: u64,
    /// Index of the key in the request.
    pub key_index: usize,
}

/// Numbers of keys that a reader looked up, by how they were found, and number of pages read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookupStatistics {
    /// Number of keys that were looked up.
    pub keys: u64,
    /// Number of keys that the filter, or the range of the table's keys, showed to be absent.
    pub known_absent: u64,
    /// Number of keys found among the hot entries in memory.
    pub hot_hits: u64,
    /// Number of pages read from flash; 0 if all pages are in memory.
    pub pages_read: u64,
}

/// Looks up `keys` without reading pages: writes the values of hot entries to `result_slots`, and appends the keys
/// whose pages must be read to `wanted`. `first` is the index of the first of `keys` in the request.
pub(crate) fn look_up_without_page_reads(
    table: &Table,
    first: usize,
    keys: &[u64],
    result_slots: &mut ResultSlots<'_>,
    wanted: &mut Vec<PendingKeyLookup>,
    counted: &mut LookupStatistics,
) {
    counted.keys += keys.len() as u64;
    let Some((least, most)) = table.min_and_max_key() else {
        counted.known_absent += keys.len() as u64;
        return;
    };
    let (mut now, mut next) = (HashedKeys::default(), HashedKeys::default());
    let mut may = [false; MAX_SEARCH_BATCH_KEYS];
    let mut left = [0; MAX_SEARCH_BATCH_KEYS];
    let mut chunks = keys.chunks(MAX_SEARCH_BATCH_KEYS).peekable();
    next.hash_and_prefetch(table, chunks.peek().copied().unwrap_or_default(), least);
    for first in (first..).step_by(MAX_SEARCH_BATCH_KEYS) {
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
                    result_slots.set_value(first + number, value);
                    counted.hot_hits += 1;
                }
                None => cold.push(keys[number], groups[number], first + number),
            }
        }
        cold.find_pages_from_groups(table, wanted);
    }
}

/// Hashes, page groups and filter blocks of a batch of keys whose filter blocks are being prefetched.
#[derive(Default)]
struct HashedKeys {
    hashes: [u64; MAX_SEARCH_BATCH_KEYS],
    /// Page group of each key.
    groups: [usize; MAX_SEARCH_BATCH_KEYS],
    /// Index of the filter block of each key.
    blocks: [usize; MAX_SEARCH_BATCH_KEYS],
}

impl HashedKeys {
    /// Hashes the keys, finds their page groups and prefetches their filter blocks. `least` is the smallest key of the
    /// table.
    #[inline(always)]
    fn hash_and_prefetch(&mut self, table: &Table, keys: &[u64], least: u64) {
        let mut inside = [0; MAX_SEARCH_BATCH_KEYS];
        for (place, key) in inside.iter_mut().zip(keys) {
            *place = least.max(*key);
        }
        run_with_widest_simd(
            #[inline(always)]
            || match &table.group_index {
                Some(groups) => groups.find_pages_from_top(&inside[..keys.len()], &mut self.groups),
                None => table.index.find_page_groups(&inside[..keys.len()], &mut self.groups),
            },
        );
        for (i, &key) in keys.iter().enumerate() {
            self.hashes[i] = hash_key(key);
            self.blocks[i] = table.filter_layout.block_index_of_hash(self.groups[i], self.hashes[i]);
            filter::prefetch_filter_block(&table.filter, self.blocks[i]);
        }
    }
}

/// Keys of a batch whose pages must be read.
#[derive(Default)]
struct UnresolvedKeys {
    keys: [u64; MAX_SEARCH_BATCH_KEYS],
    groups: [usize; MAX_SEARCH_BATCH_KEYS],
    /// Index of each key in the request, in the order of `keys`.
    numbers: [usize; MAX_SEARCH_BATCH_KEYS],
    len: usize,
}

impl UnresolvedKeys {
    #[inline(always)]
    fn push(&mut self, key: u64, group: usize, number: usize) {
        let at = self.len;
        (self.keys[at], self.groups[at], self.numbers[at]) = (key, group, number);
        self.len = at + 1;
    }

    /// Finds the pages of these keys and appends them to `wanted`.
    fn find_pages_from_groups(mut self, table: &Table, wanted: &mut Vec<PendingKeyLookup>) {
        run_with_widest_simd(
            #[inline(always)]
            || match &table.group_index {
                Some(_) => table.index.find_pages_from_top(&self.keys[..self.len], &mut self.groups),
                None => table.index.find_pages_from_groups(&self.keys[..self.len], &mut self.groups),
            },
        );
        let own = self.numbers.iter().zip(self.groups).take(self.len);
        wanted.extend(own.map(|(&key, page)| PendingKeyLookup { page: page as u64, key_index: key }));
    }
}
