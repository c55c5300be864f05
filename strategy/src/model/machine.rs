//! What the model needs of a machine.

use std::convert::Infallible;

use genuma_machine::Topology;
use genuma_probe::profile::{Kernel, MachineProfile, Spot};
use serde::{Deserialize, Serialize};

/// A machine as the model sees it. Neighbours in `nodes` are near each other: instances take runs of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// ns of a load, from CPUs of the first index to memory of the second.
    pub latency_ns: Vec<Vec<f64>>,
    /// GB/s of a node's threads together, from CPUs of the first index to memory of the second.
    pub bandwidth_gbs: Vec<Vec<f64>>,
    /// What a core's second thread adds to the first one's work, 0 to 1.
    pub(crate) thread_gain: f64,
    /// Work of a core alone, relative to the machine for which an application's CPU seconds hold.
    pub speed: f64,
    /// GB/s at which one thread copies a file that the kernel has in memory.
    pub load_gbs: f64,
    /// GB/s of the disk.
    pub(crate) disk_gbs: f64,
}

/// A node's cores and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Cores.
    pub cores: u32,
    /// Hardware threads of all its cores.
    pub threads: u32,
    /// Bytes of its memory.
    pub memory_bytes: u64,
}

/// What a profile lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unmeasured {
    /// A pair of nodes was not measured.
    #[error("no {what} from node {from} to node {to} in the profile; probe the machine again")]
    Pair {
        /// Latency or bandwidth.
        what: &'static str,
        /// Node of the CPUs.
        from: u32,
        /// Node of the memory.
        to: u32,
    },
    /// Nothing has both CPUs and memory.
    #[error("no node of the profile has both CPUs and memory")]
    NoNodes,
}

impl Machine {
    /// A machine as `genuma probe` measured it: nodes that have CPUs and memory, each beside its nearest.
    ///
    /// # Errors
    /// A pair of nodes lacks its latency or its bandwidth.
    pub fn from_profile(profile: &MachineProfile) -> Result<Self, Unmeasured> {
        let topology = &profile.topology;
        let both = topology.cpu_nodes().and(&topology.memory_nodes());
        let latency = |from: u32, to: u32| {
            let ns = profile.latency_between(from, to).map(|measured| measured.median);
            ns.ok_or(Unmeasured::Pair { what: "latency", from, to })
        };
        let order = neighbours(both.iter().collect(), latency)?;
        if order.is_empty() {
            return Err(Unmeasured::NoNodes);
        }
        let table = |of: &dyn Fn(u32, u32) -> Result<f64, Unmeasured>| {
            let row = |&from: &u32| order.iter().map(|&to| of(from, to)).collect::<Result<Vec<f64>, _>>();
            order.iter().map(row).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            name: profile.host.clone().unwrap_or_else(|| topology.origin.clone()),
            nodes: order.iter().map(|&id| node(topology, id)).collect(),
            latency_ns: table(&latency)?,
            bandwidth_gbs: table(&|from, to| bandwidth(profile, from, to))?,
            ..Self::usual()
        })
    }

    /// A machine of which nothing is measured, by the distances that its firmware tells: nodes that have CPUs and memory,
    /// each beside its nearest. A load of a node's own memory takes 100 ns, elsewhere in proportion to the distance; a
    /// node gives 2.5 GB/s for each core, to another node less by the square of the distance. So it is, within a factor of
    /// 1.6, on both servers of lenis2017. None where no node has both.
    pub fn from_topology(topology: &Topology) -> Option<Self> {
        let both = topology.cpu_nodes().and(&topology.memory_nodes());
        // A node is 10 from itself (ACPI, SLIT).
        let far = |from: u32, to: u32| {
            let told = topology.node(from).and_then(|node| node.distances.get(&to));
            let unknown = if from == to { 10 } else { 20 };
            f64::from(told.copied().unwrap_or(unknown).max(1)) / 10.0
        };
        let order =
            neighbours(both.iter().collect(), |from, to| Ok::<f64, Infallible>(far(from, to))).ok()?;
        let nodes: Vec<Node> = order.iter().map(|&id| node(topology, id)).collect();
        let table = |of: &dyn Fn(usize, f64) -> f64| -> Vec<Vec<f64>> {
            let row = |n: usize| order.iter().map(|&to| of(n, far(order[n], to))).collect();
            (0..order.len()).map(row).collect()
        };
        (!nodes.is_empty()).then(|| Self {
            name: topology.origin.clone(),
            latency_ns: table(&|_, far| LOCAL_NS * far),
            bandwidth_gbs: table(&|n, far| CORE_GBS * f64::from(nodes[n].cores) / (far * far)),
            nodes: nodes.clone(),
            ..Self::usual()
        })
    }

    /// What neither a profile nor the papers tell: hardware threads that add 30%, a cached file copied at 2 GB/s by one
    /// thread, a disk of 0.5 GB/s.
    pub(crate) fn usual() -> Self {
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

    /// Nodes of each of `instances` instances: whole nodes in runs, or several instances on a node.
    pub fn groups(&self, instances: u32) -> Vec<Vec<usize>> {
        let (nodes, k) = (self.nodes.len(), instances as usize);
        let group = |i: usize| {
            if k <= nodes { (i * nodes / k..(i + 1) * nodes / k).collect() } else { vec![i * nodes / k] }
        };
        (0..k).map(group).collect()
    }

    /// Speed of each of `threads` threads on a node. More threads than the hardware has share what it has.
    pub(super) fn thread_speed(&self, node: usize, threads: f64) -> f64 {
        let cores = f64::from(self.nodes[node].cores);
        let second = (f64::from(self.nodes[node].threads) - cores).max(0.0);
        let busy = threads.min(cores) + self.thread_gain * (threads - cores).clamp(0.0, second);
        self.speed * busy / threads
    }
}

