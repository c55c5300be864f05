//! Tests of counting in several partitions of the k-mer space.

use super::*;
use crate::{CountedOrTooLarge, count_all_partitions};

/// Sum of the results of all partitions.
struct Sum {
    counted: CountResult<(u64, Counters)>,
    parts: Vec<Partition>,
    /// Maximum over the partitions.
    peak: u64,
}

/// Counts in at least `wanted` partitions, with `plan` or the default one.
fn in_sum(files: &Files, params: &CountParams, plan: Option<MemoryPlan>, wanted: u32) -> Result<Sum, Error> {
    let mut parts = Vec::new();
    let one = |part| {
        let params = CountParams { partition: part, ..params.clone() };
        let meter = ProgressCounters::default();
        let counted = match plan {
            Some(plan) => {
                ScatteredReads::scatter_with_memory_plan(plan, &files.lanes, &params, &meter, || KeepPairUnchanged)
                    .and_then(|(scattered, _)| scattered.count_and_select_roots(all))
            }
            None => count_all(&files.lanes, &params),
        };
        match counted {
            Ok(counted) => {
                parts.push(part);
                Ok(CountedOrTooLarge::Counted(counted))
            }
            Err(Error::TooLarge { read_share, .. }) => Ok(CountedOrTooLarge::TooLarge(read_share)),
            Err(error) => Err(error),
        }
    };
    let scratch = params.max_scratch_bytes;
    let (_, made) = count_all_partitions(wanted, &[], one, |partition| Error::TooLarge {
        partition,
        scratch_bytes: scratch,
        read_share: 1.0,
    })?;
    let peak = made.iter().map(|counted| counted.stats.peak_spill_bytes).max().expect("partitions");
    let add = |mut all: CountResult<_>, part: CountResult<_>| {
        assert_eq!((all.stats.kmers, all.stats.bases), (part.stats.kmers, part.stats.bases));
        all.selected.extend(part.selected);
        for (all, part) in all.spectra.iter_mut().flatten().zip(part.spectra.iter().flatten()) {
            *all += part;
        }
        all.roots += part.roots;
        all.stats.distinct += part.stats.distinct;
        all.stats.super_kmer_bytes += part.stats.super_kmer_bytes;
        all
    };
    let mut counted = made.into_iter().reduce(add).expect("partitions");
    counted.selected.sort_unstable();
    Ok(Sum { counted, parts, peak })
}

#[track_caller]
fn assert_same(found: &CountResult<(u64, Counters)>, whole: &CountResult<(u64, Counters)>) {
    assert!(found.selected == whole.selected, "roots differ");
    assert_eq!((&found.spectra, found.roots), (&whole.spectra, whole.roots));
    let sizes = |stats: &CountStats| (stats.bases, stats.kmers, stats.distinct, stats.super_kmer_bytes);
    assert_eq!(sizes(&found.stats), sizes(&whole.stats));
}

#[test]
fn partitions_add_up_to_the_whole() {
    let reads = awkward_reads(1500, 12);
    let files = Files::new(&reads);
    for k in [12, 24, 31, 32] {
        let params = files.params(k);
        let whole = count_all(&files.lanes, &params).expect("counted");
        for (wanted, threads) in [(1, 3), (2, 1), (3, 2), (8, 2), (13, 5)] {
            let params = CountParams { threads, memory_bytes: min_memory_bytes(threads), ..params.clone() };
            let sum = in_sum(&files, &params, None, wanted).expect("counted");
            assert_eq!(sum.parts.len(), wanted as usize);
            assert_same(&sum.counted, &whole);
        }
    }
}

