//! BINSEQ files are called, counted and aligned like the FASTQ files with the same reads; damaged ones are refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use binseq::write::{BinseqWriterBuilder, Format};
use binseq::{BitSize, SequencingRecordBuilder};

use crate::aligned_reads::{aligned, counted, data_with_reads, sam};
use crate::common::{assert_same, called, data, gunzip, installed, records, run, scratch, text};

/// Options of a CBQ, VBQ or BQ file.
#[derive(Clone, Copy)]
pub(super) struct Made {
    pub(super) format: Format,
    pub(super) names: bool,
    pub(super) qualities: bool,
    /// VBQ: blocks are compressed. Those of CBQ always are.
    pub(super) packed: bool,
    /// VBQ and BQ: each record has a flag word, which genuma ignores.
    pub(super) flags: bool,
    /// VBQ and BQ: bits per base. Two bits cannot encode N.
    pub(super) bits: BitSize,
    pub(super) block: usize,
}

pub(super) const CBQ: Made = Made {
    format: Format::Cbq,
    names: true,
    qualities: true,
    packed: true,
    flags: false,
    bits: BitSize::Four,
    block: 1 << 20,
};

const VBQ: Made = Made { format: Format::Vbq, ..CBQ };

const BQ: Made = Made { format: Format::Bq, names: false, qualities: false, ..CBQ };

/// Header, bases and qualities of FASTQ records.
fn fields<'a>(fastq: &[&'a [u8]]) -> Vec<[&'a [u8]; 3]> {
    let fields = |record: &&'a [u8]| {
        let lines: Vec<&[u8]> = record.split(|&b| b == b'\n').collect();
        [&lines[0][1..], lines[1], lines[3]]
    };
    fastq.iter().map(fields).collect()
}

/// Writes reads or pairs in one of these formats.
pub(super) fn binseq(path: &Path, mates: &[&[u8]], of: Made) {
    let file = fs::File::create(path).expect("a file");
    let all: Vec<_> = mates.iter().map(|fastq| fields(&records(fastq))).collect();
    let builder = BinseqWriterBuilder::new(of.format).paired(mates.len() == 2).bitsize(of.bits);
    let builder = builder.quality(of.qualities).headers(of.names).block_size(of.block).flags(of.flags);
    let mut builder = builder.compression(of.packed);
    if of.format == Format::Bq {
        builder = builder.slen(all[0][0][1].len() as u32);
        builder = builder.xlen(all.get(1).map_or(0, |mates| mates[0][1].len() as u32));
    }
    let mut writer = builder.build(file).expect("a writer");
    for (i, [name, seq, qual]) in all[0].iter().enumerate() {
        let mut record = SequencingRecordBuilder::default().s_header(name).s_seq(seq).s_qual(qual);
        if let Some(mates) = all.get(1) {
            let [name, seq, qual] = mates[i];
            record = record.x_header(name).x_seq(seq).x_qual(qual);
        }
        assert!(writer.push(record.build().expect("a record")).expect("written"));
    }
    writer.finish().expect("an end");
}

/// Both simulated samples in one of these formats: first the normal, then the tumour.
pub(super) fn binseq_pair(folder: &Path, of: Made) -> [PathBuf; 2] {
    [("normal", &data().normal), ("tumour", &data().tumor)].map(|(name, mates)| {
        // The file name does not show the format.
        let path = folder.join(format!("{name}.reads"));
        let mates = [gunzip(&mates[0]), gunzip(&mates[1])];
        binseq(&path, &[&mates[0], &mates[1]], of);
        path
    })
}

/// Mates of the normal with bases changed by a function of their position in the file.
fn mates_with(base: impl Fn(usize, u8) -> u8) -> [Vec<u8>; 2] {
    let mut mates = [0, 1].map(|mate| gunzip(&data().normal[mate]));
    for fastq in &mut mates {
        let mut line = 0;
        for (at, byte) in fastq.iter_mut().enumerate() {
            line += usize::from(*byte == b'\n');
            if line % 4 == 1 && *byte != b'\n' {
                *byte = base(at, *byte);
            }
        }
    }
    mates
}

