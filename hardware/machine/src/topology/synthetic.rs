//! Synthetic machines: topologies built from a textual description.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::format_size::{GIB, KIB, MIB, TIB, format_exact_size};
use super::{AllowedResources, Cpu, Error, NumaNode, Topology, TopologySource};
use crate::IdSet;

/// Largest number of nodes a kernel can be built for (`CONFIG_NODES_SHIFT` = 10).
const MAX_NODES: u32 = 1024;
/// Largest number of CPUs in a description: the limit of an [`IdSet`].
const MAX_CPUS: u32 = 1 << 16;

/// A machine of equal NUMA nodes, built from a description.
///
/// ```text
/// machine  = part { "," part }                 in any order, each at most once
/// part     = N "nodes" × N "cores"             required: NUMA nodes, each a package, and the cores of each
///          | SIZE                              required: memory of each of these nodes
///          | N "threads"                       hardware threads of a core; 1 by default
///          | N "memory-only nodes" [ × SIZE ]  numbered after the others; with the same memory by default
///          | "distances" N N N                 of a node to itself, to the other of its pair (0 and 1, 2 and 3 …),
///                                              and to all others; 10 16 22 by default
/// SIZE     = N ( "KiB" | "MiB" | "GiB" | "TiB" )
/// ```
///
/// `x` may be written for `×`, and the singular for the plural. CPUs are numbered as firmware usually numbers them:
/// first one hardware thread of every core, node by node, then the second threads. All memory is free. Caches are
/// unknown.
///
/// ```
/// use genuma_machine::topology::{TopologySource, SyntheticMachine};
///
/// let server: SyntheticMachine = "8 nodes x 8 cores, 2 threads, 16 GiB".parse()?;
/// assert_eq!(server.to_string(), "8 nodes × 8 cores, 2 threads, 16 GiB");
/// let topology = server.topology()?;
/// assert_eq!(topology.cpus.len(), 128);
/// assert_eq!(topology.nodes[3].cpus.to_string(), "24-31,88-95");
/// # Ok::<(), genuma_machine::topology::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntheticMachine {
    /// Number of nodes with CPUs and memory.
    pub nodes: u32,
    /// Number of physical cores of each node with CPUs.
    pub cores_per_node: u32,
    /// Hardware threads per core.
    pub threads_per_core: u32,
    /// Memory in bytes of each node with CPUs.
    pub node_memory_bytes: u64,
    /// Number of nodes with memory but no CPUs.
    pub memory_only_nodes: u32,
    /// Memory in bytes of each node without CPUs.
    pub(crate) memory_only_node_bytes: u64,
    /// NUMA distances: to the node itself, to the other node of its pair, to all other nodes.
    pub distances: [u32; 3],
}

const DEFAULT_DISTANCES: [u32; 3] = [10, 16, 22];

/// The parts of a machine description that have been parsed so far.
#[derive(Debug, Default)]
struct DescriptionParts {
    nodes_and_cores: Option<(u32, u32)>,
    memory: Option<u64>,
    threads: Option<u32>,
    memory_only: Option<(u32, Option<u64>)>,
    distances: Option<[u32; 3]>,
}

impl DescriptionParts {
    fn parse_part(&mut self, part: &str) -> Result<(), String> {
        let words: Vec<&str> = part.split_whitespace().collect();
        let is_duplicate = match words[..] {
            [nodes, "node" | "nodes", "x", cores, "core" | "cores"] => {
                self.nodes_and_cores.replace((parse_count(nodes)?, parse_count(cores)?)).is_some()
            }
            [threads, "thread" | "threads"] => self.threads.replace(parse_count(threads)?).is_some(),
            [nodes, "memory-only", "node" | "nodes"] => self.memory_only.replace((parse_count(nodes)?, None)).is_some(),
            [nodes, "memory-only", "node" | "nodes", "x", ref size @ ..] => {
                self.memory_only.replace((parse_count(nodes)?, Some(parse_memory_bytes(&size.concat())?))).is_some()
            }
            ["distances", own, pair, other] => {
                self.distances.replace([parse_count(own)?, parse_count(pair)?, parse_count(other)?]).is_some()
            }
            [] => return Err("a part between two commas is empty".to_owned()),
            [size] => self.memory.replace(parse_memory_bytes(size)?).is_some(),
            [count, unit] => self.memory.replace(parse_memory_bytes(&[count, unit].concat())?).is_some(),
            _ => return Err(unknown_part_message(&words.join(" "))),
        };
        if is_duplicate { Err(format!("'{}' was given before", words.join(" "))) } else { Ok(()) }
    }

