//! Tracks known changes (calls of an earlier tumour sample) in later samples, by molecule. The modules are listed in
//! the order of the data flow; `pipeline` runs them.
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
