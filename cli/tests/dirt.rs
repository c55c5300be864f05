//! Calls of realistic libraries with adapters, fold-back reads, damage, duplicates and uneven depth, at 60x and 30x.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{Data, filters, gunzip, json, names, run, scratch};
use crate::guard::assert_withheld;
use serde_json::Value;

const SIZE: [&str; 6] = ["--genome-length", "300000", "--contigs", "2", "--depth-tumor", "60"];
const NONE: [&str; 6] = ["--snvs", "0", "--indels", "0", "--svs", "0"];
const SOME: [&str; 8] = ["--snvs", "60", "--indels", "36", "--svs", "10", "--largest-sv", "5000"];

fn simulate(name: &str, seed: &str, options: &[&[&str]]) -> Data {
    let depth = ["--depth-normal", "30", "--seed", seed];
    Data::simulate(name, &[&SIZE[..], &depth, &options.concat()].concat())
}

/// The columns of the records that pass.
fn passing(vcf: &str) -> Vec<Vec<&str>> {
    let records = vcf.lines().filter(|l| !l.starts_with('#')).map(|l| l.split('\t').collect::<Vec<_>>());
    records.filter(|r| r[6] == "PASS").collect()
}

/// Recall and precision of SNVs, indels and structural variants.
fn scores(data: &Data, out: &Path) -> ([[f64; 2]; 3], String) {
    let file = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let scored = out.join("scores.json");
    let arguments = [
        "bench".to_owned(),
        "evaluate".to_owned(),
        file(&data.folder.join("truth.vcf")),
        file(&out.join("somatic.vcf.gz")),
        "--reference".to_owned(),
        file(&data.folder.join("genome.fa")),
        "--json".to_owned(),
        file(&scored),
    ];
    let tables = run(arguments).assert_success().stdout;
    let report = json(&scored);
    let score = |class: &str| {
        ["recall", "precision"].map(|score| report["classes"][class]["all"][score].as_f64().expect("a score"))
    };
    (["SNV", "INDEL", "SV"].map(score), tables)
}

/// Calls a simulated pair of a library and asserts minimum recall and precision of SNVs, indels and structural
/// variants.
fn assert_accuracy(library: &str, least: [[f64; 2]; 3]) {
    let data = simulate(library, "6", &[&["--library", library], &SOME]);
    let out = scratch(&format!("{library}-calls"));
    let ended = run(data.call(&out)).assert_success();
    assert!(!ended.stderr.contains("two people"), "{}", ended.stderr);
    let (scores, tables) = scores(&data, &out);
    let enough = scores.as_flattened().iter().zip(least.as_flattened()).all(|(score, least)| score >= least);
    assert!(enough, "{library}: {scores:?} where {least:?} is asked\n{tables}");
}

/// Calls two samples of the same cells and asserts a maximum number of records that pass.
fn assert_few_calls(library: &str, most: usize) {
    let data = simulate(&format!("{library}-same"), "7", &[&["--library", library], &NONE]);
    let out = scratch(&format!("{library}-same-calls"));
    run(data.call(&out)).assert_success();
    let passed = filters(&out).iter().filter(|f| *f == "PASS").count();
    assert!(passed <= most, "{library}: {passed} pass");
}

#[test]
fn a_whole_genome_library() {
    assert_accuracy("wgs", [[0.97, 0.98], [0.94, 0.97], [0.9, 0.95]]);
    assert_few_calls("wgs", 1);
}

#[test]
fn fixed_tissue() {
    // Two fifths of the pairs are duplicates and the depth is uneven: some loci have hardly any molecules of the
    // normal.
    assert_accuracy("ffpe", [[0.6, 0.95], [0.5, 0.95], [0.9, 0.95]]);
    assert_few_calls("ffpe", 1);
}

#[test]
fn a_library_that_folds_back() {
    assert_accuracy("transposase", [[0.93, 0.97], [0.9, 0.93], [0.9, 0.95]]);
    assert_few_calls("transposase", 1);
}

