//! Options of `genuma bench simulate` for the artefacts of real samples, libraries and sequencers.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use genuma_reads::ReadStructures;
use genuma_simulate::{
    AdapterType, AmpliconParams, CaptureParams, InsertModel, LibraryPreset, Relationship, SimulationParams,
    TargetSource, UmiParams,
};

/// Default of `--off-target`: depth outside the targets, relative to the depth of the targets.
const OFF_TARGET_COVERAGE: f64 = 0.01;

/// Values of `--library`: kinds of libraries, each a preset of options.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LibraryKind {
    /// Whole genome without PCR, on a current sequencer
    Wgs,
    /// Fixed tissue (FFPE): short, damaged molecules, many duplicates
    Ffpe,
    /// Transposase (tagmentation) library: uneven depth, fold-back reads
    Transposase,
    /// Short reads of two lengths with tails of quality 2
    Old,
    /// Capture of some genes, many duplicates; meant for depths of hundreds
    Panel,
    /// Capture of all exons
    Exome,
    /// Multiplex PCR: --amplicons, many duplicates; meant for depths of hundreds
    Amplicon,
    /// Cell-free DNA of plasma: fragments of nucleosomes, many duplicates; meant for depths of thousands
    Cfdna,
    /// Ion Torrent: --homopolymer-errors, reads of 200 bases; written as pairs
    Ion,
}

impl From<LibraryKind> for LibraryPreset {
    fn from(name: LibraryKind) -> LibraryPreset {
        match name {
            LibraryKind::Wgs => LibraryPreset::Wgs,
            LibraryKind::Ffpe => LibraryPreset::Ffpe,
            LibraryKind::Transposase => LibraryPreset::Transposase,
            LibraryKind::Old => LibraryPreset::Old,
            LibraryKind::Panel => LibraryPreset::Panel,
            LibraryKind::Exome => LibraryPreset::Exome,
            LibraryKind::Amplicon => LibraryPreset::Amplicon,
            LibraryKind::Cfdna => LibraryPreset::Cfdna,
            LibraryKind::Ion => LibraryPreset::Ion,
        }
    }
}

/// Values of `--adapter`: adapter sequences.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum AdapterKind {
    /// TruSeq: ligated adapters
    Truseq,
    /// Nextera: adapters inserted by a transposase
    Nextera,
}

/// Values of `--insert-model`: distributions of the fragment length.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FragmentLengthDistribution {
    /// Normal distribution; --insert-mean and --insert-sd imply it and are given instead of --insert-model
    Normal,
    /// Cell-free DNA: a peak of one nucleosome at 167 bp, sub-peaks every 10 bp below, two nucleosomes at 330 bp
    Cfdna,
}

/// Values of `--capture`: kinds of capture for which targets are generated.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CaptureKind {
    /// Exons of 100-400 bp of some genes: 2% of the genome, at least 20 kb
    Panel,
    /// Exons of 80-300 bp of many genes: 2.2% of the genome
    Exome,
}

/// Values of `--foreign-kin`: relationship of the contaminating person to the patient.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RelationshipToPatient {
    /// Shares half of the SNVs, as unrelated people share common polymorphisms
    Unrelated,
    /// Parent or child: has one of the patient's haplotypes everywhere
    Parent,
    /// Has none, one or both of the patient's haplotypes in a quarter, a half and a quarter of the genome, in long
    /// stretches
    Sibling,
    /// Has one of the patient's haplotypes in half of the genome
    HalfSibling,
}

impl From<RelationshipToPatient> for Relationship {
    fn from(name: RelationshipToPatient) -> Relationship {
        match name {
            RelationshipToPatient::Unrelated => Relationship::Unrelated,
            RelationshipToPatient::Parent => Relationship::Parent,
            RelationshipToPatient::Sibling => Relationship::Sibling,
            RelationshipToPatient::HalfSibling => Relationship::HalfSibling,
        }
    }
}

