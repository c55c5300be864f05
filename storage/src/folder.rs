//! A depot that is a folder: plain files, which appear by being renamed.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::draft::Draft;
use crate::error::Error;
use crate::place::is_name;

/// A folder of objects.
#[derive(Debug)]
pub struct Folder(pub PathBuf);

/// An object that was found; its file stays open, so that it is the same whatever gets its name.
#[derive(Debug, Clone)]
pub struct Found {
    path: PathBuf,
    file: Arc<File>,
    /// Bytes.
    pub len: u64,
    /// Differs from that of any other that has or had its name.
    pub version: String,
}

impl Folder {
    pub fn create(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.0).map_err(Error::system("make", &self.0))
    }

    pub fn draft(&self, name: &str) -> Result<Draft, Error> {
        self.check()?;
        Draft::create(&self.0, name)
    }

    pub fn publish(&self, draft: Draft, name: &str) -> Result<(), Error> {
        draft.rename(&self.0.join(name))
    }

    pub fn find(&self, name: &str) -> Result<Option<Found>, Error> {
        let path = self.0.join(name);
        let file = match open(&path)? {
            Some(file) => file,
            None => {
                self.check()?;
                match open(&path)? {
                    Some(file) => file,
                    None => return Ok(None),
                }
            }
        };
        let metadata = file.metadata().map_err(Error::system("read", &path))?;
        if !metadata.is_file() {
            return Err(Error::system("read", &path)(io::Error::other("not a file")));
        }
        let version = format!("{}-{}-{}", metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
        Ok(Some(Found { path, file: Arc::new(file), len: metadata.len(), version }))
    }

    pub fn names(&self) -> Result<Vec<String>, Error> {
        self.check()?;
        let refused = || Error::system("list", &self.0);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(refused())? {
            let entry = entry.map_err(refused())?;
            let name = entry.file_name().into_string().ok().filter(|name| is_name(name));
            match (name, entry.file_type()) {
                (Some(name), Ok(kind)) if kind.is_file() => names.push(name),
                _ => {}
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.0.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => self.check(),
            removed => removed.map_err(Error::system("remove", &path)),
        }
    }

    /// Fails if the folder is missing. To open it makes a network file system ask its server, and forget what it thought is not there.
    fn check(&self) -> Result<(), Error> {
        match File::open(&self.0) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                Err(Error::NoPlace { place: self.0.display().to_string(), what: "folder" })
            }
            found => found.map(drop).map_err(Error::system("read", &self.0)),
        }
    }
}

/// None if there is nothing.
fn open(path: &Path) -> Result<Option<File>, Error> {
    match File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        file => file.map(Some).map_err(Error::system("read", path)),
    }
}

impl Found {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn read(&self, range: Range<u64>, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(range.end)?;
        self.file.read_exact_at(bytes, range.start).map_err(|e| self.refused(e))
    }

    /// Where the file can be opened, for as long as it stays open here.
    pub(crate) fn open_path(&self, range: Range<u64>) -> Result<PathBuf, Error> {
        self.check(range.end)?;
        Ok(Path::new("/proc/self/fd").join(self.file.as_raw_fd().to_string()))
    }

    /// Fails if there are fewer bytes than `end`: somebody cuts files in place.
    fn check(&self, end: u64) -> Result<(), Error> {
        let found = self.file.metadata().map_err(|e| self.refused(e))?.len();
        if found < end {
            return Err(Error::Truncated { object: self.path.display().to_string(), len: self.len, found });
        }
        Ok(())
    }

    fn refused(&self, error: io::Error) -> Error {
        match error.kind() {
            // On a network file system what another machine replaces is gone even for who has it open.
            ErrorKind::StaleNetworkFileHandle => Error::Replaced { object: self.path.display().to_string() },
            _ => Error::system("read", &self.path)(error),
        }
    }
}
