//! Calls without a normal: the reference takes its place, and germline variants are recognised by the population and by
//! their allele fraction.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{Data, json, read_without_provenance, run, run_all_steps};

/// Contig, position, reference and alternative bases.
type Variant = [String; 4];

fn variants(vcf: &str, wanted: impl Fn(&[&str]) -> bool) -> BTreeSet<Variant> {
    let records = vcf.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    records.filter(|fields| wanted(fields)).map(|f| [f[0], f[1], f[3], f[4]].map(str::to_owned)).collect()
}

fn read(data: &Data, name: &str) -> String {
    fs::read_to_string(data.folder.join(name)).expect("a file of the simulator")
}

fn vcf_text(out: &Path) -> String {
    String::from_utf8(read_without_provenance(&out.join("somatic.vcf.gz"))).expect("UTF-8")
}

/// A tumour of 60 % purity at 80x.
fn simulate() -> Data {
    let size = ["--genome-length", "300000", "--contigs", "2", "--seed", "31", "--snvs", "60", "--indels", "24"];
    let rest = ["--svs", "4", "--largest-sv", "2000", "--purity", "0.6", "--depth-tumor", "80", "--depth-normal", "2"];
    Data::simulate("tumour-only", &[&size[..], &rest].concat())
}

/// Writes the known variants of a population that lacks one in 20 germline variants of the person.
fn write_known(data: &Data) -> String {
    let germline = read(data, "germline.vcf");
    let mut number = 0;
    let known: String = germline
        .lines()
        .filter_map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [contig, pos, id, reference, alternative, ..] if !line.starts_with('#') => {
                number += 1;
                let record = format!("{contig}\t{pos}\t{id}\t{reference}\t{alternative}\t.\tPASS\tAF=0.1\n");
                (number % 20 != 0).then_some(record)
            }
            _ => line.starts_with("##").then(|| format!("{line}\n")),
        })
        .collect();
    let path = data.folder.join("known.vcf");
    fs::write(&path, known).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn germline_variants_are_told_by_population_and_allele_fraction() {
    let data = simulate();
    let known = write_known(&data);
    let arguments = |out: &Path, options: &[&str]| {
        let mut all = data.call_with(out, options);
        let normal = all.iter().position(|argument| argument == "--normal").expect("the normal");
        all.drain(normal..normal + 1 + data.normal.len());
        all
    };
    let small = |fields: &[&str]| !fields[4].contains(['<', '[', ']']);
    let (truth, germline) = (variants(&read(&data, "truth.vcf"), small), variants(&read(&data, "germline.vcf"), small));
    assert!(truth.len() > 70 && germline.len() > 200, "{} {}", truth.len(), germline.len());

    let out = data.folder.join("calls");
    let ended = run(arguments(&out, &["--known", &known])).assert_success();
    assert!(ended.stderr.contains("no normal: "), "{}", ended.stderr);
    let vcf = vcf_text(&out);
    let passed = variants(&vcf, |fields| fields[6] == "PASS" && small(fields));
    let (found, inherited) = (passed.intersection(&truth).count(), passed.intersection(&germline).count());
    let others = passed.len() - found - inherited;
    let figures = format!("{found} of {}, {inherited} inherited, {others} others", truth.len());
    assert!(found * 100 >= truth.len() * 85 && inherited * 10 <= found && others <= 1, "{figures}");
    // Germline variants have records too.
    let recorded = variants(&vcf, |fields| fields[6].contains("germline")).intersection(&germline).count();
    assert!(recorded * 100 >= germline.len() * 85, "{recorded} of {}", germline.len());
    // One column, and nothing of a normal.
    let columns = vcf.lines().find(|line| line.starts_with("#CHROM")).expect("the column names");
    assert!(columns.ends_with("FORMAT\tTUMOR") && !vcf.contains("##normal_sample") && !vcf.contains(";NLOD="));
    let records = vcf.lines().filter(|line| !line.starts_with('#'));
    assert!(records.clone().count() > 300 && records.clone().all(|line| line.split('\t').count() == 10));
    let summary = json(&out.join("summary.json"));
    assert_eq!(summary["has_normal"], false);
    assert!(summary["sample_summary"]["pair"].is_null() && summary["warnings"].as_array().is_some_and(Vec::is_empty));
    let report = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(report.contains("There is no normal.") && !report.contains("Contamination of the normal"));

    // The same bytes with other threads, from a distributed call, and with other memory.
    let again = data.folder.join("again");
    run(arguments(&again, &["--known", &known, "--threads", "1", "--memory", "1G"])).assert_success();
    assert_eq!(vcf_text(&again), vcf);
    let [store, parts] = ["run", "parts"].map(|name| data.folder.join(name));
    let store = store.to_str().expect("UTF-8");
    let plan = ["--known", &known, "--plan", store, "--shards", "2", "--partitions", "2", "--threads", "2"];
    run(arguments(&parts, &plan)).assert_success();
    run_all_steps(store, [2, 2], &data.folder);
    assert_eq!(vcf_text(&parts), vcf);

    // Without known variants nearly all variants may be germline variants, and all have a record.
    let blind = data.folder.join("blind");
    let ended = run(arguments(&blind, &[])).assert_success();
    assert!(ended.stderr.contains("no normal and no known variants"), "{}", ended.stderr);
    let vcf = vcf_text(&blind);
    let inherited = variants(&vcf, |fields| fields[6] == "PASS").intersection(&germline).count();
    let recorded = variants(&vcf, small).intersection(&truth).count();
    assert!(inherited <= 2 && recorded * 100 >= truth.len() * 90, "{inherited}, {recorded} of {}", truth.len());
}

#[test]
fn a_call_needs_a_normal_or_a_reference() {
    let data = crate::common::data();
    let tumour: Vec<String> = data.tumor.iter().map(|path| path.to_str().expect("UTF-8").to_owned()).collect();
    let arguments = |options: &[&str]| {
        let all =
            ["call", "--tumor"].into_iter().chain(tumour.iter().map(String::as_str)).chain(options.iter().copied());
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let ended = run(arguments(&["-o", "unused-folder"]));
    assert!(ended.code == Some(2) && ended.stderr.contains("--normal"), "{}", ended.stderr);
    let reference = data.reference.as_ref().and_then(|path| path.to_str()).expect("a reference");
    let ended = run(arguments(&["--reference", reference, "--normal-name", "blood", "-o", "unused-folder"]));
    assert!(ended.code == Some(2) && ended.stderr.contains("--normal"), "{}", ended.stderr);
    assert!(!Path::new("unused-folder").exists());
}
