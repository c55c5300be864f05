//! FASTQ (four lines per record, or more where they are accepted) and FASTA: divides a file into blocks of whole
//! records, checks the records, and pairs mates.
//!
//! Finding block boundaries only searches for line ends, which is so fast that one thread at a time can do it under a
//! lock. The thread that takes the block does all other work.

mod block;

mod fasta;

mod record;

mod several_lines;

use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::compression::DecompressError;
use crate::error::{ByteForDisplay, Error, FileFault, RecordFault};
use crate::file_span::FileSpan;
use crate::inflate::{Decompressor, FileReadOptions};
use crate::pipe::is_stdin;
use genuma_work::ProgressCounters;

pub(crate) use block::FastqBlock;
use block::LINES_PER_RECORD;
pub(crate) use record::{
    FastqRecord, FastqRecordPosition, append_interleaved_pairs, append_pairs_of_two_files, append_single_reads,
    check_mates_and_return_name, is_graphic_ascii, is_iupac, is_read_base, template_name,
};

/// Bytes decompressed per call; measured to be the fastest of 32, 64, 128 and 256 KiB.
const INFLATE_CHUNK_BYTES: usize = 128 << 10;
/// Maximum number of records per block: about 350 KiB per file for reads of 150 bp.
const MAX_BLOCK_RECORDS: usize = 1024;
/// Target size of a block in bytes. Blocks of long records have fewer records, so that they stay near this size.
pub(crate) const TARGET_BLOCK_BYTES: usize = 512 << 10;
/// Maximum size in bytes of a record of a read pair. A block thus stays below 1.2 GB for any input.
const MAX_PAIRED_RECORD_BYTES: usize = 1 << 20;
/// Maximum size in bytes of any record, more than the longest human chromosome. So a file without line ends is refused
/// before it fills the memory.
const MAX_RECORD_BYTES: usize = 256 << 20;

/// Options for reading a FASTQ or FASTA file.
#[derive(Debug, Clone)]
pub(crate) struct FastqOptions {
    /// How to open the file.
    pub(crate) access: FileReadOptions,
    /// Whether FASTA (reads without qualities) is accepted.
    pub(crate) allow_fasta: bool,
    /// Whether sequences and qualities of several lines, and files without reads, are accepted.
    pub(crate) accepts_unusual_fastq: bool,
    /// Maximum size of a record in bytes.
    pub(crate) max_record_bytes: usize,
    /// Number of bytes that are decompressed per call.
    pub(crate) chunk_bytes: usize,
}

impl FastqOptions {
    /// Options for read pairs with qualities, from a regular file or a span of a regular file.
    pub(crate) fn for_pairs(span: Option<FileSpan>) -> Self {
        FastqOptions {
            access: FileReadOptions { span, ..FileReadOptions::default() },
            allow_fasta: false,
            accepts_unusual_fastq: false,
            max_record_bytes: MAX_PAIRED_RECORD_BYTES,
            chunk_bytes: INFLATE_CHUNK_BYTES,
        }
    }

    /// Options for reads of any length, from FASTQ or FASTA.
    pub(crate) fn for_reads_of_any_length(access: FileReadOptions) -> Self {
        FastqOptions { access, allow_fasta: true, max_record_bytes: MAX_RECORD_BYTES, ..FastqOptions::for_pairs(None) }
    }

    /// Whether the error is that the file is empty, and such files are accepted.
    pub(crate) fn accepts(&self, error: &Error) -> bool {
        self.accepts_unusual_fastq && matches!(error, Error::File { fault: FileFault::Empty, .. })
    }
}

/// Limits of a block; it ends at the limit that is reached first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockLimits {
    /// Maximum number of records, an even number.
    pub(crate) records: usize,
    /// Number of bytes at which a block of at least two records ends.
    pub(crate) bytes: usize,
}

