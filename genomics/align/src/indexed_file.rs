//! Writes BGZF-compressed, coordinate-sorted BAM and VCF files together with their index (BAI, tabix or CSI).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use genuma_work::publish::{AtomicFile, AtomicFileSet};
use noodles_bam::bai;
use noodles_bgzf as bgzf;
use noodles_core::Position;
use noodles_csi as csi;
use noodles_csi::binning_index::Indexer;
use noodles_csi::binning_index::index::Header;
use noodles_csi::binning_index::index::reference_sequence::bin::Chunk;
use noodles_csi::binning_index::index::reference_sequence::index::{BinnedIndex, LinearIndex};
use noodles_tabix as tabix;

/// Why a file or its index cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be created or completed.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// A write failed; the message names the file.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// A record that cannot be indexed.
    #[error("{path}: record {record} cannot be indexed: {reason}")]
    IndexRecord {
        /// Path of the file whose record cannot be indexed.
        path: PathBuf,
        /// Record number, from 1.
        record: u64,
        /// Why the record cannot be indexed.
        reason: String,
    },
}

/// Format of the records in a file; it determines the format of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexedRecordFormat {
    /// BAM records: the index is `.bai`, or `.csi` if a sequence is too long for BAI.
    Bam {
        /// Number of sequences in the header.
        sequences: usize,
    },
    /// VCF lines: the index is `.tbi`, or `.csi` if a sequence is too long for tabix.
    Vcf {
        /// Names of the sequences that have records, in the order of the file.
        names: Vec<String>,
    },
}

/// Position of a record on the reference, for the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordReferenceRange {
    /// Index of the reference sequence.
    pub sequence: usize,
    /// First base of the record on the reference, 1-based.
    pub start: usize,
    /// Last base of the record on the reference, 1-based.
    pub end: usize,
    /// Whether the record is aligned at this position. An unmapped read has the position of its mate but is not
    /// aligned there.
    pub is_aligned: bool,
}

/// Base-2 logarithm of the size (bp) of the smallest bins of BAI (SAM specification, section 5.1.1).
const SMALLEST_BIN_BITS: u8 = 14;
/// Number of bin levels in BAI and tabix indexes below the bin of the whole sequence (CSI: depth).
const BAI_BIN_LEVELS: u8 = 5;

/// Longest sequence (bp) that BAI and tabix support; longer sequences need a `.csi` index.
pub(crate) const MAX_BAI_SEQUENCE_BP: usize = max_indexed_bp(BAI_BIN_LEVELS);

const fn max_indexed_bp(levels: u8) -> usize {
    1 << (SMALLEST_BIN_BITS + 3 * levels)
}

/// Collects the index entries of a file while its records are written.
pub(crate) enum IndexBuilder {
    /// A BAI or tabix index, whose bins are supplemented by a linear index.
    BaiOrTabix(Indexer<LinearIndex>),
    /// A CSI index, for sequences that are too long for BAI.
    Csi(Indexer<BinnedIndex>),
}

impl IndexBuilder {
    /// Creates an empty index for reference sequences of at most `longest` bp: BAI or tabix if possible, otherwise CSI
    /// with enough levels.
    pub(crate) fn bai_or_csi_for_longest_sequence(longest: usize, header: Option<Header>) -> IndexBuilder {
        fn new_indexer<I>(levels: u8, header: Option<Header>) -> Indexer<I>
        where
            I: csi::binning_index::index::reference_sequence::Index + Default,
        {
            let indexer = Indexer::new(SMALLEST_BIN_BITS, levels).unwrap_or_default();
            match header {
                Some(header) => indexer.set_header(header),
                None => indexer,
            }
        }
        if longest <= MAX_BAI_SEQUENCE_BP {
            IndexBuilder::BaiOrTabix(new_indexer(BAI_BIN_LEVELS, header))
        } else {
            let levels = (BAI_BIN_LEVELS..).find(|&l| longest <= max_indexed_bp(l)).unwrap_or(BAI_BIN_LEVELS);
            IndexBuilder::Csi(new_indexer(levels, header))
        }
    }

    /// Adds the next record. `place` is `None` for a record without a position. The error is the reason why the record
    /// cannot be indexed.
    pub(crate) fn add_index_entry(&mut self, place: Option<RecordReferenceRange>, chunk: Chunk) -> Result<(), String> {
        let position = |p: usize| Position::new(p).unwrap_or(Position::MIN);
        let context = place.map(|p| (p.sequence, position(p.start), position(p.end.max(p.start)), p.is_aligned));
        match self {
            IndexBuilder::BaiOrTabix(indexer) => indexer.add_record(context, chunk),
            IndexBuilder::Csi(indexer) => indexer.add_record(context, chunk),
        }
        .map_err(|reason| reason.to_string())
    }
}

