//! Hash table that counts the k-mers of one bin and returns them root by root.
//!
//! The table uses linear probing, and the position depends on the root alone. So all k-mers of a root are in one run
//! of used slots. Sorting each short run brings them together, and the bin itself is never sorted.

mod count_totals;

use genuma_machine::simd_and_prefetch::prefetch;

use crate::encode::kmer_mask;
use crate::superkmer::MAX_KMERS_PER_RECORD;
use crate::{Error, NUM_SPECTRUM_ENTRIES, RootCounters};

pub(crate) use count_totals::CountTotals;

/// Minimum number of slots of a table.
pub(crate) const MIN_SLOTS: usize = 1024;

/// Number of k-mers whose slots are prefetched together before they are added.
pub(crate) const KMERS_PER_PREFETCH_BATCH: usize = 2 * MAX_KMERS_PER_RECORD;

/// Bytes of a slot with counters of `S` samples.
pub(crate) const fn slot_bytes<const S: usize>() -> usize {
    size_of::<Slot<S>>()
}

/// A k-mer key (root, first base, last base) with its counts. A slot whose counts are all 0 is empty.
#[derive(Debug, Clone, Copy)]
struct Slot<const S: usize> {
    key: u64,
    counts: [u32; S],
}

impl<const S: usize> Slot<S> {
    const EMPTY: Self = Self { key: 0, counts: [0; S] };

    #[inline]
    fn is_free(&self) -> bool {
        self.counts == [0; S]
    }
}

/// A class of roots: those whose hash has the value `id` in its lowest `bits` bits. If the k-mers of a bin do not fit
/// in the table, the bin is counted class by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RootClass {
    bits: u32,
    id: u64,
}

impl RootClass {
    /// The class of all roots.
    pub(crate) const ALL_ROOTS: Self = Self { bits: 0, id: 0 };

    /// Whether a root with this hash ([`hash_root_of_key`]) belongs to the class.
    #[inline]
    pub(crate) fn class_contains_hash(self, hash: u64) -> bool {
        self.bits == 0 || (hash ^ self.id) & (u64::MAX >> (64 - self.bits)) == 0
    }

    /// Splits the class into two classes, by one more bit of the hash.
    pub(crate) fn split_class(self) -> [Self; 2] {
        let bits = self.bits + 1;
        [Self { bits, id: self.id }, Self { bits, id: self.id | (1 << self.bits) }]
    }

    /// Number of the lowest hash bits that define the class, and their value.
    pub(crate) fn class_bits_and_id(self) -> (u32, u64) {
        (self.bits, self.id)
    }
}

