//! VBQ and BQ (of the crate `binseq` 0.11, <https://docs.rs/binseq/latest/binseq/vbq> and `bq`): records one after the other, read 2 behind read 1.
//!
//! ```text
//! VBQ: header, 32 bytes │ block: header, 32 bytes; records, zeros, often packed │ ... │ index: "VBQINDEX", 24 bytes, packed, its length, "INDEXEND"
//! record: flag? lengths of both reads │ bases, qualities? header? of read 1 │ the same of read 2?
//! BQ: header, 32 bytes │ record: flag? bases of read 1, bases of read 2? │ ...
//! ```
//!
//! The formats have no sums: a changed byte is told where it breaks a length, a letter or the index, and else taken for what it says.

use std::ops::Deref;
use std::path::Path;

use genuma_work::Meter;

use crate::error::{Error, FileFault, RecordFault};

use super::binseq::{Blocks, LONGEST, Read, Reads, Rest, u64_at, unpack, unpack_most};
use super::end::check_end;
use super::piece::Piece;
use super::tally::Tally;

/// What a file of VBQ begins with, ...
pub(super) const MAGIC: &[u8] = b"VSEQ";
/// ... and one of BQ.
pub(super) const MAGIC_FIXED: &[u8] = b"BSEQ";
/// What the index of VBQ begins with, ...
const INDEX: &[u8; 8] = b"VBQINDEX";
/// ... and its last bytes.
const END: &[u8; 8] = b"INDEXEND";
/// The version that is read.
const VERSION: u8 = 1;
/// Bytes of the headers: of a file, of a block, of the index; and of what the index says of a block.
const HEADER: usize = 32;
/// No block is longer than this when it is unpacked, and no record of BQ: thus their letters have places of 32 bits, and a damaged length does not fill the memory.
const LONGEST_BLOCK: u64 = LONGEST / 8;
/// Bytes of BQ that are a piece, if a record is not longer.
const PIECE: u64 = 128 << 10;

/// How records lie.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    paired: bool,
    /// Half bytes for bases, N among them, and not quarters.
    halves: bool,
    flags: bool,
    qualities: bool,
    names: bool,
    /// Bases of each read 1 and 2 where these are alike in all records, which do not say them then.
    bases: Option<[u64; 2]>,
}

impl Shape {
    fn mates(&self) -> usize {
        if self.paired { 2 } else { 1 }
    }

    /// Bytes of so many bases: whole words of 64 bits.
    fn packed(&self, bases: u64) -> u64 {
        8 * bases.div_ceil(if self.halves { 16 } else { 32 })
    }

    /// Bytes of a record, at least.
    fn record(&self) -> u64 {
        let flags = if self.flags { 8 } else { 0 };
        flags + self.bases.map_or(16, |bases| bases.iter().map(|&bases| self.packed(bases)).sum())
    }
}

/// A file being cut into pieces.
pub(super) struct Vbq<M> {
    file: Blocks<M>,
    shape: Shape,
    /// Bytes of each block when it is unpacked; of BQ those of each piece.
    block: u64,
    packed: bool,
    /// Blocks before.
    blocks: u64,
}

/// A block that is to be taken apart.
#[derive(Default)]
pub(super) struct Packed {
    shape: Shape,
    before: u64,
    records: usize,
    bytes: Vec<u8>,
    /// Bytes that it has when it is unpacked, where it is packed.
    packed: Option<usize>,
    unpacked: Vec<u8>,
    letters: Vec<u8>,
}

