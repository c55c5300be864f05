//! Where the workers sit.

use std::collections::BTreeMap;
use std::fmt;

use genuma_machine::Topology;
use genuma_machine::topology::Cpu;

/// Where a worker runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Seat {
    /// The CPU it is pinned to; without one the kernel moves it as it likes.
    pub cpu: Option<u32>,
    /// The node of that CPU. Workers of one node share a master in [`Farm::run_masters`](crate::Farm::run_masters).
    pub node: Option<u32>,
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.cpu, self.node) {
            (Some(cpu), Some(node)) => write!(f, "CPU {cpu} of node {node}"),
            (Some(cpu), None) => write!(f, "CPU {cpu}"),
            (None, Some(node)) => write!(f, "node {node}"),
            (None, None) => f.write_str("any CPU"),
        }
    }
}

/// Seats for so many threads on the CPUs this process may use: nodes in turn, every core before a core's second hardware
/// thread, every CPU before a CPU's second worker. Without any CPU to use, seats are anywhere.
pub fn seats(topology: &Topology, threads: usize) -> Vec<Seat> {
    let lap = lap(topology);
    if lap.is_empty() {
        return vec![Seat::default(); threads];
    }
    lap.into_iter().cycle().take(threads).collect()
}

/// Every allowed CPU once, in the order of [`seats`].
fn lap(topology: &Topology) -> Vec<Seat> {
    let allowed = |cpu: &&Cpu| topology.allowed.cpus.contains(cpu.id);
    // How many allowed hardware threads of the same core come before this one.
    let rank = |cpu: &Cpu| {
        let siblings = cpu.siblings.and(&topology.allowed.cpus);
        siblings.iter().filter(|&other| other < cpu.id).count()
    };
    let mut queues: BTreeMap<(usize, u32), Vec<u32>> = BTreeMap::new();
    for cpu in topology.cpus.iter().filter(allowed) {
        queues.entry((rank(cpu), cpu.node)).or_default().push(cpu.id);
    }
    let mut order: Vec<(usize, usize, u32, u32)> = queues
        .into_iter()
        .flat_map(|((rank, node), cpus)| {
            cpus.into_iter().enumerate().map(move |(round, cpu)| (rank, round, node, cpu))
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, node, cpu)| Seat { cpu: Some(cpu), node: Some(node) }).collect()
}
