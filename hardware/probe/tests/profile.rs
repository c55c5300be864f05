//! Plan → model machine → profile → `machine.json` and back; and each way a `machine.json` can be damaged.

use std::path::Path;

use genuma_machine::topology::{CacheKind, CpuCache, SyntheticMachine, TopologySource, TransparentHugePageMode};
use genuma_machine::{IdSet, Topology};
use genuma_probe::measure::{
    MeasurementProgress, UnmeasuredMachineFacts, interleave_weights_from_bandwidths, measure_profile,
};
use genuma_probe::plan::{MeasurementPlan, PlanOptions};
use genuma_probe::profile::{BandwidthKernel, BufferPageKind, MachineProfile, MemoryLocation, TheoreticalBandwidth};
use genuma_probe::profile_io::Error;
use genuma_probe::simulated_machine::SimulatedMachine;
use serde_json::{Value, json};

fn topology(description: &str) -> Topology {
    let synthetic: SyntheticMachine = description.parse().expect("a description");
    let mut topology = synthetic.topology().expect("a topology");
    topology.transparent_huge_pages = Some(TransparentHugePageMode::Madvise);
    let all: IdSet = topology.cpus.iter().map(|cpu| cpu.id).collect();
    for (level, bytes) in [(1, 32 << 10), (2, 1 << 20), (3, 32 << 20)] {
        let cache = CpuCache { level, kind: CacheKind::Unified, bytes, line_bytes: 64, cpus: all.clone() };
        topology.caches.push(cache);
    }
    topology
}

fn machine(topology: &Topology) -> UnmeasuredMachineFacts {
    let theory =
        TheoreticalBandwidth { unknown_because: Some("it is made up".into()), ..TheoreticalBandwidth::default() };
    UnmeasuredMachineFacts {
        topology: topology.clone(),
        theory,
        host: Some("model".into()),
        unix_time_s: Some(1_800_000_000),
    }
}

fn profile(description: &str, options: &PlanOptions) -> MachineProfile {
    let topology = topology(description);
    let plan = MeasurementPlan::new(&topology, options).expect("a plan");
    measure_profile(machine(&topology), &plan, &mut SimulatedMachine::new_typical_server(topology), &mut |_| {})
        .expect("a profile")
}

#[test]
fn a_profile_tells_what_the_machine_is() {
    let profile = profile("2 nodes x 8 cores, 64 GiB", &PlanOptions::full_plan());
    // The model: 100 ns local, distance 16 of 10 to the other node of the pair.
    let latency = |c, m| profile.dram_latency_between(c, m).expect("a pair").median;
    assert_eq!((latency(0, 0), latency(1, 1)), (100.0, 100.0));
    assert!((latency(0, 1) - 160.0).abs() < 1e-9);
    // 8 threads of 12 GB/s on a node of 100 GB/s; the other node's come through slower.
    let triad = |c, m| profile.bandwidth_between(BandwidthKernel::Triad, c, m).expect("a pair");
    assert_eq!((triad(0, 0).total.median, triad(0, 0).threads), (96.0, 8));
    assert!((triad(0, 1).total.median - 60.0).abs() < 1e-9);
    let names: Vec<_> = profile.latency.memory_levels.iter().map(|l| (l.name.as_str(), l.latency.median)).collect();
    assert_eq!(names, [("L1", 1.5), ("L2", 5.0), ("L3", 20.0), ("DRAM", 100.0)]);
    assert_eq!(profile.host.as_deref(), Some("model"));
    assert!(profile.missing.iter().any(|m| m == "theoretical bandwidth is unknown: it is made up"));
}

#[test]
fn contention_and_loaded_latency_are_curves() {
    let profile = profile("2 nodes x 8 cores, 64 GiB", &PlanOptions::full_plan());
    for memory in [MemoryLocation::Node(0), MemoryLocation::Node(1), MemoryLocation::Interleaved(IdSet::from([0, 1]))] {
        for kernel in [BandwidthKernel::Read, BandwidthKernel::Random, BandwidthKernel::Strided] {
            let of = |c: &&_| -> bool {
                let c: &genuma_probe::profile::ContentionCurve = c;
                c.kernel == kernel && c.memory == memory
            };
            let curve = profile.contention.iter().find(of).expect("a curve");
            let threads: Vec<u32> = curve.points.iter().map(|p| p.threads).collect();
            assert_eq!(threads, [1, 2, 3, 4, 6, 8, 12, 16]);
            let last = curve.points.last().expect("points");
            assert!((last.per_thread.median * 16.0 - last.total.median).abs() < 1e-9);
        }
    }
    let total = |memory: &MemoryLocation| {
        let curve = profile.contention.iter().find(|c| c.kernel == BandwidthKernel::Read && c.memory == *memory);
        curve.expect("a curve").points.last().expect("points").total.median
    };
    // One node's memory is busy with 16 threads; spread memory is not.
    assert!(total(&MemoryLocation::Interleaved(IdSet::from([0, 1]))) > 1.4 * total(&MemoryLocation::Node(0)));
    let loaded = profile.loaded.iter().find(|l| (l.cpu_node, l.memory_node) == (0, 0)).expect("a curve");
    let first = loaded.points.first().expect("points");
    assert_eq!((first.injected, first.latency.median), (None, 100.0));
    assert!(loaded.points.windows(2).all(|pair| pair[0].latency.median <= pair[1].latency.median));
}

