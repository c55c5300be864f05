//! All parameters of a simulation.

use std::path::PathBuf;

use serde::Serialize;

use crate::amplicons::AmpliconParams;
use crate::copy_numbers::CopyNumberParams;
use crate::error::{Error, Result};
use crate::foreign_person::{ForeignReadParams, Relationship};
use crate::germline::GermlineParams;
use crate::human_like_genome;
use crate::integrations::IntegrationParams;
use crate::linked_variants::LinkedVariantParams;
use crate::msi::MsiParams;
use crate::presets::LibraryPreset;
use crate::recurrent_errors::RecurrentErrorParams;
use crate::rng::{RandomStream, Rng};
use crate::sequencing::{ALLOWED_MEAN_FAMILY_SIZE_RANGE, MIN_INSERT_BP_WITH_ADAPTERS, SequencingParams, is_default};
use crate::somatic::SomaticParams;
use crate::targets::CaptureParams;
use genuma_reads::ReadStructures;

/// Source of the reference genome.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GenomeSource {
    /// The sequences of this FASTA file.
    File(PathBuf),
    /// A synthetic genome with random sequence and repeats, in a few contigs.
    Made {
        /// Total length of all contigs, bp.
        length: usize,
        /// Number of contigs, which have unequal lengths.
        contigs: usize,
        /// Number of bases that are written as copies of repeat families and of recent segmental duplications, as share
        /// of the genome (0 to 1). The final share is lower, because later copies overwrite earlier ones. `None` uses
        /// the default of about one third.
        #[serde(skip_serializing_if = "Option::is_none")]
        repeats: Option<f64>,
    },
    /// A synthetic genome with the chromosome names, repeat content and gaps of the human genome.
    Human {
        /// Total length of all chromosomes, bp.
        length: usize,
    },
}

/// Depth of both samples, and their shares of tumour cells.
#[derive(Debug, Clone, Serialize)]
pub struct SamplePairParams {
    /// Mean depth of the tumour sample, or of its capture targets or amplicons if it has any, in reads.
    pub depth_tumor: f64,
    /// Mean depth of the normal sample, or of its capture targets or amplicons if it has any, in reads.
    pub depth_normal: f64,
    /// Share of tumour cells among the patient's cells in the tumour sample, 0 to 1.
    pub purity: f64,
    /// Share of tumour cells among the patient's cells in the normal sample (tumour in normal), 0 to 1.
    pub contamination: f64,
    /// Mean depth of the synthetic mitochondrial genome in both samples, in reads. With 0 there is no mitochondrial
    /// genome.
    #[serde(skip_serializing_if = "is_default")]
    pub mitochondrion: f64,
}

impl Default for SamplePairParams {
    fn default() -> Self {
        SamplePairParams { depth_tumor: 30.0, depth_normal: 30.0, purity: 1.0, contamination: 0.0, mitochondrion: 0.0 }
    }
}

/// All parameters that influence the result of a simulation. The number of threads and the output folder do not, and
/// are not included. Optional parameters at their default are left out of `simulate.json`.
#[derive(Debug, Clone, Serialize)]
pub struct SimulationParams {
    /// Source of the reference genome.
    pub genome: GenomeSource,
    /// Germline variants of the patient.
    pub germline: GermlineParams,
    /// Somatic variants of the tumour.
    pub somatic: SomaticParams,
    /// Numbers of variant clusters and MNVs: somatic variants close to each other on one haplotype.
    #[serde(skip_serializing_if = "is_default")]
    pub linked: LinkedVariantParams,
    /// Foreign sequence (such as a virus) that is inserted into the tumour's genome.
    #[serde(skip_serializing_if = "is_default")]
    pub integrated: IntegrationParams,
    /// Somatic length changes of tandem repeats (microsatellite instability).
    #[serde(skip_serializing_if = "is_default")]
    pub unstable: MsiParams,
    /// Copy-number changes of the tumour.
    #[serde(skip_serializing_if = "is_default")]
    pub copies: CopyNumberParams,
    /// Depth of both samples, and their shares of tumour cells.
    pub samples: SamplePairParams,
    /// Reads from another person or species in the samples.
    #[serde(skip_serializing_if = "is_default")]
    pub foreign: ForeignReadParams,
    /// Sequencing errors that recur at the same sites in every library.
    #[serde(skip_serializing_if = "is_default")]
    pub recurrent: RecurrentErrorParams,
    /// Parameters of target capture. `None` sequences the whole genome, or amplicons of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureParams>,
    /// Read and fragment lengths, errors, and artefacts of library and sequencer.
    pub sequencing: SequencingParams,
    /// Library preset that the user chose, or `None`. Its settings are already applied to the other parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<LibraryPreset>,
    /// Random seed. The same seed and parameters give the same output bytes.
    pub seed: u64,
    /// Random seed of the reads. With another value than `seed`, other reads of the same patient and tumour are
    /// simulated. `None` uses `seed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_seed: Option<u64>,
}

