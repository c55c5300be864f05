//! Test cases: command lines of genuma's commands and of all steps of a distributed call.

mod aligned_reads;

use crate::test_inputs::{CALL_ARGS, COUNT_ARGS, TestInput};

const CHECK_COMMAND: &str = "check -t 2 --tumor {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz \
    --normal {given}/pair/normal_1.fq.gz {given}/pair/normal_2.fq.gz";
const TRACK_COMMAND: &str = "track -t 2 {given}/pair/truth.vcf {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz \
    --reference {given}/pair/genome.fa";
const READ_FILES: &str = "{given}/pair/normal_1.fq.gz {given}/pair/normal_2.fq.gz";

/// A command line of genuma, with its inputs and what may change when it fails. All its output files are in the output
/// folder, `{made}` in the command line.
#[derive(Debug)]
pub struct TestCase {
    /// Name of the case; the part before the first dash is the subcommand, or a short name of it.
    pub name: &'static str,
    /// Arguments of genuma, with the placeholders `{given}` (input folder) and `{made}` (output folder).
    pub line: String,
    /// Inputs that must exist before the command runs.
    pub inputs: &'static [TestInput],
    /// Files and folders that are copied to the output folder before the run: path in the input folder, and name in the
    /// output folder.
    pub initial_files: &'static [(&'static str, &'static str)],
    /// Prefixes of paths in the output folder: a failed run may leave or change files with these prefixes.
    pub kept_on_failure: &'static [&'static str],
    /// The option that resumes an interrupted run of this command, if it has one; empty if `line` has the option.
    pub resume: Option<&'static str>,
    /// Input files with a checksum: damage of them must be detected, or must not change the results.
    pub checksummed_files: &'static [&'static str],
    /// Input files without a checksum: damage of them must not crash the run, but may change the results.
    pub unchecked_files: &'static [&'static str],
    /// Whether the output is an estimate, which a call that fails may make rougher. Other runs are compared as usual.
    pub is_estimate: bool,
    /// Input files that are replaced while the command runs, each with the file that replaces it.
    pub replaced_files: &'static [[&'static str; 2]],
    /// Whether standard output has measured values, such as free memory, and is not compared.
    pub has_measured_stdout: bool,
}

impl TestCase {
    /// Returns the part of the name before the first dash: the subcommand that the case runs, such as `call`, or a
    /// short name of it, such as `query` for `kmers query`.
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
    is_estimate: false,
    replaced_files: &[],
    has_measured_stdout: false,
};

/// Returns the test cases of all groups.
pub fn all_test_cases() -> Vec<TestCase> {
    let groups = [
        simulation_and_alignment_cases(),
        call_cases(),
        planning_cases(),
        count_cases(),
        table_cases(),
        sample_cases(),
        aligned_reads::aligned_read_cases(),
        running_cases(),
        repeated_step_cases(),
    ];
    groups.into_iter().flatten().collect()
}

