//! `genuma bench simulate`: simulates tumour and normal reads with known somatic variants.

mod library_args;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args as ClapArgs, ValueEnum};
use genuma_simulate::{
    Error, GenomeSource, InsertModel, RecurrentErrorParams, SampleRole, SimulationParams, SomaticParams,
    simulate_to_folder, write_interleaved_reads_of_sample,
};
use genuma_work::quantity;

use crate::errors::UsageError;
use crate::{command_line, logging};

/// Simulate tumour and normal reads with known somatic variants.
///
/// Writes into the output folder: genome.fa (with index), tumor_1.fq.gz, tumor_2.fq.gz, normal_1.fq.gz, normal_2.fq.gz,
/// truth.vcf (somatic variants), germline.vcf, truth.bedpe (breakpoints) and simulate.json. Some options add
/// repeats.bed (--genome-like), targets.bed (capture), primers.bed (amplicons), tables of molecules (--umi),
/// foreign.vcf (germline variants of the other person: --foreign-tumor, --foreign-normal) and recurrent.vcf
/// (--recurrent). The same options and seed give the same bytes, whatever the number of threads.
///
/// By default reads have only sequencing errors that agree with their base qualities. --library adds the artefacts of
/// a kind of real library; each artefact also has an option of its own, which overrides the preset.
/// docs/guide/simulate.md describes the presets, docs/internals/simulate.md the models.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    A genome of 1 Mbp, both samples at 30x, a tumour sample without normal cells:\n    \
    genuma bench simulate -o pair\n  \
    Only the reads of the tumour, counted while they are made:\n    \
    genuma bench simulate -o - --sample tumor | genuma kmers count - -o tumor.gkt\n  \
    Purity of 50%, two subclones, 15% PCR duplicates, from your own genome:\n    \
    genuma bench simulate --genome ref.fa --purity 0.5 --subclones 2 --duplicates 0.15 -o pair\n  \
    No somatic variants at all, to count false calls:\n    \
    genuma bench simulate --snvs 0 --indels 0 --svs 0 -o same\n  \
    Reads of fixed tissue (FFPE), but with fewer duplicates:\n    \
    genuma bench simulate --library ffpe --duplicates 0.2 -o fixed\n  \
    A panel at 500x from a genome of 5 Mbp:\n    \
    genuma bench simulate --library panel --genome-length 5M \\\n      \
    --depth-tumor 500 --depth-normal 200 -o panel\n  \
    A genome as large and repetitive as the human one, at 8x:\n    \
    genuma bench simulate --genome-like human --genome-length 3.1G --library wgs \\\n      \
    --depth-tumor 8 --depth-normal 8 -o human")]
