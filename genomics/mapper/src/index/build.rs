//! Builds an index: packs the reference, distributes its seeds to partitions by hash, sorts each partition and fills
//! its buckets.
//!
//! The seeds are computed twice: once to count the seeds of each partition, once to store them. Buckets are written
//! partition by partition, so that memory holds only the packed reference, twelve bytes per seed and the lists: 1.8
//! bytes per base with one seed per nine bases.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Zeroable as _;
use genuma_work::parallel;

use super::{
    Bucket, CONTINUES_FLAG, COUNT_SHIFT, Contig, EDGE_PADDING_BP, Error, IndexHeader, MAGIC, MAX_SINGLE_POSITIONS,
    MIN_PADDING_BETWEEN_CONTIGS_BP, PARTITIONS, SECTION_ALIGNMENT_BYTES, SLOTS_PER_BUCKET, SPARE_BUCKETS, split_hash,
};
use crate::bases::{BASES_PER_WORD, is_acgt, pack_letters_into_word};
use crate::syncmers::{SEED_BP, Syncmer, SyncmerFinder};
use genuma_machine::simd_and_prefetch::SimdLevel;

/// Number of bases of a task: the piece of a contig in which a thread finds seeds; a multiple of 16.
const TASK_BASES: u64 = 1 << 16;
/// Mean number of used slots in a bucket.
const MEAN_SLOTS_USED: u64 = 8;
/// Maximum length (bp) of a reference: positions have 34 bits.
const MAX_REFERENCE_BP: u64 = 1 << 34;

/// Random bases that replace ambiguous bases: the same ones as in bwa (POSIX `lrand48`, seed 11), so that reads at the
/// border of an ambiguous range are placed as by bwa.
#[derive(Debug)]
struct RandomBases(u64);

impl Default for RandomBases {
    fn default() -> RandomBases {
        RandomBases(11 << 16 | 0x330e)
    }
}

impl RandomBases {
    fn next_base(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & ((1 << 48) - 1);
        b"ACGT"[(self.0 >> 17 & 3) as usize]
    }
}

/// Packs the contigs of a reference, one after the other, before the index is built.
#[derive(Debug, Default)]
pub struct ReferenceBuilder {
    contigs: Vec<Contig>,
    ambiguous_ranges: Vec<Range<u64>>,
    words: Vec<u64>,
    /// ASCII bases at the end of the sequence that do not fill a word yet.
    unpacked: Vec<u8>,
    /// Number of packed bases so far, including those that are not stored in a word yet.
    at: u64,
    random_bases: RandomBases,
}

impl ReferenceBuilder {
    /// Begins the contig `name`; the bases added next belong to it.
    pub fn begin_contig(&mut self, name: String) {
        let gap = if self.contigs.is_empty() { EDGE_PADDING_BP } else { MIN_PADDING_BETWEEN_CONTIGS_BP };
        self.pad(gap);
        self.contigs.push(Contig { name, start: self.at, length: 0 });
    }

    /// Appends at least `gap` padding bases, so that the next base is the first of a word.
    fn pad(&mut self, gap: u64) {
        let end = (self.at + gap).next_multiple_of(BASES_PER_WORD as u64);
        // Not a single repeated letter, because a read may consist of one letter.
        while self.at < end {
            self.push_letter(b"ACGTTGCACATGGTAC"[(self.at % 16) as usize]);
        }
    }

    fn push_letter(&mut self, letter: u8) {
        self.unpacked.push(letter);
        self.at += 1;
        if self.unpacked.len() == BASES_PER_WORD {
            self.words.push(pack_letters_into_word(&self.unpacked));
            self.unpacked.clear();
        }
    }

    /// Appends bases to the current contig; letters other than A, C, G and T (IUPAC codes) are replaced by random bases
    /// and recorded as ambiguous.
    pub fn add_bases(&mut self, bases: &[u8]) {
        let Some(contig) = self.contigs.last_mut() else { return };
        contig.length += bases.len() as u64;
        for &letter in bases {
            if is_acgt(letter) {
                self.push_letter(letter);
            } else {
                match self.ambiguous_ranges.last_mut() {
                    Some(last) if last.end == self.at => last.end += 1,
                    _ => self.ambiguous_ranges.push(self.at..self.at + 1),
                }
                let letter = self.random_bases.next_base();
                self.push_letter(letter);
            }
        }
    }

