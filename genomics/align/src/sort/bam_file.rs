//! Writes sorted records to a BAM file with its index. Several threads compress; the bytes do not depend on their
//! number.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use crossbeam_channel::{Receiver, Sender, unbounded};
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use noodles_bgzf::VirtualPosition;
use noodles_csi::binning_index::index::reference_sequence::bin::Chunk;

use super::Error;
use super::header::SortedFileHeader;
use super::record::{Record, flag};
use crate::bgzf::{self, BlockCompressor, CompressionLevel, MAX_BLOCK_DATA_BYTES};
use crate::indexed_file::{self, IndexBuilder, IndexedRecordFormat, RecordReferenceRange};

/// Number of BGZF blocks that a thread compresses at a time.
const BLOCKS_PER_BATCH: usize = 4;

/// A BAM file that is being written, with its index (`.bai`, or `.csi` if a sequence is too long for BAI). Both files
/// are added to a file set by [`super::Sorter::write_bam`], and get their final names when the file set is published.
pub struct BamFileWriter {
    path: PathBuf,
    data: AtomicFile,
    header: SortedFileHeader,
    level: CompressionLevel,
}

impl BamFileWriter {
    /// Creates the file at `path` with this header and compression level.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, header: SortedFileHeader, level: CompressionLevel) -> Result<BamFileWriter, Error> {
        let data = AtomicFile::create(path).map_err(indexed_file::Error::Publish)?;
        Ok(BamFileWriter { path: path.to_owned(), data, header, level })
    }

    /// Writes all records and adds the file and its index to `set`. `next` appends the next record to a buffer and
    /// returns whether there was one.
    pub(super) fn write_records_and_index(
        self,
        threads: usize,
        next: impl FnMut(&mut Vec<u8>) -> Result<bool, Error>,
        set: &mut AtomicFileSet,
    ) -> Result<(), Error> {
        let BamFileWriter { path, data, header, level } = self;
        let index = BamIndexBuilder {
            index_builder: IndexBuilder::bai_or_csi_for_longest_sequence(header.max_sequence_bp(), None),
            path: &path,
            records_written: 0,
            header: &header,
        };
        let (data, index) = write_bam_with_optional_index(&header, level, threads, data, Some(index), next)?;
        let records = IndexedRecordFormat::Bam { sequences: header.num_sequences() };
        if let Some(index) = index {
            indexed_file::write_index_and_add_to_file_set(&path, data, index.index_builder, &records, set)?;
        }
        Ok(())
    }
}

/// Writes the header and all records to `out`, and adds the records to `index`, if it is given. Returns both. `next`
/// appends the next record and returns whether there was one.
pub(super) fn write_bam_with_optional_index<'a, W: Write + Send>(
    header: &SortedFileHeader,
    level: CompressionLevel,
    threads: usize,
    mut out: W,
    index: Option<BamIndexBuilder<'a>>,
    next: impl FnMut(&mut Vec<u8>) -> Result<bool, Error>,
) -> Result<(W, Option<BamIndexBuilder<'a>>), Error> {
    let mut deflater = BlockCompressor::with_compression_level(level);
    let mut head = Vec::new();
    for piece in header.encode_bam_header().chunks(MAX_BLOCK_DATA_BYTES) {
        deflater.compress_block(piece, &mut head);
    }
    out.write_all(&head)?;

    let threads = threads.max(1);
    let (jobs, to_do) = unbounded();
    let (done, results) = unbounded();
    let (free, empty) = unbounded();
    // The number of batches limits the memory.
    for _ in 0..2 * threads + 2 {
        // The receiver exists in this function, so that sending cannot fail.
        let _ = free.send(BlockBatch::default());
    }
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (to_do, done) = (to_do.clone(), done.clone());
            scope.spawn(move || deflate_batches(level, &to_do, &done));
        }
        drop((to_do, done));
        let at = head.len() as u64;
        let writing = scope.spawn(move || OrderedWriter { out, index, offset: at }.write_in_order(&results, &free));
        let merged = fill_batches(&empty, &jobs, next);
        drop(jobs);
        let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        merged.and(written)
    })
}

/// Whole records in BGZF blocks. No block has bytes of two batches. Batches are passed between the threads and reused.
#[derive(Debug, Default)]
struct BlockBatch {
    number: usize,
    data: Vec<u8>,
    /// End of each block in `data`, before compression.
    block_ends: Vec<usize>,
    deflated: Vec<u8>,
    /// Compressed size of each block (bytes).
    deflated_sizes: Vec<usize>,
    entries: Vec<IndexEntry>,
}

/// A position in a batch: number of the block, and offset in its uncompressed data.
type BlockOffset = (usize, usize);

/// Index entry of a record: its position on the reference, and where its bytes begin and end in the batch.
#[derive(Debug)]
struct IndexEntry {
    position: Option<RecordReferenceRange>,
    start: BlockOffset,
    end: BlockOffset,
}

