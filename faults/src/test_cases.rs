//! Test cases: command lines of all subcommands, and the small inputs that they need. The inputs are created once.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// An input of test cases. Paths are relative to the input folder, `{given}` in command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestInput {
    /// Simulated sample pair in `pair/`: 20 kbp, tumour and normal at 20x, with truth. Also `pair/old.txt`, and
    /// `bare/genome.fa`, the genome without indexes.
    SamplePair,
    /// `deep/normal_1.fq.gz` and its mates: reads of 300x, whose k-mers do not fit in the minimum memory budget.
    DeepReads,
    /// Index of genuma next to `pair/genome.fa`.
    Index,
    /// Index of bwa next to `pair/genome.fa`.
    BwaIndex,
    /// `n.gkt`, a k-mer table of the normal sample.
    NormalTable,
    /// `t.gkt`, a k-mer table of the tumour sample.
    TumourTable,
    /// `calls/`, the results of `genuma call` for the pair.
    Calls,
    /// `machine.txt`, a recording of this machine's topology.
    MachineRecording,
    /// `probe/machine.json`, a profile of this machine's memory.
    MachineProfile,
    /// Work folders of interrupted runs, which can be resumed: `begun-call/calls` of a call that was interrupted after
    /// its units, and `begun-count/work` of a k-mer count.
    InterruptedWork,
    /// `planned/run`, the run store of a distributed call in which all steps but the last are done.
    PlannedRun,
    /// `stub`, a script that stands for an aligner and writes unmapped records.
    StubAligner,
}

const STUB_SCRIPT: &str = r#"#!/usr/bin/awk -f
BEGIN { OFS = "\t"; print "@SQ", "SN:c", "LN:9"; print "@PG", "ID:stub" }
NR % 4 == 1 { name = substr($1, 2) }
NR % 4 == 2 { print name, 4, "*", 0, 0, "*", "*", 0, 0, $1, "*" }
"#;

const CALL_COMMAND: &str = "call -t 2 --tumor {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz \
    --normal {given}/pair/normal_1.fq.gz {given}/pair/normal_2.fq.gz";
const COUNT_COMMAND: &str = "kmers count -t 2 --sample n={given}/pair/normal_1.fq.gz,{given}/pair/normal_2.fq.gz";
const CHECK_COMMAND: &str = "check -t 2 --tumor {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz \
    --normal {given}/pair/normal_1.fq.gz {given}/pair/normal_2.fq.gz";
const TRACK_COMMAND: &str = "track -t 2 {given}/pair/truth.vcf {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz \
    --reference {given}/pair/genome.fa";
const READ_FILES: &str = "{given}/pair/normal_1.fq.gz {given}/pair/normal_2.fq.gz";

