//! Reads in the order of the input files, delivered batch by batch while threads read ahead.
//!
//! ```text
//! file of read 1 ─ reader: inflate, divide, check ─ blocks ─┐
//!                                                           ├─ pairing thread: match mates, fill batches ─ batches ─ fill
//! file of read 2 ─ reader: inflate, divide, check ─ blocks ─┘
//! ```
//!
//! A fixed number of blocks or batches circulates on each arrow, so memory is bounded and nothing is allocated once
//! the buffers have grown.

use std::cell::Cell;
use std::io::{self, PipeWriter};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::aligned::{self, AlignedInput, FileReadingResources, TemplateReads};
use crate::check::check_no_duplicate_inputs;
use crate::error::{Error, RecordFault};
use crate::fastq::{
    BlockLimits, FastqBlock, FastqOptions, FastqReader, FastqRecord, FastqRecordPosition, TARGET_BLOCK_BYTES,
    check_mates_and_return_name,
};
use crate::inflate::FileReadOptions;
use crate::pair_batch::Mate;
use crate::pipe::{is_regular_file, is_stdin};
use crate::read_batch::{ReadBatch, ReadRef};
use crate::tags::CarriedTags;
use genuma_work::ProgressCounters;

/// Number of blocks that circulate between the reader of a file and the pairing thread.
const BLOCKS_PER_FILE: usize = 4;

/// The files of a lane: FASTQ or FASTA (plain, gzip or BGZF; a pipe; `-` for the standard input), BAM, CRAM or
/// BINSEQ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamLane {
    /// One file of reads without mates.
    Single(PathBuf),
    /// Read 1 and read 2 in two files, in the same order.
    Pair(PathBuf, PathBuf),
    /// Read 1 and read 2 of each pair alternate in one file.
    Interleaved(PathBuf),
    /// BAM, CRAM or BINSEQ, whose reads may be unaligned. Pairs are delivered in the order of the records that
    /// complete them, reads without mates in separate batches.
    Aligned(AlignedInput),
}

impl StreamLane {
    /// Whether a file of the lane is a pipe or device, which can be read only once. Files that cannot be examined
    /// count as regular files.
    pub fn has_pipe(&self) -> bool {
        self.paths().any(|path| is_regular_file(path).is_ok_and(|regular| !regular))
    }

    /// The file of the lane, if the lane is a BAM, CRAM or BINSEQ file.
    pub fn into_aligned_input(self) -> Option<AlignedInput> {
        if let StreamLane::Aligned(aligned) = self { Some(aligned) } else { None }
    }

    /// Paths of the one or two files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let (one, two) = match self {
            StreamLane::Pair(one, two) => (one, Some(two)),
            StreamLane::Single(one) | StreamLane::Interleaved(one) => (one, None),
            StreamLane::Aligned(aligned) => (&aligned.path, None),
        };
        std::iter::once(one).chain(two).map(PathBuf::as_path)
    }
}

/// Limits at which a batch ends. A batch also ends at the end of its lane, and never between two mates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Number of bases at which a batch ends, if it has at least `min_reads` reads.
    pub target_bases: u64,
    /// Number of reads at which a batch ends.
    pub max_reads: usize,
    /// Minimum number of reads of a batch that ends because of `target_bases`.
    pub min_reads: usize,
    /// Number of bases at which a batch ends even if it has fewer than `min_reads` reads.
    pub max_bases: u64,
}

impl BatchLimits {
    /// Batches end at this number of bases, as with the option `-K` of minibwa and, for pairs, of bwa.
    pub fn with_bases_per_batch(bases: u64) -> Self {
        BatchLimits { target_bases: bases, max_reads: usize::MAX, min_reads: 0, max_bases: bases }
    }

    /// Batches end at this number of reads.
    pub fn with_reads_per_batch(reads: usize) -> Self {
        BatchLimits { target_bases: u64::MAX, max_reads: reads, min_reads: 0, max_bases: u64::MAX }
    }

