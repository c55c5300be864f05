//! Files of aligned reads, and how they are taken.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::bgzf;
use crate::error::Error;
use crate::source::is_regular;

use super::genome::Genome;
use super::tally::Tally;
use super::{bam, cbq, cram, vbq};

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Bam,
    Cbq,
    Cram,
    /// And BQ.
    Vbq,
}

impl Format {
    /// By the first bytes of a file; `None` for any other.
    pub(super) fn of(path: &Path) -> io::Result<Option<Format>> {
        let mut head = Vec::new();
        let file = File::open(path)?;
        Read::take(&file, bgzf::HEADER as u64).read_to_end(&mut head)?;
        if head.starts_with(cram::MAGIC) {
            return Ok(Some(Format::Cram));
        }
        if head.starts_with(cbq::MAGIC) {
            return Ok(Some(Format::Cbq));
        }
        if head.starts_with(vbq::MAGIC) || head.starts_with(vbq::MAGIC_FIXED) {
            return Ok(Some(Format::Vbq));
        }
        let mut content = Vec::new();
        // What is damaged is told by whoever reads it.
        let is_bgzf =
            bgzf::block_size(&head).is_some() && bgzf::read_block(&file, 0, &mut content)?.is_some();
        Ok((is_bgzf && content.starts_with(bam::MAGIC)).then_some(Format::Bam))
    }
}

/// A file of BAM, CRAM, CBQ, VBQ or BQ, and how its reads are taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aligned {
    /// The file.
    pub path: PathBuf,
    /// How it is read.
    pub options: AlignedOptions,
    #[serde(skip)]
    told: Told,
}

/// What reading BAM and CRAM takes beside the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlignedOptions {
    /// Whether mates are brought together. If not, each read comes by itself, as from a file of single reads.
    pub mates: bool,
    /// Folder for mates that wait for theirs and have no room in memory; without it that for temporary files (`TMPDIR`).
    pub work: Option<PathBuf>,
    /// The reference that CRAM was written against.
    pub genome: Genome,
}

impl Default for AlignedOptions {
    /// Mates together, no reference.
    fn default() -> Self {
        AlignedOptions { mates: true, work: None, genome: Genome::default() }
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

impl Aligned {
    /// A file.
    pub fn new(path: impl Into<PathBuf>, options: AlignedOptions) -> Aligned {
        Aligned { path: path.into(), options, told: Told::default() }
    }

    /// Whether a file is one of these, by its first bytes. Of what is no regular file, or cannot be read, nobody knows: that is for whoever reads it to tell.
    pub fn is(path: &Path) -> bool {
        is_regular(path).unwrap_or(false) && Format::of(path).is_ok_and(|format| format.is_some())
    }

    /// Samples that its read groups are of, by its header.
    ///
    /// # Errors
    /// It cannot be read, or its header is damaged.
    pub fn samples(&self) -> Result<BTreeSet<String>, Error> {
        super::source::samples(self)
    }

    /// What there was in it, once it was read to its end.
    pub fn tally(&self) -> Option<&Tally> {
        self.told.0.get()
    }

    /// Notes what there was in it. Each time that it is read says the same.
    pub(super) fn tell(&self, tally: Tally) {
        let _ = self.told.0.set(tally);
    }
}
