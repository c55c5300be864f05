//! Making an index: the reference packed at two bits a base, its suffixes sorted, both files written.
//!
//! The files are byte for byte those of `minibwa index`, whose library sorts the suffixes (libsais). Its own code for the rest does not look at
//! what reading and writing return: a reference that could not be read to its end, or a full disk, gave an index all the same.

use std::path::Path;

use genuma_reads::fasta::{Part, read_parts};
use genuma_work::publish::Set;

use super::super::seal::{Seal, Sum, Summed};
use super::super::{Error, in_stretches};
use super::proof::CODES;
use super::{check_processor, ffi, files, program};

/// Bits of a row's number that are zero where the suffix array is kept.
const RATE: u32 = 4;
/// Where the random numbers begin from which bases are made that are none of the four.
const SEED: u64 = 11;
/// Bases whose complement is taken at a time.
const STRETCH: u64 = 1 << 22;

/// The reference as `PREFIX.l2b` has it.
struct Packed {
    lengths: Vec<u64>,
    /// Each with its NUL.
    names: Vec<u8>,
    comments: Vec<u8>,
    /// Stretches of bases that are none of the four, or in lower case, but for those that a sequence ends with.
    ambiguous: Runs,
    masked: Runs,
    words: Vec<u64>,
    bases: u64,
    random: u64,
}

/// Stretches of bases, each its first and the one behind its last.
#[derive(Default)]
struct Runs {
    done: Vec<[u64; 2]>,
    since: Option<u64>,
}

impl Runs {
    fn next(&mut self, at: u64, inside: bool) {
        match (inside, self.since) {
            (true, None) => self.since = Some(at),
            (false, Some(since)) => {
                self.done.push([since, at]);
                self.since = None;
            }
            _ => {}
        }
    }
}

/// The next of the numbers of SplitMix64 (Steele et al. 2014).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Packed {
    fn read(reference: &Path) -> Result<Packed, Error> {
        let mut packed = Packed {
            lengths: Vec::new(),
            names: Vec::new(),
            comments: Vec::new(),
            ambiguous: Runs::default(),
            masked: Runs::default(),
            words: Vec::new(),
            bases: 0,
            random: SEED,
        };
        read_parts(reference, |part| match part {
            Part::Header { name, comment } => packed.begin(name, comment),
            Part::Bases(bases) => packed.add(bases),
        })?;
        if packed.lengths.len() > i32::MAX as usize / 2 {
            let what = "more sequences than minibwa can number".into();
            return Err(Error::Reference { path: reference.into(), what });
        }
        Ok(packed)
    }

    fn begin(&mut self, name: &[u8], comment: &[u8]) {
        for (texts, text) in [(&mut self.names, name), (&mut self.comments, comment)] {
            // A NUL ends a text, whatever comes behind it.
            texts.extend(text.iter().take_while(|&&b| b != 0));
            texts.push(0);
        }
        self.lengths.push(0);
        (self.ambiguous.since, self.masked.since) = (None, None);
    }

    fn add(&mut self, bases: &[u8]) {
        if let Some(length) = self.lengths.last_mut() {
            *length += bases.len() as u64;
        }
        for &letter in bases {
            let at = self.bases;
            let mut code = u64::from(CODES[usize::from(letter)]);
            self.ambiguous.next(at, code == 4);
            self.masked.next(at, letter.is_ascii_lowercase());
            if code == 4 {
                code = random(&mut self.random) & 3;
            }
            match self.words.last_mut() {
                Some(word) if !at.is_multiple_of(32) => *word |= code << (2 * (at % 32)),
                _ => self.words.push(code),
            }
            self.bases += 1;
        }
    }

    fn write(&self, file: &mut Summed) -> Result<(), Error> {
        let (ambiguous, masked) = (&self.ambiguous.done, &self.masked.done);
        let sizes = [self.lengths.len() as u64, self.bases, ambiguous.len() as u64, masked.len() as u64];
        let texts = [self.names.len() as u64, self.comments.len() as u64, self.words.len() as u64];
        file.write(b"L2B\x01\0\0\0\0")?;
        numbers(file, &sizes)?;
        numbers(file, &texts)?;
        numbers(file, &self.lengths)?;
        numbers(file, ambiguous.as_flattened())?;
        numbers(file, masked.as_flattened())?;
        numbers(file, &self.words)?;
        file.write(&self.names)?;
        file.write(&self.comments)
    }

    /// All bases, a byte each, and behind them those of the other strand.
    fn text(&self) -> Option<Vec<u8>> {
        let base = |at: u64| (self.words[(at / 32) as usize] >> (2 * (at % 32)) & 3) as u8;
        let mut text = reserved(2 * self.bases)?;
        text.extend((0..self.bases).map(base));
        text.extend((0..self.bases).rev().map(|at| 3 - base(at)));
        Some(text)
    }
}

/// An array for so many items; none where there is not the memory.
fn reserved<T>(items: u64) -> Option<Vec<T>> {
    let mut array = Vec::new();
    array.try_reserve_exact(usize::try_from(items).ok()?).ok()?;
    Some(array)
}

