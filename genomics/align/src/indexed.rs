//! BGZF files of records in the order of the genome, with the index that finds them: BAM and VCF.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use genuma_work::publish::{AtomicFile, Set};
use noodles_bam::bai;
use noodles_bgzf as bgzf;
use noodles_core::Position;
use noodles_csi as csi;
use noodles_csi::binning_index::Indexer;
use noodles_csi::binning_index::index::Header;
use noodles_csi::binning_index::index::reference_sequence::bin::Chunk;
use noodles_csi::binning_index::index::reference_sequence::index::{BinnedIndex, LinearIndex};
use noodles_tabix as tabix;

/// What can go wrong while such a file is written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be made or finished.
    #[error(transparent)]
    File(#[from] genuma_work::publish::Error),
    /// A write failed; the message names the file.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// A record cannot be indexed.
    #[error("{path}: record {record} cannot be indexed: {why}")]
    Index {
        /// The file.
        path: PathBuf,
        /// Record number, from 1.
        record: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// What the records are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Records {
    /// BAM records of that many sequences: indexed as `.bai`.
    Bam {
        /// Number of sequences in the header.
        sequences: usize,
    },
    /// VCF lines: indexed as `.tbi`.
    Vcf {
        /// Names of the sequences that have records, in their order.
        names: Vec<String>,
    },
}

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the sequence.
    pub sequence: usize,
    /// First base, from 1.
    pub start: usize,
    /// Last base, from 1.
    pub end: usize,
    /// Whether it is aligned there; an unmapped read stands at its mate without being so.
    pub aligned: bool,
}

/// Bits of the smallest bins (SAM specification, section 5.1.1).
const MIN_SHIFT: u8 = 14;
/// Levels of bins that BAI and tabix have.
const LEVELS: u8 = 5;

/// Longest sequence that BAI and tabix indexes reach, bases; for a longer one the index is a `.csi`.
pub(crate) const LINEAR_REACH: usize = reach(LEVELS);

const fn reach(levels: u8) -> usize {
    1 << (MIN_SHIFT + 3 * levels)
}

/// An index being made.
pub(crate) enum Indexing {
    /// BAI or tabix.
    Linear(Indexer<LinearIndex>),
    /// CSI.
    Binned(Indexer<BinnedIndex>),
}

impl Indexing {
    /// Of the kind that reaches as far as `longest` bases.
    pub(crate) fn begin(longest: usize, header: Option<Header>) -> Indexing {
        fn begin<I>(levels: u8, header: Option<Header>) -> Indexer<I>
        where
            I: csi::binning_index::index::reference_sequence::Index + Default,
        {
            let indexer = Indexer::new(MIN_SHIFT, levels).unwrap_or_default();
            match header {
                Some(header) => indexer.set_header(header),
                None => indexer,
            }
        }
        if longest <= LINEAR_REACH {
            Indexing::Linear(begin(LEVELS, header))
        } else {
            let levels = (LEVELS..).find(|&l| longest <= reach(l)).unwrap_or(LEVELS);
            Indexing::Binned(begin(levels, header))
        }
    }

    /// Adds the next record and says what is wrong with it.
    pub(crate) fn add(&mut self, place: Option<Place>, chunk: Chunk) -> Result<(), String> {
        let position = |p: usize| Position::new(p).unwrap_or(Position::MIN);
        let context = place.map(|p| (p.sequence, position(p.start), position(p.end.max(p.start)), p.aligned));
        match self {
            Indexing::Linear(indexer) => indexer.add_record(context, chunk),
            Indexing::Binned(indexer) => indexer.add_record(context, chunk),
        }
        .map_err(|why| why.to_string())
    }
}

/// A BGZF file being written together with its index. Both appear under their names with the set that they are put into at
/// [`IndexedFile::finish`].
pub struct IndexedFile {
    path: PathBuf,
    data: bgzf::io::Writer<AtomicFile>,
    indexing: Indexing,
    records: Records,
    written: u64,
}

/// `path` with another extension after all it has.
fn with_added(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

impl IndexedFile {
    /// Begins `path`. `longest` is the length of the longest sequence in bases: it decides the kind of index.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, longest: usize, records: Records) -> Result<IndexedFile, Error> {
        let header = match &records {
            Records::Bam { .. } => None,
            Records::Vcf { names } => {
                let names = names.iter().map(|n| n.as_str().into()).collect();
                Some(
                    csi::binning_index::index::header::Builder::vcf()
                        .set_reference_sequence_names(names)
                        .build(),
                )
            }
        };
        let indexing = Indexing::begin(longest, header);
        let data = bgzf::io::Writer::new(AtomicFile::create(path)?);
        Ok(IndexedFile { path: path.to_owned(), data, indexing, records, written: 0 })
    }

    /// Writes what stands before the first record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn head(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.data.write_all(bytes)?)
    }

    /// Writes one record, which must not lie before the last one. Those without a place come last.
    ///
    /// # Errors
    /// The file cannot be written, or the record is out of order or beyond the longest sequence.
    pub fn record(&mut self, bytes: &[u8], place: Option<Place>) -> Result<(), Error> {
        let start = self.data.virtual_position();
        self.data.write_all(bytes)?;
        let chunk = Chunk::new(start, self.data.virtual_position());
        self.written += 1;
        self.indexing.add(place, chunk).map_err(|why| Error::Index {
            path: self.path.clone(),
            record: self.written,
            why,
        })
    }

    /// Ends both files and puts them into `set`. An older index of the file goes with it, whatever its kind.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(self, set: &mut Set) -> Result<(), Error> {
        finish(&self.path, self.data.finish()?, self.indexing, &self.records, set)
    }
}

/// Writes the index of `data`, which will be `path`, and puts both into `set`.
pub(crate) fn finish(
    path: &Path,
    data: AtomicFile,
    indexing: Indexing,
    records: &Records,
    set: &mut Set,
) -> Result<(), Error> {
    let (sequences, linear) = match records {
        Records::Bam { sequences } => (*sequences, "bai"),
        Records::Vcf { names } => (names.len(), "tbi"),
    };
    let (index, other) = match indexing {
        Indexing::Linear(indexer) => {
            let index = indexer.build(sequences);
            let file = AtomicFile::create(with_added(path, linear))?;
            let file = match records {
                Records::Bam { .. } => {
                    let mut writer = bai::io::Writer::new(file);
                    writer.write_index(&index)?;
                    writer.into_inner()
                }
                Records::Vcf { .. } => {
                    let mut writer = tabix::io::Writer::new(file);
                    writer.write_index(&index)?;
                    writer.into_inner().finish()?
                }
            };
            (file, "csi")
        }
        Indexing::Binned(indexer) => {
            let mut writer = csi::io::Writer::new(AtomicFile::create(with_added(path, "csi"))?);
            writer.write_index(&indexer.build(sequences))?;
            (writer.into_inner().finish()?, linear)
        }
    };
    // An index of other data is worse than none.
    set.forget(with_added(path, other));
    set.add(index.complete()?);
    set.add(data.complete()?);
    Ok(())
}
