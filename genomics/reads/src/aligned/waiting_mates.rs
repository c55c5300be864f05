//! Reads that wait for their mates. They are packed and kept in memory up to a limit; beyond it they are spilled to
//! disk, partitioned by the hash of the name, and matched at the end of the file. So mates may be anywhere in a file:
//! most mates that are near each other are matched in memory, distant mates on disk.
//!
//! ```text
//! a waiting read: flags (1: read 2; 2: no qualities; 4: molecule identifier, not UMI; 8: carried tags), lengths of the
//! name and of the UMI or identifier, the name, the UMI or identifier, with flag 8 the length of the tags (four bytes)
//! and the tags, the packed read
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use genuma_work::spill::{Error, SpillBlock, SpillFile};
use twox_hash::XxHash3_64;

use super::record_buffer::ReadNumber;
use crate::umi::UmiOrMoleculeId;

/// Maximum memory in bytes for the waiting reads of a file: about 50,000 reads of 150 bases.
pub(super) const MAX_WAITING_MATES_MEMORY_BYTES: u64 = 8 << 20;
/// Memory in bytes that a waiting read takes in addition to its own bytes.
const READ_OVERHEAD_BYTES: u64 = 48;
/// Number of groups into which the waiting reads in memory are divided by the hash of their names; each group has a
/// lock.
const NUM_SHARDS: usize = 16;
/// Number of bytes of the input file per partition of the waiting reads on disk. Each partition is read into memory as
/// a whole: 200 MB for a 100 GB file in which all mates are far apart.
const FILE_BYTES_PER_PARTITION: u64 = 64 << 20;
/// Minimum and maximum number of partitions of the waiting reads on disk.
const MIN_MAX_PARTITIONS: [u64; 2] = [NUM_SHARDS as u64, 512];

/// Range of the bytes of a waiting read in a buffer.
type ByteRange = Range<usize>;

/// A hasher that returns its input, for keys that are hashes.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// Hash of a read name, by which mates are matched.
pub(super) fn hash_read_name(name: &[u8]) -> u64 {
    XxHash3_64::oneshot(name)
}

/// Index of the partition, of `n`, to which a hash belongs. Each partition is a range of hashes; the ranges are in
/// ascending order.
fn partition_index_of_hash(hash: u64, n: usize) -> usize {
    ((u128::from(hash) * n as u128) >> 64) as usize
}

/// Index of the group of waiting reads in memory to which a hash belongs.
pub(super) fn memory_group_of_hash(hash: u64) -> usize {
    partition_index_of_hash(hash, NUM_SHARDS)
}

/// The fields of a waiting read, borrowed from its encoded bytes (see the module documentation).
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingRead<'a> {
    pub(super) read_number: ReadNumber,
    /// Whether the read has no qualities.
    pub(super) lacks_qualities: bool,
    pub(super) name: &'a [u8],
    pub(super) umi: UmiOrMoleculeId<'a>,
    /// The carried tags, with values in the order of sequencing.
    pub(super) tags: &'a [u8],
    /// The packed read (see [`crate::packed_read`]).
    pub(super) packed_read: &'a [u8],
}

impl<'a> WaitingRead<'a> {
    /// Appends all fields of a waiting read except the packed read to `out`. The caller must append the packed read
    /// next.
    pub(super) fn write_all_but_packed_read(
        which: ReadNumber,
        plain: bool,
        name: &[u8],
        umi: UmiOrMoleculeId<'_>,
        tags: &[u8],
        out: &mut Vec<u8>,
    ) {
        let (is_molecule_id, value) = (matches!(umi, UmiOrMoleculeId::MoleculeId(_)), umi.read_name_suffix()[1]);
        let flags = [which == ReadNumber::Second, plain, is_molecule_id, !tags.is_empty()];
        out.push((0..).zip(flags).fold(0, |bits, (bit, flag)| bits | u8::from(flag) << bit));
        // Name and UMI have at most the 254 bytes of names in SAM.
        out.extend([name.len() as u8, value.len() as u8]);
        out.extend_from_slice(name);
        out.extend_from_slice(value);
        if !tags.is_empty() {
            out.extend((tags.len() as u32).to_le_bytes());
            out.extend_from_slice(tags);
        }
    }

