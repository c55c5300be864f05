//! Artificial machines for tests. Their numbers of nodes, cores and caches are like those of real machines; their
//! measurements are computed by a simple model.

use std::collections::BTreeMap;

use genuma_machine::IdSet;
use genuma_machine::topology::{
    AllowedResources, CacheKind, Cpu, CpuCache, NumaNode, RecordedMachine, SyntheticMachine, Topology, TopologySource,
    TransparentHugePageMode,
};
use genuma_probe::MachineProfile;
use genuma_probe::measure::{UnmeasuredMachineFacts, measure_profile};
use genuma_probe::plan::{MeasurementPlan, PlanOptions};
use genuma_probe::profile::{
    BandwidthKernel, BandwidthMeasurement, BufferPageKind, BufferPlacementCheck, ContentionCurve, ContentionPoint,
    LatencyCurve, LatencyMeasurements, LatencyPoint, LoadedLatencyCurve, LoadedLatencyPoint, Measurement,
    MeasurementRunInfo, MeasurementUnit, MemoryLevel, MemoryLocation, MemoryModule, NodePairLatency,
    PROFILE_FORMAT_NAME, PROFILE_FORMAT_VERSION, TheoreticalBandwidth,
};
use genuma_probe::simulated_machine::SimulatedMachine;

/// Describes an artificial machine, from which tests compute a profile.
#[derive(Debug, Clone, Copy)]
pub struct ArtificialMachine {
    pub host: &'static str,
    pub sockets: u32,
    /// Number of nodes of each socket.
    pub nodes: u32,
    /// Number of cores of each node.
    pub cores: u32,
    /// Number of cores that share a last-level cache.
    pub cores_per_cache: u32,
    /// Number of hardware threads of each core.
    pub threads: u32,
    /// Number of additional nodes that have memory but no cores.
    pub memory_only: u32,
    /// Memory of each node in GiB.
    pub memory_gib: u64,
    /// Latency of a node's own memory in ns.
    pub local_latency_ns: f64,
    /// Size of each last-level cache in bytes.
    pub last_level_cache_bytes: u64,
    /// Maximum bandwidth of one core, and of the memory of one node, in GB/s.
    pub core_and_node_bandwidth_gbs: (f64, f64),
}

/// A virtual machine or a laptop with one node.
pub const ONE_NODE_MACHINE: ArtificialMachine = ArtificialMachine {
    host: "bench-2",
    sockets: 1,
    nodes: 1,
    cores: 2,
    cores_per_cache: 2,
    threads: 1,
    memory_only: 0,
    memory_gib: 24,
    local_latency_ns: 104.0,
    last_level_cache_bytes: 32 << 20,
    core_and_node_bandwidth_gbs: (21.0, 34.0),
};

/// A typical server with two sockets.
pub const TWO_SOCKET_MACHINE: ArtificialMachine = ArtificialMachine {
    host: "node17.cluster",
    sockets: 2,
    nodes: 1,
    cores: 16,
    cores_per_cache: 16,
    threads: 2,
    memory_only: 0,
    memory_gib: 192,
    local_latency_ns: 88.0,
    last_level_cache_bytes: 24 << 20,
    core_and_node_bandwidth_gbs: (13.0, 118.0),
};

/// A server with two sockets of two nodes each.
pub const FOUR_NODE_MACHINE: ArtificialMachine = ArtificialMachine {
    host: "quarter",
    sockets: 2,
    nodes: 2,
    cores: 8,
    cores_per_cache: 8,
    threads: 1,
    memory_gib: 64,
    ..TWO_SOCKET_MACHINE
};

/// An older server with eight sockets.
pub const EIGHT_SOCKET_MACHINE: ArtificialMachine = ArtificialMachine {
    host: "bigmem",
    sockets: 8,
    nodes: 1,
    cores: 8,
    cores_per_cache: 8,
    threads: 1,
    memory_only: 0,
    memory_gib: 128,
    local_latency_ns: 118.0,
    last_level_cache_bytes: 20 << 20,
    core_and_node_bandwidth_gbs: (9.0, 41.0),
};

/// Four nodes with cores, and two nodes with CXL memory only.
pub const CXL_MACHINE: ArtificialMachine = ArtificialMachine { host: "cxl-lab", memory_only: 2, ..FOUR_NODE_MACHINE };

