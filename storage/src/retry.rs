//! What may pass is tried again, for some time, with growing pauses.

use std::time::{Duration, Instant};

use crate::draft::random;
use crate::error::Error;

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(15);
/// So many failures are not told.
const EXPECTED: u32 = 3;
/// How often the machine is asked for credentials that it may not have.
const ASKED: u32 = 3;

/// Why an attempt did not succeed.
#[derive(Debug)]
pub enum Stop {
    /// It may succeed if it is tried again: what happened.
    Passing(String),
    /// The machine does not give credentials. A busy one may do so later, but most have none.
    Nobody(Error),
    /// It will not succeed.
    Lasting(Error),
}

/// What is tried.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// `read`, `write`, `list` or `remove`.
    pub doing: &'static str,
    /// The object, or the depot.
    pub object: &'a str,
}

/// Tries until it succeeds, or cannot, or has no time left. An attempt that is under way is not cut off.
pub(crate) fn persist<T>(
    patience: Duration,
    task: Task<'_>,
    mut attempt: impl FnMut() -> Result<T, Stop>,
) -> Result<T, Error> {
    let (begun, mut tries) = (Instant::now(), 0);
    loop {
        tries += 1;
        let pause = pause(tries, random());
        let in_time = begun.elapsed() + pause <= patience;
        match attempt() {
            Ok(done) => return Ok(done),
            Err(Stop::Lasting(error)) => return Err(error),
            Err(Stop::Nobody(error)) if tries >= ASKED || !in_time => return Err(error),
            Err(Stop::Nobody(_)) => {}
            Err(Stop::Passing(said)) => {
                let spent = begun.elapsed();
                let Task { doing, object } = task;
                if spent + pause > patience {
                    let (object, seconds) = (object.to_owned(), spent.as_secs());
                    return Err(Error::Failed { doing, object, said, tries, seconds });
                }
                // A busy storage refuses now and then: that is no news.
                if tries > EXPECTED {
                    tracing::warn!("cannot {doing} {object} yet: {said}; trying again");
                }
            }
        }
        std::thread::sleep(pause);
    }
}

/// How long to wait after so many tries: doubling, and by chance somewhat less, so that many machines do not come back at once.
fn pause(tries: u32, chance: u64) -> Duration {
    let whole = FIRST.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(LONGEST);
    whole.mul_f64(0.5 + 0.5 * (chance % 1024) as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Task<'_> = Task { doing: "read", object: "s3://b/x" };

    #[test]
    fn pauses_grow_to_a_limit() {
        assert_eq!(pause(1, 0), FIRST / 2);
        assert!(pause(1, 1023) <= FIRST);
        assert_eq!(pause(3, 0), FIRST * 2);
        assert_eq!(pause(u32::MAX, 0), LONGEST / 2);
    }

    #[test]
    fn what_passes_is_tried_again() {
        let mut left = 2;
        let done = persist(Duration::from_secs(60), TASK, || {
            left -= 1;
            if left > 0 { Err(Stop::Passing("busy".into())) } else { Ok(7) }
        });
        assert_eq!(done.unwrap(), 7);
    }

    #[test]
    fn what_does_not_pass_is_told() {
        let tried = |patience| {
            persist(patience, TASK, || Err::<(), Stop>(Stop::Passing("503 SlowDown".into()))).unwrap_err()
        };
        assert_eq!(
            tried(Duration::ZERO).to_string(),
            "cannot read s3://b/x: 503 SlowDown; tried 1 times in 0 s"
        );
        let Error::Failed { tries, .. } = tried(Duration::from_millis(400)) else { panic!("failed") };
        assert!((2..=4).contains(&tries), "{tries}");
    }

    #[test]
    fn what_lasts_is_tried_once_and_the_machine_thrice() {
        let mut tries = 0;
        let gone = || Error::Missing { object: "x".into() };
        persist(Duration::from_secs(60), TASK, || {
            tries += 1;
            Err::<(), Stop>(Stop::Lasting(gone()))
        })
        .unwrap_err();
        persist(Duration::from_secs(60), TASK, || {
            tries += 10;
            Err::<(), Stop>(Stop::Nobody(gone()))
        })
        .unwrap_err();
        assert_eq!(tries, 31);
    }
}
