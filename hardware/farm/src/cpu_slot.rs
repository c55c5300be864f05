//! Assigns workers to CPUs.

use std::collections::BTreeMap;
use std::fmt;

use genuma_machine::Topology;
use genuma_machine::topology::Cpu;

/// The CPU and NUMA node that a worker is assigned to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CpuSlot {
    /// CPU that the worker is pinned to. `None`: the kernel schedules the worker on any CPU.
    pub cpu: Option<u32>,
    /// NUMA node of the CPU. Workers of one node share a master in
    /// [`Farm::run_tasks_with_master_per_node`](crate::Farm::run_tasks_with_master_per_node).
    pub node: Option<u32>,
}

impl fmt::Display for CpuSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.cpu, self.node) {
            (Some(cpu), Some(node)) => write!(f, "CPU {cpu} of node {node}"),
            (Some(cpu), None) => write!(f, "CPU {cpu}"),
            (None, Some(node)) => write!(f, "node {node}"),
            (None, None) => f.write_str("any CPU"),
        }
    }
}

/// Assigns `threads` threads to the CPUs that this process may use: round-robin over the nodes, every core before a
/// core's second hardware thread, every CPU before a CPU's second worker. If the process may use no CPU, the threads
/// are not pinned.
pub fn assign_cpu_slots(topology: &Topology, threads: usize) -> Vec<CpuSlot> {
    let lap = order_allowed_cpus(topology);
    if lap.is_empty() {
        return vec![CpuSlot::default(); threads];
    }
    lap.into_iter().cycle().take(threads).collect()
}

/// Every allowed CPU once, in the order in which [`assign_cpu_slots`] uses them.
fn order_allowed_cpus(topology: &Topology) -> Vec<CpuSlot> {
    let allowed = |cpu: &&Cpu| topology.allowed.cpus.contains(cpu.id);
    // Number of allowed hardware threads of the same core before this one.
    let rank = |cpu: &Cpu| {
        let siblings = cpu.siblings.intersection(&topology.allowed.cpus);
        siblings.iter().filter(|&other| other < cpu.id).count()
    };
    let mut queues: BTreeMap<(usize, u32), Vec<u32>> = BTreeMap::new();
    for cpu in topology.cpus.iter().filter(allowed) {
        queues.entry((rank(cpu), cpu.node)).or_default().push(cpu.id);
    }
    let mut order: Vec<(usize, usize, u32, u32)> = queues
        .into_iter()
        .flat_map(|((rank, node), cpus)| cpus.into_iter().enumerate().map(move |(round, cpu)| (rank, round, node, cpu)))
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, node, cpu)| CpuSlot { cpu: Some(cpu), node: Some(node) }).collect()
}
