//! A packed copy of reads, so that passes after the first need not inflate, parse and cut the files again.
//!
//! Each thread that goes through the reads packs the pairs it has seen into a block; full blocks are pieces of one file, each with its sum. Which block a
//! pair is in goes by the threads, as the order of a pass over the files does.
//!
//! ```text
//! a block: pairs, end to end. A pair: bytes that its name shares with the one before in the block, bytes of the rest (both 7 bits a byte, the lowest
//! first, the highest bit set in all but the last), the rest; of each mate its bytes, as many as a number of the same kind says
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use genuma_work::parallel::try_in_order;
use genuma_work::spill::{Error, ObjectFile, Piece, Spill};
use serde::{Deserialize, Serialize};

use crate::Meter;
use crate::batch::{Mate, Pair};
use crate::packed_read::{PackedRef, Packer};

/// Bytes from which a block is full: the memory that each thread takes.
pub const BLOCK: usize = 1 << 20;

/// How the file is named in messages.
const WHAT: &str = "reads'";

/// A block of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Block {
    sample: u8,
    pairs: u32,
    piece: Piece,
}

/// What lies where in a copy that is complete and on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// In the order of the file.
    blocks: Vec<Block>,
}

impl Copied {
    /// Bytes of the file that it takes.
    pub fn bytes(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.piece.at + u64::from(block.piece.len))
    }

    /// Pairs in it.
    pub fn pairs(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.pairs)).sum()
    }
}

/// A copy that is being made.
#[derive(Debug)]
pub struct Copying {
    spill: Spill,
    /// What stopped it.
    failed: Mutex<Option<Error>>,
    stopped: AtomicBool,
}

impl Copying {
    /// In a new file at `path` of `limit` bytes at most.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path, limit: u64) -> Result<Copying, Error> {
        let spill = Spill::create(WHAT, path)?.within(limit);
        Ok(Copying { spill, failed: Mutex::default(), stopped: AtomicBool::new(false) })
    }

    /// Where a thread puts pairs.
    pub fn recorder(&self) -> Recorder<'_> {
        Recorder {
            copying: self,
            sample: 0,
            pairs: 0,
            block: Vec::new(),
            name: Vec::new(),
            packer: Packer::default(),
            packed: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// The copy of what all recorders were given, on the disk.
    ///
    /// # Errors
    /// The first that any of them met; or the disk refuses.
    pub fn finish<'a>(&'a self, recorders: impl IntoIterator<Item = Recorder<'a>>) -> Result<Copied, Error> {
        let mut blocks = Vec::new();
        for mut recorder in recorders {
            recorder.flush();
            blocks.append(&mut recorder.blocks);
        }
        if let Some(error) = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        self.spill.sync()?;
        blocks.sort_unstable_by_key(|block| block.piece.at);
        Ok(Copied { blocks })
    }

    /// The file, for what is to lie behind the copy.
    pub fn file(&self) -> &Spill {
        &self.spill
    }

    /// Nothing more is recorded.
    fn stop(&self, error: Error) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stopped.store(true, Relaxed);
        self.spill.give_up();
    }
}

/// A thread's way into a copy. It tells of no errors: the first stops all, and [`Copying::finish`] has it.
#[derive(Debug)]
pub struct Recorder<'a> {
    copying: &'a Copying,
    /// Of the block in hand.
    sample: u8,
    pairs: u32,
    block: Vec<u8>,
    /// The last name in it.
    name: Vec<u8>,
    packer: Packer,
    /// The mate in hand.
    packed: Vec<u8>,
    blocks: Vec<Block>,
}

