//! The work folder: one run at a time, nothing of anybody else's, tidy whatever the end.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Marks a folder as genuma's, and is locked while a run uses it.
const LOCK: &str = "genuma.lock";

/// Why a folder is not one to work in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("{}: cannot use the work folder: {source}", path.display())]
    Refused {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not one that genuma made.
    #[error("{}: holds other files: name a new or empty work folder with --work", path.display())]
    Others {
        /// The folder.
        path: PathBuf,
    },
    /// What is not the run's own lies there, or it is the folder of results.
    #[error(
        "{}: lies in the work folder {}, which is emptied: name another work folder with --work",
        path.display(), work.display()
    )]
    Inside {
        /// What lies there.
        path: PathBuf,
        /// The folder.
        work: PathBuf,
    },
    /// Another run uses it.
    #[error("{}: another run uses this work folder: wait for it, or name another with --work", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
}

/// A work folder that this run has for itself.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
    /// The lock goes when the file is closed, even if the process is killed.
    _lock: File,
}

impl WorkFolder {
    /// Makes or takes over the folder. What an interrupted run left is kept for `resume`, else removed.
    ///
    /// # Errors
    /// Another run uses it, it holds files that are not genuma's, or it cannot be made.
    pub fn open(path: &Path, resume: bool) -> Result<Self, Error> {
        let refused = |source| Error::Refused { path: path.to_path_buf(), source };
        fs::create_dir_all(path).map_err(refused)?;
        let marker = path.join(LOCK);
        if !marker.exists() && fs::read_dir(path).map_err(refused)?.next().is_some() {
            return Err(Error::Others { path: path.to_path_buf() });
        }
        let lock = File::options().create(true).append(true).open(&marker).map_err(refused)?;
        match lock.try_lock() {
            // Some network file systems know no locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy { path: path.to_path_buf() }),
        }
        let units = names(path).map_err(refused)?.iter().any(|name| is_unit(name));
        if resume && !units {
            tracing::info!("{}: nothing to resume, so this run starts from the beginning", path.display());
        } else if !resume && units {
            tracing::warn!(
                "{}: what an interrupted run finished is dropped; --resume would use it",
                path.display()
            );
        }
        clear(path, |name| resume && stays(path, name)).map_err(refused)?;
        Ok(WorkFolder { path: path.to_path_buf(), _lock: lock })
    }

    /// Removes the folder and what runs left in it.
    pub fn remove(self) {
        remove(&self.path);
    }

    /// See [`leave`].
    pub fn leave(self) -> bool {
        leave(&self.path)
    }
}

/// Fails when one of `others`, files and folders that are there to stay, lies in the work folder `work` or is it, by whatever name.
///
/// # Errors
/// The first that does.
pub fn check_apart<'a>(work: &Path, others: impl IntoIterator<Item = &'a Path>) -> Result<(), Error> {
    let folder = real(work);
    match others.into_iter().find(|path| real(path).starts_with(&folder)) {
        Some(path) => Err(Error::Inside { path: path.to_path_buf(), work: work.to_path_buf() }),
        None => Ok(()),
    }
}

/// The path without links, also of what is not there yet.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if folder.as_os_str().is_empty() => real(Path::new(".")).join(name),
        (Some(folder), Some(name)) => real(folder).join(name),
        // It ends with `..`: what is before that is not there, so it is no link.
        (Some(folder), None) => real(folder).parent().map_or_else(|| path.to_path_buf(), Path::to_path_buf),
        (None, _) => path.to_path_buf(),
    })
}

/// Leaves a folder after a run that did not finish: finished units stay so that `--resume` can take them up, all else
/// goes. Whether anything stays.
pub fn leave(path: &Path) -> bool {
    let any = names(path).is_ok_and(|names| names.iter().any(|n| is_unit(n)));
    if any {
        // What cannot be removed does no harm: the next run writes over it.
        let _ = clear(path, |name| stays(path, name));
    } else {
        remove(path);
    }
    any
}

/// What the user should know of a folder that stays.
pub fn kept(path: &Path) -> String {
    format!(
        "finished steps are kept in {}: the same command with --resume goes on from there",
        path.display()
    )
}

/// Removes a folder that an interrupted run left, if there is one.
///
/// # Errors
/// Another run uses it, or it cannot be used.
pub fn discard(path: &Path) -> Result<(), Error> {
    if path.join(LOCK).exists() {
        WorkFolder::open(path, false)?.remove();
    }
    Ok(())
}

/// Whether a later run can use a file: results of finished units, the index, bins (`x.bins`) that a unit (`x.unit`)
/// speaks of, and the copy of the reads, of which the count does.
fn stays(path: &Path, name: &str) -> bool {
    let spoken_of = |unit: &str| path.join(format!("{unit}.unit")).exists();
    is_unit(name)
        || matches!(name, "reference.l2b" | "reference.mbw" | "reference.l2b.seal")
        || name
            .strip_suffix(".bins")
            .is_some_and(|bins| spoken_of(if bins == "reads" { "count" } else { bins }))
}

