//! What can be wrong with an ask, and what the system may refuse.

use std::io;

use super::Policy;
use super::readable;
use crate::IdSet;

/// Why memory or a thread is not where it was asked to be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A policy over no nodes at all.
    #[error("{} names no node: this process may use memory of nodes {usable}", policy.trim_end())]
    NoNodes {
        /// What was asked.
        policy: String,
        /// Nodes that may be named.
        usable: IdSet,
    },
    /// Nodes that this machine lacks.
    #[error("{asked}: no node {nodes} on this machine: this process may use memory of nodes {usable}")]
    NodeNotThere {
        /// What was asked.
        asked: String,
        /// The nodes that are not there.
        nodes: IdSet,
        /// Nodes that may be named.
        usable: IdSet,
    },
    /// Nodes without memory.
    #[error("{asked}: node {nodes} has no memory: this process may use memory of nodes {usable}")]
    NodeWithoutMemory {
        /// What was asked.
        asked: String,
        /// The nodes without memory.
        nodes: IdSet,
        /// Nodes that may be named.
        usable: IdSet,
    },
    /// Nodes outside of the process's cpuset.
    #[error("{asked}: node {nodes} is outside of this process's cpuset: it may use memory of nodes {usable}")]
    NodeNotAllowed {
        /// What was asked.
        asked: String,
        /// The nodes that may not be used.
        nodes: IdSet,
        /// Nodes that may be named.
        usable: IdSet,
    },
    /// CPUs that this process may not use, or that are not there or not online.
    #[error("CPU {cpus} is not there or not allowed: this process may use CPUs {usable}")]
    CpuNotAllowed {
        /// The CPUs that may not be used.
        cpus: IdSet,
        /// CPUs that may be named.
        usable: IdSet,
    },
    /// A node none of whose CPUs this process may use.
    #[error("node {node} has no CPU that this process may use: it may use CPUs {usable}")]
    NodeWithoutCpu {
        /// The node.
        node: u32,
        /// CPUs that may be used.
        usable: IdSet,
    },
    /// A weight that is none.
    #[error("{policy}: the weight of node {node} is not between 1 and 255")]
    Weight {
        /// What was asked.
        policy: Policy,
        /// The node.
        node: u32,
    },
    /// Weights where the kernel places the memory.
    #[error(
        "{policy}: memory that somebody else allocates follows the kernel's own weights only: \
         take kernel-weighted or interleave, or set the weights in /sys/kernel/mm/mempolicy/weighted_interleave"
    )]
    WeightsOfItsOwn {
        /// What was asked.
        policy: Policy,
    },
    /// A size no huge page has.
    #[error("huge pages of {bytes} B: the size is no power of two of at least a base page")]
    HugePageSize {
        /// Bytes asked for.
        bytes: u64,
    },
    /// More than there is memory for.
    #[error("{asked}: {} do not fit: {} are free {place}", readable(*bytes), readable(*free))]
    TooLarge {
        /// What was asked.
        asked: String,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes that are free there.
        free: u64,
        /// Where: `on node 1`, `in this process's control group`.
        place: String,
    },
    /// The kernel refused a call.
    #[error("{asked}: {call}: {source}")]
    System {
        /// What was asked.
        asked: String,
        /// The call.
        call: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
