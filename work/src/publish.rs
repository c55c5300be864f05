//! Atomic publish: output files appear under their final names only when they are complete, one file alone or several
//! together.
//!
//! A file is first written as `.NAME.RANDOM.partial` in the folder of `NAME` and locked (flock). A second process
//! that wants to write `NAME` finds the lock and fails at once. A partial file without a lock is left over from a
//! killed process and is removed by the next run that writes `NAME`. If `NAME` is a symbolic link, the link stays and
//! its target is replaced. Devices, pipes, `/dev/fd/N` and `/dev/stdout` cannot be renamed: bytes are written to them
//! directly.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::critical_section::enter_critical_section;
use crate::spill::PRIVATE_FILE_MODE;

const WRITE_BUFFER_BYTES: usize = 256 << 10;
/// Permissions of outputs, from which the umask takes away.
const SHARED_FILE_MODE: u32 = 0o666;
/// Maximum number of symbolic links to follow, as in the Linux kernel.
const MAX_SYMLINKS: usize = 40;
/// Number of random hexadecimal digits in the name of a partial file.
const RANDOM_DIGITS: usize = 16;
/// Maximum number of attempts to lock a folder. Another process of genuma holds this lock only for a moment.
const LOCK_TRIES: u32 = 100;
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a file cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{}: cannot write: {source}", path.display())]
    Io {
        /// The final name of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process is writing the same output file.
    #[error("{}: another run is writing it: wait for it, or name another output", path.display())]
    WrittenByOtherProcess {
        /// The final name of the file.
        path: PathBuf,
    },
    /// This process is already writing the same output file.
    #[error("{}: two outputs have this name: give each its own", path.display())]
    DuplicateOutput {
        /// The final name of the file.
        path: PathBuf,
    },
}

impl Error {
    fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_path_buf(), source }
    }
}

/// Partial files of this process, which are removed when a signal ends the process.
static PARTIAL_FILES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn lock_partial_files() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PARTIAL_FILES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Removes the partial files of this process; called when the process ends on a signal without dropping its values.
/// None of these files can be published afterwards.
pub(crate) fn remove_partial_files_of_process() {
    for partial in std::mem::take(&mut *lock_partial_files()) {
        // The process is about to end, so a failure cannot be reported.
        let _ = fs::remove_file(partial);
    }
}

/// What an output path refers to: a regular file, or a device or pipe.
enum OutputTarget {
    /// A regular file to create or replace: the path with all symbolic links resolved.
    File(PathBuf),
    /// A device, pipe or open file that takes bytes directly.
    Stream(File),
}

impl OutputTarget {
    /// Follows symbolic links as the kernel does and determines the kind of file.
    fn resolve(path: &Path) -> io::Result<OutputTarget> {
        let mut path = path.to_path_buf();
        for _ in 0..MAX_SYMLINKS {
            let name = path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "not a file name"))?;
            let folder = parent_folder(&path).canonicalize()?;
            let resolved = folder.join(name);
            if folder.starts_with("/proc") {
                return open_proc_fd(&resolved).map(OutputTarget::Stream);
            }
            let file_type = match fs::symlink_metadata(&resolved) {
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(OutputTarget::File(resolved)),
                metadata => metadata?.file_type(),
            };
            if file_type.is_file() {
                return Ok(OutputTarget::File(resolved));
            } else if file_type.is_dir() {
                return Err(io::Error::from_raw_os_error(libc::EISDIR));
            } else if !file_type.is_symlink() {
                // The path was not a symbolic link a moment ago. `O_NOFOLLOW` fails if it has become one.
                let flags = libc::O_NOFOLLOW | libc::O_NOCTTY;
                return File::options().write(true).custom_flags(flags).open(resolved).map(OutputTarget::Stream);
            }
            path = folder.join(fs::read_link(&resolved)?);
        }
        Err(io::Error::from_raw_os_error(libc::ELOOP))
    }
}

/// Opens the file behind a link of `/proc/PID/fd`.
fn open_proc_fd(link: &Path) -> io::Result<File> {
    // I/O error ignored: without it the link is another process's.
    let own = Path::new("/proc/self/fd").canonicalize().is_ok_and(|own| link.starts_with(own));
    // Duplicating the descriptor keeps the file offset, so that bytes follow what other commands of the same shell
    // line have written.
    let open = match link.file_name().and_then(OsStr::to_str) {
        Some("1") if own => io::stdout().as_fd().try_clone_to_owned(),
        Some("2") if own => io::stderr().as_fd().try_clone_to_owned(),
        _ => return File::options().append(true).open(link),
    };
    open.map(File::from)
}

