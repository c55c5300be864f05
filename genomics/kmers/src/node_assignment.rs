//! NUMA nodes of a count: each thread is pinned to a node, and the memory of each bin is on one node while it has
//! space.

use genuma_farm::assign_cpu_slots;
use genuma_machine::placement::pin;
use genuma_machine::topology::{Sysfs, TopologySource as _};
use genuma_machine::{IdSet, Topology};

/// Assignment of threads and bins to NUMA nodes. Nothing is bound if there is only one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeAssignment {
    /// Numbers of the nodes in the operating system, distinct; empty if there is one node or the topology is unknown.
    ids: Vec<u32>,
    /// For each thread the index of its node in `ids`.
    threads: Vec<usize>,
}

impl NodeAssignment {
    /// Spreads `threads` threads over the nodes that this process may use, in proportion to their CPUs.
    pub(crate) fn for_this_machine(threads: usize) -> Self {
        match Sysfs::new().topology() {
            Ok(topology) => Self::for_topology(&topology, threads),
            Err(error) => {
                tracing::warn!(
                    "cannot read the NUMA topology ({error}), so threads and memory are not bound to nodes: results are the same, \
                     but may take longer; check that /sys is readable"
                );
                Self::single_node(threads)
            }
        }
    }

    fn for_topology(topology: &Topology, threads: usize) -> Self {
        let nodes: Option<Vec<u32>> = assign_cpu_slots(topology, threads).iter().map(|slot| slot.node).collect();
        let nodes = nodes.unwrap_or_default();
        let ids: IdSet = nodes.iter().copied().collect();
        // If a node has CPUs but no memory, the kernel decides.
        if ids.len() < 2 || !ids.is_subset(&topology.allowed_memory_nodes()) {
            return Self::single_node(threads);
        }
        let ids: Vec<u32> = ids.iter().collect();
        let threads = nodes.iter().filter_map(|node| ids.binary_search(node).ok()).collect();
        Self { ids, threads }
    }

    fn single_node(threads: usize) -> Self {
        Self { ids: Vec::new(), threads: vec![0; threads.max(1)] }
    }

    /// Number of nodes, at least 1.
    pub(crate) fn num_nodes(&self) -> usize {
        self.ids.len().max(1)
    }

    /// Number of a node (index `node`) in the operating system. `None` if threads are not bound to nodes.
    pub(crate) fn os_node_id(&self, node: usize) -> Option<u32> {
        self.ids.get(node).copied()
    }

    /// Number of threads assigned to the node with index `node`.
    pub(crate) fn thread_count_of_node(&self, node: usize) -> usize {
        self.threads.iter().filter(|&&of| of == node).count()
    }

    /// Index of the NUMA node to which a bin is assigned: the nodes have bins in proportion to their threads.
    pub(crate) fn node_of_bin(&self, bin: usize) -> usize {
        self.threads[bin % self.threads.len()]
    }

    /// Pins the calling thread, number `thread` of the count, permanently to its node. Returns the index of the node.
    /// With a single node, or if the kernel refuses, the thread is not pinned.
    pub(crate) fn pin_thread(&self, thread: usize) -> usize {
        let node = self.threads[thread % self.threads.len()];
        if let Some(id) = self.os_node_id(node) {
            match pin::pin_to_node(id) {
                // The thread ends with the count, so it is never unpinned.
                Ok(pinned) => std::mem::forget(pinned),
                Err(error) => tracing::debug!("{error}"),
            }
        }
        node
    }
}

/// Threads and memory of a count on one NUMA node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeThreadsAndMemory {
    /// Number of the NUMA node in Linux.
    pub node: u32,
    /// Number of threads assigned to the node.
    pub threads: usize,
    /// Bytes of memory of the node's bins that are on this node.
    pub local_bytes: u64,
    /// Bytes of memory of the node's bins that are on other nodes, because this node was full or the kernel moved the
    /// pages.
    pub remote_bytes: u64,
}

#[cfg(test)]
mod tests {
    use genuma_machine::topology::SyntheticMachine;

    use super::*;

    fn machine(text: &str) -> Topology {
        text.parse::<SyntheticMachine>().expect("a machine").topology().expect("a topology")
    }

    #[test]
    fn bins_are_assigned_to_nodes_like_threads() {
        let nodes = NodeAssignment::for_topology(&machine("2 nodes x 4 cores, 1 GiB"), 5);
        assert_eq!((nodes.num_nodes(), nodes.os_node_id(0), nodes.os_node_id(1)), (2, Some(0), Some(1)));
        assert_eq!([nodes.thread_count_of_node(0), nodes.thread_count_of_node(1)], [3, 2]);
        let bins: Vec<usize> = (0..10).map(|bin| nodes.node_of_bin(bin)).collect();
        assert_eq!(bins, [0, 1, 0, 1, 0, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn a_single_node_binds_nothing() {
        for nodes in [
            NodeAssignment::for_topology(&machine("2 nodes x 4 cores, 1 GiB"), 1),
            NodeAssignment::for_topology(&machine("1 node x 4 cores, 1 GiB"), 3),
            NodeAssignment::single_node(0),
        ] {
            assert_eq!((nodes.num_nodes(), nodes.os_node_id(0)), (1, None));
            assert!((0..9).all(|bin| nodes.node_of_bin(bin) == 0));
            assert_eq!(nodes.pin_thread(1), 0);
        }
    }

    #[test]
    fn every_thread_of_this_machine_has_a_node() {
        let nodes = NodeAssignment::for_this_machine(5);
        assert_eq!((0..nodes.num_nodes()).map(|node| nodes.thread_count_of_node(node)).sum::<usize>(), 5);
        std::thread::spawn(move || assert!(nodes.pin_thread(4) < nodes.num_nodes())).join().expect("no panic");
    }
}
