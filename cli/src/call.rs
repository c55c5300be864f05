//! `genuma call`: calls somatic variants from the reads of a tumour and of a normal.

pub(crate) mod memory_limits;
mod header_check;
mod call_fingerprint;
mod job;
pub(crate) mod known_info;
pub(crate) mod messages;
mod output_folder;
pub(crate) mod provenance;
mod read_lengths;
pub(crate) mod blocking_warnings;
mod signature_fit;
mod summary;
mod targets;
pub(crate) mod result_files;
pub(crate) mod panel;
pub(crate) mod disk_space;
pub(crate) mod sample_options;
pub(crate) mod watcher;
mod why;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::bail;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ValueEnum, value_parser};
use genuma_pair::assay::Assay;
use genuma_planner::input::{self, ForecastInput};
use genuma_planner::rates::MEASURED_RATES;
use genuma_reads::Lane;
use genuma_reads::fasta::Reference;
use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::known_info::KnownInfoSource;
use genuma_somatic::pipeline::{CallJob, FinishedCall};
use genuma_somatic::result_warnings::{ResultWarning, WarningTopic};
use genuma_work::counters::RunCounterRecorder;
use genuma_work::energy::PowerLog;
use genuma_work::quantity::{self, format_count_with_noun, format_duration};
use tracing::{info, warn};

use self::job::PreparedCall;
use self::known_info::KnownInfoOption;
use self::messages::{log_gene_counts, log_result, log_sample_properties, log_target_counts, log_warnings};
use self::output_folder::{OutputFolder, clean_up_folders_on_interruption};
use crate::distributed::planning::{self, PlanRequest};
use crate::errors::UsageError;
use crate::read_layout::ReadLayoutOptions;
use crate::{aligned_files, command_line, fpga, gpu, logging};
use blocking_warnings::{BlockingWarningRule, ResultsWithheldError};
use genuma_work::folder::{self, WorkFolder};
use genuma_work::signals;
use provenance::SAM_PLATFORMS;
use result_files::{CallOutputs, OptionalOutputs};
use sample_options::TumourReadFileOptions;
use watcher::CallWatcher;

/// Default of `--target-padding`, in bp. GATK users commonly pad intervals by as much: captured fragments extend beyond
/// their target.
const DEFAULT_TARGET_PADDING_BP: u32 = 100;

