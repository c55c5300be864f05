//! Files of aligned reads, and how they are taken.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use flate2::{Decompress, FlushDecompress, Status};
use serde::{Deserialize, Serialize};

use crate::bgzf;
use crate::error::Error;
use crate::pipe::{is_regular, peek};

use super::genome::Genome;
use super::tally::Tally;
use super::{bam, cbq, cram, vbq};

/// Bytes by which a file is known.
const HEAD: u64 = 4096;

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
    /// By the first bytes of a file, or of a pipe as soon as there are some; `None` for any other. CBQ, VBQ and BQ are none in a pipe.
    pub(super) fn of(path: &Path) -> io::Result<Option<Format>> {
        if !is_regular(path)? {
            let head = peek(path, |head| Format::by(head).is_some())?;
            let format = Format::by(&head).flatten();
            return Ok(format.filter(|format| matches!(format, Format::Bam | Format::Cram)));
        }
        let mut head = Vec::new();
        File::open(path)?.take(HEAD).read_to_end(&mut head)?;
        Ok(Format::by(&head).flatten())
    }

    /// That of a file that begins with such bytes, or none; nothing where these are too few to tell.
    fn by(head: &[u8]) -> Option<Option<Format>> {
        const MAGICS: [(&[u8], Format); 4] = [
            (cram::MAGIC, Format::Cram),
            (cbq::MAGIC, Format::Cbq),
            (vbq::MAGIC, Format::Vbq),
            (vbq::MAGIC_FIXED, Format::Vbq),
        ];
        if let Some((_, format)) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Some(Some(*format));
        }
        let begun = |magic: &[u8]| magic.starts_with(head);
        if MAGICS.iter().any(|(magic, _)| begun(magic)) || (head.len() < bgzf::HEADER && begun_block(head)) {
            return None;
        }
        if bgzf::block_size(head).is_none() {
            return Some(None);
        }
        // What is damaged is told by whoever reads it.
        let (mut content, mut inflater) = ([0; bam::MAGIC.len()], Decompress::new(false));
        let inflated = inflater.decompress(&head[bgzf::HEADER..], &mut content, FlushDecompress::None);
        match (inflated, inflater.total_out() as usize) {
            (Ok(_), n) if n == content.len() => Some((content == bam::MAGIC).then_some(Format::Bam)),
            (Ok(Status::Ok | Status::BufError), _) => None,
            _ => Some(None),
        }
    }
}

/// Whether gzip may begin so.
fn begun_block(head: &[u8]) -> bool {
    [0x1f, 0x8b].iter().zip(head).all(|(a, b)| a == b)
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

    /// Whether a file is one of these, by its first bytes, or a pipe is BAM or CRAM, which waits for them. Of what cannot be read nobody knows: that is for whoever
    /// reads it to tell.
    pub fn is(path: &Path) -> bool {
        Format::of(path).is_ok_and(|format| format.is_some())
    }

    /// Samples that its read groups are of, by its header; none of a pipe, of which nothing may be taken beforehand.
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
