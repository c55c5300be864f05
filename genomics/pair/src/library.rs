//! What reads say of their library without anything else: how long, how good, how wrong, how often copied.
//!
//! Every pair is seen as it came and as it was cut. Lengths, copies and telomeres are counted of all pairs; base by base only pairs are looked
//! at that are drawn by a hash of their names, some tens of thousands. What is drawn depends on all pairs together, not on who saw them or when.
//!
//! Damage before amplification is in both mates and all copies: overlaps do not show it. A call learns it from the reads of its places.

pub mod copies;
mod cycles;
pub mod facts;
mod overlap;
mod telomere;

use genuma_reads::Pair;
use genuma_reads::packed::{Codes, Packed};
use serde::{Deserialize, Serialize};

use copies::{Copies, START, mix};
use cycles::{Chances, Cycles};

pub use facts::Library;

/// Pairs of one level that are looked at base by base, at most.
const MOST: u64 = 1 << 14;
/// Levels; each has half as many pairs as the one before.
const LEVELS: usize = 32;
/// Lengths of reads that are told apart.
const LENGTHS: usize = 1024;

/// What is looked at base by base, of some pairs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Detail {
    /// How many pairs.
    pairs: u64,
    cycles: Cycles,
    /// Pairs by the length of their fragment, where the mates overlap.
    fragments: Vec<u64>,
}

impl Detail {
    fn add(&mut self, other: &Detail) {
        self.pairs += other.pairs;
        self.cycles.add(&other.cycles);
        add(&mut self.fragments, &other.fragments);
    }
}

/// Adds numbers side by side.
fn add(sums: &mut Vec<u64>, others: &[u64]) {
    sums.resize(sums.len().max(others.len()), 0);
    sums.iter_mut().zip(others).for_each(|(sum, n)| *sum += n);
}

/// Raises a number of a row that grows.
fn raise(row: &mut Vec<u64>, at: usize) {
    if row.len() <= at {
        row.resize(at + 1, 0);
    }
    row[at] += 1;
}

/// Details level by level: a pair has the level that its hash ends in. A level with too many pairs is forgotten, and all before it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Details {
    lowest: usize,
    levels: Vec<Detail>,
}

impl Details {
    /// For so many pairs, about: levels that will have too many are not begun with.
    fn expecting(pairs: u64) -> Details {
        let too_many = |level: &usize| pairs >> (level + 1) > MOST + MOST / 2;
        Details { lowest: (0..LEVELS - 1).take_while(too_many).count(), levels: Vec::new() }
    }

    /// Where the details of a pair go, if it is drawn.
    #[inline]
    fn of(&mut self, hash: u64) -> Option<&mut Detail> {
        let level = (hash.trailing_zeros() as usize).min(LEVELS - 1);
        if level < self.lowest {
            return None;
        }
        if self.levels.len() <= level {
            self.levels.resize(level + 1, Detail::default());
        }
        if self.levels[level].pairs >= MOST && level + 1 < LEVELS {
            self.forget(level);
            return None;
        }
        Some(&mut self.levels[level])
    }

    #[cold]
    fn forget(&mut self, level: usize) {
        self.lowest = self.lowest.max(level + 1);
        self.levels.iter_mut().take(level + 1).for_each(|detail| *detail = Detail::default());
    }

    fn add(&mut self, other: &Details) {
        self.levels.resize(self.levels.len().max(other.levels.len()), Detail::default());
        self.levels.iter_mut().zip(&other.levels).for_each(|(sum, detail)| sum.add(detail));
        self.lowest = self.lowest.max(other.lowest);
        let full = self.levels.iter().take(LEVELS - 1).rposition(|detail| detail.pairs > MOST);
        let forgotten = self.lowest.checked_sub(1).max(full);
        forgotten.into_iter().for_each(|level| self.forget(level));
    }

    /// All that were drawn.
    fn together(&self) -> Detail {
        let mut all = Detail::default();
        self.levels.iter().for_each(|detail| all.add(detail));
        all
    }
}

