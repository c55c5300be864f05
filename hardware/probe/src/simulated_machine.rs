//! A simulated machine that returns measurements computed from given numbers, immediately and reproducibly.
//!
//! Latency follows the cache sizes; bandwidth grows with the number of threads up to the limit of the node's memory;
//! both are worse for memory of distant nodes. Used in tests only.

use std::collections::BTreeMap;

use genuma_machine::Topology;

use crate::backend::{Error, LoadedLatencySample, MeasurementBackend};
use crate::plan::{BandwidthJob, LatencyJob, LoadedLatencyJob};
use crate::profile::{BufferPageKind, BufferPlacementCheck, MemoryLocation};

/// A measurement backend that computes results from given latencies and bandwidths; for tests.
#[derive(Debug, Clone)]
pub struct SimulatedMachine {
    /// Topology with the distances between nodes.
    pub topology: Topology,
    /// Size in bytes and latency in nanoseconds of each cache, nearest first.
    pub cache_bytes_and_ns: Vec<(u64, f64)>,
    /// Latency of local DRAM in nanoseconds.
    pub(crate) dram_ns: f64,
    /// Maximum bandwidth of one thread on local memory, in GB/s.
    pub(crate) max_thread_gbs: f64,
    /// Maximum bandwidth of one node's memory, in GB/s.
    pub(crate) max_node_gbs: f64,
    /// Seconds that each job takes.
    pub seconds_per_job: f64,
    elapsed_s: f64,
    placed_buffers: BTreeMap<MemoryLocation, (BufferPageKind, u64)>,
}

impl SimulatedMachine {
    /// Creates a typical server with this topology: caches of 32 KiB, 1 MiB and 32 MiB, DRAM latency of 100 ns, 12 GB/s
    /// per thread and 100 GB/s per node.
    pub fn new_typical_server(topology: Topology) -> SimulatedMachine {
        SimulatedMachine {
            topology,
            cache_bytes_and_ns: vec![(32 << 10, 1.5), (1 << 20, 5.0), (32 << 20, 20.0)],
            dram_ns: 100.0,
            max_thread_gbs: 12.0,
            max_node_gbs: 100.0,
            seconds_per_job: 0.25,
            elapsed_s: 0.0,
            placed_buffers: BTreeMap::new(),
        }
    }

    fn advance_clock(&mut self) {
        self.elapsed_s += self.seconds_per_job;
    }

    /// Factor by which access to `memory_node` is slower than local access.
    fn distance_factor(&self, cpu_node: u32, memory_node: u32) -> f64 {
        let told = self.topology.find_node(cpu_node).and_then(|node| node.distances.get(&memory_node));
        f64::from(told.copied().unwrap_or(10)) / 10.0
    }

    fn latency_ns(&self, bytes: u64, slowness: f64, pages: BufferPageKind) -> f64 {
        let cached = self.cache_bytes_and_ns.iter().find(|(size, _)| bytes <= *size).map(|(_, ns)| *ns);
        let translation = if pages == BufferPageKind::Base { 1.2 } else { 1.0 };
        cached.unwrap_or(self.dram_ns * slowness * translation)
    }

    /// Simulated results of the repetitions: `quantity` itself, 2% more, 2% less, and so on in turn.
    fn simulated_repetitions(quantity: f64, repetitions: u32) -> Vec<f64> {
        (0..repetitions).map(|i| quantity * [1.0, 1.02, 0.98][i as usize % 3]).collect()
    }

    fn record_buffer(&mut self, spot: &MemoryLocation, pages: BufferPageKind, bytes: u64) {
        let kept = self.placed_buffers.entry(spot.clone()).or_insert((pages, 0));
        kept.1 = kept.1.max(bytes);
    }
}

impl MeasurementBackend for SimulatedMachine {
    fn measure_latency(&mut self, job: &LatencyJob) -> Result<Vec<f64>, Error> {
        self.advance_clock();
        self.record_buffer(&MemoryLocation::Node(job.memory_node), job.pages, job.buffer_bytes);
        let slowness = self.distance_factor(job.cpu_node, job.memory_node);
        Ok(SimulatedMachine::simulated_repetitions(
            self.latency_ns(job.chain_bytes, slowness, job.pages),
            job.repetitions,
        ))
    }

    fn measure_bandwidth(&mut self, job: &BandwidthJob) -> Result<Vec<f64>, Error> {
        self.advance_clock();
        self.record_buffer(&job.memory, job.pages, job.arrays_bytes);
        let nodes: Vec<u32> = match &job.memory {
            MemoryLocation::Node(node) => vec![*node],
            MemoryLocation::Interleaved(nodes) => nodes.iter().collect(),
            MemoryLocation::Weighted(weights) => weights.keys().copied().collect(),
            MemoryLocation::Local => self.topology.allowed_memory_nodes().iter().collect(),
        };
        let node_of = |cpu: u32| self.topology.find_cpu(cpu).map_or(0, |cpu| cpu.node);
        let thread = |cpu: u32| {
            let local = job.memory == MemoryLocation::Local;
            let slow: f64 = nodes.iter().map(|node| self.distance_factor(node_of(cpu), *node)).sum();
            self.max_thread_gbs / if local { 1.0 } else { slow / nodes.len() as f64 }
        };
        let wanted: f64 = job.cpus.iter().map(|cpu| thread(*cpu)).sum();
        Ok(SimulatedMachine::simulated_repetitions(wanted.min(self.max_node_gbs * nodes.len() as f64), job.repetitions))
    }

    fn measure_loaded_latency(&mut self, job: &LoadedLatencyJob) -> Result<Vec<Vec<LoadedLatencySample>>, Error> {
        self.advance_clock();
        let chase = &job.latency_job;
        let slowness = self.distance_factor(chase.cpu_node, chase.memory_node);
        let idle = self.latency_ns(chase.chain_bytes, slowness, chase.pages);
        let point = |pause: &Option<u32>| {
            let rate = |pause: u32| self.max_thread_gbs / slowness / (1.0 + f64::from(pause) / 100.0);
            let wanted = pause.map_or(0.0, rate) * job.injector_cpus.len() as f64;
            let injected_gbs = wanted.min(0.95 * self.max_node_gbs);
            // Waiting time grows as in a queue.
            let load_ns = idle / (1.0 - injected_gbs / self.max_node_gbs);
            vec![LoadedLatencySample { injected_gbs, latency_ns: load_ns }; chase.repetitions as usize]
        };
        Ok(job.pauses.iter().map(point).collect())
    }

    fn buffer_checks(&self) -> Vec<BufferPlacementCheck> {
        let check = |(spot, (pages, bytes)): (&MemoryLocation, &(BufferPageKind, u64))| BufferPlacementCheck {
            requested_policy: format!("{spot:?}").to_lowercase(),
            page_kind: *pages,
            bytes: *bytes,
            bytes_by_node: match spot {
                MemoryLocation::Node(node) => [(*node, *bytes)].into(),
                _ => BTreeMap::new(),
            },
            is_as_requested: matches!(spot, MemoryLocation::Node(_)).then_some(true),
        };
        self.placed_buffers.iter().map(check).collect()
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    fn instruction_set(&self) -> &'static str {
        "model"
    }

    fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }
}
