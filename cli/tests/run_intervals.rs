//! `genuma run --by-interval`: gives the records of the caller run alone, and leaves nothing behind when it fails.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{SharedFixture, data, genuma, gunzip, installed, json, names, run, scratch, text};
use crate::schema::assert_fits;

/// A folder with `ref.fa` of two contigs, the sorted and indexed reads `T.bam`, and an empty folder `out` and `tmp`.
fn fixture() -> &'static Path {
    static MADE: SharedFixture<PathBuf> = SharedFixture::new();
    MADE.get_or_init(|| {
        let folder = scratch("fixture");
        let file = |name: &str| text(&folder.join(name)).to_owned();
        for end in ["fa", "fa.fai"] {
            fs::copy(data().folder.join(format!("genome.{end}")), file(&format!("ref.{end}"))).expect("a copy");
        }
        run(["index", &file("ref.fa")]).assert_success();
        let reads = &data().tumor;
        let group = ["-R", "ID:a\\tSM:T\\tPL:ILLUMINA"];
        let align = ["align", &file("ref.fa"), text(&reads[0]), text(&reads[1]), "-o", &file("T.bam"), "-t", "2"];
        run(align.iter().chain(&group)).assert_success();
        folder
    })
}

/// An empty folder with links to the files of the fixture.
#[track_caller]
fn folder_with_reads(name: &str) -> PathBuf {
    let folder = scratch(name);
    for file in names(fixture()) {
        std::os::unix::fs::symlink(fixture().join(&file), folder.join(&file)).expect("a link");
    }
    for made in ["out", "tmp"] {
        fs::create_dir(folder.join(made)).expect("a folder");
    }
    folder
}

fn by_genuma(folder: &Path, args: &[&str]) -> Output {
    let mut command = genuma();
    command.args(["run", "--by-interval"]).args(args).env("TMPDIR", folder.join("tmp"));
    command.current_dir(folder).output().expect("genuma starts")
}

#[track_caller]
fn succeeds(folder: &Path, args: &[&str]) -> String {
    let ended = by_genuma(folder, args);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{args:?}: {said}");
    assert_eq!(names(&folder.join("tmp")), Vec::<String>::new(), "{args:?}");
    said
}

