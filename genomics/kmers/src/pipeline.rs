//! Runs the threads of a count, each pinned to a NUMA node. First all threads scatter reads into bins; then all threads
//! count bins, those of their own node first and the largest of these first.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use genuma_reads::{Lane, ProgressCounters, for_each_batch};
use genuma_work::{parallel, spill};

use crate::bins::{BinSource, Bins};
use crate::collapse::SuperKmerCollapser;
use crate::counter_table::{
    CountTotals, CounterSink, CounterTable, DeviceRowRequest, DeviceTableRows, KmerSpectra, RootClass,
};
use crate::device::{DeviceLaneSettings, Devices};
use crate::extents::ExtentPool;
use crate::node_assignment::{NodeAssignment, NodeThreadsAndMemory};
use crate::partition::BinGrid;
use crate::plan::{KmerDelivery, MemoryDemand, MemoryPlan, min_memory_bytes};
use crate::scatter::{ScatterThread, ScatterTotals};
use crate::sorted_kmers::{FrequentKmerWriter, SortRangeLayout, SortableKmers};
use crate::superkmer::{KmerKeyBuffer, super_kmer_records};
use crate::{CountParams, CountResult, CountStats, Error, KeepPairUnchanged, MAX_K, MIN_K, PreparePair, RootCounters};

/// Counts the k-mers of one partition jointly in samples 0 to `S - 1`. Over all partitions
/// ([`crate::count_all_partitions`]) each root is counted once.
///
/// `prepare` creates a [`PreparePair`] for each thread, through which the thread passes its pairs; all of them are
/// returned. After all reads were read, `select` creates a closure from the number of k-mers of each sample and from
/// all [`PreparePair`] values. The closure receives each root once with all its counters, and pushes the items to keep.
/// The items are returned sorted, so the result does not depend on bins and threads.
///
/// # Errors
/// Returns an error if a parameter is out of range, if reads cannot be read, or if the spill file fails;
/// [`Error::TooLarge`] if the bins do not fit.
pub fn count_partition<P: Ord + Send, const S: usize, R, F>(
    lanes: &[Lane],
    params: &CountParams,
    meter: &ProgressCounters,
    prepare: impl Fn() -> R + Sync,
    select: impl FnOnce(&[u64; S], &mut [R]) -> F,
) -> Result<(CountResult<P, S>, Vec<R>), Error>
where
    R: PreparePair,
    F: Fn(&RootCounters<S>, &mut Vec<P>) + Sync,
{
    check_count_params(params)?;
    let kmers =
        params.estimate_kmers_of_lanes(lanes)?.expected_kmers_per_partition(params.partition.num_partitions()).kmers;
    let demand = MemoryDemand::demand_for_count::<S>(kmers, params.threads, KmerDelivery::Roots);
    let plan = MemoryPlan::divide_memory(&demand, params.memory_for_threads());
    let (scattered, mut prepared) = ScatteredReads::scatter_with_memory_plan(plan, lanes, params, meter, prepare)?;
    let select = select(&scattered.totals.kmers, &mut prepared);
    Ok((scattered.count_and_select_roots(select)?, prepared))
}

/// The k-mers of samples 0 to `S - 1` in one partition (or in all partitions of a grid) as super-k-mers in bins.
#[derive(Debug)]
pub struct ScatteredReads<const S: usize> {
    pub(crate) bins: Bins,
    pub(crate) pool: Arc<ExtentPool>,
    pub(crate) plan: MemoryPlan,
    pub(crate) k: u32,
    pub(crate) threads: usize,
    pub(crate) totals: ScatterTotals<S>,
    /// Memory of the bins by NUMA node; empty with a single node.
    pub(crate) memory_by_node: Vec<NodeThreadsAndMemory>,
    /// Devices that count in addition to the threads.
    pub(crate) devices: Devices,
    /// Bytes of the memory that are reserved for device lanes.
    pub(crate) device_memory_bytes: u64,
}

/// Creates the pool with the memory that `plan` gives to the bins. At most `max_open` extents are in use that are not
/// full.
///
/// # Errors
/// Returns an error if the system cannot provide the memory.
pub(crate) fn create_extent_pool(
    plan: &MemoryPlan,
    max_open: usize,
    params: &CountParams,
) -> Result<Arc<ExtentPool>, Error> {
    ExtentPool::with_unnamed_file(
        plan.extent_bytes,
        max_open,
        plan.max_full_extents_in_memory(),
        NodeAssignment::for_this_machine(params.threads),
        &params.work_dir,
        params.max_scratch_bytes,
    )
}

