//! Builds a minibwa index: packs the reference at 2 bits per base, sorts its suffixes, and writes both files.
//!
//! The files are identical to those of `minibwa index`, whose library (libsais) sorts the suffixes. The rest of
//! minibwa's builder ignores read and write errors: a reference that could not be read to its end, or a full disk,
//! resulted in a truncated index without an error. So that part is implemented here.

use std::path::Path;

use genuma_reads::fasta::{FastaEvent, read_fasta};
use genuma_work::publish::FileSet;

use super::super::seal::{Checksum, ChecksummedFile, IndexSeal};
use super::super::{Error, parallel_ranges};
use super::verify::BASE_CODES;
use super::{check_processor, ffi, index_files, program};

/// Base-2 logarithm of the distance between sampled rows of the suffix array.
const SAMPLE_RATE_BITS: u32 = 4;
/// Start value of the random numbers that replace bases other than A, C, G and T.
const RANDOM_SEED: u64 = 11;
/// Number of rows that a thread processes at a time.
const ROWS_PER_TASK: u64 = 1 << 22;

/// The reference in the form of `PREFIX.l2b`.
struct PackedReference {
    lengths: Vec<u64>,
    /// Sequence names, each with a NUL at its end.
    names: Vec<u8>,
    comments: Vec<u8>,
    /// Ranges of bases that are ambiguous (not A, C, G or T) or in lower case, except ranges at the end of a
    /// sequence.
    ambiguous: BaseRanges,
    masked: BaseRanges,
    words: Vec<u64>,
    bases: u64,
    random: u64,
}

/// Ranges of bases; each has its first base and its end (exclusive).
#[derive(Default)]
struct BaseRanges {
    ranges: Vec<[u64; 2]>,
    open_start: Option<u64>,
}

impl BaseRanges {
    fn extend(&mut self, at: u64, inside: bool) {
        match (inside, self.open_start) {
            (true, None) => self.open_start = Some(at),
            (false, Some(since)) => {
                self.ranges.push([since, at]);
                self.open_start = None;
            }
            _ => {}
        }
    }
}

/// The next random number of SplitMix64 (Steele et al. 2014).
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl PackedReference {
    fn read(reference: &Path) -> Result<PackedReference, Error> {
        let mut packed = PackedReference {
            lengths: Vec::new(),
            names: Vec::new(),
            comments: Vec::new(),
            ambiguous: BaseRanges::default(),
            masked: BaseRanges::default(),
            words: Vec::new(),
            bases: 0,
            random: RANDOM_SEED,
        };
        read_fasta(reference, |part| match part {
            FastaEvent::Header { name, comment } => packed.begin_sequence(name, comment),
            FastaEvent::Bases(bases) => packed.add_bases(bases),
        })?;
        if packed.lengths.len() > i32::MAX as usize / 2 {
            let reason = "has more sequences than minibwa supports".into();
            return Err(Error::Reference { path: reference.into(), reason });
        }
        Ok(packed)
    }

    fn begin_sequence(&mut self, name: &[u8], comment: &[u8]) {
        for (texts, text) in [(&mut self.names, name), (&mut self.comments, comment)] {
            // A NUL ends a text, whatever follows it.
            texts.extend(text.iter().take_while(|&&b| b != 0));
            texts.push(0);
        }
        self.lengths.push(0);
        (self.ambiguous.open_start, self.masked.open_start) = (None, None);
    }

    fn add_bases(&mut self, bases: &[u8]) {
        if let Some(length) = self.lengths.last_mut() {
            *length += bases.len() as u64;
        }
        for &letter in bases {
            let at = self.bases;
            let mut code = u64::from(BASE_CODES[usize::from(letter)]);
            self.ambiguous.extend(at, code == 4);
            self.masked.extend(at, letter.is_ascii_lowercase());
            if code == 4 {
                code = next_random(&mut self.random) & 3;
            }
            match self.words.last_mut() {
                Some(word) if !at.is_multiple_of(32) => *word |= code << (2 * (at % 32)),
                _ => self.words.push(code),
            }
            self.bases += 1;
        }
    }

    fn write(&self, file: &mut ChecksummedFile) -> Result<(), Error> {
        let (ambiguous, masked) = (&self.ambiguous.ranges, &self.masked.ranges);
        let sizes = [self.lengths.len() as u64, self.bases, ambiguous.len() as u64, masked.len() as u64];
        let texts = [self.names.len() as u64, self.comments.len() as u64, self.words.len() as u64];
        file.write_bytes(b"L2B\x01\0\0\0\0")?;
        write_numbers(file, &sizes)?;
        write_numbers(file, &texts)?;
        write_numbers(file, &self.lengths)?;
        write_numbers(file, ambiguous.as_flattened())?;
        write_numbers(file, masked.as_flattened())?;
        write_numbers(file, &self.words)?;
        file.write_bytes(&self.names)?;
        file.write_bytes(&self.comments)
    }

    /// All bases of both strands, one per byte: the forward strand, then its reverse complement.
    fn both_strands(&self) -> Option<Vec<u8>> {
        let base = |at: u64| (self.words[(at / 32) as usize] >> (2 * (at % 32)) & 3) as u8;
        let mut text = try_reserve(2 * self.bases)?;
        text.extend((0..self.bases).map(base));
        text.extend((0..self.bases).rev().map(|at| 3 - base(at)));
        Some(text)
    }
}

/// An empty vector with capacity for `items` items; `None` if there is too little memory.
fn try_reserve<T>(items: u64) -> Option<Vec<T>> {
    let mut array = Vec::new();
    array.try_reserve_exact(usize::try_from(items).ok()?).ok()?;
    Some(array)
}

