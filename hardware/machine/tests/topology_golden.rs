//! Recorded machines with expected output: each recording in `tests/machines/` has a table and a JSON file.

use std::fs;
use std::path::{Path, PathBuf};

use genuma_machine::topology::{RecordedMachine, SyntheticMachine};
use genuma_machine::{IdSet, Topology, TopologySource};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

fn recorded(name: &str) -> Topology {
    let recorded = RecordedMachine::open(&folder().join(format!("{name}.txt"))).expect("a recording");
    recorded.topology().unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Names of all recordings.
fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the folder of machines").map(|entry| entry.expect("an entry").path());
    let recordings = entries.filter(|path| path.extension().is_some_and(|e| e == "txt"));
    let mut names: Vec<String> =
        recordings.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[track_caller]
fn assert_golden(file: &str, said: &str) {
    let path = folder().join(file);
    if std::env::var_os("GENUMA_BLESS").is_some() {
        fs::write(&path, said).expect("a file that can be written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(said, golden, "{}", path.display());
}

#[track_caller]
fn assert_as_reviewed(name: &str, topology: &Topology) {
    assert_golden(&format!("{name}.table"), &topology.format_topology());
    let json = serde_json::to_string_pretty(topology).expect("JSON");
    assert_golden(&format!("{name}.json"), &format!("{json}\n"));
    let back: Topology = serde_json::from_str(&json).expect("a topology");
    assert_eq!(&back, topology, "{name}: JSON loses nothing");
}

#[test]
fn recorded_machines_are_told_as_reviewed() {
    let names = names();
    assert!(names.len() >= 16, "{names:?}");
    for name in names {
        assert_as_reviewed(&name, &recorded(&name));
    }
}

#[test]
fn described_machines_are_told_as_reviewed() {
    let server: SyntheticMachine = "8 nodes × 8 cores, 2 threads, 16 GiB".parse().expect("a description");
    assert_as_reviewed("synthetic-server", &server.topology().expect("a machine"));
    let tiered: SyntheticMachine =
        "2 nodes x 4 cores, 32 GiB, 2 memory-only nodes x 128 GiB".parse().expect("a description");
    assert_as_reviewed("synthetic-tiered", &tiered.topology().expect("a machine"));
}

#[test]
fn recordings_are_as_they_would_be_written() {
    for name in names() {
        let text = fs::read_to_string(folder().join(format!("{name}.txt"))).expect("a recording");
        let lines: String =
            text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        assert_eq!(RecordedMachine::parse(&name, &text).expect("a recording").to_text(), lines, "{name}");
    }
}

#[test]
fn shapes_are_recognised() {
    let nodes = |name: &str| recorded(name).nodes.iter().map(|node| node.id).collect::<IdSet>().to_string();
    for (name, expected) in [("1-node", "0"), ("2-nodes", "0-1"), ("4-nodes", "0-3"), ("8-nodes", "0-7")] {
        assert_eq!(nodes(name), expected);
    }

    let sparse = recorded("sparse-nodes");
    assert_eq!(nodes("sparse-nodes"), "0,2,5");
    assert_eq!(sparse.find_node(5).expect("node 5").distances[&2], 16);
    assert_eq!(sparse.find_cpu(6).expect("CPU 6").node, 5);

    let smt = recorded("smt");
    assert_eq!(smt.find_cpu(5).expect("CPU 5").siblings, IdSet::from([4, 5]));

    let tiered = recorded("memory-only-node");
    assert!(tiered.find_node(2).expect("node 2").cpus.is_empty());
    assert_eq!(
        (tiered.allowed_memory_nodes(), tiered.allowed_cpu_nodes()),
        (IdSet::from([0, 1, 2]), IdSet::from([0, 1]))
    );

    let hmat = recorded("hmat");
    let far = &hmat.find_node(2).expect("node 2").access[1];
    // The guest was configured with distance 22, 176 ns and 45 GiB/s, which HMAT and the kernel report in MiB/s.
    assert_eq!((far.initiator_class, far.read_latency_ns, far.read_bandwidth_mbs), (1, Some(176), Some(45 << 10)));

    let offline = recorded("offline-cpus");
    assert_eq!(offline.offline_cpus, IdSet::from([2, 5, 6]));
    assert!(offline.caches.iter().all(|cache| cache.cpus.intersection(&offline.offline_cpus).is_empty()));

    let without = recorded("node-without-memory");
    assert_eq!(
        (without.find_node(1).expect("node 1").memory_bytes, without.allowed_memory_nodes()),
        (0, IdSet::from([0]))
    );

    let gpus = recorded("gpu-memory-nodes");
    assert_eq!((gpus.memory_nodes(), gpus.allowed_memory_nodes()), (IdSet::from([0, 8, 9]), IdSet::from([0, 8, 9])));
    assert_eq!(gpus.memory_bytes(), (2 * 130_000_000 + 64_000_000) << 10, "two sockets and the CXL node");
    let refused =
        gpus.check_can_allocate_on_nodes(&IdSet::from([8, 254])).expect_err("node 254 is a GPU's").to_string();
    assert_eq!(refused, "node 254 is memory of GPUs: nodes 0,8-9 have the machine's memory");

    let homeless = recorded("offline-node");
    assert_eq!((nodes("offline-node"), homeless.cpus.len()), ("1".to_owned(), 4));
    assert_eq!(homeless.nodes[0].cpus, IdSet::from([4, 5, 6, 7]));

    let pages = recorded("huge-pages");
    let pool = pages.find_node(1).expect("node 1").huge_pages[0];
    assert_eq!((pool.page_bytes, pool.total_pages, pool.free_pages), (2 << 20, 16, 16));

    assert_eq!(recorded("weights").interleave_weights.expect("weights").into_values().collect::<Vec<_>>(), [3, 1]);

    let confined = recorded("cpuset").allowed;
    assert_eq!((confined.cpus, confined.nodes), (IdSet::from([2, 3, 4, 5]), IdSet::from([1, 2])));
    // The outer group allows 300 MiB, the inner one 400.
    assert_eq!((confined.memory_limit_bytes, confined.cpu_time_limit_cpus), (Some(300 << 20), Some(1.5)));
}

#[test]
fn what_is_missing_is_said() {
    let complete = ["1-node", "2-nodes", "4-nodes", "8-nodes", "smt", "hmat", "cpuset", "offline-cpus"];
    for name in complete {
        assert_eq!(recorded(name).missing_notes, [""; 0], "{name}");
    }
    let cloud = recorded("cloud-2-cores");
    assert_eq!(cloud.missing_notes.len(), 1);
    assert_eq!(cloud.nodes[0].memory_bytes, 24_684_092 << 10, "of /proc/meminfo, since the node reports less");
    let flat = recorded("no-nodes");
    assert_eq!((flat.nodes.len(), flat.cpus.len(), flat.nodes[0].huge_pages[0].total_pages), (1, 8, 4));
    assert!(flat.missing_notes[0].contains("one node 0 with all CPUs and all memory"), "{:?}", flat.missing_notes);
    assert_eq!(recorded("hidden-sys").cpus.len(), 2);
}

#[test]
fn what_may_not_be_used_is_refused_with_the_reason() {
    let confined = recorded("cpuset");
    let cpus = |ids: &[u32]| match confined.check_can_run_on_cpus(&ids.iter().copied().collect()) {
        Ok(()) => "fine".to_owned(),
        Err(e) => e.to_string(),
    };
    assert_eq!(cpus(&[2, 5]), "fine");
    assert_eq!(cpus(&[5, 7]), "CPU 7 is not allowed to this process: its affinity and cpuset leave it 2-5");
    assert_eq!(cpus(&[0, 1, 2]), "CPUs 0-1 are not allowed to this process: its affinity and cpuset leave it 2-5");
    assert_eq!(cpus(&[2, 99]), "there is no CPU 99: this machine has 0-7");
    assert_eq!(cpus(&[]), "no CPU was named: name at least one of 2-5");
    let nodes = |ids: &[u32]| match confined.check_can_allocate_on_nodes(&ids.iter().copied().collect()) {
        Ok(()) => "fine".to_owned(),
        Err(e) => e.to_string(),
    };
    assert_eq!(nodes(&[1, 2]), "fine");
    assert_eq!(nodes(&[3]), "node 3 is not allowed to this process: its cpuset has nodes 1-2");
    assert_eq!(nodes(&[4, 5]), "there is no node 4-5: this machine has 0-3");
    assert_eq!(nodes(&[]), "no node was named: name at least one of 1-2");

    let offline = recorded("offline-cpus").check_can_run_on_cpus(&IdSet::from([1, 2])).expect_err("CPU 2 is offline");
    assert_eq!(offline.to_string(), "CPU 2 is offline: 0-1,3-4,7 are online");
    let without =
        recorded("node-without-memory").check_can_allocate_on_nodes(&IdSet::from([0, 1])).expect_err("no memory");
    assert_eq!(without.to_string(), "node 1 is without memory: node 0 has some");
}
