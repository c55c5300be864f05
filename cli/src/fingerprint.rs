//! Fingerprint of a run: text that lists everything that the result depends on. A run may resume only if its
//! fingerprint equals that of the interrupted run.

use std::fmt::{Display, Write};
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::Context;
use genuma_work::quantity::format_date_and_time;

/// Text that identifies a run: lines with genuma's version, parameters and input files. It does not contain threads and
/// memory, because results do not depend on them.
pub(crate) struct Fingerprint(String);

impl Fingerprint {
    /// Creates a fingerprint with the version of this program.
    pub(crate) fn with_program_version() -> Self {
        Fingerprint(format!("genuma {}\n", env!("CARGO_PKG_VERSION")))
    }

    /// Adds a line with a parameter and its value.
    pub(crate) fn with_parameter(mut self, name: &str, value: impl Display) -> Self {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{name} {value}");
        self
    }

    /// Adds a line with role, path, size and modification time of a file.
    ///
    /// # Errors
    /// The file's metadata cannot be read.
    pub(crate) fn with_file(mut self, role: &str, path: &Path) -> anyhow::Result<Self> {
        let line = Fingerprint::format_fingerprint_line_of_file(role, path)?;
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
        Ok(self)
    }

    /// Returns the line of a fingerprint that describes a file: role, path, size and modification time.
    ///
    /// # Errors
    /// The file's metadata cannot be read.
    pub(crate) fn format_fingerprint_line_of_file(role: &str, path: &Path) -> anyhow::Result<String> {
        let read_metadata = || -> std::io::Result<_> {
            let meta = fs::metadata(path)?;
            let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            Ok((fs::canonicalize(path)?, meta.len(), changed))
        };
        let (path, bytes, changed) = read_metadata().with_context(|| format!("{}: cannot read", path.display()))?;
        Ok(format!("{role} {} of {bytes} bytes, changed at {changed} ns", path.display()))
    }

    /// Describes the difference of two lines of [`Fingerprint::format_fingerprint_line_of_file`] for one file: its
    /// sizes or, if they are equal, its modification times.
    pub(crate) fn describe_file_change(before: &str, now: &str) -> String {
        let parse = |line: &str| -> Option<(u64, u64)> {
            let (_, numbers) = line.rsplit_once(" of ")?;
            let (bytes, changed) = numbers.strip_suffix(" ns")?.split_once(" bytes, changed at ")?;
            Some((bytes.parse().ok()?, changed.parse::<u64>().ok()? / 1_000_000_000))
        };
        match (parse(before), parse(now)) {
            (Some((old, _)), Some((new, _))) if old != new => format!("its size was {old}, is {new} bytes"),
            (Some((_, old)), Some((_, new))) => {
                format!("its modification time was {}, is {}", format_date_and_time(old), format_date_and_time(new))
            }
            _ => format!("it was {before}, is {now}"),
        }
    }

    /// Returns all lines as one text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;

    #[test]
    fn a_changed_file_is_described_by_what_differs() {
        let line = |bytes: u64, ns: u64| format!("tumor /data/a of b.fq.gz of {bytes} bytes, changed at {ns} ns");
        let describe = |bytes, ns| Fingerprint::describe_file_change(&line(123, 5_000_000_000), &line(bytes, ns));
        assert_eq!(describe(456, 5_000_000_000), "its size was 123, is 456 bytes");
        assert!(describe(123, 9_000_000_000).starts_with("its modification time was 1970-01-01"));
    }
}