/// Call somatic variants from tumour and normal reads.
///
/// Finds SNVs, MNVs, indels and structural variants that the tumour has and the normal lacks, by
/// comparing the k-mers of both samples. Reads are not aligned.
///
/// Input is FASTQ, plain or compressed (gzip, BGZF, bzip2, xz, zstd): two files per lane, one
/// interleaved file (--interleaved) or single reads (--single); or BAM, CRAM, CBQ, VBQ or BQ with
/// records in any order. Alignments in BAM and CRAM are ignored. Reads may have any length from k up,
/// and the samples may differ in depth and read length. An input file may be a pipe, or `-` for
/// standard input, if the work folder has room for packed reads (a compact copy of the input).
///
/// Writes into the output folder, when all is done:
///   somatic.vcf.gz     all calls, with index; FILTER is PASS, or the reasons why a call fails
///   contigs.fa         the assembled sequences, numbered by contig: the tumour alleles t1, t2 and so
///                      on (INFO/CONTIG names the one of a call), each with the sequence of the
///                      normal: n1, n2 and so on
///   supporting.bam     the reads that support the calls, with index (only with --reference)
///   summary.json       parameters, depths, counts, time and memory
///   report.html        the calls and the reads behind them: open it in a browser
///   genuma_*_mqc.json  a summary for MultiQC
///   targets.tsv        depth of each target in each sample (only with --targets)
///
/// The same reads and parameters give the same calls, byte for byte, whatever the number of threads,
/// the memory, and the lanes that the reads are split into.
#[derive(Debug, clap::Args)]
#[command(
    about = "Call somatic variants from tumour and normal reads",
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    One lane per sample, calls placed on a reference:\n    \
    genuma call --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz --reference ref.fa -o calls\n  \
    Two lanes of the tumour, at most 8 GiB of memory, k-mers that do not fit spilled to a fast disk:\n    \
    genuma call --tumor T1_1.fq.gz T1_2.fq.gz T2_1.fq.gz T2_2.fq.gz --normal N_1.fq.gz N_2.fq.gz \\\n      \
    --reference ref.fa --memory 8G --work /scratch/me/work -o calls\n  \
    To resume an interrupted run, repeat the same command with\n    \
    --resume\n  \
    On many machines with Slurm, in 8 shards and 8 partitions (see also genuma step --help):\n    \
    genuma call --plan run --shards 8 --partitions 8 --sbatch --tumor T_1.fq.gz T_2.fq.gz \\\n      \
    --normal N_1.fq.gz N_2.fq.gz --reference ref.fa -o calls && sh run/submit.sh"
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) tumor: TumourReadFileOptions<true>,
    /// Reads of the normal sample of the same person, as files in the same order as for --tumor, all of one sample;
    /// without NAME= (see --normal-name). Without --normal the call is tumour-only: the reference takes the place of
    /// the normal, and --reference is needed. Germline variants are then distinguished from somatic ones by their
    /// allele fraction and by --known, so that calls are less certain
    #[arg(long, value_name = "READS", num_args = 1.., help_heading = "Input")]
    pub(crate) normal: Vec<PathBuf>,
    /// Reference genome, plain or compressed FASTA, no index needed. CRAM input is decoded with it. Without --reference
    /// CHROM is the name of the normal's sequence in contigs.fa (n1, n2 and so on), and POS a position on it
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    pub(crate) reference: Option<PathBuf>,
    /// Target intervals of an exome or a panel of genes: BED or a Picard interval list, plain or compressed. Calls
    /// outside the targets and their padding are not written. The depth of each target is reported. Needs --reference
    #[arg(short = 'L', long, value_name = "FILE", requires = "reference", help_heading = "Input")]
    targets: Option<PathBuf>,
    /// Number of bases by which each target is extended on both sides [default: 100, which is usual for interval
    /// padding in GATK]
    #[arg(long, value_name = "BP", requires = "targets", value_parser = value_parser!(u32).range(0..=1_000_000), help_heading = "Input")]
    target_padding: Option<u32>,
    /// Genes, as Ensembl, GENCODE or RefSeq publish them: GFF3, plain or gzipped, with the contig names of the
    /// reference. The VCF then gets consequences (BCSQ), HGVS names and gene fusions, MAF and report get genes and
    /// protein changes. Needs --reference
    #[arg(long, value_name = "GFF3", requires = "reference", help_heading = "Input")]
    gff: Option<PathBuf>,
    /// Known variants of the population, such as those of gnomAD: VCF with AF (or AC and AN), plain or compressed; a
    /// tabix index makes it fast. Alleles that are common in the population need more evidence against a germline
    /// origin, alleles that are not listed need less. Needed in practice without --normal; also useful if the normal
    /// has a depth below 15x. Needs --reference
    #[arg(long, value_name = "VCF", requires = "reference", help_heading = "Input")]
    known: Option<PathBuf>,
    /// INFO fields of known variants that the calls get, such as AF,CLNSIG: those of the file of --known, or of another
    /// VCF, which does not change the quality of calls, as `clinvar.vcf.gz:CLNSIG,CLNDN`; may be given several times. The
    /// fields are in VCF, MAF, report and summary.json. A name that VCF or genuma uses gets the prefix KNOWN_. Needs
    /// --reference
    #[arg(long, value_name = "[VCF:]FIELDS", requires = "reference", value_parser = known_info::parse_known_info, help_heading = "Input")]
    known_info: Vec<KnownInfoOption>,
    /// Panel of normals: a k-mer table made by `genuma kmers union --counts samples`, with the same k, or the dictionary
    /// that `genuma kmers compact` made of it, which is read into memory. A call whose variant several of these normals
    /// have (see --panel-min-samples) gets the FILTER `panel`
    #[arg(long, value_name = "TABLE", help_heading = "Input")]
    pub(crate) panel: Option<PathBuf>,
    /// Mutational signatures: the tab-separated file of COSMIC for your reference (a row for each context such as
    /// `A[C>A]A`, a column for each signature). The report and summary.json then have the share of the SNVs that each
    /// signature explains. Signatures are fitted only from 500 SNVs on. Needs --reference
    #[arg(long, value_name = "FILE", requires = "reference", help_heading = "Input")]
    signatures: Option<PathBuf>,
    /// Sequences to screen all samples for, in addition to the reference, such as viruses: plain or compressed FASTA.
    /// summary.json reports how much of each sequence the samples contain
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    screen: Option<PathBuf>,
    /// Name of the only tumour; NAME= before its first file does the same
    #[arg(long, value_name = "NAME", value_parser = sample_options::parse_sample_name, help_heading = "Input")]
    pub(crate) tumor_name: Option<String>,
    /// Name of the normal in VCF and BAM files [default: the SM of BAM or CRAM input, else NORMAL]
    #[arg(long, value_name = "NAME", requires = "normal", value_parser = sample_options::parse_sample_name, help_heading = "Input")]
    pub(crate) normal_name: Option<String>,
    #[command(flatten)]
    pub(crate) layout: ReadLayoutOptions,

    /// Folder for the results; it is created if missing
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: PathBuf,
    /// Also write small variants with FILTER PASS as MAF, for programs that do not read VCF. Genes and consequences
    /// come from --gff; without --gff these columns contain `Unknown`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    maf: Option<PathBuf>,
    /// Also write structural variants with FILTER PASS as BEDPE, one row for each junction
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    bedpe: Option<PathBuf>,
    /// Also write the content of summary.json to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Minimum somatic quality (Phred) of a call with FILTER PASS [default: 8; without --normal 3, with which a call is
    /// more probably somatic than not]
    #[arg(long, value_name = "PHRED", value_parser = parse_quality, help_heading = "Output")]
    min_quality: Option<f64>,
    /// Treat every warning about the inputs or the result as an error: no results are written and the exit code is 1
    #[arg(long, conflicts_with = "force", help_heading = "Output")]
    strict: bool,
    /// Write the results although a warning withholds them: wrong or incomplete reference, CRAM made with another
    /// reference, two people, tumour and normal swapped, another species, a sample with a depth below 4, or reads
    /// shorter than 30 bases on average. The warning is then in the VCF header, summary.json and report. Without
    /// --force the exit code is 1 in these cases. After a run that withheld its results, add --resume too, so that
    /// finished units are not computed again. Not with --strict
    #[arg(long, help_heading = "Output")]
    force: bool,
    /// Explain why a variant was called or not: a VCF file, or one variant as CHROM:POS:REF>ALT; may be given several
    /// times. The explanations go to standard output and to why.txt. Needs --reference, and one more pass over the reads
    #[arg(long, value_name = "VARIANT", help_heading = "Output")]
    why: Vec<String>,

    /// Assay (kind of library) of all samples. With `auto` the reads of each sample decide; the decision and its reason are
    /// in the log, in summary.json and in the report. With `amplicon`, each read pair counts as one molecule. With the other
    /// assays, pairs with the same ends are duplicates of one molecule
    #[arg(long, value_name = "ASSAY", value_enum, default_value_t = AssayOption::Auto, help_heading = "Method")]
    assay: AssayOption,

    /// Threads [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    pub(crate) threads: Option<u16>,
    /// Maximum memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = "Resources")]
    pub(crate) memory: Option<u64>,
    /// Work folder for data that does not fit in memory and for the results of finished units (see --resume), best on a
    /// fast disk; it is removed on success [default: .work in the output folder]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    pub(crate) work: Option<PathBuf>,
    /// Maximum disk space in the work folder for k-mers that do not fit in memory and for packed reads (a compact copy
    /// of the input), such as 100G; with too little space the input files are read more often [default: the free space
    /// there, less 5% or 1G, whichever is more]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = "Resources")]
    pub(crate) scratch: Option<u64>,
    #[command(flatten)]
    pub(crate) gpu: gpu::GpuOptions,
    /// Resume an interrupted run: the units of the call (count, assemble, recruit) that it finished are not computed
    /// again. The version of genuma, the reads, the reference, other inputs and options that change the calls must be
    /// the same; --threads, --memory and --scratch may change
    #[arg(long, help_heading = "Resources")]
    resume: bool,
    /// Do not call: print the time, memory and disk space that this call will need (for input sizes instead of files
    /// see `genuma plan`). The exit code is 1 if the call does not fit in the memory of --memory, or --scratch is far
    /// too small (see `genuma plan`)
    #[arg(long, conflicts_with_all = ["plan", "resume"], help_heading = "Resources")]
    pub(crate) dry_run: bool,

    /// Plan a distributed call instead of calling: write its plan to this run store, a folder, s3://bucket/prefix or
    /// gs://bucket/prefix. `genuma step` then does its tasks on any machine that can access the run store. --maf,
    /// --bedpe, --json, --known-info and --signatures are then given to `genuma step STORE finish`. Not with several
    /// --tumor, nor with --why, --work, --scratch, --resume, --gpu, --fpga, --counters, --power-log, --dry-run.
    /// --threads and --memory are those of one task: 4 threads (all CPUs if there are fewer) and 16G unless given.
    /// --force and --strict then apply only to the checks of the inputs; give them to `finish` again
    #[arg(long, value_name = "STORE", conflicts_with_all = ["why", "work", "scratch", "resume", "gpu", "fpga", "maf", "bedpe", "json", "signatures", "known_info"], help_heading = "Distributed call")]
    plan: Option<String>,
    /// Number of shards of the reads; each is read by a task of its own. A shard consists of lanes, or of slices of
    /// lanes. Plain or BGZF FASTQ files are cut; otherwise compressed FASTQ, BAM, CRAM, CBQ, VBQ and BQ files stay
    /// whole [default: one for each 25 Gbases, 2 to 256]
    #[arg(long, value_name = "N", requires = "plan", value_parser = value_parser!(u32).range(1..=512), help_heading = "Distributed call")]
    shards: Option<u32>,
    /// Number of partitions of the k-mers; each is counted by a task of its own [default: the number of shards]
    #[arg(long, alias = "parts", value_name = "N", requires = "plan", value_parser = value_parser!(u32).range(1..=1024), help_heading = "Distributed call")]
    partitions: Option<u32>,
    /// Also write submit.sh into the run store, which must be a folder that all machines can access; `sh
    /// STORE/submit.sh` submits each step to Slurm as an array job
    #[arg(long, requires = "plan", help_heading = "Distributed call")]
    sbatch: bool,

    /// Length of k-mers in bases, 17 to 32: shorter k-mers need less depth, longer ones are unique in more repeats
    /// [default: 31; for a mean read length below 52 bases, the largest odd number up to 0.6 of it, at least 17]
    #[arg(short, value_name = "K", value_parser = command_line::call_kmer_length_parser(), help_heading = "Advanced")]
    pub(crate) k: Option<u32>,
    /// Do not count k-mers that have a base below this quality (Phred); 0 counts all
    #[arg(long, value_name = "PHRED", default_value_t = 0, value_parser = value_parser!(u8).range(0..=60), help_heading = "Advanced")]
    min_base_quality: u8,
    /// Number of normals in the panel that must have a variant for the call to get the FILTER `panel` [default: 2]
    #[arg(long, alias = "panel-least", value_name = "N", requires = "panel", value_parser = value_parser!(u32).range(1..=65_535), help_heading = "Advanced")]
    pub(crate) panel_min_samples: Option<u32>,
    /// Sequencing platform of the reads, one of the PL values of SAM, such as ILLUMINA, IONTORRENT or DNBSEQ: PL of the
    /// read groups in supporting.bam [default: the PL of BAM or CRAM input; else none]
    #[arg(long, value_name = "NAME", ignore_case = true, value_parser = PossibleValuesParser::new(SAM_PLATFORMS).map(|name| name.to_uppercase()), hide_possible_values = true, help_heading = "Advanced")]
    platform: Option<String>,
    /// Count what the process uses: CPU time, memory on each NUMA node, context switches, CPU migrations, page faults,
    /// disk access; and, where the system permits perf events, cycles, instructions, cache misses and loads from memory
    /// of other NUMA nodes. The counts are logged at the end and written to summary.json
    #[arg(long, conflicts_with = "plan", help_heading = "Advanced")]
    counters: bool,
    /// Readings of a power meter of this machine, to which another program appends while the call runs: lines with the
    /// time in seconds since 1970 and the power in watts, at most two minutes apart. The energy of each unit is then
    /// that of the meter [default: that of the energy counters of the processors (RAPL) where they can be read, else an
    /// estimate]
    #[arg(long, value_name = "FILE", conflicts_with = "plan", help_heading = "Advanced")]
    power_log: Option<PathBuf>,
    #[command(flatten)]
    fpga: fpga::FpgaOptions,
}