impl<const S: usize> ScatteredReads<S> {
    /// Reads all lanes into bins, so that the k-mers can be counted and sorted ([`SortableKmers`]).
    ///
    /// # Errors
    /// Returns an error if a parameter is out of range, if reads cannot be read, or if the spill file cannot be
    /// written.
    pub fn scatter_lanes(lanes: &[Lane], params: &CountParams, meter: &ProgressCounters) -> Result<Self, Error> {
        Ok(Self::scatter_with_memory_plan(Self::plan_memory_for_sorting(lanes, params)?, lanes, params, meter, || {
            KeepPairUnchanged
        })?
        .0)
    }

    /// Divides the memory for a count whose k-mers will be sorted. The number of k-mers is estimated from the first
    /// reads of the lanes.
    pub(crate) fn plan_memory_for_sorting(lanes: &[Lane], params: &CountParams) -> Result<MemoryPlan, Error> {
        check_count_params(params)?;
        let kmers = params
            .estimate_kmers_of_lanes(lanes)?
            .expected_kmers_per_partition(params.partition.num_partitions())
            .kmers;
        let demand = MemoryDemand::demand_for_count::<S>(kmers, params.threads, KmerDelivery::SortableKmers);
        Ok(MemoryPlan::divide_memory(&demand, params.memory_for_threads()))
    }

    /// Reads all lanes into bins, with the memory divided as in `plan`.
    pub(crate) fn scatter_with_memory_plan<R: PreparePair>(
        plan: MemoryPlan,
        lanes: &[Lane],
        params: &CountParams,
        meter: &ProgressCounters,
        prepare: impl Fn() -> R + Sync,
    ) -> Result<(Self, Vec<R>), Error> {
        let pool = create_extent_pool(&plan, plan.bins + plan.sort_ranges, params)?;
        Self::scatter_into_extent_pool(pool, plan, lanes, params, meter, prepare)
    }

    /// Reads all lanes into bins whose extents come from `pool`.
    pub(crate) fn scatter_into_extent_pool<R: PreparePair>(
        pool: Arc<ExtentPool>,
        plan: MemoryPlan,
        lanes: &[Lane],
        params: &CountParams,
        meter: &ProgressCounters,
        prepare: impl Fn() -> R + Sync,
    ) -> Result<(Self, Vec<R>), Error> {
        let grid = BinGrid { num_partitions: 1, bins_per_partition: plan.bins as u32 };
        Self::scatter_into_bin_grid(grid, pool, plan, lanes, params, meter, prepare)
    }

    /// Reads all lanes into the bins of a grid; `plan` must have the same number of bins.
    pub(crate) fn scatter_into_bin_grid<R: PreparePair>(
        grid: BinGrid,
        pool: Arc<ExtentPool>,
        plan: MemoryPlan,
        lanes: &[Lane],
        params: &CountParams,
        meter: &ProgressCounters,
        prepare: impl Fn() -> R + Sync,
    ) -> Result<(Self, Vec<R>), Error> {
        let bins = Bins::create_empty(grid.num_bins(), pool.clone());
        let threads = AtomicUsize::new(0);
        let start = || {
            pool.node_assignment().pin_thread(threads.fetch_add(1, Relaxed));
            ScatterThread::<R, S>::new(&bins, grid, params, plan.buffer_bytes, prepare())
        };
        let scatters =
            for_each_batch(lanes, params.threads, meter, start, |scatter, batch| scatter.scatter_batch(batch))
                .map_err(|error| to_too_large_error(error, params, meter))?;
        let (mut totals, mut prepared) = (ScatterTotals::zero(), Vec::new());
        for scatter in scatters {
            let (part, prepare) = scatter.finish().map_err(|error| to_too_large_error(error, params, meter))?;
            totals.merge_totals(&part);
            prepared.push(prepare);
        }
        let shares = pool.memory_by_node();
        let (devices, reserved) = (params.devices.clone(), params.reserved_for_devices());
        let (k, threads) = (params.k, params.threads);
        Ok((
            Self {
                bins,
                pool,
                plan,
                k,
                threads,
                totals,
                memory_by_node: shares,
                devices,
                device_memory_bytes: reserved,
            },
            prepared,
        ))
    }

    /// Number of k-mers read, per sample, in all partitions.
    pub fn num_kmers_by_sample(&self) -> [u64; S] {
        self.totals.kmers
    }

