//! Extents: the pieces in which bins grow, in memory as long as it lasts and in one spill file beyond.
//!
//! All bins of a count share one pool. When no more extents may be in memory, a full one is written to the spill file, at
//! a multiple of the extent size, with its checksum kept in memory. Places in the file are used again. A count that can be
//! taken up again has a pool of each kind of bins; all its extents are in a file with a name, each at a place of its own.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::Error;

/// Who hands out extents.
#[derive(Debug)]
pub struct Pool {
    extent: usize,
    /// Full extents that may still stay in memory.
    spare: AtomicUsize,
    spill: Spill,
}

/// A full extent.
#[derive(Debug)]
pub enum Extent {
    /// In memory.
    Memory(Vec<u8>),
    /// In the spill file.
    File(Piece),
}

/// A piece of the spill file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Where it starts.
    pub at: u64,
    /// Bytes that count.
    pub len: u32,
    /// Their checksum.
    pub sum: u64,
}

/// Where a spill file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpillFile {
    /// In this folder, without a name: nobody but this process reads it.
    In(PathBuf),
    /// Under this name: a count that is taken up again reads it.
    At(PathBuf),
}

impl Default for SpillFile {
    fn default() -> Self {
        Self::In(PathBuf::new())
    }
}

impl fmt::Display for SpillFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(folder) => write!(f, "the k-mer spill file in {}", folder.display()),
            Self::At(path) => write!(f, "the k-mer spill file {}", path.display()),
        }
    }
}

impl SpillFile {
    /// What to do when it cannot be written.
    pub(crate) fn more_room(&self) -> &'static str {
        match self {
            Self::In(_) => "give more memory, or a work folder with more room",
            Self::At(_) => "give a work folder with more room",
        }
    }

    /// What to do when it cannot be read, or is damaged.
    pub(crate) fn again(&self) -> &'static str {
        match self {
            Self::In(_) => "check the disk, then start again",
            Self::At(_) => "check the disk, then remove that folder, or start again without --resume",
        }
    }
}

impl Pool {
    /// Extents of `extent` bytes, of which `spare` full ones may be in memory; the others go to a file in `work`.
    pub fn new(extent: usize, spare: usize, work: &Path) -> Arc<Self> {
        let spill = Spill { place: SpillFile::In(work.to_owned()), ..Spill::default() };
        Arc::new(Self { extent, spare: AtomicUsize::new(spare), spill })
    }

    /// Extents of `extent` bytes, all of them in a new file at `path`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn named(extent: usize, path: &Path) -> Result<Arc<Self>, Error> {
        let mut open = File::options();
        Self::at(extent, path, open.read(true).write(true).create(true).truncate(true), "write")
    }

    /// Extents of `extent` bytes that lie in the file at `path`, for reading only.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn reopened(extent: usize, path: &Path) -> Result<Arc<Self>, Error> {
        Self::at(extent, path, File::options().read(true), "read")
    }

    fn at(extent: usize, path: &Path, open: &OpenOptions, doing: &'static str) -> Result<Arc<Self>, Error> {
        let spill = Spill { place: SpillFile::At(path.to_owned()), ..Spill::default() };
        let file = open.open(path).map_err(|e| spill.error(doing, e))?;
        Ok(Arc::new(Self {
            extent,
            spare: AtomicUsize::new(0),
            spill: Spill { file: OnceLock::from(file), ..spill },
        }))
    }

    /// Bytes of an extent.
    pub fn extent(&self) -> usize {
        self.extent
    }

    /// Bytes written to the spill file so far.
    pub fn spilled(&self) -> u64 {
        self.spill.written.load(Relaxed)
    }

    /// Puts the records of `open` away and empties it.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn put(&self, open: &mut Vec<u8>) -> Result<Extent, Error> {
        if self.spare.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok() {
            return Ok(Extent::Memory(std::mem::replace(open, Vec::with_capacity(self.extent))));
        }
        let piece = self.spill.write(open, self.extent)?;
        open.clear();
        Ok(Extent::File(piece))
    }

    /// The records of an extent; those in the file come by way of `buffer`.
    ///
    /// # Errors
    /// The spill file cannot be read, or is not as it was written.
    pub fn get<'a>(&self, extent: &'a Extent, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        match extent {
            Extent::Memory(records) => Ok(records),
            Extent::File(piece) => {
                self.spill.read(piece, buffer)?;
                Ok(buffer)
            }
        }
    }

    /// Takes an extent back.
    pub fn free(&self, extent: Extent) {
        match extent {
            Extent::Memory(_) => _ = self.spare.fetch_add(1, Relaxed),
            Extent::File(piece) => lock(&self.spill.free).push(piece.at),
        }
    }

    /// Moves an extent to the file. Its memory is not handed out again.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn evict(&self, extent: &mut Extent) -> Result<(), Error> {
        if let Extent::Memory(records) = extent {
            *extent = Extent::File(self.spill.write(records, self.extent)?);
        }
        Ok(())
    }

    /// Moves an extent to the file for good.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn settle(&self, extent: Extent) -> Result<Piece, Error> {
        match extent {
            Extent::Memory(records) => self.spill.write(&records, self.extent),
            Extent::File(piece) => Ok(piece),
        }
    }

    /// Waits until all that was written is on the disk.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&self) -> Result<(), Error> {
        let Some(file) = self.spill.file.get() else { return Ok(()) };
        file.sync_all().map_err(|e| self.spill.error("write", e))
    }

    /// Nothing more stays in memory.
    pub fn close(&self) {
        self.spare.store(0, Relaxed);
    }
}