/// Hash of the root of a k-mer key. Different roots have different hashes. The high bits give the position in the
/// table, the low bits give the root class.
#[inline]
pub(crate) fn hash_root_of_key(key: u64) -> u64 {
    let x = (key >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Counter table of one bin, or of one class of its roots. Takes at most the memory of twice `max_slots` slots, as
/// two tables exist while it grows.
#[derive(Debug)]
pub(crate) struct CounterTable<const S: usize> {
    /// The first `active` slots are the table of the current class. All other slots are empty, and so are all slots
    /// before a class is started.
    slots: Vec<Slot<S>>,
    active: usize,
    used: usize,
    max_slots: usize,
    class: RootClass,
    postponed: Vec<RootClass>,
    /// Hash, key and counts of k-mers that are still to be added.
    waiting: Vec<(u64, u64, [u32; S])>,
}

/// Number of used slots above which a table of `slots` slots grows.
fn load_limit(slots: usize) -> usize {
    slots / 4 * 3
}

impl<const S: usize> CounterTable<S> {
    /// Creates an empty table of at most `max_slots` slots; smaller numbers than [`MIN_SLOTS`] are raised to it.
    pub(crate) fn with_max_slots(max_slots: usize) -> Self {
        let max_slots = max_slots.max(MIN_SLOTS);
        let (slots, left_out, waiting) = (Vec::new(), Vec::new(), Vec::with_capacity(KMERS_PER_PREFETCH_BATCH));
        Self { slots, active: 0, used: 0, max_slots, class: RootClass::ALL_ROOTS, postponed: left_out, waiting }
    }

    /// Starts to count the roots of `class`: sets the size of the empty table for about `distinct` distinct k-mers.
    pub(crate) fn start_class(&mut self, class: RootClass, distinct: u64) {
        let wanted = distinct.min(self.max_slots as u64) as usize * 2;
        self.active = wanted.clamp(MIN_SLOTS, self.max_slots);
        if self.slots.len() < self.active {
            self.slots = Vec::new();
            self.slots = vec![Slot::EMPTY; self.active];
        }
        self.used = 0;
        self.class = class;
    }

    /// Adds `counts` to the counts of each k-mer of `keys` (k-mer keys, at most [`MAX_KMERS_PER_RECORD`]) whose root is
    /// in the class. At least one count must be positive. The counts are complete after
    /// [`CounterTable::add_waiting_kmers`].
    #[inline]
    pub(crate) fn add_counts_to_keys(&mut self, keys: &[u64], counts: [u32; S]) {
        if self.waiting.len() + keys.len() > KMERS_PER_PREFETCH_BATCH {
            self.add_waiting_kmers();
        }
        for &key in keys {
            let hash = hash_root_of_key(key);
            prefetch(&self.slots[self.slot_index(hash)]);
            self.waiting.push((hash, key, counts));
        }
    }

    /// Adds to the table the k-mers of [`CounterTable::add_counts_to_keys`] that are still waiting.
    pub(crate) fn add_waiting_kmers(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (hash, key, counts) in waiting.drain(..) {
            if !self.class.class_contains_hash(hash) {
                continue;
            }
            let slot = self.find_slot(hash, key);
            let fresh = slot.is_free();
            slot.key = key;
            for (sum, n) in slot.counts.iter_mut().zip(counts) {
                *sum = sum.saturating_add(n);
            }
            self.used += usize::from(fresh);
            if self.used > load_limit(self.active) {
                self.grow_or_halve();
            }
        }
        self.waiting = waiting;
    }

    /// Slot at which the search for a hash starts.
    #[inline]
    fn slot_index(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.active as u128) >> 64) as usize
    }

    /// Returns the slot of `key`, or the empty slot where it belongs.
    #[inline]
    fn find_slot(&mut self, hash: u64, key: u64) -> &mut Slot<S> {
        let mut at = self.slot_index(hash);
        let slots = &mut self.slots[..self.active];
        // One branch for both conditions, as neither can be predicted.
        while !((slots[at].key == key) | slots[at].is_free()) {
            at += 1;
            if at == slots.len() {
                at = 0;
            }
        }
        &mut slots[at]
    }

    /// Doubles the table. If the table has its maximum size, keeps half of the root class and postpones the other half.
    #[cold]
    fn grow_or_halve(&mut self) {
        let slots = (self.active * 2).min(self.max_slots);
        if slots == self.active {
            let [kept, later] = self.class.split_class();
            self.class = kept;
            self.postponed.push(later);
        }
        let old = std::mem::replace(&mut self.slots, vec![Slot::EMPTY; slots]);
        (self.active, self.used) = (slots, 0);
        for slot in old.iter().filter(|s| !s.is_free()) {
            let hash = hash_root_of_key(slot.key);
            if self.class.class_contains_hash(hash) {
                *self.find_slot(hash, slot.key) = *slot;
                self.used += 1;
            }
        }
        if self.used > load_limit(slots) {
            self.grow_or_halve();
        }
    }

    /// Number of k-mers in the table.
    pub(crate) fn num_kmers(&self) -> usize {
        self.used
    }

    /// Removes and returns a root class that was postponed because it did not fit into the table; `None` if none is
    /// left. It needs another pass over the bin.
    pub(crate) fn take_postponed_class(&mut self) -> Option<RootClass> {
        self.postponed.pop()
    }

    /// Calls `each` with the keys and counts of the k-mers whose total count is at least `min_count` (at least 1), in
    /// batches and in no particular order. Adds all k-mers to the spectra and empties the table.
    pub(crate) fn drain_kmers_with_min_count<E>(
        &mut self,
        min_count: u32,
        spectra: &mut KmerSpectra<S>,
        mut each: impl FnMut(&[(u64, [u32; S])]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut part = [(0, [0; S]); KMERS_PER_PREFETCH_BATCH];
        for slots in self.slots[..self.active].chunks_mut(KMERS_PER_PREFETCH_BATCH) {
            // Without a branch, as it could not be predicted.
            let mut n = 0;
            for slot in slots.iter() {
                part[n] = (slot.key, slot.counts);
                n += usize::from(slot.counts.iter().fold(0u32, |sum, &n| sum.saturating_add(n)) >= min_count);
                spectra.add_counts(slot.counts);
            }
            slots.fill(Slot::EMPTY);
            each(&part[..n])?;
        }
        Ok(())
    }

    /// Calls `each` once with each root, in no particular order. Adds all k-mers to the spectra and empties the
    /// table.
    pub(crate) fn drain_roots(&mut self, spectra: &mut KmerSpectra<S>, mut each: impl FnMut(&RootCounters<S>)) {
        let slots = &mut self.slots[..self.active];
        slots.iter().for_each(|slot| spectra.add_counts(slot.counts));
        // The table is a ring with at least one empty slot: the run at its end continues at its start.
        let first_free = slots.iter().position(Slot::is_free).unwrap_or(slots.len());
        let last_free = slots.iter().rposition(Slot::is_free).map_or(0, |at| at + 1);
        let mut wrapped = [&slots[last_free..], &slots[..first_free]].concat();
        emit_run(&mut wrapped, &mut each);
        if first_free < last_free {
            for run in slots[first_free..last_free].split_mut(Slot::is_free) {
                emit_run(run, &mut each);
            }
        }
        slots.fill(Slot::EMPTY);
    }
}

/// k-mer spectrum of each sample: number of distinct k-mers by count.
#[derive(Debug)]
pub(crate) struct KmerSpectra<const S: usize>(pub [Vec<u64>; S]);

impl<const S: usize> KmerSpectra<S> {
    /// Spectra with all entries 0.
    pub(crate) fn zero_spectra() -> Self {
        Self(std::array::from_fn(|_| vec![0; NUM_SPECTRUM_ENTRIES]))
    }

    /// Adds one distinct k-mer: increments the entry `[sample][n]` for each sample that has the k-mer n times (the last
    /// entry for larger n).
    #[inline]
    fn add_counts(&mut self, counts: [u32; S]) {
        for (spectrum, count) in self.0.iter_mut().zip(counts) {
            spectrum[(count as usize).min(NUM_SPECTRUM_ENTRIES - 1)] += 1;
        }
    }

    /// Sets the entries of count 0 to 0. While counting, they include k-mers that a sample lacks and empty slots.
    pub(crate) fn clear_entries_of_count_zero(&mut self) {
        self.0.iter_mut().for_each(|spectrum| spectrum[0] = 0);
    }
}

/// Calls `each` with the roots of one run of used slots.
fn emit_run<const S: usize>(run: &mut [Slot<S>], each: &mut impl FnMut(&RootCounters<S>)) {
    if run.len() > 1 {
        run.sort_unstable_by_key(|s| s.key);
    }
    for root in run.chunk_by(|a, b| a.key >> 4 == b.key >> 4) {
        let mut counters = RootCounters { root: root[0].key >> 4, counts: [[0; S]; 16] };
        for slot in root {
            counters.counts[(slot.key & kmer_mask(2)) as usize] = slot.counts;
        }
        each(&counters);
    }
}

/// Receiver of the counts of each bin. Each thread and device lane has its own. It keeps the roots that a rule selects,
/// or the frequent k-mers.
pub(crate) trait CounterSink<const S: usize> {
    /// Processes the table of a bin or root class after counting: keeps the counts that the receiver needs, adds all
    /// k-mers to the spectra, and empties the table.
    fn take_table(&mut self, table: &mut CounterTable<S>, spectra: &mut KmerSpectra<S>) -> Result<(), Error>;

    /// The rows that the receiver needs from a table on a device. Only these rows are copied from the device.
    fn requested_rows(&self) -> DeviceRowRequest;

    /// Processes the requested rows of a table on a device. `roots` is the number of roots in the whole table.
    fn take_rows(&mut self, rows: DeviceTableRows<'_, S>, roots: u64) -> Result<(), Error>;
}

/// Which rows of a table on a device are copied to the host: those that the [`CounterSink`] needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceRowRequest {
    /// All k-mers, with those of a root in consecutive rows.
    Roots,
    /// The k-mers with at least a minimum total count, in any order.
    Kmers {
        /// Minimum total count, at least 1.
        min_count: u32,
    },
}

/// Rows of a counter table that were copied from a device: k-mers and their counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceTableRows<'a, const S: usize> {
    /// Distinct k-mer keys: root, first base and last base ([`crate::superkmer::KmerKeyBuffer`]).
    pub keys: &'a [u64],
    /// Counts of each k-mer, by sample.
    pub counts: &'a [[u32; S]],
}

