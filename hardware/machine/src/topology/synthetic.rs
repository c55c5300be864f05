//! Machines that are described, not read.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::size::{GIB, KIB, MIB, TIB, exact};
use super::{Allowed, Cpu, Error, Node, Source, Topology};
use crate::IdSet;

/// Most nodes a kernel is built for (`CONFIG_NODES_SHIFT` of 10).
const MOST_NODES: u32 = 1024;
/// Most CPUs that are described: what a set of numbers may hold.
const MOST_CPUS: u32 = 1 << 16;

/// A machine of equal nodes, described in words.
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
/// `x` may stand for `×`, and the singular for the plural. CPUs are numbered as firmware usually does: first a thread of
/// every core, node by node, then the second threads. All memory is free, and nothing is known of caches.
///
/// ```
/// use genuma_machine::topology::{Source, Synthetic};
///
/// let server: Synthetic = "8 nodes x 8 cores, 2 threads, 16 GiB".parse()?;
/// assert_eq!(server.to_string(), "8 nodes × 8 cores, 2 threads, 16 GiB");
/// let topology = server.topology()?;
/// assert_eq!(topology.cpus.len(), 128);
/// assert_eq!(topology.nodes[3].cpus.to_string(), "24-31,88-95");
/// # Ok::<(), genuma_machine::topology::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synthetic {
    /// Nodes with CPUs and memory.
    pub nodes: u32,
    /// Cores of each of them.
    pub cores: u32,
    /// Hardware threads of a core.
    pub threads: u32,
    /// Bytes of memory of each node with CPUs.
    pub memory: u64,
    /// Nodes with memory and no CPUs.
    pub memory_only: u32,
    /// Bytes of memory of each of those.
    pub(crate) memory_only_memory: u64,
    /// Distances to itself, to the other of its pair, to all others.
    pub distances: [u32; 3],
}

const DISTANCES: [u32; 3] = [10, 16, 22];

/// The parts of a description, as far as they were found.
#[derive(Debug, Default)]
struct Parts {
    shape: Option<(u32, u32)>,
    memory: Option<u64>,
    threads: Option<u32>,
    memory_only: Option<(u32, Option<u64>)>,
    distances: Option<[u32; 3]>,
}

impl Parts {
    fn add(&mut self, part: &str) -> Result<(), String> {
        let words: Vec<&str> = part.split_whitespace().collect();
        let again = match words[..] {
            [nodes, "node" | "nodes", "x", cores, "core" | "cores"] => {
                self.shape.replace((number(nodes)?, number(cores)?)).is_some()
            }
            [threads, "thread" | "threads"] => self.threads.replace(number(threads)?).is_some(),
            [nodes, "memory-only", "node" | "nodes"] => {
                self.memory_only.replace((number(nodes)?, None)).is_some()
            }
            [nodes, "memory-only", "node" | "nodes", "x", ref size @ ..] => {
                self.memory_only.replace((number(nodes)?, Some(memory(&size.concat())?))).is_some()
            }
            ["distances", own, pair, other] => {
                self.distances.replace([number(own)?, number(pair)?, number(other)?]).is_some()
            }
            [] => return Err("a part between two commas is empty".to_owned()),
            [size] => self.memory.replace(memory(size)?).is_some(),
            [count, unit] => self.memory.replace(memory(&[count, unit].concat())?).is_some(),
            _ => return Err(unknown(&words.join(" "))),
        };
        if again { Err(format!("'{}' says again what was said before", words.join(" "))) } else { Ok(()) }
    }

    fn finish(self) -> Result<Synthetic, String> {
        let (nodes, cores) = self.shape.ok_or("it lacks nodes and cores, such as '8 nodes × 8 cores'")?;
        let memory = self.memory.ok_or("it lacks the memory of a node, such as '16 GiB'")?;
        let (memory_only, own) = self.memory_only.unwrap_or_default();
        let synthetic = Synthetic {
            nodes,
            cores,
            threads: self.threads.unwrap_or(1),
            memory,
            memory_only,
            memory_only_memory: own.unwrap_or(memory),
            distances: self.distances.unwrap_or(DISTANCES),
        };
        let cpus = u64::from(nodes) * u64::from(cores) * u64::from(synthetic.threads);
        if nodes.saturating_add(memory_only) > MOST_NODES {
            return Err(format!("more than {MOST_NODES} nodes"));
        }
        if cpus > u64::from(MOST_CPUS) {
            return Err(format!("more than {MOST_CPUS} CPUs"));
        }
        Ok(synthetic)
    }
}

