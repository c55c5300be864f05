//! Sorted records → a CRAM 3.0 file and its index (`.crai`). Threads encode a container each; the bytes do not depend on how many.
//!
//! A container has one slice of up to 10,000 records of one sequence, or of several where these have few; of each kind of value there is a
//! block, coded in one way ([`series`]). Names, tags and qualities are kept as they are. What BAM and CRAM hold differently: `=` and `X` of a
//! CIGAR become `M`, the `RG` tag comes behind the others, and an unmapped read has neither CIGAR nor mapping quality.

mod number;
mod rans;
mod block;
mod series;
mod slice;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use genuma_reads::Genome;
use genuma_work::publish::{AtomicFile, Set};
use libdeflater::{CompressionLvl, Compressor};
use md5::{Digest, Md5};

use super::Error;
use super::header::Header;
use super::record::Record;
use crate::indexed;
use block::{Codec, Coders, Container, END, Kind, Reach};
use slice::{Encoder, Line};

/// Records of a container, at most.
const RECORDS: usize = 10_000;
/// Bases of a container past which it takes no more records.
const BASES: usize = 5_000_000;
/// Records that a container has to have for the next sequence to begin one of its own.
const FEW: usize = 1_000;

/// A CRAM file being written. It and its index appear under their names with the set that [`super::Sorter::finish_cram`] puts them into.
pub struct CramFile {
    path: PathBuf,
    data: AtomicFile,
    header: Header,
    genome: Genome,
    /// Sums of the sequences, which are being made.
    digests: JoinHandle<Result<Vec<[u8; 16]>, Error>>,
}

impl CramFile {
    /// Begins `path`, for records on the sequences of `genome`, whose file will be named in the header. A thread begins to sum the sequences.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, header: Header, genome: &Genome) -> Result<CramFile, Error> {
        let data = AtomicFile::create(path).map_err(indexed::Error::File)?;
        let (names, of) = (header.names().to_vec(), genome.clone());
        let digests = std::thread::spawn(move || {
            let digest = |(name, length): &(String, u32)| {
                let bases = of
                    .sequence(name.as_bytes(), *length as usize)
                    .map_err(|e| Error::Reference(e.to_string()))?;
                Ok(Md5::digest(&bases).into())
            };
            names.iter().map(digest).collect()
        });
        Ok(CramFile { path: path.to_owned(), data, header, genome: genome.clone(), digests })
    }

    /// Writes all records that `next` gives, in order, and puts both files into `set`.
    pub(super) fn write(
        self,
        threads: usize,
        next: impl FnMut(&mut Vec<u8>) -> Result<bool, Error>,
        set: &mut Set,
    ) -> Result<(), Error> {
        let CramFile { path, mut data, header, genome, digests } = self;
        let digests = digests.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let text = header.with_reference(&digests, genome.path());
        let head = head(&text);
        data.write_all(&head)?;

        let groups: HashMap<Vec<u8>, i32> =
            header.groups().map(|id| id.as_bytes().to_vec()).zip(0..).collect();
        let sequences = Sequences { genome, names: header.names(), recent: Mutex::default() };
        let threads = threads.max(1);
        let (jobs, to_do) = unbounded();
        let (done, results) = unbounded();
        let (free, empty) = unbounded();
        // What is under way is bounded by the batches there are.
        for _ in 0..2 * threads + 2 {
            // The receiver is right here.
            let _ = free.send(Batch::default());
        }
        let (data, index) = std::thread::scope(|scope| {
            for _ in 0..threads {
                let (to_do, done, sequences, groups) = (to_do.clone(), done.clone(), &sequences, &groups);
                scope.spawn(move || encode(sequences, groups, &to_do, &done));
            }
            drop((to_do, done));
            let at = head.len() as u64;
            let writing =
                scope.spawn(move || Sink { out: data, index: String::new(), at }.take(&results, &free));
            let merged = fill(&empty, &jobs, next);
            drop(jobs);
            let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            merged.and(written)
        })?;
        let mut name = path.into_os_string();
        name.push(".crai");
        let mut file = AtomicFile::create(PathBuf::from(name)).map_err(indexed::Error::File)?;
        file.write_all(&gzip(index.as_bytes()))?;
        set.add(file.complete().map_err(indexed::Error::File)?);
        set.add(data.complete().map_err(indexed::Error::File)?);
        Ok(())
    }
}

/// A gzip file.
fn gzip(data: &[u8]) -> Vec<u8> {
    let mut gzip = Compressor::new(CompressionLvl::default());
    let mut out = vec![0; gzip.gzip_compress_bound(data.len())];
    // There is room for whatever it makes.
    let size = gzip.gzip_compress(data, &mut out).unwrap_or(0);
    out.truncate(size);
    out
}

/// What stands before the records: what the file is, and the header lines.
fn head(text: &str) -> Vec<u8> {
    let mut out = b"CRAM\x03\x00".to_vec();
    // Room for a name, which would make the same records other bytes.
    out.extend_from_slice(&[0; 20]);
    let mut lines = (text.len() as i32).to_le_bytes().to_vec();
    lines.extend_from_slice(text.as_bytes());
    let mut block = Vec::new();
    Coders::new().block(Kind::Header, 0, Codec::Gzip, &lines, &mut block);
    let reach = Reach { sequence: 0, start: 0, span: 0 };
    Container { bytes: block.len(), reach, records: 0, before: 0, bases: 0, blocks: 1, slice: None }
        .write(&mut out);
    out.extend_from_slice(&block);
    out
}

