//! CBQ (of the crate `binseq` 0.11, <https://docs.rs/binseq/latest/binseq/cbq>): reads in blocks of columns, each packed by zstd; mates lie together.
//!
//! ```text
//! header, 64 bytes │ block: header, 96 bytes; columns │ ... │ index: "CBQINDEX", two lengths, packed, a length, "CBQINDEX"
//! ```
//!
//! The format has no sums: a changed byte is told where it breaks a column, a length or the index, and else taken for what it says.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use genuma_work::Meter;
use ruzstd::decoding::FrameDecoder;

use crate::error::{Error, FileFault, RecordFault};
use crate::fastq::template_name;
use crate::source::Source;

use super::end::check_end;
use super::piece::{Fields, Piece, flag};
use super::tally::Tally;

/// What a file begins with.
pub(super) const MAGIC: &[u8] = b"CBQFILE";
/// What its index begins with, and its last bytes.
const INDEX: &[u8; 8] = b"CBQINDEX";
/// The version of files and blocks that is read.
const VERSION: u8 = 1;
const HEADER: usize = 64;
const BLOCK_HEADER: usize = 96;
const INDEX_HEADER: usize = 24;
/// Columns of a block, in their order: lengths of reads and of names, places of N, bases, flags, names, qualities.
const COLUMNS: usize = 7;
/// No column is as long as this, in bytes: a damaged length is thus told before it fills the memory.
const LONGEST: u64 = 1 << 30;
/// Bytes read from the disk at once.
const DISK_CHUNK: usize = 256 << 10;

/// A file being cut into pieces, of a block each.
pub(super) struct Cbq<M> {
    path: PathBuf,
    reader: BufReader<Source<M>>,
    paired: bool,
    /// Reads, or pairs, of the blocks before.
    records: u64,
}

/// A block that is to be unpacked.
#[derive(Default)]
pub(super) struct Packed {
    paired: bool,
    before: u64,
    bytes: Vec<u8>,
    /// Packed bytes of each column.
    columns: [usize; COLUMNS],
    bases: usize,
    /// Bytes of the places of N.
    places: usize,
    records: usize,
    unpacked: Unpacked,
}

/// Columns; they keep their memory.
#[derive(Default)]
struct Unpacked {
    columns: [Vec<u8>; COLUMNS],
    letters: Vec<u8>,
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

impl<M: Deref<Target = Meter>> Cbq<M> {
    /// Opens a file, at its first block.
    ///
    /// # Errors
    /// It cannot be read, is of another version, or has no end.
    pub(super) fn open(path: &Path, meter: M) -> Result<Self, Error> {
        check_end(path, INDEX)?;
        let reader = BufReader::with_capacity(DISK_CHUNK, Source::open(path, None, meter, None)?);
        let mut cbq = Cbq { path: path.into(), reader, paired: false, records: 0 };
        let mut header = [0; HEADER];
        cbq.fill(&mut header)?;
        if header[7] != VERSION {
            return Err(Error::file(path, FileFault::Header("its version is not 1, which is read")));
        }
        cbq.paired = header[8] & 1 != 0;
        Ok(cbq)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.reader.read_exact(bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::record(&self.path, self.records + 1, RecordFault::Truncated)
            }
            _ => Error::Read { path: self.path.clone(), source: e },
        })
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::record(&self.path, self.records + 1, RecordFault::Damaged(what))
    }

    /// Moves the next block into `packed`; false when there is none left.
    ///
    /// # Errors
    /// The file cannot be read on or is damaged, or its index counts other records.
    pub(super) fn cut(&mut self, packed: &mut Packed) -> Result<bool, Error> {
        let mut header = [0; BLOCK_HEADER];
        self.fill(&mut header[..INDEX_HEADER])?;
        if header.starts_with(INDEX) {
            self.end(u64_at(&header, 8), u64_at(&header, 16))?;
            return Ok(false);
        }
        self.fill(&mut header[INDEX_HEADER..])?;
        if !header.starts_with(b"BLK") || header[3] != VERSION {
            return Err(self.damaged("its block has no header of version 1"));
        }
        let number = |i: usize| u64_at(&header, 8 + 8 * i);
        let [bases, places, records, reads] = [7, 8, 9, 10].map(number);
        let mates = if self.paired { 2 } else { 1 };
        if (0..COLUMNS).any(|column| number(column) > LONGEST)
            || [bases, places, reads].iter().any(|&n| n > LONGEST / 8)
            || records.checked_mul(mates) != Some(reads)
        {
            return Err(self.damaged("a length of its block cannot be one"));
        }
        packed.paired = self.paired;
        packed.before = self.records;
        packed.columns = std::array::from_fn(|column| number(column) as usize);
        [packed.bases, packed.places, packed.records] = [bases, places, records].map(|n| n as usize);
        // As much as there is, so that a damaged length takes no memory.
        packed.bytes.clear();
        let wanted: usize = packed.columns.iter().sum();
        let read = self.reader.by_ref().take(wanted as u64).read_to_end(&mut packed.bytes);
        let read = read.map_err(|source| Error::Read { path: self.path.clone(), source })?;
        if read < wanted {
            return Err(Error::record(&self.path, self.records + 1, RecordFault::Truncated));
        }
        self.records += records;
        Ok(true)
    }

    /// Looks whether the index has the records that there were: of each block where it begins, and how many there are with it.
    fn end(&mut self, bytes: u64, packed: u64) -> Result<(), Error> {
        if bytes > LONGEST || packed > LONGEST || !bytes.is_multiple_of(16) {
            return Err(self.damaged("a length of the index cannot be one"));
        }
        let mut index = Vec::new();
        let read = self.reader.by_ref().take(packed).read_to_end(&mut index);
        read.map_err(|source| Error::Read { path: self.path.clone(), source })?;
        let mut unpacked = Vec::new();
        unpack(&index, bytes as usize, &mut unpacked)
            .map_err(|_| self.damaged("the index cannot be unpacked"))?;
        let counted = unpacked.last_chunk::<8>().map_or(0, |count| u64::from_le_bytes(*count));
        if counted != self.records {
            return Err(self.damaged("the index counts other records than there are"));
        }
        // The length and the word that end the file.
        self.fill(&mut [0; 16])
    }

    /// Bytes of the file that were read and are not in pieces yet.
    pub(super) fn ahead(&self) -> u64 {
        self.reader.buffer().len() as u64
    }
}

