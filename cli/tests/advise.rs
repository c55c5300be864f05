//! `genuma machine advise`: advice for a real aligner, the score on published run times, and refused input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use genuma_machine::Topology;
use genuma_machine::topology::{SyntheticMachine, Sysfs, TopologySource};
use genuma_probe::measure::{UnmeasuredMachineFacts, measure_profile};
use genuma_probe::plan::{MeasurementPlan, PlanOptions};
use genuma_probe::profile::TheoreticalBandwidth;
use genuma_probe::simulated_machine::SimulatedMachine;

use crate::common::{RunOutput, SharedFixture, data, genuma, installed, names, run, scratch};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../strategy/data/lenis2017.csv");

/// A folder with a genome, bwa's index of it, and reads; `None` if bwa is not installed.
fn folder() -> Option<&'static Path> {
    static MADE: SharedFixture<PathBuf> = SharedFixture::new();
    installed("bwa")?;
    Some(MADE.get_or_init(|| {
        let folder = data().folder.clone();
        let made = Command::new("bwa").args(["index", "genome.fa"]).current_dir(&folder).output().expect("bwa");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        folder
    }))
}

/// Runs `genuma COMMAND …` in the folder, with its own folder for temporary files, which must be empty afterwards.
#[track_caller]
fn in_folder(folder: &Path, name: &str, args: &[&str]) -> RunOutput {
    let temporary = scratch(name);
    let output = genuma()
        .args(args)
        .current_dir(folder)
        .env("TMPDIR", &temporary)
        .env_remove("GENUMA_MACHINE")
        .output()
        .expect("genuma starts");
    assert!(names(&temporary).is_empty(), "left: {:?}", names(&temporary));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    RunOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

const BWA: [&str; 8] = ["--", "bwa", "mem", "-t", "{threads}", "genome.fa", "tumor_1.fq.gz", "tumor_2.fq.gz"];

/// The fields of the table line that begins with a word, split at blanks.
fn line<'a>(table: &'a str, word: &str) -> Vec<&'a str> {
    let of = |line: &&str| line.split_whitespace().next() == Some(word);
    table.lines().find(of).unwrap_or_else(|| panic!("{word}: {table}")).split_whitespace().collect()
}

#[test]
fn the_score_is_printed() {
    let said = run(["machine", "advise", "--replay", TABLE]).assert_success().stdout;
    for aligner in ["bowtie2", "bwa-mem", "gem", "snap"] {
        assert_eq!(said.lines().filter(|line| line.starts_with(aligner)).count(), 4, "{said}");
    }
    let per_cent = |name: &str| -> Vec<f64> {
        let line = said.lines().find(|line| line.starts_with(name)).expect(name);
        line[name.len()..].split_whitespace().map(|p| p.trim_end_matches('%').parse().expect("a share")).collect()
    };
    let model = per_cent("model only, both");
    assert!(model[0] <= 4.0 && model[1] <= 40.0, "{model:?}");
    let pilots = per_cent("with pilots, both");
    assert!(pilots[0] <= 1.5 && pilots[1] <= 5.0, "{pilots:?}");
    assert_eq!(per_cent("the paper's rule"), [4.0, 40.3]);
}

#[test]
fn a_real_aligner_is_tried() {
    let Some(folder) = folder() else { return };
    let out = scratch("tried");
    let [json, page, table] = ["advice.json", "advice.html", "times.csv"].map(|name| out.join(name));
    let [json_text, page_text, table_text] = [&json, &page, &table].map(|path| path.to_str().expect("UTF-8"));
    let outputs = ["--json", json_text, "--explain", page_text, "--sweep", table_text];
    let asked =
        ["machine", "advise", "--threads", "2", "--trial-budget", "1000", "--strategies", "2xdefault", "default"];
    let ended = in_folder(folder, "tried-tmp", &[&asked[..], &outputs, &BWA].concat()).assert_success();
    // Columns: strategy, prediction, interval, measured seconds, trials, verdict.
    for strategy in ["default", "2xdefault"] {
        let cells = line(&ended.stdout, strategy);
        let number = |i: usize| cells[i].parse::<f64>().unwrap_or_else(|_| panic!("{cells:?}"));
        assert!(number(2) <= number(1) && number(1) <= number(4), "{cells:?}");
        assert!(number(5) > 0.0 && number(6) >= 1.0, "{cells:?}");
    }
    assert_eq!(ended.stdout.matches("advised").count(), 1, "{}", ended.stdout);
    assert!(ended.stdout.contains("Do nothing: ") || ended.stdout.contains("Run it with --strategy 2xdefault"));
    let told: serde_json::Value = serde_json::from_slice(&fs::read(&json).expect("JSON")).expect("JSON");
    let advice = &told["advice"];
    assert_eq!(told["case"]["aligner"], "bwa mem");
    assert!(["default", "2xdefault"].contains(&advice["strategy"].as_str().expect("a word")));
    assert!(advice["spent_s"].as_f64() > Some(0.0) && advice["spent_s"].as_f64() <= advice["budget_s"].as_f64());
    let considered = advice["considered"].as_array().expect("a list");
    assert!(considered.iter().all(|one| !one["measured"].as_array().expect("trials").is_empty()), "{told}");
    // 200 kbp at 30x in pairs of 150 bp: the sample has all reads, or their number is estimated.
    let reads = told["case"]["application"]["reads"].as_f64().expect("a number");
    let counted = crate::common::records(&crate::common::gunzip(&folder.join("tumor_1.fq.gz"))).len() as f64 * 2.0;
    assert!((reads / counted).ln().abs() < 0.7, "{reads} {counted}");
    let page = fs::read_to_string(&page).expect("a page");
    assert!(
        page.contains("A strategy for bwa mem") && page.contains("class=\"measured\"") && page.ends_with("</html>\n")
    );
    assert!(page.contains("<path class=\"line curve1\"") && page.contains("<path class=\"line curve2\""), "two curves");
    check_sweep_table(&fs::read_to_string(&table).expect("a table"), advice);
}

