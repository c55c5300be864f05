//! Errors of memory placement and thread pinning.

use std::io;

use super::MemoryPolicy;
use super::format_bytes;
use crate::IdSet;

/// A system call that failed: name of the call and the error.
pub(super) struct FailedSystemCall(pub &'static str, pub io::Error);

/// Why memory could not be placed or a thread could not be pinned as requested.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The policy names no nodes.
    #[error("{} names no node: this process may use memory of nodes {usable}", policy.trim_end())]
    NoNodes {
        /// The requested memory policy, as text.
        policy: String,
        /// Nodes that the policy may name.
        usable: IdSet,
    },
    /// The policy names nodes that do not exist on this machine.
    #[error("{asked}: no node {nodes} on this machine: this process may use memory of nodes {usable}")]
    UnknownNode {
        /// The requested memory policy, as text.
        asked: String,
        /// Named nodes that do not exist.
        nodes: IdSet,
        /// Nodes that the policy may name.
        usable: IdSet,
    },
    /// The policy names nodes without memory.
    #[error("{asked}: node {nodes} has no memory: this process may use memory of nodes {usable}")]
    NodeWithoutMemory {
        /// The requested memory policy, as text.
        asked: String,
        /// Named nodes without memory.
        nodes: IdSet,
        /// Nodes that the policy may name.
        usable: IdSet,
    },
    /// The policy names nodes outside of the process's cpuset.
    #[error("{asked}: node {nodes} is outside of this process's cpuset: it may use memory of nodes {usable}")]
    NodeOutsideCpuset {
        /// The requested memory policy, as text.
        asked: String,
        /// Named nodes that the cpuset excludes.
        nodes: IdSet,
        /// Nodes that the policy may name.
        usable: IdSet,
    },
    /// The requested CPUs do not exist, are offline, or are excluded by the process's affinity or cpuset.
    #[error("CPU {cpus} does not exist or is not allowed: this process may use CPUs {usable}")]
    CpuNotAllowed {
        /// Requested CPUs that this process may not use.
        cpus: IdSet,
        /// CPUs that this process may use.
        usable: IdSet,
    },
    /// This process may not use any CPU of the requested node.
    #[error("node {node} has no CPU that this process may use: it may use CPUs {usable}")]
    NodeWithoutCpu {
        /// Requested NUMA node.
        node: u32,
        /// CPUs that this process may use.
        usable: IdSet,
    },
    /// A weight for weighted interleave is outside of 1 to 255.
    #[error("{policy}: the weight of node {node} must be between 1 and 255")]
    InvalidWeight {
        /// The requested memory policy.
        policy: MemoryPolicy,
        /// The node with the invalid weight.
        node: u32,
    },
    /// Custom weights were requested for memory that the kernel places by its own weights.
    #[error(
        "{policy}: memory that another library allocates can follow the kernel's weights only: \
         use kernel-weighted or interleave, or set the weights in /sys/kernel/mm/mempolicy/weighted_interleave"
    )]
    UnsupportedCustomWeights {
        /// The requested memory policy.
        policy: MemoryPolicy,
    },
    /// The requested huge page size is not a power of two, or is smaller than a base page.
    #[error("huge pages of {bytes} B: the size must be a power of two and at least a base page")]
    InvalidHugePageSize {
        /// The requested huge page size in bytes.
        bytes: u64,
    },
    /// There is not enough free memory for the request.
    #[error("{asked}: {} do not fit: {} are free {place}", format_bytes(*bytes), format_bytes(*free))]
    NotEnoughMemory {
        /// The requested memory policy, as text.
        asked: String,
        /// Requested bytes.
        bytes: u64,
        /// Free bytes at `place`.
        free: u64,
        /// Location that lacks memory, as a phrase for messages: for example `on node 1` or `in this process's control
        /// group`.
        place: String,
    },
    /// A system call failed.
    #[error("{asked}: {call}: {source}")]
    SystemCallFailed {
        /// The request that the call was part of.
        asked: String,
        /// Name of the system call.
        call: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
}