/// Values of `--assay`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum AssayOption {
    /// Determine the assay from the reads.
    Auto,
    /// Whole genome.
    Wgs,
    /// Captured exons of all genes.
    Exome,
    /// Captured exons of some genes.
    Panel,
    /// Targets amplified between primers.
    Amplicon,
    /// Cell-free DNA.
    Cfdna,
}

impl AssayOption {
    /// Returns the assay that the option gives; `None` for `auto`, where the assay is estimated from the reads.
    fn assay(self) -> Option<Assay> {
        match self {
            AssayOption::Auto => None,
            AssayOption::Wgs => Some(Assay::Wgs),
            AssayOption::Exome => Some(Assay::Exome),
            AssayOption::Panel => Some(Assay::Panel),
            AssayOption::Amplicon => Some(Assay::Amplicon),
            AssayOption::Cfdna => Some(Assay::Cfdna),
        }
    }
}

fn parse_quality(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(quality) if (0.0..=1000.0).contains(&quality) => Ok(quality),
        _ => Err("give a number from 0 to 1000".into()),
    }
}

/// Runs `genuma call`: checks the input, runs all units, and writes the results. With `--plan` it only writes the plan
/// of a distributed call, with `--dry-run` it only prints the forecast.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let counting = args.counters.then(RunCounterRecorder::start);
    let power_log = args.power_log.as_deref().map(PowerLog::open).transpose()?;
    let options = args.optional_outputs()?;
    let PreparedCall { mut job, warnings, input_files } = args.prepare_call()?;
    if let Some(run) = &args.plan {
        let (reference, warnings) = check_inputs(&job, &[], warnings, args.blocking_warning_rule())?;
        memory_limits::check_memory_budget(&job.resources, reference)?;
        let Args { shards, partitions, sbatch, out, .. } = &args;
        return planning::write_distributed_plan(
            &job,
            &PlanRequest { run, shards: *shards, num_partitions: *partitions, sbatch: *sbatch, out, warnings },
        );
    }
    let tables = args.maf.iter().chain(&args.bedpe).chain(&args.json).map(PathBuf::as_path);
    let checked = folder::check_outside_work_folder(
        &job.store.work_folder,
        job.input_paths().chain(tables).chain([args.out.as_path()]),
    );
    checked.map_err(|e| UsageError(e.to_string()))?;
    let (reference, warnings) = check_inputs(&job, &options.known_info, warnings, args.blocking_warning_rule())?;
    if args.dry_run {
        return args.print_forecast(job, reference);
    }
    check_memory(&job, reference)?;
    let folder = OutputFolder::open_or_create(&args.out)?;
    let work = WorkFolder::open(&job.store.work_folder, args.resume)?;
    clean_up_folders_on_interruption(&job.store.work_folder, &folder);

    let outputs = disk_space::choose_scratch_bytes(&job.store.work_folder, args.scratch).and_then(|scratch| {
        job.resources.scratch = scratch;
        log_forecast(&job, reference)?;
        Ok(CallOutputs::create(&args.out, options)?)
    });
    let done = outputs.and_then(|outputs| {
        let watched = CallWatcher::start(counting, power_log);
        let mut finished = run_units(&job, &watched, args.blocking_warning_rule())?;
        gpu::log_kmers_counted_by_devices(&job.resources.devices);
        fpga::log_scattered_batches(&job.resources.devices);
        input_files.check_files_unchanged()?;
        let warnings =
            [warnings, check_headers_of_pipes(&job, &finished.genome, args.blocking_warning_rule())?].concat();
        let warnings =
            blocking_warnings::collect_and_check_warnings(&finished, warnings, args.blocking_warning_rule())?;
        write_results(&job, outputs, &mut finished, warnings, &watched)
    });
    aligned_files::log_record_counts_at_info_level(&job.lanes);
    // An interruption can end here too, because its handler removes files in use. The handler's message must then be
    // the last one.
    let undivided = signals::enter_critical_section();
    signals::set_termination_handler(None);
    match &done {
        Ok(outcome) => {
            work.remove();
            log_sample_properties(outcome);
            log_warnings(&outcome.warnings);
            log_result(outcome, &args.out, start);
        }
        Err(error) if work.close_keeping_resumable_files() => {
            let format_hint = match error.downcast_ref::<ResultsWithheldError>() {
                Some(ResultsWithheldError::Meaningless(_)) => folder::format_withheld_results_hint,
                Some(ResultsWithheldError::Strict(_)) => folder::format_strict_hint,
                None => folder::format_resume_hint,
            };
            let hint = format_hint(&job.store.work_folder);
            warn!("{hint}");
        }
        Err(_) => {}
    }
    drop(undivided);
    done.map(drop)
}

