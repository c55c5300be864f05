//! What a result depends on, line by line: a resumed run must agree with the interrupted one in all of it.

use std::fmt::{Display, Write};
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::Context;

/// Lines of version, parameters and files. Threads and memory do not show in a result.
pub(crate) struct Fingerprint(String);

impl Fingerprint {
    /// Of this version.
    pub(crate) fn new() -> Self {
        Fingerprint(format!("genuma {}\n", env!("CARGO_PKG_VERSION")))
    }

    /// Adds a parameter.
    pub(crate) fn parameter(mut self, name: &str, value: impl Display) -> Self {
        // A string takes all that is written to it.
        let _ = writeln!(self.0, "{name} {value}");
        self
    }

    /// Adds a file, by its name, its size, and when it was changed.
    ///
    /// # Errors
    /// A file that cannot be looked at.
    pub(crate) fn file(mut self, role: &str, path: &Path) -> anyhow::Result<Self> {
        let line = Fingerprint::of_file(role, path)?;
        // A string takes all that is written to it.
        let _ = writeln!(self.0, "{line}");
        Ok(self)
    }

    /// The line of a file.
    ///
    /// # Errors
    /// A file that cannot be looked at.
    pub(crate) fn of_file(role: &str, path: &Path) -> anyhow::Result<String> {
        let look = || -> std::io::Result<_> {
            let meta = fs::metadata(path)?;
            let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            Ok((fs::canonicalize(path)?, meta.len(), changed))
        };
        let (path, bytes, changed) = look().with_context(|| format!("{}: cannot read", path.display()))?;
        Ok(format!("{role} {} of {bytes} bytes, changed at {changed} ns", path.display()))
    }

    /// All lines.
    pub(crate) fn lines(self) -> String {
        self.0
    }
}
