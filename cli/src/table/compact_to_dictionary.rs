//! `genuma kmers compact`: converts a k-mer table to a k-mer dictionary.

use std::path::{Path, PathBuf};
use std::time::Instant;

use genuma_dictionary::{Dictionary, DictionaryBuilder, DictionarySpec, Error};
use genuma_flash::{EntryBatch, TablePageReader};
use tracing::info;

use super::{BASE_MEMORY_BYTES, PAGE_BYTES, check_output_is_not_input, read_count_note};
use crate::call::memory_limits;
use crate::count::outputs::keep_finished_units_on_interruption;
use crate::errors::{UsageError, require_existing_folder};
use crate::size_format;

/// File extension of dictionaries.
const DICTIONARY_EXTENSION: &str = "gkd";
/// Number of table pages that are read at a time.
const PAGES_PER_BATCH: u64 = 256;

/// Write the k-mers of a table as a dictionary.
///
/// A dictionary has the k-mers joined to long strings, an index of them, and the counts. It takes a fraction of the
/// bytes of the table. `genuma kmers query` reads it into memory and prints the same as for the table. Dictionaries cannot be
/// combined: keep the tables for that.
#[derive(Debug, clap::Args)]
#[command(about = "Write the k-mers of a table as a dictionary, which is smaller and is looked up in memory")]
pub(crate) struct Args {
    /// Table that `genuma kmers` made
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// File for the dictionary: x.gkd
    #[arg(short, long, value_name = "DICTIONARY")]
    out: PathBuf,
    /// Leave out the counts: `genuma kmers query` then prints 1 for the k-mers of the dictionary
    #[arg(long)]
    no_counts: bool,
    /// Maximum memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = size_format::parse_bytes, help_heading = "Resources")]
    memory: Option<u64>,
}

/// Converts the table to a dictionary and publishes the file.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let Args { table, out, .. } = args;
    if out.extension().is_none_or(|extension| extension != DICTIONARY_EXTENSION) {
        return Err(UsageError(format!("-o {}: give a name that ends in .gkd", out.display())).into());
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    require_existing_folder(folder, &folder.display().to_string())?;
    let scan = TablePageReader::open(table)?;
    check_output_is_not_input(table, out)?;
    keep_finished_units_on_interruption(None);
    let dictionary = make_dictionary(args, &scan)?;
    let (file, num_bytes) = dictionary.write_unpublished(out)?;
    file.publish()?;
    genuma_work::signals::set_termination_handler(None);
    let (num_kmers, per_kmer) = (dictionary.len(), num_bytes as f64 / dictionary.len().max(1) as f64);
    let (k, num_strings, seconds) = (dictionary.k(), dictionary.num_strings(), start.elapsed().as_secs_f64());
    info!(
        "{num_kmers} {k}-mers in {num_strings} strings, {per_kmer:.2} bytes a k-mer; {seconds:.1} s; see {}",
        out.display()
    );
    Ok(())
}

/// Builds the dictionary within the memory limit.
fn make_dictionary(args: &Args, scan: &TablePageReader) -> anyhow::Result<Dictionary> {
    let note = read_count_note(scan)?;
    let memory =
        args.memory.map_or_else(memory_limits::default_memory_budget_bytes, memory_limits::cap_memory_to_machine_total);
    let reserved = BASE_MEMORY_BYTES + PAGES_PER_BATCH * (PAGE_BYTES + scan.max_unpacked_page_bytes());
    let spec = DictionarySpec {
        k: note.k,
        num_kmers: scan.len(),
        num_samples: if args.no_counts { 0 } else { note.samples.len() },
        note: scan.note().to_vec(),
        memory_bytes: memory.saturating_sub(reserved),
    };
    fill_dictionary(spec, scan, note.samples.len()).map_err(|error| match error.downcast_ref() {
        Some(Error::MemoryLimit { needed_bytes, .. }) => {
            let subject = format!("a dictionary of {} needs", args.table.display());
            memory_limits::too_little_memory_error(memory, needed_bytes + reserved, &subject, None).into()
        }
        _ => error,
    })
}

/// Adds all k-mers of the table to a new dictionary. The table has `num_samples` counts for each k-mer; the dictionary
/// keeps all of them or none.
fn fill_dictionary(spec: DictionarySpec, scan: &TablePageReader, num_samples: usize) -> anyhow::Result<Dictionary> {
    let kept_counts = spec.num_samples;
    let mut builder = DictionaryBuilder::with_spec(spec)?;
    let mut reader = scan.new_entry_batch_reader(PAGES_PER_BATCH as usize)?;
    let mut batch = EntryBatch::<u32>::default();
    loop {
        reader.read_next_batch(&mut batch)?;
        if batch.keys.is_empty() {
            return Ok(builder.build()?);
        }
        for (&key, counts) in batch.keys.iter().zip(batch.values.chunks_exact(num_samples)) {
            builder.push_kmer(key, &counts[..kept_counts])?;
        }
    }
}