/// A server with 256 cores.
pub const LARGE_SERVER: ArtificialMachine = ArtificialMachine {
    host: "turin",
    sockets: 2,
    nodes: 1,
    cores: 128,
    cores_per_cache: 8,
    threads: 2,
    memory_only: 0,
    memory_gib: 1152,
    local_latency_ns: 112.0,
    last_level_cache_bytes: 32 << 20,
    core_and_node_bandwidth_gbs: (38.0, 470.0),
};

/// All artificial machines above.
pub const ALL_ARTIFICIAL_MACHINES: [ArtificialMachine; 6] =
    [ONE_NODE_MACHINE, TWO_SOCKET_MACHINE, FOUR_NODE_MACHINE, EIGHT_SOCKET_MACHINE, CXL_MACHINE, LARGE_SERVER];

/// Returns a pseudo-random relative deviation of at most ±2%, the same for equal seeds.
fn random_deviation(seed: u64) -> f64 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 40) as f64 / (1u64 << 24) as f64 - 0.5) * 0.04
}

fn measured(unit: MeasurementUnit, value: f64, seed: u64) -> Measurement {
    let median = value * (1.0 + random_deviation(seed));
    let mad = median * (0.004 + random_deviation(seed + 7).abs() * 0.3);
    Measurement {
        unit,
        median,
        min: median - 2.0 * mad,
        max: median + 3.1 * mad,
        median_absolute_deviation: mad,
        repetitions: 9,
    }
}

fn ns(value: f64, seed: u64) -> Measurement {
    measured(MeasurementUnit::Nanoseconds, value, seed)
}

fn gbs(value: f64, seed: u64) -> Measurement {
    measured(MeasurementUnit::GigabytesPerSecond, value, seed)
}

impl ArtificialMachine {
    fn cpu_nodes(&self) -> u32 {
        self.sockets * self.nodes
    }

    fn all_nodes(&self) -> u32 {
        self.cpu_nodes() + self.memory_only
    }

    fn cores_in_all(&self) -> u32 {
        self.cpu_nodes() * self.cores
    }

    fn distance(&self, from: u32, to: u32) -> u32 {
        let socket = |node: u32| node / self.nodes;
        if from == to {
            10
        } else if from >= self.cpu_nodes() || to >= self.cpu_nodes() {
            24
        } else if socket(from) == socket(to) {
            12
        } else if self.sockets > 2 && (socket(from) ^ socket(to)).count_ones() > 1 {
            28
        } else {
            20
        }
    }

    fn latency(&self, from: u32, to: u32) -> f64 {
        self.local_latency_ns * (1.0 + f64::from(self.distance(from, to) - 10) * 0.07)
    }

    /// Returns the bandwidth in GB/s of `threads` threads on different cores that use the memory of node `memory`, at a
    /// NUMA distance of `distance`.
    fn rate(&self, threads: u32, memory: u32, distance: u32) -> f64 {
        let roof = if memory >= self.cpu_nodes() {
            self.core_and_node_bandwidth_gbs.1 * 0.2
        } else {
            self.core_and_node_bandwidth_gbs.1
        };
        let roof = roof * (10.0 / f64::from(distance)).sqrt();
        roof * (1.0 - (-f64::from(threads) * self.core_and_node_bandwidth_gbs.0 / roof).exp())
    }

