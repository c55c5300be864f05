use genuma_machine::topology::{RecordedMachine, SyntheticMachine, TopologySource};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::*;

fn machine(text: &str) -> Topology {
    text.parse::<SyntheticMachine>().and_then(|machine| machine.topology()).expect("a machine")
}

fn recorded(name: &str) -> Topology {
    let path = format!("{}/../hardware/machine/tests/machines/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    RecordedMachine::open(path.as_ref()).and_then(|machine| machine.topology()).expect("a recording")
}

fn strategy(word: &str) -> Strategy {
    word.parse().expect("a strategy")
}

/// Returns CPUs, nodes, policy and threads of each CPU slot, one line each.
fn told(word: &str, topology: &Topology, threads: usize) -> Vec<String> {
    let cpu_slots = assign_cpu_slots(&strategy(word), topology, threads).expect("CPU slots");
    let line = |s: &CpuSlot| {
        let policy = s.policy.as_ref().map_or("-".to_owned(), MemoryPolicy::to_string);
        format!("cpus {} nodes {} policy {policy} threads {}", s.cpus, s.nodes, s.threads)
    };
    cpu_slots.iter().map(line).collect()
}

#[test]
fn one_instance_has_the_machine() {
    let four = machine("4 nodes × 4 cores, 8 GiB");
    for (word, policy) in [
        ("default", "-"),
        ("local", "local"),
        ("interleave", "interleave 0-3"),
        ("weighted", "kernel-weighted 0-3"),
        ("bind", "bind 0-3"),
    ] {
        assert_eq!(told(word, &four, 16), [format!("cpus 0-15 nodes 0-3 policy {policy} threads 16")]);
    }
}

#[test]
fn instances_sit_on_near_nodes() {
    let eight = machine("8 nodes × 2 cores, 2 threads, 8 GiB");
    assert_eq!(
        told("4xinterleave", &eight, 32),
        [
            "cpus 0-3,16-19 nodes 0-1 policy interleave 0-1 threads 8",
            "cpus 4-7,20-23 nodes 2-3 policy interleave 2-3 threads 8",
            "cpus 8-11,24-27 nodes 4-5 policy interleave 4-5 threads 8",
            "cpus 12-15,28-31 nodes 6-7 policy interleave 6-7 threads 8",
        ]
    );
    assert_eq!(told("8xbind", &eight, 32)[5], "cpus 10-11,26-27 nodes 5 policy bind 5 threads 4");
}

#[test]
fn near_nodes_need_not_have_near_numbers() {
    let mut four = machine("4 nodes × 1 core, 8 GiB");
    // Node 0 is near node 2, and node 1 near node 3.
    for (n, node) in four.nodes.iter_mut().enumerate() {
        let far = |to: u32| {
            if to == n as u32 {
                10
            } else if to % 2 == n as u32 % 2 {
                16
            } else {
                22
            }
        };
        node.distances = (0..4).map(|to| (to, far(to))).collect();
    }
    let cpu_slots = told("2xbind", &four, 4);
    assert_eq!(
        cpu_slots,
        ["cpus 0,2 nodes 0,2 policy bind 0,2 threads 2", "cpus 1,3 nodes 1,3 policy bind 1,3 threads 2"]
    );
}

#[test]
fn what_is_taken_first_does_not_strand_the_rest() {
    // Nodes on a line: 3, 1, 0, 2, 4, 5.
    let mut six = machine("6 nodes × 1 core, 8 GiB");
    let place = [2u32, 1, 3, 0, 4, 5];
    for (n, node) in six.nodes.iter_mut().enumerate() {
        node.distances = (0..6).map(|to| (to, 10 + 10 * place[n].abs_diff(place[to as usize]))).collect();
    }
    // Greedy selection pairs 0 with 1 and leaves 3 alone at its end: distances 2 + 5 + 1 instead of 1 + 1 + 1.
    let nodes: Vec<IdSet> =
        assign_cpu_slots(&strategy("3xbind"), &six, 6).expect("CPU slots").into_iter().map(|s| s.nodes).collect();
    assert_eq!(nodes, [IdSet::from([0, 2]), IdSet::from([1, 3]), IdSet::from([4, 5])]);
}

#[test]
fn uneven_numbers() {
    let four = machine("4 nodes × 4 cores, 8 GiB");
    assert_eq!(
        told("3xlocal", &four, 16),
        [
            "cpus 0-7 nodes 0-1 policy local threads 8",
            "cpus 8-11 nodes 2 policy local threads 4",
            "cpus 12-15 nodes 3 policy local threads 4",
        ]
    );
    let threads = |all| {
        assign_cpu_slots(&strategy("3xlocal"), &four, all)
            .expect("CPU slots")
            .iter()
            .map(|s| s.threads)
            .collect::<Vec<_>>()
    };
    assert_eq!(threads(10), [6, 2, 2]);
    assert_eq!(threads(3), [1, 1, 1]);
    assert_eq!(threads(0), [1, 1, 1]);
}

#[test]
fn more_instances_than_nodes_share_cores() {
    let two = machine("2 nodes × 4 cores, 2 threads, 8 GiB");
    assert_eq!(told("4xbind", &two, 16)[1], "cpus 2-3,10-11 nodes 0 policy bind 0 threads 4");
    // As many instances as hardware threads: cores are split.
    assert_eq!(told("16xbind", &two, 16)[1], "cpus 8 nodes 0 policy bind 0 threads 1");
    let said = assign_cpu_slots(&strategy("17xbind"), &two, 16).expect_err("too many").to_string();
    assert_eq!(said, "17xbind: 17 instances on 16 CPUs; ask for 16 at most");
}

#[test]
fn one_node_has_no_policies() {
    let one = machine("1 node × 2 cores, 8 GiB");
    for memory in InstanceMemoryPolicy::ALL_MEMORY_POLICIES {
        let cpu_slots = told(&format!("2x{}", memory.policy_name()), &one, 2);
        assert_eq!(cpu_slots, ["cpus 0 nodes 0 policy - threads 1", "cpus 1 nodes 0 policy - threads 1"]);
    }
    let four = told("4xbind", &one, 2);
    assert_eq!(four[..2], four[2..], "four instances share two CPUs");
}

#[test]
fn only_what_is_allowed() {
    let mut four = machine("4 nodes × 4 cores, 8 GiB");
    four.allowed.cpus = "0-3,8-9".parse().expect("CPUs");
    assert_eq!(
        told("2xbind", &four, 6),
        ["cpus 0-3 nodes 0 policy bind 0 threads 4", "cpus 8-9 nodes 2 policy bind 2 threads 2"]
    );
    four.allowed.nodes = IdSet::from([0, 3]);
    // Node 2 has memory that may not be used; the nearest usable memory is on node 3.
    assert_eq!(told("2xbind", &four, 6)[1], "cpus 8-9 nodes 3 policy bind 3 threads 2");
    four.allowed.nodes = IdSet::new();
    assert_eq!(assign_cpu_slots(&strategy("bind"), &four, 1), Err(Error::NoMemory(strategy("bind"))));
    four.allowed.cpus = IdSet::new();
    assert_eq!(assign_cpu_slots(&strategy("bind"), &four, 1), Err(Error::NoCpus(strategy("bind"))));
}

#[test]
fn nodes_of_memory_alone_are_interleaved_over_by_one_instance() {
    let topology = machine("2 nodes × 2 cores, 8 GiB, 1 memory-only node");
    assert_eq!(told("interleave", &topology, 4), ["cpus 0-3 nodes 0-2 policy interleave 0-2 threads 4"]);
    assert_eq!(told("2xinterleave", &topology, 4)[0], "cpus 0-1 nodes 0 policy interleave 0 threads 2");
}

#[test]
fn recorded_machines() {
    for name in ["1-node", "2-nodes", "4-nodes", "8-nodes", "cpuset", "sparse-nodes", "smt", "node-without-memory"] {
        let topology = recorded(name);
        let nodes = topology.allowed_cpu_nodes().len() as u32;
        for instances in 1..=nodes {
            let strategy = Strategy { instances, memory: InstanceMemoryPolicy::Bind };
            let cpu_slots = assign_cpu_slots(&strategy, &topology, topology.allowed.cpus.len()).expect(name);
            for cpu_slot in &cpu_slots {
                assert!(
                    !cpu_slot.nodes.is_empty() && cpu_slot.nodes.is_subset(&topology.allowed_memory_nodes()),
                    "{name}: {cpu_slot:?}"
                );
            }
            check(&cpu_slots, &topology, topology.allowed.cpus.len().max(cpu_slots.len()));
        }
    }
}

#[test]
fn candidates_of_machines() {
    let words = |text: &str, threads, most| -> Vec<String> {
        candidate_strategies(&machine(text), threads, most).iter().map(Strategy::to_string).collect()
    };
    let four = "4 nodes × 4 cores, 8 GiB";
    assert_eq!(words(four, 16, 2), ["default", "local", "interleave", "2xlocal", "2xbind", "2xinterleave"]);
    let all = words(four, 16, 99);
    assert!(all.contains(&"4xbind".to_owned()) && !all.contains(&"4xinterleave".to_owned()), "{all:?}");
    assert!(!all.iter().any(|word| word.starts_with('5')), "{all:?}");
    assert_eq!(words(four, 1, 99), ["default", "local", "interleave"]);
    assert_eq!(words("1 node × 4 cores, 8 GiB", 4, 99), ["default", "2xdefault", "4xdefault"]);
    let mut weighted = machine(four);
    weighted.interleave_weights = Some((0..4).map(|node| (node, 1)).collect());
    assert!(candidate_strategies(&weighted, 16, 1).contains(&strategy("weighted")));
}

/// Checks that the CPU slots are disjoint, cover the allowed CPUs and have `threads` threads in all.
fn check(cpu_slots: &[CpuSlot], topology: &Topology, threads: usize) {
    let cpus: Vec<u32> = cpu_slots.iter().flat_map(|cpu_slot| cpu_slot.cpus.iter()).collect();
    let set: IdSet = cpus.iter().copied().collect();
    assert_eq!(set.len(), cpus.len(), "a CPU in two slots: {cpu_slots:?}");
    assert_eq!(set, topology.allowed.cpus, "CPUs in no slot: {cpu_slots:?}");
    assert_eq!(cpu_slots.iter().map(|cpu_slot| cpu_slot.threads).sum::<usize>(), threads, "{cpu_slots:?}");
}

proptest! {
    #[test]
    fn seats_are_disjoint_and_cover(
        (nodes, cores, smt) in (1u32..9, 1u32..5, 1u32..3),
        instances in 1u32..40,
        threads in 0usize..200,
        memory in 0usize..5,
        barred in proptest::collection::vec(any::<bool>(), 80),
    ) {
        let mut topology = machine(&format!("{nodes} nodes × {cores} cores, {smt} threads, 1 GiB"));
        topology.allowed.cpus = topology.allowed.cpus.iter().filter(|&cpu| !barred[cpu as usize]).collect();
        let strategy = Strategy { instances, memory: InstanceMemoryPolicy::ALL_MEMORY_POLICIES[memory] };
        let cpus = topology.allowed.cpus.len();
        match assign_cpu_slots(&strategy, &topology, threads) {
            Err(Error::NoCpus(_)) => prop_assert_eq!(cpus, 0),
            Err(Error::TooManyInstances { .. }) => prop_assert!(instances as usize > cpus && topology.allowed_cpu_nodes().len() > 1),
            Err(error) => prop_assert!(false, "{}", error),
            Ok(cpu_slots) => {
                prop_assert_eq!(cpu_slots.len(), instances as usize);
                prop_assert!(cpu_slots.iter().all(|cpu_slot| !cpu_slot.cpus.is_empty() && cpu_slot.threads > 0));
                if instances as usize <= cpus {
                    check(&cpu_slots, &topology, threads.max(instances as usize));
                }
            }
        }
    }
}
