//! Sorts encoded records by coordinate in bounded memory, writes them as BAM or CRAM with an index, and marks
//! duplicates in the same pass.
//!
//! Workers make a [`SortedBlock`] of each batch ([`BlockSorter`]). The [`Sorter`] takes the blocks in input order,
//! keeps them in memory or merges them to sorted runs in an unnamed spill file, and merges everything at the end. The
//! order is that of `samtools sort`: sequence, position, strand; equal records keep the input order.
//!
//! For duplicate marking, the read ends of each template are sorted in the same way, separately from the records. At
//! the end of the input the duplicates are determined first. The records are then marked while they are written.
//!
//! Memory: the budget, one block, and about 2 MB per thread for records that are being compressed; with duplicate
//! marking, a quarter of a byte per template more. The output does not depend on the budget or the number of threads.

mod record;
mod lz4;
mod spill_file;
mod loser_tree;
mod external_sorter;
pub mod markdup;
mod block_sorter;
mod header;
mod bam_file;
mod cram;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use genuma_work::publish::AtomicFileSet;

use crate::bgzf::CompressionLevel;
use crate::indexed_file;
use block_sorter::RecordSortItem;
use external_sorter::ExternalSorter;
use loser_tree::{InMemoryRun, LoserTree, MergedItem, TEMPLATE_ORDINAL_BYTES};
use markdup::{DuplicateFinder, DuplicateFlags, MarkdupOptions, MarkdupReadCounts};
use record::Record;
use spill_file::SortedRunFile;

pub use bam_file::BamFileWriter;
pub use block_sorter::{BlockSorter, SortedBlock};
pub use cram::{CramFileWriter, CramVersion};
pub use header::SortedFileHeader;

/// Why records cannot be sorted or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The BAM or CRAM file or its index cannot be written, or a record cannot be indexed.
    #[error(transparent)]
    Output(#[from] indexed_file::Error),
    /// A file or a stream cannot be written. The message names the file.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The spill file cannot be written or read, or its content is damaged.
    #[error(transparent)]
    Spill(#[from] genuma_work::spill::Error),
    /// A record of the aligner that is not valid BAM.
    #[error("a record of the aligner {what}")]
    Record {
        /// What is wrong with the record.
        what: &'static str,
    },
    /// A header line that BAM cannot hold.
    #[error("header line '{line}' has no name or no length from 1 to 2147483647")]
    Header {
        /// The line of the SAM header, without its line end.
        line: String,
    },
    /// The reference that is needed for CRAM cannot be read.
    #[error("{0}")]
    Reference(String),
    /// A thread that reads the spill file ended early.
    #[error("a thread that reads the sorting spill file has stopped")]
    ReadAheadStopped,
}

/// Memory, work folder and threads for sorting, and options of duplicate marking.
#[derive(Debug, Clone)]
pub struct SortOptions {
    /// Memory (bytes) for records and for the read ends of duplicate marking.
    pub memory_bytes: usize,
    /// Number of threads that compress. The merge runs on one more thread.
    pub threads: usize,
    /// Folder in which the spill file is created.
    pub work_dir: PathBuf,
    /// Options of duplicate marking; `None` marks no duplicates.
    pub markdup: Option<Arc<MarkdupOptions>>,
}

/// Result of sorting: numbers of records and duplicates, and the use of the spill file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SortSummary {
    /// Number of SAM records written, secondary and supplementary ones included.
    pub records: u64,
    /// Number of templates of the records.
    pub templates: u64,
    /// Number of compressed bytes written to the spill file.
    pub spilled_bytes: u64,
    /// Counts of duplicate marking; `None` if duplicates were not marked.
    pub duplicates: Option<MarkdupReadCounts>,
}

/// Sorts records by coordinate and marks duplicates; see the module documentation.
pub struct Sorter {
    alignments: ExternalSorter<RecordSortItem>,
    duplicate_finder: Option<DuplicateFinder>,
    marking: Option<Arc<MarkdupOptions>>,
    spill: Arc<SortedRunFile>,
    threads: usize,
    records: u64,
    templates: u64,
}

impl Sorter {
    /// Creates a sorter without records.
    pub fn new(options: &SortOptions) -> Sorter {
        let SortOptions { memory_bytes: memory, threads, work_dir: work, markdup: marking } = options;
        let spill = Arc::new(SortedRunFile::prepare_in_folder(work));
        let for_marking = if marking.is_some() { memory / 5 } else { 0 };
        Sorter {
            alignments: ExternalSorter::with_memory_budget(&spill, memory - for_marking, *threads),
            duplicate_finder: marking
                .is_some()
                .then(|| DuplicateFinder::with_memory_budget(&spill, for_marking, *threads)),
            marking: marking.clone(),
            spill,
            threads: *threads,
            records: 0,
            templates: 0,
        }
    }

