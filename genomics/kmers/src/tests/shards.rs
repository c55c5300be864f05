//! Tests of counting the objects of shards, partition by partition.

use super::*;
use crate::{BinGrid, ShardKmerIndex, count_partition_from_shards, min_memory_bytes_for_grid};
use genuma_work::spill::{LocalCopyOfObjectRange, SpillFile};

/// Distributes the reads of both samples to `shards` shards, some without reads of a sample.
fn cut(reads: &[Vec<Read>; 2], shards: usize) -> Vec<Files> {
    let of = |shard: usize| {
        let own = |sample: usize| {
            let pairs = reads[sample].chunks(2).enumerate();
            let own = pairs.filter(|(i, _)| (i / 3) % shards == shard);
            own.flat_map(|(_, pair)| pair.to_vec()).collect()
        };
        Files::new(&[own(0), own(1)])
    };
    (0..shards).map(of).collect()
}

/// Scatters a shard into an object that contains other data before it.
fn scattered(files: &Files, grid: BinGrid, memory: u64) -> (ShardKmerIndex, PathBuf) {
    let params = CountParams { memory_bytes: memory, ..files.params(31) };
    let path = files.dir.path().join("object");
    let file = SpillFile::create("k-mer", &path).expect("a file");
    file.write_block(&[7; 1000], 1000).expect("room");
    let (scattered, _) =
        ShardKmerIndex::scatter_lanes_of_shard(&files.lanes, grid, &params, &ProgressCounters::default(), || {
            KeepPairUnchanged
        })
        .expect("reads");
    (ShardKmerIndex::append_bins_to_file(scattered, grid, &file).expect("room"), path)
}

#[test]
fn results_do_not_depend_on_shards_and_partitions() {
    let reads = awkward_reads(900, 5);
    let whole = Files::new(&reads);
    let CountResult { selected: expected, spectra, stats, .. } =
        count_all(&whole.lanes, &whole.params(31)).expect("counted");
    for (shards, parts, bins) in [(1, 1, 16), (3, 2, 8), (2, 7, 5), (5, 3, 700)] {
        let grid = BinGrid { num_partitions: parts, bins_per_partition: bins };
        let files = cut(&reads, shards);
        // The first shard has so little memory that bins are spilled to the work folder.
        let least = min_memory_bytes_for_grid(grid, 2);
        let objects: Vec<(ShardKmerIndex, PathBuf)> =
            (0..).zip(&files).map(|(i, files)| scattered(files, grid, if i == 0 { least } else { 64 << 20 })).collect();
        let (mut picks, mut sums) = (Vec::new(), [vec![0; NUM_SPECTRUM_ENTRIES], vec![0; NUM_SPECTRUM_ENTRIES]]);
        let mut distinct = 0;
        for number in 0..parts {
            let part = Partition::from_number_and_total(number, parts).expect("a partition");
            let params = CountParams { partition: part, ..whole.params(31) };
            let cut: Vec<(u64, Vec<u8>)> = objects
                .iter()
                .map(|(shard, path)| {
                    let stretch = shard.byte_range_of_partition(part);
                    let all = fs::read(path).expect("the object");
                    (stretch.start, all[stretch.start as usize..stretch.end as usize].to_vec())
                })
                .collect();
            // Only the byte range of the partition is needed.
            let folder = tempfile::tempdir().expect("a folder");
            let paths: Vec<PathBuf> = (0..shards).map(|i| folder.path().join(i.to_string())).collect();
            cut.iter().zip(&paths).for_each(|((_, bytes), path)| fs::write(path, bytes).expect("written"));
            let inputs: Vec<(ShardKmerIndex, LocalCopyOfObjectRange<'_>)> = objects
                .iter()
                .zip(paths.iter().zip(&cut))
                .map(|((shard, _), (path, (start, _)))| {
                    (shard.clone(), LocalCopyOfObjectRange { name: "shard", path, object_offset: *start })
                })
                .collect();
            let counted = count_partition_from_shards(&inputs, &params, &ProgressCounters::default(), |kmers| {
                assert_eq!(*kmers, stats.kmers);
                all
            })
            .expect("counted");
            assert_eq!((counted.stats.bases, counted.stats.kmers), (stats.bases, stats.kmers));
            distinct += counted.stats.distinct;
            picks.extend(counted.selected);
            for (sum, spectrum) in sums.iter_mut().zip(&counted.spectra) {
                sum.iter_mut().zip(spectrum).for_each(|(sum, n)| *sum += n);
            }
        }
        picks.sort_unstable();
        assert!(picks == expected, "{shards} shards in {parts} partitions");
        assert_eq!((sums, distinct), (spectra.clone(), stats.distinct));
    }
}

#[test]
fn mismatched_or_damaged_shards_are_reported() {
    let files = Files::new(&awkward_reads(300, 6));
    let grid = BinGrid { num_partitions: 2, bins_per_partition: 4 };
    let (other, _) = scattered(&files, BinGrid { num_partitions: 2, bins_per_partition: 5 }, 64 << 20);
    // Overwrites the object of the other shard.
    let (shard, path) = scattered(&files, grid, 64 << 20);
    let file = LocalCopyOfObjectRange { name: "scatter-1.obj", path: &path, object_offset: 0 };
    let params = |number| CountParams {
        partition: Partition::from_number_and_total(number, 2).expect("one"),
        ..files.params(31)
    };
    let told = |shards: &[(ShardKmerIndex, LocalCopyOfObjectRange<'_>)], params: &CountParams| {
        count_partition_from_shards(shards, params, &ProgressCounters::default(), |_| all)
            .expect_err("a fault")
            .to_string()
    };
    let mixed = [(shard.clone(), file), (other, file)];
    assert!(told(&mixed, &params(0)).contains("different number of partitions"));
    assert!(told(&[], &params(0)).contains("different number of partitions"));
    assert!(told(&[(shard.clone(), file)], &files.params(31)).contains("different number of partitions"));
    let mut bytes = fs::read(&path).expect("the object");
    let at = shard.byte_range_of_partition(params(1).partition).start as usize;
    bytes[at] ^= 1;
    fs::write(&path, bytes).expect("written");
    let said = told(&[(shard.clone(), file)], &params(1));
    assert!(said.contains("scatter-1.obj (k-mer part) is damaged"), "{said}");
    assert!(said.contains("run the step that made it again"), "{said}");
    assert!(count_partition_from_shards(&[(shard, file)], &params(0), &ProgressCounters::default(), |_| all).is_ok());
    let least = CountParams { memory_bytes: min_memory_bytes_for_grid(grid, 2) - 1, ..files.params(31) };
    let refused = ShardKmerIndex::scatter_lanes_of_shard(
        &files.lanes,
        BinGrid { num_partitions: 64, bins_per_partition: 256 },
        &least,
        &ProgressCounters::default(),
        || KeepPairUnchanged,
    );
    assert!(refused.expect_err("too little").to_string().contains("too little"));
}
