//! The work folder: one run at a time, nothing of anybody else's, tidy whatever the end.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Marks a folder as genuma's, and is locked while a run uses it.
const LOCK: &str = "genuma.lock";

/// A work folder that this run has for itself.
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
    pub fn open(path: &Path, resume: bool) -> anyhow::Result<Self> {
        let refused = || format!("{}: cannot use the work folder", path.display());
        fs::create_dir_all(path).with_context(refused)?;
        let marker = path.join(LOCK);
        if !marker.exists() && fs::read_dir(path).with_context(refused)?.next().is_some() {
            bail!("{}: holds other files: name a new or empty work folder with --work", path.display());
        }
        let lock = File::options().create(true).append(true).open(&marker).with_context(refused)?;
        match lock.try_lock() {
            // Some network file systems know no locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "{}: another run uses this work folder: wait for it, or name another with --work",
                path.display()
            ),
        }
        let units = names(path).with_context(refused)?.iter().any(|name| is_unit(name));
        if resume && !units {
            tracing::info!("{}: nothing to resume, so this run starts from the beginning", path.display());
        } else if !resume && units {
            tracing::warn!(
                "{}: what an interrupted run finished is dropped; --resume would use it",
                path.display()
            );
        }
        clear(path, |name| resume && stays(path, name)).with_context(refused)?;
        Ok(WorkFolder { path: path.to_path_buf(), _lock: lock })
    }

    /// Removes the folder and all in it.
    pub fn remove(self) {
        remove(&self.path);
    }

    /// See [`leave`].
    pub fn leave(self) -> bool {
        leave(&self.path)
    }
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
pub fn discard(path: &Path) -> anyhow::Result<()> {
    if path.join(LOCK).exists() {
        WorkFolder::open(path, false)?.remove();
    }
    Ok(())
}

/// Whether a later run can use a file: results of finished units, the index, and bins (`x.bins`) that a unit (`x.unit`)
/// speaks of.
fn stays(path: &Path, name: &str) -> bool {
    let spoken_of = |unit: &str| path.join(format!("{unit}.unit")).exists();
    is_unit(name)
        || matches!(name, "reference.l2b" | "reference.mbw")
        || name.strip_suffix(".bins").is_some_and(spoken_of)
}

/// Whether a file is the result of a finished unit.
fn is_unit(name: &str) -> bool {
    name.ends_with(".unit") && !name.starts_with('.')
}

fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_err() && names(path).is_ok_and(|n| !n.is_empty()) {
        // A folder that is a mount point stays, empty.
        tracing::warn!("{}: cannot remove the work folder", path.display());
    }
}

fn names(path: &Path) -> std::io::Result<Vec<String>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Removes all files but the lock and those to `keep`.
fn clear(path: &Path, keep: impl Fn(&str) -> bool) -> std::io::Result<()> {
    names(path)?.iter().filter(|n| *n != LOCK && !keep(n)).try_for_each(|n| fs::remove_file(path.join(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(result: anyhow::Result<WorkFolder>) -> String {
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
            ".recruit.unit.partial",
            "reference.fa",
            "reference.l2b",
        ] {
            fs::write(path.join(name), "x").unwrap();
        }
        assert!(work.leave());
        let left = |path| {
            let mut names = names(path).unwrap();
            names.sort();
            names
        };
        assert_eq!(left(&path), ["count.bins", "count.unit", LOCK, "reference.l2b"]);
        fs::write(path.join("read.bins"), "x").unwrap();
        drop(WorkFolder::open(&path, true).unwrap());
        assert_eq!(left(&path).len(), 4);
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
}