impl<M: Deref<Target = Meter>> Vbq<M> {
    /// Opens a file, at its first block.
    ///
    /// # Errors
    /// It cannot be read, is of another version, or has no end.
    pub(super) fn open(path: &Path, meter: M) -> Result<Self, Error> {
        let mut file = Blocks::open(path, meter)?;
        let mut header = [0; HEADER];
        file.fill(&mut header)?;
        let wrong = |what| Error::file(path, FileFault::Header(what));
        if header[4] != VERSION {
            return Err(wrong("its version is not 1, which is read"));
        }
        let kinds = if header.starts_with(MAGIC) {
            check_end(path, END)?;
            let [qualities, packed, paired, halves, names, flags] =
                [13, 14, 15, 16, 17, 18].map(|at| header[at]);
            // Earlier files have 42 where nothing was said yet: then there is a flag, and no header.
            [qualities, packed, paired, halves, if names == 42 { 0 } else { names }, flags]
        } else {
            [0, 0, u8::from(header[9..13] != [0; 4]), header[13], 0, header[14]]
        };
        let yes = |kind: u8| match kind {
            0 => Ok(false),
            1 | 42 => Ok(true),
            _ => Err(wrong("it has a kind of records that there is not")),
        };
        let [qualities, packed, paired, halves, names, flags] = kinds;
        let mut shape = Shape {
            paired: yes(paired)?,
            halves: match halves {
                0 | 2 | 42 => false,
                4 => true,
                _ => return Err(wrong("its bases have neither 2 bits nor 4")),
            },
            flags: yes(flags)?,
            qualities: yes(qualities)?,
            names: yes(names)?,
            bases: None,
        };
        let mut block = u64_at(&header, 5);
        if header.starts_with(MAGIC_FIXED) {
            shape.bases = Some([block & 0xffff_ffff, block >> 32]);
            block = shape.record() * (PIECE / shape.record().max(1)).max(1);
        }
        if shape.bases.is_some_and(|[bases, _]| bases == 0) || !(1..=LONGEST_BLOCK).contains(&block) {
            return Err(wrong("its blocks or reads have a length that cannot be one"));
        }
        if shape.bases.is_some() {
            check_records(path, shape.record())?;
        }
        Ok(Vbq { file, shape, block, packed: yes(packed)?, blocks: 0 })
    }

    /// Moves the next block into `packed`; false when there is none left.
    ///
    /// # Errors
    /// The file cannot be read on or is damaged, or its index counts other records.
    pub(super) fn cut(&mut self, packed: &mut Packed) -> Result<bool, Error> {
        (packed.shape, packed.before) = (self.shape, self.file.records);
        packed.packed = self.packed.then_some(self.block as usize);
        let records = if self.shape.bases.is_some() {
            let (read, record) = (self.file.most(self.block, &mut packed.bytes)?, self.shape.record());
            if read == 0 {
                return Ok(false);
            }
            if !read.is_multiple_of(record) {
                self.file.records += read / record;
                return Err(self.file.truncated());
            }
            read / record
        } else {
            let mut header = [0; HEADER];
            self.file.fill(&mut header)?;
            if header.starts_with(INDEX) {
                self.end()?;
                return Ok(false);
            }
            if !header.starts_with(b"BLOCKSEQ") {
                return Err(self.file.damaged("its block has no header"));
            }
            let [bytes, records] = [u64_at(&header, 8), u64_at(&header, 16) & 0xffff_ffff];
            // What zstd cannot pack grows by less than this.
            let fits =
                if self.packed { bytes <= self.block + self.block / 256 + 1024 } else { bytes == self.block };
            if !fits || records == 0 || records * self.shape.record() > self.block {
                return Err(self.file.damaged("a length of its block cannot be one"));
            }
            self.file.take(bytes, &mut packed.bytes)?;
            records
        };
        packed.records = records as usize;
        self.file.records += records;
        self.blocks += 1;
        Ok(true)
    }

    /// Looks whether the index has the blocks and records that there were: of each block where it begins, its bytes, its records, and those before it.
    fn end(&mut self) -> Result<(), Error> {
        let mut bytes = Vec::new();
        self.file.most(LONGEST, &mut bytes)?;
        let whole = bytes
            .split_last_chunk::<16>()
            .filter(|(packed, end)| u64_at(*end, 0) == (HEADER + packed.len()) as u64 && end.ends_with(END));
        let (packed, _) = whole.ok_or_else(|| self.file.damaged("a length of the index cannot be one"))?;
        let wanted = HEADER as u64 * self.blocks;
        let index =
            unpack_most(packed, wanted).ok_or_else(|| self.file.damaged("the index cannot be unpacked"))?;
        let counted = index.last_chunk::<HEADER>().map_or(0, |last| {
            let (records, before) = (u64_at(last, 16) & 0xffff_ffff, u64_at(last, 20));
            before.saturating_add(records)
        });
        if (counted, index.len() as u64) != (self.file.records, wanted) {
            return Err(self.file.damaged("the index counts other records than there are"));
        }
        Ok(())
    }

