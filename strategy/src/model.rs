//! How long a run would take: a contention model of a program that looks things up in one large index.
//!
//! Threads alternate between computing and fetching lines of the index. Lines come from banks, over the path from one
//! node to another; a bank, a path, and the lock that guards a program's input and output serve one at a time. Threads
//! that wait for them are counted by approximate mean value analysis of the closed network (Schweitzer 1979, Bard 1979).
//! `docs/advisor.md` has the formulas, every assumption, and where they fail.

pub mod machine;
mod network;

use serde::{Deserialize, Serialize};

pub use machine::{Machine, Node};

use crate::strategy::{Memory, Strategy};
use network::{Class, Station};

/// Share of a bank that a program's first touches fill before they go on to the next one.
const FILL: f64 = 0.9;
/// Share of a machine's memory that copies of the index and the cached index file may take before the kernel drops the
/// cached pages and each instance reads the disk again.
const PRESSURE: f64 = 0.5;

/// What the model knows of a program and its reads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Application {
    /// Bytes of the index, of which every instance has its own.
    pub index_bytes: u64,
    /// Bytes that a thread needs besides.
    pub(crate) private_bytes: u64,
    /// Reads of the run.
    pub reads: f64,
    /// Seconds that a read takes a core at speed 1, memory aside.
    pub cpu: f64,
    /// Lines of the index that a read waits for.
    pub touches: f64,
    /// Bytes that a touch moves: above 64 where lines come ahead of need or in groups.
    pub(crate) bytes_per_touch: f64,
    /// Transfers of a line between cores for a read and a thread of the instance, while the lock on input and output
    /// changes hands: the serial part. A contended lock costs in proportion to those who wait (Anderson 1990).
    pub(crate) handovers: f64,
    /// How far measured times are from predicted ones: standard deviation of the logarithm of their ratio.
    pub spread: f64,
}

/// A predicted run time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Seconds of the whole run.
    pub seconds: f64,
    /// Two of three runs are expected above these seconds and
    pub low: f64,
    /// below these.
    pub high: f64,
}

/// Why a strategy cannot be had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Infeasible {
    /// Copies do not fit.
    #[error(
        "{strategy}: an instance needs {needed:.1} GB and has {room:.1} GB on its nodes; take fewer instances"
    )]
    Memory {
        /// The strategy.
        strategy: Strategy,
        /// GB that the instance needs.
        needed: f64,
        /// GB that its nodes have for it.
        room: f64,
    },
    /// There are more instances than threads.
    #[error("{strategy}: more instances than threads ({threads}); take fewer instances or more threads")]
    Threads {
        /// The strategy.
        strategy: Strategy,
        /// Threads in all.
        threads: u32,
    },
}

/// Time of a run of `app` under `strategy` with `threads` threads in all.
///
/// # Errors
/// The copies of the index do not fit, or there are fewer threads than instances.
pub(crate) fn predict(
    machine: &Machine,
    app: &Application,
    strategy: &Strategy,
    threads: u32,
) -> Result<Prediction, Infeasible> {
    let k = strategy.instances;
    if k > threads || k == 0 {
        return Err(Infeasible::Threads { strategy: *strategy, threads });
    }
    let groups = machine.groups(k);
    fits(machine, app, strategy, threads, &groups)?;
    let seconds = aligning_seconds(machine, app, *strategy, threads) + load_seconds(machine, app, k);
    let factor = app.spread.exp();
    Ok(Prediction { seconds, low: seconds / factor, high: seconds * factor })
}

/// Seconds of the run without those that loading the index takes, whether or not copies of it fit.
pub(crate) fn aligning_seconds(machine: &Machine, app: &Application, strategy: Strategy, threads: u32) -> f64 {
    app.reads / throughput(machine, app, &strategy, threads, &machine.groups(strategy.instances))
}

