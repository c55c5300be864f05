//! The threads of a count, each on its node: all scatter, then all take bins, their node's first and of these the largest.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use genuma_reads::{Lane, Meter, for_each_batch};
use genuma_work::{parallel, spill};

use crate::bins::{Bins, Countable};
use crate::collapse::Collapse;
use crate::device::{Devices, OnDevice};
use crate::extents::Pool;
use crate::nodes::{NodeShare, Nodes};
use crate::parts::Grid;
use crate::plan::{Demand, Plan, Then, least_memory};
use crate::scatter::{Scatter, Totals};
use crate::sorted::{Keep, Layout, Sorted};
use crate::superkmer::{Keys, records};
use crate::tally::{Class, Harvest, Rows, Share, Spectra, Tally, Wanted};
use crate::{AsRead, CountParams, CountStats, Counted, Error, MAX_K, MIN_K, Prepare, RootCounters};

/// Counts the k-mers of all lanes jointly, of samples 0 to `S - 1`: those of one partition, and [in all of them](crate::in_parts) each root is in one.
/// Each thread has its pairs prepared by one `prepare`, which come
/// back. `select` is made when all reads are read, of the k-mers of each sample, of whatever partition; it sees every root once with all its counters
/// and pushes what it wants to keep. The picks come back sorted, so that neither bins nor threads show.
///
/// # Errors
/// Parameters out of range, reads that cannot be read, and a spill file that cannot be written or read; [`Error::TooLarge`] when the bins do not
/// fit.
pub fn count<P: Ord + Send, const S: usize, R, F>(
    lanes: &[Lane],
    params: &CountParams,
    meter: &Meter,
    prepare: impl Fn() -> R + Sync,
    select: impl FnOnce(&[u64; S]) -> F,
) -> Result<(Counted<P, S>, Vec<R>), Error>
where
    R: Prepare,
    F: Fn(&RootCounters<S>, &mut Vec<P>) + Sync,
{
    check(params)?;
    let kmers = params.expected(lanes).share(params.part.of()).kmers;
    let demand = Demand::new::<S>(kmers, params.threads, Then::Seen);
    let plan = Plan::new(&demand, params.for_threads());
    let (scattered, prepared) = Scattered::by_plan(plan, lanes, params, meter, prepare)?;
    let select = select(&scattered.totals.kmers);
    Ok((scattered.select(select)?, prepared))
}

/// All reads as super-k-mers in bins, of samples 0 to `S - 1`.
#[derive(Debug)]
pub struct Scattered<const S: usize> {
    pub(crate) bins: Bins,
    pub(crate) pool: Arc<Pool>,
    pub(crate) plan: Plan,
    pub(crate) k: u32,
    pub(crate) threads: usize,
    pub(crate) totals: Totals<S>,
    /// Where the bins' memory is, if there are several nodes.
    pub(crate) shares: Vec<NodeShare>,
    /// Devices that count beside the threads, and the memory that they get of the process's.
    pub(crate) devices: Devices,
    pub(crate) reserved: u64,
}

impl<const S: usize> Scattered<S> {
    /// Reads all lanes. The k-mers are to be counted and [`Sorted`].
    ///
    /// # Errors
    /// Parameters out of range, reads that cannot be read, and a spill file that cannot be written.
    pub fn new(lanes: &[Lane], params: &CountParams, meter: &Meter) -> Result<Self, Error> {
        Ok(Self::by_plan(Self::plan(lanes, params)?, lanes, params, meter, || AsRead)?.0)
    }

    /// How the memory is divided for k-mers that are to be sorted.
    pub(crate) fn plan(lanes: &[Lane], params: &CountParams) -> Result<Plan, Error> {
        check(params)?;
        let kmers = params.expected(lanes).share(params.part.of()).kmers;
        let demand = Demand::new::<S>(kmers, params.threads, Then::Sorted);
        Ok(Plan::new(&demand, params.for_threads()))
    }

    /// With a given division of the memory.
    pub(crate) fn by_plan<R: Prepare>(
        plan: Plan,
        lanes: &[Lane],
        params: &CountParams,
        meter: &Meter,
        prepare: impl Fn() -> R + Sync,
    ) -> Result<(Self, Vec<R>), Error> {
        let (open, nodes) = (plan.bins + plan.parts, Nodes::here(params.threads));
        let pool = Pool::new(plan.extent, open, plan.spare(), nodes, &params.work, params.scratch)?;
        Self::into_pool(pool, plan, lanes, params, meter, prepare)
    }

