//! VBQ and BQ, formats of the crate `binseq` 0.11 (<https://docs.rs/binseq/latest/binseq/vbq> and `bq`): records one
//! after the other, read 2 after read 1.
//!
//! ```text
//! VBQ: header, 32 bytes │ block: header, 32 bytes; records, zeros, usually compressed │ ... │ index: "VBQINDEX", 24 bytes, compressed data, its length, "INDEXEND"
//! record: flag? lengths of both reads │ bases, qualities? header? of read 1 │ the same of read 2?
//! BQ: header, 32 bytes │ record: flag? bases of read 1, bases of read 2? │ ...
//! ```
//!
//! The formats have no checksums: a changed byte is detected only if it damages a length, a letter or the index.

use std::ops::Deref;
use std::path::Path;

use genuma_work::ProgressCounters;

use crate::error::{Error, FileFault, RecordFault};

use super::binseq::{
    BinseqByteReader, BinseqRead, BinseqReadAppender, ByteCursor, MAX_COLUMN_BYTES, decompress_exact, decompress_up_to,
    read_little_endian_u64_at,
};
use super::eof_marker::check_eof_marker;
use super::record_buffer::RecordBuffer;
use crate::record_counts::RecordCounts;

pub(super) const VBQ_MAGIC: &[u8] = b"VSEQ";
pub(super) const BQ_MAGIC: &[u8] = b"BSEQ";
/// First bytes of the index of VBQ.
const INDEX_MAGIC: &[u8; 8] = b"VBQINDEX";
/// Last bytes of a VBQ file.
const INDEX_END: &[u8; 8] = b"INDEXEND";
const VERSION: u8 = 1;
/// Size in bytes of each header: of the file, of a block and of the index. An index entry has this size, too.
const HEADER_BYTES: usize = 32;
/// Maximum uncompressed size in bytes of a VBQ block, and of a BQ record: offsets then fit into 32 bits, and a damaged
/// length does not fill the memory.
const MAX_BLOCK_BYTES: u64 = MAX_COLUMN_BYTES / 8;
/// Number of bytes of a BQ file that are processed together, unless a single record is longer.
const BQ_CHUNK_BYTES: u64 = 128 << 10;

#[derive(Debug, Clone, Copy, Default)]
struct RecordLayout {
    is_paired: bool,
    /// Whether bases have four bits, which can encode N, instead of two.
    has_four_bit_bases: bool,
    has_flags: bool,
    has_qualities: bool,
    has_names: bool,
    /// Numbers of bases of read 1 and read 2 if they are equal in all records (BQ); `None` if each record stores its
    /// numbers (VBQ).
    fixed_lengths: Option<[u64; 2]>,
}

impl RecordLayout {
    fn num_mates(&self) -> usize {
        if self.is_paired { 2 } else { 1 }
    }

    /// Size in bytes of packed bases, which occupy whole 64-bit words.
    fn packed_bytes(&self, bases: u64) -> u64 {
        8 * bases.div_ceil(if self.has_four_bit_bases { 16 } else { 32 })
    }

    /// Smallest possible size of a record in bytes.
    fn min_record_bytes(&self) -> u64 {
        let flags = if self.has_flags { 8 } else { 0 };
        flags + self.fixed_lengths.map_or(16, |bases| bases.iter().map(|&bases| self.packed_bytes(bases)).sum())
    }
}

/// A VBQ or BQ file from which blocks are read.
pub(super) struct VbqOrBqFileReader<M> {
    file: BinseqByteReader<M>,
    layout: RecordLayout,
    /// Uncompressed size in bytes of a VBQ block, or number of bytes of a BQ file that are processed together.
    block_bytes: u64,
    is_compressed: bool,
    /// Number of blocks read so far.
    blocks_read: u64,
}

/// A block that still has to be decoded.
#[derive(Default)]
pub(super) struct EncodedBlock {
    layout: RecordLayout,
    num_records_before: u64,
    num_records: usize,
    bytes: Vec<u8>,
    /// Uncompressed size in bytes; `None` if the block is not compressed.
    decompressed_bytes: Option<usize>,
    decompressed: Vec<u8>,
    letters: Vec<u8>,
}