/// Mates with every N replaced, because two bits cannot encode N.
fn without_n() -> [Vec<u8>; 2] {
    mates_with(|_, base| if base == b'N' { b'A' } else { base })
}

/// Writes mates as FASTQ.
pub(super) fn as_files(folder: &Path, mates: &[Vec<u8>; 2]) -> [PathBuf; 2] {
    [0, 1].map(|mate| {
        let path = folder.join(format!("{mate}.fq"));
        fs::write(&path, &mates[mate]).expect("a file");
        path
    })
}

/// Asserts that an external aligner gets the same input from this file as from FASTQ.
fn assert_bwa_gets_same_reads(folder: &Path, reads: &Path, fastq: &[PathBuf; 2]) {
    if installed("bwa").is_none() {
        return;
    }
    let reference = folder.join("ref.fa");
    fs::copy(data().reference.as_ref().expect("a reference"), &reference).expect("a copy");
    let bwa = |args: &[&str]| {
        let output = Command::new("bwa").args(args).output().expect("bwa starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    bwa(&["index", text(&reference)]);
    let plain = bwa(&["mem", text(&reference), text(&fastq[0]), text(&fastq[1])]);
    let dealt = run(["run", "-q", "--", "bwa", "mem", "-p", text(&reference), text(reads)]).assert_success().stdout;
    let records = |sam: &str| sam.lines().filter(|line| !line.starts_with('@')).map(str::to_owned).collect::<Vec<_>>();
    assert!(records(&plain).len() > 1000 && records(&dealt) == records(&plain), "{}", reads.display());
}

/// Asserts that both samples in a format are called, counted and aligned like the FASTQ files that they were made
/// from. `kinds` are further variants of the format that are aligned.
fn assert_equal_to_fastq(name: &str, of: Made, kinds: &[Made]) {
    let folder = scratch(name);
    let made = binseq_pair(&folder, of);
    let out = scratch(&format!("from-{name}"));
    run(data_with_reads(made.clone()).call_with(&out, &["--threads", "3"])).assert_success();
    assert_same(&out, called());

    let mates = mates_with(|at, base| if at % 97 < 3 { b'N' } else { base });
    let paths = as_files(&folder, &mates);
    let expected = sam(&[&paths[0], &paths[1]], &[]);
    for (i, &kind) in kinds.iter().enumerate() {
        let path = folder.join("n.reads");
        binseq(&path, &[&mates[0], &mates[1]], kind);
        assert!(sam(&[&path], &[]) == expected, "kind {i}");
    }
    assert_bwa_gets_same_reads(&folder, &folder.join("n.reads"), &paths);
    let single = folder.join("single.reads");
    binseq(&single, &[&mates[0]], of);
    assert!(sam(&[&single], &[]) == sam(&[&paths[0]], &["--single"]));
    // Reads without names are numbered. Reads without qualities can be aligned, but not called.
    let bare = folder.join("bare.reads");
    binseq(&bare, &[&mates[0], &mates[1]], Made { names: false, qualities: false, ..of });
    let bases = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| line.split('\t').nth(9).expect("bases").to_owned()).collect()
    };
    let bared = sam(&[&bare], &[]);
    assert!(bases(&bared) == bases(&expected));
    assert!(bared[0].starts_with("1\t") && bared[0].split('\t').nth(10) == Some("*"), "{}", bared[0]);
    let ended = run(data_with_reads([bare, made[1].clone()]).call_with(&scratch(&format!("bare-{name}")), &[]));
    assert!(
        ended.code != Some(0) && ended.stderr.contains("has no qualities: give reads with qualities"),
        "{}",
        ended.stderr
    );

    let mates: Vec<&Path> = data().normal.iter().map(PathBuf::as_path).collect();
    assert!(counted(&folder, &[&made[0]]) == counted(&folder, &mates));
}

#[test]
fn cbq_is_called_counted_and_aligned_as_what_it_was_made_of() {
    assert_equal_to_fastq("cbq", CBQ, &[CBQ, Made { block: 30_000, ..CBQ }]);
}

#[test]
fn vbq_is_called_counted_and_aligned_as_what_it_was_made_of() {
    let plain = Made { packed: false, flags: true, block: 3_000, ..VBQ };
    assert_equal_to_fastq("vbq", VBQ, &[VBQ, plain, Made { packed: true, block: 30_000, ..plain }]);
}

