//! External merge sort: keeps sorted runs of items in memory as long as they fit, and writes them to the spill file
//! beyond that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::Error;
use super::loser_tree::{InMemoryRun, LoserTree, SortItem, SpilledRun, TEMPLATE_ORDINAL_BYTES};
use super::lz4::Lz4Compressor;
use super::spill_file::{RunExtent, SortedRunFile};

/// Maximum number of bytes that are compressed and written together.
const MAX_CHUNK_BYTES: usize = 256 << 10;

/// Division of a memory budget (bytes); see [`ExternalSorter`].
#[derive(Debug, Clone, Copy)]
struct MemoryShares {
    /// Size (bytes) of the items in memory above which items are written to the spill file.
    max_held_bytes: usize,
    /// Minimum size (bytes) of a run in the spill file.
    min_run_bytes: usize,
    /// Size in bytes of an extent before compression: items that are compressed and written as one unit.
    extent_bytes: usize,
    /// Number of sorted runs of one level that are merged into one run of the next level.
    max_runs_per_level: usize,
}

/// Minimum memory budget (bytes). With less memory, the buffers of the runs would leave no memory for the items.
const MIN_BUDGET_BYTES: usize = 256 << 10;

impl MemoryShares {
    fn for_budget(budget: usize) -> MemoryShares {
        let budget = budget.max(MIN_BUDGET_BYTES);
        let chunk = (budget / 256).clamp(4 << 10, MAX_CHUNK_BYTES);
        MemoryShares {
            max_held_bytes: budget / 4 * 3,
            min_run_bytes: budget / 4,
            extent_bytes: chunk,
            max_runs_per_level: (budget / 16 / chunk).max(8),
        }
    }
}

/// Takes sorted runs of items and merges them.
///
/// A quarter of the memory budget is for the items that are being written to the spill file, three quarters are for
/// the items in memory. In the final merge each run in the file needs two chunks of memory. To keep that below an
/// eighth of the budget per level, runs are merged to longer ones when there are too many.
pub(crate) struct ExternalSorter<I: SortItem> {
    spill: Arc<SortedRunFile>,
    shares: MemoryShares,
    threads: usize,
    in_memory_runs: VecDeque<InMemoryRun>,
    held_bytes: usize,
    /// Runs in the spill file, each with its merge level; from run to run the level stays equal or decreases.
    runs: Vec<(u32, SpilledRun)>,
    writing: Option<JoinHandle<Result<SpilledRun, Error>>>,
    item: std::marker::PhantomData<I>,
}

impl<I: SortItem + 'static> ExternalSorter<I> {
    /// Creates an empty sorter with a memory budget of `budget` bytes.
    pub(crate) fn with_memory_budget(spill: &Arc<SortedRunFile>, budget: usize, threads: usize) -> ExternalSorter<I> {
        ExternalSorter {
            spill: Arc::clone(spill),
            shares: MemoryShares::for_budget(budget),
            threads,
            in_memory_runs: VecDeque::new(),
            held_bytes: 0,
            runs: Vec::new(),
            writing: None,
            item: std::marker::PhantomData,
        }
    }

    /// Adds a sorted run. In the merge, its items come after all items of earlier runs with equal keys.
    pub(crate) fn push_sorted_run(&mut self, run: InMemoryRun) -> Result<(), Error> {
        if run.items.is_empty() {
            return Ok(());
        }
        self.held_bytes += run.items.capacity();
        self.in_memory_runs.push_back(run);
        while self.held_bytes > self.shares.max_held_bytes {
            self.write_run()?;
        }
        Ok(())
    }

    /// Waits for the run that is being written, and starts to write the oldest items in memory to the spill file.
    fn write_run(&mut self) -> Result<(), Error> {
        self.wait_for_run()?;
        let mut oldest = Vec::new();
        let mut size = 0;
        while size < self.shares.min_run_bytes {
            let Some(piece) = self.in_memory_runs.pop_front() else { break };
            size += piece.items.capacity();
            oldest.push(piece);
        }
        self.held_bytes -= size;
        let (spill, threads, chunk) = (Arc::clone(&self.spill), self.threads, self.shares.extent_bytes);
        self.writing = Some(std::thread::spawn(move || {
            write_chunks(LoserTree::<I>::start_merge(Vec::new(), oldest, &spill, 1)?, &spill, chunk, threads)
        }));
        Ok(())
    }

    /// Waits until the run that is being written is complete, and merges the runs of a level if there are too many.
    fn wait_for_run(&mut self) -> Result<(), Error> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let run = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        self.runs.push((0, run));
        while let Some(tail) = self.runs.len().checked_sub(self.shares.max_runs_per_level)
            && self.runs[tail].0 == self.runs[self.runs.len() - 1].0
        {
            let level = self.runs[tail].0 + 1;
            let runs = self.runs.drain(tail..).map(|(_, run)| run).collect();
            let merge = LoserTree::<I>::start_merge(runs, Vec::new(), &self.spill, self.threads)?;
            self.runs.push((level, write_chunks(merge, &self.spill, self.shares.extent_bytes, self.threads)?));
        }
        Ok(())
    }

    /// Starts the final merge of all items, in memory and in the spill file.
    pub(crate) fn start_final_merge(mut self) -> Result<LoserTree<I>, Error> {
        self.wait_for_run()?;
        let runs = self.runs.into_iter().map(|(_, run)| run).collect();
        LoserTree::start_merge(runs, self.in_memory_runs.into(), &self.spill, self.threads)
    }
}

