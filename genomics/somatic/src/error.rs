//! What can stop a call.

use genuma_work::{spill, unit};

use crate::count;

/// What can stop a call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reads or the reference could not be read, or a file not be written.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// Counting failed.
    #[error(transparent)]
    Count(#[from] count::Error),
    /// The panel of normals could not be read.
    #[error(transparent)]
    Panel(#[from] genuma_flash::Error),
    /// Placing failed.
    #[error(transparent)]
    Align(#[from] genuma_align::Error),
    /// A unit's file is not usable.
    #[error(transparent)]
    Unit(#[from] unit::Error),
    /// What memory had no room for is not usable.
    #[error(transparent)]
    Spill(#[from] spill::Error),
    /// What another step has left is missing or not usable, or a step cannot leave what it has.
    #[error(transparent)]
    Object(#[from] genuma_storage::object::Error),
    /// The input cannot give an answer.
    #[error("{0}")]
    Input(String),
}