impl<M: Deref<Target = ProgressCounters>> VbqOrBqFileReader<M> {
    /// Opens a file and reads its header, so that the first block comes next.
    ///
    /// # Errors
    /// The file cannot be read, has an unsupported version, or has no end-of-file marker.
    pub(super) fn open(path: &Path, progress: M) -> Result<Self, Error> {
        let mut file = BinseqByteReader::open(path, progress)?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header)?;
        let wrong = |what| Error::error_in_file(path, FileFault::Header(what));
        if header[4] != VERSION {
            return Err(wrong("its version is not 1, the only supported one"));
        }
        let kinds = if header.starts_with(VBQ_MAGIC) {
            check_eof_marker(path, INDEX_END)?;
            let [qualities, packed, paired, halves, names, flags] = [13, 14, 15, 16, 17, 18].map(|at| header[at]);
            // Files of earlier versions have 42 in bytes that had no meaning yet: then there is a flag and no header.
            [qualities, packed, paired, halves, if names == 42 { 0 } else { names }, flags]
        } else {
            [0, 0, u8::from(header[9..13] != [0; 4]), header[13], 0, header[14]]
        };
        let yes = |kind: u8| match kind {
            0 => Ok(false),
            1 | 42 => Ok(true),
            _ => Err(wrong("it has an unknown kind of records")),
        };
        let [qualities, packed, paired, halves, names, flags] = kinds;
        let mut shape = RecordLayout {
            is_paired: yes(paired)?,
            has_four_bit_bases: match halves {
                0 | 2 | 42 => false,
                4 => true,
                _ => return Err(wrong("its bases have neither 2 bits nor 4")),
            },
            has_flags: yes(flags)?,
            has_qualities: yes(qualities)?,
            has_names: yes(names)?,
            fixed_lengths: None,
        };
        let mut block = read_little_endian_u64_at(&header, 5);
        if header.starts_with(BQ_MAGIC) {
            shape.fixed_lengths = Some([block & 0xffff_ffff, block >> 32]);
            block = shape.min_record_bytes() * (BQ_CHUNK_BYTES / shape.min_record_bytes().max(1)).max(1);
        }
        if shape.fixed_lengths.is_some_and(|[bases, _]| bases == 0) || !(1..=MAX_BLOCK_BYTES).contains(&block) {
            return Err(wrong("its blocks or reads have an invalid length"));
        }
        if shape.fixed_lengths.is_some() {
            check_whole_records(path, shape.min_record_bytes())?;
        }
        Ok(VbqOrBqFileReader { file, layout: shape, block_bytes: block, is_compressed: yes(packed)?, blocks_read: 0 })
    }

    /// Reads the next block into `packed`; false if the file has no more blocks.
    ///
    /// # Errors
    /// The file cannot be read or is damaged, or the number of records in its index is wrong.
    pub(super) fn read_block(&mut self, packed: &mut EncodedBlock) -> Result<bool, Error> {
        (packed.layout, packed.num_records_before) = (self.layout, self.file.records_read);
        packed.decompressed_bytes = self.is_compressed.then_some(self.block_bytes as usize);
        let records = if self.layout.fixed_lengths.is_some() {
            let (read, record) =
                (self.file.read_up_to(self.block_bytes, &mut packed.bytes)?, self.layout.min_record_bytes());
            if read == 0 {
                return Ok(false);
            }
            if !read.is_multiple_of(record) {
                self.file.records_read += read / record;
                return Err(self.file.truncated_error());
            }
            read / record
        } else {
            let mut header = [0; HEADER_BYTES];
            self.file.read_exact(&mut header)?;
            if header.starts_with(INDEX_MAGIC) {
                self.check_index()?;
                return Ok(false);
            }
            if !header.starts_with(b"BLOCKSEQ") {
                return Err(self.file.corrupt_error("its block has no header"));
            }
            let [bytes, records] =
                [read_little_endian_u64_at(&header, 8), read_little_endian_u64_at(&header, 16) & 0xffff_ffff];
            // Incompressible data grow by less than this in zstd.
            let fits = if self.is_compressed {
                bytes <= self.block_bytes + self.block_bytes / 256 + 1024
            } else {
                bytes == self.block_bytes
            };
            if !fits || records == 0 || records * self.layout.min_record_bytes() > self.block_bytes {
                return Err(self.file.corrupt_error("a length of its block is invalid"));
            }
            self.file.read_bytes(bytes, &mut packed.bytes)?;
            records
        };
        packed.num_records = records as usize;
        self.file.records_read += records;
        self.blocks_read += 1;
        Ok(true)
    }

    /// Reads the index (for each block: start, size, number of records, and number of records before it) and compares
    /// it with the blocks and records that were read.
    fn check_index(&mut self) -> Result<(), Error> {
        let mut bytes = Vec::new();
        self.file.read_up_to(MAX_COLUMN_BYTES, &mut bytes)?;
        let whole = bytes.split_last_chunk::<16>().filter(|(packed, end)| {
            read_little_endian_u64_at(*end, 0) == (HEADER_BYTES + packed.len()) as u64 && end.ends_with(INDEX_END)
        });
        let (packed, _) = whole.ok_or_else(|| self.file.corrupt_error("a length of the index is invalid"))?;
        let wanted = HEADER_BYTES as u64 * self.blocks_read;
        let index = decompress_up_to(packed, wanted)
            .ok_or_else(|| self.file.corrupt_error("the index cannot be decompressed"))?;
        let counted = index.last_chunk::<HEADER_BYTES>().map_or(0, |last| {
            let (records, num_records_before) =
                (read_little_endian_u64_at(last, 16) & 0xffff_ffff, read_little_endian_u64_at(last, 20));
            num_records_before.saturating_add(records)
        });
        if (counted, index.len() as u64) != (self.file.records_read, wanted) {
            return Err(self.file.corrupt_error("the number of records in the index is wrong"));
        }
        Ok(())
    }

    /// Number of bytes of the file that were read ahead and are not in a block yet.
    pub(super) fn num_bytes_read_ahead(&self) -> u64 {
        self.file.num_bytes_read_ahead()
    }
}

