//! Chooses the NUMA nodes for a job that needs only some of them: those with the fastest access to each other's memory.
//!
//! Model: `docs/model/node_subset.md`.

use genuma_machine::IdSet;
use serde::Serialize;

use crate::model::MachineModel;

#[cfg(test)]
mod tests;

/// Maximum number of subsets that are compared exhaustively: 8 of 16 nodes have 12,870. Above it,
/// [`SubsetSearch::find_by_swapping`] is used. Chosen, so that the comparison takes less than a second.
const MAX_COMPARED_SUBSETS: f64 = 100_000.0;
/// Subsets whose cost exceeds the minimum by less than this share count as equal: repeated measurements of a pair of
/// nodes differ by as much (chosen).
const EQUAL_COST_SHARE: f64 = 0.01;

/// The chosen nodes, and how fast they access each other's memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeSubset {
    /// The chosen nodes.
    pub nodes: IdSet,
    /// All nodes with CPUs and memory, from which these were chosen.
    pub available: IdSet,
    /// Cost of the chosen nodes (formula 2): 1 if every access is as fast as the fastest one of the machine.
    pub cost: f64,
    /// Cost of the same number of nodes with the lowest numbers.
    pub cost_of_first_nodes: f64,
    /// Mean latency between the chosen nodes, each node to itself included, ns.
    pub mean_latency_ns: f64,
    /// Harmonic mean of the bandwidth between the chosen nodes, each node to itself included, GB/s.
    pub mean_bandwidth_gbs: f64,
    /// Whether all subsets of this size were compared.
    pub is_exhaustive: bool,
}

/// Error: the machine has fewer nodes than requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{requested} nodes are requested, but this machine has {} with CPUs and memory that may be used ({available})", available.len())]
pub struct TooFewNodes {
    requested: usize,
    available: IdSet,
}

/// Chooses `count` nodes (at least 1) of the machine. Among equally good subsets, chooses the one with the lowest node
/// numbers.
///
/// # Errors
/// The machine has fewer nodes.
pub fn choose_node_subset(machine: &MachineModel, count: usize) -> Result<NodeSubset, TooFewNodes> {
    let available: IdSet = machine.nodes.iter().map(|node| node.id).collect();
    if count == 0 || count > available.len() {
        return Err(TooFewNodes { requested: count, available });
    }
    let search = SubsetSearch::new(machine, count);
    let is_exhaustive = num_subsets(available.len(), count) <= MAX_COMPARED_SUBSETS;
    let chosen = if is_exhaustive { search.find_exhaustively() } else { search.find_by_swapping() };
    let first: Vec<usize> = (0..count).collect();
    let indices: Vec<usize> = chosen.iter().map(|&position| search.by_id[position]).collect();
    let pairs = || indices.iter().flat_map(|&from| indices.iter().map(move |&to| (from, to)));
    let num_pairs = (count * count) as f64;
    Ok(NodeSubset {
        nodes: indices.iter().map(|&node| machine.nodes[node].id).collect(),
        available,
        cost: search.cost(&chosen),
        cost_of_first_nodes: search.cost(&first),
        mean_latency_ns: pairs().map(|(from, to)| machine.latency_ns[from][to]).sum::<f64>() / num_pairs,
        mean_bandwidth_gbs: num_pairs / pairs().map(|(from, to)| 1.0 / machine.bandwidth_gbs[from][to]).sum::<f64>(),
        is_exhaustive,
    })
}

/// Number of subsets of `count` of `nodes` nodes.
fn num_subsets(nodes: usize, count: usize) -> f64 {
    (0..count).map(|n| (nodes - n) as f64 / (n + 1) as f64).product()
}

/// Search for the subset with the lowest cost. Nodes are given as positions in the order of their numbers.
struct SubsetSearch {
    /// Index in the machine model of the node at each position.
    by_id: Vec<usize>,
    /// Cost of an access from one node to the memory of another, `pair_cost[from][to]` (formula 1).
    pair_cost: Vec<Vec<f64>>,
    /// Number of nodes to choose.
    count: usize,
}

