//! What needs no flash: which keys are absent or hot, and in which pages the others would be.

use genuma_machine::processor::widest;

use crate::answers::Part as Room;
use crate::filter;
use crate::hash::hash;
use crate::index::TOGETHER;
use crate::table::Table;

/// A key that has to be looked for in its page.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The page, counted from 0.
    pub page: u64,
    /// Number of the key among those asked for.
    pub key: usize,
}

/// What a reader has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Keys asked for.
    pub keys: u64,
    /// Of these, absent by the range of keys or by the filter.
    pub told_absent: u64,
    /// Of these, answered by the hot entries.
    pub hot: u64,
    /// Pages read from flash.
    pub pages: u64,
}

/// Answers what can be answered in memory, and notes the others as wanted. `first` is the number of the first of `keys`.
pub fn sift(
    table: &Table,
    first: usize,
    keys: &[u64],
    room: &mut Room<'_>,
    wanted: &mut Vec<Wanted>,
    counted: &mut Counted,
) {
    counted.keys += keys.len() as u64;
    let Some((least, most)) = table.range() else {
        counted.told_absent += keys.len() as u64;
        return;
    };
    let (mut now, mut next) = (Fetched::default(), Fetched::default());
    let mut may = [false; TOGETHER];
    let mut left = [0; TOGETHER];
    let mut chunks = keys.chunks(TOGETHER).peekable();
    next.fetch(table, chunks.peek().copied().unwrap_or_default(), least);
    for first in (first..).step_by(TOGETHER) {
        let Some(keys) = chunks.next() else { break };
        std::mem::swap(&mut now, &mut next);
        // While these are looked at, the lines of the next are on their way.
        next.fetch(table, chunks.peek().copied().unwrap_or_default(), least);
        let Fetched { hashes, groups, blocks } = &now;
        let n = keys.len();
        filter::sieve(&table.filter, &blocks[..n], &hashes[..n], &mut may[..n]);
        // Which keys are left is written without a branch: there would be no telling which way it goes.
        let mut lefts = 0;
        for (number, (&key, &may)) in keys.iter().zip(&may).enumerate() {
            left[lefts] = number;
            lefts += usize::from((least <= key) & (key <= most) & may);
        }
        counted.told_absent += (n - lefts) as u64;
        let left = &left[..lefts];
        left.iter().for_each(|&number| table.hot.fetch(hashes[number]));
        let mut cold = Cold::default();
        for &number in left {
            match table.hot.get(keys[number], hashes[number]) {
                Some(value) => {
                    room.put(first + number, value);
                    counted.hot += 1;
                }
                None => cold.put(keys[number], groups[number], first + number),
            }
        }
        cold.place(table, wanted);
    }
}

/// What is known of keys whose lines of the filter are on their way.
#[derive(Default)]
struct Fetched {
    hashes: [u64; TOGETHER],
    /// Groups of pages in which the keys would be.
    groups: [usize; TOGETHER],
    /// Their blocks of the filter.
    blocks: [usize; TOGETHER],
}

impl Fetched {
    /// Hashes keys, looks for their groups, and asks for their lines of the filter. No key of the table is below `least`.
    #[inline(always)]
    fn fetch(&mut self, table: &Table, keys: &[u64], least: u64) {
        let mut inside = [0; TOGETHER];
        for (place, key) in inside.iter_mut().zip(keys) {
            *place = least.max(*key);
        }
        widest(
            #[inline(always)]
            || table.index.groups(&inside[..keys.len()], &mut self.groups),
        );
        for (i, &key) in keys.iter().enumerate() {
            self.hashes[i] = hash(key);
            self.blocks[i] = table.layout.block(self.groups[i], self.hashes[i]);
            filter::fetch(&table.filter, self.blocks[i]);
        }
    }
}

/// Keys that have to be looked for in their pages.
#[derive(Default)]
struct Cold {
    keys: [u64; TOGETHER],
    groups: [usize; TOGETHER],
    /// Their numbers among those asked for.
    numbers: [usize; TOGETHER],
    len: usize,
}

impl Cold {
    #[inline(always)]
    fn put(&mut self, key: u64, group: usize, number: usize) {
        let at = self.len;
        (self.keys[at], self.groups[at], self.numbers[at]) = (key, group, number);
        self.len = at + 1;
    }

    /// Notes them as wanted.
    fn place(mut self, table: &Table, wanted: &mut Vec<Wanted>) {
        widest(
            #[inline(always)]
            || table.index.pages(&self.keys[..self.len], &mut self.groups),
        );
        let own = self.numbers.iter().zip(self.groups).take(self.len);
        wanted.extend(own.map(|(&key, page)| Wanted { page: page as u64, key }));
    }
}
