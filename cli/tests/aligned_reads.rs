//! BAM and CRAM files are called, counted, checked, tracked and aligned like the FASTQ files with the same
//! reads.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{
    Data, RunOutput, SharedFixture, assert_same, called, data, genuma, installed, json, run, scratch, text,
};
use serde_json::Value;

use crate::binseq_reads::{CBQ, binseq};

/// The simulated genome with its index, and both samples aligned to it and sorted: first the normal, then the tumour.
pub(super) fn aligned() -> &'static (PathBuf, [PathBuf; 2]) {
    static MADE: SharedFixture<(PathBuf, [PathBuf; 2])> = SharedFixture::new();
    MADE.get_or_init(|| {
        let folder = scratch("aligned");
        let reference = folder.join("genome.fa");
        fs::copy(data().folder.join("genome.fa"), &reference).expect("a copy");
        run(["index", text(&reference)]).assert_success();
        let made =
            [("normal", "NORMAL", &data().normal), ("tumour", "TUMOR", &data().tumor)].map(|(name, sample, mates)| {
                let bam = folder.join(format!("{name}.bam"));
                let group = format!("ID:{name}\\tSM:{sample}");
                let mates = [text(&mates[0]), text(&mates[1])];
                run(["align", text(&reference), mates[0], mates[1], "-R", &group, "-o", text(&bam)]).assert_success();
                bam
            });
        (reference, made)
    })
}

/// The simulated pair, with these files as reads: first the normal's, then the tumour's.
pub(super) fn data_with_reads(files: [PathBuf; 2]) -> Data {
    let [normal, tumour] = files;
    Data { normal: vec![normal], tumor: vec![tumour], ..data().clone() }
}

