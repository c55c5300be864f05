//! Placement of the index of an aligner on the NUMA nodes: chooses the placement, loads the index accordingly, and
//! checks where its pages are.
//!
//! All workers read the index at random positions, so that its placement decides the cost of each read (misale2014,
//! section V; lenis2017). A copy on each node makes every access local. One copy interleaved over all nodes shares
//! their bandwidth. One copy on the node of the loading thread makes the memory of that node the bottleneck.

use std::collections::BTreeMap;
use std::fmt;

use genuma_machine::placement::{
    self, MemoryPolicy, PageResidence, ReplicatedPerNode, ScopedMemoryPolicy, query_slice_residence,
};
use genuma_machine::{IdSet, Topology};

use crate::engine::{self, Engine};

/// The placement of the index that the user requests (`--placement`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexPlacementRequest {
    /// Choose the placement by machine and index size.
    #[default]
    Auto,
    /// One copy on the node on which the loading thread starts; what does not fit there is elsewhere.
    Local,
    /// One copy, its pages spread evenly over all nodes.
    Interleave,
    /// One copy, whose pages are spread over all nodes by the kernel's interleave weights.
    Weighted,
    /// One copy on each node with memory and CPUs that this process may use.
    Replicate,
}

/// The placement that is used for the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexPlacement {
    /// One copy on the node on which the loading thread starts; what does not fit there is elsewhere.
    Local,
    /// One copy, whose pages are spread evenly over the given nodes.
    Interleave(IdSet),
    /// One copy, whose pages are spread over the given nodes by the kernel's interleave weights.
    Weighted(IdSet),
    /// One copy on each of the given nodes.
    Replicate(IdSet),
}

impl fmt::Display for IndexPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexPlacement::Local => write!(f, "local"),
            IndexPlacement::Interleave(nodes) => write!(f, "interleaved over nodes {nodes}"),
            IndexPlacement::Weighted(nodes) => write!(f, "spread over nodes {nodes} by the kernel's weights"),
            IndexPlacement::Replicate(nodes) => write!(f, "a copy on each of nodes {nodes}"),
        }
    }
}

/// A placement and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPlacementWithReason {
    /// The chosen placement with its NUMA nodes.
    pub placement: IndexPlacement,
    /// Why this placement was chosen, as text for the user.
    pub reason: String,
}

/// Measured memory latency and bandwidth of the NUMA nodes, as far as they were measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeMemoryMeasurements {
    /// Latency (ns) from the CPUs of the first node to the memory of the second node.
    pub latency_ns: BTreeMap<(u32, u32), f64>,
    /// Bandwidth (GB/s) of the memory of each node, measured from its own CPUs.
    pub bandwidth_gb_s: BTreeMap<u32, f64>,
}

/// Minimum ratio of remote to local latency at which each node gets its own copy of the index. Chosen: below 10% a copy
/// saves less time than loading it takes.
const MIN_REMOTE_LATENCY_RATIO: f64 = 1.1;
/// Ratio of the highest to the lowest bandwidth above which the bandwidths of the nodes count as different. Chosen.
const MAX_EVEN_BANDWIDTH_RATIO: f64 = 1.25;

impl NodeMemoryMeasurements {
    /// Mean latency of remote memory divided by mean latency of local memory, for `nodes`; `None` for a single node, or
    /// if the latency of some pair of nodes was not measured.
    fn remote_latency_ratio(&self, nodes: &IdSet) -> Option<f64> {
        let (mut near, mut far, mut pairs) = (0.0, 0.0, 0.0);
        for from in nodes.iter() {
            near += self.latency_ns.get(&(from, from))?;
            for to in nodes.iter().filter(|&to| to != from) {
                far += self.latency_ns.get(&(from, to))?;
                pairs += 1.0;
            }
        }
        let ratio = far / pairs / (near / nodes.len() as f64);
        ratio.is_finite().then_some(ratio)
    }

    /// Lowest and highest memory bandwidth (GB/s) among `nodes`; `None` if some node was not measured.
    fn bandwidth_range(&self, nodes: &IdSet) -> Option<(f64, f64)> {
        let all = nodes.iter().map(|node| self.bandwidth_gb_s.get(&node).copied()).collect::<Option<Vec<_>>>()?;
        Some((all.iter().copied().reduce(f64::min)?, all.iter().copied().reduce(f64::max)?))
    }
}

