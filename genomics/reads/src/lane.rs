//! Lanes: which input files belong together, and to which sample they belong.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::aligned::{AlignedInput, AlignedOptions};
use crate::error::Error;
use crate::fastq::check_no_other_format;
use crate::file_span::FileSpan;
use crate::inline_umi::InlineUmiStructures;
use crate::pipe::{is_regular_file, is_stdin};
use crate::read_structure::ReadStructures;
use crate::record_counts::RecordCounts;

/// Sample number of the normal (germline) reads.
pub const NORMAL_SAMPLE: u8 = 0;
/// Sample number of the tumour reads. Further tumours have the numbers 2, 3, and so on.
pub const TUMOUR_SAMPLE: u8 = 1;

/// Number of samples of the lanes: the highest sample number + 1, at least two.
pub fn num_samples(lanes: &[Lane]) -> usize {
    lanes.iter().map(|lane| usize::from(lane.sample) + 1).fold(2, usize::max)
}

/// A lane: reads of one sample in one file or two mate files, or a slice of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Sample number: [`NORMAL_SAMPLE`], [`TUMOUR_SAMPLE`], or the number of a further tumour.
    pub sample: u8,
    /// One file, or the two files of read 1 and read 2.
    pub files: LaneFiles,
    /// The slice of the files that belongs to the lane; `None` for whole files.
    pub slice: Option<LaneSlice>,
    /// UMIs in the bases of the reads; `None` if there are none.
    #[serde(default)]
    pub umis: Option<InlineUmiStructures>,
}

/// The files of a lane: FASTQ (plain or gzip), BAM, CRAM or BINSEQ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaneFiles {
    /// Read 1 and read 2 in two files, in the same order.
    Pair(PathBuf, PathBuf),
    /// Read 1 and read 2 alternate in one file.
    Interleaved(PathBuf),
    /// Reads without mates. Each is delivered as a pair whose second read is empty.
    Single(PathBuf),
    /// BAM, CRAM or BINSEQ, whose reads may be unaligned. Mates are paired wherever they are in the file, unless
    /// [`AlignedOptions::pair_mates`] is false. A read without a mate is delivered as a pair in which the other read is
    /// empty.
    Aligned(AlignedInput),
    /// A reference genome (FASTA). Its sequences are cut into overlapping artificial reads without mates, which
    /// replace the reads of a normal sample that was not sequenced.
    Reference(PathBuf),
}

/// A slice of a lane: a span of each file of the lane. Together the spans contain some of the reads or pairs of the
/// lane. See [`split_lanes_into_shards`](crate::split_lanes_into_shards).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneSlice {
    /// Span of the only or first file.
    pub first_file: FileSpan,
    /// Span of the file of read 2, for [`LaneFiles::Pair`]; `None` for a lane of one file.
    pub second_file: Option<FileSpan>,
}

/// Whether the reads in a list of FASTQ files have mates, and in which files the mates are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MateLayout {
    /// Two consecutive files of the list are a lane: read 1 and read 2.
    Pairs,
    /// Each file is a lane with interleaved mates.
    Interleaved,
    /// Each file is a lane of reads without mates.
    Single,
}

impl Lane {
    /// A lane that consists of whole files.
    pub fn with_whole_files(sample: u8, files: LaneFiles) -> Lane {
        Lane { sample, files, slice: None, umis: None }
    }

    /// Groups the files of one sample into lanes. Each BAM, CRAM or BINSEQ file (recognised by its contents) is a
    /// lane; `layout` says how the other files are grouped.
    ///
    /// # Errors
    /// The list is empty; a file exists and cannot be read; or, for [`MateLayout::Pairs`], a file of read 1 does not
    /// exist, is not FASTQ, or is not directly followed by a mate file (one that is not BAM, CRAM or BINSEQ).
    pub fn group_files_into_lanes(
        sample: u8,
        files: &[PathBuf],
        layout: MateLayout,
        options: &AlignedOptions,
    ) -> Result<Vec<Lane>, Error> {
        if files.is_empty() {
            return Err(Error::NoFiles { sample: if sample == NORMAL_SAMPLE { "normal" } else { "tumour" } });
        }
        let mut lanes = Vec::new();
        let mut files = files.iter();
        while let Some(file) = files.next() {
            let lane_files = if AlignedInput::is_bam_cram_or_binseq(file)? {
                LaneFiles::Aligned(AlignedInput::new(file, options.clone()))
            } else {
                match layout {
                    MateLayout::Interleaved => LaneFiles::Interleaved(file.clone()),
                    MateLayout::Single => LaneFiles::Single(file.clone()),
                    MateLayout::Pairs => match files.next() {
                        Some(mates) if !AlignedInput::is_bam_cram_or_binseq(mates)? => {
                            LaneFiles::Pair(file.clone(), mates.clone())
                        }
                        _ => {
                            check_no_other_format(file, false)?;
                            return Err(Error::MissingMateFile { path: file.clone() });
                        }
                    },
                }
            };
            lanes.push(Lane::with_whole_files(sample, lane_files));
        }
        Ok(lanes)
    }

