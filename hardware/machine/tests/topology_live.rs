//! Compares this machine's topology with the output of other tools.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;

use genuma_machine::topology::{RecordedMachine, Sysfs};
use genuma_machine::{IdSet, Topology, TopologySource};

fn here() -> Topology {
    Sysfs::new().topology().expect("this machine can be read")
}

/// Output of a program; prints that the test is skipped if the program cannot be run.
fn printed(test: &str, program: &str, args: &[&str]) -> Option<String> {
    match Command::new(program).args(args).env("LC_ALL", "C").output() {
        Ok(output) if output.status.success() => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => {
            writeln!(std::io::stderr(), "skipped: {test}: {program}: {}", output.status).expect("stderr");
            None
        }
        Err(e) => {
            writeln!(std::io::stderr(), "skipped: {test}: {program}: {e}").expect("stderr");
            None
        }
    }
}

#[test]
fn lscpu_says_the_same_of_cpus() {
    let Some(table) = printed("lscpu_says_the_same_of_cpus", "lscpu", &["-p=CPU,NODE,CORE"]) else { return };
    let mut nodes = BTreeMap::new();
    let mut cores: BTreeMap<u32, IdSet> = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        // Without nodes in the kernel the column is empty.
        let fields: Vec<Option<u32>> = line.split(',').map(|field| field.parse().ok()).collect();
        let cpu = fields[0].expect("a CPU");
        nodes.insert(cpu, fields[1].unwrap_or(0));
        cores.entry(fields[2].expect("a core")).or_default().insert(cpu);
    }
    let topology = here();
    assert_eq!(topology.cpus.iter().map(|cpu| (cpu.id, cpu.node)).collect::<BTreeMap<_, _>>(), nodes);
    for siblings in cores.values() {
        for cpu in siblings.iter() {
            assert_eq!(&topology.find_cpu(cpu).expect("a CPU").siblings, siblings);
        }
    }
}

#[test]
fn numactl_says_the_same_of_nodes() {
    let Some(said) = printed("numactl_says_the_same_of_nodes", "numactl", &["--hardware"]) else { return };
    let topology = here();
    let mut nodes = IdSet::new();
    for line in said.lines() {
        let Some((node, cpus)) = line.strip_prefix("node ").and_then(|rest| rest.split_once(" cpus:")) else {
            continue;
        };
        let node = node.parse().expect("a node");
        let cpus: IdSet = cpus.split_whitespace().map(|cpu| cpu.parse::<u32>().expect("a CPU")).collect();
        assert_eq!(topology.find_node(node).map(|node| &node.cpus), Some(&cpus));
        nodes.insert(node);
    }
    assert_eq!(topology.nodes.iter().map(|node| node.id).collect::<IdSet>(), nodes);
}

#[test]
fn the_standard_library_finds_as_many_cpus() {
    let allowed = here().allowed;
    // It takes affinity and quotas of control groups into account.
    let expected = allowed
        .cpu_time_limit_cpus
        .map_or(allowed.cpus.len(), |time| allowed.cpus.len().min((time.floor() as usize).max(1)));
    assert_eq!(std::thread::available_parallelism().expect("a number").get(), expected);
}

#[test]
fn a_recording_of_this_machine_tells_the_same() {
    let recorded = RecordedMachine::record_system(&Sysfs::new());
    let text = recorded.to_text();
    let again = RecordedMachine::parse("a recording", &text).expect("a recording");
    assert_eq!(again.to_text(), text);
    let steady = |mut topology: Topology| {
        topology.origin.clear();
        // Both change from moment to moment; so does the kernel's count of a node whose memory it prepares late.
        topology.nodes.iter_mut().for_each(|node| node.free_bytes = 0);
        topology.missing_notes.retain(|sentence| !sentence.contains("/proc/meminfo of"));
        topology
    };
    assert_eq!(steady(again.topology().expect("a topology")), steady(here()));

    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    assert!(host.trim().len() < 4 || !text.contains(host.trim()), "no name of the host");
}

#[test]
fn files_and_their_recording_tell_the_same() {
    let text = include_str!("machines/hmat.txt");
    let folder = tempfile::tempdir().expect("a folder");
    for line in text.lines().skip(1) {
        let (path, text) = line.split_once(' ').unwrap_or((line, ""));
        let file = folder.path().join(path.trim_start_matches('/'));
        if path.ends_with('/') {
            std::fs::create_dir_all(&file).expect("a folder");
        } else {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            let text = text.replace("\\n", "\n").replace("\\t", "\t");
            std::fs::write(&file, format!("{text}\n")).expect("a file");
        }
    }
    let mut recorded = RecordedMachine::parse("x", text).expect("a recording").topology().expect("a topology");
    recorded.origin = "this machine".to_owned();
    let files = Sysfs::with_root(folder.path());
    assert_eq!(files.topology().expect("a topology"), recorded);
    assert_eq!(RecordedMachine::record_system(&files).to_text(), text);
}
