//! The options of `genuma simulate` that make samples and reads as messy as real ones.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use genuma_simulate::{Adapter, CaptureParams, Kin, Params, Preset, TargetSource};

/// Coverage of the rest of the genome relative to that of the targets.
const OFF_TARGET: f64 = 0.01;

/// Kinds of libraries.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LibraryName {
    /// Whole genome without PCR, on a machine of today
    Wgs,
    /// Fixed tissue: short, damaged molecules, many copies
    Ffpe,
    /// Cut by a transposase: uneven, molecules folded back
    Transposase,
    /// Short reads of two lengths with tails of quality 2
    Old,
    /// Some genes captured, many copies; meant for depths of hundreds
    Panel,
    /// All exons captured
    Exome,
}

impl From<LibraryName> for Preset {
    fn from(name: LibraryName) -> Preset {
        match name {
            LibraryName::Wgs => Preset::Wgs,
            LibraryName::Ffpe => Preset::Ffpe,
            LibraryName::Transposase => Preset::Transposase,
            LibraryName::Old => Preset::Old,
            LibraryName::Panel => Preset::Panel,
            LibraryName::Exome => Preset::Exome,
        }
    }
}

/// Kinds of adapters.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum AdapterName {
    /// Ligated
    Truseq,
    /// Put in by a transposase
    Nextera,
}

/// Kinds of made targets.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum TargetName {
    /// Exons of 100-400 bp of some genes: 2% of the genome, 20 kb at least
    Panel,
    /// Exons of 80-300 bp of many genes: 2.2% of the genome
    Exome,
}

/// What another person may be to the patient.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum KinName {
    /// Shares half of the SNVs, as common polymorphisms are
    Unrelated,
    /// Parent or child: has one of the patient's haplotypes everywhere
    Parent,
    /// Has none, one or both of them, in long stretches: a quarter, a half, a quarter of the genome
    Sibling,
    /// Has one of them in half of the genome
    HalfSibling,
}

impl From<KinName> for Kin {
    fn from(name: KinName) -> Kin {
        match name {
            KinName::Unrelated => Kin::Unrelated,
            KinName::Parent => Kin::Parent,
            KinName::Sibling => Kin::Sibling,
            KinName::HalfSibling => Kin::HalfSibling,
        }
    }
}

/// See the module.
#[derive(Debug, ClapArgs)]
pub(crate) struct Dirt {
    /// Kind of library: sets many of the options below, and inserts, duplicates and errors; options given win
    #[arg(long, value_name = "PRESET", help_heading = "Library")]
    library: Option<LibraryName>,
    /// Adapters that reads of short molecules run into. Without them, and without an option that needs them, no fragment
    /// is shorter than a read [default: truseq where needed]
    #[arg(long, value_name = "KIND", help_heading = "Library")]
    adapter: Option<AdapterName>,
    /// Share of the molecules of 30 bp up to the read length; one in fifty of them is but two adapters
    #[arg(long, value_name = "SHARE", help_heading = "Library")]
    short_inserts: Option<f64>,
    /// Share of the molecules whose 3' end folded back on an inverted repeat near by and was copied
    #[arg(long, value_name = "SHARE", help_heading = "Library")]
    fold_backs: Option<f64>,
    /// Share of the molecules that are ligated from two fragments, half of them from within 1 kb
    #[arg(long, value_name = "SHARE", help_heading = "Library")]
    chimeras: Option<f64>,
    /// Oxidised G: read 1 says T, read 2 says A; per G, three times as often before another G
    #[arg(long, value_name = "RATE", help_heading = "Library")]
    oxidation: Option<f64>,
    /// Deaminated C: read 1 says T, read 2 says A; per C, three times as often in CpG, five times at the molecule's ends
    #[arg(long, value_name = "RATE", help_heading = "Library")]
    deamination: Option<f64>,
    /// Wrong bases of early PCR, per base; all copies of the molecule have them
    #[arg(long, value_name = "RATE", help_heading = "Library")]
    pcr_errors: Option<f64>,
    /// Tandem repeats that PCR makes longer or shorter, for all copies of the molecule; 1 is usual for PCR: 1.2% of
    /// homopolymers of 10 bases, 12% of those of 15
    #[arg(long, value_name = "FACTOR", help_heading = "Library")]
    pcr_slippage: Option<f64>,

