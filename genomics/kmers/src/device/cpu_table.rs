//! Counter table of a device as plain loops on the CPU, with which the tests compare the tables on devices.

use genuma_gpu::Error;

use super::table::{
    DeviceTable, GatheredCounts, LaneMemorySizes, MAX_PROBED_SLOTS_PER_KMER, MAX_RECORDS_PER_WORK_GROUP,
};
use crate::NUM_SPECTRUM_ENTRIES;
use crate::counter_table::{DeviceRowRequest, DeviceTableRows, KmerSpectra, RootClass, hash_root_of_key};
use crate::encode::{kmer_mask, reverse_complement_kmer};
use crate::superkmer::record_bytes;

const EMPTY_KEY: u64 = u64::MAX;

/// Counter table of a device, computed by the CPU with plain loops. Tests compare the OpenCL tables with it.
#[derive(Debug)]
pub(crate) struct CpuDeviceTable<const S: usize> {
    k: u32,
    sizes: LaneMemorySizes,
    class: RootClass,
    slots: usize,
    keys: Vec<u64>,
    counts: Vec<[u32; S]>,
    full: bool,
    row_keys: Vec<u64>,
    row_counts: Vec<[u32; S]>,
}

impl<const S: usize> CpuDeviceTable<S> {
    /// Creates an empty table for `k`-mers.
    pub(super) fn new(k: u32, sizes: LaneMemorySizes) -> Self {
        let (keys, counts) = (Vec::new(), Vec::new());
        let (row_keys, row_counts) = (Vec::new(), Vec::new());
        Self { k, sizes, class: RootClass::ALL_ROOTS, slots: 0, keys, counts, full: false, row_keys, row_counts }
    }

    fn home(&self, key: u64) -> usize {
        ((u128::from(hash_root_of_key(key)) * self.slots as u128) >> 64) as usize
    }

    /// Key of a k-mer, as the kernel in `key.cl` computes it.
    fn key(&self, kmer: u64) -> u64 {
        let strand =
            |kmer: u64| (((kmer >> 2) & kmer_mask(self.k - 2)) << 4) | ((kmer >> (2 * self.k - 2)) << 2) | (kmer & 3);
        strand(kmer).min(strand(reverse_complement_kmer(kmer, self.k)))
    }

    /// Counts the k-mers of a chunk of records, as the kernel in `insert.cl` does.
    fn insert(&mut self, chunk: &[u8]) {
        let text = [chunk, &[0; 16]].concat();
        let mut at = 0;
        while at < chunk.len() {
            let (sample, kmers) = (usize::from(text[at] >> 5), usize::from(text[at] & 31) + 1);
            for base in 0..kmers {
                let from = at + 1 + base / 4;
                let word = text[from..from + 8].iter().fold(0, |word, &byte| (word << 8) | u64::from(byte));
                let shift = 2 * (base & 3);
                let word = (word << shift) | (u64::from(text[from + 8]) >> (8 - shift));
                let key = self.key(word >> (64 - 2 * self.k));
                if !self.class.class_contains_hash(hash_root_of_key(key)) {
                    continue;
                }
                let home = self.home(key);
                let slot =
                    (home..home + MAX_PROBED_SLOTS_PER_KMER).find(|&slot| [EMPTY_KEY, key].contains(&self.keys[slot]));
                match slot {
                    Some(slot) => {
                        self.keys[slot] = key;
                        self.counts[slot][sample] += 1;
                    }
                    None => self.full = true,
                }
            }
            at += record_bytes(kmers, self.k);
        }
    }

    /// Appends rows (key and counts of a k-mer), as the kernel in `gather.cl` does. For `Kmers`: the row of the slot, if
    /// its counts reach the minimum. For `Roots`: all rows of the root, if the slot is the first one of the root. Returns
    /// whether it is the first.
    fn gather(&mut self, slot: usize, wanted: DeviceRowRequest) -> bool {
        let Self { keys, counts, row_keys, row_counts, .. } = self;
        let root = keys[slot] >> 4;
        let sum = |slot: usize| counts[slot].iter().map(|&n| u64::from(n)).sum::<u64>();
        let run = (slot..keys.len()).take_while(|&slot| keys[slot] != EMPTY_KEY);
        let of_root: Vec<usize> = run.filter(|&slot| keys[slot] >> 4 == root).collect();
        let home = ((u128::from(hash_root_of_key(root << 4)) * self.slots as u128) >> 64) as usize;
        let is_first = (home..slot).all(|slot| keys[slot] >> 4 != root);
        let rows = match wanted {
            DeviceRowRequest::Kmers { min_count: least } if sum(slot) >= u64::from(least) => &of_root[..1],
            DeviceRowRequest::Roots if is_first => &of_root[..],
            _ => &[],
        };
        row_keys.extend(rows.iter().map(|&slot| keys[slot]));
        row_counts.extend(rows.iter().map(|&slot| counts[slot]));
        is_first
    }
}

impl<const S: usize> DeviceTable<S> for CpuDeviceTable<S> {
    type StagingMemory = Vec<u8>;

    fn allocate_staging(&self) -> Result<Vec<u8>, Error> {
        Ok(vec![0; self.sizes.staging_bytes])
    }

    fn max_chunks(&self) -> usize {
        self.sizes.max_chunks
    }

    fn max_slots(&self) -> usize {
        self.sizes.max_slots
    }

    fn start_class(&mut self, class: RootClass, slots: usize) -> Result<(), Error> {
        (self.class, self.slots, self.full) = (class, slots, false);
        self.keys = vec![EMPTY_KEY; slots + MAX_PROBED_SLOTS_PER_KMER];
        self.counts = vec![[0; S]; slots + MAX_PROBED_SLOTS_PER_KMER];
        Ok(())
    }

    fn add_records(&mut self, records: &[u8], starts: &[u32]) -> Result<(), Error> {
        for chunk in starts.windows(2) {
            let chunk = &records[chunk[0] as usize..chunk[1] as usize];
            assert!(chunk.len() <= MAX_RECORDS_PER_WORK_GROUP * 17);
            self.insert(chunk);
        }
        Ok(())
    }

    fn gather_counts(
        &mut self,
        requested: DeviceRowRequest,
        spectra: &mut KmerSpectra<S>,
    ) -> Result<Option<GatheredCounts<'_, S>>, Error> {
        if self.full {
            return Ok(None);
        }
        self.row_keys.clear();
        self.row_counts.clear();
        let (mut distinct, mut roots) = (0, 0);
        for slot in 0..self.keys.len() {
            if self.keys[slot] != EMPTY_KEY {
                for (spectrum, n) in spectra.0.iter_mut().zip(self.counts[slot]) {
                    spectrum[(n as usize).min(NUM_SPECTRUM_ENTRIES - 1)] += 1;
                }
                distinct += 1;
                roots += u64::from(self.gather(slot, requested));
            }
        }
        let rows = DeviceTableRows { keys: &self.row_keys, counts: &self.row_counts };
        Ok(Some(GatheredCounts { rows, num_kmers: distinct, num_roots: roots }))
    }
}
