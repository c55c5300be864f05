//! `--fpga sim`: count and call give the same bytes with a simulated FPGA.
//!
//! scripts/fpga.sh builds the simulators with Verilator; docs/internals/fpga.md describes them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Data, SharedFixture, assert_same, genuma, installed, json, repository, scratch, summary, text};
use crate::gpu;

/// Lengths of k-mers: odd and even ones, that of the default and the longest.
const LENGTHS: [&str; 4] = ["21", "24", "31", "32"];

/// The folder of the simulators for these k, built if they are not there; `None` without Verilator, after saying so.
fn simulators(lengths: &[&str]) -> Option<PathBuf> {
    static BUILD: std::sync::Mutex<()> = std::sync::Mutex::new(());
    installed("verilator")?;
    let _one_at_a_time = BUILD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let built = Command::new(repository("scripts/fpga.sh")).arg("sim").args(lengths).output().expect("a shell");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(repository("target/fpga"))
}

/// Reads of a normal and of two tumours of a person.
struct Samples {
    pair: Data,
    second_tumor: Vec<PathBuf>,
}

fn samples() -> &'static Samples {
    static SAMPLES: SharedFixture<Samples> = SharedFixture::new();
    SAMPLES.get_or_init(|| {
        let genome = "--genome-length 120000 --snvs 20 --indels 4 --svs 1 --seed 8";
        let simulate = |name: &str, reads: &str| {
            let options = format!("{genome} {reads}");
            Data::simulate(name, &options.split(' ').collect::<Vec<_>>())
        };
        let pair = simulate("fpga-pair", "--depth-normal 15 --depth-tumor 20");
        let second = simulate("fpga-second", "--depth-normal 1 --depth-tumor 15 --reads-seed 9 --subclones 0.5,0,0.3");
        Samples { pair, second_tumor: second.tumor }
    })
}

