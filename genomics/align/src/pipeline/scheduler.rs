//! The part of the pipeline that runs on the master of the farm: hands out tasks and takes their results.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use genuma_farm::SourceStatus;

use super::batch_splitter::{BlockBoundarySplitter, WholeOrPartOfBlock};
use super::worker::{BatchInProgress, WorkStep, WorkerTask};
use super::{AlignOutput, Error};
use crate::engine::Engine;

/// Maximum number of blocks of which batches are mapped at the same time.
const MAX_BLOCKS_IN_PROGRESS: usize = 2;

/// A block some of whose batches are not mapped yet.
struct MappingBlock<E: Engine> {
    num_batches_handed_out: usize,
    /// Whether all batches of the block have been handed out.
    has_all_batches: bool,
    /// The batches of the block that have been mapped, in order.
    mapped_batches: Vec<Box<BatchInProgress<E>>>,
}

/// A mapped batch, and the library estimate of the block to which the batch belongs.
type BatchToFinish<E> = (Box<BatchInProgress<E>>, Arc<<E as Engine>::LibraryEstimate>);

/// Hands out tasks to the workers of the farm and takes the finished tasks back.
pub(super) struct Scheduler<'e, 'o, E: Engine> {
    engine: &'e E,
    batch_splitter: BlockBoundarySplitter,
    output: AlignOutput<'o>,
    /// Blocks some of whose batches are not mapped yet, in order.
    mapping_blocks: VecDeque<MappingBlock<E>>,
    /// Batches whose records can be written, because the insert sizes of their block have been estimated; in order.
    batches_to_finish: VecDeque<BatchToFinish<E>>,
    /// A batch that is a whole block. It is handed out when all blocks before it have been mapped.
    pending_whole_block: Option<Box<BatchInProgress<E>>>,
    /// Batches whose records have been written; their memory is reused.
    recycled_batches: Vec<Box<BatchInProgress<E>>>,
    /// Whether the end of the reads was reached.
    input_ended: bool,
    num_blocks: u64,
    input_wait_time: Duration,
    write_time: Duration,
}

impl<'e, 'o, E: Engine> Scheduler<'e, 'o, E> {
    /// Creates the scheduler of a run: `batch_splitter` provides the reads, `output` takes the records.
    pub(super) fn new(engine: &'e E, batch_splitter: BlockBoundarySplitter, output: AlignOutput<'o>) -> Self {
        Scheduler {
            engine,
            batch_splitter,
            output,
            mapping_blocks: VecDeque::new(),
            batches_to_finish: VecDeque::new(),
            pending_whole_block: None,
            recycled_batches: Vec::new(),
            input_ended: false,
            num_blocks: 0,
            input_wait_time: Duration::ZERO,
            write_time: Duration::ZERO,
        }
    }

    /// Number of blocks whose first batch has been read.
    pub(super) fn num_begun_blocks(&self) -> u64 {
        self.num_blocks
    }

    /// Time that the scheduler has waited for reads.
    pub(super) fn input_wait_time(&self) -> Duration {
        self.input_wait_time
    }

    /// Time that the scheduler has needed to write SAM text or to pass sorted blocks to the sorter.
    pub(super) fn write_time(&self) -> Duration {
        self.write_time
    }

    /// Fills `task` with the next step of work. Writing records comes before mapping reads, because it frees batches.
    pub(super) fn fill_next_task(&mut self, task: &mut WorkerTask<E>) -> Result<SourceStatus, Error> {
        loop {
            if let Some((batch, estimate)) = self.batches_to_finish.pop_front() {
                task.step = WorkStep::Finish(batch, estimate);
                return Ok(SourceStatus::Filled);
            }
            if self.pending_whole_block.is_some() || self.input_ended {
                // If no block is being mapped, everything before is handed out.
                if !self.mapping_blocks.is_empty() {
                    return Ok(SourceStatus::WaitForResult);
                }
                let Some(batch) = self.pending_whole_block.take() else { return Ok(SourceStatus::End) };
                task.step = WorkStep::MapAndFinish(batch);
                return Ok(SourceStatus::Filled);
            }
            if self.mapping_blocks.len() >= MAX_BLOCKS_IN_PROGRESS
                && self.mapping_blocks.back().is_some_and(|block| block.has_all_batches)
            {
                return Ok(SourceStatus::WaitForResult);
            }
            if let Some(batch) = self.read_batch()? {
                task.step = WorkStep::Map(batch);
                return Ok(SourceStatus::Filled);
            }
        }
    }

