//! `genuma call`: calls somatic variants from the reads of a tumour and of a normal.

pub(crate) mod memory_limits;
mod header_check;
pub(crate) mod provenance;
mod read_lengths;
pub(crate) mod result_check;
mod signature_fit;
mod summary;
mod targets;
pub(crate) mod result_files;
pub(crate) mod panel;
pub(crate) mod disk_space;
pub(crate) mod sample_options;
pub(crate) mod watcher;
mod why;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ValueEnum, value_parser};
use genuma_kmers::Devices;
use genuma_pair::assay::{Assay, RandomOrFixedEnds};
use genuma_reads::fasta::Reference;
use genuma_reads::targets::Targets;
use genuma_reads::{AlignedOptions, CramReference, Lane, LaneFiles, check_lanes, check_lanes_for_one_pass};
use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::gene_annotation::{GeneAnnotation, GeneFile};
use genuma_somatic::known_variants::KnownVariants;
use genuma_somatic::ledger::{
    MOST_TUMOUR_KMERS_NOT_IN_NORMAL_LEDGER_LINE, SHALLOW_NORMAL_LEDGER_LINE, TOO_MANY_VARIANTS_LEDGER_LINE,
};
use genuma_somatic::panel_of_normals::PanelOfNormals;
use genuma_somatic::pipeline::{CallJob, CallParams, FinishedCall, Resources};
use genuma_somatic::result_warnings::ResultWarning;
use genuma_somatic::sample_names::SampleNames;
use genuma_somatic::target_depth::TargetsOption;
use genuma_work::cost::measure_process_cost;
use genuma_work::counters::RunCounterRecorder;
use genuma_work::unit::UnitStore;
use tracing::{debug, info, warn};

use crate::distributed::planning::{self, PlanRequest};
use crate::errors::UsageError;
use crate::fingerprint::Fingerprint;
use crate::forecast::cost::CostOptions;
use crate::forecast::input;
use crate::forecast::model::ForecastInput;
use crate::forecast::rates::MEASURED_RATES;
use crate::forecast::text;
use crate::input_files::InputFileStates;
use crate::kmer_length::choose_kmer_length;
use crate::read_layout::ReadLayoutOptions;
use crate::report::markup::{format_count_with_noun, format_duration, group_thousands};
use crate::{aligned_files, command_line, counter_table, fpga, gpu, logging, size_format};
use genuma_work::folder::{self, WorkFolder};
use genuma_work::signals;
use provenance::{ProvenanceInputs, SAM_PLATFORMS};
use result_check::BlockingWarnings;
use result_files::{CallOutputs, OptionalOutputs};
use sample_options::{SampleNameOptions, TumourReadFileOptions};
use watcher::CallWatcher;

/// Minimum number of occurrences of a k-mer in the tumour reads; rarer k-mers count as sequencing errors. Chosen: the
/// smallest number that one read alone cannot reach. Likelihoods decide later about errors that occur twice.
const MIN_TUMOUR_KMER_COUNT: u32 = 2;

/// Default of `--target-padding`, in bp. GATK users commonly pad intervals by as much: captured fragments extend beyond
/// their target.
const DEFAULT_TARGET_PADDING_BP: u32 = 100;

