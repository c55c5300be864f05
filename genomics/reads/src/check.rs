//! Quick checks of input files before a run starts.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::error::{Error, FileFault};
use crate::fastq::{FastqOptions, FastqReader};
use crate::file_span::FileSpan;
use crate::lane::Lane;
use crate::pipe::is_stdin;
use crate::pipeline::check_first_batch;
use genuma_work::ProgressCounters;

/// Number of bytes at the start of two files of the same size that are compared to recognise copies.
const COMPARED_BYTES: u64 = 1 << 20;

/// Checks all files of all lanes before any work starts. The files must be regular, because they are read more than
/// once.
///
/// # Errors
/// - A file is missing, unreadable or not regular.
/// - A file of a FASTQ lane is empty or not FASTQ.
/// - A file is given twice, also under another name, as a link, or as a copy (same size, same first MiB), unless the
///   lanes are disjoint slices of one file.
/// - The first records of a lane are invalid, for example because mates do not match.
pub fn check_lanes(lanes: &[Lane]) -> Result<(), Error> {
    check_all(lanes, false)
}

/// Like [`check_lanes`], for a run that reads its input once: pipes and `-` (standard input) are accepted. The contents
/// of a lane with a pipe are checked when they are read.
///
/// # Errors
/// The errors of [`check_lanes`] for lanes without a pipe; an input is given twice, or is neither a file nor a pipe.
pub fn check_lanes_for_one_pass(lanes: &[Lane]) -> Result<(), Error> {
    check_all(lanes, true)
}

fn check_all(lanes: &[Lane], allow_pipes: bool) -> Result<(), Error> {
    let progress = ProgressCounters::default();
    let (piped, regular): (Vec<&Lane>, Vec<&Lane>) = lanes.iter().partition(|lane| allow_pipes && lane.has_pipe());
    for lane in &regular {
        for (path, span) in lane.paths_with_spans() {
            if !lane.is_fastq() {
                if !is_rereadable(path)? {
                    return Err(Error::error_in_file(path, FileFault::NotRegular));
                }
                continue;
            }
            FastqReader::open(path, &progress, &FastqOptions::for_pairs(span))
                .map_err(|error| lane.add_slice_start_to_error(error))?;
        }
    }
    let mut read_once: Vec<&Path> = Vec::new();
    let mut files: Vec<(&Path, Option<FileSpan>)> = regular.iter().flat_map(|lane| lane.paths_with_spans()).collect();
    for (path, span) in piped.iter().flat_map(|lane| lane.paths_with_spans()) {
        if is_rereadable(path)? {
            files.push((path, span));
        } else if read_once.contains(&path) {
            return Err(Error::DuplicateInput { first: path.into(), second: path.into() });
        } else {
            read_once.push(path);
        }
    }
    check_no_duplicate_inputs(files)?;
    regular.into_iter().try_for_each(check_first_batch)
}

/// Whether the path is a regular file, which can be read again, and not a pipe.
fn is_rereadable(path: &Path) -> Result<bool, Error> {
    if is_stdin(path) {
        return Ok(false);
    }
    let meta = path.metadata().map_err(|source| Error::Read { path: path.into(), source })?;
    match meta.file_type() {
        kind if kind.is_file() => Ok(true),
        kind if kind.is_fifo() || kind.is_char_device() => Ok(false),
        kind if kind.is_dir() => Err(Error::error_in_file(path, FileFault::Folder)),
        _ => Err(Error::error_in_file(path, FileFault::NotRegular)),
    }
}

/// Checks that no reads are given twice: no two regular files may be the same file or copies, and no two spans of a
/// file may overlap. Copies are recognised by equal sizes and equal first MiB.
pub(crate) fn check_no_duplicate_inputs<'a>(
    parts: impl IntoIterator<Item = (&'a Path, Option<FileSpan>)>,
) -> Result<(), Error> {
    let mut seen: Vec<FileIdentity<'_>> = Vec::new();
    for (path, span) in parts {
        let file = FileIdentity::from_path(path, span)?;
        for other in &seen {
            if other.shares_reads(&file)? {
                return Err(Error::DuplicateInput { first: other.path.into(), second: path.into() });
            }
        }
        seen.push(file);
    }
    Ok(())
}

/// Identifies a file, and the span of the file that is read.
struct FileIdentity<'a> {
    path: &'a Path,
    span: Option<FileSpan>,
    device: u64,
    inode: u64,
    size: u64,
}

impl<'a> FileIdentity<'a> {
    fn from_path(path: &'a Path, span: Option<FileSpan>) -> Result<Self, Error> {
        let meta = path.metadata().map_err(|source| Error::Read { path: path.into(), source })?;
        Ok(FileIdentity { path, span, device: meta.dev(), inode: meta.ino(), size: meta.len() })
    }

    fn shares_reads(&self, other: &FileIdentity<'_>) -> Result<bool, Error> {
        if (self.device, self.inode) == (other.device, other.inode) {
            // A whole file overlaps with any span of it.
            let spans = self.span.as_ref().zip(other.span.as_ref());
            return Ok(spans.is_none_or(|(one, two)| one.overlaps(two)));
        }
        Ok(self.size == other.size && self.read_head()? == other.read_head()?)
    }

    fn read_head(&self) -> Result<Vec<u8>, Error> {
        let mut head = Vec::new();
        File::open(self.path)
            .and_then(|file| file.take(COMPARED_BYTES).read_to_end(&mut head))
            .map_err(|source| Error::Read { path: self.path.into(), source })?;
        Ok(head)
    }
}
