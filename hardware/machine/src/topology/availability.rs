//! Checks that requested CPUs and nodes exist and that this process may use them.

use super::Topology;
use crate::IdSet;

/// Error: the process cannot use the requested CPUs or nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnavailableResource {
    /// The request names no CPU or node.
    #[error("no {what} was named: name at least one of {there}")]
    NoneRequested {
        /// `CPU` or `node`.
        what: &'static str,
        /// CPUs or nodes that this process may use.
        there: IdSet,
    },
    /// The machine has no such CPU or node.
    #[error("there is no {what} {requested}: this machine has {there}")]
    Nonexistent {
        /// `CPU` or `node`.
        what: &'static str,
        /// Requested CPUs or nodes that do not exist.
        requested: IdSet,
        /// CPUs or nodes that exist.
        there: IdSet,
    },
    /// The requested CPUs exist but are offline.
    #[error("{} {} offline: {online} are online", noun_with_ids("CPU", requested), is_or_are(requested))]
    Offline {
        /// Requested CPUs that are offline.
        requested: IdSet,
        /// CPUs that are online.
        online: IdSet,
    },
    /// The requested nodes have no memory.
    #[error(
        "{} {} without memory: {} {} some",
        noun_with_ids("node", requested),
        is_or_are(requested),
        noun_with_ids("node", there),
        has_or_have(there)
    )]
    NoMemory {
        /// Requested nodes without memory.
        requested: IdSet,
        /// Nodes with memory.
        there: IdSet,
    },
    /// The memory of the requested nodes belongs to GPUs.
    #[error(
        "{} {} memory of GPUs: {} {} the machine's memory",
        noun_with_ids("node", requested),
        is_or_are(requested),
        noun_with_ids("node", there),
        has_or_have(there)
    )]
    GpuMemory {
        /// Requested nodes whose memory is a GPU's.
        requested: IdSet,
        /// Nodes with memory that is not a GPU's.
        there: IdSet,
    },
    /// This process's affinity or cpuset excludes the requested CPUs or nodes.
    #[error(
        "{} {} not allowed to this process: {} {allowed}",
        noun_with_ids(what, requested),
        is_or_are(requested),
        restriction_phrase(what)
    )]
    NotAllowed {
        /// `CPU` or `node`.
        what: &'static str,
        /// Requested CPUs or nodes that this process may not use.
        requested: IdSet,
        /// CPUs or nodes that this process may use.
        allowed: IdSet,
    },
}

fn noun_with_ids(what: &str, ids: &IdSet) -> String {
    if ids.len() == 1 { format!("{what} {ids}") } else { format!("{what}s {ids}") }
}

fn is_or_are(ids: &IdSet) -> &'static str {
    if ids.len() == 1 { "is" } else { "are" }
}

fn has_or_have(ids: &IdSet) -> &'static str {
    if ids.len() == 1 { "has" } else { "have" }
}

fn restriction_phrase(what: &str) -> &'static str {
    if what == "CPU" { "its affinity and cpuset leave it" } else { "its cpuset has nodes" }
}

impl Topology {
    /// Checks that this process may run on all of the requested CPUs.
    ///
    /// # Errors
    /// Names the requested CPUs that do not exist, are offline or are not allowed. An empty request is an error, too.
    pub fn check_can_run_on_cpus(&self, requested: &IdSet) -> Result<(), UnavailableResource> {
        let what = "CPU";
        let online: IdSet = self.cpus.iter().map(|cpu| cpu.id).collect();
        if requested.is_empty() {
            return Err(UnavailableResource::NoneRequested { what, there: self.allowed.cpus.clone() });
        }
        let beyond = requested.difference(&online);
        let unknown = beyond.difference(&self.offline_cpus);
        if !unknown.is_empty() {
            let there = online.iter().chain(self.offline_cpus.iter()).collect();
            return Err(UnavailableResource::Nonexistent { what, requested: unknown, there });
        }
        if !beyond.is_empty() {
            return Err(UnavailableResource::Offline { requested: beyond, online });
        }
        let forbidden = requested.difference(&self.allowed.cpus);
        if !forbidden.is_empty() {
            return Err(UnavailableResource::NotAllowed {
                what,
                requested: forbidden,
                allowed: self.allowed.cpus.clone(),
            });
        }
        Ok(())
    }

    /// Checks that this process may allocate memory on all of the requested nodes.
    ///
    /// # Errors
    /// Names the requested nodes that do not exist, have no memory, have only memory of a GPU, or are not allowed. An
    /// empty request is an error, too.
    pub fn check_can_allocate_on_nodes(&self, requested: &IdSet) -> Result<(), UnavailableResource> {
        let what = "node";
        if requested.is_empty() {
            return Err(UnavailableResource::NoneRequested { what, there: self.allowed_memory_nodes() });
        }
        let there: IdSet = self.nodes.iter().map(|node| node.id).collect();
        let unknown = requested.difference(&there);
        if !unknown.is_empty() {
            return Err(UnavailableResource::Nonexistent { what, requested: unknown, there });
        }
        let with_memory = self.memory_nodes();
        let of_gpus: IdSet = self.nodes.iter().filter(|node| node.is_gpu_memory).map(|node| node.id).collect();
        let of_gpus = of_gpus.intersection(requested);
        if !of_gpus.is_empty() {
            return Err(UnavailableResource::GpuMemory { requested: of_gpus, there: with_memory });
        }
        let without = requested.difference(&with_memory);
        if !without.is_empty() {
            return Err(UnavailableResource::NoMemory { requested: without, there: with_memory });
        }
        let forbidden = requested.difference(&self.allowed.nodes);
        if !forbidden.is_empty() {
            return Err(UnavailableResource::NotAllowed {
                what,
                requested: forbidden,
                allowed: self.allowed_memory_nodes(),
            });
        }
        Ok(())
    }
}
