//! Batches have the same pairs for any compression, division into lanes, and number of threads.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::common::{Folder, bgzf, bzip2, fastq, gzip, gzip_members, interleave, xz, zstd};
use genuma_reads::{
    AlignedOptions, Error, Lane, LaneFiles, MateLayout, NORMAL_SAMPLE, ProgressCounters, TUMOUR_SAMPLE, check_lanes,
    for_each_batch,
};

type Seen = BTreeSet<(u8, Vec<u8>, [Vec<u8>; 4])>;

const PAIRS: usize = 5000;

fn read(lanes: &[Lane], threads: usize) -> Seen {
    let progress = ProgressCounters::default();
    check_lanes(lanes).unwrap();
    let states = for_each_batch(lanes, threads, &progress, Vec::new, |seen, batch| {
        assert!(!batch.is_empty());
        for pair in batch.iter() {
            let [one, two] = pair.mates;
            let fields = [one.seq, one.qual, two.seq, two.qual].map(<[u8]>::to_vec);
            seen.push((batch.sample, pair.name.to_vec(), fields));
        }
        Ok::<(), Error>(())
    })
    .unwrap();
    assert_eq!(states.len(), threads);
    let total: usize = states.iter().map(Vec::len).sum();
    assert_eq!(progress.num_pairs() as usize, total, "every pair is counted");
    assert_eq!(progress.bytes_done(), progress.bytes_total(), "every byte is counted");
    let seen: Seen = states.into_iter().flatten().collect();
    assert_eq!(seen.len(), total, "no pair comes twice");
    seen
}

fn pair(sample: u8, one: PathBuf, two: PathBuf) -> Lane {
    Lane::with_whole_files(sample, LaneFiles::Pair(one, two))
}

#[test]
fn compression_and_threads_do_not_change_the_pairs() {
    let folder = Folder::new();
    let mates = [fastq(0, PAIRS, 1), fastq(0, PAIRS, 2)];
    let expected = {
        let [one, two] = [1, 2].map(|m| folder.write(&format!("plain_{m}.fq"), &mates[m - 1]));
        read(&[pair(TUMOUR_SAMPLE, one, two)], 1)
    };
    assert_eq!(expected.len(), PAIRS);
    let (_, name, fields) = expected.first().unwrap();
    assert_eq!(name, b"lane:0");
    assert_eq!(fields.each_ref().map(Vec::len), [131, 131, 110, 110]);

    type Pack = fn(&[u8]) -> Vec<u8>;
    let packs: [(&str, Pack); 8] = [
        ("gz", gzip),
        ("members", |text| gzip_members(text, 70_001)),
        ("bgzf", bgzf),
        ("bz2", bzip2),
        ("xz", xz),
        ("zst", zstd),
        ("crlf", |text| String::from_utf8_lossy(text).replace('\n', "\r\n").into_bytes()),
        ("open_end", |text| text[..text.len() - 1].to_vec()),
    ];
    for (name, pack) in packs {
        let [one, two] = [1, 2].map(|m| folder.write(&format!("{name}_{m}"), pack(&mates[m - 1])));
        for threads in [1, 2, 5] {
            assert_eq!(read(&[pair(TUMOUR_SAMPLE, one.clone(), two.clone())], threads), expected, "{name}, {threads}");
        }
        let both = folder.write(&format!("{name}_both"), pack(&interleave(&mates[0], &mates[1])));
        let lanes =
            Lane::group_files_into_lanes(TUMOUR_SAMPLE, &[both], MateLayout::Interleaved, &AlignedOptions::default())
                .unwrap();
        assert_eq!(read(&lanes, 3), expected, "{name}, interleaved");
    }
}

#[test]
fn division_into_lanes_does_not_change_the_pairs() {
    let folder = Folder::new();
    let mut whole = Vec::new();
    let mut split = Vec::new();
    for (sample, from) in [(NORMAL_SAMPLE, 0), (TUMOUR_SAMPLE, 100_000)] {
        let file =
            |name: &str, from, n, m| folder.write(&format!("{sample}_{name}_{m}.fq.gz"), gzip(&fastq(from, n, m)));
        whole.push(pair(sample, file("all", from, 3000, 1), file("all", from, 3000, 2)));
        // 1024 pairs are a whole block, 1 pair is the smallest lane; the last file is concatenated, as by `cat a.gz b.gz`.
        for (name, start, n) in [("a", 0, 1024), ("b", 1024, 1)] {
            split.push(pair(sample, file(name, from + start, n, 1), file(name, from + start, n, 2)));
        }
        let [one, two] = [1, 2].map(|m| {
            let parts = [gzip(&fastq(from + 1025, 900, m)), gzip(&fastq(from + 1925, 1075, m))];
            folder.write(&format!("{sample}_cat_{m}.fq.gz"), parts.concat())
        });
        split.push(pair(sample, one, two));
    }
    let expected = read(&whole, 2);
    assert_eq!(expected.len(), 6000);
    for threads in [1, 2, 5, 16] {
        assert_eq!(read(&split, threads), expected, "{threads} threads");
    }
}

