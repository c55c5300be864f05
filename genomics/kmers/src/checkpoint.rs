//! Checkpoints from which an interrupted count resumes: all reads in bins, and all counted k-mers in sort ranges.
//!
//! A checkpoint is the index of a named spill file, with the checksum of each extent. The file is on the disk when
//! the checkpoint is returned; the caller stores the checkpoint with it. `docs/formats/unit.md` describes the layout
//! of both.

use std::path::Path;

use genuma_reads::{Lane, ProgressCounters};
use serde::{Deserialize, Serialize};

use crate::bins::{Bins, SpilledBinIndex};
use crate::extents::ExtentPool;
use crate::node_assignment::NodeAssignment;
use crate::pipeline::{ScatteredReads, check_count_params};
use crate::plan::{KmerDelivery, MemoryDemand, MemoryPlan};
use crate::scatter::ScatterTotals;
use crate::sorted_kmers::{SortRangeLayout, SortableKmers};
use crate::{CountParams, CountStats, Error, KeepPairUnchanged};

/// Checkpoint after all reads were scattered into bins: the index of the file with the bins, and totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinnedReadsCheckpoint {
    /// Number of bases read, per sample.
    bases: Vec<u64>,
    /// Number of k-mers read, per sample, in all partitions.
    kmers: Vec<u64>,
    /// Total size of the records in the bins, in bytes.
    bytes: u64,
    bins: SpilledBinIndex,
}

/// Checkpoint after all k-mers were counted: the index of the file with the counted k-mers in sort ranges, and totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedKmersCheckpoint {
    bases: Vec<u64>,
    kmers: Vec<u64>,
    distinct: u64,
    super_kmer_bytes: u64,
    spilled_bytes: u64,
    bins: u64,
    extra_passes: u64,
    /// Number of counted k-mers that were kept, in all sort ranges.
    num_kept: u64,
    spectra: Vec<Vec<u64>>,
    ranges: SpilledBinIndex,
}

impl BinnedReadsCheckpoint {
    /// Reads all lanes of samples 0 to `S - 1` into bins in a new file at `path`, and returns the checkpoint.
    ///
    /// # Errors
    /// Returns the errors of [`ScatteredReads::scatter_lanes`].
    pub fn scatter_lanes_to_file<const S: usize>(
        lanes: &[Lane],
        params: &CountParams,
        meter: &ProgressCounters,
        path: &Path,
    ) -> Result<Self, Error> {
        let plan = ScatteredReads::<S>::plan_memory_for_sorting(lanes, params)?;
        let pool = ExtentPool::with_named_file(
            plan.extent_bytes,
            plan.bins,
            NodeAssignment::for_this_machine(params.threads),
            path,
        )?;
        let (scattered, _) =
            ScatteredReads::<S>::scatter_into_extent_pool(pool, plan, lanes, params, meter, || KeepPairUnchanged)?;
        let ScatteredReads { bins, totals: ScatterTotals { bases, kmers, bytes }, .. } = scattered;
        Ok(Self { bases: bases.into(), kmers: kmers.into(), bytes, bins: bins.move_all_to_file()? })
    }

    /// Number of counters of each k-mer: the number of samples, rounded up to a supported number.
    pub(crate) fn num_counters_per_kmer(&self) -> usize {
        self.bases.len()
    }

    /// Opens the bins in the file at `path`, to count them with the threads and memory of `params`.
    fn scattered<const S: usize>(self, params: &CountParams, path: &Path) -> Result<ScatteredReads<S>, Error> {
        check_count_params(params)?;
        let CountParams { k, threads, memory_bytes: memory, .. } = *params;
        let (devices, reserved) = (params.devices.clone(), params.reserved_for_devices());
        let demand = MemoryDemand::demand_for_count::<S>(self.kmers.iter().sum(), threads, KmerDelivery::SortableKmers);
        let plan = MemoryPlan::divide_memory(&demand, params.memory_for_threads());
        // The bins need no memory now except the extent that each thread reads.
        if threads * self.bins.extent_bytes > (plan.max_extents - plan.sort_ranges + threads) * plan.extent_bytes {
            return Err(insufficient_memory_error(memory));
        }
        let totals = ScatterTotals { bases: to_array(self.bases)?, kmers: to_array(self.kmers)?, bytes: self.bytes };
        let bins = Bins::open_file(self.bins, NodeAssignment::for_this_machine(threads), path)?;
        let shares = Vec::new();
        Ok(ScatteredReads {
            pool: bins.extent_pool(),
            bins,
            plan,
            k,
            threads,
            totals,
            memory_by_node: shares,
            devices,
            device_memory_bytes: reserved,
        })
    }
}

