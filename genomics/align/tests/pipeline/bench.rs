//! A folder with a genome, its indexes, and reads; and ways through the pipeline.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use genuma_align::engine::{Engine, Layout, Minibwa, Strobealign, minibwa, strobealign};
use genuma_align::pipeline::{Error, Job, Output, Reads, Summary};
use genuma_align::placement::Loaded;
use genuma_align::sort::Sorter;
use genuma_align::sort::markdup::Marking;
use genuma_farm::Seat;
use genuma_reads::{Cut, ReadBatch, ReadLane, ReadStream, StreamOptions};
use tempfile::TempDir;

use crate::data::{Read, genome, write_fasta, write_fastq};

pub struct Bench {
    pub folder: TempDir,
    pub genome: Vec<(String, Vec<u8>)>,
}

/// A lane's files.
pub struct Files {
    pub lane: ReadLane,
    pub layout: Layout,
}

impl Bench {
    pub fn new(seed: u64) -> Bench {
        let (folder, genome) = (tempfile::tempdir().unwrap(), genome(seed));
        let reference = folder.path().join("ref.fa");
        write_fasta(&reference, &genome);
        minibwa::build_index(&reference, &reference, 2).unwrap();
        strobealign::build_index(&reference, &reference, 150, 2).unwrap();
        Bench { folder, genome }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// minibwa with blocks of so many bases, and read groups.
    pub fn minibwa(&self, block: Option<u64>, groups: &[&str]) -> Loaded<Minibwa> {
        let read_groups = groups.iter().map(|g| (*g).to_owned()).collect();
        let options = minibwa::Options { block, read_groups, ..minibwa::Options::default() };
        let reference = self.path("ref.fa");
        Loaded::One(Minibwa::load(&reference, &reference, options, 1).unwrap())
    }

    pub fn strobealign(&self) -> Loaded<Strobealign> {
        let reference = self.path("ref.fa");
        let options = strobealign::Options::default();
        Loaded::One(Strobealign::load(&reference, &reference, 150, options, 1).unwrap())
    }

    /// Writes reads as a lane of files that begin with `name`.
    pub fn write(&self, name: &str, reads: &[Read], layout: Layout) -> Files {
        let path = |end: &str| self.path(&format!("{name}{end}.fq"));
        let lane = match layout {
            Layout::Paired => {
                let paths = [path("_1"), path("_2")];
                for (mate, path) in paths.iter().enumerate() {
                    write_fastq(path, reads.iter().skip(mate).step_by(2));
                }
                let [one, two] = paths;
                ReadLane::Pair(one, two)
            }
            _ => {
                let path = path("");
                write_fastq(&path, reads.iter());
                if layout == Layout::Single { ReadLane::Single(path) } else { ReadLane::Interleaved(path) }
            }
        };
        Files { lane, layout }
    }
}

/// Seats that are anywhere.
pub fn threads(n: usize) -> Vec<Seat> {
    vec![Seat::default(); n]
}

/// The reads of lanes, in pieces of so many bases.
pub fn open(lanes: &[&Files], piece: u64) -> Result<Reads, Error> {
    let files: Vec<ReadLane> = lanes.iter().map(|files| files.lane.clone()).collect();
    let stream = ReadStream::open(&files, StreamOptions::new(Cut::at_bases(piece)))?;
    Ok(Reads { stream, first: ReadBatch::new(), layouts: lanes.iter().map(|files| files.layout).collect() })
}

/// SAM lines of lanes, without a header.
pub fn sam<E: Engine>(
    engine: &Loaded<E>,
    lanes: &[&Files],
    threads: usize,
    piece: u64,
) -> Result<(Vec<u8>, Summary), Error> {
    let mut out = Vec::new();
    let job = Job { engine, seats: self::threads(threads) };
    let summary = job.run(open(lanes, piece)?, Output::Sam(&mut out))?;
    Ok((out, summary))
}

/// The records of lanes in a sorter.
pub fn fill<E: Engine>(
    engine: &Loaded<E>,
    lanes: &[&Files],
    sorter: &mut Sorter,
    marking: Option<Arc<Marking>>,
) -> Result<Summary, Error> {
    let job = Job { engine, seats: threads(3) };
    job.run(open(lanes, 20_000)?, Output::Sorter(sorter, marking))
}

/// Text of a file.
pub fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
