//! Hot entries: the entries that will probably be looked up most often. They are selected while a table is written, and
//! are kept in memory while the table is open (the key-value cache of cadenelli2019, section 5.3).

use genuma_machine::placement::{self, MemoryPlacement, PlacedSlice};
use genuma_machine::simd_and_prefetch::prefetch;

use crate::hash::hash_key;

/// An entry that may be selected as a hot entry.
#[derive(Debug, Clone, Copy)]
struct HotCandidate {
    weight: u64,
    key: u64,
    value_index: usize,
}

/// Selects the entries with the largest weights, in bounded memory. Of entries with equal weights it selects those with
/// the smallest keys.
#[derive(Debug)]
pub(crate) struct HotEntrySelector {
    num_wanted: usize,
    value_bytes: usize,
    candidates: Vec<HotCandidate>,
    values: Vec<u8>,
    /// Largest weight that is rejected: entries with this weight or less can no longer be selected.
    max_rejected_weight: u64,
}

impl HotEntrySelector {
    /// Creates a selector of at most `wanted` entries with values of `value` bytes.
    pub(crate) fn with_max_entries(wanted: usize, value: usize) -> HotEntrySelector {
        HotEntrySelector {
            num_wanted: wanted,
            value_bytes: value,
            candidates: Vec::new(),
            values: Vec::new(),
            max_rejected_weight: 0,
        }
    }

    /// Merges the selectors of several threads, which were offered different entries. `wanted` is the maximum number of
    /// entries of the result, `value` the size of a value in bytes.
    pub(crate) fn merge_selectors(others: Vec<HotEntrySelector>, wanted: usize, value: usize) -> HotEntrySelector {
        let mut all = HotEntrySelector::with_max_entries(wanted, value);
        let mut candidates: Vec<(usize, HotCandidate)> = Vec::new();
        for (which, chooser) in others.iter().enumerate() {
            candidates.extend(chooser.candidates.iter().map(|&candidate| (which, candidate)));
        }
        candidates.sort_unstable_by_key(|(_, candidate)| candidate.key);
        for (which, HotCandidate { weight, key, value_index: slot }) in candidates {
            all.offer_entry(key, &others[which].values[slot * value..][..value], weight);
        }
        all
    }

    /// Maximum memory of a selector in bytes. It stores up to twice the wanted number of entries before it drops half
    /// of them.
    pub(crate) fn max_selector_bytes(wanted: usize, value: usize) -> u64 {
        2 * wanted as u64 * (size_of::<HotCandidate>() + value) as u64
    }

    /// Offers an entry to the selector. Keys must be offered in ascending order. Entries of weight 0 are never
    /// selected.
    #[inline]
    pub(crate) fn offer_entry(&mut self, key: u64, value: &[u8], weight: u64) {
        if weight > self.max_rejected_weight && self.num_wanted > 0 {
            self.add_candidate(key, value, weight);
        }
    }

    fn add_candidate(&mut self, key: u64, value: &[u8], weight: u64) {
        if self.candidates.capacity() == 0 {
            self.candidates.reserve_exact(2 * self.num_wanted);
            self.values.reserve_exact(2 * self.num_wanted * self.value_bytes);
        }
        let slot = self.candidates.len();
        self.candidates.push(HotCandidate { weight, key, value_index: slot });
        self.values.extend_from_slice(value);
        if self.candidates.len() == 2 * self.num_wanted {
            self.drop_surplus();
        }
    }

    /// Drops all candidates but the `num_wanted` with the largest weights, and sorts the rest by key.
    fn drop_surplus(&mut self) {
        if self.candidates.len() <= self.num_wanted {
            return;
        }
        let order = |c: &HotCandidate| (std::cmp::Reverse(c.weight), c.key);
        if let Some(last) = self.num_wanted.checked_sub(1) {
            let (_, last, _) = self.candidates.select_nth_unstable_by_key(last, order);
            // Later keys are larger, so a later entry of the same weight would lose.
            self.max_rejected_weight = last.weight;
        }
        self.candidates.truncate(self.num_wanted);
        self.candidates.sort_unstable_by_key(|c| c.value_index);
        for (to, candidate) in self.candidates.iter_mut().enumerate() {
            let from = candidate.value_index * self.value_bytes;
            self.values.copy_within(from..from + self.value_bytes, to * self.value_bytes);
            candidate.value_index = to;
        }
        self.values.truncate(self.num_wanted * self.value_bytes);
    }