    fn topology(&self) -> Topology {
        let total = self.cores_in_all();
        let siblings = |core: u32| -> IdSet { (0..self.threads).map(|t| core + t * total).collect() };
        let cpus: Vec<Cpu> = (0..total * self.threads)
            .map(|id| {
                let core = id % total;
                let node = core / self.cores;
                Cpu { id, node, package: node / self.nodes, core, siblings: siblings(core) }
            })
            .collect();
        let of_cores = |cores: std::ops::Range<u32>| -> IdSet {
            cores.flat_map(|c| (0..self.threads).map(move |t| c + t * total)).collect()
        };
        let mut caches = Vec::new();
        for (level, kind, bytes, cores_per_cache) in [
            (1, CacheKind::Data, 32 << 10, 1),
            (1, CacheKind::Instruction, 32 << 10, 1),
            (2, CacheKind::Unified, 1 << 20, 1),
            (3, CacheKind::Unified, self.last_level_cache_bytes, self.cores_per_cache),
        ] {
            for first in (0..total).step_by(cores_per_cache as usize) {
                let cpus = of_cores(first..first + cores_per_cache);
                caches.push(CpuCache { level, kind, bytes, line_bytes: 64, cpus });
            }
        }
        let nodes: Vec<NumaNode> = (0..self.all_nodes())
            .map(|id| NumaNode {
                id,
                cpus: if id < self.cpu_nodes() {
                    of_cores(id * self.cores..(id + 1) * self.cores)
                } else {
                    IdSet::new()
                },
                memory_bytes: self.memory_gib << 30,
                free_bytes: self.memory_gib << 29,
                is_gpu_memory: false,
                distances: (0..self.all_nodes()).map(|to| (to, self.distance(id, to))).collect(),
                huge_pages: Vec::new(),
                access: Vec::new(),
            })
            .collect();
        Topology {
            origin: "made up for a test".into(),
            kernel: Some("6.18.0".into()),
            processor: Some("Made-up Processor 9000".into()),
            page_bytes: 4096,
            transparent_huge_pages: Some(TransparentHugePageMode::Madvise),
            allowed: AllowedResources {
                cpus: cpus.iter().map(|c| c.id).collect(),
                nodes: nodes.iter().map(|n| n.id).collect(),
                memory_limit_bytes: None,
                cpu_time_limit_cpus: None,
            },
            cpus,
            offline_cpus: IdSet::new(),
            caches,
            nodes,
            interleave_weights: None,
            missing_notes: Vec::new(),
        }
    }

    /// Returns the latency in ns of one load of a pointer chain in `bytes` bytes of local memory.
    fn load_latency_ns(&self, bytes: u64, pages: BufferPageKind) -> f64 {
        let levels = [
            (32u64 << 10, 1.1),
            (1 << 20, 3.8),
            (self.last_level_cache_bytes, 14.0),
            (u64::MAX, self.local_latency_ns),
        ];
        let mut below = 0.0;
        let mut sum = 0.0;
        for (capacity, latency) in levels {
            let within = (capacity as f64 / bytes as f64).min(1.0).powf(1.5);
            sum += (within - below).max(0.0) * latency;
            below = below.max(within);
        }
        let reach: f64 = if pages == BufferPageKind::Base { 6e6 } else { 3e9 };
        sum * (1.0 + 0.24 * (1.0 - (reach / bytes as f64).min(1.0)))
    }

    fn latencies(&self) -> LatencyMeasurements {
        let sizes: Vec<u64> =
            (24..=59).map(|i| ((2f64.powf(f64::from(i) / 2.0)) as u64).next_multiple_of(64)).collect();
        let curve = |pages: BufferPageKind| LatencyCurve {
            cpu_node: 0,
            memory_node: 0,
            pages,
            points: sizes
                .iter()
                .map(|&bytes| LatencyPoint { bytes, latency: ns(self.load_latency_ns(bytes, pages), bytes) })
                .collect(),
        };
        let level = |name: &str, from: u64, to: u64, cache: Option<u64>, latency: f64| MemoryLevel {
            name: name.into(),
            from_bytes: from,
            to_bytes: to,
            cache_bytes: cache,
            latency: ns(latency, to),
        };
        let last = self.last_level_cache_bytes;
        let pair = |cpu: u32, memory: u32, pages: BufferPageKind| NodePairLatency {
            cpu_node: cpu,
            memory_node: memory,
            pages,
            bytes: 1 << 29,
            latency: ns(
                self.latency(cpu, memory) * if pages == BufferPageKind::Base { 1.22 } else { 1.0 },
                u64::from(cpu * 64 + memory) + 1000,
            ),
        };
        LatencyMeasurements {
            curves: vec![curve(BufferPageKind::Base), curve(BufferPageKind::Huge)],
            memory_levels: vec![
                level("L1", 4 << 10, 32 << 10, Some(32 << 10), 1.1),
                level("L2", 64 << 10, 768 << 10, Some(1 << 20), 3.8),
                level("L3", 3 << 20, last / 2, Some(last), 14.0),
                level("DRAM", last * 6, 768 << 20, None, self.local_latency_ns),
            ],
            node_pairs: (0..self.cpu_nodes())
                .flat_map(|cpu| (0..self.all_nodes()).map(move |memory| (cpu, memory)))
                .flat_map(|(c, m)| [pair(c, m, BufferPageKind::Base), pair(c, m, BufferPageKind::Huge)])
                .collect(),
        }
    }

