//! Other programs that compare calls with the truth score them as `genuma bench evaluate` does.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{called, data, installed, json, python_peer, run, scratch};

/// Runs a program that must succeed without warnings.
#[track_caller]
fn run_peer(program: &Path, args: &[&Path]) {
    let output = Command::new(program).args(args).output().expect("a program that starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    assert!(!said.contains("WARN") && !said.contains("[W::"), "{args:?}: {said}");
}

#[test]
fn truvari_finds_the_structural_variants_that_evaluate_finds() {
    let (Some(truvari), Some(bcftools)) = (python_peer("truvari"), installed("bcftools")) else { return };
    let folder = scratch("truvari");
    let (truth, genome) = (data().folder.join("truth.vcf"), data().folder.join("genome.fa"));
    let (calls, scores) = (called().join("somatic.vcf.gz"), folder.join("scores.json"));
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let reference = ["--reference".to_owned(), text(&genome), "--json".to_owned(), text(&scores)];
    run(["bench".to_owned(), "evaluate".to_owned(), text(&truth), text(&calls)].into_iter().chain(reference))
        .assert_success();
    let own = json(&scores)["classes"]["SV"]["all"]["f1"].as_f64().expect("F1");

    let [packed, result] = ["truth.vcf.gz", "bench"].map(|name| folder.join(name));
    let option = PathBuf::from;
    run_peer(&bcftools, &[&option("view"), &option("-Oz"), &option("-o"), &packed, &truth]);
    run_peer(&bcftools, &[&option("index"), &option("-t"), &packed]);
    let [bench, passing] = ["bench", "--passonly"].map(option);
    let [base, compared, fasta, out] = ["-b", "-c", "-f", "-o"].map(option);
    run_peer(&truvari, &[&bench, &passing, &base, &packed, &compared, &calls, &fasta, &genome, &out, &result]);
    let peer = json(&result.join("summary.json"));
    assert!(peer["base cnt"].as_u64().expect("a count") >= 10, "{peer}");
    let found = peer["f1"].as_f64().expect("F1");
    // Truvari does not accept an insertion without its length: one of 4 kbp is longer than reads show. It counts each
    // breakend of a junction.
    assert!((found - own).abs() < 0.08, "truvari {found}, evaluate {own}: {peer}");
}
