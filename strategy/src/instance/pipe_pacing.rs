//! Waits between reads from a pipe, to save CPU time.
//!
//! A program writes a few kilobytes at a time and wakes the reader each time: for SAM a thread switch every 20 records.
//! A reader that waits before it reads again finds more data.

use std::time::Duration;

/// Output rate (bytes/s) up to which the pipe is at most half full after the longest pause (chosen; fast aligners write
/// less).
const FAST_OUTPUT_BYTES_PER_S: u64 = 64_000_000;
/// Minimum pause; shorter pauses are skipped, because the kernel cannot sleep accurately for so short a time.
const MIN_PAUSE: Duration = Duration::from_micros(250);

/// Computes pauses between reads of a pipe: the pipe fills up to about a half meanwhile, so that the reading thread
/// wakes seldom.
#[derive(Debug)]
pub(crate) struct PipePacing {
    /// Size of the pipe, bytes.
    pipe_bytes: usize,
    pause: Duration,
}

impl PipePacing {
    /// Creates the pacing of a pipe of `pipe` bytes.
    pub(crate) fn for_pipe_size(pipe: usize) -> Self {
        PipePacing { pipe_bytes: pipe, pause: Duration::ZERO }
    }

    /// Returns how long to wait after `bytes` bytes were read: not at all if the pipe was at least half full, otherwise
    /// twice as long as before (at first [`MIN_PAUSE`]), up to the time in which a fast program fills half of the pipe.
    pub(crate) fn choose_pause_after_read(&mut self, bytes: usize) -> Duration {
        let longest = Duration::from_nanos(self.pipe_bytes as u64 / 2 * 1_000_000_000 / FAST_OUTPUT_BYTES_PER_S);
        self.pause = match 2 * bytes >= self.pipe_bytes {
            true => Duration::ZERO,
            false => (2 * self.pause).max(MIN_PAUSE).min(longest),
        };
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pipe_is_left_alone_for_longer_and_longer() {
        let mut pace = PipePacing::for_pipe_size(1 << 20);
        let mut pauses = || (0..7).map(|_| pace.choose_pause_after_read(4096).as_micros()).collect::<Vec<_>>();
        assert_eq!(pauses(), [250, 500, 1000, 2000, 4000, 8000, 8192]);
        assert_eq!(pace.choose_pause_after_read(1 << 19), Duration::ZERO);
        assert_eq!(pace.choose_pause_after_read(1 << 18), MIN_PAUSE);
    }

    #[test]
    fn a_small_pipe_is_not_left_alone_until_it_is_full() {
        let mut pace = PipePacing::for_pipe_size(4096);
        assert_eq!(pace.choose_pause_after_read(1).as_micros(), 32);
        assert_eq!(pace.choose_pause_after_read(2048), Duration::ZERO);
    }
}
