//! Packed reads: the reads of all samples in a file of the work folder, so that passes after the first need not
//! decompress and parse the input files again.
//!
//! Each thread of the first pass packs the pairs that it processes into a block; full blocks are written to one file,
//! each with a checksum. Which block has which pairs depends on the threads.
//!
//! ```text
//! block: pairs, one after the other
//! pair:  number of bytes that its name shares with the previous name of the block, number of the remaining bytes,
//!        the remaining bytes; then for each mate the number of bytes and the packed mate
//! numbers are variable-length integers: 7 bits per byte, the lowest first, the highest bit set in all bytes but the last
//! ```

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use genuma_work::parallel::try_map_in_order;
use genuma_work::spill::{Error, LocalCopyOfObjectRange, SpillBlock, SpillFile};
use serde::{Deserialize, Serialize};

use crate::ProgressCounters;
use crate::packed_read::{PackedReadRef, ReadPacker};
use crate::pair_batch::{Mate, ReadPair};

/// Size in bytes from which a block is full. Each thread needs this much memory for its block.
pub const FULL_BLOCK_BYTES: usize = 1 << 20;

/// Name of the contents of the spill file for messages.
const CONTENTS: &str = "packed reads";

/// Position in the file of one block of packed reads, with its sample and number of pairs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Block {
    sample: u8,
    num_pairs: u32,
    spill_block: SpillBlock,
}

/// List of the blocks of a complete file of packed reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedReadBlockIndex {
    /// The blocks in the order of the file.
    blocks: Vec<Block>,
}

impl PackedReadBlockIndex {
    /// Size in bytes of the file up to the end of the last block, without other data that were appended.
    pub fn file_bytes(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.spill_block.offset + u64::from(block.spill_block.len))
    }

    /// Number of read pairs that are stored, of all samples.
    pub fn num_pairs(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.num_pairs)).sum()
    }
}

/// Writes a file of packed reads.
#[derive(Debug)]
pub struct PackedReadsWriter {
    spill: SpillFile,
    /// The first error of any thread.
    first_error: Mutex<Option<Error>>,
    is_stopped: AtomicBool,
}

impl PackedReadsWriter {
    /// Creates the file at `path`, which must not exceed `limit` bytes.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, limit: u64) -> Result<PackedReadsWriter, Error> {
        let spill = SpillFile::create(CONTENTS, path)?.with_max_bytes(limit);
        Ok(PackedReadsWriter { spill, first_error: Mutex::default(), is_stopped: AtomicBool::new(false) })
    }

    /// Creates a recorder for one thread.
    pub fn new_recorder(&self) -> PackedPairRecorder<'_> {
        PackedPairRecorder {
            writer: self,
            sample: 0,
            pairs: 0,
            block: Vec::new(),
            last_name: Vec::new(),
            packer: ReadPacker::default(),
            packed_mate: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Writes the last blocks of all recorders, waits until the file is on the disk (fsync), and returns its index.
    ///
    /// # Errors
    /// The first error of any recorder, or an error of the disk.
    pub fn finish<'a>(
        &'a self,
        recorders: impl IntoIterator<Item = PackedPairRecorder<'a>>,
    ) -> Result<PackedReadBlockIndex, Error> {
        let mut blocks = Vec::new();
        for mut recorder in recorders {
            recorder.flush();
            blocks.append(&mut recorder.blocks);
        }
        if let Some(error) = self.first_error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        self.spill.sync_to_disk()?;
        blocks.sort_unstable_by_key(|block| block.spill_block.offset);
        Ok(PackedReadBlockIndex { blocks })
    }

    /// The spill file with the packed reads. The caller may append other data after them.
    pub fn spill_file(&self) -> &SpillFile {
        &self.spill
    }

    /// Stores the error, stops all recorders and releases the disk space.
    fn fail(&self, error: Error) {
        self.first_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.is_stopped.store(true, Relaxed);
        self.spill.release_all_disk_space();
    }
}

/// Records the pairs that one thread processes. Errors are not reported here: the first error stops all recorders and
/// is returned by [`PackedReadsWriter::finish`].
#[derive(Debug)]
pub struct PackedPairRecorder<'a> {
    writer: &'a PackedReadsWriter,
    /// Sample number of the pairs in the current block.
    sample: u8,
    pairs: u32,
    block: Vec<u8>,
    /// Name of the last pair in the current block.
    last_name: Vec<u8>,
    packer: ReadPacker,
    packed_mate: Vec<u8>,
    blocks: Vec<Block>,
}

