//! k-mers of some sequences, looked up by those of a reference that goes past.

use genuma_machine::processor::prefetch;
use genuma_reads::dna::{NOT_A_BASE, code};

/// Bases of a seed.
pub(super) const SEED: usize = 19;
/// Bases of its parts. Those 19-mers are seeds of whose five 15-mers the first or the last has the smallest hash (closed syncmers: Edgar 2021): two
/// of five are, on either strand, and of four neighbours one at least. So whatever two sequences share exactly of 22 bases has one.
const PART: usize = 15;
const PARTS: usize = SEED - PART + 1;

const MASK: u64 = (1 << (2 * SEED)) - 1;
const PART_MASK: u64 = (1 << (2 * PART)) - 1;
/// Odd, with bits all over: what it makes of a k-mer is another one for each.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bits of the filter for each different k-mer: one in so many others passes it.
const FILTER: usize = 16;
/// Different k-mers of a bucket, about.
const BUCKET: usize = 4;

/// A seed of some bases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seed {
    /// Equal on both strands.
    pub(super) hash: u64,
    /// Where it begins.
    pub(super) at: u32,
    /// Its reverse complement was hashed.
    pub(super) reverse: bool,
}

/// Seeds that are handed on together.
const TOGETHER: usize = 256;

/// Hands the seeds to `each`, in order and many at a time. What has an unknown base is none.
#[inline(always)]
pub(super) fn seeds(bases: &[u8], mut each: impl FnMut(&[Seed])) {
    let (mut forward, mut backward, mut known) = (0u64, 0u64, 0usize);
    // Hashes of the parts that end at the last bases, the newest last.
    let mut parts = [0u64; PARTS];
    let (mut some, mut n) = ([Seed::default(); TOGETHER], 0);
    for (end, &base) in (1u32..).zip(bases) {
        let code = code(base);
        if code == NOT_A_BASE {
            known = 0;
            continue;
        }
        forward = (forward << 2 | u64::from(code)) & MASK;
        backward = backward >> 2 | u64::from(3 - code) << (2 * (SEED - 1));
        known += 1;
        // The newest bases are the lowest bits of one strand and the highest of the other.
        let part = (forward & PART_MASK).min(backward >> (2 * (SEED - PART)));
        let [_, b, c, d, e] = parts;
        let inner = c.min(d).min(e);
        parts = [b, c, d, e, part.wrapping_mul(SPREAD)];
        // Which are seeds nobody can foresee: nothing branches on it.
        let hash = forward.min(backward).wrapping_mul(SPREAD);
        some[n] = Seed { hash, at: end.wrapping_sub(SEED as u32), reverse: backward < forward };
        n += usize::from(known >= SEED && b.min(parts[PARTS - 1]) <= inner);
        if n == TOGETHER {
            each(&some);
            n = 0;
        }
    }
    each(&some[..n]);
}

/// Where a k-mer stands in the sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    hash: u64,
    /// Its first base, among those of all sequences, and the lowest bit: its reverse complement was hashed.
    at: u32,
    /// In which of them it stands.
    sequence: u32,
}

impl Place {
    pub(super) fn new(seed: Seed, sequence: u32) -> Place {
        Place { hash: seed.hash, at: seed.at << 1 | u32::from(seed.reverse), sequence }
    }

    /// In which of the sequences it stands.
    pub(super) fn sequence(self) -> usize {
        self.sequence as usize
    }

    /// Its first base among those of all sequences.
    pub(super) fn at(self) -> usize {
        (self.at >> 1) as usize
    }

    /// Whether its reverse complement was hashed.
    pub(super) fn reverse(self) -> bool {
        self.at & 1 == 1
    }
}

/// k-mers by their hashes.
#[derive(Debug)]
pub(super) struct Seeds {
    /// In order.
    places: Vec<Place>,
    /// Of each different k-mer its hash, and the first of its places; and their number.
    hashes: Vec<u64>,
    firsts: Vec<u32>,
    /// Of each bucket, the highest bits of the hash, the first of its k-mers; and their number.
    buckets: Vec<u32>,
    bucket_bits: u32,
    filter: Vec<u64>,
    filter_bits: u32,
}

/// Buffers for looking up.
#[derive(Debug, Default)]
pub(super) struct Group {
    passed: Vec<Seed>,
    ranges: Vec<(usize, usize)>,
    found: Vec<(usize, Seed)>,
}