#[test]
fn bq_and_two_bits_are_read_as_fasta_of_their_bases() {
    let folder = scratch("bq");
    let mates = without_n();
    let fasta = [0, 1].map(|mate| {
        let path = folder.join(format!("{mate}.fa"));
        let reads = fields(&records(&mates[mate]))
            .iter()
            .enumerate()
            .fold(String::new(), |all, (i, read)| all + &format!(">{}\n{}\n", i + 1, String::from_utf8_lossy(read[1])));
        fs::write(&path, reads).expect("a file");
        path
    });
    let (pairs, single) = (sam(&[&fasta[0], &fasta[1]], &[]), sam(&[&fasta[0]], &["--single"]));
    assert!(!pairs.is_empty());
    let path = folder.join("x.reads");
    let bare = Made { names: false, qualities: false, ..VBQ };
    let two = Made { bits: BitSize::Two, ..bare };
    for of in [BQ, Made { flags: true, bits: BitSize::Two, ..BQ }, two, Made { flags: true, packed: false, ..two }] {
        binseq(&path, &[&mates[0], &mates[1]], of);
        assert!(sam(&[&path], &[]) == pairs, "{}", of.format.extension());
        binseq(&path, &[&mates[0]], of);
        assert!(sam(&[&path], &[]) == single, "{}", of.format.extension());
    }
    // Two-bit files with qualities can be called like FASTQ.
    binseq(&path, &[&mates[0], &mates[1]], Made { bits: BitSize::Two, ..VBQ });
    let files = as_files(&folder, &mates);
    assert!(counted(&folder, &[&path]) == counted(&folder, &[&files[0], &files[1]]));
    // Counting needs no qualities, and reports the number of such reads once.
    binseq(&path, &[&mates[0], &mates[1]], BQ);
    assert!(counted(&folder, &[&path]) == counted(&folder, &[&files[0], &files[1]]));
    let high = folder.join("high.tsv");
    let options = ["--min-base-quality", "60", "-o", text(&high)];
    let ended = run([&["kmers", "count", text(&path)], &options[..]].concat()).assert_success();
    let warning = "reads without qualities (such as 1): all their bases are used, whatever the minimum quality";
    assert_eq!(ended.stderr.matches(warning).count(), 1, "{}", ended.stderr);
    assert!(fs::read(&high).expect("a table") == counted(&folder, &[&path]));
}

/// A file that is damaged in many ways and counted each time.
struct Faulty {
    path: PathBuf,
    tsv: PathBuf,
    whole: Vec<u8>,
}

impl Faulty {
    fn new(folder: &Path, name: &str, of: Made) -> Faulty {
        // A thousand pairs in several blocks, because the file is counted often.
        let few = |fastq: Vec<u8>| records(&fastq)[..1000].concat();
        let mates = without_n().map(few);
        let path = folder.join(name);
        binseq(&path, &[&mates[0], &mates[1]], of);
        let whole = fs::read(&path).expect("a file");
        Faulty { tsv: path.with_extension("tsv"), path, whole }
    }

    fn number(&self, at: usize) -> usize {
        u64::from_le_bytes(self.whole[at..at + 8].try_into().expect("8 bytes")) as usize
    }

    fn changed(&self, at: usize, to: &[u8]) -> Vec<u8> {
        let mut bytes = self.whole.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    }

    /// Asserts that counting fails with these words and leaves no files.
    fn failed(&self, bytes: &[u8], words: &[&str]) {
        fs::write(&self.path, bytes).expect("a file");
        let ended = run(["kmers", "count", text(&self.path), "-o", text(&self.tsv)]);
        assert_eq!(ended.code, Some(1), "{words:?}: {}", ended.stderr);
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{words:?}: {}", ended.stderr);
        let name = self.path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(
            ended.stderr.contains(name) && !ended.stderr.contains("panicked") && !self.tsv.exists(),
            "{}",
            ended.stderr
        );
    }

