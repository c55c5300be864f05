//! `genuma align` with unusable input: one line that says what, where and what to do, and no files under final names.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{SharedFixture, data, genuma, gunzip, gzip, names, records, run, scratch, text};
use rustix::process::{Pid, Signal, kill_process};

/// A genome with its indexes.
fn reference() -> &'static Path {
    static MADE: SharedFixture<PathBuf> = SharedFixture::new();
    MADE.get_or_init(|| indexed(&scratch("reference")))
}

fn indexed(folder: &Path) -> PathBuf {
    let path = folder.join("genome.fa");
    fs::copy(data().folder.join("genome.fa"), &path).expect("a copy");
    run(["index", text(&path)]).assert_success();
    path
}

/// Asserts that genuma exits with `code` and one error line that contains all of `parts`, and adds nothing to
/// `folder`.
#[track_caller]
fn refused(folder: &Path, args: &[&str], code: i32, parts: &[&str]) {
    let before = names(folder);
    for out in ["out.sam", "out.bam"] {
        let out = folder.join(out);
        let ended = run(["align"].iter().chain(args).chain(&["-o", text(&out)]));
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        let errors: Vec<&str> = ended.stderr.lines().filter(|l| l.contains("error: ")).collect();
        let [error] = errors[..] else { panic!("one line of error, not {errors:?}") };
        for part in parts {
            assert!(error.contains(part), "'{part}' is not in: {error}");
        }
        assert_eq!(names(folder), before, "{args:?}");
    }
}

#[test]
fn wishes_that_cannot_be_fulfilled() {
    let folder = scratch("usage");
    let (reference, reads) = (text(reference()), text(&data().normal[0]));
    for (args, words) in [
        (&[reference, reads, "-o", "x.vcf"][..], "give a name that ends in .sam, .bam or .cram"),
        (&[reference, reads, "--mark-duplicates"], "add -o x.bam or x.cram"),
        (&[reference, reads, "-A", "0"], "a match must have a score"),
        (&[reference, reads, "--engine", "minibwa"], "genuma run -- minibwa"),
        (&[reference, reads, reads, reads], "has no mate file"),
        (&[reference, reads, "-R", "SM:x"], "has no ID"),
        (&[reference, reads, "-R", "ID:x", "-R", "ID:y"], "2 read groups for 1 lanes"),
        (&[reference, reads, "--memory", "1M", "-o", "x.bam"], "1 MiB of memory is too little: sorting needs"),
        (&[reference, reads, "--memory", "8", "-o", "x.bam"], "8 bytes of memory is too little, "),
        (&[reference, reads, "--memory", "8", "-o", "x.bam"], "write a unit after the number, such as 8G"),
        (&[reference, reads, "--work", "nowhere", "-o", "x.bam"], "--work nowhere: is not a folder"),
        (&[reference, reads, "--interleaved", "--single"], "cannot be used with"),
        (&[reference, reads, "--cram-version", "3.1", "-o", "x.bam"], "add -o x.cram"),
        (&[reference, reads, "--cram-version", "2.1", "-o", "x.cram"], "possible values: 3.0, 3.1"),
        (&[reference, reads, "--tags", "RX"], "--tags is for reads of BAM or CRAM files"),
        (&[reference, reads, "--tags", "RX,"], "'' is not a tag"),
        (&[reference, reads, "--tags", "RX QX"], "'RX QX' is not a tag"),
        (&[reference, reads, "--tags", "RX,NM"], "'NM' cannot be carried"),
        (&[reference, reads, "--tags", "all", "--tags-to-reverse", "cdx"], "'cdx' is not a tag"),
        (&[reference, reads, "--tags-to-revcomp", "cd"], "--tags <TAGS>"),
        (&[reference, reads, "--tags", "all", "--tags-to-reverse", "xx", "--tags-to-revcomp", "xx"], "not both"),
        (&[reference, reads, "--tags", "RX", "--tags-to-reverse", "xx"], "'xx' is not carried"),
        (&[reference, reads, "--tags", "all", "--tags-to-reverse", "MM"], "'MM' stays as sequenced"),
        (&[reference], "required arguments"),
    ] {
        let ended = genuma().arg("align").args(args).current_dir(&folder).output().expect("genuma starts");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(2) && said.contains(words), "{args:?}: {said}");
    }
    assert_eq!(names(&folder), Vec::<String>::new());
}

#[test]
fn reads_that_are_not_right() {
    let folder = scratch("reads");
    let (reference, two) = (text(reference()), text(&data().normal[1]));
    let whole = fs::read(&data().normal[0]).expect("reads");
    let path = |name: &str| folder.join(name);
    fs::write(path("truncated.fq.gz"), &whole[..whole.len() * 3 / 4]).expect("a file");
    fs::write(path("empty.fq"), b"").expect("a file");
    let fastq = gunzip(&data().normal[0]);
    let all = records(&fastq);
    gzip(path("fewer.fq.gz"), &all[..all.len() - 5].concat());
    let mut other = all.clone();
    let (a, b) = (all.len() - 5, all.len() - 4);
    other.swap(a, b);
    gzip(path("swapped.fq.gz"), &other.concat());
    gzip(path("nothing.fq.gz"), b"");
    let refused = |file: &str, parts: &[&str]| {
        refused(&folder, &[reference, text(&path(file)), two], 1, parts);
    };
    refused("truncated.fq.gz", &["truncated.fq.gz: record ", "truncated, copy or make it again"]);
    refused("fewer.fq.gz", &["fewer.fq.gz: ends after", "mates are missing"]);
    refused("swapped.fq.gz", &["swapped.fq.gz: record ", "mates must come in the same order"]);
    refused("empty.fq", &["empty.fq: is empty"]);
    refused("nothing.fq.gz", &["nothing.fq.gz: is empty"]);
    refused("none.fq", &["none.fq: cannot read: No such file"]);
}