    /// With bins in a given pool.
    pub(crate) fn into_pool<R: Prepare>(
        pool: Arc<Pool>,
        plan: Plan,
        lanes: &[Lane],
        params: &CountParams,
        meter: &Meter,
        prepare: impl Fn() -> R + Sync,
    ) -> Result<(Self, Vec<R>), Error> {
        let grid = Grid { parts: 1, bins: plan.bins as u32 };
        Self::into_grid(grid, pool, plan, lanes, params, meter, prepare)
    }

    /// With the bins of a grid, as many as were planned with.
    pub(crate) fn into_grid<R: Prepare>(
        grid: Grid,
        pool: Arc<Pool>,
        plan: Plan,
        lanes: &[Lane],
        params: &CountParams,
        meter: &Meter,
        prepare: impl Fn() -> R + Sync,
    ) -> Result<(Self, Vec<R>), Error> {
        let bins = Bins::new(grid.all(), pool.clone());
        let threads = AtomicUsize::new(0);
        let start = || {
            pool.nodes().settle(threads.fetch_add(1, Relaxed));
            Scatter::<R, S>::new(&bins, grid, params, plan.private, prepare())
        };
        let scatters =
            for_each_batch(lanes, params.threads, meter, start, |scatter, batch| scatter.batch(batch))
                .map_err(|error| told(error, params, meter))?;
        let (mut totals, mut prepared) = (Totals::none(), Vec::new());
        for scatter in scatters {
            let (part, prepare) = scatter.finish().map_err(|error| told(error, params, meter))?;
            totals.add(&part);
            prepared.push(prepare);
        }
        let shares = pool.shares();
        let (devices, reserved) = (params.devices.clone(), params.reserved());
        let (k, threads) = (params.k, params.threads);
        Ok((Self { bins, pool, plan, k, threads, totals, shares, devices, reserved }, prepared))
    }

    /// K-mers in the bins.
    pub fn kmers(&self) -> [u64; S] {
        self.totals.kmers
    }

    /// Shows every root to `select`.
    pub(crate) fn select<P, F>(self, select: F) -> Result<Counted<P, S>, Error>
    where
        P: Ord + Send,
        F: Fn(&RootCounters<S>, &mut Vec<P>) + Sync,
    {
        let (sum, selections) = self.count_bins(|| Selection::new(&select))?;
        // While they are put together picks take twice their memory; that of the bins is empty now.
        self.pool.release()?;
        let (picks, roots) = picked(selections);
        let stats = self.stats(&sum);
        Ok(Counted { picks, spectra: sum.spectra.0, stats, roots })
    }

    /// Counts, and keeps the k-mers that are there at least `least` times, all samples summed.
    ///
    /// # Errors
    /// A spill file that cannot be written or read.
    pub fn count(self, least: u32) -> Result<Sorted<S>, Error> {
        self.count_into(self.pool.clone(), least)
    }

    /// With parts in a given pool.
    pub(crate) fn count_into(&self, pool: Arc<Pool>, least: u32) -> Result<Sorted<S>, Error> {
        let parts = Bins::new(self.plan.parts, pool);
        let (sum, keeps) = self.count_bins(|| Keep::new(self.k, least, &parts))?;
        let mut kept = 0;
        for keep in keeps {
            kept += keep.finish()?;
        }
        let layout = Layout::new(self.k, parts.len());
        // Bins in the same pool spill into the same file.
        let stats = CountStats { spilled_bytes: 0, ..self.stats(&sum) };
        let (threads, room) = (self.threads, self.plan.room);
        let shares = self.shares.clone();
        Ok(Sorted { parts, layout, threads, room, kept, spectra: sum.spectra.0, stats, shares })
    }

    fn stats(&self, sum: &Share<S>) -> CountStats<S> {
        CountStats {
            bases: self.totals.bases,
            kmers: self.totals.kmers,
            distinct: sum.distinct,
            packed_bytes: self.totals.bytes,
            spilled_bytes: self.pool.spilled(),
            spill_peak: self.pool.spill_peak(),
            bins: self.bins.len() as u64,
            extra_passes: sum.passes - self.bins.len() as u64,
        }
    }