    /// Asserts that changing any of these bytes leads to an error or to a table, but never to a panic.
    fn survives(&self, at: impl Iterator<Item = usize>) {
        for at in at {
            fs::write(&self.path, self.changed(at, &[self.whole[at] ^ 0x55])).expect("a file");
            let ended = run(["kmers", "count", text(&self.path), "-o", text(&self.tsv)]);
            assert!(
                matches!(ended.code, Some(0 | 1)) && !ended.stderr.contains("panicked"),
                "byte {at}: {}",
                ended.stderr
            );
        }
    }
}

#[test]
fn tags_of_binseq_are_refused() {
    let cbq = scratch("binseq-tags").join("reads.cbq");
    binseq(&cbq, &[b"@a\nACGT\n+\nFFFF\n"], CBQ);
    let ended = run(["align", "genome.fa", text(&cbq), "--tags", "all"]);
    let words = "--tags is for reads of BAM or CRAM files";
    assert!(ended.code == Some(2) && ended.stderr.contains(words), "{}", ended.stderr);
}

#[test]
fn cbq_that_is_not_whole_is_told() {
    let file = Faulty::new(&scratch("cbq-faults"), "x.cbq", Made { block: 200_000, ..CBQ });
    let whole = &file.whole;
    let first: usize = 64 + 96 + (0..7).map(|column| file.number(64 + 8 + 8 * column)).sum::<usize>();
    assert_eq!(&whole[first..first + 3], b"BLK");
    file.failed(&whole[..whole.len() - 1], &["no end-of-file block"]);
    file.failed(&whole[..first], &["no end-of-file block"]);
    // One block is missing.
    let gone = [&whole[..64], &whole[first..]].concat();
    file.failed(&gone, &["the number of records in the index is wrong"]);
    file.failed(&file.changed(7, &[9]), &["its version is not 1"]);
    file.failed(&file.changed(first, b"X"), &["record ", "its block has no header"]);
    file.failed(&file.changed(64 + 8, &[255; 8]), &["record 1", "a length of its block is invalid"]);
    file.failed(&file.changed(64 + 80, &[1]), &["record 1", "a length of its block"]);
    file.failed(&file.changed(64 + 96, &[0; 4]), &["record 1", "a column of its block cannot be decompressed"]);
    file.survives((8..64).step_by(5).chain(64..64 + 96));
    unlike_mates_are_told(&file, CBQ);
}