impl PackedPairRecorder<'_> {
    /// Appends a pair of sample number `sample`.
    pub fn push_pair(&mut self, pair: ReadPair<'_>, sample: u8) {
        if self.writer.is_stopped.load(Relaxed) {
            return;
        }
        if sample != self.sample {
            self.flush();
            self.sample = sample;
        }
        let PackedPairRecorder { pairs, block, last_name: name, packer, packed_mate: packed, .. } = self;
        let shared = name.iter().zip(pair.name).take_while(|(a, b)| a == b).count();
        let rest = &pair.name[shared..];
        append_varint(shared, block);
        append_varint(rest.len(), block);
        block.extend_from_slice(rest);
        name.truncate(shared);
        name.extend_from_slice(rest);
        for Mate { seq, qual } in pair.mates {
            packed.clear();
            packer.pack(seq, qual, packed);
            append_varint(packed.len(), block);
            block.extend_from_slice(packed);
        }
        *pairs += 1;
        if block.len() >= FULL_BLOCK_BYTES {
            self.flush();
        }
    }

    /// Writes the block that is being filled to the file and starts an empty one.
    fn flush(&mut self) {
        let pairs = std::mem::take(&mut self.pairs);
        if pairs > 0 {
            match self.writer.spill.write_block(&self.block, self.block.len()) {
                Ok(piece) => self.blocks.push(Block { sample: self.sample, num_pairs: pairs, spill_block: piece }),
                Err(error) => self.writer.fail(error),
            }
        }
        self.block.clear();
        self.last_name.clear();
    }
}

/// Appends a variable-length integer: 7 bits per byte, the lowest bits first.
fn append_varint(mut number: usize, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a variable-length integer at the start of `bytes` and removes it from there.
fn read_varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Reads a length as a variable-length integer, and then that number of bytes.
fn read_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let n = read_varint(bytes)?;
    let (string, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(string)
}

/// A file of packed reads, opened for reading.
#[derive(Debug)]
pub struct PackedReadsFile {
    spill: SpillFile,
    index: PackedReadBlockIndex,
}

/// Buffers of one thread, reused for every block.
#[derive(Debug, Default)]
struct DecodeBuffers {
    bytes: Vec<u8>,
    name: Vec<u8>,
    mate_buffers: MateBuffers,
}

/// Unpacked bases and qualities of both mates of a pair; reused for every pair.
#[derive(Debug, Default)]
struct MateBuffers {
    bases: [Vec<u8>; 2],
    quals: [Vec<u8>; 2],
}

/// A pair of packed reads, which is unpacked when its reads are needed.
#[derive(Debug)]
pub struct PackedPair<'a> {
    name: &'a [u8],
    mates: [PackedReadRef<'a>; 2],
    buffers: &'a mut MateBuffers,
}

impl PackedPair<'_> {
    /// Unpacks name and bases. The qualities are empty.
    pub fn unpack_bases(&mut self) -> ReadPair<'_> {
        let mates = self.mates.iter().zip(&mut self.buffers.bases);
        mates.for_each(|(mate, letters)| mate.unpack_bases(letters));
        let mate = |i: usize| Mate { seq: &self.buffers.bases[i], qual: &[] };
        ReadPair { name: self.name, mates: [mate(0), mate(1)] }
    }

    /// Unpacks name, bases and qualities.
    pub fn unpack_bases_and_quals(&mut self) -> ReadPair<'_> {
        for (i, mate) in self.mates.iter().enumerate() {
            mate.unpack_bases(&mut self.buffers.bases[i]);
            mate.unpack_quals(&mut self.buffers.quals[i]);
        }
        let mate = |i: usize| Mate { seq: &self.buffers.bases[i], qual: &self.buffers.quals[i] };
        ReadPair { name: self.name, mates: [mate(0), mate(1)] }
    }
}

impl PackedReadsFile {
    /// Opens the file at `path`; `None` if the file does not exist or its size differs from that in `copied`, the
    /// index of its blocks.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, copied: PackedReadBlockIndex) -> Result<Option<PackedReadsFile>, Error> {
        let spill = match path.metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(file) if file.len() != copied.file_bytes() => return Ok(None),
            // Opening the file reports an error of its metadata.
            _ => SpillFile::open_for_reading(CONTENTS, path)?,
        };
        Ok(Some(PackedReadsFile { spill, index: copied }))
    }

    /// Opens the packed reads in a local copy of an object of the run store. `copied` is the index of their blocks.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_object_copy(
        file: &LocalCopyOfObjectRange<'_>,
        copied: PackedReadBlockIndex,
    ) -> Result<PackedReadsFile, Error> {
        Ok(PackedReadsFile { spill: SpillFile::open_object_copy(CONTENTS, file)?, index: copied })
    }

    /// Calls `each` with every pair of the given samples, on up to `threads` threads (at least one). Each thread has
    /// its own state, which `init` creates.
    ///
    /// # Errors
    /// The first error, of reading or of `each`, stops all threads. A block with a wrong checksum is an error.
    pub fn for_each_pair<S, E>(
        &self,
        samples: &[u8],
        threads: usize,
        progress: &ProgressCounters,
        init: impl Fn() -> S + Sync,
        each: impl Fn(&mut S, &mut PackedPair<'_>, u8) -> Result<(), E> + Sync,
    ) -> Result<(), E>
    where
        E: From<Error> + Send,
    {
        let wanted = |block: &&Block| samples.contains(&block.sample);
        let blocks: Vec<&Block> = self.index.blocks.iter().filter(wanted).collect();
        progress.add_expected_bytes(blocks.iter().map(|block| u64::from(block.spill_block.len)).sum());
        let start = || (DecodeBuffers::default(), init());
        try_map_in_order(blocks.len(), threads, start, |(buffers, state), i| {
            let &Block { sample, num_pairs: pairs, spill_block: piece } = blocks[i];
            self.spill.read_block(&piece, &mut buffers.bytes)?;
            progress.add_bytes(piece.len.into());
            progress.add_pairs(pairs.into());
            let whole = buffers.for_each_pair(pairs, |mut pair| each(state, &mut pair, sample))?;
            if whole { Ok(()) } else { Err(E::from(self.spill.damaged_block_error(&piece))) }
        })
        .map(drop)
    }
}

