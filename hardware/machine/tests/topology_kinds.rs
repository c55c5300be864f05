//! Kinds of machines beyond those of `machines/`: recordings made here from a few facts of each kind, and what is
//! understood of them.

mod made_machine;

use genuma_machine::IdSet;

use made_machine::{CPU, Machine, NODE, assert_understood, flat, groups, set, split_threads};

/// Xeon Phi in the cluster mode SNC-4 with flat memory: each cluster has DRAM in a node with its CPUs, and MCDRAM in a
/// node without CPUs, whose numbers are in another order.
#[test]
fn clusters_with_near_memory() {
    let cores = split_threads(0, 15, 4, 16);
    let tiles: Vec<IdSet> = cores.chunks(2).map(|two| two.iter().flat_map(IdSet::iter).collect()).collect();
    let clusters: Vec<String> =
        cores.chunks(4).map(|four| four.iter().flat_map(IdSet::iter).collect::<IdSet>().to_string()).collect();
    let mut nodes: Vec<(u32, &str, u64)> =
        (0..).zip(&clusters).map(|(id, cpus)| (id, cpus.as_str(), 24 << 10)).collect();
    nodes.extend((4..8).map(|id| (id, "", 4 << 10)));
    let near = [7, 4, 5, 6];
    let distance = |from: u32, to: u32| match (from.min(to), from.max(to)) {
        (a, b) if a == b => 10,
        (_, b) if b < 4 => 21,
        (a, b) if a < 4 && near[a as usize] == b => 31,
        _ => 41,
    };
    let machine = Machine::new("0-63", "0-7")
        .nodes(&nodes, distance)
        .cores(0, 0, &cores)
        .caches(1, "Data", 32, &cores)
        .caches(2, "Unified", 1024, &tiles);
    assert_eq!(machine.topology("KNL").find_node(0).expect("node 0").distances[&7], 31);
    assert_understood(
        "KNL, SNC-4",
        machine,
        &[
            "64 CPUs in 1 packages, threads of cores: 16 × 4",
            "16 × L1d 32 KiB of 4 CPUs, 8 × L2 1024 KiB of 8 CPUs",
            "nodes 0: CPUs 0-3,16-19,32-35,48-51, 24576 MiB",
            "nodes 1: CPUs 4-7,20-23,36-39,52-55, 24576 MiB",
            "nodes 2: CPUs 8-11,24-27,40-43,56-59, 24576 MiB",
            "nodes 3: CPUs 12-15,28-31,44-47,60-63, 24576 MiB",
            "nodes 4-7: no CPUs, 4096 MiB",
            "distances 10 21 31 41",
            "may run on 0-63 of nodes 0-3, and use memory of nodes 0-7",
        ],
    );
    // All-to-all with MCDRAM as a cache, which the kernel does not show.
    let machine = Machine::new("0-63", "0").nodes(&[(0, "0-63", 96 << 10)], flat(0)).cores(0, 0, &cores);
    assert_understood(
        "KNL, all-to-all",
        machine.caches(2, "Unified", 1024, &tiles),
        &[
            "64 CPUs in 1 packages, threads of cores: 16 × 4",
            "8 × L2 1024 KiB of 8 CPUs",
            "nodes 0: CPUs 0-63, 98304 MiB",
        ],
    );
}