fn samtools(args: &[&str]) {
    let ended = Command::new("samtools").args(args).output().expect("samtools starts");
    assert!(ended.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// The ledger lines of a call about aligned reads.
fn told(out: &Path) -> Vec<(String, u64)> {
    let summary = json(&out.join("summary.json"));
    let line = |line: &Value| {
        (line["description"].as_str().expect("words").to_owned(), line["count"].as_u64().expect("a number"))
    };
    let all = summary["stages"].as_array().expect("lines").iter().map(line);
    all.filter(|(what, _)| ["records", "hard-clipped", "not in the file"].iter().any(|word| what.contains(word)))
        .collect()
}

#[test]
fn calls_are_those_of_fastq_whatever_the_order_of_records() {
    let (_, sorted) = aligned();
    let out = scratch("sorted");
    run(data_with_reads(sorted.clone()).call_with(&out, &["--threads", "3"])).assert_success();
    assert_same(&out, called());
    let lines = told(&out);
    assert!(lines.iter().any(|(what, n)| what == "tumour: records of aligned reads" && *n > 10_000), "{lines:?}");
    assert!(lines.iter().any(|(what, n)| what == "tumour: supplementary records, skipped" && *n > 0), "{lines:?}");
    assert!(!lines.iter().any(|(what, _)| what.contains("not in the file") || what.contains("clipped")), "{lines:?}");

    if installed("samtools").is_none() {
        return;
    }
    // One sample sorted by name by another program, with other flags, and read without packed reads; the other sample
    // is FASTQ.
    let by_name = scratch("by-name").join("tumour.bam");
    samtools(&["sort", "-n", "-o", text(&by_name), text(&sorted[1])]);
    let out = scratch("mixed");
    let mixed = Data { tumor: vec![by_name], ..data().clone() };
    run(mixed.call_with(&out, &["--threads", "2", "--scratch", "0", "--memory", "1G"])).assert_success();
    assert_same(&out, called());
}

#[test]
fn cram_is_called_as_what_it_was_made_of() {
    if installed("samtools").is_none() {
        return;
    }
    let (reference, sorted) = aligned();
    let folder = scratch("cram");
    let cram = |version: &str, from: &Path| {
        let to = folder.join(format!("{version}-{}", from.file_name().expect("a name").to_string_lossy()));
        let options = format!("cram,version={version}");
        samtools(&["view", "-O", &options, "-T", text(reference), "-o", text(&to), text(from)]);
        to
    };
    // One thread reads one file after the other with the same buffers.
    let out = scratch("cram-then-bam");
    let mixed = data_with_reads([cram("3.0", &sorted[0]), sorted[1].clone()]);
    run(mixed.call_with(&out, &["--threads", "1"])).assert_success();
    assert_same(&out, called());
    // Parts of the genome in lower case, as repeats often are, and without an index: the calls are the same.
    fs::create_dir(folder.join("masked")).expect("a folder");
    // Outputs contain the file name.
    let masked = folder.join("masked/genome.fa");
    let mut bases = fs::read(reference).expect("a genome");
    let at = bases.iter().position(|&b| b == b'\n').expect("a line");
    bases[at..at + 20_000].make_ascii_lowercase();
    fs::write(&masked, &bases).expect("a file");
    let crams = [cram("3.0", &sorted[0]), cram("3.1", &sorted[1])];
    let out = scratch("from-cram");
    let data = Data { reference: Some(masked.clone()), ..data_with_reads(crams.clone()) };
    run(data.call_with(&out, &["--threads", "3"])).assert_success();
    assert_same(&out, called());

    // Counts of the reads as samtools decodes them.
    let counted = |file: &Path, more: &[&str]| {
        let tsv = folder.join("counted.tsv");
        run([&["kmers", "count", text(file), "-o", text(&tsv)], more].concat()).assert_success();
        fs::read(tsv).expect("a table")
    };
    let fastq = folder.join("samtools.fq");
    samtools(&["fastq", "--reference", text(reference), "-0", text(&fastq), "-o", text(&fastq), text(&crams[1])]);
    let with = ["--reference", text(reference)];
    assert!(counted(&crams[1], &with) == counted(&fastq, &[]));

    // Errors in the reference are reported.
    let said = |reference: Option<&Path>| {
        let tsv = folder.join("none.tsv");
        let mut args = vec!["kmers", "count", text(&crams[0]), "-o", text(&tsv)];
        args.extend(reference.iter().flat_map(|path| ["--reference", text(path)]));
        let ended = run(args);
        assert_eq!(ended.code, Some(1));
        ended.stderr
    };
    let told = said(None);
    assert!(
        told.contains("is CRAM that cannot be decoded without its reference: give the reference with --reference"),
        "{told}"
    );
    let mut other = bases.clone();
    other[at + 1..at + 5].copy_from_slice(b"gggg");
    other[at + 9_000..at + 9_004].copy_from_slice(b"acgt");
    let differs = folder.join("differs.fa");
    fs::write(&differs, &other).expect("a file");
    let told = said(Some(&differs));
    assert!(told.contains("was made with another reference (checksums differ at record "), "{told}");
    fs::write(&differs, &bases[..at + 50]).expect("a file");
    let told = said(Some(&differs));
    assert!(told.contains(" bases, but ") && told.contains("sequence \""), "{told}");
    fs::write(&differs, b">other\nACGT\n").expect("a file");
    let told = said(Some(&differs));
    assert!(told.contains(" has no sequence \""), "{told}");
}

/// htslib finds the reference of a CRAM file by the MD5 sums of its header in the folders of `REF_PATH`.
#[test]
fn a_cram_reference_is_found_by_ref_path() {
    if installed("samtools").is_none() {
        return;
    }
    let (reference, sorted) = aligned();
    let folder = scratch("ref-path");
    let cram = folder.join("normal.cram");
    samtools(&["view", "-C", "-T", text(reference), "-o", text(&cram), text(&sorted[0])]);
    let header = Command::new("samtools").args(["view", "-H", text(&cram)]).output().expect("samtools starts").stdout;
    let header = String::from_utf8(header).expect("UTF-8");
    let fasta = fs::read_to_string(reference).expect("a genome");
    let cache = folder.join("cache");
    let mut paths = Vec::new();
    for line in header.lines().filter(|line| line.starts_with("@SQ")) {
        let value = |tag: &str| line.split('\t').find_map(|field| field.strip_prefix(tag)).expect("a field");
        let record = fasta.split('>').find(|record| record.split_whitespace().next() == Some(value("SN:")));
        let bases: String = record.expect("a sequence").lines().skip(1).collect();
        let (first, rest) = value("M5:").split_at(2);
        fs::create_dir_all(cache.join(first)).expect("a folder");
        paths.push(cache.join(first).join(rest));
        fs::write(&paths[paths.len() - 1], bases.to_uppercase()).expect("a file");
    }
    let tsv = folder.join("counted.tsv");
    let count = |variable: &str, value: &str, more: &[&str]| {
        let mut command = genuma();
        command.args(["kmers", "count", text(&cram), "-o", text(&tsv)]).args(more);
        let output = command.env_remove("REF_CACHE").env_remove("REF_PATH").env(variable, value).output();
        let output = output.expect("genuma starts");
        let table = output.status.success().then(|| fs::read(&tsv).expect("a table"));
        table.ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let expected = count("REF_PATH", "", &["--reference", text(reference)]).expect("a table");
    let template = format!("{}/%2s/%s", text(&cache));
    assert!(count("REF_CACHE", &template, &[]).as_ref() == Ok(&expected));
    assert!(count("REF_PATH", &format!("/none:{template}"), &[]).as_ref() == Ok(&expected));

    let error = count("REF_PATH", "https://example.org/%s", &[]).expect_err("no folder");
    assert!(error.contains("cannot be decoded without its reference"), "{error}");
    for path in &paths {
        fs::remove_file(path).expect("removed");
    }
    let error = count("REF_PATH", &format!("{template}:https://example.org/%s"), &[]).expect_err("no file");
    let expected =
        ["cannot be read by REF_CACHE or REF_PATH (no such file: ", "are not fetched: https://example.org/%s"];
    assert!(expected.iter().all(|words| error.contains(words)), "{error}");
}

#[test]
fn reads_of_pipes_are_called_by_way_of_their_copy() {
    let folder = scratch("pipes");
    let piped = |files: &[PathBuf]| {
        let pipe = |file: &PathBuf| {
            let pipe = folder.join(file.file_name().expect("a name"));
            assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
            pipe
        };
        files.iter().map(pipe).collect::<Vec<_>>()
    };
    let data = data();
    let through = Data { tumor: piped(&data.tumor), normal: piped(&data.normal), ..data.clone() };
    let feed = || {
        let pairs = through.tumor.iter().zip(&data.tumor).chain(through.normal.iter().zip(&data.normal));
        for (pipe, file) in pairs.map(|(pipe, file)| (pipe.clone(), file.clone())) {
            std::thread::spawn(move || {
                let mut pipe = fs::File::options().write(true).open(pipe).expect("a pipe");
                // The reader closes the pipe if it has no room.
                let _ = std::io::copy(&mut fs::File::open(file).expect("a file"), &mut pipe);
            });
        }
    };
    feed();
    let out = scratch("piped");
    run(through.call_with(&out, &["--threads", "2"])).assert_success();
    assert_same(&out, called());

    feed();
    let out = scratch("no-room");
    let ended = run(through.call_with(&out, &["--threads", "2", "--memory", "1G", "--scratch", "2M"]));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("reads from a pipe cannot be read again") && ended.stderr.contains("--scratch 1G"),
        "{}",
        ended.stderr
    );
    for options in [&["--resume"][..], &["--plan", "somewhere"]] {
        feed();
        let ended = run(through.call_with(&out, options));
        assert!(ended.code == Some(2) && ended.stderr.contains("can be read only once"), "{}", ended.stderr);
    }
}

/// Runs genuma with these bytes on a pipe as standard input, the first bytes one by one.
fn run_with_stdin(args: &[&str], bytes: &[u8]) -> RunOutput {
    let mut child = genuma()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("genuma starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            let (slow, rest) = bytes.split_at(bytes.len().min(40));
            for byte in slow {
                std::thread::sleep(std::time::Duration::from_millis(2));
                // genuma closes the pipe after an error.
                let _ = stdin.write_all(&[*byte]);
            }
            let _ = stdin.write_all(rest);
        });
        child.wait_with_output().expect("an end")
    });
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    RunOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn bam_and_cram_of_pipes_are_read_as_those_of_files() {
    let (reference, sorted) = aligned();
    let folder = scratch("aligned-pipes");
    let bam = fs::read(&sorted[0]).expect("a file");
    let cram = folder.join("tumour.cram");
    let with_cram = installed("samtools").is_some();
    if with_cram {
        samtools(&["view", "-C", "-T", text(reference), "-o", text(&cram), text(&sorted[1])]);
    } else {
        fs::copy(&sorted[1], &cram).expect("a copy");
    }
    let pipes = ["normal", "tumour"].map(|name| folder.join(name));
    for (pipe, file) in pipes.iter().zip([&sorted[0], &cram]) {
        assert!(Command::new("mkfifo").arg(pipe).status().expect("mkfifo").success());
        let (pipe, file) = (pipe.clone(), file.clone());
        std::thread::spawn(move || fs::copy(file, pipe).expect("all is read"));
    }
    let out = scratch("aligned-piped");
    run(data_with_reads(pipes).call_with(&out, &["--threads", "2"])).assert_success();
    assert_same(&out, called());

    let tsv = folder.join("counted.tsv");
    let expected = counted(&folder, &[&sorted[0]]);
    let count = ["kmers", "count", "-", "-o", text(&tsv), "-t", "2"];
    run_with_stdin(&count, &bam).assert_success();
    assert!(fs::read(&tsv).expect("a table") == expected);
    let file = fs::File::open(&sorted[0]).expect("a file");
    fs::remove_file(&tsv).expect("a table");
    assert!(genuma().args(count).stdin(file).status().expect("genuma starts").success());
    assert!(fs::read(&tsv).expect("a table") == expected);
    // A file without its end-of-file block is read, with one warning, if its last block is whole.
    let no_end = folder.join("no_end.bam");
    fs::write(&no_end, &bam[..bam.len() - 28]).expect("written");
    let of_file = ["kmers", "count", text(&no_end), "-o", text(&tsv), "-t", "2"];
    let warned = run(of_file).assert_success().stderr;
    assert_eq!(warned.matches("no_end.bam: has no end-of-file block; its last block is whole").count(), 1, "{warned}");
    assert!(fs::read(&tsv).expect("a table") == expected);
    fs::write(&no_end, &bam[..bam.len() - 29]).expect("written");
    let ended = run(of_file);
    assert!(ended.code == Some(1) && ended.stderr.contains("no_end.bam: has no end-of-file block: it is truncated"));
    let align = |file| ["align", text(reference), file, "-q"];
    let alignments =
        |sam: String| sam.lines().filter(|line| !line.starts_with('@')).map(str::to_owned).collect::<Vec<_>>();
    let plain = alignments(run(align(text(&sorted[0]))).assert_success().stdout);
    assert!(alignments(run_with_stdin(&align("-"), &bam).assert_success().stdout) == plain && plain.len() > 1000);
    if with_cram {
        let cram = fs::read(&cram).expect("a file");
        let with = [&count[..], &["--reference", text(reference)]].concat();
        run_with_stdin(&with, &cram).assert_success();
        assert!(fs::read(&tsv).expect("a table") == counted(&folder, &[&sorted[1]]));
        let ended = run_with_stdin(&with, &cram[..cram.len() - 38]);
        assert!(ended.code == Some(1) && ended.stderr.contains("-: has no end-of-file block"), "{}", ended.stderr);
    }
    // Data that is cut off between two blocks is noticed at the end of the file.
    fs::remove_file(&tsv).expect("a table");
    for args in [&count[..], &align("-")] {
        for cut in [28, 100] {
            let ended = run_with_stdin(args, &bam[..bam.len() - cut]);
            assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.stderr);
            assert!(ended.stderr.contains("-: has no end-of-file block"), "{args:?}: {}", ended.stderr);
        }
    }
    assert!(!tsv.exists());
    // Commands that read their input more than once refuse pipes.
    let ended = run_with_stdin(&[&count[..], &["--resume"]].concat(), &bam);
    assert!(ended.code != Some(0) && !tsv.exists(), "{}", ended.stderr);
    let cbq = folder.join("reads.cbq");
    binseq(&cbq, &[b"@a\nACGT\n+\nFFFF\n"], CBQ);
    let ended = run_with_stdin(&count, &fs::read(&cbq).expect("a file"));
    assert!(ended.code == Some(1) && ended.stderr.contains("CBQ"), "{}", ended.stderr);
    let ended = run_with_stdin(&count, b"");
    assert!(ended.code == Some(1) && ended.stderr.contains("is empty"), "{}", ended.stderr);
}