pub(crate) struct Args {
    /// Folder to write into; `-` writes only the reads of one --sample to standard output, as plain FASTQ in which
    /// mates alternate
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Sample whose reads go to standard output, with -o -
    #[arg(long, value_name = "SAMPLE")]
    sample: Option<StreamedSample>,
    /// Reference genome, FASTA, plain or compressed; without it a random genome is generated
    #[arg(long, value_name = "FASTA")]
    genome: Option<PathBuf>,
    /// Length of the generated genome in bases, such as 5000000, 300M or 3.1G (powers of 1000)
    #[arg(long, value_name = "BP", default_value = "1000000", value_parser = quantity::parse_bases, conflicts_with = "genome")]
    genome_length: u64,
    /// Generate a genome of 24 chromosomes with repeats, satellites, duplications and gaps as frequent as in the genome
    /// of this species; its length (--genome-length) is at least 1 Mbp, and 3.1G is that of the human genome
    #[arg(long, value_name = "SPECIES", conflicts_with_all = ["genome", "contigs", "repeats"])]
    genome_like: Option<GeneratedGenomeSpecies>,
    /// Number of contigs of the generated genome
    #[arg(long, value_name = "N", default_value_t = 3, conflicts_with = "genome")]
    contigs: usize,
    /// Share of the generated genome that is inserted as repeats: families of diverged copies of all ages and, for a
    /// tenth of it, recent duplications. Later copies overwrite some earlier ones [default: 0.33]
    #[arg(long, value_name = "SHARE", conflicts_with = "genome")]
    repeats: Option<f64>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seed of the reads alone: other reads of the same patient and tumour, such as those of a later sample [default:
    /// --seed]
    #[arg(long, value_name = "SEED")]
    reads_seed: Option<u64>,
    /// Threads [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser())]
    threads: Option<u16>,

    /// Number of somatic single-nucleotide variants [default: 300; with capture, fewer if the targets have no room]
    #[arg(long, value_name = "N", help_heading = "Somatic variants")]
    snvs: Option<usize>,
    /// Number of somatic insertions and deletions of 1-50 bp; `genuma bench evaluate` counts those of 50 bp as structural variants
    /// [default: 150; with capture, fewer if the targets have no room]
    #[arg(long, value_name = "N", help_heading = "Somatic variants")]
    indels: Option<usize>,
    /// Number of somatic structural variants of at least 50 bp, of six classes in turn: deletion, tandem duplication, inversion,
    /// insertion, translocation, copy to another place [default: 40; with capture, fewer if the targets have no room]
    #[arg(long, value_name = "N", help_heading = "Somatic variants")]
    svs: Option<usize>,
    /// Number of additional clusters of 2-5 SNVs and short indels within 3-120 bp on one haplotype
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Somatic variants")]
    clusters: usize,
    /// Number of additional substitutions of 2-3 adjacent bases
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Somatic variants")]
    mnvs: usize,
    /// Share of the indels that change the length of a tandem repeat or homopolymer [default: a third]
    #[arg(long, value_name = "SHARE", default_value_t = 1.0 / 3.0, hide_default_value = true, help_heading = "Somatic variants")]
    tandem_share: f64,
    /// Share of the short tandem repeats (at least 5 copies of 1-6 bases, 10-80 bases in total) whose length changes
    /// in the tumour, in addition to the other variants: microsatellite instability [default: 0]
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.0,
        hide_default_value = true,
        help_heading = "Somatic variants"
    )]
    unstable: f64,
    /// Minimum distance of two somatic variants or breakpoints in bases [default: 500; with capture 150]
    #[arg(long, value_name = "BP", help_heading = "Somatic variants")]
    spacing: Option<usize>,
    /// Length of the longest structural variant in bp (a quarter of the longest contig if that is less)
    #[arg(long, value_name = "BP", default_value_t = 1_000_000, help_heading = "Somatic variants")]
    largest_sv: usize,
    /// Share of the tumour cells in each subclone, such as 0.3,0.2; no cell is in two subclones, and the sum is at
    /// most 1. A single whole number N means N subclones of share 1/(N+1); the same share of cells has only the variants of
    /// the founder clone, which all tumour cells have. Somatic variants are divided evenly among founder clone and
    /// subclones. A subclone of share 0 is absent from this sample [default: no subclones]
    #[arg(long, value_name = "SHARES", value_delimiter = ',', help_heading = "Somatic variants")]
    subclones: Vec<f64>,

    /// Germline SNVs per base
    #[arg(long, value_name = "RATE", default_value_t = 1e-3, help_heading = "Germline variants")]
    germline_snv_rate: f64,
    /// Germline indels per base
    #[arg(long, value_name = "RATE", default_value_t = 1e-4, help_heading = "Germline variants")]
    germline_indel_rate: f64,
    /// Number of germline deletions and insertions of 50-2000 bp
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Germline variants")]
    germline_svs: usize,

    /// Mean depth of the tumour sample
    #[arg(long, alias = "depth-tumour", value_name = "X", default_value_t = 30.0, help_heading = "Samples")]
    depth_tumor: f64,
    /// Mean depth of the normal sample
    #[arg(long, value_name = "X", default_value_t = 30.0, help_heading = "Samples")]
    depth_normal: f64,
    /// Share of tumour cells in the tumour sample; the other cells are the patient's normal cells
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, help_heading = "Samples")]
    purity: f64,
    /// Share of the patient's tumour cells in the normal sample; for DNA of another person see --foreign-tumor and
    /// --foreign-normal
    #[arg(
        long = "tumor-in-normal",
        alias = "contamination",
        value_name = "SHARE",
        default_value_t = 0.0,
        help_heading = "Samples"
    )]
    contamination: f64,

    /// Length of a read in bases [default: 150, or that of --library]
    #[arg(long, value_name = "BASES", help_heading = "Sequencing")]
    read_length: Option<usize>,
    /// Mean length of a fragment; if a fragment is shorter than the read, the read runs into the adapter [default: 400, or
    /// that of --library]
    #[arg(long, value_name = "BP", help_heading = "Sequencing")]
    insert_mean: Option<f64>,
    /// Standard deviation of the fragment length [default: 60, or that of --library]
    #[arg(long, value_name = "BP", help_heading = "Sequencing")]
    insert_sd: Option<f64>,
    /// Share of the pairs that are PCR duplicates [default: 0, or that of --library]
    #[arg(long, value_name = "SHARE", help_heading = "Sequencing")]
    duplicates: Option<f64>,
    /// Mean probability that a base is read wrongly [default: 0.003, or that of --library]
    #[arg(long, value_name = "RATE", help_heading = "Sequencing")]
    error_rate: Option<f64>,
    /// Write the true positions of both mates into the read names: NAME,CONTIG,FIRST,LAST,STRAND of read 1, then of
    /// read 2 (1-based positions on the reference; `*` if a breakpoint or a long insertion leaves no single position)
    #[arg(long, help_heading = "Sequencing")]
    true_positions: bool,

    /// Number of genome positions with a recurrent error: a share of the molecules of every sample (5-40%, higher
    /// in some libraries than in others) has the same wrong base. The positions depend on the genome and
    /// --recurrent-seed, not on --seed; they are written to recurrent.vcf
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Library")]
    recurrent: usize,
    /// Seed of the positions of recurrent errors
    #[arg(long, value_name = "SEED", default_value_t = 1, help_heading = "Library")]
    recurrent_seed: u64,

    #[command(flatten)]
    library_args: library_args::LibraryArgs,
}

