use genuma_machine::topology::{
    CacheKind, CpuCache, NumaNode, SyntheticMachine, TopologySource, TransparentHugePageMode,
};

use super::*;

const GIB: u64 = 1 << 30;

/// A described machine with 32 KiB, 1 MiB and 32 MiB of caches (the last for each 8 CPUs) and huge pages.
fn machine(description: &str) -> Topology {
    let synthetic: SyntheticMachine = description.parse().expect("a description");
    let mut topology = synthetic.topology().expect("a topology");
    topology.transparent_huge_pages = Some(TransparentHugePageMode::Madvise);
    let cache = |level, kind, bytes, cpus: IdSet| CpuCache { level, kind, bytes, line_bytes: 64, cpus };
    for cpu in &topology.cpus {
        topology.caches.push(cache(1, CacheKind::Data, 32 << 10, cpu.siblings.clone()));
        topology.caches.push(cache(2, CacheKind::Unified, 1 << 20, cpu.siblings.clone()));
    }
    let all: Vec<u32> = topology.cpus.iter().map(|cpu| cpu.id).collect();
    for eight in all.chunks(8) {
        topology.caches.push(cache(3, CacheKind::Unified, 32 << 20, eight.iter().copied().collect()));
    }
    topology
}

fn plan(topology: &Topology, options: &PlanOptions) -> MeasurementPlan {
    MeasurementPlan::new(topology, options).expect("a plan")
}

fn streams(plan: &MeasurementPlan) -> impl Iterator<Item = &BandwidthJob> {
    plan.jobs.iter().filter_map(|job| if let MeasurementJob::Bandwidth(stream) = job { Some(stream) } else { None })
}

fn chases(plan: &MeasurementPlan) -> impl Iterator<Item = &LatencyJob> {
    plan.jobs.iter().filter_map(|job| if let MeasurementJob::Latency(chase) = job { Some(chase) } else { None })
}

#[test]
fn quick_takes_less_than_a_minute_on_two_cores() {
    let plan = plan(&machine("1 nodes x 2 cores, 24 GiB"), &PlanOptions::quick_plan());
    assert!(plan.expected_s() < 60.0, "{} s", plan.expected_s());
    let total: f64 = plan.jobs_with_expected_seconds().map(|(_, seconds)| seconds).sum();
    assert_eq!(total, plan.expected_s());
}

#[test]
fn full_takes_at_most_ten_minutes_on_many_nodes() {
    for description in
        ["2 nodes x 64 cores, 2 threads, 256 GiB", "8 nodes x 8 cores, 16 GiB", "8 nodes x 16 cores, 2 threads, 64 GiB"]
    {
        let full = plan(&machine(description), &PlanOptions::full_plan());
        assert!(full.expected_s() <= 600.0, "{description}: {} s", full.expected_s());
        let quick = plan(&machine(description), &PlanOptions::quick_plan());
        assert!(quick.expected_s() < full.expected_s(), "{description}");
    }
}

#[test]
fn a_plan_that_is_cut_says_so_and_keeps_every_pair() {
    let topology = machine("8 nodes x 16 cores, 2 threads, 64 GiB");
    let cut = plan(&topology, &PlanOptions::full_plan());
    assert!(cut.missing.iter().any(|m| m.contains("600 s")), "{:?}", cut.missing);
    for (cpu_node, memory_node) in (0..8).flat_map(|c| (0..8).map(move |m| (c, m))) {
        assert!(chases(&cut).any(|c| (c.cpu_node, c.memory_node, c.is_dram) == (cpu_node, memory_node, true)));
        let of_pair = |s: &&BandwidthJob| s.cpu_node == Some(cpu_node) && s.memory == MemoryLocation::Node(memory_node);
        for kernel in [BandwidthKernel::Triad, BandwidthKernel::Random] {
            assert!(streams(&cut).filter(of_pair).any(|s| s.kernel == kernel && s.cpus.len() == 16));
        }
    }
    let small = plan(&machine("1 nodes x 2 cores, 24 GiB"), &PlanOptions::full_plan());
    assert!(!small.missing.iter().any(|m| m.contains("600 s")), "{:?}", small.missing);
}