    /// Splits the bytes of a waiting read into its fields. The bytes must have been written by this module.
    pub(super) fn from_encoded_bytes(bytes: &'a [u8]) -> WaitingRead<'a> {
        let (name, rest) = bytes[3..].split_at(usize::from(bytes[1]));
        let (value, rest) = rest.split_at(usize::from(bytes[2]));
        let (tags, read) = match rest.split_first_chunk() {
            Some((length, rest)) if bytes[0] & 8 != 0 => rest.split_at(u32::from_le_bytes(*length) as usize),
            _ => (&[][..], rest),
        };
        let umi = match (value.is_empty(), bytes[0] & 4 != 0) {
            (true, _) => UmiOrMoleculeId::Missing,
            (false, true) => UmiOrMoleculeId::MoleculeId(value),
            (false, false) => UmiOrMoleculeId::Bases(value),
        };
        let which = if bytes[0] & 1 == 0 { ReadNumber::First } else { ReadNumber::Second };
        WaitingRead { read_number: which, lacks_qualities: bytes[0] & 2 != 0, name, umi, tags, packed_read: read }
    }
}

/// Result of searching the mate of a read among the waiting reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MateSearchResult {
    /// The mate was waiting; its bytes are in this range of the output buffer, and it no longer waits.
    Found(ByteRange),
    /// The mate was not waiting; the read itself waits now.
    Waiting,
    /// A waiting read in memory has the same name and the same read number, which is an error.
    Duplicate,
}

/// The waiting reads of one file, in memory and on disk.
pub(super) struct WaitingMates {
    shards: [Mutex<Shard>; NUM_SHARDS],
    /// Size in bytes of the waiting reads in memory; above `max_memory_bytes` they are spilled.
    memory_bytes: AtomicU64,
    max_memory_bytes: u64,
    spill: SpillFile,
    /// Spilled blocks of waiting reads, by partition.
    partitions: Mutex<Vec<Vec<SpillBlock>>>,
}

#[derive(Default)]
struct Shard {
    bytes: Vec<u8>,
    /// Ranges of waiting reads by the hash of the name.
    waiting: HashMap<u64, ByteRange, BuildHasherDefault<IdentityHasher>>,
    /// Ranges of reads whose hash equals that of another waiting read with a different name.
    hash_collisions: Vec<ByteRange>,
    /// Number of bytes in `bytes` that belong to reads that no longer wait.
    dead_bytes: usize,
}

impl WaitingMates {
    /// Creates an empty set for the reads of a file of `file_bytes` bytes. Waiting reads of more than `room` bytes in
    /// total are spilled to a file in `folder`.
    pub(super) fn new(file_bytes: u64, room: u64, folder: &Path) -> WaitingMates {
        let parts =
            (file_bytes / FILE_BYTES_PER_PARTITION).clamp(MIN_MAX_PARTITIONS[0], MIN_MAX_PARTITIONS[1]) as usize;
        WaitingMates {
            shards: Default::default(),
            memory_bytes: AtomicU64::new(0),
            max_memory_bytes: room,
            spill: SpillFile::create_unnamed("waiting mates", folder),
            partitions: Mutex::new(vec![Vec::new(); parts]),
        }
    }

