//! `genuma run`: runs an unmodified external aligner, with its threads and memory placed on NUMA nodes by a strategy.

mod intervals;

mod outcome;

mod placed;

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use genuma_machine::topology::{Sysfs, TopologySource, TransparentHugePageMode};
use genuma_machine::{IdSet, Topology};
use genuma_reads::ProgressCounters;
use genuma_strategy::instance::{StderrLogging, kill_all_instances};
use genuma_strategy::invocation::{Determinism, OutputTarget, ReadFiles};
use genuma_strategy::memory_pages::MemoryPages;
use genuma_strategy::merge::GenumaPgLine;
use genuma_strategy::run::{Error, RunPlan, RunSummary};
use genuma_strategy::{CpuSlot, Invocation, Strategy, command_presets, cpu_layout, index_replicas};
use genuma_work::ProgressListener;
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use genuma_work::signals;
use tracing::{debug, info, warn};

use crate::advise::placement;
use crate::errors::UsageError;
use crate::external_aligner::{self, ReadFileOptions};
use crate::progress::UnitProgressDisplay;
use crate::{advise, aligned_files, command_line, logging};
use outcome::RunOutcome;

/// Run an unmodified aligner with its threads and memory placed on the NUMA nodes of this machine.
///
/// Give the aligner's own command, as you would type it. Known aligners are bwa (mem, aln, samse, sampe), bwa-mem2,
/// minibwa, bowtie2, minimap2, strobealign, SNAP and GEM3. genuma reads the reads once, distributes them to one or
/// several instances of the aligner, each with its own CPUs and memory, and merges their output into the order of the
/// reads. The records are those of the command run alone; the header has one more @PG line. For a few aligners and
/// options that are not deterministic, several instances may change some records; a warning says so.
///
/// Reads may be in BAM, CRAM (with --reference), CBQ, VBQ or BQ files: name the file in the command if the aligner
/// accepts one file of interleaved pairs (-p of bwa mem), or with --reads.
///
/// {threads} in the command is replaced by the number of threads. Any other program that reads FASTQ and writes SAM,
/// one read after another in the order of the reads, can be run too: write {reads1} and {reads2}, or {reads}, where
/// its input files belong, or nothing if it reads standard input, and name the files with --reads.
///
/// Without --reads, a program that genuma does not know runs as it is, in one instance: genuma places its threads and
/// memory, and passes on its input, output, signals and exit code.
///
/// With --by-interval the command is that of a variant caller, and genuma divides the reference instead of the reads:
/// one instance for each interval, as many at a time as --strategy says, with their VCF records merged in the order of
/// the reference. Known callers are bcftools mpileup, freebayes, and HaplotypeCaller and Mutect2 of GATK. In the command
/// of another program or a pipeline, write {interval} (chr:start-end) or {bed} (a BED file) where the interval belongs,
/// and {vcf} for an output file.
#[derive(Debug, clap::Args)]
#[command(
    about = "Run another aligner with threads and memory placed on the NUMA nodes",
    after_help = "Examples:\n  \
    bwa mem on all CPUs:\n    \
    genuma run -- bwa mem -t {threads} ref.fa R_1.fq.gz R_2.fq.gz > out.sam\n  \
    Four instances, each with memory on its own NUMA nodes:\n    \
    genuma run --strategy 4xbind -o out.sam -- bowtie2 -p 64 -x ref -1 R_1.fq.gz -2 R_2.fq.gz\n  \
    Reads from a BAM file in any order:\n    \
    genuma run -- bwa mem -p -t {threads} ref.fa R.bam > out.sam\n  \
    A program that genuma does not know:\n    \
    genuma run --reads R_1.fq.gz R_2.fq.gz -- mapper --cpus {threads} ref.idx {reads1} {reads2}\n  \
    Any other program, with memory spread over all nodes, and what it used:\n    \
    genuma run --strategy interleave --counters -- samtools sort -@ {threads} -o sorted.bam in.bam\n  \
    A variant caller on intervals of the reference, one for each CPU at a time:\n    \
    genuma run --by-interval -o calls.vcf.gz -- freebayes -f ref.fa R.bam"
)]
pub(crate) struct Args {
    /// Number of aligner instances, and the NUMA nodes of their memory. auto chooses a strategy for this machine. One
    /// instance: default (the plain command), local (memory on the node of the thread that uses it first), interleave
    /// (spread evenly over all nodes), weighted (spread by the kernel's weights of the nodes), bind (only on the
    /// instance's nodes: those of its CPUs; with one instance all nodes that this process may use). Several instances,
    /// each with its own CPUs and nodes, have their number in front: 4xbind means four instances with bind
    #[arg(long, value_name = "STRATEGY", default_value = "auto", help_heading = "Method")]
    strategy: String,
    /// Size of the memory pages: default (as the kernel and the program decide), huge (transparent huge pages for the
    /// memory that malloc of glibc allocates) or base (no huge pages). Huge pages speed up random access to large
    /// indexes
    #[arg(long, value_name = "PAGES", value_enum, default_value_t = PagesOption::Default, hide_possible_values = true, help_heading = "Method")]
    pages: PagesOption,