impl Default for SimulationParams {
    fn default() -> Self {
        SimulationParams {
            genome: GenomeSource::Made { length: 1_000_000, contigs: 3, repeats: None },
            germline: GermlineParams::default(),
            somatic: SomaticParams::default(),
            linked: LinkedVariantParams::default(),
            integrated: IntegrationParams::default(),
            unstable: MsiParams::default(),
            copies: CopyNumberParams::default(),
            samples: SamplePairParams::default(),
            foreign: ForeignReadParams::default(),
            recurrent: RecurrentErrorParams::default(),
            capture: None,
            sequencing: SequencingParams::default(),
            library: None,
            seed: 1,
            reads_seed: None,
        }
    }
}

/// Minimum number of template bases of a read with a UMI.
const MIN_TEMPLATE_BP: usize = 20;

fn is_share(x: f64) -> bool {
    (0.0..=1.0).contains(&x)
}

impl SimulationParams {
    /// Applies a library preset: sets the parameters of library, coverage, sequencer and capture that the preset
    /// defines. All other parameters keep their values.
    pub fn apply_library_preset(&mut self, preset: LibraryPreset) {
        self.library = Some(preset);
        preset.apply_preset_to_params(&mut self.sequencing, &mut self.capture);
    }

    /// Creates the random number generator for one purpose. Generators for reads use `reads_seed` if it is set.
    pub(crate) fn rng_for_stream(&self, of: RandomStream) -> Rng {
        let seed = match of {
            RandomStream::Tumour | RandomStream::Normal => self.reads_seed.unwrap_or(self.seed),
            _ => self.seed,
        };
        Rng::from_seed_and_labels(seed, &[of as u64])
    }

    /// Returns whether the summary of the simulation has the numbers of reads and artefacts: if any of these effects is
    /// simulated: effects of library, coverage and sequencer, foreign reads, copy-number changes, recurrent errors,
    /// capture, mitochondria, adapters. Other effects do not count, such as PCR duplicates, tumour in normal, linked
    /// variants and MSI.
    pub(crate) fn should_report_read_counts(&self) -> bool {
        let reads = &self.sequencing;
        !is_default(&reads.library)
            || !is_default(&reads.coverage)
            || !is_default(&reads.machine)
            || !is_default(&self.foreign)
            || !is_default(&self.copies)
            || self.recurrent.places > 0
            || self.capture.is_some()
            || self.samples.mitochondrion > 0.0
            || reads.adapter_type_in_reads().is_some()
    }