/// Checks that a BQ file ends with a whole record: the format has no end-of-file marker.
fn check_whole_records(path: &Path, record: u64) -> Result<(), Error> {
    let metadata = path.metadata().map_err(|source| Error::Read { path: path.into(), source })?;
    let bytes = metadata.len().saturating_sub(HEADER_BYTES as u64);
    if bytes.is_multiple_of(record) {
        return Ok(());
    }
    Err(Error::error_in_record(path, bytes / record + 1, RecordFault::Truncated))
}

impl EncodedBlock {
    /// Number of records of the file before the block.
    pub(super) fn num_records_before(&self) -> u64 {
        self.num_records_before
    }

    /// Decodes the reads of the block into `buffer`.
    ///
    /// # Errors
    /// The block is damaged.
    pub(super) fn decode_reads(
        &mut self,
        path: &Path,
        buffer: &mut RecordBuffer,
        counts: &mut RecordCounts,
    ) -> Result<(), Error> {
        buffer.reset(self.num_records_before);
        let fault =
            |record: usize, fault| Error::error_in_record(path, self.num_records_before + record as u64 + 1, fault);
        let mut rest = ByteCursor(&self.bytes);
        if let Some(bytes) = self.decompressed_bytes {
            let whole = decompress_exact(&self.bytes, bytes, &mut self.decompressed);
            whole.ok_or_else(|| fault(0, RecordFault::RecordCorrupt("its block cannot be decompressed")))?;
            rest = ByteCursor(&self.decompressed);
        }
        let mut reads = BinseqReadAppender::for_record_buffer(path, self.layout.is_paired, buffer, counts);
        for record in 0..self.num_records {
            self.layout
                .push_record(&mut rest, record, &mut self.letters, &mut reads)
                .map_err(|what| fault(record, what))?;
        }
        if rest.0.iter().any(|&byte| byte != 0) {
            return Err(fault(self.num_records, RecordFault::RecordCorrupt("its block has data after its records")));
        }
        Ok(())
    }
}

impl RecordLayout {
    /// Reads the next record of a block and appends its reads.
    fn push_record<'a>(
        &self,
        rest: &mut ByteCursor<'a>,
        record: usize,
        letters: &mut Vec<u8>,
        reads: &mut BinseqReadAppender<'a>,
    ) -> Result<(), RecordFault> {
        const LONG: RecordFault = RecordFault::RecordCorrupt("its fields are longer than its block");
        let bytes = |bytes: u64| usize::try_from(bytes).map_err(|_| LONG);
        if self.has_flags {
            rest.take_u64().ok_or(LONG)?;
        }
        let bases = match self.fixed_lengths {
            Some(bases) => bases,
            None => [rest.take_u64().ok_or(LONG)?, rest.take_u64().ok_or(LONG)?],
        };
        if !self.is_paired && bases[1] != 0 {
            return Err(RecordFault::RecordCorrupt("it has a mate in a file of single reads"));
        }
        for (mate, &bases) in bases.iter().enumerate().take(self.num_mates()) {
            if bases > MAX_COLUMN_BYTES {
                return Err(LONG);
            }
            let seq = rest.take_bytes(bytes(self.packed_bytes(bases))?).ok_or(LONG)?;
            let qual = if self.has_qualities { rest.take_bytes(bytes(bases)?).ok_or(LONG)? } else { b"" };
            let header = if self.has_names { Some(rest.take_counted_list(1).ok_or(LONG)?) } else { None };
            letters.clear();
            if self.has_four_bit_bases {
                letters.extend(seq.iter().flat_map(|&two| BASES_OF_FOUR_BIT_BYTE[usize::from(two)]));
            } else {
                letters.extend(seq.iter().flat_map(|&four| BASES_OF_TWO_BIT_BYTE[usize::from(four)]));
            }
            letters.truncate(bytes(bases)?);
            if letters.contains(&INVALID_BASE) {
                return Err(RecordFault::RecordCorrupt("it has an invalid base"));
            }
            reads.push_read(record, mate, BinseqRead { header, seq: letters, qual })?;
        }
        Ok(())
    }
}

/// Letter for a code that is not a base.
const INVALID_BASE: u8 = b'-';

/// The four bases in a byte of two-bit bases, the lowest bits first.
const BASES_OF_TWO_BIT_BYTE: [[u8; 4]; 256] = {
    let mut letters = [[0; 4]; 256];
    let mut i = 0;
    while i < 4 * 256 {
        letters[i / 4][i % 4] = b"ACGT"[((i / 4) >> (2 * (i % 4))) & 3];
        i += 1;
    }
    letters
};

/// The two bases in a byte of four-bit bases, the lowest bits first.
const BASES_OF_FOUR_BIT_BYTE: [[u8; 2]; 256] = {
    let mut letters = [[0; 2]; 256];
    let mut i = 0;
    while i < 2 * 256 {
        letters[i / 2][i % 2] = b"ACGT-----------N"[((i / 2) >> (4 * (i % 2))) & 15];
        i += 1;
    }
    letters
};
