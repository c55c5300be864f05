//! Spill files: temporary files for data that exceeds the memory budget. Data is written in blocks, each with a
//! checksum that is verified when the block is read.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::FallocateFlags;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

/// Permissions of spill files, unit files and objects: they contain reads of patients, so only the user may read them.
pub(crate) const PRIVATE_FILE_MODE: u32 = 0o600;

/// An error with a spill file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(
        "cannot {operation} {file} ({:.1} GB so far): {source}; {}", *.file_bytes as f64 / 1e9,
        if *.operation == "write" { .file.write_error_advice() } else { .file.read_error_advice() }
    )]
    Io {
        /// Failed operation: `read`, `write` or `use`.
        operation: &'static str,
        /// Contents and location of the spill file, for messages.
        file: SpillFileLabel,
        /// Bytes in the file so far.
        file_bytes: u64,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The checksum of a block differs, or the file ends before the block does.
    #[error("{file} is damaged: the {len} bytes from byte {offset} on differ from what was written; {}", .file.read_error_advice())]
    Damaged {
        /// What the spill file contains, and where it is; for messages.
        file: SpillFileLabel,
        /// Offset of the block in bytes.
        offset: u64,
        /// Length of the block in bytes.
        len: usize,
    },
    /// The spill file has reached its maximum size.
    #[error("{file} has reached its limit of {:.1} GB; {}", *.max_bytes as f64 / 1e9, .file.write_error_advice())]
    Full {
        /// What the spill file contains, and where it is; for messages.
        file: SpillFileLabel,
        /// Maximum size of the file in bytes.
        max_bytes: u64,
    },
}

/// Contents and location of a spill file, as text for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillFileLabel {
    /// Noun for the contents of the file: `k-mer`, `sorting`.
    contents: &'static str,
    location: Location,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Location {
    /// A file without a name in this folder (O_TMPFILE): only this process can read it.
    Unnamed(PathBuf),
    /// A file with this path: a resumed run reads it.
    Named(PathBuf),
    /// Part of the object of this name in the run store: other steps read it.
    Object(String),
}

/// A local copy of a range of bytes of an object in the run store.
#[derive(Debug, Clone, Copy)]
pub struct LocalCopyOfObjectRange<'a> {
    /// Name of the object, for messages.
    pub name: &'a str,
    /// Path of the local file.
    pub path: &'a Path,
    /// Offset in the object of the first byte of the local file.
    pub object_offset: u64,
}

impl fmt::Display for SpillFileLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Location::Unnamed(folder) => write!(f, "the {} spill file in {}", self.contents, folder.display()),
            Location::Named(path) => write!(f, "the {} spill file {}", self.contents, path.display()),
            Location::Object(name) => write!(f, "{name} ({} part)", self.contents),
        }
    }
}

impl SpillFileLabel {
    /// Advice for the user if the file cannot be written.
    fn write_error_advice(&self) -> &'static str {
        match self.location {
            Location::Unnamed(_) => "give more memory, or a work folder with more free space",
            Location::Named(_) | Location::Object(_) => "give a work folder with more free space",
        }
    }

    /// Advice for the user if the file cannot be read or is damaged.
    fn read_error_advice(&self) -> &'static str {
        match self.location {
            Location::Unnamed(_) => "check the disk, then start again",
            Location::Named(_) => "check the disk, then remove that folder, or start again without --resume",
            Location::Object(_) => "check the disk, then run the step that made it again",
        }
    }
}

/// Location and checksum of one block of a spill file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpillBlock {
    /// Offset of the block in bytes.
    pub offset: u64,
    /// Length of the block in bytes.
    pub len: u32,
    /// Checksum of the block (XXH3, 64 bits).
    pub checksum: u64,
}

/// A spill file. A file without a name is created at the first write; nothing of it remains on disk, even if the
/// process is killed.
#[derive(Debug)]
pub struct SpillFile {
    name: SpillFileLabel,
    file: OnceLock<File>,
    /// Offset in the object of the first byte of the local file: offsets of blocks are counted from the start of the
    /// object.
    first_offset: u64,
    /// Maximum size of the file in bytes.
    max_bytes: u64,
    file_bytes: AtomicU64,
    written_bytes: AtomicU64,
    /// Offsets of freed blocks, to be reused.
    free_offsets: Mutex<Vec<u64>>,
}

impl SpillFile {
    /// Creates a spill file without a name in the folder `folder`. `contents` names its contents in messages.
    pub fn create_unnamed(contents: &'static str, folder: &Path) -> SpillFile {
        SpillFile::with_name(SpillFileLabel { contents, location: Location::Unnamed(folder.to_owned()) })
    }

    /// Sets the maximum size of the file in bytes.
    pub fn with_max_bytes(self, max_bytes: u64) -> SpillFile {
        SpillFile { max_bytes, ..self }
    }

