//! The servers, indexes and reads of lenis2017, as the papers describe them.

use crate::model::{MachineModel, NodeModel};
use crate::model_fitting::WorkloadSizes;

/// Returns the model of a server by its name in the table of published runs. `None` for an unknown name.
pub fn published_server_model(name: &str) -> Option<MachineModel> {
    match name {
        "amd" => Some(opteron_machine()),
        "intel" => Some(xeon_machine()),
        _ => None,
    }
}

/// Four AMD Opteron 6376 with two nodes each. The sources of the numbers are in docs/internals/advisor.md.
fn opteron_machine() -> MachineModel {
    let pair = |a: usize, b: usize| match (a == b, a / 2 == b / 2, a % 2 == b % 2) {
        (true, _, _) => NodePairPerformance { latency: 100.0, bandwidth: 11.0 },
        (_, true, _) => NodePairPerformance { latency: 160.0, bandwidth: 5.7 },
        (_, _, true) => NodePairPerformance { latency: 180.0, bandwidth: 3.5 },
        _ => NodePairPerformance { latency: 250.0, bandwidth: 2.1 },
    };
    // Two threads share a module; modules count as cores.
    let node = NodeModel { id: 0, cores: 4, threads: 8, memory_bytes: 16_000_000_000 };
    build_machine("amd", number_nodes(node, 8), pair, Threads { gain: 0.7, speed: 1.0 })
}

/// Four Intel Xeon E5-4620 connected as a square, one node each.
fn xeon_machine() -> MachineModel {
    let pair = |a: usize, b: usize| match a.abs_diff(b) {
        0 => NodePairPerformance { latency: 85.0, bandwidth: 16.7 },
        1 | 3 => NodePairPerformance { latency: 150.0, bandwidth: 3.04 },
        _ => NodePairPerformance { latency: 220.0, bandwidth: 2.6 },
    };
    let node = NodeModel { id: 0, cores: 8, threads: 16, memory_bytes: 32_000_000_000 };
    build_machine("intel", number_nodes(node, 4), pair, Threads { gain: 0.3, speed: 1.15 })
}

/// Returns `count` equal nodes, numbered from 0 on.
fn number_nodes(node: NodeModel, count: u32) -> Vec<NodeModel> {
    (0..count).map(|id| NodeModel { id, ..node }).collect()
}

/// Latency (ns) and bandwidth (GB/s) from one node to another.
struct NodePairPerformance {
    latency: f64,
    bandwidth: f64,
}

struct Threads {
    gain: f64,
    speed: f64,
}

fn build_machine(
    name: &str,
    nodes: Vec<NodeModel>,
    pair: impl Fn(usize, usize) -> NodePairPerformance,
    threads: Threads,
) -> MachineModel {
    let all = 0..nodes.len();
    let table = |pick: fn(NodePairPerformance) -> f64| {
        all.clone().map(|a| all.clone().map(|b| pick(pair(a, b))).collect()).collect::<Vec<Vec<f64>>>()
    };
    MachineModel {
        name: name.to_owned(),
        latency_ns: table(|pair| pair.latency),
        bandwidth_gbs: table(|pair| pair.bandwidth),
        nodes,
        thread_gain: threads.gain,
        speed: threads.speed,
        ..MachineModel::with_defaults_and_no_nodes()
    }
}

/// Returns index size and number of reads of an aligner on a data set (lenis2017, table 1 and section 6). `None` for
/// unknown names.
pub(crate) fn published_workload_sizes(aligner: &str, dataset: &str) -> Option<WorkloadSizes> {
    let index_bytes = match aligner {
        "bowtie2" => 3_900_000_000,
        "bwa-mem" => 5_100_000_000,
        "gem" => 15_000_000_000,
        "snap" => 29_000_000_000,
        _ => return None,
    };
    let reads = match dataset {
        "na12878" => 22e6,
        "gcat" => 11e6,
        _ => return None,
    };
    Some(WorkloadSizes { index_bytes, private_bytes: BYTES_PER_THREAD, reads })
}

/// Memory per thread in addition to the index, bytes; the papers do not report it (estimate).
const BYTES_PER_THREAD: u64 = 50 << 20;
