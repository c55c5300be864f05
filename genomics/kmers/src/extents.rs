//! Extents: the fixed-size units in which bins grow. A limited number of full extents is in memory; all others are in a
//! spill file.
//!
//! All bins of a count share one pool, which has a slab of memory on each NUMA node. An extent comes from the node of
//! its bin as long as that has memory left. When the limit of full extents in memory is reached, a full extent is
//! written to the spill file at a multiple of the extent size; its checksum stays in memory. Space in the file is
//! reused. A resumable count has one pool per kind of bins, with all full extents in a named file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use genuma_machine::placement::{Slab, SlabBuffer as SlabPiece};
use genuma_work::spill::{LocalCopyOfObjectRange, SpillBlock, SpillFile};

use crate::Error;
use crate::node_assignment::{NodeAssignment, NodeThreadsAndMemory};

/// Word for the contents of the spill file in error messages.
const SPILL_CONTENT: &str = "k-mer";

/// Pool of the memory and of the spill file from which all bins take their extents.
#[derive(Debug)]
pub(crate) struct ExtentPool {
    extent_bytes: usize,
    nodes: NodeAssignment,
    /// One slab of memory per NUMA node.
    slabs: Vec<Arc<Slab>>,
    /// Number of full extents that may still be kept in memory.
    free_full_extents: AtomicUsize,
    spill: SpillFile,
}

/// An extent in memory to which records are appended.
#[derive(Debug)]
pub(crate) struct OpenExtent {
    memory: SlabPiece,
    len: usize,
}

impl OpenExtent {
    /// Whether `bytes` more bytes fit into the extent.
    pub(crate) fn has_space_for(&self, bytes: usize) -> bool {
        self.len + bytes <= self.memory.len()
    }

    /// Appends records, which must fit.
    pub(crate) fn append_records(&mut self, records: &[u8]) {
        self.memory[self.len..self.len + records.len()].copy_from_slice(records);
        self.len += records.len();
    }

