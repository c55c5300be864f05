//! `genuma machine measure`: the placement check, the page of an earlier profile, and errors.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{genuma, names, run, scratch, text};
use crate::guest::Guest;
use genuma_machine::topology::{SyntheticMachine, TopologySource};
use genuma_probe::measure::{UnmeasuredMachineFacts, measure_profile};
use genuma_probe::plan::{MeasurementPlan, PlanOptions};
use genuma_probe::profile::TheoreticalBandwidth;
use genuma_probe::simulated_machine::SimulatedMachine;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A profile of a machine with two nodes and given measurements.
fn profile(folder: &Path) -> PathBuf {
    let synthetic: SyntheticMachine = "2 nodes x 4 cores, 16 GiB".parse().expect("a description");
    let topology = synthetic.topology().expect("a topology");
    let plan = MeasurementPlan::new(&topology, &PlanOptions::quick_plan()).expect("a plan");
    let host = Some("server <7>".to_owned());
    let machine = UnmeasuredMachineFacts {
        topology: topology.clone(),
        theory: TheoreticalBandwidth::default(),
        host,
        unix_time_s: None,
    };
    let profile = measure_profile(machine, &plan, &mut SimulatedMachine::new_typical_server(topology), &mut |_| {})
        .expect("a profile");
    let path = folder.join("earlier.json");
    profile.write_json(fs::File::create(&path).expect("a file")).expect("room");
    path
}

/// Number of rows with this outcome in a report, of memory and of threads.
fn rows(report: &Value, outcome: &str) -> (usize, usize) {
    let count = |part: &str| {
        let rows = report[part].as_array().unwrap_or_else(|| panic!("no {part}: {report}"));
        rows.iter().filter(|row| row["outcome"] == outcome).count()
    };
    (count("memory"), count("threads"))
}

#[test]
fn placement_is_checked_on_this_machine() {
    let report: Value =
        serde_json::from_str(&run(["machine", "measure", "--placement", "--json"]).assert_success().stdout)
            .expect("JSON");
    let (memory, threads) = (&report["memory"], &report["threads"]);
    assert!(memory.as_array().is_some_and(|rows| rows.len() >= 12), "{memory}");
    assert!(threads.as_array().is_some_and(|rows| !rows.is_empty()), "{threads}");
    assert_eq!((rows(&report, "elsewhere"), &report["bytes"]), ((0, 0), &Value::from(64 << 20)));
    let table = run(["machine", "measure", "--placement"]).assert_success().stdout;
    assert!(table.contains("\n  interleave ") && table.contains("\n  CPU "), "{table}");
    assert!(table.trim_end().ends_with("0 elsewhere than asked"), "{table}");
}

#[test]
fn in_a_guest_of_four_nodes_all_is_as_asked() {
    // Without debug information the program fits into the virtual machine's memory.
    let small = scratch("guest").join("genuma");
    let stripped = Command::new("strip").arg("-o").arg(&small).arg(env!("CARGO_BIN_EXE_genuma")).status();
    if !stripped.is_ok_and(|status| status.success()) {
        fs::copy(env!("CARGO_BIN_EXE_genuma"), &small).expect("a copy");
    }
    let guest = Guest { nodes: 4, cpus: 2, memory: 512, more: &[] };
    let command = "./genuma machine measure --placement --json";
    let Some(outcome) = guest.run("in_a_guest_of_four_nodes_all_is_as_asked", &[&small], command) else {
        return;
    };
    let said = outcome.output;
    assert_eq!(outcome.status, 0, "{said}");
    let (from, to) = (said.find('{').expect("JSON"), said.rfind('}').expect("JSON"));
    let report: Value = serde_json::from_str(&said[from..=to]).unwrap_or_else(|e| panic!("{e}: {said}"));
    // Five policies over all nodes and one bound to each node, with two page sizes; eight CPUs.
    assert_eq!(rows(&report, "as-asked"), (18, 8), "{said}");
}

#[test]
fn an_earlier_profile_is_drawn_again() {
    let folder = scratch("from");
    let (earlier, out) = (profile(&folder), folder.join("new/page"));
    let ended = run(["machine", "measure", "--from", text(&earlier), "-o", text(&out)]).assert_success();
    assert!(ended.stdout.contains("node 0 to memory 1"), "{}", ended.stdout);
    assert!(ended.stdout.contains(" ns (median of ") && ended.stdout.contains(" GB/s (median of "));
    assert_eq!(names(&out), ["machine.html"]);
    let page = fs::read_to_string(out.join("machine.html")).expect("a page");
    assert!(page.contains("server &lt;7&gt;") && page.trim_end().ends_with("</html>"));
    let json =
        run(["machine", "measure", "--from", text(&earlier), "-o", text(&out), "--json"]).assert_success().stdout;
    assert_eq!(json, fs::read_to_string(&earlier).expect("a profile"));
}

#[test]
fn a_bad_profile_is_told_and_nothing_is_written() {
    let folder = scratch("bad");
    let good = fs::read_to_string(profile(&folder)).expect("a profile");
    let bad = folder.join("bad.json");
    for (damaged, told) in [
        (good.replacen("\"median\": ", "\"median\": -", 1), "field 'latency.curves[0].points[0].latency.median'"),
        (good.replacen("\"version\": 1", "\"version\": 7", 1), "field 'version': version 7"),
        (good[..good.len() / 2].to_owned(), "not JSON"),
        (String::new(), "not JSON"),
    ] {
        fs::write(&bad, damaged).expect("a file");
        let ended = run(["machine", "measure", "--from", text(&bad), "-o", text(&folder.join("out"))]);
        assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{}", ended.stderr);
        assert!(ended.stderr.contains(told) && ended.stderr.contains("bad.json"), "{told}: {}", ended.stderr);
        assert!(!folder.join("out").exists());
    }
    let ended = run(["machine", "measure", "--from", "/nonexistent.json", "-o", text(&folder.join("out"))]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("/nonexistent.json: cannot be read"), "{}", ended.stderr);
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let folder = scratch("folder");
    let earlier = profile(&folder);
    let ended = run(["machine", "measure", "--from", text(&earlier), "-o", text(&earlier.join("below"))]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("earlier.json/below: cannot create the folder"), "{}", ended.stderr);
}

#[test]
fn options_that_exclude_each_other_are_wrong_usage() {
    for args in [["--placement", "--quick"], ["--quick", "--from=x"], ["--placement", "--out=x"]] {
        let ended = run(["machine", "measure"].iter().chain(&args));
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let out = scratch("interrupted").join("out");
    let mut child = genuma()
        .args(["machine", "measure", "--force", "-o", text(&out)])
        .stderr(Stdio::piped())
        .spawn()
        .expect("genuma starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains("% done") {
        assert!(stderr.read_line(&mut said).expect("lines") > 0, "it never measured: {said}");
    }
    assert!(said.contains("measuring takes about "), "{said}");
    kill_process(Pid::from_child(&child), Signal::INT).expect("a process to signal");
    assert_eq!(child.wait().expect("an end").code(), Some(130));
    assert_eq!(names(&out), Vec::<String>::new());
}