/// Chooses the placement of an index of `bytes` bytes on this machine. If only one node has memory, the placement is
/// local, whatever the request.
///
/// For [`IndexPlacementRequest::Auto`] each node with CPUs gets a copy if the index fits into half of the free memory
/// of each of these nodes, and remote memory takes at least 1.1 times as long as local memory. Otherwise one copy is
/// interleaved over all nodes with memory, by the kernel's interleave weights if these differ. Without measured
/// latencies, remote memory counts as slower.
pub fn choose_index_placement(
    request: IndexPlacementRequest,
    topology: &Topology,
    measured: Option<&NodeMemoryMeasurements>,
    bytes: u64,
) -> IndexPlacementWithReason {
    let banks = topology.allowed_memory_nodes();
    let near = banks.intersection(&topology.allowed_cpu_nodes());
    let near = if near.is_empty() { banks.clone() } else { near };
    let plan = |placement, reason: String| IndexPlacementWithReason { placement, reason };
    if banks.len() < 2 {
        return plan(IndexPlacement::Local, "the machine has memory on one node only".to_owned());
    }
    let asked = || "as requested".to_owned();
    match request {
        IndexPlacementRequest::Local => plan(IndexPlacement::Local, asked()),
        IndexPlacementRequest::Interleave => plan(IndexPlacement::Interleave(banks), asked()),
        IndexPlacementRequest::Weighted => plan(IndexPlacement::Weighted(banks), asked()),
        IndexPlacementRequest::Replicate => plan(IndexPlacement::Replicate(near), asked()),
        IndexPlacementRequest::Auto => {
            let free = |node| topology.find_node(node).map_or(0, |node| node.free_bytes);
            let min_free = near.iter().map(free).min().unwrap_or(0);
            let far = measured.and_then(|measured| measured.remote_latency_ratio(&near));
            let latency_reason = far.map(|far| format!("other nodes' memory takes {far:.2} times as long"));
            let because = |reason: String| {
                latency_reason.iter().fold(reason, |reason, latency_reason| format!("{reason}, and {latency_reason}"))
            };
            // Reads, records and the page cache need memory, too.
            let fits = bytes <= min_free / 2;
            if fits && far.is_none_or(|far| far >= MIN_REMOTE_LATENCY_RATIO) {
                let reason = format!("{} fit into half of what each node has free", format_mib(bytes));
                return plan(IndexPlacement::Replicate(near), because(reason));
            }
            let reason = match latency_reason {
                Some(latency_reason) if fits => latency_reason,
                _ => format!("{} are more than half of the {} free on a node", format_mib(bytes), format_mib(min_free)),
            };
            let uneven = measured
                .and_then(|measured| measured.bandwidth_range(&banks))
                .filter(|(a, b)| b / a > MAX_EVEN_BANDWIDTH_RATIO);
            match (&topology.interleave_weights, uneven) {
                (Some(weights), _) if has_unequal_weights(weights, &banks) => plan(
                    IndexPlacement::Weighted(banks),
                    format!("{reason}, and the kernel weighs the nodes' banks differently"),
                ),
                (_, Some((a, b))) => plan(
                    IndexPlacement::Interleave(banks),
                    format!(
                        "{reason}; the banks reach {a:.0} to {b:.0} GB/s but the kernel weighs them alike: see \
                         /sys/kernel/mm/mempolicy/weighted_interleave"
                    ),
                ),
                _ => plan(IndexPlacement::Interleave(banks), reason),
            }
        }
    }
}

/// Whether the kernel has different interleave weights for `nodes`.
fn has_unequal_weights(weights: &BTreeMap<u32, u32>, nodes: &IdSet) -> bool {
    let mut weights = nodes.iter().filter_map(|node| weights.get(&node));
    let first = weights.next();
    weights.any(|weight| Some(weight) != first)
}