/// Call somatic variants from tumour and normal reads.
///
/// Finds SNVs, MNVs, indels and structural variants that the tumour has and the normal lacks, by
/// comparing the k-mers of both samples. Reads are not aligned. Input is paired FASTQ, plain or gzipped,
/// or BAM, CRAM, CBQ, VBQ or BQ in any order, whose alignments are ignored. Reads may have any length from
/// k up, and the samples may differ in depth and read length. An input file may be a pipe, or `-` for
/// standard input, if the work folder has room for packed reads (a compact copy of the input).
///
/// Writes into the output folder, when all is done:
///   somatic.vcf.gz     all calls, with index; FILTER is PASS, or the reasons why a call fails
///   contigs.fa         the assembled alleles
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
    /// Reads of the normal sample of the same person, given in the same way. Without it the call is tumour-only: the
    /// reference takes the place of the normal, and --reference is needed. Germline variants are then distinguished from somatic
    /// ones by their allele fraction and by --known, so that calls are less certain
    #[arg(long, value_name = "READS", num_args = 1.., help_heading = "Input")]
    pub(crate) normal: Vec<PathBuf>,
    /// Name of the normal in VCF and BAM files [default: the SM of BAM or CRAM input, else NORMAL]
    #[arg(long, value_name = "NAME", requires = "normal", value_parser = sample_options::parse_sample_name, help_heading = "Input")]
    pub(crate) normal_name: Option<String>,
    /// Name of the only tumour; NAME= before its first file does the same
    #[arg(long, value_name = "NAME", value_parser = sample_options::parse_sample_name, help_heading = "Input")]
    pub(crate) tumor_name: Option<String>,
    /// Sequencing platform of the reads: PL of the read groups in supporting.bam [default: the PL of BAM or CRAM input;
    /// else none]
    #[arg(long, value_name = "NAME", ignore_case = true, value_parser = PossibleValuesParser::new(SAM_PLATFORMS).map(|name| name.to_uppercase()), hide_possible_values = true, help_heading = "Input")]
    platform: Option<String>,
    #[command(flatten)]
    pub(crate) layout: ReadLayoutOptions,
    /// Reference genome, plain or gzipped FASTA, no index needed. Without it calls are placed on the assembled contigs
    /// of the normal
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    pub(crate) reference: Option<PathBuf>,
    /// Sequences to screen both samples for, in addition to the reference, such as viruses: plain or gzipped FASTA.
    /// summary.json reports how much of each sequence the samples contain
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    screen: Option<PathBuf>,
    /// Panel of normals: a k-mer table made by `genuma kmers union --counts samples`, with the same k. A call whose
    /// variant several of these normals have (see --panel-min-samples) gets the FILTER `panel`
    #[arg(long, value_name = "TABLE", help_heading = "Input")]
    pub(crate) panel: Option<PathBuf>,
    /// Known variants of the population, such as those of gnomAD: VCF with AF (or AC and AN), plain or compressed; a tabix
    /// index makes it fast. Alleles that are common in the population need more evidence against a germline origin,
    /// alleles that are not listed need less. Most useful if the normal has a depth below 15x
    #[arg(long, value_name = "VCF", requires = "reference", help_heading = "Input")]
    known: Option<PathBuf>,
    /// Genes, as Ensembl, GENCODE or RefSeq publish them: GFF3, plain or gzipped, with the contig names of the reference. The
    /// VCF then gets consequences (BCSQ), HGVS names and gene fusions, MAF and report get genes and protein changes
    #[arg(long, value_name = "GFF3", requires = "reference", help_heading = "Input")]
    gff: Option<PathBuf>,
    /// Mutational signatures, such as those of COSMIC: text file of the probabilities of the 96 contexts. The report and
    /// summary.json then have the share of the SNVs that each signature explains
    #[arg(long, value_name = "FILE", requires = "reference", help_heading = "Input")]
    signatures: Option<PathBuf>,
    /// Target intervals of an exome or a panel of genes: BED, plain or gzipped, or a Picard interval list. Calls outside
    /// the targets and their padding are not written. The depth of each target is reported
    #[arg(short = 'L', long, value_name = "FILE", requires = "reference", help_heading = "Input")]
    targets: Option<PathBuf>,
    /// Number of bases by which each target is extended on both sides [default: 100, which is usual for interval
    /// padding in GATK]
    #[arg(long, value_name = "BP", requires = "targets", value_parser = value_parser!(u32).range(0..=1_000_000), help_heading = "Input")]
    target_padding: Option<u32>,

    /// Folder for the results; it is created if missing
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: PathBuf,
    /// Also write small variants with FILTER PASS as MAF, for programs that do not read VCF. Genes and consequences are
    /// those of --gff, without it Unknown
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    maf: Option<PathBuf>,
    /// Also write structural variants with FILTER PASS as BEDPE, one row for each junction
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    bedpe: Option<PathBuf>,
    /// Count what the process uses: CPU time, memory and its nodes, context switches, CPU migrations, page faults, disk
    /// access; and cycles, instructions, cache misses and remote loads where the system permits perf events
    #[arg(long, conflicts_with = "plan", help_heading = "Output")]
    counters: bool,
    /// Explain why a variant was called or not: a VCF file, or one variant as CHROM:POS:REF>ALT; may be given several
    /// times. The explanations go to standard output and to why.txt. Needs --reference, and one more pass over the reads
    #[arg(long, value_name = "VARIANT", help_heading = "Output")]
    why: Vec<String>,
    /// Minimum somatic quality (Phred) of a call with FILTER PASS [default: 8; without --normal 3, with which a call is
    /// more probably somatic than not]
    #[arg(long, value_name = "PHRED", value_parser = parse_quality, help_heading = "Output")]
    min_quality: Option<f64>,
    /// Number of normals in the panel that must have a variant for the call to get the FILTER `panel` [default: 2]
    #[arg(long, alias = "panel-least", value_name = "N", requires = "panel", value_parser = value_parser!(u32).range(1..=65_535), help_heading = "Output")]
    pub(crate) panel_min_samples: Option<u32>,

    /// Write the results although the reference is wrong, the samples come from two people, or tumour and normal were
    /// swapped. The warning is then written to the VCF header, to summary.json and to the report. Without this option
    /// genuma writes no results in these cases, and the exit code is 1
    #[arg(long, help_heading = "Output")]
    force: bool,
    /// Treat every warning about the inputs or the result as an error: no results are written and the exit code is 1
    #[arg(long, conflicts_with = "force", help_heading = "Output")]
    strict: bool,

    /// Assay (kind of library) of all samples. With `auto` the reads of each sample decide; the decision and its reason are
    /// in the log, in summary.json and in the report. With `amplicon`, each read pair counts as one molecule. With the other
    /// assays, pairs with the same ends are duplicates of one molecule
    #[arg(long, value_name = "ASSAY", value_enum, default_value_t = AssayOption::Auto, help_heading = "Method")]
    assay: AssayOption,
    /// Length of k-mers in bases, 17 to 32: shorter k-mers need less depth, longer ones are unique in more repeats
    /// [default: 31; for a mean read length below 52 bases, the largest odd number up to 0.6 of it, at least 17]
    #[arg(short, value_name = "K", value_parser = command_line::kmer_length_parser(), help_heading = "Method")]
    pub(crate) k: Option<u32>,
    /// Do not count k-mers that have a base below this quality (Phred); 0 counts all
    #[arg(long, value_name = "PHRED", default_value_t = 0, value_parser = value_parser!(u8).range(0..=60), help_heading = "Method")]
    min_base_quality: u8,

    /// Threads [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    pub(crate) threads: Option<u16>,
    /// Maximum memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = size_format::parse_bytes, help_heading = "Resources")]
    pub(crate) memory: Option<u64>,
    /// Work folder for data that does not fit in memory and for the results of finished units (see --resume), best on a
    /// fast disk; it is removed on success [default: .work in the output folder]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    pub(crate) work: Option<PathBuf>,
    /// Maximum disk space in the work folder for k-mers that do not fit in memory and for packed reads (a compact copy
    /// of the input), such as 100G; with too little space the input files are read more often [default: the free space
    /// there, less 5% or 1G, whichever is more]
    #[arg(long, value_name = "SIZE", value_parser = size_format::parse_bytes, help_heading = "Resources")]
    pub(crate) scratch: Option<u64>,
    #[command(flatten)]
    pub(crate) gpu: gpu::GpuOptions,
    #[command(flatten)]
    fpga: fpga::FpgaOptions,
    /// Resume an interrupted run: the units of the call (count, assemble, recruit) that it finished are not computed
    /// again. Inputs and parameters must be the same
    #[arg(long, help_heading = "Resources")]
    resume: bool,
    /// Do not call: print the time, memory and disk space that this call will need, as `genuma plan` does with the same
    /// arguments. The exit code is 1 if the call does not fit
    #[arg(long, conflicts_with_all = ["plan", "resume"], help_heading = "Resources")]
    pub(crate) dry_run: bool,

    /// Plan a distributed call instead of calling: write its plan to this run store, a folder, s3://bucket/prefix or
    /// gs://bucket/prefix. `genuma step` then does its tasks on any machine that can access the run store. --threads
    /// and --memory are those of one task [default: 4 threads, or all CPUs if there are fewer; 16G]
    #[arg(long, value_name = "STORE", conflicts_with_all = ["why", "work", "scratch", "resume", "gpu", "fpga", "maf", "bedpe", "signatures"], help_heading = "Distributed call")]
    plan: Option<String>,
    /// Number of shards of the reads; each is read by a task of its own. A shard consists of lanes, or of stretches of
    /// plain or BGZF files [default: one for each 25 Gbases]
    #[arg(long, value_name = "N", requires = "plan", value_parser = value_parser!(u32).range(1..=512), help_heading = "Distributed call")]
    shards: Option<u32>,
    /// Number of partitions of the k-mers; each is counted by a task of its own [default: the number of shards]
    #[arg(long, alias = "parts", value_name = "N", requires = "plan", value_parser = value_parser!(u32).range(1..=1024), help_heading = "Distributed call")]
    partitions: Option<u32>,
    /// Also write submit.sh, a script that submits each step to Slurm as an array job
    #[arg(long, requires = "plan", help_heading = "Distributed call")]
    sbatch: bool,
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

