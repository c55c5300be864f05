//! Output files: each is complete or missing, all of a run or none, and no other files are touched.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Data, RESULTS, assert_same, called, data, genuma, gunzip, names, records, run, scratch, text};

/// Asserts that a run fails with `code` and one error line that contains all of `parts`.
#[track_caller]
fn refused(args: &[impl AsRef<std::ffi::OsStr>], code: i32, parts: &[&str]) {
    let ended = run(args);
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    let errors: Vec<&str> = ended.stderr.lines().filter(|l| l.contains("error: ")).collect();
    let [error] = errors[..] else { panic!("one line of error, not {errors:?}") };
    parts.iter().for_each(|part| assert!(error.contains(part), "'{part}' is not in: {error}"));
}

/// Arguments of a count of some reads.
fn count<'a>(out: &'a Path, options: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["kmers", "count", "-t", "1", "--memory", "200M", text(&data().normal[0]), "-o", text(out)];
    args.extend(options);
    args
}

/// The partial file of `name` that a killed or concurrent run leaves.
fn partial(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}.0123456789abcdef.partial"))
}

#[test]
fn a_work_folder_that_holds_results_or_reads_is_refused() {
    let folder = scratch("apart");
    let (out, link) = (folder.join("calls"), folder.join("link"));
    let inside = out.join("inside");
    for made in [false, true] {
        if made {
            fs::create_dir(&out).expect("a folder");
            symlink("calls", &link).expect("a link");
        }
        let mut works = vec![out.clone(), out.join("."), folder.join("./calls/../calls")];
        works.extend(made.then(|| link.clone()));
        for work in works {
            let args = data().call_with(&out, &["--work", text(&work)]);
            refused(&args, 2, &[text(&out), "is in the work folder", "--work"]);
            let args = data().call_with(&inside, &["--work", text(&work)]);
            refused(&args, 2, &[text(&inside), "is in the work folder"]);
        }
        assert_eq!(out.exists(), made);
        assert!(names(&out).is_empty());
    }
    let mut reads = data().clone();
    reads.tumor[0] = out.join("tumor_1.fq.gz");
    fs::copy(&data().tumor[0], &reads.tumor[0]).expect("a copy");
    let args = reads.call_with(&folder.join("results"), &["--work", text(&link)]);
    refused(&args, 2, &["tumor_1.fq.gz", "is in the work folder"]);
    assert_eq!(names(&out), ["tumor_1.fq.gz"]);
}

#[test]
fn a_file_is_written_by_one_run_at_a_time() {
    let folder = scratch("once");
    let (out, histogram) = (folder.join("x.tsv"), folder.join("x.hist"));
    let lock = File::create(partial(&folder, "x.tsv")).expect("a file");
    lock.try_lock().expect("a lock");
    refused(&count(&out, &[]), 1, &[text(&out), "another run is writing it"]);
    assert_eq!(names(&folder), [".x.tsv.0123456789abcdef.partial"]);
    drop(lock);
    run(count(&out, &["--histogram", text(&histogram)])).assert_success();
    assert_eq!(names(&folder), ["x.hist", "x.tsv"]);

    let args = |k: usize| count(&out, &["-k", ["21", "31"][k % 2], "--histogram", text(&histogram)]);
    let expected = [0, 1].map(|k| {
        run(args(k)).assert_success();
        [&out, &histogram].map(|path| fs::read(path).expect("a file"))
    });
    let runs: Vec<_> =
        (0..6).map(|k| genuma().args(args(k)).stderr(Stdio::piped()).spawn().expect("genuma starts")).collect();
    let ended: Vec<_> = runs.into_iter().map(|run| run.wait_with_output().expect("an end")).collect();
    for run in ended.iter().filter(|run| !run.status.success()) {
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(1) && said.contains("another run is writing it"), "{said}");
    }
    assert!(ended.iter().any(|run| run.status.success()));
    assert_eq!(names(&folder), ["x.hist", "x.tsv"]);
    assert!(expected.contains(&[&out, &histogram].map(|path| fs::read(path).expect("a file"))));
}

#[test]
fn outputs_have_names_of_their_own() {
    let folder = scratch("names");
    let out = folder.join("x.tsv");
    refused(&count(&out, &["--histogram", text(&out)]), 1, &[text(&out), "two outputs have this name"]);
    assert!(names(&folder).is_empty());
}

