//! What an instance says on its standard error.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};

/// Target of the events that are an instance's own words.
pub const WORDS: &str = "instance";

/// Lines kept of what an instance says.
const LAST: usize = 6;
/// Bytes of a line that are heard at once; a longer one counts as several.
const HEARD: u64 = 64 << 10;
/// Bytes of a line that are kept.
const LONGEST: usize = 300;

/// Where the words of instances go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// To the log as they are, with the target [`WORDS`].
    Passed,
    /// To the log of details, with the number of the instance.
    Logged,
}

impl Words {
    /// Hears an instance out; gives its last lines.
    pub(crate) fn hear(self, number: usize, from: impl Read) -> Vec<String> {
        let mut last = VecDeque::with_capacity(LAST);
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        while lines.by_ref().take(HEARD).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line);
            match self {
                Words::Passed => tracing::info!(target: WORDS, "{}", text.trim_end()),
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
        let endless = std::io::repeat(b'z').take(3 * HEARD);
        assert_eq!(
            Words::Logged.hear(1, endless),
            ["z".repeat(LONGEST), "z".repeat(LONGEST), "z".repeat(LONGEST)]
        );
    }
}