    fn cpus(&self, node: u32, threads: u32) -> IdSet {
        (node * self.cores..node * self.cores + threads).collect()
    }

    fn bandwidth(&self) -> Vec<BandwidthMeasurement> {
        let kernels = [
            (BandwidthKernel::Copy, 0.83),
            (BandwidthKernel::Scale, 0.82),
            (BandwidthKernel::Add, 0.87),
            (BandwidthKernel::Triad, 0.88),
            (BandwidthKernel::Read, 1.12),
            (BandwidthKernel::Write, 0.55),
            (BandwidthKernel::WriteNt, 1.05),
            (BandwidthKernel::CopyNt, 1.08),
            (BandwidthKernel::Random, 0.31),
            (BandwidthKernel::Strided, 0.28),
        ];
        let steps: Vec<u32> = [1, 2, 4, 8, 16, 32, 64, 128].into_iter().filter(|&n| n <= self.cores).collect();
        let mut all = Vec::new();
        let mut push = |kernel, cpu_node: Option<u32>, memory: MemoryLocation, threads: u32, rate: f64| {
            let seed = all.len() as u64 + 17;
            all.push(BandwidthMeasurement {
                kernel,
                cpu_node,
                memory,
                pages: BufferPageKind::Huge,
                threads,
                cpus: self.cpus(cpu_node.unwrap_or(0), threads),
                bytes: 1 << 30,
                total: gbs(rate, seed),
            });
        };
        for (kernel, factor) in kernels {
            for &threads in &steps {
                push(kernel, Some(0), MemoryLocation::Node(0), threads, factor * self.rate(threads, 0, 10));
            }
        }
        for cpu in 0..self.cpu_nodes() {
            for memory in (0..self.all_nodes()).filter(|&m| (cpu, m) != (0, 0)) {
                let rate = self.rate(self.cores, memory, self.distance(cpu, memory));
                push(BandwidthKernel::Triad, Some(cpu), MemoryLocation::Node(memory), self.cores, 0.88 * rate);
            }
        }
        let total = self.cores_in_all();
        let whole = f64::from(self.cpu_nodes()) * self.rate(self.cores, 0, 10) * 0.88;
        if self.cpu_nodes() > 1 {
            push(BandwidthKernel::Triad, None, MemoryLocation::Local, total, whole);
            let nodes: IdSet = (0..self.cpu_nodes()).collect();
            push(BandwidthKernel::Triad, None, MemoryLocation::Interleaved(nodes), total, whole * 0.71);
        }
        if self.memory_only > 0 {
            let weights: BTreeMap<u32, u32> =
                (0..self.all_nodes()).map(|n| (n, if n < self.cpu_nodes() { 5 } else { 1 })).collect();
            push(BandwidthKernel::Triad, None, MemoryLocation::Weighted(weights), total, whole * 0.77);
        }
        all
    }

