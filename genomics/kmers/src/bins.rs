//! The bins: where super-k-mers wait to be counted, and counted k-mers to be sorted.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genuma_machine::processor::prefetch;
use genuma_work::spill::{ObjectFile, Piece, Spill};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::extents::{Extent, Pool, Records};
use crate::nodes::Nodes;

/// Bins of one kind. Records never cross extents.
#[derive(Debug)]
pub(crate) struct Bins {
    bins: Vec<Mutex<Bin>>,
    pool: Arc<Pool>,
}

#[derive(Debug, Default)]
struct Bin {
    /// K-mers of all records.
    kmers: u64,
    /// From its first record on.
    open: Option<Records>,
    full: Vec<Extent>,
}

/// What lies where in the spill file of bins that are in there whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shelved {
    /// Bytes of an extent.
    pub extent: usize,
    /// Of each bin its k-mers and its extents.
    bins: Vec<(u64, Vec<Piece>)>,
}

/// Bytes of a bin that are written as one piece, at most, as long as extents are smaller.
const MOST_AT_ONCE: usize = 64 << 20;

impl Shelved {
    /// How many bins there are.
    pub fn len(&self) -> usize {
        self.bins.len()
    }

    /// Some of the bins.
    pub fn some(&self, bins: Range<usize>) -> Shelved {
        Shelved { extent: self.extent, bins: self.bins[bins].to_vec() }
    }

    /// From where to where they lie in the file.
    pub fn extend(&self) -> Range<u64> {
        let pieces = || self.bins.iter().flat_map(|(_, pieces)| pieces);
        let start = pieces().map(|piece| piece.at).min().unwrap_or(0);
        start..pieces().map(|piece| piece.at + u64::from(piece.len)).max().unwrap_or(start)
    }

    /// K-mers in all of them.
    pub fn kmers(&self) -> u64 {
        self.bins.iter().map(|(kmers, _)| kmers).sum()
    }

    /// Bytes of all records.
    pub fn bytes(&self) -> u64 {
        self.bins.iter().flat_map(|(_, pieces)| pieces).map(|piece| u64::from(piece.len)).sum()
    }
}

impl Bins {
    /// Empty bins that take their extents from `pool`. Each may hold one more, which is being filled.
    pub fn new(bins: usize, pool: Arc<Pool>) -> Self {
        Self { bins: (0..bins).map(|_| Mutex::default()).collect(), pool }
    }

    /// Number of bins.
    pub fn len(&self) -> usize {
        self.bins.len()
    }

    /// Appends whole records that hold `kmers` k-mers.
    pub fn append(&self, bin: usize, records: &[u8], kmers: u64) -> Result<(), Error> {
        let node = self.pool.nodes().of_bin(bin);
        let mut bin = self.lock(bin);
        let Bin { kmers: sum, open, full } = &mut *bin;
        let open = open.get_or_insert_with(|| self.pool.open(node));
        if !open.fits(records.len()) {
            full.push(self.pool.put(open, node)?);
        }
        open.push(records);
        *sum += kmers;
        Ok(())
    }

    /// Prepares for [`Bins::append`].
    pub fn fetch(&self, bin: usize) {
        prefetch(&self.bins[bin]);
    }

    /// K-mers in a bin.
    pub fn kmers(&self, bin: usize) -> u64 {
        self.lock(bin).kmers
    }

    /// Calls `each` with the records of every extent of a bin.
    pub fn read(&self, bin: usize, mut each: impl FnMut(&[u8])) -> Result<(), Error> {
        let bin = self.lock(bin);
        bin.open.iter().for_each(|open| each(open.bytes()));
        let mut buffer = Vec::new();
        bin.full.iter().try_for_each(|extent| self.pool.get(extent, &mut buffer).map(&mut each))
    }

    /// Gives back what a bin holds.
    pub fn free(&self, bin: usize) {
        let Bin { open, full, .. } = std::mem::take(&mut *self.lock(bin));
        full.into_iter().chain(open.map(Extent::Memory)).for_each(|extent| self.pool.free(extent));
    }

    /// Where extents come from.
    pub fn pool(&self) -> Arc<Pool> {
        self.pool.clone()
    }

    /// Bytes of an extent.
    pub fn extent(&self) -> usize {
        self.pool.extent()
    }

    /// Bytes written to the spill file so far, by whoever shares the pool.
    pub fn spilled(&self) -> u64 {
        self.pool.spilled()
    }

    /// Bytes held in memory.
    pub fn held(&self) -> u64 {
        let held = |bin: &Mutex<Bin>| {
            let bin = bin.lock().unwrap_or_else(PoisonError::into_inner);
            let full = bin.full.iter().filter(|extent| matches!(extent, Extent::Memory(_))).count();
            ((full + usize::from(bin.open.is_some())) * self.pool.extent()) as u64
        };
        self.bins.iter().map(held).sum()
    }

    /// Moves full extents to the spill file until at most `bytes` are held, or all are there, and gives what then is free back to
    /// the system; nothing more may be appended.
    pub fn shrink(&self, bytes: u64) -> Result<(), Error> {
        self.pool.close();
        let mut over = self.held().saturating_sub(bytes).div_ceil(self.pool.extent() as u64);
        for bin in (0..self.len()).rev() {
            let mut bin = self.lock(bin);
            for extent in bin.full.iter_mut().filter(|extent| matches!(extent, Extent::Memory(_))) {
                if over == 0 {
                    break;
                }
                self.pool.evict(extent)?;
                over -= 1;
            }
        }
        self.pool.release()
    }

