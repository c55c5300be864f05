//! Parameters of library preparation, coverage and sequencer.

use serde::Serialize;

use super::umi_params::UmiParams;
use crate::amplicons::AmpliconParams;

/// Parameters of library preparation, coverage and sequencer.
#[derive(Debug, Clone, Serialize)]
pub struct SequencingParams {
    /// Length of each mate, bases.
    pub read_length: usize,
    /// Mean length of the inserts, bp.
    pub insert_mean: f64,
    /// Standard deviation of the insert length, bp.
    pub insert_sd: f64,
    /// Share of the read pairs that are PCR duplicates of another pair, 0 to 1.
    pub duplicates: f64,
    /// Mean probability of a substitution error by the sequencer, per base. It has a lower limit, see
    /// `QualityModel::with_error_rate`.
    pub error_rate: f64,
    /// Whether read names contain the true reference positions of both mates.
    #[serde(skip_serializing_if = "is_default")]
    pub true_positions: bool,
    /// Parameters of library preparation.
    #[serde(skip_serializing_if = "is_default")]
    pub library: LibraryParams,
    /// Parameters of uneven coverage.
    #[serde(skip_serializing_if = "is_default")]
    pub coverage: CoverageParams,
    /// Sequencer artefacts besides substitution errors.
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

/// Type of the adapters of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdapterType {
    /// Adapters of Illumina TruSeq, which are ligated to the fragments.
    Truseq,
    /// Nextera adapters, inserted by a transposase.
    Nextera,
}

/// Type of the distribution of insert lengths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InsertModel {
    /// Normal distribution with the mean [`SequencingParams::insert_mean`] and the standard deviation
    /// [`SequencingParams::insert_sd`].
    #[default]
    Normal,
    /// Lengths of cell-free DNA: one nucleosome with its linker (167 bp), shorter fragments in steps of one helix turn,
    /// and two nucleosomes.
    Cfdna,
}

/// Parameters of library preparation. All effects are off by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LibraryParams {
    /// Adapters that a read contains if its molecule is shorter. `None`: TruSeq adapters if the mean insert is shorter
    /// than a read, or with short inserts, fold-backs, amplicons or cell-free DNA; otherwise none.
    pub adapter: Option<AdapterType>,
    /// Type of the distribution of insert lengths.
    #[serde(skip_serializing_if = "is_default")]
    pub insert_model: InsertModel,
    /// Share of the inserts that are not drawn from the insert model, but are at most as long as a read, 0 to 1.
    pub short_inserts: f64,
    /// Share of the molecules that become fold-backs, whose second half is the reverse complement of the first, if they
    /// have an inverted repeat, 0 to 1.
    pub fold_backs: f64,
    /// Share of the molecules that are chimeras, which are ligated from two fragments, 0 to 1.
    pub chimeras: f64,
    /// Probability that a G is oxidised and read as T, per G.
    pub oxidation: f64,
    /// Probability that a C is deaminated and read as T, per C.
    pub deamination: f64,
    /// Probability of a substitution error in early PCR cycles, per base.
    pub pcr_errors: f64,
    /// Factor of the rate of PCR slippage (length changes of tandem repeats); 1 is the rate of PCR-amplified libraries.
    pub pcr_slippage: f64,
    /// Amplicons whose PCR products are sequenced. `None` sequences random fragments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amplicons: Option<AmpliconParams>,
    /// Parameters of the UMIs of the molecules. `None` simulates a library without UMIs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub umi: Option<UmiParams>,
}

/// Parameters of uneven coverage: GC bias, and a coverage wave along the genome.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CoverageParams {
    /// Strength of the GC bias. At 1, fragments with 25 % or 70 % GC have a third of the coverage of those with optimal
    /// GC; at 0 there is no bias.
    pub gc_bias: f64,
    /// Coefficient of variation of the coverage over distances of a few kb.
    pub unevenness: f64,
}

/// Rate of homopolymer errors of Ion Torrent sequencers, per base of the homopolymer (chosen; similar to the indel
/// rates in Bragg et al., PLOS Computational Biology 2013).
pub const ION_TORRENT_HOMOPOLYMER_ERROR_RATE: f64 = 0.007;

/// Sequencer artefacts besides substitution errors. All are off by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SequencerParams {
    /// Possible read lengths, bases; one is drawn for each pair. If not empty, they replace
    /// [`SequencingParams::read_length`].
    pub read_lengths: Vec<usize>,
    /// Share of the mates that are shortened at their 3' end, as by trimming, 0 to 1.
    pub trimmed: f64,
    /// Whether the sequencer uses two colours, so that it reads a missing signal as G.
    pub two_colour: bool,
    /// Whether base qualities are binned to four values.
    pub binned_qualities: bool,
    /// Share of the mates that end with a tail of bases of quality 2, 0 to 1.
    pub quality_tails: f64,
    /// Probability that a base is called N, per base.
    pub n_rate: f64,
    /// Factor of the rate of slippage during sequencing (length changes of tandem repeats); 1 is the usual rate.
    pub sequencing_slippage: f64,
    /// Probability of an insertion or deletion in a homopolymer of two or more bases, per base of the homopolymer.
    #[serde(skip_serializing_if = "is_default")]
    pub homopolymer_errors: f64,
}

impl SequencingParams {
    /// Returns the possible read lengths, bases. There is at least one.
    pub fn possible_read_lengths(&self) -> &[usize] {
        if self.machine.read_lengths.is_empty() {
            std::slice::from_ref(&self.read_length)
        } else {
            &self.machine.read_lengths
        }
    }

    /// Returns the largest possible read length, bases.
    pub(crate) fn longest_read_bp(&self) -> usize {
        self.possible_read_lengths().iter().copied().max().unwrap_or(self.read_length)
    }

    /// Returns the adapters that reads may contain: those given, or else TruSeq adapters if the mean insert is shorter
    /// than a read, or with short inserts, fold-backs, amplicons or cell-free DNA. `None` if none of this applies.
    pub(crate) fn adapter_type_in_reads(&self) -> Option<AdapterType> {
        let library = &self.library;
        let short = self.insert_mean < self.longest_read_bp() as f64;
        let reached = short || library.short_inserts > 0.0 || library.fold_backs > 0.0;
        let reached = reached || library.amplicons.is_some() || library.insert_model == InsertModel::Cfdna;
        library.adapter.or(reached.then_some(AdapterType::Truseq))
    }
}

/// Returns whether a value equals its default. Serde leaves such parameters out of `simulate.json`.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