/// Returns the default of `--min-quality` (Phred). Without a normal it is lower: a call passes if it is more probably
/// somatic than not.
fn default_min_quality(has_normal: bool) -> f64 {
    if has_normal { 8.0 } else { 3.0 }
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
    let options = args.output_options()?;
    let mut job = args.build_job()?;
    let input_files = InputFileStates::from_paths(job.input_paths())?;
    if let Some(run) = &args.plan {
        let (reference, warnings) = check_inputs(&job, args.warning_rule())?;
        memory_limits::check_memory_budget(&job.resources, reference)?;
        let Args { shards, partitions, sbatch, out, .. } = &args;
        return planning::write_distributed_plan(
            &job,
            &PlanRequest { run, shards: *shards, num_partitions: *partitions, sbatch: *sbatch, out, warnings },
        );
    }
    let tables = args.maf.iter().chain(&args.bedpe).map(PathBuf::as_path);
    let checked = folder::check_outside_work_folder(
        &job.store.work_folder,
        job.input_paths().chain(tables).chain([args.out.as_path()]),
    );
    checked.map_err(|e| UsageError(e.to_string()))?;
    let (reference, warnings) = check_inputs(&job, args.warning_rule())?;
    if args.dry_run {
        return args.print_forecast(job, reference);
    }
    memory_limits::check_memory_budget(&job.resources, reference)?;
    let folder = OutputFolder::open(&args.out)?;
    let work = WorkFolder::open(&job.store.work_folder, args.resume)?;
    clean_up_on_interruption(&job.store.work_folder, &folder);

    let outputs = disk_space::choose_scratch_bytes(&job.store.work_folder, args.scratch).and_then(|scratch| {
        job.resources.scratch = scratch;
        log_forecast(&job, reference)?;
        Ok(CallOutputs::create(&args.out, options)?)
    });
    let done = outputs.and_then(|outputs| {
        let watched = CallWatcher::start(counting);
        let mut finished = job.run_call(&watched)?;
        gpu::log_kmers_counted_by_devices(&job.resources.devices);
        fpga::log_scattered_batches(&job.resources.devices);
        input_files.check_unchanged()?;
        let warnings = result_check::check_call_result(&finished, warnings, args.warning_rule())?;
        write_results(&job, outputs, &mut finished, warnings, &watched)
    });
    aligned_files::log_skipped_record_counts(&job.lanes);
    // An interruption can end here too, because its handler removes files in use. The handler's message must then be
    // the last one.
    let undivided = signals::enter_critical_section();
    signals::set_interrupt_handler(None);
    match &done {
        Ok(outcome) => {
            work.remove();
            log_library_properties(outcome);
            log_warnings(outcome);
            log_result(outcome, &args.out, start);
        }
        Err(_) if work.keep_only_resumable() => warn!("{}", folder::resume_hint(&job.store.work_folder)),
        Err(_) => {}
    }
    drop(undivided);
    done.map(drop)
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
    pub(crate) rule: BlockingWarnings,
}

