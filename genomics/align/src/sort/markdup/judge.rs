//! Decides which of all templates are copies, from what was collected of each.

use std::cmp::Reverse;
use std::mem::replace;
use std::sync::Arc;

use super::super::Error;
use super::super::merge::{Item, Merge, Merged, Piece, sorted};
use super::super::spill::Spill;
use super::super::store::Store;
use super::ends::{Pair, Single};
use super::{Ends, Marked, Marks};

/// A set that may say yes for a place that is not in it: tells which reads of pairs need not be compared with single
/// ones.
#[derive(Debug)]
struct Sieve {
    bits: Vec<u64>,
    shift: u32,
}

impl Sieve {
    /// Of about that many bytes.
    fn new(bytes: usize) -> Sieve {
        let bytes = bytes.clamp(1 << 10, 64 << 20).next_power_of_two();
        Sieve { bits: vec![0; bytes / 8], shift: 64 - (8 * bytes).ilog2() }
    }

    fn at(&self, (place, kind): (u64, u32)) -> (usize, u64) {
        // Fibonacci hashing (Knuth, volume 3, section 6.4).
        let hash = (place ^ u64::from(kind).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bit = (hash ^ hash >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn insert(&mut self, place: (u64, u32)) {
        let (word, bit) = self.at(place);
        self.bits[word] |= bit;
    }

    fn may_have(&self, place: (u64, u32)) -> bool {
        let (word, bit) = self.at(place);
        self.bits[word] & bit != 0
    }
}

/// Collects what is compared of all templates, and judges.
pub(crate) struct Judge {
    pairs: Store<Pair>,
    singles: Store<Single>,
    sieve: Sieve,
}

/// Places that are handed on together, bytes.
const BATCH: usize = 1 << 20;

impl Judge {
    /// One with that much memory (bytes), without the marks themselves.
    pub(crate) fn new(spill: &Arc<Spill>, budget: usize, threads: usize) -> Judge {
        Judge {
            pairs: Store::new(spill, budget / 8 * 5, threads),
            singles: Store::new(spill, budget / 4, threads),
            sieve: Sieve::new(budget / 16),
        }
    }

    /// Takes what was collected of a block, whose templates count from `base`.
    pub(crate) fn push(&mut self, ends: Ends, base: u64) -> Result<(), Error> {
        let mut rest = &ends.singles[..];
        while !rest.is_empty() {
            self.sieve.insert(Single::place(rest));
            rest = &rest[Single::length(rest)..];
        }
        self.pairs.push(Piece { items: ends.pairs, base })?;
        self.singles.push(Piece { items: ends.singles, base })
    }

    /// Decides over `templates` templates.
    pub(crate) fn judge(self, templates: u64) -> Result<(Marks, Marked), Error> {
        let Judge { pairs, mut singles, sieve } = self;
        let mut verdict = Verdict { marks: Marks::new(templates), counts: Marked::default() };
        verdict.pairs(pairs.merge()?, &sieve, &mut singles)?;
        verdict.singles(singles.merge()?)?;
        Ok((verdict.marks, verdict.counts))
    }
}

struct Verdict {
    marks: Marks,
    counts: Marked,
}

/// The best read so far among copies.
#[derive(Debug, Default)]
struct Best {
    score: u32,
    ordinal: u64,
    last: bool,
    name: Vec<u8>,
}

impl Verdict {
    /// Marks all pairs but the best of each group, seen from the left and from the right. Sends on the places that single
    /// reads may have too.
    fn pairs(
        &mut self,
        mut merge: Merge<Pair>,
        sieve: &Sieve,
        singles: &mut Store<Single>,
    ) -> Result<(), Error> {
        let mut group = Pair::LAST;
        let mut best: [Option<Best>; 2] = [None, None];
        let mut places = Vec::new();
        while let Some(Merged { ordinal, item }) = merge.next()? {
            let key = Pair::key(item);
            if key != group {
                group = key;
                best = [None, None];
            }
            let (score, name) = (Pair::score(item), Pair::name(item));
            for (side, (looked_at, last)) in Pair::sides(item).into_iter().enumerate() {
                if !looked_at {
                    continue;
                }
                self.counts.paired += 1;
                let at = places.len();
                Pair::push_end(item, side, &mut places);
                if !sieve.may_have(Single::place(&places[at..])) {
                    places.truncate(at);
                }
                let (lost, last) = match &mut best[side] {
                    None => {
                        best[side] = Some(Best { score, ordinal, last, name: name.to_vec() });
                        continue;
                    }
                    Some(b) if (score, Reverse(name)) > (b.score, Reverse(&b.name[..])) => {
                        b.score = score;
                        b.name.clear();
                        b.name.extend_from_slice(name);
                        (replace(&mut b.ordinal, ordinal), replace(&mut b.last, last))
                    }
                    Some(_) => (ordinal, last),
                };
                self.marks.set(lost, last);
                self.counts.paired_duplicates += 1;
            }
            if places.len() >= BATCH {
                singles.push(Piece { items: sorted::<Single>(&places), base: 0 })?;
                places.clear();
            }
        }
        singles.push(Piece { items: sorted::<Single>(&places), base: 0 })
    }

    /// Marks all single reads where a read of a pair is, and else all but the best.
    fn singles(&mut self, mut merge: Merge<Single>) -> Result<(), Error> {
        let mut group = None;
        let mut of_pair = false;
        let mut best = None;
        while let Some(Merged { ordinal, item }) = merge.next()? {
            let place = Single::place(item);
            if group != Some(place) {
                (group, of_pair, best) = (Some(place), false, None);
            }
            if Single::is_of_pair(item) {
                of_pair = true;
                continue;
            }
            self.counts.single += 1;
            let this = (Single::rank(item), ordinal, Single::is_last(item));
            let lost = match &mut best {
                _ if of_pair => this,
                None => {
                    best = Some(this);
                    continue;
                }
                Some(b) if this.0 < b.0 => replace(b, this),
                Some(_) => this,
            };
            self.marks.set(lost.1, lost.2);
            self.counts.single_duplicates += 1;
        }
        Ok(())
    }
}