/// Cores of different kinds in one package.
#[test]
fn cores_of_different_kinds() {
    // Six cores of two threads, and eight of one thread that share caches by four.
    let (fast, slow) = (groups(0, 11, 2), groups(12, 19, 1));
    let hybrid = Machine::new("0-19", "0")
        .nodes(&[(0, "0-19", 32 << 10)], flat(0))
        .cores(0, 0, &fast)
        .cores(0, 24, &slow)
        .caches(1, "Data", 48, &fast)
        .caches(1, "Data", 32, &slow)
        .caches(2, "Unified", 1280, &fast)
        .caches(2, "Unified", 2048, &groups(12, 19, 4))
        .caches(3, "Unified", 25 << 10, &groups(0, 19, 20));
    assert_understood(
        "hybrid",
        hybrid,
        &[
            "20 CPUs in 1 packages, threads of cores: 6 × 2, 8 × 1",
            "6 × L1d 48 KiB of 2 CPUs, 8 × L1d 32 KiB of 1 CPUs, 6 × L2 1280 KiB of 2 CPUs, 2 × L2 2048 KiB of 4 CPUs, 1 × L3 25600 KiB of 20 CPUs",
            "nodes 0: CPUs 0-19, 32768 MiB",
        ],
    );
    // Four small and four large cores; the kernel knows no package, and no size of a cache.
    let phone = Machine::new("0-7", "0").nodes(&[(0, "0-7", 8 << 10)], flat(0)).cores(-1, 0, &groups(0, 7, 1));
    let phone = phone.caches(2, "Unified", 0, &groups(0, 7, 4));
    assert_understood(
        "big.LITTLE",
        phone,
        &[
            "8 CPUs in 1 packages, threads of cores: 8 × 1",
            "nodes 0: CPUs 0-7, 8192 MiB",
            "note: CPUs 0-7 have caches of unknown size: these caches are left out",
        ],
    );
    // Two clusters with caches of different sizes, each with five small and five large cores, in package 36.
    let all = groups(0, 19, 1);
    let mut two = Machine::new("0-19", "0").nodes(&[(0, "0-19", 120 << 10)], flat(0)).cores(36, 0, &all);
    for start in [0, 10] {
        two = two.caches(2, "Unified", 512, &groups(start, start + 4, 1)).caches(
            2,
            "Unified",
            2048,
            &groups(start + 5, start + 9, 1),
        );
    }
    let two = two.caches(3, "Unified", 8 << 10, &[set("0-9")]).caches(3, "Unified", 16 << 10, &[set("10-19")]);
    assert_understood(
        "two clusters",
        two,
        &[
            "20 CPUs in 1 packages, threads of cores: 20 × 1",
            "10 × L2 512 KiB of 1 CPUs, 10 × L2 2048 KiB of 1 CPUs, 1 × L3 8192 KiB of 10 CPUs, 1 × L3 16384 KiB of 10 CPUs",
            "nodes 0: CPUs 0-19, 122880 MiB",
        ],
    );
}

/// z Systems: the numbers of packages and cores begin again in each book.
#[test]
fn books() {
    let one = [set("0-2"), set("3-6"), set("7-9")];
    let mut machine = Machine::new("0-13", "0").nodes(&[(0, "0-13", 2005)], flat(0));
    for (package, cpus) in (1..).zip(&one) {
        for cpu in cpus.iter() {
            machine = machine.cores(package, package, &[IdSet::from([cpu])]);
        }
    }
    for cpu in 10..14 {
        machine = machine.cores(if cpu == 10 { 1 } else { 2 }, if cpu == 10 { 1 } else { 2 }, &[IdSet::from([cpu])]);
    }
    assert_understood(
        "books",
        machine,
        &["14 CPUs in 3 packages, threads of cores: 14 × 1", "nodes 0: CPUs 0-13, 2005 MiB"],
    );
}

