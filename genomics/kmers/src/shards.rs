//! A count in parts: the super-k-mers of each shard of the reads in an object, in bins of all partitions; and a partition counted from the objects
//! of all shards.
//!
//! Shards and partitions need not be as many, and no bin is made anew: bin by bin the records of all shards are counted together. In an object the
//! bins of a partition lie side by side, so that whoever counts it reads one stretch of each.

use std::ops::Range;

use genuma_reads::{Lane, Meter};
use genuma_work::spill::{ObjectFile, Spill};
use serde::{Deserialize, Serialize};

use crate::bins::{Bins, Countable, Shelved};
use crate::extents::Pool;
use crate::nodes::Nodes;
use crate::parts::{Grid, Part};
use crate::pipeline::{Counters, Scattered, Selection, check, count_bins, picked};
use crate::plan::{self, Demand, Plan, Then};
use crate::scatter::Totals;
use crate::{CountParams, CountStats, Counted, Error, Prepare, RootCounters};

/// What lies where of the k-mers of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    grid: Grid,
    /// Bases read, per sample.
    bases: [u64; 2],
    /// K-mers, per sample.
    kmers: [u64; 2],
    /// Bytes of all records.
    bytes: u64,
    bins: Shelved,
}

impl Shard {
    /// Reads all lanes of a shard, prepared as [`count`](crate::count) has it, and writes their k-mers into `file`. What memory has no room for waits
    /// in the work folder.
    ///
    /// # Errors
    /// Parameters out of range, too little memory for the grid, reads that cannot be read, files that cannot be written.
    pub fn scatter<R: Prepare>(
        lanes: &[Lane],
        grid: Grid,
        params: &CountParams,
        meter: &Meter,
        prepare: impl Fn() -> R + Sync,
    ) -> Result<(Scattered<2>, Vec<R>), Error> {
        check(params)?;
        let demand = Demand::new::<2>(params.expected(lanes).kmers, params.threads, Then::Seen);
        let plan = Plan::of_grid(grid, &demand, params.for_threads()).ok_or_else(|| {
            let least = plan::least_for_grid(grid, params.threads);
            Error::Params(format!(
                "{} bytes are too little for {} bins: {} threads need {least}",
                params.memory,
                grid.all(),
                params.threads
            ))
        })?;
        let (open, nodes) = (plan.bins, Nodes::here(params.threads));
        let pool = Pool::new(plan.extent, open, plan.spare(), nodes, &params.work, params.scratch)?;
        Scattered::into_grid(grid, pool, plan, lanes, params, meter, prepare)
    }

    /// Writes what was scattered into `file`, behind what is there.
    ///
    /// # Errors
    /// The spill file cannot be read, or `file` not be written.
    pub fn lay_down(scattered: Scattered<2>, grid: Grid, file: &Spill) -> Result<Shard, Error> {
        let Scattered { bins, totals: Totals { bases, kmers, bytes }, .. } = scattered;
        Ok(Shard { grid, bases, kmers, bytes, bins: bins.lay_down(file)? })
    }

    /// K-mers of each sample, of all partitions.
    pub fn kmers(&self) -> [u64; 2] {
        self.kmers
    }

    /// Bytes that its k-mers take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where those of a partition are in the object.
    pub fn stretch(&self, part: Part) -> Range<u64> {
        self.of(part).extend()
    }

    fn of(&self, part: Part) -> Shelved {
        let first = self.grid.first(part.number());
        self.bins.some(first..first + self.grid.bins as usize)
    }

    /// Whether it was scattered into so many partitions, and is whole.
    fn fits(&self, part: Part, grid: Grid) -> bool {
        self.grid == grid && part.of() == grid.parts && self.bins.len() == grid.all()
    }
}

/// The bins of a partition, in the objects of all shards.
struct Stacked<'a> {
    shards: Vec<Bins>,
    /// Told of the bytes that were read.
    meter: &'a Meter,
}

impl Countable for Stacked<'_> {
    fn len(&self) -> usize {
        self.shards.first().map_or(0, Bins::len)
    }

    fn kmers(&self, bin: usize) -> u64 {
        self.shards.iter().map(|shard| shard.kmers(bin)).sum()
    }

    fn read(&self, bin: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let mut seen = |records: &[u8]| {
            self.meter.add_bytes(records.len() as u64);
            each(records);
        };
        self.shards.iter().try_for_each(|shard| shard.read(bin, &mut seen))
    }

    fn free(&self, bin: usize) {
        self.shards.iter().for_each(|shard| shard.free(bin));
    }
}

/// Counts the partition of `params` from the objects of all shards. `select` is made of the k-mers of each sample, and sees every root of the partition
/// once, as in [`count`](crate::count).
///
/// # Errors
/// Parameters out of range; no shard, or shards of different grids; an object that cannot be read, or is damaged.
pub fn count_shards<P, F>(
    shards: &[(Shard, ObjectFile<'_>)],
    params: &CountParams,
    meter: &Meter,
    select: impl FnOnce(&[u64; 2]) -> F,
) -> Result<Counted<P>, Error>
where
    P: Ord + Send,
    F: Fn(&RootCounters, &mut Vec<P>) + Sync,
{
    check(params)?;
    let &CountParams { k, threads, part, .. } = params;
    let grid = shards.first().map(|(shard, _)| shard.grid);
    let other = || Error::Params("the shards were scattered into other partitions".into());
    let grid = grid.ok_or_else(other)?;
    if !shards.iter().all(|(shard, _)| shard.fits(part, grid)) {
        return Err(other());
    }
    let mut totals = Totals::none();
    let nodes = Nodes::here(threads);
    let mut stacked = Vec::new();
    let mut held = 0;
    for (shard, file) in shards {
        totals.add(&Totals { bases: shard.bases, kmers: shard.kmers, bytes: 0 });
        let bins = shard.of(part);
        held += bins.kmers();
        totals.bytes += bins.bytes();
        stacked.push(Bins::object(bins, nodes.clone(), file)?);
    }
    let plan = Plan::new(&Demand::new::<2>(held, threads, Then::Seen), params.for_threads());
    let select = select(&totals.kmers);
    meter.expect_bytes(totals.bytes);
    let stacked = Stacked { shards: stacked, meter };
    let (devices, reserved) = (&params.devices, params.reserved());
    let counters = Counters { nodes: &nodes, k, threads, plan: &plan, devices, reserved };
    let (sum, selections) = count_bins(&stacked, &counters, || Selection::new(&select))?;
    let (picks, roots) = picked(selections);
    let bins = u64::from(grid.bins);
    let stats = CountStats {
        bases: totals.bases,
        kmers: totals.kmers,
        distinct: sum.distinct,
        packed_bytes: totals.bytes,
        spilled_bytes: 0,
        spill_peak: 0,
        bins,
        extra_passes: sum.passes - bins,
    };
    Ok(Counted { picks, spectra: sum.spectra.0, stats, roots })
}