#[track_caller]
fn shell(folder: &Path, command: &str) -> String {
    let ended = Command::new("bash").args(["-c", command]).current_dir(folder).output().expect("a shell");
    assert!(ended.status.success(), "{command}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("UTF-8")
}

fn records(vcf: &str) -> Vec<&str> {
    vcf.lines().filter(|line| !line.starts_with('#')).collect()
}

#[track_caller]
fn assert_same_records(found: &str, alone: &str, min_records: usize) {
    let (found, alone) = (records(found), records(alone));
    assert!(alone.len() >= min_records, "{} records", alone.len());
    let differing = found.iter().zip(&alone).find(|(a, b)| a != b);
    assert!(found == alone, "{} and {} records; {differing:?}", found.len(), alone.len());
}

#[test]
fn records_of_bcftools_are_those_of_the_command_alone() {
    if installed("bcftools").is_none() {
        return;
    }
    let folder = folder_with_reads("bcftools");
    let alone = shell(&folder, "bcftools mpileup -f ref.fa T.bam | bcftools call -mv");
    let pipeline = |place: &str| {
        ["bash", "-o", "pipefail", "-c", &format!("bcftools mpileup {place} -f ref.fa T.bam | bcftools call -mv")]
            .map(str::to_owned)
    };
    for (place, options) in [
        ("-R {bed}", &["--strategy", "3xlocal", "--json", "run.json"][..]),
        ("-r {interval}", &["-t", "3", "--padding", "500"]),
    ] {
        let command = pipeline(place);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let said = succeeds(&folder, &[options, &["-o", "out/x.vcf", "--"], &command].concat());
        assert!(said.contains("intervals, balanced by reads") && said.contains("slots busy"), "{said}");
        assert_same_records(&fs::read_to_string(folder.join("out/x.vcf")).expect("VCF"), &alone, 40);
    }
    let summary: Value = json(&folder.join("run.json"));
    assert_fits("run", &summary);
    let intervals = &summary["run"]["intervals"];
    assert!(intervals["num_intervals"].as_u64() > Some(6) && intervals["num_slots"] == 3, "{intervals}");
    let header = shell(&folder, "grep '^##' out/x.vcf");
    assert!(header.contains("\n##genumaCommandLine=") && header.matches("##fileformat").count() == 1, "{header}");

    // The preset, BGZF, and regions.
    let alone = shell(&folder, "bcftools mpileup -f ref.fa -a AD T.bam");
    let command = ["--", "bcftools", "mpileup", "-f", "ref.fa", "-a", "AD", "-o", "out/x.vcf.gz", "T.bam"];
    succeeds(&folder, &[&["--strategy", "3xlocal"][..], &command].concat());
    let found = String::from_utf8(gunzip(&folder.join("out/x.vcf.gz"))).expect("UTF-8");
    assert_same_records(&found, &alone, 100_000);
    shell(&folder, "bcftools index out/x.vcf.gz; awk '{ print $1 \"\\t500\\t30000\" }' ref.fa.fai > regions.bed");
    let alone = shell(&folder, "bcftools mpileup -f ref.fa -a AD -R regions.bed T.bam");
    let ended = by_genuma(
        &folder,
        &["-t", "3", "--intervals", "regions.bed", "--", "bcftools", "mpileup", "-f", "ref.fa", "-a", "AD", "T.bam"],
    );
    assert_same_records(&String::from_utf8(ended.stdout).expect("UTF-8"), &alone, 50_000);
}

#[test]
fn a_cram_file_and_a_csi_index_balance_the_intervals() {
    if ["bcftools", "samtools"].iter().any(|program| installed(program).is_none()) {
        return;
    }
    let folder = folder_with_reads("cram");
    let alone = shell(&folder, "bcftools mpileup -f ref.fa T.bam | bcftools call -mv");
    shell(
        &folder,
        "samtools view -C -T ref.fa -o C.cram T.bam && samtools index C.cram && cp T.bam S.bam && samtools index -c S.bam",
    );
    for file in ["C.cram", "S.bam"] {
        let command = format!("bcftools mpileup -R {{bed}} -f ref.fa {file} | bcftools call -mv");
        let said = succeeds(&folder, &["-t", "3", "-o", "out/x.vcf", "--", "bash", "-o", "pipefail", "-c", &command]);
        assert!(said.contains("balanced by reads"), "{said}");
        assert_same_records(&fs::read_to_string(folder.join("out/x.vcf")).expect("VCF"), &alone, 40);
    }
}

/// QUAL and ODDS of freebayes depend on the first site that a process evaluates.
fn without_quality(vcf: &str) -> String {
    let record = |line: &str| {
        let mut columns: Vec<&str> = line.split('\t').collect();
        columns[5] = ".";
        let info: Vec<&str> = columns[7].split(';').filter(|field| !field.starts_with("ODDS=")).collect();
        let info = info.join(";");
        columns[7] = &info;
        columns.join("\t") + "\n"
    };
    records(vcf).into_iter().map(record).collect()
}

#[test]
fn records_of_freebayes_are_those_of_the_command_alone() {
    if installed("freebayes").is_none() {
        return;
    }
    let folder = folder_with_reads("freebayes");
    let alone = shell(&folder, "freebayes -f ref.fa T.bam");
    let options = ["--strategy", "3xlocal", "-o", "out/x.vcf"];
    succeeds(&folder, &[&options[..], &["--", "freebayes", "-f", "ref.fa", "T.bam"]].concat());
    let found = fs::read_to_string(folder.join("out/x.vcf")).expect("VCF");
    assert_same_records(&without_quality(&found), &without_quality(&alone), 40);
}

/// A caller that writes one record in the middle of its interval, and then runs `script`.
fn caller(script: &str) -> String {
    format!(
        "printf '##fileformat=VCFv4.2\\n#CHROM\\tPOS\\tID\\tREF\\tALT\\n'; \
         awk '{{ print $1 \"\\t\" int(($2 + $3) / 2) \"\\t.\\tA\\tC\" }}' {{bed}}; {script}"
    )
}

#[track_caller]
fn refused(folder: &Path, args: &[&str], code: i32, parts: &[&str]) {
    let ended = by_genuma(folder, &[&["-t", "3", "-o", "out/x.vcf", "--json", "out/x.json"], args].concat());
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(code), "{args:?}: {said}");
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("error: ")).collect();
    let [error] = errors[..] else { panic!("not one error: {said}") };
    for part in parts {
        assert!(error.contains(part), "'{part}' is not in: {error}");
    }
    assert_eq!(names(&folder.join("out")), Vec::<String>::new(), "{args:?}");
    assert_eq!(names(&folder.join("tmp")), Vec::<String>::new(), "{args:?}");
}

