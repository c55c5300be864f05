//! Compares the engine minibwa with `minibwa map`, built from the same sources.

use std::fs;
use std::path::{Path, PathBuf};

use genuma_align::engine::minibwa::{Options, Preset, build_index};
use genuma_align::engine::{BlockRule, Engine, Error, Minibwa, ReadLayout, seal};
use genuma_align::sam::parse_line;
use genuma_reads::fasta::{Contig, Reference};
use tempfile::TempDir;

use crate::data::{
    Dice, Read, answer, answer_in_parallel, assert_same, blocks, genome, lines, pairs, singles, split_sam, write_fasta,
    write_reads,
};
use crate::peers;

struct Bench {
    folder: TempDir,
    genome: Vec<(String, Vec<u8>)>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let (folder, genome) = (tempfile::tempdir().unwrap(), genome(seed));
        write_fasta(&folder.path().join("ref.fa"), &genome);
        build_index(&folder.path().join("ref.fa"), &folder.path().join("ref.fa"), 2).unwrap();
        Bench { folder, genome }
    }

    fn reference(&self) -> PathBuf {
        self.folder.path().join("ref.fa")
    }

    fn load(&self, options: Options) -> Result<Minibwa, Error> {
        Minibwa::load_index(&self.reference(), &self.reference(), options, 2)
    }

    /// Output of `minibwa map`.
    fn map(&self, binary: &Path, arguments: &[&str], reads: &[Read], layout: ReadLayout) -> Vec<u8> {
        let files = write_reads(self.folder.path(), reads, layout);
        let files = files.iter().map(|f| f.to_str().unwrap());
        let arguments: Vec<&str> = ["map"].iter().chain(arguments).copied().chain(["ref.fa"]).chain(files).collect();
        peers::run(binary, &arguments, self.folder.path())
    }

    /// Checks that our lines equal those of minibwa, with batches of several sizes, on one thread and on three.
    fn compare(&self, options: Options, arguments: &[&str], reads: &[Read], layout: ReadLayout) -> usize {
        let binary = peers::minibwa().unwrap();
        let (header, theirs) = split_sam(&self.map(binary, arguments, reads, layout));
        let engine = self.load(options).unwrap();
        let what = format!("{layout:?} {arguments:?}");
        let whole = answer(&engine, &blocks(&engine, reads, layout, 1_000_000));
        assert_same(&lines(&engine, &whole), &theirs, &what);
        for templates in [3, 500] {
            let blocks = blocks(&engine, reads, layout, templates);
            assert!(answer(&engine, &blocks) == whole, "{what}: pieces of {templates}");
            assert!(answer_in_parallel(&engine, &blocks) == whole, "{what}: three threads");
        }
        let mut parsed = Vec::new();
        for line in &theirs {
            parse_line(line.as_bytes(), engine.contigs(), &mut parsed).unwrap();
        }
        assert!(parsed == whole, "{what}: a record made from text has other bytes");

        let sequences = header.iter().filter(|line| line.starts_with("@SQ")).map(|line| format!("{line}\n"));
        assert_eq!(engine.contigs().header_lines(), sequences.collect::<String>());
        let program = engine.program();
        assert!(header.iter().any(|line| line.contains(&format!("PN:{}\tVN:{}", program.name, program.version))));
        theirs.len()
    }
}

/// The test is skipped with a message if there is no minibwa to compare with.
fn without_peer(test: &str) -> bool {
    peers::minibwa().inspect_err(|why| peers::skipped(test, why)).is_err()
}

#[test]
fn pairs_are_mapped_as_by_its_command_line() {
    if without_peer("pairs_are_mapped_as_by_its_command_line") {
        return;
    }
    let bench = Bench::new(1);
    let reads = pairs(&bench.genome, 5000, 11);
    let lines = bench.compare(Options::default(), &[], &reads, ReadLayout::Paired);
    assert!(lines > reads.len(), "some reads have more than one piece");
    // Blocks of 300 kb, each with its own insert size.
    let options = Options { block_bases: Some(300_000), ..Options::default() };
    bench.compare(options, &["-K", "300k"], &reads, ReadLayout::Paired);
}

