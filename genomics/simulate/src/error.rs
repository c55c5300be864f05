use std::path::{Path, PathBuf};

/// What can go wrong while simulating or scoring. Every message says what, where and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or made.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is there but its content is not what it should be.
    #[error("{}: line {line}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// What is wrong and what to do.
        what: String,
    },
    /// The genome cannot be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// A file cannot be made.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// An output file could not be written; the system's reason names it.
    #[error("{0}")]
    Write(#[from] std::io::Error),
    /// The system refuses to start a thread.
    #[error(
        "no thread to make reads with: {0}; stop other programs, or raise the limit of processes (ulimit -u)"
    )]
    Thread(std::io::Error),
    /// Parameters that cannot be met.
    #[error("{0}")]
    Parameters(String),
}

impl Error {
    /// For `map_err` on file operations: remembers which file it was.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_owned(), source }
    }
}

/// Shorthand.
pub type Result<T> = std::result::Result<T, Error>;