fn numbers(file: &mut Summed, numbers: &[u64]) -> Result<(), Error> {
    // The files have the lowest byte first, and so have the machines that minibwa is for.
    file.write(bytemuck::cast_slice(numbers))
}

/// Writes the transform of `text` with the suffix array `place` of `text.len()` + 1 rows.
fn write_transform(
    file: &mut Summed,
    text: &[u8],
    place: impl Fn(usize) -> usize + Sync,
    threads: usize,
) -> Result<(), Error> {
    let rows = text.len() as u64 + 1;
    let ends = in_stretches(rows, STRETCH, threads, |range| {
        Ok::<_, Error>(range.into_iter().find(|&row| place(row as usize) == 0))
    })?;
    let end = ends.into_iter().flatten().next().unwrap_or(0);
    let mut totals = [0u64; 4];
    text.iter().for_each(|&base| totals[usize::from(base)] += 1);
    file.write(b"MBW\x02")?;
    file.write(&RATE.to_le_bytes())?;
    let mut sum = 0;
    let less = totals.map(|count| {
        sum += count;
        sum
    });
    numbers(file, &[end])?;
    numbers(file, &less)?;

    let mut counts = [0u64; 4];
    let mut bases = (0..rows as usize).map(&place).filter(|&at| at != 0).map(|at| text[at - 1]);
    let mut left = text.len();
    while left > 0 {
        let (here, before) = (left.min(128), counts);
        let mut block = [0u64; 8];
        for (i, base) in bases.by_ref().take(here).enumerate() {
            if i == 64 {
                // The highest byte counts the first half, in blocks that have more.
                (0..4).for_each(|base| block[base] = (counts[base] - before[base]) << 56);
            }
            block[4 + i / 32] |= u64::from(base) << (2 * (i % 32));
            counts[usize::from(base)] += 1;
        }
        (0..4).for_each(|base| block[base] |= before[base]);
        numbers(file, &block)?;
        left -= here;
    }
    numbers(file, &counts)?;
    numbers(file, &[rows.div_ceil(1 << RATE)])?;
    // The first row's place is the end of the text: minibwa has all ones there.
    numbers(file, &[u64::MAX])?;
    (1 << RATE..rows as usize).step_by(1 << RATE).try_for_each(|row| numbers(file, &[place(row) as u64]))
}

/// Memory of a build whatever the reference, bytes: files being read and written, and the process.
const FIXED: u64 = 64 << 20;

/// Whether the suffixes of so many bases, both strands counted, are numbered with 4 bytes each, or with 8.
fn is_narrow(text: u64) -> bool {
    text < i32::MAX as u64 - ffi::SORTING_ROOM as u64
}

/// Memory that [`build_index`] takes for a reference of so many bases, bytes.
///
/// Most of it are both strands, a byte a base, and their suffixes. These are sorted in their own array: libsais needs no other that
/// grows with the text. Half a byte a base more was measured, of packing the bases before: 266 MB in all for 20 Mbp, 581 MB for 50 Mbp.
/// From 1.07 Gbp on the suffixes take twice as much: 59 GB for 3.1 Gbp in all (measured on 20 Mbp, sorted like that: 382 MB).
pub fn index_memory(bases: u64) -> u64 {
    let text = 2 * bases;
    FIXED + bases + text + text * if is_narrow(text) { 4 } else { 8 }
}

/// Builds the index of `reference` (FASTA, plain or gzip) at `prefix` and seals it. The files appear when all is complete.
///
/// Takes [`index_memory`]. One thread does nearly all of it, whatever `threads`.
///
/// # Errors
/// The processor is too old, the reference is no FASTA, cannot be read to its end or changes meanwhile, there is too little memory, or a
/// file cannot be written.
pub fn build_index(reference: &Path, prefix: &Path, threads: usize) -> Result<(), Error> {
    check_processor()?;
    let sum = || Sum::of_file(reference, threads).map_err(Error::io(reference));
    let wrong = |what: &str| Error::Reference { path: reference.into(), what: what.into() };
    let memory = || wrong("too little memory to index it");
    let before = sum()?;
    let packed = Packed::read(reference)?;
    let [l2b, mbw] = files(prefix);
    let (mut sequences, mut transform) = (Summed::create(&l2b)?, Summed::create(&mbw)?);
    packed.write(&mut sequences)?;
    let text = packed.text().ok_or_else(memory)?;
    drop(packed);
    if is_narrow(text.len() as u64) {
        let suffixes = ffi::suffixes::<i32>(&text).ok_or_else(memory)?;
        write_transform(&mut transform, &text, |row| suffixes[row] as usize, threads)?;
    } else {
        let suffixes = ffi::suffixes::<i64>(&text).ok_or_else(memory)?;
        write_transform(&mut transform, &text, |row| suffixes[row] as usize, threads)?;
    }
    if sum()? != before {
        return Err(wrong("changed while it was indexed"));
    }
    let mut set = Set::default();
    let files = [sequences.complete(&mut set)?, transform.complete(&mut set)?];
    Seal::write(program(), before, &files, set)
}