    /// Adds the block of the next batch of the input. May wait for the spill file.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn push_block(&mut self, block: SortedBlock) -> Result<(), Error> {
        let first_ordinal = self.templates;
        self.records += block.num_records;
        self.templates += block.num_templates;
        if let Some(duplicate_finder) = &mut self.duplicate_finder {
            duplicate_finder.push_read_ends_of_block(block.ends, first_ordinal)?;
        }
        self.alignments.push_sorted_run(InMemoryRun { items: block.items, first_ordinal })
    }

    /// Writes all records, sorted, to the BAM file `file`, and adds the file and its index to `set`.
    ///
    /// # Errors
    /// A file cannot be written, the spill file cannot be read, or a record cannot be indexed: its sequence is not in
    /// the header, or it ends beyond the last position that the index can represent.
    pub fn write_bam(self, file: BamFileWriter, set: &mut AtomicFileSet) -> Result<SortSummary, Error> {
        let threads = self.threads;
        let (mut records, summary, spill) = self.start_merge()?;
        file.write_records_and_index(threads, |out| records.append_next(out), set)?;
        Ok(SortSummary { spilled_bytes: spill.bytes_written(), ..summary })
    }

    /// Writes all records, sorted, to the CRAM file `file`, and adds the file and its index to `set`.
    ///
    /// # Errors
    /// A file cannot be written, the spill file or the reference cannot be read, or a record cannot be encoded: its
    /// sequence is not in the header, or its tags are damaged.
    pub fn write_cram(self, file: CramFileWriter, set: &mut AtomicFileSet) -> Result<SortSummary, Error> {
        let threads = self.threads;
        let (mut records, summary, spill) = self.start_merge()?;
        file.write_records_and_index(threads, |out| records.append_next(out), set)?;
        Ok(SortSummary { spilled_bytes: spill.bytes_written(), ..summary })
    }

    /// Writes all records, sorted, to `out` as BAM without an index, for pipes.
    ///
    /// # Errors
    /// The stream cannot be written, or the spill file cannot be read.
    pub fn write_unindexed_bam(
        self,
        header: &SortedFileHeader,
        level: CompressionLevel,
        out: impl Write + Send,
    ) -> Result<SortSummary, Error> {
        let threads = self.threads;
        let (mut records, summary, spill) = self.start_merge()?;
        bam_file::write_bam_with_optional_index(header, level, threads, out, None, |out| records.append_next(out))?;
        Ok(SortSummary { spilled_bytes: spill.bytes_written(), ..summary })
    }

    /// Determines the duplicates and starts the merge of the records.
    fn start_merge(self) -> Result<(MarkedRecords, SortSummary, Arc<SortedRunFile>), Error> {
        let mut summary = SortSummary { records: self.records, templates: self.templates, ..SortSummary::default() };
        let marks = match self.duplicate_finder.map(|finder| finder.find_duplicates(self.templates)).transpose()? {
            Some((marks, marked)) => {
                summary.duplicates = Some(marked);
                Some(marks)
            }
            None => None,
        };
        let mark_whole_template = self.marking.is_some_and(|m| m.mark_whole_template);
        let ordered = MarkedRecords { merge: self.alignments.start_final_merge()?, marks, mark_whole_template };
        Ok((ordered, summary, self.spill))
    }
}

/// Iterates over all records in sort order and sets their duplicate flags.
struct MarkedRecords {
    merge: LoserTree<RecordSortItem>,
    marks: Option<DuplicateFlags>,
    mark_whole_template: bool,
}

impl MarkedRecords {
    /// Appends the next record to `out`. Returns `false` after the last record.
    fn append_next(&mut self, out: &mut Vec<u8>) -> Result<bool, Error> {
        let Some(MergedItem { ordinal, item }) = self.merge.next_merged_item()? else { return Ok(false) };
        let record = &item[TEMPLATE_ORDINAL_BYTES..];
        let at = out.len();
        out.extend_from_slice(record);
        if let Some(marks) = &self.marks
            && marks.should_mark_as_duplicate(ordinal, Record::first_of_checked_bytes(record), self.mark_whole_template)
        {
            record::set_duplicate_flag(&mut out[at..]);
        }
        Ok(true)
    }
}
