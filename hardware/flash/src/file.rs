//! Files in whole pages, past the kernel's cache where the file system lets them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Once;

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
pub fn write_direct(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().write(true), path)
}

/// A file for reading whole pages to page-aligned memory.
pub fn open_direct(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path)
}

/// Writes pages from page `first` of the file on.
pub fn write_pages(file: &File, pages: &[Page], first: u64) -> io::Result<()> {
    file.write_all_at(bytemuck::cast_slice(pages), first * PAGE as u64)
}

/// Reads pages of entries of the table `path`, from page `first` on, counted from 0.
///
/// # Errors
/// The file cannot be read.
pub fn read_pages(path: &Path, file: &File, pages: &mut [Page], first: u64) -> Result<(), Error> {
    // Page 0 of the file is the header.
    let read = file.read_exact_at(bytemuck::cast_slice_mut(pages), (first + 1) * PAGE as u64);
    read.map_err(|source| Error::Read { path: path.to_path_buf(), part: format::part(first), source })
}
