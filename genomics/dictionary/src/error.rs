//! Errors of dictionaries.

use std::io;
use std::path::PathBuf;

/// Why a dictionary cannot be built, written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The [`crate::DictionarySpec`] or an added k-mer is invalid, or fewer k-mers were added than specified.
    #[error("cannot make this dictionary: {what}")]
    InvalidInput {
        /// What is invalid.
        what: String,
    },
    /// The memory limit is too small for the dictionary.
    #[error(
        "the dictionary needs about {} MiB of memory, but may take {}: raise --memory", needed_bytes.div_ceil(1 << 20), allowed_bytes >> 20
    )]
    MemoryLimit {
        /// Memory in bytes that the build needs up to the part that reached the limit; for the strings and counts an
        /// estimate. Later parts may need more.
        needed_bytes: u64,
        /// Memory limit in bytes.
        allowed_bytes: u64,
    },
    /// The operating system has no more memory.
    #[error("the system has no {needed_bytes} bytes of memory left")]
    NotEnoughMemory {
        /// Number of bytes that were requested.
        needed_bytes: u64,
    },
    /// The partial file could not be created or completed, or another writer has the same output.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// The file could not be written, for example because the disk is full. The error names the file.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The file could not be opened, or its header not be read.
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
        /// Name of the part that could not be read.
        part: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file does not begin with the magic bytes of a dictionary.
    #[error("{}: is not a genuma k-mer dictionary", path.display())]
    NotADictionary {
        /// Path of the file.
        path: PathBuf,
    },
    /// The format version of the file is not supported.
    #[error("{}: has dictionary version {found}, but this program reads version {known}: make it again with `genuma kmers compact`", path.display())]
    UnsupportedVersion {
        /// Path of the file.
        path: PathBuf,
        /// Format version of the file.
        found: u32,
        /// Format version that this program supports.
        known: u32,
    },
    /// The length of the file differs from the length that follows from its header.
    #[error("{}: has {found} bytes instead of {wanted}: truncated or incompletely copied, make it again with `genuma kmers compact`", path.display())]
    WrongFileLength {
        /// Path of the dictionary.
        path: PathBuf,
        /// Actual length in bytes.
        found: u64,
        /// Expected length in bytes.
        wanted: u64,
    },
    /// A part of the file is damaged, for example because its checksum is wrong.
    #[error("{}: {part} damaged ({what}): make it again with `genuma kmers compact`, and check the disk", path.display())]
    Damaged {
        /// Path of the dictionary.
        path: PathBuf,
        /// Name of the damaged part.
        part: &'static str,
        /// Which check of the part failed.
        what: &'static str,
    },
    /// The starts of the strings contradict the number of bases or k-mers, although the checksums match.
    #[error("the strings of the dictionary contradict each other: make it again with `genuma kmers compact`")]
    InconsistentStrings,
}
