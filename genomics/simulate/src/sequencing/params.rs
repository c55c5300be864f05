//! Parameters of the library and the sequencer.

use serde::Serialize;

use super::umi_params::UmiParams;
use crate::amplicons::AmpliconParams;

/// Parameters of the library and the sequencer.
#[derive(Debug, Clone, Serialize)]
pub struct SequencingParams {
    /// Length of each mate, bases.
    pub read_length: usize,
    /// Mean insert length, bp.
    pub insert_mean: f64,
    /// Standard deviation of the insert length, bp.
    pub insert_sd: f64,
    /// Share of the pairs that are PCR duplicates of another pair.
    pub duplicates: f64,
    /// Mean probability of a wrong base.
    pub error_rate: f64,
    /// Whether read names report the true origin of both mates.
    #[serde(skip_serializing_if = "is_default")]
    pub true_positions: bool,
    /// Parameters of library preparation.
    #[serde(skip_serializing_if = "is_default")]
    pub library: LibraryParams,
    /// Parameters of uneven coverage.
    #[serde(skip_serializing_if = "is_default")]
    pub coverage: CoverageParams,
    /// Sequencer artefacts other than substitutions.
    #[serde(skip_serializing_if = "is_default")]
    pub machine: SequencerParams,
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
            library: LibraryParams::default(),
            coverage: CoverageParams::default(),
            machine: SequencerParams::default(),
        }
    }
}

/// Adapter type of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdapterType {
    /// Adapters of Illumina TruSeq, which are ligated to the fragments.
    Truseq,
    /// Nextera adapters, inserted by a transposase.
    Nextera,
}

/// Distribution of the insert lengths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InsertModel {
    /// Normal distribution with the mean and the standard deviation of the parameters.
    #[default]
    Normal,
    /// Cell-free DNA: nucleosomes with their linker (167 bp), shorter fragments in steps of a turn of the helix, and
    /// pairs of nucleosomes.
    Cfdna,
}

/// Parameters of library preparation. All effects are off by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LibraryParams {
    /// Adapters that mates of short molecules read into. Without adapters no fragment is shorter than a read.
    pub adapter: Option<AdapterType>,
    /// Distribution of the insert lengths.
    #[serde(skip_serializing_if = "is_default")]
    pub insert_model: InsertModel,
    /// Share of the fragments that are not longer than a read.
    pub short_inserts: f64,
    /// Share of the molecules that are fold-backs.
    pub fold_backs: f64,
    /// Share of the molecules that are ligated from two fragments.
    pub chimeras: f64,
    /// Probability that a G is oxidised and read as T, per base.
    pub oxidation: f64,
    /// Probability that a C is deaminated and read as T, per base.
    pub deamination: f64,
    /// Probability of a substitution by early PCR, per base.
    pub pcr_errors: f64,
    /// Factor for length changes of tandem repeats by PCR; 1 matches PCR-amplified libraries.
    pub pcr_slippage: f64,
    /// Amplicons whose products are sequenced. `None` sequences random fragments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amplicons: Option<AmpliconParams>,
    /// UMIs of the molecules. `None` gives no UMIs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub umi: Option<UmiParams>,
}

/// Parameters of uneven coverage: waves along the genome, GC bias, and dropout.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CoverageParams {
    /// Strength of the GC bias. At 1, fragments of 25 % or 70 % GC have a third of the coverage.
    pub gc_bias: f64,
    /// Coefficient of variation of the coverage over distances of a few kb.
    pub unevenness: f64,
}

/// Homopolymer errors of Ion Torrent sequencers, per base of the homopolymer (chosen: of the order of the indel rates in
/// Bragg et al., PLOS Computational Biology 2013).
pub const ION_HOMOPOLYMER_ERRORS: f64 = 0.007;

/// Sequencer artefacts other than substitutions. All are off by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SequencerParams {
    /// Read lengths, drawn per pair. If not empty, they replace [`SequencingParams::read_length`].
    pub read_lengths: Vec<usize>,
    /// Share of the mates that are trimmed at their 3' end.
    pub trimmed: f64,
    /// Whether the sequencer has two colours and reads a missing signal as G.
    pub two_colour: bool,
    /// Whether qualities are binned to four values.
    pub binned_qualities: bool,
    /// Share of the mates whose 3' part has quality 2.
    pub quality_tails: f64,
    /// Probability that a base is called N, per base.
    pub n_rate: f64,
    /// Factor for length changes of tandem repeats by sequencing; 1 is usual.
    pub sequencing_slippage: f64,
    /// Probability of an insertion or deletion in a homopolymer of at least two bases, for each of its bases.
    #[serde(skip_serializing_if = "is_default")]
    pub homopolymer_errors: f64,
}

impl SequencingParams {
    /// Returns the possible read lengths, bases; never empty.
    pub fn read_lengths(&self) -> &[usize] {
        if self.machine.read_lengths.is_empty() {
            std::slice::from_ref(&self.read_length)
        } else {
            &self.machine.read_lengths
        }
    }

    /// Returns the longest read length, bases.
    pub(crate) fn longest_read_bp(&self) -> usize {
        self.read_lengths().iter().copied().max().unwrap_or(self.read_length)
    }

    /// Returns the adapters of the library; `None` if the library names none and no read is long enough to reach one.
    pub fn library_adapter(&self) -> Option<AdapterType> {
        let library = &self.library;
        let short = self.insert_mean < self.longest_read_bp() as f64;
        let reached = short || library.short_inserts > 0.0 || library.fold_backs > 0.0;
        let reached = reached || library.amplicons.is_some() || library.insert_model == InsertModel::Cfdna;
        library.adapter.or(reached.then_some(AdapterType::Truseq))
    }
}

/// Returns whether a value equals its default. Serde skips such parameters.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
