//! Files that appear under their name only when they are complete.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::error::Error;

const BUFFER: usize = 256 << 10;

/// Partial files of this process.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Removes the partial files of this process, for one that ends without dropping its values (on a signal).
/// Their [`AtomicFile::finish`] fails from then on.
pub fn discard_unfinished() {
    for partial in std::mem::take(&mut *unfinished()) {
        // The process is about to end: there is nobody to tell.
        let _ = fs::remove_file(partial);
    }
}

/// A file being written as `.NAME.partial` beside its final name.
///
/// Dropped before [`AtomicFile::finish`], it is removed. A killed process leaves it behind, and the next one that
/// writes the same file overwrites it.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    partial: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl AtomicFile {
    /// Starts writing what will be `path`.
    ///
    /// # Errors
    /// `path` has no file name, or the partial file cannot be made in its folder.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_path_buf();
        let failed = |source| Error::Write { path: path.clone(), source };
        let Some(name) = path.file_name() else {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a file name")));
        };
        let partial = path.with_file_name(format!(".{}.partial", name.to_string_lossy()));
        unfinished().insert(partial.clone());
        let file = File::create(&partial).map_err(|e| {
            unfinished().remove(&partial);
            failed(e)
        })?;
        Ok(AtomicFile { file: BufWriter::with_capacity(BUFFER, file), partial, path, finished: false })
    }

    /// Writes everything to the disk and gives the file its final name, replacing what had it before.
    ///
    /// # Errors
    /// No space left, or any other refusal; the partial file is then removed.
    pub fn finish(mut self) -> Result<(), Error> {
        self.complete().map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    fn complete(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.partial, &self.path)?;
        self.finished = true;
        unfinished().remove(&self.partial);
        // The rename itself is safe only once the folder is on the disk.
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match File::open(folder)?.sync_all() {
            // Some network file systems know no such thing.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
            done => done,
        }
    }

    /// Names the file in an error.
    fn named(&self, e: io::Error) -> io::Error {
        io::Error::new(e.kind(), format!("{}: cannot write: {e}", self.path.display()))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file.write(buf).map_err(|e| self.named(e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|e| self.named(e))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing better can be done with a failure here than to leave the partial file.
            let _ = fs::remove_file(&self.partial);
            unfinished().remove(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.vcf");

        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        file.flush().unwrap();
        assert_eq!(names(folder.path()), [".calls.vcf.partial"]);
        drop(file);
        assert!(names(folder.path()).is_empty());

        // What a killed process left behind does not show in what the next one writes.
        fs::write(folder.path().join(".calls.vcf.partial"), "left behind, and longer").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(names(folder.path()), ["calls.vcf"]);
        assert_eq!(fs::read(&path).unwrap(), b"whole");

        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"other").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"other");
    }

    #[test]
    fn refusals_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no/such/folder/x");
        let said = AtomicFile::create(&path).unwrap_err().to_string();
        assert_eq!(said, format!("{}: cannot write: No such file or directory (os error 2)", path.display()));

        // A folder of that name cannot be replaced.
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        let said = AtomicFile::create(&path).unwrap().finish().unwrap_err().to_string();
        assert_eq!(said, format!("{}: cannot write: Is a directory (os error 21)", path.display()));
        assert_eq!(names(folder.path()), ["taken"]);
    }

    #[test]
    fn no_space_left_is_said_with_the_name() {
        let file = BufWriter::with_capacity(4, File::options().write(true).open("/dev/full").unwrap());
        let (partial, path) = (PathBuf::from("/nowhere/.x.partial"), PathBuf::from("x"));
        let mut full = AtomicFile { file, partial, path, finished: false };
        let said = full.write_all(b"more than fits").unwrap_err().to_string();
        assert_eq!(said, "x: cannot write: No space left on device (os error 28)");
    }

    #[test]
    fn unfinished_files_go_on_a_signal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let file = AtomicFile::create(&path).unwrap();
        // Only this one: the other tests of this process write at the same time.
        let partial = folder.path().join(".x.partial");
        assert!(unfinished().contains(&partial));
        fs::remove_file(&partial).unwrap();
        assert!(file.finish().is_err());
        assert!(!unfinished().contains(&partial));
        assert!(names(folder.path()).is_empty());
    }
}
