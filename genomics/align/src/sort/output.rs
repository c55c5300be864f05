//! Sorted records → a BAM file and its index. Threads deflate; the bytes do not depend on how many.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use crossbeam_channel::{Receiver, Sender, unbounded};
use genuma_work::publish::{AtomicFile, Set};
use noodles_bgzf::VirtualPosition;
use noodles_csi::binning_index::index::reference_sequence::bin::Chunk;

use super::Error;
use super::header::Header;
use super::record::{Record, flag};
use crate::bgzf::{self, Deflater, Level, PAYLOAD};
use crate::indexed::{self, Indexing, Place, Records};

/// BGZF blocks that are deflated by one thread at a time.
const BLOCKS: usize = 4;

/// A BAM file being written, and its index (`.bai`, or `.csi` when a sequence is too long for that). Both appear under
/// their names with the set that [`super::Sorter::finish`] puts them into.
pub struct BamFile {
    path: PathBuf,
    data: AtomicFile,
    header: Header,
    level: Level,
}

impl BamFile {
    /// Begins `path`; `level` says how hard to deflate.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, header: Header, level: Level) -> Result<BamFile, Error> {
        let data = AtomicFile::create(path).map_err(indexed::Error::File)?;
        Ok(BamFile { path: path.to_owned(), data, header, level })
    }

    /// Writes all records that `next` gives, in order, and puts both files into `set`.
    pub(super) fn write(
        self,
        threads: usize,
        next: impl FnMut(&mut Vec<u8>) -> Result<bool, Error>,
        set: &mut Set,
    ) -> Result<(), Error> {
        let BamFile { path, data, header, level } = self;
        let index = Index {
            indexing: Indexing::begin(header.longest(), None),
            path: &path,
            written: 0,
            header: &header,
        };
        let (data, index) = write(&header, level, threads, data, Some(index), next)?;
        let records = Records::Bam { sequences: header.sequences() };
        if let Some(index) = index {
            indexed::finish(&path, data, index.indexing, &records, set)?;
        }
        Ok(())
    }
}

/// Writes header and records to `out`; `next` appends the next record and says whether there was one.
pub(super) fn write<'a, W: Write + Send>(
    header: &Header,
    level: Level,
    threads: usize,
    mut out: W,
    index: Option<Index<'a>>,
    next: impl FnMut(&mut Vec<u8>) -> Result<bool, Error>,
) -> Result<(W, Option<Index<'a>>), Error> {
    let mut deflater = Deflater::new(level);
    let mut head = Vec::new();
    for piece in header.encoded().chunks(PAYLOAD) {
        deflater.block(piece, &mut head);
    }
    out.write_all(&head)?;

    let threads = threads.max(1);
    let (jobs, to_do) = unbounded();
    let (done, results) = unbounded();
    let (free, empty) = unbounded();
    // What is under way is bounded by the batches there are.
    for _ in 0..2 * threads + 2 {
        // The receiver is right here.
        let _ = free.send(Batch::default());
    }
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (to_do, done) = (to_do.clone(), done.clone());
            scope.spawn(move || deflate(level, &to_do, &done));
        }
        drop((to_do, done));
        let at = head.len() as u64;
        let writing = scope.spawn(move || Sink { out, index, at }.take(&results, &free));
        let merged = fill(&empty, &jobs, next);
        drop(jobs);
        let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        merged.and(written)
    })
}

/// Whole records that share no block with others, on their way through the threads. Reused.
#[derive(Debug, Default)]
struct Batch {
    number: usize,
    data: Vec<u8>,
    /// Where blocks end in `data`.
    ends: Vec<usize>,
    deflated: Vec<u8>,
    /// Size of each deflated block.
    sizes: Vec<usize>,
    entries: Vec<Entry>,
}

/// A place in a batch: block, and offset in its data.
type Spot = (usize, usize);

/// What the index says of a record.
#[derive(Debug)]
struct Entry {
    place: Option<Place>,
    from: Spot,
    to: Spot,
}

