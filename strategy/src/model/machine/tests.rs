//! Machines from profiles, and who sits where.

use genuma_machine::topology::{SyntheticMachine, TopologySource};
use genuma_probe::measure::{UnmeasuredMachineFacts as Measuring, measure_profile};
use genuma_probe::plan::{MeasurementPlan, PlanOptions};
use genuma_probe::profile::TheoreticalBandwidth;
use genuma_probe::simulated_machine::SimulatedMachine;

use super::*;

fn profile(description: &str) -> MachineProfile {
    let topology = description.parse::<SyntheticMachine>().unwrap().topology().unwrap();
    let plan = MeasurementPlan::new(&topology, &PlanOptions::full_plan()).unwrap();
    let machine = Measuring {
        topology: topology.clone(),
        theory: TheoreticalBandwidth::default(),
        host: Some("model".into()),
        unix_time_s: None,
    };
    measure_profile(machine, &plan, &mut SimulatedMachine::new_typical_server(topology), &mut |_| {}).unwrap()
}

#[test]
fn a_profile_becomes_a_machine() {
    let machine = MachineModel::from_profile(&profile("2 nodes x 8 cores, 64 GiB")).unwrap();
    assert_eq!(machine.name, "model");
    let node = NodeModel { id: 0, cores: 8, threads: 8, memory_bytes: machine.nodes[0].memory_bytes };
    assert_eq!(machine.nodes, [node, NodeModel { id: 1, ..node }]);
    assert!(node.memory_bytes > 30 << 30 && node.memory_bytes <= 64 << 30, "{}", node.memory_bytes);
    // The model that the probe measures: 100 ns, a fifth more on base pages, 96 GB/s by 8 threads; 1.6 times as far to
    // the other node.
    assert!((machine.latency_ns[0][0] - 120.0).abs() < 1e-9);
    assert!((machine.latency_ns[1][0] - 192.0).abs() < 1e-9);
    assert!((machine.bandwidth_gbs[0][0] - 96.0).abs() < 1e-9);
    assert!((machine.bandwidth_gbs[0][1] - 60.0).abs() < 1e-9);
}

#[test]
fn a_pair_that_was_not_measured_is_named() {
    let mut profile = profile("2 nodes x 4 cores, 8 GiB");
    profile.bandwidth.retain(|b| b.memory != MemoryLocation::Node(1) || b.cpu_node != Some(0));
    let error = MachineModel::from_profile(&profile).unwrap_err();
    assert_eq!(error, IncompleteProfile::MissingNodePair { what: "bandwidth", from: 0, to: 1 });
    profile.latency.node_pairs.clear();
    let error = MachineModel::from_profile(&profile).unwrap_err().to_string();
    assert!(error.starts_with("no latency from node 0 to node"), "{error}");
}

#[test]
fn instances_take_whole_nodes_in_runs() {
    let machine = crate::replay::published_servers::published_server_model("intel").unwrap();
    assert_eq!(machine.nodes_by_instance(1), [vec![0, 1, 2, 3]]);
    assert_eq!(machine.nodes_by_instance(2), [vec![0, 1], vec![2, 3]]);
    assert_eq!(machine.nodes_by_instance(3), [vec![0], vec![1], vec![2, 3]]);
    assert_eq!(machine.nodes_by_instance(8), [0, 0, 1, 1, 2, 2, 3, 3].map(|node| vec![node]));
}

#[test]
fn second_threads_add_less() {
    let machine = crate::replay::published_servers::published_server_model("intel").unwrap();
    assert_eq!(machine.speed_per_thread(0, 1.0), 1.15);
    assert_eq!(machine.speed_per_thread(0, 8.0), 1.15);
    assert!((machine.speed_per_thread(0, 16.0) - 1.15 * 0.65).abs() < 1e-12);
    assert!((machine.speed_per_thread(0, 32.0) - 1.15 * 0.325).abs() < 1e-12);
}

#[test]
fn distances_stand_in_for_what_was_not_measured() {
    let topology = "4 nodes x 8 cores, 64 GiB".parse::<SyntheticMachine>().unwrap().topology().unwrap();
    let machine = MachineModel::from_topology(&topology).unwrap();
    assert_eq!(machine.nodes.len(), 4);
    let far = f64::from(topology.find_node(0).unwrap().distances[&1]) / 10.0;
    assert!(far > 1.0);
    assert_eq!((machine.latency_ns[0][0], machine.latency_ns[0][1]), (100.0, 100.0 * far));
    assert_eq!((machine.bandwidth_gbs[2][2], machine.bandwidth_gbs[2][3]), (20.0, 20.0 / (far * far)));
}

#[test]
fn guessed_bandwidth_is_within_a_factor_of_the_published_servers() {
    // Distances that the firmware of these servers reports, and link bandwidths of
    // docs/evidence/2026-11-21-advisor-replay.md.
    for (cores, local, remote) in
        [(4.0, 11.0, vec![(1.6, 5.7), (1.6, 3.5), (2.2, 2.1)]), (8.0, 16.7, vec![(2.1, 3.04), (3.0, 2.6)])]
    {
        let near = |guess: f64, told: f64| (guess / told).ln().abs() < 1.6f64.ln();
        assert!(near(DEFAULT_CORE_BANDWIDTH_GBS * cores, local));
        for (far, told) in remote {
            assert!(near(DEFAULT_CORE_BANDWIDTH_GBS * cores / (far * far), told), "{far}: {told}");
        }
    }
}