#[test]
fn what_is_amplified_costs_what_its_reads_cost() {
    let size = ["--amplifications", "2", "--snvs", "20", "--indels", "0", "--svs", "0"];
    let data = simulate("amplified", "8", &[&["--library", "wgs"], &size]);
    let out = scratch("amplified-calls");
    run(data.call(&out)).assert_success();
    let lines = json(&out.join("summary.json"))["stages"].clone();
    let count = |what: &str| {
        let line = lines.as_array().expect("lines").iter().find(|l| l["description"] == what);
        line.and_then(|l| l["count"].as_u64()).unwrap_or_else(|| panic!("no line {what}"))
    };
    // Most of the tumour's pairs are from two amplified regions. Only some of the pairs with recurrent errors there
    // are assembled.
    let (read, taken) = (count("tumour: pairs read"), count("pairs with candidate k-mers"));
    assert!(read > 80_000 && taken * 4 < read, "{taken} of {read} pairs taken up");
    let (scores, tables) = scores(&data, &out);
    // Slippage in one of fifty molecules is no indel, even with hundreds of molecules.
    for [recall, precision] in &scores[..2] {
        assert!(*recall >= 0.9 && *precision >= 0.95, "{tables}");
    }
}

#[test]
fn neighbouring_bases_are_one_record_and_clusters_are_phased() {
    let linked = ["--snvs", "0", "--indels", "0", "--svs", "0", "--mnvs", "20", "--clusters", "15"];
    let data = simulate("linked", "11", &[&["--library", "wgs"], &linked]);
    let out = scratch("linked-calls");
    run(data.call(&out)).assert_success();
    let truth = fs::read_to_string(data.folder.join("truth.vcf")).expect("a truth");
    let truth = passing(&truth);
    let calls = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    let calls = passing(&calls);
    let is = |t: &[&str], c: &[&str]| t[..2] == c[..2] && t[3..5] == c[3..5];
    let mnv = |record: &&Vec<&str>| record[7].contains("CLASS=MNV;");
    let mnvs: Vec<_> = truth.iter().filter(mnv).collect();
    let joined = mnvs.iter().filter(|t| calls.iter().filter(mnv).any(|c| is(t, c))).count();
    assert!(mnvs.len() == 20 && joined >= 19, "{joined} of {}", mnvs.len());
    // Records by sequence and phase set.
    let mut sets: BTreeMap<[&str; 2], Vec<&[&str]>> = BTreeMap::new();
    for call in calls.iter().filter(|c| c[8].ends_with(":PS")) {
        let (genotype, set) = (&call[10][..3], call[10].rsplit(':').next().expect("PS"));
        assert!(genotype == "0|1" && call[9].starts_with("0/0:") && call[9].ends_with(":."), "{call:?}");
        sets.entry([call[0], set]).or_default().push(call);
    }
    assert!(sets.len() >= 12, "{sets:?}");
    for ([_, first], members) in &sets {
        assert!(members.len() > 1 && members[0][1] == *first, "{first}: {members:?}");
        let known = truth.iter().filter(|t| members.iter().any(|c| is(t, c)));
        let mut haplotypes: Vec<&str> = known.map(|t| t[9]).collect();
        haplotypes.dedup();
        assert!(haplotypes.len() <= 1, "{first}: {members:?}");
    }
}

#[test]
fn another_species_withholds_the_results() {
    let mut data = simulate("species", "12", &[&["--library", "wgs"], &NONE]);
    data.tumor = simulate("other-species", "13", &[&["--library", "wgs"], &NONE]).tumor;
    let out = scratch("species-calls");
    assert_withheld(&data, &out, "other_species", "Check that both samples are of the same species");
    let lines = json(&out.join("summary.json"))["stages"].clone();
    let is_skipped =
        |l: &&Value| l["stage"] == "select" && l["description"].to_string().contains("samples are of one species");
    let select: Vec<&Value> = lines.as_array().expect("lines").iter().filter(is_skipped).collect();
    // All reads that are not from the person's genome: 300,000 bases, less what the contig ends lack.
    let left_out = select[0]["count"].as_u64().expect("a count");
    assert!(select.len() == 1 && (290_000..330_000).contains(&left_out), "{select:?}");
    assert!(!filters(&out).iter().any(|f| f == "PASS"), "{:?}", filters(&out));
}

