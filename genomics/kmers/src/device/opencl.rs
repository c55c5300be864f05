//! Counter table on an OpenCL device.
//!
//! It is a hash table instead of a sort: at 30-fold depth nine of ten k-mers were seen before and cost one addition in
//! a table that fits the device's cache; sorting would move all k-mers through memory about 16 times. It requires
//! 64-bit atomics, which current drivers have (docs/internals/gpu.md); a device without them is not used, and a warning
//! is shown.
//!
//! `unsafe` code starts kernels with arguments that are created here, and reinterprets rows as the types that the
//! kernel wrote.
#![allow(unsafe_code)]

use std::sync::Arc;

use genuma_gpu::{Device, DeviceBuffer, DeviceKernel, DeviceQueue, Error, KernelArg, PinnedHostBuffer};

use super::table::{
    DeviceTable, GatheredCounts, LaneMemorySizes, MAX_PROBED_SLOTS_PER_KMER, MAX_RECORDS_PER_WORK_GROUP,
    SLOTS_GATHERED_PER_WORK_GROUP, WORK_GROUP_ITEMS,
};
use crate::NUM_SPECTRUM_ENTRIES;
use crate::counter_table::{DeviceRowRequest, DeviceTableRows, KmerSpectra, RootClass};

const SOURCE: &str = concat!(include_str!("key.cl"), include_str!("insert.cl"), include_str!("gather.cl"));

/// Number of 32-bit words in the state buffer of the kernels, which is separate from the spectra.
const STATE_WORDS: usize = 4;

/// Counter table in the memory of an OpenCL device, with its kernels, buffers and command queue.
#[derive(Debug)]
pub(crate) struct OpenClTable<const S: usize> {
    sizes: LaneMemorySizes,
    class: RootClass,
    slots: usize,
    insert: DeviceKernel,
    gather: DeviceKernel,
    records: DeviceBuffer,
    starts: DeviceBuffer,
    keys: DeviceBuffer,
    counts: DeviceBuffer,
    state: DeviceBuffer,
    spectra: DeviceBuffer,
    row_keys: DeviceBuffer,
    row_counts: DeviceBuffer,
    /// Pinned host memory into which the keys of the requested rows are copied.
    host_keys: PinnedHostBuffer,
    /// Pinned host memory into which the counts of the requested rows are copied.
    host_counts: PinnedHostBuffer,
    lane: DeviceQueue,
}

impl<const S: usize> OpenClTable<S> {
    /// Creates a table for `k`-mers with its own command queue.
    ///
    /// # Errors
    /// Returns an error if the device lacks a feature, its driver cannot compile the kernels, or a call of the driver
    /// fails.
    pub(super) fn create_on_device(device: &Arc<Device>, k: u32, sizes: LaneMemorySizes) -> Result<Self, Error> {
        let options = format!(
            "-D K={k} -D SAMPLES={S} -D CHUNK={MAX_RECORDS_PER_WORK_GROUP} -D GROUP={WORK_GROUP_ITEMS} -D MARGIN={MAX_PROBED_SLOTS_PER_KMER} -D STRETCH={SLOTS_GATHERED_PER_WORK_GROUP} -D SLOTS={NUM_SPECTRUM_ENTRIES}"
        );
        let lane = device.create_queue()?;
        let all = sizes.max_slots + MAX_PROBED_SLOTS_PER_KMER;
        let (keys, counts) = (8 * all, 4 * S * all);
        Ok(Self {
            sizes,
            class: RootClass::ALL_ROOTS,
            slots: 0,
            insert: lane.create_kernel(SOURCE, &options, "insert")?,
            gather: lane.create_kernel(SOURCE, &options, "gather")?,
            records: lane.allocate_buffer(sizes.staging_bytes)?,
            starts: lane.allocate_buffer(4 * (sizes.max_chunks + 1))?,
            keys: lane.allocate_buffer(keys)?,
            counts: lane.allocate_buffer(counts)?,
            state: lane.allocate_buffer(4 * STATE_WORDS)?,
            spectra: lane.allocate_buffer(4 * S * NUM_SPECTRUM_ENTRIES)?,
            row_keys: lane.allocate_buffer(keys)?,
            row_counts: lane.allocate_buffer(counts)?,
            host_keys: lane.allocate_pinned_buffer(keys)?,
            host_counts: lane.allocate_pinned_buffer(counts)?,
            lane,
        })
    }

    fn state(&self) -> Result<[u32; STATE_WORDS], Error> {
        let mut bytes = [0; 4 * STATE_WORDS];
        self.lane.copy_from_device(&self.state, &mut bytes)?;
        Ok(std::array::from_fn(|i| u32::from_ne_bytes(bytes.as_chunks().0[i])))
    }
}

/// Reinterprets bytes that a kernel wrote as `n` values.
///
/// # Safety
/// Any bit pattern must be a valid `T`.
unsafe fn values<T>(bytes: &[u8], n: usize) -> &[T] {
    // SAFETY: any bytes are values.
    let (before, values, _) = unsafe { bytes.align_to::<T>() };
    assert!(before.is_empty(), "drivers align memory to the largest of their types");
    &values[..n]
}

