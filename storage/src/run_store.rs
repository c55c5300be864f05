//! The run store: named objects in a folder or a bucket.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bucket_options::BucketOptions;
use crate::bucket_store::{self, BucketStore};
use crate::error::Error;
use crate::folder_store::{self, FolderStore};
use crate::store_location::{StoreLocation, check_object_name};
use crate::temp_object::TempObject;

/// A folder or bucket with the objects of a distributed call. Object names consist of at most 160 letters, digits and
/// `. _ - + =`, and do not begin with a dot.
#[derive(Debug)]
pub struct RunStore(Backend);

#[derive(Debug)]
enum Backend {
    Folder(FolderStore),
    Bucket(Arc<BucketStore>),
}

impl RunStore {
    /// Opens the run store at `location`: a folder, `file:///folder`, `s3://bucket/prefix` or `gs://bucket/prefix`.
    /// Temporary copies of the objects of a bucket are kept in the folder `scratch`. The usual environment variables
    /// (`AWS_…`, `GOOGLE_…`) configure the access to a bucket. Sends no request.
    ///
    /// # Errors
    /// The location is invalid, or the environment does not configure access to the bucket.
    pub fn open(location: &str, scratch: &Path) -> Result<RunStore, Error> {
        RunStore::open_with_options(location, scratch, &BucketOptions::from_environment())
    }

    /// Opens a run store as [`RunStore::open`] does, with these options instead of those of the environment.
    ///
    /// # Errors
    /// The errors of [`RunStore::open`].
    pub fn open_with_options(location: &str, scratch: &Path, options: &BucketOptions) -> Result<RunStore, Error> {
        Ok(RunStore(match StoreLocation::parse(location)? {
            StoreLocation::Folder(path) => Backend::Folder(FolderStore(path)),
            StoreLocation::Bucket(location) => {
                Backend::Bucket(Arc::new(BucketStore::open(location, scratch, options)?))
            }
        }))
    }

    /// Creates the folder of the run store if it does not exist. Does nothing for a bucket, which must exist already.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn create_store_folder(&self) -> Result<(), Error> {
        match &self.0 {
            Backend::Folder(folder) => folder.create_store_folder(),
            Backend::Bucket(_) => Ok(()),
        }
    }

    /// Creates a temporary file into which the object `name` is written: in the folder of the run store or, for a
    /// bucket, in the scratch folder.
    ///
    /// # Errors
    /// The name is invalid, or the file cannot be created.
    pub fn create_temp_object(&self, name: &str) -> Result<TempObject, Error> {
        let name = check_object_name(name)?;
        match &self.0 {
            Backend::Folder(folder) => folder.create_temp_object(name),
            Backend::Bucket(bucket) => bucket.create_temp_object(name),
        }
    }

    /// Publishes a complete temporary file as the object `name`. An existing object of this name is replaced
    /// atomically. When this function returns, the object is on the disk or in the bucket. The temporary file is
    /// removed, also after an error.
    ///
    /// # Errors
    /// The name is invalid; the disk is full or a system call failed; the bucket cannot be reached within the retry
    /// timeout, or rejects the request.
    pub fn publish(&self, temp_object: TempObject, name: &str) -> Result<(), Error> {
        let name = check_object_name(name)?;
        match &self.0 {
            Backend::Folder(folder) => folder.publish(temp_object, name),
            Backend::Bucket(bucket) => bucket.publish(temp_object, name),
        }
    }

    /// Publishes a complete temporary file as the object `name`, unless an object of this name exists. Returns whether
    /// it was published. If several processes publish the same name at once, one of them succeeds; if the service of a
    /// bucket does not support conditional requests, several may.
    ///
    /// # Errors
    /// The errors of [`RunStore::publish`].
    pub fn publish_if_absent(&self, temp_object: TempObject, name: &str) -> Result<bool, Error> {
        let name = check_object_name(name)?;
        match &self.0 {
            Backend::Folder(folder) => folder.publish_if_absent(temp_object, name),
            Backend::Bucket(bucket) => bucket.publish_if_absent(temp_object, name),
        }
    }

    /// Opens the present version of the object `name`; `None` if it does not exist.
    ///
    /// # Errors
    /// The name is invalid; or the folder or bucket does not exist, cannot be reached within the retry timeout, or
    /// rejects the request.
    pub fn open_object_if_exists(&self, name: &str) -> Result<Option<StoredObject>, Error> {
        let name = check_object_name(name)?;
        Ok(match &self.0 {
            Backend::Folder(folder) => {
                folder.open_object_if_exists(name)?.map(|found| StoredObject(FoundObject::Folder(found)))
            }
            Backend::Bucket(bucket) => bucket
                .open_object_if_exists(name)?
                .map(|found| StoredObject(FoundObject::Bucket(Arc::clone(bucket), found))),
        })
    }

    /// Returns the sorted names of all objects. Temporary objects are left out.
    ///
    /// # Errors
    /// The errors of [`RunStore::open_object_if_exists`].
    pub fn list_object_names(&self) -> Result<Vec<String>, Error> {
        match &self.0 {
            Backend::Folder(folder) => folder.list_object_names(),
            Backend::Bucket(bucket) => bucket.list_object_names(),
        }
    }

    /// Removes the object `name` if it exists.
    ///
    /// # Errors
    /// The errors of [`RunStore::open_object_if_exists`].
    pub fn remove_object(&self, name: &str) -> Result<(), Error> {
        let name = check_object_name(name)?;
        match &self.0 {
            Backend::Folder(folder) => folder.remove_object(name),
            Backend::Bucket(bucket) => bucket.remove_object(name),
        }
    }
}