    /// Counts all bins by all threads, each with a harvest of its own made by `make`.
    fn count_bins<H: Harvest<S> + Send>(
        &self,
        make: impl Fn() -> H + Sync,
    ) -> Result<(Share<S>, Vec<H>), Error> {
        let counters = Counters {
            nodes: self.pool.nodes(),
            k: self.k,
            threads: self.threads,
            plan: &self.plan,
            devices: &self.devices,
            reserved: self.reserved,
        };
        count_bins(&self.bins, &counters, make)
    }
}

/// Who counts bins, and with what.
pub(crate) struct Counters<'a> {
    pub(crate) nodes: &'a Nodes,
    pub(crate) k: u32,
    pub(crate) threads: usize,
    pub(crate) plan: &'a Plan,
    /// Devices beside the threads, and the memory that they get of the process's.
    pub(crate) devices: &'a Devices,
    pub(crate) reserved: u64,
}

/// Counts all bins by all threads, each on its node, and by devices beside them, whoever is free taking the next; each has a harvest of its own made by `make`.
/// What a device leaves that is lost the threads count in the end.
pub(crate) fn count_bins<const S: usize, H: Harvest<S> + Send>(
    bins: &impl Countable,
    counters: &Counters<'_>,
    make: impl Fn() -> H + Sync,
) -> Result<(Share<S>, Vec<H>), Error> {
    let Counters { nodes, k, threads, plan, devices, reserved } = *counters;
    let mut queues: Vec<Queue> = (0..nodes.len()).map(|_| Queue::default()).collect();
    (0..bins.len()).for_each(|bin| queues[nodes.of_bin(bin)].bins.push(bin));
    for queue in &mut queues {
        queue.bins.sort_by_key(|&bin| std::cmp::Reverse(bins.kmers(bin)));
    }
    let (queues, stop, make) = (&queues, &AtomicBool::new(false), &make);
    let from = |home| {
        let (others, first) = queues.split_at(home);
        first.iter().chain(others).flat_map(Queue::take_all).take_while(|_| !stop.load(Relaxed))
    };

    let left = Mutex::new(Vec::new());
    let thread = |thread| {
        let home = nodes.settle(thread);
        let (mut counting, mut harvest) = (Counting::new(k, plan), make());
        // What devices have left is nobody's by now.
        let begun = std::iter::from_fn(|| left.lock().unwrap_or_else(PoisonError::into_inner).pop());
        for (bin, classes) in begun.chain(from(home).map(|bin| (bin, vec![Class::ALL]))) {
            counting.bin(bins, bin, classes, &mut harvest)?;
            bins.free(bin);
        }
        Ok((counting.share, harvest))
    };
    let lanes = devices.lanes(reserved.saturating_sub(lane_buffers(plan, devices)));
    let on_device = |lane: &OnDevice| {
        let mut harvest = make();
        let share = lane.count::<S>(k, bins, from(lane.number % nodes.len()), &mut harvest, &left)?;
        Ok((share, harvest))
    };
    let beside = if devices.alone() && !lanes.is_empty() { 0 } else { threads };
    let worker = |number: usize| {
        let ended: Result<_, Error> = match number.checked_sub(beside).map(|lane| &lanes[lane]) {
            None => thread(number),
            Some(lane) => on_device(lane),
        };
        if ended.is_err() {
            stop.store(true, Relaxed);
        }
        ended
    };
    let (mut sum, mut harvests) = (Share::none(), Vec::new());
    let mut add = |ended: Result<(Share<S>, H), Error>| {
        let (share, harvest) = ended?;
        sum.add(&share);
        harvests.push(harvest);
        Ok::<(), Error>(())
    };
    parallel::workers(beside + lanes.len(), worker).into_iter().try_for_each(&mut add)?;
    // What devices left after the threads had ended.
    if !lanes.is_empty() {
        parallel::workers(threads, thread).into_iter().try_for_each(&mut add)?;
    }
    devices.counted(bins.len());
    sum.spectra.only_present();
    Ok((sum, harvests))
}

/// Bytes that the lanes of devices have for counted k-mers on their way to parts.
fn lane_buffers(plan: &Plan, devices: &Devices) -> u64 {
    (devices.most_lanes() * plan.parts * Plan::KEPT) as u64
}

/// An error of scattering; that there is no more room, with how far the reading had come.
fn told(error: Error, params: &CountParams, meter: &Meter) -> Error {
    let Error::Spill(spill::Error::Full { .. }) = error else { return error };
    let read = meter.bytes_done() as f64 / meter.bytes_total().max(1) as f64;
    Error::TooLarge { part: params.part, scratch: params.scratch, read: read.clamp(1e-6, 1.0) }
}

