//! `genuma kmers compact`: converts a k-mer table to a k-mer dictionary, or to the strings of the dictionary as FASTA.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use genuma_dictionary::{Dictionary, DictionaryHeader, is_dictionary_file};
use genuma_flash::TablePageReader;
use genuma_tables::Error;
use genuma_tables::dictionary::{batch_memory_bytes, build_dictionary, write_string_fasta};
use genuma_tables::note::TableNote;
use genuma_work::publish::{AtomicFile, PartialFile};
use genuma_work::quantity;
use tracing::info;

use super::{BASE_MEMORY_BYTES, check_output_is_not_input, sample_indices};
use crate::call::memory_limits;
use crate::count::outputs::keep_finished_units_on_interruption;
use crate::errors::{UsageError, require_existing_folder};
use crate::query::open_dictionary_with_note;

/// Write the k-mers of a table as a dictionary, or as strings in FASTA.
///
/// A dictionary has the k-mers joined to long strings, an index of them, and the counts. It takes a fraction of the
/// bytes of the table. `genuma kmers query` reads it into memory and prints the same as for the table, and `genuma call
/// --panel` takes it as a panel of normals. Dictionaries cannot be combined: keep the tables for that.
///
/// With -o x.fa the strings of the dictionary are written, each k-mer once, on either strand. The header is like that
/// of BCALM2 and GGCAT: number of the string, length (LN), sum (KC) and mean (km) of the counts of its k-mers. The
/// strings are simplitigs (tp:Z:simplitig): unlike unitigs they continue where the de Bruijn graph branches, so there
/// are no links (L).
#[derive(Debug, clap::Args)]
#[command(
    about = "Write the k-mers of a table as a dictionary, which is smaller and is looked up in memory, or as strings in FASTA",
    after_help = "Examples:\n  \
    genuma kmers compact S.gkt -o S.gkd\n  \
    genuma kmers compact S.gkd -o S.fa"
)]
pub(crate) struct Args {
    /// Table that `genuma kmers` made; for FASTA also a dictionary
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// File for the dictionary: x.gkd; for the strings: x.fa or x.fasta
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Leave out the counts: `genuma kmers query` then prints 1 for the k-mers of the dictionary. In FASTA leave out KC
    /// and km
    #[arg(long)]
    no_counts: bool,
    /// FASTA: only the counts of these samples are in KC and km [default: the counts of all samples, added up]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "no_counts")]
    sample: Vec<String>,
    /// Maximum memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = "Resources")]
    memory: Option<u64>,
}

/// Format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputFormat {
    Dictionary,
    Fasta,
}

impl OutputFormat {
    /// Returns the format of the output file `path`, which its extension determines.
    fn choose_by_extension(path: &Path) -> Result<Self, UsageError> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gkd") => Ok(OutputFormat::Dictionary),
            Some("fa" | "fasta") => Ok(OutputFormat::Fasta),
            _ => {
                let out = path.display();
                Err(UsageError(format!("-o {out}: give a name that ends in .gkd, or in .fa or .fasta for FASTA")))
            }
        }
    }
}