    /// Coverage lost where GC is far from 45%; at 1 fragments of 25% or 70% GC have a third
    #[arg(long, value_name = "STRENGTH", help_heading = "Coverage")]
    gc_bias: Option<f64>,
    /// Coefficient of variation of coverage along the genome, in waves of 1-5 kb that the samples mostly share
    #[arg(long, value_name = "CV", help_heading = "Coverage")]
    unevenness: Option<f64>,
    /// Capture made targets. Depths are those of the targets, somatic variants lie in them
    #[arg(long, value_name = "KIND", help_heading = "Coverage", conflicts_with = "targets")]
    capture: Option<TargetName>,
    /// Capture these targets
    #[arg(long, value_name = "BED", help_heading = "Coverage")]
    targets: Option<PathBuf>,
    /// Coverage beside targets relative to that of targets [default: 0.01]
    #[arg(long, value_name = "SHARE", help_heading = "Coverage")]
    off_target: Option<f64>,

    /// Lengths of reads, one drawn for each pair, e.g. 100,126,150
    #[arg(
        long,
        value_name = "BASES",
        value_delimiter = ',',
        conflicts_with = "read_length",
        help_heading = "Sequencer"
    )]
    read_lengths: Vec<usize>,
    /// Share of the mates cut to a random length of 30 bases and more, as after trimming
    #[arg(long, value_name = "SHARE", help_heading = "Sequencer")]
    trimmed: Option<f64>,
    /// Two colours: behind the adapter reads go on with G of high quality, else with noise, mostly A, of low quality
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Sequencer")]
    two_colour: Option<bool>,
    /// Qualities 2, 12, 23 and 37 only; errors stay those of the true qualities
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Sequencer")]
    binned_qualities: Option<bool>,
    /// Share of the mates that have quality 2 from a random base on, and 30% wrong bases there
    #[arg(long, value_name = "SHARE", help_heading = "Sequencer")]
    quality_tails: Option<f64>,
    /// Bases called N, per base
    #[arg(long, value_name = "RATE", help_heading = "Sequencer")]
    n_rate: Option<f64>,
    /// Tandem repeats that single reads have longer or shorter; 1 is usual: a quarter as often as PCR at 1
    #[arg(long, value_name = "FACTOR", help_heading = "Sequencer")]
    sequencing_slippage: Option<f64>,

    /// Probability that a contig's haplotype is lost or gained in all tumour cells; one of the two always stays
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Copy numbers")]
    aneuploidy: f64,
    /// Spans of 10-40 kb amplified in tandem on one haplotype, each with six small variants of its own, in all or half
    /// of the copies. Depths are those of two copies
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Copy numbers")]
    amplifications: usize,
    /// Copies of them in a tumour cell, dealt in turn
    #[arg(long, value_name = "COPIES", value_delimiter = ',', default_values_t = [10, 30, 100], help_heading = "Copy numbers")]
    amplified_copies: Vec<usize>,
    /// Spans of 20-200 kb lost on one haplotype, in addition to the structural variants
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Copy numbers")]
    losses: usize,
    /// The tumour's genome was doubled as a whole before contigs were lost and gained
    #[arg(long, help_heading = "Copy numbers")]
    doubled: bool,
    /// Probability that a contig's haplotype is lost or gained in one of the subclones only
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Copy numbers")]
    subclonal_aneuploidy: f64,

    /// Mean coverage, in both samples, of a made mitochondrial genome: circular, with somatic variants of 3-60% of the
    /// copies; 2000 is usual [default: 0; with --genome-like human 1000]
    #[arg(long, value_name = "X", help_heading = "Samples")]
    mitochondrion: Option<f64>,
    /// Share of the tumour sample's reads that are another person's
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Samples")]
    foreign_tumor: f64,
    /// Share of the normal sample's reads that are another person's; 1: the samples are of two people
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Samples")]
    foreign_normal: f64,
    /// What the other person is to the patient
    #[arg(long, value_name = "KIN", default_value = "unrelated", help_heading = "Samples")]
    foreign_kin: KinName,
    /// Genome that foreign reads come from instead, such as another species'
    #[arg(long, value_name = "FASTA", help_heading = "Samples")]
    foreign_genome: Option<PathBuf>,
    /// Sequences, such as viruses, of which pieces of 500-5000 bp are put into the tumour's genome, in addition to other variants
    #[arg(long, value_name = "FASTA", help_heading = "Somatic variants")]
    integrate: Option<PathBuf>,
    /// How many pieces
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        requires = "integrate",
        help_heading = "Somatic variants"
    )]
    integrations: usize,
}

