//! Where both mates stand in many places: those of each beside which the other one lies as mates do, by the lists of their seeds, before the
//! reference is looked at anywhere.

use std::ops::Range;

use crate::diagonal::Diagonal;
use crate::index::View;
use crate::insert::Inserts;
use crate::mapper::{Waiting, listed};
use crate::place::Place;

/// Most places of a list that is looked at in any case: the first two where mates do not fit yet, the first where they do; and of further lists as long
/// as few places were looked at; and places in all.
const LONG_LIST: u32 = 100_000;
const FURTHER_LIST: u32 = 20_000;
const FEW_PLACES: u32 = 200;
const MORE_PLACES: u32 = 400;
/// Places of all lists that are looked at for a read alone.
const ALONE: u32 = 2_000;
/// So many places are kept whether or not they join.
const ALL: usize = 256;
/// So many are put in order all, as seeds may say the same.
const UNSORTED: usize = 2_000;
/// Places of a read that are kept at most.
const MOST: usize = 4_000;
/// Bases that a pair's distance may be off before its ends are known (gaps).
const SLACK: i64 = 30;
/// Votes of a place that was looked at before.
const KNOWN: u32 = 512;

/// Bytes that are cleared as fast as one alone.
const LINE: usize = 64;

/// A mate whose places are joined.
#[derive(Debug, Clone, Copy)]
pub struct Mate<'a> {
    /// Those that are known.
    pub places: &'a [Place],
    /// Lists that have more.
    pub lists: &'a [Waiting],
    /// Its bases.
    pub length: usize,
}

impl Mate<'_> {
    /// The diagonals of the places that are known.
    fn known(&self) -> impl Iterator<Item = Diagonal> {
        let known = |place: &Place| Diagonal::new(place.left, place.reverse, place.anchor).with_votes(KNOWN);
        self.places.iter().map(known)
    }

    /// Hands these and all that the lists say to `each`.
    #[inline(always)]
    fn each(&self, view: &View<'_>, mut each: impl FnMut(Diagonal)) {
        self.known().for_each(&mut each);
        self.lists.iter().for_each(|list| listed(view, list, self.length, &mut each));
    }
}

/// Buffers.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    cells: Cells,
    /// Diagonals of each mate, in order, each once, and of each the votes of the best pair that it is in.
    keys: [Vec<Diagonal>; 2],
    marks: [Vec<u16>; 2],
    buffers: [Vec<Diagonal>; 2],
    found: [Vec<Diagonal>; 2],
}

/// How many lists are looked at, of some that are sorted by length: one at least, or two where the mates do not fit yet, if they are not too long;
/// then more until many places were looked at, as short lists may be of differences.
pub fn looked_at(lists: &[Waiting], fitting: bool) -> usize {
    let mut sum = 0;
    for (n, list) in lists.iter().enumerate() {
        let most = match (n, fitting) {
            (0, _) | (1, false) => LONG_LIST,
            _ if sum < FEW_PLACES => FURTHER_LIST,
            _ => MORE_PLACES.saturating_sub(sum),
        };
        if list.places > most {
            return n;
        }
        sum += list.places;
    }
    lists.len()
}

/// The same for a read alone, all of whose places are looked at.
pub(crate) fn looked_at_alone(lists: &[Waiting]) -> usize {
    let mut sum = 0;
    let few = |list: &&Waiting| {
        sum += list.places;
        sum <= ALONE
    };
    lists.iter().take_while(few).count()
}

