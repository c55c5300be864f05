//! Comparison of a normal and a tumour sample from their reads and joint k-mer counters, without alignment: identity,
//! contamination, purity, ploidy, coverage, library metrics, and the contigs or screened sequences that they contain.
//!
//! The modules are listed in the order of the data flow. Each thread, or each partition of the k-mers, fills its own
//! tally (a set of counts) while reads are counted; the tallies are then added up. Estimates are computed from a tally
//! and have a 95 % confidence interval.
pub mod confidence_interval;
mod nucleosomes;
pub mod library;
pub mod marker_kmers;
pub mod sketch;
pub mod sketches_per_tumour;
mod modal_depth;
pub mod error_threshold;
pub mod site_tally;
pub mod assay;
pub mod library_properties;
pub mod identity;
mod contamination_params;
pub mod contamination;
pub mod copy_number;
pub mod depth_and_evenness;
pub mod root_depths;
mod purity_params;
mod beta_binomial;
pub mod segments;
mod copy_states;
pub mod non_somatic;
pub mod somatic_changes;
mod purity_fit;
pub mod purity;
pub mod pair_summary;
pub mod check;
