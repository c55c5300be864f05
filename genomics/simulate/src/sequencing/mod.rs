//! Reads of a sample: fragments of its chromosomes, PCR duplicates, qualities and errors, FASTQ files.

mod fastq;
mod fragments;
mod quality;

pub use fastq::{Output, sequence};
pub use fragments::{Chromosome, Pool};
pub use quality::QualityModel;

use serde::Serialize;

/// The library and the sequencer.
#[derive(Debug, Clone, Serialize)]
pub struct SequencingParams {
    /// Length of each mate, bases.
    pub read_length: usize,
    /// Mean fragment length, bp.
    pub insert_mean: f64,
    /// Its standard deviation, bp.
    pub insert_sd: f64,
    /// Share of the pairs that are PCR duplicates of another pair.
    pub duplicates: f64,
    /// Mean probability that a base is wrong.
    pub error_rate: f64,
    /// Whether read names tell where both mates come from.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub true_positions: bool,
}

impl Default for SequencingParams {
    fn default() -> Self {
        SequencingParams {
            read_length: 150,
            insert_mean: 400.0,
            insert_sd: 60.0,
            duplicates: 0.0,
            error_rate: 0.003,
            true_positions: false,
        }
    }
}
