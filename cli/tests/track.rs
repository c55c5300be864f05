//! `genuma track`: known variants in later samples, counted by molecules.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{genuma, installed, json, peak_memory_bytes, run, scratch, write_many_substitutions};
use serde_json::Value;

/// Default options of the simulated patient: 300 kb and a tumour.
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

/// Maximum number of bytes that a tracked substitution takes: its about 115 k-mers, its sequences and its record.
const MAX_TRACK_BYTES_PER_RECORD: u64 = 7_000;

fn simulate(name: &str, options: &[&str]) -> PathBuf {
    let folder = scratch(name);
    let out = folder.to_str().expect("UTF-8");
    let usual = PATIENT.iter().filter(|o| !options.contains(&o[0])).flatten().copied();
    let usual: Vec<&str> = usual.collect();
    run([&["bench", "simulate", "-o", out][..], &usual, options].concat()).assert_success();
    folder
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("UTF-8").to_owned()
}

/// Arguments to track the truth of `patient` in the tumour sample of `later`.
fn track_args(patient: &Path, later: &Path, options: &[&str]) -> Vec<String> {
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

/// Number of variants with each verdict, of the first sample.
fn verdicts(told: &Value) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for change in told["samples"][0]["changes"].as_array().expect("changes") {
        *counts.entry(change["verdict"].as_str().expect("a verdict").to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn a_relapse_shows_every_kind_of_change_and_how_much_of_it_there_is() {
    let patient =
        simulate("relapse", &["--depth-tumor", "60", "--purity", "0.4", "--library", "wgs", "--reads-seed", "3"]);
    let out = patient.join("told.json");
    run(track_args(&patient, &patient, &["--json", out.to_str().expect("UTF-8")])).assert_success();
    let told = json(&out);
    let whole = &told["samples"][0]["summary"];
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
    // Variants that cannot be tracked are listed.
    let untracked = told["untracked"].as_array().expect("a list");
    assert!(untracked.iter().all(|u| u["reason"].as_str().is_some_and(|why| !why.is_empty()) && u["pos"].is_u64()));
    assert!(told["samples"][0]["pairs"].as_u64().expect("pairs") > 10_000);
}

#[test]
fn a_trace_is_detected_by_all_changes_together_and_nothing_is_where_nothing_is() {
    let panel = ["--library", "panel", "--depth-tumor", "1500", "--snvs", "40", "--indels", "5", "--svs", "0"];
    let trace = simulate("trace", &[&panel[..], &["--purity", "0.004", "--reads-seed", "11"]].concat());
    let none = simulate("none", &[&panel[..], &["--purity", "0", "--reads-seed", "12"]].concat());
    let out = trace.join("told.json");
    run(track_args(&trace, &trace, &["--json", out.to_str().expect("UTF-8")])).assert_success();
    let told = json(&out);
    let whole = &told["samples"][0]["summary"];
    assert!(whole["detected"] == true && whole["p"].as_f64().expect("p") < 1e-6, "{whole}");
    let part = |end: &str| whole["tumour_fraction"][end].as_f64().expect("a number");
    assert!(part("low") < 0.004 && part("high") > 0.004 && part("value") < 0.01, "{whole}");
    // Half of the pairs are duplicates: there are far fewer molecules than reads.
    let first = &told["samples"][0]["changes"][0];
    assert!(first["duplicates"].as_u64().expect("duplicates") > 100, "{first}");

    run(track_args(&trace, &none, &["--json", out.to_str().expect("UTF-8")])).assert_success();
    let told = json(&out);
    let whole = &told["samples"][0]["summary"];
    assert!(whole["detected"] == false && whole["tumour_fraction"]["low"].as_f64().expect("low") < 2e-4, "{whole}");
    assert_eq!(verdicts(&told).get("found"), None);
}

#[test]
fn a_variant_takes_few_kilobytes() {
    let folder = scratch("track-memory");
    let reads = ["1.fq", "2.fq"].map(|name| file(&folder, name));
    let peak = |num_records: usize| {
        let [genome, vcf] = write_many_substitutions(&folder, num_records);
        let bases = fs::read(&genome).expect("a file");
        for (mate, path) in reads.iter().enumerate() {
            let start = 1000 + 200 * mate;
            let seq = String::from_utf8_lossy(&bases[start..start + 100]).into_owned();
            fs::write(path, format!("@r\n{seq}\n+\n{}\n", "I".repeat(100)).repeat(10)).expect("a file");
        }
        let [genome, vcf] = [&genome, &vcf].map(|path| path.to_str().expect("UTF-8"));
        let out = file(&folder, "out.tsv");
        peak_memory_bytes(["track", vcf, &reads[0], &reads[1], "--reference", genome, "-t", "2", "-o", &out])
    };
    let (few, many) = (peak(2_000), peak(14_000));
    let bytes_per_record = many.saturating_sub(few) / 12_000;
    assert!(bytes_per_record < MAX_TRACK_BYTES_PER_RECORD, "{bytes_per_record} bytes: {few} and {many}");
}

#[test]
fn damage_makes_no_tumour() {
    let fixed = ["--library", "ffpe", "--oxidation", "1e-3", "--depth-tumor", "80", "--purity", "0"];
    for seed in ["1", "2"] {
        let none = simulate(&format!("damage{seed}"), &[&fixed[..], &["--seed", seed]].concat());
        let out = none.join("told.json");
        run(track_args(&none, &none, &["--json", out.to_str().expect("UTF-8")])).assert_success();
        let told = json(&out);
        assert_eq!(told["samples"][0]["summary"]["detected"], false, "{}", told["samples"][0]["summary"]);
        assert_eq!(verdicts(&told).get("found"), None, "seed {seed}");
    }
}

#[test]
fn several_samples_and_the_normal_are_judged_each_by_itself() {
    let patient = simulate("several", &["--depth-tumor", "30", "--depth-normal", "30", "--reads-seed", "5"]);
    // Germline variants do not count as tumour if the normal is given.
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
    let table = run(args).assert_success().stdout;
    let rows: Vec<Vec<&str>> = table.lines().filter(|l| !l.starts_with('#')).map(|l| l.split('\t').collect()).collect();
    let of = |sample: &str, verdict: &str| rows.iter().filter(|r| r[0] == sample && r[16] == verdict).count();
    assert!(of("june", "found") > 50 && of("none", "found") == 0, "{table}");
    assert!(of("june", "in_normal") >= 15 && of("none", "in_normal") >= 15);
    assert!(table.contains("# june: tumour detected") && table.contains("# none: tumour not detected"));
    assert!(rows.iter().all(|r| r.len() == 17));
}

#[test]
fn threads_and_layouts_of_the_reads_do_not_show() {
    let patient = simulate("same", &["--depth-tumor", "20", "--purity", "0.5"]);
    let table = |options: &[&str]| run(track_args(&patient, &patient, options)).assert_success().stdout;
    let one = table(&["-t", "1"]);
    assert_eq!(one, table(&["-t", "3"]));
    // Interleaved mates in one file.
    let mates = ["tumor_1.fq.gz", "tumor_2.fq.gz"]
        .map(|name| String::from_utf8(crate::common::gunzip(&patient.join(name))).expect("text"));
    let lines = mates.each_ref().map(|text| text.lines().collect::<Vec<_>>());
    let in_turn: Vec<String> =
        lines[0].chunks(4).zip(lines[1].chunks(4)).map(|(a, b)| [a, b].concat().join("\n")).collect();
    let path = patient.join("in_turn.fq");
    fs::write(&path, in_turn.join("\n") + "\n").expect("a file");
    let (calls, reads, genome) =
        (file(&patient, "truth.vcf"), file(&patient, "in_turn.fq"), file(&patient, "genome.fa"));
    assert_eq!(one, run(["track", &calls, &reads, "--interleaved", "--reference", &genome]).assert_success().stdout);
    let single =
        run(["track", &calls, &file(&patient, "tumor_1.fq.gz"), "--single", "-k", "24", "--reference", &genome])
            .assert_success()
            .stdout;
    assert!(single.contains("tumour detected"), "{single}");
}

/// Rows of the table of the only sample by position and alleles: molecules with the variant, all molecules, verdict.
fn rows(table: &str) -> BTreeMap<String, [String; 3]> {
    let rows = table.lines().filter(|l| !l.starts_with('#')).skip(1);
    let row = |line: &str| {
        let f: Vec<&str> = line.split('\t').collect();
        (f[1..6].join(" "), [f[8], f[9], f[16]].map(str::to_owned))
    };
    rows.map(row).collect()
}

#[test]
fn the_vcf_comes_back_with_the_later_samples_as_its_columns() {
    let patient = simulate("annotated", &["--depth-tumor", "30", "--purity", "0.8"]);
    let table = run(track_args(&patient, &patient, &["--all-filters"])).assert_success().stdout;
    let told = rows(&table);
    let out = |name: &str| {
        let path = file(&patient, name);
        run(track_args(&patient, &patient, &["--all-filters", "-o", &path])).assert_success();
        PathBuf::from(path)
    };
    let plain = fs::read_to_string(out("told.vcf")).expect("a file");
    let packed = out("told.vcf.gz");
    assert_eq!(String::from_utf8(crate::common::gunzip(&packed)).expect("text"), plain);
    let truth = fs::read_to_string(patient.join("truth.vcf")).expect("a file");
    let data = |text: &str| -> Vec<Vec<String>> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    };
    let (before, after) = (data(&truth), data(&plain));
    assert_eq!(before.len(), after.len());
    let mut found = 0;
    for (old, new) in before.iter().zip(&after) {
        assert_eq!((new.len(), &old[..7]), (10, &new[..7]));
        assert!(new[7].starts_with(&old[7]));
        let values: Vec<&str> = new[9].split(':').collect();
        let [changed, molecules, verdict] = [0, 1, 6].map(|at| values[at]);
        // The mate of a breakend has no row of its own.
        let Some(row) = told.get(&new[..5].join(" ")) else { continue };
        if row[2].starts_with("cannot be tracked: ") {
            assert!(verdict == "cannot_be_tracked" && new[7].contains(";TRACK_WHY="), "{new:?}");
        } else {
            assert_eq!([changed, molecules, verdict], row.each_ref().map(String::as_str), "{new:?}");
            found += usize::from(verdict == "found");
        }
    }
    assert!(found > 50, "{found}");
    assert!(plain.contains("##genumaTrack=<ID=later,Description=\"later: tumour detected"));
    if let Some(bcftools) = installed("bcftools") {
        let ended = Command::new(bcftools).arg("view").arg(&packed).output().expect("bcftools");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success() && !said.contains("[E::") && !said.contains("Warn"), "{said}");
        assert_eq!(data(&String::from_utf8(ended.stdout).expect("text")).len(), after.len());
    }
}

#[test]
fn records_as_other_callers_write_them_are_looked_for_or_told() {
    let patient = simulate("others", &["--depth-tumor", "20", "--purity", "0.8"]);
    let truth = fs::read_to_string(patient.join("truth.vcf")).expect("a file");
    let snv = truth.lines().find(|l| l.contains("CLASS=SNV")).expect("an SNV");
    let f: Vec<&str> = snv.split('\t').collect();
    let (chrom, pos, old, new) = (f[0], f[1], f[3], f[4]);
    let third = ["A", "C", "G", "T"].into_iter().find(|b| *b != old && *b != new).expect("a base");
    let lines = [
        // Two alleles and the `*` allele, with missing counts, as Mutect2 writes them.
        format!("{chrom} {pos} . {old} {third},{new},* . . DP=30 GT:AD ./.:. 0/1:3,1,9,0"),
        // Strelka counts by base.
        format!("{chrom} {pos} . {old} {new} . LowEVS SOMATIC DP:{old}U:{new}U 9:9,9:0,0 9:3,3:9,9"),
        format!("{chrom} {pos} . {old} <DEL> . PASS SVTYPE=DEL GT 0/0 0/1"),
        format!("{chrom} {pos} . {old} <DUP:TANDEM> . PASS END=1 GT 0/0 0/1"),
        format!("{chrom} {pos} . {old} <INS:ME:ALU> . PASS END={pos} GT 0/0 0/1"),
        format!("{chrom} {pos} . {old} {old}R . PASS . GT 0/0 0/1"),
        format!("{chrom} {pos} . {old} {old}. . PASS . GT 0/0 0/1"),
        format!("{chrom} 0 . N ]{chrom}:9]N . PASS . GT 0/0 0/1"),
        format!("{chrom} {pos} . {old} . . PASS . GT 0/0 0/0"),
    ];
    let head = "##fileformat=VCFv4.2\n#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT NORMAL TUMOR\n";
    let text = format!("{head}{}\n", lines.join("\n")).replace(' ', "\t");
    let calls = file(&patient, "others.vcf");
    fs::write(&calls, text).expect("a file");
    let out = file(&patient, "told.vcf");
    let reads = [1, 2].map(|mate| file(&patient, &format!("tumor_{mate}.fq.gz")));
    let genome = file(&patient, "genome.fa");
    run(["track", &calls, &reads[0], &reads[1], "--reference", &genome, "-o", &out]).assert_success();
    let told = fs::read_to_string(&out).expect("a file");
    let told: Vec<Vec<&str>> = told.lines().filter(|l| !l.starts_with('#')).map(|l| l.split('\t').collect()).collect();
    let verdicts: Vec<&str> = told.iter().map(|line| line[9].rsplit(':').next().expect("a verdict")).collect();
    assert_eq!(told.len(), lines.len());
    let first: Vec<&str> = verdicts[0].split(',').collect();
    assert!(first.len() == 3 && first[1..] == ["found", "not_looked_for"] && first[0] != "found", "{first:?}");
    assert_eq!(verdicts[1], "not_looked_for");
    assert!(verdicts[2..8].iter().all(|verdict| *verdict == "cannot_be_tracked"), "{verdicts:?}");
    assert!(told[2..8].iter().all(|line| line[7].contains("TRACK_WHY=")));
    assert_eq!(verdicts[8], "not_looked_for");
}

#[test]
fn reads_may_come_from_a_pipe() {
    let patient = simulate("piped", &["--depth-tumor", "20", "--purity", "0.5"]);
    let reads = file(&patient, "tumor_1.fq.gz");
    let (calls, genome) = (file(&patient, "truth.vcf"), file(&patient, "genome.fa"));
    let of = |reads: &str| ["track", &calls, reads, "--single", "--reference", &genome].map(str::to_owned);
    let table = run(of(&reads)).assert_success().stdout;
    let piped = genuma().args(of("-")).stdin(fs::File::open(&reads).expect("reads")).output();
    let piped = piped.expect("genuma starts");
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    assert_eq!(String::from_utf8(piped.stdout).expect("text"), table);
    let mut cat = Command::new("cat").arg(&reads).stdout(Stdio::piped()).spawn().expect("cat");
    let pipe = cat.stdout.take().expect("a pipe");
    let piped = genuma().args(of("/dev/stdin")).stdin(pipe).output().expect("genuma starts");
    cat.wait().expect("cat ends");
    assert_eq!(String::from_utf8(piped.stdout).expect("text"), table);
}

#[test]
fn calls_without_a_reference_are_refused_with_what_to_do() {
    let patient = simulate("bare", &["--depth-tumor", "25", "--depth-normal", "25"]);
    let of = |sample: &str| [1, 2].map(|mate| file(&patient, &format!("{sample}_{mate}.fq.gz")));
    let ([t1, t2], [n1, n2]) = (of("tumor"), of("normal"));
    let (out, genome) = (file(&patient, "calls"), file(&patient, "genome.fa"));
    run(["call", "-q", "--tumor", &t1, &t2, "--normal", &n1, &n2, "-o", &out]).assert_success();
    let calls = format!("{out}/somatic.vcf.gz");
    let ended = run(["track", &calls, &t1, &t2, "--reference", &genome]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("call again with --reference"), "{}", ended.stderr);
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
    assert!(of_another.contains(&format!("chr1:500:{other}>{here}: REF does not match the reference")), "{of_another}");
    assert!(
        said(&record("chr9 500 . A C . PASS ."), &reads)
            .contains(".vcf: chr9:500:A>C: the reference does not have the contigs of 1 of 1 changes")
    );
    assert!(said(&record("chr1 999999999 . A C . PASS ."), &reads).contains("beyond the end of the contig"));
    assert!(said(head, &reads).contains("contains no variant records"));
    assert!(said("", &reads).contains("the file is empty"));
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
    // A truncated file is not accepted as complete.
    let whole = fs::read(patient.join("tumor_1.fq.gz")).expect("a file");
    fs::write(patient.join("cut_1.fq.gz"), &whole[..whole.len() / 2]).expect("a file");
    assert!(said(&snv, &[file(&patient, "cut_1.fq.gz"), reads[1].clone()]).contains("cut_1.fq.gz"));
}

#[test]
fn changes_at_positions_that_the_reference_lacks_are_not_tracked() {
    let patient = simulate("unknown-contig", &["--depth-tumor", "1"]);
    let genome = file(&patient, "genome.fa");
    let reads = [file(&patient, "tumor_1.fq.gz"), file(&patient, "tumor_2.fq.gz")];
    let sequence = fs::read_to_string(patient.join("genome.fa")).expect("a file");
    let bases: String = sequence.lines().skip(1).take(40).collect();
    let snv = |pos: usize| {
        let here = &bases[pos - 1..pos];
        format!("chr1 {pos} . {here} {} . PASS .", if here == "A" { "C" } else { "A" })
    };
    let here = &bases[599..600];
    let lines = [
        snv(500),
        snv(1500),
        snv(1000),
        "chrUn_X 500 . A C . PASS .".to_owned(),
        "chr1 999999999 . A C . PASS .".to_owned(),
        format!("chr1 600 . {here} {here}[chrUn_Y:500[ . PASS SVTYPE=BND"),
    ];
    let head = "##fileformat=VCFv4.3\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n";
    let vcf = lines.iter().fold(head.to_owned(), |text, line| text + &line.replace(' ', "\t") + "\n");
    fs::write(patient.join("asked.vcf"), vcf).expect("a file");
    let asked = file(&patient, "asked.vcf");
    let ended = run(["track", &asked, &reads[0], &reads[1], "--reference", &genome]).assert_success();
    let reason_of = |place: &str| {
        let row = ended.stdout.lines().find(|row| row.contains(place)).unwrap_or_else(|| panic!("{}", ended.stdout));
        row.split_once("cannot be tracked: ").map(|(_, reason)| reason.to_owned())
    };
    assert_eq!(reason_of("\tchr1\t500\t"), None);
    let contig = "the reference does not have its contig or that of its mate";
    assert_eq!(reason_of("\tchrUn_X\t500\t").as_deref(), Some(contig));
    assert_eq!(reason_of("\tchr1\t600\t").as_deref(), Some(contig));
    let beyond = "its position or that of its mate is beyond the end of the contig";
    assert_eq!(reason_of("\tchr1\t999999999\t").as_deref(), Some(beyond));
    assert!(ended.stderr.contains("3 of 6 variants cannot be tracked"), "{}", ended.stderr);
}