/// Reads one file and divides it into blocks of records.
pub(crate) struct FastqReader<M: Deref<Target = ProgressCounters>> {
    path: PathBuf,
    decompressor: Decompressor<M>,
    /// Decompressed bytes after the last block.
    carry_over: Vec<u8>,
    /// FASTA and joined lines only: position in `carry_over` where the next line starts or continues.
    carry_over_pos: usize,
    /// FASTA only: whether the position `carry_over_pos` is inside a line of bases.
    is_in_sequence_line: bool,
    /// First byte of a header: `@`, or `>` for FASTA.
    header_mark: u8,
    accepts_unusual_fastq: bool,
    /// Whether a sequence of several lines was found, so that lines are joined from there on.
    joins_lines: bool,
    /// Joined lines only: the error with which the bytes in `carry_over` end.
    pending_fault: Option<Error>,
    /// Whether the file was read to its end and its last byte is not a line end.
    lacks_final_newline: bool,
    /// Number of records that were moved into blocks so far.
    records: u64,
    max_record_bytes: usize,
    chunk_bytes: usize,
}

impl<M: Deref<Target = ProgressCounters>> FastqReader<M> {
    /// Opens a file and checks that its first byte is `@` (FASTQ), or `>` if FASTA is accepted.
    pub(crate) fn open(path: &Path, progress: M, terms: &FastqOptions) -> Result<Self, Error> {
        let mut inflate = Decompressor::open(path, progress, &terms.access)?;
        let mut rest = vec![0; terms.chunk_bytes];
        let n = inflate.fill_buffer(&mut rest).map_err(|d| decompression_error(path, 1, d))?;
        rest.truncate(n);
        let Some(&first) = rest.first() else {
            let fault = terms.access.span.map_or(FileFault::Empty, |span| FileFault::ContentChanged(span.start));
            return Err(Error::error_in_file(path, fault));
        };
        let mark = if terms.allow_fasta && first == b'>' { b'>' } else { b'@' };
        if first != mark || mark == b'@' {
            if let Some((found, remedy)) = detect_other_format(&rest) {
                return Err(Error::error_in_file(path, FileFault::Format { found, wanted: "FASTQ", remedy }));
            }
            if first != mark {
                return Err(Error::error_in_record(path, 1, RecordFault::MissingHeaderMark(ByteForDisplay(first))));
            }
        }
        let (longest, chunk) = (terms.max_record_bytes, terms.chunk_bytes);
        let (at, within, unterminated, records) = (0, false, false, 0);
        Ok(FastqReader {
            path: path.into(),
            decompressor: inflate,
            carry_over: rest,
            carry_over_pos: at,
            is_in_sequence_line: within,
            header_mark: mark,
            accepts_unusual_fastq: terms.accepts_unusual_fastq,
            joins_lines: false,
            pending_fault: None,
            lacks_final_newline: unterminated,
            records,
            max_record_bytes: longest,
            chunk_bytes: chunk,
        })
    }

    /// An even number of records that makes blocks of about [`TARGET_BLOCK_BYTES`], estimated from the first record.
    pub(crate) fn estimate_records_per_block(&self) -> usize {
        let first =
            memchr::memchr_iter(b'\n', &self.carry_over).nth(LINES_PER_RECORD - 1).unwrap_or(TARGET_BLOCK_BYTES) + 1;
        (TARGET_BLOCK_BYTES / first).clamp(2, MAX_BLOCK_RECORDS) & !1
    }

    /// Moves the next records into `block`. Their number is even, unless the file ends or an error occurs. An error is
    /// stored in the block instead of being returned, so that errors in earlier records are reported first.
    pub(crate) fn fill_block(&mut self, block: &mut FastqBlock, limit: BlockLimits) {
        if self.header_mark == b'>' {
            self.fill_fasta_block(block, limit);
        } else if self.joins_lines {
            self.fill_block_with_joined_lines(block, limit);
        } else {
            self.fill_block_fastq(block, limit);
        }
        self.records += block.num_records() as u64;
    }

