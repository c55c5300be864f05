//! Reads pulled batch by batch, in the order of the files, while threads read ahead.
//!
//! ```text
//! file of read 1 ─ reader: inflate, cut, check ─ blocks ─┐
//!                                                        ├─ pairing: match mates, cut batches ─ batches ─ fill
//! file of read 2 ─ reader: inflate, cut, check ─ blocks ─┘
//! ```
//!
//! Each arrow has a fixed number of blocks or batches that go round in it, so memory is bounded and nothing is
//! allocated once the buffers have grown.

use std::cell::Cell;
use std::io::{self, PipeWriter};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::aligned::{self, Aligned, Crew, Template};
use crate::batch::Mate;
use crate::check::refuse_copies;
use crate::error::{Error, RecordFault};
use crate::fastq::{BLOCK_BYTES, Block, Limit, Place, Record, Stream, Terms, check_mates};
use crate::inflate::Access;
use crate::pipe::{is_regular, is_stdin};
use crate::read_batch::{ReadBatch, ReadRef};
use genuma_work::Meter;

/// Blocks that go round between a file's reader and the pairing.
const BLOCKS: usize = 4;

/// Reads that lie together: FASTQ or FASTA, plain, gzip or BGZF, where `-` is the standard input, and pipes are welcome; or BAM or CRAM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadLane {
    /// Reads without mates.
    Single(PathBuf),
    /// Read 1 and read 2 in two files, in the same order.
    Pair(PathBuf, PathBuf),
    /// Read 1 and read 2 in turn in one file.
    Interleaved(PathBuf),
    /// Reads that were aligned: mates in the order of the records that complete them, and batches of their own for reads without mates.
    Aligned(Aligned),
}

impl ReadLane {
    /// Whether it is read from something that cannot be read again; what cannot be looked at is none.
    pub fn has_pipe(&self) -> bool {
        self.paths().any(|path| is_regular(path).is_ok_and(|regular| !regular))
    }

    /// The file of aligned reads that it is of, if it is.
    pub fn into_aligned(self) -> Option<Aligned> {
        if let ReadLane::Aligned(aligned) = self { Some(aligned) } else { None }
    }

    /// The files of the lane, one or two.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let (one, two) = match self {
            ReadLane::Pair(one, two) => (one, Some(two)),
            ReadLane::Single(one) | ReadLane::Interleaved(one) => (one, None),
            ReadLane::Aligned(aligned) => (&aligned.path, None),
        };
        std::iter::once(one).chain(two).map(PathBuf::as_path)
    }
}

/// Where a batch ends. It also ends with its lane, and never between mates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// A batch ends with the read or pair that brings it to this many bases, ...
    pub bases: u64,
    /// ... or to this many reads, ...
    pub reads: usize,
    /// ... but at `bases` only if it has at least this many reads, ...
    pub fewest_reads: usize,
    /// ... or this many bases.
    pub most_bases: u64,
}

impl Cut {
    /// Ends batches at a number of bases, as `-K` of minibwa and, for pairs, of bwa does.
    pub fn at_bases(bases: u64) -> Self {
        Cut { bases, reads: usize::MAX, fewest_reads: 0, most_bases: bases }
    }

    /// Ends batches at a number of reads.
    pub fn at_reads(reads: usize) -> Self {
        Cut { bases: u64::MAX, reads, fewest_reads: 0, most_bases: u64::MAX }
    }

    fn ends(&self, batch: &ReadBatch) -> bool {
        let (bases, reads) = (batch.bases(), batch.len());
        reads >= self.reads || bases >= self.most_bases || (bases >= self.bases && reads >= self.fewest_reads)
    }
}