/// POWER: eight threads per core, of which one is online; pages of 64 KiB; node numbers with holes.
#[test]
fn hardware_threads_with_holes() {
    let threads: Vec<IdSet> = groups(0, 159, 8);
    let online: Vec<IdSet> = threads.iter().map(|core| core.iter().take(1).collect()).collect();
    let list = |cores: &[IdSet]| cores.iter().flat_map(IdSet::iter).collect::<IdSet>().to_string();
    let all = list(&online);
    let (one, two) = (list(&online[..10]), list(&online[10..]));
    let machine = Machine::new(&all, "0,16")
        .file(&format!("{CPU}/present"), "0-159")
        .file("/proc/self/smaps", "KernelPageSize: 64 kB")
        .nodes(&[(0, &one, 128 << 10), (16, &two, 128 << 10)], flat(40))
        .cores(0, 0, &online[..10])
        .cores(16, 0, &online[10..])
        .caches(3, "Unified", 8192, &online);
    assert_eq!(machine.topology("POWER").page_bytes, 64 << 10);
    assert_understood(
        "POWER, SMT off",
        machine,
        &[
            "20 CPUs in 2 packages, threads of cores: 20 × 1",
            "20 × L3 8192 KiB of 1 CPUs",
            "nodes 0: CPUs 0,8,16,24,32,40,48,56,64,72, 131072 MiB",
            "nodes 16: CPUs 80,88,96,104,112,120,128,136,144,152, 131072 MiB",
            "distances 10 40",
            "offline: 1-7,9-15,17-23,25-31,33-39,41-47,49-55,57-63,65-71,73-79,81-87,89-95,97-103,105-111,113-119,121-127,129-135,137-143,145-151,153-159",
        ],
    );
    // Four of eight threads; the files list the threads that are offline, too.
    let half: IdSet = threads.iter().flat_map(|core| core.iter().take(4).collect::<Vec<_>>()).collect();
    let machine = Machine::new(&half.to_string(), "0").file(&format!("{CPU}/present"), "0-159");
    let machine = machine.nodes(&[(0, &half.to_string(), 1 << 10)], flat(0)).cores(0, 0, &threads);
    assert_understood(
        "POWER, SMT 4",
        machine,
        &[
            "80 CPUs in 1 packages, threads of cores: 20 × 4",
            "nodes 0: CPUs 0-3,8-11,16-19,24-27,32-35,40-43,48-51,56-59,64-67,72-75,80-83,88-91,96-99,104-107,112-115,120-123,128-131,136-139,144-147,152-155, 1024 MiB",
            "offline: 4-7,12-15,20-23,28-31,36-39,44-47,52-55,60-63,68-71,76-79,84-87,92-95,100-103,108-111,116-119,124-127,132-135,140-143,148-151,156-159",
        ],
    );
}