    /// Searches the waiting reads of a shard for the mates of `reads`, which are given as hash of the name and bytes.
    /// Stores each read whose mate is not waiting. Calls `met` with the index of each read and the result, and appends
    /// the bytes of found mates to `found`.
    pub(super) fn match_or_store_reads<'a>(
        &self,
        shard: usize,
        reads: impl Iterator<Item = (u64, &'a [u8])>,
        found: &mut Vec<u8>,
        mut met: impl FnMut(usize, MateSearchResult),
    ) {
        let mut shard = lock(&self.shards[shard]);
        let (mut more, mut less) = (0, 0);
        for (i, (hash, bytes)) in reads.enumerate() {
            let how = shard.match_or_store_reads(hash, bytes, found);
            match &how {
                MateSearchResult::Waiting => more += bytes.len() as u64 + READ_OVERHEAD_BYTES,
                MateSearchResult::Found(place) => less += place.len() as u64 + READ_OVERHEAD_BYTES,
                MateSearchResult::Duplicate => {}
            }
            met(i, how);
        }
        self.memory_bytes.fetch_add(more, Relaxed);
        self.memory_bytes.fetch_sub(less, Relaxed);
    }

    /// Spills the waiting reads if they exceed the memory limit. The calling thread must not hold the lock of a shard.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub(super) fn spill_if_over_memory_limit(&self) -> Result<(), Error> {
        if self.memory_bytes.load(Relaxed) <= self.max_memory_bytes {
            return Ok(());
        }
        // Another thread may have spilled meanwhile.
        let mut parts = lock(&self.partitions);
        if self.memory_bytes.load(Relaxed) > self.max_memory_bytes { self.spill_all(&mut parts) } else { Ok(()) }
    }

    /// Writes all waiting reads to the spill file.
    fn spill_all(&self, parts: &mut [Vec<SpillBlock>]) -> Result<(), Error> {
        let (mut out, n) = (Vec::new(), parts.len());
        for shard in &self.shards {
            let away = std::mem::take(&mut *lock(shard));
            let all = away.sorted_by_hash();
            let bytes: u64 = all.iter().map(|(_, place)| place.len() as u64 + READ_OVERHEAD_BYTES).sum();
            self.memory_bytes.fetch_sub(bytes, Relaxed);
            for same in all.chunk_by(|a, b| partition_index_of_hash(a.0, n) == partition_index_of_hash(b.0, n)) {
                out.clear();
                for (_, place) in same {
                    out.extend((place.len() as u32).to_le_bytes());
                    out.extend_from_slice(&away.bytes[place.clone()]);
                }
                parts[partition_index_of_hash(same[0].0, n)].push(self.spill.write_block(&out, out.len())?);
            }
        }
        Ok(())
    }

    /// To be called when all reads of the file have been added, before
    /// [`WaitingMates::take_remaining_reads_of_partition`]. Returns the number of partitions of the remaining reads.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub(super) fn finish_adding_and_count_partitions(&self) -> Result<usize, Error> {
        let mut parts = lock(&self.partitions);
        if parts.iter().all(Vec::is_empty) {
            return Ok(NUM_SHARDS);
        }
        self.spill_all(&mut parts)?;
        Ok(parts.len())
    }

    /// Takes the waiting reads of partition `number`, which must be less than the result of
    /// [`WaitingMates::finish_adding_and_count_partitions`].
    ///
    /// # Errors
    /// The spill file cannot be read.
    pub(super) fn take_remaining_reads_of_partition(&self, number: usize) -> Result<RemainingReads, Error> {
        let pieces = std::mem::take(&mut lock(&self.partitions)[number]);
        let mut rest = RemainingReads::default();
        if pieces.is_empty() {
            // Nothing was spilled, or nothing of this partition.
            if let Some(shard) = self.shards.get(number) {
                let shard = std::mem::take(&mut *lock(shard));
                rest.ranges = shard.sorted_by_hash().into_iter().map(|(_, place)| place).collect();
                rest.bytes = shard.bytes;
            }
        }
        let mut bytes = Vec::new();
        for buffer in pieces {
            self.spill.read_block(&buffer, &mut bytes)?;
            let (mut at, start) = (0, rest.bytes.len());
            while let Some(length) = bytes[at..].first_chunk() {
                let from = at + 4;
                at = from + u32::from_le_bytes(*length) as usize;
                rest.ranges.push(start + from..start + at);
            }
            rest.bytes.extend_from_slice(&bytes);
            self.spill.punch_hole_at_block(buffer);
        }
        let RemainingReads { bytes, ranges: places, .. } = &mut rest;
        let key = |place: &ByteRange| {
            let read = WaitingRead::from_encoded_bytes(&bytes[place.clone()]);
            (read.name, read.read_number)
        };
        places.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        Ok(rest)
    }
}

