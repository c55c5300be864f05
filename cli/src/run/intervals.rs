//! `genuma run --by-interval`: runs a variant caller on intervals of the reference and merges its records.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use genuma_reads::targets::Targets;
use genuma_strategy::by_interval::{
    CallerCommand, CallerInput, Contig, DEFAULT_PADDING_BP, Error, INTERVALS_PER_SLOT, IntervalRun, Region,
    divide_regions,
};
use genuma_strategy::instance::{StderrLogging, kill_all_instances};
use genuma_strategy::run::{Error as RunError, RunSummary};
use genuma_strategy::{InstanceMemoryPolicy, Strategy, cpu_layout};
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use genuma_work::signals;
use tracing::info;

use super::outcome::RunOutcome;
use super::{Args, parse_strategy};
use crate::bgzf_writer::{BgzfWriter, remove_vcf_index_on_publish};
use crate::errors::UsageError;
use crate::{command_line, logging};

/// Options for runs by interval.
#[derive(Debug, clap::Args)]
pub(super) struct IntervalOptions {
    /// Run a variant caller on intervals of the reference, balanced by their reads, and merge its VCF records
    #[arg(long, help_heading = "Method")]
    pub(super) by_interval: bool,
    /// With --by-interval: bases that an instance processes on both sides of its interval, without writing their records
    /// [default: 1000, or 0 for gVCF]
    #[arg(long, value_name = "BP", requires = "by_interval", help_heading = "Advanced")]
    padding: Option<u32>,
    /// With --by-interval: call only in these regions (BED, or an interval list of Picard)
    #[arg(long, value_name = "BED", requires = "by_interval", help_heading = "Input")]
    intervals: Option<PathBuf>,
}

/// Runs the caller of the command line in one instance for each interval.
pub(super) fn run_by_interval(args: &Args) -> anyhow::Result<()> {
    let caller = CallerCommand::parse(&args.command).map_err(|e| UsageError(e.to_string()))?;
    let out = choose_output(args, &caller)?;
    let (reads, reference) = args.read_args.files_of_variant_caller()?;
    caller.check_installed()?;
    let input = CallerInput::read(&caller, reads, reference)?;
    let regions = choose_regions(&input.contigs, args.interval_args.intervals.as_deref())?;
    let (topology, threads) = args.allowed_topology_and_threads()?;
    let (strategy, why) = match args.strategy.as_str() {
        "auto" => one_slot_for_each_thread(threads),
        word => parse_strategy(word)?,
    };
    let mut cpu_slots = cpu_layout::assign_cpu_slots(&strategy, &topology, threads)?;
    args.request_pages(&mut cpu_slots, &topology);
    let max_intervals = cpu_slots.len() * INTERVALS_PER_SLOT;
    let intervals = divide_regions(&regions, &input.weights, max_intervals, caller.accepts_several_regions());
    let default_padding = if caller.has_reference_blocks { 0 } else { DEFAULT_PADDING_BP };
    let padding_bp = args.interval_args.padding.map_or(default_padding, u64::from);
    info!("strategy {strategy}: {why}");
    info!(
        "{} intervals, balanced by {}, with {padding_bp} bp of padding; {} at a time",
        intervals.len(),
        input.source.name(),
        cpu_slots.len()
    );
    let folder = tempfile::Builder::new().prefix("genuma-intervals-").tempdir()?;
    remove_folder_on_signal(folder.path().to_owned());
    let run = IntervalRun {
        caller: &caller,
        contigs: &input.contigs,
        intervals: &intervals,
        weight_source: input.source,
        padding_bp,
        cpu_slots: &cpu_slots,
        folder: folder.path(),
        added_header: format!(
            "##genumaVersion={}\n##genumaCommandLine={}\n",
            env!("CARGO_PKG_VERSION"),
            command_line::quoted_command_line()
        ),
        stderr_logging: StderrLogging::Debug,
        has_counters: args.counters,
    };
    let mut set = AtomicFileSet::default();
    let Some(summary) = write_merged_vcf(&run, out.as_deref(), &mut set)? else { return Ok(()) };
    drop(folder);
    let outcome = RunOutcome { program: caller.name.clone(), strategy, why, threads, cpu_slots: &cpu_slots, summary };
    outcome.warn_of_missing_huge_pages();
    outcome.publish_and_log_results(args.json.as_deref(), out.as_deref(), set)
}