/// Packages of several nodes, nodes of several packages, and CPUs that are numbered in turns.
#[test]
fn nodes_and_packages() {
    // Two dies per package, with the same core numbers. The distances depend on the links that the dies have.
    let rows = [[10, 16, 16, 22], [16, 10, 22, 16], [16, 22, 10, 16], [22, 16, 16, 10]];
    let ids = [0, 1, 33, 45];
    let at = |id: u32| ids.iter().position(|other| *other == id).expect("a node");
    let mut dies = Machine::new("0-23", "0-1,33,45")
        .nodes(&[(0, "0-5", 8190), (1, "6-11", 16384), (33, "12-17", 8192), (45, "18-23", 16384)], |from, to| {
            rows[at(from)][at(to)]
        });
    for (package, start) in [(0, 0), (0, 6), (1, 12), (1, 18)] {
        dies = dies.cores(package, 0, &groups(start, start + 5, 1));
    }
    assert_understood(
        "two dies per package",
        dies.caches(3, "Unified", 5118, &groups(0, 23, 6)),
        &[
            "24 CPUs in 2 packages, threads of cores: 24 × 1",
            "4 × L3 5118 KiB of 6 CPUs",
            "nodes 0: CPUs 0-5, 8190 MiB",
            "nodes 1: CPUs 6-11, 16384 MiB",
            "nodes 33: CPUs 12-17, 8192 MiB",
            "nodes 45: CPUs 18-23, 16384 MiB",
            "distances 10 16 22",
        ],
    );
    // One node of two packages.
    let one = Machine::new("0-7", "0-1").nodes(&[(0, "0-3", 1 << 10), (1, "4-7", 1 << 10)], flat(20));
    let one = (0..4).fold(one, |machine, i| machine.cores(i, 0, &groups(2 * i as u32, 2 * i as u32 + 1, 1)));
    assert_understood(
        "two packages per node",
        one,
        &[
            "8 CPUs in 4 packages, threads of cores: 8 × 1",
            "nodes 0: CPUs 0-3, 1024 MiB",
            "nodes 1: CPUs 4-7, 1024 MiB",
            "distances 10 20",
        ],
    );
    // Firmware numbers the CPUs of two packages in turns.
    let turns = Machine::new("0-7", "0-1").nodes(&[(0, "1,3,5,7", 1 << 10), (1, "0,2,4,6", 1 << 10)], flat(21));
    let cores = |first: u32| [IdSet::from([first, first + 4]), IdSet::from([first + 2, first + 6])];
    let turns = turns.cores(1, 0, &cores(0)).cores(0, 0, &cores(1));
    assert_understood(
        "in turns",
        turns,
        &[
            "8 CPUs in 2 packages, threads of cores: 4 × 2",
            "nodes 0: CPUs 1,3,5,7, 1024 MiB",
            "nodes 1: CPUs 0,2,4,6, 1024 MiB",
            "distances 10 21",
        ],
    );
    // One node of eight groups of cores, each with its own last cache; second threads come after all first ones.
    let cores = split_threads(0, 31, 2, 32);
    let groups_of_four: Vec<IdSet> = cores.chunks(4).map(|four| four.iter().flat_map(IdSet::iter).collect()).collect();
    let zen = Machine::new("0-63", "0").nodes(&[(0, "0-63", 256 << 10)], flat(0)).cores(0, 0, &cores);
    assert_understood(
        "caches of four cores",
        zen.caches(3, "Unified", 16 << 10, &groups_of_four),
        &[
            "64 CPUs in 1 packages, threads of cores: 32 × 2",
            "8 × L3 16384 KiB of 8 CPUs",
            "nodes 0: CPUs 0-63, 262144 MiB",
        ],
    );
    // A virtual machine whose CPUs are packages.
    let guest = Machine::new("0-3", "0").nodes(&[(0, "0-3", 1 << 10)], flat(0));
    let guest = (0..4).fold(guest, |machine, i| machine.cores(i, 0, &[IdSet::from([i as u32])]));
    assert_understood(
        "a package per CPU",
        guest,
        &["4 CPUs in 4 packages, threads of cores: 4 × 1", "nodes 0: CPUs 0-3, 1024 MiB"],
    );
}

/// Many nodes, in a ring with distances that grow with the hops.
#[test]
fn many_nodes() {
    let cpus: Vec<String> = (0..256).map(|node| format!("{}-{}", 2 * node, 2 * node + 1)).collect();
    let nodes: Vec<(u32, &str, u64)> = (0..).zip(&cpus).map(|(id, cpus)| (id, cpus.as_str(), 4 << 10)).collect();
    let hops = |from: u32, to: u32| from.abs_diff(to).min(256 - from.abs_diff(to));
    let distance = |from, to| if from == to { 10 } else { 20 + 10 * hops(from, to).ilog2() };
    let machine = Machine::new("0-511", "0-255").nodes(&nodes, distance);
    let machine =
        (0..256).fold(machine, |machine, node| machine.cores(i64::from(node), 0, &groups(2 * node, 2 * node + 1, 1)));
    assert_understood(
        "256 nodes",
        machine,
        &[
            "512 CPUs in 256 packages, threads of cores: 512 × 1",
            "nodes 0-255: 2 CPUs each, 4096 MiB",
            "distances 10 20 30 40 50 60 70 80 90",
        ],
    );
}