#[test]
fn batches_have_the_target_size_and_reuse_their_memory() {
    let folder = Folder::new();
    let [one, two] = [1, 2].map(|m| folder.write(&format!("{m}.fq"), fastq(0, 20_000, m)));
    let sizes =
        for_each_batch(&[pair(NORMAL_SAMPLE, one, two)], 1, &ProgressCounters::default(), Vec::new, |sizes, batch| {
            sizes.push((batch.len(), batch.len_bytes()));
            Ok::<(), Error>(())
        })
        .unwrap();
    let (last, full) = sizes[0].split_last().unwrap();
    assert!(full.iter().all(|&(pairs, bytes)| pairs == 1024 && (256 << 10..1 << 20).contains(&bytes)));
    assert_eq!(last.0, 20_000 % 1024);
}

#[derive(Debug)]
enum Failure {
    Reads(Error),
    Work(&'static str),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Reads(e)
    }
}

#[test]
fn an_error_of_the_callback_stops_all_threads() {
    let folder = Folder::new();
    let [one, two] = [1, 2].map(|m| folder.write(&format!("{m}.fq"), fastq(0, 40_000, m)));
    for threads in [1, 2, 5] {
        let calls = AtomicUsize::new(0);
        let lanes = [pair(NORMAL_SAMPLE, one.clone(), two.clone())];
        let result = for_each_batch(
            &lanes,
            threads,
            &ProgressCounters::default(),
            || (),
            |(), _| {
                if calls.fetch_add(1, Relaxed) == 2 { Err(Failure::Work("no space left")) } else { Ok(()) }
            },
        );
        match result {
            Err(Failure::Work(what)) => assert_eq!(what, "no space left"),
            Err(Failure::Reads(e)) => panic!("{e}"),
            Ok(_) => panic!("the error is lost"),
        }
        assert!(calls.into_inner() >= 3);
    }
}

#[test]
fn a_read_error_stops_all_threads() {
    let folder = Folder::new();
    let mut damaged = gzip(&fastq(0, 30_000, 2));
    damaged.truncate(damaged.len() / 2);
    let good = [1, 2].map(|m| folder.write(&format!("good_{m}.fq"), fastq(50_000, 30_000, m)));
    let bad = [folder.write("bad_1.fq", fastq(0, 30_000, 1)), folder.write("bad_2.fq.gz", damaged)];
    for threads in [1, 2, 5] {
        let lanes: Vec<Lane> = [&good, &bad].map(|[one, two]| pair(NORMAL_SAMPLE, one.clone(), two.clone())).into();
        let error = for_each_batch(&lanes, threads, &ProgressCounters::default(), || (), |(), _| Ok::<(), Error>(()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("bad_2.fq.gz: record "), "{error}");
        assert!(error.ends_with("the gzip data end too early: the file is truncated, copy or make it again"));
    }
}

#[test]
fn a_panic_is_passed_on_to_the_caller() {
    let folder = Folder::new();
    let [one, two] = [1, 2].map(|m| folder.write(&format!("{m}.fq"), fastq(0, 40_000, m)));
    for threads in [1, 2, 5] {
        let lanes = [pair(NORMAL_SAMPLE, one.clone(), two.clone())];
        let calls = AtomicUsize::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            for_each_batch(
                &lanes,
                threads,
                &ProgressCounters::default(),
                || (),
                |(), _| {
                    assert!(calls.fetch_add(1, Relaxed) != 3, "worker broke");
                    Ok::<(), Error>(())
                },
            )
        }));
        let message = *caught.unwrap_err().downcast::<&str>().unwrap();
        assert_eq!(message, "worker broke");
    }
}

#[test]
fn no_lanes_give_initial_states() {
    let states = for_each_batch(&[], 3, &ProgressCounters::default(), || 7, |_, _| Ok::<(), Error>(())).unwrap();
    assert_eq!(states, [7, 7, 7]);
}