/// What was seen of the pairs of one sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LibraryTally {
    pairs: u64,
    bases: u64,
    /// Mates by their length, of each mate.
    lengths: [Vec<u64>; 2],
    /// Pairs with a mate too short for a key.
    short: u64,
    copies: Copies,
    /// Pairs by the motif of telomeres that they hold.
    telomeres: [u64; telomere::MOTIFS.len()],
    details: Details,
}

impl LibraryTally {
    /// Pairs seen.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Bases seen.
    pub fn bases(&self) -> u64 {
        self.bases
    }

    /// Adds what another has seen.
    pub fn add(&mut self, other: &LibraryTally) {
        self.pairs += other.pairs;
        self.bases += other.bases;
        self.lengths.iter_mut().zip(&other.lengths).for_each(|(sums, others)| add(sums, others));
        self.short += other.short;
        self.copies.add(&other.copies);
        self.telomeres.iter_mut().zip(other.telomeres).for_each(|(sum, n)| *sum += n);
        self.details.add(&other.details);
    }
}

/// A pair as it came and as it was cut.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// As it came.
    pub raw: Pair<'a>,
    /// As it was cut.
    pub cut: Pair<'a>,
    /// The bases of both mates, packed, and what was cut behind them.
    pub packed: [Packed<'a>; 2],
}

/// Looks at the pairs that one thread reads.
#[derive(Debug)]
pub struct Observer {
    samples: Vec<LibraryTally>,
    codes: [Codes; 2],
    chances: Chances,
}

impl Observer {
    /// For samples of which all threads together see so many pairs, about; 0: nobody knows. What is surely drawn less of is not looked at
    /// first to be forgotten later: that would be most of what is looked at. Where there are fewer pairs by far than expected, less is drawn.
    pub fn expecting(pairs: &[u64]) -> Observer {
        let of = |pairs: &u64| LibraryTally {
            copies: Copies::expecting(*pairs),
            details: Details::expecting(*pairs),
            ..LibraryTally::default()
        };
        Observer {
            samples: pairs.iter().map(of).collect(),
            codes: Default::default(),
            chances: Chances::default(),
        }
    }

    /// Looks at a pair of a sample, normal 0, tumour 1 and so on.
    #[inline]
    pub fn see(&mut self, seen: &Seen<'_>, sample: u8) {
        let Seen { raw, cut, packed } = *seen;
        let tally = &mut self.samples[usize::from(sample)];
        tally.pairs += 1;
        for (lengths, mate) in tally.lengths.iter_mut().zip(raw.mates) {
            tally.bases += mate.seq.len() as u64;
            raise(lengths, mate.seq.len().min(LENGTHS));
        }
        if cut.mates.iter().all(|mate| mate.seq.len() >= START) {
            tally.copies.see(packed);
        } else {
            tally.short += 1;
        }
        if let Some(motif) = telomere::of(cut, packed) {
            tally.telomeres[motif] += 1;
        }
        if let Some(detail) = tally.details.of(hash(raw)) {
            detail.pairs += 1;
            detail.cycles.see(raw.mates, &self.chances);
            let [one, two] = &mut self.codes;
            one.load(cut.mates[0].seq, cut.mates[0].qual, 0);
            two.load(cut.mates[1].seq, cut.mates[1].qual, 0);
            if let Some(fragment) = overlap::fragment((one, cut.mates[0].qual), (two, cut.mates[1].qual)) {
                raise(&mut detail.fragments, fragment.min(2 * LENGTHS));
                detail.cycles.compare([one, two], cut.mates, fragment, &self.chances);
            }
        }
    }

    /// What was seen of each sample.
    pub fn finish(self) -> Vec<LibraryTally> {
        self.samples
    }
}

/// By what a pair is drawn: its name, and how its first mate begins, as names may be all alike.
#[inline]
fn hash(pair: Pair<'_>) -> u64 {
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let mut last = [0; 8];
    let (words, rest) = pair.name.as_chunks::<8>();
    last[..rest.len()].copy_from_slice(rest);
    let all = words.iter().chain([&last]).chain(pair.mates[0].seq.first_chunk::<8>());
    let folded = all
        .fold(0, |hash: u64, bytes| (hash.rotate_left(23) ^ word(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mix(folded, pair.name.len() as u64)
}

#[cfg(test)]
mod tests;
