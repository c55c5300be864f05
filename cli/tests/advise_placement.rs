//! `genuma machine advise`: command lines for use without genuma, and the choice of some of the nodes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use genuma_machine::topology::{SyntheticMachine, TopologySource};
use genuma_probe::MachineProfile;
use genuma_probe::measure::{UnmeasuredMachineFacts, measure_profile};
use genuma_probe::plan::{MeasurementPlan, PlanOptions};
use genuma_probe::profile::TheoreticalBandwidth;
use genuma_probe::simulated_machine::SimulatedMachine;

use crate::common::{RunOutput, genuma, json, run, scratch, skipped, text};

/// A profile of eight nodes, which are near to each other if `is_near` says so.
fn profile_of_eight_nodes(is_near: impl Fn(u32, u32) -> bool) -> MachineProfile {
    let machine: SyntheticMachine = "8 nodes x 4 cores, 2 threads, 8 GiB".parse().expect("a description");
    let mut topology = machine.topology().expect("a machine");
    for node in &mut topology.nodes {
        let from = node.id;
        let distance = |to: u32| match (from == to, is_near(from, to)) {
            (true, _) => 10,
            (_, true) => 12,
            _ => 32,
        };
        node.distances = (0..8).map(|to| (to, distance(to))).collect();
    }
    let plan = MeasurementPlan::new(&topology, &PlanOptions::full_plan()).expect("a plan");
    let facts = UnmeasuredMachineFacts {
        topology: topology.clone(),
        theory: TheoreticalBandwidth::default(),
        host: Some("eight".into()),
        unix_time_s: None,
    };
    measure_profile(facts, &plan, &mut SimulatedMachine::new_typical_server(topology), &mut |_| {}).expect("a profile")
}

fn write_profile(profile: &MachineProfile, path: &Path) {
    profile.write_json(&mut File::create(path).expect("a file")).expect("a profile");
}

fn advise_nodes(machine: &Path, more: &[&str]) -> RunOutput {
    run(["machine", "advise", "--machine", text(machine)].iter().chain(more))
}

#[test]
fn the_nodes_of_a_fast_group_are_chosen() {
    let folder = scratch("groups");
    let [machine, advice] = ["machine.json", "advice.json"].map(|name| folder.join(name));
    write_profile(&profile_of_eight_nodes(|a, b| a % 2 == b % 2), &machine);
    let said = advise_nodes(&machine, &["--nodes", "4", "--json", text(&advice)]).assert_success().stdout;
    assert!(said.starts_with("Nodes 0,2,4,6 of 0-7: "), "{said}");
    assert!(said.contains("`genuma run --on-nodes 0,2,4,6`"), "{said}");
    // CPUs 0-31 are the first hardware threads of the cores, 32-63 the second ones; four of each are on a node.
    let cpus = "0-3,8-11,16-19,24-27,32-35,40-43,48-51,56-59";
    for line in [
        format!("    numactl --physcpubind={cpus} --membind=0,2,4,6 -- COMMAND\n"),
        format!("    systemd-run --scope -p AllowedCPUs={cpus} -p AllowedMemoryNodes=0,2,4,6 -- COMMAND\n"),
        "--cpus-per-task=32 --cpu-bind=mask_cpu:0xf0f0f0f0f0f0f0f --mem-bind=mask_mem:0x55 COMMAND\n".to_owned(),
        "Slurm, in a job with the options --nodes=1 --exclusive --mem=0 --ntasks=1 --cpus-per-task=32 --hint=multithread:"
            .to_owned(),
    ] {
        assert!(said.contains(&line), "{line}: {said}");
    }
    let told = json(&advice);
    assert_eq!((&told["nodes"]["nodes"], &told["nodes"]["is_exhaustive"]), (&"0,2,4,6".into(), &true.into()));
    assert!(told["nodes"]["cost"].as_f64() < told["nodes"]["cost_of_first_nodes"].as_f64(), "{told}");
    assert_eq!(told["launch"]["instances"][0]["cpus"], cpus);

    let said = advise_nodes(&machine, &["--nodes", "2", "--threads", "4"]).assert_success().stdout;
    assert!(said.starts_with("Nodes 0,2 of 0-7: ") && said.contains(" --membind=0,2 "), "{said}");
    assert!(said.contains(" --hint=nomultithread:"), "4 threads on 8 cores: {said}");
    let said = advise_nodes(&machine, &["--nodes", "1"]).assert_success().stdout;
    assert!(said.contains("numactl --physcpubind=0-3,32-35 --membind=0 -- COMMAND"), "{said}");
}

