//! Reads a whole file into newly mapped pages.

use std::fs::File;
use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use genuma_machine::placement;
use memmap2::{Advice, MmapMut};

use super::Error;

/// The content of a file in memory.
pub(super) struct FileImage {
    pub(super) path: PathBuf,
    pages: MmapMut,
    start: usize,
}

impl FileImage {
    /// Reads a file; the content begins after `start` unused bytes. The calling thread touches all pages first, so
    /// that its memory policy decides where the pages are.
    pub(super) fn read_file(path: &Path, start: usize) -> Result<FileImage, Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        let size = file.metadata().map_err(Error::io(path))?.len();
        let pages = read_into_pages(file, size, start).map_err(Error::io(path))?;
        Ok(FileImage { path: path.into(), pages, start })
    }

    /// The error that this index file cannot be used, with the reason.
    pub(super) fn index_error(&self, reason: impl Into<String>) -> Error {
        Error::Index { path: self.path.clone(), reason: reason.into() }
    }

    /// The error that this index file is damaged.
    pub(super) fn damaged_error(&self) -> Error {
        self.index_error("cut short or damaged")
    }

    /// The first `N` 64-bit numbers of the file, which must begin with `magic`.
    pub(super) fn header_numbers<const N: usize>(&self, magic: &[u8]) -> Result<[u64; N], Error> {
        let mut numbers = [[0; 8]; N];
        match self.get(..8 * N) {
            Some(bytes) if bytes.starts_with(magic) => numbers.as_flattened_mut().copy_from_slice(bytes),
            _ => return Err(self.index_error("not an index of minibwa")),
        }
        Ok(numbers.map(u64::from_le_bytes))
    }
}

impl Deref for FileImage {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.pages[self.start..]
    }
}

fn read_into_pages(mut from: impl Read, size: u64, start: usize) -> io::Result<MmapMut> {
    let all = usize::try_from(size).ok().and_then(|size| size.checked_add(start));
    let mut pages = MmapMut::map_anon(all.ok_or(io::ErrorKind::OutOfMemory)?)?;
    // Requesting huge pages before reading costs a third of collapsing small pages later. A kernel without huge pages
    // refuses the request.
    let advice = if placement::is_new_memory_on_one_node() { Advice::HugePage } else { Advice::NoHugePage };
    let _ = pages.advise(advice);
    from.read_exact(&mut pages[start..])?;
    Ok(pages)
}

/// Byte ranges of consecutive arrays, each given as number of items and item size, and the total size; `None` if the
/// total size overflows.
pub(super) fn array_byte_ranges<const N: usize>(arrays: [(u64, u64); N]) -> Option<([Range<usize>; N], usize)> {
    let mut end = 0usize;
    let mut ranges = [const { 0..0 }; N];
    for (range, (items, size)) in ranges.iter_mut().zip(arrays) {
        let start = end;
        end = end.checked_add(usize::try_from(items.checked_mul(size)?).ok()?)?;
        *range = start..end;
    }
    Some((ranges, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that ends with an error.
    struct Broken(usize);

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
            let n = buffer.len().min(self.0).min(7);
            self.0 -= n;
            Ok(n)
        }
    }

    #[test]
    fn what_cannot_be_read_to_its_end_is_not_taken() {
        assert_eq!(read_into_pages(Broken(100), 100, 16).unwrap().len(), 116);
        for broken in [0, 1, 99] {
            let error = read_into_pages(Broken(broken), 100, 16).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EIO));
        }
        assert_eq!(read_into_pages(&b"short"[..], 6, 16).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(read_into_pages(io::empty(), u64::MAX, 16).is_err());
    }

    #[test]
    fn no_array_lies_beyond_memory() {
        assert_eq!(array_byte_ranges([(2, 8), (3, 1)]), Some(([0..16, 16..19], 19)));
        assert_eq!(array_byte_ranges([(u64::MAX, 8)]), None);
        assert_eq!(array_byte_ranges([(u64::MAX - 7, 1), (8, 1)]), None);
    }
}
