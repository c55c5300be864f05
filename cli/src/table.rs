//! `genuma kmers union`, `intersect`, `subtract`, `filter`, `compact` and `info`: combine, filter and describe k-mer tables.

mod compact_to_dictionary;
mod counts_option;
mod info;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Subcommand, value_parser};
use genuma_flash::TablePageReader;
use genuma_kmers::MAX_SAMPLES;
use genuma_tables::combine::{PAGE_BYTES, combine_tables, note_of_result, page_memory_bytes};
use genuma_tables::note::{TableDerivation, TableNote, name_samples_of_tables};
use genuma_tables::rule::{CombineRule, CountMode, SetOperation};
use genuma_work::cost::measure_process_cost;
use genuma_work::publish::AtomicFileSet;
use genuma_work::quantity;
use tracing::{info, warn};

use crate::call::memory_limits;
use crate::command_line;
use crate::count::outputs::{
    choose_format_by_extension, keep_finished_units_on_interruption, to_usage_error_if_note_too_long,
};
use crate::errors::{UsageError, require_existing_folder};
use counts_option::{define_counts_option, parse_count_mode};

/// Memory of the process without the buffers for tables (bytes). Measured.
const BASE_MEMORY_BYTES: u64 = 40 << 20;
/// Memory of the output buffers of each thread (bytes). Measured.
const MEMORY_PER_THREAD_BYTES: u64 = 3 << 20;

/// Help of `--names` of `genuma kmers subtract`.
const NAMES_HELP_OF_SUBTRACT: &str =
    "Names of the result's samples, which are those of the first table, separated by commas";
/// Help of `--min` of `genuma kmers filter`.
const MIN_HELP_OF_FILTER: &str =
    "Write only k-mers whose count, summed over all samples or those of --sample, is at least this";
/// Help of `--max` of `genuma kmers filter`.
const MAX_HELP_OF_FILTER: &str =
    "Write only k-mers whose count, summed over all samples or those of --sample, is at most this";

/// Commands that combine, filter and describe k-mer tables.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the k-mers that are in any of the tables
    #[command(mut_arg("counts", |arg| define_counts_option(SetOperation::Union, arg)))]
    Union(CombineArgs),
    /// Write the k-mers that are in all tables
    #[command(mut_arg("counts", |arg| define_counts_option(SetOperation::Intersect, arg)))]
    Intersect(CombineArgs),
    /// Write the k-mers of the first table that are in no other table, or (--counts difference) whose count exceeds the
    /// sum of the counts in the others
    #[command(
        mut_arg("counts", |arg| define_counts_option(SetOperation::Subtract, arg)),
        mut_arg("names", |arg| arg.help(NAMES_HELP_OF_SUBTRACT))
    )]
    Subtract(CombineArgs),
    /// Write the k-mers of a table whose counts are within limits (--min, --max)
    #[command(mut_arg("min", |arg| arg.help(MIN_HELP_OF_FILTER)), mut_arg("max", |arg| arg.help(MAX_HELP_OF_FILTER)))]
    Filter(FilterArgs),
    Compact(compact_to_dictionary::Args),
    /// Show the k-mer length, samples, minimum counts and size of a table or dictionary
    Info(info::Args),
}

/// Arguments of `union`, `intersect` and `subtract`.
#[derive(Debug, clap::Args)]
pub(crate) struct CombineArgs {
    /// Tables that `genuma kmers` made, all with the same k
    #[arg(value_name = "TABLE", required = true, num_args = 1..)]
    tables: Vec<PathBuf>,
    /// File for the result: x.gkt for a table, x.tsv for text
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    // Help, values and default depend on the operation: see `define_counts_option`.
    #[arg(long, value_name = "MODE", value_parser = parse_count_mode)]
    counts: Option<CountMode>,
    /// Ignore counts below this in the input tables: they are set to 0 before the tables are combined
    #[arg(long = "min-input", alias = "least", value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    min_input_count: u32,
    /// Ignore counts above this in the input tables: they are set to 0 before the tables are combined
    #[arg(long = "max-input", alias = "most", value_name = "N", value_parser = value_parser!(u32).range(1..))]
    max_input_count: Option<u32>,
    /// Names of the result's samples, one for each, separated by commas. The result has the samples of the first table;
    /// with --counts columns those of all tables, in the order of the tables; with --counts samples one
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    names: Vec<String>,
    #[command(flatten)]
    limits: CountLimits,
    #[command(flatten)]
    resources: ResourceArgs,
}