fn parent_folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Prefix and suffix of the names of partial files of `target`; random digits are between them.
fn partial_name_affixes(target: &Path) -> (OsString, &'static str) {
    let mut start = OsString::from(".");
    start.push(target.file_name().unwrap_or_default());
    start.push(".");
    (start, ".partial")
}

/// Returns a path in the folder of `target` for a new partial file, with an unpredictable random name.
fn random_partial_path(target: &Path) -> PathBuf {
    let (mut name, end) = partial_name_affixes(target);
    name.push(format!("{:0RANDOM_DIGITS$x}{end}", RandomState::new().build_hasher().finish()));
    target.with_file_name(name)
}

/// Finds the partial files of `target` in its folder by their names.
fn find_partial_files(target: &Path) -> Vec<PathBuf> {
    let (start, end) = partial_name_affixes(target);
    let is_partial = |name: &OsStr| {
        let digits = name.as_bytes().strip_prefix(start.as_bytes()).and_then(|rest| rest.strip_suffix(end.as_bytes()));
        digits.is_some_and(|digits| digits.len() == RANDOM_DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
    };
    // I/O error ignored: a folder may be writable but not readable; then no partial files are found.
    let entries = fs::read_dir(parent_folder(target)).into_iter().flatten().flatten();
    entries.filter(|entry| is_partial(&entry.file_name())).map(|entry| entry.path()).collect()
}

/// Locks a folder while a partial file is created in it, so that two processes that start to write the same file detect
/// each other. `None` if the file system does not support locks or another program holds the lock; then two processes
/// may fail to detect each other in rare cases.
fn lock_folder(folder: &Path) -> Option<File> {
    // I/O error ignored: detection is then only very likely.
    let lock = File::open(folder).ok()?;
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_TIMEOUT / LOCK_TRIES),
            result => return result.is_ok().then_some(lock),
        }
    }
    None
}

/// Removes partial files of `target` that killed processes left. `path` is the name of `target` for errors.
///
/// # Errors
/// A running process is writing `target`.
fn remove_stale_partial_files(target: &Path, path: &Path) -> Result<(), Error> {
    let mut stale = Vec::new();
    for partial in find_partial_files(target) {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let Ok(file) = File::options().read(true).custom_flags(flags).open(&partial) else { continue };
        match file.try_lock_shared() {
            Ok(()) => stale.push(partial),
            Err(TryLockError::WouldBlock) => {
                let path = path.to_path_buf();
                let own = lock_partial_files().contains(&partial);
                return Err(if own { Error::DuplicateOutput { path } } else { Error::WrittenByOtherProcess { path } });
            }
            // Without locks it is unknown whether the writer still runs: keep the file.
            Err(TryLockError::Error(_)) => {}
        }
    }
    for partial in stale {
        // A leftover file does no harm.
        let _ = fs::remove_file(partial);
    }
    Ok(())
}

