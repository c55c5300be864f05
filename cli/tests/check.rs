//! `genuma check`: distinguishes pairs of one person from pairs of relatives and of two people.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Data, RunOutput, run, scratch};
use serde_json::Value;

fn simulated(name: &str, options: &[&str]) -> Data {
    let size = ["--genome-length", "1500000", "--contigs", "4", "--svs", "0"];
    let depth = ["--depth-tumor", "25", "--depth-normal", "25"];
    Data::simulate(name, &[size.as_slice(), &depth, options].concat())
}

fn files(paths: &[PathBuf]) -> impl Iterator<Item = String> + '_ {
    paths.iter().map(|path| path.to_str().expect("UTF-8").to_owned())
}

fn checked(tumour: &[PathBuf], normal: &[PathBuf], json: &Path, options: &[&str]) -> (RunOutput, Value) {
    let mut args = vec!["check".to_owned(), "--tumor".to_owned()];
    args.extend(files(tumour));
    args.push("--normal".to_owned());
    args.extend(files(normal));
    args.extend(["--json".to_owned(), json.to_str().expect("UTF-8").to_owned()]);
    args.extend(options.iter().map(|&option| option.to_owned()));
    let ended = run(args).assert_success();
    let told = serde_json::from_slice(&fs::read(json).expect("facts")).expect("JSON");
    (ended, told)
}

fn check_data(data: &Data, options: &[&str]) -> (RunOutput, Value) {
    checked(&data.tumor, &data.normal, &data.folder.join("pair.json"), options)
}

/// Asserts that the interval of an estimate contains the true value; returns the distance of the estimate from it.
#[track_caller]
fn assert_about(estimate: &Value, truth: f64, off: f64) {
    let [value, low, high] = ["value", "low", "high"].map(|key| estimate[key].as_f64().expect("a number"));
    assert!(low <= value && value <= high, "{estimate}");
    assert!((value - truth).abs() <= off, "{truth} is estimated as {estimate}");
}

#[test]
fn one_person_is_told_from_two_and_from_relatives() {
    let cases: [(&str, &[&str], &str, &str); 4] = [
        ("one", &["--purity", "0.7", "--seed", "31"], "same", "same person"),
        ("two", &["--foreign-normal", "1", "--seed", "32"], "unrelated", "DIFFERENT PEOPLE"),
        (
            "child",
            &["--foreign-normal", "1", "--foreign-kin", "parent", "--seed", "33"],
            "relatives",
            "DIFFERENT PEOPLE, close relatives",
        ),
        (
            "sibling",
            &["--foreign-normal", "1", "--foreign-kin", "sibling", "--seed", "34"],
            "relatives",
            "DIFFERENT PEOPLE, close relatives",
        ),
    ];
    for (name, options, relation, word) in cases {
        let data = simulated(name, options);
        let (ended, told) = check_data(&data, &[]);
        assert_eq!(told["pair"]["identity"]["relation"], relation, "{name}: {}", told["pair"]["identity"]);
        let line = ended.stdout.lines().next().expect("a line");
        assert!(line.starts_with("identity") && line.contains(word), "{name}: {line}");
        // For two people neither contamination nor a tumour is reported.
        assert_eq!(told["pair"]["tumour"].is_null(), relation != "same");
        assert_eq!(told["pair"]["contamination"][0].is_null(), relation != "same");
        if relation == "same" {
            // Without a reference, neighbouring sites are unknown.
            assert!(told["pair"]["tumour"]["purity"].is_null());
            let undetermined = "purity                      not determined: without a reference";
            assert!(ended.stdout.contains(undetermined), "{}", ended.stdout);
        }
    }
}

#[test]
fn shallow_samples_tell_people_apart() {
    let size = ["--genome-length", "16000000", "--svs", "0", "--depth-tumor", "0.5", "--depth-normal", "0.5"];
    for (name, more, relation) in
        [("shallow-one", &[] as &[&str], "same_or_relatives"), ("shallow-two", &["--foreign-normal", "1"], "different")]
    {
        let data = Data::simulate(name, &[size.as_slice(), &["--seed", "35"], more].concat());
        let (_, told) = check_data(&data, &[]);
        assert_eq!(told["pair"]["identity"]["relation"], relation, "{}", told["pair"]["identity"]);
    }
}

#[test]
fn another_persons_share_is_told_whatever_the_threads_and_the_order_of_samples() {
    let options = ["--foreign-tumor", "0.08", "--purity", "0.6", "--snvs", "40", "--indels", "10", "--seed", "36"];
    let data = simulated("mixed", &options);
    let genome = data.folder.join("genome.fa");
    let genome = ["--reference", genome.to_str().expect("UTF-8")];
    let (ended, told) = check_data(&data, &[&genome[..], &["--threads", "1"]].concat());
    let [normal, tumour] = [0, 1].map(|s| &told["pair"]["contamination"][s]["share"]);
    assert_about(normal, 0.0, 0.012);
    assert_about(tumour, 0.08, 0.02);
    assert!(ended.stdout.contains("contamination of the tumour HIGH: "), "{}", ended.stdout);
    assert_about(&told["pair"]["tumour"]["ploidy"], 2.0, 0.1);
    let (again, other) = check_data(&data, &[&genome[..], &["--threads", "3"]].concat());
    assert_eq!(again.stdout, ended.stdout);
    assert_eq!([&other["pair"], &other["library"]], [&told["pair"], &told["library"]]);
    // With swapped samples the results are swapped.
    let json = data.folder.join("swapped.json");
    let (_, swapped) = checked(&data.normal, &data.tumor, &json, &[]);
    assert_about(&swapped["pair"]["contamination"][0]["share"], 0.08, 0.02);
    assert_eq!(swapped["pair"]["identity"]["relation"], "same");
}

