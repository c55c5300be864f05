//! Counts k-mers of FASTQ files and prints sizes and time:
//! `count K THREADS MEMORY_MB WORK_DIR N_1.fq.gz N_2.fq.gz [T_1.fq.gz T_2.fq.gz]`

use std::path::PathBuf;
use std::time::Instant;

use genuma_kmers::{CountParams, Devices, KeepPairUnchanged, Partition, RootCounters, count_partition};
use genuma_reads::{Lane, LaneFiles, ProgressCounters};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ([k, threads, memory, work], files) = args.split_first_chunk().ok_or("usage: see the source")?;
    let params = CountParams {
        k: k.parse()?,
        min_base_quality: 0,
        threads: threads.parse()?,
        memory_bytes: memory.parse::<u64>()? << 20,
        work_dir: work.into(),
        max_scratch_bytes: u64::MAX,
        partition: Partition::WHOLE_KMER_SPACE,
        devices: Devices::default(),
    };
    let pairs = files.chunks_exact(2).zip(0..).map(|(pair, sample)| {
        let [one, two] = [&pair[0], &pair[1]].map(PathBuf::from);
        Lane::with_whole_files(sample, LaneFiles::Pair(one, two))
    });
    let lanes: Vec<Lane> = pairs.collect();

    // As the somatic caller does: frequent in the tumour, absent from the normal.
    let select = |root: &RootCounters, picks: &mut Vec<u64>| {
        if root.counts.iter().any(|&[normal, tumour]| tumour >= 4 && normal == 0) {
            picks.push(root.root);
        }
    };
    let start = Instant::now();
    let (counted, _) =
        count_partition(&lanes, &params, &ProgressCounters::default(), || KeepPairUnchanged, |_, _| select)?;
    let seconds = start.elapsed().as_secs_f64();
    let kmers: u64 = counted.stats.kmers.iter().sum();
    println!("{:#?}", counted.stats);
    println!("roots              {}", counted.roots);
    println!("picks              {}", counted.selected.len());
    println!("bytes per k-mer    {:.2}", counted.stats.super_kmer_bytes as f64 / kmers.max(1) as f64);
    for (name, spectrum) in ["normal", "tumour"].iter().zip(&counted.spectra) {
        println!("{name} spectrum    {:?}", &spectrum[1..12]);
    }
    println!("seconds            {seconds:.2}");
    Ok(())
}
