//! Errors of a call.

use genuma_work::{spill, unit};

use crate::count;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reads or the reference cannot be read, or a file cannot be written.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// K-mers cannot be counted, or candidates not be selected.
    #[error(transparent)]
    Count(#[from] count::Error),
    /// The panel of normals cannot be read.
    #[error(transparent)]
    Panel(#[from] genuma_flash::Error),
    /// Contigs cannot be aligned with the reference, or `supporting.bam` not be written.
    #[error(transparent)]
    Align(#[from] genuma_align::Error),
    /// The result file of a unit is unusable.
    #[error(transparent)]
    Unit(#[from] unit::Error),
    /// Spilled data is unusable.
    #[error(transparent)]
    Spill(#[from] spill::Error),
    /// The object of another step is missing or unusable, or this step cannot write its object.
    #[error(transparent)]
    Object(#[from] genuma_storage::step_output::Error),
    /// The input gives no result, for the reason in this text.
    #[error("{0}")]
    Input(String),
}
