//! Unusable input and output locations: one line that says what, where and what to do, and no files under final
//! names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Data, RESULTS, called, data, gunzip, gzip, names, records, run, scratch, text};

/// Asserts that a call exits with `code` and one error line that contains all of `parts`, and leaves no result.
#[track_caller]
fn refused(args: &[String], code: i32, parts: &[&str]) {
    let ended = run(args);
    let out = args.iter().position(|a| a == "-o").map(|i| PathBuf::from(&args[i + 1])).expect("an output folder");
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    let errors: Vec<&str> = ended.stderr.lines().filter(|l| l.contains("error: ")).collect();
    let [error] = errors[..] else { panic!("one line of error, not {errors:?}") };
    for part in parts {
        assert!(error.contains(part), "'{part}' is not in: {error}");
    }
    let left = names(&out);
    assert!(left.iter().all(|name| !RESULTS.contains(&name.as_str())), "{left:?}");
    assert!(left.iter().all(|name| !name.contains("partial")), "{left:?}");
}

/// The simulated data with another file for the tumour's read 1.
fn with_first(file: PathBuf) -> Data {
    let mut other = data().clone();
    other.tumor[0] = file;
    other
}

#[test]
fn damaged_gzip() {
    let folder = scratch("gzip");
    let whole = fs::read(&data().tumor[0]).expect("reads");
    let (truncated, corrupt) = (folder.join("truncated.fq.gz"), folder.join("corrupt.fq.gz"));
    fs::write(&truncated, &whole[..whole.len() * 3 / 4]).expect("a file");
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle..middle + 64].fill(0x5a);
    fs::write(&corrupt, flipped).expect("a file");
    let out = folder.join("out");
    refused(&with_first(truncated).call(&out), 1, &["truncated.fq.gz: record ", "truncated, copy or make it again"]);
    refused(&with_first(corrupt).call(&out), 1, &["corrupt.fq.gz: record "]);
    assert!(!out.exists(), "a folder made in vain goes again");
}

/// A wrong file of known variants is found before the reads are counted.
#[test]
fn known_variants_are_checked_before_the_count() {
    let folder = scratch("known");
    let (known, out) = (folder.join("known.vcf"), folder.join("out"));
    for (content, words) in [
        ("<!DOCTYPE html>\n<html></html>\n", "known.vcf: line 1: not a VCF file"),
        ("##fileformat=VCFv4.2\n##contig=<ID=mouse1>\n", "has contig \"mouse1\" and others, but none of the reference"),
    ] {
        fs::write(&known, content).expect("a file");
        refused(&data().call_with(&out, &["--known", text(&known)]), 1, &[words]);
        assert!(!out.exists(), "no unit has begun");
    }
}

#[test]
fn records_that_are_not_right() {
    let folder = scratch("records");
    let fastq = gunzip(&data().tumor[0]);
    let all = records(&fastq);
    // Late in the file, where only the pass over all reads finds it.
    let at = all.len() - 5;
    let changed = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut record = all[at].to_vec();
        change(&mut record);
        let text = [all[..at].concat(), record, all[at + 1..].concat()].concat();
        with_first(gzip(folder.join(name), &text))
    };
    let place = format!(": record {}: ", at + 1);
    let out = folder.join("out");
    let longer = changed("longer.fq.gz", &|r| r.insert(r.len() - 1, b'I'));
    refused(&longer.call(&out), 1, &["longer.fq.gz", &place, "150 bases but 151 qualities"]);
    let renamed = changed("renamed.fq.gz", &|r| r.splice(1..1, *b"x").for_each(drop));
    refused(&renamed.call(&out), 1, &["renamed.fq.gz", &place, "mates must come in the same order"]);
    let letter = changed("letter.fq.gz", &|r| {
        let base = r.iter().position(|b| *b == b'\n').expect("a line end") + 10;
        r[base] = b'!';
    });
    refused(&letter.call(&out), 1, &["letter.fq.gz", &place, "'!' in the sequence is not a base"]);

    let fewer = with_first(gzip(folder.join("fewer.fq.gz"), &all[..at].concat()));
    refused(&fewer.call(&out), 1, &["fewer.fq.gz: ends after", "mates are missing"]);
    let odd = Data { tumor: vec![data().tumor[0].clone()], ..data().clone() };
    refused(&odd.call(&out), 2, &["tumor_1.fq.gz: has no mate file"]);
    let path = folder.join("alone");
    for (content, words) in [
        (&b"@HD\tVN:1.6\n"[..], "alone: is a SAM file, not FASTQ: convert it to BAM with samtools view -b"),
        (b"BAI\x01\x02\0\0\0", "alone: is an index of BAM (.bai)"),
        (b"NCBI.sra\x05\x03", "alone: is an SRA archive"),
        (b">chr1\nACGT\n", "alone: is a FASTA file"),
        (b"##fileformat=VCFv4.2\n", "alone: is a VCF file"),
    ] {
        fs::write(&path, content).expect("a file");
        refused(&Data { tumor: vec![path.clone()], ..data().clone() }.call(&out), 1, &[words]);
    }
    let alone = Data { tumor: vec![folder.clone()], ..data().clone() };
    refused(&alone.call(&out), 1, &[": is a folder: give the files in it"]);
    let several: Vec<u8> = all
        .iter()
        .flat_map(|record| {
            let end = record.iter().position(|b| *b == b'\n').expect("a line end") + 50;
            [&record[..end], b"\n", &record[end..]].concat()
        })
        .collect();
    let wrapped = with_first(gzip(folder.join("wrapped.fq.gz"), &several));
    refused(&wrapped.call(&out), 1, &["wrapped.fq.gz: record 1: ", "several lines", "seqtk seq -l 0"]);
}