impl Recorder<'_> {
    /// Records a pair of a sample.
    pub fn push(&mut self, pair: Pair<'_>, sample: u8) {
        if self.copying.stopped.load(Relaxed) {
            return;
        }
        if sample != self.sample {
            self.flush();
            self.sample = sample;
        }
        let Recorder { pairs, block, name, packer, packed, .. } = self;
        let shared = name.iter().zip(pair.name).take_while(|(a, b)| a == b).count();
        let rest = &pair.name[shared..];
        put_number(shared, block);
        put_number(rest.len(), block);
        block.extend_from_slice(rest);
        name.truncate(shared);
        name.extend_from_slice(rest);
        for Mate { seq, qual } in pair.mates {
            packed.clear();
            packer.pack(seq, qual, packed);
            put_number(packed.len(), block);
            block.extend_from_slice(packed);
        }
        *pairs += 1;
        if block.len() >= BLOCK {
            self.flush();
        }
    }

    /// Writes the block in hand.
    fn flush(&mut self) {
        let pairs = std::mem::take(&mut self.pairs);
        if pairs > 0 {
            match self.copying.spill.write(&self.block, self.block.len()) {
                Ok(piece) => self.blocks.push(Block { sample: self.sample, pairs, piece }),
                Err(error) => self.copying.stop(error),
            }
        }
        self.block.clear();
        self.name.clear();
    }
}

/// Appends a number, 7 bits a byte.
fn put_number(mut number: usize, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A number at the beginning of `bytes`, which then begin behind it.
fn number(bytes: &mut &[u8]) -> Option<usize> {
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

/// So many bytes as the number at the beginning says.
fn string<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let n = number(bytes)?;
    let (string, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(string)
}

/// A copy that can be read.
#[derive(Debug)]
pub struct ReadCopy {
    spill: Spill,
    copied: Copied,
}

/// What a thread reads with; reused for every block.
#[derive(Debug, Default)]
struct Hands {
    bytes: Vec<u8>,
    name: Vec<u8>,
    letters: Letters,
}

/// A pair's mates as letters; they keep their memory.
#[derive(Debug, Default)]
struct Letters {
    bases: [Vec<u8>; 2],
    quals: [Vec<u8>; 2],
}

/// A pair of a copy.
#[derive(Debug)]
pub struct CopiedPair<'a> {
    name: &'a [u8],
    mates: [PackedRef<'a>; 2],
    letters: &'a mut Letters,
}

impl CopiedPair<'_> {
    /// Name and bases; qualities are left out.
    pub fn bases(&mut self) -> Pair<'_> {
        let mates = self.mates.iter().zip(&mut self.letters.bases);
        mates.for_each(|(mate, letters)| mate.bases_into(letters));
        let mate = |i: usize| Mate { seq: &self.letters.bases[i], qual: &[] };
        Pair { name: self.name, mates: [mate(0), mate(1)] }
    }

    /// All of it.
    pub fn whole(&mut self) -> Pair<'_> {
        for (i, mate) in self.mates.iter().enumerate() {
            mate.bases_into(&mut self.letters.bases[i]);
            mate.quals_into(&mut self.letters.quals[i]);
        }
        let mate = |i: usize| Mate { seq: &self.letters.bases[i], qual: &self.letters.quals[i] };
        Pair { name: self.name, mates: [mate(0), mate(1)] }
    }
}