    /// Use only these NUMA nodes, such as 0-3 or 0,2; `genuma machine advise --nodes` chooses them [default: all that
    /// this process may use]
    #[arg(long, value_name = "NODES", help_heading = "Resources")]
    on_nodes: Option<IdSet>,
    /// Threads of all instances together [default: the number in the command, else all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    threads: Option<u16>,

    #[command(flatten)]
    read_args: ReadFileOptions,

    /// File for the records [default: the output named in the command, else standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Also write statistics, times and memory placement as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Count what each instance uses: CPU time, memory on each NUMA node, context switches, CPU migrations, page
    /// faults, disk access; and, where the system permits perf events, cycles, instructions, cache misses and loads
    /// from memory of other NUMA nodes. The counts are logged at the end and written to --json
    #[arg(long, help_heading = "Advanced")]
    counters: bool,
    #[command(flatten)]
    interval_args: intervals::IntervalOptions,

    /// Command line of the aligner or other program
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Value of `--pages`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum PagesOption {
    Default,
    Huge,
    Base,
}

/// Runs the command: an aligner in one or several instances, or another program as it is.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.interval_args.by_interval {
        return intervals::run_by_interval(args);
    }
    if !args.read_args.is_reads_option_given()
        && command_presets::is_unknown_program_without_read_placeholder(&args.command)
    {
        return placed::run_placed_command(args);
    }
    let invocation = args.read_args.parse_aligner_command(&args.command)?;
    let named = if let OutputTarget::File(path) = &invocation.output { Some(path) } else { None };
    let out = args.output_path(named)?;
    refuse_binary_output(out.as_deref())?;
    invocation.check_program_and_index_exist()?;
    let machine = Sysfs::new().topology()?;
    let topology = placement::restrict_to_named_nodes(machine.clone(), args.on_nodes.as_ref())?;
    let num_cpus = topology.allowed.cpus.len().max(1);
    let threads = args.threads.map(usize::from).or(invocation.threads).unwrap_or(num_cpus);
    let (strategy, why) = choose_strategy(&args.strategy, &invocation, &machine, &topology, threads)?;
    let mut cpu_slots = cpu_layout::assign_cpu_slots(&strategy, &topology, threads)?;
    args.request_pages(&mut cpu_slots, &topology);
    index_replicas::check_instances_fit_in_memory(
        &invocation,
        &cpu_slots,
        invocation.depends.min_block_bases(threads).unwrap_or(0),
    )?;
    signals::set_termination_handler(Some(Box::new(|| {
        kill_all_instances();
        index_replicas::remove_all_replicas();
        None
    })));
    let prepared = index_replicas::replicate_index_if_mapped(&invocation, strategy, &cpu_slots)?;
    if let Some(note) = &prepared.note {
        info!("{note}");
    }
    info!("strategy {strategy}: {why}");
    let alone = cpu_slots.len() == 1 && tracing::enabled!(tracing::Level::INFO);
    let plan = RunPlan {
        has_counters: args.counters,
        strategy,
        why,
        cpu_slots,
        invocations: prepared.invocations,
        threads,
        plain: external_aligner::plain_run_command(&invocation, threads),
        genuma: GenumaPgLine {
            name: "genuma".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            line: command_line::quoted_command_line(),
        },
        stderr_logging: if alone { StderrLogging::Forward } else { StderrLogging::Debug },
    };
    debug!("{} threads on {} instances", threads, plan.cpu_slots.len());
    let mut set = AtomicFileSet::default();
    let Some(summary) = run_plan(&plan, out.as_ref(), &mut set)? else { return Ok(()) };
    drop(prepared.replicas);
    let outcome = RunOutcome {
        program: plan.invocations[0].aligner.clone(),
        strategy: plan.strategy,
        why: plan.why.clone(),
        threads: plan.threads,
        cpu_slots: &plan.cpu_slots,
        summary,
    };
    outcome.warn_of_missing_reads();
    outcome.warn_of_wrong_placement();
    outcome.warn_of_missing_huge_pages();
    warn_about_aligned_files(&outcome.summary, &plan.invocations[0].reads);
    outcome.publish_and_log_results(args.json.as_deref(), out.as_deref(), set)
}

/// Parses the value of `--strategy`. Also returns the reason for the choice, for the log.
fn parse_strategy(word: &str) -> Result<(Strategy, String), UsageError> {
    Ok((word.parse::<Strategy>().map_err(|e| UsageError(e.to_string()))?, "chosen with --strategy".to_owned()))
}

