//! Threads: every worker fetches blocks of mates itself, so that there is no queue to fill, drain or shut down.
//!
//! A lane's two files are two locked streams. A worker holds the first while it cuts a block, takes hold of the
//! second before it lets go of the first, and so meets the mates of its block however many workers follow it. Two
//! workers thus decompress the two files of one lane at the same time, more do so on other lanes, and all of them
//! check, pair and work on their batches without any lock.

use std::io::{self, PipeReader, PipeWriter};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use crate::aligned::{self, Crew};
use crate::batch::PairBatch;
use crate::error::Error;
use crate::fastq::{Block, Limit, Stream, Terms, pair_up, pair_up_interleaved, pair_up_single};
use crate::inflate::Access;
use crate::lane::{Lane, LaneFiles};
use crate::span::Span;
use genuma_work::{Meter, parallel};

/// Calls `work` on every batch of every lane from `threads` threads (at least one), each with a state of its own
/// made by `init`, and returns the states. Which thread sees which batch, and in which order, changes from run to run. Threads
/// that the system refuses to start are done without. Files may be pipes: who reads lanes more than once has refused these by
/// [`check_lanes`](crate::check_lanes).
///
/// # Errors
/// The first error, of reading or of `work`, stops all threads and is returned.
///
/// # Panics
/// A panic in `init` or `work` stops all threads and goes on in the caller.
pub fn for_each_batch<S, I, W, E>(
    lanes: &[Lane],
    threads: usize,
    meter: &Meter,
    init: I,
    work: W,
) -> Result<Vec<S>, E>
where
    S: Send,
    I: Fn() -> S + Sync,
    W: Fn(&mut S, &PairBatch) -> Result<(), E> + Sync,
    E: From<Error> + Send,
{
    for lane in lanes {
        meter.expect_bytes(lane.bytes()?);
    }
    let (pipes, stop) = Stop::new()?;
    let aligned = lanes.iter().filter(|lane| matches!(lane.files, LaneFiles::Aligned(_))).count();
    let crew = Crew::of(threads, aligned);
    let source = |lane| Source::new(lane, meter, Some(pipes.clone()), crew.clone());
    let sources: Vec<Source<'_>> = lanes.iter().map(source).collect::<Result<_, Error>>()?;
    let failure: Mutex<Option<Failure<E>>> = Mutex::new(None);

    let worker = |id: usize| {
        let _stop_if_panicking = StopOnPanic(&stop);
        let mut state = init();
        let mut hands = Hands::default();
        // Each worker starts on another lane: the fewer there are on one, the less they wait for each other.
        for lane in (0..sources.len()).map(|i| (id + i) % sources.len()) {
            let all = sources[lane].each_batch(&mut hands, &stop, |batch| work(&mut state, batch));
            if let Err(error) = all {
                // Pipes that are not read on seem to end.
                if stop.now() && lanes[lane].has_pipe() {
                    break;
                }
                Failure { lane, record: hands.before(), error }.report(&failure);
                break;
            }
        }
        state
    };
    let states = parallel::workers(threads, worker);
    match lock(&failure).take() {
        Some(failure) => Err(failure.error),
        None => {
            sources.into_iter().for_each(Source::finish);
            Ok(states)
        }
    }
}

/// Reads a lane's first batch for what may be wrong with it.
pub(crate) fn check_first_batch(lane: &Lane) -> Result<(), Error> {
    let meter = Meter::default();
    Source::new(lane, &meter, None, Crew::of(1, 1))?.fetch(&mut Hands::default()).map(|_| ())
}

/// An error and where in the input it was met.
///
/// A worker that stops still checks the block it holds, so of two errors in a lane the one nearer to its start is
/// told, whichever was met first.
struct Failure<E> {
    lane: usize,
    record: u64,
    error: E,
}

impl<E> Failure<E> {
    fn report(self, failure: &Mutex<Option<Self>>) {
        let mut slot = lock(failure);
        if slot.as_ref().is_none_or(|other| (self.lane, self.record) < (other.lane, other.record)) {
            *slot = Some(self);
        }
    }
}

/// What a worker reads with; reused for every batch.
#[derive(Default)]
struct Hands {
    blocks: [Block; 2],
    aligned: aligned::Hands,
    batch: PairBatch,
}

impl Hands {
    /// Records of the lane before those in hand.
    fn before(&self) -> u64 {
        self.blocks[0].before().max(self.aligned.before())
    }
}

/// One lane being read by several workers.
struct Source<'a> {
    lane: &'a Lane,
    /// Where it is of aligned reads; the rest is then idle.
    aligned: Option<aligned::Source<'a>>,
    meter: &'a Meter,
    first: Mutex<First<'a>>,
    /// The file of read 2; absent before it is opened and when mates are interleaved.
    second: Mutex<Option<Stream<&'a Meter>>>,
    /// By which waiting for pipes ends; absent where pipes are refused.
    pipes: Option<Arc<PipeReader>>,
}

/// The only or first file of a lane.
enum First<'a> {
    Unopened,
    Open { stream: Box<Stream<&'a Meter>>, limit: Limit },
    Done,
}