    fn fill_block_fastq(&mut self, block: &mut FastqBlock, limit: BlockLimits) {
        block.clear_and_start_with_bytes(self.header_mark, self.records, &self.carry_over);
        self.carry_over.clear();
        let lines = limit.records * LINES_PER_RECORD;
        let mut scanned = 0;
        block.has_more = loop {
            let room = lines - block.line_ends.len();
            let found = memchr::memchr_iter(b'\n', &block.bytes[scanned..block.used_bytes]).take(room);
            block.line_ends.extend(found.map(|at| scanned + at));
            scanned = block.used_bytes;
            if block.line_ends.len() == lines || (block.used_bytes >= limit.bytes && block.num_records() >= 2) {
                break true;
            }
            match self.read_chunk(block) {
                Ok(true) => {}
                Ok(false) => break false,
                Err(e) => {
                    block.fault = Some(e);
                    break false;
                }
            }
        };
        block.lacks_final_newline = self.lacks_final_newline;
        if block.has_more {
            block.truncate_records(block.num_records() & !1);
            let end = block.end_of_last_whole_record();
            self.carry_over.extend_from_slice(&block.bytes[end..block.used_bytes]);
        } else if block.fault.is_none()
            && !block.bytes[block.end_of_last_whole_record()..block.used_bytes].iter().all(is_line_end)
        {
            let record = self.records + block.num_records() as u64 + 1;
            block.fault = Some(Error::error_in_record(&self.path, record, RecordFault::Truncated));
        }
    }

    /// Decompresses the next chunk into `block`; false at the end of the file.
    fn read_chunk(&mut self, block: &mut FastqBlock) -> Result<bool, Error> {
        let (record, whole) =
            (block.num_records_before + block.num_records() as u64 + 1, block.end_of_last_whole_record());
        if block.used_bytes - whole > self.max_record_bytes {
            return Err(Error::error_in_record(&self.path, record, RecordFault::TooLong(self.max_record_bytes)));
        }
        // One byte more than the chunk, for the line end that the last line of a file may lack.
        block.reserve(self.chunk_bytes + 1);
        let room = &mut block.bytes[block.used_bytes..block.used_bytes + self.chunk_bytes];
        let n = self.decompressor.fill_buffer(room).map_err(|d| decompression_error(&self.path, record, d))?;
        block.used_bytes += n;
        if n == 0 && block.used_bytes > whole && block.bytes[block.used_bytes - 1] != b'\n' {
            block.append_bytes(b"\n");
            self.lacks_final_newline = true;
            return Ok(true);
        }
        Ok(n > 0)
    }
}

/// Whether the byte is a line feed or carriage return. Some editors leave blank lines at the end of a file.
fn is_line_end(b: &u8) -> bool {
    matches!(b, b'\n' | b'\r')
}

fn decompression_error(path: &Path, record: u64, damage: DecompressError) -> Error {
    let fault = match damage {
        DecompressError::Io(source) => return Error::Read { path: path.into(), source },
        DecompressError::ContentChanged(at) => return Error::error_in_file(path, FileFault::ContentChanged(at)),
        DecompressError::Truncated(format) => RecordFault::CompressedTruncated(format),
        DecompressError::Corrupt(format, what) => RecordFault::CompressedCorrupt(format, what),
    };
    Error::error_in_record(path, record, fault)
}

/// Checks that a file exists and is no folder, index, or file of another format than FASTQ, so that such a mistake is
/// not reported as a missing mate file. Pipes pass, and so do files without a known format. `allow_fasta`: whether FASTA
/// passes.
///
/// # Errors
/// [`Error::Read`] if the file cannot be read, [`Error::File`] if it has another format.
pub fn check_no_other_format(path: &Path, allow_fasta: bool) -> Result<(), Error> {
    let options = FastqOptions { allow_fasta, ..FastqOptions::for_pairs(None) };
    match FastqReader::open(path, &ProgressCounters::default(), &options) {
        Err(error @ Error::File { fault: FileFault::Format { .. } | FileFault::Folder, .. }) => Err(error),
        Err(error @ Error::Read { .. }) if !is_stdin(path) => Err(error),
        _ => Ok(()),
    }
}

