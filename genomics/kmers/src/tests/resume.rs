//! Tests of counts that resume from a checkpoint.

use super::*;
use crate::{BinnedReadsCheckpoint, CountedKmersCheckpoint, SortableKmers};

/// Paths of the spill files of bins and of sort ranges.
fn spills(files: &Files) -> [PathBuf; 2] {
    ["read.bins", "count.bins"].map(|name| files.dir.path().join(name))
}

fn read(files: &Files, params: &CountParams) -> BinnedReadsCheckpoint {
    BinnedReadsCheckpoint::scatter_lanes_to_file::<2>(
        &files.lanes,
        params,
        &ProgressCounters::default(),
        &spills(files)[0],
    )
    .expect("read")
}

fn count_on(files: &Files, read: BinnedReadsCheckpoint, params: &CountParams) -> Result<CountedKmersCheckpoint, Error> {
    let [bins, parts] = spills(files);
    CountedKmersCheckpoint::count_bins_to_file::<2>(read, &bins, params, 2, &parts)
}

fn all_of(sorted: &SortableKmers<2>) -> Result<Vec<(u64, [u32; 2])>, Error> {
    let mut found = Vec::new();
    sorted.for_each_kmer(|kmer, &counts| {
        found.push((kmer, counts));
        Ok::<_, Error>(())
    })?;
    Ok(found)
}

#[test]
fn a_count_resumes_with_other_threads_and_memory() {
    let reads = awkward_reads(3000, 8);
    let files = Files::new(&reads);
    let with = |threads, memory: Option<u64>, k| CountParams {
        threads,
        memory_bytes: memory.unwrap_or(min_memory_bytes(threads)),
        ..files.params(k)
    };
    for k in [12, 24, 31, 32] {
        let expected = sorted_by_definition(&reads, k, 2);
        let whole =
            ScatteredReads::<2>::scatter_lanes(&files.lanes, &with(2, Some(64 << 20), k), &ProgressCounters::default());
        let whole = whole.and_then(|scattered| scattered.count_and_keep_frequent_kmers(2)).expect("counted");
        // More and less than before; bins of the first run, threads and memory of the second.
        for [first, second, third] in [
            [with(1, None, k), with(3, Some(64 << 20), k), with(2, Some(2 << 20), k)],
            [with(3, None, k), with(1, None, k), with(2, Some(256 << 20), k)],
            [with(2, Some(256 << 20), k), with(2, Some(32 << 20), k), with(1, Some(4 << 20), k)],
        ] {
            let counted = count_on(&files, read(&files, &first), &second).expect("counted");
            let sorted = counted.open_sortable_kmers::<2>(&third, &spills(&files)[1]).expect("there");
            sorted.spill_to_shrink_memory_to(0).expect("nothing is in memory");
            assert!(all_of(&sorted).expect("readable") == expected, "k {k}, {first:?}, {second:?}, {third:?}");
            assert_eq!(sorted.len(), expected.len() as u64);
            assert_eq!(sorted.spectra, whole.spectra);
            let (stats, once) = (sorted.count_stats(), whole.count_stats());
            assert_eq!((stats.bases, stats.kmers, stats.distinct), (once.bases, once.kmers, once.distinct));
            assert!(stats.spilled_bytes > stats.super_kmer_bytes && stats.super_kmer_bytes > 0, "{stats:?}");
        }
    }
}

#[test]
fn far_less_memory_than_before_is_refused() {
    let files = Files::new(&awkward_reads(400, 9));
    let (much, little) = (
        CountParams { memory_bytes: 1 << 30, ..files.params(31) },
        CountParams { memory_bytes: min_memory_bytes(2), ..files.params(31) },
    );
    let read = read(&files, &much);
    let said = count_on(&files, read.clone(), &little).expect_err("too little").to_string();
    assert!(said.contains("too little to resume") && said.contains("give as much memory as before"), "{said}");
    let counted = count_on(&files, read, &much).expect("counted");
    let said = counted.open_sortable_kmers::<2>(&little, &spills(&files)[1]).expect_err("too little").to_string();
    assert!(said.contains("too little to resume"), "{said}");
}

#[test]
fn damage_between_runs_is_reported() {
    let files = Files::new(&awkward_reads(1000, 10));
    let params = files.params(31);
    let [bins, parts] = spills(&files);
    let read = read(&files, &params);
    let counted = count_on(&files, read.clone(), &params).expect("counted");
    let sort =
        || counted.clone().open_sortable_kmers::<2>(&params, &parts).and_then(|sorted| all_of(&sorted).map(|_| ()));
    sort().expect("whole");

    // A flipped bit, a truncated file, and a missing file.
    let spoil: [fn(&PathBuf); 3] = [
        |path| {
            let mut bytes = fs::read(path).expect("a file");
            bytes[5000] ^= 16;
            fs::write(path, bytes).expect("written");
        },
        |path| {
            let bytes = fs::read(path).expect("a file");
            fs::write(path, &bytes[..bytes.len() - 100]).expect("written");
        },
        |path| fs::remove_file(path).expect("removed"),
    ];
    for (spoil, word) in spoil.iter().zip(["is damaged", "is damaged", "No such file"]) {
        let again = "remove that folder, or start again without --resume";
        for path in [&bins, &parts] {
            let whole = fs::read(path).expect("a file");
            spoil(path);
            let said = if path == &bins {
                let to = parts.with_extension("other");
                CountedKmersCheckpoint::count_bins_to_file::<2>(read.clone(), &bins, &params, 2, &to).map(|_| ())
            } else {
                sort()
            };
            let said = said.expect_err("damaged").to_string();
            for part in [&path.display().to_string(), word, again] {
                assert!(said.contains(part), "'{part}' is not in: {said}");
            }
            fs::write(path, whole).expect("written");
        }
    }
    sort().expect("whole again");
}

#[test]
fn a_full_disk_is_reported_with_the_file_name() {
    let files = Files::new(&awkward_reads(200, 11));
    let full = files.dir.path().join("full.bins");
    std::os::unix::fs::symlink("/dev/full", &full).expect("a link");
    let said = BinnedReadsCheckpoint::scatter_lanes_to_file::<2>(
        &files.lanes,
        &files.params(31),
        &ProgressCounters::default(),
        &full,
    );
    let said = said.expect_err("no room").to_string();
    let expected = format!("cannot write the k-mer spill file {} (0.", full.display());
    assert!(said.starts_with(&expected) && said.contains("No space left"), "{said}");
    assert!(said.ends_with("give a work folder with more free space"), "{said}");
}

#[test]
fn an_empty_count_resumes() {
    let files =
        Files::new(&[vec![(b"ACGT".to_vec(), b"IIII".to_vec()); 2], vec![(b"N".repeat(40), b"I".repeat(40)); 2]]);
    let counted = count_on(&files, read(&files, &files.params(25)), &files.params(25)).expect("counted");
    let sorted = counted.open_sortable_kmers::<2>(&files.params(25), &spills(&files)[1]).expect("there");
    assert!(sorted.is_empty() && all_of(&sorted).expect("readable").is_empty());
    assert_eq!(sorted.count_stats().bases, [8, 80]);
    let three = count_on(&files, read(&files, &files.params(25)), &files.params(25)).expect("counted");
    let said = three.open_sortable_kmers::<3>(&files.params(25), &spills(&files)[1]).expect_err("others").to_string();
    assert!(said.contains("2 samples"), "{said}");
}
