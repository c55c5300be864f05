//! Lookups with a cache of bounded memory: a key that was looked up recently needs no read from flash.
//!
//! The hot entries of a table (`hot_entries.rs`) are selected when the table is written, but other keys may be looked
//! up frequently later. The cache is set-associative with [`ENTRIES_PER_SET`] entries per set; the keys of a set occupy
//! one cache line. A full set evicts the first entry, from the clock hand on, that was not requested since the hand
//! last passed it (clock algorithm, Corbató 1968, one clock per set).

use genuma_machine::placement::{self, PlacedSlice};
use genuma_machine::simd_and_prefetch::prefetch;

use crate::error::Error;
use crate::hash::{hash_key, map_hash_to_range};
use crate::lookup_results::LookupResults;
use crate::table::Table;

const ENTRIES_PER_SET: usize = 8;
/// Number of keys whose cache sets are prefetched together.
const PREFETCH_KEYS: usize = 16;

/// State of a cache slot without an entry.
const SLOT_EMPTY: u8 = 0;
/// State of a cache slot whose entry was not requested since the clock hand last passed.
const SLOT_UNREFERENCED: u8 = 1;
/// State of a cache slot whose entry was requested since the clock hand last passed.
const SLOT_REFERENCED: u8 = 2;

#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct SetKeys([u64; ENTRIES_PER_SET]);

/// States of all slots of a cache set.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(8))]
struct SetStates([u8; ENTRIES_PER_SET]);

/// Set-associative cache of entries that were looked up recently.
#[derive(Debug)]
struct CacheSets {
    keys: PlacedSlice<SetKeys>,
    states: PlacedSlice<SetStates>,
    /// For each set, the clock hand: the number of the slot that is examined next.
    clock_hands: PlacedSlice<u8>,
    values: PlacedSlice<u8>,
    value_bytes: usize,
}

impl CacheSets {
    /// Memory in bytes of a cache set for values of `value` bytes.
    fn set_bytes(value: usize) -> u64 {
        (size_of::<SetKeys>() + size_of::<SetStates>() + 1 + ENTRIES_PER_SET * value) as u64
    }

    /// Creates a cache of at most `bytes` bytes and at most two slots for each entry of the table, at which few sets
    /// are full.
    fn new(table: &Table, bytes: u64) -> Result<CacheSets, placement::Error> {
        let value = table.value_bytes();
        let sets =
            (bytes / CacheSets::set_bytes(value)).min((2 * table.len()).div_ceil(ENTRIES_PER_SET as u64)) as usize;
        let at = &table.placement;
        Ok(CacheSets {
            keys: PlacedSlice::new_zeroed(sets, at)?,
            states: PlacedSlice::new_zeroed(sets, at)?,
            clock_hands: PlacedSlice::new_zeroed(sets, at)?,
            values: PlacedSlice::new_zeroed(sets * ENTRIES_PER_SET * value, at)?,
            value_bytes: value,
        })
    }

    fn set_index(&self, key: u64) -> usize {
        map_hash_to_range(hash_key(key), self.keys.len())
    }

    fn prefetch_set(&self, set: usize) {
        prefetch(&self.keys[set]);
        prefetch(&self.states[set]);
    }

    /// The value of a key, if the cache has it. Marks the entry as requested.
    fn get(&mut self, set: usize, key: u64) -> Option<&[u8]> {
        let (keys, states) = (&self.keys[set].0, &mut self.states[set].0);
        let way = (0..ENTRIES_PER_SET).find(|&way| keys[way] == key && states[way] != SLOT_EMPTY)?;
        states[way] = SLOT_REFERENCED;
        let start = (set * ENTRIES_PER_SET + way) * self.value_bytes;
        Some(&self.values[start..start + self.value_bytes])
    }

    /// Inserts an entry, unless the cache has it already. Evicts another entry if the set is full.
    fn insert(&mut self, set: usize, key: u64, value: &[u8]) {
        let (keys, states) = (&mut self.keys[set].0, &mut self.states[set].0);
        if (0..ENTRIES_PER_SET).any(|way| keys[way] == key && states[way] != SLOT_EMPTY) {
            return;
        }
        let hand = &mut self.clock_hands[set];
        while states[*hand as usize] == SLOT_REFERENCED {
            states[*hand as usize] = SLOT_UNREFERENCED;
            *hand = (*hand + 1) % ENTRIES_PER_SET as u8;
        }
        let way = *hand as usize;
        *hand = (*hand + 1) % ENTRIES_PER_SET as u8;
        keys[way] = key;
        states[way] = SLOT_UNREFERENCED;
        let start = (set * ENTRIES_PER_SET + way) * self.value_bytes;
        self.values[start..start + self.value_bytes].copy_from_slice(value);
    }
}