    /// Creates a spill file at `path`, replacing the content of an existing file. Other users may not read a new file.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(contents: &'static str, path: &Path) -> Result<SpillFile, Error> {
        SpillFile::open_with_options(
            contents,
            path,
            File::options().read(true).write(true).create(true).truncate(true).mode(PRIVATE_FILE_MODE),
            "write",
        )
    }

    /// Opens an existing spill file at `path` for reading.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_for_reading(contents: &'static str, path: &Path) -> Result<SpillFile, Error> {
        SpillFile::open_with_options(contents, path, File::options().read(true), "read")
    }

    /// Opens `file`, the local copy of a range of an object in the run store, for reading blocks.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_object_copy(contents: &'static str, file: &LocalCopyOfObjectRange<'_>) -> Result<SpillFile, Error> {
        let spill = SpillFile::with_name(SpillFileLabel { contents, location: Location::Object(file.name.to_owned()) });
        let opened = File::open(file.path).map_err(spill.io_error("read"))?;
        Ok(SpillFile { file: OnceLock::from(opened), first_offset: file.object_offset, ..spill })
    }

    fn with_name(name: SpillFileLabel) -> SpillFile {
        let (end, written) = Default::default();
        SpillFile {
            name,
            file: OnceLock::new(),
            first_offset: 0,
            max_bytes: u64::MAX,
            file_bytes: end,
            written_bytes: written,
            free_offsets: Mutex::default(),
        }
    }

    fn open_with_options(
        contents: &'static str,
        path: &Path,
        open: &OpenOptions,
        operation: &'static str,
    ) -> Result<SpillFile, Error> {
        let spill = SpillFile::with_name(SpillFileLabel { contents, location: Location::Named(path.to_owned()) });
        let file = open.open(path).map_err(spill.io_error(operation))?;
        Ok(SpillFile { file: OnceLock::from(file), ..spill })
    }

    /// Total number of bytes written so far; if space is reused, each write counts.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Relaxed)
    }

    /// Maximum size of the file so far in bytes, including freed blocks.
    pub fn peak_file_bytes(&self) -> u64 {
        self.file_bytes.load(Relaxed)
    }

    /// Writes `bytes` as one block, which takes `slot_bytes` bytes of the file. The space of freed blocks
    /// ([`SpillFile::free_block`]) is reused, so all blocks of a file must have the same `slot_bytes` if blocks are
    /// freed.
    ///
    /// # Errors
    /// The file cannot be written or has reached its maximum size.
    pub fn write_block(&self, bytes: &[u8], slot_bytes: usize) -> Result<SpillBlock, Error> {
        let freed = self.free_offsets.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let offset = freed.map_or_else(|| self.allocate_slot(slot_bytes as u64), Ok)?;
        let file = self.file_or_create().map_err(self.io_error("write"))?;
        file.write_all_at(bytes, offset).map_err(self.io_error("write"))?;
        self.written_bytes.fetch_add(bytes.len() as u64, Relaxed);
        Ok(SpillBlock { offset, len: bytes.len() as u32, checksum: XxHash3_64::oneshot(bytes) })
    }

    /// Extends the file by a slot of `slot_bytes` and returns the offset of the slot.
    fn allocate_slot(&self, slot_bytes: u64) -> Result<u64, Error> {
        let extend = |end: u64| end.checked_add(slot_bytes).filter(|&end| end <= self.max_bytes);
        let offset = self.file_bytes.fetch_update(Relaxed, Relaxed, extend);
        offset.map_err(|_| Error::Full { file: self.name.clone(), max_bytes: self.max_bytes })
    }

    /// Reads a block into `into` and verifies its checksum.
    ///
    /// # Errors
    /// The file cannot be read, or the block is damaged.
    pub fn read_block(&self, block: &SpillBlock, into: &mut Vec<u8>) -> Result<(), Error> {
        let file = self.file_or_create().map_err(self.io_error("read"))?;
        into.resize(block.len as usize, 0);
        let Some(offset_in_file) = block.offset.checked_sub(self.first_offset) else {
            return Err(self.damaged_block_error(block));
        };
        match file.read_exact_at(into, offset_in_file) {
            Ok(()) if XxHash3_64::oneshot(into) == block.checksum => Ok(()),
            // A file that ends before the block ends is damaged, too.
            Err(e) if e.kind() != ErrorKind::UnexpectedEof => Err(self.io_error("read")(e)),
            _ => Err(self.damaged_block_error(block)),
        }
    }

    /// Creates the error for a block whose bytes differ from those that were written.
    pub fn damaged_block_error(&self, block: &SpillBlock) -> Error {
        Error::Damaged { file: self.name.clone(), offset: block.offset, len: block.len as usize }
    }

    /// Frees the space of a block in the file, so that a later block can be written there.
    pub fn free_block(&self, block: SpillBlock) {
        self.free_offsets.lock().unwrap_or_else(PoisonError::into_inner).push(block.offset);
    }

    /// Releases the disk space of a block (fallocate with FALLOC_FL_PUNCH_HOLE). Its contents are lost.
    pub fn punch_hole_at_block(&self, block: SpillBlock) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if let Some(file) = self.file.get() {
            // Some file systems do not support this; then the space is released with the file.
            let _ = rustix::fs::fallocate(file, hole, block.offset, block.len.into());
        }
    }

    /// Releases all disk space of the file, which must not be read afterwards.
    pub fn release_all_disk_space(&self) {
        if let Some(file) = self.file.get() {
            // If truncation fails, the space is released when the file is closed.
            let _ = file.set_len(0);
        }
    }

    /// Waits until all written data is on the disk (fsync).
    ///
    /// # Errors
    /// The system call failed.
    pub fn sync_to_disk(&self) -> Result<(), Error> {
        self.file.get().map_or(Ok(()), |file| file.sync_all().map_err(self.io_error("write")))
    }

    fn file_or_create(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let Location::Unnamed(folder) = &self.name.location else { return Err(ErrorKind::NotFound.into()) };
        let made = tempfile::tempfile_in(folder)?;
        Ok(self.file.get_or_init(|| made))
    }

    /// Creates the error for a value that cannot be serialised or deserialised.
    pub(crate) fn serialisation_error(&self, why: &postcard::Error) -> Error {
        self.io_error("use")(io::Error::other(why.to_string()))
    }

    fn io_error(&self, operation: &'static str) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| Error::Io {
            operation,
            file: self.name.clone(),
            file_bytes: self.file_bytes.load(Relaxed),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_reported() {
        let spill = SpillFile::create_unnamed("k-mer", Path::new("/scratch"));
        spill.file.set(File::options().write(true).open("/dev/full").unwrap()).unwrap();
        assert_eq!(
            spill.write_block(b"bytes", 4096).unwrap_err().to_string(),
            "cannot write the k-mer spill file in /scratch (0.0 GB so far): No space left on device (os error 28); \
             give more memory, or a work folder with more free space"
        );
        let message = SpillFile::create_unnamed("sorting", Path::new("/no/such"))
            .write_block(b"bytes", 5)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("cannot write the sorting spill file in /no/such (0.0 GB so far): No such"),
            "{message}"
        );
    }

    #[test]
    fn a_file_grows_to_its_limit_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let spill = SpillFile::create_unnamed("k-mer", folder.path()).with_max_bytes(10_000);
        let [first, second] = [1, 2].map(|byte| spill.write_block(&[byte; 3000], 4096).unwrap());
        let message = spill.write_block(&[3; 3000], 4096).unwrap_err().to_string();
        assert!(message.contains("has reached its limit of 0.0 GB; give more memory"), "{message}");
        spill.free_block(first);
        let third = spill.write_block(&[3; 3000], 4096).unwrap();
        let mut buffer = Vec::new();
        for (byte, piece) in [(3, third), (2, second)] {
            spill.read_block(&piece, &mut buffer).unwrap();
            assert_eq!(buffer, [byte; 3000]);
        }
        assert_eq!((spill.peak_file_bytes(), spill.written_bytes()), (8192, 9000));
        let nothing = SpillFile::create_unnamed("k-mer", Path::new("/no/such")).with_max_bytes(0);
        assert!(matches!(nothing.write_block(b"bytes", 5), Err(Error::Full { max_bytes: 0, .. })));
    }

    #[test]
    fn a_flipped_bit_is_reported_with_its_offset() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bins");
        let spill = SpillFile::create("k-mer", &path).unwrap();
        let pieces = [1, 2].map(|byte| spill.write_block(&[byte; 3000], 4096).unwrap());
        spill.sync_to_disk().unwrap();
        let spill = SpillFile::open_for_reading("k-mer", &path).unwrap();
        File::options().write(true).open(&path).unwrap().write_all_at(&[2 ^ 64], 4096 + 1234).unwrap();
        let mut buffer = Vec::new();
        spill.read_block(&pieces[0], &mut buffer).unwrap();
        assert_eq!(buffer, [1; 3000]);
        let again = "check the disk, then remove that folder, or start again without --resume";
        for len in [2 * 4096, 4096] {
            File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
            assert_eq!(
                spill.read_block(&pieces[1], &mut buffer).unwrap_err().to_string(),
                format!(
                    "the k-mer spill file {} is damaged: the 3000 bytes from byte 4096 on differ from what was written; {again}",
                    path.display()
                )
            );
        }
    }

    #[test]
    fn a_file_without_a_name_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spill = SpillFile::create_unnamed("sorting", folder.path());
        let pieces: Vec<SpillBlock> = (0..9).map(|byte| spill.write_block(&[byte; 5000], 5000).unwrap()).collect();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut buffer = Vec::new();
        for (byte, piece) in pieces.iter().enumerate().rev() {
            spill.read_block(piece, &mut buffer).unwrap();
            assert_eq!(buffer, [byte as u8; 5000]);
            spill.punch_hole_at_block(*piece);
        }
        assert_eq!(spill.written_bytes(), 9 * 5000);
    }
}