/// Whether a file is the result of a finished unit.
fn is_unit(name: &str) -> bool {
    name.ends_with(".unit") && !name.starts_with('.')
}

/// Whether a run of genuma makes files of this name in its work folder.
fn is_own(name: &str) -> bool {
    name.ends_with(".unit")
        || name.ends_with(".bins")
        || name.starts_with("reference.")
        || (name.starts_with('.') && name.ends_with(".partial"))
}

/// The lock goes last: a folder that has it is taken up by the next run, whatever else is gone. So does one that is empty.
fn remove(path: &Path) {
    let cleared = clear(path, |_| false).and_then(|()| fs::remove_file(path.join(LOCK)));
    // A mount point stays, and what a link points to: both empty.
    let gone = cleared.is_ok() && (fs::remove_dir(path).is_ok() || names(path).is_ok_and(|n| n.is_empty()));
    if !gone && path.exists() {
        tracing::warn!("{}: cannot remove the work folder, or all of it", path.display());
    }
}

fn names(path: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Removes what runs left, but for the lock and what is to `keep`.
fn clear(path: &Path, keep: impl Fn(&str) -> bool) -> io::Result<()> {
    let mut names = names(path)?;
    names.retain(|name| is_own(name) && !keep(name));
    // A unit goes before the bins that it speaks of: a run that is killed here must not leave it without them.
    names.sort_by_key(|name| !is_unit(name));
    names.iter().try_for_each(|name| fs::remove_file(path.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(result: Result<WorkFolder, Error>) -> String {
        result.err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_run_has_its_folder_for_itself_and_keeps_what_can_be_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work");
        let work = WorkFolder::open(&path, false).unwrap();
        assert!(said(WorkFolder::open(&path, true)).contains("another run"));
        for name in [
            "count.unit",
            "count.bins",
            "read.bins",
            "reads.bins",
            ".recruit.unit.partial",
            "reference.fa",
            "reference.l2b",
            "reference.l2b.seal",
        ] {
            fs::write(path.join(name), "x").unwrap();
        }
        assert!(work.leave());
        let left = |path| {
            let mut names = names(path).unwrap();
            names.sort();
            names
        };
        let stays = ["count.bins", "count.unit", LOCK, "reads.bins", "reference.l2b", "reference.l2b.seal"];
        assert_eq!(left(&path), stays);
        fs::write(path.join("read.bins"), "x").unwrap();
        drop(WorkFolder::open(&path, true).unwrap());
        assert_eq!(left(&path), stays);
        let work = WorkFolder::open(&path, false).unwrap();
        assert_eq!(left(&path), [LOCK]);
        assert!(!work.leave());
        assert!(!path.exists());

        drop(WorkFolder::open(&path, true).unwrap());
        discard(&path).unwrap();
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        fs::write(path.join("thesis.tex"), "x").unwrap();
        assert!(said(WorkFolder::open(&path, false)).contains("holds other files"));
        discard(&path).unwrap();
        assert_eq!(left(&path), ["thesis.tex"]);
    }

    #[test]
    fn what_a_kill_leaves_is_taken_up_and_nothing_else_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work");
        // As a killed run may leave it: empty, with the lock alone, with leftovers.
        for files in [&[][..], &[LOCK], &[LOCK, "count.bins", "reference.partial.mbw", "reference.fa"]] {
            for resume in [false, true] {
                fs::create_dir(&path).unwrap();
                files.iter().for_each(|name| fs::write(path.join(name), "x").unwrap());
                WorkFolder::open(&path, resume).unwrap().remove();
                assert!(!path.exists(), "{files:?}");
            }
        }
        // What somebody laid beside it stays.
        let work = WorkFolder::open(&path, false).unwrap();
        fs::write(path.join("reads.fq"), "x").unwrap();
        fs::create_dir(path.join("notes")).unwrap();
        fs::write(path.join("count.unit"), "x").unwrap();
        drop(work);
        WorkFolder::open(&path, false).unwrap().remove();
        let mut left = names(&path).unwrap();
        left.sort();
        assert_eq!(left, ["notes", "reads.fq"]);
    }

    #[test]
    fn the_lock_goes_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work");
        let work = WorkFolder::open(&path, false).unwrap();
        // What cannot be removed as a file stops the removal where a kill might.
        fs::create_dir(path.join("count.bins")).unwrap();
        fs::write(path.join("count.unit"), "x").unwrap();
        work.remove();
        let mut left = names(&path).unwrap();
        left.sort();
        assert_eq!(left, ["count.bins", LOCK]);
    }

    #[test]
    fn a_link_to_a_folder_stays_and_the_folder_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["real", "link"].map(|name| folder.path().join(name));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let work = WorkFolder::open(&link, false).unwrap();
        fs::write(link.join("count.unit"), "x").unwrap();
        work.remove();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(names(&real).unwrap().is_empty());
    }

    #[test]
    fn results_and_reads_do_not_lie_in_the_work_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("out")).unwrap();
        std::os::unix::fs::symlink("out", at("link")).unwrap();
        let apart = |work: &str, other: &str| check_apart(&at(work), [at(other).as_path()]).is_ok();
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
