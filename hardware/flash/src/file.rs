//! Opens and reads table files in whole pages, with direct I/O (bypassing the page cache) where the file system
//! supports it.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Once;

use rustix::io::{ReadWriteFlags, preadv2};

use crate::Error;
use crate::format::{self, PAGE_BYTES, Page};

/// Opens a file with `O_DIRECT`, or without it if the file system does not support it.
fn open_with_direct_io(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    match options.custom_flags(libc::O_DIRECT).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            static WARN_ONCE: Once = Once::new();
            WARN_ONCE.call_once(|| {
                tracing::warn!(
                    "{}: the file system does not support direct I/O, so tables use the page cache: results are the same, but may \
                     take longer; a table on a local disk is faster",
                    path.display()
                );
            });
            options.custom_flags(0).open(path)
        }
        opened => opened,
    }
}

/// Opens a file to write whole pages from page-aligned memory, with direct I/O if the file system supports it.
pub(crate) fn open_for_direct_writing(path: &Path) -> io::Result<File> {
    open_with_direct_io(OpenOptions::new().write(true), path)
}

/// Opens a file to read whole pages into page-aligned memory, with direct I/O if the file system supports it.
pub(crate) fn open_for_direct_reading(path: &Path) -> io::Result<File> {
    open_with_direct_io(OpenOptions::new().read(true), path)
}

/// Number of evenly spaced pages that must be in the page cache for a file to count as cached; all pages of a smaller
/// file must be.
const NUM_SAMPLED_PAGES: u64 = 16;

/// Whether a file of `pages` pages (at least one) is probably in the page cache, so that reading through the page cache
/// is faster. Checks only some pages. `file` must not be open for direct I/O.
pub(crate) fn is_probably_in_page_cache(file: &File, pages: u64) -> bool {
    let mut page = [0; PAGE_BYTES];
    let asked = NUM_SAMPLED_PAGES.min(pages);
    (0..asked).all(|i| {
        let at = (pages - 1) * i / (asked - 1).max(1) * PAGE_BYTES as u64;
        // NOWAIT: does not wait for the disk.
        let read = preadv2(file, &mut [IoSliceMut::new(&mut page)], at, ReadWriteFlags::NOWAIT);
        read.is_ok_and(|bytes| bytes == PAGE_BYTES)
    })
}

/// Writes pages to a file, starting at page `first`.
pub(crate) fn write_pages(file: &File, pages: &[Page], first: u64) -> io::Result<()> {
    file.write_all_at(bytemuck::cast_slice(pages), first * PAGE_BYTES as u64)
}

/// Reads pages of entries of the table at `path`, starting at page `first` (from 0, not counting the header).
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read_entry_pages(path: &Path, file: &File, pages: &mut [Page], first: u64) -> Result<(), Error> {
    // Page 0 of the file is the header.
    let read = file.read_exact_at(bytemuck::cast_slice_mut(pages), (first + 1) * PAGE_BYTES as u64);
    read.map_err(|source| Error::Read { path: path.to_path_buf(), part: format::table_part_of_page(first), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_written_through_the_cache_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for pages in [1, 2, 100] {
            std::fs::write(&path, vec![7; pages * PAGE_BYTES]).unwrap();
            let file = File::open(&path).unwrap();
            // Some file systems do not support NOWAIT.
            let tells = is_probably_in_page_cache(&file, pages as u64);
            assert!(!tells || !is_probably_in_page_cache(&file, pages as u64 + 1), "behind its end there is nothing");
        }
    }
}
