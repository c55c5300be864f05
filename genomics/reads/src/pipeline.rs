//! Processes all read pairs with worker threads. Each worker reads blocks of records itself, so that no queue is
//! needed.
//!
//! The two files of a lane are two readers, each with a lock. A worker holds the first lock while it fills a block, and
//! takes the second lock before it releases the first, so that it gets the mates of its block whatever the number of
//! workers. Two workers can thus decompress the two files of a lane at the same time, and more work on other lanes.
//! All workers check, pair and process their batches without locks.

use std::io::{self, PipeReader, PipeWriter};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use crate::aligned::{self, FileReadingResources};
use crate::error::Error;
use crate::fastq::{
    BlockLimits, FastqBlock, FastqOptions, FastqReader, append_interleaved_pairs, append_pairs_of_two_files,
    append_single_reads,
};
use crate::file_span::FileSpan;
use crate::inflate::FileReadOptions;
use crate::inline_umi::UmiExtractor;
use crate::lane::{Lane, LaneFiles};
use crate::pair_batch::PairBatch;
use crate::record_counts::RecordCounts;
use crate::reference_reads::ReferenceReads;
use genuma_work::{ProgressCounters, parallel};

/// Calls `work` on every batch of every lane on up to `threads` threads (at least one), each with its own state, which
/// `init` creates, and returns the states. The distribution of batches over threads, and their order, differ from run
/// to run. If the system cannot start all threads, fewer are used. Files may be pipes; a caller that reads lanes more
/// than once must refuse these with [`check_lanes`](crate::check_lanes).
///
/// # Errors
/// The first error, of reading or of `work`; it stops all threads.
///
/// # Panics
/// A panic in `init` or `work` stops all threads and is passed on.
pub fn for_each_batch<S, I, W, E>(
    lanes: &[Lane],
    threads: usize,
    progress: &ProgressCounters,
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
        progress.add_expected_bytes(lane.disk_bytes()?);
    }
    let (pipes, stop) = StopRequest::new()?;
    let aligned = lanes.iter().filter(|lane| matches!(lane.files, LaneFiles::Aligned(_))).count();
    let resources = FileReadingResources::divide_threads_among_files(threads, aligned);
    let source = |lane| LaneReader::new(lane, progress, Some(pipes.clone()), resources.clone());
    let sources: Vec<LaneReader<'_>> = lanes.iter().map(source).collect::<Result<_, Error>>()?;
    let failure: Mutex<Option<Failure<E>>> = Mutex::new(None);

    let worker = |id: usize| {
        let _stop_if_panicking = StopOnPanic(&stop);
        let mut state = init();
        let mut scratch = ReaderScratch::default();
        // Each worker starts with a different lane, so that workers wait for each other as little as possible.
        for lane in (0..sources.len()).map(|i| (id + i) % sources.len()) {
            let all = sources[lane].for_each_batch(&mut scratch, &stop, |batch| work(&mut state, batch));
            if let Err(error) = all {
                // After a stop request, a pipe seems to end early: ignore the resulting error.
                if stop.request() && lanes[lane].has_pipe() {
                    break;
                }
                Failure { lane, record: scratch.num_records_before(), error }.record_failure(&failure);
                break;
            }
        }
        state
    };
    let states = parallel::run_workers(threads, worker);
    match lock(&failure).take() {
        Some(failure) => Err(failure.error),
        None => {
            sources.into_iter().for_each(LaneReader::store_record_counts_in_input);
            Ok(states)
        }
    }
}

/// Reads the first batch of a lane to detect errors in it.
pub(crate) fn check_first_batch(lane: &Lane) -> Result<(), Error> {
    let progress = ProgressCounters::default();
    LaneReader::new(lane, &progress, None, FileReadingResources::divide_threads_among_files(1, 1))?
        .next_batch(&mut ReaderScratch::default())
        .map(|_| ())
}

/// An error, with the lane and the record at which it occurred.
///
/// A worker that is stopped still checks its current block. Of several errors, the one nearest to the start of the
/// input is reported, whichever occurred first.
struct Failure<E> {
    lane: usize,
    record: u64,
    error: E,
}

impl<E> Failure<E> {
    fn record_failure(self, failure: &Mutex<Option<Self>>) {
        let mut slot = lock(failure);
        if slot.as_ref().is_none_or(|other| (self.lane, self.record) < (other.lane, other.record)) {
            *slot = Some(self);
        }
    }
}

