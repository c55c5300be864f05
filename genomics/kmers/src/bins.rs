//! The bins: where super-k-mers wait, in memory as long as it lasts and in one spill file beyond.
//!
//! A bin grows by extents of equal size. When no more of them may be in memory, a full extent is written to the spill
//! file, at a multiple of the extent size, and filled anew. Records never cross extents.

use crate::Error;
use crate::plan::Plan;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// All bins of a count.
#[derive(Debug)]
pub struct Bins {
    bins: Vec<Mutex<Bin>>,
    extent: usize,
    /// Extents that may still be taken beyond the one each bin is entitled to.
    spare: AtomicUsize,
    spill: Spill,
}

#[derive(Debug, Default)]
struct Bin {
    kmers: u64,
    open: Vec<u8>,
    full: Vec<Extent>,
}

#[derive(Debug)]
enum Extent {
    Memory(Vec<u8>),
    File { at: u64, len: usize },
}

impl Bins {
    /// Empty bins that spill into `work`.
    pub fn new(plan: &Plan, work: &Path) -> Self {
        Self {
            bins: (0..plan.bins).map(|_| Mutex::default()).collect(),
            extent: plan.extent,
            spare: AtomicUsize::new(plan.extents - plan.bins),
            spill: Spill { work: work.to_owned(), file: OnceLock::new(), end: AtomicU64::new(0) },
        }
    }

    /// Number of bins.
    pub fn len(&self) -> usize {
        self.bins.len()
    }

    /// Bytes written to the spill file.
    pub fn spilled(&self) -> u64 {
        self.spill.end.load(Relaxed)
    }

    /// Appends whole records that hold `kmers` k-mers.
    pub fn append(&self, bin: usize, records: &[u8], kmers: u64) -> Result<(), Error> {
        let mut bin = self.lock(bin);
        if bin.open.capacity() == 0 {
            bin.open.reserve_exact(self.extent);
        } else if bin.open.len() + records.len() > self.extent {
            if self.take_spare() {
                let full = std::mem::replace(&mut bin.open, Vec::with_capacity(self.extent));
                bin.full.push(Extent::Memory(full));
            } else {
                let at = self.spill.write(&bin.open, self.extent)?;
                let len = bin.open.len();
                bin.full.push(Extent::File { at, len });
                bin.open.clear();
            }
        }
        bin.open.extend_from_slice(records);
        bin.kmers += kmers;
        Ok(())
    }

    /// K-mers in a bin.
    pub fn kmers(&self, bin: usize) -> u64 {
        self.lock(bin).kmers
    }

    /// Calls `each` with the records of every extent of a bin.
    pub fn read(&self, bin: usize, mut each: impl FnMut(&[u8])) -> Result<(), Error> {
        let bin = self.lock(bin);
        each(&bin.open);
        let mut buffer = Vec::new();
        for extent in &bin.full {
            match extent {
                Extent::Memory(records) => each(records),
                Extent::File { at, len } => {
                    buffer.resize(*len, 0);
                    self.spill.read(*at, &mut buffer)?;
                    each(&buffer);
                }
            }
        }
        Ok(())
    }

    /// Gives a bin's memory back.
    pub fn free(&self, bin: usize) {
        *self.lock(bin) = Bin::default();
    }

    fn lock(&self, bin: usize) -> MutexGuard<'_, Bin> {
        // A thread that panicked in here takes the whole count down anyway.
        self.bins[bin].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_spare(&self) -> bool {
        self.spare.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok()
    }
}

/// The spill file: made at the first write and without a name, so that nothing is left behind even by a kill.
#[derive(Debug)]
struct Spill {
    work: PathBuf,
    file: OnceLock<File>,
    end: AtomicU64,
}

impl Spill {
    /// Appends `extent`, padded to `size` bytes, and says where.
    fn write(&self, extent: &[u8], size: usize) -> Result<u64, Error> {
        let file = self.file().map_err(|e| self.error("write", e))?;
        let at = self.end.fetch_add(size as u64, Relaxed);
        file.write_all_at(extent, at).map_err(|e| self.error("write", e))?;
        Ok(at)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Error> {
        let file = self.file().map_err(|e| self.error("read", e))?;
        file.read_exact_at(into, at).map_err(|e| self.error("read", e))
    }

    fn file(&self) -> std::io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let made = tempfile::tempfile_in(&self.work)?;
        Ok(self.file.get_or_init(|| made))
    }

    fn error(&self, doing: &'static str, source: std::io::Error) -> Error {
        Error::Spill { doing, work: self.work.clone(), at: self.end.load(Relaxed), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told() {
        let plan = Plan { bins: 1, extent: 4096, extents: 1, private: 256, pieces: 64, slots: 1024 };
        let mut bins = Bins::new(&plan, Path::new("/scratch"));
        bins.spill.file =
            OnceLock::from(File::options().write(true).open("/dev/full").expect("Linux has it"));
        bins.append(0, &[0; 4000], 1).expect("room");
        let error = bins.append(0, &[0; 4000], 1).expect_err("no room");
        assert_eq!(
            error.to_string(),
            "cannot write the k-mer spill file in /scratch (0.0 GB so far): No space left on device (os error 28); \
             give more memory, or a work folder with more room"
        );
    }

    #[test]
    fn what_goes_in_comes_out_from_memory_and_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let plan = Plan { bins: 3, extent: 4096, extents: 7, private: 256, pieces: 64, slots: 1024 };
        let bins = Bins::new(&plan, dir.path());
        let mut expected = vec![Vec::new(); 3];
        for i in 0..1000u32 {
            let (bin, records) = ((i % 3) as usize, vec![i as u8; 100 + (i % 50) as usize]);
            bins.append(bin, &records, u64::from(i)).expect("room");
            expected[bin].extend(records);
        }
        assert!(bins.spilled() > 20 * 4096 && bins.spilled().is_multiple_of(4096));
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("the folder").count(),
            0,
            "the spill file has no name"
        );
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
    }
}