/// Returns a case for each step of a distributed call but the last: the step runs once more, and replaces its object.
/// Steps that write blocks of several threads run with one thread, so that the order of the blocks is always the same.
fn repeated_step_cases() -> Vec<TestCase> {
    // Name, step, what a failed run may leave, and the checksummed objects and reads that the step reads.
    type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);
    const STEPS: [Row; 7] = [
        (
            "step-scatter",
            "scatter 1 -t 1",
            &["run/.genuma-", "run/scatter-1", "run/..scatter-1", "run/.scatter-1"],
            &["planned/run/plan.json"],
        ),
        (
            "step-count",
            "count 1 -t 1",
            &["run/.genuma-", "run/count-1", "run/..count-1", "run/.count-1"],
            &["planned/run/scatter-1", "planned/run/scatter-2"],
        ),
        (
            "step-pick",
            "pick -t 2",
            &["run/.genuma-", "run/pick", "run/..pick", "run/.pick"],
            &["planned/run/count-1", "planned/run/count-2"],
        ),
        (
            "step-label",
            "label 1 -t 1",
            &["run/.genuma-", "run/label-1", "run/..label-1", "run/.label-1"],
            &["planned/run/pick"],
        ),
        (
            "step-assemble",
            "assemble -t 2",
            &["run/.genuma-", "run/assemble", "run/..assemble", "run/.assemble"],
            &["planned/run/label-1"],
        ),
        (
            "step-place",
            "place -t 2",
            &["run/.genuma-", "run/place", "run/..place", "run/.place"],
            &["planned/run/assemble"],
        ),
        (
            "step-recruit",
            "recruit 1 -t 1",
            &["run/.genuma-", "run/recruit-1", "run/..recruit-1", "run/.recruit-1"],
            &["planned/run/place"],
        ),
    ];
    let case = |(name, step, left, checksummed_files): Row| TestCase {
        name,
        line: format!("step {{made}}/run {step} --again --work {{made}}/run"),
        inputs: &[TestInput::PlannedRun, TestInput::ReplacementInputs],
        initial_files: &[("planned/run", "run")],
        kept_on_failure: left,
        checksummed_files,
        replaced_files: match name {
            "step-scatter" => &[["pair/tumor_1.fq.gz", "other/tumor_1.fq.gz"]],
            "step-pick" | "step-place" => &[["pair/genome.fa", "masked.fa"]],
            _ => &[],
        },
        ..DEFAULT_CASE
    };
    STEPS.map(case).into()
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
        TestCase {
            name: "align-cram",
            line: format!("align -t 2 {{given}}/pair/genome.fa {READ_FILES} -o {{made}}/x.cram"),
            inputs: &[TestInput::SamplePair, TestInput::Index],
            initial_files: &[("pair/old.txt", "x.cram"), ("pair/old.txt", "x.cram.crai")],
            ..DEFAULT_CASE
        },
    ]
}