/// A table with a cache of entries that were looked up before.
#[derive(Debug)]
pub struct CachedTable<'t> {
    table: &'t Table,
    cache: CacheSets,
    /// Keys of the current lookup that are not in the cache; `missed_numbers` has their indices and `missed_results`
    /// their values.
    missed_keys: Vec<u64>,
    missed_numbers: Vec<usize>,
    missed_results: LookupResults,
    num_cache_hits: u64,
}

impl<'t> CachedTable<'t> {
    /// Memory in bytes of a cache for `entries` entries with values of `value` bytes.
    pub fn cache_bytes_for_entries(entries: u64, value: usize) -> u64 {
        entries.div_ceil(ENTRIES_PER_SET as u64).saturating_mul(CacheSets::set_bytes(value))
    }

    /// Creates a cache of at most `bytes` bytes, on the NUMA nodes of the table's index. The operating system provides
    /// its pages as the cache fills. Nothing is cached if `bytes` is less than the size of one set (73 bytes and eight
    /// values).
    ///
    /// # Errors
    /// There is no memory on the requested nodes.
    pub fn allocate_cache_for_table(table: &'t Table, bytes: u64) -> Result<CachedTable<'t>, Error> {
        let memory = |source| Error::NotEnoughMemory { path: table.path.clone(), source };
        let kept = CacheSets::new(table, bytes).map_err(memory)?;
        let (left, numbers, looked_up) = (Vec::new(), Vec::new(), LookupResults::new());
        Ok(CachedTable {
            table,
            cache: kept,
            missed_keys: left,
            missed_numbers: numbers,
            missed_results: looked_up,
            num_cache_hits: 0,
        })
    }

    /// Number of entries that the cache can hold.
    pub fn cache_capacity_entries(&self) -> u64 {
        (self.cache.keys.len() * ENTRIES_PER_SET) as u64
    }

    /// Number of keys that were found in the cache so far.
    pub fn num_cache_hits(&self) -> u64 {
        self.num_cache_hits
    }

    /// Looks up many keys, first in the cache, then with [`Table::get_many_with_threads`], and adds the entries found
    /// to the cache.
    ///
    /// # Errors
    /// As for [`Table::get_many_with_threads`]; the results are then undefined.
    pub fn get_many(
        &mut self,
        keys: &[u64],
        threads: usize,
        depth: usize,
        results: &mut LookupResults,
    ) -> Result<(), Error> {
        if self.cache.keys.is_empty() {
            return self.table.get_many_with_threads(keys, threads, depth, results);
        }
        let mut room = results.reset_for_keys(keys.len(), self.table.value_bytes());
        self.missed_keys.clear();
        self.missed_numbers.clear();
        let mut sets = [0; PREFETCH_KEYS];
        for (keys, first) in keys.chunks(PREFETCH_KEYS).zip((0..).step_by(PREFETCH_KEYS)) {
            for (&key, set) in keys.iter().zip(&mut sets) {
                *set = self.cache.set_index(key);
                self.cache.prefetch_set(*set);
            }
            for ((&key, &set), number) in keys.iter().zip(&sets).zip(first..) {
                match self.cache.get(set, key) {
                    Some(value) => room.set_value(number, value),
                    None => {
                        self.missed_keys.push(key);
                        self.missed_numbers.push(number);
                    }
                }
            }
        }
        self.num_cache_hits += (keys.len() - self.missed_keys.len()) as u64;
        self.table.get_many_with_threads(&self.missed_keys, threads, depth, &mut self.missed_results)?;
        for ((&key, &number), answer) in
            self.missed_keys.iter().zip(&self.missed_numbers).zip(self.missed_results.iter())
        {
            if let Some(value) = answer {
                room.set_value(number, value);
                self.cache.insert(self.cache.set_index(key), key, value);
            }
        }
        Ok(())
    }
}
