//! How a bucket is reached and used. Folders have no options.

use std::time::Duration;

/// How a bucket is reached and used.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names and values of environment variables: those that begin with `AWS_` or `GOOGLE_` count.
    pub environment: Vec<(String, String)>,
    /// Bytes that one request carries; longer objects go in several. S3 wants 5 MiB at least.
    pub part: u64,
    /// Requests under way at once for one object. Writing one takes memory for so many parts.
    pub at_once: usize,
    /// For how long what may pass is tried again: server errors, broken connections, short answers.
    pub patience: Duration,
    /// After how long without an answer, or a further byte of it, a request has failed. A part must be sent in this time.
    pub silence: Duration,
}

impl Options {
    /// What the variables of this process say; 8 requests of 8 MiB at once; five minutes of patience, two of silence.
    pub(crate) fn of_environment() -> Options {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Options {
            environment: std::env::vars_os().filter_map(text).collect(),
            part: 8 << 20,
            at_once: 8,
            patience: Duration::from_secs(300),
            silence: Duration::from_secs(120),
        }
    }
}