fn format_mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// Why an index cannot be loaded or placed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The index cannot be loaded.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The index cannot be placed.
    #[error("the index cannot be placed: {0}")]
    Placement(#[from] placement::Error),
}

/// A loaded index: one copy, or one copy on each node.
pub enum LoadedIndex<E> {
    /// One copy for all workers.
    Single(E),
    /// One copy on each node; each worker uses the copy on the nearest node.
    PerNode(ReplicatedPerNode<E>),
}

/// The nodes on which the pages of one copy of the index are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexCopyResidence {
    /// The node whose workers use this copy; `None` if all workers use one copy.
    pub node: Option<u32>,
    /// Number of pages of this copy on each node.
    pub residence: PageResidence,
}

/// Asks the kernel to collapse the arrays of an index that is on one node into huge pages. An interleaved index keeps
/// base pages, because a huge page is on one node.
fn collapse_into_huge_pages<E: Engine>(engine: E) -> E {
    let covered: usize =
        engine.index_arrays().iter().map(|region| placement::collapse_into_huge_pages(region.bytes)).sum();
    tracing::debug!("{} of the index in huge pages", format_mib(covered as u64));
    engine
}

impl<E: Engine> LoadedIndex<E> {
    /// Loads the index with this placement. Calls `load` once for each copy of the index, on a thread whose memory
    /// policy places the memory of that copy on its nodes.
    ///
    /// # Errors
    /// `load` fails, or this process may not allocate memory on a node.
    pub fn load_with_placement(
        placement: &IndexPlacement,
        load: impl Fn() -> Result<E, engine::Error> + Sync,
    ) -> Result<Self, Error> {
        let load_under = |set_policy: &(dyn Fn() -> Result<ScopedMemoryPolicy, placement::Error> + Sync)| {
            // A new thread has no free memory of an earlier policy that it would use first.
            let loaded = std::thread::scope(|scope| {
                let load = &load;
                let loading = scope.spawn(move || {
                    let _policy = set_policy()?;
                    Ok::<_, Error>(load()?)
                });
                loading.join()
            });
            loaded.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let spread = |policy| load_under(&|| ScopedMemoryPolicy::set_thread_policy(&policy)).map(LoadedIndex::Single);
        match placement {
            IndexPlacement::Local => load_under(&ScopedMemoryPolicy::prefer_current_node)
                .map(collapse_into_huge_pages)
                .map(LoadedIndex::Single),
            IndexPlacement::Interleave(nodes) => spread(MemoryPolicy::Interleave(nodes.clone())),
            IndexPlacement::Weighted(nodes) => spread(MemoryPolicy::KernelWeighted(nodes.clone())),
            IndexPlacement::Replicate(nodes) => Ok(LoadedIndex::PerNode(ReplicatedPerNode::new(nodes, |_| {
                Ok::<_, Error>(collapse_into_huge_pages(load()?))
            })?)),
        }
    }

    /// The copy on the node nearest to the CPU that runs the calling thread.
    pub fn nearest_copy(&self) -> &E {
        match self {
            LoadedIndex::Single(engine) => engine,
            LoadedIndex::PerNode(copies) => copies.nearest_copy(),
        }
    }

    /// Asks the kernel on which nodes the pages of each copy are; empty if the engine does not expose its arrays.
    ///
    /// # Errors
    /// The kernel does not permit the query.
    pub fn query_index_residence(&self) -> Result<Vec<IndexCopyResidence>, Error> {
        let of = |node, engine: &E| {
            let mut all = PageResidence::default();
            for region in engine.index_arrays() {
                let residence = query_slice_residence(region.bytes)?;
                all.page_bytes = residence.page_bytes;
                all.absent_pages += residence.absent_pages;
                for (node, pages) in residence.pages_by_node {
                    *all.pages_by_node.entry(node).or_default() += pages;
                }
            }
            Ok((!engine.index_arrays().is_empty()).then_some(IndexCopyResidence { node, residence: all }))
        };
        let found: Result<Vec<_>, Error> = match self {
            LoadedIndex::Single(engine) => vec![of(None, engine)].into_iter().collect(),
            LoadedIndex::PerNode(copies) => copies.iter_copies().map(|(node, engine)| of(Some(node), engine)).collect(),
        };
        Ok(found?.into_iter().flatten().collect())
    }
}

/// Whether the pages are where the placement puts them: each copy on its node, a local index on one node (any), an
/// interleaved index evenly (within 2% and two pages) over its nodes. For [`IndexPlacement::Weighted`] only the set of
/// nodes is checked.
pub fn residence_matches_placement(placement: &IndexPlacement, found: &[IndexCopyResidence]) -> bool {
    found.iter().all(|IndexCopyResidence { node, residence }| {
        let pages = residence.num_resident_pages();
        let on = |node: &u32| residence.pages_by_node.get(node).copied().unwrap_or(0);
        match (placement, node) {
            (IndexPlacement::Replicate(_), Some(node)) => on(node) == pages,
            (IndexPlacement::Interleave(nodes), _) => {
                let share = pages / nodes.len().max(1) as u64;
                nodes.iter().all(|node| on(&node).abs_diff(share) <= share / 50 + 2)
                    && residence.pages_by_node.keys().all(|&node| nodes.contains(node))
            }
            (IndexPlacement::Weighted(nodes), _) => residence.pages_by_node.keys().all(|&node| nodes.contains(node)),
            (IndexPlacement::Local, _) => residence.pages_by_node.len() <= 1,
            (IndexPlacement::Replicate(_), None) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use genuma_machine::TopologySource;
    use genuma_machine::topology::SyntheticMachine;

    use super::*;

    fn machine(text: &str) -> Topology {
        text.parse::<SyntheticMachine>().unwrap().topology().unwrap()
    }

    #[test]
    fn one_node_leaves_no_choice() {
        let laptop = machine("1 node × 4 cores, 8 GiB");
        for request in [
            IndexPlacementRequest::Auto,
            IndexPlacementRequest::Local,
            IndexPlacementRequest::Interleave,
            IndexPlacementRequest::Weighted,
            IndexPlacementRequest::Replicate,
        ] {
            assert_eq!(choose_index_placement(request, &laptop, None, 1 << 30).placement, IndexPlacement::Local);
        }
    }

    #[test]
    fn copies_where_they_fit_easily_else_one_that_is_spread() {
        let mut server = machine("4 nodes × 4 cores, 64 GiB");
        let all = IdSet::from([0, 1, 2, 3]);
        let chosen =
            |server: &Topology, bytes| choose_index_placement(IndexPlacementRequest::Auto, server, None, bytes);
        server.nodes.iter_mut().for_each(|node| node.free_bytes = 16 << 30);
        let small = chosen(&server, 8 << 30);
        assert_eq!(small.placement, IndexPlacement::Replicate(all.clone()));
        assert_eq!(small.reason, "8192 MiB fit into half of what each node has free");
        let large = chosen(&server, (8 << 30) + 1);
        assert_eq!(large.placement, IndexPlacement::Interleave(all.clone()));
        assert_eq!(large.reason, "8193 MiB are more than half of the 16384 MiB free on a node");
        server.interleave_weights = Some([(0, 3), (1, 3), (2, 1), (3, 3)].into());
        assert_eq!(chosen(&server, 9 << 30).placement, IndexPlacement::Weighted(all.clone()));
        server.interleave_weights = Some(all.iter().map(|node| (node, 5)).collect());
        assert_eq!(chosen(&server, 9 << 30).placement, IndexPlacement::Interleave(all.clone()));
        server.nodes[2].free_bytes = 1 << 30;
        assert_eq!(chosen(&server, 1 << 30).placement, IndexPlacement::Interleave(all.clone()));
        for (request, placement) in [
            (IndexPlacementRequest::Local, IndexPlacement::Local),
            (IndexPlacementRequest::Interleave, IndexPlacement::Interleave(all.clone())),
            (IndexPlacementRequest::Weighted, IndexPlacement::Weighted(all.clone())),
            (IndexPlacementRequest::Replicate, IndexPlacement::Replicate(all.clone())),
        ] {
            assert_eq!(
                choose_index_placement(request, &server, None, 1 << 40),
                IndexPlacementWithReason { placement, reason: "as requested".to_owned() }
            );
        }
    }

    /// Four nodes: `far` is the latency of another node's memory over that of the own, banks reach `bandwidth`.
    fn measured(far: f64, bandwidth: [f64; 4]) -> NodeMemoryMeasurements {
        let pairs = (0..4).flat_map(|from| (0..4).map(move |to| (from, to)));
        let latency = pairs.map(|pair| (pair, if pair.0 == pair.1 { 90.0 } else { 90.0 * far })).collect();
        NodeMemoryMeasurements { latency_ns: latency, bandwidth_gb_s: (0..).zip(bandwidth).collect() }
    }

    #[test]
    fn what_was_measured_decides_where_it_is_known() {
        let mut server = machine("4 nodes × 4 cores, 64 GiB");
        let all = IdSet::from([0, 1, 2, 3]);
        server.nodes.iter_mut().for_each(|node| node.free_bytes = 16 << 30);
        let chosen = |server: &Topology, measured: &NodeMemoryMeasurements, bytes| {
            choose_index_placement(IndexPlacementRequest::Auto, server, Some(measured), bytes)
        };
        let even = [40.0; 4];
        let far = chosen(&server, &measured(1.8, even), 1 << 30);
        assert_eq!(far.placement, IndexPlacement::Replicate(all.clone()));
        assert_eq!(
            far.reason,
            "1024 MiB fit into half of what each node has free, and other nodes' memory takes 1.80 times as long"
        );
        let near = chosen(&server, &measured(1.02, even), 1 << 30);
        assert_eq!(near.placement, IndexPlacement::Interleave(all.clone()), "copies would gain nothing");
        assert_eq!(near.reason, "other nodes' memory takes 1.02 times as long");
        let uneven = measured(1.8, [40.0, 40.0, 10.0, 40.0]);
        let large = chosen(&server, &uneven, 9 << 30);
        assert_eq!(large.placement, IndexPlacement::Interleave(all.clone()));
        assert!(large.reason.contains("10 to 40 GB/s"), "{}", large.reason);
        server.interleave_weights = Some([(0, 4), (1, 4), (2, 1), (3, 4)].into());
        assert_eq!(chosen(&server, &uneven, 9 << 30).placement, IndexPlacement::Weighted(all.clone()));
        // Half a profile is none.
        let mut part = measured(1.02, even);
        part.latency_ns.remove(&(2, 3));
        assert_eq!(chosen(&server, &part, 1 << 30).placement, IndexPlacement::Replicate(all));
    }

    #[test]
    fn what_is_found_is_held_against_what_was_chosen() {
        let found = |node, nodes: &[(u32, u64)]| {
            let residence =
                PageResidence { page_bytes: 4096, pages_by_node: nodes.iter().copied().collect(), absent_pages: 3 };
            IndexCopyResidence { node, residence }
        };
        let both = IdSet::from([0, 1]);
        let spread = IndexPlacement::Interleave(both.clone());
        assert!(residence_matches_placement(&spread, &[found(None, &[(0, 500), (1, 505)])]));
        assert!(!residence_matches_placement(&spread, &[found(None, &[(0, 400), (1, 600)])]));
        assert!(!residence_matches_placement(&spread, &[found(None, &[(0, 1000)])]));
        assert!(!residence_matches_placement(&spread, &[found(None, &[(0, 500), (1, 500), (2, 9)])]));
        let copies = IndexPlacement::Replicate(both.clone());
        assert!(residence_matches_placement(&copies, &[found(Some(0), &[(0, 9)]), found(Some(1), &[(1, 9)])]));
        assert!(!residence_matches_placement(&copies, &[found(Some(0), &[(0, 9)]), found(Some(1), &[(1, 8), (0, 1)])]));
        assert!(residence_matches_placement(&IndexPlacement::Weighted(both), &[found(None, &[(0, 900), (1, 100)])]));
        assert!(residence_matches_placement(&IndexPlacement::Local, &[]));
        assert!(residence_matches_placement(&IndexPlacement::Local, &[found(None, &[(1, 9)])]));
        assert!(!residence_matches_placement(&IndexPlacement::Local, &[found(None, &[(0, 500), (1, 150)])]));
    }
}
