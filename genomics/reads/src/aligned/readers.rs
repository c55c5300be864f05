//! Readers of BAM, CRAM and BINSEQ files: for several workers, and for one thread that needs the reads in a fixed
//! order.

use std::io::PipeReader;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, FileFault};
use crate::inflate::FileReadOptions;
use crate::inline_umi::UmiExtractor;
use crate::packed_read::ReadPacker;
use crate::pair_batch::{Mate, PairBatch};
use crate::pipe::is_regular_file;
use crate::read_structure::ReadStructures;
use crate::tags::CarriedTags;
use genuma_work::ProgressCounters;

use super::bam::BamFileReader;
use super::cbq::{self, CbqFileReader};
use super::cram::{self, CramFileReader};
use super::file::{AlignedFormat, AlignedInput, AlignedOptions};
use super::header::AlignedHeader;
use super::pairing::{MateMatcher, TemplateReads};
use super::record_buffer::{MAX_QUALITY, RecordBuffer};
use super::vbq::{self, VbqOrBqFileReader};
use super::waiting_mates::{MAX_WAITING_MATES_MEMORY_BYTES, RemainingReads, WaitingMates};
use crate::record_counts::RecordCounts;

/// Maximum number of templates that are delivered in one batch from the reads that still wait at the end of the file.
const TEMPLATES_PER_BATCH: usize = 1024;
/// Quality (Phred + 33) of the bases of reads without qualities: the highest that FASTQ can represent. Nothing is known
/// against these bases, so no minimum quality leaves them out.
const SUBSTITUTE_QUALITY: u8 = b'!' + MAX_QUALITY;

/// Resources for reading a file in addition to the reading threads.
#[derive(Debug, Clone)]
pub(crate) struct FileReadingResources {
    /// Number of threads that decompress the file, in addition to the reading threads.
    inflate_threads: usize,
    /// If present, the input may be a pipe. A thread that waits for input is woken when the other end of this internal
    /// pipe is dropped.
    pipe_waker: Option<Arc<PipeReader>>,
}

impl FileReadingResources {
    /// Divides `threads` workers among `files` files that they read together: each file gets as many decompressing
    /// threads as are useful. Decompression is about a third of the work of reading. A single decompressing thread per
    /// file is no gain, because a worker would wait for it.
    pub(crate) fn divide_threads_among_files(threads: usize, files: usize) -> FileReadingResources {
        FileReadingResources::with_inflate_threads(threads / (3 * files.max(1)))
    }

    /// Resources with `threads` decompressing threads. With fewer than two, the reading thread decompresses, because a
    /// single decompressing thread saves no time. Pipes are not accepted.
    pub(crate) fn with_inflate_threads(threads: usize) -> FileReadingResources {
        FileReadingResources { inflate_threads: if threads < 2 { 0 } else { threads }, pipe_waker: None }
    }

    /// Also accepts pipes if `pipe_waker` is present (see [`FileReadingResources::pipe_waker`]).
    pub(crate) fn accept_pipes_with_waker(self, pipe_waker: Option<Arc<PipeReader>>) -> FileReadingResources {
        FileReadingResources { pipe_waker, ..self }
    }
}

/// Buffers of one worker for reading BAM, CRAM or BINSEQ records; reused for every batch.
#[derive(Default)]
pub(crate) struct ReaderScratch {
    chunk: RecordChunk,
    pairing: MateMatcher,
    unmatched: Option<RemainingReads>,
}

impl ReaderScratch {
    /// Number of records of the file before the records in the buffers.
    pub(crate) fn num_records_before(&self) -> u64 {
        match &self.chunk.encoded {
            EncodedRecords::None => self.chunk.chunk.num_records_before,
            EncodedRecords::Cram(container) => container.as_ref().map_or(0, cram::EncodedContainer::num_records_before),
            EncodedRecords::Cbq(block) => block.num_records_before(),
            EncodedRecords::Vbq(block) => block.num_records_before(),
        }
    }
}

/// Consecutive records of a file.
#[derive(Default)]
struct RecordChunk {
    chunk: RecordBuffer,
    encoded: EncodedRecords,
}

