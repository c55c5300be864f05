//! A call whose inputs are not what they should be ends with an error, or with `--force` with a warning in all results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use serde_json::Value;

use crate::common::{
    Data, RunOutput, SharedFixture, called, data, filters, genuma, gunzip, gzip, installed, json, names,
    read_without_provenance, run, scratch, text,
};

/// A pair with many changes and many normal cells in the tumour.
#[track_caller]
fn pair(name: &str, seed: &str) -> Data {
    let size = ["--genome-length", "150000", "--contigs", "1", "--seed", seed];
    let changes = ["--snvs", "60", "--indels", "10", "--svs", "0", "--purity", "0.6"];
    Data::simulate(name, &[&size[..], &changes].concat())
}

/// Asserts that the call fails with these words and writes nothing, and that with `--force` the results carry them.
/// Returns the output of the call that fails.
#[track_caller]
pub fn assert_withheld(data: &Data, out: &Path, topic: &str, words: &str) -> RunOutput {
    let ended = run(data.call(out));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains(words) && ended.stderr.contains("--force"), "{}", ended.stderr);
    assert!(names(out).iter().all(|name| name == ".work"), "{:?}", names(out));
    // The units are not repeated.
    let forced = run(data.call_with(out, &["--force", "--resume"])).assert_success();
    assert!(forced.stderr.contains(words), "{}", forced.stderr);
    assert_warned(out, topic, words);
    ended
}

#[track_caller]
fn assert_warned(out: &Path, topic: &str, words: &str) {
    let header = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    let mut lines = header.lines().take_while(|line| line.starts_with("##"));
    assert!(lines.any(|line| line.starts_with("##genumaWarning=") && line.contains(words)), "{header}");
    let warnings = json(&out.join("summary.json"))["warnings"].clone();
    let warning = warnings.as_array().expect("a list").iter().find(|warning| warning["topic"] == topic);
    assert!(warning.is_some_and(|warning| warning["message"].as_str().expect("text").contains(words)), "{warnings}");
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    let head = page.find("class=\"warning\"").expect("a warning");
    assert!(head < page.find("<main>").expect("the page"));
}

#[test]
fn a_good_pair_has_no_warning() {
    let summary = json(&called().join("summary.json"));
    assert_eq!(summary["warnings"], Value::Array(Vec::new()));
    let header = String::from_utf8(gunzip(&called().join("somatic.vcf.gz"))).expect("UTF-8");
    assert!(!header.contains("genumaWarning"));
    let pair = header.lines().find_map(|line| line.strip_prefix("##genumaPair=<ID=")).expect("a line");
    assert!(pair.contains(",Normal=") && pair.contains(",NormalKmerDepth=") && pair.contains(",Relation="), "{pair}");
    assert!(!fs::read_to_string(called().join("report.html")).expect("a report").contains("class=\"warning\""));
}

#[test]
fn the_reference_of_another_genome_withholds_the_results() {
    let mut own = pair("reference", "21");
    own.reference = pair("other-reference", "22").reference;
    assert_withheld(&own, &scratch("reference-calls"), "wrong_reference", "do not align to the reference");
}

#[test]
fn a_part_of_the_reference_withholds_the_results() {
    let mut own = data().clone();
    let whole = fs::read_to_string(own.reference.as_ref().expect("a reference")).expect("FASTA");
    let second = whole[1..].find('>').expect("two contigs") + 1;
    let part = scratch("part").join("part.fa");
    fs::write(&part, &whole[second..]).expect("a file");
    own.reference = Some(part);
    assert_withheld(&own, &scratch("part-calls"), "wrong_reference", "do not align to the reference");
}

/// A pair that is large enough to say that the normal has no DNA of another person.
fn large_pair() -> &'static Data {
    static MADE: SharedFixture<Data> = SharedFixture::new();
    MADE.get_or_init(|| simulate_large_pair("large", &[]))
}

#[track_caller]
fn simulate_large_pair(name: &str, options: &[&str]) -> Data {
    let size = ["--genome-length", "1000000", "--contigs", "2", "--seed", "23"];
    let changes = ["--snvs", "60", "--indels", "10", "--svs", "0", "--purity", "0.6"];
    Data::simulate(name, &[&size[..], &changes, options].concat())
}

