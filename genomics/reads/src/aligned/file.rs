//! BAM, CRAM and BINSEQ files, and the options for reading them.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use flate2::{Decompress, FlushDecompress, Status};
use serde::{Deserialize, Serialize};

use crate::bgzf;
use crate::error::Error;
use crate::pipe::{is_regular_file, peek_first_bytes};

use super::cram_reference::CramReference;
use super::cram_version::CRAM_MAGIC;
use super::header::AlignedHeader;
use super::{bam, cbq, vbq};
use crate::record_counts::{RecordCounts, SharedOnce, SharedRecordCounts};

/// Maximum number of bytes at the start of a file that are read to recognise the format.
const MAX_HEAD_BYTES: u64 = 4096;

/// Format of a BAM, CRAM or BINSEQ file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AlignedFormat {
    Bam,
    Cbq,
    Cram,
    /// The formats VBQ and BQ.
    Vbq,
}

impl AlignedFormat {
    /// Recognises the format by the first bytes of a file, or of a pipe as soon as enough bytes have arrived; `None`
    /// for other formats. CBQ, VBQ and BQ are not supported in pipes.
    pub(super) fn detect_format(path: &Path) -> io::Result<Option<AlignedFormat>> {
        if !is_regular_file(path)? {
            let head = peek_first_bytes(path, |head| AlignedFormat::from_head(head).is_some())?;
            let format = AlignedFormat::from_head(&head).flatten();
            return Ok(format.filter(|format| matches!(format, AlignedFormat::Bam | AlignedFormat::Cram)));
        }
        let mut head = Vec::new();
        File::open(path)?.take(MAX_HEAD_BYTES).read_to_end(&mut head)?;
        Ok(AlignedFormat::from_head(&head).flatten())
    }

    /// Recognises the format by the first bytes: `Some(None)` for another format, `None` if more bytes are needed.
    fn from_head(head: &[u8]) -> Option<Option<AlignedFormat>> {
        const MAGICS: [(&[u8], AlignedFormat); 4] = [
            (CRAM_MAGIC, AlignedFormat::Cram),
            (cbq::CBQ_MAGIC, AlignedFormat::Cbq),
            (vbq::VBQ_MAGIC, AlignedFormat::Vbq),
            (vbq::BQ_MAGIC, AlignedFormat::Vbq),
        ];
        if let Some((_, format)) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Some(Some(*format));
        }
        let may_become = |magic: &[u8]| magic.starts_with(head);
        if MAGICS.iter().any(|(magic, _)| may_become(magic)) || (head.len() < bgzf::HEADER_BYTES && may_be_gzip(head)) {
            return None;
        }
        if bgzf::parse_block_size(head).is_none() {
            return Some(None);
        }
        // Damage is reported when the file is read.
        let (mut content, mut inflater) = ([0; bam::BAM_MAGIC.len()], Decompress::new(false));
        let inflated = inflater.decompress(&head[bgzf::HEADER_BYTES..], &mut content, FlushDecompress::None);
        match (inflated, inflater.total_out() as usize) {
            (Ok(_), n) if n == content.len() => Some((content == bam::BAM_MAGIC).then_some(AlignedFormat::Bam)),
            (Ok(Status::Ok | Status::BufError), _) => None,
            _ => Some(None),
        }
    }
}

/// Whether a file that begins with `head` may be gzip.
fn may_be_gzip(head: &[u8]) -> bool {
    [0x1f, 0x8b].iter().zip(head).all(|(a, b)| a == b)
}

/// A BAM, CRAM, CBQ, VBQ or BQ file, whose reads may be unaligned, and the options for reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlignedInput {
    /// Path of the file.
    pub path: PathBuf,
    /// Options for reading the file.
    pub options: AlignedOptions,
    #[serde(skip)]
    counts: SharedRecordCounts,
    /// Header of a pipe, which is set when the pipe is opened for reading.
    #[serde(skip)]
    pub(super) pipe_header: SharedOnce<AlignedHeader>,
}