impl Shard {
    fn match_or_store_reads(&mut self, hash: u64, bytes: &[u8], found: &mut Vec<u8>) -> MateSearchResult {
        let read = WaitingRead::from_encoded_bytes(bytes);
        let Some(place) = self.waiting.get(&hash) else {
            let place = self.append(bytes);
            self.waiting.insert(hash, place);
            return MateSearchResult::Waiting;
        };
        let there = WaitingRead::from_encoded_bytes(&self.bytes[place.clone()]);
        if there.name != read.name {
            // These two reads are compared by name at the end of the file.
            let place = self.append(bytes);
            self.hash_collisions.push(place);
            return MateSearchResult::Waiting;
        }
        if there.read_number == read.read_number {
            return MateSearchResult::Duplicate;
        }
        let start = found.len();
        found.extend_from_slice(&self.bytes[place.clone()]);
        self.dead_bytes += place.len();
        self.waiting.remove(&hash);
        self.compact();
        MateSearchResult::Found(start..found.len())
    }

    fn append(&mut self, bytes: &[u8]) -> ByteRange {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Removes the bytes of reads that no longer wait if they are more than half of the buffer and than 64 KiB, or if
    /// no read waits.
    fn compact(&mut self) {
        if self.waiting.is_empty() && self.hash_collisions.is_empty() {
            self.bytes.clear();
            self.dead_bytes = 0;
        } else if self.dead_bytes > (64 << 10).max(self.bytes.len() / 2) {
            let mut bytes = Vec::with_capacity(self.bytes.len() - self.dead_bytes);
            for place in self.waiting.values_mut().chain(&mut self.hash_collisions) {
                let start = bytes.len();
                bytes.extend_from_slice(&self.bytes[place.clone()]);
                *place = start..bytes.len();
            }
            (self.bytes, self.dead_bytes) = (bytes, 0);
        }
    }

    /// Hashes and ranges of all waiting reads, sorted by hash.
    fn sorted_by_hash(&self) -> Vec<(u64, ByteRange)> {
        let aside = self.hash_collisions.iter().map(|place| {
            let name = WaitingRead::from_encoded_bytes(&self.bytes[place.clone()]).name;
            (hash_read_name(name), place.clone())
        });
        let waiting = self.waiting.iter().map(|(&hash, place)| (hash, place.clone()));
        let mut all: Vec<(u64, ByteRange)> = waiting.chain(aside).collect();
        all.sort_unstable_by_key(|(hash, place)| (*hash, place.start));
        all
    }
}

/// Reads of one partition that still wait at the end of the file, sorted by name. Both mates of a pair may be among
/// them if one of them was spilled.
#[derive(Debug, Default)]
pub(super) struct RemainingReads {
    bytes: Vec<u8>,
    ranges: Vec<ByteRange>,
    next: usize,
}

impl RemainingReads {
    /// The next remaining template: read 1 and read 2, one of which is `None` if it is not in the file. `None` after
    /// the last template.
    pub(super) fn next_remaining_template(&mut self) -> Option<[Option<WaitingRead<'_>>; 2]> {
        let read = |i: usize| Some(WaitingRead::from_encoded_bytes(&self.bytes[self.ranges.get(i)?.clone()]));
        let (one, two) = (read(self.next)?, read(self.next + 1));
        let two = two.filter(|two| two.name == one.name && two.read_number != one.read_number);
        self.next += 1 + usize::from(two.is_some());
        Some(match one.read_number {
            ReadNumber::Second => [None, Some(one)],
            _ => [Some(one), two],
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in another thread ends the whole run anyway, so a poisoned lock is ignored.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(name: &str, which: ReadNumber) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Reads with and without tags wait together.
        let tags = if name.len().is_multiple_of(2) { name.as_bytes() } else { &[] };
        WaitingRead::write_all_but_packed_read(
            which,
            false,
            name.as_bytes(),
            UmiOrMoleculeId::Bases(b"ACGT"),
            tags,
            &mut bytes,
        );
        bytes.extend(name.bytes());
        bytes
    }

    /// Looks for the mate of one read; returns the result and the bytes that were found.
    fn meet(mates: &WaitingMates, hash: u64, bytes: &[u8]) -> (MateSearchResult, Vec<u8>) {
        let (mut found, mut how) = (Vec::new(), MateSearchResult::Waiting);
        mates.match_or_store_reads(memory_group_of_hash(hash), [(hash, bytes)].into_iter(), &mut found, |_, met| {
            how = met
        });
        mates.spill_if_over_memory_limit().unwrap();
        (how, found)
    }

    #[test]
    fn mates_are_matched_in_memory_and_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        for (room, file) in [(u64::MAX, 0), (2_000, 0), (0, 64 << 30)] {
            let mates = WaitingMates::new(file, room, folder.path());
            let names: Vec<String> = (0..500).map(|i| format!("read{i}")).collect();
            let mut together = 0;
            let mut show = |name: &String, which| {
                let (how, found) = meet(&mates, hash_read_name(name.as_bytes()), &bytes(name, which));
                assert_ne!(how, MateSearchResult::Duplicate);
                if let MateSearchResult::Found(place) = how {
                    assert_eq!(WaitingRead::from_encoded_bytes(&found[place]).name, name.as_bytes());
                    together += 1;
                }
            };
            names.iter().for_each(|name| show(name, ReadNumber::Second));
            // The last hundred have no mate.
            names[..400].iter().rev().for_each(|name| show(name, ReadNumber::First));
            let mut lost = Vec::new();
            for part in 0..mates.finish_adding_and_count_partitions().unwrap() {
                let mut rest = mates.take_remaining_reads_of_partition(part).unwrap();
                while let Some(pair) = rest.next_remaining_template() {
                    match pair {
                        [Some(one), Some(two)] => {
                            assert_eq!((one.name, one.packed_read), (two.name, two.packed_read));
                            assert_eq!(one.tags, if one.name.len() % 2 == 0 { one.name } else { &[] });
                            together += 1;
                        }
                        [None, Some(two)] => lost.push(String::from_utf8(two.name.to_vec()).unwrap()),
                        other => panic!("{other:?}"),
                    }
                }
            }
            lost.sort_by_key(|name| name[4..].parse::<u32>().unwrap());
            assert_eq!((together, &lost[..]), (400, &names[400..]), "{room}");
            assert_eq!(mates.spill.written_bytes() > 0, room < u64::MAX);
        }
    }

    #[test]
    fn names_with_equal_hashes_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let mates = WaitingMates::new(0, u64::MAX, folder.path());
        // Both reads are given the hash of the name "a".
        let same = hash_read_name(b"a");
        assert_eq!(meet(&mates, same, &bytes("a", ReadNumber::First)).0, MateSearchResult::Waiting);
        assert_eq!(meet(&mates, same, &bytes("b", ReadNumber::Second)).0, MateSearchResult::Waiting);
        assert_eq!(meet(&mates, same, &bytes("a", ReadNumber::First)).0, MateSearchResult::Duplicate);
        let (how, found) = meet(&mates, same, &bytes("a", ReadNumber::Second));
        assert_eq!((how, found), (MateSearchResult::Found(0..9), bytes("a", ReadNumber::First)));
        let mut rest = (0..mates.finish_adding_and_count_partitions().unwrap())
            .map(|part| mates.take_remaining_reads_of_partition(part).unwrap());
        assert!(rest.any(|mut rest| rest.next_remaining_template().is_some_and(|pair| pair[1].unwrap().name == b"b")));
    }
}
