//! CBQ, a format of the crate `binseq` 0.11 (<https://docs.rs/binseq/latest/binseq/cbq>): blocks of columns, each
//! compressed by zstd; mates are stored together.
//!
//! ```text
//! header, 64 bytes │ block: header, 96 bytes; columns │ ... │ index: "CBQINDEX", two lengths, compressed data, a length, "CBQINDEX"
//! ```
//!
//! The format has no checksums: a changed byte is detected only if it damages a column, a length or the index.

use std::ops::Deref;
use std::path::Path;

use genuma_work::ProgressCounters;

use crate::error::{Error, FileFault, RecordFault};

use super::binseq::{
    self, BinseqByteReader, BinseqRead, BinseqReadAppender, ByteCursor, MAX_COLUMN_BYTES, read_little_endian_u64_at,
};
use super::eof_marker::check_eof_marker;
use super::record_buffer::RecordBuffer;
use crate::record_counts::RecordCounts;

pub(super) const CBQ_MAGIC: &[u8] = b"CBQFILE";
/// The first bytes of the index, and the last bytes of the file.
const INDEX_MAGIC: &[u8; 8] = b"CBQINDEX";
/// The supported version of the file format and of the block format.
const VERSION: u8 = 1;
const FILE_HEADER_BYTES: usize = 64;
const BLOCK_HEADER_BYTES: usize = 96;
const INDEX_HEADER_BYTES: usize = 24;
/// Number of columns of a block: lengths of reads, lengths of names, positions of N, bases, flags, names, qualities.
const NUM_COLUMNS: usize = 7;

/// A CBQ file from which blocks are read.
pub(super) struct CbqFileReader<M> {
    file: BinseqByteReader<M>,
    paired: bool,
}

/// A block whose columns are still compressed.
#[derive(Default)]
pub(super) struct EncodedBlock {
    paired: bool,
    num_records_before: u64,
    bytes: Vec<u8>,
    /// Compressed size in bytes of each column.
    column_bytes: [usize; NUM_COLUMNS],
    num_bases: usize,
    /// Uncompressed size in bytes of the column with the positions of N.
    n_position_bytes: usize,
    num_records: usize,
    decoded: DecodedColumns,
}

/// Decompressed columns of a block; the memory is reused for all blocks.
#[derive(Default)]
struct DecodedColumns {
    columns: [Vec<u8>; NUM_COLUMNS],
    letters: Vec<u8>,
}

impl<M: Deref<Target = ProgressCounters>> CbqFileReader<M> {
    /// Opens a file and reads its header, so that the first block comes next.
    ///
    /// # Errors
    /// The file cannot be read, has an unsupported version, or has no end-of-file marker.
    pub(super) fn open(path: &Path, progress: M) -> Result<Self, Error> {
        check_eof_marker(path, INDEX_MAGIC)?;
        let mut file = BinseqByteReader::open(path, progress)?;
        let mut header = [0; FILE_HEADER_BYTES];
        file.read_exact(&mut header)?;
        if header[7] != VERSION {
            return Err(Error::error_in_file(path, FileFault::Header("its version is not 1, the only supported one")));
        }
        Ok(CbqFileReader { file, paired: header[8] & 1 != 0 })
    }

    /// Reads the next block into `packed`; false if the file has no more blocks.
    ///
    /// # Errors
    /// The file cannot be read or is damaged, or the number of records in its index is wrong.
    pub(super) fn read_block(&mut self, packed: &mut EncodedBlock) -> Result<bool, Error> {
        let mut header = [0; BLOCK_HEADER_BYTES];
        self.file.read_exact(&mut header[..INDEX_HEADER_BYTES])?;
        if header.starts_with(INDEX_MAGIC) {
            self.check_index(read_little_endian_u64_at(&header, 8), read_little_endian_u64_at(&header, 16))?;
            return Ok(false);
        }
        self.file.read_exact(&mut header[INDEX_HEADER_BYTES..])?;
        if !header.starts_with(b"BLK") || header[3] != VERSION {
            return Err(self.file.corrupt_error("its block has no header of version 1"));
        }
        let number = |i: usize| read_little_endian_u64_at(&header, 8 + 8 * i);
        let [bases, places, records, reads] = [7, 8, 9, 10].map(number);
        let mates = if self.paired { 2 } else { 1 };
        if (0..NUM_COLUMNS).any(|column| number(column) > MAX_COLUMN_BYTES)
            || [bases, places, reads].iter().any(|&n| n > MAX_COLUMN_BYTES / 8)
            || records.checked_mul(mates) != Some(reads)
        {
            return Err(self.file.corrupt_error("a length of its block is invalid"));
        }
        packed.paired = self.paired;
        packed.num_records_before = self.file.records_read;
        packed.column_bytes = std::array::from_fn(|column| number(column) as usize);
        [packed.num_bases, packed.n_position_bytes, packed.num_records] = [bases, places, records].map(|n| n as usize);
        let wanted: usize = packed.column_bytes.iter().sum();
        self.file.read_bytes(wanted as u64, &mut packed.bytes)?;
        self.file.records_read += records;
        Ok(true)
    }

    /// Reads the index (start of each block, and number of records up to the end of the block) and compares its
    /// number of records with the number of records read.
    fn check_index(&mut self, bytes: u64, packed: u64) -> Result<(), Error> {
        if bytes > MAX_COLUMN_BYTES || packed > MAX_COLUMN_BYTES || !bytes.is_multiple_of(16) {
            return Err(self.file.corrupt_error("a length of the index is invalid"));
        }
        let (mut index, mut unpacked) = (Vec::new(), Vec::new());
        self.file.read_bytes(packed, &mut index)?;
        binseq::decompress_exact(&index, bytes as usize, &mut unpacked)
            .ok_or_else(|| self.file.corrupt_error("the index cannot be decompressed"))?;
        let counted = unpacked.last_chunk::<8>().map_or(0, |count| u64::from_le_bytes(*count));
        if counted != self.file.records_read {
            return Err(self.file.corrupt_error("the number of records in the index is wrong"));
        }
        // The length and the magic number at the end of the file.
        self.file.read_exact(&mut [0; 16])
    }