    /// Paths of the one or two files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths_with_spans().map(|(path, _)| path)
    }

    /// Paths of the one or two files, each with the span that belongs to the lane; `None` for a whole file.
    pub(crate) fn paths_with_spans(&self) -> impl Iterator<Item = (&Path, Option<FileSpan>)> {
        let (one, two) = match &self.files {
            LaneFiles::Pair(one, two) => (one, Some(two)),
            LaneFiles::Interleaved(one) | LaneFiles::Single(one) | LaneFiles::Reference(one) => (one, None),
            LaneFiles::Aligned(aligned) => (&aligned.path, None),
        };
        std::iter::once(one).chain(two).map(PathBuf::as_path).zip(self.spans())
    }

    /// The span of each file; `None` for whole files.
    pub(crate) fn spans(&self) -> [Option<FileSpan>; 2] {
        [self.slice.map(|slice| slice.first_file), self.slice.and_then(|slice| slice.second_file)]
    }

    /// Size of the lane on disk in bytes, as compressed; for a slice, the size of its spans. The standard input and
    /// pipes count as 0.
    ///
    /// # Errors
    /// A file is missing, or another system call failed.
    pub fn disk_bytes(&self) -> Result<u64, Error> {
        self.paths_with_spans().map(|(path, span)| file_bytes(path, span)).sum()
    }

    /// Returns the lane with the read structures of its reads, whose bases contain UMIs.
    #[must_use]
    pub fn with_read_structures(self, structures: ReadStructures) -> Lane {
        Lane { umis: Some(InlineUmiStructures::from_read_structures(structures)), ..self }
    }

    /// Record counts of a BAM, CRAM or BINSEQ file, or of FASTQ files whose reads contain UMIs. `None` until the lane
    /// has been read to its end, and for other lanes.
    pub fn record_counts(&self) -> Option<&RecordCounts> {
        match &self.files {
            LaneFiles::Aligned(aligned) => aligned.record_counts(),
            _ => self.umis.as_ref()?.counts.get(),
        }
    }

    /// Whether the files of the lane are FASTQ.
    pub fn is_fastq(&self) -> bool {
        !matches!(self.files, LaneFiles::Aligned(_) | LaneFiles::Reference(_))
    }

    /// Whether the file of the lane is BAM, CRAM or BINSEQ.
    pub fn is_bam_cram_or_binseq(&self) -> bool {
        matches!(self.files, LaneFiles::Aligned(_))
    }

    /// Whether a file of the lane is a pipe or device, which can be read only once. Files that cannot be examined
    /// count as regular files.
    pub fn has_pipe(&self) -> bool {
        self.paths().any(|path| is_regular_file(path).is_ok_and(|regular| !regular))
    }

    /// Adds the start of this lane's slice to `error`, because the record numbers in it count from there.
    pub(crate) fn add_slice_start_to_error(&self, mut error: Error) -> Error {
        let (path, from) = match &mut error {
            Error::Record { path, slice_start: from, .. }
            | Error::MatesMissing { shorter_path: path, slice_start: from, .. } => (path, from),
            _ => return error,
        };
        *from = self
            .paths_with_spans()
            .find(|(own, _)| own == path)
            .and_then(|(_, span)| span)
            .map(|span| Box::new(span.start));
        error
    }
}

fn file_bytes(path: &Path, span: Option<FileSpan>) -> Result<u64, Error> {
    if let Some(span) = span {
        return Ok(span.len_bytes());
    }
    if is_stdin(path) {
        return Ok(0);
    }
    let meta = path.metadata().map_err(|source| Error::Read { path: path.into(), source })?;
    Ok(meta.len())
}