impl<const S: usize> DeviceTable<S> for OpenClTable<S> {
    type StagingMemory = PinnedHostBuffer;

    fn allocate_staging(&self) -> Result<PinnedHostBuffer, Error> {
        self.lane.allocate_pinned_buffer(self.sizes.staging_bytes)
    }

    fn max_chunks(&self) -> usize {
        self.sizes.max_chunks
    }

    fn max_slots(&self) -> usize {
        self.sizes.max_slots
    }

    fn start_class(&mut self, class: RootClass, slots: usize) -> Result<(), Error> {
        assert!(slots <= self.sizes.max_slots, "more slots than there is memory for");
        (self.class, self.slots) = (class, slots);
        let all = slots + MAX_PROBED_SLOTS_PER_KMER;
        self.lane.enqueue_fill_with_word(&mut self.keys, u32::MAX, 2 * all)?;
        self.lane.enqueue_fill_with_word(&mut self.counts, 0, S * all)?;
        self.lane.enqueue_fill_with_word(&mut self.state, 0, STATE_WORDS)?;
        self.lane.enqueue_fill_with_word(&mut self.spectra, 0, S * NUM_SPECTRUM_ENTRIES)
    }

    fn add_records(&mut self, records: &[u8], starts: &[u32]) -> Result<(), Error> {
        // Valid chunk starts keep the kernel within its memory.
        let fit =
            |chunk: &[u32]| chunk[0] < chunk[1] && (chunk[1] - chunk[0]) as usize <= MAX_RECORDS_PER_WORK_GROUP * 17;
        assert!(starts.windows(2).all(fit) && starts.last().is_none_or(|&end| end as usize <= records.len()));
        self.lane.copy_to_device(&mut self.records, records)?;
        // SAFETY: words are bytes.
        let bytes = unsafe { starts.align_to::<u8>().1 };
        self.lane.copy_to_device(&mut self.starts, bytes)?;
        let (bits, id) = self.class.class_bits_and_id();
        let args = [
            KernelArg::Buffer(&self.records),
            KernelArg::Buffer(&self.starts),
            KernelArg::Buffer(&self.keys),
            KernelArg::Buffer(&self.counts),
            KernelArg::U32(self.slots as u32),
            KernelArg::U32(bits),
            KernelArg::U64(id),
            KernelArg::Buffer(&self.state),
        ];
        // SAFETY: each group has one chunk, which is inside the records and fits the kernel's local memory; slot
        // positions are below `slots`, and the memory has a margin after them.
        unsafe { self.lane.enqueue_kernel(&self.insert, &args, starts.len() - 1, WORK_GROUP_ITEMS) }
    }

    fn gather_counts(
        &mut self,
        requested: DeviceRowRequest,
        spectra: &mut KmerSpectra<S>,
    ) -> Result<Option<GatheredCounts<'_, S>>, Error> {
        if self.state()?[0] != 0 {
            return Ok(None);
        }
        let (whole_roots, least) = match requested {
            DeviceRowRequest::Roots => (1, 0),
            DeviceRowRequest::Kmers { min_count: least } => (0, least),
        };
        let args = [
            KernelArg::Buffer(&self.keys),
            KernelArg::Buffer(&self.counts),
            KernelArg::U32(self.slots as u32),
            KernelArg::U32(whole_roots),
            KernelArg::U64(least.into()),
            KernelArg::Buffer(&self.state),
            KernelArg::Buffer(&self.spectra),
            KernelArg::Buffer(&self.row_keys),
            KernelArg::Buffer(&self.row_counts),
        ];
        // SAFETY: slots up to the margin are allocated, and there are as many rows as slots.
        unsafe {
            self.lane.enqueue_kernel(
                &self.gather,
                &args,
                (self.slots + MAX_PROBED_SLOTS_PER_KMER).div_ceil(SLOTS_GATHERED_PER_WORK_GROUP),
                WORK_GROUP_ITEMS,
            )?;
        }
        let [_, rows, distinct, roots] = self.state()?;
        let mut seen = vec![0; 4 * S * NUM_SPECTRUM_ENTRIES];
        self.lane.copy_from_device(&self.spectra, &mut seen)?;
        let rows = rows as usize;
        self.lane.copy_from_device(&self.row_keys, &mut self.host_keys[..8 * rows])?;
        self.lane.copy_from_device(&self.row_counts, &mut self.host_counts[..4 * S * rows])?;
        // All data has been copied: nothing can fail from here on.
        let seen = seen.as_chunks().0.chunks(NUM_SPECTRUM_ENTRIES);
        for (spectrum, seen) in spectra.0.iter_mut().zip(seen) {
            spectrum.iter_mut().zip(seen).for_each(|(sum, &n)| *sum += u64::from(u32::from_ne_bytes(n)));
        }
        // SAFETY: any bytes are integers.
        let keys = unsafe { values(&self.host_keys, rows) };
        // SAFETY: and arrays of them.
        let counts = unsafe { values(&self.host_counts, rows) };
        let rows = DeviceTableRows { keys, counts };
        Ok(Some(GatheredCounts { rows, num_kmers: distinct.into(), num_roots: roots.into() }))
    }
}
