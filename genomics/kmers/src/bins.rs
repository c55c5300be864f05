//! Bins: append-only stores of records, in memory and in a spill file. They hold super-k-mers until these are counted,
//! and counted k-mers until these are sorted.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genuma_machine::simd_and_prefetch::prefetch;
use genuma_work::spill::{LocalCopyOfObjectRange, SpillBlock, SpillFile};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::extents::{ExtentPool, OpenExtent, StoredExtent};
use crate::node_assignment::NodeAssignment;

/// A set of bins, numbered from 0, whose records are in extents of one pool. Threads append records at the same time. A
/// record never spans two extents.
#[derive(Debug)]
pub(crate) struct Bins {
    bins: Vec<Mutex<Bin>>,
    pool: Arc<ExtentPool>,
}

#[derive(Debug, Default)]
struct Bin {
    /// Number of k-mers in all records of the bin.
    kmers: u64,
    /// The extent that records are appended to, allocated with the first record.
    open: Option<OpenExtent>,
    full: Vec<StoredExtent>,
}

/// Where in a spill file the records of each bin are, after all bins were written to the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpilledBinIndex {
    /// Size in bytes of an extent of the pool that wrote the file.
    pub extent_bytes: usize,
    /// For each bin its number of k-mers, and the blocks of the file that contain its records.
    bins: Vec<(u64, Vec<SpillBlock>)>,
}

/// Maximum size in bytes of the blocks in which [`Bins::write_bins_consecutively`] joins the extents of a bin.
const MAX_BLOCK_BYTES: usize = 64 << 20;

impl SpilledBinIndex {
    pub(crate) fn len(&self) -> usize {
        self.bins.len()
    }

    /// Returns the index of the bins with numbers `bins` only, in the same order.
    pub(crate) fn extract_index_of_bins(&self, bins: Range<usize>) -> SpilledBinIndex {
        SpilledBinIndex { extent_bytes: self.extent_bytes, bins: self.bins[bins].to_vec() }
    }

    /// Range of bytes of the file from the first to the last byte of these bins.
    pub(crate) fn byte_range_in_file(&self) -> Range<u64> {
        let blocks = || self.bins.iter().flat_map(|(_, blocks)| blocks);
        let start = blocks().map(|block| block.offset).min().unwrap_or(0);
        start..blocks().map(|block| block.offset + u64::from(block.len)).max().unwrap_or(start)
    }

    /// Number of k-mers in all bins.
    pub(crate) fn num_kmers_in_all_bins(&self) -> u64 {
        self.bins.iter().map(|(kmers, _)| kmers).sum()
    }

    /// Total size of the records in all bins, in bytes.
    pub(crate) fn total_record_bytes(&self) -> u64 {
        self.bins.iter().flat_map(|(_, blocks)| blocks).map(|block| u64::from(block.len)).sum()
    }
}

impl Bins {
    /// Creates empty bins whose extents come from `pool`. Each bin may have one extent that is not full.
    pub(crate) fn create_empty(bins: usize, pool: Arc<ExtentPool>) -> Self {
        Self { bins: (0..bins).map(|_| Mutex::default()).collect(), pool }
    }

    pub(crate) fn len(&self) -> usize {
        self.bins.len()
    }

    /// Appends complete records with `kmers` k-mers in total to a bin.
    pub(crate) fn append_records(&self, bin: usize, records: &[u8], kmers: u64) -> Result<(), Error> {
        let node = self.pool.node_assignment().node_of_bin(bin);
        let mut bin = self.lock(bin);
        let Bin { kmers: sum, open, full } = &mut *bin;
        let open = open.get_or_insert_with(|| self.pool.take_empty_extent(node));
        if !open.has_space_for(records.len()) {
            full.push(self.pool.store_and_replace_full_extent(open, node)?);
        }
        open.append_records(records);
        *sum += kmers;
        Ok(())
    }

    /// Prefetches the entry of a bin into the CPU cache, for [`Bins::append_records`].
    pub(crate) fn prefetch_bin_entry(&self, bin: usize) {
        prefetch(&self.bins[bin]);
    }

    /// Number of k-mers in a bin.
    pub(crate) fn kmer_count_of_bin(&self, bin: usize) -> u64 {
        self.lock(bin).kmers
    }

