//! Notices input files that change while a command reads them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use genuma_reads::{Lane, LaneFiles};

/// Identity of a file and its state: device and inode, size in bytes, time of the last change of its content (seconds,
/// nanoseconds).
type FileState = (u64, u64, u64, i64, i64);

/// The regular input files of a command, as they were when this was made.
pub(crate) struct InputFiles(Vec<(PathBuf, FileState)>);

impl InputFiles {
    /// Notes the files of these lanes, with the references of CRAM, and other files.
    ///
    /// # Errors
    /// A file cannot be examined.
    pub(crate) fn from_lanes<'a>(
        lanes: &'a [Lane],
        others: impl IntoIterator<Item = &'a Path>,
    ) -> anyhow::Result<InputFiles> {
        let references = lanes.iter().filter_map(|lane| match &lane.files {
            LaneFiles::Aligned(aligned) => aligned.options.reference.path(),
            _ => None,
        });
        InputFiles::from_paths(lanes.iter().flat_map(Lane::paths).chain(references).chain(others))
    }

    /// Notes those of these files that are regular.
    ///
    /// # Errors
    /// A file cannot be examined.
    pub(crate) fn from_paths<'a>(paths: impl Iterator<Item = &'a Path>) -> anyhow::Result<InputFiles> {
        let mut files = Vec::new();
        for path in paths {
            if let Some(state) = regular_file_state(path)? {
                files.push((path.to_path_buf(), state));
            }
        }
        Ok(InputFiles(files))
    }

    /// Fails if a file is not as it was: the passes over it may have read different data.
    ///
    /// # Errors
    /// See above; or a file cannot be examined.
    pub(crate) fn check_unchanged(&self) -> anyhow::Result<()> {
        for (path, state) in &self.0 {
            if regular_file_state(path)? != Some(*state) {
                bail!(
                    "{}: was changed or replaced while it was read, so no results are written: start again, without \
                     --resume, when the file is complete",
                    path.display()
                );
            }
        }
        Ok(())
    }
}

/// The state of a regular file; `None` for a pipe or device, which is read only once.
fn regular_file_state(path: &Path) -> anyhow::Result<Option<FileState>> {
    // `-` is the standard input.
    if path == Path::new("-") {
        return Ok(None);
    }
    let found = fs::metadata(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let state = (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec());
    Ok(found.is_file().then_some(state))
}