impl TestInput {
    /// Returns the other inputs from which this input is created.
    fn required_inputs(self) -> &'static [TestInput] {
        match self {
            TestInput::SamplePair
            | TestInput::DeepReads
            | TestInput::MachineRecording
            | TestInput::MachineProfile
            | TestInput::StubAligner => &[],
            TestInput::InterruptedWork
            | TestInput::PlannedRun
            | TestInput::Calls
            | TestInput::Index
            | TestInput::BwaIndex
            | TestInput::NormalTable
            | TestInput::TumourTable => &[TestInput::SamplePair],
        }
    }

    fn create_input(self, program: &Path, given: &Path) -> anyhow::Result<()> {
        let genuma = |line: &str| run_checked(Command::new(program).args(split_command_line(line, given, given)));
        let reference = "--reference {given}/pair/genome.fa";
        match self {
            TestInput::SamplePair => {
                genuma(
                    "bench simulate --genome-length 20000 --contigs 2 --snvs 6 --indels 4 --svs 2 --largest-sv 500 \
                     --germline-svs 1 --depth-tumor 20 --depth-normal 20 -t 2 -o {given}/pair",
                )?;
                fs::write(given.join("pair/old.txt"), "what was there before\n")?;
                fs::create_dir_all(given.join("bare"))?;
                fs::copy(given.join("pair/genome.fa"), given.join("bare/genome.fa"))?;
                Ok(())
            }
            TestInput::DeepReads => genuma(
                "bench simulate --genome-length 20000 --contigs 2 --snvs 0 --indels 0 --svs 0 --germline-svs 0 --depth-tumor 1 \
                 --depth-normal 300 -t 2 -o {given}/deep",
            ),
            TestInput::Index => genuma("index -t 2 {given}/pair/genome.fa"),
            TestInput::BwaIndex => run_checked(Command::new("bwa").arg("index").arg(given.join("pair/genome.fa"))),
            TestInput::NormalTable => genuma(&format!("{COUNT_COMMAND} -o {{given}}/n.gkt")),
            TestInput::TumourTable => genuma(
                "kmers count -t 2 --sample t={given}/pair/tumor_1.fq.gz,{given}/pair/tumor_2.fq.gz -o {given}/t.gkt",
            ),
            TestInput::Calls => genuma(&format!("{CALL_COMMAND} {reference} -o {{given}}/calls")),
            TestInput::MachineRecording => genuma("machine show --record {given}/machine.txt"),
            TestInput::MachineProfile => genuma("machine measure --quick -o {given}/probe"),
            // Units stay in the work folder if the run is killed or fails. Here the output cannot be created.
            TestInput::InterruptedWork => {
                let begun = given.join("begun-call/calls");
                fs::create_dir_all(begun.join("summary.json/taken"))?;
                let failed = genuma(&format!("{CALL_COMMAND} {reference} -o {{given}}/begun-call/calls"));
                ensure!(failed.is_err(), "a call into a folder whose summary.json is a folder was to fail");
                fs::remove_dir_all(begun.join("summary.json"))?;
                fs::create_dir_all(given.join("begun-count/n.gkt/taken"))?;
                fs::create_dir_all(given.join("begun-count/work"))?;
                let line = "--resume --work {given}/begun-count/work -o {given}/begun-count/n.gkt";
                ensure!(genuma(&format!("{COUNT_COMMAND} {line}")).is_err(), "a count into a folder was to fail");
                fs::remove_dir_all(given.join("begun-count/n.gkt"))?;
                Ok(())
            }
            TestInput::PlannedRun => {
                let plan = "--plan {given}/planned/run --shards 2 --partitions 2";
                genuma(&format!("{CALL_COMMAND} {reference} {plan} -o {{given}}/planned/calls"))?;
                for step in [
                    "scatter 1",
                    "scatter 2",
                    "count 1",
                    "count 2",
                    "pick",
                    "label 1",
                    "label 2",
                    "assemble",
                    "place",
                    "recruit 1",
                    "recruit 2",
                ] {
                    genuma(&format!("step {{given}}/planned/run {step}"))?;
                }
                Ok(())
            }
            TestInput::StubAligner => {
                fs::write(given.join("stub"), STUB_SCRIPT)?;
                Ok(fs::set_permissions(given.join("stub"), fs::Permissions::from_mode(0o755))?)
            }
        }
    }
}

/// Creates the inputs of all cases in the folder `given`.
///
/// # Errors
/// A command that creates an input fails. The message contains its standard error.
pub(crate) fn create_inputs(cases: &[&TestCase], program: &Path, given: &Path) -> anyhow::Result<()> {
    let mut wanted: BTreeSet<TestInput> = cases.iter().flat_map(|case| case.inputs).copied().collect();
    // Two rounds resolve the deepest dependencies.
    for _ in 0..2 {
        wanted.extend(wanted.clone().into_iter().flat_map(|given| given.required_inputs()));
    }
    fs::create_dir_all(given)?;
    wanted.into_iter().try_for_each(|one| one.create_input(program, given).with_context(|| format!("{one:?}")))
}

