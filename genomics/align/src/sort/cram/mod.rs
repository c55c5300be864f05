//! Writes sorted records to a CRAM 3.0 or 3.1 file with its index (`.crai`). Each thread encodes one container at a
//! time; the bytes do not depend on the number of threads.
//!
//! A container has one slice of up to 10,000 records of one sequence, or of several sequences that have few records.
//! Each data series has its own block with a fixed compression method, in CRAM 3.1 with the smallest of a few
//! ([`data_series`], [`block`]). Read names, tags and qualities are preserved. Differences from BAM: `=` and `X` of a
//! CIGAR become `M`, the `RG` tag is the last tag, and an unmapped read has neither CIGAR nor mapping quality.

mod itf8;
mod rans;
mod rans_nx16;
mod name_tokenizer;
mod block;
mod data_series;
mod slice;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use genuma_reads::CramReference;
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use libdeflater::{CompressionLvl, Compressor};
use md5::{Digest, Md5};

use super::Error;
use super::header::SortedFileHeader;
use super::record::Record;
use crate::indexed_file;
use block::{BlockType, BlockWriter, Codec, ContainerHeader, EOF_CONTAINER, ReferenceSpan};
use slice::{ContainerEncoder, CraiEntry};

/// Maximum number of records in a container.
const MAX_CONTAINER_RECORDS: usize = 10_000;
/// Number of bases of the records at which a container is full.
const MAX_CONTAINER_BASES: usize = 5_000_000;
/// Maximum number of bytes of the BAM records of a container, unless a single record has more. The sizes of blocks and
/// containers must fit into 31 bits, and no encoding takes several times the bytes of BAM.
const MAX_CONTAINER_RECORD_BYTES: usize = 256 << 20;
/// Minimum number of records in a container at which a new reference sequence begins a new container.
const MIN_CONTAINER_RECORDS: usize = 1_000;

/// Version of the CRAM format. 3.1 has further compression methods: rANS Nx16 and the name tokeniser are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CramVersion {
    /// CRAM 3.0, which all programs that read CRAM support.
    #[default]
    V3_0,
    /// CRAM 3.1, which needs htslib 1.12, htsjdk 4.3 or noodles. GATK 4.6.2 and earlier cannot read it.
    V3_1,
}

/// A CRAM file that is being written. The file and its index are added to a file set by [`super::Sorter::write_cram`],
/// and get their final names when the file set is published.
pub struct CramFileWriter {
    path: PathBuf,
    data: AtomicFile,
    header: SortedFileHeader,
    genome: CramReference,
    version: CramVersion,
    /// Thread that computes the MD5 sums of the reference sequences.
    digests: JoinHandle<Result<Vec<[u8; 16]>, Error>>,
}

impl CramFileWriter {
    /// Creates the file at `path` for records aligned to `genome`, whose path is written to the header if it has one.
    /// Starts a thread that computes the MD5 sums of the sequences.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, header: SortedFileHeader, genome: &CramReference) -> Result<CramFileWriter, Error> {
        let data = AtomicFile::create(path).map_err(indexed_file::Error::Publish)?;
        let (names, of) = (header.sequence_names_and_lengths().to_vec(), genome.clone());
        let digests = std::thread::spawn(move || {
            let digest = |(name, length): &(String, u32)| {
                let bases =
                    of.read_sequence(name.as_bytes(), *length as usize).map_err(|e| Error::Reference(e.to_string()))?;
                Ok(Md5::digest(&bases).into())
            };
            names.iter().map(digest).collect()
        });
        let version = CramVersion::default();
        Ok(CramFileWriter { path: path.to_owned(), data, header, genome: genome.clone(), version, digests })
    }

    /// Returns the file with another version of the CRAM format.
    pub fn with_version(self, version: CramVersion) -> CramFileWriter {
        CramFileWriter { version, ..self }
    }

    /// Writes all records and adds the file and its index to `set`. `next` appends the next record to a buffer and
    /// returns whether there was one.
    pub(super) fn write_records_and_index(
        self,
        threads: usize,
        next: impl FnMut(&mut Vec<u8>) -> Result<bool, Error>,
        set: &mut AtomicFileSet,
    ) -> Result<(), Error> {
        let CramFileWriter { path, mut data, header, genome, version, digests } = self;
        let digests = digests.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let text = header.format_cram_header(&digests, genome.path());
        let head = file_header(&text, version);
        data.write_all(&head)?;

        let groups: HashMap<Vec<u8>, i32> = header.read_group_ids().map(|id| id.as_bytes().to_vec()).zip(0..).collect();
        let sequences = ReferenceCache { genome, names: header.sequence_names_and_lengths(), recent: Mutex::default() };
        let threads = threads.max(1);
        let (jobs, to_do) = unbounded();
        let (done, results) = unbounded();
        let (free, empty) = unbounded();
        // The number of batches limits the memory.
        for _ in 0..2 * threads + 2 {
            // The receiver exists in this function, so that sending cannot fail.
            let _ = free.send(ContainerBatch::default());
        }
        let (data, index) = std::thread::scope(|scope| {
            for _ in 0..threads {
                let (to_do, done, sequences, groups) = (to_do.clone(), done.clone(), &sequences, &groups);
                scope.spawn(move || encode_batches(sequences, groups, version, &to_do, &done));
            }
            drop((to_do, done));
            let at = head.len() as u64;
            let writing = scope.spawn(move || {
                OrderedWriter { out: data, index: String::new(), offset: at }.write_in_order(&results, &free)
            });
            let merged = fill_batches(&empty, &jobs, next);
            drop(jobs);
            let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            merged.and(written)
        })?;
        let mut name = path.into_os_string();
        name.push(".crai");
        let mut file = AtomicFile::create(PathBuf::from(name)).map_err(indexed_file::Error::Publish)?;
        file.write_all(&gzip_file(index.as_bytes()))?;
        set.add_file(file.flush_to_partial_file().map_err(indexed_file::Error::Publish)?);
        set.add_file(data.flush_to_partial_file().map_err(indexed_file::Error::Publish)?);
        Ok(())
    }
}