/// Options for artefacts of samples, libraries and sequencers.
#[derive(Debug, ClapArgs)]
pub(crate) struct LibraryArgs {
    /// Kind of library: a preset of many of the options below, and of insert sizes, duplicates and errors; options
    /// that are given override it
    #[arg(long, value_name = "PRESET", help_heading = "Library")]
    library: Option<LibraryKind>,
    /// Adapters that follow short molecules in the reads. Without adapters, no fragment is shorter than a read
    /// [default: that of --library; else truseq if fragments may be shorter than reads: --insert-mean below the read
    /// length, --short-inserts, --fold-backs, --amplicons or --insert-model cfdna; else none]
    #[arg(long, value_name = "KIND", help_heading = "Library")]
    adapter: Option<AdapterKind>,
    /// Distribution of the fragment length [default: normal, or that of --library]
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["insert_mean", "insert_sd"], help_heading = "Library")]
    insert_model: Option<FragmentLengthDistribution>,
    /// Share of the molecules that are only 30 bp to one read length long; one in fifty of these is an adapter dimer
    /// [default: 0, or that of --library]
    #[arg(long, value_name = "SHARE", help_heading = "Library")]
    short_inserts: Option<f64>,
    /// Share of fold-back molecules: the 3' end folded back on a nearby inverted repeat and was copied [default:
    /// 0, or that of --library]
    #[arg(long, value_name = "SHARE", help_heading = "Library")]
    fold_backs: Option<f64>,
    /// Share of chimeric molecules, ligated from two fragments; half of these join fragments within 1 kb
    /// [default: 0, or that of --library]
    #[arg(long, value_name = "SHARE", help_heading = "Library")]
    chimeras: Option<f64>,
    /// Rate of oxidised G per G, read as G>T on read 1 and C>A on read 2; three times as frequent before another G
    /// [default: 0, or that of --library]
    #[arg(long, value_name = "RATE", help_heading = "Library")]
    oxidation: Option<f64>,
    /// Rate of deaminated C per C, read as C>T on read 1 and G>A on read 2; three times as frequent in CpG, five
    /// times at the ends of molecules [default: 0, or that of --library]
    #[arg(long, value_name = "RATE", help_heading = "Library")]
    deamination: Option<f64>,
    /// Wrong bases made by early PCR cycles, per base; all duplicates of the molecule share them
    /// [default: 0, or that of --library]
    #[arg(long, value_name = "RATE", help_heading = "Library")]
    pcr_errors: Option<f64>,
    /// Strength of PCR slippage, which makes tandem repeats longer or shorter in all duplicates of a molecule; 1 is
    /// usual for PCR: 1.2% of homopolymers of 10 bases, 12% of homopolymers of 15 [default: 0, or that of --library]
    #[arg(long, value_name = "FACTOR", help_heading = "Library")]
    pcr_slippage: Option<f64>,
    /// Amplify the targets, or the genome without targets, with primer pairs: amplicons of 120-250 bp that overlap.
    /// Reads begin with primers of 18-25 bases, which show the reference. Depths are those of the amplicons and differ
    /// between them (coefficient of variation 0.4). Primers are written to primers.bed. `=false` switches off what
    /// --library sets [default: false, or that of --library]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Library")]
    amplicons: Option<bool>,
    /// Give molecules random UMIs. The structure of a read in the notation of fgbio: UMI (M) and skipped bases (S)
    /// before the template, such as 3M1S+T for both reads, or 8M+T,+T for read 1 and read 2. Molecules are listed in
    /// tumor_molecules.tsv.gz and normal_molecules.tsv.gz: position, UMI, read pairs of each strand, variants
    #[arg(long, value_name = "STRUCTURE", conflicts_with = "duplicates", help_heading = "Library")]
    umi: Option<ReadStructures>,
    /// Amplify both strands of the molecules with UMIs; the UMIs of the second strand are swapped between the reads
    #[arg(long, requires = "umi", help_heading = "Library")]
    duplex: bool,
    /// Mean number of read pairs of a strand of the molecules with UMIs; replaces the share of duplicates
    #[arg(long, value_name = "MEAN", default_value_t = 3.0, requires = "umi", help_heading = "Library")]
    family_size: f64,
    /// Write the consensus of each molecule with UMIs instead of its reads: one pair without UMIs, with qualities of
    /// up to 90, as by fgbio. Depths are those of the consensus
    #[arg(long, requires = "umi", help_heading = "Library")]
    consensus: bool,

    /// Strength of GC bias: loss of depth where the GC content is far from 45%; at 1, fragments of 25% or 70% GC have
    /// a third of the depth [default: 0, or that of --library]
    #[arg(long, value_name = "STRENGTH", help_heading = "Coverage")]
    gc_bias: Option<f64>,
    /// Coefficient of variation of the depth along the genome, in waves of 1-5 kb that the samples mostly share
    /// [default: 0, or that of --library]
    #[arg(long, value_name = "CV", help_heading = "Coverage")]
    unevenness: Option<f64>,
    /// Sequence mainly capture targets, which are chosen at random. Depths are those of the targets, and somatic
    /// variants are placed in the targets
    #[arg(long, value_name = "KIND", help_heading = "Coverage", conflicts_with = "targets")]
    capture: Option<CaptureKind>,
    /// Sequence mainly the regions of this file, as --capture does
    #[arg(long, value_name = "BED", help_heading = "Coverage")]
    targets: Option<PathBuf>,
    /// Depth outside the targets relative to the depth of the targets [default: 0.01]
    #[arg(long, value_name = "SHARE", help_heading = "Coverage")]
    off_target: Option<f64>,

    /// Lengths of reads, separated by commas, one drawn for each pair, such as 100,126,150; instead of --read-length
    #[arg(
        long,
        value_name = "BASES",
        value_delimiter = ',',
        conflicts_with = "read_length",
        help_heading = "Sequencer"
    )]
    read_lengths: Vec<usize>,
    /// Share of the mates that are cut to a random length of at least 30 bases, as after trimming [default: 0, or
    /// that of --library]
    #[arg(long, value_name = "SHARE", help_heading = "Sequencer")]
    trimmed: Option<f64>,
    /// Two-colour chemistry: after the adapter, reads continue with G of high quality, or with noise of low quality,
    /// mostly A. `=false` switches off what --library sets [default: false, or that of --library]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Sequencer")]
    two_colour: Option<bool>,
    /// Write only the qualities 2, 12, 23 and 37; errors remain those of the original qualities. `=false` switches off
    /// what --library sets [default: false, or that of --library]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Sequencer")]
    binned_qualities: Option<bool>,
    /// Share of the mates that have quality 2, with 30% wrong bases, from a random base on [default: 0, or
    /// that of --library]
    #[arg(long, value_name = "SHARE", help_heading = "Sequencer")]
    quality_tails: Option<f64>,
    /// Bases called N, per base [default: 0, or that of --library]
    #[arg(long, value_name = "RATE", help_heading = "Sequencer")]
    n_rate: Option<f64>,
    /// Strength of slippage during sequencing, which makes tandem repeats longer or shorter in single reads; 1 is
    /// usual: a quarter as frequent as PCR slippage of strength 1 [default: 0, or that of --library]
    #[arg(long, value_name = "FACTOR", help_heading = "Sequencer")]
    sequencing_slippage: Option<f64>,
    /// Homopolymers of at least two bases that a read shows one base too short or too long, per base of the
    /// homopolymer; 0.007 is usual for Ion Torrent [default: 0, or that of --library]
    #[arg(long, value_name = "RATE", help_heading = "Sequencer")]
    homopolymer_errors: Option<f64>,

    /// Probability that a contig's haplotype is lost or gained in all tumour cells; one of the two haplotypes always
    /// stays
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Copy numbers")]
    aneuploidy: f64,
    /// Number of additional regions of 10-40 kb that are amplified in tandem on one haplotype, each with six small
    /// variants of its own, in all or half of the copies. --depth-tumor is the depth of sequence with two copies;
    /// amplified regions are deeper
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Copy numbers")]
    amplifications: usize,
    /// Copies of each amplified region in a tumour cell, separated by commas and assigned in turn [default: 10,30,100]
    #[arg(
        long,
        value_name = "COPIES",
        value_delimiter = ',',
        default_values_t = [10, 30, 100],
        hide_default_value = true,
        help_heading = "Copy numbers"
    )]
    amplified_copies: Vec<usize>,
    /// Number of additional regions of 20-200 kb that are lost on one haplotype
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Copy numbers")]
    losses: usize,
    /// Double the whole genome of the tumour before contigs are lost and gained
    #[arg(long, help_heading = "Copy numbers")]
    doubled: bool,
    /// Probability that a contig's haplotype is lost or gained in one of the subclones only
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Copy numbers")]
    subclonal_aneuploidy: f64,

    /// Mean depth, in both samples, of a generated mitochondrial genome: circular, with somatic variants in 3-60% of
    /// the copies; 2000 is usual [default: 0; with --genome-like human 1000]
    #[arg(long, value_name = "X", help_heading = "Samples")]
    mitochondrion: Option<f64>,
    /// Share of the tumour sample's reads that come from another person
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Samples")]
    foreign_tumor: f64,
    /// Share of the normal sample's reads that come from another person; 1 makes the samples come from two people
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Samples")]
    foreign_normal: f64,
    /// Relationship of the other person to the patient; used with --foreign-tumor and --foreign-normal
    #[arg(long, value_name = "KIN", default_value = "unrelated", help_heading = "Samples")]
    foreign_kin: RelationshipToPatient,
    /// Genome of the foreign reads, such as that of another species, instead of another person's
    #[arg(long, value_name = "FASTA", help_heading = "Samples")]
    foreign_genome: Option<PathBuf>,
    /// FASTA file with sequences, such as viruses: random pieces of 500-5000 bp of these are integrated into the
    /// tumour's genome, in addition to other variants
    #[arg(long, value_name = "FASTA", help_heading = "Somatic variants")]
    integrate: Option<PathBuf>,
    /// Number of pieces that --integrate adds
    #[arg(long, value_name = "N", default_value_t = 10, requires = "integrate", help_heading = "Somatic variants")]
    integrations: usize,
}

