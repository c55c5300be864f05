//! BAM (SAM specification, section 4.2): a header, then records, each preceded by its length.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::bgzf;
use crate::compression::DecompressError;
use crate::error::{Error, FileFault, RecordFault};
use crate::inflate::{Decompressor, FileReadOptions};
use genuma_work::ProgressCounters;

use super::eof_marker::check_eof_marker_or_last_block;
use super::header::{self, AlignedHeader, HeaderSequence, MAX_HEADER_NUMBER};
use super::record_buffer::{BAM_FIXED_FIELDS_BYTES, RecordBuffer};

pub(super) const BAM_MAGIC: &[u8] = b"BAM\x01";
/// The empty BGZF block at the end of a file (SAM specification, section 4.1.2).
const EOF_BLOCK: [u8; 28] =
    [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0, 0x1b, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Size in bytes of the records at which a record buffer is full.
const CHUNK_BYTES: usize = 512 << 10;
/// Maximum number of decompressed bytes that are read per call.
const INFLATE_BYTES: usize = 128 << 10;
/// Maximum size of a record in bytes. A damaged length is thus detected before it fills the memory.
const MAX_RECORD_BYTES: usize = 512 << 20;

/// A BAM file from which records are read.
pub(super) struct BamFileReader<M: Deref<Target = ProgressCounters>> {
    path: PathBuf,
    decompressor: Decompressor<M>,
    /// Decompressed bytes after the last whole record.
    carry_over: Vec<u8>,
    /// Number of records read so far.
    records: u64,
    /// Samples, platforms and reference sequences.
    pub(super) header: AlignedHeader,
}

impl<M: Deref<Target = ProgressCounters>> BamFileReader<M> {
    /// Opens a BAM file and reads its header.
    ///
    /// # Errors
    /// The file cannot be read, is not BAM, or ends inside a block; its header is damaged.
    pub(super) fn open(path: &Path, progress: M, access: FileReadOptions) -> Result<Self, Error> {
        check_eof_marker_or_last_block(path, &EOF_BLOCK, |file| bgzf::ends_with_whole_block(&file))?;
        let inflate = Decompressor::open(path, progress, &FileReadOptions { required_end: &EOF_BLOCK, ..access })?;
        let mut bam = BamFileReader {
            path: path.into(),
            decompressor: inflate,
            carry_over: Vec::new(),
            records: 0,
            header: AlignedHeader::default(),
        };
        if bam.header_bytes(BAM_MAGIC.len())? != BAM_MAGIC {
            return Err(Error::error_in_file(
                path,
                FileFault::Format { found: "another file", wanted: "BAM", remedy: "give BAM" },
            ));
        }
        let mut left = bam.header_number()?;
        let mut text = Vec::new();
        while left > 0 {
            let some = left.min(INFLATE_BYTES);
            text.extend_from_slice(&bam.header_bytes(some)?);
            left -= some;
        }
        bam.header.sample_names = header::parse_sample_names(&text);
        bam.header.platforms = header::parse_platforms(&text);
        let mut md5_sums = header::parse_md5_sums(&text);
        for _ in 0..bam.header_number()? {
            let sequence = bam.header_sequence()?;
            let md5 = md5_sums.remove(&sequence.name);
            bam.header.sequences.push(HeaderSequence { md5, ..sequence });
        }
        Ok(bam)
    }

    /// Reads the next `n` bytes of the header.
    fn header_bytes(&mut self, n: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; n];
        let filled = self.decompressor.fill_buffer(&mut bytes).map_err(|damage| self.decompression_error(damage))?;
        if filled < n {
            return Err(Error::error_in_file(&self.path, FileFault::Header("the file ends inside the header")));
        }
        Ok(bytes)
    }

    fn header_number(&mut self) -> Result<usize, Error> {
        let bytes = self.header_bytes(4)?;
        let number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        if number > MAX_HEADER_NUMBER {
            return Err(Error::error_in_file(&self.path, FileFault::Header("a length is too large")));
        }
        Ok(number)
    }

    /// Reads the next reference sequence of the header.
    fn header_sequence(&mut self) -> Result<HeaderSequence, Error> {
        let mut left = self.header_number()?;
        let mut name = Vec::new();
        while left > 0 {
            let some = left.min(INFLATE_BYTES);
            name.extend_from_slice(&self.header_bytes(some)?);
            left -= some;
        }
        let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
        Ok(HeaderSequence { name, length: self.header_number()? as u64, md5: None })
    }

    fn decompression_error(&self, damage: DecompressError) -> Error {
        let fault = match damage {
            DecompressError::Io(source) => return Error::from_reader_io_error(&self.path, source),
            DecompressError::ContentChanged(at) => {
                return Error::error_in_file(&self.path, FileFault::ContentChanged(at));
            }
            DecompressError::Truncated(format) => RecordFault::CompressedTruncated(format),
            DecompressError::Corrupt(format, what) => RecordFault::CompressedCorrupt(format, what),
        };
        Error::error_in_record(&self.path, self.records + 1, fault)
    }

    /// Moves the next whole records into `buffer`; false if the file has no more records.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or ends inside a record.
    pub(super) fn read_next_records(&mut self, buffer: &mut RecordBuffer) -> Result<bool, Error> {
        let room = |bytes: &mut Vec<u8>, n: usize| {
            if bytes.len() < n {
                bytes.resize(n, 0);
            }
        };
        room(&mut buffer.bytes, self.carry_over.len().max(CHUNK_BYTES + INFLATE_BYTES));
        buffer.bytes[..self.carry_over.len()].copy_from_slice(&self.carry_over);
        buffer.used_bytes = self.carry_over.len();
        buffer.num_records_before = self.records;
        self.carry_over.clear();
        // End of the last whole record.
        let (mut whole, mut more) = (0, true);
        loop {
            while let Some(length) = buffer.bytes[whole..buffer.used_bytes].first_chunk() {
                let length = u32::from_le_bytes(*length) as usize;
                if !(BAM_FIXED_FIELDS_BYTES..=MAX_RECORD_BYTES).contains(&length) {
                    let fault = RecordFault::RecordCorrupt("its length is invalid");
                    return Err(Error::error_in_record(&self.path, self.records + 1, fault));
                }
                if length + 4 > buffer.used_bytes - whole {
                    break;
                }
                whole += length + 4;
                self.records += 1;
            }
            if !more || (whole > 0 && buffer.used_bytes >= CHUNK_BYTES) {
                break;
            }
            let to = buffer.used_bytes + INFLATE_BYTES;
            room(&mut buffer.bytes, to);
            let filled = self.decompressor.fill_buffer(&mut buffer.bytes[buffer.used_bytes..to]);
            let n = filled.map_err(|damage| self.decompression_error(damage))?;
            buffer.used_bytes += n;
            more = n > 0;
        }
        if !more && whole < buffer.used_bytes {
            return Err(Error::error_in_record(&self.path, self.records + 1, RecordFault::Truncated));
        }
        self.carry_over.extend_from_slice(&buffer.bytes[whole..buffer.used_bytes]);
        buffer.used_bytes = whole;
        Ok(whole > 0)
    }
}
