//! Tracks known changes (the calls of an earlier tumour sample) in later samples by counting molecules. The modules are
//! in the order in which data flows through them; `pipeline` runs all stages.
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