impl SubsetSearch {
    fn new(machine: &MachineModel, count: usize) -> Self {
        let mut by_id: Vec<usize> = (0..machine.nodes.len()).collect();
        by_id.sort_unstable_by_key(|&node| machine.nodes[node].id);
        let min_latency = machine.latency_ns.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let max_bandwidth = machine.bandwidth_gbs.iter().flatten().copied().fold(0.0, f64::max);
        let cost = |from: usize, to: usize| {
            (machine.latency_ns[from][to] / min_latency + max_bandwidth / machine.bandwidth_gbs[from][to]) / 2.0
        };
        let pair_cost = by_id.iter().map(|&from| by_id.iter().map(|&to| cost(from, to)).collect()).collect();
        Self { by_id, pair_cost, count }
    }

    /// Mean cost of an access within a subset (formula 2).
    fn cost(&self, subset: &[usize]) -> f64 {
        let of_pairs = subset.iter().flat_map(|&from| subset.iter().map(move |&to| self.pair_cost[from][to]));
        of_pairs.sum::<f64>() / (subset.len() * subset.len()) as f64
    }

    /// Compares all subsets.
    fn find_exhaustively(&self) -> Vec<usize> {
        let mut subset: Vec<usize> = (0..self.count).collect();
        let mut least = f64::INFINITY;
        loop {
            least = least.min(self.cost(&subset));
            if !self.advance(&mut subset) {
                break;
            }
        }
        // The first one in lexicographic order that is as good.
        let mut subset: Vec<usize> = (0..self.count).collect();
        while self.cost(&subset) > least * (1.0 + EQUAL_COST_SHARE) && self.advance(&mut subset) {}
        subset
    }

    /// Turns `subset` into the next subset in lexicographic order. Returns false after the last one.
    fn advance(&self, subset: &mut [usize]) -> bool {
        let nodes = self.by_id.len();
        let Some(at) = (0..self.count).rev().find(|&n| subset[n] < nodes - self.count + n) else { return false };
        subset[at] += 1;
        for n in at + 1..self.count {
            subset[n] = subset[n - 1] + 1;
        }
        true
    }

    /// From each node on, adds the node that costs least until the subset is complete, then exchanges nodes as long as
    /// that lowers the cost. Returns the best of these subsets.
    fn find_by_swapping(&self) -> Vec<usize> {
        let candidates: Vec<Vec<usize>> = (0..self.by_id.len()).map(|start| self.grow_and_swap(start)).collect();
        let least = candidates.iter().map(|subset| self.cost(subset)).fold(f64::INFINITY, f64::min);
        let is_equal = |subset: &Vec<usize>| self.cost(subset) <= least * (1.0 + EQUAL_COST_SHARE);
        candidates.into_iter().filter(is_equal).min().unwrap_or_default()
    }

    fn grow_and_swap(&self, start: usize) -> Vec<usize> {
        let mut subset = vec![start];
        while subset.len() < self.count {
            let added = self.cheapest_addition(&subset);
            subset.push(added);
        }
        let mut sum = f64::INFINITY;
        loop {
            for n in 0..subset.len() {
                subset.remove(n);
                let added = self.cheapest_addition(&subset);
                subset.insert(n, added);
            }
            // Each exchange lowers the cost or leaves the subset as it is.
            let now = self.cost(&subset);
            if now >= sum * (1.0 - f64::EPSILON.sqrt()) {
                break;
            }
            sum = now;
        }
        subset.sort_unstable();
        subset
    }

    /// The node outside the subset that adds the lowest cost to it.
    fn cheapest_addition(&self, subset: &[usize]) -> usize {
        let added = |node: usize| {
            let pairs = subset.iter().map(|&other| self.pair_cost[node][other] + self.pair_cost[other][node]);
            pairs.sum::<f64>() + self.pair_cost[node][node]
        };
        let outside = (0..self.by_id.len()).filter(|node| !subset.contains(node));
        outside.min_by(|&a, &b| added(a).total_cmp(&added(b))).unwrap_or_default()
    }
}