fn run_checked(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Splits a command line at blanks, and replaces `{given}` and `{made}` by the paths of the input and the output
/// folder.
pub(crate) fn split_command_line(line: &str, given: &Path, made: &Path) -> Vec<String> {
    let folder = |path: &Path| path.to_string_lossy().into_owned();
    let word = |word: &str| word.replace("{given}", &folder(given)).replace("{made}", &folder(made));
    line.split_whitespace().map(word).collect()
}

/// A command line of genuma, with its inputs and what may change when it fails. All its outputs are in the output
/// folder, `{made}` in the command line.
#[derive(Debug, Clone)]
pub struct TestCase {
    /// Name of the case; the part before the first dash is the subcommand.
    pub name: &'static str,
    /// Arguments of genuma, with the placeholders `{given}` (input folder) and `{made}` (output folder).
    pub line: String,
    /// Inputs that must exist before the command runs.
    pub inputs: &'static [TestInput],
    /// Files that are copied to the output folder before the run: path in the input folder, and name in the output
    /// folder.
    pub initial_files: &'static [(&'static str, &'static str)],
    /// Prefixes of paths in the output folder: a failed run may leave files with these prefixes.
    pub kept_on_failure: &'static [&'static str],
    /// The option that resumes an interrupted run of this command, if it has one.
    pub resume: Option<&'static str>,
    /// Input files with a checksum: damage of them must be detected, or must not change the results.
    pub checksummed_files: &'static [&'static str],
    /// Input files without a checksum: damage of them must not crash the run, but may change the results.
    pub unchecked_files: &'static [&'static str],
    /// Whether all runs give the same output. Measurements of the machine do not.
    pub is_deterministic: bool,
}

impl TestCase {
    /// Returns the subcommand that the case runs, such as `call`.
    pub fn subcommand(&self) -> &'static str {
        self.name.split('-').next().unwrap_or(self.name)
    }
}

const DEFAULT_CASE: TestCase = TestCase {
    name: "",
    line: String::new(),
    inputs: &[],
    initial_files: &[],
    kept_on_failure: &[],
    resume: None,
    checksummed_files: &[],
    unchecked_files: &[],
    is_deterministic: true,
};

/// Returns the test cases of all subcommands.
pub fn all_test_cases() -> Vec<TestCase> {
    [simulation_and_alignment_cases(), call_cases(), kmer_cases(), sample_cases(), machine_cases()].concat()
}

fn simulation_and_alignment_cases() -> Vec<TestCase> {
    vec![
        TestCase {
            name: "simulate",
            line: "bench simulate --genome-length 8000 --contigs 2 --snvs 4 --indels 2 --svs 1 --largest-sv 300 --germline-svs 1 \
                   --depth-tumor 5 --depth-normal 5 -t 2 -o {made}/pair"
                .into(),
            ..DEFAULT_CASE
        },
        TestCase {
            name: "simulate-genome",
            line: "bench simulate --genome {given}/bare/genome.fa --snvs 4 --indels 2 --svs 0 --germline-svs 0 \
                   --depth-tumor 2 --depth-normal 2 -t 2 -o {made}/pair"
                .into(),
            inputs: &[TestInput::SamplePair],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "index",
            line: "index -t 2 {made}/genome.fa".into(),
            inputs: &[TestInput::SamplePair],
            initial_files: &[("bare/genome.fa", "genome.fa")],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "align-sam",
            line: format!("align -t 2 {{given}}/pair/genome.fa {READ_FILES} -o {{made}}/x.sam"),
            inputs: &[TestInput::SamplePair, TestInput::Index],
            initial_files: &[("pair/old.txt", "x.sam")],
            checksummed_files: &[
                "pair/genome.fa",
                "pair/genome.fa.gnm",
                "pair/genome.fa.gnm.seal",
                "pair/normal_1.fq.gz",
            ],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "align-stdout",
            line: format!("align -t 2 {{given}}/pair/genome.fa {READ_FILES}"),
            inputs: &[TestInput::SamplePair, TestInput::Index],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "align-bam",
            line: format!(
                "align -t 2 --mark-duplicates {{given}}/pair/genome.fa {READ_FILES} -o {{made}}/x.bam --json {{made}}/x.json"
            ),
            inputs: &[TestInput::SamplePair, TestInput::Index],
            initial_files: &[("pair/old.txt", "x.bam"), ("pair/old.txt", "x.bam.bai")],
            ..DEFAULT_CASE
        },
    ]
}