/// Values of `--genome-like`: species whose genomes generated genomes can resemble.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum GeneratedGenomeSpecies {
    /// Alu and L1 of all ages, centromeres, segmental duplications, sex chromosomes, gaps
    Human,
}

/// Default mean depth of the mitochondrial genome of a generated human-like genome.
const HUMAN_MITOCHONDRIAL_DEPTH: f64 = 1000.0;
/// Default minimum distance of somatic variants in captured targets (bp). It is smaller than in whole genomes, because
/// targets have little space.
const MIN_SPACING_IN_TARGETS_BP: usize = 150;

impl Args {
    /// Returns the shares of the subclones. If the option has a single whole number of at least 1, it is the number of
    /// subclones, and all of them and the founder clone have equal shares.
    fn subclone_shares(&self) -> Vec<f64> {
        match *self.subclones {
            [count] if count >= 1.0 && count.fract() == 0.0 => vec![1.0 / (count + 1.0); count as usize],
            _ => self.subclones.clone(),
        }
    }

    fn to_params(&self) -> SimulationParams {
        let mut params =
            SimulationParams { seed: self.seed, reads_seed: self.reads_seed, ..SimulationParams::default() };
        self.library_args.apply_preset(&mut params);
        params.genome = match &self.genome {
            Some(path) => GenomeSource::File(path.clone()),
            None if self.genome_like.is_some() => GenomeSource::Human { length: self.genome_length as usize },
            None => {
                let (length, contigs) = (self.genome_length as usize, self.contigs);
                GenomeSource::Made { length, contigs, repeats: self.repeats }
            }
        };
        params.germline.snv_rate = self.germline_snv_rate;
        params.germline.indel_rate = self.germline_indel_rate;
        params.germline.svs = self.germline_svs;
        params.samples.depth_tumor = self.depth_tumor;
        params.samples.depth_normal = self.depth_normal;
        params.samples.purity = self.purity;
        params.samples.contamination = self.contamination;
        if self.recurrent > 0 {
            params.recurrent = RecurrentErrorParams { places: self.recurrent, seed: self.recurrent_seed };
        }
        params.unstable.share = self.unstable;
        params.linked.clusters = self.clusters;
        params.linked.mnvs = self.mnvs;
        let reads = &mut params.sequencing;
        reads.read_length = self.read_length.unwrap_or(reads.read_length);
        reads.insert_mean = self.insert_mean.unwrap_or(reads.insert_mean);
        reads.insert_sd = self.insert_sd.unwrap_or(reads.insert_sd);
        if self.insert_mean.or(self.insert_sd).is_some() {
            reads.library.insert_model = InsertModel::Normal;
        }
        reads.duplicates = self.duplicates.unwrap_or(reads.duplicates);
        reads.error_rate = self.error_rate.unwrap_or(reads.error_rate);
        reads.true_positions = self.true_positions;
        if self.read_length.is_some() {
            reads.machine.read_lengths.clear();
        }
        if self.genome_like.is_some() {
            params.samples.mitochondrion = HUMAN_MITOCHONDRIAL_DEPTH;
        }
        self.library_args.apply_options(&mut params);
        let defaults = SomaticParams::default();
        if let Some(capture) = &mut params.capture {
            capture.fewer_variants = self.snvs.or(self.indels).or(self.svs).is_none();
        }
        let spacing = if params.capture.is_some() { MIN_SPACING_IN_TARGETS_BP } else { defaults.spacing };
        params.somatic = SomaticParams {
            snvs: self.snvs.unwrap_or(defaults.snvs),
            indels: self.indels.unwrap_or(defaults.indels),
            svs: self.svs.unwrap_or(defaults.svs),
            tandem_share: self.tandem_share,
            spacing: self.spacing.unwrap_or(spacing),
            largest_sv: self.largest_sv,
            subclones: self.subclone_shares(),
        };
        params
    }
}

