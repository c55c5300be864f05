//! `--gpu`: count and call give the same bytes with and without devices, with little device memory, with two devices,
//! and with failures.
//!
//! The devices are those that OpenCL finds here: PoCL provides one that runs on the CPUs (scripts/setup.sh).
//! docs/internals/gpu.md describes the trial settings.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use crate::common::{Data, SharedFixture, assert_same, genuma, scratch, skipped, text};

/// Trial settings of most tests: two devices with so little memory that bins are divided, and threads that leave all
/// work to them.
const HARD: &str = "memory=1M,split=2,alone=1";

/// Trial settings for calls, which need all roots: bins are larger than device blocks, and few are larger than
/// tables.
pub const TRIAL_OF_CALLS: &str = "memory=4M,split=2,alone=1";

struct Tried {
    output: Output,
}

impl Tried {
    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    fn assert_success(self) -> Self {
        assert!(self.output.status.success(), "{}", self.stderr());
        self
    }
}

/// Whether OpenCL finds no device here; then reports that the test is skipped.
pub fn lacks_devices() -> bool {
    let shown = run_with_trial(&["machine", "show", "--json"], "").assert_success();
    let shown: serde_json::Value = serde_json::from_slice(&shown.output.stdout).expect("JSON");
    let found = &shown["devices"];
    let lacks = found["devices"].as_array().is_none_or(Vec::is_empty);
    if lacks {
        skipped(&format!("no device, see scripts/setup.sh: {}", found["missing"]));
    }
    lacks
}

/// Runs genuma with these trial settings for devices.
fn run_with_trial(args: &[&str], trial: &str) -> Tried {
    let output = genuma().args(args).env("GENUMA_GPU_TRIAL", trial).output().expect("genuma starts");
    Tried { output }
}

/// A small simulated pair.
fn pair() -> &'static Data {
    static PAIR: SharedFixture<Data> = SharedFixture::new();
    PAIR.get_or_init(|| {
        let few = [
            "--snvs",
            "40",
            "--indels",
            "8",
            "--svs",
            "2",
            "--seed",
            "5",
            "--depth-normal",
            "15",
            "--depth-tumor",
            "20",
        ];
        Data::simulate("gpu-pair", &[&["--genome-length", "250000"], &few[..]].concat())
    })
}

/// Counts one or two samples into text; returns the text and the messages.
fn count(name: &str, k: &str, samples: usize, options: &[&str], trial: &str) -> (Vec<u8>, String) {
    let out = scratch(&format!("gpu-count-{name}")).join("counted.tsv");
    let (tumor, normal) = (&pair().tumor, &pair().normal);
    let mut args = vec!["kmers", "count", "-k", k, "--threads", "2", "-o", text(&out), "--normal"];
    args.extend(normal.iter().map(|path| text(path)));
    if samples == 2 {
        args.push("--tumor");
        args.extend(tumor.iter().map(|path| text(path)));
    }
    args.extend(options);
    let said = run_with_trial(&args, trial).assert_success().stderr();
    (fs::read(&out).expect("a text"), said)
}

