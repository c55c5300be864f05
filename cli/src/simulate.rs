//! `genuma simulate`: a tumour/normal pair with known somatic variants.

mod dirt;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args as ClapArgs, ValueEnum};
use genuma_simulate::{Error, GenomeSource, Params, RecurrentParams, SomaticParams, Which, simulate, stream};

use crate::failure::Usage;
use crate::{command, sizes, voice};

/// Make tumour and normal reads with known somatic variants.
///
/// Writes genome.fa (with index), tumor_1.fq.gz, tumor_2.fq.gz, normal_1.fq.gz, normal_2.fq.gz, truth.vcf (somatic),
/// germline.vcf, truth.bedpe (breakpoints) and simulate.json into the output folder; of a human-like genome repeats.bed, with capture
/// targets.bed, with another person's reads foreign.vcf, with --recurrent recurrent.vcf. The same options and seed give the same bytes, whatever the number of threads.
///
/// Without further options reads have nothing but wrong bases that their qualities tell of. --library adds what real
/// libraries of a kind have; each part of it is an option of its own, which wins over the preset. docs/simulate.md has
/// the models and what each preset sets.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    A genome of 1 Mbp, both samples at 30x, nothing but tumour cells in the tumour:\n    \
    genuma simulate -o pair\n  \
    The reads of its tumour alone, to be counted as they are made:\n    \
    genuma simulate -o - --sample tumor | genuma count - -o tumor.gkt\n  \
    Half of the cells normal, two subclones, 15% PCR duplicates, from a genome of your own:\n    \
    genuma simulate --genome ref.fa --purity 0.5 --subclones 2 --duplicates 0.15 -o pair\n  \
    No somatic variants at all, to count false calls:\n    \
    genuma simulate --snvs 0 --indels 0 --svs 0 -o same\n  \
    Reads as they come from a fixed tissue, but with fewer duplicates:\n    \
    genuma simulate --library ffpe --duplicates 0.2 -o fixed\n  \
    A panel at 500x from a genome of 5 Mbp:\n    \
    genuma simulate --library panel --genome-length 5000000 --depth-tumor 500 --depth-normal 200 -o panel\n  \
    A genome as large and repetitive as the human one, at 8x:\n    \
    genuma simulate --genome-like human --genome-length 3.1G --library wgs --depth-tumor 8 --depth-normal 8 -o human")]
pub(crate) struct Args {
    /// Folder to write into; `-` for the reads of one --sample on stdout and nothing else, as plain FASTQ in which mates alternate
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Which sample goes to stdout
    #[arg(long, value_name = "SAMPLE")]
    sample: Option<OneSample>,
    /// Reference genome, FASTA, plain or gzip'd; without it a genome is made
    #[arg(long, value_name = "FASTA")]
    genome: Option<PathBuf>,
    /// Bases of a made genome, such as 5000000, 300M or 3.1G (letters are powers of 1000)
    #[arg(long, value_name = "BP", default_value = "1000000", value_parser = sizes::parse_bases, conflicts_with = "genome")]
    genome_length: u64,
    /// Make a genome of 24 chromosomes whose repeats, satellites, duplications and gaps are as frequent as those of a species
    /// that is well known; 1 Mbp at least, 3.1G is life-size
    #[arg(long, value_name = "SPECIES", conflicts_with_all = ["genome", "contigs", "repeats"])]
    genome_like: Option<Species>,
    /// Contigs of a made genome
    #[arg(long, value_name = "N", default_value_t = 3, conflicts_with = "genome")]
    contigs: usize,
    /// Share of a made genome put in as repeats: families of diverged copies of all ages and, a tenth of it, recent
    /// duplications; later copies cover some of the earlier ones [default: 0.33]
    #[arg(long, value_name = "SHARE", conflicts_with = "genome")]
    repeats: Option<f64>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seed of the reads alone: other reads of the same patient and tumour, such as those of a later sample [default: --seed]
    #[arg(long, value_name = "SEED")]
    reads_seed: Option<u64>,
    /// Threads [default: all]
    #[arg(short, long, value_name = "N", value_parser = command::threads())]
    threads: Option<u16>,