/// Unpacks a column of so many bytes.
fn unpack(packed: &[u8], bytes: usize, out: &mut Vec<u8>) -> Result<(), RecordFault> {
    let damaged = RecordFault::Damaged("a column of its block cannot be unpacked");
    out.clear();
    out.resize(bytes, 0);
    if bytes == 0 && packed.is_empty() {
        return Ok(());
    }
    match FrameDecoder::new().decode_all(packed, out) {
        Ok(found) if found == bytes => Ok(()),
        _ => Err(damaged),
    }
}

impl Packed {
    /// Records of the file before it.
    pub(super) fn before(&self) -> u64 {
        self.before
    }

    /// Finds its reads.
    ///
    /// # Errors
    /// It is damaged.
    pub(super) fn find(&mut self, path: &Path, piece: &mut Piece, tally: &mut Tally) -> Result<(), Error> {
        piece.start(self.before);
        self.unpack().map_err(|fault| Error::record(path, self.before + 1, fault))?;
        self.each(path, piece, tally)
            .map_err(|(record, fault)| Error::record(path, self.before + record as u64 + 1, fault))
    }

    fn unpack(&mut self) -> Result<(), RecordFault> {
        let reads = self.records * if self.paired { 2 } else { 1 };
        let Unpacked { columns, letters } = &mut self.unpacked;
        let (mut at, mut names) = (0, 0);
        for (number, (column, &packed)) in columns.iter_mut().zip(&self.columns).enumerate() {
            let bytes = match number {
                _ if packed == 0 => 0,
                0 | 1 => 8 * reads,
                2 => self.places,
                3 => 8 * self.bases.div_ceil(32),
                4 => 8 * self.records,
                5 => names,
                _ => self.bases,
            };
            unpack(&self.bytes[at..at + packed], bytes, column)?;
            at += packed;
            if number <= 1 {
                let all = column.chunks_exact(8).map(|length| u64_at(length, 0));
                let all = all.fold(0u64, u64::saturating_add);
                if number == 0 && all != self.bases as u64 || all > LONGEST {
                    return Err(RecordFault::Damaged("its block has other bases than its reads"));
                }
                names = if number == 1 { all as usize } else { 0 };
            }
        }
        if columns[0].len() != 8 * reads || (!columns[1].is_empty() && columns[5].len() != names) {
            return Err(RecordFault::Damaged("its block lacks lengths or names"));
        }
        letters.clear();
        let bases =
            columns[3].iter().flat_map(|&four| [0, 2, 4, 6].map(|bit| b"ACGT"[usize::from(four >> bit & 3)]));
        letters.extend(bases.take(self.bases));
        if letters.len() < self.bases {
            return Err(RecordFault::Damaged("its block has no bases"));
        }
        if !columns[2].is_empty() {
            let said = RecordFault::Damaged("the places of N cannot be read");
            every_n(&columns[2], |at| letters.get_mut(at as usize).map(|letter| *letter = b'N'))
                .ok_or(said)?;
        }
        Ok(())
    }

