//! Errors of operations on k-mer tables.

use std::io;
use std::path::PathBuf;

/// Why an operation on k-mer tables failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A table cannot be read or written, or is damaged.
    #[error(transparent)]
    Table(#[from] genuma_flash::Error),
    /// A dictionary cannot be built, because its memory is too small or an entry is invalid.
    #[error(transparent)]
    Dictionary(#[from] genuma_dictionary::Error),
    /// A dictionary is damaged.
    #[error("{}", path.display())]
    DamagedDictionary {
        /// The file of the dictionary.
        path: PathBuf,
        /// What is damaged.
        source: genuma_dictionary::Error,
    },
    /// The output file cannot be created.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// The buffers cannot be allocated.
    #[error(transparent)]
    Memory(#[from] genuma_machine::placement::Error),
    /// A thread cannot be started, or the output cannot be written. The error names the file.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is a sorted table, but its note is not that of k-mer counts.
    #[error("{}: is a table, but not of k-mer counts: make one with `genuma kmers count`", path.display())]
    NoKmerCounts {
        /// The file of the table.
        path: PathBuf,
    },
    /// The note of a table would exceed the size that the format allows.
    #[error("the names of the samples are too long: shorten them")]
    NoteTooLong,
}