/// Writes the items of a merge as one run. Up to `threads` threads compress.
fn write_chunks<I: SortItem>(
    mut merge: LoserTree<I>,
    spill: &SortedRunFile,
    chunk: usize,
    threads: usize,
) -> Result<SpilledRun, Error> {
    let threads = threads.max(1);
    let (jobs, to_do) = bounded::<(usize, Vec<u8>)>(threads);
    let (done, results) = unbounded::<Result<(usize, RunExtent), Error>>();
    let (empty, recycled) = unbounded::<Vec<u8>>();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (to_do, done, empty) = (to_do.clone(), done.clone(), empty.clone());
            scope.spawn(move || compress_chunks(spill, &to_do, &done, &empty));
        }
        drop((to_do, done, empty));
        let mut chunks = 0;
        let mut send = |full: Vec<u8>| {
            chunks += 1;
            // Sending fails if all compressing threads have failed; the results contain the error.
            jobs.send((chunks - 1, full)).is_ok()
        };
        let mut open = Vec::with_capacity(chunk);
        while let Some(merged) = merge.next_merged_item()? {
            if !open.is_empty() && open.len() + merged.item.len() > chunk {
                let next = recycled.try_recv().unwrap_or_else(|_| Vec::with_capacity(chunk));
                if !send(std::mem::replace(&mut open, next)) {
                    break;
                }
            }
            open.extend_from_slice(&merged.ordinal.to_le_bytes());
            open.extend_from_slice(&merged.item[TEMPLATE_ORDINAL_BYTES..]);
        }
        if !open.is_empty() {
            send(open);
        }
        drop(jobs);
        let mut extents = results.iter().collect::<Result<Vec<_>, _>>()?;
        extents.sort_unstable_by_key(|e| e.0);
        Ok(SpilledRun { extents: extents.into_iter().map(|e| e.1).collect() })
    })
}

/// Compresses and writes chunks until there are no more chunks or a write fails.
fn compress_chunks(
    spill: &SortedRunFile,
    to_do: &Receiver<(usize, Vec<u8>)>,
    done: &Sender<Result<(usize, RunExtent), Error>>,
    empty: &Sender<Vec<u8>>,
) {
    let (mut compressor, mut scratch) = (Lz4Compressor, Vec::new());
    for (i, mut chunk) in to_do {
        let written = spill.write_extent(&chunk, &mut compressor, &mut scratch);
        let failed = written.is_err();
        // If the merge has failed, the receivers are gone and the results do not matter.
        let _ = done.send(written.map(|extent| (i, extent)));
        chunk.clear();
        let _ = empty.send(chunk);
        if failed {
            return;
        }
    }
}