/// Runs the units of a call.
///
/// # Errors
/// A unit fails, or a sample is so shallow that `rule` does not accept it. That is known after counting: with a shallow
/// normal the tumour has so many candidate k-mers that assembling them takes very long.
fn run_units(job: &CallJob, watched: &CallWatcher, rule: BlockingWarningRule) -> anyhow::Result<FinishedCall> {
    let counted = job.count_samples(watched)?;
    blocking_warnings::check_no_blocking_warnings(&counted.find_shallow_samples(job), rule)?;
    Ok(job.call_counted_samples(counted, watched)?)
}

/// Checks that the memory is sufficient for the call, its panel of normals and the traces of `--why`. `reference` is the
/// number of bases of the reference.
fn check_memory(job: &CallJob, reference: Option<u64>) -> anyhow::Result<()> {
    memory_limits::check_memory_budget(&job.resources, reference)?;
    if let Some(panel) = &job.panel {
        panel::check_panel_fits_memory(panel, &job.resources, reference)?;
    }
    why::check_memory_of_traces(job, reference)?;
    Ok(())
}

/// Folder and options of the results of a distributed call.
pub(crate) struct DistributedOutputOptions<'a> {
    /// Folder of the results; it is created if it is missing.
    pub(crate) out: &'a Path,
    /// The optional outputs.
    pub(crate) options: OptionalOutputs,
    /// The warnings on the inputs that the plan contains.
    pub(crate) warnings: Vec<ResultWarning>,
    /// Which warnings prevent the results from being written.
    pub(crate) rule: BlockingWarningRule,
}