#[test]
fn exchanged_samples_withhold_the_results() {
    let own = large_pair().clone();
    let exchanged = Data { tumor: own.normal.clone(), normal: own.tumor.clone(), ..own.clone() };
    assert_withheld(
        &exchanged,
        &scratch("exchanged-calls"),
        "exchanged_samples",
        "files of tumour and normal are probably swapped",
    );
    let out = scratch("right-calls");
    run(own.call(&out)).assert_success();
    assert_eq!(json(&out.join("summary.json"))["warnings"], Value::Array(Vec::new()));
    assert!(filters(&out).iter().filter(|filter| *filter == "PASS").count() > 40);
}

#[test]
fn a_normal_exchanged_with_the_second_tumour_withholds_the_results() {
    let own = large_pair();
    // Other reads of the same tumour and normal.
    let again = simulate_large_pair("large-again", &["--reads-seed", "24"]);
    let exchanged = Data { normal: again.tumor, ..own.clone() };
    let out = scratch("exchanged-second-calls");
    let second = ["--tumor", text(&own.normal[0]), text(&own.normal[1])];
    let ended = run(exchanged.call_with(&out, &second));
    assert!(ended.code == Some(1) && ended.stderr.contains("tumour TUMOR_2"), "{}", ended.stderr);
    assert!(ended.stderr.contains("swapped"), "{}", ended.stderr);
}

#[test]
fn exchanged_samples_with_few_changes_have_a_warning() {
    let size = ["--genome-length", "200000", "--contigs", "1", "--seed", "31", "--depth-tumor", "40"];
    let few =
        Data::simulate("few", &[&size[..], &["--snvs", "14", "--indels", "4", "--svs", "0", "--purity", "1"]].concat());
    let exchanged = Data { tumor: few.normal.clone(), normal: few.tumor.clone(), ..few };
    let out = scratch("few-calls");
    run(exchanged.call(&out)).assert_success();
    assert_warned(&out, "exchanged_samples", "are probably swapped");
}

#[test]
fn the_reference_of_another_genome_withholds_the_results_of_a_tumour_only_call() {
    let other = pair("tumour-only-reference", "22").reference.expect("a reference");
    let own = pair("tumour-only", "21");
    let out = scratch("tumour-only-calls");
    let call = ["call", "--tumor", text(&own.tumor[0]), text(&own.tumor[1]), "--reference", text(&other)];
    let ended = run([&call[..], &["-o", text(&out)]].concat());
    assert!(ended.code == Some(1) && ended.stderr.contains("missing in the reference"), "{}", ended.stderr);
    assert!(names(&out).iter().all(|name| name == ".work"), "{:?}", names(&out));
}

#[test]
fn shallow_samples_withhold_the_results() {
    let size =
        ["--genome-length", "200000", "--contigs", "1", "--seed", "32", "--snvs", "20", "--indels", "0", "--svs", "0"];
    let depths = |tumour, normal| ["--depth-tumor", tumour, "--depth-normal", normal];
    let shallow = Data::simulate("shallow", &[&size[..], &depths("3", "2")].concat());
    let ended = assert_withheld(&shallow, &scratch("shallow-calls"), "shallow_sample", "results are withheld below 4");
    // Already after counting, before the units that take longest.
    assert!(ended.stderr.contains("count begins") && !ended.stderr.contains("assemble begins"), "{}", ended.stderr);
    let little = Data::simulate("little", &[&size[..], &depths("30", "7")].concat());
    let out = scratch("little-calls");
    run(little.call(&out)).assert_success();
    assert_warned(&out, "shallow_sample", "the normal has a depth of about");
}

#[test]
fn short_reads_have_a_warning_or_withhold_the_results() {
    let size =
        ["--genome-length", "100000", "--contigs", "1", "--seed", "33", "--snvs", "5", "--indels", "0", "--svs", "0"];
    let of_length =
        |length: &str| Data::simulate(&format!("short-{length}"), &[&size[..], &["--read-length", length]].concat());
    let out = scratch("short-calls");
    let short = of_length("36");
    run(short.call(&out)).assert_success();
    assert_warned(&out, "short_reads", "k is 21");
    let ended = run(short.call_with(&scratch("strict-calls"), &["--strict"]));
    assert!(ended.code == Some(1) && ended.stderr.contains("because of --strict"), "{}", ended.stderr);
    let ended = run(of_length("25").call(&scratch("shorter-calls")));
    assert!(ended.code == Some(1) && ended.stderr.contains("mean read length is 25"), "{}", ended.stderr);
}

