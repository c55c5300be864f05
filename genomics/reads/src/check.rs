//! Whether files are fit to be read, as far as a short look tells.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::Error;
use crate::fastq::{Stream, Terms};
use crate::lane::Lane;
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
    let meter = Meter::default();
    for lane in lanes {
        for (path, span) in lane.parts() {
            Stream::open(path, &meter, &Terms::pairs(span)).map_err(|error| lane.located(error))?;
        }
    }
    refuse_copies(lanes.iter().flat_map(Lane::parts))?;
    lanes.iter().try_for_each(check_first_batch)
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