/// Displays the path of the folder, or the URL of the bucket.
impl fmt::Display for RunStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Backend::Folder(folder) => folder.0.display().fmt(f),
            Backend::Bucket(bucket) => bucket.location().fmt(f),
        }
    }
}

/// An object that was found in a run store. Reading never returns bytes of another object that has replaced it: in a
/// folder the bytes of the found object are still read, in a bucket reading fails if the version differs.
#[derive(Debug)]
pub struct StoredObject(FoundObject);

#[derive(Debug)]
enum FoundObject {
    Folder(folder_store::FolderObject),
    Bucket(Arc<BucketStore>, bucket_store::BucketObject),
}

impl StoredObject {
    /// Returns the length of the object in bytes.
    pub fn len_bytes(&self) -> u64 {
        match &self.0 {
            FoundObject::Folder(found) => found.len,
            FoundObject::Bucket(_, found) => found.len,
        }
    }

    /// Returns whether the object has no bytes.
    pub fn has_no_bytes(&self) -> bool {
        self.len_bytes() == 0
    }

    /// Returns the version of the object: text that changes when another object replaces this one. In a bucket, objects
    /// with the same contents may have the same version. Empty if the service reports no versions.
    pub fn object_version(&self) -> &str {
        match &self.0 {
            FoundObject::Folder(found) => &found.version,
            FoundObject::Bucket(_, found) => found.etag.as_deref().unwrap_or_default(),
        }
    }

    /// Reads a range of bytes into memory.
    ///
    /// # Errors
    /// The object has fewer bytes; it was truncated since it was found; an object of a bucket was removed or replaced
    /// since then, or cannot be read within the retry timeout; or a system call failed.
    pub fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        self.check_range(&range)?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        match &self.0 {
            FoundObject::Folder(found) => found.read_range(range, &mut bytes)?,
            FoundObject::Bucket(bucket, found) => bucket.read_range(found, range, &mut bytes)?,
        }
        Ok(bytes)
    }

    /// Returns a local file with at least this range of bytes. For a folder it is the object itself; for a bucket the
    /// range is downloaded to the scratch folder.
    ///
    /// # Errors
    /// The errors of [`StoredObject::read_range`]; the scratch folder is full.
    pub fn fetch_range_to_file(&self, range: Range<u64>) -> Result<LocalObjectFile, Error> {
        self.check_range(&range)?;
        Ok(match &self.0 {
            FoundObject::Folder(found) => LocalObjectFile {
                path: found.proc_fd_path(range)?,
                object_offset: 0,
                _keep_alive: KeepAlive::OpenFile(found.clone()),
            },
            FoundObject::Bucket(bucket, found) => {
                let start = range.start;
                let copy = bucket.fetch_range_to_file(found, range)?;
                LocalObjectFile {
                    path: copy.path().to_owned(),
                    object_offset: start,
                    _keep_alive: KeepAlive::TempCopy(copy),
                }
            }
        })
    }

    fn check_range(&self, range: &Range<u64>) -> Result<(), Error> {
        let len = self.len_bytes();
        if range.start <= range.end && range.end <= len {
            return Ok(());
        }
        Err(Error::OutOfRange { object: self.to_string(), range: range.clone(), len })
    }
}

/// Displays the path of the file, or the URL of the object.
impl fmt::Display for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            FoundObject::Folder(found) => found.file_path().display().fmt(f),
            FoundObject::Bucket(bucket, found) => f.write_str(&bucket.url(found.name())),
        }
    }
}

/// A local file with at least a range of the bytes of an object. Its path is valid in this process while this value
/// exists.
#[derive(Debug)]
pub struct LocalObjectFile {
    path: PathBuf,
    object_offset: u64,
    _keep_alive: KeepAlive,
}

/// The file that must stay open, or not be removed, while the path of a local copy is used.
#[derive(Debug)]
enum KeepAlive {
    OpenFile(#[expect(dead_code, reason = "its file stays open")] folder_store::FolderObject),
    TempCopy(#[expect(dead_code, reason = "removed when dropped")] TempObject),
}

impl LocalObjectFile {
    /// Returns the path of the file, for reading.
    pub fn local_path(&self) -> &Path {
        &self.path
    }

    /// Returns the offset in the object of the file's first byte.
    pub fn object_offset(&self) -> u64 {
        self.object_offset
    }
}