/// Returns `data` as the bytes of a gzip file.
fn gzip_file(data: &[u8]) -> Vec<u8> {
    let mut gzip = Compressor::new(CompressionLvl::default());
    let mut out = vec![0; gzip.gzip_compress_bound(data.len())];
    // The buffer is large enough for any result.
    let size = gzip.gzip_compress(data, &mut out).unwrap_or(0);
    out.truncate(size);
    out
}

/// The bytes before the records: file definition and header container.
fn file_header(text: &str, version: CramVersion) -> Vec<u8> {
    let minor = match version {
        CramVersion::V3_0 => 0,
        CramVersion::V3_1 => 1,
    };
    let mut out = [&b"CRAM\x03"[..], &[minor]].concat();
    // The 20 bytes of the file ID stay zero, so that equal records give equal bytes.
    out.extend_from_slice(&[0; 20]);
    let mut lines = (text.len() as i32).to_le_bytes().to_vec();
    lines.extend_from_slice(text.as_bytes());
    let mut block = Vec::new();
    BlockWriter::new(CramVersion::V3_0).write_block(BlockType::FileHeader, 0, Codec::Gzip, &lines, &mut block);
    let span = ReferenceSpan { sequence: 0, start: 0, span: 0 };
    ContainerHeader {
        bytes: block.len(),
        span,
        records: 0,
        record_counter: 0,
        bases: 0,
        blocks: 1,
        slice_offset: None,
    }
    .write_container_header(&mut out);
    out.extend_from_slice(&block);
    out
}

/// Bases of a reference sequence, read by the thread that needs them first.
type SharedBases = Arc<OnceLock<Result<Vec<u8>, String>>>;

/// The reference sequences. Only the last ones that were added are kept in memory.
struct ReferenceCache<'a> {
    genome: CramReference,
    names: &'a [(String, u32)],
    /// The last sequences that were added, with their indices in the header.
    recent: Mutex<Vec<(u32, SharedBases)>>,
}

/// Maximum number of sequences that are kept in memory for reuse.
const MAX_CACHED_SEQUENCES: usize = 2;

impl ReferenceCache<'_> {
    fn shared_bases(&self, number: u32) -> SharedBases {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, held)) = recent.iter().find(|(held, _)| *held == number) {
            return held.clone();
        }
        if recent.len() == MAX_CACHED_SEQUENCES {
            recent.remove(0);
        }
        let held = SharedBases::default();
        recent.push((number, held.clone()));
        held
    }
}

/// The reference bases for one thread. No lock is needed while consecutive records are on the same sequence.
struct ThreadReference<'a> {
    sequences: &'a ReferenceCache<'a>,
    held: Option<(u32, SharedBases)>,
}

impl ThreadReference<'_> {
    fn bases(&mut self, number: u32) -> Result<&[u8], Error> {
        if self.held.as_ref().is_none_or(|(held, _)| *held != number) {
            self.held = None;
        }
        let ThreadReference { sequences, held } = self;
        let (_, held) = held.get_or_insert_with(|| (number, sequences.shared_bases(number)));
        let read = || {
            let beyond = || "a record lies on a sequence that the header does not have".to_owned();
            let (name, length) = sequences.names.get(number as usize).ok_or_else(beyond)?;
            sequences.genome.read_sequence(name.as_bytes(), *length as usize).map_err(|e| e.to_string())
        };
        held.get_or_init(read).as_deref().map_err(|why| Error::Reference(why.clone()))
    }
}

