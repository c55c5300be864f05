//! What a machine is made of, as far as memory is concerned.
//!
//! [`Sysfs`] reads it of the running system, [`Recorded`] of a recording of another one, and [`Synthetic`] makes it up from
//! a description; all are a [`Source`].
//!
//! ```
//! use genuma_machine::{IdSet, Source};
//! use genuma_machine::topology::{Synthetic, Sysfs};
//!
//! let here = Sysfs::new().topology()?;
//! println!("{}", here.table());
//! here.check_cpus(&here.allowed.cpus)?;
//!
//! let server: Synthetic = "4 nodes × 16 cores, 64 GiB".parse()?;
//! let said = server.topology()?.check_nodes(&IdSet::from([2, 4])).unwrap_err();
//! assert_eq!(said.to_string(), "there is no node 4: this machine has 0-3");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod tree;
mod sysfs;
mod recorded;
mod synthetic;
mod check;
mod size;
mod table;

pub use check::Unavailable;
pub use recorded::Recorded;
pub use synthetic::Synthetic;
pub use sysfs::Sysfs;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::IdSet;

/// Something that can tell a machine's topology.
pub trait Source {
    /// Reads the topology.
    ///
    /// # Errors
    /// When what is read contradicts itself or lacks what nothing can stand in for.
    fn topology(&self) -> Result<Topology, Error>;
}

/// A machine's processors, caches and memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Where this was read, in words: `this machine`, a recording's name, a description.
    pub origin: String,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Name of the processor, as it gives it.
    pub processor: Option<String>,
    /// Bytes of a page.
    pub page: u64,
    /// What the kernel does about transparent huge pages.
    pub transparent: Option<Transparent>,
    /// CPUs that are online, by rising number.
    pub cpus: Vec<Cpu>,
    /// CPUs that are there but not online.
    pub offline: IdSet,
    /// Caches, by level, then kind, then first CPU.
    pub caches: Vec<Cache>,
    /// NUMA nodes that are online, by rising number; the numbers may have gaps.
    pub nodes: Vec<Node>,
    /// What this process may use.
    pub allowed: Allowed,
    /// Weights of weighted interleave, node to weight; absent before Linux 6.9.
    pub weights: Option<BTreeMap<u32, u32>>,
    /// What could not be read and what was assumed instead, one sentence each.
    pub missing: Vec<String>,
}

/// `/sys/kernel/mm/transparent_hugepage/enabled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transparent {
    /// For all memory.
    Always,
    /// For memory that asks for them.
    Madvise,
    /// Not at all.
    Never,
}

/// A hardware thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its number.
    pub id: u32,
    /// The node it belongs to.
    pub node: u32,
    /// Number of its package (socket).
    pub package: u32,
    /// Number of its core, unique within the package only.
    pub core: u32,
    /// All online hardware threads of its core, itself included.
    pub siblings: IdSet,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes of a line.
    pub line: u32,
    /// Online CPUs that share it.
    pub cpus: IdSet,
}

/// A NUMA node: CPUs and a bank of memory, or only one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub id: u32,
    /// Its online CPUs; none on memory-only nodes (CXL, HBM).
    pub cpus: IdSet,
    /// Bytes of memory; 0 when it has none.
    pub memory: u64,
    /// Bytes of it that are free.
    pub free: u64,
    /// Relative distance to each online node, its own (usually 10) included (ACPI SLIT).
    pub distances: BTreeMap<u32, u32>,
    /// Pools of huge pages, by rising size.
    pub huge_pages: Vec<HugePages>,
    /// What firmware says of access to this node's memory (ACPI HMAT), by class.
    pub access: Vec<Access>,
}

/// A node's pool of huge pages (hugetlb) of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePages {
    /// Bytes of one page.
    pub bytes: u64,
    /// Pages in the pool.
    pub total: u64,
    /// Pages of it that are free.
    pub free: u64,
}

/// Firmware's word on access to a node's memory from its nearest initiators.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// 0: nearest initiators of any kind; 1: nearest CPUs.
    pub class: u32,
    /// The nodes whose access is described.
    pub(crate) initiators: IdSet,
    /// Nanoseconds.
    pub read_latency_ns: Option<u64>,
    /// Nanoseconds.
    pub(crate) write_latency_ns: Option<u64>,
    /// 1e6 bytes a second, as the kernel gives it.
    pub read_bandwidth_mbs: Option<u64>,
    /// 1e6 bytes a second, as the kernel gives it.
    pub(crate) write_bandwidth_mbs: Option<u64>,
}

/// What a process may use of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allowed {
    /// CPUs it may run on (affinity within its cpuset).
    pub cpus: IdSet,
    /// Nodes it may take memory from (its cpuset).
    pub nodes: IdSet,
    /// Bytes its control group may use; absent without a limit.
    pub memory: Option<u64>,
    /// CPUs' worth of time its control group may use; absent without a limit.
    pub cpu_time: Option<f64>,
}

/// Why there is no topology.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file says something that cannot be understood or cannot be true.
    #[error("{path}: {why}")]
    Content {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A description that cannot be understood.
    #[error("'{text}' describes no machine: {why}")]
    Description {
        /// The description.
        text: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Topology {
    /// The node with this number.
    pub fn node(&self, id: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The CPU with this number.
    pub fn cpu(&self, id: u32) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.id == id)
    }

    /// Nodes with memory that this process may use.
    pub fn memory_nodes(&self) -> IdSet {
        let with_memory: IdSet =
            self.nodes.iter().filter(|node| node.memory > 0).map(|node| node.id).collect();
        with_memory.and(&self.allowed.nodes)
    }

    /// Nodes with CPUs that this process may use.
    pub fn cpu_nodes(&self) -> IdSet {
        self.cpus.iter().filter(|cpu| self.allowed.cpus.contains(cpu.id)).map(|cpu| cpu.node).collect()
    }
}
