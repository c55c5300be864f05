//! Measures how fast reads are read: `throughput THREADS FILE_1 FILE_2 [FILE_1 FILE_2 ...]`, or BAM or CRAM files; the
//! environment variable `REFERENCE` names the reference of CRAM.

use std::path::PathBuf;
use std::time::Instant;

use genuma_reads::{
    AlignedOptions, CramReference, Error, Lane, MateLayout, NORMAL_SAMPLE, ProgressCounters, check_lanes,
    for_each_batch,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let threads: usize = args.next().and_then(|t| t.to_str()?.parse().ok()).ok_or("usage: throughput THREADS FILES")?;
    let files: Vec<PathBuf> = args.map(PathBuf::from).collect();
    let genome = CramReference::new(std::env::var_os("REFERENCE").map(PathBuf::from));
    let options = AlignedOptions { reference: genome, ..AlignedOptions::default() };
    let lanes = Lane::group_files_into_lanes(NORMAL_SAMPLE, &files, MateLayout::Pairs, &options)?;
    check_lanes(&lanes)?;

    let (progress, start) = (ProgressCounters::default(), Instant::now());
    let bases = for_each_batch(
        &lanes,
        threads,
        &progress,
        || 0usize,
        |bases, batch| {
            *bases += batch.iter().map(|pair| pair.mates[0].seq.len() + pair.mates[1].seq.len()).sum::<usize>();
            Ok::<(), Error>(())
        },
    )?;
    let (wall, gbp) = (start.elapsed().as_secs_f64(), bases.iter().sum::<usize>() as f64 / 1e9);
    println!(
        "{} pairs, {gbp:.3} Gbp, {:.1} MB of files, {wall:.2} s wall, {:.0} Mbp/s",
        progress.num_pairs(),
        progress.bytes_done() as f64 / 1e6,
        gbp * 1e3 / wall
    );
    Ok(())
}
