//! `genuma kmers union`, `intersect`, `subtract`, `filter`, `compact` and `info`: combine, filter and describe k-mer tables.

mod compact_to_dictionary;
mod read_ahead;
mod kmer_ranges;
mod info;
mod merge;
mod rule;
mod string_fasta;
mod write;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::{Subcommand, value_parser};
use genuma_flash::TablePageReader;
use genuma_kmers::MAX_SAMPLES;
use genuma_work::cost::measure_process_cost;
use genuma_work::publish::AtomicFileSet;
use genuma_work::quantity;
use tracing::{info, warn};

use crate::call::memory_limits;
use crate::command_line;
use crate::count::outputs::{KmerOutputFile, keep_finished_units_on_interruption, kmer_table_spec};
use crate::errors::{UsageError, require_existing_folder};
use crate::table_note::{TableDerivation, TableNote, name_samples_of_tables};
use kmer_ranges::KmerRange;
use merge::{INVALID_KMER, KmerCountBatch, TableMerger};
use read_ahead::{KmerRangeQueue, NUM_READING_THREADS};
use rule::{CombineRule, CountMode, SetOperation};
use write::SharedOutput;

/// Memory of the process without the buffers for tables (bytes). Measured.
const BASE_MEMORY_BYTES: u64 = 40 << 20;
/// Memory of the output buffers of each thread (bytes). Measured.
const MEMORY_PER_THREAD_BYTES: u64 = 3 << 20;
/// Target size of a k-mer range: bytes of the entries of all tables in it. With this size, the entries and the result
/// fit in the cache of one core.
const TARGET_RANGE_BYTES: u64 = 512 << 10;
/// Size of a page of a k-mer table (bytes).
const PAGE_BYTES: u64 = 4096;

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
    #[command(mut_arg("counts", |arg| SetOperation::Union.define_counts_option(arg)))]
    Union(CombineArgs),
    /// Write the k-mers that are in all tables
    #[command(mut_arg("counts", |arg| SetOperation::Intersect.define_counts_option(arg)))]
    Intersect(CombineArgs),
    /// Write the k-mers of the first table that are in no other table, or (--counts difference) whose count exceeds the
    /// sum of the counts in the others
    #[command(
        mut_arg("counts", |arg| SetOperation::Subtract.define_counts_option(arg)),
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
    // Help, values and default depend on the operation: see `SetOperation::define_counts_option`.
    #[arg(long, value_name = "MODE")]
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

