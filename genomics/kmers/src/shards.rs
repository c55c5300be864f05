//! Counting of distributed reads: each shard of the reads is scattered into an object that contains the bins of all
//! partitions; a partition is counted from the objects of all shards.
//!
//! The numbers of shards and of partitions are independent. Bins are not rewritten: the records of a bin are read
//! from all shards. The bins of a partition are consecutive in an object, so counting a partition reads one range of
//! each object.

use std::ops::Range;

use genuma_reads::{Lane, ProgressCounters};
use genuma_work::spill::{LocalCopyOfObjectRange, SpillFile};
use serde::{Deserialize, Serialize};

use crate::bins::{BinSource, Bins, SpilledBinIndex};
use crate::node_assignment::NodeAssignment;
use crate::partition::{BinGrid, Partition};
use crate::pipeline::{
    BinCountingResources, RootSelection, ScatteredReads, check_count_params, count_bins, create_extent_pool,
    merge_selected_items,
};
use crate::plan::{self, KmerDelivery, MemoryDemand, MemoryPlan};
use crate::scatter::ScatterTotals;
use crate::{CountParams, CountResult, CountStats, Error, PreparePair, RootCounters};

/// Index of the k-mers of a shard in its object: which bytes contain which bin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardKmerIndex {
    grid: BinGrid,
    /// Number of bases read, per sample.
    bases: [u64; 2],
    /// Number of k-mers, per sample, in all partitions.
    kmers: [u64; 2],
    /// Total size of the super-k-mer records, in bytes.
    bytes: u64,
    bins: SpilledBinIndex,
}

impl ShardKmerIndex {
    /// Reads all lanes of a shard, with pairs prepared as in [`count_partition`](crate::count_partition), and scatters
    /// their k-mers into bins. Data that does not fit in memory is spilled to the work folder.
    ///
    /// # Errors
    /// Returns an error if a parameter is out of range, if the memory is too small for the grid, if reads cannot be
    /// read, or if files cannot be written.
    pub fn scatter_lanes_of_shard<R: PreparePair>(
        lanes: &[Lane],
        grid: BinGrid,
        params: &CountParams,
        meter: &ProgressCounters,
        prepare: impl Fn() -> R + Sync,
    ) -> Result<(ScatteredReads<2>, Vec<R>), Error> {
        check_count_params(params)?;
        let demand = MemoryDemand::demand_for_count::<2>(
            params.estimate_kmers_of_lanes(lanes)?.kmers,
            params.threads,
            KmerDelivery::Roots,
        );
        let plan = MemoryPlan::divide_memory_for_grid(grid, &demand, params.memory_for_threads()).ok_or_else(|| {
            let least = plan::min_memory_bytes_for_grid(grid, params.threads);
            Error::InvalidParams(format!(
                "{} bytes of memory are too little for {} bins: {} threads need at least {least}",
                params.memory_bytes,
                grid.num_bins(),
                params.threads
            ))
        })?;
        let pool = create_extent_pool(&plan, plan.bins, params)?;
        ScatteredReads::scatter_into_bin_grid(grid, pool, plan, lanes, params, meter, prepare)
    }

    /// Appends the scattered bins to `file` and returns their index.
    ///
    /// # Errors
    /// Returns an error if the spill file cannot be read or `file` cannot be written.
    pub fn append_bins_to_file(
        scattered: ScatteredReads<2>,
        grid: BinGrid,
        file: &SpillFile,
    ) -> Result<ShardKmerIndex, Error> {
        let ScatteredReads { bins, totals: ScatterTotals { bases, kmers, bytes }, .. } = scattered;
        Ok(ShardKmerIndex { grid, bases, kmers, bytes, bins: bins.write_bins_consecutively(file)? })
    }

    /// Number of k-mers of each sample, in all partitions.
    pub fn num_kmers_by_sample(&self) -> [u64; 2] {
        self.kmers
    }

    /// Total size of the super-k-mer records of the shard, in bytes.
    pub fn total_record_bytes(&self) -> u64 {
        self.bytes
    }

    /// Byte range of a partition in the object.
    pub fn byte_range_of_partition(&self, partition: Partition) -> Range<u64> {
        self.bins_of(partition).byte_range_in_file()
    }

