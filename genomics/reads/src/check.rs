//! Whether files are fit to be read, as far as a short look tells.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::error::{Error, FileFault};
use crate::fastq::{Stream, Terms};
use crate::lane::{Lane, LaneFiles};
use crate::pipe::is_stdin;
use crate::pipeline::check_first_batch;
use crate::span::Span;
use genuma_work::Meter;

/// How much of two files of one size is compared before they count as copies.
const COMPARED: u64 = 1 << 20;

/// Looks at every file of all lanes of all samples before any work starts.
///
/// # Errors
/// A file that is missing, unreadable, not regular, empty or not FASTQ; a file given twice, be it under
/// another name, as a link, or as a copy (same size, same first MiB), unless these are slices of one file that share no reads; anything wrong with the first
/// records of a lane, such as mates that do not match.
pub fn check_lanes(lanes: &[Lane]) -> Result<(), Error> {
    check(lanes, false)
}

/// [`check_lanes`] for work that reads them once: pipes, `-` among them, are welcome, and what is in them is seen when they are read.
///
/// # Errors
/// The same of regular files; a pipe given twice; anything but a file or a pipe.
pub fn check_lanes_once(lanes: &[Lane]) -> Result<(), Error> {
    check(lanes, true)
}

fn check(lanes: &[Lane], pipes: bool) -> Result<(), Error> {
    let meter = Meter::default();
    let (piped, regular): (Vec<&Lane>, Vec<&Lane>) = lanes.iter().partition(|lane| pipes && lane.has_pipe());
    for lane in &regular {
        for (path, span) in lane.parts() {
            if matches!(lane.files, LaneFiles::Aligned(_)) {
                if !may_be_read_again(path)? {
                    return Err(Error::file(path, FileFault::NotRegular));
                }
                continue;
            }
            Stream::open(path, &meter, &Terms::pairs(span)).map_err(|error| lane.located(error))?;
        }
    }
    let mut read_once: Vec<&Path> = Vec::new();
    let mut files: Vec<(&Path, Option<Span>)> = regular.iter().flat_map(|lane| lane.parts()).collect();
    for (path, span) in piped.iter().flat_map(|lane| lane.parts()) {
        if may_be_read_again(path)? {
            files.push((path, span));
        } else if read_once.contains(&path) {
            return Err(Error::Twice { first: path.into(), second: path.into() });
        } else {
            read_once.push(path);
        }
    }
    refuse_copies(files)?;
    regular.into_iter().try_for_each(check_first_batch)
}

/// Whether that is a file and not a pipe.
fn may_be_read_again(path: &Path) -> Result<bool, Error> {
    if is_stdin(path) {
        return Ok(false);
    }
    let meta = path.metadata().map_err(|source| Error::Read { path: path.into(), source })?;
    match meta.file_type() {
        kind if kind.is_file() => Ok(true),
        kind if kind.is_fifo() || kind.is_char_device() => Ok(false),
        _ => Err(Error::file(path, FileFault::NotRegular)),
    }
}

/// Refuses regular files, or stretches of them, that hold the same reads, as far as a look at their size and their first MiB tells.
pub(crate) fn refuse_copies<'a>(
    parts: impl IntoIterator<Item = (&'a Path, Option<Span>)>,
) -> Result<(), Error> {
    let mut seen: Vec<Seen<'_>> = Vec::new();
    for (path, span) in parts {
        let file = Seen::look(path, span)?;
        for other in &seen {
            if other.same_reads(&file)? {
                return Err(Error::Twice { first: other.path.into(), second: path.into() });
            }
        }
        seen.push(file);
    }
    Ok(())
}

/// What tells a file from others.
struct Seen<'a> {
    path: &'a Path,
    span: Option<Span>,
    device: u64,
    inode: u64,
    size: u64,
}

impl<'a> Seen<'a> {
    fn look(path: &'a Path, span: Option<Span>) -> Result<Self, Error> {
        let meta = path.metadata().map_err(|source| Error::Read { path: path.into(), source })?;
        Ok(Seen { path, span, device: meta.dev(), inode: meta.ino(), size: meta.len() })
    }

    fn same_reads(&self, other: &Seen<'_>) -> Result<bool, Error> {
        if (self.device, self.inode) == (other.device, other.inode) {
            // All of a file overlaps with any stretch of it.
            let spans = self.span.as_ref().zip(other.span.as_ref());
            return Ok(spans.is_none_or(|(one, two)| one.overlaps(two)));
        }
        Ok(self.size == other.size && self.head()? == other.head()?)
    }

    fn head(&self) -> Result<Vec<u8>, Error> {
        let mut head = Vec::new();
        File::open(self.path)
            .and_then(|file| file.take(COMPARED).read_to_end(&mut head))
            .map_err(|source| Error::Read { path: self.path.into(), source })?;
        Ok(head)
    }
}
