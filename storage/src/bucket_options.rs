//! Options of bucket access. Folders have no options.

use std::time::Duration;

/// How to access a bucket.
#[derive(Debug, Clone)]
pub struct BucketOptions {
    /// Names and values of environment variables; only names that begin with `AWS_` or `GOOGLE_` are used.
    pub environment: Vec<(String, String)>,
    /// Bytes per request; longer objects are sent in several parts (multipart upload). S3 requires at least 5 MiB.
    pub part_bytes: u64,
    /// Maximum number of concurrent requests for one object. An upload holds that many parts in memory.
    pub max_concurrent_requests: usize,
    /// How long transient failures are retried: server errors, broken connections, short answers.
    pub retry_timeout: Duration,
    /// A request fails after this time without a response or without a further byte of the response. One part must be
    /// sent within this time.
    pub read_timeout: Duration,
}

impl BucketOptions {
    /// The environment variables of this process; 8 concurrent requests of 8 MiB; retries for five minutes, read
    /// timeout of two minutes.
    pub(crate) fn from_environment() -> BucketOptions {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        BucketOptions {
            environment: std::env::vars_os().filter_map(text).collect(),
            part_bytes: 8 << 20,
            max_concurrent_requests: 8,
            retry_timeout: Duration::from_secs(300),
            read_timeout: Duration::from_secs(120),
        }
    }
}
