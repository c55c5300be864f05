//! Encoded records in input order → a BAM file sorted by coordinate, with its index, in bounded memory; duplicates
//! marked in the same pass.
//!
//! Workers make a [`SortedBlock`] of each batch ([`Blocks`]). The [`Sorter`] takes the blocks in the order of the input,
//! keeps them in memory or merges some of them to runs in an unnamed spill file, and merges everything in the end. The
//! order is that of `samtools sort`: sequence, position, strand; equal records stay as they were given.
//!
//! For duplicates, what is compared of each template is sorted likewise, apart from its records. When the input has ended
//! it is judged first; the records are marked as they come out.
//!
//! Memory: the budget, one block, and for each thread about 2 MB of records being packed or deflated; with marking a
//! quarter byte a template. What comes out does not depend on the budget or the threads.

mod record;
mod pack;
mod spill;
mod merge;
mod store;
pub mod markdup;
mod block;
mod header;
mod output;
mod cram;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use genuma_work::publish::Set;

use crate::bgzf::Level;
use crate::indexed;
use block::Alignment;
use markdup::{Judge, Marked, Marking, Marks};
use merge::{Merge, Merged, ORDINAL, Piece};
use record::Record;
use spill::Spill;
use store::Store;

pub use block::{Blocks, SortedBlock};
pub use cram::CramFile;
pub use header::Header;
pub use output::BamFile;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The BAM or its index cannot be written.
    #[error(transparent)]
    Output(#[from] indexed::Error),
    /// A file, which the message names, or a stream cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The spill file failed, or holds other bytes than were written.
    #[error(transparent)]
    Spill(#[from] genuma_work::spill::Error),
    /// The aligner's records are not what BAM says.
    #[error("a record of the aligner {what}")]
    Record {
        /// What is wrong with it.
        what: &'static str,
    },
    /// A header line that BAM cannot hold.
    #[error("header line '{line}' has no name or no length from 1 to 2147483647")]
    Header {
        /// The line.
        line: String,
    },
    /// The reference that CRAM is written with.
    #[error("{0}")]
    Reference(String),
    /// A thread ended early.
    #[error("a thread that reads the sorting spill file has stopped")]
    Lost,
}

/// How to sort.
#[derive(Debug, Clone)]
pub struct Options {
    /// Memory for records and what is compared of them, bytes.
    pub memory: usize,
    /// Threads that pack and deflate; the merge itself is one more.
    pub threads: usize,
    /// Folder of the spill file.
    pub work: PathBuf,
    /// Whether duplicates are marked, and how.
    pub marking: Option<Arc<Marking>>,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records written.
    pub records: u64,
    /// Templates they are of.
    pub templates: u64,
    /// Bytes that went to the spill file, packed.
    pub spilled: u64,
    /// What was marked, if anything was to be.
    pub marked: Option<Marked>,
}

/// Sorts. See the module's page.
pub struct Sorter {
    alignments: Store<Alignment>,
    judge: Option<Judge>,
    marking: Option<Arc<Marking>>,
    spill: Arc<Spill>,
    threads: usize,
    records: u64,
    templates: u64,
}

impl Sorter {
    /// Empty.
    pub fn new(options: &Options) -> Sorter {
        let Options { memory, threads, work, marking } = options;
        let spill = Arc::new(Spill::new(work));
        let for_marking = if marking.is_some() { memory / 5 } else { 0 };
        Sorter {
            alignments: Store::new(&spill, memory - for_marking, *threads),
            judge: marking.is_some().then(|| Judge::new(&spill, for_marking, *threads)),
            marking: marking.clone(),
            spill,
            threads: *threads,
            records: 0,
            templates: 0,
        }
    }

    /// Takes the block of the next batch of the input. May wait for the spill file.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn push(&mut self, block: SortedBlock) -> Result<(), Error> {
        let base = self.templates;
        self.records += block.records;
        self.templates += block.templates;
        if let Some(judge) = &mut self.judge {
            judge.push(block.ends, base)?;
        }
        self.alignments.push(Piece { items: block.items, base })
    }

    /// Writes all records into `file`, and puts it and its index into `set`.
    ///
    /// # Errors
    /// A file cannot be written, or a record lies beyond its sequence.
    pub fn finish(self, file: BamFile, set: &mut Set) -> Result<Summary, Error> {
        let threads = self.threads;
        let (mut records, summary, spill) = self.ordered()?;
        file.write(threads, |out| records.next(out), set)?;
        Ok(Summary { spilled: spill.written(), ..summary })
    }

    /// Writes all records into `file`, and puts it and its index into `set`.
    ///
    /// # Errors
    /// A file cannot be written, or the reference not be read.
    pub fn finish_cram(self, file: CramFile, set: &mut Set) -> Result<Summary, Error> {
        let threads = self.threads;
        let (mut records, summary, spill) = self.ordered()?;
        file.write(threads, |out| records.next(out), set)?;
        Ok(Summary { spilled: spill.written(), ..summary })
    }

    /// Writes a BAM stream into `out`, without an index.
    ///
    /// # Errors
    /// It cannot be written, or the spill file not read.
    pub fn stream(self, header: &Header, level: Level, out: impl Write + Send) -> Result<Summary, Error> {
        let threads = self.threads;
        let (mut records, summary, spill) = self.ordered()?;
        output::write(header, level, threads, out, None, |out| records.next(out))?;
        Ok(Summary { spilled: spill.written(), ..summary })
    }

    /// Judges, and begins the merge.
    fn ordered(self) -> Result<(Ordered, Summary, Arc<Spill>), Error> {
        let mut summary = Summary { records: self.records, templates: self.templates, ..Summary::default() };
        let marks = match self.judge.map(|j| j.judge(self.templates)).transpose()? {
            Some((marks, marked)) => {
                summary.marked = Some(marked);
                Some(marks)
            }
            None => None,
        };
        let whole_templates = self.marking.is_some_and(|m| m.whole_templates);
        let ordered = Ordered { merge: self.alignments.merge()?, marks, whole_templates };
        Ok((ordered, summary, self.spill))
    }
}

/// All records in order, marked.
struct Ordered {
    merge: Merge<Alignment>,
    marks: Option<Marks>,
    whole_templates: bool,
}

impl Ordered {
    /// Appends the next record; `false` after the last.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool, Error> {
        let Some(Merged { ordinal, item }) = self.merge.next()? else { return Ok(false) };
        let record = &item[ORDINAL..];
        let at = out.len();
        out.extend_from_slice(record);
        if let Some(marks) = &self.marks
            && marks.apply(ordinal, Record::at(record), self.whole_templates)
        {
            record::mark(&mut out[at..]);
        }
        Ok(true)
    }
}
