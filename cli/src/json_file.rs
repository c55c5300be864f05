//! Writes results as JSON files with a schema number (docs/schema).

use std::io::Write;
use std::path::Path;

use genuma_work::publish::{AtomicFile, AtomicFileSet};
use serde::Serialize;

/// Schema numbers of the JSON outputs. Raise the number of an output when its keys change in a way that breaks
/// programs that read it: a key is removed or renamed, or a value changes its type or meaning.
pub(crate) mod schema_numbers {
    /// Schema number of the output of `genuma machine advise --json`.
    pub(crate) const ADVICE_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of the output of `genuma align --json`.
    pub(crate) const ALIGN_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of the output of `genuma check --json`.
    pub(crate) const CHECK_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of the output of `genuma kmers count --json`.
    pub(crate) const KMER_COUNT_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of `plan.json`, the plan of a distributed call.
    pub(crate) const DISTRIBUTED_PLAN_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of the output of `genuma bench evaluate --json`.
    pub(crate) const EVALUATION_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of the output of `genuma plan --json`.
    pub(crate) const FORECAST_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of the output of `genuma plan --machines --json`.
    pub(crate) const MACHINE_COMPARISON_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of the output of `genuma machine measure --placement --json`.
    pub(crate) const PLACEMENT_CHECK_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of the output of `genuma run --json`.
    pub(crate) const RUN_COMMAND_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of `summary.json`, which `genuma call` writes.
    pub(crate) const CALL_SUMMARY_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of the output of `genuma machine show --json`.
    pub(crate) const TOPOLOGY_SCHEMA_NUMBER: u32 = 1;
    /// Schema number of the output of `genuma track --json`.
    pub(crate) const TRACK_SCHEMA_NUMBER: u32 = 1;
}

/// A JSON output: the object `content`, with the additional key `schema`.
#[derive(Debug, Serialize)]
pub(crate) struct JsonOutput<T> {
    schema: u32,
    #[serde(flatten)]
    content: T,
}

impl<T: Serialize> JsonOutput<T> {
    /// Wraps `content`, which must serialise as a JSON object, and adds its schema number.
    pub(crate) fn with_schema_number(schema: u32, content: T) -> Self {
        JsonOutput { schema, content }
    }
}

/// Adds an indented JSON file to `set`: `content`, a struct or an object, with its schema number.
pub(crate) fn add_json_file_with_schema_number(
    path: &Path,
    schema: u32,
    content: &impl Serialize,
    set: &mut AtomicFileSet,
) -> anyhow::Result<()> {
    add_json_file(path, &JsonOutput::with_schema_number(schema, content), set)
}

/// Adds a file with `value` as indented JSON to `set`.
pub(crate) fn add_json_file(path: &Path, value: &impl Serialize, set: &mut AtomicFileSet) -> anyhow::Result<()> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, value)?;
    writeln!(file)?;
    set.add_file(file.flush_to_partial_file()?);
    Ok(())
}
