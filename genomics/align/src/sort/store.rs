//! Items in sorted pieces: in memory as long as there is room, in the spill file beyond.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::Error;
use super::merge::{Item, Merge, ORDINAL, Piece, Run};
use super::pack::Packer;
use super::spill::{Extent, Spill};

/// Most bytes that are packed and written together.
const CHUNK: usize = 256 << 10;

/// How much memory goes where; see [`Store`].
#[derive(Debug, Clone, Copy)]
struct Shares {
    /// Pieces held beyond this make a run.
    held: usize,
    /// Bytes that go into a run, at least.
    run: usize,
    /// Bytes that are packed and written together.
    chunk: usize,
    /// Runs of a level that are merged to one of the next.
    fan: usize,
}

/// Less memory than this would go into handling runs and not items, bytes.
const LEAST: usize = 256 << 10;

impl Shares {
    fn of(budget: usize) -> Shares {
        let budget = budget.max(LEAST);
        let chunk = (budget / 256).clamp(4 << 10, CHUNK);
        Shares { held: budget / 4 * 3, run: budget / 4, chunk, fan: (budget / 16 / chunk).max(8) }
    }
}

/// Takes sorted pieces and gives all their items back in order.
///
/// Of its budget a quarter is for the items that are being written to the file and three quarters for those held. In
/// the end each run in the file needs two chunks of memory; so that this stays below an eighth of the budget a level,
/// runs are merged to longer ones when there are too many.
pub(crate) struct Store<I: Item> {
    spill: Arc<Spill>,
    shares: Shares,
    threads: usize,
    pieces: VecDeque<Piece>,
    held: usize,
    /// With their levels, which do not rise.
    runs: Vec<(u32, Run)>,
    writing: Option<JoinHandle<Result<Run, Error>>>,
    item: std::marker::PhantomData<I>,
}

impl<I: Item + 'static> Store<I> {
    /// An empty one with that much memory (bytes).
    pub(crate) fn new(spill: &Arc<Spill>, budget: usize, threads: usize) -> Store<I> {
        Store {
            spill: Arc::clone(spill),
            shares: Shares::of(budget),
            threads,
            pieces: VecDeque::new(),
            held: 0,
            runs: Vec::new(),
            writing: None,
            item: std::marker::PhantomData,
        }
    }

    /// Takes a sorted piece: its items come after all equal ones before.
    pub(crate) fn push(&mut self, piece: Piece) -> Result<(), Error> {
        if piece.items.is_empty() {
            return Ok(());
        }
        self.held += piece.items.capacity();
        self.pieces.push_back(piece);
        while self.held > self.shares.held {
            self.write_run()?;
        }
        Ok(())
    }

    /// Begins to write the oldest pieces, after what is being written now.
    fn write_run(&mut self) -> Result<(), Error> {
        self.written()?;
        let mut oldest = Vec::new();
        let mut size = 0;
        while size < self.shares.run {
            let Some(piece) = self.pieces.pop_front() else { break };
            size += piece.items.capacity();
            oldest.push(piece);
        }
        self.held -= size;
        let (spill, threads, chunk) = (Arc::clone(&self.spill), self.threads, self.shares.chunk);
        self.writing = Some(std::thread::spawn(move || {
            write(Merge::<I>::new(Vec::new(), oldest, &spill, 1)?, &spill, chunk, threads)
        }));
        Ok(())
    }

    /// Waits for the run that is being written.
    fn written(&mut self) -> Result<(), Error> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let run = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        self.runs.push((0, run));
        while let Some(tail) = self.runs.len().checked_sub(self.shares.fan)
            && self.runs[tail].0 == self.runs[self.runs.len() - 1].0
        {
            let level = self.runs[tail].0 + 1;
            let runs = self.runs.drain(tail..).map(|(_, run)| run).collect();
            let merge = Merge::<I>::new(runs, Vec::new(), &self.spill, self.threads)?;
            self.runs.push((level, write(merge, &self.spill, self.shares.chunk, self.threads)?));
        }
        Ok(())
    }

    /// All items in order.
    pub(crate) fn merge(mut self) -> Result<Merge<I>, Error> {
        self.written()?;
        let runs = self.runs.into_iter().map(|(_, run)| run).collect();
        Merge::new(runs, self.pieces.into(), &self.spill, self.threads)
    }
}

/// Writes what a merge gives as one run; up to `threads` pack.
fn write<I: Item>(mut merge: Merge<I>, spill: &Spill, chunk: usize, threads: usize) -> Result<Run, Error> {
    let threads = threads.max(1);
    let (jobs, to_do) = bounded::<(usize, Vec<u8>)>(threads);
    let (done, results) = unbounded::<Result<(usize, Extent), Error>>();
    let (empty, recycled) = unbounded::<Vec<u8>>();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (to_do, done, empty) = (to_do.clone(), done.clone(), empty.clone());
            scope.spawn(move || pack(spill, &to_do, &done, &empty));
        }
        drop((to_do, done, empty));
        let mut chunks = 0;
        let mut send = |full: Vec<u8>| {
            chunks += 1;
            // Nobody takes it when all packers have failed; the results say why.
            jobs.send((chunks - 1, full)).is_ok()
        };
        let mut open = Vec::with_capacity(chunk);
        while let Some(merged) = merge.next()? {
            if !open.is_empty() && open.len() + merged.item.len() > chunk {
                let next = recycled.try_recv().unwrap_or_else(|_| Vec::with_capacity(chunk));
                if !send(std::mem::replace(&mut open, next)) {
                    break;
                }
            }
            open.extend_from_slice(&merged.ordinal.to_le_bytes());
            open.extend_from_slice(&merged.item[ORDINAL..]);
        }
        if !open.is_empty() {
            send(open);
        }
        drop(jobs);
        let mut extents = results.iter().collect::<Result<Vec<_>, _>>()?;
        extents.sort_unstable_by_key(|e| e.0);
        Ok(Run { extents: extents.into_iter().map(|e| e.1).collect() })
    })
}

/// Packs and writes chunks until there are no more, or one cannot be written.
fn pack(
    spill: &Spill,
    to_do: &Receiver<(usize, Vec<u8>)>,
    done: &Sender<Result<(usize, Extent), Error>>,
    empty: &Sender<Vec<u8>>,
) {
    let (mut packer, mut scratch) = (Packer, Vec::new());
    for (i, mut chunk) in to_do {
        let written = spill.write(&chunk, &mut packer, &mut scratch);
        let failed = written.is_err();
        // Neither of the two receivers matters when the merge has failed.
        let _ = done.send(written.map(|extent| (i, extent)));
        chunk.clear();
        let _ = empty.send(chunk);
        if failed {
            return;
        }
    }
}