/// Runs the last step of a distributed call (`judge`), writes the results, and logs a summary. The output files are
/// opened before that step, so that a folder without write permission is an error at the start.
pub(crate) fn finish_distributed_call(
    job: &CallJob,
    outputs: DistributedOutputOptions<'_>,
    watched: &CallWatcher,
    judge: impl FnOnce() -> Result<FinishedCall, genuma_somatic::pipeline::Error>,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let DistributedOutputOptions { out, options, warnings, rule } = outputs;
    let _folder = OutputFolder::open(out)?;
    let outputs = CallOutputs::create(out, options)?;
    let mut finished = judge()?;
    let warnings = result_check::check_call_result(&finished, warnings, rule)?;
    let outcome = outputs.write_result_files(job, &mut finished, warnings, watched)?;
    log_library_properties(&outcome);
    log_warnings(&outcome);
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
    if !finished.traces.is_empty() {
        logging::print_result(why::format_trace_reports(&finished.traces))?;
    }
    Ok(outcome)
}

impl Args {
    /// Returns which warnings prevent the results from being written (`--force`, `--strict`).
    fn warning_rule(&self) -> BlockingWarnings {
        BlockingWarnings::from_options(self.force, self.strict)
    }

    fn output_options(&self) -> anyhow::Result<OptionalOutputs> {
        OptionalOutputs::new(self.maf.clone(), self.bedpe.clone(), self.signatures.as_deref())
    }

    /// Returns the resources of the call. With `--plan` these are the resources of one task of a distributed call,
    /// which may run on another machine.
    fn choose_resources(&self, lanes: &[Lane], k: u32) -> anyhow::Result<Resources> {
        if self.plan.is_some() {
            let default_threads = || command_line::threads_or_all_cpus(None).min(MAX_DEFAULT_STEP_THREADS);
            return Ok(Resources {
                threads: self.threads.map_or_else(default_threads, usize::from),
                memory: self.memory.unwrap_or(DEFAULT_STEP_MEMORY_BYTES),
                scratch: u64::MAX,
                devices: Devices::default(),
            });
        }
        let means = build_resources(self.threads, self.memory, self.scratch)?;
        if self.dry_run {
            return Ok(means);
        }
        let devices = self.gpu.choose_counting_devices(lanes, k, means.threads, means.memory)?;
        let devices = self.fpga.add_scatter_device(devices, k)?;
        Ok(Resources { devices, ..means })
    }

