//! Where reads are cut, how long it takes to say, and what each shard holds: `shards N FILE_1 FILE_2 [FILE_1 FILE_2 ...]`.

use std::path::PathBuf;
use std::time::Instant;

use genuma_reads::{AlignedOptions, Error, Lane, Layout, Meter, NORMAL, check_lanes, for_each_batch, shards};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let n: usize = args.next().and_then(|n| n.to_str()?.parse().ok()).ok_or("usage: shards N FILES")?;
    let files: Vec<PathBuf> = args.map(PathBuf::from).collect();
    let lanes = Lane::from_files(NORMAL, &files, Layout::Pairs, &AlignedOptions::default())?;
    check_lanes(&lanes)?;

    let start = Instant::now();
    let sharding = shards(&lanes, n)?;
    println!("{} shards in {:.3} s", sharding.shards.len(), start.elapsed().as_secs_f64());
    sharding.uncut.iter().for_each(|uncut| println!("{uncut}"));
    sharding.shortfall().iter().for_each(|shortfall| println!("{shortfall}"));
    for lanes in &sharding.shards {
        check_lanes(lanes)?;
        let meter = Meter::default();
        for_each_batch(lanes, 2, &meter, || (), |(), _| Ok::<(), Error>(()))?;
        println!("{} pairs, {:.1} MB", meter.pairs(), meter.bytes_done() as f64 / 1e6);
    }
    Ok(())
}