fn call_cases() -> Vec<TestCase> {
    let with_reference = format!("{CALL_COMMAND} --reference {{given}}/pair/genome.fa -o {{made}}/calls");
    vec![
        TestCase {
            name: "call",
            line: with_reference.clone(),
            inputs: &[TestInput::SamplePair],
            kept_on_failure: &["calls/.work/"],
            resume: Some("--resume"),
            checksummed_files: &["pair/tumor_2.fq.gz"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "call-work",
            line: format!("{CALL_COMMAND} --reference {{given}}/bare/genome.fa --work {{made}}/work -o {{made}}/calls"),
            inputs: &[TestInput::SamplePair],
            kept_on_failure: &["work/"],
            resume: Some("--resume"),
            ..DEFAULT_CASE
        },
        TestCase {
            name: "call-bare",
            line: format!("{CALL_COMMAND} -o {{made}}/calls"),
            inputs: &[TestInput::SamplePair, TestInput::Calls],
            initial_files: &[("calls", "calls")],
            kept_on_failure: &["calls/.work/"],
            resume: Some("--resume"),
            ..DEFAULT_CASE
        },
        TestCase {
            name: "call-resume",
            line: format!("{with_reference} --resume"),
            inputs: &[TestInput::InterruptedWork],
            initial_files: &[("begun-call/calls", "calls")],
            kept_on_failure: &["calls/.work/"],
            resume: Some(""),
            checksummed_files: &[
                "begun-call/calls/.work/count.unit",
                "begun-call/calls/.work/assemble.unit",
                "begun-call/calls/.work/place.unit",
                "begun-call/calls/.work/recruit.unit",
            ],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "step",
            line: "step {made}/run finish -t 2 --work {made}/run -o {made}/calls".into(),
            inputs: &[TestInput::PlannedRun],
            initial_files: &[("planned/run", "run")],
            kept_on_failure: &["run/.genuma-"],
            checksummed_files: &["planned/run/place", "planned/run/recruit-1", "planned/run/recruit-2"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "step-again",
            line: "step {made}/run pick --again -t 2 --work {made}/run".into(),
            inputs: &[TestInput::PlannedRun],
            initial_files: &[("planned/run", "run")],
            kept_on_failure: &["run/.genuma-", "run/pick", "run/..pick", "run/.pick"],
            checksummed_files: &["planned/run/count-1", "planned/run/count-2"],
            // The object contains its cost, which is measured.
            is_deterministic: false,
            ..DEFAULT_CASE
        },
    ]
}

fn kmer_cases() -> Vec<TestCase> {
    vec![
        TestCase {
            name: "count",
            line: format!(
                "{COUNT_COMMAND} -o {{made}}/n.gkt --histogram {{made}}/n.hist --json {{made}}/n.json --work {{made}}"
            ),
            inputs: &[TestInput::SamplePair],
            initial_files: &[("pair/old.txt", "n.gkt"), ("pair/old.txt", "n.hist"), ("pair/old.txt", "n.json")],
            checksummed_files: &["pair/normal_2.fq.gz"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "count-spill",
            line: "kmers count -t 2 --memory 76M --sample n={given}/deep/normal_1.fq.gz,{given}/deep/normal_2.fq.gz --work {made} \
                   -o {made}/n.gkt"
                .into(),
            inputs: &[TestInput::DeepReads],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "count-text",
            line: format!("{COUNT_COMMAND} -o {{made}}/n.tsv"),
            inputs: &[TestInput::SamplePair],
            initial_files: &[("pair/old.txt", "n.tsv")],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "count-resume",
            line: format!("{COUNT_COMMAND} --resume --work {{made}}/work -o {{made}}/n.gkt"),
            inputs: &[TestInput::InterruptedWork],
            initial_files: &[("begun-count/work", "work")],
            kept_on_failure: &["work/"],
            resume: Some(""),
            ..DEFAULT_CASE
        },
        TestCase {
            name: "query",
            line: "kmers query -t 2 {given}/n.gkt {given}/pair/genome.fa".into(),
            inputs: &[TestInput::NormalTable],
            checksummed_files: &["n.gkt"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "table",
            line: "kmers union -t 2 --counts sum {given}/n.gkt {given}/t.gkt -o {made}/u.gkt".into(),
            inputs: &[TestInput::NormalTable, TestInput::TumourTable],
            initial_files: &[("pair/old.txt", "u.gkt")],
            checksummed_files: &["n.gkt", "t.gkt"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "table-text",
            line: "kmers subtract -t 2 {given}/t.gkt {given}/n.gkt -o {made}/u.tsv".into(),
            inputs: &[TestInput::NormalTable, TestInput::TumourTable],
            initial_files: &[("pair/old.txt", "u.tsv")],
            ..DEFAULT_CASE
        },
    ]
}

fn sample_cases() -> Vec<TestCase> {
    vec![
        TestCase {
            name: "check",
            line: format!("{CHECK_COMMAND} --reference {{given}}/pair/genome.fa --json {{made}}/pair.json"),
            inputs: &[TestInput::SamplePair],
            initial_files: &[("pair/old.txt", "pair.json")],
            checksummed_files: &["pair/tumor_2.fq.gz"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "track",
            line: format!("{TRACK_COMMAND} -o {{made}}/x.tsv --json {{made}}/x.json"),
            inputs: &[TestInput::SamplePair],
            initial_files: &[("pair/old.txt", "x.tsv"), ("pair/old.txt", "x.json")],
            checksummed_files: &["pair/tumor_2.fq.gz"],
            unchecked_files: &["pair/truth.vcf"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "track-vcf",
            line: format!("{TRACK_COMMAND} -o {{made}}/x.vcf.gz"),
            inputs: &[TestInput::SamplePair],
            initial_files: &[("pair/old.txt", "x.vcf.gz"), ("pair/old.txt", "x.vcf.gz.tbi")],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "evaluate",
            line:
                "bench evaluate {given}/pair/truth.vcf {given}/calls/somatic.vcf.gz --reference {given}/pair/genome.fa \
                   --germline {given}/pair/germline.vcf --json {made}/scores.json"
                    .into(),
            inputs: &[TestInput::Calls],
            initial_files: &[("pair/old.txt", "scores.json")],
            checksummed_files: &["calls/somatic.vcf.gz"],
            unchecked_files: &["pair/truth.vcf", "pair/germline.vcf"],
            ..DEFAULT_CASE
        },
    ]
}

fn machine_cases() -> Vec<TestCase> {
    let bwa_reads = format!("bwa mem -K 100000 {{given}}/pair/genome.fa {READ_FILES}");
    vec![
        TestCase {
            name: "run-stub",
            line: "run -t 2 --strategy default --reads {given}/pair/normal_1.fq.gz -o {made}/x.sam -- {given}/stub"
                .into(),
            inputs: &[TestInput::SamplePair, TestInput::StubAligner],
            initial_files: &[("pair/old.txt", "x.sam")],
            checksummed_files: &["pair/normal_1.fq.gz"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "run-bwa",
            line: format!("run -t 2 --strategy 2xlocal -o {{made}}/x.sam --json {{made}}/x.json -- {bwa_reads}"),
            inputs: &[TestInput::SamplePair, TestInput::BwaIndex],
            initial_files: &[("pair/old.txt", "x.sam")],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "advise",
            line: format!(
                "machine advise -t 2 --machine {{given}}/probe/machine.json --json {{made}}/x.json --explain {{made}}/x.html -- {bwa_reads}"
            ),
            inputs: &[TestInput::SamplePair, TestInput::BwaIndex, TestInput::MachineProfile],
            unchecked_files: &["probe/machine.json"],
            is_deterministic: false,
            ..DEFAULT_CASE
        },
        TestCase {
            name: "probe-from",
            line: "machine measure --from {given}/probe/machine.json -o {made}/page".into(),
            inputs: &[TestInput::MachineProfile],
            unchecked_files: &["probe/machine.json"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "topology",
            line: "machine show --from {given}/machine.txt --json".into(),
            inputs: &[TestInput::MachineRecording],
            unchecked_files: &["machine.txt"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "topology-record",
            line: "machine show --record {made}/r.txt".into(),
            is_deterministic: false,
            ..DEFAULT_CASE
        },
        TestCase { name: "man", line: "man {made}/man".into(), ..DEFAULT_CASE },
        TestCase { name: "completions", line: "completions bash".into(), ..DEFAULT_CASE },
    ]
}
