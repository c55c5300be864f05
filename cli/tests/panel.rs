//! `genuma call --panel`: recurrent artefacts are filtered, somatic variants stay; a table and a dictionary give the same
//! calls; files that are no panel for this call are refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Data, RunOutput, SharedFixture, assert_same, gunzip, run, scratch, text};

/// What the simulated people share: the genome, and the positions of recurrent errors.
const RECURRENT: [&str; 2] = ["--recurrent", "500"];
const NORMALS: u64 = 10;

/// A pair, and a panel of other people's normals.
struct Pair {
    data: Data,
    panel: PathBuf,
}

fn pair() -> &'static Pair {
    static PAIR: SharedFixture<Pair> = SharedFixture::new();
    PAIR.get_or_init(|| {
        let size = ["--genome-length", "400000", "--contigs", "2", "--seed", "3", "--depth-tumor", "40"];
        let variants =
            ["--depth-normal", "20", "--snvs", "150", "--indels", "60", "--svs", "12", "--largest-sv", "3000"];
        let data = Data::simulate("pair", &[&size[..], &variants, &RECURRENT].concat());
        let genome = data.folder.join("genome.fa");
        let tables: Vec<PathBuf> = (0..NORMALS)
            .map(|person| {
                let folder = data.folder.join("person");
                let seed = (100 + person).to_string();
                let args = [
                    "bench",
                    "simulate",
                    "-q",
                    "-t",
                    "2",
                    "--genome",
                    text(&genome),
                    "--seed",
                    &seed,
                    "-o",
                    text(&folder),
                ];
                let normal =
                    ["--snvs", "0", "--indels", "0", "--svs", "0", "--depth-tumor", "0.5", "--depth-normal", "22"];
                run(args.iter().chain(&normal).chain(&RECURRENT)).assert_success();
                let table = data.folder.join(format!("n{person}.gkt"));
                let reads = [1, 2].map(|mate| folder.join(format!("normal_{mate}.fq.gz")));
                run(["kmers", "count", "-q", text(&reads[0]), text(&reads[1]), "-o", text(&table)]).assert_success();
                table
            })
            .collect();
        let panel = data.folder.join("panel.gkt");
        let tables = tables.iter().map(|table| text(table));
        let args = ["kmers", "union", "-q", "--counts", "samples", "-o", text(&panel)];
        run(args.into_iter().chain(tables)).assert_success();
        Pair { data, panel }
    })
}

/// Records of a VCF: position and alleles, then FILTER and INFO.
fn records(vcf: &str) -> Vec<([String; 4], String, String)> {
    let record = |line: &str| {
        let f: Vec<&str> = line.split('\t').collect();
        ([0, 1, 3, 4].map(|i| f[i].to_owned()), f[6].to_owned(), f[7].to_owned())
    };
    vcf.lines().filter(|line| !line.starts_with('#')).map(record).collect()
}

fn vcf(out: &Path) -> String {
    String::from_utf8(gunzip(&out.join("somatic.vcf.gz"))).expect("UTF-8")
}

fn passed(vcf: &str) -> BTreeSet<[String; 4]> {
    records(vcf).into_iter().filter(|record| record.1 == "PASS").map(|record| record.0).collect()
}