#[test]
fn options_do_what_they_do_on_its_command_line() {
    if without_peer("options_do_what_they_do_on_its_command_line") {
        return;
    }
    let bench = Bench::new(2);
    let reads = pairs(&bench.genome, 1500, 12);
    let group = "@RG\\tID:lane one\\tSM:x";
    let cases = [
        (Options { read_groups: vec!["lane one".into()], ..Options::default() }, vec!["-R", group]),
        (Options { max_secondary: 7, ..Options::default() }, vec!["--outn", "7"]),
        (
            Options { max_secondary: 3, soft_clip_supplementary: true, copy_comments: true, ..Options::default() },
            vec!["-Y", "--outn=3", "-y"],
        ),
        (Options { leftmost_is_primary: true, ..Options::default() }, vec!["-5"]),
        (Options { preset: Preset::Short, ..Options::default() }, vec!["-x", "sr"]),
        (Options { preset: Preset::Long, ..Options::default() }, vec!["-x", "lr"]),
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
    let bench = Bench::new(3);
    let reads = singles(&bench.genome, 13);
    bench.compare(Options::default(), &[], &reads, ReadLayout::Single);
    let long = Options { preset: Preset::Long, copy_comments: true, ..Options::default() };
    bench.compare(long, &["-x", "lr", "-y"], &reads, ReadLayout::Single);
}

#[test]
fn interleaved_pairs_are_mapped_as_by_its_command_line() {
    if without_peer("interleaved_pairs_are_mapped_as_by_its_command_line") {
        return;
    }
    let bench = Bench::new(4);
    // minibwa's reader of interleaved files does not count a read without bases as a mate; genuma does.
    let reads: Vec<Read> = pairs(&bench.genome, 2500, 14);
    bench.compare(Options::default(), &[], &reads, ReadLayout::Interleaved);
    let options = Options { block_bases: Some(200_000), ..Options::default() };
    bench.compare(options, &["-K", "200k"], &reads, ReadLayout::Interleaved);
    // Nineteen pairs are too few for an estimate.
    for few in [0, 1, 19, 20] {
        bench.compare(Options::default(), &[], &reads[..2 * few], ReadLayout::Interleaved);
        bench.compare(Options::default(), &[], &reads[..2 * few], ReadLayout::Paired);
    }
}

#[test]
fn reads_from_fasta_and_in_lower_case() {
    if without_peer("reads_from_fasta_and_in_lower_case") {
        return;
    }
    let bench = Bench::new(5);
    let mut reads = pairs(&bench.genome, 50, 15);
    reads.retain(|read| !read.seq.is_empty());
    reads.iter_mut().enumerate().for_each(|(i, read)| {
        (read.name, read.comment) = (format!("f{i}"), String::new());
        read.qual.clear();
        read.seq.make_ascii_lowercase();
    });
    let fasta: String = reads.iter().map(|r| format!(">{}\n{}\n", r.name, String::from_utf8_lossy(&r.seq))).collect();
    fs::write(bench.folder.path().join("reads.fa"), fasta).unwrap();
    let printed = peers::run(peers::minibwa().unwrap(), &["map", "ref.fa", "reads.fa"], bench.folder.path());
    let upper = |line: String| {
        let mut fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        fields[9].make_ascii_uppercase();
        fields.join("\t")
    };
    let theirs: Vec<String> = split_sam(&printed).1.into_iter().map(upper).collect();
    let engine = bench.load(Options::default()).unwrap();
    let ours = answer(&engine, &blocks(&engine, &reads, ReadLayout::Single, 10));
    assert_same(&lines(&engine, &ours), &theirs, "lower case");
}

#[test]
fn the_index_is_that_of_its_command_line() {
    if without_peer("the_index_is_that_of_its_command_line") {
        return;
    }
    let bench = Bench::new(6);
    // Lower case, other letters, sequences that begin and end with them, line ends and comments of all kinds.
    let mut text = fs::read(bench.reference()).unwrap();
    text.extend_from_slice(b">a\tb c \r\nNNACGTnnnn\r\n\r\nacgtRYKMacNN\r\n>d\nnnnn\n>e  f\nACGTACGTTTacgt");
    for (reference, gzipped) in [("ref.fa", false), ("ref.fa.gz", true)] {
        let path = bench.folder.path().join(reference);
        let packed = |text: &[u8]| {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut gz, text).unwrap();
            gz.finish().unwrap()
        };
        fs::write(&path, if gzipped { packed(&text) } else { text.clone() }).unwrap();
        build_index(&path, &bench.reference(), 3).unwrap();
        peers::run(peers::minibwa().unwrap(), &["index", reference, "theirs"], bench.folder.path());
        for extension in ["l2b", "mbw"] {
            let read = |name: &str| fs::read(bench.folder.path().join(format!("{name}.{extension}"))).unwrap();
            assert!(read("ref.fa") == read("theirs"), "{reference}: {extension}");
        }
    }
    // The index has no seal and is accepted.
    let theirs = bench.folder.path().join("theirs");
    let engine = Minibwa::load_index(&theirs, &bench.reference(), Options::default(), 1).unwrap();
    assert_eq!(engine.contigs().len(), 6);
}

