//! What can go wrong with the objects of a run, each in one line: which object, what happened, what to do.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use genuma_work::publish;

/// What can go wrong with a depot. An object is told by its full path or URL.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing that a depot can be.
    #[error("{place}: {why}; give a folder, s3://bucket/prefix, gs://bucket/prefix or file:///folder")]
    Place {
        /// As it was given.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// What the environment says of how to reach a bucket is not enough, or wrong.
    #[error("{place}: cannot be used as the environment has it: {why}")]
    Settings {
        /// The bucket.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// No name for an object.
    #[error(
        "'{name}' is no name for an object: letters, digits and . _ - + = make one, and it does not begin with a dot"
    )]
    Name {
        /// As it was given.
        name: String,
    },
    /// The folder or the bucket itself is missing.
    #[error("{place}: there is no such {what}; make it, or check its name")]
    NoPlace {
        /// The depot.
        place: String,
        /// `folder` or `bucket`.
        what: &'static str,
    },
    /// The object was there when it was found and is not any more.
    #[error("{object} is gone: it was removed while it was in use")]
    Missing {
        /// The object.
        object: String,
    },
    /// Another object has the name by now.
    #[error("{object} was replaced by another while it was in use; start what reads it again")]
    Replaced {
        /// The object.
        object: String,
    },
    /// The object ends before its end.
    #[error("{object} is cut short: {len} bytes were there when it was found, {found} are now")]
    Truncated {
        /// The object.
        object: String,
        /// Its length when it was found, in bytes.
        len: u64,
        /// Its length now, in bytes.
        found: u64,
    },
    /// More was asked for than the object has.
    #[error("{object}: bytes {}..{} were asked for of {len}", range.start, range.end)]
    Range {
        /// The object.
        object: String,
        /// What was asked for, in bytes.
        range: Range<u64>,
        /// Bytes of the object.
        len: u64,
    },
    /// The storage knows who asks and does not allow it, or does not know.
    #[error("cannot {doing} {object}: {said}; check the credentials and what they allow")]
    Denied {
        /// `read`, `write`, `list` or `remove`.
        doing: &'static str,
        /// The object, or the depot.
        object: String,
        /// What the storage said.
        said: String,
    },
    /// The environment names no credentials, and the machine has none of its own.
    #[error(
        "cannot {doing} {object}: no credentials: set {variables}, or use a machine that has a role ({said})"
    )]
    Credentials {
        /// `read`, `write`, `list` or `remove`.
        doing: &'static str,
        /// The object, or the depot.
        object: String,
        /// The variables that would name them.
        variables: &'static str,
        /// What came of asking the machine.
        said: String,
    },
    /// The storage refuses, and would again.
    #[error("cannot {doing} {object}: {said}")]
    Refused {
        /// `read`, `write`, `list` or `remove`.
        doing: &'static str,
        /// The object, or the depot.
        object: String,
        /// What the storage said.
        said: String,
    },
    /// What may pass did not in all the time that there was.
    #[error("cannot {doing} {object}: {said}; tried {tries} times in {seconds} s")]
    Failed {
        /// `read`, `write`, `list` or `remove`.
        doing: &'static str,
        /// The object, or the depot.
        object: String,
        /// What happened the last time.
        said: String,
        /// How often it was tried.
        tries: u32,
        /// Seconds from the first try to the last.
        seconds: u64,
    },
    /// The system refuses a file or a folder.
    #[error("cannot {doing} {}: {source}", path.display())]
    System {
        /// `read`, `write`, `list`, `remove`, `make`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that waits for its name cannot be made, or does not get it.
    #[error(transparent)]
    Draft(#[from] publish::Error),
}

impl Error {
    pub(crate) fn system(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::System { doing, path, source }
    }
}