impl Joiner {
    /// Finds, for each of two mates, the diagonals that are not known and beside which the other mate has one, in order; where a mate has few, all. Says
    /// whether there were more than are kept: then those that fewer seeds speak for were left out.
    #[inline(always)]
    pub fn join(&mut self, view: &View<'_>, inserts: &Inserts, mates: [Mate<'_>; 2]) -> [bool; 2] {
        let totals = mates.map(|mate| {
            mate.places.len() + mate.lists.iter().map(|list| list.places as usize).sum::<usize>()
        });
        let highest = inserts.all.iter().flatten().map(|insert| insert.high).max().unwrap_or(0);
        let reach = (highest + SLACK) as u64 + (mates[0].length + mates[1].length) as u64;
        self.cells.fit(32 * view.words.len() as u64, reach);
        // Of the mate that has more only what has a cell of the other's near is put in order, and then of that one the same; if they are many.
        let (fewer, more) = if totals[0] <= totals[1] { (0, 1) } else { (1, 0) };
        let all = totals.map(|total| total <= UNSORTED);
        if !all[more] {
            mates[fewer].each(view, |key| self.cells.set(key));
        }
        self.collect(view, mates[more], more, all[more]);
        if !all[more] && !self.cells.clear_all(totals[fewer]) {
            mates[fewer].each(view, |key| self.cells.clear(key));
        }
        if !all[fewer] {
            self.keys[more].iter().for_each(|&key| self.cells.set(key));
        }
        self.collect(view, mates[fewer], fewer, all[fewer]);
        if !all[fewer] {
            self.keys[more].iter().for_each(|&key| self.cells.clear(key));
        }
        self.mark(inserts, mates);
        [0, 1].map(|mate| self.keep(mate, all[mate] && self.keys[mate].len() <= ALL))
    }

    /// The same for a read alone: all diagonals that are not known.
    #[inline(always)]
    pub fn all(&mut self, view: &View<'_>, read: Mate<'_>) {
        self.collect(view, read, 0, true);
        let [found, _] = &mut self.found;
        found.clear();
        found.extend(self.keys[0].iter().filter(|key| key.votes() < KNOWN));
    }

    /// What the last call found for a mate.
    pub fn found(&self, mate: usize) -> &[Diagonal] {
        &self.found[mate]
    }

    /// The diagonals of a mate, in order: all, or those that have a cell near.
    #[inline(always)]
    fn collect(&mut self, view: &View<'_>, mate: Mate<'_>, number: usize, all: bool) {
        let Joiner { cells, keys, buffers: [some, merged], .. } = self;
        let keys = &mut keys[number];
        keys.clear();
        keys.extend(mate.known());
        keys.sort_unstable();
        keys.push(Diagonal::LAST);
        for list in mate.lists {
            let most = view.list(list.list).len() + 1;
            if some.len() < most {
                some.resize(most, Diagonal::LAST);
            }
            let mut n = 0;
            if all {
                listed(view, list, mate.length, |key| {
                    some[n] = key;
                    n += 1;
                });
            } else {
                listed(view, list, mate.length, |key| {
                    some[n] = key;
                    n += usize::from(cells.near(key));
                });
            }
            some[n] = Diagonal::LAST;
            merge(keys, &some[..=n], merged);
        }
        keys.pop();
    }

    /// Marks the diagonals of mates that lie as mates do: by the most votes that both have together, a place that is known having those of all lists.
    #[inline(always)]
    fn mark(&mut self, inserts: &Inserts, mates: [Mate<'_>; 2]) {
        let Joiner { keys, marks, .. } = self;
        for (marks, keys) in marks.iter_mut().zip(&*keys) {
            marks.clear();
            marks.resize(keys.len(), 0);
        }
        let first_base = |key: Diagonal, mate: usize| {
            key.left() as i64 + if key.reverse() { mates[mate].length as i64 - 1 } else { 0 }
        };
        let votes = |key: Diagonal, mate: usize| {
            if key.votes() >= KNOWN { mates[mate].lists.len() as u32 } else { key.votes() }
        };
        for (orientation, insert) in inserts.all.iter().enumerate() {
            let Some(insert) = insert else { continue };
            let strands = [orientation & 2 != 0, orientation & 1 != 0];
            for (a, b) in [(0, 1), (1, 0)] {
                // Mate a lies before mate b.
                let behind = on(&keys[b], strands[1]);
                let mut low = behind.start;
                for x in on(&keys[a], strands[0]) {
                    let key = keys[a][x];
                    let at = first_base(key, a);
                    let far = |other: Diagonal| first_base(other, b) - at + 1;
                    while low < behind.end && far(keys[b][low]) < insert.low - SLACK {
                        low += 1;
                    }
                    for y in low..behind.end {
                        let other = keys[b][y];
                        if far(other) > insert.high + SLACK {
                            break;
                        }
                        let both = (votes(key, a) + votes(other, b)) as u16;
                        marks[a][x] = marks[a][x].max(both);
                        marks[b][y] = marks[b][y].max(both);
                    }
                }
            }
        }
    }

    /// Keeps the diagonals that are not known and are marked, or all: if they are too many those of most votes, and of those with the fewest every
    /// so manieth. Whether they were too many.
    #[inline(always)]
    fn keep(&mut self, mate: usize, all: bool) -> bool {
        let Joiner { keys, marks, found, .. } = self;
        let joined = || {
            let keys = keys[mate].iter().zip(&marks[mate]);
            keys.filter(|(key, mark)| (all || **mark > 0) && key.votes() < KNOWN)
                .map(|(key, mark)| (*key, *mark))
        };
        let found = &mut found[mate];
        found.clear();
        found.extend(joined().map(|(key, _)| key));
        if found.len() <= MOST {
            return false;
        }
        let most = joined().map(|(_, mark)| mark).max().unwrap_or(0);
        let mut counts = vec![0; usize::from(most) + 1];
        joined().for_each(|(_, mark)| counts[usize::from(mark)] += 1);
        let (mut left, mut least) = (MOST, most);
        while counts[usize::from(least)] <= left {
            left -= counts[usize::from(least)];
            least -= 1;
        }
        let step = counts[usize::from(least)].div_ceil(left.max(1));
        let mut n = 0;
        found.clear();
        found.extend(
            joined()
                .filter(|(_, mark)| {
                    n += usize::from(*mark == least);
                    *mark > least || *mark == least && n % step == 0
                })
                .map(|(key, _)| key),
        );
        true
    }
}