    fn is_full(&self, batch: &ReadBatch) -> bool {
        let (bases, reads) = (batch.num_bases(), batch.len());
        reads >= self.max_reads || bases >= self.max_bases || (bases >= self.target_bases && reads >= self.min_reads)
    }
}

/// Options of a [`ReadStream`].
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// Numbers of bases and reads at which a batch ends.
    pub batch_limit: BatchLimits,
    /// Number of batches that are prepared ahead, at least one. One more batch is being filled, or two if a lane is
    /// BAM, CRAM or BINSEQ.
    pub batches_ahead: usize,
    /// Number of threads that decompress BGZF, divided among the files of a lane. With fewer than two per file, the
    /// reader of the file decompresses, as for any other gzip.
    pub inflate_threads: usize,
    /// Whether the name of a read of FASTQ or FASTA is its whole header line without `@` or `>`, instead of the first
    /// word. Then the comment is empty.
    pub uses_whole_header_as_name: bool,
    /// Whether FASTQ is accepted that aligners accept: sequences and qualities of several lines, and files without
    /// reads.
    pub accepts_unusual_fastq: bool,
    /// The tags of BAM and CRAM records that are delivered with the reads ([`ReadRef::tags`]); `None` for no tags.
    pub carried_tags: Option<Arc<CarriedTags>>,
    /// Counts the bytes, reads and pairs that have been read. The expected number of bytes stays 0 if one of the files
    /// is a pipe.
    pub progress: Arc<ProgressCounters>,
}

impl StreamOptions {
    /// Options with two batches prepared ahead. No thread only decompresses: the reading thread of each file also
    /// decompresses it.
    pub fn new(cut: BatchLimits) -> Self {
        StreamOptions {
            batch_limit: cut,
            batches_ahead: 2,
            inflate_threads: 1,
            uses_whole_header_as_name: false,
            accepts_unusual_fastq: false,
            carried_tags: None,
            progress: Arc::default(),
        }
    }

    fn fastq_options(&self, access: FileReadOptions) -> FastqOptions {
        let accepts_unusual_fastq = self.accepts_unusual_fastq;
        FastqOptions { accepts_unusual_fastq, ..FastqOptions::for_reads_of_any_length(access) }
    }
}

/// All reads of some lanes, in order.
///
/// Dropping the stream early stops its threads, also those that wait for a pipe.
///
/// ```
/// use genuma_reads::{BatchLimits, ReadBatch, StreamLane, ReadStream, StreamOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("reads.fq");
/// # std::fs::write(&path, "@a/1\nACGT\n+\nFFFF\n@a/2\nAC\n+\nFF\n")?;
/// let lanes = [StreamLane::Interleaved(path)];
/// let mut stream = ReadStream::open(&lanes, StreamOptions::new(BatchLimits::with_bases_per_batch(100_000_000)))?;
/// let mut batch = ReadBatch::new();
/// while stream.fill_batch(&mut batch)? {
///     assert!(batch.is_paired);
///     assert_eq!((batch.read(0).name, batch.read(1).seq), (&b"a"[..], &b"AC"[..]));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ReadStream {
    /// The running threads; `None` after the end of the reads or after an error.
    running: Option<Running>,
}

struct Running {
    full_batches: Receiver<Result<ReadBatch, Error>>,
    empty_batches: SyncSender<ReadBatch>,
    /// End of a pipe. When it is dropped, threads that wait for input wake up.
    stop: PipeWriter,
    thread: JoinHandle<()>,
}