#[test]
fn artefacts_that_recur_go_and_changes_stay() {
    let Pair { data, panel } = pair();
    let truth = fs::read_to_string(data.folder.join("truth.vcf")).expect("the truth");
    let recurrent = fs::read_to_string(data.folder.join("recurrent.vcf")).expect("the artefacts");
    let artefacts: BTreeSet<[String; 4]> = records(&recurrent).into_iter().map(|record| record.0).collect();
    assert!(artefacts.len() > 490);
    let one = records(&truth).iter().find(|record| record.2.contains("CLASS=SNV")).expect("an SNV").0.clone();
    let asked = format!("{}:{}:{}>{}", one[0], one[1], one[2], one[3]);

    let [without, with] = ["without", "with"].map(scratch);
    let means = ["--threads", "2", "-q"];
    run(data.call_with(&without, &means)).assert_success();
    let told =
        run(data.call_with(&with, &[&means[..], &["--panel", text(panel), "--why", &asked]].concat())).assert_success();
    let (before, after) = (vcf(&without), vcf(&with));
    let (passed_before, passed_after) = (passed(&before), passed(&after));
    let false_before = passed_before.intersection(&artefacts).count();
    let false_after = passed_after.intersection(&artefacts).count();
    assert!(false_before >= 20, "{false_before} artefacts pass: too few to say anything");
    assert!(false_after * 4 <= false_before, "{false_after} of {false_before} artefacts are left");
    let lost: Vec<_> = passed_before.difference(&passed_after).filter(|call| !artefacts.contains(*call)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(passed_after.is_subset(&passed_before));

    // All other records are the same with and without a panel.
    let places = |vcf: &str| records(vcf).into_iter().map(|record| record.0).collect::<Vec<_>>();
    assert_eq!(places(&before), places(&after));
    assert!(!before.contains("PANEL=") && !records(&before).iter().any(|record| record.1.contains("panel")));
    for (place, filter, info) in records(&after) {
        let normals = info.split(';').find_map(|word| word.strip_prefix("PANEL="));
        let normals: Option<u64> = normals.map(|n| n.parse().expect("a number"));
        assert!(normals.is_none_or(|n| n <= NORMALS), "{place:?}");
        let filtered = filter.split(';').any(|name| name == "panel");
        let substitution = place[2].len() == place[3].len() && !place[3].contains(['<', '[', ']']);
        assert_eq!(filtered && substitution, substitution && normals.is_some_and(|n| n >= 2), "{place:?}");
        assert!(!filtered || normals.is_some_and(|n| n >= 2), "{place:?}: {filter} {info}");
    }
    assert!(after.contains("##FILTER=<ID=panel,") && after.contains("##INFO=<ID=PANEL,"));
    assert!(after.contains("--panel panel.gkt --panel-min-samples 2\n"));
    let summary = fs::read_to_string(with.join("summary.json")).expect("a summary");
    for part in ["panel.gkt\"", "\"stage\": \"panel\"", "\"panel\": "] {
        assert!(summary.contains(part), "{part}");
    }
    assert!(fs::read_to_string(with.join("report.html")).expect("a report").contains("Normals of the panel"));
    assert!(told.stdout.contains(&one[1]));

    // When nearly all normals must have a variant, fewer calls are filtered.
    let strict = scratch("strict");
    run(data.call_with(&strict, &[&means[..], &["--panel", text(panel), "--panel-min-samples", "9"]].concat()))
        .assert_success();
    let left = passed(&vcf(&strict)).intersection(&artefacts).count();
    assert!(false_after < left && left <= false_before, "{false_after}, {left}, {false_before}");
}

/// A call in one process and a distributed call give the same files; only the last step of the latter reads the
/// panel.
#[test]
fn in_parts_it_is_the_same() {
    let Pair { data, panel } = pair();
    let folder = scratch("in-parts");
    let own = folder.join("panel.gkt");
    fs::copy(panel, &own).expect("a copy");
    let [one, out, place] = ["one", "out", "run"].map(|name| folder.join(name));
    run(data.call_with(&one, &["-q", "--panel", text(&own)])).assert_success();
    let plan = ["-q", "--panel", text(&own), "--plan", text(&place), "--shards", "1", "--partitions", "3"];
    run(data.call_with(&out, &plan)).assert_success();
    let step = |name: &str, number: &str| run(["step", text(&place), name, number, "-q"]);
    let before = ["scatter", "pick", "label", "assemble", "place", "recruit"];
    step("scatter", "1").assert_success();
    ["1", "2", "3"].into_iter().for_each(|n| _ = step("count", n).assert_success());
    before[1..].iter().for_each(|name| _ = step(name, "1").assert_success());
    // Another table under the same name is reported.
    let bytes = fs::read(&own).expect("a panel");
    let modified = fs::metadata(&own).and_then(|own| own.modified()).expect("a time");
    fs::write(&own, &bytes[..bytes.len() - 1]).expect("written");
    let RunOutput { code, stderr, .. } = step("finish", "1");
    assert!(code == Some(1) && stderr.contains("panel.gkt: changed since the run was planned"), "{stderr}");
    fs::write(&own, &bytes).expect("written");
    fs::File::options().write(true).open(&own).and_then(|f| f.set_modified(modified)).expect("the time set");
    step("finish", "1").assert_success();
    assert_same(&out, &one);
    let ledger = |folder: &Path| -> serde_json::Value {
        let text = fs::read(folder.join("summary.json")).expect("a summary");
        let summary: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let lines = summary["stages"].as_array().expect("lines").clone();
        lines.into_iter().filter(|line| line["stage"] == "panel").collect()
    };
    assert!(ledger(&one).as_array().is_some_and(|lines| !lines.is_empty()));
    assert_eq!(ledger(&one), ledger(&out));
    assert!(vcf(&out).contains("PANEL="));
}

/// Makes the dictionary of a table. It may have any name.
fn compact(table: &Path, out: &Path, options: &[&str]) {
    let made = out.with_extension("gkd");
    run(["kmers", "compact", "-q", text(table), "-o", text(&made)].iter().chain(options)).assert_success();
    fs::rename(&made, out).expect("renamed");
}

#[test]
fn a_dictionary_gives_the_same_bytes() {
    let Pair { data, panel } = pair();
    let folder = scratch("forms");
    // The name of the panel is in the header of the VCF. A dictionary is recognised by its content.
    let dictionary = folder.join("panel.gkt");
    compact(panel, &dictionary, &[]);
    assert!(fs::metadata(&dictionary).expect("a file").len() < fs::metadata(panel).expect("a file").len() / 2);
    let [of_table, of_dictionary] = ["table", "dictionary"].map(|name| folder.join(name));
    run(data.call_with(&of_table, &["-q", "--panel", text(panel)])).assert_success();
    run(data.call_with(&of_dictionary, &["-q", "--panel", text(&dictionary), "--threads", "2"])).assert_success();
    assert!(records(&vcf(&of_dictionary)).iter().any(|record| record.1.contains("panel")));
    assert_same(&of_dictionary, &of_table);
}

#[test]
fn what_is_no_panel_of_this_call_is_refused() {
    let Pair { data, panel } = pair();
    let out = scratch("refused").join("calls");
    let counts = data.folder.join("n0.gkt");
    let other = data.folder.join("other.gkt");
    run(["kmers", "count", "-q", "-k", "24", text(&data.normal[0]), "-o", text(&data.folder.join("k24.gkt"))])
        .assert_success();
    let k24 = data.folder.join("k24.gkt");
    run(["kmers", "union", "-q", "--counts", "samples", text(&k24), text(&k24), "-o", text(&other)]).assert_success();
    let [dictionary, bare, counts_dictionary, other_dictionary, cut] =
        ["panel.gkd", "bare.gkd", "n0.gkd", "other.gkd", "cut.gkd"].map(|name| data.folder.join(name));
    compact(panel, &dictionary, &[]);
    compact(panel, &bare, &["--no-counts"]);
    compact(&counts, &counts_dictionary, &[]);
    compact(&other, &other_dictionary, &[]);
    let whole = fs::read(&dictionary).expect("a dictionary");
    fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    for (options, code, parts) in [
        (&["--panel", text(&other)][..], 2, &["other.gkt", "24-mers", "31-mers", "-k 24"][..]),
        (&["--panel", text(&other_dictionary)], 2, &["other.gkd", "24-mers", "31-mers", "-k 24"]),
        (&["--panel", text(&counts_dictionary)], 1, &["n0.gkd", "dictionary but not a panel", "--counts samples"]),
        (&["--panel", text(&bare)], 1, &["bare.gkd", "without counts", "--no-counts"]),
        (&["--panel", text(&cut)], 1, &["cut.gkd", "bytes instead of"]),
        (&["--panel", text(&dictionary), "--panel-min-samples", "11"], 2, &["panel.gkd", "10 normals"]),
        (&["--panel", text(&counts)], 1, &["n0.gkt", "not a panel", "--counts samples"]),
        (&["--panel", text(&data.tumor[0])], 1, &["tumor_1.fq.gz", "not a genuma table"]),
        (&["--panel", "/no/such.gkt"], 1, &["/no/such.gkt", "cannot open"]),
        (&["--panel", text(panel), "--panel-min-samples", "11"], 2, &["--panel-min-samples 11", "10 normals"]),
        (&["--panel-min-samples", "3"], 2, &["--panel <TABLE>"]),
    ] {
        let ended = run(data.call_with(&out, options));
        assert_eq!(ended.code, Some(code), "{options:?}: {}", ended.stderr);
        parts.iter().for_each(|part| assert!(ended.stderr.contains(part), "'{part}' is not in: {}", ended.stderr));
        assert_eq!(ended.stderr.matches("error: ").count(), 1, "{}", ended.stderr);
        assert!(!out.exists(), "{options:?}");
    }
    // A damaged page is reported when it is read.
    let mut bytes = fs::read(panel).expect("a panel");
    bytes[4096..].iter_mut().step_by(4096).for_each(|byte| *byte ^= 1);
    let damaged = data.folder.join("damaged.gkt");
    fs::write(&damaged, bytes).expect("written");
    let ended = run(data.call_with(&out, &["-q", "--panel", text(&damaged)]));
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("damaged.gkt") && ended.stderr.contains("damaged ("), "{}", ended.stderr);
    let mut bytes = whole;
    bytes[5000] ^= 1;
    let damaged = data.folder.join("damaged.gkd");
    fs::write(&damaged, bytes).expect("written");
    let ended = run(data.call_with(&out, &["-q", "--panel", text(&damaged)]));
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("damaged.gkd: bases damaged ("), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("error: ").count(), 1, "{}", ended.stderr);

    // A dictionary takes memory beyond what the call needs anyway.
    let needed_memory = |memory: &str| {
        let ended = run(data.call_with(&out, &["-q", "--memory", memory]));
        let mut words = ended.stderr.split_once(" or more").expect("what is needed").0.rsplit(' ');
        let (unit, number) = (words.next().expect("a unit"), words.next().expect("a number"));
        assert_eq!(unit, "MiB", "{}", ended.stderr);
        format!("{number}M")
    };
    // The first message does not know the reference yet.
    let needed = needed_memory(&needed_memory("20M"));
    let ended = run(data.call_with(&out, &["-q", "--memory", &needed, "--panel", text(&dictionary)]));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("panel.gkd") && ended.stderr.contains("as a table (.gkt)"), "{}", ended.stderr);
}