/// A fifth of the tumour's reads are of a related species, such as the host of a xenograft, which has one of the patient's
/// chromosomes with differences in every 40th base.
#[test]
fn reads_of_a_related_species_are_reported_and_their_differences_filtered() {
    let patient = simulate("related-patient", "14", &[&["--library", "wgs"], &SOME]);
    let genome = fs::read_to_string(patient.folder.join("genome.fa")).expect("a genome");
    let mut number_of_base = 0;
    let mut differ = |base: char| {
        number_of_base += 1;
        match (number_of_base % 40, base) {
            (0, 'A') => 'C',
            (0, _) => 'A',
            _ => base,
        }
    };
    let chromosome = genome.split_inclusive('>').nth(1).expect("a chromosome").trim_end_matches('>');
    let lines = chromosome.lines().enumerate().map(|(number, line)| match number {
        0 => format!(">{line}"),
        _ => line.chars().map(&mut differ).collect(),
    });
    let host = patient.folder.join("host.fa");
    fs::write(&host, lines.collect::<Vec<String>>().join("\n")).expect("a genome");
    let foreign = ["--foreign-tumor", "0.2", "--foreign-genome", host.to_str().expect("UTF-8")];
    let data = simulate("related-species", "14", &[&["--library", "wgs"], &SOME, &foreign]);
    let out = scratch("related-calls");
    // Half of the genome would also look like that of another person.
    let ended = run(data.call_with(&out, &["--force"])).assert_success();
    assert!(ended.stderr.contains("DNA of another species"), "{}", ended.stderr);
    let warnings = json(&out.join("summary.json"))["warnings"].to_string();
    assert!(warnings.contains("\"other_species\""), "{warnings}");
    let all = filters(&out);
    let passing = all.iter().filter(|f| *f == "PASS").count();
    // About 106 changes are somatic, and 15,000 bases of the host differ.
    assert!(passing <= 130 && all.len() > 3000, "{passing} of {} pass", all.len());
    let (scores, tables) = scores(&data, &out);
    assert!(scores[0][0] >= 0.8 && scores[0][1] >= 0.8, "{tables}");
}

#[test]
fn two_people_are_told() {
    let strangers = simulate("swapped", "9", &[&["--library", "wgs", "--foreign-normal", "1"], &NONE]);
    let out = scratch("swapped-calls");
    let ended = run(strangers.call(&out));
    assert!(ended.code == Some(1) && ended.stderr.contains("two people"), "{}", ended.stderr);
    assert!(names(&out).iter().all(|name| name == ".work"), "{:?}", names(&out));
    let ended = run(strangers.call_with(&out, &["--force", "--resume"])).assert_success();
    assert!(ended.stderr.contains("two people"), "{}", ended.stderr);
    let vcf = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8");
    let is_warning = |line: &str| line.starts_with("##genumaWarning=") && line.contains("two people");
    assert!(vcf.lines().take_while(|line| line.starts_with("##")).any(is_warning), "{vcf}");
    assert!(json(&out.join("summary.json"))["genotype_mismatch_rate"].as_f64().is_some_and(|share| share > 0.0));
    // A tenth of another person's reads in the normal is contamination, and not reported as foreign sequence.
    let touched = simulate("touched", "9", &[&["--library", "wgs", "--foreign-normal", "0.1"], &NONE]);
    let out = scratch("touched-calls");
    let ended = run(touched.call(&out)).assert_success();
    assert!(!ended.stderr.contains("two people"), "{}", ended.stderr);
    assert!(json(&out.join("summary.json"))["genotype_mismatch_rate"].is_null());
}