impl ReadStream {
    /// Checks every regular file and starts to read the first lane. Batches have the index of their lane in `lanes`.
    ///
    /// # Errors
    /// A file is missing, unreadable, empty or of an unsupported format; a file is given twice, also under another
    /// name, as a link, or as a copy. Errors in pipes are reported by [`ReadStream::fill_batch`].
    pub fn open(lanes: &[StreamLane], options: StreamOptions) -> Result<Self, Error> {
        let (wake, stop) = io::pipe().map_err(Error::Io)?;
        let access = FileReadOptions { pipe_waker: Some(Arc::new(wake)), ..FileReadOptions::default() };
        let terms = options.fastq_options(access.clone());
        check_inputs(lanes, &terms, &options.progress)?;

        let ahead = options.batches_ahead.max(1);
        // Pairs and unpaired reads may alternate in a BAM file, so two batches are filled at the same time.
        let filling = if lanes.iter().any(|lane| matches!(lane, StreamLane::Aligned(_))) { 2 } else { 1 };
        let (filled, full) = sync_channel(ahead + filling);
        let (empty, emptied) = sync_channel(ahead + filling);
        for _ in 0..ahead + filling {
            empty.send(ReadBatch::new()).expect("its other end is here");
        }
        let lanes = lanes.to_vec();
        let pair = move || {
            let pairing = PairingThread { options, access, full_batches: filled, empty_batches: emptied };
            // The error that stopped the thread was already sent to the consumer.
            let _ = lanes.iter().enumerate().try_for_each(|(number, lane)| pairing.read_lane(number as u32, lane));
        };
        let thread = thread::Builder::new().spawn(pair).map_err(thread_start_error)?;
        Ok(ReadStream { running: Some(Running { full_batches: full, empty_batches: empty, stop, thread }) })
    }

    /// Replaces `batch` by the next batch; the previous contents are lost. Returns false and an empty batch at the
    /// end and after an error.
    ///
    /// # Errors
    /// The first error in the reads, after all whole batches before it were delivered: a file that cannot be read,
    /// damaged or truncated gzip, an invalid record, mates that do not match or are missing.
    ///
    /// # Panics
    /// A reading thread panicked.
    pub fn fill_batch(&mut self, batch: &mut ReadBatch) -> Result<bool, Error> {
        batch.clear();
        let Some(running) = &self.running else {
            return Ok(false);
        };
        match running.full_batches.recv() {
            Ok(Ok(next)) => {
                // The pairing thread takes no more batches once it has reached the end.
                let _ = running.empty_batches.send(std::mem::replace(batch, next));
                Ok(true)
            }
            Ok(Err(error)) => {
                self.stop_threads();
                Err(error)
            }
            Err(_) => {
                self.stop_threads();
                Ok(false)
            }
        }
    }