/// Gathers records into blocks as htslib does: one that does not fit begins the next block, and only one that is longer
/// than a block goes on into others.
fn fill(
    empty: &Receiver<Batch>,
    jobs: &Sender<Batch>,
    mut next: impl FnMut(&mut Vec<u8>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut number = 0;
    // Of the record that did not fit into the last batch.
    let mut left = Vec::new();
    let mut more = true;
    while more {
        // Without the other threads there is nothing to do: they have failed, and say why.
        let Ok(mut batch) = empty.recv() else { return Ok(()) };
        let Batch { data, ends, .. } = &mut batch;
        data.clear();
        ends.clear();
        data.append(&mut left);
        let mut begin = cut(data, 0, ends);
        loop {
            let before = data.len();
            if !next(data)? {
                more = false;
                break;
            }
            if data.len() - begin > PAYLOAD && before > begin {
                ends.push(before);
                begin = before;
                if ends.len() >= BLOCKS {
                    left.extend_from_slice(&data[before..]);
                    data.truncate(before);
                    break;
                }
            }
            begin = cut(data, begin, ends);
        }
        if data.len() > begin {
            ends.push(data.len());
        }
        batch.number = number;
        number += 1;
        if jobs.send(batch).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Cuts full blocks off a long record that begins a block at `begin`. Returns where the open block begins.
fn cut(data: &[u8], mut begin: usize, ends: &mut Vec<usize>) -> usize {
    while data.len() - begin > PAYLOAD {
        begin += PAYLOAD;
        ends.push(begin);
    }
    begin
}

/// Deflates batches and looks up what the index needs.
fn deflate(level: Level, to_do: &Receiver<Batch>, done: &Sender<Batch>) {
    let mut deflater = Deflater::new(level);
    for mut batch in to_do {
        let Batch { data, ends, deflated, sizes, entries, .. } = &mut batch;
        deflated.clear();
        sizes.clear();
        entries.clear();
        let mut begin = 0;
        for &end in ends.iter() {
            sizes.push(deflater.block(&data[begin..end], deflated));
            begin = end;
        }
        let (mut at, mut block, mut begin) = (0, 0, 0);
        while at < data.len() {
            let record = Record::at(&data[at..]);
            let from = (block, at - begin);
            at += record.bytes().len();
            while block < ends.len() && ends[block] <= at {
                begin = ends[block];
                block += 1;
            }
            entries.push(Entry { place: place(record), from, to: (block, at - begin) });
        }
        if done.send(batch).is_err() {
            return;
        }
    }
}

fn place(record: Record<'_>) -> Option<Place> {
    let start = (i64::from(record.position()) + 1).max(1) as usize;
    Some(Place {
        sequence: record.sequence()? as usize,
        start,
        end: start + (record.span().max(1) - 1) as usize,
        aligned: !record.is(flag::UNMAPPED),
    })
}

/// The index of a file.
pub(super) struct Index<'a> {
    indexing: Indexing,
    path: &'a Path,
    written: u64,
    header: &'a Header,
}

impl Index<'_> {
    fn add(&mut self, place: Option<Place>, chunk: Chunk) -> Result<(), Error> {
        self.written += 1;
        let beyond = place.is_some_and(|p| p.sequence >= self.header.sequences());
        let added = if beyond {
            Err("its sequence is not in the header".into())
        } else {
            self.indexing.add(place, chunk)
        };
        added.map_err(|why| {
            indexed::Error::Index { path: self.path.to_owned(), record: self.written, why }.into()
        })
    }
}

/// Writes batches in their order.
struct Sink<'a, W> {
    out: W,
    index: Option<Index<'a>>,
    /// Bytes written.
    at: u64,
}

impl<'a, W: Write> Sink<'a, W> {
    fn take(
        mut self,
        results: &Receiver<Batch>,
        free: &Sender<Batch>,
    ) -> Result<(W, Option<Index<'a>>), Error> {
        let mut next = 0;
        let mut early = BTreeMap::new();
        for batch in results {
            early.insert(batch.number, batch);
            while let Some(batch) = early.remove(&next) {
                self.write(&batch)?;
                next += 1;
                // Nobody wants it after the last record.
                let _ = free.send(batch);
            }
        }
        self.out.write_all(&bgzf::END)?;
        self.out.flush()?;
        Ok((self.out, self.index))
    }

    fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        self.out.write_all(&batch.deflated)?;
        if let Some(index) = &mut self.index {
            let mut addresses = vec![self.at];
            for size in &batch.sizes {
                addresses.push(addresses[addresses.len() - 1] + *size as u64);
            }
            // Offsets in a block fit: it has at most PAYLOAD bytes.
            let position =
                |(block, offset): Spot| VirtualPosition::from(addresses[block] << 16 | offset as u64);
            for entry in &batch.entries {
                index.add(entry.place, Chunk::new(position(entry.from), position(entry.to)))?;
            }
        }
        self.at += batch.deflated.len() as u64;
        Ok(())
    }
}
