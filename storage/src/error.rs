//! Errors of a run store. Each message is one line: which object, what happened, what to do.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use genuma_work::publish;

/// An error of a run store. Objects are named by their path or URL.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The given text is not the location of a run store.
    #[error("{location}: {reason}; give a folder, s3://bucket/prefix, gs://bucket/prefix or file:///folder")]
    InvalidLocation {
        /// The given text.
        location: String,
        /// What is wrong with the text.
        reason: String,
    },
    /// The location is a bucket, and this build lacks the feature `cluster`.
    #[error(
        "{location}: this build cannot access buckets: it lacks the feature `cluster`, which `make build` has; give a folder, or use another build"
    )]
    BucketsUnsupported {
        /// Location of the run store (`s3://...` or `gs://...`).
        location: String,
    },
    /// The environment variables do not allow a connection to the bucket.
    #[error("{location}: the environment variables do not configure access: {reason}")]
    InvalidBucketSettings {
        /// Location of the run store (`s3://...` or `gs://...`).
        location: String,
        /// What is missing or wrong in the environment.
        reason: String,
    },
    /// The given text is not a valid object name.
    #[error("'{name}' is not a valid object name: use letters, digits and . _ - + =, and no dot at the beginning")]
    InvalidObjectName {
        /// The given text.
        name: String,
    },
    /// The folder or bucket of the run store does not exist.
    #[error("{location}: this {what} does not exist; create it, or check its name")]
    StoreMissing {
        /// Location of the run store.
        location: String,
        /// What does not exist: `folder` or `bucket`.
        what: &'static str,
    },
    /// The object was found earlier, but does not exist any more.
    #[error(
        "{object} was removed while it was in use; run the step that makes it again (genuma step RUN STEP NUMBER --again)"
    )]
    ObjectRemoved {
        /// Path or URL of the object.
        object: String,
    },
    /// Another object of the same name has replaced the object.
    #[error("{object} was replaced while it was in use; run the step that reads it again")]
    Replaced {
        /// Path or URL of the object.
        object: String,
    },
    /// The object is shorter than when it was found.
    #[error(
        "{object} is truncated: it had {len} bytes when it was found and has {found} now; run the step that makes it again (genuma step RUN STEP NUMBER --again)"
    )]
    Truncated {
        /// Path or URL of the object.
        object: String,
        /// Length of the object in bytes when it was found.
        len: u64,
        /// Present length of the object in bytes.
        found: u64,
    },
    /// A requested range of bytes is not within the object.
    #[error("{object}: bytes {}..{} were requested, but the object has {len}", range.start, range.end)]
    OutOfRange {
        /// Path or URL of the object.
        object: String,
        /// The requested range of bytes.
        range: Range<u64>,
        /// Length of the object in bytes.
        len: u64,
    },
    /// The service rejects the credentials, or the credentials do not permit the request.
    #[error("cannot {action} {object}: {reason}; check the credentials and what they allow")]
    Denied {
        /// What failed: `read`, `write`, `list` or `remove`.
        action: &'static str,
        /// Path or URL of the object, or location of the run store.
        object: String,
        /// The error message of the service.
        reason: String,
    },
    /// The environment variables contain no credentials, and the cloud machine provides none.
    #[error("cannot {action} {object}: no credentials: set {variables}, or use a machine that has a role ({reason})")]
    NoCredentials {
        /// What failed: `read`, `write`, `list` or `remove`.
        action: &'static str,
        /// Path or URL of the object, or location of the run store.
        object: String,
        /// Names of the environment variables to set.
        variables: &'static str,
        /// Why the cloud machine provides no credentials.
        reason: String,
    },
    /// The service rejected the request; repeating it would not help.
    #[error("cannot {action} {object}: {reason}")]
    Rejected {
        /// What failed: `read`, `write`, `list` or `remove`.
        action: &'static str,
        /// Path or URL of the object, or location of the run store.
        object: String,
        /// The error message of the service.
        reason: String,
    },
    /// A request failed again and again with transient failures, until the retry timeout.
    #[error(
        "cannot {action} {object}: {reason}; tried {tries} times in {seconds} s; check network and bucket, then repeat the command"
    )]
    RetriesExhausted {
        /// What failed: `read`, `write`, `list` or `remove`.
        action: &'static str,
        /// Path or URL of the object, or location of the run store.
        object: String,
        /// Why the last attempt failed.
        reason: String,
        /// Number of times that the request was sent.
        tries: u32,
        /// Time from the first attempt to the last (s).
        seconds: u64,
    },
    /// An operation on a local file or folder failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What failed: `read`, `write`, `list`, `remove` or `create`.
        action: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A temporary file cannot be created or published.
    #[error(transparent)]
    Publish(#[from] publish::Error),
}

impl Error {
    /// Returns a function for `map_err` that converts an I/O error to [`Error::Io`], with the failed action and the
    /// path.
    pub(crate) fn io_error_converter(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { action, path, source }
    }
}
