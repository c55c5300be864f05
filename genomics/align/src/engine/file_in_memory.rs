//! Reads a whole file into anonymous memory (mmap).

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

use genuma_machine::placement;
use memmap2::{Advice, MmapMut};

use super::Error;

/// The content of a file in memory.
pub(super) struct FileInMemory {
    pages: MmapMut,
}

impl FileInMemory {
    /// Reads a file into memory. The calling thread is the first to write to the pages, so that its memory policy
    /// decides on which NUMA nodes they are.
    pub(super) fn read_file(path: &Path) -> Result<FileInMemory, Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        let size = file.metadata().map_err(Error::io(path))?.len();
        Ok(FileInMemory { pages: read_into_pages(file, size).map_err(Error::io(path))? })
    }
}

impl Deref for FileInMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.pages
    }
}

fn read_into_pages(mut from: impl Read, size: u64) -> io::Result<MmapMut> {
    let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut pages = MmapMut::map_anon(size)?;
    // Requesting huge pages before reading costs a third of collapsing small pages later. A kernel without huge pages
    // refuses the request.
    let advice = if placement::thread_policy_uses_one_node() { Advice::HugePage } else { Advice::NoHugePage };
    let _ = pages.advise(advice);
    from.read_exact(&mut pages)?;
    Ok(pages)
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
        assert_eq!(read_into_pages(Broken(100), 100).unwrap().len(), 100);
        for broken in [0, 1, 99] {
            let error = read_into_pages(Broken(broken), 100).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EIO));
        }
        assert_eq!(read_into_pages(&b"short"[..], 6).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(read_into_pages(io::empty(), u64::MAX).is_err());
    }
}
