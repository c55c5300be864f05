//! Counts the k-mers of one bin and hands them out root by root.
//!
//! A hash table with linear probing, placed by the stem alone: all k-mers of a root lie in one run of used slots, so
//! sorting each short run brings roots together and the bin itself is never sorted.

use genuma_machine::processor::prefetch;

use crate::encode::mask;
use crate::superkmer::MAX_KMERS;
use crate::{Error, RootCounters, SPECTRUM_SLOTS};

/// Slots of the smallest table.
pub(crate) const MIN_SLOTS: usize = 1024;

/// K-mers that wait while what they go to is fetched.
pub(crate) const WAITING: usize = 2 * MAX_KMERS;

/// Bytes of a slot with counters of `S` samples.
pub(crate) const fn slot_bytes<const S: usize>() -> usize {
    size_of::<Slot<S>>()
}

/// One k-mer: its key and how often each sample has it. Nobody has it in a free slot.
#[derive(Debug, Clone, Copy)]
struct Slot<const S: usize> {
    key: u64,
    counts: [u32; S],
}

impl<const S: usize> Slot<S> {
    const FREE: Self = Self { key: 0, counts: [0; S] };

    #[inline]
    fn is_free(&self) -> bool {
        self.counts == [0; S]
    }
}

/// A share of all roots: those whose hash ends in the `bits` bits of `id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    bits: u32,
    id: u64,
}

impl Class {
    /// Every root.
    pub const ALL: Self = Self { bits: 0, id: 0 };

    /// Whether a root of this hash is one of them.
    #[inline]
    pub fn has(self, hash: u64) -> bool {
        self.bits == 0 || (hash ^ self.id) & (u64::MAX >> (64 - self.bits)) == 0
    }

    /// The class cut in two.
    pub fn halves(self) -> [Self; 2] {
        let bits = self.bits + 1;
        [Self { bits, id: self.id }, Self { bits, id: self.id | (1 << self.bits) }]
    }

    /// Its bits and what they are.
    pub(crate) fn bits_and_id(self) -> (u32, u64) {
        (self.bits, self.id)
    }
}