/// Distances that differ by direction, as firmware reports for links of different widths, and a row of default values.
#[test]
fn distances_by_direction() {
    let nodes = [(0, "0-1", 1 << 10), (1, "2-3", 1 << 10), (2, "4-5", 1 << 10)];
    let distance = |from, to| match (from, to) {
        (a, b) if a == b => 10,
        (0, 1) => 20,
        (1, 0) => 30,
        (0, 2) | (2, 0) => 255,
        _ => 21,
    };
    let machine = Machine::new("0-5", "0-2").nodes(&nodes, distance);
    let machine = (0..3).fold(machine, |machine, i| machine.cores(i, 0, &groups(2 * i as u32, 2 * i as u32 + 1, 1)));
    let topology = machine.topology("by direction");
    let read = |from: u32, to: u32| topology.find_node(from).expect("a node").distances[&to];
    assert_eq!((read(0, 1), read(1, 0), read(0, 2)), (20, 30, 255));
    assert_understood(
        "by direction",
        machine,
        &[
            "6 CPUs in 3 packages, threads of cores: 6 × 1",
            "nodes 0: CPUs 0-1, 1024 MiB",
            "nodes 1: CPUs 2-3, 1024 MiB",
            "nodes 2: CPUs 4-5, 1024 MiB",
            "distances 10 20 21 30 255, not symmetric",
        ],
    );
}

/// Caches that only some CPUs have, and caches of level 4.
#[test]
fn caches_of_some_cpus() {
    let all = groups(0, 7, 1);
    let l4 = Machine::new("0-7", "0")
        .nodes(&[(0, "0-7", 16 << 10)], flat(0))
        .cores(0, 0, &groups(0, 7, 2))
        .caches(1, "Data", 32, &groups(0, 7, 2))
        .caches(1, "Instruction", 32, &groups(0, 7, 2))
        .caches(3, "Unified", 6 << 10, &[set("0-7")])
        .caches(4, "Unified", 128 << 10, &[set("0-7")]);
    assert_understood(
        "cache of level 4",
        l4,
        &[
            "8 CPUs in 1 packages, threads of cores: 4 × 2",
            "4 × L1d 32 KiB of 2 CPUs, 4 × L1i 32 KiB of 2 CPUs, 1 × L3 6144 KiB of 8 CPUs, 1 × L4 131072 KiB of 8 CPUs",
            "nodes 0: CPUs 0-7, 16384 MiB",
        ],
    );
    // Caches of two packages differ, and those of some CPUs are missing.
    let some = Machine::new("0-7", "0")
        .nodes(&[(0, "0-7", 16 << 10)], flat(0))
        .cores(0, 0, &all[..4])
        .cores(1, 0, &all[4..])
        .caches(1, "Data", 32, &[set("0"), set("3"), set("4"), set("6"), set("7")])
        .caches(2, "Unified", 4096, &[set("2-3"), set("4-5"), set("6-7")]);
    assert_understood(
        "caches of some CPUs",
        some,
        &[
            "8 CPUs in 2 packages, threads of cores: 8 × 1",
            "5 × L1d 32 KiB of 1 CPUs, 3 × L2 4096 KiB of 2 CPUs",
            "nodes 0: CPUs 0-7, 16384 MiB",
            "note: /sys/devices/system/cpu/cpu*/cache of CPUs 1 cannot be read: their caches are unknown",
        ],
    );
}

/// Threads of a core that contradict each other are taken as each CPU lists them.
#[test]
fn contradictory_threads() {
    let machine = Machine::new("0-3", "0").nodes(&[(0, "0-3", 1 << 10)], flat(0)).cores(0, 0, &groups(0, 3, 2));
    let machine = machine.file(&format!("{CPU}/cpu1/topology/core_cpus_list"), "1");
    assert_understood(
        "contradictory threads",
        machine,
        &["4 CPUs in 1 packages, threads of cores: 2 × 2, 1 × 1", "nodes 0: CPUs 0-3, 1024 MiB"],
    );
}