    /// Stops all threads and passes on a panic.
    fn stop_threads(&mut self) {
        let Some(Running { full_batches: full, empty_batches: empty, stop, thread }) = self.running.take() else {
            return;
        };
        drop((full, empty, stop));
        if let Err(panic) = thread.join()
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}

impl Drop for ReadStream {
    fn drop(&mut self) {
        self.stop_threads();
    }
}

/// Checks all that can be checked without reading bytes of a pipe, and sets the expected number of bytes.
fn check_inputs(lanes: &[StreamLane], terms: &FastqOptions, progress: &ProgressCounters) -> Result<(), Error> {
    let paths = || lanes.iter().flat_map(StreamLane::paths);
    let aligned: Vec<&AlignedInput> = (lanes.iter())
        .filter_map(|lane| if let StreamLane::Aligned(aligned) = lane { Some(aligned) } else { None })
        .collect();
    let (mut regular, mut pipes, mut bytes) = (Vec::new(), 0, 0);
    for path in paths() {
        let unreadable = |source| Error::Read { path: path.into(), source };
        if is_regular_file(path).map_err(unreadable)? {
            match aligned.iter().find(|aligned| aligned.path == path) {
                Some(aligned) => aligned::check_eof_marker_and_header(aligned)?,
                None => match FastqReader::open(path, &ProgressCounters::default(), terms) {
                    Err(fault) if terms.accepts(&fault) => continue,
                    opened => drop(opened?),
                },
            }
            regular.push((path, None));
            bytes += path.metadata().map_err(unreadable)?.len();
        } else {
            pipes += 1;
        }
    }
    let stdin: Vec<_> = paths().filter(|path| is_stdin(path)).collect();
    if let [first, second, ..] = stdin[..] {
        return Err(Error::DuplicateInput { first: first.into(), second: second.into() });
    }
    check_no_duplicate_inputs(regular)?;
    if pipes == 0 {
        progress.add_expected_bytes(bytes);
    }
    Ok(())
}

/// Why the pairing thread stops before the end of the reads.
enum StopReason {
    /// The owner of the stream dropped it.
    Dropped,
    Failed(Error),
}

impl From<Error> for StopReason {
    fn from(error: Error) -> Self {
        StopReason::Failed(error)
    }
}

/// Data of the thread that pairs the reads of each lane and fills batches.
struct PairingThread {
    options: StreamOptions,
    access: FileReadOptions,
    full_batches: SyncSender<Result<ReadBatch, Error>>,
    empty_batches: Receiver<ReadBatch>,
}

impl PairingThread {
    fn read_lane(&self, number: u32, lane: &StreamLane) -> Result<(), StopReason> {
        // A single inflating thread would not be faster than the reader, which would only wait for it.
        let each = self.options.inflate_threads / lane.paths().count();
        let inflaters = if each < 2 { 0 } else { each };
        let progress = self.options.progress.clone();
        let before = Cell::new(0);
        if let StreamLane::Aligned(aligned) = lane {
            let tags = self.options.carried_tags.clone();
            let resources = FileReadingResources::with_inflate_threads(inflaters)
                .accept_pipes_with_waker(self.access.pipe_waker.clone());
            let reader = aligned::OrderedReader::open(aligned, tags, progress, resources);
            let made = reader.map_err(StopReason::Failed).and_then(|reader| self.read_aligned_lane(number, reader));
            return made.map_err(|halt| self.send_failure(halt));
        }
        let terms = self.options.fastq_options(FileReadOptions { inflate_threads: inflaters, ..self.access.clone() });
        let mut output = BatchWriter::new(self, number, !matches!(lane, StreamLane::Single(_)), &before)?;
        thread::scope(|scope| {
            let open = |path| {
                let (records, blocks, used) = RecordReader::new(path);
                let (terms, progress) = (terms.clone(), progress.clone());
                let read = move || read_blocks(path, &terms, progress, &blocks, &used);
                thread::Builder::new()
                    .spawn_scoped(scope, read)
                    .map_err(|e| StopReason::Failed(thread_start_error(e)))?;
                Ok(records)
            };
            let made = match lane {
                StreamLane::Single(path) => open(path).and_then(|records| output.write_singles(records)),
                StreamLane::Interleaved(path) => open(path).and_then(|records| output.write_interleaved(records)),
                StreamLane::Pair(one, two) => open(one).and_then(|one| output.write_pairs(one, open(two)?)),
                StreamLane::Aligned(_) => Ok(()),
            };
            // Send the error before the readers are joined: a reader that waits for a pipe stops only when the owner
            // of the stream has received the error.
            made.map_err(|halt| self.send_failure(halt))
        })?;
        output.finish()
    }

    /// Reads a lane of BAM, CRAM or BINSEQ. Delivers pairs as soon as both mates were read, and reads without mates
    /// in separate batches.
    fn read_aligned_lane(
        &self,
        number: u32,
        mut reader: aligned::OrderedReader<Arc<ProgressCounters>>,
    ) -> Result<(), StopReason> {
        let before = Cell::new(0);
        let mut pairs = BatchWriter::new(self, number, true, &before)?;
        let mut singles = None;
        loop {
            let more = reader.deliver_next_templates(|TemplateReads { name, mates, tags, .. }| match mates {
                [Some(one), Some(two)] => {
                    [one, two].into_iter().zip(tags).for_each(|(mate, tags)| pairs.push_aligned(name, mate, tags));
                    pairs.send_if_full()
                }
                mates => {
                    let singles = match &mut singles {
                        Some(singles) => singles,
                        none => none.insert(BatchWriter::new(self, number, false, &before)?),
                    };
                    for (mate, tags) in mates.into_iter().zip(tags) {
                        mate.into_iter().for_each(|mate| singles.push_aligned(name, mate, tags));
                    }
                    singles.send_if_full()
                }
            })?;
            if !more {
                break;
            }
        }
        pairs.finish()?;
        singles.map_or(Ok(()), BatchWriter::finish)
    }