/// How a [`ReadStream`] reads.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// Where batches end.
    pub cut: Cut,
    /// Batches made ahead of those asked for, at least one. Memory: one more than these.
    pub ahead: usize,
    /// Threads that inflate BGZF, shared out among the files of a lane. Below two for a file its reader does it alone,
    /// as it does for any other gzip.
    pub inflaters: usize,
    /// Whether the name of a read is its whole header line, without `@` or `>`, instead of the first word alone: for
    /// those who hand reads on as they are. There is no comment then.
    pub whole_headers: bool,
    /// Counts bytes, reads and pairs. Its total stays 0 when a file is a pipe.
    pub meter: Arc<Meter>,
}

impl StreamOptions {
    /// Two batches ahead and no threads but one for each open file and one that pairs.
    pub fn new(cut: Cut) -> Self {
        StreamOptions { cut, ahead: 2, inflaters: 1, whole_headers: false, meter: Arc::default() }
    }
}

/// All reads of some lanes, in order.
///
/// Dropped early, it stops its threads, also those that wait for a pipe.
///
/// ```
/// use genuma_reads::{Cut, ReadBatch, ReadLane, ReadStream, StreamOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("reads.fq");
/// # std::fs::write(&path, "@a/1\nACGT\n+\nFFFF\n@a/2\nAC\n+\nFF\n")?;
/// let lanes = [ReadLane::Interleaved(path)];
/// let mut stream = ReadStream::open(&lanes, StreamOptions::new(Cut::at_bases(100_000_000)))?;
/// let mut batch = ReadBatch::new();
/// while stream.fill(&mut batch)? {
///     assert!(batch.paired);
///     assert_eq!((batch.read(0).name, batch.read(1).seq), (&b"a"[..], &b"AC"[..]));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ReadStream {
    /// Present until the end, or an error, was met.
    running: Option<Running>,
}

struct Running {
    full: Receiver<Result<ReadBatch, Error>>,
    empty: SyncSender<ReadBatch>,
    /// Dropped to wake who waits for a pipe.
    stop: PipeWriter,
    thread: JoinHandle<()>,
}

impl ReadStream {
    /// Looks at every regular file and starts to read the first lane. The number of a lane in `lanes` is that of its
    /// batches.
    ///
    /// # Errors
    /// A file that is missing, unreadable, empty or not FASTQ, FASTA or BAM; a file given twice, be it under another name,
    /// as a link, or as a copy. What is wrong with pipes is told by [`ReadStream::fill`].
    pub fn open(lanes: &[ReadLane], options: StreamOptions) -> Result<Self, Error> {
        let (wake, stop) = io::pipe().map_err(Error::Named)?;
        let access = Access { pipes: Some(Arc::new(wake)), ..Access::default() };
        check(lanes, &access, &options.meter)?;

        let ahead = options.ahead.max(1);
        // Where reads with mates and others come among each other, two batches are filled at a time.
        let filling = if lanes.iter().any(|lane| matches!(lane, ReadLane::Aligned(_))) { 2 } else { 1 };
        let (filled, full) = sync_channel(ahead + filling);
        let (empty, emptied) = sync_channel(ahead + filling);
        for _ in 0..ahead + filling {
            empty.send(ReadBatch::new()).expect("its other end is here");
        }
        let lanes = lanes.to_vec();
        let pair = move || {
            let pairing = Pairing { options, access, filled, emptied };
            // What halted it has been told to whoever listens.
            let _ = lanes.iter().enumerate().try_for_each(|(number, lane)| pairing.lane(number as u32, lane));
        };
        let thread = thread::Builder::new().spawn(pair).map_err(no_thread)?;
        Ok(ReadStream { running: Some(Running { full, empty, stop, thread }) })
    }

    /// Swaps `batch` for the next one; what it held is lost. False, and an empty batch, at the end and after an error.
    ///
    /// # Errors
    /// The first thing that is wrong with the reads, told when all whole batches before it have been handed out: a file
    /// that cannot be read, damaged or truncated gzip, a bad record, mates that do not match or are missing.
    ///
    /// # Panics
    /// A reading thread panicked.
    pub fn fill(&mut self, batch: &mut ReadBatch) -> Result<bool, Error> {
        batch.clear();
        let Some(running) = &self.running else {
            return Ok(false);
        };
        match running.full.recv() {
            Ok(Ok(next)) => {
                // The pairing takes no more batches when it has met the end.
                let _ = running.empty.send(std::mem::replace(batch, next));
                Ok(true)
            }
            Ok(Err(error)) => {
                self.halt();
                Err(error)
            }
            Err(_) => {
                self.halt();
                Ok(false)
            }
        }
    }