fn write_numbers(file: &mut ChecksummedFile, numbers: &[u64]) -> Result<(), Error> {
    // The files are little-endian, and so are the machines that minibwa supports.
    file.write_bytes(bytemuck::cast_slice(numbers))
}

/// Writes the Burrows-Wheeler transform of `text`. `suffix_at` returns the suffix array entry of a row; there are
/// `text.len()` + 1 rows.
fn write_transform(
    file: &mut ChecksummedFile,
    text: &[u8],
    suffix_at: impl Fn(usize) -> usize + Sync,
    threads: usize,
) -> Result<(), Error> {
    let rows = text.len() as u64 + 1;
    let ends = parallel_ranges(rows, ROWS_PER_TASK, threads, |range| {
        Ok::<_, Error>(range.into_iter().find(|&row| suffix_at(row as usize) == 0))
    })?;
    let end = ends.into_iter().flatten().next().unwrap_or(0);
    let mut totals = [0u64; 4];
    text.iter().for_each(|&base| totals[usize::from(base)] += 1);
    file.write_bytes(b"MBW\x02")?;
    file.write_bytes(&SAMPLE_RATE_BITS.to_le_bytes())?;
    let mut sum = 0;
    let less = totals.map(|count| {
        sum += count;
        sum
    });
    write_numbers(file, &[end])?;
    write_numbers(file, &less)?;

    let mut counts = [0u64; 4];
    let mut bases = (0..rows as usize).map(&suffix_at).filter(|&at| at != 0).map(|at| text[at - 1]);
    let mut left = text.len();
    while left > 0 {
        let (here, before) = (left.min(128), counts);
        let mut block = [0u64; 8];
        for (i, base) in bases.by_ref().take(here).enumerate() {
            if i == 64 {
                // The highest byte counts the first half, in blocks that have a second half.
                (0..4).for_each(|base| block[base] = (counts[base] - before[base]) << 56);
            }
            block[4 + i / 32] |= u64::from(base) << (2 * (i % 32));
            counts[usize::from(base)] += 1;
        }
        (0..4).for_each(|base| block[base] |= before[base]);
        write_numbers(file, &block)?;
        left -= here;
    }
    write_numbers(file, &counts)?;
    write_numbers(file, &[rows.div_ceil(1 << SAMPLE_RATE_BITS)])?;
    // The suffix of the first row is empty; minibwa stores all ones for it.
    write_numbers(file, &[u64::MAX])?;
    (1 << SAMPLE_RATE_BITS..rows as usize)
        .step_by(1 << SAMPLE_RATE_BITS)
        .try_for_each(|row| write_numbers(file, &[suffix_at(row) as u64]))
}

/// Memory (bytes) of a build apart from the reference: file buffers and the process.
const FIXED_MEMORY_BYTES: u64 = 64 << 20;

/// Whether the suffixes of `text` bases (both strands) fit into 32-bit numbers.
fn fits_32_bit_suffixes(text: u64) -> bool {
    text < i32::MAX as u64 - ffi::LIBSAIS_EXTRA_ITEMS as u64
}

/// Memory (bytes) that [`build_index`] needs for a reference of `bases` bases.
///
/// Most of it is both strands at one byte per base, and their suffixes. libsais sorts the suffixes in place. Packing
/// adds half a byte per base (measured): 266 MB in total for 20 Mbp, 581 MB for 50 Mbp. From 1.07 Gbp on the suffixes
/// need twice the memory: 59 GB in total for 3.1 Gbp (measured on 20 Mbp with 64-bit suffixes: 382 MB).
pub fn index_memory(bases: u64) -> u64 {
    let text = 2 * bases;
    FIXED_MEMORY_BYTES + bases + text + text * if fits_32_bit_suffixes(text) { 4 } else { 8 }
}

/// Builds the index of `reference` (FASTA, plain or gzip) at `prefix`, and its seal. The files get their final names
/// when they are complete.
///
/// Needs [`index_memory`] bytes. One thread does nearly all of the work, whatever the value of `threads`.
///
/// # Errors
/// The processor is too old; the reference is not FASTA, cannot be read to its end or changes during the build; there
/// is too little memory; or a file cannot be written.
pub fn build_index(reference: &Path, prefix: &Path, threads: usize) -> Result<(), Error> {
    check_processor()?;
    let sum = || Checksum::from_file(reference, threads).map_err(Error::io(reference));
    let reference_error = |reason: &str| Error::Reference { path: reference.into(), reason: reason.into() };
    let memory = || reference_error("too little memory to index it");
    let before = sum()?;
    let packed = PackedReference::read(reference)?;
    let [l2b, mbw] = index_files(prefix);
    let (mut sequences, mut transform) = (ChecksummedFile::create(&l2b)?, ChecksummedFile::create(&mbw)?);
    packed.write(&mut sequences)?;
    let text = packed.both_strands().ok_or_else(memory)?;
    drop(packed);
    if fits_32_bit_suffixes(text.len() as u64) {
        let suffixes = ffi::suffix_array::<i32>(&text).ok_or_else(memory)?;
        write_transform(&mut transform, &text, |row| suffixes[row] as usize, threads)?;
    } else {
        let suffixes = ffi::suffix_array::<i64>(&text).ok_or_else(memory)?;
        write_transform(&mut transform, &text, |row| suffixes[row] as usize, threads)?;
    }
    if sum()? != before {
        return Err(reference_error("changed while the index was built"));
    }
    let mut set = FileSet::default();
    let files = [sequences.complete_file(&mut set)?, transform.complete_file(&mut set)?];
    IndexSeal::write_seal(program(), before, &files, set)
}