    /// Somatic single-nucleotide variants [default: 300; with capture, fewer if the targets have no room]
    #[arg(long, value_name = "N", help_heading = "Somatic variants")]
    snvs: Option<usize>,
    /// Somatic insertions and deletions of 1-50 bp [default: 150; with capture as the SNVs]
    #[arg(long, value_name = "N", help_heading = "Somatic variants")]
    indels: Option<usize>,
    /// Somatic structural variants of 50 bp and more, of six classes in turn [default: 40; with capture as the SNVs]
    #[arg(long, value_name = "N", help_heading = "Somatic variants")]
    svs: Option<usize>,
    /// Clusters of 2-5 SNVs and short indels within 3-120 bp of one haplotype, in addition
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Somatic variants")]
    clusters: usize,
    /// Substitutions of 2-3 adjacent bases, in addition
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Somatic variants")]
    mnvs: usize,
    /// Share of the indels that change the length of a tandem repeat or homopolymer
    #[arg(long, value_name = "SHARE", default_value_t = 1.0 / 3.0, hide_default_value = true, help_heading = "Somatic variants")]
    tandem_share: f64,
    /// Share of the tandem repeats that reads span (5 copies of 1-6 bases, 10-80 bases) that have another length in the tumour, in addition:
    /// unstable microsatellites
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.0,
        hide_default_value = true,
        help_heading = "Somatic variants"
    )]
    unstable: f64,
    /// Fewest bases between two somatic variants or breakpoints [default: 500; with capture 150]
    #[arg(long, value_name = "BP", help_heading = "Somatic variants")]
    spacing: Option<usize>,
    /// Longest structural variant (a quarter of the longest contig when that is less)
    #[arg(long, value_name = "BP", default_value_t = 1_000_000, help_heading = "Somatic variants")]
    largest_sv: usize,
    /// Share of the tumour cells in each subclone, e.g. 0.3,0.2, or how many subclones of equal size, e.g. 2;
    /// variants are dealt to founder and subclones alike. One of share 0 is not in this sample
    #[arg(long, value_name = "SHARES", value_delimiter = ',', help_heading = "Somatic variants")]
    subclones: Vec<f64>,

    /// Germline SNVs per base
    #[arg(long, value_name = "RATE", default_value_t = 1e-3, help_heading = "Germline variants")]
    germline_snv_rate: f64,
    /// Germline indels per base
    #[arg(long, value_name = "RATE", default_value_t = 1e-4, help_heading = "Germline variants")]
    germline_indel_rate: f64,
    /// Germline deletions and insertions of 50-2000 bp
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Germline variants")]
    germline_svs: usize,

    /// Mean coverage of the tumour sample
    #[arg(long, alias = "depth-tumour", value_name = "X", default_value_t = 30.0, help_heading = "Samples")]
    depth_tumor: f64,
    /// Mean coverage of the normal sample
    #[arg(long, value_name = "X", default_value_t = 30.0, help_heading = "Samples")]
    depth_normal: f64,
    /// Share of tumour cells in the tumour sample
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, help_heading = "Samples")]
    purity: f64,
    /// Share of tumour cells in the normal sample
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Samples")]
    contamination: f64,

    /// Length of a read [default: 150]
    #[arg(long, value_name = "BASES", help_heading = "Sequencing")]
    read_length: Option<usize>,
    /// Mean length of a fragment [default: 400]; if it is below the read length, reads run into adapters
    #[arg(long, value_name = "BP", help_heading = "Sequencing")]
    insert_mean: Option<f64>,
    /// Standard deviation of the fragments' length [default: 60]
    #[arg(long, value_name = "BP", help_heading = "Sequencing")]
    insert_sd: Option<f64>,
    /// Share of the pairs that are PCR duplicates [default: 0]
    #[arg(long, value_name = "SHARE", help_heading = "Sequencing")]
    duplicates: Option<f64>,
    /// Mean probability that a base is read wrongly [default: 0.003]
    #[arg(long, value_name = "RATE", help_heading = "Sequencing")]
    error_rate: Option<f64>,
    /// Let read names tell where both mates come from: NAME,CONTIG,FIRST,LAST,STRAND of read 1, then of read 2 (bases
    /// of the reference, from 1; `*` where a breakpoint or a long insertion leaves no one place)
    #[arg(long, help_heading = "Sequencing")]
    true_positions: bool,

    /// Places of the genome at which a share of the molecules of every sample, 5-40% and more in one library than in another, show
    /// the same wrong base: artefacts that recur. The same ones for the same genome, whatever --seed; also written as recurrent.vcf
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Library")]
    recurrent: usize,
    /// Seed of these places
    #[arg(long, value_name = "SEED", default_value_t = 1, help_heading = "Library")]
    recurrent_seed: u64,

    #[command(flatten)]
    dirt: dirt::Dirt,
}

