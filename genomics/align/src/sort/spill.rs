//! The spill file: where sorted runs wait that memory has no room for.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::FallocateFlags;

use super::Error;
use super::pack::{Packer, unpack};

/// Made at the first write and without a name, so that nothing is left behind even by a kill.
#[derive(Debug)]
pub(crate) struct Spill {
    folder: PathBuf,
    file: OnceLock<File>,
    end: AtomicU64,
}

/// A piece of a run in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    at: u64,
    packed: u32,
    /// Bytes once unpacked.
    size: u32,
}

impl Spill {
    /// Nothing yet; the file will be in `folder`.
    pub(crate) fn new(folder: &Path) -> Spill {
        Spill { folder: folder.to_owned(), file: OnceLock::new(), end: AtomicU64::new(0) }
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.end.load(Relaxed)
    }

    /// Packs `items` and writes them wherever there is room. `scratch` is for reuse.
    pub(crate) fn write(
        &self,
        items: &[u8],
        packer: &mut Packer,
        scratch: &mut Vec<u8>,
    ) -> Result<Extent, Error> {
        packer.pack(items, scratch);
        let at = self.end.fetch_add(scratch.len() as u64, Relaxed);
        self.file().and_then(|f| f.write_all_at(scratch, at)).map_err(|e| self.error("write", e))?;
        Ok(Extent { at, packed: scratch.len() as u32, size: items.len() as u32 })
    }

    /// Reads a piece back and gives its room back to the disk: a piece is read once.
    pub(crate) fn take(&self, extent: Extent, scratch: &mut Vec<u8>) -> Result<Vec<u8>, Error> {
        scratch.resize(extent.packed as usize, 0);
        let file = self.file().map_err(|e| self.error("read", e))?;
        file.read_exact_at(scratch, extent.at).map_err(|e| self.error("read", e))?;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Some file systems cannot; then the room comes back at the end.
        let _ = rustix::fs::fallocate(file, hole, extent.at, extent.packed.into());
        unpack(scratch, extent.size as usize).map_err(|e| self.error("read", e))
    }

    fn file(&self) -> std::io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let made = tempfile::tempfile_in(&self.folder)?;
        Ok(self.file.get_or_init(|| made))
    }

    fn error(&self, doing: &'static str, source: std::io::Error) -> Error {
        Error::Spill { doing, folder: self.folder.clone(), at: self.written(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told() {
        let spill = Spill::new(Path::new("/scratch"));
        spill
            .file
            .set(File::options().write(true).open("/dev/full").expect("Linux has it"))
            .expect("none yet");
        let error = spill.write(b"items", &mut Packer, &mut Vec::new()).expect_err("no room");
        assert_eq!(
            error.to_string(),
            "cannot write the sorting spill file in /scratch (0.0 GB so far): No space left on device (os error 28); \
             give more memory, or a work folder with more room"
        );
    }

    #[test]
    fn what_goes_in_comes_out_and_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let spill = Spill::new(folder.path());
        let (mut packer, mut scratch) = (Packer, Vec::new());
        let pieces: Vec<Vec<u8>> =
            (0..50u32).map(|i| (0..i * 997).map(|b| ((b * i) >> 4) as u8).collect()).collect();
        let extents: Vec<Extent> =
            pieces.iter().map(|p| spill.write(p, &mut packer, &mut scratch).expect("room")).collect();
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0, "the file has no name");
        for (piece, extent) in pieces.iter().zip(extents).rev() {
            assert!(spill.take(extent, &mut scratch).expect("readable") == *piece);
        }
        assert!(spill.written() > 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let spill = Spill::new(Path::new("/no/such/folder"));
        let error = spill.write(b"items", &mut Packer, &mut Vec::new()).expect_err("no folder");
        assert!(
            error.to_string().starts_with("cannot write the sorting spill file in /no/such/folder"),
            "{error}"
        );
    }
}
