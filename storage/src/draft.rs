//! Files that are not objects yet, or are copies of them: hidden, of names that no other process gives, and gone when dropped or on a
//! signal. Several may wait for the same name.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use genuma_work::publish::Partial;
use genuma_work::signals::undivided;

use crate::error::Error;

/// A number that nobody can foretell.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A file to be written and then published; removed when dropped before, or on a signal.
#[derive(Debug)]
pub struct Draft {
    /// Waits under a lock and is known to whoever clears up on a signal; what it will be is a hidden name that is this draft's alone.
    partial: Partial,
    path: PathBuf,
    hidden: PathBuf,
}

impl Draft {
    /// An empty one for `name` in `folder`.
    pub(crate) fn create(folder: &Path, name: &str) -> Result<Draft, Error> {
        let folder = folder.canonicalize().map_err(Error::system("write", folder))?;
        let hidden = folder.join(format!(".{name}.{}-{:016x}.draft", std::process::id(), random()));
        let partial = Partial::create(&hidden)?;
        let path = partial.waits_at().unwrap_or(&hidden).to_path_buf();
        Ok(Draft { partial, path, hidden })
    }

    /// Where to write; there is an empty file, which may be replaced.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, replacing what had it; all is on the disk then.
    pub(crate) fn rename(self, target: &Path) -> Result<(), Error> {
        let refused = || Error::system("write", target);
        // What waits there may be another file than the one that was made.
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(refused())?;
        let _undivided = undivided();
        self.partial.publish()?;
        if let Err(source) = fs::rename(&self.hidden, target) {
            // The error that made it necessary is the one that matters.
            let _ = fs::remove_file(&self.hidden);
            return Err(refused()(source));
        }
        let folder = target.parent().map_or_else(|| Ok(()), |folder| File::open(folder)?.sync_all());
        match folder {
            // Some network file systems know no such thing, and some folders are not to be looked at.
            Err(e) if !matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::PermissionDenied) => {
                Err(refused()(e))
            }
            _ => Ok(()),
        }
    }
}
