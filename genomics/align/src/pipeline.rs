//! Aligns reads on all workers of a farm and outputs the records in input order.
//!
//! The calling thread is the farm's master. It reads batches, splits them at the block boundaries of the engine
//! ([`batch_splitter`]), and hands out two kinds of tasks ([`scheduler`]): *map this batch*, and, when all batches of
//! a block are mapped and the block's estimate exists, *write the records of this batch*. Results arrive in the order
//! of the tasks, and the record tasks of a block are all handed out before those of the next block. So the records
//! arrive in input order. Two blocks are in progress: workers map the second while the last batches of the first are
//! completed.
//!
//! ```text
//!  reads -> splitter -> map    -> worker: map_batch -----------> kept with its block
//!                       finish -> worker: write_records -> SAM lines -> written
//!                                                      `-> sorted   -> sorter
//! ```
//!
//! Batches and result buffers are reused, so that memory is that of two blocks, however long the input is. Workers
//! convert records to text or sort them; the master only writes them or passes them to the sorter.

mod alignment_counts;
mod batch_splitter;
mod scheduler;
mod worker;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use genuma_farm::{CpuSlot, Farm, WorkerSummary};
use genuma_reads::{ReadBatch, ReadStream};

use crate::engine::{self, Engine, ReadLayout};
use crate::index_placement::LoadedIndex;
use crate::sam;
use crate::sort::markdup::MarkdupOptions;
use crate::sort::{self, Sorter};

use batch_splitter::BlockBoundarySplitter;
use scheduler::Scheduler;
use worker::{AlignmentWorker, SamTextOrSortedBlocks, WorkerCountsAndTimes, WorkerTask};

pub use alignment_counts::{AlignmentCounts, InsertSizeStatistics};

/// Number of bases (bp) at which `genuma align` ends a batch of reads: at most some hundred milliseconds of work for a
/// worker. Batches of pairs are split further at the ends of blocks. Chosen.
pub const DEFAULT_BATCH_BASES: u64 = 250_000;
/// Number of tasks per worker in the queues of the farm. The tasks take about the same time. Chosen.
const TASKS_PER_WORKER: usize = 6;

/// Why the alignment of a set of reads ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reads cannot be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// The engine cannot map a read or make its record.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// A record of the engine is not valid.
    #[error("a record of the aligner: {0}")]
    Record(#[from] sam::Error),
    /// The records cannot be sorted.
    #[error(transparent)]
    Sort(#[from] sort::Error),
    /// SAM text cannot be written.
    #[error("{0}")]
    Write(#[from] io::Error),
    /// The farm failed, for example because a thread could not be started.
    #[error("{0}")]
    Farm(String),
}

/// The reads to align: the first batch, which was already taken from the stream, and the stream of all later batches.
pub struct ReadsToAlign {
    /// The reads after `first_batch`, lane after lane, in input order.
    pub stream: ReadStream,
    /// The first reads, which were already taken from the stream.
    pub first_batch: ReadBatch,
    /// Layout of the reads of each lane.
    pub layouts: Vec<ReadLayout>,
}

/// Destination of the records.
pub enum AlignOutput<'a> {
    /// SAM lines in the order of the reads. The header must have been written before.
    Sam(&'a mut dyn Write),
    /// Passes the records to the sorter. The options of duplicate marking must be those of the sorter; `None` marks no
    /// duplicates.
    Sorted(&'a mut Sorter, Option<Arc<MarkdupOptions>>),
}

/// The workers that align reads: the engine that they share and the CPUs that they run on.
pub struct AlignWorkerPool<'a, E> {
    /// The engine with its index: one copy, or one copy on each NUMA node.
    pub engine: &'a LoadedIndex<E>,
    /// The CPU slots; each has one worker.
    pub cpu_slots: Vec<CpuSlot>,
}

/// Result of an alignment run: counts and times.
#[derive(Debug, Clone, Default)]
pub struct AlignSummary {
    /// Counts of reads and records.
    pub counts: AlignmentCounts,
    /// Number of blocks of reads.
    pub num_blocks: u64,
    /// Time that all workers together needed for mapping reads separately.
    pub map_time: Duration,
    /// Time that all workers together needed for pairing mates and making records.
    pub pairing_time: Duration,
    /// Time that all workers together needed for making SAM text or sorting.
    pub output_time: Duration,
    /// Time that the master of the farm waited for reads.
    pub input_wait_time: Duration,
    /// Time that the master needed to write SAM text or to pass records to the sorter.
    pub write_time: Duration,
    /// Number of reads with skipped or dropped placements, by kind (see [`Engine::skipped_reads`]).
    pub skipped_reads: BTreeMap<&'static str, u64>,
    /// Statistics of each worker.
    pub workers: Vec<WorkerSummary>,
}

impl<E: Engine> AlignWorkerPool<'_, E> {
    /// Aligns all reads.
    ///
    /// # Errors
    /// The first error in the order of the reads. The records before it have been output.
    pub fn align_reads(&self, reads: ReadsToAlign, output: AlignOutput<'_>) -> Result<AlignSummary, Error> {
        let here = self.engine.nearest_copy();
        let block_rules = reads.layouts.iter().map(|&layout| here.block_rule(layout)).collect();
        let form = match &output {
            AlignOutput::Sam(_) => SamTextOrSortedBlocks::Sam,
            AlignOutput::Sorted(_, marking) => SamTextOrSortedBlocks::SortedBlocks(marking.clone()),
        };
        let totals = Mutex::new(WorkerCountsAndTimes::default());
        let scheduler = RefCell::new(Scheduler::new(
            here,
            BlockBoundarySplitter::new(reads.stream, reads.first_batch, block_rules),
            output,
        ));
        let farm = Farm::new(self.cpu_slots.clone()).with_tasks_per_worker(TASKS_PER_WORKER).with_task_timing(true);
        let summary = farm.run_tasks(
            |_seat| WorkerTask::<E>::default(),
            |_seat| Ok(AlignmentWorker::new(self.engine.nearest_copy(), &form, &totals)),
            |task| scheduler.borrow_mut().fill_next_task(task),
            |worker, task| worker.run_task(task),
            |task| scheduler.borrow_mut().store_mapped_or_write_records(task),
        );
        let summary = summary.map_err(|error| match error {
            genuma_farm::Error::ClosureFailed { source, .. } => source,
            other => Error::Farm(other.to_string()),
        })?;
        let scheduler = scheduler.into_inner();
        let WorkerCountsAndTimes { counts, map_time, pairing_time, output_time, skipped_reads } =
            totals.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        Ok(AlignSummary {
            counts,
            num_blocks: scheduler.num_begun_blocks(),
            map_time,
            pairing_time,
            output_time,
            skipped_reads,
            input_wait_time: scheduler.input_wait_time(),
            write_time: scheduler.write_time(),
            workers: summary.workers,
        })
    }
}
