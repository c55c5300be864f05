//! `genuma table info`: describes a table.

use std::path::PathBuf;

use genuma_flash::TableScan;

use super::read_count_note;
use crate::logging;

/// Describe a table: one line for each property, with its name and value separated by a tab.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Table that `genuma count` or `genuma table` made
    #[arg(value_name = "TABLE")]
    table: PathBuf,
}

/// Prints the properties of the table.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let scan = TableScan::open(&args.table)?;
    let note = read_count_note(&scan)?;
    let mut lines = vec![
        ("k", note.k.to_string()),
        ("kmers", scan.len().to_string()),
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
    lines.push(("hot_kmers", scan.num_hot_entries().to_string()));
    lines.push(("bytes", scan.file_bytes().to_string()));
    let text: String = lines.iter().map(|(name, value)| format!("{name}\t{value}\n")).collect();
    logging::print_result(text)
}