#[test]
fn cuts_are_those_of_its_command_line() {
    let bench = Bench::new(7);
    let engine = bench.load(Options::default()).unwrap();
    assert_eq!(engine.block_rule(ReadLayout::Single), BlockRule::AnyBatch);
    let BlockRule::BlocksOfBatches(two_files) = engine.block_rule(ReadLayout::Paired) else {
        panic!("pairs come in blocks")
    };
    assert_eq!([99_999_999, 100_000_000].map(|bases| two_files.is_reached(bases, 2)), [false, true]);
    let BlockRule::BlocksOfBatches(one_file) = engine.block_rule(ReadLayout::Interleaved) else {
        panic!("pairs come in blocks")
    };
    let cases = [(100_000_000, 39_998), (100_000_000, 40_000), (1_000_000_000, 2)];
    assert_eq!(cases.map(|(bases, reads)| one_file.is_reached(bases, reads)), [false, true, true]);
    let long = bench.load(Options { preset: Preset::Long, ..Options::default() }).unwrap();
    assert_eq!(long.block_rule(ReadLayout::Paired), BlockRule::AnyBatch);
}

#[test]
fn copies_of_an_index_lie_apart_and_answer_alike() {
    let bench = Bench::new(8);
    let copies = [0, 1].map(|_| bench.load(Options::default()).unwrap());
    let reads = pairs(&bench.genome, 200, 16);
    let answers = copies.each_ref().map(|copy| answer(copy, &blocks(copy, &reads, ReadLayout::Paired, 64)));
    assert!(answers[0] == answers[1] && !answers[0].is_empty());
    let regions = copies.each_ref().map(|copy| copy.index_arrays());
    let bases: usize = bench.genome.iter().map(|(_, seq)| seq.len()).sum();
    for (a, b) in regions[0].iter().zip(&regions[1]) {
        assert_eq!((a.name, a.bytes), (b.name, b.bytes));
        assert_ne!(a.bytes.as_ptr(), b.bytes.as_ptr());
        assert!(a.bytes.len().abs_diff(bases) < 1000, "{}: a byte a base", a.name);
    }
    assert_eq!(regions[0].len(), 2);
    assert!(copies[0].memory_bytes() > 2 * bases as u64);
}

#[test]
fn a_bad_index_is_refused() {
    let bench = Bench::new(9);
    let path = |name: &str| bench.folder.path().join(name);
    let refused = |what: &str| match bench.load(Options::default()).map(drop) {
        Err(error) => assert!(error.to_string().contains(what), "{error}"),
        Ok(()) => panic!("not refused: {what}"),
    };
    let [l2b, mbw] = ["ref.fa.l2b", "ref.fa.mbw"].map(&path);
    let whole = [&l2b, &mbw].map(|file| fs::read(file).unwrap());
    let spoilt = |file: &Path, at: usize| {
        let mut bytes = fs::read(file).unwrap();
        bytes[at] ^= 1;
        fs::write(file, bytes).unwrap();
    };
    let mend = || {
        fs::write(&l2b, &whole[0]).unwrap();
        fs::write(&mbw, &whole[1]).unwrap();
    };

    for (file, at) in [(&l2b, whole[0].len() / 2), (&mbw, whole[1].len() - 9)] {
        spoilt(file, at);
        refused("damaged: its bytes changed since it was made; make the index again with `genuma index`");
        mend();
    }
    // The reference was changed after the index was built.
    let fasta = fs::read(bench.reference()).unwrap();
    write_fasta(&bench.reference(), &genome(10));
    refused("not an index of");
    fs::write(bench.reference(), &fasta).unwrap();
    bench.load(Options::default()).unwrap();

    // Without a seal the sizes are still checked.
    fs::remove_file(seal::seal_path(&l2b)).unwrap();
    bench.load(Options::default()).unwrap();
    for (file, bytes) in [(&l2b, &whole[0]), (&mbw, &whole[1])] {
        for length in [bytes.len() - 1, bytes.len() / 2, 20] {
            fs::write(file, &bytes[..length]).unwrap();
            refused(if length == 20 { "not an index of minibwa" } else { "cut short or damaged" });
        }
        fs::write(file, [&bytes[..], b"x"].concat()).unwrap();
        refused("cut short or damaged");
        spoilt(file, 0);
        refused("not an index of minibwa");
        mend();
    }
    for at in [9, 15, 17, 23, 33, 47, 57, whole[0].len() - 1] {
        spoilt(&l2b, at);
        refused("cut short or damaged");
        mend();
    }
    for at in [6, 14, 22, 30, 38] {
        spoilt(&mbw, at);
        refused("cut short or damaged");
        mend();
    }
    let other = Bench { folder: tempfile::tempdir().unwrap(), genome: genome(10)[..1].to_vec() };
    write_fasta(&other.reference(), &other.genome);
    build_index(&other.reference(), &other.reference(), 1).unwrap();
    fs::copy(other.folder.path().join("ref.fa.mbw"), &mbw).unwrap();
    refused("not of the genome that");
    fs::remove_file(&mbw).unwrap();
    refused("no index; make it with `genuma index --engine minibwa");
}