    fn finish(&mut self) {
        self.pad(EDGE_PADDING_BP);
        self.words.extend([0; 2]);
    }
}

/// A seed of the reference: its sort key ([`entry_key`]) and the low 32 bits of its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C, packed(4))]
struct SeedEntry {
    key: u64,
    place: u32,
}

/// Sort key of a seed: the 56 hash bits that the partition does not determine, the strand, and the two highest bits
/// of the position. Seeds sorted by key have the order in which the positions of a list are stored.
fn entry_key(seed: &Syncmer, place: u64) -> u64 {
    seed.hash << 8 | u64::from(seed.reverse) << 2 | place >> 32
}

/// Finds the seeds of one task, the bases of `contig` from `from` on, and passes each with its packed position to
/// `each`. Seeds that overlap an ambiguous range are skipped.
fn for_each_seed(
    built: &ReferenceBuilder,
    contig: &Contig,
    from: u64,
    finder: &mut SyncmerFinder,
    each: impl FnMut(Syncmer, u64),
) {
    let start = contig.start + from;
    // The next task begins so that its first seed follows the last one of this task.
    let end = (start + TASK_BASES + SEED_BP as u64).min(contig.packed_end());
    let mut hole = built.ambiguous_ranges.partition_point(|hole| hole.end <= start);
    let mut each = each;
    SimdLevel::widest_available().run_at_level(
        #[inline(always)]
        || {
            finder.find_seeds(&built.words, start as usize, end as usize, |seed| {
                let place = start + u64::from(seed.at);
                // The next task finds this seed, too.
                if u64::from(seed.at) >= TASK_BASES {
                    return;
                }
                while built.ambiguous_ranges.get(hole).is_some_and(|hole| hole.end <= place) {
                    hole += 1;
                }
                if built.ambiguous_ranges.get(hole).is_none_or(|hole| hole.start >= place + SEED_BP as u64) {
                    each(seed, place);
                }
            });
        },
    );
}

/// Builds the index with `threads` threads and passes its bytes to `write` in order.
///
/// # Errors
/// The reference is too long, too many of its seeds collide in a bucket, or `write` fails.
pub fn build_and_write_index<E: From<Error> + Send>(
    mut built: ReferenceBuilder,
    threads: usize,
    write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    built.finish();
    let built = built;
    if built.at > MAX_REFERENCE_BP {
        return Err(Error::ReferenceTooLong(built.at).into());
    }
    let extra_position_bits = match built.at >> 32 {
        0 => 0,
        1 => 1,
        _ => 2,
    };
    let stretches: Vec<(usize, u64)> = (built.contigs.iter().enumerate())
        .flat_map(|(i, contig)| (0..contig.length).step_by(TASK_BASES as usize).map(move |from| (i, from)))
        .collect();
    let counts = count_seeds(&built, &stretches, threads);
    let entries = collect_seeds(&built, &stretches, &counts, threads);
    let mut partitions = Vec::new();
    let mut rest = &entries[..];
    for &count in &counts {
        let (these, others) = rest.split_at(count);
        partitions.push(these);
        rest = others;
    }
    // Sizes of the slots and the lists.
    let sizes = parallel::map_in_order(
        partitions.len(),
        threads,
        || (),
        |(), i| slot_and_list_counts(partitions[i], extra_position_bits),
    );
    let slots = sizes.iter().map(|(slots, _)| *slots).max().unwrap_or(0);
    let buckets_per_partition = (slots / MEAN_SLOTS_USED + 1).max(1);
    let lists: u64 = sizes.iter().map(|(_, lists)| lists).sum();
    if lists >= 1 << 32 {
        return Err(Error::ReferenceTooLong(built.at).into());
    }

    let names: Vec<u8> = built.contigs.iter().flat_map(|contig| contig.name.bytes().chain([0])).collect();
    let head = IndexHeader {
        contigs: built.contigs.len() as u64,
        names: names.len() as u64,
        ambiguous_ranges: built.ambiguous_ranges.len() as u64,
        words: built.words.len() as u64,
        buckets: buckets_per_partition,
        lists,
        extra_position_bits: u64::from(extra_position_bits),
    };
    let (sections, _) = head.section_layout().ok_or(Error::ReferenceTooLong(built.at))?;
    let mut file = SectionWriter { write, at: 0 };
    file.put(&MAGIC)?;
    file.put(bytemuck::bytes_of(&head))?;
    let pairs = |pairs: &mut dyn Iterator<Item = [u64; 2]>| {
        pairs.flat_map(|[a, b]| [a.to_le_bytes(), b.to_le_bytes()].concat()).collect::<Vec<u8>>()
    };
    let contigs = pairs(&mut built.contigs.iter().map(|contig| [contig.start, contig.length]));
    let ambiguous_ranges = pairs(&mut built.ambiguous_ranges.iter().map(|hole| [hole.start, hole.end]));
    for (section, bytes) in
        sections.iter().zip([&contigs, &names, &ambiguous_ranges, bytemuck::cast_slice(&built.words)])
    {
        file.pad_to(section.start)?;
        file.put(bytes)?;
    }
    file.pad_to(sections[4].start)?;
    file.put_partitions(&partitions, &sizes, &head, sections[5].start, threads)
}

