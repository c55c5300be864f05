//! Functions for all formats of the crate `binseq` 0.11 (CBQ, VBQ, BQ): blocks, zstd decompression, and the conversion
//! of their reads into a record buffer.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read as _};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use genuma_work::ProgressCounters;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::error::{ByteForDisplay, Error, RecordFault};
use crate::fastq::template_name;
use crate::input_file::RawInputFile;
use crate::umi::UmiOrMoleculeId;

use super::record_buffer::{RecordBuffer, SamFields, flag};
use crate::record_counts::RecordCounts;

/// Maximum size in bytes of a column or index. A damaged length is thus detected before it fills the memory.
pub(super) const MAX_COLUMN_BYTES: u64 = 1 << 30;
/// Number of bytes per read call.
const DISK_CHUNK_BYTES: usize = 256 << 10;

/// Little-endian 64-bit number at byte `at`.
pub(super) fn read_little_endian_u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// A BINSEQ file that is being read.
pub(super) struct BinseqByteReader<M> {
    path: PathBuf,
    reader: BufReader<RawInputFile<M>>,
    /// Number of reads or pairs in the blocks read so far.
    pub(super) records_read: u64,
}

impl<M: Deref<Target = ProgressCounters>> BinseqByteReader<M> {
    /// Opens a file; reading starts at its first byte.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn open(path: &Path, progress: M) -> Result<Self, Error> {
        let reader = BufReader::with_capacity(DISK_CHUNK_BYTES, RawInputFile::open(path, None, progress, None)?);
        Ok(BinseqByteReader { path: path.into(), reader, records_read: 0 })
    }

    /// Reads exactly as many bytes as `bytes` has.
    ///
    /// # Errors
    /// The file cannot be read, or ends too early.
    pub(super) fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.reader.read_exact(bytes).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => self.truncated_error(),
            _ => Error::Read { path: self.path.clone(), source },
        })
    }

    /// Replaces `bytes` by up to `most` bytes of the file and returns their number. Allocates only for bytes that
    /// exist, even if a damaged length `most` is larger.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read_up_to(&mut self, most: u64, bytes: &mut Vec<u8>) -> Result<u64, Error> {
        bytes.clear();
        let read = self.reader.by_ref().take(most).read_to_end(bytes);
        read.map(|read| read as u64).map_err(|source| Error::Read { path: self.path.clone(), source })
    }

    /// Replaces `bytes` by exactly `wanted` bytes of the file.
    ///
    /// # Errors
    /// The file cannot be read, or ends too early.
    pub(super) fn read_bytes(&mut self, wanted: u64, bytes: &mut Vec<u8>) -> Result<(), Error> {
        if self.read_up_to(wanted, bytes)? < wanted { Err(self.truncated_error()) } else { Ok(()) }
    }

    /// Returns the error for a file that ends inside the next record.
    pub(super) fn truncated_error(&self) -> Error {
        Error::error_in_record(&self.path, self.records_read + 1, RecordFault::Truncated)
    }

    /// Returns the error for a file whose data are damaged from the next record on. `what` describes the damage.
    pub(super) fn corrupt_error(&self, what: &'static str) -> Error {
        Error::error_in_record(&self.path, self.records_read + 1, RecordFault::RecordCorrupt(what))
    }

    /// Number of bytes that were read from disk and not used yet.
    pub(super) fn num_bytes_read_ahead(&self) -> u64 {
        self.reader.buffer().len() as u64
    }
}

/// Decompresses data whose uncompressed size must be `bytes`; `None` if the data are damaged or have another size.
pub(super) fn decompress_exact(packed: &[u8], bytes: usize, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    out.resize(bytes, 0);
    if bytes == 0 && packed.is_empty() {
        return Some(());
    }
    let found = FrameDecoder::new().decode_all(packed, out).ok()?;
    (found == bytes).then_some(())
}

/// Decompresses data whose uncompressed size is unknown. Returns all data, or the first `most` + 1 bytes if there are
/// more than `most` bytes; `None` if the data are damaged.
pub(super) fn decompress_up_to(mut packed: &[u8], most: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // I/O error ignored: the input is in memory, and the error means damage.
    StreamingDecoder::new(&mut packed).ok()?.take(most + 1).read_to_end(&mut out).ok()?;
    (out.len() as u64 > most || packed.is_empty()).then_some(out)
}