    fn bins_of(&self, partition: Partition) -> SpilledBinIndex {
        let first = self.grid.first_bin_of_partition(partition.number());
        self.bins.extract_index_of_bins(first..first + self.grid.bins_per_partition as usize)
    }

    /// Whether the shard has all bins of this grid, and the grid has as many partitions as `partition`.
    fn matches_grid(&self, partition: Partition, grid: BinGrid) -> bool {
        self.grid == grid && partition.num_partitions() == grid.num_partitions && self.bins.len() == grid.num_bins()
    }
}

/// The bins of one partition in the objects of all shards.
struct ShardBins<'a> {
    shards: Vec<Bins>,
    /// Receives the number of bytes read.
    meter: &'a ProgressCounters,
}

impl BinSource for ShardBins<'_> {
    fn len(&self) -> usize {
        self.shards.first().map_or(0, Bins::len)
    }

    fn kmer_count_of_bin(&self, bin: usize) -> u64 {
        self.shards.iter().map(|shard| shard.kmer_count_of_bin(bin)).sum()
    }

    fn for_each_extent_of_bin(&self, bin: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let mut seen = |records: &[u8]| {
            self.meter.add_bytes(records.len() as u64);
            each(records);
        };
        self.shards.iter().try_for_each(|shard| shard.for_each_extent_of_bin(bin, &mut seen))
    }

    fn free_bin(&self, bin: usize) {
        self.shards.iter().for_each(|shard| shard.free_bin(bin));
    }
}

/// Counts the partition `params.partition` from the objects of all shards. `select` is created from the number of
/// k-mers of each sample in all partitions and receives each root of the partition once, as in
/// [`count_partition`](crate::count_partition).
///
/// # Errors
/// Returns an error if a parameter is out of range, if there is no shard, if the shards have different grids, or if
/// an object cannot be read or is damaged.
pub fn count_partition_from_shards<P, F>(
    shards: &[(ShardKmerIndex, LocalCopyOfObjectRange<'_>)],
    params: &CountParams,
    meter: &ProgressCounters,
    select: impl FnOnce(&[u64; 2]) -> F,
) -> Result<CountResult<P>, Error>
where
    P: Ord + Send,
    F: Fn(&RootCounters, &mut Vec<P>) + Sync,
{
    check_count_params(params)?;
    let &CountParams { k, threads, partition: part, .. } = params;
    let grid = shards.first().map(|(shard, _)| shard.grid);
    let other =
        || Error::InvalidParams("the shards were scattered into a different number of partitions or bins".into());
    let grid = grid.ok_or_else(other)?;
    if !shards.iter().all(|(shard, _)| shard.matches_grid(part, grid)) {
        return Err(other());
    }
    let mut totals = ScatterTotals::zero();
    let nodes = NodeAssignment::for_this_machine(threads);
    let mut stacked = Vec::new();
    let mut held = 0;
    for (shard, file) in shards {
        totals.merge_totals(&ScatterTotals { bases: shard.bases, kmers: shard.kmers, bytes: 0 });
        let bins = shard.bins_of(part);
        held += bins.num_kmers_in_all_bins();
        totals.bytes += bins.total_record_bytes();
        stacked.push(Bins::open_object_copy(bins, nodes.clone(), file)?);
    }
    let plan = MemoryPlan::divide_memory(
        &MemoryDemand::demand_for_count::<2>(held, threads, KmerDelivery::Roots),
        params.memory_for_threads(),
    );
    let select = select(&totals.kmers);
    meter.add_expected_bytes(totals.bytes);
    let stacked = ShardBins { shards: stacked, meter };
    let (devices, reserved) = (&params.devices, params.reserved_for_devices());
    let counters =
        BinCountingResources { nodes: &nodes, k, threads, plan: &plan, devices, device_memory_bytes: reserved };
    let (sum, selections) = count_bins(&stacked, &counters, || RootSelection::with_root_selector(&select))?;
    let (picks, roots) = merge_selected_items(selections);
    let bins = u64::from(grid.bins_per_partition);
    let stats = CountStats {
        bases: totals.bases,
        kmers: totals.kmers,
        distinct: sum.distinct,
        super_kmer_bytes: totals.bytes,
        spilled_bytes: 0,
        peak_spill_bytes: 0,
        bins,
        extra_passes: sum.passes - bins,
    };
    Ok(CountResult { selected: picks, spectra: sum.spectra.0, stats, roots })
}
