//! Test cases that read BAM, CRAM and CBQ files.

use super::{DEFAULT_CASE, TestCase};
use crate::test_inputs::TestInput;

/// Reference of the commands that read CRAM files.
const REFERENCE_ARG: &str = "--reference {given}/pair/genome.fa";

/// A case that reads BAM, CRAM or CBQ files, without its command line.
fn aligned_reads_case() -> TestCase {
    TestCase { inputs: &[TestInput::AlignedReads, TestInput::ReplacementInputs], ..DEFAULT_CASE }
}

/// Returns cases that read BAM, CRAM and CBQ files.
pub(super) fn aligned_read_cases() -> Vec<TestCase> {
    call_and_check_cases().into_iter().chain(other_command_cases()).collect()
}

fn call_and_check_cases() -> Vec<TestCase> {
    let call = |end: &str| {
        format!(
            "call -t 2 --tumor {{given}}/tumor.{end} --normal {{given}}/normal.{end} {REFERENCE_ARG} -o {{made}}/calls"
        )
    };
    vec![
        TestCase {
            name: "call-bam",
            line: call("bam"),
            kept_on_failure: &["calls/.work/"],
            resume: Some("--resume"),
            checksummed_files: &["tumor.bam"],
            replaced_files: &[["tumor.bam", "other/tumor.bam"]],
            ..aligned_reads_case()
        },
        TestCase {
            name: "call-cram",
            line: call("cram"),
            kept_on_failure: &["calls/.work/"],
            resume: Some("--resume"),
            checksummed_files: &["tumor.cram"],
            replaced_files: &[["pair/genome.fa", "masked.fa"]],
            ..aligned_reads_case()
        },
        TestCase {
            name: "check-cram",
            line: format!(
                "check -t 2 --tumor {{given}}/tumor.cram --normal {{given}}/normal.cram {REFERENCE_ARG} --json {{made}}/pair.json"
            ),
            initial_files: &[("pair/old.txt", "pair.json")],
            checksummed_files: &["normal.cram"],
            replaced_files: &[["normal.cram", "other/normal.cram"]],
            ..aligned_reads_case()
        },
        TestCase {
            name: "check-cbq",
            line: "check -t 2 --tumor {given}/tumor.cbq --normal {given}/normal.cbq --json {made}/pair.json".into(),
            initial_files: &[("pair/old.txt", "pair.json")],
            unchecked_files: &["normal.cbq"],
            ..aligned_reads_case()
        },
    ]
}

fn other_command_cases() -> Vec<TestCase> {
    vec![
        TestCase {
            name: "count-bam",
            line: "kmers count -t 2 --sample n={given}/normal.bam -o {made}/n.gkt".into(),
            checksummed_files: &["normal.bam"],
            replaced_files: &[["normal.bam", "other/normal.bam"]],
            ..aligned_reads_case()
        },
        TestCase {
            name: "count-cram",
            line: format!("kmers count -t 2 --sample n={{given}}/normal.cram {REFERENCE_ARG} -o {{made}}/n.gkt"),
            checksummed_files: &["normal.cram"],
            ..aligned_reads_case()
        },
        TestCase {
            name: "track-bam",
            line: format!(
                "track -t 2 {{given}}/pair/truth.vcf {{given}}/tumor.bam {REFERENCE_ARG} -o {{made}}/x.tsv --json {{made}}/x.json"
            ),
            checksummed_files: &["tumor.bam"],
            replaced_files: &[["tumor.bam", "other/tumor.bam"], ["pair/genome.fa", "masked.fa"]],
            ..aligned_reads_case()
        },
        TestCase {
            name: "align-bam-in",
            line: "align -t 2 {given}/pair/genome.fa {given}/normal.bam -o {made}/x.sam".into(),
            checksummed_files: &["normal.bam"],
            replaced_files: &[["normal.bam", "other/normal.bam"]],
            ..aligned_reads_case()
        },
        TestCase {
            name: "run-bam",
            line: "run -t 2 --strategy default --reads {given}/normal.bam -o {made}/x.sam -- {given}/stub".into(),
            inputs: &[TestInput::AlignedReads, TestInput::StubAligner],
            checksummed_files: &["normal.bam"],
            ..DEFAULT_CASE
        },
    ]
}