    /// Counts the bins and passes each root to `select`, which pushes the items to keep.
    pub(crate) fn count_and_select_roots<P, F>(self, select: F) -> Result<CountResult<P, S>, Error>
    where
        P: Ord + Send,
        F: Fn(&RootCounters<S>, &mut Vec<P>) + Sync,
    {
        let (sum, selections) = self.count_bins(|| RootSelection::with_root_selector(&select))?;
        // Merging the selections takes twice their memory; the memory of the bins is empty now.
        self.pool.release_free_memory()?;
        let (picks, roots) = merge_selected_items(selections);
        let stats = self.stats(&sum);
        Ok(CountResult { selected: picks, spectra: sum.spectra.0, stats, roots })
    }

    /// Counts the bins, and keeps the k-mers whose total count is at least `min_count`.
    ///
    /// # Errors
    /// Returns an error if the spill file cannot be written or read.
    pub fn count_and_keep_frequent_kmers(self, min_count: u32) -> Result<SortableKmers<S>, Error> {
        self.count_frequent_kmers_into_pool(self.pool.clone(), min_count)
    }

    /// Same as [`Self::count_and_keep_frequent_kmers`], with the sort ranges in extents of `pool`.
    pub(crate) fn count_frequent_kmers_into_pool(
        &self,
        pool: Arc<ExtentPool>,
        min_count: u32,
    ) -> Result<SortableKmers<S>, Error> {
        let parts = Bins::create_empty(self.plan.sort_ranges, pool);
        let (sum, keeps) = self.count_bins(|| FrequentKmerWriter::with_min_count(self.k, min_count, &parts))?;
        let mut kept = 0;
        for keep in keeps {
            kept += keep.flush_and_return_num_kept()?;
        }
        let layout = SortRangeLayout::with_num_ranges(self.k, parts.len());
        // Bins of the same pool spill into the same file.
        let stats = CountStats { spilled_bytes: 0, ..self.stats(&sum) };
        let (threads, room) = (self.threads, self.plan.sort_bytes);
        let shares = self.memory_by_node.clone();
        Ok(SortableKmers {
            ranges: parts,
            layout,
            threads,
            sort_bytes: room,
            num_kept: kept,
            spectra: sum.spectra.0,
            stats,
            memory_by_node: shares,
        })
    }

    fn stats(&self, sum: &CountTotals<S>) -> CountStats<S> {
        CountStats {
            bases: self.totals.bases,
            kmers: self.totals.kmers,
            distinct: sum.distinct,
            super_kmer_bytes: self.totals.bytes,
            spilled_bytes: self.pool.written_spill_bytes(),
            peak_spill_bytes: self.pool.peak_spill_bytes(),
            bins: self.bins.len() as u64,
            extra_passes: sum.passes - self.bins.len() as u64,
        }
    }

    /// Counts all bins with all threads and devices. Each thread and device lane has its own [`CounterSink`], created
    /// by `make`.
    fn count_bins<H: CounterSink<S> + Send>(
        &self,
        make: impl Fn() -> H + Sync,
    ) -> Result<(CountTotals<S>, Vec<H>), Error> {
        let counters = BinCountingResources {
            nodes: self.pool.node_assignment(),
            k: self.k,
            threads: self.threads,
            plan: &self.plan,
            devices: &self.devices,
            device_memory_bytes: self.device_memory_bytes,
        };
        count_bins(&self.bins, &counters, make)
    }
}

/// Threads, memory and devices with which [`count_bins`] counts bins.
pub(crate) struct BinCountingResources<'a> {
    pub(crate) nodes: &'a NodeAssignment,
    pub(crate) k: u32,
    pub(crate) threads: usize,
    pub(crate) plan: &'a MemoryPlan,
    /// Devices that count in addition to the threads.
    pub(crate) devices: &'a Devices,
    /// Bytes of the memory that are reserved for device lanes.
    pub(crate) device_memory_bytes: u64,
}

