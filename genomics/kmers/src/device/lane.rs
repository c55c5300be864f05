//! A lane of a device: it counts one bin after the other until no bin is left or the device fails.

use std::sync::{Arc, Mutex, PoisonError};

use genuma_gpu::Device;

use super::Devices;
use super::opencl::OpenClTable;
use super::staged::RecordStaging;
use super::table::{DeviceTable, LaneMemorySizes};
use crate::Error;
use crate::bins::BinSource;
use crate::counter_table::{CountTotals, CounterSink, RootClass};

/// Minimum number of slots of a table.
const MIN_SLOTS: usize = 1024;

/// Bins with at least this number of k-mers are left to the threads, as a 32-bit counter of the device could
/// overflow.
const MIN_BIN_KMERS_FOR_THREADS: u64 = 1 << 32;

/// Bins that device lanes left to the threads, each with the root classes that are still to be counted.
pub(super) type PostponedBins = Mutex<Vec<(usize, Vec<RootClass>)>>;

/// Settings of a device lane: its device and memory limits. [`DeviceLaneSettings::count_bins`] runs the lane.
#[derive(Debug)]
pub(crate) struct DeviceLaneSettings {
    /// Index of the lane among the lanes of all devices.
    pub number: usize,
    /// The OpenCL device on which the lane counts.
    pub device: Arc<Device>,
    /// Maximum number of bytes of device memory that the lane allocates.
    pub(crate) device_bytes: u64,
    /// Maximum number of bytes of host memory that the lane allocates.
    pub(crate) host_bytes: u64,
    /// The devices, which record the numbers of counted bins.
    pub statistics: Devices,
}

/// Reason why a bin was not counted on the device.
#[derive(Debug)]
pub(super) enum LaneError {
    Device(genuma_gpu::Error),
    /// A bin could not be read, or its counts could not be stored: the whole count fails.
    Counting(Error),
}

impl From<genuma_gpu::Error> for LaneError {
    fn from(error: genuma_gpu::Error) -> Self {
        LaneError::Device(error)
    }
}

impl DeviceLaneSettings {
    /// Counts the bins `which` until none is left or the device fails. Adds to `postponed` the bin that a failed device
    /// had begun, and bins with too many k-mers for a device. A device that cannot be used counts no bin.
    pub(crate) fn count_bins<const S: usize>(
        &self,
        k: u32,
        bins: &impl BinSource,
        mut which: impl Iterator<Item = usize>,
        harvest: &mut impl CounterSink<S>,
        postponed: &PostponedBins,
    ) -> Result<CountTotals<S>, Error> {
        let mut counting = match self.create_counter::<S>(k) {
            Ok(counting) => counting,
            Err(error) => {
                self.log_failure(&error);
                return Ok(CountTotals::zero());
            }
        };
        let leave = |bin, classes| {
            postponed.lock().unwrap_or_else(PoisonError::into_inner).push((bin, classes));
        };
        for bin in which.by_ref() {
            let mut classes = vec![RootClass::ALL_ROOTS];
            if bins.kmer_count_of_bin(bin) >= MIN_BIN_KMERS_FOR_THREADS {
                leave(bin, classes);
                continue;
            }
            let read = |each: &mut dyn FnMut(&[u8])| bins.for_each_extent_of_bin(bin, each);
            match counting.count_classes_of_bin(bins.kmer_count_of_bin(bin), read, &mut classes, harvest) {
                Ok(()) => self.statistics.add_device_bin(),
                Err(LaneError::Counting(error)) => return Err(error),
                Err(LaneError::Device(error)) => {
                    self.log_failure(&error);
                    self.statistics.add_taken_over_bin();
                    leave(bin, classes);
                    return Ok(counting.totals);
                }
            }
            bins.free_bin(bin);
        }
        Ok(counting.totals)
    }