    /// Bytes of the file that were read and are not in pieces yet.
    pub(super) fn ahead(&self) -> u64 {
        self.file.ahead()
    }
}

/// Looks whether a file of BQ ends with a whole record: nothing else tells that it was cut off.
fn check_records(path: &Path, record: u64) -> Result<(), Error> {
    let metadata = path.metadata().map_err(|source| Error::Read { path: path.into(), source })?;
    let bytes = metadata.len().saturating_sub(HEADER as u64);
    if bytes.is_multiple_of(record) {
        return Ok(());
    }
    Err(Error::record(path, bytes / record + 1, RecordFault::Truncated))
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
        let fault = |record: usize, fault| Error::record(path, self.before + record as u64 + 1, fault);
        let mut rest = Rest(&self.bytes);
        if let Some(bytes) = self.packed {
            let whole = unpack(&self.bytes, bytes, &mut self.unpacked);
            whole.ok_or_else(|| fault(0, RecordFault::Damaged("its block cannot be unpacked")))?;
            rest = Rest(&self.unpacked);
        }
        let mut reads = Reads::new(path, self.shape.paired, piece, tally);
        for record in 0..self.records {
            self.shape
                .record_of(&mut rest, record, &mut self.letters, &mut reads)
                .map_err(|what| fault(record, what))?;
        }
        if rest.0.iter().any(|&byte| byte != 0) {
            return Err(fault(self.records, RecordFault::Damaged("its block has more than its records")));
        }
        Ok(())
    }
}

impl Shape {
    /// Takes a record from what is left of a block.
    fn record_of<'a>(
        &self,
        rest: &mut Rest<'a>,
        record: usize,
        letters: &mut Vec<u8>,
        reads: &mut Reads<'a>,
    ) -> Result<(), RecordFault> {
        const LONG: RecordFault = RecordFault::Damaged("its fields are longer than its block");
        let bytes = |bytes: u64| usize::try_from(bytes).map_err(|_| LONG);
        if self.flags {
            rest.number().ok_or(LONG)?;
        }
        let bases = match self.bases {
            Some(bases) => bases,
            None => [rest.number().ok_or(LONG)?, rest.number().ok_or(LONG)?],
        };
        if !self.paired && bases[1] != 0 {
            return Err(RecordFault::Damaged("it has a mate in a file of single reads"));
        }
        for (mate, &bases) in bases.iter().enumerate().take(self.mates()) {
            if bases > LONGEST {
                return Err(LONG);
            }
            let seq = rest.skip(bytes(self.packed(bases))?).ok_or(LONG)?;
            let qual = if self.qualities { rest.skip(bytes(bases)?).ok_or(LONG)? } else { b"" };
            let header = if self.names { Some(rest.list(1).ok_or(LONG)?) } else { None };
            letters.clear();
            if self.halves {
                letters.extend(seq.iter().flat_map(|&two| HALVES[usize::from(two)]));
            } else {
                letters.extend(seq.iter().flat_map(|&four| QUARTERS[usize::from(four)]));
            }
            letters.truncate(bytes(bases)?);
            if letters.contains(&NONE) {
                return Err(RecordFault::Damaged("it has a base that there is not"));
            }
            reads.put(record, mate, Read { header, seq: letters, qual })?;
        }
        Ok(())
    }
}

/// In place of a base that there is not.
const NONE: u8 = b'-';

/// Bases in a byte, the lowest bits first: four of them, ...
const QUARTERS: [[u8; 4]; 256] = {
    let mut letters = [[0; 4]; 256];
    let mut i = 0;
    while i < 4 * 256 {
        letters[i / 4][i % 4] = b"ACGT"[((i / 4) >> (2 * (i % 4))) & 3];
        i += 1;
    }
    letters
};

/// ... or two.
const HALVES: [[u8; 2]; 256] = {
    let mut letters = [[0; 2]; 256];
    let mut i = 0;
    while i < 2 * 256 {
        letters[i / 2][i % 2] = b"ACGT-----------N"[((i / 2) >> (4 * (i % 2))) & 15];
        i += 1;
    }
    letters
};
