//! Lanes: which files belong together, to which sample, and whether they are fit to be read.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::fastq::Stream;
use crate::meter::Meter;

/// Sample number of the normal (germline) reads.
pub const NORMAL: u8 = 0;
/// Sample number of the tumour reads.
pub const TUMOUR: u8 = 1;

/// How much of two files of one size is compared before they count as copies.
const COMPARED: u64 = 1 << 20;

/// Reads of one sample that lie together in one file or two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// [`NORMAL`] or [`TUMOUR`].
    pub sample: u8,
    /// Where the reads are.
    pub files: LaneFiles,
}

/// The files of a lane: FASTQ, plain or gzip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneFiles {
    /// Read 1 and read 2 in two files, in the same order.
    Pair(PathBuf, PathBuf),
    /// Read 1 and read 2 in turn in one file.
    Interleaved(PathBuf),
}

/// How mates are laid out in the files of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Two files a lane, one after the other in the list.
    Pairs,
    /// One file a lane.
    Interleaved,
}

impl Lane {
    /// The lanes of one sample from the list of files a user gave.
    ///
    /// # Errors
    /// No file, or an odd number of files for [`Layout::Pairs`].
    pub fn from_files(sample: u8, files: &[PathBuf], layout: Layout) -> Result<Vec<Lane>, Error> {
        if files.is_empty() {
            return Err(Error::NoFiles { sample: if sample == TUMOUR { "tumour" } else { "normal" } });
        }
        match layout {
            Layout::Interleaved => {
                Ok(files.iter().map(|f| Lane { sample, files: LaneFiles::Interleaved(f.clone()) }).collect())
            }
            Layout::Pairs => files
                .chunks(2)
                .map(|two| match two {
                    [one, two] => Ok(Lane { sample, files: LaneFiles::Pair(one.clone(), two.clone()) }),
                    odd => Err(Error::Odd { path: odd[0].clone() }),
                })
                .collect(),
        }
    }

    /// The files of the lane, one or two.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let (one, two) = match &self.files {
            LaneFiles::Pair(one, two) => (one, Some(two)),
            LaneFiles::Interleaved(one) => (one, None),
        };
        std::iter::once(one).chain(two).map(PathBuf::as_path)
    }
}

/// Looks at every file of all lanes of all samples before any work starts.
///
/// # Errors
/// A file that is missing, unreadable, not regular, empty or not FASTQ; a file given twice, be it under
/// another name, as a link, or as a copy (same size, same first MiB).
pub fn check(lanes: &[Lane]) -> Result<(), Error> {
    let mut seen: Vec<Seen<'_>> = Vec::new();
    let meter = Meter::default();
    for path in lanes.iter().flat_map(Lane::paths) {
        Stream::open(path, &meter)?;
        let file = Seen::look(path)?;
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
    device: u64,
    inode: u64,
    size: u64,
}

impl<'a> Seen<'a> {
    fn look(path: &'a Path) -> Result<Self, Error> {
        let meta = path.metadata().map_err(|source| Error::Read { path: path.into(), source })?;
        Ok(Seen { path, device: meta.dev(), inode: meta.ino(), size: meta.len() })
    }

    fn same_reads(&self, other: &Seen<'_>) -> Result<bool, Error> {
        if (self.device, self.inode) == (other.device, other.inode) {
            return Ok(true);
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
