//! Making an index: the reference packed, its seeds dealt to partitions by their hashes, each partition sorted and made into buckets.
//!
//! The sequence is gone through twice: once to count the seeds of each partition, once to put them there. Buckets are handed out
//! partition by partition, so what is held is the packed reference, twelve bytes a seed and the lists: 1.8 bytes a base with a seed every nine bases.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Zeroable as _;
use genuma_work::parallel;

use super::{
    ALIGNED, BETWEEN, Bucket, COUNT_SHIFT, Contig, EDGE, Error, Head, MAGIC, MORE, OWN_SLOTS, PARTITIONS,
    SLOTS, SPARE, belongs,
};
use crate::bases::{WORD, is_base, pack_word};
use crate::syncmers::{Finder, SEED, Syncmer};
use genuma_machine::processor::Vectors;

/// Bases whose seeds a thread finds at a time; a multiple of 16.
const STRETCH: u64 = 1 << 16;
/// Slots of a bucket that are full on average.
const LOAD: u64 = 8;
/// Longest reference (packed bases).
const LONGEST: u64 = 1 << 34;

/// Bases for letters that are none: those that bwa makes up (POSIX `lrand48` from the seed 11), so that reads at the border of a hole lie as with it.
#[derive(Debug)]
struct MadeUp(u64);

impl Default for MadeUp {
    fn default() -> MadeUp {
        MadeUp(11 << 16 | 0x330e)
    }
}

impl MadeUp {
    fn next(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & ((1 << 48) - 1);
        b"ACGT"[(self.0 >> 17 & 3) as usize]
    }
}

/// A reference being packed.
#[derive(Debug, Default)]
pub struct Built {
    contigs: Vec<Contig>,
    holes: Vec<Range<u64>>,
    words: Vec<u64>,
    /// Letters of the sequence that do not fill a word yet.
    waiting: Vec<u8>,
    /// Packed bases, with those that wait.
    at: u64,
    made_up: MadeUp,
}

impl Built {
    /// A sequence begins.
    pub fn begin(&mut self, name: String) {
        let gap = if self.contigs.is_empty() { EDGE } else { BETWEEN };
        self.pad(gap);
        self.contigs.push(Contig { name, start: self.at, length: 0 });
    }

    /// At least so many bases that no read has; the next one is the first of a word.
    fn pad(&mut self, gap: u64) {
        let end = (self.at + gap).next_multiple_of(WORD as u64);
        // Not one letter: a read may be of one.
        while self.at < end {
            self.letter(b"ACGTTGCACATGGTAC"[(self.at % 16) as usize]);
        }
    }

    fn letter(&mut self, letter: u8) {
        self.waiting.push(letter);
        self.at += 1;
        if self.waiting.len() == WORD {
            self.words.push(pack_word(&self.waiting));
            self.waiting.clear();
        }
    }

    /// The next bases of the sequence (IUPAC letters).
    pub fn add(&mut self, bases: &[u8]) {
        let Some(contig) = self.contigs.last_mut() else { return };
        contig.length += bases.len() as u64;
        for &letter in bases {
            if is_base(letter) {
                self.letter(letter);
            } else {
                match self.holes.last_mut() {
                    Some(last) if last.end == self.at => last.end += 1,
                    _ => self.holes.push(self.at..self.at + 1),
                }
                let letter = self.made_up.next();
                self.letter(letter);
            }
        }
    }

    fn end(&mut self) {
        self.pad(EDGE);
        self.words.extend([0; 2]);
    }
}

/// A seed of the reference: the low bits of its hash, strand and high bits of its place ([`key`]); the low bits of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C, packed(4))]
struct Entry {
    key: u64,
    place: u32,
}

/// What the partition does not say of the hash, 56 bits; the strand; two bits of the place: in the order in which a list has them.
fn key(seed: &Syncmer, place: u64) -> u64 {
    seed.hash << 8 | u64::from(seed.reverse) << 2 | place >> 32
}