/// Buffers of one worker for reading a lane of any format; reused for every batch.
#[derive(Default)]
struct ReaderScratch {
    fastq_blocks: [FastqBlock; 2],
    aligned: aligned::ReaderScratch,
    batch: PairBatch,
}

impl ReaderScratch {
    /// Number of records of the lane before the records in the buffers.
    fn num_records_before(&self) -> u64 {
        self.fastq_blocks[0].num_records_before().max(self.aligned.num_records_before())
    }
}

/// Reader of one lane of any format, which several workers share.
struct LaneReader<'a> {
    lane: &'a Lane,
    /// The reader of a BAM, CRAM or BINSEQ lane. The fields for FASTQ are then unused.
    aligned: Option<aligned::SharedReader<'a>>,
    /// The reader of a lane of a reference genome. The fields for FASTQ are then unused.
    reference: Option<ReferenceReads<'a>>,
    progress: &'a ProgressCounters,
    first_file: Mutex<FirstFile<'a>>,
    /// The file of read 2; `None` before it is opened, after its end, and for a lane of one file.
    second_file: Mutex<Option<FastqReader<&'a ProgressCounters>>>,
    /// Pipe whose other end ends the waiting for input when it is dropped; `None` if pipes are refused.
    pipe_waker: Option<Arc<PipeReader>>,
    /// Counts of the FASTQ records read so far; only used for a lane with read structures (UMIs in the reads).
    counts: Mutex<RecordCounts>,
}

/// The only or first file of a lane.
enum FirstFile<'a> {
    Unopened,
    Open { stream: Box<FastqReader<&'a ProgressCounters>>, limit: BlockLimits },
    Done,
}

impl<'a> LaneReader<'a> {
    fn new(
        lane: &'a Lane,
        progress: &'a ProgressCounters,
        pipes: Option<Arc<PipeReader>>,
        resources: FileReadingResources,
    ) -> Result<Self, Error> {
        let aligned = match &lane.files {
            LaneFiles::Aligned(of) => {
                let structures = lane.umis.as_ref().map(|umis| &umis.structures);
                let resources = resources.accept_pipes_with_waker(pipes.clone());
                Some(aligned::SharedReader::new(of, lane.sample, structures, progress, resources)?)
            }
            _ => None,
        };
        let reference = match &lane.files {
            LaneFiles::Reference(path) => Some(ReferenceReads::from_fasta_file(path, lane.sample, progress)),
            _ => None,
        };
        let (first, second) = (Mutex::new(FirstFile::Unopened), Mutex::new(None));
        let counts = Mutex::default();
        Ok(LaneReader {
            lane,
            aligned,
            reference,
            progress,
            first_file: first,
            second_file: second,
            pipe_waker: pipes,
            counts,
        })
    }

    /// Stores the record counts in the lane. Called when the workers have read the lane to its end.
    fn store_record_counts_in_input(self) {
        if let Some(aligned) = self.aligned {
            aligned.store_record_counts_in_input();
        } else if let Some(umis) = &self.lane.umis {
            umis.counts.set(lock(&self.counts).clone());
        }
    }

    fn fastq_options(&self, span: Option<FileSpan>) -> FastqOptions {
        FastqOptions {
            access: FileReadOptions { pipe_waker: self.pipe_waker.clone(), span, ..FileReadOptions::default() },
            ..FastqOptions::for_pairs(None)
        }
    }

    /// Calls `work` on batches of the lane until there are none left or a stop is requested.
    fn for_each_batch<E, W>(&self, scratch: &mut ReaderScratch, stop: &StopRequest, mut work: W) -> Result<(), E>
    where
        E: From<Error>,
        W: FnMut(&PairBatch) -> Result<(), E>,
    {
        while !stop.is_requested() && self.next_batch(scratch)? {
            self.progress.add_pairs(scratch.batch.len() as u64);
            work(&scratch.batch)?;
        }
        Ok(())
    }

    /// Reads the next batch of the lane; false if there is none.
    fn next_batch(&self, scratch: &mut ReaderScratch) -> Result<bool, Error> {
        self.read_batch(scratch).map_err(|error| self.lane.add_slice_start_to_error(error))
    }

