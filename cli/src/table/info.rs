//! `genuma table info`: what a table says of itself.

use std::path::PathBuf;

use genuma_flash::Scan;

use super::note_of;
use crate::voice;

/// Tell what is in a table: one line each, a name and a value with a tab between.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Table that `genuma count` or `genuma table` made
    #[arg(value_name = "TABLE")]
    table: PathBuf,
}

/// Prints.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let scan = Scan::open(&args.table)?;
    let note = note_of(&scan)?;
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
    lines.push(("hot_kmers", scan.hot_entries().to_string()));
    lines.push(("bytes", scan.file_bytes().to_string()));
    let text: String = lines.iter().map(|(name, value)| format!("{name}\t{value}\n")).collect();
    voice::print(text)
}