    /// Calls `each` with the records of each extent of a bin.
    pub(crate) fn for_each_extent_of_bin(&self, bin: usize, mut each: impl FnMut(&[u8])) -> Result<(), Error> {
        let bin = self.lock(bin);
        bin.open.iter().for_each(|open| each(open.appended_records()));
        let mut buffer = Vec::new();
        bin.full.iter().try_for_each(|extent| self.pool.read_extent(extent, &mut buffer).map(&mut each))
    }

    /// Empties a bin and returns its memory and file space to the pool.
    pub(crate) fn free_bin(&self, bin: usize) {
        let Bin { open, full, .. } = std::mem::take(&mut *self.lock(bin));
        full.into_iter().chain(open.map(StoredExtent::Memory)).for_each(|extent| self.pool.free_extent(extent));
    }

    /// Returns the pool that provides the extents.
    pub(crate) fn extent_pool(&self) -> Arc<ExtentPool> {
        self.pool.clone()
    }

    /// Size of an extent in bytes.
    pub(crate) fn bytes_per_extent(&self) -> usize {
        self.pool.bytes_per_extent()
    }

    /// Bytes written to the spill file so far by all bins of the pool.
    pub(crate) fn written_spill_bytes(&self) -> u64 {
        self.pool.written_spill_bytes()
    }

    /// Number of bytes of the extents that are in memory.
    pub(crate) fn extent_bytes_in_memory(&self) -> u64 {
        let held = |bin: &Mutex<Bin>| {
            let bin = bin.lock().unwrap_or_else(PoisonError::into_inner);
            let full = bin.full.iter().filter(|extent| matches!(extent, StoredExtent::Memory(_))).count();
            ((full + usize::from(bin.open.is_some())) * self.pool.bytes_per_extent()) as u64
        };
        self.bins.iter().map(held).sum()
    }

    /// Moves full extents to the spill file until at most `bytes` bytes of extents are in memory, or no full extent is,
    /// and returns the freed memory to the operating system. Records must not be appended afterwards.
    pub(crate) fn spill_to_shrink_memory_to(&self, bytes: u64) -> Result<(), Error> {
        self.pool.store_further_extents_in_file();
        let mut over =
            self.extent_bytes_in_memory().saturating_sub(bytes).div_ceil(self.pool.bytes_per_extent() as u64);
        for bin in (0..self.len()).rev() {
            let mut bin = self.lock(bin);
            for extent in bin.full.iter_mut().filter(|extent| matches!(extent, StoredExtent::Memory(_))) {
                if over == 0 {
                    break;
                }
                self.pool.move_extent_to_file(extent)?;
                over -= 1;
            }
        }
        self.pool.release_free_memory()
    }

    /// Moves all extents to the spill file, waits until the data is on the disk, and returns the index with which the
    /// bins can be opened.
    ///
    /// # Errors
    /// Returns an error if the spill file cannot be written.
    pub(crate) fn move_all_to_file(self) -> Result<SpilledBinIndex, Error> {
        let Self { bins, pool } = self;
        let move_bin = |bin: Mutex<Bin>| {
            let Bin { kmers, open, full } = bin.into_inner().unwrap_or_else(PoisonError::into_inner);
            let blocks =
                full.into_iter().chain(open.map(StoredExtent::Memory)).map(|extent| pool.store_extent_in_file(extent));
            Ok((kmers, blocks.collect::<Result<_, Error>>()?))
        };
        let bins = bins.into_iter().map(move_bin).collect::<Result<_, Error>>()?;
        pool.sync_spill_file()?;
        Ok(SpilledBinIndex { extent_bytes: pool.bytes_per_extent(), bins })
    }