/// Advice for BINSEQ formats where FASTQ is needed.
const BINSEQ_REMEDY: &str =
    "here and from a pipe, only FASTQ can be read: save it to a file, or convert it to FASTQ with bqtools decode";

/// Recognises, by the first bytes of a file, formats that are often given by mistake. Returns the name of the format
/// and advice.
fn detect_other_format(head: &[u8]) -> Option<(&'static str, &'static str)> {
    match head {
        [b'B', b'A', b'M', 1, ..] => Some(("BAM", "only FASTQ is supported here: convert it with samtools fastq")),
        [b'C', b'R', b'A', b'M', ..] => Some(("CRAM", "only FASTQ is supported here: convert it with samtools fastq")),
        [b'C', b'B', b'Q', b'F', ..] => Some(("CBQ", BINSEQ_REMEDY)),
        [b'V', b'S', b'E', b'Q', ..] => Some(("VBQ", BINSEQ_REMEDY)),
        [b'B', b'S', b'E', b'Q', ..] => Some(("BQ", BINSEQ_REMEDY)),
        [b'>', ..] => Some(("a FASTA file", "give reads with qualities")),
        [b'@', b'H', b'D', b'\t', ..]
        | [b'@', b'S', b'Q', b'\t', ..]
        | [b'@', b'R', b'G', b'\t', ..]
        | [b'@', b'P', b'G', b'\t', ..] => {
            Some(("a SAM file", "convert it to BAM with samtools view -b, or to FASTQ with samtools fastq"))
        }
        _ => detect_unsupported_content(head),
    }
}

/// First bytes of other formats, which have no sequences or an unsupported compression, with the name of the format
/// and advice.
const OTHER_FORMATS: [(&[u8], &str, &str); 16] = [
    (b"BAI\x01", "an index of BAM (.bai)", "give the BAM file"),
    (b"CSI\x01", "an index (.csi)", "give the file that it belongs to"),
    (b"TBI\x01", "an index (.tbi)", "give the file that it belongs to"),
    (b"NCBI.sra", "an SRA archive", "convert it with fasterq-dump"),
    (b"version https://git-lfs", "a pointer of git-lfs", "get the file itself with git lfs pull"),
    (b"<!DOCTYPE", "an HTML page", "the download failed: download the file again"),
    (b"<!doctype", "an HTML page", "the download failed: download the file again"),
    (b"<html", "an HTML page", "the download failed: download the file again"),
    (b"<?xml", "an XML document", "the download failed: download the file again"),
    (b"\x1f\x8b", "compressed with gzip twice", "decompress it once with gzip -d"),
    (b"##fileformat=VCF", "a VCF file, which has variants", "give the file with the sequences"),
    (b"BCF\x02", "a BCF file, which has variants", "give the file with the sequences"),
    (b"%PDF", "a PDF document", "give the file with the sequences"),
    (b"\xef\xbb\xbf", "text with a byte order mark (BOM)", "remove the mark with dos2unix"),
    (b"\xff\xfe", "UTF-16 text", "convert it with iconv -f UTF-16 -t ASCII"),
    (b"\xfe\xff", "UTF-16 text", "convert it with iconv -f UTF-16 -t ASCII"),
];
/// Position and text by which a tar archive is recognised.
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");

/// Recognises files without sequences, and unsupported compression, by the first decompressed bytes. Returns the name
/// of the format and advice.
pub(crate) fn detect_unsupported_content(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if head.get(TAR_MARK.0..).is_some_and(|rest| rest.starts_with(TAR_MARK.1)) {
        return Some(("a tar archive", "unpack it with tar -x, and give the files in it"));
    }
    let format = OTHER_FORMATS.iter().find(|(mark, _, _)| head.starts_with(mark));
    format.map(|&(_, found, remedy)| (found, remedy))
}

#[cfg(test)]
mod tests;
