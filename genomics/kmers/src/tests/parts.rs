//! Counts in several partitions of the k-mer space.

use super::*;
use crate::{Fit, in_parts};

/// What partitions counted, added up.
struct Sum {
    counted: Counted<(u64, Counters)>,
    parts: Vec<Part>,
    /// Of the partition that had most.
    peak: u64,
}

/// Counts in at the least `wanted` partitions, with `plan` or the usual one.
fn in_sum(files: &Files, params: &CountParams, plan: Option<Plan>, wanted: u32) -> Result<Sum, Error> {
    let mut parts = Vec::new();
    let one = |part| {
        let params = CountParams { part, ..params.clone() };
        let meter = Meter::default();
        let counted = match plan {
            Some(plan) => Scattered::by_plan(plan, &files.lanes, &params, &meter, || AsRead)
                .and_then(|(scattered, _)| scattered.select(all)),
            None => count_all(&files.lanes, &params),
        };
        match counted {
            Ok(counted) => {
                parts.push(part);
                Ok(Fit::Counted(counted))
            }
            Err(Error::TooLarge { read, .. }) => Ok(Fit::TooLarge(read)),
            Err(error) => Err(error),
        }
    };
    let scratch = params.scratch;
    let (_, made) = in_parts(wanted, &[], one, |part| Error::TooLarge { part, scratch, read: 1.0 })?;
    let peak = made.iter().map(|counted| counted.stats.spill_peak).max().expect("partitions");
    let add = |mut all: Counted<_>, part: Counted<_>| {
        assert_eq!((all.stats.kmers, all.stats.bases), (part.stats.kmers, part.stats.bases));
        all.picks.extend(part.picks);
        for (all, part) in all.spectra.iter_mut().flatten().zip(part.spectra.iter().flatten()) {
            *all += part;
        }
        all.roots += part.roots;
        all.stats.distinct += part.stats.distinct;
        all.stats.packed_bytes += part.stats.packed_bytes;
        all
    };
    let mut counted = made.into_iter().reduce(add).expect("partitions");
    counted.picks.sort_unstable();
    Ok(Sum { counted, parts, peak })
}

#[track_caller]
fn assert_same(found: &Counted<(u64, Counters)>, whole: &Counted<(u64, Counters)>) {
    assert!(found.picks == whole.picks, "roots differ");
    assert_eq!((&found.spectra, found.roots), (&whole.spectra, whole.roots));
    let sizes = |stats: &CountStats| (stats.bases, stats.kmers, stats.distinct, stats.packed_bytes);
    assert_eq!(sizes(&found.stats), sizes(&whole.stats));
}

#[test]
fn partitions_together_are_the_whole() {
    let reads = awkward_reads(1500, 12);
    let files = Files::new(&reads);
    for k in [12, 24, 31, 32] {
        let params = files.params(k);
        let whole = count_all(&files.lanes, &params).expect("counted");
        for (wanted, threads) in [(1, 3), (2, 1), (3, 2), (8, 2), (13, 5)] {
            let params = CountParams { threads, memory: least_memory(threads), ..params.clone() };
            let sum = in_sum(&files, &params, None, wanted).expect("counted");
            assert_eq!(sum.parts.len(), wanted as usize);
            assert_same(&sum.counted, &whole);
        }
    }
}

#[test]
fn what_does_not_fit_is_split_and_the_file_keeps_to_its_limit() {
    let reads = awkward_reads(3000, 13);
    let files = Files::new(&reads);
    for (k, threads) in [(24, 1), (31, 3)] {
        let params = CountParams { threads, ..files.params(k) };
        let whole = count_all(&files.lanes, &params).expect("counted");
        // Few bins of few extents: nearly all would go to the file.
        let plan = Plan { bins: 4, extents: 4, ..SMALL };
        let bytes = in_sum(&files, &params, Some(plan), 1).expect("counted").peak;
        assert!(bytes > 100_000, "{bytes}");
        let mut before = 1;
        for scratch in [bytes * 2 / 3, bytes / 3, bytes / 12] {
            let params = CountParams { scratch, ..params.clone() };
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
fn as_many_partitions_are_wanted_as_are_needed() {
    // Of all minimizers, so that partitions are of a size.
    let read = |seed| (random_bases(150, seed), vec![b'I'; 150]);
    let files = Files::new(&[(0..20_000).map(read).collect(), (0..10_000).map(read).collect()]);
    let params = CountParams { memory: least_memory(2), ..files.params(31) };
    let expected = params.expected(&files.lanes);
    let whole = count_all(&files.lanes, &params).expect("counted").stats;
    let near = |a: u64, b: u64| (a as f64 / b as f64 - 1.0).abs() < 0.1;
    assert!(near(expected.kmers, whole.kmers.iter().sum()), "{expected:?} {whole:?}");
    assert!(near(expected.bytes, whole.packed_bytes), "{expected:?} {whole:?}");

    let wanted = |memory, scratch| {
        CountParams { memory, scratch, ..params.clone() }.parts_wanted::<2>(&expected).expect("not too many")
    };
    assert_eq!(wanted(params.memory, u64::MAX), 1);
    assert_eq!(wanted(64 << 20, 0), 1);
    let mut before = 1;
    for share in [2, 4, 9] {
        let scratch = whole.spill_peak / share;
        let parts = wanted(params.memory, scratch);
        assert!(parts > before && parts <= 2 * share as u32, "{parts} for {share}");
        before = parts;
        // As was expected, it need not be split.
        let params = CountParams { scratch, ..params.clone() };
        let sum = in_sum(&files, &params, None, parts).expect("counted");
        assert_eq!(sum.parts.len(), parts as usize);
        assert!(sum.peak <= scratch);
    }
}

#[test]
fn what_no_partition_holds_is_an_error_that_says_what_to_give() {
    // One minimizer.
    let poly_a: Read = (vec![b'A'; 150], vec![b'I'; 150]);
    let files = Files::new(&[vec![poly_a.clone(); 20_000], vec![poly_a; 2]]);
    let params = CountParams { memory: least_memory(2), scratch: 10_000, ..files.params(31) };
    let said = in_sum(&files, &params, None, 1).err().expect("too large").to_string();
    assert!(said.contains("of 4096 of the k-mers does not fit") && said.contains("give more"), "{said}");
}

#[test]
fn a_full_disk_is_an_error() {
    let files = Files::new(&awkward_reads(3000, 15));
    let plan = Plan { bins: 4, extents: 4, ..SMALL };
    let params = CountParams { work: PathBuf::from("/nowhere"), ..files.params(31) };
    let error = in_sum(&files, &params, Some(plan), 2).err().expect("no such folder");
    assert!(matches!(error, Error::Spill(_)), "{error}");
}
