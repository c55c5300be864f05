//! A run store in a folder: each object is a file, which is published by renaming.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::store_location::is_object_name;
use crate::temp_object::TempObject;

/// A run store in a folder; each object is a file.
#[derive(Debug)]
pub(crate) struct FolderStore(pub PathBuf);

/// An object that was found in a folder store. Its file stays open, so that a later object of the same name does not
/// change the bytes that are read.
#[derive(Debug, Clone)]
pub(crate) struct FolderObject {
    path: PathBuf,
    file: Arc<File>,
    /// Length of the object in bytes.
    pub len: u64,
    /// Version of the object, from inode number and modification time: it differs between any two objects that have had
    /// this name.
    pub version: String,
}

impl FolderStore {
    /// Creates the folder of the store if it does not exist.
    pub fn create_store_folder(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.0).map_err(Error::io_error_converter("create", &self.0))
    }

    /// Creates a temporary file in the folder, for the object `name`. See
    /// [`RunStore::create_temp_object`](crate::RunStore::create_temp_object).
    pub fn create_temp_object(&self, name: &str) -> Result<TempObject, Error> {
        self.check_exists()?;
        TempObject::create(&self.0, name)
    }

    /// Publishes the temporary object as the object `name`. See [`RunStore::publish`](crate::RunStore::publish).
    pub fn publish(&self, temp_object: TempObject, name: &str) -> Result<(), Error> {
        temp_object.publish_as(&self.0.join(name))
    }

    /// Publishes the temporary object unless an object `name` exists. See
    /// [`RunStore::publish_if_absent`](crate::RunStore::publish_if_absent).
    pub fn publish_if_absent(&self, temp_object: TempObject, name: &str) -> Result<bool, Error> {
        temp_object.publish_as_if_absent(&self.0.join(name))
    }

    /// Opens the present version of the object `name`; `None` if it does not exist. See
    /// [`RunStore::open_object_if_exists`](crate::RunStore::open_object_if_exists).
    pub fn open_object_if_exists(&self, name: &str) -> Result<Option<FolderObject>, Error> {
        let path = self.0.join(name);
        let file = match open_file_if_exists(&path)? {
            Some(file) => file,
            None => {
                self.check_exists()?;
                match open_file_if_exists(&path)? {
                    Some(file) => file,
                    None => return Ok(None),
                }
            }
        };
        let metadata = file.metadata().map_err(Error::io_error_converter("read", &path))?;
        if !metadata.is_file() {
            return Err(Error::io_error_converter("read", &path)(io::Error::other("not a file")));
        }
        let version = format!("{}-{}-{}", metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
        Ok(Some(FolderObject { path, file: Arc::new(file), len: metadata.len(), version }))
    }

    /// Returns the sorted names of all objects. See
    /// [`RunStore::list_object_names`](crate::RunStore::list_object_names).
    pub fn list_object_names(&self) -> Result<Vec<String>, Error> {
        self.check_exists()?;
        let list_error = || Error::io_error_converter("list", &self.0);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(list_error())? {
            let entry = entry.map_err(list_error())?;
            let Some(name) = entry.file_name().into_string().ok().filter(|name| is_object_name(name)) else { continue };
            match entry.file_type() {
                Ok(kind) if kind.is_file() => names.push(name),
                Ok(_) => {}
                // Another task has removed the object meanwhile.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io_error_converter("read", &self.0.join(name))(e)),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes the object `name` if it exists. See [`RunStore::remove_object`](crate::RunStore::remove_object).
    pub fn remove_object(&self, name: &str) -> Result<(), Error> {
        let path = self.0.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => self.check_exists(),
            removed => removed.map_err(Error::io_error_converter("remove", &path)),
        }
    }

    /// Returns an error if the folder is missing. Opening the folder also makes a network file system (NFS) refresh its
    /// cache of missing files.
    fn check_exists(&self) -> Result<(), Error> {
        match File::open(&self.0) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                Err(Error::StoreMissing { location: self.0.display().to_string(), what: "folder" })
            }
            found => found.map(drop).map_err(Error::io_error_converter("read", &self.0)),
        }
    }
}

/// Opens a file for reading; `None` if it does not exist.
fn open_file_if_exists(path: &Path) -> Result<Option<File>, Error> {
    match File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        file => file.map(Some).map_err(Error::io_error_converter("read", path)),
    }
}

impl FolderObject {
    /// Returns the path of the object's file.
    pub fn file_path(&self) -> &Path {
        &self.path
    }

    /// Reads a range of the object into `bytes`, which must be as long as the range.
    pub fn read_range(&self, range: Range<u64>, bytes: &mut [u8]) -> Result<(), Error> {
        self.check_len(range.end)?;
        self.file.read_exact_at(bytes, range.start).map_err(|e| self.read_error(e))
    }

    /// Returns the path in `/proc/self/fd` of the open file, and checks that the file has all bytes of `range`. The
    /// path is valid while this object exists.
    pub(crate) fn proc_fd_path(&self, range: Range<u64>) -> Result<PathBuf, Error> {
        self.check_len(range.end)?;
        Ok(Path::new("/proc/self/fd").join(self.file.as_raw_fd().to_string()))
    }

    /// Returns an error if the file has fewer than `end` bytes, because another program truncated it.
    fn check_len(&self, end: u64) -> Result<(), Error> {
        let found = self.file.metadata().map_err(|e| self.read_error(e))?.len();
        if found < end {
            return Err(Error::Truncated { object: self.path.display().to_string(), len: self.len, found });
        }
        Ok(())
    }

    fn read_error(&self, error: io::Error) -> Error {
        match error.kind() {
            // On a network file system, a file that another machine replaces is lost even for processes that have it
            // open.
            ErrorKind::StaleNetworkFileHandle => Error::Replaced { object: self.path.display().to_string() },
            _ => Error::io_error_converter("read", &self.path)(error),
        }
    }
}
