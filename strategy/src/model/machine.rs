//! Performance model of a machine: NUMA nodes, latencies, bandwidths and speeds.

use std::convert::Infallible;

use genuma_machine::Topology;
use genuma_probe::profile::{BandwidthKernel, MachineProfile, MemoryLocation};
use serde::{Deserialize, Serialize};

/// Performance model of a machine. Neighbours in the list `nodes` are near to each other, because an instance uses
/// consecutive nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineModel {
    /// Name of the machine, for tables and messages.
    pub name: String,
    /// The NUMA nodes, ordered so that each node is followed by a near node.
    pub nodes: Vec<NodeModel>,
    /// Load latency in ns from the CPUs of node `i` to the memory of node `j`: `latency_ns[i][j]`. Nodes are counted as
    /// in `nodes`.
    pub latency_ns: Vec<Vec<f64>>,
    /// Bandwidth in GB/s from all CPUs of node `i` to the memory of node `j`: `bandwidth_gbs[i][j]`. Nodes are counted
    /// as in `nodes`.
    pub bandwidth_gbs: Vec<Vec<f64>>,
    /// Increase of a core's throughput when both of its hardware threads are used: 0 for none, 1 for twice the
    /// throughput.
    pub(crate) thread_gain: f64,
    /// Speed of one thread on a core, relative to the machine on which CPU times of models are given.
    pub speed: f64,
    /// Rate at which one thread copies a file from the page cache to its memory, GB/s.
    pub load_gbs: f64,
    /// Read rate of the disk, GB/s.
    pub(crate) disk_gbs: f64,
}

/// Cores and memory of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeModel {
    /// Number of the node, as Linux counts nodes.
    pub id: u32,
    /// Number of physical cores of the node that the process may use, at least 1.
    pub cores: u32,
    /// Number of hardware threads of all cores.
    pub threads: u32,
    /// Memory of the node, bytes.
    pub memory_bytes: u64,
}

/// Reason why a profile is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IncompleteProfile {
    /// Latency or bandwidth between two nodes was not measured.
    #[error("no {what} from node {from} to node {to} in the profile; probe the machine again")]
    MissingNodePair {
        /// The missing quantity: `latency` or `bandwidth`.
        what: &'static str,
        /// Node whose CPUs access the memory.
        from: u32,
        /// NUMA node of the memory that is accessed.
        to: u32,
    },
    /// No node has both CPUs and memory.
    #[error("no node of the profile has both CPUs and memory")]
    NoNodes,
}

impl MachineModel {
    /// Creates the model from a profile of `genuma machine measure`, with the nodes that have CPUs and memory, ordered
    /// so that near nodes are neighbours.
    ///
    /// # Errors
    /// Latency or bandwidth between two nodes is missing, or no node has both CPUs and memory.
    pub fn from_profile(profile: &MachineProfile) -> Result<Self, IncompleteProfile> {
        let topology = &profile.topology;
        let both = topology.allowed_cpu_nodes().intersection(&topology.allowed_memory_nodes());
        let latency = |from: u32, to: u32| {
            let ns = profile.dram_latency_between(from, to).map(|measured| measured.median);
            ns.ok_or(IncompleteProfile::MissingNodePair { what: "latency", from, to })
        };
        let order = order_by_distance(both.iter().collect(), latency)?;
        if order.is_empty() {
            return Err(IncompleteProfile::NoNodes);
        }
        let table = |of: &dyn Fn(u32, u32) -> Result<f64, IncompleteProfile>| {
            let row = |&from: &u32| order.iter().map(|&to| of(from, to)).collect::<Result<Vec<f64>, _>>();
            order.iter().map(row).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            name: profile.host.clone().unwrap_or_else(|| topology.origin.clone()),
            nodes: order.iter().map(|&id| node_model(topology, id)).collect(),
            latency_ns: table(&latency)?,
            bandwidth_gbs: table(&|from, to| measured_bandwidth_gbs(profile, from, to))?,
            ..Self::with_defaults_and_no_nodes()
        })
    }

    /// Creates the model of a machine without measurements, from the distances that the firmware reports; `None` if
    /// no node has both CPUs and memory.
    ///
    /// Local latency is 100 ns, remote latency proportional to the distance. Local bandwidth is 2.5 GB/s per core,
    /// remote bandwidth is lower by the square of the relative distance. On both servers of lenis2017 this is right
    /// within a factor of 1.6.
    pub fn from_topology(topology: &Topology) -> Option<Self> {
        let both = topology.allowed_cpu_nodes().intersection(&topology.allowed_memory_nodes());
        // The distance of a node to itself is 10 (ACPI, SLIT).
        let far = |from: u32, to: u32| {
            let told = topology.find_node(from).and_then(|node| node.distances.get(&to));
            let unknown = if from == to { 10 } else { 20 };
            f64::from(told.copied().unwrap_or(unknown).max(1)) / 10.0
        };
        let order = order_by_distance(both.iter().collect(), |from, to| Ok::<f64, Infallible>(far(from, to))).ok()?;
        let nodes: Vec<NodeModel> = order.iter().map(|&id| node_model(topology, id)).collect();
        let table = |of: &dyn Fn(usize, f64) -> f64| -> Vec<Vec<f64>> {
            let row = |n: usize| order.iter().map(|&to| of(n, far(order[n], to))).collect();
            (0..order.len()).map(row).collect()
        };
        (!nodes.is_empty()).then(|| Self {
            name: topology.origin.clone(),
            latency_ns: table(&|_, far| DEFAULT_LOCAL_LATENCY_NS * far),
            bandwidth_gbs: table(&|n, far| DEFAULT_CORE_BANDWIDTH_GBS * f64::from(nodes[n].cores) / (far * far)),
            nodes: nodes.clone(),
            ..Self::with_defaults_and_no_nodes()
        })
    }

    /// Creates a model without nodes, with default values of quantities that neither a profile nor the papers report: a
    /// second hardware thread adds 30 % throughput, one thread copies a cached file at 2 GB/s, a disk reads 0.5 GB/s.
    pub(crate) fn with_defaults_and_no_nodes() -> Self {
        Self {
            name: String::new(),
            nodes: Vec::new(),
            latency_ns: Vec::new(),
            bandwidth_gbs: Vec::new(),
            thread_gain: 0.3,
            speed: 1.0,
            load_gbs: 2.0,
            disk_gbs: 0.5,
        }
    }

    /// Returns the indices of the nodes of each of `instances` instances. If there are at most as many instances as
    /// nodes, each instance has one or more consecutive nodes for itself; otherwise each instance has one node, which
    /// several instances may share.
    pub(crate) fn nodes_by_instance(&self, instances: u32) -> Vec<Vec<usize>> {
        let (nodes, k) = (self.nodes.len(), instances as usize);
        let group = |i: usize| {
            if k <= nodes { (i * nodes / k..(i + 1) * nodes / k).collect() } else { vec![i * nodes / k] }
        };
        (0..k).map(group).collect()
    }

    /// Returns the speed of each of `threads` threads on a node. If there are more threads than hardware threads, they
    /// share the hardware threads.
    pub(super) fn speed_per_thread(&self, node: usize, threads: f64) -> f64 {
        let cores = f64::from(self.nodes[node].cores);
        let second = (f64::from(self.nodes[node].threads) - cores).max(0.0);
        let busy = threads.min(cores) + self.thread_gain * (threads - cores).clamp(0.0, second);
        self.speed * busy / threads
    }
}

