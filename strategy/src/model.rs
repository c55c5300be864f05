//! Predicts the time of a run: a contention model of a program that reads one large index at random positions.
//!
//! Threads alternate between computing and fetching cache lines of the index. Lines come from memory banks over the
//! path between two nodes. A bank, a path, and the lock of a program's input and output serve one thread at a time. The
//! numbers of waiting threads are computed by approximate mean value analysis of the closed queueing network
//! (Schweitzer 1979, Bard 1979). `docs/internals/advisor.md` has the formulas, assumptions and limits.

pub mod machine;
mod queueing_network;

use serde::{Deserialize, Serialize};

pub use machine::{MachineModel, NodeModel};

use crate::strategy::{InstanceMemoryPolicy, Strategy};
use queueing_network::{ServiceStation, ThreadClass};

/// Share of a node's memory that is filled before the kernel places pages on the next node (empirical).
const MAX_NODE_MEMORY_FILL: f64 = 0.9;
/// Maximum share of the machine's memory for the index copies and the cached index file together. Above this share the
/// kernel drops cached pages, so that each instance reads the index from disk again (empirical).
const MAX_INDEX_MEMORY_SHARE: f64 = 0.5;

/// Performance model of an aligner with its index and its reads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ApplicationModel {
    /// Size of the index, bytes. Each instance has its own copy.
    pub index_bytes: u64,
    /// Memory per thread in addition to the index, bytes.
    pub(crate) private_bytes: u64,
    /// Number of reads of the run.
    pub reads: f64,
    /// CPU time per read in seconds on a machine of speed 1 ([`MachineModel::speed`]), without waiting for memory.
    pub cpu: f64,
    /// Memory accesses per read: number of cache lines of the index that a read loads and waits for.
    pub touches: f64,
    /// Bytes moved per memory access: more than 64 if the processor prefetches adjacent cache lines.
    pub(crate) bytes_per_touch: f64,
    /// Transfers of a cache line between cores, per read and thread of the instance, when the input/output lock
    /// changes its owner. This is the serial part: the cost of a contended lock grows with the number of waiting
    /// threads (Anderson 1990).
    pub(crate) handovers: f64,
    /// Standard deviation of ln(measured / predicted time).
    pub spread: f64,
}

/// Predicted time of a run, with an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunPrediction {
    /// Time of the whole run, s.
    pub seconds: f64,
    /// Lower end of the interval that contains the true time in about two of three runs, s.
    pub low: f64,
    /// Upper end of the interval that contains the true time in about two of three runs, s.
    pub high: f64,
}

/// Reason why a strategy is not feasible.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum InfeasibleStrategy {
    /// The index copies do not fit into memory.
    #[error(
        "{strategy}: each instance needs {needed:.1} GB, but its nodes have {room:.1} GB free; use fewer instances"
    )]
    Memory {
        strategy: Strategy,
        /// Memory that an instance needs, GB.
        needed: f64,
        /// Memory of the instance's nodes divided by the number of instances on them, GB. Memory in use is not
        /// subtracted.
        room: f64,
    },
    /// There are more instances than threads.
    #[error("{strategy}: more instances than threads ({threads}); use fewer instances or more threads")]
    Threads {
        strategy: Strategy,
        /// Threads of all instances together.
        threads: u32,
    },
}

/// Predicts the time of a run of `app` under `strategy` with `threads` threads in all.
///
/// # Errors
/// The index copies do not fit, or there are fewer threads than instances.
pub(crate) fn predict_run_time(
    machine: &MachineModel,
    app: &ApplicationModel,
    strategy: &Strategy,
    threads: u32,
) -> Result<RunPrediction, InfeasibleStrategy> {
    let k = strategy.instances;
    if k > threads || k == 0 {
        return Err(InfeasibleStrategy::Threads { strategy: *strategy, threads });
    }
    let groups = machine.nodes_by_instance(k);
    check_memory_fits(machine, app, strategy, threads, &groups)?;
    let seconds =
        predict_alignment_seconds(machine, app, *strategy, threads) + predict_index_load_seconds(machine, app, k);
    let factor = app.spread.exp();
    Ok(RunPrediction { seconds, low: seconds / factor, high: seconds * factor })
}

/// Predicts the time of a run without loading the index, s. Does not check whether the index copies fit in memory.
pub(crate) fn predict_alignment_seconds(
    machine: &MachineModel,
    app: &ApplicationModel,
    strategy: Strategy,
    threads: u32,
) -> f64 {
    app.reads / predict_reads_per_s(machine, app, &strategy, threads, &machine.nodes_by_instance(strategy.instances))
}

/// Predicts the time until each instance has loaded its index, s. Each instance copies the index file from the page
/// cache in one thread. If the index copies of several instances and the cached file do not fit in memory together, the
/// instances read the file from disk one after another.
pub(crate) fn predict_index_load_seconds(machine: &MachineModel, app: &ApplicationModel, instances: u32) -> f64 {
    let index = app.index_bytes as f64;
    let k = f64::from(instances);
    let memory: f64 = machine.nodes.iter().map(|node| node.memory_bytes as f64).sum();
    let crowded = instances > 1 && (k + 1.0) * index > MAX_INDEX_MEMORY_SHARE * memory;
    if crowded { k * index / (machine.disk_gbs * 1e9) } else { index / (machine.load_gbs * 1e9) }
}