/// Whole records and the CRAM container encoded from them. A batch passes through the threads and is then reused.
#[derive(Default)]
struct ContainerBatch {
    number: usize,
    /// Number of records of the file before this batch.
    record_counter: u64,
    data: Vec<u8>,
    container: Vec<u8>,
    index_entries: Vec<CraiEntry>,
}

/// Collects records into batches; each batch becomes a container.
fn fill_batches(
    empty: &Receiver<ContainerBatch>,
    jobs: &Sender<ContainerBatch>,
    mut next: impl FnMut(&mut Vec<u8>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let (mut number, mut before) = (0, 0);
    // The record that did not fit into the last batch.
    let mut left = Vec::new();
    let mut more = true;
    while more {
        // If the other threads have ended, they have failed and report the error.
        let Ok(mut batch) = empty.recv() else { return Ok(()) };
        batch.data.clear();
        batch.data.append(&mut left);
        let (mut records, mut bases, mut at, mut sequence) = (0, 0, 0, None);
        loop {
            if at == batch.data.len() && !next(&mut batch.data)? {
                more = false;
                break;
            }
            let record = Record::first_of_checked_bytes(&batch.data[at..]);
            let moves = sequence.is_some_and(|sequence| sequence != record.sequence_index());
            if records == MAX_CONTAINER_RECORDS
                || bases >= MAX_CONTAINER_BASES
                || (records > 0 && at + record.encoded_bytes().len() > MAX_CONTAINER_RECORD_BYTES)
                || (moves && records >= MIN_CONTAINER_RECORDS)
            {
                left.extend_from_slice(&batch.data[at..]);
                batch.data.truncate(at);
                break;
            }
            sequence = Some(record.sequence_index());
            records += 1;
            bases += record.num_bases();
            at += record.encoded_bytes().len();
        }
        if records == 0 {
            break;
        }
        (batch.number, batch.record_counter) = (number, before);
        number += 1;
        before += records as u64;
        if jobs.send(batch).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Encodes batches until no batches are left or the receiver has ended.
fn encode_batches(
    sequences: &ReferenceCache<'_>,
    groups: &HashMap<Vec<u8>, i32>,
    version: CramVersion,
    to_do: &Receiver<ContainerBatch>,
    done: &Sender<Result<ContainerBatch, Error>>,
) {
    let mut encoder = ContainerEncoder::new(ThreadReference { sequences, held: None }, groups, version);
    for mut batch in to_do {
        let ContainerBatch { record_counter: before, data, container, index_entries: lines, .. } = &mut batch;
        container.clear();
        lines.clear();
        let encoded = encoder.encode_container(data, *before, container, lines);
        if done.send(encoded.map(|()| batch)).is_err() {
            return;
        }
    }
}

/// Writes containers in the order of their numbers. A container that arrives before an earlier one is kept until the
/// earlier one has been written.
struct OrderedWriter<W> {
    out: W,
    index: String,
    /// Number of bytes written so far: the file offset.
    offset: u64,
}

impl<W: Write> OrderedWriter<W> {
    fn write_in_order(
        mut self,
        results: &Receiver<Result<ContainerBatch, Error>>,
        free: &Sender<ContainerBatch>,
    ) -> Result<(W, String), Error> {
        let mut next = 0;
        let mut early = BTreeMap::new();
        for batch in results {
            let batch = batch?;
            early.insert(batch.number, batch);
            while let Some(batch) = early.remove(&next) {
                self.write_container(&batch)?;
                next += 1;
                // Nobody receives the batch after the last record.
                let _ = free.send(batch);
            }
        }
        self.out.write_all(&EOF_CONTAINER)?;
        self.out.flush()?;
        Ok((self.out, self.index))
    }

    fn write_container(&mut self, batch: &ContainerBatch) -> Result<(), Error> {
        self.out.write_all(&batch.container)?;
        for CraiEntry { span, slice_offset: slice, slice_bytes: bytes } in &batch.index_entries {
            let ReferenceSpan { sequence, start, span } = span;
            // Writing to a string cannot fail.
            let _ = writeln!(self.index, "{sequence}\t{start}\t{span}\t{}\t{slice}\t{bytes}", self.offset);
        }
        self.offset += batch.container.len() as u64;
        Ok(())
    }
}