/// Arguments of `filter`.
#[derive(Debug, clap::Args)]
pub(crate) struct FilterArgs {
    /// Table that `genuma kmers` made
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// File for the result: x.gkt for a table, x.tsv for text
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Compare only the summed counts of these samples with --min and --max; the counts of all samples are written
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    sample: Vec<String>,
    #[command(flatten)]
    limits: CountLimits,
    #[command(flatten)]
    resources: ResourceArgs,
}

/// Limits of the counts of the k-mers that are written.
#[derive(Debug, Clone, Copy, clap::Args)]
struct CountLimits {
    /// Write only k-mers whose count in the result is at least this; if the result has several samples, the sum of
    /// their counts is compared
    #[arg(long, value_name = "N", default_value_t = 1)]
    min: u64,
    /// Write only k-mers whose count in the result is at most this; if the result has several samples, the sum of their
    /// counts is compared
    #[arg(long, value_name = "N")]
    max: Option<u64>,
}

/// Resources that the command may use.
#[derive(Debug, Clone, Copy, clap::Args)]
struct ResourceArgs {
    /// Threads [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Maximum memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = "Resources")]
    memory: Option<u64>,
}

/// Runs the subcommand: combines, filters, converts or describes tables.
pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Union(several) => several.run(SetOperation::Union),
        Command::Intersect(several) => several.run(SetOperation::Intersect),
        Command::Subtract(several) => several.run(SetOperation::Subtract),
        Command::Filter(one) => one.run(),
        Command::Compact(args) => compact_to_dictionary::run(args),
        Command::Info(args) => info::run(args),
    }
}

/// Returns the index of each name of `names` among the samples of `table`.
///
/// # Errors
/// The table does not have a sample.
fn sample_indices(names: &[String], samples: &[String], table: &Path) -> Result<Vec<usize>, UsageError> {
    let index_of = |name: &String| {
        let place = samples.iter().position(|sample| sample == name);
        place.ok_or_else(|| {
            let (table, there) = (table.display(), samples.join(", "));
            UsageError(format!("{table}: has no sample {name}; its samples are {there}"))
        })
    };
    names.iter().map(index_of).collect()
}

/// An open k-mer table and its note.
struct OpenTable {
    scan: TablePageReader,
    note: TableNote,
}

/// The tables to combine, the rule by which they are combined, and the output.
struct CombineJob<'a> {
    tables: Vec<OpenTable>,
    rule: CombineRule,
    note: TableNote,
    out: &'a Path,
    resources: ResourceArgs,
}

impl CombineArgs {
    fn run(&self, operation: SetOperation) -> anyhow::Result<()> {
        let counts = self.counts.unwrap_or(operation.default_count_mode());
        if operation != SetOperation::Union && self.tables.len() < 2 {
            return Err(UsageError(format!("{}: give two tables or more", operation.name())).into());
        }
        let max_input_count = self.max_input_count.unwrap_or(u32::MAX);
        if max_input_count < self.min_input_count {
            return Err(UsageError(format!(
                "--max-input {max_input_count} is below --min-input {}",
                self.min_input_count
            ))
            .into());
        }
        let tables = open_tables(&self.tables, self.resources)?;
        let counts_of_first = counts == CountMode::First && operation != SetOperation::Union;
        if counts.needs_equal_num_samples() && !counts_of_first {
            check_same_samples(&tables)?;
        }
        let samples = self.result_sample_names(&tables, counts, counts_of_first)?;
        let samples_of_tables: Vec<usize> = tables.iter().map(|table| table.note.samples.len()).collect();
        let mut rule = CombineRule::new(operation, counts, &samples_of_tables);
        rule.input_counts = self.min_input_count..=max_input_count;
        rule.output_counts = self.limits.range()?;
        let notes: Vec<&TableNote> = tables.iter().map(|table| &table.note).collect();
        let note = note_of_result(&notes, &rule, samples);
        warn_about_differences(&tables, operation, counts);
        CombineJob { tables, rule, note, out: &self.out, resources: self.resources }.run()
    }

