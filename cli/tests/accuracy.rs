//! End to end: simulates reads, calls variants, and scores the calls against the truth.

use std::fs;

use crate::common::{Data, PATIENT, called, data, filters, json, run, scratch};
use serde_json::Value;

/// Recall and precision of a class over the whole genome.
fn scores(report: &Value, class: &str) -> [f64; 2] {
    ["recall", "precision"].map(|score| report["classes"][class]["all"][score].as_f64().expect("a score"))
}

#[test]
fn most_variants_are_found_and_few_others() {
    let (data, json) = (data(), scratch("evaluated").join("scores.json"));
    let file = |name: &str| data.folder.join(name).to_str().expect("UTF-8").to_owned();
    let calls = called().join("somatic.vcf.gz");
    let tables = run([
        "bench",
        "evaluate",
        &file("truth.vcf"),
        calls.to_str().expect("UTF-8"),
        "--reference",
        &file("genome.fa"),
        "--json",
        json.to_str().expect("UTF-8"),
    ])
    .assert_success()
    .stdout;
    let report: Value = serde_json::from_slice(&fs::read(json).expect("scores")).expect("JSON");
    for (class, least) in [("SNV", 0.95), ("INDEL", 0.8), ("SV", 0.75)] {
        let [recall, precision] = scores(&report, class);
        assert!(recall >= least && precision >= 0.9, "{class}: {recall} {precision}\n{tables}");
    }
}

#[test]
fn other_reads_of_the_same_cells_are_no_tumour() {
    let none = ["--snvs", "0", "--indels", "0", "--svs", "0"];
    let same = Data::simulate("same", &[["--genome-length", "200000", "--seed", "4"].as_slice(), &none].concat());
    let out = scratch("same-calls");
    let ended = run(same.call(&out)).assert_success();
    assert!(ended.stderr.contains("0 calls pass"), "{}", ended.stderr);
    assert!(filters(&out).iter().all(|f| f != "PASS"));
}

#[test]
fn without_a_reference_calls_lie_on_the_contigs_of_the_normal() {
    // One of 24 indels in a repeat decides: the pair has the genome for which the bounds below were set.
    let size = ["--genome-length", "200000"];
    let pair = Data::simulate("alone-reads", &[&size[..], &PATIENT[2..]].concat());
    let out = scratch("alone");
    run(Data { reference: None, ..pair.clone() }.call(&out)).assert_success();
    let passed = filters(&out).iter().filter(|f| *f == "PASS").count();
    assert!(passed >= 30, "{passed} calls pass");
    // Substitutions by context need the reference's strand and bases: there are none.
    assert_eq!(
        crate::common::names(&out),
        [
            "contigs.fa",
            "genuma_calls_mqc.json",
            "genuma_general_mqc.json",
            "genuma_pair_mqc.json",
            "report.html",
            "somatic.vcf.gz",
            "somatic.vcf.gz.tbi",
            "summary.json"
        ]
    );
    // Calls without a reference are scored through their contigs' positions.
    let file = |name: &str| pair.folder.join(name).to_str().expect("UTF-8").to_owned();
    let (calls, json) = (out.join("somatic.vcf.gz"), scratch("alone-scores").join("scores.json"));
    let [truth, calls, json] = [pair.folder.join("truth.vcf"), calls, json].map(|path| path.display().to_string());
    let unplaced = run(["bench", "evaluate", &truth, &calls]).assert_success().stdout;
    assert!(unplaced.contains("calls are on sequences that the truth does not have, such as n"), "{unplaced}");
    assert!(unplaced.contains("to the reference, give --reference"), "{unplaced}");
    let tables = run(["bench", "evaluate", &truth, &calls, "--reference", &file("genome.fa"), "--json", &json])
        .assert_success()
        .stdout;
    assert!(tables.contains("were mapped to the reference by the sequence of their contigs"), "{tables}");
    let report: Value = serde_json::from_slice(&fs::read(json).expect("scores")).expect("JSON");
    // Some indels in repeats are called as pairs of breakends, which score as false.
    for (class, least, right) in [("SNV", 0.8, 0.9), ("INDEL", 0.6, 0.9), ("SV", 0.3, 0.7)] {
        let [recall, precision] = scores(&report, class);
        assert!(recall >= least && precision >= right, "{class}: {recall} {precision}\n{tables}");
    }
    let contigs = fs::read_to_string(out.join("contigs.fa")).expect("contigs");
    let vcf = String::from_utf8(crate::common::gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    for line in vcf.lines().filter(|l| !l.starts_with('#')) {
        let chrom = line.split('\t').next().expect("CHROM");
        assert!(contigs.lines().any(|l| l.strip_prefix('>').is_some_and(|l| l.split(' ').next() == Some(chrom))));
    }
}

#[test]
fn results_have_their_names() {
    let mut expected = crate::common::RESULTS;
    expected.sort();
    assert_eq!(crate::common::names(called()), expected);
}

#[test]
fn quiet_is_quiet() {
    let few = ["--snvs", "2", "--indels", "0", "--svs", "0", "--genome-length", "50000"];
    let tiny = Data::simulate("quiet", &few);
    let ended = run(tiny.call_with(&scratch("quiet-calls"), &["--quiet"])).assert_success();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

#[test]
fn the_last_line_and_the_summary_agree() {
    let summary = json(&called().join("summary.json"));
    let passed = filters(called()).iter().filter(|f| *f == "PASS").count() as u64;
    let counts = summary["passed"].as_object().expect("counts by class");
    let events: u64 = counts.values().map(|n| n.as_u64().expect("a count")).sum();
    // A breakend event has two records.
    assert!(events > 0 && events <= passed, "{events} events, {passed} records");
    assert_eq!(summary["k"], 31);
    assert!(summary["calls"][0].get("picture").is_none());
    assert!(summary["units"].as_array().is_some_and(|u| u.len() >= 3));
}

#[test]
fn the_ledger_counts_what_was_read_and_called() {
    let summary = json(&called().join("summary.json"));
    let lines = summary["stages"].as_array().expect("lines");
    let count = |stage: &str, what: &str| {
        let is = |l: &&Value| l["stage"] == stage && l["description"].as_str().is_some_and(|w| w == what);
        lines.iter().find(is).and_then(|l| l["count"].as_u64()).unwrap_or_else(|| panic!("{stage}: {what}"))
    };
    for (sample, files) in [("normal", &data().normal), ("tumour", &data().tumor)] {
        let pairs = crate::common::records(&crate::common::gunzip(&files[0])).len() as u64;
        assert_eq!(count("count", &format!("{sample}: pairs read")), pairs);
    }
    let calls = summary["calls"].as_array().expect("calls");
    assert!(calls.iter().all(|call| call["filters"].as_array().is_some_and(Vec::is_empty)));
    let filtered = summary["filtered"].as_u64().expect("a count");
    assert_eq!(count("judge", "events"), calls.len() as u64 + filtered);
    assert!(count("judge", "changes genotyped") >= count("judge", "events"));
    let reasons = summary["filtered_by"].as_object().expect("counts by filter");
    assert!(reasons.values().map(|n| n.as_u64().expect("a count")).sum::<u64>() >= filtered);
    let headers = fs::read_to_string(called().join("contigs.fa")).expect("contigs");
    let contigs = headers.lines().filter(|l| l.starts_with(">t")).count() as u64;
    assert_eq!(count("recruit", "contigs for which reads were recruited"), contigs);
    assert!(count("assemble", "contigs") >= contigs);
    // Lines for left-out data have counts above 0.
    assert!(lines.iter().all(|l| l["skipped"] == false || l["count"] != 0));
}
