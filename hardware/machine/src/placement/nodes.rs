//! What this process may use of the machine's nodes, read anew at each placing: a cpuset may change while a process runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::Once;

use super::{Error, Policy};
use crate::IdSet;

const NODE: &str = "/sys/devices/system/node";
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage";

/// The machine's nodes.
#[derive(Debug, Clone)]
pub(super) struct Nodes {
    /// Those online.
    pub online: IdSet,
    /// Those of them with memory.
    pub memory: IdSet,
    /// Those of them with memory that this process may use; never none.
    pub usable: IdSet,
}

impl Nodes {
    /// Reads them. A kernel without NUMA has one node, 0.
    pub fn read() -> Nodes {
        let list = |file: &str| read(format!("{NODE}/{file}")).filter(|set: &IdSet| !set.is_empty());
        let online = list("online").unwrap_or(IdSet::from([0]));
        let memory = list("has_memory").unwrap_or_else(|| online.clone());
        let allowed = mems_allowed().unwrap_or_else(|| online.clone());
        let usable = memory.and(&allowed);
        let usable = if usable.is_empty() { memory.clone() } else { usable };
        Nodes { online, memory, usable }
    }

    /// Whether there is no choice.
    pub fn single(&self) -> bool {
        self.usable.len() == 1
    }

    /// Whether `policy` may be asked for here.
    pub fn check(&self, policy: &Policy) -> Result<(), Error> {
        let named = policy.nodes();
        if let Policy::Weighted(weights) = policy
            && let Some((&node, _)) = weights.iter().find(|(_, weight)| !(1..=255).contains(*weight))
        {
            return Err(Error::Weight { policy: policy.clone(), node });
        }
        if named.is_empty() && *policy != Policy::Local {
            return Err(Error::NoNodes { policy: policy.to_string(), usable: self.usable.clone() });
        }
        let (asked, usable) = (policy.to_string(), self.usable.clone());
        let absent = named.without(&self.online);
        if !absent.is_empty() {
            return Err(Error::NodeNotThere { asked, nodes: absent, usable });
        }
        let empty = named.without(&self.memory);
        if !empty.is_empty() {
            return Err(Error::NodeWithoutMemory { asked, nodes: empty, usable });
        }
        let forbidden = named.without(&self.usable);
        if !forbidden.is_empty() {
            return Err(Error::NodeNotAllowed { asked, nodes: forbidden, usable });
        }
        Ok(())
    }
}

/// Reads a small file of the kernel's.
pub(super) fn read<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Nodes this thread's cpuset allows.
fn mems_allowed() -> Option<IdSet> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?.parse().ok()
}

/// Nodes whose memory is nearest to `node`: itself where it has memory.
pub(super) fn nearest(node: u32, of: &IdSet) -> IdSet {
    if of.contains(node) {
        return IdSet::from([node]);
    }
    let distances = distances(node);
    let distance = |id: u32| distances.get(&id).copied().unwrap_or(u32::MAX);
    let least = of.iter().map(distance).min();
    of.iter().filter(|&id| Some(distance(id)) == least).collect()
}

/// Distance of `node` to each online node.
pub(super) fn distances(node: u32) -> BTreeMap<u32, u32> {
    let row: String = read(format!("{NODE}/node{node}/distance")).unwrap_or_default();
    let online: IdSet = read(format!("{NODE}/online")).unwrap_or_default();
    online.iter().zip(row.split_whitespace().filter_map(|word| word.parse().ok())).collect()
}

/// Online CPUs of `node`.
pub(super) fn cpus(node: u32) -> IdSet {
    let online = || read("/sys/devices/system/cpu/online").filter(|_| node == 0 && !Path::new(NODE).exists());
    read(format!("{NODE}/node{node}/cpulist")).or_else(online).unwrap_or_default()
}

/// The kernel's weights of `nodes`; none before Linux 6.9.
pub(super) fn kernel_weights(nodes: &IdSet) -> Option<BTreeMap<u32, u32>> {
    nodes.iter().map(|node| Some((node, read(format!("{WEIGHTS}/node{node}"))?))).collect()
}

/// Bytes of a transparent huge page, if programs may ask for them.
pub(super) fn transparent_page() -> Option<usize> {
    let enabled: String = read(format!("{TRANSPARENT}/enabled"))?;
    if enabled.contains("[never]") {
        return None;
    }
    read(format!("{TRANSPARENT}/hpage_pmd_size"))
}

/// Free huge pages of `bytes` bytes on each of `nodes`; none where the machine has no pool of that size.
pub(super) fn pool(nodes: &IdSet, bytes: usize) -> Option<u64> {
    let kib = bytes / 1024;
    let free = |node| read::<u64>(format!("{NODE}/node{node}/hugepages/hugepages-{kib}kB/free_hugepages"));
    nodes.iter().map(free).sum()
}

/// What is done instead of placing memory.
pub(super) const LOCAL: &str = "memory is not placed, local memory is used instead";

/// Logs once a process that placement is not what it could be, and why.
pub(super) fn degraded(what: &str, why: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| tracing::warn!("{what}: {why}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes 0, 2 and 5 with gaps between, 7 without memory, 5 outside of the cpuset.
    fn sparse() -> Nodes {
        Nodes { online: [0, 2, 5, 7].into(), memory: [0, 2, 5].into(), usable: [0, 2].into() }
    }

    #[test]
    fn wrong_asks_name_the_nodes_and_what_may_be_used() {
        let said = |policy: Policy| sparse().check(&policy).expect_err("a wrong ask").to_string();
        let may = "may use memory of nodes 0,2";
        for (policy, why) in [
            (Policy::Bind([0, 1, 3].into()), "no node 1,3 on this machine: this process"),
            (Policy::Interleave([2, 7].into()), "node 7 has no memory: this process"),
            (Policy::PreferredMany([0, 5].into()), "node 5 is outside of this process's cpuset: it"),
        ] {
            assert_eq!(said(policy.clone()), format!("{policy}: {why} {may}"));
        }
        assert!(said(Policy::KernelWeighted(IdSet::new())).starts_with("kernel-weighted names no node: "));
        assert!(said(Policy::Weighted([(0, 1), (2, 0)].into())).ends_with("node 2 is not between 1 and 255"));
    }

    #[test]
    fn asks_that_can_be_met_pass() {
        for policy in [
            Policy::Local,
            Policy::Bind([2].into()),
            Policy::Interleave([0, 2].into()),
            Policy::Weighted([(0, 255), (2, 1)].into()),
        ] {
            assert!(sparse().check(&policy).is_ok(), "{policy}");
        }
        assert!(!sparse().single());
    }
}
