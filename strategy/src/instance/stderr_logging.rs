//! Logs the standard error of an instance.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};

/// Target (as in `tracing`) of the log events with lines of an instance's standard error.
pub const STDERR_LOG_TARGET: &str = "instance";

/// Number of non-empty lines at the end of standard error that are kept for error messages.
const KEPT_LINES: usize = 6;
/// Maximum number of bytes that are read as one line; a longer line is split into several.
const MAX_READ_LINE_BYTES: u64 = 64 << 10;
/// Maximum characters of a line that are kept.
const MAX_KEPT_LINE_CHARS: usize = 300;

/// Where the standard error of instances is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StderrLogging {
    /// To the log unchanged, with the target [`STDERR_LOG_TARGET`].
    Forward,
    /// To the debug log, with the name of the instance.
    Debug,
}

impl StderrLogging {
    /// Logs all lines of the standard error `from` of the instance `name` until its end. Returns the last non-empty
    /// lines, each cut to [`MAX_KEPT_LINE_CHARS`].
    pub(crate) fn log_stderr_lines(self, name: &str, from: impl Read) -> Vec<String> {
        let mut last = VecDeque::with_capacity(KEPT_LINES);
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        // I/O error ignored: the messages of the aligner end there.
        while lines.by_ref().take(MAX_READ_LINE_BYTES).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line);
            match self {
                StderrLogging::Forward => tracing::info!(target: STDERR_LOG_TARGET, "{}", text.trim_end()),
                StderrLogging::Debug => tracing::debug!("{name}: {}", text.trim_end()),
            }
            let text: String = text.trim().chars().take(MAX_KEPT_LINE_CHARS).collect();
            if !text.is_empty() {
                if last.len() == KEPT_LINES {
                    last.pop_front();
                }
                last.push_back(text);
            }
            line.clear();
        }
        last.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let text: String = (0..20).map(|i| format!("line {i}\n\n")).collect();
        let last = StderrLogging::Debug.log_stderr_lines("instance 1", text.as_bytes());
        assert_eq!(last, (14..20).map(|i| format!("line {i}")).collect::<Vec<_>>());
        assert_eq!(
            StderrLogging::Debug.log_stderr_lines("instance 1", &b"\xff no line end"[..]),
            ["\u{fffd} no line end"]
        );
        assert!(StderrLogging::Debug.log_stderr_lines("instance 1", &b""[..]).is_empty());
        let endless = std::io::repeat(b'z').take(3 * MAX_READ_LINE_BYTES);
        assert_eq!(
            StderrLogging::Debug.log_stderr_lines("instance 1", endless),
            ["z".repeat(MAX_KEPT_LINE_CHARS), "z".repeat(MAX_KEPT_LINE_CHARS), "z".repeat(MAX_KEPT_LINE_CHARS)]
        );
    }
}