/// Two short sequences that use every part of an index.
fn short() -> Vec<(String, Vec<u8>)> {
    let mut dice = Dice(31);
    let mut genome = [("one", 1500), ("two", 700)].map(|(name, n)| (name.to_owned(), dice.bases(n)));
    genome[0].1[400..420].fill(b'N');
    genome[0].1[600..640].make_ascii_lowercase();
    genome[1].1[690..].fill(b'N');
    genome.to_vec()
}

/// A changed or missing byte anywhere in the index gives an error that names a file, or has no effect.
#[test]
fn an_index_damaged_anywhere_is_refused_or_answers_alike() {
    let genome = short();
    let bench = Bench { folder: tempfile::tempdir().unwrap(), genome };
    write_fasta(&bench.reference(), &bench.genome);
    build_index(&bench.reference(), &bench.reference(), 1).unwrap();
    let reads: Vec<Read> = (0..60)
        .map(|i| {
            let seq = &bench.genome[i % 2].1[i * 9..i * 9 + 100];
            let seq = if i % 3 == 0 { genuma_reads::dna::reverse_complement(seq) } else { seq.to_vec() };
            Read { name: format!("r{}", i / 2), qual: vec![b'I'; 100], seq, ..Read::default() }
        })
        .collect();
    let answers = |engine: &Minibwa| {
        let whole = answer(engine, &blocks(engine, &reads, ReadLayout::Paired, 10));
        lines(engine, &whole)
    };
    let expected = answers(&bench.load(Options::default()).unwrap());
    let seal = seal::seal_path(&bench.folder.path().join("ref.fa.l2b"));
    for sealed in [true, false] {
        if !sealed {
            fs::remove_file(&seal).unwrap();
        }
        for file in ["ref.fa.l2b", "ref.fa.mbw"] {
            let path = bench.folder.path().join(file);
            let whole = fs::read(&path).unwrap();
            let load = |bytes: &[u8], what: &str| {
                fs::write(&path, bytes).unwrap();
                match bench.load(Options::default()) {
                    Err(error) => {
                        let said = error.to_string();
                        assert!(said.contains("ref.fa") && said.contains("make the index again"), "{said}");
                        true
                    }
                    Ok(_) if sealed => panic!("{file}: {what} is not seen"),
                    Ok(engine) => {
                        assert_eq!(answers(&engine), expected, "{file}: {what}");
                        false
                    }
                }
            };
            let mut taken = 0;
            // A checksum covers every byte.
            for at in (0..whole.len()).step_by(if sealed { 11 } else { 1 }) {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << (at % 8);
                taken += usize::from(!load(&bytes, &format!("byte {at}")));
            }
            // Bytes that minibwa ignores: four after the magic number, lower case, two after the last base, comments.
            let free = if sealed || file.ends_with("mbw") { 0 } else { 4 + 16 + 2 + 2 * "a comment".len() };
            assert_eq!(taken, free, "{file}");
            for length in (0..whole.len()).step_by(31) {
                assert!(load(&whole[..length], &format!("cut at {length}")));
            }
            for zeros in (0..whole.len() - 64).step_by(256) {
                // Zero bytes, as after a disk was full for a moment.
                let mut bytes = whole.clone();
                bytes[zeros..zeros + 64].fill(0);
                assert!(bytes == whole || load(&bytes, &format!("zeros at {zeros}")));
            }
            fs::write(&path, &whole).unwrap();
        }
    }
}