/// Number of bins that devices counted, from the messages.
pub fn bins_on_devices(said: &str) -> u64 {
    let line = said.lines().find(|line| line.contains("bins were counted by"));
    let line = line.unwrap_or_else(|| panic!("nothing is said of devices: {said}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let of = words.iter().position(|word| *word == "of").expect("so many of all");
    words[of - 1].parse().expect("a number")
}

#[test]
fn counts_are_the_same_bytes_with_devices() {
    if lacks_devices() {
        return;
    }
    for (k, samples) in [("24", 1), ("25", 2), ("31", 1), ("32", 2)] {
        let (without, said) = count(&format!("{k}-off"), k, samples, &["--gpu", "off"], "");
        assert!(!said.contains("counted by"), "{said}");
        for memory in ["200M", "2G"] {
            let options = ["--gpu", "0", "--memory", memory];
            let (with, said) = count(&format!("{k}-{memory}"), k, samples, &options, HARD);
            assert!(with == without, "k {k}, {samples} samples, {memory}");
            assert!(bins_on_devices(&said) > 0, "{said}");
        }
    }
}

#[test]
fn a_device_that_fails_at_any_call_does_not_show() {
    if lacks_devices() {
        return;
    }
    let (without, _) = count("fail-off", "31", 2, &["--gpu", "off"], "");
    let mut begun = 0;
    for call in [1, 3, 20, 45, 90, 150, 400] {
        let trial = format!("{HARD},fail={call}");
        let (with, said) = count(&format!("fail-{call}"), "31", 2, &["--gpu", "0", "--memory", "1G"], &trial);
        assert!(with == without, "call {call}: {said}");
        let warned = said.lines().filter(|line| line.contains("a failure injected by the test settings")).count();
        assert_eq!(warned, 1, "one line says that a device is lost: {said}");
        begun += u64::from(said.contains("of lost devices"));
    }
    assert!(begun > 0, "a device failed within a bin");
}

#[test]
fn a_count_that_is_resumed_may_have_devices() {
    if lacks_devices() {
        return;
    }
    let (without, _) = count("resume-off", "31", 2, &["--gpu", "off"], "");
    let (with, said) = count("resume-on", "31", 2, &["--gpu", "0", "--resume", "--memory", "1G"], HARD);
    assert!(with == without && bins_on_devices(&said) > 0, "{said}");
}

/// Calls into a folder of this name.
fn call(name: &str, options: &[&str], trial: &str) -> (PathBuf, String) {
    let out = scratch(&format!("gpu-call-{name}")).join("calls");
    let args = pair().call_with(&out, options);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    (out.clone(), run_with_trial(&args, trial).assert_success().stderr())
}

#[test]
fn calls_are_the_same_bytes_with_devices() {
    if lacks_devices() {
        return;
    }
    for k in ["24", "25", "31", "32"] {
        let (without, _) = call(&format!("{k}-off"), &["-k", k, "--gpu", "off"], "");
        let (with, said) = call(&format!("{k}-on"), &["-k", k, "--gpu", "0", "--memory", "2G"], TRIAL_OF_CALLS);
        assert_same(&without, &with);
        assert!(bins_on_devices(&said) > 0, "{said}");
        if k == "31" {
            let trial = format!("{TRIAL_OF_CALLS},fail=200");
            let (with, said) = call("31-lost", &["-k", k, "--gpu", "0", "--memory", "1G"], &trial);
            assert_same(&without, &with);
            assert!(said.contains("a failure injected by the test settings"), "{said}");
        }
    }
}

#[test]
fn machines_without_devices_count_all_the_same() {
    if lacks_devices() {
        return;
    }
    let (without, _) = count("none-off", "31", 1, &["--gpu", "off"], "");
    let nowhere = scratch("gpu-none");
    let out = nowhere.join("x.tsv");
    let mut args = vec!["kmers", "count", "-k", "31", "--gpu", "0", "-o", text(&out), "--normal"];
    args.extend(pair().normal.iter().map(|path| text(path)));
    // No driver, an invalid driver, an invalid library.
    let broken = nowhere.join("drivers");
    fs::create_dir_all(&broken).expect("a folder");
    fs::write(broken.join("broken.icd"), "/dev/null\n").expect("written");
    for (variable, value, says) in [
        ("OCL_ICD_VENDORS", text(&nowhere.join("empty")), "no OpenCL driver is installed"),
        ("OCL_ICD_VENDORS", text(&broken), "no OpenCL driver is installed"),
        ("OPENCL_DYLIB_PATH", "libc.so.6", "the OpenCL library does not work"),
    ] {
        let output = genuma().args(&args).env(variable, value).output().expect("genuma starts");
        let said = Tried { output }.assert_success().stderr();
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("alone: ")).collect();
        assert!(lines.len() == 1 && lines[0].contains(says), "{said}");
        assert!(fs::read(&out).expect("a text") == without, "{variable}");
    }
}

#[test]
fn a_cpu_is_never_taken_for_a_gain_and_unknown_devices_are_refused() {
    if lacks_devices() {
        return;
    }
    let (_, said) = count("auto", "31", 1, &[], "");
    assert!(!said.contains("bins were counted by"), "{said}");
    let reads = text(&pair().normal[0]);
    let out = scratch("gpu-unknown").join("x.tsv");
    let refused = run_with_trial(&["kmers", "count", reads, "-o", text(&out), "--gpu", "no such card"], "");
    assert_eq!(refused.output.status.code(), Some(2));
    assert!(
        refused.stderr().contains("--gpu no such card: no such device; the devices are 0 ("),
        "{}",
        refused.stderr()
    );
    let refused = run_with_trial(&["kmers", "count", reads, "-o", text(&out), "--gpu", "0"], "memory=much");
    assert!(refused.stderr().contains("GENUMA_GPU_TRIAL: 'memory=much' is not understood"), "{}", refused.stderr());
}

#[test]
fn devices_are_shown_and_planned_with() {
    if lacks_devices() {
        return;
    }
    let shown = run_with_trial(&["machine", "show"], "").assert_success();
    let shown = String::from_utf8_lossy(&shown.output.stdout).into_owned();
    let (_, devices) = shown.split_once("\ndevices\n").expect("devices");
    assert!(devices.trim_start().starts_with("0  "), "{shown}");
    let json = run_with_trial(&["machine", "show", "--json"], "").assert_success();
    let json: serde_json::Value = serde_json::from_slice(&json.output.stdout).expect("JSON");
    let device = &json["devices"]["devices"][0];
    assert!(device["memory"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{json}");
    let name = device["name"].as_str().expect("a name");
    let planned = |gpu: &str| {
        let args =
            ["plan", "--genome", "3.1G", "--depth", "30,30", "--memory", "64G", "--scratch", "400G", "--gpu", gpu];
        let planned = run_with_trial(&args, "").assert_success();
        let text = String::from_utf8_lossy(&planned.output.stdout).into_owned();
        text.lines().find_map(|line| line.strip_prefix("devices")).expect("a line").trim().to_owned()
    };
    assert_eq!(planned("0"), name);
    assert_eq!(planned("off"), "none (--gpu off)");
    assert!(planned("auto").starts_with("none: ") || !planned("auto").contains(name));
}