    /// Prints the forecast of a call (--dry-run) whose reference has this number of bases.
    ///
    /// # Errors
    /// The call does not fit in memory and disk space.
    fn print_forecast(&self, mut job: CallJob, reference: Option<u64>) -> anyhow::Result<()> {
        job.resources.scratch = disk_space::choose_scratch_bytes(&job.store.work_folder, self.scratch)?;
        text::print_forecast(measure_forecast_input(&job, reference)?, &[], &self.gpu, &CostOptions::default(), None)
    }

    /// Builds the [`CallJob`], the input of the library `genuma_somatic`, from the options. Opens and checks the input
    /// files.
    fn build_job(&self) -> anyhow::Result<CallJob> {
        let work = self.work.clone().unwrap_or_else(|| self.out.join(".work"));
        let genome = CramReference::new(self.reference.clone());
        // The steps of a distributed call run on machines where this folder may not exist.
        let options = AlignedOptions {
            temp_folder: self.plan.is_none().then(|| work.clone()),
            reference: genome,
            ..AlignedOptions::default()
        };
        let names = SampleNameOptions {
            normal: self.normal_name.as_deref(),
            tumour: self.tumor_name.as_deref(),
            normal_option: Some(sample_options::NORMAL_NAME_OPTION),
        };
        let normal = sample_options::choose_normal_read_source(&self.normal, self.reference.as_deref())?;
        let (samples, mut lanes) = self.tumor.open_samples_and_lanes(normal, names, &self.layout, &options)?;
        if self.plan.is_some() {
            if samples.has_several_tumours() {
                return Err(UsageError("--plan: several tumours are called in one process, not in a distributed call; give all lanes of one tumour after one --tumor".into()).into());
            }
            // The steps run in other current folders, so paths must be absolute.
            lanes.iter_mut().try_for_each(make_lane_paths_absolute)?;
        }
        let params = CallParams {
            k: choose_kmer_length(self.k, &lanes),
            min_base_quality: self.min_base_quality,
            min_tumour_count: MIN_TUMOUR_KMER_COUNT,
            min_quality: self.min_quality.unwrap_or_else(|| default_min_quality(samples.has_normal())),
            assay: self.assay.assay(),
        };
        let means = self.choose_resources(&lanes, params.k)?;
        let piped = lanes.iter().any(Lane::has_pipe);
        let reads_again = [("--plan", self.plan.is_some()), ("--resume", self.resume), ("--dry-run", self.dry_run)];
        if let Some((option, _)) = reads_again.iter().find(|(_, given)| piped && *given) {
            let why = format!("{option}: reads from a pipe can be read only once: save them to files");
            return Err(UsageError(why).into());
        }
        if piped {
            check_lanes_for_one_pass(&lanes)?
        } else {
            check_lanes(&lanes)?
        }
        let panel = self
            .panel
            .as_deref()
            .map(|table| panel::open_panel_of_normals(table, params.k, self.panel_min_samples))
            .transpose()?;
        let targets = self.targets.clone().map(|path| TargetsOption {
            path,
            padding_bp: self.target_padding.unwrap_or(DEFAULT_TARGET_PADDING_BP) as usize,
        });
        let known = self.known.clone().map(|path| KnownVariants { path });
        let gff = self.gff.clone().map(|path| GeneFile { path });
        let store = UnitStore {
            work_folder: work,
            fingerprint: fingerprint_inputs(
                &samples,
                &lanes,
                self.reference.as_deref(),
                &AdditionalInputs {
                    screen: self.screen.as_deref(),
                    panel: panel.as_ref(),
                    targets: targets.as_ref(),
                    known: known.as_ref(),
                    gff: gff.as_ref(),
                },
                &params,
            )?,
            resume: self.resume,
        };
        let provenance = ProvenanceInputs {
            samples: &samples,
            lanes: &lanes,
            screen: self.screen.as_deref(),
            panel: panel.as_ref(),
            known: known.as_ref(),
            targets: targets.as_ref(),
            gff: self.gff.as_deref(),
            signatures: self.signatures.as_deref(),
            platform: self.platform.as_deref(),
        }
        .describe_provenance()?;
        let why = why::parse_traced_variants(&self.why, self.reference.as_deref())?;
        Ok(CallJob {
            lanes,
            samples,
            reference: self.reference.clone(),
            screen: self.screen.clone(),
            targets,
            params,
            resources: means,
            store,
            traced_variants: why,
            panel,
            known,
            gff,
            provenance,
        })
    }
}

