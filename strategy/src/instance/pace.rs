//! How long a pipe is left alone, so that little of the CPU goes into passing it on.
//!
//! A program writes some kilobytes at a time, and each time wakes who waits for them: for SAM that is a switch of threads every twenty
//! records or so. Who comes back later finds more.

use std::time::Duration;

/// What a program may write (bytes a second) without finding its pipe more than half full.
const RATE: u64 = 64_000_000;
/// Shortest time worth sleeping.
const SHORTEST: Duration = Duration::from_micros(250);

/// Of one pipe.
#[derive(Debug)]
pub(crate) struct Pace {
    /// What the pipe holds (bytes).
    pipe: usize,
    pause: Duration,
}

impl Pace {
    /// For a pipe that holds so many bytes.
    pub fn new(pipe: usize) -> Self {
        Pace { pipe, pause: Duration::ZERO }
    }

    /// How long to wait after so many bytes were taken: longer each time that the pipe was not half full, up to the time in which a fast
    /// program fills half of it.
    pub fn after(&mut self, bytes: usize) -> Duration {
        let longest = Duration::from_nanos(self.pipe as u64 / 2 * 1_000_000_000 / RATE);
        self.pause = match 2 * bytes >= self.pipe {
            true => Duration::ZERO,
            false => (2 * self.pause).max(SHORTEST).min(longest),
        };
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pipe_is_left_alone_for_longer_and_longer() {
        let mut pace = Pace::new(1 << 20);
        let mut pauses = || (0..7).map(|_| pace.after(4096).as_micros()).collect::<Vec<_>>();
        assert_eq!(pauses(), [250, 500, 1000, 2000, 4000, 8000, 8192]);
        assert_eq!(pace.after(1 << 19), Duration::ZERO);
        assert_eq!(pace.after(1 << 18), SHORTEST);
    }

    #[test]
    fn a_small_pipe_is_not_left_alone_until_it_is_full() {
        let mut pace = Pace::new(4096);
        assert_eq!(pace.after(1).as_micros(), 32);
        assert_eq!(pace.after(2048), Duration::ZERO);
    }
}