    /// Returns keys and values of the selected entries, at most `most`, in key order.
    pub(crate) fn into_selected_entries(mut self, most: usize) -> (Vec<u64>, Vec<u8>) {
        self.num_wanted = self.num_wanted.min(most);
        self.drop_surplus();
        (self.candidates.iter().map(|c| c.key).collect(), self.values)
    }
}

/// Hot entries in memory: a hash table with open addressing that is at most half full.
#[derive(Debug)]
pub(crate) struct HotEntries {
    keys: PlacedSlice<u64>,
    /// For each slot, the number of its value plus one; 0 in an empty slot.
    value_numbers: PlacedSlice<u32>,
    values: PlacedSlice<u8>,
    value_bytes: usize,
}

impl HotEntries {
    /// Maximum number of hot entries in a table.
    pub(crate) const MAX_HOT_ENTRIES: usize = u32::MAX as usize - 1;

    /// Builds the hash table from keys and values in the same order.
    ///
    /// # Errors
    /// There is no memory on the requested nodes.
    pub(crate) fn build_hash_table(
        keys: &[u64],
        values: PlacedSlice<u8>,
        value: usize,
        at: &MemoryPlacement,
    ) -> Result<HotEntries, placement::Error> {
        let places = if keys.is_empty() { 0 } else { (2 * keys.len()).next_power_of_two() };
        let mut hot = HotEntries {
            keys: PlacedSlice::new_zeroed(places, at)?,
            value_numbers: PlacedSlice::new_zeroed(places, at)?,
            values,
            value_bytes: value,
        };
        for (number, &key) in (1..).zip(keys) {
            let mut place = hot.home_slot(hash_key(key));
            while hot.value_numbers[place] != 0 {
                place = (place + 1) & (places - 1);
            }
            hot.keys[place] = key;
            hot.value_numbers[place] = number;
        }
        Ok(hot)
    }

    fn home_slot(&self, hash: u64) -> usize {
        hash as usize & (self.keys.len() - 1)
    }

    /// Size of the hash table and its values in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&self.keys[..]) + size_of_val(&self.value_numbers[..]) + self.values.len()
    }

    /// Prefetches the cache lines of the slot that a hash selects.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, hash: u64) {
        if !self.keys.is_empty() {
            let place = self.home_slot(hash);
            prefetch(&self.keys[place]);
            prefetch(&self.value_numbers[place]);
        }
    }

    /// The value of a key; `None` if the key is not among the hot entries.
    pub(crate) fn get(&self, key: u64, hash: u64) -> Option<&[u8]> {
        if self.keys.is_empty() {
            return None;
        }
        let mut place = self.home_slot(hash);
        while self.value_numbers[place] != 0 {
            if self.keys[place] == key {
                let start = (self.value_numbers[place] as usize - 1) * self.value_bytes;
                return Some(&self.values[start..start + self.value_bytes]);
            }
            place = (place + 1) & (self.keys.len() - 1);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use genuma_machine::placement::{MemoryPolicy, PageSize};

    use super::*;

    fn weight(key: u64) -> u64 {
        hash_key(key) % 100
    }

    #[test]
    fn the_heaviest_are_chosen_and_found() {
        for (n, wanted) in [(0, 3), (5, 0), (5, 7), (1000, 1), (1000, 20), (1000, 500), (1000, 1000)] {
            let mut chooser = HotEntrySelector::with_max_entries(wanted, 2);
            for key in 0..n {
                chooser.offer_entry(key, &(key as u16).to_le_bytes(), weight(key));
            }
            let mut best: Vec<u64> = (0..n).filter(|&key| weight(key) > 0).collect();
            best.sort_by_key(|&key| (std::cmp::Reverse(weight(key)), key));
            best.truncate(wanted);
            best.sort_unstable();
            let (keys, values) = chooser.into_selected_entries(usize::MAX);
            assert_eq!(keys, best, "{wanted} of {n}");

            let placement = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base };
            let values = PlacedSlice::from_slice(&values, &placement).unwrap();
            let hot = HotEntries::build_hash_table(&keys, values, 2, &placement).unwrap();
            for key in 0..n + 2 {
                let value = (key as u16).to_le_bytes();
                let expected = best.binary_search(&key).is_ok().then_some(&value[..]);
                assert_eq!(hot.get(key, hash_key(key)), expected);
            }
        }
    }
}