#[test]
fn failures_leave_no_files() {
    let folder = folder_with_reads("failures");
    let reads = ["--reads", "T.bam", "--", "sh", "-c"];
    let run = |script: &str, parts: &[&str]| refused(&folder, &[&reads[..], &[&caller(script)]].concat(), 1, parts);
    run(
        "case {bed} in */3.bed) echo 'bad luck' >&2; exit 4;; esac",
        &["interval 3 of ", "(sh) failed with exit code 4", "bad luck"],
    );
    run("case {bed} in */2.bed) kill -KILL $$;; esac", &["interval 2 of ", "was killed by signal 9"]);
    run("case {bed} in */2.bed) printf 'c\\t1';; esac", &["interval 2 of ", "ends inside a line"]);
    run("echo 'x\t1\t.\tA\tC'", &["a contig that the header of the reads does not have"]);
    refused(&folder, &[&reads[..], &["cat {bed}"]].concat(), 1, &["not VCF text"]);
    refused(&folder, &[&reads[..], &["echo {bed} {vcf} > /dev/null"]].concat(), 1, &["cannot be read: No such file"]);
    fs::copy(fixture().join("T.bam"), folder.join("U.bam")).expect("a copy");
    refused(&folder, &["--", "freebayes-x", "{bed}", "U.bam"], 1, &["freebayes-x", "install"]);
    refused(
        &folder,
        &["--", "sh", "-c", "call {bed} U.bam"],
        1,
        &["U.bam: the index is missing; make it with 'samtools index U.bam'"],
    );
    fs::write(folder.join("U.bam.bai"), "BAI\x01damaged").expect("a file");
    refused(&folder, &["--", "sh", "-c", "call {bed} U.bam"], 1, &["U.bam.bai: is not a valid index"]);
    refused(&folder, &["--", "sh", "-c", "call {bed}"], 1, &["names no BAM or CRAM file", "--reads"]);
    for (command, part) in [
        (&["sh", "-c", "call T.bam"][..], "write {interval} (chr:start-end) or {bed}"),
        (&["sh", "-c", "call {bed} {interval}"], "use one of them"),
        (&["freebayes", "-r", "chr1", "T.bam"], "name regions with --intervals BED"),
        (&["bwa", "mem", "ref.fa", "x.fq"], "write {interval}"),
        (&["freebayes", "-v", "y.vcf", "T.bam"], "the output is given twice"),
    ] {
        refused(&folder, &[&["--"], command].concat(), 2, &[part]);
    }
}

#[test]
fn a_reference_without_reads_is_divided_by_length() {
    let folder = folder_with_reads("length");
    let command = caller("");
    let args = ["-t", "2", "--reference", "ref.fa", "--padding", "0", "-o", "out/x.vcf", "--", "sh", "-c", &command];
    let said = succeeds(&folder, &args);
    assert!(said.contains("balanced by length"), "{said}");
    let vcf = fs::read_to_string(folder.join("out/x.vcf")).expect("VCF");
    assert!(records(&vcf).len() >= 14, "{vcf}");
}

/// Mutect2 writes a `.stats` file beside its VCF, which FilterMutectCalls reads.
#[test]
fn statistics_of_mutect2_are_merged() {
    let folder = folder_with_reads("stats");
    let run = |statistic: &str| {
        let stats = format!("printf 'statistic\tvalue\n{statistic}\t10.0\n' > {{vcf}}.stats");
        let command = format!("exec > {{vcf}}; {}", caller(&stats));
        let options = ["-t", "2", "--padding", "0", "-o", "out/x.vcf.gz", "--reads", "T.bam", "--", "sh", "-c"];
        by_genuma(&folder, &[&options[..], &[&command]].concat())
    };
    let ended = run("reads");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("interval 1 of ") && said.contains("unknown line in its .stats file: 'reads"), "{said}");
    assert_eq!(names(&folder.join("out")), Vec::<String>::new());
    let ended = run("callable");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let before = said.split(" intervals, balanced by").next().and_then(|text| text.rsplit(' ').next());
    let num_intervals: usize = before.and_then(|number| number.parse().ok()).expect("the number of intervals");
    let stats = fs::read_to_string(folder.join("out/x.vcf.gz.stats")).expect("statistics");
    // Each interval has 10 callable sites.
    assert_eq!(stats, format!("statistic\tvalue\ncallable\t{}.0\n", 10 * num_intervals));
}

#[test]
fn a_signal_ends_all_instances() {
    let folder = folder_with_reads("signal");
    let endless = caller("echo started >&2; exec sleep 1000.25");
    let mut child = genuma()
        .args([
            "run",
            "--by-interval",
            "-v",
            "-t",
            "3",
            "-o",
            "out/x.vcf",
            "--reads",
            "T.bam",
            "--",
            "sh",
            "-c",
            &endless,
        ])
        .env("TMPDIR", folder.join("tmp"))
        .current_dir(&folder)
        .stderr(Stdio::piped())
        .spawn()
        .expect("genuma starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map(|line| line.expect("UTF-8"));
    for _ in 0..3 {
        assert!(lines.any(|line| line.ends_with(": started")));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a process to signal");
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("an end").code(), Some(143), "{rest:?}");
    assert!(!rest.iter().any(|line| line.contains("error: ")), "{rest:?}");
    assert_eq!([names(&folder.join("out")), names(&folder.join("tmp"))], [vec![], vec![]] as [Vec<String>; 2]);
    let is_left = || {
        let entries = fs::read_dir("/proc").expect("processes").flatten();
        entries
            .into_iter()
            .any(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == b"sleep\x001000.25\0"))
    };
    while is_left() {
        std::thread::yield_now();
    }
}