#[test]
fn of_several_tumours_each_is_told_as_if_it_were_the_only_one() {
    let size = ["--genome-length", "600000", "--contigs", "2", "--svs", "0", "--depth-tumor", "25"];
    let made = |name: &str, more: &[&str]| Data::simulate(name, &[&size[..], &["--seed", "37"], more].concat());
    let first = made("of-two", &["--purity", "0.9"]);
    let second = made("of-two-mixed", &["--purity", "0.5", "--reads-seed", "5", "--foreign-tumor", "0.1"]);
    let file = |name: &str| first.folder.join(name);
    let (_, one) = check_data(&first, &[]);
    let (_, two) = checked(&second.tumor, &first.normal, &file("two.json"), &[]);
    let more: Vec<String> = ["--tumor".to_owned()].into_iter().chain(files(&second.tumor)).collect();
    let mut more: Vec<&str> = more.iter().map(String::as_str).collect();
    let named = format!("later={}", more[1]);
    more[1] = &named;
    let (ended, told) = checked(&first.tumor, &first.normal, &file("both.json"), &more);
    assert!(one.get("other_tumours").is_none());
    let others = told["other_tumours"].as_array().expect("others");
    assert_eq!((others.len(), &others[0]["sample"]), (1, &Value::from("later")));
    for (alone, facts) in [(&one, &told), (&two, &others[0])] {
        for key in ["bases", "pair", "library"] {
            assert_eq!(alone[key], facts[key], "{key}");
        }
    }
    assert_ne!(one["pair"], two["pair"]);
    let lines: Vec<&str> = ended.stdout.lines().filter(|l| *l == "TUMOR_1" || *l == "later").collect();
    assert_eq!(lines, ["TUMOR_1", "later"]);
    assert_eq!(ended.stdout.lines().filter(|line| line.starts_with("identity ")).count(), 2);
}

#[test]
fn purity_and_copies_are_those_that_were_made() {
    for (name, purity, seed) in [("lost-half", 0.5, "41"), ("lost-most", 0.8, "42")] {
        let size = ["--genome-length", "2500000", "--contigs", "10", "--svs", "0", "--aneuploidy", "0.4"];
        let data = Data::simulate(name, &[&size[..], &["--purity", &purity.to_string(), "--seed", seed]].concat());
        let made = fs::read(data.folder.join("simulate.json")).expect("parameters");
        let made: Value = serde_json::from_slice(&made).expect("JSON");
        let made = &made["made"]["tumor_content"];
        let genome = data.folder.join("genome.fa");
        let (ended, told) = check_data(&data, &["--reference", genome.to_str().expect("UTF-8")]);
        let tumour = &told["pair"]["tumour"];
        assert_about(&tumour["purity"], purity, 0.05);
        assert_about(&tumour["ploidy"], made["ploidy"].as_f64().expect("a number"), 0.1);
        let [found, lost] =
            [&tumour["loh_fraction"], &made["loh_fraction"]].map(|share| share.as_f64().expect("a share"));
        assert!((found - lost).abs() < 0.05, "{lost} of the genome is estimated as {found}");
        assert!(ended.stdout.contains("\nLOH  ") == (lost > 0.0), "{}", ended.stdout);
    }
}

#[test]
fn real_halves_are_one_person_and_samples_of_other_places_no_pair() {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/real");
    if !real.exists() {
        println!("skipped: there are no real reads in {}", real.display());
        return;
    }
    let sample = |set: &str, name: &str| -> Vec<PathBuf> {
        (1..=2).map(|mate| real.join(set).join(format!("{name}_{mate}.fq.gz"))).collect()
    };
    let folder = scratch("real-pairs");
    for set in ["n_12878", "n_hg002a", "n_hg002b", "v_three"] {
        let (_, told) =
            checked(&sample(set, "tumor"), &sample(set, "normal"), &folder.join(set).with_extension("json"), &[]);
        assert_eq!(told["pair"]["identity"]["relation"], "same", "{set}");
    }
    let (_, told) =
        checked(&sample("n_hg002b", "tumor"), &sample("n_hg002a", "normal"), &folder.join("apart.json"), &[]);
    assert_eq!(told["pair"]["identity"]["relation"], "unknown");
}

#[test]
fn what_is_no_pair_of_samples_is_refused() {
    let folder = scratch("check-bad");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let read = |name: &str, bases: &str| format!("@{name}\n{bases}\n+\nIIIIIIIIII\n");
    let (one, two) = (file("a_1.fq", &read("r", "ACGTACGTAC")), file("a_2.fq", &read("r", "CCGTACGTAC")));
    let (three, four) = (file("b_1.fq", &read("s", "GCGTACGTAC")), file("b_2.fq", &read("s", "TCGTACGTAC")));
    let error = |args: &[&str]| {
        let ended = run(["check"].iter().chain(args));
        assert!(matches!(ended.code, Some(1 | 2)), "{}", ended.stderr);
        ended.stderr
    };
    let odd = error(&["--tumor", &one, "--normal", &three, &four]);
    assert!(odd.contains("a_1.fq"), "{odd}");
    // Reads without information are no error: the results are reported as unknown.
    let told = run(["check", "--tumor", &one, &two, "--normal", &three, &four]).assert_success();
    assert!(told.stdout.starts_with("identity                    not determined"), "{}", told.stdout);
    let out = folder.join("result.txt");
    let in_file = run(["check", "--tumor", &one, &two, "--normal", &three, &four, "-o", out.to_str().expect("UTF-8")]);
    assert_eq!(in_file.assert_success().stdout, "");
    assert_eq!(fs::read_to_string(&out).expect("a file"), told.stdout);
}