/// Bins that wait for a thread.
#[derive(Debug, Default)]
struct Queue {
    bins: Vec<usize>,
    taken: AtomicUsize,
}

impl Queue {
    /// One bin after the other, until there are none left, whoever takes them.
    fn take_all(&self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(|| self.bins.get(self.taken.fetch_add(1, Relaxed)).copied())
    }
}

/// What `select` picked of the roots that one thread saw.
pub(crate) struct Selection<'a, P, F> {
    picks: Vec<P>,
    roots: u64,
    select: &'a F,
}

impl<'a, P, F> Selection<'a, P, F> {
    pub(crate) fn new(select: &'a F) -> Self {
        Self { picks: Vec::new(), roots: 0, select }
    }
}

/// What all threads picked, sorted, and of how many roots.
pub(crate) fn picked<P: Ord, F>(selections: Vec<Selection<'_, P, F>>) -> (Vec<P>, u64) {
    let mut picks = Vec::with_capacity(selections.iter().map(|s| s.picks.len()).sum());
    let mut roots = 0;
    for selection in selections {
        roots += selection.roots;
        picks.extend(selection.picks);
    }
    picks.sort_unstable();
    (picks, roots)
}

impl<P, const S: usize, F: Fn(&RootCounters<S>, &mut Vec<P>)> Harvest<S> for Selection<'_, P, F> {
    fn take(&mut self, tally: &mut Tally<S>, spectra: &mut Spectra<S>) -> Result<(), Error> {
        tally.drain(spectra, |root| {
            self.roots += 1;
            (self.select)(root, &mut self.picks);
        });
        Ok(())
    }

    fn wanted(&self) -> Wanted {
        Wanted::Roots
    }

    fn rows(&mut self, rows: Rows<'_, S>, roots: u64) -> Result<(), Error> {
        self.roots += roots;
        rows.for_each_root(|root| (self.select)(root, &mut self.picks));
        Ok(())
    }
}

pub(crate) fn check(params: &CountParams) -> Result<(), Error> {
    let CountParams { k, threads, memory, .. } = *params;
    let fault = if !(MIN_K..=MAX_K).contains(&k) {
        format!("k-mer length {k} is out of range: give {MIN_K} to {MAX_K}")
    } else if threads == 0 {
        "no thread to count with: give at least 1".to_owned()
    } else if memory < least_memory(threads) {
        format!("{memory} bytes are too little to count in: {threads} threads need {}", least_memory(threads))
    } else {
        return Ok(());
    };
    Err(Error::Params(fault))
}

/// One thread's table and what came out of it.
struct Counting<const S: usize> {
    k: u32,
    collapse: Collapse<S>,
    keys: Keys,
    tally: Tally<S>,
    share: Share<S>,
    /// K-mers that went into the bins so far.
    kmers: u64,
}

impl<const S: usize> Counting<S> {
    fn new(k: u32, plan: &Plan) -> Self {
        let (collapse, tally) = (Collapse::new(k, plan.pieces), Tally::new(plan.slots));
        Self { k, collapse, keys: Keys::default(), tally, share: Share::none(), kmers: 0 }
    }

    /// Counts the roots of some classes of a bin, which have none in common.
    fn bin(
        &mut self,
        bins: &impl Countable,
        bin: usize,
        mut classes: Vec<Class>,
        harvest: &mut impl Harvest<S>,
    ) -> Result<(), Error> {
        let Self { k, collapse, keys, tally, share, kmers } = self;
        // As diverse as the bins before.
        let seen = bins.kmers(bin);
        let distinct = if *kmers == 0 {
            seen / 8
        } else {
            (seen as u128 * share.distinct as u128 / *kmers as u128) as u64
        };
        while let Some(class) = classes.pop() {
            tally.start(class, distinct);
            bins.read(bin, &mut |bytes| {
                records(bytes, *k).for_each(|record| {
                    collapse.take(record, |piece| {
                        tally.add(keys.of(piece.word, piece.kmers as usize, *k), piece.counts);
                    });
                });
            })?;
            collapse.drain(|piece| tally.add(keys.of(piece.word, piece.kmers as usize, *k), piece.counts));
            tally.settle();
            share.distinct += tally.len() as u64;
            share.passes += 1;
            harvest.take(tally, &mut share.spectra)?;
            classes.extend(std::iter::from_fn(|| tally.next_class()));
        }
        *kmers += seen;
        Ok(())
    }
}
