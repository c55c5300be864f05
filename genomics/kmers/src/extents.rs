//! Extents: the pieces in which bins grow, in memory as long as it lasts and in one spill file beyond.
//!
//! All bins of a count share one pool, which has a slab of memory on each node; an extent is of the slab of its bin's node as
//! long as that has one. When no more extents may be in memory, a full one is written to the spill file, at
//! a multiple of the extent size, with its checksum kept in memory. Places in the file are used again. A count that can be
//! taken up again has a pool of each kind of bins; all its extents are in a file with a name, each at a place of its own.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use genuma_machine::placement::{Piece as Lent, Slab};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::Error;
use crate::nodes::{NodeShare, Nodes};

/// Who hands out extents.
#[derive(Debug)]
pub struct Pool {
    extent: usize,
    nodes: Nodes,
    /// One of each node.
    slabs: Vec<Arc<Slab>>,
    /// Full extents that may still stay in memory.
    spare: AtomicUsize,
    spill: Spill,
}

/// An extent in memory, full or being filled.
#[derive(Debug)]
pub struct Records {
    memory: Lent,
    len: usize,
}

impl Records {
    /// Whether `more` bytes have room.
    pub fn fits(&self, more: usize) -> bool {
        self.len + more <= self.memory.len()
    }

    /// Appends what [`Records::fits`].
    pub fn push(&mut self, records: &[u8]) {
        self.memory[self.len..self.len + records.len()].copy_from_slice(records);
        self.len += records.len();
    }

    /// All that was appended.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

/// A full extent.
#[derive(Debug)]
pub enum Extent {
    /// In memory.
    Memory(Records),
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
    /// Extents of `extent` bytes, in memory `open` that are being filled at most, and `spare` full ones; the others go to a file in
    /// `work`.
    ///
    /// # Errors
    /// The system has no memory to give.
    pub fn new(
        extent: usize,
        open: usize,
        spare: usize,
        nodes: Nodes,
        work: &Path,
    ) -> Result<Arc<Self>, Error> {
        let spill = Spill { place: SpillFile::In(work.to_owned()), ..Spill::default() };
        Self::with(spill, extent, open, spare, nodes)
    }

    /// Extents of `extent` bytes, all full ones in a new file at `path`, and `open` being filled in memory.
    ///
    /// # Errors
    /// The file cannot be made, or the system has no memory to give.
    pub fn named(extent: usize, open: usize, nodes: Nodes, path: &Path) -> Result<Arc<Self>, Error> {
        let mut file = File::options();
        file.read(true).write(true).create(true).truncate(true);
        Self::with(Spill::at(path, &file, "write")?, extent, open, 0, nodes)
    }

    /// Extents of `extent` bytes that lie in the file at `path`, for reading only.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn reopened(extent: usize, nodes: Nodes, path: &Path) -> Result<Arc<Self>, Error> {
        Self::with(Spill::at(path, File::options().read(true), "read")?, extent, 0, 0, nodes)
    }

