//! Reads text files line by line, plain or compressed.

use std::ops::ControlFlow;
use std::path::Path;

use genuma_work::ProgressCounters;

use crate::compression::{CompressionFormat, DecompressError};
use crate::error::{Error, FileFault};
use crate::inflate::{Decompressor, FileReadOptions};

/// Number of bytes per read call.
const CHUNK_BYTES: usize = 64 << 10;

/// Reads a file, which must not be empty, and calls `parse` with the number (from 1) and the text of each line.
/// `damage_error` creates the error for damaged compressed data from the number of the line, the format, and a
/// description.
///
/// # Errors
/// The file cannot be read or is damaged, and the errors of `parse`.
pub(crate) fn for_each_line(
    path: &Path,
    mut parse: impl FnMut(u64, &str) -> Result<(), Error>,
    damage_error: impl Fn(u64, CompressionFormat, String) -> Error,
) -> Result<(), Error> {
    for_each_line_until_break(path, |number, line| parse(number, line).map(ControlFlow::Continue), damage_error)
}

/// Reads a file as [`for_each_line`] does, up to the line at which `parse` breaks.
///
/// # Errors
/// Those of [`for_each_line`].
pub(crate) fn for_each_line_until_break(
    path: &Path,
    mut parse: impl FnMut(u64, &str) -> Result<ControlFlow<()>, Error>,
    damage_error: impl Fn(u64, CompressionFormat, String) -> Error,
) -> Result<(), Error> {
    let progress = ProgressCounters::default();
    let mut inflate = Decompressor::open(path, &progress, &FileReadOptions::default())?;
    let (mut text, mut line_number) = (Vec::new(), 1);
    loop {
        let kept = text.len();
        text.resize(kept + CHUNK_BYTES, 0);
        let n = inflate.fill_buffer(&mut text[kept..]).map_err(|damage| match damage {
            DecompressError::Io(source) => Error::Read { path: path.into(), source },
            DecompressError::ContentChanged(at) => Error::error_in_file(path, FileFault::ContentChanged(at)),
            DecompressError::Truncated(format) => damage_error(line_number, format, "they end too early".to_owned()),
            DecompressError::Corrupt(format, what) => damage_error(line_number, format, what),
        })?;
        text.truncate(kept + n);
        // At the end of the file the last line may have no line end.
        let complete = match n {
            0 => text.len(),
            _ => memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1),
        };
        for line in text[..complete].split_inclusive(|&byte| byte == b'\n') {
            if parse(line_number, String::from_utf8_lossy(line).trim_end_matches(['\r', '\n']))?.is_break() {
                return Ok(());
            }
            line_number += 1;
        }
        text.drain(..complete);
        if n == 0 {
            return Ok(());
        }
    }
}