/// Options for reading BAM, CRAM and BINSEQ files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlignedOptions {
    /// Whether mates are paired. If not, each read is delivered as a read without a mate.
    pub pair_mates: bool,
    /// Folder for waiting mates that do not fit into memory, or the nearest parent that exists; `None` for the folder
    /// for temporary files (`TMPDIR`).
    pub temp_folder: Option<PathBuf>,
    /// The reference that CRAM files refer to.
    pub reference: CramReference,
    /// Whether a file with read groups of several samples (`@RG`, `SM`) is refused. The steps of a distributed call do
    /// not check it again.
    #[serde(skip)]
    pub requires_one_sample: bool,
    /// Whether [`crate::for_each_batch`] accepts reads without qualities, and gives all their bases the highest quality.
    /// If not, they are an error. Streams always accept them.
    #[serde(skip)]
    pub accepts_missing_qualities: bool,
    /// Maximum size in bytes of the decompressed data of one CRAM slice (see
    /// [`AlignedOptions::max_cram_slice_bytes_for_memory`]).
    #[serde(skip, default = "default_max_slice_bytes")]
    pub max_slice_bytes: u64,
}

/// Range of the maximum size of a CRAM slice in bytes, whatever the memory. Chosen: the lower end is above the largest
/// slice that samtools writes with its profile `archive` for reads of 250 bases, the upper end ten times that slice.
const SLICE_LIMIT_BYTES: RangeInclusive<u64> = 64 << 20..=512 << 20;
/// Maximum share of the memory budget, as a divisor, for the decompressed slices of all threads. Chosen: the decoder
/// takes about three times the size of a slice.
const SLICE_MEMORY_DIVISOR: u64 = 4;

fn default_max_slice_bytes() -> u64 {
    *SLICE_LIMIT_BYTES.end()
}

impl AlignedOptions {
    /// The maximum size in bytes of a CRAM slice for a process with this memory budget in bytes and so many threads,
    /// each of which decodes a slice.
    pub fn max_cram_slice_bytes_for_memory(memory_bytes: u64, threads: usize) -> u64 {
        let share = memory_bytes / (SLICE_MEMORY_DIVISOR * threads.max(1) as u64);
        share.clamp(*SLICE_LIMIT_BYTES.start(), *SLICE_LIMIT_BYTES.end())
    }
}

impl Default for AlignedOptions {
    /// Mates are paired, CRAM has no reference, a file may have reads of several samples, and all reads must have
    /// qualities.
    fn default() -> Self {
        AlignedOptions {
            pair_mates: true,
            temp_folder: None,
            reference: CramReference::default(),
            requires_one_sample: false,
            accepts_missing_qualities: false,
            max_slice_bytes: default_max_slice_bytes(),
        }
    }
}

impl AlignedInput {
    /// A file to be read with these options. Does not access the file.
    pub fn new(path: impl Into<PathBuf>, options: AlignedOptions) -> AlignedInput {
        let (counts, pipe_header) = (SharedRecordCounts::default(), SharedOnce::default());
        AlignedInput { path: path.into(), options, counts, pipe_header }
    }

    /// Whether the path is a BAM, CRAM or BINSEQ file (aligned or not), or a pipe with BAM or CRAM, recognised by the
    /// first bytes. Waits for the first bytes of a pipe. False for a missing file, which the check of the lanes
    /// reports.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn is_bam_cram_or_binseq(path: &Path) -> Result<bool, Error> {
        match AlignedFormat::detect_format(path) {
            Ok(format) => Ok(format.is_some()),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
            Err(source) => Err(Error::Read { path: path.into(), source }),
        }
    }

    /// Whether the format of the file has tags: true for BAM and CRAM, false for BINSEQ.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn format_has_tags(&self) -> Result<bool, Error> {
        let format = AlignedFormat::detect_format(&self.path);
        let format = format.map_err(|source| Error::Read { path: self.path.clone(), source })?;
        Ok(matches!(format, Some(AlignedFormat::Bam | AlignedFormat::Cram)))
    }

    /// Record counts of the file; `None` until the file has been read to its end.
    pub fn record_counts(&self) -> Option<&RecordCounts> {
        self.counts.get()
    }

    /// Sets the record counts. Reading the file again does not change them.
    pub(super) fn set_record_counts(&self, counts: RecordCounts) {
        self.counts.set(counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_get_a_share_of_the_memory_within_limits() {
        assert_eq!(AlignedOptions::max_cram_slice_bytes_for_memory(128 << 20, 1), 64 << 20);
        assert_eq!(AlignedOptions::max_cram_slice_bytes_for_memory(8 << 30, 16), 128 << 20);
        assert_eq!(AlignedOptions::max_cram_slice_bytes_for_memory(64 << 30, 2), 512 << 20);
    }
}
