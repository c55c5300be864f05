//! Prints where the reads are divided, how long the division takes, and the contents of each shard: `shards N FILE_1 FILE_2 [FILE_1 FILE_2 ...]`.

use std::path::PathBuf;
use std::time::Instant;

use genuma_reads::{
    AlignedOptions, Error, Lane, MateLayout, NORMAL_SAMPLE, ProgressCounters, check_lanes, for_each_batch,
    split_lanes_into_shards,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let n: usize = args.next().and_then(|n| n.to_str()?.parse().ok()).ok_or("usage: shards N FILES")?;
    let files: Vec<PathBuf> = args.map(PathBuf::from).collect();
    let lanes = Lane::group_files_into_lanes(NORMAL_SAMPLE, &files, MateLayout::Pairs, &AlignedOptions::default())?;
    check_lanes(&lanes)?;

    let start = Instant::now();
    let sharding = split_lanes_into_shards(&lanes, n)?;
    println!("{} shards in {:.3} s", sharding.shards.len(), start.elapsed().as_secs_f64());
    sharding.under_split_lanes.iter().for_each(|uncut| println!("{uncut}"));
    sharding.explain_fewer_shards().iter().for_each(|shortfall| println!("{shortfall}"));
    for lanes in &sharding.shards {
        check_lanes(lanes)?;
        let progress = ProgressCounters::default();
        for_each_batch(lanes, 2, &progress, || (), |(), _| Ok::<(), Error>(()))?;
        println!("{} pairs, {:.1} MB", progress.num_pairs(), progress.bytes_done() as f64 / 1e6);
    }
    Ok(())
}
