//! Several tumours of one person in one call.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Data, RunOutput, SharedFixture, assert_same, called, data, gunzip, gzip, json, run, scratch};

/// Two tumours of one person that share variants: the second subclone exists only in the first tumour, the third only
/// in the second.
struct Two {
    first: Data,
    second: Data,
}

fn two() -> &'static Two {
    static TWO: SharedFixture<Two> = SharedFixture::new();
    TWO.get_or_init(|| {
        let simulate = |name: &str, shares: &str, reads: &str| {
            let size = ["--genome-length", "300000", "--contigs", "2", "--seed", "8", "--depth-tumor", "40"];
            let variants = ["--snvs", "60", "--indels", "30", "--svs", "6", "--largest-sv", "5000"];
            let samples = ["--subclones", shares, "--reads-seed", reads];
            Data::simulate(name, &[size.as_slice(), &variants, &samples].concat())
        };
        Two { first: simulate("first", "0.1,0.5,0", "31"), second: simulate("second", "0.6,0,0.3", "32") }
    })
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// Files of a tumour, with its name before the first file.
fn named(name: &str, files: &[PathBuf]) -> Vec<String> {
    let mut files: Vec<String> = files.iter().map(|path| text(path)).collect();
    files[0] = format!("{name}={}", files[0]);
    files
}

/// Calls these tumours of one person, with the normal and the genome of the first.
fn call(tumours: &[Vec<String>], out: &Path, options: &[&str]) -> RunOutput {
    let Two { first, .. } = two();
    let mut args = vec!["call".to_owned()];
    for files in tumours {
        args.push("--tumor".to_owned());
        args.extend_from_slice(files);
    }
    args.push("--normal".to_owned());
    args.extend(first.normal.iter().map(|path| text(path)));
    args.extend(["--reference".to_owned(), text(&first.folder.join("genome.fa"))]);
    args.extend(["-o".to_owned(), text(out)]);
    args.extend(options.iter().map(|&option| option.to_owned()));
    run(args)
}

/// Both tumours with their names.
fn both_tumours() -> [Vec<String>; 2] {
    let Two { first, second } = two();
    [named("first", &first.tumor), named("relapse", &second.tumor)]
}

/// The same reads in another order, in files of their own.
fn turned(files: &[PathBuf], folder: &Path) -> Vec<String> {
    let turn = |(mate, file): (usize, &PathBuf)| {
        let text = String::from_utf8(gunzip(file)).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        let (front, back) = lines.split_at(lines.len() / 8 * 4);
        let path = folder.join(format!("turned_{mate}.fq.gz"));
        gzip(path, ([back, front].concat().join("\n") + "\n").as_bytes())
    };
    files.iter().enumerate().map(turn).map(|path| text(&path)).collect()
}

fn called_both() -> &'static Path {
    static CALLED: SharedFixture<PathBuf> = SharedFixture::new();
    CALLED.get_or_init(|| {
        let out = scratch("both");
        call(&both_tumours(), &out, &["--threads", "2"]).assert_success();
        out
    })
}