#[test]
fn a_call_in_parts_reads_them_whole() {
    let (_, sorted) = aligned();
    let (plan, out) = (scratch("plan"), scratch("parts"));
    let args =
        data_with_reads(sorted.clone()).call_with(&out, &["--plan", text(&plan), "--shards", "2", "--partitions", "1"]);
    run(args).assert_success();
    let step = |step: &[&str]| run(["step", text(&plan)].iter().chain(step)).assert_success();
    let each = |name: &str| ["1", "2"].into_iter().for_each(|shard| drop(step(&[name, shard])));
    each("scatter");
    step(&["count", "1"]);
    step(&["pick"]);
    each("label");
    step(&["assemble"]);
    step(&["place"]);
    each("recruit");
    step(&["finish"]);
    assert_same(&out, called());
    assert!(told(&out).iter().any(|(what, _)| what == "tumour: records of aligned reads"));
}

#[test]
fn missing_mates_are_told_and_their_reads_taken() {
    if installed("samtools").is_none() {
        return;
    }
    let (_, sorted) = aligned();
    let folder = scratch("missing");
    // Half of the normal's contigs, so that mates on other contigs are missing; and the reads of the tumour on the
    // reverse strand.
    let [normal, tumour] = ["normal.bam", "tumour.bam"].map(|name| folder.join(name));
    samtools(&["view", "-b", "-F", "4", "-q", "1", "-o", text(&normal), text(&sorted[0])]);
    samtools(&["view", "-b", "-F", "2064", "-o", text(&tumour), text(&sorted[1])]);
    let out = scratch("with-missing");
    let incomplete = data_with_reads([normal, tumour]);
    let said = run(incomplete.call_with(&out, &["--threads", "2"])).assert_success().stderr;
    let lines = told(&out);
    let lost = |sample: &str| {
        let what = format!("{sample}: reads whose mate is not in the file, used without it (such as ");
        lines.iter().find(|line| line.0.starts_with(&what)).map_or(0, |line| line.1)
    };
    assert!(lost("tumour") > 10_000 && lost("normal") > 0, "{lines:?}");
    assert!(said.contains("tumour.bam: ") && said.contains("reads whose mate is not in the file"), "{said}");
    let warnings = json(&out.join("summary.json"))["warnings"].to_string();
    assert!(warnings.contains("incomplete_reads"), "{warnings}");
    let strict = run(incomplete.call_with(&scratch("with-missing-strict"), &["--strict"]));
    assert!(strict.code == Some(1) && strict.stderr.contains("because of --strict"), "{}", strict.stderr);
}

