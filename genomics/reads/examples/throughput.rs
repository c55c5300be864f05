//! How fast reads come in: `throughput THREADS FILE_1 FILE_2 [FILE_1 FILE_2 ...]`, or files of BAM or CRAM; the reference of CRAM is what `REFERENCE` names.

use std::path::PathBuf;
use std::time::Instant;

use genuma_reads::{AlignedOptions, Error, Genome, Lane, Layout, Meter, NORMAL, check_lanes, for_each_batch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let threads: usize =
        args.next().and_then(|t| t.to_str()?.parse().ok()).ok_or("usage: throughput THREADS FILES")?;
    let files: Vec<PathBuf> = args.map(PathBuf::from).collect();
    let genome = Genome::of(std::env::var_os("REFERENCE").map(PathBuf::from));
    let options = AlignedOptions { genome, ..AlignedOptions::default() };
    let lanes = Lane::from_files(NORMAL, &files, Layout::Pairs, &options)?;
    check_lanes(&lanes)?;

    let (meter, start) = (Meter::default(), Instant::now());
    let bases = for_each_batch(
        &lanes,
        threads,
        &meter,
        || 0usize,
        |bases, batch| {
            *bases +=
                batch.iter().map(|pair| pair.mates[0].seq.len() + pair.mates[1].seq.len()).sum::<usize>();
            Ok::<(), Error>(())
        },
    )?;
    let (wall, gbp) = (start.elapsed().as_secs_f64(), bases.iter().sum::<usize>() as f64 / 1e9);
    println!(
        "{} pairs, {gbp:.3} Gbp, {:.1} MB of files, {wall:.2} s wall, {:.0} Mbp/s",
        meter.pairs(),
        meter.bytes_done() as f64 / 1e6,
        gbp * 1e3 / wall
    );
    Ok(())
}
