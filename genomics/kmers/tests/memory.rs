//! The given memory is a limit of the allocated and mapped memory, even if the input is far larger and skewed.

use std::fmt::Write;
use std::path::Path;
use std::sync::OnceLock;

use genuma_kmers::{
    BinnedReadsCheckpoint, CountParams, CountedKmersCheckpoint, Devices, KeepPairUnchanged, Partition, RootCounters,
    count_partition, min_memory_bytes,
};
use genuma_reads::{Error, Lane, LaneFiles, NORMAL_SAMPLE, ProgressCounters, TUMOUR_SAMPLE, for_each_batch};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const THREADS: usize = 2;

/// Writes a lane of `pairs` pairs; `seq(i)` is the sequence of each mate.
fn lane(dir: &Path, sample: u8, pairs: usize, mut seq: impl FnMut() -> String) -> Lane {
    let mut text = String::new();
    for i in 0..2 * pairs {
        let seq = seq();
        writeln!(text, "@r{}\n{seq}\n+\n{}", i / 2, "I".repeat(seq.len())).expect("a string grows");
    }
    let path = dir.join(format!("{sample}.fq"));
    std::fs::write(&path, text).expect("written");
    Lane::with_whole_files(sample, LaneFiles::Interleaved(path))
}

/// Maximum number of bytes allocated at a time during `work`, beyond those allocated before.
fn peak(work: impl FnOnce()) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    work();
    ALLOCATOR.peak_usage() - before
}

/// Bytes of the slabs of the bins, which the allocator does not see. They are recognised by the huge page flag
/// (`hg`), which no other mapping here has; slabs smaller than a huge page lack it.
fn slabs() -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let (mut size, mut all) = (0, 0);
    for line in maps.lines() {
        if let Some(kib) = line.strip_prefix("Size:") {
            size = 1024 * kib.trim().trim_end_matches(" kB").parse::<usize>().expect("a number");
        }
        let flags = line.strip_prefix("VmFlags:").unwrap_or_default();
        if flags.split_whitespace().any(|flag| flag == "hg") {
            all += size;
        }
    }
    all
}

/// Whether programs may request huge pages on this system.
fn huge_pages() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    enabled.is_ok_and(|text| !text.contains("[never]"))
}

#[test]
fn the_counter_allocates_no_more_than_it_is_given() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut state = 7u64;
    let mut random = move || {
        let base = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ['A', 'C', 'G', 'T'][(state >> 62) as usize]
        };
        (0..150).map(base).collect::<String>()
    };
    let repeated = random();
    let lanes =
        [lane(dir.path(), NORMAL_SAMPLE, 10_000, random), lane(dir.path(), TUMOUR_SAMPLE, 10_000, || repeated.clone())];
    // How far one thread is ahead of the other varies.
    let readings = [(); 5].map(|()| {
        peak(|| {
            let read = |(): &mut (), _: &_| Ok::<_, Error>(());
            for_each_batch(&lanes, THREADS, &ProgressCounters::default(), || (), read).expect("read");
        })
    });
    let reading = readings.into_iter().max().expect("some");
    for memory in [min_memory_bytes(THREADS), 4 << 20, 16 << 20, 256 << 20] {
        let params = CountParams {
            k: 31,
            min_base_quality: 0,
            threads: THREADS,
            memory_bytes: memory,
            work_dir: dir.path().into(),
            max_scratch_bytes: u64::MAX,
            partition: Partition::WHOLE_KMER_SPACE,
            devices: Devices::default(),
        };
        let mapped = OnceLock::new();
        let none = |_: &RootCounters, _: &mut Vec<u64>| {
            mapped.get_or_init(slabs);
        };
        let counting = peak(|| {
            let counted =
                count_partition(&lanes, &params, &ProgressCounters::default(), || KeepPairUnchanged, |_, _| none);
            let stats = counted.expect("counted").0.stats;
            assert_eq!(stats.kmers, [20_000 * 120; 2]);
        });
        // Batches of reads belong to the reader; the number of bytes that two threads hold varies a little.
        let most = memory as usize + reading + reading / 4;
        let mapped = mapped.into_inner().expect("there are roots");
        let seen = mapped > memory as usize / 4;
        assert!(seen || memory < 16 << 20 || !huge_pages(), "{mapped} bytes of bins");
        assert!(counting + mapped <= most, "{counting} + {mapped} bytes for {memory}, {reading} for reading");

        // In separate steps, bins and ranges are in files, and less memory is mapped.
        let [bins, parts] = ["read.bins", "count.bins"].map(|name| dir.path().join(name));
        let by_steps = peak(|| {
            let read =
                BinnedReadsCheckpoint::scatter_lanes_to_file::<2>(&lanes, &params, &ProgressCounters::default(), &bins)
                    .expect("read");
            let counted =
                CountedKmersCheckpoint::count_bins_to_file::<2>(read, &bins, &params, 1, &parts).expect("counted");
            let sorted = counted.open_sortable_kmers::<2>(&params, &parts).expect("there");
            let mut kmers = 0;
            let each = |_, counts: &[u32; 2]| {
                kmers += u64::from(counts[0] + counts[1]);
                Ok::<_, genuma_kmers::Error>(())
            };
            sorted.for_each_kmer(each).expect("sorted");
            assert_eq!(kmers, 2 * 20_000 * 120);
        });
        assert!(by_steps <= most, "{by_steps} bytes for {memory}, of which {reading} for reading");
    }
}