/// Counts the seeds of each partition. `stretches` are the tasks: contig and first base.
fn count_seeds(built: &ReferenceBuilder, stretches: &[(usize, u64)], threads: usize) -> Vec<usize> {
    // Seeds that begin after a task belong to the next task.
    let counts: Vec<AtomicU64> = (0..PARTITIONS).map(|_| AtomicU64::new(0)).collect();
    parallel::map_in_order(stretches.len(), threads, SyncmerFinder::default, |finder, i| {
        let (contig, from) = stretches[i];
        let mut here = [0u32; PARTITIONS as usize];
        for_each_seed(built, &built.contigs[contig], from, finder, |seed, _| here[(seed.hash >> 56) as usize] += 1);
        for (count, here) in counts.iter().zip(here) {
            count.fetch_add(u64::from(here), Ordering::Relaxed);
        }
    });
    counts.into_iter().map(|n| n.into_inner() as usize).collect()
}

/// Collects the seeds, ordered by partition and sorted within each. `counts` are the numbers of seeds of the
/// partitions.
fn collect_seeds(
    built: &ReferenceBuilder,
    stretches: &[(usize, u64)],
    counts: &[usize],
    threads: usize,
) -> Vec<SeedEntry> {
    let mut entries = vec![SeedEntry { key: 0, place: 0 }; counts.iter().sum()];
    {
        let mut partitions = Vec::new();
        let mut rest = &mut entries[..];
        for &count in counts {
            let (these, others) = rest.split_at_mut(count);
            partitions.push(Mutex::new((these, 0)));
            rest = others;
        }
        let state = || (SyncmerFinder::default(), vec![Vec::new(); PARTITIONS as usize]);
        parallel::map_in_order(stretches.len(), threads, state, |(finder, dealt), i| {
            let (contig, from) = stretches[i];
            for_each_seed(built, &built.contigs[contig], from, finder, |seed, place| {
                let entry = SeedEntry { key: entry_key(&seed, place), place: place as u32 };
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
        // The seeds are sorted, so that the result does not depend on the threads.
        parallel::map_in_order(
            partitions.len(),
            threads,
            || (),
            |(), i| {
                partitions[i].lock().unwrap_or_else(|poisoned| poisoned.into_inner()).0.sort_unstable();
            },
        );
    }
    entries
}

/// Writes the sections of an index one after the other.
struct SectionWriter<W> {
    write: W,
    /// Number of bytes that were written.
    at: usize,
}

impl<E: From<Error> + Send, W: FnMut(&[u8]) -> Result<(), E>> SectionWriter<W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), E> {
        self.at += bytes.len();
        (self.write)(bytes)
    }

    /// Writes zeros up to the start of a section.
    fn pad_to(&mut self, start: usize) -> Result<(), E> {
        self.put(&[0; SECTION_ALIGNMENT_BYTES][..start - self.at])
    }

    /// Writes the buckets of all partitions, and behind them, from `lists_at` on, their lists. `sizes` are for each
    /// partition its numbers of slots and of entries in the array of lists.
    fn put_partitions(
        &mut self,
        partitions: &[&[SeedEntry]],
        sizes: &[(u64, u64)],
        head: &IndexHeader,
        lists_at: usize,
        threads: usize,
    ) -> Result<(), E> {
        // Some partitions at a time, in order. The lists are kept until all buckets are written.
        let mut starts = Vec::new();
        let mut sum = 0;
        for (_, lists) in sizes {
            starts.push(sum);
            sum += lists;
        }
        let mut deferred = Vec::with_capacity(sizes.len());
        let together = 4 * threads.max(1);
        for first in (0..partitions.len()).step_by(together) {
            let these = together.min(partitions.len() - first);
            let made = parallel::map_in_order(
                these,
                threads,
                || (),
                |(), i| {
                    fill_buckets(
                        partitions[first + i],
                        head.buckets,
                        head.extra_position_bits as u32,
                        starts[first + i] as u32,
                    )
                },
            );
            for made in made {
                let (buckets, lists) = made?;
                self.put(bytemuck::cast_slice(&buckets))?;
                deferred.push(lists);
            }
        }
        self.pad_to(lists_at)?;
        for lists in deferred {
            self.put(bytemuck::cast_slice(&lists))?;
        }
        Ok(())
    }
}

/// Splits sorted entries into groups with the same seed.
fn entries_by_seed(entries: &[SeedEntry]) -> impl Iterator<Item = &[SeedEntry]> {
    entries.chunk_by(|a, b| a.key & !7 == b.key & !7)
}

/// Number of bucket slots and of numbers in the array of lists that the entries need.
fn slot_and_list_counts(entries: &[SeedEntry], extra_position_bits: u32) -> (u64, u64) {
    let (mut slots, mut lists) = (0, 0);
    for group in entries_by_seed(entries) {
        if group.len() <= MAX_SINGLE_POSITIONS {
            slots += group.len() as u64;
        } else {
            slots += 1;
            lists += (2u64 << extra_position_bits) + group.len() as u64;
        }
    }
    (slots, lists)
}

/// Fills the buckets and lists of a partition; `start` is the offset of its first list in the array of lists.
fn fill_buckets(
    entries: &[SeedEntry],
    buckets_per_partition: u64,
    extra_position_bits: u32,
    start: u32,
) -> Result<(Vec<Bucket>, Vec<u32>), Error> {
    let mut buckets = vec![Bucket::zeroed(); (buckets_per_partition + SPARE_BUCKETS) as usize];
    let mut lists = Vec::new();
    let mut put = |entry: SeedEntry, place: u32, list: bool| {
        let key = { entry.key };
        let (_, bucket, mut tag) = split_hash(key >> 8, buckets_per_partition, extra_position_bits);
        if !list {
            tag |= ((key >> 2 & 1) << 7) as u8 | ((key & 3) << (7 - extra_position_bits)) as u8 & 0x7f;
        }
        let mut at = bucket as usize;
        loop {
            let bucket = buckets.get_mut(at).ok_or(Error::TooManyCollisions)?;
            let n = (bucket.flags >> COUNT_SHIFT & 15) as usize;
            if n < SLOTS_PER_BUCKET {
                bucket.tags[n] = tag;
                bucket.places[n] = place;
                bucket.flags += 1 << COUNT_SHIFT;
                bucket.flags |= u32::from(list) << n;
                return Ok::<(), Error>(());
            }
            bucket.flags |= CONTINUES_FLAG;
            at += 1;
        }
    };
    for group in entries_by_seed(entries) {
        if group.len() <= MAX_SINGLE_POSITIONS {
            for &entry in group {
                put(entry, entry.place, false)?;
            }
        } else {
            put(group[0], start + lists.len() as u32, true)?;
            let counts = lists.len();
            lists.resize(counts + (2 << extra_position_bits), 0);
            for entry in group {
                let key = { entry.key };
                let which = ((key >> 2 & 1) << extra_position_bits | key & 3) as usize;
                lists[counts + which] += 1;
            }
            lists.extend(group.iter().map(|entry| entry.place));
        }
    }
    Ok((buckets, lists))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Dice, SeedOccurrence};
    use super::super::{IndexSlot, IndexView};
    use super::*;

    #[test]
    fn letters_that_are_none_are_the_bases_that_bwa_makes_of_them() {
        // Taken from the .pac file that `bwa index` 0.7.17 writes for the same letters.
        let expected = b"CGGGAACAGCTCTCCTTGAGCTCTGTGGGTGATGGGTGACTCCT";
        let mut random_bases = RandomBases::default();
        assert!(expected.iter().all(|letter| random_bases.next_base() == *letter));
        let mut built = ReferenceBuilder::default();
        built.begin_contig("a".into());
        built.add_bases(b"ACNR");
        built.begin_contig("b".into());
        built.add_bases(b"-T");
        assert_eq!(built.ambiguous_ranges.iter().map(|hole| hole.end - hole.start).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(built.unpacked, b"GT");
    }

    /// Seeds of one partition at positions beyond 2^32: a hash and its positions.
    fn random_bases(
        extra_position_bits: u32,
        seeds: usize,
        dice: &mut Dice,
    ) -> (Vec<SeedEntry>, Vec<(u64, Vec<SeedOccurrence>)>) {
        let mut all: Vec<(u64, Vec<SeedOccurrence>)> = Vec::new();
        let mut entries = Vec::new();
        for i in 0..seeds {
            let hash = (dice.roll(1 << 28) as u64) << 28 | dice.roll(1 << 28) as u64;
            let copies = if i % 10 == 0 { 4 + dice.roll(60) } else { 1 + i % 3 };
            let mut places: Vec<SeedOccurrence> =
                (0..copies).map(|_| (dice.roll(1 << (32 + extra_position_bits)) as u64, dice.roll(2) == 1)).collect();
            places.sort_unstable_by_key(|&(at, reverse)| (reverse, at));
            for &(place, reverse) in &places {
                let key = entry_key(&Syncmer { at: 0, reverse, hash }, place);
                entries.push(SeedEntry { key, place: place as u32 });
            }
            all.push((hash, places));
        }
        entries.sort_unstable();
        (entries, all)
    }

    #[test]
    fn places_of_more_than_32_bits_come_back() {
        for extra_position_bits in 0..3 {
            let mut dice = Dice(u64::from(extra_position_bits));
            let (entries, seeds) = random_bases(extra_position_bits, 3000, &mut dice);
            let (slots, room) = slot_and_list_counts(&entries, extra_position_bits);
            let start = 77;
            let buckets_per_partition = slots / MEAN_SLOTS_USED + 1;
            let (buckets, mut lists) =
                fill_buckets(&entries, buckets_per_partition, extra_position_bits, start).unwrap();
            assert_eq!(lists.len() as u64, room);
            assert_eq!(buckets.iter().map(|bucket| u64::from(bucket.flags >> COUNT_SHIFT & 15)).sum::<u64>(), slots);
            assert!(buckets.iter().any(|bucket| bucket.flags & CONTINUES_FLAG != 0), "some bucket is too full");
            lists.splice(0..0, (0..start).map(|_| u32::MAX));
            let view = IndexView {
                words: &[],
                buckets: &buckets,
                lists: &lists,
                contigs: &[],
                alt: &[],
                first_alt: u64::MAX,
                first_contig_by_block: &[],
                ambiguous_ranges: &[],
                buckets_per_partition,
                extra_position_bits,
            };
            for (hash, places) in seeds {
                let (mut own, mut listed) = (Vec::new(), false);
                view.for_each_slot_with_tag(view.bucket_and_tag_of_hash(hash), |slot| match slot {
                    IndexSlot::Position(at, reverse) => own.push((at, reverse)),
                    IndexSlot::List(at) => {
                        let list = view.position_list(at);
                        let on = |reverse| list.positions_hashed_on_strand(reverse).map(move |at| (at, reverse));
                        listed |= on(false).chain(on(true)).collect::<Vec<_>>() == places
                            && list.num_positions() == places.len();
                    }
                });
                let found = if places.len() <= MAX_SINGLE_POSITIONS {
                    places.iter().all(|place| own.contains(place))
                } else {
                    listed
                };
                assert!(found, "extra_position_bits {extra_position_bits}: {places:?}");
            }
        }
    }

    #[test]
    fn too_many_seeds_of_one_bucket_are_an_error() {
        let full = SLOTS_PER_BUCKET * (SPARE_BUCKETS as usize + 1);
        let entries = |n: usize| -> Vec<SeedEntry> {
            (0..n as u64).map(|i| SeedEntry { key: i << 8, place: i as u32 }).collect()
        };
        assert!(fill_buckets(&entries(full), 1, 0, 0).is_ok());
        assert_eq!(fill_buckets(&entries(full + 1), 1, 0, 0).unwrap_err(), Error::TooManyCollisions);
    }
}
