//! The threads of a count: all scatter, then all take bins, the largest first.

use std::fs::File;
use std::io::Read;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use genuma_reads::{Lane, Meter, for_each_batch};

use crate::bins::Bins;
use crate::collapse::Collapse;
use crate::plan::{Plan, least_memory};
use crate::scatter::{Scatter, Totals};
use crate::superkmer::records;
use crate::tally::{Class, Tally};
use crate::{CountParams, CountStats, Counted, Error, MAX_K, MIN_K, RootCounters, SPECTRUM_SLOTS};

/// Counts the k-mers of all lanes jointly. `select` sees every root once with all its counters and pushes what it
/// wants to keep; the picks come back sorted, so that neither bins nor threads show.
///
/// # Errors
/// Parameters out of range, reads that cannot be read, and a spill file that cannot be written or read.
pub fn count<P: Ord + Send, F>(
    lanes: &[Lane],
    params: &CountParams,
    meter: &Meter,
    select: F,
) -> Result<Counted<P>, Error>
where
    F: Fn(&RootCounters, &mut Vec<P>) + Sync,
{
    check(params)?;
    let plan = Plan::new(expected_kmers(lanes), params.memory, params.threads);
    count_by_plan(&plan, lanes, params, meter, select)
}

/// [`count`] with a given division of the memory.
pub(crate) fn count_by_plan<P: Ord + Send, F>(
    plan: &Plan,
    lanes: &[Lane],
    params: &CountParams,
    meter: &Meter,
    select: F,
) -> Result<Counted<P>, Error>
where
    F: Fn(&RootCounters, &mut Vec<P>) + Sync,
{
    let bins = Bins::new(plan, &params.work);
    let scatters = for_each_batch(
        lanes,
        params.threads,
        meter,
        || Scatter::new(&bins, params, plan.private),
        |scatter, batch| scatter.batch(batch),
    )?;
    let scattered = scatters.into_iter().map(Scatter::finish).collect::<Result<Vec<_>, _>>()?;

    let shares = count_bins(&bins, plan, params, &select)?;
    Ok(join(&bins, &scattered, shares))
}

fn check(params: &CountParams) -> Result<(), Error> {
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

/// A guess from the files' sizes; right or wrong, it decides on speed only.
fn expected_kmers(lanes: &[Lane]) -> u64 {
    let bases = |path: &Path| {
        let bytes = path.metadata().map_or(0, |m| m.len());
        let mut magic = [0; 2];
        let gzip =
            File::open(path).and_then(|mut f| f.read_exact(&mut magic)).is_ok() && magic == [0x1f, 0x8b];
        if gzip { bytes * 2 } else { bytes * 2 / 5 }
    };
    lanes.iter().flat_map(Lane::paths).map(bases).sum()
}

/// What one thread counted.
struct Share<P> {
    picks: Vec<P>,
    spectra: [Vec<u64>; 2],
    roots: u64,
    distinct: u64,
    passes: u64,
}

fn count_bins<P: Send, F>(
    bins: &Bins,
    plan: &Plan,
    params: &CountParams,
    select: &F,
) -> Result<Vec<Share<P>>, Error>
where
    F: Fn(&RootCounters, &mut Vec<P>) + Sync,
{
    let mut order: Vec<usize> = (0..bins.len()).collect();
    order.sort_by_key(|&bin| std::cmp::Reverse(bins.kmers(bin)));
    let (order, next, stop) = (&order, &AtomicUsize::new(0), &AtomicBool::new(false));

    let worker = move || {
        let mut counting = Counting::new(params.k, plan);
        while let Some(&bin) = order.get(next.fetch_add(1, Relaxed)) {
            if stop.load(Relaxed) {
                break;
            }
            if let Err(e) = counting.bin(bins, bin, select) {
                stop.store(true, Relaxed);
                return Err(e);
            }
            bins.free(bin);
        }
        Ok(counting.share)
    };
    let ended: Vec<_> = thread::scope(|scope| {
        let handles: Vec<_> = (0..params.threads).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().map(|handle| handle.join()).collect()
    });
    ended.into_iter().map(|end| end.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}

/// One thread's table and what came out of it.
struct Counting<P> {
    k: u32,
    collapse: Collapse,
    tally: Tally,
    share: Share<P>,
    /// K-mers that went into the bins so far.
    kmers: u64,
}

impl<P> Counting<P> {
    fn new(k: u32, plan: &Plan) -> Self {
        let spectra = [vec![0; SPECTRUM_SLOTS], vec![0; SPECTRUM_SLOTS]];
        let share = Share { picks: Vec::new(), spectra, roots: 0, distinct: 0, passes: 0 };
        Self { k, collapse: Collapse::new(k, plan.pieces), tally: Tally::new(plan.slots), share, kmers: 0 }
    }

    fn bin<F: Fn(&RootCounters, &mut Vec<P>)>(
        &mut self,
        bins: &Bins,
        bin: usize,
        select: &F,
    ) -> Result<(), Error> {
        let Self { k, collapse, tally, share, kmers } = self;
        // As diverse as the bins before.
        let seen = bins.kmers(bin);
        let distinct = if *kmers == 0 {
            seen / 8
        } else {
            (seen as u128 * share.distinct as u128 / *kmers as u128) as u64
        };
        let mut class = Some(Class::ALL);
        while let Some(current) = class {
            tally.start(current, distinct);
            bins.read(bin, |bytes| {
                records(bytes, *k).for_each(|record| {
                    collapse
                        .take(record, |record, counts| record.for_each_key(*k, |key| tally.add(key, counts)));
                });
            })?;
            collapse.drain(|record, counts| record.for_each_key(*k, |key| tally.add(key, counts)));
            tally.add_to(&mut share.spectra);
            share.distinct += tally.len() as u64;
            share.passes += 1;
            tally.drain(|root| {
                share.roots += 1;
                select(root, &mut share.picks);
            });
            class = tally.next_class();
        }
        *kmers += seen;
        Ok(())
    }
}

fn join<P: Ord>(bins: &Bins, scattered: &[Totals], shares: Vec<Share<P>>) -> Counted<P> {
    let mut stats =
        CountStats { bins: bins.len() as u64, spilled_bytes: bins.spilled(), ..CountStats::default() };
    for totals in scattered {
        for sample in 0..2 {
            stats.bases[sample] += totals.bases[sample];
            stats.kmers[sample] += totals.kmers[sample];
        }
        stats.packed_bytes += totals.bytes;
    }
    let mut spectra = [vec![0; SPECTRUM_SLOTS], vec![0; SPECTRUM_SLOTS]];
    let mut picks = Vec::with_capacity(shares.iter().map(|s| s.picks.len()).sum());
    let mut passes = 0;
    for share in shares {
        stats.roots += share.roots;
        stats.distinct += share.distinct;
        passes += share.passes;
        for (all, part) in spectra.iter_mut().zip(&share.spectra) {
            all.iter_mut().zip(part).for_each(|(a, p)| *a += p);
        }
        picks.extend(share.picks);
    }
    stats.extra_passes = passes - stats.bins;
    picks.sort_unstable();
    Counted { picks, spectra, stats }
}