/// Checks that the table has the measured times of the advice, and one prediction or reason for each strategy and number of
/// threads.
fn check_sweep_table(table: &str, advice: &serde_json::Value) {
    let mut lines = table.lines();
    let columns: Vec<&str> = lines.next().expect("a header").split(',').collect();
    assert_eq!(columns[..5], ["strategy", "instances", "memory_policy", "threads", "predicted_s"]);
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    for one in advice["considered"].as_array().expect("a list") {
        let trials = one["measured"].as_array().expect("trials").iter().map(|s| s.as_f64().expect("seconds"));
        let mean = trials.clone().sum::<f64>() / trials.count() as f64;
        let measured = |row: &&Vec<&str>| row[0] == one["strategy"] && row[3] == "2";
        let row = rows.iter().find(measured).expect("the row of 2 threads");
        assert!((row[7].parse::<f64>().expect("measured") - mean).abs() < 0.002, "{row:?} {mean}");
        assert!(row[4].parse::<f64>().expect("predicted") > 0.0, "{row:?}");
    }
    let too_few: Vec<_> = rows.iter().filter(|row| row[0] == "2xdefault" && row[3] == "1").collect();
    assert!(too_few.len() == 1 && too_few[0][4].is_empty() && too_few[0][8].contains("more instances"), "{table}");
    // Other numbers of threads were not measured.
    assert!(rows.iter().filter(|row| row[3] != "2").all(|row| row[7].is_empty()), "{table}");
}

#[test]
fn without_time_there_are_no_trials() {
    let Some(folder) = folder() else { return };
    for (budget, said) in
        [("0", "No trials: the model decided alone."), ("1e-9", "No trials: the first would take more than")]
    {
        let asked = ["machine", "advise", "--threads", "2", "--strategies", "2xdefault", "--trial-budget", budget];
        let ended = in_folder(folder, "untried-tmp", &[&asked[..], &BWA].concat()).assert_success();
        assert!(ended.stdout.contains(said), "{}", ended.stdout);
        assert_eq!(line(&ended.stdout, "2xdefault")[5..7], ["-", "0"]);
    }
}

#[test]
fn what_cannot_be_had_is_said() {
    let Some(folder) = folder() else { return };
    // There are more instances than threads.
    let asked = ["machine", "advise", "--threads", "2", "--trial-budget", "0", "--strategies", "8xdefault"];
    let ended = in_folder(folder, "refused-tmp", &[&asked[..], &BWA].concat()).assert_success();
    assert!(ended.stdout.contains("8xdefault      not possible: more instances than threads"), "{}", ended.stdout);
    assert!(ended.stdout.contains("Do nothing"), "{}", ended.stdout);
}

#[test]
fn a_run_on_one_node_asks_nobody() {
    let Some(folder) = folder() else { return };
    let nodes = fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    if nodes.trim() != "0" {
        return crate::common::skipped("this machine has several nodes");
    }
    let ended = in_folder(folder, "auto-tmp", &[&["run"][..], &BWA].concat()).assert_success();
    assert!(ended.stderr.contains("strategy default: the machine has one NUMA node"), "{}", ended.stderr);
    assert!(ended.stdout.lines().filter(|line| !line.starts_with('@')).count() > 1000);
}

