//! Tracks known changes (calls of an earlier tumour sample) in later samples, by molecule. The modules are listed in
//! the order of the data flow; `pipeline` runs them.
mod error;
/// Converts VCF records to junctions.
pub mod change;
mod reference_windows;
/// Sequences of tracked junctions with both alleles.
pub mod tracked_junction;
mod anchors;
mod pair_evidence;
mod mate_evidence;
mod molecules;
mod background_errors;
/// p-values of weighted counts, and confidence intervals.
pub mod statistics;
/// Decides whether tumour DNA is detected.
pub mod verdict;
/// Runs all stages of tracking.
pub mod pipeline;

pub use error::Error;