/// A hash of the stem that differs for different stems; the table takes its place from the high bits, classes from
/// the low ones.
#[inline]
pub fn hash(key: u64) -> u64 {
    let x = (key >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Counts of the k-mers of one bin, or of one class of its roots. Takes at most twice `max_slots` slots of memory
/// (two tables while it grows).
#[derive(Debug)]
pub struct Tally<const S: usize> {
    /// The first `active` are in use; the others, and all while nothing is counted, are free.
    slots: Vec<Slot<S>>,
    active: usize,
    used: usize,
    max_slots: usize,
    class: Class,
    left_out: Vec<Class>,
    /// Hashes, keys and counts of k-mers that are still to be added.
    waiting: Vec<(u64, u64, [u32; S])>,
}

/// Slots of a table of `slots` that may be used before it has to grow.
fn load_limit(slots: usize) -> usize {
    slots / 4 * 3
}

impl<const S: usize> Tally<S> {
    /// `max_slots` is raised to [`MIN_SLOTS`].
    pub fn new(max_slots: usize) -> Self {
        let max_slots = max_slots.max(MIN_SLOTS);
        let (slots, left_out, waiting) = (Vec::new(), Vec::new(), Vec::with_capacity(WAITING));
        Self { slots, active: 0, used: 0, max_slots, class: Class::ALL, left_out, waiting }
    }

    /// Prepares an empty tally for the roots of `class`, for about `distinct` k-mers.
    pub fn start(&mut self, class: Class, distinct: u64) {
        let wanted = distinct.min(self.max_slots as u64) as usize * 2;
        self.active = wanted.clamp(MIN_SLOTS, self.max_slots);
        if self.slots.len() < self.active {
            self.slots = Vec::new();
            self.slots = vec![Slot::FREE; self.active];
        }
        self.used = 0;
        self.class = class;
    }

    /// Counts k-mers, at most [`MAX_KMERS`], each as often as `counts` says for each sample, once at least; when that shows is
    /// told by [`Tally::settle`].
    #[inline]
    pub fn add(&mut self, keys: &[u64], counts: [u32; S]) {
        if self.waiting.len() + keys.len() > WAITING {
            self.settle();
        }
        for &key in keys {
            let hash = hash(key);
            prefetch(&self.slots[self.place(hash)]);
            self.waiting.push((hash, key, counts));
        }
    }

    /// Sees that all k-mers added are counted.
    pub fn settle(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (hash, key, counts) in waiting.drain(..) {
            if !self.class.has(hash) {
                continue;
            }
            let slot = self.find(hash, key);
            let fresh = slot.is_free();
            slot.key = key;
            for (sum, n) in slot.counts.iter_mut().zip(counts) {
                *sum = sum.saturating_add(n);
            }
            self.used += usize::from(fresh);
            if self.used > load_limit(self.active) {
                self.make_room();
            }
        }
        self.waiting = waiting;
    }

    /// Where a k-mer is looked for first.
    #[inline]
    fn place(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.active as u128) >> 64) as usize
    }

    /// The slot that has `key`, or a free one for it.
    #[inline]
    fn find(&mut self, hash: u64, key: u64) -> &mut Slot<S> {
        let mut at = self.place(hash);
        let slots = &mut self.slots[..self.active];
        // One branch for both: which of them holds could not be foretold.
        while !((slots[at].key == key) | slots[at].is_free()) {
            at += 1;
            if at == slots.len() {
                at = 0;
            }
        }
        &mut slots[at]
    }

    /// Doubles the table, or, when it may not grow, keeps half of the class and leaves the other half for later.
    #[cold]
    fn make_room(&mut self) {
        let slots = (self.active * 2).min(self.max_slots);
        if slots == self.active {
            let [kept, later] = self.class.halves();
            self.class = kept;
            self.left_out.push(later);
        }
        let old = std::mem::replace(&mut self.slots, vec![Slot::FREE; slots]);
        (self.active, self.used) = (slots, 0);
        for slot in old.iter().filter(|s| !s.is_free()) {
            let hash = hash(slot.key);
            if self.class.has(hash) {
                *self.find(hash, slot.key) = *slot;
                self.used += 1;
            }
        }
        if self.used > load_limit(slots) {
            self.make_room();
        }
    }

    /// K-mers held.
    pub fn len(&self) -> usize {
        self.used
    }

    /// A class left out so far, which needs another pass over the bin.
    pub(crate) fn next_class(&mut self) -> Option<Class> {
        self.left_out.pop()
    }

    /// Calls `each` with the key of every k-mer that is there `least` times or more, 1 at least, all samples summed, and
    /// how often each sample has it, in no particular order, some at a time; adds all k-mers to the spectra and empties the tally.
    pub(crate) fn take_parts<E>(
        &mut self,
        least: u32,
        spectra: &mut Spectra<S>,
        mut each: impl FnMut(&[(u64, [u32; S])]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut part = [(0, [0; S]); WAITING];
        for slots in self.slots[..self.active].chunks_mut(WAITING) {
            // Whether a slot counts is no branch: it could not be foretold.
            let mut n = 0;
            for slot in slots.iter() {
                part[n] = (slot.key, slot.counts);
                n += usize::from(slot.counts.iter().fold(0u32, |sum, &n| sum.saturating_add(n)) >= least);
                spectra.add(slot.counts);
            }
            slots.fill(Slot::FREE);
            each(&part[..n])?;
        }
        Ok(())
    }

    /// Calls `each` once with every root, in no particular order; adds its k-mers to the spectra and empties the tally.
    pub fn drain(&mut self, spectra: &mut Spectra<S>, mut each: impl FnMut(&RootCounters<S>)) {
        let slots = &mut self.slots[..self.active];
        slots.iter().for_each(|slot| spectra.add(slot.counts));
        // The table is a ring and never full: the run at its end goes on at its start.
        let first_free = slots.iter().position(Slot::is_free).unwrap_or(slots.len());
        let last_free = slots.iter().rposition(Slot::is_free).map_or(0, |at| at + 1);
        let mut wrapped = [&slots[last_free..], &slots[..first_free]].concat();
        emit_run(&mut wrapped, &mut each);
        if first_free < last_free {
            for run in slots[first_free..last_free].split_mut(Slot::is_free) {
                emit_run(run, &mut each);
            }
        }
        slots.fill(Slot::FREE);
    }
}

/// How many k-mers there are of each count.
#[derive(Debug)]
pub(crate) struct Spectra<const S: usize>(pub [Vec<u64>; S]);

impl<const S: usize> Spectra<S> {
    /// None.
    pub fn none() -> Self {
        Self(std::array::from_fn(|_| vec![0; SPECTRUM_SLOTS]))
    }

    /// Counts a k-mer, or the lack of one: `[sample][n]` is raised for a k-mer that `sample` has n times, the last slot for one that it
    /// has more often.
    #[inline]
    fn add(&mut self, counts: [u32; S]) {
        for (spectrum, count) in self.0.iter_mut().zip(counts) {
            spectrum[(count as usize).min(SPECTRUM_SLOTS - 1)] += 1;
        }
    }

    /// Forgets those that are not there.
    pub(crate) fn only_present(&mut self) {
        self.0.iter_mut().for_each(|spectrum| spectrum[0] = 0);
    }
}

/// Calls `each` with the roots of one run of used slots.
fn emit_run<const S: usize>(run: &mut [Slot<S>], each: &mut impl FnMut(&RootCounters<S>)) {
    if run.len() > 1 {
        run.sort_unstable_by_key(|s| s.key);
    }
    for root in run.chunk_by(|a, b| a.key >> 4 == b.key >> 4) {
        let mut counters = RootCounters { stem: root[0].key >> 4, counts: [[0; S]; 16] };
        for slot in root {
            counters.counts[(slot.key & mask(2)) as usize] = slot.counts;
        }
        each(&counters);
    }
}

/// What one thread takes out of full tables of counters.
pub(crate) trait Harvest<const S: usize> {
    /// Takes what it wants of a table, adds all of it to the spectra, and empties it.
    fn take(&mut self, tally: &mut Tally<S>, spectra: &mut Spectra<S>) -> Result<(), Error>;

    /// What it wants of a table that is elsewhere.
    fn wanted(&self) -> Wanted;

    /// Takes that, of a table with so many roots in all.
    fn rows(&mut self, rows: Rows<'_, S>, roots: u64) -> Result<(), Error>;
}

/// What is wanted of a table that is elsewhere, so that no more is brought here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All k-mers, those of a root side by side.
    Roots,
    /// K-mers that are there so often at least, all samples summed, in any order.
    Kmers {
        /// 1 at least.
        least: u32,
    },
}

/// K-mers of a table that is elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, const S: usize> {
    /// Their keys, no two the same.
    pub keys: &'a [u64],
    /// How often each sample has each.
    pub counts: &'a [[u32; S]],
}