/// Nodes in an order in which each is beside its nearest, from the first on.
fn neighbours<E>(mut left: Vec<u32>, far: impl Fn(u32, u32) -> Result<f64, E>) -> Result<Vec<u32>, E> {
    let mut order: Vec<u32> = Vec::new();
    while !left.is_empty() {
        let from_last = |&node: &u32| order.last().map_or(Ok(0.0), |&from| far(from, node));
        let distances = left.iter().map(from_last).collect::<Result<Vec<f64>, E>>()?;
        let nearest = (0..left.len()).min_by(|&a, &b| distances[a].total_cmp(&distances[b])).unwrap_or(0);
        order.push(left.remove(nearest));
    }
    Ok(order)
}

/// ns of a load of a node's own memory, as long as nobody has measured it.
const LOCAL_NS: f64 = 100.0;
/// GB/s of a node's memory for each of its cores, likewise.
const CORE_GBS: f64 = 2.5;

/// Cores, threads and memory of a node as far as the process may use them.
fn node(topology: &Topology, id: u32) -> Node {
    let allowed =
        |cpu: &&genuma_machine::topology::Cpu| cpu.node == id && topology.allowed.cpus.contains(cpu.id);
    let cpus: Vec<_> = topology.cpus.iter().filter(allowed).collect();
    let first = |cpu: &&&genuma_machine::topology::Cpu| {
        cpu.siblings.and(&topology.allowed.cpus).first() == Some(cpu.id)
    };
    Node {
        cores: cpus.iter().filter(first).count().max(1) as u32,
        threads: cpus.len().max(1) as u32,
        memory_bytes: topology.node(id).map_or(0, |node| node.memory),
    }
}

/// GB/s of a node's threads: reading; else copying; from the memory of a node, or as local memory was measured.
fn bandwidth(profile: &MachineProfile, from: u32, to: u32) -> Result<f64, Unmeasured> {
    let kernels = [Kernel::Read, Kernel::Triad, Kernel::Copy, Kernel::Random];
    let of_pair = kernels.iter().find_map(|&kernel| profile.bandwidth_between(kernel, from, to));
    let local = || {
        let single = |b: &&genuma_probe::profile::Bandwidth| {
            from == to && b.memory == Spot::Local && b.cpu_node == Some(from) && kernels.contains(&b.kernel)
        };
        profile.bandwidth.iter().filter(single).max_by_key(|b| b.threads)
    };
    let found = of_pair.or_else(local).map(|b| b.total.median);
    found.filter(|gbs| *gbs > 0.0).ok_or(Unmeasured::Pair { what: "bandwidth", from, to })
}

#[cfg(test)]
mod tests;
