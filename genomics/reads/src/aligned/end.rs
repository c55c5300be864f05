//! What a file has to end with.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Error, FileFault};
use crate::pipe::is_regular;

/// Looks whether a file ends with the mark of its format: what was cut off between two blocks would show in no other way, or after hours only. A file that is too short
/// to have one is told by what it begins with. That of a pipe shows when it is read to it.
pub(super) fn check_end(path: &Path, mark: &[u8]) -> Result<(), Error> {
    if is_regular(path).is_ok_and(|regular| !regular) {
        return Ok(());
    }
    let mut end = vec![0; mark.len()];
    let mut look = || -> io::Result<bool> {
        let file = File::open(path)?;
        let Some(at) = file.metadata()?.len().checked_sub(mark.len() as u64) else { return Ok(true) };
        file.read_exact_at(&mut end, at)?;
        Ok(end == mark)
    };
    match look() {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::file(path, FileFault::NoEnd)),
        Err(source) => Err(Error::Read { path: path.into(), source }),
    }
}
