//! Repeats requests after transient failures, with growing pauses, until a timeout.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::temp_object::random_number;

/// Pause after the first failed attempt, before its random reduction.
const INITIAL_PAUSE: Duration = Duration::from_millis(100);
/// Maximum pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(15);
/// Number of failed attempts of a request that are not logged, because a busy service rejects some requests. Each later
/// failure is logged.
const UNLOGGED_ATTEMPTS: u32 = 3;
/// Maximum number of attempts to get credentials from the metadata service of a cloud machine, which may have none.
const MAX_CREDENTIAL_TRIES: u32 = 3;

/// Why an attempt failed, and whether it is repeated.
#[derive(Debug)]
pub(crate) enum AttemptError {
    /// The request may succeed later, and is repeated. The text says what happened.
    Transient(String),
    /// The machine provides no credentials. The request is repeated a few times only, because most such machines never
    /// have credentials.
    NoCredentials(Error),
    /// The request will not succeed, and is not repeated.
    Permanent(Error),
}

/// What a request does and with which object, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestDescription<'a> {
    /// Action of the request: `read`, `write`, `list` or `remove`.
    pub action: &'static str,
    /// URL of the object, or location of the run store.
    pub object: &'a str,
}

/// Calls `attempt` until it succeeds or fails permanently. Returns the last error if the next attempt would start after
/// `timeout`, or if credentials were missing and [`MAX_CREDENTIAL_TRIES`] attempts were made. A running attempt is not
/// interrupted. `task` is for messages.
pub(crate) fn retry<T>(
    timeout: Duration,
    task: RequestDescription<'_>,
    mut attempt: impl FnMut() -> Result<T, AttemptError>,
) -> Result<T, Error> {
    let (start, mut tries) = (Instant::now(), 0);
    loop {
        tries += 1;
        let pause = backoff_pause(tries, random_number());
        let in_time = start.elapsed() + pause <= timeout;
        match attempt() {
            Ok(value) => return Ok(value),
            Err(AttemptError::Permanent(error)) => return Err(error),
            Err(AttemptError::NoCredentials(error)) if tries >= MAX_CREDENTIAL_TRIES || !in_time => return Err(error),
            Err(AttemptError::NoCredentials(_)) => {}
            Err(AttemptError::Transient(reason)) => {
                let elapsed = start.elapsed();
                let RequestDescription { action, object } = task;
                if elapsed + pause > timeout {
                    let (object, seconds) = (object.to_owned(), elapsed.as_secs());
                    return Err(Error::RetriesExhausted { action, object, reason, tries, seconds });
                }
                // A busy service rejects some requests: report only repeated failures.
                if tries > UNLOGGED_ATTEMPTS {
                    tracing::warn!(
                        "cannot {action} {object}: {reason}; retrying for at most {} s, and nothing is lost so far; if this goes on, \
                         check the network and the storage service",
                        timeout.as_secs()
                    );
                }
            }
        }
        std::thread::sleep(pause);
    }
}

/// Returns the pause after `tries` failed attempts. It doubles with each attempt up to [`MAX_PAUSE`], and is reduced by
/// up to half with the random number, so that many machines do not retry at the same moment.
fn backoff_pause(tries: u32, random: u64) -> Duration {
    let whole = INITIAL_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(20)).min(MAX_PAUSE);
    whole.mul_f64(0.5 + 0.5 * (random % 1024) as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: RequestDescription<'_> = RequestDescription { action: "read", object: "s3://b/x" };

    #[test]
    fn pauses_grow_to_a_limit() {
        assert_eq!(backoff_pause(1, 0), INITIAL_PAUSE / 2);
        assert!(backoff_pause(1, 1023) <= INITIAL_PAUSE);
        assert_eq!(backoff_pause(3, 0), INITIAL_PAUSE * 2);
        assert_eq!(backoff_pause(u32::MAX, 0), MAX_PAUSE / 2);
    }

    #[test]
    fn transient_errors_are_retried() {
        let mut left = 2;
        let done = retry(Duration::from_secs(60), REQUEST, || {
            left -= 1;
            if left > 0 { Err(AttemptError::Transient("busy".into())) } else { Ok(7) }
        });
        assert_eq!(done.unwrap(), 7);
    }

    #[test]
    fn transient_errors_are_reported_after_the_timeout() {
        let tried = |patience| {
            retry(patience, REQUEST, || Err::<(), AttemptError>(AttemptError::Transient("503 SlowDown".into())))
                .unwrap_err()
        };
        assert_eq!(
            tried(Duration::ZERO).to_string(),
            "cannot read s3://b/x: 503 SlowDown; tried 1 times in 0 s; check network and bucket, then repeat the command"
        );
        let Error::RetriesExhausted { tries, .. } = tried(Duration::from_millis(400)) else { panic!("failed") };
        assert!((2..=4).contains(&tries), "{tries}");
    }

    #[test]
    fn permanent_errors_are_not_retried_and_credentials_are_tried_three_times() {
        let mut tries = 0;
        let gone = || Error::ObjectRemoved { object: "x".into() };
        retry(Duration::from_secs(60), REQUEST, || {
            tries += 1;
            Err::<(), AttemptError>(AttemptError::Permanent(gone()))
        })
        .unwrap_err();
        retry(Duration::from_secs(60), REQUEST, || {
            tries += 10;
            Err::<(), AttemptError>(AttemptError::NoCredentials(gone()))
        })
        .unwrap_err();
        assert_eq!(tries, 31);
    }
}