impl Seeds {
    /// Those of some places; fewer than 2³¹.
    pub(super) fn new(mut places: Vec<Place>) -> Seeds {
        places.sort_unstable();
        let (mut hashes, mut firsts) = (Vec::new(), Vec::new());
        for (i, place) in places.iter().enumerate() {
            if i == 0 || places[i - 1].hash != place.hash {
                hashes.push(place.hash);
                firsts.push(i as u32);
            }
        }
        let different = hashes.len();
        firsts.push(places.len() as u32);
        let bucket_bits = (different / BUCKET).max(2).ilog2();
        let filter_bits = (different * FILTER).max(64).ilog2() + 1;
        let mut buckets = vec![0; (1 << bucket_bits) + 1];
        let mut filter = vec![0u64; (1 << filter_bits) / 64];
        for hash in &hashes {
            buckets[(hash >> (64 - bucket_bits)) as usize + 1] += 1;
            let bit = hash >> (64 - filter_bits);
            filter[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        for i in 1..buckets.len() {
            buckets[i] += buckets[i - 1];
        }
        Seeds { places, hashes, firsts, buckets, bucket_bits, filter, filter_bits }
    }

    /// How many different k-mers there are.
    pub(super) fn different(&self) -> usize {
        self.hashes.len()
    }

    /// Hands each seed of some bases that is one of these to `each`, with its number among the different ones.
    ///
    /// Many go together through the stages, each of which asks for the memory that the next one reads.
    #[inline(always)]
    pub(super) fn look_up(&self, group: &mut Group, bases: &[u8], mut each: impl FnMut(usize, Seed)) {
        let Group { passed, ranges, found } = group;
        let bit = |hash: u64| (hash >> (64 - self.filter_bits)) as usize;
        let bucket = |hash: u64| (hash >> (64 - self.bucket_bits)) as usize;
        seeds(bases, |seeds| {
            seeds.iter().for_each(|seed| prefetch(&self.filter[bit(seed.hash) / 64]));
            passed.clear();
            for &seed in seeds {
                let bit = bit(seed.hash);
                if self.filter[bit / 64] >> (bit % 64) & 1 == 1 {
                    prefetch(&self.buckets[bucket(seed.hash)]);
                    passed.push(seed);
                }
            }
            ranges.clear();
            for seed in &*passed {
                let bucket = bucket(seed.hash);
                let range = (self.buckets[bucket] as usize, self.buckets[bucket + 1] as usize);
                if let Some(first) = self.hashes.get(range.0) {
                    prefetch(first);
                }
                ranges.push(range);
            }
            found.clear();
            for (&seed, &(from, to)) in passed.iter().zip(&*ranges) {
                let here = &self.hashes[from..to];
                if let Some(n) = here.iter().position(|other| *other == seed.hash) {
                    prefetch(&self.firsts[from + n]);
                    found.push((from + n, seed));
                }
            }
            found.iter().for_each(|&(number, seed)| each(number, seed));
        });
    }

    /// The places of one of the different k-mers.
    #[inline(always)]
    pub(super) fn places(&self, number: usize) -> &[Place] {
        &self.places[self.firsts[number] as usize..self.firsts[number + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use genuma_reads::dna::revcomp;

    use super::*;
    use crate::scan::tests::Dice;

    #[test]
    fn each_strand_says_the_same_and_unknown_bases_have_none() {
        let mut bases = Dice(5).bases(300);
        bases[100] = b'N';
        bases[130] = b'r';
        let of = |bases: &[u8]| {
            let mut all = Vec::new();
            seeds(bases, |some| all.extend(some.iter().map(|s| (s.hash, s.at as usize, s.reverse))));
            all
        };
        let forward = of(&bases);
        // From 0, 101 and 131 on: two of five, and none is far from the next.
        assert!((80..140).contains(&forward.len()), "{}", forward.len());
        for known in [0..100, 101..130, 131..300] {
            let starts: Vec<usize> = forward.iter().map(|f| f.1).filter(|at| known.contains(at)).collect();
            let last = known.end - SEED;
            let ends = [known.start].into_iter().chain(starts.iter().map(|at| at + 1));
            let gaps = ends.zip(starts.iter().copied().chain([last + 1])).map(|(from, to)| to - from);
            assert!(gaps.max().unwrap() <= 3 && starts.iter().all(|at| *at <= last), "{starts:?}");
        }
        let mut backward = of(&revcomp(&bases));
        backward.reverse();
        for (one, other) in forward.iter().zip(&backward) {
            assert_eq!((one.0, one.1, one.2), (other.0, 300 - SEED - other.1, !other.2));
        }
    }

    #[test]
    fn what_is_there_is_found_and_nothing_else() {
        let mut dice = Dice(6);
        let bases = [dice.bases(3000), dice.bases(40).repeat(20)].concat();
        let all = |seeds: &Seeds, bases: &[u8]| {
            let mut all = Vec::new();
            seeds.look_up(&mut Group::default(), bases, |number, seed| all.push((number, seed)));
            all
        };
        let of = |bases: &[u8]| {
            let mut all = Vec::new();
            seeds(bases, |some| all.extend_from_slice(some));
            all
        };
        let mut expected: BTreeMap<u64, Vec<Seed>> = BTreeMap::new();
        of(&bases).iter().for_each(|seed| expected.entry(seed.hash).or_default().push(*seed));
        let seeds = Seeds::new(of(&bases).into_iter().map(|seed| Place::new(seed, 0)).collect());
        assert_eq!(seeds.different(), expected.len());
        let found = all(&seeds, &bases);
        assert_eq!(found.iter().map(|found| found.1).collect::<Vec<_>>(), of(&bases));
        for (number, seed) in found {
            let places = seeds.places(number).iter().map(|p| (p.at() as u32, p.reverse()));
            let there = expected[&seed.hash].iter().map(|seed| (seed.at, seed.reverse));
            assert!(places.eq(there), "{seed:?}");
        }
        let others = [&dice.bases(2000), &bases[100..200], &dice.bases(2000)].concat();
        let here: Vec<Seed> = of(&others).into_iter().filter(|s| expected.contains_key(&s.hash)).collect();
        assert!(here.len() > 20);
        assert_eq!(all(&seeds, &others).into_iter().map(|found| found.1).collect::<Vec<_>>(), here);
        assert_eq!(all(&Seeds::new(Vec::new()), &bases), []);
    }
}
