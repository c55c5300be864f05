//! `call --signatures`: exposures of mutational signatures in summary.json and in the report.

use std::fs;

use serde_json::Value;

use genuma_faults::test_inputs::format_test_signature_matrix;

use crate::common::{Data, data, run, scratch, summary, text};
use crate::schema::assert_fits;

#[test]
fn exposures_are_in_the_summary_and_the_report() {
    let folder = scratch("signatures");
    let matrix = folder.join("made.txt");
    fs::write(&matrix, format_test_signature_matrix()).expect("a file");
    let size = ["--genome-length", "400000", "--contigs", "1", "--seed", "5"];
    let pair =
        Data::simulate("signature-pair", &[&size[..], &["--snvs", "540", "--indels", "0", "--svs", "0"]].concat());
    let out = folder.join("calls");
    run(pair.call_with(&out, &["--threads", "2", "--signatures", text(&matrix)])).assert_success();

    let summary = summary(&out);
    assert_fits("summary", &summary);
    let counts = summary["sample_summary"]["spectrum"].as_array().expect("counts");
    let counts: Vec<u64> = counts.iter().filter_map(Value::as_u64).collect();
    let snvs: u64 = counts.iter().sum();
    assert!(snvs >= 500, "{snvs}");
    let fit = &summary["sample_summary"]["signatures"];
    assert_eq!((&fit["num_snvs"], &fit["num_signatures"]), (&snvs.into(), &3.into()));
    assert_eq!((&fit["why_no_exposures"], &fit["is_normalised_to_targets"]), (&Value::Null, &false.into()));
    let exposures = fit["exposures"].as_array().expect("exposures");
    let share = |name: &str| {
        let found = exposures.iter().find(|exposure| exposure["signature"] == name);
        found.and_then(|exposure| exposure["share"]["value"].as_f64())
    };
    // C>T are the contexts 32 to 47.
    let expected = counts[32..48].iter().sum::<u64>() as f64 / snvs as f64;
    let found = share("SBS-CT").expect("a share");
    assert!((found - expected).abs() < 0.02, "{found} {expected}");
    let total: f64 = ["SBS-CT", "SBS-other", "SBS-TG"].iter().filter_map(|name| share(name)).sum();
    assert!((total - 1.0).abs() < 1e-9);
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(page.contains("Mutational signatures</h3>") && page.contains("<th scope=\"row\">SBS-CT</th>"));
    let inputs = String::from_utf8(crate::common::gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    assert!(inputs.lines().any(|line| line.starts_with("##genumaInput") && line.contains("made.txt")));
}

#[test]
fn few_snvs_have_no_exposures() {
    let folder = scratch("few-snvs");
    let (matrix, out) = (folder.join("made.txt"), folder.join("calls"));
    fs::write(&matrix, format_test_signature_matrix()).expect("a file");
    run(data().call_with(&out, &["--threads", "2", "--signatures", text(&matrix)])).assert_success();
    let summary = summary(&out);
    assert_fits("summary", &summary);
    let fit = &summary["sample_summary"]["signatures"];
    let why = fit["why_no_exposures"].as_str().expect("a reason");
    assert!(why.ends_with("with a mutation context passed, and a fit needs at least 500"), "{why}");
    assert_eq!((&fit["exposures"], &fit["cosine_similarity"]), (&Value::Array(Vec::new()), &Value::Null));
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(page.contains(&format!("Exposures to the signatures of made.txt were not estimated: {why}.")));
}

#[test]
fn malformed_matrices_are_refused_before_the_call() {
    let folder = scratch("malformed-matrix");
    let out = folder.join("calls");
    let whole = format_test_signature_matrix();
    for (content, fault) in [
        (whole.lines().take(96).collect::<Vec<_>>().join("\n"), "the context T[T>G]T is missing"),
        (whole.replacen("0.0625", "-0.0625", 1), "-0.0625 is not a probability"),
        (whole.replacen("0.0625", "0.5", 1), "sum to 1.4375 and not to 1"),
        (whole.clone() + "A[C>A]A\t0\t0.0125\t0\n", "line 98: the context A[C>A]A is given twice"),
    ]
    .map(|(content, fault)| (content.into_bytes(), fault))
    .into_iter()
    .chain([(b"\x1f\x8b\x08".to_vec(), "is not plain text; decompress it first")])
    {
        let matrix = folder.join("bad.txt");
        fs::write(&matrix, content).expect("a file");
        let refused = run(data().call_with(&out, &["--signatures", text(&matrix)]));
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains("bad.txt: ") && refused.stderr.contains(fault), "{}", refused.stderr);
        assert!(!out.exists());
    }
}