/// What was given takes the place of what was there.
fn set<T: Copy>(there: &mut T, given: Option<T>) {
    *there = given.unwrap_or(*there);
}

impl Dirt {
    /// Sets what the kind of library stands for.
    pub(crate) fn preset(&self, params: &mut Params) {
        if let Some(name) = self.library {
            params.set_library(Preset::from(name));
        }
    }

    /// Whether coverage beside targets was given.
    pub(crate) fn names_off_target(&self) -> bool {
        self.off_target.is_some()
    }

    /// Sets what was given.
    pub(crate) fn apply(&self, params: &mut Params) {
        let library = &mut params.sequencing.library;
        if let Some(adapter) = self.adapter {
            library.adapter = Some(match adapter {
                AdapterName::Truseq => Adapter::Truseq,
                AdapterName::Nextera => Adapter::Nextera,
            });
        }
        set(&mut library.short_inserts, self.short_inserts);
        set(&mut library.fold_backs, self.fold_backs);
        set(&mut library.chimeras, self.chimeras);
        set(&mut library.oxidation, self.oxidation);
        set(&mut library.deamination, self.deamination);
        set(&mut library.pcr_errors, self.pcr_errors);
        set(&mut library.pcr_slippage, self.pcr_slippage);

        let coverage = &mut params.sequencing.coverage;
        set(&mut coverage.gc_bias, self.gc_bias);
        set(&mut coverage.unevenness, self.unevenness);
        let made = self.capture.map(|name| match name {
            TargetName::Panel => TargetSource::Panel,
            TargetName::Exome => TargetSource::Exome,
        });
        if let Some(targets) = self.targets.clone().map(TargetSource::File).or(made) {
            params.capture = Some(CaptureParams { targets, off_target: OFF_TARGET, fewer_variants: true });
        }
        if let Some(capture) = &mut params.capture {
            set(&mut capture.off_target, self.off_target);
        }

        let machine = &mut params.sequencing.machine;
        if !self.read_lengths.is_empty() {
            machine.read_lengths.clone_from(&self.read_lengths);
        }
        set(&mut machine.trimmed, self.trimmed);
        set(&mut machine.two_colour, self.two_colour);
        set(&mut machine.binned_qualities, self.binned_qualities);
        set(&mut machine.quality_tails, self.quality_tails);
        set(&mut machine.n_rate, self.n_rate);
        set(&mut machine.sequencing_slippage, self.sequencing_slippage);

        params.copies.aneuploidy = self.aneuploidy;
        params.copies.amplifications = self.amplifications;
        params.copies.amplified_copies.clone_from(&self.amplified_copies);
        params.copies.losses = self.losses;
        params.copies.doubled = self.doubled;
        params.copies.subclonal = self.subclonal_aneuploidy;
        set(&mut params.samples.mitochondrion, self.mitochondrion);
        params.foreign.tumor = self.foreign_tumor;
        params.foreign.normal = self.foreign_normal;
        params.foreign.genome.clone_from(&self.foreign_genome);
        params.integrated.genome.clone_from(&self.integrate);
        params.integrated.pieces = if self.integrate.is_some() { self.integrations } else { 0 };
        params.foreign.kin = self.foreign_kin.into();
    }
}
