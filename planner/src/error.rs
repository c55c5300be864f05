//! Errors of reading the input of a call, summaries of earlier calls and tables of machines.

use std::io;
use std::path::PathBuf;

/// Why a prediction has no input.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A summary or a table of machines cannot be read.
    #[error("{}: cannot read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The size of a file of reads cannot be found.
    #[error("{}", path.display())]
    Examine {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The reads cannot be estimated.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// The panel of normals is no usable k-mer table.
    #[error(transparent)]
    Table(#[from] genuma_flash::Error),
    /// The panel of normals is no usable dictionary.
    #[error(transparent)]
    Dictionary(#[from] genuma_dictionary::Error),
    /// A file is not the summary of a call.
    #[error("{}: is no summary.json of `genuma call`: {source}", path.display())]
    InvalidSummary {
        /// The file.
        path: PathBuf,
        /// Where it is not as expected.
        source: serde_json::Error,
    },
    /// The summary is of a call without a normal.
    #[error("{}: the summary has one sample, but tumour and normal are needed", path.display())]
    SingleSampleSummary {
        /// The file.
        path: PathBuf,
    },
    /// A table of machines lacks a column or a machine, or a value of it is invalid.
    #[error("{}{}: {fault}", path.display(), line.map_or_else(String::new, |line| format!(", line {line}")))]
    InvalidMachineTable {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1; `None` if the fault is in the table as a whole or in the names of columns.
        line: Option<u64>,
        /// What is wrong.
        fault: String,
    },
}