    /// Number of bytes of the file that were read ahead and are not in a block yet.
    pub(super) fn num_bytes_read_ahead(&self) -> u64 {
        self.file.num_bytes_read_ahead()
    }
}

/// Decompresses a column whose uncompressed size must be `bytes`.
fn decompress_column(packed: &[u8], bytes: usize, out: &mut Vec<u8>) -> Result<(), RecordFault> {
    let message = RecordFault::RecordCorrupt("a column of its block cannot be decompressed");
    binseq::decompress_exact(packed, bytes, out).ok_or(message)
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
        self.decompress().map_err(|fault| Error::error_in_record(path, self.num_records_before + 1, fault))?;
        self.push_reads(path, buffer, counts)
            .map_err(|(record, fault)| Error::error_in_record(path, self.num_records_before + record as u64 + 1, fault))
    }

    fn decompress(&mut self) -> Result<(), RecordFault> {
        let reads = self.num_records * if self.paired { 2 } else { 1 };
        let DecodedColumns { columns, letters } = &mut self.decoded;
        let (mut at, mut names) = (0, 0);
        for (number, (column, &packed)) in columns.iter_mut().zip(&self.column_bytes).enumerate() {
            let bytes = match number {
                _ if packed == 0 => 0,
                0 | 1 => 8 * reads,
                2 => self.n_position_bytes,
                3 => 8 * self.num_bases.div_ceil(32),
                4 => 8 * self.num_records,
                5 => names,
                _ => self.num_bases,
            };
            decompress_column(&self.bytes[at..at + packed], bytes, column)?;
            at += packed;
            if number <= 1 {
                let all = column.chunks_exact(8).map(|length| read_little_endian_u64_at(length, 0));
                let all = all.fold(0u64, u64::saturating_add);
                if number == 0 && all != self.num_bases as u64 || all > MAX_COLUMN_BYTES {
                    return Err(RecordFault::RecordCorrupt(
                        "the number of bases of its block differs from that of its reads",
                    ));
                }
                names = if number == 1 { all as usize } else { 0 };
            }
        }
        if columns[0].len() != 8 * reads || (!columns[1].is_empty() && columns[5].len() != names) {
            return Err(RecordFault::RecordCorrupt("its block lacks lengths or names"));
        }
        letters.clear();
        let bases = columns[3].iter().flat_map(|&four| [0, 2, 4, 6].map(|bit| b"ACGT"[usize::from(four >> bit & 3)]));
        letters.extend(bases.take(self.num_bases));
        if letters.len() < self.num_bases {
            return Err(RecordFault::RecordCorrupt("its block has no bases"));
        }
        if !columns[2].is_empty() {
            let message = RecordFault::RecordCorrupt("the positions of N cannot be decoded");
            for_each_n_position(&columns[2], |at| letters.get_mut(at as usize).map(|letter| *letter = b'N'))
                .ok_or(message)?;
        }
        Ok(())
    }

    /// Appends all reads to a record buffer. The error comes with the index of the record at which it occurred.
    fn push_reads(
        &self,
        path: &Path,
        buffer: &mut RecordBuffer,
        counts: &mut RecordCounts,
    ) -> Result<(), (usize, RecordFault)> {
        let DecodedColumns { columns: [lengths, name_lengths, _, _, _, names, qualities], letters } = &self.decoded;
        let mates = if self.paired { 2 } else { 1 };
        let length = |of: &[u8], read: usize| read_little_endian_u64_at(of, 8 * read) as usize;
        let (mut at, mut name_at) = (0, 0);
        let mut put = BinseqReadAppender::for_record_buffer(path, self.paired, buffer, counts);
        for read in 0..self.num_records * mates {
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
            put.push_read(record, mate, BinseqRead { header, seq: &letters[at..to], qual })
                .map_err(|fault| (record, fault))?;
            at = to;
        }
        Ok(())
    }
}

/// Calls `each` with the position of each N: decodes an Elias-Fano sequence of numbers as written by `sucds` 0.9 (P.
/// Elias, Efficient storage and retrieval by content and address of static files, 1974): each number has `low_len` low
/// bits, stored consecutively, and its high part is the number of zeros before its one bit. `None` if the data end too
/// early or `each` returns `None`.
fn for_each_n_position(bytes: &[u8], mut each: impl FnMut(u64) -> Option<()>) -> Option<()> {
    let mut rest = ByteCursor(bytes);
    let high = rest.take_counted_list(8)?;
    let high_bits = rest.take_u64()?;
    // Index for fast selection of ones, not needed here.
    rest.take_counted_list(8)?;
    rest.take_counted_list(2)?;
    rest.take_counted_list(8)?;
    rest.take_u64()?;
    rest.take_bytes(1)?;
    // Presence flags of the index for zeros and of ranks, which are not written.
    if rest.take_bytes(2)? != [0, 0] {
        return None;
    }
    let low = rest.take_counted_list(8)?;
    rest.take_u64()?;
    let low_len = u32::try_from(rest.take_u64()?).ok().filter(|&bits| bits < 64)?;
    let bit = |of: &[u8], at: u64| of.get(usize::try_from(at / 8).ok()?).map(|byte| u64::from(byte >> (at % 8) & 1));
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
