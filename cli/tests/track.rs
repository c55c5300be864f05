//! `genuma track`: known changes in later samples, molecule by molecule.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{run, scratch};
use serde_json::Value;

/// A patient of 300 kb and her tumour, where a test does not say otherwise.
const PATIENT: [[&str; 2]; 8] = [
    ["--genome-length", "300000"],
    ["--contigs", "2"],
    ["--repeats", "0.1"],
    ["--snvs", "60"],
    ["--indels", "20"],
    ["--svs", "6"],
    ["--largest-sv", "5000"],
    ["--depth-normal", "1"],
];

fn simulate(name: &str, options: &[&str]) -> PathBuf {
    let folder = scratch(name);
    let out = folder.to_str().expect("UTF-8");
    let usual = PATIENT.iter().filter(|o| !options.contains(&o[0])).flatten().copied();
    let usual: Vec<&str> = usual.collect();
    run([&["simulate", "-o", out][..], &usual, options].concat()).well();
    folder
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("UTF-8").to_owned()
}

/// Arguments for the tumour sample of `later` with the truth of `patient`.
fn asked(patient: &Path, later: &Path, options: &[&str]) -> Vec<String> {
    let mut all = vec![
        "track".to_owned(),
        file(patient, "truth.vcf"),
        file(later, "tumor_1.fq.gz"),
        file(later, "tumor_2.fq.gz"),
    ];
    all.extend(["--reference".to_owned(), file(patient, "genome.fa")]);
    all.extend(options.iter().map(|o| (*o).to_owned()));
    all
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// Verdicts by how often each was given, of the first sample.
fn verdicts(told: &Value) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for change in told["samples"][0]["changes"].as_array().expect("changes") {
        *counts.entry(change["verdict"].as_str().expect("a verdict").to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn a_relapse_shows_every_kind_of_change_and_how_much_of_it_there_is() {
    let patient = simulate(
        "relapse",
        &["--depth-tumor", "60", "--purity", "0.4", "--library", "wgs", "--reads-seed", "3"],
    );
    let out = patient.join("told.json");
    run(asked(&patient, &patient, &["--json", out.to_str().expect("UTF-8")])).well();
    let told = json(&out);
    let whole = &told["samples"][0]["whole"];
    assert_eq!(whole["detected"], true);
    let part = whole["tumour_fraction"]["value"].as_f64().expect("a number");
    assert!((0.36..0.44).contains(&part), "{part}");
    let changes = told["samples"][0]["changes"].as_array().expect("changes");
    for class in ["SNV", "INDEL", "SV"] {
        let of: Vec<&Value> = changes.iter().filter(|c| c["class"] == class).collect();
        let found = of.iter().filter(|c| c["verdict"] == "found").count();
        assert!(
            of.len() >= 6 && found * 10 >= of.len() * if class == "INDEL" { 6 } else { 9 },
            "{class}: {found} of {}",
            of.len()
        );
    }
    // What cannot be tracked is named.
    let untracked = told["untracked"].as_array().expect("a list");
    assert!(
        untracked.iter().all(|u| u["why"].as_str().is_some_and(|why| !why.is_empty()) && u["pos"].is_u64())
    );
    assert!(told["samples"][0]["pairs"].as_u64().expect("pairs") > 10_000);
}

#[test]
fn a_trace_is_detected_by_all_changes_together_and_nothing_is_where_nothing_is() {
    let panel =
        ["--library", "panel", "--depth-tumor", "1500", "--snvs", "40", "--indels", "5", "--svs", "0"];
    let trace = simulate("trace", &[&panel[..], &["--purity", "0.004", "--reads-seed", "11"]].concat());
    let none = simulate("none", &[&panel[..], &["--purity", "0", "--reads-seed", "12"]].concat());
    let out = trace.join("told.json");
    run(asked(&trace, &trace, &["--json", out.to_str().expect("UTF-8")])).well();
    let told = json(&out);
    let whole = &told["samples"][0]["whole"];
    assert!(whole["detected"] == true && whole["p"].as_f64().expect("p") < 1e-6, "{whole}");
    let part = |end: &str| whole["tumour_fraction"][end].as_f64().expect("a number");
    assert!(part("low") < 0.004 && part("high") > 0.004 && part("value") < 0.01, "{whole}");
    // Half of the pairs are copies: molecules are far fewer than reads.
    let first = &told["samples"][0]["changes"][0];
    assert!(first["copies"].as_u64().expect("copies") > 100, "{first}");

    run(asked(&trace, &none, &["--json", out.to_str().expect("UTF-8")])).well();
    let told = json(&out);
    let whole = &told["samples"][0]["whole"];
    assert!(
        whole["detected"] == false && whole["tumour_fraction"]["low"].as_f64().expect("low") < 2e-4,
        "{whole}"
    );
    assert_eq!(verdicts(&told).get("found"), None);
}

#[test]
fn damage_makes_no_tumour() {
    let fixed = ["--library", "ffpe", "--oxidation", "1e-3", "--depth-tumor", "80", "--purity", "0"];
    for seed in ["1", "2"] {
        let none = simulate(&format!("damage{seed}"), &[&fixed[..], &["--seed", seed]].concat());
        let out = none.join("told.json");
        run(asked(&none, &none, &["--json", out.to_str().expect("UTF-8")])).well();
        let told = json(&out);
        assert_eq!(told["samples"][0]["whole"]["detected"], false, "{}", told["samples"][0]["whole"]);
        assert_eq!(verdicts(&told).get("found"), None, "seed {seed}");
    }
}

#[test]
fn several_samples_and_the_normal_are_judged_each_by_itself() {
    let patient = simulate("several", &["--depth-tumor", "30", "--depth-normal", "30", "--reads-seed", "5"]);
    // The germline's variants are no tumour's: with the normal that is known.
    let both = patient.join("both.vcf");
    let read = |name: &str| fs::read_to_string(patient.join(name)).expect("a file");
    let germline = read("germline.vcf");
    let own: Vec<&str> = germline.lines().filter(|l| !l.starts_with('#')).take(20).collect();
    fs::write(&both, format!("{}{}\n", read("truth.vcf"), own.join("\n"))).expect("a file");
    let clean = simulate("several_clean", &["--depth-tumor", "30", "--purity", "0", "--reads-seed", "6"]);
    let pair = |folder: &Path| [1, 2].map(|mate| file(folder, &format!("tumor_{mate}.fq.gz"))).join(",");
    let (one, two) = (format!("june={}", pair(&patient)), format!("none={}", pair(&clean)));
    let normal = [file(&patient, "normal_1.fq.gz"), file(&patient, "normal_2.fq.gz")];
    let args = [
        "track",
        both.to_str().expect("UTF-8"),
        "--sample",
        &one,
        "--sample",
        &two,
        "--normal",
        &normal[0],
        &normal[1],
        "--reference",
        &file(&patient, "genome.fa"),
    ];
    let table = run(args).well().stdout;
    let rows: Vec<Vec<&str>> =
        table.lines().filter(|l| !l.starts_with('#')).map(|l| l.split('\t').collect()).collect();
    let of = |sample: &str, verdict: &str| rows.iter().filter(|r| r[0] == sample && r[16] == verdict).count();
    assert!(of("june", "found") > 50 && of("none", "found") == 0, "{table}");
    assert!(of("june", "in_normal") >= 15 && of("none", "in_normal") >= 15);
    assert!(table.contains("# june: tumour detected") && table.contains("# none: tumour not detected"));
    assert!(rows.iter().all(|r| r.len() == 17));
}

#[test]
fn threads_and_layouts_of_the_reads_do_not_show() {
    let patient = simulate("same", &["--depth-tumor", "20", "--purity", "0.5"]);
    let table = |options: &[&str]| run(asked(&patient, &patient, options)).well().stdout;
    let one = table(&["-t", "1"]);
    assert_eq!(one, table(&["-t", "3"]));
    // Mates in turn in one file.
    let mates = ["tumor_1.fq.gz", "tumor_2.fq.gz"]
        .map(|name| String::from_utf8(common::gunzip(&patient.join(name))).expect("text"));
    let lines = mates.each_ref().map(|text| text.lines().collect::<Vec<_>>());
    let in_turn: Vec<String> =
        lines[0].chunks(4).zip(lines[1].chunks(4)).map(|(a, b)| [a, b].concat().join("\n")).collect();
    let path = patient.join("in_turn.fq");
    fs::write(&path, in_turn.join("\n") + "\n").expect("a file");
    let (calls, reads, genome) =
        (file(&patient, "truth.vcf"), file(&patient, "in_turn.fq"), file(&patient, "genome.fa"));
    assert_eq!(one, run(["track", &calls, &reads, "--interleaved", "--reference", &genome]).well().stdout);
    let single = run([
        "track",
        &calls,
        &file(&patient, "tumor_1.fq.gz"),
        "--single",
        "-k",
        "24",
        "--reference",
        &genome,
    ])
    .well()
    .stdout;
    assert!(single.contains("tumour detected"), "{single}");
}

#[test]
fn what_does_not_fit_is_told_in_one_line() {
    let patient = simulate("wrong", &["--depth-tumor", "1"]);
    let genome = file(&patient, "genome.fa");
    let reads = [file(&patient, "tumor_1.fq.gz"), file(&patient, "tumor_2.fq.gz")];
    let said = |vcf: &str, reads: &[String]| {
        let path = patient.join("asked.vcf");
        fs::write(&path, vcf).expect("a file");
        let calls = file(&patient, "asked.vcf");
        let ended = run([
            &["track", &calls, "--reference", &genome][..],
            &reads.iter().map(String::as_str).collect::<Vec<_>>(),
        ]
        .concat());
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let errors: Vec<&str> = ended.stderr.lines().filter(|l| l.contains("error")).collect();
        assert!(errors.len() == 1 && ended.stdout.is_empty(), "{}", ended.stderr);
        errors[0].to_owned()
    };
    let head = "##fileformat=VCFv4.3\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n";
    let sequence = fs::read_to_string(patient.join("genome.fa")).expect("a file");
    let bases: String = sequence.lines().skip(1).take(40).collect();
    let here = &bases[499..500];
    let other = if here == "A" { "C" } else { "A" };
    let record = |line: &str| format!("{head}{}\n", line.replace(' ', "\t"));
    let of_another = said(&record(&format!("chr1 500 . {other} {here} . PASS .")), &reads);
    assert!(
        of_another.contains(&format!("chr1:500:{other}>{here}: REF does not match the reference")),
        "{of_another}"
    );
    assert!(said(&record("chr9 500 . A C . PASS ."), &reads).contains("the reference has no chr9"));
    assert!(said(&record("chr1 999999999 . A C . PASS ."), &reads).contains("has no base 999999999"));
    assert!(said(head, &reads).contains("no record to look for"));
    assert!(said("", &reads).contains("an empty file"));
    assert!(said(&record(&format!("chr1 500 . {here} {other} . weak .")), &reads).contains("--all-filters"));
    assert!(
        said(&record("chr1 500 . N <INS> . PASS ."), &reads)
            .contains("none of the 1 changes can be tracked: an insertion without its sequence")
    );
    let short = patient.join("short.fq");
    fs::write(&short, "@a\nACGTACGT\n+\nIIIIIIII\n").expect("a file");
    let snv = record(&format!("chr1 500 . {here} {other} . PASS ."));
    let short = [file(&patient, "short.fq"), "--single".to_owned()];
    assert!(said(&snv, &short).contains("the longest read has 8 bases, k is 31"));
    // Nothing that was cut off by its end is taken for a whole file.
    let whole = fs::read(patient.join("tumor_1.fq.gz")).expect("a file");
    fs::write(patient.join("cut_1.fq.gz"), &whole[..whole.len() / 2]).expect("a file");
    assert!(said(&snv, &[file(&patient, "cut_1.fq.gz"), reads[1].clone()]).contains("cut_1.fq.gz"));
}
