//! Compares the engine strobealign with its own command line on one thread.

use std::fs;
use std::path::PathBuf;

use genuma_align::engine::strobealign::{Options, build_index, index_path, mean_read_length};
use genuma_align::engine::{BlockRule, Engine, Error, ReadLayout, Strobealign, seal};
use tempfile::TempDir;

use crate::data::{
    Read, answer, assert_same, blocks, genome, lines, pairs, singles, split_sam, write_fasta, write_reads,
};
use crate::peers;

struct Bench {
    folder: TempDir,
    genome: Vec<(String, Vec<u8>)>,
}

/// Maximum read length of the tests: strobealign aligns longer reads slowly.
const LONGEST: usize = 10_000;

impl Bench {
    fn new(seed: u64) -> Self {
        let (folder, genome) = (tempfile::tempdir().unwrap(), genome(seed));
        write_fasta(&folder.path().join("ref.fa"), &genome);
        Bench { folder, genome }
    }

    fn reference(&self) -> PathBuf {
        self.folder.path().join("ref.fa")
    }

    fn load(&self, length: usize, options: Options) -> Result<Strobealign, Error> {
        Strobealign::load_index(&self.reference(), &self.reference(), length, options, 2)
    }

    /// Checks that our lines equal those of strobealign. `arguments` are passed to its command line.
    fn compare(&self, options: Options, arguments: &[&str], reads: &[Read], layout: ReadLayout) {
        let files = write_reads(self.folder.path(), reads, layout);
        let files = files.iter().map(|f| f.to_str().unwrap());
        let arguments: Vec<&str> = arguments.iter().copied().chain(["ref.fa"]).chain(files).collect();
        let (header, theirs) = split_sam(&peers::run(peers::strobealign().unwrap(), &arguments, self.folder.path()));

        let first = reads.iter().step_by(if layout == ReadLayout::Paired { 2 } else { 1 });
        let length = mean_read_length(first.map(|read| read.seq.len()));
        if !index_path(&self.reference(), length).is_file() {
            build_index(&self.reference(), &self.reference(), length, 2).unwrap();
        }
        let engine = self.load(length, options).unwrap();
        let cut = blocks(&engine, reads, layout, 1);
        assert!(cut.iter().all(|block| block.len() == 1), "a block is one piece");
        assert_same(&lines(&engine, &answer(&engine, &cut)), &theirs, &format!("{layout:?} {arguments:?}"));

        let sequences = header.iter().filter(|line| line.starts_with("@SQ")).map(|line| format!("{line}\n"));
        assert_eq!(engine.contigs().header_lines(), sequences.collect::<String>());
        let program = engine.program();
        assert!(header.iter().any(|line| line.contains(&format!("PN:{}\tVN:{}", program.name, program.version))));
    }
}

fn without_peer(test: &str) -> bool {
    peers::strobealign().inspect_err(|why| peers::skipped(test, why)).is_err()
}

#[test]
fn pairs_are_mapped_as_by_its_command_line() {
    if without_peer("pairs_are_mapped_as_by_its_command_line") {
        return;
    }
    let bench = Bench::new(21);
    let reads = pairs(&bench.genome, 8000, 31);
    let bases: usize = reads.iter().map(|r| r.seq.len()).sum();
    assert!(bases > 2_000_000, "more than two of its chunks");
    bench.compare(Options::default(), &[], &reads, ReadLayout::Paired);
    // The number of its threads changes nothing.
    bench.compare(Options::default(), &["-t", "2"], &reads, ReadLayout::Paired);
    bench.compare(Options::default(), &["-p"], &reads[..4000], ReadLayout::Interleaved);
}

#[test]
fn options_do_what_they_do_on_its_command_line() {
    if without_peer("options_do_what_they_do_on_its_command_line") {
        return;
    }
    let bench = Bench::new(22);
    let reads = pairs(&bench.genome, 1500, 32);
    let cases = [
        (Options { read_groups: vec!["lane one".into()], ..Options::default() }, vec!["--rg-id", "lane one"]),
        (Options { max_secondary: 5, ..Options::default() }, vec!["-N", "5"]),
        (Options { copy_comments: true, ..Options::default() }, vec!["-C"]),
    ];
    for (options, arguments) in cases {
        bench.compare(options, &arguments, &reads, ReadLayout::Paired);
    }
}