/// Replaces `value` if `given` has a value.
fn override_if_given<T: Copy>(value: &mut T, given: Option<T>) {
    *value = given.unwrap_or(*value);
}

impl LibraryArgs {
    /// Sets the parameters that the preset of `--library` contains.
    pub(crate) fn apply_preset(&self, params: &mut SimulationParams) {
        if let Some(name) = self.library {
            params.apply_library_preset(LibraryPreset::from(name));
        }
    }

    /// Returns whether `--off-target` was given.
    pub(crate) fn is_off_target_given(&self) -> bool {
        self.off_target.is_some()
    }

    /// Sets the parameters of all options; those of the preset and of the genome stay where no option was given. With
    /// amplicons there are no reads outside the targets and, unless requested, none of a mitochondrial genome.
    pub(crate) fn apply_options(&self, params: &mut SimulationParams) {
        self.apply_library_options(params);
        let coverage = &mut params.sequencing.coverage;
        override_if_given(&mut coverage.gc_bias, self.gc_bias);
        override_if_given(&mut coverage.unevenness, self.unevenness);
        let made_targets = self.capture.map(|name| match name {
            CaptureKind::Panel => TargetSource::Panel,
            CaptureKind::Exome => TargetSource::Exome,
        });
        if let Some(targets) = self.targets.clone().map(TargetSource::File).or(made_targets) {
            params.capture = Some(CaptureParams { targets, off_target: OFF_TARGET_COVERAGE, fewer_variants: true });
        }
        if let Some(capture) = &mut params.capture {
            override_if_given(&mut capture.off_target, self.off_target);
            if params.sequencing.library.amplicons.is_some() {
                capture.off_target = 0.0;
            }
        }

        let machine = &mut params.sequencing.machine;
        if !self.read_lengths.is_empty() {
            machine.read_lengths.clone_from(&self.read_lengths);
        }
        override_if_given(&mut machine.trimmed, self.trimmed);
        override_if_given(&mut machine.two_colour, self.two_colour);
        override_if_given(&mut machine.binned_qualities, self.binned_qualities);
        override_if_given(&mut machine.quality_tails, self.quality_tails);
        override_if_given(&mut machine.n_rate, self.n_rate);
        override_if_given(&mut machine.sequencing_slippage, self.sequencing_slippage);
        override_if_given(&mut machine.homopolymer_errors, self.homopolymer_errors);

        params.copies.aneuploidy = self.aneuploidy;
        params.copies.amplifications = self.amplifications;
        params.copies.amplified_copies.clone_from(&self.amplified_copies);
        params.copies.losses = self.losses;
        params.copies.doubled = self.doubled;
        params.copies.subclonal = self.subclonal_aneuploidy;
        if params.sequencing.library.amplicons.is_some() {
            params.samples.mitochondrion = 0.0;
        }
        override_if_given(&mut params.samples.mitochondrion, self.mitochondrion);
        params.foreign.tumor = self.foreign_tumor;
        params.foreign.normal = self.foreign_normal;
        params.foreign.genome.clone_from(&self.foreign_genome);
        params.integrated.genome.clone_from(&self.integrate);
        params.integrated.pieces = if self.integrate.is_some() { self.integrations } else { 0 };
        params.foreign.kin = self.foreign_kin.into();
    }