    /// Stops all threads and passes a panic on.
    fn halt(&mut self) {
        let Some(Running { full, empty, stop, thread }) = self.running.take() else {
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
        self.halt();
    }
}

/// Checks what can be checked without taking bytes from a pipe, and tells the meter the size of all files.
fn check(lanes: &[ReadLane], access: &Access, meter: &Meter) -> Result<(), Error> {
    let paths = || lanes.iter().flat_map(ReadLane::paths);
    let aligned: Vec<&Aligned> = (lanes.iter())
        .filter_map(|lane| if let ReadLane::Aligned(aligned) = lane { Some(aligned) } else { None })
        .collect();
    let terms = Terms::reads(access.clone());
    let (mut regular, mut pipes, mut bytes) = (Vec::new(), 0, 0);
    for path in paths() {
        let unreadable = |source| Error::Read { path: path.into(), source };
        if is_regular(path).map_err(unreadable)? {
            match aligned.iter().find(|aligned| aligned.path == path) {
                Some(aligned) => aligned::check(aligned)?,
                None => drop(Stream::open(path, &Meter::default(), &terms)?),
            }
            regular.push((path, None));
            bytes += path.metadata().map_err(unreadable)?.len();
        } else {
            pipes += 1;
        }
    }
    let stdin: Vec<_> = paths().filter(|path| is_stdin(path)).collect();
    if let [first, second, ..] = stdin[..] {
        return Err(Error::Twice { first: first.into(), second: second.into() });
    }
    refuse_copies(regular)?;
    if pipes == 0 {
        meter.expect_bytes(bytes);
    }
    Ok(())
}

/// Why the pairing ends before the reads do.
enum Halt {
    /// Nobody wants more reads.
    Dropped,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Halt::Failed(error)
    }
}

/// The thread that makes batches.
struct Pairing {
    options: StreamOptions,
    access: Access,
    filled: SyncSender<Result<ReadBatch, Error>>,
    emptied: Receiver<ReadBatch>,
}

impl Pairing {
    fn lane(&self, number: u32, lane: &ReadLane) -> Result<(), Halt> {
        // One inflating thread beside a reader that then only waits for it would gain nothing.
        let each = self.options.inflaters / lane.paths().count();
        let inflaters = if each < 2 { 0 } else { each };
        let meter = self.options.meter.clone();
        let before = Cell::new(0);
        if let ReadLane::Aligned(aligned) = lane {
            let crew = Crew::exactly(inflaters).or_pipe(self.access.pipes.clone());
            let reader = aligned::Reader::open(aligned, meter, crew);
            let made = reader.map_err(Halt::Failed).and_then(|reader| self.aligned(number, reader));
            return made.map_err(|halt| self.tell(halt));
        }
        let terms = Terms::reads(Access { inflaters, ..self.access.clone() });
        let mut output = Output::new(self, number, !matches!(lane, ReadLane::Single(_)), &before)?;
        thread::scope(|scope| {
            let open = |path| {
                let (records, blocks, used) = Records::new(path);
                let (terms, meter) = (terms.clone(), meter.clone());
                let read = move || read_blocks(path, &terms, meter, &blocks, &used);
                thread::Builder::new().spawn_scoped(scope, read).map_err(|e| Halt::Failed(no_thread(e)))?;
                Ok(records)
            };
            let made = match lane {
                ReadLane::Single(path) => open(path).and_then(|records| output.singles(records)),
                ReadLane::Interleaved(path) => open(path).and_then(|records| output.interleaved(records)),
                ReadLane::Pair(one, two) => open(one).and_then(|one| output.pairs(one, open(two)?)),
                ReadLane::Aligned(_) => Ok(()),
            };
            // Told before the readers are joined: one that waits for a pipe goes on waiting until the owner of the
            // stream knows.
            made.map_err(|halt| self.tell(halt))
        })?;
        output.end()
    }

