//! What instances write, taken apart and given back to the batches of reads that it answers.

mod header;

mod sai;

mod sam;

pub use header::Program;
pub(crate) use header::{Header, Lines, sam_header};
pub(crate) use sai::Sai;
pub(crate) use sam::Sam;

use std::sync::Arc;

use crate::deal::Batch;

/// What is wrong with the output of an instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A record of another read than the one whose turn it is.
    #[error("it wrote a record of \"{found}\" where one of \"{expected}\" was due")]
    Other {
        /// The name in the record.
        found: String,
        /// The name of the read.
        expected: String,
    },
    /// A record of a read that it was not given.
    #[error("it wrote a record of \"{0}\", which is not among its reads")]
    Unknown(String),
    /// More records than reads.
    #[error("it wrote more records than it was given reads")]
    Surplus,
    /// Fewer.
    #[error("it ended without records of {templates} of its templates, the first being \"{first}\"")]
    Missing {
        /// How many templates lack records.
        templates: u64,
        /// Name of the first.
        first: String,
    },
    /// Not what this aligner writes.
    #[error("it wrote what is no {format}: {what}")]
    NoFormat {
        /// What it should be.
        format: &'static str,
        /// What is wrong.
        what: String,
    },
    /// Headers differ between instances.
    #[error("its header is not that of the other instances")]
    Header,
}

/// What an instance was given, as far as its output needs it.
pub(crate) trait Given {
    /// The batch at `index` of those that the process was given.
    fn given(&self, index: usize) -> Option<Arc<Batch>>;
    /// Records of a batch, `ended` with the last.
    fn deliver(&self, batch: &Batch, records: Vec<u8>, ended: bool);
    /// Its header, whole.
    fn header(&self, header: Vec<u8>) -> Result<(), Fault>;
}

/// A name for a message.
pub(crate) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