#[test]
fn files_that_are_no_reads() {
    let folder = scratch("files");
    let out = folder.join("out");
    let made = |name: &str, text: &[u8]| {
        fs::write(folder.join(name), text).expect("a file");
        with_first(folder.join(name))
    };
    refused(&made("empty.fq", b"").call(&out), 1, &["empty.fq: is empty"]);
    let nothing = with_first(gzip(folder.join("nothing.fq.gz"), b""));
    refused(&nothing.call(&out), 1, &["nothing.fq.gz: is empty"]);
    refused(&made("reads.fa", b">x\nACGT\n").call(&out), 1, &["reads.fa: is a FASTA file, not FASTQ"]);
    refused(&with_first(folder.join("none.fq")).call(&out), 1, &["none.fq: cannot read: No such file"]);
    let twice = Data { normal: data().tumor.clone(), ..data().clone() };
    refused(&twice.call(&out), 1, &["are the same reads"]);
    let copy = folder.join("copy.fq.gz");
    fs::copy(&data().tumor[0], &copy).expect("a copy");
    let copied = Data { normal: vec![copy, data().normal[1].clone()], ..data().clone() };
    refused(&copied.call(&out), 1, &["copy.fq.gz", "are the same reads"]);
    assert!(!out.exists());
}

#[test]
fn references_that_are_none() {
    let folder = scratch("references");
    let out = folder.join("out");
    let made = |name: &str, text: &[u8]| {
        fs::write(folder.join(name), text).expect("a file");
        Data { reference: Some(folder.join(name)), ..data().clone() }
    };
    refused(&made("empty.fa", b"").call(&out), 1, &["empty.fa: is empty"]);
    refused(&made("no.fa", b"ACGT\n").call(&out), 1, &["no.fa: line 1: ", "instead of '>'"]);
    refused(&made("twice.fa", b">a\nAC\n>a\nAC\n").call(&out), 1, &["twice.fa: line 3: ", "\"a\" was used on line 1"]);
    let missing = Data { reference: Some(folder.join("none.fa")), ..data().clone() };
    refused(&missing.call(&out), 1, &["none.fa: cannot read"]);
}

#[test]
fn references_of_any_making_are_used() {
    let folder = scratch("other-references");
    let fasta = fs::read_to_string(data().folder.join("genome.fa")).expect("a genome");
    let calls = |path: &Path| {
        let vcf = String::from_utf8(gunzip(&path.join("somatic.vcf.gz"))).expect("UTF-8");
        vcf.lines().filter(|l| !l.starts_with("##")).collect::<Vec<_>>().join("\n")
    };
    let wrapped = fasta.to_lowercase().replace('\n', "\r\n");
    for (name, bytes) in [("crlf.fa", wrapped.into_bytes()), ("plain.fa", fasta.clone().into_bytes())] {
        let genome = folder.join(name);
        fs::write(&genome, bytes).expect("a file");
        let out = folder.join(format!("{name}.calls"));
        run(Data { reference: Some(genome), ..data().clone() }.call(&out)).assert_success();
        assert_eq!(calls(&out), calls(called()), "{name}");
    }
    let genome = gzip(folder.join("genome.fa.gz"), fasta.as_bytes());
    let out = folder.join("gzip.calls");
    run(Data { reference: Some(genome), ..data().clone() }.call(&out)).assert_success();
    assert_eq!(calls(&out), calls(called()));
}

