//! Small inputs of kinds that public bug reports describe. Each is read as other programs read it, or refused with the
//! true reason. Names and sequences are made here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{RunOutput, genuma, gzip, installed, scratch};

/// Length of the only contig, `c1`.
const CONTIG_BP: usize = 20_000;
/// Number of pairs of a lane.
const PAIRS: usize = 21;

/// A folder with a reference, its index, and lanes of reads.
struct Inputs {
    folder: PathBuf,
    bases: String,
}

/// Random bases, always the same.
fn random_bases(len: usize) -> String {
    let mut state = 1u64;
    let mut base = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ['A', 'C', 'G', 'T'][(state >> 62) as usize]
    };
    (0..len).map(|_| base()).collect()
}

fn reverse_complement(bases: &str) -> String {
    let complement = |base| match base {
        'A' => 'T',
        'C' => 'G',
        'G' => 'C',
        _ => 'A',
    };
    bases.chars().rev().map(complement).collect()
}

impl Inputs {
    #[track_caller]
    fn new(folder: PathBuf) -> Inputs {
        let inputs = Inputs { folder, bases: random_bases(CONTIG_BP) };
        inputs.write("ref.fa", &format!(">c1\n{}\n", inputs.bases));
        inputs.run("index ref.fa").assert_success();
        inputs.write_pair("plain", |number, _| format!("r{number}"));
        inputs.write("empty_1.fq", "");
        inputs.write("empty_2.fq", "");
        inputs
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).expect("a file");
    }

    /// Writes the lane `NAME_1.fq`, `NAME_2.fq` with names that `header` gives to each read and mate (1 or 2).
    fn write_pair(&self, name: &str, header: impl Fn(usize, usize) -> String) {
        for mate in [1, 2] {
            let record = |number: usize| {
                let start = 100 + 900 * number;
                let read = match mate {
                    1 => self.bases[start..start + 100].to_owned(),
                    _ => reverse_complement(&self.bases[start + 250..start + 350]),
                };
                format!("@{}\n{read}\n+\n{}\n", header(number, mate), "F".repeat(100))
            };
            self.write(&format!("{name}_{mate}.fq"), &(0..PAIRS).map(record).collect::<String>());
        }
    }

    /// Writes SAM text, and converts it with samtools to the format of `options`.
    fn write_with_samtools(&self, name: &str, header: &str, records: &str, options: &[&str]) {
        self.write("from.sam", &format!("@HD\tVN:1.6\n@SQ\tSN:c1\tLN:{CONTIG_BP}\n{header}{records}"));
        let made = Command::new("samtools")
            .args(["view", "-o", name])
            .args(options)
            .arg("from.sam")
            .current_dir(&self.folder)
            .output()
            .expect("samtools");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// An aligned SAM record without mate, of 100 or fewer bases of the contig.
    fn sam_record(&self, name: &str, start: usize, beyond: &str, has_qualities: bool) -> String {
        let bases = format!("{}{beyond}", &self.bases[start..CONTIG_BP.min(start + 100)]);
        let qualities = if has_qualities { "F".repeat(bases.len()) } else { "*".to_owned() };
        format!("{name}\t0\tc1\t{}\t60\t{}M\t*\t0\t0\t{bases}\t{qualities}\tRG:Z:a\n", start + 1, bases.len())
    }

    fn run(&self, command: &str) -> RunOutput {
        let output = genuma().args(command.split(' ')).current_dir(&self.folder).output().expect("genuma starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        RunOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The records of `genuma align` with these arguments after the reference.
    #[track_caller]
    fn align(&self, args: &str) -> Vec<Vec<String>> {
        let sam = self.run(&format!("align ref.fa {args} -t 1")).assert_success().stdout;
        let records = sam.lines().filter(|line| !line.starts_with('@'));
        records.map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    /// Asserts that a command fails with all these words, and writes no file `x.*`.
    #[track_caller]
    fn refused(&self, command: &str, words: &[&str]) {
        let ended = self.run(command);
        assert_eq!(ended.code, Some(1), "{command}: {}", ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "{command}: '{word}' is not in {}", ended.stderr);
        }
        assert!(["x.sam", "x.gkt"].iter().all(|name| !self.folder.join(name).exists()), "{command}");
    }
}

#[test]
fn names_of_converters_and_sequencers_are_read() {
    let inputs = Inputs::new(scratch("names"));
    inputs.write_pair("sra", |number, mate| format!("X1.{}.{mate} {} length=100", number + 1, number + 1));
    inputs.write_pair("three", |number, mate| format!("r{number}/{}", 2 * mate - 1));
    for lane in ["plain", "sra", "three"] {
        let records = inputs.align(&format!("{lane}_1.fq {lane}_2.fq"));
        let is_proper_pair = |record: &Vec<String>| record[1].parse::<u32>().expect("a flag") & 7 == 3;
        assert!(records.len() == 2 * PAIRS && records.iter().all(is_proper_pair), "{lane}: {records:?}");
    }
    inputs.write_pair("at", |number, _| format!("@A0:{number}"));
    inputs.refused("align ref.fa at_1.fq at_2.fq -o x.sam", &["its name begins with '@'", "rename the reads"]);
}

#[test]
fn files_with_odd_ends_and_bases_are_read() {
    let inputs = Inputs::new(scratch("bytes"));
    let plain = fs::read(inputs.folder.join("plain_1.fq")).expect("reads");
    let packed = fs::read(gzip(inputs.folder.join("packed.fq.gz"), &plain)).expect("a file");
    // As of tapes: gzip ignores zero bytes, and says that other bytes follow.
    fs::write(inputs.folder.join("zeros.fq.gz"), [packed.clone(), vec![0; 512]].concat()).expect("a file");
    assert_eq!(inputs.align("zeros.fq.gz"), inputs.align("plain_1.fq"));
    fs::write(inputs.folder.join("garbage.fq.gz"), [packed, b"garbage!".to_vec()].concat()).expect("a file");
    inputs.refused("align ref.fa garbage.fq.gz -o x.sam", &["garbage.fq.gz: record ", "copy or make it again"]);
    inputs.write("dot.fq", "@r\nACGT.ACGT\n+\nIIIIIIIII\n");
    assert_eq!(inputs.align("dot.fq")[0][9], "ACGTNACGT");
    inputs.write("text.sam", &format!("@HD\tVN:1.6\n{}", inputs.sam_record("r", 99, "", true)));
    inputs.refused("align ref.fa text.sam -o x.sam", &["text.sam: is a SAM file", "samtools"]);
}

#[test]
fn records_of_cram_are_read_as_samtools_reads_them() {
    if installed("samtools").is_none() {
        return;
    }
    let inputs = Inputs::new(scratch("cram"));
    let group = "@RG\tID:a\tSM:T\n";
    let cram = ["-C", "-T", "ref.fa"];
    // A read that ends after its contig.
    let beyond = inputs.sam_record("over", CONTIG_BP - 50, "ACGTACGTAC", true);
    inputs.write_with_samtools("over.cram", group, &(inputs.sam_record("ok", 99, "", true) + &beyond), &cram);
    let records = inputs.align("over.cram");
    let bases = |record: &str| record.split('\t').nth(9).expect("bases").to_owned();
    assert_eq!((records.len(), &records[1][9]), (2, &bases(&beyond)));
    // Qualities that some records lack.
    let lacking: String = [("a", false), ("b", true), ("c", false)]
        .map(|(name, has_qualities)| inputs.sam_record(name, 99, "", has_qualities))
        .concat();
    inputs.write_with_samtools("lacking.cram", group, &lacking, &cram);
    let qualities: Vec<String> = inputs.align("lacking.cram").into_iter().map(|record| record[10].clone()).collect();
    assert_eq!(qualities, ["*".to_owned(), "F".repeat(100), "*".to_owned()]);
}

#[test]
fn sample_names_of_files_are_checked() {
    if installed("samtools").is_none() {
        return;
    }
    let inputs = Inputs::new(scratch("samples"));
    let records =
        inputs.sam_record("a", 99, "", true) + &inputs.sam_record("b", 199, "", true).replace("RG:Z:a", "RG:Z:b");
    for (first, second, words) in [
        ("T", "N", ["several samples (N, T)", "samtools split"]),
        ("Tümör", "Tümör", ["cannot be used", "--normal-name"]),
    ] {
        let groups = format!("@RG\tID:a\tSM:{first}\n@RG\tID:b\tSM:{second}\n");
        inputs.write_with_samtools("named.bam", &groups, &records, &["-b"]);
        inputs.refused("call --tumor plain_1.fq plain_2.fq --normal named.bam --reference ref.fa -o out", &words);
        assert!(!inputs.folder.join("out/somatic.vcf.gz").exists());
    }
}

/// A lane without reads is left out by every command.
#[test]
fn a_lane_without_reads_is_left_out() {
    let inputs = Inputs::new(scratch("lanes"));
    inputs.write_pair("sra", |number, mate| format!("X1.{}.{mate} {}", number + 1, number + 1));
    let other = if &inputs.bases[4999..5000] == "A" { "C" } else { "A" };
    let record = format!("c1\t5000\t.\t{}\t{other}\t50\tPASS\t.\n", &inputs.bases[4999..5000]);
    inputs
        .write("calls.vcf", &format!("##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n{record}"));
    write_stub(&inputs.folder.join("stub"));
    inputs.run("kmers count plain_1.fq -o own.gkt").assert_success();
    for (command, reads, empty) in [
        ("kmers count READS --min-count 1 -o x.tsv", "plain_1.fq plain_2.fq", "empty_1.fq"),
        ("kmers query own.gkt READS", "plain_1.fq", "empty_1.fq"),
        ("track calls.vcf READS --reference ref.fa", "plain_1.fq plain_2.fq", "empty_1.fq empty_2.fq"),
        ("check --normal sra_1.fq sra_2.fq --tumor READS", "plain_1.fq plain_2.fq", "empty_1.fq empty_2.fq"),
        ("run --single --reads READS -- ./stub", "plain_1.fq", "empty_1.fq"),
        ("align ref.fa READS -o y.sam", "plain_1.fq plain_2.fq", "empty_1.fq empty_2.fq"),
        ("align ref.fa READS -o y.sam", "empty_1.fq empty_2.fq", "plain_1.fq plain_2.fq"),
    ] {
        let both = inputs.run(&command.replace("READS", &format!("{reads} {empty}"))).assert_success();
        let has_warning = |line: &str| line.contains("empty_1.fq") && line.contains("no reads in this lane");
        assert!(both.stderr.lines().any(has_warning), "{command}: {}", both.stderr);
        // All lanes are empty.
        let ended = inputs.run(&command.replace("READS", if reads.starts_with("empty") { reads } else { empty }));
        let (code, words) = match command.starts_with("run") {
            // As the aligner does.
            true => (0, "the files have no reads"),
            false => (1, "empty_1.fq: is empty"),
        };
        assert!(ended.code == Some(code) && ended.stderr.contains(words), "{command}: {}", ended.stderr);
    }
    let with_empty = inputs.align("empty_1.fq empty_2.fq plain_1.fq plain_2.fq -R ID:e -R ID:p");
    assert_eq!(with_empty, inputs.align("plain_1.fq plain_2.fq -R ID:p"));
    assert_eq!(with_empty.len(), 2 * PAIRS);
    // One empty file of two is no lane without reads.
    inputs.refused("align ref.fa plain_1.fq empty_2.fq -o x2.sam", &["empty_2.fq: is empty"]);
}

/// An aligner that answers each read with an unmapped record.
fn write_stub(path: &Path) {
    let text = r#"#!/usr/bin/awk -f
BEGIN { OFS = "\t"; print "@SQ", "SN:c", "LN:9"; print "@PG", "ID:stub" }
NR % 4 == 1 { name = substr($1, 2) }
NR % 4 == 2 { print name, 4, "*", 0, 0, "*", "*", 0, 0, $1, "*" }
"#;
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
}

#[test]
fn machines_with_odd_nodes_are_shown() {
    let inputs = Inputs::new(scratch("machines"));
    let show = |lines: &[&str]| {
        inputs.write("machine.txt", &format!("genuma recording 1\n{}\n", lines.join("\n")));
        inputs.run("machine show --from machine.txt").assert_success().stdout
    };
    // Node 0 is offline; CPU 1 belongs to it and is online.
    let shown = show(&[
        "/proc/self/status Cpus_allowed_list:\\t1-2\\nMems_allowed_list:\\t1",
        "/sys/devices/system/cpu/online 1-2",
        "/sys/devices/system/node/online 1",
        "/sys/devices/system/node/node1/cpulist 0,2",
        "/sys/devices/system/node/node1/distance 10",
        "/sys/devices/system/node/node1/meminfo Node 1 MemTotal: 8000000 kB\\nNode 1 MemFree: 7000000 kB",
    ]);
    assert!(shown.contains("1 node, 2 cores") && shown.contains("CPUs 1 are in no node's cpulist"), "{shown}");
    // Node 9 is the memory of a GPU.
    let shown = show(&[
        "/proc/driver/nvidia/gpus/0009:01:00.0/numa_status Node:      9\\nStatus:    online",
        "/proc/self/status Cpus_allowed_list:\\t0-1\\nMems_allowed_list:\\t0,9",
        "/sys/devices/system/cpu/online 0-1",
        "/sys/devices/system/node/online 0,9",
        "/sys/devices/system/node/has_cpu 0",
        "/sys/devices/system/node/node0/cpulist 0-1",
        "/sys/devices/system/node/node9/cpulist",
        "/sys/devices/system/node/node0/distance 10 80",
        "/sys/devices/system/node/node9/distance 80 10",
        "/sys/devices/system/node/node0/meminfo Node 0 MemTotal: 1000000 kB\\nNode 0 MemFree: 900000 kB",
        "/sys/devices/system/node/node9/meminfo Node 9 MemTotal: 1000000 kB\\nNode 9 MemFree: 900000 kB",
    ]);
    assert!(shown.contains("memory of GPUs  node 9 (not used)"), "{shown}");
}

#[test]
fn a_limit_of_address_space_is_kept_or_named() {
    let inputs = Inputs::new(scratch("limits"));
    let count = |limit_kib: u32| {
        let program = genuma().get_program().to_str().expect("UTF-8").to_owned();
        let line = format!("ulimit -v {limit_kib}; exec {program} kmers count plain_1.fq -t 1 -o x.gkt");
        let output = Command::new("sh").args(["-c", &line]).current_dir(&inputs.folder).output().expect("sh");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = count(8_000_000);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = count(200_000);
    assert!(matches!(code, Some(0..=2)) && (code == Some(0) || said.contains("raise ")), "{code:?} {said}");
}
