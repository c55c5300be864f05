use genuma_machine::topology::SyntheticMachine;
use genuma_probe::measure::{UnmeasuredMachineFacts, measure_profile};
use genuma_probe::plan::{MeasurementPlan, PlanOptions};
use genuma_probe::profile::{DeviceProfile, TheoreticalBandwidth};
use genuma_probe::simulated_machine::SimulatedMachine;
use genuma_strategy::advisor::TrialStopReason;
use genuma_strategy::aligner_model_params::find_aligner_model_params;
use genuma_strategy::command_presets;
use genuma_strategy::trial_race::RaceVerdict;

use super::*;

const THREADS: usize = 32;

fn topology() -> Topology {
    "4 nodes x 8 cores, 64 GiB".parse::<SyntheticMachine>().and_then(|machine| machine.topology()).expect("a machine")
}

/// A profile of the machine, with a device of this kind.
fn profile(device_kind: &str) -> MachineProfile {
    let plan = MeasurementPlan::new(&topology(), &PlanOptions::quick_plan()).expect("a plan");
    let facts = UnmeasuredMachineFacts {
        topology: topology(),
        theory: TheoreticalBandwidth::default(),
        host: None,
        unix_time_s: None,
    };
    let mut profile = measure_profile(facts, &plan, &mut SimulatedMachine::new_typical_server(topology()), &mut |_| {})
        .expect("a profile");
    profile.devices.push(DeviceProfile {
        name: "card".into(),
        kind: device_kind.into(),
        driver: "1".into(),
        memory_bytes: 1 << 30,
        numa_node: Some(0),
        copy_to_device_gbs: 12.0,
        copy_from_device_gbs: 12.0,
        atomic_updates_mops: 100.0,
    });
    profile
}

/// Placement of an advised strategy for a command line, on all nodes of the machine.
fn placement(command: &str, strategy: &str, profile: &MachineProfile) -> PlacementAdvice {
    let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
    let invocation = command_presets::parse_command(&words).expect("a command");
    let case = AdvisedRun {
        aligner: invocation.aligner.clone(),
        command: command.to_owned(),
        threads: THREADS,
        source: "as measured".to_owned(),
        machine: machine_model(&topology(), Some(profile)).expect("a complete profile").expect("nodes"),
        application: find_aligner_model_params("bwa mem").to_application_model(5_100_000_000, 22e6),
    };
    let strategy: Strategy = strategy.parse().expect("a strategy");
    let advice = Advice {
        strategy,
        verdict: RaceVerdict { strategy, gain: 1.5, low: 1.2, high: 1.8 },
        considered: Vec::new(),
        refused: Vec::new(),
        budget_s: 0.0,
        spent_s: 0.0,
        stopped: TrialStopReason::NoTrialsRequested,
    };
    describe_placement(&case, &advice, &invocation, &topology(), None, Some(profile), false).expect("a placement")
}

const BWA: &str = "bwa mem -t {threads} ref.fa r_1.fq r_2.fq";

#[test]
fn a_gpu_brings_a_warning_with_interleaving_only() {
    let ids = |strategy: &str, device_kind: &str| -> Vec<&'static str> {
        placement(BWA, strategy, &profile(device_kind)).known_cases.iter().map(|case| case.id).collect()
    };
    assert_eq!(ids("interleave", "gpu"), ["interleave_with_gpu", "interleave_all_threads"]);
    assert_eq!(ids("interleave", "cpu"), ["interleave_all_threads"]);
    assert_eq!(ids("4xbind", "gpu"), Vec::<&str>::new());
}

#[test]
fn one_instance_has_the_command_as_given() {
    let launch = placement(BWA, "interleave", &profile("cpu")).launch;
    let [one] = &launch.instances[..] else { panic!("{launch:?}") };
    let expected = "numactl --physcpubind=0-31 --interleave=0-3 -- bwa mem -t 32 ref.fa r_1.fq r_2.fq";
    assert_eq!(one.numactl, expected);
}

#[test]
fn instances_have_their_threads_and_parts_of_the_reads() {
    let placement = placement(BWA, "2xbind", &profile("cpu"));
    assert!(placement.has_read_parts);
    let lines: Vec<&str> = placement.launch.instances.iter().map(|one| one.numactl.as_str()).collect();
    for (n, line) in lines.iter().enumerate() {
        let (place, command) = line.split_once(" -- ").expect("a command");
        let expected = ["numactl --physcpubind=0-15 --membind=0-1", "numactl --physcpubind=16-31 --membind=2-3"];
        assert_eq!(place, expected[n]);
        let part = n + 1;
        assert!(command.starts_with("bwa mem ") && command.contains(" -t 16 "), "{command}");
        let files = format!("part{part}_1.fq part{part}_2.fq > part{part}.sam");
        assert!(command.ends_with(&files) && !command.contains("r_1.fq"), "{command}");
    }
    assert_eq!(lines.len(), 2);
}
