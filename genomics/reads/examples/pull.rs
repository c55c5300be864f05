//! How fast reads can be pulled: `cargo run --release --example pull INFLATERS single|pairs|interleaved FILE...`
//!
//! Prints FASTQ bytes out (names, comments, bases, qualities and the six bytes of a record around them) a second, and the
//! CPU seconds of the whole process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use genuma_reads::{Cut, Meter, ReadBatch, ReadLane, ReadStream, StreamOptions};

/// Bases of a batch.
const BASES: u64 = 1_500_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let inflaters = arguments.next().ok_or("number of inflating threads?")?.parse()?;
    let layout = arguments.next().ok_or("single, pairs or interleaved?")?;
    let files: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let lanes =
        files.chunks(if layout == "pairs" { 2 } else { 1 }).map(|files| match (layout.as_str(), files) {
            ("single", [one]) => Ok(ReadLane::Single(one.clone())),
            ("interleaved", [one]) => Ok(ReadLane::Interleaved(one.clone())),
            ("pairs", [one, two]) => Ok(ReadLane::Pair(one.clone(), two.clone())),
            _ => Err("which files belong together?"),
        });
    let lanes = lanes.collect::<Result<Vec<_>, _>>()?;

    let (meter, start) = (Arc::new(Meter::default()), Instant::now());
    let options =
        StreamOptions { inflaters, meter: meter.clone(), ..StreamOptions::new(Cut::at_bases(BASES)) };
    let mut stream = ReadStream::open(&lanes, options)?;
    let (mut batch, mut bases, mut bytes) = (ReadBatch::new(), 0, 0);
    while stream.fill(&mut batch)? {
        bases += batch.bases();
        bytes += batch.bytes() + 6 * batch.len();
    }
    let wall = start.elapsed().as_secs_f64();
    println!(
        "{} reads, {:.3} Gbp, {:.1} MB of files, {:.1} MB of FASTQ, {wall:.2} s wall, {:.2} s CPU, {:.0} MB/s",
        meter.reads(),
        bases as f64 / 1e9,
        meter.bytes_done() as f64 / 1e6,
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
    let ticks =
        |field: usize| after_name.split_whitespace().nth(field - 3).unwrap_or_default().parse::<f64>();
    Ok((ticks(14)? + ticks(15)?) / 100.0)
}