/// Hands all seeds of a stretch with their places to `each`: those without a hole.
fn seeds(built: &Built, contig: &Contig, from: u64, finder: &mut Finder, each: impl FnMut(Syncmer, u64)) {
    let start = contig.start + from;
    // The next stretch begins so that its first seed is the one behind the last of this.
    let end = (start + STRETCH + SEED as u64).min(contig.end());
    let mut hole = built.holes.partition_point(|hole| hole.end <= start);
    let mut each = each;
    Vectors::widest().run(
        #[inline(always)]
        || {
            finder.find(&built.words, start as usize, end as usize, |seed| {
                let place = start + u64::from(seed.at);
                // Found in the next stretch, too.
                if u64::from(seed.at) >= STRETCH {
                    return;
                }
                while built.holes.get(hole).is_some_and(|hole| hole.end <= place) {
                    hole += 1;
                }
                if built.holes.get(hole).is_none_or(|hole| hole.start >= place + SEED as u64) {
                    each(seed, place);
                }
            });
        },
    );
}

/// Makes the index by `threads` threads and hands it over piece by piece.
///
/// # Errors
/// The reference is too long, or what `write` returns.
pub fn build<E: From<Error> + Send>(
    mut built: Built,
    threads: usize,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    built.end();
    let built = built;
    if built.at > LONGEST {
        return Err(Error::TooLong(built.at).into());
    }
    let wide = match built.at >> 32 {
        0 => 0,
        1 => 1,
        _ => 2,
    };
    let stretches: Vec<(usize, u64)> = (built.contigs.iter().enumerate())
        .flat_map(|(i, contig)| (0..contig.length).step_by(STRETCH as usize).map(move |from| (i, from)))
        .collect();
    // A stretch more than the last begins with has seeds only if it is one of the stretches.
    let counts: Vec<AtomicU64> = (0..PARTITIONS).map(|_| AtomicU64::new(0)).collect();
    parallel::in_order(stretches.len(), threads, Finder::default, |finder, i| {
        let (contig, from) = stretches[i];
        let mut here = [0u32; PARTITIONS as usize];
        seeds(&built, &built.contigs[contig], from, finder, |seed, _| here[(seed.hash >> 56) as usize] += 1);
        for (count, here) in counts.iter().zip(here) {
            count.fetch_add(u64::from(here), Ordering::Relaxed);
        }
    });
    let counts: Vec<usize> = counts.into_iter().map(|n| n.into_inner() as usize).collect();
    let mut entries = vec![Entry { key: 0, place: 0 }; counts.iter().sum()];
    {
        let mut partitions = Vec::new();
        let mut rest = &mut entries[..];
        for &count in &counts {
            let (these, others) = rest.split_at_mut(count);
            partitions.push(Mutex::new((these, 0)));
            rest = others;
        }
        let state = || (Finder::default(), vec![Vec::new(); PARTITIONS as usize]);
        parallel::in_order(stretches.len(), threads, state, |(finder, dealt), i| {
            let (contig, from) = stretches[i];
            seeds(&built, &built.contigs[contig], from, finder, |seed, place| {
                let entry = Entry { key: key(&seed, place), place: place as u32 };
                dealt[(seed.hash >> 56) as usize].push(entry);
            });
            for (some, partition) in dealt.iter_mut().zip(&partitions) {
                let mut partition = partition.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let (all, n) = &mut *partition;
                all[*n..*n + some.len()].copy_from_slice(some);
                *n += some.len();
                some.clear();
            }
        });
        // Which thread came first does not show, as they are sorted now.
        parallel::in_order(
            partitions.len(),
            threads,
            || (),
            |(), i| {
                partitions[i].lock().unwrap_or_else(|poisoned| poisoned.into_inner()).0.sort_unstable();
            },
        );
    }
    let mut partitions = Vec::new();
    let mut rest = &entries[..];
    for &count in &counts {
        let (these, others) = rest.split_at(count);
        partitions.push(these);
        rest = others;
    }
    // How much room lists take, and slots.
    let sizes = parallel::in_order(partitions.len(), threads, || (), |(), i| sizes(partitions[i], wide));
    let slots = sizes.iter().map(|(slots, _)| *slots).max().unwrap_or(0);
    let each = (slots / LOAD + 1).max(1);
    let lists: u64 = sizes.iter().map(|(_, lists)| lists).sum();
    if lists >= 1 << 32 {
        return Err(Error::TooLong(built.at).into());
    }

    let names: Vec<u8> = built.contigs.iter().flat_map(|contig| contig.name.bytes().chain([0])).collect();
    let head = Head {
        contigs: built.contigs.len() as u64,
        names: names.len() as u64,
        holes: built.holes.len() as u64,
        words: built.words.len() as u64,
        buckets: each,
        lists,
        wide: u64::from(wide),
    };
    let (sections, _) = head.laid().ok_or(Error::TooLong(built.at))?;
    let mut at = 0;
    let mut put = |bytes: &[u8], at: &mut usize| {
        *at += bytes.len();
        write(bytes)
    };
    put(&MAGIC, &mut at)?;
    put(bytemuck::bytes_of(&head), &mut at)?;
    let pairs = |pairs: &mut dyn Iterator<Item = [u64; 2]>| {
        pairs.flat_map(|[a, b]| [a.to_le_bytes(), b.to_le_bytes()].concat()).collect::<Vec<u8>>()
    };
    let contigs = pairs(&mut built.contigs.iter().map(|contig| [contig.start, contig.length]));
    let holes = pairs(&mut built.holes.iter().map(|hole| [hole.start, hole.end]));
    let zeros = [0; ALIGNED];
    for (section, bytes) in
        sections.iter().zip([&contigs, &names, &holes, bytemuck::cast_slice(&built.words)])
    {
        put(&zeros[..section.start - at], &mut at)?;
        put(bytes, &mut at)?;
    }
    put(&zeros[..sections[4].start - at], &mut at)?;
    // Some partitions at a time, in order; lists wait, as they stand behind all buckets.
    let mut starts = Vec::new();
    let mut sum = 0;
    for (_, lists) in &sizes {
        starts.push(sum);
        sum += lists;
    }
    let mut waiting = Vec::with_capacity(sizes.len());
    let together = 4 * threads.max(1);
    for first in (0..partitions.len()).step_by(together) {
        let these = together.min(partitions.len() - first);
        let made = parallel::in_order(
            these,
            threads,
            || (),
            |(), i| filled(partitions[first + i], each, wide, starts[first + i] as u32),
        );
        for made in made {
            let (buckets, lists) = made?;
            put(bytemuck::cast_slice(&buckets), &mut at)?;
            waiting.push(lists);
        }
    }
    put(&zeros[..sections[5].start - at], &mut at)?;
    for lists in waiting {
        put(bytemuck::cast_slice(&lists), &mut at)?;
    }
    Ok(())
}

