//! The pipeline writes the same lines as the aligners' command lines.

use std::path::Path;

use genuma_align::engine::{Engine, ReadLayout};
use genuma_align::placement::LoadedIndex;

use crate::bench::{Bench, Files, sam};
use crate::data::{assert_same, pairs, singles, split_sam};
use crate::peers;

/// The lines of a lane that the command line writes.
fn theirs(binary: &Path, arguments: &[&str], bench: &Bench, files: &Files) -> Vec<String> {
    let paths: Vec<_> = files.lane.paths().map(|path| path.to_str().unwrap()).collect();
    split_sam(&peers::run(binary, &[arguments, &paths].concat(), bench.folder.path())).1
}

/// The pipeline writes the same lines at 1, 2 and 8 threads, with batches of several sizes.
fn compare<E: Engine>(engine: &LoadedIndex<E>, files: &Files, theirs: &[String], what: &str) {
    for (threads, piece) in [(1, 250_000), (2, 250_000), (8, 250_000), (2, 1), (8, 5000), (3, 90_001)] {
        // Batches of one read make many tasks, so that a few reads are enough.
        if piece == 1 && theirs.len() > 5000 {
            continue;
        }
        let (text, summary) = sam(engine, &[files], threads, piece).unwrap();
        let what = format!("{what}, {:?}, {threads} threads, pieces of {piece}", files.layout);
        let ours = split_sam(&text).1;
        assert_same(&ours, theirs, &what);
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

#[test]
fn minibwa_as_by_its_command_line() {
    let binary = match peers::minibwa() {
        Ok(binary) => binary,
        Err(why) => return peers::skipped("minibwa_as_by_its_command_line", why),
    };
    let bench = Bench::new(21);
    let reads = pairs(&bench.genome, 4000, 31);
    for layout in [ReadLayout::Paired, ReadLayout::Interleaved] {
        let files = bench.write("pairs", &reads, layout);
        for (block, options) in [(None, &["map", "ref.fa"][..]), (Some(200_000), &["map", "-K", "200k", "ref.fa"])] {
            let theirs = theirs(binary, options, &bench, &files);
            compare(&bench.minibwa(block, &[]), &files, &theirs, &format!("blocks of {block:?}"));
        }
    }
    let files = bench.write("singles", &singles(&bench.genome, 32), ReadLayout::Single);
    let theirs = theirs(binary, &["map", "ref.fa"], &bench, &files);
    compare(&bench.minibwa(None, &[]), &files, &theirs, "minibwa");
}

#[test]
fn strobealign_as_by_its_command_line() {
    let binary = match peers::strobealign() {
        Ok(binary) => binary,
        Err(why) => return peers::skipped("strobealign_as_by_its_command_line", why),
    };
    let bench = Bench::new(22);
    // Three chunks of a million bases.
    let reads = pairs(&bench.genome, 8000, 33);
    let options = ["-v", "-t", "1", "ref.fa"];
    for layout in [ReadLayout::Paired, ReadLayout::Interleaved, ReadLayout::Single] {
        let mut reads = reads.clone();
        if layout == ReadLayout::Single {
            reads.iter_mut().enumerate().for_each(|(i, read)| read.name += &format!(".{i}"));
        }
        let files = bench.write("reads", &reads, layout);
        let more: &[&str] = if layout == ReadLayout::Interleaved { &["--interleaved"] } else { &[] };
        let theirs = theirs(binary, &[&options[..], more].concat(), &bench, &files);
        compare(&bench.strobealign(), &files, &theirs, "strobealign");
    }
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
    let together = bench.minibwa(Some(100_000), &groups);
    let alone: Vec<u8> = (0..lanes.len())
        .flat_map(|i| sam(&bench.minibwa(Some(100_000), &[groups[i]]), &all[i..=i], 1, 30_000).unwrap().0)
        .collect();
    for threads in [1, 2, 8] {
        let (text, summary) = sam(&together, &all, threads, 30_000).unwrap();
        assert!(text == alone, "{threads} threads");
        assert!(summary.num_blocks > 4);
    }
    let alone: Vec<u8> =
        all.iter().flat_map(|files| sam(&bench.strobealign(), &[files], 1, 30_000).unwrap().0).collect();
    for threads in [1, 2, 8] {
        assert!(sam(&bench.strobealign(), &all, threads, 30_000).unwrap().0 == alone, "{threads} threads");
    }
}
