//! End-of-file markers of BAM, CRAM and BINSEQ files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Error, FileFault};
use crate::pipe::is_regular_file;

/// Checks that a regular file ends with the marker `mark` of its format. Otherwise a file that is truncated between
/// two blocks would be detected late or never. Files that are shorter than the marker pass this check, but their
/// header is incomplete. The end of a pipe is checked when it is read.
pub(super) fn check_eof_marker(path: &Path, mark: &[u8]) -> Result<(), Error> {
    if is_regular_file(path).is_ok_and(|regular| !regular) {
        return Ok(());
    }
    let mut last_bytes = vec![0; mark.len()];
    let mut has_marker = || -> io::Result<bool> {
        let file = File::open(path)?;
        let Some(at) = file.metadata()?.len().checked_sub(mark.len() as u64) else { return Ok(true) };
        file.read_exact_at(&mut last_bytes, at)?;
        Ok(last_bytes == mark)
    };
    match has_marker() {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::error_in_file(path, FileFault::MissingEofMarker)),
        Err(source) => Err(Error::Read { path: path.into(), source }),
    }
}
