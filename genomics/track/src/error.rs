//! The error type of the crate.

/// Why the changes cannot be tracked in the samples.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reads or a reference cannot be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// A VCF record does not fit the reference, or cannot be parsed.
    #[error("{record}: {what}")]
    Record {
        /// The record as CHROM:POS:REF>ALT.
        record: String,
        /// What is wrong with the record.
        what: String,
    },
    /// No change can be tracked, or the reads cannot be used; the message says why.
    #[error("{0}")]
    NothingToTrack(String),
}
