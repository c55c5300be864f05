//! `--fpga sim`: count and call give the same bytes with a simulated FPGA.
//!
//! scripts/fpga.sh builds the simulators with Verilator; docs/internals/fpga.md describes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Data, SharedFixture, assert_same, genuma, installed, scratch, text};

/// The folder of the simulators for these k, built if they are not there; `None` without Verilator, after saying so.
fn simulators(lengths: &[&str]) -> Option<PathBuf> {
    static BUILD: std::sync::Mutex<()> = std::sync::Mutex::new(());
    installed("verilator")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let _one_at_a_time = BUILD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let built = Command::new(root.join("scripts/fpga.sh")).arg("sim").args(lengths).output().expect("a shell");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(root.join("target/fpga"))
}

/// A small simulated pair.
fn pair() -> &'static Data {
    static PAIR: SharedFixture<Data> = SharedFixture::new();
    PAIR.get_or_init(|| {
        let options = "--genome-length 120000 --snvs 20 --indels 4 --svs 1 --seed 8 --depth-normal 15 --depth-tumor 20";
        Data::simulate("fpga-pair", &options.split(' ').collect::<Vec<_>>())
    })
}

/// Runs genuma with simulators of this folder; returns the messages.
fn run_with_simulators(args: &[&str], folder: &Path) -> (bool, String) {
    let output = genuma().args(args).env("GENUMA_FPGA_SIM", folder).output().expect("genuma starts");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Counts one or two samples into a table; returns its bytes and the messages.
fn count(k: &str, samples: usize, fpga: &str, folder: &Path) -> (Vec<u8>, String) {
    let out = scratch(&format!("fpga-count-{k}-{samples}-{fpga}")).join("counted.gkt");
    let mut args = vec!["kmers", "count", "-k", k, "--threads", "2", "--gpu", "off", "--fpga", fpga, "-o", text(&out)];
    args.push("--normal");
    args.extend(pair().normal.iter().map(|path| text(path)));
    if samples == 2 {
        args.push("--tumor");
        args.extend(pair().tumor.iter().map(|path| text(path)));
    }
    let (succeeded, said) = run_with_simulators(&args, folder);
    assert!(succeeded, "{said}");
    (fs::read(&out).expect("a table"), said)
}

/// Number of batches that the FPGA scattered, from the messages.
fn batches_on_fpga(said: &str) -> u64 {
    let line = said.lines().find(|line| line.contains("batches of reads were scattered by"));
    let line = line.unwrap_or_else(|| panic!("nothing is said of the FPGA: {said}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let of = words.iter().position(|word| *word == "of").expect("so many of all");
    words[of - 1].parse().expect("a number")
}

#[test]
fn tables_are_the_same_bytes_with_a_simulated_fpga() {
    let lengths = ["21", "24", "31", "32"];
    let Some(folder) = simulators(&lengths) else { return };
    for k in lengths {
        for samples in [1, 2] {
            let (without, said) = count(k, samples, "off", &folder);
            assert!(!said.contains("FPGA"), "{said}");
            let (with, said) = count(k, samples, "sim", &folder);
            assert!(with == without, "k {k}, {samples} samples");
            assert!(batches_on_fpga(&said) > 0, "{said}");
        }
    }
}

#[test]
fn calls_are_the_same_bytes_with_a_simulated_fpga() {
    let Some(folder) = simulators(&["31"]) else { return };
    let call = |fpga: &str| {
        let out = scratch(&format!("fpga-call-{fpga}")).join("calls");
        let args = pair().call_with(&out, &["-k", "31", "--gpu", "off", "--fpga", fpga]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (succeeded, said) = run_with_simulators(&args, &folder);
        assert!(succeeded, "{said}");
        (out, said)
    };
    let (without, _) = call("off");
    let (with, said) = call("sim");
    assert_same(&without, &with);
    assert!(batches_on_fpga(&said) > 0, "{said}");
}

#[test]
fn a_missing_or_foreign_simulator_is_refused() {
    let folder = scratch("fpga-missing");
    let reads = text(&pair().normal[0]);
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