/// Columns of the records of a call.
fn vcf(out: &Path) -> Vec<Vec<String>> {
    let text = String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("text");
    let records = text.lines().filter(|line| !line.starts_with("##"));
    records.map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// The results for each tumour and the normal are those of a call of that tumour alone.
#[test]
fn every_tumour_has_facts_of_its_own() {
    let read = |out: &Path| -> serde_json::Value {
        serde_json::from_slice(&fs::read(out.join("summary.json")).expect("a summary")).expect("JSON")
    };
    let summary = read(called_both());
    assert_eq!(summary["other_tumours"].as_array().expect("others").len(), 1);
    assert_eq!(summary["other_tumours"][0]["sample"], "relapse");
    for (tumour, facts) in both_tumours().into_iter().zip([&summary, &summary["other_tumours"][0]]) {
        let out = scratch("facts-alone");
        call(&[tumour], &out, &["--threads", "2"]).assert_success();
        let alone = read(&out);
        assert!(alone.get("others").is_none());
        assert_eq!(alone["library"], facts["library"]);
        for fact in ["identity", "contamination", "coverage", "duplicate_share", "substitution_error_rates", "roots"] {
            assert!(!facts["sample_summary"]["pair"][fact].is_null());
            assert_eq!(alone["sample_summary"]["pair"][fact], facts["sample_summary"]["pair"][fact], "{fact}");
        }
        assert!(facts["sample_summary"]["burden"]["value"].as_f64().expect("a burden") > 10.0);
    }
    // Variants of only one tumour are not counted for the other.
    assert_ne!(summary["sample_summary"]["spectrum"], summary["other_tumours"][0]["sample_summary"]["spectrum"]);
    let page = fs::read_to_string(called_both().join("report.html")).expect("a report");
    assert!(page.contains("Normal and first") && page.contains("Normal and relapse"));
}

/// A small variant, by position and alleles.
type Key = (String, String, String, String);

fn key(record: &[String]) -> Key {
    (record[0].clone(), record[1].clone(), record[3].clone(), record[4].clone())
}

/// Expected allele fractions of the small variants of a tumour.
fn truth(data: &Data) -> BTreeMap<Key, f64> {
    let text = fs::read_to_string(data.folder.join("truth.vcf")).expect("truth");
    let records = text.lines().filter(|line| !line.starts_with('#'));
    let records = records.map(|line| line.split('\t').map(str::to_owned).collect::<Vec<String>>());
    let small = records.filter(|r| ["CLASS=SNV", "CLASS=INDEL"].iter().any(|class| r[7].starts_with(class)));
    let fraction = |r: &[String]| {
        let field = r[7].split(';').find_map(|field| field.strip_prefix("AF="));
        field.and_then(|af| af.parse().ok()).expect("a fraction")
    };
    small.map(|r| (key(&r), fraction(&r))).collect()
}

fn has(column: &str) -> bool {
    ["0/1", "0|1"].iter().any(|genotype| column.starts_with(genotype))
}

fn supporting(column: &str) -> u32 {
    let depths = column.split(':').nth(1).and_then(|ad| ad.split(',').nth(1));
    depths.and_then(|n| n.parse().ok()).expect("AD")
}

#[test]
fn shared_and_private_changes_are_told_apart() {
    let Two { first, second } = two();
    let truths = [truth(first), truth(second)];
    let all = vcf(called_both());
    assert_eq!(all[0][8..], ["FORMAT", "NORMAL", "first", "relapse"]);
    let passed: Vec<&Vec<String>> = all[1..].iter().filter(|r| r[6] == "PASS").collect();
    let (mut shared, mut private, mut wrong, mut seldom) = (0, [0; 2], Vec::new(), [0; 2]);
    for record in &passed {
        assert_eq!(record.len(), 12);
        let own = [10, 11].map(|column: usize| has(&record[column]));
        let number = own.iter().filter(|has| **has).count();
        assert!(record[7].contains(&format!(";SHARED={number}")) && number > 0, "{record:?}");
        let true_in = truths.each_ref().map(|truth| truth.get(&key(record)).copied());
        let [a, b] = true_in.map(|fraction| fraction.is_some());
        if !a && !b {
            continue;
        }
        // A variant of only one tumour is never assigned to the other.
        if (own[0] && !a) || (own[1] && !b) {
            wrong.push(record);
        }
        match (a, b) {
            (true, true) => shared += u32::from(own == [true, true]),
            (a, _) => private[usize::from(!a)] += 1,
        }
        if true_in[0].is_some_and(|af| af < 0.06) && true_in[1].is_some_and(|af| af > 0.2) {
            seldom[0] += 1;
            seldom[1] += u32::from(supporting(&record[10]) > 0 && own[0]);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(shared >= 25 && private.iter().all(|&n| n >= 10), "{shared} {private:?}");
    // At a twentieth of 40 molecules two are expected: too few in a call of one tumour.
    assert!(seldom[0] >= 15 && seldom[1] * 3 >= seldom[0] * 2, "{seldom:?}");
    let known: BTreeSet<&Key> = truths.iter().flat_map(|truth| truth.keys()).collect();
    let small = passed.iter().filter(|r| r[7].contains("CLASS=SNV") || r[7].contains("CLASS=INDEL"));
    let (hits, all) = small.fold((0, 0), |(hits, all), r| (hits + u32::from(known.contains(&key(r))), all + 1));
    assert!(hits >= 60 && all - hits <= 1, "{hits} of {all}");
}

#[test]
fn neither_threads_nor_memory_nor_lanes_show() {
    let out = scratch("other-means");
    let [first, mut relapse] = both_tumours();
    // The second tumour in two lanes, the later lane first, under the same name.
    let halves = |file: &str, mate: usize| {
        let text = String::from_utf8(gunzip(Path::new(file))).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        let (front, back) = lines.split_at(lines.len() / 8 * 4);
        [front, back].map(|half| {
            let path = out.join(format!("half-{mate}-{}.fq.gz", half[0].len() + half.len()));
            gzip(path, (half.join("\n") + "\n").as_bytes())
        })
    };
    relapse[0] = relapse[0].trim_start_matches("relapse=").to_owned();
    let [one, two] = [halves(&relapse[0], 1), halves(&relapse[1], 2)];
    let lane = |half: usize| named("relapse", &[one[half].clone(), two[half].clone()]);
    let calls = out.join("calls");
    let options = ["--threads", "1", "--memory", "160M", "--scratch", "0"];
    call(&[lane(1), first, lane(0)], &calls, &options).assert_success();
    // With the samples in another order, only columns differ.
    let turned = |mut record: Vec<String>| {
        record.swap(10, 11);
        record
    };
    let other: Vec<Vec<String>> = vcf(&calls).into_iter().map(turned).collect();
    assert_eq!(other, vcf(called_both()));
    assert_eq!(
        fs::read(calls.join("contigs.fa")).expect("contigs"),
        fs::read(called_both().join("contigs.fa")).expect("contigs")
    );
    // The original order again, with five threads.
    let again = out.join("again");
    call(&both_tumours(), &again, &["--threads", "5"]).assert_success();
    assert_same(&again, called_both());
}

#[test]
fn one_tumour_twice_is_the_same_in_both() {
    let files = |path: &[PathBuf]| path.iter().map(|path| text(path)).collect::<Vec<String>>();
    let folder = scratch("twice");
    let mut args = vec!["call".to_owned(), "--tumor".to_owned()];
    args.extend(files(&data().tumor));
    args.push("--tumor".to_owned());
    // Files with the same reads in the same order would be refused.
    args.extend(turned(&data().tumor, &folder));
    args.push("--normal".to_owned());
    args.extend(files(&data().normal));
    let out = folder.join("calls");
    args.extend(["--reference".to_owned(), text(data().reference.as_deref().expect("a reference"))]);
    args.extend(["-o".to_owned(), text(&out)]);
    run(args).assert_success();
    let twice = vcf(&out);
    assert_eq!(twice[0][9..], ["NORMAL", "TUMOR_1", "TUMOR_2"]);
    assert!(twice[1..].iter().all(|record| record[10] == record[11]));
    // A single tumour has the usual column and no number of tumours.
    let alone = vcf(called());
    assert_eq!(alone[0][9..], ["NORMAL", "TUMOR"]);
    assert!(alone.iter().all(|record| !record[7].contains("SHARED")));
    let passed = |records: &[Vec<String>]| -> BTreeSet<Key> {
        records[1..].iter().filter(|r| r[6] == "PASS" && !r[7].contains("SVTYPE")).map(|r| key(r)).collect()
    };
    let (alone, twice) = (passed(&alone), passed(&twice));
    assert!(alone.len() > 40 && alone.difference(&twice).count() <= 1, "{:?}", alone.difference(&twice));
}

#[test]
fn others_read_what_three_tumours_leave() {
    let Two { first, second } = two();
    let folder = scratch("three");
    let out = folder.join("calls");
    let files = |data: &Data| data.tumor.iter().map(|path| text(path)).collect::<Vec<String>>();
    // Reads of the normal, which have no somatic variant.
    let mut third = turned(&first.normal, &folder);
    third[0] = format!("third={}", third[0]);
    call(&[files(first), files(second), third], &out, &[]).assert_success();
    assert_eq!(vcf(&out)[0][9..], ["NORMAL", "TUMOR_1", "TUMOR_2", "third"]);
    let summary = json(&out.join("summary.json"));
    assert_eq!(summary["samples"].as_array().map(Vec::len), Some(4));
    assert_eq!(summary["bases"].as_array().map(Vec::len), Some(4));
    let tumours = summary["calls"][0]["tumours"].as_array().expect("each tumour");
    assert!(tumours.len() == 3 && tumours.iter().all(|own| own["has"].is_boolean() && own["alternative"].is_u64()));
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("in TUMOR_2</option>") && page.contains("tumour-column"));
    assert!(summary["genotype_mismatch_rate"].is_null());
    let passed: Vec<Vec<String>> = vcf(&out).into_iter().filter(|record| record[6] == "PASS").collect();
    let in_third = passed.iter().filter(|record| has(&record[12])).count();
    // Except variants that some molecules of the normal show.
    assert!(passed.len() > 60 && in_third * 40 <= passed.len(), "{in_third} of {}", passed.len());
    let bcftools = |args: &[&str]| Command::new("bcftools").args(args).output();
    let path = text(&out.join("somatic.vcf.gz"));
    let Ok(names) = bcftools(&["query", "-l", &path]) else {
        println!("skipped: no bcftools");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&names.stdout), "NORMAL\nTUMOR_1\nTUMOR_2\nthird\n");
    let shared = bcftools(&["query", "-i", "SHARED>1", "-f", "%SHARED[\\t%GT]\\n", &path]).expect("bcftools");
    let shared = String::from_utf8_lossy(&shared.stdout).into_owned();
    assert!(shared.lines().count() > 10, "{shared}");
    for line in shared.lines() {
        let mut columns = line.split('\t');
        let number: usize = columns.next().and_then(|n| n.parse().ok()).expect("a number");
        assert_eq!(columns.skip(1).filter(|genotype| has(genotype)).count(), number, "{line}");
    }
    let Ok(sam) = Command::new("samtools").arg("view").arg(out.join("supporting.bam")).output() else {
        println!("skipped: no samtools");
        return;
    };
    let sam = String::from_utf8_lossy(&sam.stdout).into_owned();
    let group = |record: &str| record.split('\t').find_map(|field| field.strip_prefix("RG:Z:")).map(str::to_owned);
    let groups: BTreeSet<String> = sam.lines().filter_map(group).collect();
    assert!(["TUMOR_1", "TUMOR_2"].iter().all(|name| groups.contains(*name)), "{groups:?}");
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let folder = scratch("refused");
    let out = folder.join("out");
    let refused = |tumours: &[Vec<String>], options: &[&str], code: i32, says: &str| {
        let ended = call(tumours, &out, options);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains(says), "{}", ended.stderr);
        assert!(!out.join("somatic.vcf.gz").exists());
    };
    let [first, relapse] = both_tumours();
    let eight: Vec<Vec<String>> = (0..8).map(|i| named(&format!("t{i}"), &two().first.tumor)).collect();
    refused(&eight, &[], 2, "8 tumours: at most 7");
    refused(&[named("NORMAL", &two().first.tumor)], &[], 2, "two samples have the name NORMAL");
    let usual = two().first.tumor.iter().map(|path| text(path)).collect();
    refused(&[usual, named("TUMOR_1", &two().second.tumor)], &[], 2, "two samples have the name TUMOR_1");
    refused(&[first.clone(), vec![relapse[0].clone()]], &[], 2, "no mate");
    let run = text(&folder.join("run"));
    refused(&[first.clone(), relapse], &["--plan", &run], 2, "several tumours are called in one process");
    // A sample without a read of sufficient length.
    let empty = [1, 2].map(|mate: usize| {
        let path = folder.join(format!("empty_{mate}.fq"));
        let bases = ["", "ACGT", "GGTT"][mate];
        fs::write(&path, format!("@a\n{bases}\n+\nIIII\n")).expect("a file");
        path
    });
    refused(
        &[first, named("empty", &empty)],
        &[],
        1,
        "the tumour empty has no read with 31 consecutive bases without N",
    );
}