/// Converts the table or dictionary and publishes the file.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let Args { table, out, .. } = args;
    let format = OutputFormat::choose_by_extension(out)?;
    if format == OutputFormat::Dictionary && !args.sample.is_empty() {
        return Err(UsageError("--sample: is only for FASTA (-o x.fa)".to_owned()).into());
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    require_existing_folder(folder, &folder.display().to_string())?;
    let is_dictionary = is_dictionary_file(table)?;
    if is_dictionary && format == OutputFormat::Dictionary {
        let table = table.display();
        return Err(UsageError(format!("{table}: is a dictionary already; to write its strings, give -o x.fa")).into());
    }
    let dictionary = if is_dictionary {
        check_output_is_not_input(table, out)?;
        keep_finished_units_on_interruption(None);
        open_dictionary(args)?
    } else {
        let scan = TablePageReader::open(table)?;
        check_output_is_not_input(table, out)?;
        keep_finished_units_on_interruption(None);
        make_dictionary(args, &scan)?
    };
    let (file, content) = match format {
        OutputFormat::Dictionary => {
            let (file, num_bytes) = dictionary.write_unpublished(out)?;
            (file, format!("{:.2} bytes a k-mer", num_bytes as f64 / dictionary.len().max(1) as f64))
        }
        OutputFormat::Fasta => (write_fasta(args, &dictionary)?, "written as FASTA".to_owned()),
    };
    file.publish()?;
    genuma_work::signals::set_termination_handler(None);
    let (num_kmers, k) = (dictionary.len(), dictionary.k());
    let (num_strings, seconds) = (dictionary.num_strings(), start.elapsed().as_secs_f64());
    info!("{num_kmers} {k}-mers in {num_strings} strings, {content}; {seconds:.1} s; see {}", out.display());
    Ok(())
}

/// Writes the strings of the dictionary to a partial file.
fn write_fasta(args: &Args, dictionary: &Dictionary) -> anyhow::Result<PartialFile> {
    let samples = summed_samples(args, dictionary)?;
    let mut file = AtomicFile::create(&args.out)?;
    write_string_fasta(dictionary, &args.table, samples.as_deref(), &mut file)?;
    Ok(file.flush_to_partial_file()?)
}

/// Returns the numbers of the samples whose counts are summed; `None` if the headers get no counts.
fn summed_samples(args: &Args, dictionary: &Dictionary) -> anyhow::Result<Option<Vec<usize>>> {
    let table = args.table.display();
    if args.no_counts || dictionary.num_samples() == 0 {
        if !args.sample.is_empty() {
            return Err(UsageError(format!("--sample: {table} has no counts")).into());
        }
        return Ok(None);
    }
    if args.sample.is_empty() {
        return Ok(Some((0..dictionary.num_samples()).collect()));
    }
    let note = TableNote::parse_dictionary_note(dictionary.note(), dictionary.k(), dictionary.num_samples())
        .with_context(|| format!("{table}: is a dictionary, but not of k-mer counts"))?;
    let mut samples = sample_indices(&args.sample, &note.samples, &args.table)?;
    samples.sort_unstable();
    samples.dedup();
    Ok(Some(samples))
}

/// Returns the memory limit of the process in bytes.
fn memory_limit_bytes(args: &Args) -> u64 {
    args.memory.map_or_else(memory_limits::default_memory_budget_bytes, memory_limits::cap_memory_to_machine_total)
}

/// Reads a dictionary into memory, within the memory limit.
fn open_dictionary(args: &Args) -> anyhow::Result<Dictionary> {
    let (memory, needed) =
        (memory_limit_bytes(args), BASE_MEMORY_BYTES + DictionaryHeader::read(&args.table)?.file_bytes);
    if memory < needed {
        let subject = format!("the strings of {} need", args.table.display());
        return Err(memory_limits::too_little_memory_error(memory, needed, &subject, None).into());
    }
    Ok(open_dictionary_with_note(&args.table)?.0)
}

/// Builds the dictionary within the memory limit.
fn make_dictionary(args: &Args, scan: &TablePageReader) -> anyhow::Result<Dictionary> {
    let note = TableNote::read_from_table(scan)?;
    // An error of --sample ends the run before the dictionary is made.
    sample_indices(&args.sample, &note.samples, &args.table)?;
    let memory = memory_limit_bytes(args);
    let reserved = BASE_MEMORY_BYTES + batch_memory_bytes(scan);
    build_dictionary(scan, &note, !args.no_counts, memory.saturating_sub(reserved)).map_err(|error| match error {
        Error::Dictionary(genuma_dictionary::Error::MemoryLimit { needed_bytes, .. }) => {
            let subject = format!("a dictionary of {} needs", args.table.display());
            memory_limits::too_little_memory_error(memory, needed_bytes + reserved, &subject, None).into()
        }
        error => error.into(),
    })
}
