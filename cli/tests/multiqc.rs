//! Files for MultiQC, and MultiQC's report of them.

use std::fs;
use std::process::Command;

use crate::common::{called, data, json, python_peer, run, scratch, text};
use serde_json::Value;

/// The value of a column in a row of a section.
fn at<'a>(section: &'a Value, row: &str, column: &str) -> &'a Value {
    assert!(!section["data"][row].is_null(), "no row {row}: {}", section["data"]);
    &section["data"][row][column]
}

#[test]
fn sections_say_what_the_summary_says() {
    let (folder, summary) = (called(), json(&called().join("summary.json")));
    let section = |name: &str| json(&folder.join(format!("genuma_{name}_mqc.json")));
    let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
    let (tumour, normal) = (format!("{name} TUMOR"), format!("{name} NORMAL"));

    let calls = section("calls");
    assert_eq!(calls["plot_type"], "bargraph");
    assert_eq!(calls["data"][&tumour], summary["passed"]);
    let general = section("general");
    assert_eq!(general["plot_type"], "generalstats");
    let all: u64 = summary["passed"].as_object().expect("classes").values().filter_map(Value::as_u64).sum();
    assert_eq!(at(&general, &tumour, "calls"), &Value::from(all));
    let pairs = summary["library"]["normal"]["pairs"].as_f64().expect("pairs");
    assert_eq!(at(&general, &normal, "pairs").as_f64(), Some(pairs / 1e6));
    // Every value has a column.
    let columns: Vec<&String> = general["pconfig"]
        .as_array()
        .expect("columns")
        .iter()
        .flat_map(|c| c.as_object().expect("one").keys())
        .collect();
    for row in general["data"].as_object().expect("rows").values() {
        assert!(row.as_object().expect("a row").keys().all(|key| columns.contains(&key)), "{row}");
    }
    let purity = &summary["sample_summary"]["pair"]["tumour"]["purity"]["value"];
    let told = &at(&section("pair"), &tumour, "purity").clone();
    assert_eq!(told.as_f64(), purity.as_f64().map(|share| 100.0 * share));
    let spectrum = section("spectrum");
    let changes = spectrum["data"][&tumour].as_object().expect("changes");
    assert_eq!(changes.len(), 6);
    let substitutions: u64 =
        summary["sample_summary"]["spectrum"].as_array().expect("96").iter().filter_map(Value::as_u64).sum();
    assert_eq!(changes.values().filter_map(Value::as_u64).sum::<u64>(), substitutions);
}

#[test]
fn multiqc_shows_a_folder_of_results() {
    let folder = scratch("shown");
    let results = folder.join("patient");
    fs::create_dir(&results).expect("a folder");
    for file in fs::read_dir(called()).expect("a folder").map(|file| file.expect("a file")) {
        fs::copy(file.path(), results.join(file.file_name())).expect("a copy");
    }
    let (reads, out) = (text(&data().tumor[0]), folder.join("x.gkt"));
    let sample = format!("x={reads}");
    run(["kmers", "count", "-t", "1", "--sample", &sample, "-o", text(&out), "--multiqc", text(&folder.join("x"))])
        .assert_success();
    let Some(program) = python_peer("multiqc") else { return };
    let output = Command::new(program)
        .current_dir(&folder)
        .args([".", "--no-ansi", "--strict"])
        .output()
        .expect("MultiQC starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("deprecated") && !said.contains("validation"), "{said}");
    let shown: Value = json(&folder.join("multiqc_data/multiqc_data.json"));
    let all = shown.to_string();
    for section in ["genuma_calls", "genuma_pair", "genuma_spectrum", "genuma_kmers"] {
        assert!(all.contains(section), "{section} is not in MultiQC's data: {said}");
    }
    let columns = shown["report_general_stats_data"].to_string();
    assert!(columns.contains("\"purity\"") && columns.contains("\"distinct\""), "{columns}");
    assert!(fs::read_to_string(folder.join("multiqc_report.html")).expect("a page").contains("Somatic calls"));
}
