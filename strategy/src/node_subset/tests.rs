use genuma_machine::Topology;
use genuma_machine::topology::{SyntheticMachine, TopologySource};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::replay::published_servers::published_server_model;

fn described(text: &str) -> Topology {
    text.parse::<SyntheticMachine>().and_then(|machine| machine.topology()).expect("a machine")
}

/// A machine whose nodes are near to each other if `is_near` says so.
fn machine_with_distances(nodes: u32, is_near: impl Fn(u32, u32) -> bool) -> MachineModel {
    let mut topology = described(&format!("{nodes} nodes x 2 cores, 8 GiB"));
    for node in &mut topology.nodes {
        let from = node.id;
        let distance = |to: u32| match (from == to, is_near(from, to)) {
            (true, _) => 10,
            (_, true) => 12,
            _ => 32,
        };
        node.distances = (0..nodes).map(|to| (to, distance(to))).collect();
    }
    MachineModel::from_topology(&topology).expect("nodes")
}

fn chosen(machine: &MachineModel, count: usize) -> String {
    choose_node_subset(machine, count).expect("a subset").nodes.to_string()
}

#[test]
fn a_whole_group_of_near_nodes_is_chosen() {
    let odd_and_even = machine_with_distances(8, |a, b| a % 2 == b % 2);
    assert_eq!(chosen(&odd_and_even, 4), "0,2,4,6");
    assert_eq!(chosen(&odd_and_even, 2), "0,2");
    let subset = choose_node_subset(&odd_and_even, 4).expect("a subset");
    assert!(subset.cost < subset.cost_of_first_nodes && subset.is_exhaustive, "{subset:?}");
    // Four accesses to the own memory at 100 ns and twelve at 120 ns.
    assert!((subset.mean_latency_ns - 115.0).abs() < 1e-9, "{subset:?}");
    let halves = machine_with_distances(8, |a, b| a / 4 == b / 4);
    assert_eq!((chosen(&halves, 4).as_str(), chosen(&halves, 2).as_str()), ("0-3", "0-1"));
}

#[test]
fn the_faster_of_two_groups_is_chosen() {
    let mut machine = machine_with_distances(8, |a, b| a % 2 == b % 2);
    for (from, row) in machine.bandwidth_gbs.iter_mut().enumerate() {
        for (to, gbs) in row.iter_mut().enumerate() {
            let is_odd = [from, to].map(|index| machine.nodes[index].id % 2 == 1);
            if is_odd == [true, true] && from != to {
                *gbs *= 1.5;
            }
        }
    }
    assert_eq!(chosen(&machine, 4), "1,3,5,7");
}

#[test]
fn nodes_of_a_symmetric_machine_are_the_first() {
    let machine = machine_with_distances(8, |_, _| true);
    for count in 1..=8 {
        let last = count - 1;
        let expected = if count == 1 { "0".to_owned() } else { format!("0-{last}") };
        assert_eq!(chosen(&machine, count), expected);
        let subset = choose_node_subset(&machine, count).expect("a subset");
        assert!((subset.cost - subset.cost_of_first_nodes).abs() < 1e-12, "{subset:?}");
    }
    // A difference that repeated measurements have, too, decides nothing.
    let mut noisy = machine;
    noisy.latency_ns[0][1] *= 1.02;
    assert_eq!(chosen(&noisy, 4), "0-3");
}

#[test]
fn two_nodes_of_a_published_server_share_a_socket() {
    let opteron = published_server_model("amd").expect("a server");
    assert_eq!(chosen(&opteron, 2), "0-1");
    assert_eq!(chosen(&published_server_model("intel").expect("a server"), 2), "0-1");
}

#[test]
fn more_nodes_than_there_are_is_an_error() {
    let machine = machine_with_distances(2, |_, _| true);
    let error = choose_node_subset(&machine, 3).unwrap_err().to_string();
    let expected = "3 nodes are requested, but this machine has 2 with CPUs and memory that may be used (0-1)";
    assert_eq!(error, expected);
    assert!(choose_node_subset(&machine, 0).is_err());
}

#[test]
fn groups_of_a_large_machine_are_found() {
    // 16 of 64 nodes: too many subsets to compare.
    let machine = machine_with_distances(64, |a, b| a % 4 == b % 4);
    let subset = choose_node_subset(&machine, 16).expect("a subset");
    assert!(!subset.is_exhaustive);
    assert_eq!(subset.nodes, (0..16).map(|n| 4 * n).collect());
    assert_eq!(chosen(&machine_with_distances(64, |_, _| true), 32), "0-31");
}

proptest! {
    #[test]
    fn the_search_finds_the_minimum(seed in vec(any::<u8>(), 42), count in 1usize..7) {
        let mut machine = machine_with_distances(7, |_, _| true);
        let mut values = seed.iter().map(|&byte| 100.0 + f64::from(byte));
        for from in 0..7 {
            for to in (0..7).filter(|to| *to != from) {
                machine.latency_ns[from][to] = values.next().expect("a value for each pair");
            }
        }
        let search = SubsetSearch::new(&machine, count);
        let found = search.find_exhaustively();
        let masks = (0u32..1 << 7).filter(|mask| mask.count_ones() as usize == count);
        let all: Vec<Vec<usize>> = masks.map(|mask| (0..7).filter(|n| mask >> n & 1 == 1).collect()).collect();
        prop_assert_eq!(all.len() as f64, num_subsets(7, count).round());
        let least = all.iter().map(|subset| search.cost(subset)).fold(f64::INFINITY, f64::min);
        prop_assert!(search.cost(&found) <= least * (1.0 + EQUAL_COST_SHARE));
        let swapped = search.find_by_swapping();
        prop_assert_eq!(swapped.len(), count);
        prop_assert!(search.cost(&swapped) >= least * (1.0 - 1e-12));
    }
}