#[test]
fn nodes_of_a_symmetric_machine_are_the_first() {
    let machine = scratch("symmetric").join("machine.json");
    write_profile(&profile_of_eight_nodes(|_, _| true), &machine);
    for (count, nodes) in [("1", "0"), ("2", "0-1"), ("4", "0-3"), ("8", "0-7")] {
        let said = advise_nodes(&machine, &["--nodes", count]).assert_success().stdout;
        assert!(said.starts_with(&format!("Nodes {nodes} of 0-7: ")), "{said}");
        assert!(said.contains(&format!(" --membind={nodes} ")), "{said}");
    }
}

#[test]
fn wrong_numbers_of_nodes_are_refused() {
    let folder = scratch("wrong");
    let machine = folder.join("machine.json");
    write_profile(&profile_of_eight_nodes(|_, _| true), &machine);
    for (args, said) in [
        (&["--nodes", "9"][..], "--nodes: 9 nodes are requested, but this machine has 8 "),
        (&["--nodes", "0"], "0 is not in 1.."),
        (&["--nodes", "2", "--sweep", "x.csv"], "--sweep: give the command of an aligner"),
        (&["--nodes", "2", "--strategies", "bind"], "--strategies: give the command of an aligner"),
    ] {
        let ended = advise_nodes(&machine, args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said) && ended.stdout.is_empty(), "{args:?}: {}", ended.stderr);
    }
    let ended = run(["run", "--on-nodes", "0-63", "--", "true"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("--on-nodes 0-63: this process may use the CPUs and the memory of nodes"));
}

/// An aligner that answers each read as unmapped, and a file with a read.
fn aligner_and_reads(name: &str) -> (PathBuf, PathBuf) {
    let folder = scratch(name);
    let reads = folder.join("reads.fq");
    fs::write(&reads, "@a\nACGT\n+\nFFFF\n").expect("a file");
    (folder, reads)
}

#[test]
fn lines_of_an_aligner_run_its_instances() {
    let (folder, reads) = aligner_and_reads("aligner");
    let advice = folder.join("advice.json");
    let unmapped = "NR == 1 { print \"@SQ\\tSN:c\\tLN:9\"; print \"a\\t4\\t*\\t0\\t0\\t*\\t*\\t0\\t0\\tACGT\\tFFFF\" }";
    let args = ["machine", "advise", "--trial-budget", "0", "--reads", text(&reads), "--json", text(&advice)];
    let output =
        genuma().args(args).args(["--", "awk", unmapped]).env_remove("GENUMA_MACHINE").output().expect("genuma starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(said.contains("First divide the reads into part1, as FASTQ with whole pairs;"), "{said}");
    let told = json(&advice);
    let launch = &told["launch"]["instances"];
    assert_eq!(launch.as_array().map(Vec::len), Some(1));
    let line = launch[0]["numactl"].as_str().expect("a line");
    assert!(line.starts_with("numactl --physcpubind=") && line.ends_with(" < part1.fq > part1.sam"), "{line}");
    assert!(said.contains(line), "{said}");

    // The line is what a shell runs: with another program in the place of numactl, and with numactl where it is installed.
    let command = line.split_once(" -- ").expect("a command").1;
    fs::copy(&reads, folder.join("part1.fq")).expect("a copy");
    let shell = |line: &str| {
        let status = Command::new("sh").args(["-c", line]).current_dir(&folder).status().expect("a shell");
        (status.success(), fs::read_to_string(folder.join("part1.sam")).unwrap_or_default())
    };
    let records = "@SQ\tSN:c\tLN:9\na\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tFFFF\n".to_owned();
    assert_eq!(shell(command), (true, records.clone()));
    if !shell("command -v numactl").0 || !shell("numactl --show").0 {
        return skipped("numactl is not installed, or the kernel forbids memory policies");
    }
    fs::remove_file(folder.join("part1.sam")).expect("the output");
    assert_eq!(shell(line), (true, records));
}
