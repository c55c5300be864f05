//! This machine is really measured, with buffers so small that the numbers mean nothing.

use genuma_machine::topology::{Source, Sysfs};
use genuma_probe::measure::{Machine, measure};
use genuma_probe::native::Native;
use genuma_probe::plan::{Plan, Wish};
use genuma_probe::profile::{Kernel, MachineProfile, Theory};

#[test]
fn this_machine_gives_a_profile_that_loads() {
    let topology = Sysfs::new().topology().expect("a topology");
    let plan = Plan::new(&topology, &Wish::smoke()).expect("a plan");
    let machine = Machine { topology: topology.clone(), theory: Theory::default(), host: None, now: None };
    let mut native = Native::new(&topology);
    let profile = measure(machine, &plan, &mut native, &mut |_| {}).expect("a profile");
    for node in topology.memory_nodes().iter() {
        assert!(topology.cpu_nodes().iter().all(|cpus| profile.latency_between(cpus, node).is_some()));
    }
    let local = topology.memory_nodes().first().expect("memory");
    let kernels: Vec<Kernel> = profile.bandwidth.iter().map(|b| b.kernel).collect();
    assert!(Kernel::ALL.iter().all(|kernel| kernels.contains(kernel)), "{kernels:?}");
    assert!(
        profile.contention.iter().all(|curve| !curve.points.is_empty()) && !profile.contention.is_empty()
    );
    assert!(profile.buffers.iter().all(|buffer| buffer.as_asked != Some(false)), "{:?}", profile.buffers);
    assert!(profile.buffers.iter().any(|buffer| buffer.asked == format!("bind {local}")));
    let said: Vec<_> = profile.missing.iter().filter(|m| m.contains("rings are only")).collect();
    assert_eq!(said.len(), 1, "{:?}", profile.missing);
    let mut text = Vec::new();
    profile.write(&mut text).expect("memory takes it");
    let text = String::from_utf8(text).expect("UTF-8");
    let loaded = MachineProfile::parse(&text, "machine.json".as_ref()).expect("a profile");
    assert_eq!(loaded.bandwidth.len(), profile.bandwidth.len());
}
