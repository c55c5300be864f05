//! A count that is taken up where it was interrupted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use genuma_kmers::{CountCheckpoint, CountParams, ReadCheckpoint, Sorted};
use genuma_reads::{Lane, Meter};
use genuma_work::Watch;
use genuma_work::clock::{Clock, UnitCost};
use genuma_work::unit::Store;
use tracing::{info, warn};

use super::Named;
use crate::call::room;
use crate::fingerprint::Fingerprint;
use crate::progress::Progress;
use genuma_work::folder::{self, WorkFolder};
use genuma_work::signals;

/// The steps that are kept when they are finished.
const READ: &str = "read";
const COUNT: &str = "count";

/// Where a count to `out` keeps its finished steps: in `folder`, under a name of its own.
pub(crate) fn folder(folder: &Path, out: &Path) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    folder.join(format!(".{name}.work"))
}

/// What a count depends on; `lanes` have the samples' numbers.
pub(crate) fn fingerprint(
    params: &CountParams,
    min_count: u32,
    samples: &[Named],
    lanes: &[Lane],
) -> anyhow::Result<String> {
    let mut fingerprint = Fingerprint::new()
        .parameter("k", params.k)
        .parameter("min-count", min_count)
        .parameter("min-base-quality", params.min_base_quality);
    for lane in lanes {
        for path in lane.paths() {
            fingerprint = fingerprint.file(&samples[usize::from(lane.sample)].0, path)?;
        }
    }
    Ok(fingerprint.lines())
}

/// A count and its work folder.
pub(crate) struct Resumable {
    work: WorkFolder,
    store: Store,
}

impl Resumable {
    /// Takes the folder over, with what an interrupted run of the same count left there.
    ///
    /// # Errors
    /// Those of [`WorkFolder::open`].
    pub(crate) fn open(folder: PathBuf, fingerprint: String) -> anyhow::Result<Self> {
        let work = WorkFolder::open(&folder, true)?;
        Ok(Resumable { work, store: Store { work: folder, fingerprint, resume: true } })
    }

    /// The k-mers that are there at least `min_count` times, from the last step that is finished on.
    ///
    /// # Errors
    /// Reads that cannot be read; files that cannot be written or read, are damaged, or are of another count.
    pub(crate) fn sorted<const S: usize>(
        &self,
        lanes: &[Lane],
        params: &CountParams,
        min_count: u32,
        progress: &Progress,
        costs: &mut Vec<UnitCost>,
    ) -> anyhow::Result<Sorted<S>> {
        // A signal waits while a step is entered or taken out: bins are of no use without their unit.
        let mut undivided = None;
        let read = if self.finished(COUNT) {
            info!("{}: all k-mers are counted already", self.store.work.display());
            costs.push(UnitCost { resumed: true, ..Clock::start().cost(READ) });
            None
        } else {
            if self.finished(READ) {
                info!("{}: all reads are in bins already", self.store.work.display());
            } else {
                room::check(&self.store.work, room::needed(lanes, 0))?;
            }
            Some(self.store.unit(READ, costs, || {
                let meter = Arc::new(Meter::default());
                progress.begins(READ, Some(meter.clone()));
                let read = ReadCheckpoint::reach::<S>(lanes, params, &meter, &self.bins(READ))?;
                undivided = Some(signals::undivided());
                anyhow::Ok(read)
            })?)
        };
        drop(undivided.take());
        let counted = self.store.unit(COUNT, costs, || {
            let read = read.context("nothing was read")?;
            progress.begins(COUNT, None);
            let bins = self.bins(READ);
            let counted = CountCheckpoint::reach::<S>(read, &bins, params, min_count, &self.bins(COUNT))?;
            undivided = Some(signals::undivided());
            anyhow::Ok(counted)
        })?;
        self.forget(READ);
        drop(undivided);
        Ok(counted.sorted(params, &self.bins(COUNT))?)
    }

    /// Ends the run: after success the folder goes, else what is finished stays.
    pub(crate) fn end(self, well: bool) {
        let Resumable { work, store } = self;
        if well {
            work.remove();
        } else if work.leave() {
            warn!("{}", folder::kept(&store.work));
        }
    }

    fn finished(&self, step: &str) -> bool {
        self.store.path(step).exists()
    }

    fn bins(&self, step: &str) -> PathBuf {
        self.store.work.join(format!("{step}.bins"))
    }

    /// Removes what a step left.
    fn forget(&self, step: &str) {
        for path in [self.store.path(step), self.bins(step)] {
            // It may be gone already; what cannot be removed goes with the folder.
            let _ = fs::remove_file(path);
        }
    }
}