    /// Returns the names of the result's samples.
    fn result_sample_names(
        &self,
        tables: &[OpenTable],
        counts: CountMode,
        counts_of_first: bool,
    ) -> anyhow::Result<Vec<String>> {
        let names = match counts {
            CountMode::Columns => {
                let named = tables.iter().map(|table| (table.scan.path(), &table.note.samples[..]));
                name_samples_of_tables(&named.collect::<Vec<_>>())
            }
            CountMode::Samples => vec![TableDerivation::COUNTS_VALUE_FOR_NUM_SAMPLES.to_owned()],
            _ => {
                let first = &tables[0].note.samples;
                let same = counts_of_first || tables.iter().all(|table| table.note.samples == *first);
                if same || first.len() > 1 { first.clone() } else { vec![counts.name().to_owned()] }
            }
        };
        if names.len() > MAX_SAMPLES {
            let (n, most) = (names.len(), MAX_SAMPLES);
            return Err(UsageError(format!(
                "{n} samples: a table has at most {most}; use --counts samples, sum, max or min"
            ))
            .into());
        }
        if !self.names.is_empty() {
            if self.names.len() != names.len() {
                let (given, wanted) = (self.names.len(), names.len());
                return Err(UsageError(format!("--names: {given} names for {wanted} samples")).into());
            }
            check_names(&self.names, "give each sample another name")?;
            return Ok(self.names.clone());
        }
        check_names(&names, "name the samples with --names")?;
        Ok(names)
    }
}

impl FilterArgs {
    fn run(&self) -> anyhow::Result<()> {
        let tables = open_tables(std::slice::from_ref(&self.table), self.resources)?;
        let samples = &tables[0].note.samples;
        let filter_samples = sample_indices(&self.sample, samples, &self.table)?;
        let mut rule = CombineRule::new(SetOperation::Filter, CountMode::Columns, &[samples.len()]);
        rule.output_counts = self.limits.range()?;
        rule.filter_samples = filter_samples;
        let note = note_of_result(&[&tables[0].note], &rule, samples.clone());
        CombineJob { tables, rule, note, out: &self.out, resources: self.resources }.run()
    }
}

impl CountLimits {
    fn range(self) -> Result<std::ops::RangeInclusive<u64>, UsageError> {
        match self.max {
            Some(max) if max < self.min => Err(UsageError(format!("--max {max} is below --min {}", self.min))),
            max => Ok(self.min..=max.unwrap_or(u64::MAX)),
        }
    }
}

impl ResourceArgs {
    /// Returns the memory for reading and writing tables (bytes). `page_bytes` is the memory of one page of each table
    /// in all k-mer ranges.
    ///
    /// # Errors
    /// The memory is too small.
    fn usable_memory_bytes(self, tables: usize, page_bytes: u64) -> Result<u64, UsageError> {
        let threads = command_line::threads_or_all_cpus(self.threads);
        let memory = self
            .memory
            .map_or_else(memory_limits::default_memory_budget_bytes, memory_limits::cap_memory_to_machine_total);
        let reserve = BASE_MEMORY_BYTES + MEMORY_PER_THREAD_BYTES * threads as u64;
        let min_memory_bytes = reserve + (16 << 20) + 2 * page_bytes;
        if memory < min_memory_bytes {
            let subject = format!("{tables} tables need");
            return Err(memory_limits::too_little_memory_error(memory, min_memory_bytes, &subject, None));
        }
        Ok(memory - reserve)
    }
}

/// Opens tables. They must have the same k.
fn open_tables(paths: &[PathBuf], resources: ResourceArgs) -> anyhow::Result<Vec<OpenTable>> {
    // Refuses too little memory before many tables are opened.
    resources.usable_memory_bytes(paths.len(), paths.len() as u64 * PAGE_BYTES)?;
    let mut tables = Vec::<OpenTable>::with_capacity(paths.len());
    for path in paths {
        let scan = TablePageReader::open(path)?;
        let note = TableNote::read_from_table(&scan)?;
        if let Some(first) = tables.first()
            && first.note.k != note.k
        {
            let (path, k, other, first) = (path.display(), note.k, paths[0].display(), first.note.k);
            return Err(UsageError(format!(
                "{path}: has {k}-mers, {other} has {first}-mers: count all reads with the same -k"
            ))
            .into());
        }
        tables.push(OpenTable { scan, note });
    }
    Ok(tables)
}

/// Returns an error if the tables have different samples. Modes that combine counts sample by sample need the same
/// samples. If each table has one sample, the names may differ.
fn check_same_samples(tables: &[OpenTable]) -> Result<(), UsageError> {
    let first = &tables[0];
    let other = tables.iter().find(|table| {
        let samples = &table.note.samples;
        samples.len() != first.note.samples.len() || (samples.len() > 1 && *samples != first.note.samples)
    });
    other.map_or(Ok(()), |other| {
        let [a, b] =
            [other, first].map(|table| (table.scan.path().display().to_string(), table.note.samples.join(", ")));
        Err(UsageError(format!(
            "{} has samples {}, {} has {}: samples are combined one by one; use --counts samples or columns",
            a.0, a.1, b.0, b.1
        )))
    })
}

