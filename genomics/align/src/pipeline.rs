//! Reads → records in input order, by all workers of a farm.
//!
//! The calling thread is the farm's master. It pulls reads, cuts them into pieces and blocks as the engine wants them
//! ([`cutter`]), and hands out two kinds of tasks: *map this piece*, and, when all pieces of a block are mapped and it has made
//! the block's estimate, *finish this piece* ([`desk`]). Results come back in the order of the tasks, and all finishing of a block is
//! handed out before that of the next, so what arrives last is the input's order again. Two blocks are under way: workers
//! map the second while the last pieces of the first come in.
//!
//! ```text
//!  reads -> cutter -> map    -> worker: engine.map ------------> kept with its block
//!                     finish -> worker: engine.finish, records -> SAM lines -> written
//!                                                              `> sorted   -> sorter
//! ```
//!
//! Pieces, with their reads and drafts, are recycled, and so are the buffers of results: memory is that of two blocks,
//! however long the input. A worker turns records into text, or sorts them, itself; the master only writes, or passes them on.

mod tally;
mod cutter;
mod desk;
mod worker;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use genuma_farm::{Farm, Seat, Worked};
use genuma_reads::{ReadBatch, ReadStream};

use crate::engine::{self, Engine, Layout};
use crate::placement::Loaded;
use crate::sam;
use crate::sort::markdup::Marking;
use crate::sort::{self, Sorter};

use cutter::Cutter;
use desk::Desk;
use worker::{Form, Task, Worker, Worksheet};

pub use tally::{Inserts, Tally};

/// Bases (bp) of a piece that may be of any size: some hundred milliseconds of work at most.
pub const PIECE: u64 = 250_000;
/// Tasks of each worker: they take about as long as one another.
const TASKS: usize = 6;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reads.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// A record that the engine made.
    #[error("a record of the aligner: {0}")]
    Record(#[from] sam::Error),
    /// Sorting.
    #[error(transparent)]
    Sort(#[from] sort::Error),
    /// SAM text cannot be written.
    #[error("{0}")]
    Write(#[from] io::Error),
    /// The farm itself.
    #[error("{0}")]
    Farm(String),
}

/// Reads to be aligned.
pub struct Reads {
    /// Where they come from.
    pub stream: ReadStream,
    /// What was taken out of the stream already: its first reads.
    pub first: ReadBatch,
    /// How each lane's reads come.
    pub layouts: Vec<Layout>,
}

/// Where records go.
pub enum Output<'a> {
    /// SAM lines, in the order of the reads. The header is there already.
    Sam(&'a mut dyn Write),
    /// To be sorted; the marking is that of the sorter.
    Sorter(&'a mut Sorter, Option<Arc<Marking>>),
}

/// Work for a farm.
pub struct Job<'a, E> {
    /// The aligner, with its index.
    pub engine: &'a Loaded<E>,
    /// A worker on each.
    pub seats: Vec<Seat>,
}

/// What was done, and what it took.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Reads and records.
    pub tally: Tally,
    /// Blocks of reads that were estimated together.
    pub blocks: u64,
    /// Time of all workers together: mapping reads alone.
    pub map: Duration,
    /// Time of all workers together: pairing, and making records.
    pub finish: Duration,
    /// Time of all workers together: SAM text, or sorting.
    pub shape: Duration,
    /// Time the master waited for reads.
    pub wait: Duration,
    /// Time the master took for writing, or for passing records to the sorter.
    pub write: Duration,
    /// Reads of which the engine left something out, by kind ([`Engine::left_out`]).
    pub left_out: BTreeMap<&'static str, u64>,
    /// What each worker did.
    pub workers: Vec<Worked>,
}

impl<E: Engine> Job<'_, E> {
    /// Aligns all reads.
    ///
    /// # Errors
    /// The first thing that goes wrong, in the order of the reads; what comes before it has gone to the output.
    pub fn run(&self, reads: Reads, output: Output<'_>) -> Result<Summary, Error> {
        let here = self.engine.nearest();
        let cuts = reads.layouts.iter().map(|&layout| here.cut(layout)).collect();
        let form = match &output {
            Output::Sam(_) => Form::Sam,
            Output::Sorter(_, marking) => Form::Sorted(marking.clone()),
        };
        let sheet = Mutex::new(Worksheet::default());
        let desk = RefCell::new(Desk::new(here, Cutter::new(reads.stream, reads.first, cuts), output));
        let farm = Farm::new(self.seats.clone()).tasks_per_worker(TASKS).timed(true);
        let summary = farm.run(
            |_seat| Task::<E>::default(),
            |_seat| Ok(Worker::new(self.engine.nearest(), &form, &sheet)),
            |task| desk.borrow_mut().next(task),
            |worker, task| worker.work(task),
            |task| desk.borrow_mut().take(task),
        );
        let summary = summary.map_err(|error| match error {
            genuma_farm::Error::Failed { source, .. } => source,
            other => Error::Farm(other.to_string()),
        })?;
        let desk = desk.into_inner();
        let Worksheet { tally, map, finish, shape, left_out } =
            sheet.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        Ok(Summary {
            tally,
            blocks: desk.blocks(),
            map,
            finish,
            shape,
            left_out,
            wait: desk.waited(),
            write: desk.wrote(),
            workers: summary.workers,
        })
    }
}