#[test]
fn thinner_plans_are_shorter() {
    let topology = machine("4 nodes x 16 cores, 64 GiB");
    let seconds = |thin| {
        MeasurementPlan::at_reduction_level(&topology, &PlanOptions::full_plan(), thin).expect("a plan").expected_s()
    };
    let all: Vec<f64> = (0..=MAX_REDUCTION_LEVEL).map(seconds).collect();
    assert!(all.windows(2).all(|pair| pair[1] < pair[0]), "{all:?}");
}

#[test]
fn one_thread_of_each_core_comes_first_and_near_cores_before_far_ones() {
    let topology = machine("2 nodes x 2 cores, 2 threads, 16 GiB");
    // Cores 0, 1 | 2, 3; their second threads 4, 5 | 6, 7.
    assert_eq!(sizes::usable_cpus_of_node(&topology, 1), [2, 3, 6, 7]);
    assert_eq!(sizes::usable_cpus_by_thread_rank_and_distance(&topology, 1), [2, 3, 0, 1, 6, 7, 4, 5]);
    assert_eq!(sizes::count_cores_of_cpus(&topology, &[2, 3, 6, 7]), 2);
    assert_eq!(sizes::cpu_nodes_by_distance(&topology, 1), [1, 0]);
}

#[test]
fn only_what_may_be_used_is_used() {
    let mut topology = machine("4 nodes x 4 cores, 16 GiB");
    topology.allowed.cpus = IdSet::from([5, 6, 13]);
    topology.allowed.nodes = IdSet::from([1, 2]);
    let plan = plan(&topology, &PlanOptions::full_plan());
    let cpus: IdSet = streams(&plan).flat_map(|s| s.cpus.iter().copied()).collect();
    assert_eq!(cpus, topology.allowed.cpus);
    assert!(chases(&plan).all(|c| [5, 13].contains(&c.cpu) && [1, 2].contains(&c.memory_node)));
    let spread =
        streams(&plan).find(|s| matches!(s.memory, MemoryLocation::Interleaved(_))).expect("an interleaved job");
    assert_eq!(spread.memory, MemoryLocation::Interleaved(IdSet::from([1, 2])));
    // CPUs of node 3 have no memory of their own that may be used.
    assert!(!streams(&plan).any(|s| s.memory == MemoryLocation::Local));
    topology.allowed.cpus = IdSet::new();
    assert!(matches!(MeasurementPlan::new(&topology, &PlanOptions::quick_plan()), Err(Error::NothingAllowed { .. })));
}

#[test]
fn a_node_without_cpus_is_measured_from_the_nearest() {
    let mut topology = machine("2 nodes x 4 cores, 16 GiB");
    let distances = [(0, 28), (1, 17), (7, 10)].into();
    let memory_only = NumaNode { id: 7, cpus: IdSet::new(), distances, ..topology.nodes[0].clone() };
    topology.nodes[0].distances.insert(7, 28);
    topology.nodes[1].distances.insert(7, 17);
    topology.nodes.push(memory_only);
    topology.allowed.nodes.insert(7);
    let plan = plan(&topology, &PlanOptions::quick_plan());
    let curve: Vec<u32> = chases(&plan).filter(|c| c.memory_node == 7 && !c.is_dram).map(|c| c.cpu_node).collect();
    assert!(curve.len() > 10 && curve.iter().all(|node| *node == 1), "{curve:?}");
    assert!(streams(&plan).any(|s| s.memory == MemoryLocation::Node(7) && s.cpu_node == Some(0)));
}

#[test]
fn rings_go_from_below_l1_to_four_times_the_last_cache() {
    let plan = plan(&machine("1 nodes x 8 cores, 16 GiB"), &PlanOptions::full_plan());
    for pages in [BufferPageKind::Huge, BufferPageKind::Base] {
        let bytes: Vec<u64> = chases(&plan).filter(|c| c.pages == pages).map(|c| c.chain_bytes).collect();
        assert!(bytes.is_sorted_by(|a, b| a < b));
        assert_eq!((bytes[0], bytes[4], bytes[bytes.len() - 1]), (8 << 10, 16 << 10, 128 << 20));
        assert_eq!(bytes.len(), 4 * 14 + 1);
    }
    assert!(streams(&plan).all(|s| s.arrays_bytes == 3 * (128 << 20)));
}

