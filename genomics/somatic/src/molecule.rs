//! PCR copies: pairs that start and end at the same places come from one molecule.
//!
//! Copies share what damage and PCR did to their molecule, but each is read anew; so the evidence of copies is added
//! up as that of one molecule, and a molecule counts once.

use std::collections::HashMap;

/// Bases compared at the start of each mate; no others are looked at.
pub const PREFIX: usize = 32;
/// Bases by which pairs that may be copies are found: the start of either mate without an error.
const KEY: usize = 12;
/// Differences allowed over both prefixes: sequencing errors in one of the copies.
const DIFFERENCES: usize = 4;

fn differ(a: &[u8], b: &[u8]) -> usize {
    match (a.first_chunk::<PREFIX>(), b.first_chunk::<PREFIX>()) {
        // Of known length, compilers make vectors of it.
        (Some(a), Some(b)) => a.iter().zip(b).map(|(x, y)| u8::from(x != y)).sum::<u8>().into(),
        _ => a.iter().zip(b).take(PREFIX).filter(|(x, y)| x != y).count(),
    }
}

/// A pair of mates of some sample.
pub trait Mates {
    /// Which sample.
    fn sample(&self) -> u8;
    /// Bases of read 1 and of read 2.
    fn seqs(&self) -> [&[u8]; 2];
}

/// Copies are read from the same end or from the other.
fn same_molecule(a: &impl Mates, b: &impl Mates) -> bool {
    let (one, other) = (a.seqs(), b.seqs());
    let ends = |x: usize, y: usize| {
        let first = differ(one[0], other[x]);
        first <= DIFFERENCES && first + differ(one[1], other[y]) <= DIFFERENCES
    };
    a.sample() == b.sample() && (ends(0, 1) || ends(1, 0))
}

/// A sample and the start of a mate.
type Start<'a> = (u8, &'a [u8]);

/// Pairs with one start that are compared one by one. In satellites thousands have it, of which each would be compared with all others.
const MANY: usize = 32;
/// Parts of the other mate's prefix: of two that differ in [`DIFFERENCES`] bases at most, one is the same.
const PARTS: usize = DIFFERENCES + 1;

/// The pairs that stand for a molecule, by the start of either mate.
#[derive(Default)]
struct Heads<'a> {
    all: HashMap<Start<'a>, Vec<u32>>,
    /// Beyond the first [`MANY`] of a start, by each part of the other mate.
    by_part: HashMap<(Start<'a>, usize, &'a [u8]), Vec<u32>>,
    /// The same whose other mate is too short for that.
    short: HashMap<Start<'a>, Vec<u32>>,
}

/// The parts of a prefix.
fn parts(prefix: &[u8; PREFIX]) -> impl Iterator<Item = (usize, &[u8])> {
    (0..PARTS).map(|i| (i, &prefix[i * PREFIX / PARTS..(i + 1) * PREFIX / PARTS]))
}

impl<'a> Heads<'a> {
    /// Adds a pair by the start of a mate; `other` is its other mate.
    fn put(&mut self, start: Start<'a>, other: &'a [u8], head: u32) {
        let all = self.all.entry(start).or_default();
        all.push(head);
        if all.len() <= MANY {
            return;
        }
        match other.first_chunk() {
            Some(prefix) => {
                for (i, part) in parts(prefix) {
                    self.by_part.entry((start, i, part)).or_default().push(head);
                }
            }
            None => self.short.entry(start).or_default().push(head),
        }
    }

    /// All that may be of one molecule with a pair, and few others; some more than once.
    fn like(&self, start: Start<'a>, other: &'a [u8]) -> impl Iterator<Item = u32> {
        let all = self.all.get(&start).map_or(&[][..], Vec::as_slice);
        let prefix = other.first_chunk().filter(|_| all.len() > MANY);
        let first = if prefix.is_some() { &all[..MANY] } else { all };
        let short = prefix.and_then(|_| self.short.get(&start));
        let like = prefix
            .into_iter()
            .flat_map(parts)
            .filter_map(move |(i, part)| self.by_part.get(&(start, i, part)));
        first.iter().chain(short.into_iter().flatten()).chain(like.flatten()).copied()
    }
}

/// The molecule of each pair of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Molecules {
    /// Pair and the pair that stands for its molecule, by pair.
    of: Vec<(u32, u32)>,
}

