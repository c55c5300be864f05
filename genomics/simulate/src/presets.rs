//! Library presets: parameter values that resemble common library types.

use serde::Serialize;

use crate::amplicons::AmpliconParams;
use crate::sequencing::{
    AdapterType, CoverageParams, ION_TORRENT_HOMOPOLYMER_ERROR_RATE, InsertModel, LibraryParams, SequencerParams,
    SequencingParams,
};
use crate::targets::{CaptureParams, TargetSource};

/// Type of a library whose reads and artefacts are simulated (`--library`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LibraryPreset {
    /// Whole genome, PCR-free, on a two-colour sequencer with binned qualities.
    Wgs,
    /// Formalin-fixed, paraffin-embedded (FFPE) tissue: short and damaged molecules.
    Ffpe,
    /// Transposase (Nextera) library: uneven coverage and many fold-back reads.
    Transposase,
    /// Old reads, as of about 2010: 76 and 100 bases, with 3' tails of quality 2.
    Old,
    /// Capture panel of a few genes: high depth, many duplicates.
    Panel,
    /// Exome: capture of the exons of all genes.
    Exome,
    /// Multiplex PCR of the targets, or of the whole genome without targets: reads begin with primers.
    Amplicon,
    /// Cell-free DNA of blood plasma: fragments of one or two nucleosomes, few molecules, many duplicates.
    Cfdna,
    /// Semiconductor sequencing (Ion Torrent): insertion and deletion errors in homopolymers.
    Ion,
}

impl LibraryPreset {
    /// All presets, in the order of the help of `--library`.
    pub const ALL_PRESETS: [LibraryPreset; 9] = [
        LibraryPreset::Wgs,
        LibraryPreset::Ffpe,
        LibraryPreset::Transposase,
        LibraryPreset::Old,
        LibraryPreset::Panel,
        LibraryPreset::Exome,
        LibraryPreset::Amplicon,
        LibraryPreset::Cfdna,
        LibraryPreset::Ion,
    ];

    /// Sets the parameters of library, coverage, sequencer and capture that the preset defines. All others keep their
    /// values.
    pub(crate) fn apply_preset_to_params(self, reads: &mut SequencingParams, captured: &mut Option<CaptureParams>) {
        let truseq = LibraryParams { adapter: Some(AdapterType::Truseq), pcr_slippage: 1.0, ..Default::default() };
        let modern = two_colour_sequencer();
        match self {
            LibraryPreset::Wgs => {
                (reads.insert_mean, reads.insert_sd) = (400.0, 90.0);
                reads.duplicates = 0.08;
                reads.library = LibraryParams {
                    short_inserts: 0.01,
                    fold_backs: 0.002,
                    chimeras: 0.003,
                    oxidation: 1e-5,
                    pcr_slippage: 0.3,
                    ..truseq
                };
                reads.coverage = CoverageParams { gc_bias: 0.3, unevenness: 0.15 };
                reads.machine = modern;
            }
            LibraryPreset::Ffpe => {
                (reads.insert_mean, reads.insert_sd) = (180.0, 60.0);
                reads.duplicates = 0.4;
                reads.library = LibraryParams {
                    fold_backs: 0.03,
                    chimeras: 0.02,
                    oxidation: 3e-4,
                    deamination: 2e-3,
                    pcr_errors: 2e-5,
                    ..truseq
                };
                reads.coverage = CoverageParams { gc_bias: 0.8, unevenness: 0.4 };
                reads.machine = modern;
            }
            LibraryPreset::Transposase => {
                (reads.insert_mean, reads.insert_sd) = (280.0, 110.0);
                reads.duplicates = 0.15;
                reads.library = LibraryParams {
                    adapter: Some(AdapterType::Nextera),
                    short_inserts: 0.06,
                    fold_backs: 0.1,
                    chimeras: 0.005,
                    oxidation: 2e-5,
                    pcr_errors: 1e-5,
                    ..truseq
                };
                reads.coverage = CoverageParams { gc_bias: 0.8, unevenness: 0.25 };
                reads.machine = modern;
            }
            LibraryPreset::Old => {
                (reads.insert_mean, reads.insert_sd) = (300.0, 50.0);
                reads.duplicates = 0.2;
                reads.error_rate = 0.006;
                reads.library =
                    LibraryParams { short_inserts: 0.01, chimeras: 0.01, oxidation: 5e-4, pcr_errors: 1e-5, ..truseq };
                reads.coverage = CoverageParams { gc_bias: 0.6, unevenness: 0.3 };
                reads.machine = SequencerParams {
                    read_lengths: vec![100, 76],
                    quality_tails: 0.1,
                    n_rate: 1e-3,
                    sequencing_slippage: 1.0,
                    ..Default::default()
                };
            }
            LibraryPreset::Panel | LibraryPreset::Exome => self.apply_targeted_assay(reads, captured, truseq, modern),
            LibraryPreset::Amplicon | LibraryPreset::Cfdna | LibraryPreset::Ion => {
                self.apply_assay(reads, truseq, modern)
            }
        }
    }