fn check_names(names: &[String], what: &str) -> Result<(), UsageError> {
    let twice = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
    let odd = names.iter().find(|name| name.is_empty() || name.contains(char::is_whitespace));
    match (twice, odd) {
        (Some((_, name)), _) => Err(UsageError(format!("two samples would be named {name}: {what}"))),
        (_, Some(name)) => Err(UsageError(format!("'{name}' is not a valid sample name: {what}"))),
        _ => Ok(()),
    }
}

/// Warns if tables were made with different parameters, or if counts of a panel of normals are combined with others.
fn warn_about_differences(tables: &[OpenTable], operation: SetOperation, counts: CountMode) {
    let first = &tables[0];
    type Setting = (&'static str, fn(&TableNote) -> u64);
    let limits: [Setting; 2] = [
        ("minimum counts (--min-count, --min)", |note| note.min_count.into()),
        ("minimum base qualities (--min-base-quality)", |note| note.min_base_quality.into()),
    ];
    for (what, limit) in limits {
        if let Some(other) = tables.iter().find(|table| limit(&table.note) != limit(&first.note)) {
            let (a, b) = (first.scan.path().display(), other.scan.path().display());
            let (limit_a, limit_b) = (limit(&first.note), limit(&other.note));
            warn!(
                "{a} and {b} were made with different {what}, {limit_a} and {limit_b}: a sample may have k-mers that its table \
                 lacks; for exact results make all tables with the same value"
            );
        }
    }
    if !operation.combines_counts(counts) {
        return;
    }
    let is_panel = |table: &&OpenTable| table.note.num_panel_samples().is_some();
    if let (Some(panel), Some(other)) = (tables.iter().find(is_panel), tables.iter().find(|table| !is_panel(table))) {
        let (panel, other) = (panel.scan.path().display(), other.scan.path().display());
        warn!(
            "{panel} counts samples (panel of normals), but {other} counts occurrences of k-mers, so the combined \
             counts in the result have no meaning; repeat with --counts columns (subtract: --counts first)"
        );
    }
}

impl CombineJob<'_> {
    /// Combines the tables and publishes the result.
    fn run(self) -> anyhow::Result<()> {
        let start = Instant::now();
        let CombineJob { tables, rule, note, out, resources: means } = self;
        let target = choose_format_by_extension(out)?;
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        require_existing_folder(folder, &folder.display().to_string())?;
        for table in &tables {
            check_output_is_not_input(table.scan.path(), out)?;
        }
        keep_finished_units_on_interruption(None);
        let n = tables.len();
        let scans: Vec<TablePageReader> = tables.into_iter().map(|table| table.scan).collect();
        let all: u64 = scans.iter().map(TablePageReader::len).sum();
        let threads = command_line::threads_or_all_cpus(means.threads);
        let page_bytes = scans.iter().map(|scan| page_memory_bytes(scan, threads)).sum();
        let usable_bytes = means.usable_memory_bytes(n, page_bytes)?;
        let done = combine_tables(&scans, &rule, &note, &target, threads, usable_bytes)
            .map_err(to_usage_error_if_note_too_long)?;
        let mut set = AtomicFileSet::default();
        set.add_file(done.file);
        set.publish_all()?;
        genuma_work::signals::set_termination_handler(None);
        info!(
            "{} of {all} {}-mers of {n} {} written; {:.1} s, {} of memory at most; see {}",
            done.kmers,
            note.k,
            if n == 1 { "table" } else { "tables" },
            start.elapsed().as_secs_f64(),
            quantity::format_bytes(measure_process_cost().peak_bytes),
            out.display()
        );
        Ok(())
    }
}

/// Returns an error if the output file is an input table.
fn check_output_is_not_input(table: &Path, out: &Path) -> Result<(), UsageError> {
    // I/O error ignored: reported when the file is opened.
    let file_id = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    match file_id(out) {
        Some(same) if file_id(table) == Some(same) => {
            Err(UsageError(format!("-o {}: is also an input: give the result another name", out.display())))
        }
        _ => Ok(()),
    }
}