    /// Reads the next batch and returns it if it is a part of a block. A batch that is a whole block is stored in
    /// `pending_whole_block`. `None` also at the end of the reads.
    fn read_batch(&mut self) -> Result<Option<Box<BatchInProgress<E>>>, Error> {
        let mut batch = self.recycled_batches.pop().unwrap_or_default();
        let start = Instant::now();
        let role = self.batch_splitter.next_batch(&mut batch.reads);
        self.input_wait_time += start.elapsed();
        let Some(role) = role? else {
            self.input_ended = true;
            self.close_last_block();
            return Ok(None);
        };
        match role {
            WholeOrPartOfBlock::WholeBlock => {
                self.close_last_block();
                self.num_blocks += 1;
                self.pending_whole_block = Some(batch);
                Ok(None)
            }
            WholeOrPartOfBlock::PartOfBlock { is_first: first, is_last: last } => {
                if first {
                    self.close_last_block();
                    self.num_blocks += 1;
                    self.mapping_blocks.push_back(MappingBlock {
                        num_batches_handed_out: 0,
                        has_all_batches: false,
                        mapped_batches: Vec::new(),
                    });
                }
                if let Some(block) = self.mapping_blocks.back_mut() {
                    block.num_batches_handed_out += 1;
                    block.has_all_batches = last;
                }
                Ok(Some(batch))
            }
        }
    }

    /// Marks the last block as complete: all its batches have been handed out.
    fn close_last_block(&mut self) {
        if let Some(block) = self.mapping_blocks.back_mut() {
            block.has_all_batches = true;
            self.estimate_mapped_blocks();
        }
    }

    /// Estimates the insert sizes of completely mapped blocks.
    fn estimate_mapped_blocks(&mut self) {
        while self
            .mapping_blocks
            .front()
            .is_some_and(|block| block.has_all_batches && block.mapped_batches.len() == block.num_batches_handed_out)
            && let Some(block) = self.mapping_blocks.pop_front()
        {
            let estimate =
                Arc::new(self.engine.estimate_library(block.mapped_batches.iter().map(|batch| &batch.mapped)));
            self.batches_to_finish.extend(block.mapped_batches.into_iter().map(|batch| (batch, Arc::clone(&estimate))));
        }
    }

    /// Takes a finished task back from a worker: stores a mapped batch with its block, or writes the records of a
    /// finished batch. The tasks come back in the order in which [`Self::fill_next_task`] handed them out.
    pub(super) fn store_mapped_or_write_records(&mut self, task: &mut WorkerTask<E>) -> Result<(), Error> {
        match std::mem::take(&mut task.step) {
            WorkStep::Idle => Ok(()),
            WorkStep::Map(batch) => {
                let block = self
                    .mapping_blocks
                    .iter_mut()
                    .find(|block| block.mapped_batches.len() < block.num_batches_handed_out);
                block.expect("a piece that was mapped has its block").mapped_batches.push(batch);
                self.estimate_mapped_blocks();
                Ok(())
            }
            WorkStep::Finish(batch, _) | WorkStep::MapAndFinish(batch) => {
                self.recycled_batches.push(batch);
                let start = Instant::now();
                match &mut self.output {
                    AlignOutput::Sam(out) => out.write_all(&task.sam_text)?,
                    AlignOutput::Sorted(sorter, _) => {
                        task.sorted_block.take().map_or(Ok(()), |block| sorter.push_block(block))?
                    }
                }
                self.write_time += start.elapsed();
                Ok(())
            }
        }
    }
}