    fn contention(&self) -> Vec<ContentionCurve> {
        let total = self.cores_in_all();
        let steps: Vec<u32> =
            (0..).map(|i| 1u32 << i).take_while(|&n| n < total).chain(std::iter::once(total)).collect();
        let curve = |memory: MemoryLocation, rate: &dyn Fn(u32) -> f64| ContentionCurve {
            kernel: BandwidthKernel::Triad,
            memory,
            pages: BufferPageKind::Huge,
            points: (steps.iter())
                .map(|&threads| {
                    let total = gbs(rate(threads), u64::from(threads) + 400);
                    let part = |v: f64| v / f64::from(threads);
                    ContentionPoint {
                        threads,
                        cpus: (0..threads).collect(),
                        total,
                        per_thread: Measurement {
                            median: part(total.median),
                            min: part(total.min),
                            max: part(total.max),
                            median_absolute_deviation: part(total.median_absolute_deviation),
                            ..total
                        },
                    }
                })
                .collect(),
        };
        let mut all = Vec::new();
        for node in 0..self.all_nodes() {
            all.push(curve(MemoryLocation::Node(node), &|n| 0.88 * self.rate(n, node, 10)));
        }
        if self.cpu_nodes() > 1 {
            let nodes: IdSet = (0..self.cpu_nodes()).collect();
            let roof = f64::from(self.cpu_nodes()) * self.core_and_node_bandwidth_gbs.1 * 0.65;
            let rate = |n: u32| roof * (1.0 - (-f64::from(n) * self.core_and_node_bandwidth_gbs.0 * 0.7 / roof).exp());
            all.push(curve(MemoryLocation::Interleaved(nodes), &rate));
            all.push(curve(MemoryLocation::Local, &|n| {
                let full = n / self.cores;
                let rest = self.rate(n % self.cores, 0, 10);
                0.88 * (f64::from(full) * self.rate(self.cores, 0, 10) + rest)
            }));
        }
        all
    }

    fn loaded(&self) -> Vec<LoadedLatencyCurve> {
        let near = (0..self.all_nodes()).filter(|&m| m < 2 || m >= self.cpu_nodes());
        near.map(|memory| {
            let idle = self.latency(0, memory);
            let roof = self.rate(self.cores - 1, memory, self.distance(0, memory)) * 1.1;
            let points = [0.0, 0.1, 0.25, 0.45, 0.65, 0.8, 0.9, 0.97].into_iter().enumerate().map(|(i, share)| {
                LoadedLatencyPoint {
                    pause: (i > 0).then(|| 1 << (8 - i)),
                    injected: (i > 0).then(|| gbs(roof * share, i as u64)),
                    latency: ns(idle * (1.0 + 0.12 * share / (1.03 - share)), i as u64 + 50),
                }
            });
            LoadedLatencyCurve {
                cpu_node: 0,
                memory_node: memory,
                pages: BufferPageKind::Huge,
                injectors: (1..self.cores).collect(),
                points: points.collect(),
            }
        })
        .collect()
    }

    /// Returns the complete profile of the machine.
    pub fn to_profile(self) -> MachineProfile {
        let peak = f64::from(self.cpu_nodes()) * self.core_and_node_bandwidth_gbs.1 * 1.28;
        MachineProfile {
            format: PROFILE_FORMAT_NAME.into(),
            version: PROFILE_FORMAT_VERSION,
            made_by: "genuma 0.1.0 (figures made up for a test)".into(),
            made_at: Some(1_795_248_420),
            host: Some(self.host.into()),
            load: None,
            effort: MeasurementRunInfo {
                plan: "full".into(),
                expected_s: 640.0,
                took_s: 655.2,
                instructions: "avx512".into(),
            },
            topology: self.topology(),
            theory: TheoreticalBandwidth {
                peak_gbs: Some(peak),
                channels: Some(8),
                modules: (0..8)
                    .map(|i| MemoryModule {
                        locator: format!("DIMM {i}"),
                        bank: format!("P0 CHANNEL {i}"),
                        bytes: self.memory_gib << 27,
                        megatransfers_per_s: Some(4800),
                        width_bits: Some(64),
                    })
                    .collect(),
                unknown_because: None,
            },
            latency: self.latencies(),
            bandwidth: self.bandwidth(),
            loaded: self.loaded(),
            contention: self.contention(),
            buffers: (0..self.all_nodes())
                .map(|n| BufferPlacementCheck {
                    requested_policy: format!("bound to node {n}"),
                    page_kind: BufferPageKind::Huge,
                    bytes: 1 << 30,
                    bytes_by_node: BTreeMap::from([(n, 1 << 30)]),
                    is_as_requested: Some(true),
                })
                .collect(),
            devices: Vec::new(),
            missing: Vec::new(),
        }
    }
}

/// Returns the profile that `genuma machine measure` would measure on the synthetic machine of this description.
pub fn profile_of_synthetic_machine(description: &str) -> MachineProfile {
    let described: SyntheticMachine = description.parse().expect("a description");
    modelled_profile(described.topology().expect("a machine"), &PlanOptions::full_plan()).expect("a profile")
}

