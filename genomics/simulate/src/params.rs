//! Everything that decides what is simulated.

use std::path::PathBuf;

use serde::Serialize;

use crate::copies::CopyParams;
use crate::error::{Error, Result};
use crate::foreign::{ForeignParams, Kin};
use crate::germline::GermlineParams;
use crate::human;
use crate::integrated::IntegratedParams;
use crate::linked::LinkedParams;
use crate::presets::Preset;
use crate::recurrent::RecurrentParams;
use crate::rng::{Rng, Stream};
use crate::sequencing::{SHORTEST_INSERT, SequencingParams, is_default};
use crate::somatic::SomaticParams;
use crate::targets::CaptureParams;
use crate::unstable::UnstableParams;

/// Where the reference comes from.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GenomeSource {
    /// A FASTA file.
    File(PathBuf),
    /// Made for the purpose.
    Made {
        /// Bases of all contigs.
        length: usize,
        /// Contigs.
        contigs: usize,
        /// Share put in as copies of families and as recent duplications; without it what is usual, a third.
        #[serde(skip_serializing_if = "Option::is_none")]
        repeats: Option<f64>,
    },
    /// Made, with chromosomes, repeats and gaps like those of the human genome.
    Human {
        /// Bases of all chromosomes.
        length: usize,
    },
}

/// The two samples.
#[derive(Debug, Clone, Serialize)]
pub struct SampleParams {
    /// Mean coverage of the tumour sample.
    pub depth_tumor: f64,
    /// Mean coverage of the normal sample.
    pub depth_normal: f64,
    /// Share of tumour cells in the tumour sample.
    pub purity: f64,
    /// Share of tumour cells in the normal sample.
    pub contamination: f64,
    /// Mean coverage of a made mitochondrial genome in both samples; 0: there is none.
    #[serde(skip_serializing_if = "is_default")]
    pub mitochondrion: f64,
}

impl Default for SampleParams {
    fn default() -> Self {
        SampleParams {
            depth_tumor: 30.0,
            depth_normal: 30.0,
            purity: 1.0,
            contamination: 0.0,
            mitochondrion: 0.0,
        }
    }
}

/// Everything that decides what is simulated. Threads and folders do not, so they are not in here. What is off is
/// left out when parameters are written down.
#[derive(Debug, Clone, Serialize)]
pub struct Params {
    /// The reference.
    pub genome: GenomeSource,
    /// The patient's own variants.
    pub germline: GermlineParams,
    /// The tumour's variants.
    pub somatic: SomaticParams,
    /// The tumour's variants that lie side by side.
    #[serde(skip_serializing_if = "is_default")]
    pub linked: LinkedParams,
    /// Foreign sequence in the tumour's genome.
    #[serde(skip_serializing_if = "is_default")]
    pub integrated: IntegratedParams,
    /// Tandem repeats of another length in the tumour.
    #[serde(skip_serializing_if = "is_default")]
    pub unstable: UnstableParams,
    /// The tumour's copy numbers.
    #[serde(skip_serializing_if = "is_default")]
    pub copies: CopyParams,
    /// Depth and mixture of the samples.
    pub samples: SampleParams,
    /// Reads of other people.
    #[serde(skip_serializing_if = "is_default")]
    pub foreign: ForeignParams,
    /// Wrong bases that every library shows.
    #[serde(skip_serializing_if = "is_default")]
    pub recurrent: RecurrentParams,
    /// The parts of the genome that are sequenced; without it all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureParams>,
    /// Reads.
    pub sequencing: SequencingParams,
    /// The kind of library that was asked for; what it stands for is in the other parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<Preset>,
    /// Same seed, same bytes.
    pub seed: u64,
    /// Seed of the reads alone; without it that of everything. Other reads of the same patient and tumour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_seed: Option<u64>,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            genome: GenomeSource::Made { length: 1_000_000, contigs: 3, repeats: None },
            germline: GermlineParams::default(),
            somatic: SomaticParams::default(),
            linked: LinkedParams::default(),
            integrated: IntegratedParams::default(),
            unstable: UnstableParams::default(),
            copies: CopyParams::default(),
            samples: SampleParams::default(),
            foreign: ForeignParams::default(),
            recurrent: RecurrentParams::default(),
            capture: None,
            sequencing: SequencingParams::default(),
            library: None,
            seed: 1,
            reads_seed: None,
        }
    }
}

fn share(x: f64) -> bool {
    (0.0..=1.0).contains(&x)
}

