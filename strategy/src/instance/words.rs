//! What an instance says on its standard error.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};

/// Lines kept of what an instance says.
const LAST: usize = 6;
/// Bytes of a line that are kept.
const LONGEST: usize = 300;

/// Where the words of instances go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// To the standard error of this process, as they are.
    Passed,
    /// To the log, with the number of the instance.
    Logged,
}

impl Words {
    /// Hears an instance out; gives its last lines.
    pub(crate) fn hear(self, number: usize, from: impl Read) -> Vec<String> {
        let mut last = VecDeque::with_capacity(LAST);
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line);
            match self {
                // Nobody may listen there.
                Words::Passed => drop(io::stderr().write_all(&line)),
                Words::Logged => tracing::debug!("instance {number}: {}", text.trim_end()),
            }
            let text: String = text.trim().chars().take(LONGEST).collect();
            if !text.is_empty() {
                if last.len() == LAST {
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
        let last = Words::Logged.hear(1, text.as_bytes());
        assert_eq!(last, (14..20).map(|i| format!("line {i}")).collect::<Vec<_>>());
        assert_eq!(Words::Logged.hear(1, &b"\xff no line end"[..]), ["\u{fffd} no line end"]);
        assert!(Words::Logged.hear(1, &b""[..]).is_empty());
    }
}