/// Returns the note of a table of k-mer counts: k, samples and parameters. Fails for other tables.
fn read_count_note(scan: &TablePageReader) -> anyhow::Result<TableNote> {
    TableNote::parse_note(scan.note())
        .filter(|note| note.value_bytes_per_kmer() == scan.value_bytes())
        .filter(|_| scan.min_and_max_key().is_none_or(|(_, last)| last < INVALID_KMER))
        .with_context(|| {
            format!(
                "{}: is a table, but not of k-mer counts: make one with `genuma kmers count`",
                scan.path().display()
            )
        })
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
            return Err(UsageError(format!("{}: give two tables or more", operation.subcommand_name())).into());
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
        let mut starts = vec![0];
        starts.extend(tables.iter().scan(0, |end, table| {
            *end += table.note.samples.len();
            Some(*end)
        }));
        let samples = self.result_sample_names(&tables, counts, counts_of_first)?;
        let rule = CombineRule {
            operation,
            counts,
            input_counts: self.min_input_count..=max_input_count,
            output_counts: self.limits.range()?,
            filter_samples: Vec::new(),
            num_samples: samples.len(),
            row_starts: starts,
        };
        let all_given = rule.input_counts == (1..=u32::MAX);
        let lowest_min_count = tables
            .iter()
            .map(|table| table.note.min_count)
            .min()
            .filter(|_| all_given && counts != CountMode::Difference);
        let inherited_min_count = if counts == CountMode::Samples { None } else { lowest_min_count };
        let min_count = inherited_min_count.unwrap_or(1).max(u32::try_from(self.limits.min).unwrap_or(u32::MAX)).max(1);
        let first = &tables[0].note;
        let mut note = TableNote::for_counted_table(first.k, min_count, first.min_base_quality, samples);
        note.made = Some(describe_derivation(&tables, operation, counts));
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
                if same || first.len() > 1 { first.clone() } else { vec![counts.count_mode_name()] }
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
        let rule = CombineRule {
            operation: SetOperation::Filter,
            counts: CountMode::Columns,
            input_counts: 1..=u32::MAX,
            output_counts: self.limits.range()?,
            filter_samples,
            num_samples: samples.len(),
            row_starts: vec![0, samples.len()],
        };
        let mut note = tables[0].note.clone();
        if self.sample.is_empty() {
            note.min_count = note.min_count.max(u32::try_from(self.limits.min).unwrap_or(u32::MAX));
        }
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

/// Returns the number of k-mer ranges that are in memory at the same time.
fn range_slots_for_threads(threads: usize) -> usize {
    threads + NUM_READING_THREADS + 1
}

/// Returns the maximum memory for one page of a table in all k-mer ranges in memory: the raw page, and in each thread
/// the page unpacked, partly merged and merged (bytes).
fn page_memory_bytes(scan: &TablePageReader, threads: usize) -> u64 {
    range_slots_for_threads(threads) as u64 * PAGE_BYTES + 3 * threads as u64 * scan.max_unpacked_page_bytes()
}

/// Returns for each table the maximum number of its pages in a k-mer range, when all ranges together have `memory`
/// bytes. The numbers are proportional to the sizes of the tables, so that all tables end at about the same range.
fn pages_per_range(scans: &[TablePageReader], threads: usize, memory: u64) -> Vec<u64> {
    let all: u64 = scans.iter().map(TablePageReader::num_pages).sum();
    let entry_bytes: u64 = scans.iter().map(|scan| scan.len() * (8 + scan.value_bytes() as u64)).sum();
    let pages_in_cache = (TARGET_RANGE_BYTES * all).div_ceil(entry_bytes.max(1));
    let page_bytes = scans.iter().map(|scan| page_memory_bytes(scan, threads)).max().unwrap_or(PAGE_BYTES);
    let max_pages = (memory / 2 / page_bytes).min(pages_in_cache);
    let step = |scan: &TablePageReader| u128::from(max_pages) * u128::from(scan.num_pages()) / u128::from(all.max(1));
    scans.iter().map(|scan| (step(scan) as u64).max(1)).collect()
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
        let note = read_count_note(&scan)?;
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

/// Describes for the note of the result how it was made. The sum of panels of normals is again a panel of normals.
fn describe_derivation(tables: &[OpenTable], operation: SetOperation, counts: CountMode) -> TableDerivation {
    let panels: Option<u64> = tables.iter().map(|table| table.note.num_panel_samples()).sum();
    let num_samples: usize = tables.iter().map(|table| table.note.samples.len()).sum();
    let added = panels.filter(|_| operation == SetOperation::Union && counts == CountMode::Sum);
    let counts = if added.is_some() {
        TableDerivation::COUNTS_VALUE_FOR_NUM_SAMPLES.to_owned()
    } else {
        counts.count_mode_name()
    };
    let samples = added.unwrap_or(num_samples as u64);
    TableDerivation { operation: operation.subcommand_name().to_owned(), counts, tables: tables.len() as u64, samples }
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
        let target = KmerOutputFile::choose_format_by_extension(out)?;
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
        let page_bytes = scans.iter().map(|scan| page_memory_bytes(scan, threads));
        let usable_bytes = means.usable_memory_bytes(n, page_bytes.clone().sum())?;
        let steps = pages_per_range(&scans, threads, usable_bytes);
        let range_bytes = page_bytes.zip(&steps).map(|(bytes, pages)| bytes * pages).sum();
        let spec = genuma_flash::TableSpec {
            memory_bytes: usable_bytes.saturating_sub(range_bytes),
            ..kmer_table_spec(&note, all)?
        };
        let feed = KmerRangeQueue::with_allocated_slots(&scans, &steps, range_slots_for_threads(threads))?;
        let ((), done) = write::create_output_and_run_writers(&target, &note, spec, |out| {
            std::thread::scope(|scope| {
                for _ in 0..NUM_READING_THREADS {
                    std::thread::Builder::new()
                        .name("read".to_owned())
                        .spawn_scoped(scope, || feed.run_reading_thread())?;
                }
                let work = || combine_ranges(&rule, &scans, &feed, &out);
                let begun = (0..threads)
                    .map(|_| std::thread::Builder::new().name("combine".to_owned()).spawn_scoped(scope, work));
                let begun: Vec<_> = begun.collect();
                let ended = begun.into_iter().map(|thread| {
                    thread
                        .map_err(anyhow::Error::from)
                        .and_then(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                });
                let ended: Vec<anyhow::Result<()>> = ended.collect();
                feed.stop_reading();
                ended.into_iter().collect()
            })
        })?;
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

/// Combines k-mer ranges until none are left. Each combining thread runs this function.
fn combine_ranges(
    rule: &CombineRule,
    scans: &[TablePageReader],
    feed: &KmerRangeQueue<'_>,
    out: &SharedOutput<'_, '_>,
) -> anyhow::Result<()> {
    let mut writer = out.new_thread_writer()?;
    let mut merger = TableMerger::default();
    let mut entries: Vec<KmerCountBatch> = vec![KmerCountBatch::default(); scans.len()];
    let mut ranges = vec![0..0; scans.len()];
    while let Some((number, slot)) = feed.wait_for_next_range() {
        let unpacked = slot.and_then(|slot| {
            let KmerRange { low, high, table_pages: ref shares } = slot.kmer_range;
            for (table, scan) in scans.iter().enumerate() {
                let piece = &mut entries[table];
                piece.remove_all_entries();
                scan.check_and_unpack_pages(&slot.raw_pages[table], &shares[table].first_kmers, piece)?;
                ranges[table] = merge::entry_range_of_kmers(piece, low, high);
            }
            feed.return_slot(slot);
            Ok(())
        });
        if let Err(error) = unpacked {
            // The error of the earliest range is reported, whichever error occurred first.
            let first = writer.stop_output_after_failed_range(number);
            feed.stop_reading();
            return if first { Err(error.into()) } else { Ok(()) };
        }
        merger.merge_range(rule, &mut entries, &ranges);
        if !writer.write_range(number, &merger.last_merge_result(), rule.num_samples) {
            feed.stop_reading();
            return Ok(());
        }
    }
    writer.finish_thread_output();
    Ok(())
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