/// Records that still have to be decoded into the record buffer.
#[derive(Default)]
enum EncodedRecords {
    /// BAM records, which are read directly into the record buffer.
    #[default]
    None,
    Cram(Option<cram::EncodedContainer>),
    Cbq(Box<cbq::EncodedBlock>),
    Vbq(Box<vbq::EncodedBlock>),
}

impl RecordChunk {
    /// Decodes the records if necessary, finds the reads among them, and counts the records.
    fn find_reads(&mut self, path: &Path, counts: &mut RecordCounts) -> Result<(), Error> {
        match &mut self.encoded {
            EncodedRecords::Cram(Some(container)) => container.decode_reads(path, &mut self.chunk, counts),
            EncodedRecords::Cbq(block) => block.decode_reads(path, &mut self.chunk, counts),
            EncodedRecords::Vbq(block) => block.decode_reads(path, &mut self.chunk, counts),
            EncodedRecords::None | EncodedRecords::Cram(None) => self.chunk.find_reads(path, counts),
        }
    }
}

/// An open BAM, CRAM or BINSEQ file.
enum AlignedRecordFile<M: Deref<Target = ProgressCounters>> {
    Bam(Box<BamFileReader<M>>),
    Cbq(Box<CbqFileReader<M>>),
    Cram(Box<CramFileReader<M>>),
    Vbq(Box<VbqOrBqFileReader<M>>),
}

impl<M: Deref<Target = ProgressCounters>> AlignedRecordFile<M> {
    fn open(of: &AlignedInput, progress: M, resources: &FileReadingResources) -> Result<Self, Error> {
        let pipes = resources.pipe_waker.clone();
        let unreadable = |source| Error::Read { path: of.path.clone(), source };
        let file = match AlignedFormat::detect_format(&of.path).map_err(unreadable)? {
            Some(AlignedFormat::Cram) => {
                let AlignedOptions { reference, max_slice_bytes, .. } = &of.options;
                let reader = CramFileReader::open(&of.path, progress, reference, *max_slice_bytes, pipes.as_ref())?;
                AlignedRecordFile::Cram(Box::new(reader))
            }
            Some(AlignedFormat::Cbq) => AlignedRecordFile::Cbq(Box::new(CbqFileReader::open(&of.path, progress)?)),
            Some(AlignedFormat::Vbq) => AlignedRecordFile::Vbq(Box::new(VbqOrBqFileReader::open(&of.path, progress)?)),
            _ => {
                let access = FileReadOptions {
                    inflate_threads: resources.inflate_threads,
                    pipe_waker: pipes,
                    ..FileReadOptions::default()
                };
                AlignedRecordFile::Bam(Box::new(BamFileReader::open(&of.path, progress, access)?))
            }
        };
        let header = file.header();
        let names = || header.sample_names.iter().filter(|name| !name.is_empty());
        if of.options.requires_one_sample && names().nth(1).is_some() {
            let names = names().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ");
            return Err(Error::error_in_file(&of.path, FileFault::SeveralSamples { names }));
        }
        if !is_regular_file(&of.path).map_err(unreadable)? {
            of.pipe_header.set(header);
        }
        Ok(file)
    }

    /// Samples and reference sequences in the header.
    fn header(&self) -> AlignedHeader {
        match self {
            AlignedRecordFile::Bam(bam) => bam.header.clone(),
            AlignedRecordFile::Cram(cram) => cram.header(),
            // CBQ, VBQ and BQ have neither read groups nor reference sequences.
            AlignedRecordFile::Cbq(_) | AlignedRecordFile::Vbq(_) => AlignedHeader::default(),
        }
    }