    /// Pairs as they come, and reads without mates in batches of their own.
    fn aligned(&self, number: u32, mut reader: aligned::Reader<Arc<Meter>>) -> Result<(), Halt> {
        let before = Cell::new(0);
        let mut pairs = Output::new(self, number, true, &before)?;
        let mut singles = None;
        loop {
            let more = reader.next(|Template { name, mates }| match mates {
                [Some(one), Some(two)] => {
                    [one, two].into_iter().for_each(|mate| pairs.push_aligned(name, mate));
                    pairs.cut()
                }
                mates => {
                    let singles = match &mut singles {
                        Some(singles) => singles,
                        none => none.insert(Output::new(self, number, false, &before)?),
                    };
                    mates.into_iter().flatten().for_each(|mate| singles.push_aligned(name, mate));
                    singles.cut()
                }
            })?;
            if !more {
                break;
            }
        }
        pairs.end()?;
        singles.map_or(Ok(()), Output::end)
    }

    fn tell(&self, halt: Halt) -> Halt {
        if let Halt::Failed(error) = halt {
            // Nobody is told when nobody listens.
            let _ = self.filled.send(Err(error));
        }
        Halt::Dropped
    }
}

/// Of a thread that the system refuses to start.
fn no_thread(source: io::Error) -> Error {
    Error::Named(io::Error::new(source.kind(), format!("no thread to read with: {source}")))
}

/// Cuts a file into blocks until it ends or nobody wants more.
fn read_blocks(
    path: &Path,
    terms: &Terms,
    meter: Arc<Meter>,
    blocks: &SyncSender<Block>,
    used: &Receiver<Block>,
) {
    let mut stream = match Stream::open(path, meter, terms) {
        Ok(stream) => stream,
        Err(fault) => {
            // Nobody is told when nobody listens.
            let _ = blocks.send(Block::of_fault(fault));
            return;
        }
    };
    let limit = Limit { records: stream.block_records(), bytes: BLOCK_BYTES };
    while let Ok(mut block) = used.recv() {
        stream.cut(&mut block, limit);
        block.verify(path);
        let more = block.more;
        if blocks.send(block).is_err() || !more {
            return;
        }
    }
}

/// The records of a file, one by one.
struct Records<'a> {
    path: &'a Path,
    blocks: Receiver<Block>,
    used: SyncSender<Block>,
    block: Block,
    /// Number of the record after the last one taken, in `block`.
    next: usize,
}

impl<'a> Records<'a> {
    /// Also what the reader of the file needs.
    fn new(path: &'a Path) -> (Self, SyncSender<Block>, Receiver<Block>) {
        let (filled, blocks) = sync_channel(BLOCKS);
        let (used, emptied) = sync_channel(BLOCKS);
        for _ in 1..BLOCKS {
            used.send(Block::default()).expect("its other end is here");
        }
        let block = Block::before_first();
        (Records { path, blocks, used, block, next: 0 }, filled, emptied)
    }

    /// Moves to the next record; false at the end of the file.
    fn advance(&mut self) -> Result<bool, Error> {
        while self.next == self.block.records() {
            if let Some(fault) = self.block.fault.take() {
                return Err(fault);
            }
            if !self.block.more {
                return Ok(false);
            }
            let Ok(block) = self.blocks.recv() else {
                // The reader panicked; joining it passes that on.
                return Ok(false);
            };
            // The reader is gone when it has met the end.
            let _ = self.used.send(std::mem::replace(&mut self.block, block));
            self.next = 0;
        }
        self.next += 1;
        Ok(true)
    }

    /// The record moved to.
    fn place(&self) -> Place<'_> {
        Place { block: &self.block, path: self.path, index: self.next - 1 }
    }

    /// Records of the file up to and with the one moved to.
    fn count(&self) -> u64 {
        self.block.before() + self.next as u64
    }
}

