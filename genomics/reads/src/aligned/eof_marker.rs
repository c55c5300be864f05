//! End-of-file markers of BAM, CRAM and BINSEQ files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, FileFault};
use crate::pipe::is_regular_file;

/// Whether a regular file ends with the marker `mark` of its format. True for files that are shorter than the marker,
/// whose header is incomplete, and for pipes, whose end is checked when it is read.
pub(super) fn may_have_eof_marker(path: &Path, mark: &[u8]) -> Result<bool, Error> {
    if is_regular_file(path).is_ok_and(|regular| !regular) {
        return Ok(true);
    }
    let mut last_bytes = vec![0; mark.len()];
    let mut has_marker = || -> io::Result<bool> {
        let file = File::open(path)?;
        let Some(at) = file.metadata()?.len().checked_sub(mark.len() as u64) else { return Ok(true) };
        file.read_exact_at(&mut last_bytes, at)?;
        Ok(last_bytes == mark)
    };
    has_marker().map_err(|source| Error::Read { path: path.into(), source })
}

/// Checks that a regular file ends with the marker `mark` of its format. Otherwise a file that is truncated between
/// two blocks would be detected late or never.
pub(super) fn check_eof_marker(path: &Path, mark: &[u8]) -> Result<(), Error> {
    match may_have_eof_marker(path, mark)? {
        true => Ok(()),
        false => Err(Error::error_in_file(path, FileFault::MissingEofMarker)),
    }
}

/// Returns whether a regular BAM or CRAM file ends with the marker `mark`. As samtools does, a file without the marker
/// is read, with one warning, if its last block is whole: some programs write no marker.
///
/// # Errors
/// The file has no marker and ends inside a block, which `ends_with_block` tells; or it cannot be read.
pub(super) fn check_eof_marker_or_last_block(
    path: &Path,
    mark: &[u8],
    ends_with_block: impl FnOnce(File) -> io::Result<bool>,
) -> Result<bool, Error> {
    /// Files with a warning. Each pass over the reads opens a file again.
    static WARNED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if may_have_eof_marker(path, mark)? {
        return Ok(true);
    }
    let is_whole = File::open(path).and_then(ends_with_block);
    if !is_whole.map_err(|source| Error::Read { path: path.into(), source })? {
        return Err(Error::error_in_file(path, FileFault::MissingEofMarker));
    }
    if WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.into()) {
        tracing::warn!(
            "{}: has no end-of-file block; its last block is whole, so the file is read, but if it was truncated between two \
             blocks, reads are missing: compare its size with the original, or make it again",
            path.display()
        );
    }
    Ok(false)
}