/// Checks that the nodes of each instance have enough memory for it and for the instances that share the nodes.
fn check_memory_fits(
    machine: &MachineModel,
    app: &ApplicationModel,
    strategy: &Strategy,
    threads: u32,
    groups: &[Vec<usize>],
) -> Result<(), InfeasibleStrategy> {
    let k = strategy.instances;
    let needed = app.index_bytes as f64 + f64::from(threads) / f64::from(k) * app.private_bytes as f64;
    for group in groups {
        let memory: f64 = group.iter().map(|&node| machine.nodes[node].memory_bytes as f64).sum();
        let sharing = groups.iter().filter(|other| *other == group).count();
        let room = memory / sharing as f64;
        if needed > room {
            return Err(InfeasibleStrategy::Memory { strategy: *strategy, needed: needed / 1e9, room: room / 1e9 });
        }
    }
    Ok(())
}

/// Returns the reads per second of all instances together.
fn predict_reads_per_s(
    machine: &MachineModel,
    app: &ApplicationModel,
    strategy: &Strategy,
    threads: u32,
    groups: &[Vec<usize>],
) -> f64 {
    let nodes = machine.nodes.len();
    let each = f64::from(threads) / groups.len() as f64;
    let mut on_node = vec![0.0; nodes];
    for group in groups {
        for &node in group {
            on_node[node] += each / group.len() as f64;
        }
    }
    let mut classes = Vec::new();
    for (instance, group) in groups.iter().enumerate() {
        let sharing = groups.iter().filter(|other| *other == group).count();
        let shares = index_shares_by_node(machine, app, strategy.memory, group, sharing);
        let handover = app.handovers * each * mean_latency_ns(machine, group) * 1e-9;
        for &from in group {
            let mut latency = 0.0;
            let mut visits = vec![(ServiceStation::Lock(instance), handover)];
            for &(to, share) in &shares {
                latency += share * machine.latency_ns[from][to] * 1e-9;
                let bytes = share * app.touches * app.bytes_per_touch;
                visits.push((ServiceStation::MemoryController(to), bytes / (machine.bandwidth_gbs[to][to] * 1e9)));
                if from != to {
                    visits.push((ServiceStation::Path(from, to), bytes / (machine.bandwidth_gbs[from][to] * 1e9)));
                }
            }
            let think_time_s = app.cpu / machine.speed_per_thread(from, on_node[from]) + app.touches * latency;
            classes.push(ThreadClass { threads: each / group.len() as f64, think_time_s, visits });
        }
    }
    queueing_network::approximate_reads_per_s(&classes)
}

/// Returns the mean memory latency between all nodes of a group, ns. The model uses it as the cost of moving a cache
/// line between cores.
fn mean_latency_ns(machine: &MachineModel, group: &[usize]) -> f64 {
    let of_pairs = group.iter().flat_map(|&a| group.iter().map(move |&b| machine.latency_ns[a][b]));
    of_pairs.sum::<f64>() / (group.len() * group.len()) as f64
}

/// Returns the share of an instance's index on each node. `sharing` is the number of instances on the same nodes.
fn index_shares_by_node(
    machine: &MachineModel,
    app: &ApplicationModel,
    memory: InstanceMemoryPolicy,
    group: &[usize],
    sharing: usize,
) -> Vec<(usize, f64)> {
    match memory {
        InstanceMemoryPolicy::Interleave => group.iter().map(|&node| (node, 1.0 / group.len() as f64)).collect(),
        InstanceMemoryPolicy::Weighted => {
            let weight = |node: usize| machine.bandwidth_gbs[node][node];
            let all: f64 = group.iter().map(|&node| weight(node)).sum();
            group.iter().map(|&node| (node, weight(node) / all)).collect()
        }
        // One thread loads the index: it fills its own node first, then the nearest ones.
        InstanceMemoryPolicy::Default | InstanceMemoryPolicy::Local | InstanceMemoryPolicy::Bind => {
            let first = group[0];
            let mut near = group.to_vec();
            near.sort_by(|&a, &b| machine.latency_ns[first][a].total_cmp(&machine.latency_ns[first][b]));
            let mut left: f64 = 1.0;
            let mut shares = Vec::new();
            for (n, &node) in near.iter().enumerate() {
                let bank = MAX_NODE_MEMORY_FILL * machine.nodes[node].memory_bytes as f64 / sharing as f64;
                let here = if n + 1 == near.len() { left } else { left.min(bank / app.index_bytes.max(1) as f64) };
                shares.push((node, here));
                left -= here;
                if left <= 0.0 {
                    break;
                }
            }
            shares
        }
    }
}

#[cfg(test)]
mod tests;
