//! Lists everything that a result depends on. A run may resume only if its list equals that of the interrupted run.

use std::fmt::{Display, Write};
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::Context;

/// Lines with genuma's version, parameters and input files. Threads and memory are omitted, because results do not
/// depend on them.
pub(crate) struct Fingerprint(String);

impl Fingerprint {
    /// Starts with the version of this program.
    pub(crate) fn new() -> Self {
        Fingerprint(format!("genuma {}\n", env!("CARGO_PKG_VERSION")))
    }

    /// Adds a parameter with its value.
    pub(crate) fn with_parameter(mut self, name: &str, value: impl Display) -> Self {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{name} {value}");
        self
    }

    /// Adds a file with its path, size and modification time.
    ///
    /// # Errors
    /// The file's metadata cannot be read.
    pub(crate) fn with_file(mut self, role: &str, path: &Path) -> anyhow::Result<Self> {
        let line = Fingerprint::describe_file(role, path)?;
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
        Ok(self)
    }

    /// The line that describes a file.
    ///
    /// # Errors
    /// The file's metadata cannot be read.
    pub(crate) fn describe_file(role: &str, path: &Path) -> anyhow::Result<String> {
        let read_metadata = || -> std::io::Result<_> {
            let meta = fs::metadata(path)?;
            let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            Ok((fs::canonicalize(path)?, meta.len(), changed))
        };
        let (path, bytes, changed) = read_metadata().with_context(|| format!("{}: cannot read", path.display()))?;
        Ok(format!("{role} {} of {bytes} bytes, changed at {changed} ns", path.display()))
    }

    /// The whole text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}
