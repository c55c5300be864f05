//! Errors of a call.

use genuma_work::{spill, unit};

use crate::{count, panel_lookup};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An input file, such as reads, reference, targets or known variants, cannot be read or does not fit the
    /// reference.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// k-mers cannot be counted, or candidate k-mers cannot be selected.
    #[error(transparent)]
    Count(#[from] count::Error),
    /// The panel of normals cannot be read, or does not fit the memory.
    #[error(transparent)]
    Panel(#[from] panel_lookup::Error),
    /// Contigs cannot be aligned with the reference, or `supporting.bam` cannot be written.
    #[error(transparent)]
    Align(#[from] genuma_align::Error),
    /// The stored result of a unit is unusable.
    #[error(transparent)]
    Unit(#[from] unit::Error),
    /// Spilled data cannot be written or read, or is damaged.
    #[error(transparent)]
    Spill(#[from] spill::Error),
    /// The object of another task is missing or unusable, or the object of this task cannot be written (distributed
    /// call).
    #[error(transparent)]
    Object(#[from] genuma_storage::step_output::Error),
    /// An input file is no longer the planned one.
    #[error(transparent)]
    InputChanged(Box<dyn std::error::Error + Send + Sync>),
    /// The input gives no result. Contains the reason.
    #[error("{0}")]
    Input(String),
}