/// Returns `true` if a regular file exists at `path`, `false` if nothing exists there.
///
/// # Errors
/// Something else, such as a folder, exists at `path` and must not be replaced.
fn check_replaceable(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(metadata) if metadata.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        Ok(_) => Err(io::Error::other("became something other than a file meanwhile")),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// A partial file and the path that it will be renamed to.
#[derive(Debug)]
struct PendingRename {
    partial: PathBuf,
    target: PathBuf,
}

/// An output file under its temporary name, which is not published yet. Dropping it before
/// [`AtomicFileSet::publish_all`] removes the file. Bytes for a device or pipe have no temporary file: they are written
/// directly and cannot be removed.
#[derive(Debug)]
pub struct PartialFile {
    /// The final name, as the caller gave it.
    path: PathBuf,
    /// The open partial file, which holds the lock.
    file: File,
    /// Renaming of the partial file to its final name; `None` if bytes are written directly to a device, pipe or open
    /// file.
    pending_rename: Option<PendingRename>,
}

impl PartialFile {
    /// Creates the partial file of `path`.
    ///
    /// # Errors
    /// This or another process is writing the file already, `path` is a folder, or the folder of `path` is not
    /// writable.
    pub fn create(path: impl AsRef<Path>) -> Result<PartialFile, Error> {
        PartialFile::create_with_mode(path.as_ref(), SHARED_FILE_MODE)
    }

    /// Creates the partial file of `path`. Only this user may read or write it, also after it is published.
    ///
    /// # Errors
    /// The errors of [`PartialFile::create`].
    pub fn create_private(path: impl AsRef<Path>) -> Result<PartialFile, Error> {
        PartialFile::create_with_mode(path.as_ref(), PRIVATE_FILE_MODE)
    }

    fn create_with_mode(path: &Path, mode: u32) -> Result<PartialFile, Error> {
        let target = match OutputTarget::resolve(path).map_err(Error::io_error(path))? {
            OutputTarget::Stream(file) => {
                return Ok(PartialFile { path: path.to_path_buf(), file, pending_rename: None });
            }
            OutputTarget::File(target) => target,
        };
        let _folder_lock = lock_folder(parent_folder(&target));
        remove_stale_partial_files(&target, path)?;
        let partial = random_partial_path(&target);
        // Once a signal has removed the partial files, no new one is created.
        let _undivided = enter_critical_section();
        lock_partial_files().insert(partial.clone());
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&partial).map_err(|e| {
            lock_partial_files().remove(&partial);
            Error::io_error(path)(e)
        })?;
        // Some network file systems do not support locks: continue without one.
        let _ = file.try_lock();
        Ok(PartialFile { path: path.to_path_buf(), file, pending_rename: Some(PendingRename { partial, target }) })
    }

    /// Final name of the file, as the caller gave it.
    pub fn final_path(&self) -> &Path {
        &self.path
    }

    /// The open file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Path of the partial file, to open it again before it is published; `None` if bytes are written directly to a
    /// device or pipe.
    pub fn partial_path(&self) -> Option<&Path> {
        self.pending_rename.as_ref().map(|waiting| waiting.partial.as_path())
    }

    /// Renames the file to its final name. See [`AtomicFileSet::publish_all`].
    ///
    /// # Errors
    /// The errors of [`AtomicFileSet::publish_all`].
    pub fn publish(self) -> Result<(), Error> {
        AtomicFileSet { files: vec![self], ..AtomicFileSet::default() }.publish_all()
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if let Some(PendingRename { partial, .. }) = self.pending_rename.take() {
            // If the removal fails, the partial file stays; nothing better is possible in `drop`.
            let _ = fs::remove_file(&partial);
            lock_partial_files().remove(&partial);
        }
    }
}

/// A buffered output file that appears under its final name only when it is complete. Bytes for a device or pipe are
/// written directly.
///
/// Dropping it before [`AtomicFile::publish`], or before the [`AtomicFileSet`] that it was added to is published,
/// removes the file.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    partial: PartialFile,
}

impl AtomicFile {
    /// Creates the partial file of `path`.
    ///
    /// # Errors
    /// The errors of [`PartialFile::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        AtomicFile::with_partial_file(PartialFile::create(path)?)
    }

    /// Creates the partial file of `path`. Only this user may read or write it, also after it is published.
    ///
    /// # Errors
    /// The errors of [`PartialFile::create`].
    pub fn create_private(path: impl AsRef<Path>) -> Result<Self, Error> {
        AtomicFile::with_partial_file(PartialFile::create_private(path)?)
    }

    fn with_partial_file(partial: PartialFile) -> Result<Self, Error> {
        let file = partial.file().try_clone().map_err(Error::io_error(partial.final_path()))?;
        Ok(AtomicFile { file: BufWriter::with_capacity(WRITE_BUFFER_BYTES, file), partial })
    }

    /// Writes the buffer to the file. The returned file still has to be published.
    ///
    /// # Errors
    /// A system call failed, for example because the disk is full; the partial file is removed.
    pub fn flush_to_partial_file(self) -> Result<PartialFile, Error> {
        let AtomicFile { mut file, partial } = self;
        match file.flush() {
            Ok(()) => Ok(partial),
            Err(source) => {
                // Dropping the `BufWriter` would try to write again.
                drop(file.into_parts());
                Err(Error::io_error(&partial.path)(source))
            }
        }
    }

    /// Writes everything to the disk (fsync) and renames the file to its final name, replacing an existing file.
    ///
    /// # Errors
    /// A system call failed, for example because the disk is full; the partial file is removed.
    pub fn publish(self) -> Result<(), Error> {
        self.flush_to_partial_file()?.publish()
    }

    /// Adds the final name of the file to an error.
    fn with_file_name(&self, e: io::Error) -> io::Error {
        io::Error::new(e.kind(), format!("{}: cannot write: {e}", self.partial.path.display()))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file.write(buf).map_err(|e| self.with_file_name(e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|e| self.with_file_name(e))
    }
}

/// Output files that are published together or not at all.
#[derive(Debug, Default)]
pub struct AtomicFileSet {
    files: Vec<PartialFile>,
    stale: Vec<PathBuf>,
}

