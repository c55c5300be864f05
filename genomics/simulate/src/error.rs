use std::path::{Path, PathBuf};

/// An error of simulating reads or of scoring variant calls. Each message says what failed, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be read or created.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error that the operating system reported.
        source: std::io::Error,
    },
    /// An input file has a malformed line.
    #[error("{}: line {line}: {what}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// Description of what is wrong with the line, and how to correct it.
        what: String,
    },
    /// A FASTA file cannot be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// An output file cannot be created or published.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// An output file or stream cannot be written. The message names the file, but not a stream.
    #[error("{0}")]
    Write(#[from] std::io::Error),
    /// The operating system refused to start a thread.
    #[error(
        "cannot start a thread to generate reads: {0}; stop other programs, or raise the process limit (ulimit -u)"
    )]
    Thread(std::io::Error),
    /// The parameters are invalid or contradict each other. The message says which.
    #[error("{0}")]
    Parameters(String),
}

impl Error {
    /// Returns a function that converts an I/O error to [`Error::Io`] with this path, for use with `map_err`.
    pub(crate) fn add_path_to_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_owned(), source }
    }
}

/// Result type of the functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;