    fn read_chunk(&mut self, cut: &mut RecordChunk) -> Result<bool, Error> {
        match self {
            AlignedRecordFile::Bam(bam) => {
                // The buffers may come from a CRAM file and still have its last container.
                cut.encoded = EncodedRecords::None;
                bam.read_next_records(&mut cut.chunk)
            }
            AlignedRecordFile::Cram(cram) => {
                if !matches!(cut.encoded, EncodedRecords::Cram(_)) {
                    cut.encoded = EncodedRecords::Cram(None);
                }
                let EncodedRecords::Cram(container) = &mut cut.encoded else { return Ok(false) };
                cram.read_container(container)
            }
            AlignedRecordFile::Cbq(cbq) => {
                if !matches!(cut.encoded, EncodedRecords::Cbq(_)) {
                    cut.encoded = EncodedRecords::Cbq(Box::default());
                }
                let EncodedRecords::Cbq(block) = &mut cut.encoded else { return Ok(false) };
                cbq.read_block(block)
            }
            AlignedRecordFile::Vbq(vbq) => {
                if !matches!(cut.encoded, EncodedRecords::Vbq(_)) {
                    cut.encoded = EncodedRecords::Vbq(Box::default());
                }
                let EncodedRecords::Vbq(block) = &mut cut.encoded else { return Ok(false) };
                vbq.read_block(block)
            }
        }
    }

    /// Number of bytes of the file that were read ahead and are not in a record buffer yet, as far as known.
    fn num_bytes_read_ahead(&self) -> u64 {
        match self {
            AlignedRecordFile::Bam(_) => 0,
            AlignedRecordFile::Cbq(cbq) => cbq.num_bytes_read_ahead(),
            AlignedRecordFile::Vbq(vbq) => vbq.num_bytes_read_ahead(),
            AlignedRecordFile::Cram(cram) => cram.num_bytes_read_ahead(),
        }
    }
}

impl AlignedInput {
    /// Reads the samples, platforms and reference sequences in the header of the file. Those of a pipe, whose bytes can
    /// be read only once, are known when the pipe has been opened for reading; before that, the result is empty.
    ///
    /// # Errors
    /// The file cannot be read, or its header is damaged; the file has reads of several samples, and
    /// [`AlignedOptions::requires_one_sample`] refuses that.
    pub fn read_header(&self) -> Result<AlignedHeader, Error> {
        if !is_regular_file(&self.path).map_err(|source| Error::Read { path: self.path.clone(), source })? {
            return Ok(self.pipe_header.get().cloned().unwrap_or_default());
        }
        let resources = FileReadingResources::with_inflate_threads(0);
        Ok(AlignedRecordFile::open(self, &ProgressCounters::default(), &resources)?.header())
    }
}

/// Checks the end-of-file marker and the header of a file.
pub(crate) fn check_eof_marker_and_header(file: &AlignedInput) -> Result<(), Error> {
    AlignedRecordFile::open(file, &ProgressCounters::default(), &FileReadingResources::with_inflate_threads(0))
        .map(drop)
}

/// Counts reads, bases, bytes of the packed reads, and bytes of the file, in about the first `max_bytes` bytes of the
/// uncompressed records.
///
/// # Errors
/// The file cannot be read, or one of these records is invalid.
pub(crate) fn count_reads_in_first_bytes(file: &AlignedInput, max_bytes: u64) -> Result<[u64; 4], Error> {
    let (path, progress) = (&file.path, ProgressCounters::default());
    let mut file = AlignedRecordFile::open(file, &progress, &FileReadingResources::with_inflate_threads(0))?;
    let (mut cut, mut counts, mut packer) = (RecordChunk::default(), RecordCounts::default(), ReadPacker::default());
    let ([mut reads, mut bases, mut packed_bytes], mut bytes_seen) = ([0; 3], 0);
    let [mut seq, mut qual, mut packed] = <[Vec<u8>; 3]>::default();
    while bytes_seen < max_bytes {
        if !file.read_chunk(&mut cut)? {
            let meta = path.metadata().map_err(|source| Error::Read { path: path.clone(), source })?;
            return Ok([reads, bases, packed_bytes, meta.len()]);
        }
        cut.find_reads(path, &mut counts)?;
        let buffer = &cut.chunk;
        bytes_seen += buffer.len_bytes() as u64;
        for read in &buffer.reads {
            buffer.decode_read(read, &mut seq, &mut qual);
            // The packed read needs as many qualities as bases.
            qual.resize(seq.len(), SUBSTITUTE_QUALITY);
            packed.clear();
            packer.pack(&seq, &qual, &mut packed);
            reads += 1;
            bases += seq.len() as u64;
            packed_bytes += packed.len() as u64 + buffer.name(read).len() as u64 / 2;
        }
    }
    Ok([reads, bases, packed_bytes, progress.bytes_done() - file.num_bytes_read_ahead()])
}

