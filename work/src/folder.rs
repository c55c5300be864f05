//! The work folder of a run. It is locked against other runs, and temporary files are removed from it even if the run
//! is interrupted.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Name of the lock file. A folder that contains this file is a work folder of genuma; the file is locked while a run
/// uses the folder.
const LOCK_FILE: &str = "genuma.lock";

/// Why a folder cannot be used as a work folder.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{}: cannot use the work folder: {source}", path.display())]
    Io {
        /// Path of the work folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The folder contains files but no lock file, so genuma did not create it.
    #[error("{}: holds other files: name a new or empty work folder with --work", path.display())]
    ForeignFiles {
        /// Path of the work folder.
        path: PathBuf,
    },
    /// An input or output path is inside the work folder, whose files genuma deletes.
    #[error(
        "{}: is in the work folder {}, whose files genuma removes: name another work folder with --work",
        path.display(), work.display()
    )]
    PathInWorkFolder {
        /// The input or output path.
        path: PathBuf,
        /// Path of the work folder that contains this path.
        work: PathBuf,
    },
    /// Another run holds the lock.
    #[error("{}: another run uses this work folder: wait for it, or name another with --work", path.display())]
    InUse {
        /// Path of the work folder.
        path: PathBuf,
    },
}

/// A work folder that this run has locked; not locked if the file system does not support locks.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
    /// The operating system releases the lock when the file is closed, even if the process is killed.
    _lock: File,
}

impl WorkFolder {
    /// Creates or opens the work folder and locks it. A new folder is not readable by other users. With `resume`,
    /// results of finished units are kept; otherwise all files of earlier runs are removed.
    ///
    /// # Errors
    /// Another run holds the lock, the folder contains foreign files, or a system call failed.
    pub fn open(path: &Path, resume: bool) -> Result<Self, Error> {
        let io_error = |source| Error::Io { path: path.to_path_buf(), source };
        create_private_folder(path).map_err(io_error)?;
        let marker = path.join(LOCK_FILE);
        if !marker.try_exists().map_err(io_error)? && fs::read_dir(path).map_err(io_error)?.next().is_some() {
            return Err(Error::ForeignFiles { path: path.to_path_buf() });
        }
        let lock = File::options().create(true).append(true).open(&marker).map_err(io_error)?;
        match lock.try_lock() {
            // Some network file systems do not support locks: continue without one.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path: path.to_path_buf() }),
        }
        let names = file_names(path).map_err(io_error)?;
        let has_units = names.iter().any(|name| is_unit_result(name));
        if resume && !has_units {
            tracing::info!("{}: nothing to resume, so this run starts from the beginning", path.display());
        } else if !resume && has_units {
            tracing::warn!(
                "{}: the results of an interrupted run are discarded, and this run starts from the beginning; next \
                 time use --resume to continue an interrupted run",
                path.display()
            );
        }
        remove_genuma_files_except(path, names, |all, name| resume && is_resumable(all, name)).map_err(io_error)?;
        Ok(WorkFolder { path: path.to_path_buf(), _lock: lock })
    }

    /// Removes all files that genuma creates in the work folder, and then the folder itself if it is empty. If
    /// something cannot be removed, a warning is logged.
    pub fn remove(self) {
        remove_work_folder(&self.path);
    }

    /// Removes all files of genuma except those from which a later run can resume. Returns whether such files were
    /// kept. See [`keep_only_resumable_files`].
    pub fn close_keeping_resumable_files(self) -> bool {
        keep_only_resumable_files(&self.path)
    }
}

/// Checks that none of `paths` (input or output files and folders) is the work folder or inside it. Symbolic links
/// are resolved first.
///
/// # Errors
/// [`Error::PathInWorkFolder`] with the first path that is in the work folder.
pub fn check_outside_work_folder<'a>(work: &Path, paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Error> {
    let folder = resolve_links(work);
    match paths.into_iter().find(|path| resolve_links(path).starts_with(&folder)) {
        Some(path) => Err(Error::PathInWorkFolder { path: path.to_path_buf(), work: work.to_path_buf() }),
        None => Ok(()),
    }
}

/// Resolves symbolic links; also works for a path whose last components do not exist.
fn resolve_links(path: &Path) -> PathBuf {
    // I/O error ignored: its parents are resolved instead.
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if folder.as_os_str().is_empty() => resolve_links(Path::new(".")).join(name),
        (Some(folder), Some(name)) => resolve_links(folder).join(name),
        // The path ends with `..` and the component before it does not exist, so that component is not a link.
        (Some(folder), None) => resolve_links(folder).parent().map_or_else(|| path.to_path_buf(), Path::to_path_buf),
        (None, _) => path.to_path_buf(),
    })
}

