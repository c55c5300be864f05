//! What an interrupted count goes on from: all reads in bins, then all counted k-mers in parts.
//!
//! A checkpoint says what lies where in a named spill file, each extent with its checksum. The file is on the disk when
//! the checkpoint is there; the caller puts the checkpoint beside it. `docs/formats/unit.md` has the layout of both.

use std::path::Path;

use genuma_reads::{Lane, Meter};
use serde::{Deserialize, Serialize};

use crate::bins::{Bins, Shelved};
use crate::extents::Pool;
use crate::nodes::Nodes;
use crate::pipeline::{Scattered, check};
use crate::plan::{Demand, Plan, Then};
use crate::scatter::Totals;
use crate::sorted::{Layout, Sorted};
use crate::{AsRead, CountParams, CountStats, Error};

/// All reads are in bins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCheckpoint {
    /// Bases read, per sample.
    bases: Vec<u64>,
    /// K-mers in the bins, per sample.
    kmers: Vec<u64>,
    /// Bytes in the bins.
    bytes: u64,
    bins: Shelved,
}

/// All k-mers are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountCheckpoint {
    bases: Vec<u64>,
    kmers: Vec<u64>,
    distinct: u64,
    packed_bytes: u64,
    spilled_bytes: u64,
    bins: u64,
    extra_passes: u64,
    /// K-mers in the parts.
    kept: u64,
    spectra: Vec<Vec<u64>>,
    parts: Shelved,
}

impl ReadCheckpoint {
    /// Reads all lanes, samples 0 to `S - 1`, into bins in a new file at `path`.
    ///
    /// # Errors
    /// Those of [`Scattered::new`].
    pub fn reach<const S: usize>(
        lanes: &[Lane],
        params: &CountParams,
        meter: &Meter,
        path: &Path,
    ) -> Result<Self, Error> {
        let plan = Scattered::<S>::plan(lanes, params)?;
        let pool = Pool::named(plan.extent, plan.bins, Nodes::here(params.threads), path)?;
        let (scattered, _) = Scattered::<S>::into_pool(pool, plan, lanes, params, meter, || AsRead)?;
        let Scattered { bins, totals: Totals { bases, kmers, bytes }, .. } = scattered;
        Ok(Self { bases: bases.into(), kmers: kmers.into(), bytes, bins: bins.shelve()? })
    }

    /// The bins in the file at `path`, to be counted with the threads and the memory of `params`.
    fn scattered<const S: usize>(self, params: &CountParams, path: &Path) -> Result<Scattered<S>, Error> {
        check(params)?;
        let CountParams { k, threads, memory, .. } = *params;
        let (devices, reserved) = (params.devices.clone(), params.reserved());
        let demand = Demand::new::<S>(self.kmers.iter().sum(), threads, Then::Sorted);
        let plan = Plan::new(&demand, params.for_threads());
        // Bins hold nothing in memory now but the extent that each thread reads.
        if threads * self.bins.extent > (plan.extents - plan.parts + threads) * plan.extent {
            return Err(too_little(memory));
        }
        let totals = Totals { bases: samples(self.bases)?, kmers: samples(self.kmers)?, bytes: self.bytes };
        let bins = Bins::from_shelf(self.bins, Nodes::here(threads), path)?;
        let shares = Vec::new();
        Ok(Scattered { pool: bins.pool(), bins, plan, k, threads, totals, shares, devices, reserved })
    }
}

impl CountCheckpoint {
    /// Counts bins that are in the file at `bins`, and puts the k-mers that are there at least `least` times, all samples
    /// summed, into a new file at `path`. Of `params`, threads and memory may be others than when the reads were read.
    ///
    /// # Errors
    /// Parameters out of range; a spill file that cannot be written or read, or is damaged.
    pub fn reach<const S: usize>(
        read: ReadCheckpoint,
        bins: &Path,
        params: &CountParams,
        least: u32,
        path: &Path,
    ) -> Result<Self, Error> {
        let scattered = read.scattered::<S>(params, bins)?;
        let Plan { extent, parts, .. } = scattered.plan;
        let pool = Pool::named(extent, parts, Nodes::here(params.threads), path)?;
        let sorted = scattered.count_into(pool, least)?;
        let CountStats { bases, kmers, distinct, packed_bytes, bins, extra_passes, .. } = sorted.stats();
        let Sorted { kept, spectra, parts, .. } = sorted;
        let parts = parts.shelve()?;
        Ok(Self {
            bases: bases.into(),
            kmers: kmers.into(),
            distinct,
            packed_bytes,
            spilled_bytes: packed_bytes + parts.bytes(),
            bins,
            extra_passes,
            kept,
            spectra: spectra.into(),
            parts,
        })
    }

    /// The k-mers in the file at `path`, to be sorted with the threads and the memory of `params`.
    ///
    /// # Errors
    /// Parameters out of range; a spill file that cannot be read.
    pub fn sorted<const S: usize>(self, params: &CountParams, path: &Path) -> Result<Sorted<S>, Error> {
        check(params)?;
        let CountParams { k, threads, memory, .. } = *params;
        // Each thread also reads an extent. The other half is left to whoever takes the k-mers.
        let each = (memory / 2) as usize / threads;
        let room = each.checked_sub(self.parts.extent).ok_or_else(|| too_little(memory))?;
        let stats = CountStats {
            bases: samples(self.bases)?,
            kmers: samples(self.kmers)?,
            distinct: self.distinct,
            packed_bytes: self.packed_bytes,
            spilled_bytes: self.spilled_bytes,
            spill_peak: 0,
            bins: self.bins,
            extra_passes: self.extra_passes,
        };
        let parts = Bins::from_shelf(self.parts, Nodes::here(threads), path)?;
        let layout = Layout::new(k, parts.len());
        let (kept, spectra, shares) = (self.kept, samples(self.spectra)?, Vec::new());
        Ok(Sorted { parts, layout, threads, room, kept, spectra, stats, shares })
    }
}

fn too_little(memory: u64) -> Error {
    Error::Params(format!(
        "{memory} bytes are too little to go on with a count that was begun with more: give as much as then, or fewer threads"
    ))
}

/// One of each sample.
fn samples<T, const S: usize>(all: Vec<T>) -> Result<[T; S], Error> {
    let n = all.len();
    all.try_into().map_err(|_| Error::Params(format!("a count of {n} samples cannot go on as one of {S}")))
}