impl ReadCopy {
    /// That at `path`, of which it is known what lies where; `None` when the file is not there, or of another length.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path, copied: Copied) -> Result<Option<ReadCopy>, Error> {
        if path.metadata().map_or(0, |file| file.len()) != copied.bytes() {
            return Ok(None);
        }
        Ok(Some(ReadCopy { spill: Spill::open(WHAT, path)?, copied }))
    }

    /// That in an object, of which it is known what lies where.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn object(file: &ObjectFile<'_>, copied: Copied) -> Result<ReadCopy, Error> {
        Ok(ReadCopy { spill: Spill::object(WHAT, file)?, copied })
    }

    /// Calls `each` with every pair of the `samples`, from `threads` threads (at least one), each with a state of its own made by `init`.
    ///
    /// # Errors
    /// The first error, of reading or of `each`, stops all threads and is returned; so is a file that is not as it was written.
    pub fn for_each<S, E>(
        &self,
        samples: &[u8],
        threads: usize,
        meter: &Meter,
        init: impl Fn() -> S + Sync,
        each: impl Fn(&mut S, &mut CopiedPair<'_>, u8) -> Result<(), E> + Sync,
    ) -> Result<(), E>
    where
        E: From<Error> + Send,
    {
        let wanted = |block: &&Block| samples.contains(&block.sample);
        let blocks: Vec<&Block> = self.copied.blocks.iter().filter(wanted).collect();
        meter.expect_bytes(blocks.iter().map(|block| u64::from(block.piece.len)).sum());
        let start = || (Hands::default(), init());
        try_in_order(blocks.len(), threads, start, |(hands, state), i| {
            let &Block { sample, pairs, piece } = blocks[i];
            self.spill.read(&piece, &mut hands.bytes)?;
            meter.add_bytes(piece.len.into());
            meter.add_pairs(pairs.into());
            let whole = hands.each(pairs, |mut pair| each(state, &mut pair, sample))?;
            if whole { Ok(()) } else { Err(E::from(self.spill.damaged(&piece))) }
        })
        .map(drop)
    }
}