/// Memory of several kinds: a node whose CPUs have only fast memory, memory-only nodes near a node, memory that is not
/// online yet, and an initiator with neither CPUs nor memory.
#[test]
fn tiers_of_memory() {
    let nodes = [
        (0, "0-1", 2935),
        (1, "2-3", 979),
        (2, "4-5", 512),
        (3, "", 0),
        (4, "", 512),
        (6, "", 384),
        (8, "", 384),
        (9, "", 0),
    ];
    let access = |class: u32, node: u32, initiator: u32, mbs: u32, ns: u32| {
        let folder = format!("{NODE}/node{node}/access{class}/initiators");
        [
            (format!("{folder}/node{initiator}/"), String::new()),
            (format!("{folder}/read_bandwidth"), mbs.to_string()),
            (format!("{folder}/read_latency"), ns.to_string()),
        ]
    };
    let mut machine = Machine::new("0-5", "0-4,6,8-9").nodes(&nodes, flat(20));
    machine = (0..3).fold(machine, |machine, i| machine.cores(0, 2 * i, &groups(2 * i as u32, 2 * i as u32 + 1, 1)));
    let entries =
        [access(1, 1, 1, 1000, 26), access(1, 4, 1, 10000, 26), access(1, 6, 1, 100, 300), access(0, 6, 3, 200, 77)];
    for (path, text) in entries.into_iter().flatten() {
        machine = machine.file(&path, &text);
    }
    let topology = machine.topology("tiers");
    let read = |node: u32| {
        let access = &topology.find_node(node).expect("a node").access;
        access.iter().map(|one| (one.initiator_class, one.read_bandwidth_mbs, one.read_latency_ns)).collect::<Vec<_>>()
    };
    assert_eq!(read(4), [(1, Some(10000), Some(26))]);
    assert_eq!(read(6), [(0, Some(200), Some(77)), (1, Some(100), Some(300))]);
    assert_understood(
        "tiers",
        machine,
        &[
            "6 CPUs in 1 packages, threads of cores: 6 × 1",
            "nodes 0: CPUs 0-1, 2935 MiB",
            "nodes 1: CPUs 2-3, 979 MiB",
            "nodes 2: CPUs 4-5, 512 MiB",
            "nodes 3,9: no CPUs, 0 MiB",
            "nodes 4: no CPUs, 512 MiB",
            "nodes 6,8: no CPUs, 384 MiB",
            "distances 10 20",
            "may run on 0-5 of nodes 0-2, and use memory of nodes 0-2,4,6,8",
        ],
    );
}

/// The restrictions of a process can leave it CPUs of one node and memory of another.
#[test]
fn restrictions_of_a_process() {
    let machine = || {
        let machine = Machine::new("0-7", "0-3")
            .nodes(&[(0, "0-1", 1 << 10), (1, "2-3", 1 << 10), (2, "4-5", 1 << 10), (3, "6-7", 1 << 10)], flat(20));
        (0..4).fold(machine, |machine, i| machine.cores(i, 0, &groups(2 * i as u32, 2 * i as u32 + 1, 2)))
    };
    let common = [
        "8 CPUs in 4 packages, threads of cores: 4 × 2",
        "nodes 0: CPUs 0-1, 1024 MiB",
        "nodes 1: CPUs 2-3, 1024 MiB",
        "nodes 2: CPUs 4-5, 1024 MiB",
        "nodes 3: CPUs 6-7, 1024 MiB",
        "distances 10 20",
    ];
    for (name, cpus, nodes, restrictions) in [
        ("affinity", "2-3", "0-3", &["may run on 2-3 of nodes 1, and use memory of nodes 0-3"][..]),
        ("memory elsewhere", "0,2", "3", &["may run on 0,2 of nodes 0-1, and use memory of nodes 3"]),
        ("nodes with offline numbers", "0-511", "0-63", &[]),
    ] {
        assert_understood(name, machine().allowed(cpus, nodes), &[&common[..], restrictions].concat());
    }
}
