//! Instances of an aligner at work: reads dealt to them as they ask, their records merged into the order of the reads.
//!
//! ```text
//!                     ┌ pipes ─ instance 1 ─ pipe ─ taker ┐
//! files ─ dealer ─ desk ─ pipes ─ instance 2 ─ pipe ─ taker ─ desk ─ merger ─ output
//!                     └ ...                               ┘
//! ```
//!
//! Each instance has a thread that keeps it, one for each of its pipes, and one that hears what it says.

mod desk;

mod feed;

mod keeper;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use genuma_reads::{Meter, ReadLane, ReadStream, StreamOptions, Tally};
use genuma_work::clock::process_cost;
use serde::Serialize;

use crate::deal::{CHUNK, Dealer, lanes};
use crate::instance::{self, Words};
use crate::invocation::{Depends, Invocation};
use crate::layout::Seat;
use crate::merge::{Fault, Program};
use crate::pages::{OnNodes, Pages};
use crate::strategy::Strategy;
use crate::threads::Threads;

use desk::{Desk, Next};
use keeper::Keeper;

/// Bytes of a record for a base (bp) of its read: two for bases and qualities, the rest for tags and places.
const RECORD_BYTES: u64 = 4;
/// Bytes of records that may always wait for their turn.
const ROOM: u64 = 256 << 20;

/// Blocks that an instance may have besides one for each thread: one that it reads and one that it writes. One that took more would leave
/// others without; one that has read all of its own and answered none may yet have another. An aligner that does not work in blocks may
/// read any number of reads before it answers.
const MORE_BLOCKS: usize = 2;

/// What is run, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The strategy.
    pub strategy: Strategy,
    /// Why it was chosen.
    pub why: String,
    /// Where each instance runs.
    pub seats: Vec<Seat>,
    /// What each instance is: the same, but for where its index lies.
    pub invocations: Vec<Invocation>,
    /// Threads of the plain run.
    pub threads: usize,
    /// The command of the plain run, which records are to name.
    pub plain: Vec<String>,
    /// What genuma says of itself in the header.
    pub genuma: Program,
    /// Where the words of instances go.
    pub words: Words,
}

/// What was done.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Reads dealt.
    pub reads: u64,
    /// Wall time (seconds).
    pub wall_s: f64,
    /// CPU time of the instances (seconds).
    pub instances_cpu_s: f64,
    /// CPU time of genuma itself (seconds).
    pub own_cpu_s: f64,
    /// Of each instance.
    pub instances: Vec<OfInstance>,
    /// Files of aligned reads, each with what there was in it.
    pub aligned: Vec<(PathBuf, Tally)>,
}

/// What one instance did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OfInstance {
    /// CPUs it ran on.
    pub cpus: String,
    /// Its threads.
    pub threads: usize,
    /// What was asked for its memory; none where that was left to the kernel.
    pub policy: Option<String>,
    /// Batches it was given.
    pub batches: u64,
    /// Processes it took: more than one when some died.
    pub processes: u32,
    /// Where its pages were when the system was asked last; none if it was over before.
    pub pages: Option<Pages>,
    /// Whether its index was where it was to be; none where nothing was asked, or it was over before.
    pub as_asked: Option<bool>,
    /// Where its threads were, asked when its pages were.
    pub threads_found: Option<Threads>,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reads are not right.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// An instance cannot be started.
    #[error(transparent)]
    Start(#[from] instance::StartError),
    /// An instance died.
    #[error("{who} {how}{}", last_words(words))]
    Died {
        /// Which one.
        who: String,
        /// How it ended.
        how: String,
        /// What it said last.
        words: Vec<String>,
    },
    /// Its output is not what it should be.
    #[error("{who}: {fault}{}", last_words(words))]
    Output {
        /// Which one.
        who: String,
        /// What is wrong.
        fault: Fault,
        /// What it said last.
        words: Vec<String>,
    },
    /// The command allows one instance only.
    #[error(
        "{strategy}: {aligner} answers each read by those before it, so that it cannot be shared out: choose one instance"
    )]
    OneOnly {
        /// The aligner.
        aligner: String,
        /// What was asked for.
        strategy: Strategy,
    },
    /// The system refuses.
    #[error("{what}: {source}")]
    System {
        /// What was to be done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Write(io::Error),
}

fn last_words(words: &[String]) -> String {
    match words {
        [] => "; it said nothing".to_owned(),
        _ => format!("; its last words: {}", words.join(" | ")),
    }
}

impl Plan {
    /// Refuses what the aligner does not allow.
    ///
    /// # Errors
    /// Several instances where each read's answer depends on those before it.
    pub fn check(invocation: &Invocation, strategy: Strategy) -> Result<(), Error> {
        match (invocation.depends, strategy.instances) {
            (Depends::Everything, 2..) => {
                Err(Error::OneOnly { aligner: invocation.aligner.clone(), strategy })
            }
            _ => Ok(()),
        }
    }

