//! Files that appear under their names only when they are complete: one, or several together or not at all.
//!
//! What is written waits as `.NAME.RANDOM.partial` in the folder of what will be `NAME`, under a lock: another run that is to write `NAME`
//! ends at once, and the file of a killed process is known by having no lock, and removed by the next run that writes `NAME`. A symbolic link
//! stays, and the file it points to is what is written. A device, a pipe or what lies behind `/dev/fd` and `/dev/stdout` is no name for a
//! file: bytes go straight there.

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

use crate::gate::undivided;

const BUFFER: usize = 256 << 10;
/// The kernel follows so many symbolic links.
const LINKS: usize = 40;
/// Hexadecimal digits of a partial file's name.
const DIGITS: usize = 16;
/// How often, and for how long in all, a folder's lock is tried: whoever holds it as it should be held does so for a moment.
const TRIES: u32 = 100;
const TRYING: Duration = Duration::from_secs(1);

/// Why a file does not appear.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file, by its final name.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another run is writing the same file.
    #[error("{}: another run is writing it: wait for it, or name another output", path.display())]
    Busy {
        /// The file, by its final name.
        path: PathBuf,
    },
    /// This run is writing the same file already.
    #[error("{}: two outputs have this name: give each its own", path.display())]
    Twice {
        /// The file, by its final name.
        path: PathBuf,
    },
}

impl Error {
    fn write(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| Error::Write { path: path.to_path_buf(), source }
    }
}

/// Partial files of this process.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Removes the partial files of this process, for one that ends without dropping its values (on a signal).
/// None of them can be published from then on.
pub(crate) fn discard_unfinished() {
    for partial in std::mem::take(&mut *unfinished()) {
        // The process is about to end: there is nobody to tell.
        let _ = fs::remove_file(partial);
    }
}

/// What a path that is to be written stands for.
enum Target {
    /// A file to be made or replaced, by its folder's real path and its name.
    File(PathBuf),
    /// Something that takes bytes as they come.
    Stream(File),
}

impl Target {
    /// Follows symbolic links as the kernel does.
    fn of(path: &Path) -> io::Result<Target> {
        let mut path = path.to_path_buf();
        for _ in 0..LINKS {
            let name =
                path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "not a file name"))?;
            let folder = parent(&path).canonicalize()?;
            let here = folder.join(name);
            if folder.starts_with("/proc") {
                return open_file(&here).map(Target::Stream);
            }
            let found = match fs::symlink_metadata(&here) {
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Target::File(here)),
                found => found?.file_type(),
            };
            if found.is_file() {
                return Ok(Target::File(here));
            } else if found.is_dir() {
                return Err(io::Error::from_raw_os_error(libc::EISDIR));
            } else if !found.is_symlink() {
                // What was seen to be no link must not have become one.
                let flags = libc::O_NOFOLLOW | libc::O_NOCTTY;
                return File::options().write(true).custom_flags(flags).open(here).map(Target::Stream);
            }
            path = folder.join(fs::read_link(&here)?);
        }
        Err(io::Error::from_raw_os_error(libc::ELOOP))
    }
}

/// A file that this or another process has open, by its link in `/proc`.
fn open_file(link: &Path) -> io::Result<File> {
    let own = Path::new("/proc/self/fd").canonicalize().is_ok_and(|own| link.starts_with(own));
    // Through the open file itself bytes go on where others of the same shell command left off.
    let open = match link.file_name().and_then(OsStr::to_str) {
        Some("1") if own => io::stdout().as_fd().try_clone_to_owned(),
        Some("2") if own => io::stderr().as_fd().try_clone_to_owned(),
        _ => return File::options().append(true).open(link),
    };
    open.map(File::from)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What stands before and behind the digits in the names of partial files.
fn frame(target: &Path) -> (OsString, &'static str) {
    let mut start = OsString::from(".");
    start.push(target.file_name().unwrap_or_default());
    start.push(".");
    (start, ".partial")
}

/// A new name beside `target` that nobody can foretell.
fn beside(target: &Path) -> PathBuf {
    let (mut name, end) = frame(target);
    name.push(format!("{:0DIGITS$x}{end}", RandomState::new().build_hasher().finish()));
    target.with_file_name(name)
}

/// Files in the folder of `target` whose names are those of its partial files.
fn partials(target: &Path) -> Vec<PathBuf> {
    let (start, end) = frame(target);
    let ours = |name: &OsStr| {
        let digits =
            name.as_bytes().strip_prefix(start.as_bytes()).and_then(|rest| rest.strip_suffix(end.as_bytes()));
        digits.is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
    };
    // A folder may be one to write into and not to look at.
    let entries = fs::read_dir(parent(target)).into_iter().flatten().flatten();
    entries.filter(|entry| ours(&entry.file_name())).map(|entry| entry.path()).collect()
}

/// Locks a folder while a file begins in it, so that of two runs that begin the same file one sees the other. Where the file system
/// knows no locks, or a stranger holds this one, they see each other nearly always.
fn lock_folder(folder: &Path) -> Option<File> {
    let lock = File::open(folder).ok()?;
    for _ in 0..TRIES {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(TRYING / TRIES),
            done => return done.is_ok().then_some(lock),
        }
    }
    None
}

