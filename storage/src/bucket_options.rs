//! Options of the access to buckets. Folders have no options.

use std::time::Duration;

/// How a bucket is accessed: credentials, sizes of requests, and timeouts.
#[derive(Debug, Clone)]
pub struct BucketOptions {
    /// Names and values of environment variables with credentials and settings. Only names that begin with `AWS_` or
    /// `GOOGLE_` are used.
    pub environment: Vec<(String, String)>,
    /// Maximum bytes per request, unless an object would need more than 10,000 parts. Longer objects are sent in
    /// several parts (multipart upload). S3 requires at least 5 MiB.
    pub part_bytes: u64,
    /// Maximum number of concurrent requests for one object. A multipart upload holds this number of parts in memory.
    pub max_concurrent_requests: usize,
    /// How long a request is repeated after transient failures: server errors, broken connections, incomplete
    /// responses.
    pub retry_timeout: Duration,
    /// Time without a response, or without further bytes of the response, after which a request fails. One part of an
    /// upload ([`Self::part_bytes`]) must be sent within this time.
    pub read_timeout: Duration,
}

impl BucketOptions {
    /// Returns the default options with the environment variables of this process: 8 concurrent requests of 8 MiB,
    /// retries for five minutes, and a read timeout of two minutes.
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