#[test]
fn vbq_that_is_not_whole_is_told() {
    let folder = scratch("vbq-faults");
    let file = Faulty::new(&folder, "x.vbq", Made { block: 200_000, ..VBQ });
    let whole = &file.whole;
    let first = 32 + 32 + file.number(32 + 8);
    assert_eq!(&whole[first..first + 8], b"BLOCKSEQ");
    file.failed(&whole[..20], &["record 1", "truncated"]);
    file.failed(&whole[..whole.len() - 1], &["no end-of-file block"]);
    file.failed(&whole[..first], &["no end-of-file block"]);
    // One block is missing or duplicated; the index is missing, but its end is not.
    let other = ["the number of records in the index is wrong"];
    file.failed(&[&whole[..32], &whole[first..]].concat(), &other);
    file.failed(&[&whole[..first], &whole[32..]].concat(), &other);
    let end = &whole[whole.len() - 16..];
    file.failed(&[&whole[..first], end].concat(), &["the file ends inside the record"]);
    file.failed(&[&whole[..first], end, end].concat(), &["its block has no header"]);
    let index = whole.len() - 16 - file.number(whole.len() - 16);
    assert_eq!(&whole[index..index + 8], b"VBQINDEX");
    file.failed(&[&whole[..index + 40], end].concat(), &["a length of the index is invalid"]);
    file.failed(&file.changed(index + 32, &[0; 4]), &["the index cannot be decompressed"]);
    file.failed(&file.changed(4, &[9]), &["its version is not 1"]);
    file.failed(&file.changed(5, &[0; 8]), &["an invalid length"]);
    file.failed(&file.changed(5, &[255; 8]), &["an invalid length"]);
    file.failed(&file.changed(5, &[1]), &["record 1", "its block cannot be decompressed"]);
    file.failed(&file.changed(16, &[3]), &["neither 2 bits nor 4"]);
    file.failed(&file.changed(17, &[7]), &["an unknown kind of records"]);
    file.failed(&file.changed(first, b"X"), &["record ", "its block has no header"]);
    file.failed(&file.changed(32 + 8, &[255; 8]), &["record 1", "a length of its block is invalid"]);
    file.failed(&file.changed(32 + 16, &[0; 4]), &["record 1", "a length of its block is invalid"]);
    file.failed(&file.changed(32 + 16, &[1, 0]), &["record 2", "its block has data after its records"]);
    file.failed(&file.changed(32 + 32, &[0; 4]), &["record 1", "its block cannot be decompressed"]);
    file.survives((4..20).chain((32..32 + 60).step_by(3)).chain((index..whole.len()).step_by(7)));

    // Uncompressed blocks expose the fields of records: two lengths, bases, qualities, the header with its length.
    let plain = Faulty::new(&folder, "plain.vbq", Made { packed: false, block: 200_000, ..VBQ });
    let (bases, record) = (plain.number(64), 64);
    let header = record + 16 + 8 * bases.div_ceil(16) + bases;
    plain.failed(&plain.changed(record, &[255; 8]), &["record 1", "longer than its block"]);
    plain.failed(&plain.changed(record + 3, &[1]), &["record 1", "longer than its block"]);
    plain.failed(&plain.changed(header, &[255; 8]), &["record 1", "longer than its block"]);
    plain.failed(&plain.changed(record + 16, &[0x44]), &["record 1", "an invalid base"]);
    plain.failed(&plain.changed(header - 1, &[7]), &["record 1", "in the qualities is outside"]);
    plain.failed(&plain.changed(15, &[0]), &["record 1", "a mate in a file of single reads"]);
    plain.survives((record..record + 20).step_by(3).chain((header - 4..header + 12).step_by(3)));
    unlike_mates_are_told(&file, VBQ);
}

#[test]
fn bq_that_is_not_whole_is_told() {
    let file = Faulty::new(&scratch("bq-faults"), "x.bq", Made { bits: BitSize::Two, ..BQ });
    let whole = &file.whole;
    let failed = |bytes: &[u8], words: &[&str]| {
        fs::write(&file.path, bytes).expect("a file");
        let ended = run(["align", text(&aligned().0), text(&file.path)]);
        assert_eq!(ended.code, Some(1), "{words:?}: {}", ended.stderr);
        let words = [words, &["x.bq"]].concat();
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{words:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    };
    failed(&whole[..20], &["record 1", "truncated"]);
    failed(&whole[..40], &["record 1", "the file ends inside the record"]);
    failed(&whole[..whole.len() - 1], &["the file ends inside the record"]);
    failed(&file.changed(4, &[9]), &["its version is not 1"]);
    failed(&file.changed(5, &[0; 4]), &["an invalid length"]);
    failed(&file.changed(5, &[255; 4]), &["an invalid length"]);
    failed(&file.changed(13, &[3]), &["neither 2 bits nor 4"]);
    failed(&file.changed(14, &[3]), &["an unknown kind of records"]);
    // The length of read 2 is wrong.
    failed(&file.changed(9, &[255, 1]), &["the file ends inside the record"]);
    // Nibbles that encode no base.
    let four = Faulty::new(&scratch("bq-four"), "x.bq", BQ);
    fs::write(&file.path, four.changed(32, &[0x90])).expect("a file");
    let ended = run(["align", text(&aligned().0), text(&file.path)]);
    assert!(ended.code == Some(1) && ended.stderr.contains("an invalid base"), "{}", ended.stderr);
}

/// Asserts that mates of different templates are reported.
fn unlike_mates_are_told(file: &Faulty, of: Made) {
    let mates = [0, 1].map(|mate| gunzip(&data().normal[mate]));
    let other = String::from_utf8(mates[1].clone()).expect("text").replacen("@", "@other", 1);
    binseq(&file.path, &[&mates[0], other.as_bytes()], of);
    let ended = run(["align", text(&aligned().0), text(&file.path)]);
    assert!(ended.code == Some(1) && ended.stderr.contains("mates must come in the same order"), "{}", ended.stderr);
}