/// Counts all bins with all threads and devices, and frees each bin that was counted. Each thread takes the bins of its
/// NUMA node first. Each thread and device lane has its own [`CounterSink`], created by `make`. Threads count the bins
/// that devices left.
pub(crate) fn count_bins<const S: usize, H: CounterSink<S> + Send>(
    bins: &impl BinSource,
    counters: &BinCountingResources<'_>,
    make: impl Fn() -> H + Sync,
) -> Result<(CountTotals<S>, Vec<H>), Error> {
    let BinCountingResources { nodes, k, threads, plan, devices, device_memory_bytes: reserved } = *counters;
    let mut queues: Vec<BinQueue> = (0..nodes.num_nodes()).map(|_| BinQueue::default()).collect();
    (0..bins.len()).for_each(|bin| queues[nodes.node_of_bin(bin)].bins.push(bin));
    for queue in &mut queues {
        queue.bins.sort_by_key(|&bin| std::cmp::Reverse(bins.kmer_count_of_bin(bin)));
    }
    let (queues, stop, make) = (&queues, &AtomicBool::new(false), &make);
    let from = |home| {
        let (others, first) = queues.split_at(home);
        first.iter().chain(others).flat_map(BinQueue::take_bins).take_while(|_| !stop.load(Relaxed))
    };

    let left = Mutex::new(Vec::new());
    let thread = |thread| {
        let home = nodes.pin_thread(thread);
        let (mut counting, mut harvest) = (ThreadCounter::new(k, plan), make());
        // No device works on these bins any more.
        let begun = std::iter::from_fn(|| left.lock().unwrap_or_else(PoisonError::into_inner).pop());
        for (bin, classes) in begun.chain(from(home).map(|bin| (bin, vec![RootClass::ALL_ROOTS]))) {
            counting.count_bin(bins, bin, classes, &mut harvest)?;
            bins.free_bin(bin);
        }
        Ok((counting.totals, harvest))
    };
    let lanes = devices.create_usable_lanes(reserved.saturating_sub(lane_buffers(plan, devices)));
    let count_on_device = |lane: &DeviceLaneSettings| {
        let mut harvest = make();
        let share = lane.count_bins::<S>(k, bins, from(lane.number % nodes.num_nodes()), &mut harvest, &left)?;
        Ok((share, harvest))
    };
    let num_workers = if devices.has_exclusive_device() && !lanes.is_empty() { 0 } else { threads };
    let worker = |number: usize| {
        let ended: Result<_, Error> = match number.checked_sub(num_workers).map(|lane| &lanes[lane]) {
            None => thread(number),
            Some(lane) => count_on_device(lane),
        };
        if ended.is_err() {
            stop.store(true, Relaxed);
        }
        ended
    };
    let (mut sum, mut harvests) = (CountTotals::zero(), Vec::new());
    let mut add = |ended: Result<(CountTotals<S>, H), Error>| {
        let (share, harvest) = ended?;
        sum.merge_totals(&share);
        harvests.push(harvest);
        Ok::<(), Error>(())
    };
    parallel::run_workers(num_workers + lanes.len(), worker).into_iter().try_for_each(&mut add)?;
    // Bins that devices left after the threads had ended.
    if !lanes.is_empty() {
        parallel::run_workers(threads, thread).into_iter().try_for_each(&mut add)?;
    }
    devices.add_counted_bins(bins.len());
    sum.spectra.clear_entries_of_count_zero();
    Ok((sum, harvests))
}

/// Number of bytes of the buffers through which device lanes write counted k-mers to sort ranges.
fn lane_buffers(plan: &MemoryPlan, devices: &Devices) -> u64 {
    (devices.max_lanes() * plan.sort_ranges * MemoryPlan::SORT_RANGE_BUFFER_BYTES) as u64
}

/// Converts an error of scattering: a full spill file becomes [`Error::TooLarge`] with the share of the input that
/// was read.
fn to_too_large_error(error: Error, params: &CountParams, meter: &ProgressCounters) -> Error {
    let Error::Spill(spill::Error::Full { .. }) = error else { return error };
    let read = meter.bytes_done() as f64 / meter.bytes_total().max(1) as f64;
    Error::TooLarge {
        partition: params.partition,
        scratch_bytes: params.max_scratch_bytes,
        read_share: read.clamp(1e-6, 1.0),
    }
}

/// Queue of the bins on one NUMA node.
#[derive(Debug, Default)]
struct BinQueue {
    bins: Vec<usize>,
    next: AtomicUsize,
}

impl BinQueue {
    /// Removes the remaining bins from the queue one by one. Several threads may take bins at the same time.
    fn take_bins(&self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(|| self.bins.get(self.next.fetch_add(1, Relaxed)).copied())
    }
}

/// A [`CounterSink`] that passes each root to `select`, and collects the items that `select` pushes.
pub(crate) struct RootSelection<'a, P, F> {
    selected: Vec<P>,
    roots: u64,
    select: &'a F,
}

impl<'a, P, F> RootSelection<'a, P, F> {
    /// Creates an empty selection; `select` chooses the items of each root.
    pub(crate) fn with_root_selector(select: &'a F) -> Self {
        Self { selected: Vec::new(), roots: 0, select }
    }
}