/// Runs the last step of a distributed call (`judge`), writes the results, and logs a summary. The output files are
/// opened before that step, so that a folder without write permission is an error at the start.
pub(crate) fn judge_and_write_distributed_call(
    job: &CallJob,
    outputs: DistributedOutputOptions<'_>,
    watched: &CallWatcher,
    judge: impl FnOnce() -> anyhow::Result<FinishedCall>,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let DistributedOutputOptions { out, options, warnings, rule } = outputs;
    let _folder = OutputFolder::open_or_create(out)?;
    let outputs = CallOutputs::create(out, options)?;
    let mut finished = judge()?;
    let warnings = blocking_warnings::collect_and_check_warnings(&finished, warnings, rule)?;
    let outcome = outputs.write_result_files(job, &mut finished, warnings, watched)?;
    log_sample_properties(&outcome);
    log_warnings(&outcome.warnings);
    log_result(&outcome, out, start);
    Ok(())
}

/// Writes the results of a call that ran in this process, and prints the explanations that `--why` requests. Returns
/// the summary.
fn write_results(
    job: &CallJob,
    outputs: CallOutputs<'_>,
    finished: &mut FinishedCall,
    warnings: Vec<ResultWarning>,
    watched: &CallWatcher,
) -> anyhow::Result<CallSummary> {
    let outcome = outputs.write_result_files(job, finished, warnings, watched)?;
    for text in why::format_trace_reports(&finished.traces) {
        logging::print_result(text)?;
    }
    Ok(outcome)
}