#[test]
fn a_genome_like_the_human_one_is_a_mans_with_its_mitochondrion() {
    let size = ["--genome-like", "human", "--genome-length", "1.2M", "--depth-tumor", "4", "--depth-normal", "4"];
    let some = ["--snvs", "60", "--indels", "10", "--svs", "4", "--spacing", "200"];
    let data = Data::simulate("human", &[&size[..], &some].concat());
    let read = |name: &str| fs::read_to_string(data.folder.join(name)).expect("text");
    let index = read("genome.fa.fai");
    let contigs: Vec<&str> = index.lines().filter_map(|l| l.split('\t').next()).collect();
    assert_eq!((contigs.len(), contigs[0], contigs[22], contigs[24]), (25, "chr1", "chrX", "chrM"));
    let bases = read("genome.fa");
    let count = |base| bases.lines().filter(|l| !l.starts_with('>')).map(|l| l.matches(base).count()).sum::<usize>();
    assert!((36_000..60_000).contains(&count('N')), "{}", count('N'));
    let report = json(&data.folder.join("simulate.json"));
    assert_eq!(report["parameters"]["genome"]["human"]["length"], 1_200_000);
    assert_eq!(report["parameters"]["samples"]["mitochondrion"], 1000.0);
    // Sequence that exists once has one allele.
    let truths = [read("germline.vcf"), read("truth.vcf")].concat();
    for record in truths.lines().filter(|l| !l.starts_with('#')) {
        let columns: Vec<&str> = record.split('\t').collect();
        let alone = ["chrX", "chrY"].contains(&columns[0]);
        assert_eq!(columns[9] == "1", alone, "{record}");
    }
    assert!(["chrX", "chrY"].iter().all(|c| truths.contains(&format!("\n{c}\t"))));
    // Germline variants are false calls, and each has a named region.
    let file = |name: &str| data.folder.join(name).to_str().expect("UTF-8").to_owned();
    let scores = scratch("kinds").join("scores.json");
    let scored =
        ["bench", "evaluate", &file("truth.vcf"), &file("germline.vcf"), "--regions", &file("repeats.bed"), "--json"]
            .map(str::to_owned);
    let said = run(scored.into_iter().chain([scores.to_str().expect("UTF-8").to_owned()])).assert_success().stdout;
    assert!(said.contains("\nalu ") && said.contains("\nelsewhere "), "{said}");
    let scores = json(&scores);
    let sum =
        |kinds: &Value| kinds["false_calls"].as_array().into_iter().flatten().filter_map(Value::as_u64).sum::<u64>();
    let counted: u64 = scores["kinds"].as_object().expect("kinds").values().map(sum).sum();
    assert_eq!(counted, scores["false_calls"].as_array().expect("false calls").len() as u64);
}

#[test]
fn fixed_tissue_is_called_without_a_reference() {
    // Regression: reads of the normal that ended within flanks of contigs once ended the call.
    let folder = scratch("fixed-bare");
    let out = folder.to_str().expect("UTF-8");
    let made = ["--genome-length", "600000", "--library", "ffpe", "--depth-tumor", "52", "--depth-normal", "26"];
    run(["bench", "simulate", "--seed", "16", "-o", out].iter().chain(&made)).assert_success();
    let reads = |sample: &str| [1, 2].map(|mate| format!("{out}/{sample}_{mate}.fq.gz"));
    let ([t1, t2], [n1, n2]) = (reads("tumor"), reads("normal"));
    let calls = folder.join("calls");
    let calls = calls.to_str().expect("UTF-8");
    run(["call", "--tumor", &t1, &t2, "--normal", &n1, &n2, "-o", calls, "--threads", "2"]).assert_success();
    assert!(filters(Path::new(calls)).iter().any(|filter| filter == "PASS"));
}
