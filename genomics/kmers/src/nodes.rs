//! The nodes that a count uses: its threads are kept on them, and each bin's memory is one node's.

use genuma_farm::seats;
use genuma_machine::placement::pin;
use genuma_machine::topology::{Source as _, Sysfs};
use genuma_machine::{IdSet, Topology};

/// Where threads and bins belong. With one node nothing is bound to anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// Numbers of the nodes, each once; none where the machine has but one, or does not tell.
    ids: Vec<u32>,
    /// Which of them each thread runs on.
    threads: Vec<usize>,
}

impl Nodes {
    /// For so many threads, spread over the nodes that this process may use as their CPUs allow.
    pub fn here(threads: usize) -> Self {
        match Sysfs::new().topology() {
            Ok(topology) => Self::on(&topology, threads),
            Err(error) => {
                tracing::warn!("threads and memory are not bound to nodes: {error}");
                Self::none(threads)
            }
        }
    }

    fn on(topology: &Topology, threads: usize) -> Self {
        let seats: Option<Vec<u32>> = seats(topology, threads).iter().map(|seat| seat.node).collect();
        let seats = seats.unwrap_or_default();
        let ids: IdSet = seats.iter().copied().collect();
        // Where a node has CPUs but no memory the kernel knows best.
        if ids.len() < 2 || !ids.within(&topology.memory_nodes()) {
            return Self::none(threads);
        }
        let ids: Vec<u32> = ids.iter().collect();
        let threads = seats.iter().filter_map(|node| ids.binary_search(node).ok()).collect();
        Self { ids, threads }
    }

    /// No choice.
    fn none(threads: usize) -> Self {
        Self { ids: Vec::new(), threads: vec![0; threads.max(1)] }
    }

    /// How many there are, at least one.
    pub fn len(&self) -> usize {
        self.ids.len().max(1)
    }

    /// The number that the system has for one of them, if there is a choice.
    pub fn id(&self, node: usize) -> Option<u32> {
        self.ids.get(node).copied()
    }

    /// Threads on one of them.
    pub fn threads(&self, node: usize) -> usize {
        self.threads.iter().filter(|&&of| of == node).count()
    }

    /// The node that a bin belongs to: as many bins on each, by the number of threads there.
    pub(crate) fn of_bin(&self, bin: usize) -> usize {
        self.threads[bin % self.threads.len()]
    }

    /// Keeps the calling thread, number `thread` of the count, on its node until it ends, and says which that is.
    pub fn settle(&self, thread: usize) -> usize {
        let node = self.threads[thread % self.threads.len()];
        if let Some(id) = self.id(node) {
            match pin::to_node(id) {
                // The thread ends with the count.
                Ok(pinned) => std::mem::forget(pinned),
                Err(error) => tracing::debug!("{error}"),
            }
        }
        node
    }
}

/// What a count has on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeShare {
    /// The node.
    pub node: u32,
    /// Threads that are kept there.
    pub threads: usize,
    /// Bytes of the memory of its bins that are on the node.
    pub here: u64,
    /// Bytes of the memory of its bins that are on others, as it had no room or the kernel moved them.
    pub elsewhere: u64,
}

#[cfg(test)]
mod tests {
    use genuma_machine::topology::Synthetic;

    use super::*;

    fn machine(text: &str) -> Topology {
        text.parse::<Synthetic>().expect("a machine").topology().expect("a topology")
    }

    #[test]
    fn bins_belong_to_nodes_as_threads_do() {
        let nodes = Nodes::on(&machine("2 nodes x 4 cores, 1 GiB"), 5);
        assert_eq!((nodes.len(), nodes.id(0), nodes.id(1)), (2, Some(0), Some(1)));
        assert_eq!([nodes.threads(0), nodes.threads(1)], [3, 2]);
        let bins: Vec<usize> = (0..10).map(|bin| nodes.of_bin(bin)).collect();
        assert_eq!(bins, [0, 1, 0, 1, 0, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn one_node_is_no_choice() {
        for nodes in [
            Nodes::on(&machine("2 nodes x 4 cores, 1 GiB"), 1),
            Nodes::on(&machine("1 node x 4 cores, 1 GiB"), 3),
            Nodes::none(0),
        ] {
            assert_eq!((nodes.len(), nodes.id(0)), (1, None));
            assert!((0..9).all(|bin| nodes.of_bin(bin) == 0));
            assert_eq!(nodes.settle(1), 0);
        }
    }

    #[test]
    fn this_machine_has_a_place_for_each_thread() {
        let nodes = Nodes::here(5);
        assert_eq!((0..nodes.len()).map(|node| nodes.threads(node)).sum::<usize>(), 5);
        std::thread::spawn(move || assert!(nodes.settle(4) < nodes.len())).join().expect("no panic");
    }
}
