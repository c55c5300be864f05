//! The results of a call are accepted by other programs: bcftools, samtools, GATK, cyvcf2, pysam, vcftools and MAF
//! converters.

use std::path::Path;
use std::process::Command;

use crate::common::{called, data, gunzip, installed, python_peer, run, scratch};

/// Runs a program that must succeed without warnings; returns its standard output.
#[track_caller]
fn run_without_warnings(program: &Path, args: &[&str]) -> String {
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
    let records = |args: &[&str]| run_without_warnings(&bcftools, args).lines().count();
    let all = records(&["view", "-H", &vcf]);
    assert!(all >= 60, "{all} records");
    // Query the calls through the index, one sequence after another.
    assert_eq!(records(&["view", "-H", "-r", "chr1", &vcf]) + records(&["view", "-H", "-r", "chr2", &vcf]), all);
    let normalised = run_without_warnings(&bcftools, &["norm", "--check-ref", "e", "-f", genome, &vcf]);
    assert_eq!(normalised.lines().filter(|l| !l.starts_with('#')).count(), all);
    assert!(run_without_warnings(&bcftools, &["stats", &vcf]).contains(&format!("number of records:\t{all}")));
    let samples = run_without_warnings(&bcftools, &["query", "-l", &vcf]);
    assert_eq!(samples, "NORMAL\nTUMOR\n");
}

#[test]
fn samtools_reads_the_supporting_reads() {
    let Some(samtools) = installed("samtools") else { return };
    let bam = result("supporting.bam");
    run_without_warnings(&samtools, &["quickcheck", "-v", &bam]);
    let count = |args: &[&str]| -> u64 { run_without_warnings(&samtools, args).trim().parse().expect("a count") };
    assert!(count(&["view", "-c", "-r", "TUMOR", &bam]) > 500);
    assert!(count(&["view", "-c", &bam, "chr1"]) > 100);
}

#[test]
fn gatk_validates_the_calls() {
    let Some(gatk) = crate::common::gatk() else { return };
    // GATK needs a sequence dictionary next to the reference.
    let folder = crate::common::scratch("gatk");
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

/// Output of a Python script that uses the modules of scripts/python-peers.txt; `None` if they could not be installed.
fn run_python(script: &str, args: &[&str]) -> Option<String> {
    let python = python_peer("python")?;
    Some(run_without_warnings(&python, &[&["-c", script], args].concat()))
}

/// Number of records of the VCF, and how many passed.
fn records() -> [usize; 2] {
    let filters = crate::common::filters(called());
    [filters.len(), filters.iter().filter(|filter| *filter == "PASS").count()]
}

#[test]
fn cyvcf2_reads_every_field() {
    let script = "
import sys, cyvcf2
vcf = cyvcf2.VCF(sys.argv[1])
all = list(vcf)
for v in all:
    one, two = v.format('F1R2'), v.format('F2R1')
    assert (one + two == v.format('AD')).all() and (v.format('SB').sum(axis=1) == v.format('DP')[:, 0]).all()
    float(v.INFO['TLOD']), float(v.INFO['NLOD'])
print(vcf.samples, len(all), sum(v.FILTER is None for v in all))
";
    let Some(said) = run_python(script, &[&result("somatic.vcf.gz")]) else { return };
    let [all, passed] = records();
    assert_eq!(said, format!("['NORMAL', 'TUMOR'] {all} {passed}\n"));
}

#[test]
fn pysam_reads_calls_and_reads() {
    let script = "
import sys, pysam
vcf = pysam.VariantFile(sys.argv[1])
print(list(vcf.header.samples), sum(1 for _ in vcf), sum(1 for c in vcf.header.contigs for _ in vcf.fetch(c)))
bam = pysam.AlignmentFile(sys.argv[2])
print(sum(1 for _ in bam.fetch(until_eof=True)) > 1000, [g['SM'] for g in bam.header['RG']])
";
    let args = [&*result("somatic.vcf.gz"), &*result("supporting.bam")];
    let Some(said) = run_python(script, &args) else { return };
    let [all, _] = records();
    assert_eq!(said, format!("['NORMAL', 'TUMOR'] {all} {all}\nTrue ['NORMAL', 'TUMOR']\n"));
}

#[test]
fn vcftools_reads_the_calls_as_of_an_earlier_version() {
    let Some(vcftools) = installed("vcftools") else { return };
    let folder = scratch("vcftools");
    let text = String::from_utf8(gunzip(&called().join("somatic.vcf.gz"))).expect("UTF-8");
    let vcf = folder.join("calls.vcf");
    std::fs::write(&vcf, text.replacen("VCFv4.3", "VCFv4.2", 1)).expect("a file");
    let output =
        Command::new(vcftools).current_dir(&folder).args(["--vcf", "calls.vcf", "--freq"]).output().expect("vcftools");
    let said = String::from_utf8_lossy(&output.stderr);
    // vcftools warns of commas in descriptions, which the VCF specification allows.
    assert!(output.status.success(), "{said}");
    let frequencies = std::fs::read_to_string(folder.join("out.frq")).expect("out.frq");
    assert_eq!(frequencies.lines().count(), records()[0] + 1);
}

/// Rows of a MAF, reduced to the columns that both MAFs must agree on.
fn rows(maf: &str) -> std::collections::BTreeSet<Vec<String>> {
    const COLUMNS: [&str; 12] = [
        "Chromosome",
        "Start_Position",
        "End_Position",
        "Variant_Type",
        "Reference_Allele",
        "Tumor_Seq_Allele2",
        "t_depth",
        "t_ref_count",
        "t_alt_count",
        "n_depth",
        "n_ref_count",
        "n_alt_count",
    ];
    let mut lines = maf.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    let names = lines.next().expect("names of columns");
    let at = COLUMNS.map(|name| names.iter().position(|own| *own == name).expect(name));
    lines.map(|row| at.map(|i| row[i].trim_start_matches("chr").to_owned()).to_vec()).collect()
}

#[test]
fn a_converter_makes_the_same_maf() {
    let Some(converter) = python_peer("vcf2maf-py") else { return };
    let folder = scratch("converted");
    let [own, theirs, vcf] =
        ["own.maf", "theirs.maf", "pass.vcf"].map(|name| folder.join(name).to_str().expect("UTF-8").to_owned());
    let out = folder.join("calls");
    run(data().call_with(&out, &["--maf", &own])).assert_success();
    // The converter takes text in angle brackets, and END, for inserted bases.
    let text = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    let small = |line: &&str| {
        let columns: Vec<&str> = line.split('\t').collect();
        line.starts_with('#') || columns[6] == "PASS" && !columns[4].contains(['<', '[', ']'])
    };
    std::fs::write(&vcf, text.lines().filter(small).map(|line| format!("{line}\n")).collect::<String>())
        .expect("a file");
    let args = ["vcf2maf", &vcf, "-o", &theirs, "--tumor-id", "TUMOR", "--normal-id", "NORMAL"];
    // The converter warns that the file is not annotated, which is true.
    let output = Command::new(converter).args(args).output().expect("vcf2maf-py");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let [own, theirs] = [own, theirs].map(|path| rows(&std::fs::read_to_string(path).expect("a MAF")));
    assert!(own.len() >= 30, "{} rows", own.len());
    assert_eq!(own, theirs);
}
