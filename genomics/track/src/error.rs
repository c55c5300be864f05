//! The error type of the crate.

/// Why tracking fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reads or a reference cannot be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// A VCF record does not fit the reference, or is invalid.
    #[error("{record}: {what}")]
    Record {
        /// The record as CHROM:POS:REF>ALT.
        record: String,
        /// What is wrong with the record.
        what: String,
    },
    /// No change can be tracked, or the reads cannot be used. Contains the message.
    #[error("{0}")]
    NothingToTrack(String),
}