/// A BGZF file that is written together with its index. Both files get their final names when the file set that
/// [`IndexedFile::finish_with_index_into_file_set`] adds them to is published.
pub struct IndexedFile {
    path: PathBuf,
    data: bgzf::io::Writer<AtomicFile>,
    index_builder: IndexBuilder,
    format: IndexedRecordFormat,
    records_written: u64,
}

/// Appends `.extension` to the whole file name of `path`.
fn append_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

impl IndexedFile {
    /// Creates the file at `path`. `longest` is the length (bp) of the longest reference sequence, which determines
    /// whether the index is BAI (or tabix) or CSI.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, longest: usize, format: IndexedRecordFormat) -> Result<IndexedFile, Error> {
        let header = match &format {
            IndexedRecordFormat::Bam { .. } => None,
            IndexedRecordFormat::Vcf { names } => {
                let names = names.iter().map(|n| n.as_str().into()).collect();
                Some(csi::binning_index::index::header::Builder::vcf().set_reference_sequence_names(names).build())
            }
        };
        let index_builder = IndexBuilder::bai_or_csi_for_longest_sequence(longest, header);
        let data = bgzf::io::Writer::new(AtomicFile::create(path)?);
        Ok(IndexedFile { path: path.to_owned(), data, index_builder, format, records_written: 0 })
    }

    /// Writes the header, which comes before the first record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_header(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.data.write_all(bytes)?)
    }

    /// Writes one record and its index entry. Records must be sorted by position; records without a position come
    /// last.
    ///
    /// # Errors
    /// The file cannot be written, or the record is out of order or ends beyond the last position that the index can
    /// represent.
    pub fn write_record(&mut self, bytes: &[u8], place: Option<RecordReferenceRange>) -> Result<(), Error> {
        let start = self.data.virtual_position();
        self.data.write_all(bytes)?;
        let chunk = Chunk::new(start, self.data.virtual_position());
        self.records_written += 1;
        self.index_builder.add_index_entry(place, chunk).map_err(|reason| Error::IndexRecord {
            path: self.path.clone(),
            record: self.records_written,
            reason,
        })
    }

    /// Completes the file and its index and adds both to `set`. An older index of the other kind (BAI or CSI) is
    /// removed when `set` is published.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish_with_index_into_file_set(self, set: &mut AtomicFileSet) -> Result<(), Error> {
        write_index_and_add_to_file_set(&self.path, self.data.finish()?, self.index_builder, &self.format, set)
    }
}

/// Writes the index of `data`, which will be published as `path`, and adds both files to `set`.
pub(crate) fn write_index_and_add_to_file_set(
    path: &Path,
    data: AtomicFile,
    index_builder: IndexBuilder,
    format: &IndexedRecordFormat,
    set: &mut AtomicFileSet,
) -> Result<(), Error> {
    let (sequences, linear) = match format {
        IndexedRecordFormat::Bam { sequences } => (*sequences, "bai"),
        IndexedRecordFormat::Vcf { names } => (names.len(), "tbi"),
    };
    let (index, other) = match index_builder {
        IndexBuilder::BaiOrTabix(indexer) => {
            let index = indexer.build(sequences);
            let file = AtomicFile::create(append_extension(path, linear))?;
            let file = match format {
                IndexedRecordFormat::Bam { .. } => {
                    let mut writer = bai::io::Writer::new(file);
                    writer.write_index(&index)?;
                    writer.into_inner()
                }
                IndexedRecordFormat::Vcf { .. } => {
                    let mut writer = tabix::io::Writer::new(file);
                    writer.write_index(&index)?;
                    writer.into_inner().finish()?
                }
            };
            (file, "csi")
        }
        IndexBuilder::Csi(indexer) => {
            let mut writer = csi::io::Writer::new(AtomicFile::create(append_extension(path, "csi"))?);
            writer.write_index(&indexer.build(sequences))?;
            (writer.into_inner().finish()?, linear)
        }
    };
    // An index of other data is worse than no index.
    set.remove_file_on_publish(append_extension(path, other));
    set.add_file(index.flush_to_partial_file()?);
    set.add_file(data.flush_to_partial_file()?);
    Ok(())
}