/// Maximum of the default number of threads of one task of a distributed call. Tasks run on machines that may have
/// fewer CPUs than this one.
const MAX_DEFAULT_STEP_THREADS: usize = 4;
/// Default memory budget of one task of a distributed call, in bytes.
const DEFAULT_STEP_MEMORY_BYTES: u64 = 16 << 30;

/// Replaces the paths of a lane's files by absolute paths.
fn make_lane_paths_absolute(lane: &mut Lane) -> anyhow::Result<()> {
    let make = |path: &mut PathBuf| {
        *path = std::path::absolute(&*path).with_context(|| path.display().to_string())?;
        Ok(())
    };
    match &mut lane.files {
        LaneFiles::Pair(one, two) => [one, two].into_iter().try_for_each(make),
        LaneFiles::Interleaved(one) | LaneFiles::Single(one) | LaneFiles::Reference(one) => make(one),
        LaneFiles::Aligned(aligned) => {
            make(&mut aligned.path)?;
            aligned.options.reference.path_mut().map_or(Ok(()), make)
        }
    }
}

/// Builds the resources of a call from the options. The scratch space is not limited to the free disk space yet,
/// because the work folder may not exist at this point.
///
/// # Errors
/// The memory budget is too small for the number of threads.
fn build_resources(threads: Option<u16>, memory: Option<u64>, scratch: Option<u64>) -> Result<Resources, UsageError> {
    let memory = memory.map_or_else(memory_limits::default_memory_budget_bytes, memory_limits::cap_to_machine_memory);
    let scratch = scratch.unwrap_or(u64::MAX);
    let means =
        Resources { threads: command_line::threads_or_all_cpus(threads), memory, scratch, devices: Devices::default() };
    memory_limits::check_memory_budget(&means, None)?;
    debug!("{} threads, {} of memory", means.threads, size_format::format_bytes(memory));
    Ok(means)
}

/// Measures the input of a call whose reference has this number of bases.
fn measure_forecast_input(job: &CallJob, reference: Option<u64>) -> anyhow::Result<ForecastInput> {
    let panel = job.panel.as_ref().map(|panel| input::measure_panel_size(panel.table_path())).transpose()?;
    Ok(input::measure_forecast_input(&job.lanes, reference, panel, job.params.k, job.resources.clone()))
}

/// Returns whether some reads come from a pipe, which can be read only once.
fn has_piped_reads(job: &CallJob) -> bool {
    job.lanes.iter().any(Lane::has_pipe)
}

/// Checks the inputs early for errors that would otherwise stop the call after hours. Returns the number of bases of
/// the reference (`None` without one), and the warnings to write into the results.
///
/// # Errors
/// An input cannot be read; or the header of a file of aligned reads contradicts the reference, and `rule` does not
/// accept that.
fn check_inputs(job: &CallJob, rule: BlockingWarnings) -> anyhow::Result<(Option<u64>, Vec<ResultWarning>)> {
    // The content of a pipe is unknown until it is read.
    let lengths = if has_piped_reads(job) {
        Vec::new()
    } else {
        read_lengths::longest_read_of_first_batch_by_sample(&job.lanes)?
    };
    let other_lengths = lengths.iter().enumerate().filter(|(_, length)| **length != lengths[0]);
    for (sample, length) in other_lengths.filter(|_| job.samples.has_normal()) {
        let (name, normal) = (job.samples.display_name(sample), lengths[0]);
        warn!("reads are {length} bp long in the {name} and {normal} bp in the normal; check that the files are right");
    }
    let Some(path) = &job.reference else { return Ok((None, Vec::new())) };
    let reference = Reference::read_fasta_file(path)?;
    let warnings = header_check::find_header_reference_mismatches(&job.lanes, &reference, path)?;
    result_check::check_no_blocking_warnings(&warnings, rule)?;
    warnings.iter().filter(|warning| !warning.withholds_results).for_each(|warning| warn!("{}", warning.message));
    if let Some(option) = &job.targets {
        log_targets(option, &option.read_targets(&reference)?);
    }
    if let Some(gff) = &job.gff {
        log_genes(gff, &gff.read_genes(&reference)?);
    }
    Ok((Some(reference.contigs.iter().map(|c| c.seq.len() as u64).sum()), warnings))
}

