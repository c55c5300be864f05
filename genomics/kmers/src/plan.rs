//! Division of the counter's memory into bins, buffers and tables.

use genuma_reads::ReadEstimate;

use crate::collapse::counted_super_kmer_bytes;
use crate::counter_table::{MIN_SLOTS, slot_bytes};
use crate::minimizer::minimizer_length;
use crate::partition::{BinGrid, MAX_BINS, MAX_PARTITIONS};
use crate::superkmer::MAX_RECORD_BYTES;
use crate::{CountParams, MAX_SAMPLES, NUM_SPECTRUM_ENTRIES};

/// Number of k-mers per bin, within the limits below: at 30-fold depth or more the table of a bin fits the cache of a
/// core.
const KMERS_PER_BIN: u64 = 1 << 18;

/// Approximate number of bytes of super-k-mers per k-mer: numerator and denominator.
const BYTES_PER_KMER: (u64, u64) = (5, 4);

const KIB: u64 = 1024;
/// Minimum number of bins of a count.
const MIN_BINS: u64 = 16;
/// Minimum number of bins of a partition in a grid of many partitions.
const MIN_BINS_PER_PARTITION: u64 = 4;
/// Minimum number of bins for each range in which counted k-mers are sorted.
const BINS_PER_SORT_RANGE: u64 = 4;
/// Minimum size of an extent in bytes.
const MIN_EXTENT_BYTES: u64 = 4 * KIB;
/// Maximum size of an extent in bytes.
const MAX_EXTENT_BYTES: u64 = 256 * KIB;
/// Minimum size in bytes of a thread's buffer for one bin.
const MIN_BUFFER_BYTES: u64 = 256;
/// Maximum size in bytes of a thread's buffer for one bin.
const MAX_BUFFER_BYTES: u64 = 512;
/// Minimum number of slots of the table in which a thread merges equal super-k-mers.
const MIN_COLLAPSER_SLOTS: usize = 64;
/// Maximum number of slots of the table in which a thread merges equal super-k-mers.
const MAX_COLLAPSER_SLOTS: usize = 8192;
/// Preferred minimum size of an extent in bytes: the number of bins is reduced before extents become smaller.
const PREFERRED_EXTENT_BYTES: u64 = 16 * KIB;

/// Expected numbers of k-mers and of bytes of super-k-mers in the reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedKmers {
    /// Number of k-mers in all reads together, repeated ones included.
    pub kmers: u64,
    /// Bytes of the super-k-mer records.
    pub super_kmer_bytes: u64,
}

impl ExpectedKmers {
    /// Derives the expected numbers from an estimate of reads and bases. `k` may be out of range. A wrong estimate
    /// makes the count slower, but not wrong.
    pub fn from_read_estimate(reads: &ReadEstimate, k: u32) -> Self {
        let k = k.clamp(crate::MIN_K, crate::MAX_K);
        let kmers = reads.estimate_num_kmers(k);
        // A minimizer is the smallest of `window` m-mers; on average a new one comes every (window + 1) / 2 k-mers. A
        // record has a header, the bases that its k-mers share, and unused bits in its last byte.
        let window = u64::from(k - 1 - minimizer_length(k));
        let records = kmers * 2 / (window + 1) + reads.reads.min(kmers);
        let bytes = records * (8 + 3 + 2 * u64::from(k - 1)) / 8 + kmers / 4;
        Self { kmers, super_kmer_bytes: bytes }
    }

    /// The k-mers and bytes of one partition if the whole input is divided evenly into `num_partitions` partitions.
    pub(crate) fn expected_kmers_per_partition(&self, num_partitions: u32) -> Self {
        Self {
            kmers: self.kmers / u64::from(num_partitions),
            super_kmer_bytes: self.super_kmer_bytes / u64::from(num_partitions),
        }
    }
}

