//! Topology of a machine: CPUs, caches, NUMA nodes, and the limits of this process.
//!
//! There are three implementations of [`TopologySource`]: [`Sysfs`] reads the running system, [`RecordedMachine`]
//! reads a recording of another machine, and [`SyntheticMachine`] builds a topology from a description.
//!
//! ```
//! use genuma_machine::{IdSet, TopologySource};
//! use genuma_machine::topology::{Sysfs, SyntheticMachine};
//!
//! let here = Sysfs::new().topology()?;
//! println!("{}", here.format_topology());
//! here.check_can_run_on_cpus(&here.allowed.cpus)?;
//!
//! let server: SyntheticMachine = "4 nodes × 16 cores, 64 GiB".parse()?;
//! let error = server.topology()?.check_can_allocate_on_nodes(&IdSet::from([2, 4])).unwrap_err();
//! assert_eq!(error.to_string(), "there is no node 4: this machine has 0-3");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file_tree;
mod sysfs;
mod recording;
mod synthetic;
mod availability;
mod format_size;
mod table;

pub use availability::UnavailableResource;
pub use recording::RecordedMachine;
pub use synthetic::SyntheticMachine;
pub use sysfs::Sysfs;
pub(crate) use sysfs::read_gpu_memory_nodes;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::IdSet;

/// A source that a machine's topology can be read from.
pub trait TopologySource {
    /// Reads the topology. If the input is contradictory or incomplete, a default is assumed and noted in
    /// [`Topology::missing_notes`].
    ///
    /// # Errors
    /// When no CPU or no memory size can be found.
    fn topology(&self) -> Result<Topology, Error>;
}

/// CPUs, caches and memory of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Where the topology comes from: `this machine`, the name of a recording, or a machine description.
    pub origin: String,
    /// Kernel release (`uname -r`).
    pub kernel: Option<String>,
    /// Model name of the processor.
    pub processor: Option<String>,
    /// Size of a base page in bytes.
    #[serde(rename = "page")]
    pub page_bytes: u64,
    /// When the kernel uses transparent huge pages. `None` if unknown.
    #[serde(rename = "transparent")]
    pub transparent_huge_pages: Option<TransparentHugePageMode>,
    /// Online CPUs, in ascending order of their numbers.
    pub cpus: Vec<Cpu>,
    /// CPUs that are present but not online.
    #[serde(rename = "offline")]
    pub offline_cpus: IdSet,
    /// Caches, sorted by level, then kind, then first CPU.
    pub caches: Vec<CpuCache>,
    /// Online NUMA nodes, in ascending order of their numbers. The numbers may have gaps.
    pub nodes: Vec<NumaNode>,
    /// CPUs, nodes and limits of this process.
    pub allowed: AllowedResources,
    /// Kernel weights for weighted interleave, by node. `None` before Linux 6.9.
    #[serde(rename = "weights")]
    pub interleave_weights: Option<BTreeMap<u32, u32>>,
    /// Information that could not be read and what was assumed instead, one sentence each.
    #[serde(rename = "missing")]
    pub missing_notes: Vec<String>,
}

/// Mode of transparent huge pages (`/sys/kernel/mm/transparent_hugepage/enabled`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransparentHugePageMode {
    /// Huge pages are used for all memory.
    Always,
    /// Huge pages are used for memory that requests them with madvise(2).
    Madvise,
    /// Huge pages are not used.
    Never,
}

/// A CPU (hardware thread) of the machine, as Linux counts CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Linux number of the CPU (hardware thread).
    pub id: u32,
    /// NUMA node of the CPU.
    pub node: u32,
    /// Number of the CPU's package (socket); 0 if the kernel does not report it.
    pub package: u32,
    /// Number of the CPU's core, unique within the package only. The CPU's own number if the kernel does not report the
    /// core.
    pub core: u32,
    /// All online CPUs (hardware threads) of the same core, including this CPU.
    pub siblings: IdSet,
}

/// What a cache holds: data, instructions or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only (L1d).
    Data,
    /// Instructions only (L1i).
    Instruction,
    /// Cache for data and instructions.
    Unified,
}

/// One cache, and the CPUs that share it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCache {
    /// Cache level; level 1 is nearest to the core.
    pub level: u32,
    /// What the cache holds.
    pub kind: CacheKind,
    /// Cache size in bytes.
    pub bytes: u64,
    /// Cache line size in bytes.
    #[serde(rename = "line")]
    pub line_bytes: u32,
    /// Online CPUs that share the cache.
    pub cpus: IdSet,
}