    /// Opens bins in the file at `path` that [`Bins::move_all_to_file`] wrote; `index` has the position of each bin.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub(crate) fn open_file(index: SpilledBinIndex, nodes: NodeAssignment, path: &Path) -> Result<Self, Error> {
        let pool = ExtentPool::open_file(index.extent_bytes, nodes, path)?;
        Ok(Self::from_index(index, pool))
    }

    fn from_index(index: SpilledBinIndex, pool: Arc<ExtentPool>) -> Self {
        let bin = |(kmers, blocks): (u64, Vec<SpillBlock>)| {
            let full = blocks.into_iter().map(StoredExtent::File).collect();
            Mutex::new(Bin { kmers, open: None, full })
        };
        Self { bins: index.bins.into_iter().map(bin).collect(), pool }
    }

    /// Writes the bins to `file`, one after the other, frees them, and waits until the data is on the disk. Returns the
    /// index with which the bins can be opened.
    ///
    /// # Errors
    /// Returns an error if the spill file cannot be read, or `file` cannot be written.
    pub(crate) fn write_bins_consecutively(self, file: &SpillFile) -> Result<SpilledBinIndex, Error> {
        let (mut bins, mut bytes) = (Vec::with_capacity(self.len()), Vec::new());
        for bin in 0..self.len() {
            let (kmers, mut blocks) = (self.kmer_count_of_bin(bin), Vec::new());
            bytes.clear();
            let mut failed = Ok(());
            self.for_each_extent_of_bin(bin, |records| {
                if bytes.len() + records.len() > MAX_BLOCK_BYTES && failed.is_ok() {
                    failed = file.write_block(&bytes, bytes.len()).map(|block| blocks.push(block));
                    bytes.clear();
                }
                bytes.extend_from_slice(records);
            })?;
            failed?;
            if !bytes.is_empty() {
                blocks.push(file.write_block(&bytes, bytes.len())?);
            }
            self.free_bin(bin);
            bins.push((kmers, blocks));
        }
        file.sync_to_disk()?;
        Ok(SpilledBinIndex { extent_bytes: self.bytes_per_extent(), bins })
    }

    /// Opens bins in an object that [`Bins::write_bins_consecutively`] wrote; `index` has the position of each bin.
    ///
    /// # Errors
    /// Returns an error if the object cannot be opened.
    pub(crate) fn open_object_copy(
        index: SpilledBinIndex,
        nodes: NodeAssignment,
        file: &LocalCopyOfObjectRange<'_>,
    ) -> Result<Self, Error> {
        let pool = ExtentPool::open_object_copy(index.extent_bytes, nodes, file)?;
        Ok(Self::from_index(index, pool))
    }

    fn lock(&self, bin: usize) -> MutexGuard<'_, Bin> {
        // A thread that panicked while holding the lock ends the whole count anyway.
        self.bins[bin].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bins that can be counted one after the other: those of one process ([`Bins`]), or those of all shards together.
pub(crate) trait BinSource: Sync {
    fn len(&self) -> usize;

    /// Number of k-mers in a bin.
    fn kmer_count_of_bin(&self, bin: usize) -> u64;

    /// Calls `each` with all records of a bin, those of one extent at a time.
    fn for_each_extent_of_bin(&self, bin: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), Error>;

    /// Frees a bin that has been counted.
    fn free_bin(&self, bin: usize);
}

impl BinSource for Bins {
    fn len(&self) -> usize {
        Bins::len(self)
    }

    fn kmer_count_of_bin(&self, bin: usize) -> u64 {
        Bins::kmer_count_of_bin(self, bin)
    }

    fn for_each_extent_of_bin(&self, bin: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        Bins::for_each_extent_of_bin(self, bin, each)
    }

    fn free_bin(&self, bin: usize) {
        Bins::free_bin(self, bin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_a_round_trip_through_memory_and_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let pool = ExtentPool::with_unnamed_file(4096, 3, 4, NodeAssignment::for_this_machine(1), dir.path(), u64::MAX)
            .expect("memory");
        let bins = Bins::create_empty(3, pool.clone());
        let mut expected = vec![Vec::new(); 3];
        for i in 0..1000u32 {
            let (bin, records) = ((i % 3) as usize, vec![i as u8; 100 + (i % 50) as usize]);
            bins.append_records(bin, &records, u64::from(i)).expect("room");
            expected[bin].extend(records);
        }
        assert!(pool.written_spill_bytes() > 20 * 4000);
        assert_eq!(bins.extent_bytes_in_memory(), 7 * 4096);
        assert_eq!(std::fs::read_dir(dir.path()).expect("the folder").count(), 0, "the spill file has no name");
        bins.spill_to_shrink_memory_to(5 * 4096).expect("room");
        assert_eq!(bins.extent_bytes_in_memory(), 5 * 4096);
        for (bin, mut expected) in expected.into_iter().enumerate() {
            let mut found = Vec::new();
            bins.for_each_extent_of_bin(bin, |records| found.extend_from_slice(records)).expect("readable");
            found.sort_unstable();
            expected.sort_unstable();
            assert!(found == expected);
            assert_eq!(bins.kmer_count_of_bin(bin), (0..1000).filter(|i| i % 3 == bin as u64).sum::<u64>());
            bins.free_bin(bin);
            bins.for_each_extent_of_bin(bin, |records| assert!(records.is_empty())).expect("readable");
        }
        assert_eq!(bins.extent_bytes_in_memory(), 0);
    }
}
