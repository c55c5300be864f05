//! Simulates a tumour and a normal sample with known truth, and scores variant calls against the truth. The modules
//! are listed in the order in which data flows through them.
mod error;
mod rng;

mod presets;
mod params;

mod genome;
mod synthetic_genome;
mod human_like_genome;
mod repeated_kmers;
mod tandem_repeats;

mod occupied_regions;
mod healthy_ploidy;
mod item_end_index;
mod reference_origins;
mod chromosome_sequence;
mod karyotype;
mod variant;
mod targets;
mod amplicons;

mod tumour;
mod variant_placer;
mod small_variants;
mod copy_numbers;
mod somatic;
mod linked_variants;
mod integrations;
mod msi;
mod germline;
mod foreign_person;
mod mitochondrial_variants;

mod cell_genomes;
mod samples;
mod sequencing;
mod recurrent_errors;
mod truth;
mod copy_number_summary;
mod pipeline;

pub mod evaluate;

pub use amplicons::AmpliconParams;
pub use copy_numbers::{AneuploidContig, CopyNumberParams};
pub use error::{Error, Result};
pub use foreign_person::{ForeignReadParams, Relationship};
pub use genome::Genome;
pub use germline::GermlineParams;
pub use integrations::IntegrationParams;
pub use linked_variants::LinkedVariantParams;
pub use msi::MsiParams;
pub use params::{GenomeSource, SamplePairParams, SimulationParams};
pub use pipeline::{SampleRole, SimulationSummary, simulate_to_folder, write_interleaved_reads_of_sample};
pub use presets::LibraryPreset;
pub use recurrent_errors::RecurrentErrorParams;
pub use sequencing::{
    AdapterType, CoverageParams, InsertModel, LibraryParams, ReadAndArtefactCounts, SequencerParams, SequencingParams,
    UmiParams,
};
pub use somatic::SomaticParams;
pub use targets::{CaptureParams, TargetSource};
