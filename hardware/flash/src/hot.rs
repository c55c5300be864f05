//! Entries that are looked up most: chosen while a table is written, kept in memory while it is read (the key-value cache of
//! cadenelli2019, section 5.3).

use genuma_machine::placement::{self, Placed, Placement};
use genuma_machine::processor::prefetch;

use crate::hash::hash;

/// An entry that may become hot.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    weight: u64,
    key: u64,
    /// Where its value lies among the values.
    slot: usize,
}

/// Keeps the entries of the largest weights, among equal ones those of the smaller keys, in a bounded memory.
#[derive(Debug)]
pub(crate) struct Chooser {
    wanted: usize,
    value: usize,
    candidates: Vec<Candidate>,
    values: Vec<u8>,
    /// A weight that is too small from now on.
    too_small: u64,
}

impl Chooser {
    /// For so many hot entries with values of so many bytes.
    pub fn new(wanted: usize, value: usize) -> Chooser {
        Chooser { wanted, value, candidates: Vec::new(), values: Vec::new(), too_small: 0 }
    }

    /// Of what others chose, each of entries of its own.
    pub fn of(others: Vec<Chooser>, wanted: usize, value: usize) -> Chooser {
        let mut all = Chooser::new(wanted, value);
        let mut candidates: Vec<(usize, Candidate)> = Vec::new();
        for (which, chooser) in others.iter().enumerate() {
            candidates.extend(chooser.candidates.iter().map(|&candidate| (which, candidate)));
        }
        candidates.sort_unstable_by_key(|(_, candidate)| candidate.key);
        for (which, Candidate { weight, key, slot }) in candidates {
            all.offer(key, &others[which].values[slot * value..][..value], weight);
        }
        all
    }

    /// The most bytes that choosing so many takes: twice as many entries are kept before half of them go.
    pub fn memory(wanted: usize, value: usize) -> u64 {
        2 * wanted as u64 * (size_of::<Candidate>() + value) as u64
    }

    /// Offers an entry. Keys have to rise. A weight of 0 is never chosen.
    #[inline]
    pub(crate) fn offer(&mut self, key: u64, value: &[u8], weight: u64) {
        if weight > self.too_small && self.wanted > 0 {
            self.keep(key, value, weight);
        }
    }

    fn keep(&mut self, key: u64, value: &[u8], weight: u64) {
        if self.candidates.capacity() == 0 {
            self.candidates.reserve_exact(2 * self.wanted);
            self.values.reserve_exact(2 * self.wanted * self.value);
        }
        let slot = self.candidates.len();
        self.candidates.push(Candidate { weight, key, slot });
        self.values.extend_from_slice(value);
        if self.candidates.len() == 2 * self.wanted {
            self.halve();
        }
    }

    /// Drops all but the wanted ones; what is left is in order of keys.
    fn halve(&mut self) {
        if self.candidates.len() <= self.wanted {
            return;
        }
        let order = |c: &Candidate| (std::cmp::Reverse(c.weight), c.key);
        if let Some(last) = self.wanted.checked_sub(1) {
            let (_, last, _) = self.candidates.select_nth_unstable_by_key(last, order);
            // Later keys are larger: one of the same weight would come after it.
            self.too_small = last.weight;
        }
        self.candidates.truncate(self.wanted);
        self.candidates.sort_unstable_by_key(|c| c.slot);
        for (to, candidate) in self.candidates.iter_mut().enumerate() {
            let from = candidate.slot * self.value;
            self.values.copy_within(from..from + self.value, to * self.value);
            candidate.slot = to;
        }
        self.values.truncate(self.wanted * self.value);
    }

    /// Keys and values of the chosen ones, so many at most, in order of keys.
    pub fn finish(mut self, most: usize) -> (Vec<u64>, Vec<u8>) {
        self.wanted = self.wanted.min(most);
        self.halve();
        (self.candidates.iter().map(|c| c.key).collect(), self.values)
    }
}

/// Hot entries in memory: open addressing, half of the places at most are used.
#[derive(Debug)]
pub struct Hot {
    keys: Placed<u64>,
    /// Number of the place's value, plus one; 0 where there is none.
    numbers: Placed<u32>,
    values: Placed<u8>,
    value: usize,
}

impl Hot {
    /// The most that a table holds.
    pub const MOST: usize = u32::MAX as usize - 1;

    /// Of keys and of values in the same order.
    ///
    /// # Errors
    /// No memory where it was asked for.
    pub fn new(
        keys: &[u64],
        values: Placed<u8>,
        value: usize,
        at: &Placement,
    ) -> Result<Hot, placement::Error> {
        let places = if keys.is_empty() { 0 } else { (2 * keys.len()).next_power_of_two() };
        let mut hot =
            Hot { keys: Placed::zeroed(places, at)?, numbers: Placed::zeroed(places, at)?, values, value };
        for (number, &key) in (1..).zip(keys) {
            let mut place = hot.place(hash(key));
            while hot.numbers[place] != 0 {
                place = (place + 1) & (places - 1);
            }
            hot.keys[place] = key;
            hot.numbers[place] = number;
        }
        Ok(hot)
    }

    fn place(&self, hash: u64) -> usize {
        hash as usize & (self.keys.len() - 1)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.keys[..]) + size_of_val(&self.numbers[..]) + self.values.len()
    }

    /// Asks for the lines where a key of that hash would be.
    #[inline(always)]
    pub fn fetch(&self, hash: u64) {
        if !self.keys.is_empty() {
            let place = self.place(hash);
            prefetch(&self.keys[place]);
            prefetch(&self.numbers[place]);
        }
    }

    /// The value of a key, if it is hot.
    pub fn get(&self, key: u64, hash: u64) -> Option<&[u8]> {
        if self.keys.is_empty() {
            return None;
        }
        let mut place = self.place(hash);
        while self.numbers[place] != 0 {
            if self.keys[place] == key {
                let start = (self.numbers[place] as usize - 1) * self.value;
                return Some(&self.values[start..start + self.value]);
            }
            place = (place + 1) & (self.keys.len() - 1);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use genuma_machine::placement::{Pages, Policy};

    use super::*;

    fn weight(key: u64) -> u64 {
        hash(key) % 100
    }

    #[test]
    fn the_heaviest_are_chosen_and_found() {
        for (n, wanted) in [(0, 3), (5, 0), (5, 7), (1000, 1), (1000, 20), (1000, 500), (1000, 1000)] {
            let mut chooser = Chooser::new(wanted, 2);
            for key in 0..n {
                chooser.offer(key, &(key as u16).to_le_bytes(), weight(key));
            }
            let mut best: Vec<u64> = (0..n).filter(|&key| weight(key) > 0).collect();
            best.sort_by_key(|&key| (std::cmp::Reverse(weight(key)), key));
            best.truncate(wanted);
            best.sort_unstable();
            let (keys, values) = chooser.finish(usize::MAX);
            assert_eq!(keys, best, "{wanted} of {n}");

            let placement = Placement { policy: Policy::Local, pages: Pages::Base };
            let values = Placed::copy_of(&values, &placement).unwrap();
            let hot = Hot::new(&keys, values, 2, &placement).unwrap();
            for key in 0..n + 2 {
                let value = (key as u16).to_le_bytes();
                let expected = best.binary_search(&key).is_ok().then_some(&value[..]);
                assert_eq!(hot.get(key, hash(key)), expected);
            }
        }
    }
}