#[test]
fn other_verbs_say_the_same_of_them() {
    let (reference, sorted) = aligned();
    let folder = scratch("verbs");
    let path = |name: &str| folder.join(name);
    let [one, two] = [text(&data().tumor[0]), text(&data().tumor[1])];
    let [normal, bam] = [text(&sorted[0]), text(&sorted[1])];
    let (ours, theirs) = (path("bam.tsv"), path("fastq.tsv"));
    run(["kmers", "count", bam, "-o", text(&ours), "--json", text(&path("count.json"))]).assert_success();
    run(["kmers", "count", one, two, "-o", text(&theirs)]).assert_success();
    assert!(fs::read(&ours).expect("a table") == fs::read(&theirs).expect("a table"));
    let records = &json(&path("count.json"))["aligned"][0]["records"];
    assert!(records["supplementary"].as_u64().expect("a number") > 0 && records["mate_missing"]["num_reads"] == 0);

    let fastq = [text(&data().normal[0]), text(&data().normal[1])];
    let check = |tumour: &[&str], normal: &[&str], name: &str| {
        let (json, out) = (path(name), ["check", "--tumor"]);
        let args = [&out[..], tumour, &["--normal"], normal, &["--json", text(&json)]].concat();
        run(args).assert_success();
        let mut value = self::json(&json);
        let map = value.as_object_mut().expect("an object");
        map.remove("command");
        assert_eq!(map.remove("aligned").expect("there").is_null(), tumour.len() == 2);
        value
    };
    assert_eq!(check(&[bam], &[normal], "bam.json"), check(&[one, two], &fastq, "fastq.json"));

    let calls = called().join("somatic.vcf.gz");
    let track = |reads: &[&str]| {
        let args = [&["track", text(&calls), "--reference", text(reference)], reads].concat();
        run(args).assert_success().stdout
    };
    assert_eq!(track(&[bam]), track(&[one, two]));

    // Collated reads keep their order, so that the alignments have the same order too.
    let sam = |reads: &[&str]| {
        let said = run([&["align", text(reference)], reads].concat()).assert_success().stdout;
        let records = said.lines().filter(|line| !line.starts_with('@'));
        records.map(str::to_owned).collect::<Vec<_>>()
    };
    let by_mate = sam(&[one, two]);
    let from_sorted = sam(&[bam]);
    let names = |records: &[String]| {
        let name = |record: &String| record.split('\t').next().map(str::to_owned);
        let mut names: Vec<_> = records
            .iter()
            .filter(|record| {
                let flags: u32 = record.split('\t').nth(1).and_then(|f| f.parse().ok()).expect("flags");
                flags & 0x900 == 0
            })
            .map(name)
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&from_sorted), names(&by_mate));
    if installed("samtools").is_some() {
        let (sam_file, collated) = (path("collated.sam"), path("collated.bam"));
        run(["align", text(reference), one, two, "-o", text(&sam_file)]).assert_success();
        samtools(&["view", "-b", "-o", text(&collated), text(&sam_file)]);
        assert!(sam(&[text(&collated)]) == by_mate);
    }
}