fn call_cases() -> Vec<TestCase> {
    let with_reference = format!("{CALL_ARGS} --reference {{given}}/pair/genome.fa -o {{made}}/calls");
    vec![
        TestCase {
            name: "call",
            line: with_reference.clone(),
            inputs: &[TestInput::SamplePair, TestInput::ReplacementInputs],
            kept_on_failure: &["calls/.work/"],
            resume: Some("--resume"),
            checksummed_files: &["pair/tumor_2.fq.gz"],
            replaced_files: &[["pair/genome.fa", "masked.fa"], ["pair/tumor_2.fq.gz", "other/tumor_2.fq.gz"]],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "call-work",
            line: format!("{CALL_ARGS} --reference {{given}}/bare/genome.fa --work {{made}}/work -o {{made}}/calls"),
            inputs: &[TestInput::SamplePair],
            kept_on_failure: &["work/"],
            resume: Some("--resume"),
            ..DEFAULT_CASE
        },
        TestCase {
            name: "call-bare",
            line: format!("{CALL_ARGS} -o {{made}}/calls"),
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
            name: "call-annotated",
            line: format!(
                "{with_reference} --gff {{given}}/genes.gff3 --targets {{given}}/targets.bed --known {{given}}/known.vcf \
                 --signatures {{given}}/signatures.tsv --panel {{given}}/p.gkt --panel-min-samples 1 --maf {{made}}/x.maf --bedpe {{made}}/x.bedpe"
            ),
            inputs: &[TestInput::Annotation, TestInput::NormalPanel],
            initial_files: &[("pair/old.txt", "x.maf"), ("pair/old.txt", "x.bedpe")],
            kept_on_failure: &["calls/.work/"],
            resume: Some("--resume"),
            checksummed_files: &["p.gkt"],
            unchecked_files: &["genes.gff3", "targets.bed", "known.vcf", "signatures.tsv"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "call-tumour-only",
            line: "call -t 2 --tumor {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz \
                   --reference {given}/pair/genome.fa --known {given}/known.vcf -o {made}/calls"
                .into(),
            inputs: &[TestInput::Annotation],
            kept_on_failure: &["calls/.work/"],
            resume: Some("--resume"),
            ..DEFAULT_CASE
        },
    ]
}

fn planning_cases() -> Vec<TestCase> {
    vec![
        TestCase {
            name: "plan",
            line: "plan --tumor {given}/pair/tumor_1.fq.gz {given}/pair/tumor_2.fq.gz --normal {given}/pair/normal_1.fq.gz \
                   {given}/pair/normal_2.fq.gz --reference {given}/pair/genome.fa --memory 2G --scratch 2G --json {made}/x.json"
                .into(),
            inputs: &[TestInput::SamplePair],
            initial_files: &[("pair/old.txt", "x.json")],
            is_estimate: true,
            ..DEFAULT_CASE
        },
        TestCase {
            name: "call-plan",
            line: format!(
                "{CALL_ARGS} --reference {{given}}/pair/genome.fa --plan {{made}}/run --shards 2 --partitions 2 -o {{made}}/calls"
            ),
            inputs: &[TestInput::SamplePair],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "step",
            line: "step {made}/run finish -t 2 --work {made}/run -o {made}/calls".into(),
            inputs: &[TestInput::PlannedRun, TestInput::ReplacementInputs],
            initial_files: &[("planned/run", "run")],
            kept_on_failure: &["run/.genuma-"],
            checksummed_files: &[
                "planned/run/place",
                "planned/run/recruit-1",
                "planned/run/recruit-2",
                "planned/run/plan.json",
            ],
            replaced_files: &[["pair/genome.fa", "masked.fa"]],
            ..DEFAULT_CASE
        },
    ]
}

fn count_cases() -> Vec<TestCase> {
    vec![
        TestCase {
            name: "count",
            line: format!(
                "{COUNT_ARGS} -o {{made}}/n.gkt --histogram {{made}}/n.hist --json {{made}}/n.json --work {{made}}"
            ),
            inputs: &[TestInput::SamplePair, TestInput::ReplacementInputs],
            initial_files: &[("pair/old.txt", "n.gkt"), ("pair/old.txt", "n.hist"), ("pair/old.txt", "n.json")],
            checksummed_files: &["pair/normal_2.fq.gz"],
            replaced_files: &[["pair/normal_2.fq.gz", "other/normal_2.fq.gz"]],
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
            line: format!("{COUNT_ARGS} -o {{made}}/n.tsv"),
            inputs: &[TestInput::SamplePair],
            initial_files: &[("pair/old.txt", "n.tsv")],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "count-resume",
            line: format!("{COUNT_ARGS} --resume --work {{made}}/work -o {{made}}/n.gkt"),
            inputs: &[TestInput::InterruptedWork],
            initial_files: &[("begun-count/work", "work")],
            kept_on_failure: &["work/"],
            resume: Some(""),
            ..DEFAULT_CASE
        },
    ]
}

fn table_cases() -> Vec<TestCase> {
    vec![
        TestCase {
            name: "query",
            line: "kmers query -t 2 {given}/n.gkt {given}/pair/genome.fa".into(),
            inputs: &[TestInput::NormalTable],
            checksummed_files: &["n.gkt"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "compact",
            line: "kmers compact {given}/n.gkt -o {made}/n.gkd".into(),
            inputs: &[TestInput::NormalTable],
            initial_files: &[("pair/old.txt", "n.gkd")],
            checksummed_files: &["n.gkt"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "query-dictionary",
            line: "kmers query -t 2 {given}/n.gkd {given}/pair/genome.fa".into(),
            inputs: &[TestInput::NormalDictionary],
            checksummed_files: &["n.gkd"],
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
            name: "table-intersect",
            line: "kmers intersect -t 2 {given}/n.gkt {given}/t.gkt -o {made}/u.gkt".into(),
            inputs: &[TestInput::NormalTable, TestInput::TumourTable],
            checksummed_files: &["t.gkt"],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "table-filter",
            line: "kmers filter -t 2 --min 3 {given}/n.gkt -o {made}/u.gkt".into(),
            inputs: &[TestInput::NormalTable],
            ..DEFAULT_CASE
        },
        TestCase {
            name: "table-info",
            line: "kmers info {given}/n.gkt".into(),
            inputs: &[TestInput::NormalTable],
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

fn running_cases() -> Vec<TestCase> {
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
                "machine advise -t 2 --force --machine {{given}}/probe/machine.json --json {{made}}/x.json --explain {{made}}/x.html -- {bwa_reads}"
            ),
            inputs: &[TestInput::SamplePair, TestInput::BwaIndex, TestInput::MachineProfile],
            unchecked_files: &["probe/machine.json"],
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
            has_measured_stdout: true,
            ..DEFAULT_CASE
        },
        TestCase { name: "man", line: "man {made}/man".into(), ..DEFAULT_CASE },
        TestCase { name: "completions", line: "completions bash".into(), ..DEFAULT_CASE },
    ]
}
