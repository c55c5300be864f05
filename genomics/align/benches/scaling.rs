//! Overhead of the farm compared with threads without queues, at more workers than this machine has CPUs: an engine
//! that sleeps replaces mapping. Also measures memory over a million batches: `make bench-align-scaling`.

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use genuma_align::engine::Engine;
use genuma_align::index_placement::LoadedIndex;
use genuma_align::sam::{split_bam_records, write_sam_line};
use genuma_reads::ReadBatch;
use synthetic::{Synthetic, open, run, write};

const WORKERS: usize = 16;
const ROUNDS: usize = 5;

/// A kind of run.
struct Case {
    name: &'static str,
    /// Pairs in a batch, and bases of a read.
    pairs: u64,
    bases: usize,
    pieces: u64,
    /// Batches in a block.
    block: u64,
    takes: (Duration, Duration),
}

const CASES: [Case; 3] = [
    // Batches of 250 kbp, and blocks of 400 of them.
    Case {
        name: "long batches and blocks",
        pairs: 833,
        bases: 150,
        pieces: 1600,
        block: 400,
        takes: (Duration::from_millis(50), Duration::from_millis(25)),
    },
    Case {
        name: "short pieces",
        pairs: 2,
        bases: 150,
        pieces: 8000,
        block: 400,
        takes: (Duration::from_millis(8), Duration::from_millis(2)),
    },
    Case {
        name: "short pieces, small blocks",
        pairs: 2,
        bases: 150,
        pieces: 8000,
        block: 64,
        takes: (Duration::from_millis(8), Duration::from_millis(2)),
    },
];

impl Case {
    fn piece(&self) -> u64 {
        2 * self.pairs * self.bases as u64
    }

    fn engine(&self) -> Synthetic {
        Synthetic::new(self.takes.0, self.takes.1, self.block * self.piece())
    }

    /// Time (s) of threads that have their batches before they start and share nothing.
    fn without_queues(&self, path: &Path) -> f64 {
        let engine = self.engine();
        let mut shares: Vec<Vec<ReadBatch>> = (0..WORKERS).map(|_| Vec::new()).collect();
        let (mut stream, mut batch) = (open(path, self.piece()), ReadBatch::new());
        let mut piece = 0;
        while stream.fill_batch(&mut batch).expect("reads") {
            shares[piece % WORKERS].push(std::mem::take(&mut batch));
            piece += 1;
        }
        let work = |share: &[ReadBatch]| {
            let (mut state, mut drafts) = (engine.new_worker_state(), Vec::new());
            let (mut made, mut text) = (Vec::new(), Vec::new());
            for piece in share {
                made.clear();
                text.clear();
                engine.align_block(&mut state, std::slice::from_ref(piece), &mut drafts, &mut made).expect("records");
                for record in split_bam_records(&made) {
                    write_sam_line(record.expect("a record"), engine.contigs(), &mut text).expect("a line");
                }
            }
        };
        let start = Instant::now();
        thread::scope(|scope| {
            for share in &shares {
                scope.spawn(|| work(share));
            }
        });
        start.elapsed().as_secs_f64()
    }

    /// Time (s) of the pipeline.
    fn farm(&self, path: &Path) -> f64 {
        let engine = LoadedIndex::Single(self.engine());
        let start = Instant::now();
        run(&engine, path, self.pairs * self.pieces, self.piece(), WORKERS);
        start.elapsed().as_secs_f64()
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Peak resident memory of the process (KiB).
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("reads.fq");
    // Measured first, because the peak is that of the process.
    for pieces in [10_000, 100_000, 1_000_000] {
        write(&path, pieces, 8).expect("reads");
        let engine = LoadedIndex::Single(Synthetic::new(Duration::ZERO, Duration::ZERO, 400 * 16));
        let start = Instant::now();
        run(&engine, &path, pieces, 16, WORKERS);
        let seconds = start.elapsed().as_secs_f64();
        println!("{pieces} pieces of one pair, {WORKERS} workers: {seconds:.2} s, peak {} KiB", peak());
    }
    for case in &CASES {
        write(&path, case.pairs * case.pieces, case.bases).expect("reads");
        let (mut plain, mut farm) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            plain.push(case.without_queues(&path));
            farm.push(case.farm(&path));
        }
        let ratio = median(farm.iter().zip(&plain).map(|(farm, plain)| farm / plain).collect());
        println!(
            "{}: {} pieces, {WORKERS} workers: threads {:.3} s, farm {:.3} s, ratio {ratio:.4} (medians of {ROUNDS})",
            case.name,
            case.pieces,
            median(plain),
            median(farm),
        );
    }
}
