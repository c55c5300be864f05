//! The output folder of a call.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use genuma_work::folder;
use genuma_work::signals;

/// The output folder. When this value is dropped, a folder that this run created is removed if it is still empty.
pub(super) struct OutputFolder<'a> {
    path: &'a Path,
    was_created: bool,
}

impl<'a> OutputFolder<'a> {
    /// Opens the output folder; creates it if it is missing.
    ///
    /// # Errors
    /// The path is not a folder, or the folder cannot be created.
    pub(super) fn open_or_create(path: &'a Path) -> anyhow::Result<Self> {
        // I/O error ignored: creating the folder reports it.
        let new = !path.exists();
        if !new && !path.is_dir() {
            bail!("{}: is not a folder: give the name of a new or existing folder for the results", path.display());
        }
        fs::create_dir_all(path).with_context(|| format!("{}: cannot create the output folder", path.display()))?;
        Ok(OutputFolder { path, was_created: new })
    }
}

impl Drop for OutputFolder<'_> {
    fn drop(&mut self) {
        if self.was_created {
            // The folder stays if it contains files.
            let _ = fs::remove_dir(self.path);
        }
    }
}

/// Sets what an interruption of the program does: it keeps only the files of the work folder `work` from which a run
/// can resume, and removes the output folder if this run created it and it is empty.
pub(super) fn clean_up_folders_on_interruption(work: &Path, folder: &OutputFolder<'_>) {
    let (folder, out, new) = (work.to_path_buf(), folder.path.to_path_buf(), folder.was_created);
    signals::set_termination_handler(Some(Box::new(move || {
        let stays = folder::keep_only_resumable_files(&folder);
        drop(OutputFolder { path: &out, was_created: new });
        stays.then(|| folder::format_resume_hint(&folder))
    })));
}
