//! Errors of dictionaries.

use std::io;
use std::path::PathBuf;

/// Why a dictionary cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The specification, or an entry, is impossible.
    #[error("cannot make this dictionary: {what}")]
    InvalidInput {
        /// Which part of the specification is impossible.
        what: String,
    },
    /// The memory that the dictionary may take is too little.
    #[error(
        "the dictionary needs about {} MiB of memory, but may take {}: raise --memory", needed_bytes.div_ceil(1 << 20), allowed_bytes >> 20
    )]
    MemoryLimit {
        /// Bytes that are needed, as far as known.
        needed_bytes: u64,
        /// Bytes that are allowed.
        allowed_bytes: u64,
    },
    /// The system has no memory left.
    #[error("the system has no {needed_bytes} bytes of memory left")]
    NotEnoughMemory {
        /// Bytes that were requested.
        needed_bytes: u64,
    },
    /// The file could not be published.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// The file could not be written, for example because the disk is full. The error names the file.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The file could not be opened.
    #[error("{}: cannot open: {source}", path.display())]
    Open {
        /// Path of the dictionary.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// A part of the file could not be read.
    #[error("{}: cannot read {part}: {source}", path.display())]
    Read {
        /// Path of the dictionary.
        path: PathBuf,
        /// Name of the damaged or unreadable part.
        part: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file is no dictionary.
    #[error("{}: is not a genuma k-mer dictionary", path.display())]
    NotADictionary {
        /// Path of the file.
        path: PathBuf,
    },
    /// The version of the file is not known.
    #[error("{}: has dictionary version {found}, but this program reads version {known}: make it again with `genuma kmers compact`", path.display())]
    UnsupportedVersion {
        /// Path of the dictionary.
        path: PathBuf,
        /// Format version that the file has.
        found: u32,
        /// Version that this program reads.
        known: u32,
    },
    /// The length of the file is not that in the header.
    #[error("{}: has {found} bytes instead of {wanted}: truncated or incompletely copied, make it again with `genuma kmers compact`", path.display())]
    WrongFileLength {
        /// Path of the dictionary.
        path: PathBuf,
        /// Actual length in bytes.
        found: u64,
        /// Expected length in bytes.
        wanted: u64,
    },
    /// A part of the file is damaged.
    #[error("{}: {part} damaged ({what}): make it again with `genuma kmers compact`, and check the disk", path.display())]
    Damaged {
        /// Path of the dictionary.
        path: PathBuf,
        /// Name of the damaged or unreadable part.
        part: &'static str,
        /// Which check failed.
        what: &'static str,
    },
}