#[test]
fn single_reads_of_all_lengths_are_mapped_as_by_its_command_line() {
    if without_peer("single_reads_of_all_lengths_are_mapped_as_by_its_command_line") {
        return;
    }
    let bench = Bench::new(23);
    let mut reads = singles(&bench.genome, 33);
    // strobealign's lines keep U, which BAM cannot represent.
    reads.retain(|read| read.seq.len() <= LONGEST && !read.seq.contains(&b'U'));
    bench.compare(Options::default(), &[], &reads, ReadLayout::Single);
    // Reads of another length need another index.
    reads.retain(|read| read.seq.len() < 80);
    bench.compare(Options { max_secondary: 2, ..Options::default() }, &["-N", "2"], &reads, ReadLayout::Single);
    let indexes = fs::read_dir(bench.folder.path()).unwrap().flatten();
    let sti = indexes.filter(|f| f.path().extension().is_some_and(|e| e == "sti")).count();
    assert_eq!(sti, 2);
}

#[test]
fn a_chunk_is_a_block() {
    let bench = Bench::new(24);
    build_index(&bench.reference(), &bench.reference(), 150, 1).unwrap();
    let engine = bench.load(150, Options::default()).unwrap();
    let BlockRule::OneBatchPerBlock(limit) = engine.block_rule(ReadLayout::Paired) else {
        panic!("a chunk is mapped by one worker")
    };
    assert_eq!([1_000_000, 1_000_001].map(|bases| limit.is_reached(bases, 2)), [false, true]);
    assert!(engine.memory_bytes() > 0 && engine.index_arrays().is_empty());

    // Copies of an engine give the same records.
    let reads = pairs(&bench.genome, 300, 34);
    let again = bench.load(150, Options::default()).unwrap();
    let cut = blocks(&engine, &reads, ReadLayout::Paired, 1);
    assert!(answer(&engine, &cut) == answer(&again, &cut));
}

#[test]
fn the_length_of_reads_is_the_mean_of_the_first() {
    assert_eq!(mean_read_length([].into_iter()), 0);
    assert_eq!(mean_read_length([100, 151].into_iter()), 125);
    assert_eq!(mean_read_length(std::iter::repeat_n(150, 500).chain([100_000])), 150);
}

#[test]
fn a_bad_index_is_refused() {
    let bench = Bench::new(25);
    build_index(&bench.reference(), &bench.reference(), 150, 1).unwrap();
    let path = index_path(&bench.reference(), 150);
    assert_eq!(path, bench.folder.path().join("ref.fa.r150.sti"));
    let whole = fs::read(&path).unwrap();
    let refused = |what: &str| match bench.load(150, Options::default()).map(drop) {
        Err(error) => assert!(error.to_string().contains(what), "{error}"),
        Ok(()) => panic!("not refused: {what}"),
    };
    let spoilt = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    spoilt(whole.len() / 2);
    refused("damaged: its bytes changed since it was made");
    fs::write(&path, &whole).unwrap();
    let fasta = fs::read(bench.reference()).unwrap();
    write_fasta(&bench.reference(), &genome(26));
    refused("not an index of");

    // Without a seal the index is compared with the sequences.
    fs::remove_file(seal::seal_path(&path)).unwrap();
    refused("make the index again");
    fs::write(bench.reference(), &fasta).unwrap();
    bench.load(150, Options::default()).unwrap();
    for length in [whole.len() - 1, whole.len() / 2, 70, 10] {
        fs::write(&path, &whole[..length]).unwrap();
        refused("cut short");
    }
    fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    refused("longer than it should be");
    spoilt(0);
    refused("not an index of strobealign");
    spoilt(4);
    refused("file format version");
    for at in [28, 36, 60] {
        spoilt(at);
        refused("make the index again");
    }
    // Seeds, and where they begin.
    for at in (76..whole.len()).step_by(whole.len() / 50).chain([whole.len() - 1]) {
        spoilt(at);
        refused("make the index again");
    }
    fs::remove_file(&path).unwrap();
    refused("no index; make it with `genuma index --engine strobealign");
    fs::write(bench.reference(), "no fasta").unwrap();
    assert!(build_index(&bench.reference(), &bench.reference(), 150, 1).is_err());
}

#[test]
fn a_read_that_is_too_long_is_named() {
    let bench = Bench::new(27);
    build_index(&bench.reference(), &bench.reference(), 150, 1).unwrap();
    let engine = bench.load(150, Options::default()).unwrap();
    let n = (1 << 20) + 1;
    let long = Read { name: "giant".into(), seq: vec![b'A'; n], qual: vec![b'I'; n], ..Read::default() };
    let pieces = blocks(&engine, &[long], ReadLayout::Single, 1);
    let (mut state, mut drafts, mut out) = (engine.new_state(), Vec::new(), Vec::new());
    let error = engine.map_block(&mut state, &pieces[0], &mut drafts, &mut out).unwrap_err();
    assert_eq!(error.to_string(), "read giant: longer than 1048576 bp");
}
