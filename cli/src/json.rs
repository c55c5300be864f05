//! Results for programs.

use std::io::Write;
use std::path::Path;

use genuma_reads::atomic_file::AtomicFile;
use serde_json::Value;

/// Writes `value` to a file, whole or not at all.
pub fn write(path: &Path, value: &Value) -> anyhow::Result<()> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, value)?;
    writeln!(file)?;
    Ok(file.finish()?)
}