/// Species whose genome a made one may be like.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Species {
    /// Alu and L1 of all ages, centromeres, segmental duplications, sex chromosomes, gaps
    Human,
}

/// Coverage of the mitochondrial genome where the other one is like the human one.
const HUMAN_MITOCHONDRION: f64 = 1000.0;
/// Somatic variants are as far apart as this in captured targets, which have little room (bp).
const SPACING_IN_TARGETS: usize = 150;

impl Args {
    /// Shares of the subclones; one whole number is their count, and the founder keeps as much as each of them.
    fn subclones(&self) -> Vec<f64> {
        match *self.subclones {
            [count] if count >= 1.0 && count.fract() == 0.0 => vec![1.0 / (count + 1.0); count as usize],
            _ => self.subclones.clone(),
        }
    }

    fn params(&self) -> Params {
        let mut params = Params { seed: self.seed, reads_seed: self.reads_seed, ..Params::default() };
        self.dirt.preset(&mut params);
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
            params.recurrent = RecurrentParams { places: self.recurrent, seed: self.recurrent_seed };
        }
        params.unstable.share = self.unstable;
        params.linked.clusters = self.clusters;
        params.linked.mnvs = self.mnvs;
        let reads = &mut params.sequencing;
        reads.read_length = self.read_length.unwrap_or(reads.read_length);
        reads.insert_mean = self.insert_mean.unwrap_or(reads.insert_mean);
        reads.insert_sd = self.insert_sd.unwrap_or(reads.insert_sd);
        reads.duplicates = self.duplicates.unwrap_or(reads.duplicates);
        reads.error_rate = self.error_rate.unwrap_or(reads.error_rate);
        reads.true_positions = self.true_positions;
        if self.read_length.is_some() {
            reads.machine.read_lengths.clear();
        }
        if self.genome_like.is_some() {
            params.samples.mitochondrion = HUMAN_MITOCHONDRION;
        }
        self.dirt.apply(&mut params);
        let usual = SomaticParams::default();
        if let Some(capture) = &mut params.capture {
            capture.fewer_variants = self.snvs.or(self.indels).or(self.svs).is_none();
        }
        let spacing = if params.capture.is_some() { SPACING_IN_TARGETS } else { usual.spacing };
        params.somatic = SomaticParams {
            snvs: self.snvs.unwrap_or(usual.snvs),
            indels: self.indels.unwrap_or(usual.indels),
            svs: self.svs.unwrap_or(usual.svs),
            tandem_share: self.tandem_share,
            spacing: self.spacing.unwrap_or(spacing),
            largest_sv: self.largest_sv,
            subclones: self.subclones(),
        };
        params
    }
}

/// A sample of the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OneSample {
    Tumor,
    Normal,
}

