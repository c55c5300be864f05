//! An engine that maps nothing: it takes as long as it is told and makes a record of each read, unmapped.
//!
//! It stands in for cores that a machine lacks: any number of workers can sleep at the same time.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use genuma_align::engine::{Cut, Engine, Error, Layout, Limit, Program, Region};
use genuma_align::pipeline::{Job, Output, Reads, Summary};
use genuma_align::placement::Loaded;
use genuma_align::sam::{Contigs, parse_line};
use genuma_farm::Seat;
use genuma_reads::{Cut as Ends, ReadBatch, ReadLane, ReadStream, StreamOptions};

/// How much each piece takes, and how reads are cut.
pub struct Synthetic {
    pub contigs: Contigs,
    /// Time asleep for mapping a piece, and for finishing it.
    pub takes: (Duration, Duration),
    pub cut: Cut,
}

impl Synthetic {
    /// Pieces that take so long, in blocks of so many bases.
    pub fn new(map: Duration, finish: Duration, block: u64) -> Self {
        let cut = Cut::Blocks(Limit { bases: block, reads: 0, most: block });
        Synthetic { contigs: Contigs::default(), takes: (map, finish), cut }
    }
}

fn rest(time: Duration) {
    if !time.is_zero() {
        sleep(time);
    }
}

impl Engine for Synthetic {
    /// A line of text.
    type State = Vec<u8>;
    /// Reads of a piece.
    type Draft = u64;
    /// Reads of a block.
    type Estimate = u64;

    fn program(&self) -> Program {
        Program { name: "synthetic", version: "0" }
    }

    fn contigs(&self) -> &Contigs {
        &self.contigs
    }

    fn cut(&self, _: Layout) -> Cut {
        self.cut
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn regions(&self) -> Vec<Region<'_>> {
        Vec::new()
    }

    fn state(&self) -> Vec<u8> {
        Vec::new()
    }

    fn map(&self, _: &mut Vec<u8>, reads: &ReadBatch, draft: &mut u64) -> Result<(), Error> {
        *draft = reads.len() as u64;
        rest(self.takes.0);
        Ok(())
    }

    fn estimate<'d>(&self, drafts: impl Iterator<Item = &'d u64>) -> u64 {
        drafts.sum()
    }

    fn finish(
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
            parse_line(line, &self.contigs, out).expect("a line that is right");
        }
        Ok(())
    }
}

/// Writes so many pairs, in turn in one file, of reads of so many bases; their names are their numbers.
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

/// Sees that records come in the order of the reads, and keeps none.
#[derive(Default)]
pub struct Checked {
    /// Lines so far.
    pub lines: u64,
    /// The start of a line that is not whole yet.
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

/// A stream of the pairs in a file, in batches of so many bases.
pub fn open(path: &Path, piece: u64) -> ReadStream {
    let options = StreamOptions { ahead: 4, ..StreamOptions::new(Ends::at_bases(piece)) };
    ReadStream::open(&[ReadLane::Interleaved(path.to_path_buf())], options).unwrap()
}

/// Sends the pairs of a file through the pipeline, in pieces of so many bases; all records must come, in order.
pub fn run(engine: &Loaded<Synthetic>, path: &Path, pairs: u64, piece: u64, workers: usize) -> Summary {
    let layouts = vec![Layout::Interleaved];
    let reads = Reads { stream: open(path, piece), first: ReadBatch::new(), layouts };
    let mut out = Checked::default();
    let job = Job { engine, seats: vec![Seat::default(); workers] };
    let summary = job.run(reads, Output::Sam(&mut out)).unwrap();
    assert_eq!((summary.tally.reads, out.lines), (2 * pairs, 2 * pairs));
    summary
}