/// Runs genuma with the simulators of this folder; returns the messages.
fn run_with_simulators(args: &[&str], folder: &Path) -> (bool, String) {
    let mut command = genuma();
    command.args(args).env("GENUMA_FPGA_SIM", folder).env("GENUMA_GPU_TRIAL", gpu::TRIAL_OF_CALLS);
    let output = command.output().expect("genuma starts");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Results of a count.
struct Counted {
    table: Vec<u8>,
    statistics: Value,
    said: String,
}

/// Counts the first `num_samples` of the normal, the tumour and the second tumour into a table. Each run of a test has
/// another `name`.
fn count(name: &str, k: &str, num_samples: usize, options: &[&str], folder: &Path) -> Counted {
    let Samples { pair, second_tumor } = samples();
    let second = format!("second={},{}", text(&second_tumor[0]), text(&second_tumor[1]));
    let out = scratch(&format!("fpga-count-{name}-{k}-{num_samples}"));
    let [table, statistics] = ["counted.gkt", "counted.json"].map(|name| out.join(name));
    let mut args = vec!["kmers", "count", "-k", k, "-o", text(&table), "--json", text(&statistics), "--normal"];
    args.extend(pair.normal.iter().map(|path| text(path)));
    if num_samples >= 2 {
        args.push("--tumor");
        args.extend(pair.tumor.iter().map(|path| text(path)));
    }
    if num_samples == 3 {
        args.extend(["--sample", &second]);
    }
    args.extend(options);
    let (succeeded, said) = run_with_simulators(&args, folder);
    assert!(succeeded, "{said}");
    Counted { table: fs::read(&table).expect("a table"), statistics: json(&statistics), said }
}

/// Calls the tumour alone, both samples of the pair, or these and the second tumour. Returns the folder of the results
/// and the messages.
fn call(name: &str, k: &str, num_samples: usize, options: &[&str], folder: &Path) -> (PathBuf, String) {
    let Samples { pair, second_tumor } = samples();
    let out = scratch(&format!("fpga-call-{name}-{k}-{num_samples}")).join("calls");
    let reference = pair.reference.as_deref().expect("a reference");
    let mut args = vec!["call", "-k", k, "--reference", text(reference), "-o", text(&out)];
    let mut add_sample = |option: &'static str, files: &'static [PathBuf]| {
        args.push(option);
        args.extend(files.iter().map(|path| text(path)));
    };
    add_sample("--tumor", &pair.tumor);
    if num_samples >= 2 {
        add_sample("--normal", &pair.normal);
    }
    if num_samples == 3 {
        add_sample("--tumor", second_tumor);
    }
    args.extend(options);
    let (succeeded, said) = run_with_simulators(&args, folder);
    assert!(succeeded, "{said}");
    (out, said)
}

/// Number of batches that the FPGA scattered, and of all batches, from the messages.
fn batches_on_fpga(said: &str) -> [u64; 2] {
    let line = said.lines().find(|line| line.contains("batches of reads were scattered by"));
    let line = line.unwrap_or_else(|| panic!("nothing is said of the FPGA: {said}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let of = words.iter().position(|word| *word == "of").expect("a number of all batches");
    [words[of - 1], words[of + 1]].map(|number| number.parse().expect("a number"))
}

/// Asserts that the FPGA scattered batches, so that the comparison of the results means something.
#[track_caller]
fn assert_fpga_was_used(said: &str) {
    assert!(batches_on_fpga(said)[0] > 0, "{said}");
}

/// Options of a count or call on the CPU, and of one with a simulated FPGA.
const ON_CPU: [&str; 6] = ["--threads", "2", "--gpu", "off", "--fpga", "off"];
const ON_FPGA: [&str; 6] = ["--threads", "2", "--gpu", "off", "--fpga", "sim"];

#[test]
fn tables_are_the_same_bytes_with_a_simulated_fpga() {
    let Some(folder) = simulators(&LENGTHS) else { return };
    for k in LENGTHS {
        for num_samples in [1, 2, 3] {
            let without = count("cpu", k, num_samples, &ON_CPU, &folder);
            assert!(!without.said.contains("FPGA"), "{}", without.said);
            let with = count("fpga", k, num_samples, &ON_FPGA, &folder);
            assert!(with.table == without.table, "k {k}, {num_samples} samples");
            assert_fpga_was_used(&with.said);
            assert_eq!(with.statistics["spilled_bytes"], 0);
            if num_samples == 3 {
                let options = ["--threads", "1", "--gpu", "off", "--fpga", "sim", "--memory", "72M"];
                let with = count("spilled", k, num_samples, &options, &folder);
                assert!(with.table == without.table, "k {k}, with little memory");
                assert_fpga_was_used(&with.said);
                assert!(with.statistics["spilled_bytes"].as_u64() > Some(1 << 20), "{}", with.statistics);
            }
        }
    }
}

/// Number in the summary of a call with this description.
fn summary_count(out: &Path, description: &str) -> u64 {
    let summary = summary(out);
    let stages = summary["stages"].as_array().expect("stages");
    let line = stages.iter().find(|line| line["description"].as_str().is_some_and(|text| text.contains(description)));
    line.and_then(|line| line["count"].as_u64()).unwrap_or_else(|| panic!("no {description}: {summary}"))
}

#[test]
fn calls_are_the_same_bytes_with_a_simulated_fpga() {
    let Some(folder) = simulators(&LENGTHS) else { return };
    for k in LENGTHS {
        for num_samples in [1, 2, 3] {
            let (without, _) = call("cpu", k, num_samples, &ON_CPU, &folder);
            let (with, said) = call("fpga", k, num_samples, &ON_FPGA, &folder);
            assert_same(&without, &with);
            assert_fpga_was_used(&said);
        }
    }
}

/// With little memory k-mers are spilled; without scratch space they are counted in partitions instead.
#[test]
fn spilled_and_partitioned_calls_are_the_same_bytes_with_a_simulated_fpga() {
    let Some(folder) = simulators(&["31"]) else { return };
    // Enough reads that they do not fit in the least memory of a call.
    let options = "--genome-length 1000000 --snvs 20 --indels 4 --svs 1 --seed 8 --depth-normal 15 --depth-tumor 20";
    let pair = Data::simulate("fpga-large-pair", &options.split(' ').collect::<Vec<_>>());
    let call = |name: &str, options: &[&str]| {
        let out = scratch(&format!("fpga-large-{name}")).join("calls");
        let args = pair.call_with(&out, &[&["-k", "31", "--gpu", "off"], options].concat());
        let (succeeded, said) = run_with_simulators(&args.iter().map(String::as_str).collect::<Vec<_>>(), &folder);
        assert!(succeeded, "{said}");
        (out, said)
    };
    let (without, _) = call("cpu", &["--threads", "2"]);
    let [spilled, divided] = ["1G", "0"].map(|scratch| {
        let options = ["--threads", "1", "--fpga", "sim", "--memory", "113M", "--scratch", scratch];
        let (with, said) = call(scratch, &options);
        assert_same(&without, &with);
        assert_fpga_was_used(&said);
        ["partitions of the k-mer space", "bytes of the k-mer spill file"].map(|what| summary_count(&with, what))
    });
    assert!(spilled[0] == 1 && spilled[1] > 1 << 20, "{spilled:?}");
    assert!(divided[0] > 1, "{divided:?}");
}

/// An FPGA scatters and an OpenCL device counts.
#[test]
fn results_are_the_same_bytes_with_a_simulated_fpga_and_another_device() {
    if gpu::lacks_devices() {
        return;
    }
    let Some(folder) = simulators(&["31"]) else { return };
    let devices = ["--threads", "2", "--gpu", "0", "--fpga", "sim", "--memory", "1G"];
    let with = count("devices", "31", 3, &devices, &folder);
    assert!(with.table == count("no-devices", "31", 3, &ON_CPU, &folder).table);
    assert_fpga_was_used(&with.said);
    assert!(gpu::bins_on_devices(&with.said) > 0, "{}", with.said);
    let (with, said) = call("devices", "31", 3, &devices, &folder);
    assert_same(&with, &call("no-devices", "31", 3, &ON_CPU, &folder).0);
    assert_fpga_was_used(&said);
    assert!(gpu::bins_on_devices(&said) > 0, "{said}");
}

/// The FPGA scatters some batches and threads the others, because the simulators end after two batches.
#[test]
fn results_are_the_same_bytes_with_an_fpga_that_fails() {
    let Some(simulators) = simulators(&["31"]) else { return };
    let name = "genuma-fpga-sim-k31";
    let folder = scratch("fpga-fails");
    let script = format!("#!/bin/sh\nexec '{}' --batches 2\n", simulators.join(name).display());
    fs::write(folder.join(name), script).expect("written");
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).expect("executable");
    let with = count("fails", "31", 3, &ON_FPGA, &folder);
    assert!(with.table == count("never-fails", "31", 3, &ON_CPU, &folder).table);
    let [on_fpga, all] = batches_on_fpga(&with.said);
    assert!(on_fpga > 0 && on_fpga < all && with.said.contains("this FPGA is not used any more"), "{}", with.said);
}

#[test]
fn a_missing_or_foreign_simulator_is_refused() {
    let folder = scratch("fpga-missing");
    let reads = text(&samples().pair.normal[0]);
    let refuse = |k: &str, reason: &str| {
        let out = folder.join("x.gkt");
        let args = ["kmers", "count", reads, "-k", k, "-o", text(&out), "--gpu", "off", "--fpga", "sim"];
        let (succeeded, said) = run_with_simulators(&args, &folder);
        assert!(!succeeded && said.contains(reason) && !out.exists(), "{said}");
    };
    refuse("25", "genuma-fpga-sim-k25 is missing: build it with scripts/fpga.sh sim 25, or set GENUMA_FPGA_SIM");
    let Some(simulators) = simulators(&["31"]) else { return };
    fs::copy(simulators.join("genuma-fpga-sim-k31"), folder.join("genuma-fpga-sim-k29")).expect("copied");
    refuse("29", "it is not for k = 29 and this version of genuma: build it with scripts/fpga.sh sim 29");
}
