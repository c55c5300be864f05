//! Parses the output of instances and assigns the records to the batches of reads that they belong to.

mod header;

mod sai;

mod sam;

pub use header::GenumaPgLine;
pub(crate) use header::{InstanceAndPlainCommandLines, RewrittenInstanceHeader, rewrite_sam_header};
pub(crate) use sai::SaiParser;
pub(crate) use sam::SamParser;

use std::sync::Arc;

use crate::batching::InstanceBatch;

/// Error in the output of an instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AlignerOutputError {
    /// The aligner wrote a record of another read than the next one, although its output should be in the order of the
    /// reads.
    #[error(
        "the aligner wrote a record of read \"{found}\" where \"{expected}\" was expected: its output must be in the order of the reads; use --strategy default"
    )]
    UnexpectedRead {
        /// Read name in the record.
        found: String,
        /// Name of the expected read.
        expected: String,
    },
    /// The aligner wrote a record of a read that the instance was not given.
    #[error("the aligner wrote a record of \"{0}\", which is not among its reads; use --strategy default")]
    UnknownRead(String),
    /// The aligner wrote more records than it was given reads.
    #[error("the aligner wrote more records than it was given reads; use --strategy default")]
    TooManyRecords,
    /// The aligner wrote no records for some of its reads.
    #[error(
        "the aligner wrote no record for {templates} of its reads or pairs (first: \"{first}\"); remove the option that drops reads"
    )]
    MissingRecords {
        /// Number of templates without records.
        templates: u64,
        /// Name of the first template without records.
        first: String,
    },
    /// The output does not have the format of the aligner.
    #[error("it wrote invalid {format}: {what}")]
    InvalidFormat {
        /// The format that the output should have: SAM or SAI.
        format: &'static str,
        /// Description of the error in the output, for the user.
        what: String,
    },
    /// The header of this instance differs from the header of the first instance.
    #[error("its header differs from that of the other instances")]
    DifferentHeader,
}

/// Receives the records that an aligner process wrote, and knows the batches that are assigned to the process.
pub(crate) trait AlignerOutputReceiver {
    /// Returns batch number `index`, from 0, of those assigned to the process; `None` if fewer are assigned.
    fn assigned_batch(&self, index: usize) -> Option<Arc<InstanceBatch>>;
    /// Delivers records of a batch; `ended` is true with the last records of the batch.
    fn deliver_records(&self, batch: &InstanceBatch, records: Vec<u8>, ended: bool);
    /// Takes the complete SAM header that the instance wrote.
    ///
    /// # Errors
    /// The header differs from that of another instance.
    fn accept_header(&self, header: Vec<u8>) -> Result<(), AlignerOutputError>;
}

/// Converts a read name to text for messages; bytes that are not UTF-8 are replaced.
pub(crate) fn read_name_to_text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