#[test]
fn devices_pipes_and_links_stay_what_they_are() {
    let folder = scratch("kinds");
    let at = |name: &str| folder.join(name);
    let out = at("x.tsv");
    let write = |path: &Path| run(count(&out, &["--histogram", text(path)])).assert_success();
    write(&at("plain"));
    let written = fs::read(at("plain")).expect("a histogram");
    assert!(written.starts_with(b"1\t"));

    symlink("/dev/null", at("null")).expect("a link");
    write(&at("null"));
    assert!(fs::metadata(at("null")).expect("a device").file_type().is_char_device());
    fs::write(at("file"), "before").expect("a file");
    symlink("file", at("link")).expect("a link");
    write(&at("link"));
    assert_eq!(fs::read(at("file")).expect("a histogram"), written);
    assert!(["null", "link"].iter().all(|name| at(name).is_symlink()));

    assert!(Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo").success());
    let reader = std::thread::spawn({
        let pipe = at("pipe");
        move || fs::read(pipe).expect("a pipe")
    });
    write(&at("pipe"));
    assert_eq!(reader.join().expect("no panic"), written);
    assert!(fs::metadata(at("pipe")).expect("a pipe").file_type().is_fifo());

    // Output is appended between what the shell wrote before and after.
    let mut shell = Command::new("sh");
    shell.args([
        "-ec",
        r#"{ echo first; "$0" count -t 1 --memory 200M "$1" -o x.tsv --histogram /dev/stdout; echo last; } > all"#,
    ]);
    shell.args([env!("CARGO_BIN_EXE_genuma"), text(&data().normal[0])]).current_dir(&folder);
    assert!(shell.status().expect("sh").success());
    let all = fs::read(at("all")).expect("a file");
    assert!(all == [b"first\n", &written[..], b"last\n"].concat());

    // An attacker cannot prepare a link where the partial file will be written.
    fs::write(at("victim"), "precious").expect("a file");
    symlink("victim", at(".new.partial")).expect("a link");
    write(&at("new"));
    assert_eq!(fs::read(at("victim")).expect("a file"), b"precious");
}

#[test]
fn several_outputs_appear_together_or_not_at_all() {
    let folder = scratch("together");
    let taken = folder.join("taken");
    fs::create_dir(&taken).expect("a folder");
    let why = ["taken: cannot write: Is a directory"];
    for name in ["x.tsv", "x.gkt"] {
        for option in ["--histogram", "--json"] {
            refused(&count(&folder.join(name), &[option, text(&taken)]), 1, &why);
        }
    }
    let genome = folder.join("genome.fa");
    fs::copy(data().folder.join("genome.fa"), &genome).expect("a copy");
    run(["index", text(&genome)]).assert_success();
    let before = names(&folder);
    for name in ["x.sam", "x.bam"] {
        let out = folder.join(name);
        let reads = text(&data().normal[0]);
        let args = ["align", text(&genome), reads, "-o", text(&out), "--json", text(&taken)];
        refused(&args, 1, &why);
    }
    fs::write(folder.join("reads.fq"), "@a\nACGT\n+\nFFFF\n").expect("a file");
    let unmapped = "NR == 1 { print \"@SQ\\tSN:c\\tLN:9\"; print \"a\\t4\\t*\\t0\\t0\\t*\\t*\\t0\\t0\\tACGT\\tFFFF\" }";
    let (reads, out) = (folder.join("reads.fq"), folder.join("x.sam"));
    let options = ["--strategy", "default", "--reads", text(&reads), "-o", text(&out), "--json", text(&taken)];
    refused(&[&["run"][..], &options, &["--", "awk", unmapped]].concat(), 1, &why);
    fs::remove_file(reads).expect("a file");
    assert_eq!(names(&folder), before);

    let pages = folder.join("pages");
    fs::create_dir_all(pages.join("genuma-call.1")).expect("a folder");
    refused(&["man", text(&pages)], 1, &["genuma-call.1: cannot write: Is a directory"]);
    assert_eq!(names(&pages), ["genuma-call.1"]);

    let (pair, calls) = (folder.join("pair"), folder.join("calls"));
    fs::create_dir_all(pair.join("simulate.json")).expect("a folder");
    let small = ["--genome-length", "20000", "--snvs", "2", "--indels", "0", "--svs", "0"];
    let args =
        [&["bench", "simulate", "-o", text(&pair), "--depth-tumor", "1", "--depth-normal", "1"][..], &small].concat();
    refused(&args, 1, &["simulate.json: cannot write: Is a directory"]);
    assert_eq!(names(&pair), ["simulate.json"]);

    // Results of an earlier run are unchanged.
    fs::create_dir(&calls).expect("a folder");
    for name in RESULTS.iter().filter(|name| **name != "summary.json") {
        fs::write(calls.join(name), "of an earlier run").expect("a file");
    }
    fs::create_dir(calls.join("summary.json")).expect("a folder");
    refused(&data().call(&calls), 1, &["summary.json: cannot write: Is a directory"]);
    let mut left = names(&calls);
    // Finished units are kept for a run with --resume.
    left.retain(|name| name != ".work");
    assert_eq!(left.len(), RESULTS.len(), "{left:?}");
    for name in left.iter().filter(|name| *name != "summary.json") {
        assert_eq!(fs::read(calls.join(name)).expect("a file"), b"of an earlier run", "{name}");
    }
}

#[test]
fn a_work_folder_is_taken_up_however_a_kill_left_it() {
    for (name, files) in [
        ("empty", &[][..]),
        ("locked", &["genuma.lock"]),
        ("leftovers", &["genuma.lock", "count.bins", ".count.unit.0123456789abcdef.partial"]),
    ] {
        let out = scratch(name);
        let work = out.join(".work");
        fs::create_dir(&work).expect("a folder");
        files.iter().for_each(|file| fs::write(work.join(file), "x").expect("a file"));
        run(data().call(&out)).assert_success();
        assert_same(&out, called());
    }
}

#[test]
fn the_work_folder_may_be_a_link_and_hold_what_is_not_ours() {
    let folder = scratch("link");
    let (real, link, out) = (folder.join("real"), folder.join("link"), folder.join("out"));
    fs::create_dir(&real).expect("a folder");
    symlink("real", &link).expect("a link");
    run(data().call_with(&out, &["--work", text(&link)])).assert_success();
    assert_same(&out, called());
    assert!(link.is_symlink() && names(&real).is_empty(), "{:?}", names(&real));

    fs::write(real.join("genuma.lock"), "").expect("a file");
    fs::write(real.join("thesis.tex"), "x").expect("a file");
    run(data().call_with(&out, &["--work", text(&link)])).assert_success();
    assert_eq!(names(&real), ["thesis.tex"]);
}

#[test]
fn names_that_sam_forbids_are_refused_at_once() {
    let folder = scratch("forbidden");
    let genome = fs::read_to_string(data().folder.join("genome.fa")).expect("a genome");
    for (name, words) in [("chr,1", "holds ','"), ("*chr1", "starts with '*'"), ("chr\u{e9}", "holds byte 0xc3")] {
        let path = folder.join("genome.fa");
        let (_, rest) = genome.split_once('\n').expect("lines");
        fs::write(&path, format!(">{name}\n{rest}")).expect("a file");
        let others = Data { reference: Some(path.clone()), ..data().clone() };
        let out = folder.join("out");
        let parts = ["genome.fa: line 1: sequence name", words, "which SAM and VCF forbid: rename it"];
        refused(&others.call(&out), 1, &parts);
        assert!(!out.exists());
        refused(&["index", text(&path)], 1, &parts);
        assert_eq!(names(&folder), ["genome.fa"]);
    }
}

#[test]
fn more_memory_than_there_is_is_taken_as_all_of_it() {
    let folder = scratch("memory");
    let out = folder.join("x.tsv");
    let said = run(["kmers", "count", "-t", "1", "--memory", "20000T", text(&data().normal[0]), "-o", text(&out)])
        .assert_success()
        .stderr;
    assert!(said.contains("--memory: ") && said.contains("of this machine"), "{said}");
    let other = folder.join("y.tsv");
    run(count(&other, &[])).assert_success();
    assert!(fs::read(out).expect("a file") == fs::read(other).expect("a file"));
}

#[test]
fn a_table_is_a_file() {
    let folder = scratch("table");
    let out = folder.join("x.gkt");
    symlink("/dev/null", &out).expect("a link");
    refused(&count(&out, &[]), 1, &[text(&out), "not a pipe or a device"]);
    assert_eq!(names(&folder), ["x.gkt"]);
    // Through a link to a file.
    fs::remove_file(&out).expect("a link");
    symlink("real.gkt", &out).expect("a link");
    run(count(&out, &[])).assert_success();
    assert!(out.is_symlink());
    assert_eq!(names(&folder), ["real.gkt", "x.gkt"]);
}

#[test]
fn the_reads_of_one_simulated_sample_go_to_a_pipe() {
    let folder = scratch("simulated");
    let small = ["--genome-length", "60000", "--depth-tumor", "30", "--depth-normal", "40", "--snvs", "3"];
    let small = [&small[..], &["--indels", "0", "--svs", "0"]].concat();
    let simulate = |out: &str, more: &[&str]| -> Vec<String> {
        let all = [&["bench", "simulate", "-o", out][..], &small, more].concat();
        all.into_iter().map(str::to_owned).collect()
    };
    run(simulate(text(&folder.join("pair")), &[])).assert_success();
    let before = names(&folder);
    for sample in ["tumor", "normal"] {
        let piped = genuma()
            .args(simulate("-", &["--sample", sample, "-t", "3"]))
            .current_dir(&folder)
            .output()
            .expect("genuma starts");
        assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
        let mates = [1, 2].map(|mate| gunzip(&folder.join(format!("pair/{sample}_{mate}.fq.gz"))));
        let (one, two) = (records(&mates[0]), records(&mates[1]));
        assert!(one.len() > 100 && one.len() == two.len());
        let expected: Vec<u8> = one.iter().zip(&two).flat_map(|(one, two)| [*one, *two].concat()).collect();
        assert!(piped.stdout == expected, "{sample}");
    }
    assert_eq!(names(&folder), before);

    // Counted while it is simulated.
    let table = |name: &str| folder.join(name);
    let mut made =
        genuma().args(simulate("-", &["--sample", "tumor"])).stdout(Stdio::piped()).spawn().expect("genuma starts");
    let counted = genuma()
        .args(["kmers", "count", "-", "-o", text(&table("pipe.tsv"))])
        .stdin(made.stdout.take().expect("a pipe"))
        .output()
        .expect("genuma starts");
    assert!(counted.status.success() && made.wait().expect("an end").success());
    let files = [1, 2].map(|mate| folder.join(format!("pair/tumor_{mate}.fq.gz")));
    run(["kmers", "count", text(&files[0]), text(&files[1]), "-o", text(&table("files.tsv"))]).assert_success();
    assert!(fs::read(table("pipe.tsv")).expect("a table") == fs::read(table("files.tsv")).expect("a table"));

    // The reader closes the pipe early; and the disk is full.
    let mut child = genuma()
        .args(simulate("-", &["--sample", "tumor"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("genuma starts");
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("an end");
    assert!(ended.status.success() && ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
    let full = File::options().write(true).open("/dev/full").expect("a device");
    let ended = genuma().args(simulate("-", &["--sample", "tumor"])).stdout(full).output().expect("genuma starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("standard output"), "{said}");

    refused(&simulate("-", &[]), 2, &["add --sample tumor or --sample normal"]);
    refused(&simulate(text(&folder.join("x")), &["--sample", "tumor"]), 2, &["a folder gets both"]);
}

#[test]
fn a_call_names_what_it_replaces_and_writes_the_tables_asked_for() {
    let folder = scratch("again");
    let (out, maf, bedpe) = (folder.join("calls"), folder.join("x.maf"), folder.join("x.bedpe"));
    let tables = ["--maf", text(&maf), "--bedpe", text(&bedpe)];
    let named = ["--tumor-name", "met", "--normal-name", "blood"];
    let first = run(data().call_with(&out, &[tables.as_slice(), &named].concat())).assert_success();
    assert!(!first.stderr.contains("are replaced"), "{}", first.stderr);
    assert!(first.stderr.contains("small variants of calls that pass"), "{}", first.stderr);
    let vcf = String::from_utf8(crate::common::gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    assert!(vcf.contains("##normal_sample=blood\n##tumor_sample=met\n") && vcf.contains("\tFORMAT\tblood\tmet\n"));
    let passed = |line: &&str| line.split('\t').nth(6) == Some("PASS");
    let bases = |line: &&str| line.split('\t').nth(4).is_some_and(|alt| alt.bytes().all(|b| b.is_ascii_uppercase()));
    let small = vcf.lines().filter(|line| !line.starts_with('#')).filter(passed).filter(bases).count();
    let text_of = fs::read_to_string(&maf).expect("a MAF file");
    assert_eq!(text_of.lines().filter(|line| line.contains("\tmet\tblood\t")).count(), small);
    assert!(small > 0 && fs::read_to_string(&bedpe).expect("a BEDPE file").lines().count() > 1);

    let again = run(data().call_with(&out, &tables)).assert_success();
    let said = again.stderr.lines().find(|line| line.contains("will be replaced at the end")).expect("a line");
    for name in ["somatic.vcf.gz", "contigs.fa", "report.html", "summary.json", "x.maf", "x.bedpe"] {
        assert!(said.contains(name), "{said}");
    }
    // An output inside the work folder, or one that cannot be written, is refused at the start.
    let inside = out.join(".work/x.maf");
    refused(&data().call_with(&out, &["--maf", text(&inside)]), 2, &["x.maf", "is in the work folder"]);
    let nowhere = folder.join("none/x.bedpe");
    let ended = run(data().call_with(&out, &["--bedpe", text(&nowhere)]));
    assert!(ended.code == Some(1) && ended.stderr.contains("x.bedpe"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("count begins"), "{}", ended.stderr);
    refused(&data().call_with(&out, &["--tumor-name", "a b"]), 2, &["--tumor-name", "letters, digits"]);
    refused(&data().call_with(&out, &["--tumor-name", "x", "--normal-name", "x"]), 2, &["two samples have the name x"]);
}