impl DecodeBuffers {
    /// Calls `each` with the pairs of the block in the buffer; false if the block does not have exactly `pairs` valid
    /// pairs.
    fn for_each_pair<E>(
        &mut self,
        pairs: u32,
        mut each: impl FnMut(PackedPair<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let DecodeBuffers { bytes, name, mate_buffers: letters } = self;
        let mut rest = &bytes[..];
        name.clear();
        for _ in 0..pairs {
            let Some(mates) = read_pair(&mut rest, name) else { return Ok(false) };
            each(PackedPair { name, mates, buffers: letters })?;
        }
        Ok(rest.is_empty())
    }
}

/// Reads the mates of the next pair, and replaces `name` by its name; `None` if the pair is not valid.
fn read_pair<'a>(rest: &mut &'a [u8], name: &mut Vec<u8>) -> Option<[PackedReadRef<'a>; 2]> {
    let shared = read_varint(rest)?;
    if shared > name.len() {
        return None;
    }
    name.truncate(shared);
    name.extend_from_slice(read_bytes(rest)?);
    Some([PackedReadRef::from_packed_bytes(read_bytes(rest)?)?, PackedReadRef::from_packed_bytes(read_bytes(rest)?)?])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    type Owned = (u8, Vec<u8>, [[Vec<u8>; 2]; 2]);

    fn owned(pair: ReadPair<'_>, sample: u8) -> Owned {
        (sample, pair.name.to_vec(), pair.mates.map(|mate| [mate.seq.to_vec(), mate.qual.to_vec()]))
    }

    /// Pairs of many kinds, of both samples.
    fn pairs(n: usize) -> Vec<Owned> {
        let mut dice = 11u64;
        let mut roll = |n: usize| {
            dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (dice >> 33) as usize % n
        };
        let mut pairs: Vec<Owned> = (0..n)
            .map(|i| {
                let kinds = [1, 2, 4, 8, 40][roll(5)];
                let letters = [&b"ACGT"[..], b"ACGTN", b"ACGTacgtNn.R"][roll(3)];
                let mates = [0; 2].map(|_| {
                    let len = if roll(9) == 0 { 0 } else { roll(300) };
                    let seq = (0..len).map(|_| letters[roll(letters.len())]).collect();
                    [seq, (0..len).map(|_| b'!' + roll(kinds) as u8).collect()]
                });
                (u8::from(i % 1000 < 500), format!("run:{}:{i}", roll(3)).into_bytes(), mates)
            })
            .collect();
        // Sequences longer than 65,535 bases and than a block, and an empty name.
        let long = || [b"ACGTT".repeat(500_000), vec![b'I'; 2_500_000]];
        pairs.push((1, Vec::new(), [long(), Default::default()]));
        pairs.push((0, b"long".repeat(50_000), [Default::default(), long()]));
        pairs
    }

    fn borrowed((_, name, mates): &Owned) -> ReadPair<'_> {
        ReadPair { name, mates: mates.each_ref().map(|[seq, qual]| Mate { seq, qual }) }
    }

    /// Writes pairs with several threads.
    fn write_pairs(path: &Path, pairs: &[Owned], threads: usize, limit: u64) -> Result<PackedReadBlockIndex, Error> {
        let writer = PackedReadsWriter::create(path, limit)?;
        let recorders = std::thread::scope(|scope| {
            let share = |thread| {
                let writer = &writer;
                scope.spawn(move || {
                    let mut recorder = writer.new_recorder();
                    let own = pairs.iter().skip(thread).step_by(threads);
                    own.for_each(|pair| recorder.push_pair(borrowed(pair), pair.0));
                    recorder
                })
            };
            let all: Vec<_> = (0..threads).map(share).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        writer.finish(recorders)
    }

    fn read(copy: &PackedReadsFile, samples: &[u8], threads: usize) -> Result<Vec<Owned>, Error> {
        let (progress, all) = (ProgressCounters::default(), Mutex::new(Vec::new()));
        copy.for_each_pair(
            samples,
            threads,
            &progress,
            || (),
            |(), pair, sample| {
                let bases = owned(pair.unpack_bases(), sample);
                let whole = owned(pair.unpack_bases_and_quals(), sample);
                assert!(bases.2.iter().zip(&whole.2).all(|([a, q], [b, _])| a == b && q.is_empty()));
                all.lock().unwrap().push(whole);
                Ok::<(), Error>(())
            },
        )?;
        let all: Vec<Owned> = all.into_inner().unwrap();
        assert_eq!((progress.bytes_done(), progress.num_pairs()), (progress.bytes_total(), all.len() as u64));
        Ok(all)
    }

    #[test]
    fn pairs_are_read_back_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.bins");
        let mut all = pairs(20_000);
        for threads in [1, 5] {
            let index = write_pairs(&path, &all, threads, u64::MAX).unwrap();
            assert!(index.blocks.len() > 5 && index.file_bytes() == fs::metadata(&path).unwrap().len());
            assert_eq!(index.num_pairs(), all.len() as u64);
            let copy = PackedReadsFile::open(&path, index).unwrap().unwrap();
            let mut back = read(&copy, &[0, 1], 3).unwrap();
            all.sort();
            back.sort();
            assert!(back == all);
            let mut one = read(&copy, &[1], 1).unwrap();
            one.sort();
            assert!(one.iter().eq(all.iter().filter(|pair| pair.0 == 1)));
        }
        let none = write_pairs(&path, &[], 2, 0).unwrap();
        assert_eq!(read(&PackedReadsFile::open(&path, none).unwrap().unwrap(), &[0, 1], 2).unwrap(), []);
    }

    #[test]
    fn a_file_that_exceeds_its_limit_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.bins");
        let all = pairs(20_000);
        let bytes = write_pairs(&path, &all, 1, u64::MAX).unwrap().file_bytes();
        assert_eq!(write_pairs(&path, &all, 1, bytes).unwrap().file_bytes(), bytes);
        assert!(matches!(write_pairs(&path, &all, 3, bytes / 2), Err(Error::Full { .. })));
        assert!(fs::metadata(&path).unwrap().len() <= bytes / 2);
        let writer = PackedReadsWriter::create(&path, bytes / 2).unwrap();
        let mut recorder = writer.new_recorder();
        all.iter().for_each(|pair| recorder.push_pair(borrowed(pair), pair.0));
        assert_eq!(fs::metadata(&path).unwrap().len(), 0, "its room is given back at once");
    }

    #[test]
    fn missing_or_truncated_files_are_none_and_damaged_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.bins");
        let index = write_pairs(&path, &pairs(2_000), 2, u64::MAX).unwrap();
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        bad[good.len() / 3] ^= 4;
        fs::write(&path, bad).unwrap();
        let copy = PackedReadsFile::open(&path, index.clone()).unwrap().unwrap();
        let message = read(&copy, &[0, 1], 2).unwrap_err().to_string();
        assert!(message.contains("reads.bins is damaged"), "{message}");
        fs::write(&path, &good[1..]).unwrap();
        assert!(PackedReadsFile::open(&path, index.clone()).unwrap().is_none());
        fs::remove_file(&path).unwrap();
        assert!(PackedReadsFile::open(&path, index).unwrap().is_none());
    }

    #[test]
    fn damaged_blocks_do_not_panic() {
        let writer = PackedReadsWriter::create(&tempfile::tempdir().unwrap().path().join("x"), u64::MAX).unwrap();
        let mut recorder = writer.new_recorder();
        pairs(40).iter().take(40).for_each(|pair| recorder.push_pair(borrowed(pair), 0));
        let good = recorder.block.clone();
        let mut buffers = DecodeBuffers::default();
        let mut whole = |bytes: Vec<u8>, pairs| {
            buffers.bytes = bytes;
            buffers.for_each_pair(pairs, |mut pair| {
                pair.unpack_bases_and_quals();
                Ok::<(), ()>(())
            })
        };
        assert_eq!(whole(good.clone(), 40), Ok(true));
        assert_eq!([39, 41].map(|n| whole(good.clone(), n)), [Ok(false); 2]);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            let _ = whole(bad, 40);
            if at % 7 == 0 {
                assert_eq!(whole(good[..at].to_vec(), 40), Ok(false));
            }
        }
        assert_eq!(whole(vec![0xff; 100], 1), Ok(false));
    }
}