impl Molecules {
    /// Finds the copies among some pairs (indices into `pairs`, ascending). The first pair of a molecule stands for it.
    pub fn among<'a>(members: &[u32], pairs: &'a [impl Mates]) -> Molecules {
        let mut heads = Heads::default();
        let mut of = Vec::with_capacity(members.len());
        for &member in members {
            let pair = &pairs[member as usize];
            let [one, two] = pair.seqs();
            let start = |seq: &'a [u8]| seq.get(..KEY).map(|start| (pair.sample(), start));
            let starts = [(start(one), two), (start(two), one)];
            let starts = || starts.into_iter().filter_map(|(start, other)| Some((start?, other)));
            let known = starts().flat_map(|(start, other)| heads.like(start, other));
            let head = known.filter(|&other| same_molecule(&pairs[other as usize], pair)).min();
            if head.is_none() {
                starts().for_each(|(start, other)| heads.put(start, other, member));
            }
            of.push((member, head.unwrap_or(member)));
        }
        Molecules { of }
    }

    /// For each molecule its pairs, all as they were given, the molecules in the order of the first of each.
    pub fn groups(&self) -> Vec<Vec<u32>> {
        let mut by_head = self.of.clone();
        by_head.sort_unstable_by_key(|&(pair, head)| (head, pair));
        by_head.chunk_by(|a, b| a.1 == b.1).map(|same| same.iter().map(|m| m.0).collect()).collect()
    }

    /// The pair that stands for the molecule of `pair`, itself or an earlier one.
    pub fn of(&self, pair: u32) -> u32 {
        self.of.binary_search_by_key(&pair, |m| m.0).map_or(pair, |at| self.of[at].1)
    }

    /// Whether another pair stands for its molecule.
    pub fn is_copy(&self, pair: u32) -> bool {
        self.of(pair) != pair
    }
}

/// A number that only the name decides, every bit by chance (FNV-1a, and a finaliser).
pub fn lot(name: &[u8]) -> u64 {
    let hash =
        name.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::Read;
    use crate::recruit::Kept;

    fn pair(sample: u8, mates: [&[u8]; 2]) -> Kept {
        let read = |seq: &[u8]| Read { seq: seq.to_vec(), qual: vec![30; seq.len()] };
        Kept { sample, name: vec![], mates: mates.map(read), id: 0, contigs: vec![] }
    }

    #[test]
    fn copies_are_found_from_either_end_in_spite_of_errors() {
        let one = b"ACGTTGCATGCCGATAGCTAGGATCCATTAGC";
        let two = b"GGATTCAGCTTACGGATCCGATTACGGATTAC";
        let wrong = b"ACGTTGGATGCCGATAGCTAGGATCCATTAGC";
        let other = b"TTTACGGATTACAGGGCATTTACCAGGATTTA";
        let pairs = [
            pair(1, [one, two]),
            pair(1, [two, one]),
            pair(1, [wrong, two]),
            pair(1, [one, other]),
            pair(0, [one, two]),
        ];
        let molecules = Molecules::among(&[0, 1, 2, 3, 4], &pairs);
        assert_eq!([0, 1, 2, 3, 4].map(|p| molecules.of(p)), [0, 0, 0, 3, 4]);
        assert!(molecules.is_copy(2) && !molecules.is_copy(4));
        assert_eq!(molecules.groups(), [vec![0, 1, 2], vec![3], vec![4]]);
        // Among some of the pairs only.
        let some = Molecules::among(&[1, 2, 4], &pairs);
        assert_eq!([1, 2, 4].map(|p| some.of(p)), [1, 1, 4]);
    }

    #[test]
    fn where_thousands_begin_alike_the_same_copies_are_found() {
        let mut x = 11u64;
        let mut below = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        // Reads of a satellite of three repeats, with wrong bases; some mates were cut short.
        let satellite = b"ACGTTGCATGCCGATAGCTAGGATCCATTAGCGGATTCAGC".repeat(4);
        let mut seqs = Vec::new();
        for _ in 0..3000 {
            let mut mate = || {
                let (from, len) = (below(3) as usize, if below(20) == 0 { 20 } else { 40 });
                let mut seq = satellite[from..from + len].to_vec();
                (0..below(4)).for_each(|_| seq[below(len as u64) as usize] = b"ACGT"[below(4) as usize]);
                seq
            };
            seqs.push([mate(), mate()]);
        }
        let pairs: Vec<Kept> = seqs.iter().map(|[one, two]| pair(1, [one, two])).collect();
        let members: Vec<u32> = (0..pairs.len() as u32).collect();
        let mut expected: Vec<u32> = Vec::new();
        let mut heads: Vec<u32> = Vec::new();
        for p in members.iter().copied() {
            let begins = |other: u32| {
                let (own, others) = (pairs[p as usize].seqs(), pairs[other as usize].seqs());
                own.iter().any(|a| others.iter().any(|b| a[..KEY] == b[..KEY]))
            };
            let same =
                |&other: &u32| begins(other) && same_molecule(&pairs[other as usize], &pairs[p as usize]);
            let head = heads.iter().copied().find(same);
            heads.extend(head.is_none().then_some(p));
            expected.push(head.unwrap_or(p));
        }
        let molecules = Molecules::among(&members, &pairs);
        assert!(members.iter().all(|&p| molecules.of(p) == expected[p as usize]));
        assert!(heads.len() > 2 * MANY && heads.len() < 2000, "{}", heads.len());
    }

    #[test]
    fn short_and_empty_mates_are_copies_of_nothing() {
        let one = b"ACGTTGCATGCCGATAGCTAGGATCCATTAGC";
        let pairs =
            [pair(1, [b"", b""]), pair(1, [b"", b""]), pair(1, [b"ACGT", one]), pair(1, [b"ACGT", one])];
        let molecules = Molecules::among(&[0, 1, 2, 3], &pairs);
        assert_eq!([0, 1, 2, 3].map(|p| molecules.of(p)), [0, 1, 2, 2]);
    }
}
