//! Hash table of k-mers with their counts in both samples.

use genuma_kmers::prefetch;

use super::hash_key;
use super::molecules::PairAndMoleculeCount;

/// A k-mer key with its counts in the normal and in the tumour. The key has the canonical root in the upper bits, then
/// the base before the root (2 bits) and the base after the root (2 bits).
pub(super) type KmerKeyAndCounts = (u64, [PairAndMoleculeCount; 2]);

/// A k-mer that is not yet in the table: its key, and the word `sample << 5 | b`, where b is the bit number for
/// [`PairAndMoleculeCount::start_bits`].
pub(super) type BufferedKmer = (u64, u32);

/// Hash table of k-mer counts with open addressing. Insertions come in groups, so that their slots can be prefetched
/// together.
#[derive(Debug, Default)]
pub(super) struct CountTable {
    pub(super) slots: Vec<KmerKeyAndCounts>,
    pub(super) len: usize,
}

/// Key of an empty slot. No k-mer has this key, because a root of only T is not canonical.
pub(super) const EMPTY_KEY: u64 = u64::MAX;

/// Minimum number of slots of a hash table.
const MIN_SLOTS: usize = 1 << 11;

impl CountTable {
    /// Index of the slot at which the search for a key starts.
    #[inline(always)]
    fn slot_index(&self, key: u64) -> usize {
        ((u128::from(hash_key(key)) * self.slots.len() as u128) >> 64) as usize
    }

    /// Returns the counts of a k-mer, after inserting it if it is new. The table must have a free slot.
    #[inline(always)]
    fn get_or_insert(&mut self, key: u64) -> &mut [PairAndMoleculeCount; 2] {
        let mut at = self.slot_index(key);
        while self.slots[at].0 != key {
            if self.slots[at].0 == EMPTY_KEY {
                self.slots[at].0 = key;
                self.len += 1;
                break;
            }
            at += 1;
            at = if at == self.slots.len() { 0 } else { at };
        }
        &mut self.slots[at].1
    }

    /// Enlarges the table so that it is at most 80 % full after `additional` more k-mers.
    fn reserve(&mut self, additional: usize) {
        let needed = (self.len + additional) * 5 / 4 + 1;
        if needed > self.slots.len() {
            self.resize_and_retain(needed.max(self.slots.len() * 3 / 2).max(MIN_SLOTS), |_| true);
        }
    }

    /// Moves the k-mers for which `kept` returns true to a new table of `num_slots` slots and drops the others.
    pub(super) fn resize_and_retain(&mut self, num_slots: usize, kept: impl Fn(u64) -> bool) {
        let before =
            std::mem::replace(&mut self.slots, vec![(EMPTY_KEY, <[PairAndMoleculeCount; 2]>::default()); num_slots]);
        self.len = 0;
        for (key, seen) in before.into_iter().filter(|(key, _)| *key != EMPTY_KEY && kept(*key)) {
            *self.get_or_insert(key) = seen;
        }
    }

    /// Prefetches the slot of a k-mer into the cache; a slot may be in two cache lines.
    #[inline(always)]
    fn prefetch_slot(&self, key: u64) {
        let slot = &self.slots[self.slot_index(key)];
        prefetch(&slot.0);
        prefetch(&slot.1[1].start_bits);
    }

    /// Adds the k-mers that a thread has buffered to the counts.
    pub(super) fn add_buffered_kmers(&mut self, held: &[BufferedKmer]) {
        self.reserve(held.len());
        held.iter().for_each(|(key, _)| self.prefetch_slot(*key));
        for &(key, who) in held {
            self.get_or_insert(key)[(who >> 5) as usize & 1]
                .merge_count(PairAndMoleculeCount::of_one_pair(u64::from(who)));
        }
    }

    /// Adds counts of k-mers of both samples to those in the table.
    pub(super) fn add_counts(&mut self, counts: &[KmerKeyAndCounts]) {
        self.reserve(counts.len());
        counts.iter().for_each(|(key, _)| self.prefetch_slot(*key));
        for (key, seen) in counts {
            self.get_or_insert(*key).iter_mut().zip(seen).for_each(|(a, b)| a.merge_count(*b));
        }
    }
}