/// Seconds until every instance has its index. One thread of each copies the cached file; when copies and cached file
/// crowd the memory, all of them are read from the disk, one after another.
pub(crate) fn load_seconds(machine: &Machine, app: &Application, instances: u32) -> f64 {
    let index = app.index_bytes as f64;
    let k = f64::from(instances);
    let memory: f64 = machine.nodes.iter().map(|node| node.memory_bytes as f64).sum();
    let crowded = instances > 1 && (k + 1.0) * index > PRESSURE * memory;
    if crowded { k * index / (machine.disk_gbs * 1e9) } else { index / (machine.load_gbs * 1e9) }
}

/// Refuses instances whose nodes lack the memory for them and those that share the nodes.
fn fits(
    machine: &Machine,
    app: &Application,
    strategy: &Strategy,
    threads: u32,
    groups: &[Vec<usize>],
) -> Result<(), Infeasible> {
    let k = strategy.instances;
    let needed = app.index_bytes as f64 + f64::from(threads) / f64::from(k) * app.private_bytes as f64;
    for group in groups {
        let memory: f64 = group.iter().map(|&node| machine.nodes[node].memory_bytes as f64).sum();
        let sharing = groups.iter().filter(|other| *other == group).count();
        let room = memory / sharing as f64;
        if needed > room {
            return Err(Infeasible::Memory { strategy: *strategy, needed: needed / 1e9, room: room / 1e9 });
        }
    }
    Ok(())
}

/// Reads a second of all instances together.
fn throughput(
    machine: &Machine,
    app: &Application,
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
        let shares = index_shares(machine, app, strategy.memory, group, sharing);
        let handover = app.handovers * each * mean_latency(machine, group) * 1e-9;
        for &from in group {
            let mut latency = 0.0;
            let mut visits = vec![(Station::Lock(instance), handover)];
            for &(to, share) in &shares {
                latency += share * machine.latency_ns[from][to] * 1e-9;
                let bytes = share * app.touches * app.bytes_per_touch;
                visits.push((Station::Bank(to), bytes / (machine.bandwidth_gbs[to][to] * 1e9)));
                if from != to {
                    visits.push((Station::Path(from, to), bytes / (machine.bandwidth_gbs[from][to] * 1e9)));
                }
            }
            let think = app.cpu / machine.thread_speed(from, on_node[from]) + app.touches * latency;
            classes.push(Class { threads: each / group.len() as f64, think, visits });
        }
    }
    network::throughput(&classes)
}

/// Mean latency in ns from a node of the group to any of them: what moving a line from core to core costs.
fn mean_latency(machine: &Machine, group: &[usize]) -> f64 {
    let of_pairs = group.iter().flat_map(|&a| group.iter().map(move |&b| machine.latency_ns[a][b]));
    of_pairs.sum::<f64>() / (group.len() * group.len()) as f64
}

/// Which nodes hold which share of an instance's index, `sharing` instances being on the same nodes.
fn index_shares(
    machine: &Machine,
    app: &Application,
    memory: Memory,
    group: &[usize],
    sharing: usize,
) -> Vec<(usize, f64)> {
    match memory {
        Memory::Interleave => group.iter().map(|&node| (node, 1.0 / group.len() as f64)).collect(),
        Memory::Weighted => {
            let weight = |node: usize| machine.bandwidth_gbs[node][node];
            let all: f64 = group.iter().map(|&node| weight(node)).sum();
            group.iter().map(|&node| (node, weight(node) / all)).collect()
        }
        // One thread loads the index: it fills its own node, then the nearest ones.
        Memory::Default | Memory::Local | Memory::Bind => {
            let first = group[0];
            let mut near = group.to_vec();
            near.sort_by(|&a, &b| machine.latency_ns[first][a].total_cmp(&machine.latency_ns[first][b]));
            let mut left: f64 = 1.0;
            let mut shares = Vec::new();
            for (n, &node) in near.iter().enumerate() {
                let bank = FILL * machine.nodes[node].memory_bytes as f64 / sharing as f64;
                let here =
                    if n + 1 == near.len() { left } else { left.min(bank / app.index_bytes.max(1) as f64) };
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