#[test]
fn reads_that_are_odd_are_aligned() {
    let folder = scratch("odd");
    let genome = String::from_utf8(fs::read(reference()).expect("a genome")).expect("text");
    let sequence: String = genome.lines().skip(1).take_while(|line| !line.starts_with('>')).collect();
    let read = |name: &str, seq: &str| format!("@{name}\n{seq}\n+\n{}\n", "F".repeat(seq.len()));
    let long = &sequence.repeat(3)[..100_000];
    let reads = [
        read("zero", ""),
        read("one", "A"),
        read("unknown", &"N".repeat(150)),
        read("long", long),
        read("plain", &sequence[5000..5150]),
    ];
    fs::write(folder.join("odd.fq"), reads.concat()).expect("a file");
    let odd = folder.join("odd.fq");
    let out = folder.join("odd.sam");
    let said = run(["align", text(reference()), text(&odd), "-o", text(&out)]).assert_success().stderr;
    assert!(said.contains("1 reads are longer than 2000 bp and are written as unmapped"), "{said}");
    let sam = fs::read_to_string(&out).expect("SAM");
    let fields = |line: &str| -> Vec<String> { line.split('\t').map(str::to_owned).collect() };
    let records: Vec<Vec<String>> = sam.lines().filter(|line| !line.starts_with('@')).map(fields).collect();
    let flags: Vec<(&str, &str)> = records.iter().map(|fields| (fields[0].as_str(), fields[1].as_str())).collect();
    assert_eq!(flags, [("zero", "4"), ("one", "4"), ("unknown", "4"), ("long", "4"), ("plain", "0")]);
    assert_eq!(records[3][9], long, "an unmapped read keeps its bases");
    run(["align", text(reference()), text(&odd), "-o", text(&folder.join("odd.bam"))]).assert_success();
}

#[test]
fn indexes_that_are_not_the_right_ones() {
    let folder = scratch("index");
    let path = indexed(&folder);
    let reads = text(&data().normal[0]);
    let index = folder.join("genome.fa.gnm");
    let whole = fs::read(&index).expect("an index");
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    let refused = |parts: &[&str]| refused(&folder, &[text(&path), reads], 1, parts);
    fs::write(&index, flipped).expect("a file");
    refused(&["genome.fa.gnm", "damaged", "make the index again with `genuma index`"]);
    fs::write(&index, &whole[..middle]).expect("a file");
    refused(&["genome.fa.gnm", "make the index again"]);
    fs::remove_file(&index).expect("it was there");
    refused(&["genome.fa.gnm", "no index", "genuma index "]);
    fs::write(&index, whole).expect("a file");
    // The reference was changed after it was indexed.
    let genome = fs::read_to_string(&path).expect("a genome");
    fs::write(&path, genome.replacen("ACG", "ATG", 5)).expect("a file");
    refused(&["not an index of", "as it is now"]);
    // There is no index of this reference.
    fs::write(folder.join("none.fa"), "ACGT\n").expect("a file");
    let before = names(&folder);
    let ended = run(["index", text(&folder.join("none.fa"))]);
    assert!(ended.code == Some(1) && ended.stderr.contains("none.fa"), "{}", ended.stderr);
    assert_eq!(names(&folder), before);
}

#[test]
fn a_full_disk() {
    let folder = scratch("full");
    let (reference, reads) = (text(reference()), text(&data().normal[0]));
    let full = fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let ended = genuma().args(["align", reference, reads]).stdout(full).output().expect("genuma starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("error: standard output: No space left"), "{said}");
    // A limit on file sizes instead of a full disk: the system's error differs, but the effect on files is the same.
    for out in ["out.sam", "out.bam"] {
        let script = format!(
            "trap '' XFSZ; ulimit -f 64; exec {} align {reference} {reads} -o {out}",
            env!("CARGO_BIN_EXE_genuma")
        );
        let ended = Command::new("bash").args(["-c", &script]).current_dir(&folder).output().expect("a shell");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(1) && said.contains("File too large"), "{said}");
        assert!(said.contains(out), "{said}");
        assert_eq!(names(&folder), Vec::<String>::new(), "{out}");
    }
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let folder = scratch("interrupted");
    for (out, signal, code) in [("out.sam", Signal::INT, 130), ("out.bam", Signal::TERM, 143)] {
        // Endless reads: a pipe whose other end stays open.
        let mut child = genuma()
            .args(["align", text(reference()), "-", "-o", text(&folder.join(out))])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("genuma starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let feed = std::thread::spawn(move || {
            let reads = gunzip(&data().normal[0]);
            // Writing fails when genuma exits.
            while stdin.write_all(&reads).is_ok() {}
        });
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut said = String::new();
        while !said.contains("align begins") {
            assert!(stderr.read_line(&mut said).expect("lines") > 0, "it never began: {said}");
        }
        kill_process(Pid::from_child(&child), signal).expect("a process to signal");
        stderr.read_to_string(&mut said).expect("lines");
        assert_eq!(child.wait().expect("an end").code(), Some(code), "{said}");
        feed.join().expect("the pipe is closed");
        assert!(said.contains("interrupted"), "{said}");
        assert_eq!(names(&folder), Vec::<String>::new(), "{out}");
    }
}