fn new_waiting_mates(of: &AlignedInput) -> Result<WaitingMates, Error> {
    let unreadable = |source| Error::Read { path: of.path.clone(), source };
    // The size of a pipe is unknown.
    let size = match is_regular_file(&of.path).map_err(unreadable)? {
        true => of.path.metadata().map_err(unreadable)?.len(),
        false => u64::MAX,
    };
    let folder = of.options.temp_folder.clone().unwrap_or_else(std::env::temp_dir);
    Ok(WaitingMates::new(size, MAX_WAITING_MATES_MEMORY_BYTES, nearest_existing_folder(&folder)))
}

/// The folder, or the nearest of its parents that exists. Input files are checked before the work folder is created.
fn nearest_existing_folder(folder: &Path) -> &Path {
    // I/O error ignored: reported when a file is created in the folder.
    let named = folder.ancestors().find(|parent| parent.is_dir());
    // The last parent of a relative path is empty.
    named.unwrap_or(if folder.is_absolute() { Path::new("/") } else { Path::new(".") })
}

/// Reader of one BAM, CRAM or BINSEQ file that several workers share.
pub(crate) struct SharedReader<'a> {
    aligned: &'a AlignedInput,
    sample: u8,
    /// Structures of reads whose bases contain UMIs; `None` if UMIs are taken from tags.
    structures: Option<&'a ReadStructures>,
    progress: &'a ProgressCounters,
    resources: FileReadingResources,
    waiting_mates: Option<WaitingMates>,
    state: Mutex<SharedState<'a>>,
    /// Notified when a worker has added the unmatched reads of its records to the waiting mates.
    worker_finished: Condvar,
    /// The next partition of the waiting mates that a worker delivers.
    next_partition: AtomicUsize,
    counts: Mutex<RecordCounts>,
}

struct SharedState<'a> {
    file: FileState<'a>,
    /// Number of workers that hold records whose unmatched reads are not yet among the waiting mates.
    active_workers: usize,
    /// Number of partitions of the waiting mates; `None` until the end of the file has been reached.
    num_partitions: Option<usize>,
}

enum FileState<'a> {
    Unopened,
    Open(AlignedRecordFile<&'a ProgressCounters>),
    Finished,
}

/// Guard of a worker that holds records whose reads have not been matched with their mates yet.
struct ActiveWorker<'s, 'a>(&'s SharedReader<'a>);

impl Drop for ActiveWorker<'_, '_> {
    fn drop(&mut self) {
        lock(&self.0.state).active_workers -= 1;
        self.0.worker_finished.notify_all();
    }
}

impl<'a> SharedReader<'a> {
    /// Creates a reader of a file of sample `sample`. UMIs of tags, or of the bases that `structures` describe, are
    /// appended to the read names.
    pub(crate) fn new(
        of: &'a AlignedInput,
        sample: u8,
        structures: Option<&'a ReadStructures>,
        progress: &'a ProgressCounters,
        resources: FileReadingResources,
    ) -> Result<Self, Error> {
        let mates = if of.options.pair_mates { Some(new_waiting_mates(of)?) } else { None };
        Ok(SharedReader {
            aligned: of,
            sample,
            structures,
            progress,
            resources,
            waiting_mates: mates,
            state: Mutex::new(SharedState { file: FileState::Unopened, active_workers: 0, num_partitions: None }),
            worker_finished: Condvar::new(),
            next_partition: AtomicUsize::new(0),
            counts: Mutex::default(),
        })
    }