/// Cleans the work folder `path` after a run that did not finish: keeps the files that a run with `--resume` can use,
/// and removes the other files of genuma. Without any finished unit, removes the whole folder; if the folder cannot be
/// listed, nothing is removed. Returns whether files were kept.
pub fn keep_only_resumable_files(path: &Path) -> bool {
    match file_names(path) {
        Ok(names) if !names.iter().any(|name| is_unit_result(name)) => {
            remove_work_folder(path);
            false
        }
        Ok(names) => {
            // A file that cannot be removed does no harm: the next run overwrites it.
            let _ = remove_genuma_files_except(path, names, is_resumable);
            true
        }
        Err(e) => e.kind() != io::ErrorKind::NotFound,
    }
}

/// Returns a message for the user: which folder keeps the results of finished units, and how to resume from it.
pub fn format_resume_hint(path: &Path) -> String {
    format!(
        "the results of finished units are kept in {}: run the same command with --resume to continue",
        path.display()
    )
}

/// Returns a message for the user after a run that withheld its results: which folder keeps the results of finished
/// units, and how to continue.
pub fn format_withheld_results_hint(path: &Path) -> String {
    format!(
        "the results of finished units are kept in {}: after correcting the cause start again; to write these results \
         nevertheless, run the same command with --resume --force",
        path.display()
    )
}

/// Returns a message for the user after a run that withheld its results because of `--strict`: which folder keeps the
/// results of finished units, and how to continue.
pub fn format_strict_hint(path: &Path) -> String {
    format!(
        "the results of finished units are kept in {}: to write these results despite the warnings, run the same \
         command with --resume and without --strict; or correct the cause and start again",
        path.display()
    )
}

/// Removes the work folder of an interrupted run, if it exists.
///
/// # Errors
/// Another run holds the lock, or a system call failed.
pub fn remove_folder_of_interrupted_run(path: &Path) -> Result<(), Error> {
    let io_error = |source| Error::Io { path: path.to_path_buf(), source };
    if path.join(LOCK_FILE).try_exists().map_err(io_error)? {
        WorkFolder::open(path, false)?.remove();
    }
    Ok(())
}

/// Whether a later run can use a file of the work folder, whose files are `names`: the result of a finished unit
/// (`x.unit`), its bins (`x.bins`), or the packed reads (`reads.bins`) if the unit `count` is finished. The list decides,
/// because a failed `stat` of the unit would look like a missing unit.
fn is_resumable(names: &[String], name: &str) -> bool {
    let has_unit = |unit: &str| names.iter().any(|other| other.strip_suffix(".unit") == Some(unit));
    is_unit_result(name)
        || name.strip_suffix(".bins").is_some_and(|bins| has_unit(if bins == "reads" { "count" } else { bins }))
}

/// Whether the file is the result of a finished unit.
fn is_unit_result(name: &str) -> bool {
    name.ends_with(".unit") && !name.starts_with('.')
}

fn is_genuma_file(name: &str) -> bool {
    name.ends_with(".unit")
        || name.ends_with(".bins")
        || name.starts_with("reference.")
        || (name.starts_with('.') && name.ends_with(".partial"))
}

/// Creates a folder, and those of its parents that are missing. Other users may not read a new folder, because its
/// files contain reads of patients.
fn create_private_folder(path: &Path) -> io::Result<()> {
    // I/O error ignored: creating the folder reports it.
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        // Another process was faster.
        // I/O error ignored: the error of creating the folder is returned.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        created => created,
    }
}

/// Removes all files of genuma, then the lock file, then the folder. The lock file is removed last: if removal is
/// interrupted, the next run still recognises the folder as a work folder. A run accepts an empty folder, too.
fn remove_work_folder(path: &Path) {
    let cleared = file_names(path).and_then(|names| remove_genuma_files_except(path, names, |_, _| false));
    let cleared = cleared.and_then(|()| fs::remove_file(path.join(LOCK_FILE)));
    // A mount point, or a folder reached through a symbolic link, cannot be removed: it stays empty.
    // I/O error ignored: the warning below reports a folder that stays.
    let gone = cleared.is_ok() && (fs::remove_dir(path).is_ok() || file_names(path).is_ok_and(|n| n.is_empty()));
    if !gone && path.exists() {
        tracing::warn!(
            "{}: cannot remove the work folder completely; its files are not needed any more: remove them yourself",
            path.display()
        );
    }
}

