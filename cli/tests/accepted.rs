//! Other programs find nothing wrong with the results.

mod common;

use std::path::Path;
use std::process::Command;

use common::{called, data, installed};

/// Runs a program that must succeed without a word of warning; what it wrote to stdout.
#[track_caller]
fn satisfied(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().expect("a program that starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    for word in ["[W::", "[E::", "rror", "WARN"] {
        assert!(!said.contains(word), "{args:?}: {said}");
    }
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn result(name: &str) -> String {
    called().join(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn bcftools_reads_checks_and_finds_the_calls() {
    let Some(bcftools) = installed("bcftools") else { return };
    let (vcf, genome) = (result("somatic.vcf.gz"), data().folder.join("genome.fa"));
    let genome = genome.to_str().expect("UTF-8");
    let records = |args: &[&str]| satisfied(&bcftools, args).lines().count();
    let all = records(&["view", "-H", &vcf]);
    assert!(all >= 60, "{all} records");
    // By the index, sequence by sequence.
    assert_eq!(
        records(&["view", "-H", "-r", "chr1", &vcf]) + records(&["view", "-H", "-r", "chr2", &vcf]),
        all
    );
    let normalised = satisfied(&bcftools, &["norm", "--check-ref", "e", "-f", genome, &vcf]);
    assert_eq!(normalised.lines().filter(|l| !l.starts_with('#')).count(), all);
    assert!(satisfied(&bcftools, &["stats", &vcf]).contains(&format!("number of records:\t{all}")));
    let samples = satisfied(&bcftools, &["query", "-l", &vcf]);
    assert_eq!(samples, "NORMAL\nTUMOR\n");
}

#[test]
fn samtools_reads_the_supporting_reads() {
    let Some(samtools) = installed("samtools") else { return };
    let bam = result("supporting.bam");
    satisfied(&samtools, &["quickcheck", "-v", &bam]);
    let count = |args: &[&str]| -> u64 { satisfied(&samtools, args).trim().parse().expect("a count") };
    assert!(count(&["view", "-c", "-r", "TUMOR", &bam]) > 500);
    assert!(count(&["view", "-c", &bam, "chr1"]) > 100);
}

#[test]
fn gatk_validates_the_calls() {
    let Some(gatk) = common::gatk() else { return };
    // GATK wants a dictionary beside the reference.
    let folder = common::scratch("gatk");
    let genome = folder.join("genome.fa");
    for name in ["genome.fa", "genome.fa.fai"] {
        std::fs::copy(data().folder.join(name), folder.join(name)).expect("a copy");
    }
    let genome = genome.to_str().expect("UTF-8");
    let run = |args: &[&str]| {
        let output = Command::new(&gatk).args(args).output().expect("bash");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["CreateSequenceDictionary", "-R", genome]);
    run(&["ValidateVariants", "-V", &result("somatic.vcf.gz"), "-R", genome]);
}