/// Simulates and says on stderr what was made.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let params = args.params();
    if args.dirt.names_off_target() && params.capture.is_none() {
        return Err(Usage(
            "--off-target needs targets: give --capture, --targets or a --library with them".into(),
        )
        .into());
    }
    let threads = command::all_or(args.threads);
    let start = Instant::now();
    let sample = match (args.out == Path::new("-"), args.sample) {
        (false, None) => None,
        (true, Some(OneSample::Tumor)) => Some(Which::Tumor),
        (true, Some(OneSample::Normal)) => Some(Which::Normal),
        (true, None) => {
            return Err(Usage("-o - is for one sample: add --sample tumor or --sample normal".into()).into());
        }
        (false, Some(_)) => return Err(Usage("--sample is for -o -: a folder gets both".into()).into()),
    };
    if let Some(sample) = sample {
        return match stream(&params, sample, &mut voice::results()?, threads) {
            // Who reads it has seen enough.
            Err(Error::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(Error::Write(error)) => Err(anyhow::Error::new(error).context("standard output")),
            done => done.map(drop).map_err(Into::into),
        };
    }
    let made = simulate(&params, &args.out, threads)?;
    tracing::info!(
        "{}: {} bp, {} germline, {} somatic small and {} structural variants, {} + {} read pairs in {:.1} s",
        args.out.display(),
        made.genome_length,
        made.germline_variants,
        made.somatic_small,
        made.somatic_structural,
        made.tumor_pairs,
        made.normal_pairs,
        start.elapsed().as_secs_f64(),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use genuma_simulate::{Adapter, Preset, TargetSource};

    #[derive(Parser)]
    struct Door {
        #[command(flatten)]
        args: Args,
    }

    fn params(options: &str) -> Params {
        let words = ["simulate", "-o", "x"].into_iter().chain(options.split_whitespace());
        Door::try_parse_from(words).unwrap_or_else(|e| panic!("{e}")).args.params()
    }

    #[test]
    fn without_options_all_is_as_the_library_has_it() {
        let text = |p: &Params| serde_json::to_string(p).expect("JSON");
        assert_eq!(text(&params("")), text(&Params::default()));
    }

    #[test]
    fn what_is_given_wins_over_the_preset() {
        let old = params("--library old");
        assert_eq!(
            (old.library, old.sequencing.machine.read_lengths.as_slice()),
            (Some(Preset::Old), &[100, 76][..])
        );
        assert_eq!((old.sequencing.error_rate, old.sequencing.duplicates), (0.006, 0.2));
        let other = params("--library old --read-length 90 --error-rate 0.01 --quality-tails 0 --two-colour");
        assert_eq!(other.sequencing.read_lengths(), [90]);
        assert_eq!((other.sequencing.error_rate, other.sequencing.machine.quality_tails), (0.01, 0.0));
        assert!(other.sequencing.machine.two_colour && !old.sequencing.machine.two_colour);
        assert_eq!(other.sequencing.library, old.sequencing.library);
        let wgs = params("--library wgs --binned-qualities=false --adapter nextera");
        assert!(!wgs.sequencing.machine.binned_qualities && wgs.sequencing.machine.two_colour);
        assert_eq!(wgs.sequencing.library.adapter, Some(Adapter::Nextera));
    }

    #[test]
    fn genomes_like_the_human_one_have_a_mitochondrion() {
        let human = params("--genome-like human --genome-length 3.1G");
        assert!(matches!(human.genome, GenomeSource::Human { length: 3_100_000_000 }));
        assert_eq!(human.samples.mitochondrion, 1000.0);
        assert_eq!(params("--genome-like human --mitochondrion 0").samples.mitochondrion, 0.0);
        let refused = ["--contigs 4", "--repeats 0.5", "--genome x.fa"];
        for other in refused {
            let words = ["simulate", "-o", "x", "--genome-like", "human"].into_iter();
            assert!(Door::try_parse_from(words.chain(other.split(' '))).is_err(), "{other}");
        }
    }

    #[test]
    fn capture_leaves_room_for_variants() {
        let panel = params("--library panel");
        assert_eq!(panel.somatic.spacing, 150);
        assert!(panel.capture.as_ref().is_some_and(|c| c.fewer_variants && c.targets == TargetSource::Panel));
        let asked = params("--library exome --snvs 20 --spacing 90 --off-target 0.2 --targets t.bed");
        assert_eq!((asked.somatic.snvs, asked.somatic.indels, asked.somatic.spacing), (20, 150, 90));
        let capture = asked.capture.expect("targets");
        assert!(!capture.fewer_variants && capture.off_target == 0.2);
        assert_eq!(capture.targets, TargetSource::File("t.bed".into()));
    }
}