/// Logs the number of genes, and the features of the GFF3 file that are skipped.
fn log_genes(gff: &GeneFile, genes: &GeneAnnotation) {
    let name = gff.path.display();
    info!("{name}: {}", genes.describe_gene_counts());
    genes.describe_skipped_features().iter().for_each(|sentence| warn!("{name}: {sentence}"));
}

/// Logs the number of targets, and how many intervals were merged.
fn log_targets(option: &TargetsOption, targets: &Targets) {
    let merged = targets.num_intervals_read - targets.intervals.len();
    info!(
        "{}: {} of {} bp, extended by {} bp on both sides{}",
        option.path.display(),
        format_count_with_noun(targets.intervals.len() as u64, "target"),
        group_thousands(targets.num_bases()),
        option.padding_bp,
        match merged {
            0 => String::new(),
            n => format!("; {} merged into others that they overlap", format_count_with_noun(n as u64, "interval")),
        }
    );
}

/// Logs the expected time, memory and disk space of the call. Logs nothing for a resumed run, because the remaining
/// work is unknown, and nothing for reads from a pipe, whose size is unknown.
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
            format_duration(forecast.wall_s()),
            size_format::format_bytes(forecast.peak_bytes()),
            size_format::format_bytes(forecast.scratch_bytes)
        );
    }
    Ok(())
}

/// The output folder. When this value is dropped, a folder that this run created is removed if it is still empty.
struct OutputFolder<'a> {
    path: &'a Path,
    was_created: bool,
}

impl<'a> OutputFolder<'a> {
    /// Opens the output folder; creates it if it is missing.
    fn open(path: &'a Path) -> anyhow::Result<Self> {
        let new = !path.exists();
        fs::create_dir_all(path).with_context(|| format!("{}: cannot create the output folder", path.display()))?;
        Ok(OutputFolder { path, was_created: new })
    }
}

impl Drop for OutputFolder<'_> {
    fn drop(&mut self) {
        if self.was_created {
            // The folder stays if it contains files.
            let _ = fs::remove_dir(self.path);
        }
    }
}

/// Optional inputs of a call besides the reads and the reference.
struct AdditionalInputs<'a> {
    screen: Option<&'a Path>,
    panel: Option<&'a PanelOfNormals>,
    targets: Option<&'a TargetsOption>,
    known: Option<&'a KnownVariants>,
    gff: Option<&'a GeneFile>,
}

/// Returns the fingerprint of the call: text with all inputs and parameters that the calls depend on. An interrupted
/// run is resumed only if its fingerprint is the same.
fn fingerprint_inputs(
    samples: &SampleNames,
    lanes: &[Lane],
    reference: Option<&Path>,
    additional: &AdditionalInputs<'_>,
    params: &CallParams,
) -> anyhow::Result<String> {
    let &AdditionalInputs { screen, panel, targets, known, gff } = additional;
    let CallParams { k, min_base_quality, min_tumour_count: least_tumour, min_quality: least_quality, assay } = params;
    let mut fingerprint = Fingerprint::with_program_version()
        .with_parameter("k", k)
        .with_parameter("min-base-quality", min_base_quality)
        .with_parameter("least-tumour", least_tumour)
        .with_parameter("min-quality", least_quality);
    if let Some(assay) = assay {
        fingerprint = fingerprint.with_parameter("assay", assay.name());
    }
    if *samples != SampleNames::default() {
        fingerprint = fingerprint.with_parameter("samples", samples.names().join(" "));
    }
    for lane in lanes {
        for path in lane.paths() {
            let label = samples.display_name(lane.sample.into());
            // A run that reads a pipe cannot be resumed, so the name of the pipe is enough.
            fingerprint = match lane.has_pipe() {
                true => fingerprint.with_parameter(&label, path.display()),
                false => fingerprint.with_file(&label, path)?,
            };
        }
        match &lane.files {
            LaneFiles::Single(_) => fingerprint = fingerprint.with_parameter("layout", "single"),
            LaneFiles::Reference(_) => fingerprint = fingerprint.with_parameter("normal", "none"),
            _ => {}
        }
        if let Some(umis) = &lane.umis {
            fingerprint = fingerprint.with_parameter("umi", &umis.structures);
        }
    }
    let fingerprint = match reference {
        Some(path) => fingerprint.with_file("reference", path)?,
        None => fingerprint.with_parameter("reference", "none"),
    };
    let fingerprint = match screen {
        Some(path) => fingerprint.with_file("screen", path)?,
        None => fingerprint,
    };
    let fingerprint = match panel {
        Some(panel) => {
            fingerprint.with_file("panel", &panel.table)?.with_parameter("panel-min-samples", panel.min_normals)
        }
        None => fingerprint,
    };
    let fingerprint = match targets {
        Some(option) => {
            fingerprint.with_file("targets", &option.path)?.with_parameter("target-padding", option.padding_bp)
        }
        None => fingerprint,
    };
    let fingerprint = match known {
        Some(known) => fingerprint.with_file("known", &known.path)?,
        None => fingerprint,
    };
    let fingerprint = match gff {
        Some(gff) => fingerprint.with_file("gff", &gff.path)?,
        None => fingerprint,
    };
    Ok(fingerprint.into_text())
}

