//! A test folder with a genome, its indexes and reads; and helpers that run the pipeline.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use genuma_align::engine::{Engine, GenumaEngine, ReadLayout, genuma};
use genuma_align::index_placement::LoadedIndex;
use genuma_align::pipeline::{AlignOutput, AlignSummary, AlignWorkerPool, Error, ReadsToAlign};
use genuma_align::sort::Sorter;
use genuma_align::sort::markdup::MarkdupOptions;
use genuma_farm::CpuSlot;
use genuma_reads::{BatchLimits, ReadBatch, ReadStream, StreamLane, StreamOptions};
use tempfile::TempDir;

use crate::data::{Read, genome, write_fasta, write_fastq};

pub struct Bench {
    pub folder: TempDir,
    pub genome: Vec<(String, Vec<u8>)>,
}

/// The files of a lane.
pub struct Files {
    pub lane: StreamLane,
    pub layout: ReadLayout,
}

impl Bench {
    pub fn new(seed: u64) -> Bench {
        let (folder, genome) = (tempfile::tempdir().unwrap(), genome(seed));
        let reference = folder.path().join("ref.fa");
        write_fasta(&reference, &genome);
        genuma::build_index(&reference, &reference, 2).unwrap();
        Bench { folder, genome }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The engine with blocks of `block_bases` bases, and read groups.
    pub fn engine(&self, block_bases: u64, groups: &[&str]) -> LoadedIndex<GenumaEngine> {
        let read_groups = groups.iter().map(|g| (*g).to_owned()).collect();
        let options =
            genuma::GenumaEngineOptions { block_bases, read_groups, ..genuma::GenumaEngineOptions::default() };
        let reference = self.path("ref.fa");
        LoadedIndex::Single(GenumaEngine::load_index(&reference, &reference, options, 1).unwrap())
    }

    /// Writes reads as a lane of files that begin with `name`.
    pub fn write(&self, name: &str, reads: &[Read], layout: ReadLayout) -> Files {
        let path = |end: &str| self.path(&format!("{name}{end}.fq"));
        let lane = match layout {
            ReadLayout::Paired => {
                let paths = [path("_1"), path("_2")];
                for (mate, path) in paths.iter().enumerate() {
                    write_fastq(path, reads.iter().skip(mate).step_by(2));
                }
                let [one, two] = paths;
                StreamLane::Pair(one, two)
            }
            _ => {
                let path = path("");
                write_fastq(&path, reads.iter());
                if layout == ReadLayout::Single { StreamLane::Single(path) } else { StreamLane::Interleaved(path) }
            }
        };
        Files { lane, layout }
    }
}

/// CPU slots without affinity.
pub fn threads(n: usize) -> Vec<CpuSlot> {
    vec![CpuSlot::default(); n]
}

/// The reads of lanes, in batches of `piece` bases.
pub fn open(lanes: &[&Files], piece: u64) -> Result<ReadsToAlign, Error> {
    let files: Vec<StreamLane> = lanes.iter().map(|files| files.lane.clone()).collect();
    let stream = ReadStream::open(&files, StreamOptions::new(BatchLimits::with_bases_per_batch(piece)))?;
    Ok(ReadsToAlign {
        stream,
        first_batch: ReadBatch::new(),
        layouts: lanes.iter().map(|files| files.layout).collect(),
    })
}

/// The SAM lines of lanes, without a header.
pub fn sam<E: Engine>(
    engine: &LoadedIndex<E>,
    lanes: &[&Files],
    threads: usize,
    piece: u64,
) -> Result<(Vec<u8>, AlignSummary), Error> {
    let mut out = Vec::new();
    let job = AlignWorkerPool { engine, cpu_slots: self::threads(threads) };
    let summary = job.align_reads(open(lanes, piece)?, AlignOutput::Sam(&mut out))?;
    Ok((out, summary))
}

/// Aligns lanes into a sorter.
pub fn fill<E: Engine>(
    engine: &LoadedIndex<E>,
    lanes: &[&Files],
    sorter: &mut Sorter,
    marking: Option<Arc<MarkdupOptions>>,
) -> Result<AlignSummary, Error> {
    let job = AlignWorkerPool { engine, cpu_slots: threads(3) };
    job.align_reads(open(lanes, 20_000)?, AlignOutput::Sorted(sorter, marking))
}

/// Text of a file.
pub fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// Panics at the first line that differs.
pub fn assert_same(ours: &[String], theirs: &[String], what: &str) {
    for (i, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(ours, theirs, "{what}: line {}", i + 1);
    }
    assert_eq!(ours.len(), theirs.len(), "{what}: number of lines");
}