    /// Checks that shares, depths, lengths and rates are within their limits, and that no parameters contradict each
    /// other. The shares of the subclones are checked when the tumour is created.
    ///
    /// # Errors
    /// Returns an error that names the invalid parameters.
    pub(crate) fn validate(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::Parameters(what.into()));
        let (samples, reads) = (&self.samples, &self.sequencing);
        let shares = [
            samples.purity,
            samples.contamination,
            self.somatic.tandem_share,
            self.unstable.share,
            self.germline.homozygous_share,
            self.copies.aneuploidy,
            self.copies.subclonal,
            self.foreign.tumor,
            self.foreign.normal,
            self.capture.as_ref().map_or(0.0, |c| c.off_target),
        ];
        if !shares.into_iter().all(is_share) || !(0.0..0.95).contains(&reads.duplicates) {
            return wrong("purity, contamination and other shares must be between 0 and 1 (duplicates below 0.95)");
        }
        if samples.depth_tumor <= 0.0 || samples.depth_normal <= 0.0 {
            return wrong("--depth-tumor and --depth-normal must be above 0");
        }
        if samples.mitochondrion < 0.0 {
            return wrong("the depth of the mitochondrial genome must not be negative");
        }
        if let GenomeSource::Made { repeats: Some(repeats), .. } = self.genome
            && !is_share(repeats)
        {
            return wrong("--repeats must be between 0 and 1");
        }
        if let GenomeSource::Human { length } = self.genome
            && length < human_like_genome::MIN_GENOME_BP
        {
            return wrong("a human-like genome must have at least 1000000 bases");
        }
        if !reads.possible_read_lengths().iter().all(|l| (20..=10_000).contains(l)) {
            return wrong("--read-length and --read-lengths must be between 20 and 10000");
        }
        if reads.insert_mean < MIN_INSERT_BP_WITH_ADAPTERS as f64 || reads.insert_sd < 0.0 {
            return wrong("the mean insert length must be at least 30 bp, and its standard deviation not negative");
        }
        if !(0.0..0.2).contains(&reads.error_rate) {
            return wrong("--error-rate must be between 0 and 0.2");
        }
        self.validate_artefacts()
    }

    fn validate_artefacts(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::Parameters(what.into()));
        let (library, machine) = (&self.sequencing.library, &self.sequencing.machine);
        let shares =
            [library.short_inserts, library.fold_backs, library.chimeras, machine.trimmed, machine.quality_tails];
        if !shares.into_iter().all(is_share) || library.fold_backs + library.chimeras > 1.0 {
            return wrong(
                "shares of molecules and mates must be between 0 and 1, also the sum of fold-backs and chimeras",
            );
        }
        let rates =
            [library.oxidation, library.deamination, library.pcr_errors, machine.n_rate, machine.homopolymer_errors];
        if !rates.into_iter().all(|r| (0.0..=0.5).contains(&r)) {
            return wrong("rates of DNA damage, PCR errors, homopolymer errors and N must be between 0 and 0.5");
        }
        let factors = [
            library.pcr_slippage,
            machine.sequencing_slippage,
            self.sequencing.coverage.gc_bias,
            self.sequencing.coverage.unevenness,
        ];
        if !factors.into_iter().all(|f| (0.0..=10.0).contains(&f)) {
            return wrong("slippage, GC bias and unevenness of coverage must be between 0 and 10");
        }
        if self.copies.amplifications > 0 && !self.copies.amplified_copies.iter().all(|n| (3..=1000).contains(n)) {
            return wrong("--amplified-copies must be between 3 and 1000");
        }
        if self.copies.amplifications > 0 && self.copies.amplified_copies.is_empty() {
            return wrong("--amplifications needs --amplified-copies, such as 10,30,100");
        }
        if self.foreign.genome.is_some() && self.foreign.tumor + self.foreign.normal == 0.0 {
            return wrong("--foreign-genome needs --foreign-tumor or --foreign-normal");
        }
        if self.foreign.kin != Relationship::Unrelated
            && (self.foreign.tumor + self.foreign.normal == 0.0 || self.foreign.genome.is_some())
        {
            return wrong(
                "--foreign-kin needs --foreign-tumor or --foreign-normal, and cannot be used with --foreign-genome",
            );
        }
        self.validate_assays()
    }

    /// Checks the parameters of amplicons and UMIs.
    fn validate_assays(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::Parameters(what.into()));
        let library = &self.sequencing.library;
        if let Some(umi) = &library.umi {
            let (low, high) = ALLOWED_MEAN_FAMILY_SIZE_RANGE;
            if !(low..=high).contains(&umi.mean_family_size) || self.sequencing.duplicates > 0.0 {
                return wrong("the mean family size must be between 0.1 and 100; it replaces the share of duplicates");
            }
            let ReadStructures([first, second]) = &umi.structures;
            if umi.structures.umi_bp() == 0 || first.max_template_bp().or(second.max_template_bp()).is_some() {
                return wrong("--umi: the structure must have UMI bases (M) and end with +T, such as 3M1S+T");
            }
            if umi.duplex && first != second {
                return wrong("duplex sequencing needs the same structure for both reads");
            }
            let shortest = self.sequencing.possible_read_lengths().iter().min().copied().unwrap_or(0);
            if first.num_bases_before_template().max(second.num_bases_before_template()) + MIN_TEMPLATE_BP > shortest {
                return wrong("reads must have at least 20 bases behind the UMI");
            }
        }
        if let Some(AmpliconParams { length_bp, primer_bp, .. }) = library.amplicons {
            let ordered = primer_bp.0 <= primer_bp.1 && length_bp.0 <= length_bp.1;
            if !ordered || primer_bp.0 == 0 || length_bp.0 <= 3 * primer_bp.1 {
                return wrong("amplicons must be longer than three primers, and primers must have at least one base");
            }
            if self.samples.mitochondrion > 0.0 {
                return wrong("there are no amplicons of the mitochondrial genome; set its depth to 0");
            }
        }
        Ok(())
    }
}
