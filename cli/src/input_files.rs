//! Detects input files that change while a command reads them, and leaves out lanes without reads.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use genuma_reads::{Lane, LaneFiles, StreamLane, describe_empty_lane, find_empty_lanes, remove_empty_lanes};
use tracing::warn;

/// Removes lanes without reads and warns of them, unless the sample has no other lane.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn leave_out_empty_lanes(lanes: &mut Vec<Lane>) -> anyhow::Result<()> {
    for lane in remove_empty_lanes(lanes)? {
        warn!("{}", describe_empty_lane(lane.paths()));
    }
    Ok(())
}

/// Returns the lanes that have reads, and warns of the others; all lanes if none has reads.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn without_empty_lanes(lanes: Vec<StreamLane>) -> anyhow::Result<Vec<StreamLane>> {
    let empty = find_empty_lanes(&lanes)?;
    let mut with_reads = Vec::new();
    for (lane, is_empty) in lanes.into_iter().zip(empty) {
        if is_empty {
            warn!("{}", describe_empty_lane(lane.paths()));
        } else {
            with_reads.push(lane);
        }
    }
    Ok(with_reads)
}

/// Identity and state of a file: device, inode, size in bytes, and time of the last modification of its content
/// (seconds, nanoseconds).
type FileState = (u64, u64, u64, i64, i64);

/// Paths of the regular input files of a command, with their states at the start of the command.
pub(crate) struct InputFileStates(Vec<(PathBuf, FileState)>);

impl InputFileStates {
    /// Records the state of the files of these lanes, of the references of CRAM files, and of `others`.
    ///
    /// # Errors
    /// The metadata of a file cannot be read.
    pub(crate) fn from_lanes<'a>(
        lanes: &'a [Lane],
        others: impl IntoIterator<Item = &'a Path>,
    ) -> anyhow::Result<InputFileStates> {
        let references = lanes.iter().filter_map(|lane| match &lane.files {
            LaneFiles::Aligned(aligned) => aligned.options.reference.path(),
            _ => None,
        });
        InputFileStates::from_paths(lanes.iter().flat_map(Lane::paths).chain(references).chain(others))
    }

    /// Records the states of the regular files among these files. Pipes and devices are left out.
    ///
    /// # Errors
    /// The metadata of a file cannot be read.
    pub(crate) fn from_paths<'a>(paths: impl Iterator<Item = &'a Path>) -> anyhow::Result<InputFileStates> {
        let mut files = Vec::new();
        for path in paths {
            if let Some(state) = regular_file_state(path)? {
                files.push((path.to_path_buf(), state));
            }
        }
        Ok(InputFileStates(files))
    }

    /// Checks that all files still have the recorded state. Otherwise the passes over a file may have read different
    /// data.
    ///
    /// # Errors
    /// A file was changed or replaced, or its metadata cannot be read.
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

/// Returns the state of a regular file; `None` for standard input, a pipe or a device, which are read only once.
fn regular_file_state(path: &Path) -> anyhow::Result<Option<FileState>> {
    // `-` is the standard input.
    if path == Path::new("-") {
        return Ok(None);
    }
    let found = fs::metadata(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let state = (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec());
    Ok(found.is_file().then_some(state))
}