/// Where the batches of a lane are made.
struct Output<'a> {
    pairing: &'a Pairing,
    batch: ReadBatch,
    lane: u32,
    paired: bool,
    /// Reads of the lane in earlier batches.
    before: &'a Cell<u64>,
}

impl<'a> Output<'a> {
    fn new(pairing: &'a Pairing, lane: u32, paired: bool, before: &'a Cell<u64>) -> Result<Self, Halt> {
        let mut output = Output { pairing, batch: ReadBatch::new(), lane, paired, before };
        output.start()?;
        Ok(output)
    }

    /// Takes an empty batch.
    fn start(&mut self) -> Result<(), Halt> {
        self.batch = self.pairing.emptied.recv().map_err(|_| Halt::Dropped)?;
        self.batch.clear();
        (self.batch.lane, self.batch.paired) = (self.lane, self.paired);
        Ok(())
    }

    /// Hands the batch over.
    fn hand_over(&mut self) -> Result<(), Halt> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.before = self.before.get();
        self.before.set(batch.before + batch.len() as u64);
        let meter = &self.pairing.options.meter;
        meter.add_reads(batch.len() as u64);
        if self.paired {
            meter.add_pairs(batch.len() as u64 / 2);
        }
        self.pairing.filled.send(Ok(batch)).map_err(|_| Halt::Dropped)
    }

    /// The lane has ended.
    fn end(mut self) -> Result<(), Halt> {
        if self.batch.is_empty() { Ok(()) } else { self.hand_over() }
    }

    fn cut(&mut self) -> Result<(), Halt> {
        if self.pairing.options.cut.ends(&self.batch) {
            self.hand_over()?;
            self.start()?;
        }
        Ok(())
    }

    fn push(&mut self, name: &[u8], record: &Record<'_>) {
        let Record { header, comment, mate, .. } = *record;
        let (name, comment) =
            if self.pairing.options.whole_headers { (header, &b""[..]) } else { (name, comment) };
        self.batch.push(ReadRef { name, comment, seq: mate.seq, qual: mate.qual });
    }

    fn push_aligned(&mut self, name: &[u8], mate: Mate<'_>) {
        self.batch.push(ReadRef { name, comment: b"", seq: mate.seq, qual: mate.qual });
    }

    fn push_mates(&mut self, places: [Place<'_>; 2]) -> Result<(), Halt> {
        let records = places.map(|place| place.view());
        check_mates(places, records.each_ref())?;
        records.iter().for_each(|record| self.push(record.name, record));
        self.cut()
    }

    fn singles(&mut self, mut reads: Records<'_>) -> Result<(), Halt> {
        while reads.advance()? {
            let record = reads.place().view();
            self.push(record.word, &record);
            self.cut()?;
        }
        Ok(())
    }

    fn interleaved(&mut self, mut reads: Records<'_>) -> Result<(), Halt> {
        while reads.advance()? {
            // Mates lie in one block, because blocks have an even number of records.
            let one = reads.place().index;
            let alone = reads.count();
            if !reads.advance()? {
                return Err(Error::record(reads.path, alone, RecordFault::NoMate).into());
            }
            let two = reads.place();
            self.push_mates([Place { index: one, ..two }, two])?;
        }
        Ok(())
    }

    fn pairs(&mut self, mut one: Records<'_>, mut two: Records<'_>) -> Result<(), Halt> {
        loop {
            let (first, second) = (one.advance()?, two.advance()?);
            let (short, long) = match (first, second) {
                (true, true) => {
                    self.push_mates([one.place(), two.place()])?;
                    continue;
                }
                (false, false) => return Ok(()),
                (false, true) => (one, two),
                (true, false) => (two, one),
            };
            return Err(Halt::Failed(Error::MatesMissing {
                short: short.path.into(),
                records: short.count(),
                from: None,
                long: long.path.into(),
            }));
        }
    }
}