#[test]
fn steps_withhold_the_results_too() {
    let own = large_pair().clone();
    let exchanged = Data { tumor: own.normal.clone(), normal: own.tumor.clone(), ..own };
    let (out, store) = (scratch("steps-calls").join("out"), scratch("steps-store"));
    let store = store.to_str().expect("UTF-8");
    run(exchanged.call_with(&out, &["--plan", store, "--shards", "1", "--partitions", "1"])).assert_success();
    let step = |args: &[&str]| run([&["step", store], args].concat());
    for name in ["scatter", "count", "pick", "label", "assemble", "place", "recruit"] {
        step(&[name]).assert_success();
    }
    let ended = step(&["finish"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("are probably swapped"), "{}", ended.stderr);
    assert!(names(&out).is_empty(), "{:?}", names(&out));
    step(&["finish", "--force"]).assert_success();
    assert_warned(&out, "exchanged_samples", "are probably swapped");
}

/// Writes the reads of FASTQ files as unaligned BAM with these header lines. Each file has a read group, in turn.
fn write_bam(path: &Path, header: &str, mates: &[[&Path; 2]]) {
    let mut sam = header.to_owned();
    for (group, mates) in mates.iter().enumerate() {
        for (flag, path) in [77, 141].into_iter().zip(mates) {
            let fastq = String::from_utf8(gunzip(path)).expect("UTF-8");
            let lines: Vec<&str> = fastq.lines().collect();
            for record in lines.chunks(4) {
                let name = record[0][1..].split([' ', '/']).next().expect("a name");
                sam += &format!(
                    "{group}{name}\t{flag}\t*\t0\t0\t*\t*\t0\t0\t{}\t{}\tRG:Z:g{group}\n",
                    record[1], record[3]
                );
            }
        }
    }
    let from = path.with_extension("sam");
    fs::write(&from, sam).expect("a file");
    let ended =
        Command::new("samtools").args(["view", "-b", "-o", text(path), text(&from)]).output().expect("samtools");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn mates(files: &[PathBuf]) -> [&Path; 2] {
    [&files[0], &files[1]]
}

/// A named pipe that a thread fills with this file.
fn piped(folder: &Path, file: &Path) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let pipe = folder.join(format!("pipe{}", COUNT.fetch_add(1, Relaxed)));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let (from, into) = (file.to_owned(), pipe.clone());
    // The reader closes the pipe after an error.
    std::thread::spawn(move || drop(fs::copy(from, into)));
    pipe
}

/// A call of BAM files of both samples.
fn call_of(normal: &Path, tumor: &Path, out: &Path, options: &[&str]) -> RunOutput {
    let bams = Data { normal: vec![normal.to_owned()], tumor: vec![tumor.to_owned()], ..data().clone() };
    run(bams.call_with(out, options))
}

#[test]
fn a_file_is_of_one_sample_with_a_valid_name() {
    if installed("samtools").is_none() {
        return;
    }
    let folder = scratch("samples");
    let bam = |name: &str, header: &str, of: &[[&Path; 2]]| {
        let path = folder.join(name);
        write_bam(&path, &format!("@HD\tVN:1.6\n{header}"), of);
        path
    };
    let (normal, tumour) = (mates(&data().normal), mates(&data().tumor));
    let mixed = bam("mixed.bam", "@RG\tID:g0\tSM:blood\n@RG\tID:g1\tSM:met\n", &[normal, tumour]);
    let tumour_bam = bam("tumour.bam", "@RG\tID:g0\tSM:met\n", &[tumour]);
    let out = scratch("samples-calls");
    // A name does not make it one sample.
    for options in [&[][..], &["--normal-name", "N"]] {
        let ended = call_of(&mixed, &tumour_bam, &out, options);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let said = &ended.stderr;
        assert!(said.contains("several samples (blood, met)") && said.contains("samtools split"), "{said}");
    }
    // Neither does a pipe.
    let ended = call_of(&piped(&folder, &mixed), &tumour_bam, &out, &[]);
    assert!(ended.code == Some(1) && ended.stderr.contains("several samples (blood, met)"), "{}", ended.stderr);
    // `track` takes a file as one sample, too.
    let (calls, reference) = (data().folder.join("truth.vcf"), data().reference.as_ref().expect("a reference"));
    for file in [mixed.clone(), piped(&folder, &mixed)] {
        let ended = run(["track", text(&calls), text(&file), "--reference", text(reference)]);
        assert!(ended.code == Some(1) && ended.stderr.contains("several samples (blood, met)"), "{}", ended.stderr);
    }
    // Files of different samples are one sample only by name.
    let half = bam("half.bam", "@RG\tID:g0\tSM:other\n", &[normal]);
    let rest = bam("rest.bam", "@RG\tID:g0\tSM:blood\n", &[normal]);
    let two = Data { normal: vec![half, rest.clone()], tumor: vec![tumour_bam.clone()], ..data().clone() };
    let ended = run(two.call(&out));
    assert!(ended.code == Some(1) && ended.stderr.contains("is of the sample blood"), "{}", ended.stderr);
    // Names of files follow the rule of names of the command line.
    for name in ["Jürgen", "a b", "<script>", "a\x1b[31mb", ".", "-x", &"x".repeat(300)] {
        let odd = bam("odd.bam", &format!("@RG\tID:g0\tSM:{name}\n"), &[normal]);
        let ended = call_of(&odd, &tumour_bam, &out, &[]);
        assert!(ended.code == Some(1) && ended.stderr.contains("(SM) cannot be used"), "{}", ended.stderr);
        assert!(ended.stderr.len() < 600 && !ended.stderr.contains('\x1b'), "{}", ended.stderr);
    }
    // So do names before files.
    for name in ["Tümör", "a b", "."] {
        let named = Data { tumor: vec![format!("{name}={}", text(&tumour_bam)).into()], ..data().clone() };
        let ended = run(named.call(&out));
        let rule = format!("--tumor: the sample name '{name}' cannot be used: use letters, digits");
        assert!(ended.code == Some(2) && ended.stderr.contains(&rule), "{}", ended.stderr);
    }
    let odd = bam("odd.bam", "@RG\tID:g0\tSM:a b\n", &[normal]);
    call_of(&odd, &tumour_bam, &out, &["--normal-name", "N"]).assert_success();
    assert_eq!(json(&out.join("summary.json"))["samples"], serde_json::json!(["N", "met"]));
}

#[test]
fn headers_that_contradict_the_reference_are_reported() {
    if installed("samtools").is_none() {
        return;
    }
    let folder = scratch("headers");
    let (normal, tumour) = (mates(&data().normal), mates(&data().tumor));
    let genome = fs::read_to_string(data().reference.as_ref().expect("a reference")).expect("FASTA");
    let name = genome[1..].split_whitespace().next().expect("a name");
    let bases: String = genome[1..].split('>').next().expect("a contig").lines().skip(1).collect();
    let length = bases.len();
    let plain = folder.join("tumour.bam");
    write_bam(&plain, "@HD\tVN:1.6\n@RG\tID:g0\tSM:met\n", &[tumour]);
    let out = scratch("headers-calls");
    let mut last_words = "";
    for (sequence, words) in [
        (format!("SN:{name}\tLN:{}", length + 2), "bases there, and"),
        (format!("SN:{name}\tLN:{length}\tM5:0123456789abcdef0123456789abcdef"), "has other bases there (M5)"),
        ("SN:mouse1\tLN:999999".to_owned(), "sequences mouse1 are not in the reference"),
    ] {
        let bam = folder.join("normal.bam");
        write_bam(&bam, &format!("@HD\tVN:1.6\n@SQ\t{sequence}\n@RG\tID:g0\tSM:blood\n"), &[normal]);
        let ended = call_of(&bam, &plain, &out, &[]);
        assert!(ended.code == Some(0) && ended.stderr.contains(words), "{}", ended.stderr);
        assert_warned(&out, "other_reference", words);
        // With --strict the same warning withholds the results, also of a pipe.
        for normal in [bam.clone(), piped(&folder, &bam)] {
            let strict = folder.join("strict").join(normal.file_name().expect("a name"));
            let ended = call_of(&normal, &plain, &strict, &["--strict"]);
            assert!(ended.code == Some(1) && ended.stderr.contains(words), "{}", ended.stderr);
            assert!(ended.stderr.contains("no results are written because of --strict"), "{}", ended.stderr);
            assert!(!strict.join("somatic.vcf.gz").exists() && !strict.join("summary.json").exists());
        }
        last_words = words;
    }
    let piped_out = scratch("headers-piped");
    let ended = call_of(&piped(&folder, &folder.join("normal.bam")), &plain, &piped_out, &[]);
    assert!(ended.code == Some(0) && ended.stderr.contains(last_words), "{}", ended.stderr);
    assert_warned(&piped_out, "other_reference", last_words);
    let calls = |out: &Path| -> Vec<String> {
        let text = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    assert_eq!(calls(&out), calls(called()), "alignments are ignored");
}

#[test]
fn mates_far_apart_need_no_work_folder() {
    if installed("samtools").is_none() {
        return;
    }
    let folder = scratch("far");
    // More waiting reads than fit in memory: all read 1 come first.
    let far = pair("far-reads", "25");
    let deep: Vec<[&Path; 2]> = std::iter::repeat_n(mates(&far.normal), 3).collect();
    let bams = ["normal", "tumour"].map(|name| folder.join(format!("{name}.bam")));
    let groups = "@RG\tID:g0\tSM:S\n@RG\tID:g1\tSM:S\n@RG\tID:g2\tSM:S\n";
    write_far_bam(&bams[0], groups, &deep);
    write_far_bam(&bams[1], groups, &[mates(&far.tumor)]);
    let far = Data { normal: vec![bams[0].clone()], tumor: vec![bams[1].clone()], ..far };
    let out = folder.join("new/out");
    run(far.call(&out)).assert_success();
    assert!(filters(&out).iter().any(|filter| filter == "PASS"));
}

/// [`write_bam`], with read 1 of all templates first.
fn write_far_bam(path: &Path, groups: &str, mates: &[[&Path; 2]]) {
    let near = path.with_extension("near.bam");
    write_bam(&near, &format!("@HD\tVN:1.6\n{groups}"), mates);
    let part = |flag: &str, end: &str| {
        let part = path.with_extension(end);
        let ended = Command::new("samtools").args(["view", "-b", "-f", flag, "-o", text(&part), text(&near)]).output();
        assert!(ended.expect("samtools").status.success());
        part
    };
    let parts = [part("64", "1.bam"), part("128", "2.bam")];
    let ended = Command::new("samtools").args(["cat", "-o", text(path), text(&parts[0]), text(&parts[1])]).output();
    assert!(ended.expect("samtools").status.success());
}

#[test]
fn empty_lanes_are_left_out_with_a_warning() {
    let folder = scratch("empty");
    let empty = [folder.join("e_1.fq.gz"), folder.join("e_2.fq.gz")];
    let mut own = data().clone();
    for path in &empty {
        gzip(path.clone(), b"");
    }
    own.tumor.splice(0..0, empty.iter().cloned());
    let out = folder.join("out");
    let ended = run(own.call(&out)).assert_success();
    assert!(ended.stderr.contains("e_2.fq.gz: no reads in this lane"), "{}", ended.stderr);
    assert_warned(&out, "empty_lane", "e_2.fq.gz: no reads in this lane");
    let calls = |out: &Path| -> Vec<String> {
        let text = String::from_utf8(read_without_provenance(&out.join("somatic.vcf.gz"))).expect("UTF-8");
        text.lines().filter(|line| !line.starts_with("##genumaWarning=")).map(str::to_owned).collect()
    };
    assert!(calls(&out) == calls(called()));
    // A sample needs reads, and an empty file has no mates.
    let ended = run(Data { tumor: empty.to_vec(), ..data().clone() }.call(&out));
    assert!(ended.code == Some(1) && ended.stderr.contains("is empty"), "{}", ended.stderr);
    let ended = run(Data { tumor: vec![empty[0].clone(), data().tumor[1].clone()], ..data().clone() }.call(&out));
    assert!(ended.code == Some(1) && ended.stderr.contains("is empty"), "{}", ended.stderr);
}

#[test]
fn mates_may_have_suffixes_of_converters() {
    let folder = scratch("suffixes");
    for suffixes in [[".1", ".2"], ["_1", "_2"], ["/1", "/3"]] {
        let rename = |number: usize| -> PathBuf {
            let mut text = String::new();
            for (i, line) in String::from_utf8(gunzip(&data().tumor[number])).expect("UTF-8").lines().enumerate() {
                let name = line.split([' ', '/']).next().expect("a name");
                text += &if i % 4 == 0 { format!("{name}{}\n", suffixes[number]) } else { format!("{line}\n") };
            }
            gzip(folder.join(format!("t_{number}.fq.gz")), text.as_bytes())
        };
        let own = Data { tumor: vec![rename(0), rename(1)], ..data().clone() };
        let out = folder.join("out");
        run(own.call(&out)).assert_success();
        let calls = |out: &Path| read_without_provenance(&out.join("somatic.vcf.gz"));
        assert!(calls(&out) == calls(called()), "{suffixes:?}");
        // Mates in another order are not taken for mates.
        let text = String::from_utf8(gunzip(&own.tumor[1])).expect("UTF-8");
        let later: String = text.lines().skip(4).map(|line| format!("{line}\n")).collect();
        gzip(own.tumor[1].clone(), later.as_bytes());
        let ended = run(own.call(&out));
        assert!(ended.code == Some(1) && ended.stderr.contains("has mate"), "{}", ended.stderr);
    }
}

/// Runs a command whose last input is the pipe `pipe`, and replaces `file` when the command has read a part of the pipe.
#[track_caller]
fn run_while_replacing(args: &[&str], pipe: &Path, content: &[u8], file: &Path) -> RunOutput {
    use std::io::{Read, Write};
    assert!(Command::new("mkfifo").arg(pipe).status().expect("mkfifo").success());
    let mut command = genuma();
    command.args(args).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("genuma");
    let mut input = fs::OpenOptions::new().write(true).open(pipe).expect("a pipe");
    // A pipe holds 64 KiB: after more than that the command reads.
    let (first, rest) = content.split_at(400_000);
    input.write_all(first).expect("read");
    let other = file.with_extension("other");
    fs::copy(file, &other).expect("a copy");
    fs::rename(&other, file).expect("a replaced file");
    // The command may have ended.
    let _ = input.write_all(rest);
    drop(input);
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut stdout).expect("text");
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
    RunOutput { code: child.wait().expect("a child").code(), stdout, stderr }
}

/// For the other commands that read for long.
#[test]
fn inputs_that_change_while_they_are_read_are_noticed() {
    let folder = scratch("change-others");
    let (one, two) = (folder.join("one.fq"), folder.join("two.fifo"));
    fs::write(&one, gunzip(&data().normal[0])).expect("a file");
    let content = gunzip(&data().tumor[0]);
    assert!(content.len() > 800_000);
    let (table, out) = (folder.join("x.gkt"), folder.join("x.tsv"));
    let calls = data().folder.join("truth.vcf");
    let reference = data().reference.as_ref().expect("a reference");
    for args in [
        vec!["kmers", "count", text(&one), text(&two), "-t", "1", "-o", text(&table)],
        vec!["check", "--single", "--normal", text(&one), "--tumor", text(&two), "-t", "1", "--json", text(&out)],
        vec![
            "track",
            text(&calls),
            "--single",
            "--reference",
            text(reference),
            "-t",
            "1",
            "-o",
            text(&out),
            text(&one),
            text(&two),
        ],
    ] {
        let ended = run_while_replacing(&args, &two, &content, &one);
        assert!(
            ended.code == Some(1) && ended.stderr.contains("one.fq: was changed or replaced"),
            "{args:?} {ended:?}"
        );
        assert!(ended.stdout.is_empty() && !table.exists() && !out.exists(), "{args:?}: {}", ended.stdout);
        fs::remove_file(&two).expect("a pipe");
    }
}

#[test]
fn inputs_that_change_during_a_call_are_noticed() {
    let folder = scratch("change");
    let own = pair("changed", "26");
    let reference = own.reference.clone().expect("a reference");
    let known = folder.join("known.vcf");
    let contig = fs::read_to_string(&reference).expect("FASTA")[1..].split_whitespace().next().map(str::to_owned);
    let contig = contig.expect("a name");
    fs::write(&known, format!("##fileformat=VCFv4.2\n{contig}\t5\t.\tA\tC\t.\t.\tAF=0.1\n")).expect("a file");
    for replaced in [&reference, &known, &own.normal[0], &own.tumor[1]] {
        let out = folder.join(replaced.file_stem().expect("a name")).join("out");
        let call = own.call_with(&out, &["--known", text(&known), "-t", "1"]);
        let mut child = genuma().args(call).stderr(std::process::Stdio::piped()).spawn().expect("genuma");
        // The first unit has begun when the work folder is there.
        while !out.join(".work").exists() && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let other = folder.join("other");
        fs::copy(replaced, &other).expect("a copy");
        fs::rename(&other, replaced).expect("a replaced file");
        let ended = child.wait_with_output().expect("genuma");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(1) && said.contains("was changed or replaced"), "{said}");
        assert!(names(&out).iter().all(|name| name == ".work"), "{:?}", names(&out));
    }
}