impl<'a> Source<'a> {
    fn new(
        lane: &'a Lane,
        meter: &'a Meter,
        pipes: Option<Arc<PipeReader>>,
        crew: Crew,
    ) -> Result<Self, Error> {
        let aligned = match &lane.files {
            LaneFiles::Aligned(of) => {
                Some(aligned::Source::new(of, lane.sample, meter, crew.or_pipe(pipes.clone()))?)
            }
            _ => None,
        };
        let (first, second) = (Mutex::new(First::Unopened), Mutex::new(None));
        Ok(Source { lane, aligned, meter, first, second, pipes })
    }

    /// All workers have read the lane to its end.
    fn finish(self) {
        if let Some(aligned) = self.aligned {
            aligned.finish();
        }
    }

    fn terms(&self, span: Option<Span>) -> Terms {
        Terms {
            access: Access { pipes: self.pipes.clone(), span, ..Access::default() },
            ..Terms::pairs(None)
        }
    }

    /// Works on the lane's batches, among other workers, until there are none left or all have to stop.
    fn each_batch<E, W>(&self, hands: &mut Hands, stop: &Stop, mut work: W) -> Result<(), E>
    where
        E: From<Error>,
        W: FnMut(&PairBatch) -> Result<(), E>,
    {
        while !stop.is_now() && self.fetch(hands)? {
            self.meter.add_pairs(hands.batch.len() as u64);
            work(&hands.batch)?;
        }
        Ok(())
    }

    /// Reads the lane's next batch; false when there is none left.
    fn fetch(&self, hands: &mut Hands) -> Result<bool, Error> {
        self.read(hands).map_err(|error| self.lane.located(error))
    }

    fn read(&self, hands: &mut Hands) -> Result<bool, Error> {
        let Hands { blocks, aligned, batch } = hands;
        if let Some(source) = &self.aligned {
            return source.fetch(aligned, batch);
        }
        batch.clear();
        batch.sample = self.lane.sample;
        if !self.cut(blocks)? {
            return Ok(false);
        }
        match &self.lane.files {
            LaneFiles::Interleaved(path) => pair_up_interleaved(&mut blocks[0], path, batch)?,
            LaneFiles::Single(path) => pair_up_single(&mut blocks[0], path, batch)?,
            LaneFiles::Pair(one, two) => pair_up(blocks, [one, two], batch)?,
            LaneFiles::Aligned(_) => {}
        }
        Ok(!batch.is_empty())
    }

    /// Cuts the next block, or the next two of mates, under the locks; false when there is none left.
    ///
    /// A file that ends or has a fault is not read on, so that no other worker reports what only follows from it.
    fn cut(&self, [one, two]: &mut [Block; 2]) -> Result<bool, Error> {
        let mut first = lock(&self.first);
        if let First::Unopened = *first {
            *first = First::Done;
            *first = self.open()?;
        }
        let First::Open { stream, limit } = &mut *first else {
            return Ok(false);
        };
        let limit = *limit;
        stream.cut(one, limit);
        if !one.more {
            *first = First::Done;
        }
        if !matches!(self.lane.files, LaneFiles::Pair(..)) {
            return Ok(true);
        }
        let mut second = lock(&self.second);
        drop(first);
        let Some(stream) = second.as_mut() else {
            return Ok(false);
        };
        stream.cut(two, limit);
        if !two.more {
            *second = None;
        }
        Ok(true)
    }

    fn open(&self) -> Result<First<'a>, Error> {
        let [one, two] = self.lane.spans();
        let path = match &self.lane.files {
            LaneFiles::Interleaved(path) | LaneFiles::Single(path) => path,
            LaneFiles::Aligned(aligned) => &aligned.path,
            LaneFiles::Pair(path, mates) => {
                *lock(&self.second) = Some(Stream::open(mates, self.meter, &self.terms(two))?);
                path
            }
        };
        let stream = Box::new(Stream::open(path, self.meter, &self.terms(one))?);
        // Blocks of mates have to hold the same records, so bytes do not count.
        let limit = Limit { records: stream.block_records(), bytes: usize::MAX };
        Ok(First::Open { stream, limit })
    }
}

/// Whether all workers are to stop, and what wakes those that wait for a pipe.
struct Stop {
    now: AtomicBool,
    wake: Mutex<Option<PipeWriter>>,
}

impl Stop {
    /// Not yet; and the end of a pipe that shuts when it is time.
    fn new() -> Result<(Arc<PipeReader>, Stop), Error> {
        let (end, wake) = io::pipe().map_err(Error::Named)?;
        Ok((Arc::new(end), Stop { now: AtomicBool::new(false), wake: Mutex::new(Some(wake)) }))
    }

    fn is_now(&self) -> bool {
        self.now.load(Relaxed)
    }

    /// Stops all; whether they were to stop before.
    fn now(&self) -> bool {
        let before = self.now.swap(true, Relaxed);
        drop(lock(&self.wake).take());
        before
    }
}

/// Tells the other workers to stop when its own thread panics.
struct StopOnPanic<'a>(&'a Stop);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.now();
        }
    }
}

/// Takes a lock even if its last holder panicked: the panic itself is passed on when the threads are joined.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
