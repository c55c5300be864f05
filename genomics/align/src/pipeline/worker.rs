//! The part of the pipeline that runs on the workers: maps the reads of a batch and writes its records.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use genuma_reads::{ReadBatch, ReadRef};

use super::{AlignmentCounts, Error};
use crate::engine::{self, Engine};
use crate::sam::{split_bam_records, write_sam_line};
use crate::sort::markdup::MarkdupOptions;
use crate::sort::{BlockSorter, SortedBlock};

/// A batch of reads and the result of mapping them.
pub(super) struct BatchInProgress<E: Engine> {
    pub(super) reads: ReadBatch,
    pub(super) mapped: E::MappedBatch,
}

impl<E: Engine> Default for BatchInProgress<E> {
    fn default() -> Self {
        BatchInProgress { reads: ReadBatch::new(), mapped: E::MappedBatch::default() }
    }
}

/// The next step of work on a batch.
#[derive(Default)]
pub(super) enum WorkStep<E: Engine> {
    /// No work: the task has no batch.
    #[default]
    Idle,
    /// Map each read separately.
    Map(Box<BatchInProgress<E>>),
    /// Write the records of a mapped batch.
    Finish(Box<BatchInProgress<E>>, Arc<E::LibraryEstimate>),
    /// Map the reads of a batch and write their records, because the batch is a whole block.
    MapAndFinish(Box<BatchInProgress<E>>),
}

/// A task of the farm: carries a step of work to a worker and the result back.
pub(super) struct WorkerTask<E: Engine> {
    pub(super) step: WorkStep<E>,
    /// SAM lines, if the output is SAM text.
    pub(super) sam_text: Vec<u8>,
    /// Sorted records, if the output is sorted.
    pub(super) sorted_block: Option<SortedBlock>,
}

impl<E: Engine> Default for WorkerTask<E> {
    fn default() -> Self {
        WorkerTask { step: WorkStep::Idle, sam_text: Vec::new(), sorted_block: None }
    }
}

/// What workers output: SAM text, or sorted blocks of BAM records.
#[derive(Debug, Clone)]
pub(super) enum SamTextOrSortedBlocks {
    Sam,
    SortedBlocks(Option<Arc<MarkdupOptions>>),
}

/// Counts and times of one worker, or the sum over all workers.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkerCountsAndTimes {
    pub(super) counts: AlignmentCounts,
    pub(super) map_time: Duration,
    pub(super) pairing_time: Duration,
    pub(super) output_time: Duration,
    pub(super) skipped_reads: BTreeMap<&'static str, u64>,
}

/// Maps batches and writes their records, on one thread.
pub(super) struct AlignmentWorker<'a, E: Engine> {
    /// The copy of the engine that is nearest to the worker.
    engine: &'a E,
    state: E::WorkerState,
    /// Records of the current batch.
    records: Vec<u8>,
    /// Sorts the records, if the output is sorted.
    block_sorter: Option<BlockSorter>,
    totals: WorkerCountsAndTimes,
    /// Sum over all workers, to which this worker adds its totals when it ends.
    totals_sink: &'a Mutex<WorkerCountsAndTimes>,
}

impl<'a, E: Engine> AlignmentWorker<'a, E> {
    /// Creates a worker that adds its totals to `totals_sink` when it is dropped.
    pub(super) fn new(
        engine: &'a E,
        form: &SamTextOrSortedBlocks,
        totals_sink: &'a Mutex<WorkerCountsAndTimes>,
    ) -> Self {
        let block_sorter = match form {
            SamTextOrSortedBlocks::Sam => None,
            SamTextOrSortedBlocks::SortedBlocks(marking) => Some(BlockSorter::new(marking.clone())),
        };
        let (state, records, totals) = (engine.new_worker_state(), Vec::new(), WorkerCountsAndTimes::default());
        AlignmentWorker { engine, state, records, block_sorter, totals, totals_sink }
    }

    /// Maps the reads of the task's batch, writes their records into the task, or both.
    pub(super) fn run_task(&mut self, task: &mut WorkerTask<E>) -> Result<(), Error> {
        let WorkerTask { step, sam_text: text, sorted_block: sorted } = task;
        match step {
            WorkStep::Idle => Ok(()),
            WorkStep::Map(batch) => self.map_batch(batch),
            WorkStep::Finish(batch, estimate) => self.finish_batch(batch, estimate, text, sorted),
            WorkStep::MapAndFinish(batch) => {
                self.map_batch(batch)?;
                let estimate = self.engine.estimate_library(std::iter::once(&batch.mapped));
                self.finish_batch(batch, &estimate, text, sorted)
            }
        }
    }

    fn map_batch(&mut self, batch: &mut BatchInProgress<E>) -> Result<(), Error> {
        let start = Instant::now();
        if let Some(read) = batch.reads.iter().find(ReadRef::name_looks_like_sam_header) {
            let name = String::from_utf8_lossy(read.name).into_owned();
            return Err(engine::Error::NameBeginsWithAt { name }.into());
        }
        self.engine.map_batch(&mut self.state, &batch.reads, &mut batch.mapped)?;
        self.totals.map_time += start.elapsed();
        Ok(())
    }

    fn finish_batch(
        &mut self,
        batch: &mut BatchInProgress<E>,
        estimate: &E::LibraryEstimate,
        text: &mut Vec<u8>,
        sorted: &mut Option<SortedBlock>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        self.records.clear();
        self.engine.write_records(&mut self.state, &batch.reads, &mut batch.mapped, estimate, &mut self.records)?;
        let made = Instant::now();
        self.totals.pairing_time += made - start;
        self.totals.counts.count_bam_records(&self.records)?;
        match &mut self.block_sorter {
            Some(block_sorter) => *sorted = Some(block_sorter.sort_records(&self.records)?),
            None => {
                text.clear();
                for record in split_bam_records(&self.records) {
                    write_sam_line(record?, self.engine.contigs(), text)?;
                }
            }
        }
        self.totals.output_time += made.elapsed();
        Ok(())
    }
}

impl<E: Engine> Drop for AlignmentWorker<'_, E> {
    fn drop(&mut self) {
        let mut all = self.totals_sink.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        all.counts.add_counts(&self.totals.counts);
        all.map_time += self.totals.map_time;
        all.pairing_time += self.totals.pairing_time;
        all.output_time += self.totals.output_time;
        for (kind, reads) in self.engine.skipped_reads(&self.state) {
            *all.skipped_reads.entry(kind).or_default() += reads;
        }
    }
}
