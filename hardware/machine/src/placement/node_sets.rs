//! The NUMA nodes that this process may use. They are read for each placement, because a cpuset may change while a
//! process runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::Once;

use super::{Error, MemoryPolicy};
use crate::IdSet;
use crate::topology::read_gpu_memory_nodes;

const NODE_FOLDER: &str = "/sys/devices/system/node";
const WEIGHTED_INTERLEAVE_FOLDER: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
const TRANSPARENT_HUGE_PAGE_FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";

/// NUMA nodes of the machine: the online ones, those with memory that is not a GPU's, and those whose memory this
/// process may use.
#[derive(Debug, Clone)]
pub(super) struct NumaNodeSets {
    /// NUMA nodes that the kernel uses (`/sys/devices/system/node/online`).
    pub online: IdSet,
    /// Online nodes with memory that is not a GPU's.
    pub with_memory: IdSet,
    /// Online nodes with memory that this process may use; never empty.
    pub usable: IdSet,
}

impl NumaNodeSets {
    /// Reads the current node sets. A kernel without NUMA has one node, 0.
    pub(super) fn read_current_node_sets() -> NumaNodeSets {
        let text = |file: &str| read_and_parse_file(format!("{NODE_FOLDER}/{file}"));
        // The kernel lists the memory of GPUs too. Pages there would be slow and would take memory from the GPU.
        NumaNodeSets::from_lists(
            text("online"),
            text("has_memory"),
            &read_gpu_memory_nodes(),
            read_thread_mems_allowed(),
        )
    }

    /// The node sets by the lists of the kernel, which may be missing or empty: online nodes, those with memory, and
    /// those whose memory the thread may use; and by the nodes whose memory is that of GPUs.
    fn from_lists(
        online: Option<IdSet>,
        has_memory: Option<IdSet>,
        of_gpus: &IdSet,
        allowed: Option<IdSet>,
    ) -> NumaNodeSets {
        let is_given = |set: &IdSet| !set.is_empty();
        let online = online.filter(is_given).unwrap_or(IdSet::from([0]));
        let listed = has_memory.filter(is_given).unwrap_or_else(|| online.clone());
        let memory = Some(listed.difference(of_gpus)).filter(is_given).unwrap_or(listed);
        let allowed = allowed.unwrap_or_else(|| online.clone());
        let usable = memory.intersection(&allowed);
        let usable = if usable.is_empty() { memory.clone() } else { usable };
        NumaNodeSets { online, with_memory: memory, usable }
    }

    /// Whether this process may use the memory of one node only.
    pub(super) fn has_one_usable_node(&self) -> bool {
        self.usable.len() == 1
    }

    /// Checks that `policy` is valid: weights from 1 to 255, and at least one node (none with [`MemoryPolicy::Local`]),
    /// all of which exist, have memory and may be used.
    pub(super) fn check_policy(&self, policy: &MemoryPolicy) -> Result<(), Error> {
        let named = policy.named_nodes();
        if let MemoryPolicy::Weighted(weights) = policy
            && let Some((&node, _)) = weights.iter().find(|(_, weight)| !(1..=255).contains(*weight))
        {
            return Err(Error::InvalidWeight { policy: policy.clone(), node });
        }
        if named.is_empty() && *policy != MemoryPolicy::Local {
            return Err(Error::NoNodes { policy: policy.to_string(), usable: self.usable.clone() });
        }
        let (asked, usable) = (policy.to_string(), self.usable.clone());
        let absent = named.difference(&self.online);
        if !absent.is_empty() {
            return Err(Error::UnknownNode { asked, nodes: absent, usable });
        }
        let empty = named.difference(&self.with_memory);
        if !empty.is_empty() {
            return Err(Error::NodeWithoutMemory { asked, nodes: empty, usable });
        }
        let forbidden = named.difference(&self.usable);
        if !forbidden.is_empty() {
            return Err(Error::NodeOutsideCpuset { asked, nodes: forbidden, usable });
        }
        Ok(())
    }
}

/// The NUMA nodes that the kernel uses now, with and without memory.
pub fn online_nodes() -> IdSet {
    NumaNodeSets::read_current_node_sets().online
}

/// The NUMA nodes whose memory this process may use now: they have memory that is not a GPU's, and the cpuset allows
/// them. Never empty.
pub fn usable_nodes() -> IdSet {
    NumaNodeSets::read_current_node_sets().usable
}

/// Reads a small kernel file and parses its text. `None` if it cannot be read or parsed.
pub(super) fn read_and_parse_file<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    // I/O error ignored: a file of the kernel that may be absent.
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Reads the nodes that the calling thread's cpuset allows.
fn read_thread_mems_allowed() -> Option<IdSet> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?.parse().ok()
}

/// The nodes among `candidates` that are nearest to `node`: `node` itself if it is a candidate.
pub(super) fn nearest_nodes(node: u32, candidates: &IdSet) -> IdSet {
    if candidates.contains(node) {
        return IdSet::from([node]);
    }
    let distances = read_distances_from_node(node);
    let distance = |id: u32| distances.get(&id).copied().unwrap_or(u32::MAX);
    let least = candidates.iter().map(distance).min();
    candidates.iter().filter(|&id| Some(distance(id)) == least).collect()
}

/// Reads the NUMA distance from `node` to each online node.
pub(super) fn read_distances_from_node(node: u32) -> BTreeMap<u32, u32> {
    let row: String = read_and_parse_file(format!("{NODE_FOLDER}/node{node}/distance")).unwrap_or_default();
    let online: IdSet = read_and_parse_file(format!("{NODE_FOLDER}/online")).unwrap_or_default();
    online.iter().zip(row.split_whitespace().filter_map(|word| word.parse().ok())).collect()
}