impl AtomicFileSet {
    /// Adds a completely written file.
    pub fn add_file(&mut self, file: PartialFile) {
        self.files.push(file);
    }

    /// Registers a file to be removed when the set is published, because it belongs to the results that the set
    /// replaces.
    pub fn remove_file_on_publish(&mut self, path: impl Into<PathBuf>) {
        self.stale.push(path.into());
    }

    /// Writes all files to the disk (fsync), then renames all to their final names in the order in which they were added,
    /// replacing existing files. A signal ends the process only afterwards. If the process is killed between two renames,
    /// each name has its old or its new file.
    ///
    /// # Errors
    /// A system call failed, for example because the disk is full; all existing files are then as they were before.
    pub fn publish_all(mut self) -> Result<(), Error> {
        for file in self.files.iter().filter(|file| file.pending_rename.is_some()) {
            file.file.sync_all().map_err(Error::io_error(&file.path))?;
        }
        let _undivided = enter_critical_section();
        let mut steps = RenameLog::default();
        let renamed = self.rename_files(&mut steps);
        if renamed.is_err() {
            steps.roll_back();
        } else {
            steps.remove_backups();
        }
        renamed
    }

    fn rename_files(&mut self, steps: &mut RenameLog) -> Result<(), Error> {
        for path in &self.stale {
            steps.set_aside(path).map_err(Error::io_error(path))?;
        }
        for file in &mut self.files {
            if let Some(PendingRename { partial, target }) = &file.pending_rename {
                steps.replace(partial, target).map_err(Error::io_error(&file.path))?;
                lock_partial_files().remove(partial);
                file.pending_rename = None;
            }
        }
        steps.sync_folders()
    }
}

/// The renames that have been done, so that they can be undone.
#[derive(Debug, Default)]
struct RenameLog(Vec<Rename>);

#[derive(Debug)]
struct Rename {
    target: PathBuf,
    /// Backup path of the replaced file; `None` if no file was replaced.
    backup: Option<PathBuf>,
}

impl RenameLog {
    /// Renames an existing file `target` to a backup name; does nothing if there is no such file.
    fn set_aside(&mut self, target: &Path) -> io::Result<()> {
        let before = random_partial_path(target);
        match fs::rename(target, &before) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
            Ok(()) => {
                self.0.push(Rename { target: target.to_path_buf(), backup: Some(before) });
                Ok(())
            }
        }
    }

    /// Renames `partial` to `target`. An existing `target` gets a backup name that it keeps until all renames are
    /// done.
    fn replace(&mut self, partial: &Path, target: &Path) -> io::Result<()> {
        if check_replaceable(target)? {
            let before = random_partial_path(target);
            // Prefer a hard link as backup name, so that `target` never disappears.
            // I/O error ignored: the target is renamed instead.
            if fs::hard_link(target, &before).is_err() {
                fs::rename(target, &before)?;
            }
            self.0.push(Rename { target: target.to_path_buf(), backup: Some(before) });
            fs::rename(partial, target)
        } else {
            fs::rename(partial, target)?;
            self.0.push(Rename { target: target.to_path_buf(), backup: None });
            Ok(())
        }
    }

    /// Writes the changed folder entries to the disk (fsync of the folders).
    fn sync_folders(&self) -> Result<(), Error> {
        let folders: BTreeSet<&Path> = self.0.iter().map(|step| parent_folder(&step.target)).collect();
        for folder in folders {
            match File::open(folder).and_then(|folder| folder.sync_all()) {
                // Some network file systems cannot sync a folder, and some folders are not readable: ignore both.
                Err(e) if !matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::PermissionDenied) => {
                    return Err(Error::io_error(folder)(e));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Undoes all renames, the last one first. Failures are ignored: the caller reports the error that made this
    /// necessary.
    fn roll_back(self) {
        for Rename { target, backup: before } in self.0.into_iter().rev() {
            let _ = match before {
                // If both names are hard links to one file, rename does nothing, so remove the backup name.
                Some(before) => fs::rename(&before, &target).and_then(|()| fs::remove_file(&before)),
                None => fs::remove_file(&target),
            };
        }
    }

    /// Removes the backups of replaced files. A backup that cannot be removed is removed by the next run that writes
    /// the file.
    fn remove_backups(self) {
        for before in self.0.into_iter().filter_map(|step| step.backup) {
            let _ = fs::remove_file(before);
        }
    }
}

#[cfg(test)]
mod tests;
