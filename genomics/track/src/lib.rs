//! Tracks known changes (the calls of an earlier tumour sample) in later samples by counting molecules. The modules are
//! in the order in which data flows through them; `pipeline` runs all stages.
mod error;
pub mod change;
mod reference_windows;
pub mod tracked_junction;
mod anchors;
mod pair_evidence;
mod mate_evidence;
mod molecules;
mod background_errors;
pub mod statistics;
pub mod verdict;
pub mod pipeline;

pub use error::Error;
