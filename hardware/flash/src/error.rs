//! What can go wrong with a table, and where.

use std::fmt;
use std::io;
use std::path::PathBuf;

use genuma_machine::placement;

/// Why a table cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The table cannot be as it was asked to be.
    #[error("{path}: cannot make this table: {what}", path = path.display())]
    Spec {
        /// Final name of the table.
        path: PathBuf,
        /// What is impossible about it.
        what: String,
    },
    /// Keys have to rise from entry to entry.
    #[error("{path}: entry {entry}: key {key:#x} does not follow {before:#x}: sort the keys, each once", path = path.display())]
    Order {
        /// Final name of the table.
        path: PathBuf,
        /// The entry, counted from 0.
        entry: u64,
        /// Its key.
        key: u64,
        /// The key before it.
        before: u64,
    },
    /// Values are all of one size.
    #[error("{path}: entry {entry}: a value of {given} bytes, but the table's have {wanted}", path = path.display())]
    Value {
        /// Final name of the table.
        path: PathBuf,
        /// The entry, counted from 0.
        entry: u64,
        /// Bytes given.
        given: usize,
        /// Bytes that every value has.
        wanted: usize,
    },
    /// More entries came than were announced.
    #[error("{path}: more than the {most} entries announced: announce as many as may come", path = path.display())]
    TooMany {
        /// Final name of the table.
        path: PathBuf,
        /// Entries announced.
        most: u64,
    },
    /// The file does not appear under its name.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// The file cannot be written: a full disk.
    #[error("{path}: cannot write: {source}", path = path.display())]
    Write {
        /// Final name of the table.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file cannot be opened or its head not be read.
    #[error("{path}: cannot open: {source}", path = path.display())]
    Open {
        /// The table.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{path}: is no table of genuma", path = path.display())]
    NotATable {
        /// The file.
        path: PathBuf,
    },
    /// A table of another version of the format.
    #[error("{path}: a table of version {found}, this program reads versions up to {known}: make it anew", path = path.display())]
    Version {
        /// The table.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version this program reads.
        known: u32,
    },
    /// The file is shorter or longer than its header says.
    #[error("{path}: has {found} bytes instead of {wanted}: cut short or not a whole copy, make it anew", path = path.display())]
    Length {
        /// The table.
        path: PathBuf,
        /// Bytes it has.
        found: u64,
        /// Bytes it should have.
        wanted: u64,
    },
    /// A part is damaged.
    #[error("{path}: {part} damaged ({what}): make the table anew, and check the disk", path = path.display())]
    Damaged {
        /// The table.
        path: PathBuf,
        /// Which part of it.
        part: Part,
        /// What does not fit.
        what: &'static str,
    },
    /// A part cannot be read.
    #[error("{path}: cannot read {part}: {source}", path = path.display())]
    Read {
        /// The table.
        path: PathBuf,
        /// Which part of it.
        part: Part,
        /// What the system said.
        source: io::Error,
    },
    /// The way of reading that was asked for is refused here.
    #[error("{path}: {way} is refused here: {source}: leave the choice to the table", path = path.display())]
    Refused {
        /// The table.
        path: PathBuf,
        /// The way of reading.
        way: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("{path}: cannot start a thread to read with, use fewer: {source}", path = path.display())]
    Thread {
        /// The table.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no memory where it was asked for.
    #[error("{path}: {source}", path = path.display())]
    Memory {
        /// The table.
        path: PathBuf,
        /// What is missing, and where.
        source: placement::Error,
    },
}

/// A part of a table's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The first 4096 bytes.
    Header,
    /// A page of entries, counted from 1 as it lies in the file: it starts at 4096 times its number.
    Page(u64),
    /// First keys of the pages.
    Index,
    /// What tells absent keys.
    Filter,
    /// The most looked-up entries.
    Hot,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Header => write!(f, "header"),
            Part::Page(number) => write!(f, "page {number}"),
            Part::Index => write!(f, "index"),
            Part::Filter => write!(f, "filter"),
            Part::Hot => write!(f, "hot entries"),
        }
    }
}