impl Hands {
    /// Calls `each` with the pairs of the block in hand. False when these are not so many whole ones.
    fn each<E>(
        &mut self,
        pairs: u32,
        mut each: impl FnMut(CopiedPair<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Hands { bytes, name, letters } = self;
        let mut rest = &bytes[..];
        name.clear();
        for _ in 0..pairs {
            let Some(mates) = next(&mut rest, name) else { return Ok(false) };
            each(CopiedPair { name, mates, letters })?;
        }
        Ok(rest.is_empty())
    }
}

/// The mates of the next pair, if it is whole, and its name in place of the last one.
fn next<'a>(rest: &mut &'a [u8], name: &mut Vec<u8>) -> Option<[PackedRef<'a>; 2]> {
    let shared = number(rest)?;
    if shared > name.len() {
        return None;
    }
    name.truncate(shared);
    name.extend_from_slice(string(rest)?);
    Some([PackedRef::of(string(rest)?)?, PackedRef::of(string(rest)?)?])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    type Owned = (u8, Vec<u8>, [[Vec<u8>; 2]; 2]);

    fn owned(pair: Pair<'_>, sample: u8) -> Owned {
        (sample, pair.name.to_vec(), pair.mates.map(|mate| [mate.seq.to_vec(), mate.qual.to_vec()]))
    }

    /// Pairs of all kinds of both samples.
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
        // Longer than numbers of 16 bits and than a block, and a name of nothing.
        let long = || [b"ACGTT".repeat(500_000), vec![b'I'; 2_500_000]];
        pairs.push((1, Vec::new(), [long(), Default::default()]));
        pairs.push((0, b"long".repeat(50_000), [Default::default(), long()]));
        pairs
    }

    fn borrowed((_, name, mates): &Owned) -> Pair<'_> {
        Pair { name, mates: mates.each_ref().map(|[seq, qual]| Mate { seq, qual }) }
    }

    /// Records pairs by so many threads.
    fn copied(path: &Path, pairs: &[Owned], threads: usize, limit: u64) -> Result<Copied, Error> {
        let copying = Copying::create(path, limit)?;
        let recorders = std::thread::scope(|scope| {
            let share = |thread| {
                let copying = &copying;
                scope.spawn(move || {
                    let mut recorder = copying.recorder();
                    let own = pairs.iter().skip(thread).step_by(threads);
                    own.for_each(|pair| recorder.push(borrowed(pair), pair.0));
                    recorder
                })
            };
            let all: Vec<_> = (0..threads).map(share).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        copying.finish(recorders)
    }

    fn read(copy: &ReadCopy, samples: &[u8], threads: usize) -> Result<Vec<Owned>, Error> {
        let (meter, all) = (Meter::default(), Mutex::new(Vec::new()));
        copy.for_each(
            samples,
            threads,
            &meter,
            || (),
            |(), pair, sample| {
                let bases = owned(pair.bases(), sample);
                let whole = owned(pair.whole(), sample);
                assert!(bases.2.iter().zip(&whole.2).all(|([a, q], [b, _])| a == b && q.is_empty()));
                all.lock().unwrap().push(whole);
                Ok::<(), Error>(())
            },
        )?;
        let all: Vec<Owned> = all.into_inner().unwrap();
        assert_eq!((meter.bytes_done(), meter.pairs()), (meter.bytes_total(), all.len() as u64));
        Ok(all)
    }

    #[test]
    fn pairs_come_back_as_they_were_whatever_the_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.bins");
        let mut all = pairs(20_000);
        for threads in [1, 5] {
            let index = copied(&path, &all, threads, u64::MAX).unwrap();
            assert!(index.blocks.len() > 5 && index.bytes() == fs::metadata(&path).unwrap().len());
            assert_eq!(index.pairs(), all.len() as u64);
            let copy = ReadCopy::open(&path, index).unwrap().unwrap();
            let mut back = read(&copy, &[0, 1], 3).unwrap();
            all.sort();
            back.sort();
            assert!(back == all);
            let mut one = read(&copy, &[1], 1).unwrap();
            one.sort();
            assert!(one.iter().eq(all.iter().filter(|pair| pair.0 == 1)));
        }
        let none = copied(&path, &[], 2, 0).unwrap();
        assert_eq!(read(&ReadCopy::open(&path, none).unwrap().unwrap(), &[0, 1], 2).unwrap(), []);
    }

    #[test]
    fn a_copy_that_outgrows_its_limit_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.bins");
        let all = pairs(20_000);
        let bytes = copied(&path, &all, 1, u64::MAX).unwrap().bytes();
        assert_eq!(copied(&path, &all, 1, bytes).unwrap().bytes(), bytes);
        assert!(matches!(copied(&path, &all, 3, bytes / 2), Err(Error::Full { .. })));
        assert!(fs::metadata(&path).unwrap().len() <= bytes / 2);
        let copying = Copying::create(&path, bytes / 2).unwrap();
        let mut recorder = copying.recorder();
        all.iter().for_each(|pair| recorder.push(borrowed(pair), pair.0));
        assert_eq!(fs::metadata(&path).unwrap().len(), 0, "its room is given back at once");
    }

    #[test]
    fn a_copy_that_is_gone_or_cut_is_none_and_one_that_is_damaged_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.bins");
        let index = copied(&path, &pairs(2_000), 2, u64::MAX).unwrap();
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        bad[good.len() / 3] ^= 4;
        fs::write(&path, bad).unwrap();
        let copy = ReadCopy::open(&path, index.clone()).unwrap().unwrap();
        let said = read(&copy, &[0, 1], 2).unwrap_err().to_string();
        assert!(said.contains("reads.bins is damaged"), "{said}");
        fs::write(&path, &good[1..]).unwrap();
        assert!(ReadCopy::open(&path, index.clone()).unwrap().is_none());
        fs::remove_file(&path).unwrap();
        assert!(ReadCopy::open(&path, index).unwrap().is_none());
    }

    #[test]
    fn whatever_bytes_a_block_has_nothing_goes_wrong() {
        let copying = Copying::create(&tempfile::tempdir().unwrap().path().join("x"), u64::MAX).unwrap();
        let mut recorder = copying.recorder();
        pairs(40).iter().take(40).for_each(|pair| recorder.push(borrowed(pair), 0));
        let good = recorder.block.clone();
        let mut hands = Hands::default();
        let mut whole = |bytes: Vec<u8>, pairs| {
            hands.bytes = bytes;
            hands.each(pairs, |mut pair| {
                pair.whole();
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