/// Orders nodes so that each node is followed by the nearest of the remaining nodes. `far` is the distance between two
/// nodes.
fn order_by_distance<E>(mut left: Vec<u32>, far: impl Fn(u32, u32) -> Result<f64, E>) -> Result<Vec<u32>, E> {
    let mut order: Vec<u32> = Vec::new();
    while !left.is_empty() {
        let from_last = |&node: &u32| order.last().map_or(Ok(0.0), |&from| far(from, node));
        let distances = left.iter().map(from_last).collect::<Result<Vec<f64>, E>>()?;
        let nearest = (0..left.len()).min_by(|&a, &b| distances[a].total_cmp(&distances[b])).unwrap_or(0);
        order.push(left.remove(nearest));
    }
    Ok(order)
}

/// Assumed latency of a node's own memory if it was not measured, ns.
const DEFAULT_LOCAL_LATENCY_NS: f64 = 100.0;
/// Assumed bandwidth per core of a node's own memory if it was not measured, GB/s.
const DEFAULT_CORE_BANDWIDTH_GBS: f64 = 2.5;

/// Returns the cores, hardware threads and memory of a node. Counts only CPUs that the process may use.
fn node_model(topology: &Topology, id: u32) -> NodeModel {
    let allowed = |cpu: &&genuma_machine::topology::Cpu| cpu.node == id && topology.allowed.cpus.contains(cpu.id);
    let cpus: Vec<_> = topology.cpus.iter().filter(allowed).collect();
    let first = |cpu: &&&genuma_machine::topology::Cpu| {
        cpu.siblings.intersection(&topology.allowed.cpus).smallest_id() == Some(cpu.id)
    };
    NodeModel {
        id,
        cores: cpus.iter().filter(first).count().max(1) as u32,
        threads: cpus.len().max(1) as u32,
        memory_bytes: topology.find_node(id).map_or(0, |node| node.memory_bytes),
    }
}

/// Returns the measured bandwidth of all threads of node `from` with memory of node `to`, GB/s: of the read kernel,
/// else of triad, copy or random. If the node's own memory was not measured alone, uses the bandwidth of threads with
/// local memory.
fn measured_bandwidth_gbs(profile: &MachineProfile, from: u32, to: u32) -> Result<f64, IncompleteProfile> {
    let kernels = [BandwidthKernel::Read, BandwidthKernel::Triad, BandwidthKernel::Copy, BandwidthKernel::Random];
    let of_pair = kernels.iter().find_map(|&kernel| profile.bandwidth_between(kernel, from, to));
    let local = || {
        let single = |b: &&genuma_probe::profile::BandwidthMeasurement| {
            from == to && b.memory == MemoryLocation::Local && b.cpu_node == Some(from) && kernels.contains(&b.kernel)
        };
        profile.bandwidth.iter().filter(single).max_by_key(|b| b.threads)
    };
    let found = of_pair.or_else(local).map(|b| b.total.median);
    found.filter(|gbs| *gbs > 0.0).ok_or(IncompleteProfile::MissingNodePair { what: "bandwidth", from, to })
}

#[cfg(test)]
mod tests;
