//! In guests of several nodes, every page and every thread is where it was asked to be: the kernel is asked by move_pages, and
//! /proc/self/numa_maps has to say the same.

mod guest;
mod placement_checks;

use guest::Guest;
use placement_checks::{CPUSET, Check, EVERYWHERE, FORBIDDEN, ODD, POOL, UNASKED};

/// Runs this program's checks in the guest and compares what they print with what they should.
fn all_pass(test: &str, guest: &Guest, inside: &str, tables: &[&[Check]]) {
    let program = std::env::current_exe().expect("this program");
    let name = program.file_name().expect("its name").to_string_lossy();
    let command = format!("GENUMA_GUEST=1 ./{name} --ignored --exact {inside} --nocapture");
    let Some(outcome) = guest.run(test, &[&program], &command) else { return };
    let said: Vec<&str> =
        outcome.output.lines().filter(|line| line.starts_with("ok ") || line.starts_with("FAILED ")).collect();
    let expected: Vec<String> =
        tables.iter().flat_map(|table| table.iter()).map(|check| format!("ok {}", check.0)).collect();
    assert!(expected.len() > 5, "the tables of checks are empty");
    assert_eq!(said, expected, "{}", outcome.output);
    assert_eq!(outcome.status, 0, "{}", outcome.output);
}

#[test]
fn four_nodes() {
    let more = &[("NUMAVM_SMT", "2"), ("NUMAVM_APPEND", "hugepages=0:16,1:16,2:16,3:16")];
    let guest = Guest { nodes: 4, cpus: 2, memory: 256, more };
    all_pass("four_nodes", &guest, "inside_even", &[EVERYWHERE, POOL, CPUSET, UNASKED, FORBIDDEN]);
}

#[test]
fn eight_nodes() {
    let more = &[("NUMAVM_APPEND", "hugepages=0:8,1:8,2:8,3:8,4:8,5:8,6:8,7:8")];
    let guest = Guest { nodes: 8, cpus: 1, memory: 256, more };
    all_pass("eight_nodes", &guest, "inside_even", &[EVERYWHERE, POOL, CPUSET, UNASKED, FORBIDDEN]);
}

#[test]
fn a_node_without_memory_and_a_node_without_cpus() {
    let more = &[("NUMAVM_MEMLESS", "1"), ("NUMAVM_MEMONLY", "1")];
    let guest = Guest { nodes: 2, cpus: 1, memory: 256, more };
    all_pass("a_node_without_memory_and_a_node_without_cpus", &guest, "inside_odd", &[EVERYWHERE, ODD]);
}

#[test]
#[ignore = "runs in the guests that the other tests start"]
fn inside_even() {
    if placement_checks::in_a_guest() {
        placement_checks::run(EVERYWHERE);
        placement_checks::run(POOL);
        placement_checks::run_as("inside_cpuset");
        placement_checks::run_as("inside_unasked");
        placement_checks::run_as("inside_forbidden");
    }
}

#[test]
#[ignore = "runs in the guests that the other tests start"]
fn inside_odd() {
    if placement_checks::in_a_guest() {
        placement_checks::run(EVERYWHERE);
        placement_checks::run(ODD);
    }
}

#[test]
#[ignore = "runs in the guests that the other tests start"]
fn inside_cpuset() {
    if placement_checks::in_a_guest() {
        placement_checks::enter_cpuset();
        placement_checks::run(CPUSET);
    }
}

#[test]
#[ignore = "runs in the guests that the other tests start"]
fn inside_unasked() {
    if placement_checks::in_a_guest() {
        placement_checks::forbid_asking();
        placement_checks::run(UNASKED);
    }
}

#[test]
#[ignore = "runs in the guests that the other tests start"]
fn inside_forbidden() {
    if placement_checks::in_a_guest() {
        placement_checks::forbid();
        placement_checks::run(FORBIDDEN);
    }
}