    /// Reads the next pairs of the file into `batch`; false if there are none left.
    pub(crate) fn next_batch(&self, scratch: &mut ReaderScratch, batch: &mut PairBatch) -> Result<bool, Error> {
        let path = &self.aligned.path;
        batch.clear();
        batch.sample = self.sample;
        scratch.chunk.chunk.uses_umi_tags = self.structures.is_none();
        let mut counts = RecordCounts::default();
        let mut appender = TemplateAppender::new(self.aligned, self.structures);
        let fetched = loop {
            if let Some(rest) = &mut scratch.unmatched {
                let more =
                    scratch.pairing.deliver_remaining_reads(rest, TEMPLATES_PER_BATCH, &mut counts, |template| {
                        appender.append(template, batch)
                    })?;
                if !more {
                    scratch.unmatched = None;
                }
            } else if let Some(at_work) = self.read_chunk(&mut scratch.chunk)? {
                scratch.chunk.find_reads(path, &mut counts)?;
                let mates = self.waiting_mates.as_ref();
                scratch.pairing.deliver_templates_of_buffer(&scratch.chunk.chunk, path, mates, |template| {
                    appender.append(template, batch)
                })?;
                drop(at_work);
            } else if let Some(rest) = self.next_unmatched()? {
                scratch.unmatched = Some(rest);
            } else {
                break false;
            }
            if !batch.is_empty() {
                break true;
            }
        };
        counts.merge_counts(&appender.counts);
        if let Some(extractor) = appender.extractor {
            counts.merge_counts(&extractor.counts);
        }
        lock(&self.counts).merge_counts(&counts);
        Ok(fetched)
    }

    /// Reads the next records; `None` at the end of the file. The guard must live until the reads have been matched
    /// with their mates.
    fn read_chunk(&self, cut: &mut RecordChunk) -> Result<Option<ActiveWorker<'_, 'a>>, Error> {
        let mut state = lock(&self.state);
        // An error is reported once: the file then counts as finished.
        let mut file = match std::mem::replace(&mut state.file, FileState::Finished) {
            FileState::Unopened => AlignedRecordFile::open(self.aligned, self.progress, &self.resources)?,
            FileState::Open(file) => file,
            FileState::Finished => return Ok(None),
        };
        if !file.read_chunk(cut)? {
            return Ok(None);
        }
        state.file = FileState::Open(file);
        state.active_workers += 1;
        Ok(Some(ActiveWorker(self)))
    }

