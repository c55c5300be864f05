//! Counts from the objects of shards, partition by partition.

use super::*;
use crate::{Grid, Shard, count_shards, least_for_grid};
use genuma_work::spill::{ObjectFile, Spill};

/// The reads of both samples in so many shards, some of them without any of a sample.
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

/// Scatters a shard, with something else before its k-mers in the object.
fn scattered(files: &Files, grid: Grid, memory: u64) -> (Shard, PathBuf) {
    let params = CountParams { memory, ..files.params(31) };
    let path = files.dir.path().join("object");
    let file = Spill::create("k-mer", &path).expect("a file");
    file.write(&[7; 1000], 1000).expect("room");
    let (scattered, _) =
        Shard::scatter(&files.lanes, grid, &params, &Meter::default(), || AsRead).expect("reads");
    (Shard::lay_down(scattered, grid, &file).expect("room"), path)
}

#[test]
fn shards_and_partitions_do_not_show() {
    let reads = awkward_reads(900, 5);
    let whole = Files::new(&reads);
    let Counted { picks: expected, spectra, stats, .. } =
        count_all(&whole.lanes, &whole.params(31)).expect("counted");
    for (shards, parts, bins) in [(1, 1, 16), (3, 2, 8), (2, 7, 5), (5, 3, 700)] {
        let grid = Grid { parts, bins };
        let files = cut(&reads, shards);
        // The first has so little memory that bins wait in the work folder.
        let least = least_for_grid(grid, 2);
        let objects: Vec<(Shard, PathBuf)> = (0..)
            .zip(&files)
            .map(|(i, files)| scattered(files, grid, if i == 0 { least } else { 64 << 20 }))
            .collect();
        let (mut picks, mut sums) = (Vec::new(), [vec![0; SPECTRUM_SLOTS], vec![0; SPECTRUM_SLOTS]]);
        let mut distinct = 0;
        for number in 0..parts {
            let part = Part::new(number, parts).expect("a partition");
            let params = CountParams { part, ..whole.params(31) };
            let cut: Vec<(u64, Vec<u8>)> = objects
                .iter()
                .map(|(shard, path)| {
                    let stretch = shard.stretch(part);
                    let all = fs::read(path).expect("the object");
                    (stretch.start, all[stretch.start as usize..stretch.end as usize].to_vec())
                })
                .collect();
            // No more than its stretch of each object is needed.
            let folder = tempfile::tempdir().expect("a folder");
            let paths: Vec<PathBuf> = (0..shards).map(|i| folder.path().join(i.to_string())).collect();
            cut.iter().zip(&paths).for_each(|((_, bytes), path)| fs::write(path, bytes).expect("written"));
            let inputs: Vec<(Shard, ObjectFile<'_>)> = objects
                .iter()
                .zip(paths.iter().zip(&cut))
                .map(|((shard, _), (path, (start, _)))| {
                    (shard.clone(), ObjectFile { name: "shard", path, start: *start })
                })
                .collect();
            let counted = count_shards(&inputs, &params, &Meter::default(), |kmers| {
                assert_eq!(*kmers, stats.kmers);
                all
            })
            .expect("counted");
            assert_eq!((counted.stats.bases, counted.stats.kmers), (stats.bases, stats.kmers));
            distinct += counted.stats.distinct;
            picks.extend(counted.picks);
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
fn what_does_not_fit_together_or_is_damaged_is_told() {
    let files = Files::new(&awkward_reads(300, 6));
    let grid = Grid { parts: 2, bins: 4 };
    let (other, _) = scattered(&files, Grid { parts: 2, bins: 5 }, 64 << 20);
    // Over the other's object.
    let (shard, path) = scattered(&files, grid, 64 << 20);
    let file = ObjectFile { name: "scatter-1.obj", path: &path, start: 0 };
    let params = |number| CountParams { part: Part::new(number, 2).expect("one"), ..files.params(31) };
    let told = |shards: &[(Shard, ObjectFile<'_>)], params: &CountParams| {
        count_shards(shards, params, &Meter::default(), |_| all).expect_err("a fault").to_string()
    };
    let mixed = [(shard.clone(), file), (other, file)];
    assert!(told(&mixed, &params(0)).contains("other partitions"));
    assert!(told(&[], &params(0)).contains("other partitions"));
    assert!(told(&[(shard.clone(), file)], &files.params(31)).contains("other partitions"));
    let mut bytes = fs::read(&path).expect("the object");
    let at = shard.stretch(params(1).part).start as usize;
    bytes[at] ^= 1;
    fs::write(&path, bytes).expect("written");
    let said = told(&[(shard.clone(), file)], &params(1));
    assert!(said.contains("scatter-1.obj (k-mer part) is damaged"), "{said}");
    assert!(said.contains("do the step that made it again"), "{said}");
    assert!(count_shards(&[(shard, file)], &params(0), &Meter::default(), |_| all).is_ok());
    let least = CountParams { memory: least_for_grid(grid, 2) - 1, ..files.params(31) };
    let refused =
        Shard::scatter(&files.lanes, Grid { parts: 64, bins: 256 }, &least, &Meter::default(), || AsRead);
    assert!(refused.expect_err("too little").to_string().contains("too little"));
}