/// Removes what killed processes left of `target`.
///
/// # Errors
/// A living one is writing it.
fn clear(target: &Path, path: &Path) -> Result<(), Error> {
    let mut left = Vec::new();
    for partial in partials(target) {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let Ok(file) = File::options().read(true).custom_flags(flags).open(&partial) else { continue };
        match file.try_lock_shared() {
            Ok(()) => left.push(partial),
            Err(TryLockError::WouldBlock) => {
                let path = path.to_path_buf();
                let own = unfinished().contains(&partial);
                return Err(if own { Error::Twice { path } } else { Error::Busy { path } });
            }
            // Whether it lives cannot be known.
            Err(TryLockError::Error(_)) => {}
        }
    }
    for partial in left {
        // It does no harm where it is.
        let _ = fs::remove_file(partial);
    }
    Ok(())
}

/// Fails unless `path` is a regular file or nothing: only such may be replaced.
fn check_replaceable(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(found) if found.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        Ok(_) => Err(io::Error::other("became something other than a file meanwhile")),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Where a partial file waits and what it will be.
#[derive(Debug)]
struct Waiting {
    partial: PathBuf,
    target: PathBuf,
}

/// What will be a file under its final name. Dropped before a [`Set`] has published it, it is removed.
#[derive(Debug)]
pub struct Partial {
    /// The final name, as it was given.
    path: PathBuf,
    /// Holds the lock.
    file: File,
    /// None where bytes go straight to their place.
    waiting: Option<Waiting>,
}

impl Partial {
    /// Begins what will be `path`.
    ///
    /// # Errors
    /// Another run is writing it, it is a folder, or its folder is not one to write into.
    pub fn create(path: impl AsRef<Path>) -> Result<Partial, Error> {
        let path = path.as_ref();
        let target = match Target::of(path).map_err(Error::write(path))? {
            Target::Stream(file) => return Ok(Partial { path: path.to_path_buf(), file, waiting: None }),
            Target::File(target) => target,
        };
        let _alone = lock_folder(parent(&target));
        clear(&target, path)?;
        let partial = beside(&target);
        // None begins once they are discarded.
        let _undivided = undivided();
        unfinished().insert(partial.clone());
        let file = OpenOptions::new().write(true).create_new(true).open(&partial).map_err(|e| {
            unfinished().remove(&partial);
            Error::write(path)(e)
        })?;
        // Some network file systems know no locks.
        let _ = file.try_lock();
        Ok(Partial { path: path.to_path_buf(), file, waiting: Some(Waiting { partial, target }) })
    }

    /// The final name, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// To be written to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where the file is until it has its name, for whoever has to open it once more; none where bytes go straight to their place.
    pub fn waits_at(&self) -> Option<&Path> {
        self.waiting.as_ref().map(|waiting| waiting.partial.as_path())
    }

    /// Gives it its final name. See [`Set::publish`].
    ///
    /// # Errors
    /// Those of [`Set::publish`].
    pub fn publish(self) -> Result<(), Error> {
        Set { files: vec![self], ..Set::default() }.publish()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(Waiting { partial, .. }) = self.waiting.take() {
            // Nothing better can be done with a failure here than to leave the partial file.
            let _ = fs::remove_file(&partial);
            unfinished().remove(&partial);
        }
    }
}

/// A file being written through a buffer.
///
/// Dropped before it is finished, or before the [`Set`] that it belongs to is published, it is removed.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    partial: Partial,
}