/// Measures the input of a call whose reference has this number of bases.
fn measure_forecast_input(job: &CallJob, reference: Option<u64>) -> anyhow::Result<ForecastInput> {
    let panel = job.panel.as_ref().map(|panel| input::measure_panel_size(panel.table_path())).transpose()?;
    Ok(input::measure_forecast_input(&job.lanes, reference, panel, job.params.k, job.resources.clone())?)
}

/// Returns whether some reads come from a pipe, which can be read only once.
fn has_piped_reads(job: &CallJob) -> bool {
    job.lanes.iter().any(Lane::has_pipe)
}

/// Checks the headers of aligned reads from pipes against the reference `genome`: they are known when the reads have been
/// read. Returns the warnings to write into the results; none without a reference.
///
/// # Errors
/// A header contradicts the reference, and `rule` does not accept that.
fn check_headers_of_pipes(
    job: &CallJob,
    genome: &Reference,
    rule: BlockingWarningRule,
) -> anyhow::Result<Vec<ResultWarning>> {
    let Some(path) = &job.reference else { return Ok(Vec::new()) };
    let lanes: Vec<Lane> =
        job.lanes.iter().filter(|lane| lane.is_bam_cram_or_binseq() && lane.has_pipe()).cloned().collect();
    let warnings = header_check::find_header_reference_mismatches(&lanes, genome, path)?;
    blocking_warnings::check_no_blocking_warnings(&warnings, rule)?;
    Ok(warnings)
}

