//! Errors of a run store, each one line: which object, what happened, what to do.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use genuma_work::publish;

/// An error of a run store. Objects are named by their full path or URL.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not the location of a run store.
    #[error("{location}: {reason}; give a folder, s3://bucket/prefix, gs://bucket/prefix or file:///folder")]
    InvalidLocation {
        /// The location as the user gave it.
        location: String,
        /// What is wrong with the location.
        reason: String,
    },
    /// The environment variables do not configure access to the bucket.
    #[error("{location}: the environment variables do not configure access: {reason}")]
    BucketSettings {
        /// Location of the run store, as the user gave it (`s3://...` or `gs://...`).
        location: String,
        /// What is wrong with the environment variables.
        reason: String,
    },
    /// The text is not a valid object name.
    #[error("'{name}' is not a valid object name: use letters, digits and . _ - + =, and no dot at the beginning")]
    InvalidObjectName {
        /// The name as it was given.
        name: String,
    },
    /// The folder or bucket does not exist.
    #[error("{location}: this {what} does not exist; create it, or check its name")]
    StoreMissing {
        /// Location of the run store, as the user gave it.
        location: String,
        /// `folder` or `bucket`.
        what: &'static str,
    },
    /// The object was found earlier and does not exist any more.
    #[error(
        "{object} was removed while it was in use; run the step that makes it again (genuma step RUN STEP NUMBER --again)"
    )]
    ObjectRemoved {
        /// Name of the object in the run store.
        object: String,
    },
    /// Another object has replaced the object.
    #[error("{object} was replaced while it was in use; run the step that reads it again")]
    Replaced {
        /// Name of the object in the run store.
        object: String,
    },
    /// The object has become shorter.
    #[error(
        "{object} is truncated: it had {len} bytes when it was found and has {found} now; run the step that makes it again (genuma step RUN STEP NUMBER --again)"
    )]
    Truncated {
        /// Name of the object in the run store.
        object: String,
        /// Length of the object, in bytes, when it was found.
        len: u64,
        /// Length of the object, in bytes, now.
        found: u64,
    },
    /// A range was requested that is not within the object.
    #[error("{object}: bytes {}..{} were requested, but the object has {len}", range.start, range.end)]
    OutOfRange {
        /// Name of the object in the run store.
        object: String,
        /// The requested range in bytes.
        range: Range<u64>,
        /// Length of the object in bytes.
        len: u64,
    },
    /// The service rejects the credentials, or they do not permit the request.
    #[error("cannot {action} {object}: {reason}; check the credentials and what they allow")]
    Denied {
        /// `read`, `write`, `list` or `remove`.
        action: &'static str,
        /// The object or the run store.
        object: String,
        /// The message of the service.
        reason: String,
    },
    /// The environment has no credentials, and the machine provides none.
    #[error("cannot {action} {object}: no credentials: set {variables}, or use a machine that has a role ({reason})")]
    NoCredentials {
        /// `read`, `write`, `list` or `remove`.
        action: &'static str,
        /// The object or the run store.
        object: String,
        /// Environment variables to set.
        variables: &'static str,
        /// Why the machine provides no credentials.
        reason: String,
    },
    /// The service rejected the request; a retry would not help.
    #[error("cannot {action} {object}: {reason}")]
    Rejected {
        /// `read`, `write`, `list` or `remove`.
        action: &'static str,
        /// The object or the run store.
        object: String,
        /// The message of the service.
        reason: String,
    },
    /// Transient failures lasted longer than the retry timeout.
    #[error(
        "cannot {action} {object}: {reason}; tried {tries} times in {seconds} s; check network and bucket, then repeat the command"
    )]
    RetriesExhausted {
        /// `read`, `write`, `list` or `remove`.
        action: &'static str,
        /// The object or the run store.
        object: String,
        /// The failure of the last attempt.
        reason: String,
        /// How many times the request was sent.
        tries: u32,
        /// Seconds from the first attempt to the last.
        seconds: u64,
    },
    /// A system call failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write`, `list`, `remove` or `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A temporary object cannot be created or renamed.
    #[error(transparent)]
    Publish(#[from] publish::Error),
}

impl Error {
    /// Returns a function for `map_err` that adds to an I/O error what was done (`action`) and the path.
    pub(crate) fn io_error(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { action, path, source }
    }
}