    /// Moves everything to the spill file and waits until that is on the disk.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub(crate) fn shelve(self) -> Result<Shelved, Error> {
        let Self { bins, pool } = self;
        let shelve = |bin: Mutex<Bin>| {
            let Bin { kmers, open, full } = bin.into_inner().unwrap_or_else(PoisonError::into_inner);
            let pieces = full.into_iter().chain(open.map(Extent::Memory)).map(|extent| pool.settle(extent));
            Ok((kmers, pieces.collect::<Result<_, Error>>()?))
        };
        let bins = bins.into_iter().map(shelve).collect::<Result<_, Error>>()?;
        pool.sync()?;
        Ok(Shelved { extent: pool.extent(), bins })
    }

    /// Bins that were shelved in the file at `path`.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn from_shelf(shelved: Shelved, nodes: Nodes, path: &Path) -> Result<Self, Error> {
        let pool = Pool::reopened(shelved.extent, nodes, path)?;
        Ok(Self::of_shelf(shelved, pool))
    }

    fn of_shelf(shelved: Shelved, pool: Arc<Pool>) -> Self {
        let bin = |(kmers, pieces): (u64, Vec<Piece>)| {
            let full = pieces.into_iter().map(Extent::File).collect();
            Mutex::new(Bin { kmers, open: None, full })
        };
        Self { bins: shelved.bins.into_iter().map(bin).collect(), pool }
    }

    /// Writes bin by bin, one behind the other, into `file`, and waits until that is on the disk.
    ///
    /// # Errors
    /// The spill file cannot be read, or `file` not be written.
    pub fn lay_down(self, file: &Spill) -> Result<Shelved, Error> {
        let (mut bins, mut bytes) = (Vec::with_capacity(self.len()), Vec::new());
        for bin in 0..self.len() {
            let (kmers, mut pieces) = (self.kmers(bin), Vec::new());
            bytes.clear();
            let mut failed = Ok(());
            self.read(bin, |records| {
                if bytes.len() + records.len() > MOST_AT_ONCE && failed.is_ok() {
                    failed = file.write(&bytes, bytes.len()).map(|piece| pieces.push(piece));
                    bytes.clear();
                }
                bytes.extend_from_slice(records);
            })?;
            failed?;
            if !bytes.is_empty() {
                pieces.push(file.write(&bytes, bytes.len())?);
            }
            self.free(bin);
            bins.push((kmers, pieces));
        }
        file.sync()?;
        Ok(Shelved { extent: self.extent(), bins })
    }

    /// Bins that were laid down in an object.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn object(shelved: Shelved, nodes: Nodes, file: &ObjectFile<'_>) -> Result<Self, Error> {
        let pool = Pool::object(shelved.extent, nodes, file)?;
        Ok(Self::of_shelf(shelved, pool))
    }

    fn lock(&self, bin: usize) -> MutexGuard<'_, Bin> {
        // A thread that panicked in here takes the whole count down anyway.
        self.bins[bin].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bins that can be counted, one after the other.
pub(crate) trait Countable: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// K-mers in one of them.
    fn kmers(&self, bin: usize) -> u64;

    /// Calls `each` with the records of a bin, in pieces.
    fn read(&self, bin: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), Error>;

    /// A bin is counted.
    fn free(&self, bin: usize);
}

impl Countable for Bins {
    fn len(&self) -> usize {
        Bins::len(self)
    }

    fn kmers(&self, bin: usize) -> u64 {
        Bins::kmers(self, bin)
    }

    fn read(&self, bin: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        Bins::read(self, bin, each)
    }

    fn free(&self, bin: usize) {
        Bins::free(self, bin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_from_memory_and_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let pool = Pool::new(4096, 3, 4, Nodes::here(1), dir.path(), u64::MAX).expect("memory");
        let bins = Bins::new(3, pool.clone());
        let mut expected = vec![Vec::new(); 3];
        for i in 0..1000u32 {
            let (bin, records) = ((i % 3) as usize, vec![i as u8; 100 + (i % 50) as usize]);
            bins.append(bin, &records, u64::from(i)).expect("room");
            expected[bin].extend(records);
        }
        assert!(pool.spilled() > 20 * 4000);
        assert_eq!(bins.held(), 7 * 4096);
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("the folder").count(),
            0,
            "the spill file has no name"
        );
        bins.shrink(5 * 4096).expect("room");
        assert_eq!(bins.held(), 5 * 4096);
        for (bin, mut expected) in expected.into_iter().enumerate() {
            let mut found = Vec::new();
            bins.read(bin, |records| found.extend_from_slice(records)).expect("readable");
            found.sort_unstable();
            expected.sort_unstable();
            assert!(found == expected);
            assert_eq!(bins.kmers(bin), (0..1000).filter(|i| i % 3 == bin as u64).sum::<u64>());
            bins.free(bin);
            bins.read(bin, |records| assert!(records.is_empty())).expect("readable");
        }
        assert_eq!(bins.held(), 0);
    }
}
