//! `genuma kmers info`: describes a table or a dictionary.

use std::path::PathBuf;

use genuma_dictionary::is_dictionary_file;
use genuma_flash::TablePageReader;
use genuma_tables::note::TableNote;

use crate::logging;
use crate::query::open_dictionary_with_note;

/// Describe a table or dictionary: one line for each property, with its name and value separated by a tab.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Table or dictionary that `genuma kmers` made
    #[arg(value_name = "TABLE")]
    table: PathBuf,
}

/// Prints the properties of the table or dictionary.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let lines = if is_dictionary_file(&args.table)? { describe_dictionary(args)? } else { describe_table(args)? };
    let text: String = lines.iter().map(|(name, value)| format!("{name}\t{value}\n")).collect();
    logging::print_result(text)
}

/// Name and value of each property.
type Properties = Vec<(&'static str, String)>;

fn describe_table(args: &Args) -> anyhow::Result<Properties> {
    let scan = TablePageReader::open(&args.table)?;
    let mut lines = describe_note(&TableNote::read_from_table(&scan)?, scan.len());
    lines.push(("hot_kmers", scan.num_hot_entries().to_string()));
    lines.push(("bytes", scan.file_bytes().to_string()));
    Ok(lines)
}

fn describe_dictionary(args: &Args) -> anyhow::Result<Properties> {
    let (dictionary, note) = open_dictionary_with_note(&args.table)?;
    let mut lines = describe_note(&note, dictionary.len());
    let bytes = dictionary.part_sizes();
    lines.push(("has_counts", if dictionary.num_samples() > 0 { "yes" } else { "no" }.to_owned()));
    lines.push(("strings", dictionary.num_strings().to_string()));
    lines.push(("bytes_strings", bytes.strings.to_string()));
    lines.push(("bytes_index", bytes.index.to_string()));
    lines.push(("bytes_counts", bytes.counts.to_string()));
    Ok(lines)
}

fn describe_note(note: &TableNote, num_kmers: u64) -> Properties {
    let mut lines = vec![
        ("k", note.k.to_string()),
        ("kmers", num_kmers.to_string()),
        ("samples", note.samples.join(",")),
        ("min_count", note.min_count.to_string()),
        ("min_base_quality", note.min_base_quality.to_string()),
    ];
    if let Some(made) = &note.made {
        lines.push(("made_by", made.operation.clone()));
        lines.push(("counts", made.counts.clone()));
        lines.push(("of_tables", made.tables.to_string()));
        lines.push(("of_samples", made.samples.to_string()));
    }
    lines
}
