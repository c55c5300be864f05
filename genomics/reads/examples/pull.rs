//! Measures how fast reads can be streamed: `cargo run --release --example pull INFLATERS single|pairs|interleaved FILE...`
//!
//! Prints FASTQ bytes per second (names, comments, bases, qualities and the six other bytes of a record) and the CPU
//! seconds of the process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use genuma_reads::{BatchLimits, ProgressCounters, ReadBatch, ReadStream, StreamLane, StreamOptions};

/// Number of bases per batch.
const BASES: u64 = 1_500_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let inflaters = arguments.next().ok_or("number of inflating threads?")?.parse()?;
    let layout = arguments.next().ok_or("single, pairs or interleaved?")?;
    let files: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let lanes = files.chunks(if layout == "pairs" { 2 } else { 1 }).map(|files| match (layout.as_str(), files) {
        ("single", [one]) => Ok(StreamLane::Single(one.clone())),
        ("interleaved", [one]) => Ok(StreamLane::Interleaved(one.clone())),
        ("pairs", [one, two]) => Ok(StreamLane::Pair(one.clone(), two.clone())),
        _ => Err("which files belong together?"),
    });
    let lanes = lanes.collect::<Result<Vec<_>, _>>()?;

    let (progress, start) = (Arc::new(ProgressCounters::default()), Instant::now());
    let options = StreamOptions {
        inflate_threads: inflaters,
        progress: progress.clone(),
        ..StreamOptions::new(BatchLimits::with_bases_per_batch(BASES))
    };
    let mut stream = ReadStream::open(&lanes, options)?;
    let (mut batch, mut bases, mut bytes) = (ReadBatch::new(), 0, 0);
    while stream.fill_batch(&mut batch)? {
        bases += batch.num_bases();
        bytes += batch.len_bytes() + 6 * batch.len();
    }
    let wall = start.elapsed().as_secs_f64();
    println!(
        "{} reads, {:.3} Gbp, {:.1} MB of files, {:.1} MB of FASTQ, {wall:.2} s wall, {:.2} s CPU, {:.0} MB/s",
        progress.num_reads(),
        bases as f64 / 1e9,
        progress.bytes_done() as f64 / 1e6,
        bytes as f64 / 1e6,
        cpu_seconds()?,
        bytes as f64 / 1e6 / wall
    );
    Ok(())
}

/// User and system time of this process so far (`proc_pid_stat(5)`, fields 14 and 15, in hundredths of a second).
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |field: usize| after_name.split_whitespace().nth(field - 3).unwrap_or_default().parse::<f64>();
    Ok((ticks(14)? + ticks(15)?) / 100.0)
}