    /// The records that were appended so far.
    pub(crate) fn appended_records(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

/// An extent that is full or to which no more records are appended, in memory or in the spill file.
#[derive(Debug)]
pub(crate) enum StoredExtent {
    Memory(OpenExtent),
    File(SpillBlock),
}

impl ExtentPool {
    /// Creates a pool of extents of `extent` bytes. Up to `open` extents that are being filled and up to `max_full`
    /// full extents are in memory; all other full extents are in an unnamed file of at most `scratch` bytes in the
    /// folder `work`.
    ///
    /// # Errors
    /// Returns an error if the system cannot provide the memory.
    pub(crate) fn with_unnamed_file(
        extent: usize,
        open: usize,
        max_full: usize,
        nodes: NodeAssignment,
        work: &Path,
        scratch: u64,
    ) -> Result<Arc<Self>, Error> {
        Self::with_spill(
            SpillFile::create_unnamed(SPILL_CONTENT, work).with_max_bytes(scratch),
            extent,
            open,
            max_full,
            nodes,
        )
    }

    /// Creates a pool whose full extents are all in a new file at `path`; up to `max_open` extents are filled in
    /// memory.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created or the system cannot provide the memory.
    pub(crate) fn with_named_file(
        extent_bytes: usize,
        max_open: usize,
        nodes: NodeAssignment,
        path: &Path,
    ) -> Result<Arc<Self>, Error> {
        Self::with_spill(SpillFile::create(SPILL_CONTENT, path)?, extent_bytes, max_open, 0, nodes)
    }

    /// Opens the extents in the file at `path` for reading.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub(crate) fn open_file(extent_bytes: usize, nodes: NodeAssignment, path: &Path) -> Result<Arc<Self>, Error> {
        Self::with_spill(SpillFile::open_for_reading(SPILL_CONTENT, path)?, extent_bytes, 0, 0, nodes)
    }

    /// Opens the extents in an object for reading.
    ///
    /// # Errors
    /// Returns an error if the object cannot be opened.
    pub(crate) fn open_object_copy(
        extent_bytes: usize,
        nodes: NodeAssignment,
        file: &LocalCopyOfObjectRange<'_>,
    ) -> Result<Arc<Self>, Error> {
        Self::with_spill(SpillFile::open_object_copy(SPILL_CONTENT, file)?, extent_bytes, 0, 0, nodes)
    }

    fn with_spill(
        spill: SpillFile,
        extent_bytes: usize,
        max_open: usize,
        max_full: usize,
        nodes: NodeAssignment,
    ) -> Result<Arc<Self>, Error> {
        // Bins are assigned to nodes, so the extents are distributed accordingly.
        let mut shares = vec![0; nodes.num_nodes()];
        (0..max_open + max_full).for_each(|i| shares[nodes.node_of_bin(i)] += 1);
        let slabs = shares.into_iter().enumerate();
        let slabs =
            slabs.map(|(node, extents)| Slab::reserve_address_space(extent_bytes, extents, nodes.os_node_id(node)));
        let slabs = slabs.collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { extent_bytes, nodes, slabs, free_full_extents: AtomicUsize::new(max_full), spill }))
    }

    /// NUMA nodes of the memory and the threads.
    pub(crate) fn node_assignment(&self) -> &NodeAssignment {
        &self.nodes
    }

    /// For each NUMA node, how many bytes of the memory for its bins are on it and on other nodes; empty if there is
    /// only one node or the kernel does not report it.
    pub(crate) fn memory_by_node(&self) -> Vec<NodeThreadsAndMemory> {
        let share = |(node, slab): (usize, &Arc<Slab>)| {
            let (id, found) = (self.nodes.os_node_id(node)?, slab.query_residence().ok()?);
            let on = |id| found.pages_by_node.get(&id).copied().unwrap_or(0) * found.page_bytes;
            let here = on(id);
            let elsewhere = found.num_resident_pages() * found.page_bytes - here;
            Some(NodeThreadsAndMemory {
                node: id,
                threads: self.nodes.thread_count_of_node(node),
                local_bytes: here,
                remote_bytes: elsewhere,
            })
        };
        self.slabs.iter().enumerate().filter_map(share).collect()
    }

    /// Size of an extent in bytes.
    pub(crate) fn bytes_per_extent(&self) -> usize {
        self.extent_bytes
    }

    /// Bytes written to the spill file so far.
    pub(crate) fn written_spill_bytes(&self) -> u64 {
        self.spill.written_bytes()
    }

    /// Largest size of the spill file so far, in bytes.
    pub(crate) fn peak_spill_bytes(&self) -> u64 {
        self.spill.peak_file_bytes()
    }

    /// Returns an empty extent in the memory of `node`, or of another node if that has none left.
    ///
    /// # Panics
    /// Panics if no memory is left because more extents are open than was declared, or full ones were not stored.
    pub(crate) fn take_empty_extent(&self, node: usize) -> OpenExtent {
        let (others, first) = self.slabs.split_at(node);
        let memory = first.iter().chain(others).find_map(Slab::take_buffer).expect("an extent for each bin");
        OpenExtent { memory, len: 0 }
    }

    /// Stores the records of a full extent, in memory or in the file, and replaces `open` by an empty extent of `node`.
    ///
    /// # Errors
    /// Returns an error if the spill file cannot be written.
    pub(crate) fn store_and_replace_full_extent(
        &self,
        open: &mut OpenExtent,
        node: usize,
    ) -> Result<StoredExtent, Error> {
        if self.free_full_extents.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok() {
            return Ok(StoredExtent::Memory(std::mem::replace(open, self.take_empty_extent(node))));
        }
        let piece = self.spill.write_block(open.appended_records(), self.extent_bytes)?;
        open.len = 0;
        Ok(StoredExtent::File(piece))
    }

    /// Returns the records of an extent. Those of an extent in the file are read into `buffer`.
    ///
    /// # Errors
    /// Returns an error if the spill file cannot be read or is damaged.
    pub(crate) fn read_extent<'a>(&self, extent: &'a StoredExtent, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        match extent {
            StoredExtent::Memory(records) => Ok(records.appended_records()),
            StoredExtent::File(piece) => {
                self.spill.read_block(piece, buffer)?;
                Ok(buffer)
            }
        }
    }

    /// Returns the memory or file space of an extent to the pool. For an extent in memory, one more full extent may
    /// then stay in memory.
    pub(crate) fn free_extent(&self, extent: StoredExtent) {
        match extent {
            StoredExtent::Memory(records) => {
                drop(records);
                self.free_full_extents.fetch_add(1, Relaxed);
            }
            StoredExtent::File(piece) => self.spill.free_block(piece),
        }
    }

    /// Moves an extent from memory to the file.
    ///
    /// # Errors
    /// Returns an error if the spill file cannot be written.
    pub(crate) fn move_extent_to_file(&self, extent: &mut StoredExtent) -> Result<(), Error> {
        if let StoredExtent::Memory(records) = extent {
            *extent = StoredExtent::File(self.spill.write_block(records.appended_records(), self.extent_bytes)?);
        }
        Ok(())
    }

    /// Stores an extent in the file, if it is not there yet, and returns its block.
    ///
    /// # Errors
    /// Returns an error if the spill file cannot be written.
    pub(crate) fn store_extent_in_file(&self, extent: StoredExtent) -> Result<SpillBlock, Error> {
        match extent {
            StoredExtent::Memory(records) => {
                Ok(self.spill.write_block(records.appended_records(), self.extent_bytes)?)
            }
            StoredExtent::File(piece) => Ok(piece),
        }
    }

    /// Waits until all written data is on the disk.
    ///
    /// # Errors
    /// Returns an error if the disk reports one.
    pub(crate) fn sync_spill_file(&self) -> Result<(), Error> {
        Ok(self.spill.sync_to_disk()?)
    }

    /// Stores all further full extents in the file instead of memory.
    pub(crate) fn store_further_extents_in_file(&self) {
        self.free_full_extents.store(0, Relaxed);
    }

    /// Returns the unused memory of the pool to the operating system.
    ///
    /// # Errors
    /// Returns an error if the system refuses.
    pub(crate) fn release_free_memory(&self) -> Result<(), Error> {
        self.slabs.iter().try_for_each(|slab| slab.release_free_pages().map_err(Error::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(spare: usize, work: &Path) -> Arc<ExtentPool> {
        ExtentPool::with_unnamed_file(4096, 1, spare, NodeAssignment::for_this_machine(1), work, u64::MAX)
            .expect("memory")
    }

    /// Stores an extent of `len` equal bytes.
    fn put(pool: &ExtentPool, byte: u8, len: usize) -> Result<StoredExtent, Error> {
        let mut open = pool.take_empty_extent(0);
        open.append_records(&vec![byte; len]);
        pool.store_and_replace_full_extent(&mut open, 0)
    }

    #[test]
    fn file_space_is_reused() {
        let dir = tempfile::tempdir().expect("a folder");
        let pool = pool(1, dir.path());
        let put = |byte| put(&pool, byte, 100).expect("room");
        let [memory, first, second] = [put(1), put(2), put(3)];
        pool.free_extent(first);
        assert!(matches!(put(4), StoredExtent::File(SpillBlock { offset: 0, .. })));
        pool.free_extent(memory);
        let mut extent = put(5);
        assert!(matches!(extent, StoredExtent::Memory(_)));
        pool.free_extent(second);
        pool.move_extent_to_file(&mut extent).expect("room");
        assert!(matches!(extent, StoredExtent::File(SpillBlock { offset: 4096, .. })));
        assert_eq!(pool.read_extent(&extent, &mut Vec::new()).expect("whole"), [5; 100]);
        assert_eq!(pool.written_spill_bytes(), 400);
    }
}