#[test]
fn sequences_of_the_same_names_and_lengths_are_told_apart() {
    let bench = Bench::new(33);
    let known = Reference::read(&bench.reference()).unwrap();
    bench.load(Options::default()).unwrap();
    let seal = seal::seal_path(&bench.folder.path().join("ref.fa.l2b"));
    let sealed = fs::read(&seal).unwrap();
    let fasta = fs::read(bench.reference()).unwrap();
    let unknown = known.contigs[1].seq.iter().position(|&base| base == b'N').unwrap();
    // The contig, the base, its replacement, and the expected message.
    let cases = [
        (0, 0, None, "they differ at base 1 of chr1"),
        (1, 77_777, None, "they differ at base 77778 of chr2"),
        (2, known.contigs[2].seq.len() - 1, None, "of HLA*01:02"),
        (1, 1234, Some(b'N'), "the ambiguous bases differ"),
        (1, unknown, Some(b'A'), "not an index of this reference"),
    ];
    for (contig, at, letter, what) in cases {
        let mut other = known.clone();
        let base = &mut other.contigs[contig].seq[at];
        *base = letter.unwrap_or(if *base == b'A' { b'C' } else { b'A' });
        other.write(&bench.reference()).unwrap();
        for has_seal in [true, false] {
            if has_seal { fs::write(&seal, &sealed) } else { fs::remove_file(&seal) }.unwrap();
            let error = bench.load(Options::default()).map(drop).unwrap_err().to_string();
            assert!(error.contains(if has_seal { "not an index of" } else { what }), "{error}");
            assert!(error.contains("ref.fa.l2b"), "{error}");
        }
    }
    // Names, lengths and numbers of sequences.
    let renamed = |change: &dyn Fn(&mut Vec<Contig>)| {
        let mut contigs = known.contigs.clone();
        change(&mut contigs);
        Reference::from_contigs(contigs).write(&bench.reference()).unwrap();
        bench.load(Options::default()).map(drop).unwrap_err().to_string()
    };
    assert!(renamed(&|contigs| drop(contigs.pop())).contains("it has 3 sequences, the reference 2"));
    assert!(renamed(&|contigs| contigs.swap(0, 1)).contains("where the reference has chr2"));
    assert!(renamed(&|contigs| contigs[2].seq.truncate(9000)).contains("HLA*01:02 of"));
    // Without the reference file the index is not compared, but it is complete.
    fs::remove_file(bench.reference()).unwrap();
    bench.load(Options::default()).unwrap();
    fs::write(bench.reference(), fasta).unwrap();
    bench.load(Options::default()).unwrap();
}

#[test]
fn a_seal_of_another_version_is_refused() {
    let bench = Bench::new(34);
    let path = seal::seal_path(&bench.folder.path().join("ref.fa.l2b"));
    let seal = fs::read_to_string(&path).unwrap();
    let version = bench.load(Options::default()).unwrap().program().version;
    for (from, to, what) in [
        ("genuma-seal 2", "genuma-seal 1", "made by an older version of genuma"),
        ("genuma-seal 2", "genuma-seal 3", "not the seal of an index"),
        (version, "0.5-r1", "an index for minibwa 0.5-r1"),
        ("engine minibwa", "engine other", "an index for other"),
        ("file ref.fa.mbw", "file ref.fa.xyz", "does not name"),
    ] {
        assert!(seal.contains(from), "{seal}");
        fs::write(&path, seal.replace(from, to)).unwrap();
        let error = bench.load(Options::default()).map(drop).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("genuma index"), "{error}");
    }
}

#[test]
fn a_bad_reference_is_not_indexed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ref.fa");
    let cases = [("", "empty"), ("ACGT\n", ">"), (">a\n>b\nACGT\n", "no bases"), (">a\nAC!T\n", "'!'")];
    for (text, what) in cases {
        fs::write(&path, text).unwrap();
        let error = build_index(&path, &path, 1).unwrap_err().to_string();
        assert!(error.contains(what), "{text:?}: {error}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|f| f.file_name()).collect();
    assert_eq!(left, ["ref.fa"]);
}

#[test]
fn a_read_that_bam_cannot_hold_is_named() {
    let bench = Bench::new(17);
    let mut reads = pairs(&bench.genome, 1, 18);
    let engine = bench.load(Options { copy_comments: true, ..Options::default() }).unwrap();
    let fault = |reads: &[Read]| {
        let pieces = blocks(&engine, reads, ReadLayout::Paired, 1);
        let (mut state, mut drafts, mut out) = (engine.new_state(), Vec::new(), Vec::new());
        engine.map_block(&mut state, &pieces[0], &mut drafts, &mut out).unwrap_err().to_string()
    };
    reads[0].comment = "1:N:0:ACGT".into();
    assert!(
        fault(&reads).contains("its comment cannot be copied: '1:N:0:ACGT' is not a valid tag"),
        "{}",
        fault(&reads)
    );
    let name = "n".repeat(255);
    reads.iter_mut().for_each(|read| read.name.clone_from(&name));
    assert!(fault(&reads).contains("255 bytes"), "{}", fault(&reads));
    reads.iter_mut().for_each(|read| read.name = "a\0b".into());
    assert!(fault(&reads).contains("NUL"), "{}", fault(&reads));
}
