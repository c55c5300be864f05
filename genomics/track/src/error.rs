//! What may go wrong.

/// An error of tracking.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reads or a reference that cannot be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// A record that does not fit the reference, or says nothing that can be looked for.
    #[error("{record}: {what}")]
    Record {
        /// CHROM:POS:REF>ALT.
        record: String,
        /// What is wrong.
        what: String,
    },
    /// No record is left to look for.
    #[error("{0}")]
    Nothing(String),
}