    fn send_failure(&self, halt: StopReason) -> StopReason {
        if let StopReason::Failed(error) = halt {
            // A failure to send means that the consumer was dropped.
            let _ = self.full_batches.send(Err(error));
        }
        StopReason::Dropped
    }
}

/// Creates the error for a thread that could not be started.
fn thread_start_error(source: io::Error) -> Error {
    Error::Io(io::Error::new(source.kind(), format!("cannot start a thread to read: {source}")))
}

/// Divides a file into blocks and sends them, until the file ends or the receiver is dropped.
fn read_blocks(
    path: &Path,
    terms: &FastqOptions,
    progress: Arc<ProgressCounters>,
    blocks: &SyncSender<FastqBlock>,
    used: &Receiver<FastqBlock>,
) {
    let mut stream = match FastqReader::open(path, progress, terms) {
        Ok(stream) => stream,
        Err(fault) => {
            let block = if terms.accepts(&fault) { FastqBlock::default() } else { FastqBlock::new_with_error(fault) };
            // A failure to send means that the consumer was dropped.
            let _ = blocks.send(block);
            return;
        }
    };
    let limit = BlockLimits { records: stream.estimate_records_per_block(), bytes: TARGET_BLOCK_BYTES };
    while let Ok(mut block) = used.recv() {
        stream.fill_and_check_block(&mut block, limit);
        let more = block.has_more;
        if blocks.send(block).is_err() || !more {
            return;
        }
    }
}

/// Delivers the records of the blocks of a file one at a time.
struct RecordReader<'a> {
    path: &'a Path,
    blocks: Receiver<FastqBlock>,
    used_blocks: SyncSender<FastqBlock>,
    block: FastqBlock,
    /// Index, in the block, of the record after the current record.
    next: usize,
}

impl<'a> RecordReader<'a> {
    /// Creates the reader, and the channels for the thread that reads the blocks of the file.
    fn new(path: &'a Path) -> (Self, SyncSender<FastqBlock>, Receiver<FastqBlock>) {
        let (filled, blocks) = sync_channel(BLOCKS_PER_FILE);
        let (used, emptied) = sync_channel(BLOCKS_PER_FILE);
        for _ in 1..BLOCKS_PER_FILE {
            used.send(FastqBlock::default()).expect("its other end is here");
        }
        let block = FastqBlock::new_before_first_block();
        (RecordReader { path, blocks, used_blocks: used, block, next: 0 }, filled, emptied)
    }

    /// Moves to the next record; false at the end of the file.
    fn advance(&mut self) -> Result<bool, Error> {
        while self.next == self.block.num_records() {
            if let Some(fault) = self.block.fault.take() {
                return Err(fault);
            }
            if !self.block.has_more {
                return Ok(false);
            }
            let Ok(block) = self.blocks.recv() else {
                // The reading thread panicked; joining it passes the panic on.
                return Ok(false);
            };
            // The reading thread has ended if it has reached the end of the file.
            let _ = self.used_blocks.send(std::mem::replace(&mut self.block, block));
            self.next = 0;
        }
        self.next += 1;
        Ok(true)
    }

    fn position(&self) -> FastqRecordPosition<'_> {
        FastqRecordPosition { block: &self.block, path: self.path, index: self.next - 1 }
    }

    /// Number of records of the file up to and including the current record.
    fn num_read(&self) -> u64 {
        self.block.num_records_before() + self.next as u64
    }
}

/// Fills the batches of one lane and sends them to the owner of the stream.
struct BatchWriter<'a> {
    pairing: &'a PairingThread,
    batch: ReadBatch,
    lane_index: u32,
    is_paired: bool,
    /// Number of reads of the lane in the batches that have been sent.
    reads_before: &'a Cell<u64>,
}

