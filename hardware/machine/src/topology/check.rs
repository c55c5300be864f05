//! What may be asked for: CPUs and nodes that are there, and that this process may use.

use super::Topology;
use crate::IdSet;

/// Why CPUs or nodes that were asked for cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// None was asked for.
    #[error("no {what} was named: name at least one of {there}")]
    Nothing {
        /// `CPU` or `node`.
        what: &'static str,
        /// Those that may be used.
        there: IdSet,
    },
    /// The machine has no such CPU or node.
    #[error("there is no {what} {asked}: this machine has {there}")]
    Unknown {
        /// `CPU` or `node`.
        what: &'static str,
        /// Those that are not there.
        asked: IdSet,
        /// Those that are.
        there: IdSet,
    },
    /// The CPUs are switched off.
    #[error("{} {} offline: {online} are online", named("CPU", asked), are(asked))]
    Offline {
        /// Those that are offline.
        asked: IdSet,
        /// Those that are not.
        online: IdSet,
    },
    /// The nodes have CPUs only.
    #[error(
        "{} {} without memory: {} {} some",
        named("node", asked),
        are(asked),
        named("node", there),
        have(there)
    )]
    NoMemory {
        /// Those without memory.
        asked: IdSet,
        /// Those with memory.
        there: IdSet,
    },
    /// The process may not use them.
    #[error(
        "{} {} not allowed to this process: {} {allowed}",
        named(what, asked),
        are(asked),
        confined(what)
    )]
    NotAllowed {
        /// `CPU` or `node`.
        what: &'static str,
        /// Those that it may not use.
        asked: IdSet,
        /// Those that it may.
        allowed: IdSet,
    },
}

fn named(what: &str, ids: &IdSet) -> String {
    if ids.len() == 1 { format!("{what} {ids}") } else { format!("{what}s {ids}") }
}

fn are(ids: &IdSet) -> &'static str {
    if ids.len() == 1 { "is" } else { "are" }
}

fn have(ids: &IdSet) -> &'static str {
    if ids.len() == 1 { "has" } else { "have" }
}

fn confined(what: &str) -> &'static str {
    if what == "CPU" { "its affinity and cpuset leave it" } else { "its cpuset has nodes" }
}

impl Topology {
    /// Whether this process may run on all of these CPUs.
    ///
    /// # Errors
    /// Says which of them are unknown, offline or not allowed; also when there are none.
    pub fn check_cpus(&self, asked: &IdSet) -> Result<(), Unavailable> {
        let what = "CPU";
        let online: IdSet = self.cpus.iter().map(|cpu| cpu.id).collect();
        if asked.is_empty() {
            return Err(Unavailable::Nothing { what, there: self.allowed.cpus.clone() });
        }
        let beyond = asked.without(&online);
        let unknown = beyond.without(&self.offline);
        if !unknown.is_empty() {
            let there = online.iter().chain(self.offline.iter()).collect();
            return Err(Unavailable::Unknown { what, asked: unknown, there });
        }
        if !beyond.is_empty() {
            return Err(Unavailable::Offline { asked: beyond, online });
        }
        let forbidden = asked.without(&self.allowed.cpus);
        if !forbidden.is_empty() {
            return Err(Unavailable::NotAllowed {
                what,
                asked: forbidden,
                allowed: self.allowed.cpus.clone(),
            });
        }
        Ok(())
    }

    /// Whether this process may take memory from all of these nodes.
    ///
    /// # Errors
    /// Says which of them are unknown, without memory or not allowed; also when there are none.
    pub fn check_nodes(&self, asked: &IdSet) -> Result<(), Unavailable> {
        let what = "node";
        if asked.is_empty() {
            return Err(Unavailable::Nothing { what, there: self.memory_nodes() });
        }
        let there: IdSet = self.nodes.iter().map(|node| node.id).collect();
        let unknown = asked.without(&there);
        if !unknown.is_empty() {
            return Err(Unavailable::Unknown { what, asked: unknown, there });
        }
        let with_memory: IdSet =
            self.nodes.iter().filter(|node| node.memory > 0).map(|node| node.id).collect();
        let without = asked.without(&with_memory);
        if !without.is_empty() {
            return Err(Unavailable::NoMemory { asked: without, there: with_memory });
        }
        let forbidden = asked.without(&self.allowed.nodes);
        if !forbidden.is_empty() {
            return Err(Unavailable::NotAllowed { what, asked: forbidden, allowed: self.memory_nodes() });
        }
        Ok(())
    }
}