/// Collects records into BGZF blocks as htslib does: a record that does not fit begins the next block, and only a
/// record that is longer than a block is split.
fn fill_batches(
    empty: &Receiver<BlockBatch>,
    jobs: &Sender<BlockBatch>,
    mut next: impl FnMut(&mut Vec<u8>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut number = 0;
    // The record that did not fit into the last batch.
    let mut left = Vec::new();
    let mut more = true;
    while more {
        // If the other threads have ended, they have failed and report the error.
        let Ok(mut batch) = empty.recv() else { return Ok(()) };
        let BlockBatch { data, block_ends: ends, .. } = &mut batch;
        data.clear();
        ends.clear();
        data.append(&mut left);
        let mut begin = split_full_blocks(data, 0, ends);
        loop {
            let before = data.len();
            if !next(data)? {
                more = false;
                break;
            }
            if data.len() - begin > MAX_BLOCK_DATA_BYTES && before > begin {
                ends.push(before);
                begin = before;
                if ends.len() >= BLOCKS_PER_BATCH {
                    left.extend_from_slice(&data[before..]);
                    data.truncate(before);
                    break;
                }
            }
            begin = split_full_blocks(data, begin, ends);
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

/// Splits full blocks off a long record that begins a block at `begin`. Returns the start of the last block, which is
/// not full.
fn split_full_blocks(data: &[u8], mut begin: usize, ends: &mut Vec<usize>) -> usize {
    while data.len() - begin > MAX_BLOCK_DATA_BYTES {
        begin += MAX_BLOCK_DATA_BYTES;
        ends.push(begin);
    }
    begin
}

/// Compresses batches and completes their index entries.
fn deflate_batches(level: CompressionLevel, to_do: &Receiver<BlockBatch>, done: &Sender<BlockBatch>) {
    let mut deflater = BlockCompressor::with_compression_level(level);
    for mut batch in to_do {
        let BlockBatch { data, block_ends: ends, deflated, deflated_sizes: sizes, entries, .. } = &mut batch;
        deflated.clear();
        sizes.clear();
        entries.clear();
        let mut begin = 0;
        for &end in ends.iter() {
            sizes.push(deflater.compress_block(&data[begin..end], deflated));
            begin = end;
        }
        let (mut at, mut block, mut begin) = (0, 0, 0);
        while at < data.len() {
            let record = Record::first_of_checked_bytes(&data[at..]);
            let from = (block, at - begin);
            at += record.encoded_bytes().len();
            while block < ends.len() && ends[block] <= at {
                begin = ends[block];
                block += 1;
            }
            entries.push(IndexEntry { position: record_position(record), start: from, end: (block, at - begin) });
        }
        if done.send(batch).is_err() {
            return;
        }
    }
}

fn record_position(record: Record<'_>) -> Option<RecordReferenceRange> {
    let start = (i64::from(record.position()) + 1).max(1) as usize;
    Some(RecordReferenceRange {
        sequence: record.sequence_index()? as usize,
        start,
        end: start + (record.ref_span_bp().max(1) - 1) as usize,
        is_aligned: !record.has_any_flag(flag::UNMAPPED),
    })
}

/// Builds the index of a BAM file while its records are written.
pub(super) struct BamIndexBuilder<'a> {
    index_builder: IndexBuilder,
    path: &'a Path,
    records_written: u64,
    header: &'a SortedFileHeader,
}

impl BamIndexBuilder<'_> {
    fn add(&mut self, position: Option<RecordReferenceRange>, chunk: Chunk) -> Result<(), Error> {
        self.records_written += 1;
        let beyond = position.is_some_and(|p| p.sequence >= self.header.num_sequences());
        let added = if beyond {
            Err("its sequence is not in the header".into())
        } else {
            self.index_builder.add_index_entry(position, chunk)
        };
        added.map_err(|reason| {
            indexed_file::Error::IndexRecord { path: self.path.to_owned(), record: self.records_written, reason }.into()
        })
    }
}

/// Writes batches in the order of their numbers.
struct OrderedWriter<'a, W> {
    out: W,
    index: Option<BamIndexBuilder<'a>>,
    /// Number of bytes written so far: the file offset.
    offset: u64,
}

impl<'a, W: Write> OrderedWriter<'a, W> {
    fn write_in_order(
        mut self,
        results: &Receiver<BlockBatch>,
        free: &Sender<BlockBatch>,
    ) -> Result<(W, Option<BamIndexBuilder<'a>>), Error> {
        let mut next = 0;
        let mut early = BTreeMap::new();
        for batch in results {
            early.insert(batch.number, batch);
            while let Some(batch) = early.remove(&next) {
                self.write_batch(&batch)?;
                next += 1;
                // Nobody receives the batch after the last record.
                let _ = free.send(batch);
            }
        }
        self.out.write_all(&bgzf::EOF_BLOCK)?;
        self.out.flush()?;
        Ok((self.out, self.index))
    }

    fn write_batch(&mut self, batch: &BlockBatch) -> Result<(), Error> {
        self.out.write_all(&batch.deflated)?;
        if let Some(index) = &mut self.index {
            let mut addresses = vec![self.offset];
            for size in &batch.deflated_sizes {
                addresses.push(addresses[addresses.len() - 1] + *size as u64);
            }
            // An offset within a block fits: a block has at most MAX_BLOCK_DATA_BYTES bytes.
            let position = |(block, offset): BlockOffset| VirtualPosition::from(addresses[block] << 16 | offset as u64);
            for entry in &batch.entries {
                index.add(entry.position, Chunk::new(position(entry.start), position(entry.end)))?;
            }
        }
        self.offset += batch.deflated.len() as u64;
        Ok(())
    }
}