/// Minimum number of partitions with which each partition is expected to fit in memory and scratch space; `None` if it
/// is more than [`MAX_PARTITIONS`].
pub(crate) fn partitions_needed<const S: usize>(expected: &ExpectedKmers, params: &CountParams) -> Option<u32> {
    let fits = |&parts: &u32| {
        let ExpectedKmers { kmers, super_kmer_bytes: bytes } = expected.expected_kmers_per_partition(parts);
        let plan = MemoryPlan::divide_memory(
            &MemoryDemand::demand_for_count::<S>(kmers, params.threads, KmerDelivery::Roots),
            params.memory_for_threads(),
        );
        // One sixteenth is a reserve for a wrong estimate.
        bytes + bytes / 16 <= plan.record_capacity_with_scratch_bytes(params.max_scratch_bytes)
    };
    (1..=MAX_PARTITIONS).find(fits)
}

/// Forecast of the resources of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountForecast {
    /// Number of partitions of the k-mer space. Each one needs a pass over all reads.
    pub partitions: u32,
    /// Maximum memory in use in bytes.
    pub peak_memory_bytes: u64,
    /// Bytes of the spill file of one partition.
    pub spilled_bytes: u64,
}

/// Returns a grid of bins for `kmers` k-mers in `num_partitions` partitions (1 to [`MAX_PARTITIONS`], others are
/// clamped). The bins have about the same size as in a count of one partition with enough memory, unless each partition
/// has the minimum number of bins.
pub fn bin_grid_for_kmers(kmers: u64, num_partitions: u32) -> BinGrid {
    let num_partitions = num_partitions.clamp(1, MAX_PARTITIONS);
    let bins = (kmers / KMERS_PER_BIN).clamp(MIN_BINS, MAX_BINS) / u64::from(num_partitions);
    BinGrid { num_partitions, bins_per_partition: bins.max(MIN_BINS_PER_PARTITION) as u32 }
}

/// Minimum memory in bytes with which `threads` threads can scatter reads into the bins of a grid.
pub fn min_memory_bytes_for_grid(grid: BinGrid, threads: usize) -> u64 {
    let (bins, demand) = (
        grid.num_bins() as u64,
        MemoryDemand::demand_for_count::<MAX_SAMPLES>(0, threads, KmerDelivery::SortableKmers),
    );
    let threads = threads as u64;
    let bins = (4 * bins * MIN_EXTENT_BYTES).max(8 * bins * threads * MIN_BUFFER_BYTES);
    min_memory_bytes(threads as usize).max(bins + threads * demand.fixed_bytes_per_thread)
}

/// Forecasts the resources of a count; `None` if more than [`MAX_PARTITIONS`] partitions are needed.
pub(crate) fn forecast_count_resources<const S: usize>(
    expected: &ExpectedKmers,
    params: &CountParams,
) -> Option<CountForecast> {
    let parts = partitions_needed::<S>(expected, params)?;
    let ExpectedKmers { kmers, super_kmer_bytes: bytes } = expected.expected_kmers_per_partition(parts);
    let demand = MemoryDemand::demand_for_count::<S>(kmers, params.threads, KmerDelivery::Roots);
    let plan = MemoryPlan::divide_memory(&demand, params.memory_for_threads());
    let spilled = bytes.saturating_sub(plan.record_capacity_with_scratch_bytes(0));
    Some(CountForecast {
        partitions: parts,
        peak_memory_bytes: plan.peak_bytes(&demand, bytes),
        spilled_bytes: spilled,
    })
}

/// Everything that needs memory in a count: k-mers, threads, tables and buffers. [`MemoryPlan`] divides the memory
/// among them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryDemand {
    /// Expected number of k-mers.
    pub kmers: u64,
    /// Number of threads.
    pub threads: usize,
    /// Bytes of a slot of a counter table.
    slot_bytes: usize,
    /// Bytes of a super-k-mer in the table that merges equal super-k-mers.
    collapser_slot_bytes: usize,
    /// Bytes that a thread needs apart from buffers and tables: for spectra and the minimizers of a read.
    fixed_bytes_per_thread: u64,
    /// Form in which the counted k-mers are delivered.
    pub output: KmerDelivery,
}