    fn with(
        spill: Spill,
        extent: usize,
        open: usize,
        spare: usize,
        nodes: Nodes,
    ) -> Result<Arc<Self>, Error> {
        // As bins belong to nodes.
        let mut shares = vec![0; nodes.len()];
        (0..open + spare).for_each(|i| shares[nodes.of_bin(i)] += 1);
        let slabs = shares.into_iter().enumerate();
        let slabs = slabs.map(|(node, extents)| Slab::new(extent, extents, nodes.id(node)));
        let slabs = slabs.collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { extent, nodes, slabs, spare: AtomicUsize::new(spare), spill }))
    }

    /// Where memory and threads are.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Where the memory is, node by node; nothing where there is but one, or the kernel does not tell.
    pub fn shares(&self) -> Vec<NodeShare> {
        let share = |(node, slab): (usize, &Arc<Slab>)| {
            let (id, found) = (self.nodes.id(node)?, slab.residence().ok()?);
            let on = |id| found.nodes.get(&id).copied().unwrap_or(0) * found.page;
            let here = on(id);
            let elsewhere = found.present() * found.page - here;
            Some(NodeShare { node: id, threads: self.nodes.threads(node), here, elsewhere })
        };
        self.slabs.iter().enumerate().filter_map(share).collect()
    }

    /// Bytes of an extent.
    pub fn extent(&self) -> usize {
        self.extent
    }

    /// Bytes written to the spill file so far.
    pub fn spilled(&self) -> u64 {
        self.spill.written.load(Relaxed)
    }

    /// Memory of `node`, or of another when that has none left.
    ///
    /// # Panics
    /// There is none, because more are being filled than was said, or full ones were not put away.
    pub fn open(&self, node: usize) -> Records {
        let (others, first) = self.slabs.split_at(node);
        let memory = first.iter().chain(others).find_map(Slab::take).expect("an extent for each bin");
        Records { memory, len: 0 }
    }

    /// Puts the records of `open` away, and makes it empty memory of `node`.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn put(&self, open: &mut Records, node: usize) -> Result<Extent, Error> {
        if self.spare.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok() {
            return Ok(Extent::Memory(std::mem::replace(open, self.open(node))));
        }
        let piece = self.spill.write(open.bytes(), self.extent)?;
        open.len = 0;
        Ok(Extent::File(piece))
    }

    /// The records of an extent; those in the file come by way of `buffer`.
    ///
    /// # Errors
    /// The spill file cannot be read, or is not as it was written.
    pub fn get<'a>(&self, extent: &'a Extent, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        match extent {
            Extent::Memory(records) => Ok(records.bytes()),
            Extent::File(piece) => {
                self.spill.read(piece, buffer)?;
                Ok(buffer)
            }
        }
    }

    /// Takes an extent back.
    pub fn free(&self, extent: Extent) {
        match extent {
            Extent::Memory(records) => {
                drop(records);
                self.spare.fetch_add(1, Relaxed);
            }
            Extent::File(piece) => lock(&self.spill.free).push(piece.at),
        }
    }

    /// Moves an extent to the file.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn evict(&self, extent: &mut Extent) -> Result<(), Error> {
        if let Extent::Memory(records) = extent {
            *extent = Extent::File(self.spill.write(records.bytes(), self.extent)?);
        }
        Ok(())
    }

    /// Moves an extent to the file for good.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn settle(&self, extent: Extent) -> Result<Piece, Error> {
        match extent {
            Extent::Memory(records) => self.spill.write(records.bytes(), self.extent),
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

    /// Gives memory that holds nothing back to the system.
    ///
    /// # Errors
    /// The system refuses.
    pub fn release(&self) -> Result<(), Error> {
        self.slabs.iter().try_for_each(|slab| slab.release().map_err(Error::from))
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
    /// The file at `path`.
    fn at(path: &Path, open: &OpenOptions, doing: &'static str) -> Result<Self, Error> {
        let spill = Self { place: SpillFile::At(path.to_owned()), ..Self::default() };
        let file = open.open(path).map_err(|e| spill.error(doing, e))?;
        Ok(Self { file: OnceLock::from(file), ..spill })
    }

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

    fn pool(spare: usize, work: &Path) -> Arc<Pool> {
        Pool::new(4096, 1, spare, Nodes::here(1), work).expect("memory")
    }

    /// Puts `len` of the same byte away.
    fn put(pool: &Pool, byte: u8, len: usize) -> Result<Extent, Error> {
        let mut open = pool.open(0);
        open.push(&vec![byte; len]);
        pool.put(&mut open, 0)
    }

    #[test]
    fn a_full_disk_is_told() {
        let mut pool = pool(0, Path::new("/scratch"));
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        Arc::get_mut(&mut pool).expect("only here").spill.file = OnceLock::from(full);
        let error = put(&pool, 0, 4000).expect_err("no room");
        assert_eq!(
            error.to_string(),
            "cannot write the k-mer spill file in /scratch (0.0 GB so far): No space left on device (os error 28); \
             give more memory, or a work folder with more room"
        );
    }

    #[test]
    fn a_flipped_bit_is_told_with_its_place() {
        let dir = tempfile::tempdir().expect("a folder");
        let pool = pool(1, dir.path());
        let extents: Vec<_> = (0..3).map(|i| put(&pool, i, 3000).expect("room")).collect();
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
        let pool = pool(1, dir.path());
        let put = |byte| put(&pool, byte, 100).expect("room");
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
