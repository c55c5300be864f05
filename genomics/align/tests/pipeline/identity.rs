//! The pipeline writes the records that one thread makes block by block.

use genuma_align::engine::{Engine, ReadLayout};
use genuma_align::index_placement::LoadedIndex;

use crate::bench::{Bench, Files, assert_same, sam};
use crate::data::{answer, blocks, lines, pairs, singles};

/// The pipeline writes the expected lines at 1, 2 and 8 threads, with batches of several sizes.
fn compare<E: Engine>(engine: &LoadedIndex<E>, files: &Files, expected: &[String], what: &str) {
    for (threads, piece) in [(1, 250_000), (2, 250_000), (8, 250_000), (2, 1), (8, 5000), (3, 90_001)] {
        // Batches of one read make many tasks, so that a few reads are enough.
        if piece == 1 && expected.len() > 5000 {
            continue;
        }
        let (text, summary) = sam(engine, &[files], threads, piece).unwrap();
        let what = format!("{what}, {:?}, {threads} threads, pieces of {piece}", files.layout);
        let ours: Vec<String> = str::from_utf8(&text).unwrap().lines().map(str::to_owned).collect();
        assert_same(&ours, expected, &what);
        let primary = ours.iter().filter(|line| flag(line) & 0x900 == 0).count() as u64;
        assert_eq!((summary.counts.records, summary.counts.reads), (ours.len() as u64, primary), "{what}");
        let mapped = ours.iter().filter(|line| flag(line) & 0x904 == 0).count() as u64;
        let proper = ours.iter().filter(|line| flag(line) & 0x900 == 0 && flag(line) & 2 != 0).count() as u64;
        assert_eq!((summary.counts.mapped_reads, summary.counts.properly_paired_reads), (mapped, proper), "{what}");
        assert_eq!(summary.workers.len(), threads);
    }
}

fn flag(line: &str) -> u16 {
    line.split('\t').nth(1).unwrap().parse().unwrap()
}

/// The records that one thread makes block by block.
#[test]
fn the_records_do_not_depend_on_threads_and_batches() {
    let bench = Bench::new(21);
    let reads = pairs(&bench.genome, 4000, 31);
    for layout in [ReadLayout::Paired, ReadLayout::Interleaved] {
        let files = bench.write("pairs", &reads, layout);
        for block_bases in [200_000, 25_000_000] {
            let index = bench.engine(block_bases, &[]);
            let engine = index.nearest_copy();
            let expected = lines(engine, &answer(engine, &blocks(engine, &reads, layout, 1_000_000)));
            compare(&index, &files, &expected, &format!("blocks of {block_bases}"));
        }
    }
    let reads = singles(&bench.genome, 32);
    let files = bench.write("singles", &reads, ReadLayout::Single);
    let index = bench.engine(25_000_000, &[]);
    let engine = index.nearest_copy();
    let expected = lines(engine, &answer(engine, &blocks(engine, &reads, ReadLayout::Single, 1_000_000)));
    compare(&index, &files, &expected, "single reads");
}

/// Lanes of every kind in one run give the same lines as separate runs, in order, each with its read group.
#[test]
fn lanes_do_not_touch_one_another() {
    let bench = Bench::new(23);
    let lanes = [
        bench.write("a", &pairs(&bench.genome, 900, 34), ReadLayout::Paired),
        bench.write("b", &singles(&bench.genome, 35), ReadLayout::Single),
        bench.write("c", &pairs(&bench.genome, 700, 36), ReadLayout::Interleaved),
        bench.write("d", &pairs(&bench.genome, 300, 37), ReadLayout::Paired),
    ];
    let groups = ["one", "two", "three", "four"];
    let all: Vec<&Files> = lanes.iter().collect();
    let together = bench.engine(100_000, &groups);
    let alone: Vec<u8> = (0..lanes.len())
        .flat_map(|i| sam(&bench.engine(100_000, &[groups[i]]), &all[i..=i], 1, 30_000).unwrap().0)
        .collect();
    for threads in [1, 2, 8] {
        let (text, summary) = sam(&together, &all, threads, 30_000).unwrap();
        assert!(text == alone, "{threads} threads");
        assert!(summary.num_blocks > 4);
    }
}
