//! BAM, CRAM and BINSEQ files are called, counted, checked, tracked and aligned like the FASTQ files with the same
//! reads.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{
    Data, RunOutput, SharedFixture, assert_same, called, data, genuma, gunzip, installed, json, records, run, scratch,
    text,
};
use binseq::write::{BinseqWriterBuilder, Format};
use binseq::{BitSize, SequencingRecordBuilder};
use serde_json::Value;

/// The simulated genome with its index, and both samples aligned to it and sorted: first the normal, then the tumour.
fn aligned() -> &'static (PathBuf, [PathBuf; 2]) {
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
fn data_with_reads(files: [PathBuf; 2]) -> Data {
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
    let said = run(data_with_reads([normal, tumour]).call_with(&out, &["--threads", "2"])).assert_success().stderr;
    let lines = told(&out);
    let lost = |sample: &str| {
        let what = format!("{sample}: reads whose mate is not in the file, used without it (such as ");
        lines.iter().find(|line| line.0.starts_with(&what)).map_or(0, |line| line.1)
    };
    assert!(lost("tumour") > 10_000 && lost("normal") > 0, "{lines:?}");
    assert!(said.contains("tumour.bam: ") && said.contains("reads whose mate is not in the file"), "{said}");
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

/// Options of a CBQ, VBQ or BQ file.
#[derive(Clone, Copy)]
struct Made {
    format: Format,
    names: bool,
    qualities: bool,
    /// VBQ: blocks are compressed. Those of CBQ always are.
    packed: bool,
    /// VBQ and BQ: each record has a flag word, which genuma ignores.
    flags: bool,
    /// VBQ and BQ: bits per base. Two bits cannot encode N.
    bits: BitSize,
    block: usize,
}

const CBQ: Made = Made {
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
fn binseq(path: &Path, mates: &[&[u8]], of: Made) {
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
fn binseq_pair(folder: &Path, of: Made) -> [PathBuf; 2] {
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
fn as_files(folder: &Path, mates: &[Vec<u8>; 2]) -> [PathBuf; 2] {
    [0, 1].map(|mate| {
        let path = folder.join(format!("{mate}.fq"));
        fs::write(&path, &mates[mate]).expect("a file");
        path
    })
}

/// Records of aligned reads.
fn sam(reads: &[&Path], more: &[&str]) -> Vec<String> {
    let reads: Vec<&str> = reads.iter().map(|path| text(path)).collect();
    let said = run([&["align", text(&aligned().0)], &reads[..], more].concat()).assert_success().stdout;
    said.lines().filter(|line| !line.starts_with('@')).map(str::to_owned).collect()
}

/// The table of the k-mers of some files.
fn counted(folder: &Path, files: &[&Path]) -> Vec<u8> {
    let tsv = folder.join("counted.tsv");
    let files: Vec<&str> = files.iter().map(|path| text(path)).collect();
    run([&["kmers", "count"], &files[..], &["-o", text(&tsv)]].concat()).assert_success();
    fs::read(tsv).expect("a table")
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
    // The error where qualities are required.
    binseq(&path, &[&mates[0], &mates[1]], BQ);
    let ended = run(["kmers", "count", text(&path), "-o", text(&folder.join("none.tsv"))]);
    assert!(ended.code == Some(1) && ended.stderr.contains("has no qualities"), "{}", ended.stderr);
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
