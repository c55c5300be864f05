//! Seats on machines of several shapes.

use genuma_farm::{CpuSlot, assign_cpu_slots};
use genuma_machine::topology::{AllowedResources, Cpu};
use genuma_machine::{IdSet, Topology};

/// A machine of these CPUs: number, node, core, and the numbers of the core's hardware threads.
fn machine(cpus: &[(u32, u32, u32, &[u32])], allowed: &str) -> Topology {
    let cpu = |&(id, node, core, siblings): &(u32, u32, u32, &[u32])| Cpu {
        id,
        node,
        package: node,
        core,
        siblings: siblings.iter().copied().collect(),
    };
    Topology {
        origin: "a test".to_owned(),
        kernel: None,
        processor: None,
        page_bytes: 4096,
        transparent_huge_pages: None,
        cpus: cpus.iter().map(cpu).collect(),
        offline_cpus: IdSet::new(),
        caches: Vec::new(),
        nodes: Vec::new(),
        allowed: AllowedResources {
            cpus: allowed.parse().expect("a list"),
            nodes: IdSet::from([0, 1, 2]),
            memory_limit_bytes: None,
            cpu_time_limit_cpus: None,
        },
        interleave_weights: None,
        missing_notes: Vec::new(),
    }
}

/// Two nodes of two cores with two hardware threads each, numbered as Linux likes to: 0-3 first threads, 4-7 second.
fn smt() -> Vec<(u32, u32, u32, &'static [u32])> {
    vec![
        (0, 0, 0, &[0, 4]),
        (1, 0, 1, &[1, 5]),
        (2, 1, 0, &[2, 6]),
        (3, 1, 1, &[3, 7]),
        (4, 0, 0, &[0, 4]),
        (5, 0, 1, &[1, 5]),
        (6, 1, 0, &[2, 6]),
        (7, 1, 1, &[3, 7]),
    ]
}

fn cpus(cpu_slots: &[CpuSlot]) -> Vec<u32> {
    cpu_slots.iter().map(|cpu_slot| cpu_slot.cpu.expect("a CPU")).collect()
}

#[test]
fn nodes_in_turn_and_cores_before_their_second_threads() {
    let topology = machine(&smt(), "0-7");
    let all = assign_cpu_slots(&topology, 8);
    assert_eq!(cpus(&all), [0, 2, 1, 3, 4, 6, 5, 7]);
    assert_eq!(all.iter().map(|cpu_slot| cpu_slot.node.expect("a node")).collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(assign_cpu_slots(&topology, 3), all[..3]);
    assert!(assign_cpu_slots(&topology, 0).is_empty());
}

#[test]
fn more_threads_than_cpus_start_over() {
    assert_eq!(cpus(&assign_cpu_slots(&machine(&smt(), "0-7"), 19))[8..], [0, 2, 1, 3, 4, 6, 5, 7, 0, 2, 1]);
}

#[test]
fn only_cpus_that_may_be_used() {
    // Of core 0 the second thread alone: then it is the core's first.
    assert_eq!(cpus(&assign_cpu_slots(&machine(&smt(), "4,1-2,5"), 4)), [1, 2, 4, 5]);
}

#[test]
fn nodes_of_different_size_with_gaps_in_their_numbers() {
    let cpus_of: Vec<(u32, u32, u32, &[u32])> =
        vec![(0, 0, 0, &[0]), (1, 2, 1, &[1]), (2, 2, 2, &[2]), (5, 2, 5, &[5]), (9, 5, 9, &[9])];
    assert_eq!(cpus(&assign_cpu_slots(&machine(&cpus_of, "0-9"), 5)), [0, 1, 9, 2, 5]);
}

#[test]
fn no_cpu_at_all_is_any_cpu() {
    assert_eq!(assign_cpu_slots(&machine(&smt(), "60"), 2), [CpuSlot::default(); 2]);
}
