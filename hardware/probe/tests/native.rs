//! This machine is really measured, with buffers so small that the numbers mean nothing.

use genuma_machine::topology::{Sysfs, TopologySource};
use genuma_probe::local_machine::LocalMachine;
use genuma_probe::measure::{UnmeasuredMachineFacts, measure_profile};
use genuma_probe::plan::{MeasurementPlan, PlanOptions};
use genuma_probe::profile::{BandwidthKernel, MachineProfile, TheoreticalBandwidth};

#[test]
fn this_machine_gives_a_profile_that_loads() {
    let topology = Sysfs::new().topology().expect("a topology");
    let plan = MeasurementPlan::new(&topology, &PlanOptions::smoke_plan()).expect("a plan");
    let machine = UnmeasuredMachineFacts {
        topology: topology.clone(),
        theory: TheoreticalBandwidth::default(),
        host: None,
        unix_time_s: None,
    };
    let mut native = LocalMachine::new(&topology);
    let profile = measure_profile(machine, &plan, &mut native, &mut |_| {}).expect("a profile");
    for node in topology.allowed_memory_nodes().iter() {
        assert!(topology.allowed_cpu_nodes().iter().all(|cpus| profile.dram_latency_between(cpus, node).is_some()));
    }
    let local = topology.allowed_memory_nodes().smallest_id().expect("memory");
    let kernels: Vec<BandwidthKernel> = profile.bandwidth.iter().map(|b| b.kernel).collect();
    assert!(BandwidthKernel::ALL_KERNELS.iter().all(|kernel| kernels.contains(kernel)), "{kernels:?}");
    assert!(profile.contention.iter().all(|curve| !curve.points.is_empty()) && !profile.contention.is_empty());
    assert!(profile.buffers.iter().all(|buffer| buffer.is_as_requested != Some(false)), "{:?}", profile.buffers);
    assert!(profile.buffers.iter().any(|buffer| buffer.requested_policy == format!("bind {local}")));
    let said: Vec<_> = profile.missing.iter().filter(|m| m.contains("pointer chains are only")).collect();
    assert_eq!(said.len(), 1, "{:?}", profile.missing);
    let mut text = Vec::new();
    profile.write_json(&mut text).expect("memory takes it");
    let text = String::from_utf8(text).expect("UTF-8");
    let loaded = MachineProfile::parse_json(&text, "machine.json".as_ref()).expect("a profile");
    assert_eq!(loaded.bandwidth.len(), profile.bandwidth.len());
}
