//! Lanes: which files belong together, and to which sample.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::aligned::{Aligned, AlignedOptions, Tally};
use crate::error::Error;
use crate::pipe::{is_regular, is_stdin};
use crate::span::Span;

/// Sample number of the normal (germline) reads.
pub const NORMAL: u8 = 0;
/// Sample number of the tumour reads; where there are several tumours, of the first: the others follow it.
pub const TUMOUR: u8 = 1;

/// How many samples lanes are of, numbers that none of them has included: two at least.
pub fn samples(lanes: &[Lane]) -> usize {
    lanes.iter().map(|lane| usize::from(lane.sample) + 1).fold(2, usize::max)
}

/// Reads of one sample that lie together in one file or two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// [`NORMAL`] or [`TUMOUR`], or the number of another tumour.
    pub sample: u8,
    /// Where the reads are.
    pub files: LaneFiles,
    /// Which of the reads in the files these are; absent for all.
    pub slice: Option<Slice>,
}

/// The files of a lane: FASTQ, plain or gzip, BAM or CRAM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaneFiles {
    /// Read 1 and read 2 in two files, in the same order.
    Pair(PathBuf, PathBuf),
    /// Read 1 and read 2 in turn in one file.
    Interleaved(PathBuf),
    /// Reads whose mates do not matter: each comes as a pair whose second read is empty.
    Single(PathBuf),
    /// Reads that were aligned, with their mates wherever these are in the file. Those without mates come as pairs of which one read is empty.
    Aligned(Aligned),
}

/// A stretch of each file of a lane, which together hold some of its reads or pairs. See [`shards`](crate::shards).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Of the only or first file.
    pub one: Span,
    /// Of the file of read 2, for [`LaneFiles::Pair`].
    pub two: Option<Span>,
}

/// How mates are laid out in the files of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Two files a lane, one after the other in the list.
    Pairs,
    /// One file a lane.
    Interleaved,
    /// One file a lane, of reads without mates.
    Single,
}

impl Lane {
    /// All reads of these files.
    pub fn whole(sample: u8, files: LaneFiles) -> Lane {
        Lane { sample, files, slice: None }
    }

    /// The lanes of one sample from the list of files a user gave: files of aligned reads are a lane each, by what is in them, and the others as `layout` says.
    ///
    /// # Errors
    /// No file, or an odd number of files for [`Layout::Pairs`], not counting those of aligned reads.
    pub fn from_files(
        sample: u8,
        files: &[PathBuf],
        layout: Layout,
        options: &AlignedOptions,
    ) -> Result<Vec<Lane>, Error> {
        if files.is_empty() {
            return Err(Error::NoFiles { sample: if sample == NORMAL { "normal" } else { "tumour" } });
        }
        let mut lanes = Vec::new();
        let mut files = files.iter();
        while let Some(file) = files.next() {
            let of = if Aligned::is(file) {
                LaneFiles::Aligned(Aligned::new(file, options.clone()))
            } else {
                match layout {
                    Layout::Interleaved => LaneFiles::Interleaved(file.clone()),
                    Layout::Single => LaneFiles::Single(file.clone()),
                    Layout::Pairs => match files.next() {
                        Some(mates) if !Aligned::is(mates) => LaneFiles::Pair(file.clone(), mates.clone()),
                        _ => return Err(Error::Odd { path: file.clone() }),
                    },
                }
            };
            lanes.push(Lane::whole(sample, of));
        }
        Ok(lanes)
    }

    /// The files of the lane, one or two.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts().map(|(path, _)| path)
    }

    /// The files of the lane, one or two, each with the stretch of it that is the lane's; absent where that is the whole file.
    pub fn parts(&self) -> impl Iterator<Item = (&Path, Option<Span>)> {
        let (one, two) = match &self.files {
            LaneFiles::Pair(one, two) => (one, Some(two)),
            LaneFiles::Interleaved(one) | LaneFiles::Single(one) => (one, None),
            LaneFiles::Aligned(aligned) => (&aligned.path, None),
        };
        std::iter::once(one).chain(two).map(PathBuf::as_path).zip(self.spans())
    }

    /// The stretches of its files; absent for whole files.
    pub(crate) fn spans(&self) -> [Option<Span>; 2] {
        [self.slice.map(|slice| slice.one), self.slice.and_then(|slice| slice.two)]
    }

    /// Bytes that the lane takes on the disk, compressed if its files are: of a slice its share of them.
    ///
    /// # Errors
    /// A file that is missing, or another system error.
    pub fn bytes(&self) -> Result<u64, Error> {
        self.parts().map(|(path, span)| bytes_of(path, span)).sum()
    }

    /// What there was in its file of aligned reads, once that was read to its end.
    pub fn tally(&self) -> Option<&Tally> {
        match &self.files {
            LaneFiles::Aligned(aligned) => aligned.tally(),
            _ => None,
        }
    }

    /// Whether it is read from something that cannot be read again; what cannot be looked at is none.
    pub fn has_pipe(&self) -> bool {
        self.paths().any(|path| is_regular(path).is_ok_and(|regular| !regular))
    }

    /// An error met in a slice, with where its records are counted from.
    pub(crate) fn located(&self, mut error: Error) -> Error {
        let (path, from) = match &mut error {
            Error::Record { path, from, .. } | Error::MatesMissing { short: path, from, .. } => (path, from),
            _ => return error,
        };
        *from = self
            .parts()
            .find(|(own, _)| own == path)
            .and_then(|(_, span)| span)
            .map(|span| Box::new(span.from));
        error
    }
}

fn bytes_of(path: &Path, span: Option<Span>) -> Result<u64, Error> {
    if let Some(span) = span {
        return Ok(span.bytes());
    }
    if is_stdin(path) {
        return Ok(0);
    }
    let meta = path.metadata().map_err(|source| Error::Read { path: path.into(), source })?;
    Ok(meta.len())
}