#[test]
fn what_is_wrong_is_one_line() {
    let Some(folder) = folder() else { return };
    let out = scratch("wrong");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let no_profile = out.join("no.json");
    fs::write(&no_profile, "{}").expect("a file");
    let other = out.join("other.json");
    profile(other_machine(), &other);
    let missing = text(&out.join("missing.json"));
    let with = |args: &[&str], command: &[&str]| -> Vec<String> {
        [&["machine", "advise"], args, &["--"], command].concat().iter().map(|arg| (*arg).to_owned()).collect()
    };
    let bwa = &BWA[1..];
    let no_reads = ["bwa", "mem", "genome.fa", "nowhere.fq"];
    let no_index = ["bwa", "mem", "elsewhere.fa", "tumor_1.fq.gz"];
    let piped = ["bwa", "mem", "genome.fa", "-"];
    for (args, code, said) in [
        (with(&["--machine", &missing], bwa), 1, missing.as_str()),
        (with(&["--machine", &text(&no_profile)], bwa), 1, "no.json"),
        (with(&["--machine", &text(&other)], bwa), 1, "describes another machine"),
        (with(&[], &["true", "{reads}"]), 2, "no reads are given: add --reads"),
        (with(&[], &["no-such-aligner", "{reads}"]), 1, "no such program on PATH"),
        (with(&["--reads", "tumor_1.fq.gz"], &["no-such-aligner", "{reads}"]), 1, "no such program on PATH"),
        (with(&[], &["bwa", "mem", "--nonsense", "genome.fa", "tumor_1.fq.gz"]), 2, "--nonsense"),
        (with(&[], &no_reads), 1, "nowhere.fq"),
        (with(&[], &no_index), 1, "the index of bwa mem is missing"),
        (with(&[], &piped), 1, "no sample of its reads can be taken"),
        (with(&["--trial-budget=-1"], bwa), 2, "give a share of the run's time"),
        (with(&["--strategies", "4xfast"], bwa), 2, "4xfast"),
        (vec!["machine".to_owned(), "advise".to_owned()], 2, "COMMAND"),
        (vec!["machine".to_owned(), "advise".to_owned(), "--replay".to_owned(), text(&no_profile)], 1, "line 1"),
    ] {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let ended = in_folder(folder, "wrong-tmp", &words);
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
        if code == 1 {
            assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        }
    }
}

/// Writes a profile with invented measurements.
fn profile(topology: Topology, path: &Path) {
    let plan = MeasurementPlan::new(&topology, &PlanOptions::quick_plan()).expect("a plan");
    let machine = UnmeasuredMachineFacts {
        topology: topology.clone(),
        theory: TheoreticalBandwidth::default(),
        host: Some("model".into()),
        unix_time_s: None,
    };
    let profile = measure_profile(machine, &plan, &mut SimulatedMachine::new_typical_server(topology), &mut |_| {})
        .expect("a profile");
    profile.write_json(&mut fs::File::create(path).expect("a file")).expect("a profile");
}

/// A topology with other nodes than any machine that runs the tests.
fn other_machine() -> Topology {
    "16 nodes x 2 cores, 8 GiB".parse::<SyntheticMachine>().expect("a machine").topology().expect("a topology")
}

#[test]
fn a_profile_of_this_machine_is_used() {
    let Some(folder) = folder() else { return };
    let path = scratch("profiled").join("machine.json");
    profile(Sysfs::new().topology().expect("this machine"), &path);
    let machine = path.to_str().expect("UTF-8");
    let asked = ["machine", "advise", "--machine", machine, "--trial-budget", "0"];
    let ended = in_folder(folder, "profiled-tmp", &[&asked[..], &BWA].concat()).assert_success();
    assert!(ended.stdout.contains("measured by `genuma machine measure`"), "{}", ended.stdout);
    assert!(ended.stderr.is_empty(), "{}", ended.stderr);
}

#[test]
fn a_profile_measured_under_load_is_refused_unless_forced() {
    let Some(folder) = folder() else { return };
    let path = scratch("under-load").join("machine.json");
    profile(Sysfs::new().topology().expect("this machine"), &path);
    let text = fs::read_to_string(&path).expect("a profile");
    let mut marked: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    marked["load"] = "the load average is 9.0 on 2 CPUs".into();
    fs::write(&path, marked.to_string()).expect("a file");
    let machine = path.to_str().expect("UTF-8");
    let asked = ["machine", "advise", "--machine", machine, "--trial-budget", "0"];
    let ended = in_folder(folder, "under-load-tmp", &[&asked[..], &BWA].concat());
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    for part in ["machine.json: was measured while other programs used the machine", "9.0 on 2 CPUs", "--force"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let forced = in_folder(folder, "under-load-tmp", &[&asked[..], &["--force"], &BWA].concat()).assert_success();
    assert!(forced.stdout.contains("measured by `genuma machine measure`"), "{}", forced.stdout);
}