/// Returns name and profile of each recorded machine whose memory can be measured: the topologies are real, the
/// measurements are computed by the model.
pub fn profiles_of_recorded_machines() -> Vec<(String, MachineProfile)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../hardware/machine/tests/machines");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("recordings").map(|e| e.expect("an entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "txt"));
    paths.sort();
    let name = |p: &std::path::Path| p.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let topology = |p: &std::path::Path| RecordedMachine::open(p).and_then(|r| r.topology()).expect("a machine");
    paths.iter().filter_map(|p| Some((name(p), modelled_profile(topology(p), &PlanOptions::quick_plan())?))).collect()
}

fn modelled_profile(topology: Topology, options: &PlanOptions) -> Option<MachineProfile> {
    let plan = MeasurementPlan::new(&topology, options).ok()?;
    let machine = UnmeasuredMachineFacts {
        topology: topology.clone(),
        theory: TheoreticalBandwidth::default(),
        host: None,
        unix_time_s: None,
    };
    measure_profile(machine, &plan, &mut SimulatedMachine::new_typical_server(topology), &mut |_| {}).ok()
}

/// Returns the profile of a container on a machine with four nodes. Node numbers have gaps, there are few CPUs, no huge
/// pages, no firmware tables and few measurements, and some memory is on another node than requested.
pub fn container_profile() -> MachineProfile {
    let mut p = FOUR_NODE_MACHINE.to_profile();
    let renumber = |n: u32| [0, 2, 5, 9][n as usize % 4];
    p.host = None;
    p.made_at = None;
    p.topology.processor = None;
    p.topology.allowed.cpus = IdSet::from([0, 1, 2, 8, 9]);
    p.topology.offline_cpus = IdSet::from([32, 33]);
    p.topology.transparent_huge_pages = None;
    p.topology.cpus.iter_mut().for_each(|c| c.node = renumber(c.node));
    for node in &mut p.topology.nodes {
        node.id = renumber(node.id);
        node.distances = node.distances.iter().map(|(&to, &d)| (renumber(to), d)).collect();
    }
    p.topology.nodes[1].memory_bytes = 0;
    p.topology.allowed.nodes = IdSet::from([0, 5]);
    p.topology.missing_notes =
        vec!["/sys/devices/system/node/node9/meminfo cannot be read: no memory is assumed.".into()];
    p.theory = TheoreticalBandwidth {
        unknown_because: Some("The firmware's tables (DMI) cannot be read here: run as root.".into()),
        ..TheoreticalBandwidth::default()
    };
    p.latency.curves.retain(|c| c.pages == BufferPageKind::Base);
    p.latency
        .node_pairs
        .retain(|pair| pair.pages == BufferPageKind::Base && pair.cpu_node == 0 && pair.memory_node < 2);
    p.latency.node_pairs.iter_mut().filter(|pair| pair.memory_node == 1).for_each(|pair| pair.memory_node = 5);
    p.latency.node_pairs[0].latency.median_absolute_deviation = p.latency.node_pairs[0].latency.median * 0.11;
    p.latency.memory_levels.clear();
    p.bandwidth.retain(|b| b.kernel == BandwidthKernel::Read && b.cpu_node == Some(0));
    p.loaded.clear();
    p.contention.clear();
    p.buffers = vec![BufferPlacementCheck {
        requested_policy: "bound to node 5".into(),
        page_kind: BufferPageKind::Base,
        bytes: 64 << 20,
        bytes_by_node: BTreeMap::from([(0, 64 << 20)]),
        is_as_requested: Some(false),
    }];
    p.missing = vec!["Huge pages are not available: sizes on huge pages were not measured.".into()];
    p
}

/// Returns the profile of a machine on which nothing could be measured.
pub fn unmeasured_profile() -> MachineProfile {
    MachineProfile {
        theory: TheoreticalBandwidth::default(),
        latency: LatencyMeasurements::default(),
        bandwidth: Vec::new(),
        loaded: Vec::new(),
        contention: Vec::new(),
        buffers: Vec::new(),
        missing: vec!["Memory is not available: nothing was measured.".into()],
        ..ONE_NODE_MACHINE.to_profile()
    }
}