#[test]
fn too_large_partitions_are_split_and_the_file_limit_holds() {
    let reads = awkward_reads(3000, 13);
    let files = Files::new(&reads);
    for (k, threads) in [(24, 1), (31, 3)] {
        let params = CountParams { threads, ..files.params(k) };
        let whole = count_all(&files.lanes, &params).expect("counted");
        // Few bins with few extents: nearly all would be spilled.
        let plan = MemoryPlan { bins: 4, max_extents: 4, ..SMALL };
        let bytes = in_sum(&files, &params, Some(plan), 1).expect("counted").peak;
        assert!(bytes > 100_000, "{bytes}");
        let mut before = 1;
        for scratch in [bytes * 2 / 3, bytes / 3, bytes / 12] {
            let params = CountParams { max_scratch_bytes: scratch, ..params.clone() };
            let sum = in_sum(&files, &params, Some(plan), 1).expect("counted");
            assert!(sum.peak <= scratch, "{} of {scratch}", sum.peak);
            assert!(sum.parts.len() > before, "{:?} after {before}", sum.parts);
            before = sum.parts.len();
            assert_same(&sum.counted, &whole);
        }
        assert_eq!(std::fs::read_dir(files.dir.path()).expect("the folder").count(), 2, "the reads");
    }
}

#[test]
fn the_number_of_partitions_needed_is_correct() {
    // All minimizers occur, so that partitions have equal sizes.
    let read = |seed| (random_bases(150, seed), vec![b'I'; 150]);
    let files = Files::new(&[(0..20_000).map(read).collect(), (0..10_000).map(read).collect()]);
    let params = CountParams { memory_bytes: min_memory_bytes(2), ..files.params(31) };
    let expected = params.estimate_kmers_of_lanes(&files.lanes).unwrap();
    let whole = count_all(&files.lanes, &params).expect("counted").stats;
    let near = |a: u64, b: u64| (a as f64 / b as f64 - 1.0).abs() < 0.1;
    assert!(near(expected.kmers, whole.kmers.iter().sum()), "{expected:?} {whole:?}");
    assert!(near(expected.super_kmer_bytes, whole.super_kmer_bytes), "{expected:?} {whole:?}");

    let wanted = |memory, scratch| {
        CountParams { memory_bytes: memory, max_scratch_bytes: scratch, ..params.clone() }
            .partitions_needed::<2>(&expected)
            .expect("not too many")
    };
    assert_eq!(wanted(params.memory_bytes, u64::MAX), 1);
    assert_eq!(wanted(64 << 20, 0), 1);
    let mut before = 1;
    for share in [2, 4, 9] {
        let scratch = whole.peak_spill_bytes / share;
        let parts = wanted(params.memory_bytes, scratch);
        assert!(parts > before && parts <= 2 * share as u32, "{parts} for {share}");
        before = parts;
        // As expected, no partition was split.
        let params = CountParams { max_scratch_bytes: scratch, ..params.clone() };
        let sum = in_sum(&files, &params, None, parts).expect("counted");
        assert_eq!(sum.parts.len(), parts as usize);
        assert!(sum.peak <= scratch);
    }
}

#[test]
fn input_too_large_for_any_partition_is_an_error() {
    // A single minimizer.
    let poly_a: Read = (vec![b'A'; 150], vec![b'I'; 150]);
    let files = Files::new(&[vec![poly_a.clone(); 20_000], vec![poly_a; 2]]);
    let params = CountParams { memory_bytes: min_memory_bytes(2), max_scratch_bytes: 10_000, ..files.params(31) };
    let said = in_sum(&files, &params, None, 1).err().expect("too large").to_string();
    assert!(said.contains("of 4096 of the k-mers does not fit") && said.contains("raise --memory"), "{said}");
}

#[test]
fn a_full_disk_is_an_error() {
    let files = Files::new(&awkward_reads(3000, 15));
    let plan = MemoryPlan { bins: 4, max_extents: 4, ..SMALL };
    let params = CountParams { work_dir: PathBuf::from("/nowhere"), ..files.params(31) };
    let error = in_sum(&files, &params, Some(plan), 2).err().expect("no such folder");
    assert!(matches!(error, Error::Spill(_)), "{error}");
}