/// How a count delivers the counted k-mers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KmerDelivery {
    /// Counted k-mers are passed on root by root.
    Roots,
    /// Counted k-mers are stored in sort ranges and sorted.
    SortableKmers,
}

impl MemoryDemand {
    /// Memory demand of a count of `kmers` k-mers with counters of `S` samples.
    pub(crate) fn demand_for_count<const S: usize>(kmers: u64, threads: usize, output: KmerDelivery) -> Self {
        let thread = 32 * KIB + (S * NUM_SPECTRUM_ENTRIES * size_of::<u64>()) as u64;
        Self {
            kmers,
            threads,
            slot_bytes: slot_bytes::<S>(),
            collapser_slot_bytes: counted_super_kmer_bytes::<S>(),
            fixed_bytes_per_thread: thread,
            output,
        }
    }

    /// Minimum memory in bytes with which the count is possible.
    fn min_bytes(&self) -> u64 {
        let thread = (2 * MIN_SLOTS * self.slot_bytes + 2 * MIN_COLLAPSER_SLOTS * self.collapser_slot_bytes) as u64;
        let bins = MIN_BINS + MIN_BINS / BINS_PER_SORT_RANGE;
        2 * bins * MIN_EXTENT_BYTES
            + 2 * (thread + bins * MIN_BUFFER_BYTES + self.fixed_bytes_per_thread) * self.threads as u64
    }
}

/// Division of the memory among bins, buffers and tables. Sizes are in bytes unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    /// Number of bins: those of one partition, or all bins of a grid.
    pub bins: usize,
    /// Number of ranges in which counted k-mers are sorted: a power of two, or 0.
    pub sort_ranges: usize,
    /// Size of an extent, the unit in which bins grow and spill.
    pub extent_bytes: usize,
    /// Maximum number of extents in memory, at least one per bin and sort range.
    pub max_extents: usize,
    /// Size of the buffer that each thread has for each bin.
    pub buffer_bytes: usize,
    /// Number of slots of the table in which a thread merges equal super-k-mers.
    pub collapser_slots: usize,
    /// Number of slots of a thread's hash table; two tables exist while it grows.
    pub slots: usize,
    /// Bytes of memory in which each thread sorts k-mers, after the counter tables are freed.
    pub sort_bytes: usize,
}

/// Minimum memory in bytes in which `threads` threads can count any number of samples.
pub fn min_memory_bytes(threads: usize) -> u64 {
    MemoryDemand::demand_for_count::<MAX_SAMPLES>(0, threads, KmerDelivery::SortableKmers).min_bytes()
}

impl MemoryPlan {
    /// Divides `memory` bytes, which must be at least [`min_memory_bytes`], and chooses the number of bins.
    pub(crate) fn divide_memory(demand: &MemoryDemand, memory: u64) -> Self {
        let threads = demand.threads as u64;
        let left = memory - threads * demand.fixed_bytes_per_thread;
        // A quarter for open extents and an eighth for buffers, at their smallest.
        let most = (left / 4 / PREFERRED_EXTENT_BYTES).min(left / 8 / (threads * MIN_BUFFER_BYTES));
        let bins = (demand.kmers / KMERS_PER_BIN).clamp(MIN_BINS, MAX_BINS).min(most.max(MIN_BINS));
        Self::with_bins(bins, demand, memory)
    }

    /// Divides the memory for the bins of a grid; `None` if the memory is too small.
    pub(crate) fn divide_memory_for_grid(grid: BinGrid, demand: &MemoryDemand, memory: u64) -> Option<Self> {
        let (bins, threads) = (grid.num_bins() as u64, demand.threads as u64);
        let left = memory.checked_sub(threads * demand.fixed_bytes_per_thread)?;
        // As in `divide_memory`, with extents of the smallest size.
        let fits = bins * MIN_EXTENT_BYTES <= left / 4 && bins * threads * MIN_BUFFER_BYTES <= left / 8;
        fits.then(|| Self::with_bins(bins, demand, memory))
    }

