//! Extents: the pieces in which bins grow, in memory as long as it lasts and in one spill file beyond.
//!
//! All bins of a count share one pool, which has a slab of memory on each node; an extent is of the slab of its bin's node as
//! long as that has one. When no more extents may be in memory, a full one is written to the spill file, at
//! a multiple of the extent size, with its checksum kept in memory. Places in the file are used again. A count that can be
//! taken up again has a pool of each kind of bins; all its extents are in a file with a name, each at a place of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use genuma_machine::placement::{Piece as Lent, Slab};
use genuma_work::spill::{ObjectFile, Piece, Spill};

use crate::Error;
use crate::nodes::{NodeShare, Nodes};

/// What is spilled.
const WHAT: &str = "k-mer";

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

impl Pool {
    /// Extents of `extent` bytes, in memory `open` that are being filled at most, and `spare` full ones; the others go to a file of
    /// `scratch` bytes at most in `work`.
    ///
    /// # Errors
    /// The system has no memory to give.
    pub fn new(
        extent: usize,
        open: usize,
        spare: usize,
        nodes: Nodes,
        work: &Path,
        scratch: u64,
    ) -> Result<Arc<Self>, Error> {
        Self::with(Spill::unnamed(WHAT, work).within(scratch), extent, open, spare, nodes)
    }

    /// Extents of `extent` bytes, all full ones in a new file at `path`, and `open` being filled in memory.
    ///
    /// # Errors
    /// The file cannot be made, or the system has no memory to give.
    pub fn named(extent: usize, open: usize, nodes: Nodes, path: &Path) -> Result<Arc<Self>, Error> {
        Self::with(Spill::create(WHAT, path)?, extent, open, 0, nodes)
    }

    /// Extents of `extent` bytes that lie in the file at `path`, for reading only.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn reopened(extent: usize, nodes: Nodes, path: &Path) -> Result<Arc<Self>, Error> {
        Self::with(Spill::open(WHAT, path)?, extent, 0, 0, nodes)
    }

    /// Extents of `extent` bytes that lie in an object, for reading only.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn object(extent: usize, nodes: Nodes, file: &ObjectFile<'_>) -> Result<Arc<Self>, Error> {
        Self::with(Spill::object(WHAT, file)?, extent, 0, 0, nodes)
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
        self.spill.written()
    }

    /// Most bytes that the spill file has had so far.
    pub fn spill_peak(&self) -> u64 {
        self.spill.peak()
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
            Extent::File(piece) => self.spill.free(piece),
        }
    }

    /// Moves an extent to the file.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub(crate) fn evict(&self, extent: &mut Extent) -> Result<(), Error> {
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
            Extent::Memory(records) => Ok(self.spill.write(records.bytes(), self.extent)?),
            Extent::File(piece) => Ok(piece),
        }
    }

    /// Waits until all that was written is on the disk.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&self) -> Result<(), Error> {
        Ok(self.spill.sync()?)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(spare: usize, work: &Path) -> Arc<Pool> {
        Pool::new(4096, 1, spare, Nodes::here(1), work, u64::MAX).expect("memory")
    }

    /// Puts `len` of the same byte away.
    fn put(pool: &Pool, byte: u8, len: usize) -> Result<Extent, Error> {
        let mut open = pool.open(0);
        open.push(&vec![byte; len]);
        pool.put(&mut open, 0)
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