    /// Waits until all workers have matched their records, and returns the next partition of unmatched reads; `None`
    /// after the last.
    fn next_unmatched(&self) -> Result<Option<RemainingReads>, Error> {
        let Some(mates) = &self.waiting_mates else { return Ok(None) };
        let mut state = lock(&self.state);
        while state.active_workers > 0 {
            state = self.worker_finished.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let parts = match state.num_partitions {
            Some(parts) => parts,
            None => *state.num_partitions.insert(mates.finish_adding_and_count_partitions()?),
        };
        drop(state);
        let number = self.next_partition.fetch_add(1, Relaxed);
        Ok(if number < parts { Some(mates.take_remaining_reads_of_partition(number)?) } else { None })
    }

    /// Stores the record counts in the input file. To be called when the workers have read the file to its end.
    pub(crate) fn store_record_counts_in_input(self) {
        self.aligned.set_record_counts(self.counts.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Appends templates with their UMIs to batches of pairs.
struct TemplateAppender<'a> {
    aligned: &'a AlignedInput,
    /// Moves UMIs from the bases to the names; `None` if UMIs are taken from tags.
    extractor: Option<UmiExtractor<'a>>,
    /// Counts of reads without qualities.
    counts: RecordCounts,
    /// Qualities for reads without qualities, for the longest such read so far.
    substitute_quals: Vec<u8>,
}

impl<'a> TemplateAppender<'a> {
    fn new(aligned: &'a AlignedInput, structures: Option<&'a ReadStructures>) -> TemplateAppender<'a> {
        TemplateAppender {
            aligned,
            extractor: structures.map(UmiExtractor::for_read_structures),
            counts: RecordCounts::default(),
            substitute_quals: Vec::new(),
        }
    }

    /// Appends a template to a batch.
    ///
    /// # Errors
    /// A read has no qualities, and [`AlignedOptions::accepts_missing_qualities`] does not accept that.
    fn append(&mut self, template: TemplateReads<'_>, batch: &mut PairBatch) -> Result<(), Error> {
        let TemplateReads { name, umi, mut mates, .. } = template;
        for mate in mates.iter().flatten().filter(|mate| mate.qual.len() < mate.seq.len()) {
            if !self.aligned.options.accepts_missing_qualities {
                let name = String::from_utf8_lossy(name).into_owned();
                return Err(Error::error_in_file(&self.aligned.path, FileFault::NoQualities { name }));
            }
            self.counts.without_qualities.add_read(name);
            if self.substitute_quals.len() < mate.seq.len() {
                self.substitute_quals.resize(mate.seq.len(), SUBSTITUTE_QUALITY);
            }
        }
        for mate in mates.iter_mut().flatten().filter(|mate| mate.qual.len() < mate.seq.len()) {
            mate.qual = &self.substitute_quals[..mate.seq.len()];
        }
        match &mut self.extractor {
            Some(extractor) => extractor.extract_umi_and_push_pair(name, mates, batch),
            None => {
                let [mark, value] = umi.read_name_suffix();
                batch.push_concatenated_parts(
                    [name, mark, value],
                    mates.map(|mate| [mate.unwrap_or(Mate::WITHOUT_BASES), Mate::WITHOUT_BASES]),
                );
            }
        }
        Ok(())
    }
}

/// Reads one file in the order of its records. Templates come in the order of their last reads; templates with a
/// missing mate, or with a mate that was spilled to disk, come at the end.
pub(crate) struct OrderedReader<M: Deref<Target = ProgressCounters>> {
    aligned: AlignedInput,
    file: Option<AlignedRecordFile<M>>,
    waiting_mates: Option<WaitingMates>,
    scratch: ReaderScratch,
    partitions: std::ops::Range<usize>,
    counts: RecordCounts,
}

impl<M: Deref<Target = ProgressCounters>> OrderedReader<M> {
    /// Opens a file that one thread reads in order. `carried_tags` are the tags that come with the reads.
    pub(crate) fn open(
        of: &AlignedInput,
        carried_tags: Option<Arc<CarriedTags>>,
        progress: M,
        resources: FileReadingResources,
    ) -> Result<Self, Error> {
        let mates = if of.options.pair_mates { Some(new_waiting_mates(of)?) } else { None };
        let file = Some(AlignedRecordFile::open(of, progress, &resources)?);
        let mut scratch = ReaderScratch::default();
        scratch.chunk.chunk.carried_tags = carried_tags;
        Ok(OrderedReader {
            aligned: of.clone(),
            file,
            waiting_mates: mates,
            scratch,
            partitions: 0..0,
            counts: RecordCounts::default(),
        })
    }

    /// Calls `each` with the templates that the next records of the file complete, which may be none; returns false
    /// after the last template.
    pub(crate) fn deliver_next_templates<E: From<Error>>(
        &mut self,
        each: impl FnMut(TemplateReads<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let OrderedReader { aligned: of, file, waiting_mates: mates, scratch, partitions: parts, counts } = self;
        if let Some(open) = file {
            if open.read_chunk(&mut scratch.chunk)? {
                scratch.chunk.find_reads(&of.path, counts)?;
                scratch.pairing.deliver_templates_of_buffer(&scratch.chunk.chunk, &of.path, mates.as_ref(), each)?;
                return Ok(true);
            }
            *file = None;
            if let Some(mates) = mates {
                *parts = 0..mates.finish_adding_and_count_partitions().map_err(Error::from)?;
            }
        }
        if let (Some(mates), Some(part)) = (mates, parts.next()) {
            let mut rest = mates.take_remaining_reads_of_partition(part).map_err(Error::from)?;
            scratch.pairing.deliver_remaining_reads(&mut rest, usize::MAX, counts, each)?;
            return Ok(true);
        }
        of.set_record_counts(std::mem::take(counts));
        Ok(false)
    }
}

/// Locks a mutex even if a thread panicked while it held the lock: the panic is passed on when the threads are joined.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
