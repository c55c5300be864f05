//! Simulates the reads of a sample. The modules are listed in the order of the laboratory: DNA sources, library
//! molecules, sequencer, FASTQ.

mod params;

mod fragments;
mod capture;
mod amplicon_products;
mod coverage;
mod dna_pool;

mod molecule;
mod read_structure;
mod umi_params;
mod umi;
mod damage;
mod recurrent_errors;
mod fold_back;
mod chimera;
mod slippage;
mod cfdna;
mod library;

mod adapter;
mod homopolymers;
mod quality;
mod sequencer;

mod consensus;
mod read_counts;
mod fastq;

pub(crate) use amplicon_products::AmpliconProducts;
pub(crate) use capture::TargetCopies;
pub(crate) use coverage::CoverageModel;
pub(crate) use dna_pool::{DnaComponent, DnaPool, DnaSource, FragmentSampling, draw_fragment_by_coverage};
pub(crate) use fastq::{FastqSink, SampleFastqSpec, sequence_library};
pub(crate) use fragments::CarriedVariant;
pub(crate) use fragments::{CellChromosome, ChromosomePool, GenomeMixture};
pub(crate) use library::{InsertSizeDistribution, Library, MIN_INSERT_BP_WITH_ADAPTERS};
pub(crate) use params::is_default;
pub use params::{
    AdapterType, CoverageParams, ION_TORRENT_HOMOPOLYMER_ERROR_RATE, InsertModel, LibraryParams, SequencerParams,
    SequencingParams,
};
pub use read_counts::ReadAndArtefactCounts;
pub(crate) use recurrent_errors::{AffectedStrand, LibraryRecurrentErrors, RecurrentError};
pub(crate) use sequencer::Sequencer;
pub(crate) use umi_params::ALLOWED_MEAN_FAMILY_SIZE_RANGE;
pub use umi_params::UmiParams;