    /// Threads that the plain command has: what it says, and one if it says nothing.
    fn plain_threads(&self, invocation: &Invocation) -> usize {
        let chosen = invocation.given.iter().any(|word| word.to_string_lossy().contains("{threads}"));
        invocation.threads.unwrap_or(if chosen { self.threads } else { 1 })
    }

    /// Runs it. `meter` counts reads as they are read.
    ///
    /// # Errors
    /// Reads that are not right, an instance that died twice over the same reads or whose output is not what it should be, an output that
    /// cannot be written: no instance is left then.
    ///
    /// # Panics
    /// There is no seat, or not an invocation for each.
    pub fn run(&self, meter: Arc<Meter>, out: &mut dyn Write) -> Result<Summary, Error> {
        assert!(!self.seats.is_empty() && self.seats.len() == self.invocations.len(), "an instance a seat");
        let start = Instant::now();
        let before = process_cost();
        let invocation = &self.invocations[0];
        let inflaters = (self.threads / 8).clamp(1, 8);
        let options =
            StreamOptions { inflaters, whole_headers: true, meter, ahead: 4, ..StreamOptions::new(CHUNK) };
        let lanes = lanes(&invocation.reads, &invocation.aligned);
        let mut stream = ReadStream::open(&lanes, options)?;
        let block = invocation.depends.block(self.threads);
        let instances = self.seats.len();
        let ahead = if block.is_some() { 1 } else { instances + 2 };
        let room = ROOM.max(block.unwrap_or(0).saturating_mul(2 * RECORD_BYTES * instances as u64));
        let most_owed = |seat: &Seat| block.map_or(usize::MAX, |_| seat.threads + MORE_BLOCKS);
        let desk = Desk::new(ahead, room as usize, self.seats.iter().map(most_owed).collect());
        let mut dealer = Dealer::new(invocation, self.threads);

        let (reads, written, instances) = thread::scope(|scope| {
            let keepers: Vec<_> = (0..instances)
                .map(|seat| {
                    let keeper = Keeper { plan: self, desk: &desk, seat, block };
                    scope.spawn(move || keeper.keep())
                })
                .collect();
            let desk = &desk;
            let dealing = scope.spawn(move || {
                let _dealt = Dealt(desk);
                let fail = |error| desk.fail(Error::Reads(error));
                dealer.deal(&mut stream, |batch| desk.ready(batch), fail)
            });
            let written = write(desk, out);
            if written.is_err() {
                desk.stop();
            }
            let instances = keepers.into_iter().map(join).collect();
            (join(dealing), written, instances)
        });
        if let Some(error) = desk.error() {
            return Err(error);
        }
        written.map_err(Error::Write)?;
        let cost = process_cost();
        Ok(Summary {
            reads,
            wall_s: start.elapsed().as_secs_f64(),
            instances_cpu_s: cost.children_s - before.children_s,
            own_cpu_s: cost.cpu_s - before.cpu_s,
            instances,
            aligned: lanes
                .into_iter()
                .filter_map(ReadLane::into_aligned)
                .filter_map(|aligned| Some((aligned.path.clone(), aligned.tally()?.clone())))
                .collect(),
        })
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Tells that all is dealt, also when dealing panics.
struct Dealt<'a>(&'a Desk);

impl Drop for Dealt<'_> {
    fn drop(&mut self) {
        self.0.dealt();
    }
}

/// Writes what the instances deliver.
fn write(desk: &Desk, out: &mut dyn Write) -> io::Result<()> {
    let mut header = false;
    loop {
        match desk.next(header) {
            Next::Header(text) => {
                out.write_all(&text)?;
                header = true;
            }
            Next::Records(pieces) => pieces.iter().try_for_each(|piece| out.write_all(piece))?,
            Next::End => return out.flush(),
        }
    }
}

impl Summary {
    /// Reads a second.
    pub fn reads_per_s(&self) -> f64 {
        self.reads as f64 / self.wall_s.max(1e-3)
    }

    /// Bytes of the indexes of all instances on each node.
    pub fn index_on_nodes(&self) -> OnNodes {
        let mut sum = BTreeMap::new();
        for pages in self.instances.iter().filter_map(|instance| instance.pages.as_ref()) {
            for (&node, &bytes) in &pages.index {
                *sum.entry(node).or_default() += bytes;
            }
        }
        sum
    }

    /// Wall time.
    pub fn wall(&self) -> Duration {
        Duration::from_secs_f64(self.wall_s)
    }
}