fn clean_up_on_interruption(work: &Path, folder: &OutputFolder<'_>) {
    let (folder, out, new) = (work.to_path_buf(), folder.path.to_path_buf(), folder.was_created);
    signals::set_interrupt_handler(Some(Box::new(move || {
        let stays = folder::keep_only_resumable_files(&folder);
        drop(OutputFolder { path: &out, was_created: new });
        stays.then(|| folder::resume_hint(&folder))
    })));
}

/// Logs properties of the samples that change how variants are called: a missing normal, the assays, fragments with
/// fixed ends, tumour cells in the normal, and DNA of another person in the tumour.
fn log_library_properties(outcome: &CallSummary) {
    let summary = &outcome.sample_summary;
    match (outcome.has_normal, &outcome.known) {
        (true, _) => {}
        (false, Some(_)) => info!(
            "no normal: variants that are common in the population, or have the allele fraction of a germline variant, get the \
             FILTER germline"
        ),
        (false, None) => warn!(
            "no normal and no known variants: hardly any call passes, because nearly all variants are germline variants; give \
             population frequencies, such as those of gnomAD, with --known"
        ),
    }
    let libraries = [("normal", &summary.libraries.normal), ("tumour", &summary.libraries.tumour)];
    for (sample, library) in libraries.iter().skip(usize::from(!outcome.has_normal)) {
        info!("assay of the {sample}: {} ({})", library.assay.assay.name(), library.assay.reason);
    }
    for (sample, _) in libraries.iter().filter(|(_, library)| library.fragment_ends == RandomOrFixedEnds::Fixed) {
        info!(
            "the fragments of the {sample} end at fixed positions, as amplicons do: each read pair counts as a molecule, and \
             none is removed as a duplicate"
        );
    }
    let admixture = &outcome.admixture;
    if admixture.tumour_in_normal_ratio > 0.0 {
        info!(
            "the normal has alleles of the tumour, at up to {:.0}% of their fractions in the tumour: calling allows for tumour cells \
             in the normal, but misses more variants than with a clean normal",
            100.0 * admixture.tumour_in_normal_ratio
        );
    }
    if let Some(foreign) = &admixture.foreign_dna {
        let [low, high] = foreign.share.map(|share| 100.0 * share);
        info!(
            "{low:.1} to {high:.1}% of the tumour's DNA is of another person: variants as frequent as that get the FILTER contamination"
        );
    }
}

/// Logs the warnings that a user must read before trusting the calls.
fn log_warnings(outcome: &CallSummary) {
    for warning in &outcome.warnings {
        warn!("{}", warning.message);
    }
    for line in &outcome.ledger.lines {
        let count = line.count;
        match &line.description[..] {
            SHALLOW_NORMAL_LEDGER_LINE => warn!(
                "the normal is too shallow: {count} k-mers of the tumour were skipped because no read of the normal covers them; \
                 sequence the normal deeper, or expect missed variants"
            ),
            TOO_MANY_VARIANTS_LEDGER_LINE => warn!(
                "{count} k-mers of the tumour were skipped because it has more germline variants than a call without a normal can \
                 examine, so indels and structural variants may be missed: give a normal (--normal), or reads of an exome or a panel"
            ),
            MOST_TUMOUR_KMERS_NOT_IN_NORMAL_LEDGER_LINE => warn!(
                "more than half of the tumour's k-mers are missing in the normal, and {count} were skipped, so long insertions may be \
                 missed: check that both samples are of the same species"
            ),
            _ => {}
        }
    }
}

/// Logs the last line: number of calls, time, memory, and the path of the report.
fn log_result(outcome: &CallSummary, out: &Path, start: Instant) {
    counter_table::log_counters_of_this_process(outcome.counters.as_ref());
    let passed = result_files::count_passed_calls_by_class(outcome);
    let classes: Vec<String> = passed.iter().map(|(class, n)| format!("{n} {class}")).collect();
    info!(
        "{} calls pass{}; {:.1} s, {} peak memory; see {}",
        passed.values().sum::<u64>(),
        if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(", ")) },
        start.elapsed().as_secs_f64(),
        size_format::format_bytes(measure_process_cost().peak_bytes),
        out.join(result_files::REPORT_FILE_NAME).display()
    );
}
