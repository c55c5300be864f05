//! Resumes an interrupted k-mer count from its finished units (`--resume`).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use genuma_kmers::{BinnedReadsCheckpoint, CountParams, CountedKmersCheckpoint, SortableSampleKmers};
use genuma_reads::{Lane, ProgressCounters};
use genuma_work::ProgressListener;
use genuma_work::cost::{CostTimer, UnitCost};
use genuma_work::unit::UnitStore;
use tracing::{info, warn};

use super::NamedFiles;
use crate::call::disk_space;
use crate::fingerprint::Fingerprint;
use crate::progress::UnitProgressDisplay;
use genuma_work::folder::{self, WorkFolder};
use genuma_work::signals;

/// Name of the unit that reads the input into bins. Its result is kept for a resumed run until the bins are counted.
const READ_STEP: &str = "read";
/// Name of the unit that counts the k-mers of the bins. Its result is kept for a resumed run.
const COUNT_STEP: &str = "count";

/// Returns the path of the work folder of a count that writes to `out`: a hidden folder in `folder`.
pub(crate) fn work_folder_path_of_count(folder: &Path, out: &Path) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    folder.join(format!(".{name}.work"))
}

/// Returns the fingerprint of a count: text with everything that its result depends on. `samples` are indexed by the
/// sample numbers of the lanes.
pub(crate) fn fingerprint_of_count(
    params: &CountParams,
    min_count: u32,
    samples: &[NamedFiles],
    lanes: &[Lane],
) -> anyhow::Result<String> {
    let mut fingerprint = Fingerprint::with_program_version()
        .with_parameter("k", params.k)
        .with_parameter("min-count", min_count)
        .with_parameter("min-base-quality", params.min_base_quality);
    for lane in lanes {
        for path in lane.paths() {
            fingerprint = fingerprint.with_file(&samples[usize::from(lane.sample)].0, path)?;
        }
    }
    Ok(fingerprint.into_text())
}

/// A k-mer count whose work folder keeps the results of finished units, so that an interrupted run can be resumed.
pub(crate) struct ResumableCount {
    work: WorkFolder,
    store: UnitStore,
}

impl ResumableCount {
    /// Opens the work folder. It may contain the results of finished units of an interrupted run of the same count.
    ///
    /// # Errors
    /// Those of [`WorkFolder::open`].
    pub(crate) fn open(folder: PathBuf, fingerprint: String) -> anyhow::Result<Self> {
        let work = WorkFolder::open(&folder, true)?;
        Ok(ResumableCount { work, store: UnitStore { work_folder: folder, fingerprint, resume: true } })
    }

    /// Returns the k-mers with a count of at least `min_count`. Units that an interrupted run has finished are not
    /// computed again.
    ///
    /// # Errors
    /// Reads cannot be read; the work folder has too little free space; files cannot be written or read, are damaged,
    /// or belong to another count.
    pub(crate) fn count_kmers(
        &self,
        samples: usize,
        lanes: &[Lane],
        params: &CountParams,
        min_count: u32,
        progress: &UnitProgressDisplay,
        costs: &mut Vec<UnitCost>,
    ) -> anyhow::Result<SortableSampleKmers> {
        // Signals are deferred between finishing the bins and recording the unit: one is useless without the other.
        let mut undivided = None;
        let read = if self.is_finished(COUNT_STEP)? {
            info!("{}: all k-mers have been counted already", self.store.work_folder.display());
            costs.push(UnitCost { resumed: true, ..CostTimer::start().stop(READ_STEP) });
            None
        } else {
            if self.is_finished(READ_STEP)? {
                info!("{}: all reads are in bins already", self.store.work_folder.display());
            } else {
                disk_space::check_free_space(
                    &self.store.work_folder,
                    disk_space::estimate_max_kmer_spill_bytes(lanes, 0)?,
                )?;
            }
            Some(self.store.run_or_load_unit(READ_STEP, costs, || {
                let meter = Arc::new(ProgressCounters::default());
                progress.unit_started(READ_STEP, Some(meter.clone()));
                let read = BinnedReadsCheckpoint::scatter_lanes_to_file_for_samples(
                    samples,
                    lanes,
                    params,
                    &meter,
                    &self.bins_path(READ_STEP),
                )?;
                undivided = Some(signals::enter_critical_section());
                anyhow::Ok(read)
            })?)
        };
        drop(undivided.take());
        let counted = self.store.run_or_load_unit(COUNT_STEP, costs, || {
            let read = read.context("the reads were not read")?;
            progress.unit_started(COUNT_STEP, None);
            let bins = self.bins_path(READ_STEP);
            let path = self.bins_path(COUNT_STEP);
            let counted =
                CountedKmersCheckpoint::count_bins_to_file_for_samples(read, &bins, params, min_count, &path)?;
            undivided = Some(signals::enter_critical_section());
            anyhow::Ok(counted)
        })?;
        self.remove_step_files(READ_STEP);
        drop(undivided);
        Ok(counted.open_sortable_sample_kmers(params, &self.bins_path(COUNT_STEP))?)
    }

    /// Closes the work folder. If the count succeeded, the folder is removed. Otherwise the results of finished units
    /// stay, if there are any, and the log says how to resume.
    pub(crate) fn close_work_folder(self, succeeded: bool) {
        let ResumableCount { work, store } = self;
        if succeeded {
            work.remove();
        } else if work.close_keeping_resumable_files() {
            warn!("{}", folder::format_resume_hint(&store.work_folder));
        }
    }

    fn is_finished(&self, step: &str) -> anyhow::Result<bool> {
        let path = self.store.unit_result_path(step);
        path.try_exists().with_context(|| path.display().to_string())
    }

    fn bins_path(&self, step: &str) -> PathBuf {
        self.store.work_folder.join(format!("{step}.bins"))
    }

    /// Removes the files of a unit.
    fn remove_step_files(&self, step: &str) {
        for path in [self.store.unit_result_path(step), self.bins_path(step)] {
            // A missing file is fine; a file that cannot be removed goes with the folder.
            let _ = fs::remove_file(path);
        }
    }
}