#[test]
fn samples_of_different_read_length_are_called_with_a_warning() {
    let shorter = ["--read-length", "100", "--insert-mean", "300"];
    let size = ["--genome-length", "50000", "--contigs", "1", "--snvs", "8", "--indels", "0", "--svs", "0"];
    let long = Data::simulate("long", &size);
    let short = Data::simulate("short", &[size.as_slice(), &shorter].concat());
    let swapped = Data { normal: short.normal, ..long };
    let ended = run(swapped.call(&scratch("lengths"))).assert_success();
    // At the start, and again beside the results.
    let warnings: Vec<&str> = ended.stderr.lines().filter(|l| l.contains("warning: ")).collect();
    let warning = "genuma: warning: reads are 150 bp long in the tumour and 100 bp in the normal: this is allowed, and \
                   calls are made as usual; check that no file of another sample was given";
    assert_eq!(warnings, [warning; 2]);
}

#[test]
fn options_out_of_range() {
    let out = scratch("options").join("out");
    let refused = |options: &[&str], parts: &[&str]| refused(&data().call_with(&out, options), 2, parts);
    refused(&["-k", "16"], &["16 is not in 17..=32"]);
    refused(&["-k", "33"], &["33 is not in 17..=32"]);
    refused(&["--threads", "0"], &["0 is not in 1.."]);
    refused(&["--memory", "lots"], &["'lots' is not a size", "such as 8G"]);
    refused(&["--memory", "100k"], &["of memory is too little", "raise --memory or lower --threads"]);
    refused(&["--min-quality", "-1"], &["unexpected argument"]);
    refused(&["--min-quality", "NaN"], &["a number from 0 to 1000"]);
    refused(&["-v", "-q"], &["cannot be used with"]);
    assert!(!out.exists());
}

#[test]
fn places_that_cannot_be_written_to() {
    let folder = scratch("places");
    fs::write(folder.join("file"), "x").expect("a file");
    refused(&data().call(&folder.join("file")), 1, &["file: is not a folder: give the name of"]);
    refused(&data().call(Path::new("/proc/genuma")), 1, &["/proc/genuma: cannot create the output folder"]);
    let work = folder.join("file/work");
    let out = folder.join("out");
    refused(&data().call_with(&out, &["--work", text(&work)]), 1, &["file/work: cannot use the work folder"]);
    assert!(!out.exists());
}

/// A file system of a few pages; if it cannot be mounted, the reason is reported.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(folder: PathBuf, size: &str) -> Option<Tiny> {
        fs::create_dir_all(&folder).expect("a folder");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(&folder).output();
        if !mount.is_ok_and(|m| m.status.success()) {
            crate::common::skipped("a small file system cannot be mounted here (not root, or a container)");
            return None;
        }
        Some(Tiny(folder))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        // The next run removes the folder, or reports why it cannot.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn no_space_left() {
    let folder = scratch("space");
    if let Some(work) = Tiny::mount(folder.join("work"), "256k") {
        let out = folder.join("out");
        let options = ["--work", text(&work.0)];
        refused(&data().call_with(&out, &options), 1, &["work: ", "are free, but the files of", "--work"]);
        assert!(!out.exists());
        assert_eq!(names(&work.0), [""; 0]);
    }
    if let Some(out) = Tiny::mount(folder.join("tiny"), "64k") {
        let work = folder.join("elsewhere");
        let options = ["--work", text(&work)];
        refused(&data().call_with(&out.0, &options), 1, &["tiny/", "cannot write: No space left"]);
        assert_eq!(names(&out.0), [""; 0]);
        // Finished units are not lost.
        let resumed = folder.join("resumed");
        let ended = run(data().call_with(&resumed, &["--resume", "--work", text(&work)])).assert_success();
        assert!(!ended.stderr.contains("count begins"), "{}", ended.stderr);
        crate::common::assert_same(&resumed, called());
    }
}
