//! CBQ (of the crate `binseq` 0.11, <https://docs.rs/binseq/latest/binseq/cbq>): reads in blocks of columns, each packed by zstd; mates lie together.
//!
//! ```text
//! header, 64 bytes │ block: header, 96 bytes; columns │ ... │ index: "CBQINDEX", two lengths, packed, a length, "CBQINDEX"
//! ```
//!
//! The format has no sums: a changed byte is told where it breaks a column, a length or the index, and else taken for what it says.

use std::ops::Deref;
use std::path::Path;

use genuma_work::Meter;

use crate::error::{Error, FileFault, RecordFault};

use super::binseq::{self, Blocks, LONGEST, Read, Reads, Rest, u64_at};
use super::end::check_end;
use super::piece::Piece;
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

/// A file being cut into pieces, of a block each.
pub(super) struct Cbq<M> {
    file: Blocks<M>,
    paired: bool,
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

impl<M: Deref<Target = Meter>> Cbq<M> {
    /// Opens a file, at its first block.
    ///
    /// # Errors
    /// It cannot be read, is of another version, or has no end.
    pub(super) fn open(path: &Path, meter: M) -> Result<Self, Error> {
        check_end(path, INDEX)?;
        let mut file = Blocks::open(path, meter)?;
        let mut header = [0; HEADER];
        file.fill(&mut header)?;
        if header[7] != VERSION {
            return Err(Error::file(path, FileFault::Header("its version is not 1, which is read")));
        }
        Ok(Cbq { file, paired: header[8] & 1 != 0 })
    }

    /// Moves the next block into `packed`; false when there is none left.
    ///
    /// # Errors
    /// The file cannot be read on or is damaged, or its index counts other records.
    pub(super) fn cut(&mut self, packed: &mut Packed) -> Result<bool, Error> {
        let mut header = [0; BLOCK_HEADER];
        self.file.fill(&mut header[..INDEX_HEADER])?;
        if header.starts_with(INDEX) {
            self.end(u64_at(&header, 8), u64_at(&header, 16))?;
            return Ok(false);
        }
        self.file.fill(&mut header[INDEX_HEADER..])?;
        if !header.starts_with(b"BLK") || header[3] != VERSION {
            return Err(self.file.damaged("its block has no header of version 1"));
        }
        let number = |i: usize| u64_at(&header, 8 + 8 * i);
        let [bases, places, records, reads] = [7, 8, 9, 10].map(number);
        let mates = if self.paired { 2 } else { 1 };
        if (0..COLUMNS).any(|column| number(column) > LONGEST)
            || [bases, places, reads].iter().any(|&n| n > LONGEST / 8)
            || records.checked_mul(mates) != Some(reads)
        {
            return Err(self.file.damaged("a length of its block cannot be one"));
        }
        packed.paired = self.paired;
        packed.before = self.file.records;
        packed.columns = std::array::from_fn(|column| number(column) as usize);
        [packed.bases, packed.places, packed.records] = [bases, places, records].map(|n| n as usize);
        let wanted: usize = packed.columns.iter().sum();
        self.file.take(wanted as u64, &mut packed.bytes)?;
        self.file.records += records;
        Ok(true)
    }

    /// Looks whether the index has the records that there were: of each block where it begins, and how many there are with it.
    fn end(&mut self, bytes: u64, packed: u64) -> Result<(), Error> {
        if bytes > LONGEST || packed > LONGEST || !bytes.is_multiple_of(16) {
            return Err(self.file.damaged("a length of the index cannot be one"));
        }
        let (mut index, mut unpacked) = (Vec::new(), Vec::new());
        self.file.take(packed, &mut index)?;
        binseq::unpack(&index, bytes as usize, &mut unpacked)
            .ok_or_else(|| self.file.damaged("the index cannot be unpacked"))?;
        let counted = unpacked.last_chunk::<8>().map_or(0, |count| u64::from_le_bytes(*count));
        if counted != self.file.records {
            return Err(self.file.damaged("the index counts other records than there are"));
        }
        // The length and the word that end the file.
        self.file.fill(&mut [0; 16])
    }

    /// Bytes of the file that were read and are not in pieces yet.
    pub(super) fn ahead(&self) -> u64 {
        self.file.ahead()
    }
}

/// Unpacks a column of so many bytes.
fn unpack(packed: &[u8], bytes: usize, out: &mut Vec<u8>) -> Result<(), RecordFault> {
    let said = RecordFault::Damaged("a column of its block cannot be unpacked");
    binseq::unpack(packed, bytes, out).ok_or(said)
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
        let mut put = Reads::new(path, self.paired, piece, tally);
        for read in 0..self.records * mates {
            let to = at + length(lengths, read);
            let header = if name_lengths.is_empty() {
                None
            } else {
                let from = name_at;
                name_at += length(name_lengths, read);
                Some(&names[from..name_at])
            };
            let qual = if qualities.is_empty() { b"" } else { &qualities[at..to] };
            let (record, mate) = (read / mates, read % mates);
            put.put(record, mate, Read { header, seq: &letters[at..to], qual })
                .map_err(|fault| (record, fault))?;
            at = to;
        }
        Ok(())
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