    fn with_bins(bins: u64, demand: &MemoryDemand, memory: u64) -> Self {
        let (threads, slot, kmers) = (demand.threads as u64, demand.slot_bytes as u64, demand.kmers);
        let memory = memory - threads * demand.fixed_bytes_per_thread;
        let parts = match demand.output {
            KmerDelivery::Roots => 0,
            KmerDelivery::SortableKmers => 1 << (bins / BINS_PER_SORT_RANGE).ilog2(),
        };
        let memory = memory - threads * parts * MIN_BUFFER_BYTES;

        // Tables for bins of four times the mean size with only distinct k-mers, if half of the memory remains for
        // the bins. Buffers are freed before tables are allocated.
        let table = 2 * slot * (4 * kmers / bins).max(MIN_SLOTS as u64);
        let tables = (2 * table * threads).clamp(memory / 16, memory / 2);
        let private = (tables / (threads * bins)).clamp(MIN_BUFFER_BYTES, MAX_BUFFER_BYTES);

        let pool = memory - tables.max(private * bins * threads);
        // Each thread also reads spilled extents into memory, one at a time.
        let own = bins + parts + threads;
        // Open extents are half empty. They get little of the pool if the data fits into memory, and more if most of
        // it is spilled, as the disk is faster with long writes.
        let fits = kmers.saturating_mul(BYTES_PER_KMER.0) / BYTES_PER_KMER.1 < 4 * pool;
        let extent =
            if fits { (pool / 16 / own).max(PREFERRED_EXTENT_BYTES).min(pool / 4 / own) } else { pool / 4 / own };
        let extent = extent.clamp(MIN_EXTENT_BYTES, MAX_EXTENT_BYTES) / MIN_EXTENT_BYTES * MIN_EXTENT_BYTES;
        let thread = (tables / threads) as usize;
        let pieces = (thread / 8 / demand.collapser_slot_bytes).clamp(MIN_COLLAPSER_SLOTS, MAX_COLLAPSER_SLOTS);
        Self {
            bins: bins as usize,
            sort_ranges: parts as usize,
            extent_bytes: extent as usize,
            max_extents: (pool / extent - threads) as usize,
            buffer_bytes: private as usize,
            collapser_slots: pieces,
            slots: (thread - pieces * demand.collapser_slot_bytes) / 2 / demand.slot_bytes,
            sort_bytes: thread,
        }
    }

    /// Maximum number of full extents in memory.
    pub(crate) fn max_full_extents_in_memory(&self) -> usize {
        self.max_extents - self.bins - self.sort_ranges
    }

    /// Approximate number of bytes of records that fit in memory and in a spill file of `scratch_bytes` bytes; open
    /// extents are half full.
    pub(crate) fn record_capacity_with_scratch_bytes(&self, scratch_bytes: u64) -> u64 {
        let extent = self.extent_bytes as u64;
        let full = (self.max_full_extents_in_memory() as u64).saturating_add(scratch_bytes / extent);
        full.saturating_mul(extent).saturating_add(self.bins as u64 * extent / 2)
    }

    /// Approximate maximum of the memory in use for `bytes` bytes of records: extents, and the larger of buffers and
    /// tables.
    fn peak_bytes(&self, demand: &MemoryDemand, bytes: u64) -> u64 {
        let (threads, bins, extent) = (demand.threads as u64, self.bins as u64, self.extent_bytes as u64);
        let open = bins + self.sort_ranges as u64 + threads;
        let full = (bytes.saturating_sub(bins * extent / 2) / extent).min(self.max_full_extents_in_memory() as u64);
        let kmers = (demand.kmers / bins).max(MIN_SLOTS as u64);
        let table = (2 * demand.slot_bytes as u64 * kmers).min(self.sort_bytes as u64);
        let private = self.buffer_bytes as u64 * bins;
        (open + full) * extent + threads * (private.max(table) + demand.fixed_bytes_per_thread)
    }

