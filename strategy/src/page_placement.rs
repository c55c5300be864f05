//! Reads from the kernel on which NUMA nodes the pages of a running instance are.

mod index_files;

use std::collections::BTreeMap;
use std::fs;

use genuma_machine::IdSet;
use genuma_machine::placement::MemoryPolicy;
use genuma_work::proc_parsing::{parse_resident_bytes_by_node, stat_fields_after_name};
use serde::Serialize;

pub(crate) use index_files::AlignerIndexFiles;

/// A memory range counts as index if it has at least 1/16 of the index's bytes.
const INDEX_RANGE_DIVISOR: u64 = 16;
/// Minimum bytes of a memory range that counts as index; smaller ranges are stacks and buffers.
const MIN_RANGE_BYTES: u64 = 64 << 10;
/// Maximum share of the index's pages that may be on other nodes than requested. Not 0, because the kernel uses other
/// nodes when a node is full, and thread buffers may look like a small index.
const MISPLACED_TOLERANCE: f64 = 0.1;

/// Bytes of memory by NUMA node.
pub(crate) type BytesByNode = BTreeMap<u32, u64>;

/// Bytes of an instance's memory on each NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PagePlacement {
    /// All memory, bytes by node.
    pub all: BytesByNode,
    /// Memory that probably holds the index, bytes by node: large memory ranges, except mappings of files that do not
    /// belong to the index.
    pub index: BytesByNode,
}

/// Reads the memory by node of all processes of the process group `group`. `None` if they have ended or the kernel does
/// not report it.
pub(crate) fn page_placement_of_group(group: u32, index: &AlignerIndexFiles) -> Option<PagePlacement> {
    let mut pages = PagePlacement::default();
    for id in process_ids_of_group(group) {
        if let Ok(maps) = fs::read_to_string(format!("/proc/{id}/numa_maps")) {
            pages.add_numa_maps(&maps, index);
        }
    }
    (!pages.all.is_empty()).then_some(pages)
}

/// Returns the IDs of all processes of a process group.
pub(crate) fn process_ids_of_group(group: u32) -> Vec<u32> {
    processes().into_iter().filter(|process| process.group == group).map(|process| process.id).collect()
}

/// Returns the IDs of the process `root` and of its descendants. A process whose parent has ended is not found.
pub(crate) fn process_ids_of_tree(root: u32) -> Vec<u32> {
    let processes = processes();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        found.extend(processes.iter().filter(|process| process.parent == parent).map(|process| process.id));
    }
    found
}

/// IDs of a process, of its parent and of its process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    group: u32,
}

fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: u32| parse_process(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)).collect()
}