fn unknown(part: &str) -> String {
    format!(
        "'{part}' is none of '8 nodes × 8 cores', '2 threads', '16 GiB', '2 memory-only nodes × 64 GiB' and \
         'distances 10 16 22'"
    )
}

fn number(word: &str) -> Result<u32, String> {
    let number = word.parse().ok().filter(|n| (1..=MOST_CPUS).contains(n));
    number.ok_or_else(|| format!("'{word}' is not a number from 1 to {MOST_CPUS}"))
}

/// Bytes from text such as `16GiB`.
fn memory(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "KiB" => KIB,
        "MiB" => MIB,
        "GiB" => GIB,
        "TiB" => TIB,
        _ => return Err(unknown(text)),
    };
    // A kernel addresses 52 bits, and sums of nodes must not overflow.
    let bytes =
        digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).filter(|b| (1..1 << 52).contains(b));
    bytes.ok_or_else(|| format!("'{text}' is no memory of a node"))
}

impl FromStr for Synthetic {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why| Error::Description { text: text.trim().to_owned(), why };
        let mut parts = Parts::default();
        // `x` stands alone between words; `×` need not.
        for part in text.replace('×', " x ").split(',') {
            parts.add(part).map_err(wrong)?;
        }
        parts.finish().map_err(wrong)
    }
}

impl fmt::Display for Synthetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |n: u32| if n == 1 { "" } else { "s" };
        write!(f, "{} node{} × {} core{}", self.nodes, s(self.nodes), self.cores, s(self.cores))?;
        if self.threads > 1 {
            write!(f, ", {} threads", self.threads)?;
        }
        write!(f, ", {}", exact(self.memory))?;
        if self.memory_only > 0 {
            write!(f, ", {} memory-only node{}", self.memory_only, s(self.memory_only))?;
            if self.memory_only_memory != self.memory {
                write!(f, " × {}", exact(self.memory_only_memory))?;
            }
        }
        if self.distances != DISTANCES {
            let [own, pair, other] = self.distances;
            write!(f, ", distances {own} {pair} {other}")?;
        }
        Ok(())
    }
}

impl Source for Synthetic {
    /// Never fails.
    fn topology(&self) -> Result<Topology, Error> {
        let all = self.nodes + self.memory_only;
        let distance = |from: u32, to: u32| match (from == to, from / 2 == to / 2) {
            (true, _) => self.distances[0],
            (_, true) => self.distances[1],
            _ => self.distances[2],
        };
        let cores = self.nodes * self.cores;
        let cpu = |id: u32| {
            let core = id % cores;
            Cpu {
                id,
                node: core / self.cores,
                package: core / self.cores,
                core: core % self.cores,
                siblings: (0..self.threads).map(|thread| thread * cores + core).collect(),
            }
        };
        let cpus: Vec<Cpu> = (0..cores * self.threads).map(cpu).collect();
        let node = |id: u32| {
            let memory = if id < self.nodes { self.memory } else { self.memory_only_memory };
            Node {
                id,
                cpus: cpus.iter().filter(|cpu| cpu.node == id).map(|cpu| cpu.id).collect(),
                memory,
                free: memory,
                distances: (0..all).map(|to| (to, distance(id, to))).collect::<BTreeMap<_, _>>(),
                huge_pages: Vec::new(),
                access: Vec::new(),
            }
        };
        Ok(Topology {
            origin: format!("described as {self}"),
            kernel: None,
            processor: None,
            page: 4096,
            transparent: None,
            offline: IdSet::new(),
            caches: Vec::new(),
            nodes: (0..all).map(node).collect(),
            allowed: Allowed {
                cpus: cpus.iter().map(|cpu| cpu.id).collect(),
                nodes: (0..all).collect(),
                memory: None,
                cpu_time: None,
            },
            cpus,
            weights: None,
            missing: vec!["a description says nothing of caches, huge pages and the kernel".to_owned()],
        })
    }
}