/// A NUMA node. It may have only CPUs or only memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Linux number of the NUMA node.
    pub id: u32,
    /// Online CPUs of the node; empty for memory-only nodes (CXL, HBM).
    pub cpus: IdSet,
    /// Memory of the node in bytes; 0 when the node has no memory.
    #[serde(rename = "memory")]
    pub memory_bytes: u64,
    /// Free memory of the node in bytes.
    #[serde(rename = "free")]
    pub free_bytes: u64,
    /// Whether the memory belongs to a GPU (POWER9 with V100, GH200). Programs place nothing there, and it is no part
    /// of the machine's memory.
    #[serde(rename = "gpu", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_gpu_memory: bool,
    /// Relative distance to each online node (ACPI SLIT), including the node itself (usually 10).
    pub distances: BTreeMap<u32, u32>,
    /// Huge page pools of the node, in ascending order of page size.
    pub huge_pages: Vec<HugePagePool>,
    /// Memory latency and bandwidth according to firmware (ACPI HMAT), one entry per class of initiators. An initiator
    /// is a CPU or device that accesses memory.
    pub access: Vec<FirmwareMemoryPerformance>,
}

/// A node's hugetlb pool of huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePagePool {
    /// Size of one huge page in bytes.
    #[serde(rename = "bytes")]
    pub page_bytes: u64,
    /// Number of huge pages in the pool, used or not.
    #[serde(rename = "total")]
    pub total_pages: u64,
    /// Number of unused huge pages in the pool.
    #[serde(rename = "free")]
    pub free_pages: u64,
}

/// Latency and bandwidth between a node's memory and its nearest initiators (CPUs or devices that access memory),
/// according to firmware (ACPI HMAT).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareMemoryPerformance {
    /// Class of the initiators for which the values hold: 0 for the nearest initiators of any kind, 1 for the nearest
    /// CPUs.
    #[serde(rename = "class")]
    pub initiator_class: u32,
    /// Nodes from which the memory is accessed.
    pub(crate) initiators: IdSet,
    /// Latency of a read from the initiators to the memory (ACPI HMAT), in nanoseconds.
    pub read_latency_ns: Option<u64>,
    /// Latency of a write from the initiators to the memory (ACPI HMAT), in nanoseconds.
    pub(crate) write_latency_ns: Option<u64>,
    /// Read bandwidth in 10^6 bytes per second (the unit of the kernel).
    pub read_bandwidth_mbs: Option<u64>,
    /// Write bandwidth in 10^6 bytes per second (the unit of the kernel).
    pub(crate) write_bandwidth_mbs: Option<u64>,
}

/// CPUs, nodes, memory and CPU time that this process may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllowedResources {
    /// CPUs that the process may run on: its affinity within its cpuset.
    pub cpus: IdSet,
    /// Nodes that the process may allocate memory on, according to its cpuset.
    pub nodes: IdSet,
    /// Smallest memory limit of the process's control groups and their ancestors, in bytes. `None` without a limit.
    #[serde(rename = "memory")]
    pub memory_limit_bytes: Option<u64>,
    /// Smallest CPU time limit of the process's control groups and their ancestors, in CPUs (quota divided by period).
    /// `None` without a limit.
    #[serde(rename = "cpu_time")]
    pub cpu_time_limit_cpus: Option<f64>,
}

/// Why a topology could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// The content of a file is malformed or contradictory.
    #[error("{path}: {why}")]
    MalformedContent {
        /// Path of the file.
        path: String,
        /// What is wrong with the content.
        why: String,
    },
    /// A machine description is invalid.
    #[error("'{text}' is not a valid machine description: {why}")]
    InvalidDescription {
        /// The description of the machine, as the user gave it.
        text: String,
        /// What is wrong with the description.
        why: String,
    },
}

impl Topology {
    /// The online node with this number; `None` if there is no such node.
    pub fn find_node(&self, id: u32) -> Option<&NumaNode> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The online CPU with this number; `None` if there is no such CPU.
    pub fn find_cpu(&self, id: u32) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.id == id)
    }

    /// Nodes with memory that is not a GPU's.
    pub fn memory_nodes(&self) -> IdSet {
        self.nodes.iter().filter(|node| node.memory_bytes > 0 && !node.is_gpu_memory).map(|node| node.id).collect()
    }

    /// Nodes with memory that this process may use. Nodes of GPU memory are not among them.
    pub fn allowed_memory_nodes(&self) -> IdSet {
        self.memory_nodes().intersection(&self.allowed.nodes)
    }

    /// Memory of the machine in bytes, without that of GPUs.
    pub fn memory_bytes(&self) -> u64 {
        self.nodes.iter().filter(|node| !node.is_gpu_memory).map(|node| node.memory_bytes).sum()
    }

    /// Nodes of the CPUs that this process may use.
    pub fn allowed_cpu_nodes(&self) -> IdSet {
        self.cpus.iter().filter(|cpu| self.allowed.cpus.contains(cpu.id)).map(|cpu| cpu.node).collect()
    }

    /// This machine as a process sees it that may use only these nodes: their CPUs and their memory, as far as this
    /// process may use them.
    pub fn restricted_to_nodes(&self, nodes: &IdSet) -> Topology {
        let mut restricted = self.clone();
        let of_nodes: IdSet = self.cpus.iter().filter(|cpu| nodes.contains(cpu.node)).map(|cpu| cpu.id).collect();
        restricted.allowed.cpus = self.allowed.cpus.intersection(&of_nodes);
        restricted.allowed.nodes = self.allowed.nodes.intersection(nodes);
        restricted
    }
}