    /// Compiles the kernels and allocates the table.
    fn create_counter<const S: usize>(&self, k: u32) -> Result<LaneCounter<OpenClTable<S>, S>, genuma_gpu::Error> {
        let described = self.device.description();
        let unfit =
            |what: &str| genuma_gpu::Error::UnsuitableDevice { device: described.name.clone(), what: what.into() };
        if !described.has_int64_atomics {
            return Err(unfit("it has no 64-bit atomics (cl_khr_int64_base_atomics)"));
        }
        let sizes = LaneMemorySizes::choose_fitting_sizes::<S>(
            self.device_bytes,
            described.max_allocation_bytes,
            self.host_bytes,
        );
        let sizes = sizes.ok_or_else(|| unfit("it has too little memory to count k-mers"))?;
        LaneCounter::with_table(k, OpenClTable::create_on_device(&self.device, k, sizes)?)
    }

    /// Logs that the device is not used any more, unless another lane has logged it.
    fn log_failure(&self, error: &genuma_gpu::Error) {
        match error {
            genuma_gpu::Error::DeviceLost { .. } => {}
            // All lanes find the same; only the first one logs it.
            genuma_gpu::Error::UnsuitableDevice { .. } if !self.number.is_multiple_of(super::LANES) => {}
            _ => tracing::warn!(
                "{error}: this GPU is not used any more and the CPU threads count the rest: the result is the same, only slower; \
                 --gpu off avoids the GPU"
            ),
        }
    }
}

/// Counter table of a device lane, with the totals of what the lane has counted.
pub(super) struct LaneCounter<T: DeviceTable<S>, const S: usize> {
    table: T,
    staged: RecordStaging<T::StagingMemory>,
    /// Number of k-mers in all bins that the lane has counted.
    kmers: u64,
    /// Totals of the counted bins.
    pub totals: CountTotals<S>,
}

impl<T: DeviceTable<S>, const S: usize> LaneCounter<T, S> {
    /// Creates a counter for `k`-mers that counts in `table`.
    ///
    /// # Errors
    /// Returns an error if the device fails.
    pub(super) fn with_table(k: u32, table: T) -> Result<Self, genuma_gpu::Error> {
        let staged = RecordStaging::new(k, table.allocate_staging()?, table.max_chunks());
        Ok(Self { table, staged, kmers: 0, totals: CountTotals::zero() })
    }

    /// Counts the root classes `classes` of a bin with `kmers` k-mers. `read` passes the records of the bin to its
    /// argument. Classes that were counted are removed from `classes`, so after a device failure those that remain are
    /// still to be counted.
    pub(super) fn count_classes_of_bin(
        &mut self,
        kmers: u64,
        read: impl Fn(&mut dyn FnMut(&[u8])) -> Result<(), Error>,
        classes: &mut Vec<RootClass>,
        harvest: &mut impl CounterSink<S>,
    ) -> Result<(), LaneError> {
        let Self { table, staged, kmers: before, totals: share } = self;
        // Assume the same diversity as in the bins before.
        let distinct = match *before {
            0 => kmers / 8,
            before => (u128::from(kmers) * u128::from(share.distinct) / u128::from(before)) as u64,
        };
        let max_slots = table.max_slots();
        let mut slots = (distinct.min(max_slots as u64) as usize * 2).clamp(MIN_SLOTS.min(max_slots), max_slots);
        while let Some(&class) = classes.last() {
            table.start_class(class, slots)?;
            staged.discard_staged_records();
            let mut sent = Ok(());
            read(&mut |records| {
                if sent.is_ok() {
                    sent = staged.stage_records(records, |piece, starts| table.add_records(piece, starts));
                }
            })
            .map_err(LaneError::Counting)?;
            sent?;
            staged.send_staged_records(|piece, starts| table.add_records(piece, starts))?;
            match table.gather_counts(harvest.requested_rows(), &mut share.spectra)? {
                Some(gathered) => {
                    classes.pop();
                    share.distinct += gathered.num_kmers;
                    share.passes += 1;
                    harvest.take_rows(gathered.rows, gathered.num_roots).map_err(LaneError::Counting)?;
                }
                None if slots < max_slots => slots = (2 * slots).min(max_slots),
                None => {
                    classes.pop();
                    classes.extend(class.split_class());
                }
            }
        }
        *before += kmers;
        Ok(())
    }
}