impl<const S: usize> Rows<'_, S> {
    /// Calls `each` with every root, if they are side by side.
    pub(crate) fn for_each_root(&self, mut each: impl FnMut(&RootCounters<S>)) {
        let mut counts = self.counts;
        for root in self.keys.chunk_by(|a, b| a >> 4 == b >> 4) {
            let (of_root, rest) = counts.split_at(root.len());
            let mut counters = RootCounters { stem: root[0] >> 4, counts: [[0; S]; 16] };
            for (key, counts) in root.iter().zip(of_root) {
                counters.counts[(key & mask(2)) as usize] = *counts;
            }
            each(&counters);
            counts = rest;
        }
    }
}

/// What one thread, or whoever else, counted.
pub struct Share<const S: usize> {
    /// K-mers of each count.
    pub spectra: Spectra<S>,
    /// K-mers.
    pub distinct: u64,
    /// Passes over bins.
    pub passes: u64,
}

impl<const S: usize> Share<S> {
    /// Nothing.
    pub fn none() -> Self {
        Self { spectra: Spectra::none(), distinct: 0, passes: 0 }
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.distinct += other.distinct;
        self.passes += other.passes;
        for (all, part) in self.spectra.0.iter_mut().zip(&other.spectra.0) {
            all.iter_mut().zip(part).for_each(|(a, p)| *a += p);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Roots = BTreeMap<u64, [[u32; 2]; 16]>;

    /// Counts `keys` with a table of at most `max_slots`, pass after pass, and says how many passes it took.
    fn tally(keys: &[(usize, u64)], max_slots: usize) -> (Roots, usize) {
        let (mut tally, mut roots, mut passes) = (Tally::<2>::new(max_slots), Roots::new(), 0);
        let mut class = Some(Class::ALL);
        while let Some(current) = class {
            tally.start(current, 0);
            keys.iter().for_each(|&(sample, key)| tally.add(&[key], one(sample)));
            tally.settle();
            assert!(tally.slots.len() <= max_slots);
            tally.drain(&mut Spectra::none(), |r| {
                assert!(roots.insert(r.stem, r.counts).is_none(), "a root came twice")
            });
            passes += 1;
            class = tally.next_class();
        }
        (roots, passes)
    }

    fn one(sample: usize) -> [u32; 2] {
        [1 - sample as u32, sample as u32]
    }

    fn keys(n: u64, stems: u64) -> Vec<(usize, u64)> {
        let mix = |i: u64| i.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ (i >> 7);
        (0..n)
            .map(|i| ((mix(i) & 1) as usize, (((mix(i) >> 3) % stems) << 4) | ((mix(i) >> 58) & 15)))
            .collect()
    }

    #[test]
    fn roots_are_whole_and_counted_right_in_any_number_of_passes() {
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
    fn extreme_keys_are_kept_apart_from_free_slots() {
        let (roots, _) = tally(&[(0, 0), (1, u64::MAX), (0, 0), (1, 0)], MIN_SLOTS);
        assert_eq!(roots.len(), 2);
        assert_eq!(roots[&0][0], [2, 1]);
        assert_eq!(roots[&(u64::MAX >> 4)][15], [0, 1]);
    }
}
