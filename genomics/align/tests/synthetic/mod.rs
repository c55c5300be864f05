//! An engine that maps nothing: it sleeps for a given time and makes an unmapped record of each read.
//!
//! Sleeping workers replace cores that a machine lacks: any number of workers can sleep at the same time.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use genuma_align::engine::{AlignerNameAndVersion, BlockRule, Engine, Error, IndexArray, ReadLayout};
use genuma_align::index_placement::LoadedIndex;
use genuma_align::pipeline::{AlignOutput, AlignSummary, AlignWorkerPool, ReadsToAlign};
use genuma_align::sam::{Contigs, parse_sam_line};
use genuma_farm::CpuSlot;
use genuma_reads::{BatchLimits as Ends, ReadBatch, ReadStream, StreamLane, StreamOptions};

/// Duration of mapping and finishing a batch, and the block rule.
pub struct Synthetic {
    pub contigs: Contigs,
    /// Time (s) asleep for mapping and for finishing a batch.
    pub takes: (Duration, Duration),
    pub cut: BlockRule,
}

impl Synthetic {
    /// An engine with these durations and blocks of `block` bases.
    pub fn new(map: Duration, finish: Duration, block: u64) -> Self {
        Synthetic { contigs: Contigs::default(), takes: (map, finish), cut: BlockRule::MinBases(block) }
    }
}

fn rest(time: Duration) {
    if !time.is_zero() {
        sleep(time);
    }
}

impl Engine for Synthetic {
    /// A line of text.
    type WorkerState = Vec<u8>;
    /// Number of reads in a batch.
    type MappedBatch = u64;
    /// Number of reads in a block.
    type LibraryEstimate = u64;

    fn program(&self) -> AlignerNameAndVersion {
        AlignerNameAndVersion { name: "synthetic", version: "0" }
    }

    fn contigs(&self) -> &Contigs {
        &self.contigs
    }

    fn block_rule(&self, _: ReadLayout) -> BlockRule {
        self.cut
    }

    fn memory_bytes(&self) -> u64 {
        0
    }

    fn index_arrays(&self) -> Vec<IndexArray<'_>> {
        Vec::new()
    }

    fn new_worker_state(&self) -> Vec<u8> {
        Vec::new()
    }

    fn map_batch(&self, _: &mut Vec<u8>, reads: &ReadBatch, draft: &mut u64) -> Result<(), Error> {
        *draft = reads.len() as u64;
        rest(self.takes.0);
        Ok(())
    }

    fn estimate_library<'d>(&self, drafts: impl Iterator<Item = &'d u64>) -> u64 {
        drafts.sum()
    }

    fn write_records(
        &self,
        line: &mut Vec<u8>,
        reads: &ReadBatch,
        draft: &mut u64,
        block: &u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        assert!(*draft == reads.len() as u64 && *draft <= *block, "a piece has the draft of another");
        rest(self.takes.1);
        for read in reads.iter() {
            line.clear();
            line.extend_from_slice(read.name);
            line.extend_from_slice(b"\t4\t*\t0\t0\t*\t*\t0\t0\t");
            line.extend_from_slice(read.seq);
            line.push(b'\t');
            line.extend_from_slice(read.qual);
            parse_sam_line(line, &self.contigs, out).expect("a line that is right");
        }
        Ok(())
    }
}

/// Writes interleaved pairs to a file; the read names are numbers.
pub fn write(path: &Path, pairs: u64, bases: usize) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let (sequence, qualities) = ("ACGT".repeat(bases.div_ceil(4)), "F".repeat(bases));
    for pair in 0..pairs {
        for _ in 0..2 {
            write!(file, "@{pair}\n{}\n+\n{qualities}\n", &sequence[..bases])?;
        }
    }
    file.flush()
}

/// Checks that records arrive in the order of the reads, and keeps none.
#[derive(Default)]
pub struct Checked {
    /// Lines so far.
    pub lines: u64,
    /// Beginning of a line that is not complete yet.
    begun: Vec<u8>,
}

impl io::Write for Checked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.begun.extend_from_slice(line);
            if line.ends_with(b"\n") {
                let name = self.begun.split(|&byte| byte == b'\t').next().unwrap_or_default();
                let number = str::from_utf8(name).ok().and_then(|name| name.parse().ok());
                assert_eq!(number, Some(self.lines / 2), "out of order");
                self.lines += 1;
                self.begun.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream of the pairs in a file, in batches of this many bases.
pub fn open(path: &Path, piece: u64) -> ReadStream {
    let options = StreamOptions { batches_ahead: 4, ..StreamOptions::new(Ends::with_bases_per_batch(piece)) };
    ReadStream::open(&[StreamLane::Interleaved(path.to_path_buf())], options).unwrap()
}

/// Runs the pairs of a file through the pipeline in batches of this many bases. Checks that all records arrive in
/// order.
pub fn run(engine: &LoadedIndex<Synthetic>, path: &Path, pairs: u64, piece: u64, workers: usize) -> AlignSummary {
    let layouts = vec![ReadLayout::Interleaved];
    let reads = ReadsToAlign { stream: open(path, piece), first_batch: ReadBatch::new(), layouts };
    let mut out = Checked::default();
    let job = AlignWorkerPool { engine, cpu_slots: vec![CpuSlot::default(); workers] };
    let summary = job.align_reads(reads, AlignOutput::Sam(&mut out)).unwrap();
    assert_eq!((summary.counts.reads, out.lines), (2 * pairs, 2 * pairs));
    summary
}