/// Parses parent and process group from `stat` (proc_pid_stat(5), fields 4 and 5).
fn parse_process(id: u32, stat: &str) -> Option<Process> {
    let mut fields = stat_fields_after_name(stat).skip(1);
    Some(Process { id, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
}

impl PagePlacement {
    /// Returns the sample `later`, or `self` if the index memory has shrunk since: an instance frees its index before
    /// it ends.
    pub(crate) fn later_sample_unless_index_freed(self, later: PagePlacement) -> PagePlacement {
        let index = |pages: &PagePlacement| pages.index.values().sum::<u64>();
        if index(&later) < index(&self) { self } else { later }
    }

    /// Adds the pages of all ranges in the text of a `numa_maps` file (numa(7)).
    fn add_numa_maps(&mut self, maps: &str, index: &AlignerIndexFiles) {
        for line in maps.lines() {
            let on = parse_resident_bytes_by_node(line);
            // Program and library files are where any process first read them.
            let file = line.split_whitespace().find_map(|word| word.strip_prefix("file="));
            let foreign = file.is_some_and(|file| !index.files.iter().any(|of_index| of_index == file));
            let large = on.values().sum::<u64>() >= (index.bytes / INDEX_RANGE_DIVISOR).max(MIN_RANGE_BYTES);
            let of_index = large && !foreign;
            for (node, bytes) in on {
                *self.all.entry(node).or_default() += bytes;
                if of_index {
                    *self.index.entry(node).or_default() += bytes;
                }
            }
        }
    }

    /// Returns whether the index is on the nodes that `policy` names (for the local policy: on `nodes`), in the
    /// requested proportions. Tolerates deviations up to [`MISPLACED_TOLERANCE`]. With the kernel's weights, only
    /// checks that each node has a part of the index. Returns true if no memory of the index was found.
    pub(crate) fn is_index_on_requested_nodes(&self, policy: &MemoryPolicy, nodes: &IdSet) -> bool {
        let all: u64 = self.index.values().sum();
        let share = |bytes: u64| bytes as f64 / all.max(1) as f64;
        let named = policy.named_nodes();
        let on = |node: u32| share(self.index.get(&node).copied().unwrap_or(0));
        let within = |nodes: &IdSet| nodes.iter().map(on).sum::<f64>() >= 1.0 - MISPLACED_TOLERANCE;
        if all == 0 {
            return true;
        }
        match policy {
            MemoryPolicy::Local => within(nodes),
            MemoryPolicy::Bind(_) | MemoryPolicy::PreferredMany(_) => within(&named),
            MemoryPolicy::Interleave(_) => {
                let even = 1.0 / named.len().max(1) as f64;
                within(&named) && named.iter().all(|node| (on(node) - even).abs() <= MISPLACED_TOLERANCE)
            }
            MemoryPolicy::KernelWeighted(_) => within(&named) && named.iter().all(|node| on(node) > 0.0),
            MemoryPolicy::Weighted(weights) => {
                let sum: u32 = weights.values().sum();
                let asked = |weight: u32| f64::from(weight) / f64::from(sum.max(1));
                weights.iter().all(|(&node, &weight)| (on(node) - asked(weight)).abs() <= MISPLACED_TOLERANCE)
            }
        }
    }
}

/// Formats the share of memory on each node, such as `node 0 60%, node 1 40%`.
pub fn format_node_shares(on: &BytesByNode) -> String {
    let all: u64 = on.values().sum();
    let share = |(node, bytes): (&u32, &u64)| format!("node {node} {:.0}%", 100.0 * *bytes as f64 / all.max(1) as f64);
    on.iter().map(share).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invocation::{AlignerIndex, IndexLoading};

    const MAPS: &str = "\
5600 default file=/usr/bin/bwa mapped=30 N0=30 kernelpagesize_kB=4
5700 default file=/usr/lib/libc.so.6 mapped=500 N1=500 kernelpagesize_kB=4
6000 default file=/data/my\\040index mapped=600 N0=600 kernelpagesize_kB=4
7f00 bind:1 anon=1000 dirty=1000 active=0 N1=1000 kernelpagesize_kB=4
7f10 bind:1 anon=2 dirty=2 N0=1 N1=1 kernelpagesize_kB=2048
7ffe default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4
";

    fn on(bytes: &[(u32, u64)]) -> PagePlacement {
        PagePlacement { all: BytesByNode::new(), index: bytes.iter().copied().collect() }
    }

    #[test]
    fn an_instance_that_gives_its_index_back_has_had_it() {
        let (whole, half, more) = (on(&[(0, 8), (1, 8)]), on(&[(1, 8)]), on(&[(0, 16), (1, 16)]));
        assert_eq!(whole.clone().later_sample_unless_index_freed(half.clone()), whole);
        assert_eq!(half.later_sample_unless_index_freed(whole.clone()), whole);
        assert_eq!(whole.later_sample_unless_index_freed(more.clone()), more);
    }

    #[test]
    fn ranges_are_summed_by_node() {
        let mut pages = PagePlacement::default();
        let files = AlignerIndexFiles::of_index(Some(&AlignerIndex {
            files: vec!["/data/my index".into()],
            loading: IndexLoading::Mapped,
            made_by: None,
        }));
        pages.add_numa_maps(MAPS, &AlignerIndexFiles { bytes: 16 << 20, ..files });
        assert_eq!(pages.all, [(0, 633 * 4096 + (2 << 20)), (1, 1500 * 4096 + (2 << 20))].into());
        assert_eq!(pages.index, [(0, 600 * 4096 + (2 << 20)), (1, 1000 * 4096 + (2 << 20))].into());
        assert_eq!(format_node_shares(&[(0, 25), (3, 75)].into()), "node 0 25%, node 3 75%");
    }

    #[test]
    fn an_index_is_where_it_was_asked_to_be_or_not() {
        let nodes = IdSet::from([0, 1]);
        let bind = MemoryPolicy::Bind([1].into());
        assert!(on(&[(1, 100)]).is_index_on_requested_nodes(&bind, &nodes));
        assert!(on(&[(0, 5), (1, 95)]).is_index_on_requested_nodes(&bind, &nodes));
        assert!(!on(&[(0, 50), (1, 50)]).is_index_on_requested_nodes(&bind, &nodes));
        let spread = MemoryPolicy::Interleave([0, 1].into());
        assert!(on(&[(0, 48), (1, 52)]).is_index_on_requested_nodes(&spread, &nodes));
        assert!(!on(&[(0, 90), (1, 10)]).is_index_on_requested_nodes(&spread, &nodes));
        assert!(!on(&[(2, 100)]).is_index_on_requested_nodes(&MemoryPolicy::Local, &nodes));
        assert!(on(&[(0, 100)]).is_index_on_requested_nodes(&MemoryPolicy::Local, &nodes));
        let weighted = MemoryPolicy::Weighted([(0, 3), (1, 1)].into());
        assert!(on(&[(0, 75), (1, 25)]).is_index_on_requested_nodes(&weighted, &nodes));
        assert!(!on(&[(0, 50), (1, 50)]).is_index_on_requested_nodes(&weighted, &nodes));
        assert!(on(&[]).is_index_on_requested_nodes(&bind, &nodes));
    }

    #[test]
    fn this_process_is_found_in_its_group() {
        let stat = fs::read_to_string("/proc/self/stat").expect("a stat");
        let group = parse_process(std::process::id(), &stat).expect("a process").group;
        // The kernel may be built without NUMA.
        if fs::metadata("/proc/self/numa_maps").is_ok() {
            let pages =
                page_placement_of_group(group, &AlignerIndexFiles::default()).expect("pages of a living process");
            assert!(pages.all.values().sum::<u64>() > 0);
        }
        assert_eq!(page_placement_of_group(u32::MAX, &AlignerIndexFiles::default()), None);
    }
}
