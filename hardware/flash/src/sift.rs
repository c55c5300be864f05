//! What needs no flash: which keys are absent or hot, and in which pages the others would be.

use crate::answers::Part as Room;
use crate::filter;
use crate::hash::hash;
use crate::index::TOGETHER;
use crate::table::Table;

/// Keys whose lines of the filter are asked for together.
const AHEAD: usize = 16;

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
    let mut hashes = [0; AHEAD];
    let mut next_hashes = [0; AHEAD];
    let mut may = [false; AHEAD];
    let mut left = [0; AHEAD];
    let mut chunks = keys.chunks(AHEAD).peekable();
    fetch(table, chunks.peek().copied().unwrap_or_default(), &mut next_hashes);
    for first in (first..).step_by(AHEAD) {
        let Some(keys) = chunks.next() else { break };
        std::mem::swap(&mut hashes, &mut next_hashes);
        // While these are looked at, the lines of the next are on their way.
        fetch(table, chunks.peek().copied().unwrap_or_default(), &mut next_hashes);
        filter::sieve(&table.filter, &hashes[..keys.len()], &mut may[..keys.len()]);
        // Which keys are left is written without a branch: there would be no telling which way it goes.
        let mut lefts = 0;
        for (number, (&key, &may)) in keys.iter().zip(&may).enumerate() {
            left[lefts] = number;
            lefts += usize::from((least <= key) & (key <= most) & may);
        }
        counted.told_absent += (keys.len() - lefts) as u64;
        let left = &left[..lefts];
        left.iter().for_each(|&number| table.hot.fetch(hashes[number]));
        let mut cold = [(0, 0); TOGETHER];
        let mut colds = 0;
        for &number in left {
            match table.hot.get(keys[number], hashes[number]) {
                Some(value) => {
                    room.put(first + number, value);
                    counted.hot += 1;
                }
                None => {
                    cold[colds] = (keys[number], first + number);
                    colds += 1;
                }
            }
            if colds == TOGETHER {
                place(table, &cold, wanted);
                colds = 0;
            }
        }
        place(table, &cold[..colds], wanted);
    }
}

/// Hashes keys, and asks for their lines of the filter.
#[inline(always)]
fn fetch(table: &Table, keys: &[u64], hashes: &mut [u64; AHEAD]) {
    for (key, place) in keys.iter().zip(hashes) {
        *place = hash(*key);
        filter::fetch(&table.filter, *place);
    }
}

/// Notes keys, each with its number, as wanted from their pages.
fn place(table: &Table, cold: &[(u64, usize)], wanted: &mut Vec<Wanted>) {
    let mut keys = [0; TOGETHER];
    let mut pages = [0; TOGETHER];
    for (place, (key, _)) in keys.iter_mut().zip(cold) {
        *place = *key;
    }
    table.index.find(&keys[..cold.len()], &mut pages);
    wanted.extend(cold.iter().zip(pages).map(|(&(_, key), page)| Wanted { page: page as u64, key }));
}
