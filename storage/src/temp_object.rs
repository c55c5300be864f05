//! Temporary objects: files that are not published yet, and local copies of objects. Their names are hidden and
//! unique; they are removed when dropped or on a signal. Several temporary objects may exist for one object name.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use genuma_work::publish::PartialFile;
use genuma_work::signals::enter_critical_section;

use crate::error::Error;

/// An unpredictable random number.
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A file to be written and then published. It is removed if it is dropped before, or on a signal.
#[derive(Debug)]
pub struct TempObject {
    /// The locked partial file, which is removed on a signal. Its final name is the hidden name of this temporary
    /// object.
    partial: PartialFile,
    path: PathBuf,
    hidden_path: PathBuf,
}

impl TempObject {
    /// Creates an empty file in `folder` for the object `name`.
    pub(crate) fn create(folder: &Path, name: &str) -> Result<TempObject, Error> {
        let folder = folder.canonicalize().map_err(Error::io_error("write", folder))?;
        let hidden = folder.join(format!(".{name}.{}-{:016x}.draft", std::process::id(), random_number()));
        let partial = PartialFile::create(&hidden)?;
        let path = partial.partial_path().unwrap_or(&hidden).to_path_buf();
        Ok(TempObject { partial, path, hidden_path: hidden })
    }

    /// [`Self::create`] with permissions for this user only.
    pub(crate) fn create_private(folder: &Path, name: &str) -> Result<TempObject, Error> {
        let temp = TempObject::create(folder, name)?;
        fs::set_permissions(&temp.path, fs::Permissions::from_mode(0o600))
            .map_err(Error::io_error("write", &temp.path))?;
        Ok(temp)
    }

    /// Path of the file to write. The file exists, is empty, and may be replaced.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file to the disk (fsync) and renames it to `target`, replacing an existing file.
    pub(crate) fn publish_as(self, target: &Path) -> Result<(), Error> {
        self.publish_by(target, |hidden| fs::rename(hidden, target))
    }

    /// [`Self::publish_as`] unless there is a file at `target`; returns whether it was published. A link with a second
    /// name is made and the first name removed: unlike a rename, a link replaces nothing, on network file systems too.
    pub(crate) fn publish_as_new(self, target: &Path) -> Result<bool, Error> {
        let mut is_new = true;
        self.publish_by(target, |hidden| {
            match fs::hard_link(hidden, target) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => is_new = false,
                linked => linked?,
            }
            fs::remove_file(hidden)
        })?;
        Ok(is_new)
    }

    /// Writes the file to the disk, and gives it its name with `give_name`, which takes the hidden path.
    fn publish_by(self, target: &Path, give_name: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), Error> {
        let refused = || Error::io_error("write", target);
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