/// Merges and sorts the items of all threads; also returns the total number of roots.
pub(crate) fn merge_selected_items<P: Ord, F>(selections: Vec<RootSelection<'_, P, F>>) -> (Vec<P>, u64) {
    let mut picks = Vec::with_capacity(selections.iter().map(|s| s.selected.len()).sum());
    let mut roots = 0;
    for selection in selections {
        roots += selection.roots;
        picks.extend(selection.selected);
    }
    picks.sort_unstable();
    (picks, roots)
}

impl<P, const S: usize, F: Fn(&RootCounters<S>, &mut Vec<P>)> CounterSink<S> for RootSelection<'_, P, F> {
    fn take_table(&mut self, table: &mut CounterTable<S>, spectra: &mut KmerSpectra<S>) -> Result<(), Error> {
        table.drain_roots(spectra, |root| {
            self.roots += 1;
            (self.select)(root, &mut self.selected);
        });
        Ok(())
    }

    fn requested_rows(&self) -> DeviceRowRequest {
        DeviceRowRequest::Roots
    }

    fn take_rows(&mut self, rows: DeviceTableRows<'_, S>, roots: u64) -> Result<(), Error> {
        self.roots += roots;
        rows.for_each_root(|root| (self.select)(root, &mut self.selected));
        Ok(())
    }
}

/// Checks that k, the number of threads and the memory are in their valid ranges.
pub(crate) fn check_count_params(params: &CountParams) -> Result<(), Error> {
    let CountParams { k, threads, memory_bytes: memory, .. } = *params;
    let fault = if !(MIN_K..=MAX_K).contains(&k) {
        format!("k-mer length {k} is out of range: give {MIN_K} to {MAX_K}")
    } else if threads == 0 {
        "the number of threads is 0: give at least 1".to_owned()
    } else if memory < min_memory_bytes(threads) {
        format!(
            "{memory} bytes of memory are too little: {threads} threads need at least {}",
            min_memory_bytes(threads)
        )
    } else {
        return Ok(());
    };
    Err(Error::InvalidParams(fault))
}

/// Counter table of one thread, and its totals.
struct ThreadCounter<const S: usize> {
    k: u32,
    collapser: SuperKmerCollapser<S>,
    keys: KmerKeyBuffer,
    table: CounterTable<S>,
    totals: CountTotals<S>,
    /// Number of k-mers in all bins that the thread has counted.
    kmers: u64,
}

impl<const S: usize> ThreadCounter<S> {
    fn new(k: u32, plan: &MemoryPlan) -> Self {
        let (collapse, tally) =
            (SuperKmerCollapser::with_num_slots(k, plan.collapser_slots), CounterTable::with_max_slots(plan.slots));
        Self {
            k,
            collapser: collapse,
            keys: KmerKeyBuffer::default(),
            table: tally,
            totals: CountTotals::zero(),
            kmers: 0,
        }
    }

    /// Counts the roots of a bin that belong to `classes`, which must be disjoint.
    fn count_bin(
        &mut self,
        bins: &impl BinSource,
        bin: usize,
        mut classes: Vec<RootClass>,
        harvest: &mut impl CounterSink<S>,
    ) -> Result<(), Error> {
        let Self { k, collapser: collapse, keys, table: tally, totals: share, kmers } = self;
        // Assume the same diversity as in the bins before.
        let seen = bins.kmer_count_of_bin(bin);
        let distinct =
            if *kmers == 0 { seen / 8 } else { (seen as u128 * share.distinct as u128 / *kmers as u128) as u64 };
        while let Some(class) = classes.pop() {
            tally.start_class(class, distinct);
            bins.for_each_extent_of_bin(bin, &mut |bytes| {
                super_kmer_records(bytes, *k).for_each(|record| {
                    collapse.add_record(record, |piece| {
                        tally.add_counts_to_keys(keys.compute_keys(piece.word, piece.kmers as usize, *k), piece.counts);
                    });
                });
            })?;
            collapse.drain_super_kmers(|piece| {
                tally.add_counts_to_keys(keys.compute_keys(piece.word, piece.kmers as usize, *k), piece.counts)
            });
            tally.add_waiting_kmers();
            share.distinct += tally.num_kmers() as u64;
            share.passes += 1;
            harvest.take_table(tally, &mut share.spectra)?;
            classes.extend(std::iter::from_fn(|| tally.take_postponed_class()));
        }
        *kmers += seen;
        Ok(())
    }
}