/// Checks the inputs early for errors that would otherwise stop the call after hours. Returns the number of bases of
/// the reference (`None` without one), and the warnings to write into the results: first `warnings`, which are known
/// already. Logs the warnings, targets and genes.
///
/// # Errors
/// An input cannot be read; or `rule` does not accept a warning on the inputs.
fn check_inputs(
    job: &CallJob,
    known_info: &[KnownInfoSource],
    mut warnings: Vec<ResultWarning>,
    rule: BlockingWarningRule,
) -> anyhow::Result<(Option<u64>, Vec<ResultWarning>)> {
    warnings.extend(find_read_length_warnings(job)?);
    if !job.samples.has_normal() && job.known.is_none() {
        // Not a warning of the results: the options say so themselves.
        warn!(
            target: logging::OPTIONS_LOG_TARGET,
            "no normal and no known variants: hardly any call passes, because nearly all variants are germline variants; give \
             population frequencies, such as those of gnomAD, with --known"
        );
    }
    let reference = match &job.reference {
        None => None,
        Some(path) => {
            let reference = Reference::read_fasta_file(path)?;
            warnings.extend(header_check::find_header_reference_mismatches(&job.lanes, &reference, path)?);
            Some(reference)
        }
    };
    blocking_warnings::check_no_blocking_warnings(&warnings, rule)?;
    log_warnings(&warnings);
    if let Some(reference) = &reference {
        if let Some(option) = &job.targets {
            log_target_counts(option, &option.read_targets(reference)?);
        }
        job.known.as_ref().map_or(Ok(()), |known| known.check_file_start_and_index(reference))?;
        known_info::check_known_info(known_info, reference)?;
        if let Some(gff) = &job.gff {
            log_gene_counts(gff, &gff.read_genes(reference)?);
        }
    }
    blocking_warnings::check_no_logged_warnings_if_strict(rule)?;
    let num_bases = reference.map(|reference| reference.contigs.iter().map(|c| c.seq.len() as u64).sum());
    Ok((num_bases, warnings))
}

/// Returns a warning for each tumour whose reads have another length than those of the normal. None for reads from
/// pipes, whose content is unknown until it is read.
fn find_read_length_warnings(job: &CallJob) -> anyhow::Result<Vec<ResultWarning>> {
    if has_piped_reads(job) {
        return Ok(Vec::new());
    }
    // Errors of the first reads end the call here.
    let lengths = read_lengths::max_read_bp_of_first_batch_by_sample(&job.lanes)?;
    let other_lengths = lengths.iter().enumerate().filter(|(_, length)| **length != lengths[0]);
    let warn = |(sample, length): (usize, &usize)| {
        let (name, normal) = (job.samples.name_in_messages(sample), lengths[0]);
        let message = format!(
            "reads are {length} bp long in the {name} and {normal} bp in the normal: this is allowed, and calls are \
             made as usual; check that no file of another sample was given"
        );
        ResultWarning::new(WarningTopic::ReadLengths, message)
    };
    Ok(other_lengths.filter(|_| job.samples.has_normal()).map(warn).collect())
}

/// Logs the expected time, memory and disk space of the call. Logs nothing for a resumed run, because the remaining
/// work is unknown. For reads from a pipe, whose size is unknown, it only logs that nothing can be estimated.
///
/// # Errors
/// The call is not possible with the given resources.
fn log_forecast(job: &CallJob, reference: Option<u64>) -> anyhow::Result<()> {
    if has_piped_reads(job) {
        info!("reads come from a pipe: time and memory of the call cannot be estimated");
        return Ok(());
    }
    let forecast = measure_forecast_input(job, reference)?.forecast_call(&MEASURED_RATES);
    if let Some(why) = forecast.refused {
        bail!("{why}: {}", forecast.advice.join("; "));
    }
    if !job.store.resume {
        info!(
            "planned: k-mers counted in {}; about {}, {} of memory and {} in the work folder (see `genuma plan`)",
            format_count_with_noun(forecast.partitions.into(), "partition"),
            format_duration(forecast.total_wall_s()),
            quantity::format_bytes(forecast.peak_memory_bytes()),
            quantity::format_bytes(forecast.scratch_bytes)
        );
    }
    Ok(())
}
