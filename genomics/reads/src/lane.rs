//! Lanes: which files belong together, and to which sample.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// Sample number of the normal (germline) reads.
pub const NORMAL: u8 = 0;
/// Sample number of the tumour reads.
pub const TUMOUR: u8 = 1;

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
    /// Reads whose mates do not matter: each comes as a pair whose second read is empty.
    Single(PathBuf),
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
            LaneFiles::Interleaved(one) | LaneFiles::Single(one) => (one, None),
        };
        std::iter::once(one).chain(two).map(PathBuf::as_path)
    }
}