    fn read_batch(&self, scratch: &mut ReaderScratch) -> Result<bool, Error> {
        let ReaderScratch { fastq_blocks: blocks, aligned, batch } = scratch;
        if let Some(source) = &self.aligned {
            return source.next_batch(aligned, batch);
        }
        if let Some(source) = &self.reference {
            return source.next_batch(batch);
        }
        batch.clear();
        batch.sample = self.lane.sample;
        if !self.fill_blocks(blocks)? {
            return Ok(false);
        }
        let mut extractor = self.lane.umis.as_ref().map(|umis| UmiExtractor::for_read_structures(&umis.structures));
        let umis = extractor.as_mut();
        match &self.lane.files {
            LaneFiles::Interleaved(path) => append_interleaved_pairs(&mut blocks[0], path, umis, batch)?,
            LaneFiles::Single(path) => append_single_reads(&mut blocks[0], path, umis, batch)?,
            LaneFiles::Pair(one, two) => append_pairs_of_two_files(blocks, [one, two], umis, batch)?,
            LaneFiles::Aligned(_) | LaneFiles::Reference(_) => {}
        }
        if let Some(extractor) = extractor {
            lock(&self.counts).merge_counts(&extractor.counts);
        }
        Ok(!batch.is_empty())
    }

    /// Fills one block, or two blocks with the mates of each other, under the locks; false if no records are left.
    ///
    /// After the end of a file or an error the file is closed, so that no other worker reports an error that follows
    /// from the first.
    fn fill_blocks(&self, [one, two]: &mut [FastqBlock; 2]) -> Result<bool, Error> {
        let mut first = lock(&self.first_file);
        if let FirstFile::Unopened = *first {
            *first = FirstFile::Done;
            *first = self.open_files()?;
        }
        let FirstFile::Open { stream, limit } = &mut *first else {
            return Ok(false);
        };
        let limit = *limit;
        stream.fill_block(one, limit);
        if !one.has_more {
            *first = FirstFile::Done;
        }
        if !matches!(self.lane.files, LaneFiles::Pair(..)) {
            return Ok(true);
        }
        let mut second = lock(&self.second_file);
        drop(first);
        let Some(stream) = second.as_mut() else {
            return Ok(false);
        };
        stream.fill_block(two, limit);
        if !two.has_more {
            *second = None;
        }
        Ok(true)
    }

    fn open_files(&self) -> Result<FirstFile<'a>, Error> {
        let [one, two] = self.lane.spans();
        let path = match &self.lane.files {
            LaneFiles::Interleaved(path) | LaneFiles::Single(path) | LaneFiles::Reference(path) => path,
            LaneFiles::Aligned(aligned) => &aligned.path,
            LaneFiles::Pair(path, mates) => {
                *lock(&self.second_file) = Some(FastqReader::open(mates, self.progress, &self.fastq_options(two))?);
                path
            }
        };
        let stream = Box::new(FastqReader::open(path, self.progress, &self.fastq_options(one))?);
        // Blocks of mates must have the same records, so they are not limited by bytes.
        let limit = BlockLimits { records: stream.estimate_records_per_block(), bytes: usize::MAX };
        Ok(FirstFile::Open { stream, limit })
    }
}

/// Whether all workers must stop, and the pipe that wakes workers that wait for input.
struct StopRequest {
    requested: AtomicBool,
    wake: Mutex<Option<PipeWriter>>,
}

impl StopRequest {
    /// Creates the request, which is not made yet. Also returns the reading end of a pipe whose other end is closed
    /// when the stop is requested.
    fn new() -> Result<(Arc<PipeReader>, StopRequest), Error> {
        let (end, wake) = io::pipe().map_err(Error::Io)?;
        Ok((Arc::new(end), StopRequest { requested: AtomicBool::new(false), wake: Mutex::new(Some(wake)) }))
    }

    fn is_requested(&self) -> bool {
        self.requested.load(Relaxed)
    }

    /// Requests that all workers stop. Returns whether a stop had been requested before.
    fn request(&self) -> bool {
        let before = self.requested.swap(true, Relaxed);
        drop(lock(&self.wake).take());
        before
    }
}

/// Requests a stop if the thread that owns it panics.
struct StopOnPanic<'a>(&'a StopRequest);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.request();
        }
    }
}

/// Locks a mutex even if a thread panicked while it held the lock: the panic is passed on when the threads are joined.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