    /// Size of the buffer that each thread has for each sort range.
    pub(crate) const SORT_RANGE_BUFFER_BYTES: usize = MIN_BUFFER_BYTES as usize;
}

const _: () = assert!(MIN_BUFFER_BYTES as usize >= MAX_RECORD_BYTES && MIN_EXTENT_BYTES >= MAX_BUFFER_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    fn holds<const S: usize>(threads: usize, kmers: u64, then: KmerDelivery) {
        let demand = MemoryDemand::demand_for_count::<S>(kmers, threads, then);
        let least = demand.min_bytes();
        assert!(least <= min_memory_bytes(threads));
        for memory in [least, least + 1, 3 * least, 1 << 30, 1 << 34].into_iter().filter(|&m| m >= least) {
            let plan = MemoryPlan::divide_memory(&demand, memory);
            let pool = (plan.max_extents + threads) * plan.extent_bytes;
            let scatter = plan.buffer_bytes * plan.bins * threads;
            let tables =
                threads * (2 * plan.slots * demand.slot_bytes + plan.collapser_slots * demand.collapser_slot_bytes);
            let parts = threads * plan.sort_ranges * MemoryPlan::SORT_RANGE_BUFFER_BYTES;
            let sorting = threads * plan.sort_bytes;
            let most = pool + scatter.max(tables + parts).max(sorting);
            assert!(most as u64 + threads as u64 * demand.fixed_bytes_per_thread <= memory, "{plan:?}");
            assert!(plan.max_extents >= plan.bins + plan.sort_ranges && plan.slots >= MIN_SLOTS, "{plan:?}");
            assert_eq!(plan.sort_ranges > 0, then == KmerDelivery::SortableKmers);
        }
    }

    #[test]
    fn forecasts_fit_and_follow_the_resources() {
        let reads = ReadEstimate { bases: 90_000_000_000, reads: 600_000_000, packed_bytes: 0 };
        let expected = ExpectedKmers::from_read_estimate(&reads, 31);
        let with = |memory, scratch| {
            let (work, part) = (std::path::PathBuf::new(), crate::Partition::WHOLE_KMER_SPACE);
            let params = CountParams {
                k: 31,
                min_base_quality: 0,
                threads: 16,
                memory_bytes: memory,
                work_dir: work,
                max_scratch_bytes: scratch,
                partition: part,
                devices: Default::default(),
            };
            let planned = forecast_count_resources::<2>(&expected, &params).expect("partitions enough");
            assert_eq!(Some(planned.partitions), params.partitions_needed::<2>(&expected));
            assert!(planned.peak_memory_bytes <= memory && planned.spilled_bytes <= scratch, "{planned:?}");
            planned
        };
        let all = with(200 << 30, 0);
        assert_eq!((all.partitions, all.spilled_bytes), (1, 0));
        assert!(
            all.peak_memory_bytes > expected.super_kmer_bytes && all.peak_memory_bytes < 2 * expected.super_kmer_bytes,
            "{all:?}"
        );
        let spilling = with(4 << 30, 1 << 40);
        assert!(spilling.partitions == 1 && spilling.spilled_bytes > expected.super_kmer_bytes / 2, "{spilling:?}");
        assert!(with(4 << 30, 20 << 30).partitions > 1);
        assert!(with(4 << 30, 0).partitions > with(4 << 30, 20 << 30).partitions);
    }

    #[test]
    fn every_plan_stays_within_its_memory() {
        for threads in [1, 2, 5, 64] {
            for kmers in [0, 1_000, 280_000_000, 300_000_000_000] {
                for then in [KmerDelivery::Roots, KmerDelivery::SortableKmers] {
                    holds::<1>(threads, kmers, then);
                    holds::<2>(threads, kmers, then);
                    holds::<MAX_SAMPLES>(threads, kmers, then);
                }
            }
        }
    }
}
