//! Interface of a counter table on a device, and the sizes of its memory.

use std::ops::DerefMut;

use genuma_gpu::Error;

use crate::NUM_SPECTRUM_ENTRIES;
use crate::counter_table::{DeviceRowRequest, DeviceTableRows, KmerSpectra, RootClass};

/// Maximum number of records in a chunk, which one work-group inserts into the table.
pub(super) const MAX_RECORDS_PER_WORK_GROUP: usize = 64;
/// Number of work-items of a work-group: a power of two that every device supports.
pub(super) const WORK_GROUP_ITEMS: usize = 64;
/// Maximum number of slots that are examined for a k-mer. If none of them is free, the table counts as full. The table
/// has this number of extra slots at its end, so the search never continues at its start.
pub(super) const MAX_PROBED_SLOTS_PER_KMER: usize = 512;
/// Number of slots from which one work-group collects rows.
pub(super) const SLOTS_GATHERED_PER_WORK_GROUP: usize = 1024;

/// k-mers that a device gathered from its counter table, with totals of the whole table.
#[derive(Debug)]
pub(super) struct GatheredCounts<'a, const S: usize> {
    /// Rows of the requested k-mers.
    pub rows: DeviceTableRows<'a, S>,
    /// Number of distinct k-mers in the table, including those that were not requested.
    pub num_kmers: u64,
    /// Number of distinct roots in the table, including those that were not requested.
    pub num_roots: u64,
}

/// Counter table on a device. The number of slots is fixed while the records of a root class are counted.
pub(super) trait DeviceTable<const S: usize> {
    /// Memory in which records are staged for [`DeviceTable::add_records`].
    type StagingMemory: DerefMut<Target = [u8]>;

    /// Allocates memory for a piece of records.
    ///
    /// # Errors
    /// Returns an error if the device fails.
    fn allocate_staging(&self) -> Result<Self::StagingMemory, Error>;

    /// Maximum number of chunks, of up to [`MAX_RECORDS_PER_WORK_GROUP`] records each, that are sent to the device at a
    /// time.
    fn max_chunks(&self) -> usize;

    /// Maximum number of slots of the table.
    fn max_slots(&self) -> usize;

    /// Empties the table and sets its size to `slots`, at most [`DeviceTable::max_slots`], for the roots of `class`.
    ///
    /// # Errors
    /// Returns an error if the device fails.
    fn start_class(&mut self, class: RootClass, slots: usize) -> Result<(), Error>;

    /// Counts a piece of complete records. `starts` has the start of each chunk of at most
    /// [`MAX_RECORDS_PER_WORK_GROUP`] records, and the end of the last.
    ///
    /// # Errors
    /// Returns an error if the device fails.
    fn add_records(&mut self, records: &[u8], starts: &[u32]) -> Result<(), Error>;

    /// Collects the requested rows and adds all k-mers of the table to the spectra (entry 0 counts the k-mers that a
    /// sample lacks). Returns `None`, and adds nothing, if the table was too small.
    ///
    /// # Errors
    /// Returns an error if the device fails; nothing is added then.
    fn gather_counts(
        &mut self,
        requested: DeviceRowRequest,
        spectra: &mut KmerSpectra<S>,
    ) -> Result<Option<GatheredCounts<'_, S>>, Error>;
}

/// Sizes of the memory of a device lane on the device and on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneMemorySizes {
    /// Size in bytes of the staging memory: the maximum size of the piece of records that is sent to the device at a
    /// time.
    pub staging_bytes: usize,
    /// Maximum number of chunks, of up to [`MAX_RECORDS_PER_WORK_GROUP`] records each, in the staging memory.
    pub max_chunks: usize,
    /// Maximum number of slots of the table, without the [`MAX_PROBED_SLOTS_PER_KMER`] extra slots at its end.
    pub max_slots: usize,
}

/// Bytes of a row, or of a slot, with counters of `S` samples.
pub(crate) const fn row_bytes<const S: usize>() -> usize {
    size_of::<u64>() + S * size_of::<u32>()
}

impl LaneMemorySizes {
    /// Bytes of the kernels' state and of the k-mer spectra of `S` samples.
    pub(super) const fn kernel_state_and_spectra_bytes<const S: usize>() -> usize {
        (4 + S * NUM_SPECTRUM_ENTRIES) * size_of::<u32>()
    }

    /// Chooses sizes that fit in `device` bytes of device memory, with buffers of at most `largest` bytes, and in
    /// `host` bytes of host memory; `None` if that is too little.
    pub(super) fn choose_fitting_sizes<const S: usize>(device: u64, largest: u64, host: u64) -> Option<Self> {
        const MAX_PIECE_BYTES: u64 = 16 << 20;
        const MIN_PIECE_BYTES: u64 = 8 << 10;
        const MIN_SLOTS: u64 = 1024;
        let piece = (device / 8).min(host / 4).min(MAX_PIECE_BYTES).min(largest).max(MIN_PIECE_BYTES);
        // A full chunk has at least 256 bytes.
        let chunks = piece / 256 + 1;
        let other = piece + 4 * (chunks + 1) + Self::kernel_state_and_spectra_bytes::<S>() as u64;
        let row = row_bytes::<S>() as u64;
        // Slots and rows are on the device, rows also on the host.
        let slots = (device.checked_sub(other)? / (2 * row)).min(host.checked_sub(other)? / row);
        let slots =
            slots.min(largest / (4 * S as u64).max(8)).min(1 << 31).checked_sub(MAX_PROBED_SLOTS_PER_KMER as u64)?;
        (slots >= MIN_SLOTS).then_some(Self {
            staging_bytes: piece as usize,
            max_chunks: chunks as usize,
            max_slots: slots as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits<const S: usize>() {
        for device in [64 << 10, 1 << 20, 1 << 30, 80 << 30] {
            for host in [64 << 10, 16 << 20, 1 << 30] {
                let Some(sizes) = LaneMemorySizes::choose_fitting_sizes::<S>(device, device / 4, host) else {
                    assert!(device.min(host) < 1 << 20);
                    continue;
                };
                let all = (sizes.max_slots + MAX_PROBED_SLOTS_PER_KMER) * row_bytes::<S>();
                let other = sizes.staging_bytes
                    + 4 * (sizes.max_chunks + 1)
                    + LaneMemorySizes::kernel_state_and_spectra_bytes::<S>();
                assert!((2 * all + other) as u64 <= device && (all + other) as u64 <= host, "{sizes:?}");
                assert!((sizes.max_slots + MAX_PROBED_SLOTS_PER_KMER) as u64 * 8 <= device / 4, "{sizes:?}");
            }
        }
    }

    #[test]
    fn lanes_stay_within_their_memory() {
        fits::<1>();
        fits::<2>();
        fits::<8>();
        assert_eq!(LaneMemorySizes::choose_fitting_sizes::<2>(16 << 10, 16 << 10, 1 << 20), None);
    }
}