impl<const S: usize> DeviceTableRows<'_, S> {
    /// Calls `each` with each root; the k-mers of a root must be consecutive.
    pub(crate) fn for_each_root(&self, mut each: impl FnMut(&RootCounters<S>)) {
        let mut counts = self.counts;
        for root in self.keys.chunk_by(|a, b| a >> 4 == b >> 4) {
            let (of_root, rest) = counts.split_at(root.len());
            let mut counters = RootCounters { root: root[0] >> 4, counts: [[0; S]; 16] };
            for (key, counts) in root.iter().zip(of_root) {
                counters.counts[(key & kmer_mask(2)) as usize] = *counts;
            }
            each(&counters);
            counts = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Roots = BTreeMap<u64, [[u32; 2]; 16]>;

    /// Counts `keys` with a table of at most `max_slots` slots in repeated passes; returns the roots and the number
    /// of passes.
    fn tally(keys: &[(usize, u64)], max_slots: usize) -> (Roots, usize) {
        let (mut tally, mut roots, mut passes) = (CounterTable::<2>::with_max_slots(max_slots), Roots::new(), 0);
        let mut class = Some(RootClass::ALL_ROOTS);
        while let Some(current) = class {
            tally.start_class(current, 0);
            keys.iter().for_each(|&(sample, key)| tally.add_counts_to_keys(&[key], one(sample)));
            tally.add_waiting_kmers();
            assert!(tally.slots.len() <= max_slots);
            tally.drain_roots(&mut KmerSpectra::zero_spectra(), |r| {
                assert!(roots.insert(r.root, r.counts).is_none(), "a root came twice")
            });
            passes += 1;
            class = tally.take_postponed_class();
        }
        (roots, passes)
    }

    fn one(sample: usize) -> [u32; 2] {
        [1 - sample as u32, sample as u32]
    }

    fn keys(n: u64, num_roots: u64) -> Vec<(usize, u64)> {
        let mix = |i: u64| i.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ (i >> 7);
        (0..n).map(|i| ((mix(i) & 1) as usize, (((mix(i) >> 3) % num_roots) << 4) | ((mix(i) >> 58) & 15))).collect()
    }

    #[test]
    fn roots_are_complete_and_correct_in_any_number_of_passes() {
        let keys = keys(60_000, 5_000);
        let mut expected = Roots::new();
        for &(sample, key) in &keys {
            expected.entry(key >> 4).or_default()[(key & 15) as usize][sample] += 1;
        }
        for (max_slots, min_passes) in [(1 << 20, 1), (1 << 14, 4), (1 << 10, 60)] {
            let (roots, passes) = tally(&keys, max_slots);
            assert_eq!(roots, expected);
            assert!(passes >= min_passes && passes < 40 * min_passes, "{passes} passes");
        }
    }

    #[test]
    fn extreme_keys_differ_from_empty_slots() {
        let (roots, _) = tally(&[(0, 0), (1, u64::MAX), (0, 0), (1, 0)], MIN_SLOTS);
        assert_eq!(roots.len(), 2);
        assert_eq!(roots[&0][0], [2, 1]);
        assert_eq!(roots[&(u64::MAX >> 4)][15], [0, 1]);
    }
}