impl Params {
    /// Sets the parameters of the library and the sequencer to those of a kind of library; others stay as they are.
    pub fn set_library(&mut self, preset: Preset) {
        self.library = Some(preset);
        preset.apply(&mut self.sequencing, &mut self.capture);
    }

    /// Random numbers for one purpose.
    pub(crate) fn stream(&self, of: Stream) -> Rng {
        let seed = match of {
            Stream::Tumour | Stream::Normal => self.reads_seed.unwrap_or(self.seed),
            _ => self.seed,
        };
        Rng::stream(seed, &[of as u64])
    }

    /// Whether anything is on that is off by default, but for duplicates.
    pub(crate) fn is_dirty(&self) -> bool {
        let reads = &self.sequencing;
        !is_default(&reads.library)
            || !is_default(&reads.coverage)
            || !is_default(&reads.machine)
            || !is_default(&self.foreign)
            || !is_default(&self.copies)
            || self.recurrent.places > 0
            || self.capture.is_some()
            || self.samples.mitochondrion > 0.0
            || reads.adapter().is_some()
    }

    /// Refuses what cannot be simulated, with the reason.
    pub(crate) fn check(&self) -> Result<()> {
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
        if !shares.into_iter().all(share) || !(0.0..0.95).contains(&reads.duplicates) {
            return wrong(
                "purity, contamination and other shares must lie between 0 and 1 (duplicates below 0.95)",
            );
        }
        if samples.depth_tumor <= 0.0 || samples.depth_normal <= 0.0 {
            return wrong("depths must be above 0");
        }
        if samples.mitochondrion < 0.0 {
            return wrong("the depth of the mitochondrion must not be negative");
        }
        if let GenomeSource::Made { repeats: Some(repeats), .. } = self.genome
            && !share(repeats)
        {
            return wrong("the share of repeats must lie between 0 and 1");
        }
        if let GenomeSource::Human { length } = self.genome
            && length < human::SHORTEST
        {
            return wrong("a genome like the human one has 1000000 bases at least");
        }
        if !reads.read_lengths().iter().all(|l| (20..=10_000).contains(l)) {
            return wrong("the read length must lie between 20 and 10000");
        }
        if reads.insert_mean < SHORTEST_INSERT as f64 || reads.insert_sd < 0.0 {
            return wrong("the mean insert must be at least 30 bp, and its deviation not negative");
        }
        if !(0.0..0.2).contains(&reads.error_rate) {
            return wrong("the error rate must lie between 0 and 0.2");
        }
        self.check_dirt()
    }

    fn check_dirt(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::Parameters(what.into()));
        let (library, machine) = (&self.sequencing.library, &self.sequencing.machine);
        let shares = [
            library.short_inserts,
            library.fold_backs,
            library.chimeras,
            machine.trimmed,
            machine.quality_tails,
        ];
        if !shares.into_iter().all(share) || library.fold_backs + library.chimeras > 1.0 {
            return wrong(
                "shares of molecules and mates must lie between 0 and 1; fold-backs and chimeras in sum",
            );
        }
        let rates = [library.oxidation, library.deamination, library.pcr_errors, machine.n_rate];
        if !rates.into_iter().all(|r| (0.0..=0.5).contains(&r)) {
            return wrong("rates of damage, of errors of PCR and of N must lie between 0 and 0.5");
        }
        let factors = [
            library.pcr_slippage,
            machine.sequencing_slippage,
            self.sequencing.coverage.gc_bias,
            self.sequencing.coverage.unevenness,
        ];
        if !factors.into_iter().all(|f| (0.0..=10.0).contains(&f)) {
            return wrong("slippage, the strength of the GC bias and unevenness must lie between 0 and 10");
        }
        if self.copies.amplifications > 0
            && !self.copies.amplified_copies.iter().all(|n| (3..=1000).contains(n))
        {
            return wrong("amplified copies must lie between 3 and 1000");
        }
        if self.copies.amplifications > 0 && self.copies.amplified_copies.is_empty() {
            return wrong("amplifications need the number of copies, such as 10,30,100");
        }
        if self.foreign.genome.is_some() && self.foreign.tumor + self.foreign.normal == 0.0 {
            return wrong("a foreign genome needs a share of foreign reads in a sample");
        }
        if self.foreign.kin != Kin::Unrelated
            && (self.foreign.tumor + self.foreign.normal == 0.0 || self.foreign.genome.is_some())
        {
            return wrong("a relative needs a share of foreign reads in a sample, and no foreign genome");
        }
        Ok(())
    }
}
