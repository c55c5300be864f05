//! Lookups that remember what they found, in a bounded memory: what is asked for again needs no flash.
//!
//! The hot entries of a table (`hot.rs`) are those that the samples have most, chosen when it was written; what is asked for here may have
//! others. Entries lie in sets of [`WAYS`], whose keys are one line of memory. Where a set is full, the entry goes that was not asked for
//! again since the hand last passed it (the clock algorithm, Corbató 1968, a clock for each set).

use genuma_machine::placement::{self, Placed};
use genuma_machine::processor::prefetch;

use crate::answers::Answers;
use crate::error::Error;
use crate::hash::{below, hash};
use crate::table::Table;

/// Entries of a set.
const WAYS: usize = 8;
/// Keys whose lines are asked for together.
const AHEAD: usize = 16;

/// A place without an entry, ...
const EMPTY: u8 = 0;
/// ... with one that was not asked for since the hand passed, ...
const IDLE: u8 = 1;
/// ... and with one that was.
const ASKED: u8 = 2;

/// Keys of a set.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Keys([u64; WAYS]);

/// States of a set's places.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(8))]
struct States([u8; WAYS]);

/// Entries that were looked up lately.
#[derive(Debug)]
struct Kept {
    keys: Placed<Keys>,
    states: Placed<States>,
    /// Where the hand of each set stands.
    hands: Placed<u8>,
    values: Placed<u8>,
    value: usize,
}

impl Kept {
    /// Bytes of a set with values of `value` bytes.
    fn of_a_set(value: usize) -> u64 {
        (size_of::<Keys>() + size_of::<States>() + 1 + WAYS * value) as u64
    }

    /// In at most `bytes`, and with no more room than for each entry of the table twice: few sets are full then, however keys fall.
    fn new(table: &Table, bytes: u64) -> Result<Kept, placement::Error> {
        let value = table.value_bytes();
        let sets = (bytes / Kept::of_a_set(value)).min((2 * table.len()).div_ceil(WAYS as u64)) as usize;
        let at = &table.placement;
        Ok(Kept {
            keys: Placed::zeroed(sets, at)?,
            states: Placed::zeroed(sets, at)?,
            hands: Placed::zeroed(sets, at)?,
            values: Placed::zeroed(sets * WAYS * value, at)?,
            value,
        })
    }

    fn set(&self, key: u64) -> usize {
        below(hash(key), self.keys.len())
    }

    fn fetch(&self, set: usize) {
        prefetch(&self.keys[set]);
        prefetch(&self.states[set]);
    }

    /// The value of a key that is there.
    fn get(&mut self, set: usize, key: u64) -> Option<&[u8]> {
        let (keys, states) = (&self.keys[set].0, &mut self.states[set].0);
        let way = (0..WAYS).find(|&way| keys[way] == key && states[way] != EMPTY)?;
        states[way] = ASKED;
        let start = (set * WAYS + way) * self.value;
        Some(&self.values[start..start + self.value])
    }

    /// Keeps an entry, which may be there.
    fn put(&mut self, set: usize, key: u64, value: &[u8]) {
        let (keys, states) = (&mut self.keys[set].0, &mut self.states[set].0);
        if (0..WAYS).any(|way| keys[way] == key && states[way] != EMPTY) {
            return;
        }
        let hand = &mut self.hands[set];
        while states[*hand as usize] == ASKED {
            states[*hand as usize] = IDLE;
            *hand = (*hand + 1) % WAYS as u8;
        }
        let way = *hand as usize;
        *hand = (*hand + 1) % WAYS as u8;
        keys[way] = key;
        states[way] = IDLE;
        let start = (set * WAYS + way) * self.value;
        self.values[start..start + self.value].copy_from_slice(value);
    }
}

/// Looks keys of a table up, and remembers those found.
#[derive(Debug)]
pub struct Cached<'t> {
    table: &'t Table,
    kept: Kept,
    /// Keys that were not remembered, the number of each, and what the table has for them.
    left: Vec<u64>,
    numbers: Vec<usize>,
    looked_up: Answers,
    remembered: u64,
}

impl<'t> Cached<'t> {
    /// Bytes in which all of `entries` entries with values of `value` bytes have room.
    pub fn memory(entries: u64, value: usize) -> u64 {
        entries.div_ceil(WAYS as u64).saturating_mul(Kept::of_a_set(value))
    }

    /// Remembers in at most `bytes`, which lie where the table's index does and are taken as they are filled; of fewer than a set takes
    /// (73 and eight values) nothing is remembered.
    ///
    /// # Errors
    /// No memory where it was asked for.
    pub fn new(table: &'t Table, bytes: u64) -> Result<Cached<'t>, Error> {
        let memory = |source| Error::Memory { path: table.path.clone(), source };
        let kept = Kept::new(table, bytes).map_err(memory)?;
        let (left, numbers, looked_up) = (Vec::new(), Vec::new(), Answers::new());
        Ok(Cached { table, kept, left, numbers, looked_up, remembered: 0 })
    }

    /// How many entries have room.
    pub fn room(&self) -> u64 {
        (self.kept.keys.len() * WAYS) as u64
    }

    /// How many keys were answered from what it remembered.
    pub fn remembered(&self) -> u64 {
        self.remembered
    }

    /// As [`Table::get_many`], which it asks for what it does not remember.
    ///
    /// # Errors
    /// As there. The answers mean nothing then.
    pub fn get_many(
        &mut self,
        keys: &[u64],
        threads: usize,
        depth: usize,
        answers: &mut Answers,
    ) -> Result<(), Error> {
        if self.kept.keys.is_empty() {
            return self.table.get_many(keys, threads, depth, answers);
        }
        let mut room = answers.reset(keys.len(), self.table.value_bytes());
        self.left.clear();
        self.numbers.clear();
        let mut sets = [0; AHEAD];
        for (keys, first) in keys.chunks(AHEAD).zip((0..).step_by(AHEAD)) {
            for (&key, set) in keys.iter().zip(&mut sets) {
                *set = self.kept.set(key);
                self.kept.fetch(*set);
            }
            for ((&key, &set), number) in keys.iter().zip(&sets).zip(first..) {
                match self.kept.get(set, key) {
                    Some(value) => room.put(number, value),
                    None => {
                        self.left.push(key);
                        self.numbers.push(number);
                    }
                }
            }
        }
        self.remembered += (keys.len() - self.left.len()) as u64;
        self.table.get_many(&self.left, threads, depth, &mut self.looked_up)?;
        for ((&key, &number), answer) in self.left.iter().zip(&self.numbers).zip(self.looked_up.iter()) {
            if let Some(value) = answer {
                room.put(number, value);
                self.kept.put(self.kept.set(key), key, value);
            }
        }
        Ok(())
    }
}