#[test]
fn weights_follow_the_measured_bandwidth() {
    let rates = |rates: &[f64]| {
        interleave_weights_from_bandwidths(&(0..).zip(rates.iter().copied()).collect())
            .into_values()
            .collect::<Vec<_>>()
    };
    assert_eq!(rates(&[100.0, 100.0]), [1, 1]);
    assert_eq!(rates(&[200.0, 50.0]), [4, 1]);
    assert_eq!(rates(&[300.0, 100.0, 0.0]), [8, 3, 1]);
    assert_eq!(rates(&[0.0, 0.0]), [1, 1]);
    // Node 1 is reached at 60 GB/s at most once its own CPUs may not be used.
    let mut topology = topology("2 nodes x 8 cores, 64 GiB");
    topology.allowed.cpus = (0..8).collect();
    let plan = MeasurementPlan::new(&topology, &PlanOptions::quick_plan()).expect("a plan");
    let profile =
        measure_profile(machine(&topology), &plan, &mut SimulatedMachine::new_typical_server(topology), &mut |_| {})
            .expect("a profile");
    let weighted = profile.bandwidth.iter().find_map(|b| match &b.memory {
        MemoryLocation::Weighted(weights) => Some(weights.clone()),
        _ => None,
    });
    assert_eq!(weighted, Some([(0, 8), (1, 5)].into()));
}

#[test]
fn progress_goes_from_nothing_to_all() {
    let topology = topology("2 nodes x 2 cores, 16 GiB");
    let plan = MeasurementPlan::new(&topology, &PlanOptions::quick_plan()).expect("a plan");
    let mut seen: Vec<MeasurementProgress> = Vec::new();
    let mut model = SimulatedMachine::new_typical_server(topology.clone());
    let profile = measure_profile(machine(&topology), &plan, &mut model, &mut |p| seen.push(p.clone()));
    assert_eq!((seen.len(), seen[0].done_s), (plan.jobs.len() + 1, 0.0));
    assert!(seen.windows(2).all(|pair| pair[0].done_s <= pair[1].done_s));
    let last = seen.last().expect("progress");
    assert_eq!((last.done_s, last.total_s), (plan.expected_s(), plan.expected_s()));
    // The model's clock: a quarter of a second a job.
    assert_eq!(profile.expect("a profile").effort.took_s, plan.jobs.len() as f64 * 0.25);
}

#[test]
fn a_slow_machine_is_measured_with_fewer_repetitions() {
    let topology = topology("1 nodes x 2 cores, 64 GiB");
    let plan = MeasurementPlan::new(&topology, &PlanOptions::quick_plan()).expect("a plan");
    let repetitions = |job_s: f64| {
        let mut model = SimulatedMachine::new_typical_server(topology.clone());
        model.seconds_per_job = job_s;
        let profile = measure_profile(machine(&topology), &plan, &mut model, &mut |_| {}).expect("a profile");
        let said = profile.missing.iter().filter(|m| m.starts_with("measuring was slower")).count();
        let first = profile.latency.curves[0].points[0].latency.repetitions;
        let last = profile.contention.last().expect("a curve").points.last().expect("a point");
        (first, last.total.repetitions, said)
    };
    assert_eq!(repetitions(0.01), (9, 9, 0));
    assert_eq!(repetitions(5.0), (9, 3, 1));
}

#[test]
fn huge_pages_are_preferred_where_both_were_measured() {
    let profile = profile("1 nodes x 4 cores, 64 GiB", &PlanOptions::quick_plan());
    let kinds: Vec<_> = profile.latency.node_pairs.iter().map(|p| (p.pages, p.latency.median)).collect();
    assert_eq!(kinds, [(BufferPageKind::Huge, 100.0), (BufferPageKind::Base, 120.0)]);
    assert_eq!(profile.dram_latency_between(0, 0).expect("a pair").median, 100.0);
    assert_eq!(profile.dram_latency_between(0, 1), None);
}

#[test]
fn a_profile_is_read_as_it_was_written() {
    let profile = profile("4 nodes x 4 cores, 2 threads, 64 GiB", &PlanOptions::quick_plan());
    let mut text = Vec::new();
    profile.write_json(&mut text).expect("memory takes it");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machine.json");
    std::fs::write(&path, &text).expect("a file");
    assert!(MachineProfile::read_file(&path).expect("a profile") == profile);
    assert!(text.ends_with(b"}\n"));
}