    /// Sets the parameters of the presets with capture. `library` and `machine` have the values of current whole-genome
    /// libraries.
    fn apply_targeted_assay(
        self,
        reads: &mut SequencingParams,
        captured: &mut Option<CaptureParams>,
        library: LibraryParams,
        machine: SequencerParams,
    ) {
        let capture = |targets| CaptureParams { targets, off_target: 0.01, fewer_variants: true };
        match self {
            LibraryPreset::Panel => {
                (reads.insert_mean, reads.insert_sd) = (220.0, 60.0);
                reads.duplicates = 0.5;
                reads.library = LibraryParams {
                    short_inserts: 0.04,
                    fold_backs: 0.005,
                    chimeras: 0.005,
                    oxidation: 1e-4,
                    pcr_errors: 1e-5,
                    ..library
                };
                reads.coverage = CoverageParams { gc_bias: 0.5, unevenness: 0.0 };
                reads.machine = machine;
                *captured = Some(capture(TargetSource::Panel));
            }
            LibraryPreset::Exome => {
                (reads.insert_mean, reads.insert_sd) = (200.0, 50.0);
                reads.duplicates = 0.25;
                reads.library = LibraryParams {
                    short_inserts: 0.03,
                    fold_backs: 0.005,
                    chimeras: 0.005,
                    oxidation: 2e-4,
                    pcr_errors: 1e-5,
                    ..library
                };
                reads.coverage = CoverageParams { gc_bias: 0.5, unevenness: 0.0 };
                reads.machine = machine;
                *captured = Some(capture(TargetSource::Exome));
            }
            _ => {}
        }
    }

    /// Sets the parameters of the presets for amplicons, cell-free DNA and Ion Torrent. `library` and `machine` have
    /// the values of current whole-genome libraries.
    fn apply_assay(self, reads: &mut SequencingParams, library: LibraryParams, machine: SequencerParams) {
        match self {
            LibraryPreset::Amplicon => {
                reads.duplicates = 0.5;
                reads.library = LibraryParams {
                    oxidation: 2e-5,
                    pcr_errors: 1e-5,
                    amplicons: Some(AmpliconParams::default()),
                    ..library
                };
                reads.machine = machine;
            }
            LibraryPreset::Cfdna => {
                (reads.insert_mean, reads.insert_sd) = (167.0, 9.0);
                reads.duplicates = 0.7;
                reads.library = LibraryParams {
                    insert_model: InsertModel::Cfdna,
                    chimeras: 0.002,
                    oxidation: 2e-5,
                    pcr_errors: 1e-5,
                    ..library
                };
                reads.coverage = CoverageParams { gc_bias: 0.5, unevenness: 0.15 };
                reads.machine = machine;
            }
            LibraryPreset::Ion => {
                reads.read_length = 200;
                (reads.insert_mean, reads.insert_sd) = (200.0, 40.0);
                reads.duplicates = 0.2;
                reads.library = LibraryParams { short_inserts: 0.01, oxidation: 2e-5, pcr_errors: 1e-5, ..library };
                reads.coverage = CoverageParams { gc_bias: 0.6, unevenness: 0.2 };
                reads.machine = SequencerParams {
                    homopolymer_errors: ION_TORRENT_HOMOPOLYMER_ERROR_RATE,
                    trimmed: 0.1,
                    sequencing_slippage: 1.0,
                    ..Default::default()
                };
            }
            _ => {}
        }
    }
}

/// A current sequencer with two-colour chemistry.
fn two_colour_sequencer() -> SequencerParams {
    SequencerParams {
        two_colour: true,
        binned_qualities: true,
        trimmed: 0.01,
        n_rate: 2e-4,
        sequencing_slippage: 1.0,
        ..Default::default()
    }
}
