//! Reads of BAM files: as they were sequenced, mates together, whatever the order of the records.
//!
//! ```text
//! file ─ cut: inflated, whole records ─ pieces ─ primary records ─ paired, turned ─ pairs
//!        (one thread at a time)                       │  ▲
//!                                        mates that wait for theirs, on the disk past a bound
//! ```
//!
//! A record is a read of a template (SAM specification, sections 1.4 and 4.2): secondary and supplementary ones say no more of it than the primary one does, and are
//! skipped and counted. What an aligner has turned is turned back, so that reads are those that a FASTQ file had.

mod bam;

mod mates;

mod pairing;

mod piece;

mod source;

mod tally;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

pub(crate) use bam::estimate;
pub(crate) use pairing::Template;
pub(crate) use source::{Crew, Hands, Reader, Source};
pub use tally::Tally;

use crate::bgzf;
use crate::error::Error;
use crate::source::is_regular;
use genuma_work::Meter;

/// A BAM file, and how its reads are taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aligned {
    /// The file.
    pub path: PathBuf,
    /// How it is read.
    pub options: AlignedOptions,
    #[serde(skip)]
    told: Told,
}

/// What reading BAM takes beside the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlignedOptions {
    /// Whether mates are brought together. If not, each read comes by itself, as from a file of single reads.
    pub mates: bool,
    /// Folder for mates that wait for theirs and have no room in memory; without it that for temporary files (`TMPDIR`).
    pub work: Option<PathBuf>,
}

impl Default for AlignedOptions {
    /// Mates together.
    fn default() -> Self {
        AlignedOptions { mates: true, work: None }
    }
}

/// What was read and skipped, known after the first time that the file was read to its end. All copies of a lane know it.
#[derive(Debug, Clone, Default)]
struct Told(Arc<OnceLock<Tally>>);

impl PartialEq for Told {
    /// What is known of a file makes it no other one.
    fn eq(&self, _: &Told) -> bool {
        true
    }
}

impl Eq for Told {}

/// Looks at the end and the header of a file.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    bam::Bam::open(path, &Meter::default(), 0).map(drop)
}

impl Aligned {
    /// A file.
    pub fn new(path: impl Into<PathBuf>, options: AlignedOptions) -> Aligned {
        Aligned { path: path.into(), options, told: Told::default() }
    }

    /// Whether a file is one of these, by its first bytes. Of what is no regular file, or cannot be read, nobody knows: that is for whoever reads it to tell.
    pub fn is(path: &Path) -> bool {
        is_regular(path).unwrap_or(false) && Aligned::starts(path).unwrap_or(false)
    }

    fn starts(path: &Path) -> std::io::Result<bool> {
        let mut head = Vec::new();
        let file = File::open(path)?;
        Read::take(&file, bgzf::HEADER as u64).read_to_end(&mut head)?;
        let mut content = Vec::new();
        // What is damaged is told by whoever reads it.
        let is_bgzf = bgzf::block_size(&head).is_some();
        Ok(is_bgzf && bgzf::read_block(&file, 0, &mut content)?.is_some() && content.starts_with(bam::MAGIC))
    }

    /// What there was in it, once it was read to its end.
    pub fn tally(&self) -> Option<&Tally> {
        self.told.0.get()
    }

    /// Notes what there was in it. Each time that it is read says the same.
    fn tell(&self, tally: Tally) {
        let _ = self.told.0.set(tally);
    }
}
