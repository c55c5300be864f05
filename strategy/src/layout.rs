//! Where the instances sit.

use genuma_machine::IdSet;
use genuma_machine::placement::Policy;

/// Where an instance runs and its memory lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// CPUs it may run on.
    pub cpus: IdSet,
    /// Nodes of those CPUs, and those whose memory it uses.
    pub nodes: IdSet,
    /// The policy of its memory; none where the kernel's own will do.
    pub policy: Option<Policy>,
    /// Its threads.
    pub threads: usize,
}
