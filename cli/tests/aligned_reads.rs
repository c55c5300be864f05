//! Reads that were aligned are called, counted, checked, tracked and aligned as those of FASTQ are.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use common::{Data, assert_same, called, data, installed, run, scratch};
use serde_json::Value;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The genome of the made data with its index, and both samples aligned to it and sorted: the normal, then the tumour.
fn aligned() -> &'static (PathBuf, [PathBuf; 2]) {
    static MADE: OnceLock<(PathBuf, [PathBuf; 2])> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = scratch("aligned");
        let reference = folder.join("genome.fa");
        fs::copy(data().folder.join("genome.fa"), &reference).expect("a copy");
        run(["index", text(&reference)]).well();
        let made = [("normal", "NORMAL", &data().normal), ("tumour", "TUMOR", &data().tumor)].map(
            |(name, sample, mates)| {
                let bam = folder.join(format!("{name}.bam"));
                let group = format!("ID:{name}\\tSM:{sample}");
                let mates = [text(&mates[0]), text(&mates[1])];
                run(["align", text(&reference), mates[0], mates[1], "-R", &group, "-o", text(&bam)]).well();
                bam
            },
        );
        (reference, made)
    })
}

/// The made data, its reads in these files: the normal's, then the tumour's.
fn of(files: [PathBuf; 2]) -> Data {
    let [normal, tumour] = files;
    Data { normal: vec![normal], tumor: vec![tumour], ..data().clone() }
}

fn samtools(args: &[&str]) {
    let ended = Command::new("samtools").args(args).output().expect("samtools starts");
    assert!(ended.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// Lines of what a call says of its ledger that tell of aligned reads.
fn told(out: &Path) -> Vec<(String, u64)> {
    let summary = json(&out.join("summary.json"));
    let line = |line: &Value| {
        (line["what"].as_str().expect("words").to_owned(), line["count"].as_u64().expect("a number"))
    };
    let all = summary["ledger"]["lines"].as_array().expect("lines").iter().map(line);
    all.filter(|(what, _)| {
        ["records", "hard-clipped", "not in the file"].iter().any(|word| what.contains(word))
    })
    .collect()
}

#[test]
fn calls_are_those_of_fastq_whatever_the_order_of_records() {
    let (_, sorted) = aligned();
    let out = scratch("sorted");
    run(of(sorted.clone()).call_with(&out, &["--threads", "3"])).well();
    assert_same(&out, called());
    let lines = told(&out);
    assert!(
        lines.iter().any(|(what, n)| what == "tumour: records of aligned reads" && *n > 10_000),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|(what, n)| what == "tumour: supplementary records, skipped" && *n > 0),
        "{lines:?}"
    );
    assert!(
        !lines.iter().any(|(what, _)| what.contains("not in the file") || what.contains("clipped")),
        "{lines:?}"
    );

    if installed("samtools").is_none() {
        return;
    }
    // Sorted by name by another program, which says so of flags too, and read without a copy; the other sample stays FASTQ.
    let by_name = scratch("by-name").join("tumour.bam");
    samtools(&["sort", "-n", "-o", text(&by_name), text(&sorted[1])]);
    let out = scratch("mixed");
    let mixed = Data { tumor: vec![by_name], ..data().clone() };
    run(mixed.call_with(&out, &["--threads", "2", "--scratch", "0", "--memory", "1G"])).well();
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
    // One thread goes from the one file to the other with the same hands.
    let out = scratch("cram-then-bam");
    let mixed = of([cram("3.0", &sorted[0]), sorted[1].clone()]);
    run(mixed.call_with(&out, &["--threads", "1"])).well();
    assert_same(&out, called());
    // Some of the genome in lower case, as its repeats often are, and without an index; the calls are those of the very reference.
    fs::create_dir(folder.join("masked")).expect("a folder");
    // Outputs name the file.
    let masked = folder.join("masked/genome.fa");
    let mut bases = fs::read(reference).expect("a genome");
    let at = bases.iter().position(|&b| b == b'\n').expect("a line");
    bases[at..at + 20_000].make_ascii_lowercase();
    fs::write(&masked, &bases).expect("a file");
    let crams = [cram("3.0", &sorted[0]), cram("3.1", &sorted[1])];
    let out = scratch("from-cram");
    let data = Data { reference: Some(masked.clone()), ..of(crams.clone()) };
    run(data.call_with(&out, &["--threads", "3"])).well();
    assert_same(&out, called());

    // Decoded as samtools does it, alignments and all else aside.
    let counted = |file: &Path, more: &[&str]| {
        let tsv = folder.join("counted.tsv");
        run([&["count", text(file), "-o", text(&tsv)], more].concat()).well();
        fs::read(tsv).expect("a table")
    };
    let fastq = folder.join("samtools.fq");
    samtools(&[
        "fastq",
        "--reference",
        text(reference),
        "-0",
        text(&fastq),
        "-o",
        text(&fastq),
        text(&crams[1]),
    ]);
    let with = ["--reference", text(reference)];
    assert!(counted(&crams[1], &with) == counted(&fastq, &[]));

    // What is wrong with the reference is told.
    let said = |reference: Option<&Path>| {
        let tsv = folder.join("none.tsv");
        let mut args = vec!["count", text(&crams[0]), "-o", text(&tsv)];
        args.extend(reference.iter().flat_map(|path| ["--reference", text(path)]));
        let ended = run(args);
        assert_eq!(ended.code, Some(1));
        ended.stderr
    };
    let told = said(None);
    assert!(
        told.contains("is CRAM that cannot be read without its reference: give that with --reference"),
        "{told}"
    );
    let mut other = bases.clone();
    other[at + 1..at + 5].copy_from_slice(b"gggg");
    other[at + 9_000..at + 9_004].copy_from_slice(b"acgt");
    let differs = folder.join("differs.fa");
    fs::write(&differs, &other).expect("a file");
    let told = said(Some(&differs));
    assert!(told.contains("was written against another reference (their sums differ at record "), "{told}");
    fs::write(&differs, &bases[..at + 50]).expect("a file");
    let told = said(Some(&differs));
    assert!(told.contains("bases and not ") && told.contains("sequence \""), "{told}");
    fs::write(&differs, b">other\nACGT\n").expect("a file");
    let told = said(Some(&differs));
    assert!(told.contains(" has no sequence \""), "{told}");
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
                // Who has no room for it hangs up.
                let _ = std::io::copy(&mut fs::File::open(file).expect("a file"), &mut pipe);
            });
        }
    };
    feed();
    let out = scratch("piped");
    run(through.call_with(&out, &["--threads", "2"])).well();
    assert_same(&out, called());

    feed();
    let out = scratch("no-room");
    let ended = run(through.call_with(&out, &["--threads", "2", "--memory", "1G", "--scratch", "2M"]));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("reads from a pipe cannot be read again")
            && ended.stderr.contains("--scratch 1G"),
        "{}",
        ended.stderr
    );
    for options in [&["--resume"][..], &["--plan", "somewhere"]] {
        let ended = run(through.call_with(&out, options));
        assert!(ended.code == Some(2) && ended.stderr.contains("can be read once only"), "{}", ended.stderr);
    }
}