/// Which of some diagonals in order are on a strand.
#[inline(always)]
fn on(keys: &[Diagonal], reverse: bool) -> Range<usize> {
    let middle = keys.partition_point(|key| !key.reverse());
    if reverse { middle..keys.len() } else { 0..middle }
}

/// Merges diagonals in order into others in order, each once, with the votes of both. Both end with [`Diagonal::LAST`]; `merged` is a buffer.
#[inline(always)]
fn merge(all: &mut Vec<Diagonal>, more: &[Diagonal], merged: &mut Vec<Diagonal>) {
    let most = all.len() + more.len();
    if merged.len() < most {
        merged.resize(most, Diagonal::LAST);
    }
    let (mut i, mut j, mut n) = (0, 0, 0);
    let mut last = Diagonal::LAST;
    // Nothing branches but the end: which of the two is next, and whether it is the last one again, nobody can foresee.
    while i + 1 < all.len() || j + 1 < more.len() {
        let (one, other) = (all[i], more[j]);
        let first = one <= other;
        let next = if first { one } else { other };
        i += usize::from(first);
        j += usize::from(!first);
        let again = next.same(last);
        n += usize::from(!again);
        last = if again { last.with_votes(last.votes() + next.votes()) } else { next };
        merged[n - 1] = last;
    }
    merged[n] = Diagonal::LAST;
    merged.truncate(n + 1);
    std::mem::swap(all, merged);
}

/// A bit for each stretch of the reference: some diagonal is there. Nothing is, between calls.
#[derive(Debug, Default)]
struct Cells {
    bits: Vec<u8>,
    /// Bits of a packed base that are within a stretch.
    within: u32,
}

impl Cells {
    /// Stretches of `reach` bases at least, for so many.
    fn fit(&mut self, bases: u64, reach: u64) {
        self.within = u64::BITS - reach.leading_zeros();
        let needed = (bases >> self.within) as usize / 8 + 3;
        if self.bits.len() < needed {
            self.bits.resize(needed, 0);
        }
    }

    /// The byte and the bit of a diagonal; the first bit stands before all.
    #[inline(always)]
    fn at(&self, key: Diagonal) -> (usize, u32) {
        let cell = (key.left() >> self.within) as usize + 1;
        (cell / 8, (cell % 8) as u32)
    }

    #[inline(always)]
    fn set(&mut self, key: Diagonal) {
        let (byte, bit) = self.at(key);
        self.bits[byte] |= 1 << bit;
    }

    #[inline(always)]
    fn clear(&mut self, key: Diagonal) {
        let (byte, _) = self.at(key);
        self.bits[byte] = 0;
    }

    /// Clears all bits, if that is less work than to clear those of so many diagonals, and says so.
    fn clear_all(&mut self, diagonals: usize) -> bool {
        let less = self.bits.len() < LINE * diagonals;
        if less {
            self.bits.fill(0);
        }
        less
    }

    /// Whether one is in the same stretch, in that before or in the next one.
    #[inline(always)]
    fn near(&self, key: Diagonal) -> bool {
        let before = (key.left() >> self.within) as usize;
        let bytes = &self.bits[before / 8..before / 8 + 2];
        u16::from_le_bytes([bytes[0], bytes[1]]) >> (before % 8) & 7 != 0
    }
}

#[cfg(test)]
mod tests {
    use genuma_machine::processor::Vectors;
    use genuma_reads::dna::revcomp;

    use super::*;
    use crate::index::tests::{Dice, index};
    use crate::insert::Distances;
    use crate::mapper::{self, Draft};
    use crate::options::Options;

    fn some(dice: &mut Dice, n: usize, bases: usize) -> Vec<Diagonal> {
        let mut keys: Vec<Diagonal> = (0..n)
            .map(|_| Diagonal::new(dice.roll(bases) as u64, dice.roll(2) == 1, dice.roll(100) as u16))
            .collect();
        keys.sort_unstable();
        keys.dedup_by(|one, other| one.same(*other));
        keys
    }