impl CountedKmersCheckpoint {
    /// Counts the bins in the file at `bins`, writes the k-mers whose total count is at least `min_count` to a new file
    /// at `path`, and returns the checkpoint. The threads and memory of `params` may differ from those with which the
    /// reads were scattered.
    ///
    /// # Errors
    /// Returns an error if a parameter is out of range, or if a spill file cannot be written or read or is damaged.
    pub fn count_bins_to_file<const S: usize>(
        read: BinnedReadsCheckpoint,
        bins: &Path,
        params: &CountParams,
        min_count: u32,
        path: &Path,
    ) -> Result<Self, Error> {
        let scattered = read.scattered::<S>(params, bins)?;
        let MemoryPlan { extent_bytes: extent, sort_ranges: parts, .. } = scattered.plan;
        let pool = ExtentPool::with_named_file(extent, parts, NodeAssignment::for_this_machine(params.threads), path)?;
        let sorted = scattered.count_frequent_kmers_into_pool(pool, min_count)?;
        let CountStats { bases, kmers, distinct, super_kmer_bytes: packed_bytes, bins, extra_passes, .. } =
            sorted.count_stats();
        let SortableKmers { num_kept: kept, spectra, ranges: parts, .. } = sorted;
        let parts = parts.move_all_to_file()?;
        Ok(Self {
            bases: bases.into(),
            kmers: kmers.into(),
            distinct,
            super_kmer_bytes: packed_bytes,
            spilled_bytes: packed_bytes + parts.total_record_bytes(),
            bins,
            extra_passes,
            num_kept: kept,
            spectra: spectra.into(),
            ranges: parts,
        })
    }

    /// Number of counters of each k-mer: the number of samples, rounded up to a supported number.
    pub(crate) fn num_counters_per_kmer(&self) -> usize {
        self.bases.len()
    }

    /// Opens the k-mers in the file at `path`, to sort them with the threads and half of the memory of `params`.
    ///
    /// # Errors
    /// Returns an error if a parameter is out of range or the spill file cannot be read.
    pub fn open_sortable_kmers<const S: usize>(
        self,
        params: &CountParams,
        path: &Path,
    ) -> Result<SortableKmers<S>, Error> {
        check_count_params(params)?;
        let CountParams { k, threads, memory_bytes: memory, .. } = *params;
        // Each thread also reads an extent. The other half of the memory is left to the consumer of the k-mers.
        let each = (memory / 2) as usize / threads;
        let room = each.checked_sub(self.ranges.extent_bytes).ok_or_else(|| insufficient_memory_error(memory))?;
        let stats = CountStats {
            bases: to_array(self.bases)?,
            kmers: to_array(self.kmers)?,
            distinct: self.distinct,
            super_kmer_bytes: self.super_kmer_bytes,
            spilled_bytes: self.spilled_bytes,
            peak_spill_bytes: 0,
            bins: self.bins,
            extra_passes: self.extra_passes,
        };
        let parts = Bins::open_file(self.ranges, NodeAssignment::for_this_machine(threads), path)?;
        let layout = SortRangeLayout::with_num_ranges(k, parts.len());
        let (kept, spectra, shares) = (self.num_kept, to_array(self.spectra)?, Vec::new());
        Ok(SortableKmers {
            ranges: parts,
            layout,
            threads,
            sort_bytes: room,
            num_kept: kept,
            spectra,
            stats,
            memory_by_node: shares,
        })
    }
}

fn insufficient_memory_error(memory: u64) -> Error {
    Error::InvalidParams(format!(
        "{memory} bytes of memory are too little to resume a count that started with more: give as much memory as before, or use fewer threads"
    ))
}

/// Converts a vector with one entry per sample to an array; an error if the number of samples is not `S`.
fn to_array<T, const S: usize>(per_sample: Vec<T>) -> Result<[T; S], Error> {
    let n = per_sample.len();
    per_sample.try_into().map_err(|_| {
        Error::InvalidParams(format!("a checkpoint of a count of {n} samples cannot be resumed with {S} samples"))
    })
}