#[test]
fn buffers_take_at_most_half_of_what_is_free_and_say_when_they_are_small() {
    for (free, limit) in [(200 << 20, None), (16 * GIB, Some(200 << 20)), (20 << 20, None), (16 * GIB, None)] {
        let mut topology = machine("2 nodes x 4 cores, 16 GiB");
        topology.nodes[1].free_bytes = free;
        topology.allowed.memory_limit_bytes = limit;
        let plan = plan(&topology, &PlanOptions::full_plan());
        let ring = chases(&plan).filter(|c| c.memory_node == 1).map(|c| c.buffer_bytes).max().expect("a ring");
        let arrays = streams(&plan)
            .filter(|s| s.memory == MemoryLocation::Node(1))
            .map(|s| s.arrays_bytes)
            .max()
            .expect("arrays");
        let most = free.min(limit.unwrap_or(u64::MAX)) / 2;
        assert!(ring + arrays <= most, "{ring} + {arrays} of {most}");
        let small = plan.missing.iter().any(|m| m.starts_with("pointer chains are only"));
        assert_eq!(small, most < GIB, "{:?}", plan.missing);
    }
    let mut topology = machine("2 nodes x 4 cores, 16 GiB");
    topology.nodes[1].free_bytes = 1 << 20;
    assert_eq!(
        MeasurementPlan::new(&topology, &PlanOptions::full_plan()),
        Err(Error::NotEnoughMemory { node: 1, free: 1 << 20 })
    );
}

#[test]
fn what_is_not_there_is_missing_and_not_planned() {
    let mut topology = machine("1 nodes x 1 cores, 4 GiB");
    topology.transparent_huge_pages = Some(TransparentHugePageMode::Never);
    topology.caches.clear();
    let plan = plan(&topology, &PlanOptions::quick_plan());
    for word in ["huge pages are off", "no cache sizes are known", "one node has memory", "no node has a second core"] {
        assert!(plan.missing.iter().any(|m| m.contains(word)), "{word}: {:?}", plan.missing);
    }
    assert!(chases(&plan).all(|c| c.pages == BufferPageKind::Base));
    assert!(!plan.jobs.iter().any(|job| matches!(job, MeasurementJob::LoadedLatency(_))));
    assert!(streams(&plan).all(|s| s.memory == MemoryLocation::Node(0)));
}

#[test]
fn hardware_threads_of_the_chasing_core_do_not_inject() {
    let topology = machine("1 nodes x 4 cores, 2 threads, 16 GiB");
    let plan = plan(&topology, &PlanOptions::full_plan());
    let loaded =
        plan.jobs.iter().find_map(|job| if let MeasurementJob::LoadedLatency(l) = job { Some(l) } else { None });
    let loaded = loaded.expect("a loaded job");
    assert_eq!((loaded.latency_job.cpu, &loaded.injector_cpus[..]), (0, &[1, 2, 3][..]));
    assert_eq!((loaded.pauses[0], loaded.pauses[loaded.pauses.len() - 1]), (None, Some(0)));
    let descending = |pair: &[Option<u32>]| pair[0].is_none() || pair[0] > pair[1];
    assert!(loaded.pauses.windows(2).all(descending));
}

#[test]
fn numbers_of_threads_reach_from_one_to_all() {
    assert_eq!(sizes::list_thread_counts(8, 16, false), [1, 2, 4, 8, 16]);
    assert_eq!(sizes::list_thread_counts(12, 24, true), [1, 2, 3, 4, 6, 8, 12, 16, 24]);
    assert_eq!(sizes::list_thread_counts(1, 1, true), [1]);
    assert_eq!(sizes::list_thread_counts(2, 2, true), [1, 2]);
    assert_eq!(
        (sizes::list_one_and_all_thread_counts(1, 1), sizes::list_one_and_all_thread_counts(4, 8)),
        (vec![1], vec![1, 4, 8])
    );
}

#[test]
fn the_first_hardware_thread_is_the_lowest_that_may_be_used() {
    let mut topology = machine("1 nodes x 2 cores, 2 threads, 4 GiB");
    topology.allowed.cpus = IdSet::from([1, 2, 3]);
    // CPU 0 may not be used, so CPU 2 is the first of its core.
    assert_eq!(sizes::usable_cpus_of_node(&topology, 0), [1, 2, 3]);
}