    /// The diagonals of a mate beside which the other one has one: each against each.
    fn naive(
        keys: &[Vec<Diagonal>; 2],
        lengths: [i64; 2],
        low: i64,
        high: i64,
        mate: usize,
    ) -> Vec<(u64, bool)> {
        let first = |key: &Diagonal, mate: usize| {
            key.left() as i64 + if key.reverse() { lengths[mate] - 1 } else { 0 }
        };
        let joins = |key: &Diagonal, other: &Diagonal| {
            let away = first(other, 1 - mate) - first(key, mate);
            let far = if key.reverse() { -away } else { away } + 1;
            key.reverse() != other.reverse() && (low - SLACK..=high + SLACK).contains(&far)
        };
        let joined = keys[mate].iter().filter(|key| keys[1 - mate].iter().any(|other| joins(key, other)));
        let mut joined: Vec<_> = joined.map(|key| (key.left(), key.reverse())).collect();
        joined.sort_unstable_by_key(|&(left, reverse)| (reverse, left));
        joined.dedup();
        joined
    }

    #[test]
    fn what_joins_is_what_a_naive_loop_says() {
        // Copies whole, reversed, and halves of which only one mate is.
        let mut dice = Dice(4);
        let whole = dice.bases(400);
        let turned = revcomp(&whole);
        let kinds = [&whole[..], &turned, &whole[..200], &whole[200..], &turned[..200]];
        for copies in [150, 1800] {
            let mut letters = Vec::new();
            for _ in 0..copies {
                let n = 100 + dice.roll(400);
                letters.extend(dice.bases(n));
                letters.extend_from_slice(kinds[dice.roll(kinds.len())]);
            }
            let index = index(&[("copies".into(), letters)]);
            let view = index.view();
            let reads = [whole[..150].to_vec(), revcomp(&whole[250..])];
            let mut draft = Draft::default();
            let (options, vectors) = (Options::default(), Vectors::widest());
            let letters = reads.iter().map(Vec::as_slice);
            mapper::map(&view, &options, vectors, &mut Default::default(), letters, &mut draft);
            let mates = [0, 1].map(|mate| {
                let lists = draft.waiting_of(mate);
                Mate { places: draft.of(mate), lists: &lists[..looked_at(lists, false)], length: 150 }
            });
            let keys = mates.map(|mate| {
                let mut keys = Vec::new();
                mate.lists.iter().for_each(|list| listed(&view, list, 150, |key| keys.push(key)));
                keys.sort_unstable();
                keys.dedup_by(|one, other| one.same(*other));
                keys
            });
            for from in [300, 700] {
                let mut distances = Distances::default();
                distances[1] = (from..from + 200).collect();
                let inserts = Inserts::new(distances, 1);
                let insert = inserts.all[1].as_ref().unwrap();
                let mut joiner = Joiner::default();
                assert_eq!(joiner.join(&view, &inserts, mates), [false; 2]);
                for mate in 0..2 {
                    let found: Vec<_> =
                        joiner.found(mate).iter().map(|key| (key.left(), key.reverse())).collect();
                    let all = keys[mate].len() <= ALL;
                    let expected = naive(&keys, [150; 2], insert.low, insert.high, mate);
                    assert!(all || found == expected, "{} {}", found.len(), expected.len());
                    assert!(!all || found.len() >= expected.len());
                }
                assert!(joiner.cells.bits.iter().all(|bits| *bits == 0));
                assert!(copies == 150 || joiner.found(0).len() > 300);
            }
        }
    }

    #[test]
    fn merging_counts_each_once() {
        let mut dice = Dice(1);
        for _ in 0..300 {
            let lists: Vec<Vec<Diagonal>> = (0..4)
                .map(|_| {
                    let n = dice.roll(40);
                    some(&mut dice, n, 60)
                })
                .collect();
            let (mut all, mut merged) = (vec![Diagonal::LAST], Vec::new());
            for list in &lists {
                merge(&mut all, &[&list[..], &[Diagonal::LAST]].concat(), &mut merged);
            }
            assert_eq!(all.pop(), Some(Diagonal::LAST));
            assert!(all.is_sorted());
            let count = |key: Diagonal| lists.iter().flatten().filter(|other| other.same(key)).count() as u32;
            assert!(all.iter().all(|key| key.votes() == count(*key)));
            assert!(
                lists.iter().flatten().all(|key| all.iter().filter(|other| other.same(*key)).count() == 1)
            );
        }
    }

    #[test]
    fn cells_know_what_is_within_reach() {
        let mut dice = Dice(2);
        let mut cells = Cells::default();
        for _ in 0..200 {
            let (bases, reach) = (1 + dice.roll(1 << 20), 1 + dice.roll(5000));
            cells.fit(bases as u64, reach as u64);
            let n = dice.roll(20);
            let keys = some(&mut dice, n, bases);
            keys.iter().for_each(|key| cells.set(*key));
            for other in some(&mut dice, 200, bases) {
                let within = |far: u64| keys.iter().any(|key| key.left().abs_diff(other.left()) <= far);
                assert!(cells.near(other) || !within(reach as u64));
                assert!(!cells.near(other) || within(4 * reach as u64));
            }
            keys.iter().for_each(|key| cells.clear(*key));
            assert!(cells.bits.iter().all(|bits| *bits == 0));
        }
    }
}