/// Reads fields from the front of a byte slice. Its functions return `None` if too few bytes are left.
pub(super) struct ByteCursor<'a>(pub(super) &'a [u8]);

impl<'a> ByteCursor<'a> {
    /// Takes the next `n` bytes.
    pub(super) fn take_bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (skipped, after) = self.0.split_at_checked(n)?;
        self.0 = after;
        Some(skipped)
    }

    /// Takes a little-endian 64-bit number.
    pub(super) fn take_u64(&mut self) -> Option<u64> {
        self.take_bytes(8).map(|bytes| read_little_endian_u64_at(bytes, 0))
    }

    /// Takes a list of values of `size` bytes each, which is preceded by the number of values (64 bits).
    pub(super) fn take_counted_list(&mut self, size: usize) -> Option<&'a [u8]> {
        let values = usize::try_from(self.take_u64()?).ok()?;
        self.take_bytes(values.checked_mul(size)?)
    }
}

/// One read of a BINSEQ block.
pub(super) struct BinseqRead<'a, 'b> {
    /// The header as in FASTQ, without `@`; `None` if the file has no headers.
    pub(super) header: Option<&'a [u8]>,
    pub(super) seq: &'b [u8],
    /// Qualities as in FASTQ (Phred + 33); empty if the file has no qualities.
    pub(super) qual: &'b [u8],
}

/// Appends the reads of a block to a record buffer, in order.
pub(super) struct BinseqReadAppender<'a> {
    path: &'a Path,
    paired: bool,
    buffer: &'a mut RecordBuffer,
    counts: &'a mut RecordCounts,
    /// Name of read 1 of the current pair.
    first_name: &'a [u8],
    record_name: String,
    scores: Vec<u8>,
}

impl<'a> BinseqReadAppender<'a> {
    /// Prepares to append the reads of a block to `buffer` and to count them in `counts`. `paired` is whether the file
    /// at `path` has pairs.
    pub(super) fn for_record_buffer(
        path: &'a Path,
        paired: bool,
        buffer: &'a mut RecordBuffer,
        counts: &'a mut RecordCounts,
    ) -> Self {
        BinseqReadAppender {
            path,
            paired,
            buffer,
            counts,
            first_name: b"",
            record_name: String::new(),
            scores: Vec::new(),
        }
    }

    /// Appends read 1 (`mate` 0) or read 2 (`mate` 1) of a record. A read without a name gets the number of its record
    /// in the file as its name.
    ///
    /// # Errors
    /// The read is invalid, or its name differs from that of its mate.
    pub(super) fn push_read(
        &mut self,
        record: usize,
        mate: usize,
        read: BinseqRead<'a, '_>,
    ) -> Result<(), RecordFault> {
        let BinseqRead { header, seq, qual } = read;
        let flags = match (self.paired, mate) {
            (false, _) => 0,
            (true, 0) => flag::PAIRED | flag::FIRST_IN_TEMPLATE,
            (true, _) => flag::PAIRED | flag::LAST_IN_TEMPLATE,
        };
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let named = header.map(|header| header.split(blank).next().unwrap_or_default());
        if let Some(name) = named {
            if mate == 0 {
                self.first_name = name;
            } else if template_name(self.first_name) != template_name(name) {
                let text = |name: &[u8]| String::from_utf8_lossy(template_name(name)).into_owned();
                let (name, mate) = (text(self.first_name), text(name));
                return Err(RecordFault::MateNameMismatch { name, mate, mate_path: self.path.into() });
            }
        } else {
            self.record_name.clear();
            // Writing to a string cannot fail.
            let _ = write!(self.record_name, "{}", self.buffer.record_number_in_file(record as u32));
        }
        if let Some(&outside) = qual.iter().find(|score| !(b'!'..=b'~').contains(score)) {
            return Err(RecordFault::InvalidQuality(ByteForDisplay(outside)));
        }
        self.scores.clear();
        self.scores.extend(qual.iter().map(|score| score - b'!'));
        let name = named.unwrap_or(self.record_name.as_bytes());
        let fields = SamFields {
            flags,
            name,
            is_hard_clipped: false,
            seq,
            qual: &self.scores,
            umi: UmiOrMoleculeId::Missing,
            tags: &[],
        };
        self.buffer.push_read(record as u32, fields, self.counts)?;
        self.counts.records += 1;
        Ok(())
    }
}