    fn finish(self) -> Result<SyntheticMachine, String> {
        let (nodes, cores) = self.nodes_and_cores.ok_or("it lacks nodes and cores, such as '8 nodes × 8 cores'")?;
        let memory = self.memory.ok_or("it lacks the memory of a node, such as '16 GiB'")?;
        let (memory_only, own) = self.memory_only.unwrap_or_default();
        let synthetic = SyntheticMachine {
            nodes,
            cores_per_node: cores,
            threads_per_core: self.threads.unwrap_or(1),
            node_memory_bytes: memory,
            memory_only_nodes: memory_only,
            memory_only_node_bytes: own.unwrap_or(memory),
            distances: self.distances.unwrap_or(DEFAULT_DISTANCES),
        };
        let cpus = u64::from(nodes) * u64::from(cores) * u64::from(synthetic.threads_per_core);
        if nodes.saturating_add(memory_only) > MAX_NODES {
            return Err(format!("more than {MAX_NODES} nodes"));
        }
        if cpus > u64::from(MAX_CPUS) {
            return Err(format!("more than {MAX_CPUS} CPUs"));
        }
        Ok(synthetic)
    }
}

fn unknown_part_message(part: &str) -> String {
    format!(
        "'{part}' is none of '8 nodes × 8 cores', '2 threads', '16 GiB', '2 memory-only nodes × 64 GiB' and \
         'distances 10 16 22'"
    )
}

fn parse_count(word: &str) -> Result<u32, String> {
    let number = word.parse().ok().filter(|n| (1..=MAX_CPUS).contains(n));
    number.ok_or_else(|| format!("'{word}' is not a number from 1 to {MAX_CPUS}"))
}

/// Parses a byte count such as `16GiB`.
fn parse_memory_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "KiB" => KIB,
        "MiB" => MIB,
        "GiB" => GIB,
        "TiB" => TIB,
        _ => return Err(unknown_part_message(text)),
    };
    // The limit of 2^52 bytes prevents an overflow of the sum over all nodes.
    let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).filter(|b| (1..1 << 52).contains(b));
    bytes.ok_or_else(|| format!("'{text}' is not a valid memory size of a node"))
}

impl FromStr for SyntheticMachine {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why| Error::InvalidDescription { text: text.trim().to_owned(), why };
        let mut parts = DescriptionParts::default();
        // `×` needs no spaces around it, `x` does.
        for part in text.replace('×', " x ").split(',') {
            parts.parse_part(part).map_err(wrong)?;
        }
        parts.finish().map_err(wrong)
    }
}

impl fmt::Display for SyntheticMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |n: u32| if n == 1 { "" } else { "s" };
        write!(f, "{} node{} × {} core{}", self.nodes, s(self.nodes), self.cores_per_node, s(self.cores_per_node))?;
        if self.threads_per_core > 1 {
            write!(f, ", {} threads", self.threads_per_core)?;
        }
        write!(f, ", {}", format_exact_size(self.node_memory_bytes))?;
        if self.memory_only_nodes > 0 {
            write!(f, ", {} memory-only node{}", self.memory_only_nodes, s(self.memory_only_nodes))?;
            if self.memory_only_node_bytes != self.node_memory_bytes {
                write!(f, " × {}", format_exact_size(self.memory_only_node_bytes))?;
            }
        }
        if self.distances != DEFAULT_DISTANCES {
            let [own, pair, other] = self.distances;
            write!(f, ", distances {own} {pair} {other}")?;
        }
        Ok(())
    }
}

impl TopologySource for SyntheticMachine {
    /// Builds the topology. Never fails.
    fn topology(&self) -> Result<Topology, Error> {
        let num_nodes = self.nodes + self.memory_only_nodes;
        let distance = |from: u32, to: u32| match (from == to, from / 2 == to / 2) {
            (true, _) => self.distances[0],
            (_, true) => self.distances[1],
            _ => self.distances[2],
        };
        let cores = self.nodes * self.cores_per_node;
        let cpu = |id: u32| {
            let core = id % cores;
            Cpu {
                id,
                node: core / self.cores_per_node,
                package: core / self.cores_per_node,
                core: core % self.cores_per_node,
                siblings: (0..self.threads_per_core).map(|thread| thread * cores + core).collect(),
            }
        };
        let cpus: Vec<Cpu> = (0..cores * self.threads_per_core).map(cpu).collect();
        let node = |id: u32| {
            let memory = if id < self.nodes { self.node_memory_bytes } else { self.memory_only_node_bytes };
            NumaNode {
                id,
                cpus: cpus.iter().filter(|cpu| cpu.node == id).map(|cpu| cpu.id).collect(),
                memory_bytes: memory,
                free_bytes: memory,
                is_gpu_memory: false,
                distances: (0..num_nodes).map(|to| (to, distance(id, to))).collect::<BTreeMap<_, _>>(),
                huge_pages: Vec::new(),
                access: Vec::new(),
            }
        };
        Ok(Topology {
            origin: format!("described as {self}"),
            kernel: None,
            processor: None,
            page_bytes: 4096,
            transparent_huge_pages: None,
            offline_cpus: IdSet::new(),
            caches: Vec::new(),
            nodes: (0..num_nodes).map(node).collect(),
            allowed: AllowedResources {
                cpus: cpus.iter().map(|cpu| cpu.id).collect(),
                nodes: (0..num_nodes).collect(),
                memory_limit_bytes: None,
                cpu_time_limit_cpus: None,
            },
            cpus,
            interleave_weights: None,
            missing_notes: vec!["a description has no caches, huge pages and kernel".to_owned()],
        })
    }
}