impl<'a> BatchWriter<'a> {
    fn new(pairing: &'a PairingThread, lane: u32, paired: bool, before: &'a Cell<u64>) -> Result<Self, StopReason> {
        let mut output =
            BatchWriter { pairing, batch: ReadBatch::new(), lane_index: lane, is_paired: paired, reads_before: before };
        output.take_empty_batch()?;
        Ok(output)
    }

    fn take_empty_batch(&mut self) -> Result<(), StopReason> {
        self.batch = self.pairing.empty_batches.recv().map_err(|_| StopReason::Dropped)?;
        self.batch.clear();
        (self.batch.lane_index, self.batch.is_paired) = (self.lane_index, self.is_paired);
        Ok(())
    }

    /// Sends the batch to the owner of the stream and takes an empty one.
    fn send_batch(&mut self) -> Result<(), StopReason> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.reads_before = self.reads_before.get();
        self.reads_before.set(batch.reads_before + batch.len() as u64);
        let progress = &self.pairing.options.progress;
        progress.add_reads(batch.len() as u64);
        if self.is_paired {
            progress.add_pairs(batch.len() as u64 / 2);
        }
        self.pairing.full_batches.send(Ok(batch)).map_err(|_| StopReason::Dropped)
    }

    /// Sends the last batch of the lane, if it has reads.
    fn finish(mut self) -> Result<(), StopReason> {
        if self.batch.is_empty() { Ok(()) } else { self.send_batch() }
    }

    fn send_if_full(&mut self) -> Result<(), StopReason> {
        if self.pairing.options.batch_limit.is_full(&self.batch) {
            self.send_batch()?;
            self.take_empty_batch()?;
        }
        Ok(())
    }

    fn push_record(&mut self, name: &[u8], record: &FastqRecord<'_>) {
        let FastqRecord { header, comment, mate, .. } = *record;
        let (name, comment) =
            if self.pairing.options.uses_whole_header_as_name { (header, &b""[..]) } else { (name, comment) };
        self.batch.push(ReadRef { name, comment, tags: b"", seq: mate.seq, qual: mate.qual });
    }

    fn push_aligned(&mut self, name: &[u8], mate: Mate<'_>, tags: &[u8]) {
        self.batch.push(ReadRef { name, comment: b"", tags, seq: mate.seq, qual: mate.qual });
    }

    fn push_mates(&mut self, places: [FastqRecordPosition<'_>; 2]) -> Result<(), StopReason> {
        let records = places.map(|place| place.split_into_fields());
        let name = check_mates_and_return_name(places, records.each_ref())?;
        records.iter().for_each(|record| self.push_record(name, record));
        self.send_if_full()
    }

    fn write_singles(&mut self, mut reads: RecordReader<'_>) -> Result<(), StopReason> {
        while reads.advance()? {
            let record = reads.position().split_into_fields();
            self.push_record(record.first_word, &record);
            self.send_if_full()?;
        }
        Ok(())
    }

    fn write_interleaved(&mut self, mut reads: RecordReader<'_>) -> Result<(), StopReason> {
        while reads.advance()? {
            // Both mates are in one block, because blocks have an even number of records.
            let one = reads.position().index;
            let alone = reads.num_read();
            if !reads.advance()? {
                return Err(Error::error_in_record(reads.path, alone, RecordFault::MissingMate).into());
            }
            let two = reads.position();
            self.push_mates([FastqRecordPosition { index: one, ..two }, two])?;
        }
        Ok(())
    }

    fn write_pairs(&mut self, mut one: RecordReader<'_>, mut two: RecordReader<'_>) -> Result<(), StopReason> {
        loop {
            let (first, second) = (one.advance()?, two.advance()?);
            let (short, long) = match (first, second) {
                (true, true) => {
                    self.push_mates([one.position(), two.position()])?;
                    continue;
                }
                (false, false) => return Ok(()),
                (false, true) => (one, two),
                (true, false) => (two, one),
            };
            return Err(StopReason::Failed(Error::MatesMissing {
                shorter_path: short.path.into(),
                records: short.num_read(),
                slice_start: None,
                longer_path: long.path.into(),
            }));
        }
    }
}