/// Goes through entries of the same seed.
fn groups(entries: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    entries.chunk_by(|a, b| a.key & !7 == b.key & !7)
}

/// Slots and numbers in lists that these take.
fn sizes(entries: &[Entry], wide: u32) -> (u64, u64) {
    let (mut slots, mut lists) = (0, 0);
    for group in groups(entries) {
        if group.len() <= OWN_SLOTS {
            slots += group.len() as u64;
        } else {
            slots += 1;
            lists += (2u64 << wide) + group.len() as u64;
        }
    }
    (slots, lists)
}

/// The buckets of a partition, and its lists, of which the first stands at `start`.
fn filled(entries: &[Entry], each: u64, wide: u32, start: u32) -> Result<(Vec<Bucket>, Vec<u32>), Error> {
    let mut buckets = vec![Bucket::zeroed(); (each + SPARE) as usize];
    let mut lists = Vec::new();
    let mut put = |entry: Entry, place: u32, list: bool| {
        let key = { entry.key };
        let (_, bucket, mut tag) = belongs(key >> 8, each, wide);
        if !list {
            tag |= ((key >> 2 & 1) << 7) as u8 | ((key & 3) << (7 - wide)) as u8 & 0x7f;
        }
        let mut at = bucket as usize;
        loop {
            let bucket = buckets.get_mut(at).ok_or(Error::Crowded)?;
            let n = (bucket.about >> COUNT_SHIFT & 15) as usize;
            if n < SLOTS {
                bucket.tags[n] = tag;
                bucket.places[n] = place;
                bucket.about += 1 << COUNT_SHIFT;
                bucket.about |= u32::from(list) << n;
                return Ok::<(), Error>(());
            }
            bucket.about |= MORE;
            at += 1;
        }
    };
    for group in groups(entries) {
        if group.len() <= OWN_SLOTS {
            for &entry in group {
                put(entry, entry.place, false)?;
            }
        } else {
            put(group[0], start + lists.len() as u32, true)?;
            let counts = lists.len();
            lists.resize(counts + (2 << wide), 0);
            for entry in group {
                let key = { entry.key };
                let which = ((key >> 2 & 1) << wide | key & 3) as usize;
                lists[counts + which] += 1;
            }
            lists.extend(group.iter().map(|entry| entry.place));
        }
    }
    Ok((buckets, lists))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Dice, Seen};
    use super::super::{Slot, View};
    use super::*;

    #[test]
    fn letters_that_are_none_are_the_bases_that_bwa_makes_of_them() {
        // Read from the .pac file that `bwa index` 0.7.17 writes for the same letters.
        let expected = b"CGGGAACAGCTCTCCTTGAGCTCTGTGGGTGATGGGTGACTCCT";
        let mut made_up = MadeUp::default();
        assert!(expected.iter().all(|letter| made_up.next() == *letter));
        let mut built = Built::default();
        built.begin("a".into());
        built.add(b"ACNR");
        built.begin("b".into());
        built.add(b"-T");
        assert_eq!(built.holes.iter().map(|hole| hole.end - hole.start).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(built.waiting, b"GT");
    }

    /// Seeds of one partition at places beyond 2^32: a hash and its places.
    fn made_up(wide: u32, seeds: usize, dice: &mut Dice) -> (Vec<Entry>, Vec<(u64, Vec<Seen>)>) {
        let mut all: Vec<(u64, Vec<Seen>)> = Vec::new();
        let mut entries = Vec::new();
        for i in 0..seeds {
            let hash = (dice.roll(1 << 28) as u64) << 28 | dice.roll(1 << 28) as u64;
            let copies = if i % 10 == 0 { 4 + dice.roll(60) } else { 1 + i % 3 };
            let mut places: Vec<Seen> =
                (0..copies).map(|_| (dice.roll(1 << (32 + wide)) as u64, dice.roll(2) == 1)).collect();
            places.sort_unstable_by_key(|&(at, reverse)| (reverse, at));
            for &(place, reverse) in &places {
                let key = key(&Syncmer { at: 0, reverse, hash }, place);
                entries.push(Entry { key, place: place as u32 });
            }
            all.push((hash, places));
        }
        entries.sort_unstable();
        (entries, all)
    }

    #[test]
    fn places_of_more_than_32_bits_come_back() {
        for wide in 0..3 {
            let mut dice = Dice(u64::from(wide));
            let (entries, seeds) = made_up(wide, 3000, &mut dice);
            let (slots, room) = sizes(&entries, wide);
            let start = 77;
            let each = slots / LOAD + 1;
            let (buckets, mut lists) = filled(&entries, each, wide, start).unwrap();
            assert_eq!(lists.len() as u64, room);
            assert_eq!(
                buckets.iter().map(|bucket| u64::from(bucket.about >> COUNT_SHIFT & 15)).sum::<u64>(),
                slots
            );
            assert!(buckets.iter().any(|bucket| bucket.about & MORE != 0), "some bucket is too full");
            lists.splice(0..0, (0..start).map(|_| u32::MAX));
            let view = View {
                words: &[],
                buckets: &buckets,
                lists: &lists,
                contigs: &[],
                alt: &[],
                first_alt: u64::MAX,
                coarse: &[],
                holes: &[],
                each,
                wide,
            };
            for (hash, places) in seeds {
                let (mut own, mut listed) = (Vec::new(), false);
                view.slots(view.address(hash), |slot| match slot {
                    Slot::Place(at, reverse) => own.push((at, reverse)),
                    Slot::List(at) => {
                        let list = view.list(at);
                        let on = |reverse| list.on(reverse).map(move |at| (at, reverse));
                        listed |= on(false).chain(on(true)).collect::<Vec<_>>() == places
                            && list.len() == places.len();
                    }
                });
                let found = if places.len() <= OWN_SLOTS {
                    places.iter().all(|place| own.contains(place))
                } else {
                    listed
                };
                assert!(found, "wide {wide}: {places:?}");
            }
        }
    }

    #[test]
    fn too_many_seeds_of_one_bucket_are_an_error() {
        let full = SLOTS * (SPARE as usize + 1);
        let entries = |n: usize| -> Vec<Entry> {
            (0..n as u64).map(|i| Entry { key: i << 8, place: i as u32 }).collect()
        };
        assert!(filled(&entries(full), 1, 0, 0).is_ok());
        assert_eq!(filled(&entries(full + 1), 1, 0, 0).unwrap_err(), Error::Crowded);
    }
}