/// Strategy of `--strategy auto`, and its reason.
fn one_slot_for_each_thread(threads: usize) -> (Strategy, String) {
    let instances = u32::try_from(threads).unwrap_or(u32::MAX);
    let why = "one instance for each thread, because most variant callers use one".to_owned();
    (Strategy { instances, memory: InstanceMemoryPolicy::Local }, why)
}

/// Returns the file for the records; `None` for standard output.
///
/// # Errors
/// Two files are given, or the file is to be BCF.
fn choose_output(args: &Args, caller: &CallerCommand) -> Result<Option<PathBuf>, UsageError> {
    let out = args.output_path(caller.output.as_ref())?.filter(|path| path.as_os_str() != "-");
    match out {
        Some(path) if has_extension(&path, &["bcf"]) => Err(UsageError(format!(
            "{}: genuma merges VCF: name a file .vcf or .vcf.gz, and convert it with `bcftools view -Ob`",
            path.display()
        ))),
        out => Ok(out),
    }
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|end| extensions.iter().any(|extension| end.eq_ignore_ascii_case(extension)))
}

/// Returns the regions in which variants are called: those of a file, or all contigs.
fn choose_regions(contigs: &[Contig], file: Option<&Path>) -> Result<Vec<Region>, genuma_reads::Error> {
    let Some(file) = file else {
        let whole = |(contig, of): (usize, &Contig)| Region { contig, start: 0, end: of.length };
        return Ok(contigs.iter().enumerate().map(whole).filter(|region| region.end > 0).collect());
    };
    let lengths: Vec<(String, usize)> = contigs.iter().map(|c| (c.name.clone(), c.length as usize)).collect();
    let targets = Targets::read_targets_file(file, &lengths)?;
    let region = |target: &genuma_reads::targets::Target| Region {
        contig: target.contig,
        start: target.start as u64,
        end: target.end as u64,
    };
    Ok(targets.intervals.iter().map(region).collect())
}

/// Makes a signal end all instances and remove the folder of their files.
fn remove_folder_on_signal(folder: PathBuf) {
    signals::set_termination_handler(Some(Box::new(move || {
        kill_all_instances();
        // The process is about to end, so a failure cannot be reported.
        let _ = fs::remove_dir_all(folder);
        None
    })));
}

/// Runs the instances. The records go to a new file in `set`, compressed if its name ends in `.gz` or `.bgz`, or to
/// standard output. With a file, the merged statistics of Mutect2 go to a file of that name with `.stats` added. Returns
/// `None` if the reader of standard output has closed the pipe.
fn write_merged_vcf(
    run: &IntervalRun,
    out: Option<&Path>,
    set: &mut AtomicFileSet,
) -> anyhow::Result<Option<RunSummary>> {
    let Some(path) = out else {
        let mut stdout = logging::lock_stdout_for_results()?;
        return match run.run_instances(&mut stdout) {
            Ok((summary, _)) => {
                stdout.flush()?;
                Ok(Some(summary))
            }
            Err(Error::Run(RunError::Write(error))) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
            Err(Error::Run(RunError::Write(error))) => Err(anyhow::Error::new(error).context("standard output")),
            Err(error) => Err(error.into()),
        };
    };
    let mut file = AtomicFile::create(path)?;
    let (summary, mutect_stats) = if has_extension(path, &["gz", "bgz"]) {
        let mut compressed = BgzfWriter::with_default_level(file);
        let result = run.run_instances(&mut compressed)?;
        file = compressed.finish()?;
        remove_vcf_index_on_publish(path, set);
        result
    } else {
        run.run_instances(&mut file)?
    };
    set.add_file(file.flush_to_partial_file()?);
    if let Some(stats) = mutect_stats {
        let mut name = path.as_os_str().to_owned();
        name.push(".stats");
        let mut file = AtomicFile::create(PathBuf::from(name))?;
        file.write_all(stats.format_file().as_bytes())?;
        set.add_file(file.flush_to_partial_file()?);
    }
    Ok(Some(summary))
}