/// Values of `--sample`: the sample whose reads go to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StreamedSample {
    Tumor,
    Normal,
}

/// Simulates the sample pair into a folder and logs a summary, or writes the reads of one sample to standard output
/// (`-o -`).
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let params = args.to_params();
    let off_target = args.library_args.is_off_target_given();
    if off_target && params.capture.is_none() {
        return Err(UsageError(
            "--off-target needs targets: give --capture, --targets or a --library with them".into(),
        )
        .into());
    }
    if off_target && params.sequencing.library.amplicons.is_some() {
        return Err(UsageError("--off-target is for capture: amplicons have no reads outside of them".into()).into());
    }
    let threads = command_line::threads_or_all_cpus(args.threads);
    let start = Instant::now();
    let sample = match (args.out == Path::new("-"), args.sample) {
        (false, None) => None,
        (true, Some(StreamedSample::Tumor)) => Some(SampleRole::Tumor),
        (true, Some(StreamedSample::Normal)) => Some(SampleRole::Normal),
        (true, None) => {
            return Err(UsageError(
                "-o - writes the reads of one sample: add --sample tumor or --sample normal".into(),
            )
            .into());
        }
        (false, Some(_)) => return Err(UsageError("--sample needs -o -: a folder gets both samples".into()).into()),
    };
    if let Some(sample) = sample {
        return match write_interleaved_reads_of_sample(
            &params,
            sample,
            &mut logging::lock_stdout_for_results()?,
            threads,
        ) {
            // The reader of the pipe has closed it: this is no error.
            Err(Error::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(Error::Write(error)) => Err(anyhow::Error::new(error).context("standard output")),
            done => done.map(drop).map_err(Into::into),
        };
    }
    let summary = simulate_to_folder(&params, &args.out, threads)?;
    tracing::info!(
        "{}: {} bp, {} germline, {} somatic small and {} structural variants, {} + {} read pairs in {:.1} s",
        args.out.display(),
        summary.genome_length,
        summary.germline_variants,
        summary.somatic_small,
        summary.somatic_structural,
        summary.tumor_pairs,
        summary.normal_pairs,
        start.elapsed().as_secs_f64(),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use genuma_simulate::{AdapterType, LibraryPreset, TargetSource};

    #[derive(Parser)]
    struct TestCli {
        #[command(flatten)]
        args: Args,
    }

    fn parse_params(options: &str) -> SimulationParams {
        let words = ["simulate", "-o", "x"].into_iter().chain(options.split_whitespace());
        TestCli::try_parse_from(words).unwrap_or_else(|e| panic!("{e}")).args.to_params()
    }

    #[test]
    fn without_options_all_is_as_the_library_has_it() {
        let text = |p: &SimulationParams| serde_json::to_string(p).expect("JSON");
        assert_eq!(text(&parse_params("")), text(&SimulationParams::default()));
    }

    #[test]
    fn what_is_given_wins_over_the_preset() {
        let old = parse_params("--library old");
        assert_eq!(
            (old.library, old.sequencing.machine.read_lengths.as_slice()),
            (Some(LibraryPreset::Old), &[100, 76][..])
        );
        assert_eq!((old.sequencing.error_rate, old.sequencing.duplicates), (0.006, 0.2));
        let other = parse_params("--library old --read-length 90 --error-rate 0.01 --quality-tails 0 --two-colour");
        assert_eq!(other.sequencing.possible_read_lengths(), [90]);
        assert_eq!((other.sequencing.error_rate, other.sequencing.machine.quality_tails), (0.01, 0.0));
        assert!(other.sequencing.machine.two_colour && !old.sequencing.machine.two_colour);
        assert_eq!(other.sequencing.library, old.sequencing.library);
        let wgs = parse_params("--library wgs --binned-qualities=false --adapter nextera");
        assert!(!wgs.sequencing.machine.binned_qualities && wgs.sequencing.machine.two_colour);
        assert_eq!(wgs.sequencing.library.adapter, Some(AdapterType::Nextera));
    }

    #[test]
    fn options_of_assays_replace_those_of_presets() {
        let umi = parse_params("--library panel --umi 3M1S+T --duplex");
        assert_eq!(umi.sequencing.duplicates, 0.0);
        assert!(umi.sequencing.library.umi.is_some_and(|u| u.duplex && u.mean_family_size == 3.0 && !u.consensus));
        let model = |options: &str| parse_params(options).sequencing.library.insert_model;
        assert_eq!(model("--library cfdna"), InsertModel::Cfdna);
        assert_eq!(model("--library cfdna --insert-mean 200"), InsertModel::Normal);
        let human = parse_params("--library amplicon --genome-like human");
        assert!(human.sequencing.library.amplicons.is_some() && human.samples.mitochondrion == 0.0);
        assert!(parse_params("--library amplicon --amplicons=false").sequencing.library.amplicons.is_none());
        for refused in ["--umi 3M1S", "--duplex", "--umi 3M+T --duplicates 0.1", "--insert-model cfdna --insert-sd 9"] {
            let words = ["simulate", "-o", "x"].into_iter().chain(refused.split(' '));
            assert!(TestCli::try_parse_from(words).is_err(), "{refused}");
        }
    }

    #[test]
    fn genomes_like_the_human_one_have_a_mitochondrion() {
        let human = parse_params("--genome-like human --genome-length 3.1G");
        assert!(matches!(human.genome, GenomeSource::Human { length: 3_100_000_000 }));
        assert_eq!(human.samples.mitochondrion, 1000.0);
        assert_eq!(parse_params("--genome-like human --mitochondrion 0").samples.mitochondrion, 0.0);
        let refused = ["--contigs 4", "--repeats 0.5", "--genome x.fa"];
        for other in refused {
            let words = ["simulate", "-o", "x", "--genome-like", "human"].into_iter();
            assert!(TestCli::try_parse_from(words.chain(other.split(' '))).is_err(), "{other}");
        }
    }

    #[test]
    fn capture_leaves_room_for_variants() {
        let panel = parse_params("--library panel");
        assert_eq!(panel.somatic.spacing, 150);
        assert!(panel.capture.as_ref().is_some_and(|c| c.fewer_variants && c.targets == TargetSource::Panel));
        let asked = parse_params("--library exome --snvs 20 --spacing 90 --off-target 0.2 --targets t.bed");
        assert_eq!((asked.somatic.snvs, asked.somatic.indels, asked.somatic.spacing), (20, 150, 90));
        let capture = asked.capture.expect("targets");
        assert!(!capture.fewer_variants && capture.off_target == 0.2);
        assert_eq!(capture.targets, TargetSource::File("t.bed".into()));
    }
}