    /// Puts all reads into a piece; an error with the number of its record.
    fn each(&self, path: &Path, piece: &mut Piece, tally: &mut Tally) -> Result<(), (usize, RecordFault)> {
        let Unpacked { columns: [lengths, name_lengths, _, _, _, names, qualities], letters } =
            &self.unpacked;
        let mates = if self.paired { 2 } else { 1 };
        let length = |of: &[u8], read: usize| u64_at(of, 8 * read) as usize;
        let (mut at, mut name_at) = (0, 0);
        let mut scores = Vec::new();
        let mut number = String::new();
        let mut first: &[u8] = b"";
        for read in 0..self.records * mates {
            let record = read / mates;
            let to = at + length(lengths, read);
            let mut name: &[u8] = b"";
            if !name_lengths.is_empty() {
                let from = name_at;
                name_at += length(name_lengths, read);
                let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
                name = names[from..name_at].split(blank).next().unwrap_or_default();
            }
            let flags = match (self.paired, read % mates) {
                (false, _) => 0,
                (true, 0) => flag::PAIRED | flag::FIRST,
                (true, _) => flag::PAIRED | flag::LAST,
            };
            if read % mates == 0 {
                first = name;
            } else if template_name(first) != template_name(name) {
                let text = |name: &[u8]| String::from_utf8_lossy(template_name(name)).into_owned();
                let (name, mate) = (text(first), text(name));
                return Err((record, RecordFault::Names { name, mate, mate_path: path.into() }));
            }
            scores.clear();
            if !qualities.is_empty() {
                scores.extend(qualities[at..to].iter().map(|score| score.wrapping_sub(b'!')));
            }
            // Reads without names are numbered.
            number.clear();
            if name_lengths.is_empty() {
                // Writing to a string cannot fail.
                let _ = write!(number, "{}", self.before + record as u64 + 1);
            }
            let name = if name_lengths.is_empty() { number.as_bytes() } else { name };
            let fields = Fields { flags, name, clipped: false, seq: &letters[at..to], qual: &scores };
            piece.put(record as u32, fields, tally).map_err(|fault| (record, fault))?;
            at = to;
        }
        tally.records += (self.records * mates) as u64;
        Ok(())
    }
}

/// What is left of some bytes.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn skip(&mut self, n: usize) -> Option<&'a [u8]> {
        let (skipped, after) = self.0.split_at_checked(n)?;
        self.0 = after;
        Some(skipped)
    }

    fn number(&mut self) -> Option<u64> {
        self.skip(8).map(|bytes| u64_at(bytes, 0))
    }

    /// Values of so many bytes each, with their number before them.
    fn list(&mut self, size: usize) -> Option<&'a [u8]> {
        let values = usize::try_from(self.number()?).ok()?;
        self.skip(values.checked_mul(size)?)
    }
}

/// Walks through numbers in the code of Elias and Fano as `sucds` 0.9 writes it (P. Elias, Efficient storage and retrieval by content and address of static files, 1974):
/// of each number `low_len` low bits, one after the other, and the others as the count of zeros before its one. `None` where that ends too early, or `each` says so.
fn every_n(bytes: &[u8], mut each: impl FnMut(u64) -> Option<()>) -> Option<()> {
    let mut rest = Rest(bytes);
    let high = rest.list(8)?;
    let high_bits = rest.number()?;
    // What finds ones fast, and is not needed here: of blocks, of their parts, beyond; how many, and of which kind.
    rest.list(8)?;
    rest.list(2)?;
    rest.list(8)?;
    rest.number()?;
    rest.skip(1)?;
    // The same of zeros, and ranks, which are not written.
    if rest.skip(2)? != [0, 0] {
        return None;
    }
    let low = rest.list(8)?;
    rest.number()?;
    let low_len = u32::try_from(rest.number()?).ok().filter(|&bits| bits < 64)?;
    let bit = |of: &[u8], at: u64| {
        of.get(usize::try_from(at / 8).ok()?).map(|byte| u64::from(byte >> (at % 8) & 1))
    };
    let (mut found, mut zeros) = (0u64, 0u64);
    for at in 0..high_bits {
        if bit(high, at)? == 0 {
            zeros += 1;
            continue;
        }
        let mut number = 0;
        for i in 0..low_len {
            number |= bit(low, found * u64::from(low_len) + u64::from(i))? << i;
        }
        each(zeros << low_len | number)?;
        found += 1;
    }
    Some(())
}
