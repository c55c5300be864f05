//! Errors of tables.

use std::fmt;
use std::io;
use std::path::PathBuf;

use genuma_machine::placement;

/// Why a table cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The [`crate::TableSpec`] is invalid.
    #[error("{path}: cannot create this table: {what}", path = path.display())]
    InvalidSpec {
        /// Final path of the table.
        path: PathBuf,
        /// What is invalid.
        what: String,
    },
    /// The keys are not in strictly ascending order.
    #[error("{path}: entry {entry}: key {key:#x} is not above {before:#x}: sort the keys and remove duplicates", path = path.display())]
    KeysOutOfOrder {
        /// Final path of the table.
        path: PathBuf,
        /// Index of the entry, from 0.
        entry: u64,
        /// Key of the invalid entry.
        key: u64,
        /// Key of the previous entry.
        before: u64,
    },
    /// The size of a value differs from [`crate::TableSpec::value_bytes`].
    #[error("internal error, please report: {path}: entry {entry} has a value of {given} bytes, but values of this table have {wanted}", path = path.display())]
    WrongValueSize {
        /// Final path of the table.
        path: PathBuf,
        /// Index of the entry, from 0.
        entry: u64,
        /// Size of the given value in bytes.
        given: usize,
        /// Expected size in bytes.
        wanted: usize,
    },
    /// More entries were added than [`crate::TableSpec::max_entries`].
    #[error("internal error, please report: {path}: more than the {most} entries that were announced", path = path.display())]
    TooManyEntries {
        /// Final path of the table.
        path: PathBuf,
        /// Maximum number of entries according to the specification.
        most: u64,
    },
    /// The file could not be published under its final name.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// The file could not be written, for example because the disk is full.
    #[error("{path}: cannot write: {source}", path = path.display())]
    Write {
        /// Final path of the table.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file could not be opened, or its header could not be read.
    #[error("{path}: cannot open: {source}", path = path.display())]
    Open {
        /// Path of the table.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file does not begin with the magic bytes of a table.
    #[error("{path}: is not a genuma table: give a table that genuma wrote", path = path.display())]
    NotATable {
        /// Path of the file.
        path: PathBuf,
    },
    /// The table has an unsupported format version.
    #[error("{path}: has table version {found}, but this program reads versions up to {known}: create the table again", path = path.display())]
    UnsupportedVersion {
        /// Path of the table.
        path: PathBuf,
        /// Format version of the table.
        found: u32,
        /// Newest format version that this program reads.
        known: u32,
    },
    /// The file length differs from the length in the header.
    #[error("{path}: has {found} bytes instead of {wanted}: truncated or incompletely copied, create the table again", path = path.display())]
    WrongFileLength {
        /// Path of the table.
        path: PathBuf,
        /// Actual length in bytes.
        found: u64,
        /// Expected length in bytes.
        wanted: u64,
    },
    /// A part of the table is damaged.
    #[error("{path}: {part} damaged ({what}): create the table again, and check the disk", path = path.display())]
    Damaged {
        /// Path of the table.
        path: PathBuf,
        /// The damaged part.
        part: TablePart,
        /// Which check of the part failed.
        what: &'static str,
    },
    /// A part of the table could not be read.
    #[error("{path}: cannot read {part}: {source}", path = path.display())]
    Read {
        /// Path of the table.
        path: PathBuf,
        /// The part that could not be read.
        part: TablePart,
        /// Error of the system call.
        source: io::Error,
    },
    /// The operating system does not permit the requested [`crate::PageReadMethod`].
    #[error("{path}: {way} is not permitted here: {source}: use automatic access", path = path.display())]
    ReadMethodNotPermitted {
        /// Path of the table.
        path: PathBuf,
        /// Name of the method, such as `io_uring`.
        way: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// A thread that reads pages could not be started.
    #[error("{path}: cannot start a thread that reads: {source}; lower --threads", path = path.display())]
    CannotStartThread {
        /// Path of the table.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// There is not enough memory on the requested NUMA nodes.
    #[error("{path}: {source}", path = path.display())]
    NotEnoughMemory {
        /// Path of the table.
        path: PathBuf,
        /// Error of the allocation, which names the NUMA node.
        source: placement::Error,
    },
}

/// A part of a table file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TablePart {
    /// The header: the first 4096 bytes.
    Header,
    /// A page of entries with its number. Numbers count from 1, because the header is page 0: page n starts at byte
    /// 4096 n.
    Page(u64),
    /// The index: the first key of each page and, with compact pages, of each group of entries with one filter.
    Index,
    /// The Bloom filters of all groups.
    Filter,
    /// The section with copies of the hot entries: those that will probably be looked up most often.
    HotEntries,
}

impl fmt::Display for TablePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TablePart::Header => write!(f, "header"),
            TablePart::Page(number) => write!(f, "page {number}"),
            TablePart::Index => write!(f, "index"),
            TablePart::Filter => write!(f, "filter"),
            TablePart::HotEntries => write!(f, "hot entries"),
        }
    }
}