/// Bases of a sequence, read by whoever needs them first.
type Held = Arc<OnceLock<Result<Vec<u8>, String>>>;

/// The reference, of which little more is held than what records under way lie on.
struct Sequences<'a> {
    genome: Genome,
    names: &'a [(String, u32)],
    /// Those asked for last.
    recent: Mutex<Vec<(u32, Held)>>,
}

/// Sequences that stay for whoever asks next.
const RECENT: usize = 2;

impl Sequences<'_> {
    fn hold(&self, number: u32) -> Held {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, held)) = recent.iter().find(|(held, _)| *held == number) {
            return held.clone();
        }
        if recent.len() == RECENT {
            recent.remove(0);
        }
        let held = Held::default();
        recent.push((number, held.clone()));
        held
    }
}

/// One thread's view of the reference: nothing is locked while records lie on the same sequence.
struct Near<'a> {
    sequences: &'a Sequences<'a>,
    held: Option<(u32, Held)>,
}

impl Near<'_> {
    fn bases(&mut self, number: u32) -> Result<&[u8], Error> {
        if self.held.as_ref().is_none_or(|(held, _)| *held != number) {
            self.held = None;
        }
        let Near { sequences, held } = self;
        let (_, held) = held.get_or_insert_with(|| (number, sequences.hold(number)));
        let read = || {
            let beyond = || "a record lies on a sequence that the header does not have".to_owned();
            let (name, length) = sequences.names.get(number as usize).ok_or_else(beyond)?;
            sequences.genome.sequence(name.as_bytes(), *length as usize).map_err(|e| e.to_string())
        };
        held.get_or_init(read).as_deref().map_err(|why| Error::Reference(why.clone()))
    }
}

/// Whole records on their way through the threads. Reused.
#[derive(Default)]
struct Batch {
    number: usize,
    /// Records before it.
    before: u64,
    data: Vec<u8>,
    container: Vec<u8>,
    lines: Vec<Line>,
}

/// Gathers records into batches, of which each will be a container.
fn fill(
    empty: &Receiver<Batch>,
    jobs: &Sender<Batch>,
    mut next: impl FnMut(&mut Vec<u8>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let (mut number, mut before) = (0, 0);
    // The record that did not fit into the last batch.
    let mut left = Vec::new();
    let mut more = true;
    while more {
        // Without the other threads there is nothing to do: they have failed, and say why.
        let Ok(mut batch) = empty.recv() else { return Ok(()) };
        batch.data.clear();
        batch.data.append(&mut left);
        let (mut records, mut bases, mut at, mut sequence) = (0, 0, 0, None);
        loop {
            if at == batch.data.len() && !next(&mut batch.data)? {
                more = false;
                break;
            }
            let record = Record::at(&batch.data[at..]);
            let moves = sequence.is_some_and(|sequence| sequence != record.sequence());
            if records == RECORDS || bases >= BASES || (moves && records >= FEW) {
                left.extend_from_slice(&batch.data[at..]);
                batch.data.truncate(at);
                break;
            }
            sequence = Some(record.sequence());
            records += 1;
            bases += record.letters();
            at += record.bytes().len();
        }
        if records == 0 {
            break;
        }
        (batch.number, batch.before) = (number, before);
        number += 1;
        before += records as u64;
        if jobs.send(batch).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Encodes batches, as long as all goes well.
fn encode(
    sequences: &Sequences<'_>,
    groups: &HashMap<Vec<u8>, i32>,
    to_do: &Receiver<Batch>,
    done: &Sender<Result<Batch, Error>>,
) {
    let mut encoder = Encoder::new(Near { sequences, held: None }, groups);
    for mut batch in to_do {
        let Batch { before, data, container, lines, .. } = &mut batch;
        container.clear();
        lines.clear();
        let encoded = encoder.container(data, *before, container, lines);
        if done.send(encoded.map(|()| batch)).is_err() {
            return;
        }
    }
}

/// Writes containers in their order.
struct Sink<W> {
    out: W,
    index: String,
    /// Bytes written.
    at: u64,
}

impl<W: Write> Sink<W> {
    fn take(
        mut self,
        results: &Receiver<Result<Batch, Error>>,
        free: &Sender<Batch>,
    ) -> Result<(W, String), Error> {
        let mut next = 0;
        let mut early = BTreeMap::new();
        for batch in results {
            let batch = batch?;
            early.insert(batch.number, batch);
            while let Some(batch) = early.remove(&next) {
                self.write(&batch)?;
                next += 1;
                // Nobody wants it after the last record.
                let _ = free.send(batch);
            }
        }
        self.out.write_all(&END)?;
        self.out.flush()?;
        Ok((self.out, self.index))
    }

    fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        self.out.write_all(&batch.container)?;
        for Line { reach, slice, bytes } in &batch.lines {
            let Reach { sequence, start, span } = reach;
            // Writing to a string cannot fail.
            let _ = writeln!(self.index, "{sequence}\t{start}\t{span}\t{}\t{slice}\t{bytes}", self.at);
        }
        self.at += batch.container.len() as u64;
        Ok(())
    }
}