impl AtomicFile {
    /// Begins what will be `path`.
    ///
    /// # Errors
    /// Those of [`Partial::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        let partial = Partial::create(path)?;
        let file = partial.file().try_clone().map_err(Error::write(partial.path()))?;
        Ok(AtomicFile { file: BufWriter::with_capacity(BUFFER, file), partial })
    }

    /// Hands what is buffered to the system: what is left to be done is to publish.
    ///
    /// # Errors
    /// No space left, or any other refusal; the partial file is then removed.
    pub fn complete(self) -> Result<Partial, Error> {
        let AtomicFile { mut file, partial } = self;
        match file.flush() {
            Ok(()) => Ok(partial),
            Err(source) => {
                // Dropping the buffer would try once more.
                drop(file.into_parts());
                Err(Error::write(&partial.path)(source))
            }
        }
    }

    /// Writes everything to the disk and gives the file its final name, replacing what had it before.
    ///
    /// # Errors
    /// No space left, or any other refusal; the partial file is then removed.
    pub fn finish(self) -> Result<(), Error> {
        self.complete()?.publish()
    }

    /// Names the file in an error.
    fn named(&self, e: io::Error) -> io::Error {
        io::Error::new(e.kind(), format!("{}: cannot write: {e}", self.partial.path.display()))
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

/// Files that appear together or not at all.
#[derive(Debug, Default)]
pub struct Set {
    files: Vec<Partial>,
    stale: Vec<PathBuf>,
}

impl Set {
    /// Takes a file that is written.
    pub fn add(&mut self, file: Partial) {
        self.files.push(file);
    }

    /// What has this name goes when the set appears: it belongs to what the set replaces.
    pub fn forget(&mut self, path: impl Into<PathBuf>) {
        self.stale.push(path.into());
    }

    /// Brings all files to the disk, and only then gives them their names, replacing what had them before. A signal waits meanwhile.
    ///
    /// # Errors
    /// The disk is full or refuses; then all names stand for what they stood for before.
    pub fn publish(mut self) -> Result<(), Error> {
        for file in self.files.iter().filter(|file| file.waiting.is_some()) {
            file.file.sync_all().map_err(Error::write(&file.path))?;
        }
        let _undivided = undivided();
        let mut steps = Steps::default();
        let taken = self.take_names(&mut steps);
        if taken.is_err() {
            steps.undo();
        } else {
            steps.end();
        }
        taken
    }

    fn take_names(&mut self, steps: &mut Steps) -> Result<(), Error> {
        for path in &self.stale {
            steps.set_aside(path).map_err(Error::write(path))?;
        }
        for file in &mut self.files {
            if let Some(Waiting { partial, target }) = &file.waiting {
                steps.replace(partial, target).map_err(Error::write(&file.path))?;
                unfinished().remove(partial);
                file.waiting = None;
            }
        }
        steps.sync()
    }
}

/// Names given and taken, each of which can be undone.
#[derive(Debug, Default)]
struct Steps(Vec<Step>);

#[derive(Debug)]
struct Step {
    target: PathBuf,
    /// Where what had the name before is kept.
    before: Option<PathBuf>,
}

impl Steps {
    /// Takes a name from a file that is not wanted any more, if there is one.
    fn set_aside(&mut self, target: &Path) -> io::Result<()> {
        let before = beside(target);
        match fs::rename(target, &before) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
            Ok(()) => {
                self.0.push(Step { target: target.to_path_buf(), before: Some(before) });
                Ok(())
            }
        }
    }

    /// Gives `partial` the name `target`; what had it before keeps another until all is done.
    fn replace(&mut self, partial: &Path, target: &Path) -> io::Result<()> {
        if check_replaceable(target)? {
            let before = beside(target);
            // A second name where the file system knows such, so that the first is never missing.
            if fs::hard_link(target, &before).is_err() {
                fs::rename(target, &before)?;
            }
            self.0.push(Step { target: target.to_path_buf(), before: Some(before) });
            fs::rename(partial, target)
        } else {
            fs::rename(partial, target)?;
            self.0.push(Step { target: target.to_path_buf(), before: None });
            Ok(())
        }
    }

    /// Brings the names to the disk.
    fn sync(&self) -> Result<(), Error> {
        let folders: BTreeSet<&Path> = self.0.iter().map(|step| parent(&step.target)).collect();
        for folder in folders {
            match File::open(folder).and_then(|folder| folder.sync_all()) {
                // Some network file systems know no such thing, and some folders are not to be looked at.
                Err(e) if !matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::PermissionDenied) => {
                    return Err(Error::write(folder)(e));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts everything back. The error that made it necessary is the one that matters.
    fn undo(self) {
        for Step { target, before } in self.0.into_iter().rev() {
            let _ = match before {
                // Where both names are of one file, renaming does nothing.
                Some(before) => fs::rename(&before, &target).and_then(|()| fs::remove_file(&before)),
                None => fs::remove_file(&target),
            };
        }
    }

    /// Lets go of what was replaced. What cannot be removed is by the next run that writes the file.
    fn end(self) {
        for before in self.0.into_iter().filter_map(|step| step.before) {
            let _ = fs::remove_file(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn written(path: &Path, bytes: &[u8]) -> Partial {
        let mut file = AtomicFile::create(path).unwrap();
        file.write_all(bytes).unwrap();
        file.complete().unwrap()
    }

    fn set(files: impl IntoIterator<Item = Partial>) -> Set {
        let mut set = Set::default();
        files.into_iter().for_each(|file| set.add(file));
        set
    }

    #[test]
    fn appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.vcf");

        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        file.flush().unwrap();
        let [partial] = &names(folder.path())[..] else { panic!("one file") };
        assert!(partial.starts_with(".calls.vcf.") && partial.ends_with(".partial"), "{partial}");
        drop(file);
        assert!(names(folder.path()).is_empty());

        for text in [&b"whole"[..], b"other"] {
            let before = fs::read(&path).ok();
            let mut file = AtomicFile::create(&path).unwrap();
            file.write_all(text).unwrap();
            assert_eq!(fs::read(&path).ok(), before);
            file.finish().unwrap();
            assert_eq!(fs::read(&path).unwrap(), text);
            assert_eq!(names(folder.path()), ["calls.vcf"]);
        }
    }

    #[test]
    fn refusals_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let said = |path: &Path| AtomicFile::create(path).unwrap_err().to_string();
        let path = folder.path().join("no/such/folder/x");
        assert_eq!(
            said(&path),
            format!("{}: cannot write: No such file or directory (os error 2)", path.display())
        );

        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        assert_eq!(said(&path), format!("{}: cannot write: Is a directory (os error 21)", path.display()));
        let path = folder.path().join("socket");
        let _socket = UnixListener::bind(&path).unwrap();
        assert!(said(&path).starts_with(&format!("{}: cannot write: ", path.display())));
        let path = folder.path().join("circle");
        symlink("circle", &path).unwrap();
        assert!(said(&path).contains("Too many levels of symbolic links"));
        assert!(said(Path::new("/")).contains("not a file name"));
        assert_eq!(names(folder.path()), ["circle", "socket", "taken"]);
    }

    #[test]
    fn no_space_left_is_said_with_the_name() {
        let mut full = AtomicFile::create("/dev/full").unwrap();
        full.write_all(b"fits into the buffer").unwrap();
        let said = full.finish().unwrap_err().to_string();
        assert_eq!(said, "/dev/full: cannot write: No space left on device (os error 28)");
        let mut full = AtomicFile::create("/dev/full").unwrap();
        let said = full.write_all(&vec![0; 2 * BUFFER]).unwrap_err().to_string();
        assert_eq!(said, "/dev/full: cannot write: No space left on device (os error 28)");
    }

    #[test]
    fn unfinished_files_go_on_a_signal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let file = AtomicFile::create(&path).unwrap();
        // Only this one: the other tests of this process write at the same time.
        let partial = file.partial.waits_at().unwrap().to_path_buf();
        assert!(unfinished().contains(&partial));
        fs::remove_file(&partial).unwrap();
        assert!(file.finish().is_err());
        assert!(!unfinished().contains(&partial));
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_file_is_written_once_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let first = AtomicFile::create(&path).unwrap();
        symlink("x", folder.path().join("link")).unwrap();
        for path in [&path, &folder.path().join("link"), &folder.path().join("./x")] {
            let said = Partial::create(path).unwrap_err().to_string();
            assert_eq!(said, format!("{}: two outputs have this name: give each its own", path.display()));
        }
        // Names that begin or end alike are others.
        for other in ["x.y", "y.x", "xx"] {
            Partial::create(folder.path().join(other)).unwrap();
        }
        drop(first);
        Partial::create(&path).unwrap();
    }

    #[test]
    fn a_living_run_is_left_alone_and_a_killed_one_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let theirs = folder.path().join(".x.0123456789abcdef.partial");
        let script = format!("exec 9>{}; flock 9; echo locked; read line", theirs.display());
        let mut other = Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        other.stdout.as_mut().unwrap().read_exact(&mut [0; 7]).unwrap();
        let said = Partial::create(&path).unwrap_err();
        assert!(matches!(said, Error::Busy { .. }), "{said}");
        assert_eq!(
            said.to_string(),
            format!("{}: another run is writing it: wait for it, or name another output", path.display())
        );
        assert_eq!(names(folder.path()), [".x.0123456789abcdef.partial"]);
        other.kill().unwrap();
        other.wait().unwrap();

        // Only files of that very name are ours to remove.
        symlink("../victim", folder.path().join(".x.partial")).unwrap();
        symlink("../victim", folder.path().join(".x.00000000deadbeef.partial")).unwrap();
        fs::write(folder.path().join(".x.y.0123456789abcdef.partial"), "of x.y").unwrap();
        written(&path, b"whole").publish().unwrap();
        assert_eq!(
            names(folder.path()),
            [".x.00000000deadbeef.partial", ".x.partial", ".x.y.0123456789abcdef.partial", "x"]
        );
    }

    #[test]
    fn of_runs_that_begin_at_once_one_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for _ in 0..50 {
            let begun: Vec<_> = std::thread::scope(|scope| {
                let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| Partial::create(&path))).collect();
                runs.into_iter().map(|run| run.join().unwrap()).collect()
            });
            assert_eq!(begun.iter().filter(|file| file.is_ok()).count(), 1);
        }
    }

    #[test]
    fn a_link_stays_and_what_it_points_to_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        fs::create_dir(&real).unwrap();
        for (link, to) in [("one", "real/x"), ("two", "one"), ("dangling", "real/y")] {
            let link = folder.path().join(link);
            symlink(to, &link).unwrap();
            written(&link, b"through the link").publish().unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read(&link).unwrap(), b"through the link");
        }
        assert_eq!(names(&real), ["x", "y"]);
        assert_eq!(names(folder.path()), ["dangling", "one", "real", "two"]);
    }

    #[test]
    fn devices_and_pipes_are_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("null");
        symlink("/dev/null", &link).unwrap();
        written(&link, b"gone").publish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        written(&pipe, b"through the pipe").publish().unwrap();
        assert_eq!(reader.join().unwrap(), b"through the pipe");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());

        // An open file, by its number.
        let open = File::create(folder.path().join("open")).unwrap();
        (&open).write_all(b"before, ").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        for link in [format!("/dev/fd/{number}"), format!("/proc/self/fd/{number}")] {
            written(Path::new(&link), b"behind").publish().unwrap();
        }
        assert_eq!(fs::read(folder.path().join("open")).unwrap(), b"before, behindbehind");
        assert_eq!(names(folder.path()), ["null", "open", "pipe"]);
    }

    #[test]
    fn a_set_appears_together() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, stale] = ["one", "two", "stale"].map(|name| folder.path().join(name));
        fs::write(&one, "before").unwrap();
        fs::write(&stale, "before").unwrap();
        let mut set = set([written(&one, b"1"), written(&two, b"2")]);
        set.forget(&stale);
        set.forget(folder.path().join("nothing"));
        set.publish().unwrap();
        assert_eq!(names(folder.path()), ["one", "two"]);
        assert_eq!([&one, &two].map(|path| fs::read(path).unwrap()), [b"1", b"2"]);
    }

    #[test]
    fn a_set_that_cannot_appear_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, stale, last] = ["one", "two", "stale", "last"].map(|name| folder.path().join(name));
        fs::write(&one, "before").unwrap();
        fs::write(&stale, "before").unwrap();
        let mut set = set([written(&one, b"1"), written(&two, b"2"), written(&last, b"3")]);
        set.forget(&stale);
        // What comes to stand in the way of the last of them is not replaced.
        symlink("/dev/null", &last).unwrap();
        let said = set.publish().unwrap_err().to_string();
        assert!(said.starts_with(&format!("{}: cannot write: ", last.display())), "{said}");
        assert_eq!(names(folder.path()), ["last", "one", "stale"]);
        assert_eq!([&one, &stale].map(|path| fs::read(path).unwrap()), [b"before", b"before"]);
    }
}