/// A good profile's JSON, damaged, and the error it gives.
#[track_caller]
fn refused(damage: impl FnOnce(&mut Value)) -> String {
    let mut json =
        serde_json::to_value(profile("2 nodes x 2 cores, 16 GiB", &PlanOptions::quick_plan())).expect("JSON");
    damage(&mut json);
    match MachineProfile::parse_json(&json.to_string(), Path::new("m.json")) {
        Err(error @ Error::InvalidField { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_damaged_field_is_named() {
    let said = |field: &str, damage: &dyn Fn(&mut Value)| {
        let error = refused(damage);
        assert!(error.starts_with(&format!("m.json: field '{field}': ")), "{field}: {error}");
        assert!(error.ends_with("measure again with 'genuma machine measure'"), "{error}");
    };
    said("format", &|j| j["format"] = json!("genuma-index"));
    said("format", &|j| drop(j.as_object_mut().expect("an object").remove("format")));
    said("version", &|j| j["version"] = json!(2));
    said("version", &|j| j["version"] = json!("1"));
    said("topology", &|j| drop(j.as_object_mut().expect("an object").remove("topology")));
    said("topology.nodes", &|j| j["topology"]["nodes"] = json!([]));
    said("topology.nodes[1].memory", &|j| j["topology"]["nodes"][1]["memory"] = json!(-1));
    said("topology.cpus", &|j| j["topology"]["cpus"][1]["id"] = json!(0));
    said("effort.took_s", &|j| j["effort"]["took_s"] = json!(-1.0));
    said("latency.pairs[0].latency.median", &|j| j["latency"]["pairs"][0]["latency"]["median"] = json!(null));
    said("latency.pairs[0].latency.median", &|j| j["latency"]["pairs"][0]["latency"]["median"] = json!(1e9));
    said("latency.pairs[1].latency.min", &|j| j["latency"]["pairs"][1]["latency"]["min"] = json!(0));
    said("latency.pairs[0].latency.unit", &|j| j["latency"]["pairs"][0]["latency"]["unit"] = json!("GB/s"));
    said("latency.pairs[0].latency.unit", &|j| j["latency"]["pairs"][0]["latency"]["unit"] = json!("cycles"));
    said("latency.pairs[0].memory_node", &|j| j["latency"]["pairs"][0]["memory_node"] = json!(9));
    said("latency.pairs[0].pages", &|j| j["latency"]["pairs"][0]["pages"] = json!("giant"));
    said("latency.curves[0].points[3].bytes", &|j| {
        j["latency"]["curves"][0]["points"][3]["bytes"] = json!(64);
    });
    said("latency.levels[0].latency.mad", &|j| j["latency"]["levels"][0]["latency"]["mad"] = json!(-0.5));
    said("bandwidth[2].kernel", &|j| j["bandwidth"][2]["kernel"] = json!("quadrad"));
    said("bandwidth[2].total.repetitions", &|j| j["bandwidth"][2]["total"]["repetitions"] = json!(0));
    said("bandwidth[2].threads", &|j| j["bandwidth"][2]["threads"] = json!(64));
    said("bandwidth[2].cpus", &|j| j["bandwidth"][2]["cpus"] = json!("77"));
    said("bandwidth[2].cpus", &|j| j["bandwidth"][2]["cpus"] = json!("0-x"));
    said("bandwidth[2].cpu_node", &|j| j["bandwidth"][2]["cpu_node"] = json!(5));
    said("bandwidth[2].memory", &|j| j["bandwidth"][2]["memory"] = json!({"node": 5}));
    said("bandwidth[2].memory", &|j| j["bandwidth"][2]["memory"] = json!({"weighted": {"0": 0}}));
    said("bandwidth[2].memory", &|j| j["bandwidth"][2]["memory"] = json!({"interleaved": ""}));
    said("loaded[0].points[1].injected.max", &|j| j["loaded"][0]["points"][1]["injected"]["max"] = json!(-3));
    said("loaded[0].injectors", &|j| j["loaded"][0]["injectors"] = json!("99"));
    said("contention[0].points[1].threads", &|j| j["contention"][0]["points"][1]["threads"] = json!(1));
    said("contention[0].points[0].per_thread.median", &|j| {
        j["contention"][0]["points"][0]["per_thread"]["median"] = json!("fast");
    });
    said("theory.peak_gbs", &|j| j["theory"]["peak_gbs"] = json!(0));
    said("buffers[0].found", &|j| j["buffers"][0]["found"] = json!({"6": 4096}));
}

#[test]
fn what_is_no_json_or_no_file_is_told() {
    let parse = |text: &str| MachineProfile::parse_json(text, Path::new("m.json")).expect_err("no profile").to_string();
    assert!(parse("").starts_with("m.json: is not JSON: "));
    let mut whole = Vec::new();
    profile("1 nodes x 2 cores, 16 GiB", &PlanOptions::quick_plan()).write_json(&mut whole).expect("memory takes it");
    let whole = String::from_utf8(whole).expect("UTF-8");
    assert!(parse(&whole[..whole.len() / 2]).starts_with("m.json: is not JSON: "), "a cut file");
    assert!(parse(&format!("{whole}x")).contains("not JSON"));
    assert!(parse("[1, 2]").contains("m.json"));
    let missing = MachineProfile::read_file("/nonexistent/machine.json").expect_err("no file").to_string();
    assert!(missing.starts_with("/nonexistent/machine.json: cannot be read"), "{missing}");
}