/// The spill file. One without a name is made at the first write, so that nothing is left behind even by a kill.
#[derive(Debug, Default)]
struct Spill {
    place: SpillFile,
    file: OnceLock<File>,
    end: AtomicU64,
    written: AtomicU64,
    /// Places that hold nothing any more.
    free: Mutex<Vec<u64>>,
}

impl Spill {
    /// Writes `records` to a place of `size` bytes.
    fn write(&self, records: &[u8], size: usize) -> Result<Piece, Error> {
        let file = self.file().map_err(|e| self.error("write", e))?;
        let free = lock(&self.free).pop();
        let at = free.unwrap_or_else(|| self.end.fetch_add(size as u64, Relaxed));
        file.write_all_at(records, at).map_err(|e| self.error("write", e))?;
        self.written.fetch_add(records.len() as u64, Relaxed);
        Ok(Piece { at, len: records.len() as u32, sum: XxHash3_64::oneshot(records) })
    }

    fn read(&self, piece: &Piece, into: &mut Vec<u8>) -> Result<(), Error> {
        let file = self.file().map_err(|e| self.error("read", e))?;
        into.resize(piece.len as usize, 0);
        match file.read_exact_at(into, piece.at) {
            Ok(()) if XxHash3_64::oneshot(into) == piece.sum => Ok(()),
            // A file that ends too early is damaged as well.
            Err(e) if e.kind() != ErrorKind::UnexpectedEof => Err(self.error("read", e)),
            _ => Err(Error::Damaged { file: self.place.clone(), at: piece.at, len: into.len() }),
        }
    }

    fn file(&self) -> std::io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let SpillFile::In(work) = &self.place else { return Err(ErrorKind::NotFound.into()) };
        let made = tempfile::tempfile_in(work)?;
        Ok(self.file.get_or_init(|| made))
    }

    fn error(&self, doing: &'static str, source: std::io::Error) -> Error {
        Error::Spill { doing, file: self.place.clone(), at: self.end.load(Relaxed), source }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told() {
        let mut pool = Pool::new(4096, 0, Path::new("/scratch"));
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        Arc::get_mut(&mut pool).expect("only here").spill.file = OnceLock::from(full);
        let error = pool.put(&mut vec![0; 4000]).expect_err("no room");
        assert_eq!(
            error.to_string(),
            "cannot write the k-mer spill file in /scratch (0.0 GB so far): No space left on device (os error 28); \
             give more memory, or a work folder with more room"
        );
    }

    #[test]
    fn a_flipped_bit_is_told_with_its_place() {
        let dir = tempfile::tempdir().expect("a folder");
        let pool = Pool::new(4096, 1, dir.path());
        let extents: Vec<_> = (0..3).map(|i| pool.put(&mut vec![i; 3000]).expect("room")).collect();
        assert!(matches!(extents[0], Extent::Memory(_)));
        let mut buffer = Vec::new();
        for (i, extent) in extents.iter().enumerate() {
            assert_eq!(pool.get(extent, &mut buffer).expect("whole"), [i as u8; 3000]);
        }
        let file = pool.spill.file.get().expect("made");
        file.write_all_at(&[2 ^ 64], 4096 + 1234).expect("written");
        pool.get(&extents[1], &mut buffer).expect("still whole");
        assert_eq!(
            pool.get(&extents[2], &mut buffer).expect_err("damaged").to_string(),
            format!(
                "the k-mer spill file in {} is damaged: the 3000 bytes from byte 4096 on are not what was written; \
                 check the disk, then start again",
                dir.path().display()
            )
        );
    }

    #[test]
    fn places_are_used_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let pool = Pool::new(4096, 1, dir.path());
        let put = |byte| pool.put(&mut vec![byte; 100]).expect("room");
        let [memory, first, second] = [put(1), put(2), put(3)];
        pool.free(first);
        assert!(matches!(put(4), Extent::File(Piece { at: 0, .. })));
        pool.free(memory);
        let mut extent = put(5);
        assert!(matches!(extent, Extent::Memory(_)));
        pool.free(second);
        pool.evict(&mut extent).expect("room");
        assert!(matches!(extent, Extent::File(Piece { at: 4096, .. })));
        assert_eq!(pool.get(&extent, &mut Vec::new()).expect("whole"), [5; 100]);
        assert_eq!(pool.spilled(), 400);
    }
}
