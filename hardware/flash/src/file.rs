//! Files in whole pages, past the kernel's cache where the file system lets them.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Once;

use rustix::io::{ReadWriteFlags, preadv2};

use crate::Error;
use crate::format::{self, PAGE, Page};

/// Opens with `O_DIRECT`, and without it where that is refused.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    match options.custom_flags(libc::O_DIRECT).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                tracing::warn!(
                    "{}: its file system knows no direct access, tables go through the kernel's cache",
                    path.display()
                );
            });
            options.custom_flags(0).open(path)
        }
        opened => opened,
    }
}

/// A file for writing whole pages from page-aligned memory.
pub(crate) fn write_direct(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().write(true), path)
}

/// A file for reading whole pages to page-aligned memory.
pub(crate) fn open_direct(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path)
}

/// Pages that are asked for, evenly spread over a file, before it is taken for one that the kernel holds.
const ASKED: u64 = 16;

/// Whether the kernel's cache has a file of so many pages, one at least, as far as some of them tell: then it is read sooner from there. `file` has to be open for
/// reading through that cache.
pub(crate) fn is_cached(file: &File, pages: u64) -> bool {
    let mut page = [0; PAGE];
    let asked = ASKED.min(pages);
    (0..asked).all(|i| {
        let at = (pages - 1) * i / (asked - 1).max(1) * PAGE as u64;
        // Without waiting for the disk.
        let read = preadv2(file, &mut [IoSliceMut::new(&mut page)], at, ReadWriteFlags::NOWAIT);
        read.is_ok_and(|bytes| bytes == PAGE)
    })
}

/// Writes pages from page `first` of the file on.
pub(crate) fn write_pages(file: &File, pages: &[Page], first: u64) -> io::Result<()> {
    file.write_all_at(bytemuck::cast_slice(pages), first * PAGE as u64)
}

/// Reads pages of entries of the table `path`, from page `first` on, counted from 0.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read_pages(path: &Path, file: &File, pages: &mut [Page], first: u64) -> Result<(), Error> {
    // Page 0 of the file is the header.
    let read = file.read_exact_at(bytemuck::cast_slice_mut(pages), (first + 1) * PAGE as u64);
    read.map_err(|source| Error::Read { path: path.to_path_buf(), part: format::part(first), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_written_through_the_cache_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for pages in [1, 2, 100] {
            std::fs::write(&path, vec![7; pages * PAGE]).unwrap();
            let file = File::open(&path).unwrap();
            // Some file systems do not tell.
            let tells = is_cached(&file, pages as u64);
            assert!(!tells || !is_cached(&file, pages as u64 + 1), "behind its end there is nothing");
        }
    }
}