/// Records of aligned reads.
pub(super) fn sam(reads: &[&Path], more: &[&str]) -> Vec<String> {
    let reads: Vec<&str> = reads.iter().map(|path| text(path)).collect();
    let said = run([&["align", text(&aligned().0)], &reads[..], more].concat()).assert_success().stdout;
    said.lines().filter(|line| !line.starts_with('@')).map(str::to_owned).collect()
}

/// The table of the k-mers of some files.
pub(super) fn counted(folder: &Path, files: &[&Path]) -> Vec<u8> {
    let tsv = folder.join("counted.tsv");
    let files: Vec<&str> = files.iter().map(|path| text(path)).collect();
    run([&["kmers", "count"], &files[..], &["-o", text(&tsv)]].concat()).assert_success();
    fs::read(tsv).expect("a table")
}

#[test]
fn cram_that_the_decoder_panics_on_is_an_error_of_one_line() {
    if installed("samtools").is_none() {
        return;
    }
    // Version 2.1 has no flag for a read without bases. samtools reads its bases as `=`.
    let folder = scratch("decoder-panic");
    let [sam, cram] = ["x.sam", "x.cram"].map(|name| folder.join(name));
    fs::write(&sam, "@SQ\tSN:c\tLN:100\nr\t0\tc\t1\t9\t10M\t*\t0\t0\t*\t*\n").expect("a file");
    let options = ["--output-fmt-option", "version=2.1", "--output-fmt-option", "no_ref"];
    samtools(&[&["view", "-C", "-o", text(&cram)], &options[..], &[text(&sam)]].concat());
    let ended = run(["kmers", "count", "-q", text(&cram), "-o", text(&folder.join("x.gkt"))]);
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{}", ended.stderr);
    assert!(ended.stderr.contains("x.cram: record 1: cannot be decoded"), "{}", ended.stderr);
}