#[test]
fn a_call_in_parts_reads_them_whole() {
    let (_, sorted) = aligned();
    let (plan, out) = (scratch("plan"), scratch("parts"));
    let args = of(sorted.clone()).call_with(&out, &["--plan", text(&plan), "--shards", "2", "--parts", "1"]);
    run(args).well();
    let step = |step: &[&str]| run(["step", text(&plan)].iter().chain(step)).well();
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
    // Half of the normal's contigs: mates that lie on others are gone. And what is on the reverse strand of the tumour.
    let [normal, tumour] = ["normal.bam", "tumour.bam"].map(|name| folder.join(name));
    samtools(&["view", "-b", "-F", "4", "-q", "1", "-o", text(&normal), text(&sorted[0])]);
    samtools(&["view", "-b", "-F", "2064", "-o", text(&tumour), text(&sorted[1])]);
    let out = scratch("with-missing");
    let said = run(of([normal, tumour]).call_with(&out, &["--threads", "2"])).well().stderr;
    let lines = told(&out);
    let lost = |sample: &str| {
        let what =
            format!("{sample}: mates that are not in the file: their reads are taken without them (such as ");
        lines.iter().find(|line| line.0.starts_with(&what)).map_or(0, |line| line.1)
    };
    assert!(lost("tumour") > 10_000 && lost("normal") > 0, "{lines:?}");
    assert!(said.contains("tumour.bam: mates that are not in the file"), "{said}");
}

#[test]
fn other_verbs_say_the_same_of_them() {
    let (reference, sorted) = aligned();
    let folder = scratch("verbs");
    let path = |name: &str| folder.join(name);
    let [one, two] = [text(&data().tumor[0]), text(&data().tumor[1])];
    let [normal, bam] = [text(&sorted[0]), text(&sorted[1])];
    let (ours, theirs) = (path("bam.tsv"), path("fastq.tsv"));
    run(["count", bam, "-o", text(&ours), "--json", text(&path("count.json"))]).well();
    run(["count", one, two, "-o", text(&theirs)]).well();
    assert!(fs::read(&ours).expect("a table") == fs::read(&theirs).expect("a table"));
    let records = &json(&path("count.json"))["aligned"][0]["records"];
    assert!(records["supplementary"].as_u64().expect("a number") > 0 && records["lost"]["reads"] == 0);

    let fastq = [text(&data().normal[0]), text(&data().normal[1])];
    let check = |tumour: &[&str], normal: &[&str], name: &str| {
        let (json, out) = (path(name), ["check", "--tumor"]);
        let args = [&out[..], tumour, &["--normal"], normal, &["--json", text(&json)]].concat();
        run(args).well();
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
        run(args).well().stdout
    };
    assert_eq!(track(&[bam]), track(&[one, two]));

    // Collated, as reads come: then alignments are the same too, in the same order.
    let sam = |reads: &[&str]| {
        let said = run([&["align", text(reference)], reads].concat()).well().stdout;
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
        run(["align", text(reference), one, two, "-o", text(&sam_file)]).well();
        samtools(&["view", "-b", "-o", text(&collated), text(&sam_file)]);
        assert!(sam(&[text(&collated)]) == by_mate);
    }
}