/// Returns the strategy that `word` (the value of `--strategy`) selects, and the reason for the choice. Warns if
/// records may differ from those of the plain run.
///
/// # Errors
/// The word is not a strategy, the aligner allows one instance only, or `auto` fails.
fn choose_strategy(
    word: &str,
    invocation: &Invocation,
    machine: &Topology,
    topology: &Topology,
    threads: usize,
) -> anyhow::Result<(Strategy, String)> {
    let (strategy, why) = match word {
        "auto" => advise::choose_auto_strategy(invocation, machine, topology, threads)?,
        word => parse_strategy(word)?,
    };
    RunPlan::check_aligner_allows_several_instances(invocation, strategy).map_err(|e| UsageError(e.to_string()))?;
    if let (Determinism::Nondeterministic(why), 2..) = (&invocation.determinism, strategy.instances) {
        warn!(
            "with several instances some records may differ from those of the command run alone: {why}; \
             if they must be the same, use --strategy default"
        );
    }
    Ok((strategy, why))
}

/// Logs the record counts of BAM, CRAM and BINSEQ files. Warns if reads with mates were aligned as single reads.
fn warn_about_aligned_files(summary: &RunSummary, reads: &ReadFiles) {
    for (file, tally) in &summary.aligned {
        let file = file.display().to_string();
        aligned_files::log_record_counts_of_lane(&file, tally);
        let with_mates = tally.records - tally.secondary - tally.supplementary - tally.unpaired;
        if matches!(reads, ReadFiles::Single(_)) && with_mates > 0 {
            warn!(
                "{file}: {with_mates} reads have mates, and were aligned without them, as the command says; \
                 to align pairs, add the aligner's option for interleaved pairs (-p of bwa mem)"
            );
        }
    }
}

impl Args {
    /// Sets the page size of the instances' memory. Warns if huge pages are requested and the kernel has none.
    fn request_pages(&self, cpu_slots: &mut [CpuSlot], topology: &Topology) {
        let pages = match self.pages {
            PagesOption::Default => MemoryPages::Default,
            PagesOption::Huge => MemoryPages::Huge,
            PagesOption::Base => MemoryPages::Base,
        };
        if pages == MemoryPages::Huge
            && matches!(topology.transparent_huge_pages, None | Some(TransparentHugePageMode::Never))
        {
            warn!(
                "--pages huge: this kernel does not use transparent huge pages, so the memory is in base pages: the results are \
                 the same, but may take longer; the administrator permits them with \
                 `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`"
            );
        }
        for cpu_slot in cpu_slots {
            cpu_slot.pages = pages;
        }
    }

    /// Returns the file for the records; `None` for standard output. `named` is the file that the command names.
    ///
    /// # Errors
    /// Two files are given.
    fn output_path(&self, named: Option<&PathBuf>) -> Result<Option<PathBuf>, UsageError> {
        match (&self.out, named) {
            (None, named) => Ok(named.cloned()),
            (Some(path), None) => Ok(Some(path.clone()).filter(|path| path.as_os_str() != "-")),
            (Some(path), Some(other)) => Err(UsageError(format!(
                "the output is given twice, as -o {} and as {} in the command: give one",
                path.display(),
                other.display()
            ))),
        }
    }

    /// Returns the nodes and CPUs that the run may use, and the number of threads of a program without a number of its own.
    fn allowed_topology_and_threads(&self) -> anyhow::Result<(Topology, usize)> {
        let topology = placement::restrict_to_named_nodes(Sysfs::new().topology()?, self.on_nodes.as_ref())?;
        let threads = self.threads.map_or(topology.allowed.cpus.len().max(1), usize::from);
        Ok((topology, threads))
    }
}

/// Returns an error if the output file has the extension of BAM or CRAM, because aligners write SAM text.
fn refuse_binary_output(out: Option<&Path>) -> Result<(), UsageError> {
    let Some(path) = out else { return Ok(()) };
    let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
    match extension.as_ref().and_then(|extension| extension.to_str()) {
        Some(format @ ("bam" | "cram")) => Err(UsageError(format!(
            "{}: the aligner writes SAM text, and not {}: leave out -o and pipe the records to `samtools sort -o {0}`, \
             or name a .sam file",
            path.display(),
            format.to_uppercase()
        ))),
        _ => Ok(()),
    }
}

/// Runs the aligner. The records go to a new file in `set` or to standard output. Returns `None` if the reader of
/// standard output has closed the pipe.
fn run_plan(plan: &RunPlan, out: Option<&PathBuf>, set: &mut AtomicFileSet) -> anyhow::Result<Option<RunSummary>> {
    let meter = Arc::new(ProgressCounters::default());
    let progress = UnitProgressDisplay::start();
    progress.unit_started("run", Some(Arc::clone(&meter)));
    match out {
        Some(path) => {
            let mut file = AtomicFile::create(path)?;
            let summary = plan.run_instances(meter, &mut file)?;
            set.add_file(file.flush_to_partial_file()?);
            Ok(Some(summary))
        }
        None => {
            let mut stdout = logging::lock_stdout_for_results()?;
            match plan.run_instances(meter, &mut stdout) {
                Ok(summary) => {
                    stdout.flush()?;
                    Ok(Some(summary))
                }
                Err(Error::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
                Err(Error::Write(error)) => Err(anyhow::Error::new(error).context("standard output")),
                Err(error) => Err(error.into()),
            }
        }
    }
}