fn file_names(path: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Removes those of the files `names` that runs of genuma created, except the lock file and files for which `keep`
/// returns true. `keep` gets all names, and the name of a file.
fn remove_genuma_files_except(path: &Path, all: Vec<String>, keep: impl Fn(&[String], &str) -> bool) -> io::Result<()> {
    let is_removed = |name: &&String| is_genuma_file(name) && !keep(&all, name);
    let mut names: Vec<&String> = all.iter().filter(is_removed).collect();
    // Remove a unit before its bins: if the process is killed in between, no unit may refer to missing bins.
    names.sort_by_key(|name| !is_unit_result(name));
    names.iter().try_for_each(|name| fs::remove_file(path.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_text(result: Result<WorkFolder, Error>) -> String {
        result.err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_work_folder_is_exclusive_and_keeps_resumable_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work");
        let work = WorkFolder::open(&path, false).unwrap();
        assert!(error_text(WorkFolder::open(&path, true)).contains("another run"));
        for name in ["count.unit", "count.bins", "read.bins", "reads.bins", ".recruit.unit.partial", "reference.fa"] {
            fs::write(path.join(name), "x").unwrap();
        }
        assert!(work.close_keeping_resumable_files());
        let left = |path| {
            let mut names = file_names(path).unwrap();
            names.sort();
            names
        };
        let stays = ["count.bins", "count.unit", LOCK_FILE, "reads.bins"];
        assert_eq!(left(&path), stays);
        fs::write(path.join("read.bins"), "x").unwrap();
        drop(WorkFolder::open(&path, true).unwrap());
        assert_eq!(left(&path), stays);
        let work = WorkFolder::open(&path, false).unwrap();
        assert_eq!(left(&path), [LOCK_FILE]);
        assert!(!work.close_keeping_resumable_files());
        assert!(!path.exists());

        drop(WorkFolder::open(&path, true).unwrap());
        remove_folder_of_interrupted_run(&path).unwrap();
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        fs::write(path.join("thesis.tex"), "x").unwrap();
        assert!(error_text(WorkFolder::open(&path, false)).contains("holds other files"));
        remove_folder_of_interrupted_run(&path).unwrap();
        assert_eq!(left(&path), ["thesis.tex"]);
    }

    #[test]
    fn leftovers_of_a_killed_run_are_reused_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work");
        // States that a killed run may leave: an empty folder, only the lock file, or partial files.
        for files in [&[][..], &[LOCK_FILE], &[LOCK_FILE, "count.bins", "reference.fa"]] {
            for resume in [false, true] {
                fs::create_dir(&path).unwrap();
                files.iter().for_each(|name| fs::write(path.join(name), "x").unwrap());
                WorkFolder::open(&path, resume).unwrap().remove();
                assert!(!path.exists(), "{files:?}");
            }
        }
        // Files of other programs stay.
        let work = WorkFolder::open(&path, false).unwrap();
        fs::write(path.join("reads.fq"), "x").unwrap();
        fs::create_dir(path.join("notes")).unwrap();
        fs::write(path.join("count.unit"), "x").unwrap();
        drop(work);
        WorkFolder::open(&path, false).unwrap().remove();
        let mut left = file_names(&path).unwrap();
        left.sort();
        assert_eq!(left, ["notes", "reads.fq"]);
    }

    #[test]
    fn the_lock_file_is_removed_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work");
        let work = WorkFolder::open(&path, false).unwrap();
        // A directory named like a file of genuma makes the removal fail in the middle, like a kill would.
        fs::create_dir(path.join("count.bins")).unwrap();
        fs::write(path.join("count.unit"), "x").unwrap();
        work.remove();
        let mut left = file_names(&path).unwrap();
        left.sort();
        assert_eq!(left, ["count.bins", LOCK_FILE]);
    }

    #[test]
    fn a_linked_work_folder_is_emptied_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["real", "link"].map(|name| folder.path().join(name));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let work = WorkFolder::open(&link, false).unwrap();
        fs::write(link.join("count.unit"), "x").unwrap();
        work.remove();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(file_names(&real).unwrap().is_empty());
    }

    #[test]
    fn results_and_reads_in_the_work_folder_are_io_error() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("out")).unwrap();
        std::os::unix::fs::symlink("out", at("link")).unwrap();
        let apart = |work: &str, other: &str| check_outside_work_folder(&at(work), [at(other).as_path()]).is_ok();
        for (work, other) in [
            ("out", "out"),
            ("out", "link"),
            ("link", "out/."),
            ("./link/.", "out"),
            ("new", "new"),
            ("new", "out/../new/results"),
            ("out", "link/reads.fq"),
            ("new/../out", "out/reads.fq"),
            (".", "out"),
        ] {
            assert!(!apart(work, other), "{work} {other}");
        }
        for (work, other) in [("out/.work", "out"), ("new", "out"), ("outer", "out"), ("out", "outer/x")] {
            assert!(apart(work, other), "{work} {other}");
        }
    }
}