    /// Sets the parameters of library preparation for which options were given. With UMIs there are no other
    /// duplicates.
    fn apply_library_options(&self, params: &mut SimulationParams) {
        let library = &mut params.sequencing.library;
        if let Some(adapter) = self.adapter {
            library.adapter = Some(match adapter {
                AdapterKind::Truseq => AdapterType::Truseq,
                AdapterKind::Nextera => AdapterType::Nextera,
            });
        }
        if let Some(model) = self.insert_model {
            library.insert_model = match model {
                FragmentLengthDistribution::Normal => InsertModel::Normal,
                FragmentLengthDistribution::Cfdna => InsertModel::Cfdna,
            };
        }
        override_if_given(&mut library.short_inserts, self.short_inserts);
        override_if_given(&mut library.fold_backs, self.fold_backs);
        override_if_given(&mut library.chimeras, self.chimeras);
        override_if_given(&mut library.oxidation, self.oxidation);
        override_if_given(&mut library.deamination, self.deamination);
        override_if_given(&mut library.pcr_errors, self.pcr_errors);
        override_if_given(&mut library.pcr_slippage, self.pcr_slippage);
        if let Some(amplicons) = self.amplicons {
            library.amplicons = amplicons.then(AmpliconParams::default);
        }
        if let Some(structures) = &self.umi {
            library.umi = Some(UmiParams {
                structures: structures.clone(),
                duplex: self.duplex,
                mean_family_size: self.family_size,
                consensus: self.consensus,
            });
            params.sequencing.duplicates = 0.0;
        }
    }
}
