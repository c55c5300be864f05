//! Results for programs.

use std::io::Write;
use std::path::Path;

use genuma_work::publish::{AtomicFile, Set};
use serde_json::Value;

/// Writes `value` to a file of `set`.
pub(crate) fn add(path: &Path, value: &Value, set: &mut Set) -> anyhow::Result<()> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, value)?;
    writeln!(file)?;
    set.add(file.complete()?);
    Ok(())
}