/// Reads the online CPUs of `node`.
pub(super) fn read_node_cpus(node: u32) -> IdSet {
    let online = || {
        read_and_parse_file("/sys/devices/system/cpu/online").filter(|_| node == 0 && !Path::new(NODE_FOLDER).exists())
    };
    read_and_parse_file(format!("{NODE_FOLDER}/node{node}/cpulist")).or_else(online).unwrap_or_default()
}

/// Reads the kernel's interleave weights of `nodes`. `None` before Linux 6.9.
pub(super) fn read_kernel_interleave_weights(nodes: &IdSet) -> Option<BTreeMap<u32, u32>> {
    nodes
        .iter()
        .map(|node| Some((node, read_and_parse_file(format!("{WEIGHTED_INTERLEAVE_FOLDER}/node{node}"))?)))
        .collect()
}

/// Reads the size of a transparent huge page in bytes. `None` if transparent huge pages are disabled.
pub(super) fn read_transparent_huge_page_size_bytes() -> Option<usize> {
    let enabled: String = read_and_parse_file(format!("{TRANSPARENT_HUGE_PAGE_FOLDER}/enabled"))?;
    if enabled.contains("[never]") {
        return None;
    }
    read_and_parse_file(format!("{TRANSPARENT_HUGE_PAGE_FOLDER}/hpage_pmd_size"))
}

/// Counts the free hugetlb pages of `bytes` bytes on `nodes`. `None` if the machine has no pool of that page size.
pub(super) fn count_free_hugetlb_pages(nodes: &IdSet, bytes: usize) -> Option<u64> {
    let kib = bytes / 1024;
    let free = |node| {
        read_and_parse_file::<u64>(format!("{NODE_FOLDER}/node{node}/hugepages/hugepages-{kib}kB/free_hugepages"))
    };
    nodes.iter().map(free).sum()
}

/// Log message that says what happens when memory cannot be placed as requested.
pub(super) const LOCAL_FALLBACK_MESSAGE: &str =
    "memory is not placed on the requested NUMA nodes, local memory is used instead";

/// Warns, once per process, that placement is degraded. `what` names the consequence, `why` the reason.
pub(super) fn warn_placement_degraded(what: &str, why: &str) {
    static WARN_ONCE: Once = Once::new();
    WARN_ONCE.call_once(|| {
        tracing::warn!(
            "{what} ({why}): results are the same, but may take longer; check the limits of the container or batch job on CPUs, \
             memory nodes and system calls"
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{RecordedMachine, TopologySource};

    /// Nodes 0, 2, 5 and 7 are online; 7 has no memory; 5 is outside of the cpuset.
    fn sparse() -> NumaNodeSets {
        NumaNodeSets { online: [0, 2, 5, 7].into(), with_memory: [0, 2, 5].into(), usable: [0, 2].into() }
    }

    #[test]
    fn wrong_asks_name_the_nodes_and_what_may_be_used() {
        let said = |policy: MemoryPolicy| sparse().check_policy(&policy).expect_err("a wrong ask").to_string();
        let may = "may use memory of nodes 0,2";
        for (policy, why) in [
            (MemoryPolicy::Bind([0, 1, 3].into()), "no node 1,3 on this machine: this process"),
            (MemoryPolicy::Interleave([2, 7].into()), "node 7 has no memory: this process"),
            (MemoryPolicy::PreferredMany([0, 5].into()), "node 5 is outside of this process's cpuset: it"),
        ] {
            assert_eq!(said(policy.clone()), format!("{policy}: {why} {may}"));
        }
        assert!(said(MemoryPolicy::KernelWeighted(IdSet::new())).starts_with("kernel-weighted names no node: "));
        assert!(said(MemoryPolicy::Weighted([(0, 1), (2, 0)].into())).ends_with("node 2 must be between 1 and 255"));
    }

    #[test]
    fn memory_of_gpus_is_not_used() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines/gpu-memory-nodes.txt");
        let machine = RecordedMachine::open(&file).and_then(|recorded| recorded.topology()).expect("a recording");
        let online: IdSet = machine.nodes.iter().map(|node| node.id).collect();
        let of_gpus: IdSet = machine.nodes.iter().filter(|node| node.is_gpu_memory).map(|node| node.id).collect();
        assert_eq!((online.len(), &of_gpus), (5, &IdSet::from([254, 255])));
        // Whether or not the kernel lists the nodes with memory, and whatever the cpuset allows.
        for has_memory in [Some(online.clone()), Some(IdSet::new()), None] {
            for allowed in [Some(online.clone()), None] {
                let sets = NumaNodeSets::from_lists(Some(online.clone()), has_memory.clone(), &of_gpus, allowed);
                assert_eq!((&sets.with_memory, &sets.usable), (&[0, 8, 9].into(), &[0, 8, 9].into()), "{has_memory:?}");
                assert!(sets.check_policy(&MemoryPolicy::Interleave([0, 8, 9].into())).is_ok());
                assert!(sets.check_policy(&MemoryPolicy::Interleave([8, 254].into())).is_err());
            }
        }
    }

    #[test]
    fn asks_that_can_be_met_pass() {
        for policy in [
            MemoryPolicy::Local,
            MemoryPolicy::Bind([2].into()),
            MemoryPolicy::Interleave([0, 2].into()),
            MemoryPolicy::Weighted([(0, 255), (2, 1)].into()),
        ] {
            assert!(sparse().check_policy(&policy).is_ok(), "{policy}");
        }
        assert!(!sparse().has_one_usable_node());
    }
}
