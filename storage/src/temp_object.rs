//! Temporary objects: files that are not published yet, and local copies of objects. Their names are hidden (begin with
//! a dot) and unique. They are removed when dropped, and when a signal ends the process. Several temporary objects may
//! exist for one object name.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use genuma_work::publish::PartialFile;
use genuma_work::signals::enter_critical_section;

use crate::error::Error;

/// Returns an unpredictable random number.
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A file that is written and then published as an object. If it is dropped before, or a signal ends the process, the
/// file is removed.
#[derive(Debug)]
pub struct TempObject {
    /// The locked partial file, which a signal handler removes. When it is published, it first gets the hidden name of
    /// this temporary object.
    partial: PartialFile,
    path: PathBuf,
    hidden_path: PathBuf,
}

impl TempObject {
    /// Creates an empty temporary file in `folder`, for the object `name`. Only this user may read or write it, also
    /// after it is published: objects contain reads of patients.
    pub(crate) fn create(folder: &Path, name: &str) -> Result<TempObject, Error> {
        let folder = folder.canonicalize().map_err(Error::io_error_converter("write", folder))?;
        let hidden = folder.join(format!(".{name}.{}-{:016x}.draft", std::process::id(), random_number()));
        let partial = PartialFile::create_private(&hidden)?;
        let path = partial.partial_path().unwrap_or(&hidden).to_path_buf();
        Ok(TempObject { partial, path, hidden_path: hidden })
    }

    /// Returns the path of the file, into which the caller writes the object. The file exists, and is empty at first.
    /// Another program may replace it with a new file at this path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file to the disk (fsync), and renames it to `target`. An existing file is replaced.
    pub(crate) fn publish_as(self, target: &Path) -> Result<(), Error> {
        self.publish_with(target, |hidden| fs::rename(hidden, target))
    }

    /// Publishes as [`Self::publish_as`] does, unless there is a file at `target`. Returns whether the file was
    /// published. The file gets its name by a hard link: unlike a rename, a hard link never replaces a file, on network
    /// file systems too.
    pub(crate) fn publish_as_if_absent(self, target: &Path) -> Result<bool, Error> {
        let mut is_new = true;
        self.publish_with(target, |hidden| {
            match fs::hard_link(hidden, target) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => is_new = false,
                linked => linked?,
            }
            fs::remove_file(hidden)
        })?;
        Ok(is_new)
    }

    /// Writes the file to the disk (fsync), and calls `give_name`, which takes the hidden path and gives the file its
    /// final name.
    fn publish_with(self, target: &Path, give_name: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), Error> {
        let refused = || Error::io_error_converter("write", target);
        // Another program may have replaced the file, so open it again.
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(refused())?;
        let _undivided = enter_critical_section();
        self.partial.publish()?;
        if let Err(source) = give_name(&self.hidden_path) {
            // If this removal fails too, the first error is the one to report.
            let _ = fs::remove_file(&self.hidden_path);
            return Err(refused()(source));
        }
        let folder = target.parent().map_or_else(|| Ok(()), |folder| File::open(folder)?.sync_all());
        match folder {
            // Some network file systems cannot sync a folder, and some folders are not readable: ignore both.
            Err(e) if !matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::PermissionDenied) => Err(refused()(e)),
            _ => Ok(()),
        }
    }
}
